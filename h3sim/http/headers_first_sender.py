"""A sender of HTTP/2: HEADERS frames leave before all DATA that waits."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.http.outgoing_stream import OutgoingStream
from h3sim.http.stream_sender import StreamSender
from h3sim.protocol import FRAME_HEADER_BYTES

if TYPE_CHECKING:
    from h3sim.transport.endpoint import FrameHeader

__all__ = ["HeadersFirstSender"]


class HeadersFirstSender(StreamSender):
    """A `StreamSender` that gives out HEADERS in the order in which responses become ready.

    No scheduler is asked for them, and none is charged: servers keep them in a queue of their own,
    and come to DATA when that is empty. nghttp2 does so (nghttp2_session_pop_next_ob_item in
    lib/nghttp2_session.c: `ob_urgent`, `ob_reg`, `ob_syn`, then the streams that are scheduled),
    and h2o, which puts HEADERS into the connection's buffer when the response begins (send_headers
    in lib/http2/stream.c), and DATA only when it writes that buffer out, as far as HEADERS left
    room (h2o_http2_conn_get_buffer_window). What has entered a send buffer leaves before them.

    >>> from h3sim.schedulers import FifoScheduler
    >>> from h3sim.signals import H2Priority
    >>> streams = HeadersFirstSender(FifoScheduler(), turn_bytes=1000)
    >>> for stream_id in (0, 4):
    ...     streams.open(stream_id, H2Priority()); streams.send(stream_id, 1100, header_bytes=100)
    >>> [streams.take() for _ in range(4)]
    [(0, 0, 100), (4, 0, 100), (0, 100, 1000), (4, 100, 1000)]
    """

    def _begin(self) -> None:
        super()._begin()
        self._headers: deque[tuple[int, int, int]] = deque()
        """What waits of HEADERS frames: stream, offset, bytes."""

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:
        """Give a stream *n_bytes* to send, the first *header_bytes* as HEADERS."""
        if not header_bytes:
            super().send(stream_id, n_bytes)
            return
        stream = OutgoingStream(n_bytes, self._stream_window_bytes)
        # The scheduler is to see nothing but the body: HEADERS have their own queue.
        stream.next = header_bytes
        # Without a body the HEADERS frame ends the stream (RFC 9113 § 8.1), and no DATA follows.
        stream.has_ended = header_bytes == n_bytes
        self._outgoing[stream_id] = stream
        self._headers.append((stream_id, 0, header_bytes))
        self._wake(stream_id, stream)
        self._fill()

    def waiting_header_bytes(self) -> int:
        """Return how long the HEADERS that wait are, with the CONTINUATION frames that they need.

        >>> from h3sim.schedulers import FifoScheduler
        >>> from h3sim.signals import H2Priority
        >>> streams = HeadersFirstSender(FifoScheduler(), turn_bytes=1000)
        >>> streams.open(0, H2Priority()); streams.send(0, 5000, header_bytes=1200)
        >>> streams.waiting_header_bytes()
        1218
        """
        turn_bytes = self._turn_bytes
        return sum(
            n_bytes + FRAME_HEADER_BYTES * -(-n_bytes // turn_bytes)
            for _, _, n_bytes in self._headers
        )

    def _turn(
        self, max_bytes: int, header: FrameHeader | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        if not self._headers:
            return super()._turn(max_bytes, header, least)
        stream_id, offset, n_bytes = self._headers.popleft()
        if n_bytes > max_bytes:  # what is left goes as a CONTINUATION frame (RFC 9113 § 6.10)
            self._headers.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            return stream_id, offset, max_bytes
        stream = self._outgoing[stream_id]
        if stream.has_ended and not self._keeps_unacked:
            self._drain(stream_id)
        self._note_data()
        return stream_id, offset, n_bytes

    def _has_room(self) -> bool:
        if not self._headers:
            return super()._has_room()
        return self._buffer.has_room(min(self._headers[0][2], self._turn_bytes))

    def _note_data(self) -> None:
        super()._note_data()
        if self._headers:
            self.has_data = True
