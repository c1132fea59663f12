"""No congestion control: a constant rate."""

# ruff: noqa: ARG002 - a controller need not use all that it is told
from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.compiling import mypyc_attr
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.base import ControllerSettings, SentPacket
    from h3sim.transport.rtt import RttEstimator

__all__ = ["ConstantRateController"]

_UNLIMITED_BYTES = 1 << 62


@mypyc_attr(allow_interpreted_subclasses=True)
class ConstantRateController:
    """Paces packets at `rate_bps` of its settings, whatever is lost; the window is never full.

    Raises:
        InputError: if the settings have no rate.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> from h3sim.transport.rtt import RttEstimator
    >>> settings = ControllerSettings(max_datagram_bytes=1400, rate_bps=1_120_000)
    >>> ConstantRateController(settings).pacing_rate_bps(RttEstimator(initial_ns=1))
    1120000
    """

    __slots__ = ("_rate_bps", "congestion_window", "ssthresh")

    def __init__(self, settings: ControllerSettings) -> None:
        if settings.rate_bps is None:
            message = "is missing: a constant rate needs one"
            raise InputError([Problem(key="rate_bps", message=message)], "congestion control")
        self.congestion_window = _UNLIMITED_BYTES
        self.ssthresh: int | None = None
        self._rate_bps = settings.rate_bps

    def on_sent(self, packet: SentPacket, *, bytes_in_flight: int) -> None:
        """Change nothing."""

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        *,
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Change nothing."""

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        *,
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Change nothing."""

    def on_persistent_congestion(self, *, now_ns: int) -> None:
        """Change nothing."""

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return the rate."""
        return self._rate_bps
