"""Builders of connections: at a constant rate, or over links that they share.

Read next, on the path of docs/reading.md: `h3sim/engine/endpoints.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim import http  # modules that only some loads use are imported on use
from h3sim.browser.capabilities import without_ignored
from h3sim.engine.browser_driver import BrowserDriver
from h3sim.engine.constant_rate import ConstantRateTransport
from h3sim.engine.environment import LoadEnvironment
from h3sim.engine.http_connection import HttpConnection
from h3sim.engine.requests import request_sizer
from h3sim.engine.signalling import UnsignalledRequests, has_thresholds
from h3sim.http import StreamSender
from h3sim.schedulers import Retransmit
from h3sim.transport import HandshakeMode, Protocol, Role
from h3sim.values.errors import PageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.cross_traffic import CrossTraffic
    from h3sim.engine.endpoints import EndpointFactory, EndpointTransport
    from h3sim.engine.environment import Process
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.engine.signalling import PrioritySignalling
    from h3sim.engine.transport import ProgressCallback, Transport
    from h3sim.http import ByteThresholds
    from h3sim.page import Page
    from h3sim.schedulers import Scheduler
    from h3sim.transport import ConstantRate


MAX_PACKETS = 5_000_000
"""The largest supported load; it takes about 2 GB and half a minute."""
_MIN_EVENTS, _EVENTS_PER_PACKET = 1_000_000, 200
"""The limit of events of a load over links, which takes a handful per packet: it exceeds the limit
only where nothing but timers expires."""


class LoadRun(NamedTuple):
    """A load to run: its spec, and the processes and callbacks around it."""

    spec: LoadSpec
    processes: tuple[Process, ...]
    record_packets: bool
    progress: ProgressCallback | None


class _Connector:
    """The browser of a load, and the builder of its connections to servers."""

    environment: LoadEnvironment
    driver: BrowserDriver
    _run: LoadRun
    _spec: LoadSpec

    def _set_up(self, run: LoadRun, environment: LoadEnvironment) -> None:
        """Set up what all connections of the load share: the browser, and the page."""
        self._run, self._spec = run, run.spec
        self.environment = environment
        self._page = without_ignored(self._spec.page, self._spec.scheme.ignores)
        if self._spec.header_compression is not None:
            # Imported on use: header compression takes longer to import than most loads take.
            from h3sim.engine.header_compression import without_headers

            self._page = without_headers(self._page)
        self.driver = BrowserDriver(
            self._page,
            environment,
            self._spec.browser,
            plays_recorded=self._spec.scheme.recorded is not None,
            tight_mode=self._spec.scheme.tight_mode,
        )

    def _build_connection(
        self,
        transport: Transport,
        thresholds: ByteThresholds | None,
        *,
        signalling: PrioritySignalling | None = None,
    ) -> HttpConnection:
        """Return a connection of the load over *transport*."""
        protocol = self._spec.link_protocol
        return HttpConnection(
            self._page,
            self._spec.scheme,
            environment=self.environment,
            transport=transport,
            driver=self.driver,
            thresholds=thresholds,
            request_bytes=request_sizer(self._page, protocol),
            is_http2=protocol is Protocol.TCP,
            signalling=signalling,
            sends_updates=self._spec.scheme.http2_updates
            or self._spec.protocol is not Protocol.TCP,
        )

    def cross_traffic(self) -> list[CrossTraffic]:
        """Return the competing flows, to be started when due; none at a constant rate."""
        return []


class ConstantRateBuilder(_Connector):
    """Builder of the connection of a load at a constant rate."""

    def __init__(self, run: LoadRun, rate: ConstantRate) -> None:
        self._rate = rate
        self._n_packets = count_packets(run.spec.page, rate.packet_bytes)
        self._set_up(run, LoadEnvironment())

    def connection(self) -> HttpConnection:
        """Return a connection."""
        spec, turn_bytes = self._spec, self._rate.packet_bytes
        thresholds = _make_thresholds(spec)
        streams = StreamSender(
            _make_scheduler(spec, turn_bytes, thresholds),
            turn_bytes=turn_bytes,
            buffer_bytes=spec.buffer_bytes,
            send_buffer_refill=spec.send_buffer_refill,
        )
        transport = ConstantRateTransport(
            self.environment,
            spec.network,
            self._rate,
            streams,
            protocol=spec.protocol,
            seed=spec.seed,
            handshake=spec.mode is HandshakeMode.ONE_RTT,
            progress=self._run.progress,
            n_packets=self._n_packets,
        )
        return self._build_connection(transport, thresholds)


class LinkBuilder(_Connector):
    """Builder of connections that share the links of a network.

    Raises:
        PageError: if the page takes too many packets.
        NetworkError: if a queue of the network cannot hold a packet of the profile.
    """

    def __init__(self, run: LoadRun) -> None:
        # On use: the endpoints are a fifth of all modules, and unused at a constant rate.
        from h3sim.engine.endpoints import EndpointFactory

        spec = run.spec
        self._factory = EndpointFactory(
            spec.network,
            spec.link_profile,
            spec.protocol,
            mode=spec.mode,
            seed=spec.seed,
            changes_links=bool(run.processes),
        )
        if spec.protocol is Protocol.TCP:
            from h3sim.engine.flow_control import Windows

            self._factory.http2_windows = Windows.of(spec)
        self._n_packets = count_packets(spec.page, self._factory.turn_bytes)
        self._n_sent: list[int] = []
        """Packets sent per connection, kept only with a progress callback."""
        self._set_up(run, LoadEnvironment(max_events=max_events(self._n_packets)))
        if run.processes:
            self._expose_links()

    def connection(
        self, rtt_ns: int | None = None, on_idle: Callable[[], None] | None = None
    ) -> HttpConnection:
        """Return a connection; *rtt_ns* is its round-trip time if not the network's.

        *on_idle* is called after each response of HTTP/1.1.
        """
        from h3sim.engine.endpoints import PacketLog, QuicTransport, TcpTransport

        spec, thresholds = self._spec, _make_thresholds(self._spec)
        streams = _build_response_streams(spec, self._factory, thresholds)
        log = PacketLog(
            record_packets=self._run.record_packets,
            progress=self._progress(),
            n_packets=self._n_packets,
        )
        windows = self._factory.http2_windows
        over_tcp: type[EndpointTransport] = TcpTransport if windows is None else windows.transport
        if spec.protocol is Protocol.QMUX:
            from h3sim.engine.flow_control import QmuxTransport

            over_tcp = QmuxTransport
        transport_class = over_tcp if spec.protocol.is_over_tcp else QuicTransport
        endpoints = transport_class(self.environment, self._factory, streams, log, rtt_ns=rtt_ns)
        transport: Transport = endpoints
        if spec.header_compression is not None:
            from h3sim.engine.header_compression import HeaderTransport

            assert isinstance(streams, http.SectionSender)  # noqa: S101 - made for it
            transport = HeaderTransport(
                self.environment, endpoints, streams, spec.page, spec.header_compression
            )
        if on_idle is not None:
            signalling = UnsignalledRequests(streams, on_idle)
            return self._build_connection(transport, None, signalling=signalling)
        return self._build_connection(transport, thresholds)

    def cross_traffic(self) -> list[CrossTraffic]:
        """Return the competing flows, to be started when due."""
        spec = self._spec
        if not spec.cross_traffic:
            return []
        from h3sim.engine.cross_traffic import CrossTraffic

        links = self._factory.links
        return [CrossTraffic(spec, flow, self.environment, links) for flow in spec.cross_traffic]

    def _progress(self) -> ProgressCallback | None:
        """Return a progress callback for one more connection, which reports the sum of all."""
        progress, n_sent = self._run.progress, self._n_sent
        if progress is None:
            return None
        number = len(n_sent)
        n_sent.append(0)

        def report(n: int, n_packets: int) -> None:
            n_sent[number] = n
            # Retransmissions count, too, so the sum may exceed the packets of the page.
            progress(min(sum(n_sent), n_packets), n_packets)

        return report

    def _expose_links(self) -> None:
        """Give processes access to the links."""
        from h3sim.engine.environment import LinkControl
        from h3sim.transport.link import ChangingLink

        for name, role in (("down", Role.SERVER), ("up", Role.CLIENT)):
            link = self._factory.links[role]
            if isinstance(link, ChangingLink):
                self.environment.add_link(name, LinkControl(self.environment, link))


def _build_response_streams(
    spec: LoadSpec, factory: EndpointFactory, thresholds: ByteThresholds | None
) -> StreamSender:
    """Return the sender of the server's streams over links."""
    profile, scheme, turn_bytes = spec.link_profile, spec.scheme, factory.turn_bytes
    retransmit = scheme.retransmission or Retransmit(profile.retransmit)
    by_priority = retransmit is Retransmit.PRIORITY
    stream_bytes, connection_bytes = factory.windows(Role.SERVER)
    sender_class: Callable[..., StreamSender]
    sender_class = http.HeadersFirstSender if spec.protocol is Protocol.TCP else StreamSender
    if spec.protocol is Protocol.QMUX:
        sender_class = http.QmuxSender
    if spec.header_compression is not None:
        sender_class = http.SectionSender
    streams = sender_class(
        _make_scheduler(spec, turn_bytes, thresholds),
        turn_bytes=turn_bytes,
        buffer_bytes=spec.buffer_bytes,
        send_buffer_refill=spec.send_buffer_refill,
        retransmit=retransmit,
        requeues=profile.requeues,
        lost_scheduler=_make_scheduler(spec, turn_bytes, None) if by_priority else None,
        retains_until_acked=True,
        stream_window_bytes=stream_bytes,
        connection_window_bytes=connection_bytes,
    )
    if isinstance(streams, http.SectionSender):
        streams.is_http2 = spec.protocol is Protocol.TCP
    return streams


def _make_thresholds(spec: LoadSpec) -> ByteThresholds | None:
    """Return the callbacks at byte thresholds of responses; None if no scheme or page has any."""
    return http.ByteThresholds() if has_thresholds(spec.page, spec.scheme) else None


def _make_scheduler(
    spec: LoadSpec, turn_bytes: int, thresholds: ByteThresholds | None
) -> Scheduler:
    """Return the scheduler of the server's streams of one connection."""
    if spec.protocol is Protocol.HTTP1:  # one response at a time leaves nothing to schedule
        from h3sim.schedulers import FifoScheduler

        return FifoScheduler()
    scheduler = spec.scheme.make_scheduler(turn_bytes=turn_bytes)
    return scheduler if thresholds is None else thresholds.around(scheduler)


def max_events(n_packets: int) -> int:
    """Return the limit of events of a load over links.

    >>> max_events(1_000)
    1200000
    """
    return _MIN_EVENTS + _EVENTS_PER_PACKET * n_packets


def count_packets(page: Page, packet_bytes: int) -> int:
    """Return the number of packets of *page*; an empty response takes one.

    Raises:
        PageError: if they are more than `MAX_PACKETS`.
    """
    n_packets = sum(-(-n_bytes // packet_bytes) or 1 for n_bytes in page.stream_bytes)
    if n_packets > MAX_PACKETS:
        message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
        raise PageError.at("resources", message, page.name)
    return n_packets
