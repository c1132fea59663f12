"""Reads JSON part by part, so that a file can be much larger than what is kept of it.

The parts are parsed by the standard library's decoder; this only finds where each begins.

>>> import io
>>> cursor = JsonCursor(io.StringIO('{"a": [1, {"b": 2}], "c": 3}').read)
>>> for key in cursor.members():
...     if key == "a":
...         for index in cursor.items():
...             print(index, cursor.value())
0 1
1 {'b': 2}
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BrokenJsonError", "JsonCursor"]

_CHUNK = 1 << 20
_LONGEST_VALUE = 64 << 20
"""A value of more characters is not read: it would take memory without end."""
_MOST_PARTS = 1_000_000
"""A value with more parts is not read either: each takes up to 250 bytes, however short it is."""
_PART_OR_END = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{\]}]', re.DOTALL)
"""What makes a part, or ends a list or an object; or a text, which may not have ended yet."""
_NEAR_THE_END = 16
"""An escape or a word may be cut so many characters before the end of what was read."""
_NUMBER_TAIL = 3
"""A number may go on behind as many characters less one: 1 is the beginning of 1e+6."""
_LONGEST_INT = 30
_SPACE = re.compile(r"[ \t\r\n]*")


class BrokenJsonError(Exception):
    """What comes next is not JSON; what was read before it is good."""


def _whole_number(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits; none of them is a size or a time.
    return int(digits) if len(digits) <= _LONGEST_INT else float(digits)


_decode_patiently = json.JSONDecoder(
    parse_constant=lambda _: None, parse_int=_whole_number
).raw_decode
"""Takes numbers of any length; it is slower, so only files that have such are read by it."""


class JsonCursor:
    """Stands before a value. *read* takes a number of bytes, and returns "" at the end."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._text = ""
        self._at = 0
        self._before = 0
        self._ended = False
        self._is_crowded: bool | None = None
        """Whether what was read and not used has more signs than a value may; None: not known."""
        self._decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode

    @property
    def position(self) -> int:
        """How many characters lie behind it."""
        return self._before + self._at

    def peek(self) -> str:
        """Return the first character of what comes next, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """Return the next value, whole.

        Raises:
            BrokenJsonError: if it is not JSON, or ends too soon, or is too deep or too large.
        """
        if not self.peek():
            raise BrokenJsonError(f"ends at character {self.position}, where more should follow")
        while True:
            try:
                self._refuse_many_parts()
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError as error:
                self._need_more(error)
            except RecursionError as error:
                raise self._broken("nested too deeply") from error
            except (ValueError, OverflowError) as error:
                if self._decode is _decode_patiently:
                    raise self._broken(str(error)) from error
                self._decode = _decode_patiently
            else:
                is_number = isinstance(value, int | float)
                may_go_on = is_number and end + _NUMBER_TAIL > len(self._text)
                if not may_go_on or not self._more():
                    self._at = end
                    return value

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the value of each is read before the next, or passed over.

        Raises:
            BrokenJsonError: where it is not an object.
        """
        self._expect("{")
        is_first = True
        while self._more_parts("}", is_first=is_first):
            is_first = False
            key = self.value()
            if not isinstance(key, str):
                raise self._broken("a key is not text")
            self._expect(":")
            yield from self._offered(key)

    def items(self) -> Iterator[int]:
        """Yield the places in a list, likewise."""
        self._expect("[")
        index = 0
        while self._more_parts("]", is_first=index == 0):
            yield from self._offered(index)
            index += 1

    def _offered(self, name: Any) -> Iterator[Any]:
        """Yield the name of a part, then pass over the part if nobody read it."""
        # Over blanks, which would look as if the part had been read.
        self.peek()
        before = self.position
        yield name
        if self.position == before:
            self.value()

    def _more_parts(self, closing: str, *, is_first: bool) -> bool:
        """Return whether another part follows; go to it, or behind the end."""
        character = self.peek()
        if character == closing:
            self._at += 1
            return False
        if not is_first:
            self._expect(",")
        return True

    def _expect(self, character: str) -> None:
        found = self.peek()
        if not found:
            raise BrokenJsonError(f"is cut off at character {self.position}")
        if found != character:
            raise self._broken(f"expected {character!r}, found {found!r}")
        self._at += 1

    def _refuse_many_parts(self) -> None:
        """Refuse what would take gigabytes when it is parsed, before that."""
        text, at = self._text, self._at
        if len(text) <= _MOST_PARTS:
            return
        # Counted once for each read, and not for each value in it.
        if self._is_crowded is None:
            self._is_crowded = sum(text.count(sign, at) for sign in ",[{") > _MOST_PARTS
        if not self._is_crowded:
            return
        # Only here is it worth telling text from structure, and this value from those behind it.
        depth = n_parts = 0
        for found in _PART_OR_END.finditer(text, at):
            sign = found[0]
            if sign in "[{":
                depth += 1
            elif sign in "]}":
                depth -= 1
            n_parts += sign in ",[{"
            if depth <= 0:
                return
            if n_parts > _MOST_PARTS:
                raise self._broken(f"one value has more than {_MOST_PARTS:,} parts")

    def _need_more(self, error: json.JSONDecodeError) -> None:
        """Read on where that may mend the error, else raise it."""
        may_be_cut = (
            error.msg.startswith("Unterminated string")
            or error.pos >= len(self._text) - _NEAR_THE_END
        )
        if len(self._text) - self._at > _LONGEST_VALUE:
            raise self._broken("one value has more than 64 million characters")
        if not may_be_cut:
            raise self._broken(error.msg, error.pos)
        at = self._before + error.pos
        if not self._more():
            raise BrokenJsonError(f"is cut off: {error.msg} at character {at}")

    def _broken(self, what: str, at: int | None = None) -> BrokenJsonError:
        at = self._before + (self._at if at is None else at)
        return BrokenJsonError(f"is not JSON: {what} at character {at}")

    def _more(self) -> bool:
        """Read on, and return whether there was more; a long value makes for long reads."""
        if self._ended:
            return False
        rest = len(self._text) - self._at
        text = self._read(max(_CHUNK, rest))
        self._ended = not text
        if self._ended:
            return False
        self._before += self._at
        self._text = self._text[self._at :] + text
        self._at = 0
        self._is_crowded = None
        return True
