"""The trace of a load: requests, signals and packets, from which every metric follows.

The engine writes a trace and knows no metric; a metric reads one and knows no engine. So the log
of a real stack, brought into this form, is measured by the same code.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.notebook import escaped
from h3sim.trace.packet_rows import PacketRows
from h3sim.trace.rows import NamedRows, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal
    from h3sim.trace.activity import Activity

__all__ = [
    "ConnectionPacket",
    "Delivery",
    "Packet",
    "RecoveryRow",
    "Request",
    "SignalSent",
    "Trace",
    "WireRow",
]


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
        """When the bytes of each row were delivered, as `Packet.delivered_at_ns`."""
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
