"""Recorded requests: the form into which every format is read.

The reader of a format fills in the recorded values and leaves the others at None. All inference
works on these records, in the same way for all formats.

Recorded priorities are included: Chrome's, Priority fields (RFC 9218) and, as WebPageTest records
them, positions in the tree of HTTP/2.
"""

from __future__ import annotations

import enum
import ipaddress
import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from h3sim.errors import ValidationIssue
from h3sim.http.priority_field import is_well_formed, merge_priority, parse_priority
from h3sim.importers.request_fields import NO_ADDRESS, NO_BODY, NOT_MODIFIED, Address, length_of
from h3sim.importers.result import RecordingError
from h3sim.page import Discovery, FontDisplay, Group, Kind, Level, ServerPriority, TriggerEvent
from h3sim.page.recording import Layout, clipped
from h3sim.page.resource import MAX_TIME_NS, RecordedFrom, RecordedPriority
from h3sim.signals import Eps
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.page import ImageFormat, Rectangle


REDIRECTS = frozenset((301, 302, 303, 307, 308))
"""The statuses that send the browser elsewhere."""
QUIC = ("h3", "http/3", "hq", "quic")
"""Recorders' names of HTTP/3."""
MULTIPLEXED = ("h2", "http/2", "spdy", *QUIC)
"""Recorders' names of the protocols whose connections can serve several hosts."""
INTERNAL_REDIRECT = "Internal Redirect"
"""Chromium's status text of internal redirects (HSTS), for which nothing is sent."""
LONGEST_MS = to_ms(MAX_TIME_NS)
"""A day: longer times are mistakes of a clock."""
_MOST_RECTANGLES = 500
"""So many rectangles of a resource are kept: more lines of text than fit a screen."""
_MOST_PROBLEMS = 50
_MOST_REMEMBERED = 100_000
"""So many notes are remembered so as not to be made twice; more are counted as they come."""
_MOST_REQUESTS = 100_000
"""A hundred times a large page; each takes 2 kB, whatever little of a file it stands for."""
_LONGEST_NOTE = 80
_MOST_TEXT = 64 << 20
_MOST_TEXTS = 50


def recorded_ns(time_ms: float) -> int:
    """Return a time in whole ns; clocks of recorders do not tell more than a microsecond."""
    return ms(round(time_ms, 3))


def by_time(requests: Sequence[RecordedRequest]) -> list[int]:
    """Return the indexes by start; what has none goes with what stands before it in the file."""
    keys, last_ms = [], float("-inf")
    for request in requests:
        last_ms = last_ms if request.start_ms is None else request.start_ms
        keys.append(last_ms)
    return sorted(range(len(keys)), key=keys.__getitem__)  # stable


def first_of(
    problems: Sequence[ValidationIssue], n_problems: int | None = None
) -> tuple[ValidationIssue, ...]:
    """Return the first problems, and how many more there are of *n_problems* in all."""
    shown = problems[:_MOST_PROBLEMS]
    rest = (len(problems) if n_problems is None else n_problems) - len(shown)
    more = [ValidationIssue(key="", message=f"and {rest:,} more")] if rest else []
    return (*shown, *more)


class SizeSource(enum.Enum):
    """Source of a number of bytes, the best first."""

    RECORDED = "recorded"
    TRANSFER = "transfer size less header"
    TOTAL = "transfer size, header and all"
    PIECES = "sum of pieces"
    CONTENT_LENGTH = "Content-Length"
    COMPRESSION = "content size less compression"
    DECODED = "decoded size"
    FIELDS = "length of the fields as text"
    NONE = "nothing"


KnownSize = tuple[int | None, SizeSource]
"""A number of bytes with its source; None where that does not tell one."""


def first_size(*known: KnownSize) -> KnownSize:
    """Return the first of *known*, the best source first, that tells a number of bytes.

    >>> first_size((None, SizeSource.RECORDED), (900, SizeSource.DECODED))
    (900, <SizeSource.DECODED: 'decoded size'>)
    """
    return next((size for size in known if size[0] is not None), (None, SizeSource.NONE))


class RequestOutcome(enum.Enum):
    """Outcome of a request."""

    ANSWERED = "answered"
    CACHE = "from the cache"
    SERVICE_WORKER = "from a service worker"
    FAILED = "failed or were blocked"
    NOT_HTTP = "not over HTTP"
    INLINE = "data: and blob: URLs"
    INTERNAL = "redirects of the browser itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A trigger that a dialect gives as such: *delay_ms* after event *at* of the request *by*.

    *by* is the index of the parent in the recording's list of requests.
    """

    at: TriggerEvent
    by: int
    offset_bytes: int | None = None
    delay_ms: float = 0.0


class ConnectionInfo(NamedTuple):
    """Connection of a request: server and times; "" and None if not recorded."""

    address: str = ""
    """The IP address of the server."""
    connection: str = ""
    """The recorder's id of the connection."""
    certificate: str = ""
    """Identity of the server's certificate."""
    certificate_names: tuple[str, ...] = ()
    """Names for which the certificate is valid."""
    dns_ms: float | None = None
    """DNS lookup time."""
    handshake_ms: float | None = None
    """Time to open the connection, without TLS over TCP."""
    connect_ms: float | None = None
    """The same with TLS, as it may be, where the recorder does not tell them apart."""

    @property
    def ip(self) -> str:
        """The IP address as it is usually written, "" for what is none."""
        try:
            return str(ipaddress.ip_address(self.address.strip("[]")))
        except ValueError:
            return ""

    @property
    def is_loopback(self) -> bool:
        """True if the server is on this machine (RFC 6890 § 2.2)."""
        return bool(self.ip) and ipaddress.ip_address(self.ip).is_loopback


@dataclass(slots=True, kw_only=True)
class RecordedRequest:
    """One request as it was seen. Times are in ms since any one instant; URLs are as recorded."""

    key: str
    """Its index in the file."""
    url: str
    id: str = ""
    """The recording's id of it; "" if it is identified by its URL."""
    page: str = ""
    """The recording's id of the page that it belongs to, where there are several."""
    start_ms: float | None = None
    asked_ms: float | None = None
    """Time when the browser released it, apart from connecting; None for its start."""
    reached: ConnectionInfo = field(default_factory=ConnectionInfo)
    sent_ms: float | None = None
    """Time when the request had been sent."""
    first_byte_ms: float | None = None
    end_ms: float | None = None
    outcome: RequestOutcome = RequestOutcome.ANSWERED
    protocol: str = ""
    """As the recorder calls it, in lower case: "h2", "http/1.1"."""
    method: str = "GET"
    status: int | None = None
    mime: str = ""
    kind: Kind | None = None
    """The recorder's resource type."""
    resolved_kind: Kind = Kind.OTHER
    """Its kind, recorded or inferred, once the page is assembled."""
    address: Address = NO_ADDRESS
    """The parts of its URL that may be kept, once the page is assembled."""
    is_xhr: bool = False
    is_framed: bool = False
    """True if a frame requested it (Sec-Fetch-Dest)."""
    body_bytes: int | None = None
    body_from: SizeSource = SizeSource.NONE
    header_bytes: int | None = None
    header_from: SizeSource = SizeSource.NONE
    request_bytes: int | None = None
    request_from: SizeSource = SizeSource.NONE
    decoded_bytes: int | None = None
    initiator_type: str = ""
    initiator: str = ""
    """The URL of what asked for it."""
    stack: tuple[str, ...] = ()
    """The URLs of the scripts that were running, the innermost first."""
    line: int | None = None
    """Line of its reference in the initiator, from 0."""
    offset: int | None = None
    """The same as an offset in the initiator's decoded bytes."""
    referer: str = ""
    redirect_to: str = ""
    """The URL to which its answer sends the browser."""
    redirect_of: int | None = None
    """The index in the list of the request that was redirected to it."""
    parent: int | None = None
    """The index in the list of the request that led to it, where the recording says so as such."""
    priority: str = ""
    """Chrome's first priority for it, in lower case."""
    frame: HeadersPriority | None = None
    """Priority in its HEADERS frame: its position in the tree of HTTP/2."""
    later_priorities: tuple[tuple[float, str], ...] = ()
    """Those that Chrome gave it later: (ms, priority)."""
    priority_field: str = ""
    """The Priority field of its request."""
    response_priority: str = ""
    """The Priority field of its response."""
    cf_priority: str = ""
    cf_priority_change: str = ""
    """Cloudflare's fields of the response."""
    browser: str = ""
    """Browser by its User-Agent: "chrome", "firefox" or "safari"."""
    blocking: str = ""
    """Chrome's word for whether it blocks rendering, in lower case."""
    is_pushed: bool = False
    is_preload: bool = False
    reference_offset_bytes: int | None = None
    """Offset on the wire of its element in the document that also preloads it."""
    is_critical: bool = False
    """True if the recorder marks it as on the critical path."""
    is_above_the_fold: bool = False
    """True if it is visible without scrolling, or a visible resource needs it."""
    is_hero: bool = False
    """True if it is the largest visible element."""
    font_display: FontDisplay = FontDisplay.AUTO
    image_format: ImageFormat | None = None
    """The format of an image by its bytes, if they were recorded."""
    rectangles: tuple[Rectangle, ...] = ()
    """The parts of the viewport in which the recorder saw it."""
    parse_ms: float = 0.0
    execute_ms: float = 0.0
    pieces: tuple[tuple[float, int], ...] = ()
    """Chunks of the body: (ms, bytes)."""
    trigger: Trigger | None = None
    flags: dict[str, Any] | None = None
    """Attributes from its tag and the browser, as fields of a `Resource`; None if unknown."""
    text: str = ""
    """The decoded body of a document, where it was recorded. It is looked at and dropped."""

    @property
    def held_ms(self) -> float:
        """Time that the browser held it back; negative if a load needs longer to connect."""
        if self.asked_ms is None or self.start_ms is None:
            return 0.0
        return self.asked_ms - self.start_ms

    @property
    def is_unmodified(self) -> bool:
        """True if the server confirmed what the browser had stored."""
        return self.status == NOT_MODIFIED

    def set_body(self, *known: KnownSize, content_length: str) -> None:
        """Set the size of the body, and from what it is known.

        Best are the sizes *known*, then its pieces, its Content-Length, and its decoded size.
        """
        if self.status in NO_BODY or self.method == "HEAD":
            known = ((0, SizeSource.RECORDED),)
        self.body_bytes, self.body_from = first_size(
            *known,
            (sum(n_bytes for _, n_bytes in self.pieces) or None, SizeSource.PIECES),
            (length_of(content_length), SizeSource.CONTENT_LENGTH),
            (self.decoded_bytes, SizeSource.DECODED),
        )

    def stretch_pieces(self) -> None:
        """Scale pieces of the decoded body, as chrome-har and traces have them, to what was sent.

        Each piece is assumed to be compressed alike.
        """
        body, decoded = self.body_bytes, self.decoded_bytes
        if not body or not decoded or body == decoded:
            return
        if sum(n_bytes for _, n_bytes in self.pieces) != decoded:
            return
        ends = [0, *itertools.accumulate(n_bytes for _, n_bytes in self.pieces)]
        sent = [end * body // decoded for end in ends]
        self.pieces = tuple(
            (at_ms, end - begin)
            for (at_ms, _), begin, end in zip(self.pieces, sent, sent[1:], strict=False)
        )

    def read_fields(self, sent: Mapping[str, str], got: Mapping[str, str]) -> None:
        """Take over what the fields of the request and its response say, names in lower case."""
        self.referer = sent.get("referer", "")
        self.is_framed = sent.get("sec-fetch-dest", "") in ("iframe", "frame")
        self.browser = browser_named(sent.get("user-agent", ""))
        self.priority_field = sent.get("priority", "")
        self.response_priority = got.get("priority", "")
        self.cf_priority = got.get("cf-priority", "")
        self.cf_priority_change = got.get("cf-priority-change", "")

    def was_hinted(self) -> None:
        """Take in that Early Hints preloaded it (RFC 8297).

        Chromium sent for it before anything named it, put it into its cache, and tells how it came
        from there: of the network its times say nothing.
        """
        self.is_preload = True
        self.sent_ms = self.first_byte_ms = None


@dataclass(slots=True, kw_only=True)
class Recording:
    """All that was read from one file."""

    source: str
    dialect: str = ""
    page_number: int = 1
    """Requested page load of the file, if there are several."""
    name: str = ""
    """Name of the page, if not its host."""
    has_addresses: bool = True
    """True if its URLs are real, not placeholders for files or rows."""
    viewport_px: tuple[float, float] | None = None
    """Width and height of the viewport, if rectangles of requests are known."""
    is_local: bool = False
    """True if it was served by the recording machine, so that no network can be estimated."""
    tool: str = ""
    recorded: str = ""
    """The day."""
    provenance: dict[str, str] = field(default_factory=dict)
    """Provenance in the recording, which takes precedence over that of the file."""
    begun_ms: float | None = None
    """Recorded start of the load, on the clock of its requests; None for the root's start."""
    times_ms: dict[str, float] = field(default_factory=dict)
    """Recorded times of the load, by the fields of `RecordedLoad` without unit."""
    requests: list[RecordedRequest] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    mended: list[ValidationIssue] = field(default_factory=list)
    """Values that were a little wrong, and what was taken instead."""
    problems: list[ValidationIssue] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    n_problems: int = 0
    _noted: set[tuple[str, str]] = field(default_factory=set)
    is_full: bool = False
    """True if the limit of requests is reached and reading may stop."""
    texts_left: int = _MOST_TEXTS
    text_room: int = _MOST_TEXT
    """So many characters of documents may still be kept to be looked at."""

    def note(self, key: str, message: str) -> None:
        """Note, once, that something in the file cannot be used; many notes are counted only."""
        if (key, message) in self._noted:
            return
        if len(self._noted) < _MOST_REMEMBERED:
            self._noted.add((key, message))
        self.n_problems += 1
        if self.n_problems <= _MOST_PROBLEMS:
            self.problems.append(ValidationIssue(key=key, message=message))

    def has_room(self, n_requests: int | None = None) -> bool:
        """Return whether another request can be taken up; where none can, note it.

        *n_requests* says how many there are, where they are not in `requests` yet.
        """
        if (len(self.requests) if n_requests is None else n_requests) < _MOST_REQUESTS:
            return True
        self.note("", f"has more than {_MOST_REQUESTS:,} requests: the rest is not read")
        self.is_full = True
        return False

    def choose_page(self, n_pages: int, key: str = "") -> int | None:
        """Return the index of the requested page load; None if the file does not tell any apart.

        Raises:
            RecordingError: if the file has no such page load.
        """
        if self.page_number > max(1, n_pages):
            have = "one page" if n_pages < 2 else f"{n_pages} pages"
            raise self.refuse(f"has {have}; there is no page {self.page_number}", key)
        if n_pages > 1:
            self.found["pages"] = n_pages
        return self.page_number - 1 if n_pages else None

    def all_problems(self) -> tuple[ValidationIssue, ...]:
        """Return what was noted, and how much more there was."""
        return first_of(self.problems, self.n_problems)

    def refuse(self, message: str, key: str = "") -> RecordingError:
        """Return the error that says that this cannot be a page, with what was noted so far."""
        problems = (*self.all_problems(), ValidationIssue(key=key, message=message))
        return RecordingError(problems, self.source)

    def keep_text(self, text: str) -> str:
        """Return *text*, or "" where too much is kept already, or too many."""
        if len(text) > self.text_room or self.texts_left == 0:
            return ""
        self.texts_left -= 1
        self.text_room -= len(text)
        return text

    def set_tool(self, *words: str) -> None:
        """Note what made the recording; what a file says of itself is cut and cleaned."""
        text = " ".join(" ".join(words).split())
        self.tool = "".join(c for c in text if c.isprintable())[:_LONGEST_NOTE]


def visible_rectangles(
    viewport_px: tuple[float, float], found: Mapping[str, Iterable[Sequence[float]]]
) -> dict[str, tuple[Rectangle, ...]]:
    """Return the visible parts of (x, y, width, height) by URL, the largest if there are many.

    URLs whose share of the viewport rounds to 0 are left out.
    """
    parts: dict[str, tuple[Rectangle, ...]] = {}
    for url, rectangles in found.items():
        visible = filter(None, (clipped(viewport_px, *each) for each in rectangles))
        largest = sorted(visible, key=lambda each: -each.width * each.height)
        parts[url] = tuple(largest[:_MOST_RECTANGLES])
    layout = Layout(width=viewport_px[0], height=viewport_px[1], rectangles=parts)
    return {url: each for url, each in parts.items() if layout.share(url) > 0}


_LEVELS = {
    **{level.value.lower(): level for level in Level},
    # What DevTools and WebPageTest show in place of its own words.
    "highest": Level.VERY_HIGH,
    "lowest": Level.VERY_LOW,
}
UNIMPORTANT = (Level.LOW, Level.VERY_LOW)
"""Chrome's priorities of non-blocking scripts."""
# Chrome calls itself Safari, too, and Safari nothing else.
_AGENTS = (("firefox/", "firefox"), ("chrome/", "chrome"), ("safari/", "safari"))
_GROUPS = {
    3: Group.LEADERS,
    5: Group.UNBLOCKED,
    7: Group.BACKGROUND,
    9: Group.SPECULATIVE,
    11: Group.FOLLOWERS,
    13: Group.URGENT_START,
}
"""The idle streams of Firefox, which it declares on each connection (`Http2Session.h`)."""


def browser_named(user_agent: str) -> str:
    """Return which browser a User-Agent names, "" for any other.

    >>> browser_named("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'firefox'
    """
    text = user_agent.lower()
    return next((name for part, name in _AGENTS if part in text), "")


def level_of(word: str) -> Level | None:
    """Return Chrome's level of that name, None for any other word."""
    return _LEVELS.get(word.lower())


def chrome_level(word: str) -> tuple[RecordedPriority, ...]:
    """Return what Chrome said by that word, nothing where it is none of its levels.

    >>> chrome_level("VeryHigh")[0].level, chrome_level("soon")
    (<Level.VERY_HIGH: 'VeryHigh'>, ())
    """
    level = level_of(word)
    return () if level is None else (RecordedPriority(browser=RecordedFrom.CHROME, level=level),)


def priorities_of(
    request: RecordedRequest, id_: str, frame: RecordedPriority | None = None
) -> tuple[RecordedPriority, ...]:
    """Return what was said of *request*: with it, in a *frame* too, and so long after it.

    A level is Chrome's word; a Priority field is that of whoever the User-Agent names. What is
    not understood is left out.
    """
    entries = [*chrome_level(request.priority)]
    field = request.priority_field
    if field and is_well_formed(field):
        priority = parse_priority(field)
        browser = RecordedFrom(request.browser) if request.browser else None
        entries.append(
            RecordedPriority(
                browser=browser, urgency=priority.urgency, incremental=priority.incremental
            )
        )
    entries += [] if frame is None else [frame]
    for at_ms, word in request.later_priorities:
        later, start_ms = level_of(word), request.start_ms
        if later is not None and start_ms is not None:
            delay_ns = recorded_ns(min(max(0.0, at_ms - start_ms), LONGEST_MS))
            when = Discovery(at=TriggerEvent.REQUEST, by=id_, delay_ns=delay_ns)
            entries.append(RecordedPriority(browser=RecordedFrom.CHROME, level=later, when=when))
    return tuple(entries)


_CF_PRIORITY = re.compile(r"(?:(\d{1,12}):)?(\d{1,2})/([01n])")
_LEVEL_OF_CONCURRENCY = {"0": 3, "1": 2, "n": 1}
_HIGHEST_BUCKET = 63


def priority_fields(request: RecordedRequest) -> tuple[ServerPriority, ...]:
    """Return what the origin said of *request*'s response; what is not understood is left out."""
    return (*_field_of(request.response_priority), *_cloudflare_of(request))


def _field_of(field: str) -> tuple[ServerPriority, ...]:
    if not is_well_formed(field):
        return ()
    # What a field leaves out stays as the client wants it, whatever that is.
    low = merge_priority(Eps(urgency=0, incremental=False), field)
    high = merge_priority(Eps(urgency=7, incremental=True), field)
    urgency = low.urgency if low.urgency == high.urgency else None
    incremental = low.incremental if low.incremental == high.incremental else None
    if urgency is None and incremental is None:
        return ()
    return (ServerPriority(urgency=urgency, incremental=incremental),)


def _cloudflare_of(request: RecordedRequest) -> tuple[ServerPriority, ...]:
    found = []
    for part in (request.cf_priority, *request.cf_priority_change.split(",")):
        match = _CF_PRIORITY.fullmatch(part.strip())
        if match is not None and int(match[2]) <= _HIGHEST_BUCKET:
            bucket, level = int(match[2]), _LEVEL_OF_CONCURRENCY[match[3]]
            after_bytes = int(match[1] or 0)
            found.append(ServerPriority(bucket=bucket, level=level, after_bytes=after_bytes))
    return tuple(found)


class HeadersPriority(NamedTuple):
    """The priority in the HEADERS of a request: stream 0 is the root of the tree."""

    stream_id: int
    parent_id: int
    weight: int
    exclusive: bool


def recorded_frames(
    requests: Mapping[int, RecordedRequest], ids: Mapping[int, str]
) -> dict[int, RecordedPriority]:
    """Return the frames of requests by their index, with parents by the *ids* of the page.

    Streams are told apart by their connection. Firefox's idle streams are its classes. A parent
    that is not in the page says nothing, and so is left out.
    """
    streams = {
        (_connection(request), request.frame.stream_id): ids[index]
        for index, request in requests.items()
        if request.frame is not None
    }
    found = {}
    for index, request in requests.items():
        frame = request.frame
        if frame is None:
            continue
        browser = RecordedFrom(request.browser) if request.browser else None
        group = _GROUPS.get(frame.parent_id) if browser is RecordedFrom.FIREFOX else None
        parent = "" if not frame.parent_id else streams.get((_connection(request), frame.parent_id))
        priority = partial(RecordedPriority, browser=browser, weight=frame.weight)
        if group is not None:
            found[index] = priority(group=group)
        elif parent is not None and parent != ids[index]:
            found[index] = priority(depends_on=parent, exclusive=frame.exclusive or None)
    return found


def _connection(request: RecordedRequest) -> str:
    """Return what tells the connection of a request: its name, or else the host."""
    return request.reached.connection or urlsplit(request.url).netloc
