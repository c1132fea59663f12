"""Random loads with random dependency trees: what a client says, round by round, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeAlias

from h3sim.signals import H2Priority

__all__ = [
    "FRAME_BYTES",
    "KINDS",
    "WARM_UP",
    "WIDE",
    "Ask",
    "Prioritize",
    "Round",
    "Widen",
    "script",
    "stream_window_of",
]

FRAME_BYTES = 16_384
"""The longest DATA frame that both servers send (RFC 9113 § 4.2)."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a body of *size_bytes*."""

    stream_id: int
    size_bytes: int
    priority: H2Priority | None


@dataclass(frozen=True, slots=True)
class Prioritize:
    """A PRIORITY frame."""

    stream_id: int
    priority: H2Priority


@dataclass(frozen=True, slots=True)
class Widen:
    """A WINDOW_UPDATE of one stream."""

    stream_id: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Round:
    """What is said at once while everything waits, and how much may be sent then at most."""

    events: tuple[Ask | Prioritize | Widen, ...]
    window_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mix:
    """How often something happens: of priorities with a parent, exclusive, idle and so on."""

    n_rounds: int = 8
    asks: tuple[int, int] = (3, 7)
    frames: tuple[int, int] = (1, 10)
    has_parent: float = 0.6
    of_closed: float = 0.1
    to_come: float = 0.0
    exclusive: float = 0.2
    idle: float = 0.0
    moves: float = 0.0
    burst: tuple[int, int] = (3, 18)
    weights: tuple[int, ...] = ()
    silent: float = 0.05
    stream_window: int = 0
    widens: float = 0.0


WIDE = 2**30
"""A window that no body here fills."""
KINDS: dict[str, _Mix] = {
    "weights": _Mix(has_parent=0.2, exclusive=0.0),
    "chains": _Mix(has_parent=0.9, exclusive=0.7, weights=(256, 220, 183, 147, 110)),
    "idle parents": _Mix(idle=0.4, to_come=0.2),
    "reprioritization": _Mix(moves=0.8, exclusive=0.25),
    "closed parents": _Mix(of_closed=0.6, frames=(1, 4), burst=(6, 20)),
    "all of it": _Mix(idle=0.2, to_come=0.1, moves=0.4, of_closed=0.3, exclusive=0.35),
    "stream windows": _Mix(
        moves=0.2, frames=(2, 12), stream_window=3 * FRAME_BYTES, widens=1.2, exclusive=0.1
    ),
    "over 100 streams": _Mix(
        n_rounds=26, asks=(5, 7), frames=(1, 3), of_closed=0.5, moves=0.2, burst=(8, 16)
    ),
}
"""What trees are made of; seeds go round the kinds."""
_Script: TypeAlias = list[Round]

WARM_UP = Ask(1, 65_535, H2Priority())
"""Takes the window that a connection begins with."""
_OTHER_SIZES = (0, 0, 1, 700, 5_000, 12_000)
_MOST_IDLE = 10
"""h2o ends a connection with 16 streams that have a priority and no request."""


def stream_window_of(kind: str) -> int:
    """Return the window that each stream begins with."""
    return KINDS[kind].stream_window or WIDE


def script(seed: int, kind: str) -> _Script:
    """Return rounds of one connection; the same for the same seed and kind.

    >>> script(3, "chains") == script(3, "chains")
    True
    """
    return _Writer(random.Random(f"{kind} {seed}"), KINDS[kind]).rounds()  # noqa: S311 - a test


@dataclass(slots=True)
class _Writer:
    rng: random.Random
    mix: _Mix
    next_id: int = 3
    asked: list[int] = field(default_factory=lambda: [WARM_UP.stream_id])
    idle: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    waiting_bytes: int = 0

    def rounds(self) -> _Script:
        """Return all rounds; the last lets everything go."""
        rounds = [self._round() for _ in range(self.mix.n_rounds)]
        if self.mix.stream_window:
            events = tuple(Widen(stream_id, WIDE) for stream_id in self.asked)
            return [*rounds, Round(events, WIDE)]
        return [*rounds, Round((), self.waiting_bytes)] if self.waiting_bytes else rounds

    def _round(self) -> Round:
        rng, mix = self.rng, self.mix
        events: list[Ask | Prioritize | Widen] = []
        for _ in range(rng.randint(*mix.asks)):
            if rng.random() < mix.idle and len(self.idle) + len(self.groups) < _MOST_IDLE:
                events.append(self._idle())
            events.append(self._ask())
            if rng.random() < mix.moves:
                events.append(self._moved())
            if rng.random() < mix.widens:
                widened = rng.choice(self.asked[-10:])
                events.append(Widen(widened, rng.randint(1, 4) * FRAME_BYTES - rng.choice((0, 99))))
        # Never more than there is: the window has to be shut again when the next round begins.
        window_bytes = min(rng.randint(*mix.burst) * FRAME_BYTES, self.waiting_bytes)
        self.waiting_bytes -= window_bytes
        return Round(tuple(events), window_bytes)

    def _ask(self) -> Ask:
        stream_id, self.next_id = self.next_id, self.next_id + 2
        size_bytes = self.rng.randint(*self.mix.frames) * FRAME_BYTES + self.rng.choice(
            _OTHER_SIZES
        )
        is_silent = stream_id not in self.idle and self.rng.random() < self.mix.silent
        priority = None if is_silent else self._priority(stream_id)
        self.asked.append(stream_id)
        self.waiting_bytes += size_bytes
        if stream_id in self.idle:
            self.idle.remove(stream_id)
        return Ask(stream_id, size_bytes, priority)

    def _idle(self) -> Prioritize:
        """Prioritize a stream that is asked for soon, or one that never is."""
        if self.rng.random() < 0.5:
            stream_id = self.next_id + 2 * self.rng.randint(1, 6)
            if stream_id not in self.idle:
                self.idle.append(stream_id)
        else:
            stream_id = 1001 + 2 * len(self.groups)
            self.groups.append(stream_id)
        return Prioritize(stream_id, self._priority(stream_id))

    def _moved(self) -> Prioritize:
        stream_id = self.rng.choice([*self.asked[-12:], *self.idle, *self.groups])
        return Prioritize(stream_id, self._priority(stream_id))

    def _priority(self, stream_id: int) -> H2Priority:
        rng, mix = self.rng, self.mix
        parent = None
        if rng.random() < mix.has_parent:
            recent = self.asked if rng.random() < mix.of_closed else self.asked[-8:]
            parent = rng.choice([*recent, *self.idle, *self.groups])
            if rng.random() < mix.to_come:
                parent = self.next_id + 2 * rng.randint(1, 4)
        return H2Priority(
            weight=rng.choice(mix.weights) if mix.weights else rng.randint(1, 256),
            depends_on=None if parent == stream_id else parent,
            exclusive=rng.random() < mix.exclusive,
        )
