"""The SimPy environment of a load: calls at an instant in a stated order, and link handles."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Generator
from heapq import heappop, heappush
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from simpy.core import Environment, StopSimulation

from h3sim.values.errors import InputError, NetworkError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import simpy

    from h3sim.transport.link import ChangingLink


_MAX_PROCESS_EVENTS: Final = 20_000_000
"""The limit of events of processes; one that has more may loop without passing time."""


class EventPriority(enum.IntEnum):
    """The order of events at the same instant; equal ones run as they were scheduled."""

    DELIVERY = 0
    """Arrival of a packet at the client."""
    REQUEST = 1
    """A request by the client."""
    ARRIVAL = 2
    """Arrival of a request at the server."""
    RESPONSE = 3
    """Start of a response."""
    CLOSE = 4
    """Removal of a stream from the scheduler."""
    SEND = 5
    """An opportunity for the server to send."""
    PROCESS = 6
    """A process next to the load (SimPy's urgent events; normal ones have the next value)."""


Call: TypeAlias = "Callable[[Any, int], None]"
"""A scheduled call: its arguments are the value it was scheduled with, and the time."""
Process: TypeAlias = "Callable[[LoadEnvironment], Generator[simpy.Event, Any, Any]]"
"""A process next to a load: a SimPy process function."""

_BEFORE_ALL_EVENTS: Final = -1
"""A rank before all others at an instant."""


class LoadEnvironment(Environment):
    """The clock, in nanoseconds from 0, and the event queue.

    A load schedules calls. A process schedules events as in any SimPy model
    (`yield env.timeout(ms(5))`); they run after the load's events of the same instant, and their
    delays are integer nanoseconds.

    >>> env = LoadEnvironment()
    >>> log = []
    >>> note = lambda value, now_ns: log.append((now_ns, value))
    >>> env.after(5, EventPriority.SEND, note, "send")
    >>> env.after(5, EventPriority.DELIVERY, note, "arrive")
    >>> env.after(9, EventPriority.SEND, lambda value, now_ns: env.stop(), None)
    >>> env.run_load()
    True
    >>> log
    [(5, 'arrive'), (5, 'send')]
    """

    _now: int
    _queue: Any
    # A call is an entry (time, rank, number, call, value): an event object for it would cost more
    # than all other work of the queue.

    def __init__(self, *, max_events: int = 2**62) -> None:
        super().__init__()
        self.max_events = max_events
        # A livelock passes no time, so events are limited, by the number that each gets anyway.
        # SimPy's name: the iterator over the numbers of entries, which break ties.
        self._eid: Any = _event_numbers(max_events)
        # A sequence of its own: events of processes must not count towards the load's limit.
        self._process_eid = _event_numbers(_MAX_PROCESS_EVENTS)
        self._stopped = False
        """True once `stop` was called."""
        self._failure: Exception | None = None
        """The exception that ended a process, and so the load."""
        self._links: dict[str, LinkControl] = {}
        self.returns_to_loop = False
        """True if no event may run others itself (`run_until`): `run_to_send` returns between them.
        """
        self.has_overrun = False
        """True if `run_load` ended because of too many events, the load's or a process's."""
        self.overrun_events = 0
        """The limit that was exceeded: *max_events*, or that of processes."""

    # For the load

    @property
    def now_ns(self) -> int:
        """The time, as `now`."""
        return self._now

    def at(self, at_ns: int, rank: int, call: Call, value: Any) -> None:
        """Call *call* with *value* at *at_ns*, which must not be in the past."""
        # Ties: time, then rank, then the number of the entry, which is unique. So entries are never
        # compared any further, and events that are equal in time and rank run as scheduled.
        # Pushed directly: `schedule` takes a delay, which would be computed and added back again.
        heappush(self._queue, (at_ns, rank, next(self._eid), call, value))

    def after(self, delay_ns: int, rank: int, call: Call, value: Any) -> None:
        """Call *call* with *value* after *delay_ns*."""
        heappush(self._queue, (self._now + delay_ns, rank, next(self._eid), call, value))

    def advance_to(self, at_ns: int) -> bool:
        """Advance the clock to *at_ns* if nothing is due until then, that instant included.

        This saves the event of a caller that would only schedule itself at *at_ns*.
        """
        queue: list[tuple[Any, ...]] = self._queue
        # That very instant included: an event due then may have a lower rank.
        if queue and queue[0][0] <= at_ns:  # an entry begins with its time
            return False
        self._now = at_ns
        return True

    def run_until(self, at_ns: int, rank: int) -> None:
        """Run events until a call scheduled now for *at_ns* with *rank* would run.

        Equivalent to `at` with that call and a return to the event loop, but the caller keeps its
        local variables.
        """
        # Declared as tuples of any length, which compiled code neither unpacks nor copies.
        queue: list[tuple[Any, ...]] = self._queue
        # A real entry, and not only its key: whatever runs meanwhile may look at the queue to find
        # out if anything is due before it (`advance_to`, `FifoEventQueue`), and must see this.
        marker: tuple[Any, ...] = (at_ns, rank, next(self._eid), _ignore, None)
        heappush(queue, marker)
        while True:
            entry = heappop(queue)
            now_ns: Any = entry[0]  # not typed as a number, which compiled code would convert twice
            self._now = now_ns
            if entry is marker:
                return
            call, value = entry[3], entry[4]
            call(value, now_ns)

    def stop(self) -> None:
        """Make `run_load` return; this call itself does not return."""
        # An exception also ends the loops of `run_until` and `FifoEventQueue` on the way out.
        self._stopped = True
        raise StopSimulation(None)

    def step(self) -> None:
        """Run the next event: a call of the load, or an event of a process."""
        if self._queue:
            self._now, _, _, call, value = heappop(self._queue)
            call(value, self._now)
        else:
            super().step()  # which raises EmptySchedule

    def run_load(self) -> bool:
        """Run events until `stop`; return False if that is not called.

        Then either no events are left, or there were too many.
        """
        return self._run(self._run_all)

    def run_to_send(self, is_due: Callable[[], bool]) -> bool:
        """Run events until *is_due*, and return True before the server can send.

        When the load has ended, it returns False.
        """
        queue: list[tuple[Any, ...]] = self._queue

        def run() -> None:
            while queue:
                first = queue[0]  # it begins with its time and rank
                if (first[0] > self._now or first[1] >= EventPriority.SEND) and is_due():
                    return
                now_ns, _, _, call, value = heappop(queue)
                self._now = now_ns
                call(value, now_ns)

        return not self._run(run) and bool(queue)

    def _run_all(self) -> None:
        queue = self._queue
        while queue:
            # `step` inlined: the call is half the cost of an event.
            now_ns, _, _, call, value = heappop(queue)
            self._now = now_ns
            call(value, now_ns)

    def _run(self, events: Callable[[], None]) -> bool:
        """Run *events*; return whether `stop` ended them."""
        try:
            events()
        except StopSimulation:
            # `stop`, and a process that fails, leave the loop from within the running call.
            if not self._stopped and self._failure is None:
                raise
        except _TooManyEventsError as error:
            self.has_overrun, self.overrun_events = True, error.limit
        if self._failure is not None:
            raise self._failure
        return self._stopped

    # For processes

    def run_process(self, process: Process) -> None:
        """Run *process* next to the load; its exceptions propagate from `run_load`.

        Raises:
            InputError: if it returns no generator, like a function without a `yield`. In
                `run_load`, if it yields a value that is not an event.
        """
        generator: object = process(self)
        name = getattr(process, "__name__", repr(process))
        if not isinstance(generator, Generator):
            requirement = "must be a generator function (with a yield)"
            raise _process_error(f"{name} {requirement}, and returned {generator!r}")
        self.process(self._guard(name, generator))

    def _guard(
        self, name: str, generator: Generator[simpy.Event, Any, Any]
    ) -> Generator[simpy.Event, Any, Any]:
        """Keep an exception of a process: SimPy would raise a copy, built from its arguments."""
        try:
            # `yield from` spelled out: SimPy would report a value that is no event as yielded here.
            event: Any = next(generator)
            while True:
                _check_event(name, event)
                try:
                    value = yield event
                except BaseException as error:  # noqa: BLE001 - whatever SimPy throws into it
                    event = generator.throw(error)
                else:
                    event = generator.send(value)
        except StopIteration as done:
            return done.value
        # The load exceeded its limit while this process happened to run.
        except _TooManyEventsError:
            raise
        except Exception as error:
            self._failure = error
            raise StopSimulation(None) from error

    def schedule(self, event: simpy.Event, priority: Any = 1, delay: float | Any = 0) -> None:
        """Schedule an event of a process, after the load's events of that instant.

        Raises:
            ValueError: if *delay* is not a whole number of nanoseconds.
        """
        # A float delay would turn the clock into a float for good; infinity is no int at all.
        is_integer = isinstance(delay, int) or float(delay).is_integer()
        if not is_integer:
            raise ValueError(
                f"a delay is whole nanoseconds (h3sim.values.units.ms(1.5)), not {delay!r}"
            )
        # The ranks of a load's events are lower, so the two sequences of numbers never meet.
        rank, number = EventPriority.PROCESS + int(priority), next(self._process_eid)
        heappush(self._queue, (self._now + int(delay), rank, number, self._on_event, event))

    def _on_event(self, event: simpy.Event, now_ns: int) -> None:
        """Process an event with SimPy."""
        # SimPy takes the first entry of the queue, and knows only its own kind: calls are many, and
        # each would need a check of its kind.
        heappush(self._queue, (now_ns, _BEFORE_ALL_EVENTS, 0, event))
        super().step()

    def add_link(self, name: str, control: LinkControl) -> None:
        """Register a link for processes under *name*, "down" or "up"."""
        self._links[name] = control

    @property
    def down(self) -> LinkControl:
        """The link from server to client.

        Raises:
            NetworkError: if the network has a constant rate, and no links.
        """
        return self._link("down")

    @property
    def up(self) -> LinkControl:
        """The link from client to server, as `down`."""
        return self._link("up")

    def _link(self, name: str) -> LinkControl:
        """Return the link of that name, or raise the error of `down`."""
        if name not in self._links:
            message = "is not there: a network of a constant rate has no links to change"
            raise NetworkError([ValidationIssue(key=name, message=message)], "network")
        return self._links[name]


class FifoEventQueue:
    """Events in FIFO order, such as the arrivals of packets in one direction.

    *take* is called with each value. Of the values in time order, only the first is in the queue of
    the environment; the same call handles the next one if nothing else is due before it. The order
    of all events is the same as with one entry per value, because each value is numbered when it
    is put in. A value that overtakes others has a separate entry.
    """

    __slots__ = (
        "_call_first",
        "_environment",
        "_event_numbers",
        "_is_queued",
        "_queue",
        "_rank",
        "take",
        "under_way",
    )

    def __init__(self, environment: LoadEnvironment, rank: int, take: Call | None = None) -> None:
        self._environment = environment
        self._queue = environment._queue
        self._event_numbers = environment._eid
        self._rank = rank
        self._is_queued = False
        """True if the first entry is in the environment's queue, or is being handled."""
        self.take: Call = take or _ignore
        """The handler of values; may be set later."""
        self._call_first: Call = self._on_first  # bound once, and not for each entry
        self.under_way: deque[Any] = deque()
        """Entries in rising order, in the form of the queue, without overtaking ones. Not typed as
        tuples, which compiled code would unpack and copy."""

    def put(self, at_ns: int, value: Any) -> None:
        """Schedule *value* at *at_ns*."""
        under_way = self.under_way
        # Numbered on insertion, not on entering the queue: ties are broken as with an entry for
        # each.
        entry: Any = (at_ns, self._rank, next(self._event_numbers), self._call_first, value)
        if not under_way:
            under_way.append(entry)
            if not self._is_queued:  # otherwise `_on_first` is running, and will reach it
                self._is_queued = True
                heappush(self._queue, entry)
        elif at_ns >= under_way[-1][0]:  # the time of the last one
            under_way.append(entry)
        # Earlier than the last one: it cannot join the line, which is in rising order.
        else:
            _, rank, number, _, _ = entry
            heappush(self._queue, (at_ns, rank, number, self._on_overtaking, value))

    def _on_first(self, value: Any, now_ns: int) -> None:
        """Handle the first value, and those after it until something else is due."""
        under_way, queue, take = self.under_way, self._queue, self.take
        environment = self._environment
        while True:
            # Removed first, as `take` may insert more, and `_is_queued` stays true meanwhile.
            under_way.popleft()
            take(value, now_ns)
            if not under_way:
                self._is_queued = False
                return
            first: Any = under_way[0]
            # Ordered by time, rank and number, which is unique: calls are never compared.
            if queue and queue[0] < first:
                heappush(queue, first)
                return
            # An entry is (time, rank, number, call, value).
            environment._now = now_ns = first[0]
            value = first[4]

    def _on_overtaking(self, value: Any, now_ns: int) -> None:
        """Handle a value that was not in the line."""
        self.take(value, now_ns)


def _ignore(_value: Any, _now_ns: int) -> None:
    """Do nothing, as the call of an entry that only marks a time."""


def _check_event(name: str, event: object) -> None:
    """Raise an error if a process yields a value that is no event."""
    if not hasattr(event, "callbacks"):
        requirement = "it must yield events, such as env.timeout(ms(5))"
        raise _process_error(f"{name} yields {event!r}; {requirement}")


def _process_error(message: str) -> InputError:
    """Return an error in the processes that the caller passed."""
    return InputError.at("processes", message)


class _TooManyEventsError(Exception):
    """An event was scheduled beyond the last that is allowed, *limit*."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(limit)


def _event_numbers(limit: int) -> Iterator[int]:
    """Return the numbers below *limit*; the next one raises an error."""
    return chain(range(limit), map(_raise_too_many, repeat(limit)))


def _raise_too_many(limit: int) -> int:
    """Raise the error, as a function that `map` can call."""
    raise _TooManyEventsError(limit)


_MAX_IP_BYTES: Final = 65_535
"""The total length of an IP packet has 16 bits (RFC 791 § 3.1)."""


class LinkControl:
    """One direction of the path, `LoadEnvironment.down` or `LoadEnvironment.up`.

    Its callers are users' processes: the methods themselves refuse wrong types (`| Any`), where
    compiled code would raise a TypeError that explains nothing.
    """

    def __init__(self, environment: LoadEnvironment, link: ChangingLink) -> None:
        self._environment = environment
        self._link = link

    def set_rate(self, rate_bps: int | Any) -> None:
        """Set the rate from now on; packets already in the queue keep their departure times.

        Raises:
            NetworkError: if the rate is not above 0, or the link has no rate.
        """
        self._link.change_rate(self._environment.now_ns, rate_bps)

    def set_loss(self, loss: float | Any) -> None:
        """Set the share of independent losses from now on; packets in flight still arrive.

        Raises:
            NetworkError: if *loss* is not a share from 0 up to 1.
        """
        self._link.change_loss(loss)

    def send(self, n_bytes: int | Any) -> int | None:
        """Send a foreign packet of *n_bytes*, IP header included, through the queue.

        It takes room and time there, and draws from the loss process, as any packet does. Return
        its arrival time, None if it is lost.

        Raises:
            NetworkError: if no IP packet has that size.
        """
        # By `__index__`, not by type: numpy's integers are other types.
        if not hasattr(n_bytes, "__index__") or not 1 <= n_bytes <= _MAX_IP_BYTES:
            message = f"must be a whole number of bytes, 1 to {_MAX_IP_BYTES:,}, is {n_bytes!r}"
            raise NetworkError([ValidationIssue(key="n_bytes", message=message)], "link")
        return self._link.send(self._environment.now_ns, int(n_bytes))

    @property
    def offered(self) -> int:
        """The number of packets sent over the link so far, lost ones included."""
        return self._link.offered

    @property
    def queue_drops(self) -> int:
        """The number of packets dropped by the queue."""
        return self._link.queue_drops

    @property
    def loss_drops(self) -> int:
        """The number of packets lost on the way."""
        return self._link.loss_drops
