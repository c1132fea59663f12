"""What both versions of BBR share: two estimators, the first rate, and the window before recovery.

Section numbers are those of draft-ietf-ccwg-bbr, working copy of August 2026.
"""

# ruff: noqa: ARG002 - a controller need not use every argument

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from h3sim.transport.congestion.controller import CongestionController
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.rtt import RttEstimator


class WindowedMaximum:
    """The largest of the values that were added during the last *length* rounds.

    >>> filtered = WindowedMaximum(length=10)
    >>> [filtered.put(value, round_count) for value, round_count in ((7, 0), (3, 9), (2, 10))]
    [7, 7, 3]
    """

    __slots__ = ("_candidates", "_length")

    def __init__(self, *, length: int) -> None:
        self._length = length
        self._candidates: deque[tuple[int, int]] = deque()
        """The values that may still become the maximum, as pairs of round and value."""

    def put(self, value: int, round_count: int) -> int:
        """Add *value* and return the maximum."""
        # From the first pair to the last, rounds rise and values fall: the first has the maximum.
        candidates = self._candidates
        # Of equal values the newer one stays in the window longer.
        while candidates and candidates[-1][1] <= value:
            candidates.pop()
        # A lower one of the same round would leave with the one before it, and never be the first.
        if not candidates or candidates[-1][0] != round_count:
            candidates.append((round_count, value))
        while candidates[0][0] <= round_count - self._length:
            candidates.popleft()
        _, maximum = candidates[0]
        return maximum


_MIN_STARTUP_GROWTH: Final = 1.25
"""The growth of the rate per round below which the path may be full (§ 5.3.1.2)."""
_PLATEAU_ROUNDS: Final = 3
"""Consecutive rounds with less growth after which the path counts as full."""


class FullPipeDetector:
    """The estimator of whether sending faster still raises the delivery rate (§ 5.3.1.2).

    >>> detector = FullPipeDetector()
    >>> for rate_bps in (100, 124, 124, 124): detector.on_round(rate_bps)
    >>> detector.is_full, detector.was_full
    (True, True)
    """

    __slots__ = ("_base_bps", "_rounds", "is_full", "was_full")

    def __init__(self) -> None:
        self.was_full = False
        """True if the path was ever full (full_bw_reached)."""
        self.restart(0)

    def restart(self, base_bps: int) -> None:
        """Look for growth over *base_bps* from now on."""
        self._base_bps = base_bps
        self._rounds = 0
        self.is_full = False
        """True if the path was full since the last restart (full_bw_now)."""

    def on_round(self, rate_bps: int) -> None:
        """Handle the delivery rate at the start of a round that the application did not limit."""
        if self.is_full:
            return
        # Startup nearly doubles the rate in each round, so less growth shows a plateau. Three
        # rounds: a receive window that is still growing may cause a plateau that passes.
        if rate_bps >= self._base_bps * _MIN_STARTUP_GROWTH:
            self.restart(rate_bps)
            return
        self._rounds += 1
        if self._rounds >= _PLATEAU_ROUNDS:
            self.is_full = self.was_full = True


class Gains(NamedTuple):
    """The factors between the model and what is sent: the rate, and the bytes in flight."""

    pacing: float
    window: float


_MIN_PIPE_PACKETS: Final = 4
"""With fewer in flight a receiver that acknowledges every second packet leaves the sender waiting
(BBRMinPipeCwnd)."""
_UNKNOWN_RTT_NS: Final = NS_PER_MS
"""For the first pacing rate, before a round-trip time was measured (BBRInitPacingRate)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ModelBasedController(CongestionController):
    """The common part of the versions of BBR: the first rate, and the window before recovery."""

    __slots__ = (
        "_datagram_bytes",
        "_first_window_bytes",
        "_is_idle_restart",
        "_min_pipe_bytes",
        "_min_window_bytes",
        "_pacing_rate_bps",
        "_prior_window",
        "_recovery_end",
    )

    def __init__(self, settings: ControllerSettings) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self._datagram_bytes = settings.max_datagram_bytes
        self._first_window_bytes = settings.initial_congestion_window
        self._min_window_bytes = settings.minimum_window_bytes
        self._min_pipe_bytes = _MIN_PIPE_PACKETS * settings.max_datagram_bytes
        self._pacing_rate_bps: int | None = None
        """The rate; None before the first ACK."""
        self._prior_window = 0
        """The window to return to after recovery or a probe for the RTT (prior_cwnd)."""
        self._recovery_end: int | None = None
        """The first packet that was sent after recovery began; None outside recovery."""
        self._is_idle_restart = False
        """True until the next ACK if the sender was idle, which needs no probe for the RTT."""

    @property
    def pacing_gain(self) -> float:
        """The factor between the bandwidth and the pacing rate."""
        raise NotImplementedError

    @property
    def is_probing_rtt(self) -> bool:
        """True while the path is drained to measure its round-trip time."""
        raise NotImplementedError

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to the minimum window until recovery is over (RFC 9002 § 7.6.2)."""
        self._save_window()
        self.congestion_window = self._min_window_bytes

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate; before the first ACK that of the first window (BBRInitPacingRate)."""
        if self._pacing_rate_bps is not None:
            return self._pacing_rate_bps
        rtt_ns = max(1, rtt.smoothed_rtt_ns) if rtt.has_sample else _UNKNOWN_RTT_NS
        nominal_bps = self._first_window_bytes * BITS_PER_BYTE * NS_PER_S // rtt_ns
        return max(1, int(self.pacing_gain * nominal_bps))

    def _save_window(self) -> None:
        """Remember the window, or the larger one from before a reduction (BBRSaveCwnd)."""
        window = self.congestion_window
        if self._recovery_end is not None or self.is_probing_rtt:
            window = max(self._prior_window, window)
        self._prior_window = window

    def _restore_window(self) -> None:
        """Return to the window that was saved, unless it is larger now (BBRRestoreCwnd)."""
        self.congestion_window = max(self.congestion_window, self._prior_window)
