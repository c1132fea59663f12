"""Transport: when a packet may leave, and when it arrives.

Sans-IO endpoints, links and networks; it may import values and the schema of files only. Begin
with `endpoint.py`, the contract, and `link.py`.
"""

from h3sim.transport.endpoint import MessageReassembler
from h3sim.transport.link import Link
from h3sim.transport.link_profile import Jitter, LinkProfile, PacketHold, QueueDiscipline
from h3sim.transport.network import (
    ConstantRate,
    IndependentPackets,
    Network,
    Protocol,
    network_from_dict,
    network_from_toml,
    network_to_dict,
    network_to_toml,
    read_network,
)
from h3sim.transport.profile import (
    TransportProfile,
    profile_from_dict,
    profile_from_toml,
    profile_to_dict,
)
from h3sim.transport.quic import Handshake, HandshakeMode, QuicEndpoint, Role

__all__ = [
    "ConstantRate",
    "Handshake",
    "HandshakeMode",
    "IndependentPackets",
    "Jitter",
    "Link",
    "LinkProfile",
    "MessageReassembler",
    "Network",
    "PacketHold",
    "Protocol",
    "QueueDiscipline",
    "QuicEndpoint",
    "Role",
    "TransportProfile",
    "network_from_dict",
    "network_from_toml",
    "network_to_dict",
    "network_to_toml",
    "profile_from_dict",
    "profile_from_toml",
    "profile_to_dict",
    "read_network",
]
