"""SimPy behind one method: call something at an instant, in a stated order among equals."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, cast

import simpy

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Kernel", "Rank"]


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


class Call:
    """A SimPy event reduced to what the event loop touches.

    A full `simpy.Event` costs three times as much, and a process per packet eight times.
    """

    __slots__ = ("_ok", "callbacks", "value")

    def __init__(self, callbacks: tuple[Callable[[Call], None], ...], value: Any) -> None:
        self.callbacks: tuple[Callable[[Call], None], ...] | None = callbacks
        self.value = value
        self._ok = True


class Kernel:
    """The clock, in nanoseconds from 0 on, and what is going to happen.

    >>> kernel = Kernel()
    >>> log = []
    >>> callbacks = (lambda call: log.append((kernel.now_ns, call.value)),)
    >>> kernel.at(5, Rank.SEND, callbacks, "send"); kernel.at(5, Rank.DELIVERY, callbacks, "arrive")
    >>> kernel.run(lambda: len(log) == 2)
    True
    >>> log
    [(5, 'arrive'), (5, 'send')]
    """

    def __init__(self) -> None:
        self._env = simpy.Environment()
        self._schedule = cast(Any, self._env.schedule)

    @property
    def now_ns(self) -> int:
        """The time."""
        return cast(int, self._env.now)

    def at(
        self, at_ns: int, rank: int, callbacks: tuple[Callable[[Call], None], ...], value: Any
    ) -> None:
        """Call each of *callbacks* at *at_ns*, which must not lie in the past."""
        self._schedule(Call(callbacks, value), rank, at_ns - self._env.now)

    def run(self, is_done: Callable[[], bool]) -> bool:
        """Let time pass until *is_done*; return False if nothing is left to happen before that."""
        step = self._env.step
        try:
            while not is_done():
                step()
        except simpy.core.EmptySchedule:
            return False
        return True
