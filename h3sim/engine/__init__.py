"""The engine: the only floor that knows SimPy, and the only one that lets time pass."""

from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.simulation import MAX_LOAD_NS, simulate

__all__ = ["MAX_LOAD_NS", "LoadEnvironment", "Process", "simulate"]
