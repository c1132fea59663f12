"""HAR 1.2, in the dialects of its writers.

The order of preference among sizes stands in `docs/importing.md`. The milestones of a page are
those of HAR 1.2 (`onLoad`), and what Browsertime and WebPageTest add.

The format is described at http://www.softwareishard.com/blog/har-12-spec/; names that begin with
an underscore are the writers' own.
"""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim.importers.formats.devtools import certificate_of, read_initiator, take_initiator
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
    level_of,
)
from h3sim.importers.request_fields import (
    NO_BODY,
    joined,
    kind_of,
    kind_of_word,
    length_of,
    plain_mime,
    request_text_bytes,
    response_text_bytes,
    without_fragment,
)
from h3sim.importers.source import Fields, JsonPart, parsed
from h3sim.page import ImageFormat, Kind, Level
from h3sim.schema import format_value
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.importers.recorded_request import KnownSize, Recording


Headers = list[tuple[str, str]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PARTS = ("blocked", "dns", "connect", "send", "wait", "receive")


class Started(NamedTuple):
    """Start of an entry: microseconds since 1970, and the local day of the recording."""

    at_us: int
    day: str


def started_at(text: str) -> Started | None:
    """Return the instant that a `startedDateTime` tells, None if it is none.

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
    """Return a time in ms since 1970 as HAR 1.2 writes it, "" if it is no date.

    >>> date_of(82_800_500)
    '1970-01-01T23:00:00.500000+00:00'
    """
    try:
        return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="microseconds")
    except OverflowError:
        return ""


def read_timings(request: RecordedRequest, entry: Fields) -> None:
    """Take over when an entry's parts ended, counted from when it began."""
    timings = entry.table("timings")
    parts = {name: timings.duration(name) for name in _PARTS}
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
    # chrome-har's entries begin when the browser let go of the request, so long after it was made.
    request.start_ms -= queued or 0.0


def times_of_page(page: Fields) -> dict[str, float]:
    """Return what a page of the log says of the load as a whole, in ms since it began."""
    timings = page.table("pageTimings")
    visual = page.table("_visualMetrics")
    vitals = page.table("_googleWebVitals")
    found = {
        "load_event": timings.duration("onLoad"),
        "largest_paint": timings.duration("_largestContentfulPaint")
        or page.duration("_chromeUserTiming.LargestContentfulPaint", "_LargestContentfulPaint")
        or vitals.duration("largestContentfulPaint"),
        "speed_index": visual.duration("SpeedIndex") or page.duration("_SpeedIndex"),
    }
    return {name: time_ms for name, time_ms in found.items() if time_ms}


_PAINTS = ("LargestImagePaint", "LargestContentfulPaint")


def largest_image(page: Fields) -> str:
    """Return the URL of the image that a page of the log calls its largest paint, "" without one.

    WebPageTest lists each candidate in `_largestPaints`, with the element and its rectangle: Chrome
    takes only elements that are visible in the viewport. The last one counts, unless that is text.
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
        if paint.number("time") == at_ms and paint.text("event") in _PAINTS:
            node, element = paint.table("nodeInfo"), paint.table("element")
            url = node.text("sourceURL") or element.text("currentSrc", "src")
            url = url or _background(node.table("styles")) or _background(element)
            if url:
                return url
    return ""


def _background(styles: Fields) -> str:
    """Return the URL in a `background-image`, "" without one."""
    found = _URL.match(styles.text("background-image"))
    return "" if found is None else found[1]


_URL = re.compile(r"""url\(["']?([^"')]+)["']?\)""")


def headers_of(message: Fields) -> Headers:
    """Return the fields of a request or a response, names in lower case."""
    return [
        (name.lower(), value)
        for field in message.tables("headers")
        if (name := field.text("name")) and isinstance(value := field.raw("value"), str)
    ]


def read_sizes(request: RecordedRequest, entry: Fields, sent: Headers, got: Headers) -> None:
    """Take over the sizes of an entry, of which the fields *sent* and *got* are read already."""
    asked, answer = entry.table("request"), entry.table("response")
    # `or`, here and below: recorders write 0, too, where they know nothing.
    transfer = answer.size("_transferSize") or entry.size("_bytesIn")
    header = answer.size("headersSize") or None
    length = length_of(dict(got).get("content-length", ""))
    body, basis = _body(request, entry, length, transfer, header)
    request.body_bytes, request.body_from = body, basis
    request.decoded_bytes = answer.table("content").size("size")
    request.stretch_pieces()
    is_apart = transfer and body is not None and basis is not SizeSource.TOTAL and transfer > body
    request.header_bytes, request.header_from = first_size(
        (header, SizeSource.RECORDED),
        (transfer - body if is_apart else None, SizeSource.TRANSFER),  # type: ignore[operator]
        (response_text_bytes(got) if got else None, SizeSource.FIELDS),
    )
    fields_bytes = request_text_bytes(request.method, request.url, sent) if sent else None
    n_bytes, request.request_from = first_size(
        (asked.size("headersSize") or None, SizeSource.RECORDED), (fields_bytes, SizeSource.FIELDS)
    )
    if n_bytes is not None:
        request.request_bytes = n_bytes + (asked.size("bodySize") or 0)


def _body(
    request: RecordedRequest,
    entry: Fields,
    length: int | None,
    transfer: int | None,
    header: int | None,
) -> KnownSize:
    if request.status in NO_BODY or request.method == "HEAD":
        return 0, SizeSource.RECORDED
    content = entry.table("response").table("content")
    recorded = entry.size("_objectSize") or entry.table("response").size("bodySize")
    if recorded == transfer and entry.table("response").size("headersSize") is None:
        recorded = None  # over HTTP/2 chrome-har counts the header as body
    if header and length is not None and recorded == length + header:
        return length, SizeSource.TRANSFER  # Firefox's `bodySize` is what was transferred
    decoded = content.size("size")
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
        # Some recorders write 0 for what they do not know; it is believed if nothing contradicts.
        (0 if 0 in (recorded, decoded) else None, SizeSource.RECORDED),
    )


_LONGEST_DETAIL = 1 << 20


def read_initiator_fields(request: RecordedRequest, entry: Fields) -> None:
    """Take over an initiator from `_initiator` and what stands beside it in a HAR.

    DevTools has an object there. chrome-har and WebPageTest have a URL, and chrome-har the whole
    object as text in `_initiator_detail`.
    """
    value: Any = entry.raw("_initiator")
    if isinstance(value, dict):
        take_initiator(request, read_initiator(entry.table("_initiator")))
        return
    text = entry.raw("_initiator_detail")
    detail = parsed(text) if isinstance(text, str) and len(text) <= _LONGEST_DETAIL else None
    if isinstance(detail, dict):
        take_initiator(request, read_initiator(Fields(detail, entry.key, lambda *_: None)))
    if not request.stack:
        request.initiator = entry.text("_initiator") or request.initiator
    request.initiator_type = entry.text("_initiator_type").lower() or request.initiator_type
    line = entry.number("_initiator_line")
    if line is not None and line >= 1 and request.line is None:
        request.line = int(line) - 1  # chrome-har counts lines from 1, the protocol from 0


_PORTS = ("80", "443")
_LEAST_MS = 1.0


def connection_info(entry: Fields) -> ConnectionInfo:
    """Return what an entry of a HAR says: HAR 1.2, and what Chrome, WebPageTest and Playwright add.

    The `connection` of HAR 1.2 may be a port of either end. That of a server tells nothing: every
    host has it.
    """
    timings = entry.table("timings")
    connection = entry.name("_connectionId", "_socket")
    if not connection and (number := entry.name("connection")) not in _ports(entry):
        connection = number
    handshake_ms = _handshake_of_entry(entry)
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


def _ports(entry: Fields) -> tuple[str, ...]:
    try:
        port = urlsplit(entry.table("request").text("url")).port
    except ValueError:
        port = None
    return (*_PORTS, str(port))


def _handshake_of_entry(entry: Fields) -> float | None:
    """Return what the transport's handshake took: *connect* has that of TLS in it (HAR 1.2).

    Over QUIC both are one, and a recorder says the same for both, or nothing of TLS; some
    recorders leave TLS out of *connect*. Where nothing is said of TLS although there was some,
    nothing can be told.
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
    # Less is what is left of a connection that the browser had opened before, for whatever comes.
    return connect - ssl if connect - ssl >= _LEAST_MS else None


def _frame_of(entry: Fields) -> HeadersPriority | None:
    """Return what an entry of WebPageTest's HAR says of its stream, None where it says nothing."""
    stream_id, parent_id, weight = (
        entry.number(f"_http2_stream_{name}") for name in ("id", "dependency", "weight")
    )
    if not stream_id or parent_id is None or parent_id < 0:
        return None
    known = DEFAULT_WEIGHT if weight is None else round(weight)
    return HeadersPriority(
        stream_id=round(stream_id),
        parent_id=round(parent_id),
        weight=min(max(known, 1), MAX_WEIGHT),
        exclusive=entry.flag("_http2_stream_exclusive"),
    )


HAR_DIALECTS = {
    "har-devtools": r"webinspector|chrome har capturer|puppeteer-har",
    "har-chrome-har": r"browsertime|chrome-har|sitespeed",
    "har-webpagetest": r"webpage ?test",
    "har-firefox": r"firefox",
    "har-playwright": r"playwright",
    "har-http1": r"firebug|fiddler|hdrgrab|http ?watch|charles|har ?viewer",
    "har": r"",
}
"""The dialects, each with a pattern of the names with which their writers sign."""
_EVIDENCE = (
    ("_bytesIn", "har-webpagetest"),
    ("_initiator_type", "har-chrome-har"),
    ("_initiator_detail", "har-chrome-har"),
)
_FORMAT_CHARS = 4 * 2**16
"""As much base64 as may precede the frame header of a JPEG with a colour profile."""
_XHR_FIELD = ("x-requested-with", "XMLHttpRequest")


class HarReader:
    """Takes in the log of a HAR, entry by entry."""

    def __init__(self, recording: Recording) -> None:
        self._head: dict[str, Any] = {}
        self._recording = recording
        self._pages: dict[str, Fields] = {}
        self._evidence = ""
        self._zero_us: int | None = None

    def add(self, part: JsonPart) -> None:
        """Take in an entry or another part of the log; what stands beside it is noted."""
        name = part.path[-1]  # what stands beside the log, where a brace went missing, is read
        if name in ("entries", "pages"):
            if part.item is not None:
                fields = Fields.of(part, self._recording.note)
                if fields is not None:
                    (self.add_entry if name == "entries" else self.add_page)(fields)
            elif not isinstance(part.value, list):
                self._recording.note(part.key, f"must be a list, is {format_value(part.value)}")
        elif name in ("creator", "browser"):
            self._head[name] = part.value
        elif part.path[0] != "log":
            self._recording.note(part.key, "is not read: a HAR is its log")

    def add_page(self, page: Fields) -> None:
        """Take in a page of the log."""
        if id_ := page.text("id"):
            self._pages[id_] = page

    def add_entry(self, entry: Fields) -> None:
        """Take in an entry of the log."""
        if not self._recording.has_room():
            return
        url = entry.table("request").text("url")
        if not url:
            self._recording.note(f"{entry.key}.request.url", "skipped: is missing")
            return
        if not self._evidence:
            found = (dialect for name, dialect in _EVIDENCE if name in entry)
            is_devtools = isinstance(entry.raw("_initiator"), dict)
            self._evidence = "har-devtools" if is_devtools else next(found, "")
        request = RecordedRequest(key=entry.key, url=url, page=entry.text("pageref"))
        answer = entry.table("response")
        request.method = entry.table("request").text("method").upper() or "GET"
        request.status = answer.integer("status")
        self._read_times(request, entry)
        sent, got = headers_of(entry.table("request")), headers_of(answer)
        fields = dict(got)
        request.read_fields(dict(sent), fields)
        _read_type(request, entry, sent, fields)
        read_sizes(request, entry, sent, got)
        request.outcome = _outcome(request, entry)
        if request.status in REDIRECTS:
            # Some recorders leave the member empty: the field says it as well.
            location = answer.text("redirectURL") or fields.get("location", "")
            request.redirect_to = joined(url, location) if location else ""
        read_initiator_fields(request, entry)
        _read_priority(request, entry)
        request.frame = _frame_of(entry)
        request.blocking = entry.text("_renderBlocking", "_render_blocking").lower()
        request.is_preload = (
            entry.flag("_isLinkPreload")
            or entry.table("request").flag("_isLinkPreload")
            or request.initiator_type == "preload"
        )
        if answer.flag("fromEarlyHints"):
            request.was_hinted()
        request.is_pushed = entry.flag("_was_pushed", "_wasPushed")
        # WebPageTest's times of the main thread, by the name of the task.
        request.parse_ms = entry.duration("_cpu.v8.compile") or 0.0
        request.execute_ms = entry.duration("_cpu.EvaluateScript") or 0.0
        request.text = self._text(request, answer)
        request.image_format = _image_format(answer.table("content"))
        self._recording.requests.append(request)

    def finish(self) -> None:
        """Settle what can be told only when all was read: the dialect, the page, redirects."""
        recording = self._recording
        creator, browser = (
            Fields(self._head, "log", recording.note).table(name) for name in ("creator", "browser")
        )
        recording.set_tool(creator.text("name"), creator.text("version"))
        if not recording.dialect:
            signed = _dialect_of(creator.text("name")) or _dialect_of(browser.text("name"))
            recording.dialect = signed or self._evidence or "har"
        self._choose_page()
        _join_redirects(recording.requests)

    def _choose_page(self) -> None:
        """Leave out what belongs to another page than the one that is asked for.

        Nothing follows from it: its scripts and documents have long gone.
        """
        recording = self._recording
        used = dict.fromkeys(request.page for request in recording.requests if request.page)
        # In the order of the log's pages, but only those that have entries; then those that it
        # does not list.
        ids = [page for page in {**self._pages, **used} if page in used]
        index = recording.choose_page(len(ids), "log.pages")
        if index is None:
            return
        page = self._pages.get(ids[index])
        recording.times_ms |= {} if page is None else times_of_page(page)
        hero = "" if page is None else without_fragment(largest_image(page))
        for request in recording.requests:
            request.is_hero = bool(hero) and without_fragment(request.url) == hero
        of_page = [each for each in recording.requests if each.page in ("", ids[index])]
        n_others = len(recording.requests) - len(of_page)
        recording.left_out["of another page of the recording"] += n_others
        recording.found["requests"] += n_others
        recording.requests = of_page
        if page and self._zero_us is not None and (at_us := self._microseconds(page)) is not None:
            begun_ms = recording.begun_ms = (at_us - self._zero_us) / 1000
            for request in of_page:  # the times of pieces count from the start of their page
                request.pieces = tuple((at_ms + begun_ms, n) for at_ms, n in request.pieces)

    def _read_times(self, request: RecordedRequest, entry: Fields) -> None:
        at_us = self._microseconds(entry)
        if at_us is not None:
            # In whole numbers from the first entry: microseconds since 1970 leave a float no
            # digits.
            self._zero_us = at_us if self._zero_us is None else self._zero_us
            request.start_ms = (at_us - self._zero_us) / 1000
        read_timings(request, entry)
        request.reached = connection_info(entry)
        chunks = entry.tables("_chunks")
        pieces = ((chunk.number("ts"), chunk.size("bytes")) for chunk in chunks)
        request.pieces = tuple((at_ms, n) for at_ms, n in pieces if at_ms is not None and n)

    def _microseconds(self, entry: Fields) -> int | None:
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

    def _text(self, request: RecordedRequest, answer: Fields) -> str:
        content = answer.table("content")
        text = content.raw("text")
        if not isinstance(text, str) or plain_mime(request.mime) != "text/html":
            return ""
        if content.raw("encoding") == "base64":
            text = _decoded(text).decode("utf-8", "replace")
        return self._recording.keep_text(text) if text else ""


def _image_format(content: Fields) -> ImageFormat | None:
    """Return the format of an image by its recorded bytes."""
    text = content.raw("text")
    if not isinstance(text, str) or content.raw("encoding") != "base64":
        return None
    return ImageFormat.of_bytes(_decoded(text[:_FORMAT_CHARS]))


def _decoded(text: str) -> bytes:
    """Return the bytes that *text* is in base64, none where it is no base64."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _dialect_of(name: str) -> str:
    """Return the dialect of a writer that signs with *name*, "" for one that is not known."""
    signs = ((dialect, sign) for dialect, sign in HAR_DIALECTS.items() if sign)
    return next((dialect for dialect, sign in signs if re.search(sign, name, re.IGNORECASE)), "")


def _read_type(
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
    """Take over Chrome's priorities: chrome-har tells the first and the last, DevTools the last.

    Of an image that is far from the first: Chrome raises to High what it has laid out in sight.
    """
    first, last = entry.text("_initialPriority").lower(), entry.text("_priority").lower()
    may_be_raised = level_of(last) is Level.HIGH and kind_of(request)[0] is Kind.IMAGE
    request.priority = first if first or may_be_raised else last
    if last not in ("", request.priority) and request.end_ms is not None:
        # When it changed is not told: then it is known at the end, where it changes nothing more.
        request.later_priorities = ((request.end_ms, last),)


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


def _join_redirects(requests: list[RecordedRequest]) -> None:
    """Note for what came of a redirect which one: the nearest before it that names its URL."""
    waiting: dict[str, int] = {}
    for index in by_time(requests):
        request = requests[index]
        url = without_fragment(request.url)
        # Taken out: a redirect leads to one request, and the next of that URL is another.
        if url in waiting:
            request.redirect_of = waiting.pop(url)
        if request.redirect_to:
            waiting[request.redirect_to] = index
