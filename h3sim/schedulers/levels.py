"""Scheduling among the streams of one bucket or one urgency."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from h3sim.schedulers.queues import DeficitCounter, IndexedHeap, RoundRing
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.base import Quantum


# The concurrency levels of a bucket by their numbers on the wire (`BucketPriority`).
_EXCLUSIVE: Final = 3
"""The level of streams that are sent before all others, one at a time."""
SEQUENTIAL: Final = 2
"""The level of streams that are sent one at a time, alternating with those that share."""
_SHARED: Final = 1
"""The level of streams that share round robin."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Bucket:
    """The active streams of one bucket, one queue per concurrency level."""

    __slots__ = ("exclusive", "sequential", "shared", "shared_is_next")

    def __init__(self) -> None:
        self.exclusive = IndexedHeap()
        self.sequential = IndexedHeap()
        self.shared = RoundRing()
        self.shared_is_next = False
        """True if the last quantum was that of a sequential stream: both levels alternate."""

    def next_stream(self) -> int | None:
        """Return the stream to send next: level 3 first, then levels 2 and 1 alternately."""
        exclusive = self.exclusive.first
        if exclusive is not None:
            return exclusive
        sequential, shared = self.sequential.first, self.shared.next_stream
        if sequential is None or (self.shared_is_next and shared is not None):
            return shared
        return sequential

    def is_empty(self) -> bool:
        """Return whether no stream of it is active."""
        return self.next_stream() is None

    def join(self, stream_id: int, level: int) -> None:
        """Activate a stream of that level; outside the shared one in the order of IDs."""
        if level == _SHARED:
            self.shared.join(stream_id)
        else:
            queue = self.exclusive if level == _EXCLUSIVE else self.sequential
            queue.put(stream_id, stream_id)

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
            self.shared.end_quantum(stream_id)
            self.shared_is_next = False
        elif level == SEQUENTIAL:
            self.shared_is_next = True


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class UrgencyLevel:
    """The active streams of one urgency."""

    @property
    def next_stream(self) -> int | None:
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
        """Account for the quantum that a stream, which has just joined, had begun elsewhere."""


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class NonIncrementalFirstLevel(UrgencyLevel):
    """Non-incremental streams one at a time by ID, then the others round robin."""

    def __init__(self, turn: Quantum) -> None:
        self._sequential = IndexedHeap()
        self._shared: OrderedDict[int, None] = OrderedDict()
        """The incremental streams in the order of their next quanta."""
        self._quanta = DeficitCounter(turn)

    @property
    def next_stream(self) -> int | None:
        """The lowest ID without the incremental flag, else the first in the round robin."""
        sequential = self._sequential.first
        return sequential if sequential is not None else next(iter(self._shared), None)

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Activate a stream: an incremental one shares, others go one at a time."""
        if is_incremental:
            self._shared[stream_id] = None
        else:
            # By ID, not by activation: IDs ascend in the order of the requests (RFC 9218 § 10).
            self._sequential.put(stream_id, stream_id)

    def leave(self, stream_id: int) -> None:
        self._quanta.drop(stream_id)
        if stream_id in self._shared:
            del self._shared[stream_id]
        else:
            self._sequential.drop(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Charge a packet; an incremental stream with a full quantum goes to the end."""
        # Counted for both groups: `SplitHalf` and `H2oFirstSlice` need the end of a sequential
        # stream's quantum.
        is_over = bool(self._quanta.charge(stream_id, n_bytes))
        if is_over and stream_id in self._shared:
            self._shared.move_to_end(stream_id)
        return is_over

    def has_begun(self, stream_id: int) -> bool:
        return self._quanta.has_begun(stream_id)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class RoundRobinAll(NonIncrementalFirstLevel):
    """All streams round robin."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Add the stream to those that share, incremental or not."""
        self._shared[stream_id] = None


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class H2oFirstSlice(NonIncrementalFirstLevel):
    """The first quantum of an incremental stream counts as non-incremental."""

    def __init__(self, turn: Quantum) -> None:
        super().__init__(turn)
        self._will_share: dict[int, None] = {}
        """The incremental streams within their first quanta."""

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Queue a new incremental stream among the others, for its first quantum."""
        super().join(stream_id, is_incremental and not is_new, is_new)
        if is_incremental and is_new:
            self._will_share[stream_id] = None

    def leave(self, stream_id: int) -> None:
        """Remove a stream from its urgency level, also if its first slice has not ended."""
        super().leave(stream_id)
        self._will_share.pop(stream_id, None)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Charge a packet; let an incremental stream share after its first quantum."""
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
        """True if the next quantum belongs to the incremental group."""

    @property
    def next_stream(self) -> int | None:
        """The first of the group whose turn it is; of the other one if that is empty."""
        if self._shared_is_next and self._shared:
            return next(iter(self._shared))
        return super().next_stream

    def leave(self, stream_id: int) -> None:
        """Remove a stream; the other group is next if it was within a quantum."""
        # Otherwise its group would get another quantum.
        if self._quanta.has_begun(stream_id):
            self._shared_is_next = stream_id in self._sequential
        super().leave(stream_id)

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Charge a packet; the end of a quantum passes the turn to the other group."""
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
    """One list of all streams by round, then by stream ID (nghttp3's scheduling of 2026).

    Only incremental streams move to later rounds; others continue until they are done.
    """

    def __init__(self, turn: Quantum) -> None:
        self._streams = IndexedHeap()
        """The streams by round."""
        self._round: dict[int, int] = {}
        """The round of each stream."""
        self._is_incremental: dict[int, bool] = {}
        self._quanta = DeficitCounter(turn)

    @property
    def next_stream(self) -> int | None:
        return self._streams.first

    def join(self, stream_id: int, is_incremental: bool, is_new: bool) -> None:
        """Add the stream to the current round."""
        head = self._streams.first
        self._is_incremental[stream_id] = is_incremental
        # A late stream in round 0 would precede all the rounds of the others. nghttp3 also starts
        # it at the cycle of the head.
        self._enqueue(stream_id, 0 if head is None else self._round[head])

    def leave(self, stream_id: int) -> None:
        self._quanta.drop(stream_id)
        self._streams.drop(stream_id)
        del self._round[stream_id], self._is_incremental[stream_id]

    def charge(self, stream_id: int, n_bytes: int) -> bool:
        """Charge a packet; an incremental stream advances by a round per full quantum."""
        n_quanta = self._quanta.charge(stream_id, n_bytes)
        # A single stream stays in its round: any stream that joins uses the same one.
        if n_quanta and self._is_incremental[stream_id] and len(self._round) > 1:
            # A packet larger than a quantum costs several rounds (nghttp3: max(1, n / 800) cycles),
            # or streams with larger packets would get more.
            self._enqueue(stream_id, self._round[stream_id] + n_quanta)
        return n_quanta > 0

    def has_begun(self, stream_id: int) -> bool:
        return self._quanta.has_begun(stream_id)

    def carry_over(self, stream_id: int) -> None:
        """Start an incremental stream a round later."""
        # When nghttp3 schedules a stream again, any bytes since its last quantum cost a full one.
        if self._is_incremental[stream_id]:
            self._enqueue(stream_id, self._round[stream_id] + 1)

    def _enqueue(self, stream_id: int, round_number: int) -> None:
        """Set the round of a stream, by which it is listed."""
        self._round[stream_id] = round_number
        self._streams.put(stream_id, round_number)
