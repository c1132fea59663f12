"""The same histories in processes that hash with other seeds."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.conformance.histories import PACKET_BYTES, Call, valid_history
from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError
from h3sim.schemes import new_scheduler

if TYPE_CHECKING:
    from h3sim.conformance.candidate import Candidate
    from h3sim.conformance.histories import Event, History, Watched

__all__ = ["check_every_process_picks_the_same", "why_it_cannot_be_sent"]

_HASH_SEEDS = ("1", "4242")

# The child imports nothing of the suite, so that it starts quickly.
_PROGRAM = """
import base64, json, operator, pickle, sys
path, work = json.loads(sys.stdin.readline())
sys.path[:] = path
answer, sys.stdout = sys.stdout, sys.stderr  # what a scheduler prints is no part of the answer
try:
    make, histories = pickle.loads(base64.b64decode(work))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}"), file=answer)
    sys.exit()
said = []
for history in histories:
    scheduler, picks, active = make(), [], {}
    for name, arguments, n_turns in history:
        if name == "serve":
            for _ in range(n_turns):
                picked = scheduler.pick()
                picks.append(None if picked is None else operator.index(picked))
                if picks[-1] in active:
                    scheduler.charge(picks[-1], *arguments)
        else:
            getattr(scheduler, name)(*arguments)
            if name == "activate":
                active[arguments[0]] = None
            elif name in ("deactivate", "close"):
                active.pop(arguments[0], None)
    said.append(picks)
print(json.dumps(said), file=answer)
"""


def why_it_cannot_be_sent(part: object) -> str | None:
    """Return why another process could not find the class or function *part*, None if it can."""
    what = getattr(part, "func", part)  # of a functools.partial
    what = getattr(what, "__func__", what)
    if not hasattr(what, "__qualname__"):
        what = type(part)
    name = what.__qualname__
    if what.__module__ == "__main__":
        return f"{name} is defined in a script; in a module, other processes could import it"
    if "<" in name:
        return f"{name} is defined in a function; in a module, other processes could import it"
    return None


def check_every_process_picks_the_same(candidate: Candidate, histories: list[History]) -> None:
    """See that children with other seeds pick what this process picks.

    Raises:
        BrokenLawError: with the shortest of *histories* that shows it.
    """
    played: list[tuple[list[int | None], Watched]] = []
    calls: list[list[tuple[str, tuple[Any, ...], int]]] = []
    # The shortest first, as the first that differs is told.
    for history in sorted(map(valid_history, histories), key=len):
        try:
            played.append(_played(candidate.watched(), history))
        except HistoryEndedError:
            continue
        calls.append([_call(event) for event in history])
    text = f"{json.dumps([sys.path, _parcel(candidate, calls)])}\n"
    # All are started before one is waited for, so that they run side by side.
    children = [_started(seed) for seed in _HASH_SEEDS]
    answers = [child.communicate(text) for child in children]
    for seed, child, (said, trouble) in zip(_HASH_SEEDS, children, answers, strict=True):
        if child.returncode:
            last = (trouble.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            sentence = f"a process with PYTHONHASHSEED={seed} ends with {last}"
            raise BrokenLawError(Law.SAME_IN_EVERY_PROCESS, sentence)
        answer = json.loads(said)
        if isinstance(answer, str):
            raise NotCheckedError(f"another process cannot make it: {answer}")
        for there, (here, watched) in zip(answer, played, strict=True):
            if here != there:
                turn = next(n for n, picked in enumerate(here) if there[n] != picked)
                sentence = (
                    f"at turn {turn} stream {here[turn]} is picked here, "
                    f"and {there[turn]} in a process with PYTHONHASHSEED={seed}"
                )
                raise watched.broken(Law.SAME_IN_EVERY_PROCESS, sentence)


def _parcel(candidate: Candidate, calls: Any) -> str:
    reason = why_it_cannot_be_sent(candidate.maker)
    if reason is not None:
        raise NotCheckedError(reason)
    make = partial(new_scheduler, candidate.maker, turn_bytes=PACKET_BYTES, name=candidate.label)
    try:
        return base64.b64encode(pickle.dumps((make, calls))).decode()
    except Exception as error:
        reason = f"what makes it, or a signal, cannot be pickled: {error}"
        raise NotCheckedError(reason) from error


def _call(event: Event) -> tuple[str, tuple[Any, ...], int]:
    is_turn = event.call is Call.SERVE
    arguments = (event.n_bytes,) if is_turn else event.arguments
    return event.call.value, arguments, event.n_turns


def _played(watched: Watched, history: History) -> tuple[list[int | None], Watched]:
    picks: list[int | None] = []
    watched.play(history, on_pick=picks.append)
    return picks, watched


def _started(seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - this interpreter, and the program above
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
