"""A QCRAM block as bytes: HPACK's lines behind a sequence number and a base (draft -01)."""

from __future__ import annotations

from typing import NamedTuple

from h3sim.compression.rfc7541 import STATIC_TABLE
from h3sim.compression.wire import WireReader

__all__ = [
    "BASE_BITS",
    "FIRST_DYNAMIC",
    "INDEXED",
    "INDEXED_BITS",
    "INSERT",
    "INSERT_BITS",
    "IN_ORDER",
    "LITERAL_BITS",
    "SEQUENCE_BITS",
    "Block",
    "Line",
    "read_block",
]

SEQUENCE_BITS = 8
BASE_BITS = 7
IN_ORDER = 0x80
"""Set where encoding evicted: the block waits for all earlier ones."""
INDEXED, INDEXED_BITS = 0x80, 7
INSERT, INSERT_BITS = 0x40, 6
LITERAL_BITS = 4
FIRST_DYNAMIC = 62
"""The index of the newest entry (RFC 7541 § 2.3.3)."""


class Line(NamedTuple):
    """A line: what it says itself, and the number of the entry that has the rest, if one has.

    Entries are numbered from 0 as they were inserted. A line without a value has that of the entry.
    """

    number: int | None
    name: bytes
    value: bytes | None
    inserts: bool


class Block(NamedTuple):
    """A block that has come."""

    stream_id: int
    sequence: int
    base: int
    """So many entries were inserted before it."""
    waits_for_all: bool
    lines: tuple[Line, ...]
    n_bytes: int

    @property
    def needs(self) -> tuple[int, ...]:
        """The entries of other blocks that it refers to."""
        # Those from the base on are its own, and come with it.
        return tuple(
            line.number
            for line in self.lines
            if line.number is not None and line.number < self.base
        )


def read_block(stream_id: int, data: bytes) -> Block:
    """Return the block that the bytes hold; nothing is looked up in a table."""
    reader = WireReader(data)
    sequence = reader.integer(SEQUENCE_BITS)
    waits_for_all = bool(reader.peek() & IN_ORDER)
    base = count = reader.integer(BASE_BITS)
    lines = []
    while not reader.is_done:
        line = _line(reader, count)
        count += line.inserts
        lines.append(line)
    return Block(stream_id, sequence, base, waits_for_all, tuple(lines), len(data))


def _line(reader: WireReader, count: int) -> Line:
    first = reader.peek()
    if first & INDEXED:
        index = reader.integer(INDEXED_BITS)
        if index < FIRST_DYNAMIC:
            return Line(None, *STATIC_TABLE[index - 1], inserts=False)
        return Line(_number(index, count), b"", None, inserts=False)
    inserts = bool(first & INSERT)
    index = reader.integer(INSERT_BITS if inserts else LITERAL_BITS)
    if index >= FIRST_DYNAMIC:
        return Line(_number(index, count), b"", reader.string(), inserts)
    name = STATIC_TABLE[index - 1][0] if index else reader.string()
    return Line(None, name, reader.string(), inserts)


def _number(index: int, count: int) -> int:
    return count - 1 - (index - FIRST_DYNAMIC)
