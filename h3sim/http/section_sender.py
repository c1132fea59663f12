"""A sender of responses that begin with field sections, and of header compression's streams."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.http.headers_first_sender import HeadersFirstSender
from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.transport.endpoint import FrameHeader


__all__ = ["SectionSender"]


class SectionSender(HeadersFirstSender):
    """A `StreamSender` that puts a field section in front of each response.

    A section is encoded when the scheduler first lets its stream send: so sections are encoded in
    the order in which they leave, and an important one waits for no other that leaves later. Bytes
    of encoder and decoder streams go first, without asking the scheduler, as stacks send their
    critical streams; what they take of a packet, others do not get.

    With `is_http2` a section is encoded when the response is ready, and leaves before all bodies:
    HEADERS of HTTP/2 have one order, in which the client decodes them.
    """

    def _begin(self) -> None:
        super()._begin()
        self.is_http2 = False
        self._encode: Callable[[int], int] = _nothing
        self._on_section_acked: Callable[[int], object] = _nothing
        self._critical: deque[tuple[int, int, int]] = deque()
        """Spans of encoder and decoder streams that wait: stream, offset, bytes."""
        self._critical_streams: set[int] = set()
        self._unencoded: set[int] = set()
        self._unacked: dict[int, tuple[int, Ranges]] = {}

    def take_sections(
        self, encode: Callable[[int], int], on_acked: Callable[[int], object]
    ) -> None:
        """Ask *encode* what the section of a stream takes, once that may be sent.

        *on_acked* is told of the stream when the section has arrived for good.
        """
        self._encode, self._on_section_acked = encode, on_acked

    def on_critical(self, stream_id: int, n_bytes: int) -> None:
        """Queue *n_bytes* of an encoder or decoder stream."""
        self._critical_streams.add(stream_id)
        self._critical.append((stream_id, 0, n_bytes))
        self._note_data()

    def send(self, stream_id: int, n_bytes: int, header_bytes: int = 0) -> None:
        """Give a stream *n_bytes* to send behind its section."""
        if self.is_http2:
            section_bytes = self._encode(stream_id)
            self._unacked[stream_id] = (section_bytes, Ranges())
            super().send(stream_id, section_bytes + n_bytes, section_bytes)
            return
        self._unencoded.add(stream_id)
        super().send(stream_id, n_bytes, header_bytes)

    def on_acked(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Record that the client has these bytes for good."""
        waiting = self._unacked.get(stream_id)
        if waiting is not None:
            section_bytes, acked = waiting
            acked.add(offset, offset + n_bytes)
            if acked.contiguous >= section_bytes:
                del self._unacked[stream_id]
                self._on_section_acked(stream_id)
        super().on_acked(stream_id, offset, n_bytes)

    def on_lost(self, stream_id: int, offset: int, n_bytes: int) -> None:
        """Take these bytes back, to be given out again."""
        if stream_id in self._critical_streams:
            # In front of what is new: decoders need these streams in order, so nothing behind is of
            # use.
            self._critical.appendleft((stream_id, offset, n_bytes))
            self._note_data()
        else:
            super().on_lost(stream_id, offset, n_bytes)

    def take(
        self, max_bytes: int | None = None, header: FrameHeader | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        """Return what goes into the next packet, as `StreamSender.take`; critical streams first."""
        # First of all: encoding may put bytes on a critical stream, which then go before the
        # section.
        self._encode_next()
        if not self._critical:
            return super().take(max_bytes, header, least)
        stream_id, offset, n_bytes = self._critical[0]
        room = self._turn_bytes if max_bytes is None else max_bytes
        room -= header.measure(stream_id, offset) if header is not None else 0
        if room < max(least, 1):
            return None
        self._critical.popleft()
        if n_bytes > room:
            self._critical.appendleft((stream_id, offset + room, n_bytes - room))
            n_bytes = room
        self._note_data()
        return stream_id, offset, n_bytes

    def _turn(
        self, max_bytes: int, header: FrameHeader | None = None, least: int = 0
    ) -> tuple[int, int, int] | None:
        self._encode_next()
        return super()._turn(max_bytes, header, least)

    def _encode_next(self) -> None:
        """Encode the section of the stream that is next, before what it needs of others is sent."""
        stream_id = self._next_stream() if self._unencoded else None
        if stream_id in self._unencoded:
            self._unencoded.remove(stream_id)
            section_bytes = self._encode(stream_id)
            self._unacked[stream_id] = (section_bytes, Ranges())
            # The section stands before the body, and nothing of the stream has been sent yet.
            self._outgoing[stream_id].grow(section_bytes)

    def _note_data(self) -> None:
        super()._note_data()
        if self._critical:
            self.has_data = True


def _nothing(stream_id: int) -> int:
    del stream_id
    return 0
