"""When rows of a trace are delivered, worked out from when they arrived.

A load needs none of this: whoever delivers in it writes the times down. It is for logs that do not
say, and for asking when bytes would have been delivered in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from h3sim.trace.delivery import StreamOrder
from h3sim.trace.model import Delivery
from h3sim.trace.packet_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.packet_rows import PacketRows, SentRow

__all__ = ["delivered_in_one_order", "delivered_per_stream", "with_delivery"]


def with_delivery(rows: Sequence[SentRow], delivery: Delivery) -> PacketRows:
    """Return *rows* with the times at which they are delivered, as follows from their arrivals.

    >>> rows = [(0, 30, 0, 0, 10, 0), (1, None, 4, 0, 10, 1), (2, 20, 0, 10, 10, 2)]
    >>> [row[6] for row in with_delivery(rows, Delivery.STREAM)]
    [30, None, 30]
    """
    table = rows_of(rows, [None] * len(rows))
    times = delivered_per_stream(table)
    if delivery is Delivery.CONNECTION:
        times = delivered_in_one_order(table, times)
    return table.with_delivery_at(times)


def delivered_per_stream(rows: PacketRows) -> DeliveryTimes:
    """Return when each row's bytes are delivered if each stream goes by itself."""
    _, arrived_at_ns, stream_id, offset, length_bytes, *_ = rows.columns
    order = StreamOrder([None] * len(rows))
    on_packet = order.on_packet
    arrived = [(at_ns, index) for index, at_ns in enumerate(arrived_at_ns) if at_ns is not None]
    for at_ns, index in sorted(arrived):
        on_packet(index, stream_id[index], offset[index], length_bytes[index], at_ns)
    return order.delivered_at_ns


def delivered_in_one_order(rows: PacketRows, per_stream: Sequence[int | None]) -> DeliveryTimes:
    """Return when each row's bytes are delivered if all streams go in the order first sent.

    *per_stream* says when they are if each goes by itself. A row waits until everything has come
    that was sent for the first time before its last byte was: what is sent again keeps its place.
    """
    came_ns = _Coming(rows, per_stream)
    firsts: dict[int, tuple[list[int], list[int | None]]] = {}
    """For each stream: the ends of rows that sent something new, and when all up to there came."""
    latest: int | None = 0
    times: DeliveryTimes = []
    _, _, streams, offsets, lengths, *_ = rows.columns
    for stream_id, offset, n_bytes, own_ns in zip(
        streams, offsets, lengths, per_stream, strict=True
    ):
        end = offset + n_bytes
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

    def __init__(self, rows: PacketRows, per_stream: Sequence[int | None]) -> None:
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
    rows: PacketRows, per_stream: Sequence[int | None]
) -> dict[int, tuple[list[int], list[int]]]:
    """Return, for each stream, up to where it had come, and when, both rising."""
    delivered = [(at_ns, index) for index, at_ns in enumerate(per_stream) if at_ns is not None]
    _, _, streams, offsets, lengths, *_ = rows.columns
    reached: dict[int, tuple[list[int], list[int]]] = {}
    for at_ns, index in sorted(delivered):
        ends, times = reached.setdefault(streams[index], ([], []))
        end = offsets[index] + lengths[index]
        if not ends or end > ends[-1]:
            ends.append(end)
            times.append(at_ns)
    return reached
