"""Chromium's network log: `chrome --log-net-log=FILE`, or saved by chrome://net-export.

A log is an object with `constants`, the numbers of events, and `events`. Each event belongs to a
source: a request (URL_REQUEST), a session of HTTP/2 or QUIC, a socket. A log covers the whole
browser, and knows neither documents nor scripts: parents come from Referer fields and times.
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
from h3sim.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from h3sim.importers.recorded_request import Recording


_BEGIN, _END = 1, 2
"""Phases of an event that lasts."""
_LEVELS = {
    "HIGHEST": "veryhigh",
    "MEDIUM": "high",
    "LOW": "medium",
    "LOWEST": "low",
    "IDLE": "verylow",
    "THROTTLED": "verylow",
}
"""Priorities of Chromium's network stack, with Blink's names for them."""
_MAIN_FLAGS = ("MAIN_FRAME_DEPRECATED", "MAIN_FRAME")
_LATEST_MS = 1e14
_PROTOCOLS = {
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS": "h2",
    "HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS": "h3",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS": "http/1.1",
}


@dataclass(slots=True, kw_only=True)
class _Exchange(RecordedRequest):
    """One request and its answer; a redirect is another one of the same source."""

    source: str
    number: int
    is_main: bool = False
    site: str = ""
    """Site of the page that it was requested for, "" in old logs."""
    is_sent: bool = False
    is_internal: bool = False
    has_failed: bool = False
    quic_bytes: int = 0
    chunks: list[tuple[float, int]] = field(default_factory=list)
    later: list[tuple[float, str]] = field(default_factory=list)
    request_fields: dict[str, str] = field(default_factory=dict)
    response_fields: dict[str, str] = field(default_factory=dict)

    def on_redirect(self, event: _Event) -> None:
        """Record where the answer sends the browser."""
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
        lines = event.params.texts("headers")
        words = lines[0].split() if lines else []
        self.status = length_of(words[1]) if len(words) > 1 else None
        self.response_fields = _fields(lines[1:])
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
        self.decoded_bytes = (self.decoded_bytes or 0) + (event.params.size("byte_count") or 0)

    def on_window(self, event: _Event) -> None:
        """Count a DATA frame, for which the window of its stream shrinks."""
        n_bytes = -(event.params.integer("delta") or 0)
        if n_bytes > 0:
            self.chunks.append((event.at_ms, n_bytes))

    def settle(self) -> None:
        """Work out what follows from all events."""
        self.pieces, self.later_priorities = tuple(self.chunks), tuple(self.later)
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
            (None if self.pieces else self.quic_bytes or None, SizeSource.PIECES),
            content_length=self.response_fields.get("content-length", ""),
        )

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
    def other(self) -> str:
        """The other source that the event is about."""
        return self.params.table("source_dependency").name("id")


@dataclass(slots=True)
class _Link:
    """Socket or QUIC session: its address, and when its handshake began and ended."""

    address: str = ""
    begun_ms: float | None = None
    ended_ms: float | None = None


class NetLog:
    """Reader of the events of a network log; `finish` puts the requests in the recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._names: dict[float, str] = {}
        self._main_flags = 0
        self._offset_ms: float | None = None
        self._exchanges: list[_Exchange] = []
        self._open: dict[str, _Exchange] = {}
        self._alive: dict[str, tuple[float, str]] = {}
        self._bound: dict[str, dict[str, str]] = {kind: {} for kind in _KINDS}
        self._links: defaultdict[str, _Link] = defaultdict(_Link)
        self._streams: dict[tuple[str, float | None], str] = {}

    def add(self, part: JsonPart) -> None:
        """Process the constants, or an event."""
        if part.path == ("constants",) and isinstance(part.value, dict):
            self._read_constants(Fields(part.value, part.key, self._recording.note))
        if part.path != ("events",) or part.item is None:
            return
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        self._recording.found["events"] += 1
        name = self._names.get(fields.number("type") or 0.0)
        if name is None:
            return
        at_ms, source = fields.number("time"), fields.table("source").name("id")
        if at_ms is None or not source:
            fields.wrong("time" if at_ms is None else "source", "skipped: is missing")
            return
        phase = fields.integer("phase") or 0
        event = _Event(name, at_ms, phase, source, fields.table("params"))
        if name in _BOUND:
            self._bound[_BOUND[name]][source] = event.other
        elif name in _OF_EXCHANGE:
            if (exchange := self._open.get(source)) is not None:
                _OF_EXCHANGE[name](exchange, event)
        else:
            _HANDLERS[name](self, event)

    def _read_constants(self, constants: Fields) -> None:
        numbers = constants.table("logEventTypes")
        found = {numbers.number(name): name for name in (*_HANDLERS, *_OF_EXCHANGE, *_BOUND)}
        self._names = {number: name for number, name in found.items() if number is not None}
        flags = constants.table("loadFlag")
        self._main_flags = flags.integer(*_MAIN_FLAGS) or 0
        self._offset_ms = constants.number("timeTickOffset")
        client = constants.table("clientInfo")
        self._recording.set_tool(client.text("name"), client.name("version"))

    # Requests

    def _on_alive(self, event: _Event) -> None:
        if event.phase == _BEGIN:
            self._alive[event.source] = event.at_ms, event.params.text("priority")
        elif (exchange := self._open.pop(event.source, None)) is not None:
            exchange.on_end(event)

    def _on_job(self, event: _Event) -> None:
        before = self._open.get(event.source)
        if event.phase == _END:
            if before is not None:
                before.on_end(event)
            return
        params = event.params
        url = params.text("url")
        if not url or event.phase != _BEGIN:
            return
        start_ms, priority = self._alive.get(event.source, (event.at_ms, ""))
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
            priority=_LEVELS.get(priority or params.text("priority"), ""),
            is_main=type_ == "main frame" or bool(not type_ and flags & self._main_flags),
            is_framed=type_ == "sub frame",
            site=params.text("network_isolation_key").partition(" ")[0],
        )
        if exchange.is_main or exchange.is_framed:
            exchange.kind = Kind.DOCUMENT
        if before is not None:
            exchange.redirect_of = before.number
        self._open[event.source] = exchange
        self._exchanges.append(exchange)

    def _on_priority(self, event: _Event) -> None:
        word = event.params.text("priority")
        exchange = self._open.get(event.source)
        if exchange is not None and word in _LEVELS:
            exchange.later.append((event.at_ms, _LEVELS[word]))
        elif event.source in self._alive:
            self._alive[event.source] = self._alive[event.source][0], word

    def _on_sent(self, event: _Event) -> None:
        if (exchange := self._open.get(event.source)) is None:
            return
        exchange.is_sent, exchange.protocol = True, _PROTOCOLS[event.name]
        exchange.request_fields = _fields(event.params.texts("headers"))
        stream = event.params.number("quic_stream_id")
        if stream is not None:
            self._streams[self._bound["connection"].get(event.source, ""), stream] = event.source

    # Connections

    def _on_session_request(self, event: _Event) -> None:
        self._bound["connection"][event.other] = event.source

    def _on_connect(self, event: _Event) -> None:
        link = self._links[event.source]
        link.address = event.params.text("remote_address", "peer_address") or link.address
        if event.phase == _BEGIN:
            link.begun_ms = event.at_ms
        elif event.phase == _END and link.ended_ms is None:
            link.ended_ms = event.at_ms

    def _on_quic_session(self, event: _Event) -> None:
        if event.phase == _BEGIN:
            self._on_connect(event)

    def _on_quic_ready(self, event: _Event) -> None:
        self._links[event.source].ended_ms = event.at_ms

    def _on_quic_data(self, event: _Event) -> None:
        request = self._streams.get((event.source, event.params.number("stream_id")), "")
        if (exchange := self._open.get(request)) is not None:
            exchange.quic_bytes += event.params.size("payload_length") or 0

    # The load

    def finish(self) -> None:
        """Add the requests of the chosen load."""
        recording, exchanges = self._recording, self._exchanges
        chosen = self._chosen()
        numbers = {id(exchange): n for n, exchange in enumerate(chosen)}
        used: set[str] = set()
        for exchange in chosen:
            exchange.reached = self._reached(exchange.source, used)
            before = None if exchange.redirect_of is None else exchanges[exchange.redirect_of]
            exchange.redirect_of = numbers.get(id(before))
            exchange.settle()
        recording.requests += chosen
        if chosen and self._offset_ms is not None:
            began_ms = self._offset_ms + (chosen[0].start_ms or 0.0)
            if 0 < began_ms < _LATEST_MS:
                began = datetime.fromtimestamp(began_ms / MS_PER_S, UTC)
                recording.recorded = began.date().isoformat()

    def _chosen(self) -> list[_Exchange]:
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

    def _reached(self, source: str, used: set[str]) -> ConnectionInfo:
        """Return the connection of a request; its first request has the handshake."""
        jobs, sockets, connections = (self._bound[kind] for kind in _KINDS)
        connection = connections.get(source, sockets.get(jobs.get(source, ""), ""))
        link = self._links.get(sockets.get(connection, connection), _Link())
        handshake_ms = None
        if connection not in used and link.begun_ms is not None and link.ended_ms is not None:
            handshake_ms = max(0.0, link.ended_ms - link.begun_ms)
        used.add(connection)
        address = link.address.rpartition(":")[0]
        return ConnectionInfo(address, connection, handshake_ms=handshake_ms)


def _fields(lines: Sequence[str]) -> dict[str, str]:
    return {name.lower(): value for name, value in field_lines(lines)}


_KINDS = ("job", "socket", "connection")
_BOUND = {
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB": "job",
    "HTTP2_SESSION_INITIALIZED": "socket",
    "SOCKET_POOL_BOUND_TO_SOCKET": "socket",
    "HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION": "connection",
}
"""Events that bind their source to another one, by name, with the kind of the other."""
_OF_EXCHANGE: dict[str, Callable[[_Exchange, _Event], None]] = {
    "URL_REQUEST_REDIRECTED": _Exchange.on_redirect,
    "URL_REQUEST_REDIRECT_JOB": _Exchange.on_own_redirect,
    "CANCELLED": _Exchange.on_cancel,
    "FAILED": _Exchange.on_cancel,
    "HTTP_TRANSACTION_SEND_REQUEST": _Exchange.on_send,
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS": _Exchange.on_answer,
    "HTTP_TRANSACTION_READ_BODY": _Exchange.on_body,
    "URL_REQUEST_JOB_FILTERED_BYTES_READ": _Exchange.on_read,
    "HTTP2_STREAM_UPDATE_RECV_WINDOW": _Exchange.on_window,
}
"""Events of a request under way, by name."""
_HANDLERS: dict[str, Callable[[NetLog, _Event], None]] = {
    "REQUEST_ALIVE": NetLog._on_alive,
    "URL_REQUEST_START_JOB": NetLog._on_job,
    "URL_REQUEST_SET_PRIORITY": NetLog._on_priority,
    **dict.fromkeys(_PROTOCOLS, NetLog._on_sent),
    "HTTP2_SESSION_SEND_HEADERS": NetLog._on_session_request,
    "TCP_CONNECT": NetLog._on_connect,
    "QUIC_SESSION": NetLog._on_quic_session,
    "QUIC_SESSION_CRYPTO_HANDSHAKE_COMPLETE": NetLog._on_quic_ready,
    "HTTP3_DATA_FRAME_RECEIVED": NetLog._on_quic_data,
}
"""Other events that count, by name."""
