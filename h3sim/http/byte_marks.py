"""Tells when a stream has been given so many bytes: what a server wants to do then."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["ByteMarks"]


class ByteMarks:
    """A scheduler that counts what each stream was charged for, and calls at marks.

    Only loads in which there are marks have one: counting costs something with every packet.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> passed = []
    >>> marks = ByteMarks().around(FifoScheduler())
    >>> marks.open(0, H2Priority()); marks.activate(0)
    >>> marks.watch(0, 2000, lambda: passed.append("there"))
    >>> marks.charge(0, 1400); passed
    []
    >>> marks.charge(0, 1400); passed
    ['there']
    """

    def __init__(self) -> None:
        self._given: dict[int, int] = {}
        self._marks: dict[int, list[tuple[int, Callable[[], None]]]] = {}

    def around(self, scheduler: Scheduler) -> ByteMarks:
        """Follow *scheduler*; return itself, which is told all in its stead."""
        self._scheduler = scheduler
        # Who has one of these is asked for it, so it is there only where the scheduler has it.
        for name in ("requeue", "block", "on_lost"):
            if hasattr(scheduler, name):
                setattr(self, name, getattr(scheduler, name))
        return self

    def watch(self, stream_id: int, n_bytes: int, call: Callable[[], None]) -> None:
        """Call once *n_bytes* of a stream were given out; equal marks in the order made."""
        marks = self._marks.setdefault(stream_id, [])
        marks.append((n_bytes, call))
        # By the number alone: calls have no order, and the sort leaves equal marks as they were
        # made.
        marks.sort(key=lambda mark: mark[0])

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream."""
        self._scheduler.open(stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal by *signal*."""
        self._scheduler.update(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate a stream."""
        self._scheduler.activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate it."""
        self._scheduler.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget it, with its marks."""
        self._scheduler.close(stream_id)
        self._marks.pop(stream_id, None)
        self._given.pop(stream_id, None)

    def pick(self) -> int | None:
        """Return who sends next."""
        return self._scheduler.pick()

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count what was sent, and call at the marks that it passed."""
        # Before the marks: what they change must find the turn paid for.
        self._scheduler.charge(stream_id, n_bytes)
        marks = self._marks.get(stream_id)
        if marks:
            given = self._given[stream_id] = self._given.get(stream_id, 0) + n_bytes
            while marks and marks[0][0] <= given:
                marks.pop(0)[1]()
