"""Mechanisms: which stream sends next. No clock, no bytes, no SimPy."""

from h3sim.schedulers.base import Requeuing, Scheduler
from h3sim.schedulers.buckets import BucketScheduler
from h3sim.schedulers.eps import EpsScheduler, Mixed
from h3sim.schedulers.fifo import FifoScheduler
from h3sim.schedulers.guarded import GuardedScheduler, raised_words
from h3sim.schedulers.next_adapter import NextAdapter, NextScheduler
from h3sim.schedulers.ranks import RankScheduler
from h3sim.schedulers.retransmit import Retransmit
from h3sim.schedulers.round_robin import RoundRobinScheduler
from h3sim.schedulers.strict import StrictScheduler
from h3sim.schedulers.tree import (
    Orphans,
    Queueing,
    SelfDependencyError,
    TreeScheduler,
    UnknownParent,
    Weights,
)
from h3sim.schedulers.turns import Turn

__all__ = [
    "BucketScheduler",
    "EpsScheduler",
    "FifoScheduler",
    "GuardedScheduler",
    "Mixed",
    "NextAdapter",
    "NextScheduler",
    "Orphans",
    "Queueing",
    "RankScheduler",
    "Requeuing",
    "Retransmit",
    "RoundRobinScheduler",
    "Scheduler",
    "SelfDependencyError",
    "StrictScheduler",
    "TreeScheduler",
    "Turn",
    "UnknownParent",
    "Weights",
    "raised_words",
]
