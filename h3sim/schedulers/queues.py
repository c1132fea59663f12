"""Queues of streams: an indexed heap, a ring of rounds, and a quantum counter."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from h3sim._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


_SLACK: Final = 16
"""The number of stale entries that is always tolerated: few streams never pay for a rebuild."""

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
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, stream_id: int) -> bool:
        return stream_id in self._entries

    @property
    def first(self) -> int | None:
        """The stream of the lowest rank, or None."""
        if not self._heap:
            return None
        stream_id: int = self._heap[0][2]
        return stream_id

    def put(self, stream_id: int, rank: int, tie: int = 0) -> None:
        """Add the stream, or change its rank."""
        heap = self._heap
        entry: _Entry = (rank, tie, stream_id)
        was_first = bool(heap) and heap[0][2] == stream_id
        # From here on, an older entry of the stream is stale.
        self._entries[stream_id] = entry
        # A stream usually moves while it is first; one sift then replaces a pop and a push.
        if was_first:
            heapreplace(heap, entry)
            self._drop_stale()
        else:
            heappush(heap, entry)
            if len(heap) > 2 * len(self._entries) + _SLACK:
                self._compact()

    def drop(self, stream_id: int) -> None:
        """Remove the stream; without effect if it is absent."""
        if self._entries.pop(stream_id, None) is None:
            return
        heap = self._heap
        # Otherwise its entry is somewhere below, and the first one is still valid.
        if heap[0][2] == stream_id:
            self._drop_stale()
        if len(heap) > 2 * len(self._entries) + _SLACK:
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
        # heapq cannot remove from the middle, so deletion is lazy. Once half the entries are stale,
        # a rebuild costs no more than the changes that made them so.
        self._heap = [*self._entries.values()]
        heapify(self._heap)


_ROUND: Final = 1 << 62
"""An upper bound of stream IDs (RFC 9000 § 2.1)."""
_IDS: Final = _ROUND - 1


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class RoundRing:
    """Round robin by rounds; a stream that joins gets its first quantum in the next round.

    Within a round the lower stream ID goes first. This is fair queueing in virtual time with equal
    weights, in which every quantum costs the same.
    """

    # A quantum per packet is common. So this has a heap of its own instead of an `IndexedHeap`,
    # which would cost a call per quantum, and store the ranks twice.

    __slots__ = ("_heap", "_line", "_now", "_turns", "first")

    def __init__(self) -> None:
        # A position is one number of round and stream: comparing numbers is twice as fast as pairs.
        self._heap: list[int] = []
        """Positions; entries may be stale, except the first."""
        self._turns: dict[int, int] = {}
        """The next position of each stream."""
        self._now = 0
        """A position in the current round."""
        self._line = 0
        """The next number in the FIFO line once a stream was requeued; before, 0."""
        self.first: int | None = None
        """The stream to send next."""

    def join(self, stream_id: int) -> None:
        """Add the stream to the ring; without effect if it is in."""
        turns = self._turns
        if stream_id in turns:
            return
        # After the first requeue, numbers are positions in one line: rounds would let newcomers
        # overtake.
        turn = (self._now | _IDS) + 1 + stream_id  # in the next round
        if self._line:
            self._next_turn(stream_id, turn)
            return
        # `_next_turn` inlined: with small resources it runs as often as packets are sent.
        turns[stream_id] = turn
        heap = self._heap
        heappush(heap, turn)
        if len(heap) > 2 * len(turns) + _SLACK:
            self._drop_stale()
        else:
            self.first = heap[0] & _IDS

    def leave(self, stream_id: int) -> None:
        """Remove the stream from the ring."""
        if self._turns.pop(stream_id, None) is not None:
            self._settle(stream_id)

    def keeps_turn(self, stream_id: int) -> None:
        """Continue the stream's quantum; streams that join during it wait for the next round."""
        # The quantum may have begun while another stream was in a lower round that has left since.
        self._now = self._turns[stream_id]

    def took_quantum(self, stream_id: int) -> None:
        """Move the stream to the next round."""
        turns = self._turns
        self._now = turn = turns[stream_id]
        turn += _ROUND
        # Retransmissions may be charged out of order, so the stream need not be the first.
        if stream_id != self.first or self._line:
            self._next_turn(stream_id, turn)
            return
        turns[stream_id] = turn
        heap = self._heap
        # Each stream has one valid entry, so with as many entries as streams none is stale.
        heapreplace(heap, turn)
        if len(heap) == len(turns):
            self.first = heap[0] & _IDS
        else:
            self._drop_stale()

    def requeue(self, stream_id: int) -> None:
        """Move the stream behind all waiting ones; from now on the order is FIFO."""
        turns = self._turns
        if stream_id in turns:
            self._line = self._line or max(turns.values()) // _ROUND + 1
            self._next_turn(stream_id, turns[stream_id])

    def _next_turn(self, stream_id: int, turn: int) -> None:
        """Set the next position of the stream; in a FIFO line, its end."""
        if self._line:
            turn = self._line * _ROUND + stream_id
            self._line += 1
        self._turns[stream_id] = turn
        heappush(self._heap, turn)
        self._settle(stream_id)

    def _settle(self, stream_id: int) -> None:
        """Update the first stream after a change of one stream."""
        heap = self._heap
        if stream_id == self.first or len(heap) > 2 * len(self._turns) + _SLACK:
            self._drop_stale()
        else:
            # Its entry is not the first, or is a new one, so the first is not stale.
            self.first = heap[0] & _IDS if heap else None

    def _drop_stale(self) -> None:
        """Remove stale entries from the top of the heap."""
        turns = self._turns
        if len(self._heap) > 2 * len(turns) + _SLACK:
            # As in `IndexedHeap`: a rebuild once half of the entries are stale.
            self._heap = list(turns.values())
            heapify(self._heap)
        heap = self._heap
        # By value: of two equal entries of one stream either is valid; the other becomes stale with
        # the next quantum.
        while heap and turns.get(heap[0] & _IDS) != heap[0]:
            heappop(heap)
        self.first = heap[0] & _IDS if heap else None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class DeficitCounter:
    """The used part of each stream's quantum.

    >>> from h3sim.schedulers.base import Quantum
    >>> counter = DeficitCounter(Quantum(packets=2))
    >>> counter.charge(0, 1400), counter.charge(0, 1400), counter.charge(0, 1400)
    (0, 1, 0)
    """

    __slots__ = ("_in_bytes", "_is_one_packet", "_size", "_used")

    def __init__(self, turn: Quantum) -> None:
        self._is_one_packet = turn.packets == 1 and turn.size_bytes is None
        self._in_bytes = turn.size_bytes is not None
        self._size = turn.packets if turn.size_bytes is None else turn.size_bytes
        self._used: dict[int, int] = {}

    def charge(self, stream_id: int, n_bytes: int) -> int:
        """Charge a packet of *n_bytes*; return the number of quanta it ends, usually 0 or 1.

        The excess over a quantum is dropped; a packet may be as large as several quanta.
        """
        # The common case, for every packet, without touching the dict.
        if self._is_one_packet:
            return 1
        used = self._used.pop(stream_id, 0) + (n_bytes if self._in_bytes else 1)
        # A packet without bytes (a bare end of stream) starts no quantum that is counted in bytes.
        if 0 < used < self._size:
            self._used[stream_id] = used
        return used // self._size

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream has used a part of a quantum."""
        return stream_id in self._used

    def drop(self, stream_id: int) -> None:
        """End the stream's quantum, if it has one."""
        self._used.pop(stream_id, None)
