"""The handshake's bytes, end by end: who may send what, what is sent again, when it is over."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.quic import Handshake, HandshakeMode, QuicPacket, QuicSettings, Role
from h3sim.values.constants import UNLIMITED_BYTES

HELLO, FLIGHT, FINISHED = 300, 1000, 60
SETTINGS = QuicSettings(
    client_hello_bytes=HELLO, server_flight_bytes=FLIGHT, client_finished_bytes=FINISHED
)


def made(role: Role, mode: HandshakeMode = HandshakeMode.ONE_RTT) -> Handshake:
    return Handshake(SETTINGS, role, mode)


def datagram(*crypto: tuple[int, int], size: int = 1250, ack: Any = None) -> QuicPacket:
    return QuicPacket(0, 0, size, [], ack, (), True, crypto)


def filled(handshake: Handshake, room: int = 10_000) -> list[tuple[int, int]]:
    """Return the bytes that a packet with so much room behind its header of 27 takes."""
    crypto: list[tuple[int, int]] = []
    handshake.fill(crypto, 27, 27 + room)
    return crypto


@pytest.mark.parametrize(
    ("role", "mode", "may_send", "has_data", "may_deadlock"),
    [
        (Role.CLIENT, HandshakeMode.NONE, True, False, False),
        (Role.CLIENT, HandshakeMode.ONE_RTT, False, True, True),
        (Role.CLIENT, HandshakeMode.ZERO_RTT, True, True, True),
        (Role.SERVER, HandshakeMode.NONE, True, False, False),
        (Role.SERVER, HandshakeMode.ONE_RTT, False, False, False),
        (Role.SERVER, HandshakeMode.ZERO_RTT, False, False, False),
    ],
)
def test_the_handshake_mode_decides_who_may_send(
    role: Role, mode: HandshakeMode, may_send: bool, has_data: bool, may_deadlock: bool
) -> None:
    handshake = made(role, mode)
    assert (handshake.may_send, handshake.has_data) == (may_send, has_data)
    assert handshake.may_deadlock is may_deadlock
    assert (
        handshake.is_over
        is handshake.is_complete
        is mode.is_established
        is (mode is HandshakeMode.NONE)
    )
    is_validated = role is Role.CLIENT or mode is HandshakeMode.NONE
    assert handshake.allowance_bytes == (UNLIMITED_BYTES if is_validated else 0)


def test_a_server_sends_three_times_what_it_got_before_the_address_is_validated() -> None:
    """RFC 9000 § 8.1."""
    server = made(Role.SERVER)
    server.on_datagram(datagram((0, HELLO)))
    assert server.allowance_bytes == 3 * 1250
    server.on_sent(datagram(size=1000))
    assert server.allowance_bytes == 2750
    server.on_sent(datagram(size=2751))
    assert server.allowance_bytes == 0
    server.on_datagram(datagram(size=60))
    assert server.allowance_bytes == 179
    server.on_datagram(datagram(size=60, ack=((0, 0),)))
    assert server.allowance_bytes == UNLIMITED_BYTES


def test_a_server_may_send_with_the_last_byte_of_the_hello_and_answers_it_once() -> None:
    server = made(Role.SERVER)
    server.on_datagram(datagram((0, HELLO - 1)))
    assert (server.may_send, server.has_data) == (False, False)
    server.on_datagram(datagram((HELLO - 1, 1)))
    assert server.may_send
    assert filled(server) == [(0, FLIGHT)]
    server.on_datagram(datagram((0, HELLO)))
    assert filled(server) == []


def test_a_server_is_done_when_it_has_the_finished_and_its_flight_is_acknowledged() -> None:
    server = made(Role.SERVER)
    server.on_datagram(datagram((0, HELLO)))
    server.on_datagram(datagram((HELLO, FINISHED - 1)))
    assert (server.is_complete, server.allowance_bytes) == (False, 3 * 2500)
    server.on_datagram(datagram((HELLO + FINISHED - 1, 1)))
    assert (server.is_complete, server.allowance_bytes) == (True, UNLIMITED_BYTES)
    server.on_acked(1, FLIGHT - 1)
    assert not server.is_over
    server.on_acked(0, 1)
    assert server.is_over


def test_a_client_is_done_when_its_finished_is_acknowledged_too() -> None:
    client = made(Role.CLIENT)
    client.on_acked(0, HELLO)
    assert not client.is_over
    client.on_datagram(datagram((0, FLIGHT - 1)))
    assert not client.may_send
    client.on_datagram(datagram((FLIGHT - 1, 1)))
    assert (client.may_send, client.is_over) == (True, False)
    assert filled(client) == [(0, HELLO), (HELLO, FINISHED)]
    client.on_acked(HELLO, FINISHED - 1)
    assert client.may_deadlock
    client.on_acked(HELLO + FINISHED - 1, 1)
    assert (client.is_over, client.may_deadlock) == (True, False)


@pytest.mark.parametrize(
    ("lost", "again"),
    [
        ((0, 100), [(0, 100)]),
        ((100, 100), [(100, 100)]),  # up to where the acknowledged ones begin
        ((100, 101), [(100, 100)]),
        ((150, 200), [(150, 50), (300, 50)]),  # on either side of them
        ((299, 2), [(300, 1)]),
        ((200, 100), []),
        ((210, 20), []),
        ((299, 1), []),
        ((300, 50), [(300, 50)]),  # and from their end on
    ],
)
def test_lost_bytes_go_again_but_for_those_that_arrived(
    lost: tuple[int, int], again: list[tuple[int, int]]
) -> None:
    server = made(Role.SERVER)
    server.on_datagram(datagram((0, HELLO)))
    filled(server)
    server.on_acked(200, 100)
    server.on_lost(*lost)
    assert filled(server) == again


def test_of_several_that_were_lost_the_lowest_go_first() -> None:
    server = made(Role.SERVER)
    server.on_datagram(datagram((0, HELLO)))
    filled(server)
    server.on_lost(500, 100)
    server.on_lost(0, 100)
    assert filled(server) == [(0, 100), (500, 100)]


def test_a_packet_takes_what_it_has_room_for_behind_the_headers() -> None:
    """A header takes 4 bytes, and 6 from offset 64 on; without a byte behind it there is none."""
    client = made(Role.CLIENT)
    crypto: list[tuple[int, int]] = []
    assert client.fill(crypto, 27, 100) == 100
    assert crypto == [(0, 69)]
    assert client.fill(crypto, 27, 27 + 6) == 27
    assert client.fill(crypto, 27, 27 + 7) == 34
    assert crypto == [(0, 69), (69, 1)]
    client.on_lost(0, 10)
    assert client.fill(crypto, 27, 1000) == 27 + 4 + 10 + 6 + 230
    assert crypto[2:] == [(0, 10), (70, 230)]
    assert not client.has_data


def test_a_server_that_sent_more_than_it_may_waits() -> None:
    server = made(Role.SERVER)
    server.on_datagram(datagram(size=10))
    server.on_sent(datagram(size=31))
    assert server.allowance_bytes == 0


def test_a_packet_of_a_client_that_begins_the_hello_is_padded_whatever_else_it_carries() -> None:
    client, server = made(Role.CLIENT), made(Role.SERVER)
    assert client.padded([(0, 100), (200, 100)], 300) == SETTINGS.client_initial_bytes
    assert client.padded([(200, 100), (0, 100)], 1300) == 1300
    assert client.padded([(200, 100)], 300) == 300
    assert client.padded([], 300) == 300
    assert server.padded([(0, 100)], 300) == 300
