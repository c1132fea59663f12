"""Checks of the scheduler contract, of its costs, and of equal results across processes."""

from __future__ import annotations

import base64
import gc
import json
import os
import pickle
import random
import subprocess
import sys
import threading
import types
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.call_sequences import (
    PACKET_BYTES,
    Call,
    Event,
    RecordingScheduler,
    valid_history,
)
from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError, checks
from h3sim.conformance.runner import check_all, shortened
from h3sim.conformance.subject import FreesMemory
from h3sim.errors import SchedulerTimeoutError
from h3sim.schemes import new_scheduler
from h3sim.signals import H2Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis import settings

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Candidate
    from h3sim.schedulers import Scheduler


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
    played: list[tuple[list[int | None], RecordingScheduler]] = []
    calls: list[list[tuple[str, tuple[Any, ...], int]]] = []
    # The shortest first, as the first that differs is reported.
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
    for seed, child, (output, trouble) in zip(_HASH_SEEDS, children, answers, strict=True):
        if child.returncode:
            last = (trouble.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
            sentence = f"a process with PYTHONHASHSEED={seed} ends with {last}"
            raise BrokenLawError(Law.SAME_IN_EVERY_PROCESS, sentence)
        answer = json.loads(output)
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


def _played(
    watched: RecordingScheduler, history: History
) -> tuple[list[int | None], RecordingScheduler]:
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


_CROWD = 200
_CROWD_EVENTS = 1000


@checks(Law.WORK_CONSERVING)
def work_conserving(candidate: Candidate, budget: settings) -> None:
    """See that a stream is picked after every event that leaves one active."""

    def check(history: History) -> None:
        watched = candidate.watched()

        def look() -> None:
            if watched.active and watched.pick() is None:
                active = ", ".join(map(str, watched.active))
                sentence = f"nobody is picked, and these have bytes to send: {active}"
                raise watched.broken(Law.WORK_CONSERVING, sentence)

        watched.play(history, after=look, on_pick=lambda _: look())

    check_all(check, candidate.scripts(leave_out=(Call.CHARGE,)), budget=budget)


@checks(Law.PICKS_ONLY_READY)
def picks_only_ready(candidate: Candidate, budget: settings) -> None:
    """See that whoever is picked, after every event, is open and active."""

    def check(history: History) -> None:
        watched = candidate.watched()

        def look(picked: int | None) -> None:
            if picked is not None and picked not in watched.active:
                sentence = f"stream {picked!r} is picked, which {watched.state_of(picked)}"
                raise watched.broken(Law.PICKS_ONLY_READY, sentence)

        watched.play(history, on_pick=look, after=lambda: look(watched.pick()))

    check_all(check, candidate.scripts(leave_out=(Call.CHARGE,)), budget=budget)


_RESPONSES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 600, 1400, 2800, 4000, 9000])),
    min_size=1,
    max_size=8,
)
"""Turns before the response becomes ready, and its size in bytes."""


@checks(Law.EVERY_BYTE_ONCE)
def every_byte_once(candidate: Candidate, budget: settings) -> None:
    """Send responses as a server does, and see that each goes to its end and no further."""

    def check(responses: list[tuple[int, int]], signals: list[Any]) -> None:
        watched = candidate.watched()
        left: dict[int, int] = {}
        for number, (turns, n_bytes) in enumerate(responses):
            for _ in range(turns):
                _send(watched, left)
            stream_id = 4 * number
            opened = Event(Call.OPEN, stream_id, signal=signals[number % len(signals)])
            for event in valid_history([opened, Event(Call.ACTIVATE, stream_id)]):
                watched.take(event)
            left[stream_id] = n_bytes
        while left:
            if _send(watched, left) is None:
                rest = ", ".join(f"{n_bytes} bytes of {key}" for key, n_bytes in left.items())
                raise watched.broken(Law.EVERY_BYTE_ONCE, f"never sent: {rest}")
        # Nothing is left: whoever is picked now breaks the law.
        _send(watched, left)

    some = st.lists(candidate.signals, min_size=1, max_size=8)
    check_all(check, _RESPONSES, some, budget=budget)


def _send(watched: RecordingScheduler, left: dict[int, int]) -> int | None:
    """Give one turn; a response of no bytes takes one as well."""
    picked = watched.pick()
    if picked is None:
        return None
    if picked not in left:
        sentence = f"stream {picked!r} is picked after its last byte was sent"
        if picked not in watched.signals:
            sentence = f"stream {picked!r} is picked, which {watched.state_of(picked)}"
        raise watched.broken(Law.EVERY_BYTE_ONCE, sentence)
    n_bytes = min(left[picked], PACKET_BYTES)
    left[picked] -= n_bytes
    watched.take(Event(Call.CHARGE, picked, n_bytes=n_bytes))
    if not left[picked]:
        del left[picked]
        watched.take(Event(Call.DEACTIVATE, picked))
    return picked


@checks(Law.PURE_PICK)
def pure_pick(candidate: Candidate, budget: settings) -> None:
    """See that asking thrice gives one answer, and does not change later ones."""

    def check(history: History) -> None:
        watched, plain = candidate.watched(), candidate.watched()
        expected: list[int | None] = []
        plain.play(history, on_pick=expected.append)
        turns = iter(expected)

        def look() -> None:
            first, second, third = watched.pick(), watched.pick(), watched.pick()
            if not first == second == third:
                sentence = f"asked three times in a row, it picks {first}, {second}, {third}"
                raise watched.broken(Law.PURE_PICK, sentence)

        def compare(picked: int | None) -> None:
            unasked = next(turns)
            if picked != unasked:
                sentence = f"{picked} is picked; had nobody asked in between, it would be {unasked}"
                raise watched.broken(Law.PURE_PICK, sentence)
            look()

        watched.play(history, on_pick=compare, after=look)

    check_all(check, candidate.scripts(), budget=budget)


@checks(Law.DETERMINISTIC)
def deterministic(candidate: Candidate, budget: settings) -> None:
    """See that two schedulers that live through the same history side by side pick the same."""

    def check(history: History) -> None:
        one, other = candidate.watched(), candidate.watched()
        for event in history:
            if not _pick_alike(one, other, event):
                sentence = "two schedulers with the same history pick differently"
                raise one.broken(Law.DETERMINISTIC, sentence)

    check_all(check, candidate.scripts(), budget=budget)


def _pick_alike(one: RecordingScheduler, other: RecordingScheduler, event: Event) -> bool:
    """Return whether both pick the same in *event*, and after it."""
    picks: list[int | None] = []
    other_picks: list[int | None] = []
    one.play([event], on_pick=picks.append)
    other.play([event], on_pick=other_picks.append)
    return picks == other_picks and one.pick() == other.pick()


@checks(Law.SAME_IN_EVERY_PROCESS)
def same_in_every_process(candidate: Candidate, budget: settings) -> None:
    """See that processes that hash with other seeds pick the same."""
    histories: list[History] = []
    # Gathered first, so that each child process is started once and not for each example.
    check_all(histories.append, candidate.scripts(), budget=budget)
    check_every_process_picks_the_same(candidate, histories)


@checks(Law.NEVER_RAISES)
def never_raises(candidate: Candidate, budget: settings) -> None:
    """See that histories, and crowds of 200 streams with 1,000 random events, raise nothing."""
    check_all(lambda history: candidate.watched().play(history), candidate.scripts(), budget=budget)

    def check(seed: int, signals: list[Any]) -> None:
        crowd = _crowd(candidate, random.Random(seed), signals)  # noqa: S311 - no secret
        if (broken := _trouble(candidate, crowd)) is not None:
            if isinstance(broken.__cause__, SchedulerTimeoutError):
                raise broken
            # The crowd comes of a seed, which Hypothesis can only replace and not shorten.
            shortest = shortened(crowd, lambda events: _trouble(candidate, events) is not None)
            raise _trouble(candidate, shortest) or broken

    some = st.lists(candidate.signals, min_size=20, max_size=40)
    check_all(check, st.integers(0, 2**32), some, budget=budget, share=10)


def _crowd(candidate: Candidate, source: random.Random, signals: list[Any]) -> History:
    """Return all streams, opened and with data, and random events among them."""
    ids = range(-candidate.placeholders, _CROWD)
    ids_of = [4 * n if n >= 0 else n for n in ids]
    events = [Event(Call.OPEN, n, signal=source.choice(signals)) for n in ids_of]
    events += [Event(Call.ACTIVATE, n) for n in ids_of if n >= 0]
    calls = (Call.UPDATE, Call.UPDATE, Call.ACTIVATE, Call.DEACTIVATE, Call.SERVE, Call.CHARGE)
    for number in range(_CROWD_EVENTS):
        # Few are closed, lest the crowd has gone home before the events are over.
        call = source.choice(calls) if number % 20 else Call.CLOSE
        n_bytes = source.choice((PACKET_BYTES, 600, 0))
        stream_id = source.choice(ids_of)
        events.append(Event(call, stream_id, source.choice(signals), n_bytes))
    return valid_history(events)


def _trouble(candidate: Candidate, history: History) -> BrokenLawError | None:
    try:
        candidate.watched().play(history)
    except BrokenLawError as broken:
        return broken
    return None


_FEW, _MANY = 100, 1000
_TURNS = 20
_MAX_GROWTH = 3
_CLOSED = (100, 600)
_OBJECTS_PER_STREAM = 0.25
"""Less than one object for each closed stream: what is left is slack of the containers."""
_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


@checks(Law.FREES_MEMORY)
def frees_memory(candidate: Candidate, budget: settings) -> None:
    """See that what is left after many streams is no more than after few.

    Streams come and go while the first stays, and stays active: it may keep dead entries alive.
    """
    claims = [claim for claim in candidate.claims if isinstance(claim, FreesMemory)]
    keeps = max((claim.keeps for claim in claims), default=0)

    def check(signals: list[Any]) -> None:
        # With that many more in both, what may be remembered is full in both.
        few, many = (n + keeps for n in _CLOSED)
        before, after = (_left_behind(candidate, signals, n) for n in (few, many))
        if after - before > _OBJECTS_PER_STREAM * (many - few):
            watched = candidate.watched()
            watched.play(_coming_and_going(signals, 3))
            sentence = (
                f"it holds {after} objects after {many} streams were closed as below, "
                f"{before} after {few}"
            )
            raise watched.broken(Law.FREES_MEMORY, sentence)

    check_all(check, _some(candidate), budget=budget, share=10)


def _left_behind(candidate: Candidate, signals: list[Any], n_streams: int) -> int:
    watched = candidate.watched()
    watched.play(_coming_and_going(signals, n_streams))
    return reachable(watched.scheduler)


def _coming_and_going(signals: list[Any], n_streams: int) -> History:
    """Return a history in which each stream is closed when eight more have come."""
    events = [Event(Call.OPEN, 0, signals[0]), Event(Call.ACTIVATE, 0)]
    for number in range(1, n_streams + 9):
        if number <= n_streams:
            stream_id = 4 * number
            events.append(Event(Call.OPEN, stream_id, signals[number % len(signals)]))
            events.append(Event(Call.ACTIVATE, stream_id))
            events.append(Event(Call.SERVE))
            events.append(Event(Call.UPDATE, stream_id, signals[(number + 1) % len(signals)]))
            if number % 3 == 0:
                events.append(Event(Call.DEACTIVATE, stream_id))
        if number > 8:
            events.append(Event(Call.CLOSE, 4 * (number - 8)))
    return valid_history(events)


def reachable(root: object) -> int:
    """Return how many objects hang on *root*; classes, functions and modules do not count.

    >>> reachable([[], []])
    3
    """
    seen = {id(root)}
    waiting = [root]
    while waiting:
        for found in gc.get_referents(waiting.pop()):
            if id(found) not in seen and not isinstance(found, _SHARED):
                seen.add(id(found))
                waiting.append(found)
    return len(seen)


@checks(Law.PICKLES)
def pickles(candidate: Candidate, budget: settings) -> None:
    """See that a pickled scheduler can be read again anywhere in a history, and goes on alike."""
    scheduler = candidate.new()
    if (reason := why_it_cannot_be_sent(type(scheduler))) is not None:
        raise NotCheckedError(reason)

    def check(before: History, after: History) -> None:
        original = candidate.watched()
        original.play(before)
        twin = RecordingScheduler(_pickled(original), may_raise=Law.NEVER_RAISES in candidate.skip)
        # The recorder is new: only the scheduler was pickled.
        twin.signals, twin.active = {**original.signals}, {**original.active}
        # *after* was drawn by itself: it begins with the streams that are still open.
        opened = [Event(Call.OPEN, key, signal) for key, signal in original.signals.items()]
        # Stream IDs are never reused: a stream that *before* closed may not be opened again.
        gone = {event.stream_id for event in before} - set(original.signals)
        both = valid_history([*opened, *(e for e in after if e.stream_id not in gone)])
        for event in both[len(opened) :]:
            if not _pick_alike(original, twin, event):
                raise original.broken(Law.PICKLES, "the unpickled scheduler picks another stream")

    check_all(check, candidate.scripts(), candidate.scripts(), budget=budget, share=2)


def _pickled(watched: RecordingScheduler) -> Scheduler:
    try:
        copy: Scheduler = pickle.loads(pickle.dumps(watched.scheduler))  # noqa: S301 - our own
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise watched.broken(Law.PICKLES, f"it cannot be pickled: {what}") from error
    return copy


@checks(Law.CHEAP_PICKS)
def cheap_picks(candidate: Candidate, budget: settings) -> None:
    """See that the work for a turn hardly grows with the number of active streams.

    Bytecode instructions and comparisons of stream ids are counted, no time is measured, from the
    second turn on: the first may make up for what was put off while streams joined. Logarithms
    grow by half here, and what looks at every stream tenfold. Signals are those of streams
    alone, so that trees stay flat.
    """

    def check(signals: list[Any]) -> None:
        few, many = (_work_for_turns(candidate, signals, n) for n in (_FEW, _MANY))
        if many > _MAX_GROWTH * few:
            watched = candidate.watched()
            watched.play(_all_active(signals, 2))
            sentence = (
                f"{_TURNS} turns take {few} operations with {_FEW} active streams, "
                f"and {many} with {_MANY}"
            )
            raise watched.broken(Law.CHEAP_PICKS, sentence)

    check_all(check, _some(candidate), budget=budget, share=25)


def _some(candidate: Candidate) -> st.SearchStrategy[list[Any]]:
    return st.lists(candidate.signals, min_size=4, max_size=8)


def _all_active(signals: list[Any], n_streams: int) -> Iterable[Event]:
    for number in range(n_streams):
        stream_id = CountedId(4 * number)
        signal = signals[number % len(signals)]
        yield from valid_history([Event(Call.OPEN, stream_id, _alone(signal))])
        yield Event(Call.ACTIVATE, stream_id)


def _alone(signal: Any) -> Any:
    """Return the signal without a place below or above others: depth may cost."""
    if isinstance(signal, H2Priority):
        return replace(signal, depends_on=None, exclusive=False)
    return signal


def _work_for_turns(candidate: Candidate, signals: list[Any], n_streams: int) -> int:
    watched = candidate.watched()
    watched.play(_all_active(signals, n_streams))
    scheduler = watched.scheduler

    def turns() -> None:
        for _ in range(_TURNS):
            picked = scheduler.pick()
            if picked in watched.active:
                scheduler.charge(picked, PACKET_BYTES)

    try:
        # What it puts off until somebody asks, as sorting all that joined, it does for all of them.
        watched.turn()
        return operations_of(turns)
    except (Exception, SystemExit) as error:
        raise watched.raised(f"one of {_TURNS} turns", error) from error


def operations_of(work: Callable[[], object]) -> int:
    """Return how many bytecode instructions and comparisons of counted ids *work* takes.

    What C code does on its own is not seen, other than that it compares or hashes ids: `min` over
    them is counted, a copy of a list of them is not.
    """
    compared = CountedId.compared
    count = _instructions_monitored if sys.version_info >= (3, 12) else _instructions_traced
    return count(work) + CountedId.compared - compared


def _instructions_traced(work: Callable[[], object]) -> int:
    """Return how many instructions *work* takes, under Python 3.11."""
    count = 0

    def count_one(frame: types.FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return count_one

    # Whoever traces the tests, coverage or a debugger, goes on behind this.
    before = sys.gettrace()
    sys.settrace(count_one)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _instructions_monitored(work: Callable[[], object]) -> int:
    """Return how many instructions *work* takes, from Python 3.12 on.

    Tracing misses instructions there, in some turns and not in others.
    """
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - typed for Python 3.11
    count, thread = 0, threading.get_ident()

    def count_one(_code: types.CodeType, _offset: int) -> None:
        nonlocal count
        count += threading.get_ident() == thread

    # Ids 0 to 2 and 5 belong to debuggers, coverage, profilers and optimizers (PEP 669).
    tool = next(each for each in (3, 4) if monitoring.get_tool(each) is None)
    monitoring.use_tool_id(tool, "h3sim conformance")
    try:
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, count_one)
        monitoring.set_events(tool, monitoring.events.INSTRUCTION)
        work()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)
    return count


class CountedId(int):
    """A stream id that counts how often any is compared or hashed."""

    compared = 0
    __slots__ = ()

    def __lt__(self, other: int) -> bool:
        CountedId.compared += 1
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        CountedId.compared += 1
        return int.__le__(self, other)

    def __gt__(self, other: int) -> bool:
        CountedId.compared += 1
        return int.__gt__(self, other)

    def __ge__(self, other: int) -> bool:
        CountedId.compared += 1
        return int.__ge__(self, other)

    def __eq__(self, other: object) -> bool:
        CountedId.compared += 1
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        CountedId.compared += 1
        return int.__hash__(self)
