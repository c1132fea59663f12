"""Ready claims: the table of which design keeps which, and what is suggested."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    Candidate,
    IncrementalFirst,
    Law,
    NonIncrementalFirst,
    ReferenceOrder,
    RoundRobinInUrgency,
    UrgencyOrder,
    check_law,
    claim_named,
    signals,
    suggest_claims,
)
from h3sim.conformance.named_claims import CLAIMS
from h3sim.schedulers import EpsScheduler, Mixed
from h3sim.signals import Eps
from h3sim.values.errors import UnknownNameError
from tests.effort import scaled, some
from tests.mutants.broken import WeightedEps

DOC = Path(__file__).parents[2] / "docs" / "testing-schedulers.md"
UNSHORTENED = settings(
    max_examples=scaled(15), derandomize=True, database=None, deadline=None, phases=[Phase.generate]
)
DESIGNS: dict[str, Any] = {
    **{mixed.value: partial(EpsScheduler, mixed=mixed) for mixed in Mixed},
    "weights": WeightedEps,
}


def documented() -> dict[str, dict[str, bool]]:
    """Return the table of the document: by claim and design, whether it is kept."""
    lines = DOC.read_text("utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| claim | non-incr"))
    columns = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name.strip("`")] = dict(zip(columns, (c == "yes" for c in cells), strict=True))
    return table


@pytest.mark.parametrize("design", some(["non-incremental-first", "halves", "weights"], [*DESIGNS]))
def test_the_table_states_which_claims_a_design_keeps(design: str) -> None:
    table = documented()
    assert {*next(iter(table.values()))} == {*DESIGNS}
    kept = suggest_claims(DESIGNS[design], names=table, settings=UNSHORTENED).held
    assert [*kept] == [name for name, row in table.items() if row[design]]


@pytest.mark.parametrize("mixed", Mixed)
def test_each_design_is_distinguished_from_the_others_by_its_reference(mixed: Mixed) -> None:
    names = [f"same-as-eps-{other.value}" for other in Mixed]
    suggested = suggest_claims(DESIGNS[mixed.value], names=names, settings=UNSHORTENED)
    assert suggested.held == (f"same-as-eps-{mixed.value}",)


def test_a_scheduler_that_sends_incremental_ones_first_may_claim_that() -> None:
    def make() -> ReferenceOrder:
        return ReferenceOrder(lambda stream_id, signal: (signal.urgency, not signal.incremental))

    claims = (UrgencyOrder(), IncrementalFirst())
    candidate = Candidate(factory=make, claims=claims, signals=signals(Eps))
    check_law(candidate, Law.STRICT_ORDER)
    check_law(candidate, Law.UPDATES_AT_ONCE)
    other = Candidate(factory=make, claims=(NonIncrementalFirst(),), signals=signals(Eps))
    with pytest.raises(BrokenLawError):
        check_law(other, Law.STRICT_ORDER)


def test_in_a_list_of_rounds_a_stream_that_pauses_goes_first_again_and_again() -> None:
    claim = claim_named("interleaving-in-urgency")
    assert isinstance(claim, RoundRobinInUrgency)
    for pauses in (False, True):
        claims = (replace(claim, pauses=pauses),)
        candidate = Candidate(factory=DESIGNS["shared-list"], claims=claims, signals=signals(Eps))
        if pauses:
            with pytest.raises(BrokenLawError, match="stream 4 waits while stream 0 has 3 turns"):
                check_law(candidate, Law.BOUNDED_WAIT)
        else:
            check_law(candidate, Law.BOUNDED_WAIT)


def test_updates_of_the_flag_draw_only_signals_of_the_claim() -> None:
    only_incremental = signals(Eps).filter(lambda signal: signal.incremental)
    same_urgency = only_incremental.map(lambda signal: replace(signal, urgency=3))
    claim = BoundedWait(turns=lambda _, __: 1, signals=same_urgency, follows_updates=True)
    candidate = Candidate(factory=EpsScheduler, claims=(claim,), signals=signals(Eps))
    check_law(candidate, Law.UPDATES_AT_ONCE)


def test_what_is_suggested_states_what_breaks_the_other_claims() -> None:
    suggested = suggest_claims("buckets", signals="bucket", settings=UNSHORTENED)
    assert suggested.held == ("bucket-order",)
    assert {*suggested.held, *suggested.broken} == set(CLAIMS["bucket"])
    assert all("\n" not in why for why in suggested.broken.values())


def test_a_claim_of_another_type_of_signal_is_not_known() -> None:
    with pytest.raises(UnknownNameError):
        claim_named("urgency-order", signals="h2")
