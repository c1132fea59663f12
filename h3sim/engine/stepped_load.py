"""A load in steps: it stops wherever the server may decide anew what to send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.engine.builders import ConstantRateBuilder, LinkBuilder, LoadRun
from h3sim.engine.load_results import build_connection_result, build_load
from h3sim.engine.simulation import begin_load
from h3sim.page.hosts import host_names
from h3sim.signals import Eps
from h3sim.values.errors import StalledError
from h3sim.values.garbage import gc_paused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.engine.load_spec import LoadResult, LoadSpec
    from h3sim.signals import Signal


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
        result = build_connection_result(
            self._spec,
            self._connection,
            hosts,
            asked_for=asked_for,
            activities=browser.activities,
        )
        return build_load(self._spec, [result], result.connection.trace, ())
