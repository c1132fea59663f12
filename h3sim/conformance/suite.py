"""The suite: the laws as a function, as tests of pytest, and as a class to inherit.

All three read the one list, `Law`. The fixture of the pytest plugin calls the function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import hypothesis

from h3sim.conformance import claim_checks, contract_checks
from h3sim.conformance.laws import (
    BrokenLawError,
    Check,
    ConformanceReport,
    Law,
    LawVerdict,
    NotCheckedError,
)
from h3sim.conformance.runner import looking_at, usual_settings
from h3sim.conformance.subject import Candidate
from h3sim.errors import InputError, ValidationIssue, needing_extra
from h3sim.schedulers import DriverScheduler, drivers_released
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.values import OrNone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Claim, SchedulerLike
    from h3sim.schedulers import Scheduler


_CHECKS = {
    found.law: found
    for module in (contract_checks, claim_checks)
    for found in vars(module).values()
    if isinstance(found, Check)
}


_IN_PROCESS = (Law.FREES_MEMORY, Law.PICKLES, Law.CHEAP_PICKS)
"""Laws about Python objects and bytecode, which a driver has none of here."""
_CANDIDATE = Predicate("a Candidate", lambda value: isinstance(value, Candidate))
_LAW = Predicate("a Law, say Law.PURE_PICK", lambda value: isinstance(value, Law))
_SETTINGS = OrNone(
    Predicate("settings of Hypothesis", lambda value: isinstance(value, hypothesis.settings)),
    none=None,
)


def check_scheduler(
    scheduler: SchedulerLike | Candidate,
    *,
    claims: Iterable[Claim] = (),
    signals: SearchStrategy[Any] | None = None,
    placeholders: int = 0,
    skip: Mapping[Law, str] | None = None,
    settings: hypothesis.settings | None = None,
) -> ConformanceReport:
    """Hold *scheduler* to every law, and return which it kept and which were skipped.

    It is given as `h3sim.simulate` takes it: a name, a class or function that makes one, or a
    scheduler, which is copied for each history. Or it is a `Candidate`, which says all but
    *settings*. Laws that follow from a claim are skipped, by name, where it is not made. Those in
    *skip* are not looked at, each for the reason that is given; without `Law.NEVER_RAISES`, a
    history of the other laws ends where the scheduler raises. *settings* are Hypothesis's; by
    default each law is tried on 30 histories.

    Raises:
        BrokenLawError: at the first law that is broken, with the shortest history that breaks it.
        InputError: if the scheduler cannot be made, or lacks a method, or an argument cannot
            be.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.conformance import StrictOrder
    >>> by_id = StrictOrder(rank=lambda stream_id, signal: stream_id)
    >>> report = check_scheduler(FifoScheduler, claims=[by_id])
    >>> print(report.skipped[Law.WEIGHTED_SHARES])
    not claimed
    """
    if isinstance(scheduler, Candidate):
        candidate = scheduler
        options = {"claims": claims, "signals": signals, "placeholders": placeholders, "skip": skip}
        # Not by truth, which a strategy has none of.
        given_twice = [
            name for name, value in options.items() if value not in (None, (), [], {}, 0)
        ]
        if given_twice:
            message = "a Candidate says that itself: give it to the Candidate"
            raise InputError([ValidationIssue(key=name, message=message) for name in given_twice])
    else:
        candidate = Candidate(
            factory=scheduler, claims=_several(claims), placeholders=placeholders, skip=skip or {}
        )
        if signals is not None:
            candidate = replace(candidate, signals=signals)
    verdicts = tuple(_verdict(candidate, law, settings) for law in Law)
    return ConformanceReport(scheduler=candidate.label, verdicts=verdicts)


def _several(claims: Any) -> Any:
    """Return *claims* as a tuple; what cannot be one is left for the candidate to refuse."""
    return tuple(claims) if isinstance(claims, Iterable) and not isinstance(claims, str) else claims


def check_law(
    candidate: Candidate, law: Law, *, settings: hypothesis.settings | None = None
) -> None:
    """Hold *candidate* to one law.

    Raises:
        BrokenLawError: if it is broken.
        InputError: if the scheduler cannot be made, or lacks a method, or an argument cannot be.
        NotCheckedError: if the law is not claimed, is skipped, or cannot be looked at.
    """
    __tracebackhide__ = True
    check_arguments(
        InputError,
        candidate=(_CANDIDATE, candidate),
        law=(_LAW, law),
        settings=(_SETTINGS, settings),
    )
    made = candidate.new()  # An error here is an error of the input, not the end of a history.
    if law in candidate.skip:
        raise NotCheckedError(candidate.skip[law])
    if law in _IN_PROCESS and isinstance(made, DriverScheduler):
        raise NotCheckedError("runs in another process")
    with drivers_released(), looking_at(f"{candidate.label} {law.value}"):
        try:
            _CHECKS[law](candidate, settings or usual_settings())
        except BrokenLawError as broken:
            broken.scheduler = _expression(candidate, made)
            raise


def _expression(candidate: Candidate, made: Scheduler) -> str:
    """Return how a test makes the scheduler."""
    if isinstance(made, DriverScheduler):
        return f"DriverScheduler({[*made.command]!r})"
    name = getattr(candidate.factory, "__name__", "")
    return f"{name}()" if name.isidentifier() else BrokenLawError.scheduler


def _verdict(candidate: Candidate, law: Law, settings: hypothesis.settings | None) -> LawVerdict:
    try:
        check_law(candidate, law, settings=settings)
    except NotCheckedError as reason:
        return LawVerdict(law=law, skipped=str(reason))
    return LawVerdict(law=law)


def _pytest() -> Any:
    with needing_extra("pytest", "testing"):
        import pytest
    return pytest


def parametrize_with_checks(
    schedulers: Iterable[SchedulerLike | Candidate] | SchedulerLike | Candidate,
) -> pytest.MarkDecorator:
    """Return a mark that makes a test of each law for each of *schedulers*, which may be one.

    The test takes `scheduler` and `check`, and calls `check(scheduler)`. Its id names scheduler and
    law: `MyScheduler-strict-order`. A law that is not claimed is skipped, with that as the reason.

    >>> from h3sim.schedulers import FifoScheduler
    >>> @parametrize_with_checks([FifoScheduler])
    ... def test_schedulers(scheduler, check):
    ...     check(scheduler)
    """
    made = _pytest()
    is_many = isinstance(schedulers, Iterable) and not isinstance(schedulers, str | type)
    several: Any = schedulers if is_many else [schedulers]
    candidates = [
        entry if isinstance(entry, Candidate) else Candidate(factory=entry) for entry in several
    ]
    rows = [
        made.param(candidate, _check_of(law), id=f"{candidate.label}-{law.value}")
        for candidate in candidates
        for law in Law
    ]
    mark: pytest.MarkDecorator = made.mark.parametrize(("scheduler", "check"), rows)
    return mark


def _check_of(law: Law, settings: hypothesis.settings | None = None) -> Callable[[Candidate], None]:
    def check(candidate: Candidate) -> None:
        __tracebackhide__ = True
        try:
            check_law(candidate, law, settings=settings)
        except NotCheckedError as reason:
            _pytest().skip(f"{law.value}: {reason}")

    check.__name__ = law.name.lower()
    check.__doc__ = f"See that {law.meaning}."
    return check


class SchedulerSuite:
    """A test for each law, to inherit: say what makes the scheduler, and what it claims.

    `make_scheduler` is a class, a function or method that takes nothing and returns a new
    scheduler, or a name; the other attributes are those of `Candidate`, and the *settings* of
    `check_scheduler`.

    >>> from h3sim.schedulers import FifoScheduler
    >>> class TestFifo(SchedulerSuite):
    ...     make_scheduler = FifoScheduler
    >>> TestFifo().test_pure_pick()
    """

    make_scheduler: SchedulerLike
    claims: tuple[Claim, ...] = ()
    signals: SearchStrategy[Any] | None = None
    placeholders: int = 0
    histories: SearchStrategy[History] | None = None
    skip: Mapping[Law, str] = {}
    settings: hypothesis.settings | None = None

    def candidate(self) -> Candidate:
        """Return what is put to the test.

        Raises:
            InputError: if nothing makes a scheduler, or an attribute is misspelt: a claim that
                nobody reads would be checked by nobody.
        """
        if problems := _attribute_issues(type(self)):
            raise InputError(problems, type(self).__name__)
        made = Candidate(
            factory=_plain(self, "make_scheduler"),
            claims=_several(self.claims),
            placeholders=self.placeholders,
            histories=self.histories,
            skip=self.skip,
            name=type(self).__name__,
        )
        return made if self.signals is None else replace(made, signals=self.signals)


def _plain(suite: SchedulerSuite, name: str) -> Any:
    """Return an attribute; a function that takes nothing is none of the suite's methods."""
    import inspect  # on use: importing should stay quick

    found = inspect.getattr_static(suite, name)
    takes_nothing = inspect.isfunction(found) and not inspect.signature(found).parameters
    return found if takes_nothing else getattr(suite, name)


_ATTRIBUTES = tuple(SchedulerSuite.__annotations__)
_ALIKE = 0.75
"""From which likeness on an attribute is taken for a misspelt one: claim, scheduler, signal."""


def _attribute_issues(cls: type[SchedulerSuite]) -> list[ValidationIssue]:
    """Return what is missing, or misspelt, among the attributes of a suite."""
    import difflib  # on use: importing should stay quick

    problems = []
    is_made = hasattr(cls, "make_scheduler")
    for name in (name for base in cls.__mro__ for name in vars(base) if base is not object):
        near = difflib.get_close_matches(name, _ATTRIBUTES, n=1, cutoff=_ALIKE)
        if not near or name in _ATTRIBUTES or name.startswith("_"):
            continue
        # A method or a class is a helper, unless it may be what makes the scheduler.
        if callable(getattr(cls, name)) and (is_made or near[0] != "make_scheduler"):
            continue
        message = f"there is no such attribute; did you mean {near[0]}?"
        own = f"one of your own may be called _{name}"
        problems.append(ValidationIssue(key=name, message=f"{message} ({own})"))
    if not problems and not is_made:
        message = "is missing: a class, a method or a name that makes the scheduler"
        problems.append(ValidationIssue(key="make_scheduler", message=message))
    return problems


def _add_test(law: Law) -> None:
    """Give the class its test of *law*."""

    def test(self: SchedulerSuite) -> None:
        __tracebackhide__ = True
        _check_of(law, self.settings)(self.candidate())

    test.__name__ = f"test_{law.name.lower()}"
    test.__qualname__ = f"{SchedulerSuite.__qualname__}.{test.__name__}"
    test.__doc__ = f"See that {law.meaning}."
    setattr(SchedulerSuite, test.__name__, test)


for _law in Law:
    _add_test(_law)
