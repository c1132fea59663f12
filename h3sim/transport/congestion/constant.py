"""No congestion control: a constant rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from h3sim.compiling import mypyc_attr
from h3sim.errors import InputError, Problem
from h3sim.transport.congestion.controller import CongestionController

if TYPE_CHECKING:
    from h3sim.transport.congestion.settings import ControllerSettings
    from h3sim.transport.rtt import RttEstimator

__all__ = ["ConstantRateController"]

_UNLIMITED_BYTES: Final = 1 << 62
"""More than any page has; infinity would make the arithmetic of windows one of floats."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ConstantRateController(CongestionController):
    """Paces packets at `rate_bps` of its settings, whatever is lost; the window is never full.

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
            raise InputError([Problem(key="rate_bps", message=message)], "congestion control")
        self.congestion_window = _UNLIMITED_BYTES
        self.ssthresh = None
        self._rate_bps = settings.rate_bps

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:  # noqa: ARG002 - always the same
        """Return the rate."""
        return self._rate_bps
