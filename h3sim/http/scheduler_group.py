"""The schedulers of one sender: of what is new, and of what was lost where that has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers import HearsLosses, Requeuing

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["SchedulerGroup"]


class SchedulerGroup:
    """Tells both the same: who is there, and what is wanted for them."""

    __slots__ = ("_all", "_hearing", "_new", "_requeuing", "block")

    def __init__(self, new: Scheduler, lost: Scheduler | None) -> None:
        self._new = new
        self._all = (new,) if lost is None else (new, lost)
        self._requeuing = new if isinstance(new, Requeuing) else None
        # Who is blocked by flow control may stay listed until its turn comes (`TreeScheduler`).
        self.block: Callable[[int], None] = getattr(new, "block", new.deactivate)
        self._hearing = new if isinstance(new, HearsLosses) else None

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream, or below 0 a placeholder."""
        for scheduler in self._all:
            scheduler.open(stream_id, signal)

    def update(self, element_id: int, signal: Signal) -> None:
        """Replace the signal by *signal*."""
        for scheduler in self._all:
            scheduler.update(element_id, signal)

    def close(self, stream_id: int) -> None:
        """Forget a stream."""
        for scheduler in self._all:
            scheduler.close(stream_id)

    def on_lost(self) -> None:
        """Tell that a packet was lost, where that is wanted."""
        if self._hearing is not None:
            self._hearing.on_lost()

    def requeue(self, stream_id: int) -> None:
        """Join an active stream to the others anew; where that is, is the scheduler's business."""
        if self._requeuing is not None:
            self._requeuing.requeue(stream_id)
        else:
            self._new.deactivate(stream_id)
            self._new.activate(stream_id)
