"""The connections of a load from several hosts: looked up, opened on first use, and shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.engine.environment import EventPriority
from h3sim.page.hosts import host_groups, host_names
from h3sim.transport import Protocol as HttpProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.engine.builders import LinkBuilder
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.engine.http_connection import HttpConnection
    from h3sim.page import Page, Resource, ResourceState
    from h3sim.page.hosts import HostGroup
    from h3sim.results import LoadSpec


_REQUEST = int(EventPriority.REQUEST)


class OpenedConnection(NamedTuple):
    """A connection, and the hosts that share it."""

    group: HostGroup
    connection: HttpConnection


class GroupConnector(Protocol):
    """The connection of a group of hosts, or the pool of its connections."""

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Connect; *on_ready* is called when requests may leave."""

    def request(self, resource: int, asked_at_ns: int) -> None:
        """Request a resource as soon as possible."""


class SharedConnection:
    """A connection that several hosts share; requests wait until it is ready."""

    def __init__(self, connection: HttpConnection, environment: LoadEnvironment) -> None:
        self._connection = connection
        self._environment = environment
        self._is_open = False
        self._waiting: list[tuple[int, int]] = []
        """The waiting resources, and the times of their requests."""

    def begin(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Connect; *on_ready* is called when requests may leave."""

        def on_connected(now_ns: int) -> None:
            # After the placeholders, which are declared at this instant.
            self._environment.at(now_ns, _REQUEST, self._on_open, None)
            if on_ready is not None:
                on_ready(now_ns)

        self._connection.begin(on_connected)

    def request(self, resource: int, asked_at_ns: int) -> None:
        """Request a resource as soon as possible."""
        if self._is_open:
            self._connection.request(resource, asked_at_ns)
        else:
            self._waiting.append((resource, asked_at_ns))

    def _on_open(self, value: None, now_ns: int) -> None:
        del value, now_ns
        self._is_open = True
        for resource, asked_at_ns in self._waiting:
            self._connection.request(resource, asked_at_ns)


class HostConnections:
    """One connection per group of hosts that share a certificate and a server, by *page*.

    The name of each host is looked up once, which takes *dns_ns* unless the page has a value. A
    host that may share a connection waits for the one that is being set up: a browser knows the
    certificate only after that. *connect* creates the connection of a group; its second argument is
    called back when the connection is idle.
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
        own = names[0]
        self._names = [resource.host or own for resource in page.resources]
        self._group_of: dict[str, HostGroup] = {}
        self._dns_ns: dict[str, int] = {}
        for group in self._groups(page, names):
            for host in group.hosts:
                self._group_of[host.name] = group
                self._dns_ns[host.name] = dns_ns if host.dns_ns is None else host.dns_ns
        self.lookups: dict[str, tuple[int, int]] = {}
        """Times of each DNS lookup, its start and its end, by host."""
        self.opened: list[OpenedConnection] = []
        """The connections in the order of opening."""
        self._by_group: dict[HostGroup, GroupConnector] = {}

    def begin(self, on_ready: Callable[[int], None]) -> None:
        """Look up and connect to the page's own host; *on_ready* is called afterwards."""
        known_at_ns = self._look_up(self._names[self._root], 0)
        if known_at_ns:
            self._environment.at(known_at_ns, _REQUEST, self._on_root_known, on_ready)
        else:
            self._on_root_known(on_ready, 0)

    def request(self, resource: int, now_ns: int) -> None:
        """Request a resource once the name of its host is resolved."""
        known_at_ns = self._look_up(self._names[resource], now_ns)
        if known_at_ns > now_ns:
            self._environment.at(known_at_ns, _REQUEST, self._on_known, (resource, now_ns))
        else:
            self._connection_of(resource).request(resource, now_ns)

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Record changed state of a resource, or of all, on every connection."""
        for opened in self.opened:
            opened.connection.on_changed(resource, change, now_ns)

    def _look_up(self, name: str, now_ns: int) -> int:
        """Return when the lookup of the name ends or ended."""
        return self.lookups.setdefault(name, (now_ns, now_ns + self._dns_ns[name]))[1]

    def _on_root_known(self, on_ready: Callable[[int], None], now_ns: int) -> None:
        del now_ns
        self._open(self._group_of[self._names[self._root]]).begin(on_ready)

    def _on_known(self, asked: tuple[int, int], now_ns: int) -> None:
        del now_ns
        self._connection_of(asked[0]).request(*asked)

    def _connection_of(self, resource: int) -> GroupConnector:
        group = self._group_of[self._names[resource]]
        if group not in self._by_group:
            self._open(group).begin()
        return self._by_group[group]

    def _open(self, group: HostGroup) -> GroupConnector:
        connector = self._by_group[group] = self._connector(group)
        return connector

    def _new_connection(
        self, group: HostGroup, on_idle: Callable[[], None] | None = None
    ) -> HttpConnection:
        connection = self._connect(group, on_idle)
        self.opened.append(OpenedConnection(group, connection))
        return connection

    # By version of HTTP

    def _groups(self, page: Page, names: Sequence[str]) -> list[HostGroup]:
        """Return the groups of hosts that share a connection."""
        return host_groups(names, page.hosts)

    def _connector(self, group: HostGroup) -> GroupConnector:
        """Return a new connector of a group."""
        return SharedConnection(self._new_connection(group), self._environment)


def make_connections(spec: LoadSpec, builder: LinkBuilder) -> HostConnections:
    """Return the connections of a load from several hosts, or over HTTP/1.1."""
    dns_ns = 0 if spec.hosts is None else spec.hosts.dns_ns

    def connect(group: HostGroup, on_idle: Callable[[], None] | None) -> HttpConnection:
        return builder.connection(rtt_to(spec, group), on_idle)

    if spec.protocol is not HttpProtocol.HTTP1:
        return HostConnections(spec.page, builder.environment, connect, dns_ns=dns_ns)
    from h3sim.engine.http1_connections import Http1Connections  # on use: its base is here

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
