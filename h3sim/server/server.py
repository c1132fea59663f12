"""A server: responses wait, a scheduler says whose bytes go next, a send buffer takes them in.

What has entered the send buffer leaves in the order in which it entered, whatever the scheduler
learns in the meantime: the larger the buffer, the less a late signal can change.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.units import NS_PER_MS

if TYPE_CHECKING:
    from h3sim.schedulers import Scheduler
    from h3sim.signals import Signal

__all__ = ["RETENTION_NS", "Chunk", "Server"]

RETENTION_NS = 500 * NS_PER_MS
"""How long a stream stays in the scheduler after its last chunk was given out (Marx 2019's code).

Later streams may still be placed relative to it, and Parallel+ and Serial+ give up their
restraint only when it is gone."""

Chunk = tuple[int, int, int]
"""A stream, an offset and a number of bytes: what one packet carries."""


class Server:
    """Answers requests through *scheduler*, one turn of up to *turn_bytes* at a time.

    *buffer_bytes* is the size of the send buffer, 0 for none. A turn enters the buffer whole or
    not at all; an empty buffer takes any.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> server = Server(FifoScheduler(), turn_bytes=1400)
    >>> server.on_request(0, H2Priority())
    >>> server.on_response(0, 2000)
    >>> server.take(), server.take(), server.take()
    ((0, 0, 1400), (0, 1400, 600), None)
    """

    def __init__(self, scheduler: Scheduler, *, turn_bytes: int, buffer_bytes: int = 0) -> None:
        self._scheduler = scheduler
        self._turn_bytes = turn_bytes
        self._buffer_bytes = buffer_bytes
        self._buffer: deque[Chunk] = deque()
        self._buffered_bytes = 0
        self._sent: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self.drained: list[int] = []
        """The streams whose last chunk the scheduler gave out; whoever reads it, clears it."""

    def on_signal(self, element_id: int, signal: Signal) -> None:
        """Let *signal* replace what was wanted for an open stream or placeholder."""
        self._scheduler.update(element_id, signal)

    def on_request(self, stream_id: int, signal: Signal) -> None:
        """Open a stream (or, below 0, a placeholder) whose response is not ready yet."""
        self._scheduler.open(stream_id, signal)

    def on_response(self, stream_id: int, n_bytes: int) -> None:
        """Let the response of a stream, *n_bytes* in all, be ready to be sent."""
        self._sent[stream_id] = 0
        self._left[stream_id] = n_bytes
        self._scheduler.activate(stream_id)
        self._fill()

    def on_closed(self, stream_id: int) -> None:
        """Let the scheduler forget a stream."""
        self._scheduler.close(stream_id)

    def take(self) -> Chunk | None:
        """Return what goes into the next packet, or None where there is nothing to send.

        A response without a byte goes as a chunk of 0 bytes: the packet that says it has ended.
        """
        if not self._buffer_bytes:
            return self._turn()
        if not self._buffer:
            return None
        chunk = self._buffer.popleft()
        self._buffered_bytes -= chunk[2]
        self._fill()
        return chunk

    def _turn(self) -> Chunk | None:
        """Let the scheduler give one turn."""
        stream_id = self._scheduler.pick()
        if stream_id is None:
            return None
        left = self._left[stream_id]
        n_bytes = min(left, self._turn_bytes)
        offset = self._sent[stream_id]
        self._scheduler.charge(stream_id, n_bytes)
        if left == n_bytes:
            del self._left[stream_id], self._sent[stream_id]
            self._scheduler.deactivate(stream_id)
            self.drained.append(stream_id)
        else:
            self._left[stream_id] = left - n_bytes
            self._sent[stream_id] = offset + n_bytes
        return stream_id, offset, n_bytes

    def _fill(self) -> None:
        """Refill the send buffer, as far as whole turns fit."""
        while self._left and self._has_room():
            chunk = self._turn()
            if chunk is None:
                return
            self._buffer.append(chunk)
            self._buffered_bytes += chunk[2]

    def _has_room(self) -> bool:
        if not self._buffer:
            return bool(self._buffer_bytes)
        stream_id = self._scheduler.pick()
        left = 0 if stream_id is None else self._left[stream_id]
        return self._buffered_bytes + min(left, self._turn_bytes) <= self._buffer_bytes
