"""The trace of a load: requests, signals, packets and activities of all its connections.

The engine writes traces and knows nothing of metrics; metrics read them and know nothing of the
engine. The log of a real stack, converted to this form, is therefore measured by the same code.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import merge
from operator import itemgetter, lt
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.signals import H2Priority, StrictPriority
from h3sim.trace.packets import PacketRows
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.table import NamedRows, RichDisplay, Rows, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.signals import Signal
    from h3sim.trace.packets import PacketRow


class Work(enum.Enum):
    """The kind of an activity."""

    LOOK_UP = "lookup"
    """DNS lookup of a host."""
    CONNECT = "connect"
    """Connection setup: handshakes of transport and TLS."""
    DOWNLOAD = "download"
    """From the request to the last byte."""
    PARSE = "parse"
    """Parsing of a piece of the document."""
    STYLE = "style"
    """Parsing of a stylesheet."""
    EXECUTE = "execute"
    """Execution of a script, or decoding of another resource."""
    RENDER = "render"
    """Style, layout and paint of a document."""
    FIRST_PAINT = "first paint"
    DOM_CONTENT_LOADED = "DOMContentLoaded"
    LOAD = "load"

    @property
    def is_computation(self) -> bool:
        """True if it keeps the main thread busy."""
        return self in (Work.PARSE, Work.STYLE, Work.EXECUTE, Work.RENDER)

    @property
    def is_of_network(self) -> bool:
        """True if it belongs to fetching a resource."""
        return self in (Work.LOOK_UP, Work.CONNECT, Work.DOWNLOAD)

    @property
    def is_milestone(self) -> bool:
        """True if it is an instant in the life of the page."""
        return self in (Work.FIRST_PAINT, Work.DOM_CONTENT_LOADED, Work.LOAD)


class Activity(NamedTuple):
    """One activity: of a *resource* (its index in the page), or of the page (None).

    *after* is the index of the activity that allowed this one to begin: the last of those it waited
    for. If that one ends later than this one begins, a part of it was enough (the first bytes of a
    document reference a stylesheet).
    """

    work: Work
    resource: int | None
    began_at_ns: int
    ended_at_ns: int
    after: int | None


class Delivery(enum.Enum):
    """The order in which received bytes are delivered to the application."""

    STREAM = "stream"
    """Each stream in its own order (QUIC)."""
    CONNECTION = "connection"
    """All bytes in the one order in which they were sent (TCP)."""


class Request(NamedTuple):
    """A request: *resource* is an index in the page, *length_bytes* the size of the response.

    *arrived_at_ns* is when the request reached the server.
    """

    stream_id: int
    resource: int
    requested_at_ns: int
    arrived_at_ns: int
    length_bytes: int


class SignalSent(NamedTuple):
    """A priority signal as received by the server; *element_id* below 0 is a placeholder."""

    at_ns: int
    element_id: int
    signal: Signal


class Packet(NamedTuple):
    """Bytes of one stream in a packet: *length_bytes* from *offset* on.

    *arrived_at_ns* is None if the packet was lost. A packet with several stream frames has as many
    rows, with one *number*. *delivered_at_ns* is the time when the row's new bytes had been
    delivered to the application, in order. It is None if the row brought nothing new: it was lost,
    or a duplicate. So of several copies that arrive, the first one has the time, and each byte is
    delivered once.
    """

    sent_at_ns: int
    arrived_at_ns: int | None
    stream_id: int
    offset: int
    length_bytes: int
    number: int
    delivered_at_ns: int | None


class ConnectionPacket(NamedTuple):
    """A `Packet` of a load with several connections, and the number of its connection."""

    sent_at_ns: int
    arrived_at_ns: int | None
    stream_id: int
    offset: int
    length_bytes: int
    number: int
    delivered_at_ns: int | None
    connection: int


class WireRow(NamedTuple):
    """A packet on the link, whatever it carries.

    *is_down* from server to client; *size_bytes* is the UDP payload or the TCP segment; *acked*
    are the spans of numbers that it acknowledges, each (low, high) inclusive, highest first.
    """

    is_down: bool
    number: int
    sent_at_ns: int
    arrived_at_ns: int | None
    size_bytes: int
    acked: tuple[tuple[int, int], ...]


class UplinkCount(NamedTuple):
    """The client's packets with requests, bodies of uploads or frames of the control stream.

    The bytes are those of streams, retransmissions included; ACKs alone are not counted.
    """

    sent: int
    lost: int
    n_bytes: int


class RecoveryRow(NamedTuple):
    """The server's recovery state after an event.

    *lost* are packet numbers declared lost; *buffered_bytes* are in the send buffer between
    scheduler and transport.
    """

    at_ns: int
    congestion_window: int
    ssthresh: int | None
    bytes_in_flight: int
    smoothed_rtt_ns: int
    latest_rtt_ns: int
    min_rtt_ns: int
    rtt_variance_ns: int
    lost: tuple[int, ...]
    buffered_bytes: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace(RichDisplay):
    """Everything that happened in one load.

    `requests` are in the order in which the browser made them, so `requested_at_ns` never
    decreases. Stream IDs rise with it, except on a connection of several hosts where a request
    waited for a DNS lookup: IDs rise as requests leave. `packet_rows` are in the order sent,
    `signals` in the order received by the server. Times are nanoseconds since navigation start.
    """

    delivery: Delivery
    requests: tuple[Request, ...]
    signals: tuple[SignalSent, ...]
    packet_rows: PacketRows = field(default_factory=lambda: PacketRows.of(()))
    wire: tuple[WireRow, ...] = ()
    """Every packet both ways, if recorded (over links only)."""
    recovery: tuple[RecoveryRow, ...] = ()
    """The server's recovery states, if recorded."""
    activities: tuple[Activity, ...] = ()
    """The activities of the browser, if it computed them."""
    connection_of: tuple[int, ...] = ()
    """The connection number of each request, if there are several connections."""
    queue_drops: tuple[int, ...] = ()
    """The numbers of the packets down that the queue of the bottleneck dropped, rising.

    Others without an arrival were lost on the way: at random, or as the network lists them. Not
    part of the digest, which has the fate of each packet.
    """
    uplink: UplinkCount | None = None
    """Counts of the client's packets; None at a constant rate, which has none, and for logs."""

    @cached_property
    def packets(self) -> Rows[Any]:
        """The packets as named rows, with their connection if there are several."""
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

    def _display(self) -> Iterable[str | Table[Any]]:
        yield repr(self)
        yield self.packets

    def digest(self) -> str:
        """Return the SHA-256 of the complete trace: equal for equal loads, in any process."""
        import hashlib  # on use: importing h3sim should stay quick

        sha256 = hashlib.sha256()
        for part in self._digest_parts():
            sha256.update(part.encode())
        return sha256.hexdigest()

    def _digest_parts(self) -> Iterator[str]:
        """Yield the parts of a text: the `repr` of a tuple of all tables, too large for memory."""
        yield f"({self.delivery.value!r}, {self.requests!r}, {self.signals!r}, ("
        separator = ""
        for row in self.packet_rows:
            yield f"{separator}{row!r}"
            separator = ", "
        yield ",)" if len(self.packet_rows) == 1 else ")"  # as `repr` formats a tuple
        # Tables that most loads lack are omitted if empty, so that the digests of most loads do not
        # change when such a table is added.
        if self.connection_of:
            yield f", {self.connection_of!r}"
        yield f", {self.activities!r})" if self.activities else ")"


def in_order_requested(trace: Trace, asked_for: Sequence[int]) -> Trace:
    """Return the trace of one connection with its requests in the order of *asked_for*.

    These are all resources of the load, in the order in which the browser requested them.

    A connection numbers its streams as requests leave. If several hosts share it, a request
    that waits for a DNS lookup leaves after others that were made later.
    """
    position = {resource: index for index, resource in enumerate(asked_for)}
    positions = [position[request.resource] for request in trace.requests]
    if all(map(lt, positions, positions[1:])):
        return trace
    requests = sorted(trace.requests, key=lambda request: position[request.resource])
    return replace(trace, requests=tuple(requests))


def merged_trace(
    traces: Sequence[Trace], asked_for: Sequence[int], activities: tuple[Activity, ...]
) -> Trace:
    """Return the traces of a load's connections as one.

    Streams are renumbered in the order of *asked_for*, and packets in the order sent.
    `Trace.connection_of` has the connection of each request. The wire and recovery rows of a
    connection are only in its own trace.
    """
    position = {resource: index for index, resource in enumerate(asked_for)}
    ordered = sorted(
        (position[request.resource], connection, request)
        for connection, trace in enumerate(traces)
        for request in trace.requests
    )
    new_ids = {
        (connection, request.stream_id): STREAM_ID_STEP * index
        for index, (_, connection, request) in enumerate(ordered)
    }
    new_numbers: dict[tuple[int, int], int] = {}
    packet_rows = PacketRows.of(_merged_rows(traces, new_ids, new_numbers))
    dropped = (
        new_numbers.get((connection, number))
        for connection, trace in enumerate(traces)
        for number in trace.queue_drops
    )
    renumberings = [_Renumbering(number, len(traces), new_ids) for number in range(len(traces))]
    # `merge` breaks ties in favour of the connection that was opened first.
    signals = merge(
        *(
            map(renumbering.renumbered, trace.signals)
            for renumbering, trace in zip(renumberings, traces, strict=True)
        ),
        key=lambda signal: signal.at_ns,
    )
    return Trace(
        delivery=traces[0].delivery,
        requests=tuple(
            request._replace(stream_id=new_ids[connection, request.stream_id])
            for _, connection, request in ordered
        ),
        signals=tuple(signals),
        packet_rows=packet_rows,
        activities=activities,
        connection_of=tuple(connection for _, connection, _ in ordered),
        # Packets without data have no rows, and no new numbers.
        queue_drops=tuple(sorted(number for number in dropped if number is not None)),
        uplink=_sum_of([trace.uplink for trace in traces]),
    )


def _sum_of(counts: Sequence[UplinkCount | None]) -> UplinkCount | None:
    """Return the counts of all connections together; None if one has none."""
    known = [count for count in counts if count is not None]
    return UplinkCount(*map(sum, zip(*known, strict=True))) if len(known) == len(counts) else None


def _merged_rows(
    traces: Sequence[Trace],
    new_ids: dict[tuple[int, int], int],
    new_numbers: dict[tuple[int, int], int],
) -> Iterator[PacketRow]:
    """Yield the packets of all connections in the order sent, renumbered.

    The new number of each is added to *new_numbers*, by connection and number there.
    """

    def with_connection(connection: int, trace: Trace) -> Iterator[tuple[int, int, PacketRow]]:
        return ((row[0], connection, row) for row in trace.packet_rows)

    by_time = itemgetter(0)
    rows = merge(*(with_connection(*entry) for entry in enumerate(traces)), key=by_time)
    for _, connection, row in rows:
        sent, arrived, stream_id, offset, n_bytes, number, delivered = row
        new_number = new_numbers.setdefault((connection, number), len(new_numbers))
        new_id = new_ids[connection, stream_id]
        yield (sent, arrived, new_id, offset, n_bytes, new_number, delivered)


class _Renumbering:
    """The mapping of stream and placeholder IDs of one connection to those of the load."""

    def __init__(
        self, connection: int, n_connections: int, new_ids: dict[tuple[int, int], int]
    ) -> None:
        self._connection = connection
        self._n_connections = n_connections
        self._new_ids = new_ids

    def renumbered(self, sent: SignalSent) -> SignalSent:
        """Return a signal with the IDs of the load."""
        signal = sent.signal
        if isinstance(signal, H2Priority | StrictPriority) and signal.depends_on is not None:
            signal = replace(signal, depends_on=self._new_id(signal.depends_on))
        return sent._replace(element_id=self._new_id(sent.element_id), signal=signal)

    def _new_id(self, element_id: int) -> int:
        """Return the ID in the load, of a placeholder (below 0) as well."""
        if element_id >= 0:
            return self._new_ids[self._connection, element_id]
        # Still below 0, and unique: connection numbers are below their count.
        return element_id * self._n_connections + self._connection
