"""The engine at its edges: events of one instant, numbers that are just allowed, and SimPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim import engine
from h3sim.engine import builders
from h3sim.engine.endpoints import DownlinkRecorder, EndpointFactory, PacketLog
from h3sim.engine.environment import EventPriority, FifoEventQueue, LinkControl, LoadEnvironment
from h3sim.engine.host_connections import RequestPriorities
from h3sim.engine.signalling import OracleSignalling, ServerPriorityPolicy
from h3sim.load.run import run_spec
from h3sim.page import UNCHANGED, Host, Kind, Resource
from h3sim.schemes import Policy, make_policy
from h3sim.signals import Eps, H2Priority, Signal, StrictPriority, WithoutSignal
from h3sim.trace import RowRecorder, SteadyRecorder, packets
from h3sim.transport import HandshakeMode, LinkProfile, Network, Protocol, Role
from h3sim.values.constants import UNLIMITED_BYTES
from h3sim.values.errors import NetworkError, PageError, StalledError
from h3sim.values.units import ms
from tests.helpers import page_of
from tests.unit.test_engine_reports import SignalLog

ROOT = {"id": "/", "kind": "document", "bytes": 1000}
Entries = list[tuple[int, Any]]


def noting(log: Entries) -> Any:
    """Return a call that notes its value and the time."""
    return lambda value, now_ns: log.append((now_ns, value))


class TestLoadEnvironment:
    def test_it_advances_where_nothing_is_due_until_then(self) -> None:
        environment = LoadEnvironment()
        assert environment.advance_to(4)
        assert environment.now_ns == 4
        environment.at(9, EventPriority.SEND, noting([]), None)
        assert environment.advance_to(8)
        assert not environment.advance_to(9)
        assert not environment.advance_to(10)
        assert environment.now_ns == 8

    def test_what_is_due_before_a_call_of_that_rank_runs_until_then(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        environment.at(3, EventPriority.PROCESS, noting(log), "early")
        environment.at(5, EventPriority.SEND, noting(log), "same rank, scheduled before")
        environment.at(5, EventPriority.DELIVERY, noting(log), "before")
        environment.at(5, EventPriority.PROCESS, noting(log), "behind")
        environment.run_until(5, EventPriority.SEND)
        assert log == [(3, "early"), (5, "before"), (5, "same rank, scheduled before")]
        assert environment.now_ns == 5
        environment.step()
        assert log[-1] == (5, "behind")

    def test_a_step_is_one_event_at_its_time(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        environment.at(7, EventPriority.SEND, noting(log), "b")
        environment.at(4, EventPriority.SEND, noting(log), "a")
        environment.step()
        assert (log, environment.now_ns) == ([(4, "a")], 4)

    def test_a_delay_counts_from_now(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        environment.advance_to(10)
        environment.after(5, EventPriority.SEND, noting(log), "late")
        assert not environment.run_load()
        assert log == [(15, "late")]

    def test_a_limit_of_events_is_the_number_that_may_be_scheduled(self) -> None:
        environment = LoadEnvironment(max_events=3)
        assert (environment.has_overrun, environment.overrun_events) == (False, 0)

        def again(value: None, now_ns: int) -> None:
            environment.at(now_ns + 1, EventPriority.SEND, again, value)

        environment.at(1, EventPriority.SEND, again, None)
        assert not environment.run_load()
        assert (environment.has_overrun, environment.overrun_events) == (True, 3)
        assert environment.now_ns == 3

    def test_an_event_of_a_process_is_processed_at_once_and_in_its_order(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        first, urgent = environment.event(), environment.event()
        first.callbacks.append(lambda _: log.append((environment.now_ns, "event")))
        urgent.callbacks.append(lambda _: log.append((environment.now_ns, "urgent")))
        environment.at(6, EventPriority.SEND, noting(log), "load")

        def begin(value: None, now_ns: int) -> None:
            del value, now_ns
            first.succeed()
            timeout = environment.timeout(0)
            timeout.callbacks.append(lambda _: log.append((environment.now_ns, "timeout")))
            urgent._ok, urgent._value = True, None
            environment.schedule(urgent, 0)

        environment.at(6, EventPriority.DELIVERY, begin, None)
        environment.run_load()
        assert log == [(6, "load"), (6, "urgent"), (6, "event"), (6, "timeout")]

    def test_a_whole_delay_may_be_a_float(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        environment.timeout(5.0).callbacks.append(lambda _: log.append((environment.now_ns, "")))
        environment.run_load()
        assert log == [(5, "")]
        assert type(environment.now) is int


class TestFifoEventQueue:
    def test_what_overtakes_is_taken_at_its_time(self) -> None:
        environment, log = LoadEnvironment(), Entries()
        queue = FifoEventQueue(environment, EventPriority.DELIVERY, noting(log))
        for at_ns, value in ((5, "a"), (9, "b"), (7, "overtakes"), (9, "c"), (9, "d"), (12, "e")):
            queue.put(at_ns, value)
        environment.at(9, EventPriority.DELIVERY, noting(log), "between")
        environment.at(9, EventPriority.SEND, noting(log), "behind")
        environment.run_load()
        assert [value for _, value in log] == [
            *("a", "overtakes", "b", "c", "d", "between", "behind", "e")
        ]
        assert [at_ns for at_ns, _ in log] == [5, 7, 9, 9, 9, 9, 9, 12]

    def test_more_may_be_put_in_while_one_is_taken(self) -> None:
        environment, log = LoadEnvironment(), Entries()

        def take(value: int, now_ns: int) -> None:
            log.append((now_ns, value))
            if value:
                queue.put(now_ns + 2, value - 1)

        queue = FifoEventQueue(environment, EventPriority.DELIVERY, take)
        queue.put(1, 3)
        environment.at(4, EventPriority.DELIVERY, noting(log), "other")
        environment.run_load()
        assert log == [(1, 3), (3, 2), (4, "other"), (5, 1), (7, 0)]
        queue.put(9, 0)
        environment.run_load()
        assert log[-1] == (9, 0)


class _Link:
    """Takes foreign packets."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int]] = []

    def send(self, now_ns: int, n_bytes: int) -> int:
        self.sent.append((now_ns, n_bytes))
        return now_ns + 1


def test_a_foreign_packet_has_up_to_the_largest_size_of_an_ip_packet() -> None:
    link: Any = _Link()
    control = LinkControl(LoadEnvironment(), link)
    assert control.send(65_535) == 1
    for n_bytes in (65_536, 0, "1"):
        with pytest.raises(NetworkError, match="1 to 65,535"):
            control.send(n_bytes)
    assert link.sent == [(0, 65_535)]


def test_the_largest_load_has_five_million_packets() -> None:
    def page(n_bytes: int) -> Any:
        return page_of({"id": "/", "kind": "document", "bytes": n_bytes})

    assert builders.count_packets(page(5_000_000), 1) == 5_000_000
    with pytest.raises(PageError, match="takes 5,000,001 packets"):
        builders.count_packets(page(5_000_001), 1)
    two = page_of(ROOT, {**ROOT, "id": "empty", "bytes": 0, "discovered": {"at": "time"}})
    assert builders.count_packets(two, 1000) == 2


@pytest.mark.parametrize(("protocol", "ends"), [(Protocol.QUIC, "quic"), (Protocol.TCP, "tcp")])
@pytest.mark.parametrize(("end", "key"), [("", "down"), ("_client", "up")])
def test_a_queue_must_hold_the_largest_packet_of_its_end(
    protocol: Protocol, ends: str, end: str, key: str
) -> None:
    network = h3sim.load_network("fibre")
    profile = h3sim.load_profile("default")
    size = "mss_bytes" if protocol is Protocol.TCP else "datagram_bytes"
    settings = replace(getattr(profile, f"{ends}{end}"), **{size: 1500})
    large: Any = replace(profile, **{f"{ends}{end}": settings})
    # TCP and IP: 32 bytes and 20; a probe of QUIC is up to 64 bytes larger than a datagram.
    n_bytes = 1500 + (32 + 20 if protocol is Protocol.TCP else 64 + profile.quic.ip_bytes)

    def make(n_bytes: int) -> None:
        link = replace(getattr(network, key), queue_bytes=n_bytes, queue_bdp=None)
        with_queue: Any = replace(network, **{key: link})
        EndpointFactory(with_queue, large, protocol, mode=HandshakeMode.NONE, seed=0)

    make(n_bytes)
    with pytest.raises(NetworkError) as caught:
        make(n_bytes - 1)
    assert [issue.key for issue in caught.value.problems] == [f"{key}.queue_bytes"]


def test_a_change_is_signalled_on_the_connection_of_its_resource() -> None:
    found = {"by": "/", "at": "offset", "offset_bytes": 100}
    changes = [{"when": {"by": "/", "at": "complete"}, "visible": True}]
    image = {"kind": "image", "bytes": 50_000, "discovered": found, "priority_changes": changes}
    page = page_of(
        {**ROOT, "bytes": 30_000},
        {**image, "id": "a.png", "host": "cdn"},
        {**image, "id": "b.png", "priority_changes": []},
    )
    load = h3sim.simulate(
        page,
        scheme="h3sim-1",
        network="dsl",
        connections="per-host",
        handshake=False,
        transport="quic",
    )
    signals = [len(connection.trace.signals) for connection in load.connections]
    assert [connection.hosts for connection in load.connections] == [("(page)",), ("cdn",)]
    # It is opened when that is requested, which takes no look-up here.
    asked_ms = {row.id: row.requested_ms for row in load.timings}
    opened_ms = [connection.opened_at_ns / ms(1) for connection in load.connections]
    assert opened_ms == [0, asked_ms["a.png"]]
    assert opened_ms[1] > 0
    # Two requests on one connection; on the other a request, and an image that is seen.
    assert signals == [2, 2]


def test_an_odd_nanosecond_belongs_to_the_way_up() -> None:
    path = Network(name="odd", rtt_ns=1_000_001, down=LinkProfile(), up=LinkProfile())
    page = page_of(
        ROOT,
        {
            **ROOT,
            "id": "far",
            "host": "far",
            "discovered": {"by": "/", "at": "complete"},
        },
    )
    page = replace(page, hosts=(Host(name="far", rtt_ns=3_000_003),))
    load = h3sim.simulate(
        page, scheme="fifo", network=path, handshake=False, connections="per-host"
    )
    for connection, up_ns, down_ns in zip(
        load.connections, (500_001, 1_500_002), (500_000, 1_500_001), strict=True
    ):
        (request,) = connection.trace.requests
        assert request.arrived_at_ns == request.requested_at_ns + up_ns
        (sent_at_ns, arrived_at_ns, *_), *_ = connection.trace.packet_rows
        assert (sent_at_ns, arrived_at_ns) == (request.arrived_at_ns, sent_at_ns + down_ns)


@pytest.mark.parametrize(("transport", "ends"), [("quic", "quic"), ("tcp", "tcp")])
def test_each_end_has_settings_of_its_own(transport: Any, ends: str) -> None:
    profile, key = (
        h3sim.load_profile("default"),
        "datagram_bytes" if ends == "quic" else "mss_bytes",
    )
    own: Any = {
        ends: replace(getattr(profile, ends), **{key: 1300}),
        f"{ends}_client": replace(getattr(profile, f"{ends}_client"), **{key: 1250}),
    }
    page = page_of({**ROOT, "bytes": 30_000, "request_bytes": 9_000})
    load = h3sim.simulate(
        page,
        scheme="fifo",
        network="fibre",
        transport=transport,
        transport_profile=replace(profile, **own),
        record_packets=True,
    )
    most = {
        is_down: max(row.size_bytes for row in load.trace.wire if row.is_down is is_down)
        for is_down in (True, False)
    }
    assert most[True] - most[False] == 1300 - 1250
    assert most[True] >= 1300


def test_each_end_sends_as_far_as_the_other_s_windows_go() -> None:
    profile = h3sim.load_profile("default")
    server = replace(profile.quic, stream_window_bytes=11_000, connection_window_bytes=12_000)
    client = replace(
        profile.quic_client, stream_window_bytes=21_000, connection_window_bytes=22_000
    )
    for protocol, windows in (
        (Protocol.QUIC, [(21_000, 22_000), (11_000, 12_000)]),
        (Protocol.TCP, [(UNLIMITED_BYTES, UNLIMITED_BYTES)] * 2),
    ):
        factory = EndpointFactory(
            h3sim.load_network("fibre"),
            replace(profile, quic=server, quic_client=client),
            protocol,
            mode=HandshakeMode.NONE,
            seed=0,
        )
        assert [factory.windows(role) for role in (Role.SERVER, Role.CLIENT)] == windows


class _Packet:
    """A packet of one frame."""

    first_row = 0

    def __init__(self, number: int) -> None:
        self.number = number
        self.frames = [(0, 10 * number, 10)]


def test_rows_of_packets_are_packed_before_they_are_many() -> None:
    recorder = RowRecorder()
    recorder.max_pending = 4
    rows = DownlinkRecorder(recorder)
    most = 0
    for number in range(20):
        packet: Any = _Packet(number)
        rows.on_sent(packet, number, None)
        rows.on_departed(packet, number + 5)
        most = max(most, len(recorder.pending))
    assert most <= 5
    assert [(sent, arrived) for sent, arrived, *_ in recorder.rows()] == [
        (number, number + 5) for number in range(20)
    ]


@pytest.mark.parametrize("reorder", ["none", "4:1-3"])
def test_rows_of_a_constant_rate_are_packed_at_every_report_from_so_many_on(
    reorder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[int] = []
    for recorder in (SteadyRecorder, RowRecorder):
        original: Any = recorder.pack

        def pack(self: Any, original: Any = original) -> None:
            packed.append(self.n_pending)
            original(self)

        monkeypatch.setattr(recorder, "pack", pack)
    monkeypatch.setattr(packets, "_MAX_PENDING", 8192)
    page = page_of({"id": "/", "kind": "document", "bytes": 20_000 * 1400})
    load = h3sim.simulate(page, scheme="fifo", rtt_ms=20, reorder=reorder)
    # What is left is packed at the end.
    assert packed == [8192, 8192, 20_000 - 2 * 8192]
    assert len(load.trace.packet_rows) == 20_000


def test_progress_over_links_is_of_the_packets_of_the_page() -> None:
    calls: list[tuple[int, int]] = []
    log = PacketLog(
        record_packets=False, progress=lambda n, most: calls.append((n, most)), n_packets=1500
    )
    for number in (0, 1, 1023, 1024, 1025, 2048):
        log.report(number)
    assert calls == [(0, 1500), (1024, 1500), (1500, 1500)]


class TestRequestPriorities:
    def key(self, scheme: str, **signals: Signal) -> list[str]:
        """Return the names of *signals* in the order of their requests."""
        priorities = RequestPriorities(h3sim.load_scheme(scheme), page_of(ROOT))
        priorities.add(0)
        return sorted(signals, key=lambda name: priorities.key_of(signals[name]))

    def test_heavier_requests_come_first_below_the_root_and_below_streams(self) -> None:
        order = self.key(
            "rr",
            light=H2Priority(weight=3),
            below=H2Priority(weight=5, depends_on=0),
            heavy=H2Priority(weight=9),
        )
        assert order == ["heavy", "below", "light"]

    def test_strict_priorities_come_before_weights(self) -> None:
        order = self.key(
            "rr",
            heavy=StrictPriority(weight=9, strict=1, depends_on=None),
            strict=StrictPriority(weight=3, strict=2, depends_on=None),
            light=StrictPriority(weight=2, strict=1, depends_on=None),
        )
        assert order == ["strict", "heavy", "light"]


def test_a_server_judges_clients_by_open_streams_only() -> None:
    kinds = [Kind.IMAGE, Kind.STYLESHEET]
    streams: Any = SignalLog()
    policy = ServerPriorityPolicy(
        streams,
        replace(h3sim.load_scheme("chrome-eps"), validates_client_priorities=True),
        resource_of=lambda stream_id: Resource(id="r", kind=kinds[stream_id // 4], size_bytes=9),
        now_ns=lambda: 7,
        thresholds=None,
    )
    policy.open(0, Eps(urgency=3))
    policy.on_closed(0)
    policy.open(4, Eps(urgency=3))
    # The image that is more urgent than a stylesheet should allow has gone by then.
    assert streams.calls == [("open", 0, Eps(urgency=3)), ("open", 4, Eps(urgency=3))]
    assert policy.record == []


def test_groups_are_open_from_the_beginning() -> None:
    streams: Any = SignalLog()
    page = page_of(ROOT)
    signalling = OracleSignalling(make_policy(h3sim.load_scheme("firefox-h2"), page), streams)
    signalling.on_connected()
    assert signalling.record
    assert {at_ns for at_ns, _, _ in signalling.record} == {0}
    assert [call[1:] for call in streams.calls] == [entry[1:] for entry in signalling.record]


def test_a_single_connection_is_number_0() -> None:
    spec = engine.LoadSpec(
        page_of(ROOT), scheme=h3sim.load_scheme("fifo"), network=h3sim.load_network("fibre")
    )
    (connection,) = run_spec(spec).connections
    assert connection.number == 0
    assert connection.opened_at_ns == 0


def test_a_load_of_too_many_events_names_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "max_events", lambda n_packets: 5 + 0 * n_packets)
    with pytest.raises(StalledError) as caught:
        h3sim.simulate(page_of(ROOT), scheme="fifo", network="fibre")
    assert caught.value.n_events == 5
    assert "processes" not in str(caught.value)


def test_a_connection_opens_when_its_first_request_is_due() -> None:
    late = {"id": "far", "host": "far", "discovered": {"by": "/", "at": "complete"}}
    page = replace(page_of(ROOT, {**ROOT, **late}), hosts=(Host(name="far"),))
    load = h3sim.simulate(page, scheme="fifo", network="cable", connections="per-host")
    first, second = load.connections
    document, _ = load.timings
    assert first.opened_at_ns == 0
    assert second.opened_at_ns == ms(document.finished_ms) > 0


def test_simultaneous_events_run_in_the_documented_order() -> None:
    # docs/architecture.md, "Event order": a user's process comes last.
    assert [each.value for each in EventPriority] == [0, 1, 2, 3, 4, 5, 6]
    environment, log = LoadEnvironment(), Entries()
    names = ["DELIVERY", "REQUEST", "ARRIVAL", "RESPONSE", "CLOSE", "SEND", "PROCESS"]
    for name in reversed(names):
        environment.at(5, EventPriority[name], noting(log), name)
    environment.run_load()
    assert log == [(5, name) for name in names]


class _UntilSignal(Policy):
    """A policy whose requests have no priority, and whose changes are empty updates of stream 0."""

    def on_requested(self, stream_id: int, resource: Resource) -> list[tuple[int, Signal]]:
        del resource
        return [(stream_id, Eps())]

    def on_changed(self, resource: Resource | None, change: Any) -> list[tuple[int, Signal]]:
        del resource, change
        return [(0, Eps())]


def test_an_update_is_a_signal_even_if_it_is_empty_and_a_request_without_a_field_is_none() -> None:
    streams: Any = SignalLog()
    signalling = OracleSignalling(_UntilSignal(), streams, WithoutSignal.INCREMENTAL_UNTIL_SIGNAL)
    resource = Resource(id="r", kind=Kind.IMAGE, size_bytes=9)
    for stream_id in (0, 4):
        signalling.on_request_arrived(stream_id, resource, 1)
    signalling.on_changed(resource, UNCHANGED, 2)
    signalling.on_request_arrived(8, resource, 3)
    assert streams.calls == [
        *[("open", 0, Eps(incremental=True)), ("open", 4, Eps(incremental=True))],
        *[("update", 0, Eps()), ("open", 8, Eps())],
    ]
