"""qlog reader: the view of each endpoint, and the trace that one or both views yield."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from h3sim.qlog.container import (
    Findings,
    as_unsigned,
    describe_value,
    events_of,
    opened,
    raw_traces,
)
from h3sim.qlog.lost_packets import lost_frames
from h3sim.qlog.records import DataMoved, StreamFrame, with_moves
from h3sim.qlog.writer import PROTOCOLS_FIELD
from h3sim.trace import Delivery, Request, SentRow, Trace, with_delivery
from h3sim.values.constants import MAX_VARINT, STREAM_ID_STEP
from h3sim.values.ranges import Ranges
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from h3sim.qlog.container import Clock, QlogEvent, RawTrace


_APPLICATION_NAMES = ("application", "user")
"""Values of `to` in an event of data that the transport delivers to the application."""
_HEADERS_FRAME_TYPES = ("headers", "header")
"""The names of a frame of header fields, now and in draft-01 and -02 of qlog."""


_PATH_STEP = MAX_VARINT + 1
"""Distance of the keys of equal packet numbers on two paths of a multipath connection."""
PATH_ACKS = ("path_ack", "mp_ack", "ack_mp")
"""Names of an ACK of the packets of one path, in the versions of draft-ietf-quic-multipath."""
_MAX_LOST_IN_A_ROW = 10_000
_MAX_MISSING = 1_000_000
"""The most missing packet numbers that are considered, in a row and in all: bounds of memory."""


class VantagePoint:
    """The view of a client or a server: downlink packets, requests, acknowledgements.

    Only packets of the application data number spaces, and only request streams are considered.
    Over several paths with packet numbers of their own (draft-ietf-quic-multipath), the key of a
    packet is its number plus a multiple of `_PATH_STEP`; otherwise it is its number.
    """

    def __init__(self, findings: Findings, clock: Clock, *, is_client: bool) -> None:
        self._findings = findings
        self.clock = clock
        self.is_client = is_client
        self._down_frames: tuple[str, ...] = ("stream", "reset_stream")
        """Types of the frames of downlink packets that are read."""
        self._up_frames: tuple[str, ...] = (
            ("stream",) if is_client else ("stream", "ack", *PATH_ACKS)
        )
        """Types of the frames of uplink packets that are read: a server learns by ACKs what has
        arrived, a client knows."""
        self.packets: dict[int, int] = {}
        """Times of downlink packets, received (client) or sent (server), by key."""
        self.is_multipath = False
        """True if paths number their packets separately."""
        self._index_by_path = {"": 0}
        self._path_by_number: dict[int, str] = {}
        """The network path of each downlink packet, if the log has it."""
        self.handshake_numbers: set[int] = set()
        """The numbers of downlink packets in the two other packet number spaces."""
        self.frames: dict[int, list[StreamFrame]] = {}
        """The stream frames of those packets, if logged."""
        self.reset_at_bytes: dict[int, int] = {}
        """The bytes sent of each response that the server reset (RFC 9000 § 19.4)."""
        self.requested_at_ns: dict[int, int] = {}
        """Time when each stream's request was made (client) or arrived (server)."""
        self.ids: dict[int, str] = {}
        """The path (`:path`) of each stream's request."""
        self.body_bytes: dict[int, int] = {}
        """The length of each response by its header (`content-length`)."""
        self.moved: list[DataMoved] = []
        """Times and bytes delivered to a client's application."""
        self.acked = Ranges()
        """The numbers of downlink packets that the client acknowledged."""
        self.lost: dict[int, None] = {}
        """The numbers of downlink packets that the server declared lost, in order."""
        self.min_rtt_ns: int | None = None

    def on_event(self, event: QlogEvent) -> None:
        """Record an event."""
        match event.what:
            # A client receives the packets of the downlink, and creates requests; a server sends
            # the former, and parses the latter.
            case "sent" | "received":
                self._on_packet(event, is_down=(event.what == "received") == self.is_client)
            case "created" | "parsed":
                self._on_header_frame(event, is_request=(event.what == "created") == self.is_client)
            case "moved" if self.is_client:
                self._on_moved(event)
            case "lost":
                self._on_lost(event)
            case "metrics":
                rtt_ns = self.clock.ns(event.data.get("min_rtt"))
                if rtt_ns is not None and rtt_ns > 0:
                    self.min_rtt_ns = min(rtt_ns, self.min_rtt_ns or rtt_ns)

    # Packets

    def _on_packet(self, event: QlogEvent, *, is_down: bool) -> None:
        """Record a packet, by its direction and packet number space."""
        fields = header_fields(event)
        packet_type = str(fields.get("packet_type", "1RTT")).casefold()
        if not is_down:
            if packet_type in ("1rtt", "0rtt"):
                self._on_client_packet(event)
            return
        number = as_unsigned(fields.get("packet_number"))
        if packet_type != "1rtt":
            if number is not None and packet_type in ("initial", "handshake"):
                self.handshake_numbers.add(number)
            return
        if number is None:
            value = describe_value(fields.get("packet_number"))
            message = f"must be a whole number of at least 0, is {value}"
            self._findings.wrong(f"{event.key}.data.header.packet_number", message)
            return
        number = self._key(number, event.path)
        if number in self.packets:
            if self.is_multipath or event.path == self._path_by_number.get(number, ""):
                return  # a duplicate, which the receiver ignores
            # A connection that migrates has one sequence of numbers (RFC 9000 § 9).
            self.separate_paths()
            number = self._key(number, event.path)
        self.packets[number] = event.at_ns
        if event.path:
            self._path_by_number[number] = event.path
        stream_frames = []
        for frame_type, key, frame in self._frames(event, *self._down_frames):
            if frame_type == "reset_stream":
                stream_id, size = self._stream_id(key, frame), as_unsigned(frame.get("final_size"))
                if stream_id is not None and size is not None:
                    self.reset_at_bytes[stream_id] = size
            elif frame_type == "ack":
                self._on_request_acked(event, frame)
            elif (stream_frame := self._stream_frame(key, frame)) is not None:
                stream_frames.append(stream_frame)
        if stream_frames:
            self.frames[number] = stream_frames

    def _key(self, number: int, path: str) -> int:
        """Return the key of a packet of the downlink."""
        if not self.is_multipath:
            return number
        # The logs of both ends have the same ids of paths, but names of their own.
        names = self._index_by_path
        index = int(path) if path.isdecimal() else names.setdefault(path, len(names))
        return number + _PATH_STEP * index

    def separate_paths(self) -> dict[int, int]:
        """Give the packets so far keys of their paths, as another one has appeared.

        Returns their keys by number.
        """
        self.is_multipath = True
        keys = {
            number: self._key(number, self._path_by_number.get(number, ""))
            for number in self.packets
        }
        self.packets = {keys[number]: at_ns for number, at_ns in self.packets.items()}
        self.frames = {keys[number]: frames for number, frames in self.frames.items()}
        self.lost = {keys.get(number, number): None for number in self.lost}
        return keys

    def _on_client_packet(self, event: QlogEvent) -> None:
        """Record a packet of the client: requests, limits and acknowledgements."""
        for frame_type, key, frame in self._frames(event, *self._up_frames):
            if frame_type == "ack" or frame_type in PATH_ACKS:
                path = frame.get("path_id") if frame_type in PATH_ACKS else None
                if path is not None and not self.is_multipath:
                    self.separate_paths()
                self._on_ack(key, frame.get("acked_ranges", []), path)
            elif frame_type != "stream":
                self._on_limit(event, frame_type, frame)
            elif (stream_id := self._stream_id(key, frame)) is not None:
                self._on_request_bytes(stream_id, event.at_ns)

    def _on_request_acked(self, event: QlogEvent, frame: dict[str, Any]) -> None:
        """Ignore an ACK of the client's packets; `SenderView` records it."""

    def _on_limit(self, event: QlogEvent, frame_type: str, frame: dict[str, Any]) -> None:
        """Ignore a flow control limit; `SenderView` records it."""

    def _frames(
        self, event: QlogEvent, *frame_types: str
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the type, key and fields of each frame of these types.

        To be called once per event, since it records each error that it finds.
        """
        frames = event.data.get("frames") or []
        if not isinstance(frames, list):
            message = f"must be a list, is {describe_value(frames)}"
            self._findings.wrong(f"{event.key}.data.frames", message)
            return
        for index, frame in enumerate(frames):
            key = f"{event.key}.data.frames[{index}]"
            if not isinstance(frame, dict):
                self._findings.wrong(key, f"must be an object, is {describe_value(frame)}")
            elif (kind := str(frame.get("frame_type")).casefold()) in frame_types:
                yield kind, key, frame

    def _stream_frame(self, key: str, entry: dict[str, Any]) -> StreamFrame | None:
        """Return a frame of a response; None for other streams and incomplete frames."""
        stream_id = self._stream_id(key, entry)
        if stream_id is None or stream_id % STREAM_ID_STEP:
            return None
        offset = self._read_unsigned(key, "offset", entry.get("offset", 0))
        n_bytes = self._read_unsigned(key, "length", frame_length(entry))
        if offset is None or n_bytes is None:
            return None
        if offset + n_bytes > MAX_VARINT:
            self._findings.wrong(key, "exceeds the largest offset of a stream (2^62 - 1)")
            return None
        fin = entry.get("fin") in (True, "true", 1)
        return StreamFrame(stream_id, offset, n_bytes, fin) if n_bytes or fin else None

    def _on_moved(self, event: QlogEvent) -> None:
        """Record bytes that moved from the transport to the application."""
        data = event.data
        if data.get("from") != "transport" or data.get("to") not in _APPLICATION_NAMES:
            return
        stream_id, offset = as_unsigned(data.get("stream_id")), as_unsigned(data.get("offset"))
        n_bytes = as_unsigned(frame_length(data))
        if stream_id is None or offset is None or n_bytes is None or stream_id % STREAM_ID_STEP:
            return
        self.moved.append(DataMoved(event.at_ns, stream_id, offset, n_bytes))

    def _on_ack(self, key: str, ranges: object, path: object = None) -> None:
        """Record the packet numbers that the client acknowledges: of the first path, if None."""
        first = 0 if path is None else self._key(0, str(path))
        for entry in ranges if isinstance(ranges, list) else [ranges]:
            ends = [as_unsigned(end) for end in entry] if isinstance(entry, list) else []
            low, high = (ends[0], ends[-1]) if ends else (None, None)
            if low is None or high is None or len(ends) > 2 or low > high:
                message = f"must be like [[0, 4], [6]], is {describe_value(ranges)}"
                self._findings.wrong(f"{key}.acked_ranges", message)
                return
            self.acked.add(first + low, first + high + 1)

    def _on_lost(self, event: QlogEvent) -> None:
        fields = header_fields(event)
        number = as_unsigned(fields.get("packet_number"))
        if number is not None and str(fields.get("packet_type", "1RTT")).casefold() == "1rtt":
            self.lost[self._key(number, event.path)] = None

    def missing_numbers(self) -> list[int]:
        """Return the numbers of no downlink packet up to the highest, in order.

        Some stacks (aioquic) share one sequence between packet number spaces: numbers that the
        handshake used before the first packet are not missing. Long jumps are left out: no network
        loses so many packets in a row and then delivers the next.
        """
        found: list[int] = []
        previous = -1
        for number in sorted(self.packets):
            previous = max(previous, number - number % _PATH_STEP - 1)
            if number - previous <= _MAX_LOST_IN_A_ROW and len(found) < _MAX_MISSING:
                found += range(previous + 1, number)
            previous = number
        first = min(self.packets, default=0)
        of_handshake = {number for number in self.handshake_numbers if number < first}
        return [number for number in found if number not in of_handshake]

    # HTTP

    def _on_header_frame(self, event: QlogEvent, *, is_request: bool) -> None:
        """Record a frame with the headers of a request or a response."""
        frame = event.data.get("frame")
        if not isinstance(frame, dict):
            return
        if str(frame.get("frame_type")).casefold() not in _HEADERS_FRAME_TYPES:
            return
        value = event.data.get("stream_id")
        stream_id = self._read_unsigned(f"{event.key}.data", "stream_id", value)
        if stream_id is None or stream_id % STREAM_ID_STEP:
            return
        headers = dict(_headers(frame.get("headers")))
        if is_request:
            self._on_request_bytes(stream_id, event.at_ns)
            if ":path" in headers:
                self.ids.setdefault(stream_id, headers[":path"])
            self._on_request_headers(event, stream_id, headers)
            return
        n_bytes = as_unsigned(headers.get("content-length"))
        if n_bytes is not None:
            self.body_bytes.setdefault(stream_id, n_bytes)

    def _on_request_headers(
        self, event: QlogEvent, stream_id: int, headers: dict[str, str]
    ) -> None:
        """Ignore the fields of a request; `SenderView` records its priority."""

    def _on_request_bytes(self, stream_id: int, at_ns: int) -> None:
        # The first time counts: a request may consist of several frames, or be retransmitted.
        known_ns = self.requested_at_ns.get(stream_id, at_ns)
        self.requested_at_ns[stream_id] = min(known_ns, at_ns)

    def _stream_id(self, key: str, entry: dict[str, Any]) -> int | None:
        return self._read_unsigned(key, "stream_id", entry.get("stream_id", entry.get("id")))

    def _read_unsigned(self, key: str, name: str, value: object) -> int | None:
        number = as_unsigned(value)
        if number is None:
            message = f"must be a whole number from 0 to 2^62 - 1, is {describe_value(value)}"
            self._findings.wrong(f"{key}.{name}", message)
        return number


def header_fields(event: QlogEvent) -> dict[str, Any]:
    """Return the data of a packet with the fields of its header.

    0.3 nests the header; some stacks put its fields next to the frames.
    """
    header = event.data.get("header")
    return {**event.data, **header} if isinstance(header, dict) else event.data


def frame_length(entry: dict[str, Any]) -> object:
    """Return the length of a frame's data.

    Older dialects have `length`, newer ones `raw.length` or `raw.payload_length`.
    """
    raw = entry.get("raw")
    raw = raw if isinstance(raw, dict) else {}
    # `payload_length` first: in older drafts `length` includes the header of the frame.
    return entry.get("length", raw.get("payload_length", raw.get("length")))


def _headers(entries: object) -> Iterator[tuple[str, str]]:
    """Yield the names and values of header fields, given as a list of objects or as one object."""
    if isinstance(entries, dict):
        entries = [{"name": name, "value": value} for name, value in entries.items()]
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            name, value = entry.get("name"), entry.get("value")
            if isinstance(name, str) and isinstance(value, str | int):
                yield name.casefold(), str(value)


_MAX_SHOWN_STREAMS = 5
"""Most stream IDs that a line about missing data lists."""
ViewT = TypeVar("ViewT", bound=VantagePoint)
ValueT = TypeVar("ValueT")


def _client_rows(
    client: VantagePoint, findings: Findings, delivery: Delivery
) -> tuple[list[SentRow], int]:
    """Return the packets that a client received, and the number of those that were lost.

    Missing packet numbers count as losses, as in Sander 2022, if a gap of a stream shows that: QUIC
    servers skip some (RFC 9000 § 21.4).
    """
    findings.unknown.append("when packets were sent: the server has no log here")
    missing = client.missing_numbers()
    frames = {number: client.frames[number] for number in sorted(client.frames)}
    # Over several paths streams arrive with gaps without any loss.
    shows_losses = delivery is Delivery.STREAM and not client.is_multipath
    n_lost = len(lost_frames(frames, missing)) if shows_losses else len(missing)
    if n_lost:
        findings.unknown.append(
            f"what {_packets(n_lost)} carried, of which only the number is missing; taken as lost"
        )
    if n_skipped := len(missing) - n_lost:
        findings.unknown.append(
            f"whether {_packets(n_skipped)} were ever sent, of which only the number is missing,"
            " and no bytes; taken as numbers that the server skipped"
        )
    rows: list[SentRow] = [
        (client.packets[number], client.packets[number], stream_id, offset, n_bytes, number)
        for number in sorted(client.frames)
        for stream_id, offset, n_bytes, _ in client.frames[number]
    ]
    return rows, n_lost


def _packets(number: int) -> str:
    return f"{number:,} packet{'' if number == 1 else 's'}"


def _rows_of_both(
    client: VantagePoint, server: VantagePoint, shift_ns: int | None
) -> Iterator[SentRow]:
    """Yield the server's packets with the client's arrivals.

    Without a common clock (*shift_ns* is None) packets count as sent when they arrived.
    """
    latest_arrival_ns = 0
    for number in sorted(client.frames | server.frames):
        arrived_at_ns = client.packets.get(number)
        if arrived_at_ns is not None:
            latest_arrival_ns = max(latest_arrival_ns, arrived_at_ns)
        sent_at_ns = server.packets.get(number)
        if sent_at_ns is None or shift_ns is None:
            # The best guess for a lost packet is the latest arrival of an earlier one.
            sent_at_ns = latest_arrival_ns if arrived_at_ns is None else arrived_at_ns
        else:
            sent_at_ns += shift_ns
        # Preferably the frames that the client logged, since its load is measured.
        for stream_id, offset, n_bytes, _ in client.frames.get(number) or server.frames[number]:
            yield sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number


def _shift_ns(client: VantagePoint, server: VantagePoint) -> int | None:
    """Return the offset from the server's to the client's clock; None if it is unknown."""
    shift_ns = server.clock.offset_to(client.clock)
    if shift_ns is None:
        return None
    delays_ns = sorted(
        client.packets[number] - (server.packets[number] + shift_ns)
        for number in client.packets.keys() & server.packets.keys()
    )
    # Clocks are not exact, and logs are written a little late; but most packets arrive after they
    # were sent.
    return shift_ns if not delays_ns or delays_ns[len(delays_ns) // 2] >= 0 else None


def covered(ranges: Ranges, numbers: Iterable[int]) -> set[int]:
    """Return those of *numbers* that are in *ranges*."""
    spans = ranges.spans()
    starts = [start for start, _ in spans]
    indexes = ((number, bisect_right(starts, number) - 1) for number in numbers)
    return {number for number, index in indexes if index >= 0 and number < spans[index][1]}


def _server_rows(server: VantagePoint, findings: Findings) -> tuple[list[SentRow], int]:
    """Return the packets that a server sent, and the one-way delay that is assumed for each.

    Whether they arrived is inferred from acknowledgements and declared losses.
    """
    delay_ns = (server.min_rtt_ns or 0) // 2
    findings.unknown.append(
        "when packets arrived: the client has no log here; taken as sent"
        + (f" + {to_ms(delay_ns):g} ms, half the least RTT" if delay_ns else "")
    )
    acked = covered(server.acked, server.frames)
    acked_end = {start // _PATH_STEP: stop for start, stop in server.acked.spans()}
    rows: list[SentRow] = []
    n_unsure = 0
    for number in sorted(server.frames):
        sent_at_ns = server.packets[number]
        is_acked = number in acked
        # Below the highest acknowledged number, a packet that no ACK covers did not arrive.
        is_lost = not is_acked and (
            number in server.lost or number < acked_end.get(number // _PATH_STEP, 0)
        )
        n_unsure += not is_acked and not is_lost
        arrived_at_ns = None if is_lost else sent_at_ns + delay_ns
        for stream_id, offset, n_bytes, _ in server.frames[number]:
            rows.append((sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number))
    if n_unsure:
        findings.unknown.append(
            f"whether {_packets(n_unsure)} arrived, neither acknowledged nor lost; taken as arrived"
        )
    return rows, delay_ns


class _ReportedStreams:
    """Requests and responses in the logs of both ends; *shift_ns* converts the server's times."""

    def __init__(self, sides: Mapping[str, VantagePoint], shift_ns: int | None) -> None:
        client, server = sides.get("client"), sides.get("server")
        # The client knows best what it requested, the server what it sent: of two values for a
        # stream, that of the last view is used.
        server_first = [view for view in (server, client) if view is not None]
        client_first = server_first[::-1]
        self.ids = _merged(view.ids for view in server_first)
        self.bodies = _merged(view.body_bytes for view in server_first)
        self.resets = _merged(view.reset_at_bytes for view in client_first)
        self.ends = _merged(_ends(view) for view in client_first)
        self.gaps: defaultdict[str, list[int]] = defaultdict(list)
        """Missing data, with the streams concerned."""
        server_times = {} if server is None else server.requested_at_ns
        shifted_times = {
            stream_id: at_ns + shift_ns
            for stream_id, at_ns in server_times.items()
            if shift_ns is not None
        }
        # A server alone knows when requests arrived; they were made one delay before.
        self._requested_at_ns = shifted_times if client is None else client.requested_at_ns
        self._arrived_at_ns = server_times if client is None else shifted_times

    def responses(self, rows: Iterable[SentRow]) -> Iterator[tuple[Request, MeasuredResource]]:
        """Yield the complete responses."""
        received: dict[int, Ranges] = {}
        first_at_ns: dict[int, int] = {}
        sizes = dict(self.ends)
        for _, at_ns, stream_id, offset, n_bytes, _ in rows:
            ranges = received.setdefault(stream_id, Ranges())
            sizes[stream_id] = max(sizes.get(stream_id, 0), offset + n_bytes)
            if at_ns is not None:
                ranges.add(offset, offset + n_bytes)
                first_at_ns[stream_id] = min(first_at_ns.get(stream_id, at_ns), at_ns)
        for stream_id in sorted(received):
            size, has_end = sizes[stream_id], stream_id in self.ends
            if not has_end:
                # A truncated log or a reset response is recognized by the reported length.
                reported = (self.bodies.get(stream_id, 0), self.resets.get(stream_id, 0))
                size = max(size, *reported)
            if stream_id not in first_at_ns or received[stream_id].contiguous < size:
                self.gaps["the end of responses that are left out"].append(stream_id)
                continue
            if not has_end:
                self.gaps["whether responses that lack a FIN are whole"].append(stream_id)
            yield self._response(stream_id, first_at_ns[stream_id], size)

    def _response(
        self, stream_id: int, first_at_ns: int, size: int
    ) -> tuple[Request, MeasuredResource]:
        """Return a response, with stand-ins for what the logs lack."""
        requested_at_ns = self._requested_at_ns.get(stream_id)
        if requested_at_ns is None:
            requested_at_ns = first_at_ns
            self.gaps["when requests were made; their first byte stands in"].append(stream_id)
        if stream_id not in self.ids:
            self.gaps["what was asked for"].append(stream_id)
        body_bytes = self.bodies.get(stream_id)
        if body_bytes is None or body_bytes > size:
            body_bytes = size
            self.gaps["how long bodies are; all bytes of the stream stand in"].append(stream_id)
        arrived_at_ns = self._arrived_at_ns.get(stream_id, requested_at_ns)
        resource = MeasuredResource(self.ids.get(stream_id, f"stream {stream_id}"), body_bytes)
        return Request(stream_id, 0, requested_at_ns, arrived_at_ns, size), resource

    def gap_lines(self) -> Iterator[str]:
        """Yield a line for each kind of missing data."""
        for what, streams in self.gaps.items():
            shown = ", ".join(map(str, streams[:_MAX_SHOWN_STREAMS]))
            n_omitted = len(streams) - _MAX_SHOWN_STREAMS
            more = f" and {n_omitted:,} more" if n_omitted > 0 else ""
            yield f"{what}: stream{'s' if len(streams) > 1 else ''} {shown}{more}"


def _merged(tables: Iterable[Mapping[int, ValueT]]) -> dict[int, ValueT]:
    return {key: value for table in tables for key, value in table.items()}


def _ends(view: VantagePoint) -> dict[int, int]:
    """Return the final size of each stream whose FIN was seen."""
    return {
        frame.stream_id: frame.offset + frame.n_bytes
        for frames in view.frames.values()
        for frame in frames
        if frame.fin
    }


_TRACE_OPTION_ADVICE = ": `--trace N` (`trace=N`) takes trace N alone, from 1 on"
_ENDS = ("client", "server")


class MeasuredResource(NamedTuple):
    """The content of a stream: the requested path, and the length of the body."""

    id: str
    body_bytes: int


@dataclass(frozen=True, kw_only=True)
class MeasuredLog:
    """A connection as recorded in a log.

    `Request.resource` is an index into *resources*. Rows of `trace.packet_rows` are ordered by
    packet number, the order of sending.
    """

    title: str
    trace: Trace
    resources: tuple[MeasuredResource, ...]
    unseen_packets: int
    """The number of packets that the client never received: lost, with unknown content."""
    unknown: tuple[str, ...]
    """Missing data of the log, and what replaces it."""


def parse_qlog(path: str | Path, *, trace: int | None = None) -> MeasuredLog:
    """Read one connection from the qlog at *path*.

    *trace*, from 1, selects a log in a file with several connections. If both ends were logged,
    arrivals are the client's and everything else is the server's. Times are nanoseconds since the
    log's reference; since its first event if the reference is a time of day or after that event,
    and since the first request if a server's log begins when that arrives.

    Raises:
        LogError: if the file cannot be read, or listing its errors.
    """
    findings = Findings(str(path))
    title, protocols, sides = read_endpoints(path, trace, findings, VantagePoint)
    delivery = Delivery.CONNECTION if "TCP" in protocols else Delivery.STREAM
    rows, shift_ns, unseen_packets = _rows_of(sides, findings, delivery)
    if any(side.is_multipath for side in sides.values()):
        findings.unknown.append(
            "the order of sending of packets of several paths; taken as by time"
        )
        rows = _in_order_of_time(rows)
    reported = _ReportedStreams(sides, shift_ns)
    responses = list(reported.responses(rows))
    findings.unknown += reported.gap_lines()
    if delivery is Delivery.CONNECTION:
        if unseen_packets:
            message = "lost packets hold up all behind them, and only the server's log says which"
            findings.fatal("", message)
        # Missing bytes of an incomplete response would hold up all that were sent later.
        stream_ids = {request.stream_id for request, _ in responses}
        rows = [row for row in rows if row[2] in stream_ids]
    if not responses:
        findings.fatal("", "holds no response that arrived to its end")
    responses.sort(key=lambda response: (response[0].requested_at_ns, response[0].stream_id))
    moved = sides["client"].moved if "client" in sides else []
    # Requests were made half a round trip before the first event of a server's log.
    first_ns = min(
        min(request.requested_at_ns for request, _ in responses),
        min(sent_at_ns for sent_at_ns, *_ in rows),
    )
    early_ns = max(0, -first_ns)
    if early_ns:
        responses = [(_later(request, early_ns), resource) for request, resource in responses]
        rows = [_later_row(row, early_ns) for row in rows]
        moved = [each._replace(at_ns=each.at_ns + early_ns) for each in moved]
    measured = Trace(
        delivery=delivery,
        requests=tuple(
            request._replace(resource=index) for index, (request, _) in enumerate(responses)
        ),
        signals=(),
        packet_rows=with_moves(with_delivery(rows, delivery), moved),
    )
    return MeasuredLog(
        title=title,
        trace=measured,
        resources=tuple(resource for _, resource in responses),
        unseen_packets=unseen_packets,
        unknown=tuple(findings.unknown),
    )


def _in_order_of_time(rows: Iterable[SentRow]) -> list[SentRow]:
    """Return the packets of several paths in the order of sending, numbered in that order."""
    ordered = sorted(rows, key=lambda row: row[0])
    numbers = {key: number for number, key in enumerate(dict.fromkeys(row[-1] for row in ordered))}
    return [(*row[:-1], numbers[row[-1]]) for row in ordered]


def _later(request: Request, by_ns: int) -> Request:
    """Return a request whose times are so much later."""
    return request._replace(
        requested_at_ns=request.requested_at_ns + by_ns, arrived_at_ns=request.arrived_at_ns + by_ns
    )


def _later_row(row: SentRow, by_ns: int) -> SentRow:
    """Return a packet whose times are so much later."""
    sent_at_ns, arrived_at_ns, *frame = row
    arrived_at_ns = None if arrived_at_ns is None else arrived_at_ns + by_ns
    stream_id, offset, n_bytes, number = frame
    return sent_at_ns + by_ns, arrived_at_ns, stream_id, offset, n_bytes, number


def _rows_of(
    sides: Mapping[str, VantagePoint], findings: Findings, delivery: Delivery
) -> tuple[list[SentRow], int | None, int]:
    """Return the packets, the shift of the server's times, and the number of unseen packets."""
    if "client" not in sides:
        rows, delay_ns = _server_rows(sides["server"], findings)
        return rows, -delay_ns, 0
    if "server" not in sides:
        rows, unseen_packets = _client_rows(sides["client"], findings, delivery)
        return rows, 0, unseen_packets
    client, server = sides["client"], sides["server"]
    if client.is_multipath != server.is_multipath:
        (server if client.is_multipath else client).separate_paths()
    shift_ns = _shift_ns(client, server)
    if shift_ns is None:
        findings.unknown.append("when packets were sent: the two logs have different clocks")
    return list(_rows_of_both(client, server, shift_ns)), shift_ns, 0


def read_endpoints(
    path: str | Path, number: int | None, findings: Findings, view: type[ViewT]
) -> tuple[str, list[str], dict[str, ViewT]]:
    """Return the title, the protocols, and the views of the "client" and the "server".

    *view* is the class of a view. With a *number* only the trace with that number is read.

    Raises:
        LogError: if the file cannot be read, listing its errors, or has no packets of a response.
    """
    with opened(path, findings) as stream:
        traces = _select_traces(raw_traces(stream, findings), findings, number)
        title, protocols, sides = _endpoints_of(traces, findings, view)
    findings.raise_if_any()
    if not any(side.frames for side in sides.values()):
        findings.fatal("", "holds no packet with bytes of a response")
    return title or Path(path).name.partition(".")[0], protocols, sides


def _select_traces(
    traces: Iterator[RawTrace], findings: Findings, number: int | None
) -> Iterator[RawTrace]:
    """Yield the trace with that number, or all traces without one."""
    if number is None:
        yield from traces
        return
    last = 0
    for last, raw in enumerate(traces, 1):
        if last == number:
            yield raw
            return
    findings.fatal("", f"has {last} trace{'s' * (last != 1)}, and no trace {number}")


def _endpoints_of(
    traces: Iterator[RawTrace], findings: Findings, view: type[ViewT]
) -> tuple[str, list[str], dict[str, ViewT]]:
    """Return the title, the protocols and the views of one connection."""
    title = ""
    protocols: list[str] = []
    sides: dict[str, ViewT] = {}
    connections: dict[str, None] = {}
    for raw in traces:
        side = _side(raw, findings, view)
        if side is None:
            continue
        end = "client" if side.is_client else "server"
        if end in sides and not side.frames:  # the log of a connection without responses
            continue
        if end in sides and sides[end].frames:
            message = (
                f"is a second log of a {end}; one connection is measured{_TRACE_OPTION_ADVICE}"
            )
            findings.fatal(raw.key, message)
        sides[end] = side
        title = title or raw.title
        common = raw.head.get("common_fields")
        if isinstance(common, dict):
            named = common.get("protocol_type", common.get(PROTOCOLS_FIELD))
            protocols += [str(name) for name in named] if isinstance(named, list) else []
            connection = common.get("ODCID", common.get("group_id"))
            if connection is not None:
                connections[str(connection)] = None
        if len(connections) > 1:
            names = " and ".join(connections)
            findings.fatal(raw.key, f"is of another connection ({names}){_TRACE_OPTION_ADVICE}")
    return title, protocols, sides


def _side(raw: RawTrace, findings: Findings, view: type[ViewT]) -> ViewT | None:
    """Return the view of a trace; None if it has no packets."""
    clock, events = events_of(raw, findings)
    end = _stated_end(raw)
    side: ViewT | None = None
    for event in events:
        if side is None:
            if end is None:
                if event.what not in ("sent", "received"):
                    continue
                end = "client" if event.what == "sent" else "server"  # the client sends first
                findings.unknown.append(f"who wrote {raw.key}; by its first packet, the {end}")
            side = view(findings, clock, is_client=end == "client")
        side.on_event(event)
    return side


def _stated_end(raw: RawTrace) -> str | None:
    """Return which end wrote a trace, "client" or "server", if its vantage point says so."""
    vantage = raw.head.get("vantage_point")
    if not isinstance(vantage, dict):
        return None
    # A trace of the network has the end whose view it resembles as its flow.
    names = (str(vantage.get(key)).casefold() for key in ("type", "flow"))
    return next((name for name in names if name in _ENDS), None)
