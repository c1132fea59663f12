"""How a QUIC end fills its window, paces it, and when its packets carry ACKs; 1000 bytes each."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.endpoint import Source
from h3sim.transport.pacing import BucketPacer
from h3sim.transport.quic import (
    Handshake,
    HandshakeMode,
    QuicEndpoint,
    QuicPacket,
    QuicSettings,
    Role,
)
from h3sim.transport.quic.recovery import AckState
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow

FULL = 1000


class Endless(Source):
    """A stream that always has something to send."""

    def __init__(self) -> None:
        self.has_data = True
        self.next = 0
        self.lost: list[Any] = []

    def take(self, max_bytes: Any = None, header: Any = None, min_bytes: int = 0) -> Any:
        n_bytes = max_bytes - (header.measure(0, self.next) if header else 0)
        self.next += n_bytes
        return 0, self.next - n_bytes, n_bytes

    def peek(self) -> Any:
        return 0, self.next

    def on_acked(self, stream_id: int, offset: Any, n_bytes: int) -> None:
        pass

    def on_lost(self, stream_id: int, offset: Any, n_bytes: int) -> None:
        self.lost.append(offset)

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        pass


class Window(FixedWindow):
    def on_lost(self, packets: Any, now_ns: int, bytes_in_flight: Any, next_number: Any) -> None:
        self.lost.append([packet.number for packet in packets])


def end(window_bytes: int, *, source: Any = None, **settings: Any) -> Any:
    made = QuicSettings(datagram_bytes=FULL, **settings)
    return QuicEndpoint(
        made,
        Window(window_bytes),
        source or Endless(),
        Handshake(made, Role.SERVER, HandshakeMode.NONE),
        peer_max_ack_delay_ns=0,
        path_rtt_ns=ms(100),
    )


def source_of(endpoint: Any) -> Any:
    """Return what an endpoint sends from."""
    return endpoint._source


def sizes(packets: Any) -> list[Any]:
    return [packet.size_bytes for packet in packets]


def peer_packet(number: Any, spans: Any = (), *, is_ack_eliciting: bool = True) -> Any:
    ack = tuple(spans) if spans else None
    return QuicPacket(number, 0, 60, [], ack, [], is_ack_eliciting=is_ack_eliciting)


@pytest.mark.parametrize(
    ("window", "settings", "expected"),
    [
        (2500, {}, [FULL, FULL]),
        (2500, {"partial_datagrams": True}, [FULL, FULL, 500]),
        (2500, {"may_exceed_cwnd": True}, [FULL, FULL, FULL]),
        (2064, {"may_exceed_cwnd": True}, [FULL, FULL, FULL]),
        (2063, {"may_exceed_cwnd": True}, [FULL, FULL]),
        (2063, {"partial_datagrams": True}, [FULL, FULL]),
    ],
)
def test_what_is_left_of_a_window_waits_or_is_filled_or_overshot(
    window: Any, settings: Any, expected: Any
) -> None:
    assert sizes(end(window, **settings).packets_to_send(0)) == expected


@pytest.mark.parametrize("free", [0, 1])
def test_when_the_loss_timer_runs_out_packets_may_leave_whatever_the_window(free: Any) -> None:
    server = end(3000, loss_timer_packets=free)
    server.packets_to_send(0)
    server.on_packet(peer_packet(0, [(1, 1)], is_ack_eliciting=False), ms(100))
    server.packets_to_send(ms(100))
    server._controller.congestion_window = 1000  # the loss will have cut it
    due_at_ns = server.timer_at_ns()
    assert due_at_ns == ms(112.5)  # 9/8 of the round trip
    server.on_timer(due_at_ns)
    assert len(server.packets_to_send(due_at_ns)) == free
    assert not server.packets_to_send(due_at_ns)


@pytest.mark.parametrize(("bundles", "carries"), [(True, True), (False, False)])
def test_an_ack_goes_with_the_next_packet_or_when_it_is_due(bundles: Any, carries: Any) -> None:
    server = end(2000, bundles_acks=bundles)
    server.on_packet(peer_packet(0), 0)
    first, second = server.packets_to_send(ms(1))
    assert (first.ack is not None, second.ack) == (carries, None)
    late = server.packets_to_send(ms(25))
    assert [packet.frames for packet in late] == ([] if carries else [[]])


def test_where_gaps_do_not_count_an_ack_waits_for_its_delay() -> None:
    at_once = AckState(every=9, max_delay_ns=50)
    later = AckState(every=9, max_delay_ns=50, gaps_at_once=False)
    for state in (at_once, later):
        state.on_packet(0, 100, is_ack_eliciting=True)
        state.on_packet(2, 110, is_ack_eliciting=True)
    assert (at_once.due_at_ns, later.due_at_ns) == (110, 150)


def acks_of(client: Any, n_packets: int) -> Any:
    """Let packets come with every third missing; return the client's packets."""
    sent = []
    for number in range(n_packets):
        if number % 3 != 2:
            client.on_packet(peer_packet(number), ms(number))
            sent += client.packets_to_send(ms(number))
    return sent


def silent(**settings: Any) -> Any:
    """Return an end that has nothing to say but what it received."""
    client = end(0, ack_every=1, **settings)
    source_of(client).take = lambda *_: None
    return client


def test_every_so_manieth_packet_whose_ack_has_several_spans_asks_for_an_ack() -> None:
    sent = acks_of(silent(ack_ping_every=4), 20)
    assert [packet.number for packet in sent if packet.is_ack_eliciting] == [4, 8, 12]
    assert not any(packet.is_ack_eliciting for packet in acks_of(silent(), 20))


def test_an_ack_that_was_acknowledged_is_not_repeated() -> None:
    client = silent(ack_ping_every=4)
    acks_of(client, 7)
    ping = client.recovery.oldest
    assert ping is not None
    assert ping.ack == ((6, 6), (3, 4), (0, 1))
    client.on_packet(peer_packet(7, [(4, 4)]), ms(50))
    assert client.packets_to_send(ms(50))[-1].ack == ((7, 7),)


def test_a_full_bucket_lets_a_quarter_of_the_window_go_at_once() -> None:
    pacer = BucketPacer(datagram_bytes=1000)
    pacer.begin(window_bytes=20_000, rate_bps=8_000_000)  # a packet per millisecond
    sent = 0
    while pacer.ready_at_ns(ms(50)) <= ms(50):
        pacer.on_sent(ms(50))
        sent += 1
    assert sent == 5


def test_a_packet_may_leave_whenever_something_happens() -> None:
    pacer = BucketPacer(datagram_bytes=1000)
    pacer.begin(window_bytes=1000, rate_bps=8_000_000)
    for _ in range(2):
        pacer.on_sent(ms(50))
    assert pacer.ready_at_ns(ms(50)) == ms(51)
    assert pacer.ready_at_ns(ms(50) + 1) == ms(50) + 1


def test_a_paced_end_sets_its_timer_to_its_next_packet() -> None:
    server = end(10_000, pacing_gain=1.0, pacing_bucket="aioquic")
    assert len(server.packets_to_send(ms(500))) == 3  # 2.5 packets' time: a rest counts as one
    assert server.timer_at_ns() == ms(510)


def test_an_unknown_bucket_is_refused() -> None:
    with pytest.raises(NetworkError, match=r"pacing_bucket: 'round' .*leaky, aioquic"):
        QuicSettings(pacing_bucket="round")  # type: ignore[arg-type]
