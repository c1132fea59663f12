"""One load: connections are built, and time passes until the browser has everything.

Read next, on the path of docs/reading.md: `h3sim/engine/browser_driver.py`.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

from h3sim.engine.browser_driver import Requester
from h3sim.engine.builders import ConstantRateBuilder, LinkBuilder, LoadRun
from h3sim.engine.environment import EventPriority
from h3sim.engine.load_results import build_connection_result, build_load
from h3sim.page.hosts import host_names
from h3sim.schemes import CustomScheduler
from h3sim.trace import merged_trace
from h3sim.transport import Protocol as HttpProtocol
from h3sim.values.errors import ConnectionTimeoutError, StalledError
from h3sim.values.garbage import gc_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.engine.browser_driver import BrowserDriver
    from h3sim.engine.connections import CarriedFlow
    from h3sim.engine.environment import LoadEnvironment, Process
    from h3sim.engine.load_spec import LoadResult, LoadSpec
    from h3sim.engine.transport import ProgressCallback
    from h3sim.schemes import Scheme


class Connections(Requester, Protocol):
    """The connections of a load: one `HttpConnection`, or several."""

    def begin(self, on_ready: Callable[[int], None]) -> None:
        """Connect; *on_ready* is called when the first request may leave."""


def begin_load(
    environment: LoadEnvironment,
    driver: BrowserDriver,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> None:
    """Schedule the first events of a load, which is stalled if it takes longer than *limit_ns*."""

    def on_limit(_value: None, now_ns: int) -> None:
        raise StalledError(driver.browser.waiting, limit_ns=now_ns)

    if limit_ns is not None:
        # The last rank of a load: one that ends at this very instant is in time.
        environment.at(limit_ns, EventPriority.SEND, on_limit, None)
    driver.requester = connections
    connections.begin(driver.on_connected)


def run_load(
    environment: LoadEnvironment,
    driver: BrowserDriver,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> None:
    """Load the page of *driver* over *connections*.

    Raises:
        ConnectionTimeoutError: if an end of a connection gives it up.
        StalledError: if the load does not end, or not within *limit_ns*.
    """
    browser = driver.browser
    begin_load(environment, driver, connections, limit_ns=limit_ns)
    try:
        if environment.run_load():
            return
    except ConnectionTimeoutError as error:
        # The endpoint does not know what the browser waits for.
        raise ConnectionTimeoutError(
            browser.waiting, error.limit_ns, because=error.because
        ) from None
    if environment.has_overrun:
        n_events = environment.overrun_events
        reason = ""
        if n_events != environment.max_events:
            reason = "the processes beside it had them all; does one pass no time?"
        raise StalledError(browser.waiting, environment.now_ns, n_events, reason)
    raise StalledError(browser.waiting)


def simulate(
    spec: LoadSpec,
    *,
    record_packets: bool = False,
    progress: ProgressCallback | None = None,
    processes: Iterable[Process] = (),
) -> LoadResult:
    """Load the page of *spec*, and return what happened.

    With *record_packets* the trace holds every packet in both directions. *progress* is called with
    the number of packets sent and the total. *processes* run during the load.

    Raises:
        PageError: if the page takes more than `MAX_PACKETS` packets.
        NetworkError: if a queue of the network cannot hold a packet of the profile.
        ConnectionTimeoutError: if an end of a connection gives it up, as its peer stays silent.
        StalledError: if the load does not end, or not within its limit, or in too many events.
    """
    run = LoadRun(spec, tuple(processes), record_packets, progress)
    if spec.link_protocol is HttpProtocol.HTTP1 or (spec.hosts is not None and spec.link_protocol):
        return _load_over_several_connections(run)
    return _load_over_one_connection(run)


def _load_over_one_connection(run: LoadRun) -> LoadResult:
    """Return the load over a single connection."""
    spec, rate = run.spec, run.spec.network.constant_rate
    connector = LinkBuilder(run) if rate is None else ConstantRateBuilder(run, rate)
    connection = connector.connection()
    # At a constant rate every load ends, but processes may run for ever.
    is_bounded = rate is not None and not run.processes
    flows_carried = _run_load_over(
        run, connector, connection, limit_ns=None if is_bounded else spec.limit_ns
    )
    activities = connector.driver.browser.activities
    hosts = host_names(spec.page.resources, spec.page.root)
    result = build_connection_result(
        spec, connection, hosts, asked_for=connector.driver.asked_for, activities=activities
    )
    return build_load(spec, [result], result.connection.trace, flows_carried)


def _load_over_several_connections(run: LoadRun) -> LoadResult:
    """Return the load over a connection for each group of hosts, or HTTP/1.1's pools."""
    # On use: most loads have a single connection.
    from h3sim.engine.host_connections import make_connections, rtt_to

    spec, connector = run.spec, LinkBuilder(run)
    connections = make_connections(spec, connector)
    flows_carried = _run_load_over(run, connector, connections, limit_ns=spec.limit_ns)
    activities = connector.driver.browser.activities
    is_one = len(connections.opened) == 1
    results = [
        build_connection_result(
            spec,
            entry.connection,
            tuple(host.name for host in entry.group.hosts),
            asked_for=connector.driver.asked_for,
            number=number,
            rtt_ns=rtt_to(spec, entry.group),
            lookups=tuple(
                (host.name, *connections.lookups[host.name])
                for host in entry.group.hosts
                if host.name in connections.lookups
            ),
            activities=activities if is_one else (),
        )
        for number, entry in enumerate(connections.opened)
    ]
    traces = [result.connection.trace for result in results]
    trace = traces[0] if is_one else merged_trace(traces, connector.driver.asked_for, activities)
    return build_load(spec, results, trace, flows_carried)


def _run_load_over(
    run: LoadRun,
    connector: LinkBuilder | ConstantRateBuilder,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> tuple[CarriedFlow, ...]:
    """Load the page; return the results of other flows."""
    for process in run.processes:
        # Processes first, then flows: at one instant they start in this order.
        connector.environment.run_process(process)
    flows = connector.cross_traffic()
    # A load creates no garbage cycles before it is over, and keeps a tuple or two per packet. Every
    # 700 of these would trigger a collection, and now and then a full one: a sixth of the time of a
    # page of a thousand resources. Garbage of processes is unknown, so they keep the collector.
    with nullcontext() if run.processes else gc_paused(), _naming_custom_scheduler(run.spec.scheme):
        run_load(connector.environment, connector.driver, connections, limit_ns=limit_ns)
    return tuple(flow.carried() for flow in flows)


@contextmanager
def _naming_custom_scheduler(scheme: Scheme) -> Iterator[None]:
    """Name a custom scheduler in the error of a load that does not end."""
    try:
        yield
    except StalledError as error:
        kind = scheme.mechanism
        is_timeout = isinstance(error, ConnectionTimeoutError)
        if is_timeout or error.n_events is not None or not isinstance(kind, CustomScheduler):
            raise
        reason = f"the scheduler {kind.value!r} picks none of the streams that have data"
        if error.limit_ns is not None:  # the network may just be slow, so only ask
            reason = f"does the scheduler {kind.value!r} pick none of the streams that have data?"
        raise StalledError(error.waiting, error.limit_ns, because=reason) from None
