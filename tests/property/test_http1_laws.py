"""Laws of loads over HTTP/1.1: few connections per host, and one request at a time on each."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3sim.conformance import pages
from h3sim.engine import host_connections
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.ranges import Ranges
from tests.effort import law
from tests.property import laws
from tests.property.test_connected_laws import (
    check_every_byte_came,
    check_no_order_beats_what_arrived,
    check_time_runs_forward,
    loaded,
    settings,
)
from tests.property.test_host_laws import pages_of_hosts

if TYPE_CHECKING:
    import h3sim

SCHEMES = ("fifo", "chrome-eps", "firefox-h2", "bucket", "p+")
"""Signals of different types, which order the requests that wait."""


def over_http1(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str, *, n: int = 6, **changes: str
) -> h3sim.Load:
    profile = setting.transport_profile if setting.transport == "tcp" else None
    changed = replace(
        setting,
        transport="http1",
        transport_profile=profile,
        max_connections_per_host=n,
        **changes,  # type: ignore[arg-type]
    )
    return loaded(page, changed, scheme)


def check_one_request_at_a_time(load: h3sim.Load) -> None:
    """On a connection, no request leaves before the last byte of the response before arrived."""
    for connection in load.connections:
        rows = connection.trace.packet_rows
        got: dict[int, Ranges] = {}
        first_sent: dict[int, int] = {}
        complete: dict[int, int] = {}
        size = {request.stream_id: request.length_bytes for request in connection.trace.requests}
        for sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, _, delivered in sorted(
            rows, key=lambda row: (row[1] is None, row[1] or 0)
        ):
            first_sent[stream_id] = min(sent_at_ns, first_sent.get(stream_id, sent_at_ns))
            if delivered is None:
                continue
            assert arrived_at_ns is not None
            got.setdefault(stream_id, Ranges()).add(offset, offset + n_bytes)
            if got[stream_id].contiguous == size[stream_id]:
                complete.setdefault(stream_id, delivered)
        # Streams are numbered in the order in which their requests left.
        for before, after in pairwise(range(0, STREAM_ID_STEP * len(size), STREAM_ID_STEP)):
            assert first_sent[after] >= complete[before]


def check_connections_are_few(load: h3sim.Load, n: int) -> None:
    """At most *n* connections go to each host, and none is opened in vain at the start."""
    hosts = [connection.hosts for connection in load.connections]
    assert all(hosts.count(each) <= n for each in hosts)


@law(30)
@given(
    page=pages(),
    setting=settings(),
    scheme=st.sampled_from(SCHEMES),
    n=st.sampled_from((1, 2, 6)),
)
def test_a_connection_carries_one_request_at_a_time(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str, n: int
) -> None:
    load = over_http1(page, setting, scheme, n=n)
    check_one_request_at_a_time(load)
    check_connections_are_few(load, n)
    check_every_byte_came(load)
    check_time_runs_forward(load)
    check_no_order_beats_what_arrived(load)
    laws.check_requests_follow_their_triggers(load)
    laws.check_every_byte_is_delivered_once(load)
    assert not load.trace.signals
    again = over_http1(page, setting, scheme, n=n)
    assert again.trace.digest() == load.trace.digest()


@law(15)
@given(page=pages_of_hosts(), setting=settings(), scheme=st.sampled_from(SCHEMES))
def test_each_host_has_connections_of_its_own(
    page: h3sim.Page, setting: h3sim.LoadConfig, scheme: str
) -> None:
    load = over_http1(page, setting, scheme, n=2, connections="per-host")
    check_one_request_at_a_time(load)
    check_connections_are_few(load, 2)
    check_every_byte_came(load)
    for connection in load.connections:
        (host,) = connection.hosts
        requests = connection.trace.requests
        assert {page.resources[request.resource].host for request in requests} <= {host}


def test_a_pool_that_pipelines_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a request while the connection is still busy: the law notices."""

    def pipelined(self: host_connections.Http1Pool, resource: int, asked_at_ns: int) -> None:
        self._priorities.add(resource)
        if not hasattr(self, "_only"):
            self._only = self._idle.pop()  # type: ignore[attr-defined]
        self._only.request(resource, asked_at_ns)  # type: ignore[attr-defined]

    import h3sim

    monkeypatch.setattr(host_connections.Http1Pool, "request", pipelined)
    load = loaded(
        h3sim.load_page("davies-meenan"), h3sim.LoadConfig(network="cable", transport="http1")
    )
    with pytest.raises(AssertionError):
        check_one_request_at_a_time(load)
