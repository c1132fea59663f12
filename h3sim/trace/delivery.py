"""In-order delivery of received bytes to the application, and its times.

The receiver records a time per row of `Trace.packet_rows`. It is None for rows of lost packets and
of duplicates, whose bytes another row delivers.

The path in `docs/reading.md` ends here; that page says where to go next.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from h3sim.values._mypyc import mypyc_attr
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


DeliveryTimes = list[int | None]
"""The delivery time of each row of a trace; None if it brought no new data."""

Delivered = tuple[int, int]
"""A stream, and its contiguous bytes delivered so far."""

_NOTHING_DELIVERED: tuple[Delivered, ...] = ()


class Receiver(Protocol):
    """A receiver: records delivery times, and reports the progress of streams."""

    delivered_at_ns: DeliveryTimes
    """A time per row of the trace; the sender appends None for each row."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report no progress of the stream until *n_bytes* of it have been delivered.

        That is the next point at which the browser reacts; earlier reports would be in vain.
        """


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamOrder:
    """In-order delivery per stream, independent of other streams (QUIC).

    >>> quic = StreamOrder([None] * 3)
    >>> arrivals = ((1, 4, 0, 10, 50), (2, 0, 10, 10, 60), (0, 0, 0, 10, 70))
    >>> [quic.on_packet(*arrival) for arrival in arrivals]
    [((4, 10),), (), ((0, 20),)]
    >>> quic.delivered_at_ns
    [70, 50, 70]
    """

    def __init__(self, delivered_at_ns: DeliveryTimes) -> None:
        self.delivered_at_ns = delivered_at_ns
        self._contiguous: dict[int, int] = {}
        """Contiguous bytes received, by stream."""
        self._report_from: dict[int, int] = {}
        """Delivered bytes from which on progress is reported, by stream."""
        self._received: dict[int, Ranges] = {}
        """Received bytes of the streams that have a hole."""
        self._has_bare_end: set[int] = set()
        """Streams whose end arrived in a row without bytes."""
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        """Streams with a hole: a heap of the rows that wait behind it, as (end, row)."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report no progress of the stream until *n_bytes* of it have been delivered."""
        self._report_from[stream_id] = n_bytes

    def on_packet(
        self, row: int, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver the row's bytes, and those waiting behind them, unless a hole precedes."""
        known = self._contiguous.get(stream_id, 0)
        if offset == known and n_bytes and stream_id not in self._received:
            contiguous = known + n_bytes
            self.delivered_at_ns[row] = now_ns
        elif n_bytes:
            contiguous = self._reassemble(row, stream_id, known, (offset, offset + n_bytes), now_ns)
            if contiguous == known:
                return _NOTHING_DELIVERED
        elif not self._delivers_bare_end(row, stream_id, offset, now_ns):
            return _NOTHING_DELIVERED
        else:
            contiguous = known
        self._contiguous[stream_id] = contiguous
        if contiguous < self._report_from.get(stream_id, 0):
            return _NOTHING_DELIVERED
        return ((stream_id, contiguous),)

    def on_packets(self, arrivals: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Deliver many rows, each with the arguments of `on_packet`, without reports."""
        contiguous, received, delivered_at_ns = (
            self._contiguous,
            self._received,
            self.delivered_at_ns,
        )
        on_packet, get_contiguous = self.on_packet, self._contiguous.get
        for row, stream_id, offset, n_bytes, now_ns in arrivals:
            # Nearly all are the next bytes of their stream, which are handled without a call.
            if n_bytes and offset == get_contiguous(stream_id, 0) and stream_id not in received:
                contiguous[stream_id] = offset + n_bytes
                delivered_at_ns[row] = now_ns
            else:
                on_packet(row, stream_id, offset, n_bytes, now_ns)

    def _delivers_bare_end(self, row: int, stream_id: int, offset: int, now_ns: int) -> bool:
        """Receive a row without bytes; return whether it delivers the end of its stream now.

        Such rows belong to empty responses, and to stacks that send the FIN in a frame of its own.
        """
        if stream_id in self._has_bare_end:
            return False
        self._has_bare_end.add(stream_id)
        if offset > self._contiguous.get(stream_id, 0):
            heappush(self._waiting.setdefault(stream_id, []), (offset, row))
            return False
        self.delivered_at_ns[row] = now_ns
        return True

    def _reassemble(
        self, row: int, stream_id: int, contiguous: int, span: tuple[int, int], now_ns: int
    ) -> int:
        """Return the contiguous bytes of the stream with *span*; deliver rows up to there."""
        received = self._received.get(stream_id)
        if received is None:
            received = self._received[stream_id] = Ranges()
            received.add(0, contiguous)
        waiting = self._waiting.setdefault(stream_id, [])
        start, end = span
        if received.add(start, end):  # otherwise a duplicate, which gets no time
            heappush(waiting, (end, row))
        contiguous = received.contiguous
        while waiting and waiting[0][0] <= contiguous:
            _, delivered_row = heappop(waiting)
            self.delivered_at_ns[delivered_row] = now_ns
        if contiguous == received.end:  # there is no hole any more
            del self._received[stream_id]
        return contiguous


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionOrder:
    """Delivery of all rows in the order sent (TCP without loss).

    >>> tcp = ConnectionOrder([None] * 3)
    >>> arrivals = ((1, 4, 0, 10, 50), (2, 0, 10, 10, 60), (0, 0, 0, 10, 70))
    >>> [tcp.on_packet(*arrival) for arrival in arrivals]
    [(), (), [(0, 10), (4, 10), (0, 20)]]
    >>> tcp.delivered_at_ns
    [70, 70, 70]
    """

    def __init__(self, delivered_at_ns: DeliveryTimes) -> None:
        self.delivered_at_ns = delivered_at_ns
        self._next_row = 0
        self._waiting: dict[int, Delivered] = {}
        """Rows that arrived before one sent earlier."""
        self._report_from: dict[int, int] = {}
        """Delivered bytes from which on progress is reported, by stream."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report no progress of the stream until *n_bytes* of it have been delivered."""
        self._report_from[stream_id] = n_bytes

    def on_packet(
        self, row: int, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver the row, and those waiting behind it, once all before it have arrived."""
        if row != self._next_row:
            self._waiting[row] = (stream_id, offset + n_bytes)
            return _NOTHING_DELIVERED
        delivered = [(stream_id, offset + n_bytes)]
        self.delivered_at_ns[row] = now_ns
        self._next_row += 1
        while self._next_row in self._waiting:
            delivered.append(self._waiting.pop(self._next_row))
            self.delivered_at_ns[self._next_row] = now_ns
            self._next_row += 1
        return [
            (stream_id, contiguous)
            for stream_id, contiguous in delivered
            if contiguous >= self._report_from.get(stream_id, 0)
        ]


class _WaitingRows:
    """The received rows of one stream that wait for their record, sorted by their ends."""

    __slots__ = ("delivered_bytes", "ends", "rows")

    def __init__(self) -> None:
        self.delivered_bytes = -1
        """The bytes delivered before; -1 before the first delivery, which may be empty."""
        self.ends: list[int] = []
        self.rows: list[int] = []


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordOrder:
    """Delivery by TLS record, in order: none before the last byte of its record (TCP).

    The endpoint restores the order of segments and records; this maps them to rows.

    >>> tcp = RecordOrder([None] * 2)
    >>> tcp.on_row(0, 4, 0, 10), tcp.on_row(1, 4, 10, 10)
    (None, None)
    >>> tcp.on_frame(4, 0, 20, 70), tcp.delivered_at_ns
    (((4, 20),), [70, 70])
    """

    def __init__(self, delivered_at_ns: DeliveryTimes) -> None:
        self.delivered_at_ns = delivered_at_ns
        self._report_from: dict[int, int] = {}
        """Delivered bytes from which on progress is reported, by stream."""
        self._waiting: dict[int, _WaitingRows] = {}

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report no progress of the stream until *n_bytes* of it have been delivered."""
        self._report_from[stream_id] = n_bytes

    def on_row(self, row: int, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that a segment carries the bytes of a row.

        A retransmitted segment carries the same rows, so the end of a row identifies it.
        """
        waiting = self._waiting.get(stream_id)
        if waiting is None:
            waiting = self._waiting[stream_id] = _WaitingRows()
        end, ends = offset + n_bytes, waiting.ends
        if end <= waiting.delivered_bytes:  # a duplicate
            return
        if not ends or end > ends[-1]:
            ends.append(end)
            waiting.rows.append(row)
            return
        position = bisect_left(ends, end)
        # An equal end is that of a retransmission: the row that arrived first gets the time.
        if ends[position] != end:
            ends.insert(position, end)
            waiting.rows.insert(position, row)

    def on_frame(
        self, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver a frame of a complete record; return the progress unless `watch` forbids it."""
        contiguous = offset + n_bytes
        waiting, delivered_at_ns = self._waiting[stream_id], self.delivered_at_ns
        waiting.delivered_bytes = contiguous
        n_rows = bisect_right(waiting.ends, contiguous)
        for row in waiting.rows[:n_rows]:
            delivered_at_ns[row] = now_ns
        del waiting.rows[:n_rows], waiting.ends[:n_rows]
        if contiguous < self._report_from.get(stream_id, 0):
            return _NOTHING_DELIVERED
        return ((stream_id, contiguous),)
