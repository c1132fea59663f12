"""Nine bugs of real servers, planted in schedulers, and how soon the suite finds them.

`python -m tests.mutants.planted` tries the default profile with 20 random seeds on each.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    Candidate,
    Law,
    NeitherFlagStarves,
    OneByOneInUrgency,
    RoundRobinInUrgency,
    UrgencyOrder,
    WeightedShares,
    check_law,
    signals,
)
from h3sim.conformance.runner import set_profile
from h3sim.signals import Eps
from tests.mutants import broken

EPS = (UrgencyOrder(), OneByOneInUrgency(), RoundRobinInUrgency())


def weight_of(signal: Any) -> Any:
    return 8 - signal.urgency


def turns_by_weight(waiting: Any, other: Any) -> Any:
    return weight_of(other) // weight_of(waiting) + 1


WEIGHTED = (WeightedShares(weight=weight_of), BoundedWait(turns=turns_by_weight))


class Planted(NamedTuple):
    """A *bug*, the scheduler that has it, and what that scheduler claims."""

    bug: str
    scheduler: Any
    claims: tuple[Any, ...]


PLANTED = (
    Planted("incremental flag ignored", broken.IgnoresTheFlag, EPS),
    Planted("urgencies 2 and 4 swapped", broken.SwapsUrgencies, EPS),
    Planted("update lost while blocked", broken.LosesUpdatesWhileBlocked, EPS),
    Planted("interleaving claimed only", broken.OnlyClaimsToInterleave, EPS),
    Planted("non-incremental ones starve", broken.StarvesNonIncremental, (NeitherFlagStarves(),)),
    Planted("virtual time reset on close", broken.ResetsItsClock, WEIGHTED),
    Planted("order by readiness, not id", broken.GoesByReadiness, EPS[:2]),
    Planted("paused stream goes first", broken.JoinsInFront, EPS),
    Planted("update of the flag lost", broken.IgnoresAnUpdatedFlag, EPS),
)
_LAWS = (
    *(Law.STRICT_ORDER, Law.WEIGHTED_SHARES, Law.NO_STARVATION, Law.BOUNDED_WAIT),
    Law.UPDATES_AT_ONCE,
)


def finding(planted: Planted) -> BrokenLawError | None:
    """Return the first law that is broken, of those that follow from the claims."""
    named = {claim.law for claim in planted.claims} | {Law.UPDATES_AT_ONCE}
    if any(isinstance(claim, NeitherFlagStarves) for claim in planted.claims):
        named = {Law.NO_STARVATION}
    candidate = Candidate(factory=planted.scheduler, claims=planted.claims, signals=signals(Eps))
    for law in _LAWS:
        if law in named:
            try:
                check_law(candidate, law)
            except BrokenLawError as error:
                return error
    return None


def main() -> None:
    """Print for each bug in how many of the seeds it is found, the law, and the longest search."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{'bug':27}  found     CPU s at most  law")
    for planted in PLANTED:
        laws: list[str] = []
        longest = 0.0
        for number in range(n_seeds):
            set_profile("default", seed=number)
            began = time.process_time()
            error = finding(planted)
            longest = max(longest, time.process_time() - began)
            if error is not None:
                laws.append(error.law.value)
        law = ", ".join(sorted(set(laws)))
        print(f"{planted.bug:27}  {len(laws)} of {n_seeds}  {longest:13.1f}  {law}")


if __name__ == "__main__":
    main()
