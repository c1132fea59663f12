"""The byte stream of one direction: frames in TLS records, in segments, and reassembled."""

from __future__ import annotations

import enum
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from h3sim.transport.packets import CE, NOT_ECT, SentPacket, WirePacket
from h3sim.transport.quic.packets import StreamFrameHeader
from h3sim.transport.tcp.settings import (
    MAX_RECORD_BYTES,
    MIN_FRAME_BYTES,
    RECORD_OVERHEAD_BYTES,
    TlsVersion,
)
from h3sim.values.constants import FRAME_HEADER_BYTES, IP_HEADER_BYTES
from h3sim.values.ranges import Ranges

if TYPE_CHECKING:
    from h3sim.transport.endpoint import FrameHeader, Source
    from h3sim.transport.packets import StreamBytes
    from h3sim.transport.tcp.settings import TcpSettings


_RECORD_HEADER_BYTES: Final = 5
"""Type, version and length (RFC 8446 § 5.1)."""
_STATUS_LINE_BYTES: Final = len(b"HTTP/1.1 200 OK\r\n\r\n")
"""The least that a response of HTTP/1.1 consists of (RFC 9112 § 4)."""
_QMUX_SIZE_BYTES: Final = 2
"""The Size field of a record of QMux, written as two bytes (draft-ietf-quic-qmux-02 § 3.2)."""


class Message(enum.Enum):
    """A flight of the TLS handshake."""

    CLIENT_HELLO = "client hello"
    SERVER_FLIGHT = "server flight"
    CLIENT_FINISHED = "client finished"
    SERVER_FINISHED = "server finished"
    """In TLS 1.2 only."""


class QmuxFrameHeader(StreamFrameHeader):
    """The header of a frame in a record of QMux, in QUIC's own format; other frames include theirs.

    >>> header = QmuxFrameHeader()
    >>> header.measure(4, 20_000), header.measure(-1, 0)
    (8, 0)
    """

    __slots__ = ()

    def measure(self, stream_id: int, offset: int) -> int:
        """Return the length of the header of a frame that begins at *offset* of a stream."""
        if stream_id >= 0:
            return super().measure(stream_id, offset)
        self.n_bytes = 0
        return 0


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

    It takes from *source* while little enough waits, and is cut into segments at its front. With
    *has_full_frames* no frame is cut to fit into a record, which may then be half a record longer:
    stacks let frames continue in the next record, and windows are multiples of the longest frame.
    With *stream_header* each TLS record holds one of QMux, with frames whose headers it measures.
    """

    __slots__ = (
        "_cuts_frames",
        "_data_frame_bytes",
        "_dynamic_idle_ns",
        "_dynamic_limit_bytes",
        "_empty_frame_bytes",
        "_frame_header_bytes",
        "_has_full_frames",
        "_is_cleartext",
        "_is_dynamic",
        "_min_room_bytes",
        "_next_frame_room_bytes",
        "_overhead_bytes",
        "_record_bytes",
        "_record_header_bytes",
        "_send_buffer_bytes",
        "_small_record_bytes",
        "_source",
        "_stream_header",
        "_unacked",
        "_uncut_bodies",
        "_uncut_records",
        "_write_bytes",
        "_written_at_ns",
        "_written_end",
        "_written_since_idle_bytes",
        "end",
        "lowat_bytes",
        "sent",
    )

    def __init__(
        self,
        settings: TcpSettings,
        source: Source,
        frame_header_bytes: int = FRAME_HEADER_BYTES,
        *,
        has_full_frames: bool = False,
        stream_header: FrameHeader | None = None,
    ) -> None:
        self._source = source
        self._stream_header = stream_header
        self._frame_header_bytes = frame_header_bytes
        self._empty_frame_bytes = frame_header_bytes or _STATUS_LINE_BYTES
        """The size of a response without a body, beside its header fields."""
        self._min_room_bytes = frame_header_bytes + MIN_FRAME_BYTES
        """The smallest room in a record for which a further frame is worth its header."""
        lowat = settings.notsent_lowat_bytes
        self.lowat_bytes = settings.send_buffer_bytes if lowat is None else lowat
        """The unsent bytes at which nothing more is taken (TCP_NOTSENT_LOWAT)."""
        self._write_bytes = settings.write_bytes
        self._cuts_frames = settings.cuts_frames
        self._send_buffer_bytes = settings.send_buffer_bytes
        self._data_frame_bytes = settings.data_frame_bytes
        self._is_cleartext = settings.tls is TlsVersion.NONE
        size_bytes = 0 if stream_header is None else _QMUX_SIZE_BYTES
        tls_header_bytes = 0 if self._is_cleartext else _RECORD_HEADER_BYTES
        self._record_header_bytes = tls_header_bytes + size_bytes
        """The bytes of a record before its frames."""
        tls_bytes = 0 if self._is_cleartext else RECORD_OVERHEAD_BYTES
        self._overhead_bytes = tls_bytes + size_bytes
        self._record_bytes = settings.record_bytes - size_bytes
        self._has_full_frames = has_full_frames and settings.record_bytes == MAX_RECORD_BYTES
        if self._is_cleartext or self._has_full_frames:
            self._record_bytes = frame_header_bytes + settings.data_frame_bytes
        self._next_frame_room_bytes = self._min_room_bytes
        """The smallest room in a record that has one for another frame."""
        if self._has_full_frames:
            self._next_frame_room_bytes = self._record_bytes // 2
        self._is_dynamic = settings.has_dynamic_records and not self._is_cleartext
        self._small_record_bytes = min(
            settings.mss_bytes - self._overhead_bytes, self._record_bytes
        )
        self._dynamic_limit_bytes = settings.dynamic_record_bytes
        self._dynamic_idle_ns = settings.dynamic_record_idle_ns
        self._written_since_idle_bytes = 0
        self._written_at_ns = 0
        """Time of the last write."""
        self._uncut_bodies: deque[tuple[int, int, int, int]] = deque()
        """Body bytes that were not cut completely: their start and end here, their HTTP stream, and
        their offset in it."""
        self._uncut_records: deque[TlsRecord] = deque()
        """Records whose last byte was not cut."""
        self._unacked: deque[TlsRecord] = deque()
        """Records whose last byte was not acknowledged."""
        self.sent = 0
        """The offset of the first byte never sent."""
        self._written_end = 0
        """The end of the bytes written."""
        self.end = 0
        """The end of the bytes in the socket."""

    def write_message(self, message: Message, n_bytes: int) -> None:
        """Append a flight of the TLS handshake."""
        self._written_end += n_bytes
        self._append(TlsRecord(self._written_end, [], message))
        self.end = self._written_end

    def fill(self, acked: int, now_ns: int) -> None:
        """Take from the source up to the socket's capacity; up to *acked* the buffer is free."""
        while (
            self.end - self.sent < self.lowat_bytes and self.end - acked < self._send_buffer_bytes
        ) and self._write_next(now_ns):
            self.end = self._written_end

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
        bodies = self._uncut_bodies
        while bodies:
            piece_start, piece_stop, stream_id, offset = bodies[0]
            # An empty body that ends with the segment is delivered with it.
            if piece_stop > stop and piece_start >= stop:
                break
            # Conditional expressions: `max` and `min` would be two calls per frame and segment.
            low = piece_start if piece_start > start else start
            high = piece_stop if piece_stop < stop else stop
            frames.append((stream_id, offset + low - piece_start, high - low))
            if piece_stop > stop:
                break
            bodies.popleft()
        uncut_records = self._uncut_records
        records: list[TlsRecord] = []
        # A segment delivers a record if it carries its last byte: before that none can be read.
        while uncut_records and uncut_records[0].stop <= stop:
            records.append(uncut_records.popleft())
        return frames, records

    def on_acked(self, acked: int) -> None:
        """Report to the source the bytes that the peer has, in complete records."""
        # By records: the peer's application has nothing of a record before its last byte.
        unacked = self._unacked
        while unacked and unacked[0].stop <= acked:
            for stream_id, offset, n_bytes in unacked.popleft().frames:
                self._source.on_acked(stream_id, offset, n_bytes)

    def _write_next(self, now_ns: int) -> bool:
        """Write one unit of data; return whether there was any."""
        if not self._write_bytes:
            return self._write(self._record_room(now_ns), now_ns)
        start = self._written_end
        # HEADERS enter the buffer before it is filled with DATA. If they are longer than a write,
        # they leave uncut and without DATA.
        stop = start + max(self._write_bytes, self._source.waiting_header_bytes())
        if not self._cuts_frames:
            while self._written_end < stop and self._write(self._record_room(now_ns), now_ns):
                pass
            return self._written_end > start
        while (room := stop - self._written_end - self._overhead_bytes) >= self._min_room_bytes:
            if not self._write(min(self._record_room(now_ns), room), now_ns):
                break
        return self._written_end > start

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
        header = self._stream_header
        if header is not None:
            return self._source.take(min(room, self._data_frame_bytes), header, 1)
        n_bytes = room - self._frame_header_bytes
        if n_bytes > self._data_frame_bytes:
            n_bytes = self._data_frame_bytes
        return self._source.take(n_bytes)

    def _write_record(self, chunk: StreamBytes | None, room: int, now_ns: int) -> None:
        """Append a record with *chunk* and further data from the source up to *room* bytes."""
        header_bytes, stream_header = self._record_header_bytes, self._stream_header
        # The record header precedes the frames, type and tag follow: offsets of bodies are those on
        # the wire.
        stop = self._written_end + header_bytes
        frame_header_bytes = self._frame_header_bytes
        frames: list[StreamBytes] = []
        while chunk is not None:
            frames.append(chunk)
            stream_id, offset, n_bytes = chunk
            # An empty response of HTTP/1.1 still has a status line (RFC 9112 § 4).
            overhead_bytes = frame_header_bytes if n_bytes else self._empty_frame_bytes
            if stream_header is not None:
                overhead_bytes = stream_header.n_bytes
            start = stop + overhead_bytes
            stop = start + n_bytes
            if stream_id >= 0:  # a frame without a stream is no body
                self._uncut_bodies.append((start, stop, stream_id, offset))
            room -= overhead_bytes + n_bytes
            # In cleartext a record is a frame, so it holds one.
            if self._is_cleartext or room < self._next_frame_room_bytes:
                break
            chunk = self._take(self._record_bytes if self._has_full_frames else room)
        stop += self._overhead_bytes - header_bytes
        self._written_since_idle_bytes += stop - self._written_end
        self._written_at_ns = now_ns
        self._written_end = stop
        self._append(TlsRecord(stop, frames, None))

    def _append(self, record: TlsRecord) -> None:
        """Add a record that is to be cut, and then acknowledged."""
        self._uncut_records.append(record)
        self._unacked.append(record)

    def _dynamic_room(self, now_ns: int) -> int:
        """Return the payload limit of the next record: one segment at the start or after idling."""
        # After idling the window may have collapsed, and a large record would take several round
        # trips to be readable.
        if now_ns - self._written_at_ns >= self._dynamic_idle_ns:
            self._written_since_idle_bytes = 0
        if self._written_since_idle_bytes < self._dynamic_limit_bytes:
            return self._small_record_bytes
        return self._record_bytes


# Constants of Linux, for `AutotunedSendStream`.
_TIMESTAMPS_BYTES: Final = 12
_HEADROOM_BYTES: Final = 320 + 320
"""MAX_TCP_HEADER, and the aligned skb_shared_info behind the data, both on 64-bit machines."""
_SK_BUFF_BYTES: Final = 256
"""An aligned sk_buff."""
_INITIAL_SEGMENTS: Final = 10
"""TCP_INIT_CWND."""
_BUFFER_WINDOWS: Final = 2
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

    __slots__ = (
        "_is_full",
        "_limit_bytes",
        "_mss_bytes",
        "_notsent_lowat_bytes",
        "_segment_memory_bytes",
    )

    def __init__(
        self,
        settings: TcpSettings,
        source: Source,
        frame_header_bytes: int = FRAME_HEADER_BYTES,
        *,
        has_full_frames: bool = False,
        stream_header: FrameHeader | None = None,
    ) -> None:
        super().__init__(
            settings,
            source,
            frame_header_bytes,
            has_full_frames=has_full_frames,
            stream_header=stream_header,
        )
        self._mss_bytes = settings.mss_bytes
        data_bytes = settings.mss_bytes + _TIMESTAMPS_BYTES + _HEADROOM_BYTES
        power_of_two = 1 << (data_bytes - 1).bit_length()
        self._segment_memory_bytes = power_of_two + _SK_BUFF_BYTES
        self._notsent_lowat_bytes = settings.notsent_lowat_bytes
        self._limit_bytes = 0
        """The current capacity (sk_sndbuf)."""
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
            self.end = min(self._written_end, taken + max(0, self._room(acked)))
            # A record is written as a unit: the part that the socket refuses waits in the
            # application.
            if self.end < self._written_end:
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
        """Raise the capacity to that for a window of so many segments."""
        target_bytes = _BUFFER_WINDOWS * segments * self._segment_memory_bytes
        # Never smaller: tcp_sndbuf_expand only raises sk_sndbuf, even after a reduction.
        self._limit_bytes = max(self._limit_bytes, min(target_bytes, self._send_buffer_bytes))

    def _room(self, acked: int) -> int:
        """Return the room in the socket."""
        room = self._limit_bytes - (self.end - acked)
        if self._notsent_lowat_bytes is None:
            return room
        return min(room, self._notsent_lowat_bytes - (self.end - self.sent))

    def _is_writable(self, acked: int) -> bool:
        """Return whether a socket that was full reports room."""
        lowat = self._notsent_lowat_bytes
        if lowat is not None and 2 * (self.end - self.sent) >= lowat:
            return False
        # sk_stream_is_writeable requires half as much free as is used: at most two thirds used.
        return 3 * (self.end - acked) <= 2 * self._limit_bytes


HEADER_BYTES: Final = 20 + 12
"""The header (RFC 9293 § 3.1) and the timestamps option, padded (RFC 7323 § 3.2, appendix A)."""
SYN_BYTES: Final = 40
"""A SYN's header: MSS, SACK-permitted, timestamps and window scale."""
_SACK_BLOCK_BYTES: Final = 8
"""Two sequence numbers."""
_SACK_OPTION_BYTES: Final = 4
"""Kind and length, padded with two no-operations."""
# Shared by segments without data; segments are immutable.
_NO_FRAMES: list[StreamBytes] = []
_NO_RECORDS: list[TlsRecord] = []


def sack_option_bytes(n_blocks: int) -> int:
    """Return the length of a SACK option (RFC 2018 § 3), padded to whole words.

    >>> [sack_option_bytes(n_blocks) for n_blocks in (0, 1, 3)]
    [0, 12, 28]
    """
    return _SACK_OPTION_BYTES + _SACK_BLOCK_BYTES * n_blocks if n_blocks else 0


class Segment(WirePacket):
    """A segment on the wire, immutable: a retransmission is another segment.

    *seq* counts the bytes of the stream from 0; a SYN takes no number. *sack* holds spans that
    arrived, the newest first. *echo_ns* is the echoed timestamp (RFC 7323). *frames* are the body
    bytes in its payload, for traces; *records* are the TLS records whose last byte it carries,
    which is what its receiver learns from it.
    """

    __slots__ = (
        "ack",
        "echo_ns",
        "is_cwr",
        "is_ece",
        "is_syn",
        "length",
        "records",
        "sack",
        "seq",
        "window_bytes",
    )

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        seq: int,
        length: int,
        ack: int | None,
        echo_ns: int | None,
        window_bytes: int,
        sack: tuple[tuple[int, int], ...] = (),
        frames: list[StreamBytes] = _NO_FRAMES,
        records: list[TlsRecord] = _NO_RECORDS,
        is_syn: bool = False,
    ) -> None:
        self.number = number
        """Its number in the order of sending, data or not."""
        self.sent_at_ns = sent_at_ns
        self.seq = seq
        self.length = length
        self.ack = ack
        self.echo_ns = echo_ns
        self.window_bytes = window_bytes
        self.sack = sack
        self.frames = frames
        self.records = records
        self.is_syn = is_syn
        self.ecn = NOT_ECT
        self.is_ece = False
        """ECN-Echo: a mark has arrived, and no CWR since (RFC 3168 § 6.1)."""
        self.is_cwr = False
        """Congestion Window Reduced."""
        self.size_bytes = HEADER_BYTES + length
        """Its size with TCP's header, without that of IP."""
        if sack:
            self.size_bytes += sack_option_bytes(len(sack))
        elif is_syn:
            self.size_bytes = SYN_BYTES

    @property
    def ip_bytes(self) -> int:
        """Its size with IPv4's header."""
        return self.size_bytes + IP_HEADER_BYTES


class SentSegment(SentPacket):
    """Data in flight, as its sender remembers it until it is acknowledged.

    Congestion controllers see it too: *size_bytes* is the payload alone, since TCP's window counts
    payload, and *number* that of its last transmission. The four delivery fields, set by
    `DeliverySampler` on sending, hold the state of delivery-rate sampling
    (draft-cheng-iccrg-delivery-rate-estimation).
    """

    __slots__ = (
        "copies",
        "is_lost",
        "is_retransmitted",
        "is_sacked",
        "records",
        "seq",
        "stop",
    )

    def __init__(
        self,
        number: int,
        sent_at_ns: int,
        seq: int,
        size_bytes: int,
        frames: list[StreamBytes],
        records: list[TlsRecord],
    ) -> None:
        self.number = number
        self.sent_at_ns = sent_at_ns
        self.seq = seq
        self.size_bytes = size_bytes
        self.stop = seq + size_bytes
        self.frames = frames
        self.records = records
        self.copies = 1
        """The number of its transmissions in flight."""
        self.is_sacked = False
        self.is_lost = False
        """True if a transmission of it was declared lost."""
        self.is_retransmitted = False


_MAX_SACK_BLOCKS: Final = 3
"""The most SACK blocks that fit next to timestamps (RFC 2018 § 3)."""
_MAX_LOGGED_SPANS: Final = 32
"""The most spans of numbers reported to a log, in the form of a QUIC ACK."""


class Reassembly:
    """Reassembly of the byte stream: out-of-order segments wait for the hole to be filled.

    An ACK is due at once after *every* segments in order, after an out-of-order or duplicate
    segment, and when a hole is filled; otherwise *max_delay_ns* after the first unacknowledged
    segment (RFC 5681 § 4.2).
    """

    __slots__ = (
        "_ack_every",
        "_duplicate",
        "_early",
        "_max_delay_ns",
        "_number_ranges",
        "_numbers",
        "_run_starts",
        "_runs",
        "_unacked",
        "due_at_ns",
        "echo_ns",
        "echoes_mark",
        "last_ack",
        "next_seq",
        "wants_sack",
    )

    def __init__(self, *, every: int, max_delay_ns: int) -> None:
        self._ack_every = every
        self._max_delay_ns = max_delay_ns
        self._early: dict[int, Segment] = {}
        """Out-of-order segments by sequence number."""
        self._runs: dict[int, int] = {}
        """The start and end of each out-of-order span, the most recently extended last."""
        self._run_starts: dict[int, int] = {}
        """The start of each of them by its end."""
        self._duplicate: tuple[int, int] | None = None
        """A span that arrived twice, to be reported with the next ACK."""
        self._unacked = 0
        """The segments in order since the last ACK."""
        self._numbers: list[int] = []
        """The numbers of received segments that are not in `_number_ranges` yet."""
        self._number_ranges = Ranges()
        self.next_seq = 0
        """The next expected byte (RCV.NXT)."""
        self.last_ack = 0
        """The ACK number of the last segment sent."""
        self.echo_ns: int | None = None
        """TS.Recent (RFC 7323 § 4.3): the timestamp to echo with the next ACK."""
        self.due_at_ns: int | None = None
        """Time when an ACK is due."""
        self.wants_sack = False
        """True if an ACK needs a SACK option; read with each segment, so it is an attribute."""
        self.echoes_mark = False
        """True if ACKs carry ECN-Echo: from a mark until CWR arrives (RFC 3168 § 6.1.3)."""

    def on_segment(self, segment: Segment, now_ns: int) -> list[TlsRecord]:
        """Handle a data segment; return the records that are now complete, in order."""
        seq = segment.seq
        if segment.is_cwr:
            self.echoes_mark = False
        if segment.ecn == CE:  # after CWR: the segment that carries it may be marked itself
            self.echoes_mark = True
        # Converted to ranges only for a log: most loads pay for an append only.
        self._numbers.append(segment.number)
        if seq != self.next_seq:
            self._on_early(segment, now_ns)
            return []
        self.next_seq = seq + segment.length
        if self._early:
            # A hole is filled, partly or fully: ACK at once (RFC 5681 § 4.2).
            self.due_at_ns = now_ns
            return self._with_followers(segment)
        # RFC 5681 § 4.2: an ACK for at least every second full segment, and within 500 ms.
        self._unacked += 1
        if self._unacked >= self._ack_every:
            self.due_at_ns = now_ns
        elif self.due_at_ns is None:
            self.due_at_ns = now_ns + self._max_delay_ns
        return segment.records

    def on_acked(self) -> None:
        """Record a segment that acknowledges everything in order."""
        self.last_ack = self.next_seq
        self._unacked = 0
        self.due_at_ns = None

    def take_blocks(self) -> tuple[tuple[int, int], ...]:
        """Return the SACK blocks: first a duplicate, then the newest spans.

        See RFC 2018 § 4, and RFC 2883 § 4 for the duplicate (D-SACK).
        """
        duplicate = self._duplicate
        if duplicate is None:
            return tuple(islice(reversed(self._runs.items()), _MAX_SACK_BLOCKS))
        self._duplicate = None
        self.wants_sack = bool(self._early)
        return (duplicate, *islice(reversed(self._runs.items()), _MAX_SACK_BLOCKS - 1))

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers of received segments, (low, high) inclusive, highest first."""
        for number in self._numbers:
            self._number_ranges.add(number, number + 1)
        self._numbers.clear()
        newest = self._number_ranges.spans()[-_MAX_LOGGED_SPANS:]
        return tuple((start, stop - 1) for start, stop in reversed(newest))

    def _on_early(self, segment: Segment, now_ns: int) -> None:
        """Keep an out-of-order segment, unless it is a duplicate."""
        self.due_at_ns = now_ns
        self.wants_sack = True
        seq, stop = segment.seq, segment.seq + segment.length
        # Segments are never split again, so one is either new or known as a unit.
        if seq < self.next_seq or seq in self._early:
            self._duplicate = (seq, stop)
            self._report_next(seq)
            return
        self._early[seq] = segment
        # The span grows at either end, or joins two.
        below = self._run_starts.pop(seq, None)
        if below is not None:
            del self._runs[below]
            seq = below
        above = self._runs.pop(stop, None)
        if above is not None:
            stop = above
        # Reinserted, so that it is last: the first block reports the span that grew (RFC 2018 § 4).
        self._runs[seq] = stop
        self._run_starts[stop] = seq

    def _report_next(self, seq: int) -> None:
        """Move the span that holds *seq* to the end, if one does, so that it is reported next.

        The block after a D-SACK is the one that contains the duplicate (RFC 2883 § 4): otherwise
        the sender would take it for one more block (as tcp_sack_new_ofo_skb of Linux).
        """
        start = next((start for start, stop in self._runs.items() if start <= seq < stop), None)
        if start is not None:
            self._runs[start] = self._runs.pop(start)

    def _with_followers(self, segment: Segment) -> list[TlsRecord]:
        """Return the records that end in a segment, and in those that waited for it."""
        records = list(segment.records)
        stop = self._runs.pop(self.next_seq, None)
        if stop is None:
            return records
        del self._run_starts[stop]
        while self.next_seq < stop:
            follower = self._early.pop(self.next_seq)
            self.next_seq += follower.length
            records += follower.records
        self.wants_sack = bool(self._early) or self._duplicate is not None
        return records
