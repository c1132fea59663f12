"""QCRAM: HPACK whose blocks refer only to acknowledged entries (draft -01).

Implements draft-krasic-quic-qcram-01 (May 2017), as interpreted by Frindell's prototype. A block
carries a sequence number, the number of inserts before it, and a flag if it must wait for all
earlier ones.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from h3sim.headers.base import CodecSettings, Decoded, Encoded, FieldSection, Held, is_indexed
from h3sim.headers.wire import (
    STATIC_TABLE,
    WireReader,
    encode_integer,
    encode_string,
    entry_bytes,
    static_index,
)

if TYPE_CHECKING:
    from h3sim.headers.base import Field


SEQUENCE_BITS = 8
"""Prefix of a block's sequence number."""
BASE_BITS = 7
"""Prefix of the number of inserts before a block."""
WAITS_FOR_ALL = 0x80
"""Flag of a block whose encoding evicted entries: it waits for all earlier blocks."""
INDEXED = 0x80
"""Pattern of an indexed field (RFC 7541 § 6.1)."""
INDEXED_BITS = 7
"""Prefix of its index."""
INSERT = 0x40
"""Pattern of a literal that becomes an entry (RFC 7541 § 6.2.1)."""
INSERT_BITS = 6
"""Prefix of the index of its name."""
LITERAL_BITS = 4
"""Prefix of a literal that becomes no entry, whose pattern is 0 (RFC 7541 § 6.2.2)."""
FIRST_DYNAMIC = 62
"""The index of the newest entry (RFC 7541 § 2.3.3)."""


class Line(NamedTuple):
    """A field line: its literal strings, and the dynamic entry for the others, if any."""

    number: int | None
    """Number of the entry, from 0 in insertion order."""
    name: bytes
    value: bytes | None
    """None for the value of the entry."""
    inserts: bool
    """True if the field becomes an entry."""


class Block(NamedTuple):
    """A received block."""

    stream_id: int
    sequence: int
    base: int
    """The number of entries inserted before it."""
    waits_for_all: bool
    """True if all earlier blocks must be decoded before it."""
    lines: tuple[Line, ...]
    n_bytes: int

    @property
    def needs(self) -> tuple[int, ...]:
        """The entries of other blocks that it refers to."""
        # Those from the base on are inserted by the block itself.
        return tuple(
            line.number
            for line in self.lines
            if line.number is not None and line.number < self.base
        )


def read_block(stream_id: int, data: bytes) -> Block:
    """Return the parsed block, without table lookups."""
    reader = WireReader(data)
    sequence = reader.integer(SEQUENCE_BITS)
    waits_for_all = bool(reader.peek() & WAITS_FOR_ALL)
    base = n_inserted = reader.integer(BASE_BITS)
    lines = []
    while not reader.is_done:
        line = _read_line(reader, n_inserted)
        n_inserted += line.inserts
        lines.append(line)
    return Block(stream_id, sequence, base, waits_for_all, tuple(lines), len(data))


def _read_line(reader: WireReader, n_inserted: int) -> Line:
    """Read a line; *n_inserted* entries precede it, to which its index is relative."""
    first = reader.peek()
    if first & INDEXED:
        index = reader.integer(INDEXED_BITS)
        if index < FIRST_DYNAMIC:
            return Line(None, *STATIC_TABLE[index - 1], inserts=False)
        return Line(_entry_number(index, n_inserted), b"", None, inserts=False)
    inserts = bool(first & INSERT)
    index = reader.integer(INSERT_BITS if inserts else LITERAL_BITS)
    if index >= FIRST_DYNAMIC:
        return Line(_entry_number(index, n_inserted), b"", reader.string(), inserts)
    name = STATIC_TABLE[index - 1][0] if index else reader.string()
    return Line(None, name, reader.string(), inserts)


def _entry_number(index: int, n_inserted: int) -> int:
    return n_inserted - 1 - (index - FIRST_DYNAMIC)


class _Entry(NamedTuple):
    """An entry of the encoder's table: its absolute number, and the block that inserted it."""

    number: int
    field: Field
    epoch: int
    """Number of that block."""


class QcramEncoder:
    """HPACK's encoder with epochs.

    The epoch of an entry is the number of the block that inserted it. An entry is vulnerable until
    all blocks up to its epoch are acknowledged; a block refers to no vulnerable entries except its
    own. With *coordinates_packets* those of earlier blocks in the same packet are safe, too; the
    packetizer reports the packet boundaries.
    """

    def __init__(self, settings: CodecSettings, *, coordinates_packets: bool = False) -> None:
        self._capacity = settings.table_bytes
        self._coordinates_packets = coordinates_packets
        self._entries: deque[_Entry] = deque()
        self._entry_of: dict[Field, _Entry] = {}
        self._entries_by_name: dict[bytes, deque[_Entry]] = {}
        """The entries of a name, oldest first."""
        self._table_bytes = 0
        self._n_inserted = 0
        self._n_blocks = 0
        self._commit_epoch = -1
        """The number of the last block up to which all are acknowledged."""
        self._packet_epoch = 0
        """The number of the first block in the current packet."""
        self._sequence_of: dict[int, int] = {}
        """The number of the block on each stream that is not acknowledged."""
        self._acked_out_of_order: set[int] = set()
        self._has_evicted = False
        """True if encoding the current block has evicted an entry."""
        self.n_evicted = 0
        """The entries that were evicted so far."""

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return self._table_bytes

    def start(self) -> bytes:
        """Return nothing: there is no encoder stream."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the encoded block."""
        sequence = self._n_blocks
        self._n_blocks += 1
        self._sequence_of[stream_id] = sequence
        self._has_evicted = False
        base = self._n_inserted
        lines = b"".join([self._encode_line(field, sequence) for field in fields])
        flags = WAITS_FOR_ALL if self._has_evicted else 0
        prefix = encode_integer(sequence, SEQUENCE_BITS) + encode_integer(base, BASE_BITS, flags)
        return Encoded(stream_id, prefix + lines)

    def on_acked(self, stream_id: int) -> None:
        """Record that a block arrived; entries become safe in block order."""
        sequence = self._sequence_of.pop(stream_id, None)
        if sequence is None:
            return
        self._acked_out_of_order.add(sequence)
        # A block that arrived out of order proves nothing about earlier ones, whose inserts may be
        # missing.
        while self._commit_epoch + 1 in self._acked_out_of_order:
            self._commit_epoch += 1
            self._acked_out_of_order.remove(self._commit_epoch)

    def on_feedback(self, data: bytes) -> None:
        """Do nothing: acknowledgements come from the transport."""

    def on_packet_boundary(self) -> None:
        """Begin a new packet with the next block."""
        self._packet_epoch = self._n_blocks

    def _encode_line(self, field: Field, sequence: int) -> bytes:
        """Return the line for a field of block *sequence*, and insert the field if that pays."""
        name, value = field
        static = static_index(field)
        if static is not None:
            return encode_integer(static, INDEXED_BITS, INDEXED)
        same = self._entry_of.get(field)
        if same is not None and self._is_safe(same, sequence):
            return encode_integer(self._index(same), INDEXED_BITS, INDEXED)
        # An existing entry is not inserted again, as that would evict others.
        inserts = same is None and is_indexed(field) and entry_bytes(name, value) <= self._capacity
        flags, bits = (INSERT, INSERT_BITS) if inserts else (0, LITERAL_BITS)
        name_index = self._name_index(name, sequence)
        line = encode_integer(name_index, bits, flags)
        line += b"" if name_index else encode_string(name)
        if inserts:
            self._insert(field, sequence)
        return line + encode_string(value)

    def _name_index(self, name: bytes, sequence: int) -> int:
        """Return the index of an entry with that name; 0 if none is safe."""
        static = static_index(name)
        if static is not None:
            return static
        # The newest entry with that name may not be acknowledged yet, unlike an older one.
        for entry in reversed(self._entries_by_name.get(name, ())):
            if self._is_safe(entry, sequence):
                return self._index(entry)
        return 0

    def _index(self, entry: _Entry) -> int:
        # Relative to the newest entry now, so it changes with each insert.
        return FIRST_DYNAMIC + self._n_inserted - 1 - entry.number

    def _is_safe(self, entry: _Entry, sequence: int) -> bool:
        # Blocks of one packet arrive together or not at all.
        if self._coordinates_packets and entry.epoch >= self._packet_epoch:
            return True
        return entry.epoch <= self._commit_epoch or entry.epoch == sequence

    def _insert(self, field: Field, sequence: int) -> None:
        """Insert a field, evicting the oldest entries as needed."""
        size = entry_bytes(*field)
        while self._table_bytes + size > self._capacity:
            self._evict()
        entry = _Entry(self._n_inserted, field, sequence)
        self._n_inserted += 1
        self._entries.append(entry)
        self._table_bytes += size
        self._entry_of[field] = entry
        self._entries_by_name.setdefault(field[0], deque()).append(entry)

    def _evict(self) -> None:
        """Evict the oldest entry."""
        entry = self._entries.popleft()
        self._table_bytes -= entry_bytes(*entry.field)
        self._has_evicted = True
        self.n_evicted += 1
        del self._entry_of[entry.field]  # no field is inserted twice
        named = self._entries_by_name[entry.field[0]]
        named.popleft()
        if not named:
            del self._entries_by_name[entry.field[0]]


class QcramDecoder:
    """Decoder of a block as soon as all entries to which it refers are known.

    A block that evicts waits for all earlier ones; blocks that overtake it may temporarily exceed
    the limit of the table, which the draft does not rule out.
    """

    def __init__(self, settings: CodecSettings) -> None:
        self._capacity = settings.table_bytes
        self._table: dict[int, Field] = {}
        """The entries by number."""
        self._oldest_number = 0
        self._waiting: dict[int, Block] = {}
        self._next_sequence = 0
        """All blocks before this one are decoded."""
        self._decoded_out_of_order: set[int] = set()
        self._held_bytes = 0
        self._encoder_table_bytes = 0
        """The size of the encoder's table at this point, while an evicting block is decoded."""

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return sum(entry_bytes(*field) for field in self._table.values())

    def on_section(self, stream_id: int, data: bytes) -> list[Decoded]:
        """Decode all blocks that can be decoded now."""
        block = read_block(stream_id, data)
        if not self._is_decodable(block):
            self._waiting[block.sequence] = block
            self._held_bytes += block.n_bytes
            return []
        decoded = [self._decode(block)]
        # Searched again after each block, whose inserts others may wait for.
        while (ready := self._next_ready()) is not None:
            del self._waiting[ready.sequence]
            self._held_bytes -= ready.n_bytes
            decoded.append(self._decode(ready))
        return decoded

    def on_instructions(self, data: bytes) -> list[Decoded]:
        """Do nothing: there is no encoder stream."""
        del data
        return []

    def take_feedback(self) -> bytes:
        """Return nothing: acknowledgements come from the transport."""
        return b""

    @property
    def held(self) -> Held:
        """The bytes of waiting blocks, as encoded."""
        return Held(self._held_bytes, self._held_bytes)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The streams whose blocks wait, in arrival order."""
        return tuple(block.stream_id for block in self._waiting.values())

    def _next_ready(self) -> Block | None:
        return next((b for b in self._waiting.values() if self._is_decodable(b)), None)

    def _is_decodable(self, block: Block) -> bool:
        if block.waits_for_all and block.sequence != self._next_sequence:
            return False
        return all(number in self._table for number in block.needs)

    def _decode(self, block: Block) -> Decoded:
        """Return the fields of a block whose references have all arrived."""
        if block.waits_for_all:
            # Entries of later blocks that overtook this one are not in the encoder's table yet.
            self._encoder_table_bytes = sum(
                entry_bytes(*field) for number, field in self._table.items() if number < block.base
            )
        fields: list[Field] = []
        next_number = block.base
        for line in block.lines:
            field = self._resolve(line)
            fields.append(field)
            if line.inserts:
                if block.waits_for_all:
                    self._make_room(entry_bytes(*field))
                self._table[next_number] = field
                next_number += 1
        self._decoded_out_of_order.add(block.sequence)
        while self._next_sequence in self._decoded_out_of_order:
            self._decoded_out_of_order.remove(self._next_sequence)
            self._next_sequence += 1
        return Decoded(block.stream_id, tuple(fields))

    def _resolve(self, line: Line) -> Field:
        if line.number is None:
            return line.name, line.value or b""
        name, value = self._table[line.number]
        return name, value if line.value is None else line.value

    def _make_room(self, n_bytes: int) -> None:
        """Evict the entries that the encoder evicted for one of *n_bytes*."""
        self._encoder_table_bytes += n_bytes
        while self._encoder_table_bytes > self._capacity:
            self._encoder_table_bytes -= entry_bytes(*self._table.pop(self._oldest_number))
            self._oldest_number += 1
