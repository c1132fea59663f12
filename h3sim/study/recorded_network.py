"""The network that a page was recorded over, as its page file estimates it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.page.recorded_load import RECORDED_NETWORK
from h3sim.transport import LinkProfile, Network
from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.compression.exchanges import HeaderLists
    from h3sim.page import Page

__all__ = ["FOR_HEADER_LISTS", "RECORDED", "WITHOUT_RECORDING", "recorded_network"]

RECORDED = RECORDED_NETWORK
"""The name that stands for the network of the page's own recording, and is usual."""
WITHOUT_RECORDING = "marx-2019"
"""What stands in for it where the page says nothing of one."""
FOR_HEADER_LISTS = "frindell-2017"
"""What stands in for it where header lists are sent."""
_LEAST_QUEUE_BYTES = 65_536


def recorded_network(page: Page | HeaderLists) -> Network | None:
    """Return the network that *page* was recorded over, None where it does not say.

    Links of the estimated rate both ways. The queue is chosen as in the shipped networks: one
    bandwidth-delay product, but 64 KiB at least. Nothing is lost but by it.
    """
    known = page.recorded_load
    if known is None or known.rtt_ns is None or known.rate_bps is None:
        return None
    product_bytes = known.rate_bps * known.rtt_ns // (BITS_PER_BYTE * NS_PER_S)
    link = LinkProfile(rate_bps=known.rate_bps, queue_bytes=max(_LEAST_QUEUE_BYTES, product_bytes))
    return Network(
        name=RECORDED,
        title=f"what {page.name} was recorded over, estimated",
        source=f"RTT from {known.rtt_from}, rate from {known.rate_from}",
        rtt_ns=known.rtt_ns,
        down=link,
    )
