"""The dependency tree of HTTP/2, and the disciplines by which servers queue in it."""

from h3sim.schedulers.tree.options import Orphans, Queueing, UnknownParent, Weights
from h3sim.schedulers.tree.scheduler import TreeScheduler
from h3sim.schedulers.tree.shape import SelfDependencyError

__all__ = [
    "Orphans",
    "Queueing",
    "SelfDependencyError",
    "TreeScheduler",
    "UnknownParent",
    "Weights",
]
