"""When rows of a trace are delivered, worked out from when they arrived.

A load needs none of this: whoever delivers in it writes the times down. It is for logs that do not
say, and for asking when bytes would have been delivered in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, compress
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
    arrived = [(at_ns, index) for index, at_ns in enumerate(arrived_at_ns) if at_ns is not None]
    arrived.sort()
    order.on_packets(
        (index, stream_id[index], offset[index], length_bytes[index], at_ns)
        for at_ns, index in arrived
    )
    return order.delivered_at_ns


def delivered_in_one_order(rows: PacketRows, per_stream: Sequence[int | None]) -> DeliveryTimes:
    """Return when each row's bytes are delivered if all streams go in the order first sent.

    *per_stream* says when they are if each goes by itself. A row waits until everything has come
    that was sent for the first time before its last byte was: what is sent again keeps its place.
    """
    came_ns = _Coming(rows, per_stream)
    reached: dict[int, int] = {}
    """How far each stream has been sent."""
    ends: dict[int, list[int]] = {}
    until: dict[int, list[int | None]] = {}
    """For each stream: where rows end that sent something new, and when all up to there came."""
    latest: int | None = 0
    times: DeliveryTimes = []
    _, _, streams, offsets, lengths, *_ = rows.columns
    for stream_id, offset, n_bytes, own_ns in zip(
        streams, offsets, lengths, per_stream, strict=True
    ):
        end = offset + n_bytes
        known = reached.get(stream_id)
        if known is None:
            ends[stream_id], until[stream_id] = [], []
        if known is None or end > known:
            # When its stream had come so far is when it was delivered, if it was.
            at_ns = came_ns.up_to(stream_id, end) if own_ns is None else own_ns
            if latest is not None and (at_ns is None or at_ns > latest):
                latest = at_ns
            reached[stream_id] = end
            ends[stream_id].append(end)
            until[stream_id].append(latest)
            # What comes last of all that was sent before comes no earlier than the row itself.
            times.append(None if own_ns is None else latest)
            continue
        first_ends = ends[stream_id]
        index = bisect_right(first_ends, max(end - 1, 0)) if end > first_ends[0] else 0
        until_ns = until[stream_id][index]
        if own_ns is None or until_ns is None:
            times.append(None)
        else:
            times.append(own_ns if own_ns > until_ns else until_ns)
    return times


class _Coming:
    """When streams had come how far; worked out only for those of which something was lost."""

    def __init__(self, rows: PacketRows, per_stream: Sequence[int | None]) -> None:
        self._rows = rows
        self._per_stream = per_stream
        self._delivered: dict[int, list[tuple[int, int]]] | None = None
        self._reached: dict[int, tuple[list[int], list[int]]] = {}

    def up_to(self, stream_id: int, end: int) -> int | None:
        """Return when a stream had come to *end*, None if it never did."""
        known = self._reached.get(stream_id)
        if known is None:
            if self._delivered is None:
                self._delivered = self._delivered_of_lossy()
            known = self._reached[stream_id] = _reached(self._delivered[stream_id])
        ends, times = known
        at = bisect_left(ends, end)
        return times[at] if at < len(ends) else None

    def _delivered_of_lossy(self) -> dict[int, list[tuple[int, int]]]:
        """Return where rows that were delivered end, and when they were, of each such stream."""
        _, _, streams, offsets, lengths, *_ = self._rows.columns
        per_stream = self._per_stream
        lost = (at_ns is None for at_ns in per_stream)
        found: dict[int, list[tuple[int, int]]] = {s: [] for s in compress(streams, lost)}
        for stream_id, offset, n_bytes, at_ns in zip(
            streams, offsets, lengths, per_stream, strict=True
        ):
            if at_ns is not None and stream_id in found:
                found[stream_id].append((offset + n_bytes, at_ns))
        return found


def _reached(delivered: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return up to where a stream had come, rising, and when; it had not come farther before."""
    delivered.sort()
    ends = [end for end, _ in delivered]
    # Whoever was delivered up to a later end had come to the earlier ones by then.
    times = list(accumulate((at_ns for _, at_ns in reversed(delivered)), min))
    return ends, times[::-1]
