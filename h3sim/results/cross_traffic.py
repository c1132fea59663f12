"""What other flows carried beside a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.cross_traffic import CrossFlow

__all__ = ["CarriedFlow"]


class CarriedFlow(NamedTuple):
    """What was delivered of a *flow* in *span_ns*, from its start to the end of the load."""

    flow: CrossFlow
    n_bytes: int
    span_ns: int

    @property
    def rate_mbps(self) -> float | None:
        """The mean rate in Mbit/s; None where the load ended before it began."""
        if not self.span_ns:
            return None
        return self.n_bytes * BITS_PER_BYTE * NS_PER_S / self.span_ns / 10**6
