"""Senders that put HEADERS before DATA: HTTP/2 frames, and HTTP/3 field sections."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.http.stream_sender import OutgoingStream, StreamSender
from h3sim.values.constants import FRAME_HEADER_BYTES
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.transport.endpoint import FrameHeader


class HeadersFirstSender(StreamSender):
    """A `StreamSender` that sends HEADERS in the order in which responses become ready.

    HEADERS bypass the scheduler and are not charged: servers keep them in a queue of their own,
    and send DATA when that is empty. So does nghttp2 (nghttp2_session_pop_next_ob_item in
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
        """Set up the queue of HEADERS."""
        super()._begin()
        self._headers: deque[tuple[int, int, int]] = deque()
        """The waiting HEADERS frames: stream, offset, bytes."""
        self.data_starts: dict[int, int] = {}
        """The bytes of HEADERS of each stream, which flow control does not count."""

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:
        """Queue *n_bytes* of a stream, the first *header_bytes* as HEADERS."""
        if not header_bytes:
            super().send(stream_id, n_bytes)
            return
        available = self._available.pop(stream_id, None)
        stream = OutgoingStream(n_bytes, self._stream_window_bytes + header_bytes, available)
        self.data_starts[stream_id] = header_bytes
        # The scheduler sees only the body: HEADERS have their own queue.
        stream.next = header_bytes
        # Without a body the HEADERS frame ends the stream (RFC 9113 § 8.1), and no DATA follows.
        stream.has_ended = header_bytes == n_bytes
        self._outgoing[stream_id] = stream
        self._headers.append((stream_id, 0, header_bytes))
        self._activate_if_ready(stream_id, stream)
        self._fill()

    def size_of(self, stream_id: int) -> int:
        """Return the bytes of a stream, HEADERS included; 0 once all of it is acknowledged."""
        stream = self._outgoing.get(stream_id)
        return 0 if stream is None else stream.size

    def send_frame(self, number: int, n_bytes: int) -> None:
        """Queue a frame without a stream, such as WINDOW_UPDATE, with a *number* below 0.

        It leaves like HEADERS, and *n_bytes* without its header.
        """
        self._headers.append((number, 0, n_bytes))
        self.has_data = True

    def waiting_header_bytes(self) -> int:
        """Return the bytes of waiting HEADERS, including the CONTINUATION frames that they need.

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

    def _next_quantum(
        self, max_bytes: int, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> tuple[int, int, int] | None:
        """Return waiting headers before any data."""
        if not self._headers:
            return super()._next_quantum(max_bytes, header, min_bytes)
        stream_id, offset, n_bytes = self._headers.popleft()
        if header is not None:
            max_bytes -= header.measure(stream_id, offset)
        if n_bytes > max_bytes:  # the remainder is a CONTINUATION frame (RFC 9113 § 6.10)
            self._headers.appendleft((stream_id, offset + max_bytes, n_bytes - max_bytes))
            return stream_id, offset, max_bytes
        if stream_id >= 0:
            stream = self._outgoing[stream_id]
            if stream.has_ended and not self._retains_until_acked:
                self._drain(stream_id)
        self._update_has_data()
        return stream_id, offset, n_bytes

    def _has_room(self) -> bool:
        """Return whether the send buffer can take the next HEADERS frame, or else quantum."""
        if not self._headers:
            return super()._has_room()
        _, _, header_bytes = self._headers[0]
        return self._buffer.has_room(min(header_bytes, self._turn_bytes))

    def _update_has_data(self) -> None:
        """Set `has_data`, which HEADERS alone make true."""
        super()._update_has_data()
        if self._headers:
            self.has_data = True


class QmuxSender(HeadersFirstSender):
    """A `HeadersFirstSender` without HEADERS, as HTTP/3 sends them on the stream of the response.

    Only MAX_DATA and MAX_STREAM_DATA leave ahead of the streams.
    """

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:  # noqa: ARG002
        """Queue *n_bytes* of a stream, its headers included."""
        super().send(stream_id, n_bytes)


class SectionSender(HeadersFirstSender):
    """A `StreamSender` that puts a field section in front of each response.

    A section is encoded when the scheduler first lets its stream send. So sections are encoded in
    the order in which they leave, and an urgent one never waits for one that leaves later. Bytes
    of encoder and decoder streams go first, bypassing the scheduler, as stacks send their
    critical streams; they reduce the room for others in a packet.

    With `is_http2` a section is encoded when the response is ready, and leaves before all bodies:
    HEADERS of HTTP/2 have one order, in which the client decodes them.
    """

    def _begin(self) -> None:
        """Set up the queues of sections and of critical streams."""
        super()._begin()
        self.is_http2 = False
        self._encode: Callable[[int], int] = _do_nothing
        self._on_section_acked: Callable[[int], object] = _do_nothing
        self._critical_spans: deque[tuple[int, int, int]] = deque()
        """Waiting spans of encoder and decoder streams: stream, offset, bytes."""
        self._critical_streams: set[int] = set()
        self._unencoded: set[int] = set()
        """Streams with a response whose section is not encoded yet."""
        self._unacked: dict[int, tuple[int, Ranges]] = {}
        """The size of each section that is not acknowledged, and the acknowledged ranges."""
        self._section_bytes: dict[int, int] = {}
        """The size of the sections of responses that come in pieces."""

    def take_sections(
        self, encode: Callable[[int], int], on_acked: Callable[[int], object]
    ) -> None:
        """Use *encode*, which returns the section's size, when a stream may send.

        *on_acked* is called with the stream once its section is acknowledged.
        """
        self._encode, self._on_section_acked = encode, on_acked

    def on_critical(self, stream_id: int, n_bytes: int) -> None:
        """Queue *n_bytes* of an encoder or decoder stream."""
        self._critical_streams.add(stream_id)
        self._critical_spans.append((stream_id, 0, n_bytes))
        self._update_has_data()

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:
        """Queue *n_bytes* of a stream after its section."""
        in_pieces = stream_id in self._available
        if in_pieces:
            self._section_bytes[stream_id] = 0
        if self.is_http2:
            section_bytes = self._encode(stream_id)
            if in_pieces:
                self._section_bytes[stream_id] = section_bytes
                self._available[stream_id] += section_bytes
            self._unacked[stream_id] = (section_bytes, Ranges())
            super().send(stream_id, section_bytes + n_bytes, section_bytes)
            return
        self._unencoded.add(stream_id)
        super().send(stream_id, n_bytes, header_bytes)

    def provide(self, stream_id: int, available: int) -> None:
        """Make only the first *available* bytes of a response exist, its section aside.

        The section of a response over HTTP/3 leaves with its first bytes.
        """
        super().provide(stream_id, available + self._section_bytes.get(stream_id, 0))

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that these bytes were acknowledged."""
        waiting = self._unacked.get(stream_id)
        if waiting is not None:
            section_bytes, acked = waiting
            acked.add(offset, offset + n_bytes)
            if acked.contiguous >= section_bytes:
                del self._unacked[stream_id]
                self._on_section_acked(stream_id)
        super().on_acked(stream_id, offset, n_bytes)

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Queue these bytes for retransmission."""
        if stream_id in self._critical_streams:
            # In front of what is new: decoders need these streams in order, so nothing behind is of
            # use.
            self._critical_spans.appendleft((stream_id, offset, n_bytes))
            self._update_has_data()
        else:
            super().on_lost(stream_id, offset, n_bytes)

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> tuple[int, int, int] | None:
        """Return data for the next packet, as `StreamSender.take`; critical streams first."""
        # First of all: encoding may put bytes on a critical stream, which then go before the
        # section.
        self._encode_next()
        if not self._critical_spans:
            return super().take(max_bytes, header, min_bytes)
        stream_id, offset, n_bytes = self._critical_spans[0]
        room = self._turn_bytes if max_bytes is None else max_bytes
        room -= header.measure(stream_id, offset) if header is not None else 0
        if room < max(min_bytes, 1):
            return None
        self._critical_spans.popleft()
        if n_bytes > room:
            self._critical_spans.appendleft((stream_id, offset + room, n_bytes - room))
            n_bytes = room
        self._update_has_data()
        return stream_id, offset, n_bytes

    def _next_quantum(
        self, max_bytes: int, header: FrameHeader | None = None, min_bytes: int = 0
    ) -> tuple[int, int, int] | None:
        """Encode the section of the next stream, and return its quantum."""
        self._encode_next()
        return super()._next_quantum(max_bytes, header, min_bytes)

    def _encode_next(self) -> None:
        """Encode the section of the next stream, before the instructions that it needs are sent."""
        stream_id = self._next_stream() if self._unencoded else None
        if stream_id in self._unencoded:
            self._unencoded.remove(stream_id)
            section_bytes = self._encode(stream_id)
            self._unacked[stream_id] = (section_bytes, Ranges())
            # The section stands before the body, and nothing of the stream has been sent yet.
            self._outgoing[stream_id].grow(section_bytes)
            if stream_id in self._section_bytes:
                self._section_bytes[stream_id] = section_bytes

    def _update_has_data(self) -> None:
        """Set `has_data`, which critical streams alone make true."""
        super()._update_has_data()
        if self._critical_spans:
            self.has_data = True


def _do_nothing(_stream_id: int) -> int:
    """Stand in for the callbacks until `take_sections`; a section of 0 bytes is no section."""
    return 0
