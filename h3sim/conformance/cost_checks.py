"""Checks of what a scheduler costs: memory, work for a turn; and whether it can be pickled."""

from __future__ import annotations

import gc
import pickle
import sys
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from h3sim.conformance.claims import FreesMemory
from h3sim.conformance.histories import PACKET_BYTES, Call, Event, Watched, valid_history
from h3sim.conformance.laws import Law, NotCheckedError, checks
from h3sim.conformance.processes import why_it_cannot_be_sent
from h3sim.conformance.search import for_all
from h3sim.signals import H2Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis import settings

    from h3sim.conformance.candidate import Candidate
    from h3sim.conformance.histories import History
    from h3sim.schedulers import Scheduler

__all__ = ["cheap_picks", "frees_memory", "operations_of", "pickles", "reachable"]

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

    for_all(check, _some(candidate), budget=budget, share=10)


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
        twin = Watched(_pickled(original), may_raise=Law.NEVER_RAISES in candidate.skip)
        twin.signals, twin.active = {**original.signals}, {**original.active}
        # What comes after is a history of its own, among whatever is open.
        opened = [Event(Call.OPEN, key, signal) for key, signal in original.signals.items()]
        # Ids are not used twice: what was closed before may not be opened after.
        gone = {event.stream_id for event in before} - set(original.signals)
        both = valid_history([*opened, *(e for e in after if e.stream_id not in gone)])
        for event in both[len(opened) :]:
            first: list[int | None] = []
            second: list[int | None] = []
            original.play([event], on_pick=first.append)
            twin.play([event], on_pick=second.append)
            if first != second or original.pick() != twin.pick():
                raise original.broken(Law.PICKLES, "the pickled scheduler picks another stream")

    for_all(check, candidate.scripts(), candidate.scripts(), budget=budget, share=2)


def _pickled(watched: Watched) -> Scheduler:
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

    for_all(check, _some(candidate), budget=budget, share=25)


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
    count = 0

    def count_one(frame: types.FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return count_one

    # Whoever traces the tests, coverage or a debugger, goes on behind this.
    before = sys.gettrace()
    compared = CountedId.compared
    sys.settrace(count_one)
    try:
        work()
    finally:
        sys.settrace(before)
    return count + CountedId.compared - compared


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
