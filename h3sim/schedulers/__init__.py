"""Mechanisms: which stream sends next. No clock, no bytes, no SimPy."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.schedulers.adaptive import AdaptiveRoundRobinScheduler
    from h3sim.schedulers.base import HearsLosses, Requeuing, Scheduler
    from h3sim.schedulers.buckets import BucketScheduler
    from h3sim.schedulers.eps import EpsScheduler, Mixed
    from h3sim.schedulers.fifo import FifoScheduler
    from h3sim.schedulers.guarded import GuardedScheduler
    from h3sim.schedulers.next_adapter import NextAdapter, NextScheduler
    from h3sim.schedulers.ranks import RankScheduler
    from h3sim.schedulers.retransmit import Retransmit
    from h3sim.schedulers.round_robin import RoundRobinScheduler
    from h3sim.schedulers.strict import StrictScheduler
    from h3sim.schedulers.tree import (
        Orphans,
        Queueing,
        SelfDependencyError,
        TreeRules,
        TreeScheduler,
        UnknownParent,
        Weights,
    )
    from h3sim.schedulers.turns import Turn

__all__ = [
    "AdaptiveRoundRobinScheduler",
    "BucketScheduler",
    "EpsScheduler",
    "FifoScheduler",
    "GuardedScheduler",
    "HearsLosses",
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
    "TreeRules",
    "TreeScheduler",
    "Turn",
    "UnknownParent",
    "Weights",
]

__getattr__, __dir__ = attach(
    __name__,
    adaptive="AdaptiveRoundRobinScheduler",
    base="HearsLosses Requeuing Scheduler",
    buckets="BucketScheduler",
    eps="EpsScheduler Mixed",
    fifo="FifoScheduler",
    guarded="GuardedScheduler",
    next_adapter="NextAdapter NextScheduler",
    ranks="RankScheduler",
    retransmit="Retransmit",
    round_robin="RoundRobinScheduler",
    strict="StrictScheduler",
    tree="Orphans Queueing SelfDependencyError TreeRules TreeScheduler UnknownParent Weights",
    turns="Turn",
)
