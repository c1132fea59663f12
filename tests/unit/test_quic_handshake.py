"""What becomes of handshake bytes, whenever they arrive."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.http import StreamSender
from h3sim.schedulers import FifoScheduler
from h3sim.signals import H2Priority
from h3sim.transport.quic import (
    Handshake,
    HandshakeMode,
    QuicEndpoint,
    QuicPacket,
    QuicSettings,
    Role,
)
from h3sim.values.units import ms
from tests.unit.test_quic_windows import Window

SETTINGS = QuicSettings(server_flight_bytes=1000)


def end(role: Any) -> Any:
    source = StreamSender(FifoScheduler(), turn_bytes=1200, retains_until_acked=True)
    handshake = Handshake(SETTINGS, role, HandshakeMode.ONE_RTT)
    window = Window(10_000)
    return source, QuicEndpoint(SETTINGS, window, source, handshake, peer_max_ack_delay_ns=0)


def give(packets: Any, peer: Any, at_ms: float) -> list[Any]:
    """Let the peer have packets; return the bytes of streams that it takes from them."""
    return [frame for packet in packets for frame in peer.on_packet(packet, ms(at_ms))]


def open_connection() -> Any:
    """Return both ends behind their handshake, and the packet that carried the server's flight."""
    source, client = end(Role.CLIENT)
    _, server = end(Role.SERVER)
    assert give(client.packets_to_send(0), server, 50) == []
    flight = server.packets_to_send(ms(50))
    assert give(flight, client, 100) == []
    source.open(0, H2Priority())
    source.send(0, 300)
    assert give(client.packets_to_send(ms(100)), server, 150) == [(0, 0, 300)]
    assert give(server.packets_to_send(ms(150)), client, 200) == []
    assert client.is_ready
    assert server.is_ready
    return client, server, flight


def test_handshake_bytes_that_come_late_are_not_taken_for_those_of_a_stream() -> None:
    client, server, flight = open_connection()
    server.on_timer(server.timer_at_ns() or 0)
    (late,) = flight
    late.number = 7  # the same bytes once more, in a packet that was sent again and held up
    assert late.crypto == [(0, 1000)]
    assert client.on_packet(late, ms(300)) == []


def test_no_frame_of_a_stream_carries_handshake_bytes() -> None:
    _, client = end(Role.CLIENT)
    _, server = end(Role.SERVER)
    hello = client.packets_to_send(0)
    assert [(packet.frames, packet.crypto) for packet in hello] == [([], [(0, 300)])]
    give(hello, server, 50)
    flight = server.packets_to_send(ms(50))
    assert [(packet.frames, packet.crypto) for packet in flight] == [([], [(0, 1000)])]


def test_a_client_in_the_handshake_declares_lost_what_is_due_before_it_probes() -> None:
    """RFC 9002 § A.8: of two probes the second arrived; 12.5 ms later the first counts as lost."""
    _, client = end(Role.CLIENT)
    [hello] = client.packets_to_send(0)
    due_ns = client.timer_at_ns()
    client.on_timer(due_ns)
    first, second = client.packets_to_send(due_ns)
    ack = QuicPacket(0, due_ns, 60, [], ((second.number, second.number),), (), False)
    client.on_packet(ack, due_ns + ms(100))
    assert client.recovery.take_lost() == [hello.number]
    assert client.timer_at_ns() == due_ns + ms(112.5)
    client.on_timer(due_ns + ms(112.5))
    assert client.recovery.take_lost() == [first.number]


def test_a_packet_of_the_handshake_is_as_long_as_what_it_carries() -> None:
    """27 bytes, a frame's header of 4, and an ACK of 5; only a client's first one is padded."""
    _, client = end(Role.CLIENT)
    _, server = end(Role.SERVER)
    hello = client.packets_to_send(0)
    assert [packet.size_bytes for packet in hello] == [SETTINGS.client_initial_bytes]
    give(hello, server, 50)
    flight = server.packets_to_send(ms(50))
    assert [packet.size_bytes for packet in flight] == [27 + 4 + 1000 + 5]
    give(flight, client, 100)
    finished = client.packets_to_send(ms(100))
    assert [(packet.crypto, packet.size_bytes) for packet in finished] == (
        [([(300, 60)], 27 + 6 + 60 + 5)]
    )


def test_a_probe_of_the_handshake_carries_what_is_new_alone() -> None:
    """RFC 9002 § 6.2.4: new data if there is some, and only else what is outstanding."""
    settings = QuicSettings(server_flight_bytes=3000)
    source = StreamSender(FifoScheduler(), turn_bytes=1200, retains_until_acked=True)
    handshake = Handshake(settings, Role.SERVER, HandshakeMode.ONE_RTT)
    server = QuicEndpoint(settings, Window(1300), source, handshake, peer_max_ack_delay_ns=0)
    _, client = end(Role.CLIENT)
    give(client.packets_to_send(0), server, 50)
    [first] = server.packets_to_send(ms(50))
    (_, length) = first.crypto[0]
    due_ns = server.timer_at_ns()
    assert due_ns is not None
    server.on_timer(due_ns)
    probe, *_ = server.packets_to_send(due_ns)
    assert [start for start, _ in probe.crypto] == [length]


@pytest.mark.parametrize(
    ("flight_bytes", "sizes"),
    [
        (2000, [1280, 789, 1283, 393]),  # of 3750 all but 5, which are kept for an ACK
        (3610, [1280, 1280, 1152, 28]),  # 38 are left: a PING
        (3640, [1280, 1280, 1182]),  # 8 are left: no packet is as short
        (3650, [1280, 1280, 1190]),  # none is left
    ],
)
def test_probes_of_a_server_keep_to_three_times_what_came(
    flight_bytes: int, sizes: list[int]
) -> None:
    """RFC 9000 § 8.1 limits all that a server sends, and RFC 9002 § 6.2.2.1 its probes."""
    settings = QuicSettings(server_flight_bytes=flight_bytes)
    source = StreamSender(FifoScheduler(), turn_bytes=1200, retains_until_acked=True)
    handshake = Handshake(settings, Role.SERVER, HandshakeMode.ONE_RTT)
    server = QuicEndpoint(settings, Window(10_000), source, handshake, peer_max_ack_delay_ns=0)
    _, client = end(Role.CLIENT)
    give(client.packets_to_send(0), server, 50)
    sent = server.packets_to_send(ms(50))
    for _ in range(2):
        due_ns = server.timer_at_ns()
        assert due_ns is not None
        server.on_timer(due_ns)
        sent += server.packets_to_send(due_ns)
    assert [packet.size_bytes for packet in sent] == sizes
    assert sum(sizes) <= 3 * 1250


@pytest.mark.parametrize(("loss", "seed"), [(0.3, 59), (0.3, 69), (0.45, 1)])
def test_a_flight_of_which_a_probe_delivered_a_part_arrives_completely(
    loss: float, seed: int
) -> None:
    """The probe is cut to what an unvalidated address may get, and comes; its packet is lost."""
    load = h3sim.simulate("creative", scheme="rr", network="4g", loss=loss, seed=seed)
    assert load.page_load_ms < 3_600_000
