"""What goes into a QUIC packet, byte by byte; header and tag take 27, a frame's header 4 to 8."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic import (
    Handshake,
    HandshakeMode,
    QuicEndpoint,
    QuicPacket,
    QuicSettings,
    Role,
)
from h3sim.transport.quic.packer import _resend_data
from h3sim.transport.quic.packets import StreamFrameHeader, crypto_header_bytes, varint_bytes
from h3sim.transport.quic.recovery import AckState
from h3sim.values.units import ms
from tests.unit.test_quic_handshake import SETTINGS, give
from tests.unit.test_quic_handshake import end as handshaking
from tests.unit.test_quic_recovery import acknowledge, sender
from tests.unit.test_quic_windows import (
    FULL,
    Endless,
    Window,
    end,
    peer_packet,
    silent,
    sizes,
    source_of,
)


@pytest.mark.parametrize(
    ("value", "n_bytes"),
    [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), (2**30 - 1, 4), (2**30, 8)],
)
def test_a_number_takes_one_two_four_or_eight_bytes(value: int, n_bytes: int) -> None:
    """RFC 9000 § 16: of 6, 14, 30 and 62 bits. A frame: type, id, offset if not 0, length of 2."""
    assert varint_bytes(value) == n_bytes
    header = StreamFrameHeader()
    assert header.measure(value, 0) == header.n_bytes == 1 + n_bytes + 2
    assert header.measure(0, value) == header.n_bytes == 1 + 1 + (n_bytes if value else 0) + 2
    assert crypto_header_bytes(value) == header.n_bytes


class Idle(Endless):
    """A source with nothing to send, whatever it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.has_data = False
        self.acked: list[Any] = []

    def take(self, max_bytes: Any = None, header: Any = None, min_bytes: int = 0) -> Any:
        return super().take(max_bytes, header, min_bytes) if self.has_data else None

    def on_acked(self, stream_id: int, offset: Any, n_bytes: int) -> None:
        self.acked.append(offset)


def idle(window_bytes: int, **settings: Any) -> Any:
    """Return an end whose handshake is over, and that has nothing to send."""
    made = QuicSettings(datagram_bytes=FULL, **settings)
    handshake = Handshake(made, Role.CLIENT, HandshakeMode.NONE)
    return QuicEndpoint(
        made, Window(window_bytes), Idle(), handshake, peer_max_ack_delay_ns=0, path_rtt_ns=ms(100)
    )


def stream_packet(number: int, offset: int, n_bytes: int) -> QuicPacket:
    return QuicPacket(number, 0, n_bytes + 40, [(0, offset, n_bytes)], None, [], True)


def test_what_is_carried_again_is_cut_at_the_room_that_is_left() -> None:
    # A repeated frame has a header of 12 bytes at most; 200 bytes of room are left.
    frames: list[Any] = []
    crypto: list[tuple[int, int]] = []
    oldest = QuicPacket(0, 0, FULL, [(4, 50, 100)], None, [], True, [(7, 1000), (0, 5)])
    assert _resend_data(oldest, frames, crypto, 800, 1000) == 1000
    assert (frames, crypto) == ([(4, 50, 100)], [(7, 200 - 112 - 12)])
    # The end of a stream has no bytes, and needs no room that is left.
    oldest = QuicPacket(0, 0, FULL, [(4, 100, 0), (8, 0, 300)], None, [], True)
    assert _resend_data(oldest, frames := [], [], 800, 1000) == 1000
    assert frames == [(4, 100, 0), (8, 0, 200 - 12 - 12)]


def test_an_ack_takes_its_room_from_the_stream_bytes() -> None:
    # 1000 = 27 + 5 for an ACK of one span + 4 + 964; then 27 + 6, since the offset takes 2, + 967.
    server = end(2000)
    server.on_packet(peer_packet(0), 0)
    first, second = server.packets_to_send(ms(1))
    assert sizes([first, second]) == [FULL, FULL]
    assert (first.frames, second.frames) == ([(0, 0, 964)], [(0, 964, 967)])


def test_further_spans_of_an_ack_come_on_top() -> None:
    # Packets 0 and 2 came: two spans, 2 bytes more.
    server = end(1000)
    for number in (0, 2):
        server.on_packet(peer_packet(number), 0)
    [packet] = server.packets_to_send(ms(1))
    assert packet.size_bytes == FULL + 2


def test_limits_take_six_bytes_each_and_ask_for_an_ack() -> None:
    # More than half of both windows was used. 27 + 2 * 6 + 5.
    client = idle(2000, stream_window_bytes=100, connection_window_bytes=100)
    client.on_packet(stream_packet(0, 0, 60), 0)
    [packet] = client.packets_to_send(ms(1))
    assert (packet.limits, packet.frames) == ([(None, 160), (0, 160)], [])
    assert (packet.size_bytes, packet.is_ack_eliciting) == (44, True)
    assert client.recovery.bytes_in_flight == 44
    client.on_packet(stream_packet(1, 60, 60), ms(2))
    [newer] = client.packets_to_send(ms(3))
    assert newer.limits == [(None, 220), (0, 220)]


def test_of_lost_limits_only_those_are_announced_again_that_were_not_raised_since() -> None:
    """RFC 9000 § 13.3: if the packet with the most recent frame is declared lost."""
    client = idle(9000, stream_window_bytes=100, connection_window_bytes=1000)
    sent = []
    for number, at in enumerate((0, 60, 120, 180, 240)):
        client.on_packet(stream_packet(number, at, 60), ms(number))
        sent += client.packets_to_send(ms(number))
    assert [packet.limits for packet in sent] == [
        [(0, end + 100)] for end in (60, 120, 180, 240, 300)
    ]
    # Packets 0 and 1 count as lost by number: both limits have been raised since.
    client.on_packet(peer_packet(5, [(4, 4)], is_ack_eliciting=False), ms(100))
    assert client.recovery.take_lost() == [0, 1]
    assert client.packets_to_send(ms(100)) == []
    newest = idle(9000, stream_window_bytes=100)
    newest.on_packet(stream_packet(0, 0, 60), 0)
    [lost] = newest.packets_to_send(0)
    newest._on_lost(lost)
    assert newest.packets_to_send(ms(1))[0].limits == [(0, 160)]


def test_at_half_of_a_window_no_limit_is_raised() -> None:
    client = idle(2000, stream_window_bytes=100, connection_window_bytes=200)
    client.on_packet(stream_packet(0, 0, 50), 0)
    assert client.packets_to_send(0) == []
    client.on_packet(stream_packet(1, 50, 1), 0)
    [packet] = client.packets_to_send(0)
    assert packet.limits == [(0, 151)]


def test_limits_go_with_the_next_packet_of_a_stream() -> None:
    server = end(1000, stream_window_bytes=100)
    server.on_packet(stream_packet(0, 0, 60), 0)
    server._acks.take()  # the ACK is out: nothing is new but the limit
    [packet] = server.packets_to_send(0)
    assert packet.limits == [(0, 160)]
    assert len(packet.frames) == 1


def test_the_rest_of_a_window_is_filled_from_32_bytes_of_a_frame_on() -> None:
    # The longest header takes 1 + 20 + 4 + 16: 73 bytes leave 32 for a frame, 72 do not.
    settings = {"connection_id_bytes": 20, "packet_number_bytes": 4, "partial_datagrams": True}
    assert sizes(end(1073, **settings).packets_to_send(0)) == [FULL, 73]
    assert sizes(end(1072, **settings).packets_to_send(0)) == [FULL]


def test_with_a_closed_window_an_ack_alone_leaves_and_nothing_is_held_back_by_the_source() -> None:
    server = end(2000)
    assert len(server.packets_to_send(0)) == 2
    for number in (0, 1):
        server.on_packet(peer_packet(number), ms(1))
    [ack] = server.packets_to_send(ms(1))
    assert (ack.frames, ack.is_ack_eliciting, ack.size_bytes) == ([], False, 32)
    assert not server.recovery.is_cwnd_underutilized


def test_a_window_of_less_than_a_packet_lets_none_go() -> None:
    server = end(FULL - 1)
    assert server.packets_to_send(0) == []
    assert not server.recovery.is_cwnd_underutilized


def test_what_waits_for_its_pace_is_not_held_back_by_the_source() -> None:
    server = end(10_000, pacing_gain=1.0, pacing_bucket="aioquic")
    assert len(server.packets_to_send(ms(500))) == 3
    assert server.timer_at_ns() == ms(510)
    assert not server.recovery.is_cwnd_underutilized


def test_a_probe_without_anything_to_repeat_is_a_ping() -> None:
    """RFC 9002 § 6.2.4: a PING or other ack-eliciting frame."""
    client = idle(2000, stream_window_bytes=100)
    client.on_packet(stream_packet(0, 0, 60), 0)
    assert len(client.packets_to_send(0)) == 1
    due_ns = client.timer_at_ns()
    client.on_timer(due_ns)
    [ping] = client.packets_to_send(due_ns)
    assert (ping.frames, ping.ack, ping.limits) == ([], None, ())
    assert (ping.size_bytes, ping.is_ack_eliciting) == (28, True)


def test_a_limit_that_waits_goes_as_a_probe_before_anything_is_repeated() -> None:
    client = idle(3000, stream_window_bytes=100)
    source_of(client).has_data = True
    [request] = client.packets_to_send(0)[:1]
    source_of(client).has_data = False
    due_ns = client.timer_at_ns()
    client.on_packet(stream_packet(0, 0, 60), due_ns)
    client.on_timer(due_ns)
    first, second = client.packets_to_send(due_ns)
    assert (first.frames, first.limits) == ([], [(0, 160)])
    assert (second.frames, second.limits) == (request.frames, ())


def test_a_probe_of_the_handshake_repeats_its_bytes() -> None:
    """RFC 9002 § 6.2.4: data that may be lost, before a PING is considered."""
    _, client = handshaking(Role.CLIENT)
    [hello] = client.packets_to_send(0)
    due_ns = client.timer_at_ns()
    client.on_timer(due_ns)
    probe = client.packets_to_send(due_ns)[0]
    assert hello.crypto
    assert (list(probe.crypto), probe.frames) == (list(hello.crypto), [])


def test_a_probe_of_the_handshake_is_cut_where_an_unknown_client_allows_no_more() -> None:
    """RFC 9000 § 8.1: three times the hello of 1250 bytes, of which 3114 were sent before."""
    _, client = handshaking(Role.CLIENT)
    _, server = handshaking(Role.SERVER)
    give(client.packets_to_send(0), server, 0)
    sent = sizes(server.packets_to_send(0))
    for _ in range(2):
        server.on_timer(server.timer_at_ns())
        last = server.packets_to_send(server.timer_at_ns())
        sent += sizes(last)
    # Five bytes are kept for an ACK; the packet has a header of 27, the frame one of 12.
    assert (sent[:3], sent[3:]) == ([1036, 1039, 1039], [3750 - 3114 - 5])
    assert [packet.crypto for packet in last] == [[(0, 631 - 27 - 12)]]


def test_a_client_whose_hello_arrived_probes_until_the_handshake_is_over() -> None:
    """RFC 9002 § 6.2.2.1: the server may be able to send no more."""
    _, client = handshaking(Role.CLIENT)
    _, server = handshaking(Role.SERVER)
    [hello] = client.packets_to_send(0)
    assert give([hello], server, 50) == []
    answer = server.packets_to_send(ms(50))
    ack = QuicPacket(0, ms(50), 60, [], answer[0].ack, (), False)
    assert give([ack], client, 100) == []
    assert client.recovery.bytes_in_flight == 0
    due_ns = client.timer_at_ns()
    # 100 ms, 4 * 50 ms, and of the hello on.
    assert due_ns == ms(100 + 200)
    client.on_timer(due_ns)
    [ping] = client.packets_to_send(due_ns)
    assert (ping.crypto, ping.size_bytes) == ((), SETTINGS.client_initial_bytes)


def test_a_bare_ack_that_asks_for_one_is_in_flight() -> None:
    client = silent(ack_ping_every=1)
    client._controller.congestion_window = 10_000
    for number in (0, 2):
        client.on_packet(peer_packet(number), 0)
        sent = client.packets_to_send(0)
    assert [packet.is_ack_eliciting for packet in sent] == [True]
    assert client.recovery.bytes_in_flight == sent[0].size_bytes == 27 + 5 + 2 + 1


def test_so_is_one_of_an_end_that_has_nothing_else_to_send() -> None:
    client = idle(10_000, ack_every=1, ack_ping_every=1)
    assert client.packets_to_send(0) == []
    for number in (0, 2):
        client.on_packet(peer_packet(number), 0)
        sent = client.packets_to_send(0)
    assert client.recovery.bytes_in_flight == sent[0].size_bytes == 35


def test_an_ack_that_waits_leaves_when_it_is_due() -> None:
    client = idle(10_000)
    assert client.packets_to_send(0) == []
    client.on_packet(peer_packet(0), 0)
    assert client.timer_at_ns() == ms(25)
    assert client.packets_to_send(ms(25) - 1) == []
    assert sizes(client.packets_to_send(ms(25))) == [32]


def test_an_ack_reports_all_that_came_unless_older_packets_may_be_forgotten() -> None:
    # Packet 0 of the server carried an ACK of 0, and arrived.
    for every, spans in ((0, ((0, 1),)), (64, ((1, 1),))):
        server = end(2000, ack_ping_every=every)
        server.on_packet(peer_packet(0), 0)
        assert server.packets_to_send(0)[0].ack == ((0, 0),)
        server.on_packet(peer_packet(1, [(0, 0)]), ms(100))
        assert server.packets_to_send(ms(100))[0].ack == spans


def test_an_ack_carries_the_delay_of_the_largest_packet() -> None:
    """RFC 9000 § 13.2.5: since the largest packet number was received."""
    state = AckState(every=2, max_delay_ns=ms(25))
    state.on_packet(1, ms(100), True)
    state.on_packet(0, ms(120), True)
    assert ms(130) - state.largest_at_ns == ms(30)


def test_the_source_hears_what_was_acknowledged() -> None:
    server = idle(2000)
    source_of(server).has_data = True
    first, second = server.packets_to_send(0)
    server.on_packet(peer_packet(0, [(1, 1)]), ms(100))
    assert source_of(server).acked == [second.frames[0][1]]
    server.on_packet(peer_packet(1, [(0, 1)]), ms(101))
    assert source_of(server).acked == [second.frames[0][1], first.frames[0][1]]


def test_what_may_leave_whatever_the_window_may_do_so_at_once_or_not_at_all() -> None:
    server = idle(3000, loss_timer_packets=1)
    source_of(server).has_data = True
    assert len(server.packets_to_send(0)) == 3
    source_of(server).has_data = False
    server.on_packet(peer_packet(0, [(1, 1)], is_ack_eliciting=False), ms(100))
    due_ns = server.timer_at_ns()
    server.on_timer(due_ns)
    assert source_of(server).lost == [0]
    assert server.packets_to_send(due_ns) == []
    source_of(server).has_data = True
    server._controller.congestion_window = 1000
    assert server.packets_to_send(due_ns + 1) == []


def test_what_was_delivered_when_a_packet_leaves_is_written_on_it() -> None:
    """draft-cheng-iccrg-delivery-rate-estimation § 3.2: SendPacket, on a path of 100 ms."""
    recovery, _ = sender(5, 10)
    _, second = recovery._sent.values()
    assert (second.first_sent_at_ns, second.delivered_at_ns) == (ms(5), ms(5))
    assert second.delivered_bytes == 0
    acknowledge(recovery, (1, 1), at_ms=110)
    recovery.next_number = 3
    third = QuicPacket(2, ms(111), 1200, [], None, (), True)
    recovery.on_sent(third)
    # Packet 1 was acknowledged last; it left at 10, and that was known at 110.
    assert (third.first_sent_at_ns, third.delivered_at_ns) == (ms(10), ms(110))
    assert (third.delivered_bytes, third.is_app_limited) == (1200, False)
    acknowledge(recovery, (2, 2), (0, 0), at_ms=211)
    # Nothing is in flight: a new series of samples begins.
    recovery.next_number = 4
    fourth = QuicPacket(3, ms(500), 1200, [], None, (), True)
    recovery.on_sent(fourth)
    assert (fourth.first_sent_at_ns, fourth.delivered_at_ns) == (ms(500), ms(500))
    assert fourth.delivered_bytes == 3600


def test_what_leaves_does_not_put_off_a_loss_that_is_due() -> None:
    """RFC 9002 § A.8: the loss time goes before the probe timeout."""
    recovery, _ = sender(0, 0)
    acknowledge(recovery, (1, 1), at_ms=100)
    assert recovery.due_at_ns == ms(112.5)
    recovery.next_number = 3
    recovery.on_sent(QuicPacket(2, ms(105), 1200, [], None, (), True))
    assert recovery.due_at_ns == ms(112.5)
    assert [packet.number for packet in recovery.on_timer(ms(112.5))] == [0]
    # Packet 2 is in flight: 100 ms + 4 * 50 ms + the peer's 25 ms after it left.
    assert recovery.due_at_ns == ms(105 + 100 + 200 + 25)
