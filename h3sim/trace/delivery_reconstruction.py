"""Delivery times reconstructed from the arrivals in a trace.

A load needs none of this: whoever delivers in it writes the times down. It is for logs that do not
say, and for asking when bytes would have been delivered in another order.
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
"""Later than any time."""


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
    _, arrived_at_ns, streams, offsets, lengths, *_ = rows.columns
    order = StreamOrder([None] * len(rows))
    every = zip(range(len(rows)), streams, offsets, lengths, arrived_at_ns, strict=True)
    came: Iterable[Any] = compress(every, map(is_not, arrived_at_ns, repeat(None)))
    times = [at_ns for at_ns in arrived_at_ns if at_ns is not None]
    if not all(map(le, times, islice(times, 1, None))):
        # Those that came at one instant stay in the order sent.
        came = sorted(came, key=itemgetter(4))
    order.on_packets(came)
    return order.delivered_at_ns


def delivered_in_one_order(rows: PacketRows, per_stream: Sequence[int | None]) -> DeliveryTimes:
    """Return when each row's bytes are delivered if all streams go in the order first sent.

    *per_stream* says when they are if each goes by itself. A row waits until everything has come
    that was sent for the first time before its last byte was: what is sent again keeps its place.
    """
    _, _, streams, offsets, lengths, *_ = rows.columns
    ends = list(map(add, offsets, lengths))
    again = [index for index, before in rows.off_sequence if ends[index] <= before]
    came_at_ns: list[Any] = list(per_stream)
    """Of a row that sends something new: when its stream had come up to its end, or `_NEVER`."""
    for index in again:
        came_at_ns[index] = 0  # nothing waits for it that does not wait for what it repeats
    undelivered = [*compress(count(), map(is_, came_at_ns, repeat(None)))]
    # When its stream had come so far is when such a row was delivered, if it was.
    reached_at_ns = _reached_at(undelivered, again, rows, ends, per_stream)
    for index in undelivered:
        came_at_ns[index] = reached_at_ns.get(index, _NEVER)
    # What comes last of all that was sent before comes no earlier than the row itself.
    times: list[Any] = list(accumulate(came_at_ns, max))
    is_whole = not times or times[-1] != _NEVER
    if again:
        _wait_as_first_sent(again, streams, ends, per_stream, times)
    # Only now: behind them their times held others back.
    for index in undelivered:
        times[index] = None
    return times if is_whole else [None if at_ns == _NEVER else at_ns for at_ns in times]


def _wait_as_first_sent(
    again: list[int],
    streams: Sequence[int],
    ends: Sequence[int],
    per_stream: Sequence[int | None],
    times: list[Any],
) -> None:
    """Write into *times* when the rows *again*, which send nothing new, are delivered."""
    first = _first_sent(again, streams, ends)
    for index in again:
        own_ns = per_stream[index]
        times[index] = None if own_ns is None else max(own_ns, times[first[index]])


def _first_sent(again: list[int], streams: Sequence[int], ends: Sequence[int]) -> dict[int, int]:
    """Return, for each row that sends nothing new, the one that first sent its last byte."""
    # Nearly all end where the row ended that they repeat, and that is found without a function of
    # Python for each row.
    repeated = {(streams[index], ends[index]) for index in again}
    known: dict[tuple[int, int], int] = {}
    for index in compress(count(), map(repeated.__contains__, zip(streams, ends, strict=True))):
        known.setdefault((streams[index], ends[index]), index)
    first = {index: known[streams[index], ends[index]] for index in again}
    others = [index for index, number in first.items() if number in first]
    if not others:
        return first
    sent: dict[int, tuple[list[int], list[int]]] = {streams[index]: ([], []) for index in others}
    """Of their streams: where rows end that send something new, and which those are."""
    for index in compress(count(), map(sent.__contains__, streams)):
        if index not in first:
            new_ends, numbers = sent[streams[index]]
            new_ends.append(ends[index])
            numbers.append(index)
    for index in others:
        # The first row that ends where this one does, or farther, brought its last byte first.
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
    """Return when the stream of each row had come to the row's end, where it ever did.

    The rows are *undelivered*: others brought what they carried.
    """
    streams, lengths = rows.columns.stream_id, rows.columns.length_bytes
    # Most are sent again as they were. Who was the first to bring the last bytes before their end
    # was delivered just when the stream had come so far; an end without a byte may come later than
    # the bytes before it.
    known: dict[tuple[int, int], int] = {
        (streams[index], ends[index]): at_ns
        for index in again
        if lengths[index] and (at_ns := per_stream[index]) is not None
    }
    found: dict[int, int] = {}
    others: list[int] = []
    for index in undelivered:
        exact_ns = known.get((streams[index], ends[index]))
        if exact_ns is None:
            others.append(index)
        else:
            found[index] = exact_ns
    delivered: dict[int, list[tuple[int, int]]] = {streams[index]: [] for index in others}
    """Of the streams of the others: where rows end that were delivered, and when they were."""
    if others:
        for index in compress(count(), map(delivered.__contains__, streams)):
            came_at_ns = per_stream[index]
            if came_at_ns is not None:
                delivered[streams[index]].append((ends[index], came_at_ns))
    reached = {stream_id: _reached(those) for stream_id, those in delivered.items()}
    for index in others:
        of_stream, times = reached[streams[index]]
        at = bisect_left(of_stream, ends[index])
        if at < len(of_stream):
            found[index] = times[at]
    return found


def _reached(delivered: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return up to where a stream had come, rising, and when; it had not come farther before."""
    delivered.sort()
    ends = [end for end, _ in delivered]
    # Whoever was delivered up to a later end had come to the earlier ones by then.
    times = list(accumulate((at_ns for _, at_ns in reversed(delivered)), min))
    return ends, times[::-1]
