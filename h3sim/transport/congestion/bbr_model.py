"""The path as BBR sees it: rounds, rates, round-trip times, and what losses show (§ 5.5).

Section numbers are those of draft-ietf-ccwg-bbr, working copy of August 2026; its names are in
parentheses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from h3sim.transport.congestion.bbr_common import ModelBasedController, WindowedMaximum
from h3sim.transport.delivery_rate import delivery_rate_bps
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


UNLIMITED: Final = 1 << 62
"""In place of infinity, which would turn bounds into floats."""
BIT_NS_PER_BYTE: Final = BITS_PER_BYTE * NS_PER_S
"""A rate in bit/s, times nanoseconds, over this, is a number of bytes."""
BETA: Final = 0.7
"""The factor of a reduction after losses (Beta)."""
LOSS_THRESHOLD: Final = 0.02
"""The loss rate above which too much was in flight (LossThresh)."""
_MAX_BANDWIDTH_CYCLES: Final = 2
"""The window of the bandwidth's maximum, in probing cycles (MaxBwFilterLen)."""
_MIN_RTT_FILTER_NS: Final = 10 * NS_PER_S
"""The lifetime of the smallest RTT (MinRTTFilterLen)."""
_PROBE_RTT_INTERVAL_NS: Final = 5 * NS_PER_S
"""The time without a small RTT after which it is probed for (ProbeRTTInterval)."""
_EXTRA_ACKED_ROUNDS: Final = 10
"""The window of the maximum, in rounds (ExtraAckedFilterLen)."""


class AckAggregation:
    """The estimator of the bytes that bursts of ACKs report beyond the expected ones (§ 5.5.9)."""

    __slots__ = ("_began_at_ns", "_delivered_bytes", "_maximum", "extra_bytes")

    def __init__(self) -> None:
        self._began_at_ns = 0
        """Time when the current burst of ACKs began."""
        self._delivered_bytes = 0
        """The bytes that it has acknowledged."""
        self._maximum = WindowedMaximum(length=_EXTRA_ACKED_ROUNDS)
        self.extra_bytes = 0
        """The largest excess over the expected bytes (extra_acked)."""

    def restart(self, now_ns: int) -> None:
        """Count from now on."""
        self._began_at_ns = now_ns

    def forget(self) -> None:
        """Forget the maximum of earlier rounds."""
        self._maximum = WindowedMaximum(length=_EXTRA_ACKED_ROUNDS)

    def on_acked(
        self, acked_bytes: int, now_ns: int, bandwidth_bps: int, window: int, round_count: int
    ) -> None:
        """Handle newly acknowledged bytes."""
        expected_bytes = bandwidth_bps * (now_ns - self._began_at_ns) // BIT_NS_PER_BYTE
        # The path has caught up with the ACKs: whatever comes next is another burst.
        if self._delivered_bytes <= expected_bytes:
            self._delivered_bytes = expected_bytes = 0
            self._began_at_ns = now_ns
        self._delivered_bytes += acked_bytes
        extra_bytes = min(self._delivered_bytes - expected_bytes, window)
        self.extra_bytes = self._maximum.put(extra_bytes, round_count)


class RateSample:
    """The measurements of one ACK: RS, a rate sample (§ 2.3)."""

    __slots__ = (
        "acked_bytes",
        "delivered_bytes",
        "in_flight_bytes",
        "is_app_limited",
        "lost_bytes",
        "prior_bytes",
        "rate_bps",
    )

    rate_bps: int
    """The delivery rate; 0 if it is unknown."""
    delivered_bytes: int
    """The bytes delivered since the newest packet was sent."""
    prior_bytes: int
    """The bytes delivered before it was sent."""
    acked_bytes: int
    """The bytes that this ACK newly acknowledges."""
    lost_bytes: int
    """The bytes lost since it was sent."""
    in_flight_bytes: int
    """The bytes in flight when it had been sent."""
    is_app_limited: bool


@mypyc_attr(allow_interpreted_subclasses=True)
class BbrModel(ModelBasedController):
    """The model of the path.

    The long-term model is the highest delivery rate of two probing cycles, and what could be in
    flight without excess loss (*inflight_longterm*, Linux's inflight_hi); the short-term model
    (*bandwidth_shortterm_bps* and *inflight_shortterm*, bw_lo and inflight_lo) follows losses
    between probes.
    """

    __slots__ = (
        "_aggregation",
        "_bandwidth_latest_bps",
        "_bandwidths",
        "_cycle_count",
        "_delivered_bytes",
        "_inflight_latest",
        "_is_cwnd_limited",
        "_is_loss_in_round",
        "_is_loss_round_new",
        "_is_probe_rtt_expired",
        "_is_round_start",
        "_largest_acked",
        "_last_lost",
        "_limited_until_bytes",
        "_loss_round_bytes",
        "_lost_bytes",
        "_lost_ranges",
        "_min_rtt_at_ns",
        "_probe_rtt_min_at_ns",
        "_probe_rtt_min_ns",
        "_round_count",
        "_round_ends_at_bytes",
        "_rounds_since_up",
        "_sample",
        "_was_cwnd_limited",
        "bandwidth_shortterm_bps",
        "inflight_longterm",
        "inflight_shortterm",
        "max_bandwidth_bps",
        "min_rtt_ns",
    )

    reads_losses: ClassVar[bool] = True

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self.max_bandwidth_bps = 0
        """The largest delivery rate of this probing cycle and the last (max_bw)."""
        self.min_rtt_ns: int | None = None
        """The smallest round-trip time of ten seconds; None without a sample."""
        self.bandwidth_shortterm_bps = UNLIMITED
        self.inflight_shortterm = UNLIMITED
        self.inflight_longterm = UNLIMITED
        self._aggregation = AckAggregation()
        self._sample = RateSample()
        self._bandwidths = WindowedMaximum(length=_MAX_BANDWIDTH_CYCLES)
        self._cycle_count = 0
        self._delivered_bytes = 0
        self._round_count = 0
        self._round_ends_at_bytes = 0
        self._is_round_start: bool
        self._lost_bytes = 0
        self._loss_round_bytes = 0
        """Delivered bytes at whose next delivery the round of losses ends."""
        self._is_loss_round_new = False
        """True if a loss began a round, which the next ACK places."""
        self._is_loss_in_round = False
        self._lost_ranges = 0
        """The discontiguous ranges of packets lost in this round."""
        self._last_lost = -2
        """The packet lost last; initially no neighbour of any packet."""
        self._bandwidth_latest_bps = 0
        self._inflight_latest = 0
        """The largest rate, and delivery within a round trip, of this round of losses."""
        self._largest_acked = -1
        self._limited_until_bytes: int | None = None
        """Delivered bytes up to which packets that are sent count as app-limited."""
        self._is_cwnd_limited = self._was_cwnd_limited = False
        """True if the window was full in this round, and in the one before."""
        self._rounds_since_up = 0
        """The rounds since the last probe for bandwidth (rounds_since_bw_probe)."""
        self._min_rtt_at_ns = 0
        """Time of the sample that is the smallest RTT, which expires after 10 s."""
        self._probe_rtt_min_ns: int | None = None
        """The smallest RTT since ProbeRTT was last due, 5 s after such a sample."""
        self._probe_rtt_min_at_ns = 0
        self._is_probe_rtt_expired: bool
        """True if ProbeRTT is due (probe_rtt_expired)."""

    @property
    def bandwidth_bps(self) -> int:
        """The bandwidth to be used: the long-term one, bounded by the short-term one."""
        return min(self.max_bandwidth_bps, self.bandwidth_shortterm_bps)

    def _take_sample(self, packets: Sequence[SentPacket], now_ns: int, rtt: RttEstimator) -> None:
        """Measure by the packet sent last (§ 4.1), and count rounds (§ 5.5.1)."""
        sample, newest, acked_bytes = self._sample, packets[-1], 0
        for packet in packets:
            acked_bytes += packet.size_bytes
        self._delivered_bytes = delivered_bytes = self._delivered_bytes + acked_bytes
        sample.acked_bytes = acked_bytes
        sample.prior_bytes = newest.delivered_bytes
        sample.delivered_bytes = delivered_bytes - newest.delivered_bytes
        sample.rate_bps = delivery_rate_bps(newest, delivered_bytes, now_ns, rtt.min_rtt_ns) or 0
        sample.is_app_limited = newest.is_app_limited
        sample.in_flight_bytes = newest.in_flight_bytes
        sample.lost_bytes = self._lost_bytes - newest.lost_before_bytes
        limit_bytes = self._limited_until_bytes
        if limit_bytes is not None and delivered_bytes > limit_bytes:
            self._limited_until_bytes = None
        self._is_round_start = newest.delivered_bytes >= self._round_ends_at_bytes
        if self._is_round_start:
            self._start_round()
            self._round_count += 1
            self._rounds_since_up += 1
            self._was_cwnd_limited, self._is_cwnd_limited = self._is_cwnd_limited, False

    def _start_round(self) -> None:
        """Begin a round, which ends when a packet sent from now on is acknowledged."""
        self._round_ends_at_bytes = self._delivered_bytes

    def _update_latest(self) -> bool:
        """Update the largest samples of the round; return whether a round of losses is over."""
        sample = self._sample
        self._bandwidth_latest_bps = max(self._bandwidth_latest_bps, sample.rate_bps)
        self._inflight_latest = max(self._inflight_latest, sample.delivered_bytes)
        if self._is_loss_round_new:
            # Placed here, and not with the loss, so that what this ACK delivers is before it.
            self._is_loss_round_new = False
            self._loss_round_bytes = self._delivered_bytes
            return False
        if sample.prior_bytes < self._loss_round_bytes:
            return False
        self._loss_round_bytes = self._delivered_bytes
        return True

    def _update_max_bandwidth(self) -> None:
        """Put the sample into the filter, unless the application limited it (§ 5.5.5)."""
        rate_bps = self._sample.rate_bps
        # An app-limited sample underestimates the path, but one above the maximum is proof.
        if rate_bps and (rate_bps >= self.max_bandwidth_bps or not self._sample.is_app_limited):
            self.max_bandwidth_bps = self._bandwidths.put(rate_bps, self._cycle_count)

    def _adapt_lower_bounds(self) -> None:
        """Follow the latest deliveries after a round with losses (§ 5.5.10.3)."""
        bandwidth_bps, inflight = self.bandwidth_shortterm_bps, self.inflight_shortterm
        if bandwidth_bps == UNLIMITED:
            bandwidth_bps = self.max_bandwidth_bps
        if inflight == UNLIMITED:
            inflight = self.congestion_window
        # Not below the latest delivery, which the path has just shown to sustain.
        self.bandwidth_shortterm_bps = max(self._bandwidth_latest_bps, int(BETA * bandwidth_bps))
        self.inflight_shortterm = max(self._inflight_latest, int(BETA * inflight))

    def _reset_shortterm(self) -> None:
        """Forget the bounds that losses between probes have set."""
        self.bandwidth_shortterm_bps = self.inflight_shortterm = UNLIMITED

    def _is_too_high(self) -> bool:
        """Return whether the loss rate shows that too much was in flight."""
        sample = self._sample
        return sample.lost_bytes > sample.in_flight_bytes * LOSS_THRESHOLD

    def _update_min_rtt(self, number: int, latest_rtt_ns: int, now_ns: int) -> None:
        """Take an RTT sample, if *number* is the highest acknowledged yet (§ 5.3.4.3)."""
        expires_at_ns = self._probe_rtt_min_at_ns + _PROBE_RTT_INTERVAL_NS
        self._is_probe_rtt_expired = self._probe_rtt_min_ns is not None and now_ns > expires_at_ns
        if number <= self._largest_acked:
            return
        self._largest_acked = number
        probed_ns = self._probe_rtt_min_ns
        if probed_ns is None or latest_rtt_ns < probed_ns or self._is_probe_rtt_expired:
            self._probe_rtt_min_ns = probed_ns = latest_rtt_ns
            self._probe_rtt_min_at_ns = now_ns
        is_expired = now_ns > self._min_rtt_at_ns + _MIN_RTT_FILTER_NS
        if self.min_rtt_ns is None or probed_ns < self.min_rtt_ns or is_expired:
            self.min_rtt_ns = probed_ns
            self._min_rtt_at_ns = self._probe_rtt_min_at_ns

    def _bdp_bytes(self, gain: float) -> int:
        """Return *gain* times the bandwidth-delay product."""
        return self._product_bytes(self.bandwidth_bps, gain)

    def _product_bytes(self, bandwidth_bps: int, gain: float) -> int:
        """Return *gain* times *bandwidth_bps* times the RTT; without one, the first window."""
        if self.min_rtt_ns is None:
            return self._first_window_bytes
        return int(gain * (bandwidth_bps * self.min_rtt_ns // BIT_NS_PER_BYTE))

    def _target_inflight(self) -> int:
        """Return the bytes in flight that use the path in full, within the window."""
        return min(self._bdp_bytes(1.0), self.congestion_window)
