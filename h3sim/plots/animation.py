"""What an animation shows: packets on the wire, and what either order of delivery holds back.

Needs no drawing library. Both orders are those of the same packets: what the load's own transport
did, and what the other would have done with them (as Sander 2022 § 4 compares them).
"""

from __future__ import annotations

from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from h3sim.trace import Delivery, delivered_in_one_order, delivered_per_stream
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.results import Load

__all__ = ["ORDERS", "Flight", "LostPacket", "Scene", "scene_of", "state_of"]

ORDERS = ("QUIC: each stream in its own order", "TCP: all streams in one order")
_LEAST_FLIGHTS = 6
"""Where packets take no time, they are drawn under way for so many send intervals."""


class Flight(NamedTuple):
    """A packet, or the part of one stream in it, in the order sent; times in ms.

    *came_ms* is None where it was lost. *given_ms* has, for each of `ORDERS`, when the application
    gets what this one was the first to bring, None where that is nothing. From *shown_ms* on it is
    drawn under way, and if it is lost it is gone from *gone_ms* on.
    """

    shown_ms: float
    came_ms: float | None
    gone_ms: float
    resource: int
    n_bytes: int
    given_ms: tuple[float | None, ...]


class LostPacket(NamedTuple):
    """A packet that was lost: its index, when it left, and when its bytes came in another.

    *waiting* counts the packets that have come by then and are held back, for each of `ORDERS`.
    """

    flight: int
    sent_ms: float
    mended_ms: float
    waiting: tuple[int, ...]


class Scene(NamedTuple):
    """All packets of a load, and what was lost of them."""

    flights: list[Flight]
    losses: list[LostPacket]
    interval_ms: float
    end_ms: float


def scene_of(load: Load) -> Scene:
    """Return what an animation of *load* shows."""
    rows = load.trace.packet_rows
    own = list(rows.columns.delivered_at_ns)
    if load.trace.delivery is Delivery.STREAM:
        orders = (own, delivered_in_one_order(rows, own))
    else:
        orders = (delivered_per_stream(rows), own)
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    interval_ns = load.network.packet_interval_ns
    took_ns = [came - sent for sent, came, *_ in rows if came is not None]
    usual_ns = max(median(took_ns) if took_ns else 0, _LEAST_FLIGHTS * interval_ns)
    flights = []
    for index, (sent_at_ns, came_at_ns, stream_id, _, n_bytes, *_) in enumerate(rows):
        came_ms = None if came_at_ns is None else to_ms(came_at_ns)
        lands_ms = to_ms(sent_at_ns + int(usual_ns)) if came_ms is None else came_ms
        shown_ms = min(to_ms(sent_at_ns), lands_ms - _LEAST_FLIGHTS * interval_ns / 1e6)
        given = (order[index] for order in orders)
        flights.append(
            Flight(
                shown_ms,
                came_ms,
                (shown_ms + lands_ms) / 2,
                resource_of[stream_id],
                n_bytes,
                tuple(None if at_ns is None else to_ms(at_ns) for at_ns in given),
            )
        )
    given_ms = [at_ms for flight in flights for at_ms in flight.given_ms if at_ms is not None]
    losses = _losses_of(load, flights)
    return Scene(flights, losses, interval_ns / 1e6, max(given_ms, default=0.0))


def _losses_of(load: Load, flights: Sequence[Flight]) -> list[LostPacket]:
    """Return what was lost and came in a later packet, in the order sent."""
    rows = load.trace.packet_rows
    lost = [index for index, flight in enumerate(flights) if flight.came_ms is None]
    later: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        later.setdefault(row[2], []).append(index)
    counts = [_Counts(flights, order) for order in range(len(ORDERS))]
    found = []
    for index in lost:
        sent_at_ns, _, stream_id, offset, n_bytes, *_ = rows[index]
        end = offset + n_bytes
        of_stream = later[stream_id]
        came = [
            at_ms
            # Later packets of the stream only, found by halves: a long load has thousands of them.
            for other in of_stream[bisect_left(of_stream, index) + 1 :]
            # Its last byte is what says that it is made good; what comes again may be cut
            # otherwise.
            if rows[other][3] < end <= rows[other][3] + rows[other][4]
            and (at_ms := flights[other].came_ms) is not None
        ]
        if came:
            mended_ms = min(came)
            waiting = tuple(count.held_before(mended_ms) for count in counts)
            found.append(LostPacket(index, to_ms(sent_at_ns), mended_ms, waiting))
    return found


class _Counts:
    """How many packets wait at an instant in one order, by counting those before it."""

    def __init__(self, flights: Sequence[Flight], order: int) -> None:
        pairs = [
            (flight.came_ms, given_ms)
            for flight in flights
            if flight.came_ms is not None and (given_ms := flight.given_ms[order]) is not None
        ]
        self._came = sorted(came_ms for came_ms, _ in pairs)
        self._given = sorted(given_ms for _, given_ms in pairs)

    def held_before(self, at_ms: float) -> int:
        # What has come by then, less what was delivered: nothing is delivered before it comes.
        return bisect_left(self._came, at_ms) - bisect_left(self._given, at_ms)


def state_of(flight: Flight, order: int, at_ms: float) -> str:
    """Return where a packet is at an instant, for an order of delivery.

    "ahead" of being sent, on the "wire", "lost", "held" back, "given" to the application; or a
    "copy" of what had come before.

    >>> flight = Flight(0.0, 10.0, 5.0, 0, 1400, (10.0, 30.0))
    >>> [state_of(flight, order, 20.0) for order in (0, 1)], state_of(flight, 0, 3.0)
    (['given', 'held'], 'wire')
    """
    if at_ms < flight.shown_ms:
        return "ahead"
    if flight.came_ms is None:
        return "lost" if at_ms >= flight.gone_ms else "wire"
    if at_ms < flight.came_ms:
        return "wire"
    given_ms = flight.given_ms[order]
    if given_ms is None:
        return "copy"
    return "given" if at_ms >= given_ms else "held"
