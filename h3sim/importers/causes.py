"""Causes of requests: the parent, the event that triggered each, its loading attributes.

Only values with evidence are set. Recorded markup, parsed earlier, takes precedence; then the
recorder's render-blocking status, then Chrome's initial priority, then the order of requests.

A parent always precedes its child, by time and then by position in the file, so that the result is
a tree even if a recording has cycles.

A simulated load opens one connection per host, or group of hosts, which takes the round trips of
its protocols. So a request is made that many round trips before it was sent. Other recorded waits
have no counterpart in a load and remain part of the delay: the server's time for TLS and, over
HTTP/1.1, waiting for one of six connections and opening more of them.

Without recorded markup, resources are assumed to be discovered as the parser or the preload scanner
reaches them. A request made after the whole document had arrived did not wait for its bytes, so its
trigger is the last resource that may have blocked the parser.

The rules are documented in `docs/importing.md` and apply to every format with times. They are
chosen so that a load over a network like the recorded one requests each resource when the recorded
load did. The recorded time between event and request becomes the delay.
"""

from __future__ import annotations

import enum
import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.html import read_markup, scan
from h3sim.importers.recorded_request import MULTIPLEXED, QUIC, UNIMPORTANT, level_of
from h3sim.importers.request_fields import without_fragment
from h3sim.page import FetchPriority, Kind, Level, TriggerEvent
from h3sim.units import ms

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from h3sim.importers.recorded_request import RecordedRequest


_MOST_LINES = 200_000
_BY_SCRIPT = ("script", "preflight")
HAVE_ELEMENTS = (Kind.SCRIPT, Kind.STYLESHEET)
"""Kinds whose elements block the parser or what is painted, wherever they are preloaded."""


def apply_markup(requests: Sequence[RecordedRequest], inferred: Counter[str]) -> None:
    """Set for each request its offset in a document's text, and the attributes of its tag.

    A request without initiator gets the document as initiator. The texts are then discarded.
    """
    for document in requests:
        if document.text:
            _apply(document, requests, inferred)
            document.text = ""


def _apply(
    document: RecordedRequest, requests: Sequence[RecordedRequest], inferred: Counter[str]
) -> None:
    own = without_fragment(document.url)
    data = document.text.encode("utf-8", "replace")
    document.decoded_bytes = len(data)
    named = _named(data, own)
    lines: list[int] = []
    for request in requests:
        url, is_known = without_fragment(request.url), bool(request.initiator)
        is_scripted = request.stack or request.initiator_type in _BY_SCRIPT
        if request is document or request.offset is not None or is_scripted:
            continue
        if is_known and without_fragment(request.initiator) != own:
            continue
        if url in named:
            offset, flags, element_at = named[url]
            request.offset, request.flags = offset, dict(flags)
            if element_at is not None:
                request.reference_offset_bytes = _on_the_wire(element_at, document)
            request.initiator = document.url
            inferred["place and flags from the markup"] += 1
            inferred["parent from the markup"] += not is_known
        elif is_known and request.line is not None:
            if not lines:  # up to the last one that is needed
                ends = itertools.islice(re.finditer(b"\n", data), _MOST_LINES)
                lines = [0, *(end.end() for end in ends)]
            request.offset = lines[min(request.line, len(lines) - 1)]


class _NamedUrl(NamedTuple):
    """First reference to a URL, and of a preload that of the first element behind it."""

    offset: int
    flags: dict[str, Any]
    element_at: int | None = None


def _named(data: bytes, own: str) -> dict[str, _NamedUrl]:
    """Return the first reference to each URL in a document, with the attributes of all its tags."""
    markup = read_markup(scan(data))
    named: dict[str, _NamedUrl] = {}
    for reference in markup.references:
        url = reference.url_in(own)
        known = named.get(url, _NamedUrl(reference.offset_bytes, {}))
        # If several tags have an attribute, the first one counts.
        flags = reference.flags | known.flags
        is_preloaded = known.flags.get("preload") and not reference.flags.get("preload")
        if is_preloaded and known.element_at is None and reference.kind in HAVE_ELEMENTS:
            flags["in_head"] = reference.flags.get("in_head", False)
            known = known._replace(element_at=reference.offset_bytes)
        named[url] = known._replace(flags=flags)
    return named


_BLOCKING = "blocking"
_NOT_BLOCKING = frozenset(
    ("non_blocking", "nonblocking", "non_blocking_dynamic", "nonblockingdynamic")
)
_IN_HEAD = {"in_head": True, "render_blocking": True}
_IMPORTANT = (Level.VERY_HIGH, Level.HIGH)


def flags_of(
    request: RecordedRequest, inferred: Counter[str], *, in_document: bool, before_image: bool
) -> dict[str, Any]:
    """Return the flags of *request* as fields of a `Resource`, and count what was inferred.

    *in_document*: the page's document refers to it; *before_image*: it was requested before the
    first image of that document.
    """
    if request.flags is not None:
        return dict(request.flags)
    kind = request.resolved_kind
    flags: dict[str, Any] = {"preload": request.is_preload} if request.is_preload else {}
    is_parsed = request.initiator_type in ("parser", "preload", "")
    if kind is Kind.IMAGE and level_of(request.priority) in _IMPORTANT and is_parsed:
        # Chrome requests images with Low; only the author's fetchpriority makes it High initially.
        flags["fetchpriority"] = FetchPriority.HIGH
        inferred["fetchpriority from Chrome's priority"] += 1
    if kind not in (Kind.STYLESHEET, Kind.SCRIPT) or request.is_preload:
        return flags
    if not in_document:
        if kind is Kind.SCRIPT and level_of(request.priority) in UNIMPORTANT:
            flags["is_async"] = True  # scripts added by scripts are async by default
            inferred["async from Chrome's priority"] += 1
        return flags
    found: dict[str, Any] = {}
    if request.blocking:
        inferred["in head, async from the recorder's word for blocking"] += 1
        if request.blocking == _BLOCKING:
            found = _IN_HEAD
        elif request.blocking in _NOT_BLOCKING and kind is Kind.SCRIPT:
            found = {"is_async": True}
    elif request.priority:
        inferred["in head, async, blocking from Chrome's priority"] += 1
        found = _by_priority(level_of(request.priority), kind)
    elif request.start_ms is not None:
        inferred["in head, blocking from the order of requests"] += 1
        found = _IN_HEAD if before_image else {"after_first_image": True}
    return flags | found


def _by_priority(level: Level | None, kind: Kind) -> dict[str, Any]:
    """Infer attributes of a resource found by the parser from Chrome's table of priorities.

    Render-blocking stylesheets have the highest priority. Blocking scripts are High before the
    first image and Medium after it; async and deferred scripts are Low.
    """
    if kind is Kind.STYLESHEET:
        return _IN_HEAD if level is Level.VERY_HIGH else {}
    if level in _IMPORTANT:
        return _IN_HEAD
    return {"is_async": True} if level in UNIMPORTANT else {"after_first_image": True}


class ParentEvidence(enum.Enum):
    """Evidence for a parent, the best first."""

    GIVEN = "the recording"
    REDIRECT = "redirect"
    INITIATOR = "initiator"
    STACK = "stack"
    REFERER = "Referer"
    TIMING = "timing"
    NONE = "nothing"


_REFERRING = (Kind.DOCUMENT, Kind.STYLESHEET)
_BY_NAME = (ParentEvidence.GIVEN, ParentEvidence.REDIRECT, ParentEvidence.INITIATOR)


@dataclass(frozen=True, slots=True)
class Parent:
    """Index of a request's parent, or None, with the evidence for it."""

    index: int | None
    basis: ParentEvidence


class _ParentFinder:
    """Search for the parents of *requests*, among those that were added before."""

    def __init__(self, requests: Sequence[RecordedRequest]) -> None:
        self._requests = requests
        self.page: int | None = None
        """The page's document."""
        self._known: set[int] = set()
        self._by_url: dict[str, int] = {}
        self._by_bare_url: dict[str, int] = {}
        self._ends = {
            kind: sorted(
                (end_ms, index)
                for index, request in enumerate(requests)
                if request.resolved_kind is kind and (end_ms := request.end_ms) is not None
            )
            for kind in (Kind.SCRIPT, Kind.STYLESHEET)
        }
        """Completions of scripts and stylesheets."""

    def add(self, index: int) -> None:
        """Add a request; the requests are added in order of time."""
        # The latest wins: if something is loaded twice, later requests follow the second load.
        url = without_fragment(self._requests[index].url)
        self._by_url[url] = self._by_bare_url[url.partition("?")[0]] = index
        self._known.add(index)

    def parent(self, index: int) -> Parent:
        """Return the parent of a request, by the best evidence."""
        request = self._requests[index]
        if request.trigger is not None and request.trigger.by in self._known:
            return Parent(request.trigger.by, ParentEvidence.GIVEN)
        if request.parent in self._known:
            return Parent(request.parent, ParentEvidence.GIVEN)
        if request.redirect_of in self._known:
            return Parent(request.redirect_of, ParentEvidence.REDIRECT)
        if (found := self._find(request.initiator)) is not None:
            return Parent(found, ParentEvidence.INITIATOR)
        for url in request.stack:
            if (found := self._find(url)) is not None:
                return Parent(found, ParentEvidence.STACK)
        # The Referer of a fetch is the page, not the script that made it.
        is_fetch = request.resolved_kind is Kind.FETCH
        found = None if is_fetch else self._find(request.referer)
        if found is not None and self._requests[found].resolved_kind in _REFERRING:
            return Parent(found, ParentEvidence.REFERER)
        if self.page is None:
            return Parent(None, ParentEvidence.NONE)
        return Parent(self._by_clock(request, self.page), ParentEvidence.TIMING)

    def _find(self, url: str) -> int | None:
        if not url:
            return None
        url = without_fragment(url)
        index = self._by_url.get(url)
        return self._by_bare_url.get(url.partition("?")[0]) if index is None else index

    def _by_clock(self, request: RecordedRequest, page: int) -> int:
        """Return the most likely parent of a request without other evidence.

        For a font: the last completed stylesheet. For a fetch, or a kind that markup does not
        refer to: the last completed script. Otherwise: the *page*.
        """
        kind, start_ms = request.resolved_kind, request.start_ms
        if start_ms is None or kind not in (Kind.FONT, Kind.FETCH, Kind.OTHER):
            return page
        ends = self._ends[Kind.STYLESHEET if kind is Kind.FONT else Kind.SCRIPT]
        # Completions at this very instant count.
        number = bisect_right(ends, start_ms, key=itemgetter(0))
        found = ends[number - 1][1] if number else page
        return found if found in self._known else page


def find_parents(
    requests: Sequence[RecordedRequest],
    order: Iterable[int],
    root: int,
    landed: AbstractSet[int],
) -> tuple[dict[int, Parent], int]:
    """Return the parent of each request but *root*, and the number of rejected initiators.

    *order* has the indices of the requests by time, *landed* the targets of redirects of the root.
    An initiator that starts after its request is rejected.
    """
    finder = _ParentFinder(requests)
    urls = {without_fragment(request.url) for request in requests}
    parents: dict[int, Parent] = {}
    n_rejected = 0
    for index in order:
        if index != root:
            parents[index] = finder.parent(index)
            is_weak = parents[index].basis not in _BY_NAME
            n_rejected += is_weak and without_fragment(requests[index].initiator) in urls
        finder.add(index)
        # After redirects the page is their target: a redirect causes no other request.
        if index == root or index in landed:
            finder.page = index
    return parents, n_rejected


_TRIPS_OF_TCP, _TRIPS_OF_QUIC = 2, 1
"""Round trips before the first request: TCP and TLS 1.3 (RFC 8446 § 2), or QUIC (RFC 9000 § 7)."""
_CLOCK_MS = 1.0


def opening_ms(request: RecordedRequest, rtt_ms: float) -> float:
    """Return the time in ms that a load takes to open a connection for *request*.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> opening_ms(RecordedRequest(key="0", url="", protocol="h2"), 20)
    40
    """
    return rtt_ms * (_TRIPS_OF_QUIC if request.protocol.startswith(QUIC) else _TRIPS_OF_TCP)


def see_multiplexing(requests: Iterable[RecordedRequest]) -> None:
    """Set the protocol to h2 if requests overlapped on a connection.

    Early recorders call HTTP/2 and SPDY "unknown", or use the status line of HTTP/1.1. One overlap
    may be due to rounded times; with HTTP/1.1 there is no second one.

    >>> from h3sim.importers.recorded_request import RecordedRequest, ConnectionInfo
    >>> requests = [
    ...     RecordedRequest(key="", url="", protocol="unknown", sent_ms=at, first_byte_ms=at + 50)
    ...     for at in (0, 10, 20)]
    >>> for request in requests:
    ...     request.reached = ConnectionInfo(connection="7")
    >>> see_multiplexing(requests)
    >>> requests[0].protocol
    'h2'
    """
    on_one: dict[tuple[str, str], list[RecordedRequest]] = {}
    for request in requests:
        is_known = request.reached.connection and not request.protocol.startswith(MULTIPLEXED)
        if is_known and request.sent_ms is not None and request.first_byte_ms is not None:
            key = request.reached.connection, request.reached.ip
            on_one.setdefault(key, []).append(request)
    for sharing in on_one.values():
        sent = sorted((each.sent_ms or 0.0, each.first_byte_ms or 0.0) for each in sharing)
        overlaps = sum(
            later < answered_ms - _CLOCK_MS for (_, answered_ms), (later, _) in pairwise(sent)
        )
        if overlaps > 1:
            for request in sharing:
                request.protocol = "h2"


def let_go(
    requests: Iterable[RecordedRequest],
    groups: Iterable[int],
    rtts_ms: Iterable[float],
    root: RecordedRequest,
) -> None:
    """Set for each of *requests*, in order of time, when the browser released it.

    Requests of one of the *groups* share a connection in a load; *rtts_ms* are to their servers.
    The DNS lookup of the root's host is excluded: a load begins after it.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> page, image = (
    ...     RecordedRequest(key=key, url="", protocol="h2", start_ms=0, sent_ms=sent_ms)
    ...     for key, sent_ms in (("page", 145), ("image", 180)))
    >>> let_go([page, image], [0, 0], [30, 30], page)
    >>> page.asked_ms, image.asked_ms
    (85.0, 85.0)
    """
    timed = [
        (request, request.start_ms, request.sent_ms, group, opening_ms(request, rtt_ms))
        for request, group, rtt_ms in zip(requests, groups, rtts_ms, strict=True)
        if request.start_ms is not None and request.sent_ms is not None
    ]
    ready_ms: dict[int, float] = {}
    for _, _, sent_ms, group, _ in timed:
        ready_ms[group] = min(sent_ms, ready_ms.get(group, sent_ms))
    for request, start_ms, sent_ms, group, needed_ms in timed:
        if start_ms >= ready_ms[group] and request is not root:
            request.asked_ms = max(start_ms, sent_ms)
            continue
        # With one connection all wait for it; with HTTP/1.1 each waits for its own.
        is_shared = request.protocol.startswith(MULTIPLEXED)
        left_ms = ready_ms[group] if is_shared else sent_ms
        looked_up_ms = 0.0 if request is root else request.reached.dns_ms or 0.0
        request.asked_ms = left_ms - needed_ms - looked_up_ms


class ParserStops:
    """Resources that may have blocked parsers, among *requests* that *documents* refer to.

    *documents* maps the index of each such request to that of its document. Requests that are not
    blocking by Chrome's priority or the markup are excluded.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> times = [(0, 50), (20, 90), (95, 120)]
    >>> requests = [
    ...     RecordedRequest(key="", url="", start_ms=begin, end_ms=end) for begin, end in times]
    >>> requests[1].resolved_kind = Kind.STYLESHEET
    >>> stops = ParserStops(requests, {1: 0, 2: 0})
    >>> stops.last_before(2), stops.last_before(1)
    (1, None)
    """

    def __init__(self, requests: Sequence[RecordedRequest], documents: Mapping[int, int]) -> None:
        self._requests = requests
        self._documents = documents
        self._ends = sorted(
            (end_ms, index)
            for index in documents
            if _may_stop(requests[index]) and (end_ms := requests[index].end_ms) is not None
        )

    def last_before(self, index: int) -> int | None:
        """Return the last resource that blocked the parser before it reached *index*.

        None if nothing need have blocked it, as the document completed last.
        """
        document = self._documents.get(index)
        start_ms = self._requests[index].start_ms
        there_ms = None if document is None else self._requests[document].end_ms
        if start_ms is None or there_ms is None:
            return None
        last = bisect_right(self._ends, (start_ms, len(self._requests)))
        for end_ms, stop in reversed(self._ends[:last]):
            if end_ms <= there_ms:
                return None
            if stop != index and self._documents[stop] == document:
                return stop
        return None


def _may_stop(request: RecordedRequest) -> bool:
    can_wait = level_of(request.priority) in UNIMPORTANT or request.is_preload
    is_stopping = request.resolved_kind in HAVE_ELEMENTS
    return is_stopping and not can_wait and not (request.flags or {}).get("is_async")


class ParentMatch(NamedTuple):
    """Event that triggered a request, with a description of its evidence."""

    at: TriggerEvent
    delay_ms: float
    basis: str
    offset_bytes: int | None = None


def trigger_of(child: RecordedRequest, parent: RecordedRequest, *, direct: bool) -> ParentMatch:
    """Return the trigger of *child*, an event of *parent*.

    *direct*: no resource between the two was left out of the page.
    """
    if child.is_pushed:
        return ParentMatch(TriggerEvent.REQUEST, _after(child, _left_ms(parent)), "from the push")
    if child.redirect_of is not None and direct:
        return ParentMatch(TriggerEvent.COMPLETE, _after(child, parent.end_ms), "from the redirect")
    first_ms = parent.start_ms if parent.first_byte_ms is None else parent.first_byte_ms
    if _is_before(child, first_ms):
        delay_ms = _after(child, _left_ms(parent))
        return ParentMatch(TriggerEvent.REQUEST, delay_ms, "for a request before its parent came")
    if parent.resolved_kind is Kind.DOCUMENT and direct and child.offset is not None:
        offset = _on_the_wire(child.offset, parent)
        if offset is not None:
            delay_ms = _after(child, _arrival_ms(offset, parent))
            basis = "from the place in the document"
            return ParentMatch(TriggerEvent.OFFSET, delay_ms, basis, offset)
    if _is_before(child, parent.end_ms):
        offset, since_ms = _arrived(parent, child)
        if offset:
            delay_ms = max(0.0, since_ms + child.held_ms)
            return ParentMatch(TriggerEvent.OFFSET, delay_ms, "from the clock", offset)
    return _when_there(child, parent)


def _when_there(child: RecordedRequest, parent: RecordedRequest) -> ParentMatch:
    """Return the trigger at the completion of the parent or, for a script, its execution."""
    ends = (parent.end_ms, parent.first_byte_ms, parent.start_ms)
    end_ms = next((at_ms for at_ms in ends if at_ms is not None), None)
    is_script = parent.resolved_kind is Kind.SCRIPT
    event = TriggerEvent.EXECUTED if is_script else TriggerEvent.COMPLETE
    if child.start_ms is None or end_ms is None:
        return ParentMatch(event, 0.0, "without times")
    ran_ms = end_ms + parent.parse_ms + parent.execute_ms
    delay_ms = max(0.0, child.start_ms - ran_ms + child.held_ms)
    if event is TriggerEvent.COMPLETE or child.start_ms < ran_ms:
        event, delay_ms = TriggerEvent.COMPLETE, _after(child, end_ms)
    return ParentMatch(event, delay_ms, "from the kind of the parent")


def _on_the_wire(decoded_offset: int, parent: RecordedRequest) -> int | None:
    """Convert a decoded offset to one in the transferred bytes, assuming uniform compression.

    None if it lies after the end: then the decoded size or the offset is wrong.
    """
    size, decoded = parent.body_bytes, parent.decoded_bytes
    if not size:
        return None
    if decoded is None or decoded <= size:
        return decoded_offset if decoded_offset <= size else None
    return decoded_offset * size // decoded if decoded_offset <= decoded else None


def _arrival_ms(offset: int, parent: RecordedRequest) -> float | None:
    """Return when *offset* bytes of *parent* had arrived, by its chunks or at a constant rate."""
    come = 0
    for at_ms, n_bytes in parent.pieces:
        come += n_bytes
        if come >= offset:
            return at_ms
    first_ms, end_ms, size = parent.first_byte_ms, parent.end_ms, parent.body_bytes
    if first_ms is None or end_ms is None or not size:
        return parent.start_ms if end_ms is None else end_ms
    return first_ms + (end_ms - first_ms) * min(offset, size) / size


def _arrived(parent: RecordedRequest, child: RecordedRequest) -> tuple[int, float]:
    """Return the bytes of *parent* received before the request of *child*, and the time since."""
    now_ms, size = child.start_ms or 0.0, parent.body_bytes or 0
    first_ms, end_ms = parent.first_byte_ms, parent.end_ms
    come = [(at_ms, n_bytes) for at_ms, n_bytes in parent.pieces if at_ms <= now_ms]
    n_come = min(size, sum(n_bytes for _, n_bytes in come))
    if n_come:
        return n_come, now_ms - come[-1][0]
    if first_ms is None or end_ms is None or end_ms <= first_ms:
        return 0, 0.0
    if parent.pieces:  # bytes arrived before the first chunk, in unknown number
        return min(1, size), now_ms - first_ms
    # In whole nanoseconds: with floats the share may round down to one byte less.
    n_come = size * ms(now_ms - first_ms) // ms(end_ms - first_ms)
    return max(1, n_come) if size else 0, 0.0


def _left_ms(parent: RecordedRequest) -> float | None:
    """Return when the request was sent, which is its request time in a load."""
    return parent.start_ms if parent.sent_ms is None else parent.sent_ms


def _after(child: RecordedRequest, event_ms: float | None) -> float:
    if child.start_ms is None or event_ms is None:
        return 0.0
    return max(0.0, child.start_ms + child.held_ms - event_ms)


def _is_before(child: RecordedRequest, event_ms: float | None) -> bool:
    return child.start_ms is not None and event_ms is not None and child.start_ms < event_ms
