"""Laws of loads from several hosts: what is shared is shared, and every byte comes once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from h3sim.conformance import pages
from h3sim.page import Host
from h3sim.values.units import ms
from tests.effort import law
from tests.property import laws
from tests.property.test_connected_laws import (
    SCHEMES,
    check_every_byte_came,
    check_time_runs_forward,
    loaded,
    settings,
)

if TYPE_CHECKING:
    import h3sim

_SHARED: tuple[tuple[str, str], ...] = (("", ""), ("c", "1"), ("c", "2"), ("d", "1"))


@st.composite
def pages_of_hosts(draw: st.DrawFn) -> h3sim.Page:
    """Draw a page whose resources come from up to four hosts, some of which share a connection."""
    page = draw(pages())
    names = st.sampled_from(("www", "a", "b", "c"))
    resources = tuple(replace(resource, host=draw(names)) for resource in page.resources)
    rtts_ns: dict[tuple[str, str], Any] = {}
    hosts = []
    for name in sorted({resource.host for resource in resources}):
        certificate, server = draw(st.sampled_from(_SHARED))
        rtt_ns = draw(st.sampled_from((None, ms(5), ms(150))))
        rtt_ns = rtts_ns.setdefault((certificate, server), rtt_ns) if server else rtt_ns
        dns_ns = draw(st.sampled_from((None, 0, ms(30))))
        hosts.append(
            Host(name=name, certificate=certificate, server=server, rtt_ns=rtt_ns, dns_ns=dns_ns)
        )
    return replace(page, resources=resources, hosts=tuple(hosts))


def from_hosts(page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str = "rr") -> h3sim.Load:
    return loaded(page, replace(setting, connections="per-host"), scheme)


def check_one_connection_is_todays(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str = "rr"
) -> None:
    """Hosts that all share a server and a certificate load as one host does, byte for byte."""
    shared_by_all: dict[str, Any] = {
        "certificate": "c",
        "server": "1",
        "rtt_ns": None,
        "dns_ns": None,
    }
    hosts = (replace(host, **shared_by_all) for host in page.hosts)
    page = replace(page, hosts=tuple(hosts))
    one, shared = loaded(page, setting, scheme), from_hosts(page, setting, scheme)
    assert shared.trace.digest() == one.trace.digest()
    assert (shared.trace.wire, shared.trace.recovery) == (one.trace.wire, one.trace.recovery)


def check_hosts_share_what_they_may(load: h3sim.Load) -> None:
    """Each resource came over the connection of its host; hosts share one as the page has it."""
    known = {host.name: (host.certificate, host.server) for host in load.page.hosts}
    by_key: dict[tuple[str, str], set[int]] = {}
    for connection in load.connections:
        for row in connection.trace.requests:
            host = load.page.resources[row.resource].host
            assert host in connection.hosts
            by_key.setdefault(known[host], set()).add(connection.number)
        keys = {known[name] for name in connection.hosts}
        assert len(connection.hosts) == 1 or (len(keys) == 1 and all(keys.pop()))
    assert all(len(numbers) == 1 for key, numbers in by_key.items() if all(key))


def check_bytes_of_all_connections(load: h3sim.Load) -> None:
    """Over all connections the page comes once: each has its part, and the load has them all."""
    rows = [row for each in load.connections for row in each.trace.packet_rows]
    assert len(rows) == len(load.trace.packet_rows)
    assert sum(row[4] for row in rows) == sum(row[4] for row in load.trace.packet_rows)
    n_bytes = sum(each.stream_bytes for each in load.connections)
    assert n_bytes == sum(resource.stream_bytes for resource in load.page.resources)
    check_every_byte_came(load)
    laws.check_every_byte_is_delivered_once(load)


def check_requests_are_in_the_order_made(load: h3sim.Load) -> None:
    """Of the load and of each connection: times never fall, whoever waits for a name."""
    for trace in (load.trace, *(each.trace for each in load.connections)):
        times = [request.requested_at_ns for request in trace.requests]
        assert times == sorted(times)
        ids = [request.stream_id for request in trace.requests]
        assert sorted(ids) == [4 * number for number in range(len(ids))]


@law(25)
@given(page=pages_of_hosts(), setting=settings(), scheme=st.sampled_from(SCHEMES))
def test_hosts_of_one_connection_load_as_today(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str
) -> None:
    check_one_connection_is_todays(page, setting, scheme)


@law(25)
@given(page=pages_of_hosts(), setting=settings(), scheme=st.sampled_from(SCHEMES))
def test_every_byte_comes_over_the_connection_of_its_host(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str
) -> None:
    load = from_hosts(page, setting, scheme)
    check_hosts_share_what_they_may(load)
    check_bytes_of_all_connections(load)
    for connection in load.connections:
        check_time_runs_forward(replace(load, trace=connection.trace))
    laws.check_requests_follow_their_triggers(load)


@law(40)
@given(
    page=pages_of_hosts(),
    setting=settings(),
    scheme=st.sampled_from(SCHEMES),
    is_one=st.sampled_from((True, True, False)),
    waits_ms=st.permutations((0, 30, 60, 400)),
)
def test_requests_are_in_the_order_made_whoever_waits_for_a_name(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str, is_one: bool, waits_ms: list[int]
) -> None:
    shared: dict[str, Any] = {"certificate": "c", "server": "1", "rtt_ns": None} if is_one else {}
    hosts = (
        replace(host, dns_ns=ms(wait_ms), **shared)
        for host, wait_ms in zip(page.hosts, waits_ms, strict=False)
    )
    check_requests_are_in_the_order_made(
        from_hosts(replace(page, hosts=tuple(hosts)), setting, scheme)
    )
