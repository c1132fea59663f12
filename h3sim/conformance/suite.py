"""The suite: all laws as a function, as tests of pytest, and as a base class of tests.

All three check the laws in `Law`. The fixture of the pytest plugin calls the function.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import hypothesis

from h3sim.conformance import claim_checks, contract_checks, trials
from h3sim.conformance.call_sequences import SchedulerLoopsError
from h3sim.conformance.laws import (
    BrokenLawError,
    ConformanceReport,
    Law,
    LawVerdict,
    NotCheckedError,
)
from h3sim.conformance.runner import Check, usual_settings
from h3sim.conformance.subject import Candidate
from h3sim.schedulers import DriverScheduler, drivers_released
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.values import OrNone
from h3sim.values.errors import (
    InputError,
    SchedulerTimeoutError,
    ValidationIssue,
    needing_extra,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest
    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Claim, SchedulerLike
    from h3sim.schedulers import Scheduler


_CHECKS = {
    value.law: value
    for module in (contract_checks, trials, claim_checks)
    for value in vars(module).values()
    if isinstance(value, Check)
}


_PYTHON_ONLY_LAWS = (Law.FREES_MEMORY, Law.PICKLES, Law.CHEAP_PICKS)
"""Laws about Python objects and bytecode. A driver, which is another process, has neither."""
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
    """Check every law for *scheduler*, and return which ones it kept and which were skipped.

    The scheduler is a name, a class or function that makes one, or a scheduler, which is copied for
    each history, as in `h3sim.simulate`. Or it is a `Candidate`, which replaces all arguments but
    *settings*. A law that needs a claim is skipped if there is no such claim. *skip* maps laws that
    are not checked to reasons; if `Law.NEVER_RAISES` is one, histories of the other laws end where
    the scheduler raises. *settings* are those of Hypothesis; by default each law is tried on 30
    histories.

    Raises:
        BrokenLawError: at the first law that is broken, with the shortest history that breaks it.
        InputError: if the scheduler cannot be made, or lacks a method, or an argument is invalid.

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
        # Compared with the empty values, as a strategy has no truth value.
        repeated = [name for name, value in options.items() if value not in (None, (), [], {}, 0)]
        if repeated:
            message = "a Candidate says that itself: give it to the Candidate"
            raise InputError([ValidationIssue(key=name, message=message) for name in repeated])
    else:
        candidate = Candidate(
            factory=scheduler, claims=_as_tuple(claims), placeholders=placeholders, skip=skip or {}
        )
        if signals is not None:
            candidate = replace(candidate, signals=signals)
    verdicts = tuple(_verdict(candidate, law, settings) for law in Law)
    return ConformanceReport(scheduler=candidate.label, verdicts=verdicts)


def report_on(
    candidate: Candidate, *, settings: hypothesis.settings | None = None
) -> ConformanceReport:
    """Check every law for *candidate*, and return which ones it kept, broke, or were skipped.

    An error of another law than the one that is checked is reported once, with the first.

    Raises:
        InputError: if the scheduler cannot be made, or lacks a method.
    """
    verdicts: list[LawVerdict] = []
    for law in Law:
        try:
            verdicts.append(_verdict(candidate, law, settings))
        except BrokenLawError as broken:
            is_known = any(v.broken is not None and v.broken.law is broken.law for v in verdicts)
            if is_known and broken.law is not law:
                verdicts.append(LawVerdict(law=law, skipped=f"breaks {broken.law.value}"))
            else:
                verdicts.append(LawVerdict(law=law, broken=broken))
            if isinstance(broken.__cause__, SchedulerTimeoutError | SchedulerLoopsError):
                break  # each other law would take as long
    return ConformanceReport(scheduler=candidate.label, verdicts=tuple(verdicts))


def _as_tuple(claims: Any) -> Any:
    """Return *claims* as a tuple, or unchanged if that is impossible: `Candidate` refuses them."""
    return tuple(claims) if isinstance(claims, Iterable) and not isinstance(claims, str) else claims


def check_law(
    candidate: Candidate, law: Law, *, settings: hypothesis.settings | None = None
) -> None:
    """Check one law for *candidate*.

    Raises:
        BrokenLawError: if it is broken.
        InputError: if the scheduler cannot be made, or lacks a method, or an argument is invalid.
        NotCheckedError: if the law is not claimed, is skipped, or cannot be checked.
    """
    __tracebackhide__ = True
    check_arguments(
        InputError,
        candidate=(_CANDIDATE, candidate),
        law=(_LAW, law),
        settings=(_SETTINGS, settings),
    )
    # Made before any history: an error now is one of the input, and breaks no law.
    scheduler = candidate.new()
    if law in candidate.skip:
        raise NotCheckedError(candidate.skip[law])
    if law in _PYTHON_ONLY_LAWS and isinstance(scheduler, DriverScheduler):
        raise NotCheckedError("runs in another process")
    with drivers_released():
        try:
            _CHECKS[law](candidate, settings or usual_settings())
        except BrokenLawError as broken:
            broken.scheduler, broken.scheduler_import = _maker_source(candidate.factory, scheduler)
            # Without the traceback, whose frames are all of the suite.
            raise broken.with_traceback(None)  # noqa: B904 - the same error


def _maker_source(factory: Any, scheduler: Scheduler) -> tuple[str, str]:
    """Return the expression by which a test makes the scheduler, and the import that it needs."""
    if isinstance(scheduler, DriverScheduler):
        expression = f"DriverScheduler({[*scheduler.command]!r})"
        return expression, "from h3sim.schedulers import DriverScheduler"
    name, module = getattr(factory, "__name__", ""), getattr(factory, "__module__", "")
    if not name.isidentifier():
        return BrokenLawError.scheduler, ""
    is_importable = module != "__main__" and getattr(sys.modules.get(module), name, None) is factory
    return f"{name}()", f"from {module} import {name}" if is_importable else ""


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
    """Return a mark that makes a test of each law for each of *schedulers*, or for a single one.

    The test takes `scheduler` and `check`, and calls `check(scheduler)`. Its id names scheduler and
    law: `MyScheduler-strict-order`. A law that is not claimed is skipped.

    >>> from h3sim.schedulers import FifoScheduler
    >>> @parametrize_with_checks([FifoScheduler])
    ... def test_schedulers(scheduler, check):
    ...     check(scheduler)
    """
    pytest_module = _pytest()
    is_many = isinstance(schedulers, Iterable) and not isinstance(schedulers, str | type)
    entries: Any = schedulers if is_many else [schedulers]
    candidates = [
        entry if isinstance(entry, Candidate) else Candidate(factory=entry) for entry in entries
    ]
    rows = [
        pytest_module.param(candidate, _check_of(law), id=f"{candidate.label}-{law.value}")
        for candidate in candidates
        for law in Law
    ]
    mark: pytest.MarkDecorator = pytest_module.mark.parametrize(("scheduler", "check"), rows)
    return mark


def _check_of(law: Law, settings: hypothesis.settings | None = None) -> Callable[[Candidate], None]:
    """Return a function that checks *law*, and skips the test of pytest if it is not checked."""

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
    """Base class with a test for each law; a subclass defines the scheduler and its claims.

    `make_scheduler` is a class, a function or method without arguments that returns a new
    scheduler, or a name. The other attributes are those of `Candidate`, and the *settings* of
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
        """Return the candidate that the attributes define.

        Raises:
            InputError: if nothing makes a scheduler, or an attribute is misspelt: otherwise the
                claims in it would not be checked.
        """
        if problems := _attribute_issues(type(self)):
            raise InputError(problems, type(self).__name__)
        candidate = Candidate(
            factory=_scheduler_maker(self),
            claims=_as_tuple(self.claims),
            placeholders=self.placeholders,
            histories=self.histories,
            skip=self.skip,
            name=type(self).__name__,
        )
        return candidate if self.signals is None else replace(candidate, signals=self.signals)


def _scheduler_maker(suite: SchedulerSuite) -> Any:
    """Return `make_scheduler`, which is not bound as a method if it is a function of nothing."""
    import inspect  # on use: importing should stay quick

    attribute = inspect.getattr_static(suite, "make_scheduler")
    takes_nothing = inspect.isfunction(attribute) and not inspect.signature(attribute).parameters
    return attribute if takes_nothing else suite.make_scheduler


_ATTRIBUTES = tuple(SchedulerSuite.__annotations__)
_MIN_LIKENESS = 0.75
"""Least likeness of a misspelt attribute, such as claim, scheduler or signal."""


def _attribute_issues(cls: type[SchedulerSuite]) -> list[ValidationIssue]:
    """Return the attributes of a suite that are missing or misspelt."""
    import difflib  # on use: importing should stay quick

    problems = []
    has_maker = hasattr(cls, "make_scheduler")
    for name in (name for base in cls.__mro__ for name in vars(base) if base is not object):
        if name in _ATTRIBUTES or name.startswith("_"):
            continue
        matches = difflib.get_close_matches(name, _ATTRIBUTES, n=1, cutoff=_MIN_LIKENESS)
        for match in matches:
            # A method or a class is a helper, unless the suite has nothing that makes a scheduler.
            if callable(getattr(cls, name)) and (has_maker or match != "make_scheduler"):
                continue
            message = f"there is no such attribute; did you mean {match}?"
            advice = f"one of your own may be called _{name}"
            problems.append(ValidationIssue(key=name, message=f"{message} ({advice})"))
    if not problems and not has_maker:
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
