"""Chrome DevTools protocol logs: events of the Network domain, one exchange per request.

Saved logs, such as Lighthouse's devtoolslog.json, and a live browser have the same events. Values
of a wrong type are noted and not used.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from h3sim.importers.navigations import split_navigations
from h3sim.importers.recorded_request import (
    INTERNAL_REDIRECT,
    MULTIPLEXED,
    REDIRECTS,
    ConnectionInfo,
    RecordedRequest,
    RequestOutcome,
    SizeSource,
)
from h3sim.importers.request_fields import (
    FIRST_ERROR_STATUS,
    NO_BODY,
    NOT_MODIFIED,
    kind_of_word,
    length_of,
    request_text_bytes,
    response_text_bytes,
    without_fragment,
)
from h3sim.importers.source import Fields, JsonPart
from h3sim.page import Kind
from h3sim.values.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.importers.recorded_request import Recording


Headers = tuple[tuple[str, str], ...]
_MAX_CALL_STACK_DEPTH = 50
"""Most asynchronous stacks that are followed, and most frames of each: a hostile file may nest them
without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFrame:
    """Call frame: the script and the position in it (from 0)."""

    url: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """Initiator of a request: type ("parser", "script", "preload", "other"), position and stack.

    The stack has the innermost call first, followed by its asynchronous callers (timers, promises
    and events).
    """

    type: str = ""
    url: str = ""
    line: int | None = None
    column: int = 0
    stack: tuple[CallFrame, ...] = ()


def read_initiator(given: Fields) -> Initiator:
    """Return an initiator in the form of the DevTools protocol."""
    line, column = given.number("lineNumber"), given.integer("columnNumber")
    return Initiator(
        type=given.text("type").lower(),
        url=without_fragment(given.text("url")),
        line=int(line) if line is not None and line >= 0 else None,
        column=column or 0,
        stack=tuple(_frames(given.table("stack"))),
    )


def _frames(stack: Fields) -> Iterator[CallFrame]:
    for _ in range(_MAX_CALL_STACK_DEPTH):
        for call in stack.tables("callFrames")[:_MAX_CALL_STACK_DEPTH]:
            url, line = without_fragment(call.text("url")), call.integer("lineNumber") or 0
            yield CallFrame(url=url, line=line, function=call.text("functionName"))
        if not isinstance(stack.raw("parent"), dict):
            return
        stack = stack.table("parent")


def set_initiator(request: RecordedRequest, initiator: Initiator) -> None:
    """Set what *initiator* says about the cause of *request*."""
    request.initiator_type = initiator.type
    request.line = initiator.line
    request.stack = tuple(dict.fromkeys(frame.url for frame in initiator.stack if frame.url))
    is_scripted = initiator.type == "script" and bool(request.stack)
    # The stack says more, and Chrome sometimes repeats the URL of its innermost frame.
    request.initiator = "" if is_scripted else initiator.url


def connection_of_response(answer: Fields) -> ConnectionInfo:
    """Return the connection of a response (`Network.Response`)."""
    dns_start, dns_end, connect_start, connect_end, ssl_start = (
        answer.table("timing").duration(name)
        for name in ("dnsStart", "dnsEnd", "connectStart", "connectEnd", "sslStart")
    )
    certificate, names = certificate_of(answer.table("securityDetails"))
    connection = answer.name("connectionId")
    handshake_ms = None
    if connect_start is not None and connect_end is not None:
        # TCP's handshake ends where TLS starts; QUIC has a single one, with TLS.
        is_tcp = ssl_start is not None and ssl_start > connect_start
        handshake_end = ssl_start if is_tcp else connect_end
        handshake_ms = handshake_end - connect_start  # type: ignore[operator]
    return ConnectionInfo(
        address=answer.text("remoteIPAddress"),
        # Chromium's id for responses without a connection is 0.
        connection="" if connection == "0" else connection,
        certificate=certificate,
        certificate_names=names,
        dns_ms=None if dns_start is None or dns_end is None else dns_end - dns_start,
        handshake_ms=handshake_ms,
    )


def certificate_of(details: Fields) -> tuple[str, tuple[str, ...]]:
    """Return an identity of a certificate, "" if unknown, and the names for which it is valid."""
    subject = details.text("subjectName")
    validity = [details.name(name) for name in ("validFrom", "validTo")]
    identity = " ".join((subject, details.text("issuer"), *validity)) if all(validity) else ""
    # The subject's name counts only without alternative names (RFC 9525 § 2).
    return identity, tuple(details.texts("sanList")) or ((subject,) if subject else ())


@dataclass(slots=True, kw_only=True)
class RecordedExchange(RecordedRequest):
    """Request with its response and the protocol's own values; times are on Chromium's clock."""

    hop_id: str
    """The protocol's id of the request, a slash, and the number of redirects before it."""
    type: str = ""
    """Resource type in the words of DevTools: "Document", "XHR"."""
    frame_id: str = ""
    wall_time_s: float | None = None
    asked_by: Initiator = field(default_factory=Initiator)
    priorities: list[tuple[float | None, str]] = field(default_factory=list)
    """Time and value of each priority; the first one is sent with the request."""
    post_bytes: int = 0
    charset: str = ""
    wire_bytes: int | None = None
    """Size of header and body on the wire; None if the end of the body was not recorded."""
    from_cache: bool = False
    from_service_worker: bool = False
    is_internal: bool = False
    """True for a redirect by the browser itself."""
    is_early_hint: bool = False
    has_extra: bool = True
    """True if separate events ("extra info") have its headers as sent and received."""
    failed: str = ""
    """Error for which it failed; "" if it did not."""
    redirected_from: RecordedExchange | None = None
    chunks: list[tuple[float, int, int]] = field(default_factory=list)
    """Chunks of the body: time, encoded bytes and decoded bytes."""
    request_fields: Headers = ()
    response_fields: Headers = ()

    @property
    def number(self) -> str:
        """The protocol's id of the request, which its redirects keep."""
        return self.hop_id.rpartition("/")[0]

    @property
    def requested_ms(self) -> float:
        """Request time in ms; 0 if unknown."""
        return self.start_ms or 0.0

    @property
    def is_unfinished(self) -> bool:
        """True if neither its end nor a failure was recorded."""
        is_over = self.failed or self.from_cache or self.from_service_worker
        return self.end_ms is None and not is_over

    @property
    def is_complete(self) -> bool:
        """True if a response arrived completely over the network."""
        is_cached = self.from_cache or self.from_service_worker
        return self.end_ms is not None and not is_cached and bool(self.status)

    def settle(self) -> None:
        """Set what depends on several events, once all are read."""
        sent, got = (
            {name.lower(): value for name, value in fields}
            for fields in (self.request_fields, self.response_fields)
        )
        self.read_fields(sent, got)
        self.kind = kind_of_word(self.type) or kind_of_word(sent.get("sec-fetch-dest", ""))
        self.priority = self.priorities[0][1].lower() if self.priorities else ""
        self.later_priorities = tuple(
            (at_ms, level.lower()) for at_ms, level in self.priorities[1:] if at_ms is not None
        )
        self.outcome = self._outcome()
        if self.is_early_hint:
            self.set_early_hinted()
        self._settle_sizes(got.get("content-length", ""))

    def _outcome(self) -> RequestOutcome:
        if self.kind is None and self.type == "WebSocket":
            return RequestOutcome.NOT_HTTP
        if self.is_internal:
            return RequestOutcome.INTERNAL
        if self.from_service_worker:
            return RequestOutcome.SERVICE_WORKER
        if self.from_cache:
            return RequestOutcome.CACHE
        # Without a status the log ends before the answer.
        is_answered = self.status is not None and not self.failed
        return RequestOutcome.ANSWERED if is_answered else RequestOutcome.FAILED

    def _settle_sizes(self, content_length: str) -> None:
        text_bytes = request_text_bytes(self.method, self.url, self.request_fields)
        self.request_bytes, self.request_from = text_bytes + self.post_bytes, SizeSource.FIELDS
        recorded_bytes = self.header_bytes or 0
        self._settle_header(recorded_bytes, length_of(content_length))
        pieces = [(at_ms, n_sent) for at_ms, n_sent, _ in self.chunks if n_sent]
        n_early = recorded_bytes - (self.header_bytes or 0)
        if n_early > 0 and self.first_byte_ms is not None:
            pieces.insert(0, (self.first_byte_ms, n_early))
        self.pieces = tuple(pieces)
        is_known = self.header_from is SizeSource.RECORDED
        # A header of unknown size is in the total, too.
        body_bytes = max(0, self.wire_bytes - (self.header_bytes or 0)) if self.wire_bytes else None
        body_from = SizeSource.RECORDED if is_known else SizeSource.TRANSFER
        self.set_body((body_bytes, body_from), content_length=content_length)
        reads = ((at_ms, n_plain) for at_ms, _, n_plain in self.chunks if n_plain)
        self.reads = self.as_sent(tuple(reads))

    def _settle_header(self, recorded_bytes: int, length: int | None) -> None:
        """Set the size of the header: what Chromium recorded, unless that has more in it.

        It counts what was received until it told of the header, which over a fast link is also a
        part of the body, or all of it. *length* is the Content-Length.
        """
        text_bytes = response_text_bytes(self.response_fields)
        self.header_bytes, self.header_from = recorded_bytes, SizeSource.RECORDED
        if not recorded_bytes and self.status is not None:
            self.header_bytes, self.header_from = text_bytes, SizeSource.FIELDS
        if not recorded_bytes or self.status in REDIRECTS:
            return
        if self.method == "HEAD" or self.status in NO_BODY:
            length = None  # that of a body which is not sent
        most = recorded_bytes, self.header_from
        if length is not None and self.wire_bytes and self.wire_bytes > length:
            most = self.wire_bytes - length, SizeSource.TRANSFER
        elif self.response_fields and self.protocol.startswith(MULTIPLEXED):
            # No coding is longer than the text: beside name and value HPACK and QPACK take three
            # bytes where these are short, and the text takes four.
            most = text_bytes, SizeSource.FIELDS
        self.header_bytes, self.header_from = min(
            (recorded_bytes, self.header_from), most, key=itemgetter(0)
        )


def join_redirects(exchanges: Sequence[RecordedExchange]) -> None:
    """Set for each target of a redirect the index of the redirect in *exchanges*."""
    indexes = {exchange.hop_id: index for index, exchange in enumerate(exchanges)}
    for exchange in exchanges:
        before = exchange.redirected_from
        if before is not None and before.hop_id in indexes:
            exchange.redirect_of = indexes[before.hop_id]


_NETWORK_EVENTS = frozenset(
    (
        "requestWillBeSent",
        "requestWillBeSentExtraInfo",
        "responseReceivedExtraInfo",
        "requestServedFromCache",
        "responseReceived",
        "resourceChangedPriority",
        "dataReceived",
        "loadingFinished",
        "loadingFailed",
    )
)
"""Events that are read, without the name of their domain."""
_MAX_CHUNKS = 2_000_000
"""Most chunks of bodies that are kept of all requests, to bound memory."""


class NetworkEvents:
    """Reader of the events of requests, which makes one exchange of each hop of redirects."""

    def __init__(self, note: Callable[[str, str], None]) -> None:
        self.exchanges: list[RecordedExchange] = []
        self._note = note
        self._open_by_id: dict[str, RecordedExchange] = {}
        self._last_hop: dict[str, int] = {}
        """Number of redirects so far, by the protocol's id of the request."""
        self._n_chunks = 0
        # Extra info may come before or after the event of its hop, so it is joined at the end.
        self._extra_requests: dict[str, list[Headers]] = {}
        self._extra_responses: dict[str, list[tuple[Headers, int, float | None]]] = {}
        """Fields, length as text and status of responses as received, not as cached."""

    def add(self, method: str, params: Fields) -> None:
        """Process an event; those of other domains and of unknown requests are ignored."""
        event = method.removeprefix("Network.")
        if event not in _NETWORK_EVENTS or event == method:
            return
        number = params.text("requestId")
        if not number:
            self._note(f"{params.key}.requestId", "skipped: is missing")
        elif event == "requestWillBeSent":
            self._start_request(params, number)
        elif event == "requestWillBeSentExtraInfo":
            self._extra_requests.setdefault(number, []).append(_headers(params))
        elif event == "responseReceivedExtraInfo":
            text = params.raw("headersText")
            n_bytes = len(text) if isinstance(text, str) else 0
            extra = (_headers(params), n_bytes, params.number("statusCode"))
            self._extra_responses.setdefault(number, []).append(extra)
        elif number in self._open_by_id:
            self._continue_request(event, params, self._open_by_id[number])

    def _continue_request(self, event: str, params: Fields, exchange: RecordedExchange) -> None:
        """Process an event of a request under way."""
        match event:
            case "requestServedFromCache":
                exchange.from_cache = True
            case "responseReceived":
                exchange.type = params.text("type") or exchange.type
                self._read_response(exchange, params.table("response"), params)
            case "resourceChangedPriority":
                exchange.priorities.append((_timestamp_ms(params), params.text("newPriority")))
            case "dataReceived":
                self._data_received(params, exchange)
            case "loadingFinished":
                exchange.end_ms = _timestamp_ms(params)
                exchange.wire_bytes = params.size("encodedDataLength")
            case _:  # loadingFailed
                if (exchange.status or 0) >= FIRST_ERROR_STATUS:
                    # Blink refuses scripts of this status: they were answered, and waited for.
                    exchange.end_ms = _timestamp_ms(params)
                else:
                    exchange.failed = params.text("errorText") or "canceled"

    def finish(self) -> list[RecordedExchange]:
        """Return the exchanges in the order of their requests, with their extra info."""
        # Extra info has no hop: the n-th of a request belongs to its n-th hop that has any.
        hops: Counter[str] = Counter()
        for exchange in self.exchanges:
            if not exchange.has_extra:
                continue
            number = exchange.number
            sent, got, hop = (
                self._extra_requests.get(number, []),
                self._extra_responses.get(number, []),
                hops[number],
            )
            hops[number] += 1
            if hop < len(sent):
                exchange.request_fields = sent[hop]
            if hop < len(got):
                exchange.response_fields, text_bytes, status = got[hop]
                # Preferred, as for a synchronous request Chromium counts the body as header.
                exchange.header_bytes = text_bytes or exchange.header_bytes
                if status == NOT_MODIFIED:
                    # Other events have the status of the cached response, and its size as sent.
                    exchange.status, exchange.wire_bytes = NOT_MODIFIED, exchange.header_bytes
        for exchange in self.exchanges:
            exchange.settle()
            if exchange.redirected_from is not None:  # it precedes, so it is already settled
                exchange.redirected_from.body_bytes = 0
                exchange.redirected_from.body_from = SizeSource.RECORDED
        return self.exchanges

    def _start_request(self, params: Fields, number: str) -> None:
        request = params.table("request")
        url = request.text("url")
        if not url:
            request.wrong("url", "skipped: is missing")
            return
        now_ms = _timestamp_ms(params)
        before = self._open_by_id.pop(number, None)
        is_redirected = before is not None and "redirectResponse" in params
        if before is not None and is_redirected:
            self._read_response(before, params.table("redirectResponse"), params)
            before.end_ms = now_ms
        hop = self._last_hop[number] = self._last_hop.get(number, -1) + 1
        exchange = RecordedExchange(
            hop_id=f"{number}/{hop}",
            key=params.key.removesuffix(".params"),
            url=without_fragment(url),
            type=params.text("type"),
            frame_id=params.text("frameId"),
            start_ms=now_ms,
            wall_time_s=params.duration("wallTime"),
            asked_by=read_initiator(params.table("initiator")),
            priorities=[(now_ms, request.text("initialPriority"))],
            blocking=params.text("renderBlockingBehavior").lower(),
            method=request.text("method").upper() or "GET",
            post_bytes=len(request.text("postData")),
            redirected_from=before if is_redirected else None,
            request_fields=_headers(request),
        )
        set_initiator(exchange, exchange.asked_by)
        exchange.is_preload = request.flag("isLinkPreload") or exchange.initiator_type == "preload"
        self._open_by_id[number] = exchange
        self.exchanges.append(exchange)

    def _read_response(self, exchange: RecordedExchange, answer: Fields, params: Fields) -> None:
        exchange.status = answer.integer("status")
        exchange.is_internal = answer.raw("statusText") == INTERNAL_REDIRECT
        flags = (params.raw("hasExtraInfo"), params.raw("redirectHasExtraInfo"))
        exchange.has_extra = not exchange.is_internal and False not in flags
        exchange.mime = answer.text("mimeType")
        exchange.charset = answer.text("charset")
        exchange.protocol = answer.text("protocol").lower()
        exchange.header_bytes = answer.size("encodedDataLength") or 0
        exchange.response_fields = _headers(answer)
        exchange.is_early_hint = answer.flag("fromEarlyHints")
        if not exchange.is_early_hint:
            exchange.from_cache |= answer.flag("fromDiskCache", "fromPrefetchCache")
        exchange.from_service_worker |= answer.flag("fromServiceWorker")
        timing = answer.table("timing")
        exchange.is_pushed = (timing.number("pushStart") or 0) > 0
        first_byte_ms = _timestamp_ms(params)
        # The other times count from this one.
        zero_s, received_ms = timing.duration("requestTime"), timing.duration("receiveHeadersEnd")
        if zero_s is not None and received_ms is not None:
            first_byte_ms = zero_s * MS_PER_S + received_ms
        sent_ms = timing.duration("sendEnd")
        if zero_s is not None and sent_ms is not None:
            exchange.sent_ms = zero_s * MS_PER_S + sent_ms
        exchange.reached = connection_of_response(answer)
        if first_byte_ms is not None:
            exchange.first_byte_ms = max(first_byte_ms, exchange.requested_ms)

    def _data_received(self, params: Fields, exchange: RecordedExchange) -> None:
        n_plain, n_sent = params.size("dataLength") or 0, params.size("encodedDataLength") or 0
        exchange.decoded_bytes = (exchange.decoded_bytes or 0) + n_plain
        at_ms = _timestamp_ms(params)
        if at_ms is not None and self._n_chunks < _MAX_CHUNKS:
            self._n_chunks += 1
            exchange.chunks.append((at_ms, n_sent, n_plain))


def _timestamp_ms(params: Fields) -> float | None:
    seconds = params.duration("timestamp")
    return None if seconds is None else seconds * MS_PER_S


def _headers(message: Fields) -> Headers:
    """Return a header list; DevTools joins fields of one name with line feeds."""
    fields = message.raw("headers")
    if not isinstance(fields, dict):
        return ()
    texts = ((name, value) for name, value in fields.items() if isinstance(value, str))
    return tuple((name, part) for name, value in texts for part in value.split("\n"))


_MAX_UNIX_S = 253_402_300_799
"""End of the year 9999, after which Python has no dates."""


class ProtocolLog:
    """Reader of the events of a log, a JSON list or one object per line."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._events = NetworkEvents(recording.note)
        self._first_event: dict[str, Any] = {}
        self._load_events_ms: list[float] = []

    def add(self, part: JsonPart) -> None:
        """Process an event, or a member of the first one if each event is a line."""
        if not part.path:
            self._add_first()
            self._add_event(part)
        elif part.item is None and len(part.path) == 1:
            self._first_event[part.path[0]] = part.value

    def _add_first(self) -> None:
        if self._first_event:
            self._add_event(JsonPart((), self._first_event, line=1))
            self._first_event = {}

    def _add_event(self, part: JsonPart) -> None:
        fields = Fields.of(part, self._recording.note)
        if fields is None:
            return
        method = fields.text("method")
        self._recording.found["events"] += 1
        if method == "Page.loadEventFired":
            loaded_s = fields.table("params").duration("timestamp")
            self._load_events_ms += [] if loaded_s is None else [loaded_s * MS_PER_S]
        is_request = method == "Network.requestWillBeSent"
        # At the limit of requests, events of known ones are still read.
        if not is_request or self._recording.has_room(len(self._events.exchanges)):
            self._events.add(method, fields.table("params"))

    def finish(self) -> None:
        """Add the requests, the day, and the time of the load event to the recording."""
        self._add_first()
        recording = self._recording
        exchanges, ended_ms = self._chosen_exchanges()
        recording.requests += exchanges
        walls_s = (each.wall_time_s for each in exchanges)
        if wall_s := next((each for each in walls_s if each and each < _MAX_UNIX_S), None):
            recording.recorded = datetime.fromtimestamp(wall_s, UTC).date().isoformat()
        page = next(_pages(exchanges), None)
        if page is not None and page.start_ms is not None:
            loaded_ms = (at for at in self._load_events_ms if page.start_ms <= at < ended_ms)
            if (at_ms := next(loaded_ms, None)) is not None:
                recording.times_ms["load_event"] = at_ms - page.start_ms

    def _chosen_exchanges(self) -> tuple[list[RecordedExchange], float]:
        """Return the requests of the chosen page load, and when the next load began."""
        exchanges = self._events.finish()
        join_redirects(exchanges)
        _mark_frames(exchanges)
        loads = split_navigations(exchanges, next(iter(self._load_events_ms), None))
        index = self._recording.choose_page(len(loads) if len(loads) > 1 else 0)
        if index is None:
            return exchanges, math.inf
        chosen, rest = loads[index], loads[index + 1 :]
        n_others = len(exchanges) - len(chosen)
        self._recording.left_out["of another page of the recording"] += n_others
        self._recording.found["requests"] += n_others
        join_redirects(chosen)
        next_page = next(_pages(rest[0]), None) if rest else None
        ended_ms = None if next_page is None else next_page.start_ms
        return chosen, math.inf if ended_ms is None else ended_ms


def _pages(exchanges: Sequence[RecordedExchange]) -> Iterator[RecordedExchange]:
    """Yield what may be the page: documents with a web address, then other such requests."""
    documents = (each for each in exchanges if each.kind is Kind.DOCUMENT)
    for each in (*documents, *exchanges):
        if each.start_ms is not None and each.url.lower().startswith("http"):
            yield each


def _mark_frames(exchanges: Sequence[RecordedExchange]) -> None:
    """Mark documents as those of the page or of its frames: the page's is the first frame."""
    page = next((each for each in _pages(exchanges) if each.kind is Kind.DOCUMENT), None)
    if page is None or not page.frame_id:
        return
    for exchange in exchanges:
        if exchange.kind is Kind.DOCUMENT and exchange.frame_id:
            exchange.is_framed = exchange.frame_id != page.frame_id
            exchange.destination = "iframe" if exchange.is_framed else "document"
