"""Three designs of servers that are correct, and bugs in them of kinds that are reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from h3sim.schedulers import EpsScheduler, FifoScheduler
from h3sim.signals import Eps
from tests.mutants.broken import WeightedEps
from tests.mutants.schedulers import Listed


class Signalled(Listed):
    """Active streams in order, and the last signal of each open one."""

    def __init__(self) -> None:
        super().__init__()
        self._signals: dict[int, Any] = {}

    def open(self, stream_id: int, signal: Any) -> None:
        self._signals[stream_id] = signal if isinstance(signal, Eps) else Eps()

    def update(self, stream_id: int, signal: Any) -> None:
        self.open(stream_id, signal)

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        self._signals.pop(stream_id, None)


class DeficitRoundRobin(Signalled):
    """Deficit round robin (Shreedhar and Varghese 1995) by weights of 8 less the urgency."""

    quantum = 1400

    def __init__(self) -> None:
        super().__init__()
        self._deficits: dict[int, int] = {}

    def weight(self, stream_id: int) -> Any:
        return 8 - self._signals[stream_id].urgency

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._active:
            self._active.append(stream_id)
            self._deficits[stream_id] = 0
            if len(self._active) == 1:
                self._begin()

    def deactivate(self, stream_id: int) -> None:
        was_first = bool(self._active) and self._active[0] == stream_id
        super().deactivate(stream_id)
        self._deficits.pop(stream_id, None)
        if was_first and self._active:
            self._begin()

    def pick(self) -> Any:
        return self._active[0] if self._active else None

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._deficits[stream_id] -= n_bytes
        while self._deficits[self._active[0]] <= 0:
            self._active.append(self._active.pop(0))
            self._begin()

    def _begin(self) -> None:
        """Give the first its quantum."""
        first = self._active[0]
        self._deficits[first] += self.quantum * self.weight(first)


class AgingStrict(Signalled):
    """The most urgent first, but who has waited for 100 turns goes before; by turns in a class."""

    patience = 100

    def __init__(self) -> None:
        super().__init__()
        self._since: dict[int, Any] = {}
        self._n_queued = 0

    def activate(self, stream_id: int) -> None:
        super().activate(stream_id)
        self._since.setdefault(stream_id, self._end())

    def deactivate(self, stream_id: int) -> None:
        super().deactivate(stream_id)
        self._since.pop(stream_id, None)

    def pick(self) -> Any:
        return min(self._active, key=self.rank, default=None)

    def rank(self, stream_id: int) -> Any:
        eps, since = self._signals[stream_id], self._since[stream_id]
        if self._turns - since[0] > self.patience:
            return -1, False, *since
        return eps.urgency, eps.incremental, *(since if eps.incremental else (stream_id,))

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        self._since[stream_id] = self._end()

    def _end(self) -> Any:
        """Return the end of the queue: the turns so far, and a number."""
        self._n_queued += 1
        return self._turns, self._n_queued


# Weighted fair queueing


class TieToTheLessUrgent(WeightedEps):
    """Starts at the time of the clock, where all tie, and gives ties to the lower weight."""

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._due:
            self._put(stream_id, self._now)

    def pick(self) -> Any:
        due = self._due
        return min(due, key=lambda key: (due[key], self._weights[key], key), default=None)


class KeepsIdleCredit(WeightedEps):
    """Lets a stream go on at the time at which it was last served, however long ago."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[int, int] = {}

    def activate(self, stream_id: int) -> None:
        if stream_id not in self._due:
            self._put(stream_id, self._last.get(stream_id, 0) + self._cost(stream_id, 1400))

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        self._last[stream_id] = self._now

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        self._last.pop(stream_id, None)


class WeightUpdateWhileIdleLost(WeightedEps):
    """Drops an update of a stream without data."""

    def update(self, stream_id: int, signal: Any) -> None:
        if stream_id in self._due:
            super().update(stream_id, signal)


class LowestWeightIsZero(WeightedEps):
    """Weighs 7 less the urgency, and never serves urgency 7."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, signal)
        self._weights[stream_id] = max(7 - signal.urgency, 0) or 1e-9


# Deficit round robin


class UpdateIgnored(DeficitRoundRobin):
    """Keeps the weight of the request."""

    def update(self, stream_id: int, signal: Any) -> None:
        pass


class KeepsItsDeficit(DeficitRoundRobin):
    """Gives a stream a quantum whenever it has data again, on top of what it has left."""

    def activate(self, stream_id: int) -> None:
        left = self._left.get(stream_id, 0) + self.quantum * self.weight(stream_id)
        is_new = stream_id not in self._active
        super().activate(stream_id)
        if is_new:
            self._deficits[stream_id] += left
            self._left[stream_id] = left

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[int, int] = {}

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._left[stream_id] = 0
        super().charge(stream_id, n_bytes)


class LoopsAtWeightZero(DeficitRoundRobin):
    """Weighs 7 less the urgency, and so adds nothing to urgency 7 for ever."""

    def weight(self, stream_id: int) -> Any:
        return 7 - self._signals[stream_id].urgency


# Strict with aging


class UpdateOfTheFlagLost(AgingStrict):
    """Reads only the urgency of an update."""

    def update(self, stream_id: int, signal: Any) -> None:
        kept = self._signals[stream_id].incremental
        self._signals[stream_id] = Eps(urgency=signal.urgency, incremental=kept)


class UpdateMovesBehind(AgingStrict):
    """Takes a stream that is updated for new, and forgets that it has data."""

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, signal)
        self.deactivate(stream_id)


class CloseDuringATurn(AgingStrict):
    """Remembers whose turn it is, and picks it after it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self._turn: Any = None

    def pick(self) -> Any:
        return super().pick() if self._turn is None else self._turn

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        self._turn = stream_id if n_bytes > 1400 else None

    def deactivate(self, stream_id: int) -> None:
        super().deactivate(stream_id)
        if stream_id == self._turn and stream_id in self._signals:
            self._turn = None

    def close(self, stream_id: int) -> None:
        del self._signals[stream_id]
        super().close(stream_id)


class SkipsAfterAPause(AgingStrict):
    """Goes around by ids, and on to the next but one if the stream that was served pauses."""

    def __init__(self) -> None:
        super().__init__()
        self._served = 0

    def rank(self, stream_id: int) -> Any:
        eps, distance = self._signals[stream_id], (stream_id - self._served - 1) % 2**40
        return eps.urgency, eps.incremental, distance if eps.incremental else stream_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        super().charge(stream_id, n_bytes)
        self._served = stream_id

    def deactivate(self, stream_id: int) -> None:
        super().deactivate(stream_id)
        if stream_id == self._served:
            self._served = min((k for k in self._active if k > stream_id), default=stream_id)


class UrgencyZeroIsUnset(AgingStrict):
    """Takes urgency 0 for none, and so for the default."""

    def open(self, stream_id: int, signal: Any) -> None:
        signal = signal if isinstance(signal, Eps) else Eps()
        self._signals[stream_id] = Eps(urgency=signal.urgency or 3, incremental=signal.incremental)

    def update(self, stream_id: int, signal: Any) -> None:
        self.open(stream_id, signal)


# Many streams, and loops


class DropsThe17th(FifoScheduler):
    """Has a ring of 16, and loses who becomes ready when it is full."""

    def activate(self, stream_id: int) -> None:
        if len(self._active) < 16:
            super().activate(stream_id)


class IgnoresIdsFrom64(FifoScheduler):
    """Keeps a bit per stream in a word."""

    def activate(self, stream_id: int) -> None:
        if stream_id < 64:
            super().activate(stream_id)


class FullAt100(FifoScheduler):
    """Refuses the 101st stream."""

    def __init__(self) -> None:
        super().__init__()
        self._n_open = 0

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, signal)
        self._n_open += 1
        if self._n_open > 100:
            raise RuntimeError("too many streams")

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        self._n_open -= 1


class _Renamed(EpsScheduler):
    """Takes some urgencies for others."""

    names: ClassVar[dict[int, int]] = {}

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, self._renamed(signal))

    def update(self, stream_id: int, signal: Any) -> None:
        super().update(stream_id, self._renamed(signal))

    def _renamed(self, signal: Any) -> Any:
        if not isinstance(signal, Eps):
            return signal
        return replace(signal, urgency=self.names.get(signal.urgency, signal.urgency))


def swapping(one: int, other: int) -> Any:
    """Return a scheduler that takes one urgency for the other, and the other way round."""
    return type(f"Swaps{one}And{other}", (_Renamed,), {"names": {one: other, other: one}})


def merging(urgency: int) -> Any:
    """Return a scheduler that takes an urgency for the next one."""
    return type(f"Merges{urgency}", (_Renamed,), {"names": {urgency: urgency + 1}})
