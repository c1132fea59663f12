"""The search for a failing call sequence, and the report of the shortest."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError
from h3sim.errors import SchedulerTimeoutError
from h3sim.schedulers import drivers_released

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hypothesis.strategies import SearchStrategy

    from h3sim.conformance.call_sequences import Event, History


PROFILES = {"quick": 15, "default": 30, "thorough": 1000}
"""Number of examples that each law is tried on."""
_MOST_ENDED = 9
"""For each history that comes to its end so many may end before, else nothing was looked at."""
_profile = "default"
_seed: int | str | None = None
_keeps_failures = False
_subject = ""


def set_profile(name: str, *, seed: int | str | None = None, keeps_failures: bool = False) -> None:
    """Try every law on as many examples as the profile has, one of `PROFILES`.

    With a *seed* the examples are those of that random seed, in every run. Where they are others in
    every run, those that fail can be kept in Hypothesis's database, to be tried first in the next.
    """
    global _profile, _seed, _keeps_failures
    _profile, _seed, _keeps_failures = name, seed, keeps_failures


@contextmanager
def looking_at(subject: str) -> Iterator[None]:
    """Keep failures within the block under the name of what is looked at."""
    global _subject
    before, _subject = _subject, subject
    try:
        yield
    finally:
        _subject = before


@contextmanager
def use_profile(name: str, *, seed: int | None = None) -> Iterator[None]:
    """Set the profile within the block, and the one from before at its end."""
    before, before_seed = _profile, _seed
    set_profile(name, seed=seed)
    try:
        yield
    finally:
        set_profile(before, seed=before_seed)


def usual_settings() -> settings:
    """Return the settings of the profile: equal examples in every run, but for "thorough"."""
    is_random = _profile == "thorough" or _seed is not None
    default = settings.default
    # Else no folder is left where tests run.
    database = default.database if default and is_random and _keeps_failures else None
    return settings(
        max_examples=PROFILES[_profile],
        derandomize=not is_random,
        database=database,
        deadline=None,
    )


class _HangFoundError(BaseException):
    """A scheduler hangs: no exception, as each shorter history to try would take as long."""

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

    *share* tries so many times fewer examples: for checks that take long.

    Raises:
        NotCheckedError: if hardly any history came to its end, since the scheduler raised.
    """
    __tracebackhide__ = True
    calm = settings(
        budget,
        max_examples=max(budget.max_examples // share, 2),
        deadline=None,
        phases=[p for p in budget.phases if p is not Phase.explain],  # it traces, as cost checks do
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )

    ended: list[HistoryEndedError] = []
    n_complete = 0

    def run(drawn: tuple[Any, ...]) -> None:
        nonlocal n_complete
        try:
            with drivers_released():
                check(*drawn)
            n_complete += 1
        except HistoryEndedError as error:
            ended.append(error)
        except BrokenLawError as broken:
            if isinstance(broken.__cause__, SchedulerTimeoutError):
                raise _HangFoundError(broken) from None
            raise

    from hypothesis import strategies as st

    if calm.database is not None:
        # Hypothesis tells tests by their source, which is that of `run` for every law.
        run._hypothesis_internal_add_digest = _subject.encode()  # type: ignore[attr-defined]
    try:
        test = calm(given(st.tuples(*strategies))(run))
        (test if _seed is None else seed(_seed)(test))()
    except _HangFoundError as hang:
        broken = hang.broken
        raise BrokenLawError(broken.law, broken.sentence, broken.history) from broken.__cause__
    except BrokenLawError as broken:
        # Anew, so that the traceback is not one of Hypothesis.
        raise BrokenLawError(broken.law, broken.sentence, broken.history) from broken.__cause__
    except Flaky as flaky:
        sentence = "the same history is lived through in another way the second time"
        raise BrokenLawError(Law.DETERMINISTIC, sentence) from flaky
    if len(ended) > _MOST_ENDED * n_complete:
        raise NotCheckedError(f"hardly a history comes to its end: {ended[-1]}")


def shortened(history: History, fails: Callable[[tuple[Event, ...]], bool]) -> History:
    """Return a part of *history* that still fails, from which no piece can be taken.

    Pieces get shorter by half down to one event. What the contract forbids without them goes, too.
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
