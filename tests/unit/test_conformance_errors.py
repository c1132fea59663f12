"""What people say wrongly of their schedulers, and what the suite makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st

from h3sim.conformance import (
    BoundedWait,
    BrokenLawError,
    ByteShares,
    Call,
    Candidate,
    Event,
    FreesMemory,
    Law,
    NoStarvation,
    NotCheckedError,
    RoundRobinInUrgency,
    SameAs,
    SchedulerSuite,
    StrictOrder,
    UrgencyOrder,
    WeightedShares,
    check_law,
    check_scheduler,
)
from h3sim.schedulers import EpsScheduler, FifoScheduler, RoundRobinScheduler
from h3sim.signals import Eps
from h3sim.values.errors import InputError
from tests.effort import HANG_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("fewer_histories")

SOME = settings(
    max_examples=15, phases=[Phase.generate], deadline=None, derandomize=True, database=None
)


class Picks(FifoScheduler):
    """Returns what it picks in another form."""

    form: Any = staticmethod(int)

    def pick(self) -> Any:
        picked = super().pick()
        return picked if picked is None else self.form(picked)


class InAList(Picks):
    form = staticmethod(lambda picked: [picked])


class AsAFloat(Picks):
    form = staticmethod(float)


class AsTruth(Picks):
    form = staticmethod(bool)


class OfNumpy(Picks):
    form = staticmethod(np.int64)


class ListWhereNobody(FifoScheduler):
    """Returns an empty list in place of None: `self._active and self._active[0]`."""

    def pick(self) -> Any:
        picked = super().pick()
        return [] if picked is None else picked


CONTRACT = (
    Law.WORK_CONSERVING,
    Law.EVERY_BYTE_ONCE,
    Law.PICKS_ONLY_READY,
    Law.DETERMINISTIC,
    Law.PURE_PICK,
    Law.NEVER_RAISES,
)


@pytest.mark.parametrize("law", CONTRACT, ids=lambda law: law.value)
@pytest.mark.parametrize("scheduler", [InAList, AsAFloat, AsTruth, ListWhereNobody])
def test_a_pick_that_is_no_id_is_reported_as_that_whatever_is_looked_at(
    scheduler: Any, law: Any
) -> None:
    with pytest.raises(BrokenLawError, match="which is no id of a stream") as caught:
        check_law(Candidate(factory=scheduler), law, settings=SOME)
    assert caught.value.law is Law.PICKS_ONLY_READY


def test_ids_may_be_integers_of_any_type() -> None:
    for law in (*CONTRACT, Law.SAME_IN_EVERY_PROCESS):
        check_law(Candidate(factory=OfNumpy), law, settings=SOME)


class Talks(FifoScheduler):
    """Prints what it picks, as people do who look for a mistake."""

    def pick(self) -> Any:
        print("pick", picked := super().pick())
        return picked


def test_a_scheduler_may_print() -> None:
    check_law(Candidate(factory=Talks), Law.SAME_IN_EVERY_PROCESS, settings=SOME)


def test_one_that_other_processes_cannot_import_is_skipped_and_not_accused(
    tmp_path: Path,
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_own.py").write_text(
        "from h3sim.conformance import SchedulerSuite\n"
        "from h3sim.schedulers import FifoScheduler\n"
        "class Mine(FifoScheduler): pass\n"
        "class TestMine(SchedulerSuite):\n    make_scheduler = Mine\n"
    )
    # Not `python -m pytest`, which puts the folder where modules are looked for.
    program = "import sys, pytest; sys.path.remove(''); sys.exit(pytest.main(sys.argv[1:]))"
    options = ["-rs", "-p", "no:cacheprovider", "--import-mode=importlib", "-k", "every_process"]
    output = _output(tmp_path, "-c", program, *options)
    assert "another process cannot make it: ModuleNotFoundError: No module named" in output
    assert "1 skipped" in output


def test_pytest_shows_no_frames_of_the_suite_above_an_exception(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from h3sim.schedulers import FifoScheduler\n"
        "class NoPick(FifoScheduler):\n    def pick(self): raise KeyError(7)\n"
        "class NoOpen(FifoScheduler):\n    def open(self, *_): raise KeyError(8)\n"
    )
    (tmp_path / "test_mine.py").write_text(
        "from h3sim.conformance import Candidate, Law, check_law\n"
        "from mine import NoOpen, NoPick\n"
        "def test_pick(): check_law(Candidate(factory=NoPick), Law.WORK_CONSERVING)\n"
        "def test_open(): check_law(Candidate(factory=NoOpen), Law.WORK_CONSERVING)\n"
    )
    output = _output(tmp_path, "-m", "pytest", "-p", "no:cacheprovider")
    assert "2 failed" in output
    assert "mine.py:3: KeyError" in output
    assert "mine.py:5: KeyError" in output
    assert "call_sequences.py" not in output


def _output(folder: Path, *words: str) -> str:
    """Return what Python prints in a folder, in wide lines."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    return done.stdout


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "rank": (lambda: StrictOrder(rank=5), "StrictOrder: rank: must be a callable"),  # type: ignore[arg-type]
    "packets": (
        lambda: StrictOrder(rank=max, packets_per_turn=0),
        "StrictOrder: packets_per_turn: .*, is 0",
    ),
    "signals": (
        lambda: UrgencyOrder(signals=Eps),  # type: ignore[arg-type]
        r"UrgencyOrder: signals: must be a strategy of Hypothesis, say signals\(Eps\), is <class",
    ),
    "tolerance": (
        lambda: WeightedShares(weight=max, tolerance=-0.1),
        "WeightedShares: tolerance: .*, is -0.1",
    ),
    "turn bytes": (
        lambda: ByteShares(weight=max, turn_bytes=0),
        "ByteShares: turn_bytes: .*, is 0",
    ),
    "rounds": (lambda: NoStarvation(rounds=0), "NoStarvation: rounds: .*, is 0"),
    "joining": (
        lambda: BoundedWait(turns=max, joining=-1),
        "BoundedWait: joining: .*, is -1",
    ),
    "keeps": (
        lambda: FreesMemory(keeps="all"),  # type: ignore[arg-type]
        "FreesMemory: keeps: must be a whole number, is 'all'",
    ),
    "reference": (lambda: SameAs(reference=5), "SameAs: reference: must be a scheduler, a factory"),  # type: ignore[arg-type]
    "of a candidate": (
        lambda: Candidate(factory=FifoScheduler, signals=Eps, histories=[]),  # type: ignore[arg-type]
        "signals: must be a strategy .*\nhistories: must be a strategy",
    ),
    "law": (
        lambda: check_law(Candidate(factory=FifoScheduler), "pure-pick"),  # type: ignore[arg-type]
        "law: must be a Law, say Law.PURE_PICK, is 'pure-pick'",
    ),
    "candidate": (
        lambda: check_law(FifoScheduler, Law.PURE_PICK),  # type: ignore[arg-type]
        "candidate: must be a Candidate, is <class",
    ),
    "settings": (
        lambda: check_scheduler(FifoScheduler, settings={"max_examples": 3}),  # type: ignore[arg-type]
        "settings: must be settings of Hypothesis, is",
    ),
    "beside a candidate": (
        lambda: check_scheduler(
            Candidate(factory=FifoScheduler), claims=[UrgencyOrder()], signals=st.none()
        ),
        "claims: a Candidate says that itself.*\nsignals: a Candidate says that itself",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_stated_of_a_scheduler_is_refused_by_name(wrong: Any) -> None:
    send_signal, message = WRONG[wrong]
    with pytest.raises(InputError, match=f"^{message}"):
        send_signal()


@pytest.mark.parametrize("weight", [0, -1, 0.5, None, True, "16"])
@pytest.mark.parametrize("kind", [WeightedShares, ByteShares])
def test_a_weight_that_is_no_integer_is_an_error_of_the_claim(kind: Any, weight: Any) -> None:
    candidate = Candidate(factory=RoundRobinScheduler, claims=(kind(weight=lambda signal: weight),))
    shown_text = (
        f"{kind.__name__}: weight: must return a whole number, at least 1, and returned {weight!r}"
    )
    with pytest.raises(InputError, match=f"^{shown_text} for H2Priority"):
        check_law(candidate, kind.law, settings=SOME)


@pytest.mark.parametrize("turns", [-1, 1.5, "1"])
def test_a_number_of_turns_that_is_none_is_an_error_of_the_claim(turns: Any) -> None:
    claim = BoundedWait(turns=lambda waiting, other: turns)
    shown_text = (
        f"BoundedWait: turns: must return a whole number, or None, and returned {turns!r} for"
    )
    with pytest.raises(InputError, match=f"^{shown_text}"):
        check_law(Candidate(factory=RoundRobinScheduler, claims=(claim,)), claim.law, settings=SOME)


def forgets_to_return(*reported: Any) -> None:
    -reported[0]


@pytest.mark.parametrize(
    ("claim", "laws"),
    [
        (StrictOrder(rank=forgets_to_return), (Law.STRICT_ORDER, Law.UPDATES_AT_ONCE)),
        (BoundedWait(turns=lambda waiting, other: None), (Law.BOUNDED_WAIT,)),
        (RoundRobinInUrgency(signals=st.just(Eps())), (Law.BOUNDED_WAIT,)),
    ],
)
def test_a_claim_that_applies_to_no_stream_is_skipped(claim: Any, laws: Any) -> None:
    of_all = StrictOrder(rank=lambda stream_id, signal: -stream_id)
    for law in laws:
        with pytest.raises(NotCheckedError, match="returns None whatever it is asked"):
            check_law(Candidate(factory=EpsScheduler, claims=(claim,)), law, settings=SOME)
    if claim.law is Law.STRICT_ORDER:
        both = Candidate(factory=FifoScheduler, claims=(claim, of_all))
        with pytest.raises(BrokenLawError, match="strict-order"):
            check_law(both, claim.law, settings=SOME)


class Breaks(FifoScheduler):
    """Fails as soon as it is charged."""

    def charge(self, stream_id: int, n_bytes: int) -> None:
        raise LookupError("broken")


def cannot_be_made() -> Any:
    raise LookupError("no")


@pytest.mark.parametrize(
    ("reference", "shown_text"),
    [
        (Breaks, r"charge\(0, 1400\) raised LookupError: broken"),
        (InAList, r"stream \[0\] is picked, which is no id of a stream"),
        (cannot_be_made, "creating one raised LookupError: no"),
        (dict, "dict has no open, activate, deactivate, close, pick, charge"),
    ],
)
def test_what_a_reference_does_wrong_is_no_fault_of_the_scheduler(
    reference: Any, shown_text: Any
) -> None:
    candidate = Candidate(factory=FifoScheduler, claims=(SameAs(reference=reference),))
    with pytest.raises(InputError, match=f"^SameAs: reference: {shown_text}"):
        check_law(candidate, Law.SAME_AS)


@pytest.mark.parametrize("reference", ["fifo", FifoScheduler(), FifoScheduler])
def test_a_reference_is_given_as_a_scheduler_is(reference: Any) -> None:
    candidate = Candidate(factory=FifoScheduler, claims=(SameAs(reference=reference),))
    check_law(candidate, Law.SAME_AS, settings=SOME)


def test_a_suite_takes_a_function_of_its_module() -> None:
    made: list[FifoScheduler] = []

    def fifo() -> FifoScheduler:
        made.append(FifoScheduler())
        return made[-1]

    class TestMine(SchedulerSuite):
        make_scheduler = fifo
        settings = SOME

    TestMine().test_pure_pick()  # type: ignore[attr-defined]
    assert made


def test_a_suite_takes_histories_and_settings_as_the_others_do() -> None:
    seen: list[Any] = []

    def note(event: Event) -> tuple[Event, ...]:
        seen.append(event)
        return (event,)

    class TestMine(SchedulerSuite):
        make_scheduler = FifoScheduler
        histories = st.builds(Event, st.just(Call.OPEN), st.just(4)).map(note)
        settings = settings(SOME, max_examples=3)

    TestMine().test_pure_pick()  # type: ignore[attr-defined]
    assert seen
    assert len(seen) <= 3


def test_signals_that_are_words_are_reported_as_they_would_be_typed() -> None:
    candidate = Candidate(factory=AsAFloat, signals=st.just("low"))
    with pytest.raises(BrokenLawError) as caught:
        check_law(candidate, Law.WORK_CONSERVING)
    assert caught.value.history == ("open(0, 'low')", "activate(0)", "pick() -> 0.0")
