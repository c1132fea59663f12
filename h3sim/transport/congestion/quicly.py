"""Reno and CUBIC of the quicly library as of 2021 (used in the measurements of Sander 2022).

Both reduce the window to 0.7 of it, have no persistent congestion, grow even if the window is
underutilized, and are in recovery until a packet sent after the reduction is acknowledged. CUBIC
follows RFC 8312 rather than RFC 9438, and grows once per ACK. quicly's clock has a resolution of a
millisecond; this one is exact.
"""

# ruff: noqa: ARG002 - a controller need not use every argument
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.congestion.loss_based import cube_root_ns, cubed_seconds
from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_CUBIC_C: Final = 0.4
"""The curve in segments per cubic second (RFC 8312 § 5)."""
_CUBIC_BETA: Final = 0.7
"""The factor of a reduction (RFC 8312 § 4.5)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class _QuiclyController(CongestionController):
    """Slow start and recovery by packet numbers."""

    __slots__ = (
        "_beta",
        "_datagram_bytes",
        "_largest_acked",
        "_min_window_bytes",
        "_recovery_end",
    )

    reads_delivery: ClassVar[bool] = False

    def __init__(self, settings: ControllerSettings) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self._beta = _CUBIC_BETA if settings.beta is None else settings.beta
        self._datagram_bytes = settings.max_datagram_bytes
        self._min_window_bytes = settings.minimum_window_bytes
        self._largest_acked = -1
        self._recovery_end = 0
        """First packet sent after the latest reduction; 0 before any."""

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Change nothing."""

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window, unless in recovery; *is_cwnd_underutilized* makes no difference."""
        # quicly uses the largest number that the ACK covers, newly acknowledged or not.
        self._largest_acked = max(self._largest_acked, packets[-1].number)
        if self._largest_acked < self._recovery_end:
            return
        acked_bytes = 0
        for packet in packets:
            acked_bytes += packet.size_bytes
        if self.ssthresh is None or self.congestion_window < self.ssthresh:
            self.congestion_window += acked_bytes
        else:
            self._avoid_congestion(acked_bytes, now_ns, rtt.smoothed_rtt_ns)

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Reduce the window if a packet sent after the latest reduction was lost."""
        # By number, not by time as RFC 9002: packets of the same instant are on either side.
        if packets[-1].number < self._recovery_end:
            return
        self._recovery_end = next_number
        window = self.congestion_window
        self.congestion_window = max(int(window * self._beta), self._min_window_bytes)
        self.ssthresh = self.congestion_window
        self._on_reduced(window, now_ns)

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Change nothing."""

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return None."""
        return None

    def _avoid_congestion(self, acked_bytes: int, now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow the window in congestion avoidance, once per ACK."""
        raise NotImplementedError

    def _on_reduced(self, window: int, now_ns: int) -> None:
        """Handle a reduction of the window from *window*."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QuiclyRenoController(_QuiclyController):
    """Reno: a packet of growth per acknowledged window (RFC 5681 § 3.1, by bytes).

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> settings = ControllerSettings(max_datagram_bytes=1280, initial_window_bytes=14_720)
    >>> QuiclyRenoController(settings).congestion_window
    14720
    """

    __slots__ = ("_acked_bytes",)

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self._acked_bytes = 0
        """Acknowledged bytes that do not add up to a window yet (stash)."""

    def _avoid_congestion(self, acked_bytes: int, now_ns: int, smoothed_rtt_ns: int) -> None:
        """Add a packet for each whole window that was acknowledged."""
        # By the current window: after a reduction the bytes may be worth two packets at once.
        windows, self._acked_bytes = divmod(self._acked_bytes + acked_bytes, self.congestion_window)
        self.congestion_window += windows * self._datagram_bytes


@mypyc_attr(allow_interpreted_subclasses=True)
class QuiclyCubicController(_QuiclyController):
    """CUBIC along the curve of RFC 8312, whose time begins at the loss.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> settings = ControllerSettings(max_datagram_bytes=1280, initial_window_bytes=14_720)
    >>> QuiclyCubicController(settings).congestion_window
    14720
    """

    __slots__ = ("_alpha", "_k_ns", "_last_sent_at_ns", "_start_at_ns", "_w_last_max", "_w_max")

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings)
        self._alpha = 3 * (1 - self._beta) / (1 + self._beta)
        self._start_at_ns: int | None = None
        """Time of the last reduction, advanced by idle times."""
        self._last_sent_at_ns = 0
        """Time of the last packet, from which idle time counts."""
        # The document's variables: time to the plateau, its height, and the window before the last
        # reduction.
        self._k_ns = 0
        self._w_max = 0
        self._w_last_max = 0

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Exclude the time since the last packet if nothing else is in flight."""
        if bytes_in_flight <= packet.size_bytes and self._start_at_ns is not None:
            # Idle time does not advance the curve, or an idle flow would resume far up on it.
            self._start_at_ns += packet.sent_at_ns - self._last_sent_at_ns
        self._last_sent_at_ns = packet.sent_at_ns

    def _avoid_congestion(self, acked_bytes: int, now_ns: int, smoothed_rtt_ns: int) -> None:
        """Grow along the cubic curve, or as Reno if that is larger."""
        assert self._start_at_ns is not None  # noqa: S101 - slow start ends with a loss only
        t_ns = now_ns - self._start_at_ns
        window = self.congestion_window
        # RFC 8312 § 4.2, equation 4
        w_est = int(
            self._w_max * self._beta
            + self._alpha * (t_ns / max(1, smoothed_rtt_ns)) * self._datagram_bytes
        )
        if self._w_cubic(t_ns) < w_est:
            # Never below the window, in case the RTT has grown.
            self.congestion_window = max(window, w_est)
            return
        target = self._w_cubic(t_ns + smoothed_rtt_ns)
        if target > window:
            # RFC 8312 § 4.3, for the whole ACK
            self.congestion_window = int(window + (target / window - 1) * self._datagram_bytes)

    def _w_cubic(self, t_ns: int) -> int:
        """Return W_cubic in bytes (RFC 8312 § 4.1, equation 1)."""
        segments = _CUBIC_C * cubed_seconds(t_ns - self._k_ns)
        return int(segments * self._datagram_bytes + self._w_max)

    def _on_reduced(self, window: int, now_ns: int) -> None:
        """Start a new curve after the window was reduced from *window*."""
        self._start_at_ns = now_ns
        self._w_max = window
        if window < self._w_last_max:
            self._w_max = int(window * (1 + self._beta) / 2)  # RFC 8312 § 4.6
        # The window itself, not the lowered plateau: a second reduction in a row compares like with
        # like.
        self._w_last_max = window
        # RFC 8312 § 4.1, equation 2
        segments = self._w_max / self._datagram_bytes
        self._k_ns = cube_root_ns(segments * ((1 - self._beta) / _CUBIC_C))
