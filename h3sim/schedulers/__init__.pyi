"""The public names of `h3sim.schedulers`, each loaded when it is first used."""

from h3sim.schedulers.adaptive import AdaptiveRoundRobinScheduler as AdaptiveRoundRobinScheduler
from h3sim.schedulers.base import (
    HearsLosses as HearsLosses,
    Requeuing as Requeuing,
    Scheduler as Scheduler,
)
from h3sim.schedulers.buckets import BucketScheduler as BucketScheduler
from h3sim.schedulers.eps import (
    EpsScheduler as EpsScheduler,
    Mixed as Mixed,
)
from h3sim.schedulers.fifo import FifoScheduler as FifoScheduler
from h3sim.schedulers.guarded import GuardedScheduler as GuardedScheduler
from h3sim.schedulers.next_adapter import (
    NextAdapter as NextAdapter,
    NextScheduler as NextScheduler,
)
from h3sim.schedulers.ranks import RankScheduler as RankScheduler
from h3sim.schedulers.retransmit import Retransmit as Retransmit
from h3sim.schedulers.round_robin import RoundRobinScheduler as RoundRobinScheduler
from h3sim.schedulers.strict import StrictScheduler as StrictScheduler
from h3sim.schedulers.tree import (
    Orphans as Orphans,
    Queueing as Queueing,
    SelfDependencyError as SelfDependencyError,
    TreeRules as TreeRules,
    TreeScheduler as TreeScheduler,
    UnknownParent as UnknownParent,
    Weights as Weights,
)
from h3sim.schedulers.turns import Turn as Turn

__all__: list[str]
