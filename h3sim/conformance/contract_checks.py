"""Checks of the scheduler contract, of its costs, and of equal results across processes."""

from __future__ import annotations

import base64
import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import types
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.conformance.call_sequences import (
    PACKET_BYTES,
    Call,
    Event,
    RecordingScheduler,
    valid_history,
)
from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law, NotCheckedError
from h3sim.conformance.runner import checks, search
from h3sim.conformance.subject import FreesMemory
from h3sim.schemes import new_scheduler
from h3sim.signals import H2Priority
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis import settings

    from h3sim.conformance.call_sequences import History
    from h3sim.conformance.subject import Candidate
    from h3sim.schedulers import Scheduler


_HASH_SEEDS = ("1", "4242")
"""Values of PYTHONHASHSEED of the child processes."""

# The child imports nothing of the suite, so that it starts quickly.
_CHILD_PROGRAM = """
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
"""Source of a child process: it reads a path and pickled work, and prints the picks as JSON."""


def unpicklable_reason(maker: object) -> str | None:
    """Return why another process could not find the class or function *maker*; None if it can."""
    definition = getattr(maker, "func", maker)  # of a functools.partial
    definition = getattr(definition, "__func__", definition)  # of a method
    if not hasattr(definition, "__qualname__"):
        definition = type(maker)
    name = definition.__qualname__
    if definition.__module__ == "__main__":
        return f"{name} is defined in a script; in a module, other processes could import it"
    if "<" in name:
        return f"{name} is defined in a function; in a module, other processes could import it"
    return None


def check_every_process_picks_the_same(candidate: Candidate, histories: list[History]) -> None:
    """Check that children with other hash seeds pick the same as this process.

    Raises:
        BrokenLawError: with the shortest of *histories* in which the picks differ.
    """
    played: list[tuple[list[int | None], RecordingScheduler]] = []
    calls: list[list[_ChildCall]] = []
    # The shortest first, as the first with other picks is reported.
    for history in sorted(map(valid_history, histories), key=len):
        try:
            played.append(_picks_of(candidate.new_recording(), history))
        except HistoryEndedError:
            continue
        calls.append([_child_call(event) for event in history])
    text = f"{json.dumps([sys.path, _child_work(candidate, calls)])}\n"
    # Both are started before the first is waited for, so that they run in parallel.
    children = [_start_child(seed) for seed in _HASH_SEEDS]
    outputs = [child.communicate(text) for child in children]
    for seed, child, (output, errors) in zip(_HASH_SEEDS, children, outputs, strict=True):
        if child.returncode:
            lines = errors.strip().splitlines()
            reason = lines.pop() if lines else f"exit code {child.returncode}"
            sentence = f"a process with PYTHONHASHSEED={seed} ends with {reason}"
            raise BrokenLawError(Law.SAME_IN_EVERY_PROCESS, sentence)
        answer = json.loads(output)
        if isinstance(answer, str):
            raise NotCheckedError(f"another process cannot make it: {answer}")
        for child_picks, (own_picks, recording) in zip(answer, played, strict=True):
            for turn, (own, other) in enumerate(zip(own_picks, child_picks, strict=True)):
                if own != other:
                    sentence = (
                        f"at turn {turn} stream {own} is picked here, "
                        f"and {other} in a process with PYTHONHASHSEED={seed}"
                    )
                    raise recording.broken(Law.SAME_IN_EVERY_PROCESS, sentence)


_ChildCall: TypeAlias = tuple[str, tuple[Any, ...], int]
"""Event as a child reads it: the method's name, its arguments, and a number of turns."""


def _child_work(candidate: Candidate, calls: list[list[_ChildCall]]) -> str:
    """Return the factory of the scheduler and the histories, pickled, as text."""
    reason = unpicklable_reason(candidate.maker)
    if reason is not None:
        raise NotCheckedError(reason)
    make = partial(new_scheduler, candidate.maker, turn_bytes=PACKET_BYTES, name=candidate.label)
    try:
        return base64.b64encode(pickle.dumps((make, calls))).decode()
    except Exception as error:
        reason = f"what makes it, or a signal, cannot be pickled: {error}"
        raise NotCheckedError(reason) from error


def _child_call(event: Event) -> _ChildCall:
    is_turn = event.call is Call.SERVE
    arguments = (event.n_bytes,) if is_turn else event.arguments
    return event.call.value, arguments, event.n_turns


def _picks_of(
    recording: RecordingScheduler, history: History
) -> tuple[list[int | None], RecordingScheduler]:
    picks: list[int | None] = []
    recording.play(history, on_pick=picks.append)
    return picks, recording


def _start_child(seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - this interpreter, and the program above
        [sys.executable, "-c", _CHILD_PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@checks(Law.WORK_CONSERVING)
def work_conserving(candidate: Candidate, budget: settings) -> None:
    """Check that a stream is picked after every event that leaves one active."""

    def check(history: History) -> None:
        recording = candidate.new_recording()

        def look() -> None:
            if recording.active and recording.pick() is None:
                active = ", ".join(map(str, recording.active))
                sentence = f"nobody is picked, and these have bytes to send: {active}"
                kept = "picks[-1] is not None"
                raise recording.broken(Law.WORK_CONSERVING, sentence, kept=kept)

        recording.play(history, after=look, on_pick=lambda _: look())

    search(
        check,
        candidate.histories_of(Law.WORK_CONSERVING, budget, leave_out=(Call.CHARGE,)),
        budget=budget,
    )


@checks(Law.PICKS_ONLY_READY)
def picks_only_ready(candidate: Candidate, budget: settings) -> None:
    """Check that the stream that is picked, after every event, is open and active."""

    def check(history: History) -> None:
        recording = candidate.new_recording()

        def look(picked: int | None) -> None:
            if picked is not None and picked not in recording.active:
                sentence = f"stream {picked!r} is picked, which {recording.state_of(picked)}"
                kept = f"picks[-1] in {[None, *recording.active]}"
                raise recording.broken(Law.PICKS_ONLY_READY, sentence, kept=kept)

        recording.play(history, on_pick=look, after=lambda: look(recording.pick()))

    search(
        check,
        candidate.histories_of(Law.PICKS_ONLY_READY, budget, leave_out=(Call.CHARGE,)),
        budget=budget,
    )


@checks(Law.EVERY_BYTE_ONCE)
def every_byte_once(candidate: Candidate, budget: settings) -> None:
    """Send responses as a server does, and check that each is sent to its end and no further.

    The number of bytes of an open event is the size of the response, which is ready at once.
    """

    def check(history: History) -> None:
        recording = candidate.new_recording()
        unsent_bytes: dict[int, int] = {}
        for event in history:
            if event.call is Call.SERVE:
                for _ in range(event.n_turns):
                    _send_packet(recording, unsent_bytes)
                continue
            recording.take(event)
            if event.call is Call.OPEN and event.stream_id >= 0:
                recording.take(Event(Call.ACTIVATE, event.stream_id))
                unsent_bytes[event.stream_id] = event.n_bytes
        while unsent_bytes:
            if _send_packet(recording, unsent_bytes) is None:
                rest = ", ".join(f"{n} bytes of {key}" for key, n in unsent_bytes.items())
                raise recording.broken(Law.EVERY_BYTE_ONCE, f"never sent: {rest}")
        # Nothing is left: any pick breaks the law now.
        _send_packet(recording, unsent_bytes)

    leave_out = (Call.UPDATE, Call.CHARGE, Call.CLOSE, Call.ACTIVATE, Call.DEACTIVATE)
    histories = candidate.histories_of(Law.EVERY_BYTE_ONCE, budget, leave_out=leave_out)
    search(check, histories, budget=budget)


def _send_packet(recording: RecordingScheduler, unsent_bytes: dict[int, int]) -> int | None:
    """Give one turn, and return its stream; a response of no bytes takes a turn, too."""
    picked = recording.pick()
    if picked is None:
        return None
    if picked not in unsent_bytes:
        sentence = f"stream {picked!r} is picked after its last byte was sent"
        if picked not in recording.signals:
            sentence = f"stream {picked!r} is picked, which {recording.state_of(picked)}"
        raise recording.broken(Law.EVERY_BYTE_ONCE, sentence)
    n_bytes = min(unsent_bytes[picked], PACKET_BYTES)
    unsent_bytes[picked] -= n_bytes
    recording.take(Event(Call.CHARGE, picked, n_bytes=n_bytes))
    if not unsent_bytes[picked]:
        del unsent_bytes[picked]
        recording.take(Event(Call.DEACTIVATE, picked))
    return picked


@checks(Law.PURE_PICK)
def pure_pick(candidate: Candidate, budget: settings) -> None:
    """Check that asking three times gives one answer, and does not change later ones."""

    def check(history: History) -> None:
        recording, unasked_recording = candidate.new_recording(), candidate.new_recording()
        unasked_picks: list[int | None] = []
        unasked_recording.play(history, on_pick=unasked_picks.append)
        expected = iter(unasked_picks)

        def look() -> None:
            first, second, third = recording.pick(), recording.pick(), recording.pick()
            if not first == second == third:
                sentence = f"asked three times in a row, it picks {first}, {second}, {third}"
                kept = "picks[-1] == picks[-2] == picks[-3]"
                raise recording.broken(Law.PURE_PICK, sentence, kept=kept)

        def compare(picked: int | None) -> None:
            unasked = next(expected)
            if picked != unasked:
                sentence = f"{picked} is picked; had nobody asked in between, it would be {unasked}"
                kept = f"picks[-1] == {unasked}"
                raise recording.broken(Law.PURE_PICK, sentence, kept=kept)
            look()

        recording.play(history, on_pick=compare, after=look)

    search(check, candidate.histories_of(Law.PURE_PICK, budget), budget=budget)


@checks(Law.DETERMINISTIC)
def deterministic(candidate: Candidate, budget: settings) -> None:
    """Check that two schedulers that play the same history side by side pick the same."""

    def check(history: History) -> None:
        one, other = candidate.new_recording(), candidate.new_recording()
        for event in history:
            if not _same_picks(one, other, event):
                sentence = "two schedulers with the same history pick differently"
                raise one.broken(Law.DETERMINISTIC, sentence)

    search(check, candidate.histories_of(Law.DETERMINISTIC, budget), budget=budget)


def _same_picks(one: RecordingScheduler, other: RecordingScheduler, event: Event) -> bool:
    """Return whether both pick the same in *event*, and after it."""
    picks: list[int | None] = []
    other_picks: list[int | None] = []
    one.play([event], on_pick=picks.append)
    other.play([event], on_pick=other_picks.append)
    return picks == other_picks and one.pick() == other.pick()


@checks(Law.SAME_IN_EVERY_PROCESS)
def same_in_every_process(candidate: Candidate, budget: settings) -> None:
    """Check that processes with other hash seeds pick the same."""
    histories = candidate.histories_of(Law.SAME_IN_EVERY_PROCESS, budget)
    check_every_process_picks_the_same(candidate, histories)


@checks(Law.NEVER_RAISES)
def never_raises(candidate: Candidate, budget: settings) -> None:
    """Check that no history raises an error, and that no call loops."""
    histories = candidate.histories_of(Law.NEVER_RAISES, budget)
    search(lambda history: candidate.new_recording().play(history), histories, budget=budget)


_FEW_STREAMS, _MANY_STREAMS = 100, 1000
"""Numbers of active streams for which the work of turns is compared."""
_N_TURNS = 20
"""Turns whose operations are counted, with few and with many streams."""
_MAX_WORK_GROWTH = 3
"""Largest factor of the work with many streams; a logarithm grows by 1.5."""
_N_CLOSED_STREAMS = (100, 600)
"""Numbers of closed streams for which the memory is compared."""
_MAX_OBJECTS_PER_STREAM = 0.25
"""Most objects left for each closed stream. Below one, they are slack of containers."""
_UNCOUNTED_TYPES = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
)


@checks(Law.FREES_MEMORY)
def frees_memory(candidate: Candidate, _budget: settings) -> None:
    """Check that no more objects are left after many closed streams than after few.

    Streams are opened and closed while the first stays active, as it may keep closed ones alive.
    """
    claims = [claim for claim in candidate.claims if isinstance(claim, FreesMemory)]
    keeps = max((claim.keeps for claim in claims), default=0)

    for signals in _signal_lists(candidate):
        # As many more in both as may be remembered, so that this memory is full in both.
        few, many = (n + keeps for n in _N_CLOSED_STREAMS)
        n_after_few = _n_objects_left(candidate, signals, few)
        n_after_many = _n_objects_left(candidate, signals, many)
        if n_after_many - n_after_few > _MAX_OBJECTS_PER_STREAM * (many - few):
            recording = candidate.new_recording()
            recording.play(_short_lived_streams(signals, 3))
            sentence = (
                f"it holds {n_after_many} objects after {many} streams were closed as below, "
                f"{n_after_few} after {few}"
            )
            raise recording.broken(Law.FREES_MEMORY, sentence)


def _n_objects_left(candidate: Candidate, signals: list[Any], n_streams: int) -> int:
    recording = candidate.new_recording()
    recording.play(_short_lived_streams(signals, n_streams))
    return reachable(recording.scheduler)


def _short_lived_streams(signals: list[Any], n_streams: int) -> History:
    """Return a history in which each stream but the first is closed after eight more are opened."""
    n_open = 8

    def signal(number: int) -> Any:
        return signals[number % len(signals)]

    events = [Event(Call.OPEN, 0, signal(0)), Event(Call.ACTIVATE, 0)]
    for number in range(1, n_streams + n_open + 1):
        if number <= n_streams:
            stream_id = STREAM_ID_STEP * number
            events += [
                Event(Call.OPEN, stream_id, signal(number)),
                Event(Call.ACTIVATE, stream_id),
                Event(Call.SERVE),
                Event(Call.UPDATE, stream_id, signal(number + 1)),
            ]
            if number % 3 == 0:
                events.append(Event(Call.DEACTIVATE, stream_id))
        if number > n_open:
            events.append(Event(Call.CLOSE, STREAM_ID_STEP * (number - n_open)))
    return valid_history(events)


def reachable(root: object) -> int:
    """Return the number of objects reachable from *root*, without classes, functions and modules.

    >>> reachable([[], []])
    3
    """
    seen_ids = {id(root)}
    unvisited = [root]
    while unvisited:
        for referent in gc.get_referents(unvisited.pop()):
            if id(referent) not in seen_ids and not isinstance(referent, _UNCOUNTED_TYPES):
                seen_ids.add(id(referent))
                unvisited.append(referent)
    return len(seen_ids)


@checks(Law.PICKLES)
def pickles(candidate: Candidate, budget: settings) -> None:
    """Check that a scheduler can be pickled at any time, and that its copy picks as it does."""
    scheduler = candidate.new()
    if (reason := unpicklable_reason(type(scheduler))) is not None:
        raise NotCheckedError(reason)

    def check(history: History) -> None:
        middle = len(history) // 2
        original = candidate.new_recording()
        original.play(history[:middle])
        twin = RecordingScheduler(
            _unpickled_copy(original), may_raise=Law.NEVER_RAISES in candidate.skip
        )
        # The recording is new, as only the scheduler was pickled.
        twin.signals, twin.active = {**original.signals}, {**original.active}
        for event in history[middle:]:
            if not _same_picks(original, twin, event):
                raise original.broken(Law.PICKLES, "the unpickled scheduler picks another stream")

    search(check, candidate.histories_of(Law.PICKLES, budget), budget=budget)


def _unpickled_copy(recording: RecordingScheduler) -> Scheduler:
    try:
        copy: Scheduler = pickle.loads(pickle.dumps(recording.scheduler))  # noqa: S301 - our own
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise recording.broken(Law.PICKLES, f"it cannot be pickled: {what}") from error
    return copy


@checks(Law.CHEAP_PICKS)
def cheap_picks(candidate: Candidate, _budget: settings) -> None:
    """Check that the work for a turn hardly grows with the number of active streams.

    The work is the number of bytecode instructions and comparisons of stream ids, from the second
    turn on, as the first may do what was postponed while streams joined. With ten times the
    streams, a logarithm grows by half, and a loop over all streams tenfold. Signals have no
    parents, so that trees are flat.
    """
    for signals in _signal_lists(candidate):
        few_work = _work_for_turns(candidate, signals, _FEW_STREAMS)
        many_work = _work_for_turns(candidate, signals, _MANY_STREAMS)
        if many_work > _MAX_WORK_GROWTH * few_work:
            recording = candidate.new_recording()
            recording.play(_all_active(signals, 2))
            sentence = (
                f"{_N_TURNS} turns take {few_work} operations with {_FEW_STREAMS} active streams, "
                f"and {many_work} with {_MANY_STREAMS}"
            )
            raise recording.broken(Law.CHEAP_PICKS, sentence)


def _signal_lists(candidate: Candidate) -> list[list[Any]]:
    """Return two lists of signals: one of each kind, and one of a single kind."""
    pool = candidate.pool()
    return [[*pool[:: len(pool) // 8 + 1]], [*pool[:1]]]


def _all_active(signals: list[Any], n_streams: int) -> Iterable[Event]:
    """Yield the events that open and activate this many streams, with counted ids."""
    for number in range(n_streams):
        stream_id = CountedId(STREAM_ID_STEP * number)
        signal = signals[number % len(signals)]
        yield from valid_history([Event(Call.OPEN, stream_id, _without_parent(signal))])
        yield Event(Call.ACTIVATE, stream_id)


def _without_parent(signal: Any) -> Any:
    """Return the signal without a parent, as the depth of a tree may cost work."""
    if isinstance(signal, H2Priority):
        return replace(signal, depends_on=None, exclusive=False)
    return signal


def _work_for_turns(candidate: Candidate, signals: list[Any], n_streams: int) -> int:
    recording = candidate.new_recording()
    recording.play(_all_active(signals, n_streams))
    scheduler = recording.scheduler

    def turns() -> None:
        for _ in range(_N_TURNS):
            picked = scheduler.pick()
            if picked in recording.active:
                scheduler.charge(picked, PACKET_BYTES)

    try:
        # Not counted: the first turn may do what was postponed, such as sorting all that joined.
        recording.turn()
        return operations_of(turns)
    except (Exception, SystemExit) as error:
        raise recording.raised(f"one of {_N_TURNS} turns", error) from error


def operations_of(work: Callable[[], object]) -> int:
    """Return how many bytecode instructions and comparisons of counted ids *work* takes.

    Of C code, only comparisons and hashes of ids count: `min` of ids does, a copy of a list of
    them does not.
    """
    n_before = CountedId.compared
    count = _instructions_monitored if sys.version_info >= (3, 12) else _instructions_traced
    return count(work) + CountedId.compared - n_before


def _instructions_traced(work: Callable[[], object]) -> int:
    """Return how many instructions *work* takes, under Python 3.11."""
    count = 0

    def count_one(frame: types.FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return count_one

    # A tracer of the tests, such as coverage or a debugger, goes on afterwards.
    previous_trace = sys.gettrace()
    sys.settrace(count_one)
    try:
        work()
    finally:
        sys.settrace(previous_trace)
    return count


def _instructions_monitored(work: Callable[[], object]) -> int:
    """Return how many instructions *work* takes, from Python 3.12 on.

    Tracing misses some instructions there.
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
