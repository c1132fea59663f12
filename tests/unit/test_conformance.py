"""The public suite: what its report says, how a failure reads, and how pytest runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import h3sim
from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    ByteShares,
    Call,
    Candidate,
    Event,
    FreesMemory,
    History,
    Law,
    NoStarvation,
    NotCheckedError,
    ReferenceOrder,
    RoundRobinInUrgency,
    SameAs,
    SchedulerSuite,
    StrictOrder,
    UrgencyOrder,
    WeightedShares,
    check_law,
    check_scheduler,
    event_scripts,
    loss_patterns,
    parametrize_with_checks,
    signals,
    trees,
)
from h3sim.conformance.call_sequences import valid_history
from h3sim.conformance.contract_checks import operations_of, reachable
from h3sim.conformance.histories import shortest
from h3sim.page import Page, Resource
from h3sim.schedulers import (
    EpsScheduler,
    FifoScheduler,
    Mixed,
    RoundRobinScheduler,
    TreeScheduler,
)
from h3sim.signals import BucketPriority, Eps, H2Priority
from h3sim.transport.link_profile import LinkProfile
from h3sim.values.errors import H3SimError, InputError
from tests.effort import HANG_S, law
from tests.mutants import schedulers

pytestmark = pytest.mark.usefixtures("fewer_histories")

FEW = settings(max_examples=2, deadline=None, derandomize=True, database=None)
OPENING = settings(FEW, phases=[Phase.generate], max_examples=40)
USUAL = settings(max_examples=30, deadline=None, derandomize=True, database=None)
SEEN = settings(max_examples=10, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Urgency:
    """A signal of somebody else's."""

    urgency: int
    incremental: bool = False


def by_urgency(stream_id: int, signal: Any) -> Any:
    return signal.urgency


def most_urgent() -> Any:
    return ReferenceOrder(by_urgency)


def by_id(stream_id: int, signal: Any) -> Any:
    return stream_id


class Batched(RoundRobinScheduler):
    """Takes turns of three packets."""

    def __init__(self) -> None:
        super().__init__()
        self._left = 3

    def charge(self, stream_id: int, n_bytes: int) -> None:
        self._left -= 1
        if not self._left:
            super().charge(stream_id, n_bytes)
            self._left = 3

    def deactivate(self, stream_id: int) -> None:
        if stream_id == self.pick():
            self._left = 3
        super().deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        self.deactivate(stream_id)


class Remembers(FifoScheduler):
    """Keeps the last 100 streams that were closed."""

    def __init__(self) -> None:
        super().__init__()
        self._closed: list[Any] = []

    def close(self, stream_id: int) -> None:
        super().close(stream_id)
        self._closed = [*self._closed[-99:], f"stream {stream_id}"]


class ForgetsUpdates(ReferenceOrder):
    def __init__(self) -> None:
        super().__init__(by_urgency)

    def update(self, stream_id: int, signal: Any) -> None:
        pass


def test_what_is_not_claimed_is_skipped_by_name() -> None:
    report = check_scheduler(FifoScheduler, claims=[StrictOrder(rank=by_id)], settings=SEEN)
    assert report.scheduler == "FifoScheduler"
    assert [verdict.law for verdict in report.verdicts] == list(Law)
    assert report.skipped == {
        Law.WEIGHTED_SHARES: "not claimed",
        Law.BYTE_SHARES: "not claimed",
        Law.BOUNDED_WAIT: "not claimed",
        Law.SAME_AS: "not claimed",
        # Nothing is known of signals that are not heeded.
        **dict.fromkeys(
            (Law.SIGNALS_COUNT, Law.NO_LASTING_DEBT, Law.NO_STARVATION),
            "its picks do not depend on its signals",
        ),
    }
    assert "  skipped  weighted-shares: not claimed" in str(report).splitlines()


def test_a_failure_is_the_law_a_sentence_and_the_shortest_history() -> None:
    claimed = Candidate(factory=schedulers.HighestFirst, claims=(StrictOrder(rank=by_id),))
    with pytest.raises(BrokenLawError) as caught:
        check_law(claimed, Law.STRICT_ORDER, settings=USUAL)
    opened = "H2Priority(weight=16, depends_on=None, exclusive=False))"
    assert str(caught.value).splitlines() == [
        "strict-order: stream 4 of rank 4 is picked before stream 0 of rank 0",
        f"  open(0, {opened}",
        "  activate(0)",
        f"  open(4, {opened}",
        "  activate(4)",
        "  pick() -> 4",
    ]


def test_a_lost_update_needs_no_claim() -> None:
    candidate = Candidate(factory=ForgetsUpdates, signals=signals(Urgency))
    with pytest.raises(BrokenLawError, match=r"updated from .* before it has data"):
        check_law(candidate, Law.UPDATES_AT_ONCE, settings=USUAL)


def test_signals_may_be_of_a_type_of_ones_own() -> None:
    report = check_scheduler(
        most_urgent,
        claims=[StrictOrder(rank=by_urgency)],
        signals=signals(Urgency),
        skip={Law.CHEAP_PICKS: "searches a list"},
        settings=SEEN,
    )
    assert set(report.skipped) == {
        *(Law.WEIGHTED_SHARES, Law.BYTE_SHARES, Law.BOUNDED_WAIT),
        *(Law.SAME_AS, Law.CHEAP_PICKS),
    }


def test_turns_of_several_packets_are_a_claim() -> None:
    def claims(packets: Any) -> Any:
        return Candidate(
            factory=Batched,
            claims=(
                WeightedShares(weight=lambda signal: 1, packets_per_turn=packets),
                NoStarvation(rounds=2, packets_per_turn=packets),
            ),
        )

    for checked in (Law.WEIGHTED_SHARES, Law.NO_STARVATION):
        check_law(claims(3), checked)
        with pytest.raises(BrokenLawError):
            check_law(claims(1), checked)


def test_a_turn_of_several_packets_need_not_be_broken_off() -> None:
    class Stubborn(ReferenceOrder):
        def __init__(self) -> None:
            super().__init__(by_id)
            self._kept: Any = None

        def pick(self) -> Any:
            return self._kept if self._kept in self.sending else super().pick()

        def charge(self, stream_id: int, n_bytes: int) -> None:
            self._kept = None if self._kept == stream_id else stream_id

    for packets in (2, 1):
        order = StrictOrder(rank=by_id, packets_per_turn=packets)
        candidate = Candidate(factory=Stubborn, claims=(order,))
        if packets > 1:
            check_law(candidate, Law.STRICT_ORDER)
        else:
            with pytest.raises(BrokenLawError):
                check_law(candidate, Law.STRICT_ORDER)


def test_a_turn_that_ends_early_begins_anew() -> None:
    class OfFour(ReferenceOrder):
        """One at a time by id, four packets a turn, fewer where the stream leaves."""

        def __init__(self) -> None:
            super().__init__(by_id)
            self._kept: list[int] = []

        def pick(self) -> Any:
            return self._kept[0] if self._kept else super().pick()

        def charge(self, stream_id: int, n_bytes: int) -> None:
            self._kept = self._kept[1:] if self._kept else [stream_id] * 3

        def deactivate(self, stream_id: int) -> None:
            super().deactivate(stream_id)
            self._kept = [key for key in self._kept if key != stream_id]

    urgent, other = (Event(Call.OPEN, key, H2Priority()) for key in (0, 4))
    leaves, comes = Event(Call.DEACTIVATE, 4), Event(Call.ACTIVATE, 4)
    two = Event(Call.SERVE, n_turns=2)
    # Two of four packets, two of the next four; then the urgent one comes, and waits for two more.
    history = urgent, other, comes, two, leaves, comes, two, Event(Call.ACTIVATE, 0), two
    for packets in (4, 2):
        order = StrictOrder(rank=by_id, packets_per_turn=packets)
        candidate = Candidate(factory=OfFour, claims=(order,), histories=st.just(history))
        if packets == 4:
            check_law(candidate, Law.STRICT_ORDER)
        else:
            with pytest.raises(BrokenLawError, match="stream 4 of rank 4 is picked before"):
                check_law(candidate, Law.STRICT_ORDER)


def test_what_is_sorted_once_for_all_that_joined_is_cheap() -> None:
    class Lazy(FifoScheduler):
        """Sorts those that joined when somebody asks."""

        def __init__(self) -> None:
            super().__init__()
            self._line: list[int] = []
            self._new: dict[int, None] = {}

        def activate(self, stream_id: int) -> None:
            self._new[stream_id] = None

        def pick(self) -> int | None:
            if self._new:
                self._line, self._new = sorted([*self._line, *self._new]), {}
            return self._line[0] if self._line else None

    class EachTime(Lazy):
        """Sorts all of them each time."""

        def charge(self, stream_id: int, n_bytes: int) -> None:
            self._line.sort()

    check_law(Candidate(factory=Lazy), Law.CHEAP_PICKS)
    with pytest.raises(BrokenLawError, match="20 turns take"):
        check_law(Candidate(factory=EachTime), Law.CHEAP_PICKS)


def test_a_scheduler_is_given_as_simulate_takes_it() -> None:
    """By name, as a class or function, as an object, and with an argument for packets."""

    class TakesPackets(FifoScheduler):
        def __init__(self, *, turn_bytes: int) -> None:
            super().__init__()
            assert turn_bytes == 1400

    given: dict[Any, str] = {
        "fifo": "fifo",
        FifoScheduler: "FifoScheduler",
        FifoScheduler(): "FifoScheduler",
        (lambda: FifoScheduler()): "FifoScheduler",
        TakesPackets: "TakesPackets",
    }
    for scheduler, name in given.items():
        report = check_scheduler(scheduler, claims=[StrictOrder(rank=by_id)], settings=FEW)
        assert report.scheduler == name
        assert Law.STRICT_ORDER in report.passed


def test_what_simulate_refuses_is_refused_with_the_same_words() -> None:
    class Incomplete:
        def pick(self) -> None:
            return None

    class CannotBeMade(FifoScheduler):
        def __init__(self) -> None:
            raise OSError("no file")

    wrong: Any
    for wrong in (5, Incomplete, Incomplete(), CannotBeMade, "fifoo"):
        with pytest.raises(H3SimError) as reported:
            h3sim.simulate("davies-meenan", scheduler=wrong)
        for check in (
            check_scheduler,
            lambda what: check_law(Candidate(factory=what), Law.PICKLES),
        ):
            with pytest.raises(type(reported.value)) as here:
                check(wrong)
            assert str(here.value) == str(reported.value)


class Raises(FifoScheduler):
    """Raises where anything is charged to stream 8."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        if stream_id == 8:
            raise OverflowError("too much")


def test_a_scheduler_that_may_raise_is_held_to_all_other_laws_up_to_there() -> None:
    with pytest.raises(BrokenLawError, match="never-raises: charge"):
        check_scheduler(Raises, settings=SEEN)
    may = {Law.NEVER_RAISES: "knows eight streams only"}
    report = check_scheduler(Raises, claims=[StrictOrder(rank=by_id)], skip=may, settings=SEEN)
    unclaimed = {law for law, reason in report.skipped.items() if reason == "not claimed"}
    unheeded = {Law.SIGNALS_COUNT, Law.NO_LASTING_DEBT, Law.NO_STARVATION}
    assert set(report.skipped) - unclaimed == {Law.NEVER_RAISES} | unheeded

    class WrongBeforeThat(Raises):
        def pick(self) -> Any:
            return max(self._active._entries, default=None)

    with pytest.raises(BrokenLawError, match=r"strict-order: stream \d+ of rank"):
        check_law(
            Candidate(factory=WrongBeforeThat, claims=(StrictOrder(rank=by_id),), skip=may),
            Law.STRICT_ORDER,
        )


def test_a_law_is_not_kept_where_every_history_ends_in_an_error() -> None:
    class NeverOpens(FifoScheduler):
        def open(self, stream_id: int, signal: Any) -> None:
            raise ValueError("full")

    may = {Law.NEVER_RAISES: "is full"}
    for law_ in (Law.WORK_CONSERVING, Law.FREES_MEMORY, Law.CHEAP_PICKS):
        with pytest.raises(NotCheckedError, match=r"hardly a history .*: open\(.* raised"):
            check_law(Candidate(factory=NeverOpens, skip=may), law_, settings=OPENING)


@pytest.mark.parametrize("method", ["open", "activate", "charge", "pick"])
def test_a_scheduler_that_exits_does_not_take_the_tests_along(method: Any) -> None:
    class Exits(FifoScheduler):
        pass

    def leave(self: Any, *arguments: Any) -> None:
        sys.exit(3)

    setattr(Exits, method, leave)
    with pytest.raises(BrokenLawError, match=f"never-raises: {method}.* raised SystemExit: 3"):
        check_scheduler(Exits, settings=SEEN)


def test_a_scheduler_that_picks_an_unknown_stream_gets_a_sentence_from_every_law() -> None:
    class Stranger(FifoScheduler):
        def pick(self) -> Any:
            picked = super().pick()
            return picked if picked is None else 9999

        def charge(self, stream_id: int, n_bytes: int) -> None:
            self._active._entries[stream_id]

    claims = (
        StrictOrder(rank=by_id),
        WeightedShares(weight=lambda signal: 1),
        ByteShares(weight=lambda signal: 1),
        NoStarvation(rounds=2),
        BoundedWait(turns=lambda waiting, other: 1),
        SameAs(reference=FifoScheduler),
    )
    candidate = Candidate(factory=Stranger, claims=claims)
    with pytest.raises(BrokenLawError, match="stream 9999 is picked, which was never opened"):
        check_law(candidate, Law.PICKS_ONLY_READY)
    for each in Law:
        with suppress(NotCheckedError, BrokenLawError):  # and no other error
            check_law(candidate, each, settings=FEW)


def test_claims_of_one_law_are_all_looked_at() -> None:
    backwards = StrictOrder(rank=lambda stream_id, signal: -stream_id)
    check_law(Candidate(factory=FifoScheduler, claims=(StrictOrder(rank=by_id),)), backwards.law)
    both = Candidate(factory=FifoScheduler, claims=(StrictOrder(rank=by_id), backwards))
    with pytest.raises(BrokenLawError, match="strict-order"):
        check_law(both, Law.STRICT_ORDER)


def test_round_robin_shares_turns_and_not_bytes() -> None:
    """Streams of short packets have less (Shreedhar and Varghese 1995, § 1)."""
    one_each: dict[str, Any] = {"weight": lambda signal: 1}
    turns = Candidate(factory=RoundRobinScheduler, claims=(WeightedShares(**one_each),))
    check_law(turns, Law.WEIGHTED_SHARES)
    in_bytes = Candidate(factory=RoundRobinScheduler, claims=(ByteShares(**one_each),))
    with pytest.raises(BrokenLawError, match=r"byte-shares: stream .* has had \d+ bytes, stream"):
        check_law(in_bytes, Law.BYTE_SHARES)


def test_a_wait_is_reported_in_quanta_of_the_other() -> None:
    fifo = Candidate(
        factory=FifoScheduler, claims=(BoundedWait(turns=lambda waiting, other: 3, joining=2),)
    )
    with pytest.raises(BrokenLawError) as caught:
        check_law(fifo, Law.BOUNDED_WAIT)
    assert caught.value.sentence == "stream 4 waits while stream 0 has 6 turns; it may have 5"


def test_the_claims_of_rfc_9218_go_by_name() -> None:
    def eps(scheduler: Any) -> Any:
        claims = (UrgencyOrder(), RoundRobinInUrgency())
        return Candidate(factory=scheduler, claims=claims, signals=signals(Eps))

    for checked in (Law.STRICT_ORDER, Law.BOUNDED_WAIT, Law.UPDATES_AT_ONCE):
        check_law(eps("eps"), checked)
    with pytest.raises(BrokenLawError, match=r"strict-order: stream \d+ of rank"):
        check_law(eps("round-robin"), Law.STRICT_ORDER)
    # Who joins the round that is on may have a turn in it and one in the next.
    in_one_list = eps(partial(EpsScheduler, mixed=Mixed.SHARED_LIST))
    with pytest.raises(BrokenLawError, match=r"bounded-wait: stream \d+ waits while"):
        check_law(in_one_list, Law.BOUNDED_WAIT, settings=settings(SEEN, max_examples=300))


def test_the_three_faces_of_the_suite_have_one_list() -> None:
    tests = [name for name in vars(SchedulerSuite) if name.startswith("test_")]
    assert tests == [f"test_{each.name.lower()}" for each in Law]
    mark = parametrize_with_checks([FifoScheduler])
    assert [row.id for row in mark.args[1]] == [f"FifoScheduler-{each.value}" for each in Law]
    report = check_scheduler(FifoScheduler, settings=FEW)
    assert [verdict.law for verdict in report.verdicts] == list(Law)


def test_the_guide_has_the_list_of_laws() -> None:
    text = (Path(__file__).parents[2] / "docs/testing-schedulers.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    laws = [f"| `{each.value}` | {each.meaning} |" for each in Law]
    assert [row for row in rows if row in laws] == laws


def test_so_many_closed_streams_may_be_kept_as_are_claimed() -> None:
    check_law(Candidate(factory=Remembers, claims=(FreesMemory(keeps=100),)), Law.FREES_MEMORY)
    check_law(Candidate(factory=Remembers, claims=(FreesMemory(keeps=200),)), Law.FREES_MEMORY)


def test_a_tolerance_allows_for_shares_that_are_rounded() -> None:
    class Rounded(TreeScheduler):
        """Knows weights in steps of 8 only."""

        def open(self, stream_id: int, signal: Any) -> None:
            super().open(stream_id, signal)
            self._round(stream_id, signal)

        def update(self, stream_id: int, signal: Any) -> None:
            super().update(stream_id, signal)
            self._round(stream_id, signal)

        def _round(self, stream_id: int, signal: Any) -> None:
            self._queueing.reweigh(self._nodes[stream_id], max(8, signal.weight // 8 * 8))

    flat = st.builds(H2Priority, weight=st.integers(100, 256))
    claims = (
        WeightedShares(weight=lambda signal: signal.weight, signals=flat, tolerance=tolerance)
        for tolerance in (0.2, 0)
    )
    rounded, exact = (Candidate(factory=Rounded, claims=(claim,)) for claim in claims)
    check_law(rounded, Law.WEIGHTED_SHARES)
    with pytest.raises(BrokenLawError):
        check_law(exact, Law.WEIGHTED_SHARES)


def test_what_another_process_cannot_import_is_stated() -> None:
    with pytest.raises(NotCheckedError, match="defined in a function"):
        check_law(Candidate(factory=lambda: FifoScheduler()), Law.SAME_IN_EVERY_PROCESS)


def test_the_operations_of_a_search_are_counted() -> None:
    def grows(work: Any) -> Any:
        return operations_of(lambda: work(1000)) / operations_of(lambda: work(100))

    assert grows(lambda n: sum(i for i in range(n))) > 8
    assert grows(lambda n: n + 1) == 1


def test_objects_that_hang_on_one_are_counted_once() -> None:
    shared = [1000]
    assert reachable([shared, shared]) == 3


def test_a_history_is_shortened_to_the_events_that_matter() -> None:
    events = [Event(Call.OPEN, 4 * n) for n in range(40)]
    events += [Event(Call.ACTIVATE, 4 * n) for n in range(40)]
    fails = lambda history: Event(Call.ACTIVATE, 88) in history  # noqa: E731
    assert shortest(tuple(events), fails) == (Event(Call.OPEN, 88), Event(Call.ACTIVATE, 88))


@law(60)
@given(event_scripts(placeholders=2))
def test_drawn_histories_keep_the_contract(history: History) -> None:
    assert valid_history(history) == history


@law(40)
@given(trees())
def test_a_tree_is_drawn_parents_first(changes: Any) -> None:
    tree = TreeScheduler()
    known = {None}
    for element_id, signal in changes:
        assert signal.depends_on in known
        known.add(element_id)
        tree.open(element_id, signal)


@law(40)
@given(loss_patterns())
def test_losses_are_fields_of_a_link(pattern: Any) -> None:
    link = LinkProfile(rate_bps=10**6, queue_bytes=10**5, **pattern)
    assert {key: getattr(link, key) for key in pattern} == pattern


@law(20)
@given(
    st.from_type(Page),
    st.from_type(Resource),
    st.from_type(H2Priority),
    st.from_type(BucketPriority),
)
def test_hypothesis_knows_the_types_of_h3sim(
    page: Any, resource: Any, position: Any, bucket: Any
) -> None:
    assert isinstance(page, Page)
    assert isinstance(resource, Resource)
    assert 1 <= position.weight <= 256
    assert 1 <= bucket.level <= 3


def test_without_hypothesis_the_error_states_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['hypothesis'] = None\n"
        "try:\n    import h3sim.conformance\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout.strip() == "this needs hypothesis: pip install 'h3sim[testing]'"


TESTS = """
from h3sim.schedulers import FifoScheduler
from h3sim.conformance import Candidate, SchedulerSuite, StrictOrder, parametrize_with_checks

order = StrictOrder(rank=lambda stream_id, signal: stream_id)


class LastFirst(FifoScheduler):
    def __init__(self):
        super().__init__()
        self._ready = {}

    def activate(self, stream_id):
        self._ready[stream_id] = None

    def deactivate(self, stream_id):
        self._ready.pop(stream_id, None)

    def close(self, stream_id):
        self.deactivate(stream_id)

    def pick(self):
        return max(self._ready, default=None)


@parametrize_with_checks([Candidate(factory=LastFirst, claims=(order,))])
def test_schedulers(scheduler, check):
    check(scheduler)


class TestFifo(SchedulerSuite):
    make_scheduler = FifoScheduler
    claims = (order,)


def test_with_the_fixture(check_scheduler):
    check_scheduler(FifoScheduler)
"""


def test_pytest_runs_the_suite_and_reads_well(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-rA", "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--h3sim-profile=quick"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "150", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    message = done.stdout
    assert "h3sim profile: quick" in message
    assert "test_mine.py::test_schedulers[LastFirst-strict-order] FAILED" in message
    assert "h3sim.conformance.laws.BrokenLawError: strict-order: stream 4 of rank 4 is" in message
    assert (
        "test_mine.py::test_schedulers[LastFirst-same-as] SKIPPED (same-as: not claimed)" in message
    )
    assert "test_mine.py::TestFifo::test_strict_order PASSED" in message
    assert "test_mine.py::TestFifo::test_no_starvation SKIPPED" in message
    assert "  skipped  strict-order: not claimed" in message  # in the report of the fixture
    assert "2 failed, 23 passed, 14 skipped" in message


class InWords(FifoScheduler):
    """Picks the right stream, by a wrong name."""

    def pick(self) -> Any:
        picked = super().pick()
        return None if picked is None else str(picked)


def test_a_pick_that_is_no_stream_id_is_reported_as_it_was_returned() -> None:
    with pytest.raises(BrokenLawError) as caught:
        check_scheduler(InWords)
    message = str(caught.value)
    assert "stream '0' is picked, which is no id of a stream" in message
    assert message.endswith("pick() -> '0'")


def test_a_suite_without_a_scheduler_or_with_a_misspelt_claim_is_reported() -> None:
    class Empty(SchedulerSuite):
        pass

    class Misspelt(SchedulerSuite):
        scheduler = FifoScheduler
        claim = (NoStarvation(rounds=2),)

    with pytest.raises(InputError, match=r"Empty: make_scheduler: is missing"):
        Empty().candidate()
    with pytest.raises(InputError) as caught:
        Misspelt().candidate()
    assert caught.value.lines() == [
        "Misspelt: scheduler: there is no such attribute; did you mean make_scheduler?"
        " (one of your own may be called _scheduler)",
        "Misspelt: claim: there is no such attribute; did you mean claims?"
        " (one of your own may be called _claim)",
    ]


def test_what_a_suite_defines_for_itself_may_be_called_nearly_like_an_attribute() -> None:
    class TestOwn(SchedulerSuite):
        make_scheduler = FifoScheduler
        _signal = "urgent"

        def signal(self, urgency: int) -> str:
            return f"u={urgency}"

        @staticmethod
        def claim() -> None: ...

        class Signals:
            pass

    assert TestOwn().candidate().label == "TestOwn"


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"claims": NoStarvation(rounds=2)}, "claims"),
        ({"claims": NoStarvation}, "claims"),
        ({"claims": ["no-starvation"]}, "claims"),
        ({"claims": "no-starvation"}, "claims"),
        ({"skip": ["pickles"]}, "skip"),
        ({"skip": {"pickles": "it holds a file"}}, "skip"),
        ({"placeholders": -1}, "placeholders"),
    ],
)
def test_what_no_law_would_look_at_is_refused(wrong: dict[str, Any], key: str) -> None:
    class Suite(SchedulerSuite):
        make_scheduler = FifoScheduler

    for name, value in wrong.items():
        setattr(Suite, name, value)
    with pytest.raises(InputError, match=f"^{key}: must"):
        check_scheduler(FifoScheduler, **wrong)
    with pytest.raises(InputError, match=f"^{key}: must"):
        Suite().candidate()


def test_a_maker_that_is_misspelt_is_reported_though_it_is_a_method() -> None:
    class Misspelt(SchedulerSuite):
        def make_schedular(self) -> FifoScheduler:
            return FifoScheduler()

    with pytest.raises(InputError, match=r"make_schedular: .* make_scheduler"):
        Misspelt().candidate()


@pytest.mark.parametrize("one", [FifoScheduler, "eps", Candidate(factory=FifoScheduler)])
def test_one_scheduler_may_be_given_without_a_list(one: Any) -> None:
    ids = [row.id for row in parametrize_with_checks(one).args[1]]
    assert ids == [row.id for row in parametrize_with_checks([one]).args[1]]
