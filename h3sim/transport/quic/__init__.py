"""QUIC (RFC 9000, RFC 9002), without a byte of content."""

from h3sim.transport.quic.endpoint import QuicEndpoint
from h3sim.transport.quic.handshake import Handshake, Mode, Role
from h3sim.transport.quic.packets import AckFrame, Packet
from h3sim.transport.quic.settings import QuicSettings

__all__ = ["AckFrame", "Handshake", "Mode", "Packet", "QuicEndpoint", "QuicSettings", "Role"]
