"""What a server makes of signals that were sent, in whatever order they come."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from h3sim.http.priorities import StreamPriorities
from h3sim.signals import (
    DEFAULT_WEIGHT,
    ORPHANS,
    Eps,
    H2Priority,
    Signalling,
    StrictPriority,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.signals import Signal

__all__ = ["PriorityReceiver", "SchedulerUpdate"]


class SchedulerUpdate(NamedTuple):
    """What the scheduler is to be told: that *element_id* is *opened*, or that it has changed."""

    element_id: int
    signal: Signal
    opens: bool


# No function of Python, as there is one of these for each request.
_UPDATE: Callable[[tuple[int, Signal, bool]], SchedulerUpdate]
_UPDATE = partial(tuple.__new__, SchedulerUpdate)


class PriorityReceiver:
    """Puts together what requests and the control stream say.

    Of two words about a stream that of the control stream counts, since it was sent later. A node
    of the tree may be spoken of before its request comes: it is opened then, so that others can
    depend on it. A stream of another kind of scheduler is opened with its request.

    A parent that was closed is not waited for: who depends on it has the default parent in HTTP/3,
    the root before draft-22 and the orphan placeholder from then on. In HTTP/2 that is left to the
    tree (RFC 7540 § 5.3.1). *default_weight* is what has not been spoken of.

    >>> receiver = PriorityReceiver(Signalling.DRAFT_22)
    >>> receiver.on_request(0, None)[0].signal.depends_on == ORPHANS
    True
    >>> receiver.on_message(0, H2Priority(weight=7))[0].opens
    False
    """

    def __init__(self, signalling: Signalling, *, default_weight: int = DEFAULT_WEIGHT) -> None:
        self._signalling = signalling
        parent = ORPHANS if signalling is Signalling.DRAFT_22 else None
        self._default = H2Priority(weight=default_weight, depends_on=parent)
        self._open: dict[int, None] = {}
        self._requested: dict[int, None] = {}
        self._eps = StreamPriorities()

    def on_request(self, stream_id: int, signal: Signal | None) -> list[SchedulerUpdate]:
        """Take a request, with what it says of itself."""
        self._requested[stream_id] = None
        if isinstance(signal, Eps):
            said = self._eps.open(stream_id, signal)[0][1]
            return [_UPDATE((stream_id, said, True))]
        if stream_id in self._open:
            return []
        self._open[stream_id] = None
        wanted = self._default if signal is None else self._placed(signal)
        return [_UPDATE((stream_id, wanted, True))]

    def on_message(self, element_id: int, signal: Signal) -> list[SchedulerUpdate]:
        """Take a frame of the control stream."""
        if isinstance(signal, Eps):
            changes = self._eps.update(element_id, signal)
            return [SchedulerUpdate(*change, opens=False) for change in changes]
        if element_id in self._open:
            return [SchedulerUpdate(element_id, self._placed(signal), opens=False)]
        if element_id in self._requested or not isinstance(signal, H2Priority | StrictPriority):
            return []  # it is closed already, or would open a stream that sends nothing yet
        self._open[element_id] = None
        return [SchedulerUpdate(element_id, self._placed(signal), opens=True)]

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream; what comes for it from now on is dropped."""
        if stream_id in self._open:
            del self._open[stream_id]
        else:
            self._eps.on_closed(stream_id)

    def _placed(self, signal: Signal) -> Signal:
        """Return what is wanted, below the default parent where another was closed."""
        if self._signalling is Signalling.H2 or not isinstance(signal, H2Priority):
            return signal
        parent = signal.depends_on
        if parent is None or parent in self._open or parent not in self._requested:
            return signal
        # Without `exclusive`: it was to take over the children of a parent that has gone, and not
        # those of the root.
        return replace(signal, depends_on=self._default.depends_on, exclusive=False)
