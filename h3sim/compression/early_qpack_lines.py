"""Early QPACK's instructions as bytes: the encoder says at which index an entry goes, and when not.

After draft-bishop-quic-http-and-qpack (2017): integers, strings and the static table are HPACK's.
The bit patterns are ours, of the same length as the draft's.

| bits | what follows |
|---|---|
| `1T` index (6) | the entry itself: T static, else dynamic |
| `01T` name (5) | insert with the name of an entry: new index, value |
| `0010` new index (4) | insert: name, value |
| `0011` index (4) | delete: how many references were made |
| `0001T` name (3) | literal with the name of an entry: value |
| `0000` | literal: name, value |
"""

from __future__ import annotations

from typing import NamedTuple

from h3sim.compression.rfc7541 import STATIC_TABLE
from h3sim.compression.wire import WireReader, encode_integer, encode_string

__all__ = ["Delete", "Line", "TableReference", "delete_line", "read_lines", "write_line"]

_INDEX_BITS = 8


class TableReference(NamedTuple):
    """An entry of a table: of the static one, or that at an index of the dynamic one."""

    is_static: bool
    slot: int


class Line(NamedTuple):
    """A field line: what it says itself, the entry that has the rest, and where it goes.

    A line without a value is its entry; `at` is the index at which it is inserted, if it is.
    """

    entry: TableReference | None
    name: bytes
    value: bytes | None
    at: int | None = None


class Delete(NamedTuple):
    """The entry at an index goes once so many references to it were read."""

    slot: int
    n_references: int


def write_line(line: Line) -> bytes:
    """Return the line as bytes."""
    entry, name, value, at = line
    if entry is None:
        head = encode_integer(at, 4, 0x20) if at is not None else b"\0"
        return head + encode_string(name) + encode_string(value or b"")
    if value is None:
        return encode_integer(entry.slot, 6, 0xC0 if entry.is_static else 0x80)
    if at is None:
        head = encode_integer(entry.slot, 3, 0x18 if entry.is_static else 0x10)
    else:
        head = encode_integer(entry.slot, 5, 0x60 if entry.is_static else 0x40)
        head += encode_integer(at, _INDEX_BITS)
    return head + encode_string(value)


def delete_line(delete: Delete) -> bytes:
    """Return the instruction as bytes."""
    return encode_integer(delete.slot, 4, 0x30) + encode_integer(delete.n_references, _INDEX_BITS)


def read_lines(data: bytes) -> tuple[list[Line], list[Delete]]:
    """Return the lines and the deletions of a section; those of the static table are looked up.

    >>> read_lines(write_line(Line(None, b"a", b"b", at=3)) + delete_line(Delete(2, 7)))
    ([Line(entry=None, name=b'a', value=b'b', at=3)], [Delete(slot=2, n_references=7)])
    """
    reader = WireReader(data)
    lines: list[Line] = []
    deletes: list[Delete] = []
    while not reader.is_done:
        first = reader.peek()
        if first & 0xF0 == 0x30:
            deletes.append(Delete(reader.integer(4), reader.integer(_INDEX_BITS)))
        else:
            lines.append(_looked_up(_read_line(reader, first)))
    return lines, deletes


def _read_line(reader: WireReader, first: int) -> Line:
    if first & 0x80:
        return Line(TableReference(bool(first & 0x40), reader.integer(6)), b"", None)
    if first & 0x40:
        entry = TableReference(bool(first & 0x20), reader.integer(5))
        at = reader.integer(_INDEX_BITS)
        return Line(entry, b"", reader.string(), at)
    if first & 0x20:
        at = reader.integer(4)
        return Line(None, reader.string(), reader.string(), at)
    if first & 0x10:
        entry = TableReference(bool(first & 0x08), reader.integer(3))
        return Line(entry, b"", reader.string())
    reader.integer(4)
    return Line(None, reader.string(), reader.string())


def _looked_up(line: Line) -> Line:
    if line.entry is None or not line.entry.is_static:
        return line
    name, value = STATIC_TABLE[line.entry.slot - 1]
    return Line(None, name, value if line.value is None else line.value, line.at)
