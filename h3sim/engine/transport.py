"""The interface between a load and its transport: a constant rate, or endpoints over links."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from h3sim.http import StreamSender
    from h3sim.trace import PacketRows, RecoveryRow, UplinkCount, WireRow


class ProgressCallback(Protocol):
    """A callback with the number of packets sent and the total, called at regular intervals."""

    def __call__(self, n_sent: int, n_packets: int, /) -> None:
        """Handle both numbers."""


class TransportTrace(NamedTuple):
    """The transport's part of a trace."""

    packet_rows: PacketRows
    wire: tuple[WireRow, ...] = ()
    recovery: tuple[RecoveryRow, ...] = ()
    queue_drops: tuple[int, ...] = ()
    uplink: UplinkCount | None = None


class Application(Protocol):
    """The callbacks of a transport: both ends of HTTP above it."""

    def on_connected(self, now_ns: int) -> None:
        """Handle that requests may leave."""

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        """Handle a request that has reached the server completely."""

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        """Handle a frame of the control stream that has reached the server completely."""

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        """Handle that the client has the first *contiguous* bytes of a response."""

    def on_drained(self) -> None:
        """Handle drained streams of the server, listed by `StreamSender.take_drained`."""

    def resource_of(self, stream_id: int) -> int:
        """Return the index in the page of the resource that a stream requests."""


class Transport(Protocol):
    """A transport: carries requests and signals up, and the server's streams down."""

    response_streams: StreamSender
    """The server's streams."""

    def begin(self, application: Application) -> None:
        """Connect; *application* gets all callbacks."""

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request upstream."""

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send the *number*-th frame of the control stream upstream, counted from 0."""

    def pump(self) -> None:
        """Send the waiting data of the server's streams, at the end of this instant."""

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* of it have been delivered."""

    def carried(self) -> TransportTrace:
        """Return the recorded packets."""
