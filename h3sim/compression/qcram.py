"""QCRAM: HPACK whose blocks refer only to entries that were acknowledged.

Implements draft-krasic-quic-qcram-01 (May 2017), as Frindell's prototype read it. A block carries a
sequence number, the count of inserts before it, and whether it must wait for all earlier ones.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from h3sim.compression.base import CodecSettings, Encoded, FieldSection
from h3sim.compression.indexing import is_indexed
from h3sim.compression.qcram_blocks import (
    BASE_BITS,
    FIRST_DYNAMIC,
    IN_ORDER,
    INDEXED,
    INDEXED_BITS,
    INSERT,
    INSERT_BITS,
    LITERAL_BITS,
    SEQUENCE_BITS,
)
from h3sim.compression.wire import encode_integer, encode_string, entry_bytes, static_index

if TYPE_CHECKING:
    from h3sim.compression.base import Field

__all__ = ["QcramEncoder"]


class _Entry(NamedTuple):
    """An entry of the encoder's table: its number since the beginning, and who inserted it."""

    number: int
    field: Field
    epoch: int


class QcramEncoder:
    """HPACK's encoder with epochs.

    The epoch of an entry is the number of the block that inserted it. It is vulnerable while not
    all blocks up to that one are acknowledged; a block refers to no vulnerable entry but its own.
    With *coordinates_packets* those of earlier blocks in the same packet are safe, too: who makes
    packets says where they begin.
    """

    def __init__(self, settings: CodecSettings, *, coordinates_packets: bool = False) -> None:
        self._capacity = settings.table_bytes
        self._coordinates_packets = coordinates_packets
        self._entries: deque[_Entry] = deque()
        self._found: dict[Field, _Entry] = {}
        self._named: dict[bytes, deque[_Entry]] = {}
        """The entries of a name, oldest first."""
        self._bytes = 0
        self._n_inserted = 0
        self._n_blocks = 0
        self._commit_epoch = -1
        """All blocks up to this one are acknowledged."""
        self._packet_epoch = 0
        self._sequence_of: dict[int, int] = {}
        self._acked_early: set[int] = set()
        self._has_evicted = False

    @property
    def table_bytes(self) -> int:
        """The size of the dynamic table now."""
        return self._bytes

    def start(self) -> bytes:
        """Return nothing: there is no encoder stream."""
        return b""

    def encode(self, stream_id: int, fields: FieldSection) -> Encoded:
        """Return the block."""
        sequence = self._n_blocks
        self._n_blocks += 1
        self._sequence_of[stream_id] = sequence
        self._has_evicted = False
        base = self._n_inserted
        lines = b"".join([self._line(field, sequence) for field in fields])
        flags = IN_ORDER if self._has_evicted else 0
        prefix = encode_integer(sequence, SEQUENCE_BITS) + encode_integer(base, BASE_BITS, flags)
        return Encoded(stream_id, prefix + lines)

    def on_acked(self, stream_id: int) -> None:
        """Record that a block arrived; entries become safe in the order of blocks."""
        sequence = self._sequence_of.pop(stream_id, None)
        if sequence is None:
            return
        self._acked_early.add(sequence)
        # One that arrived out of order proves nothing of those before it, whose inserts it may
        # lack.
        while self._commit_epoch + 1 in self._acked_early:
            self._commit_epoch += 1
            self._acked_early.remove(self._commit_epoch)

    def on_feedback(self, data: bytes) -> None:
        """Do nothing: acknowledgements are the transport's."""

    def on_packet_boundary(self) -> None:
        """Begin a packet with the next block."""
        self._packet_epoch = self._n_blocks

    def _line(self, field: Field, sequence: int) -> bytes:
        name, value = field
        fixed = static_index(field)
        if fixed is not None:
            return encode_integer(fixed, INDEXED_BITS, INDEXED)
        same = self._found.get(field)
        if same is not None and self._is_safe(same, sequence):
            return encode_integer(self._index(same), INDEXED_BITS, INDEXED)
        # What is there already is not inserted again, else it would push others out.
        inserts = same is None and is_indexed(field) and entry_bytes(name, value) <= self._capacity
        flags, bits = (INSERT, INSERT_BITS) if inserts else (0, LITERAL_BITS)
        known = self._name_index(name, sequence)
        line = encode_integer(known, bits, flags) + (b"" if known else encode_string(name))
        if inserts:
            self._insert(field, sequence)
        return line + encode_string(value)

    def _name_index(self, name: bytes, sequence: int) -> int:
        fixed = static_index(name)
        if fixed is not None:
            return fixed
        # A name comes again with other values: the newest entry may not yet be referred to where an
        # older one may.
        for entry in reversed(self._named.get(name, ())):
            if self._is_safe(entry, sequence):
                return self._index(entry)
        return 0

    def _index(self, entry: _Entry) -> int:
        # Relative to the newest entry of this moment: it moves with each insert of the block.
        return FIRST_DYNAMIC + self._n_inserted - 1 - entry.number

    def _is_safe(self, entry: _Entry, sequence: int) -> bool:
        # They arrive together or not at all.
        if self._coordinates_packets and entry.epoch >= self._packet_epoch:
            return True
        return entry.epoch <= self._commit_epoch or entry.epoch == sequence

    def _insert(self, field: Field, sequence: int) -> None:
        size = entry_bytes(*field)
        while self._bytes + size > self._capacity:
            self._evict()
        entry = _Entry(self._n_inserted, field, sequence)
        self._n_inserted += 1
        self._entries.append(entry)
        self._bytes += size
        self._found[field] = entry
        self._named.setdefault(field[0], deque()).append(entry)

    def _evict(self) -> None:
        entry = self._entries.popleft()
        self._bytes -= entry_bytes(*entry.field)
        self._has_evicted = True
        del self._found[entry.field]  # no field is inserted that is there already
        named = self._named[entry.field[0]]
        named.popleft()
        if not named:
            del self._named[entry.field[0]]
