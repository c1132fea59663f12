"""BBR, version 3: draft-ietf-ccwg-bbr, the working copy of August 2026 behind its version 06.

The state machine; the model of the path is in `bbr_model.py`, rate and window are in
`bbr_output.py`. Section numbers are the draft's.
"""

# ruff: noqa: ARG002 - a controller need not use every argument

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.congestion.bbr_model import BETA, LOSS_THRESHOLD, UNLIMITED
from h3sim.transport.congestion.bbr_output import (
    ACCELERATING,
    CRUISE,
    DOWN,
    DRAIN,
    PROBE_BW,
    PROBE_RTT,
    REFILL,
    STARTUP,
    UP,
    BbrOutput,
    BbrState,
)
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_STARTUP_LOST_RANGES: Final = 6
"""Ranges of losses in a round that end Startup (StartupFullLossCnt)."""
_PROBE_RTT_NS: Final = 200 * NS_PER_MS
"""The duration of a probe for the RTT (ProbeRTTDuration)."""
_MAX_DRAIN_ROUNDS: Final = 3
"""The rounds after which Drain ends even if a queue is left (§ 5.3.2)."""
_MAX_RENO_ROUNDS: Final = 63
"""Rounds after which bandwidth is probed, at the latest, to coexist with Reno (§ 5.3.3.8)."""
_MIN_PROBE_WAIT_NS: Final = 2 * NS_PER_S
"""The least time between probes for bandwidth, to which up to a second is added (§ 5.3.3.8)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BbrController(BbrOutput):
    """BBR: paces at the measured bandwidth, and bounds what is in flight by a model of the path.

    This is the state machine (§§ 5.2 to 5.4). Choices that the draft leaves open, and what is
    missing:

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
        "_cycle_at_ns",
        "_drain_round",
        "_flight_bytes",
        "_is_probe_ending",
        "_is_probe_rtt_round_done",
        "_is_probe_sample",
        "_prior_flight_bytes",
        "_probe_rtt_until_ns",
        "_probe_wait_ns",
        "_source",
        "_undo_bounds",
        "_undo_state",
        "_was_precautionary",
        "_was_too_high",
    )

    def __init__(
        self, settings: ControllerSettings, *, source: random.Random | None = None
    ) -> None:
        super().__init__(settings)
        self._undo_bounds = (UNLIMITED, UNLIMITED, UNLIMITED)
        """The short-term and long-term bounds before the last recovery."""
        self._undo_state: BbrState | None = None
        """The state that its losses ended; None if they ended none."""
        self._source = source
        # Set with each ACK: the bytes in flight after it and before it.
        self._flight_bytes: int
        self._prior_flight_bytes: int
        self._is_probe_ending = False
        """True while ACKs are for data of a probe that is over (ACKS_PROBE_STOPPING, § 2.14; the
        draft's other phases make no difference)."""
        self._is_probe_sample = False
        """True while ACKs are for data sent in REFILL or UP that no loss was attributed to."""
        self._was_too_high = False
        """True if the last probe lost too much (prev_probe_too_high)."""
        self._was_precautionary = False
        """True if the last probe ended at a bound that an earlier one had found too high."""
        # Set when the state is entered that reads them:
        self._drain_round: int
        """The round in which Drain began."""
        self._cycle_at_ns: int
        """Time when DOWN began, the first state of a cycle (cycle_stamp)."""
        self._probe_wait_ns: int
        """The time from then to the next probe for bandwidth (bw_probe_wait)."""
        self._probe_rtt_until_ns: int | None
        """Time when ProbeRTT may end; None until few enough bytes are in flight."""
        self._is_probe_rtt_round_done: bool
        """True once a round has passed since then."""

    @property
    def is_probing_rtt(self) -> bool:
        """True in ProbeRTT (§ 5.3.4)."""
        return self.state is PROBE_RTT

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
        if is_loss_round_over and self._is_loss_in_round and self.state not in ACCELERATING:
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
        if state is STARTUP:
            self._full_pipe.was_full = False
            if self.state is not PROBE_RTT:
                self._enter(STARTUP)
        elif self.state is not PROBE_RTT:
            self._start_refill()

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
        excess = LOSS_THRESHOLD * before_bytes - (sample.lost_bytes - size)
        at_loss = before_bytes + int(excess / (1 - LOSS_THRESHOLD))
        self._was_too_high = True
        self._is_probe_sample = False  # once per probe
        if not sample.is_app_limited:
            self.inflight_longterm = max(at_loss, int(self._target_inflight() * BETA))
        if self.state is UP:
            self._undo_state = UP
            self._start_down(now_ns)

    # States

    def _check_startup_and_drain(self, now_ns: int, *, is_loss_round_over: bool) -> None:
        """Leave Startup when the path is full or loses much, and Drain when its queue is gone."""
        full_pipe = self._full_pipe
        is_lossy = is_loss_round_over and self._lost_ranges >= _STARTUP_LOST_RANGES
        if self.state is STARTUP and is_lossy and self._is_too_high():  # § 5.3.1.3
            self._undo_state = STARTUP
            full_pipe.is_full = full_pipe.was_full = True
            self.inflight_longterm = max(self._bdp_bytes(1.0), self._inflight_latest)
        if self.state is STARTUP and full_pipe.was_full:
            self._enter(DRAIN)
            self._drain_round = self._round_count
        if self.state is DRAIN:  # § 5.3.2
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
        self._enter(DOWN)

    def _start_refill(self) -> None:
        """Enter ProbeBW_REFILL: fill the path before probing (§ 5.3.3.3)."""
        self._reset_shortterm()
        self._up_rounds = self._up_acked_bytes = 0
        self._was_precautionary = False
        self._is_probe_ending = False
        self._start_round()
        self._enter(REFILL)

    def _start_up(self) -> None:
        """Enter ProbeBW_UP: probe for more bandwidth (§ 5.3.3.4)."""
        self._is_probe_sample = True
        self._start_round()
        self._full_pipe.restart(self._sample.rate_bps)
        self._enter(UP)
        self._raise_slope()

    def _update_cycle(self, now_ns: int) -> None:
        """Advance the states of ProbeBW (§ 5.3.3.9)."""
        if self._adapt_longterm():
            return
        state = self.state
        if state is DOWN or state is CRUISE:
            if self._is_time_to_probe(now_ns):
                self._start_refill()
            elif state is DOWN and self._flight_bytes <= min(
                self._with_headroom(), self._inflight_at(self.max_bandwidth_bps)
            ):
                self._enter(CRUISE)
        elif state is REFILL:
            if self._is_round_start:
                self._start_up()
        elif state is UP and self._is_time_to_go_down():
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

    def _adapt_longterm(self) -> bool:
        """Update the long-term model by what ACKs of a probe show; True if that began REFILL."""
        is_probe_bw = self.state in PROBE_BW
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
        if self.state is UP:
            self._raise_longterm()
        return False

    # ProbeRTT and idle times

    def _check_probe_rtt(self, now_ns: int) -> None:
        """Drain the path for a moment if no small RTT was seen for 5 s (§ 5.3.4)."""
        is_due = self._is_probe_rtt_expired and not self._is_idle_restart
        self._is_idle_restart = False
        if self.state is not PROBE_RTT:
            if not is_due:
                return
            self._save_window()
            self._enter(PROBE_RTT)
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
            self._enter(CRUISE)
        else:
            self._enter(STARTUP)

    def _restart_from_idle(self, now_ns: int) -> None:
        """Resume at the estimated bandwidth after idle time (§ 5.4.1)."""
        self._is_idle_restart = True
        self._aggregation.restart(now_ns)
        if self.state in PROBE_BW:
            self._set_pacing_rate(1.0)
        elif self.state is PROBE_RTT:
            self._end_probe_rtt(now_ns)
