"""Queues of streams: an indexed heap, a ring of rounds, and a quantum counter."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from h3sim._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


_SLACK: Final = 16
"""So many entries may be out of date before the heap is made anew: few streams never pay for it."""

_Entry: TypeAlias = Any
"""A tuple of rank, tie and stream. Which one counts is asked of the object, so nothing says that it
is a tuple: compiled, one that is known for one is taken apart where it passes, and made anew."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class IndexedHeap:
    """Streams ordered by a rank, those of one rank by a tie, then by their ids.

    The first entry of the heap is never one that was dropped, so looking at it changes nothing.

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
        """The stream of the lowest rank, or None where there is none."""
        if not self._heap:
            return None
        stream_id: int = self._heap[0][2]
        return stream_id

    def put(self, stream_id: int, rank: int, tie: int = 0) -> None:
        """Add the stream, or give it a new rank."""
        heap = self._heap
        entry: _Entry = (rank, tie, stream_id)
        was_first = bool(heap) and heap[0][2] == stream_id
        self._entries[stream_id] = entry
        # A stream moves mostly while it is first; one sift then does the work of a pop and a push.
        if was_first:
            heapreplace(heap, entry)
            self._drop_stale()
        else:
            heappush(heap, entry)
            if len(heap) > 2 * len(self._entries) + _SLACK:
                self._compact()

    def drop(self, stream_id: int) -> None:
        """Take the stream out; without effect where it is not in."""
        if self._entries.pop(stream_id, None) is None:
            return
        heap = self._heap
        # Else its entry lies somewhere below, and the first one still counts.
        if heap[0][2] == stream_id:
            self._drop_stale()
        if len(heap) > 2 * len(self._entries) + _SLACK:
            self._compact()

    def _drop_stale(self) -> None:
        heap, entries = self._heap, self._entries
        while heap:
            first = heap[0]
            # By identity: an entry that was left behind may equal the one that counts now.
            if entries.get(first[2]) is first:
                return
            heappop(heap)

    def _compact(self) -> None:
        # heapq removes nothing from the middle, so entries are dropped lazily. Once half are out of
        # date a new heap costs no more than the changes that made them so.
        self._heap = [*self._entries.values()]
        heapify(self._heap)


_ROUND: Final = 1 << 62
"""Stream ids are below (RFC 9000 § 2.1)."""
_IDS: Final = _ROUND - 1


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class RoundRing:
    """Streams that take turns; a stream that joins takes its first turn in the next round.

    Within a round the lower stream id goes first. This is fair queueing in virtual time with equal
    weights, in which every turn costs the same.
    """

    # A turn is taken for every packet. So this keeps a heap of its own and not an `IndexedHeap`,
    # which would have to be told of each turn by a call, and keep the ranks a second time.

    __slots__ = ("_heap", "_line", "_now", "_turns", "first")

    def __init__(self) -> None:
        # A turn is one number, round and stream: a heap compares numbers twice as fast as pairs.
        self._heap: list[int] = []
        """Turns; entries may be out of date, the first is not."""
        self._turns: dict[int, int] = {}
        """The next turn of each stream."""
        self._now = 0
        """A turn of the round that goes on."""
        self._line = 0
        """The next place in the line, once a stream was sent to its end; before, 0."""
        self.first: int | None = None
        """Whose turn it is."""

    def join(self, stream_id: int) -> None:
        """Put the stream among those that take turns; without effect where it is."""
        turns = self._turns
        if stream_id in turns:
            return
        # Once anybody was requeued, numbers are places in one line: rounds would let newcomers
        # overtake.
        turn = (self._now | _IDS) + 1 + stream_id  # in the next round
        if self._line:
            self._next_turn(stream_id, turn)
            return
        # As `_next_turn`, of which a page of small resources has as many as packets.
        turns[stream_id] = turn
        heap = self._heap
        heappush(heap, turn)
        if len(heap) > 2 * len(turns) + _SLACK:
            self._drop_stale()
        else:
            self.first = heap[0] & _IDS

    def leave(self, stream_id: int) -> None:
        """Take the stream out of the turns."""
        if self._turns.pop(stream_id, None) is not None:
            self._settle(stream_id)

    def keeps_turn(self, stream_id: int) -> None:
        """Continue the stream's turn; whoever joins during it waits for the next round."""
        # The turn may have begun while another stood in a lower round that has left since.
        self._now = self._turns[stream_id]

    def took_quantum(self, stream_id: int) -> None:
        """Move the stream to the next round."""
        turns = self._turns
        self._now = turn = turns[stream_id]
        turn += _ROUND
        # Lost bytes may go outside of a turn, so the one charged need not be the first.
        if stream_id != self.first or self._line:
            self._next_turn(stream_id, turn)
            return
        turns[stream_id] = turn
        heap = self._heap
        # Each stream has an entry that counts, so with as many entries as streams none is out of
        # date.
        heapreplace(heap, turn)
        if len(heap) == len(turns):
            self.first = heap[0] & _IDS
        else:
            self._drop_stale()

    def requeue(self, stream_id: int) -> None:
        """Send the stream behind all that wait; from now on it is first come, first served."""
        turns = self._turns
        if stream_id in turns:
            self._line = self._line or max(turns.values()) // _ROUND + 1
            self._next_turn(stream_id, turns[stream_id])

    def _next_turn(self, stream_id: int, turn: int) -> None:
        """Have the stream wait for *turn*; once there is a line, at its end."""
        if self._line:
            turn = self._line * _ROUND + stream_id
            self._line += 1
        self._turns[stream_id] = turn
        heappush(self._heap, turn)
        self._settle(stream_id)

    def _settle(self, stream_id: int) -> None:
        """Note whose turn it is, where nothing has changed but for one stream."""
        heap = self._heap
        if stream_id == self.first or len(heap) > 2 * len(self._turns) + _SLACK:
            self._drop_stale()
        else:
            # Its entry is not the first, or is a new one, so the first is not out of date.
            self.first = heap[0] & _IDS if heap else None

    def _drop_stale(self) -> None:
        """See to it that the first entry of the heap is that of a stream which waits there."""
        turns = self._turns
        if len(self._heap) > 2 * len(turns) + _SLACK:
            # As in `IndexedHeap`: a new heap once half of the entries are out of date.
            self._heap = list(turns.values())
            heapify(self._heap)
        heap = self._heap
        # By turn: of two equal entries of one stream either may stand for it; the other is out of
        # date once it has had its turn.
        while heap and turns.get(heap[0] & _IDS) != heap[0]:
            heappop(heap)
        self.first = heap[0] & _IDS if heap else None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class DeficitCounter:
    """What each stream has used up of its turn.

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
        """Count a packet of *n_bytes*; return how many turns are over with it, mostly 0 or 1.

        What a packet has above the size of a turn is forgotten; one may be as long as several.
        """
        # The usual case, once for every packet, without touching the dict.
        if self._is_one_packet:
            return 1
        used = self._used.pop(stream_id, 0) + (n_bytes if self._in_bytes else 1)
        # A packet without bytes (an end of stream alone) begins no turn that is counted in bytes.
        if 0 < used < self._size:
            self._used[stream_id] = used
        return used // self._size

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream has sent some of a turn that is not over."""
        return stream_id in self._used

    def drop(self, stream_id: int) -> None:
        """End the stream's turn, if it has one."""
        self._used.pop(stream_id, None)
