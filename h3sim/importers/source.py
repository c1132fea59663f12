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
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.result import RecordingError
from h3sim.schema import format_value, is_quantity, open_input, shown_path
from h3sim.schema.files import GZIP_MAGIC, ZIP_MAGIC, json_error_message
from h3sim.values.errors import ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike

    from h3sim.values.errors import InputError


_MAX_UNPACKED_BYTES = 512 << 20
"""No browser writes a longer recording (V8's longest text), but a small gzip file may hold one."""
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Marks with the encodings that they announce, in the order in which they are tried."""
_PEEKED_BYTES = 4096
"""Bytes from the start of a file by which its format is recognized."""
_HAR_SUFFIX = ".har"
_NOT_A_RECORDING = "__MACOSX/"
"""Folder of attributes in archives made by macOS."""
_UNDECODABLE_BYTE = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as Python's error handler "surrogateescape" represents it."""


class TextSource:
    """Text that is read piece by piece; `problems` lists what could not be read.

    The encoding is that of the byte order mark, or UTF-16 if the first character is ASCII beside a
    zero byte, or else UTF-8. Bytes that are not UTF-8 become U+FFFD.
    """

    def __init__(
        self,
        binary: IO[bytes] | gzip.GzipFile,
        max_bytes: int | None = None,
        *,
        is_zipped: bool = False,
    ) -> None:
        self._binary = binary
        self.is_zipped = is_zipped
        """True if it is a member of a zip archive."""
        self._max_bytes = _MAX_UNPACKED_BYTES if max_bytes is None else max_bytes
        self._decoder: codecs.IncrementalDecoder | None = None
        self._n_bytes = 0
        self._ended = False
        self._peeked = ""
        self.problems: list[str] = []

    def peek(self) -> str:
        """Return what `read` will return next, without taking it."""
        self._peeked = self._peeked or self.read(_PEEKED_BYTES)
        return self._peeked

    def read(self, n_bytes: int) -> str:
        """Return the text of about *n_bytes*; "" at the end, or if no more can be read."""
        if self._peeked:
            text, self._peeked = self._peeked, ""
            return text
        while not self._ended:
            raw = self._read_bytes(n_bytes)
            text = self._decode(raw)
            if text:
                return text
        return ""

    def _read_bytes(self, n_bytes: int) -> bytes:
        raw = b""
        try:
            # `read1`, so that the data before a broken end is not lost.
            raw = self._binary.read1(n_bytes)  # type: ignore[union-attr]
        except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
            self.problems.append(f"cannot be unpacked further: {error}")
        self._n_bytes += len(raw)
        if self._n_bytes > self._max_bytes:
            limit = f"{self._max_bytes >> 20} MiB"
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
        decoded = text if text.isascii() else _UNDECODABLE_BYTE.sub("\ufffd", text)
        if decoded != text and not any("UTF-8" in problem for problem in self.problems):
            self.problems.append("is not UTF-8 throughout: wrong bytes were read as U+FFFD")
        return decoded


def _detect_encoding(raw: bytes) -> tuple[bytes, str]:
    """Return the bytes after the byte order mark, and the encoding."""
    for mark, encoding in _BYTE_ORDER_MARKS:
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
    max_bytes: int | None = None,
) -> Iterator[TextSource]:
    """Open the file at *path*, which may be compressed with gzip or zip, as text.

    At most *max_bytes* of the uncompressed file are read. Of a zip archive the only file is read,
    or the only HAR.

    Raises:
        error: if it cannot be opened or read.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_input(path, error))
        magic = raw.peek(len(ZIP_MAGIC))
        binary: IO[bytes] | gzip.GzipFile = raw
        if magic.startswith(GZIP_MAGIC):
            binary = stack.enter_context(gzip.GzipFile(fileobj=raw))
        is_zipped = magic.startswith(ZIP_MAGIC)
        if is_zipped:
            try:
                binary = stack.enter_context(_open_member(raw))
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as caught:
                problem = ValidationIssue(key="", message=f"cannot be unpacked: {caught}")
                raise error([problem], shown_path(path)) from caught
        yield TextSource(binary, max_bytes, is_zipped=is_zipped)


def _open_member(raw: IO[bytes]) -> IO[bytes]:
    """Open the recording in a zip archive.

    Raises:
        BadZipFile: if there is no such file, or several.
        RuntimeError: if it is encrypted.
        NotImplementedError: if it is compressed in an unknown way.
    """
    archive = zipfile.ZipFile(raw)  # the caller closes the file
    names = [each for each in archive.namelist() if not each.startswith(_NOT_A_RECORDING)]
    names = [each for each in names if not each.endswith("/")]
    found = [each for each in names if each.lower().endswith(_HAR_SUFFIX)]
    if len(names) == 1:
        found = names
    if len(found) != 1:
        message = f"it has {len(names):,} files, of which {len(found):,} are HARs: unpack it"
        raise zipfile.BadZipFile(message)
    return archive.open(found[0])


_READ_CHARS = 1 << 20
"""Characters that are read at once."""
_MAX_VALUE_CHARS = 64 << 20
"""Longest single JSON value that is read, to bound memory."""
_MAX_VALUE_PARTS = 1_000_000
"""Most items and members within one value: even the shortest takes up to 250 bytes of memory."""
_PART_OR_END = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[,\[{\]}]', re.DOTALL)
"""Structural tokens: separators, closing brackets and (possibly unterminated) strings."""
_MAX_TOKEN_TAIL = 16
"""An error this close to the end of the text read so far may be an escape or word cut in two."""
_MAX_NUMBER_TAIL = 3
"""A number that ends closer than this to the end of the text may go on, as 1 does in 1e+6."""
_MAX_INT_DIGITS = 30
"""Integers of more digits become floats: no size or time is as large."""
_JSON_SPACE = re.compile(r"[ \t\r\n]*")


class BrokenJsonError(Exception):
    """Input that is not JSON; values read before are valid."""


def _to_integer(digits: str) -> int | float:
    # Python refuses to read integers of thousands of digits.
    return int(digits) if len(digits) <= _MAX_INT_DIGITS else float(digits)


_decode_long_numbers = json.JSONDecoder(
    parse_constant=lambda _: None, parse_int=_to_integer
).raw_decode
"""Decoder for numbers of any length; it is slower, so it is used only once the usual one fails."""


def parsed(text: str) -> Any:
    """Parse *text* as JSON; return None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class JsonCursor:
    """Position before a value in JSON text, which is read as it is needed.

    *read* takes the approximate number of bytes to read, and returns "" at the end.
    """

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read = read
        self._text = ""
        self._position = 0
        self._n_dropped = 0
        """Characters consumed before the first one of `_text`."""
        self._ended = False
        self._may_exceed_parts: bool | None = None
        """True if the unused text has more parts than one value may; None if not counted yet."""
        self._decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode

    @property
    def position(self) -> int:
        """Number of characters already consumed."""
        return self._n_dropped + self._position

    def peek(self) -> str:
        """Return the first character of the next token, "" at the end."""
        while True:
            match = _JSON_SPACE.match(self._text, self._position)
            self._position = match.end() if match else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_more():
                return ""

    def value(self) -> Any:
        """Return the next value with everything in it.

        Raises:
            BrokenJsonError: if it is not JSON, or ends too soon, or is too deep or too large.
        """
        if not self.peek():
            raise BrokenJsonError(f"ends at character {self.position}, where more should follow")
        while True:
            try:
                self._check_parts()
                value, end = self._decode(self._text, self._position)
            except json.JSONDecodeError as error:
                self._read_on_or_raise(error)
            except RecursionError as error:
                raise self._error("nested too deeply") from error
            except (ValueError, OverflowError) as error:
                if self._decode is _decode_long_numbers:
                    raise self._error(str(error)) from error
                self._decode = _decode_long_numbers
            else:
                is_number = isinstance(value, int | float)
                may_go_on = is_number and end + _MAX_NUMBER_TAIL > len(self._text)
                # A number that may be cut is decoded again with more text.
                if not may_go_on or not self._read_more():
                    self._position = end
                    return value

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; a value that the caller does not read is skipped.

        Raises:
            BrokenJsonError: where it is not an object.
        """
        self._expect("{")
        is_first = True
        while self._enter_next("}", is_first=is_first):
            key, is_first = self.value(), False
            if not isinstance(key, str):
                raise self._error("a key is not text")
            self._expect(":")
            yield from self._yield_then_skip(key)

    def items(self) -> Iterator[int]:
        """Yield the indices of a list; an item that the caller does not read is skipped."""
        self._expect("[")
        index = 0
        while self._enter_next("]", is_first=index == 0):
            yield from self._yield_then_skip(index)
            index += 1

    def _yield_then_skip(self, name: Any) -> Iterator[Any]:
        """Yield the key or index of a part, then skip the part unless the caller has read it."""
        self.peek()  # skips blanks, which would look as if the part had been read
        before = self.position
        yield name
        if self.position == before:
            self.value()

    def _enter_next(self, closing: str, *, is_first: bool) -> bool:
        """Return whether another part follows; consume the comma before it, or the *closing*."""
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
            raise self._error(f"expected {character!r}, found {found!r}")
        self._position += 1

    def _check_parts(self) -> None:
        """Refuse a value that would take gigabytes of memory when it is parsed."""
        text, at = self._text, self._position
        if len(text) <= _MAX_VALUE_PARTS:
            return
        # A fast upper bound, counted once per read and not per value.
        if self._may_exceed_parts is None:
            self._may_exceed_parts = sum(text.count(sign, at) for sign in ",[{") > _MAX_VALUE_PARTS
        if not self._may_exceed_parts:
            return
        # An exact count: separators within strings, and values after this one, do not count.
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
            if n_parts > _MAX_VALUE_PARTS:
                raise self._error(f"one value has more than {_MAX_VALUE_PARTS:,} parts")

    def _read_on_or_raise(self, error: json.JSONDecodeError) -> None:
        """Read more if the error may come from a cut value, else raise it."""
        may_be_cut = (
            error.msg.startswith("Unterminated string")
            or error.pos >= len(self._text) - _MAX_TOKEN_TAIL
        )
        if len(self._text) - self._position > _MAX_VALUE_CHARS:
            raise self._error("one value has more than 64 million characters")
        if not may_be_cut:
            raise self._error(json_error_message(error), error.pos)
        at = self._n_dropped + error.pos
        if not self._read_more():
            raise BrokenJsonError(f"is cut off: {json_error_message(error)} at character {at}")

    def _error(self, what: str, at: int | None = None) -> BrokenJsonError:
        at = self._n_dropped + (self._position if at is None else at)
        return BrokenJsonError(f"is not JSON: {what} at character {at}")

    def _read_more(self) -> bool:
        """Read more text and return whether there was any.

        As much as is unused is read, so that a long value is decoded a logarithmic number of times.
        """
        if self._ended:
            return False
        n_unused = len(self._text) - self._position
        text = self._read(max(_READ_CHARS, n_unused))
        self._ended = not text
        if self._ended:
            return False
        self._n_dropped += self._position
        self._text = self._text[self._position :] + text
        self._position = 0
        self._may_exceed_parts = None
        return True


_OPENED_PATH = ("log",)
"""Path of the nested object whose members are separate parts: a HAR's log may be very long."""


class JsonPart(NamedTuple):
    """Value in a file, with its position."""

    path: tuple[str, ...]
    """Members that lead to it, such as ("log", "entries"); () for an item of a top-level list, and
    for a top-level value after the first."""
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


_MAX_SHOWN_KEY = 100
"""Longer keys are shortened in notes."""


def parts(
    cursor: JsonCursor, note: Callable[[str, str], None], *, to_end: bool = True
) -> Iterator[JsonPart]:
    """Yield each part of a file: items of lists, members of objects, whole values.

    A list or object that is opened is yielded empty before its parts. Duplicate members are noted
    and skipped. Several consecutive objects are the events of a log: the members of the first, then
    "event 2" and so on. Unless *to_end*, what follows the first value is not read.

    Raises:
        BrokenJsonError: at the first error; parts yielded before it are valid.
    """
    if cursor.peek() == "[":
        yield from _items(cursor, ())
    else:
        yield from _members(cursor, (), note)
    line = 1
    while to_end and cursor.peek():
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
            shown = key if len(key) < _MAX_SHOWN_KEY else format_value(key)
            note(shown, "stands twice: only the first is read")
            continue
        seen.add(name)
        opening = cursor.peek()
        if opening == "[":
            yield JsonPart(path, [])
            yield from _items(cursor, path)
        elif opening == "{" and path == _OPENED_PATH:
            yield JsonPart(path, {})
            yield from _members(cursor, path, note)
        else:
            yield JsonPart(path, cursor.value())


_UNKNOWN_SIZE = -1
"""Unknown size in HAR 1.2."""
_MAX_NUMBER_CHARS = 40
"""Longest text that is read as a number."""


class Fields:
    """Object in a recording, with its position (*key*) and *note*, to report malformed members."""

    __slots__ = ("_entry", "_note", "key")

    def __init__(self, entry: dict[str, Any], key: str, note: Callable[[str, str], None]) -> None:
        self._entry = entry
        self._note = note
        self.key = key

    @classmethod
    def of(cls, part: JsonPart, note: Callable[[str, str], None]) -> Fields | None:
        """Return the object in *part*; if it is not an object, note that and return None."""
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
        """Return the value of a member, unchecked; None if it is missing."""
        return self._entry.get(name)

    def text(self, *names: str) -> str:
        """Return the first text among the members *names*, "" if none has one."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if value not in (None, ""):
                self.wrong(name, f"must be text, is {format_value(value)}")
        return ""

    def name(self, *names: str) -> str:
        """Return the first text or number among the members *names* as text, "" if none has one."""
        for name in names:
            value = self._entry.get(name)
            if isinstance(value, str) and value:
                return value
            if is_quantity(value):
                return f"{value:.15g}"  # as many digits as a float holds
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
        """Return the first number of bytes under *names*; -1 stands for an unknown size."""
        for name in names:
            value = self._number(name)
            if value is None or value == _UNKNOWN_SIZE:
                continue
            if value >= 0:
                return round(value)
            self.wrong(name, f"must be a number of bytes, is {format_value(self._entry[name])}")
        return None

    def duration(self, *names: str) -> float | None:
        """Return the first duration under *names*; a negative one means that it is unknown."""
        value = self.number(*names)
        return value if value is not None and value >= 0 else None

    def flag(self, *names: str) -> bool:
        """Return whether any of *names* is true, or a number or text that means true."""
        return any(self._entry.get(name) in (True, 1, "1", "true", "True") for name in names)

    def table(self, name: str) -> Fields:
        """Return the object under *name*; an empty one if there is none."""
        value = self._entry.get(name)
        if isinstance(value, dict):
            return Fields(value, self._key_of(name), self._note)
        if value is not None:
            self.wrong(name, f"must be an object, is {format_value(value)}")
        return Fields({}, self._key_of(name), self._note)

    def tables(self, name: str) -> list[Fields]:
        """Return the objects in the list under *name*; other items are noted and left out."""
        return [Fields(item, key, self._note) for key, item in self._items(name, dict, "an object")]

    def texts(self, name: str) -> list[str]:
        """Return the texts in the list under *name*; other items are noted and left out."""
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
        if isinstance(value, str) and len(value) <= _MAX_NUMBER_CHARS:
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
