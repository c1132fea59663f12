"""The hosts of a recording: which share a connection, how far away they are, how they were found.

Hosts shared a connection if the recorder saw requests to both on one. Where it did not see on which
connections they were, or saw only those of HTTP/1.1, which no two hosts share, a browser may use
one for both if both have one address and the certificate of the first is good for the second, too
(RFC 9113 § 9.1.1, RFC 9114 § 3.3). It need not: Chrome keeps what it sends without credentials
apart. So what was seen goes before what would be allowed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.inference.estimates import MULTIPLEXED, SLOWEST_MS, handshake_rtt_ms
from h3sim.capture.inference.observed import recorded_ns
from h3sim.page import Host
from h3sim.page.hosts import host_groups
from h3sim.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = ["PageHosts", "group_numbers", "hosts_of"]


class PageHosts(NamedTuple):
    """The host of each resource, "" for that of the root, and what is known of hosts."""

    names: tuple[str, ...]
    known: tuple[Host, ...] = ()


def hosts_of(
    requests: Sequence[Observed], names: Sequence[str], root: int, *, rtt_ms: float | None
) -> PageHosts:
    """Return the hosts of a page's *requests*, which went to *names*; "" counts as the root's.

    Of a page of one host nothing is told, and of the host of the *root* no time to look it up: a
    load begins when that is known, unless somebody says otherwise. A round-trip time of its own has
    what is not as far away as the network is, *rtt_ms*, or, where that is not known, as the root.

    >>> from h3sim.capture.inference.observed import Observed, Reached
    >>> page, image = (Observed(key=key, url="") for key in ("page", "image"))
    >>> image.reached = Reached(dns_ms=12, handshake_ms=30)
    >>> found = hosts_of([page, image], ["www.example", "cdn.example"], 0, rtt_ms=20)
    >>> found.names, found.known[0].rtt_ns, found.known[0].dns_ns
    (('www.example', 'cdn.example'), 30000000, 12000000)
    """
    own = names[root] or next(filter(None, names), "")
    names = [name or own for name in names]
    by_host: dict[str, list[Observed]] = {own: []}
    for name, request in zip(names, requests, strict=True):
        by_host.setdefault(name, []).append(request)
    if len(by_host) == 1:
        return PageHosts(("",) * len(names))
    groups = [{name: by_host[name] for name in group} for group in _groups(by_host)]
    if rtt_ms is None:
        rtt_ms = handshake_rtt_ms(request for of_host in groups[0].values() for request in of_host)
    known = {host.name: host for group in groups for host in _hosts(group, own, rtt_ms)}
    return PageHosts(
        # The root names its host; what does not name one comes from there.
        tuple(name if index == root or name != own else "" for index, name in enumerate(names)),
        tuple(known[name] for name in by_host if name in known),
    )


def group_numbers(names: Sequence[str], known: Sequence[Host]) -> list[int]:
    """Return for each of *names* the number of the connection that a load has for it."""
    groups = host_groups(tuple(dict.fromkeys(names)), known)
    number_of = {host.name: number for number, group in enumerate(groups) for host in group.hosts}
    return [number_of[name] for name in names]


def _groups(by_host: Mapping[str, Iterable[Observed]]) -> list[list[str]]:
    """Return the hosts by the connection that they share, in the order of their first requests."""
    groups: list[list[str]] = []
    seen: dict[tuple[str, str], int] = {}
    allowed: dict[tuple[str, str], int] = {}
    for name, requests in by_host.items():
        on = [key for request in requests if (key := _connection(request)) is not None]
        shared = next((seen[key] for key in on if key in seen), None)
        if shared is None and not on:
            shared = next((allowed[k] for k in _good_for(name, requests) if k in allowed), None)
        if shared is None:
            shared = len(groups)
            groups.append([])
        groups[shared].append(name)
        for key in on:
            seen.setdefault(key, shared)
        for key in _certified(requests):
            allowed.setdefault(key, shared)
    return groups


def _connection(request: Observed) -> tuple[str, str] | None:
    """Return the connection of a request; numbers are those of one server with some recorders."""
    if request.reached.connection and request.protocol.startswith(MULTIPLEXED):
        return request.reached.connection, request.reached.ip
    return None


def _certified(requests: Iterable[Observed]) -> Iterator[tuple[str, str]]:
    """Yield each address, with what its certificate is known by, and with the names it is for."""
    for request in requests:
        if address := request.reached.ip:
            reached = request.reached
            for known_by in (reached.certificate, *map(str.lower, reached.certificate_names)):
                yield address, known_by


def _good_for(name: str, requests: Iterable[Observed]) -> Iterator[tuple[str, str]]:
    """Yield each address, with what in a certificate makes it good for host *name*.

    A wildcard stands for the whole of the leftmost label (RFC 9525 § 6.3). A name with a port of
    its own is another origin, which nobody takes for that of the usual port.
    """
    wanted = [] if ":" in name else [name, f"*.{name.partition('.')[2]}"]
    for request in requests:
        if address := request.reached.ip:
            for known_by in (*wanted, request.reached.certificate):
                if known_by:
                    yield address, known_by


def _hosts(
    group: Mapping[str, Sequence[Observed]], own: str, rtt_ms: float | None
) -> Iterator[Host]:
    """Yield what is known of the hosts of a group; those of which nothing is are left out."""
    first, shares = next(iter(group)), len(group) > 1
    requests = [request for of_host in group.values() for request in of_host]
    addresses = (request.reached.ip for request in requests)
    address = next(filter(None, addresses), first if shares else "")
    own_rtt_ms = handshake_rtt_ms(requests)
    for name, of_host in group.items():
        host = Host(
            name=name,
            certificate=first if shares else "",
            server=address,
            rtt_ns=None if own_rtt_ms is None or own_rtt_ms == rtt_ms else ms(own_rtt_ms),
            dns_ns=None if name == own else _lookup_ns(of_host),
        )
        if host != Host(name=name):
            yield host


def _lookup_ns(requests: Iterable[Observed]) -> int | None:
    """Return how long the first lookup took; a name that was known is not looked up."""
    times_ms = (request.reached.dns_ms for request in requests)
    first_ms = next((each for each in times_ms if each and each < SLOWEST_MS), None)
    return None if first_ms is None else recorded_ns(first_ms)
