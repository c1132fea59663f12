"""The scheduler under test, and the claims that can be made about it beyond the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from hypothesis import strategies as st

from h3sim.conformance.call_sequences import PACKET_BYTES, Call, RecordingScheduler, without
from h3sim.conformance.histories import drawn, planned, pool_of
from h3sim.conformance.laws import Law, NotCheckedError
from h3sim.conformance.runner import history_seed
from h3sim.conformance.strategies import STRATEGY
from h3sim.conformance.strategies import signals as signals_of
from h3sim.schema.arguments import CALLABLE, Predicate, check_arguments
from h3sim.schema.values import Flag, Integer, Number, OrNone
from h3sim.schemes import new_scheduler, scheduler_named
from h3sim.signals import DEFAULT_URGENCY, MAX_URGENCY, Eps
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis import settings
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import History
    from h3sim.schedulers import Scheduler
    from h3sim.schema.values import ValueType


_AT_LEAST_ONE, _NOT_NEGATIVE = Integer(low=1), Integer(low=0)
_SETTING_TYPES: dict[str, ValueType] = {
    "rank": CALLABLE,
    "weight": CALLABLE,
    "turns": CALLABLE,
    "reference": Predicate(
        "a scheduler, a factory or a name",
        lambda value: isinstance(value, str) or callable(value) or hasattr(value, "pick"),
    ),
    "signals": OrNone(STRATEGY, none=None),
    "packets_per_turn": _AT_LEAST_ONE,
    "turn_bytes": _AT_LEAST_ONE,
    "quantum_bytes": _NOT_NEGATIVE,
    "rounds": _AT_LEAST_ONE,
    "joining": _NOT_NEGATIVE,
    "keeps": _NOT_NEGATIVE,
    "tolerance": Number(low=0),
    "follows_updates": Flag(),
    "pauses": Flag(),
    "incremental": OrNone(Flag(), none=None),
}
"""Types of the settings of claims; settings with one name have one type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim about a scheduler, which *law* checks. There may be several claims of one law.

    Raises:
        InputError: listing every invalid setting.
    """

    law: ClassVar[Law]
    signal_type: ClassVar[type | None] = None
    """The type of signals that the claim is about, if it is about one type only."""

    def __post_init__(self) -> None:
        """Refuse invalid settings, which would look like faults of the scheduler."""
        typed_values = {
            entry.name: (_SETTING_TYPES[entry.name], getattr(self, entry.name))
            for entry in fields(self)
            if entry.name in _SETTING_TYPES
        }
        try:
            check_arguments(InputError, **typed_values)
        except InputError as error:
            raise InputError(error.problems, type(self).__name__) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictOrder(Claim):
    """No stream is picked while one of a lower rank is active.

    *rank(stream_id, signal)* returns any value that can be compared, or None for a stream without
    a place in the order. *signals* draws the signals that the claim is about, if not all. A turn of
    several packets, *packets_per_turn*, need not end early for a stream of a lower rank. The rank
    is that of the last signal if the scheduler *follows_updates*, else that of the first.

    >>> StrictOrder(rank=lambda stream_id, signal: stream_id).law
    <Law.STRICT_ORDER: 'strict-order'>
    """

    law: ClassVar[Law] = Law.STRICT_ORDER
    rank: Callable[[int, Any], Any]
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedShares(Claim):
    """Streams that are active together share turns by *weight(signal)*, a whole number.

    Over any time in which i and j are both active, their n_i and n_j packets of equal size keep::

        |n_i / w_i - n_j / w_j| <= packets_per_turn * (1 / w_i + 1 / w_j)

    as self-clocked fair queueing does (Golestani 1994). For schedulers that round, *tolerance*,
    such as 0.05, adds that share of n_i / w_i to the bound. *signals* draws the signals of streams
    that share, such as siblings in a tree or incremental streams of one urgency.

    >>> WeightedShares(weight=lambda signal: 1).packets_per_turn
    1
    """

    law: ClassVar[Law] = Law.WEIGHTED_SHARES
    weight: Callable[[Any], int]
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1
    tolerance: float = 0.0
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteShares(Claim):
    """Streams that are active together share bytes by *weight(signal)*, whatever their packets.

    Over any time in which i and j are both active, their b_i and b_j bytes keep::

        |b_i / w_i - b_j / w_j| <= turn_bytes * (1 / w_i + 1 / w_j) + quantum_bytes

    In Golestani 1994, *turn_bytes* is the longest packet, and *quantum_bytes* is 0. In deficit
    round robin, which adds ``weight * quantum_bytes`` to a stream in each round, the shares differ
    by a round and a packet of each (Shreedhar and Varghese 1995, lemma 2). A scheduler that counts
    turns breaks the claim, as streams with short packets send less. *signals* and *tolerance* are
    as in `WeightedShares`; packets have at most 1400 bytes.
    """

    law: ClassVar[Law] = Law.BYTE_SHARES
    weight: Callable[[Any], int]
    signals: SearchStrategy[Any] | None = None
    turn_bytes: int = 1400
    quantum_bytes: int = 0
    tolerance: float = 0.0
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStarvation(Claim):
    """An active stream has its turn within *rounds* turns for each stream that is active.

    Round robin keeps 2 rounds, as streams that join during a round may have turns first. Fair
    queueing needs about twice the ratio of the weights. *signals* draws the signals that the claim
    is about, if not all.
    """

    law: ClassVar[Law] = Law.NO_STARVATION
    rounds: int
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedWait(Claim):
    """While a stream waits, no other has more than *turns(waiting, other)* turns.

    *turns* takes the signals of both, and returns a whole number, or None if nothing is claimed
    about such a pair. So the longest gap between two turns of a stream is the sum over all others.
    Round robin keeps 1, and fair queueing `other.weight // waiting.weight + 1`. Until a stream that
    has become active has its first turn, *joining* more turns are allowed. *signals* draws the
    signals that the claim is about, if not all. With *follows_updates* the claim is also checked
    with updates; a new signal of either stream resets the count. With *pauses* it is also checked
    with streams that are inactive for a moment after each of their packets.

    >>> BoundedWait(turns=lambda waiting, other: 1).joining
    0
    """

    law: ClassVar[Law] = Law.BOUNDED_WAIT
    turns: Callable[[Any, Any], int | None]
    joining: int = 0
    signals: SearchStrategy[Any] | None = None
    packets_per_turn: int = 1
    follows_updates: bool = False
    pauses: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SameAs(Claim):
    """After every event the pick is that of *reference*, given as `h3sim.simulate` takes it."""

    law: ClassVar[Law] = Law.SAME_AS
    reference: SchedulerLike


@dataclass(frozen=True, slots=True, kw_only=True)
class FreesMemory(Claim):
    """Closed streams are forgotten, except for the last *keeps* of them.

    Without this claim, a scheduler may keep none.
    """

    law: ClassVar[Law] = Law.FREES_MEMORY
    keeps: int = 0


# The claims of RFC 9218, by name


def eps_of(signal: Any) -> Eps:
    """Return the signal; one of another type counts as the default (RFC 9218 § 4)."""
    return signal if isinstance(signal, Eps) else Eps()


def _urgency(stream_id: int, signal: Any) -> int:  # noqa: ARG001 - not by id
    return eps_of(signal).urgency


def _urgency_and_id(stream_id: int, signal: Any) -> tuple[int, int] | None:
    """Return the rank among non-incremental streams, or None for an incremental one."""
    eps = eps_of(signal)
    return None if eps.incremental else (eps.urgency, stream_id)


def _non_incremental_first(stream_id: int, signal: Any) -> tuple[int, bool]:  # noqa: ARG001
    eps = eps_of(signal)
    return eps.urgency, eps.incremental


def _incremental_first(stream_id: int, signal: Any) -> tuple[int, bool]:  # noqa: ARG001
    eps = eps_of(signal)
    return eps.urgency, not eps.incremental


def _one_where_both_share(waiting: Any, other: Any) -> int | None:
    """Return 1 for two incremental streams of one urgency."""
    if not isinstance(waiting, Eps) or not isinstance(other, Eps):
        return None
    is_shared = waiting.incremental and other.incremental and waiting.urgency == other.urgency
    return 1 if is_shared else None


def _eps_signals() -> SearchStrategy[Any] | None:
    return signals_of(Eps)


def _signals_of_both_flags() -> SearchStrategy[Any] | None:
    """Return a strategy of signals that often have the same urgency with either flag."""
    urgencies = st.one_of(st.just(DEFAULT_URGENCY), st.integers(0, MAX_URGENCY))
    return st.builds(Eps, urgency=urgencies, incremental=st.booleans())


@dataclass(frozen=True, slots=True, kw_only=True)
class UrgencyOrder(StrictOrder):
    """Streams go in the order of their urgency, the lowest first (RFC 9218 § 10).

    >>> UrgencyOrder().rank(4, Eps(urgency=2))
    2
    """

    signal_type: ClassVar[type | None] = Eps
    rank: Callable[[int, Any], Any] = _urgency
    signals: SearchStrategy[Any] | None = field(default_factory=_eps_signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneByOneInUrgency(StrictOrder):
    """Non-incremental streams of one urgency go one by one, by stream id (RFC 9218 § 10).

    While one has nothing to send, the next one may.

    >>> OneByOneInUrgency().rank(4, Eps(urgency=2))
    (2, 4)
    """

    signal_type: ClassVar[type | None] = Eps
    rank: Callable[[int, Any], Any] = _urgency_and_id
    signals: SearchStrategy[Any] | None = field(default_factory=_eps_signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonIncrementalFirst(StrictOrder):
    """In one urgency non-incremental streams go before incremental ones.

    >>> NonIncrementalFirst().rank(4, Eps(urgency=2))
    (2, False)
    """

    signal_type: ClassVar[type | None] = Eps
    rank: Callable[[int, Any], Any] = _non_incremental_first
    signals: SearchStrategy[Any] | None = field(default_factory=_eps_signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalFirst(StrictOrder):
    """In one urgency incremental streams go before non-incremental ones.

    >>> IncrementalFirst().rank(4, Eps(urgency=2))
    (2, True)
    """

    signal_type: ClassVar[type | None] = Eps
    rank: Callable[[int, Any], Any] = _incremental_first
    signals: SearchStrategy[Any] | None = field(default_factory=_eps_signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRobinInUrgency(BoundedWait):
    """Incremental streams of one urgency take turns (RFC 9218 § 10).

    >>> RoundRobinInUrgency().turns(Eps(incremental=True), Eps(incremental=True))
    1
    """

    signal_type: ClassVar[type | None] = Eps
    turns: Callable[[Any, Any], int | None] = _one_where_both_share
    signals: SearchStrategy[Any] | None = field(default_factory=_eps_signals)
    follows_updates: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NeitherFlagStarves(Claim):
    """In one urgency incremental and non-incremental streams do not starve each other.

    While a stream of either kind waits, the other kind has at most *rounds* turns in a row for each
    stream that is active (RFC 9218 § 10 warns of both ways of starving). *incremental* limits the
    claim to waiting streams with that flag: servers that send non-incremental responses first
    keep it with `incremental=False`.

    >>> NeitherFlagStarves().law
    <Law.NO_STARVATION: 'no-starvation'>
    """

    signal_type: ClassVar[type | None] = Eps
    law: ClassVar[Law] = Law.NO_STARVATION
    incremental: bool | None = None
    rounds: int = 2
    signals: SearchStrategy[Any] | None = field(default_factory=_signals_of_both_flags)
    packets_per_turn: int = 1


Maker: TypeAlias = "Scheduler | Callable[..., Scheduler]"
SchedulerLike: TypeAlias = "Maker | str"
ClaimT = TypeVar("ClaimT", bound=Claim)
_CLAIMS = Predicate(
    "claims in a list or tuple, say [StrictOrder(rank=...)]",
    lambda value: isinstance(value, tuple) and all(isinstance(claim, Claim) for claim in value),
)
_SKIP = Predicate(
    "reasons by law, say {Law.PURE_PICK: 'it counts how often it is asked'}",
    lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(law, Law) and isinstance(why, str) for law, why in value.items())
    ),
)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A scheduler under test.

    *factory* is a class or a function that makes one, a scheduler, which is copied, or a name, as
    in `h3sim.simulate`. *claims* are what it promises beyond the contract. *signals* draws its
    signals, by default those that its claims are about, else any `H2Priority`, and *placeholders*
    is the number of ids below 0 in use. *histories*, if given, draws whole histories in place of
    those of the suite. *skip* maps laws that are
    not checked to reasons.

    >>> from h3sim.schedulers import FifoScheduler
    >>> Candidate(factory=FifoScheduler).label
    'FifoScheduler'
    """

    factory: SchedulerLike
    claims: tuple[Claim, ...] = ()
    signals: SearchStrategy[Any] | None = None
    placeholders: int = 0
    histories: SearchStrategy[History] | None = None
    skip: Mapping[Law, str] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse invalid values, such as claims that no law would check.

        Raises:
            InputError: listing every invalid value.
        """
        check_arguments(
            InputError,
            claims=(_CLAIMS, self.claims),
            signals=(OrNone(STRATEGY, none=None), self.signals),
            histories=(OrNone(STRATEGY, none=None), self.histories),
            placeholders=(Integer(low=0), self.placeholders),
            skip=(_SKIP, self.skip),
        )

    @property
    def label(self) -> str:
        """Name of the candidate, by default that of its factory."""
        factory_name, _ = scheduler_named(self.factory)
        name = self.name or factory_name
        # A lambda has no name, but the class of its scheduler has.
        return type(self.new()).__name__ if name == "function" else name

    @property
    def maker(self) -> Maker:
        """Factory of the scheduler, or the scheduler that is copied."""
        _, maker = scheduler_named(self.factory)
        return maker

    def new(self) -> Scheduler:
        """Return a new scheduler.

        Raises:
            InputError: if there is none of that name, it cannot be made, or lacks a method.
        """
        name, maker = scheduler_named(self.factory)
        return new_scheduler(maker, turn_bytes=PACKET_BYTES, name=name)

    def new_recording(self) -> RecordingScheduler:
        """Return a new scheduler whose calls are recorded."""
        return RecordingScheduler(self.new(), may_raise=Law.NEVER_RAISES in self.skip)

    def claims_of(self, kind: type[ClaimT]) -> list[ClaimT]:
        """Return the claims of that kind.

        Raises:
            NotCheckedError: if there is none.
        """
        claims = [claim for claim in self.claims if isinstance(claim, kind)]
        if not claims:
            raise NotCheckedError("not claimed")
        return claims

    def pool(self, signals: SearchStrategy[Any] | None = None) -> tuple[Any, ...]:
        """Return the signals of the candidate, or those of a strategy."""
        if signals is None:
            signals = self.signals
        if signals is None:
            types = [claim.signal_type for claim in self.claims if claim.signal_type is not None]
            signals = signals_of(*types[:1])
        return pool_of(signals)

    def histories_of(
        self,
        law: Law,
        budget: settings,
        *,
        signals: SearchStrategy[Any] | None = None,
        leave_out: tuple[Call, ...] = (),
        most_streams: int | None = None,
    ) -> list[History]:
        """Return the histories to try for *law*, without calls to *leave_out*.

        With *signals*, they are histories of these, without placeholders.
        """
        name = f"{law.value} {history_seed()}"
        if signals is None and self.histories is not None:
            number = Random(name).randrange(2**32)  # noqa: S311 - no secret
            found = drawn(self.histories, budget.max_examples, number=number)
        else:
            limit = {} if most_streams is None else {"most_streams": most_streams}
            found = planned(
                self.pool(signals),
                name=name,
                n_histories=budget.max_examples,
                placeholders=0 if signals is not None else self.placeholders,
                **limit,
            )
        return [without(history, *leave_out) for history in found]
