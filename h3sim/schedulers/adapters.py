"""Adapters for custom schedulers: validation, and a combined pick and charge."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Protocol

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


class NextScheduler(Protocol):
    """A scheduler like `h3sim.schedulers.Scheduler`, with `next` instead of pick and charge.

    Equal histories must lead to equal picks.
    """

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open a stream, which is not yet active."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Replace the signal by *signal*."""

    def activate(self, stream_id: int) -> None:
        """Activate a stream."""

    def deactivate(self, stream_id: int) -> None:
        """Deactivate a stream."""

    def close(self, stream_id: int) -> None:
        """Forget the stream."""

    def next(self) -> int | None:
        """Return the stream of this quantum, and advance; None if no stream has data."""


class NextAdapter:
    """A scheduler from one whose `next` picks a stream and charges it a quantum in one step.

    A server picks before it knows whether there is room, and may pick again, so `pick` must not
    change any state. Therefore a copy of *scheduler* advances on `pick`, and the original on
    `charge`. After any other call in between, the copy is renewed. A quantum is one packet. The
    scheduler learns neither its size nor of packets from streams that it did not pick.

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
        """A copy that receives the same calls; None if it has to be made again."""
        self._has_picked = False
        """True if the copy has picked, and so is a quantum ahead."""
        self._picked: int | None = None
        """The pick of the copy, if it has picked."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""
        for scheduler in self._targets():
            scheduler.open(stream_id, signal)

    def update(self, stream_id: int, signal: Signal) -> None:
        """Forward the signal."""
        for scheduler in self._targets():
            scheduler.update(stream_id, signal)

    def activate(self, stream_id: int) -> None:
        """Activate the stream."""
        for scheduler in self._targets():
            scheduler.activate(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Deactivate the stream."""
        for scheduler in self._targets():
            scheduler.deactivate(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        for scheduler in self._targets():
            scheduler.close(stream_id)

    def pick(self) -> int | None:
        """Return the stream of the next quantum."""
        if not self._has_picked:
            if self._ahead is None:
                self._ahead = copy.deepcopy(self._scheduler)
            # None is cached like any other pick, so that an idle server calls `next` once.
            self._picked, self._has_picked = self._ahead.next(), True
        return self._picked

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Advance by a quantum, if it belongs to the stream."""
        # `pick` first: an earlier pick must make no difference.
        if stream_id == self.pick():
            self._scheduler.next()
            # The copy advanced when it picked, so both are in step again: a deep copy is needed
            # only after a change in between, not with every packet.
            self._has_picked = False

    def _targets(self) -> list[NextScheduler]:
        """Return the targets of a change: the copy too, unless it is ahead."""
        if self._has_picked:
            # Even a pick of None may have changed the copy.
            self._ahead, self._has_picked = None, False
        return [self._scheduler] if self._ahead is None else [self._scheduler, self._ahead]
