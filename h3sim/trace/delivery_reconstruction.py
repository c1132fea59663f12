"""Delivery times reconstructed from the arrivals in a trace.

Loads do not need it, since their receivers record the times. It is for logs without such times, and
for metrics of the time at which bytes would have been delivered in another order.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, compress, count, islice, repeat
from operator import add, is_, is_not, itemgetter, le
from typing import TYPE_CHECKING, Any, Final

from h3sim.trace.delivery import StreamOrder
from h3sim.trace.model import Delivery
from h3sim.trace.packets import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.packets import PacketRows, SentRow


_NEVER_NS: Final = 2**63 - 1
"""A time after all others, for bytes that never arrive."""


def with_delivery(rows: Sequence[SentRow], delivery: Delivery) -> PacketRows:
    """Return *rows* with delivery times that follow from their arrivals.

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
    """Return each row's delivery time if streams are independent."""
    _, arrived_at_ns, streams, offsets, lengths, *_ = rows.columns
    receiver = StreamOrder([None] * len(rows))
    packets = zip(range(len(rows)), streams, offsets, lengths, arrived_at_ns, strict=True)
    arrivals: Iterable[Any] = compress(packets, map(is_not, arrived_at_ns, repeat(None)))
    times = [at_ns for at_ns in arrived_at_ns if at_ns is not None]
    if not all(map(le, times, islice(times, 1, None))):
        # By arrival. The sort is stable: rows that arrived at one instant stay in the order sent.
        arrivals = sorted(arrivals, key=itemgetter(4))
    receiver.on_packets(arrivals)
    return receiver.delivered_at_ns


def delivered_in_one_order(rows: PacketRows, per_stream: Sequence[int | None]) -> DeliveryTimes:
    """Return each row's delivery time if all streams share the order of first transmission.

    *per_stream* has the times for independent streams. A row waits for all bytes that were first
    sent before its last byte: a retransmission keeps the position of the original.
    """
    _, _, streams, offsets, lengths, *_ = rows.columns
    ends = list(map(add, offsets, lengths))
    retransmitted = [index for index, sent_end in rows.off_sequence if ends[index] <= sent_end]
    # When the stream of each row has all bytes up to the end of the row.
    ready_at_ns: list[Any] = list(per_stream)
    for index in retransmitted:
        ready_at_ns[index] = 0  # rows sent later wait for the original anyway
    undelivered = [*compress(count(), map(is_, ready_at_ns, repeat(None)))]
    # Other copies delivered the bytes of such a row, if any did.
    ready_by_row = _ready_by_row(undelivered, retransmitted, rows, ends, per_stream)
    for index in undelivered:
        ready_at_ns[index] = ready_by_row.get(index, _NEVER_NS)
    # A running maximum: a row is not delivered before any row sent earlier.
    times: list[Any] = list(accumulate(ready_at_ns, max))
    is_complete = not times or times[-1] != _NEVER_NS
    if retransmitted:
        originals = _originals(retransmitted, streams, ends)
        for index in retransmitted:
            own_ns = per_stream[index]
            times[index] = None if own_ns is None else max(own_ns, times[originals[index]])
    # Last, since the times of these rows, which delivered nothing, delay the rows behind them.
    for index in undelivered:
        times[index] = None
    return times if is_complete else [None if at_ns == _NEVER_NS else at_ns for at_ns in times]


def _originals(
    retransmitted: list[int], streams: Sequence[int], ends: Sequence[int]
) -> dict[int, int]:
    """Return for each retransmission the row that first sent its last byte."""
    # Nearly all end where the original ended, which is found without a Python call per row.
    retransmitted_ends = {(streams[index], ends[index]) for index in retransmitted}
    is_end = map(retransmitted_ends.__contains__, zip(streams, ends, strict=True))
    first_by_end: dict[tuple[int, int], int] = {}
    for index in compress(count(), is_end):
        first_by_end.setdefault((streams[index], ends[index]), index)
    originals = {index: first_by_end[streams[index], ends[index]] for index in retransmitted}
    # The first row with such an end is itself a retransmission: of a part of the original.
    unmatched = [index for index, original in originals.items() if original in originals]
    if not unmatched:
        return originals
    # By stream: the ends of the rows with new data, and their indices.
    new_rows: dict[int, tuple[list[int], list[int]]] = {
        streams[index]: ([], []) for index in unmatched
    }
    for index in compress(count(), map(new_rows.__contains__, streams)):
        if index not in originals:
            new_ends, indices = new_rows[streams[index]]
            new_ends.append(ends[index])
            indices.append(index)
    for index in unmatched:
        # The first row that ends there, or beyond, was the first with its last byte.
        new_ends, indices = new_rows[streams[index]]
        originals[index] = indices[bisect_left(new_ends, ends[index])]
    return originals


def _ready_by_row(
    undelivered: list[int],
    retransmitted: list[int],
    rows: PacketRows,
    ends: Sequence[int],
    per_stream: Sequence[int | None],
) -> dict[int, int]:
    """Return when the stream of each row had all bytes up to the row's end, if it ever did.

    The rows are *undelivered*: other copies delivered their bytes.
    """
    streams, lengths = rows.columns.stream_id, rows.columns.length_bytes
    # Most retransmissions end like the lost row. The one that was delivered brought the last bytes
    # before the end, unless it is a bare end of stream, which may arrive later than those bytes.
    delivered_by_end: dict[tuple[int, int], int] = {
        (streams[index], ends[index]): at_ns
        for index in retransmitted
        if lengths[index] and (at_ns := per_stream[index]) is not None
    }
    ready_by_row: dict[int, int] = {}
    unmatched: list[int] = []
    for index in undelivered:
        delivered_at_ns = delivered_by_end.get((streams[index], ends[index]))
        if delivered_at_ns is None:
            unmatched.append(index)
        else:
            ready_by_row[index] = delivered_at_ns
    # By stream: the ends of all delivered rows, and their times.
    deliveries: dict[int, list[tuple[int, int]]] = {streams[index]: [] for index in unmatched}
    if unmatched:
        for index in compress(count(), map(deliveries.__contains__, streams)):
            at_ns = per_stream[index]
            if at_ns is not None:
                deliveries[streams[index]].append((ends[index], at_ns))
    progress = {stream_id: _progress(delivered) for stream_id, delivered in deliveries.items()}
    for index in unmatched:
        reached_ends, times = progress[streams[index]]
        position = bisect_left(reached_ends, ends[index])
        if position < len(reached_ends):
            ready_by_row[index] = times[position]
    return ready_by_row


def _progress(delivered: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the offsets that a stream reached, rising, and the times when it did."""
    delivered.sort()
    ends = [end for end, _ in delivered]
    # A stream delivered up to a later end has reached the earlier ones by then.
    times = list(accumulate((at_ns for _, at_ns in reversed(delivered)), min))
    return ends, times[::-1]
