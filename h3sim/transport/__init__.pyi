"""The public names of `h3sim.transport`, each loaded when it is first used."""

from h3sim.transport.endpoint import MessageReassembler as MessageReassembler
from h3sim.transport.link import Link as Link
from h3sim.transport.link_profile import Jitter as Jitter
from h3sim.transport.link_profile import LinkProfile as LinkProfile
from h3sim.transport.link_profile import PacketHold as PacketHold
from h3sim.transport.link_profile import QueueDiscipline as QueueDiscipline
from h3sim.transport.network import ConstantRate as ConstantRate
from h3sim.transport.network import IndependentPackets as IndependentPackets
from h3sim.transport.network import Network as Network
from h3sim.transport.network import Protocol as Protocol
from h3sim.transport.network import network_from_dict as network_from_dict
from h3sim.transport.network import network_from_toml as network_from_toml
from h3sim.transport.network import network_to_dict as network_to_dict
from h3sim.transport.network import network_to_toml as network_to_toml
from h3sim.transport.network import read_network as read_network
from h3sim.transport.profile import TransportProfile as TransportProfile
from h3sim.transport.profile import profile_from_dict as profile_from_dict
from h3sim.transport.profile import profile_from_toml as profile_from_toml
from h3sim.transport.profile import profile_to_dict as profile_to_dict
from h3sim.transport.quic import Handshake as Handshake
from h3sim.transport.quic import HandshakeMode as HandshakeMode
from h3sim.transport.quic import QuicEndpoint as QuicEndpoint
from h3sim.transport.quic import Role as Role

__all__: list[str]
