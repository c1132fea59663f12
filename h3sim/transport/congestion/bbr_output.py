"""BBR's control parameters: how fast, and how much in flight, its states send (§ 5.6).

Section numbers are those of draft-ietf-ccwg-bbr, working copy of August 2026; its names are in
parentheses.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from h3sim.transport.congestion.bbr_common import FullPipeDetector, Gains
from h3sim.transport.congestion.bbr_model import BIT_NS_PER_BYTE, UNLIMITED, BbrModel
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.transport.congestion.registry import ControllerSettings


class BbrState(enum.Enum):
    """The state of the BBR state machine (§ 5.1)."""

    STARTUP = "startup"
    DRAIN = "drain"
    PROBE_BW_DOWN = "probe_bw_down"
    PROBE_BW_CRUISE = "probe_bw_cruise"
    PROBE_BW_REFILL = "probe_bw_refill"
    PROBE_BW_UP = "probe_bw_up"
    PROBE_RTT = "probe_rtt"


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
STARTUP, DRAIN, PROBE_RTT = BbrState.STARTUP, BbrState.DRAIN, BbrState.PROBE_RTT
DOWN, CRUISE = BbrState.PROBE_BW_DOWN, BbrState.PROBE_BW_CRUISE
REFILL, UP = BbrState.PROBE_BW_REFILL, BbrState.PROBE_BW_UP
# Tuples: a set would compute the hash of a member by a function of Python.
PROBE_BW: Final = (DOWN, CRUISE, REFILL, UP)
ACCELERATING: Final = (STARTUP, REFILL, UP)
"""The states that probe for bandwidth, in which losses set no lower bounds."""

_HEADROOM: Final = 0.15
"""The share of the bound that is left to other flows (Headroom)."""
_PACING_SHARE: Final = 0.99
"""The share of the bandwidth that PacingMarginPercent leaves."""
_MAX_QUANTUM_BYTES: Final = 65_536
"""The largest aggregate that is sent at once (send_quantum)."""
_MAX_UP_ROUNDS: Final = 30
"""Rounds of ProbeBW_UP in which the growth of *inflight_longterm* doubles."""


@mypyc_attr(allow_interpreted_subclasses=True)
class BbrOutput(BbrModel):
    """The rate and the window that follow from the model and the state."""

    __slots__ = (
        "_full_pipe",
        "_gains",
        "_up_acked_bytes",
        "_up_bytes_per_packet",
        "_up_rounds",
        "state",
    )

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self._enter(STARTUP)
        self._full_pipe = FullPipeDetector()
        # Set when UP or REFILL is entered:
        self._up_rounds: int
        """The rounds of this probe, which double the growth each (bw_probe_up_rounds)."""
        self._up_acked_bytes: int
        """Acknowledged bytes that have not raised *inflight_longterm* yet."""
        self._up_bytes_per_packet: int
        """The bytes to be acknowledged for one more packet in *inflight_longterm*."""

    @property
    def pacing_gain(self) -> float:
        """The factor between bandwidth and pacing rate."""
        return self._gains.pacing

    def _enter(self, state: BbrState) -> None:
        """Enter a state, with its gains."""
        self.state = state
        self._gains = GAINS[state]

    def _set_pacing_rate(self, gain: float) -> None:
        """Follow the bandwidth; before the path is full, only upwards (§ 5.6.2)."""
        # Slightly below the estimate (pacing margin), so that a queue drains instead of standing.
        rate_bps = int(gain * self.bandwidth_bps * _PACING_SHARE)
        current_bps = self._pacing_rate_bps
        if rate_bps and (self._full_pipe.was_full or current_bps is None or rate_bps > current_bps):
            self._pacing_rate_bps = rate_bps

    def _quantized(self, inflight: int) -> int:
        """Return at least a quantum and the minimum window (§ 5.6.4.2)."""
        in_a_ms_bytes = (self._pacing_rate_bps or 0) * NS_PER_MS // BIT_NS_PER_BYTE
        quantum_bytes = max(min(in_a_ms_bytes, _MAX_QUANTUM_BYTES), 2 * self._datagram_bytes)
        inflight = max(inflight, quantum_bytes, self._min_pipe_bytes)
        # Two packets more in UP: over a path with a tiny BDP the probe would otherwise round away.
        return inflight + 2 * self._datagram_bytes if self.state is UP else inflight

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
        return max(self._bdp_bytes(GAINS[PROBE_RTT].window), self._min_pipe_bytes)

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
        if self.state is PROBE_RTT:
            window = min(window, self._probe_rtt_window())
        if self.state is PROBE_RTT or self.state is CRUISE:
            bound = self._with_headroom()
        elif self.state in PROBE_BW:
            bound = self.inflight_longterm
        bound = max(min(bound, self.inflight_shortterm), self._min_pipe_bytes)
        self.congestion_window = min(window, bound)

    def _is_window_full(self) -> bool:
        """Return whether the window limited the sender in this round or the one before."""
        return self._is_cwnd_limited or self._was_cwnd_limited

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
