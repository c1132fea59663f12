"""In-order delivery of received bytes to the application, and its times.

The receiver records a time per row of `Trace.packet_rows`, for the first copy of its bytes. Rows of
lost bytes, and of duplicates, which were delivered before or wait already, have None.

The path in `docs/reading.md` ends here; that page says where to go next.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from h3sim._mypyc import mypyc_attr
from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


DeliveryTimes = list[int | None]
"""The delivery time of each row of a trace; None if it brought no new data."""

Delivered = tuple[int, int]
"""A stream, and its contiguous bytes delivered so far."""

_NOTHING: tuple[Delivered, ...] = ()


class Receiver(Protocol):
    """A receiver: records delivery times, and reports the progress of streams."""

    delivered_at_ns: DeliveryTimes
    """A time per row of the trace; the sender appends None."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of the stream before *n_bytes* of it have been delivered."""


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
        self._watched: dict[int, int] = {}
        self._ahead: dict[int, Ranges] = {}
        self._ended: dict[int, None] = {}
        """Streams whose end arrived in a row without bytes."""
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        """Streams with a hole: a heap of the rows that wait behind it, as (end, row)."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of the stream before *n_bytes* of it have been delivered."""
        self._watched[stream_id] = n_bytes

    def on_packet(
        self, row: int, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver the row's bytes, and those waiting behind them, unless a hole precedes."""
        known = self._contiguous.get(stream_id, 0)
        if offset == known and n_bytes and stream_id not in self._ahead:
            contiguous = known + n_bytes
            self.delivered_at_ns[row] = now_ns
        elif n_bytes:
            contiguous = self._reassemble(row, stream_id, known, (offset, offset + n_bytes), now_ns)
            if contiguous == known:
                return _NOTHING
        elif not self._is_end(row, stream_id, offset, now_ns):
            return _NOTHING
        else:
            contiguous = known
        self._contiguous[stream_id] = contiguous
        if contiguous < self._watched.get(stream_id, 0):
            return _NOTHING
        return ((stream_id, contiguous),)

    def on_packets(self, arrivals: Iterable[tuple[int, int, int, int, int]]) -> None:
        """Deliver many rows, each with the arguments of `on_packet`, without reports."""
        contiguous, ahead, delivered_at_ns = self._contiguous, self._ahead, self.delivered_at_ns
        on_packet, known = self.on_packet, self._contiguous.get
        for row, stream_id, offset, n_bytes, now_ns in arrivals:
            # Nearly all are the next bytes of their stream, which are handled without a call.
            if n_bytes and offset == known(stream_id, 0) and stream_id not in ahead:
                contiguous[stream_id] = offset + n_bytes
                delivered_at_ns[row] = now_ns
            else:
                on_packet(row, stream_id, offset, n_bytes, now_ns)

    def _is_end(self, row: int, stream_id: int, offset: int, now_ns: int) -> bool:
        """Return whether a row without bytes delivers the end of its stream now, at most once.

        Such rows belong to empty responses, and to stacks that send the FIN in a frame of its own.
        """
        if stream_id in self._ended:
            return False
        self._ended[stream_id] = None
        if offset > self._contiguous.get(stream_id, 0):
            heappush(self._waiting.setdefault(stream_id, []), (offset, row))
            return False
        self.delivered_at_ns[row] = now_ns
        return True

    def _reassemble(
        self, row: int, stream_id: int, contiguous: int, span: tuple[int, int], now_ns: int
    ) -> int:
        """Return the contiguous bytes of the stream with *span*; deliver rows up to there."""
        got = self._ahead.get(stream_id)
        if got is None:
            got = self._ahead[stream_id] = Ranges()
            got.add(0, contiguous)
        waiting = self._waiting.setdefault(stream_id, [])
        # A duplicate row has no time: the first copy that arrived has it.
        if got.add(*span):
            heappush(waiting, (span[1], row))
        contiguous = got.contiguous
        while waiting and waiting[0][0] <= contiguous:
            self.delivered_at_ns[heappop(waiting)[1]] = now_ns
        # Without a hole the next bytes need no ranges any more.
        if contiguous == got.end:
            del self._ahead[stream_id]
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
        self._next = 0
        self._ahead: dict[int, Delivered] = {}
        self._watched: dict[int, int] = {}

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of the stream before *n_bytes* of it have been delivered."""
        self._watched[stream_id] = n_bytes

    def on_packet(
        self, row: int, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver the row, and those waiting behind it, once all before it have arrived."""
        if row != self._next:
            self._ahead[row] = (stream_id, offset + n_bytes)
            return _NOTHING
        delivered = [(stream_id, offset + n_bytes)]
        self.delivered_at_ns[row] = now_ns
        self._next += 1
        while self._next in self._ahead:
            delivered.append(self._ahead.pop(self._next))
            self.delivered_at_ns[self._next] = now_ns
            self._next += 1
        return [entry for entry in delivered if entry[1] >= self._watched.get(entry[0], 0)]


class _Waiting:
    """The received rows of one stream that wait, by their ends, rising."""

    __slots__ = ("delivered", "ends", "rows")

    def __init__(self) -> None:
        self.delivered = -1
        """The delivered bytes; -1 before the first delivery, which may be empty."""
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
        self._watched: dict[int, int] = {}
        self._streams: dict[int, _Waiting] = {}

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of the stream before *n_bytes* of it have been delivered."""
        self._watched[stream_id] = n_bytes

    def on_row(self, row: int, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that a segment carries the bytes of a row.

        A retransmitted segment carries the same rows, so the end of a row identifies it.
        """
        stream = self._streams.get(stream_id)
        if stream is None:
            stream = self._streams[stream_id] = _Waiting()
        end, ends = offset + n_bytes, stream.ends
        # A duplicate of delivered bytes.
        if end <= stream.delivered:
            return
        if not ends or end > ends[-1]:
            ends.append(end)
            stream.rows.append(row)
            return
        at = bisect_left(ends, end)
        # An equal end is a retransmission: the row that arrived first has the time.
        if ends[at] != end:
            ends.insert(at, end)
            stream.rows.insert(at, row)

    def on_frame(
        self, stream_id: int, offset: int, n_bytes: int, now_ns: int
    ) -> Sequence[Delivered]:
        """Deliver a frame of a complete record; return it if it is watched."""
        contiguous = offset + n_bytes
        stream, delivered_at_ns = self._streams[stream_id], self.delivered_at_ns
        stream.delivered = contiguous
        n_rows = bisect_right(stream.ends, contiguous)
        for row in stream.rows[:n_rows]:
            delivered_at_ns[row] = now_ns
        del stream.rows[:n_rows], stream.ends[:n_rows]
        if contiguous < self._watched.get(stream_id, 0):
            return _NOTHING
        return ((stream_id, contiguous),)
