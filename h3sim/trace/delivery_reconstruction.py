"""Delivery times reconstructed from the arrivals in a trace.

A load does not need it, since its receivers record the times. It is for logs without them, and for
the question when bytes would have been delivered in another order.
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


_NEVER: Final = 2**63 - 1
"""A time after all others."""


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
    order = StreamOrder([None] * len(rows))
    every = zip(range(len(rows)), streams, offsets, lengths, arrived_at_ns, strict=True)
    arrived: Iterable[Any] = compress(every, map(is_not, arrived_at_ns, repeat(None)))
    times = [at_ns for at_ns in arrived_at_ns if at_ns is not None]
    if not all(map(le, times, islice(times, 1, None))):
        # The sort is stable: rows that arrived at one instant stay in the order sent.
        arrived = sorted(arrived, key=itemgetter(4))
    order.on_packets(arrived)
    return order.delivered_at_ns


def delivered_in_one_order(rows: PacketRows, per_stream: Sequence[int | None]) -> DeliveryTimes:
    """Return each row's delivery time if all streams share the order of first transmission.

    *per_stream* has the times for independent streams. A row waits for all bytes that were first
    sent before its last byte: a retransmission keeps the position of the original.
    """
    _, _, streams, offsets, lengths, *_ = rows.columns
    ends = list(map(add, offsets, lengths))
    again = [index for index, before in rows.off_sequence if ends[index] <= before]
    ready_at_ns: list[Any] = list(per_stream)
    """Times when the stream of each new row reached the row's end, or `_NEVER`."""
    for index in again:
        ready_at_ns[index] = 0  # whatever waits for it waits for the original as well
    undelivered = [*compress(count(), map(is_, ready_at_ns, repeat(None)))]
    # Such a row was delivered when its stream reached the row's end, if it ever did.
    reached_times = _reached_at(undelivered, again, rows, ends, per_stream)
    for index in undelivered:
        ready_at_ns[index] = reached_times.get(index, _NEVER)
    # A running maximum: a row is not delivered before any row sent earlier.
    times: list[Any] = list(accumulate(ready_at_ns, max))
    is_complete = not times or times[-1] != _NEVER
    if again:
        _wait_as_first_sent(again, streams, ends, per_stream, times)
    # Only now: until here their times delayed the rows behind them.
    for index in undelivered:
        times[index] = None
    return times if is_complete else [None if at_ns == _NEVER else at_ns for at_ns in times]


def _wait_as_first_sent(
    again: list[int],
    streams: Sequence[int],
    ends: Sequence[int],
    per_stream: Sequence[int | None],
    times: list[Any],
) -> None:
    """Set in *times* the delivery times of the retransmissions *again*."""
    first = _first_sent(again, streams, ends)
    for index in again:
        own_ns = per_stream[index]
        times[index] = None if own_ns is None else max(own_ns, times[first[index]])


def _first_sent(again: list[int], streams: Sequence[int], ends: Sequence[int]) -> dict[int, int]:
    """Return for each retransmission the row that first sent its last byte."""
    # Nearly all end where the original ended, which is found without a Python call per row.
    repeated = {(streams[index], ends[index]) for index in again}
    known: dict[tuple[int, int], int] = {}
    for index in compress(count(), map(repeated.__contains__, zip(streams, ends, strict=True))):
        known.setdefault((streams[index], ends[index]), index)
    first = {index: known[streams[index], ends[index]] for index in again}
    unmatched = [index for index, number in first.items() if number in first]
    if not unmatched:
        return first
    sent: dict[int, tuple[list[int], list[int]]] = {streams[index]: ([], []) for index in unmatched}
    """The ends of the rows with new data by stream, and their indices."""
    for index in compress(count(), map(sent.__contains__, streams)):
        if index not in first:
            new_ends, numbers = sent[streams[index]]
            new_ends.append(ends[index])
            numbers.append(index)
    for index in unmatched:
        # The first row that ends there, or beyond, was the first with its last byte.
        new_ends, numbers = sent[streams[index]]
        first[index] = numbers[bisect_left(new_ends, ends[index])]
    return first


def _reached_at(
    undelivered: list[int],
    again: list[int],
    rows: PacketRows,
    ends: Sequence[int],
    per_stream: Sequence[int | None],
) -> dict[int, int]:
    """Return when the stream of each row reached the row's end, if it ever did.

    The rows are *undelivered*: other copies delivered their bytes.
    """
    streams, lengths = rows.columns.stream_id, rows.columns.length_bytes
    # Most retransmissions are identical. The first copy with the last bytes before an end was
    # delivered just when the stream reached it; a bare end may arrive later than the bytes before.
    known: dict[tuple[int, int], int] = {
        (streams[index], ends[index]): at_ns
        for index in again
        if lengths[index] and (at_ns := per_stream[index]) is not None
    }
    reached_at_ns: dict[int, int] = {}
    unmatched: list[int] = []
    for index in undelivered:
        exact_ns = known.get((streams[index], ends[index]))
        if exact_ns is None:
            unmatched.append(index)
        else:
            reached_at_ns[index] = exact_ns
    delivered: dict[int, list[tuple[int, int]]] = {streams[index]: [] for index in unmatched}
    """The ends of delivered rows by stream, and their times."""
    if unmatched:
        for index in compress(count(), map(delivered.__contains__, streams)):
            ready_at_ns = per_stream[index]
            if ready_at_ns is not None:
                delivered[streams[index]].append((ends[index], ready_at_ns))
    reached = {
        stream_id: _reached(ends_and_times) for stream_id, ends_and_times in delivered.items()
    }
    for index in unmatched:
        stream_ends, times = reached[streams[index]]
        at = bisect_left(stream_ends, ends[index])
        if at < len(stream_ends):
            reached_at_ns[index] = times[at]
    return reached_at_ns


def _reached(delivered: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the offsets that a stream had reached, rising, and the times when it did."""
    delivered.sort()
    ends = [end for end, _ in delivered]
    # A stream delivered up to a later end has reached the earlier ones by then.
    times = list(accumulate((at_ns for _, at_ns in reversed(delivered)), min))
    return ends, times[::-1]
