"""When rows of a trace are delivered, worked out from when they arrived.

A load needs none of this: whoever delivers in it writes the times down. It is for logs that do not
say, and for asking when bytes would have been delivered in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from h3sim.trace.delivery import StreamOrder, rows_of
from h3sim.trace.model import Delivery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.model import PacketRow, SentRow

__all__ = ["delivered_in_one_order", "delivered_per_stream", "with_delivery"]


def with_delivery(rows: Sequence[SentRow], delivery: Delivery) -> tuple[PacketRow, ...]:
    """Return *rows* with the times at which they are delivered, as follows from their arrivals.

    >>> rows = [(0, 30, 0, 0, 10, 0), (1, None, 4, 0, 10, 1), (2, 20, 0, 10, 10, 2)]
    >>> [row[6] for row in with_delivery(rows, Delivery.STREAM)]
    [30, None, 30]
    """
    times = delivered_per_stream(rows)
    if delivery is Delivery.CONNECTION:
        times = delivered_in_one_order(rows, times)
    return rows_of(rows, times)


def delivered_per_stream(rows: Sequence[SentRow | PacketRow]) -> DeliveryTimes:
    """Return when each row's bytes are delivered if each stream goes by itself."""
    order = StreamOrder([None] * len(rows))
    arrived = [(row[1], index) for index, row in enumerate(rows) if row[1] is not None]
    for at_ns, index in sorted(arrived):
        order.on_packet(index, *rows[index][2:5], at_ns)
    return order.delivered_at_ns


def delivered_in_one_order(
    rows: Sequence[SentRow | PacketRow], per_stream: DeliveryTimes
) -> DeliveryTimes:
    """Return when each row's bytes are delivered if all streams go in the order first sent.

    *per_stream* says when they are if each goes by itself. A row waits until everything has come
    that was sent for the first time before its last byte was: what is sent again keeps its place.
    """
    came_ns = _Coming(rows, per_stream)
    firsts: dict[int, tuple[list[int], list[int | None]]] = {}
    """For each stream: the ends of rows that sent something new, and when all up to there came."""
    latest: int | None = 0
    times: DeliveryTimes = []
    for row, own_ns in zip(rows, per_stream, strict=True):
        stream_id, end = row[2], row[3] + row[4]
        first = firsts.get(stream_id)
        if first is None:
            first = firsts[stream_id] = ([], [])
        ends, until = first
        if not ends or end > ends[-1]:
            # When its stream had come so far is when it was delivered, if it was.
            at_ns = came_ns.up_to(stream_id, end) if own_ns is None else own_ns
            if latest is not None and (at_ns is None or at_ns > latest):
                latest = at_ns
            ends.append(end)
            until.append(latest)
            until_ns = latest
        else:
            until_ns = until[bisect_right(ends, max(end - 1, 0)) if end > ends[0] else 0]
        if own_ns is None or until_ns is None:
            times.append(None)
        else:
            times.append(own_ns if own_ns > until_ns else until_ns)
    return times


class _Coming:
    """When streams had come how far; worked out only where something was lost."""

    def __init__(self, rows: Sequence[SentRow | PacketRow], per_stream: DeliveryTimes) -> None:
        self._rows = rows
        self._per_stream = per_stream
        self._reached: dict[int, tuple[list[int], list[int]]] | None = None

    def up_to(self, stream_id: int, end: int) -> int | None:
        """Return when a stream had come to *end*, None if it never did."""
        if self._reached is None:
            self._reached = _reached(self._rows, self._per_stream)
        ends, times = self._reached.get(stream_id, ([], []))
        at = bisect_left(ends, end)
        return times[at] if at < len(ends) else None


def _reached(
    rows: Sequence[SentRow | PacketRow], per_stream: DeliveryTimes
) -> dict[int, tuple[list[int], list[int]]]:
    """Return, for each stream, up to where it had come, and when, both rising."""
    delivered = [(at_ns, index) for index, at_ns in enumerate(per_stream) if at_ns is not None]
    reached: dict[int, tuple[list[int], list[int]]] = {}
    for at_ns, index in sorted(delivered):
        row = rows[index]
        ends, times = reached.setdefault(row[2], ([], []))
        if not ends or row[3] + row[4] > ends[-1]:
            ends.append(row[3] + row[4])
            times.append(at_ns)
    return reached
