"""The engine: the only floor that knows SimPy, and the only one that lets time pass."""

from h3sim.engine.environment import LoadEnvironment, Process
from h3sim.engine.simulation import simulate

__all__ = ["LoadEnvironment", "Process", "simulate"]
