"""Histories of a server in which a mechanism sends what a client got."""

from __future__ import annotations

import copyreg
import io
import pickle
from bisect import bisect_left
from collections import Counter, deque
from copy import copy
from functools import cache
from itertools import combinations, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.identification.send_order import SendOrder, Step, StepKind
from h3sim.qlog.lost_packets import MIN_FRAME_BYTES
from h3sim.schedulers import Retransmit, SupportsRequeue
from h3sim.signals import Eps, H2Priority
from h3sim.values.constants import MAX_VARINT

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from h3sim.identification.mechanism import Mechanism
    from h3sim.schedulers import Scheduler


class SchedulerCall(NamedTuple):
    """One call of a scheduler in the history of a server."""

    method: str
    stream_id: int
    argument: Any = None
    number: int = -1
    """The packet that a charge is for."""


_MAX_REQUEUED = 50
"""Acknowledgements that are tried for one pick: more streams than that rarely compete."""
_CALLS_PER_STATE = 24
"""Calls between states of the scheduler that are kept, to replay few calls at little memory."""
_MAX_STEPS_BACK = 400
"""Steps of the log after which a guess is not taken back any more."""
_MAX_GUESSES_PER_MISS = 3
"""Guesses that are taken back, one by one, to explain one pick."""
_MAX_REPAIRS = 30
"""Guesses that are taken back in a whole search: each costs a replay."""
_MAX_MOVED = 4
"""Streams whose joining is moved to explain one pick, besides those that it is about."""
_MAX_MOVES = 150
"""Times of joining that are tried in a whole search."""
_MAX_IN_VAIN = 5
"""Picks in a row that no other time of joining explains, until none is tried before another repair
succeeds: what is wrong with them is something else."""
_MAX_POSITIONS = 6
"""Times of joining that are tried for one stream."""
_STEPS_AHEAD = 60
"""Steps behind a pick by which the ways to explain it are compared."""
_CHANGING_ATTRIBUTES = (
    "_ready",
    "_moves",
    "_begun",
    "_active",
    "_open",
    "_closings",
    "_touched",
    "_left_in_log",
    "_sent_bytes",
    "_index",
    "_guessed",
    "picks",
    "n_missed",
    "n_rejoined",
)
"""Attributes that change during a search, apart from those that copy themselves."""
_MAX_STARTED = 3
"""Streams that are tried as those that may have begun in a lost packet."""
_MAX_EXCHANGED = 100
"""Lost packets that may have exchanged what they carried: longer bursts are rare."""


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


def pickled(scheduler: Scheduler) -> bytes:
    """Return the state of a scheduler."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(scheduler)
    return buffer.getvalue()


def unpickled(state: bytes) -> Scheduler:
    """Return a scheduler in that state, as `pickled` returned it."""
    scheduler: Scheduler = pickle.loads(state)  # noqa: S301 - as pickled above
    return scheduler


def requeue(scheduler: Any, stream_id: int, *, has_requeue: bool) -> None:
    """Requeue a stream; a scheduler without `requeue` has it leave and join.

    Whether it has one is asked once, as a protocol's check takes longer than a pick.
    """
    if has_requeue:
        scheduler.requeue(stream_id)
    else:
        scheduler.deactivate(stream_id)
        scheduler.activate(stream_id)


class LostFrame(NamedTuple):
    """Bytes of a stream in a lost packet, sent between packets *after* and *before*."""

    stream_id: int
    stop: int
    n_bytes: int
    after: int
    before: int = MAX_VARINT
    is_sure: bool = False
    """True if they must have been lost, as later bytes arrived before them."""


class LostPackets:
    """Packets that a client never got, and the bytes that they may have carried.

    A gap in a stream means that its bytes were lost between two packets, and any lost packet
    between these may have carried them. If the next bytes of a stream arrive at least a round trip
    later, a lost packet may also have carried them first.
    """

    def __init__(self, order: SendOrder) -> None:
        """Assign to each lost packet the bytes that the log infers, and index all arrivals."""
        self._numbers = order.lost_packets
        self.capacity_bytes = order.packet_bytes
        """The bytes of streams in a full packet."""
        self._spare_bytes = max(0, order.turn_bytes - order.packet_bytes)
        """By how much more some full packets carry: headers differ in length."""
        self._round_trip_ns = order.round_trip_ns
        self._position = 0
        index_of = {number: index for index, number in enumerate(self._numbers)}
        self._frames: list[list[LostFrame]] = [[] for _ in self._numbers]
        self._arrivals: dict[int, list[tuple[int, int]]] = {}
        """Ends of the bytes of each stream that have arrived, with the time of arrival in ns."""
        waiting: dict[int, list[tuple[int, int]]] = {}
        last: dict[int, int] = {}
        for step in order.steps:
            if step.kind not in (StepKind.SENT, StepKind.RESENT):
                continue
            stream_id, stop = step.stream_id, step.offset + step.n_bytes
            index = index_of.get(step.number)
            if index is None:
                self._arrive(step, waiting.get(stream_id, []))
                if step.kind is StepKind.SENT:
                    last[stream_id] = step.number
            elif step.kind is StepKind.SENT:
                frames = self._frames[index]
                waiting.setdefault(stream_id, []).append((index, len(frames)))
                frames.append(LostFrame(stream_id, stop, step.n_bytes, last.get(stream_id, -1)))

    def _arrive(self, step: Step, waiting: list[tuple[int, int]]) -> None:
        """Record an arrival of bytes, which bounds when earlier bytes of its stream were lost."""
        stop = step.offset + step.n_bytes
        arrivals = self._arrivals.setdefault(step.stream_id, [])
        if not arrivals or stop > arrivals[-1][0]:
            arrivals.append((stop, step.at_ns))
        for at, (index, position) in reversed(list(enumerate(waiting))):
            frame = self._frames[index][position]
            if stop > frame.stop - frame.n_bytes:
                is_sure = step.offset >= frame.stop
                frame = frame._replace(before=step.number, is_sure=is_sure)
                self._frames[index][position] = frame
                del waiting[at]

    def has_before(self, number: int) -> bool:
        """Return whether a packet before packet *number* was lost and not yet taken."""
        return self._position < len(self._numbers) and self._numbers[self._position] < number

    def take(self, number: int) -> Iterator[int]:
        """Yield the lost packets before packet *number* that were not yet yielded."""
        while self.has_before(number):
            yield self._numbers[self._position]
            self._position += 1

    def frames(
        self, can_send: Container[int], pick: int | None, sent_bytes: int, at_ns: int
    ) -> list[LostFrame]:
        """Return what the next lost packet carried: bytes of the stream that is picked, if it may.

        *sent_bytes* of that stream have been sent. Bytes that need not have been lost are left out,
        unless they are of this stream, or of one that has not joined.
        """
        position = self._position
        if pick is None:
            return list(self._frames[position])
        number = self._numbers[position]
        late = self.late_frame(pick, sent_bytes, at_ns, self.capacity_bytes)
        for index in range(position, min(len(self._frames), position + _MAX_EXCHANGED)):
            frames = self._frames[index]
            sure = [frame for frame in frames if frame.is_sure]
            if any(each.stream_id == pick and (each.is_sure or not late) for each in frames):
                if all(each.after < number and each.stream_id in can_send for each in frames):
                    self._move(index, frames)
                break
            if late and not sure and self._move(index, [late]):
                break
            n_room = self.capacity_bytes - sum(frame.n_bytes for frame in sure)
            if late and index == position and late.n_bytes <= n_room:
                return [late, *sure]
        return list(self._frames[position])

    def _move(self, index: int, frames: list[LostFrame]) -> bool:
        """Place frames in the next lost packet if later ones up to *index* may have the others.

        The most urgent ones go first; what need not have been lost is dropped.
        """
        position = self._position
        others = [
            (min(frame.before for frame in each), max(frame.after for frame in each), each)
            for each in self._frames[position:index]
            if any(frame.is_sure for frame in each)
        ]
        others.sort(key=itemgetter(0))
        exchanged: list[list[LostFrame]] = []
        for number in self._numbers[position + 1 : index + 1]:
            at = next((at for at, each in enumerate(others) if each[1] < number), None)
            if at is not None and others[at][0] <= number:
                return False
            exchanged.append([] if at is None else others.pop(at)[2])
        if others:
            return False
        self._frames[position : index + 1] = [frames, *exchanged]
        return True

    def late_frame(
        self, stream_id: int, sent_bytes: int, at_ns: int, most_bytes: int
    ) -> LostFrame | None:
        """Return the next bytes of a stream if they may have been in a packet lost by *at_ns*.

        They end where bytes end that arrive later, if the packet may have ended there: bytes that
        are sent again are in frames of their own.
        """
        arrivals = self._arrivals.get(stream_id, [])
        n_bytes = 0
        for stop, arrived_ns in arrivals[bisect_left(arrivals, (sent_bytes + 1, 0)) :]:
            if arrived_ns < at_ns + self._round_trip_ns or n_bytes >= most_bytes:
                break
            n_bytes = stop - sent_bytes
        if n_bytes > most_bytes + self._spare_bytes:
            n_bytes = most_bytes
        return LostFrame(stream_id, sent_bytes + n_bytes, n_bytes, -1) if n_bytes else None

    def copy(self) -> LostPackets:
        """Return a copy that can be changed."""
        copied = copy(self)
        copied._frames = self._frames.copy()
        return copied


class RecordedScheduler:
    """A scheduler with a record of its calls, so that a call can be inserted among earlier ones."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._has_requeue = isinstance(scheduler, SupportsRequeue)
        self.calls: list[SchedulerCall] = []
        """The calls so far; those of `pick` are left out."""
        self._states = [(0, pickled(scheduler))]
        """Earlier states of the scheduler, each with the number of calls before it."""

    def pick(self) -> int | None:
        """Return the stream that is next."""
        return self._scheduler.pick()

    def call(self, method: str, stream_id: int, argument: Any = None, number: int = -1) -> None:
        """Make a call, and record it."""
        call = SchedulerCall(method, stream_id, argument, number)
        self.calls.append(call)
        self._apply(self._scheduler, call)

    def _apply(self, scheduler: Any, call: SchedulerCall) -> None:
        method, stream_id, argument, _ = call
        if argument is not None:
            getattr(scheduler, method)(stream_id, argument)
        elif method == "requeue":
            requeue(scheduler, stream_id, has_requeue=self._has_requeue)
        else:
            getattr(scheduler, method)(stream_id)

    def save(self) -> tuple[list[SchedulerCall], list[tuple[int, bytes]], bytes]:
        """Return what `restore` goes back to."""
        return self.calls.copy(), self._states.copy(), pickled(self._scheduler)

    def restore(self, saved: tuple[list[SchedulerCall], list[tuple[int, bytes]], bytes]) -> None:
        """Go back to what was saved."""
        calls, states, state = saved
        self.calls, self._states = calls.copy(), states.copy()
        self._scheduler = unpickled(state)

    def mark(self) -> tuple[int, bytes]:
        """Return what `rewind` goes back to, as long as no state is remembered in between."""
        return len(self.calls), pickled(self._scheduler)

    def rewind(self, mark: tuple[int, bytes]) -> None:
        """Take back the calls since *mark*."""
        n_calls, state = mark
        del self.calls[n_calls:]
        self._scheduler = unpickled(state)

    def remember(self) -> None:
        """Keep the state of the scheduler now and then: a stream may turn out to have joined here.

        States between them are found by replaying the calls, which is faster than to keep all.
        """
        if not self._states or len(self.calls) >= self._states[-1][0] + _CALLS_PER_STATE:
            self._states.append((len(self.calls), pickled(self._scheduler)))

    def _state_before(self, index: int) -> Scheduler:
        """Return the scheduler as it was before that call."""
        at = bisect_left(self._states, index + 1, key=itemgetter(0)) - 1
        start, state = self._states[at]
        scheduler = unpickled(state)
        for call in self.calls[start:index]:
            self._apply(scheduler, call)
        return scheduler

    def first_pick(self, stream_id: int, start: int, joined: int) -> int | None:
        """Return before which call a stream is next if it joins before the call *start*.

        The call *joined*, by which it joined so far, is left out.
        """
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

    def insert_activation(self, stream_id: int, start: int, joined: int) -> None:
        """Replay the calls from *start* on after an activation, which the call *joined* was."""
        later = [*self.calls[start:joined], *self.calls[joined + 1 :]]
        self._scheduler = self._state_before(start)
        self._states = [each for each in self._states if each[0] <= start]
        del self.calls[start:]
        for call in (SchedulerCall("activate", stream_id), *later):
            self.call(*call)
            self.remember()

    def remove(self, index: int) -> None:
        """Replay the calls without that one."""
        later = self.calls[index + 1 :]
        self._scheduler = self._state_before(index)
        self._states = [each for each in self._states if each[0] <= index]
        del self.calls[index:]
        for call in later:
            self.call(*call)
            self.remember()


class JoinTimes:
    """Times at which streams joined: to a client, any between their requests and first bytes.

    Times are numbers of calls of the scheduler before them.
    """

    def __init__(self, scheduler: RecordedScheduler) -> None:
        self._scheduler = scheduler
        self.requested: dict[int, int] = {}
        """Streams that have sent nothing, and when they were requested."""
        self.joined: dict[int, int] = {}
        """Those of them that were surely ready, and when they joined for that."""
        self._ready: dict[int, int] = {}
        """Those that were ready, by the log's estimate, and when."""

    def copy(self) -> JoinTimes:
        """Return a copy that can be changed; both record calls of the same scheduler."""
        copied = JoinTimes(self._scheduler)
        copied.requested, copied.joined = self.requested.copy(), self.joined.copy()
        copied._ready = self._ready.copy()
        return copied

    def request(self, stream_id: int) -> None:
        """Note that a stream may join from here on."""
        self.requested[stream_id] = len(self._scheduler.calls)
        self._scheduler.remember()

    def ready(self, stream_id: int) -> None:
        """Note that a stream is ready by now, by the log's estimate."""
        self._ready[stream_id] = len(self._scheduler.calls)

    def join_ready(self, stream_id: int) -> None:
        """Activate a stream that has surely been ready for long enough."""
        self.joined[stream_id] = len(self._scheduler.calls)
        self._scheduler.call("activate", stream_id)

    def forget(self, stream_id: int) -> None:
        """Forget a stream that is deactivated."""
        self.requested.pop(stream_id, None)
        self.joined.pop(stream_id, None)

    def join(self, stream_id: int, start: int | None) -> None:
        """Activate a stream at that time, or now if there is none."""
        del self.requested[stream_id]
        self._ready.pop(stream_id, None)
        joined = self.joined.pop(stream_id, None)
        if start is None or start == joined:
            if joined is None:
                self._scheduler.call("activate", stream_id)
            return
        joined = len(self._scheduler.calls) if joined is None else joined
        self._scheduler.insert_activation(stream_id, start, joined)
        for times in (self.requested, self._ready):
            for other, at in times.items():
                times[other] = at + (start < at <= joined)
        for other, at in self.joined.items():  # the index of a call, which moves from there on
            self.joined[other] = at + (start <= at <= joined)

    def latest(self, stream_id: int) -> int | None:
        """Return when a stream must join at the latest to be next now; None if at no time."""
        joined = self.joined.get(stream_id, len(self._scheduler.calls))
        if stream_id in self.joined and self._scheduler.pick() == stream_id:
            return joined
        low, high = self.requested[stream_id], joined
        start = joined
        while True:
            found = self._scheduler.first_pick(stream_id, start, joined)
            if found == len(self._scheduler.calls):
                return start
            if found is None:  # not yet: it joined earlier
                high = start
            else:
                low = start + 1
            if low >= high:
                return None
            start = (low + high) // 2

    def near_ready(self, stream_id: int, start: int, moved: int | None) -> tuple[int, list[int]]:
        """Return when a stream joins that is next now if it joins at *start*, and other such times.

        It is *moved*, or the time at which the stream was ready by the log's estimate, or else the
        nearest one.
        """
        calls = self._scheduler.calls
        joined = self.joined.get(stream_id, len(calls))

        def is_late(at: int) -> bool:
            found = self._scheduler.first_pick(stream_id, at, joined)
            return found is None or found == len(calls)

        def is_too_late(at: int) -> bool:
            return self._scheduler.first_pick(stream_id, at, joined) is None

        first = bisect_left(range(start), True, self.requested[stream_id], key=is_late)
        last = bisect_left(range(joined + 1), True, start + 1, key=is_too_late) - 1
        after_charge = [at for at in range(first + 1, last) if calls[at - 1].method == "charge"]
        step = -(-len(after_charge) // (_MAX_POSITIONS - 2)) or 1
        positions = [*dict.fromkeys([first, *after_charge[::step], last])]
        estimate = self._ready.get(stream_id, last) if moved is None else moved
        chosen = min(max(estimate, first), last)
        return chosen, [at for at in positions if at != chosen]

    def postpone(self) -> Iterator[int]:
        """Take streams out that are next and joined only by the log's estimate; yield them."""
        pick = self._scheduler.pick()
        while pick is not None and pick in self.joined:
            index = self.joined.pop(pick)
            yield pick
            self._scheduler.remove(index)
            for times in (self.requested, self.joined, self._ready):
                for other, at in times.items():
                    times[other] = at - (at > index)
            pick = self._scheduler.pick()


class _Repair(NamedTuple):
    """Guesses from the step *start* on that may have been wrong.

    The *lost_packets* did not carry what was picked; or else the stream *moved_id* joined before
    the call *position*.
    """

    start: int
    lost_packets: tuple[int, ...] = ()
    moved_id: int | None = None
    position: int = -1


def _at_lost_packets(guessed: Sequence[tuple[int, int]]) -> list[_Repair]:
    """Return that one or two of the last lost packets did not carry what was picked."""
    guesses = guessed[: -_MAX_GUESSES_PER_MISS - 1 : -1]
    return [
        _Repair(min(start for _, start in chosen), tuple(number for number, _ in chosen))
        for n_chosen in (1, 2)
        for chosen in combinations(guesses, n_chosen)
    ]


def _at_joins(
    moves: Mapping[int, tuple[int, list[int]]], about: Iterable[int | None]
) -> list[_Repair]:
    """Return the other times at which the streams *about* or those begun last may have joined."""
    recent = sorted(moves, key=lambda key: -moves[key][0])[:_MAX_MOVED]
    return [
        _Repair(moves[stream_id][0], moved_id=stream_id, position=position)
        for stream_id in dict.fromkeys([*about, *recent])
        if stream_id is not None and stream_id in moves
        for position in moves[stream_id][1]
    ]


class HistorySearch:
    """A search for the history of a server in which a mechanism sends as a log shows.

    A client knows neither when a stream joined, between its request and its first byte, nor when
    acknowledgements requeued streams, within a round trip's variation. Each is chosen as late as
    the picks allow: a stream joins once it is sent, or earlier if it is not next then. The earlier
    it joins, the earlier it is picked, so bisection finds the time.

    Nor does a client know what lost packets carried. They carry what the mechanism picks, as far as
    the log allows (`LostPackets`). Where bytes need not have been lost, that is a guess, which is
    taken back if it leads to a pick that was not sent.
    """

    def __init__(
        self,
        order: SendOrder,
        mechanism: Mechanism,
        *,
        rejoins: bool = False,
        moves_joins: bool = False,
        most_misses: int | None = None,
    ) -> None:
        """Prepare a search, which ends once it cannot explain more choices than *most_misses*.

        In a tree the shares depend for long on when a stream joined, more exactly than its first
        pick shows. With *moves_joins* it joins when it was ready by the log's estimate, as far as
        that pick allows, and is moved if a later pick was not sent.
        """
        self._order = order
        self._mechanism = mechanism
        self._scheduler = RecordedScheduler(mechanism.new(order.turn_bytes))
        self._rejoins = rejoins
        self._moves_joins = moves_joins
        # Where trees are compared with other mechanisms, all have the same help.
        signals = order.signals.values()
        self._postpones = moves_joins or any(isinstance(each, H2Priority) for each in signals)
        self._most_misses = len(order.steps) if most_misses is None else most_misses
        self._waits_turn = mechanism.retransmit is Retransmit.TURN
        self._joins = JoinTimes(self._scheduler)
        self._ready: deque[tuple[int, int]] = deque()
        """Streams that are to join if they are not sent before, and when."""
        self._moves: dict[int, tuple[int, list[int]]] = {}
        """Streams that joined, the steps of their first bytes, and the other times for that."""
        self._moved: dict[int, int] = {}
        """Streams that join at another time, and the number of calls before that."""
        self._begun: dict[int, None] = {}
        self._active: dict[int, None] = {}
        self._open: dict[int, None] = {}
        self._closings: deque[tuple[int, int]] = deque()
        self._touched: deque[Step] = deque()
        """The steps by which streams are to be requeued, sooner or later."""
        self._lost = LostPackets(order)
        self._lost_numbers = frozenset(order.lost_packets)
        self._end = Counter[int]()
        """The length of each stream."""
        self._left_in_log = Counter[int]()
        """The bytes of each stream that the log has from here on."""
        for step in order.steps:
            if step.kind is StepKind.SENT:
                self._left_in_log[step.stream_id] += step.n_bytes
                stop = step.offset + step.n_bytes
                self._end[step.stream_id] = max(self._end[step.stream_id], stop)
        self._sent_bytes = Counter[int]()
        """The bytes of each stream that were sent so far."""
        self._index = 0
        """The next step."""
        self.picks: list[int | None] = []
        """Picks of the mechanism at the choices so far."""
        self.n_missed = 0
        """The choices so far at which something else was picked."""
        self.n_rejoined = 0
        """The streams so far that went behind their equals for no reason."""
        self._guessed: list[tuple[int, int]] = []
        """Lost packets that need not have carried what was picked, and the steps at them."""
        self._kept: set[int] = set()
        """Those of them that did not carry it."""
        self._points: dict[int, dict[str, Any]] = {}
        """Copies of all that changes, before the steps at lost packets."""
        self._repairs_left = _MAX_REPAIRS
        self._moves_left = _MAX_MOVES
        self._n_in_vain = 0
        """The picks in a row that no repair explained."""

    @property
    def calls(self) -> list[SchedulerCall]:
        """The calls of the scheduler so far; those of `pick` are left out."""
        return self._scheduler.calls

    def run(self) -> list[int | None]:
        """Return which stream the mechanism picks at each choice of the log."""
        while self._index < len(self._order.steps) and self.n_missed <= self._most_misses:
            index, n_missed = self._index, self.n_missed
            self._advance()
            if self.n_missed > n_missed:
                self._repair(index, n_missed)
        return self.picks

    def _advance(self) -> None:
        """Replay the next step of the log."""
        step = self._order.steps[self._index]
        joins = self._moves_joins and step.stream_id in self._joins.requested
        if self._lost.has_before(step.number + 1) or (joins and step.kind is StepKind.SENT):
            self._points[self._index] = self._copies()
        self._take(step)
        self._index += 1

    def _take(self, step: Step) -> None:
        """Replay a step of the log."""
        self._close_until(step.at_ns)
        self._ready_until(step.at_ns)
        match step.kind:
            case StepKind.SENT | StepKind.RESENT:
                pick = self._replay(step)
                if step.is_choice:
                    self.picks.append(pick)
                    sent = step.stream_id if step.kind is StepKind.SENT else ~step.stream_id
                    self.n_missed += pick != sent
            case StepKind.OPEN | StepKind.UPDATE:
                self._signal(step)
            case _:
                self._change(step)

    # Choices that are taken back

    def _copies(self) -> dict[str, Any]:
        """Return copies of all that changes."""
        copies = {name: copy(getattr(self, name)) for name in _CHANGING_ATTRIBUTES}
        copies |= {"_lost": self._lost.copy(), "_joins": self._joins.copy()}
        return {**copies, "_scheduler": self._scheduler.save()}

    def _restore(self, copies: dict[str, Any]) -> None:
        """Continue from what was copied."""
        for name in _CHANGING_ATTRIBUTES:
            setattr(self, name, copy(copies[name]))
        self._lost, self._joins = copies["_lost"].copy(), copies["_joins"].copy()
        self._scheduler.restore(copies["_scheduler"])

    def _repair(self, index: int, n_missed: int) -> None:
        """Take back a guess before the step at *index* if that leaves only *n_missed* misses.

        The first such guess at lost packets is taken, but of streams that joined the one with which
        most of the next picks are right.
        """
        repairs = [each for each in self._repairs(index) if index - each.start <= _MAX_STEPS_BACK]
        if not repairs:
            return
        missed, points = self._copies(), self._points
        best, furthest = None, index
        for repair in repairs:
            self._repairs_left -= repair.moved_id is None
            self._moves_left -= repair.moved_id is not None
            self._points = points.copy()
            before = self._begin(repair)
            reached = self._reached(index, n_missed)
            if reached > furthest:
                best, furthest = repair, reached
            self._kept, self._moved = before
            if repair.moved_id is None and best is not None:
                break
        self._points = points
        self._n_in_vain = self._n_in_vain + 1 if best is None else 0
        if best is None:
            self._restore(missed)
            return
        self._begin(best)
        while self._index <= index:
            self._advance()

    def _repairs(self, index: int) -> list[_Repair]:
        """Return what may be done in order to explain the pick at the step *index*."""
        repairs = _at_lost_packets(self._guessed)[: self._repairs_left]
        if self._moves_joins and self._n_in_vain < _MAX_IN_VAIN:
            about = (self.picks[-1], self._order.steps[index].stream_id)
            repairs += _at_joins(self._moves, about)[: self._moves_left]
        return repairs

    def _begin(self, repair: _Repair) -> tuple[set[int], dict[int, int]]:
        """Go back to a guess, and guess something else; return what was guessed before."""
        before = self._kept.copy(), self._moved.copy()
        self._restore(self._points[repair.start])
        self._kept |= {*repair.lost_packets}
        if repair.moved_id is not None:
            self._moved[repair.moved_id] = repair.position
        return before

    def _reached(self, index: int, n_missed: int) -> int:
        """Return the first step at which more choices are missed, or one behind *index*."""
        last = min(index + _STEPS_AHEAD, len(self._order.steps) - 1) if self._moves_joins else index
        while self._index <= last:
            self._advance()
            if self.n_missed > n_missed:
                return self._index - 1
        return self._index

    def _ready_until(self, at_ns: int) -> None:
        """Activate streams that have surely been ready for long enough."""
        while self._ready and self._ready[0][0] <= at_ns:
            stream_id = self._ready.popleft()[1]
            if stream_id in self._joins.requested and stream_id not in self._joins.joined:
                self._joins.join_ready(stream_id)
                self._active[stream_id] = None

    def _close_until(self, at_ns: int) -> None:
        while self._closings and self._closings[0][0] < at_ns:
            stream_id = self._closings.popleft()[1]
            if self._open.pop(stream_id, 0) is None:
                self._scheduler.call("close", stream_id)

    def _signal(self, step: Step) -> None:
        signal = self._mechanism.signal(step.signal)
        if step.kind is StepKind.OPEN:
            self._open[step.stream_id] = None
            self._scheduler.call("open", step.stream_id, signal)
            if self._left_in_log[step.stream_id]:
                self._joins.request(step.stream_id)  # it may join at once, whenever the log has it
        elif step.stream_id in self._open and self._mechanism.heeds_updates:
            self._scheduler.call("update", step.stream_id, signal)

    def _change(self, step: Step) -> None:
        stream_id = step.stream_id
        match step.kind:
            case StepKind.ACTIVATE if stream_id in self._begun:
                self._activate(stream_id)
            case StepKind.ACTIVATE if stream_id not in self._joins.requested:
                self._joins.request(stream_id)
            case StepKind.READY if stream_id in self._joins.requested:
                self._ready.append((step.at_ns + self._order.ready_spread_ns, stream_id))
                self._joins.ready(stream_id)
            case StepKind.DEACTIVATE if not self._left_in_log[stream_id]:
                pass  # it is deactivated once its last bytes are sent, which may be later
            case StepKind.DEACTIVATE:
                self._joins.forget(stream_id)
                if self._active.pop(stream_id, 0) is None:
                    self._scheduler.call("deactivate", stream_id)
            case StepKind.CLOSE:
                retention_ns = self._mechanism.kind.retention_ns
                self._closings.append((step.at_ns + retention_ns, stream_id))
            case StepKind.TOUCHED if self._mechanism.requeues and stream_id in self._active:
                self._touched.append(step)

    def _activate(self, stream_id: int) -> None:
        self._active[stream_id] = None
        self._scheduler.call("activate", stream_id)

    def _send(self, step: Step) -> int | None:
        """Replay bytes that were sent; return what is picked."""
        stream_id = step.stream_id
        self._requeue_due(step)
        if stream_id in self._joins.requested:
            self._join(stream_id)
        elif stream_id in self._begun and stream_id not in self._active:
            self._activate(stream_id)
        pick = self._scheduler.pick()
        if pick != stream_id and self._requeue_until(stream_id):
            pick = stream_id
        if pick != stream_id and self._postpones and step.number not in self._lost_numbers:
            for postponed in self._joins.postpone():
                del self._active[postponed]
        if pick != stream_id and self._rejoins and step.number not in self._lost_numbers:
            self._rejoin_until(stream_id)
        self._begun[stream_id] = None
        self._sent_bytes[stream_id] = max(self._sent_bytes[stream_id], step.offset + step.n_bytes)
        if stream_id in self._active:
            self._scheduler.call("charge", stream_id, step.n_bytes, step.number)
            if self._sent_bytes[stream_id] >= self._end[stream_id]:
                del self._active[stream_id]
                self._scheduler.call("deactivate", stream_id)
        if self._joins.requested:
            self._scheduler.remember()
        return pick

    def _replay(self, step: Step) -> int | None:
        """Replay bytes that a log shows; return what is picked, `~stream_id` for lost bytes."""
        for number in self._lost.take(step.number + 1):
            self._send_lost(step._replace(number=number))
        if step.kind is StepKind.SENT:
            self._left_in_log[step.stream_id] -= step.n_bytes
        if step.number in self._lost_numbers:
            return None
        stream_id, stop = step.stream_id, step.offset + step.n_bytes
        n_bytes = stop - max(step.offset, self._sent_bytes[stream_id])
        if n_bytes > 0:
            return self._send(step._replace(n_bytes=n_bytes, offset=stop - n_bytes))
        if self._waits_turn and stream_id in self._active:
            self._requeue_due(step)
            self._scheduler.call("charge", stream_id, step.n_bytes, step.number)
        return stream_id if step.kind is StepKind.SENT else ~stream_id

    def _send_lost(self, step: Step) -> None:
        """Replay a lost packet: the mechanism decides what it carried, as far as the log allows."""
        is_kept = step.number in self._kept
        pick = None if is_kept else self._scheduler.pick()
        can_send = {*self._active, *self._joins.requested}
        sent_bytes = 0 if pick is None else self._sent_bytes[pick]
        frames = self._lost.frames(can_send, pick, sent_bytes, step.at_ns)
        if any(frame.stream_id == pick and not frame.is_sure for frame in frames):
            self._guessed.append((step.number, self._index))
        room_bytes, is_full = self._lost.capacity_bytes, False
        while frames:
            pick = self._scheduler.pick()
            at = next((at for at, each in enumerate(frames) if each.stream_id == pick), 0)
            frame = frames.pop(at)
            if frame.is_sure or self._can_be_next(frame.stream_id):
                room_bytes -= self._send_frame(step, frame)
                is_full = self._sent_bytes[frame.stream_id] < self._end[frame.stream_id]
        # Where a stream ends, the next one follows in the same packet.
        while not (is_kept or is_full) and room_bytes >= MIN_FRAME_BYTES:
            late = self._late_frame(step.at_ns, room_bytes)
            if late is None:
                break
            room_bytes -= self._send_frame(step, late)

    def _send_frame(self, step: Step, frame: LostFrame) -> int:
        """Replay what is new of a frame in a lost packet; return its bytes."""
        n_bytes = min(frame.n_bytes, frame.stop - self._sent_bytes[frame.stream_id])
        if n_bytes > 0:
            offset = frame.stop - n_bytes
            sent = step._replace(stream_id=frame.stream_id, n_bytes=n_bytes, offset=offset)
            self._send(sent)
        return max(0, n_bytes)

    def _late_frame(self, at_ns: int, room_bytes: int) -> LostFrame | None:
        """Return the bytes of what is next that a packet may have carried which was lost then."""
        pick = self._scheduler.pick()
        if pick is not None:
            return self._lost.late_frame(pick, self._sent_bytes[pick], at_ns, room_bytes)
        frames = (self._lost.late_frame(key, 0, at_ns, room_bytes) for key in self._joins.requested)
        late = islice((frame for frame in frames if frame is not None), _MAX_STARTED)
        return next((frame for frame in late if self._can_be_next(frame.stream_id)), None)

    def _can_be_next(self, stream_id: int) -> bool:
        """Return whether a stream is next, or is if it joined at the right time."""
        is_requested = stream_id in self._joins.requested
        return self._scheduler.pick() == stream_id or (
            is_requested and self._joins.latest(stream_id) is not None
        )

    def _join(self, stream_id: int) -> None:
        """Activate a stream when it must join to be next now; now, if there is no such time."""
        start = self._joins.latest(stream_id)
        if start is not None and self._moves_joins:
            moved = self._moved.get(stream_id)
            start, others = self._joins.near_ready(stream_id, start, moved)
            self._moves[stream_id] = self._index, others
        self._joins.join(stream_id, start)
        self._active[stream_id] = None

    # When streams were requeued

    def _requeue_due(self, step: Step) -> None:
        """Requeue the streams that were requeued before these bytes."""
        while self._touched and self._is_due(self._touched[0], step):
            self._requeue_next()

    def _is_due(self, touched: Step, step: Step) -> bool:
        """Return whether an acknowledgement must have come before the bytes of *step*."""
        if touched.number >= 0:
            return touched.number <= step.number
        return touched.at_ns + self._order.ack_spread_ns < step.at_ns

    def _requeue_next(self) -> None:
        stream_id = self._touched.popleft().stream_id
        if stream_id in self._active:
            self._scheduler.call("requeue", stream_id)

    def _requeue_until(self, stream_id: int) -> bool:
        """Requeue what may be requeued by now until a stream is next; return whether it is."""
        if not self._touched:
            return False
        mark = self._scheduler.mark()
        touched = self._touched.copy()
        for _ in range(min(len(touched), _MAX_REQUEUED)):
            self._requeue_next()
            if self._scheduler.pick() == stream_id:
                return True
        self._scheduler.rewind(mark)
        self._touched = touched
        return False

    def _rejoin_until(self, stream_id: int) -> None:
        """Move picks behind their equals until a stream is next, or all were moved."""
        moved: dict[int, None] = {}
        pick = self._scheduler.pick()
        while pick is not None and pick != stream_id and pick not in moved:
            moved[pick] = None
            self.n_rejoined += 1
            self._scheduler.call("deactivate", pick)
            self._scheduler.call("activate", pick)
            pick = self._scheduler.pick()
