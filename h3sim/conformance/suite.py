"""The suite: all laws for a scheduler at once, as tests of pytest, or as a class to inherit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from h3sim.conformance import claim_checks, contract_checks, cost_checks
from h3sim.conformance.candidate import Candidate
from h3sim.conformance.laws import Law, NotCheckedError, Report, Verdict
from h3sim.conformance.search import usual_settings
from h3sim.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import hypothesis
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.claims import Claim
    from h3sim.schedulers import Scheduler

__all__ = ["SchedulerSuite", "check_law", "check_scheduler", "parametrize_with_checks"]

_CHECKS = {**contract_checks.CHECKS, **claim_checks.CHECKS, **cost_checks.CHECKS}


def check_scheduler(
    factory: Callable[[], Scheduler] | Candidate,
    *,
    claims: Iterable[Claim] = (),
    signals: SearchStrategy[Any] | None = None,
    placeholders: int = 0,
    skip: Mapping[Law, str] | None = None,
    settings: hypothesis.settings | None = None,
) -> Report:
    """Hold what *factory* makes to every law, and return which it kept and which were skipped.

    *factory* is called without arguments and returns a new scheduler; or it is a `Candidate`, which
    says all but *settings*. Laws that follow from a claim are skipped, by name, where it is not
    made. *settings* are Hypothesis's; by default each law is tried on 30 histories.

    Raises:
        BrokenLawError: at the first law that is broken, with the shortest history that breaks it.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.conformance import StrictOrder
    >>> by_id = StrictOrder(rank=lambda stream_id, signal: stream_id)
    >>> report = check_scheduler(FifoScheduler, claims=[by_id])
    >>> print(report.skipped[Law.WEIGHTED_SHARES])
    not claimed
    """
    if isinstance(factory, Candidate):
        candidate = factory
    else:
        candidate = Candidate(
            factory=factory, claims=tuple(claims), placeholders=placeholders, skip=skip or {}
        )
        if signals is not None:
            candidate = replace(candidate, signals=signals)
    verdicts = tuple(_verdict(candidate, law, settings) for law in Law)
    return Report(scheduler=candidate.label, verdicts=verdicts)


def check_law(
    candidate: Candidate, law: Law, *, settings: hypothesis.settings | None = None
) -> None:
    """Hold *candidate* to one law.

    Raises:
        BrokenLawError: if it is broken.
        NotCheckedError: if the law is not claimed, is skipped, or cannot be looked at.
    """
    __tracebackhide__ = True
    if law in candidate.skip:
        raise NotCheckedError(candidate.skip[law])
    _CHECKS[law](candidate, settings or usual_settings())


def _verdict(candidate: Candidate, law: Law, settings: hypothesis.settings | None) -> Verdict:
    try:
        check_law(candidate, law, settings=settings)
    except NotCheckedError as reason:
        return Verdict(law=law, skipped=str(reason))
    return Verdict(law=law)


def _pytest() -> Any:
    try:
        import pytest
    except ImportError as error:
        raise MissingExtraError("pytest", "testing") from error
    return pytest


def parametrize_with_checks(
    schedulers: Iterable[Callable[[], Scheduler] | Candidate],
) -> Any:
    """Return a mark that makes a test of each law for each of *schedulers*.

    The test takes `scheduler` and `check`, and calls `check(scheduler)`. Its id names scheduler and
    law: `MyScheduler-strict-order`. A law that is not claimed is skipped, with that as the reason.

    >>> from h3sim.schedulers import FifoScheduler
    >>> @parametrize_with_checks([FifoScheduler])
    ... def test_schedulers(scheduler, check):
    ...     check(scheduler)
    """
    pytest = _pytest()
    candidates = [
        entry if isinstance(entry, Candidate) else Candidate(factory=entry) for entry in schedulers
    ]
    rows = [
        pytest.param(candidate, _check_of(law), id=f"{candidate.label}-{law.value}")
        for candidate in candidates
        for law in Law
    ]
    return pytest.mark.parametrize(("scheduler", "check"), rows)


def _check_of(law: Law) -> Callable[[Candidate], None]:
    def check(candidate: Candidate) -> None:
        __tracebackhide__ = True
        try:
            check_law(candidate, law)
        except NotCheckedError as reason:
            _pytest().skip(f"{law.value}: {reason}")

    check.__name__ = law.name.lower()
    check.__doc__ = f"See that {law.meaning}."
    return check


class SchedulerSuite:
    """A test for each law, to inherit: say what makes the scheduler, and what it claims.

    `make_scheduler` is a class or a method that takes nothing and returns a new scheduler; the
    other attributes are those of `Candidate`.

    >>> from h3sim.schedulers import FifoScheduler
    >>> class TestFifo(SchedulerSuite):
    ...     make_scheduler = FifoScheduler
    >>> TestFifo().test_pure_pick()
    """

    make_scheduler: Callable[[], Scheduler]
    claims: tuple[Claim, ...] = ()
    signals: SearchStrategy[Any] | None = None
    placeholders: int = 0
    skip: Mapping[Law, str] = {}

    def candidate(self) -> Candidate:
        """Return what is put to the test."""
        made = Candidate(
            factory=self.make_scheduler,
            claims=tuple(self.claims),
            placeholders=self.placeholders,
            skip=self.skip,
            name=type(self).__name__,
        )
        return made if self.signals is None else replace(made, signals=self.signals)

    def _hold_to(self, law: Law) -> None:
        __tracebackhide__ = True
        _check_of(law)(self.candidate())

    def test_work_conserving(self) -> None:
        """A stream is picked as long as one is active."""
        self._hold_to(Law.WORK_CONSERVING)

    def test_every_byte_once(self) -> None:
        """Each response is sent to its end, and no stream is picked after that."""
        self._hold_to(Law.EVERY_BYTE_ONCE)

    def test_picks_only_ready(self) -> None:
        """Only a stream that is open and active is picked."""
        self._hold_to(Law.PICKS_ONLY_READY)

    def test_pure_pick(self) -> None:
        """Asking changes nothing."""
        self._hold_to(Law.PURE_PICK)

    def test_deterministic(self) -> None:
        """Equal histories lead to equal picks."""
        self._hold_to(Law.DETERMINISTIC)

    def test_same_in_every_process(self) -> None:
        """No hash and no address decides, so all processes pick alike."""
        self._hold_to(Law.SAME_IN_EVERY_PROCESS)

    def test_strict_order(self) -> None:
        """No stream is picked while one of a lower rank is active."""
        self._hold_to(Law.STRICT_ORDER)

    def test_weighted_shares(self) -> None:
        """Streams that are active together have turns by their weights."""
        self._hold_to(Law.WEIGHTED_SHARES)

    def test_no_starvation(self) -> None:
        """An active stream has its turn within a bounded number of turns."""
        self._hold_to(Law.NO_STARVATION)

    def test_updates_at_once(self) -> None:
        """Order and shares follow the last signal, from the next pick on."""
        self._hold_to(Law.UPDATES_AT_ONCE)

    def test_same_as(self) -> None:
        """The picks are those of the reference."""
        self._hold_to(Law.SAME_AS)

    def test_frees_memory(self) -> None:
        """What is closed takes up no memory."""
        self._hold_to(Law.FREES_MEMORY)

    def test_pickles(self) -> None:
        """A pickled scheduler goes on as the original does."""
        self._hold_to(Law.PICKLES)

    def test_cheap_picks(self) -> None:
        """Ten times the streams do not take three times the work for a turn."""
        self._hold_to(Law.CHEAP_PICKS)

    def test_never_raises(self) -> None:
        """No history that keeps the contract raises an exception."""
        self._hold_to(Law.NEVER_RAISES)
