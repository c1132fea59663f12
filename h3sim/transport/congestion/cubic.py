"""CUBIC (RFC 9438)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.compiling import mypyc_attr
from h3sim.transport.congestion.cube_root import cube_root_ns, cubed_seconds
from h3sim.transport.congestion.loss_based import LossBasedController

if TYPE_CHECKING:
    from h3sim.transport.congestion.settings import ControllerSettings
    from h3sim.transport.packets import SentPacket

__all__ = ["CubicController"]

_C: Final = 0.4
_BETA: Final = 0.7
_MAX_GROWTH: Final = 1.5
"""The target is at most this times the window (RFC 9438 § 4.2)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class CubicController(LossBasedController):
    """Grows along a cubic curve of the time since congestion avoidance began (RFC 9438).

    Slow start, recovery and persistent congestion are those of RFC 9002; the sizes are bytes where
    the document counts segments. What the document leaves open, and the one departure from it:

    - A reduction takes the window, not the bytes in flight, as § 4.6 lets QUIC do: the window
      does not grow while it is not full.
    - Each acknowledged packet, not each ACK, moves the window towards the target (§§ 4.4, 4.5), so
      that it gets there in a round trip however rarely the receiver sends ACKs.
    - In the Reno-friendly region the window becomes W_est only if that is larger (§ 4.3 sets it in
      either case); otherwise an ACK could take back what the cubic curve had granted before.
    - If what is left after a loss is not below W_max (at the minimum window), K is 0 and W_max the
      window, as § 4.8 has it after a timeout.

    *fast_convergence* gives way to newcomers; § 4.7 would have it off where there are none.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> CubicController(ControllerSettings(max_datagram_bytes=1200)).congestion_window
    12000
    """

    __slots__ = (
        "_alpha_bytes",
        "_epoch_at_ns",
        "_has_fast_convergence",
        "_is_paused",
        "_k_ns",
        "_scale",
        "_starts_flat",
        "_updated_at_ns",
        "_w_est",
        "_w_max",
        "_window",
        "_window_prior",
    )

    def __init__(self, settings: ControllerSettings, *, fast_convergence: bool = True) -> None:
        super().__init__(settings, beta=_BETA)
        self._has_fast_convergence = fast_convergence
        alpha = 3 * (1 - self._beta) / (1 + self._beta)  # RFC 9438 § 4.3
        self._alpha_bytes = alpha * self._datagram_bytes
        """By how much W_est grows in a round trip, until it is where the window was."""
        self._scale = _C * self._datagram_bytes
        self._epoch_at_ns: int | None = None
        """t_epoch, moved on by the time in which the window was not full; None: none began."""
        self._updated_at_ns = 0
        self._is_paused = False
        self._starts_flat = False
        self._k_ns = 0
        self._w_max = 0.0
        self._w_est = 0.0
        self._window = 0.0
        """The window with its fraction of a byte, during congestion avoidance."""
        self._window_prior = 0.0

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Leave out the time in which nothing was in flight (RFC 9438 §§ 4.2, 5.8)."""
        if self._hystart is not None:  # what `super` does, without the call for each packet
            self._hystart.on_sent(packet.number)
        # *bytes_in_flight* includes the packet: nothing else was on its way.
        if bytes_in_flight <= packet.size_bytes and self._epoch_at_ns is not None:
            self._epoch_at_ns += packet.sent_at_ns - self._updated_at_ns
            self._updated_at_ns = packet.sent_at_ns

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Fall back to slow start, and to a curve that begins at its plateau (RFC 9438 § 4.8)."""
        super().on_persistent_congestion(now_ns)
        self._epoch_at_ns = None
        self._starts_flat = True

    def _avoid(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        # W_cubic in bytes, now and a round trip later (RFC 9438 § 4.2): once for all packets of the
        # ACK, which arrive at one instant, so that the curve does not move.
        t_ns = self._elapsed_ns(now_ns) - self._k_ns
        w_cubic = self._scale * cubed_seconds(t_ns) + self._w_max
        w_ahead = self._scale * cubed_seconds(t_ns + smoothed_rtt_ns) + self._w_max
        # With its fraction: cut to bytes each time, a large window would not grow at all.
        window, prior = self._window, self._window_prior
        w_est = self._w_est
        for size in sizes:
            # § 4.3: as Reno would grow, once it is back where it was before the loss.
            growth = self._alpha_bytes if w_est < prior else self._datagram_bytes
            w_est += growth * size / window
            if w_cubic < w_est:
                if w_est > window:
                    window = w_est
            elif w_ahead > window:
                most = _MAX_GROWTH * window  # § 4.2
                target = w_ahead if w_ahead < most else most
                window += (target - window) * size / window  # §§ 4.4, 4.5
        self._w_est = w_est
        self._window = window
        self.congestion_window = int(window)

    def _elapsed_ns(self, now_ns: int) -> int:
        """Return t: for how long this stage has lasted without what § 4.2 leaves out."""
        if self._epoch_at_ns is None:
            self._begin_epoch()
            self._epoch_at_ns = now_ns
        elif self._is_paused:
            self._epoch_at_ns += now_ns - self._updated_at_ns
        self._is_paused = False
        self._updated_at_ns = now_ns
        return now_ns - self._epoch_at_ns

    def _begin_epoch(self) -> None:
        self._window = self._w_est = float(self.congestion_window)
        # Flat after a timeout (RFC 9438 § 4.8), and where slow start ended without a loss (§ 4.10):
        # there is no W_max yet.
        if self._starts_flat or self._w_max <= self._window:
            self._w_max = self._window
        segments = (self._w_max - self._window) / self._datagram_bytes
        self._k_ns = cube_root_ns(segments / _C)  # RFC 9438 § 4.2

    def _reduce(self) -> None:
        window = self.congestion_window
        # RFC 9438 § 4.7
        is_shrinking = self._has_fast_convergence and window < self._w_max
        # A flow whose window shrinks gives way: its plateau lies below the window it had.
        self._w_max = window * (1 + self._beta) / 2 if is_shrinking else float(window)
        self._window_prior = float(window)
        self.ssthresh = max(int(window * self._beta), self._minimum_bytes)  # § 4.6
        self.congestion_window = self.ssthresh
        # t_epoch is when congestion avoidance begins, which the first ACK after recovery says.
        self._epoch_at_ns = None
        self._starts_flat = False

    def _on_limited(self) -> None:
        self._is_paused = True
