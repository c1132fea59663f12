"""A scheme as a value: rules that put a resource into a class, and what each class asks for."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h3sim.errors import Problem, SchemeError
from h3sim.schedulers import (
    BucketScheduler,
    FifoScheduler,
    RoundRobinScheduler,
    TreeScheduler,
    Weights,
)
from h3sim.signals import DEFAULT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from h3sim.page import Kind, Resource
    from h3sim.schedulers import Scheduler

__all__ = [
    "CONDITIONS",
    "Arrangement",
    "Mechanism",
    "OwnMechanism",
    "Placeholder",
    "PriorityClass",
    "Rule",
    "Scheme",
]


class Mechanism(enum.Enum):
    """The scheduler that a scheme runs on."""

    FIFO = "fifo"
    ROUND_ROBIN = "round-robin"
    TREE = "tree"
    ZERO_TREE = "zero-weight-tree"
    BUCKETS = "buckets"

    @property
    def weights(self) -> Weights:
        """What weights mean to it."""
        return Weights.ZERO if self is Mechanism.ZERO_TREE else Weights.SHARES

    def make(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is what a turn is expected to carry."""
        match self:
            case Mechanism.FIFO:
                return FifoScheduler()
            case Mechanism.ROUND_ROBIN:
                return RoundRobinScheduler()
            case Mechanism.BUCKETS:
                return BucketScheduler()
            case Mechanism.TREE | Mechanism.ZERO_TREE:
                return TreeScheduler(turn_bytes=turn_bytes, weights=self.weights)

    @property
    def speaks(self) -> Mechanism:
        """Whose signals its clients say: its own."""
        return self


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

    def make(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler.

        Raises:
            SchemeError: if what is made lacks a method of a scheduler.
        """
        made = self._made(turn_bytes)
        missing = [name for name in _METHODS if not callable(getattr(made, name, None))]
        if missing:
            message = f"a {type(made).__name__} has no {', '.join(missing)}"
            raise SchemeError([Problem(key="scheduler", message=message)], self.value)
        return made

    def _made(self, turn_bytes: int) -> Scheduler:
        import copy  # on use: importing h3sim should stay quick
        import inspect

        if not callable(self.factory):
            return copy.deepcopy(self.factory)
        try:
            takes_turns = "turn_bytes" in inspect.signature(self.factory).parameters
        except ValueError:  # some callables made in C do not say
            takes_turns = False
        return self.factory(turn_bytes=turn_bytes) if takes_turns else self.factory()


_METHODS = ("open", "update", "activate", "deactivate", "close", "pick", "charge")


class Arrangement(enum.Enum):
    """How the streams of a class stand under its group in the tree."""

    SIBLINGS = "siblings"
    """All are children of the group and share by weight."""
    CHAIN = "chain"
    """Each is the child of the one before: first in, first out."""
    STRICT_CHAIN = "strict-chain"
    """Exclusively below the last stream of the lowest class that is not below its own: classes in
    the order of the file, first in first out in each (dfifo)."""


CONDITIONS = {
    "in_head": "in_head",
    "async": "is_async",
    "defer": "is_defer",
    "preload": "preload",
    "after_first_image": "after_first_image",
    "above_the_fold": "above_the_fold",
    "critical": "critical",
}
"""The flags that a rule may ask for, each with the attribute of `Resource` that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Puts a resource into a class if it is of one of *kinds* and each flag is as given.

    *any_of* names flags of which at least one must be set; *root* asks for the main document.
    """

    class_name: str
    kinds: tuple[Kind, ...] = ()
    flags: tuple[tuple[str, bool], ...] = ()
    any_of: tuple[str, ...] = ()
    root: bool | None = None

    def matches(self, resource: Resource) -> bool:
        """Return whether the rule speaks of *resource*."""
        if self.kinds and resource.kind not in self.kinds:
            return False
        if self.root is not None and self.root != (resource.discovered is None):
            return False
        if any(getattr(resource, CONDITIONS[name]) != wanted for name, wanted in self.flags):
            return False
        return not self.any_of or any(getattr(resource, CONDITIONS[name]) for name in self.any_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A node of the tree that only groups others, under *parent* or the root.

    While class *yields_to* has a stream in the tree, the weight is *yielding_weight*.
    """

    name: str
    weight: int
    parent: str | None = None
    yields_to: str | None = None
    yielding_weight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """What the streams of a class ask for: a weight under a placeholder, or a bucket and level."""

    name: str
    weight: int = DEFAULT_WEIGHT
    group: str | None = None
    arrangement: Arrangement = Arrangement.SIBLINGS
    bucket: int | None = None
    level: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """A row of `models/schemes/`: `docs/schemes.md` explains its fields.

    The first rule that matches a resource decides its class; one that no rule matches falls into
    *otherwise*. A *caveat* is told wherever results of the scheme are shown; *knows* names what
    the scheme uses that no browser knows.

    Raises:
        SchemeError: listing every name that is used and not defined.
    """

    name: str
    title: str
    mechanism: Mechanism | OwnMechanism
    signalling: str
    source: str
    classes: tuple[PriorityClass, ...]
    rules: tuple[Rule, ...] = ()
    otherwise: str = ""
    placeholders: tuple[Placeholder, ...] = ()
    notes: str = ""
    caveat: str = ""
    knows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise SchemeError(problems, self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.classes, self.rules))

    def make_scheduler(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is what a packet is expected to carry."""
        return self.mechanism.make(turn_bytes=turn_bytes)

    def classify(self, resource: Resource) -> PriorityClass:
        """Return the class of *resource*."""
        name = next((r.class_name for r in self.rules if r.matches(resource)), self.otherwise)
        return self.class_named(name)

    def class_named(self, name: str) -> PriorityClass:
        """Return the class of that name."""
        return next(entry for entry in self.classes if entry.name == name)

    def _problems(self) -> Iterator[Problem]:
        yield from self._weight_problems()
        names = [holder.name for holder in self.placeholders]
        for place, name in enumerate(names):
            if name in names[:place]:
                message = f"{name!r} is already the name of placeholders[{names.index(name)}]"
                yield Problem(key=f"placeholders[{place}].name", message=message)
        classes = {entry.name for entry in self.classes}
        groups: dict[str, int] = {entry.name: i for i, entry in enumerate(self.placeholders)}
        yield from _unknown("otherwise", self.otherwise, classes)
        for place, rule in enumerate(self.rules):
            yield from _unknown(f"rules[{place}].class", rule.class_name, classes)
        for entry in self.classes:
            yield from _unknown(f"classes.{entry.name}.group", entry.group, groups)
            if (self.mechanism.speaks is Mechanism.BUCKETS) != (entry.bucket is not None):
                message = "goes with the mechanism 'buckets', and that with it"
                yield Problem(key=f"classes.{entry.name}.bucket", message=message)
        for place, holder in enumerate(self.placeholders):
            key = f"placeholders[{place}]"
            yield from _unknown(f"{key}.yields_to", holder.yields_to, classes)
            if holder.parent is not None and groups.get(holder.parent, place) >= place:
                message = f"{holder.parent!r} is not a placeholder declared before it"
                yield Problem(key=f"{key}.parent", message=message)

    def _weight_problems(self) -> Iterator[Problem]:
        """Yield each weight that the mechanism has no meaning for."""
        low, high = self.mechanism.weights.limits
        weights: dict[str, int | None] = {
            f"classes.{entry.name}.weight": entry.weight for entry in self.classes
        }
        for place, holder in enumerate(self.placeholders):
            weights[f"placeholders[{place}].weight"] = holder.weight
            weights[f"placeholders[{place}].yielding_weight"] = holder.yielding_weight
        for key, weight in weights.items():
            if weight is not None and not low <= weight <= high:
                yield Problem(key=key, message=f"must be {low} to {high}, is {weight}")


def _unknown(key: str, name: str | None, known: set[str] | Mapping[str, int]) -> Iterator[Problem]:
    if name is not None and name not in known:
        yield Problem(key=key, message=f"{name!r} is not one of {', '.join(known) or '(none)'}")
