"""The streams that one end sends: a scheduler says whose bytes go next, a buffer takes them in.

The server sends responses so, the client requests and frames of the control stream. What has
entered the send buffer leaves in the order in which it entered, whatever the scheduler learns in
the meantime: the larger the buffer, the less a late signal can change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.http.lost_streams import LostStreams
from h3sim.http.outgoing_stream import OutgoingStream
from h3sim.http.scheduler_group import SchedulerGroup
from h3sim.http.send_buffer import SendBuffer, SendBufferRefill
from h3sim.protocol import UNLIMITED_BYTES
from h3sim.schedulers import Retransmit
from h3sim.transport.endpoint import Source

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal
    from h3sim.transport.endpoint import FrameHeader
    from h3sim.transport.packets import StreamBytes

__all__ = ["Retransmit", "StreamSender"]


class StreamSender(Source):
    """Gives out bytes of streams as *scheduler* says, a turn of up to *turn_bytes* at a time.

    *buffer_bytes* is the size of the send buffer, 0 for none. A turn enters the buffer whole or
    not at all; an empty buffer takes any; *send_buffer_refill* says when. With
    *lost_scheduler* (for `Retransmit.PRIORITY`), which is told all that *scheduler* is told, lost
    bytes go in its order. With *requeues* a stream joins the scheduler anew when some of its
    bytes were acknowledged or lost. With *keeps_unacked* a stream counts as drained once
    all of it was acknowledged, else once all of it was given out.

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
        keeps_unacked: bool = False,
        stream_window_bytes: int = UNLIMITED_BYTES,
        connection_window_bytes: int = UNLIMITED_BYTES,
    ) -> None:
        self._scheduler = scheduler
        self._lost = LostStreams(retransmit, lost_scheduler)
        self._lost_wait_turns = retransmit is Retransmit.TURN
        self._requeues = requeues
        self._schedulers = SchedulerGroup(scheduler, lost_scheduler)
        self._turn_bytes = turn_bytes
        self._has_buffer = buffer_bytes > 0
        self._refills = send_buffer_refill is SendBufferRefill.CONTINUOUS
        self._keeps_unacked = keeps_unacked
        self._stream_window_bytes = stream_window_bytes
        self._connection_limit_bytes = connection_window_bytes
        self._credit_bytes = connection_window_bytes
        self._buffer = SendBuffer(buffer_bytes)
        self._outgoing: dict[int, OutgoingStream] = {}
        self._n_active = 0
        self.has_data = False
        """Whether `take` may give something out, if flow control lets it; asked often, so kept."""
        self._drained: list[int] = []
        self.has_drained = False
        """Whether `take_drained` has a stream to return; asked for with each packet, so kept."""
        self._begin()

    def _begin(self) -> None:
        """Set up what a derived class keeps besides; mypyc passes no options on to `super`."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up a stream (or, below 0, a placeholder) that has nothing to send yet."""
        self._schedulers.open(stream_id, signal)

    def update(self, element_id: int, signal: Signal) -> None:
        """Replace the signal of an open stream or placeholder by *signal*."""
        self._schedulers.update(element_id, signal)

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:  # noqa: ARG002
        """Give a stream *n_bytes* to send, which is all it will ever have.

        The first *header_bytes* are its HEADERS frame, which in HTTP/3 goes as the rest does.
        """
        stream = OutgoingStream(n_bytes, self._stream_window_bytes)
        self._outgoing[stream_id] = stream
        self._wake(stream_id, stream)
        if self._has_buffer:
            self._fill()
        else:
            self._note_data()

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that the client has these bytes for good."""
        stream = self._outgoing.get(stream_id)
        if stream is None:
            return
        is_acked = stream.ack(offset, n_bytes)
        if self._requeues and stream.is_active:
            self._schedulers.requeue(stream_id)
        if is_acked:
            if stream.lost:  # bytes that were to go again came after all
                self._rest(stream_id, stream)
            self._drain(stream_id)

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be given out again unless they have arrived after all."""
        stream = self._outgoing.get(stream_id)
        if stream is None:
            return
        stream.lose(offset, n_bytes)
        self._schedulers.on_lost()
        if stream.lost:
            self._lost.add(stream_id)
        if self._requeues and stream.is_active:
            self._schedulers.requeue(stream_id)
        self._wake(stream_id, stream)
        self._fill()

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Raise the client's limit to *limit_bytes* of a stream, or (None) of all together."""
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
            self._wake(stream_id, stream)
            self._fill()

    def close(self, stream_id: int) -> None:
        """Make the scheduler forget a stream."""
        self._schedulers.close(stream_id)

    def take_drained(self) -> list[int]:
        """Return the streams that were done with since this was last asked."""
        drained, self._drained, self.has_drained = self._drained, [], False
        return drained

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, least: int = 0
    ) -> StreamBytes | None:
        """Return what goes into the next packet, or None where there is nothing to send.

        That is a stream, an offset and a number of bytes, 0 for the end of a stream without any.
        The length that *header* says a frame from there has is taken off *max_bytes*; None is
        returned where fewer than *least* bytes would be left.
        """
        if not self._has_buffer:
            return self._turn(max_bytes or self._turn_bytes, header, least)
        if not self._buffer and not self._refills:
            self._fill_up()
        chunk = self._buffer.take(max_bytes, header, least)
        if chunk is not None:
            self._fill()
        return chunk

    def _turn(
        self, max_bytes: int, header: FrameHeader | None = None, least: int = 0
    ) -> StreamBytes | None:
        """Give out one turn of the scheduler."""
        # Without losses, as nearly always, the scheduler is asked without a step between.
        stream_id = self._next_stream() if self._lost.ids else self._scheduler.pick()
        if stream_id is None:
            return None
        stream = self._outgoing[stream_id]
        lost = stream.lost
        offset = lost[0][0] if lost else stream.next
        if header is not None:
            max_bytes -= header.measure(stream_id, offset)
            if max_bytes < least:
                return None
        if lost:
            return self._again(stream_id, stream, max_bytes)
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
        self._scheduler.charge(stream_id, n_bytes)  # while the stream is active still
        stream.next = end = offset + n_bytes
        if end >= stop:
            stream.has_ended = end == stream.size  # else `on_limit` wakes it
            self._rest(stream_id, stream)
            if stream.has_ended and not self._keeps_unacked:
                self._drain(stream_id)
        return stream_id, offset, n_bytes

    def _again(self, stream_id: int, stream: OutgoingStream, max_bytes: int) -> StreamBytes:
        """Give out the lowest bytes of a stream that were lost."""
        start, n_bytes = stream.take_lost(max_bytes)
        self._lost.charge(self._scheduler, stream_id, n_bytes)
        if not stream.lost:
            self._rest(stream_id, stream)
        return stream_id, start, n_bytes

    def _next_stream(self) -> int | None:
        lost_id = self._lost.pick() if self._lost.ids else None
        if lost_id is not None:
            return lost_id
        stream_id = self._scheduler.pick()
        if stream_id is None or self._credit_bytes:
            return stream_id
        # Nothing new may go; what was lost has been counted already.
        return stream_id if stream_id in self._lost.ids else next(iter(self._lost.ids), None)

    def _drain(self, stream_id: int) -> None:
        del self._outgoing[stream_id]
        self._drained.append(stream_id)
        self.has_drained = True

    def _wake(self, stream_id: int, stream: OutgoingStream) -> None:
        """Activate the stream if it has something that may go in its turn."""
        waits = stream.has_new() or (stream.lost and self._lost_wait_turns)
        if waits and not stream.is_active:
            stream.is_active = True
            self._n_active += 1
            self._scheduler.activate(stream_id)

    def _rest(self, stream_id: int, stream: OutgoingStream) -> None:
        """Take the stream out of the running where nothing is left to give out.

        Of what was lost nothing is left: it has gone again, before anything new, or come after all.
        """
        if stream_id in self._lost.ids:
            self._lost.remove(stream_id)
        if stream.is_active and not stream.has_new():
            stream.is_active = False
            self._n_active -= 1
            is_blocked = stream.next < stream.size  # not done: to nghttp2 that is not the same
            (self._schedulers.block if is_blocked else self._scheduler.deactivate)(stream_id)
        self._note_data()

    def _fill(self) -> None:
        """Refill the send buffer, if it is one that takes something in at any time."""
        if self._has_buffer and self._refills:
            self._fill_up()
        self._note_data()

    def _fill_up(self) -> None:
        """Put turns into the send buffer, as far as whole ones fit."""
        while self._has_room() and (chunk := self._turn(self._turn_bytes)) is not None:
            self._buffer.put(chunk)

    def _note_data(self) -> None:
        self.has_data = self._n_active > 0 or bool(self._lost.ids) or bool(self._buffer)

    def _has_room(self) -> bool:
        stream_id = self._next_stream()
        if stream_id is None:
            return False
        start, stop = self._outgoing[stream_id].next_span()
        return self._buffer.has_room(min(stop - start, self._turn_bytes))
