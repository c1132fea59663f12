"""The pace of one sender: its controller's, or a share of its window per round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.transport.pacer import Pacer, pace_bps

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.settings import TcpSettings

__all__ = ["Pace"]


class Pace:
    """Says whether a segment may leave now, or else from when on."""

    __slots__ = ("_controller", "_gain", "_mss_bytes", "_pacer", "_rate_bps", "_rtt", "due_at_ns")

    def __init__(
        self, settings: TcpSettings, controller: CongestionController, rtt: RttEstimator
    ) -> None:
        self._controller = controller
        self._rtt = rtt
        self._gain = settings.pacing_gain
        self._mss_bytes = settings.mss_bytes
        self._pacer = Pacer(burst_bytes=settings.pacing_burst_segments * settings.mss_bytes)
        self._rate_bps: int | None = None
        self.due_at_ns: int | None = None
        """When a segment may leave that had to wait."""

    def begin(self) -> None:
        """Take the rate of the moment; no segment waits."""
        self.due_at_ns = None
        self._rate_bps = pace_bps(self._controller, self._rtt, self._gain)

    def allows(self, now_ns: int) -> bool:
        """Whether a segment may leave now; notes when it may otherwise."""
        if self._rate_bps is None:
            return True
        ready_at_ns = self._pacer.ready_at_ns(self._mss_bytes, rate_bps=self._rate_bps)
        if ready_at_ns <= now_ns:
            return True
        self.due_at_ns = ready_at_ns
        return False

    def on_sent(self, n_bytes: int, now_ns: int) -> None:
        """Count a segment that leaves."""
        if self._rate_bps is not None:
            self._pacer.on_sent(n_bytes, rate_bps=self._rate_bps, now_ns=now_ns)
