"""Two endpoints over links: built, driven, recorded, with recovery and congestion control.

Read next, on the path of docs/reading.md: `h3sim/transport/endpoint.py`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from h3sim.engine.environment import EventPriority, FifoEventQueue
from h3sim.engine.transport import TransportTrace
from h3sim.http import StreamSender
from h3sim.schedulers import RankScheduler
from h3sim.signals import H2Priority
from h3sim.trace import RecordOrder, RecoveryRow, RowRecorder, StreamOrder, UplinkCount, WireRow
from h3sim.transport import Handshake, MessageReassembler, Protocol, QuicEndpoint, Role
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.link import ChangingLink, Link, RemoteLink, make_link
from h3sim.transport.quic import TimerGranularityEndpoint
from h3sim.transport.tcp.records import HEADER_BYTES as TCP_HEADER_BYTES
from h3sim.values import rng
from h3sim.values.constants import (
    FRAME_HEADER_BYTES,
    IP_HEADER_BYTES,
    STREAM_ID_STEP,
    UNLIMITED_BYTES,
)
from h3sim.values.errors import ConnectionTimeoutError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.flow_control import Windows
    from h3sim.engine.transport import Application, ProgressCallback
    from h3sim.transport import HandshakeMode, Network, TransportProfile
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.endpoint import Endpoint, Source
    from h3sim.transport.packets import WirePacket
    from h3sim.transport.quic.settings import QuicSettings
    from h3sim.transport.tcp import TcpEndpoint


_PACKETS_PER_REPORT: Final = 1024
"""The interval of calls of the progress callback."""


class SendHook:
    """A callback for each packet that one endpoint sends."""

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Record a packet that leaves now, and its arrival time; None if it is lost."""
        raise NotImplementedError

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Record the arrival time of a packet recorded without; None if the queue dropped it."""
        raise NotImplementedError


class DownlinkRecorder(SendHook):
    """The trace rows of packets down: one per stream frame."""

    __slots__ = ("_pack_from_row", "_pending", "_recorder", "delivered_at_ns", "queue_drops")

    def __init__(self, recorder: RowRecorder) -> None:
        self._recorder = recorder
        self._pending = recorder.pending
        self._pack_from_row = recorder.max_pending
        """The row at which pending rows are packed next."""
        self.delivered_at_ns = recorder.delivered_at_ns
        """Delivery time per row, set by the client's receiver."""
        self.queue_drops: list[int] = []
        """The numbers of packets that the queue has dropped."""

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Record the frames of a packet of the server."""
        rows, delivered_at_ns, number = self._pending, self.delivered_at_ns, packet.number
        # The receiver finds the rows of a packet by its first, without a table of packets.
        packet.first_row = first_row = len(delivered_at_ns)
        for stream_id, offset, n_bytes in packet.frames:
            rows.append((now_ns, arrives_at_ns, stream_id, offset, n_bytes, number))
            delivered_at_ns.append(None)
        if first_row >= self._pack_from_row:
            self._recorder.pack()
            self._pack_from_row = first_row + self._recorder.max_pending

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Record the arrival time of a packet of the server, or that the queue dropped it."""
        if arrives_at_ns is None:
            self.queue_drops.append(packet.number)
        else:
            self._recorder.set_arrival(packet.first_row, len(packet.frames), arrives_at_ns)


class UplinkCounter(SendHook):
    """Counts of the client's packets that carry stream bytes."""

    __slots__ = ("_n_bytes", "_n_on_their_way", "_n_sent")

    def __init__(self) -> None:
        self._n_sent = self._n_bytes = 0
        self._n_on_their_way = 0
        """Packets that have not arrived: at the end of a load they are lost."""

    def on_sent(self, packet: WirePacket, _now_ns: int, arrives_at_ns: int | None) -> None:
        """Count a packet of the client, unless it carries no stream bytes."""
        if packet.frames:
            self._n_sent += 1
            self._n_on_their_way += arrives_at_ns is None
            for _, _, n_bytes in packet.frames:
                self._n_bytes += n_bytes

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Record that a packet of the client has left the queue, and arrives."""
        if packet.frames and arrives_at_ns is not None:
            self._n_on_their_way -= 1

    def counts(self) -> UplinkCount:
        """Return the counts so far."""
        return UplinkCount(self._n_sent, self._n_on_their_way, self._n_bytes)


class PacketTraceRecorder(SendHook):
    """Records every packet of one endpoint, which go to *rows* as well."""

    def __init__(self, endpoint: Endpoint[Any], log: PacketLog, rows: SendHook) -> None:
        self._endpoint = endpoint
        self._log = log
        self._rows = rows
        self._is_down = isinstance(rows, DownlinkRecorder)
        self._wire_rows: dict[int, int] = {}
        """The rows of packets recorded without an arrival time, by number."""

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        """Record a packet and its acknowledgements, and report progress."""
        log, number = self._log, packet.number
        self._rows.on_sent(packet, now_ns, arrives_at_ns)
        if self._is_down:
            log.report(number)
        if log.record_packets:
            acked, is_down = self._endpoint.ack_ranges(packet), self._is_down
            if arrives_at_ns is None:  # lost, or still in a queue: then `on_departed` sets it
                self._wire_rows[number] = len(log.wire)
            log.wire.append(
                WireRow(is_down, number, now_ns, arrives_at_ns, packet.size_bytes, acked)
            )

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Record the fate of a packet that was recorded without an arrival time."""
        self._rows.on_departed(packet, arrives_at_ns)
        if self._log.record_packets and arrives_at_ns is not None:
            row = self._wire_rows.pop(packet.number)
            self._log.wire[row] = self._log.wire[row]._replace(arrived_at_ns=arrives_at_ns)


class PacketLog:
    """The rows of packets down; with *record_packets* also every packet both ways, and recovery.

    *progress* is called with the number sent out of *n_packets*.
    """

    def __init__(
        self, *, record_packets: bool, progress: ProgressCallback | None = None, n_packets: int = 0
    ) -> None:
        self.record_packets = record_packets
        self._progress = progress
        self._n_packets = n_packets
        self._recorder = RowRecorder()
        self._rows = DownlinkRecorder(self._recorder)
        self._uplink = UplinkCounter()
        self.delivered_at_ns = self._recorder.delivered_at_ns
        """Delivery time per row, set by the client's receiver."""
        self.wire: list[WireRow] = []
        """All packets in both directions, if they are recorded."""
        self._recovery: list[RecoveryRow] = []

    def of(self, endpoint: Endpoint[Any], *, is_down: bool) -> SendHook:
        """Return the hook for packets sent by *endpoint*."""
        rows: SendHook = self._rows if is_down else self._uplink
        if not self.record_packets and self._progress is None:
            return rows
        return PacketTraceRecorder(endpoint, self, rows)

    def recovery_callback(
        self, endpoint: Endpoint[Any], streams: StreamSender
    ) -> Callable[[int], None] | None:
        """Return a callback that records the recovery state of *endpoint*, or None.

        The callback adds the size of the send buffer of *streams*.
        """
        if not self.record_packets:
            return None
        return lambda now_ns: self._recovery.append(
            endpoint.recovery_row(now_ns)._replace(buffered_bytes=streams.buffered_bytes)
        )

    def carried(self) -> TransportTrace:
        """Return the recorded rows."""
        # In the order sent: a queue with CoDel drops some that it has held for longer.
        drops = tuple(sorted(self._rows.queue_drops))
        wire, recovery = tuple(self.wire), tuple(self._recovery)
        uplink = self._uplink.counts()
        return TransportTrace(self._recorder.rows(), wire, recovery, drops, uplink)

    def report(self, number: int) -> None:
        """Report progress at regular intervals."""
        if self._progress is not None and not number % _PACKETS_PER_REPORT:
            self._progress(min(number, self._n_packets), self._n_packets)


_PROBE_BYTES: Final = 64
"""The excess size of a probe that repeats a full packet and carries an ACK."""
_CLIENT_CONTROLLER = "newreno"
"""Requests are few and small, so the client's controller does not matter."""


class EndpointOnLink:
    """An endpoint, and the link that it sends over."""

    __slots__ = ("endpoint", "link", "overhead_bytes")

    def __init__(self, endpoint: Endpoint[Any], link: Link, overhead_bytes: int) -> None:
        self.endpoint = endpoint
        self.link = link
        self.overhead_bytes = overhead_bytes
        """The bytes that IP (and UDP) add to each packet."""


class EndpointFactory:
    """Factory of client and server endpoints of connections that share the links of a network.

    It creates the links, unless *links* are passed that other flows use as well.

    Raises:
        NetworkError: if a queue of the network cannot hold a packet of the profile.
    """

    def __init__(
        self,
        network: Network,
        profile: TransportProfile,
        protocol: Protocol,
        *,
        mode: HandshakeMode,
        seed: int,
        changes_links: bool = False,
        links: Mapping[Role, Link] | None = None,
    ) -> None:
        self._network = network
        self._profile = profile
        self._protocol = protocol
        self._mode = mode
        self._seed = seed
        self.http2_windows: Windows | None = None
        """HTTP/2's flow control of both ends, if it may bind."""
        network.check_packets(
            down_bytes=self._packet_bytes(Role.SERVER), up_bytes=self._packet_bytes(Role.CLIENT)
        )
        build_link: Callable[..., Link] = ChangingLink if changes_links else make_link
        self.links = links or {role: self._link(role, build_link) for role in Role}
        """The links by the role of their sender."""

    @property
    def turn_bytes(self) -> int:
        """The scheduling quantum: a packet for QUIC, a DATA frame over TCP."""
        if self._protocol.is_over_tcp:
            return self._profile.tcp.data_frame_bytes
        quic = self._profile.quic
        return quic.datagram_bytes - quic.header_bytes

    def windows(self, role: Role) -> tuple[int, int]:
        """Return the initial flow control limits of that end: per stream, and for the connection.

        Over TCP there are none unless `http2_windows` may bind, or QMux announces QUIC's; TCP's own
        the endpoint keeps.
        """
        if self._protocol.is_over_tcp and self._protocol is not Protocol.QMUX:
            both = self.http2_windows
            if both is None:
                return UNLIMITED_BYTES, UNLIMITED_BYTES
            return (both.client if role is Role.SERVER else both.server).initial_limits
        peer = self.quic(Role.CLIENT if role is Role.SERVER else Role.SERVER)
        return peer.stream_window_bytes, peer.connection_window_bytes

    def quic(self, role: Role) -> QuicSettings:
        """Return QUIC's settings of that end, of which QMux has the flow control."""
        return self._profile.quic if role is Role.SERVER else self._profile.quic_client

    def end(self, role: Role, source: Source, *, rtt_ns: int | None = None) -> EndpointOnLink:
        """Return the endpoint of that role, which sends the data of *source*.

        *rtt_ns* is the round-trip time to the server if it is not the network's.
        """
        network_ns = self._network.rtt_ns
        path_ns = network_ns if rtt_ns is None else rtt_ns
        link = self.links[role]
        # Per direction: an odd nanosecond belongs to the way up, as in `Link`.
        extra_ns = _one_way_ns(path_ns, role) - _one_way_ns(network_ns, role)
        if extra_ns:
            link = RemoteLink(self.links[role], extra_ns)
        # An established connection has measured its path.
        measured_ns = path_ns if self._mode.is_established else None
        if self._protocol.is_over_tcp:
            tcp = self._build_tcp_endpoint(role, source, measured_ns)
            return EndpointOnLink(tcp, link, IP_HEADER_BYTES)
        quic = self._build_quic_endpoint(role, source, measured_ns)
        return EndpointOnLink(quic, link, self._profile.quic.ip_bytes)

    def _link(self, role: Role, build_link: Callable[..., Link]) -> Link:
        """Return the link that the end of that role sends over."""
        network = self._network
        profile = network.down if role is Role.SERVER else network.up
        assert profile is not None  # noqa: S101 - a network without a pace has links
        direction = "down" if role is Role.SERVER else "up"

        # One stream of random numbers per purpose and direction, and none depends on the scheme: so
        # a change of one setting leaves all other draws as they were.
        def stream(purpose: str) -> random.Random:
            return rng.substream(self._seed, f"{purpose}.{direction}")

        upward = role is Role.CLIENT
        if profile.fq_codel is not None:
            from h3sim.transport.fair_link import FairLink  # on use: few links have flow queues

            build_link = FairLink
        return build_link(profile, rtt_ns=network.rtt_ns, streams=stream, upward=upward)

    def _build_quic_endpoint(
        self, role: Role, source: Source, path_rtt_ns: int | None
    ) -> QuicEndpoint:
        """Return a QUIC endpoint; *path_rtt_ns* is known if it is established."""
        is_server = role is Role.SERVER
        settings = self._profile.quic if is_server else self._profile.quic_client
        peer = self._profile.quic_client if is_server else self._profile.quic
        timeouts_ns = [t for t in (settings.idle_timeout_ns, peer.idle_timeout_ns) if t is not None]
        endpoint_class = TimerGranularityEndpoint if settings.has_event_loop else QuicEndpoint
        return endpoint_class(
            settings,
            self._build_controller(role, settings.datagram_bytes),
            source,
            Handshake(self._profile.quic, role, self._mode),
            peer_max_ack_delay_ns=peer.max_ack_delay_ns,
            idle_timeout_ns=min(timeouts_ns, default=None),
            path_rtt_ns=path_rtt_ns,
            has_ecn=self._profile.ecn,
        )

    def _build_tcp_endpoint(
        self, role: Role, source: Source, path_rtt_ns: int | None
    ) -> TcpEndpoint:
        """Return a TCP endpoint; *path_rtt_ns* is known if it is established."""
        settings = self._profile.tcp if role is Role.SERVER else self._profile.tcp_client
        controller = self._build_controller(role, settings.mss_bytes)
        from h3sim.transport.tcp import TcpEndpoint  # on use: most loads are over QUIC

        # A response of HTTP/1.1 is not framed: Content-Length delimits it (RFC 9112 § 6.3).
        header_bytes = 0 if self._protocol is Protocol.HTTP1 else FRAME_HEADER_BYTES
        return TcpEndpoint(
            settings,
            controller,
            source,
            role,
            self._mode,
            path_rtt_ns=path_rtt_ns,
            frame_header_bytes=header_bytes,
            has_full_frames=self.http2_windows is not None,
            is_qmux=self._protocol is Protocol.QMUX,
            has_ecn=self._profile.ecn,
        )

    def _packet_bytes(self, role: Role) -> int:
        """Return the size of a full packet of that end, with the IP header."""
        is_server = role is Role.SERVER
        if self._protocol.is_over_tcp:
            tcp = self._profile.tcp if is_server else self._profile.tcp_client
            return tcp.mss_bytes + TCP_HEADER_BYTES + IP_HEADER_BYTES
        quic = self._profile.quic if is_server else self._profile.quic_client
        return quic.datagram_bytes + _PROBE_BYTES + self._profile.quic.ip_bytes

    def _build_controller(self, role: Role, datagram_bytes: int) -> CongestionController:
        """Return the congestion controller of that end."""
        profile = self._profile
        down = self._network.down
        settings = ControllerSettings(
            max_datagram_bytes=datagram_bytes,
            initial_window_bytes=profile.initial_window_bytes,
            beta=profile.beta,
            hystart=profile.hystart,
            search=profile.search,
            rate_bps=None if down is None else down.rate_bps,
        )
        if role is Role.CLIENT:
            return make_controller(_CLIENT_CONTROLLER, settings)
        return make_controller(profile.cc, settings, profile.controller)


def _one_way_ns(rtt_ns: int, role: Role) -> int:
    """Return the one-way delay from that end, rounded as in `Link`.

    >>> [_one_way_ns(5, role) for role in (Role.SERVER, Role.CLIENT)]
    [2, 3]
    """
    return rtt_ns // 2 if role is Role.SERVER else rtt_ns - rtt_ns // 2


# Plain ints: looking up a member of an enum costs as much as half a pick.
_DELIVERY, _SEND = int(EventPriority.DELIVERY), int(EventPriority.SEND)


class EndpointDriver:
    """An endpoint in simulated time.

    *log* is called with each packet sent, its time and its arrival; *on_woken* is called after each
    timer. Without *wakes_idle*, a timer that has become obsolete does not wake the endpoint.
    *on_given_up* is called, once, with the time and the reason if the endpoint gives the connection
    up.
    """

    __slots__ = (
        "_armed_at_ns",
        "_checked_at_ns",
        "_due_at_ns",
        "_environment",
        "_handles_packets",
        "_is_flush_due",
        "_link",
        "_log",
        "_on_given_up",
        "_on_woken",
        "_overhead_bytes",
        "_peer_arrivals",
        "_under_way",
        "_wakes_idle",
        "arrivals",
        "endpoint",
    )

    def __init__(
        self,
        end: EndpointOnLink,
        environment: LoadEnvironment,
        *,
        log: SendHook,
        on_woken: Callable[[int], None] | None = None,
        wakes_idle: bool = False,
        on_given_up: Callable[[int, str], None] | None = None,
    ) -> None:
        # Any transport: only the receivers of what arrives depend on its type.
        self.endpoint: Endpoint[Any] = end.endpoint
        self.arrivals = FifoEventQueue(environment, _DELIVERY)
        """The packets on their way here."""
        self._under_way = self.arrivals.under_way
        self._peer_arrivals = self.arrivals
        self._link = end.link
        self._handles_packets = end.link.handles_packets
        if self._handles_packets:
            end.link.attach(environment.at, _DELIVERY)
        self._overhead_bytes = end.overhead_bytes
        self._environment = environment
        self._log = log
        self._on_woken = on_woken
        self._wakes_idle = wakes_idle
        self._on_given_up = on_given_up
        self._checked_at_ns: int | None = None
        """Time of the event that will check the endpoint's deadline; None without one."""
        self._armed_at_ns: int | None = None
        """Time of the event that will wake the endpoint; None without one."""
        self._due_at_ns: int | None = None
        """Time of the endpoint's timer, as of the last flush."""
        self._is_flush_due = False
        """True if a flush is scheduled for the end of this instant."""

    def face(self, peer: EndpointDriver) -> None:
        """Send packets to *peer* from now on."""
        self._peer_arrivals = peer.arrivals

    def flush(self, now_ns: int) -> None:
        """Send all packets of the endpoint that may leave, and set its timer."""
        endpoint = self.endpoint
        packets: list[WirePacket] = endpoint.packets_to_send(now_ns)
        if self._handles_packets:
            self._send_packets(packets, now_ns)
            packets = []
        for packet in packets:
            # A link is a recurrence: the arrival time, or the loss, is known on sending.
            arrives_at_ns = self._link.send(now_ns, packet.size_bytes + self._overhead_bytes)
            if arrives_at_ns is not None:
                self._peer_arrivals.put(arrives_at_ns, packet)
            self._log.on_sent(packet, now_ns, arrives_at_ns)
            if arrives_at_ns is None and self._link.has_dropped:
                self._log.on_departed(packet, None)
        self._due_at_ns = at_ns = endpoint.timer_at_ns()
        if at_ns is not None:
            # The first check of `_arm`, without the call: a packet arrives before the timer is due.
            under_way = self._under_way
            next_at_ns: int = under_way[0][0] if under_way else now_ns  # an entry's first field
            if not now_ns < next_at_ns <= at_ns:
                self._arm(at_ns, now_ns)

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        """Schedule the arrival of a packet whose fate is known now."""
        if arrives_at_ns is not None:
            self._peer_arrivals.put(arrives_at_ns, packet)
        if arrives_at_ns is not None or self._link.has_dropped:
            self._log.on_departed(packet, arrives_at_ns)

    def drain(self) -> None:
        """Record the arrivals of packets that are in a queue at the end of the load."""
        if self._handles_packets and not self._environment.has_overrun:
            self._link.drain()

    def flush_soon(self, now_ns: int) -> None:
        """Flush after all other events of this instant.

        So simultaneous requests leave in one packet, and a server that receives several at once
        knows all of them before it begins to respond.
        """
        if not self._is_flush_due:
            self._is_flush_due = True
            self._environment.at(now_ns, _SEND, self._on_flush, None)

    def _send_packets(self, packets: list[WirePacket], now_ns: int) -> None:
        """Send *packets* over a link that handles packets, and reports their fates."""
        for packet in packets:
            self._log.on_sent(packet, now_ns, None)
            size_bytes = packet.size_bytes + self._overhead_bytes
            self._link.send_packet(now_ns, packet, size_bytes, self)

    def _arm(self, at_ns: int, now_ns: int) -> None:
        """Arm the timer for *at_ns*, unless an earlier event makes it unnecessary.

        The endpoint's timer is read again whenever a packet arrives. So no timer is armed if a
        packet arrives before it expires: usually that packet postpones or cancels the timer.
        """
        for entry in self._under_way:
            arrives_at_ns: int = entry[0]
            if arrives_at_ns > now_ns:
                if arrives_at_ns <= at_ns:
                    return
                break
        # An earlier timer is armed already, and checks on expiry whether it is too early.
        if self._armed_at_ns is None or at_ns < self._armed_at_ns:
            self._armed_at_ns = at_ns
            # A timer may have become due while sending was blocked; time does not run backwards.
            at_ns_or_now = at_ns if at_ns > now_ns else now_ns
            self._environment.at(at_ns_or_now, _SEND, self._on_timer, at_ns)

    def _on_flush(self, _value: None, now_ns: int) -> None:
        """Send what `flush_soon` has postponed to the end of this instant."""
        self._is_flush_due = False
        self.flush(now_ns)

    def _on_timer(self, armed_at_ns: int, now_ns: int) -> None:
        """Wake the endpoint, unless an earlier timer has replaced this one.

        A postponed timer expires and checks again: that is cheaper than removing an event from the
        queue with every packet.
        """
        # Lazy deletion: removing an entry from the middle of a heap costs a new heap.
        if armed_at_ns != self._armed_at_ns:
            return
        self._armed_at_ns = None
        due_at_ns = self._due_at_ns
        if self._is_flush_due:  # an event of this very instant has changed the endpoint
            due_at_ns = self.endpoint.timer_at_ns()
        if due_at_ns is None and not self._wakes_idle:
            return  # its ACK was bundled with a later packet
        if due_at_ns is not None and due_at_ns > now_ns:
            self._arm(due_at_ns, now_ns)
            return
        self.endpoint.on_timer(now_ns)
        if self._on_woken is not None:
            self._on_woken(now_ns)
        self.flush(now_ns)
        # Silence ends with a timer at the latest, so it is early enough to look here.
        if self._on_given_up is not None and self.endpoint.has_probed:
            self._check_deadline(now_ns)

    def _check_deadline(self, now_ns: int) -> None:
        """Give the connection up if its deadline has passed; otherwise check again then."""
        deadline = self.endpoint.deadline()
        if deadline is None:
            return
        if deadline.at_ns <= now_ns:
            if self._on_given_up is not None:
                self._on_given_up(now_ns, deadline.reason)
        elif self._checked_at_ns is None or deadline.at_ns < self._checked_at_ns:
            self._checked_at_ns = deadline.at_ns
            self._environment.at(deadline.at_ns, _SEND, self._on_deadline, deadline.at_ns)

    def _on_deadline(self, checked_at_ns: int, now_ns: int) -> None:
        """Check the deadline, which packets that arrived since may have postponed."""
        if checked_at_ns == self._checked_at_ns:
            self._checked_at_ns = None
            self._check_deadline(now_ns)


def _give_up(end: str, now_ns: int, reason: str) -> None:
    """Stop the load, as its client or server has given the connection up."""
    raise ConnectionTimeoutError((), now_ns, because=f"{end}'s {reason}")


_UNIDIRECTIONAL: Final = 2
"""Added to a multiple of 4 it is a client's unidirectional stream (RFC 9000 § 2.1)."""


class EndpointTransport:
    """The `Transport` of a network of links, with the endpoints of *factory*.

    *log* records packets. Each request, and each frame of the control stream, goes up as a stream
    of its own; derived classes define the order of delivery down. *rtt_ns* is the round-trip time
    to the server if it is not the network's.
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
        self.request_streams = self._make_request_streams(factory)
        self._messages = MessageReassembler()
        client = factory.end(Role.CLIENT, self.request_streams, rtt_ns=rtt_ns)
        server = factory.end(Role.SERVER, response_streams, rtt_ns=rtt_ns)
        self._client = EndpointDriver(
            client,
            environment,
            log=log.of(client.endpoint, is_down=False),
            on_given_up=partial(_give_up, "client"),
        )
        self._read_up = server.endpoint.on_packet
        """Pass a packet to the server, and return the stream bytes that it delivers."""
        self._read_down = client.endpoint.on_packet
        self._record_recovery = log.recovery_callback(server.endpoint, response_streams)
        self._server = EndpointDriver(
            server,
            environment,
            log=log.of(server.endpoint, is_down=True),
            on_woken=self._record_recovery,
            wakes_idle=True,
            on_given_up=partial(_give_up, "server"),
        )
        self._application: Application
        self._connected_at_ns: int | None = None
        """Time when the client could send requests; None before, or if that was at the start."""
        self._is_open = False
        """True if a packet has arrived that was sent after the client was connected."""
        self._begin()

    def _begin(self) -> None:
        """Set up the state of a derived class."""

    def _make_request_streams(self, factory: EndpointFactory) -> StreamSender:
        """Return the sender of requests and of frames of the control stream."""
        stream_bytes, connection_bytes = factory.windows(Role.CLIENT)
        return StreamSender(
            # All streams have the same rank, so requests and frames leave in order of creation.
            RankScheduler(),
            turn_bytes=factory.turn_bytes,
            retains_until_acked=True,
            stream_window_bytes=stream_bytes,
            connection_window_bytes=connection_bytes,
        )

    # Calls of the application

    def begin(self, application: Application) -> None:
        """Connect; `on_connected` is called once the client may send requests."""
        client, server = self._client, self._server
        self._application = application
        client.face(server)
        server.face(client)
        server.arrivals.take = self._on_packet_up
        client.arrivals.take = self._on_packet_down
        # With 0-RTT or an established connection, requests leave with the first packet, or alone.
        if client.endpoint.is_ready:
            self._is_open = True
            application.on_connected(self._environment.now_ns)
        else:
            client.flush_soon(self._environment.now_ns)

    def send_request(self, stream_id: int, n_bytes: int) -> None:
        """Send a request upstream."""
        self._send_up(stream_id, n_bytes)

    def send_signal(self, number: int, n_bytes: int) -> None:
        """Send a frame of the control stream upstream; the receiver restores the order."""
        self._send_up(STREAM_ID_STEP * number + _UNIDIRECTIONAL, n_bytes)

    def pump(self) -> None:
        """Send the waiting data of the server's streams, at the end of this instant."""
        self._server.flush_soon(self._environment.now_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* of it have been delivered."""
        raise NotImplementedError

    def carried(self) -> TransportTrace:
        """Return the recorded packets."""
        self._server.drain()
        self._client.drain()
        return self._log.carried()

    def _send_up(self, stream_id: int, n_bytes: int) -> None:
        """Send a message upstream as a stream of its own."""
        self._messages.expect(stream_id, n_bytes)
        self.request_streams.open(stream_id, H2Priority())
        self.request_streams.send(stream_id, n_bytes)
        self._client.flush_soon(self._environment.now_ns)

    # Arrivals

    def _on_packet_up(self, packet: WirePacket, now_ns: int) -> None:
        """Handle the arrival of a packet of the client at the server."""
        server, application = self._server, self._application
        # All of the packet first, then responses: the server decides with all of it known.
        for stream_id, offset, n_bytes in self._read_up(packet, now_ns):
            if not self._messages.on_bytes(stream_id, offset, n_bytes):
                continue
            if stream_id % STREAM_ID_STEP == _UNIDIRECTIONAL:
                application.on_signal_arrived(stream_id // STREAM_ID_STEP, now_ns)
            else:
                application.on_request_arrived(stream_id, now_ns)
        if self.response_streams.has_drained:
            application.on_drained()
        if self._record_recovery is not None:
            self._record_recovery(now_ns)
        server.flush(now_ns)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        """Handle the arrival of a packet of the server at the client."""
        raise NotImplementedError

    def _on_packet_before_open(self, packet: WirePacket, now_ns: int) -> None:
        """Respond to a packet that arrived before the connection was open."""
        client, connected_at_ns = self._client, self._connected_at_ns
        # A packet sent after that responds to the client's requests, so they have left.
        if connected_at_ns is not None and packet.sent_at_ns > connected_at_ns:
            self._is_open = True
            client.flush(now_ns)
            return
        if connected_at_ns is None and client.endpoint.is_ready:
            self._connected_at_ns = now_ns
            self._application.on_connected(now_ns)
        # After the first requests, which go with the end of the handshake; so do the responses to
        # packets that were in flight by then.
        client.flush_soon(now_ns)


class QuicTransport(EndpointTransport):
    """The `Transport` of QUIC: each stream is delivered in its own order."""

    def _begin(self) -> None:
        """Set up the reassembly of streams."""
        self._order = StreamOrder(self._log.delivered_at_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* of it have been delivered."""
        self._order.watch(stream_id, n_bytes)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        """Deliver the frames of a packet, each in the order of its own stream."""
        client, order, row = self._client, self._order, packet.first_row
        for stream_id, offset, n_bytes in self._read_down(packet, now_ns):
            for delivered_id, end in order.on_packet(row, stream_id, offset, n_bytes, now_ns):
                self._application.on_delivered(delivered_id, end, now_ns)
            row += 1
        if self._is_open:
            client.flush(now_ns)
        else:
            self._on_packet_before_open(packet, now_ns)


class TcpTransport(EndpointTransport):
    """The `Transport` of TCP: a segment delivers the frames of the records that it completes."""

    def _begin(self) -> None:
        """Set up the reassembly of the byte stream and its records."""
        self._order = RecordOrder(self._log.delivered_at_ns)

    def watch(self, stream_id: int, n_bytes: int) -> None:
        """Suppress reports of a response until *n_bytes* of it have been delivered."""
        self._order.watch(stream_id, n_bytes)

    def _on_packet_down(self, packet: WirePacket, now_ns: int) -> None:
        """Deliver the frames of the records that a segment completes."""
        client, order, row = self._client, self._order, packet.first_row
        # Before the endpoint handles it: the records that it completes may hold these very rows.
        for stream_id, offset, n_bytes in packet.frames:
            order.on_row(row, stream_id, offset, n_bytes)
            row += 1
        for stream_id, offset, n_bytes in self._read_down(packet, now_ns):
            for delivered_id, end in order.on_frame(stream_id, offset, n_bytes, now_ns):
                self._application.on_delivered(delivered_id, end, now_ns)
        if self._is_open:
            client.flush(now_ns)
        else:
            self._on_packet_before_open(packet, now_ns)
