"""Fault-tolerant incremental reading of recordings as text and JSON.

The parts are parsed by the standard library's decoder; this only finds where each begins.

>>> import io
>>> cursor = JsonCursor(io.StringIO('{"a": [1, {"b": 2}], "c": 3}').read)
>>> for key in cursor.members():
...     if key == "a":
...         for index in cursor.items():
...             print(index, cursor.value())
0 1
1 {'b': 2}

>>> import io
>>> from h3sim.importers.source import JsonCursor
>>> text = '{"log": {"creator": {}, "entries": [1, 2]}, "x": 3} {"y": 4}'
>>> for part in parts(JsonCursor(io.StringIO(text).read), lambda *note: None):
...     print(part.key, part.value)
log {}
log.creator {}
log.entries []
log.entries[0] 1
log.entries[1] 2
x 3
event 2 {'y': 4}

>>> notes = []
>>> values = {"bodySize": -7, "time": "12.5", "url": 3}
>>> entry = Fields(values, "entries[0]", lambda *note: notes.append(note))
>>> entry.size("bodySize"), entry.number("time"), entry.text("url")
(None, 12.5, '')
>>> notes[1]
('entries[0].url', 'must be text, is 3')
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.result import RecordingError
from h3sim.schema import format_value, is_quantity, open_input
from h3sim.schema.files import GZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedIOBase
    from os import PathLike

    from h3sim.errors import InputError


_MOST_BYTES = 512 << 20
"""More is not read: no browser writes more (a text of V8 ends there), a small gzip may hold it."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PEEKED_BYTES = 4096
_STRAY = re.compile("[\udc80-\udcff]")


class TextSource:
    """Text that is read piece by piece; `problems` says what was wrong on the way.

    UTF-8, UTF-16 and UTF-32 are told by their byte order mark, UTF-16 by the zeros of a first
    character in ASCII as well. Bytes that are not UTF-8 become U+FFFD.
    """

    def __init__(self, binary: BufferedIOBase, most_bytes: int | None = None) -> None:
        self._binary = binary
        self._most_bytes = _MOST_BYTES if most_bytes is None else most_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._n_bytes = 0
        self._ended = False
        self._next = ""
        self.problems: list[str] = []

    def peek(self) -> str:
        """Return what `read` will return next, without taking it."""
        self._next = self._next or self.read(_PEEKED_BYTES)
        return self._next

    def read(self, n_bytes: int) -> str:
        """Return the text of about so many bytes, "" at the end or where nothing can be read."""
        if self._next:
            text, self._next = self._next, ""
            return text
        while not self._ended:
            raw = self._raw(n_bytes)
            text = self._decode(raw)
            if text:
                return text
        return ""

    def _raw(self, n_bytes: int) -> bytes:
        raw = b""
        try:
            # One read at a time: what comes before a broken end is not lost.
            raw = self._binary.read1(n_bytes)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.problems.append(f"cannot be unpacked further: {error}")
        self._n_bytes += len(raw)
        if self._n_bytes > self._most_bytes:
            limit = f"{self._most_bytes >> 20} MiB"
            self.problems.append(f"is longer than {limit}: reading stopped there")
            raw = b""
        self._ended = not raw
        return raw

    def _decode(self, raw: bytes) -> str:
        if self._decoder is None:
            raw, encoding = _detect_encoding(raw)
            # So that wrong bytes can be told from a U+FFFD that the file has itself.
            errors = "surrogateescape" if encoding == "utf-8" else "replace"
            self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        text = self._decoder.decode(raw, final=self._ended)
        decoded = text if text.isascii() else _STRAY.sub("\ufffd", text)
        if decoded != text and not any("UTF-8" in problem for problem in self.problems):
            self.problems.append("is not UTF-8 throughout: wrong bytes were read as U+FFFD")
        return decoded


def _detect_encoding(raw: bytes) -> tuple[bytes, str]:
    """Return the bytes behind the byte order mark, and the encoding."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :], encoding
    if raw[1:2] == b"\0" and raw[:1] != b"\0":
        return raw, "utf-16-le"
    if raw[:1] == b"\0" and raw[1:2] not in (b"\0", b""):
        return raw, "utf-16-be"
    return raw, "utf-8"


@contextmanager
def opened(
    path: str | PathLike[str],
    error: type[InputError] = RecordingError,
    *,
    most_bytes: int | None = None,
) -> Iterator[TextSource]:
    """Open the file at *path* as text, of which *most_bytes* are read, unpacked.

    Raises:
        error: if it cannot be opened or read.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_input(path, error))
        is_gzip = raw.peek(2)[:2] == GZIP_MAGIC
        binary = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
        yield TextSource(binary, most_bytes)


_CHUNK = 1 << 20
_LONGEST_VALUE = 64 << 20
"""A value of more characters is not read: it would take memory without end."""
_MOST_PARTS = 1_000_000
"""A value with more parts is not read either: each takes up to 250 bytes, however short it is."""
_PART_OR_END = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{\]}]', re.DOTALL)
"""Structural tokens: separators, closing brackets and (possibly unterminated) strings."""
_NEAR_THE_END = 16
"""An escape or a word may be cut so many characters before the end of what was read."""
_NUMBER_TAIL = 3
"""A number may go on behind as many characters less one: 1 is the beginning of 1e+6."""
_LONGEST_INT = 30
_SPACE = re.compile(r"[ \t\r\n]*")


class BrokenJsonError(Exception):
    """Input that is not JSON; values read before are valid."""


def _to_integer(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits; none of them is a size or a time.
    return int(digits) if len(digits) <= _LONGEST_INT else float(digits)


_decode_patiently = json.JSONDecoder(
    parse_constant=lambda _: None, parse_int=_to_integer
).raw_decode
"""Takes numbers of any length; it is slower, so only files that have such are read by it."""


def parsed(text: str) -> Any:
    """Return the value that *text* is in JSON, None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class JsonCursor:
    """Stands before a value. *read* takes a number of bytes, and returns "" at the end."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._text = ""
        self._position = 0
        self._before = 0
        self._ended = False
        self._is_crowded: bool | None = None
        """True if unused text is longer than a value may be; None if not known."""
        self._decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode

    @property
    def position(self) -> int:
        """Number of characters already consumed."""
        return self._before + self._position

    def peek(self) -> str:
        """Return the first character of what comes next, "" at the end."""
        while True:
            match = _SPACE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
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
                value, end = self._decode(self._text, self._position)
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
                    self._position = end
                    return value

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; the value of each is read before the next, or passed over.

        Raises:
            BrokenJsonError: where it is not an object.
        """
        self._expect("{")
        is_first = True
        while self._more_parts("}", is_first=is_first):
            key, is_first = self.value(), False
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
            self._position += 1
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
        self._position += 1

    def _refuse_many_parts(self) -> None:
        """Refuse what would take gigabytes when it is parsed, before that."""
        text, at = self._text, self._position
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
        if len(self._text) - self._position > _LONGEST_VALUE:
            raise self._broken("one value has more than 64 million characters")
        if not may_be_cut:
            raise self._broken(error.msg, error.pos)
        at = self._before + error.pos
        if not self._more():
            raise BrokenJsonError(f"is cut off: {error.msg} at character {at}")

    def _broken(self, what: str, at: int | None = None) -> BrokenJsonError:
        at = self._before + (self._position if at is None else at)
        return BrokenJsonError(f"is not JSON: {what} at character {at}")

    def _more(self) -> bool:
        """Read on, and return whether there was more; a long value makes for long reads."""
        if self._ended:
            return False
        rest = len(self._text) - self._position
        text = self._read(max(_CHUNK, rest))
        self._ended = not text
        if self._ended:
            return False
        self._before += self._position
        self._text = self._text[self._position :] + text
        self._position = 0
        self._is_crowded = None
        return True


_OPENED = ("log",)
"""The path of the object of which the members are parts: what is read of them can be long."""


class JsonPart(NamedTuple):
    """A value of a file and where it stands, which no name of a member can be mistaken for."""

    path: tuple[str, ...]
    """The members that lead to it, such as ("log", "entries"); () for an item of a list at the top
    and for a value behind the first."""
    value: Any
    item: int | None = None
    """Index in the list, from 0."""
    line: int = 0
    """Number of the top-level value, from 2; 0 for parts of the first."""

    @property
    def key(self) -> str:
        """Its position in words, for messages."""
        if self.line:
            return f"event {self.line}"
        return ".".join(self.path) + ("" if self.item is None else f"[{self.item}]")


def parts(cursor: JsonCursor, note: Callable[[str, str], None]) -> Iterator[JsonPart]:
    """Yield each part of a file: items of lists, members of objects, whole values.

    What is opened is yielded empty before what is in it. A member that stands twice is noted and
    passed over. Several objects, one after the other, are the events of a log: the members of the
    first, then "event 2" and so on.

    Raises:
        BrokenJsonError: where it is no JSON; what was yielded before is good.
    """
    if cursor.peek() == "[":
        yield from _items(cursor, ())
    else:
        yield from _members(cursor, (), note)
    line = 1
    while cursor.peek():
        line += 1
        yield JsonPart((), cursor.value(), line=line)


def _items(cursor: JsonCursor, path: tuple[str, ...]) -> Iterator[JsonPart]:
    for index in cursor.items():
        yield JsonPart(path, cursor.value(), index)


def _members(
    cursor: JsonCursor, above: tuple[str, ...], note: Callable[[str, str], None]
) -> Iterator[JsonPart]:
    seen: set[str] = set()
    for name in cursor.members():
        path = (*above, name)
        if name in seen:
            key = ".".join(path)
            note(
                key if len(key) < 100 else format_value(key), "stands twice: only the first is read"
            )
            continue
        seen.add(name)
        opening = cursor.peek()
        if opening == "[":
            yield JsonPart(path, [])
            yield from _items(cursor, path)
        elif opening == "{" and path == _OPENED:
            yield JsonPart(path, {})
            yield from _members(cursor, path, note)
        else:
            yield JsonPart(path, cursor.value())


_UNKNOWN = -1
"""Unknown size in HAR 1.2."""
_LONGEST_NUMBER = 40


class Fields:
    """An object of a recording, and the place where it stands."""

    __slots__ = ("_entry", "_note", "key")

    def __init__(self, entry: dict[str, Any], key: str, note: Callable[[str, str], None]) -> None:
        self._entry = entry
        self._note = note
        self.key = key

    @classmethod
    def of(cls, part: JsonPart, note: Callable[[str, str], None]) -> Fields | None:
        """Return the object that a part of a file is, None after noting that it is none."""
        if isinstance(part.value, dict):
            return cls(part.value, part.key, note)
        note(part.key, f"skipped: must be an object, is {format_value(part.value)}")
        return None

    def __contains__(self, name: str) -> bool:
        return name in self._entry

    def names(self) -> list[str]:
        """Return the names of the members."""
        return list(self._entry)

    def raw(self, name: str) -> Any:
        """Return whatever stands there, None if nothing."""
        return self._entry.get(name)

    def text(self, *names: str) -> str:
        """Return the text under the first of *names* that has one, "" if none has."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if value not in (None, ""):
                self.wrong(name, f"must be text, is {format_value(value)}")
        return ""

    def name(self, *names: str) -> str:
        """Return the text or number under the first of *names* that has one, "" for none."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if is_quantity(value):
                return f"{value:.15g}"
        return ""

    def number(self, *names: str) -> float | None:
        """Return the first number under *names*; a number may be written as text."""
        found = (self._number(name) for name in names)
        return next((value for value in found if value is not None), None)

    def integer(self, *names: str) -> int | None:
        """Return the first number under *names* without its fraction."""
        value = self.number(*names)
        return None if value is None else int(value)

    def size(self, *names: str) -> int | None:
        """Return the first number of bytes under *names*; -1 means that it is not known."""
        for name in names:
            value = self._number(name)
            if value is None or value == _UNKNOWN:
                continue
            if value >= 0:
                return round(value)
            self.wrong(name, f"must be a number of bytes, is {format_value(self._entry[name])}")
        return None

    def duration(self, *names: str) -> float | None:
        """Return the first duration under *names*; negative ones mean that it is not known."""
        value = self.number(*names)
        return value if value is not None and value >= 0 else None

    def flag(self, *names: str) -> bool:
        """Return whether any of *names* holds true; a number or text may stand for it."""
        return any(self._entry.get(name) in (True, 1, "1", "true", "True") for name in names)

    def table(self, name: str) -> Fields:
        """Return the object there, an empty one if there is none."""
        value = self._entry.get(name)
        if isinstance(value, dict):
            return Fields(value, self._key_of(name), self._note)
        if value is not None:
            self.wrong(name, f"must be an object, is {format_value(value)}")
        return Fields({}, self._key_of(name), self._note)

    def tables(self, name: str) -> list[Fields]:
        """Return the objects of the list there; what is none is noted and left out."""
        return [Fields(item, key, self._note) for key, item in self._items(name, dict, "an object")]

    def texts(self, name: str) -> list[str]:
        """Return the texts of the list there; what is none is noted and left out."""
        return [item for _, item in self._items(name, str, "text")]

    def _items(self, name: str, kind: type, noun: str) -> Iterator[tuple[str, Any]]:
        value = self._entry.get(name)
        if value is not None and not isinstance(value, list):
            self.wrong(name, f"must be a list, is {format_value(value)}")
            return
        for index, item in enumerate(value or ()):
            key = f"{self._key_of(name)}[{index}]"
            if isinstance(item, kind):
                yield key, item
            else:
                self._note(key, f"must be {noun}, is {format_value(item)}")

    def wrong(self, name: str, message: str) -> None:
        """Note what is wrong with the value under *name*."""
        self._note(self._key_of(name), message)

    def _number(self, name: str) -> float | None:
        value = self._entry.get(name)
        if value is None or value == "":
            return None
        number = value
        if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
            try:
                number = float(value)
            except ValueError:
                number = value
        if is_quantity(number):
            return float(number)
        self.wrong(name, f"must be a number, is {format_value(value)}")
        return None

    def _key_of(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name
