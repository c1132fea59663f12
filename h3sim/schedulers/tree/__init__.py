"""The dependency tree of HTTP/2, and the disciplines by which servers queue in it."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.schedulers.tree.options import Orphans, Queueing, TreeRules, UnknownParent, Weights
    from h3sim.schedulers.tree.scheduler import TreeScheduler
    from h3sim.schedulers.tree.shape import SelfDependencyError

__all__ = [
    "Orphans",
    "Queueing",
    "SelfDependencyError",
    "TreeRules",
    "TreeScheduler",
    "UnknownParent",
    "Weights",
]

__getattr__, __dir__ = attach(
    __name__,
    options="Orphans Queueing TreeRules UnknownParent Weights",
    scheduler="TreeScheduler",
    shape="SelfDependencyError",
)
