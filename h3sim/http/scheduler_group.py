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

    __slots__ = ("_hearing", "_lost", "_new", "_requeuing", "block", "close", "open", "update")

    def __init__(self, new: Scheduler, lost: Scheduler | None) -> None:
        self._new = new
        self._lost = lost
        # Most senders have one scheduler, which is then asked without a step between.
        self.open: Callable[[int, Signal], None] = new.open
        """Take up a stream, or below 0 a placeholder."""
        self.update: Callable[[int, Signal], None] = new.update
        """Replace the signal of a stream or placeholder."""
        self.close: Callable[[int], None] = new.close
        """Forget a stream."""
        if lost is not None:
            self.open, self.update, self.close = self._open, self._update, self._close
        self._requeuing = new if isinstance(new, Requeuing) else None
        # Who is blocked by flow control may stay listed until its turn comes (`TreeScheduler`).
        self.block: Callable[[int], None] = getattr(new, "block", new.deactivate)
        self._hearing = new if isinstance(new, HearsLosses) else None

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

    def _open(self, stream_id: int, signal: Signal) -> None:
        self._new.open(stream_id, signal)
        self._known_lost.open(stream_id, signal)

    def _update(self, element_id: int, signal: Signal) -> None:
        self._new.update(element_id, signal)
        self._known_lost.update(element_id, signal)

    def _close(self, stream_id: int) -> None:
        self._new.close(stream_id)
        self._known_lost.close(stream_id)

    @property
    def _known_lost(self) -> Scheduler:
        assert self._lost is not None  # noqa: S101 - only then are both told
        return self._lost
