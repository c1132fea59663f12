"""Two endpoints over links, with acknowledgements, congestion control and recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.engine.endpoint_driver import EndpointDriver
from h3sim.http import StreamSender
from h3sim.protocol import STREAM_ID_STEP
from h3sim.schedulers import RankScheduler
from h3sim.signals import H2Priority
from h3sim.trace import RecordOrder, StreamOrder
from h3sim.transport import Role, WholeMessages

if TYPE_CHECKING:
    from h3sim.engine.endpoint_factory import EndpointFactory
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.packet_log import PacketLog
    from h3sim.engine.transport import Application, Carried
    from h3sim.transport.packets import WirePacket

__all__ = ["EndpointTransport", "QuicTransport", "TcpTransport"]

_UNIDIRECTIONAL: Final = 2
"""Added to a multiple of 4: a client's unidirectional stream (RFC 9000 § 2.1)."""


class EndpointTransport:
    """The `Transport` of a network of links: client and server as *factory* makes them.

    *log* takes down what leaves. Each request, and each frame of the control stream, goes up as a
    stream of its own; what derives from it says in what order responses come down. *rtt_ns* is the
    round-trip time to the server, where that is not the network's.
    """

    def __init__(
        self,
        environment: LoadEnvironment,
        factory: EndpointFactory,
        response_streams: StreamSender,
        log: PacketLog,
        *,
        rtt_ns: int | None = None,
    ) -> None:
        self._environment = environment
        self._log = log
        self.response_streams = response_streams
        stream_bytes, connection_bytes = factory.windows(Role.CLIENT)
        self.request_streams = StreamSender(
            # Of one rank: requests and frames go up in the order in which they were made.
            RankScheduler(),
            turn_bytes=factory.turn_bytes,
            keeps_unacked=True,
            stream_window_bytes=stream_bytes,
            connection_window_bytes=connection_bytes,
        )
        self._messages = WholeMessages()
        client = factory.end(Role.CLIENT, self.request_streams, rtt_ns=rtt_ns)
        server = factory.end(Role.SERVER, response_streams, rtt_ns=rtt_ns)
        self._client = EndpointDriver(
            client, environment, log=log.of(client.endpoint, is_down=False)
        )
        self._note_recovery = log.noting_recovery(server.endpoint)
        self._server = EndpointDriver(
            server,
            environment,
            log=log.of(server.endpoint, is_down=True),
            on_woken=self._note_recovery,
            wakes_idle=True,
        )
        self._application: Application
        self._connected_at_ns: int | None = None
        self._is_open = False
        """Whether something came down that was sent once the client was connected."""
        self._begin()

    def _begin(self) -> None:
        """Set up what a derived class keeps besides."""

    # What the application asks for

    def begin(self, application: Application) -> None:
        """Connect; the application is told once the client may send its requests."""
        client, server = self._client, self._server
        self._application = application
        client.face(server)
        server.face(client)
        server.arrivals.take = self._on_packet_up
        client.arrivals.take = self._on_packet_down
        if client.endpoint.is_ready:
            self._is_open = True
            application.on_connected(self._environment.now_ns)
        else:
            client.flush_soon(self._environment.now_ns)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request up."""
        self._send_up(stream_id, n_bytes)

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream up; it is put in order by who takes it."""
        self._send_up(STREAM_ID_STEP * number + _UNIDIRECTIONAL, n_bytes)

    def pump(self) -> None:
        """Send what the server's streams have now, as soon as this instant is over."""
        self._server.flush_soon(self._environment.now_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered."""
        raise NotImplementedError

    def carried(self) -> Carried:
        """Return what happened to packets."""
        return self._log.carried()

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        self._messages.expect(stream_id, n_bytes)
        self.request_streams.open(stream_id, H2Priority())
        self.request_streams.send(stream_id, n_bytes)
        self._client.flush_soon(self._environment.now_ns)

    # What arrives

    def _on_packet_up(self, packet: WirePacket, now_ns: int) -> None:
        """A packet of the client arrives at the server."""
        server, application = self._server, self._application
        # All that came in the packet first, and only then an answer: it is to know the whole of it.
        for stream_id, offset, n_bytes in server.endpoint.on_packet(packet, now_ns):
            if not self._messages.on_bytes(stream_id, offset, n_bytes):
                continue
            if stream_id % STREAM_ID_STEP:
                application.on_signal_arrived(stream_id // STREAM_ID_STEP, now_ns)
            else:
                application.on_request_arrived(stream_id, now_ns)
        if self.response_streams.has_drained:
            application.on_drained()
        if self._note_recovery is not None:
            self._note_recovery(now_ns)
        server.flush(now_ns)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        """A packet of the server arrives at the client."""
        raise NotImplementedError

    def _on_opening(self, packet: WirePacket, now_ns: int) -> None:
        """Answer a packet that came before the connection was open."""
        client, connected_at_ns = self._client, self._connected_at_ns
        # What left after that answers the client's requests, so they have gone: no reason to wait.
        if connected_at_ns is not None and packet.sent_at_ns > connected_at_ns:
            self._is_open = True
            client.flush(now_ns)
            return
        if connected_at_ns is None and client.endpoint.is_ready:
            self._connected_at_ns = now_ns
            self._application.on_connected(now_ns)
        # Behind the first requests, which go with the end of the handshake; and so do the answers
        # to packets that were under way by then.
        client.flush_soon(now_ns)


class QuicTransport(EndpointTransport):
    """That of QUIC: each stream is delivered in its own order."""

    def _begin(self) -> None:
        self._order = StreamOrder(self._log.delivered_at_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered."""
        self._order.watch(stream_id, n_bytes)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        client, order, row = self._client, self._order, packet.first_row
        for stream_id, offset, n_bytes in client.endpoint.on_packet(packet, now_ns):
            for delivered_id, end in order.on_packet(row, stream_id, offset, n_bytes, now_ns):
                self._application.on_delivered(delivered_id, end, now_ns)
            row += 1
        if self._is_open:
            client.flush(now_ns)
        else:
            self._on_opening(packet, now_ns)


class TcpTransport(EndpointTransport):
    """That of TCP: the frames of records are delivered that a segment completes."""

    def _begin(self) -> None:
        self._order = RecordOrder(self._log.delivered_at_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Report nothing of a response before *n_bytes* of it have been delivered."""
        self._order.watch(stream_id, n_bytes)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        client, order, row = self._client, self._order, packet.first_row
        # Before the endpoint takes it: the records that it completes may hold these very rows.
        for stream_id, offset, n_bytes in packet.frames:
            order.on_row(row, stream_id, offset, n_bytes)
            row += 1
        for stream_id, offset, n_bytes in client.endpoint.on_packet(packet, now_ns):
            for delivered_id, end in order.on_frame(stream_id, offset, n_bytes, now_ns):
                self._application.on_delivered(delivered_id, end, now_ns)
        if self._is_open:
            client.flush(now_ns)
        else:
            self._on_opening(packet, now_ns)
