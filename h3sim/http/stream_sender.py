"""A server: responses wait, a scheduler says whose bytes go next, a send buffer takes them in.

What has entered the send buffer leaves in the order in which it entered, whatever the scheduler
learns in the meantime: the larger the buffer, the less a late signal can change.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from h3sim.ranges import Ranges
from h3sim.schedulers import Requeuing, Retransmit
from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["RETENTION_NS", "Retransmit", "StreamSender"]

RETENTION_NS = 500 * NS_PER_MS
"""How long a stream stays in the scheduler after its last chunk was given out (Marx 2019's code).

Later streams may still be placed relative to it, and Parallel+ and Serial+ give up their
restraint only when it is gone."""

_UNLIMITED = 2**62

HeaderBytes = Callable[[int, int], int]
"""How long the header of a frame is that begins at an offset of a stream."""


class _Response:
    """What is left to send of one response."""

    __slots__ = ("acked", "has_ended", "is_active", "limit", "lost", "next", "size")

    def __init__(self, size: int, limit: int) -> None:
        self.size = size
        self.next = 0
        """The first byte that was never given out."""
        self.has_ended = False
        """Whether its end was given out."""
        self.limit = limit
        self.lost: list[tuple[int, int]] = []
        """What was given out and must go again, lowest first."""
        self.acked: Ranges | None = None
        self.is_active = False

    def has_new(self) -> bool:
        return not self.has_ended and (self.next < self.limit or self.next == self.size)


class StreamSender:
    """Answers requests through *scheduler*, one turn of up to *turn_bytes* at a time.

    *buffer_bytes* is the size of the send buffer, 0 for none. A turn enters the buffer whole or
    not at all; an empty buffer takes any. With *lost_scheduler* (for `Retransmit.PRIORITY`), which
    is told all that *scheduler* is told, lost bytes go in its order. With *requeues* a stream joins
    the scheduler anew when some of its bytes were acknowledged or lost. With *keeps_unacked* a
    stream counts as drained once all of it was acknowledged, else once all of it was given out.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> server = StreamSender(FifoScheduler(), turn_bytes=1400)
    >>> server.on_request(0, H2Priority())
    >>> server.on_response(0, 2000)
    >>> server.take(), server.take(), server.take()
    ((0, 0, 1400), (0, 1400, 600), None)
    """

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        turn_bytes: int,
        buffer_bytes: int = 0,
        retransmit: Retransmit = Retransmit.TURN,
        requeues: bool = False,
        lost_scheduler: Scheduler | None = None,
        keeps_unacked: bool = False,
        stream_window_bytes: int = _UNLIMITED,
        connection_window_bytes: int = _UNLIMITED,
    ) -> None:
        self._scheduler = scheduler
        self._lost_scheduler = lost_scheduler
        self._retransmit = retransmit
        self._requeues = requeues
        self._line = scheduler if isinstance(scheduler, Requeuing) else None
        self._turn_bytes = turn_bytes
        self._buffer_bytes = buffer_bytes
        self._keeps_unacked = keeps_unacked
        self._stream_window_bytes = stream_window_bytes
        self._connection_limit_bytes = connection_window_bytes
        self._credit_bytes = connection_window_bytes
        self._buffer: deque[tuple[int, int, int]] = deque()
        self._buffered_bytes = 0
        self._responses: dict[int, _Response] = {}
        self._with_lost: dict[int, None] = {}
        self._n_active = 0
        self.has_data = False
        """Whether `take` may give something out; flow control may still forbid it.

        Asked for with each packet, so it is kept and not worked out each time."""
        self._drained: list[int] = []
        self.has_drained = False
        """Whether `take_drained` has a stream to return; asked for with each packet, so kept."""

    # What it is told

    def on_request(self, stream_id: int, signal: Signal) -> None:
        """Open a stream (or, below 0, a placeholder) whose response is not ready yet."""
        for scheduler in self._schedulers():
            scheduler.open(stream_id, signal)

    def on_signal(self, element_id: int, signal: Signal) -> None:
        """Let *signal* replace what was wanted for an open stream or placeholder."""
        for scheduler in self._schedulers():
            scheduler.update(element_id, signal)

    def on_response(self, stream_id: int, n_bytes: int) -> None:
        """Let the response of a stream, *n_bytes* in all, be ready to be sent."""
        response = _Response(n_bytes, self._stream_window_bytes)
        self._responses[stream_id] = response
        self._wake(stream_id, response)
        self._fill()

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Let the client have these bytes for good."""
        response = self._responses.get(stream_id)
        if response is None:
            return
        if response.acked is None:
            response.acked = Ranges()
        response.acked.add(offset, offset + n_bytes)
        if self._requeues:
            self._requeue(stream_id, response)
        if response.has_ended and response.acked.contiguous >= response.size:
            if response.lost:
                response.lost.clear()
                self._rest(stream_id, response)
            del self._responses[stream_id]
            self._note_drained(stream_id)

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be given out again unless they have arrived after all."""
        response = self._responses.get(stream_id)
        if response is None:
            return
        missing = _without(offset, offset + n_bytes, response)
        if not n_bytes and not response.size:
            response.has_ended = False
        for span in missing:
            insort(response.lost, span)
        if response.lost:
            self._with_lost.setdefault(stream_id)
            if self._lost_scheduler is not None:
                self._lost_scheduler.activate(stream_id)
        if self._requeues:
            self._requeue(stream_id, response)
        self._wake(stream_id, response)
        self._fill()

    def on_limit(self, stream_id: int | None, limit_bytes: int) -> None:
        """Let the client take up to *limit_bytes* of a stream, or (None) of all together."""
        if stream_id is None:
            # A limit counts from the connection's beginning (RFC 9000 § 4.1), credit from now on.
            if limit_bytes > self._connection_limit_bytes:
                self._credit_bytes += limit_bytes - self._connection_limit_bytes
                self._connection_limit_bytes = limit_bytes
                self._fill()
            return
        response = self._responses.get(stream_id)
        if response is not None and limit_bytes > response.limit:
            response.limit = limit_bytes
            self._wake(stream_id, response)
            self._fill()

    def on_closed(self, stream_id: int) -> None:
        """Let the scheduler forget a stream."""
        for scheduler in self._schedulers():
            scheduler.close(stream_id)

    def take_drained(self) -> list[int]:
        """Return the streams that were done with since this was last asked."""
        drained, self._drained, self.has_drained = self._drained, [], False
        return drained

    # What it gives out

    def peek(self) -> tuple[int, int] | None:
        """Return the stream and the offset that `take` would give, or None; changes nothing."""
        if self._buffer:
            return self._buffer[0][:2]
        stream_id = self._next_stream()
        if stream_id is None:
            return None
        response = self._responses[stream_id]
        return stream_id, response.lost[0][0] if response.lost else response.next

    def take(
        self, max_bytes: int | None = None, header: HeaderBytes | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        """Return what goes into the next packet, or None where there is nothing to send.

        That is a stream, an offset and a number of bytes. A response without a byte goes as 0
        bytes: the packet that says that it has ended. With *header*, which says how long the header
        of a frame from that offset is, that length is taken off *max_bytes*; None is returned where
        fewer than *least* bytes would be left.
        """
        if not self._buffer_bytes:
            return self._turn(max_bytes or self._turn_bytes, header, least)
        if not self._buffer:
            return None
        stream_id, offset, n_bytes = self._buffer[0]
        if header is not None and max_bytes is not None:
            max_bytes -= header(stream_id, offset)
            if max_bytes < least:
                return None
        self._buffer.popleft()
        if max_bytes is not None and n_bytes > max_bytes:
            self._buffer.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            n_bytes = max_bytes
        self._buffered_bytes -= n_bytes
        self._fill()
        return stream_id, offset, n_bytes

    def _turn(
        self, max_bytes: int, header: HeaderBytes | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        """Let the scheduler give one turn."""
        stream_id = self._next_stream() if self._with_lost else self._scheduler.pick()
        if stream_id is None:
            return None
        response = self._responses[stream_id]
        offset = response.lost[0][0] if response.lost else response.next
        if header is not None:
            max_bytes -= header(stream_id, offset)
            if max_bytes < least:
                return None
        if response.lost:
            return self._again(stream_id, response, max_bytes)
        n_bytes = (response.size if response.size < response.limit else response.limit) - offset
        if n_bytes > max_bytes:
            n_bytes = max_bytes
        if n_bytes > self._credit_bytes:
            n_bytes = self._credit_bytes
            if not n_bytes:
                return None
        self._credit_bytes -= n_bytes
        self._scheduler.charge(stream_id, n_bytes)
        response.next = offset + n_bytes
        if response.next == response.size:
            response.has_ended = True
            self._rest(stream_id, response)
            if not self._keeps_unacked:
                del self._responses[stream_id]
                self._note_drained(stream_id)
        elif response.next >= response.limit:
            self._rest(stream_id, response)
        return stream_id, offset, n_bytes

    def _again(self, stream_id: int, response: _Response, max_bytes: int) -> tuple[int, int, int]:
        """Give out the lowest bytes of a stream that were lost."""
        start, stop = response.lost[0]
        n_bytes = min(stop - start, max_bytes)
        if self._retransmit is Retransmit.TURN:
            self._scheduler.charge(stream_id, n_bytes)
        elif self._lost_scheduler is not None:
            self._lost_scheduler.charge(stream_id, n_bytes)
        if start + n_bytes < stop:
            response.lost[0] = (start + n_bytes, stop)
        else:
            response.lost.pop(0)
            if not response.lost:
                self._rest(stream_id, response)
        return stream_id, start, n_bytes

    def _next_stream(self) -> int | None:
        if self._with_lost:
            if self._retransmit is Retransmit.FIRST:
                return next(iter(self._with_lost))
            if self._lost_scheduler is not None:
                return self._lost_scheduler.pick()
        stream_id = self._scheduler.pick()
        if stream_id is None or self._credit_bytes:
            return stream_id
        # Nothing new may go; what was lost has been counted already.
        if stream_id in self._with_lost:
            return stream_id
        return next(iter(self._with_lost), None)

    def _note_drained(self, stream_id: int) -> None:
        self._drained.append(stream_id)
        self.has_drained = True

    def _schedulers(self) -> tuple[Scheduler, ...]:
        lost = self._lost_scheduler
        return (self._scheduler,) if lost is None else (self._scheduler, lost)

    def _requeue(self, stream_id: int, response: _Response) -> None:
        """Let the stream join the others anew; where that is, is the scheduler's business."""
        if not response.is_active:
            return
        if self._line is not None:
            self._line.requeue(stream_id)
        else:
            self._scheduler.deactivate(stream_id)
            self._scheduler.activate(stream_id)

    def _wake(self, stream_id: int, response: _Response) -> None:
        """Let the stream take part if it has something that may go in its turn."""
        waits = response.has_new() or (response.lost and self._retransmit is Retransmit.TURN)
        if waits and not response.is_active:
            response.is_active = True
            self._n_active += 1
            self._scheduler.activate(stream_id)

    def _rest(self, stream_id: int, response: _Response) -> None:
        """Take the stream out of the running where nothing is left to give out."""
        if not response.lost and self._with_lost and stream_id in self._with_lost:
            del self._with_lost[stream_id]
            if self._lost_scheduler is not None:
                self._lost_scheduler.deactivate(stream_id)
        waits = response.has_new() or (response.lost and self._retransmit is Retransmit.TURN)
        if response.is_active and not waits:
            response.is_active = False
            self._n_active -= 1
            self._scheduler.deactivate(stream_id)
        self._note_data()

    def _fill(self) -> None:
        """Refill the send buffer, as far as whole turns fit."""
        while self._buffer_bytes and self._has_room():
            chunk = self._turn(self._turn_bytes)
            if chunk is None:
                break
            self._buffer.append(chunk)
            self._buffered_bytes += chunk[2]
        self._note_data()

    def _note_data(self) -> None:
        self.has_data = self._n_active > 0 or bool(self._with_lost) or bool(self._buffer)

    def _has_room(self) -> bool:
        following = self._next_stream()
        if following is None:
            return False
        response = self._responses[following]
        span = response.lost[0] if response.lost else (response.next, response.size)
        n_bytes = min(span[1] - span[0], self._turn_bytes)
        return not self._buffer or self._buffered_bytes + n_bytes <= self._buffer_bytes


def _without(start: int, stop: int, response: _Response) -> list[tuple[int, int]]:
    """Return what is left of a span without what was acknowledged or waits to go again already."""
    done = [] if response.acked is None else response.acked.spans()
    left = []
    for a, b in sorted([*done, *response.lost]):
        if b <= start:
            continue
        if a >= stop:
            break
        if a > start:
            left.append((start, a))
        start = b
    if start < stop:
        left.append((start, stop))
    return left
