"""The search for a failing call sequence, and the report of the shortest."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError
from h3sim.schedulers import drivers_released
from h3sim.values.errors import SchedulerTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import Event, History
    from h3sim.conformance.subject import Candidate


@dataclass(frozen=True, slots=True)
class Check:
    """Check of *law*, called with a candidate and the settings that limit the search.

    It raises `BrokenLawError` if the law is broken, and `NotCheckedError` if it is not claimed or
    cannot be checked.
    """

    law: Law
    function: Callable[[Candidate, settings], None]

    def __call__(self, candidate: Candidate, budget: settings) -> None:
        """Check the law for *candidate*."""
        __tracebackhide__ = True
        self.function(candidate, budget)


def checks(law: Law) -> Callable[[Callable[[Candidate, settings], None]], Check]:
    """Return a decorator that marks a function as the check of *law*."""
    return partial(Check, law)


PROFILES = {"quick": 15, "default": 30, "thorough": 1000}
"""Number of examples that each law is tried on."""
_MAX_ENDED_PER_COMPLETE = 9
"""Most histories cut short for each complete one; with more, a law counts as not checked."""
_profile = "default"
_seed: int | str | None = None
_keeps_failures = False
_failure_name = ""
"""Name under which Hypothesis keeps failures."""


def set_profile(name: str, *, seed: int | str | None = None, keeps_failures: bool = False) -> None:
    """Try every law on as many examples as the profile has, one of `PROFILES`.

    With a *seed*, examples are drawn with it. If examples differ between runs, *keeps_failures*
    stores those that fail in Hypothesis's database, to try them first in the next run.
    """
    global _profile, _seed, _keeps_failures
    _profile, _seed, _keeps_failures = name, seed, keeps_failures


@contextmanager
def keeping_failures_as(name: str) -> Iterator[None]:
    """Keep failures within the block under *name*."""
    global _failure_name
    previous_name, _failure_name = _failure_name, name
    try:
        yield
    finally:
        _failure_name = previous_name


@contextmanager
def use_profile(name: str, *, seed: int | None = None) -> Iterator[None]:
    """Set the profile within the block, and the previous one at its end."""
    previous_profile, previous_seed = _profile, _seed
    set_profile(name, seed=seed)
    try:
        yield
    finally:
        set_profile(previous_profile, seed=previous_seed)


def usual_settings() -> settings:
    """Return the settings of the profile; without a seed, only "thorough" differs between runs."""
    is_random = _profile == "thorough" or _seed is not None
    default = settings.default
    # Without a database, Hypothesis leaves no folder where tests run.
    database = default.database if default and is_random and _keeps_failures else None
    return settings(
        max_examples=PROFILES[_profile],
        derandomize=not is_random,
        database=database,
        deadline=None,
    )


class _HangFoundError(BaseException):
    """A scheduler hangs.

    Hypothesis does not catch it, as it is no `Exception`, and so does not look for a shorter
    history: each would take as long.
    """

    def __init__(self, broken: BrokenLawError) -> None:
        self.broken = broken
        super().__init__(broken)


def check_all(
    check: Callable[..., object],
    *strategies: SearchStrategy[Any],
    budget: settings,
    share: int = 1,
) -> None:
    """Try *check* on what the strategies draw, and raise what the shortest failing example raises.

    Only one of *share* examples of the budget is tried, for checks that take long.

    Raises:
        NotCheckedError: if hardly any history was complete, as the scheduler raised errors.
    """
    __tracebackhide__ = True
    search_settings = settings(
        budget,
        max_examples=max(budget.max_examples // share, 2),
        deadline=None,
        # The explain phase traces, as checks of costs do.
        phases=[phase for phase in budget.phases if phase is not Phase.explain],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )

    ended: list[HistoryEndedError] = []
    n_whole = 0

    def run(drawn: tuple[Any, ...]) -> None:
        nonlocal n_whole
        try:
            with drivers_released():
                check(*drawn)
            n_whole += 1
        except HistoryEndedError as error:
            ended.append(error)
        except BrokenLawError as broken:
            if isinstance(broken.__cause__, SchedulerTimeoutError):
                raise _HangFoundError(broken) from None
            raise

    from hypothesis import strategies as st

    if search_settings.database is not None:
        # Hypothesis tells tests apart by their source, which is that of `run` for every law.
        run._hypothesis_internal_add_digest = _failure_name.encode()  # type: ignore[attr-defined]
    try:
        test = search_settings(given(st.tuples(*strategies))(run))
        if _seed is not None:
            test = seed(_seed)(test)
        test()
    except _HangFoundError as hang:
        broken = hang.broken
        raise BrokenLawError(broken.law, broken.sentence, broken.history) from broken.__cause__
    except BrokenLawError as broken:
        # A new error, so that its traceback is not in Hypothesis.
        raise BrokenLawError(broken.law, broken.sentence, broken.history) from broken.__cause__
    except Flaky as flaky:
        sentence = "the same history is lived through in another way the second time"
        raise BrokenLawError(Law.DETERMINISTIC, sentence) from flaky
    if len(ended) > _MAX_ENDED_PER_COMPLETE * n_whole:
        raise NotCheckedError(f"hardly a history comes to its end: {ended[-1]}")


def shortened(history: History, fails: Callable[[tuple[Event, ...]], bool]) -> History:
    """Return a part of *history* that still fails, but not without any one of its events.

    Pieces of half the history are removed first, then of a quarter, down to one event, with the
    events that the contract forbids without them.
    """
    from h3sim.conformance.call_sequences import valid_history

    size = len(history) // 2
    while size:
        index = 0
        while index < len(history):
            shorter = valid_history(history[:index] + history[index + size :])
            if fails(shorter):
                history = shorter
            else:
                index += size
        size //= 2
    return history
