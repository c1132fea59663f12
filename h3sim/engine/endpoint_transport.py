"""Two endpoints over links, with acknowledgements, congestion control and recovery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.engine.endpoint_driver import EndpointDriver
from h3sim.http import StreamSender
from h3sim.protocol import STREAM_ID_STEP
from h3sim.schedulers import RankScheduler
from h3sim.signals import H2Priority
from h3sim.trace import Delivery, RecordOrder, StreamOrder
from h3sim.transport import Role, WholeMessages

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.endpoint_factory import EndpointFactory
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.packet_log import PacketLog
    from h3sim.engine.transport import Application, Carried

__all__ = ["EndpointTransport"]

_UNIDIRECTIONAL = 2
"""Added to a multiple of 4: a client's unidirectional stream (RFC 9000 § 2.1)."""


class EndpointTransport:
    """The `Transport` of a network of links: client and server as *factory* makes them.

    *log* takes down what leaves. Each request, and each frame of the control stream, goes up as a
    stream of its own; *delivery* says in what order responses come down.
    """

    def __init__(
        self,
        environment: LoadEnvironment,
        factory: EndpointFactory,
        response_streams: StreamSender,
        log: PacketLog,
        *,
        delivery: Delivery,
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
        client = factory.end(Role.CLIENT, self.request_streams)
        server = factory.end(Role.SERVER, response_streams)
        self._client = EndpointDriver(
            client, environment, note=log.noting(client.endpoint, is_down=False)
        )
        self._note_recovery = log.noting_recovery(server.endpoint)
        self._server = EndpointDriver(
            server,
            environment,
            note=log.noting(server.endpoint, is_down=True),
            on_woken=self._note_recovery,
            wakes_idle=True,
        )
        self._order: StreamOrder | RecordOrder
        self._deliver: Callable[[Any, int, Application], None]
        if delivery is Delivery.STREAM:
            self._order = StreamOrder(log.delivered_at_ns)
            self._deliver = self._packet_deliverer(self._order)
        else:
            self._order = RecordOrder(log.delivered_at_ns)
            self._deliver = self._segment_deliverer(self._order)

    # What the application asks for

    def begin(self, application: Application) -> None:
        """Connect; the application is told once the client may send its requests."""
        client, server, deliver = self._client, self._server, self._deliver

        def on_packet_down(packet: Any, now_ns: int) -> None:
            deliver(packet, now_ns, application)
            client.flush(now_ns)

        connected_at_ns: int | None = None

        def on_handshake(packet: Any, now_ns: int) -> None:
            nonlocal connected_at_ns
            if connected_at_ns is not None and packet.sent_at_ns > connected_at_ns:
                client.arrivals.take = on_packet_down
                on_packet_down(packet, now_ns)
                return
            deliver(packet, now_ns, application)
            if connected_at_ns is None and client.endpoint.is_ready:
                connected_at_ns = now_ns
                application.on_connected(now_ns)
            # Behind the first requests, which go with the end of the handshake; and so do the
            # answers to packets that were under way by then.
            client.flush_soon(now_ns)

        def on_packet_up(packet: Any, now_ns: int) -> None:
            self._on_packet_up(packet, now_ns, application)

        client.face(server)
        server.face(client)
        server.arrivals.take = on_packet_up
        if client.endpoint.is_ready:
            client.arrivals.take = on_packet_down
            application.on_connected(self._environment.now_ns)
        else:
            client.arrivals.take = on_handshake
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
        self._order.watch(stream_id, n_bytes)

    def carried(self) -> Carried:
        """Return what happened to packets."""
        return self._log.carried()

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        self._messages.expect(stream_id, n_bytes)
        self.request_streams.open(stream_id, H2Priority())
        self.request_streams.send(stream_id, n_bytes)
        self._client.flush_soon(self._environment.now_ns)

    # What arrives

    def _on_packet_up(self, packet: Any, now_ns: int, application: Application) -> None:
        """A packet of the client arrives at the server."""
        server = self._server
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

    def _packet_deliverer(self, order: StreamOrder) -> Callable[[Any, int, Application], None]:
        """Return what delivers the streams' bytes of a packet of QUIC."""
        # Called with every packet down, so what it calls is looked up once.
        on_packet, on_row = self._client.endpoint.on_packet, order.on_packet
        take_first_row = self._log.first_row.pop

        def deliver(packet: Any, now_ns: int, application: Application) -> None:
            row = take_first_row(packet.number, 0)
            for stream_id, offset, n_bytes in on_packet(packet, now_ns):
                for delivered in on_row(row, stream_id, offset, n_bytes, now_ns):
                    application.on_delivered(*delivered, now_ns)
                row += 1

        return deliver

    def _segment_deliverer(self, order: RecordOrder) -> Callable[[Any, int, Application], None]:
        """Return what delivers the frames of the records that a segment of TCP completes."""
        on_packet, on_row, on_frame = self._client.endpoint.on_packet, order.on_row, order.on_frame
        take_first_row = self._log.first_row.pop

        def deliver(packet: Any, now_ns: int, application: Application) -> None:
            for row, frame in enumerate(packet.frames, take_first_row(packet.number, 0)):
                on_row(row, *frame)
            for stream_id, offset, n_bytes in on_packet(packet, now_ns):
                for delivered in on_frame(stream_id, offset, n_bytes, now_ns):
                    application.on_delivered(*delivered, now_ns)

        return deliver
