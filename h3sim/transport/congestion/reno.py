"""NewReno as QUIC has it (RFC 9002)."""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.compiling import mypyc_attr
from h3sim.transport.congestion.loss_based import LossBasedController

if TYPE_CHECKING:
    from h3sim.transport.congestion.settings import ControllerSettings

__all__ = ["NewRenoController"]

_K_LOSS_REDUCTION_FACTOR: Final = 0.5


@mypyc_attr(allow_interpreted_subclasses=True)
class NewRenoController(LossBasedController):
    """Grows by a packet per round trip, halves on loss (RFC 9002 § 7, appendix B).

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> reno = NewRenoController(ControllerSettings(max_datagram_bytes=1200))
    >>> reno.congestion_window, reno.ssthresh
    (12000, None)
    """

    __slots__ = ("_credit",)

    def __init__(self, settings: ControllerSettings) -> None:
        super().__init__(settings, beta=_K_LOSS_REDUCTION_FACTOR)
        self._credit = 0
        """What the division below left over, so that no fraction of a byte is lost."""

    def _avoid(self, sizes: list[int], now_ns: int, smoothed_rtt_ns: int) -> None:
        # max_datagram_size * acked bytes / congestion_window (RFC 9002 § B.5). Without the rest,
        # a window above max_datagram_size squared would not grow at all.
        window = self.congestion_window
        credit = self._credit
        for size in sizes:
            grown, credit = divmod(credit + self._datagram_bytes * size, window)
            window += grown
        self.congestion_window = window
        self._credit = credit

    def _reduce(self) -> None:
        # RFC 9002 § B.6
        # Not held to the minimum, as in § B.6: below it the window stands above `ssthresh`, and
        # avoids.
        self.ssthresh = int(self.congestion_window * self._beta)
        self.congestion_window = max(self.ssthresh, self._minimum_bytes)
        # It was counted in parts of the window that has gone.
        self._credit = 0
