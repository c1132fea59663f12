"""Chromium's network log: `chrome --log-net-log=FILE`, or saved by chrome://net-export.

A log is an object with `constants`, the numbers of events, and `events`, in either order. Each
event belongs to a source: a request (URL_REQUEST), a session of HTTP/2 or QUIC, a socket. A log
covers the whole browser, and knows neither documents nor scripts: parents come from Referer fields
and times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from h3sim.importers.recorded_request import (
    REDIRECTS,
    ConnectionInfo,
    RecordedRequest,
    RequestOutcome,
    SizeSource,
)
from h3sim.importers.request_fields import (
    field_lines,
    kind_of_word,
    length_of,
    request_text_bytes,
    response_text_bytes,
    without_fragment,
)
from h3sim.importers.source import Fields, JsonPart
from h3sim.page import Kind
from h3sim.values.ranges import Ranges
from h3sim.values.units import MS_PER_S, NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.importers.recorded_request import Recording


_BEGIN, _END = 1, 2
"""Phases of an event with a duration; others have phase 0."""
_LEVEL_BY_NET_PRIORITY = {
    "HIGHEST": "veryhigh",
    "MEDIUM": "high",
    "LOW": "medium",
    "LOWEST": "low",
    "IDLE": "verylow",
    "THROTTLED": "verylow",
}
"""Blink's priority for each of Chromium's network stack, which is what other recordings have."""
_MAIN_FRAME_FLAGS = ("MAIN_FRAME_DEPRECATED", "MAIN_FRAME")
"""Names of the load flag of a page's document; newer logs have its type instead."""
_MAX_UNIX_MS = 1e14
"""Later times (year 5138) are no dates but mistakes."""
_PROTOCOL_BY_SEND_EVENT = {
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": "h2",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "h3",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": "http/1.1",
}
"""Protocol of a request, by the event with which its header is sent."""


@dataclass(slots=True, kw_only=True)
class _Exchange(RecordedRequest):
    """Request with its response; after a redirect the same source has another one."""

    source: str
    number: int
    """Index among the exchanges of the log."""
    is_main: bool = False
    """True if it is for the document of a page, not of a frame."""
    site: str = ""
    """Site of the page that requested it, "" in old logs."""
    is_sent: bool = False
    is_internal: bool = False
    """True for a redirect by the browser itself."""
    has_failed: bool = False
    quic_bytes: int = 0
    """Bytes in DATA frames over HTTP/3, for which a log has no windows."""
    quic_frames: list[tuple[float, int, int]] = field(default_factory=list)
    """Time, offset and length of each STREAM frame over HTTP/3."""
    chunks: list[tuple[float, int]] = field(default_factory=list)
    plain_reads: list[tuple[float, int]] = field(default_factory=list)
    later_levels: list[tuple[float, str]] = field(default_factory=list)
    request_fields: dict[str, str] = field(default_factory=dict)
    response_fields: dict[str, str] = field(default_factory=dict)

    def on_redirect(self, event: _Event) -> None:
        """Record the target of the redirect, and its end: no body is read."""
        self.redirect_to = event.params.text("location") or self.url
        self.end_ms = event.at_ms

    def on_own_redirect(self, _: _Event) -> None:
        """Record a redirect of the browser itself."""
        self.is_internal = True

    def on_cancel(self, _: _Event) -> None:
        """Record a failure."""
        self.has_failed = True

    def on_send(self, event: _Event) -> None:
        """Record when the request had been sent."""
        if event.phase == _END:
            self.sent_ms = event.at_ms

    def on_answer(self, event: _Event) -> None:
        """Record the status line and the fields of the response."""
        status_line, self.response_fields = _header_of(event.params)
        words = status_line.split()
        self.status = length_of(words[1]) if len(words) > 1 else None
        self.first_byte_ms = self.end_ms = event.at_ms

    def on_body(self, event: _Event) -> None:
        """Record the end of the body."""
        if event.phase == _END:
            self.end_ms = event.at_ms
            self.on_end(event)

    def on_end(self, event: _Event) -> None:
        """Record a failure if the event has one."""
        self.has_failed |= bool(event.params.number("net_error"))

    def on_read(self, event: _Event) -> None:
        """Count bytes of the decoded body."""
        n_bytes = event.params.size("byte_count") or 0
        self.decoded_bytes = (self.decoded_bytes or 0) + n_bytes
        if n_bytes:
            self.plain_reads.append((event.at_ms, n_bytes))

    def on_window(self, event: _Event) -> None:
        """Count a DATA frame, for which the window of its stream shrinks."""
        n_bytes = -(event.params.integer("delta") or 0)
        if n_bytes > 0:
            self.chunks.append((event.at_ms, n_bytes))

    def _quic_pieces(self) -> list[tuple[float, int]]:
        """Return the bytes of the body by time of arrival, each byte once.

        The stream begins with the fields of the response, which do not count.
        """
        pieces: list[tuple[float, int]] = []
        received = Ranges()
        end = max((offset + n_bytes for _, offset, n_bytes in self.quic_frames), default=0)
        body_offset = end - self.quic_bytes
        for at_ms, offset, n_bytes in self.quic_frames:
            start, stop = max(offset, body_offset), offset + n_bytes
            if start < stop and (n_new := received.add(start, stop)):
                pieces.append((at_ms, n_new))
        return pieces

    def settle(self) -> None:
        """Set what depends on several events, once all are read."""
        self.pieces = tuple(self.chunks or self._quic_pieces())
        self.later_priorities = tuple(self.later_levels)
        self.read_fields(self.request_fields, self.response_fields)
        dest = self.request_fields.get("sec-fetch-dest", "")
        self.kind = self.kind or kind_of_word(dest)
        self.mime = self.response_fields.get("content-type", "")
        self.outcome = self._outcome()
        if self.request_fields:
            fields = self.request_fields.items()
            self.request_bytes = request_text_bytes(self.method, self.url, fields)
            self.request_from = SizeSource.FIELDS
        if self.response_fields:
            self.header_bytes = response_text_bytes(self.response_fields.items())
            self.header_from = SizeSource.FIELDS
        self.set_body(
            (0 if self.redirect_to else None, SizeSource.RECORDED),
            (None if self.chunks else self.quic_bytes or None, SizeSource.PIECES),
            content_length=self.response_fields.get("content-length", ""),
        )
        self.reads = self.as_sent(tuple(self.plain_reads))

    def _outcome(self) -> RequestOutcome:
        if self.is_internal:
            return RequestOutcome.INTERNAL
        if self.has_failed or (self.is_sent and self.status is None):
            return RequestOutcome.FAILED
        return RequestOutcome.ANSWERED if self.is_sent else RequestOutcome.CACHE


class _Event(NamedTuple):
    """Event of a source, with a valid time."""

    name: str
    at_ms: float
    phase: int
    source: str
    params: Fields

    @property
    def bound_to(self) -> str:
        """The other source to which the event binds its own, such as a request's connection."""
        return self.params.table("source_dependency").name("id")


@dataclass(slots=True)
class _Handshake:
    """Handshake of a socket or QUIC session, with the server's address."""

    address: str = ""
    begun_ms: float | None = None
    ended_ms: float | None = None


class NetLog:
    """Reader of the events of a network log; `finish` puts the requests in the recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._name_by_type: dict[float, str] | None = None
        self.is_incomplete = False
        """True if events were passed over, as they came before the constants that name them."""
        self._main_frame_mask = 0
        self._unix_offset_ms: float | None = None
        self._exchanges: list[_Exchange] = []
        # Requests under way, and when and with which priority each request was created.
        self._open_by_source: dict[str, _Exchange] = {}
        self._start_by_source: dict[str, tuple[float, str]] = {}
        self._bound_source: dict[str, dict[str, str]] = {kind: {} for kind in _BOUND_KINDS}
        """Per kind, the source to which each source is bound."""
        self._handshake_by_source: defaultdict[str, _Handshake] = defaultdict(_Handshake)
        self._request_by_stream: dict[tuple[str, float | None], str] = {}
        """Source of the request on each stream (session, stream id) of HTTP/3."""
        self._last_frame = (0.0, 0)
        """Time of the last frame, and the number of frames before it with that time."""

    def add(self, part: JsonPart) -> None:
        """Process the constants, or an event."""
        if part.path == ("constants",) and isinstance(part.value, dict):
            self._read_constants(Fields(part.value, part.key, self._recording.note))
        if part.path != ("events",) or part.item is None:
            return
        if self._name_by_type is None:
            self.is_incomplete = True
            return
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        self._recording.found["events"] += 1
        name = self._name_by_type.get(fields.number("type") or 0.0)
        if name is None:  # an event that no handler needs
            return
        at_ms, source = fields.number("time"), fields.table("source").name("id")
        if at_ms is None or not source:
            fields.wrong("time" if at_ms is None else "source", "skipped: is missing")
            return
        phase = fields.integer("phase") or 0
        if name in _FRAME_EVENTS:
            at_ms = self._time_of_frame(at_ms)
        event = _Event(name, at_ms, phase, source, fields.table("params"))
        if name in _KIND_BY_BINDING_EVENT:
            self._bound_source[_KIND_BY_BINDING_EVENT[name]][source] = event.bound_to
        elif name in _EXCHANGE_HANDLERS:
            if (exchange := self._open_by_source.get(source)) is not None:
                _EXCHANGE_HANDLERS[name](exchange, event)
        else:
            _LOG_HANDLERS[name](self, event)

    def _time_of_frame(self, at_ms: float) -> float:
        """Return the time of a frame, a nanosecond after the frame before of the same millisecond.

        A log has whole milliseconds, but its order is that in which frames arrived (`recorded_ms`
        takes the nanoseconds off again).
        """
        last_ms, n_frames = self._last_frame
        n_frames = n_frames + 1 if at_ms == last_ms else 0
        self._last_frame = at_ms, n_frames
        return at_ms + n_frames / NS_PER_MS

    def _read_constants(self, constants: Fields) -> None:
        numbers = constants.table("logEventTypes")
        found = {
            numbers.number(name, *_OLD_NAMES.get(name, ())): name
            for name in (*_LOG_HANDLERS, *_EXCHANGE_HANDLERS, *_KIND_BY_BINDING_EVENT)
        }
        self._name_by_type = {number: name for number, name in found.items() if number is not None}
        flags = constants.table("loadFlag")
        self._main_frame_mask = flags.integer(*_MAIN_FRAME_FLAGS) or 0
        self._unix_offset_ms = constants.number("timeTickOffset")
        client = constants.table("clientInfo")
        self._recording.set_tool(client.text("name"), client.name("version"))

    # Requests

    def _on_alive(self, event: _Event) -> None:
        if event.phase == _BEGIN:
            self._start_by_source[event.source] = event.at_ms, event.params.text("priority")
        elif (exchange := self._open_by_source.pop(event.source, None)) is not None:
            exchange.on_end(event)

    def _on_job(self, event: _Event) -> None:
        # The job before on the same source, which this one follows after a redirect.
        before = self._open_by_source.get(event.source)
        if event.phase == _END:
            if before is not None:
                before.on_end(event)
            return
        params = event.params
        url = params.text("url")
        if not url or event.phase != _BEGIN:
            return
        start_ms, priority = self._start_by_source.get(event.source, (event.at_ms, ""))
        is_hop = before is not None and (before.redirect_to or before.status in REDIRECTS)
        if before is not None and not is_hop:
            return  # restarted, such as for authentication
        if not self._recording.has_room(len(self._exchanges)):
            return
        type_, flags = params.text("request_type"), params.integer("load_flags") or 0
        exchange = _Exchange(
            key=params.key.removesuffix(".params"),
            source=event.source,
            number=len(self._exchanges),
            url=without_fragment(url),
            start_ms=event.at_ms if is_hop else start_ms,
            method=params.text("method").upper() or "GET",
            priority=_LEVEL_BY_NET_PRIORITY.get(priority or params.text("priority"), ""),
            is_main=type_ == "main frame" or bool(not type_ and flags & self._main_frame_mask),
            is_framed=type_ == "sub frame",
            site=params.text("network_isolation_key").partition(" ")[0],
        )
        if exchange.is_main or exchange.is_framed:
            exchange.kind = Kind.DOCUMENT
        if before is not None:
            exchange.redirect_of = before.number
        self._open_by_source[event.source] = exchange
        self._exchanges.append(exchange)

    def _on_priority(self, event: _Event) -> None:
        word = event.params.text("priority")
        exchange = self._open_by_source.get(event.source)
        if exchange is not None and word in _LEVEL_BY_NET_PRIORITY:
            exchange.later_levels.append((event.at_ms, _LEVEL_BY_NET_PRIORITY[word]))
        elif event.source in self._start_by_source:
            start_ms, _ = self._start_by_source[event.source]
            self._start_by_source[event.source] = start_ms, word

    def _on_sent(self, event: _Event) -> None:
        if (exchange := self._open_by_source.get(event.source)) is None:
            return
        exchange.is_sent, exchange.protocol = True, _PROTOCOL_BY_SEND_EVENT[event.name]
        _, exchange.request_fields = _header_of(event.params)
        stream = event.params.number("quic_stream_id")
        if stream is not None:
            self._request_by_stream[
                self._bound_source["connection"].get(event.source, ""), stream
            ] = event.source

    # Connections

    def _on_session_request(self, event: _Event) -> None:
        self._bound_source["connection"][event.bound_to] = event.source

    def _on_connect(self, event: _Event) -> None:
        handshake = self._handshake_by_source[event.source]
        handshake.address = event.params.text("remote_address", "peer_address") or handshake.address
        if event.phase == _BEGIN:
            handshake.begun_ms = event.at_ms
        elif event.phase == _END and handshake.ended_ms is None:
            handshake.ended_ms = event.at_ms

    def _on_quic_session(self, event: _Event) -> None:
        if event.phase == _BEGIN:
            self._on_connect(event)

    def _on_quic_ready(self, event: _Event) -> None:
        self._handshake_by_source[event.source].ended_ms = event.at_ms

    def _on_quic_data(self, event: _Event) -> None:
        request = self._request_by_stream.get((event.source, event.params.number("stream_id")), "")
        if (exchange := self._open_by_source.get(request)) is not None:
            exchange.quic_bytes += event.params.size("payload_length") or 0

    def _on_quic_frame(self, event: _Event) -> None:
        request = self._request_by_stream.get((event.source, event.params.number("stream_id")), "")
        offset, n_bytes = event.params.size("offset"), event.params.size("length")
        exchange = self._open_by_source.get(request)
        if exchange is not None and offset is not None and n_bytes:
            exchange.quic_frames.append((event.at_ms, offset, n_bytes))

    # The load

    def finish(self) -> None:
        """Add the requests of the chosen load."""
        recording = self._recording
        if self._name_by_type is None:
            message = "are missing: the log was cut off before them, and its events have no names"
            raise recording.refuse(message, "constants")
        chosen = self._choose_exchanges()
        new_index = {exchange.number: index for index, exchange in enumerate(chosen)}
        used: set[str] = set()
        for exchange in chosen:
            exchange.reached = self._connection_info(exchange.source, used)
            if exchange.redirect_of is not None:
                exchange.redirect_of = new_index.get(exchange.redirect_of)
            exchange.settle()
        recording.requests += chosen
        if chosen and self._unix_offset_ms is not None:
            began_ms = self._unix_offset_ms + (chosen[0].start_ms or 0.0)
            if 0 < began_ms < _MAX_UNIX_MS:
                began = datetime.fromtimestamp(began_ms / MS_PER_S, UTC)
                recording.recorded = began.date().isoformat()

    def _choose_exchanges(self) -> list[_Exchange]:
        """Return the requests of the chosen load, without those of other pages and the browser."""
        recording, exchanges = self._recording, self._exchanges
        starts = [each for each in exchanges if each.is_main and each.redirect_of is None]
        index = recording.choose_page(len(starts))
        if index is None:
            return exchanges
        first, *rest = starts[index:]
        begun_ms = recording.begun_ms = first.start_ms or 0.0
        ended_ms = (rest[0].start_ms or 0.0) if rest else math.inf
        sites = {each.site for each in exchanges if each.source == first.source}
        during = [each for each in exchanges if begun_ms <= (each.start_ms or 0.0) < ended_ms]
        chosen = [each for each in during if each.site in sites]
        recording.left_out["of another page of the recording"] += len(exchanges) - len(during)
        recording.left_out["of the browser or another tab"] += len(during) - len(chosen)
        return chosen

    def _connection_info(self, source: str, used: set[str]) -> ConnectionInfo:
        """Return the connection of a request; only the first on each has the handshake time.

        *used* has the connections of requests before, and gets this one.
        """
        jobs, sockets, connections = (self._bound_source[kind] for kind in _BOUND_KINDS)
        connection = connections.get(source, sockets.get(jobs.get(source, ""), ""))
        handshake = self._handshake_by_source.get(sockets.get(connection, connection), _Handshake())
        handshake_ms = None
        if (
            connection not in used
            and handshake.begun_ms is not None
            and handshake.ended_ms is not None
        ):
            handshake_ms = max(0.0, handshake.ended_ms - handshake.begun_ms)
        used.add(connection)
        address = handshake.address.rpartition(":")[0]
        return ConnectionInfo(address, connection, handshake_ms=handshake_ms)


def _header_of(params: Fields) -> tuple[str, dict[str, str]]:
    """Return the status line of a response, "" without one, and the fields by their names.

    Logs have a list of lines, or an object in old logs over SPDY and HTTP/2.
    """
    if isinstance(params.raw("headers"), dict):
        table = params.table("headers")
        found = {name.lower(): table.name(name) for name in table.names()}
        status = found.get(":status") or found.get("status", "")
        return f"{found.get(':version', 'HTTP/1.1')} {status}", found
    lines = params.texts("headers")
    return next(iter(lines), ""), {name.lower(): value for name, value in field_lines(lines)}


_OLD_NAMES = {
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": ("HTTP_TRANSACTION_SPDY_SEND_REQUEST_HEADERS",),
    "HTTP2_STREAM_UPDATE_RECV_WINDOW": ("SPDY_STREAM_UPDATE_RECV_WINDOW",),
    "HTTP2_SESSION_INITIALIZED": ("SPDY_SESSION_INITIALIZED",),
    "HTTP2_SESSION_SEND_HEADERS": ("HTTP2_SESSION_SYN_STREAM", "SPDY_SESSION_SYN_STREAM"),
}
"""Names of events in old logs, when HTTP/2 was called SPDY."""


_WINDOW_EVENT = "HTTP2_STREAM_UPDATE_RECV_WINDOW"
_QUIC_FRAME_EVENT = "QUIC_SESSION_STREAM_FRAME_RECEIVED"
_FRAME_EVENTS = (_WINDOW_EVENT, _QUIC_FRAME_EVENT)
"""Events of bytes that arrive."""
_BOUND_KINDS = ("job", "socket", "connection")
"""Kinds of sources to which others are bound, on the way from a request to its socket."""
_KIND_BY_BINDING_EVENT = {
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB": "job",
    "HTTP2_SESSION_INITIALIZED": "socket",
    "SOCKET_POOL_BOUND_TO_SOCKET": "socket",
    "HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION": "connection",
}
"""Events that bind their source to another one, by name, with the kind of that other."""
_EXCHANGE_HANDLERS: dict[str, Callable[[_Exchange, _Event], None]] = {
    "URL_REQUEST_REDIRECTED": _Exchange.on_redirect,
    "URL_REQUEST_REDIRECT_JOB": _Exchange.on_own_redirect,
    "CANCELLED": _Exchange.on_cancel,
    "FAILED": _Exchange.on_cancel,
    "HTTP_TRANSACTION_SEND_REQUEST": _Exchange.on_send,
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS": _Exchange.on_answer,
    "HTTP_TRANSACTION_READ_BODY": _Exchange.on_body,
    "URL_REQUEST_JOB_FILTERED_BYTES_READ": _Exchange.on_read,
    _WINDOW_EVENT: _Exchange.on_window,
}
"""Handlers of the events of a request under way, by name."""
_LOG_HANDLERS: dict[str, Callable[[NetLog, _Event], None]] = {
    "REQUEST_ALIVE": NetLog._on_alive,
    "URL_REQUEST_START_JOB": NetLog._on_job,
    "URL_REQUEST_SET_PRIORITY": NetLog._on_priority,
    **dict.fromkeys(_PROTOCOL_BY_SEND_EVENT, NetLog._on_sent),
    "HTTP2_SESSION_SEND_HEADERS": NetLog._on_session_request,
    "TCP_CONNECT": NetLog._on_connect,
    "QUIC_SESSION": NetLog._on_quic_session,
    "QUIC_SESSION_CRYPTO_HANDSHAKE_COMPLETE": NetLog._on_quic_ready,
    "HTTP3_DATA_FRAME_RECEIVED": NetLog._on_quic_data,
    _QUIC_FRAME_EVENT: NetLog._on_quic_frame,
}
"""Handlers of other events, by name."""
