"""One load: connections are built, and time passes until the browser has everything.

Read next, on the path of docs/reading.md: `h3sim/engine/browser_driver.py`.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.engine.browser_driver import Requester
from h3sim.engine.builders import ConstantRateBuilder, LinkBuilder, LoadRun
from h3sim.engine.environment import EventPriority
from h3sim.errors import StalledError
from h3sim.lazy import gc_paused
from h3sim.page.hosts import host_names
from h3sim.results.connections import Connection
from h3sim.results.load import Load
from h3sim.schemes import CustomScheduler
from h3sim.trace import in_order_requested, merged_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.engine.browser_driver import BrowserDriver
    from h3sim.engine.environment import LoadEnvironment, Process
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.transport import ProgressCallback
    from h3sim.headers.base import HeaderRun
    from h3sim.results import LoadSpec
    from h3sim.results.connections import CarriedFlow
    from h3sim.schemes import Scheme
    from h3sim.trace import Activity, Trace


class Connections(Requester, Protocol):
    """What a load asks of its connections: of one `HttpConnection`, or of several."""

    def begin(self, on_ready: Callable[[int], None]) -> None:
        """Connect; *on_ready* is told when the first request may leave."""


def run_load(
    environment: LoadEnvironment,
    driver: BrowserDriver,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> None:
    """Load the page of *driver* over *connections*.

    Raises:
        StalledError: if the load cannot come to its end, or not within *limit_ns*.
    """
    browser = driver.browser

    def on_limit(value: None, now_ns: int) -> None:
        del value
        raise StalledError(browser.waiting, limit_ns=now_ns)

    if limit_ns is not None:
        # The last rank of a load: one that ends at this very instant has ended in time.
        environment.at(limit_ns, EventPriority.SEND, on_limit, None)
    driver.requester = connections
    connections.begin(driver.on_connected)
    if environment.run_load():
        return
    if environment.has_overrun:
        n_events = environment.overrun_events
        is_of_load = n_events == environment.max_events
        why = "" if is_of_load else "the processes beside it had them all; does one pass no time?"
        raise StalledError(browser.waiting, environment.now_ns, n_events, why)
    raise StalledError(browser.waiting)


def simulate(
    spec: LoadSpec,
    *,
    record_packets: bool = False,
    progress: ProgressCallback | None = None,
    processes: Iterable[Process] = (),
) -> Load:
    """Return what happens when the page of *spec* is loaded as it describes.

    With *record_packets* the trace holds every packet both ways. *progress* is called with the
    number of packets sent and in all. *processes* run beside the load.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        NetworkError: if a queue of the network cannot hold a packet of the profile.
        StalledError: if the load does not end, or not within its limit, or in too many events.
    """
    run = LoadRun(spec, tuple(processes), record_packets, progress)
    if not spec.is_constant_rate and spec.hosts is not None:
        return _from_hosts(run, spec.hosts.dns_ns)
    return _over_one_connection(run)


def _over_one_connection(run: LoadRun) -> Load:
    """Return the load over a single connection."""
    spec, rate = run.spec, run.spec.network.constant_rate
    connector = LinkBuilder(run) if rate is None else ConstantRateBuilder(run, rate)
    connection = connector.connection()
    # At a constant rate all that happens has an end, but processes may go on for ever.
    is_bounded = rate is not None and not run.processes
    others = _run_over(run, connector, connection, limit_ns=None if is_bounded else spec.limit_ns)
    activities = connector.driver.browser.activities
    hosts = host_names(spec.page.resources, spec.page.root)
    whole = _whole(
        spec, connection, hosts, asked_for=connector.driver.asked_for, activities=activities
    )
    return _load(spec, [whole], whole.connection.trace, others)


def _from_hosts(run: LoadRun, dns_ns: int) -> Load:
    """Return the load over a connection for each group of the page's hosts."""
    from h3sim.engine.host_connections import HostConnections  # on use: most loads have one

    spec, connector = run.spec, LinkBuilder(run)
    connections = HostConnections(
        spec.page,
        connector.environment,
        lambda group: connector.connection(group.rtt_ns),
        dns_ns=dns_ns,
    )
    others = _run_over(run, connector, connections, limit_ns=spec.limit_ns)
    activities = connector.driver.browser.activities
    is_one = len(connections.opened) == 1
    wholes = [
        _whole(
            spec,
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
    return _load(spec, wholes, trace, others)


def _run_over(
    run: LoadRun,
    connector: LinkBuilder | ConstantRateBuilder,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> tuple[CarriedFlow, ...]:
    """Load the page; return what other flows carried meanwhile."""
    for process in run.processes:
        # Processes first, then flows: of one instant they begin in this order.
        connector.environment.run_beside(process)
    flows = connector.cross_traffic()
    # A load leaves no cycle behind before it is over, and what it keeps is a tuple or two a packet.
    # For every 700 of these Python would go through them, and at times through all that there is: a
    # sixth of the time of a page of a thousand resources. What processes leave is not known here.
    with nullcontext() if run.processes else gc_paused(), _named(run.spec.scheme):
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
    spec: LoadSpec,
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
    trace = connection.trace(spec.protocol.delivery, activities)
    header_runs = None
    if spec.header_compression is not None:
        trace, header_runs = _with_sections(connection, trace)
    trace = in_order_requested(trace, asked_for)
    made = Connection(
        number=number,
        hosts=hosts,
        rtt_ns=spec.network.rtt_ns if rtt_ns is None else rtt_ns,
        opened_at_ns=connection.opened_at_ns,
        ready_at_ns=connection.ready_at_ns,
        trace=trace,
        n_frames=connection.n_frames,
        frame_bytes=connection.frame_bytes,
        lookups=lookups,
    )
    return _Whole(made, header_runs)


def _load(
    spec: LoadSpec,
    wholes: list[_Whole],
    trace: Trace,
    others: tuple[CarriedFlow, ...],
) -> Load:
    runs = [whole.header_runs for whole in wholes if whole.header_runs is not None]
    return Load(
        spec=spec,
        trace=trace,
        header_runs=_headers_over(runs) if runs else None,
        connections=tuple(whole.connection for whole in wholes),
        cross_traffic=others,
    )


def _headers_over(runs: list[tuple[HeaderRun, HeaderRun]]) -> tuple[HeaderRun, HeaderRun]:
    """Return what came of requests, and of responses, on all connections."""
    from h3sim.headers.base import HeaderRun

    requests, responses = zip(*runs, strict=True)
    return HeaderRun.over(requests), HeaderRun.over(responses)


def _with_sections(
    connection: HttpConnection, trace: Trace
) -> tuple[Trace, tuple[HeaderRun, HeaderRun] | None]:
    """Return the trace with the lengths of responses as sent, and what came of their sections."""
    from h3sim.engine.header_compression import HeaderTransport

    transport = connection.transport
    if not isinstance(transport, HeaderTransport):
        return trace, None
    return transport.with_sections(trace), transport.header_runs()
