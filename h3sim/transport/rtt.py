"""Round-trip time estimation (RFC 9002 § 5)."""

from __future__ import annotations

from typing import Final

from h3sim.values.units import NS_PER_MS

K_GRANULARITY_NS: Final = NS_PER_MS
"""kGranularity (RFC 9002 § 6.1.2)."""


class RttEstimator:
    """Smoothed round-trip time and its variation: RTT state of RFC 9002 § 5.

    >>> rtt = RttEstimator(initial_ns=333_000_000)
    >>> rtt.on_sample(100_000_000)
    >>> rtt.smoothed_rtt_ns, rtt.rttvar_ns
    (100000000, 50000000)
    """

    __slots__ = ("has_sample", "latest_rtt_ns", "min_rtt_ns", "rttvar_ns", "smoothed_rtt_ns")

    def __init__(self, *, initial_ns: int) -> None:
        self.latest_rtt_ns = initial_ns
        self.min_rtt_ns = initial_ns
        self.smoothed_rtt_ns = initial_ns
        self.rttvar_ns = initial_ns // 2
        self.has_sample = False

    def on_sample(self, latest_rtt_ns: int, ack_delay_ns: int = 0) -> None:
        """Add a sample; *ack_delay_ns* is the peer's ACK Delay, capped by its maximum.

        Implements RFC 9002 § 5.3.
        """
        self.latest_rtt_ns = adjusted_ns = latest_rtt_ns
        if not self.has_sample:
            self.has_sample = True
            # Without the ACK delay: min_rtt is unknown yet, so the delay cannot be checked against
            # it.
            self.min_rtt_ns = self.smoothed_rtt_ns = latest_rtt_ns
            self.rttvar_ns = latest_rtt_ns // 2
            return
        # RFC 9002 § 5.2: min_rtt ignores ACK Delay, so it rests on what this endpoint has observed
        # itself, and bounds what the peer may subtract below.
        if latest_rtt_ns < self.min_rtt_ns:
            self.min_rtt_ns = latest_rtt_ns
        # RFC 9002 § 5.3: a delay that would take the sample below min_rtt is implausible.
        if ack_delay_ns and latest_rtt_ns >= self.min_rtt_ns + ack_delay_ns:
            adjusted_ns -= ack_delay_ns
        # The variance first: RFC 9002 § 5.3 uses the smoothed value from before this sample.
        smoothed_ns = self.smoothed_rtt_ns
        deviation_ns = (
            smoothed_ns - adjusted_ns if smoothed_ns > adjusted_ns else adjusted_ns - smoothed_ns
        )
        self.rttvar_ns = (3 * self.rttvar_ns + deviation_ns) // 4
        self.smoothed_rtt_ns = (7 * smoothed_ns + adjusted_ns) // 8

    def probe_timeout_ns(self, max_ack_delay_ns: int) -> int:
        """Return PTO without backoff (RFC 9002 § 6.2.1)."""
        # RFC 9002 § 6.2.1: max(4 * rttvar, kGranularity), by comparison: `max` costs a call.
        spread_ns = 4 * self.rttvar_ns
        if spread_ns < K_GRANULARITY_NS:
            spread_ns = K_GRANULARITY_NS
        return self.smoothed_rtt_ns + spread_ns + max_ack_delay_ns

    @property
    def late_rtt_ns(self) -> int:
        """The round-trip time that a late packet is measured by (RFC 9002 § 6.1.2).

        The larger of both, since a path whose RTT has just risen is slower than the smoothed value
        says, and a single short sample must not cause spurious losses.
        """
        latest_ns, smoothed_ns = self.latest_rtt_ns, self.smoothed_rtt_ns
        return latest_ns if latest_ns > smoothed_ns else smoothed_ns

    def loss_delay_ns(self) -> int:
        """Return the time threshold after which a sent packet is lost (RFC 9002 § 6.1.2)."""
        delay_ns = 9 * self.late_rtt_ns // 8  # kTimeThreshold
        return delay_ns if delay_ns > K_GRANULARITY_NS else K_GRANULARITY_NS
