"""Scheduling among the streams of one bucket or one urgency."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from h3sim._mypyc import mypyc_attr
from h3sim.schedulers.queues import DeficitCounter, IndexedHeap, RoundRing

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


# The concurrency levels by their numbers on the wire, bucket * 4 + level.
SEQUENTIAL: Final = 2
"""The level of streams that are sent one at a time, alternating with those that share."""
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
        """Return the stream to send next: level 3 first, then levels 2 and 1 alternately."""
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
        """Activate a stream of that level, ahead of all that arrived later."""
        if level == _SHARED:
            self.shared.join(stream_id)
        else:
            queue = self.exclusive if level == _EXCLUSIVE else self.sequential
            queue.put(stream_id, arrival)

    def leave(self, stream_id: int, level: int) -> None:
        """Remove a stream of that level."""
        if level == _SHARED:
            self.shared.leave(stream_id)
        else:
            (self.exclusive if level == _EXCLUSIVE else self.sequential).drop(stream_id)

    def charge(self, stream_id: int, level: int) -> None:
        """End the quantum of a stream of that level."""
        # Level 3 precedes both others and is no part of their alternation.
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
        """The stream to send next."""
        raise NotImplementedError

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Activate a stream; a new one has not had a quantum yet."""
        raise NotImplementedError

    def leave(self, stream_id: int) -> None:
        """Remove a stream, which ends its quantum."""
        raise NotImplementedError

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Charge a packet; return whether it ends a quantum."""
        raise NotImplementedError

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream is within a quantum."""
        raise NotImplementedError

    def carry_over(self, stream_id: int) -> None:
        """Handle that a stream joined within a quantum that it had begun with another priority."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class NonIncrementalFirstLevel(UrgencyLevel):
    """Non-incremental streams one at a time by ID, then the others round robin."""

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
            # By ID, not by activation: IDs ascend in the order of the requests (RFC 9218 § 10).
            self._sequential.put(stream_id, stream_id)

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        if stream_id in self._shared:
            del self._shared[stream_id]
        else:
            self._sequential.drop(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        # Counted for both groups: `SplitHalf` and `H2oFirstSlice` need the end of a sequential
        # stream's quantum.
        is_over = bool(self._turns.charge(stream_id, n_bytes))
        if is_over and stream_id in self._shared:
            self._shared.move_to_end(stream_id)
        return is_over

    def has_begun(self, stream_id: int) -> bool:
        return bool(self._turns.has_begun(stream_id))


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class RoundRobinAll(NonIncrementalFirstLevel):
    """All streams round robin."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        self._shared[stream_id] = None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oFirstSlice(NonIncrementalFirstLevel):
    """The first quantum of an incremental stream counts as non-incremental."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._will_share: dict[int, None] = {}

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        super().join(stream_id, is_incremental and not is_new, is_new)
        if is_incremental and is_new:
            self._will_share[stream_id] = None

    def leave(self, stream_id: int) -> None:
        """Remove a stream from its urgency level, also if its first slice has not ended."""
        super().leave(stream_id)
        self._will_share.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_over = super().charge(stream_id, n_bytes)
        # Only a full quantum counts as the first: one of several packets is not cut short.
        if is_over and stream_id in self._will_share:
            del self._will_share[stream_id]
            self._sequential.drop(stream_id)
            self._shared[stream_id] = None
        return is_over


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SplitHalf(NonIncrementalFirstLevel):
    """Quanta alternate between the two groups, the non-incremental one first."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._shared_is_next = False

    @property
    def first(self) -> int | None:
        if self._shared_is_next and self._shared:
            return next(iter(self._shared))
        return super().first

    def leave(self, stream_id: int) -> None:
        # A stream that leaves within a quantum ends it: otherwise its group would get another one.
        if self._turns.has_begun(stream_id):
            self._shared_is_next = stream_id in self._sequential
        super().leave(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        is_shared = stream_id in self._shared
        is_over = super().charge(stream_id, n_bytes)
        # The group continues until its quantum is over and then the other is next: exclusive or.
        self._shared_is_next = is_over is not is_shared
        return is_over


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SplitHalfIncrementalFirst(SplitHalf):
    """The same, the incremental group first (quic-go)."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._shared_is_next = True


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SharedRing(UrgencyLevel):
    """One list by round, then by stream ID (nghttp3's scheduling of 2026)."""

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
        # A late stream in round 0 would precede all the rounds of the others. nghttp3 also starts
        # it at the cycle of the head.
        self._enqueue(stream_id, 0 if head is None else self._round[head])

    def leave(self, stream_id: int) -> None:
        self._turns.drop(stream_id)
        self._streams.drop(stream_id)
        del self._round[stream_id], self._is_incremental[stream_id]

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        turns = self._turns.charge(stream_id, n_bytes)
        # A single stream stays in its round: any stream that joins uses the same one.
        if turns and self._is_incremental[stream_id] and len(self._round) > 1:
            # A packet larger than a quantum costs several rounds (nghttp3: max(1, n / 800) cycles),
            # or streams with larger packets would get more.
            self._enqueue(stream_id, self._round[stream_id] + turns)
        return turns > 0

    def has_begun(self, stream_id: int) -> bool:
        return bool(self._turns.has_begun(stream_id))

    def carry_over(self, stream_id: int) -> None:
        # nghttp3 counts what was written since the last turn when it schedules the stream again,
        # and any of it is a turn.
        if self._is_incremental[stream_id]:
            self._enqueue(stream_id, self._round[stream_id] + 1)

    def _enqueue(self, stream_id: int, number: int) -> None:
        self._round[stream_id] = number
        self._streams.put(stream_id, number)
