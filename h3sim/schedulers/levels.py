"""Scheduling among the streams of one bucket or one urgency."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.queues import DeficitCounter, IndexedHeap, RoundRing

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


# The concurrency levels by the numbers that go over the wire, bucket * 4 + level.
SEQUENTIAL: Final = 2
"""The level of streams that go one at a time, and by turns with those that share."""
_EXCLUSIVE: Final = 3
_SHARED: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Bucket:
    """The active streams of one bucket."""

    __slots__ = ("exclusive", "sequential", "shared", "shared_is_next")

    def __init__(self) -> None:
        self.exclusive = IndexedHeap()
        self.sequential = IndexedHeap()
        self.shared = RoundRing()
        self.shared_is_next = False

    def first(self) -> int | None:
        """Return who sends next: level 3 before all, then levels 2 and 1 by turns."""
        exclusive = self.exclusive.first
        if exclusive is not None:
            return exclusive
        sequential, shared = self.sequential.first, self.shared.first
        if sequential is None or (self.shared_is_next and shared is not None):
            return shared
        return sequential

    def is_empty(self) -> bool:
        """Return whether no stream of it is active."""
        return self.first() is None

    def join(self, stream_id: int, level: int, arrival: int) -> None:
        """Activate a stream of that level, before all that arrived later."""
        if level == _SHARED:
            self.shared.join(stream_id)
        else:
            queue = self.exclusive if level == _EXCLUSIVE else self.sequential
            queue.put(stream_id, arrival)

    def leave(self, stream_id: int, level: int) -> None:
        """Take a stream of that level out."""
        if level == _SHARED:
            self.shared.leave(stream_id)
        else:
            (self.exclusive if level == _EXCLUSIVE else self.sequential).drop(stream_id)

    def charge(self, stream_id: int, level: int) -> None:
        """End the turn of a stream of that level."""
        # A turn of level 3 leaves the alternation as it was: it goes before both others, and is
        # nobody's share.
        if level == _SHARED:
            self.shared.took_quantum(stream_id)
            self.shared_is_next = False
        elif level == SEQUENTIAL:
            self.shared_is_next = True


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class UrgencyLevel:
    """The active streams of one urgency."""

    @property
    def first(self) -> int | None:
        """Who sends next."""
        raise NotImplementedError

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Activate a stream; a new one has not had a turn yet."""
        raise NotImplementedError

    def leave(self, stream_id: int) -> None:
        """Take a stream out, which ends its turn."""
        raise NotImplementedError

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Count a packet; return whether a turn is over with it."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class NonIncrementalFirst(UrgencyLevel):
    """One at a time by stream id, then the others by turns."""

    def __init__(self, turn: Quantum) -> None:
        self._sequential = IndexedHeap()
        self._shared: OrderedDict[int, None] = OrderedDict()
        self._turns = DeficitCounter(turn)

    @property
    def first(self) -> int | None:
        sequential = self._sequential.first
        return sequential if sequential is not None else next(iter(self._shared), None)

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        if is_incremental:
            self._shared[stream_id] = None
        else:
            # By id, not by when data came: ids ascend in the order of the requests (RFC 9218 § 10).
            self._sequential.put(stream_id, stream_id)

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        if stream_id in self._shared:
            del self._shared[stream_id]
        else:
            self._sequential.drop(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        # Counted for both groups: `SplitHalf` and `H2oFirstSlice` ask when a sequential stream's
        # turn ends.
        is_over = bool(self._turns.charge(stream_id, n_bytes))
        if is_over and stream_id in self._shared:
            self._shared.move_to_end(stream_id)
        return is_over


class RoundRobinAll(NonIncrementalFirst):
    """All by turns."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        self._shared[stream_id] = None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oFirstSlice(NonIncrementalFirst):
    """The first turn of an incremental stream counts as one that is not."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._will_share: dict[int, None] = {}

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        super().join(stream_id, is_incremental and not is_new, is_new)
        if is_incremental and is_new:
            self._will_share[stream_id] = None

    def leave(self, stream_id: int) -> None:
        super().leave(stream_id)
        self._will_share.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_over = super().charge(stream_id, n_bytes)
        # Only a whole turn is a first turn: one of several packets is not broken off in the middle.
        if is_over and stream_id in self._will_share:
            del self._will_share[stream_id]
            self._sequential.drop(stream_id)
            self._shared[stream_id] = None
        return is_over


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SplitHalf(NonIncrementalFirst):
    """Turns alternate between the two groups; the one that is not incremental begins."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._shared_is_next = False

    @property
    def first(self) -> int | None:
        if self._shared_is_next and self._shared:
            return next(iter(self._shared))
        return super().first

    def leave(self, stream_id: int) -> None:
        # Who leaves in the middle of a turn has had it: else its group would get that turn twice.
        if self._turns.has_begun(stream_id):
            self._shared_is_next = stream_id in self._sequential
        super().leave(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_shared = stream_id in self._shared
        is_over = super().charge(stream_id, n_bytes)
        # The group goes on until its turn is over and then the other is next: an exclusive or.
        self._shared_is_next = is_over is not is_shared
        return is_over


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SharedRing(UrgencyLevel):
    """One list by round, then by stream id (nghttp3's scheduling of 2026)."""

    def __init__(self, turn: Quantum) -> None:
        self._streams = IndexedHeap()
        self._round: dict[int, int] = {}
        self._is_incremental: dict[int, bool] = {}
        self._turns = DeficitCounter(turn)

    @property
    def first(self) -> int | None:
        return self._streams.first

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        head = self._streams.first
        self._is_incremental[stream_id] = is_incremental
        # Behind round 0 nobody would wait: a late stream would have all the rounds of the others
        # before them. nghttp3 starts it at the cycle of the head, too.
        self._put(stream_id, 0 if head is None else self._round[head])

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        self._streams.drop(stream_id)
        del self._round[stream_id], self._is_incremental[stream_id]

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        turns = self._turns.charge(stream_id, n_bytes)
        # One that is alone stays: whoever joins stands in its round, whichever that is.
        if turns and self._is_incremental[stream_id] and len(self._round) > 1:
            # A packet longer than a turn costs as many rounds as it is turns long (nghttp3: max(1,
            # n / 800) cycles), or streams of larger packets would get more.
            self._put(stream_id, self._round[stream_id] + turns)
        return turns > 0

    def _put(self, stream_id: int, number: int) -> None:
        self._round[stream_id] = number
        self._streams.put(stream_id, number)
