"""Reno as aioquic 1.7 has it."""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.transport.congestion.reno import NewRenoController
from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.base import ControllerSettings, SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["AioquicRenoController"]

_SAMPLES = 5
_SAMPLE_EVERY_NS = NS_PER_MS
_INCREASES = 5


class AioquicRenoController(NewRenoController):
    """NewReno that grows by whole packets, and leaves slow start once delay has risen by a quarter.

    Deviations from RFC 9002: the window grows by one datagram when a whole window has been
    acknowledged, never by less, and also while it is not full. Slow start ends when the least of
    the last 5 round-trip times, taken at most one a millisecond, has 5 times been at least a
    quarter above the smallest maximum of 5 that was seen.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> AioquicRenoController(ControllerSettings(max_datagram_bytes=1200)).congestion_window
    12000
    """

    __slots__ = ("_acked_bytes", "_floor_ns", "_increases", "_sampled_at_ns", "_samples")

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self._acked_bytes = 0
        self._samples: deque[int] = deque(maxlen=_SAMPLES)
        self._sampled_at_ns = 0
        self._floor_ns: int | None = None
        self._increases = 0

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        *,
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window, full or not."""
        super().on_acked(
            packets,
            now_ns=now_ns,
            rtt=rtt,
            bytes_in_flight=bytes_in_flight,
            is_cwnd_underutilized=False,
        )
        if self.ssthresh is None and self._is_rising(now_ns, rtt.latest_rtt_ns):
            self.ssthresh = self.congestion_window

    def _avoid(self, sizes: list[int], *, now_ns: int, smoothed_rtt_ns: int) -> None:
        """Add a datagram for each whole window that was acknowledged."""
        for size in sizes:
            # Two at once if a loss has since reduced the window that was nearly acknowledged.
            windows, self._acked_bytes = divmod(self._acked_bytes + size, self.congestion_window)
            self.congestion_window += windows * self._datagram_bytes

    def _is_rising(self, now_ns: int, latest_rtt_ns: int) -> bool:
        if now_ns <= self._sampled_at_ns + _SAMPLE_EVERY_NS:
            return False
        self._sampled_at_ns = now_ns
        self._samples.append(latest_rtt_ns)
        if len(self._samples) < _SAMPLES:
            return False
        highest, lowest = max(self._samples), min(self._samples)
        if self._floor_ns is None or highest < self._floor_ns:
            self._floor_ns = highest
        if 4 * (lowest - self._floor_ns) >= self._floor_ns:
            self._increases += 1
        elif lowest > self._floor_ns:
            self._increases = 0
        return self._increases >= _INCREASES
