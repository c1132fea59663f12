"""When rows of a trace are delivered, worked out from when they arrived.

A load needs none of this: whoever delivers in it writes the times down. It is for logs that do not
say, and for asking when bytes would have been delivered in another order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, compress, count, islice, repeat
from operator import is_, is_not, itemgetter, le
from typing import TYPE_CHECKING, Any, Final

from h3sim.trace.delivery import StreamOrder
from h3sim.trace.model import Delivery
from h3sim.trace.packet_rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.packet_rows import PacketRows, SentRow

__all__ = ["delivered_in_one_order", "delivered_per_stream", "with_delivery"]

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
    coming = _Coming(rows, per_stream)
    reached: dict[int, int] = {}
    """For each stream: how far it had been sent."""
    latest = 0
    times: list[Any] = []
    """Of a row that sends something new: when all had come up to there, or `_NEVER`."""
    undelivered: list[int] = []
    again: list[int] = []
    _, _, streams, offsets, lengths, *_ = rows.columns
    for stream_id, offset, n_bytes, own_ns in zip(
        streams, offsets, lengths, per_stream, strict=True
    ):
        end = offset + n_bytes
        # -1, so that a stream without a byte, which ends at 0, is new as well.
        if end <= reached.get(stream_id, -1):
            again.append(len(times))
        else:
            reached[stream_id] = end
            at_ns = own_ns
            if at_ns is None:
                # When its stream had come so far is when it was delivered, if it was.
                undelivered.append(len(times))
                at_ns = coming.up_to(stream_id, end)
            if at_ns is None:
                latest = _NEVER
            elif at_ns > latest:
                latest = at_ns
        # What comes last of all that was sent before comes no earlier than the row itself.
        times.append(latest)
    if again:
        _wait_as_first_sent(again, rows, per_stream, times)
    # Only now: behind them their times held others back.
    for index in undelivered:
        times[index] = None
    return times if latest != _NEVER else [None if at_ns == _NEVER else at_ns for at_ns in times]


def _wait_as_first_sent(
    again: list[int], rows: PacketRows, per_stream: Sequence[int | None], times: list[Any]
) -> None:
    """Write into *times* when the rows *again*, which send nothing new, are delivered."""
    _, _, streams, offsets, lengths, *_ = rows.columns
    sent: dict[int, tuple[list[int], list[int]]] = {streams[index]: ([], []) for index in again}
    """Of these streams: where rows end that send something new, and which those are."""
    for index in compress(count(), map(sent.__contains__, streams)):
        ends, numbers = sent[streams[index]]
        end = offsets[index] + lengths[index]
        if not ends or end > ends[-1]:
            ends.append(end)
            numbers.append(index)
    for index in again:
        own_ns = per_stream[index]
        ends, numbers = sent[streams[index]]
        end = offsets[index] + lengths[index]
        # The first row that ends where this one does, or farther, brought its last byte first.
        first = bisect_right(ends, end - 1) if end > ends[0] else 0
        until_ns = times[numbers[first]]
        times[index] = None if own_ns is None else max(own_ns, until_ns)


class _Coming:
    """When streams had come how far: asked for rows of which nothing was delivered."""

    def __init__(self, rows: PacketRows, per_stream: Sequence[int | None]) -> None:
        self._rows = rows
        self._per_stream = per_stream
        self._known = self._resent()
        self._reached: dict[int, tuple[list[int], list[int]]] = {}

    def up_to(self, stream_id: int, end: int) -> int | None:
        """Return when a stream had come to *end*, None if it never did."""
        at_ns = self._known.get((stream_id, end))
        if at_ns is not None:
            return at_ns
        if stream_id not in self._reached:
            self._reached[stream_id] = self._reached_by(stream_id)
        ends, times = self._reached[stream_id]
        at = bisect_left(ends, end)
        return times[at] if at < len(ends) else None

    def _resent(self) -> dict[tuple[int, int], int]:
        """Return when streams had come to where lost rows end that were sent again as they were.

        So are most. Who was the first to bring the last bytes before there was delivered just when
        the stream had come so far.
        """
        _, _, streams, offsets, lengths, *_ = self._rows.columns
        per_stream = self._per_stream
        missing = map(is_, per_stream, repeat(None))
        wanted = {(streams[i], offsets[i] + lengths[i]) for i in compress(count(), missing)}
        if not wanted:
            return {}
        known: dict[tuple[int, int], int] = {}
        for stream_id, offset, n_bytes, at_ns in zip(
            streams, offsets, lengths, per_stream, strict=True
        ):
            end = (stream_id, offset + n_bytes)
            # An end without a byte may come later than the bytes before it.
            if n_bytes and at_ns is not None and end in wanted:
                known[end] = at_ns
        return known

    def _reached_by(self, stream_id: int) -> tuple[list[int], list[int]]:
        """Return where rows of a stream end that were delivered, rising, and when they were."""
        _, _, streams, offsets, lengths, *_ = self._rows.columns
        delivered = [
            (offset + n_bytes, at_ns)
            for of, offset, n_bytes, at_ns in zip(
                streams, offsets, lengths, self._per_stream, strict=True
            )
            if of == stream_id and at_ns is not None
        ]
        return _reached(delivered)


def _reached(delivered: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return up to where a stream had come, rising, and when; it had not come farther before."""
    delivered.sort()
    ends = [end for end, _ in delivered]
    # Whoever was delivered up to a later end had come to the earlier ones by then.
    times = list(accumulate((at_ns for _, at_ns in reversed(delivered)), min))
    return ends, times[::-1]
