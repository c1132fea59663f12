"""The laws of loads from several hosts find out parts that are broken."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.engine import endpoints, simulation
from h3sim.page import Host, page_from_dict
from h3sim.trace import merged_trace
from h3sim.transport.link import RemoteLink
from h3sim.values.versions import build
from tests.helpers import page_document
from tests.property.test_connected_laws import check_time_runs_forward
from tests.property.test_host_laws import (
    check_bytes_of_all_connections,
    check_hosts_share_what_they_may,
    check_one_connection_is_todays,
    from_hosts,
)

pytestmark = pytest.mark.skipif(
    build() == "compiled",
    reason="no part of the compiled build can be broken from outside",
)
LOSING = h3sim.LoadConfig(network="sander-2mbps-100ms-5pct")
FAST = h3sim.LoadConfig(network="fibre", handshake="none")


def _child(id_: str, host: str) -> dict[str, Any]:
    discovered = {"by": "/", "at": "request"}
    return {"id": id_, "kind": "image", "bytes": 20_000, "host": host, "discovered": discovered}


PAGE = page_from_dict(
    {
        **page_document(
            {"id": "/", "kind": "document", "bytes": 9_000, "host": "www"},
            *(_child(name, name) for name in ("a", "b", "www")),
        ),
        "hosts": {
            "www": {"certificate": "c", "server": "1"},
            "a": {"certificate": "c", "server": "2", "rtt_ms": 1},
            "b": {"certificate": "d", "server": "2"},
        },
    }
)


def test_a_law_finds_hosts_that_share_whatever_their_certificate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_hosts_share_what_they_may(from_hosts(PAGE, FAST))
    monkeypatch.setattr(Host, "shared", property(lambda self: ("", self.server)))
    with pytest.raises(AssertionError):
        check_hosts_share_what_they_may(from_hosts(PAGE, FAST))


def test_a_law_finds_hosts_that_never_share(monkeypatch: pytest.MonkeyPatch) -> None:
    check_one_connection_is_todays(PAGE, FAST)
    monkeypatch.setattr(Host, "shared", None)
    with pytest.raises(AssertionError):
        check_one_connection_is_todays(PAGE, FAST)


def test_a_law_finds_a_connection_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    check_bytes_of_all_connections(from_hosts(PAGE, LOSING))
    monkeypatch.setattr(
        simulation, "merged_trace", lambda traces, *more: merged_trace(traces[:-1], *more)
    )
    with pytest.raises((AssertionError, KeyError)):
        check_bytes_of_all_connections(from_hosts(PAGE, LOSING))


def test_a_law_finds_streams_that_are_taken_for_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_own_ids(traces: Any, *more: Any) -> Any:
        rows = [row for trace in traces for row in trace.packet_rows]
        complete = merged_trace(traces, *more)
        return h3sim.trace.Trace(
            delivery=complete.delivery,
            requests=complete.requests,
            signals=complete.signals,
            packet_rows=h3sim.trace.PacketRows.of(sorted(rows, key=lambda row: row[0])),
            connection_of=complete.connection_of,
        )

    check_bytes_of_all_connections(from_hosts(PAGE, LOSING))
    monkeypatch.setattr(simulation, "merged_trace", with_own_ids)
    with pytest.raises((AssertionError, KeyError)):
        check_bytes_of_all_connections(from_hosts(PAGE, LOSING))


def test_a_law_finds_a_near_server_that_answers_before_it_gets_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Nearer(RemoteLink):
        def send(self, now_ns: int, size_bytes: int) -> int | None:
            arrives_at_ns = super().send(now_ns, size_bytes)
            return None if arrives_at_ns is None else max(0, now_ns - 1)

    def check() -> None:
        load = from_hosts(PAGE, FAST)
        for connection in load.connections:
            assert connection.trace.wire
            for row in connection.trace.wire:
                assert row.arrived_at_ns is None or row.arrived_at_ns >= row.sent_at_ns
        check_time_runs_forward(load)

    check()
    monkeypatch.setattr(endpoints, "RemoteLink", Nearer)
    with pytest.raises(AssertionError):
        check()
