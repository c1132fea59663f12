"""Random histories as servers live through them, for two schedulers side by side.

Responses are requested at random moments, become ready then or later, are stalled by flow control
after a frame, get other priorities on the way, and end. What is said to both schedulers follows
from the picks of the first, so a history is the one that this scheduler leads to.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

from h3sim.signals import Eps, H2Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["FRAME_BYTES", "Outcome", "compare"]

FRAME_BYTES = 1200
_STEPS_BETWEEN_REQUESTS = 6
_N_STREAMS = (4, 16)
_N_FRAMES = (1, 40)
_LATE, _STALL, _UPDATE = 0.3, 0.04, 0.03
_LONGEST_WAIT = 30


class Outcome(NamedTuple):
    """How many frames were sent, and how many of them both schedulers picked."""

    frames: int
    same: int
    first_difference: int | None
    """The number of the first frame that they did not both pick."""


class _Response:
    def __init__(self, rng: random.Random) -> None:
        self.n_bytes = rng.randint(*_N_FRAMES) * FRAME_BYTES - rng.randrange(FRAME_BYTES)
        """The bytes that are left."""
        self.wakes_at: int | None = rng.randint(1, _LONGEST_WAIT) if rng.random() < _LATE else 0


def _eps(rng: random.Random) -> Signal:
    # Few urgencies: most of what servers differ in happens within one.
    return Eps(urgency=rng.choice((0, 1, 3, 3, 3, 5)), incremental=rng.random() < 0.5)


def _tree(rng: random.Random) -> Signal:
    return H2Priority(weight=rng.choice((1, 16, 32, 100, 256)))


_SIGNALS: dict[str, Callable[[random.Random], Signal]] = {"eps": _eps, "h2": _tree}


def compare(
    first: Scheduler,
    second: Scheduler,
    seed: int,
    *,
    signals: str = "eps",
    smallest_bytes: int = FRAME_BYTES,
    updates_stalled: bool = True,
) -> Outcome:
    """Lead both schedulers through the history of a *seed*; count the picks that are equal.

    Frames have from *smallest_bytes* to `FRAME_BYTES`, the last of a response what is left. Without
    *updates_stalled* a response keeps its priority while it has nothing that may be sent.

    >>> from h3sim.schedulers import EpsScheduler
    >>> outcome = compare(EpsScheduler(), EpsScheduler(), 1)
    >>> outcome.frames == outcome.same > 100
    True
    """
    history = _History(first, second, random.Random(seed), _SIGNALS[signals])  # noqa: S311
    history.smallest_bytes, history.updates_stalled = smallest_bytes, updates_stalled
    return history.run()


class _History:
    def __init__(
        self,
        first: Scheduler,
        second: Scheduler,
        rng: random.Random,
        signal: Callable[[random.Random], Signal],
    ) -> None:
        self._first, self._both, self._rng, self._signal = first, (first, second), rng, signal
        self.smallest_bytes, self.updates_stalled = FRAME_BYTES, True
        asked_at = 0
        self._asked: list[tuple[int, int]] = []
        for number in range(rng.randint(*_N_STREAMS)):
            self._asked.append((asked_at, 4 * number))
            asked_at += rng.randrange(_STEPS_BETWEEN_REQUESTS) * rng.randrange(3)
        self._open: dict[int, _Response] = {}
        self._picks: list[tuple[int, int | None]] = []

    def run(self) -> Outcome:
        """Go on until every response is sent."""
        step = 0
        while self._asked or self._open:
            self._begin(step)
            picked = self._first.pick()
            if picked is not None:
                self._picks.append((picked, self._both[1].pick()))
                self._send(picked, step)
            step += 1
        apart = [number for number, (a, b) in enumerate(self._picks) if a != b]
        n_frames = len(self._picks)
        return Outcome(n_frames, n_frames - len(apart), apart[0] if apart else None)

    def _begin(self, step: int) -> None:
        """Say what happens before a frame."""
        while self._asked and self._asked[0][0] <= step:
            stream_id = self._asked.pop(0)[1]
            response = self._open[stream_id] = _Response(self._rng)
            if response.wakes_at is not None:
                response.wakes_at += step
            signal = self._signal(self._rng)
            for scheduler in self._both:
                scheduler.open(stream_id, signal)
        for stream_id, response in self._open.items():
            may_update = self.updates_stalled or response.wakes_at is None
            if self._rng.random() < _UPDATE and may_update:
                signal = self._signal(self._rng)
                for scheduler in self._both:
                    scheduler.update(stream_id, signal)
            if response.wakes_at is not None and response.wakes_at <= step:
                response.wakes_at = None
                for scheduler in self._both:
                    scheduler.activate(stream_id)

    def _send(self, stream_id: int, step: int) -> None:
        response = self._open[stream_id]
        n_bytes = min(response.n_bytes, self._rng.randint(self.smallest_bytes, FRAME_BYTES))
        response.n_bytes -= n_bytes
        is_stalled = self._rng.random() < _STALL
        for scheduler in self._both:
            scheduler.charge(stream_id, n_bytes)
            if is_stalled or not response.n_bytes:
                scheduler.deactivate(stream_id)
            if not response.n_bytes:
                scheduler.close(stream_id)
        if not response.n_bytes:
            del self._open[stream_id]
        elif is_stalled:
            response.wakes_at = step + self._rng.randint(1, _LONGEST_WAIT)
