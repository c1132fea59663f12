"""BBR, version 1."""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.compiling import mypyc_attr
from h3sim.transport.congestion.bbr_model import PathModel
from h3sim.transport.congestion.bbr_states import GAINS, BbrState, GainCycle, ProbeRtt
from h3sim.transport.congestion.controller import CongestionController
from h3sim.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from h3sim.transport.congestion.settings import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["BbrController", "BbrState"]

_MIN_PIPE_PACKETS: Final = 4
"""With fewer in flight a receiver that acknowledges every second packet leaves the sender waiting
(BBRMinPipeCwnd, § 4.2.3.2)."""
_UNKNOWN_RTT_NS: Final = NS_PER_MS
"""For the first pacing rate, before a round-trip time was measured (BBRInitPacingRate, § 4.2.1)."""
_SLOW_BPS: Final = 1_200_000
_FAST_BPS: Final = 24_000_000
_MAX_QUANTUM_BYTES: Final = 65_536
"""The limits of send_quantum (§ 4.2.2): what is slow leaves packet by packet, what is fast in
bursts of a millisecond, 64 KB at most."""


# Looking a member of an enum up costs as much as the comparison with it; and `min` and `max` as
# much as ten comparisons, so what each ACK comes by does without.
_STARTUP, _DRAIN = BbrState.STARTUP, BbrState.DRAIN
_PROBE_BW, _PROBE_RTT = BbrState.PROBE_BW, BbrState.PROBE_RTT


@mypyc_attr(allow_interpreted_subclasses=True)
class BbrController(CongestionController):
    """Paces at the measured bandwidth and keeps two bandwidth-delay products in flight at most.

    This is BBRv1: draft-cardwell-iccrg-bbr-congestion-control-00 of July 2017 (-01 of 2021 already
    describes version 2); the sections named here are its. There is no `ssthresh`. What the draft
    leaves to the transport: recovery is over when a packet is acknowledged that was sent after its
    beginning, so that all of it is the round trip of packet conservation (§ 4.2.3.4); persistent
    congestion takes the place of a timeout, with the minimum window of RFC 9002.

    *phases* draws the phase in which probing for bandwidth begins (§ 4.3.4.3); without it, it is
    always the first, in which the rate is raised.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> bbr = BbrController(ControllerSettings(max_datagram_bytes=1200))
    >>> bbr.state, bbr.congestion_window
    (<BbrState.STARTUP: 'startup'>, 12000)
    """

    __slots__ = (
        "_cycle",
        "_datagram_bytes",
        "_first_window_bytes",
        "_has_lost",
        "_is_idle_restart",
        "_min_pipe_bytes",
        "_minimum_bytes",
        "_model",
        "_pacing_gain",
        "_pacing_rate_bps",
        "_prior_window",
        "_probe_rtt",
        "_recovery_end",
        "_window_gain",
        "state",
    )

    def __init__(
        self, settings: ControllerSettings, *, phases: random.Random | None = None
    ) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self.state = _STARTUP
        self._datagram_bytes = settings.max_datagram_bytes
        self._first_window_bytes = settings.initial_congestion_window
        self._minimum_bytes = settings.minimum_window_bytes
        self._min_pipe_bytes = _MIN_PIPE_PACKETS * settings.max_datagram_bytes
        self._model = PathModel()
        self._pacing_rate_bps: int | None = None
        self._pacing_gain, self._window_gain = GAINS[self.state]
        self._cycle = GainCycle(phases)
        self._probe_rtt = ProbeRtt(self._min_pipe_bytes)
        self._prior_window = 0
        self._recovery_end: int | None = None
        """The first packet that was sent after recovery began; None outside recovery."""
        self._has_lost = False
        self._is_idle_restart = False

    @property
    def bandwidth_bps(self) -> int:
        """The estimate of the bottleneck's bandwidth (BtlBw)."""
        return self._model.bandwidth_bps

    @property
    def min_rtt_ns(self) -> int | None:
        """The estimate of the round trip's propagation time (RTprop); None without a sample."""
        return self._model.min_rtt_ns

    @property
    def pacing_gain(self) -> float:
        """What the bandwidth is multiplied with for the pacing rate."""
        return self._pacing_gain

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Restart from idle at the rate of the path (§ 4.3.4.4)."""
        if self._model.limited_until_bytes is not None:  # else it would do nothing
            self._model.on_sent(packet.number)
        if bytes_in_flight <= packet.size_bytes and packet.is_app_limited:
            self._is_idle_restart = True
            if self.state is _PROBE_BW:
                self._set_pacing_rate(1.0)

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Update the model, the state, the rate and the window, in this order (§ 3.3)."""
        model = self._model
        before_bytes = model.delivered_bytes  # before the model counts this ACK
        number = packets[-1].number
        model.on_acked(packets, now_ns, rtt)
        acked_bytes = model.delivered_bytes - before_bytes
        left_bytes = bytes_in_flight - acked_bytes if bytes_in_flight > acked_bytes else 0
        if self._pacing_rate_bps is None:  # until then it follows the RTT
            self._pacing_rate_bps = self.pacing_rate_bps(rtt)
        if self._recovery_end is not None and number >= self._recovery_end:
            self._end_recovery()
        # With what was in flight before this ACK: that shows whether the raised rate filled the
        # path.
        if self.state is _PROBE_BW and self._is_phase_over(now_ns, bytes_in_flight):
            self._pacing_gain = self._cycle.advance(now_ns)
        if self.state is _STARTUP or self.state is _DRAIN:
            self._check_drain(now_ns, left_bytes)
        model.on_rtt(number, rtt.latest_rtt_ns, now_ns)
        if model.is_min_rtt_expired or self.state is _PROBE_RTT:
            self._check_probe_rtt(now_ns, left_bytes)
        self._is_idle_restart = False  # it spared the ACK after an idle time only
        self._set_pacing_rate(self._pacing_gain)
        self._set_window(acked_bytes, left_bytes)
        self._has_lost = False

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Send no more than is delivered for a round trip; the model remains (§ 4.2.3.4)."""
        lost_bytes = sum(packet.size_bytes for packet in packets)
        self._has_lost = True
        if self._recovery_end is not None:
            window = self.congestion_window - lost_bytes
            self.congestion_window = max(window, self._datagram_bytes)  # one may always go
            return
        self._save_window()
        self._recovery_end = next_number
        # What is delivered by the same ACK is added in `_set_window`, which is told after this.
        self.congestion_window = max(0, bytes_in_flight - lost_bytes) + self._datagram_bytes

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to the minimum window until recovery is over (RFC 9002 § 7.6.2)."""
        self._save_window()
        self.congestion_window = self._minimum_bytes

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate; before the first ACK that of the first window (§ 4.2.1)."""
        if self._pacing_rate_bps is not None:
            return self._pacing_rate_bps
        rtt_ns = max(1, rtt.smoothed_rtt_ns) if rtt.has_sample else _UNKNOWN_RTT_NS
        nominal_bps = self._first_window_bytes * BITS_PER_BYTE * NS_PER_S // rtt_ns
        return max(1, int(self._pacing_gain * nominal_bps))

    # States

    def _enter(self, state: BbrState) -> None:
        self.state = state
        self._pacing_gain, self._window_gain = GAINS[state]

    def _check_drain(self, now_ns: int, left_bytes: int) -> None:
        """Leave Startup when the path is full, and Drain when the queue is gone (§ 4.3.3)."""
        if self.state is _STARTUP and self._model.is_full:
            self._enter(_DRAIN)
        # No `elif`: a path may be found full when its queue is already gone.
        if self.state is _DRAIN and left_bytes <= self._inflight_bytes(1.0):
            self._enter_probe_bw(now_ns)

    def _enter_probe_bw(self, now_ns: int) -> None:
        self._enter(_PROBE_BW)
        self._pacing_gain = self._cycle.begin(now_ns)

    def _is_phase_over(self, now_ns: int, prior_bytes: int) -> bool:
        """Whether the next phase of the gain cycle is due (§ 4.3.4.3)."""
        is_full_length = self._cycle.has_lasted(now_ns, self._model.min_rtt_ns)
        gain = self._pacing_gain
        if gain > 1:
            # Only when the raised rate has shown in what is in flight, or lost something.
            return is_full_length and (self._has_lost or prior_bytes >= self._inflight_bytes(gain))
        if gain < 1:
            return is_full_length or prior_bytes <= self._inflight_bytes(1.0)
        return is_full_length

    def _check_probe_rtt(self, now_ns: int, left_bytes: int) -> None:
        """Empty the path for a moment if the smallest RTT is ten seconds old (§ 4.3.5)."""
        model = self._model
        # Who asks outside ProbeRTT does so because that is old.
        if self.state is not _PROBE_RTT and not self._is_idle_restart:
            self._save_window()
            self._enter(_PROBE_RTT)
            self._probe_rtt.begin()
        if self.state is _PROBE_RTT and self._probe_rtt.is_over(model, now_ns, left_bytes):
            model.min_rtt_at_ns = now_ns  # it stands for ten seconds more
            self._restore_window()
            if model.is_full:
                self._enter_probe_bw(now_ns)
            else:
                self._enter(_STARTUP)

    # Rate and window

    def _set_pacing_rate(self, gain: float) -> None:
        """Follow the bandwidth; before the path is full, only upwards (§ 4.2.1)."""
        rate_bps = int(gain * self._model.bandwidth_bps)
        current_bps = self._pacing_rate_bps
        # In Startup a low sample says more of the sender than of the path, and may not slow it
        # down.
        if rate_bps and (self._model.is_full or current_bps is None or rate_bps > current_bps):
            self._pacing_rate_bps = rate_bps

    def _inflight_bytes(self, gain: float) -> int:
        """Return what may be in flight at *gain*, with room for bursts (§ 4.2.3.2)."""
        inflight_bytes = self._model.inflight_bytes(gain)
        if inflight_bytes is None:
            return self._first_window_bytes
        return inflight_bytes + 3 * _quantum_bytes(self._pacing_rate_bps or 0, self._datagram_bytes)

    def _set_window(self, acked_bytes: int, left_bytes: int) -> None:
        """Grow towards the target; in recovery, send what was delivered (§ 4.2.3.6)."""
        window = self.congestion_window
        model, least_bytes = self._model, self._min_pipe_bytes
        if self._recovery_end is not None:
            window = max(window, left_bytes + acked_bytes)
        else:
            target_bytes = self._inflight_bytes(self._window_gain)
            if model.is_full:
                grown = window + acked_bytes
                window = grown if grown < target_bytes else target_bytes
            # The first window is let out whatever the target: early samples make it too small.
            elif window < target_bytes or model.delivered_bytes < self._first_window_bytes:
                window += acked_bytes
            if window < least_bytes:
                window = least_bytes
        if window > least_bytes and self.state is _PROBE_RTT:
            window = least_bytes
        self.congestion_window = window

    def _end_recovery(self) -> None:
        """Restore the window: what was sent after the loss arrives."""
        self._recovery_end = None
        self._restore_window()

    def _save_window(self) -> None:
        window = self.congestion_window
        if self._recovery_end is not None or self.state is _PROBE_RTT:
            window = max(self._prior_window, window)
        self._prior_window = window

    def _restore_window(self) -> None:
        self.congestion_window = max(self.congestion_window, self._prior_window)


def _quantum_bytes(rate_bps: int, datagram_bytes: int) -> int:
    """Return how much is sent at once (send_quantum, § 4.2.2)."""
    if rate_bps < _SLOW_BPS:
        return datagram_bytes
    if rate_bps < _FAST_BPS:
        return 2 * datagram_bytes
    in_a_ms_bytes = rate_bps * NS_PER_MS // (BITS_PER_BYTE * NS_PER_S)
    return min(in_a_ms_bytes, _MAX_QUANTUM_BYTES)
