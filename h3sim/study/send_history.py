"""Histories of a server in which a mechanism sends what a client got."""

from __future__ import annotations

import copyreg
import io
import pickle
from bisect import bisect_left
from collections import Counter, deque
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.schedulers import Retransmit, SupportsRequeue
from h3sim.signals import Eps
from h3sim.study.send_order import SendOrder, Step, StepKind

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler
    from h3sim.study.identification import Mechanism


class SchedulerCall(NamedTuple):
    """One call of a scheduler in the history of a server."""

    method: str
    stream_id: int
    argument: Any = None


_MOST_REQUEUED = 50
"""Most acknowledgements that are tried for one pick: more streams than that rarely compete."""


@cache
def _eps(urgency: int, incremental: bool) -> Eps:
    """Return a priority; cached, as states hold many of few."""
    return Eps(urgency=urgency, incremental=incremental)


class _Pickler(pickle.Pickler):
    """Pickles schedulers; dataclasses would take most of the time."""

    dispatch_table = {  # noqa: RUF012 - as pickle declares it
        **copyreg.dispatch_table,
        Eps: lambda signal: (_eps, (signal.urgency, signal.incremental)),
    }


def _pickled(scheduler: Scheduler) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer).dump(scheduler)
    return buffer.getvalue()


class HistorySearch:
    """A search for the history of a server in which a mechanism sends as a log shows.

    A client knows neither when a stream joined, between its request and its first byte, nor when
    acknowledgements requeued streams, within a round trip's variation. Each is chosen as late as
    the picks allow: a stream joins once it is sent, or earlier if it is not next then. The earlier
    it joins, the earlier it is picked, so bisection finds the time.
    """

    def __init__(
        self,
        order: SendOrder,
        mechanism: Mechanism,
        *,
        rejoins: bool = False,
        most_misses: int | None = None,
    ) -> None:
        """Prepare a search, which ends once it cannot explain more choices than *most_misses*."""
        self.calls: list[SchedulerCall] = []
        """The calls of the scheduler so far; those of `pick` are left out."""
        self._order = order
        self._mechanism = mechanism
        self._scheduler = mechanism.new(order.turn_bytes)
        self._can_requeue = isinstance(self._scheduler, SupportsRequeue)
        self._rejoins = rejoins
        self._misses_left = len(order.steps) if most_misses is None else most_misses
        self._waits_turn = mechanism.retransmit is Retransmit.TURN
        self._states: list[tuple[int, bytes]] = []
        """Earlier states of the scheduler, each with the number of calls before it."""
        self._requested: dict[int, int] = {}
        """Streams that have sent nothing, and the number of calls before their requests."""
        self._joined: dict[int, int] = {}
        """Those of them that were ready, and the number of calls before they joined."""
        self._begun: dict[int, None] = {}
        self._active: dict[int, None] = {}
        self._open: dict[int, None] = {}
        self._closings: deque[tuple[int, int]] = deque()
        self._touched: deque[tuple[int, int]] = deque()
        """Streams that are to be requeued, and until when."""
        self._left = Counter[int]()
        """The bytes of each stream that are sent from here on."""
        for step in order.steps:
            if step.kind is StepKind.SENT:
                self._left[step.stream_id] += step.n_bytes
        self._last_packet: dict[int, int] = {}
        """The last packet of each stream."""
        self._previous: int | None = None

    def run(self) -> list[int | None]:
        """Return which stream the mechanism picks at each choice of the log."""
        predicted: list[int | None] = []
        for step in self._order.steps:
            self._close_until(step.at_ns)
            match step.kind:
                case StepKind.SENT:
                    pick = self._send(step)
                    if step.is_choice:
                        predicted.append(pick)
                        self._misses_left -= pick != step.stream_id
                        if self._misses_left < 0:
                            break
                case StepKind.RESENT:
                    if step.is_choice:
                        predicted.append(~step.stream_id)
                    if self._waits_turn and step.stream_id in self._active:
                        self._call("charge", step.stream_id, step.n_bytes)
                case StepKind.OPEN | StepKind.UPDATE:
                    self._signal(step)
                case _:
                    self._change(step)
        return predicted

    def _call(self, method: str, stream_id: int, argument: Any = None) -> None:
        call = SchedulerCall(method, stream_id, argument)
        self.calls.append(call)
        self._apply(self._scheduler, call)

    def _apply(self, scheduler: Any, call: SchedulerCall) -> None:
        method, stream_id, argument = call
        if argument is not None:
            getattr(scheduler, method)(stream_id, argument)
        elif method != "requeue" or self._can_requeue:
            getattr(scheduler, method)(stream_id)
        else:
            scheduler.deactivate(stream_id)
            scheduler.activate(stream_id)

    def _close_until(self, at_ns: int) -> None:
        while self._closings and self._closings[0][0] < at_ns:
            stream_id = self._closings.popleft()[1]
            if self._open.pop(stream_id, 0) is None:
                self._call("close", stream_id)

    def _signal(self, step: Step) -> None:
        signal = self._mechanism.signal(step.signal)
        if step.kind is StepKind.OPEN:
            self._open[step.stream_id] = None
            self._call("open", step.stream_id, signal)
        elif step.stream_id in self._open and self._mechanism.heeds_updates:
            self._call("update", step.stream_id, signal)

    def _change(self, step: Step) -> None:
        stream_id = step.stream_id
        match step.kind:
            case StepKind.ACTIVATE if stream_id in self._begun:
                self._activate(stream_id)
            case StepKind.ACTIVATE:
                self._requested[stream_id] = len(self.calls)
                self._remember()
            case StepKind.READY if stream_id in self._requested and stream_id not in self._joined:
                self._joined[stream_id] = len(self.calls)
                self._activate(stream_id)
            case StepKind.DEACTIVATE:
                self._requested.pop(stream_id, None)
                self._joined.pop(stream_id, None)
                if self._active.pop(stream_id, 0) is None:
                    self._call("deactivate", stream_id)
            case StepKind.CLOSE:
                retention_ns = self._mechanism.kind.retention_ns
                self._closings.append((step.at_ns + retention_ns, stream_id))
            case StepKind.TOUCHED if self._mechanism.requeues and stream_id in self._active:
                self._touched.append((step.at_ns + self._order.ack_spread_ns, stream_id))

    def _activate(self, stream_id: int) -> None:
        self._active[stream_id] = None
        self._call("activate", stream_id)

    def _remember(self) -> None:
        """Keep the state of the scheduler: a stream may turn out to have joined here."""
        self._states.append((len(self.calls), _pickled(self._scheduler)))

    def _send(self, step: Step) -> int | None:
        """Replay bytes that were sent; return what is picked."""
        stream_id = step.stream_id
        while self._touched and self._touched[0][0] < step.at_ns:
            self._requeue_next()
        if stream_id in self._requested:
            self._join(stream_id)
        elif stream_id in self._begun and stream_id not in self._active:
            self._activate(stream_id)
        pick = self._scheduler.pick()
        while pick is not None and pick != stream_id and self._may_be_lost(pick, step.number):
            del self._active[pick]
            self._call("deactivate", pick)
            pick = self._scheduler.pick()
        if pick != stream_id and self._requeue_until(stream_id):
            pick = stream_id
        if pick != stream_id and self._rejoins:
            self._rejoin_until(stream_id)
        self._begun[stream_id] = None
        self._left[stream_id] -= step.n_bytes
        self._last_packet[stream_id] = step.number
        is_other = stream_id != self._previous
        if not self._requested:
            self._states.clear()
        elif is_other:
            self._remember()
        if stream_id in self._active:
            self._call("charge", stream_id, step.n_bytes)
        if self._requested and is_other:
            self._remember()
        self._previous = stream_id
        return pick

    def _may_be_lost(self, stream_id: int, number: int) -> bool:
        """Return whether all that is left of a stream may have been in packets that were lost."""
        last = self._last_packet.get(stream_id)
        if last is None or stream_id not in self._active:
            return False
        lost = self._order.lost_packets
        n_lost = bisect_left(lost, number) - bisect_left(lost, last)
        return self._left[stream_id] <= n_lost * self._order.packet_bytes

    # When a stream joined

    def _join(self, stream_id: int) -> None:
        """Activate a stream when it must join to be next now; now, if there is no such time."""
        requested = self._requested.pop(stream_id)
        joined = self._joined.pop(stream_id, None)
        if joined is None:
            joined = len(self.calls)
            self._activate(stream_id)
        if self._scheduler.pick() == stream_id:
            return
        states = [state for state in self._states if requested <= state[0] <= joined]
        low, high = 0, len(states)
        while low < high:
            middle = (low + high) // 2
            found = self._first_pick(stream_id, states[middle], joined)
            if found == len(self.calls):
                self._join_at(stream_id, states[middle], joined)
                return
            if found is None:  # not yet: it joined earlier
                high = middle
            else:
                low = middle + 1

    def _first_pick(self, stream_id: int, state: tuple[int, bytes], joined: int) -> int | None:
        """Return before which call a stream is next if it joins at that state."""
        start, pickled = state
        scheduler = pickle.loads(pickled)  # noqa: S301 - as pickled above
        scheduler.activate(stream_id)
        for index in range(start, len(self.calls)):
            call = self.calls[index]
            if index == joined:
                continue
            if call.method == "charge" and scheduler.pick() == stream_id:
                return index
            self._apply(scheduler, call)
        return len(self.calls) if scheduler.pick() == stream_id else None

    def _join_at(self, stream_id: int, state: tuple[int, bytes], joined: int) -> None:
        """Replay the calls from a state on, with the stream in the scheduler."""
        start, pickled = state
        later = list(enumerate(self.calls[start:], start))
        remembered = {index for index, _ in self._states if index > start}
        self._states = [each for each in self._states if each[0] <= start]
        del self.calls[start:]
        self._scheduler = pickle.loads(pickled)  # noqa: S301 - as pickled above
        self._call("activate", stream_id)
        for index, call in later:
            if index != joined:
                self._call(*call)
            if index + 1 in remembered:
                self._remember()
        for other, index in self._requested.items():
            self._requested[other] = index + (start < index <= joined)
        for other, index in self._joined.items():  # the index of a call, which moves from there on
            self._joined[other] = index + (start <= index <= joined)

    # When streams were requeued

    def _requeue_next(self) -> None:
        stream_id = self._touched.popleft()[1]
        if stream_id in self._active:
            self._call("requeue", stream_id)

    def _requeue_until(self, stream_id: int) -> bool:
        """Requeue what may be requeued by now until a stream is next; return whether it is."""
        if not self._touched:
            return False
        n_calls, pickled = len(self.calls), _pickled(self._scheduler)
        touched = self._touched.copy()
        for _ in range(min(len(touched), _MOST_REQUEUED)):
            self._requeue_next()
            if self._scheduler.pick() == stream_id:
                return True
        del self.calls[n_calls:]
        self._scheduler = pickle.loads(pickled)  # noqa: S301 - as pickled above
        self._touched = touched
        return False

    def _rejoin_until(self, stream_id: int) -> None:
        """Move picks behind their equals until a stream is next, or all were moved."""
        vain: dict[int, None] = {}
        pick = self._scheduler.pick()
        while pick is not None and pick != stream_id and pick not in vain:
            vain[pick] = None
            self._call("deactivate", pick)
            self._call("activate", pick)
            pick = self._scheduler.pick()
