"""Kinds of schedulers by name: built-in ones, and plug-ins.

In scheme files the key is `mechanism`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from h3sim import schedulers  # each is imported when it is created: a load needs one
from h3sim.schedulers import Mixed, Quantum, Queueing, TreeRules, UnknownParent, Weights
from h3sim.schedulers.tree.options import DEFAULT_TURN_BYTES
from h3sim.signals import Signalling
from h3sim.values.errors import InputError, SchemeError, raised_words
from h3sim.values.plugins import PluginRegistry
from h3sim.values.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler


RETENTION_NS = 500 * NS_PER_MS
"""The retention of a stream after its last chunk was sent (Marx 2019's code).

Later streams may still be positioned relative to it, and Parallel+ and Serial+ stop yielding only
when it is gone.
"""


class SignalKind(enum.Enum):
    """The kind of signal that a scheduler's clients send."""

    NOTHING = "nothing"
    TREE = "tree"
    """A position in a dependency tree (`H2Priority`)."""
    STRICT = "strict"
    """A placeholder, a strict priority and a weight (`StrictPriority`)."""
    BUCKETS = "buckets"
    """A bucket and a level (`BucketPriority`)."""
    EPS = "eps"
    """An urgency, and whether it is incremental (`Eps`)."""
    RANKS = "ranks"
    """A rank (`Rank`)."""


class SchedulerSettings(NamedTuple):
    """The construction options of a scheduler; each kind uses some of them.

    *turn_bytes* is the expected payload of a packet. *signalling* decides how a tree treats an
    unknown parent.
    """

    turn_bytes: int
    mixed: Mixed
    turn: Quantum
    signalling: Signalling


class _Properties(NamedTuple):
    """The properties of a kind of scheduler; *make* creates one.

    *weights* is the meaning of weights, *has_turns* whether a quantum may exceed a packet,
    *has_orphans* whether it has the orphan placeholder of HTTP/3 draft-22. *about* distinguishes it
    from others of its class.

    A stream leaves it *retention_ns* after it finished. With *batches_responses* no response begins
    before all requests that arrive at the same instant were read.
    """

    make: Callable[[SchedulerSettings], Scheduler]
    signal_kind: SignalKind = SignalKind.NOTHING
    weights: Weights = Weights.SHARES
    has_turns: bool = False
    has_orphans: bool = False
    retention_ns: int = RETENTION_NS
    batches_responses: bool = False
    about: str = ""


def _tree(weights: Weights, about: str) -> _Properties:
    """Return the properties of a tree in exact virtual time, which supports the HTTP/3 drafts."""

    def make(settings: SchedulerSettings) -> Scheduler:
        parent = _UNKNOWN_PARENTS.get(settings.signalling, UnknownParent.DEFAULT)
        return schedulers.TreeScheduler(
            turn_bytes=settings.turn_bytes, weights=weights, unknown_parent=parent
        )

    signals = SignalKind.TREE
    return _Properties(
        make=make, signal_kind=signals, weights=weights, has_orphans=True, about=about
    )


def _tree_of(server: Queueing, about: str) -> _Properties:
    """Return the properties of the tree of an HTTP/2 server."""

    def make(settings: SchedulerSettings) -> Scheduler:
        return schedulers.TreeScheduler.of_server(server, turn_bytes=settings.turn_bytes)

    return _Properties(
        make=make,
        signal_kind=SignalKind.TREE,
        # nghttp2 manages retention itself, and h2o has none.
        retention_ns=RETENTION_NS if server.rules is TreeRules.RFC7540 else 0,
        # A body joins the tree once its headers were sent, and headers are sent once all input was
        # read (session_after_frame_sent1); h2o lists a response while it continues to read.
        batches_responses=server.rules is TreeRules.NGHTTP2,
        about=about,
    )


_PRECEDENCE = {
    SignalKind.NOTHING: "the scheduler decides alone, signals are ignored",
    SignalKind.TREE: "parents go before children, siblings share by weight: more for a larger one",
    SignalKind.STRICT: "higher strict priorities go first, equal ones share by weight",
    SignalKind.BUCKETS: "higher buckets go first; in each, level 3 first, then 2 and 1 in turns",
    SignalKind.EPS: "lower urgencies go first",
    SignalKind.RANKS: "lower ranks go first",
}
_PRECEDENCE_OF_WEIGHTS = {
    Weights.ZERO: "parents go before children, siblings of weight 255 first, of 0 last",
    Weights.QUICKER_ZERO: "parents go before children, siblings of weight 255 first, of 0 last",
    Weights.ZERO_LAST: "parents go before children, siblings of weight 0 last",
}
_UNKNOWN_PARENTS = {
    Signalling.DRAFT_20: UnknownParent.CREATE,
    Signalling.DRAFT_20_CONTROL: UnknownParent.CREATE,
    Signalling.DRAFT_22: UnknownParent.ORPHANS,
    Signalling.DRAFT_22_ROOT: UnknownParent.CREATE,
}
"""The unknown-parent rule of a tree, if a document defines one; else that of RFC 7540."""


class SchedulerKind(enum.Enum):
    """A scheduler that a scheme can run on: its name in files, and its properties.

    >>> SchedulerKind("eps").signal_kind
    <SignalKind.EPS: 'eps'>
    """

    _properties: _Properties

    def __new__(cls, name: str, properties: _Properties) -> SchedulerKind:
        """Create the member with the name as its value."""
        kind = object.__new__(cls)
        kind._value_ = name
        kind._properties = properties
        return kind

    FIFO = "fifo", _Properties(make=lambda _: schedulers.FifoScheduler())
    ROUND_ROBIN = (
        "round-robin",
        _Properties(
            make=lambda settings: schedulers.RoundRobinScheduler(turn=settings.turn), has_turns=True
        ),
    )
    ADAPTIVE_ROUND_ROBIN = (
        "adaptive-round-robin",
        _Properties(make=lambda _: schedulers.AdaptiveRoundRobinScheduler()),
    )
    TREE = (
        "tree",
        _tree(Weights.SHARES, "Parents before children; siblings share by weight (RFC 7540)"),
    )
    ZERO_TREE = (
        "zero-weight-tree",
        _tree(Weights.ZERO, "The tree where 255 goes first and 0 last (Marx 2019 § 3.3)"),
    )
    ZERO_LAST_TREE = (
        "zero-last-tree",
        _tree(Weights.ZERO_LAST, "The tree where 0 goes last, one at a time (PR 2723)"),
    )
    QUICKER_ZERO_TREE = (
        "quicker-zero-tree",
        _tree(Weights.QUICKER_ZERO, "Zero weights in Quicker's arithmetic (code of Marx 2019)"),
    )
    BUCKETS = (
        "buckets",
        _Properties(make=lambda _: schedulers.BucketScheduler(), signal_kind=SignalKind.BUCKETS),
    )
    STRICT = (
        "strict",
        _Properties(
            make=lambda settings: schedulers.StrictScheduler(turn_bytes=settings.turn_bytes),
            signal_kind=SignalKind.STRICT,
        ),
    )
    EPS = (
        "eps",
        _Properties(
            make=lambda settings: schedulers.EpsScheduler(mixed=settings.mixed, turn=settings.turn),
            signal_kind=SignalKind.EPS,
            has_turns=True,
        ),
    )
    EPS_RINGS = (
        "eps-rings",
        _Properties(make=lambda _: schedulers.RingEpsScheduler(), signal_kind=SignalKind.EPS),
    )
    EPS_BYTES = (
        "eps-bytes",
        _Properties(make=lambda _: schedulers.ByteListEpsScheduler(), signal_kind=SignalKind.EPS),
    )
    RANKS = (
        "ranks",
        _Properties(make=lambda _: schedulers.RankScheduler(), signal_kind=SignalKind.RANKS),
    )
    NGHTTP2_TREE = (
        "nghttp2-tree",
        _tree_of(Queueing.NGHTTP2, "The tree in whole cycles, the rest carried on (nghttp2)"),
    )
    H2O_CALENDAR = (
        "h2o-calendar",
        _tree_of(Queueing.H2O, "The tree as a calendar of 64 slots, bytes uncounted (h2o)"),
    )
    ATS_HEAP = (
        "ats-heap",
        _tree_of(Queueing.ATS, "The tree as a heap of points that only grow (Traffic Server)"),
    )
    NGINX_QUEUE = (
        "nginx-queue",
        _Properties(
            make=lambda _: schedulers.RankedTreeScheduler(),
            signal_kind=SignalKind.TREE,
            retention_ns=0,  # it keeps closed streams itself
            about="The tree as a queue by depth, then by share, in which nothing shares (nginx)",
        ),
    )

    @property
    def signal_kind(self) -> SignalKind:
        """The kind of signal that its clients send."""
        return self._properties.signal_kind

    @property
    def weights(self) -> Weights:
        """The meaning of weights."""
        return self._properties.weights

    @property
    def has_turns(self) -> bool:
        """True if a quantum may exceed a packet."""
        return self._properties.has_turns

    @property
    def has_orphans(self) -> bool:
        """True if it supports the orphan placeholder of HTTP/3 draft-22."""
        return self._properties.has_orphans

    @property
    def retention_ns(self) -> int:
        """The time for which a drained stream stays in it."""
        return self._properties.retention_ns

    @property
    def batches_responses(self) -> bool:
        """True if no response begins before all requests that arrived with its own were read."""
        return self._properties.batches_responses

    @property
    def precedence(self) -> str:
        """The values of signals that go first, in one line.

        >>> SchedulerKind.EPS.precedence
        'lower urgencies go first'
        """
        own = _PRECEDENCE_OF_WEIGHTS.get(self.weights)
        return _PRECEDENCE[self.signal_kind] if own is None else own

    @property
    def about(self) -> str:
        """The difference from others of its class, in one line; empty for the only one."""
        return self._properties.about

    def make(
        self,
        *,
        turn_bytes: int,
        mixed: Mixed | None = None,
        turn: Quantum | None = None,
        signalling: Signalling = Signalling.SERVER,
    ) -> Scheduler:
        """Return a new scheduler; *turn_bytes* is the expected payload of a packet."""
        settings = SchedulerSettings(
            turn_bytes=turn_bytes,
            mixed=mixed or Mixed.NON_INCREMENTAL_FIRST,
            turn=turn or Quantum(),
            signalling=signalling,
        )
        return self._properties.make(settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomScheduler:
    """A scheduler that is not built in: *value* is its name, *factory* creates one.

    Its clients send signals of *signal_kind*, with weights in the limits of *weights*. A factory
    with a parameter *turn_bytes* gets the expected payload of a packet; one that is a scheduler is
    copied for each load.
    """

    value: str
    factory: Callable[..., Scheduler] | Scheduler
    signal_kind: SignalKind = SignalKind.TREE
    weights: Weights = Weights.SHARES

    def __hash__(self) -> int:
        # Without the factory, which need not be hashable.
        return hash((self.value, self.signal_kind))

    @property
    def has_turns(self) -> bool:
        """True if a scheme can set its quantum: no."""
        return False

    @property
    def has_orphans(self) -> bool:
        """True if it accepts the orphan placeholder, as a position in a tree."""
        return self.signal_kind is SignalKind.TREE

    @property
    def retention_ns(self) -> int:
        """The time for which a drained stream stays in it: as in Marx 2019's code."""
        return RETENTION_NS

    @property
    def batches_responses(self) -> bool:
        """True if all requests that arrive together are read before a response begins: no."""
        return False

    def make(self, *, turn_bytes: int, **settings: object) -> Scheduler:
        """Return a new scheduler with validation; the other *settings* are for built-in ones.

        Raises:
            SchemeError: if it cannot be created, or lacks a method of a scheduler.
        """
        del settings
        scheduler = new_scheduler(self.factory, turn_bytes=turn_bytes, name=self.value)
        return schedulers.CheckedScheduler(scheduler, name=self.value)


def new_scheduler(
    factory: Callable[..., Scheduler] | Scheduler, *, turn_bytes: int, name: str
) -> Scheduler:
    """Return a new custom scheduler; errors are reported under *name*.

    A callable is called, with *turn_bytes* if it has that parameter; otherwise a copy is made.

    Raises:
        SchemeError: if it cannot be created, or lacks a method of a scheduler.
    """
    try:
        scheduler = _construct(factory, turn_bytes)
    # Custom code may raise anything, and one that exits must not end the program.
    except (Exception, SystemExit) as error:
        message = f"creating one raised {raised_words(error)}"
        raise SchemeError.at("scheduler", message, name) from error
    missing = [
        method for method in _SCHEDULER_METHODS if not callable(getattr(scheduler, method, None))
    ]
    if missing:
        message = f"{type(scheduler).__name__} has no {', '.join(missing)}"
        raise SchemeError.at("scheduler", message, name)
    return scheduler


def _construct(factory: Callable[..., Scheduler] | Scheduler, turn_bytes: int) -> Scheduler:
    """Return a scheduler by calling *factory*, or a copy of one that is a scheduler."""
    import copy  # on use: importing h3sim should stay quick
    import inspect

    if not callable(factory):
        return copy.deepcopy(factory)
    try:
        takes_turns = "turn_bytes" in inspect.signature(factory).parameters
    except ValueError:  # some callables implemented in C have no signature
        takes_turns = False
    return factory(turn_bytes=turn_bytes) if takes_turns else factory()


_SCHEDULER_METHODS = ("open", "update", "activate", "deactivate", "close", "pick", "charge")
"""The methods that a custom scheduler has to have (`Scheduler`)."""


ENTRY_POINT_GROUP = "h3sim.schedulers"
"""The entry-point group of scheduler plug-ins: a name, and a class or factory function."""

REGISTRY: PluginRegistry[Callable[..., Scheduler]] = PluginRegistry(
    ENTRY_POINT_GROUP,
    "scheduler",
    {kind.value: partial(kind.make, turn_bytes=DEFAULT_TURN_BYTES) for kind in SchedulerKind},
)
"""Scheduler factories by name."""

ABOUT = {kind.value: kind.about for kind in SchedulerKind if kind.about}
"""The difference between schedulers of one class."""


def scheduler_kind_named(
    name: str, *, signal_kind: SignalKind = SignalKind.TREE
) -> SchedulerKind | CustomScheduler:
    """Return the kind of that name; *signal_kind* is that of a plug-in's clients.

    Raises:
        UnknownNameError: if there is none.

    >>> scheduler_kind_named("round-robin")
    <SchedulerKind.ROUND_ROBIN: 'round-robin'>
    """
    for kind in SchedulerKind:
        if kind.value == name:
            return kind
    return CustomScheduler(value=name, factory=REGISTRY.named(name), signal_kind=signal_kind)


def scheduler_named(
    scheduler_or_factory: Scheduler | Callable[..., Scheduler] | str,
) -> tuple[str, Scheduler | Callable[..., Scheduler]]:
    """Return the name of a scheduler, and its factory, or the object to copy.

    Raises:
        InputError: if it is neither a scheduler nor a name, and cannot be called.
        UnknownNameError: if there is none of that name.

    >>> from h3sim.schedulers import FifoScheduler
    >>> scheduler_named(FifoScheduler)
    ('FifoScheduler', <class 'h3sim.schedulers.static_priority.FifoScheduler'>)
    """
    if isinstance(scheduler_or_factory, str):
        return scheduler_or_factory, REGISTRY.named(scheduler_or_factory)
    if not callable(scheduler_or_factory) and not hasattr(scheduler_or_factory, "pick"):
        message = f"must be a scheduler, a factory or a name, is {scheduler_or_factory!r}"
        raise InputError.at("scheduler", message)
    made_by = getattr(scheduler_or_factory, "func", scheduler_or_factory)  # of a functools.partial
    name = getattr(made_by, "__name__", "")
    if not name.isidentifier():  # a lambda, or a scheduler itself
        name = type(scheduler_or_factory).__name__
    return name, scheduler_or_factory
