"""Transport: when a packet may leave, and when it arrives."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.transport.delivery import WholeMessages
    from h3sim.transport.jitter import HoldEveryNth
    from h3sim.transport.link import Link
    from h3sim.transport.link_profile import LinkProfile
    from h3sim.transport.network import (
        ConstantRate,
        IndependentPackets,
        Jitter,
        Network,
        Protocol,
    )
    from h3sim.transport.profile import (
        TransportProfile,
        profile_from_dict,
        profile_from_toml,
        profile_to_dict,
    )
    from h3sim.transport.quic import Handshake, Mode, QuicEndpoint, Role
    from h3sim.transport.reader import (
        network_from_dict,
        network_from_toml,
        network_to_dict,
        read_network,
    )

__all__ = [
    "ConstantRate",
    "Handshake",
    "HoldEveryNth",
    "IndependentPackets",
    "Jitter",
    "Link",
    "LinkProfile",
    "Mode",
    "Network",
    "Protocol",
    "QuicEndpoint",
    "Role",
    "TransportProfile",
    "WholeMessages",
    "network_from_dict",
    "network_from_toml",
    "network_to_dict",
    "profile_from_dict",
    "profile_from_toml",
    "profile_to_dict",
    "read_network",
]

__getattr__, __dir__ = attach(
    __name__,
    delivery="WholeMessages",
    jitter="HoldEveryNth",
    link="Link",
    link_profile="LinkProfile",
    network="ConstantRate IndependentPackets Jitter Network Protocol",
    profile="TransportProfile profile_from_dict profile_from_toml profile_to_dict",
    quic="Handshake Mode QuicEndpoint Role",
    reader="network_from_dict network_from_toml network_to_dict read_network",
)
