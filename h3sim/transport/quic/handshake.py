"""The QUIC handshake by its bytes: permission to send, and when (RFC 9000 §§ 7-8, RFC 9001)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from h3sim.transport.quic.packets import crypto_header_bytes
from h3sim.values.constants import UNLIMITED_BYTES
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.quic.packets import QuicPacket
    from h3sim.transport.quic.settings import QuicSettings


_AMPLIFICATION: Final = 3
"""The anti-amplification factor: sent over received bytes before address validation."""


class Role(enum.Enum):
    """The role of an endpoint."""

    CLIENT = "client"
    SERVER = "server"


class HandshakeMode(enum.Enum):
    """The way a connection begins."""

    NONE = "none"
    """The connection is established already."""
    ONE_RTT = "1-rtt"
    ZERO_RTT = "0-rtt"
    """The client sends its requests with its first packet."""

    @property
    def is_established(self) -> bool:
        """True if the handshake is complete from the start."""
        return self is HandshakeMode.NONE


class Handshake:
    """The CRYPTO stream of one end.

    The server answers the ClientHello with its flight, and the client answers the flight with its
    Finished; lost bytes are sent again. A server may send responses once it has received the
    ClientHello; a client may send requests once it has received the complete flight, or at once
    with 0-RTT.
    """

    def __init__(self, settings: QuicSettings, role: Role, mode: HandshakeMode) -> None:
        self._settings = settings
        self._role = role
        self._received = Ranges()
        """The peer's handshake bytes that have arrived."""
        self._acked = Ranges()
        """The handshake bytes of this end that the peer has."""
        self._to_send: list[tuple[int, int]] = []
        """The start and end of handshake bytes that wait, the lowest first."""
        self._queued_bytes = 0
        """All handshake bytes of this end that were ever queued."""
        self._is_zero_rtt = mode is HandshakeMode.ZERO_RTT
        self.is_complete = mode is HandshakeMode.NONE
        self.is_over = mode is HandshakeMode.NONE
        """True if nothing more follows: complete, acknowledged, and nothing left to send."""
        self._is_validated = mode is HandshakeMode.NONE or role is Role.CLIENT
        self._bytes_received = self._bytes_sent = 0
        if role is Role.CLIENT and mode is not HandshakeMode.NONE:
            self._queue(settings.client_hello_bytes)

    @property
    def may_send(self) -> bool:
        """True if application data may be sent."""
        if self.is_complete:
            return True
        if self._role is Role.CLIENT:
            return self._is_zero_rtt
        return self._received.contiguous >= self._settings.client_hello_bytes

    @property
    def may_deadlock(self) -> bool:
        """True if the server may be blocked until this end probes (RFC 9002 § 6.2.2.1)."""
        return self._role is Role.CLIENT and not self.is_over

    @property
    def has_data(self) -> bool:
        """True if handshake bytes wait to be sent."""
        return bool(self._to_send)

    @property
    def allowance_bytes(self) -> int:
        """The bytes that may be sent before the peer's address is validated (RFC 9000 § 8.1)."""
        if self._is_validated:
            return UNLIMITED_BYTES
        return max(0, _AMPLIFICATION * self._bytes_received - self._bytes_sent)

    def on_datagram(self, packet: QuicPacket) -> None:
        """Process the handshake part of a packet."""
        if self.is_complete:
            return
        self._bytes_received += packet.size_bytes
        if packet.ack is not None:
            self._is_validated = True  # only a peer that received our packets can acknowledge them
        # Ranges, not a count: CRYPTO bytes may arrive twice and in any order (RFC 9000 § 19.6).
        for offset, n_bytes in packet.crypto:
            self._received.add(offset, offset + n_bytes)
        self._advance()

    def on_sent(self, packet: QuicPacket) -> None:
        """Count a packet that is sent."""
        self._bytes_sent += packet.size_bytes

    def on_acked(self, offset: int, n_bytes: int) -> None:
        """Record that the peer has these handshake bytes."""
        self._acked.add(offset, offset + n_bytes)
        self.is_over = self.is_complete and self._acked.contiguous >= self._queued_bytes

    def on_lost(self, offset: int, n_bytes: int) -> None:
        """Queue these handshake bytes again, except those that arrived after all."""
        stop = offset + n_bytes
        for start, end in self._acked.spans():
            if start >= stop:
                break
            # A probe may have delivered a part of them: only the gaps go again.
            if start > offset:
                self._to_send.append((offset, start))
            offset = max(offset, end)
        if offset < stop:
            self._to_send.append((offset, stop))
        # Lowest first: the peer can use CRYPTO bytes only in order.
        self._to_send.sort()

    def fill(self, crypto: list[tuple[int, int]], used: int, room: int) -> int:
        """Append waiting handshake bytes to *crypto*; return how much of *room* is then in use."""
        while self._to_send:
            start, stop = self._to_send[0]
            header = crypto_header_bytes(start)
            n_bytes = min(stop - start, room - used - header)
            if n_bytes <= 0:
                break
            crypto.append((start, n_bytes))
            used += header + n_bytes
            if start + n_bytes == stop:
                self._to_send.pop(0)
            else:
                self._to_send[0] = (start + n_bytes, stop)
        return used

    def padded(self, crypto: Sequence[tuple[int, int]], used: int) -> int:
        """Return the size of a packet; a client's Initial is padded (RFC 9000 § 14.1)."""
        # The ClientHello begins at offset 0; the Finished is in a Handshake packet, which needs no
        # padding.
        is_initial = self._role is Role.CLIENT and any(offset == 0 for offset, _ in crypto)
        return max(used, self._settings.client_initial_bytes) if is_initial else used

    def _queue(self, n_bytes: int) -> None:
        """Append a message of this end to the CRYPTO stream."""
        self._to_send.append((self._queued_bytes, self._queued_bytes + n_bytes))
        self._queued_bytes += n_bytes

    def _advance(self) -> None:
        """Queue the answer once the peer's flight is complete."""
        settings, received_bytes = self._settings, self._received.contiguous
        if self._role is Role.CLIENT:
            if received_bytes >= settings.server_flight_bytes:
                self.is_complete = True
                self._queue(settings.client_finished_bytes)
        # Only once: a repeated ClientHello gets no second answer.
        elif not self._queued_bytes and received_bytes >= settings.client_hello_bytes:
            self._queue(settings.server_flight_bytes)
        # RFC 9001 § 4.1.1: complete at the server once it has the client's Finished, which also
        # shows that the client receives at its address.
        elif received_bytes >= settings.client_hello_bytes + settings.client_finished_bytes:
            self.is_complete = self._is_validated = True
