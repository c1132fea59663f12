"""Schedulers under the public suite, and against one another; ranges against a set."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3sim.conformance import (
    Call,
    Candidate,
    History,
    Law,
    SameAs,
    check_law,
    check_scheduler,
    event_scripts,
    parametrize_with_checks,
)
from h3sim.conformance.call_sequences import without
from h3sim.conformance.runner import usual_settings
from h3sim.schedulers import (
    EpsScheduler,
    FifoScheduler,
    Mixed,
    Quantum,
    RankScheduler,
    RoundRobinScheduler,
    TreeScheduler,
)
from h3sim.schemes import SchedulerKind
from h3sim.signals import Eps, H2Priority, Rank
from h3sim.values.ranges import Ranges
from tests.effort import IS_THOROUGH, law, scaled
from tests.property import scheduler_laws
from tests.property.candidates import candidate_of_kind, candidate_of_scheme
from tests.property.strategies import DIFFERENT, SCHEMES


def of_full_packets(history: History) -> Any:
    """Return the history with packets of one size, each sent by who was picked."""
    return tuple(replace(event, n_bytes=1400) for event in without(history, Call.CHARGE))


RISING = event_scripts(st.just(H2Priority()), rising=True).map(of_full_packets)


@pytest.mark.usefixtures("fewer_histories")
@parametrize_with_checks(map(candidate_of_kind, SchedulerKind))
def test_every_mechanism_keeps_every_law_under_its_claims(scheduler: Any, check: Any) -> None:
    check(scheduler)


@pytest.mark.parametrize("scheme", DIFFERENT)
def test_every_scheme_passes_the_suite_under_its_claims(scheme: str) -> None:
    fewer = settings(usual_settings(), max_examples=scaled(5))
    candidate = candidate_of_scheme(SCHEMES[scheme])
    if not IS_THOROUGH:
        candidate = replace(candidate, skip={Law.SAME_IN_EVERY_PROCESS: "asked of mechanisms"})
    report = check_scheduler(candidate, settings=fewer)
    claimed = {claim.law for claim in candidate.claims}
    assert claimed <= set(report.passed)
    assert set(report.skipped.values()) <= {
        "not claimed",
        "asked of mechanisms",
        "its histories are given",
        "neither an order, shares nor waits that follow updates are claimed",
    }


class Chain(TreeScheduler):
    """A tree in which each stream hangs below the last one that is open."""

    def open(self, stream_id: int, signal: Any) -> None:
        last = next(reversed(self._nodes), None)
        super().open(stream_id, H2Priority(depends_on=last, weight=1 + stream_id % 256))

    def update(self, stream_id: int, signal: Any) -> None:
        pass


class Flat(TreeScheduler):
    """A tree in which all have the same place."""

    def open(self, stream_id: int, signal: Any) -> None:
        super().open(stream_id, H2Priority())

    def update(self, stream_id: int, signal: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("scheduler", "tree"), [(FifoScheduler, Chain), (RoundRobinScheduler, Flat)]
)
def test_fifo_is_a_tree_that_is_one_chain_and_round_robin_one_that_is_flat(
    scheduler: Any, tree: Any
) -> None:
    claims = (SameAs(reference=tree),)
    candidate = Candidate(factory=scheduler, claims=claims, histories=RISING)
    check_law(candidate, Law.SAME_AS, settings=law(250))


SCHEDULERS = {
    **{f"eps {m.value}": partial(EpsScheduler, mixed=m, turn=Quantum(packets=3)) for m in Mixed},
    "eps by bytes": partial(EpsScheduler, mixed=Mixed.HALVES, turn=Quantum(size_bytes=5000)),
    "round robin by bytes": partial(RoundRobinScheduler, turn=Quantum(size_bytes=5000)),
    "ranks": RankScheduler,
}


@pytest.mark.parametrize("make", SCHEDULERS.values(), ids=SCHEDULERS)
def test_two_hundred_streams_with_random_updates_go_on_as_long_as_one_has_data(make: Any) -> None:
    scheduler, source = make(), Random(9218)
    has_data = {4 * n: False for n in range(200)}
    for stream_id in has_data:
        scheduler.open(stream_id, any_signal(source))
    for _ in range(1000):
        stream_id = source.choice(list(has_data))
        scheduler.update(stream_id, any_signal(source))
        has_data[stream_id] = not has_data[stream_id]
        (scheduler.activate if has_data[stream_id] else scheduler.deactivate)(stream_id)
        picked = scheduler.pick()
        assert (picked is None) == (not any(has_data.values()))
        if picked is not None:
            assert has_data[picked]
            scheduler.charge(picked, source.choice([0, 600, 1400, 16_384]))
    for stream_id in has_data:
        scheduler.close(stream_id)
    assert scheduler.pick() is None


def any_signal(source: Any) -> Any:
    if source.random() < 0.2:
        return Rank(value=source.randint(-3, 3))
    return Eps(urgency=source.randint(0, 7), incremental=source.random() < 0.5)


spans = st.tuples(st.integers(0, 60), st.integers(0, 15)).map(lambda s: (s[0], s[0] + s[1]))


@law(300)
@given(st.lists(spans, max_size=25))
def test_ranges_say_what_a_set_says(additions: Any) -> None:
    scheduler_laws.check_ranges_are_sets(Ranges(), additions)
