"""The way to a server that is farther away than the network says, or nearer, over its link."""

from __future__ import annotations

from h3sim.transport.link import Link

__all__ = ["RemoteLink"]


class RemoteLink(Link):
    """Sends over *link*, which others share, and adds to what one way takes.

    Bottleneck, queue and losses are the link's: packets meet them in the order sent, and the way
    that they do not share comes behind. *extra_ns* is below 0 for a server that is nearer; then it
    is at most what the link itself delays.

    >>> from h3sim.seeds import stream
    >>> from h3sim.transport.link import Link
    >>> from h3sim.transport.link_profile import LinkProfile
    >>> profile = LinkProfile(rate_bps=1_000_000, burst_bytes=0)
    >>> link = Link(profile, rtt_ns=20_000_000, streams=lambda purpose: stream(0, purpose))
    >>> far = RemoteLink(link, 5_000_000)
    >>> link.send(0, 1250), far.send(0, 1250), link.send(0, 1250)
    (20000000, 35000000, 40000000)
    """

    __slots__ = ("_link", "_more_ns")

    def __init__(self, link: Link, extra_ns: int) -> None:
        # No bottleneck of its own is made: whoever sends takes a link, and all else is *link*'s.
        self._link = link
        self._more_ns = extra_ns

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        """Return when a packet of so many bytes, sent now, arrives; None: it never does."""
        arrives_at_ns = self._link.send(now_ns, size_bytes)
        return None if arrives_at_ns is None else arrives_at_ns + self._more_ns
