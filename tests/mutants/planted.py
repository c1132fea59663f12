"""Bugs of real servers, planted in schedulers, and how soon the suite finds them.

`python -m tests.mutants.planted` checks each with the default profile and 20 seeds, as `h3sim
conform` does: without a claim, unless the bug breaks only what a server promises.
"""

from __future__ import annotations

import hashlib
import sys
import time
from itertools import combinations
from typing import Any, NamedTuple

import hypothesis

from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    Candidate,
    Law,
    NotCheckedError,
    OneByOneInUrgency,
    RoundRobinInUrgency,
    UrgencyOrder,
    WeightedShares,
    check_law,
    signals,
)
from h3sim.conformance.runner import set_profile, usual_settings
from h3sim.signals import Eps, H2Priority
from tests.mutants import broken, designs, schedulers

EPS = (UrgencyOrder(), OneByOneInUrgency(), RoundRobinInUrgency())


def weight_of(signal: Any) -> Any:
    return 8 - signal.urgency


def turns_by_weight(waiting: Any, other: Any) -> Any:
    return weight_of(other) // weight_of(waiting) + 1


WEIGHTED = (WeightedShares(weight=weight_of), BoundedWait(turns=turns_by_weight))


class Planted(NamedTuple):
    """A *bug*, the schedulers that have it, and what they claim."""

    bug: str
    schedulers: tuple[Any, ...]
    claims: tuple[Any, ...] = ()
    signal_type: type = Eps


def _one(scheduler: Any, *claims: Any, signal_type: type = Eps) -> Planted:
    """Return a bug that is described by its scheduler."""
    sentence, _, _ = str(scheduler.__doc__).partition(".")
    return Planted(sentence, (scheduler,), claims, signal_type)


PLANTED = (
    Planted(
        "two urgencies swapped", tuple(designs.swapping(*p) for p in combinations(range(8), 2))
    ),
    Planted("an urgency taken for the next", tuple(map(designs.merging, range(7)))),
    *map(
        _one,
        (
            *(designs.TieToTheLessUrgent, designs.KeepsIdleCredit),
            *(designs.WeightUpdateWhileIdleLost, designs.LowestWeightIsZero),
            *(designs.UpdateIgnored, designs.KeepsItsDeficit, designs.LoopsAtWeightZero),
            *(designs.UpdateOfTheFlagLost, designs.UpdateMovesBehind, designs.CloseDuringATurn),
            *(designs.SkipsAfterAPause, designs.UrgencyZeroIsUnset),
            *(designs.DropsThe17th, designs.IgnoresIdsFrom64, designs.FullAt100),
            *(broken.IgnoresTheFlag, broken.LosesUpdatesWhileBlocked),
            *(broken.OnlyClaimsToInterleave, broken.StarvesNonIncremental, broken.ResetsItsClock),
            *(broken.GoesByReadiness, broken.IgnoresAnUpdatedFlag),
        ),
    ),
    _one(broken.JoinsInFront, *EPS),
    _one(schedulers.ForgetfulTree, signal_type=H2Priority),
)
CORRECT = (broken.WeightedEps, designs.DeficitRoundRobin, designs.AgingStrict)
"""Designs in which the bugs are planted, and that no law may refuse."""
_SLOW_LAWS = (Law.SAME_IN_EVERY_PROCESS, Law.FREES_MEMORY, Law.PICKLES, Law.CHEAP_PICKS)
"""Laws that no bug here breaks; the designs search lists."""


def finding(
    scheduler: Any, claims: tuple[Any, ...] = (), signal_type: type = Eps
) -> BrokenLawError | None:
    """Return the error of the first law that is broken."""
    candidate = Candidate(factory=scheduler, claims=claims, signals=signals(signal_type))
    for law in Law:
        if law not in _SLOW_LAWS:
            try:
                check_law(candidate, law)
            except NotCheckedError:
                continue
            except BrokenLawError as error:
                return error
    return None


def digest_of_histories(n_seeds: int) -> str:
    """Return what two versions of Hypothesis have in common if they try the same histories."""
    candidate = Candidate(factory=CORRECT[0], signals=signals(Eps))
    digest = hashlib.sha256()
    for number in range(n_seeds):
        set_profile("default", seed=number)
        for law in Law:
            digest.update(repr(candidate.histories_of(law, usual_settings())).encode())
    return digest.hexdigest()[:16]


def main() -> None:
    """Print for each bug in how many of the seeds it is found, the law, and the longest search."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"Hypothesis {hypothesis.__version__}, {n_seeds} seeds")
    print(f"digest of the histories of RFC 9218: {digest_of_histories(n_seeds)}")
    print(f"{'found':>10}  CPU s at most  {'law':31}  bug")
    correct = (Planted(f"none: {maker.__name__}", (maker,)) for maker in CORRECT)
    for bug, makers, claims, signal_type in (*PLANTED, *correct):
        laws: list[str] = []
        longest = 0.0
        for maker in makers:
            for number in range(n_seeds):
                set_profile("default", seed=number)
                began = time.process_time()
                error = finding(maker, claims, signal_type)
                longest = max(longest, time.process_time() - began)
                if error is not None:
                    laws.append(error.law.value)
        found = f"{len(laws)} of {n_seeds * len(makers)}"
        law = ", ".join(sorted(set(laws)))
        print(f"{found:>10}  {longest:13.1f}  {law:31}  {bug}", flush=True)


if __name__ == "__main__":
    main()
