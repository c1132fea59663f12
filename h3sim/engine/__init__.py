"""The engine: the only floor that knows SimPy, and the only one that lets time pass."""

from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.simulation import simulate
from h3sim.results import LoadSpec

__all__ = ["LoadEnvironment", "LoadSpec", "Process", "simulate"]
