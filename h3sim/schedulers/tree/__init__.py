"""The dependency tree of HTTP/2, and the disciplines by which servers queue in it.

Begin with `scheduler.py`; `shape.py` has the tree, `disciplines.py` the order among siblings.
"""

from h3sim.schedulers.tree.options import Orphans, Queueing, TreeRules, UnknownParent, Weights
from h3sim.schedulers.tree.ranked import RankedTreeScheduler
from h3sim.schedulers.tree.scheduler import TreeScheduler
from h3sim.schedulers.tree.shape import SelfDependencyError

__all__ = [
    "Orphans",
    "Queueing",
    "RankedTreeScheduler",
    "SelfDependencyError",
    "TreeRules",
    "TreeScheduler",
    "UnknownParent",
    "Weights",
]
