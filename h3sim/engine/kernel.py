"""SimPy behind one method: call something at an instant, in a stated order among equals."""

from __future__ import annotations

import enum
from heapq import heappush
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import simpy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Call", "Callbacks", "Kernel", "Rank"]


class Rank(enum.IntEnum):
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


Callbacks: TypeAlias = "tuple[Callable[[Call], None], ...]"


class Call:
    """A SimPy event reduced to what the event loop touches, and the instant at which it happens.

    A full `simpy.Event` costs three times as much, and a process per packet eight times.
    """

    __slots__ = ("at_ns", "callbacks", "value")

    _ok = True  # SimPy's word for: it has not failed

    callbacks: Callbacks | None
    value: Any
    at_ns: int


class Kernel:
    """The clock, in nanoseconds from 0 on, and what is going to happen.

    >>> kernel = Kernel()
    >>> log = []
    >>> note = (lambda call: log.append((kernel.now_ns, call.value)),)
    >>> kernel.after(5, Rank.SEND, note, "send"); kernel.after(5, Rank.DELIVERY, note, "arrive")
    >>> kernel.after(9, Rank.SEND, (lambda call: kernel.stop(),), None)
    >>> kernel.run()
    True
    >>> log
    [(5, 'arrive'), (5, 'send')]
    """

    __slots__ = ("_env", "_number", "_queue", "_stopped", "has_overrun")

    def __init__(self, *, max_events: int = 2**62) -> None:
        self._env = simpy.Environment()
        # Every event is put in here, so at once where `Environment.schedule` would put it: that
        # takes a delay, which would first have to be worked out, and adds the time to it again.
        self._queue: Any = self._env._queue
        # Where nothing ever comes of what happens, time may stand still; so events are counted, by
        # the number that each gets anyway.
        self._number: Iterator[int] = chain(range(max_events), map(_refuse, (max_events,)))
        self._stopped = False
        self.has_overrun = False
        """Whether `run` ended because there were more events than *max_events*."""

    @property
    def now_ns(self) -> int:
        """The time."""
        return self._env.now  # type: ignore[return-value]  # only whole numbers were put in

    def at(self, at_ns: int, rank: int, callbacks: Callbacks, value: Any) -> None:
        """Call each of *callbacks* at *at_ns*, which must not lie in the past."""
        call = Call()  # set from here: an `__init__` would cost more than all else that is done
        call.callbacks = callbacks
        call.value = value
        call.at_ns = at_ns
        heappush(self._queue, (at_ns, rank, next(self._number), call))

    def after(self, delay_ns: int, rank: int, callbacks: Callbacks, value: Any) -> None:
        """Call each of *callbacks* once *delay_ns* have passed."""
        self.at(self.now_ns + delay_ns, rank, callbacks, value)

    def stop(self) -> None:
        """Let `run` return once the call that is being made has returned."""
        self._stopped = True
        raise simpy.core.StopSimulation(None)

    def run(self) -> bool:
        """Let time pass until `stop`; return False if that does not come.

        Then nothing is left to happen, or there were too many events.
        """
        try:
            self._env.run()
        except _TooManyEventsError:
            self.has_overrun = True
        return self._stopped


class _TooManyEventsError(Exception):
    """An event was scheduled beyond the last that is allowed."""


def _refuse(number: int) -> int:
    raise _TooManyEventsError(number)
