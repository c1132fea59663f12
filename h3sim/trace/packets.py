"""The packet table of a trace, by columns and by rows, and its recorders.

A row object takes about 300 bytes, seven numbers in arrays take 56. So rows of long loads are
packed into arrays; for short loads, whose rows are cheap to keep and expensive to pack, the columns
are built when the first metric reads them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import add, eq, itemgetter, le, ne
from typing import TYPE_CHECKING, Final, NamedTuple, overload

if TYPE_CHECKING:
    from h3sim.trace.delivery import DeliveryTimes


SentRow = tuple[int, int | None, int, int, int, int]
"""A `Packet` without its delivery time."""
_N_SENT_FIELDS: Final = 6
"""The number of fields of a `SentRow`."""
PacketRow = tuple[int, int | None, int, int, int, int, int | None]
"""A `Packet` as a plain tuple, which takes a third of the time of a named one."""

_NONE_NS = -(2**63)
"""The value that represents None in an array of times: it is no time of a load."""
_NONE_BY_NUMBER = {_NONE_NS: None}
"""Maps the number for None; a lookup of any other number returns the default, the number."""


class PackedTimes(Sequence[int | None]):
    """Times that may be None, in 8 bytes each.

    >>> times = PackedTimes([5, None])
    >>> list(times), times[1], len(times)
    ([5, None], None, 2)
    """

    __slots__ = ("_numbers",)

    def __init__(self, times: Iterable[int | None] = ()) -> None:
        self._numbers = array("q")
        self.extend(times)

    def extend(self, times: Iterable[int | None]) -> None:
        """Append *times*."""
        self._numbers.extend(_NONE_NS if at_ns is None else at_ns for at_ns in times)

    @overload
    def __getitem__(self, index: int) -> int | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[int | None]: ...
    def __getitem__(self, index: int | slice) -> int | list[int | None] | None:
        if isinstance(index, slice):
            return [None if number == _NONE_NS else number for number in self._numbers[index]]
        number = self._numbers[index]
        return None if number == _NONE_NS else number

    def set(self, index: int, at_ns: int) -> None:
        """Set a time."""
        self._numbers[index] = at_ns

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int | None]:
        # Without a Python function per item, since metrics iterate over all of them.
        return map(_NONE_BY_NUMBER.get, self._numbers, self._numbers)


class PacketColumns(NamedTuple):
    """The columns of a table of packets, by the names of `Packet`, all of one length."""

    sent_at_ns: Sequence[int]
    arrived_at_ns: Sequence[int | None]
    stream_id: Sequence[int]
    offset: Sequence[int]
    length_bytes: Sequence[int]
    number: Sequence[int]
    delivered_at_ns: Sequence[int | None]


class PacketRows(Sequence[PacketRow]):
    """The rows of a trace, as an immutable sequence of plain tuples in the order sent.

    *make_columns* is called once, when the columns are first used.

    >>> rows = PacketRows.of([(0, 30, 0, 0, 10, 0, 30), (1, None, 4, 0, 10, 1, None)])
    >>> rows[1], rows.columns.stream_id, len(rows)
    ((1, None, 4, 0, 10, 1, None), (0, 4), 2)
    """

    __slots__ = ("_columns", "_is_in_order", "_make_columns", "_n_rows", "_off_sequence")

    is_sent_once = False
    """True if there are certainly no losses or retransmissions, and each row is a packet."""

    def __init__(self, n_rows: int, make_columns: Callable[[], PacketColumns]) -> None:
        self._n_rows = n_rows
        self._make_columns: Callable[[], PacketColumns] | None = make_columns
        self._columns: PacketColumns | None = None
        self._is_in_order: bool | None = None
        self._off_sequence: list[tuple[int, int]] | None = None

    @classmethod
    def of(cls, rows: Iterable[PacketRow]) -> PacketRows:
        """Return a table of *rows*."""
        row_tuple = tuple(rows)
        return cls(len(row_tuple), partial(_columns_of, row_tuple))

    @property
    def columns(self) -> PacketColumns:
        """The columns of the table."""
        if self._columns is None:
            assert self._make_columns is not None  # noqa: S101 - one of the two is set
            # The function is released with the rows that it refers to.
            self._columns, self._make_columns = self._make_columns(), None
        return self._columns

    @property
    def is_in_order(self) -> bool:
        """True if all packets arrived in the order sent, and were delivered on arrival.

        Then there is no head-of-line blocking, and metrics of it need no computation: so it is for
        most loads at a constant rate.
        """
        if self._is_in_order is None:
            arrived = self.columns.arrived_at_ns
            self._is_in_order = all(map(eq, arrived, self.columns.delivered_at_ns)) and _is_rising(
                arrived
            )
        return self._is_in_order

    @property
    def off_sequence(self) -> list[tuple[int, int]]:
        """The rows that are not the next bytes of their stream, which several metrics examine.

        Each is (index, highest offset of the stream sent before, or -1 for a new stream). They are
        retransmissions, bare ends of stream, and rows after a part that a log omits.
        """
        if self._off_sequence is None:
            self._off_sequence = _off_sequence(self.columns)
        return self._off_sequence

    def first_and_last(self, requested: Collection[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return when the first and the last bytes of each *requested* stream were delivered.

        Streams without a delivery are omitted. The rows may include other streams, whose requests
        a log lacks.
        """
        columns = self.columns
        streams, times = columns.stream_id, columns.delivered_at_ns
        # In order, the first row of a stream has its first bytes, and the search can stop early.
        if self.is_in_order:
            forward = zip(streams, times, strict=True)
            backward = zip(reversed(streams), reversed(times), strict=True)
            first = first_times_by_stream(forward, requested)
            return first, first_times_by_stream(backward, requested)
        first = {}
        last: dict[int, int] = {}
        for stream_id, at_ns in zip(streams, times, strict=True):
            if at_ns is None:
                continue
            known = last.get(stream_id)
            if known is None:
                first[stream_id] = last[stream_id] = at_ns
            elif at_ns > known:
                last[stream_id] = at_ns
            elif at_ns < first[stream_id]:
                first[stream_id] = at_ns
        return first, last

    @property
    def has_distinct_deliveries(self) -> bool:
        """True if all packets were delivered in the order sent, no two at one instant.

        Then all stacks (`hol.stacks`) have a height of 1.
        """
        times = self.columns.delivered_at_ns
        return self.is_in_order and all(map(ne, times, islice(times, 1, None)))

    def with_delivery_at(self, times: Sequence[int | None]) -> PacketRows:
        """Return the same rows with other times of delivery.

        >>> PacketRows.of([(0, 30, 0, 0, 10, 0, 30)]).with_delivery_at([40])[0]
        (0, 30, 0, 0, 10, 0, 40)
        """
        columns = self.columns._replace(delivered_at_ns=times)
        return PacketRows(len(self), partial(PacketColumns._make, columns))

    @overload
    def __getitem__(self, index: int) -> PacketRow: ...
    @overload
    def __getitem__(self, index: slice) -> PacketRows: ...
    def __getitem__(self, index: int | slice) -> PacketRow | PacketRows:
        if isinstance(index, slice):
            return PacketRows.of(zip(*(column[index] for column in self.columns), strict=True))
        return tuple(column[index] for column in self.columns)  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._n_rows

    def __iter__(self) -> Iterator[PacketRow]:
        return zip(*self.columns, strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PacketRows):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"<{len(self)} rows of packets>"


def rows_of(sent: Sequence[SentRow], delivered_at_ns: DeliveryTimes) -> PacketRows:
    """Return the rows of a trace, each with the time at which its bytes were delivered."""
    return PacketRows(len(sent), partial(_join_columns, sent, delivered_at_ns))


def first_times_by_stream(
    rows: Iterable[tuple[int, int | None]], requested: Collection[int]
) -> dict[int, int]:
    """Return the first time of each requested stream, given rows of (stream, time).

    No more rows are read than needed.
    """
    first: dict[int, int] = {}
    missing = set(requested)
    for stream_id, at_ns in rows:
        if stream_id in missing and at_ns is not None:
            first[stream_id] = at_ns
            missing.remove(stream_id)
            if not missing:
                break
    return first


def _off_sequence(columns: PacketColumns) -> list[tuple[int, int]]:
    """Return rows that do not continue their stream, as `PacketRows.off_sequence`."""
    off_rows: list[tuple[int, int]] = []
    sent_ends: dict[int, int] = {}
    get_sent_end = sent_ends.get
    _, _, streams, offsets, lengths, *_ = columns
    rows = zip(streams, offsets, map(add, offsets, lengths), strict=True)
    for index, (stream_id, offset, end) in enumerate(rows):
        sent_end = get_sent_end(stream_id, 0)
        if sent_end == offset < end:
            sent_ends[stream_id] = end
        else:
            # -1 distinguishes a new stream from an empty one, which ends at 0.
            off_rows.append((index, get_sent_end(stream_id, -1)))
            sent_ends[stream_id] = max(sent_end, end)
    return off_rows


def _join_columns(sent: Sequence[SentRow], delivered_at_ns: DeliveryTimes) -> PacketColumns:
    # `zip(*sent)` would create an iterator per row, and take three times as long once these no
    # longer fit into the processor's cache.
    columns = (list(map(itemgetter(number), sent)) for number in range(_N_SENT_FIELDS))
    return PacketColumns._make((*columns, delivered_at_ns))


def _columns_of(rows: tuple[PacketRow, ...]) -> PacketColumns:
    empty: list[tuple[()]] = [()] * len(PacketColumns._fields)
    return PacketColumns._make(zip(*rows, strict=True) if rows else empty)


def _is_rising(times: Sequence[int | None]) -> bool:
    """Return whether *times* never decrease and contain no None."""
    try:
        return all(map(le, times, islice(times, 1, None))) and None not in times  # type: ignore[arg-type]
    except TypeError:  # None cannot be compared
        return False


_MAX_PENDING = 2**16
"""The number of rows kept unpacked, about 20 MB: packing the few rows of a short load would take a
tenth of its time, for no benefit."""

Chunk = tuple[int, int, int]
"""Bytes of a stream: its ID, the offset, and their number."""


class RowRecorder:
    """A recorder of packets that may be lost or reordered.

    The sender appends to `pending` and to `delivered_at_ns`, and calls `pack` at `max_pending`
    rows. The receiver sets times in the latter.

    >>> recorder = RowRecorder()
    >>> recorder.pending += [(0, 30, 0, 0, 10, 0), (1, None, 4, 0, 10, 1)]
    >>> recorder.delivered_at_ns += [None, None]
    >>> recorder.pack()
    >>> recorder.delivered_at_ns[0] = 30
    >>> list(recorder.rows())
    [(0, 30, 0, 0, 10, 0, 30), (1, None, 4, 0, 10, 1, None)]
    """

    __slots__ = ("_arrived_at_ns", "_packed", "delivered_at_ns", "max_pending", "pending")

    def __init__(self) -> None:
        self.max_pending = _MAX_PENDING
        """The number of pending rows at which the sender calls `pack`: it compares them itself,
        since a call per packet costs too much."""
        self.pending: list[SentRow] = []
        self.delivered_at_ns: DeliveryTimes = []
        self._packed = [array("q") for _ in range(5)]
        """Packed columns that contain no None: sent, stream, offset, length, number."""
        self._arrived_at_ns = PackedTimes()
        """Packed column of arrivals."""

    @property
    def n_packets(self) -> int:
        """The number of rows."""
        return len(self.delivered_at_ns)

    @property
    def n_pending(self) -> int:
        """The number of rows not yet packed."""
        return len(self.pending)

    def pack(self) -> None:
        """Move pending rows into columns."""
        sent, arrived, *others = zip(*self.pending, strict=True)
        self._arrived_at_ns.extend(arrived)
        for column, values in zip(self._packed, (sent, *others), strict=True):
            column.extend(values)
        self.pending.clear()

    def set_arrival(self, first_row: int, n_rows: int, arrives_at_ns: int) -> None:
        """Set the arrival time of a packet that was recorded without one."""
        n_packed = len(self._arrived_at_ns)
        for row in range(first_row, first_row + n_rows):
            if row < n_packed:
                self._arrived_at_ns.set(row, arrives_at_ns)
            else:
                sent_at_ns, _, stream_id, offset, n_bytes, number = self.pending[row - n_packed]
                entry = (sent_at_ns, arrives_at_ns, stream_id, offset, n_bytes, number)
                self.pending[row - n_packed] = entry

    def rows(self) -> PacketRows:
        """Return the recorded table; nothing may be recorded afterwards."""
        if not self._arrived_at_ns:
            return rows_of(self.pending, self.delivered_at_ns)
        if self.pending:
            self.pack()
        sent, stream_id, offset, length_bytes, number = self._packed
        times = PackedTimes(self.delivered_at_ns)
        self.delivered_at_ns = []  # releases its memory
        columns = PacketColumns(
            sent, self._arrived_at_ns, stream_id, offset, length_bytes, number, times
        )
        return PacketRows(len(times), partial(PacketColumns._make, columns))


class SteadyRecorder:
    """A recorder of packets that arrive *delay_ns* after sending, each the next bytes of a stream.

    The sender appends to `sent_at_ns` and `chunks`, and calls `pack` at `max_pending` rows. With
    *has_distinct_deliveries* no two packets leave at one instant.

    >>> recorder = SteadyRecorder(50, has_distinct_deliveries=True)
    >>> recorder.sent_at_ns.append(10); recorder.chunks.append((4, 0, 1400))
    >>> recorder.rows()[0]
    (10, 60, 4, 0, 1400, 0, 60)
    """

    __slots__ = (
        "_delay_ns",
        "_has_distinct_deliveries",
        "_packed",
        "chunks",
        "max_pending",
        "sent_at_ns",
    )

    def __init__(self, delay_ns: int, *, has_distinct_deliveries: bool) -> None:
        self.max_pending = _MAX_PENDING
        self._delay_ns = delay_ns
        self._has_distinct_deliveries = has_distinct_deliveries
        self.sent_at_ns: list[int] = []
        self.chunks: list[Chunk] = []
        self._packed = [array("q") for _ in range(4)]
        """Send times of packets, and the three columns of their chunks."""

    @property
    def n_packets(self) -> int:
        """The number of packets sent."""
        return len(self._packed[0]) + len(self.chunks)

    @property
    def n_pending(self) -> int:
        """The number of packets not yet packed."""
        return len(self.chunks)

    def pack(self) -> None:
        """Move pending rows into columns."""
        for column, values in zip(
            self._packed, (self.sent_at_ns, *zip(*self.chunks, strict=True)), strict=True
        ):
            column.extend(values)
        self.sent_at_ns.clear()
        self.chunks.clear()

    def rows(self) -> PacketRows:
        """Return the recorded table; nothing may be recorded afterwards."""
        if not self._packed[0]:
            return _SteadyRows(
                self.sent_at_ns, self.chunks, self._delay_ns, self._has_distinct_deliveries
            )
        if self.chunks:
            self.pack()
        sent_at_ns, *parts = self._packed
        return _SteadyRows(sent_at_ns, parts, self._delay_ns, self._has_distinct_deliveries)


class _SteadyRows(PacketRows):
    """Rows of packets that all arrive with the same delay after sending.

    *chunks* has one tuple per packet if *sent_at_ns* is a list, and three columns if it is an
    array.
    """

    __slots__ = ("_chunks", "_delay_ns", "_has_distinct_deliveries", "_sent_at_ns")

    is_sent_once = True

    def __init__(
        self,
        sent_at_ns: Sequence[int],
        chunks: Sequence[Chunk] | Sequence[Sequence[int]],
        delay_ns: int,
        has_distinct_deliveries: bool,
    ) -> None:
        super().__init__(len(sent_at_ns), self._derive_numbers)
        self._sent_at_ns = sent_at_ns
        self._chunks = chunks
        self._delay_ns = delay_ns
        self._is_in_order = True
        self._has_distinct_deliveries = has_distinct_deliveries

    @property
    def has_distinct_deliveries(self) -> bool:
        """True if no two packets were delivered at one instant."""
        return self._has_distinct_deliveries

    def first_and_last(self, requested: Collection[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return when the first and the last bytes of each stream were delivered."""
        sent_at_ns, delay_ns = self._sent_at_ns, self._delay_ns
        forward: Iterator[int]
        backward: Iterator[int]
        if isinstance(sent_at_ns, array):
            forward, backward = iter(self._chunks[0]), reversed(self._chunks[0])
        else:
            # Without building all columns: every load needs these times, and few more than that.
            get_stream_id = itemgetter(0)
            forward = map(get_stream_id, self._chunks)
            backward = map(get_stream_id, self._chunks[::-1])
        first = first_times_by_stream(zip(forward, sent_at_ns, strict=True), requested)
        last = first_times_by_stream(zip(backward, reversed(sent_at_ns), strict=True), requested)
        for times in (first, last):
            for stream_id in times:
                times[stream_id] += delay_ns
        return first, last

    def _derive_numbers(self) -> PacketColumns:
        """Return the columns; arrivals and deliveries are derived, numbers are a range."""
        sent_at_ns, delay_ns = self._sent_at_ns, self._delay_ns
        arrived_at_ns: Sequence[int] = [at_ns + delay_ns for at_ns in sent_at_ns]
        parts: Sequence[Sequence[int]] = self._chunks
        if isinstance(sent_at_ns, array):
            arrived_at_ns = array("q", arrived_at_ns)
        else:
            parts = list(zip(*self._chunks, strict=True)) or [(), (), ()]
        stream_id, offset, length_bytes = parts
        number = range(len(sent_at_ns))
        return PacketColumns(
            sent_at_ns, arrived_at_ns, stream_id, offset, length_bytes, number, arrived_at_ns
        )
