"""`check_scheduler` catches every broken scheduler, and says which law it broke."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import Phase, settings

from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    Candidate,
    Law,
    NeitherFlagStarves,
    NonIncrementalFirst,
    NoStarvation,
    NotCheckedError,
    ReferenceBuckets,
    ReferenceEps,
    SameAs,
    check_law,
    signals,
)
from h3sim.conformance.runner import usual_settings
from h3sim.schedulers import (
    BucketScheduler,
    EpsScheduler,
    FifoScheduler,
    Mixed,
    RoundRobinScheduler,
    StrictScheduler,
    TreeScheduler,
    Weights,
)
from h3sim.schemes import SchedulerKind
from h3sim.signals import BucketPriority, Eps
from tests.effort import IS_THOROUGH
from tests.mutants import broken, schedulers
from tests.mutants.planted import EPS, WEIGHTED
from tests.property.candidates import claimed

if TYPE_CHECKING:
    from collections.abc import Callable


class Row(NamedTuple):
    """*mutant* breaks *law*, which *complete* keeps; *message* is how both are put to the test."""

    law: Law
    mutant: Callable[..., Any]
    complete: Callable[..., Any]
    message: Callable[[Callable[..., Any]], Candidate]


def reported(mechanism: Any) -> Any:
    """Return what gives a scheduler the claims of *mechanism*."""
    return partial(claimed, mechanism)


def plain(factory: Any) -> Any:
    """Return a candidate that claims nothing."""
    return Candidate(factory=factory)


def claiming(*claims: Any, **options: Any) -> Any:
    """Return what gives a scheduler these claims."""
    return lambda factory: Candidate(factory=factory, claims=claims, **options)


FIFO, ROUNDS, BUCKETS, TREE = (
    reported(mechanism)
    for mechanism in (
        SchedulerKind.FIFO,
        SchedulerKind.ROUND_ROBIN,
        SchedulerKind.BUCKETS,
        SchedulerKind.TREE,
    )
)
STRICT, ZERO_LAST = reported(SchedulerKind.STRICT), reported(SchedulerKind.ZERO_LAST_TREE)
ZERO_LAST_TREE = partial(TreeScheduler, weights=Weights.ZERO_LAST)
UNSTARVED = claiming(NoStarvation(rounds=2))
TURN_BY_TURN = claiming(BoundedWait(turns=lambda waiting, other: 1, joining=1))
BY_URGENCY = claiming(*EPS, signals=signals(Eps))
BY_WEIGHT = claiming(*WEIGHTED, signals=signals(Eps))
NON_INCREMENTAL_FIRST = claiming(*EPS, NonIncrementalFirst(), signals=signals(Eps))
BY_HALVES = claiming(*EPS, NeitherFlagStarves(), signals=signals(Eps))
HALVES = partial(EpsScheduler, mixed=Mixed.HALVES)
LIKE_H2O = claiming(
    SameAs(reference=partial(ReferenceEps, mixed=Mixed.FIRST_TURN)), signals=signals(Eps)
)
H2O = partial(EpsScheduler, mixed=Mixed.FIRST_TURN)
LIKE_BUCKETS = claiming(SameAs(reference=ReferenceBuckets), signals=signals(BucketPriority))
ROWS = [
    Row(Law.WORK_CONSERVING, schedulers.ForgetsAStream, RoundRobinScheduler, ROUNDS),
    Row(Law.WORK_CONSERVING, schedulers.Lazy, FifoScheduler, FIFO),
    Row(Law.EVERY_BYTE_ONCE, broken.SendsTwice, RoundRobinScheduler, ROUNDS),
    Row(Law.PICKS_ONLY_READY, broken.PicksTheClosed, RoundRobinScheduler, ROUNDS),
    Row(Law.PICKS_ONLY_READY, broken.WakesOnUpdate, FifoScheduler, FIFO),
    Row(Law.PURE_PICK, schedulers.ImpurePick, RoundRobinScheduler, ROUNDS),
    Row(Law.DETERMINISTIC, broken.Coin, FifoScheduler, plain),
    Row(Law.DETERMINISTIC, broken.SharedTurns, RoundRobinScheduler, plain),
    Row(Law.SAME_IN_EVERY_PROCESS, schedulers.SetOrdered, FifoScheduler, plain),
    Row(Law.STRICT_ORDER, schedulers.HighestFirst, FifoScheduler, FIFO),
    Row(Law.WORK_CONSERVING, broken.LeavesItsGroupAsleep, StrictScheduler, STRICT),
    Row(Law.SIGNALS_COUNT, broken.WeighsStrict, StrictScheduler, STRICT),
    Row(Law.STRICT_ORDER, schedulers.OvertakenBuckets, BucketScheduler, BUCKETS),
    Row(Law.WEIGHTED_SHARES, schedulers.EqualShares, TreeScheduler, TREE),
    Row(Law.WEIGHTED_SHARES, broken.FirstAt255, ZERO_LAST_TREE, ZERO_LAST),
    Row(Law.WEIGHTED_SHARES, schedulers.TakesTwoTurns, RoundRobinScheduler, ROUNDS),
    Row(Law.WEIGHTED_SHARES, schedulers.NeverCharges, RoundRobinScheduler, ROUNDS),
    Row(Law.WEIGHTED_SHARES, broken.HasFavourites, RoundRobinScheduler, ROUNDS),
    Row(Law.BYTE_SHARES, broken.CountsTurns, TreeScheduler, TREE),
    Row(Law.BOUNDED_WAIT, schedulers.TakesTwoTurns, RoundRobinScheduler, TURN_BY_TURN),
    Row(Law.BOUNDED_WAIT, broken.JoinsInFront, EpsScheduler, BY_URGENCY),
    Row(Law.SIGNALS_COUNT, schedulers.OneUrgency, EpsScheduler, BY_URGENCY),
    Row(Law.SIGNALS_COUNT, broken.SwapsUrgencies, EpsScheduler, BY_URGENCY),
    Row(Law.STRICT_ORDER, broken.GoesByReadiness, EpsScheduler, BY_URGENCY),
    Row(Law.STRICT_ORDER, HALVES, EpsScheduler, NON_INCREMENTAL_FIRST),
    Row(Law.NO_STARVATION, broken.IgnoresTheFlag, EpsScheduler, BY_URGENCY),
    Row(Law.NO_STARVATION, broken.OnlyClaimsToInterleave, EpsScheduler, BY_URGENCY),
    Row(Law.NO_STARVATION, broken.StarvesNonIncremental, HALVES, BY_HALVES),
    Row(Law.NO_STARVATION, EpsScheduler, HALVES, BY_HALVES),
    Row(Law.NO_LASTING_DEBT, broken.ResetsItsClock, broken.WeightedEps, BY_WEIGHT),
    Row(Law.SIGNALS_COUNT, broken.LosesUpdatesWhileBlocked, EpsScheduler, BY_URGENCY),
    Row(Law.UPDATES_AT_ONCE, broken.IgnoresAnUpdatedFlag, EpsScheduler, BY_URGENCY),
    Row(Law.SAME_AS, EpsScheduler, H2O, LIKE_H2O),
    Row(Law.NO_STARVATION, schedulers.StarvesTheHighest, RoundRobinScheduler, UNSTARVED),
    Row(Law.NO_STARVATION, broken.LastComesFirst, RoundRobinScheduler, UNSTARVED),
    Row(Law.SIGNALS_COUNT, broken.DeafBuckets, BucketScheduler, BUCKETS),
    Row(Law.SIGNALS_COUNT, broken.SlowToListen, BucketScheduler, BUCKETS),
    Row(Law.UPDATES_AT_ONCE, schedulers.StaleAfterUpdate, TreeScheduler, TREE),
    Row(Law.SAME_AS, schedulers.BackwardTies, TreeScheduler, TREE),
    Row(Law.WORK_CONSERVING, schedulers.ForgetfulTree, TreeScheduler, TREE),
    Row(Law.SAME_AS, schedulers.FreePlaceholders, TreeScheduler, TREE),
    Row(Law.SAME_AS, schedulers.OneLevel, BucketScheduler, LIKE_BUCKETS),
    Row(Law.FREES_MEMORY, broken.KeepsTheClosed, TreeScheduler, TREE),
    Row(Law.FREES_MEMORY, broken.DeadEntries, FifoScheduler, FIFO),
    Row(Law.PICKLES, broken.HoldsALambda, FifoScheduler, FIFO),
    Row(Law.PICKLES, broken.ForgetsItsRound, RoundRobinScheduler, ROUNDS),
    Row(Law.CHEAP_PICKS, broken.LooksAtAll, FifoScheduler, FIFO),
    Row(Law.CHEAP_PICKS, broken.CountsAll, FifoScheduler, plain),
    Row(Law.NEVER_RAISES, broken.RaisesOnSignal, FifoScheduler, FIFO),
    Row(Law.NEVER_RAISES, broken.DividesByBytes, FifoScheduler, FIFO),
    Row(Law.NEVER_RAISES, broken.FullAt150, FifoScheduler, FIFO),
]


def quickly(candidate: Any, law: Any) -> Any:
    """Return the candidate without the law that starts processes, unless that is the one."""
    if law is Law.SAME_IN_EVERY_PROCESS:
        return candidate
    return replace(candidate, skip={Law.SAME_IN_EVERY_PROCESS: "takes long"})


def error_of(candidate: Candidate, law: Law, budget: settings) -> BrokenLawError | None:
    """Return the error that checking *law* finds; None if it holds or is not claimed."""
    try:
        check_law(candidate, law, settings=budget)
    except NotCheckedError:
        return None
    except BrokenLawError as error:
        return error
    return None


def broken_law(candidate: Candidate, law: Law, budget: settings) -> Law | None:
    """Return the law that checking *law* finds broken; None if it holds or is not claimed."""
    error = error_of(candidate, law, budget)
    return None if error is None else error.law


def run_as_test(error: BrokenLawError, make: Any) -> None:
    """Run the test that an error suggests for schedulers that *make* returns."""
    error.scheduler, error.scheduler_import = "make()", ""
    names: dict[str, Any] = {"make": make}
    exec(error.as_test(), names)
    names[f"test_{error.law.value.replace('-', '_')}"]()


def mutant_name(row: Any) -> str:
    if isinstance(row.mutant, partial):
        return f"{row.mutant.func.__name__}({row.mutant.keywords['mixed'].value})"
    return str(row.mutant.__name__)


def name_of(row: Any) -> str:
    return f"{row.law.value}-{mutant_name(row)}"


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_the_suite_names_the_law_that_a_mutant_breaks(row: Any) -> None:
    # No time is spent on a shorter example here.
    unshortened = settings(usual_settings(), phases=[Phase.generate])
    fewer = unshortened if IS_THOROUGH else settings(unshortened, max_examples=10)
    check_law(row.message(row.complete), row.law, settings=fewer)
    mutant = row.message(row.mutant)
    error = error_of(mutant, row.law, unshortened)
    assert error is not None
    assert error.law is row.law
    if error.as_test():
        # The test demands what the law says: the mutant fails it, and the original does not.
        with pytest.raises((AssertionError, ArithmeticError, RuntimeError, ValueError)):
            run_as_test(error, mutant.new)
        run_as_test(error, row.message(row.complete).new)
    # `check_scheduler` names the first broken law: a few examples break none of those before.
    few = unshortened if IS_THOROUGH else settings(unshortened, max_examples=5)
    earlier = itertools.takewhile(lambda law: law is not row.law, Law)
    mutant = quickly(mutant, row.law)
    assert {broken_law(mutant, law, few) for law in earlier} <= {None, row.law}


def test_every_law_of_the_suite_has_a_mutant() -> None:
    assert {row.law for row in ROWS} == set(Law)


def test_the_table_of_the_suite_states_which_law_each_mutant_breaks() -> None:
    text = (Path(__file__).parent / "README.md").read_text("utf-8")
    reported_rows = [line for line in text.splitlines() if line.startswith("| ")]
    rows = [line for line in reported_rows if line.split(" ")[1] in {law.value for law in Law}]
    position = {law.value: number for number, law in enumerate(Law)}
    expected = sorted(
        (f"| {row.law.value} | `{mutant_name(row)}` |" for row in ROWS),
        key=lambda line: (position[line.split(" ")[1]], line),
    )
    assert rows == expected
