"""The controllers of the RFCs: none (constant), NewReno, and CUBIC with HyStart++.

Read next, on the path of docs/reading.md: `h3sim/transport/link.py`.
"""

# ruff: noqa: ARG002 - a controller need not use every argument

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.congestion.slow_start import HyStart, Search, SlowStart
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_NS3_PER_S3: Final = 1e27
"""Cubic nanoseconds per cubic second."""


def cube_root(value: int) -> int:
    """Return the largest integer whose cube is at most *value*, which is not negative.

    >>> [cube_root(value) for value in (0, 7, 8, 26, 27, 10**27)]
    [0, 1, 2, 2, 3, 1000000000]
    """
    if value == 0:
        return 0
    # Newton's method, from a power of two that is not below the root.
    root = 1 << -(-value.bit_length() // 3)
    while True:
        closer = (2 * root + value // (root * root)) // 3
        if closer >= root:
            return root
        root = closer


def cubed_seconds(t_ns: int) -> float:
    """Return the cube of a time in seconds; by multiplication, since `**` differs in the last bit.

    >>> cubed_seconds(-2_000_000_000)
    -8.0
    """
    t_s = t_ns / NS_PER_S
    return t_s * t_s * t_s


def cube_root_ns(seconds_cubed: float) -> int:
    """Return the time whose cube is *seconds_cubed*, truncated to nanoseconds; 0 if negative.

    The last bit of a mathematical library's cube root differs between machines, so integers are
    used; the only operation on floats is an IEEE 754 multiplication, which does not differ.

    >>> cube_root_ns(8.0)
    2000000000
    """
    return cube_root(int(seconds_cubed * _NS3_PER_S3)) if seconds_cubed > 0 else 0


_UNLIMITED_BYTES: Final = 1 << 62
"""A window above the size of any page; an infinity would turn window arithmetic into floats."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ConstantRateController(CongestionController):
    """A fixed pacing rate, `rate_bps` of its settings, whatever is lost; its window never limits.

    Raises:
        InputError: if the settings have no rate.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> from h3sim.transport.rtt import RttEstimator
    >>> settings = ControllerSettings(max_datagram_bytes=1400, rate_bps=1_120_000)
    >>> ConstantRateController(settings).pacing_rate_bps(RttEstimator(initial_ns=1))
    1120000
    """

    __slots__ = ("_rate_bps",)

    reads_delivery: ClassVar[bool] = False

    def __init__(self, settings: ControllerSettings) -> None:
        if settings.rate_bps is None:
            message = "is missing: a constant rate needs one"
            raise InputError(
                [ValidationIssue(key="rate_bps", message=message)], "congestion control"
            )
        self.congestion_window = _UNLIMITED_BYTES
        self.ssthresh = None
        self._rate_bps = settings.rate_bps

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate."""
        return self._rate_bps


@mypyc_attr(allow_interpreted_subclasses=True)
class LossBasedController(CongestionController):
    """Slow start, one reduction per round trip, and the minimum window (RFC 9002 § 7, appendix B).

    Derived classes define growth in congestion avoidance and the reduction after a congestion
    event. The sender may pace the window (§ 7.7); the controller does not.
    """

    __slots__ = (
        "_beta",
        "_datagram_bytes",
        "_min_window_bytes",
        "_recovery_start_ns",
        "_slow_start",
        "_undo",
    )

    reads_delivery: ClassVar[bool] = False
    responds_to_ecn: ClassVar[bool] = True
    undone: ClassVar[tuple[str, ...]] = (
        *("congestion_window", "ssthresh", "_recovery_start_ns", "_slow_start"),
    )
    """The attributes that `on_spurious_loss` restores."""

    def __init__(self, settings: ControllerSettings, *, beta: float) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self._datagram_bytes = settings.max_datagram_bytes
        self._min_window_bytes = settings.minimum_window_bytes
        self._beta = beta if settings.beta is None else settings.beta
        self._slow_start: SlowStart | None = None
        """The end of the initial slow start before a loss; None without any, or after it."""
        if settings.hystart:
            self._slow_start = HyStart(max_datagram_bytes=settings.max_datagram_bytes)
        elif settings.search:
            self._slow_start = Search()
        self._recovery_start_ns: int | None = None
        """congestion_recovery_start_time (RFC 9002 § B.2)."""
        self._undo: dict[str, Any] | None = None
        """The values of *undone* before the last reduction, if a loss caused it."""

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Record a packet that is sent."""
        if self._slow_start is not None:
            self._slow_start.on_sent(packet.number, packet.size_bytes)

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window by packets that were sent outside recovery (RFC 9002 § B.5)."""
        # It exists in the initial slow start only, before any recovery or `ssthresh`, so no
        # packet needs to be checked for being sent in recovery.
        if self._slow_start is not None:
            self._continue_slow_start(
                self._slow_start,
                packets,
                now_ns,
                rtt.latest_rtt_ns,
                is_cwnd_underutilized=is_cwnd_underutilized,
            )
            return
        # RFC 9002 § 7.8: ACKs that the window did not limit are no evidence that it may grow.
        if is_cwnd_underutilized:
            self._on_limited()
            return
        start_ns = self._recovery_start_ns
        ssthresh = self.ssthresh
        sizes: list[int] = []
        for packet in packets:
            # A packet sent at the same instant still counts as before: "<=" in
            # InCongestionRecovery, § B.5.
            if start_ns is not None and packet.sent_at_ns <= start_ns:
                continue
            # Checked packet by packet: one ACK may take the window over the threshold.
            if ssthresh is None or self.congestion_window < ssthresh:
                self.congestion_window += packet.size_bytes
            else:
                sizes.append(packet.size_bytes)
        if sizes:
            self._avoid_congestion(sizes, now_ns, rtt.smoothed_rtt_ns)

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Reduce the window once per recovery period (RFC 9002 §§ B.6, B.8)."""
        # RFC 9002 § B.8 passes the send time of the last loss to OnCongestionEvent.
        sent_at_ns = max(packet.sent_at_ns for packet in packets)
        start_ns = self._recovery_start_ns
        if start_ns is None or sent_at_ns > start_ns:
            before = {name: getattr(self, name) for name in self.undone}
            self.on_congestion_experienced(sent_at_ns, now_ns)
            self._undo = before

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        """Reduce the window as after a loss (RFC 9002 § 7.1; RFC 9438 § 4.6)."""
        start_ns = self._recovery_start_ns
        # One reduction per round trip, whatever signals it.
        if start_ns is not None and sent_at_ns <= start_ns:
            return
        self._recovery_start_ns = now_ns
        self._undo = None  # a mark is no loss
        # They are for the initial slow start (RFC 9406 § 4.3): after a loss `ssthresh` ends it.
        self._slow_start = None
        self._reduce()

    def on_spurious_loss(self, now_ns: int) -> None:
        """Return to the state before the last reduction, if its window was larger (§ 4.9)."""
        before, self._undo = self._undo, None
        if before is not None and before["congestion_window"] > self.congestion_window:
            for name, value in before.items():
                setattr(self, name, value)

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to the minimum window and slow start (RFC 9002 § 7.6.2, § B.8)."""
        # `ssthresh` is that of the last reduction, so slow start ends there, not at the next loss.
        self.congestion_window = self._min_window_bytes
        # RFC 9002 § B.8: the next loss is a new event, whenever its packet was sent.
        self._recovery_start_ns = None

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return None."""
        return None

    def _continue_slow_start(
        self,
        slow_start: SlowStart,
        packets: Sequence[SentPacket],
        now_ns: int,
        latest_rtt_ns: int,
        *,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Continue the initial slow start, which may end before a loss."""
        acked_bytes = sum(packet.size_bytes for packet in packets)
        if not is_cwnd_underutilized:
            # Growth first: the ACK that ends slow start still grows the window.
            self.congestion_window += slow_start.growth_bytes(acked_bytes)
        number = packets[-1].number
        if slow_start.on_ack(number, latest_rtt_ns, acked_bytes, now_ns, is_cwnd_underutilized):
            self._slow_start = None
            self.ssthresh = self.congestion_window

    def _avoid_congestion(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow the window in congestion avoidance for acknowledged packets of *sizes*."""
        raise NotImplementedError

    def _reduce(self) -> None:
        """Set the window and `ssthresh` after a loss."""
        raise NotImplementedError

    def _on_limited(self) -> None:
        """Handle an ACK that does not grow the window, since it was underutilized."""


_K_LOSS_REDUCTION_FACTOR: Final = 0.5
"""kLossReductionFactor (RFC 9002 § B.1)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class NewRenoController(LossBasedController):
    """NewReno: grows by a packet per round trip, halves on loss (RFC 9002 § 7, appendix B).

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> reno = NewRenoController(ControllerSettings(max_datagram_bytes=1200))
    >>> reno.congestion_window, reno.ssthresh
    (12000, None)
    """

    __slots__ = ("_credit",)

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings, beta=_K_LOSS_REDUCTION_FACTOR)
        self._credit = 0
        """The remainder of the division below, so that no fraction of a byte is lost."""

    def _avoid_congestion(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow the window by one packet per window of acknowledged bytes."""
        # max_datagram_size * acked bytes / congestion_window (RFC 9002 § B.5). Without the
        # remainder, a window above max_datagram_size squared would not grow at all.
        window = self.congestion_window
        credit = self._credit
        for size in sizes:
            grown, credit = divmod(credit + self._datagram_bytes * size, window)
            window += grown
        self.congestion_window = window
        self._credit = credit

    def _reduce(self) -> None:
        """Reduce the window for a loss or mark, once per recovery period."""
        # As in RFC 9002 § B.6, only the window is held to the minimum, not `ssthresh`: a window at
        # the minimum is then above `ssthresh`, in congestion avoidance.
        self.ssthresh = int(self.congestion_window * self._beta)
        self.congestion_window = max(self.ssthresh, self._min_window_bytes)
        # The credit is a fraction of the window before the reduction.
        self._credit = 0


_CUBIC_C: Final = 0.4
"""The curve in segments per cubic second (RFC 9438 § 5)."""
_CUBIC_BETA: Final = 0.7
"""The factor of a reduction (RFC 9438 § 4.6)."""
_MAX_GROWTH: Final = 1.5
"""The largest ratio of target to window (RFC 9438 § 4.2)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CubicController(LossBasedController):
    """CUBIC: growth along a cubic curve of the time in congestion avoidance (RFC 9438).

    Slow start, recovery and persistent congestion are those of RFC 9002; the sizes are bytes where
    the document counts segments. Its open choices, and the one deviation from it:

    - A reduction applies to the window, not to the bytes in flight, as § 4.6 allows QUIC: the
      window does not grow while it is underutilized.
    - Each acknowledged packet, not each ACK, moves the window towards the target (§§ 4.4, 4.5), so
      that it gets there in a round trip however rarely the receiver sends ACKs.
    - In the Reno-friendly region the window becomes W_est only if that is larger (§ 4.3 sets it in
      either case); otherwise an ACK could take back the growth of the cubic curve.
    - If the window after a loss is not below W_max (at the minimum window), K is 0 and W_max the
      window, as in § 4.8 after a timeout.

    *fast_convergence* yields to new flows; § 4.7 recommends to disable it where there are none.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> CubicController(ControllerSettings(max_datagram_bytes=1200)).congestion_window
    12000
    """

    __slots__ = (
        "_alpha_bytes",
        "_bytes_per_s3",
        "_epoch_at_ns",
        "_has_fast_convergence",
        "_is_paused",
        "_k_ns",
        "_starts_flat",
        "_updated_at_ns",
        "_w_est",
        "_w_max",
        "_window",
        "_window_prior",
    )

    undone: ClassVar[tuple[str, ...]] = (
        *LossBasedController.undone,
        *("_epoch_at_ns", "_k_ns", "_starts_flat", "_w_est", "_w_max", "_window", "_window_prior"),
    )

    def __init__(self, settings: ControllerSettings, *, fast_convergence: bool = True) -> None:
        super().__init__(settings, beta=_CUBIC_BETA)
        self._has_fast_convergence = fast_convergence
        alpha = 3 * (1 - self._beta) / (1 + self._beta)  # RFC 9438 § 4.3
        self._alpha_bytes = alpha * self._datagram_bytes
        """Growth of W_est per round trip, until it reaches the window before the loss."""
        self._bytes_per_s3 = _CUBIC_C * self._datagram_bytes
        self._epoch_at_ns: int | None = None
        """t_epoch, advanced by the time in which the window was underutilized; None before the
        first."""
        self._updated_at_ns = 0
        """The time up to which the epoch was advanced."""
        self._is_paused = False
        """True if the window was underutilized at the last ACK."""
        self._starts_flat = False
        """True after a timeout: the next curve begins at its plateau."""
        # The document's variables: time to the plateau, its height, the window that Reno would
        # have, and the window before the last reduction.
        self._k_ns = 0
        self._w_max = 0.0
        self._w_est = 0.0
        self._window_prior = 0.0
        self._window = 0.0
        """The window with its fraction of a byte, during congestion avoidance."""

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Exclude the time in which nothing was in flight (RFC 9438 §§ 4.2, 5.8)."""
        if self._slow_start is not None:  # inlined from `super`, which would cost a call per packet
            self._slow_start.on_sent(packet.number, packet.size_bytes)
        # *bytes_in_flight* includes the packet: nothing else was in flight.
        if bytes_in_flight <= packet.size_bytes and self._epoch_at_ns is not None:
            self._epoch_at_ns += packet.sent_at_ns - self._updated_at_ns
            self._updated_at_ns = packet.sent_at_ns

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to slow start, and to a curve that begins at its plateau (RFC 9438 § 4.8)."""
        super().on_persistent_congestion(now_ns)
        self._epoch_at_ns = None
        self._starts_flat = True

    def _avoid_congestion(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow the window along the cubic curve, or as Reno if that is larger."""
        # W_cubic in bytes, now and a round trip later (RFC 9438 § 4.2): once for all packets of the
        # ACK, which arrive at one instant.
        t_ns = self._elapsed_ns(now_ns) - self._k_ns
        w_cubic = self._bytes_per_s3 * cubed_seconds(t_ns) + self._w_max
        w_ahead = self._bytes_per_s3 * cubed_seconds(t_ns + smoothed_rtt_ns) + self._w_max
        # As a float: truncated to bytes each time, a large window would not grow at all.
        window, prior = self._window, self._window_prior
        w_est = self._w_est
        for size in sizes:
            # § 4.3: alpha until W_est reaches the window before the loss, then Reno's 1.
            growth = self._alpha_bytes if w_est < prior else self._datagram_bytes
            w_est += growth * size / window
            if w_cubic < w_est:
                if w_est > window:
                    window = w_est
            elif w_ahead > window:
                max_target = _MAX_GROWTH * window  # § 4.2
                target = w_ahead if w_ahead < max_target else max_target
                window += (target - window) * size / window  # §§ 4.4, 4.5
        self._w_est = w_est
        self._window = window
        self.congestion_window = int(window)

    def _elapsed_ns(self, now_ns: int) -> int:
        """Return t, the time in congestion avoidance without the pauses that § 4.2 excludes."""
        if self._epoch_at_ns is None:
            self._begin_epoch()
            self._epoch_at_ns = now_ns
        elif self._is_paused:
            self._epoch_at_ns += now_ns - self._updated_at_ns
        self._is_paused = False
        self._updated_at_ns = now_ns
        return now_ns - self._epoch_at_ns

    def _begin_epoch(self) -> None:
        """Fix the curve's origin and K at the start of congestion avoidance."""
        self._window = self._w_est = float(self.congestion_window)
        # Flat after a timeout (RFC 9438 § 4.8), and after a slow start without a loss (§ 4.10),
        # where W_max is unknown.
        if self._starts_flat or self._w_max <= self._window:
            self._w_max = self._window
        segments = (self._w_max - self._window) / self._datagram_bytes
        self._k_ns = cube_root_ns(segments / _CUBIC_C)  # RFC 9438 § 4.2

    def _reduce(self) -> None:
        """Reduce the window for a loss or mark, and remember it as the plateau."""
        window = self.congestion_window
        # RFC 9438 § 4.7
        is_shrinking = self._has_fast_convergence and window < self._w_max
        # A flow whose window shrinks yields: its plateau is below the window it had.
        self._w_max = window * (1 + self._beta) / 2 if is_shrinking else float(window)
        self._window_prior = float(window)
        self.ssthresh = max(int(window * self._beta), self._min_window_bytes)  # § 4.6
        self.congestion_window = self.ssthresh
        # t_epoch is the beginning of congestion avoidance: the first ACK after recovery.
        self._epoch_at_ns = None
        self._starts_flat = False

    def _on_limited(self) -> None:
        """Exclude the time up to the next ACK from the curve (RFC 9438 § 4.2)."""
        self._is_paused = True
