"""Queues of streams: an indexed heap, a ring of rounds, and a quantum counter."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


_STALE_TOLERATED: Final = 16
"""Stale entries that a heap may always keep: with few streams it is never rebuilt."""

_Entry: TypeAlias = Any
"""A tuple of rank, tie and stream. Entries are compared by identity, so the type does not say
tuple: compiled code would unpack a known tuple and build another one."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class IndexedHeap:
    """Streams ordered by rank, then by tie, then by ID.

    The first entry of the heap is never a dropped one, so reading it changes nothing.

    >>> streams = IndexedHeap()
    >>> streams.put(4, 1); streams.put(0, 2); streams.first
    4
    >>> streams.put(4, 3); streams.first
    0
    """

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        """Entries of rank, tie and stream."""
        self._entries: dict[int, _Entry] = {}
        """The valid entry of each stream; all others in the heap are stale."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self._entries

    @property
    def first(self) -> int | None:
        """The stream of the lowest rank, or None."""
        if not self._heap:
            return None
        stream_id: int = self._heap[0][2]  # (rank, tie, stream)
        return stream_id

    def put(self, stream_id: int, rank: int, tie: int = 0) -> None:
        """Add the stream, or change its rank."""
        heap = self._heap
        entry: _Entry = (rank, tie, stream_id)
        was_first = bool(heap) and heap[0][2] == stream_id  # the stream of the first entry
        # From here on, an older entry of the stream is stale.
        self._entries[stream_id] = entry
        # A stream usually moves while it is first; one sift then replaces a pop and a push.
        if was_first:
            heapreplace(heap, entry)
            self._drop_stale()
        else:
            heappush(heap, entry)
            if len(heap) > 2 * len(self._entries) + _STALE_TOLERATED:
                self._compact()

    def drop(self, stream_id: int) -> None:
        """Remove the stream; without effect if it is absent."""
        if self._entries.pop(stream_id, None) is None:
            return
        heap = self._heap
        # Otherwise the first entry is another stream's, and still valid.
        if heap[0][2] == stream_id:  # the stream of the first entry
            self._drop_stale()
        if len(heap) > 2 * len(self._entries) + _STALE_TOLERATED:
            self._compact()

    def _drop_stale(self) -> None:
        """Remove replaced entries from the top, so that the first one is valid."""
        heap, entries = self._heap, self._entries
        while heap:
            first = heap[0]
            # By identity: a stale entry may equal the valid one.
            if entries.get(first[2]) is first:
                return
            heappop(heap)

    def _compact(self) -> None:
        """Rebuild the heap without its stale entries."""
        # heapq cannot remove from the middle, so deletion is lazy. Once half the entries are stale,
        # a rebuild costs no more than the changes that made them so.
        self._heap = [*self._entries.values()]
        heapify(self._heap)


_POSITIONS_PER_ROUND: Final = 1 << 62
"""One position per stream ID (RFC 9000 § 2.1): a position is round * 2^62 + stream ID."""
_STREAM_ID_MASK: Final = _POSITIONS_PER_ROUND - 1
"""The bits of a position that are the stream ID."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class RoundRing:
    """Round robin by rounds; a stream that joins gets its first quantum in the next round.

    Within a round the lower stream ID goes first. This is fair queueing in virtual time with equal
    weights, in which every quantum costs the same.
    """

    # A quantum per packet is common. So this has a heap of its own instead of an `IndexedHeap`,
    # which would cost a call per quantum, and store the ranks twice.

    __slots__ = ("_current_position", "_fifo_number", "_heap", "_positions", "next_stream")

    def __init__(self) -> None:
        # Numbers instead of pairs of round and stream: comparing them is twice as fast.
        self._heap: list[int] = []
        """Positions; entries may be stale, except the first."""
        self._positions: dict[int, int] = {}
        """The next position of each stream."""
        self._current_position = 0
        """A position in the current round."""
        self._fifo_number = 0
        """The next number in the FIFO line once a stream was requeued; before, 0."""
        self.next_stream: int | None = None
        """The stream to send next."""

    def join(self, stream_id: int) -> None:
        """Add the stream to the ring; without effect if it is in."""
        positions = self._positions
        if stream_id in positions:
            return
        position = (self._current_position | _STREAM_ID_MASK) + 1 + stream_id  # in the next round
        # After the first requeue the order is one FIFO line: rounds would let newcomers overtake.
        if self._fifo_number:
            self._set_position(stream_id, position)
            return
        # `_set_position` inlined: with small resources it runs as often as packets are sent.
        positions[stream_id] = position
        heap = self._heap
        heappush(heap, position)
        if len(heap) > 2 * len(positions) + _STALE_TOLERATED:
            self._drop_stale()
        else:
            self.next_stream = heap[0] & _STREAM_ID_MASK

    def leave(self, stream_id: int) -> None:
        """Remove the stream from the ring."""
        if self._positions.pop(stream_id, None) is not None:
            self._update_next(stream_id)

    def continue_quantum(self, stream_id: int) -> None:
        """Continue the stream's quantum; streams that join during it wait for the next round."""
        # The quantum may have begun while another stream was in a lower round that has left since.
        self._current_position = self._positions[stream_id]

    def end_quantum(self, stream_id: int) -> None:
        """Move the stream to the next round."""
        positions = self._positions
        self._current_position = position = positions[stream_id]
        position += _POSITIONS_PER_ROUND
        # Retransmissions may be charged out of order, so the stream need not be the first.
        if stream_id != self.next_stream or self._fifo_number:
            self._set_position(stream_id, position)
            return
        positions[stream_id] = position
        heap = self._heap
        # Each stream has one valid entry, so with as many entries as streams none is stale.
        heapreplace(heap, position)
        if len(heap) == len(positions):
            self.next_stream = heap[0] & _STREAM_ID_MASK
        else:
            self._drop_stale()

    def requeue(self, stream_id: int) -> None:
        """Move the stream behind all waiting ones; from now on the order is FIFO."""
        positions = self._positions
        if stream_id in positions:
            if not self._fifo_number:
                self._fifo_number = max(positions.values()) // _POSITIONS_PER_ROUND + 1
            self._set_position(stream_id, positions[stream_id])

    def _set_position(self, stream_id: int, position: int) -> None:
        """Set the next position of the stream; in a FIFO line, its end."""
        if self._fifo_number:
            position = self._fifo_number * _POSITIONS_PER_ROUND + stream_id
            self._fifo_number += 1
        self._positions[stream_id] = position
        heappush(self._heap, position)
        self._update_next(stream_id)

    def _update_next(self, stream_id: int) -> None:
        """Update the next stream after a change of *stream_id*."""
        heap = self._heap
        if stream_id == self.next_stream or len(heap) > 2 * len(self._positions) + _STALE_TOLERATED:
            self._drop_stale()
        else:
            # Only the changed stream has a new stale entry, and that is not the first.
            self.next_stream = heap[0] & _STREAM_ID_MASK if heap else None

    def _drop_stale(self) -> None:
        """Remove stale entries from the top of the heap, and set the next stream."""
        positions = self._positions
        if len(self._heap) > 2 * len(positions) + _STALE_TOLERATED:
            # As in `IndexedHeap`: a rebuild once half of the entries are stale.
            self._heap = list(positions.values())
            heapify(self._heap)
        heap = self._heap
        # By value: of two equal entries of one stream either is valid; the other becomes stale with
        # the next quantum.
        while heap and positions.get(heap[0] & _STREAM_ID_MASK) != heap[0]:
            heappop(heap)
        self.next_stream = heap[0] & _STREAM_ID_MASK if heap else None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class DeficitCounter:
    """The used part of each stream's quantum.

    >>> from h3sim.schedulers.base import Quantum
    >>> counter = DeficitCounter(Quantum(packets=2))
    >>> counter.charge(0, 1400), counter.charge(0, 1400), counter.charge(0, 1400)
    (0, 1, 0)
    """

    __slots__ = ("_counts_bytes", "_is_one_packet", "_quantum_size", "_used")

    def __init__(self, turn: Quantum) -> None:
        self._is_one_packet = turn.packets == 1 and turn.size_bytes is None
        self._counts_bytes = turn.size_bytes is not None
        self._quantum_size = turn.packets if turn.size_bytes is None else turn.size_bytes
        """The packets of a quantum, or its bytes where those are counted."""
        self._used: dict[int, int] = {}
        """The used part of its quantum by each stream within one, in the same unit."""

    def charge(self, stream_id: int, n_bytes: int) -> int:
        """Charge a packet of *n_bytes*; return the number of quanta it ends, usually 0 or 1.

        The excess over a quantum is dropped; a packet may be as large as several quanta.
        """
        # The common case, for every packet, without touching the dict.
        if self._is_one_packet:
            return 1
        used = self._used.pop(stream_id, 0) + (n_bytes if self._counts_bytes else 1)
        # A packet without bytes (a bare end of stream) starts no quantum that is counted in bytes.
        if 0 < used < self._quantum_size:
            self._used[stream_id] = used
        return used // self._quantum_size

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream has used a part of a quantum."""
        return stream_id in self._used

    def drop(self, stream_id: int) -> None:
        """End the stream's quantum, if it has one."""
        self._used.pop(stream_id, None)
