"""Two ends over links, when they are woken and when they send; the ends themselves are scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.engine.endpoints import (
    EndpointDriver,
    EndpointOnLink,
    PacketLog,
    QuicTransport,
    TcpTransport,
)
from h3sim.engine.environment import EventPriority, LoadEnvironment
from h3sim.http import StreamSender
from h3sim.schedulers import FifoScheduler
from h3sim.trace import RecoveryRow
from h3sim.transport import Role
from h3sim.transport.packets import WirePacket
from h3sim.values.versions import build

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.skipif(build() == "compiled", reason="no part of it can be replaced")

Log = list[tuple[int, Any]]
DELAY_NS = 10
OVERHEAD_BYTES = 28


def packet(
    number: int, sent_at_ns: int = 0, frames: Iterable[tuple[int, int, int]] = ()
) -> WirePacket:
    """Return a packet of 100 bytes."""
    made = WirePacket()
    made.number, made.sent_at_ns, made.size_bytes = number, sent_at_ns, 100
    made.frames, made.first_row = list(frames), 0
    return made


class ScriptedEnd:
    """Sends the packets that it was given, once; notes its calls, and asks for a timer."""

    is_ready = False
    has_probed = False

    def __init__(self, log: Log, name: str = "") -> None:
        self._log, self._name = log, name
        self.waiting: list[WirePacket] = []
        self.timer_ns: int | None = None
        self.ready_from: int | None = None
        """The number of the packet that ends the handshake."""

    def on_packet(self, packet: WirePacket, now_ns: int) -> list[tuple[int, int, int]]:
        self._log.append((now_ns, f"{self._name}packet {packet.number}"))
        self.is_ready |= packet.number == self.ready_from
        return packet.frames

    def on_timer(self, now_ns: int) -> None:
        self._log.append((now_ns, f"{self._name}timer"))
        self.timer_ns = None

    def timer_at_ns(self) -> int | None:
        return self.timer_ns

    def packets_to_send(self, now_ns: int) -> list[WirePacket]:
        self._log.append((now_ns, f"{self._name}flush"))
        waiting, self.waiting = self.waiting, []
        return waiting

    def ack_ranges(self, packet: WirePacket) -> tuple[tuple[int, int], ...]:
        return ((packet.number, packet.number),)

    def recovery_row(self, now_ns: int) -> RecoveryRow:
        return RecoveryRow(now_ns, 0, 0, 0, 0, 0, 0, 0, ())


class DelayLink:
    """Carries each packet with the same delay, except lost ones."""

    handles_packets = False
    has_dropped = False

    def __init__(self, *lost: int) -> None:
        self.sizes: list[int] = []
        self._lost = lost

    def send(self, now_ns: int, size_bytes: int) -> int | None:
        self.sizes.append(size_bytes)
        return None if len(self.sizes) - 1 in self._lost else now_ns + DELAY_NS


class QueueLink(DelayLink):
    """Holds packets until they are released."""

    handles_packets = True

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[WirePacket, Any]] = []
        self.schedule: Any = None
        self.n_drained = 0

    def attach(self, schedule: Any, rank: int) -> None:
        self.schedule = (schedule, rank)

    def send_packet(self, now_ns: int, packet: WirePacket, size_bytes: int, flow: Any) -> None:
        self.sizes.append(size_bytes)
        self.held.append((packet, flow))

    def drain(self) -> None:
        self.n_drained += 1


class SentLog:
    """Notes what is sent, and what is known later."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, int, int | None]] = []
        self.departed: list[tuple[int, int]] = []

    def on_sent(self, packet: WirePacket, now_ns: int, arrives_at_ns: int | None) -> None:
        self.sent.append((packet.number, now_ns, arrives_at_ns))

    def on_departed(self, packet: WirePacket, arrives_at_ns: int) -> None:
        self.departed.append((packet.number, arrives_at_ns))


def driven(link: Any = None, **options: Any) -> tuple[Any, Any, Any, Log]:
    """Return an environment, a driver, its scripted end and the log of both."""
    log: Log = []
    end: Any = ScriptedEnd(log)
    environment = LoadEnvironment()
    own_link: Any = DelayLink() if link is None else link
    on_link = EndpointOnLink(end, own_link, OVERHEAD_BYTES)
    driver = EndpointDriver(on_link, environment, **{"log": SentLog(), **options})
    return environment, driver, end, log


def noting(log: Log) -> Any:
    return lambda value, now_ns: log.append((now_ns, value))


class TestSending:
    def test_what_leaves_arrives_at_the_peer_unless_it_is_lost(self) -> None:
        link, sent = DelayLink(1), SentLog()
        environment, driver, end, _ = driven(link, log=sent)
        peer = EndpointDriver(EndpointOnLink(end, link, 0), environment, log=SentLog())  # type: ignore[arg-type]
        arrived: Log = []
        peer.arrivals.take = lambda packet, now_ns: arrived.append((now_ns, packet.number))
        driver.face(peer)
        end.waiting = [packet(0), packet(1), packet(2)]
        driver.flush(0)
        environment.run_load()
        assert link.sizes == [100 + OVERHEAD_BYTES] * 3
        assert sent.sent == [(0, 0, DELAY_NS), (1, 0, None), (2, 0, DELAY_NS)]
        assert arrived == [(DELAY_NS, 0), (DELAY_NS, 2)]

    def test_a_link_that_handles_packets_reports_their_fates_later(self) -> None:
        link, sent = QueueLink(), SentLog()
        environment, driver, end, _ = driven(link, log=sent)
        arrived: Log = []
        driver.arrivals.take = lambda packet, now_ns: arrived.append((now_ns, packet.number))
        assert link.schedule == (environment.at, EventPriority.DELIVERY)
        end.waiting = [packet(0), packet(1)]
        driver.flush(3)
        assert link.sizes == [100 + OVERHEAD_BYTES] * 2
        assert sent.sent == [(0, 3, None), (1, 3, None)]
        for (held, flow), arrives_at_ns in zip(link.held, (None, 40), strict=True):
            flow.on_departed(held, arrives_at_ns)
        environment.run_load()
        assert sent.departed == [(1, 40)]
        assert arrived == [(40, 1)]

    @pytest.mark.parametrize(("has_overrun", "n_drained"), [(False, 1), (True, 0)])
    def test_a_queue_is_drained_at_the_end_of_a_load(
        self, has_overrun: bool, n_drained: int
    ) -> None:
        link = QueueLink()
        environment, driver, _, _ = driven(link)
        environment.has_overrun = has_overrun
        driver.drain()
        assert link.n_drained == n_drained

    def test_a_link_without_a_queue_has_nothing_to_drain(self) -> None:
        link = DelayLink()
        environment, driver, _, log = driven(link)
        driver.drain()
        environment.run_load()
        assert link.sizes == []
        assert log == []

    def test_flushes_of_an_instant_are_one_and_the_last_of_it(self) -> None:
        environment, driver, _, log = driven()

        def ask(value: None, now_ns: int) -> None:
            driver.flush_soon(now_ns)
            driver.flush_soon(now_ns)

        for at_ns in (5, 9):
            environment.at(at_ns, EventPriority.DELIVERY, ask, None)
            environment.at(at_ns, EventPriority.CLOSE, noting(log), "other")
        environment.run_load()
        assert log == [(5, "other"), (5, "flush"), (9, "other"), (9, "flush")]


class TestTimers:
    def test_a_timer_wakes_the_end_which_may_send_then(self) -> None:
        woken: list[int] = []
        environment, driver, end, log = driven(on_woken=woken.append)
        end.timer_ns = 7
        driver.flush(0)
        environment.run_load()
        assert log == [(0, "flush"), (7, "timer"), (7, "flush")]
        assert woken == [7]

    def test_a_timer_that_was_postponed_wakes_it_at_the_later_time_alone(self) -> None:
        environment, driver, end, log = driven()
        end.timer_ns = 7
        driver.flush(0)
        end.timer_ns = 12
        driver.flush(3)
        environment.run_load()
        assert log[2:] == [(12, "timer"), (12, "flush")]

    def test_an_earlier_timer_takes_the_place_of_a_later_one(self) -> None:
        environment, driver, end, log = driven(wakes_idle=True)
        end.timer_ns = 12
        driver.flush(0)
        end.timer_ns = 7
        driver.flush(3)
        environment.run_load()
        assert log[2:] == [(7, "timer"), (7, "flush")]

    @pytest.mark.parametrize(("wakes_idle", "woken"), [(False, []), (True, ["timer", "flush"])])
    def test_a_timer_that_is_off_wakes_only_who_asks_for_that(
        self, wakes_idle: bool, woken: list[str]
    ) -> None:
        environment, driver, end, log = driven(wakes_idle=wakes_idle)
        end.timer_ns = 7
        driver.flush(0)
        end.timer_ns = None
        driver.flush(3)
        environment.run_load()
        assert [(7, what) for what in woken] == log[2:]

    def test_after_a_timer_that_was_off_the_next_one_is_set(self) -> None:
        environment, driver, end, log = driven()
        end.timer_ns = 7
        driver.flush(0)
        end.timer_ns = None
        driver.flush(3)
        environment.run_load()
        end.timer_ns = 20
        driver.flush(8)
        environment.run_load()
        assert log[3:] == [(20, "timer"), (20, "flush")]

    def test_a_timer_that_is_overdue_is_due_now(self) -> None:
        environment, driver, end, log = driven()
        environment.advance_to(9)
        end.timer_ns = 7
        driver.flush(9)
        environment.run_load()
        assert log == [(9, "flush"), (9, "timer"), (9, "flush")]

    def test_a_change_of_this_instant_counts_before_its_flush(self) -> None:
        environment, driver, end, log = driven()
        end.timer_ns = 7
        driver.flush(0)

        def change(value: None, now_ns: int) -> None:
            end.timer_ns = 15
            driver.flush_soon(now_ns)

        environment.at(7, EventPriority.DELIVERY, change, None)
        environment.run_load()
        assert log == [(0, "flush"), (7, "flush"), (15, "timer"), (15, "flush")]

    @pytest.mark.parametrize(("timer_ns", "is_spared"), [(9, False), (10, True), (11, True)])
    def test_a_packet_that_arrives_before_the_timer_postpones_it(
        self, timer_ns: int, is_spared: bool
    ) -> None:
        environment, driver, end, log = driven()

        def take(packet: WirePacket, now_ns: int) -> None:
            end.on_packet(packet, now_ns)
            end.timer_ns = 30
            driver.flush(now_ns)

        driver.arrivals.take = take
        end.waiting, end.timer_ns = [packet(0)], timer_ns
        driver.flush(0)
        environment.run_load()
        early = [] if is_spared else [(9, "timer"), (9, "flush")]
        arrival = [(DELAY_NS, "packet 0"), (DELAY_NS, "flush")]
        assert log == [(0, "flush"), *early, *arrival, (30, "timer"), (30, "flush")]

    def test_one_that_arrives_behind_others_of_now_does_so_as_well(self) -> None:
        environment, driver, end, log = driven(wakes_idle=True)

        def take(packet: WirePacket, now_ns: int) -> None:
            end.on_packet(packet, now_ns)
            end.timer_ns = None if packet.number == 2 else 15
            driver.flush(now_ns)

        driver.arrivals.take = take
        end.waiting = [packet(0), packet(1)]
        driver.flush(0)
        end.waiting = [packet(2)]
        driver.flush(1)
        environment.run_load()
        assert [what for _, what in log if what != "flush"] == [f"packet {n}" for n in range(3)]

    def test_the_timer_is_set_anew_when_only_packets_of_now_are_under_way(self) -> None:
        environment, driver, end, log = driven()

        def take(packet: WirePacket, now_ns: int) -> None:
            end.on_packet(packet, now_ns)
            end.timer_ns = 15 if packet.number else 12
            driver.flush(now_ns)

        driver.arrivals.take = take
        end.waiting, end.timer_ns = [packet(0), packet(1)], 40
        driver.flush(0)
        environment.run_load()
        # The first of both asks for 12, and the second arrives at 10, too: it asks for 15.
        assert log[-2:] == [(15, "timer"), (15, "flush")]
        assert (12, "timer") not in log


class Factory:
    """Builds scripted ends of a connection."""

    turn_bytes = 1000

    def __init__(self, log: Log) -> None:
        self.ends: dict[Role, Any] = {
            role: ScriptedEnd(log, f"{role.name.lower()} ") for role in Role
        }
        self.links: dict[Role, Any] = {}

    def windows(self, role: Role) -> tuple[int, int]:
        del role
        return 10_000, 10_000

    def end(self, role: Role, source: Any, *, rtt_ns: int | None = None) -> EndpointOnLink:
        del source, rtt_ns
        return EndpointOnLink(self.ends[role], self.links[role], 0)


class Application:
    """Notes what it is told."""

    def __init__(self, log: Log, environment: LoadEnvironment) -> None:
        self._log, self._environment = log, environment

    def on_connected(self, now_ns: int) -> None:
        self._log.append((now_ns, "connected"))
        # As a browser does: it requests in events of that instant.
        self._environment.at(now_ns, EventPriority.REQUEST, noting(self._log), "requests")

    def on_request_arrived(self, stream_id: int, now_ns: int) -> None:
        self._log.append((now_ns, f"request {stream_id}"))

    def on_signal_arrived(self, number: int, now_ns: int) -> None:
        self._log.append((now_ns, f"signal {number}"))

    def on_delivered(self, stream_id: int, contiguous: int, now_ns: int) -> None:
        self._log.append((now_ns, f"delivered {stream_id} up to {contiguous}"))

    def on_drained(self) -> None:
        self._log.append((self._environment.now_ns, "drained"))

    def resource_of(self, stream_id: int) -> int:
        return stream_id // 4


class Connection:
    """A transport between scripted ends."""

    def __init__(
        self, make: Any = QuicTransport, *, record_packets: bool = False, link: Any = DelayLink
    ) -> None:
        self.log: Log = []
        self.environment = LoadEnvironment()
        self.factory: Any = Factory(self.log)
        self.factory.links = {role: link() for role in Role}
        self.streams = StreamSender(FifoScheduler(), turn_bytes=1000)
        self.packets = PacketLog(record_packets=record_packets)
        self.transport = make(self.environment, self.factory, self.streams, self.packets)
        self.client, self.server = (self.factory.ends[role] for role in (Role.CLIENT, Role.SERVER))

    def begin(self) -> None:
        self.transport.begin(Application(self.log, self.environment))

    def arrive_down(self, at_ns: int, *packets: WirePacket) -> None:
        """Let packets of the server leave so that they arrive at that time."""

        def send(value: None, now_ns: int) -> None:
            self.server.waiting += packets
            self.transport.pump()

        self.environment.at(at_ns - DELAY_NS, EventPriority.DELIVERY, send, None)

    def arrive_up(self, at_ns: int, *packets: WirePacket) -> None:
        """Let packets of the client leave with a request, so that they arrive at that time."""

        def send(value: None, now_ns: int) -> None:
            self.client.waiting += packets
            self.transport.send_request(400, 10)

        self.environment.at(at_ns - DELAY_NS, EventPriority.DELIVERY, send, None)

    def run(self) -> Log:
        """Run all events; return what happened at the client's side, and the markers."""
        self.environment.run_load()
        return [entry for entry in self.log if "server" not in entry[1]]

    def mark(self, at_ns: int) -> None:
        """Note a request of the client at that time: flushes of this instant come later."""
        self.environment.at(at_ns, EventPriority.REQUEST, noting(self.log), "...")


TRANSPORTS = [QuicTransport, TcpTransport]


@pytest.mark.parametrize("make", TRANSPORTS)
class TestOpening:
    def test_an_end_that_is_ready_is_connected_at_once(self, make: Any) -> None:
        connection = Connection(make)
        connection.client.is_ready = True
        connection.begin()
        assert connection.log == [(0, "connected")]
        connection.arrive_down(20, packet(1, 10))
        connection.mark(20)
        log = connection.run()
        # It is open, so the first packet is answered before anything else happens.
        assert log[-3:] == [(20, "client packet 1"), (20, "client flush"), (20, "...")]

    def test_the_handshake_begins_at_the_end_of_the_instant(self, make: Any) -> None:
        connection = Connection(make)
        connection.begin()
        connection.mark(0)
        assert connection.run() == [(0, "..."), (0, "client flush")]

    def test_it_is_connected_once_and_answers_behind_the_first_requests(self, make: Any) -> None:
        connection = Connection(make)
        connection.client.ready_from = 2
        connection.begin()
        # The packets of the server's flight; the last one left as the handshake ended.
        connection.arrive_down(20, packet(1, 10))
        connection.arrive_down(30, packet(2, 20), packet(3, 20))
        connection.arrive_down(40, packet(4, 30))
        connection.mark(40)
        log = connection.run()
        assert log[1:] == [
            *[(20, "client packet 1"), (20, "client flush")],
            *[(30, "client packet 2"), (30, "connected"), (30, "client packet 3")],
            *[(30, "requests"), (30, "client flush")],
            *[(40, "client packet 4"), (40, "..."), (40, "client flush")],
        ]

    def test_it_is_open_from_the_first_packet_on_that_was_sent_later(self, make: Any) -> None:
        connection = Connection(make)
        connection.client.ready_from = 1
        connection.begin()
        connection.arrive_down(30, packet(1, 20))
        connection.arrive_down(41, packet(2, 31))
        # One of the flight, which was overtaken.
        connection.arrive_down(50, packet(0, 20))
        for at_ns in (41, 50):
            connection.mark(at_ns)
        log = connection.run()
        assert [entry for entry in log if entry[0] > 30] == [
            *[(41, "client packet 2"), (41, "client flush"), (41, "...")],
            *[(50, "client packet 0"), (50, "client flush"), (50, "...")],
        ]

    def test_a_packet_that_leaves_it_unready_connects_nothing(self, make: Any) -> None:
        connection = Connection(make)
        connection.begin()
        connection.arrive_down(20, packet(1, 10))
        assert (20, "connected") not in connection.run()


class TestArrivals:
    def test_requests_and_signals_are_told_when_they_are_complete(self) -> None:
        connection = Connection()
        connection.client.is_ready = True
        connection.begin()
        transport = connection.transport
        transport.send_request(4, 50)
        transport.send_signal(1, 20)
        transport.send_request(8, 20)
        # Frames 0 and 1 are those of streams 2 and 6: a client's unidirectional ones.
        connection.arrive_up(20, packet(0, 0, [(4, 0, 30), (6, 0, 20), (8, 0, 20)]))
        connection.arrive_up(30, packet(1, 0, [(4, 30, 20), (8, 0, 20)]))
        connection.environment.run_load()
        told = [entry for entry in connection.log if entry[1].startswith(("request ", "signal"))]
        assert told == [(20, "signal 1"), (20, "request 8"), (30, "request 4")]

    def test_the_server_answers_a_packet_when_it_knows_all_of_it(self) -> None:
        connection = Connection()
        connection.client.is_ready = True
        connection.begin()
        for stream_id in (0, 4):
            connection.transport.send_request(stream_id, 10)
        connection.arrive_up(20, packet(0, 0, [(0, 0, 10), (4, 0, 10)]))
        connection.mark(20)
        connection.environment.run_load()
        assert [what for at_ns, what in connection.log if at_ns == 20] == [
            *("server packet 0", "request 0", "request 4", "server flush", "...")
        ]

    @pytest.mark.parametrize("make", TRANSPORTS)
    def test_the_frames_of_a_packet_are_delivered_and_have_rows(self, make: Any) -> None:
        connection = Connection(make)
        connection.client.is_ready = True
        connection.begin()
        connection.arrive_down(20, packet(0, 10, [(0, 0, 30), (4, 0, 20), (8, 0, 5)]))
        log = connection.run()
        delivered = [what for _, what in log if what.startswith("delivered")]
        assert delivered == [f"delivered {id_} up to {n}" for id_, n in ((0, 30), (4, 20), (8, 5))]
        rows = connection.transport.carried().packet_rows
        assert [tuple(row) for row in rows] == [
            (10, 20, stream_id, 0, n_bytes, 0, 20)
            for stream_id, n_bytes in ((0, 30), (4, 20), (8, 5))
        ]

    def test_what_was_watched_is_told_from_so_many_bytes_on(self) -> None:
        for make in TRANSPORTS:
            connection = Connection(make)
            connection.client.is_ready = True
            connection.begin()
            connection.transport.watch(0, 50)
            for number, offset in enumerate((0, 25, 50)):
                frames = [(0, offset, 25)]
                connection.arrive_down(20 + number, packet(number, 10 + number, frames))
            told = [entry for entry in connection.run() if entry[1].startswith("delivered")]
            assert told == [(21, "delivered 0 up to 50"), (22, "delivered 0 up to 75")]

    def test_the_queues_of_both_directions_are_drained_before_rows_are_read(self) -> None:
        connection = Connection(link=QueueLink)
        connection.begin()
        connection.transport.carried()
        assert [link.n_drained for link in connection.factory.links.values()] == [1, 1]

    def test_the_state_of_recovery_is_noted_with_packets_and_timers(self) -> None:
        connection = Connection(record_packets=True)
        connection.client.is_ready = True
        connection.begin()
        connection.server.timer_ns = 55
        connection.arrive_up(20, packet(0))
        connection.environment.run_load()
        recovery = connection.transport.carried().recovery
        assert [row.at_ns for row in recovery] == [20, 55]
