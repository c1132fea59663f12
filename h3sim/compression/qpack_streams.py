"""QPACK's encoder and decoder streams, as far as somebody who watches has to read them."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from h3sim.compression.wire import ENTRY_OVERHEAD_BYTES, TruncatedError, WireReader, encode_integer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "EncoderStream",
    "Instruction",
    "InstructionKind",
    "insert_count_increment",
    "required_insert_count",
]

_INCREMENT_BITS = 6


class InstructionKind(enum.Enum):
    """What an instruction of the encoder stream asks for (RFC 9204 § 4.3)."""

    CAPACITY = "capacity"
    INSERT_STATIC_NAME = "insert with a name of the static table"
    INSERT_DYNAMIC_NAME = "insert with a name of the dynamic table"
    INSERT = "insert with a literal name"
    DUPLICATE = "duplicate"

    @property
    def is_insert(self) -> bool:
        """Whether it adds an entry."""
        return self is not InstructionKind.CAPACITY


class Instruction(NamedTuple):
    """An instruction: `number` is its index or the capacity; strings where it has them."""

    kind: InstructionKind
    number: int = 0
    name: bytes = b""
    value: bytes = b""


class EncoderStream:
    """Reads instructions from an encoder stream that comes in pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Instruction]:
        """Yield the instructions that are whole now."""
        reader = WireReader(self._rest + data)
        whole = 0
        found = []
        while not reader.is_done:
            try:
                found.append(_instruction(reader))
            except TruncatedError:
                break
            whole = reader.at
        self._rest = (self._rest + data)[whole:]
        yield from found


def _instruction(reader: WireReader) -> Instruction:
    first = reader.peek()
    if first & 0x80:
        kind = (
            InstructionKind.INSERT_STATIC_NAME
            if first & 0x40
            else InstructionKind.INSERT_DYNAMIC_NAME
        )
        return Instruction(kind, reader.integer(6), value=reader.string())
    if first & 0x40:
        return Instruction(InstructionKind.INSERT, name=reader.string(5), value=reader.string())
    if first & 0x20:
        return Instruction(InstructionKind.CAPACITY, reader.integer(5))
    return Instruction(InstructionKind.DUPLICATE, reader.integer(5))


def required_insert_count(section: bytes, *, max_table_bytes: int, inserted: int) -> int:
    """Return how many inserts a section needs; *inserted* is how many its reader has seen.

    Implements RFC 9204 § 4.5.1.1.

    >>> required_insert_count(bytes((4, 0)), max_table_bytes=100, inserted=10)
    9
    """
    encoded = WireReader(section).integer(8)
    if encoded == 0:
        return 0
    max_entries = max_table_bytes // ENTRY_OVERHEAD_BYTES
    full_range = 2 * max_entries
    most = inserted + max_entries
    # The number travels modulo the full range: this is the highest that can be meant.
    count = most // full_range * full_range + encoded - 1
    return count - full_range if count > most else count


def insert_count_increment(count: int) -> bytes:
    """Return the instruction of the decoder stream that *count* more inserts have come (§ 4.4.3).

    >>> insert_count_increment(5).hex()
    '05'
    """
    return encode_integer(count, _INCREMENT_BITS)
