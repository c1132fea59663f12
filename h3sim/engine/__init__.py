"""The engine: advances simulated time; the only floor that imports SimPy."""

from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.simulation import simulate
from h3sim.load import LoadSpec

__all__ = ["LoadEnvironment", "LoadSpec", "Process", "simulate"]
