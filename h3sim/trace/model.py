"""The trace of a load: tables of requests, signals, packets and browser activities.

The engine writes a trace and knows no metric; a metric reads one and knows no engine. So the log
of a real stack, brought into this form, is measured by the same code.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import eq
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from h3sim.errors import needing_extra
from h3sim.notebook import escaped, html_table
from h3sim.trace.packets import PacketRows

if TYPE_CHECKING:
    import pandas as pd

    from h3sim.signals import Signal


class Work(enum.Enum):
    """What kind of activity it is."""

    LOOK_UP = "lookup"
    """The name of a host is looked up."""
    CONNECT = "connect"
    """A connection is set up: handshakes of transport and TLS."""
    DOWNLOAD = "download"
    """From the request to the last byte."""
    PARSE = "parse"
    """A piece of the document."""
    STYLE = "style"
    """A stylesheet is parsed."""
    EXECUTE = "execute"
    """A script runs, or something else is decoded."""
    FIRST_PAINT = "first paint"
    DOM_CONTENT_LOADED = "DOMContentLoaded"
    LOAD = "load"

    @property
    def is_computation(self) -> bool:
        """True if it keeps the main thread busy."""
        return self in (Work.PARSE, Work.STYLE, Work.EXECUTE)

    @property
    def is_of_network(self) -> bool:
        """True if it is done to bring a resource."""
        return self in (Work.LOOK_UP, Work.CONNECT, Work.DOWNLOAD)

    @property
    def is_milestone(self) -> bool:
        """True if it is an instant, of the whole page."""
        return self in (Work.FIRST_PAINT, Work.DOM_CONTENT_LOADED, Work.LOAD)


class Activity(NamedTuple):
    """One activity: of a *resource* (its index in the page), or of the page (None).

    *after* is the index, among the activities, of the one that let this one begin: the last of all
    it waited for. Where that one ends later than this one begins, a part of it was enough (the
    first bytes of a document name a stylesheet).
    """

    work: Work
    resource: int | None
    began_at_ns: int
    ended_at_ns: int
    after: int | None


RowT = TypeVar("RowT", bound=NamedTuple)


def with_floats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return *frame* with NaN, as floats, in columns where no row has a value.

    pandas makes them columns of objects, with which neither means nor plots can be made.
    """
    empty = [name for name in frame.columns if len(frame) and frame[name].isna().all()]
    return frame.astype(dict.fromkeys(empty, float))


class NamedRows(Sequence[RowT], Generic[RowT]):
    """A view of plain tuples as *row_type*, each made when it is asked for."""

    def __init__(self, row_type: type[RowT], rows: Sequence[tuple[Any, ...]]) -> None:
        self._row_type = row_type
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> NamedRows[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | NamedRows[RowT]:
        if isinstance(index, slice):
            return NamedRows(self._row_type, self._rows[index])
        return self._row_type._make(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return map(self._row_type._make, self._rows)


class Rows(Sequence[RowT], Generic[RowT]):
    """An immutable table; *row_type* names its columns even where it has no row.

    >>> class Point(NamedTuple):
    ...     x: int
    ...     y: int
    >>> points = Rows(Point, [Point(1, 2), Point(3, 4)])
    >>> points.columns, points[1].y, points.column("x")
    (('x', 'y'), 4, [1, 3])
    """

    def __init__(self, row_type: type[RowT], rows: Iterable[RowT]) -> None:
        self._row_type = row_type
        self._rows: Sequence[RowT] = rows if isinstance(rows, NamedRows) else tuple(rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self._row_type._fields

    def column(self, name: str) -> list[Any]:
        """Return one column as a list.

        Raises:
            KeyError: if there is no such column.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        return [getattr(row, name) for row in self._rows]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        with needing_extra("pandas", "analysis"):
            pandas = importlib.import_module("pandas")
        return with_floats(pandas.DataFrame(list(self._rows), columns=list(self.columns)))

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[RowT]: ...
    def __getitem__(self, index: int | slice) -> RowT | Rows[RowT]:
        if isinstance(index, slice):
            return Rows(self._row_type, self._rows[index])
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[RowT]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self._rows))

    def __repr__(self) -> str:
        rows = f"{len(self)} row{'s' * (len(self) != 1)}"
        return f"<{rows} of {self._row_type.__name__}({', '.join(self.columns)})>"

    def _repr_html_(self) -> str:
        return html_table(self.columns, self._rows)


class Delivery(enum.Enum):
    """In what order bytes that have arrived are delivered to the application."""

    STREAM = "stream"
    """Each stream in its own order (QUIC)."""
    CONNECTION = "connection"
    """All bytes in the one order in which they were sent (TCP)."""


class Request(NamedTuple):
    """A request: *resource* is its index in the page, *length_bytes* what the stream carries."""

    stream_id: int
    resource: int
    requested_at_ns: int
    arrived_at_ns: int
    length_bytes: int


class SignalSent(NamedTuple):
    """A priority signal as the server learnt it; *element_id* below 0 is a placeholder."""

    at_ns: int
    element_id: int
    signal: Signal


class Packet(NamedTuple):
    """Bytes of one stream in a packet: *length_bytes* from *offset* on.

    *arrived_at_ns* is None if the packet was lost. Packets that carry several streams stand in as
    many rows, with one *number*. *delivered_at_ns* is when the bytes that this row was the first to
    bring had been delivered to the application, in order, as whoever delivered says. It is None
    where the row brought nothing new: it was lost, or what it carried had come before. So of
    several copies that arrive, the first one has the time, and each byte is delivered once.
    """

    sent_at_ns: int
    arrived_at_ns: int | None
    stream_id: int
    offset: int
    length_bytes: int
    number: int
    delivered_at_ns: int | None


class ConnectionPacket(NamedTuple):
    """A `Packet` of a load with several connections, and the number of its own."""

    sent_at_ns: int
    arrived_at_ns: int | None
    stream_id: int
    offset: int
    length_bytes: int
    number: int
    delivered_at_ns: int | None
    connection: int


class WireRow(NamedTuple):
    """A packet as both ends of the link see it, whatever it carries.

    *is_down* from server to client; *size_bytes* is the UDP payload or the TCP segment; *acked*
    are the spans of numbers that it acknowledges, each (low, high) inclusive, highest first.
    """

    is_down: bool
    number: int
    sent_at_ns: int
    arrived_at_ns: int | None
    size_bytes: int
    acked: tuple[tuple[int, int], ...]


class RecoveryRow(NamedTuple):
    """The server's recovery after something happened to it; *lost* are numbers declared lost."""

    at_ns: int
    congestion_window: int
    ssthresh: int | None
    bytes_in_flight: int
    smoothed_rtt_ns: int
    latest_rtt_ns: int
    min_rtt_ns: int
    rtt_variance_ns: int
    lost: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace:
    """Everything that happened in one load.

    `requests` stand in the order in which the browser made them, so that `requested_at_ns` never
    falls. Stream ids rise with it, except on a connection of several hosts where a request waited
    for the name of its host: ids rise as requests leave. `packet_rows` stand in the order they were
    sent, `signals` in the order the server learnt them. Times are nanoseconds since navigation
    start.
    """

    delivery: Delivery
    requests: tuple[Request, ...]
    signals: tuple[SignalSent, ...]
    packet_rows: PacketRows = field(default_factory=lambda: PacketRows.of(()))
    wire: tuple[WireRow, ...] = ()
    """Every packet both ways, if it was asked for (and the load had two ways)."""
    recovery: tuple[RecoveryRow, ...] = ()
    """The server's recovery, if it was asked for."""
    activities: tuple[Activity, ...] = ()
    """What the browser did with the page, if it computed that."""
    connection_of: tuple[int, ...] = ()
    """The number of the connection of each request, where there were several."""

    @cached_property
    def packets(self) -> Rows[Any]:
        """The packets as named rows, where there were several connections with that of each."""
        if not self.connection_of:
            return Rows(Packet, NamedRows(Packet, self.packet_rows))
        numbers = {
            request.stream_id: number
            for request, number in zip(self.requests, self.connection_of, strict=True)
        }
        rows = ((*row, numbers[row[2]]) for row in self.packet_rows)
        return Rows(ConnectionPacket, map(ConnectionPacket._make, rows))

    @property
    def delivered_at_ns(self) -> list[int | None]:
        """Time when the bytes of each row were delivered, as `Packet.delivered_at_ns`."""
        return list(self.packet_rows.columns.delivered_at_ns)

    @property
    def order(self) -> list[int]:
        """The stream id of each data packet (of each part of it, if it has several), as sent."""
        return list(self.packet_rows.columns.stream_id)

    def __repr__(self) -> str:
        counts = f"{len(self.requests)} requests, {len(self.packet_rows)} packets"
        return f"<Trace: {counts}, in the order of each {self.delivery.value}>"

    def _repr_html_(self) -> str:
        return f"<p>{escaped(repr(self))}</p>{self.packets._repr_html_()}"

    def digest(self) -> str:
        """Return the SHA-256 of the whole trace: equal for equal loads, in any process."""
        import hashlib  # on use: importing h3sim should stay quick

        hashed = hashlib.sha256()
        for part in self._digested():
            hashed.update(part.encode())
        return hashed.hexdigest()

    def _digested(self) -> Iterator[str]:
        """Yield, part by part, the text of a tuple of all there is."""
        yield f"({self.delivery.value!r}, {self.requests!r}, {self.signals!r}, ("
        separator = ""
        for row in self.packet_rows:
            yield f"{separator}{row!r}"
            separator = ", "
        # As `repr` writes a tuple of one, and what most loads do not have is left out below: equal
        # loads keep their digests from version to version.
        yield ",)" if len(self.packet_rows) == 1 else ")"
        if self.connection_of:
            yield f", {self.connection_of!r}"
        yield f", {self.activities!r})" if self.activities else ")"
