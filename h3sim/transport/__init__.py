"""Transport: when a packet may leave, when it arrives, and when its bytes are handed over."""

from h3sim.transport.delivery import ConnectionOrder, Receiver, StreamOrder
from h3sim.transport.jitter import HoldEveryNth
from h3sim.transport.network import Jitter, Network, Pacing, Protocol
from h3sim.transport.reader import network_from_dict, network_from_toml, read_network

__all__ = [
    "ConnectionOrder",
    "HoldEveryNth",
    "Jitter",
    "Network",
    "Pacing",
    "Protocol",
    "Receiver",
    "StreamOrder",
    "network_from_dict",
    "network_from_toml",
    "read_network",
]
