"""Schedulers that choose and charge in one step, for who wants to ask first."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["NextAdapter", "NextScheduler"]


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

    >>> class Rounds:
    ...     def __init__(self):
    ...         self.line = []
    ...     def open(self, stream_id, signal): ...
    ...     def activate(self, stream_id):
    ...         self.line.append(stream_id)
    ...     def next(self):
    ...         self.line.append(self.line.pop(0))
    ...         return self.line[-1]
    >>> scheduler = NextAdapter(Rounds())
    >>> scheduler.activate(0); scheduler.activate(4)
    >>> scheduler.pick(), scheduler.pick(), scheduler.charge(0, 1400), scheduler.pick()
    (0, 0, None, 4)
    """

    def __init__(self, scheduler: NextScheduler) -> None:
        self._scheduler = scheduler
        self._ahead: NextScheduler | None = copy.deepcopy(scheduler)
        """Told all that *scheduler* is told; None if it is to be made anew."""
        self._is_asked = False
        """Whether the copy was asked, and so is a turn ahead."""
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
