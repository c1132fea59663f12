"""A scheme as a value: rules that put a resource into a class, and what each class asks for."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from h3sim.documents import not_one_of
from h3sim.documents.declared import says, settle
from h3sim.documents.nested import Inline, Named, Table
from h3sim.documents.refused import RefusedError
from h3sim.documents.values import (
    Choice,
    Flag,
    ListOf,
    Milliseconds,
    OneOrMore,
    Text,
    ValueType,
    Whole,
)
from h3sim.errors import Problem, SchemeError
from h3sim.notebook import html_table
from h3sim.page import AS_WRITTEN
from h3sim.schedulers import Mixed, Retransmit, Turn
from h3sim.schemes.kinds import CustomScheduler, SchedulerKind, SignalKind
from h3sim.schemes.known import KnownClasses
from h3sim.schemes.parts import UPDATES, Placeholder, PriorityClass, Rule, ServerHint
from h3sim.schemes.ranks import RankBy
from h3sim.schemes.recorded import RecordedBy, recorded_class
from h3sim.schemes.registry import REGISTRY
from h3sim.signals import (
    Signalling,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import Resource, ServerPriority, Standing
    from h3sim.schedulers import Scheduler

__all__ = ["Scheme"]

_RETENTION = Milliseconds(low=0, high=86_400_000.0, hint="a day")


class _Scheduler(ValueType):
    """A kind of scheduler; its name in a file is looked up before that is read."""

    stand_in = SchedulerKind.TREE

    def accept(self, value: Any) -> SchedulerKind | CustomScheduler:
        if isinstance(value, SchedulerKind | CustomScheduler):
            return value
        raise RefusedError(not_one_of(value, REGISTRY.names()))

    def write(self, value: Any) -> str:
        name: str = value.value
        return name

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True, kw_only=True, repr=False)
class Scheme:
    """A row of `models/schemes/`: `docs/schemes.md` explains its fields.

    The first rule that matches a resource decides its class; one that no rule matches falls into
    *otherwise*. A *caveat* is told wherever results of the scheme are shown; *knows* names what
    the scheme uses that no browser knows. *mixed* and *turn* are settings of the mechanism; where
    there is a *retransmission*, it goes before that of the transport profile. The client declares
    no more than *max_placeholders* (SETTINGS_NUM_PLACEHOLDERS of HTTP/3 drafts 20 and 22), the
    first of the file. A server that keeps closed streams for *retention_ns* can place others
    relative to them (RFC 7540 § 5.3.4); without a word that is as the mechanism has it. Of what
    changes while a stream is open, the client sends a frame for what *updates* names; the rest it
    says only with requests that follow.

    Raises:
        SchemeError: listing every name that is used and not defined, and every setting that the
            mechanism has no meaning for.
    """

    name: str = field(metadata=says(Text(is_needed=True), "what results call it"))
    title: str = field(metadata=says(Text(), "what it is, in a line"))
    source: str = field(metadata=says(Text(), "where its rules are from"))
    mechanism: SchedulerKind | CustomScheduler = field(
        metadata=says(_Scheduler(), "what the server schedules with")
    )
    signalling: Signalling = field(
        metadata=says(Choice(Signalling), "how priorities reach the server")
    )
    notes: str = field(default="", metadata=says(Text(), "what else there is to say"))
    caveat: str = field(default="", metadata=says(Text(), "shown wherever its results are"))
    knows: tuple[str, ...] = field(
        default=(), metadata=says(OneOrMore(Text(), "texts"), "what it uses that no browser knows")
    )
    rank_by: RankBy | None = field(
        default=None, metadata=says(Choice(RankBy), "what a page is ranked by")
    )
    mixed: Mixed | None = field(
        default=None, metadata=says(Choice(Mixed), "who goes first in an urgency")
    )
    turn: Turn | None = field(default=None, metadata=says(Inline(Turn), "how long a turn is"))
    retransmission: Retransmit | None = field(
        default=None, metadata=says(Choice(Retransmit), "when lost bytes go again")
    )
    recorded: RecordedBy | None = field(
        default=None,
        metadata=says(Choice(RecordedBy), "whose recorded priorities go before the rules"),
    )
    hints: tuple[ServerHint, ...] = field(
        default=(),
        metadata=says(ListOf(Table(ServerHint, is_kept=True), "tables"), "the server's own word"),
    )
    doubts_clients: bool = field(
        default=False, metadata=says(Flag(), "the server goes by types where advice looks bad")
    )
    max_placeholders: int | None = field(
        default=None, metadata=says(Whole(low=0), "how many placeholders the server lets there be")
    )
    retention_ns: int | None = field(
        default=None,
        metadata=says(_RETENTION, "how long a stream that is done with stays in the scheduler"),
    )
    updates: tuple[str, ...] = field(
        default=UPDATES,
        metadata=says(OneOrMore(Choice(UPDATES), "changes"), "what a frame is sent for"),
    )
    placeholders: tuple[Placeholder, ...] = field(
        default=(),
        metadata=says(ListOf(Table(Placeholder, is_kept=True), "tables"), "what only groups"),
    )
    classes: tuple[PriorityClass, ...] = field(
        metadata=says(Named(PriorityClass), "what streams ask for")
    )
    rules: tuple[Rule, ...] = field(
        default=(),
        metadata=says(ListOf(Table(Rule, is_kept=True), "tables"), "who is in which class"),
    )
    otherwise: str = field(
        default="", metadata=says(Text(), "the class of the others: the last, by default")
    )

    def __post_init__(self) -> None:
        if self.otherwise == "" and isinstance(self.classes, tuple) and self.classes:
            object.__setattr__(self, "otherwise", getattr(self.classes[-1], "name", ""))
        settle(self, SchemeError, self.name)

    def __hash__(self) -> int:
        return hash((self.name, self.classes, self.rules))

    def __repr__(self) -> str:
        return f"<Scheme {self.name}: {self.title}>"

    def _repr_html_(self) -> str:
        rows = [(field.name, _told(getattr(self, field.name))) for field in fields(self)]
        return html_table(("field", "value"), [row for row in rows if row[1]])

    @property
    def resolved_retention_ns(self) -> int:
        """How long a stream that is done with stays in the scheduler."""
        known = self.retention_ns
        return self.mechanism.retention_ns if known is None else known

    def make_scheduler(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is what a packet is expected to carry."""
        return self.mechanism.make(
            turn_bytes=turn_bytes, mixed=self.mixed, turn=self.turn, signalling=self.signalling
        )

    def classify(
        self, resource: Resource, *, images_before: int = 0, standing: Standing = AS_WRITTEN
    ) -> PriorityClass:
        """Return the class of *resource*, before which so many images were requested.

        *standing* is what is known of it by now.
        """
        # By identity: an equal value that was put together means that something has become known.
        if standing is AS_WRITTEN and (self.recorded is None or not resource.recorded):
            return self._ruled.of(resource, images_before)
        if self.recorded is not None:
            recorded = recorded_class(self, resource, standing)
            if recorded is not None:
                return recorded
        return self.ruled(standing.applied_to(resource), images_before, standing)

    @cached_property
    def _ruled(self) -> KnownClasses:
        return KnownClasses(self)

    @cached_property
    def n_first_images(self) -> int:
        """From so many images on, how many came before makes no difference to a class."""
        return max((rule.first_images or 0 for rule in self.rules), default=0)

    def ruled(
        self, resource: Resource, images_before: int, standing: Standing = AS_WRITTEN
    ) -> PriorityClass:
        """Return the class that the rules say, whatever was recorded, by asking each in turn."""
        for rule in self.rules:
            if rule.matches(resource, images_before=images_before, standing=standing):
                return self.class_named(rule.class_name)
        return self.class_named(self.otherwise)

    def said_by_server(self, resource: Resource) -> tuple[ServerPriority, ...]:
        """Return what the server says of *resource*: the page's word, then its own hints."""
        hints = (hint.says_ for hint in self.hints if hint.matches(resource.id))
        return (*resource.server_priorities, *hints)

    def class_named(self, name: str) -> PriorityClass:
        """Return the class of that name."""
        return next(entry for entry in self.classes if entry.name == name)

    def mistakes(self) -> Iterator[Problem]:
        """Yield names that nothing bears, and settings that the scheduler has no meaning for."""
        if not self.classes:
            yield Problem(key="classes", message="at least one class is needed")
        yield from self._weight_problems()
        yield from self._setting_problems()
        names = [holder.name for holder in self.placeholders]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = f"{name!r} is already the name of placeholders[{names.index(name)}]"
                yield Problem(key=f"placeholders[{index}].name", message=message)
        classes = {entry.name: i for i, entry in enumerate(self.classes)}
        groups: dict[str, int] = {entry.name: i for i, entry in enumerate(self.placeholders)}
        if self.otherwise:
            yield from _unknown("otherwise", self.otherwise, classes)
        for index, rule in enumerate(self.rules):
            yield from _unknown(f"rules[{index}].class", rule.class_name, classes)
        for entry in self.classes:
            yield from _unknown(f"classes.{entry.name}.group", entry.group, groups)
            has_bucket = entry.bucket is not None
            if (self.mechanism.signal_kind is SignalKind.BUCKETS) != has_bucket:
                message = "goes with the mechanism 'buckets', and that with it"
                yield Problem(key=f"classes.{entry.name}.bucket", message=message)
        for index, holder in enumerate(self.placeholders):
            key = f"placeholders[{index}]"
            yield from _unknown(f"{key}.yields_to", holder.yields_to, classes)
            if holder.parent is not None and groups.get(holder.parent, index) >= index:
                message = f"{holder.parent!r} is not a placeholder declared before it"
                yield Problem(key=f"{key}.parent", message=message)

    def _setting_problems(self) -> Iterator[Problem]:
        """Yield each setting that the mechanism does not have, and the one that it needs."""
        if (self.rank_by is not None) != (self.mechanism.signal_kind is SignalKind.RANKS):
            message = "goes with the mechanism 'ranks', and that with it"
            yield Problem(key="rank_by", message=message)
        yield from self._signalling_problems()
        if self.doubts_clients and self.mechanism.signal_kind is not SignalKind.EPS:
            yield Problem(key="doubts_clients", message="goes only with the mechanism 'eps'")
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
        for index, holder in enumerate(self.placeholders):
            weights[f"placeholders[{index}].weight"] = holder.weight
            weights[f"placeholders[{index}].yielding_weight"] = holder.yielding_weight
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
