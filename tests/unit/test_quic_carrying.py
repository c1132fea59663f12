"""Packets of a QUIC end that carry more than stream bytes: ACKs, limits, probes."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.packets import ECT, NOT_ECT
from h3sim.transport.quic import (
    Handshake,
    HandshakeMode,
    QuicEndpoint,
    QuicPacket,
    QuicSettings,
    Role,
)
from h3sim.transport.quic.endpoint import EventLoop, TimerGranularityEndpoint
from h3sim.transport.quic.packer import _resend_data
from h3sim.values.units import ms
from tests.unit.test_quic_handshake import SETTINGS, give
from tests.unit.test_quic_handshake import end as handshaking
from tests.unit.test_quic_packing import idle, stream_packet
from tests.unit.test_quic_windows import FULL, Endless, Window, end, peer_packet, sizes, source_of


class Asked(Endless):
    """Gives 100 bytes at a time and notes how many had to fit."""

    def __init__(self) -> None:
        super().__init__()
        self.min_bytes: list[int] = []

    def take(self, max_bytes: Any = None, header: Any = None, min_bytes: int = 0) -> Any:
        self.min_bytes.append(min_bytes)
        header.measure(0, self.next)
        self.next += 100
        return 0, self.next - 100, 100


def test_further_frames_of_a_packet_carry_32_bytes_at_least_and_the_first_one() -> None:
    server = end(FULL, source=Asked())
    server.on_packet(peer_packet(0), 0)
    [packet] = server.packets_to_send(0)
    assert len(packet.frames) == len(source_of(server).min_bytes) == 9
    assert source_of(server).min_bytes == [1] + [32] * 8


def test_with_an_ack_the_rest_of_a_window_is_filled_from_32_bytes_of_a_frame_on_too() -> None:
    # As above: a header of 41, and 32.
    settings = {"connection_id_bytes": 20, "packet_number_bytes": 4, "partial_datagrams": True}
    for window, expected in ((1073, [FULL, 73]), (1072, [FULL])):
        server = end(window, **settings)
        server.on_packet(peer_packet(0), 0)
        assert sizes(server.packets_to_send(0)) == expected


def test_a_packet_with_an_ack_marks_the_window_as_used_again() -> None:
    server = end(FULL)
    server.recovery.mark_app_limited()
    server.on_packet(peer_packet(0), 0)
    assert len(server.packets_to_send(0)) == 1
    assert not server.recovery.is_cwnd_underutilized


def test_an_ack_alone_takes_limits_with_it_that_wait() -> None:
    server = end(FULL - 1, stream_window_bytes=100)
    for number in range(2):
        server.on_packet(stream_packet(number, 60 * number, 60), 0)
    [packet] = server.packets_to_send(0)
    # The newest of the stream alone: a lower one would say nothing (RFC 9000 § 19.10).
    assert (packet.frames, packet.ack, packet.limits) == ([], ((0, 1),), [(0, 220)])
    assert (packet.size_bytes, packet.is_ack_eliciting) == (27 + 5 + 6, True)


@pytest.mark.parametrize("ack_ping_every", [0, 1])
def test_packets_are_numbered_consecutively_and_carry_their_ack_delay(
    ack_ping_every: int,
) -> None:
    client = idle(10_000, ack_ping_every=ack_ping_every)
    client.packets_to_send(0)
    client.on_packet(peer_packet(0), ms(3))
    [first] = client.packets_to_send(ms(28))
    client.on_packet(peer_packet(1), ms(30))
    source_of(client).has_data = True
    second = client.packets_to_send(ms(31))[0]
    assert (first.number, second.number) == (0, 1)
    assert (first.ack_delay_ns, second.ack_delay_ns) == (ms(25), ms(1))


def test_an_end_that_does_not_bundle_sends_an_ack_with_the_first_packet_after_it_is_due() -> None:
    server = end(10 * FULL, bundles_acks=False)
    server.on_packet(peer_packet(0), 0)
    assert [packet.ack for packet in server.packets_to_send(ms(25) - 1)] == [None] * 10
    server._controller.congestion_window = 12 * FULL
    packets = server.packets_to_send(ms(25))
    assert [packet.ack for packet in packets] == [((0, 0),), None]


def test_a_probe_carries_what_is_new_or_else_what_is_oldest_with_twelve_bytes_a_frame() -> None:
    """RFC 9002 § 6.2.4."""
    server = end(3 * FULL)
    first = server.packets_to_send(0)[0]
    due_ns = server.timer_at_ns()
    server.on_timer(due_ns)
    probes = server.packets_to_send(due_ns)
    assert [packet.frames for packet in probes] == [[(0, 2903, 967)], [(0, 3870, 967)]]
    assert sizes(probes) == [FULL, FULL]
    source_of(server).has_data = False
    source_of(server).take = lambda *_: None
    due_ns = server.timer_at_ns()
    server.on_timer(due_ns)
    again = server.packets_to_send(due_ns)
    assert [packet.frames for packet in again] == [first.frames] * 2
    assert sizes(again) == [27 + first.frames[0][2] + 12] * 2


def test_who_has_nothing_to_send_and_whose_pace_is_not_yet_over_is_not_held_back_by_that() -> None:
    """10 packets in 100 ms, one at a time: the second might leave at 10 ms."""
    server = end(10 * FULL, pacing_gain=1.0, pacing_burst_packets=1)
    assert len(server.packets_to_send(0)) == 1
    source_of(server).has_data = False
    assert server.packets_to_send(ms(10) - 1) == []
    assert (server.recovery.is_cwnd_underutilized, server.timer_at_ns()) == (False, ms(10))
    assert server.packets_to_send(ms(10)) == []
    assert server.recovery.is_cwnd_underutilized


def test_an_aioquic_bucket_that_is_empty_holds_back_an_end_without_data_too() -> None:
    """As above: 3 of 10 packets at once, the next 10 ms later unless something happens before."""
    server = end(10 * FULL, pacing_gain=1.0, pacing_bucket="aioquic")
    assert len(server.packets_to_send(ms(500))) == 3
    source_of(server).has_data = False
    assert server.packets_to_send(ms(500)) == []
    assert (server.recovery.is_cwnd_underutilized, server.timer_at_ns()) == (False, ms(510))
    assert server.packets_to_send(ms(500) + 1) == []
    assert server.recovery.is_cwnd_underutilized


def test_an_end_without_data_waits_at_the_current_pace() -> None:
    """Of 20 ms in the bucket a packet takes 10, and 5 once the window has twice its size."""
    server = end(10 * FULL, pacing_gain=1.0, pacing_burst_packets=2)
    assert len(server.packets_to_send(0)) == 2
    assert server.timer_at_ns() == ms(10)
    source_of(server).has_data = False
    server._controller.congestion_window = 20 * FULL
    assert server.packets_to_send(ms(5)) == []
    assert (server.recovery.is_cwnd_underutilized, server.timer_at_ns()) == (False, ms(15))


@pytest.mark.parametrize("at_ms", [10, 20])
def test_an_ack_that_asks_for_one_is_not_paced_by_an_end_without_data(at_ms: int) -> None:
    """The bucket is empty at 10 ms; from then on an end without data does not pace."""
    settings = {"pacing_gain": 1.0, "pacing_burst_packets": 1}
    client = idle(10 * FULL, ack_every=1, ack_ping_every=1, **settings)
    source_of(client).has_data = True
    assert sizes(client.packets_to_send(0)) == [FULL]
    source_of(client).has_data = False
    for number in (0, 2):
        client.on_packet(peer_packet(number), ms(at_ms))
        (ack,) = client.packets_to_send(ms(at_ms))
    assert ack.is_ack_eliciting
    source_of(client).has_data = True
    assert sizes(client.packets_to_send(ms(at_ms))) == [FULL]


def test_a_lost_limit_is_announced_again_by_an_end_that_had_nothing_more_to_do() -> None:
    client = idle(9000, stream_window_bytes=100)
    sent = []
    for number in range(4):
        packet = stream_packet(number, 0, 60)
        packet.frames = [(4 * number, 0, 60)]
        client.on_packet(packet, 0)
        sent += client.packets_to_send(0)
    assert [packet.limits for packet in sent] == [[(4 * number, 160)] for number in range(4)]
    assert client.packets_to_send(ms(1)) == []
    client.on_packet(peer_packet(4, [(3, 3)], is_ack_eliciting=False), ms(100))
    assert client.recovery.take_lost() == [0]
    assert [packet.limits for packet in client.packets_to_send(ms(100))] == [[(0, 160)]]


def test_who_sent_the_last_of_its_data_is_held_back_by_nothing_once_its_pace_is_over() -> None:
    """As above, by an end that had nothing to send before: the window is not full then either."""
    server = idle(10 * FULL, pacing_gain=1.0, pacing_burst_packets=1)
    assert server.packets_to_send(0) == []
    assert server.recovery.is_cwnd_underutilized
    source_of(server).has_data = True
    assert len(server.packets_to_send(0)) == 1
    source_of(server).has_data = False
    assert (server.recovery.is_cwnd_underutilized, server.timer_at_ns()) == (False, ms(10))
    assert server.packets_to_send(ms(10)) == []
    assert server.recovery.is_cwnd_underutilized


def test_an_event_loop_that_is_done_when_a_timer_runs_out_runs_it_then() -> None:
    loop = EventLoop(granularity_ns=ms(1), processing_ns=ms(0.1))
    loop.on_packet(0)
    assert loop.wakes_at_ns(ms(0.1)) == ms(0.1)
    # A nanosecond later it has gone to sleep, for a millisecond and 50 microseconds.
    assert loop.wakes_at_ns(ms(0.1) + 1) == ms(0.1 + 1 + 0.05)


@pytest.mark.parametrize(("room", "carried"), [(12, []), (13, [1])])
def test_data_is_carried_again_from_a_byte_on(room: int, carried: list[int]) -> None:
    frames: list[Any] = []
    crypto: list[Any] = []
    streams = QuicPacket(0, 0, FULL, [(4, 50, 100)], None, [], True)
    handshake = QuicPacket(0, 0, FULL, [], None, [], True, [(7, 100)])
    assert _resend_data(streams, frames, [], 800, 800 + room) == (813 if carried else 800)
    assert _resend_data(handshake, [], crypto, 800, 800 + room) == (813 if carried else 800)
    assert [n_bytes for _, _, n_bytes in frames] == [n_bytes for _, n_bytes in crypto] == carried


def test_an_end_whose_limits_are_out_has_nothing_more_to_send() -> None:
    client = idle(9000, stream_window_bytes=100)
    client.on_packet(stream_packet(0, 0, 60), 0)
    assert len(client.packets_to_send(0)) == 1
    assert client.recovery.is_cwnd_underutilized


def test_a_limit_of_the_peer_reaches_the_source() -> None:
    client = idle(9000)
    limits: list[Any] = []
    source_of(client).on_limit = lambda *limit: limits.append(limit)
    packet = peer_packet(0)
    packet.limits = [(None, 900), (4, 700)]
    client.on_packet(packet, 0)
    client.on_packet(peer_packet(1), 0)
    assert limits == [(None, 900), (4, 700)]


class _Responds(Window):
    responds_to_ecn = True


@pytest.mark.parametrize("kind", [QuicEndpoint, TimerGranularityEndpoint])
@pytest.mark.parametrize(
    ("controller", "given", "ecn"),
    [
        (_Responds, {"has_ecn": True}, ECT),
        (_Responds, {"has_ecn": False}, NOT_ECT),
        (_Responds, {}, NOT_ECT),
        (Window, {"has_ecn": True}, NOT_ECT),
    ],
)
def test_packets_are_ecn_capable_if_the_path_and_the_controller_are(
    kind: Any, controller: Any, given: dict[str, bool], ecn: int
) -> None:
    settings = QuicSettings(datagram_bytes=FULL)
    handshake = Handshake(settings, Role.SERVER, HandshakeMode.NONE)
    server = kind(
        settings, controller(2 * FULL), Endless(), handshake, peer_max_ack_delay_ns=0, **given
    )
    assert [packet.ecn for packet in server.packets_to_send(0)] == [ecn] * 2


def test_a_packet_has_no_delay_no_mark_and_no_handshake_bytes_unless_they_are_given() -> None:
    packet = QuicPacket(0, 0, 9, [], None, (), False)
    assert (packet.ack_delay_ns, packet.ce_count, packet.ecn, packet.crypto) == (0, 0, NOT_ECT, ())


def test_acks_may_be_forgotten_where_every_packet_asks_for_one() -> None:
    server = end(2000, ack_ping_every=1)
    server.on_packet(peer_packet(0), 0)
    assert server.packets_to_send(0)[0].ack == ((0, 0),)
    server.on_packet(peer_packet(1, [(0, 0)]), ms(100))
    assert server.packets_to_send(ms(100))[0].ack == ((1, 1),)


@pytest.mark.parametrize(("allowance", "expected"), [(32, []), (33, [28])])
def test_a_probe_leaves_where_its_header_an_ack_and_a_ping_are_allowed(
    allowance: int, expected: list[int]
) -> None:
    """RFC 9000 § 8.1; the header takes 27 bytes, and five are kept for an ACK."""
    _, client = handshaking(Role.CLIENT)
    _, server = handshaking(Role.SERVER)
    give(client.packets_to_send(0), server, 0)
    assert len(server.packets_to_send(0)) == 1
    server._handshake._bytes_sent = 3 * SETTINGS.client_initial_bytes - allowance
    due_ns = server.timer_at_ns()
    server.on_timer(due_ns)
    assert sizes(server.packets_to_send(due_ns)) == expected
