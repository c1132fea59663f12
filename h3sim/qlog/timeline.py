"""The events of one endpoint's log that decide what a server could send, in the log's order."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.qlog.container import Clock, Findings, QlogEvent, as_unsigned
from h3sim.qlog.reader import (
    PATH_ACKS,
    VantagePoint,
    covered,
    frame_length,
    header_fields,
    read_endpoints,
)
from h3sim.signals import MAX_STRICT, MAX_WEIGHT, H2Priority, Signal, StrictPriority, placeholder_id
from h3sim.values.constants import STREAM_ID_STEP

if TYPE_CHECKING:
    from pathlib import Path


class EntryKind(enum.Enum):
    """Kinds of entries, and what the `value` of such an entry is."""

    REQUEST = "request"
    """A request was made (client) or arrived (server)."""
    FIELD = "field"
    """Its Priority field: the text (RFC 9218 § 5)."""
    UPDATE = "update"
    """A PRIORITY_UPDATE frame: the text (RFC 9218 § 7)."""
    TREE = "tree"
    """A PRIORITY frame: an `H2Priority` or `StrictPriority`."""
    PACKET = "packet"
    """A packet of the server: its number."""
    LOST = "lost"
    """A packet of the server was declared lost: its number."""
    ACKED = "acked"
    """An ACK of the client: the numbers of the packets that it is the first to acknowledge."""
    LIMIT = "limit"
    """The flow control limit of a stream, or of the connection (-1), in bytes."""
    WRITTEN = "written"
    """The application has written so many more bytes of a response."""
    REQUEST_ACKED = "request acked"
    """The server acknowledged the client's request: the number of its packet."""


class Entry(NamedTuple):
    """One entry of a timeline; *stream_id* is -1 if it belongs to no stream."""

    kind: EntryKind
    at_ns: int
    stream_id: int
    value: Any = None


_BELOW_APPLICATION = ("transport", "network")
"""Values of `to` in an event of data that the application hands to the transport."""
INITIAL_LIMIT = -2
"""Stream of a LIMIT entry for every stream that has no other limit."""
_STREAM_BY_LIMIT_PARAMETER = {
    "initial_max_data": -1,  # the connection
    # "Local" are the streams of the client, whose parameters these are: those of requests.
    "initial_max_stream_data_bidi_local": INITIAL_LIMIT,
}
"""Stream of the LIMIT entry of each of the client's transport parameters."""


class SenderView(VantagePoint):
    """The view of an endpoint that also records the order of events, as a list of entries."""

    def __init__(self, findings: Findings, clock: Clock, *, is_client: bool) -> None:
        super().__init__(findings, clock, is_client=is_client)
        self.entries: list[Entry] = []
        self._down_frames = ("stream", "reset_stream")
        if is_client:  # learns from ACKs which requests the server had received
            self._down_frames += ("ack",)
        self._up_frames = ("stream", "ack", *PATH_ACKS, "max_data", "max_stream_data")
        self._unacked: dict[int, None] = {}
        """Packets with bytes of responses, until the client acknowledges them."""
        self._newly_acked: list[int] = []
        """The packets that the current event acknowledges."""
        self._streams_by_request_packet: dict[int, list[int]] = {}
        """The streams whose requests are in a packet of the client, until that is acknowledged."""
        self._streams_of_event: list[int] = []
        """The streams with a request, or a part of one, in the current event."""
        self._requested: set[int] = set()
        """The streams with a REQUEST entry."""

    def on_event(self, event: QlogEvent) -> None:
        """Append the entries of an event."""
        n_packets, n_lost = len(self.packets), len(self.lost)
        self._streams_of_event, self._newly_acked = [], []
        super().on_event(event)
        for stream_id in self._streams_of_event:
            if stream_id % STREAM_ID_STEP == 0:
                self._on_request(event, stream_id)
        if self._newly_acked:
            self._append(event, EntryKind.ACKED, -1, sorted(self._newly_acked))
        if len(self.packets) > n_packets:
            number = next(reversed(self.packets))
            self._append(event, EntryKind.PACKET, -1, number)
            if number in self.frames:
                self._unacked[number] = None
        if len(self.lost) > n_lost:
            self._append(event, EntryKind.LOST, -1, next(reversed(self.lost)))
        match event.what:
            case "parameters":
                self._on_parameters(event)
            case "prioritized" if not self.is_client:
                self._on_prioritized(event)
            case "created" | "parsed":
                is_from_client = (event.what == "created") == self.is_client
                if is_from_client:
                    self._on_priority_frame(event)
                elif event.what == "created":
                    self._on_response_frame(event)
            case "moved" if not self.is_client and event.data.get("to") in _BELOW_APPLICATION:
                self._on_written(event, as_unsigned(frame_length(event.data)))

    def _on_request(self, event: QlogEvent, stream_id: int) -> None:
        """Record when a stream was requested, and in which packet."""
        if stream_id not in self._requested:
            self._requested.add(stream_id)
            self._append(event, EntryKind.REQUEST, stream_id)
        number = as_unsigned(header_fields(event).get("packet_number"))
        if event.what == "sent" and number is not None:
            self._streams_by_request_packet.setdefault(number, []).append(stream_id)

    def _on_request_bytes(self, stream_id: int, at_ns: int) -> None:
        super()._on_request_bytes(stream_id, at_ns)
        self._streams_of_event.append(stream_id)

    def _on_ack(self, key: str, ranges: object, path: object = None) -> None:
        """Record which of the server's packets are acknowledged now."""
        super()._on_ack(key, ranges, path)
        for number in covered(self.acked, self._unacked):
            del self._unacked[number]
            self._newly_acked.append(number)

    def separate_paths(self) -> dict[int, int]:
        """Give the packets of the entries so far keys of their paths, too."""
        keys = super().separate_paths()
        self._unacked = dict.fromkeys(keys[number] for number in self._unacked)
        for index, entry in enumerate(self.entries):
            if entry.kind is EntryKind.ACKED:
                self.entries[index] = entry._replace(value=[keys[each] for each in entry.value])
            elif entry.kind in (EntryKind.PACKET, EntryKind.LOST):
                self.entries[index] = entry._replace(value=keys.get(entry.value, entry.value))
        return keys

    def _append(self, event: QlogEvent, kind: EntryKind, stream_id: int, value: Any = None) -> None:
        self.entries.append(Entry(kind, event.at_ns, stream_id, value))

    # Priorities

    def _on_prioritized(self, event: QlogEvent) -> None:
        """Record an event that the server's priority of a stream has changed."""
        stream_id, text = as_unsigned(event.data.get("stream_id")), event.data.get("new")
        if stream_id is not None and isinstance(text, str):
            self._append(event, EntryKind.UPDATE, stream_id, text)

    def _on_priority_frame(self, event: QlogEvent) -> None:
        """Record a PRIORITY_UPDATE, or a priority of the tree."""
        frame = event.data.get("frame")
        if not isinstance(frame, dict):
            return
        match str(frame.get("frame_type")).casefold():
            case "priority_update":
                # The name of the prioritized stream differs between versions and stacks.
                names = ("element_id", "prioritized_element_id", "target_stream_id", "stream_id")
                stream_ids = (as_unsigned(frame[name]) for name in names if name in frame)
                stream_id = next(stream_ids, None)
                text = frame.get("priority_field_value", frame.get("value"))
                if stream_id is not None and isinstance(text, str):
                    self._append(event, EntryKind.UPDATE, stream_id, text)
            case "priority":
                element_id = _element_id(frame, "prioritized_element")
                signal = _read_tree_signal(frame)
                if element_id is not None and signal is not None:
                    self._append(event, EntryKind.TREE, element_id, signal)

    def _on_request_headers(
        self, event: QlogEvent, stream_id: int, headers: dict[str, str]
    ) -> None:
        if "priority" in headers:
            self._append(event, EntryKind.FIELD, stream_id, headers["priority"])

    # What may be sent

    def _on_parameters(self, event: QlogEvent) -> None:
        """Record the client's initial flow control limits."""
        if event.data.get("owner") != ("local" if self.is_client else "remote"):
            return
        for name, stream_id in _STREAM_BY_LIMIT_PARAMETER.items():
            limit = as_unsigned(event.data.get(name))
            if limit is not None:
                self._append(event, EntryKind.LIMIT, stream_id, limit)

    def _on_limit(self, event: QlogEvent, frame_type: str, frame: dict[str, Any]) -> None:
        limit = as_unsigned(frame.get("maximum"))
        stream_id = -1 if frame_type == "max_data" else as_unsigned(frame.get("stream_id"))
        if limit is not None and stream_id is not None:
            self._append(event, EntryKind.LIMIT, stream_id, limit)

    def _on_response_frame(self, event: QlogEvent) -> None:
        """Count what the server has written of a response."""
        frame = event.data.get("frame")
        kind = str(frame.get("frame_type")).casefold() if isinstance(frame, dict) else ""
        n_bytes = as_unsigned(event.data.get("length"))
        if kind in ("headers", "data") and n_bytes is not None:
            # The type and the length of the frame are varints (RFC 9114 § 7.1).
            self._on_written(event, n_bytes + 1 + _varint_bytes(n_bytes))

    def _on_written(self, event: QlogEvent, n_bytes: int | None) -> None:
        stream_id = as_unsigned(event.data.get("stream_id"))
        if stream_id is not None and n_bytes is not None and stream_id % STREAM_ID_STEP == 0:
            self._append(event, EntryKind.WRITTEN, stream_id, n_bytes)

    def _on_request_acked(self, event: QlogEvent, frame: dict[str, Any]) -> None:
        """Record which requests the server had received when it sent this packet."""
        ranges = frame.get("acked_ranges")
        for span in ranges if isinstance(ranges, list) else []:
            ends = [as_unsigned(end) for end in span] if isinstance(span, list) else []
            low, high = (ends[0], ends[-1]) if ends else (None, None)
            if low is None or high is None:
                continue
            number = as_unsigned(header_fields(event).get("packet_number"))
            packets = self._streams_by_request_packet
            for acked in [packet for packet in packets if low <= packet <= high]:
                for stream_id in packets.pop(acked):
                    self._append(event, EntryKind.REQUEST_ACKED, stream_id, number)


def _varint_bytes(value: int) -> int:
    """Return the length of a varint (RFC 9000 § 16).

    >>> [_varint_bytes(value) for value in (63, 64, 16_384, 2**30)]
    [1, 2, 4, 8]
    """
    return next((1 << power for power in range(3) if value < 1 << (8 * (1 << power) - 2)), 8)


def _element_id(frame: dict[str, Any], name: str) -> int | None:
    """Return the ID of a stream or a placeholder; None for the root."""
    number = as_unsigned(frame.get(f"{name}_id"))
    if number is None:
        return None
    return placeholder_id(number) if frame.get(f"{name}_type") == "placeholder" else number


def _read_tree_signal(frame: dict[str, Any]) -> Signal | None:
    """Return the tree priority of a PRIORITY frame; None if it is invalid."""
    weight, parent = as_unsigned(frame.get("weight")), _element_id(frame, "element_dependency")
    if weight is None or weight > MAX_WEIGHT:
        return None
    strict = as_unsigned(frame.get("strict"))
    if strict is not None:
        is_valid = weight >= 1 and strict <= MAX_STRICT and (parent is None or parent < 0)
        return StrictPriority(weight=weight, strict=strict, depends_on=parent) if is_valid else None
    exclusive = frame.get("exclusive") in (True, "true", 1)
    return H2Priority(weight=weight, depends_on=parent, exclusive=exclusive)


class TimelineLog(NamedTuple):
    """The timelines in a qlog of one connection: of the client, of the server, or of both."""

    title: str
    protocols: tuple[str, ...]
    client: SenderView | None
    server: SenderView | None
    unknown: tuple[str, ...]
    """Missing data of the log, and what replaces it."""


def read_timeline(path: str | Path, *, trace: int | None = None) -> TimelineLog:
    """Return the timelines of the connection in the qlog at *path*.

    Of a file with the logs of several connections, *trace* selects one log, from 1 on.

    Raises:
        LogError: if the file cannot be read, or listing the errors in it.
    """
    findings = Findings(str(path))
    title, protocols, endpoints = read_endpoints(path, trace, findings, SenderView)
    return TimelineLog(
        title=title,
        protocols=tuple(protocols),
        client=endpoints.get("client"),
        server=endpoints.get("server"),
        unknown=tuple(findings.unknown),
    )
