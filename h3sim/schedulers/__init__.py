"""Mechanisms: which stream sends next. No clock, no bytes, no SimPy."""

from h3sim.schedulers.base import Scheduler
from h3sim.schedulers.buckets import BucketScheduler
from h3sim.schedulers.fifo import FifoScheduler
from h3sim.schedulers.round_robin import RoundRobinScheduler
from h3sim.schedulers.tree import (
    Orphans,
    Queueing,
    SelfDependencyError,
    TreeScheduler,
    UnknownParent,
    Weights,
)

__all__ = [
    "BucketScheduler",
    "FifoScheduler",
    "Orphans",
    "Queueing",
    "RoundRobinScheduler",
    "Scheduler",
    "SelfDependencyError",
    "TreeScheduler",
    "UnknownParent",
    "Weights",
]
