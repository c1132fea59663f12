"""The SimPy environment of a load: calls at an instant in a stated order, and link handles."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Generator
from heapq import heappop, heappush
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from h3sim.engine._simpy import Environment, StopSimulation
from h3sim.errors import InputError, NetworkError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import simpy

    from h3sim.transport.link import ChangingLink


_MAX_PROCESS_EVENTS: Final = 20_000_000
"""A process that has more may go round without time."""


class EventPriority(enum.IntEnum):
    """The order of events that fall on the same instant; equal ones go as they were scheduled."""

    DELIVERY = 0
    """A packet arrives at the client."""
    REQUEST = 1
    """The client asks for a resource."""
    ARRIVAL = 2
    """A request arrives at the server."""
    RESPONSE = 3
    """A response is ready to be sent."""
    CLOSE = 4
    """A stream leaves the scheduler."""
    SEND = 5
    """The server may send a packet."""
    PROCESS = 6
    """A process beside the load goes on: SimPy's urgent events; its normal ones have the next."""


Call: TypeAlias = "Callable[[Any, int], None]"
"""What happens at an instant: called with what it was scheduled with, and the time."""
Process: TypeAlias = "Callable[[LoadEnvironment], Generator[simpy.Event, Any, Any]]"
"""What runs beside a load: a SimPy process function."""

_FIRST: Final = -1
"""The rank of what comes before all else at an instant."""


class LoadEnvironment(Environment):
    """The clock, in nanoseconds from 0 on, and what is going to happen.

    A load schedules calls. A process that runs beside it schedules events as in any SimPy model
    (`yield env.timeout(ms(5))`); its turn comes behind all that the load does at that instant, and
    its delays are whole nanoseconds.

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
    # A call stands in it as (time, rank, number, call, value): no object is made for it, which
    # would cost more than all else that the queue does.

    def __init__(self, *, max_events: int = 2**62) -> None:
        super().__init__()
        self.max_events = max_events
        # Where nothing ever comes of what happens, time may stand still; so events are counted, by
        # the number that each gets anyway.
        self._eid: Any = _numbers(max_events)
        # Numbers of its own: what a process schedules must not move the load's towards its limit.
        self._process_eid = _numbers(_MAX_PROCESS_EVENTS)
        self._stopped = False
        self._failure: Exception | None = None
        self._links: dict[str, LinkControl] = {}
        self.has_overrun = False
        """True if `run_load` ended because there were too many events, the load's or others'."""
        self.overrun_events = 0
        """How many that were; not *max_events* where they were those of processes."""

    # For a load

    @property
    def now_ns(self) -> int:
        """The time, as `now`."""
        return self._now

    def at(self, at_ns: int, rank: int, call: Call, value: Any) -> None:
        """Call *call* with *value* at *at_ns*, which must not lie in the past."""
        # Put at once where `schedule` would put it: that takes a delay, which would first have to
        # be worked out, and adds the time to it again.
        heappush(self._queue, (at_ns, rank, next(self._eid), call, value))

    def after(self, delay_ns: int, rank: int, call: Call, value: Any) -> None:
        """Call *call* with *value* once *delay_ns* have passed."""
        heappush(self._queue, (self._now + delay_ns, rank, next(self._eid), call, value))

    def advance_to(self, at_ns: int) -> bool:
        """Move the clock on to *at_ns* if nothing is due until then, that instant included.

        Whoever would schedule a call for itself at *at_ns* and do nothing else saves an event.
        """
        queue: list[tuple[Any, ...]] = self._queue
        # At that very instant, too: whatever is due then may come first by its rank.
        if queue and queue[0][0] <= at_ns:
            return False
        self._now = at_ns
        return True

    def run_until(self, at_ns: int, rank: int) -> None:
        """Pass time until it is the turn of a call that is scheduled now.

        As `at` with that call, and a return to whoever runs the load; but all that the caller has
        at hand stays at hand.
        """
        # Said to be tuples of any length, which compiled code neither takes apart nor makes anew.
        queue: list[tuple[Any, ...]] = self._queue
        own: tuple[Any, ...] = (at_ns, rank, next(self._eid), _take_nothing, None)
        heappush(queue, own)
        while True:
            entry = heappop(queue)
            self._now = entry[0]
            if entry is own:
                return
            entry[3](entry[4], entry[0])

    def stop(self) -> None:
        """Make `run_load` return; whoever calls this is not returned to."""
        self._stopped = True
        raise StopSimulation(None)

    def step(self) -> None:
        """Make the next thing happen: a call of the load, or an event of a process."""
        if self._queue:
            self._now, _, _, call, value = heappop(self._queue)
            call(value, self._now)
        else:
            super().step()  # which says that nothing is left

    def run_load(self) -> bool:
        """Pass time until `stop`; return False if that does not come.

        Then nothing is left to happen, or there were too many events.
        """
        queue = self._queue
        try:
            while queue:
                # What `step` does: this is half of what an event costs.
                now_ns, _, _, call, value = heappop(queue)
                self._now = now_ns
                call(value, now_ns)
        except StopSimulation:
            pass  # no error: `stop` leaves the loop by it, from within whatever call is running
        except _TooManyEventsError as error:
            self.has_overrun, self.overrun_events = True, error.limit
        if self._failure is not None:
            raise self._failure
        return self._stopped

    # For processes beside it

    def run_beside(self, process: Process) -> None:
        """Run *process* beside the load; what it raises comes out of `run_load`.

        Raises:
            InputError: if it makes no generator: a function without a `yield`. What it yields that
                is no event comes out of `run_load` as one.
        """
        made: object = process(self)
        name = getattr(process, "__name__", repr(process))
        if not isinstance(made, Generator):
            wanted = "must be a generator function (with a yield)"
            raise _process_error(f"{name} {wanted}, and returned {made!r}")
        self.process(self._guarded(name, made))

    def _guarded(
        self, name: str, generator: Generator[simpy.Event, Any, Any]
    ) -> Generator[simpy.Event, Any, Any]:
        """Keep what a process raises: SimPy would raise a copy, made of its arguments."""
        try:
            # By hand what `yield from` does: of what is no event SimPy would say only that it came
            # from here.
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
        # The load has run over its limit, and the process only happened to be the one running.
        except _TooManyEventsError:
            raise
        except Exception as error:
            self._failure = error
            raise StopSimulation(None) from error

    def schedule(self, event: simpy.Event, priority: Any = 1, delay: float = 0) -> None:
        """Schedule an event of a process, behind all that the load does at that instant.

        Raises:
            ValueError: if *delay* is not a whole number of nanoseconds.
        """
        # A float delay would turn the clock into floats for good; not even an int can infinity be.
        is_whole = isinstance(delay, int) or float(delay).is_integer()
        if not is_whole:
            raise ValueError(f"a delay is whole nanoseconds (h3sim.units.ms(1.5)), not {delay!r}")
        rank, number = EventPriority.PROCESS + int(priority), next(self._process_eid)
        heappush(self._queue, (self._now + int(delay), rank, number, self._on_event, event))

    def _on_event(self, event: simpy.Event, now_ns: int) -> None:
        """Have SimPy do what it does with an event."""
        # It takes the first entry of the queue, and knows its own kind alone: calls are many, and
        # would each be asked of which kind they are.
        heappush(self._queue, (now_ns, _FIRST, 0, event))
        super().step()

    def add_link(self, name: str, control: LinkControl) -> None:
        """Give processes a link under *name*, "down" or "up"."""
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
        if name not in self._links:
            message = "is not there: a network of a constant rate has no links to change"
            raise NetworkError([ValidationIssue(key=name, message=message)], "network")
        return self._links[name]


class FifoEventQueue:
    """What comes one after the other, as packets do that are under way in one direction.

    *take* is called with what comes.

    Of those that come in the order put in, only the first stands in the queue of the environment;
    and the next is taken by the same call, where nothing else is due before. The order of all that
    happens is the one that there would be with an entry for each: each has its number from when it
    was put in. What overtakes has an entry of its own.
    """

    __slots__ = (
        "_call_first",
        "_environment",
        "_is_queued",
        "_numbers",
        "_queue",
        "_rank",
        "take",
        "under_way",
    )

    def __init__(self, environment: LoadEnvironment, rank: int, take: Call | None = None) -> None:
        self._environment = environment
        self._queue = environment._queue
        self._numbers = environment._eid
        self._rank = rank
        self._is_queued = False
        self.take: Call = take or _take_nothing
        self._call_first: Call = self._on_first
        self.under_way: deque[Any] = deque()
        """What comes in rising order, without what overtakes: each as the queue has it. No tuple
        by its type, which would be taken apart and made anew wherever it is compiled."""

    def put(self, at_ns: int, value: Any) -> None:
        """Schedule *value* at *at_ns*."""
        under_way = self.under_way
        # Numbered when it is put in, and not when it enters the queue: so ties fall as they would
        # with an entry for each.
        entry: Any = (at_ns, self._rank, next(self._numbers), self._call_first, value)
        if not under_way:
            under_way.append(entry)
            if not self._is_queued:  # else `_on_first` is at work, and comes to it
                self._is_queued = True
                heappush(self._queue, entry)
        elif at_ns >= under_way[-1][0]:
            under_way.append(entry)
        else:
            heappush(self._queue, (*entry[:3], self._on_overtaking, value))

    def _on_first(self, value: Any, now_ns: int) -> None:
        under_way, queue, take = self.under_way, self._queue, self.take
        environment = self._environment
        while True:
            # Taken off first, as `take` may put more in, and `_is_queued` stays true meanwhile.
            under_way.popleft()
            take(value, now_ns)
            if not under_way:
                self._is_queued = False
                return
            first: Any = under_way[0]
            # By time, rank and number, which is unique: calls are never compared.
            if queue and queue[0] < first:
                heappush(queue, first)
                return
            environment._now = now_ns = first[0]
            value = first[4]

    def _on_overtaking(self, value: Any, now_ns: int) -> None:
        self.take(value, now_ns)


def _take_nothing(value: Any, now_ns: int) -> None:
    del value, now_ns


def _check_event(name: str, event: object) -> None:
    """Refuse what a process yields that is no event."""
    if not hasattr(event, "callbacks"):
        wanted = "it must yield events, such as env.timeout(ms(5))"
        raise _process_error(f"{name} yields {event!r}; {wanted}")


def _process_error(message: str) -> InputError:
    return InputError([ValidationIssue(key="processes", message=message)])


class _TooManyEventsError(Exception):
    """An event was scheduled beyond the last that is allowed, *limit*."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(limit)


def _numbers(limit: int) -> Iterator[int]:
    """Return the numbers below *limit*; whoever asks for more is refused."""
    return chain(range(limit), map(_refuse, repeat(limit)))


def _refuse(limit: int) -> int:
    raise _TooManyEventsError(limit)


_MAX_IP_BYTES: Final = 65_535
"""The total length of an IP packet has 16 bits (RFC 791 § 3.1)."""


class LinkControl:
    """One direction of the path, `LoadEnvironment.down` or `LoadEnvironment.up`."""

    def __init__(self, environment: LoadEnvironment, link: ChangingLink) -> None:
        self._environment = environment
        self._link = link

    def set_rate(self, rate_bps: int) -> None:
        """Pass *rate_bps* from now on; packets that wait already leave when they were going to.

        Raises:
            NetworkError: if the rate is not above 0, or the link has none that could change.
        """
        self._link.change_rate(self._environment.now_ns, rate_bps)

    def set_loss(self, loss: float) -> None:
        """Lose this share of packets from now on, each by itself; those under way arrive.

        Raises:
            NetworkError: if *loss* is not a share from 0 up to 1.
        """
        self._link.change_loss(loss)

    def send(self, n_bytes: int) -> int | None:
        """Send a packet of somebody else's, of *n_bytes* with IP's header, through the queue.

        It takes room and time there, and a number of the losses, as any packet does. Return when it
        arrives, None if it never does.

        Raises:
            NetworkError: if there is no IP packet of so many bytes.
        """
        # Not by type: numpy's whole numbers are others.
        if not hasattr(n_bytes, "__index__") or not 1 <= n_bytes <= _MAX_IP_BYTES:
            message = f"must be a whole number of bytes, 1 to {_MAX_IP_BYTES:,}, is {n_bytes!r}"
            raise NetworkError([ValidationIssue(key="n_bytes", message=message)], "link")
        return self._link.send(self._environment.now_ns, int(n_bytes))

    @property
    def offered(self) -> int:
        """How many packets were sent over the link so far, whatever became of them."""
        return self._link.offered

    @property
    def queue_drops(self) -> int:
        """How many of them the queue had no room for."""
        return self._link.queue_drops

    @property
    def loss_drops(self) -> int:
        """How many of them were lost on the way."""
        return self._link.loss_drops
