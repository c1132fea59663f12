"""HAR 1.2, in the dialects of its writers.

The order of preference among sizes is in `docs/importing.md`. The milestones of a page are those of
HAR 1.2 (`onLoad`) and those that Browsertime and WebPageTest add.

The format is described at http://www.softwareishard.com/blog/har-12-spec/; names that begin with
an underscore are the writers' own.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from h3sim.importers.formats.devtools import certificate_of, read_initiator, set_initiator
from h3sim.importers.navigations import split_navigations
from h3sim.importers.recorded_request import (
    INTERNAL_REDIRECT,
    QUIC,
    REDIRECTS,
    ConnectionInfo,
    HeadersPriority,
    RecordedRequest,
    RequestOutcome,
    SizeSource,
    by_time,
    first_size,
    kind_of,
    level_of,
)
from h3sim.importers.request_fields import (
    NO_BODY,
    NOT_MODIFIED,
    joined,
    kind_of_word,
    length_of,
    plain_mime,
    request_text_bytes,
    response_text_bytes,
    without_fragment,
)
from h3sim.importers.source import Fields, JsonPart, parsed
from h3sim.importers.stated_network import shaping_in_har
from h3sim.page import ImageFormat, Kind, Level
from h3sim.page.har_facts import FACTS, read_facts, read_page_facts
from h3sim.schema import format_value
from h3sim.schema.errors import RejectedValueError
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.importers.recorded_request import KnownSize, Recording


FactsT = TypeVar("FactsT")
Headers = list[tuple[str, str]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TIMING_PARTS = ("blocked", "dns", "connect", "send", "wait", "receive")
"""Timings that add up to the time of an entry; `ssl` is part of `connect` (HAR 1.2)."""


class Started(NamedTuple):
    """Start of an entry: microseconds since 1970, and the local day of the recording."""

    at_us: int
    day: str


def started_at(text: str) -> Started | None:
    """Return the instant in a `startedDateTime`, None if it is not a date and time.

    >>> started_at("1970-01-02T00:00:00.5+01:00")
    Started(at_us=82800500000, day='1970-01-02')
    """
    try:
        when = datetime.fromisoformat(text)
        day = when.date().isoformat()
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        # Durations divide exactly; a timestamp as a float would not.
        return Started((when - _EPOCH) // _MICROSECOND, day)
    except (ValueError, OverflowError):
        return None


def date_of(at_ms: float) -> str:
    """Return a time in ms since 1970 as HAR 1.2 writes it, "" if no date is that late.

    >>> date_of(82_800_500)
    '1970-01-01T23:00:00.500000+00:00'
    """
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="microseconds")
    except OverflowError:
        return ""


def read_timings(request: RecordedRequest, entry: Fields) -> None:
    """Set when the request was sent and its response began and ended, from an entry's timings."""
    timings = entry.table("timings")
    parts = {name: timings.duration(name) for name in _TIMING_PARTS}
    total = entry.duration("time")
    if total is None and any(part is not None for part in parts.values()):
        total = math.fsum(part or 0.0 for part in parts.values())
    queued = timings.duration("_queued")
    if request.start_ms is None or total is None:
        return
    request.end_ms = request.start_ms + total
    receive, wait = parts["receive"], parts["wait"]
    if receive is not None:
        request.first_byte_ms = max(request.start_ms, request.end_ms - receive)
        if wait is not None:
            request.sent_ms = max(request.start_ms, request.first_byte_ms - wait)
    # chrome-har's entries start when the browser released the request from its queue.
    request.start_ms -= queued or 0.0


def times_of_page(page: Fields) -> dict[str, float]:
    """Return the times of the load that a page of the log has, in ms since its start."""
    timings = page.table("pageTimings")
    visual = page.table("_visualMetrics")
    vitals = page.table("_googleWebVitals")
    found = {
        "load_event": timings.duration("onLoad"),
        "fcp": timings.duration("_firstContentfulPaint")
        or page.duration("_firstContentfulPaint", "_chromeUserTiming.firstContentfulPaint")
        or vitals.duration("firstContentfulPaint"),
        "largest_paint": timings.duration("_largestContentfulPaint")
        or page.duration("_chromeUserTiming.LargestContentfulPaint", "_LargestContentfulPaint")
        or vitals.duration("largestContentfulPaint"),
        "speed_index": visual.duration("SpeedIndex") or page.duration("_SpeedIndex"),
    }
    return {name: time_ms for name, time_ms in found.items() if time_ms}


_LARGEST_PAINT_EVENTS = ("LargestImagePaint", "LargestContentfulPaint")


def largest_image(page: Fields) -> str:
    """Return the URL of the image that is the largest paint of a page of the log, "" without one.

    WebPageTest lists each candidate in `_largestPaints`, with the element and its rectangle. The
    last candidate counts, unless it is text.
    """
    if url := page.text("_LargestContentfulPaintImageURL"):
        return url
    last = max(
        page.tables("_largestPaints"), key=lambda paint: paint.number("time") or 0.0, default=None
    )
    if last is None:
        return ""
    at_ms = last.number("time")
    for paint in page.tables("_largestPaints"):
        if paint.number("time") == at_ms and paint.text("event") in _LARGEST_PAINT_EVENTS:
            node, element = paint.table("nodeInfo"), paint.table("element")
            url = node.text("sourceURL") or element.text("currentSrc", "src")
            url = url or _background_url(node.table("styles")) or _background_url(element)
            if url:
                return url
    return ""


def _background_url(styles: Fields) -> str:
    """Return the URL in a `background-image`, "" without one."""
    found = _CSS_URL.match(styles.text("background-image"))
    return "" if found is None else found[1]


_CSS_URL = re.compile(r"""url\(["']?([^"')]+)["']?\)""")


def headers_of(message: Fields) -> Headers:
    """Return the fields of a request or a response, names in lower case."""
    return [
        (name.lower(), value)
        for field in message.tables("headers")
        if (name := field.text("name")) and isinstance(value := field.raw("value"), str)
    ]


def read_sizes(request: RecordedRequest, entry: Fields, sent: Headers, got: Headers) -> None:
    """Set the sizes of *request* from its entry and the fields of request and response."""
    request_table, response_table = entry.table("request"), entry.table("response")
    # `or`, here and below: recorders also write 0 for values that they do not know.
    transfer = response_table.size("_transferSize") or entry.size("_bytesIn")
    header = response_table.size("headersSize") or None
    length = length_of(dict(got).get("content-length", ""))
    body, source = _body_size(request, entry, length, transfer, header)
    request.decoded_bytes = response_table.table("content").size("size")
    if transfer and source is SizeSource.TOTAL and (got or request.decoded_bytes):
        body, source = _body_of_transfer(request, transfer, got), SizeSource.TRANSFER
    request.body_bytes, request.body_from = body, source
    request.stretch_pieces()
    has_rest = transfer and body is not None and source is not SizeSource.TOTAL and transfer > body
    request.header_bytes, request.header_from = first_size(
        (header, SizeSource.RECORDED),
        (transfer - body if has_rest else None, SizeSource.TRANSFER),  # type: ignore[operator]
        (response_text_bytes(got) if got else None, SizeSource.FIELDS),
    )
    fields_bytes = request_text_bytes(request.method, request.url, sent) if sent else None
    n_bytes, request.request_from = first_size(
        (request_table.size("headersSize") or None, SizeSource.RECORDED),
        (fields_bytes, SizeSource.FIELDS),
    )
    if n_bytes is not None:
        request.request_bytes = n_bytes + (request_table.size("bodySize") or 0)


def _body_of_transfer(request: RecordedRequest, transfer: int, got: Headers) -> int:
    """Return the size of the body of a response of *transfer* bytes, header and all.

    That of an uncompressed body is the decoded size; otherwise the header is taken to be as long as
    its text over HTTP/1.1, so that it does not count twice.
    """
    decoded = request.decoded_bytes
    if decoded and decoded < transfer and not dict(got).get("content-encoding"):
        return decoded
    return max(0, transfer - response_text_bytes(got)) if got else transfer


def _body_size(
    request: RecordedRequest,
    entry: Fields,
    length: int | None,
    transfer: int | None,
    header: int | None,
) -> KnownSize:
    """Return the size of the body on the wire, by the members that each recorder fills best."""
    if request.status in NO_BODY or request.method == "HEAD":
        return 0, SizeSource.RECORDED
    content = entry.table("response").table("content")
    recorded = entry.size("_objectSize") or entry.table("response").size("bodySize")
    if recorded == transfer and entry.table("response").size("headersSize") is None:
        recorded = None  # over HTTP/2 chrome-har counts the header as body
    decoded = content.size("size")
    if header and recorded:  # Firefox's `bodySize` is what was transferred
        for known in (length, decoded):
            if known is not None and recorded == known + header:
                return known, SizeSource.TRANSFER
    if recorded or (recorded == 0 and request.status in REDIRECTS):
        return recorded, SizeSource.RECORDED
    if transfer and header is not None and transfer > header:
        return transfer - header, SizeSource.TRANSFER
    if length is not None and (not transfer or length <= transfer):
        return length, SizeSource.CONTENT_LENGTH
    if transfer:
        return transfer, SizeSource.TOTAL
    saved = content.size("compression")
    is_less = decoded and saved and saved < decoded
    return first_size(
        (decoded - saved if is_less else None, SizeSource.COMPRESSION),  # type: ignore[operator]
        (decoded or None, SizeSource.DECODED),
        # A recorded 0, which may mean unknown, is used if there is nothing else.
        (0 if 0 in (recorded, decoded) else None, SizeSource.RECORDED),
    )


_MAX_DETAIL_CHARS = 1 << 20
"""Longest `_initiator_detail` that is parsed, to bound memory."""


def read_initiator_fields(request: RecordedRequest, entry: Fields) -> None:
    """Set the initiator from `_initiator` and related members of a HAR's entry.

    DevTools writes an object; chrome-har and WebPageTest write a URL, and chrome-har also writes
    the object, as text, in `_initiator_detail`.
    """
    value: Any = entry.raw("_initiator")
    if isinstance(value, dict):
        set_initiator(request, read_initiator(entry.table("_initiator")))
        return
    text = entry.raw("_initiator_detail")
    detail = parsed(text) if isinstance(text, str) and len(text) <= _MAX_DETAIL_CHARS else None
    if isinstance(detail, dict):
        set_initiator(request, read_initiator(Fields(detail, entry.key, lambda *_: None)))
    if not request.stack:
        request.initiator = entry.text("_initiator") or request.initiator
    request.initiator_type = entry.text("_initiator_type").lower() or request.initiator_type
    line = entry.number("_initiator_line")
    if line is not None and line >= 1 and request.line is None:
        request.line = int(line) - 1  # chrome-har counts lines from 1, the protocol from 0


_DEFAULT_PORTS = ("80", "443")
"""Ports of servers, which recorders may write in place of an id of the connection."""
_MIN_HANDSHAKE_MS = 1.0
"""Shorter handshakes are the rest of a connection that was being opened before."""


def connection_info(entry: Fields) -> ConnectionInfo:
    """Return the connection of a HAR's entry, also from members of Chrome and other recorders.

    The `connection` of HAR 1.2 may be a port of either end. A server's port does not identify a
    connection, so it is ignored.
    """
    timings = entry.table("timings")
    connection = entry.name("_connectionId", "_socket")
    if not connection and (number := entry.name("connection")) not in _server_ports(entry):
        connection = number
    handshake_ms = _handshake_ms(entry)
    certificate, names = certificate_of(entry.table("_securityDetails"))
    if not names:
        certificate, names = certificate_of(entry.table("response").table("_securityDetails"))
    return ConnectionInfo(
        address=entry.text("serverIPAddress", "_ip_addr"),
        connection=connection,
        certificate=certificate,
        certificate_names=names,
        dns_ms=timings.duration("dns"),
        handshake_ms=handshake_ms,
        connect_ms=timings.duration("connect") if handshake_ms is None else None,
    )


def _server_ports(entry: Fields) -> tuple[str, ...]:
    try:
        port = urlsplit(entry.table("request").text("url")).port
    except ValueError:
        port = None
    return (*_DEFAULT_PORTS, str(port))


def _handshake_ms(entry: Fields) -> float | None:
    """Return the duration of the transport's handshake; None if it is unknown.

    By HAR 1.2, `connect` includes `ssl`, but some recorders exclude it. With QUIC there is only one
    handshake: both are equal, or `ssl` is missing. With TLS over TCP, a missing `ssl` leaves the
    handshake unknown.
    """
    connect, ssl = (entry.table("timings").duration(name) for name in ("connect", "ssl"))
    is_secure = entry.table("request").text("url").lower().startswith("https:")
    is_quic = entry.table("response").text("httpVersion").lower().startswith(QUIC)
    if not connect:
        return None
    if ssl is None or ssl == 0:
        return None if is_secure and not is_quic else connect
    if connect <= ssl:
        return connect
    return connect - ssl if connect - ssl >= _MIN_HANDSHAKE_MS else None


def _headers_priority(entry: Fields) -> HeadersPriority | None:
    """Return the HTTP/2 priority in an entry of WebPageTest's HAR, None if it has none."""
    stream_id, parent_id, weight = (
        entry.number(f"_http2_stream_{name}") for name in ("id", "dependency", "weight")
    )
    if not stream_id or parent_id is None or parent_id < 0:
        return None
    weight = DEFAULT_WEIGHT if weight is None else weight
    return HeadersPriority(
        stream_id=round(stream_id),
        parent_id=round(parent_id),
        weight=min(max(round(weight), 1), MAX_WEIGHT),
        exclusive=entry.flag("_http2_stream_exclusive"),
    )


_FIREFOX = "har-firefox"
HAR_DIALECTS = {
    "har-devtools": r"webinspector|chrome har capturer|puppeteer-har",
    "har-chrome-har": r"browsertime|chrome-har|sitespeed",
    "har-webpagetest": r"webpage ?test",
    _FIREFOX: r"firefox|librewolf|waterfox|floorp",
    "har-playwright": r"playwright",
    "har-http1": r"firebug|fiddler|hdrgrab|http ?watch|charles|har ?viewer",
    "har": r"",
}
"""Dialects of HAR, with a pattern of the names of their writers (`creator`, `browser`)."""
_DIALECT_BY_MEMBER = (
    ("_bytesIn", "har-webpagetest"),
    ("_initiator_type", "har-chrome-har"),
    ("_initiator_detail", "har-chrome-har"),
)
"""Members of entries that only one dialect has, for HARs whose writer is unknown."""
_TRANSFER_PARTS = ("dns", "connect", "send", "wait", "receive")
"""Timings of which each response over a network has some."""
_OUTCOME_BY_FETCH_TYPE = {
    "Memory Cache": RequestOutcome.CACHE,
    "Disk Cache": RequestOutcome.CACHE,
    "Service Worker": RequestOutcome.SERVICE_WORKER,
    "Inspector Override": RequestOutcome.OVERRIDDEN,
}
"""Sources of responses in Safari's words, other than the network."""
_IMAGE_HEADER_CHARS = 4 * 2**16
"""Base64 that is decoded to find an image's format: a JPEG may begin with a colour profile."""
_XHR_FIELD = ("x-requested-with", "XMLHttpRequest")
"""Header field that JavaScript libraries add to their requests."""


class _UnsettledEntry(NamedTuple):
    """Facts of an entry that mean something only beside those of the others."""

    request: RecordedRequest
    is_timed: bool
    """True if any part of it took time."""
    is_in_cache: bool
    """True if the state of a cache is recorded."""
    has_header_in_body: bool | None
    """True if the size of the body includes the header, by the other sizes; None if unknown."""

    @classmethod
    def of(cls, request: RecordedRequest, entry: Fields, got: Mapping[str, str]) -> _UnsettledEntry:
        """Return the facts of an entry; *got* has the fields of its response."""
        timings, answer = entry.table("timings"), entry.table("response")
        parts = (timings.duration(name) for name in _TRANSFER_PARTS)
        recorded = answer.size("bodySize")
        known = (length_of(got.get("content-length", "")), answer.table("content").size("size"))
        header = answer.size("headersSize")
        includes = None
        if recorded and header and request.status not in NO_BODY:
            without = [size + header for size in known if size is not None]
            includes = True if recorded in without else False if recorded in known else None
        return cls(
            request,
            is_timed=bool(entry.duration("time")) or any(parts),
            is_in_cache="afterRequest" in entry.table("cache"),
            has_header_in_body=includes,
        )


def _take_off_headers(entries: Sequence[_UnsettledEntry]) -> None:
    """Subtract headers from the sizes of bodies that include them.

    Whether a recorder includes them is known from entries with other sizes: those with
    Content-Length or an uncompressed body. Others, sent in chunks and compressed, follow these.
    """
    known = Counter(entry.has_header_in_body for entry in entries)
    if known[True] <= known[False]:
        return
    for request in (entry.request for entry in entries if entry.has_header_in_body is None):
        body, header = request.body_bytes, request.header_bytes
        is_recorded = request.body_from is request.header_from is SizeSource.RECORDED
        if is_recorded and body and header and body > header:
            request.body_bytes, request.body_from = body - header, SizeSource.TRANSFER


def _mark_cached(entries: Sequence[_UnsettledEntry]) -> None:
    """Mark what Firefox had in a cache: it records the entry, or neither times nor a server.

    Where nothing in the log took time, the recorder did not know times.
    """
    has_times = any(entry.is_timed for entry in entries)
    for request, is_timed, is_in_cache, _ in entries:
        is_reached = request.header_from is SizeSource.RECORDED and bool(request.reached.address)
        is_empty = has_times and not is_timed and not is_reached
        is_answered = request.outcome is RequestOutcome.ANSWERED and not request.is_unmodified
        if is_answered and (is_in_cache or is_empty):
            request.outcome = RequestOutcome.CACHE


class _Load(NamedTuple):
    """Page load of a log."""

    page: str
    """The log's id of its page, "" if it has none."""
    requests: list[RecordedRequest]
    is_first: bool
    """True unless the page has an earlier navigation."""


def _merged(
    requests: Sequence[RecordedRequest], load: _Load, others: Sequence[RecordedRequest]
) -> list[RecordedRequest]:
    """Return the requests of *load* and *others*, in the order of the log."""
    chosen = {id(each) for each in (*load.requests, *others)}
    return [each for each in requests if id(each) in chosen]


class HarReader:
    """Reader of the log of a HAR, entry by entry."""

    def __init__(self, recording: Recording) -> None:
        self._writer_members: dict[str, Any] = {}
        self._recording = recording
        self._pages: dict[str, Fields] = {}
        self._dialect_by_members = ""
        self._unsettled: list[_UnsettledEntry] = []
        self._first_entry_us: int | None = None

    def add(self, part: JsonPart) -> None:
        """Process an entry or another part of the log; note members outside of the log."""
        # By the last key: with a missing brace, members of the log are beside it.
        name = part.path[-1]
        if name in ("entries", "pages"):
            if part.item is not None:
                fields = Fields.of(part, self._recording.note)
                if fields is not None:
                    (self.add_entry if name == "entries" else self.add_page)(fields)
            elif not isinstance(part.value, list):
                self._recording.note(part.key, f"must be a list, is {format_value(part.value)}")
        elif name in ("creator", "browser"):
            self._writer_members[name] = part.value
        elif part.path[0] != "log":
            self._recording.note(part.key, "is not read: a HAR is its log")

    def add_page(self, page: Fields) -> None:
        """Process a page of the log."""
        if id_ := page.text("id"):
            self._pages[id_] = page

    def add_entry(self, entry: Fields) -> None:
        """Process an entry of the log."""
        if not self._recording.has_room():
            return
        url = entry.table("request").text("url")
        if not url:
            self._recording.note(f"{entry.key}.request.url", "skipped: is missing")
            return
        if not self._dialect_by_members:
            found = (dialect for name, dialect in _DIALECT_BY_MEMBER if name in entry)
            is_devtools = isinstance(entry.raw("_initiator"), dict)
            self._dialect_by_members = "har-devtools" if is_devtools else next(found, "")
        request = RecordedRequest(key=entry.key, url=url, page=entry.text("pageref"))
        answer = entry.table("response")
        request.method = entry.table("request").text("method").upper() or "GET"
        request.status = answer.integer("status")
        self._read_times(request, entry)
        sent, got = headers_of(entry.table("request")), headers_of(answer)
        fields = dict(got)
        request.read_fields(dict(sent), fields)
        _read_kind(request, entry, sent, fields)
        if _is_revalidated(entry):
            request.status = NOT_MODIFIED
        read_sizes(request, entry, sent, got)
        request.outcome = _outcome(request, entry)
        self._unsettled.append(_UnsettledEntry.of(request, entry, fields))
        if request.status in REDIRECTS:
            # Some recorders leave the member empty, but have the header field.
            location = answer.text("redirectURL") or fields.get("location", "")
            request.redirect_to = joined(url, location) if location else ""
        read_initiator_fields(request, entry)
        _read_priority(request, entry)
        request.frame = _headers_priority(entry)
        request.blocking = entry.text("_renderBlocking", "_render_blocking").lower()
        request.is_preload = (
            entry.flag("_isLinkPreload")
            or entry.table("request").flag("_isLinkPreload")
            or request.initiator_type == "preload"
        )
        if answer.flag("fromEarlyHints"):
            request.set_early_hinted()
        request.is_pushed = entry.flag("_was_pushed", "_wasPushed")
        # WebPageTest's times of the main thread, by the name of the task.
        request.parse_ms = entry.duration("_cpu.v8.compile") or 0.0
        request.execute_ms = entry.duration("_cpu.EvaluateScript") or 0.0
        request.text = self._document_text(request, answer)
        request.image_format = _image_format(answer.table("content"))
        request.facts = self._facts(entry, read_facts)
        self._recording.requests.append(request)

    def finish(self) -> None:
        """Set the dialect, choose the page load, and join redirects."""
        recording = self._recording
        creator, browser = (
            Fields(self._writer_members, "log", recording.note).table(name)
            for name in ("creator", "browser")
        )
        recording.set_tool(creator.text("name"), creator.text("version"))
        if not recording.dialect:
            signed = _dialect_of(creator.text("name")) or _dialect_of(browser.text("name"))
            recording.dialect = signed or self._dialect_by_members or "har"
        _take_off_headers(self._unsettled)
        if recording.dialect == _FIREFOX:
            _mark_cached(self._unsettled)
        self._choose_page()
        _join_redirects(recording.requests)

    def _choose_page(self) -> None:
        """Keep only the requests of the requested page load, and read its times.

        Those of other loads cannot have caused any of its requests.
        """
        recording = self._recording
        of_any = [request for request in recording.requests if not request.page]
        loads, n_pages = self._loads()
        # A log without pages and with one navigation, or none, does not separate any.
        index = recording.choose_page(len(loads) if n_pages or len(loads) > 1 else 0, "log.pages")
        if index is None:
            return
        load = loads[index]
        if load.page:  # a request without a page may belong to any
            load = load._replace(requests=_merged(recording.requests, load, of_any))
        if len(loads) > max(1, n_pages):
            recording.found["navigations"] = len(loads)
        page = self._pages.get(load.page)
        # The times and the largest paint of a page are those of its first navigation.
        is_timed = page is not None and load.is_first
        recording.times_ms |= times_of_page(page) if page is not None and is_timed else {}
        if page is not None and recording.stated_network is None:
            recording.stated_network = shaping_in_har(page)
        recording.page_facts = None if page is None else self._facts(page, read_page_facts)
        hero = without_fragment(largest_image(page)) if page is not None and is_timed else ""
        for request in recording.requests:
            request.is_hero = bool(hero) and without_fragment(request.url) == hero
        n_others = len(recording.requests) - len(load.requests)
        recording.left_out["of another page of the recording"] += n_others
        recording.found["requests"] += n_others
        recording.requests = load.requests
        begun_ms = self._begun_ms(load.page)
        if begun_ms is not None:
            recording.begun_ms = begun_ms if is_timed else None
            for request in load.requests:  # times of pieces count from the start of the page
                request.pieces = tuple((at_ms + begun_ms, n) for at_ms, n in request.pieces)

    def _loads(self) -> tuple[list[_Load], int]:
        """Return the page loads in the order of the log, and the number of its pages.

        A page may have several, if the recorder kept its log over navigations.
        """
        requests = self._recording.requests
        by_page: dict[str, list[RecordedRequest]] = {}
        for request in requests:
            by_page.setdefault(request.page, []).append(request)
        if len(by_page) > 1:
            by_page.pop("", None)
        # Pages with requests, in the order of the log, then those that it does not list.
        pages = [page for page in {**self._pages, **by_page} if page in by_page]
        loads: list[_Load] = []
        for page in pages:
            _join_redirects(by_page[page])
            parts = [by_page[page]]
            if not any(each.facts is not None for each in by_page[page]):  # roots are known
                parts = split_navigations(by_page[page], self._load_event_ms(page))
            loads += [_Load(page, part, number == 0) for number, part in enumerate(parts)]
        return loads, len([page for page in pages if page])

    def _begun_ms(self, page: str) -> float | None:
        """Return when a page of the log began, on the clock of its requests."""
        fields = self._pages.get(page)
        at_us = None if fields is None else self._start_us(fields)
        if at_us is None or self._first_entry_us is None:
            return None
        return (at_us - self._first_entry_us) / 1000

    def _load_event_ms(self, page: str) -> float | None:
        """Return when the load event of a page of the log was, on the clock of its requests."""
        fields, begun_ms = self._pages.get(page), self._begun_ms(page)
        loaded_ms = None if fields is None else fields.table("pageTimings").duration("onLoad")
        return None if begun_ms is None or loaded_ms is None else begun_ms + loaded_ms

    def _read_times(self, request: RecordedRequest, entry: Fields) -> None:
        at_us = self._start_us(entry)
        if at_us is not None:
            # From the first entry on, as a float of microseconds since 1970 has too few digits.
            self._first_entry_us = at_us if self._first_entry_us is None else self._first_entry_us
            request.start_ms = (at_us - self._first_entry_us) / 1000
        read_timings(request, entry)
        request.reached = connection_info(entry)
        chunks = entry.tables("_chunks")
        pieces = ((chunk.number("ts"), chunk.size("bytes")) for chunk in chunks)
        request.pieces = tuple((at_ms, n) for at_ms, n in pieces if at_ms is not None and n)

    def _facts(self, fields: Fields, read: Callable[[object], FactsT]) -> FactsT | None:
        """Return what h3sim wrote about an entry or page; None if it is missing or wrong."""
        if FACTS not in fields:
            return None
        try:
            return read(fields.raw(FACTS))
        except RejectedValueError as error:
            for problem in error.problems:
                fields.wrong(".".join(filter(None, (FACTS, problem.key))), problem.message)
        return None

    def _start_us(self, entry: Fields) -> int | None:
        """Return the start of an entry or page, and set the day of the recording."""
        text = entry.text("startedDateTime")
        if not text:
            return None
        started = started_at(text)
        if started is None:
            message = f"must be a date and time (ISO 8601), is {format_value(text)}"
            entry.wrong("startedDateTime", message)
            return None
        self._recording.recorded = self._recording.recorded or started.day
        return started.at_us

    def _document_text(self, request: RecordedRequest, answer: Fields) -> str:
        """Return the text of an HTML document for its markup; "" for other responses."""
        content = answer.table("content")
        text = content.raw("text")
        if not isinstance(text, str) or plain_mime(request.mime) != "text/html":
            return ""
        if content.raw("encoding") == "base64":
            text = _decode_base64(text).decode("utf-8", "replace")
        return self._recording.keep_text(text) if text else ""


def _image_format(content: Fields) -> ImageFormat | None:
    """Return the format of an image by its recorded bytes."""
    text = content.raw("text")
    if not isinstance(text, str) or content.raw("encoding") != "base64":
        return None
    return ImageFormat.of_bytes(_decode_base64(text[:_IMAGE_HEADER_CHARS]))


def _decode_base64(text: str) -> bytes:
    """Return the bytes that are encoded in *text*; none if it is not base64."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _dialect_of(name: str) -> str:
    """Return the dialect of the writer *name*, "" if it is unknown."""
    known = (
        dialect
        for dialect, pattern in HAR_DIALECTS.items()
        if pattern and re.search(pattern, name, re.IGNORECASE)
    )
    return next(known, "")


def _read_kind(
    request: RecordedRequest, entry: Fields, sent: Headers, got: Mapping[str, str]
) -> None:
    request.is_xhr = _XHR_FIELD in sent
    answer = entry.table("response")
    request.protocol = answer.text("httpVersion").lower()
    request.mime = answer.table("content").text("mimeType")
    if not plain_mime(request.mime):
        request.mime = got.get("content-type", "")
    word = entry.text("_resourceType", "_request_type") or dict(sent).get("sec-fetch-dest", "")
    request.kind = kind_of_word(word)


def _read_priority(request: RecordedRequest, entry: Fields) -> None:
    """Set Chrome's priorities: chrome-har records the first and the last, DevTools the last.

    An image's last priority is not taken for the first if it is High, as Chrome raises it to that
    when it finds the image in the viewport.
    """
    first, last = entry.text("_initialPriority").lower(), entry.text("_priority").lower()
    may_be_raised = level_of(last) is Level.HIGH and kind_of(request)[0] is Kind.IMAGE
    request.priority = first if first or may_be_raised else last
    if last not in ("", request.priority) and request.end_ms is not None:
        # The time of the change is unknown; at the end it has no effect on the load.
        request.later_priorities = ((request.end_ms, last),)


def _is_revalidated(entry: Fields) -> bool:
    """Return whether Safari took a response from its disk after asking the server.

    Then the header of the answer was transferred, but the status is that of the cached response.
    """
    is_of_disk = entry.raw("_fetchType") == "Disk Cache"
    return is_of_disk and bool(entry.table("response").size("_transferSize"))


def _outcome(request: RecordedRequest, entry: Fields) -> RequestOutcome:
    answer = entry.table("response")
    if entry.raw("_resourceType") == "websocket" or request.status == 101:
        return RequestOutcome.NOT_HTTP
    if request.status in REDIRECTS and answer.raw("statusText") == INTERNAL_REDIRECT:
        return RequestOutcome.INTERNAL
    if answer.raw("_error") or answer.raw("_failureText"):
        return RequestOutcome.FAILED
    via_worker = ("_fetchedViaServiceWorker", "fromServiceWorker")
    if entry.flag(*via_worker) or answer.flag(*via_worker):
        return RequestOutcome.SERVICE_WORKER
    source = _OUTCOME_BY_FETCH_TYPE.get(str(entry.raw("_fetchType")))
    if source is not None and not request.is_unmodified:
        return source
    if answer.flag("fromEarlyHints"):
        return RequestOutcome.ANSWERED
    transfer = answer.size("_transferSize")
    is_empty = not transfer and not answer.size("bodySize") and request.status == 200
    is_cached = (
        bool(entry.raw("_fromCache"))
        or entry.flag("_fromDiskCache")
        or answer.flag("fromDiskCache", "_fromDiskCache", "fromPrefetchCache")
        or (is_empty and transfer == 0 and bool(request.decoded_bytes))
        or (is_empty and isinstance(entry.table("cache").raw("beforeRequest"), dict))
    )
    if is_cached:
        return RequestOutcome.CACHE
    if request.status is None or request.status <= 0:
        return RequestOutcome.FAILED
    return RequestOutcome.ANSWERED


def _join_redirects(requests: Sequence[RecordedRequest]) -> None:
    """Set for each target of a redirect the nearest redirect to its URL before it."""
    waiting: dict[str, int] = {}
    for request in requests:
        request.redirect_of = None
    for index in by_time(requests):
        request = requests[index]
        url = without_fragment(request.url)
        # Popped, as a redirect leads to one request: a later one of that URL is unrelated.
        if url in waiting:
            request.redirect_of = waiting.pop(url)
        if request.redirect_to:
            waiting[request.redirect_to] = index
