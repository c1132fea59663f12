"""qlog writer: the server's and the client's log of a load, in two dialects.

The drafts are draft-ietf-quic-qlog-main-schema-14, -quic-events-13 and -h3-events-13.
`python -m validation.qlog_drafts` checks the output against their CDDL.
"""

from __future__ import annotations

import io
import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TextIO

from h3sim.page.resource import DEFAULT_REQUEST_BYTES
from h3sim.qlog.container import RECORD_SEPARATOR, LogError
from h3sim.qlog.records import DataMoved, StreamFrame
from h3sim.schema import check_output, write_atomically
from h3sim.signals import DEFAULT_URGENCY, Eps, H2Priority, StrictPriority
from h3sim.trace import Delivery, RecoveryRow, Request, Trace
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


_NAMES_BY_EVENT = {
    # event: (name in 0.3, name in the current drafts)
    "sent": ("transport:packet_sent", "quic:packet_sent"),
    "received": ("transport:packet_received", "quic:packet_received"),
    "lost": ("recovery:packet_lost", "quic:packet_lost"),
    "metrics": ("recovery:metrics_updated", "quic:recovery_metrics_updated"),
    "moved": ("http:data_moved", "quic:stream_data_moved"),
    "created": ("http:frame_created", "http3:frame_created"),
    "parsed": ("http:frame_parsed", "http3:frame_parsed"),
    "prioritized": (None, "http3:priority_updated"),  # 0.3 has no such event
}
_PACKET_OVERHEAD_BYTES = 25
"""The assumed overhead of a packet without a wire row: short header, AEAD tag and the header of a
STREAM frame."""
_CONTROL_STREAM = 2
"""The client's control stream, which carries PRIORITY_UPDATE (RFC 9218 § 7.2)."""
_H2_PRIORITY_TYPE = 0x02
"""The type of HTTP/2's PRIORITY frame (RFC 9113 § 6.3); HTTP/3 reserves it (RFC 9114 § 11.2.1)."""
_EVENTS_DRAFT = 13
"""The version of the drafts. Until the RFC, URIs of event schemas end in the number of the draft
(quic-events § 2.1, h3-events § 2.1)."""
PROTOCOLS_FIELD = "h3sim_protocols"
"""A custom common field, as the drafts allow: their event schemas assume QUIC, and `protocol_types`
was dropped (main-schema since -10)."""
_QUIC_PROTOCOLS = ["QUIC", "HTTP3"]


@dataclass(frozen=True, kw_only=True)
class QlogSchema:
    """The field names of a dialect."""

    names: dict[str, str]
    """The name of each kind of event; events without a name are not written."""
    time_format: str
    reference_time: Any
    trace_fields: dict[str, Any] = field(default_factory=dict)
    is_draft: bool

    def file_head(self, about: dict[str, str], *, is_sequence: bool) -> dict[str, Any]:
        """Return the head of a file, without its traces; *about* has title and description."""
        if not self.is_draft:
            form = "JSON-SEQ" if is_sequence else "JSON"
            return {"qlog_version": "0.3", "qlog_format": form, **about}
        schema, form = ("sequential", "json-seq") if is_sequence else ("contained", "json")
        return {
            "file_schema": f"urn:ietf:params:qlog:file:{schema}",
            "serialization_format": f"application/qlog+{form}",
            **about,
        }

    def trace_head(self, log: Log) -> dict[str, Any]:
        """Return the head of a trace, without its events."""
        common = {"time_format": self.time_format, "reference_time": self.reference_time}
        if not self.is_draft:
            common["protocol_type"] = log.protocols
        elif log.protocols != _QUIC_PROTOCOLS:
            common[PROTOCOLS_FIELD] = log.protocols
        return {
            "vantage_point": {"name": f"h3sim {log.vantage}", "type": log.vantage},
            **self.trace_fields,
            "common_fields": common,
        }

    def events(self, log: Log) -> Iterator[dict[str, Any]]:
        """Yield the events of *log* that exist in the dialect."""
        for at_ns, what, data in log.events():
            if what in self.names:
                # A float of milliseconds is exact to the nanosecond for 26 days.
                time_ms, name = to_ms(at_ns), self.names[what]
                yield {"time": time_ms, "name": name, "data": self.in_dialect(what, data)}

    def in_dialect(self, what: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return *data*, of an event *what*, with the frames and lengths of the dialect."""
        if what in ("sent", "received"):
            return {**data, "frames": [self._frame(frame) for frame in data["frames"]]}
        if not self.is_draft:
            return data
        if "length" not in data:
            return _draft_priority(data)
        raw = {"raw": {"length": data["length"]}}
        if "frame" in data:
            # HTTP3FrameParsed has no length: the frame has it (h3-events § 3.2).
            return {"stream_id": data["stream_id"], "frame": {**data["frame"], **raw}}
        return {**{key: value for key, value in data.items() if key != "length"}, **raw}

    def _frame(self, frame: StreamFrame | dict[str, Any]) -> dict[str, Any]:
        if not isinstance(frame, StreamFrame):
            return frame
        common = {"frame_type": "stream", "stream_id": frame.stream_id, "offset": frame.offset}
        length, payload = {"length": frame.n_bytes}, {"payload_length": frame.n_bytes}
        if self.is_draft:
            # Since -12 of quic-events the length is `raw.length`.
            return {**common, "fin": frame.fin, "raw": {**payload, **length}}
        return {**common, **length, "fin": frame.fin, "raw": payload}


def _draft_priority(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of an event with any priority frame in the form of the drafts.

    They only define PRIORITY_UPDATE: a PRIORITY frame of HTTP/2 is an unknown frame.
    """
    frame = data.get("frame", {})
    match frame.get("frame_type"):
        case "priority_update":
            fields = {"stream_id": frame["element_id"], "priority_field_value": frame["value"]}
            frame = {"frame_type": "priority_update", **fields}
            return {"stream_id": _CONTROL_STREAM, "frame": frame}
        case "priority":
            unknown = {"frame_type": "unknown", "frame_type_bytes": _H2_PRIORITY_TYPE}
            is_stream = frame["prioritized_element_type"] == "request_stream"
            stream_id = frame["prioritized_element_id"] if is_stream else _CONTROL_STREAM
            return {"stream_id": stream_id, "frame": unknown}
    return data


DIALECTS = {
    "0.3": QlogSchema(
        names={what: name for what, (name, _) in _NAMES_BY_EVENT.items() if name is not None},
        time_format="relative",
        reference_time=0,
        is_draft=False,
    ),
    "draft": QlogSchema(
        names={what: name for what, (_, name) in _NAMES_BY_EVENT.items()},
        time_format="relative_to_epoch",
        reference_time={"clock_type": "monotonic", "epoch": "unknown"},
        trace_fields={
            "event_schemas": [
                f"urn:ietf:params:qlog:events:quic-{_EVENTS_DRAFT}",
                f"urn:ietf:params:qlog:events:http3-{_EVENTS_DRAFT}",
            ]
        },
        is_draft=True,
    ),
}


@dataclass(slots=True, kw_only=True)
class LoggedPacket:
    """A packet on its way to the client (*is_down*) or to the server."""

    is_down: bool
    number: int
    sent_at_ns: int
    arrived_at_ns: int | None
    size_bytes: int
    acked: tuple[tuple[int, int], ...] = ()
    frames: list[StreamFrame] = field(default_factory=list)


def logged_packets(trace: Trace, resources: Mapping[int, LoggedResource]) -> list[LoggedPacket]:
    """Return the packets of *trace* in both directions, each by number.

    Packets without a wire row are reconstructed from their payload: a response packet has 25 bytes
    of overhead, and each request is in a packet of its own.
    """
    packets = {
        (row.is_down, row.number): LoggedPacket(
            is_down=row.is_down,
            number=row.number,
            sent_at_ns=row.sent_at_ns,
            arrived_at_ns=row.arrived_at_ns,
            size_bytes=row.size_bytes,
            # Rows have ranges highest first, ACK frames of a log lowest first.
            acked=tuple(sorted(row.acked)),
        )
        for row in trace.wire
    }
    _add_responses(trace, packets)
    upward = [packet for packet in packets.values() if not packet.is_down]
    if upward:
        _add_requests(trace.requests, upward, resources)
    else:
        for packet in _request_packets(trace.requests, resources):
            packets[False, packet.number] = packet
    return [packets[key] for key in sorted(packets)]


def _add_responses(trace: Trace, packets: dict[tuple[bool, int], LoggedPacket]) -> None:
    """Add the stream frames of packets down, and those packets that have no wire row."""
    ends = {request.stream_id: request.length_bytes for request in trace.requests}
    with_wire_row = frozenset(packets)
    for sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, _ in trace.packet_rows:
        key = (True, number)
        packet = packets.get(key)
        if packet is None:
            packet = packets[key] = LoggedPacket(
                is_down=True,
                number=number,
                sent_at_ns=sent_at_ns,
                arrived_at_ns=arrived_at_ns,
                size_bytes=_PACKET_OVERHEAD_BYTES,
            )
        if key not in with_wire_row:  # otherwise it has its size from there
            packet.size_bytes += n_bytes
        fin = offset + n_bytes == ends.get(stream_id)
        packet.frames.append(StreamFrame(stream_id, offset, n_bytes, fin))


def _request_packets(
    requests: Iterable[Request], resources: Mapping[int, LoggedResource]
) -> Iterable[LoggedPacket]:
    """Yield one packet per request, if packets up were not recorded."""
    for number, request in enumerate(requests):
        n_bytes = resources.get(request.stream_id, _UNKNOWN).request_bytes
        yield LoggedPacket(
            is_down=False,
            number=number,
            sent_at_ns=request.requested_at_ns,
            arrived_at_ns=request.arrived_at_ns,
            size_bytes=n_bytes + _PACKET_OVERHEAD_BYTES,
            frames=[StreamFrame(request.stream_id, 0, n_bytes, True)],
        )


def _add_requests(
    requests: Iterable[Request], upward: list[LoggedPacket], resources: Mapping[int, LoggedResource]
) -> None:
    """Put each request into the packet with which it reached the server.

    Wire rows lack the content of client packets: a packet that arrived together with the request,
    and did not leave before the request was made, carried its last byte.
    """
    packets_by_arrival: defaultdict[int, list[LoggedPacket]] = defaultdict(list)
    for packet in upward:
        if packet.arrived_at_ns is not None:
            packets_by_arrival[packet.arrived_at_ns].append(packet)
    for request in requests:
        for packet in packets_by_arrival.get(request.arrived_at_ns, ()):
            if packet.sent_at_ns >= request.requested_at_ns:
                n_bytes = resources.get(request.stream_id, _UNKNOWN).request_bytes
                packet.frames.append(StreamFrame(request.stream_id, 0, n_bytes, True))
                break


def moves(trace: Trace) -> Iterator[DataMoved]:
    """Yield deliveries in order of time, one for all bytes of a stream at one instant.

    A stream without bytes is delivered once, with 0 bytes.
    """
    _, _, streams, offsets, lengths, _, delivered_at_ns = trace.packet_rows.columns
    by_time = sorted(
        (at_ns, index) for index, at_ns in enumerate(delivered_at_ns) if at_ns is not None
    )
    end_by_delivery: dict[tuple[int, int], int] = {}
    for at_ns, index in by_time:
        key = (at_ns, streams[index])
        end_by_delivery[key] = max(end_by_delivery.get(key, 0), offsets[index] + lengths[index])
    delivered_bytes: dict[int, int] = {}
    for (at_ns, stream_id), end in end_by_delivery.items():
        start = delivered_bytes.get(stream_id, 0)
        delivered_bytes[stream_id] = end
        yield DataMoved(at_ns, stream_id, start, end - start)


_DEFAULT_FIELD_VALUE = f"u={DEFAULT_URGENCY}"
"""The default priority in full; a Priority field omits it (RFC 9218 § 4.1)."""


def field_values(trace: Trace) -> dict[int, str]:
    """Return the Priority field of each request that has one (RFC 9218 § 5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> signals = (SignalSent(0, 0, Eps(urgency=0, incremental=True)), SignalSent(0, 4, Eps()))
    >>> field_values(Trace(delivery=Delivery.STREAM, requests=(), signals=signals))
    {0: 'u=0, i'}
    """
    values: dict[int, str] = {}
    for _, element_id, signal in trace.signals:
        if isinstance(signal, Eps):
            values.setdefault(element_id, signal.field_value)
    return {stream_id: value for stream_id, value in values.items() if value}


def priority_frames(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the arrival time and the data of each priority frame.

    These are PRIORITY frames of dependency trees, and PRIORITY_UPDATE for all but the first signal
    of a stream by RFC 9218, which is a header field. Buckets and ranks are not sent in frames.
    """
    has_signal: set[int] = set()
    for at_ns, element_id, signal in trace.signals:
        if isinstance(signal, H2Priority | StrictPriority):
            yield at_ns, _tree_frame(element_id, signal)
        elif isinstance(signal, Eps) and element_id in has_signal:
            frame = {"element_id": element_id, "value": signal.field_value}
            yield at_ns, {"frame_type": "priority_update", **frame}
        has_signal.add(element_id)


def priority_changes(trace: Trace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the times at which the server learns or updates an RFC 9218 priority, and the data.

    The data are those of `http3:priority_updated` (draft-ietf-quic-qlog-h3-events-13 § 3.5).

    >>> from h3sim.trace import Delivery, SignalSent, Trace
    >>> signals = (SignalSent(0, 0, Eps(urgency=5)), SignalSent(7, 0, Eps(urgency=0)))
    >>> trace = Trace(delivery=Delivery.STREAM, requests=(), signals=signals)
    >>> [(at_ns, data.get("old"), data["new"]) for at_ns, data in priority_changes(trace)]
    [(0, None, 'u=5'), (7, 'u=5', 'u=0')]
    """
    known: dict[int, str] = {}
    for at_ns, stream_id, signal in trace.signals:
        if isinstance(signal, Eps):
            old = {"old": known[stream_id]} if stream_id in known else {}
            known[stream_id] = signal.field_value or _DEFAULT_FIELD_VALUE
            cause = {"trigger": "client_signal_received", "reason": "client_signal_only"}
            yield at_ns, {"stream_id": stream_id, **old, "new": known[stream_id], **cause}


def _tree_frame(element_id: int, signal: H2Priority | StrictPriority) -> dict[str, Any]:
    """Return a PRIORITY frame of draft-marx-qlog-event-definitions-quic-h3-00.

    The weight is the effective one, 1 to 256. The dependency is left out if it is on the root.
    """
    frame: dict[str, Any] = {"frame_type": "priority"}
    kind, number = _element(element_id)
    frame |= {"prioritized_element_type": kind, "prioritized_element_id": number}
    if signal.depends_on is not None:
        kind, number = _element(signal.depends_on)
        frame |= {"element_dependency_type": kind, "element_dependency_id": number}
    frame |= {"weight": signal.weight}
    if isinstance(signal, StrictPriority):
        return frame | {"strict": signal.strict}
    return frame | {"exclusive": signal.exclusive}


def _element(element_id: int) -> tuple[str, int]:
    """Return the type of an element and its number; placeholders are numbered from 0."""
    return ("request_stream", element_id) if element_id >= 0 else ("placeholder", -1 - element_id)


# Ranks of events at one instant: arrivals, their consequences, requests, departures.
_RECEIVED, _MOVED, _PARSED, _PRIORITIZED, _LOST, _METRICS, _CREATED, _SENT = range(8)
_AFTER_REQUEST = 8
"""Added to the rank of events of a response that arrives at the instant of its request."""


class Log:
    """The log of one end; event data is only built on demand."""

    def __init__(self, vantage: str, protocols: list[str]) -> None:
        self.vantage, self.protocols = vantage, protocols
        self._rows: list[tuple[int, int, str, Callable[..., dict[str, Any]], tuple[Any, ...]]] = []

    def add(
        self, at_ns: int, rank: int, what: str, make: Callable[..., dict[str, Any]], *of: Any
    ) -> None:
        """Add an event *what*; `make(*of)` returns its data."""
        self._rows.append((at_ns, rank, what, make, of))

    def events(self) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield (time, event, data) by time."""
        # By time and rank only: the sort is stable, so equal ones stay in the order of the trace.
        self._rows.sort(key=itemgetter(0, 1))
        for at_ns, _, what, make, of in self._rows:
            yield at_ns, what, make(*of)


def _add_server(
    log: Log,
    trace: Trace,
    packets: Iterable[LoggedPacket],
    resources: Mapping[int, LoggedResource],
) -> None:
    """Add the events of the server's log."""
    priorities = field_values(trace)
    for packet in packets:
        if packet.is_down:
            log.add(packet.sent_at_ns, _SENT, "sent", _packet_data, packet)
        elif packet.arrived_at_ns is not None:
            log.add(packet.arrived_at_ns, _RECEIVED, "received", _packet_data, packet)
    for request in trace.requests:
        stream_id, arrived_at_ns = request.stream_id, request.arrived_at_ns
        log.add(arrived_at_ns, _PARSED, "parsed", _request_data, stream_id, resources, priorities)
        # The complete response is handed to the transport after the server's think time.
        ready_at_ns = arrived_at_ns + resources.get(stream_id, _UNKNOWN).server_ns
        moved = (stream_id, 0, request.length_bytes, "application", "transport")
        log.add(ready_at_ns, _CREATED, "moved", _moved_data, *moved)
    for at_ns, frame in priority_frames(trace):
        log.add(at_ns, _PARSED, "parsed", _frame_data, frame)
    for at_ns, data in priority_changes(trace):
        log.add(at_ns, _PRIORITIZED, "prioritized", dict, data)
    for row in trace.recovery:
        for number in row.lost:
            log.add(row.at_ns, _LOST, "lost", _header_data, number)
        log.add(row.at_ns, _METRICS, "metrics", _metrics_data, row)


def _add_client(
    log: Log,
    trace: Trace,
    packets: Iterable[LoggedPacket],
    resources: Mapping[int, LoggedResource],
) -> None:
    """Add the events of the client's log."""
    priorities = field_values(trace)
    requests = {request.stream_id: request for request in trace.requests}
    for packet in packets:
        if not packet.is_down:
            log.add(packet.sent_at_ns, _SENT, "sent", _packet_data, packet)
        elif packet.arrived_at_ns is not None:
            streams = [frame.stream_id for frame in packet.frames]
            shift = _rank_shift(packet.arrived_at_ns, streams, requests)
            log.add(packet.arrived_at_ns, _RECEIVED + shift, "received", _packet_data, packet)
    for request in trace.requests:
        arguments = (request.stream_id, resources, priorities)
        log.add(request.requested_at_ns, _CREATED, "created", _request_data, *arguments)
    request_time_by_arrival = {
        request.arrived_at_ns: request.requested_at_ns for request in trace.requests
    }
    for at_ns, frame in priority_frames(trace):
        # A frame that reached the server with a request was sent with it; the trace lacks the send
        # times of others.
        if at_ns in request_time_by_arrival:
            log.add(request_time_by_arrival[at_ns], _CREATED, "created", _frame_data, frame)
    header_bytes = {  # of the streams whose response headers have not been delivered yet
        stream_id: request.length_bytes - n_bytes
        for stream_id, request in requests.items()
        if (n_bytes := resources.get(stream_id, _UNKNOWN).body_bytes) is not None
    }
    for at_ns, stream_id, offset, n_bytes in moves(trace):
        shift = _rank_shift(at_ns, [stream_id], requests)
        moved = (stream_id, offset, n_bytes, "transport", "application")
        log.add(at_ns, _MOVED + shift, "moved", _moved_data, *moved)
        if stream_id in header_bytes and offset + n_bytes >= header_bytes[stream_id]:
            response = (stream_id, header_bytes.pop(stream_id), resources[stream_id].body_bytes)
            log.add(at_ns, _PARSED + shift, "parsed", _response_data, *response)


def _rank_shift(at_ns: int, streams: Sequence[int], requests: Mapping[int, Request]) -> int:
    """Return what to add to the rank of an arrival so that it follows the streams' requests.

    Readers of logs expect this order.
    """
    is_instant_of_request = any(
        stream_id in requests and requests[stream_id].requested_at_ns == at_ns
        for stream_id in streams
    )
    return _AFTER_REQUEST if is_instant_of_request else 0


def _packet_data(packet: LoggedPacket) -> dict[str, Any]:
    """Return the data of a packet_sent or packet_received event."""
    frames: list[Any] = list(packet.frames)
    if packet.acked:
        ranges = [list(span) for span in packet.acked]
        frames.insert(0, {"frame_type": "ack", "acked_ranges": ranges})
    return {**_header_data(packet.number), "raw": {"length": packet.size_bytes}, "frames": frames}


def _header_data(number: int) -> dict[str, Any]:
    return {"header": {"packet_type": "1RTT", "packet_number": number}}


def _metrics_data(row: RecoveryRow) -> dict[str, Any]:
    """Return the data of a recovery metrics_updated event."""
    data: dict[str, Any] = {
        "min_rtt": to_ms(row.min_rtt_ns),
        "smoothed_rtt": to_ms(row.smoothed_rtt_ns),
        "latest_rtt": to_ms(row.latest_rtt_ns),
        "rtt_variance": to_ms(row.rtt_variance_ns),
        "congestion_window": row.congestion_window,
        "bytes_in_flight": row.bytes_in_flight,
    }
    if row.ssthresh is not None:
        data["ssthresh"] = row.ssthresh
    return data


def _moved_data(
    stream_id: int, offset: int, n_bytes: int, source: str, target: str
) -> dict[str, Any]:
    """Return the data of stream bytes that move between transport and application."""
    moved = {"stream_id": stream_id, "offset": offset, "length": n_bytes}
    return {**moved, "from": source, "to": target}


def _request_data(
    stream_id: int, resources: Mapping[int, LoggedResource], priorities: Mapping[int, str]
) -> dict[str, Any]:
    """Return the data of a request's HEADERS frame."""
    fields = {":method": "GET"}
    if stream_id in resources:
        fields[":path"] = resources[stream_id].id
    if priorities.get(stream_id):
        fields["priority"] = priorities[stream_id]
    return {"stream_id": stream_id, "frame": _headers_frame(fields)}


def _response_data(stream_id: int, header_bytes: int, body_bytes: int) -> dict[str, Any]:
    """Return the data of a response's HEADERS frame."""
    frame = _headers_frame({":status": "200", "content-length": str(body_bytes)})
    return {"stream_id": stream_id, "length": header_bytes, "frame": frame}


def _headers_frame(fields: Mapping[str, str]) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in fields.items()]
    return {"frame_type": "headers", "headers": headers}


def _frame_data(frame: dict[str, Any]) -> dict[str, Any]:
    return {"frame": frame}


_SUFFIXES = (".qlog", ".sqlog")


class LoggedResource(NamedTuple):
    """The path and sizes of a resource in a log; *body_bytes* is None if unknown."""

    id: str
    body_bytes: int | None = None
    request_bytes: int = DEFAULT_REQUEST_BYTES
    server_ns: int = 0
    """Think time of the server."""


_UNKNOWN = LoggedResource("")
"""Stands for the resource of a stream about which only the trace is known."""


def write_qlog(
    trace: Trace,
    path: str | Path,
    *,
    title: str,
    description: str = "",
    dialect: str = "0.3",
    resources: Mapping[int, LoggedResource] | None = None,
    signals_are_sent: bool = True,
    protocols: Sequence[str] | None = None,
) -> None:
    """Write *trace* to the file at *path*, atomically, as the server's log and the client's.

    FILE.qlog is JSON with both logs. FILE.sqlog is a JSON text sequence, a format for a single
    log: the client's. *description* describes the load. *resources* has the requested resource
    (`:path`) by stream id; the `priority` header is that of the signals in the trace, which are
    omitted unless *signals_are_sent* (a server may have its priorities from elsewhere).
    *protocols* are by default TCP and HTTP2, or those of QUIC, by the order of delivery.

    Raises:
        LogError: if the file cannot be written.
        ValueError: if the dialect is not known.
    """
    schema = _schema(dialect)
    check_qlog_path(path)
    about = _about(title, description)
    if protocols is None:
        protocols = ("TCP", "HTTP2") if trace.delivery is Delivery.CONNECTION else _QUIC_PROTOCOLS
    trace = trace if signals_are_sent else replace(trace, signals=())
    logs = _build_logs(trace, resources or {}, protocols)

    def write(file: BinaryIO) -> None:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        if Path(path).suffix == ".sqlog":
            _write_sequence(stream, schema, about, logs.client)
        else:
            _write_json(stream, schema, about, logs)
        # Not closed: `write_atomically` owns the file, and still has to flush it to the disk.
        stream.detach()

    write_atomically(path, write, error=LogError)


def check_qlog_path(path: str | Path | None, *, key: str = "") -> None:
    """Refuse a path to which no log could be written; None is accepted.

    *key* is the option of the path.

    Raises:
        LogError: with the reason.

    >>> check_qlog_path("load.json")
    Traceback (most recent call last):
    ...
    h3sim.qlog.container.LogError: must end in .qlog or .sqlog, is 'load.json'
    """
    if path is None:
        return
    if Path(path).suffix not in _SUFFIXES:
        message = f"must end in {' or '.join(_SUFFIXES)}, is {str(path)!r}"
        raise LogError.at(key, message)
    check_output(path, key=key, error=LogError)


def _schema(dialect: str) -> QlogSchema:
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}, is {dialect!r}")
    return DIALECTS[dialect]


class _Logs(NamedTuple):
    """The logs of both ends, in the order of a document."""

    server: Log
    client: Log


def _build_logs(
    trace: Trace, resources: Mapping[int, LoggedResource], protocols: Sequence[str]
) -> _Logs:
    """Return the logs of the server and the client."""
    server, client = Log("server", [*protocols]), Log("client", [*protocols])
    packets = logged_packets(trace, resources)
    _add_server(server, trace, packets, resources)
    _add_client(client, trace, packets, resources)
    return _Logs(server, client)


def _about(title: str, description: str) -> dict[str, str]:
    return {"title": title, "description": description} if description else {"title": title}


def _write_json(
    stream: TextIO, schema: QlogSchema, about: dict[str, str], logs: Iterable[Log]
) -> None:
    """Write event by event: the document of a large load would not fit into memory."""
    stream.write(_open_object(schema.file_head(about, is_sequence=False)) + ', "traces": [')
    for number, log in enumerate(logs):
        stream.write(",\n" if number else "\n")
        stream.write(_open_object(schema.trace_head(log)) + ', "events": [')
        for index, event in enumerate(schema.events(log)):
            stream.write(",\n" if index else "\n")
            stream.write(json.dumps(event, allow_nan=False))
        stream.write("\n]}")
    stream.write("\n]}\n")


def _open_object(head: dict[str, Any]) -> str:
    """Return *head* as a JSON object without the closing brace, so that a key can follow."""
    return json.dumps(head).removesuffix("}")


def _write_sequence(stream: TextIO, schema: QlogSchema, about: dict[str, str], log: Log) -> None:
    first = schema.file_head(about, is_sequence=True) | {"trace": schema.trace_head(log)}
    for record in itertools.chain([first], schema.events(log)):
        stream.write(f"{RECORD_SEPARATOR}{json.dumps(record, allow_nan=False)}\n")
