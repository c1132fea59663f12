"""A scheme as a value, and its file: rules that classify resources, signals of each class."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from h3sim.browser.capabilities import Hint
from h3sim.browser.model import TightMode
from h3sim.page import UNCHANGED, Group, Kind, Level
from h3sim.schedulers import Mixed, Quantum, Retransmit
from h3sim.schema import format_choices
from h3sim.schema.errors import RejectedValueError, unknown_key
from h3sim.schema.fields import (
    Inline,
    Named,
    Record,
    declare,
    keys_of,
    read_document,
    validate,
    write_table,
)
from h3sim.schema.values import (
    Choice,
    Flag,
    Integer,
    ListOf,
    Milliseconds,
    OneOrMore,
    Text,
    ValueType,
)
from h3sim.schemes.ranks import RankBy
from h3sim.schemes.registry import (
    REGISTRY,
    CustomScheduler,
    SchedulerKind,
    SignalKind,
    scheduler_kind_named,
)
from h3sim.schemes.rules import CONDITIONS, UPDATES, Placeholder, PriorityClass, Rule, ServerHint
from h3sim.signals import (
    DEFAULT_URGENCY,
    DEFAULT_WEIGHT,
    MAX_URGENCY,
    Signalling,
    WithoutSignal,
)
from h3sim.transport.tcp.settings import FlowControl
from h3sim.values.errors import SchemeError, UnknownNameError, ValidationIssue
from h3sim.values.table import RichDisplay, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import Page, RecordedPriority, Resource, ResourceState, ServerPriority
    from h3sim.schedulers import Scheduler


class KnownClasses:
    """The classes of resources in their initial state by the rules of *scheme*.

    Resources with equal values of all properties that a rule tests are in one class. A page has
    thousands of resources and a handful of such combinations, so each is evaluated once.
    """

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        conditions = [name for rule in scheme.rules for name in (*dict(rule.flags), *rule.any_of)]
        # The value of an enum member: the hash of the member itself is a Python function.
        names = [
            "kind._value_",
            "fetchpriority._value_",
            *(CONDITIONS[name] for name in conditions),
        ]
        self._read_properties = attrgetter(*dict.fromkeys(names))  # each once
        self._n_first_images = scheme.n_first_images
        self._known: dict[tuple[tuple[object, ...], bool, int], PriorityClass] = {}
        """The class of each combination of properties so far."""

    def class_of(self, resource: Resource, images_before: int) -> PriorityClass:
        """Return the class of *resource*, requested after *images_before* images."""
        # Otherwise each image of a page would be a combination of its own.
        n_before = images_before if images_before < self._n_first_images else self._n_first_images
        combination = (self._read_properties(resource), resource.begins_page, n_before)
        entry = self._known.get(combination)
        if entry is None:
            entry = self._known[combination] = self._scheme.ruled(resource, images_before)
        return entry


class RecordedBy(enum.Enum):
    """The source of the recorded priorities that a scheme replays."""

    ANY = "any"
    """Whatever the page has: the Priority field, then levels, then classes."""
    CHROME = "chrome"
    FIREFOX = "firefox"
    SAFARI = "safari"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTreeClass(PriorityClass):
    """A recorded PRIORITY frame, with the name of its parent."""

    depends_on: str
    exclusive: bool


def with_recorded_groups(scheme: Scheme, page: Page) -> Scheme:
    """Return *scheme* with the recorded groups, which replace its own of the same names."""
    if not page.recorded_groups:
        return scheme
    recorded = {
        group.name: Placeholder(
            name=group.name, weight=group.weight, parent=group.depends_on or None
        )
        for group in page.recorded_groups
    }
    others = (holder for holder in scheme.placeholders if holder.name not in recorded)
    return replace(scheme, placeholders=(*recorded.values(), *others))


_CLASS_NAMES_BY_LEVEL = {
    Level.VERY_HIGH: "highest",
    Level.HIGH: "high",
    Level.MEDIUM: "normal",
    Level.LOW: "low",
    Level.VERY_LOW: "lowest",
}
"""The names of Chrome's levels in its schemes, the most urgent first."""
_URGENCIES_BY_LEVEL = {level: urgency for urgency, level in enumerate(_CLASS_NAMES_BY_LEVEL)}
"""Chrome's urgency for each of its levels."""
_SEQUENTIAL_KINDS = (Kind.STYLESHEET, Kind.SCRIPT, Kind.FONT)
"""Chrome's non-incremental types; for all others it sets `i`."""
_URGENCIES_BY_GROUP = {
    Group.URGENT_START: 1,
    Group.LEADERS: 2,
    Group.UNBLOCKED: 3,
    Group.FOLLOWERS: 4,
    Group.SPECULATIVE: 6,
    Group.BACKGROUND: 6,
}
"""Firefox's `nsHttpHandler::UrgencyFromCoSFlags`."""
_FIREFOX_DEFAULT_WEIGHT = 22
"""The weight of a request without a priority of its own (0)."""
_URGENCY_STEPS_BY_WEIGHT = {42: -2, 32: -1, 22: 0, 12: 1, 2: 2}
"""The steps from the urgency of a group: Firefox's weight is 22 minus a priority of -20 to 20."""
_INCREMENTAL_KINDS = (Kind.IMAGE, Kind.DOCUMENT)
"""Firefox's incremental types."""
_FIREFOX_MAX_URGENCY = 6
"""The least urgent value that Firefox sends."""


def recorded_class(
    scheme: Scheme, resource: Resource, state: ResourceState
) -> PriorityClass | None:
    """Return the recorded class of *resource*, or None if the page has none for this scheme.

    The last recorded priority that was sent by now counts.
    """
    initial = [entry for entry in resource.recorded if entry.when is None]
    # Later ones take precedence over that of the request, the last one first.
    for entry in (*(state.recorded or ()), *reversed(initial)):
        is_by_browser = entry.browser is not None and entry.browser.value == scheme.recorded.value  # type: ignore[union-attr]
        if scheme.recorded is RecordedBy.ANY or is_by_browser:
            found = _class_of_entry(scheme, entry, resource.kind)
            if found is not None:
                return found
    return None


def _class_of_entry(scheme: Scheme, entry: RecordedPriority, kind: Kind) -> PriorityClass | None:
    """Return the class of a recorded priority, if the scheme's signals can express it."""
    match scheme.mechanism.signal_kind:
        case SignalKind.EPS if entry.depends_on is None:
            urgency, incremental = _eps_parameters(entry, kind)
            name = f"recorded u={urgency}{', i' if incremental else ''}"
            return PriorityClass(name=name, urgency=urgency, incremental=incremental)
        case SignalKind.TREE:
            return _tree_class(scheme, entry)
        case _:
            return None


def _eps_parameters(entry: RecordedPriority, kind: Kind) -> tuple[int, bool]:
    """Return the urgency and incremental flag of a field, a level of Chrome or a Firefox group."""
    if entry.urgency is not None or entry.incremental is not None:
        urgency = DEFAULT_URGENCY if entry.urgency is None else entry.urgency
        return urgency, bool(entry.incremental)
    if entry.level is not None:
        return _URGENCIES_BY_LEVEL[entry.level], kind not in _SEQUENTIAL_KINDS
    assert entry.group is not None  # noqa: S101 - one of them is set, which is validated
    step = _URGENCY_STEPS_BY_WEIGHT.get(entry.weight or _FIREFOX_DEFAULT_WEIGHT, 0)
    urgency = min(
        max(_URGENCIES_BY_GROUP[entry.group] + step, 0), _FIREFOX_MAX_URGENCY, MAX_URGENCY
    )
    return urgency, kind in _INCREMENTAL_KINDS


def _tree_class(scheme: Scheme, entry: RecordedPriority) -> PriorityClass | None:
    """Return the position of a frame, a Firefox group or a level of Chrome, if there is one."""
    if entry.depends_on is not None:
        return _tree_class_of_frame(scheme, entry, entry.depends_on)
    if entry.group is not None:
        return _in_group(scheme, entry.group.value, entry.weight or _FIREFOX_DEFAULT_WEIGHT)
    if entry.level is not None:
        name = _CLASS_NAMES_BY_LEVEL[entry.level]
        return next((found for found in scheme.classes if found.name == name), None)
    return None


def _tree_class_of_frame(scheme: Scheme, entry: RecordedPriority, parent: str) -> PriorityClass:
    """Return the position of a PRIORITY frame; below a group, or the root, that of its class."""
    weight = entry.weight or DEFAULT_WEIGHT
    in_group = None if entry.exclusive else _in_group(scheme, parent, weight)
    if in_group is not None:
        return in_group
    exclusive = bool(entry.exclusive)
    name = f"recorded below {parent!r} {weight}{' exclusively' if exclusive else ''}"
    return RecordedTreeClass(name=name, weight=weight, depends_on=parent, exclusive=exclusive)


def _in_group(scheme: Scheme, name: str, weight: int) -> PriorityClass | None:
    """Return the class of streams below a group; None if the scheme has no such group."""
    if not name:
        return PriorityClass(name=f"recorded {weight}", weight=weight)
    if any(holder.name == name for holder in scheme.placeholders):
        return PriorityClass(name=f"recorded {name} {weight}", group=name, weight=weight)
    return None


_RFC9218_DEFAULT = WithoutSignal.NOT_INCREMENTAL
"""The only interpretation of missing signals outside EPS."""
_RETENTION = Milliseconds(low=0, high=86_400_000.0, hint="a day")
"""The type of `Scheme.retention_ns`."""


class _Scheduler(ValueType):
    """A kind of scheduler; its name in a file is resolved before parsing."""

    stand_in = SchedulerKind.TREE

    def accept(self, value: Any) -> SchedulerKind | CustomScheduler:
        if isinstance(value, SchedulerKind | CustomScheduler):
            return value
        raise RejectedValueError(format_choices(value, REGISTRY.names()))

    def write(self, value: Any) -> str:
        name: str = value.value
        return name

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True, kw_only=True, repr=False)
class Scheme(RichDisplay):
    """A row of `models/schemes/`: `docs/schemes.md` explains its fields.

    The first rule that matches a resource decides its class; *otherwise* is the class of the rest.
    A *caveat* is shown with all results of the scheme; *knows* lists the information it uses that
    no browser has. *mixed* and *turn* are settings of the mechanism; *retransmission* overrides the
    transport profile. The client declares at most *max_placeholders* (SETTINGS_NUM_PLACEHOLDERS of
    HTTP/3 drafts 20 and 22), the first ones of the file. A server that retains closed streams for
    *retention_ns* can position others relative to them (RFC 7540 § 5.3.4); by default the mechanism
    decides. *tight_mode* is that of the browser that sends these signals, if the load computes it.
    If the class of an open stream changes, the client sends a frame for the changes in *updates*;
    other changes affect only later requests. Without *http2_updates* it sends none over HTTP/2.
    The transport profile takes precedence over *client_windows* and *server_windows*.

    Raises:
        SchemeError: listing every undefined name, and every setting that the mechanism does not
            support.
    """

    name: str = field(metadata=declare(Text(is_needed=True), "its unique name"))
    title: str = field(metadata=declare(Text(), "a one-line description"))
    source: str = field(metadata=declare(Text(), "the source of its rules"))
    mechanism: SchedulerKind | CustomScheduler = field(
        metadata=declare(_Scheduler(), "the server's scheduler")
    )
    signalling: Signalling = field(
        metadata=declare(Choice(Signalling), "how the server learns priorities")
    )
    notes: str = field(default="", metadata=declare(Text(), "further remarks"))
    caveat: str = field(default="", metadata=declare(Text(), "shown with all of its results"))
    knows: tuple[str, ...] = field(
        default=(),
        metadata=declare(OneOrMore(Text(), "texts"), "information that it uses and no browser has"),
    )
    rank_by: RankBy | None = field(
        default=None, metadata=declare(Choice(RankBy), "the criterion of ranks")
    )
    mixed: Mixed | None = field(
        default=None,
        metadata=declare(
            Choice(Mixed), "the order of incremental and non-incremental responses of one urgency"
        ),
    )
    turn: Quantum | None = field(
        default=None, metadata=declare(Inline(Quantum), "the size of a quantum")
    )
    retransmission: Retransmit | None = field(
        default=None, metadata=declare(Choice(Retransmit), "the order of retransmissions")
    )
    without_signal: WithoutSignal = field(
        default=WithoutSignal.NOT_INCREMENTAL,
        metadata=declare(Choice(WithoutSignal), "the priority of requests without a signal"),
    )
    recorded: RecordedBy | None = field(
        default=None,
        metadata=declare(
            Choice(RecordedBy), "the source of recorded priorities, which override the rules"
        ),
    )
    hints: tuple[ServerHint, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(ServerHint, keeps_partial=True), "tables"), "priorities set by the server"
        ),
    )
    validates_client_priorities: bool = field(
        default=False,
        metadata=declare(Flag(), "the server uses resource types if client priorities look wrong"),
    )
    max_placeholders: int | None = field(
        default=None,
        metadata=declare(Integer(low=0), "the server's limit of placeholders"),
    )
    retention_ns: int | None = field(
        default=None,
        metadata=declare(_RETENTION, "how long a finished stream stays in the scheduler"),
    )
    updates: tuple[str, ...] = field(
        default=UPDATES,
        metadata=declare(
            OneOrMore(Choice(UPDATES), "changes"), "the changes that are sent in a frame"
        ),
    )
    http2_updates: bool = field(
        default=True,
        metadata=declare(Flag(), "whether such frames are sent over HTTP/2, too"),
    )
    tight_mode: TightMode | None = field(
        default=None,
        metadata=declare(Choice(TightMode), "the rule by which its browser delays requests"),
    )
    ignores: tuple[Hint, ...] = field(
        default=(),
        metadata=declare(
            OneOrMore(Choice(Hint), "hints"), "the hints of pages that its browser ignores"
        ),
    )
    client_windows: FlowControl | None = field(
        default=None,
        metadata=declare(Record(FlowControl), "HTTP/2's flow control of responses by its client"),
    )
    server_windows: FlowControl | None = field(
        default=None,
        metadata=declare(Record(FlowControl), "HTTP/2's flow control of uploads by its server"),
    )
    placeholders: tuple[Placeholder, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(Placeholder, keeps_partial=True), "tables"),
            "the nodes that only group others",
        ),
    )
    classes: tuple[PriorityClass, ...] = field(
        metadata=declare(Named(PriorityClass), "the priorities of streams")
    )
    rules: tuple[Rule, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(Rule, keeps_partial=True), "tables"), "the class of a resource"
        ),
    )
    otherwise: str = field(
        default="", metadata=declare(Text(), "the class of other resources (default: the last)")
    )

    def __post_init__(self) -> None:
        if self.otherwise == "" and isinstance(self.classes, tuple) and self.classes:
            object.__setattr__(self, "otherwise", getattr(self.classes[-1], "name", ""))
        validate(self, SchemeError, self.name)

    def __hash__(self) -> int:
        # These fields tell nearly all schemes apart; to hash the others would only take time.
        return hash((self.name, self.classes, self.rules))

    def __repr__(self) -> str:
        return f"<Scheme {self.name}: {self.title}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        """Yield the table of all fields that are set, for notebooks."""
        rows = [(field.name, _format_value(getattr(self, field.name))) for field in fields(self)]
        yield Table(("field", "value"), [(name, value) for name, value in rows if value])

    @property
    def resolved_retention_ns(self) -> int:
        """The time for which a drained stream stays in the scheduler."""
        own_ns = self.retention_ns
        return self.mechanism.retention_ns if own_ns is None else own_ns

    def make_scheduler(self, *, turn_bytes: int) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is the expected payload of a packet."""
        return self.mechanism.make(
            turn_bytes=turn_bytes, mixed=self.mixed, turn=self.turn, signalling=self.signalling
        )

    def classify(
        self, resource: Resource, *, images_before: int = 0, state: ResourceState = UNCHANGED
    ) -> PriorityClass:
        """Return the class of *resource*, requested after *images_before* images.

        *state* is its current state.
        """
        # By identity: an equal value that was newly created means that something has changed.
        if state is UNCHANGED and (self.recorded is None or not resource.recorded):
            return self._initial_classes.class_of(resource, images_before)
        if self.recorded is not None:
            recorded = recorded_class(self, resource, state)
            if recorded is not None:
                return recorded
        return self.ruled(state.applied_to(resource), images_before, state)

    @cached_property
    def _initial_classes(self) -> KnownClasses:
        """The cache of the classes of resources whose state has not changed."""
        return KnownClasses(self)

    @cached_property
    def n_first_images(self) -> int:
        """The number of images from which on *images_before* no longer affects the class."""
        return max((rule.first_images or 0 for rule in self.rules), default=0)

    def ruled(
        self, resource: Resource, images_before: int, state: ResourceState = UNCHANGED
    ) -> PriorityClass:
        """Return the class by the rules, ignoring recorded priorities, by testing each in turn."""
        for rule in self.rules:
            if rule.matches(resource, images_before=images_before, state=state):
                return self.class_named(rule.class_name)
        return self.class_named(self.otherwise)

    def priorities_by_server(self, resource: Resource) -> tuple[ServerPriority, ...]:
        """Return the server's priority of *resource*: that of the page, then that of its hints."""
        hints = (hint.server_priority for hint in self.hints if hint.matches(resource.id))
        return (*resource.server_priorities, *hints)

    def class_named(self, name: str) -> PriorityClass:
        """Return the class of that name."""
        return next(entry for entry in self.classes if entry.name == name)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield undefined names, and settings that the scheduler does not support."""
        if not self.classes:
            yield ValidationIssue(key="classes", message="at least one class is required")
        yield from self._weight_problems()
        yield from self._setting_problems()
        names = [holder.name for holder in self.placeholders]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = f"{name!r} is already the name of placeholders[{names.index(name)}]"
                yield ValidationIssue(key=f"placeholders[{index}].name", message=message)
        classes = {entry.name: i for i, entry in enumerate(self.classes)}
        groups: dict[str, int] = {entry.name: i for i, entry in enumerate(self.placeholders)}
        if self.otherwise:
            yield from _unknown_name("otherwise", self.otherwise, classes)
        for index, rule in enumerate(self.rules):
            yield from _unknown_name(f"rules[{index}].class", rule.class_name, classes)
        for entry in self.classes:
            yield from _unknown_name(f"classes.{entry.name}.group", entry.group, groups)
            has_bucket = entry.bucket is not None
            if (self.mechanism.signal_kind is SignalKind.BUCKETS) != has_bucket:
                message = "is required with the mechanism 'buckets', and only allowed there"
                yield ValidationIssue(key=f"classes.{entry.name}.bucket", message=message)
        for index, holder in enumerate(self.placeholders):
            key = f"placeholders[{index}]"
            yield from _unknown_name(f"{key}.yields_to", holder.yields_to, classes)
            if holder.parent is not None and groups.get(holder.parent, index) >= index:
                message = f"{holder.parent!r} is not a placeholder declared before it"
                yield ValidationIssue(key=f"{key}.parent", message=message)

    def _setting_problems(self) -> Iterator[ValidationIssue]:
        """Yield each setting that the mechanism does not support, and the one that it requires."""
        if (self.rank_by is not None) != (self.mechanism.signal_kind is SignalKind.RANKS):
            message = "is required with the mechanism 'ranks', and only allowed there"
            yield ValidationIssue(key="rank_by", message=message)
        yield from self._signalling_problems()
        if self.validates_client_priorities and self.mechanism.signal_kind is not SignalKind.EPS:
            yield ValidationIssue(
                key="validates_client_priorities",
                message="is only allowed with the mechanism 'eps'",
            )
        if self.mixed is not None and self.mechanism is not SchedulerKind.EPS:
            yield ValidationIssue(key="mixed", message="is only allowed with the mechanism 'eps'")
        if self.turn is not None and not self.mechanism.has_turns:
            key = "turn_packets" if self.turn.size_bytes is None else "turn_bytes"
            names = " and ".join(repr(kind.value) for kind in SchedulerKind if kind.has_turns)
            yield ValidationIssue(key=key, message=f"is only allowed with the mechanisms {names}")

    def _signalling_problems(self) -> Iterator[ValidationIssue]:
        """Yield signals that the mechanism or the signalling does not support."""
        kind, signalling = self.mechanism.signal_kind, self.signalling
        if signalling is Signalling.EPS and kind is not SignalKind.EPS:
            yield ValidationIssue(key="signalling", message="'eps' requires the mechanism 'eps'")
        if kind is not SignalKind.EPS and self.without_signal is not _RFC9218_DEFAULT:
            message = "is only allowed with the mechanisms 'eps', 'eps-rings' and 'eps-bytes'"
            yield ValidationIssue(key="without_signal", message=message)
        needs_tree = signalling.is_sent and signalling is not Signalling.EPS
        # Strict priorities were proposed for draft-20, and are signalled as weights are there.
        is_strict = kind is SignalKind.STRICT and signalling is Signalling.DRAFT_20
        if needs_tree and kind is not SignalKind.TREE and not is_strict:
            message = f"{signalling.value!r} requires a tree mechanism"
            yield ValidationIssue(key="signalling", message=message)
        elif signalling is Signalling.DRAFT_22 and not self.mechanism.has_orphans:
            name = self.mechanism.value
            message = f"'draft-22' has orphan placeholders, which {name!r} does not support"
            yield ValidationIssue(key="signalling", message=message)
        for entry in self.classes:
            if entry.arrangement.is_exclusive and not signalling.has_exclusive:
                message = f"needs exclusive dependencies, which {signalling.value!r} lacks"
                yield ValidationIssue(key=f"classes.{entry.name}.arrangement", message=message)

    def _weight_problems(self) -> Iterator[ValidationIssue]:
        """Yield each weight outside the range of the mechanism."""
        low, high = self.mechanism.weights.limits
        weights: dict[str, int | None] = {
            f"classes.{entry.name}.weight": entry.weight for entry in self.classes
        }
        for index, holder in enumerate(self.placeholders):
            weights[f"placeholders[{index}].weight"] = holder.weight
            weights[f"placeholders[{index}].yielding_weight"] = holder.yielding_weight
        for key, weight in weights.items():
            if weight is not None and not low <= weight <= high:
                yield ValidationIssue(key=key, message=f"must be {low} to {high}, is {weight}")


def _format_value(value: object) -> str:
    """Format the value of a field for people: items joined, choices by their names."""
    if isinstance(value, tuple):
        return ", ".join(_format_value(getattr(item, "name", item)) for item in value)
    return "" if value is None else str(getattr(value, "value", value))


def _unknown_name(
    key: str, name: str | None, known: Mapping[str, int]
) -> Iterator[ValidationIssue]:
    """Yield an error if *name* is none of the *known* ones; None names nothing."""
    if name is not None and name not in known:
        yield ValidationIssue(key=key, message=format_choices(name, known))


FORMAT = "h3sim-scheme/1"
_TREE_KEYS = ("weight", "group", "arrangement")
"""The keys of a class that describe its position in a tree."""
_CLASS_KEYS_BY_SIGNAL: dict[SignalKind, tuple[str, ...]] = {
    SignalKind.NOTHING: (),
    SignalKind.TREE: _TREE_KEYS,
    SignalKind.STRICT: (*_TREE_KEYS, "strict"),
    SignalKind.BUCKETS: ("bucket", "level"),
    SignalKind.EPS: ("urgency", "incremental"),
    SignalKind.RANKS: (),
}
"""The keys of a class: only those that its scheduler uses."""
_TREE_ONLY_KEYS = ("placeholders", "max_placeholders")
"""The keys of a scheme that need a tree scheduler, with or without strict priorities."""
_REVEALING_KEYS = (
    ("bucket", SignalKind.BUCKETS),
    ("urgency", SignalKind.EPS),
    ("strict", SignalKind.STRICT),
)
"""The key by which classes of a plug-in reveal the kind of signal; otherwise a tree."""


def scheme_from_dict(document: dict[str, Any], *, source: str = "scheme") -> Scheme:
    """Return the scheme in *document*, a parsed scheme file.

    Raises:
        SchemeError: listing every error.
    """
    tables: Any = document
    problems: list[ValidationIssue] = []
    if isinstance(document, dict):
        kind = resolve_scheduler(document)
        tables = {**document, "mechanism": kind} if "mechanism" in document else document
        if not isinstance(kind, str):
            tables, problems = _without_ignored_keys(tables, kind.signal_kind)
    try:
        scheme = read_document(Scheme, tables, SchemeError, source=source, format_=FORMAT)
    except SchemeError as error:
        raise SchemeError([*error.problems, *problems], source) from error
    if problems:
        raise SchemeError(problems, source)
    return scheme


def scheme_to_dict(scheme: Scheme) -> dict[str, Any] | None:
    """Return *scheme* as the content of a scheme file; None if that is impossible.

    A scheme whose scheduler was given as code, not by name, has no such form.

    >>> document = {
    ...     "format": "h3sim-scheme/1", "name": "x", "title": "", "source": "",
    ...     "mechanism": "fifo", "signalling": "server", "classes": {"all": {}},
    ... }
    >>> scheme_to_dict(scheme_from_dict(document)) == document | {"otherwise": "all"}
    True
    """
    document = {"format": FORMAT, **write_table(scheme)}
    if isinstance(scheme.mechanism, CustomScheduler):
        try:
            # The name may coincide with that of a plug-in, which is another scheduler.
            is_same = scheme_from_dict(document) == scheme
        except SchemeError:
            is_same = False
        return document if is_same else None
    return document


def resolve_scheduler(document: Mapping[str, Any]) -> SchedulerKind | CustomScheduler | str:
    """Return the mechanism of a scheme file or a server file, or its name if there is none."""
    name = document.get("mechanism")
    if not isinstance(name, str):
        return str(name)
    used_keys = {key for entry in _tables(document.get("classes")) for key in entry}
    signal_kind = next((kind for key, kind in _REVEALING_KEYS if key in used_keys), SignalKind.TREE)
    try:
        return scheduler_kind_named(name, signal_kind=signal_kind)
    except UnknownNameError:
        return name


def _tables(value: Any) -> list[dict[str, Any]]:
    """Return the tables in *value*, which may be any value of a file."""
    entries = value.values() if isinstance(value, dict) else value
    if not isinstance(entries, Iterable):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]


def _without_ignored_keys(
    document: dict[str, Any], kind: SignalKind
) -> tuple[dict[str, Any], list[ValidationIssue]]:
    """Return the document without the keys that the scheduler ignores, and an error for each."""
    problems: list[ValidationIssue] = []
    classes = document.get("classes")
    if isinstance(classes, dict):
        document = {
            **document,
            "classes": {
                name: _keep_allowed(f"classes.{name}", entry, _CLASS_KEYS_BY_SIGNAL[kind], problems)
                for name, entry in classes.items()
            },
        }
    if kind not in (SignalKind.TREE, SignalKind.STRICT):
        problems += [
            ValidationIssue(key=key, message="requires a tree mechanism")
            for key in _TREE_ONLY_KEYS
            if document.get(key) not in (None, [])
        ]
        # Removed so that errors inside them are not reported as well.
        document = {key: value for key, value in document.items() if key not in _TREE_ONLY_KEYS}
    holders = document.get("placeholders")
    if isinstance(holders, list) and kind is not SignalKind.STRICT:
        allowed = tuple(key for key in keys_of(Placeholder) if key != "strict")
        document = {
            **document,
            "placeholders": [
                _keep_allowed(f"placeholders[{index}]", entry, allowed, problems)
                for index, entry in enumerate(holders)
            ],
        }
    return document, problems


def _keep_allowed(
    key: str, entry: Any, allowed: tuple[str, ...], problems: list[ValidationIssue]
) -> Any:
    """Return a table without the keys that are not *allowed*, and report them."""
    if not isinstance(entry, dict):
        return entry
    problems += (
        ValidationIssue(key=f"{key}.{name}", message=unknown_key(name, allowed))
        for name in entry
        if name not in allowed
    )
    return {name: value for name, value in entry.items() if name in allowed}
