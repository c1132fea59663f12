"""Turns in rounds: whose is next among streams that take one each."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from h3sim.compiling import mypyc_attr

__all__ = ["Rounds"]

_ROUND: Final = 1 << 62
"""Stream ids are below (RFC 9000 § 2.1)."""
_IDS: Final = _ROUND - 1
_SLACK: Final = 16
"""So many entries of a heap may be out of date before it is made anew, whatever its size."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Rounds:
    """Streams that take turns; a stream that joins takes its first turn in the next round.

    Within a round the lower stream id goes first. This is fair queueing in virtual time with equal
    weights, in which every turn costs the same.
    """

    # A turn is taken for every packet. So this keeps a heap of its own and not an `OrderedStreams`,
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

    def took_turn(self, stream_id: int) -> None:
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
            # As in `OrderedStreams`: a new heap once half of the entries are out of date.
            self._heap = list(turns.values())
            heapify(self._heap)
        heap = self._heap
        # By turn: of two equal entries of one stream either may stand for it; the other is out of
        # date once it has had its turn.
        while heap and turns.get(heap[0] & _IDS) != heap[0]:
            heappop(heap)
        self.first = heap[0] & _IDS if heap else None
