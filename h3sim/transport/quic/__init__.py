"""QUIC (RFC 9000, RFC 9002), without a byte of content."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.transport.quic.endpoint import QuicEndpoint
    from h3sim.transport.quic.event_loop import EventLoop, EventLoopEndpoint
    from h3sim.transport.quic.handshake import Handshake, Mode, Role
    from h3sim.transport.quic.packets import QuicPacket
    from h3sim.transport.quic.settings import QuicSettings

__all__ = [
    "EventLoop",
    "EventLoopEndpoint",
    "Handshake",
    "Mode",
    "QuicEndpoint",
    "QuicPacket",
    "QuicSettings",
    "Role",
]

__getattr__, __dir__ = attach(
    __name__,
    endpoint="QuicEndpoint",
    event_loop="EventLoop EventLoopEndpoint",
    handshake="Handshake Mode Role",
    packets="QuicPacket",
    settings="QuicSettings",
)
