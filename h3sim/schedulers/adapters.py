"""Validation of custom schedulers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.schedulers.base import SupportsRequeue
from h3sim.schema import format_value
from h3sim.values.errors import SchedulerError
from h3sim.values.plugins import Guard
from h3sim.values.units import as_integer

if TYPE_CHECKING:
    from h3sim.schedulers.base import Scheduler
    from h3sim.signals import Signal


class CheckedScheduler:
    """A proxy that validates the picks of a custom *scheduler* called *name*.

    Built-in schedulers run without it, since tests hold them to the same contract.

    Raises:
        SchedulerError: in each method, if the scheduler raises or exits, or picks a stream that is
            not open or has no data.

    >>> from h3sim.schedulers import FifoScheduler
    >>> class Careless(FifoScheduler):
    ...     def pick(self):
    ...         return 9999
    >>> CheckedScheduler(Careless(), name="careless").pick()
    Traceback (most recent call last):
    h3sim.values.errors.SchedulerError: the scheduler 'careless' picks stream 9999, which is not \
open
    """

    def __init__(self, scheduler: Scheduler, *, name: str) -> None:
        self.scheduler = scheduler
        self._guard = Guard(partial(SchedulerError, name), shows_arguments=True)
        self._is_active: dict[int, bool] = {}
        """The open streams; True for active ones."""
        if isinstance(scheduler, SupportsRequeue):
            # Only then: servers call `requeue` on a scheduler that has it (`SupportsRequeue`).
            self.requeue = self._requeue

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
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
        """Deactivate the stream."""
        self._is_active[stream_id] = False
        self._guard.call("deactivate", self.scheduler.deactivate, stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        del self._is_active[stream_id]
        self._guard.call("close", self.scheduler.close, stream_id)

    def pick(self) -> int | None:
        """Return the stream to send next, once validated."""
        picked = self._guard.call("pick", self.scheduler.pick)
        if picked is None:
            return None
        stream_id = as_integer(picked)
        if stream_id is None:
            raise self._guard.make_error(
                f"picks {format_value(picked)}, which is no id of a stream"
            )
        is_active = self._is_active.get(stream_id)
        if not is_active:
            state = "is not open" if is_active is None else "has no data"
            raise self._guard.make_error(f"picks stream {format_value(stream_id)}, which {state}")
        return stream_id

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Account for bytes that were sent."""
        self._guard.call("charge", self.scheduler.charge, stream_id, n_bytes)

    def _requeue(self, stream_id: int) -> None:
        """Move an active stream behind the waiting ones."""
        assert isinstance(self.scheduler, SupportsRequeue)  # noqa: S101 - else nobody calls this
        self._guard.call("requeue", self.scheduler.requeue, stream_id)
