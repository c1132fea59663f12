"""A scheduler that chooses and charges in one step, behind `NextAdapter`."""

from __future__ import annotations

import pytest

import h3sim
from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    Candidate,
    Law,
    SameAs,
    StrictOrder,
    check_law,
    check_scheduler,
)
from h3sim.schedulers import FifoScheduler, NextAdapter, RoundRobinScheduler
from h3sim.signals import H2Priority, Rank, Signal
from tests.effort import law


class OneStep:
    """Any scheduler with `next` in the place of pick and charge; counts how often it is copied."""

    n_copies = 0

    def __init__(self, scheduler: FifoScheduler | RoundRobinScheduler) -> None:
        self._scheduler = scheduler
        self.open = scheduler.open
        self.update = scheduler.update
        self.activate = scheduler.activate
        self.deactivate = scheduler.deactivate
        self.close = scheduler.close

    def __deepcopy__(self, memo: dict[int, object]) -> OneStep:
        from copy import deepcopy

        OneStep.n_copies += 1
        return OneStep(deepcopy(self._scheduler, memo))

    def __reduce__(self) -> tuple[type[OneStep], tuple[object]]:
        return OneStep, (self._scheduler,)

    def next(self) -> int | None:
        picked = self._scheduler.pick()
        if picked is not None:
            self._scheduler.charge(picked, 1400)
        return picked


def rounds() -> NextAdapter:
    return NextAdapter(OneStep(RoundRobinScheduler()))


def in_order() -> NextAdapter:
    return NextAdapter(OneStep(FifoScheduler()))


def by_id(stream_id: int, signal: Signal) -> int:
    return stream_id


def one_turn(waiting: Signal, other: Signal) -> int:
    return 1


def test_what_is_adapted_keeps_all_laws_and_its_claims() -> None:
    claims = [BoundedWait(turns=one_turn, joining=1)]
    report = check_scheduler(rounds, claims=claims, settings=law(30, usual=10))
    assert {Law.PURE_PICK, Law.PICKLES, Law.CHEAP_PICKS, Law.BOUNDED_WAIT} <= set(report.passed)
    order = [StrictOrder(rank=by_id), SameAs(reference=FifoScheduler)]
    report = check_scheduler(in_order, claims=order, settings=law(30, usual=10))
    assert {Law.STRICT_ORDER, Law.SAME_AS} <= set(report.passed)


def test_without_the_adapter_asking_takes_a_turn() -> None:
    class Naive(RoundRobinScheduler):
        def pick(self) -> int | None:
            return OneStep.next(self)  # type: ignore[arg-type]

        _scheduler = property(lambda self: super())

        def charge(self, stream_id: int, n_bytes: int) -> None:
            """Nothing: it was charged when it was asked."""

    with pytest.raises(BrokenLawError, match="pure-pick"):
        check_law(Candidate(factory=Naive), Law.PURE_PICK)


class HighestRank:
    """Picks by what was said of the streams, in opening or anew; a turn changes nothing."""

    def __init__(self) -> None:
        self.ranks: dict[int, int] = {}
        self.active: dict[int, None] = {}

    def open(self, stream_id: int, signal: Signal) -> None:
        self.update(stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        assert isinstance(signal, Rank)
        self.ranks[stream_id] = signal.value

    def activate(self, stream_id: int) -> None:
        self.active[stream_id] = None

    def deactivate(self, stream_id: int) -> None:
        self.active.pop(stream_id, None)

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)

    def next(self) -> int | None:
        return max(self.active, key=lambda stream_id: self.ranks[stream_id], default=None)


@pytest.mark.parametrize("asks", [False, True])
def test_all_that_is_stated_is_passed_on(asks: bool) -> None:
    # Asked in between or not: the copy that was a turn ahead is made anew.
    scheduler = NextAdapter(HighestRank())

    def then(expected: int | None) -> None:
        if asks:
            assert scheduler.pick() == expected

    for stream_id, value in ((0, 5), (4, 7)):
        scheduler.open(stream_id, Rank(value=value))
        then(None if stream_id == 0 else 0)
        scheduler.activate(stream_id)
        then(stream_id)
    scheduler.update(0, Rank(value=9))
    assert scheduler.pick() == 0
    scheduler.deactivate(0)
    then(4)
    scheduler.update(4, Rank(value=1))
    scheduler.activate(0)
    assert scheduler.pick() == 0
    scheduler.close(0)
    assert scheduler.pick() == 4
    scheduler.close(4)
    assert scheduler.pick() is None


def test_a_load_goes_as_without_it() -> None:
    plain = h3sim.simulate("davies-meenan", scheme="rr")
    adapted = h3sim.simulate("davies-meenan", scheme="rr", scheduler=rounds)
    assert adapted.trace.order == plain.trace.order


def test_it_is_copied_only_when_something_happens_between_asking_and_charging() -> None:
    scheduler = rounds()
    for stream_id in (0, 4, 8):
        scheduler.open(stream_id, H2Priority())
        scheduler.activate(stream_id)
    before = OneStep.n_copies
    picked = []
    for _ in range(100):
        picked.append(scheduler.pick())
        scheduler.charge(picked[-1] or 0, 1400)
    assert OneStep.n_copies == before
    assert picked[:5] == [0, 4, 8, 0, 4]
    assert scheduler.pick() == 4
    scheduler.deactivate(4)
    scheduler.deactivate(0)
    assert scheduler.pick() == 8
    assert OneStep.n_copies == before + 1
