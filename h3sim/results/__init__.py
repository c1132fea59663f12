"""The result of a load: its metrics, its configuration, and its document."""

from h3sim.results.configuration import (
    FORMAT,
    MAX_CONNECTIONS_PER_HOST,
    MAX_LOAD_NS,
    LoadSpec,
    describe,
    in_words,
)
from h3sim.results.connections import PacketCount
from h3sim.results.load import Hol, Load, ResourceTiming, Which

__all__ = [
    "FORMAT",
    "MAX_CONNECTIONS_PER_HOST",
    "MAX_LOAD_NS",
    "Hol",
    "Load",
    "LoadSpec",
    "PacketCount",
    "ResourceTiming",
    "Which",
    "describe",
    "in_words",
]
