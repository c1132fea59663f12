"""The public names of `h3sim.transport.quic`, each loaded when it is first used."""

from h3sim.transport.quic.endpoint import QuicEndpoint as QuicEndpoint
from h3sim.transport.quic.event_loop import (
    EventLoop as EventLoop,
    EventLoopEndpoint as EventLoopEndpoint,
)
from h3sim.transport.quic.handshake import (
    Handshake as Handshake,
    Mode as Mode,
    Role as Role,
)
from h3sim.transport.quic.packets import QuicPacket as QuicPacket
from h3sim.transport.quic.settings import QuicSettings as QuicSettings

__all__: list[str]
