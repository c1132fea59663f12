"""The search for a failing call sequence, and the report of the shortest."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import Phase, settings

from h3sim.conformance.call_sequences import RecordingScheduler, SchedulerLoopsError
from h3sim.conformance.histories import shortest
from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError
from h3sim.schedulers import drivers_released
from h3sim.values.errors import SchedulerTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.conformance.call_sequences import History
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
        try:
            with calls_limited():
                self.function(candidate, budget)
        except HistoryEndedError as error:
            raise NotCheckedError(f"hardly a history comes to its end: {error}") from None


def checks(law: Law) -> Callable[[Callable[[Candidate, settings], None]], Check]:
    """Return a decorator that marks a function as the check of *law*."""
    return partial(Check, law)


PROFILES = {"quick": 15, "default": 30, "thorough": 1000}
"""Number of histories that each law is tried on."""
MAX_CALL_S = 2.0
"""Processor time that a call may take; a scheduler that takes longer loops."""
_MAX_REPEATED_CALL_S = 0.1
"""The same while a shorter history is searched in which it loops."""
_MAX_ENDED_PER_COMPLETE = 9
"""Most histories cut short for each complete one; with more, a law counts as not checked."""
_profile = "default"
_n_histories: int | None = None
_seed: int | str | None = None


def set_profile(
    name: str, *, seed: int | str | None = None, n_histories: int | None = None
) -> None:
    """Try every law on as many histories as the profile has, one of `PROFILES`.

    With a *seed*, histories are others; *n_histories* replaces the number of the profile.
    """
    global _profile, _seed, _n_histories
    _profile, _seed, _n_histories = name, seed, n_histories
    if name == "thorough" and seed is None:
        _seed = random.randrange(2**32)  # noqa: S311 - no secret


@contextmanager
def use_profile(name: str, *, seed: int | None = None) -> Iterator[None]:
    """Set the profile within the block, and the previous one at its end."""
    previous = _profile, _seed, _n_histories
    set_profile(name, seed=seed)
    try:
        yield
    finally:
        set_profile(previous[0], seed=previous[1], n_histories=previous[2])


def usual_settings() -> settings:
    """Return the settings of the profile."""
    n_histories = _n_histories or PROFILES[_profile]
    return settings(max_examples=n_histories, database=None, deadline=None)


def history_seed() -> int | str:
    """Return what selects the histories, by default 0; "thorough" selects others in every run."""
    return 0 if _seed is None else _seed


def search(
    check: Callable[[History], object], histories: Sequence[History], *, budget: settings
) -> None:
    """Call *check* with each history, and raise what the shortest failing variant raises.

    Raises:
        NotCheckedError: if hardly any history was complete, as the scheduler raised errors.
    """
    __tracebackhide__ = True
    ended: list[HistoryEndedError] = []
    n_complete = 0
    for history in histories:
        try:
            broken = failure(check, history)
            n_complete += 1
        except HistoryEndedError as error:
            ended.append(error)
            continue
        if broken is not None:
            if Phase.shrink in budget.phases:
                known = {repr(event.signal) for each in histories for event in each}
                broken = _shortest_failure(check, history, broken, known)
            # A new error, so that its traceback has no frames of the search.
            raise broken.anew() from broken.__cause__
    if len(ended) > _MAX_ENDED_PER_COMPLETE * n_complete:
        raise NotCheckedError(f"hardly a history comes to its end: {ended[-1]}")


def failure(check: Callable[[History], object], history: History) -> BrokenLawError | None:
    """Return the error of *check* for a history, if any."""
    try:
        with drivers_released():
            check(history)
    except BrokenLawError as broken:
        return broken
    return None


def _shortest_failure(
    check: Callable[[History], object],
    history: History,
    broken: BrokenLawError,
    known: set[str],
) -> BrokenLawError:
    """Return the error of the shortest variant of *history* that breaks the same law."""
    if isinstance(broken.__cause__, SchedulerTimeoutError):
        return broken  # each attempt would take as long
    shortest_found = broken
    loops = isinstance(broken.__cause__, SchedulerLoopsError)

    def fails(variant: History) -> bool:
        nonlocal shortest_found
        try:
            found = failure(check, variant)
        except (HistoryEndedError, NotCheckedError):
            return False
        if found is None or found.law is not broken.law:
            return False
        shortest_found = found
        return True

    with calls_limited(_MAX_REPEATED_CALL_S if loops else MAX_CALL_S):
        if not fails(history):
            sentence = "the same history is lived through in another way the second time"
            return BrokenLawError(Law.DETERMINISTIC, sentence, broken.history)
        shortest(history, fails, known)
    return shortest_found


@contextmanager
def calls_limited(limit_s: float = MAX_CALL_S) -> Iterator[None]:
    """Stop a call of a scheduler that takes longer than *limit_s* of processor time.

    A second thread looks at the number of calls, and raises `SchedulerLoopsError` in the first if
    it has not changed. It can be in any thread, unlike an alarm, which may also be pytest's.
    """
    thread_id, done = threading.get_ident(), threading.Event()

    def watch() -> None:
        last_call: tuple[int, int] | None = None
        since_s = 0.0
        while not done.wait(min(limit_s / 4, 0.5)):
            call, now_s = RecordingScheduler.current_call.get(thread_id), time.process_time()
            if call is None or call != last_call:
                last_call, since_s = call, now_s
            elif now_s - since_s > limit_s:
                # Another call than the one seen could only begin between these two lines.
                error = ctypes.py_object(SchedulerLoopsError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), error)
                since_s = now_s

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
