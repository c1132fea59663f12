"""A scheme as a value: rules that put a resource into a class, and what each class asks for."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from h3sim.documents import not_one_of
from h3sim.errors import Problem, SchemeError
from h3sim.notebook import html_table
from h3sim.page import Kind
from h3sim.schemes.kinds import CustomScheduler, SchedulerKind, SignalKind
from h3sim.signals import DEFAULT_STRICT, DEFAULT_URGENCY, DEFAULT_WEIGHT, Signalling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import FetchPriority, Resource
    from h3sim.schedulers import Mixed, Retransmit, Scheduler, Turn
    from h3sim.schemes.ranks import RankBy

__all__ = [
    "CONDITIONS",
    "Arrangement",
    "CustomScheduler",
    "Placeholder",
    "PriorityClass",
    "Rule",
    "SchedulerKind",
    "Scheme",
    "SignalKind",
]


class Arrangement(enum.Enum):
    """How the streams of a class stand under its group in the tree."""

    SIBLINGS = "siblings"
    """All are children of the group and share by weight."""
    CHAIN = "chain"
    """Each is the child of the one before: first in, first out."""
    STRICT_CHAIN = "strict-chain"
    """Exclusively below the last stream of the lowest class that is not below its own: classes in
    the order of the file, first in first out in each (Chromium's lists of streams)."""
    QUICKER_CHAIN = "quicker-chain"
    """As `STRICT_CHAIN`, but a class whose last stream leaves the tree takes that stream's parent
    for its last, whatever class the parent is of (dfifo in the code of Marx 2019)."""

    @property
    def is_exclusive(self) -> bool:
        """Whether streams are inserted exclusively."""
        return self in (Arrangement.STRICT_CHAIN, Arrangement.QUICKER_CHAIN)


CONDITIONS = {
    "in_head": "in_head",
    "async": "is_async",
    "defer": "is_defer",
    "preload": "preload",
    "after_first_image": "after_first_image",
    "above_the_fold": "above_the_fold",
    "critical": "critical",
    "render_blocking": "render_blocking",
    "hero": "hero",
}
"""The flags that a rule may ask for, each with the attribute of `Resource` that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Puts a resource into a class if it is of one of *kinds* and each flag is as given.

    *any_of* names flags of which at least one must be set; *root* asks for the main document;
    *fetchpriority* is what the page's author asks for; *first_images* asks for one of the first so
    many images that are requested.
    """

    class_name: str
    kinds: tuple[Kind, ...] = ()
    flags: tuple[tuple[str, bool], ...] = ()
    any_of: tuple[str, ...] = ()
    root: bool | None = None
    fetchpriority: FetchPriority | None = None
    first_images: int | None = None

    def matches(self, resource: Resource, *, images_before: int = 0) -> bool:
        """Return whether the rule speaks of *resource*, behind so many images."""
        if self.kinds and resource.kind not in self.kinds:
            return False
        if self.root is not None and self.root != (resource.discovered is None):
            return False
        if self.fetchpriority not in (None, resource.fetchpriority):
            return False
        if self.first_images is not None and not self._is_early_image(resource, images_before):
            return False
        if any(getattr(resource, CONDITIONS[name]) != wanted for name, wanted in self.flags):
            return False
        return not self.any_of or any(getattr(resource, CONDITIONS[name]) for name in self.any_of)

    def _is_early_image(self, resource: Resource, images_before: int) -> bool:
        return resource.kind is Kind.IMAGE and images_before < (self.first_images or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A node of the tree that only groups others, under *parent* or the root.

    While class *yields_to* has a stream in the tree, the weight is *yielding_weight*. With the
    mechanism `strict` it has a strict priority as well.
    """

    name: str
    weight: int
    strict: int = DEFAULT_STRICT
    parent: str | None = None
    yields_to: str | None = None
    yielding_weight: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    """What the streams of a class ask for.

    That is a weight under a placeholder, a strict priority as well or not, a bucket and level, or
    an urgency, and sharing or not.
    """

    name: str
    weight: int = DEFAULT_WEIGHT
    strict: int = DEFAULT_STRICT
    group: str | None = None
    arrangement: Arrangement = Arrangement.SIBLINGS
    bucket: int | None = None
    level: int | None = None
    urgency: int = DEFAULT_URGENCY
    incremental: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Scheme:
    """A row of `models/schemes/`: `docs/schemes.md` explains its fields.

    The first rule that matches a resource decides its class; one that no rule matches falls into
    *otherwise*. A *caveat* is told wherever results of the scheme are shown; *knows* names what
    the scheme uses that no browser knows. *mixed* and *turn* are settings of the mechanism; where
    there is a *retransmission*, it goes before that of the transport profile.

    Raises:
        SchemeError: listing every name that is used and not defined, and every setting that the
            mechanism has no meaning for.
    """

    name: str
    title: str
    mechanism: SchedulerKind | CustomScheduler
    signalling: Signalling
    source: str
    classes: tuple[PriorityClass, ...]
    rules: tuple[Rule, ...] = ()
    otherwise: str = ""
    placeholders: tuple[Placeholder, ...] = ()
    notes: str = ""
    caveat: str = ""
    knows: tuple[str, ...] = ()
    rank_by: RankBy | None = None
    mixed: Mixed | None = None
    turn: Turn | None = None
    retransmission: Retransmit | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise SchemeError(problems, self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.classes, self.rules))

    def __repr__(self) -> str:
        return f"<Scheme {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        rows = [(field.name, _told(getattr(self, field.name))) for field in fields(self)]
        return html_table(("field", "value"), [row for row in rows if row[1]])

    def make_scheduler(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is what a packet is expected to carry."""
        return self.mechanism.make(
            turn_bytes=turn_bytes, mixed=self.mixed, turn=self.turn, signalling=self.signalling
        )

    def classify(self, resource: Resource, *, images_before: int = 0) -> PriorityClass:
        """Return the class of *resource*, before which so many images were requested."""
        for rule in self.rules:
            if rule.matches(resource, images_before=images_before):
                return self.class_named(rule.class_name)
        return self.class_named(self.otherwise)

    def class_named(self, name: str) -> PriorityClass:
        """Return the class of that name."""
        return next(entry for entry in self.classes if entry.name == name)

    def _problems(self) -> Iterator[Problem]:
        yield from self._weight_problems()
        yield from self._setting_problems()
        names = [holder.name for holder in self.placeholders]
        for place, name in enumerate(names):
            if name in names[:place]:
                message = f"{name!r} is already the name of placeholders[{names.index(name)}]"
                yield Problem(key=f"placeholders[{place}].name", message=message)
        classes = {entry.name: i for i, entry in enumerate(self.classes)}
        groups: dict[str, int] = {entry.name: i for i, entry in enumerate(self.placeholders)}
        yield from _unknown("otherwise", self.otherwise, classes)
        for place, rule in enumerate(self.rules):
            yield from _unknown(f"rules[{place}].class", rule.class_name, classes)
        for entry in self.classes:
            yield from _unknown(f"classes.{entry.name}.group", entry.group, groups)
            has_bucket = entry.bucket is not None
            if (self.mechanism.signal_kind is SignalKind.BUCKETS) != has_bucket:
                message = "goes with the mechanism 'buckets', and that with it"
                yield Problem(key=f"classes.{entry.name}.bucket", message=message)
        for place, holder in enumerate(self.placeholders):
            key = f"placeholders[{place}]"
            yield from _unknown(f"{key}.yields_to", holder.yields_to, classes)
            if holder.parent is not None and groups.get(holder.parent, place) >= place:
                message = f"{holder.parent!r} is not a placeholder declared before it"
                yield Problem(key=f"{key}.parent", message=message)

    def _setting_problems(self) -> Iterator[Problem]:
        """Yield each setting that the mechanism does not have, and the one that it needs."""
        if (self.rank_by is not None) != (self.mechanism.signal_kind is SignalKind.RANKS):
            message = "goes with the mechanism 'ranks', and that with it"
            yield Problem(key="rank_by", message=message)
        yield from self._signalling_problems()
        if self.mixed is not None and self.mechanism is not SchedulerKind.EPS:
            yield Problem(key="mixed", message="goes only with the mechanism 'eps'")
        if self.turn is not None and not self.mechanism.has_turns:
            key = "turn_packets" if self.turn.size_bytes is None else "turn_bytes"
            names = " and ".join(repr(kind.value) for kind in SchedulerKind if kind.has_turns)
            yield Problem(key=key, message=f"goes only with the mechanisms {names}")

    def _signalling_problems(self) -> Iterator[Problem]:
        """Yield what the mechanism cannot hear, or the signalling cannot say."""
        kind, signalling = self.mechanism.signal_kind, self.signalling
        if signalling is Signalling.EPS and kind is not SignalKind.EPS:
            yield Problem(key="signalling", message="'eps' goes with the mechanism 'eps'")
        needs_tree = signalling.is_sent and signalling is not Signalling.EPS
        # Strict priorities were proposed for draft-20, and said as weights are there.
        is_strict = kind is SignalKind.STRICT and signalling is Signalling.DRAFT_20
        if needs_tree and kind is not SignalKind.TREE and not is_strict:
            message = f"{signalling.value!r} goes with a mechanism that is a tree"
            yield Problem(key="signalling", message=message)
        elif signalling is Signalling.DRAFT_22 and not self.mechanism.has_orphans:
            message = f"'draft-22' has orphans, and {self.mechanism.value!r} no place for them"
            yield Problem(key="signalling", message=message)
        for entry in self.classes:
            if entry.arrangement.is_exclusive and self.signalling is Signalling.DRAFT_20:
                message = "needs exclusive dependencies, and 'draft-20' has none"
                yield Problem(key=f"classes.{entry.name}.arrangement", message=message)

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


def _told(value: object) -> str:
    """Return a field's value for people: several in a line, choices by their names."""
    if isinstance(value, tuple):
        return ", ".join(_told(getattr(item, "name", item)) for item in value)
    return "" if value is None else str(getattr(value, "value", value))


def _unknown(key: str, name: str | None, known: Mapping[str, int]) -> Iterator[Problem]:
    if name is not None and name not in known:
        yield Problem(key=key, message=not_one_of(name, known))
