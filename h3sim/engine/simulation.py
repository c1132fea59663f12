"""Loads a page: at a constant rate without loss, or over links with two endpoints."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser import BrowserModel
from h3sim.engine.connecting import LinkConnector, RateConnector
from h3sim.engine.load_run import run_load
from h3sim.engine.plan import Plan
from h3sim.errors import StalledError
from h3sim.http import BufferModel
from h3sim.lazy import without_collecting
from h3sim.page.hosts import host_names
from h3sim.results.connections import Connection
from h3sim.results.load import Load
from h3sim.schemes import CustomScheduler
from h3sim.trace import in_order_requested, merged_trace
from h3sim.transport import Mode, Protocol
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.compression import HeaderCompression
    from h3sim.compression.header_run import HeaderRun
    from h3sim.engine.environment import Process
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.load_run import Connections
    from h3sim.engine.transport import Progress
    from h3sim.page import Page
    from h3sim.page.hosts import RecordedHosts
    from h3sim.results.cross_traffic import CarriedFlow
    from h3sim.schemes import Scheme
    from h3sim.trace import Activity, Trace
    from h3sim.transport import Network, TransportProfile
    from h3sim.transport.cross_traffic import CrossFlow

__all__ = ["MAX_LOAD_NS", "simulate"]

MAX_LOAD_NS = 3600 * NS_PER_S
"""A load over links that takes longer than an hour is given up."""


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
    hosts: RecordedHosts | None = None,
    cross_traffic: tuple[CrossFlow, ...] = (),
) -> Load:
    """Return what happens when *page* is loaded.

    Over links, *profile* says how both ends send and recover; with *hosts* each that the page names
    has a connection, and *cross_traffic* shares the links. The server's send buffer has
    *buffer_bytes*, 0 for none. *progress* is told at times how many packets of how many were sent.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        NetworkError: if a queue of *network* cannot hold a packet of *profile*.
        StalledError: if the load does not end, or not within *limit_ns*, or in too many events.
    """
    plan = Plan(
        page=page,
        scheme=scheme,
        network=network,
        protocol=protocol,
        profile=profile,
        buffer_bytes=buffer_bytes,
        buffer_model=buffer_model,
        mode=mode,
        seed=seed,
        records_wire=records_wire,
        headers=headers,
        progress=progress,
        processes=tuple(processes),
        hosts=hosts,
        cross_traffic=cross_traffic,
    )
    return _run(plan, browser or BrowserModel(), limit_ns)


def _run(plan: Plan, browser: BrowserModel, limit_ns: int) -> Load:
    """Return the load that was planned."""
    rate = plan.network.constant_rate
    if rate is None and plan.hosts is not None:
        return _from_hosts(plan, plan.hosts.dns_ns, browser, limit_ns)
    connector = LinkConnector(plan, browser) if rate is None else RateConnector(plan, rate, browser)
    connection = connector.connection()
    # At a constant rate all that happens has an end, but processes may go on for ever.
    is_bounded = rate is not None and not plan.processes
    others = _run_over(plan, connector, connection, limit_ns=None if is_bounded else limit_ns)
    activities = connector.driver.browser.activities
    whole = _whole(
        plan,
        connection,
        host_names(plan.page.resources, plan.page.root),
        asked_for=connector.driver.asked_for,
        activities=activities,
    )
    return _load(plan, browser, [whole], whole.connection.trace, others)


def _from_hosts(plan: Plan, dns_ns: int, browser: BrowserModel, limit_ns: int) -> Load:
    """Return the load over a connection for each group of the page's hosts."""
    from h3sim.engine.host_connections import HostConnections  # on use: most loads have one

    connector = LinkConnector(plan, browser)
    connections = HostConnections(
        plan.page,
        connector.environment,
        lambda group: connector.connection(group.rtt_ns),
        dns_ns=dns_ns,
    )
    others = _run_over(plan, connector, connections, limit_ns=limit_ns)
    activities = connector.driver.browser.activities
    is_one = len(connections.opened) == 1
    wholes = [
        _whole(
            plan,
            entry.connection,
            tuple(host.name for host in entry.group.hosts),
            asked_for=connector.driver.asked_for,
            number=number,
            rtt_ns=entry.group.rtt_ns,
            lookups=tuple(
                (host.name, *connections.lookups[host.name])
                for host in entry.group.hosts
                if host.name in connections.lookups
            ),
            activities=activities if is_one else (),
        )
        for number, entry in enumerate(connections.opened)
    ]
    traces = [whole.connection.trace for whole in wholes]
    trace = traces[0] if is_one else merged_trace(traces, connector.driver.asked_for, activities)
    return _load(plan, browser, wholes, trace, others)


def _run_over(
    plan: Plan,
    connector: LinkConnector | RateConnector,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> tuple[CarriedFlow, ...]:
    """Load the page; return what other flows carried meanwhile."""
    for process in plan.processes:
        # Processes first, then flows: of one instant they begin in this order.
        connector.environment.run_beside(process)
    flows = connector.cross_traffic()
    # A load leaves no cycle behind before it is over, and what it keeps is a tuple or two a packet.
    # For every 700 of these Python would go through them, and at times through all that there is: a
    # sixth of the time of a page of a thousand resources. What processes leave is not known here.
    with nullcontext() if plan.processes else without_collecting(), _named(plan.scheme):
        run_load(connector.environment, connector.driver, connections, limit_ns=limit_ns)
    return tuple(flow.carried() for flow in flows)


@contextmanager
def _named(scheme: Scheme) -> Iterator[None]:
    """Name a scheduler of somebody else's where a load does not come to its end."""
    try:
        yield
    except StalledError as error:
        kind = scheme.mechanism
        if error.n_events is not None or not isinstance(kind, CustomScheduler):
            raise
        why = f"the scheduler {kind.value!r} picks none of the streams that have data"
        if error.limit_ns is not None:  # or the network is slow: nobody can tell
            why = f"does the scheduler {kind.value!r} pick none of the streams that have data?"
        raise StalledError(error.waiting, error.limit_ns, because=why) from None


class _Whole(NamedTuple):
    """A connection that is done with, and what came of its headers."""

    connection: Connection
    header_runs: tuple[HeaderRun, HeaderRun] | None


def _whole(
    plan: Plan,
    connection: HttpConnection,
    hosts: tuple[str, ...],
    *,
    asked_for: Sequence[int],
    activities: tuple[Activity, ...],
    number: int = 0,
    rtt_ns: int | None = None,
    lookups: tuple[tuple[str, int, int], ...] = (),
) -> _Whole:
    """Return what happened on a connection, with what the browser did if that is all of it."""
    trace = connection.trace(plan.protocol.delivery, activities)
    header_runs = None
    if plan.headers is not None:
        trace, header_runs = _with_sections(connection, trace)
    trace = in_order_requested(trace, asked_for)
    made = Connection(
        number=number,
        hosts=hosts,
        rtt_ns=plan.network.rtt_ns if rtt_ns is None else rtt_ns,
        opened_at_ns=connection.opened_at_ns,
        ready_at_ns=connection.ready_at_ns,
        trace=trace,
        n_frames=connection.n_frames,
        frame_bytes=connection.frame_bytes,
        lookups=lookups,
    )
    return _Whole(made, header_runs)


def _load(
    plan: Plan,
    browser: BrowserModel,
    wholes: list[_Whole],
    trace: Trace,
    others: tuple[CarriedFlow, ...],
) -> Load:
    runs = [whole.header_runs for whole in wholes if whole.header_runs is not None]
    return Load(
        page=plan.page,
        scheme=plan.scheme,
        network=plan.network,
        protocol=plan.protocol,
        buffer_bytes=plan.buffer_bytes,
        buffer_model=plan.buffer_model,
        seed=plan.seed,
        trace=trace,
        profile=plan.profile_of_ends if plan.network.constant_rate is None else None,
        mode=plan.mode,
        browser=browser,
        headers=plan.headers,
        header_runs=_headers_over(runs) if runs else None,
        hosts=plan.hosts,
        connections=tuple(whole.connection for whole in wholes),
        cross_traffic=others,
    )


def _headers_over(runs: list[tuple[HeaderRun, HeaderRun]]) -> tuple[HeaderRun, HeaderRun]:
    """Return what came of requests, and of responses, on all connections."""
    from h3sim.compression.header_run import HeaderRun

    requests, responses = zip(*runs, strict=True)
    return HeaderRun.over(requests), HeaderRun.over(responses)


def _with_sections(
    connection: HttpConnection, trace: Trace
) -> tuple[Trace, tuple[HeaderRun, HeaderRun] | None]:
    """Return the trace with the lengths of responses as sent, and what came of their sections."""
    from h3sim.engine.header_transport import HeaderTransport

    transport = connection.transport
    if not isinstance(transport, HeaderTransport):
        return trace, None
    return transport.with_sections(trace), transport.header_runs()
