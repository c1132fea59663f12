"""Adapters for schedulers of others: checked ones, and ones that choose and charge in one step."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Protocol

from h3sim.errors import SchedulerError
from h3sim.plugins import Guard
from h3sim.schedulers.base import SupportsRequeue
from h3sim.units import whole

if TYPE_CHECKING:
    from h3sim.schedulers.base import Scheduler
    from h3sim.signals import Signal


class CheckedScheduler:
    """Passes on what *scheduler*, called *name*, is told, and looks at what it picks.

    Those of h3sim go without, since tests hold them to the same.

    Raises:
        SchedulerError: in each method, if the scheduler raises or exits, or picks a stream that is
            not open or has no data.

    >>> from h3sim.schedulers import FifoScheduler
    >>> class Careless(FifoScheduler):
    ...     def pick(self):
    ...         return 9999
    >>> CheckedScheduler(Careless(), name="careless").pick()
    Traceback (most recent call last):
    h3sim.errors.SchedulerError: the scheduler 'careless' picks stream 9999, which is not open
    """

    def __init__(self, scheduler: Scheduler, *, name: str) -> None:
        self.scheduler = scheduler
        self._guard = Guard(partial(SchedulerError, name), shows_arguments=True)
        self._is_active: dict[int, bool] = {}
        """Of each stream that is open."""
        if isinstance(scheduler, SupportsRequeue):
            # Only then: who has the method is asked for it (`SupportsRequeue`).
            self.requeue = self._requeue

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""
        self._is_active[stream_id] = False
        self._guard.call("open", self.scheduler.open, stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal."""
        self._guard.call("update", self.scheduler.update, stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        self._is_active[stream_id] = True
        self._guard.call("activate", self.scheduler.activate, stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        self._is_active[stream_id] = False
        self._guard.call("deactivate", self.scheduler.deactivate, stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        del self._is_active[stream_id]
        self._guard.call("close", self.scheduler.close, stream_id)

    def pick(self) -> int | None:
        """Return who sends next."""
        picked = self._guard.call("pick", self.scheduler.pick)
        if picked is None:
            return None
        stream_id = whole(picked)
        if stream_id is None:
            raise self._guard.failed(f"picks {picked!r}, which is no id of a stream")
        is_active = self._is_active.get(stream_id)
        if not is_active:
            state = "is not open" if is_active is None else "has no data"
            raise self._guard.failed(f"picks stream {stream_id}, which {state}")
        return stream_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Account for what was sent."""
        self._guard.call("charge", self.scheduler.charge, stream_id, n_bytes)

    def _requeue(self, stream_id: int) -> None:
        """Send an active stream behind those that wait."""
        assert isinstance(self.scheduler, SupportsRequeue)  # noqa: S101 - else nobody calls this
        self._guard.call("requeue", self.scheduler.requeue, stream_id)


class NextScheduler(Protocol):
    """A scheduler as `h3sim.schedulers.Scheduler`, with `next` in the place of pick and charge.

    Equal histories must lead to equal turns.
    """

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream, which is not yet active."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal by *signal*."""

    def activate(self, stream_id: int) -> None:
        """Activate a stream."""

    def deactivate(self, stream_id: int) -> None:
        """Take a stream out of the running."""

    def close(self, stream_id: int) -> None:
        """Forget the stream."""

    def next(self) -> int | None:
        """Return who has this turn, and go on to the next one; None if nobody has data."""


class NextAdapter:
    """Makes a scheduler of one whose `next` chooses a stream and charges it a turn in one step.

    A server asks who sends next before it knows whether there is room, and asks again; asking must
    change nothing. So a copy of *scheduler* goes a turn ahead and is asked, and the turn is taken
    when it is charged. If anything happens in between, the copy is made anew. A turn is a turn:
    how many bytes were sent is not passed on, nor what was sent by another than the one picked.

    >>> class RoundRing:
    ...     def __init__(self):
    ...         self.line = []
    ...     def open(self, stream_id, signal): ...
    ...     def activate(self, stream_id):
    ...         self.line.append(stream_id)
    ...     def next(self):
    ...         self.line.append(self.line.pop(0))
    ...         return self.line[-1]
    >>> scheduler = NextAdapter(RoundRing())
    >>> scheduler.activate(0); scheduler.activate(4)
    >>> scheduler.pick(), scheduler.pick(), scheduler.charge(0, 1400), scheduler.pick()
    (0, 0, None, 4)
    """

    def __init__(self, scheduler: NextScheduler) -> None:
        self._scheduler = scheduler
        self._ahead: NextScheduler | None = copy.deepcopy(scheduler)
        """Told all that *scheduler* is told; None if it is to be made anew."""
        self._is_asked = False
        """True if the copy was asked, and so is a turn ahead."""
        self._picked: int | None = None

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""
        for scheduler in self._both():
            scheduler.open(stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Pass the signal on."""
        for scheduler in self._both():
            scheduler.update(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        for scheduler in self._both():
            scheduler.activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the running."""
        for scheduler in self._both():
            scheduler.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        for scheduler in self._both():
            scheduler.close(stream_id)

    def pick(self) -> int | None:
        """Return who has the next turn."""
        if not self._is_asked:
            if self._ahead is None:
                self._ahead = copy.deepcopy(self._scheduler)
            # None is remembered like any other answer, so that an idle server asks once.
            self._picked, self._is_asked = self._ahead.next(), True
        return self._picked

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Take the turn, if it is that of the stream."""
        # Whether anybody had asked before must make no difference.
        if stream_id == self.pick():
            self._scheduler.next()
            # The copy took this turn when it was asked, so both stand alike again: a deep copy is
            # due only after a change in between, not with every packet.
            self._is_asked = False

    def _both(self) -> list[NextScheduler]:
        """Return who is told of a change: the copy too, unless it has gone ahead."""
        if self._is_asked:
            # Also where nobody had data: even to find that out may have changed it.
            self._ahead, self._is_asked = None, False
        return [self._scheduler] if self._ahead is None else [self._scheduler, self._ahead]
