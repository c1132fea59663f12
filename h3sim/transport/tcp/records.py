"""The byte stream of one direction: HTTP/2 frames in TLS records, cut into segments."""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING, Final

from h3sim.protocol import FRAME_HEADER_BYTES
from h3sim.transport.tcp.settings import (
    MIN_ROOM_BYTES,
    RECORD_OVERHEAD_BYTES,
    TlsVersion,
)

if TYPE_CHECKING:
    from h3sim.transport.endpoint import Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.tcp.settings import TcpSettings

__all__ = ["Message", "SendStream", "TlsRecord"]

_RECORD_HEADER_BYTES: Final = 5


class Message(enum.Enum):
    """A flight of the TLS handshake."""

    CLIENT_HELLO = "client hello"
    SERVER_FLIGHT = "server flight"
    CLIENT_FINISHED = "client finished"
    SERVER_FINISHED = "server finished"
    """In TLS 1.2 only."""


class TlsRecord:
    """A TLS record: none of its frames can be read before its last byte has come.

    In cleartext it is a frame.
    """

    __slots__ = ("frames", "message", "stop")

    def __init__(self, stop: int, frames: list[StreamBytes], message: Message | None) -> None:
        self.stop = stop
        """The offset in the stream at which it ends."""
        self.frames = frames
        self.message = message


class SendStream:
    """What the application wrote and TCP has to deliver: the socket's send buffer.

    It takes from *source* as long as little enough waits, and is cut into segments from its front.
    """

    __slots__ = (
        "_cuts_frames",
        "_data_frame_bytes",
        "_dynamic_bytes",
        "_dynamic_idle_ns",
        "_ends",
        "_is_clear",
        "_is_dynamic",
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

    def __init__(self, settings: TcpSettings, source: Source) -> None:
        self._source = source
        lowat = settings.notsent_lowat_bytes
        self.lowat_bytes = settings.send_buffer_bytes if lowat is None else lowat
        """Nothing is taken while this much waits unsent."""
        self._write_bytes = settings.write_bytes
        self._cuts_frames = settings.cuts_frames
        self._send_buffer_bytes = settings.send_buffer_bytes
        self._data_frame_bytes = settings.data_frame_bytes
        self._is_clear = settings.tls is TlsVersion.NONE
        self._overhead_bytes = 0 if self._is_clear else RECORD_OVERHEAD_BYTES
        self._record_bytes = settings.record_bytes
        if self._is_clear:
            self._record_bytes = FRAME_HEADER_BYTES + settings.data_frame_bytes
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
        """Where what was never sent begins."""
        self._written_to = 0
        """Where what was written ends."""
        self.end = 0
        """Where what the socket has of it ends."""

    def write_message(self, message: Message, n_bytes: int) -> None:
        """Append a flight of the TLS handshake."""
        self._written_to += n_bytes
        self._append(TlsRecord(self._written_to, [], message))
        self.end = self._written_to

    def fill(self, acked: int, now_ns: int) -> None:
        """Take from the source what the socket has room for; *acked* bytes left it for good."""
        while (
            self.end - self.sent < self.lowat_bytes and self.end - acked < self._send_buffer_bytes
        ) and self._write_next(now_ns):
            self.end = self._written_to

    def expand(self, congestion_window: int) -> bool:
        """Return whether the socket takes more, now that the window is not filled."""
        del congestion_window
        return False

    def cut(self, n_bytes: int) -> tuple[list[StreamBytes], list[TlsRecord]]:
        """Take the next *n_bytes* off; return the bodies' bytes in them, and the records' ends."""
        start = self.sent
        self.sent = stop = start + n_bytes
        frames: list[StreamBytes] = []
        pieces = self._pieces
        while pieces:
            piece_start, piece_stop, stream_id, offset = pieces[0]
            # An empty body that ends where the segment does has come with it.
            if piece_stop > stop and piece_start >= stop:
                break
            # Conditional expressions: `max` and `min` would be two calls for each frame of each
            # segment.
            low = piece_start if piece_start > start else start
            high = piece_stop if piece_stop < stop else stop
            frames.append((stream_id, offset + low - piece_start, high - low))
            if piece_stop > stop:
                break
            pieces.popleft()
        ends = self._ends
        records: list[TlsRecord] = []
        # A segment brings a record where its last byte is in it: before that none of it can be
        # read.
        while ends and ends[0].stop <= stop:
            records.append(ends.popleft())
        return frames, records

    def on_acked(self, acked: int) -> None:
        """Tell the source which of its bytes the peer has, in whole records."""
        unacked = self._unacked
        while unacked and unacked[0].stop <= acked:
            for stream_id, offset, n_bytes in unacked.popleft().frames:
                self._source.on_acked(stream_id, offset, n_bytes)

    def _write_next(self, now_ns: int) -> bool:
        """Write what enters at once; return whether there was anything."""
        if not self._write_bytes:
            return self._write(self._record_room(now_ns), now_ns)
        start = self._written_to
        # HEADERS are in the buffer before it is filled up with DATA. Where they are longer than a
        # write, they leave uncut and with no DATA.
        stop = start + max(self._write_bytes, self._source.waiting_header_bytes())
        if not self._cuts_frames:
            while self._written_to < stop and self._write(self._record_room(now_ns), now_ns):
                pass
            return self._written_to > start
        while (left := stop - self._written_to - self._overhead_bytes) >= MIN_ROOM_BYTES:
            if not self._write(min(self._record_room(now_ns), left), now_ns):
                break
        return self._written_to > start

    def _record_room(self, now_ns: int) -> int:
        """Return how much the next record may carry."""
        return self._dynamic_room(now_ns) if self._is_dynamic else self._record_bytes

    def _write(self, room: int, now_ns: int) -> bool:
        """Write a record that carries up to *room*; return False if there is nothing to write."""
        chunk = self._take(room)
        if chunk is None:
            return False
        self._write_record(chunk, room, now_ns)
        return True

    def _take(self, room: int) -> StreamBytes | None:
        """Return what the source gives for a frame that has *room* with its header."""
        n_bytes = room - FRAME_HEADER_BYTES
        if n_bytes > self._data_frame_bytes:
            n_bytes = self._data_frame_bytes
        return self._source.take(n_bytes)

    def _write_record(self, chunk: StreamBytes | None, room: int, now_ns: int) -> None:
        """Append a record with *chunk* and what else the source gives and it has *room* for."""
        header_bytes = 0 if self._is_clear else _RECORD_HEADER_BYTES
        # The header lies before the frames, type and tag behind them: a frame's bytes lie where
        # they travel.
        stop = self._written_to + header_bytes
        frames: list[StreamBytes] = []
        while chunk is not None:
            frames.append(chunk)
            stream_id, offset, n_bytes = chunk
            start = stop + FRAME_HEADER_BYTES
            stop = start + n_bytes
            self._pieces.append((start, stop, stream_id, offset))
            room -= FRAME_HEADER_BYTES + n_bytes
            # In cleartext a record stands for a frame, so it holds one.
            if self._is_clear or room < MIN_ROOM_BYTES:
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
        """Return how much the next record may carry: a segment's worth after a start or a rest."""
        # After a rest the window may have collapsed, and a large record would take several round
        # trips to be read.
        if now_ns - self._written_at_ns >= self._dynamic_idle_ns:
            self._written_bytes = 0
        if self._written_bytes < self._dynamic_bytes:
            return self._small_record_bytes
        return self._record_bytes
