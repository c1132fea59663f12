"""A link whose rate and losses change while packets travel over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.errors import NetworkError, Problem
from h3sim.transport.link import Link
from h3sim.transport.loss import RandomLoss
from h3sim.transport.queueing import TokenBucket

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from h3sim.transport.link_profile import LinkProfile

__all__ = ["ChangingLink"]


class ChangingLink(Link):
    """A `Link` whose rate and losses can be changed; until then it treats each packet as that does.

    >>> from h3sim.seeds import stream
    >>> from h3sim.transport.link_profile import LinkProfile
    >>> profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0)
    >>> link = ChangingLink(profile, rtt_ns=0, streams=lambda purpose: stream(0, purpose))
    >>> before = link.send(0, 1250)
    >>> link.change_rate(0, 2_000_000); link.change_loss(0.0)
    >>> before, link.send(0, 1250)
    (10000000, 15000000)
    """

    __slots__ = ("_source",)

    def __init__(
        self,
        profile: LinkProfile,
        *,
        rtt_ns: int,
        streams: Callable[[str], random.Random],
        upward: bool = False,
    ) -> None:
        super().__init__(profile, rtt_ns=rtt_ns, streams=streams, upward=upward)
        # A stream of its own: the losses of the profile stay where they are, changed or not.
        self._source = streams("changed-loss")

    def change_rate(self, now_ns: int, rate_bps: int) -> None:
        """Pass *rate_bps* from now on; packets that wait already leave when they were going to.

        Raises:
            NetworkError: if the rate is not above 0, or the link has none that could change.
        """
        bottleneck = self._bottleneck
        if not isinstance(bottleneck, TokenBucket):
            message = "cannot change: this link has no rate"
            raise NetworkError([Problem(key="rate_mbps", message=message)], "link")
        if not isinstance(rate_bps, int) or rate_bps <= 0:
            message = f"must be a whole number of bit/s above 0, is {rate_bps!r}"
            raise NetworkError([Problem(key="rate_mbps", message=message)], "link")
        bottleneck.change_rate(now_ns, rate_bps)

    def change_loss(self, loss: float) -> None:
        """Lose this share of packets from now on, each by itself; those under way arrive.

        Raises:
            NetworkError: if *loss* is not a share from 0 up to 1.
        """
        if not isinstance(loss, int | float) or not 0 <= loss < 1:
            message = f"must be 0 up to, but without, 1, is {loss!r}"
            raise NetworkError([Problem(key="loss", message=message)], "link")
        self._is_lost = RandomLoss(loss, self._source).is_lost if loss else None
