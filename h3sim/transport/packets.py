"""The common parts of QUIC packets and TCP segments: on the wire, and at their sender."""

from __future__ import annotations

from typing import Final, TypeAlias

from h3sim.values._mypyc import mypyc_attr

StreamBytes: TypeAlias = tuple[int, int, int]
"""A stream, an offset and a number of bytes."""

NOT_ECT: Final = 0
"""The ECN codepoint of a packet that queues drop instead of marking it."""
ECT: Final = 2
"""ECT(0), of a packet whose sender responds to marks (RFC 3168 § 5)."""
CE: Final = 3
"""Congestion Experienced: the mark of a queue, in place of a drop."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WirePacket:
    """A packet (or segment) as the link and the trace see it."""

    # Classes and not protocols: the compiled build reads attributes of a class at fixed offsets,
    # those of a protocol by name.

    __slots__ = ("ecn", "first_row", "frames", "number", "sent_at_ns", "size_bytes")

    number: int
    sent_at_ns: int
    size_bytes: int
    """Size without the IP header and below; for a segment in flight, its payload."""
    frames: list[StreamBytes]
    """The stream bytes that it carries."""
    first_row: int
    """The trace row of the first of them, set by the writer of the trace."""
    ecn: int
    """The ECN codepoint in its IP header; not set in records of a sender."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SentPacket(WirePacket):
    """A packet (or segment) that was sent, as controllers see it.

    The first four annotated attributes serve delivery-rate sampling: the state when the packet was
    sent (draft-cheng-iccrg-delivery-rate-estimation § 3.2). *delivered_bytes* is the sum of the
    sizes of all packets acknowledged before. They are set only if the controller `reads_delivery`.
    """

    __slots__ = (
        "delivered_at_ns",
        "delivered_bytes",
        "first_sent_at_ns",
        "in_flight_bytes",
        "is_app_limited",
        "lost_before_bytes",
    )

    is_app_limited: bool
    delivered_bytes: int
    delivered_at_ns: int
    first_sent_at_ns: int
    in_flight_bytes: int
    """The bytes in flight just after it was sent; set only by controllers that need them."""
    lost_before_bytes: int
    """The bytes declared lost before it was sent; set only by controllers that need them."""
