"""Claims by name, and the search for those that a scheduler keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.laws import BrokenLawError, Law, NotCheckedError
from h3sim.conformance.references import ReferenceEps
from h3sim.conformance.runner import usual_settings
from h3sim.conformance.strategies import signals as signals_of
from h3sim.conformance.subject import (
    BoundedWait,
    ByteShares,
    Candidate,
    IncrementalFirst,
    NeitherFlagStarves,
    NonIncrementalFirst,
    NoStarvation,
    OneByOneInUrgency,
    RoundRobinInUrgency,
    SameAs,
    StrictOrder,
    UrgencyOrder,
    WeightedShares,
)
from h3sim.conformance.suite import check_law
from h3sim.schedulers import Mixed
from h3sim.schedulers.driver import SIGNAL_TYPES
from h3sim.signals import MAX_URGENCY, H2Priority
from h3sim.values.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import hypothesis

    from h3sim.conformance.subject import Claim, SchedulerLike


def _by_bucket(stream_id: int, signal: Any) -> tuple[int, bool]:  # noqa: ARG001 - not by id
    return -signal.bucket, signal.level != 3


def _weight(signal: Any) -> int:
    return int(signal.weight)


def _turns_by_weight(waiting: Any, other: Any) -> int:
    return int(other.weight // waiting.weight) + 1


def _urgency_weight(signal: Any) -> int:
    return MAX_URGENCY + 1 - int(signal.urgency)


def _turns_by_urgency(waiting: Any, other: Any) -> int:
    return _urgency_weight(other) // _urgency_weight(waiting) + 1


def _two_turns(waiting: Any, other: Any) -> int | None:
    """Return 2 for two incremental streams of one urgency, as one that joins may go first."""
    return None if RoundRobinInUrgency().turns(waiting, other) is None else 2


_SIBLINGS = st.builds(H2Priority, weight=st.integers(1, 256))
_EPS_CLAIMS: dict[str, Claim] = {
    "urgency-order": UrgencyOrder(),
    "one-by-one-in-urgency": OneByOneInUrgency(),
    "round-robin-in-urgency": RoundRobinInUrgency(),
    "interleaving-in-urgency": RoundRobinInUrgency(turns=_two_turns, pauses=False),
    "non-incremental-first": NonIncrementalFirst(),
    "incremental-first": IncrementalFirst(),
    "non-incremental-not-starved": NeitherFlagStarves(incremental=False),
    "incremental-not-starved": NeitherFlagStarves(incremental=True),
    **{
        f"same-as-eps-{mixed.value}": SameAs(reference=partial(ReferenceEps, mixed=mixed))
        for mixed in Mixed
    },
    "weights-by-urgency": WeightedShares(weight=_urgency_weight),
    "waits-by-urgency": BoundedWait(turns=_turns_by_urgency),
}
_ANY_CLAIMS: dict[str, Claim] = {
    "first-in-first-out": StrictOrder(rank=lambda stream_id, _: stream_id),
    "equal-turns": WeightedShares(weight=lambda _: 1),
    "no-starvation": NoStarvation(rounds=2),
}
CLAIMS: dict[str, dict[str, Claim]] = {
    "eps": _EPS_CLAIMS | _ANY_CLAIMS,
    "h2": {
        "weighted-turns": WeightedShares(weight=_weight, signals=_SIBLINGS),
        "byte-shares": ByteShares(weight=_weight, signals=_SIBLINGS),
        "deficit-round-robin": ByteShares(weight=_weight, signals=_SIBLINGS, quantum_bytes=1400),
        "weighted-waits": BoundedWait(turns=_turns_by_weight, signals=_SIBLINGS),
        **_ANY_CLAIMS,
    },
    "bucket": {"bucket-order": StrictOrder(rank=_by_bucket), **_ANY_CLAIMS},
    "rank": {"rank-order": StrictOrder(rank=lambda _, signal: signal.value), **_ANY_CLAIMS},
    "strict": _ANY_CLAIMS,
}
"""The ready claims by type of signal and name."""


def claim_named(name: str, *, signals: str = "eps") -> Claim:
    """Return the ready claim of that name, for streams with a type of *signals*.

    Raises:
        UnknownNameError: if there is none.

    >>> claim_named("urgency-order").law
    <Law.STRICT_ORDER: 'strict-order'>
    """
    try:
        return CLAIMS[signals][name]
    except KeyError:
        known = [*CLAIMS[signals]]
        raise UnknownNameError("claim", name, known, shown_by="h3sim conform --suggest") from None


_MIN_HISTORIES = 200
"""Histories for which a claim is tried: those that are rarely broken are broken then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSuggestions:
    """The claims that a scheduler kept, and for each other how it was broken."""

    scheduler: str
    held: tuple[str, ...]
    broken: dict[str, str]
    n_histories: int = 0
    """Histories that were tried for each claim that is kept."""

    def __str__(self) -> str:
        width = max(map(len, [*self.held, *self.broken]), default=0)
        tried = f"in each of {self.n_histories} histories"
        lines = [f"  keeps   {name:{width}}  {tried}" for name in self.held]
        lines += [f"  breaks  {name:{width}}  {why}" for name, why in self.broken.items()]
        return "\n".join([self.scheduler, *lines])


def suggest_claims(
    scheduler: SchedulerLike | Candidate,
    *,
    signals: str = "eps",
    names: Iterable[str] | None = None,
    settings: hypothesis.settings | None = None,
) -> ClaimSuggestions:
    """Try the ready claims of a type of *signals* on a scheduler, and return which ones it keeps.

    It tries those called *names*, or all of the type: "eps", "h2", "bucket", "rank" or "strict". A
    claim that is kept was true of every history that was tried, at least 200; whether the scheduler
    promises it is for its authors to decide.

    Raises:
        InputError: if the scheduler cannot be made, or lacks a method.
        UnknownNameError: if there is no claim of such a name.

    >>> suggest_claims("fifo", names=["first-in-first-out", "urgency-order"]).held
    ('first-in-first-out',)
    """
    base = scheduler if isinstance(scheduler, Candidate) else Candidate(factory=scheduler)
    held, broken = [], {}
    if settings is None:
        usual = usual_settings()
        settings = type(usual)(usual, max_examples=max(usual.max_examples, _MIN_HISTORIES))
    for name in CLAIMS[signals] if names is None else names:
        claim = claim_named(name, signals=signals)
        candidate = replace(base, claims=(claim,), signals=signals_of(SIGNAL_TYPES[signals]))
        error = _broken_law(candidate, claim, settings)
        if error is None:
            held.append(name)
        else:
            broken[name], _, _ = str(error).partition("\n")
    n_histories = settings.max_examples
    return ClaimSuggestions(
        scheduler=base.label, held=tuple(held), broken=broken, n_histories=n_histories
    )


def _broken_law(
    candidate: Candidate, claim: Claim, settings: hypothesis.settings | None
) -> BrokenLawError | None:
    """Return the error of the first law that follows from *claim* and is broken."""
    for law in (claim.law, Law.UPDATES_AT_ONCE):
        try:
            check_law(candidate, law, settings=settings)
        except BrokenLawError as broken:
            return broken
        except NotCheckedError:
            continue
    return None
