"""Loads a page: at a constant rate without loss, or over links with two endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.browser import BrowserModel
from h3sim.engine.constant_rate import ConstantRateTransport
from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.load_run import LoadRun
from h3sim.engine.packet_log import PacketLog
from h3sim.engine.server_word import has_marks
from h3sim.errors import PageError, Problem
from h3sim.http import (
    BufferModel,
    ByteMarks,
    HeadersFirstSender,
    Retransmit,
    SectionSender,
    StreamSender,
)
from h3sim.results.load import Load
from h3sim.results.requests import request_sizer
from h3sim.transport import Mode, Protocol, Role, TransportProfile
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.compression import HeaderCompression
    from h3sim.engine.endpoint_factory import EndpointFactory
    from h3sim.engine.transport import Progress, Transport
    from h3sim.page import Page
    from h3sim.schedulers import Scheduler
    from h3sim.schemes import Scheme
    from h3sim.transport import ConstantRate, Network

__all__ = ["MAX_LOAD_NS", "MAX_PACKETS", "packets_of", "simulate"]

MAX_PACKETS = 5_000_000
"""The largest load that is taken on; it takes about 2 GB and half a minute."""

MAX_LOAD_NS = 3600 * NS_PER_S
"""A load over links that takes longer than an hour is given up."""

_MIN_EVENTS, _EVENTS_PER_PACKET = 1_000_000, 200
"""A load over links that takes more events is given up: it takes a handful for each packet, and
more only where nothing but timers runs out."""


def simulate(
    page: Page,
    *,
    scheme: Scheme,
    network: Network,
    protocol: Protocol = Protocol.QUIC,
    profile: TransportProfile | None = None,
    buffer_bytes: int = 0,
    buffer_model: BufferModel = BufferModel.REFILLED,
    mode: Mode = Mode.ONE_RTT,
    seed: int = 0,
    records_wire: bool = False,
    limit_ns: int = MAX_LOAD_NS,
    browser: BrowserModel | None = None,
    headers: HeaderCompression | None = None,
    progress: Progress | None = None,
    processes: Iterable[Process] = (),
) -> Load:
    """Return what happens when *page* is loaded.

    A network with a constant rate is loaded at that rate; over one with links, *profile* says how
    the two ends send, acknowledge and recover. *buffer_bytes* is the size of the server's send
    buffer, 0 for none, and *buffer_model* says when it takes something in; *mode* how the
    connection begins; *browser* what asks for resources. With *records_wire* the trace holds every
    packet both ways. *progress* is told, every so many packets, how many were sent and how many
    there are. Each of *processes* runs beside the load.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        NetworkError: if a queue of *network* cannot hold a packet of *profile*.
        StalledError: if the load cannot come to its end, or not within *limit_ns* or as many events
            as many loads of that size take.
    """
    plan = _Plan(
        page=page,
        scheme=scheme,
        network=network,
        protocol=protocol,
        profile=profile or TransportProfile(name="default"),
        buffer_bytes=buffer_bytes,
        buffer_model=buffer_model,
        mode=mode,
        seed=seed,
        records_wire=records_wire,
        headers=headers,
        progress=progress,
        processes=tuple(processes),
        marks=ByteMarks() if has_marks(page, scheme) else None,
    )
    return _run(plan, browser or BrowserModel(), limit_ns)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What `simulate` was given."""

    page: Page
    scheme: Scheme
    network: Network
    protocol: Protocol
    profile: TransportProfile
    buffer_bytes: int
    buffer_model: BufferModel
    mode: Mode
    seed: int
    records_wire: bool
    headers: HeaderCompression | None
    progress: Progress | None
    processes: tuple[Process, ...]
    marks: ByteMarks | None

    def scheduler(self, turn_bytes: int) -> Scheduler:
        """Return what schedules the server's streams."""
        made = self.scheme.make_scheduler(turn_bytes=turn_bytes)
        return made if self.marks is None else self.marks.around(made)

    @property
    def is_http2(self) -> bool:
        """Whether requests and responses are HTTP/2's."""
        return self.protocol is Protocol.TCP

    def packets(self, packet_bytes: int) -> int:
        """Return how many packets the load takes.

        Raises:
            PageError: if they are too many.
        """
        n_packets = packets_of(self.page, packet_bytes)
        if n_packets > MAX_PACKETS:
            message = f"takes {n_packets:,} packets; the most that is simulated is {MAX_PACKETS:,}"
            raise PageError([Problem(key="resources", message=message)], self.page.name)
        return n_packets


def _run(plan: _Plan, browser: BrowserModel, limit_ns: int) -> Load:
    """Return the load that was planned."""
    rate = plan.network.constant_rate
    environment, transport = _over_links(plan) if rate is None else _at_rate(plan, rate)
    for process in plan.processes:
        environment.run_beside(process)
    page = plan.page
    if plan.headers is not None:
        # On use, as all that compresses headers: it takes longer than most loads.
        from h3sim.engine.header_layer import without_headers

        page = without_headers(page)
    run = LoadRun(
        page,
        plan.scheme,
        environment=environment,
        transport=transport,
        browser=browser,
        marks=plan.marks,
        request_bytes=request_sizer(page, is_http2=rate is None and plan.is_http2),
    )
    # At a constant rate all that happens has an end, but processes may go on for ever.
    is_bounded = rate is not None and not plan.processes
    trace = run.run(plan.protocol.delivery, limit_ns=None if is_bounded else limit_ns)
    header_runs = None
    if plan.headers is not None:
        from h3sim.engine.header_transport import HeaderTransport

        if isinstance(transport, HeaderTransport):
            trace = transport.with_sections(trace)
            header_runs = transport.header_runs()
    return Load(
        page=plan.page,
        scheme=plan.scheme,
        network=plan.network,
        protocol=plan.protocol,
        buffer_bytes=plan.buffer_bytes,
        buffer_model=plan.buffer_model,
        seed=plan.seed,
        trace=trace,
        profile=plan.profile if rate is None else None,
        mode=plan.mode,
        browser=browser,
        headers=plan.headers,
        header_runs=header_runs,
    )


def _at_rate(plan: _Plan, rate: ConstantRate) -> tuple[LoadEnvironment, Transport]:
    """Return what carries a load at a constant rate."""
    turn_bytes = rate.packet_bytes
    n_packets = plan.packets(turn_bytes)
    environment = LoadEnvironment()
    streams = StreamSender(
        plan.scheduler(turn_bytes),
        turn_bytes=turn_bytes,
        buffer_bytes=plan.buffer_bytes,
        buffer_model=plan.buffer_model,
    )
    transport = ConstantRateTransport(
        environment,
        plan.network,
        rate,
        streams,
        protocol=plan.protocol,
        seed=plan.seed,
        handshake=plan.mode is Mode.ONE_RTT,
        progress=plan.progress,
        n_packets=n_packets,
    )
    return environment, transport


def _over_links(plan: _Plan) -> tuple[LoadEnvironment, Transport]:
    """Return what carries a load over links."""
    # On use: the endpoints are a fifth of all modules, and a constant rate has none.
    from h3sim.engine.endpoint_factory import EndpointFactory
    from h3sim.engine.endpoint_transport import EndpointTransport

    factory = EndpointFactory(
        plan.network,
        plan.profile,
        plan.protocol,
        mode=plan.mode,
        seed=plan.seed,
        changes_links=bool(plan.processes),
    )
    n_packets = plan.packets(factory.turn_bytes)
    environment = LoadEnvironment(max_events=_MIN_EVENTS + _EVENTS_PER_PACKET * n_packets)
    streams = _response_streams(plan, factory)
    log = PacketLog(records_wire=plan.records_wire, progress=plan.progress, n_packets=n_packets)
    transport = EndpointTransport(
        environment, factory, streams, log, delivery=plan.protocol.delivery
    )
    if plan.headers is not None and isinstance(streams, SectionSender):
        from h3sim.engine.header_transport import HeaderTransport

        return environment, HeaderTransport(
            environment, transport, streams, plan.page, plan.headers
        )
    return environment, transport


def _response_streams(plan: _Plan, factory: EndpointFactory) -> StreamSender:
    """Return the streams that the server sends over links."""
    profile, scheme, turn_bytes = plan.profile, plan.scheme, factory.turn_bytes
    retransmit = scheme.retransmission or Retransmit(profile.retransmit)
    by_priority = retransmit is Retransmit.PRIORITY
    stream_bytes, connection_bytes = factory.windows(Role.SERVER)
    make: Callable[..., StreamSender] = HeadersFirstSender if plan.is_http2 else StreamSender
    if plan.headers is not None:
        make = SectionSender
    streams = make(
        plan.scheduler(turn_bytes),
        turn_bytes=turn_bytes,
        buffer_bytes=plan.buffer_bytes,
        buffer_model=plan.buffer_model,
        retransmit=retransmit,
        requeues=profile.requeues,
        lost_scheduler=scheme.make_scheduler(turn_bytes=turn_bytes) if by_priority else None,
        keeps_unacked=True,
        stream_window_bytes=stream_bytes,
        connection_window_bytes=connection_bytes,
    )
    if isinstance(streams, SectionSender):
        streams.is_http2 = plan.is_http2
    return streams


def packets_of(page: Page, packet_bytes: int) -> int:
    """Return how many packets *page* takes; a response without a byte takes one."""
    return sum(max(1, -(-r.stream_bytes // packet_bytes)) for r in page.resources)
