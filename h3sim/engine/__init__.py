"""The engine: advances simulated time and joins browser, server and transport to a load.

It may import schemes, HTTP and all below them, but no names or files, and nothing else imports
SimPy. Begin with `simulation.py`, then `http_connection.py`.
"""

from h3sim.engine.connections import Connection, PacketCount
from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.load_spec import LoadResult, LoadSpec
from h3sim.engine.simulation import simulate
from h3sim.engine.stepped_load import SteppedLoad

__all__ = [
    "Connection",
    "LoadEnvironment",
    "LoadResult",
    "LoadSpec",
    "PacketCount",
    "Process",
    "SteppedLoad",
    "simulate",
]
