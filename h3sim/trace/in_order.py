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
    reached = _reached(rows, per_stream)
    firsts: dict[int, tuple[list[int], list[int | None]]] = {}
    """For each stream: the ends of rows that sent something new, and when all up to there came."""
    latest: int | None = 0
    for _, _, stream_id, offset, n_bytes, *_ in rows:
        ends, until = firsts.setdefault(stream_id, ([], []))
        end = offset + n_bytes
        if not ends or end > ends[-1]:
            came_ns = _came_ns(reached.get(stream_id), end)
            latest = None if latest is None or came_ns is None else max(latest, came_ns)
            ends.append(end)
            until.append(latest)
    times: DeliveryTimes = []
    for row, own_ns in zip(rows, per_stream, strict=True):
        ends, until = firsts[row[2]]
        last = max(row[3] + row[4] - 1, 0)
        until_ns = until[min(bisect_right(ends, last), len(ends) - 1)]
        times.append(None if own_ns is None or until_ns is None else max(own_ns, until_ns))
    return times


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


def _came_ns(reached: tuple[list[int], list[int]] | None, end: int) -> int | None:
    """Return when a stream had come to *end*, None if it never did."""
    if reached is None:
        return None
    at = bisect_left(reached[0], end)
    return reached[1][at] if at < len(reached[0]) else None
