"""Call sequences as values, and a scheduler that records its own."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from h3sim.conformance.laws import BrokenLawError, HistoryEndedError, Law
from h3sim.schedulers import DriverScheduler
from h3sim.signals import H2Priority, StrictPriority
from h3sim.values.errors import SchedulerError, raised_words
from h3sim.values.units import as_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from h3sim.schedulers import Scheduler


class SchedulerLoopsError(BaseException):
    """A call of a scheduler takes too long. No `Exception`, which the scheduler might catch."""

    def __str__(self) -> str:
        return "it does not return"


_SCHEDULER_ERRORS = (Exception, SystemExit, SchedulerLoopsError)
"""Errors of a scheduler that are caught: if it exits, the tests must go on."""

PACKET_BYTES = 1400
"""Bytes that are charged for a turn unless an event has another number."""


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
    """A number of turns, in each of which the stream that is picked is charged."""


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a history; fields that its call does not use are ignored.

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
        return _call_line(self.call, *self.arguments)

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


def _call_line(call: Call, *arguments: Any) -> str:
    return f"{call.value}({', '.join(map(repr, arguments))})"


def valid_history(events: Iterable[Event]) -> History:
    """Return *events* without those that the contract forbids at their place.

    A stream is opened once, and used only while it is open. A placeholder has no bytes, and only
    an active stream is charged. A stream that depends on itself becomes one without a parent.

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
        valid.append(without_self_dependency(event))
    return tuple(valid)


def without_self_dependency(event: Event) -> Event:
    """Return the event, and if its stream depends on itself, without that dependency."""
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
    """A scheduler with a record of its calls and of the streams that are open and active.

    Whichever law is checked, an exception or exit of the scheduler breaks `Law.NEVER_RAISES`, and
    a pick that is no stream id breaks `Law.PICKS_ONLY_READY`. A scheduler for which the former is
    skipped *may_raise*, and its history ends there, with a `HistoryEndedError`.
    """

    current_call: ClassVar[dict[int, tuple[int, int] | None]] = {}
    """The call that each thread is in, as the record and the number of its line."""

    def __init__(self, scheduler: Scheduler, *, may_raise: bool = False) -> None:
        self.scheduler = scheduler
        self._thread_id = threading.get_ident()
        self._may_raise = may_raise
        self.signals: dict[int, Any] = {}  # of the open streams, by id
        self.active: dict[int, None] = {}  # active streams in the order of activation
        # Words and value of each line; text is made of them only if a law is broken.
        self._calls: list[tuple[str, Any]] = []
        self.n_picks = 0

    def play(
        self,
        history: Iterable[Event],
        *,
        on_pick: OnPick | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Play *history*, and call *on_pick* with each pick, and *after* after each event.

        A turn in which no active stream is picked is lost.
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
        __tracebackhide__ = True
        self.current_call[self._thread_id] = (id(self), len(self._calls))
        try:
            picked = self.scheduler.pick()
        except _SCHEDULER_ERRORS as error:
            self._calls.append(("pick() -> ", "an error"))
            raise self.raised("pick()", error) from error
        finally:
            self.current_call[self._thread_id] = None
        # As in a load, integers of numpy are ids, and 4.0 is not.
        stream_id = picked if picked is None else as_integer(picked)
        if picked is not None and stream_id is None:
            self._calls.append(("pick() -> ", repr(picked)))
            raise self.invalid_pick(f"stream {picked!r} is picked, which is no id of a stream")
        self._calls.append(("pick() -> ", stream_id))
        self.n_picks += 1
        return stream_id

    def forget_pick(self) -> None:
        """Remove the last call from the record, a pick that only compares."""
        self._calls.pop()
        self.n_picks -= 1

    def take(self, event: Event) -> None:
        """Pass on an event that is not a turn."""
        __tracebackhide__ = True
        self._calls.append(("", event))
        self.current_call[self._thread_id] = (id(self), len(self._calls))
        try:
            getattr(self.scheduler, event.call.value)(*event.arguments)
        except _SCHEDULER_ERRORS as error:
            raise self.raised(str(event), error) from error
        finally:
            self.current_call[self._thread_id] = None
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
        """Describe why a stream should not be picked."""
        if stream_id in self.signals:
            return "has no data"
        opened = [value for _, value in self._calls if isinstance(value, Event)]
        if any(each.call is Call.OPEN and each.stream_id == stream_id for each in opened):
            return "is not open"
        is_driver = isinstance(self.scheduler, DriverScheduler)
        return "was never opened since the reset" if is_driver else "was never opened"

    def broken(self, law: Law, sentence: str, *, kept: str = "") -> BrokenLawError:
        """Return the error that reports that *law* is broken, as *sentence* says.

        *kept* is what the law demands of `picks`, all picks so far, as a Python expression.
        """
        return BrokenLawError(law, sentence, self.lines(), kept)

    def lines(self) -> list[str]:
        """Return a line for each call or turn; equal lines in a row are merged and counted."""
        lines = []
        for line, group in groupby(self._call_lines()):
            count = sum(1 for _ in group)
            lines.append(line if count == 1 else f"{line}  ({count} times)")
        return lines

    def _call_lines(self) -> Iterable[str]:
        """Yield a line for each call; a pick with the charge of the same stream is one line."""
        calls = self._calls
        index = 0
        while index < len(calls):
            words, value = calls[index]
            index += 1
            line = f"{words}{value}"
            if words and index < len(calls):  # a pick, and what comes after it
                _, event = calls[index]
                is_charge = isinstance(event, Event) and event.call is Call.CHARGE
                if is_charge and event.stream_id == value:
                    index += 1
                    line += f"; {event}"
            yield line

    def invalid_pick(self, sentence: str) -> Exception:
        """Return the error to raise if what is picked is no stream id."""
        return self.broken(Law.PICKS_ONLY_READY, sentence)

    def raised(self, what: str, error: BaseException) -> Exception:
        """Return the error to raise when the call *what* raised *error*."""
        # The error of a driver tells by itself what the driver did.
        is_driver_error = isinstance(error, SchedulerError)
        sentence = str(error) if is_driver_error else f"{what} raised {raised_words(error)}"
        if isinstance(error, SchedulerLoopsError):
            return self.broken(Law.NEVER_RAISES, f"{what} does not return")
        if self._may_raise:
            return HistoryEndedError(sentence)
        return self.broken(Law.NEVER_RAISES, sentence)
