"""Schedulers that break one law of `h3sim.conformance` each, as those that people write do."""

from __future__ import annotations

import random
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

from h3sim.schedulers import (
    BucketScheduler,
    EpsScheduler,
    FifoScheduler,
    Mixed,
    RoundRobinScheduler,
    StrictScheduler,
    TreeScheduler,
    Weights,
)
from h3sim.signals import StrictPriority
from tests.mutants.schedulers import Listed


class SendsTwice(RoundRobinScheduler):
    """Takes a stream out of the running one pick too late."""

    def __init__(self) -> None:
        super().__init__()
        self._late: Any = None

    def deactivate(self, stream_id: int) -> None:
        self._late = stream_id
        super().deactivate(stream_id)

    def activate(self, stream_id: int) -> None:
        self._late = None
        super().activate(stream_id)

    def pick(self) -> Any:
        return super().pick() if self._late is None else self._late

    def charge(self, stream_id: int, n_bytes: int) -> None:
        late, self._late = self._late, None
        if stream_id != late:
            super().charge(stream_id, n_bytes)


class PicksTheClosed(RoundRobinScheduler):
    """Takes it that who is closed has been deactivated before."""

    def close(self, stream_id: int) -> None:
        pass


class WakesOnUpdate(FifoScheduler):
    """Lets a stream that is blocked take part again when its priority changes."""

    def update(self, stream_id: int, signal: Any) -> None:
        self.activate(stream_id)


class Coin(Listed):
    """Draws lots without a seed."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._next = random.randrange(2**30)

    def pick(self) -> Any:
        return self._active[self._next % len(self._active)] if self._active else None


class SharedTurns(Listed):
    """Counts turns in the class, so that connections disturb one another."""

    turns = 0

    def charge(self, stream_id: int, n_bytes: int) -> None:
        SharedTurns.turns += 1

    def pick(self) -> Any:
        return sorted(self._active)[SharedTurns.turns % len(self._active)] if self._active else None


class DeafBuckets(BucketScheduler):
    """Holds on to the first thing it was told."""

    def update(self, stream_id: int, signal: Any) -> None:
        pass


class SlowToListen(BucketScheduler):
    """Learns of an update only when the stream has had one more turn."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: dict[Any, Any] = {}

    def update(self, stream_id: int, signal: Any) -> None:
        if stream_id in self._active:
            self._heard[stream_id] = signal
        else:
            super().update(stream_id, signal)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        if stream_id in self._heard:
            super().update(stream_id, self._heard.pop(stream_id))

    def close(self, stream_id: int) -> None:
        self._heard.pop(stream_id, None)
        super().close(stream_id)


class KeepsTheClosed(TreeScheduler):
    """Remembers who was closed, and for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._closed: list[Any] = []

    def close(self, stream_id: int) -> None:
        self._closed.append(self._nodes[stream_id])
        super().close(stream_id)


class DeadEntries:
    """A heap from which dead entries go only when they come to the top."""

    def __init__(self) -> None:
        self._heap: list[Any] = []
        self._active: set[Any] = set()

    def open(self, stream_id: int, signal: Any) -> None:
        pass

    def update(self, stream_id: int, signal: Any) -> None:
        pass

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._active:
            self._active.add(stream_id)
            heappush(self._heap, stream_id)

    def deactivate(self, stream_id: int) -> None:
        self._active.discard(stream_id)
        while self._heap and self._heap[0] not in self._active:
            heappop(self._heap)

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)

    def pick(self) -> Any:
        return self._heap[0] if self._heap else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        pass


class HoldsALambda(FifoScheduler):
    """Keeps what cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self._rank = lambda stream_id: stream_id


class ForgetsItsRound(RoundRobinScheduler):
    """Pickles who is active, and not whose turn it is."""

    def __getstate__(self) -> list[Any]:
        return sorted(self._ring._positions)

    def __setstate__(self, active: Any) -> None:
        self.__init__()  # type: ignore[misc]
        for stream_id in active:
            self.activate(stream_id)


class LooksAtAll(Listed):
    """Searches a list for the lowest id at every pick."""

    def pick(self) -> Any:
        return min(self._active, default=None)


class CountsAll(Listed):
    """Goes through a list for each turn, and compares no ids."""

    def pick(self) -> Any:
        return self._active[0] if self._active else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._turns = sum(1 for _ in self._active)


class RaisesOnSignal(FifoScheduler):
    """Takes it that nobody is activated twice."""

    def activate(self, stream_id: int) -> None:
        if stream_id in self._active:
            raise RuntimeError(f"stream {stream_id} is active already")
        super().activate(stream_id)


class FullAt150(FifoScheduler):
    """Has room for 150 streams."""

    def __init__(self) -> None:
        super().__init__()
        self._room = [None] * 150
        self._seats: dict[Any, Any] = {}

    def activate(self, stream_id: int) -> None:
        super().activate(stream_id)
        if stream_id not in self._seats:
            seat = self._room.index(None)
            self._room[seat], self._seats[stream_id] = stream_id, seat  # type: ignore[call-overload]

    def deactivate(self, stream_id: int) -> None:
        super().deactivate(stream_id)
        if stream_id in self._seats:
            self._room[self._seats.pop(stream_id)] = None

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)


class DividesByBytes(FifoScheduler):
    """Fails on a turn of no bytes, as if that could not be."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        1400 // n_bytes


class HasFavourites(RoundRobinScheduler):
    """Round robin with two turns for every stream whose id is a multiple of eight."""

    def __init__(self) -> None:
        super().__init__()
        self._again = True

    def charge(self, stream_id: int, n_bytes: int) -> None:
        if stream_id % 8 == 0 and self._again:
            self._again = False
            return
        self._again = True
        super().charge(stream_id, n_bytes)


class LastComesFirst(Listed):
    """A stack: who got data last goes first, and who waits may wait for ever."""

    def pick(self) -> Any:
        return self._active[-1] if self._active else None


class WeighsStrict(StrictScheduler):
    """Takes a strict priority for a weight: who should wait gets a small share."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, self._mistaken(signal))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, self._mistaken(signal))

    @staticmethod
    def _mistaken(signal: Any) -> Any:
        if not isinstance(signal, StrictPriority):
            return signal
        return StrictPriority(weight=signal.strict + 1, depends_on=signal.depends_on)


class LeavesItsGroupAsleep(StrictScheduler):
    """Forgets to wake the placeholder above a stream, unless that has something to send already."""

    def _wake(self, element_id: int) -> None:  # type: ignore[override]
        expected = self._priorities[element_id]
        self._groups[expected.depends_on].activate(element_id, expected.strict)


class FirstAt255(TreeScheduler):
    """Lets weight 255 go before all, which base-drafts PR 2723 does not."""

    def __init__(self) -> None:
        super().__init__(weights=Weights.ZERO)


class CountsTurns(TreeScheduler):
    """Charges a turn whatever was sent, so that streams of short packets have less."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, 1400)


class JoinsInFront(EpsScheduler):
    """Puts an incremental stream that has data again before those that have waited."""

    def activate(self, stream_id: int) -> None:
        super().activate(stream_id)
        for level in self._levels:
            if stream_id in level._shared:
                level._shared.move_to_end(stream_id, last=False)


class IgnoresTheFlag(EpsScheduler):
    """Sends all responses of an urgency one by one."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, replace(signal, incremental=False))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, replace(signal, incremental=False))


class IgnoresAnUpdatedFlag(EpsScheduler):
    """Looks at the urgency of an update alone, and keeps the flag of the request."""

    def update(self, stream_id: int, signal: Any) -> None:
        kept = self._priorities[stream_id].incremental
        super().update(stream_id, replace(signal, incremental=kept))


class SwapsUrgencies(EpsScheduler):
    """Takes urgency 2 for 4, and 4 for 2."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, self._swapped(signal))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, self._swapped(signal))

    @staticmethod
    def _swapped(signal: Any) -> Any:
        return replace(signal, urgency={2: 4, 4: 2}.get(signal.urgency, signal.urgency))


class LosesUpdatesWhileBlocked(EpsScheduler):
    """Takes an update to heart only while the stream is active."""

    def update(self, stream_id: int, signal: Any) -> None:
        if stream_id in self._active:
            super().update(stream_id, signal)


class OnlyClaimsToInterleave(EpsScheduler):
    """Puts incremental responses behind all others, and sends them one after the other."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        pass


class StarvesNonIncremental(EpsScheduler):
    """Halves an urgency only until an incremental response has had a turn: then that kind goes."""

    def __init__(self) -> None:
        super().__init__(mixed=Mixed.HALVES)

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        self._levels[self._active[stream_id]]._shared_is_next = True


class GoesByReadiness(Listed):
    """Sends the most urgent; among equals the one that had data first."""

    def __init__(self) -> None:
        super().__init__()
        self._signals: dict[Any, Any] = {}

    def open(self, stream_id: int, signal: Any) -> None:
        self._signals[stream_id] = signal

    def update(self, stream_id: int, signal: Any) -> None:
        self.open(stream_id, signal)

    def pick(self) -> Any:
        return min(self._active, key=lambda key: self._signals[key].urgency, default=None)

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        del self._signals[stream_id]


class WeightedEps:
    """Fair queueing whose weights are 8 less the urgency; correct, but for not being strict."""

    def __init__(self) -> None:
        self._weights: dict[Any, Any] = {}
        self._heap: list[Any] = []
        self._due: dict[Any, Any] = {}
        self._now = 0

    def open(self, stream_id: int, signal: Any) -> None:
        self._weights[stream_id] = 8 - signal.urgency

    def update(self, stream_id: int, signal: Any) -> None:
        self.open(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._due:
            self._put(stream_id, self._now + self._cost(stream_id, 1400))

    def deactivate(self, stream_id: int) -> None:
        if self._due.pop(stream_id, None) is not None:
            self._clean()

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)
        del self._weights[stream_id]

    def pick(self) -> Any:
        return self._heap[0][1] if self._heap else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._now = self._due[stream_id]
        self._put(stream_id, self._now + self._cost(stream_id, n_bytes))

    def _cost(self, stream_id: int, n_bytes: int) -> Any:
        return n_bytes * 840 // self._weights[stream_id]  # 840 is a multiple of all weights

    def _put(self, stream_id: int, due: int) -> None:
        self._due[stream_id] = due
        heappush(self._heap, (due, stream_id))
        self._clean()

    def _clean(self) -> None:
        if len(self._heap) > 2 * len(self._due):
            self._heap = sorted((due, key) for key, due in self._due.items())
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)


class ResetsItsClock(WeightedEps):
    """Begins virtual time anew when a stream is closed."""

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        self._now = 0
