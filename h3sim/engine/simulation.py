"""One load: connections are built, and time passes until the browser has everything.

Read next, on the path of docs/reading.md: `h3sim/engine/browser_driver.py`.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.engine.browser_driver import Requester
from h3sim.engine.builders import ConstantRateBuilder, LinkBuilder, LoadRun
from h3sim.engine.connections import Connection
from h3sim.engine.environment import EventPriority
from h3sim.engine.load_spec import LoadResult
from h3sim.page.hosts import host_names
from h3sim.schemes import CustomScheduler
from h3sim.signals import Eps
from h3sim.trace import in_order_requested, merged_trace
from h3sim.transport import Protocol as HttpProtocol
from h3sim.values.errors import ConnectionTimeoutError, StalledError
from h3sim.values.garbage import gc_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.engine.browser_driver import BrowserDriver
    from h3sim.engine.connections import CarriedFlow
    from h3sim.engine.environment import LoadEnvironment, Process
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.engine.transport import ProgressCallback
    from h3sim.headers.base import HeaderRun
    from h3sim.schemes import Scheme
    from h3sim.signals import Signal
    from h3sim.trace import Activity, Trace


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
    result = _build_connection_result(
        spec, connection, hosts, asked_for=connector.driver.asked_for, activities=activities
    )
    return _build_load(spec, [result], result.connection.trace, flows_carried)


class SteppedLoad:
    """A load over one connection that stops before the server sends something new.

    There, `set_urgencies` may give the streams that wait other urgencies than the client's; the
    scheduler of the scheme must be one of RFC 9218's priorities ("eps").

    >>> from h3sim import LoadConfig, load_page, load_scheme
    >>> from h3sim.load import resolve
    >>> spec = resolve(load_page("davies-meenan"), load_scheme("chrome-eps"), LoadConfig())
    >>> load = SteppedLoad(spec)
    >>> while load.advance():
    ...     load.set_urgencies((stream, min(stream // 4, 7)) for stream, _ in load.waiting())
    >>> load.result().trace.packet_rows[-1][0]
    4580000000
    """

    def __init__(self, spec: LoadSpec) -> None:
        run = LoadRun(spec, (), record_packets=False, progress=None)
        rate = spec.network.constant_rate
        self._spec = spec
        self._connector = LinkBuilder(run) if rate is None else ConstantRateBuilder(run, rate)
        self._connection = self._connector.connection()
        self._streams = self._connection.transport.response_streams
        environment, driver = self._connector.environment, self._connector.driver
        environment.returns_to_loop = True
        limit_ns = spec.limit_ns if rate is None else None
        begin_load(environment, driver, self._connection, limit_ns=limit_ns)

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._connector.environment.now_ns

    @property
    def missing(self) -> list[str]:
        """The ids of the resources that the browser has not received."""
        return self._connector.driver.browser.waiting

    def advance(self) -> bool:
        """Run until streams become ready, or get other signals.

        Return False at the end of the load.

        Raises:
            StalledError: if the load does not end.
        """
        environment = self._connector.environment
        self._streams.expect_change()
        with gc_paused():
            goes_on = environment.run_to_send(self._streams.is_changed)
        if not goes_on and self.missing:
            raise StalledError(self.missing, n_events=environment.overrun_events or None)
        return goes_on

    def waiting(self) -> list[tuple[int, int]]:
        """Return the streams that can be sent, in the order of requests, and their bytes left."""
        return self._streams.waiting()

    def resource_of(self, stream_id: int) -> int:
        """Return the index in the page of the resource that a stream requests."""
        return self._connection.resource_of(stream_id)

    def signals(self) -> Sequence[tuple[int, int, Signal]]:
        """Return the signals of the client that have arrived so far: time, stream and signal."""
        return self._connection.signals_received

    def set_urgencies(self, urgencies: Iterable[tuple[int, int]]) -> None:
        """Give streams urgencies of the server's; one after the other is sent of equal ones."""
        for stream_id, urgency in urgencies:
            self._streams.update(stream_id, Eps(urgency=urgency))

    def result(self) -> LoadResult:
        """Return what happened in the finished load."""
        browser, asked_for = self._connector.driver.browser, self._connector.driver.asked_for
        hosts = host_names(self._spec.page.resources, self._spec.page.root)
        result = _build_connection_result(
            self._spec,
            self._connection,
            hosts,
            asked_for=asked_for,
            activities=browser.activities,
        )
        return _build_load(self._spec, [result], result.connection.trace, ())


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
        _build_connection_result(
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
    return _build_load(spec, results, trace, flows_carried)


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


class _ConnectionResult(NamedTuple):
    """A finished connection, and the statistics of its headers."""

    connection: Connection
    header_runs: tuple[HeaderRun, HeaderRun] | None


def _build_connection_result(
    spec: LoadSpec,
    connection: HttpConnection,
    hosts: tuple[str, ...],
    *,
    asked_for: Sequence[int],
    activities: tuple[Activity, ...],
    number: int = 0,
    rtt_ns: int | None = None,
    lookups: tuple[tuple[str, int, int], ...] = (),
) -> _ConnectionResult:
    """Return a finished connection, with the browser's activities if it is the only one."""
    trace = connection.trace(spec.protocol.delivery, activities)
    header_runs = None
    if spec.header_compression is not None:
        from h3sim.engine.header_compression import with_header_sections

        trace, header_runs = with_header_sections(connection.transport, trace)
    trace = in_order_requested(trace, asked_for)
    connection_record = Connection(
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
    return _ConnectionResult(connection_record, header_runs)


def _build_load(
    spec: LoadSpec,
    results: list[_ConnectionResult],
    trace: Trace,
    flows_carried: tuple[CarriedFlow, ...],
) -> LoadResult:
    """Return the result of all connections; *trace* is that of all of them."""
    header_runs = None
    if runs := [result.header_runs for result in results if result.header_runs is not None]:
        from h3sim.engine.header_compression import sum_header_runs

        header_runs = sum_header_runs(runs)
    return LoadResult(
        spec=spec,
        trace=trace,
        header_runs=header_runs,
        connections=tuple(result.connection for result in results),
        cross_traffic=flows_carried,
    )
