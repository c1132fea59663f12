"""QUIC (RFC 9000, RFC 9002), without a byte of content.

Begin with `endpoint.py`, then `recovery.py` (RFC 9002).
"""

from h3sim.transport.quic.endpoint import EventLoop, QuicEndpoint, TimerGranularityEndpoint
from h3sim.transport.quic.handshake import Handshake, HandshakeMode, Role
from h3sim.transport.quic.packets import QuicPacket
from h3sim.transport.quic.settings import QuicSettings

__all__ = [
    "EventLoop",
    "Handshake",
    "HandshakeMode",
    "QuicEndpoint",
    "QuicPacket",
    "QuicSettings",
    "Role",
    "TimerGranularityEndpoint",
]
