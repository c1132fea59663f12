"""Takes packets down while a load runs: as they come, and packed once they are many."""

from __future__ import annotations

from array import array
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from h3sim.trace.packet_rows import (
    PackedTimes,
    PacketColumns,
    PacketRows,
    first_of_each,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.packet_rows import SentRow

__all__ = ["RowRecorder", "SteadyRecorder"]

_MAX_PENDING = 2**16
"""So many packets are kept as they came, some 20 MB; packing them earlier saves nothing, and takes
a tenth of the time of the shortest loads."""

Chunk = tuple[int, int, int]
"""Bytes of a stream: which, from where, and how many."""


class RowRecorder:
    """Takes down rows of packets that may get lost, or overtake each other.

    Whoever sends appends to `pending` and, as long, to `delivered_at_ns`; and calls `pack` when
    there are `max_pending`. Whoever delivers writes times into the latter.

    >>> recorder = RowRecorder()
    >>> recorder.pending += [(0, 30, 0, 0, 10, 0), (1, None, 4, 0, 10, 1)]
    >>> recorder.delivered_at_ns += [None, None]
    >>> recorder.pack()
    >>> recorder.delivered_at_ns[0] = 30
    >>> list(recorder.rows())
    [(0, 30, 0, 0, 10, 0, 30), (1, None, 4, 0, 10, 1, None)]
    """

    __slots__ = ("_arrived_at_ns", "_numbers", "delivered_at_ns", "max_pending", "pending")

    def __init__(self) -> None:
        self.max_pending = _MAX_PENDING
        """Who appends compares with this: for each packet a function would cost too much."""
        self.pending: list[SentRow] = []
        self.delivered_at_ns: DeliveryTimes = []
        self._numbers = [array("q") for _ in range(5)]
        """All columns that are never None: sent, stream, offset, length, number."""
        self._arrived_at_ns = PackedTimes()

    @property
    def n_packets(self) -> int:
        """How many rows there are."""
        return len(self.delivered_at_ns)

    @property
    def n_pending(self) -> int:
        """How many of them are not packed."""
        return len(self.pending)

    def pack(self) -> None:
        """Move what is pending into columns."""
        sent, arrived, *others = zip(*self.pending, strict=True)
        self._arrived_at_ns.extend(arrived)
        for column, values in zip(self._numbers, (sent, *others), strict=True):
            column.extend(values)
        self.pending.clear()

    def rows(self) -> PacketRows:
        """Return the table of what was taken down; nothing may follow."""
        if not self._arrived_at_ns:
            return rows_of(self.pending, self.delivered_at_ns)
        if self.pending:
            self.pack()
        sent, *others = self._numbers
        times = PackedTimes(self.delivered_at_ns)
        # Let go before columns are made of it: the load would be in memory twice.
        self.delivered_at_ns = []
        stream_id, offset, length_bytes, number = others
        columns = PacketColumns(
            sent, self._arrived_at_ns, stream_id, offset, length_bytes, number, times
        )
        return PacketRows(len(times), partial(PacketColumns._make, columns))


class SteadyRecorder:
    """Takes down packets that all arrive *delay_ns* after they were sent, and bring what is next.

    Whoever sends appends to both lists, and calls `pack` when there are `max_pending`. With
    *is_apart* no two of them leave at one instant.

    >>> recorder = SteadyRecorder(50, is_apart=True)
    >>> recorder.sent_at_ns.append(10); recorder.chunks.append((4, 0, 1400))
    >>> recorder.rows()[0]
    (10, 60, 4, 0, 1400, 0, 60)
    """

    __slots__ = ("_delay_ns", "_is_apart", "_packed", "chunks", "max_pending", "sent_at_ns")

    def __init__(self, delay_ns: int, *, is_apart: bool) -> None:
        self.max_pending = _MAX_PENDING
        self._delay_ns = delay_ns
        self._is_apart = is_apart
        self.sent_at_ns: list[int] = []
        self.chunks: list[Chunk] = []
        self._packed = [array("q") for _ in range(4)]
        """When packets were sent, and the three columns of their chunks."""

    @property
    def n_packets(self) -> int:
        """How many packets were sent."""
        return len(self._packed[0]) + len(self.chunks)

    @property
    def n_pending(self) -> int:
        """How many of them are not packed."""
        return len(self.chunks)

    def pack(self) -> None:
        """Move what is pending into columns."""
        for column, values in zip(
            self._packed, (self.sent_at_ns, *zip(*self.chunks, strict=True)), strict=True
        ):
            column.extend(values)
        self.sent_at_ns.clear()
        self.chunks.clear()

    def rows(self) -> PacketRows:
        """Return the table of what was taken down; nothing may follow."""
        if not self._packed[0]:
            return _SteadyRows(self.sent_at_ns, self.chunks, self._delay_ns, self._is_apart)
        if self.chunks:
            self.pack()
        sent_at_ns, *parts = self._packed
        return _SteadyRows(sent_at_ns, parts, self._delay_ns, self._is_apart)


class _SteadyRows(PacketRows):
    """Rows of packets of which each arrives as long after it was sent.

    *chunks* are theirs where *sent_at_ns* is a list, and the three columns of them where it is an
    array.
    """

    __slots__ = ("_chunks", "_delay_ns", "_is_apart", "_sent_at_ns")

    is_sent_once = True

    def __init__(
        self,
        sent_at_ns: Sequence[int],
        chunks: Sequence[Chunk] | Sequence[Sequence[int]],
        delay_ns: int,
        is_apart: bool,
    ) -> None:
        super().__init__(len(sent_at_ns), self._derived)
        self._sent_at_ns = sent_at_ns
        self._chunks = chunks
        self._delay_ns = delay_ns
        self._is_in_order = True
        self._is_apart = is_apart

    @property
    def is_apart(self) -> bool:
        """Whether no two packets were delivered at one instant."""
        return self._is_apart

    def first_and_last(self, requested: Collection[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return when the first and the last bytes of each stream were delivered."""
        sent_at_ns, delay_ns = self._sent_at_ns, self._delay_ns
        forward: Iterator[int]
        backward: Iterator[int]
        if isinstance(sent_at_ns, array):
            forward, backward = iter(self._chunks[0]), reversed(self._chunks[0])
        else:
            # Of all columns that of streams alone is asked for by every load.
            of_stream = itemgetter(0)
            forward, backward = map(of_stream, self._chunks), map(of_stream, self._chunks[::-1])
        first = first_of_each(zip(forward, sent_at_ns, strict=True), requested)
        last = first_of_each(zip(backward, reversed(sent_at_ns), strict=True), requested)
        for times in (first, last):
            for stream_id in times:
                times[stream_id] += delay_ns
        return first, last

    def _derived(self) -> PacketColumns:
        """Return columns of which two are derived, and one counts."""
        sent_at_ns, delay_ns = self._sent_at_ns, self._delay_ns
        came_at_ns: Sequence[int] = [at_ns + delay_ns for at_ns in sent_at_ns]
        parts: Sequence[Sequence[int]] = self._chunks
        if isinstance(sent_at_ns, array):
            came_at_ns = array("q", came_at_ns)
        else:
            parts = list(zip(*self._chunks, strict=True)) or [(), (), ()]
        stream_id, offset, length_bytes = parts
        number = range(len(sent_at_ns))
        return PacketColumns(
            sent_at_ns, came_at_ns, stream_id, offset, length_bytes, number, came_at_ns
        )
