"""The hosts of a page's resources, and which of them share a connection."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Milliseconds, Text
from h3sim.values.errors import PageError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.page.resource import Resource


UNNAMED = "(page)"
"""The name of the page's own host if the page has none."""
_MAX_TIME_MS = 600_000
"""Longer round trips and look-ups are mistakes."""


class ConnectionMode(enum.Enum):
    """Number of connections that a page is loaded over."""

    SINGLE = "single"
    """All hosts share a single connection."""
    PER_HOST = "per-host"
    """Each host has a connection, except hosts that share a server and a certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHosts:
    """The hosts that the page names; a name without a recorded look-up time takes *dns_ns*."""

    dns_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host: hosts with the same *server* and *certificate* share a connection.

    This is connection reuse by RFC 9113 § 9.1.1 and RFC 9114 § 3.3. If either is unknown, the host
    has a connection of its own.

    Raises:
        PageError: listing every value of a wrong type or out of range.

    >>> Host(name="cdn.example", certificate="example", server="192.0.2.1").rtt_ns is None
    True
    """

    name: str = field(metadata=declare(Text(is_needed=True), "the name that resources use"))
    certificate: str = field(
        default="",
        metadata=declare(Text(), "the name of its certificate: equal for equal certificates"),
    )
    server: str = field(
        default="",
        metadata=declare(Text(), "the address that it resolves to, or a name for the machine"),
    )
    rtt_ns: int | None = field(
        default=None,
        metadata=declare(
            Milliseconds(low=0, high=_MAX_TIME_MS), "the round-trip time (default: the network's)"
        ),
    )
    dns_ns: int | None = field(
        default=None,
        metadata=declare(
            Milliseconds(low=0, high=_MAX_TIME_MS),
            "duration of its DNS look-up (default: that of the load; 0)",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, PageError, self.name)

    @property
    def shared(self) -> tuple[str, str] | None:
        """The key by which hosts share a connection; None if the host has its own."""
        return (self.certificate, self.server) if self.certificate and self.server else None


class HostGroup(NamedTuple):
    """Hosts that share a connection, in the order of the page's resources."""

    hosts: tuple[Host, ...]

    @property
    def rtt_ns(self) -> int | None:
        """The round-trip time to their server; None for that of the network."""
        return self.hosts[0].rtt_ns


_host_of = attrgetter("host")


def host_names(resources: Sequence[Resource], root: int) -> tuple[str, ...]:
    """Return the hosts of *resources*; that of the *root*, the page's own, comes first."""
    root_host = resources[root].host or UNNAMED
    names = dict.fromkeys(map(_host_of, resources))
    return tuple(dict.fromkeys((root_host, *(name or root_host for name in names))))


def host_groups(names: Sequence[str], known: Sequence[Host]) -> list[HostGroup]:
    """Group the hosts called *names* by shared connection, in the order of the names.

    >>> shared = [Host(name=name, certificate="c", server="192.0.2.1") for name in ("a", "b")]
    >>> [[host.name for host in group.hosts] for group in host_groups(["a", "x", "b"], shared)]
    [['a', 'b'], ['x']]
    """
    groups: dict[tuple[str, ...], list[Host]] = {}
    for host in known_hosts(names, known):
        # A host that shares with none is alone in its group: no key of two parts equals its name.
        groups.setdefault(host.shared or (host.name,), []).append(host)
    return [HostGroup(tuple(hosts)) for hosts in groups.values()]


def known_hosts(names: Sequence[str], known: Sequence[Host]) -> list[Host]:
    """Return the hosts called *names*, in that order; a host without facts has only its name."""
    by_name = {host.name: host for host in known}
    return [by_name.get(name) or Host(name=name) for name in names]


def host_problems(
    resources: Sequence[Resource], known: Sequence[Host]
) -> Iterator[ValidationIssue]:
    """Yield the errors between hosts; keys are `hosts.NAME...`."""
    used = {resource.host for resource in resources}
    first_of_group: dict[tuple[str, str], Host] = {}
    seen: set[str] = set()
    for host in known:
        key = f"hosts.{host.name}"
        if host.name in seen:
            yield ValidationIssue(key=key, message="is duplicated")
        seen.add(host.name)
        if host.name not in used:
            yield ValidationIssue(key=key, message="is not the host of any resource")
        if host.shared is None:
            continue
        other = first_of_group.setdefault(host.shared, host)
        if other.rtt_ns != host.rtt_ns:
            message = f"differs from that of {other.name}, which has the same server"
            yield ValidationIssue(key=f"{key}.rtt_ms", message=message)
