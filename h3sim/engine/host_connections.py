"""The connections of a load from several hosts, or over HTTP/1.1: opened on use, and shared."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.engine.environment import EventPriority
from h3sim.page.hosts import HostGroup, host_groups, host_names, known_hosts
from h3sim.schemes import make_policy
from h3sim.signals import BucketPriority, Eps, H2Priority, Rank, StrictPriority
from h3sim.transport import Protocol as HttpProtocol
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.engine.builders import LinkBuilder
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.engine.load_spec import LoadSpec
    from h3sim.page import Page, Resource, ResourceState
    from h3sim.schemes import Scheme
    from h3sim.signals import Signal


_REQUEST = int(EventPriority.REQUEST)
"""A plain int: looking up a member of an enum costs as much as half a pick."""


class OpenedConnection(NamedTuple):
    """A connection, and the hosts that share it."""

    group: HostGroup
    connection: HttpConnection


class GroupConnector(Protocol):
    """The connection of a group of hosts, or the pool of its connections."""

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Connect; *on_ready* is called when requests may leave."""

    def request(self, resource: int, requested_at_ns: int) -> None:
        """Request a resource as soon as possible."""


class WaitingRequest(NamedTuple):
    """A request that waits for a connection: the index of its resource, and its time."""

    resource: int
    requested_at_ns: int


class SharedConnection:
    """A connection that several hosts share; requests wait until it is ready."""

    def __init__(self, connection: HttpConnection, environment: LoadEnvironment) -> None:
        self._connection = connection
        self._environment = environment
        self._is_open = False
        self._waiting: list[WaitingRequest] = []

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Connect; *on_ready* is called when requests may leave."""

        def on_connected(now_ns: int) -> None:
            # After the placeholders, which are declared at this instant.
            self._environment.at(now_ns, _REQUEST, self._on_open, None)
            if on_ready is not None:
                on_ready(now_ns)

        self._connection.begin(on_connected)

    def request(self, resource: int, requested_at_ns: int) -> None:
        """Request a resource as soon as possible."""
        if self._is_open:
            self._connection.request(resource, requested_at_ns)
        else:
            self._waiting.append(WaitingRequest(resource, requested_at_ns))

    def _on_open(self, _value: None, _now_ns: int) -> None:
        """Send the requests that have waited for the connection."""
        self._is_open = True
        for waiting in self._waiting:
            self._connection.request(waiting.resource, waiting.requested_at_ns)


class HostConnections:
    """One connection per group of hosts that share a certificate and a server, by *page*.

    The name of each host is looked up once, which takes *dns_ns* unless the page has a value. A
    host that may share a connection waits while the first one is set up: a browser knows the
    certificate only afterwards. *connect* creates the connection of a group; its second argument is
    called when the connection becomes idle.
    """

    def __init__(
        self,
        page: Page,
        environment: LoadEnvironment,
        connect: Callable[[HostGroup, Callable[[], None] | None], HttpConnection],
        *,
        dns_ns: int,
    ) -> None:
        self._environment = environment
        self._connect = connect
        self._root = page.root
        names = host_names(page.resources, page.root)
        own_host = names[0]
        self._host_names = [resource.host or own_host for resource in page.resources]
        """The host of each resource of the page."""
        self._groups_by_host: dict[str, HostGroup] = {}
        self._dns_ns_by_host: dict[str, int] = {}
        for group in self._host_groups(page, names):
            for host in group.hosts:
                self._groups_by_host[host.name] = group
                self._dns_ns_by_host[host.name] = dns_ns if host.dns_ns is None else host.dns_ns
        self.lookups: dict[str, tuple[int, int]] = {}
        """Times of each DNS lookup, its start and its end, by host."""
        self.opened: list[OpenedConnection] = []
        """The connections in the order of opening."""
        self._connectors: dict[HostGroup, GroupConnector] = {}
        """The connection, or pool, of each group that was used."""

    def begin(self, on_ready: Callable[[int], None]) -> None:
        """Look up and connect to the page's own host; *on_ready* is called afterwards."""
        known_at_ns = self._resolve_name(self._host_names[self._root], 0)
        if known_at_ns:
            self._environment.at(known_at_ns, _REQUEST, self._on_root_known, on_ready)
        else:
            self._on_root_known(on_ready, 0)

    def request(self, resource: int, now_ns: int) -> None:
        """Request a resource once the name of its host is resolved."""
        known_at_ns = self._resolve_name(self._host_names[resource], now_ns)
        if known_at_ns > now_ns:
            request = WaitingRequest(resource, now_ns)
            self._environment.at(known_at_ns, _REQUEST, self._on_known, request)
        else:
            self._connector_for(resource).request(resource, now_ns)

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Record changed state of a resource, or of all, on every connection."""
        for opened in self.opened:
            opened.connection.on_changed(resource, change, now_ns)

    def _resolve_name(self, name: str, now_ns: int) -> int:
        """Return when the lookup of the name ends or ended."""
        # The first request starts the lookup; later ones wait for the same one, or find it over.
        lookup = (now_ns, now_ns + self._dns_ns_by_host[name])
        _, known_at_ns = self.lookups.setdefault(name, lookup)
        return known_at_ns

    def _on_root_known(self, on_ready: Callable[[int], None], _now_ns: int) -> None:
        """Connect to the page's own host, whose name is resolved."""
        self._add_connector(self._groups_by_host[self._host_names[self._root]]).begin(on_ready)

    def _on_known(self, request: WaitingRequest, _now_ns: int) -> None:
        """Request a resource, the name of whose host is resolved."""
        connector = self._connector_for(request.resource)
        connector.request(request.resource, request.requested_at_ns)

    def _connector_for(self, resource: int) -> GroupConnector:
        """Return the connection to a resource's host, opened on first use."""
        group = self._groups_by_host[self._host_names[resource]]
        if group not in self._connectors:
            self._add_connector(group).begin()
        return self._connectors[group]

    def _add_connector(self, group: HostGroup) -> GroupConnector:
        """Return the new connector of a group, which the caller has to begin."""
        connector = self._connectors[group] = self._make_connector(group)
        return connector

    def _new_connection(
        self, group: HostGroup, on_idle: Callable[[], None] | None = None
    ) -> HttpConnection:
        """Return a new connection to a group, which is also added to `opened`."""
        connection = self._connect(group, on_idle)
        self.opened.append(OpenedConnection(group, connection))
        return connection

    # By version of HTTP

    def _host_groups(self, page: Page, names: Sequence[str]) -> list[HostGroup]:
        """Return the groups of hosts that share a connection."""
        return host_groups(names, page.hosts)

    def _make_connector(self, group: HostGroup) -> GroupConnector:
        """Return a new connector of a group."""
        return SharedConnection(self._new_connection(group), self._environment)


def make_connections(spec: LoadSpec, builder: LinkBuilder) -> HostConnections:
    """Return the connections of a load from several hosts, or over HTTP/1.1."""
    dns_ns = 0 if spec.hosts is None else spec.hosts.dns_ns

    def connect(group: HostGroup, on_idle: Callable[[], None] | None) -> HttpConnection:
        return builder.connection(rtt_to(spec, group), on_idle)

    if spec.protocol is not HttpProtocol.HTTP1:
        return HostConnections(spec.page, builder.environment, connect, dns_ns=dns_ns)
    return Http1Connections(
        spec.page,
        spec.scheme,
        builder.environment,
        connect,
        dns_ns=dns_ns,
        max_connections=spec.max_connections_per_host,
        is_single=spec.hosts is None,
    )


def rtt_to(spec: LoadSpec, group: HostGroup) -> int | None:
    """Return the round-trip time to hosts if it is not the network's."""
    return None if spec.hosts is None else group.rtt_ns


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
        """The latest signal of each stream and placeholder."""
        self._stream_ids: dict[int, int] = {}
        """The stream of each requested resource."""

    def add(self, resource: int) -> None:
        """Record the request of a resource."""
        # IDs in the order of requests: policies place streams relative to one another, although
        # HTTP/1.1 has none.
        stream_id = STREAM_ID_STEP * len(self._stream_ids)
        self._stream_ids[resource] = stream_id
        self._signals.update(self._policy.on_requested(stream_id, self._resources[resource]))

    def change(self, resource: Resource | None, change: ResourceState) -> None:
        """Record changed state of a resource, or of all."""
        self._signals.update(self._policy.on_changed(resource, change))

    def key(self, resource: int) -> tuple[int, ...]:
        """Return the sort key of a recorded request; the lowest goes first."""
        return self.key_of(self._signals[self._stream_ids[resource]])

    def key_of(self, signal: Signal) -> tuple[int, ...]:
        """Return the sort key of requests with that signal, the most urgent first."""
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
                above = () if group is None or group >= 0 else self.key_of(self._signals[group])
                return (*above, strict, -signal.weight)
            case Rank():
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
        """The connections that may still be opened."""
        self._n_connecting = 0
        self._idle: list[HttpConnection] = []
        """The idle connections, that used last at the end."""
        self._waiting: list[WaitingRequest] = []

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

    def request(self, resource: int, requested_at_ns: int) -> None:
        """Request a resource as soon as a connection is idle."""
        self._priorities.add(resource)
        if self._idle:
            self._idle.pop().request(resource, requested_at_ns)
            return
        self._waiting.append(WaitingRequest(resource, requested_at_ns))
        # Each connection that is being set up will take one of those that wait, so as many suffice.
        if self._n_available and self._n_connecting < len(self._waiting):
            self.begin()

    def _on_open(self, connection: HttpConnection, _now_ns: int) -> None:
        """Use a connection that is ready."""
        self._n_connecting -= 1
        self._release(connection)

    def _release(self, connection: HttpConnection) -> None:
        """Send the most important waiting request on an idle connection."""
        if not self._waiting:
            self._idle.append(connection)
            return
        # Keys are computed anew, since the priorities of waiting requests may have changed.
        # `min` returns the first of equal ones: the request that was made first.
        first = min(self._waiting, key=lambda waiting: self._priorities.key(waiting.resource))
        self._waiting.remove(first)
        connection.request(first.resource, first.requested_at_ns)


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

    def _host_groups(self, page: Page, names: Sequence[str]) -> list[HostGroup]:
        """Return a group per host, or one of all hosts."""
        # No connection is shared: there is no reuse across hosts as in RFC 9113 § 9.1.1.
        hosts = known_hosts(names, page.hosts)
        return [HostGroup(tuple(hosts))] if self._is_single else [HostGroup((h,)) for h in hosts]

    def _make_connector(self, group: HostGroup) -> Http1Pool:
        """Return the pool of a host group."""
        return Http1Pool(
            partial(self._new_connection, group),
            self._environment,
            self._priorities,
            max_connections=self._max_connections,
        )
