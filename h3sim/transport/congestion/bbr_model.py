"""BBR's model of a path: what it delivers at most, and how long it takes at least."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.congestion.delivery_rate import WindowedMaximum, delivery_rate_bps
from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["PathModel"]

_BANDWIDTH_FILTER_ROUNDS: Final = 10
_MIN_RTT_FILTER_NS: Final = 10 * NS_PER_S
_FULL_GROWTH: Final = 1.25
_FULL_ROUNDS: Final = 3
_NOT_YET: Final = 1 << 62
"""Above the number of any packet."""


class PathModel:
    """BtlBw, RTprop and round trips (draft-cardwell-iccrg-bbr-congestion-control-00 § 4.1).

    `bandwidth_bps` is the largest delivery rate of ten round trips, `min_rtt_ns` the smallest RTT
    of ten seconds (None before there is one). `is_full`: three round trips in a row did not bring
    a quarter more bandwidth (§ 4.3.2.2), so the path is used in full.
    """

    __slots__ = (
        "_bandwidths",
        "_full_bandwidth_bps",
        "_full_rounds",
        "_largest_acked",
        "_limited_from",
        "_limited_to",
        "_product_bytes",
        "_round_ends_at_bytes",
        "bandwidth_bps",
        "delivered_bytes",
        "is_full",
        "is_min_rtt_expired",
        "is_round_start",
        "limited_until_bytes",
        "min_rtt_at_ns",
        "min_rtt_ns",
        "round_count",
    )

    def __init__(self) -> None:
        self.bandwidth_bps = 0
        self.min_rtt_ns: int | None = None
        self._product_bytes = 0
        """The bandwidth-delay product: asked for with each ACK, and changes with few."""
        self.min_rtt_at_ns = 0
        self.is_min_rtt_expired = False
        self.delivered_bytes = 0
        self.round_count = 0
        self.is_round_start = False
        self.is_full = False
        self._round_ends_at_bytes = 0
        self._bandwidths = WindowedMaximum(length=_BANDWIDTH_FILTER_ROUNDS)
        self._full_bandwidth_bps = 0
        self._full_rounds = 0
        self._largest_acked = -1
        self.limited_until_bytes: int | None = None
        """Until so much is delivered, low rates say more of the sender; None: they count."""
        # The packets that were sent meanwhile; none if the first number is above the last.
        self._limited_from = 0
        self._limited_to = -1

    def inflight_bytes(self, gain: float) -> int | None:
        """Return *gain* times the bandwidth-delay product, or None before an RTT was measured."""
        if self.min_rtt_ns is None:
            return None
        # The product stays whole until the gain: on fast paths it is above 2**53.
        return int(gain * self._product_bytes)

    def start_round(self) -> None:
        """Begin a round trip."""
        self._round_ends_at_bytes = self.delivered_bytes

    def ignore_low_rates(self, bytes_in_flight: int) -> None:
        """Count what is sent as limited by the sender until all that is in flight has arrived."""
        if self.limited_until_bytes is None:
            self._limited_from = _NOT_YET
        self.limited_until_bytes = self.delivered_bytes + bytes_in_flight

    def on_sent(self, number: int) -> None:
        """Take note of a packet that leaves, which matters only while low rates are ignored."""
        if self.limited_until_bytes is None:
            return
        if self._limited_from > number:
            self._limited_from = number
        self._limited_to = number

    def on_acked(self, packets: Sequence[SentPacket], now_ns: int, rtt: RttEstimator) -> None:
        """Count rounds, and measure bandwidth by the packet sent last (§ 4.1.1)."""
        newest, delivered_bytes = packets[-1], self.delivered_bytes
        # No `sum` over a generator: this runs for each ACK, mostly with one or two packets.
        for packet in packets:
            delivered_bytes += packet.size_bytes
        self.delivered_bytes = delivered_bytes
        # A round is over when a packet is delivered that was sent after its beginning (§ 4.1.1.3).
        self.is_round_start = newest.delivered_bytes >= self._round_ends_at_bytes
        if self.is_round_start:
            self._round_ends_at_bytes = delivered_bytes
            self.round_count += 1
        limit_bytes = self.limited_until_bytes
        if limit_bytes is not None and delivered_bytes > limit_bytes:
            self.limited_until_bytes = None
        is_cwnd_underutilized = newest.is_app_limited or (
            self._limited_from <= newest.number <= self._limited_to
        )
        rate_bps = delivery_rate_bps(newest, delivered_bytes, now_ns, rtt.min_rtt_ns)
        # A sender that had nothing to send shows too low a rate; only a higher one says anything
        # then.
        if rate_bps is not None and (rate_bps >= self.bandwidth_bps or not is_cwnd_underutilized):
            bandwidth_bps = self._bandwidths.put(rate_bps, self.round_count)
            if bandwidth_bps != self.bandwidth_bps:
                self.bandwidth_bps = bandwidth_bps
                self._set_product()
        if self.is_round_start and not is_cwnd_underutilized:
            self._check_full()

    def on_rtt(self, number: int, latest_rtt_ns: int, now_ns: int) -> None:
        """Take an RTT sample, if *number* is the highest acknowledged yet (§ 4.1.2)."""
        # Before the sample is taken, as the state machine asks whether it *was* too old (§
        # 4.1.2.3).
        self.is_min_rtt_expired = (
            self.min_rtt_ns is not None and now_ns > self.min_rtt_at_ns + _MIN_RTT_FILTER_NS
        )
        if number <= self._largest_acked:
            return
        self._largest_acked = number
        # An equal sample is as good, and younger.
        if self.min_rtt_ns is None or latest_rtt_ns <= self.min_rtt_ns or self.is_min_rtt_expired:
            self.min_rtt_ns = latest_rtt_ns
            self._set_product()
            self.min_rtt_at_ns = now_ns

    def _set_product(self) -> None:
        min_rtt_ns = self.min_rtt_ns or 0
        self._product_bytes = self.bandwidth_bps * min_rtt_ns // (BITS_PER_BYTE * NS_PER_S)

    def _check_full(self) -> None:
        if self.is_full:
            return
        if self.bandwidth_bps >= self._full_bandwidth_bps * _FULL_GROWTH:
            self._full_bandwidth_bps = self.bandwidth_bps
            self._full_rounds = 0
            return
        self._full_rounds += 1
        self.is_full = self._full_rounds >= _FULL_ROUNDS
