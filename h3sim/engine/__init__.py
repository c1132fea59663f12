"""The engine: advances simulated time; the only floor that imports SimPy."""

from h3sim.engine.connections import Connection, PacketCount
from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.load_spec import LoadResult, LoadSpec
from h3sim.engine.simulation import simulate

__all__ = [
    "Connection",
    "LoadEnvironment",
    "LoadResult",
    "LoadSpec",
    "PacketCount",
    "Process",
    "simulate",
]
