"""Mechanisms: the schedulers that a scheme can run on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import Problem, SchemeError
from h3sim.schedulers import (
    BucketScheduler,
    EpsScheduler,
    FifoScheduler,
    GuardedScheduler,
    Mixed,
    Queueing,
    RankScheduler,
    RoundRobinScheduler,
    StrictScheduler,
    TreeScheduler,
    Turn,
    UnknownParent,
    Weights,
    raised_words,
)
from h3sim.signals import Signalling

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler

__all__ = ["Mechanism", "OwnMechanism", "new_scheduler"]


class Mechanism(enum.Enum):
    """The scheduler that a scheme runs on."""

    FIFO = "fifo"
    ROUND_ROBIN = "round-robin"
    TREE = "tree"
    ZERO_TREE = "zero-weight-tree"
    ZERO_LAST_TREE = "zero-last-tree"
    QUICKER_ZERO_TREE = "quicker-zero-tree"
    BUCKETS = "buckets"
    STRICT = "strict"
    EPS = "eps"
    RANKS = "ranks"
    NGHTTP2_TREE = "nghttp2-tree"
    H2O_CALENDAR = "h2o-calendar"
    ATS_HEAP = "ats-heap"

    @property
    def weights(self) -> Weights:
        """What weights mean to it."""
        return _WEIGHTS.get(self, Weights.SHARES)

    @property
    def has_turns(self) -> bool:
        """Whether it takes turns of more than a packet."""
        return self in (Mechanism.ROUND_ROBIN, Mechanism.EPS)

    @property
    def is_tree(self) -> bool:
        """Whether it is a dependency tree."""
        return self is Mechanism.TREE or self in _WEIGHTS or self in _SERVERS

    @property
    def has_orphans(self) -> bool:
        """Whether it has the orphan placeholder of HTTP/3 draft-22, if that is asked for."""
        return self.is_tree and self not in _SERVERS

    @property
    def speaks(self) -> Mechanism:
        """Whose signals its clients say: its own."""
        return self

    def make(
        self,
        *,
        turn_bytes: int,
        mixed: Mixed | None = None,
        turn: Turn | None = None,
        signalling: Signalling = Signalling.SERVER,
    ) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is what a packet is expected to carry."""
        turn = turn or Turn()
        match self:
            case Mechanism.FIFO:
                return FifoScheduler()
            case Mechanism.ROUND_ROBIN:
                return RoundRobinScheduler(turn=turn)
            case Mechanism.BUCKETS:
                return BucketScheduler()
            case (
                Mechanism.TREE
                | Mechanism.ZERO_TREE
                | Mechanism.ZERO_LAST_TREE
                | Mechanism.QUICKER_ZERO_TREE
            ):
                parent = _UNKNOWN_PARENTS.get(signalling, UnknownParent.DEFAULT)
                weights = self.weights
                return TreeScheduler(turn_bytes=turn_bytes, weights=weights, unknown_parent=parent)
            case Mechanism.NGHTTP2_TREE | Mechanism.H2O_CALENDAR | Mechanism.ATS_HEAP:
                return TreeScheduler.of_server(_SERVERS[self], turn_bytes=turn_bytes)
            case Mechanism.STRICT:
                return StrictScheduler(turn_bytes=turn_bytes)
            case Mechanism.RANKS:
                return RankScheduler()
            case Mechanism.EPS:
                return EpsScheduler(mixed=mixed or Mixed.NON_INCREMENTAL_FIRST, turn=turn)


_WEIGHTS = {
    Mechanism.ZERO_TREE: Weights.ZERO,
    Mechanism.ZERO_LAST_TREE: Weights.ZERO_LAST,
    Mechanism.QUICKER_ZERO_TREE: Weights.QUICKER_ZERO,
}
_UNKNOWN_PARENTS = {
    Signalling.DRAFT_20: UnknownParent.CREATE,
    Signalling.DRAFT_22: UnknownParent.ORPHANS,
}
"""What a tree makes of a parent that is not there, where a document says it; else RFC 7540."""
_SERVERS = {
    Mechanism.NGHTTP2_TREE: Queueing.NGHTTP2,
    Mechanism.H2O_CALENDAR: Queueing.H2O,
    Mechanism.ATS_HEAP: Queueing.ATS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMechanism:
    """A scheduler that is not h3sim's: *value* is its name, *factory* makes one.

    Its clients say what those of the mechanism *speaks* say. A factory that takes *turn_bytes* is
    told what a packet is expected to carry; one that is a scheduler is copied for each load.
    """

    value: str
    factory: Callable[..., Scheduler] | Scheduler
    speaks: Mechanism = Mechanism.TREE

    def __hash__(self) -> int:
        return hash((self.value, self.speaks))

    @property
    def weights(self) -> Weights:
        """What weights mean to it."""
        return self.speaks.weights

    def make(self, *, turn_bytes: int, **settings: object) -> Scheduler:
        """Return a new scheduler, guarded; the other *settings* are for those of h3sim.

        Raises:
            SchemeError: if it cannot be made, or lacks a method of a scheduler.
        """
        del settings
        made = new_scheduler(self.factory, turn_bytes=turn_bytes, name=self.value)
        return GuardedScheduler(made, name=self.value)


def new_scheduler(
    factory: Callable[..., Scheduler] | Scheduler, *, turn_bytes: int, name: str
) -> Scheduler:
    """Return a new scheduler of somebody else's; mistakes are told of *name*.

    What can be called is called, with *turn_bytes* if it takes that; else it is copied.

    Raises:
        SchemeError: if it cannot be made, or lacks a method of a scheduler.
    """
    try:
        made = _made(factory, turn_bytes)
    # Anything may go wrong in code of somebody else's, and one that exits must not take us along.
    except (Exception, SystemExit) as error:
        message = f"making one raised {raised_words(error)}"
        raise SchemeError([Problem(key="scheduler", message=message)], name) from error
    missing = [method for method in _METHODS if not callable(getattr(made, method, None))]
    if missing:
        message = f"a {type(made).__name__} has no {', '.join(missing)}"
        raise SchemeError([Problem(key="scheduler", message=message)], name)
    return made


def _made(factory: Callable[..., Scheduler] | Scheduler, turn_bytes: int) -> Scheduler:
    import copy  # on use: importing h3sim should stay quick
    import inspect

    if not callable(factory):
        return copy.deepcopy(factory)
    try:
        takes_turns = "turn_bytes" in inspect.signature(factory).parameters
    except ValueError:  # some callables made in C do not say
        takes_turns = False
    return factory(turn_bytes=turn_bytes) if takes_turns else factory()


_METHODS = ("open", "update", "activate", "deactivate", "close", "pick", "charge")
