"""The streams that one endpoint sends: scheduling, retransmission, and the send buffer.

The server uses it for responses, the client for requests and frames of the control stream. Data in
the send buffer leaves first in, first out, whatever signals the scheduler gets in the meantime: the
larger the buffer, the less a late signal can change.

Read next, on the path of docs/reading.md: `h3sim/schedulers/static_priority.py`.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from h3sim.http.send_buffer import SendBuffer, SendBufferRefill
from h3sim.schedulers import LossObserver, Retransmit, SupportsRequeue
from h3sim.transport.endpoint import Source
from h3sim.values.constants import UNLIMITED_BYTES
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal
    from h3sim.transport.endpoint import FrameHeader
    from h3sim.transport.packets import StreamBytes


class OutgoingStream:
    """A stream of *size* bytes, of which flow control allows *limit* so far.

    Of them *available* exist, by default all.
    """

    __slots__ = (
        "_acked",
        "acked_end",
        "available",
        "has_ended",
        "is_active",
        "limit",
        "lost",
        "next",
        "size",
        "stop",
    )

    def __init__(self, size: int, limit: int, available: int | None = None) -> None:
        self.size = size
        self.available = size if available is None else available
        self.next = 0
        """The first byte never sent."""
        self.has_ended = False
        """True if its end was sent."""
        self.limit = limit
        self.stop = self.available if self.available < limit else limit
        """The end of the bytes that may be sent now; read with each packet, so an attribute."""
        self.lost: list[tuple[int, int]] = []
        """The spans to be retransmitted, lowest first."""
        self.acked_end = 0
        """The contiguous bytes acknowledged."""
        self._acked: Ranges | None = None
        """The acknowledged ranges, while they have holes."""
        self.is_active = False
        """True if it takes part in the scheduler."""

    def raise_limit(self, limit: int) -> None:
        """Raise the flow control limit to *limit*."""
        self.limit = limit
        self.stop = self.available if self.available < limit else limit

    def grow(self, n_bytes: int) -> None:
        """Add *n_bytes* to be sent, at its front."""
        self.size += n_bytes
        self.provide(self.available + n_bytes)

    def provide(self, available: int) -> None:
        """Make the first *available* bytes exist."""
        self.available = available
        self.raise_limit(self.limit)

    def has_new(self) -> bool:
        """Return whether it has new bytes that may be sent, or its end."""
        # A bare end of stream counts as data, too, and needs no flow control credit.
        return not self.has_ended and (self.next < self.stop or self.next == self.size)

    def next_span(self) -> tuple[int, int]:
        """Return the start of its next bytes, and the end of the contiguous span."""
        return self.lost[0] if self.lost else (self.next, self.size)

    def ack(self, offset: int, n_bytes: int) -> bool:
        """Record an acknowledgement; return whether the whole stream is acknowledged."""
        stop = offset + n_bytes
        acked = self._acked
        if acked is None and offset == self.acked_end:
            # Ranges are for holes: nearly all acknowledgements are in order, and cost a comparison.
            self.acked_end = stop
            return stop >= self.size and self.has_ended
        if stop > self.acked_end:
            if acked is None:
                acked = self._acked = Ranges()
                acked.add(0, self.acked_end)
            acked.add(offset, stop)
            self.acked_end = acked.contiguous
            if self.acked_end == acked.end:
                self._acked = None
        return self.has_ended and self.acked_end >= self.size

    def lose(self, offset: int, n_bytes: int) -> None:
        """Queue these bytes for retransmission, except acknowledged ones."""
        # Only the end was lost, which has no bytes and so no span.
        if not n_bytes and not self.size:
            self.has_ended = False
        for span in self.missing(offset, offset + n_bytes):
            insort(self.lost, span)

    def take_lost(self, max_bytes: int) -> tuple[int, int]:
        """Return the first bytes to retransmit, up to *max_bytes*: an offset and a length."""
        start, stop = self.lost[0]
        if stop - start > max_bytes:
            self.lost[0] = (start + max_bytes, stop)
            return start, max_bytes
        del self.lost[0]
        return start, stop - start

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the parts of a span that are neither acknowledged nor queued for retransmission.

        >>> stream = OutgoingStream(100, 100)
        >>> stream.lost = [(20, 30)]
        >>> stream.missing(10, 40)
        [(10, 20), (30, 40)]
        """
        acked = [(0, self.acked_end)] if self._acked is None else self._acked.spans()
        missing = []
        for span_start, span_stop in sorted([*acked, *self.lost]):
            if span_stop <= start:
                continue
            if span_start >= stop:
                break
            if span_start > start:
                missing.append((start, span_start))
            start = span_stop
        if start < stop:
            missing.append((start, stop))
        return missing


class SchedulerGroup:
    """The scheduler of new data and that of lost data, kept in step."""

    __slots__ = (
        "_loss_observer",
        "_lost",
        "_new",
        "_requeue_target",
        "block",
        "close",
        "open",
        "update",
    )

    def __init__(self, new: Scheduler, lost: Scheduler | None) -> None:
        self._new = new
        self._lost = lost
        # Most senders have one scheduler, which is then called directly.
        self.open: Callable[[int, Signal], None] = new.open
        """Open a stream, or (below 0) a placeholder."""
        self.update: Callable[[int, Signal], None] = new.update
        """Replace the signal of a stream or placeholder."""
        self.close: Callable[[int], None] = new.close
        """Forget a stream."""
        if lost is not None:
            self.open, self.update, self.close = self._open, self._update, self._close
        self._requeue_target = new if isinstance(new, SupportsRequeue) else None
        # A stream blocked by flow control may stay listed until it is next (`TreeScheduler`).
        self.block: Callable[[int], None] = getattr(new, "block", new.deactivate)
        self._loss_observer = new if isinstance(new, LossObserver) else None

    def on_lost(self) -> None:
        """Report a loss to a scheduler that observes losses."""
        if self._loss_observer is not None:
            self._loss_observer.on_lost()

    def requeue(self, stream_id: int) -> None:
        """Requeue an active stream; the scheduler defines its new position."""
        if self._requeue_target is not None:
            self._requeue_target.requeue(stream_id)
        else:
            self._new.deactivate(stream_id)
            self._new.activate(stream_id)

    # In place of `open`, `update` and `close` if there are two schedulers.

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
        """The scheduler of lost data, where there is one."""
        assert self._lost is not None  # noqa: S101 - only called with both
        return self._lost


class LostStreams:
    """Streams with lost bytes, by first loss; *scheduler* orders them for `PRIORITY`.

    >>> lost = LostStreams(Retransmit.FIRST)
    >>> lost.add(4); lost.add(0); lost.pick()
    4
    >>> lost.remove(4); lost.pick()
    0
    """

    __slots__ = ("_retransmit", "_scheduler", "ids")

    def __init__(self, retransmit: Retransmit, scheduler: Scheduler | None = None) -> None:
        self._retransmit = retransmit
        self._scheduler = scheduler
        self.ids: dict[int, None] = {}
        """Their IDs; public, since each packet checks whether there are any."""

    def add(self, stream_id: int) -> None:
        """Add a stream that lost bytes; it may be present already."""
        # A dict keeps the first insertion: `FIRST` orders by the first loss of each.
        self.ids.setdefault(stream_id)
        if self._scheduler is not None:
            self._scheduler.activate(stream_id)

    def remove(self, stream_id: int) -> None:
        """Remove a stream without bytes to retransmit."""
        del self.ids[stream_id]
        if self._scheduler is not None:
            self._scheduler.deactivate(stream_id)

    def charge(self, new_data: Scheduler, stream_id: int, n_bytes: int) -> None:
        """Charge a retransmission to the scheduler that picked it, that of new data or its own."""
        if self._retransmit is Retransmit.TURN:
            new_data.charge(stream_id, n_bytes)
        elif self._scheduler is not None:
            self._scheduler.charge(stream_id, n_bytes)

    def pick(self) -> int | None:
        """Return the stream to retransmit before all else; None without one, or for `TURN`."""
        if self._retransmit is Retransmit.FIRST:
            return next(iter(self.ids), None)
        return None if self._scheduler is None else self._scheduler.pick()


class StreamSender(Source):
    """A sender of streams, scheduled by *scheduler* in quanta of up to *turn_bytes*.

    *buffer_bytes* is the size of the send buffer, 0 for none. A quantum enters the buffer whole or
    not at all; an empty buffer takes any; *send_buffer_refill* sets when. With *lost_scheduler*
    (for `Retransmit.PRIORITY`), kept in step with *scheduler*, lost bytes are sent in its order.
    With *requeues* a stream is requeued when some of its bytes were acknowledged or lost. With
    *retains_until_acked* it counts as drained once all of it was acknowledged, else once sent.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> streams = StreamSender(FifoScheduler(), turn_bytes=1400)
    >>> streams.open(0, H2Priority()); streams.send(0, 2000)
    >>> streams.take(), streams.take(), streams.take()
    ((0, 0, 1400), (0, 1400, 600), None)
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        turn_bytes: int,
        buffer_bytes: int = 0,
        send_buffer_refill: SendBufferRefill = SendBufferRefill.CONTINUOUS,
        retransmit: Retransmit = Retransmit.TURN,
        requeues: bool = False,
        lost_scheduler: Scheduler | None = None,
        retains_until_acked: bool = False,
        stream_window_bytes: int = UNLIMITED_BYTES,
        connection_window_bytes: int = UNLIMITED_BYTES,
    ) -> None:
        self._scheduler = scheduler
        self._lost = LostStreams(retransmit, lost_scheduler)
        self._resends_in_turn = retransmit is Retransmit.TURN
        """True if a stream with lost bytes only is scheduled like one with new bytes."""
        self._requeues = requeues
        self._schedulers = SchedulerGroup(scheduler, lost_scheduler)
        self._turn_bytes = turn_bytes
        self._has_buffer = buffer_bytes > 0
        self._refills_continuously = send_buffer_refill is SendBufferRefill.CONTINUOUS
        self._retains_until_acked = retains_until_acked
        self._stream_window_bytes = stream_window_bytes
        self._connection_limit_bytes = connection_window_bytes
        """The peer's limit of new bytes on all streams, from the beginning of the connection."""
        self._credit_bytes = connection_window_bytes
        """The new bytes that may still be sent within that limit."""
        self._buffer = SendBuffer(buffer_bytes)
        self._outgoing: dict[int, OutgoingStream] = {}
        """The streams with data that is not drained yet."""
        self._available: dict[int, int] = {}
        """The bytes that exist of responses that are not queued yet, if not all do."""
        self._n_active = 0
        """The number of streams that are active in the scheduler."""
        self._is_changed = False
        self.has_data = False
        """True if `take` may return data, flow control permitting; read often, so an attribute."""
        self._drained: list[int] = []
        """The streams that `take_drained` will return."""
        self.has_drained = False
        """True if `take_drained` has a stream to return; read with each packet."""
        self._begin()

    def _begin(self) -> None:
        """Set up the state of a derived class; mypyc passes no keyword arguments to `super`."""

    @property
    def buffered_bytes(self) -> int:
        """Return the number of bytes in the send buffer, which the scheduler no longer orders."""
        return self._buffer.n_bytes

    def expect_change(self) -> None:
        """Reset `is_changed`, which then reports what changes from now on."""
        self._is_changed = False

    def is_changed(self) -> bool:
        """Return whether streams became ready, or got other signals, since `expect_change`."""
        return self._is_changed

    def waiting(self) -> list[tuple[int, int]]:
        """Return the streams with data that may be sent, by id, and their bytes not yet sent."""
        return sorted(
            (stream_id, stream.size - stream.next)
            for stream_id, stream in self._outgoing.items()
            if stream.is_active
        )

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open a stream (or, below 0, a placeholder) that has no data yet."""
        self._schedulers.open(stream_id, signal)

    def update(self, element_id: int, signal: Signal) -> None:
        """Replace the signal of an open stream or placeholder by *signal*."""
        self._is_changed = True
        self._schedulers.update(element_id, signal)

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:  # noqa: ARG002
        """Queue the *n_bytes* of a stream, which is all of its data.

        The first *header_bytes* are its HEADERS frame, which HTTP/3 sends like the rest.
        """
        available = self._available.pop(stream_id, None)
        stream = OutgoingStream(n_bytes, self._stream_window_bytes, available)
        self._outgoing[stream_id] = stream
        self._activate_if_ready(stream_id, stream)
        if self._has_buffer:
            self._fill()
        else:
            self._update_has_data()

    def provide(self, stream_id: int, available: int) -> None:
        """Make only the first *available* bytes of a stream exist, headers included.

        Called before `send`, and again for each later piece. Without a call all of them do.
        """
        stream = self._outgoing.get(stream_id)
        if stream is None:
            self._available[stream_id] = available
            return
        stream.provide(available)
        self._activate_if_ready(stream_id, stream)
        self._fill()

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that these bytes were acknowledged."""
        stream = self._outgoing.get(stream_id)
        if stream is None:
            return
        is_acked = stream.ack(offset, n_bytes)
        if self._requeues and stream.is_active:
            self._schedulers.requeue(stream_id)
        if is_acked:
            if stream.lost:  # bytes queued for retransmission arrived after all
                self._deactivate_if_done(stream_id, stream)
            self._drain(stream_id)

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Queue these bytes for retransmission, except acknowledged ones."""
        stream = self._outgoing.get(stream_id)
        if stream is None:
            return
        stream.lose(offset, n_bytes)
        self._schedulers.on_lost()
        if stream.lost:
            self._lost.add(stream_id)
        if self._requeues and stream.is_active:
            self._schedulers.requeue(stream_id)
        self._activate_if_ready(stream_id, stream)
        self._fill()

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Raise the client's limit to *limit_bytes* of a stream, or (None) of the connection."""
        if stream_id is None:
            # A limit counts from the connection's beginning (RFC 9000 § 4.1), credit from now on.
            if limit_bytes > self._connection_limit_bytes:
                self._credit_bytes += limit_bytes - self._connection_limit_bytes
                self._connection_limit_bytes = limit_bytes
                self._fill()
            return
        stream = self._outgoing.get(stream_id)
        if stream is not None and limit_bytes > stream.limit:
            stream.raise_limit(limit_bytes)
            self._activate_if_ready(stream_id, stream)
            self._fill()

    def close(self, stream_id: int) -> None:
        """Close a stream in the scheduler."""
        self._schedulers.close(stream_id)

    def take_drained(self) -> list[int]:
        """Return the streams drained since the last call."""
        drained, self._drained, self.has_drained = self._drained, [], False
        return drained

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> StreamBytes | None:
        """Return data for the next packet, or None without any.

        It is a stream, an offset and a number of bytes, 0 for a bare end of stream. The length of
        *header* for a frame from there is subtracted from *max_bytes*; None is returned if fewer
        than *min_bytes* would remain.
        """
        if not self._has_buffer:
            return self._next_quantum(max_bytes or self._turn_bytes, header, min_bytes)
        if not self._buffer and not self._refills_continuously:
            self._fill_up()
        chunk = self._buffer.take(max_bytes, header, min_bytes)
        if chunk is not None:
            self._fill()  # what leaves makes room
        return chunk

    def _next_quantum(
        self, max_bytes: int, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> StreamBytes | None:
        """Return one quantum of the scheduler."""
        # Without losses, as nearly always, the scheduler is called directly.
        stream_id = self._next_stream() if self._lost.ids else self._scheduler.pick()
        if stream_id is None:
            return None
        stream = self._outgoing[stream_id]
        lost = stream.lost
        offset = lost[0][0] if lost else stream.next  # the start of the first lost span
        if header is not None:
            max_bytes -= header.measure(stream_id, offset)
            if max_bytes < min_bytes:
                return None
        if lost:
            return self._take_lost(stream_id, stream, max_bytes)
        stop = stream.stop
        n_bytes = stop - offset
        if n_bytes > max_bytes:
            n_bytes = max_bytes
        credit_bytes = self._credit_bytes
        if n_bytes > credit_bytes:
            if not credit_bytes:
                return None
            n_bytes = credit_bytes
        self._credit_bytes = credit_bytes - n_bytes
        self._scheduler.charge(stream_id, n_bytes)  # while the stream is still active
        stream.next = end = offset + n_bytes
        if end >= stop:
            stream.has_ended = end == stream.size  # else `on_limit` wakes it
            self._deactivate_if_done(stream_id, stream)
            if stream.has_ended and not self._retains_until_acked:
                self._drain(stream_id)
        return stream_id, offset, n_bytes

    def _take_lost(self, stream_id: int, stream: OutgoingStream, max_bytes: int) -> StreamBytes:
        """Return the lowest lost bytes of a stream."""
        start, n_bytes = stream.take_lost(max_bytes)
        self._lost.charge(self._scheduler, stream_id, n_bytes)
        if not stream.lost:
            self._deactivate_if_done(stream_id, stream)
        return stream_id, start, n_bytes

    def _next_stream(self) -> int | None:
        """Return the stream to send from: lost data as retransmission orders it, else new."""
        lost_id = self._lost.pick() if self._lost.ids else None
        if lost_id is not None:
            return lost_id
        stream_id = self._scheduler.pick()
        if stream_id is None or self._credit_bytes:
            return stream_id
        # New data is blocked by flow control; lost data was counted when it was first sent.
        return stream_id if stream_id in self._lost.ids else next(iter(self._lost.ids), None)

    def _drain(self, stream_id: int) -> None:
        """Forget the data of a stream, and let `take_drained` report it."""
        del self._outgoing[stream_id]
        self._drained.append(stream_id)
        self.has_drained = True

    def _activate_if_ready(self, stream_id: int, stream: OutgoingStream) -> None:
        """Activate the stream if it has data that the scheduler may pick."""
        waits = stream.has_new() or (stream.lost and self._resends_in_turn)
        if waits and not stream.is_active:
            stream.is_active = True
            self._is_changed = True
            self._n_active += 1
            self._scheduler.activate(stream_id)

    def _deactivate_if_done(self, stream_id: int, stream: OutgoingStream) -> None:
        """Deactivate the stream if it has nothing left to send.

        Lost bytes have been retransmitted, which precedes new data, or have arrived after all.
        """
        if stream_id in self._lost.ids:
            self._lost.remove(stream_id)
        if stream.is_active and not stream.has_new():
            stream.is_active = False
            self._n_active -= 1
            # nghttp2 treats a stream without a window, or data for now, unlike a finished one.
            if stream.next < stream.size:
                self._schedulers.block(stream_id)
            else:
                self._scheduler.deactivate(stream_id)
        self._update_has_data()

    def _fill(self) -> None:
        """Refill the send buffer, if it refills continuously."""
        if self._has_buffer and self._refills_continuously:
            self._fill_up()
        self._update_has_data()

    def _fill_up(self) -> None:
        """Move quanta into the send buffer while complete ones fit."""
        while self._has_room() and (chunk := self._next_quantum(self._turn_bytes)) is not None:
            self._buffer.put(chunk)

    def _update_has_data(self) -> None:
        """Set `has_data`."""
        self.has_data = self._n_active > 0 or bool(self._lost.ids) or bool(self._buffer)

    def _has_room(self) -> bool:
        """Return whether the send buffer can take the next quantum as a whole."""
        stream_id = self._next_stream()
        if stream_id is None:
            return False
        start, stop = self._outgoing[stream_id].next_span()
        return self._buffer.has_room(min(stop - start, self._turn_bytes))
