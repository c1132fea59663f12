"""Packets of a QUIC end that carry more than stream bytes: ACKs, limits, probes."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.units import ms
from tests.unit.test_quic_packing import idle, stream_packet
from tests.unit.test_quic_windows import FULL, Endless, end, peer_packet, sizes


class Asked(Endless):
    """Gives 100 bytes at a time and notes how many had to fit."""

    def __init__(self) -> None:
        super().__init__()
        self.least: list[int] = []

    def take(self, max_bytes: Any = None, header: Any = None, least: int = 0) -> Any:
        self.least.append(least)
        header.measure(0, self.next)
        self.next += 100
        return 0, self.next - 100, 100


def test_further_frames_of_a_packet_carry_32_bytes_at_least_and_the_first_one() -> None:
    server = end(FULL)
    server._source = server._packer._source = Asked()
    server.on_packet(peer_packet(0), 0)
    [packet] = server.packets_to_send(0)
    assert len(packet.frames) == len(server._source.least) == 9
    assert server._source.least == [1] + [32] * 8


def test_with_an_ack_the_rest_of_a_window_is_filled_from_32_bytes_of_a_frame_on_too() -> None:
    # As above: a header of 41, and 32.
    settings = {"connection_id_bytes": 20, "packet_number_bytes": 4, "fills_window": True}
    for window, expected in ((1073, [FULL, 73]), (1072, [FULL])):
        server = end(window, **settings)
        server.on_packet(peer_packet(0), 0)
        assert sizes(server.packets_to_send(0)) == expected


def test_a_packet_with_an_ack_marks_the_window_as_used_again() -> None:
    server = end(FULL)
    server.recovery.on_nothing_to_send()
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
    client._source.has_data = True
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
    server._source.has_data = False
    server._source.take = lambda *_: None
    due_ns = server.timer_at_ns()
    server.on_timer(due_ns)
    again = server.packets_to_send(due_ns)
    assert [packet.frames for packet in again] == [first.frames] * 2
    assert sizes(again) == [27 + first.frames[0][2] + 12] * 2


def test_who_has_nothing_to_send_and_whose_pace_is_not_yet_over_is_not_held_back_by_that() -> None:
    """10 packets in 100 ms, one at a time: the second might leave at 10 ms."""
    server = end(10 * FULL, pacing_gain=1.0, pacing_burst_packets=1)
    assert len(server.packets_to_send(0)) == 1
    server._source.has_data = False
    assert server.packets_to_send(ms(10) - 1) == []
    assert (server.recovery.is_cwnd_underutilized, server.timer_at_ns()) == (False, ms(10))
    assert server.packets_to_send(ms(10)) == []
    assert server.recovery.is_cwnd_underutilized
