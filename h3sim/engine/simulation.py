"""Loads a page: at a constant rate without loss, or over links with two endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser import BrowserModel
from h3sim.engine.connecting import LinkConnector, RateConnector
from h3sim.engine.load_run import run_load
from h3sim.engine.plan import Plan
from h3sim.http import BufferModel
from h3sim.results.load import Load
from h3sim.transport import Mode, Protocol, TransportProfile
from h3sim.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.compression import HeaderCompression
    from h3sim.compression.header_run import HeaderRun
    from h3sim.engine.environment import Process
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.transport import Progress
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.trace import Trace
    from h3sim.transport import Network

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
    plan = Plan(
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
    )
    return _run(plan, browser or BrowserModel(), limit_ns)


def _run(plan: Plan, browser: BrowserModel, limit_ns: int) -> Load:
    """Return the load that was planned."""
    rate = plan.network.constant_rate
    connector = LinkConnector(plan, browser) if rate is None else RateConnector(plan, rate, browser)
    environment = connector.environment
    for process in plan.processes:
        environment.run_beside(process)
    connection = connector.connection()
    # At a constant rate all that happens has an end, but processes may go on for ever.
    is_bounded = rate is not None and not plan.processes
    run_load(environment, connector.driver, connection, limit_ns=None if is_bounded else limit_ns)
    trace = connection.trace(plan.protocol.delivery)
    header_runs = None
    if plan.headers is not None:
        trace, header_runs = _with_sections(connection, trace)
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


def _with_sections(
    connection: HttpConnection, trace: Trace
) -> tuple[Trace, tuple[HeaderRun, HeaderRun] | None]:
    """Return the trace with the lengths of responses as sent, and what came of their sections."""
    from h3sim.engine.header_transport import HeaderTransport

    transport = connection.transport
    if not isinstance(transport, HeaderTransport):
        return trace, None
    return transport.with_sections(trace), transport.header_runs()
