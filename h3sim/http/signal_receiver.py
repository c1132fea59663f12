"""Priority state of a server's streams, from signals in any order (RFC 9218)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from h3sim.http.priority_field import is_well_formed, merge_priority, parse_priority
from h3sim.signals import (
    DEFAULT_WEIGHT,
    ORPHANS,
    Eps,
    H2Priority,
    Signalling,
    StrictPriority,
    WithoutSignal,
)
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.errors import H3SimError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.signals import Signal, SignalChange


_MAX_BUFFERED_FRAMES: Final = 128
"""The default limit of PRIORITY_UPDATE frames that wait for their requests."""
_UNSIGNALLED: Final = Eps()
"""The default value, which a client signals by sending no field."""
_INCREMENTAL: Final = Eps(incremental=True)
"""The reading of that by a server that shares unless it is told otherwise."""


class PriorityFrameError(H3SimError, ValueError):
    """A PRIORITY_UPDATE frame that ends the connection; `code` is the error's name."""

    def __init__(self, code: str, stream_id: int, reason: str) -> None:
        self.code = code
        self.stream_id = stream_id
        self.reason = reason
        super().__init__(f"{code}: PRIORITY_UPDATE for stream {stream_id} {reason}")

    def __reduce__(self) -> tuple[type[PriorityFrameError], tuple[str, int, str]]:
        return type(self), (self.code, self.stream_id, self.reason)


class StreamPriorities:
    """Priority state by stream: turns fields and frames into signals for a scheduler.

    `open` and `update` take values; `on_request` and `on_priority_update` take them as text.

    A PRIORITY_UPDATE frame replaces all earlier signals, the origin's as well (RFC 9218
    § 7: it overrides any other signal). One that arrives before its request is buffered, the latest
    per stream, and used instead of the request's field. At most *max_buffered* are kept; then
    the oldest is dropped (§ 7 leaves the number to the server). Frames for streams
    that were closed are dropped, and so are frames whose text is not well-formed (§ 7 lets a
    server end the connection instead).

    *max_streams* is the number of request streams that the client may open in all, None for any
    (HTTP/3); *max_concurrent* the value of SETTINGS_MAX_CONCURRENT_STREAMS (HTTP/2).

    >>> priorities = StreamPriorities()
    >>> priorities.on_priority_update(0, "u=1")
    []
    >>> priorities.on_request(0, "u=5, i")
    [(0, Eps(urgency=1, incremental=False))]
    >>> priorities.on_response(0, "i")
    [(0, Eps(urgency=1, incremental=True))]
    """

    def __init__(
        self,
        *,
        max_streams: int | None = None,
        max_concurrent: int | None = None,
        max_buffered: int = _MAX_BUFFERED_FRAMES,
    ) -> None:
        self._max_streams = max_streams
        self._max_concurrent = max_concurrent
        self._max_buffered = max_buffered
        self._open: dict[int, Eps] = {}
        """The effective priority of each open stream."""
        self._buffered: dict[int, Eps] = {}
        """The priorities in frames that wait for their requests, the oldest frame first."""
        self._closed: set[int] = set()
        """Streams whose late frames are dropped."""

    @property
    def buffered(self) -> tuple[int, ...]:
        """The streams with a buffered frame but without a request, the oldest frame first."""
        return tuple(self._buffered)

    def on_request(self, stream_id: int, field: str | None) -> list[SignalChange]:
        """Open a stream whose request has that Priority field, or None; return its signal."""
        return self.open(stream_id, parse_priority(field or ""))

    def open(self, stream_id: int, priority: Eps) -> list[SignalChange]:
        """Open a stream with its request's priority; an earlier frame takes precedence."""
        effective = self._buffered.pop(stream_id, None)
        if effective is None:
            effective = priority
        self._open[stream_id] = effective
        return [(stream_id, effective)]

    def on_priority_update(self, stream_id: int, field: str) -> list[SignalChange]:
        """Handle a PRIORITY_UPDATE frame; return the changes for the scheduler.

        Raises:
            PriorityFrameError: H3_ID_ERROR, if the stream cannot carry a request or is beyond
                *max_streams* (RFC 9218 § 7.2); PROTOCOL_ERROR, if it makes the streams that are
                open or buffered more than *max_concurrent* (§ 7.1).
        """
        self._check_stream(stream_id)
        return self.update(stream_id, parse_priority(field)) if is_well_formed(field) else []

    def update(self, stream_id: int, priority: Eps) -> list[SignalChange]:
        """Apply the priority of a frame; return the changes for the scheduler."""
        if stream_id in self._open:
            return self._change(stream_id, priority)
        if stream_id not in self._closed:
            self._buffer_frame(stream_id, priority)
        return []

    def on_response(self, stream_id: int, field: str | None) -> list[SignalChange]:
        """Merge the origin's Priority field, or None, with the client's priority (§ 8)."""
        if stream_id not in self._open or field is None:
            return []
        return self._change(stream_id, merge_priority(self._open[stream_id], field))

    def on_closed(self, stream_id: int) -> None:
        """Forget an open stream; later frames for it are dropped."""
        del self._open[stream_id]
        self._closed.add(stream_id)

    def priority_of(self, stream_id: int) -> Eps:
        """Return the effective priority of an open stream."""
        return self._open[stream_id]

    def _change(self, stream_id: int, priority: Eps) -> list[SignalChange]:
        """Set the priority of an open stream; return the change, if it is one."""
        before, self._open[stream_id] = self._open[stream_id], priority
        return [] if priority == before else [(stream_id, priority)]

    def _buffer_frame(self, stream_id: int, priority: Eps) -> None:
        """Keep a PRIORITY_UPDATE that arrived before its request."""
        # Reinserted at the end, so that the first entry is the oldest.
        self._buffered.pop(stream_id, None)
        # RFC 9218 § 7.1: idle streams with a buffered frame count as open ones do, or a client
        # could make a server buffer any number.
        n_streams = len(self._open) + len(self._buffered)
        if self._max_concurrent is not None and n_streams >= self._max_concurrent:
            reason = f"makes more than {self._max_concurrent} streams"
            raise PriorityFrameError("PROTOCOL_ERROR", stream_id, reason)
        self._buffered[stream_id] = priority
        if len(self._buffered) > self._max_buffered:
            del self._buffered[next(iter(self._buffered))]

    def _check_stream(self, stream_id: int) -> None:
        """Raise an error if a frame is for no stream that could carry a request."""
        if stream_id < 0 or stream_id % STREAM_ID_STEP:
            raise PriorityFrameError("H3_ID_ERROR", stream_id, "is not for a request stream")
        limit = self._max_streams
        if limit is not None and stream_id >= STREAM_ID_STEP * limit:
            raise PriorityFrameError("H3_ID_ERROR", stream_id, f"is beyond the limit of {limit}")


class DefaultPriority:
    """The server's interpretation of missing priority signals, per connection (RFC 9218 § 4).

    >>> defaults = DefaultPriority(WithoutSignal.INCREMENTAL_UNTIL_SIGNAL)
    >>> [defaults.of_request(signal).incremental for signal in (Eps(), Eps(urgency=1), Eps())]
    [True, False, False]
    """

    def __init__(self, without_signal: WithoutSignal) -> None:
        self._is_incremental = without_signal is not WithoutSignal.NOT_INCREMENTAL
        """True if a request without a field counts as incremental now."""
        self._stays_incremental = without_signal is WithoutSignal.INCREMENTAL
        """True if that also holds after the client has sent a signal."""

    def of_request(self, priority: Eps) -> Eps:
        """Return the priority of a request; the default value means that it has no field."""
        if priority != _UNSIGNALLED:
            self._is_incremental = self._stays_incremental
        elif self._is_incremental:
            return _INCREMENTAL
        return priority

    def of_update(self, priority: Eps) -> Eps:
        """Return the priority of a PRIORITY_UPDATE frame, which is a signal even if it is empty."""
        self._is_incremental = self._stays_incremental
        return self.of_request(priority)


class SchedulerUpdate(NamedTuple):
    """A call of the scheduler: *element_id* is opened, or updated."""

    element_id: int
    signal: Signal
    opens: bool


# From a plain tuple, without calling a Python function: there is one of these per request.
_SCHEDULER_UPDATE: Callable[[tuple[int, Signal, bool]], SchedulerUpdate]
_SCHEDULER_UPDATE = partial(tuple.__new__, SchedulerUpdate)


class PriorityReceiver:
    """The server's receiver of signals in requests and on the control stream.

    Of two signals for a stream that of the control stream takes precedence, since it was sent
    later. A tree node may get a signal before its request arrives: it is opened then, so that
    others can depend on it. A stream of another kind of scheduler is opened with its request.

    A stream whose parent was closed gets the default parent in HTTP/3: the orphan placeholder where
    there is one (draft-22), else the root. In HTTP/2 the tree decides (RFC 7540 § 5.3.1).
    *default_weight* is the weight of streams without a signal. EPS signals with the default value
    are not sent; *without_signal* defines how the server interprets that.

    >>> receiver = PriorityReceiver(Signalling.DRAFT_22)
    >>> receiver.on_request(0, None)[0].signal.depends_on == ORPHANS
    True
    >>> receiver.on_message(0, H2Priority(weight=7))[0].opens
    False
    """

    def __init__(
        self,
        signalling: Signalling,
        *,
        default_weight: int = DEFAULT_WEIGHT,
        without_signal: WithoutSignal = WithoutSignal.NOT_INCREMENTAL,
    ) -> None:
        self._signalling = signalling
        self._defaults = DefaultPriority(without_signal)
        parent = ORPHANS if signalling is Signalling.DRAFT_22 else None
        self._default = H2Priority(weight=default_weight, depends_on=parent)
        """The priority of a request without a signal."""
        self._open: dict[int, None] = {}
        """Elements that were opened in the scheduler, without those of EPS."""
        self._requested: dict[int, None] = {}
        """Streams whose requests have arrived, closed ones included."""
        self._eps = StreamPriorities()

    def on_request(self, stream_id: int, signal: Signal | None) -> list[SchedulerUpdate]:
        """Handle a request, with the signal that it carries."""
        self._requested[stream_id] = None
        if isinstance(signal, Eps):
            ((_, effective),) = self._eps.open(stream_id, self._defaults.of_request(signal))
            return [_SCHEDULER_UPDATE((stream_id, effective, True))]
        if stream_id in self._open:
            return []
        self._open[stream_id] = None
        priority = self._default if signal is None else self._with_valid_parent(signal)
        return [_SCHEDULER_UPDATE((stream_id, priority, True))]

    def on_message(self, element_id: int, signal: Signal) -> list[SchedulerUpdate]:
        """Handle a frame of the control stream."""
        if isinstance(signal, Eps):
            changes = self._eps.update(element_id, self._defaults.of_update(signal))
            return [SchedulerUpdate(*change, opens=False) for change in changes]
        if element_id in self._open:
            return [SchedulerUpdate(element_id, self._with_valid_parent(signal), opens=False)]
        if element_id in self._requested or not isinstance(signal, H2Priority | StrictPriority):
            return []  # already closed, or a signal that cannot open a stream before its request
        self._open[element_id] = None
        return [SchedulerUpdate(element_id, self._with_valid_parent(signal), opens=True)]

    def on_closed(self, stream_id: int) -> None:
        """Forget a stream; later frames for it are dropped."""
        if stream_id in self._open:
            del self._open[stream_id]
        else:
            self._eps.on_closed(stream_id)

    def _with_valid_parent(self, signal: Signal) -> Signal:
        """Return the signal, with the default parent if its own was closed."""
        if self._signalling is Signalling.H2 or not isinstance(signal, H2Priority):
            return signal
        parent = signal.depends_on
        if parent is None or parent in self._open or parent not in self._requested:
            return signal
        # Without `exclusive`: it applied to the children of the closed parent, not to those of the
        # root.
        return replace(signal, depends_on=self._default.depends_on, exclusive=False)
