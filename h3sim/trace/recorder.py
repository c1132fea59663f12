"""Takes packets down while a load runs: as they come, and packed once they are many."""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING

from h3sim.trace.packet_rows import PackedTimes, PacketColumns, PacketRows, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.trace.delivery import DeliveryTimes
    from h3sim.trace.packet_rows import SentRow

__all__ = ["MAX_PENDING", "RowRecorder", "SteadyRecorder"]

MAX_PENDING = 2**16
"""So many packets are kept as they came, some 20 MB; packing them earlier saves nothing, and takes
a tenth of the time of the shortest loads."""

Chunk = tuple[int, int, int]
"""Bytes of a stream: which, from where, and how many."""


class RowRecorder:
    """Takes down rows of packets that may get lost, or overtake each other.

    Whoever sends appends to `pending` and, as long, to `delivered_at_ns`; and calls `pack` when
    there are `MAX_PENDING`. Whoever delivers writes times into the latter.

    >>> recorder = RowRecorder()
    >>> recorder.pending += [(0, 30, 0, 0, 10, 0), (1, None, 4, 0, 10, 1)]
    >>> recorder.delivered_at_ns += [None, None]
    >>> recorder.pack()
    >>> recorder.delivered_at_ns[0] = 30
    >>> list(recorder.rows())
    [(0, 30, 0, 0, 10, 0, 30), (1, None, 4, 0, 10, 1, None)]
    """

    __slots__ = ("_arrived_at_ns", "_numbers", "delivered_at_ns", "pending")

    def __init__(self) -> None:
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
        self.delivered_at_ns = []
        stream_id, offset, length_bytes, number = others
        columns = PacketColumns(
            sent, self._arrived_at_ns, stream_id, offset, length_bytes, number, times
        )
        return PacketRows(len(times), partial(PacketColumns._make, columns))


class SteadyRecorder:
    """Takes down packets that all arrive *delay_ns* after they were sent, and bring what is next.

    Whoever sends appends to both lists, and calls `pack` when there are `MAX_PENDING`.

    >>> recorder = SteadyRecorder(50)
    >>> recorder.sent_at_ns.append(10); recorder.chunks.append((4, 0, 1400))
    >>> recorder.rows()[0]
    (10, 60, 4, 0, 1400, 0, 60)
    """

    __slots__ = ("_delay_ns", "_packed", "chunks", "sent_at_ns")

    def __init__(self, delay_ns: int) -> None:
        self._delay_ns = delay_ns
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
        n_rows = self.n_packets
        sent_at_ns: Sequence[int] = self.sent_at_ns
        if self._packed[0]:
            if self.chunks:
                self.pack()
            sent_at_ns, *parts = self._packed
            make = partial(_steady, sent_at_ns, parts, self._delay_ns)
        else:
            make = partial(_steady_chunks, sent_at_ns, self.chunks, self._delay_ns)
        return PacketRows(n_rows, make, is_in_order=True)


def _steady_chunks(
    sent_at_ns: Sequence[int], chunks: Sequence[Chunk], delay_ns: int
) -> PacketColumns:
    return _steady(sent_at_ns, tuple(zip(*chunks, strict=True)) or ((),) * 3, delay_ns)


def _steady(
    sent_at_ns: Sequence[int], parts: Sequence[Sequence[int]], delay_ns: int
) -> PacketColumns:
    """Return columns of which two are derived, and one counts."""
    came_at_ns: Sequence[int]
    if isinstance(sent_at_ns, array):
        came_at_ns = array("q", (at_ns + delay_ns for at_ns in sent_at_ns))
    else:
        came_at_ns = [at_ns + delay_ns for at_ns in sent_at_ns]
    stream_id, offset, length_bytes = parts
    number = range(len(sent_at_ns))
    return PacketColumns(
        sent_at_ns, came_at_ns, stream_id, offset, length_bytes, number, came_at_ns
    )
