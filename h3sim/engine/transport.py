"""The seam between a load and what carries it: a constant rate, or two endpoints over links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from h3sim.http import StreamSender
    from h3sim.trace import PacketRows, RecoveryRow, WireRow


class ProgressCallback(Protocol):
    """Is told, every so many packets, how many were sent and how many there are."""

    def __call__(self, n_sent: int, n_packets: int, /) -> None:
        """Take both."""


class TransportTrace(NamedTuple):
    """What a transport has to tell of a load: the part of the trace that is its own."""

    packet_rows: PacketRows
    wire: tuple[WireRow, ...] = ()
    recovery: tuple[RecoveryRow, ...] = ()


class Application(Protocol):
    """What a transport tells: both ends of HTTP, above it."""

    def on_connected(self, now_ns: int) -> None:
        """Requests may leave."""

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """A request has reached the server whole."""

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """A frame of the control stream has reached the server whole."""

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """The client has *contiguous* bytes of a response."""

    def on_drained(self) -> None:
        """Streams of the server are done with; `StreamSender.take_drained` says which."""

    def resource_of(self, stream_id: int) -> int:
        """Return the index in the page of the resource that a stream asks for."""


class Transport(Protocol):
    """Carries requests and signals up, and what the server's streams have to send down."""

    response_streams: StreamSender
    """The server's streams."""

    def begin(self, application: Application) -> None:
        """Connect; *application* is told when requests may leave, and of all that arrives."""

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request up."""

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream up, the *number*-th from 0 on."""

    def pump(self) -> None:
        """Send what the server's streams have now, as soon as this instant is over."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered."""

    def carried(self) -> TransportTrace:
        """Return what happened to packets."""
