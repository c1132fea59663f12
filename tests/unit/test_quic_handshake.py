"""What becomes of handshake bytes, whenever they arrive."""

from __future__ import annotations

from typing import Any

from h3sim.http import StreamSender
from h3sim.schedulers import FifoScheduler
from h3sim.signals import H2Priority
from h3sim.transport.quic import Handshake, Mode, QuicEndpoint, QuicSettings, Role
from h3sim.units import ms
from tests.tcp_pair import FixedWindow

SETTINGS = QuicSettings(server_flight_bytes=1000)


def end(role: Any) -> Any:
    source = StreamSender(FifoScheduler(), turn_bytes=1200, keeps_unacked=True)
    handshake = Handshake(SETTINGS, role, Mode.ONE_RTT)
    window = FixedWindow(10_000)
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
