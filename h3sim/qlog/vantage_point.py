"""The view of a connection from one endpoint's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.constants import MAX_VARINT, STREAM_ID_STEP
from h3sim.qlog.events import as_unsigned, describe_value
from h3sim.qlog.records import DataMoved, StreamFrame
from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.qlog.container import Findings
    from h3sim.qlog.events import Clock, QlogEvent


_APPLICATION = ("application", "user")
_HEADERS = ("headers", "header")
"""The names of a frame of header fields, now and in draft-01 and -02 of qlog."""


class VantagePoint:
    """The view of a client or a server: downlink packets, requests, acknowledgements.

    Only packets with a short header, and only request streams are considered.
    """

    def __init__(self, findings: Findings, clock: Clock, *, is_client: bool) -> None:
        self._findings = findings
        self.clock = clock
        self.is_client = is_client
        self._down_frames: tuple[str, ...] = ("stream", "reset_stream")
        # A server learns by ACKs what has arrived; a client's own are of no use here.
        self._up_frames: tuple[str, ...] = ("stream",) if is_client else ("stream", "ack")
        self.packets: dict[int, int] = {}
        """Times of downlink packets, received (client) or sent (server), by number."""
        self.handshake_numbers: dict[int, None] = {}
        """The numbers of downlink packets in the two other packet number spaces."""
        self.frames: dict[int, list[StreamFrame]] = {}
        """The stream frames of those packets, if logged."""
        self.reset_at_bytes: dict[int, int] = {}
        """The bytes sent of each response that the server reset (RFC 9000 § 19.4)."""
        self.asked_at_ns: dict[int, int] = {}
        """Time when each stream's request was made (client) or arrived (server)."""
        self.ids: dict[int, str] = {}
        """The path (`:path`) of each stream's request."""
        self.body_bytes: dict[int, int] = {}
        """The length of each response by its header (`content-length`)."""
        self.moved: list[DataMoved] = []
        """Times and bytes delivered to a client's application."""
        self.acked = Ranges()
        self.lost: dict[int, None] = {}
        self.min_rtt_ns: int | None = None

    def on_event(self, event: QlogEvent) -> None:
        """Record an event."""
        match event.what:
            case "sent" | "received":
                self._on_packet(event, is_down=(event.what == "received") == self.is_client)
            case "created" | "parsed":
                self._on_frame(event, is_request=(event.what == "created") == self.is_client)
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
        # 0.3 nests the header; some stacks put its fields next to the frames.
        header = event.data.get("header")
        fields = {**event.data, **header} if isinstance(header, dict) else event.data
        packet_type = str(fields.get("packet_type", "1RTT")).casefold()
        if not is_down:
            if packet_type in ("1rtt", "0rtt"):
                self._on_upward(event)
            return
        number = as_unsigned(fields.get("packet_number"))
        if packet_type != "1rtt":
            if number is not None and packet_type in ("initial", "handshake"):
                self.handshake_numbers[number] = None
            return
        if number is None:
            value = describe_value(fields.get("packet_number"))
            message = f"must be a whole number of at least 0, is {value}"
            self._findings.wrong(f"{event.key}.data.header.packet_number", message)
            return
        if number in self.packets:
            return  # a receiver accepts each packet once
        self.packets[number] = event.at_ns
        frames = []
        for kind, key, entry in self._frames(event, *self._down_frames):
            if kind == "reset_stream":
                self._on_reset(key, entry)
            elif kind == "ack":
                self._on_request_acked(event, entry)
            elif (frame := self._stream_frame(key, entry)) is not None:
                frames.append(frame)
        if frames:
            self.frames[number] = frames

    def _on_reset(self, key: str, entry: dict[str, Any]) -> None:
        stream_id = self._stream_id(key, entry)
        final_size = as_unsigned(entry.get("final_size"))
        if stream_id is not None and final_size is not None:
            self.reset_at_bytes[stream_id] = final_size

    def _on_upward(self, event: QlogEvent) -> None:
        for kind, key, entry in self._frames(event, *self._up_frames):
            if kind == "ack":
                self._on_ack(key, entry.get("acked_ranges", []))
            elif kind != "stream":
                self._on_limit(event, kind, entry)
            elif (stream_id := self._stream_id(key, entry)) is not None:
                self._on_asked(stream_id, event.at_ns)

    def _on_request_acked(self, event: QlogEvent, entry: dict[str, Any]) -> None:
        """Note an ACK of the client's packets; `SenderView` reads these."""

    def _on_limit(self, event: QlogEvent, kind: str, entry: dict[str, Any]) -> None:
        """Note a flow control limit; `SenderView` reads these."""

    def _frames(
        self, event: QlogEvent, *frame_types: str
    ) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the type, key and fields of each frame of these types.

        Call it once per event: each error is recorded when it is found.
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
        if data.get("from") != "transport" or data.get("to") not in _APPLICATION:
            return
        stream_id, offset = as_unsigned(data.get("stream_id")), as_unsigned(data.get("offset"))
        n_bytes = as_unsigned(frame_length(data))
        if stream_id is None or offset is None or n_bytes is None or stream_id % STREAM_ID_STEP:
            return
        self.moved.append(DataMoved(event.at_ns, stream_id, offset, n_bytes))

    def _on_ack(self, key: str, ranges: object) -> None:
        for entry in ranges if isinstance(ranges, list) else [ranges]:
            ends = [as_unsigned(end) for end in entry] if isinstance(entry, list) else []
            low, high = (ends[0], ends[-1]) if ends else (None, None)
            if low is None or high is None or len(ends) > 2 or low > high:
                message = f"must be like [[0, 4], [6]], is {describe_value(ranges)}"
                self._findings.wrong(f"{key}.acked_ranges", message)
                return
            self.acked.add(low, high + 1)

    def _on_lost(self, event: QlogEvent) -> None:
        header = event.data.get("header")
        fields = {**event.data, **header} if isinstance(header, dict) else event.data
        number = as_unsigned(fields.get("packet_number"))
        if number is not None and str(fields.get("packet_type", "1RTT")).casefold() == "1rtt":
            self.lost[number] = None

    # HTTP

    def _on_frame(self, event: QlogEvent, *, is_request: bool) -> None:
        frame = event.data.get("frame")
        if not isinstance(frame, dict) or str(frame.get("frame_type")).casefold() not in _HEADERS:
            return
        stream_id = self._read_unsigned(
            f"{event.key}.data", "stream_id", event.data.get("stream_id")
        )
        if stream_id is None or stream_id % STREAM_ID_STEP:
            return
        headers = dict(_headers(frame.get("headers")))
        if is_request:
            self._on_asked(stream_id, event.at_ns)
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
        """Note the fields of a request; `SenderView` reads its priority."""

    def _on_asked(self, stream_id: int, at_ns: int) -> None:
        # A retransmitted request was made when it was first sent.
        known_ns = self.asked_at_ns.get(stream_id, at_ns)
        self.asked_at_ns[stream_id] = min(known_ns, at_ns)

    def _stream_id(self, key: str, entry: dict[str, Any]) -> int | None:
        return self._read_unsigned(key, "stream_id", entry.get("stream_id", entry.get("id")))

    def _read_unsigned(self, key: str, name: str, value: object) -> int | None:
        number = as_unsigned(value)
        if number is None:
            message = f"must be a whole number from 0 to 2^62 - 1, is {describe_value(value)}"
            self._findings.wrong(f"{key}.{name}", message)
        return number


def frame_length(entry: dict[str, Any]) -> object:
    """Return the length of a frame's data, or of data that moved.

    Older dialects have `length`, newer ones `raw.length` or `raw.payload_length`.
    """
    raw = entry.get("raw")
    raw = raw if isinstance(raw, dict) else {}
    # `payload_length` first: in older drafts `length` includes the header of the frame.
    return entry.get("length", raw.get("payload_length", raw.get("length")))


def _headers(entries: object) -> Iterator[tuple[str, str]]:
    """Yield names and values from a list of objects, or from one object."""
    if isinstance(entries, dict):
        entries = [{"name": name, "value": value} for name, value in entries.items()]
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            name, value = entry.get("name"), entry.get("value")
            if isinstance(name, str) and isinstance(value, str | int):
                yield name.casefold(), str(value)
