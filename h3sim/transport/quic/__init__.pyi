"""The public names of `h3sim.transport.quic`, each loaded when it is first used."""

from h3sim.transport.quic.endpoint import EventLoop as EventLoop
from h3sim.transport.quic.endpoint import TimerGranularityEndpoint as TimerGranularityEndpoint
from h3sim.transport.quic.endpoint import QuicEndpoint as QuicEndpoint
from h3sim.transport.quic.handshake import Handshake as Handshake
from h3sim.transport.quic.handshake import HandshakeMode as HandshakeMode
from h3sim.transport.quic.handshake import Role as Role
from h3sim.transport.quic.packets import QuicPacket as QuicPacket
from h3sim.transport.quic.settings import QuicSettings as QuicSettings

__all__: list[str]
