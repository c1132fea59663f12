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

from h3sim.http.priority_field import is_well_formed, merge_priority, parse_priority
from h3sim.importers.request_fields import (
    NO_ADDRESS,
    NO_BODY,
    NOT_MODIFIED,
    Address,
    kind_of_extension,
    kind_of_mime,
    length_of,
    plain_mime,
)
from h3sim.importers.result import RecordingError
from h3sim.page import Discovery, FontDisplay, Group, Kind, Level, ServerPriority, TriggerEvent
from h3sim.page.recording import Layout, clipped
from h3sim.page.resource import MAX_TIME_NS, RecordedFrom, RecordedPriority
from h3sim.signals import Eps
from h3sim.values.errors import ValidationIssue
from h3sim.values.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.importers.stated_network import StatedNetwork
    from h3sim.page import ImageFormat, Rectangle, Resource
    from h3sim.page.har_facts import PageFacts


REDIRECTS = frozenset((301, 302, 303, 307, 308))
"""Statuses of redirects (RFC 9110 § 15.4)."""
QUIC = ("h3", "http/3", "hq", "quic")
"""Recorders' names of HTTP/3."""
MULTIPLEXED = ("h2", "http/2", "spdy", *QUIC)
"""Recorders' names of the protocols whose connections can serve several hosts."""
INTERNAL_REDIRECT = "Internal Redirect"
"""Chromium's status text of redirects that it makes itself (HSTS), without sending anything."""
LONGEST_MS = to_ms(MAX_TIME_NS)
"""A day: longer times are mistakes of a clock."""
_MAX_RECTANGLES = 500
"""Rectangles that are kept of a resource: more lines of text than fit a screen."""
_MAX_LISTED_PROBLEMS = 50
"""Problems that a report lists; the others are counted."""
_MAX_REMEMBERED_NOTES = 100_000
"""Notes that are remembered, so that none is made twice; beyond them duplicates count again."""
_MAX_REQUESTS = 100_000
"""A hundred times a large page; each takes 2 kB of memory, however short it is in the file."""
_MAX_TOOL_CHARS = 80
"""A file's own description of its writer is cut to this length."""
_MAX_TEXT_CHARS = 64 << 20
"""Total length of the documents whose text is kept for its markup, to bound memory."""
_MAX_TEXTS = 50
"""Number of documents whose text is kept, to bound the time to parse them."""


def recorded_ms(time_ms: float) -> float:
    """Return a time rounded to the microsecond: recorders' clocks are no finer.

    Frames of one millisecond of a network log are a nanosecond apart, only for their order.

    >>> recorded_ms(1121.000003)
    1121.0
    """
    return round(time_ms, 3)


def recorded_ns(time_ms: float) -> int:
    """Return a time in whole ns, rounded as `recorded_ms` does."""
    return ms(recorded_ms(time_ms))


def by_time(requests: Sequence[RecordedRequest]) -> list[int]:
    """Return the indices by start time; a request without one follows the one before it."""
    starts_ms, last_ms = [], float("-inf")
    for request in requests:
        last_ms = last_ms if request.start_ms is None else request.start_ms
        starts_ms.append(last_ms)
    return sorted(range(len(starts_ms)), key=starts_ms.__getitem__)  # stable


def first_of(
    problems: Sequence[ValidationIssue], n_problems: int | None = None
) -> tuple[ValidationIssue, ...]:
    """Return the first problems, and a last one with the number of the others.

    *n_problems* is the total, if *problems* does not have them all.
    """
    shown = problems[:_MAX_LISTED_PROBLEMS]
    n_others = (len(problems) if n_problems is None else n_problems) - len(shown)
    more = [ValidationIssue(key="", message=f"and {n_others:,} more")] if n_others else []
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
"""Number of bytes with its source; None if the source is missing."""


def first_size(*known: KnownSize) -> KnownSize:
    """Return the first size in *known*, which lists the best source first.

    >>> first_size((None, SizeSource.RECORDED), (900, SizeSource.DECODED))
    (900, <SizeSource.DECODED: 'decoded size'>)
    """
    return next((size for size in known if size[0] is not None), (None, SizeSource.NONE))


class RequestOutcome(enum.Enum):
    """Outcome of a request."""

    ANSWERED = "answered"
    CACHE = "from the cache"
    SERVICE_WORKER = "from a service worker"
    OVERRIDDEN = "from the browser's tools"
    FAILED = "failed or were blocked"
    NOT_HTTP = "not over HTTP"
    INLINE = "data: and blob: URLs"
    INTERNAL = "redirects of the browser itself"
    ICON = "for the icon of the tab"
    LATE = "more than half an hour after the document"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Trigger that is recorded, not inferred: *delay_ms* after event *at* of the request *by*.

    *by* is the index of the parent in the recording's list of requests. Whichever of this trigger
    and those of *or_else* fires first counts.
    """

    at: TriggerEvent
    by: int
    offset_bytes: int | None = None
    delay_ms: float = 0.0
    or_else: tuple[Trigger, ...] = ()


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
    """Time to open the connection, possibly with TLS, if the recorder does not separate them."""

    @property
    def ip(self) -> str:
        """The IP address in canonical form, "" if it is not valid."""
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
    """One request as recorded; its times are in ms since an instant common to the recording."""

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
    """Its URL without query and fragment, which may be secret, once the page is assembled."""
    is_xhr: bool = False
    is_framed: bool = False
    """True if a frame requested it."""
    is_ping: bool = False
    """True if it is a ping of a link (`ping-to`), whose response nobody reads."""
    destination: str = ""
    """Use of its response, in the words of Sec-Fetch-Dest: "document", "iframe", "image"."""
    is_user_activated: bool = False
    """True if the user asked for it, as by a click or an address (Sec-Fetch-User)."""
    is_speculative: bool = False
    """True if the browser prefetched or prerendered it (Sec-Purpose)."""
    accepts_html: bool | None = None
    """True if its Accept field names HTML, as those of navigations do; None if unknown."""
    body_bytes: int | None = None
    body_from: SizeSource = SizeSource.NONE
    header_bytes: int | None = None
    header_from: SizeSource = SizeSource.NONE
    request_bytes: int | None = None
    request_from: SizeSource = SizeSource.NONE
    decoded_bytes: int | None = None
    initiator_type: str = ""
    initiator: str = ""
    """URL of the resource that requested it."""
    stack: tuple[str, ...] = ()
    """The URLs of the scripts that were running, the innermost first."""
    line: int | None = None
    """Line of its reference in the initiator, from 0."""
    offset: int | None = None
    """Position of its reference as an offset in the initiator's decoded bytes."""
    referer: str = ""
    redirect_to: str = ""
    """URL to which it was redirected."""
    redirect_of: int | None = None
    """Index in the recording's list of the request that was redirected to it."""
    parent: int | None = None
    """Index in the recording's list of its parent, if the recording names a parent."""
    priority: str = ""
    """Chrome's first priority for it, in lower case."""
    frame: HeadersPriority | None = None
    """Priority in its HEADERS frame: its position in the tree of HTTP/2."""
    later_priorities: tuple[tuple[float, str], ...] = ()
    """Priorities that Chrome gave it later, with their times: (ms, priority)."""
    priority_field: str = ""
    """The Priority field of its request."""
    response_priority: str = ""
    """The Priority field of its response."""
    cf_priority: str = ""
    """Cloudflare's CF-Priority field of its response."""
    cf_priority_change: str = ""
    """Cloudflare's CF-Priority-Change field of its response."""
    browser: str = ""
    """Browser by its User-Agent: "chrome", "firefox" or "safari"."""
    blocking: str = ""
    """Chrome's render-blocking status, in lower case."""
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
    """The parts of the viewport that it covered."""
    parse_ms: float = 0.0
    execute_ms: float = 0.0
    pieces: tuple[tuple[float, int], ...] = ()
    """Chunks of the body: (ms, bytes)."""
    trigger: Trigger | None = None
    flags: dict[str, Any] | None = None
    """Attributes from its tag and the browser, as fields of a `Resource`; None if unknown."""
    text: str = ""
    """Decoded body of a document, if recorded; its markup is read, then it is discarded."""
    shows_nothing: bool = False
    """True for a document whose recorded body has neither text nor anything else to paint."""
    facts: Resource | None = None
    """Facts of its resource that h3sim itself wrote; sizes are not among them."""

    @property
    def held_ms(self) -> float:
        """Time that the browser held it back; negative if a load needs longer to connect."""
        if self.asked_ms is None or self.start_ms is None:
            return 0.0
        return self.asked_ms - self.start_ms

    @property
    def is_tab_icon(self) -> bool:
        """True if Chromium itself requested it for the tab: no element or script did."""
        is_image = self.resolved_kind is Kind.IMAGE or self.url.endswith("/favicon.ico")
        return is_image and self.kind is None and self.initiator_type == "other"

    @property
    def is_unmodified(self) -> bool:
        """True if the browser's cached copy was still valid (304)."""
        return self.status == NOT_MODIFIED

    def set_body(self, *known: KnownSize, content_length: str) -> None:
        """Set the size of the body and its source, by the best evidence.

        The sizes *known* come first, then the sum of the pieces, Content-Length and decoded size.
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
        """Scale pieces of the decoded body, as chrome-har and traces have them, to bytes sent.

        All pieces are assumed to be compressed equally well.
        """
        body, decoded = self.body_bytes, self.decoded_bytes
        if not body or not decoded or body == decoded:
            return
        if sum(n_bytes for _, n_bytes in self.pieces) != decoded:
            return
        ends = itertools.accumulate((n_bytes for _, n_bytes in self.pieces), initial=0)
        # Offsets are scaled, not sizes, so that rounding errors do not add up.
        sent = itertools.pairwise(end * body // decoded for end in ends)
        self.pieces = tuple(
            (at_ms, end - start) for (at_ms, _), (start, end) in zip(self.pieces, sent, strict=True)
        )

    def read_fields(self, sent: Mapping[str, str], got: Mapping[str, str]) -> None:
        """Set the values that are in header fields of the request (*sent*) and response (*got*).

        Names of fields are in lower case.
        """
        self.referer = sent.get("referer", "")
        self.destination = sent.get("sec-fetch-dest", "").lower()
        self.is_framed |= self.destination in ("iframe", "frame")
        self.is_user_activated = sent.get("sec-fetch-user") == "?1"
        self.is_speculative = bool(sent.get("sec-purpose") or sent.get("purpose"))
        self.is_ping = "ping-to" in sent
        accepted = sent.get("accept")
        self.accepts_html = None if accepted is None else "text/html" in accepted.lower()
        self.browser = browser_named(sent.get("user-agent", ""))
        self.priority_field = sent.get("priority", "")
        self.response_priority = got.get("priority", "")
        self.cf_priority = got.get("cf-priority", "")
        self.cf_priority_change = got.get("cf-priority-change", "")

    def set_early_hinted(self) -> None:
        """Mark it as preloaded by Early Hints (RFC 8297).

        Chromium requested it early and records how it was read from the cache later, so its times
        say nothing about the network.
        """
        self.is_preload = True
        self.sent_ms = self.first_byte_ms = None


class RecordedPaint(NamedTuple):
    """Cause of a recorded paint, as in `PaintCause`."""

    after: Sequence[RecordedRequest]
    work_ms: float
    delay_ms: float


@dataclass(slots=True, kw_only=True)
class Recording:
    """Contents of one file: its requests, and the evidence for the report of the import."""

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
    """Day of the recording (ISO 8601)."""
    provenance: dict[str, str] = field(default_factory=dict)
    """Provenance in the recording, which takes precedence over that of the file."""
    begun_ms: float | None = None
    """Recorded start of the load, on the clock of its requests; None for the root's start."""
    times_ms: dict[str, float] = field(default_factory=dict)
    """Recorded times of the load, by the fields of `RecordedLoad` without unit."""
    paints: dict[str, RecordedPaint] = field(default_factory=dict)
    """Causes of the recorded paints, by their keys in a page file."""
    stated_network: StatedNetwork | None = None
    """Network of the recorded load, if the file states it."""
    page_facts: PageFacts | None = None
    """Facts of the page that h3sim itself wrote."""
    requests: list[RecordedRequest] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Reasons why the page may not be the intended one."""
    missing: list[str] = field(default_factory=list)
    problems: list[ValidationIssue] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    n_problems: int = 0
    """Number of all problems; `problems` has only the first of them."""
    _noted: set[tuple[str, str]] = field(default_factory=set)
    is_full: bool = False
    """True if the limit of requests is reached and reading may stop."""
    texts_left: int = _MAX_TEXTS
    """Documents whose text may still be kept."""
    text_room: int = _MAX_TEXT_CHARS
    """Characters of documents that may still be kept."""

    def note(self, key: str, message: str) -> None:
        """Note a problem in the file, unless it is known; beyond a limit problems only count."""
        if (key, message) in self._noted:
            return
        if len(self._noted) < _MAX_REMEMBERED_NOTES:
            self._noted.add((key, message))
        self.n_problems += 1
        if self.n_problems <= _MAX_LISTED_PROBLEMS:
            self.problems.append(ValidationIssue(key=key, message=message))

    def has_room(self, n_requests: int | None = None) -> bool:
        """Return whether another request may be added; if not, note that the file is too large.

        *n_requests* is the present number, if the requests are not in `requests` yet.
        """
        if (len(self.requests) if n_requests is None else n_requests) < _MAX_REQUESTS:
            return True
        self.note("", f"has more than {_MAX_REQUESTS:,} requests: the rest is not read")
        self.is_full = True
        return False

    def choose_page(self, n_pages: int, key: str = "") -> int | None:
        """Return the index of the requested page load; None if the file does not separate any.

        Raises:
            RecordingError: if the file has no such page load.
        """
        if self.page_number > max(1, n_pages):
            have = "one page" if n_pages < 2 else f"{n_pages} pages"
            raise self.refuse(f"has {have}; there is no page {self.page_number}", key)
        if n_pages > 1:
            self.found["pages"] = n_pages
        if n_pages > 1 and self.page_number == 1:
            self.warnings.append(
                f"the recording has {n_pages:,} page loads (navigations): this is the first,"
                " --page N takes another"
            )
        return self.page_number - 1 if n_pages else None

    def all_problems(self) -> tuple[ValidationIssue, ...]:
        """Return the problems that were kept, and the number of the others."""
        return first_of(self.problems, self.n_problems)

    def refuse(self, message: str, key: str = "") -> RecordingError:
        """Return the error that no page can be made of the file, with all problems so far."""
        problems = (*self.all_problems(), ValidationIssue(key=key, message=message))
        return RecordingError(problems, self.source)

    def keep_text(self, text: str) -> str:
        """Return *text*, or "" if that would exceed the limits of kept texts."""
        if len(text) > self.text_room or self.texts_left == 0:
            return ""
        self.texts_left -= 1
        self.text_room -= len(text)
        return text

    def set_tool(self, *words: str) -> None:
        """Set the tool that made the recording, shortened and without control characters."""
        text = " ".join(" ".join(words).split())
        printable = "".join(character for character in text if character.isprintable())
        self.tool = printable[:_MAX_TOOL_CHARS]


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
        parts[url] = tuple(largest[:_MAX_RECTANGLES])
    layout = Layout(width=viewport_px[0], height=viewport_px[1], rectangles=parts)
    return {url: each for url, each in parts.items() if layout.share(url) > 0}


_LEVEL_BY_NAME = {
    **{level.value.lower(): level for level in Level},
    # The names that DevTools and WebPageTest show instead of Chrome's own.
    "highest": Level.VERY_HIGH,
    "lowest": Level.VERY_LOW,
}
NON_BLOCKING_SCRIPT_LEVELS = (Level.LOW, Level.VERY_LOW)
"""Chrome's priorities of non-blocking scripts."""
# In this order, as Chrome also calls itself Safari.
_BROWSER_BY_USER_AGENT_PART = (
    ("firefox/", "firefox"),
    ("chrome/", "chrome"),
    ("safari/", "safari"),
)
_FIREFOX_GROUP_BY_STREAM = {
    3: Group.LEADERS,
    5: Group.UNBLOCKED,
    7: Group.BACKGROUND,
    9: Group.SPECULATIVE,
    11: Group.FOLLOWERS,
    13: Group.URGENT_START,
}
"""Idle streams of Firefox, which opens them on each connection as groups (`Http2Session.h`)."""


def browser_named(user_agent: str) -> str:
    """Return the browser that a User-Agent names, "" if it is another one.

    >>> browser_named("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'firefox'
    """
    text = user_agent.lower()
    return next((name for part, name in _BROWSER_BY_USER_AGENT_PART if part in text), "")


def level_of(word: str) -> Level | None:
    """Return Chrome's priority of that name, None for any other word."""
    return _LEVEL_BY_NAME.get(word.lower())


def chrome_level(word: str) -> tuple[RecordedPriority, ...]:
    """Return the recorded priority for Chrome's *word*; () if it is no priority of Chrome.

    >>> chrome_level("VeryHigh")[0].level, chrome_level("soon")
    (<Level.VERY_HIGH: 'VeryHigh'>, ())
    """
    level = level_of(word)
    return () if level is None else (RecordedPriority(browser=RecordedFrom.CHROME, level=level),)


def priorities_of(
    request: RecordedRequest, id_: str, frame: RecordedPriority | None = None
) -> tuple[RecordedPriority, ...]:
    """Return the client's priorities of *request*: with it, in its *frame*, and later ones.

    Levels are Chrome's; a Priority field is attributed to the browser that the User-Agent names.
    Values that are not understood are left out.
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


_CLOUDFLARE_PRIORITY = re.compile(r"(?:(\d{1,12}):)?(\d{1,2})/([01n])")
"""Cloudflare's priorities: optionally the byte from which it holds, priority, concurrency."""
_LEVEL_BY_CONCURRENCY = {"0": 3, "1": 2, "n": 1}
"""Concurrency levels of buckets by Cloudflare's letter: exclusive, sequential, shared."""
_MAX_CLOUDFLARE_PRIORITY = 63
"""Highest priority that Cloudflare's `cf-priority` header may have."""


def priority_fields(request: RecordedRequest) -> tuple[ServerPriority, ...]:
    """Return the server's priorities in the response; values not understood are left out."""
    return (*_from_priority_field(request.response_priority), *_from_cloudflare_fields(request))


def _from_priority_field(field: str) -> tuple[ServerPriority, ...]:
    if not is_well_formed(field):
        return ()
    # A parameter is in the field if it overrides both extremes of the client's priority.
    low = merge_priority(Eps(urgency=0, incremental=False), field)
    high = merge_priority(Eps(urgency=7, incremental=True), field)
    urgency = low.urgency if low.urgency == high.urgency else None
    incremental = low.incremental if low.incremental == high.incremental else None
    if urgency is None and incremental is None:
        return ()
    return (ServerPriority(urgency=urgency, incremental=incremental),)


def _from_cloudflare_fields(request: RecordedRequest) -> tuple[ServerPriority, ...]:
    found = []
    for part in (request.cf_priority, *request.cf_priority_change.split(",")):
        match = _CLOUDFLARE_PRIORITY.fullmatch(part.strip())
        if match is None:
            continue
        after_bytes, priority, concurrency = match.groups()
        if int(priority) <= _MAX_CLOUDFLARE_PRIORITY:
            level = _LEVEL_BY_CONCURRENCY[concurrency]
            found.append(
                ServerPriority(bucket=int(priority), level=level, after_bytes=int(after_bytes or 0))
            )
    return tuple(found)


class HeadersPriority(NamedTuple):
    """Priority in the HEADERS frame of a request; parent 0 is the root of the tree."""

    stream_id: int
    parent_id: int
    weight: int
    exclusive: bool


def recorded_frames(
    requests: Mapping[int, RecordedRequest], ids: Mapping[int, str]
) -> dict[int, RecordedPriority]:
    """Return the priorities in HEADERS frames by the index of the request.

    Parents are named by the page's *ids*; Firefox's idle streams become groups. A frame whose
    parent is not in the page is left out.
    """
    streams = {
        (_connection_key(request), request.frame.stream_id): ids[index]
        for index, request in requests.items()
        if request.frame is not None
    }
    found = {}
    for index, request in requests.items():
        frame = request.frame
        if frame is None:
            continue
        browser = RecordedFrom(request.browser) if request.browser else None
        group = (
            _FIREFOX_GROUP_BY_STREAM.get(frame.parent_id)
            if browser is RecordedFrom.FIREFOX
            else None
        )
        parent = (
            "" if not frame.parent_id else streams.get((_connection_key(request), frame.parent_id))
        )
        make_priority = partial(RecordedPriority, browser=browser, weight=frame.weight)
        if group is not None:
            found[index] = make_priority(group=group)
        elif parent is not None and parent != ids[index]:
            # False is the default, which a page file leaves out.
            found[index] = make_priority(depends_on=parent, exclusive=frame.exclusive or None)
    return found


def _connection_key(request: RecordedRequest) -> str:
    """Return a key for the connection of a request: its recorded id, or else its host."""
    return request.reached.connection or urlsplit(request.url).netloc


_NO_DOCUMENT = NO_BODY - {NOT_MODIFIED}
"""Statuses of responses that no browser shows: a navigation to one stays where it is."""


def kind_of(request: RecordedRequest) -> tuple[Kind, str]:
    """Return the kind of a request, with the evidence in words if the kind is not recorded.

    What has no content is no document, whatever its media type: beacons and pings are answered
    with 204 (Fetch Standard § 2.2.3, a "null body status").
    """
    if request.facts is not None:
        return request.facts.kind, ""
    kind, basis = _recorded_kind(request)
    is_shown = request.status not in _NO_DOCUMENT and request.method != "HEAD"
    if kind is not Kind.DOCUMENT or (is_shown and not request.is_ping):
        return kind, basis
    return Kind.OTHER, "no document, as it has no content"


def _recorded_kind(request: RecordedRequest) -> tuple[Kind, str]:
    if request.kind is not None:
        return request.kind, ""
    kind, basis = kind_of_mime(plain_mime(request.mime)), "kind from the media type"
    if request.is_xhr and kind in (Kind.DOCUMENT, Kind.FETCH, None):
        return Kind.FETCH, "kind from the header of the request"
    if kind is None:
        path = request.url.partition("?")[0].partition("#")[0]
        kind, basis = kind_of_extension(path), "kind from the extension"
    return (Kind.OTHER, "kind unknown, taken as other") if kind is None else (kind, basis)
