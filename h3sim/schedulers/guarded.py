"""A scheduler of somebody else's, watched: what it does wrong becomes a sentence."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.errors import SchedulerError
from h3sim.plugins import Guard
from h3sim.schedulers.base import Requeuing
from h3sim.units import whole

if TYPE_CHECKING:
    from h3sim.schedulers.base import Scheduler
    from h3sim.signals import Signal

__all__ = ["GuardedScheduler"]


class GuardedScheduler:
    """Passes on what *scheduler*, called *name*, is told, and looks at what it picks.

    Those of h3sim go without, since tests hold them to the same.

    Raises:
        SchedulerError: in each method, if the scheduler raises or exits, or picks a stream that is
            not open or has no data.

    >>> from h3sim.schedulers import FifoScheduler
    >>> class Careless(FifoScheduler):
    ...     def pick(self):
    ...         return 9999
    >>> GuardedScheduler(Careless(), name="careless").pick()
    Traceback (most recent call last):
    h3sim.errors.SchedulerError: the scheduler 'careless' picks stream 9999, which is not open
    """

    def __init__(self, scheduler: Scheduler, *, name: str) -> None:
        self.scheduler = scheduler
        self._guard = Guard(partial(SchedulerError, name), shows_arguments=True)
        self._is_active: dict[int, bool] = {}
        """Of each stream that is open."""
        if isinstance(scheduler, Requeuing):
            # Only then: who has the method is asked for it (`Requeuing`).
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
        assert isinstance(self.scheduler, Requeuing)  # noqa: S101 - else nobody calls this
        self._guard.call("requeue", self.scheduler.requeue, stream_id)
