"""The public names of `h3sim.schedulers`, each loaded when it is first used."""

from h3sim.schedulers.adapters import CheckedScheduler as CheckedScheduler
from h3sim.schedulers.adapters import NextAdapter as NextAdapter
from h3sim.schedulers.adapters import NextScheduler as NextScheduler
from h3sim.schedulers.base import LossObserver as LossObserver
from h3sim.schedulers.base import SupportsRequeue as SupportsRequeue
from h3sim.schedulers.base import Retransmit as Retransmit
from h3sim.schedulers.base import Scheduler as Scheduler
from h3sim.schedulers.base import Quantum as Quantum
from h3sim.schedulers.buckets import BucketScheduler as BucketScheduler
from h3sim.schedulers.driver import DriverScheduler as DriverScheduler
from h3sim.schedulers.driver import close_drivers as close_drivers
from h3sim.schedulers.driver import drivers_released as drivers_released
from h3sim.schedulers.eps import ByteListEpsScheduler as ByteListEpsScheduler
from h3sim.schedulers.eps import EpsScheduler as EpsScheduler
from h3sim.schedulers.eps import Mixed as Mixed
from h3sim.schedulers.eps import RingEpsScheduler as RingEpsScheduler
from h3sim.schedulers.round_robin import AdaptiveRoundRobinScheduler as AdaptiveRoundRobinScheduler
from h3sim.schedulers.round_robin import RoundRobinScheduler as RoundRobinScheduler
from h3sim.schedulers.static_priority import FifoScheduler as FifoScheduler
from h3sim.schedulers.static_priority import RankScheduler as RankScheduler
from h3sim.schedulers.strict import StrictScheduler as StrictScheduler
from h3sim.schedulers.tree import Orphans as Orphans
from h3sim.schedulers.tree import Queueing as Queueing
from h3sim.schedulers.tree import SelfDependencyError as SelfDependencyError
from h3sim.schedulers.tree import TreeRules as TreeRules
from h3sim.schedulers.tree import TreeScheduler as TreeScheduler
from h3sim.schedulers.tree import UnknownParent as UnknownParent
from h3sim.schedulers.tree import Weights as Weights

__all__: list[str]
