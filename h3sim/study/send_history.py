"""Histories of a server in which a mechanism sends what a client got."""

from __future__ import annotations

import copyreg
import io
import pickle
from bisect import bisect_left
from collections import Counter, deque
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.constants import MAX_VARINT
from h3sim.schedulers import Retransmit, SupportsRequeue
from h3sim.signals import Eps
from h3sim.study.send_order import SendOrder, Step, StepKind

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from h3sim.schedulers import Scheduler
    from h3sim.study.identification import Mechanism


class SchedulerCall(NamedTuple):
    """One call of a scheduler in the history of a server."""

    method: str
    stream_id: int
    argument: Any = None


_MOST_REQUEUED = 50
"""Most acknowledgements that are tried for one pick: more streams than that rarely compete."""
_CALLS_PER_STATE = 24
"""A state of the scheduler is kept after so many calls."""
_MOST_EXCHANGED = 100
"""Most lost packets that may have exchanged what they carried: longer bursts are rare."""


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


class _LostFrame(NamedTuple):
    """Bytes of a stream that were lost, sent between packets *after* and *before*."""

    stream_id: int
    n_bytes: int
    after: int
    before: int


class LostBytes:
    """The bytes that a client's log places in lost packets, any of which may have carried any.

    A gap of a stream only tells what was lost between two packets. Each lost packet between them
    may have carried it, and what it was to carry by the log waits for a later one.
    """

    def __init__(self, order: SendOrder) -> None:
        """Prepare the frames of each lost packet."""
        lost = set(order.lost_packets)
        self._packets: deque[tuple[int, list[_LostFrame]]] = deque()
        last: dict[int, int] = {}
        waiting: dict[int, list[tuple[list[_LostFrame], int]]] = {}
        for step in order.steps:
            if step.kind not in (StepKind.SENT, StepKind.RESENT):
                continue
            stream_id = step.stream_id
            if step.number in lost and step.kind is StepKind.SENT:
                if not self._packets or self._packets[-1][0] != step.number:
                    self._packets.append((step.number, []))
                frames = self._packets[-1][1]
                frame = _LostFrame(stream_id, step.n_bytes, last.get(stream_id, -1), MAX_VARINT)
                waiting.setdefault(stream_id, []).append((frames, len(frames)))
                frames.append(frame)
            elif step.number not in lost:
                if step.kind is StepKind.SENT:
                    last[stream_id] = step.number
                for frames, index in waiting.pop(stream_id, ()):
                    frames[index] = frames[index]._replace(before=step.number)

    def take(
        self, can_send: Container[int], picks: Callable[[], int | None]
    ) -> Iterator[_LostFrame]:
        """Yield the frames of the next lost packet, those that are picked first if they may be.

        Of the others, each goes a packet later, so that they stay in the order of their deadlines.
        """
        number = self._packets[0][0]
        index = self._index(number, picks(), can_send)
        if index:
            for at in range(index, 0, -1):
                frames = self._packets[at][1]
                self._packets[at] = self._packets[at][0], self._packets[at - 1][1]
                self._packets[at - 1] = self._packets[at - 1][0], frames
        frames = self._packets.popleft()[1]
        while frames:
            pick = picks()
            at = next((i for i, each in enumerate(frames) if each.stream_id == pick), 0)
            yield frames.pop(at)

    def _index(self, number: int, pick: int | None, can_send: Container[int]) -> int:
        """Return which packet's frames may be in the next one, with the stream that is picked."""
        for index in range(min(len(self._packets), _MOST_EXCHANGED)):
            later, frames = self._packets[index]
            if any(each.stream_id == pick for each in frames):
                fits = all(each.after < number and each.stream_id in can_send for each in frames)
                return index if fits else 0
            if index + 1 < len(self._packets):
                later = self._packets[index + 1][0]
                if any(each.before <= later for each in frames):
                    return 0
        return 0


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
        self._lost = LostBytes(order)
        self._lost_numbers = frozenset(order.lost_packets)
        self._left = Counter[int]()
        """The bytes of each stream that are sent from here on."""
        for step in order.steps:
            if step.kind is StepKind.SENT:
                self._left[step.stream_id] += step.n_bytes
        self._left_in_log = self._left.copy()
        """The same if lost packets carried what the log places in them."""
        self._last_packet: dict[int, int] = {}
        """The last packet of each stream."""
        self._last_lost = -1

    def run(self) -> list[int | None]:
        """Return which stream the mechanism picks at each choice of the log."""
        predicted: list[int | None] = []
        for step in self._order.steps:
            self._close_until(step.at_ns)
            match step.kind:
                case StepKind.SENT if step.number in self._lost_numbers:
                    self._left_in_log[step.stream_id] -= step.n_bytes
                    if step.number != self._last_lost:
                        self._send_lost(step)
                case StepKind.SENT:
                    self._left_in_log[step.stream_id] -= step.n_bytes
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
            case StepKind.DEACTIVATE if self._left[stream_id] and not self._left_in_log[stream_id]:
                pass  # a later packet carried its last bytes
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
        """Keep the state of the scheduler now and then: a stream may turn out to have joined here.

        States between them are found by replaying the calls, which is faster than to keep all.
        """
        if not self._states or len(self.calls) >= self._states[-1][0] + _CALLS_PER_STATE:
            self._states.append((len(self.calls), _pickled(self._scheduler)))

    def _state_before(self, index: int) -> Scheduler:
        """Return the scheduler as it was before that call."""
        at = bisect_left(self._states, index + 1, key=itemgetter(0)) - 1
        start, pickled = self._states[at]
        scheduler: Scheduler = pickle.loads(pickled)  # noqa: S301 - as pickled above
        for call in self.calls[start:index]:
            self._apply(scheduler, call)
        return scheduler

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
        if not self._requested:
            self._states.clear()
        if stream_id in self._active:
            self._call("charge", stream_id, step.n_bytes)
            if not self._left[stream_id]:
                del self._active[stream_id]
                self._call("deactivate", stream_id)
        if self._requested:
            self._remember()
        return pick

    def _send_lost(self, step: Step) -> None:
        """Replay a lost packet: the mechanism decides what it carried, as far as the log allows."""
        self._last_lost = step.number
        ready = {*self._active, *self._requested}
        for frame in self._lost.take(ready, self._scheduler.pick):
            self._send(step._replace(stream_id=frame.stream_id, n_bytes=frame.n_bytes))

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
        low, high = requested, joined
        while low < high:
            middle = (low + high) // 2
            found = self._first_pick(stream_id, middle, joined)
            if found == len(self.calls):
                self._join_at(stream_id, middle, joined)
                return
            if found is None:  # not yet: it joined earlier
                high = middle
            else:
                low = middle + 1

    def _first_pick(self, stream_id: int, start: int, joined: int) -> int | None:
        """Return before which call a stream is next if it joins before the call *start*."""
        scheduler = self._state_before(start)
        scheduler.activate(stream_id)
        for index in range(start, len(self.calls)):
            call = self.calls[index]
            if index == joined:
                continue
            if call.method == "charge" and scheduler.pick() == stream_id:
                return index
            self._apply(scheduler, call)
        return len(self.calls) if scheduler.pick() == stream_id else None

    def _join_at(self, stream_id: int, start: int, joined: int) -> None:
        """Replay the calls from *start* on, with the stream in the scheduler."""
        self._scheduler = self._state_before(start)
        later = list(enumerate(self.calls[start:], start))
        self._states = [each for each in self._states if each[0] <= start]
        del self.calls[start:]
        self._call("activate", stream_id)
        for index, call in later:
            if index != joined:
                self._call(*call)
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
