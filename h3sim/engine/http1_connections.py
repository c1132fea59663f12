"""HTTP/1.1: a pool of connections per host, each with one request at a time.

No priorities reach the server. The client orders the requests that wait for a connection instead,
by the priorities of the scheme.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.constants import STREAM_ID_STEP
from h3sim.engine.environment import EventPriority
from h3sim.engine.host_connections import HostConnections
from h3sim.engine.signalling import PrioritySignalling
from h3sim.page.hosts import HostGroup, known_hosts
from h3sim.schemes import make_policy
from h3sim.signals import BucketPriority, Eps, H2Priority, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.signalling import PriorityTarget
    from h3sim.page import Page, Resource, ResourceState
    from h3sim.schemes import Scheme
    from h3sim.signals import Signal


_REQUEST = int(EventPriority.REQUEST)


class UnsignalledRequests(PrioritySignalling):
    """The absence of priority signals in HTTP/1.1; *on_idle* is called after each response."""

    def __init__(self, streams: PriorityTarget, on_idle: Callable[[], None]) -> None:
        self._streams = streams
        self._on_idle = on_idle
        self.record: list[tuple[int, int, Signal]] = []

    def on_connected(self) -> None:
        """Do nothing."""

    def on_requested(self, stream_id: int, resource: Resource) -> None:
        """Do nothing: requests have no priority."""

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Do nothing: a request cannot be reprioritized once it is sent."""

    def on_finished(self, stream_id: int) -> None:
        """Report that the connection is idle."""
        del stream_id
        self._on_idle()

    def on_request_arrived(self, stream_id: int, resource: Resource, now_ns: int) -> None:
        """Open the stream of the response."""
        del resource, now_ns
        self._streams.open(stream_id, H2Priority())

    def on_message_arrived(self, number: int, now_ns: int) -> None:
        """Do nothing: no frames are sent."""

    def on_closed(self, stream_id: int, now_ns: int) -> None:
        """Do nothing."""


class RequestPriorities:
    """The priorities that the client of *scheme* gives to requests, as sort keys.

    >>> from h3sim import load_page, load_scheme
    >>> page = load_page("davies-meenan")
    >>> priorities = RequestPriorities(load_scheme("chrome-eps"), page)
    >>> priorities.add(0)
    >>> priorities.key(0)
    (0,)
    """

    def __init__(self, scheme: Scheme, page: Page) -> None:
        self._policy = make_policy(scheme, page)
        self._resources = page.resources
        self._signals: dict[int, Signal] = dict(self._policy.on_connected())
        self._stream_of: dict[int, int] = {}

    def add(self, resource: int) -> None:
        """Record the request of a resource."""
        stream_id = STREAM_ID_STEP * len(self._stream_of)
        self._stream_of[resource] = stream_id
        self._signals.update(self._policy.on_requested(stream_id, self._resources[resource]))

    def change(self, resource: Resource | None, change: ResourceState) -> None:
        """Record changed state of a resource, or of all."""
        self._signals.update(self._policy.on_changed(resource, change))

    def key(self, resource: int) -> tuple[int, ...]:
        """Return the sort key of a recorded request; the lowest goes first."""
        return self._key(self._signals[self._stream_of[resource]])

    def _key(self, signal: Signal) -> tuple[int, ...]:
        match signal:
            case Eps():
                return (signal.urgency,)
            case BucketPriority():
                return (-signal.bucket, -signal.level)
            case H2Priority() | StrictPriority():
                strict = -signal.strict if isinstance(signal, StrictPriority) else 0
                group = signal.depends_on
                # A weight compares siblings only, so the groups come first (Firefox's tree). The
                # weight of a stream below another stream, as in Chrome's chain, is that of its own.
                above = () if group is None or group >= 0 else self._key(self._signals[group])
                return (*above, strict, -signal.weight)
        return (signal.value,)


class Http1Pool:
    """The connections to one host, at most *max_connections* (RFC 9112 § 9.4).

    A request takes the idle connection that was used last. Without one it waits, and a connection
    is opened for it if there may be more; it then leaves on whichever is available first, as in
    Chromium's socket pools. *connect* creates a connection that calls back when it is idle.
    """

    def __init__(
        self,
        connect: Callable[[Callable[[], None]], HttpConnection],
        environment: LoadEnvironment,
        priorities: RequestPriorities,
        *,
        max_connections: int,
    ) -> None:
        self._connect = connect
        self._environment = environment
        self._priorities = priorities
        self._n_available = max_connections
        self._n_connecting = 0
        self._idle: list[HttpConnection] = []
        self._waiting: list[tuple[int, int]] = []
        """The waiting resources, and the times of their requests."""

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Open a connection; *on_ready* is called when a request may leave."""
        self._n_available -= 1
        self._n_connecting += 1
        connection = self._connect(lambda: self._release(connection))

        def on_connected(now_ns: int) -> None:
            self._environment.at(now_ns, _REQUEST, self._on_open, connection)
            if on_ready is not None:
                on_ready(now_ns)

        connection.begin(on_connected)

    def request(self, resource: int, asked_at_ns: int) -> None:
        """Request a resource as soon as a connection is idle."""
        self._priorities.add(resource)
        if self._idle:
            self._idle.pop().request(resource, asked_at_ns)
            return
        self._waiting.append((resource, asked_at_ns))
        if self._n_available and self._n_connecting < len(self._waiting):
            self.begin()

    def _on_open(self, connection: HttpConnection, now_ns: int) -> None:
        del now_ns
        self._n_connecting -= 1
        self._release(connection)

    def _release(self, connection: HttpConnection) -> None:
        """Send the most important waiting request on an idle connection."""
        if not self._waiting:
            self._idle.append(connection)
            return
        # Keys are computed anew, since the priorities of waiting requests may have changed.
        # `min` returns the first of equal ones: the request that was made first.
        first = min(self._waiting, key=lambda waiting: self._priorities.key(waiting[0]))
        self._waiting.remove(first)
        connection.request(*first)


class Http1Connections(HostConnections):
    """A pool of connections per host; with *is_single* one for all hosts of the page."""

    def __init__(
        self,
        page: Page,
        scheme: Scheme,
        environment: LoadEnvironment,
        connect: Callable[[HostGroup, Callable[[], None] | None], HttpConnection],
        *,
        dns_ns: int,
        max_connections: int,
        is_single: bool,
    ) -> None:
        self._max_connections = max_connections
        self._is_single = is_single
        self._priorities = RequestPriorities(scheme, page)
        super().__init__(page, environment, connect, dns_ns=dns_ns)

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Record changed state of a resource, or of all, for requests that wait."""
        del now_ns
        self._priorities.change(resource, change)

    def _groups(self, page: Page, names: Sequence[str]) -> list[HostGroup]:
        # No connection is shared: there is no reuse across hosts as in RFC 9113 § 9.1.1.
        hosts = known_hosts(names, page.hosts)
        return [HostGroup(tuple(hosts))] if self._is_single else [HostGroup((h,)) for h in hosts]

    def _connector(self, group: HostGroup) -> Http1Pool:
        return Http1Pool(
            partial(self._new_connection, group),
            self._environment,
            self._priorities,
            max_connections=self._max_connections,
        )
