"""What every packet has, of QUIC or of TCP: as links and traces see it, and as its sender does."""

from __future__ import annotations

from typing import TypeAlias

from h3sim._mypyc import mypyc_attr

StreamBytes: TypeAlias = tuple[int, int, int]
"""A stream, an offset and a number of bytes."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WirePacket:
    """A packet (or segment) as the link and the trace see it."""

    # Classes and not protocols: the compiled build reads the attributes of a class from where they
    # lie, and those of a protocol by their names.

    __slots__ = ("first_row", "frames", "number", "sent_at_ns", "size_bytes")

    number: int
    sent_at_ns: int
    size_bytes: int
    """Its size without IP's header and all below; of a segment in flight, that of its payload."""
    frames: list[StreamBytes]
    """The bytes of streams that it carries."""
    first_row: int
    """The row of the trace that the first of them have; who writes the trace sets it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SentPacket(WirePacket):
    """A packet (or segment) that was sent, as controllers see it.

    The last four describe delivery-rate sampling: the state when the packet was sent
    (draft-cheng-iccrg-delivery-rate-estimation § 3.2). *delivered_bytes* counts the sizes of all
    packets that the controller had been told of as acknowledged. They are set for a controller that
    `reads_delivery`.
    """

    __slots__ = ("delivered_at_ns", "delivered_bytes", "first_sent_at_ns", "is_app_limited")

    is_app_limited: bool
    delivered_bytes: int
    delivered_at_ns: int
    first_sent_at_ns: int
