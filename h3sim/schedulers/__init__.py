"""Mechanisms: which stream sends next. No clock, no bytes, no SimPy."""

from h3sim.schedulers.base import Requeuing, Scheduler
from h3sim.schedulers.buckets import BucketScheduler
from h3sim.schedulers.fifo import FifoScheduler
from h3sim.schedulers.round_robin import RoundRobinScheduler
from h3sim.schedulers.tree import TreeScheduler, Weights

__all__ = [
    "BucketScheduler",
    "FifoScheduler",
    "Requeuing",
    "RoundRobinScheduler",
    "Scheduler",
    "TreeScheduler",
    "Weights",
]
