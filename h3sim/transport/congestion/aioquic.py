"""Reno and CUBIC as aioquic 1.7 has them."""

# ruff: noqa: ARG002 - a controller need not use every argument
from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar, Final

from h3sim.transport.congestion.loss_based import (
    LossBasedController,
    NewRenoController,
    cube_root_ns,
    cubed_seconds,
)
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_N_SAMPLES: Final = 5
"""The number of RTT samples that `_RttMonitor` compares."""
_MIN_SAMPLE_INTERVAL_NS: Final = NS_PER_MS
"""The shortest time between two of its samples."""
_INCREASES_TO_END: Final = 5
"""The number of increases that end slow start."""

_CUBIC_C: Final = 0.4
"""The curve in segments per cubic second (RFC 9438 § 5)."""
_CUBIC_BETA: Final = 0.7
"""The factor of a reduction (RFC 9438 § 4.6)."""
_MAX_GROWTH: Final = 1.5
"""The largest ratio of target to window (RFC 9438 § 4.2)."""
_MAX_IDLE_NS: Final = 2 * NS_PER_S
"""The age of the last acknowledged packet at which everything restarts."""
_INITIAL_RTT_NS: Final = 20 * NS_PER_MS
"""The time by which the curve looks ahead before the first RTT sample."""


class _RttMonitor:
    """The delay-based exit of slow start.

    Slow start ends once the smallest of the last 5 round-trip times, sampled at most once per
    millisecond, has 5 times been at least a quarter above the smallest maximum of 5 seen so far.
    """

    __slots__ = ("_floor_ns", "_increases", "_sampled_at_ns", "_samples")

    def __init__(self) -> None:
        self._samples: deque[int] = deque(maxlen=_N_SAMPLES)
        self._sampled_at_ns = 0
        """Time of the last sample."""
        self._floor_ns: int | None = None
        """The smallest maximum of 5 samples so far."""
        self._increases = 0
        """Samples a quarter above the floor since the last one below that."""

    def is_rising(self, now_ns: int, latest_rtt_ns: int) -> bool:
        """Add a sample; return whether slow start is to end."""
        if now_ns <= self._sampled_at_ns + _MIN_SAMPLE_INTERVAL_NS:
            return False
        self._sampled_at_ns = now_ns
        self._samples.append(latest_rtt_ns)
        if len(self._samples) < _N_SAMPLES:
            return False
        highest, lowest = max(self._samples), min(self._samples)
        if self._floor_ns is None or highest < self._floor_ns:
            self._floor_ns = highest
        # A quarter in whole numbers, so that it is the same comparison on every machine.
        if 4 * (lowest - self._floor_ns) >= self._floor_ns:
            self._increases += 1
        # As in aioquic: what is no higher than the floor leaves the count as it was.
        elif lowest > self._floor_ns:
            self._increases = 0
        return self._increases >= _INCREASES_TO_END


@mypyc_attr(allow_interpreted_subclasses=True)
class AioquicRenoController(NewRenoController):
    """NewReno that grows by whole packets, and leaves slow start once delay has risen by a quarter.

    Deviations from RFC 9002: the window grows by one datagram when a whole window has been
    acknowledged, never by less, and also while it is not full. Slow start ends when the delay has
    risen by a quarter.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> AioquicRenoController(ControllerSettings(max_datagram_bytes=1200)).congestion_window
    12000
    """

    __slots__ = ("_acked_bytes", "_monitor")

    responds_to_ecn: ClassVar[bool] = False

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self._acked_bytes = 0
        """Acknowledged bytes that do not add up to a window yet."""
        self._monitor = _RttMonitor()

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window, full or not."""
        # False: aioquic does not check whether the window was full, against RFC 9002 § 7.8.
        super().on_acked(packets, now_ns, rtt, bytes_in_flight, False)
        if self.ssthresh is None and self._monitor.is_rising(now_ns, rtt.latest_rtt_ns):
            self.ssthresh = self.congestion_window

    def _avoid_congestion(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        """Add a datagram for each whole window that was acknowledged."""
        for size in sizes:
            # Two at once if a loss has since reduced the window that was nearly acknowledged.
            windows, self._acked_bytes = divmod(self._acked_bytes + size, self.congestion_window)
            self.congestion_window += windows * self._datagram_bytes


@mypyc_attr(allow_interpreted_subclasses=True)
class AioquicCubicController(LossBasedController):
    """CUBIC as aioquic implements RFC 9438.

    Deviations from it: a loss reduces the bytes in flight, not the window, to 0.7, so that losses
    while little is in flight cost much (§ 4.6 allows it and warns of it); W_max is the window
    before the loss, but K is computed only when congestion avoidance begins; the curve looks one
    latest round-trip time ahead, not a smoothed one; the window also grows while it is
    underutilized; after 2 s without an acknowledgement everything restarts. Slow start ends when
    the delay has risen by a quarter.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> AioquicCubicController(ControllerSettings(max_datagram_bytes=1200)).congestion_window
    12000
    """

    __slots__ = (
        "_acked_sent_at_ns",
        "_begins",
        "_epoch_at_ns",
        "_first_window_bytes",
        "_has_plateau",
        "_k_ns",
        "_latest_rtt_ns",
        "_monitor",
        "_w_est",
        "_w_max",
    )

    responds_to_ecn: ClassVar[bool] = False

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings, beta=_CUBIC_BETA)
        self._first_window_bytes = settings.initial_congestion_window
        self._monitor = _RttMonitor()
        self._latest_rtt_ns = _INITIAL_RTT_NS
        self._acked_sent_at_ns: int | None = None
        """Time when the packet acknowledged last was sent."""
        self._reset()

    def _reset(self) -> None:
        """Return to slow start with the initial window."""
        self.congestion_window = self._w_max = self._first_window_bytes
        self.ssthresh = None
        self._has_plateau = False
        """True if W_max is known: from a loss, or from the end of a slow start without one."""
        self._begins = True
        """True if the next ACK above `ssthresh` begins congestion avoidance."""
        self._epoch_at_ns = self._k_ns = self._w_est = 0

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Restart if the packet acknowledged last was sent 2 s ago or more."""
        acked_sent_at_ns = self._acked_sent_at_ns
        if acked_sent_at_ns is not None and packet.sent_at_ns - acked_sent_at_ns >= _MAX_IDLE_NS:
            self._reset()

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window packet by packet, full or not, in recovery too."""
        for packet in packets:
            self._acked_sent_at_ns = packet.sent_at_ns
            if self.ssthresh is None or self.congestion_window < self.ssthresh:
                self.congestion_window += packet.size_bytes
            else:
                self._grow_in_avoidance(packet.size_bytes, now_ns)
        # After the packets, as in aioquic: the curve looks ahead by the RTT of the previous ACK.
        self._latest_rtt_ns = rtt.latest_rtt_ns
        if self.ssthresh is None and self._monitor.is_rising(now_ns, rtt.latest_rtt_ns):
            self.ssthresh = self.congestion_window

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Reduce to a share of what remains in flight, once per recovery period."""
        start_ns = self._recovery_start_ns
        # Sorted by number, so the last packet was sent last; losses from before the reduction say
        # nothing about the window after it.
        if start_ns is not None and packets[-1].sent_at_ns <= start_ns:
            return
        self._recovery_start_ns = now_ns
        window = self.congestion_window
        # Fast convergence (RFC 9438 § 4.7)
        self._w_max = int(window * (1 + _CUBIC_BETA) / 2) if window < self._w_max else window
        flight_bytes = bytes_in_flight - sum(packet.size_bytes for packet in packets)
        self.ssthresh = max(int(flight_bytes * self._beta), self._min_window_bytes)
        self.congestion_window = self.ssthresh
        self._begins = self._has_plateau = True

    def _grow_in_avoidance(self, size_bytes: int, now_ns: int) -> None:
        """Grow the window by an acknowledged packet in congestion avoidance."""
        window = self.congestion_window
        if self._begins:
            self._begin_avoidance(now_ns)
        self._w_est = int(self._w_est + self._datagram_bytes * (size_bytes / window))
        elapsed_ns = now_ns - self._epoch_at_ns
        # No check that W_est exceeds the window: here it can take back what the curve had granted
        # (RFC 9438 § 4.3 read to the letter).
        if self._curve_bytes(elapsed_ns) < self._w_est:
            self.congestion_window = self._w_est
            return
        # RFC 9438 § 4.2: the target is clamped to [cwnd, 1.5 * cwnd].
        ahead_bytes = self._curve_bytes(elapsed_ns + self._latest_rtt_ns)
        target = min(max(ahead_bytes, window), int(window * _MAX_GROWTH))
        self.congestion_window = int(window + (target - window) * (self._datagram_bytes / window))

    def _begin_avoidance(self, now_ns: int) -> None:
        """Begin the curve; after a slow start without a loss, at its plateau."""
        if not self._has_plateau:
            self._w_max = self.congestion_window
        self._begins = False
        self._epoch_at_ns = now_ns
        self._w_est = self.congestion_window
        segments = (self._w_max - self.congestion_window) / self._datagram_bytes
        root_ns = cube_root_ns(abs(segments) / _CUBIC_C)
        # Below 0 where the cut left more than W_max: the curve then begins behind its plateau.
        self._k_ns = root_ns if segments >= 0 else -root_ns

    def _curve_bytes(self, elapsed_ns: int) -> int:
        """Return W_cubic (RFC 9438 § 4.2)."""
        from_plateau = _CUBIC_C * cubed_seconds(elapsed_ns - self._k_ns)
        segments = from_plateau + self._w_max / self._datagram_bytes
        return int(segments * self._datagram_bytes)
