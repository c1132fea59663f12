"""Pacing: spreads a window over a round trip (RFC 9002 § 7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator

__all__ = ["Pacer", "pace_bps"]


class Pacer:
    """A leaky bucket: up to *burst_bytes* at once, then at the rate of the moment.

    >>> pacer = Pacer(burst_bytes=2000)
    >>> pacer.on_sent(2000, rate_bps=8_000_000, now_ns=0)
    >>> pacer.ready_at_ns(1000, rate_bps=8_000_000)
    1000000
    """

    __slots__ = ("_burst_bytes", "empty_at_ns")

    def __init__(self, *, burst_bytes: int) -> None:
        self._burst_bytes = burst_bytes
        self.empty_at_ns = 0
        """When the bucket is empty; from then on packets of any size may leave, at any rate."""

    def on_sent(self, n_bytes: int, rate_bps: int, now_ns: int) -> None:
        """Fill the bucket with what left now."""
        cost_ns = n_bytes * BITS_PER_BYTE * NS_PER_S // rate_bps
        start_ns = self.empty_at_ns
        self.empty_at_ns = (start_ns if start_ns > now_ns else now_ns) + cost_ns

    def ready_at_ns(self, n_bytes: int, rate_bps: int) -> int:
        """Return from when on *n_bytes* fit into the bucket."""
        return self.empty_at_ns - self.ahead_ns(n_bytes, rate_bps)

    def ahead_ns(self, n_bytes: int, rate_bps: int) -> int:
        """Return how long before the bucket is empty *n_bytes* fit into it."""
        spare = self._burst_bytes - n_bytes
        return spare * BITS_PER_BYTE * NS_PER_S // rate_bps if spare > 0 else 0


def pace_bps(controller: CongestionController, rtt: RttEstimator, gain: float | None) -> int | None:
    """Return the controller's own rate, else *gain* windows a round trip; None: no pacing."""
    rate_bps = controller.pacing_rate_bps(rtt)
    if rate_bps is None and gain is not None:
        window_bits = controller.congestion_window * BITS_PER_BYTE
        rate_bps = max(1, int(gain * window_bits * NS_PER_S / (rtt.smoothed_rtt_ns or 1)))
    return rate_bps
