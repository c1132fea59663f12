"""The byte stream of one direction: HTTP frames in TLS records, and the send buffer."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING, Final

from h3sim.constants import FRAME_HEADER_BYTES
from h3sim.transport.tcp.settings import MIN_FRAME_BYTES, RECORD_OVERHEAD_BYTES, TlsVersion

if TYPE_CHECKING:
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.tcp.settings import TcpSettings


_RECORD_HEADER_BYTES: Final = 5
_STATUS_LINE_BYTES: Final = len(b"HTTP/1.1 200 OK\r\n\r\n")


class Message(enum.Enum):
    """A flight of the TLS handshake."""

    CLIENT_HELLO = "client hello"
    SERVER_FLIGHT = "server flight"
    CLIENT_FINISHED = "client finished"
    SERVER_FINISHED = "server finished"
    """In TLS 1.2 only."""


class TlsRecord:
    """A TLS record: none of its frames can be read before its last byte has arrived.

    In cleartext it is a frame.
    """

    __slots__ = ("frames", "message", "stop")

    def __init__(self, stop: int, frames: list[StreamBytes], message: Message | None) -> None:
        self.stop = stop
        """The end offset in the stream."""
        self.frames = frames
        self.message = message


class SendStream:
    """The socket's send buffer: bytes written by the application and not yet delivered.

    It takes from *source* while little enough waits, and is cut into segments at its front.
    """

    __slots__ = (
        "_cuts_frames",
        "_data_frame_bytes",
        "_dynamic_bytes",
        "_dynamic_idle_ns",
        "_empty_frame_bytes",
        "_ends",
        "_frame_header_bytes",
        "_is_clear",
        "_is_dynamic",
        "_min_room_bytes",
        "_overhead_bytes",
        "_pieces",
        "_record_bytes",
        "_send_buffer_bytes",
        "_small_record_bytes",
        "_source",
        "_unacked",
        "_write_bytes",
        "_written_at_ns",
        "_written_bytes",
        "_written_to",
        "end",
        "lowat_bytes",
        "sent",
    )

    def __init__(
        self,
        settings: TcpSettings,
        source: Source,
        frame_header_bytes: int = FRAME_HEADER_BYTES,
    ) -> None:
        self._source = source
        self._frame_header_bytes = frame_header_bytes
        self._empty_frame_bytes = frame_header_bytes or _STATUS_LINE_BYTES
        self._min_room_bytes = frame_header_bytes + MIN_FRAME_BYTES
        """The smallest room in a record for which a further frame is worth its header."""
        lowat = settings.notsent_lowat_bytes
        self.lowat_bytes = settings.send_buffer_bytes if lowat is None else lowat
        """The unsent bytes at which nothing more is taken (TCP_NOTSENT_LOWAT)."""
        self._write_bytes = settings.write_bytes
        self._cuts_frames = settings.cuts_frames
        self._send_buffer_bytes = settings.send_buffer_bytes
        self._data_frame_bytes = settings.data_frame_bytes
        self._is_clear = settings.tls is TlsVersion.NONE
        self._overhead_bytes = 0 if self._is_clear else RECORD_OVERHEAD_BYTES
        self._record_bytes = settings.record_bytes
        if self._is_clear:
            self._record_bytes = frame_header_bytes + settings.data_frame_bytes
        self._is_dynamic = settings.has_dynamic_records and not self._is_clear
        self._small_record_bytes = min(
            settings.mss_bytes - RECORD_OVERHEAD_BYTES, settings.record_bytes
        )
        self._dynamic_bytes = settings.dynamic_record_bytes
        self._dynamic_idle_ns = settings.dynamic_record_idle_ns
        self._written_bytes = 0
        self._written_at_ns = 0
        self._pieces: deque[tuple[int, int, int, int]] = deque()
        self._ends: deque[TlsRecord] = deque()
        self._unacked: deque[TlsRecord] = deque()
        self.sent = 0
        """The offset of the first byte never sent."""
        self._written_to = 0
        """The end of the bytes written."""
        self.end = 0
        """The end of the bytes in the socket."""

    def write_message(self, message: Message, n_bytes: int) -> None:
        """Append a flight of the TLS handshake."""
        self._written_to += n_bytes
        self._append(TlsRecord(self._written_to, [], message))
        self.end = self._written_to

    def fill(self, acked: int, now_ns: int) -> None:
        """Take from the source up to the socket's capacity; up to *acked* the buffer is free."""
        while (
            self.end - self.sent < self.lowat_bytes and self.end - acked < self._send_buffer_bytes
        ) and self._write_next(now_ns):
            self.end = self._written_to

    def expand(self, congestion_window: int) -> bool:
        """Return whether the socket takes more, now that the window is not full."""
        del congestion_window
        return False

    def cut(self, n_bytes: int) -> tuple[list[StreamBytes], list[TlsRecord]]:
        """Remove the next *n_bytes*.

        Return the body bytes in them, and the records that end there.
        """
        start = self.sent
        self.sent = stop = start + n_bytes
        frames: list[StreamBytes] = []
        pieces = self._pieces
        while pieces:
            piece_start, piece_stop, stream_id, offset = pieces[0]
            # An empty body that ends with the segment is delivered with it.
            if piece_stop > stop and piece_start >= stop:
                break
            # Conditional expressions: `max` and `min` would be two calls per frame and segment.
            low = piece_start if piece_start > start else start
            high = piece_stop if piece_stop < stop else stop
            frames.append((stream_id, offset + low - piece_start, high - low))
            if piece_stop > stop:
                break
            pieces.popleft()
        ends = self._ends
        records: list[TlsRecord] = []
        # A segment delivers a record if it carries its last byte: before that none can be read.
        while ends and ends[0].stop <= stop:
            records.append(ends.popleft())
        return frames, records

    def on_acked(self, acked: int) -> None:
        """Report to the source the bytes that the peer has, in complete records."""
        unacked = self._unacked
        while unacked and unacked[0].stop <= acked:
            for stream_id, offset, n_bytes in unacked.popleft().frames:
                self._source.on_acked(stream_id, offset, n_bytes)

    def _write_next(self, now_ns: int) -> bool:
        """Write one unit of data; return whether there was any."""
        if not self._write_bytes:
            return self._write(self._record_room(now_ns), now_ns)
        start = self._written_to
        # HEADERS enter the buffer before it is filled with DATA. If they are longer than a write,
        # they leave uncut and without DATA.
        stop = start + max(self._write_bytes, self._source.waiting_header_bytes())
        if not self._cuts_frames:
            while self._written_to < stop and self._write(self._record_room(now_ns), now_ns):
                pass
            return self._written_to > start
        while (left := stop - self._written_to - self._overhead_bytes) >= self._min_room_bytes:
            if not self._write(min(self._record_room(now_ns), left), now_ns):
                break
        return self._written_to > start

    def _record_room(self, now_ns: int) -> int:
        """Return the payload limit of the next record."""
        return self._dynamic_room(now_ns) if self._is_dynamic else self._record_bytes

    def _write(self, room: int, now_ns: int) -> bool:
        """Write a record of up to *room* bytes; return False if there is nothing to write."""
        chunk = self._take(room)
        if chunk is None:
            return False
        self._write_record(chunk, room, now_ns)
        return True

    def _take(self, room: int) -> StreamBytes | None:
        """Return data from the source for a frame of *room* bytes, header included."""
        n_bytes = room - self._frame_header_bytes
        if n_bytes > self._data_frame_bytes:
            n_bytes = self._data_frame_bytes
        return self._source.take(n_bytes)

    def _write_record(self, chunk: StreamBytes | None, room: int, now_ns: int) -> None:
        """Append a record with *chunk* and further data from the source up to *room* bytes."""
        header_bytes = 0 if self._is_clear else _RECORD_HEADER_BYTES
        # The record header precedes the frames, type and tag follow: offsets of bodies are those on
        # the wire.
        stop = self._written_to + header_bytes
        frame_header_bytes = self._frame_header_bytes
        frames: list[StreamBytes] = []
        while chunk is not None:
            frames.append(chunk)
            stream_id, offset, n_bytes = chunk
            # An empty response of HTTP/1.1 still has a status line (RFC 9112 § 4).
            overhead_bytes = frame_header_bytes if n_bytes else self._empty_frame_bytes
            start = stop + overhead_bytes
            stop = start + n_bytes
            self._pieces.append((start, stop, stream_id, offset))
            room -= overhead_bytes + n_bytes
            # In cleartext a record is a frame, so it holds one.
            if self._is_clear or room < self._min_room_bytes:
                break
            chunk = self._take(room)
        stop += self._overhead_bytes - header_bytes
        self._written_bytes += stop - self._written_to
        self._written_at_ns = now_ns
        self._written_to = stop
        self._append(TlsRecord(stop, frames, None))

    def _append(self, record: TlsRecord) -> None:
        self._ends.append(record)
        self._unacked.append(record)

    def _dynamic_room(self, now_ns: int) -> int:
        """Return the payload limit of the next record: one segment at the start or after idling."""
        # After idling the window may have collapsed, and a large record would take several round
        # trips to be readable.
        if now_ns - self._written_at_ns >= self._dynamic_idle_ns:
            self._written_bytes = 0
        if self._written_bytes < self._dynamic_bytes:
            return self._small_record_bytes
        return self._record_bytes


_TIMESTAMPS_BYTES: Final = 12
_HEADROOM_BYTES: Final = 320 + 320
"""MAX_TCP_HEADER, and the aligned skb_shared_info behind the data, both on 64-bit machines."""
_SK_BUFF_BYTES: Final = 256
"""An aligned sk_buff."""
_INITIAL_SEGMENTS: Final = 10
"""TCP_INIT_CWND."""
_WINDOWS: Final = 2
"""Windows of memory: CUBIC needs 1.7 in recovery (tcp_sndbuf_expand), BBR 3."""


class AutotunedSendStream(SendStream):
    """A `SendStream` with the capacity of Linux's send buffer autotuning.

    Initially twice the memory of 10 segments, 87,040 bytes with Ethernet's segments; it grows when
    an ACK has arrived, everything has been sent and the window is not full
    (tcp_should_expand_sndbuf and tcp_sndbuf_expand in net/ipv4/tcp_input.c): then to twice the
    memory of a window's segments, at most *send_buffer_bytes* (tcp_wmem[2]). A segment takes a
    power of two of memory, so this is six windows. A buffer that was full takes nothing before a
    third of it is free (sk_stream_is_writeable in include/net/sock.h), and with TCP_NOTSENT_LOWAT
    before less than half of the mark waits unsent (tcp_stream_memory_free).

    Data that the application has written and the socket has not accepted waits in the application's
    write buffer, in order. Memory is counted by payload: the overhead of Linux's own buffers, a few
    per cent, is left out.
    """

    __slots__ = ("_is_full", "_limit_bytes", "_lowat_bytes", "_mss_bytes", "_per_segment_bytes")

    def __init__(
        self,
        settings: TcpSettings,
        source: Source,
        frame_header_bytes: int = FRAME_HEADER_BYTES,
    ) -> None:
        super().__init__(settings, source, frame_header_bytes)
        self._mss_bytes = settings.mss_bytes
        data_bytes = settings.mss_bytes + _TIMESTAMPS_BYTES + _HEADROOM_BYTES
        self._per_segment_bytes = (1 << (data_bytes - 1).bit_length()) + _SK_BUFF_BYTES
        self._lowat_bytes = settings.notsent_lowat_bytes
        self._limit_bytes = 0
        self._grow(_INITIAL_SEGMENTS)
        self._is_full = False
        """True if a write was refused (SOCK_NOSPACE), and room was not reported since."""

    def fill(self, acked: int, now_ns: int) -> None:
        """Take from the source up to the socket's capacity; up to *acked* the buffer is free."""
        if self._is_full and not self._is_writable(acked):
            return
        self._is_full = False
        while True:
            taken = self.end
            self.end = min(self._written_to, taken + max(0, self._room(acked)))
            # A record is written as a unit: the part that the socket refuses waits in the
            # application.
            if self.end < self._written_to:
                self._is_full = True
                return
            if not self._write_next(now_ns):
                return

    def expand(self, congestion_window: int) -> bool:
        """Grow with the window; return whether there is room now for waiting data."""
        if not self._is_full:
            return False
        before = self._limit_bytes
        self._grow(max(_INITIAL_SEGMENTS, congestion_window // self._mss_bytes))
        return self._limit_bytes > before

    def _grow(self, segments: int) -> None:
        target_bytes = _WINDOWS * segments * self._per_segment_bytes
        # Never smaller: tcp_sndbuf_expand only raises sk_sndbuf, even after a reduction.
        self._limit_bytes = max(self._limit_bytes, min(target_bytes, self._send_buffer_bytes))

    def _room(self, acked: int) -> int:
        """Return the room in the socket."""
        room = self._limit_bytes - (self.end - acked)
        if self._lowat_bytes is None:
            return room
        return min(room, self._lowat_bytes - (self.end - self.sent))

    def _is_writable(self, acked: int) -> bool:
        """Return whether a socket that was full reports room."""
        lowat = self._lowat_bytes
        if lowat is not None and 2 * (self.end - self.sent) >= lowat:
            return False
        # sk_stream_is_writeable requires half as much free as is used: at most two thirds used.
        return 3 * (self.end - acked) <= 2 * self._limit_bytes
