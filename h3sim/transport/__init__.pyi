"""The public names of `h3sim.transport`, each loaded when it is first used."""

from h3sim.transport.delivery import WholeMessages as WholeMessages
from h3sim.transport.jitter import HoldEveryNth as HoldEveryNth
from h3sim.transport.link import Link as Link
from h3sim.transport.link_profile import LinkProfile as LinkProfile
from h3sim.transport.network import (
    ConstantRate as ConstantRate,
    IndependentPackets as IndependentPackets,
    Jitter as Jitter,
    Network as Network,
    Protocol as Protocol,
)
from h3sim.transport.profile import (
    TransportProfile as TransportProfile,
    profile_from_dict as profile_from_dict,
    profile_from_toml as profile_from_toml,
    profile_to_dict as profile_to_dict,
)
from h3sim.transport.quic import (
    Handshake as Handshake,
    Mode as Mode,
    QuicEndpoint as QuicEndpoint,
    Role as Role,
)
from h3sim.transport.reader import (
    network_from_dict as network_from_dict,
    network_from_toml as network_from_toml,
    network_to_dict as network_to_dict,
    read_network as read_network,
)

__all__: list[str]
