"""Loads from several hosts, worked out by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import engine
from h3sim.cli import main
from h3sim.load.run import run_spec
from h3sim.page import Kind, Page, Resource, page_from_dict
from h3sim.page.hosts import Host, RecordedHosts
from h3sim.transport import LinkProfile, Network
from h3sim.values.errors import InputError, PageError
from h3sim.values.units import mbps, ms
from tests.helpers import AT_ONCE, page_document

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

WIDE = Network(name="wide", rtt_ns=ms(20), down=LinkProfile(), up=LinkProfile())
"""Nothing takes time there but the way."""
NARROW = Network(
    name="narrow",
    rtt_ns=ms(20),
    down=LinkProfile(rate_bps=mbps(1), burst_bytes=0, queue_bytes=10**6),
    up=LinkProfile(),
)
ROOT = {"id": "/", "kind": "document", "bytes": 1000, "host": "www"}
SHARED = {"certificate": "c", "server": "192.0.2.1"}


def child(id_: str, host: str, at: str = "complete", n_bytes: int = 1000, **keys: Any) -> Any:
    discovered = {"by": "/", "at": at}
    return {"id": id_, "kind": "image", "bytes": n_bytes, "discovered": discovered} | {
        "host": host,
        **keys,
    }


def page(hosts: Any, *children: Any) -> Any:
    return page_from_dict({**page_document(ROOT, *children), "hosts": hosts})


def recorded(hosts: Any, *children: Any, network: Network = WIDE, **options: Any) -> h3sim.Load:
    """Return the load over TCP, whose handshake with TLS is two round trips whatever its bytes."""
    made = page(hosts, *children)
    options = {"network": network, "transport": "tcp", **options}
    return h3sim.simulate(made, connections="per-host", **options)


def finished(load: h3sim.Load) -> dict[str, float]:
    return {row.id: row.finished_ms for row in load.timings}


def test_requests_are_in_the_order_made_where_one_waits_for_its_name() -> None:
    hosts = {"www": SHARED, "cdn": {**SHARED, "dns_ms": 30}}
    load = recorded(hosts, child("a", "cdn"), child("b", "www"), child("c", "www"))
    # All three are asked for at once; a leaves 30 ms later, on the last stream.
    made = [("/", 0, 40), ("a", 12, 60), ("b", 4, 60), ("c", 8, 60)]
    for trace in (load.trace, load.connections[0].trace):
        assert [
            (load.page.resources[row.resource].id, row.stream_id, row.requested_at_ns / ms(1))
            for row in trace.requests
        ] == made
    assert [row.id for row in load.timings] == [id_ for id_, _, _ in made]


class TestOneOfItsOwn:
    def test_a_host_is_looked_up_and_connected_to_when_it_is_requested(self) -> None:
        load = recorded({"cdn": {"rtt_ms": 60, "dns_ms": 7}}, child("a", "cdn"), dns_ms=5)
        # www: looked up until 5, connected until 45, asked, and there at 65. cdn: looked up until
        # 72, connected until 192, and there a round trip later.
        assert finished(load) == {"/": 65, "a": 252}
        assert [(c.hosts, c.rtt_ms, c.opened_ms, c.ready_ms) for c in load.connections] == [
            (("www",), 20, 5, 45),
            (("cdn",), 60, 72, 192),
        ]
        assert [row.requested_ms for row in load.timings] == [45, 65]

    def test_lookups_and_handshakes_are_steps_of_the_critical_path(self) -> None:
        hosts = {"cdn": {"rtt_ms": 60, "dns_ms": 7}}
        two = [child("a", "cdn"), child("b", "cdn")]
        load = recorded(hosts, *two, dns_ms=5, **AT_ONCE)
        rows = [row[:4] for row in load.critical_path()]
        assert rows == [
            ("lookup", "/", 0, 5),
            ("connect", "/", 5, 45),
            ("download", "/", 45, 65),
            ("lookup", "a", 65, 72),
            ("connect", "a", 72, 192),
            ("download", "b", 192, 252),
            ("load", None, 252, 252),
        ]
        # Nothing else takes time there; b waits for the same lookup and the same handshake.
        assert [row[:3] for row in load.contributions("part")] == [("network", 6, 252)]
        done = load.activities()
        assert [row.work for row in done if row.id == "b"] == ["download"]
        (b,) = (row for row in done if row.id == "b")
        assert done[b.after or 0][:2] == ("connect", "a")
        assert (b.began_ms, b.policy) == (192, "F")

    def test_what_is_there_at_once_is_no_step(self) -> None:
        load = recorded({}, child("a", "www"), handshake=False, browser="parse")
        assert {row.work for row in load.activities()}.isdisjoint({"lookup", "connect"})

    def test_early_data_takes_a_round_trip_less(self) -> None:
        load = recorded({"cdn": {"rtt_ms": 60}}, child("a", "cdn"), handshake="0-rtt")
        assert finished(load) == {"/": 2 * 20, "a": 2 * 20 + 2 * 60}

    def test_established_connections_are_there_at_once(self) -> None:
        load = recorded({"cdn": {"rtt_ms": 60}}, child("a", "cdn"), handshake=False, dns_ms=5)
        assert finished(load) == {"/": 5 + 20, "a": 25 + 5 + 60}

    def test_a_server_may_be_nearer_than_the_rtt_of_the_network(self) -> None:
        load = recorded({"cdn": {"rtt_ms": 1}}, child("a", "cdn"))
        assert finished(load) == {"/": 60, "a": 63}

    def test_a_name_is_looked_up_once(self) -> None:
        children = child("a", "cdn"), child("b", "cdn"), child("c", "cdn", "request")
        load = recorded({"cdn": {"dns_ms": 30}}, *children, handshake=False)
        # "c" is asked for at 0 and there at 50; the name is known when the others are asked for.
        assert finished(load) == {"/": 20, "a": 50, "b": 50, "c": 50}
        assert len(load.connections) == 2

    def test_the_hosts_share_the_link(self) -> None:
        near = child("a", "www", "request", 10_000), child("b", "cdn", "request", 10_000)
        load = recorded({}, *near, network=NARROW, handshake=False)
        # 21,000 bytes at 1 Mbit/s are 168 ms, and whoever is last has waited for all of them.
        assert 20 + 168 < load.page_load_ms < 20 + 168 * 1.1

    def test_a_page_of_which_nothing_is_known_has_one_host(self) -> None:
        load = h3sim.simulate("davies-meenan", network="fibre", connections="per-host")
        assert [connection.hosts for connection in load.connections] == [("(page)",)]


class TestCoalescing:
    def test_hosts_of_one_server_and_certificate_share_a_connection(self) -> None:
        hosts = {"www": SHARED, "cdn": {**SHARED, "dns_ms": 7}}
        load = recorded(hosts, child("a", "cdn"))
        assert finished(load) == {"/": 60, "a": 60 + 7 + 20}
        assert [connection.hosts for connection in load.connections] == [("www", "cdn")]

    @pytest.mark.parametrize(
        "cdn",
        [
            {"certificate": "c"},
            {"server": "192.0.2.1"},
            {"certificate": "c", "server": "192.0.2.2"},
            {"certificate": "d", "server": "192.0.2.1"},
        ],
    )
    def test_one_of_both_is_not_enough(self, cdn: dict[str, str]) -> None:
        load = recorded({"www": SHARED, "cdn": cdn}, child("a", "cdn"))
        assert finished(load) == {"/": 60, "a": 120}

    def test_a_host_waits_for_the_connection_that_is_being_set_up(self) -> None:
        hosts = {"a": SHARED, "b": {**SHARED, "dns_ms": 3}}
        load = recorded(hosts, child("a", "a"), child("b", "b"))
        assert finished(load) == {"/": 60, "a": 120, "b": 120}
        assert [connection.n_requests for connection in load.connections] == [1, 2]

    def test_one_connection_gives_todays_load_byte_for_byte(self) -> None:
        made = page({"www": SHARED, "cdn": SHARED}, child("a", "cdn", "request", 90_000))
        for transport in ("quic", "tcp"):
            options: Any = {"network": "sander-2mbps-100ms-2pct", "transport": transport}
            one = h3sim.simulate(made, **options)
            shared = h3sim.simulate(made, connections="per-host", **options)
            assert shared.trace.digest() == one.trace.digest()
            assert one.connections[0].trace == one.trace


def test_priorities_work_only_within_a_connection() -> None:
    hosts = {"www": SHARED, "img": SHARED}
    children = (
        child("a.jpg", "img", "request", 50_000),
        child("a.js", "www", "request", 20_000, kind="script", in_head=True),
    )
    times = {}
    for name, known in (("one", hosts), ("two", {})):
        options: Any = {"scheme": "chrome-eps", "transport": "quic", "handshake": False}
        load = recorded(known, *children, network=NARROW, **options)
        times[name] = {row.id: row for row in load.timings}
    # On one connection the image waits for the script; on two they share the link.
    assert times["one"]["a.jpg"].first_byte_ms > times["one"]["a.js"].first_byte_ms
    assert times["two"]["a.jpg"].first_byte_ms < times["two"]["a.js"].finished_ms
    assert times["two"]["a.js"].finished_ms > 1.3 * times["one"]["a.js"].finished_ms


class TestTheTrace:
    LOAD = recorded({}, child("a", "cdn"), child("b", "www"), network=NARROW)

    def test_streams_are_numbered_over_the_load_and_on_their_connection(self) -> None:
        assert [row.stream_id for row in self.LOAD.trace.requests] == [0, 4, 8]
        assert self.LOAD.trace.connection_of == (0, 1, 0)
        ids = [[r.stream_id for r in c.trace.requests] for c in self.LOAD.connections]
        assert ids == [[0, 4], [0]]

    def test_rows_state_which_connection(self) -> None:
        packets = self.LOAD.trace.packets
        assert packets.columns[-1] == "connection"
        assert {(row.stream_id, row.connection) for row in packets} == {(0, 0), (4, 1), (8, 0)}
        one = h3sim.simulate(self.LOAD.page, network=NARROW)
        assert one.trace.connection_of == ()
        assert "connection" not in one.trace.packets.columns
        assert "connections" not in one.to_dict()

    def test_nothing_is_added_and_nothing_missing(self) -> None:
        complete = sorted((row[0], row[1], row[3], row[4]) for row in self.LOAD.trace.packet_rows)
        parts = [row for c in self.LOAD.connections for row in c.trace.packet_rows]
        assert complete == sorted((row[0], row[1], row[3], row[4]) for row in parts)

    def test_placeholders_of_connections_stay_apart(self) -> None:
        load = recorded({}, child("a", "cdn"), scheme="firefox-h2")
        names = {reported.element_id for reported in load.trace.signals}
        each = [
            {t.element_id for t in c.trace.signals if t.element_id < 0} for c in load.connections
        ]
        assert len([name for name in names if name < 0]) == sum(map(len, each))
        below = {t.signal.depends_on for t in load.trace.signals if t.element_id >= 0}
        assert below <= names | {None}

    def test_blocking_is_that_of_each_connection(self) -> None:
        network = "sander-2mbps-100ms-5pct"
        big = child("a", "cdn", "request", 100_000), child("b", "www", "request", 100_000)
        load = h3sim.simulate(page({}, *big), connections="per-host", network=network)
        alone = [h3sim.metrics.hol_blocking(c.trace).connection_bytes for c in load.connections]
        assert load.hol.connection_bytes == sum(alone) > 0


class TestAroundIt:
    def test_a_saved_load_runs_again(self) -> None:
        load = recorded({"cdn": {"rtt_ms": 60}}, child("a", "cdn"), dns_ms=5)
        document = json.loads(json.dumps(load.to_dict()))
        assert [each["hosts"] for each in document["connections"]] == [["www"], ["cdn"]]
        assert [row["connection"] for row in document["resources"]] == [0, 1]
        assert h3sim.export.load_from_dict(document).run().to_dict() == load.to_dict()

    def test_each_connection_has_a_log(self, tmp_path: Path, capsys: Any) -> None:
        path = tmp_path / "page.json"
        path.write_text(json.dumps(page({}, child("a", "cdn")).to_dict()), encoding="utf-8")
        log = str(tmp_path / "load.qlog")
        arguments = ("--network", "fibre", "--connections", "per-host", "--qlog", log)
        assert main(("run", str(path), *arguments)) == 0
        assert "connection  hosts" in capsys.readouterr().out
        logs = [h3sim.read_qlog(tmp_path / f"load-{number}.qlog") for number in (1, 2)]
        assert [len(log.log.resources) for log in logs] == [1, 1]

    def test_headers_are_compressed_on_each_connection(self) -> None:
        children = [child(f"{n}", "cdn", "request") for n in range(4)]
        runs = {}
        for connections in ("single", "per-host"):
            load = h3sim.simulate(
                page({}, *children),
                network=WIDE,
                header_compression="qpack",
                connections=connections,
            )
            assert load.header_runs is not None
            runs[connections] = load.header_runs[0]
        assert len(runs["single"].sections) == len(runs["per-host"].sections) == 5
        # What one connection has said, another does not know.
        assert runs["per-host"].n_bytes > runs["single"].n_bytes

    def test_the_progress_of_all_connections_is_reported_as_one(self) -> None:
        big = child("a", "cdn", "request", 3_000_000), child("b", "www", "request", 3_000_000)
        reported: list[int] = []
        h3sim.load.run_spec(
            h3sim.load.resolve(
                page({}, *big),
                h3sim.load_scheme("rr"),
                h3sim.LoadConfig(network="fibre", connections="per-host"),
            ),
            progress=lambda n_sent, n_packets: reported.append(n_sent),
        )
        assert reported == sorted(reported)
        assert reported[-1] > 3000

    def test_a_process_next_to_the_load_meets_all_connections(self) -> None:
        def busy(env: Any) -> Generator[Any, Any, Any]:
            yield env.timeout(0)
            env.down.send(12_500)

        quiet, load = (
            recorded({}, child("a", "cdn"), network=NARROW, handshake=False, processes=processes)
            for processes in ((), [busy])
        )
        # It takes 100 ms; the root is sent from 10 ms on.
        assert load.page_load_ms == pytest.approx(quiet.page_load_ms + 90, abs=1e-6)


class TestMistakes:
    def test_all_of_the_page_is_reported(self) -> None:
        hosts = {
            "www": {**SHARED, "rtt_ms": 30},
            "cdn": {**SHARED, "rtt_ms": 40},
            "cnd": {"rtt_ms": -1, "ip": "x"},
        }
        with pytest.raises(PageError) as caught:
            page(hosts, child("a", "cdn"))
        assert [problem.key for problem in caught.value.problems] == [
            *("hosts.cnd.ip", "hosts.cnd.rtt_ms", "hosts.cdn.rtt_ms", "hosts.cnd"),
        ]

    def test_a_constant_rate_has_one_connection(self) -> None:
        with pytest.raises(InputError, match=r"connections: 'per-host' needs links"):
            h3sim.simulate("davies-meenan", network="marx-2019", connections="per-host")
        with pytest.raises(InputError, match=r"connections: 'per-host' needs links"):
            h3sim.simulate("davies-meenan", connections="per-host")

    def test_names_are_looked_up_where_there_are_hosts(self) -> None:
        with pytest.raises(InputError, match=r"dns_ms: .* connections = 'per-host'"):
            h3sim.LoadConfig(network="fibre", dns_ms=5)
        with pytest.raises(InputError, match=r"connections: 'all' .*single, per-host"):
            h3sim.LoadConfig(network="fibre", connections="all")

    def test_what_is_known_of_a_host_goes_with_its_last_resource(self) -> None:
        made = page({"cdn": {"rtt_ms": 60}}, child("a", "cdn"))
        assert made.without("a").hosts == ()
        assert made.digest != page({}, child("a", "cdn")).digest


def test_a_host_that_is_described_twice_is_an_error() -> None:
    root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=1000, host="www")
    with pytest.raises(PageError, match=r"hosts\.www: is duplicated"):
        Page(name="x", resources=(root,), hosts=(Host(name="www"), Host(name="www")))


@pytest.mark.parametrize(("host", "n_connections"), [("www", 1), ("far", 2)])
def test_a_browser_that_computes_its_load_has_one_row_of_activities(
    host: str, n_connections: int
) -> None:
    load = recorded({"www": {}, host: {}}, child("a", host), **AT_ONCE)
    assert len(load.connections) == n_connections
    assert load.trace.activities
    own = [connection.trace.activities for connection in load.connections]
    # It is the trace of the load that has them: each connection's own would be a part.
    assert own == ([load.trace.activities] if n_connections == 1 else [(), ()])


def test_at_a_constant_rate_hosts_share_the_connection() -> None:
    spec = engine.LoadSpec(
        page({"www": {}, "far": {}}, child("a", "far")),
        scheme=h3sim.load_scheme("fifo"),
        network=h3sim.load_network("marx-2019"),
        hosts=RecordedHosts(),
    )
    (connection,) = run_spec(spec).connections
    assert connection.hosts == ("www", "far")


def test_a_connection_that_is_being_opened_adds_nothing_to_progress() -> None:
    calls: list[int] = []
    large = {**ROOT, "bytes": 1100 * 1200}
    early = {**child("a", "far"), "discovered": {"by": "/", "at": "offset", "offset_bytes": 1}}
    made = page_from_dict({**page_document(large, early), "hosts": {"far": {"rtt_ms": 10_000}}})
    h3sim.load.run_spec(
        h3sim.load.resolve(
            made, h3sim.load_scheme("rr"), h3sim.LoadConfig(network=WIDE, connections="per-host")
        ),
        progress=lambda n_sent, n_packets: calls.append(n_sent),
    )
    # Both begin at 0; the document's is reported again at 1024, long before the other sends.
    assert calls == [0, 1024, 1024]
