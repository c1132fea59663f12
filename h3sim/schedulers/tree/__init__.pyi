"""The public names of `h3sim.schedulers.tree`, each loaded when it is first used."""

from h3sim.schedulers.tree.options import (
    Orphans as Orphans,
    Queueing as Queueing,
    TreeRules as TreeRules,
    UnknownParent as UnknownParent,
    Weights as Weights,
)
from h3sim.schedulers.tree.scheduler import TreeScheduler as TreeScheduler
from h3sim.schedulers.tree.shape import SelfDependencyError as SelfDependencyError

__all__: list[str]
