"""Schedulers: which stream sends next. No clock, no bytes, no SimPy.

They may import signals only. Begin with `base.py`, the contract, then `static_priority.py`.
"""

from h3sim.schedulers.adapters import CheckedScheduler, NextAdapter, NextScheduler
from h3sim.schedulers.base import LossObserver, Quantum, Retransmit, Scheduler, SupportsRequeue
from h3sim.schedulers.buckets import BucketScheduler
from h3sim.schedulers.driver import DriverScheduler, close_drivers, drivers_released
from h3sim.schedulers.eps import ByteListEpsScheduler, EpsScheduler, Mixed, RingEpsScheduler
from h3sim.schedulers.round_robin import AdaptiveRoundRobinScheduler, RoundRobinScheduler
from h3sim.schedulers.static_priority import FifoScheduler, RankScheduler
from h3sim.schedulers.strict import StrictScheduler
from h3sim.schedulers.tree import (
    Orphans,
    Queueing,
    RankedTreeScheduler,
    SelfDependencyError,
    TreeRules,
    TreeScheduler,
    UnknownParent,
    Weights,
)

__all__ = [
    "AdaptiveRoundRobinScheduler",
    "BucketScheduler",
    "ByteListEpsScheduler",
    "CheckedScheduler",
    "DriverScheduler",
    "EpsScheduler",
    "FifoScheduler",
    "LossObserver",
    "Mixed",
    "NextAdapter",
    "NextScheduler",
    "Orphans",
    "Quantum",
    "Queueing",
    "RankScheduler",
    "RankedTreeScheduler",
    "Retransmit",
    "RingEpsScheduler",
    "RoundRobinScheduler",
    "Scheduler",
    "SelfDependencyError",
    "StrictScheduler",
    "SupportsRequeue",
    "TreeRules",
    "TreeScheduler",
    "UnknownParent",
    "Weights",
    "close_drivers",
    "drivers_released",
]
