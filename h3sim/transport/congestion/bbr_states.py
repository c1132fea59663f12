"""BBR's states: their gains, the gain cycle of ProbeBW, and the rest of ProbeRTT."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    import random

    from h3sim.transport.congestion.bbr_model import PathModel

__all__ = ["GAINS", "BbrState", "GainCycle", "ProbeRtt"]

_HIGH_GAIN: Final = 2.8853900817779268
"""2 / ln 2: the least gain that doubles the rate in each round."""
_PROBE_GAINS = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
_PROBE_RTT_NS: Final = 200 * NS_PER_MS


class BbrState(enum.Enum):
    """Where BBR stands (§ 4.3)."""

    STARTUP = "startup"
    DRAIN = "drain"
    PROBE_BW = "probe_bw"
    PROBE_RTT = "probe_rtt"


GAINS: dict[BbrState, tuple[float, float]] = {
    BbrState.STARTUP: (_HIGH_GAIN, _HIGH_GAIN),
    BbrState.DRAIN: (1 / _HIGH_GAIN, _HIGH_GAIN),
    BbrState.PROBE_BW: (1.0, 2.0),
    BbrState.PROBE_RTT: (1.0, 1.0),
}
"""The gains of pacing and window that each state begins with."""


class GainCycle:
    """The phases of ProbeBW, which raise and lower the rate in turns (§ 4.3.4).

    *phases* draws the one in which it begins; without it, it is always the first, in which the rate
    is raised.
    """

    __slots__ = ("_at_ns", "_phase", "_phases")

    def __init__(self, phases: random.Random | None) -> None:
        self._phases = phases
        self._phase = 0
        self._at_ns = 0
        """When the phase began."""

    def begin(self, now_ns: int) -> float:
        """Return the gain of any phase but the one that lowers the rate (§ 4.3.4.3)."""
        # 8 - (0 to 6) is 8 or 2 to 7, that is any phase but 1, which lowers the rate: there is no
        # queue yet to be drained.
        draw = 0 if self._phases is None else self._phases.randint(0, 6)
        return self._enter(len(_PROBE_GAINS) - draw, now_ns)

    def advance(self, now_ns: int) -> float:
        """Return the gain of the next phase, which begins."""
        return self._enter(self._phase + 1, now_ns)

    def has_lasted(self, now_ns: int, min_rtt_ns: int | None) -> bool:
        """Return whether the phase has lasted for the smallest round trip."""
        return min_rtt_ns is not None and now_ns - self._at_ns > min_rtt_ns

    def _enter(self, phase: int, now_ns: int) -> float:
        self._phase = phase % len(_PROBE_GAINS)
        self._at_ns = now_ns
        return _PROBE_GAINS[self._phase]


class ProbeRtt:
    """ProbeRTT: little is in flight, for 200 ms and a round trip (§ 4.3.5)."""

    __slots__ = ("_is_round_done", "_pipe_bytes", "_until_ns")

    def __init__(self, pipe_bytes: int) -> None:
        self._pipe_bytes = pipe_bytes
        self._until_ns: int | None = None
        """Until when it lasts at least; None as long as more than *pipe_bytes* are in flight."""
        self._is_round_done = False

    def begin(self) -> None:
        """Begin: what is in flight has to arrive first."""
        self._until_ns = None

    def is_over(self, model: PathModel, now_ns: int, left_bytes: int) -> bool:
        """Return whether it is, with *left_bytes* in flight."""
        # All along: what leaves now is held back by the state, and must not lower the bandwidth.
        model.ignore_low_rates(left_bytes)
        if self._until_ns is None:
            # The 200 ms begin when the pipe is empty enough for its RTT to be seen, not when the
            # state does.
            if left_bytes <= self._pipe_bytes:
                self._until_ns = now_ns + _PROBE_RTT_NS
                self._is_round_done = False
                model.start_round()
            return False
        if model.is_round_start:
            self._is_round_done = True
        return self._is_round_done and now_ns > self._until_ns
