"""BBR, version 1, as in studies of its time: the path model, and the states."""

# ruff: noqa: ARG002 - a controller need not use every argument

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from h3sim.transport.congestion.bbr_common import (
    FullPipeDetector,
    Gains,
    ModelBasedController,
    WindowedMaximum,
)
from h3sim.transport.delivery_rate import delivery_rate_bps
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_BANDWIDTH_FILTER_ROUNDS: Final = 10
"""The window of the bandwidth's maximum, in round trips (BtlBwFilterLen)."""
_MIN_RTT_FILTER_NS: Final = 10 * NS_PER_S
"""The lifetime of the smallest RTT (RTpropFilterLen)."""
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
        "_full_pipe",
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
        """The bandwidth-delay product: read with each ACK, but changed by few."""
        self.min_rtt_at_ns = 0
        self.is_min_rtt_expired = False
        self.delivered_bytes = 0
        self.round_count = 0
        self.is_round_start = False
        self.is_full = False
        self._round_ends_at_bytes = 0
        self._bandwidths = WindowedMaximum(length=_BANDWIDTH_FILTER_ROUNDS)
        self._full_pipe = FullPipeDetector()
        self._largest_acked = -1
        self.limited_until_bytes: int | None = None
        """Delivered bytes below which a low rate reflects the sender, not the path; None: none
        do."""
        self._limited_from = 0
        self._limited_to = -1
        """The first and last packet sent meanwhile; there is none if the first is above the
        last."""

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
        """Treat packets as app-limited until everything in flight has been delivered."""
        if self.limited_until_bytes is None:
            self._limited_from = _NOT_YET
        self.limited_until_bytes = self.delivered_bytes + bytes_in_flight

    def on_sent(self, number: int) -> None:
        """Record a packet that is sent, which matters only while low rates are ignored."""
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
        # § 4.1.1.2: an app-limited sample underestimates the path, so only a higher one counts.
        if rate_bps is not None and (rate_bps >= self.bandwidth_bps or not is_cwnd_underutilized):
            bandwidth_bps = self._bandwidths.put(rate_bps, self.round_count)
            if bandwidth_bps != self.bandwidth_bps:
                self.bandwidth_bps = bandwidth_bps
                self._set_product()
        if self.is_round_start and not is_cwnd_underutilized:
            self._full_pipe.on_round(self.bandwidth_bps)
            self.is_full = self._full_pipe.was_full

    def on_rtt(self, number: int, latest_rtt_ns: int, now_ns: int) -> None:
        """Take an RTT sample, if *number* is the highest acknowledged yet (§ 4.1.2)."""
        # Before the sample is taken: the state machine checks whether the old one had expired
        # (§ 4.1.2.3).
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
        """Update the bandwidth-delay product, which has just changed."""
        min_rtt_ns = self.min_rtt_ns or 0
        self._product_bytes = self.bandwidth_bps * min_rtt_ns // (BITS_PER_BYTE * NS_PER_S)


_HIGH_GAIN: Final = 2.8853900817779268
"""2 / ln 2: the least gain that doubles the rate in each round."""
_PROBE_GAINS = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""The pacing gains of the phases of ProbeBW, in their order."""
_PROBE_RTT_NS: Final = 200 * NS_PER_MS
"""The least duration of ProbeRTT (ProbeRTTDuration)."""


class Bbr1State(enum.Enum):
    """The state of the BBR state machine (§ 4.3)."""

    STARTUP = "startup"
    DRAIN = "drain"
    PROBE_BW = "probe_bw"
    PROBE_RTT = "probe_rtt"


GAINS: dict[Bbr1State, Gains] = {
    Bbr1State.STARTUP: Gains(_HIGH_GAIN, _HIGH_GAIN),
    Bbr1State.DRAIN: Gains(1 / _HIGH_GAIN, _HIGH_GAIN),
    Bbr1State.PROBE_BW: Gains(1.0, 2.0),
    Bbr1State.PROBE_RTT: Gains(1.0, 1.0),
}
"""The gains that each state begins with."""


class GainCycle:
    """The phases of ProbeBW, which alternately raise and lower the rate (§ 4.3.4).

    *phases* draws the one in which it begins; without it, it is always the first, in which the rate
    is raised.
    """

    __slots__ = ("_at_ns", "_phase", "_phases")

    def __init__(self, phases: random.Random | None) -> None:
        self._phases = phases
        self._phase = 0
        self._at_ns = 0
        """Time when the phase began."""

    def begin(self, now_ns: int) -> float:
        """Return the gain of any phase but the one that lowers the rate (§ 4.3.4.3)."""
        # 8 - (0 to 6) is 8 or 2 to 7, that is any phase but 1, which lowers the rate: there is no
        # queue yet to be drained.
        draw = 0 if self._phases is None else self._phases.randint(0, 6)
        return self._enter(len(_PROBE_GAINS) - draw, now_ns)

    def advance(self, now_ns: int) -> float:
        """Enter the next phase; return its gain."""
        return self._enter(self._phase + 1, now_ns)

    def has_lasted(self, now_ns: int, min_rtt_ns: int | None) -> bool:
        """Return whether the phase has lasted for the smallest round trip."""
        return min_rtt_ns is not None and now_ns - self._at_ns > min_rtt_ns

    def _enter(self, phase: int, now_ns: int) -> float:
        """Enter a phase, counted on through all cycles; return its gain."""
        self._phase = phase % len(_PROBE_GAINS)
        self._at_ns = now_ns
        return _PROBE_GAINS[self._phase]


class ProbeRtt:
    """ProbeRTT: little is in flight, for 200 ms and a round trip (§ 4.3.5)."""

    __slots__ = ("_is_round_done", "_pipe_bytes", "_until_ns")

    def __init__(self, pipe_bytes: int) -> None:
        self._pipe_bytes = pipe_bytes
        self._until_ns: int | None = None
        """Earliest end of ProbeRTT; None while more than *pipe_bytes* are in flight."""
        self._is_round_done = False

    def begin(self) -> None:
        """Begin; the packets in flight have to arrive first."""
        self._until_ns = None

    def is_over(self, model: PathModel, now_ns: int, left_bytes: int) -> bool:
        """Return whether ProbeRTT is over, with *left_bytes* in flight."""
        # Throughout: the state itself holds packets back, which must not lower the bandwidth.
        model.ignore_low_rates(left_bytes)
        if self._until_ns is None:
            # The 200 ms begin when the pipe is empty enough for its RTT to be seen, not when the
            # state does.
            if left_bytes <= self._pipe_bytes:
                self._until_ns = now_ns + _PROBE_RTT_NS
                self._is_round_done = False
                model.start_round()
            return False
        if model.is_round_start:
            self._is_round_done = True
        return self._is_round_done and now_ns > self._until_ns


_SLOW_BPS: Final = 1_200_000
_FAST_BPS: Final = 24_000_000
"""Below the first rate packets leave one by one, below the second in pairs, and above it in bursts
of a millisecond (send_quantum, § 4.2.2)."""
_MAX_QUANTUM_BYTES: Final = 65_536
"""The largest burst."""


# Looking up a member of an enum costs as much as the comparison with it, and `min` and `max` as
# much as ten comparisons, so the code for each ACK avoids them.
_STARTUP, _DRAIN = Bbr1State.STARTUP, Bbr1State.DRAIN
_PROBE_BW, _PROBE_RTT = Bbr1State.PROBE_BW, Bbr1State.PROBE_RTT


@mypyc_attr(allow_interpreted_subclasses=True)
class Bbr1Controller(ModelBasedController):
    """BBR: paces at the measured bandwidth, with at most two bandwidth-delay products in flight.

    This is BBRv1: draft-cardwell-iccrg-bbr-congestion-control-00 of July 2017 (-01 of 2021 already
    describes version 2); section numbers here are the draft's. There is no `ssthresh`. Choices that
    the draft leaves to the transport: recovery ends when a packet sent after its beginning is
    acknowledged, so that all of it is the round trip of packet conservation (§ 4.2.3.4); persistent
    congestion takes the place of a timeout, with the minimum window of RFC 9002.

    *phases* draws the phase in which probing for bandwidth begins (§ 4.3.4.3); without it, it is
    always the first, in which the rate is raised.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> bbr = Bbr1Controller(ControllerSettings(max_datagram_bytes=1200))
    >>> bbr.state, bbr.congestion_window
    (<Bbr1State.STARTUP: 'startup'>, 12000)
    """

    __slots__ = (
        "_cycle",
        "_has_lost",
        "_model",
        "_pacing_gain",
        "_probe_rtt",
        "_window_gain",
        "state",
    )

    def __init__(
        self, settings: ControllerSettings, *, phases: random.Random | None = None
    ) -> None:
        super().__init__(settings)
        self.state = _STARTUP
        self._model = PathModel()
        self._pacing_gain, self._window_gain = GAINS[self.state]
        self._cycle = GainCycle(phases)
        self._probe_rtt = ProbeRtt(self._min_pipe_bytes)
        self._has_lost = False
        """True if packets were declared lost since the last ACK was processed."""

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
        """The factor between the bandwidth estimate and the pacing rate."""
        return self._pacing_gain

    @property
    def is_probing_rtt(self) -> bool:
        """True in ProbeRTT (§ 4.3.5)."""
        return self.state is _PROBE_RTT

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
        # With the bytes in flight before this ACK: they show whether the raised rate filled the
        # path. The order is that of BBRUpdateModelAndState (§ 3.3): a changed order changes the
        # phases.
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
            # § 4.2.3.4: in later losses of the same episode only the lost packets leave the window.
            return
        self._save_window()
        self._recovery_end = next_number
        # What the same ACK delivers is added in `_set_window`, which runs after this.
        self.congestion_window = max(0, bytes_in_flight - lost_bytes) + self._datagram_bytes

    # States

    def _enter(self, state: Bbr1State) -> None:
        """Enter a state, with the gains that it begins with."""
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
        """Enter ProbeBW, with the gain of its first phase."""
        self._enter(_PROBE_BW)
        self._pacing_gain = self._cycle.begin(now_ns)

    def _is_phase_over(self, now_ns: int, prior_bytes: int) -> bool:
        """Return whether the next phase of the gain cycle is due (§ 4.3.4.3)."""
        is_full_length = self._cycle.has_lasted(now_ns, self._model.min_rtt_ns)
        gain = self._pacing_gain
        if gain > 1:
            # Only when the raised rate has shown in what is in flight, or lost something.
            return is_full_length and (self._has_lost or prior_bytes >= self._inflight_bytes(gain))
        if gain < 1:
            return is_full_length or prior_bytes <= self._inflight_bytes(1.0)
        return is_full_length

    def _check_probe_rtt(self, now_ns: int, left_bytes: int) -> None:
        """Drain the path for a moment if the smallest RTT is ten seconds old (§ 4.3.5)."""
        model = self._model
        # Outside ProbeRTT this runs only because the RTprop filter has expired.
        if self.state is not _PROBE_RTT and not self._is_idle_restart:
            self._save_window()
            self._enter(_PROBE_RTT)
            self._probe_rtt.begin()
        if self.state is _PROBE_RTT and self._probe_rtt.is_over(model, now_ns, left_bytes):
            model.min_rtt_at_ns = now_ns  # valid for another ten seconds
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
        # In Startup a low sample reflects the sender rather than the path, and must not slow it
        # down.
        if rate_bps and (self._model.is_full or current_bps is None or rate_bps > current_bps):
            self._pacing_rate_bps = rate_bps

    def _inflight_bytes(self, gain: float) -> int:
        """Return the bytes that may be in flight at *gain*, with room for bursts (§ 4.2.3.2)."""
        inflight_bytes = self._model.inflight_bytes(gain)
        if inflight_bytes is None:
            return self._first_window_bytes
        return inflight_bytes + 3 * _quantum_bytes(self._pacing_rate_bps or 0, self._datagram_bytes)

    def _set_window(self, acked_bytes: int, left_bytes: int) -> None:
        """Grow towards the target; in recovery, send what was delivered (§ 4.2.3.6)."""
        window = self.congestion_window
        model, min_bytes = self._model, self._min_pipe_bytes
        # § 4.2.3.4: packet conservation, so that a lost packet does not let a burst out.
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
            if window < min_bytes:
                window = min_bytes
        if window > min_bytes and self.state is _PROBE_RTT:
            window = min_bytes
        self.congestion_window = window

    def _end_recovery(self) -> None:
        """Restore the window: data sent after the loss has been acknowledged."""
        self._recovery_end = None
        self._restore_window()


def _quantum_bytes(rate_bps: int, datagram_bytes: int) -> int:
    """Return the size of an aggregate that is sent at once (send_quantum, § 4.2.2)."""
    if rate_bps < _SLOW_BPS:
        return datagram_bytes
    if rate_bps < _FAST_BPS:
        return 2 * datagram_bytes
    in_a_ms_bytes = rate_bps * NS_PER_MS // (BITS_PER_BYTE * NS_PER_S)
    return min(in_a_ms_bytes, _MAX_QUANTUM_BYTES)
