"""BBR, version 3: draft-ietf-ccwg-bbr, the working copy of August 2026 behind its version 06.

Section numbers are the draft's.
"""

# ruff: noqa: ARG002 - a controller need not use every argument

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.delivery_rate import delivery_rate_bps
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
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


UNLIMITED: Final = 1 << 62
"""In place of infinity, which would turn bounds into floats."""
_BIT_NS_PER_BYTE: Final = BITS_PER_BYTE * NS_PER_S
"""A rate in bit/s, times nanoseconds, over this, is a number of bytes."""
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
        expected_bytes = bandwidth_bps * (now_ns - self._began_at_ns) // _BIT_NS_PER_BYTE
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


class BbrState(enum.Enum):
    """The state of the BBR state machine (§ 5.1)."""

    STARTUP = "startup"
    DRAIN = "drain"
    PROBE_BW_DOWN = "probe_bw_down"
    PROBE_BW_CRUISE = "probe_bw_cruise"
    PROBE_BW_REFILL = "probe_bw_refill"
    PROBE_BW_UP = "probe_bw_up"
    PROBE_RTT = "probe_rtt"


class Gains(NamedTuple):
    """The factors between the model and what is sent: the rate, and the bytes in flight."""

    pacing: float
    window: float


GAINS: Final[dict[BbrState, Gains]] = {
    BbrState.STARTUP: Gains(2.77, 2.0),
    BbrState.DRAIN: Gains(0.5, 2.0),
    BbrState.PROBE_BW_DOWN: Gains(0.9, 2.0),
    BbrState.PROBE_BW_CRUISE: Gains(1.0, 2.0),
    BbrState.PROBE_BW_REFILL: Gains(1.0, 2.0),
    BbrState.PROBE_BW_UP: Gains(1.25, 2.25),
    BbrState.PROBE_RTT: Gains(1.0, 0.5),
}
"""The gains of each state (§ 5.6.1)."""

# Looking up a member of an enum costs as much as the comparison with it.
_STARTUP, _DRAIN, _PROBE_RTT = BbrState.STARTUP, BbrState.DRAIN, BbrState.PROBE_RTT
_DOWN, _CRUISE = BbrState.PROBE_BW_DOWN, BbrState.PROBE_BW_CRUISE
_REFILL, _UP = BbrState.PROBE_BW_REFILL, BbrState.PROBE_BW_UP
# Tuples: a set would compute the hash of a member by a function of Python.
_PROBE_BW: Final = (_DOWN, _CRUISE, _REFILL, _UP)
_ACCELERATING: Final = (_STARTUP, _REFILL, _UP)
"""The states that probe for bandwidth, in which losses set no lower bounds."""

# The draft's names are in parentheses.
_LOSS_THRESHOLD: Final = 0.02
"""The loss rate above which too much was in flight (LossThresh)."""
_BETA: Final = 0.7
"""The factor of a reduction after losses (Beta)."""
_HEADROOM: Final = 0.15
"""The share of the bound that is left to other flows (Headroom)."""
_MAX_BANDWIDTH_CYCLES: Final = 2
"""The window of the bandwidth's maximum, in probing cycles (MaxBwFilterLen)."""
_STARTUP_LOST_RANGES: Final = 6
"""Ranges of losses in a round that end Startup (StartupFullLossCnt)."""
_MIN_RTT_FILTER_NS: Final = 10 * NS_PER_S
"""The lifetime of the smallest RTT (MinRTTFilterLen)."""
_PROBE_RTT_INTERVAL_NS: Final = 5 * NS_PER_S
"""The time without a small RTT after which it is probed for (ProbeRTTInterval)."""
_PROBE_RTT_NS: Final = 200 * NS_PER_MS
"""The duration of such a probe (ProbeRTTDuration)."""
_PACING_SHARE: Final = 0.99
"""The share of the bandwidth that PacingMarginPercent leaves."""
_MAX_DRAIN_ROUNDS: Final = 3
"""The rounds after which Drain ends even if a queue is left (§ 5.3.2)."""
_MAX_RENO_ROUNDS: Final = 63
"""Rounds after which bandwidth is probed, at the latest, to coexist with Reno (§ 5.3.3.8)."""
_MIN_PROBE_WAIT_NS: Final = 2 * NS_PER_S
"""The least time between probes for bandwidth, to which up to a second is added (§ 5.3.3.8)."""
_MAX_QUANTUM_BYTES: Final = 65_536
"""The largest aggregate that is sent at once (send_quantum)."""
_MAX_UP_ROUNDS: Final = 30
"""Rounds of ProbeBW_UP in which the growth of *inflight_longterm* doubles."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BbrController(ModelBasedController):
    """BBR: paces at the measured bandwidth, and bounds what is in flight by a model of the path.

    The long-term model is the highest delivery rate of two probing cycles, and what could be in
    flight without excess loss (*inflight_longterm*, Linux's inflight_hi); the short-term model
    (*bandwidth_shortterm_bps* and *inflight_shortterm*, bw_lo and inflight_lo) follows losses
    between probes. Choices that the draft leaves open, and what is missing:

    - Recovery ends when a packet sent after its beginning is acknowledged; persistent congestion
      takes the place of a retransmission timeout.
    - No sender or receiver offload is simulated, so its budget is one quantum, as for QUIC
      (§ 5.5.8.2).
    - The draft specifies no response to marks (§ 3.7): packets are not ECN-capable.

    *source* draws when bandwidth is probed again (§ 5.3.3.8); without it, that is 2.5 s and 63
    round trips at most, the mean.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> bbr = BbrController(ControllerSettings(max_datagram_bytes=1200))
    >>> bbr.state, bbr.congestion_window
    (<BbrState.STARTUP: 'startup'>, 12000)
    """

    __slots__ = (
        "_aggregation",
        "_bandwidth_latest_bps",
        "_bandwidths",
        "_cycle_at_ns",
        "_cycle_count",
        "_delivered_bytes",
        "_drain_round",
        "_flight_bytes",
        "_full_pipe",
        "_gains",
        "_inflight_latest",
        "_is_cwnd_limited",
        "_is_loss_in_round",
        "_is_loss_round_new",
        "_is_probe_ending",
        "_is_probe_rtt_expired",
        "_is_probe_rtt_round_done",
        "_is_probe_sample",
        "_is_round_start",
        "_largest_acked",
        "_last_lost",
        "_limited_until_bytes",
        "_loss_round_bytes",
        "_lost_bytes",
        "_lost_ranges",
        "_min_rtt_at_ns",
        "_prior_flight_bytes",
        "_probe_rtt_min_at_ns",
        "_probe_rtt_min_ns",
        "_probe_rtt_until_ns",
        "_probe_wait_ns",
        "_round_count",
        "_round_ends_at_bytes",
        "_rounds_since_up",
        "_sample",
        "_source",
        "_undo_bounds",
        "_undo_state",
        "_up_acked_bytes",
        "_up_bytes_per_packet",
        "_up_rounds",
        "_was_cwnd_limited",
        "_was_precautionary",
        "_was_too_high",
        "bandwidth_shortterm_bps",
        "inflight_longterm",
        "inflight_shortterm",
        "max_bandwidth_bps",
        "min_rtt_ns",
        "state",
    )

    reads_losses: ClassVar[bool] = True

    def __init__(
        self, settings: ControllerSettings, *, source: random.Random | None = None
    ) -> None:
        super().__init__(settings)
        self._enter(_STARTUP)
        self.max_bandwidth_bps = 0
        """The largest delivery rate of this probing cycle and the last (max_bw)."""
        self.min_rtt_ns: int | None = None
        """The smallest round-trip time of ten seconds; None without a sample."""
        self.bandwidth_shortterm_bps = UNLIMITED
        self.inflight_shortterm = UNLIMITED
        self.inflight_longterm = UNLIMITED
        self._undo_bounds = (UNLIMITED, UNLIMITED, UNLIMITED)
        """The short-term and long-term bounds before the last recovery."""
        self._undo_state: BbrState | None = None
        """The state that its losses ended; None if they ended none."""
        self._source = source
        self._full_pipe = FullPipeDetector()
        self._aggregation = AckAggregation()
        self._sample = RateSample()
        # Set with each ACK: the bytes in flight after it and before it.
        self._flight_bytes: int
        self._prior_flight_bytes: int
        self._begin_rounds()
        self._begin_probing()

    def _begin_rounds(self) -> None:
        """Set up the counters of rounds, deliveries and losses."""
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

    def _begin_probing(self) -> None:
        """Set up the probes for bandwidth and for the round-trip time."""
        self._is_probe_ending = False
        """True while ACKs are for data of a probe that is over (ACKS_PROBE_STOPPING, § 2.14; the
        draft's other phases make no difference)."""
        self._is_probe_sample = False
        """True while ACKs are for data sent in REFILL or UP that no loss was attributed to."""
        self._was_too_high = False
        """True if the last probe lost too much (prev_probe_too_high)."""
        self._was_precautionary = False
        """True if the last probe ended at a bound that an earlier one had found too high."""
        self._rounds_since_up = 0
        """The rounds since the last probe for bandwidth (rounds_since_bw_probe)."""
        self._min_rtt_at_ns = 0
        """Time of the sample that is the smallest RTT, which expires after 10 s."""
        self._probe_rtt_min_ns: int | None = None
        """The smallest RTT since ProbeRTT was last due, 5 s after such a sample."""
        self._probe_rtt_min_at_ns = 0
        # Set when the state is entered that reads them:
        self._drain_round: int
        """The round in which Drain began."""
        self._cycle_at_ns: int
        """Time when DOWN began, the first state of a cycle (cycle_stamp)."""
        self._probe_wait_ns: int
        """The time from then to the next probe for bandwidth (bw_probe_wait)."""
        self._up_rounds: int
        """The rounds of this probe, which double the growth each (bw_probe_up_rounds)."""
        self._up_acked_bytes: int
        """Acknowledged bytes that have not raised *inflight_longterm* yet."""
        self._up_bytes_per_packet: int
        """The bytes to be acknowledged for one more packet in *inflight_longterm*."""
        self._is_probe_rtt_expired: bool
        """True if ProbeRTT is due (probe_rtt_expired)."""
        self._probe_rtt_until_ns: int | None
        """Time when ProbeRTT may end; None until few enough bytes are in flight."""
        self._is_probe_rtt_round_done: bool
        """True once a round has passed since then."""

    @property
    def bandwidth_bps(self) -> int:
        """The bandwidth to be used: the long-term one, bounded by the short-term one."""
        return min(self.max_bandwidth_bps, self.bandwidth_shortterm_bps)

    @property
    def pacing_gain(self) -> float:
        """The factor between bandwidth and pacing rate."""
        return self._gains.pacing

    @property
    def is_probing_rtt(self) -> bool:
        """True in ProbeRTT (§ 5.3.4)."""
        return self.state is _PROBE_RTT

    # Events

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Store the state with the packet; restart from idle at the path's rate (§ 5.4)."""
        packet.in_flight_bytes = bytes_in_flight
        packet.lost_before_bytes = self._lost_bytes
        if bytes_in_flight + self._datagram_bytes > self.congestion_window:
            self._is_cwnd_limited = True
        if bytes_in_flight <= packet.size_bytes and packet.is_app_limited:
            self._restart_from_idle(packet.sent_at_ns)
        if self._limited_until_bytes is not None:
            packet.is_app_limited = True

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Update the model, the state, the rate and the window, in this order (§ 5.2.3)."""
        newest = packets[-1]
        if self._pacing_rate_bps is None:  # until then it follows the RTT
            self._pacing_rate_bps = self.pacing_rate_bps(rtt)
        self._take_sample(packets, now_ns, rtt)
        sample = self._sample
        self._prior_flight_bytes = bytes_in_flight
        self._flight_bytes = max(0, bytes_in_flight - sample.acked_bytes)
        is_loss_round_over = self._update_latest()
        self._update_max_bandwidth()
        if is_loss_round_over:
            self._adapt_lower_bounds()
        if self._is_round_start and not self._full_pipe.was_full:
            self._aggregation.forget()  # in Startup only this round counts
        window, bandwidth_bps = self.congestion_window, self.bandwidth_bps
        self._aggregation.on_acked(
            sample.acked_bytes, now_ns, bandwidth_bps, window, self._round_count
        )
        if self._is_round_start and not sample.is_app_limited:
            self._full_pipe.on_round(sample.rate_bps)
        self._check_startup_and_drain(now_ns, is_loss_round_over=is_loss_round_over)
        if is_loss_round_over:
            self._is_loss_in_round = False
            self._lost_ranges = 0
        if self._recovery_end is not None and newest.number >= self._recovery_end:
            self._recovery_end = None
            self._restore_window()
        if self._full_pipe.was_full:
            self._update_cycle(now_ns)
        self._update_min_rtt(newest.number, rtt.latest_rtt_ns, now_ns)
        self._check_probe_rtt(now_ns)
        if is_loss_round_over:  # AdvanceLatestDeliverySignals
            self._bandwidth_latest_bps = sample.rate_bps
            self._inflight_latest = sample.delivered_bytes
        self._set_pacing_rate(self.pacing_gain)
        self._set_window()

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Record losses; in a probe, find out how much in flight was too much (§ 5.5.10)."""
        if self._recovery_end is None:  # SaveStateUponLoss
            self._save_window()
            self._recovery_end = next_number
            self._undo_state = None
            self._undo_bounds = (
                self.bandwidth_shortterm_bps,
                self.inflight_shortterm,
                self.inflight_longterm,
            )
        for packet in packets:
            self._lost_bytes += packet.size_bytes
            if not self._is_loss_in_round:
                self._is_loss_in_round = self._is_loss_round_new = True
            if packet.number != self._last_lost + 1:
                self._lost_ranges += 1
            self._last_lost = packet.number
            if self._is_probe_sample:
                self._judge_probe(packet, now_ns)

    def on_spurious_loss(self, now_ns: int) -> None:
        """Return to the state and the bounds before the last recovery (§ 5.5.11.2)."""
        self._restore_window()
        self._is_loss_in_round = False
        self._full_pipe.restart(0)
        bandwidth_bps, inflight, longterm = self._undo_bounds
        self.bandwidth_shortterm_bps = max(self.bandwidth_shortterm_bps, bandwidth_bps)
        self.inflight_shortterm = max(self.inflight_shortterm, inflight)
        self.inflight_longterm = max(self.inflight_longterm, longterm)
        state, self._undo_state = self._undo_state, None
        if state is None or state is self.state:
            return
        if state is _STARTUP:
            self._full_pipe.was_full = False
            if self.state is not _PROBE_RTT:
                self._enter(_STARTUP)
        elif self.state is not _PROBE_RTT:
            self._start_refill()

    # Samples and the model

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
        """Follow the latest deliveries after a round with losses, unless probing (§ 5.5.10.3)."""
        if self.state in _ACCELERATING or not self._is_loss_in_round:
            return
        bandwidth_bps, inflight = self.bandwidth_shortterm_bps, self.inflight_shortterm
        if bandwidth_bps == UNLIMITED:
            bandwidth_bps = self.max_bandwidth_bps
        if inflight == UNLIMITED:
            inflight = self.congestion_window
        # Not below the latest delivery, which the path has just shown to sustain.
        self.bandwidth_shortterm_bps = max(self._bandwidth_latest_bps, int(_BETA * bandwidth_bps))
        self.inflight_shortterm = max(self._inflight_latest, int(_BETA * inflight))

    def _reset_shortterm(self) -> None:
        """Forget the bounds that losses between probes have set."""
        self.bandwidth_shortterm_bps = self.inflight_shortterm = UNLIMITED

    def _is_too_high(self) -> bool:
        """Return whether the loss rate shows that too much was in flight."""
        sample = self._sample
        return sample.lost_bytes > sample.in_flight_bytes * _LOSS_THRESHOLD

    def _judge_probe(self, packet: SentPacket, now_ns: int) -> None:
        """Bound the bytes in flight if losses exceeded the threshold (§ 5.5.10.2)."""
        sample, size = self._sample, packet.size_bytes
        sample.in_flight_bytes = packet.in_flight_bytes
        sample.lost_bytes = self._lost_bytes - packet.lost_before_bytes
        sample.is_app_limited = packet.is_app_limited
        if not self._is_too_high():
            return
        # Somewhere in this packet the loss rate reached the threshold: at x of its bytes,
        # lost + x = threshold * (in flight + x). What was in flight up to there was still safe.
        before_bytes = sample.in_flight_bytes - size
        excess = _LOSS_THRESHOLD * before_bytes - (sample.lost_bytes - size)
        at_loss = before_bytes + int(excess / (1 - _LOSS_THRESHOLD))
        self._was_too_high = True
        self._is_probe_sample = False  # once per probe
        if not sample.is_app_limited:
            self.inflight_longterm = max(at_loss, int(self._target_inflight() * _BETA))
        if self.state is _UP:
            self._undo_state = _UP
            self._start_down(now_ns)

    # States

    def _enter(self, state: BbrState) -> None:
        """Enter a state, with its gains."""
        self.state = state
        self._gains = GAINS[state]

    def _check_startup_and_drain(self, now_ns: int, *, is_loss_round_over: bool) -> None:
        """Leave Startup when the path is full or loses much, and Drain when its queue is gone."""
        full_pipe = self._full_pipe
        is_lossy = is_loss_round_over and self._lost_ranges >= _STARTUP_LOST_RANGES
        if self.state is _STARTUP and is_lossy and self._is_too_high():  # § 5.3.1.3
            self._undo_state = _STARTUP
            full_pipe.is_full = full_pipe.was_full = True
            self.inflight_longterm = max(self._bdp_bytes(1.0), self._inflight_latest)
        if self.state is _STARTUP and full_pipe.was_full:
            self._enter(_DRAIN)
            self._drain_round = self._round_count
        if self.state is _DRAIN:  # § 5.3.2
            is_late = self._round_count > self._drain_round + _MAX_DRAIN_ROUNDS
            if is_late or self._flight_bytes <= self._inflight(1.0):
                self._start_down(now_ns)

    def _start_down(self, now_ns: int) -> None:
        """Enter ProbeBW_DOWN, and draw when to probe next (§ 5.3.3.1)."""
        self._is_loss_in_round = False
        self._bandwidth_latest_bps = self._inflight_latest = 0  # ResetCongestionSignals
        source = self._source
        self._rounds_since_up = 0 if source is None else source.randint(0, 1)
        spread = 0.5 if source is None else source.random()
        self._probe_wait_ns = _MIN_PROBE_WAIT_NS + int(spread * NS_PER_S)
        self._cycle_at_ns = now_ns
        self._is_probe_ending = True
        self._start_round()
        self._enter(_DOWN)

    def _start_refill(self) -> None:
        """Enter ProbeBW_REFILL: fill the path before probing (§ 5.3.3.3)."""
        self._reset_shortterm()
        self._up_rounds = self._up_acked_bytes = 0
        self._was_precautionary = False
        self._is_probe_ending = False
        self._start_round()
        self._enter(_REFILL)

    def _start_up(self) -> None:
        """Enter ProbeBW_UP: probe for more bandwidth (§ 5.3.3.4)."""
        self._is_probe_sample = True
        self._start_round()
        self._full_pipe.restart(self._sample.rate_bps)
        self._enter(_UP)
        self._raise_slope()

    def _update_cycle(self, now_ns: int) -> None:
        """Advance the states of ProbeBW (§ 5.3.3.9)."""
        if self._adapt_longterm():
            return
        state = self.state
        if state is _DOWN or state is _CRUISE:
            if self._is_time_to_probe(now_ns):
                self._start_refill()
            elif state is _DOWN and self._flight_bytes <= min(
                self._with_headroom(), self._inflight_at(self.max_bandwidth_bps)
            ):
                self._enter(_CRUISE)
        elif state is _REFILL:
            if self._is_round_start:
                self._start_up()
        elif state is _UP and self._is_time_to_go_down():
            self._was_too_high = False
            self._start_down(now_ns)

    def _is_time_to_probe(self, now_ns: int) -> bool:
        """Return whether 2 to 3 s, or as many rounds as Reno would need, have passed."""
        # A random time, so that flows that share a path do not probe in step; and no later than a
        # Reno flow would have regained its window, so that such flows can coexist (§ 5.3.3.8).
        if now_ns > self._cycle_at_ns + self._probe_wait_ns:
            return True
        reno_rounds = self._target_inflight() // self._datagram_bytes
        return self._rounds_since_up >= min(reno_rounds, _MAX_RENO_ROUNDS)

    def _is_time_to_go_down(self) -> bool:
        """Return whether UP has filled the path, or has reached a bound that was too high."""
        longterm = self.inflight_longterm
        # Before the ACK, as in Linux (prior_in_flight): the window keeps it at the bound at most.
        if self._was_too_high and self._prior_flight_bytes >= longterm:
            self._was_precautionary = True
            return True
        if self._is_window_full() and self.congestion_window >= longterm:
            self._full_pipe.restart(self._sample.rate_bps)  # the bound limits it, not the path
            return False
        return self._full_pipe.is_full

    def _is_window_full(self) -> bool:
        """Return whether the window limited the sender in this round or the one before."""
        return self._is_cwnd_limited or self._was_cwnd_limited

    def _adapt_longterm(self) -> bool:
        """Update the long-term model by what ACKs of a probe show; True if that began REFILL."""
        is_probe_bw = self.state in _PROBE_BW
        if self._is_round_start and self._is_probe_ending:
            self._is_probe_sample = False
            self._is_probe_ending = False
            if is_probe_bw and not self._sample.is_app_limited:
                self._cycle_count += 1
            if is_probe_bw and self._was_precautionary and not self._was_too_high:
                self._start_refill()
                return True
        if self.inflight_longterm == UNLIMITED or self._is_too_high():
            return False
        self.inflight_longterm = max(self.inflight_longterm, self._sample.in_flight_bytes)
        if self.state is _UP:
            self._raise_longterm()
        return False

    def _raise_longterm(self) -> None:
        """Raise the bound by 1, 2, 4, ... packets per round trip (§ 5.3.3.5)."""
        if not self._is_window_full() or self.congestion_window < self.inflight_longterm:
            return
        self._up_acked_bytes += self._sample.acked_bytes
        steps, self._up_acked_bytes = divmod(self._up_acked_bytes, self._up_bytes_per_packet)
        self.inflight_longterm += steps * self._datagram_bytes
        if self._is_round_start:
            self._raise_slope()

    def _raise_slope(self) -> None:
        """Double the growth per round trip; at most a packet per acknowledged packet."""
        growth = 1 << self._up_rounds
        self._up_rounds = min(self._up_rounds + 1, _MAX_UP_ROUNDS)
        self._up_bytes_per_packet = max(self.congestion_window // growth, self._datagram_bytes)

    # ProbeRTT and idle times

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

    def _check_probe_rtt(self, now_ns: int) -> None:
        """Drain the path for a moment if no small RTT was seen for 5 s (§ 5.3.4)."""
        is_due = self._is_probe_rtt_expired and not self._is_idle_restart
        self._is_idle_restart = False
        if self.state is not _PROBE_RTT:
            if not is_due:
                return
            self._save_window()
            self._enter(_PROBE_RTT)
            self._probe_rtt_until_ns = None
            self._is_probe_ending = True
            self._start_round()
        # The state holds packets back: rates measured in it say nothing about the path.
        self._limited_until_bytes = self._delivered_bytes + self._flight_bytes
        if self._probe_rtt_until_ns is None:
            if self._flight_bytes <= self._probe_rtt_window():
                self._probe_rtt_until_ns = now_ns + _PROBE_RTT_NS
                self._is_probe_rtt_round_done = False
                self._start_round()
            return
        if self._is_round_start:
            self._is_probe_rtt_round_done = True
        if self._is_probe_rtt_round_done:
            self._end_probe_rtt(now_ns)

    def _end_probe_rtt(self, now_ns: int) -> None:
        """Leave ProbeRTT once its time is over (§ 5.3.4.4)."""
        until_ns = self._probe_rtt_until_ns
        if until_ns is None or now_ns <= until_ns:
            return
        self._probe_rtt_min_at_ns = now_ns
        self._restore_window()
        self._reset_shortterm()
        # DOWN only for its side effect, the time of the next probe: the path is drained already.
        if self._full_pipe.was_full:
            self._start_down(now_ns)
            self._enter(_CRUISE)
        else:
            self._enter(_STARTUP)

    def _restart_from_idle(self, now_ns: int) -> None:
        """Resume at the estimated bandwidth after idle time (§ 5.4.1)."""
        self._is_idle_restart = True
        self._aggregation.restart(now_ns)
        if self.state in _PROBE_BW:
            self._set_pacing_rate(1.0)
        elif self.state is _PROBE_RTT:
            self._end_probe_rtt(now_ns)

    # Rate and window

    def _set_pacing_rate(self, gain: float) -> None:
        """Follow the bandwidth; before the path is full, only upwards (§ 5.6.2)."""
        # Slightly below the estimate (pacing margin), so that a queue drains instead of standing.
        rate_bps = int(gain * self.bandwidth_bps * _PACING_SHARE)
        current_bps = self._pacing_rate_bps
        if rate_bps and (self._full_pipe.was_full or current_bps is None or rate_bps > current_bps):
            self._pacing_rate_bps = rate_bps

    def _bdp_bytes(self, gain: float) -> int:
        """Return *gain* times the bandwidth-delay product."""
        return self._product_bytes(self.bandwidth_bps, gain)

    def _product_bytes(self, bandwidth_bps: int, gain: float) -> int:
        """Return *gain* times *bandwidth_bps* times the RTT; without one, the first window."""
        if self.min_rtt_ns is None:
            return self._first_window_bytes
        return int(gain * (bandwidth_bps * self.min_rtt_ns // _BIT_NS_PER_BYTE))

    def _target_inflight(self) -> int:
        """Return the bytes in flight that use the path in full, within the window."""
        return min(self._bdp_bytes(1.0), self.congestion_window)

    def _quantized(self, inflight: int) -> int:
        """Return at least a quantum and the minimum window (§ 5.6.4.2)."""
        in_a_ms_bytes = (self._pacing_rate_bps or 0) * NS_PER_MS // _BIT_NS_PER_BYTE
        quantum_bytes = max(min(in_a_ms_bytes, _MAX_QUANTUM_BYTES), 2 * self._datagram_bytes)
        inflight = max(inflight, quantum_bytes, self._min_pipe_bytes)
        # Two packets more in UP: over a path with a tiny BDP the probe would otherwise round away.
        return inflight + 2 * self._datagram_bytes if self.state is _UP else inflight

    def _inflight(self, gain: float) -> int:
        """Return *gain* times the bandwidth-delay product, with room for bursts."""
        return self._quantized(self._bdp_bytes(gain))

    def _inflight_at(self, bandwidth_bps: int) -> int:
        """Return the bytes in flight that *bandwidth_bps* needs, with room for bursts."""
        return self._quantized(self._product_bytes(bandwidth_bps, 1.0))

    def _with_headroom(self) -> int:
        """Return the bytes that may be in flight if room is left for other flows."""
        longterm = self.inflight_longterm
        if longterm == UNLIMITED:
            return UNLIMITED
        headroom = max(self._datagram_bytes, int(_HEADROOM * longterm))
        return max(longterm - headroom, self._min_pipe_bytes)

    def _probe_rtt_window(self) -> int:
        """Return the congestion window of ProbeRTT: half a BDP, but not below the minimum."""
        return max(self._bdp_bytes(GAINS[_PROBE_RTT].window), self._min_pipe_bytes)

    def _set_window(self) -> None:
        """Grow towards the most that may be in flight, within the model's bounds (§ 5.6.4.6)."""
        bdp_bytes = self._bdp_bytes(self._gains.window)
        max_inflight = self._quantized(bdp_bytes + self._aggregation.extra_bytes)
        # By no more than was acknowledged, as in slow start: packets leave as others arrive, and a
        # raised bound causes no burst.
        window, acked_bytes = self.congestion_window, self._sample.acked_bytes
        if self._full_pipe.was_full:
            window = min(window + acked_bytes, max_inflight)
        elif window < max_inflight or self._delivered_bytes < self._first_window_bytes:
            window += acked_bytes
        window = max(window, self._min_pipe_bytes)
        bound = UNLIMITED
        if self.state is _PROBE_RTT:
            window = min(window, self._probe_rtt_window())
        if self.state is _PROBE_RTT or self.state is _CRUISE:
            bound = self._with_headroom()
        elif self.state in _PROBE_BW:
            bound = self.inflight_longterm
        bound = max(min(bound, self.inflight_shortterm), self._min_pipe_bytes)
        self.congestion_window = min(window, bound)
