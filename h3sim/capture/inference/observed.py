"""What every dialect is brought into: the requests that were seen, and what was noted about them.

A reader of a dialect fills in what its files say and leaves the rest at None. Everything that has
to be worked out is worked out from these records, in one way for all dialects.
"""

from __future__ import annotations

import enum
import ipaddress
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.capture.imported import RecordingError
from h3sim.errors import Problem
from h3sim.page.discovery import MAX_TIME_NS
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.capture.inference.recorded import HeadersPriority
    from h3sim.page import At, Kind

__all__ = [
    *("INTERNAL_REDIRECT", "LONGEST_MS", "REDIRECTS", "Observed", "RequestOutcome", "Reached"),
    *("Recording", "Size", "Trigger", "by_time", "first_of", "recorded_ns"),
]

REDIRECTS = frozenset((301, 302, 303, 307, 308))
"""The statuses that send the browser elsewhere."""
INTERNAL_REDIRECT = "Internal Redirect"
"""What Chromium writes where it goes elsewhere by itself (HSTS): nothing is sent for that."""
LONGEST_MS = to_ms(MAX_TIME_NS)
"""A day: longer times are mistakes of a clock."""
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


def by_time(requests: Sequence[Observed]) -> list[int]:
    """Return the indexes by start; what has none goes with what stands before it in the file."""
    keys, last_ms = [], float("-inf")
    for index, request in enumerate(requests):
        if request.start_ms is not None:
            last_ms = request.start_ms
        keys.append((last_ms, index))
    return [index for _, index in sorted(keys)]


def first_of(problems: Sequence[Problem], n_problems: int | None = None) -> tuple[Problem, ...]:
    """Return the first problems, and how many more there are of *n_problems* in all."""
    kept = problems[:_MOST_PROBLEMS]
    rest = (len(problems) if n_problems is None else n_problems) - len(kept)
    more = [Problem(key="", message=f"and {rest:,} more")] if rest else []
    return (*kept, *more)


class Size(enum.Enum):
    """What a number of bytes was taken from, the best first."""

    RECORDED = "recorded"
    TRANSFER = "transfer size less header"
    WHOLE = "transfer size, header and all"
    PIECES = "sum of pieces"
    CONTENT_LENGTH = "Content-Length"
    COMPRESSION = "content size less compression"
    DECODED = "decoded size"
    FIELDS = "length of the fields as text"
    NONE = "nothing"


class RequestOutcome(enum.Enum):
    """What became of a request."""

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

    at: At
    by: int
    offset_bytes: int | None = None
    delay_ms: float = 0.0


class Reached(NamedTuple):
    """Where a request went, and what it took to come there; "" and None where that is not told."""

    address: str = ""
    """The IP address of the server."""
    connection: str = ""
    """What the recorder calls the connection."""
    certificate: str = ""
    """What the server's certificate is known by: equal for equal ones."""
    certificate_names: tuple[str, ...] = ()
    """The names for which that is good."""
    dns_ms: float | None = None
    """How long the name was looked up for it."""
    handshake_ms: float | None = None
    """What opening a connection for it took, without TLS over TCP."""
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
        """Whether it went no further than to this machine (RFC 6890 § 2.2)."""
        return bool(self.ip) and ipaddress.ip_address(self.ip).is_loopback


@dataclass(slots=True, kw_only=True)
class Observed:
    """One request as it was seen. Times are in ms since any one instant; URLs are as recorded."""

    key: str
    """Its index in the file."""
    url: str
    id: str = ""
    """What the recording calls it; "" where its URL names it."""
    page: str = ""
    """The recording's id of the page that it belongs to, where there are several."""
    start_ms: float | None = None
    asked_ms: float | None = None
    """When the browser let go of it, but for a connection; None for at its start."""
    reached: Reached = field(default_factory=Reached)
    sent_ms: float | None = None
    """When the request had left."""
    first_byte_ms: float | None = None
    end_ms: float | None = None
    outcome: RequestOutcome = RequestOutcome.ANSWERED
    protocol: str = ""
    """As the recorder calls it, in lower case: "h2", "http/1.1"."""
    method: str = "GET"
    status: int | None = None
    mime: str = ""
    kind: Kind | None = None
    """What the recorder says that it is."""
    is_xhr: bool = False
    is_framed: bool = False
    """Whether a frame asked for it (Sec-Fetch-Dest)."""
    body_bytes: int | None = None
    body_from: Size = Size.NONE
    header_bytes: int | None = None
    header_from: Size = Size.NONE
    request_bytes: int | None = None
    request_from: Size = Size.NONE
    decoded_bytes: int | None = None
    initiator_type: str = ""
    initiator: str = ""
    """The URL of what asked for it."""
    stack: tuple[str, ...] = ()
    """The URLs of the scripts that were running, the innermost first."""
    line: int | None = None
    """Where in the initiator it is named; the first line is 0."""
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
    """What its HEADERS said of its place in the tree of HTTP/2."""
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
    """Who asked for it, by its User-Agent: "chrome", "firefox" or "safari"."""
    blocking: str = ""
    """Chrome's word for whether it blocks rendering, in lower case."""
    is_pushed: bool = False
    is_preload: bool = False
    is_critical: bool = False
    """Whether the recorder counts it to the critical path."""
    is_above_the_fold: bool = False
    """Whether the recorder saw it without scrolling, or what is seen needs it."""
    is_hero: bool = False
    """Whether it is the largest thing that the recorder saw."""
    viewport: float | None = None
    """The share of the viewport that the recorder saw it cover."""
    parse_ms: float = 0.0
    execute_ms: float = 0.0
    pieces: tuple[tuple[float, int], ...] = ()
    """When how many bytes of the body came: (ms, bytes)."""
    trigger: Trigger | None = None
    flags: dict[str, Any] | None = None
    """What its tag and the browser say, as fields of a `Resource`; None where neither is known."""
    text: str = ""
    """The decoded body of a document, where it was recorded. It is looked at and dropped."""

    @property
    def held_ms(self) -> float:
        """How long the browser held it back; less than 0 where a load needs longer to connect."""
        if self.asked_ms is None or self.start_ms is None:
            return 0.0
        return self.asked_ms - self.start_ms

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
    """Which page load of the file is wanted, where there are several."""
    name: str = ""
    """What to call the page, where it is not called by its host."""
    has_addresses: bool = True
    """Whether its URLs are those of the web, and do not stand in for files or rows."""
    is_local: bool = False
    """Whether it came from the machine that recorded it, so that nothing is told of a network."""
    tool: str = ""
    recorded: str = ""
    """The day."""
    provenance: dict[str, str] = field(default_factory=dict)
    """What it says itself of where it comes from; goes before what is known of the file."""
    begun_ms: float | None = None
    """When it says that the load began, on the clock of its requests; None for with the root."""
    times_ms: dict[str, float] = field(default_factory=dict)
    """What it says of the load as a whole, by the fields of `RecordedLoad` without their unit."""
    requests: list[Observed] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    mended: list[Problem] = field(default_factory=list)
    """Values that were a little wrong, and what was taken instead."""
    problems: list[Problem] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    n_problems: int = 0
    _noted: set[tuple[str, str]] = field(default_factory=set)
    is_full: bool = False
    """Whether a request was left out for want of room: nothing more need be read."""
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
            self.problems.append(Problem(key=key, message=message))

    def has_room(self, n_requests: int | None = None) -> bool:
        """Return whether another request can be taken up; where none can, note it.

        *n_requests* says how many there are, where they are not in `requests` yet.
        """
        if (len(self.requests) if n_requests is None else n_requests) < _MOST_REQUESTS:
            return True
        self.note("", f"has more than {_MOST_REQUESTS:,} requests: the rest is not read")
        self.is_full = True
        return False

    def all_problems(self) -> tuple[Problem, ...]:
        """Return what was noted, and how much more there was."""
        return first_of(self.problems, self.n_problems)

    def refuse(self, message: str, key: str = "") -> RecordingError:
        """Return the error that says that this cannot be a page, with what was noted so far."""
        problems = (*self.all_problems(), Problem(key=key, message=message))
        return RecordingError(problems, self.source)

    def keep_text(self, text: str) -> str:
        """Return *text*, or "" where too much is kept already, or too many."""
        if len(text) > self.text_room or self.texts_left == 0:
            return ""
        self.texts_left -= 1
        self.text_room -= len(text)
        return text

    def say_tool(self, *words: str) -> None:
        """Note what made the recording; what a file says of itself is cut and cleaned."""
        text = " ".join(" ".join(words).split())
        self.tool = "".join(c for c in text if c.isprintable())[:_LONGEST_NOTE]
