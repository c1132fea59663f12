"""The public names of `h3sim.schedulers.tree`, each loaded when it is first used."""

from h3sim.schedulers.tree.options import Orphans as Orphans
from h3sim.schedulers.tree.options import Queueing as Queueing
from h3sim.schedulers.tree.options import TreeRules as TreeRules
from h3sim.schedulers.tree.options import UnknownParent as UnknownParent
from h3sim.schedulers.tree.options import Weights as Weights
from h3sim.schedulers.tree.scheduler import TreeScheduler as TreeScheduler
from h3sim.schedulers.tree.shape import SelfDependencyError as SelfDependencyError

__all__: list[str]
