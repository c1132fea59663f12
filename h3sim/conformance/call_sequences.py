"""Call sequences as values, and a scheduler that records its own."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law
from h3sim.errors import SchedulerError, raised_words
from h3sim.signals import H2Priority, StrictPriority
from h3sim.units import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.schedulers import Scheduler


_ANY_ERROR = (Exception, SystemExit)
"""A scheduler that exits must not take the tests along."""

PACKET_BYTES = 1400
"""Size of a quantum unless a history gives another."""


class Call(enum.Enum):
    """Calls that a scheduler can receive."""

    OPEN = "open"
    UPDATE = "update"
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    CLOSE = "close"
    CHARGE = "charge"
    """Bytes were sent from an active stream, whether it was picked or not."""
    SERVE = "serve"
    """A number of turns: each time the stream that is picked is charged."""


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a history; what its call has no use for does not count.

    >>> print(Event(Call.SERVE, n_turns=3))
    serve 3 turns of 1400 bytes
    """

    call: Call
    stream_id: int = 0
    signal: Any = None
    n_bytes: int = PACKET_BYTES
    n_turns: int = 1

    def __str__(self) -> str:
        if self.call is Call.SERVE:
            return f"serve {self.n_turns} turns of {self.n_bytes} bytes"
        return _line(self.call, *self.arguments)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Arguments of the scheduler's method of that name."""
        match self.call:
            case Call.OPEN | Call.UPDATE:
                return self.stream_id, self.signal
            case Call.CHARGE:
                return self.stream_id, self.n_bytes
            case _:
                return (self.stream_id,)


History: TypeAlias = tuple[Event, ...]


def _line(call: Call, *arguments: Any) -> str:
    return f"{call.value}({', '.join(map(repr, arguments))})"


def valid_history(events: Iterable[Event]) -> History:
    """Return *events* without those that the contract forbids where they stand.

    A stream is opened once, and used only while it is open; a placeholder has no bytes; only an
    active stream is charged. Dependence on itself becomes dependence on nothing.

    >>> [str(event) for event in valid_history([Event(Call.ACTIVATE, 4), Event(Call.CLOSE, 4)])]
    []
    """
    opened: set[int] = set()
    active: dict[int, bool] = {}
    valid: list[Event] = []
    for event in events:
        stream_id = event.stream_id
        match event.call:
            case Call.OPEN:
                if stream_id in opened:
                    continue
                opened.add(stream_id)
                active[stream_id] = False
            case Call.SERVE:
                pass
            case _ if stream_id not in active:
                continue
            case Call.ACTIVATE | Call.DEACTIVATE:
                if stream_id < 0:
                    continue
                active[stream_id] = event.call is Call.ACTIVATE
            case Call.CHARGE:
                if not active[stream_id]:
                    continue
            case Call.CLOSE:
                del active[stream_id]
        valid.append(about_another(event))
    return tuple(valid)


def about_another(event: Event) -> Event:
    """Return the event with a signal that does not depend on the stream that it is about."""
    signal = event.signal
    if isinstance(signal, H2Priority | StrictPriority) and signal.depends_on == event.stream_id:
        return replace(event, signal=replace(signal, depends_on=None))
    return event


def without(history: History, *calls: Call) -> History:
    """Return *history* without these calls; a history stays valid without updates and charges.

    >>> without((Event(Call.OPEN, 4), Event(Call.UPDATE, 4)), Call.UPDATE)[1:]
    ()
    """
    return tuple(event for event in history if event.call not in calls)


OnPick: TypeAlias = "Callable[[int | None], None]"


class RecordingScheduler:
    """A scheduler and a record of its calls: which streams are open and active, and each line.

    An exception from it, or an exit, breaks `Law.NEVER_RAISES`, whatever is being checked, and a
    pick that is no id of a stream `Law.PICKS_ONLY_READY`. Where the former is skipped it
    *may_raise*, and its history ends there: `HistoryEndedError`.
    """

    def __init__(self, scheduler: Scheduler, *, may_raise: bool = False) -> None:
        self.scheduler = scheduler
        self._may_raise = may_raise
        self.signals: dict[int, Any] = {}
        self.active: dict[int, None] = {}
        # As they were: lines are made of them only if a law is broken, which is seldom.
        self._done: list[tuple[str, Any]] = []

    def play(
        self,
        history: Iterable[Event],
        *,
        on_pick: OnPick | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Live through *history*; *on_pick* is called with each pick, *after* after each event.

        A turn in which nobody, or no active stream, is picked is lost.
        """
        for event in history:
            if event.call is Call.SERVE:
                for _ in range(event.n_turns):
                    self.turn(event.n_bytes, on_pick=on_pick)
            else:
                self.take(event)
            if after is not None:
                after()

    def turn(self, n_bytes: int = PACKET_BYTES, *, on_pick: OnPick | None = None) -> int | None:
        """Pick, call *on_pick*, charge, and return the stream that was picked."""
        picked = self.pick()
        if on_pick is not None:
            on_pick(picked)
        if picked is not None and picked in self.active:
            self.take(Event(Call.CHARGE, picked, n_bytes=n_bytes))
        return picked

    def pick(self) -> int | None:
        """Return what the scheduler picks."""
        try:
            picked = self.scheduler.pick()
        except _ANY_ERROR as error:
            self._done.append(("pick() -> ", "an error"))
            raise self.raised("pick()", error) from error
        # As a load has it: numpy's whole numbers are ids, and 4.0 is none.
        stream_id = picked if picked is None else as_integer(picked)
        if picked is not None and stream_id is None:
            self._done.append(("pick() -> ", repr(picked)))
            raise self.no_id(f"stream {picked!r} is picked, which is no id of a stream")
        self._done.append(("pick() -> ", stream_id))
        return stream_id

    def take(self, event: Event) -> None:
        """Pass on an event that is not a turn."""
        self._done.append(("", event))
        try:
            getattr(self.scheduler, event.call.value)(*event.arguments)
        except _ANY_ERROR as error:
            raise self.raised(str(event), error) from error
        stream_id = event.stream_id
        match event.call:
            case Call.OPEN | Call.UPDATE:
                self.signals[stream_id] = event.signal
            case Call.ACTIVATE:
                self.active[stream_id] = None
            case Call.DEACTIVATE:
                self.active.pop(stream_id, None)
            case Call.CLOSE:
                self.active.pop(stream_id, None)
                del self.signals[stream_id]

    def state_of(self, stream_id: int) -> str:
        """Return what a stream that should not be picked is."""
        return "has no data" if stream_id in self.signals else "is not open"

    def broken(self, law: Law, sentence: str) -> BrokenLawError:
        """Return the error to raise: *law* is broken, as *sentence* says."""
        return BrokenLawError(law, sentence, self.lines())

    def lines(self) -> list[str]:
        """Return what happened, a line each; equal lines in a row stand once with their number."""
        lines = []
        for line, group in groupby(self._call_lines()):
            count = sum(1 for _ in group)
            lines.append(line if count == 1 else f"{line}  ({count} times)")
        return lines

    def _call_lines(self) -> Iterable[str]:
        """Yield a line for each call; a turn is one line."""
        index, done = 0, self._done
        while index < len(done):
            words, value = done[index]
            index += 1
            charge = done[index][1] if words and index < len(done) else None
            is_turn = isinstance(charge, Event) and charge.call is Call.CHARGE
            if is_turn and charge is not None and charge.stream_id == value:
                index += 1
                yield f"{words}{value}; {charge}"
            else:
                yield f"{words}{value}"

    def no_id(self, sentence: str) -> Exception:
        """Return the error to raise where what is picked cannot be a stream."""
        return self.broken(Law.PICKS_ONLY_READY, sentence)

    def raised(self, what: str, error: BaseException) -> Exception:
        """Return the error to raise where *what* raised *error*."""
        # A driver's error says itself what the driver did.
        is_driver_error = isinstance(error, SchedulerError)
        sentence = str(error) if is_driver_error else f"{what} raised {raised_words(error)}"
        if self._may_raise:
            return HistoryEndedError(sentence)
        return self.broken(Law.NEVER_RAISES, sentence)
