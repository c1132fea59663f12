"""Causes of requests: the parent, the event that triggered each, its loading attributes.

Only what a recording bears out is set. Markup, where it was recorded, has been looked at before
(`markup`) and decides; then the recorder's word for blocking, then Chrome's first priority, then
the order of requests.

A parent always comes before its child, by time and then by place in the file. So what is found is
a tree, whatever circles a recording claims.

A load opens one connection for each host, or group of them, and takes as many round trips for it as
its protocols do. So a request is asked for so many round trips before it had left. All that a
recording tells beyond that, no load has a place for, and it stays in the delay: what a server took
for TLS; and over HTTP/1.1 waiting for one of six connections, and opening more of them.

Markup that a recording does not have names things as the parser, or its scanner, comes to them.
What is asked for when all of the document had come did not wait for bytes of it; so it follows from
the last of what the parser may have stood at.

The rules stand in `docs/importing.md`, and are the same for every dialect that has times. They are
chosen so that a load over a network like the recorded one asks for each resource when the recorded
load did. What was recorded between event and request becomes the delay.
"""

from __future__ import annotations

import enum
import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.html import read_markup, scan
from h3sim.importers.path_estimation import MULTIPLEXED
from h3sim.importers.recorded_request import UNIMPORTANT, level_of
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


def apply_markup(requests: Sequence[RecordedRequest], inferred: Counter[str]) -> None:
    """Note for each request where in a document's text it is named, with the flags of its tag.

    A request that has no initiator gets the document as one. The texts are dropped.
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
        url = without_fragment(request.url)
        if request is document or request.offset is not None or request.stack:
            continue
        if request.initiator_type in _BY_SCRIPT:
            continue
        is_told = bool(request.initiator)
        if is_told and without_fragment(request.initiator) != own:
            continue
        if url in named:
            offset, flags = named[url]
            request.offset, request.flags = offset, dict(flags)
            request.initiator = document.url
            inferred["place and flags from the markup"] += 1
            inferred["parent from the markup"] += not is_told
        elif is_told and request.line is not None:
            lines = lines or _line_starts(data)
            request.offset = lines[min(request.line, len(lines) - 1)]


def _named(data: bytes, own: str) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return the first place of each URL in a document, with the flags of all its tags."""
    markup = read_markup(scan(data))
    named: dict[str, tuple[int, dict[str, Any]]] = {}
    for reference in markup.references:
        url = reference.url_in(own)
        offset, flags = named.get(url, (reference.offset_bytes, {}))
        # Of a flag that several tags have the first one counts.
        named[url] = (offset, reference.flags | flags)
    return named


def _line_starts(data: bytes) -> list[int]:
    """Return where the lines begin; what lies behind the last one that is looked at is left."""
    ends = itertools.islice(re.finditer(b"\n", data), _MOST_LINES)
    return [0, *(end.end() for end in ends)]


_BLOCKING = "blocking"
_NOT_BLOCKING = frozenset(
    ("non_blocking", "nonblocking", "non_blocking_dynamic", "nonblockingdynamic")
)
_IN_HEAD = {"in_head": True, "render_blocking": True}
_IMPORTANT = (Level.VERY_HIGH, Level.HIGH)


def flags_of(
    request: RecordedRequest,
    kind: Kind,
    inferred: Counter[str],
    *,
    in_document: bool,
    before_image: bool,
) -> dict[str, Any]:
    """Return the flags of *request* as fields of a `Resource`, and count what was inferred.

    *in_document* says that the page's document names it, *before_image* that it was asked for
    before the first image that this does.
    """
    if request.flags is not None:
        return dict(request.flags)
    flags: dict[str, Any] = {"preload": request.is_preload} if request.is_preload else {}
    is_parsed = request.initiator_type in ("parser", "preload", "")
    if kind is Kind.IMAGE and level_of(request.priority) in _IMPORTANT and is_parsed:
        # Chrome asks for images with Low; nothing but the author's hint makes it High at first.
        flags["fetchpriority"] = FetchPriority.HIGH
        inferred["fetchpriority from Chrome's priority"] += 1
    if kind not in (Kind.STYLESHEET, Kind.SCRIPT) or request.is_preload:
        return flags
    if not in_document:
        if kind is Kind.SCRIPT and level_of(request.priority) in UNIMPORTANT:
            flags["is_async"] = True  # what a script adds is, unless it says otherwise
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
    """Return what Chrome's table of priorities tells of what its parser found.

    A stylesheet that blocks has the highest priority. A script that blocks is High before the
    first image and Medium after it; one that is async or deferred is Low.
    """
    if kind is Kind.STYLESHEET:
        return _IN_HEAD if level is Level.VERY_HIGH else {}
    if level in _IMPORTANT:
        return _IN_HEAD
    return {"is_async": True} if level in UNIMPORTANT else {"after_first_image": True}


class ParentEvidence(enum.Enum):
    """From what a parent was told, the best first."""

    GIVEN = "the recording"
    REDIRECT = "redirect"
    INITIATOR = "initiator"
    STACK = "stack"
    REFERER = "Referer"
    TIMING = "timing"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class Parent:
    """The place of a request's parent, None for none, and how it was told."""

    index: int | None
    basis: ParentEvidence


@dataclass(slots=True)
class _Seen:
    """What came before the request that is looked at."""

    by_url: dict[str, int] = field(default_factory=dict)
    by_bare_url: dict[str, int] = field(default_factory=dict)

    def add(self, index: int, request: RecordedRequest) -> None:
        # The latest wins: a page that loads something twice goes on with the later one.
        url = without_fragment(request.url)
        self.by_url[url] = index
        self.by_bare_url[url.partition("?")[0]] = index

    def find(self, url: str) -> int | None:
        if not url:
            return None
        url = without_fragment(url)
        index = self.by_url.get(url)
        return self.by_bare_url.get(url.partition("?")[0]) if index is None else index


class _Clock:
    """Scripts and stylesheets by when they were complete, for requests in the order of time."""

    def __init__(self, requests: Sequence[RecordedRequest], kinds: Sequence[Kind]) -> None:
        self._ends: dict[Kind, list[tuple[float, int]]] = {}
        for kind in (Kind.SCRIPT, Kind.STYLESHEET):
            self._ends[kind] = sorted(
                (end_ms, index)
                for index, request in enumerate(requests)
                if kinds[index] is kind and (end_ms := request.end_ms) is not None
            )

    def last(self, kind: Kind, before_ms: float | None) -> int | None:
        """Return the place of that kind which was complete last before that time."""
        if before_ms is None:
            return None
        ends = self._ends[kind]
        # With a place behind all others: what was complete at this very instant counts.
        number = bisect_right(ends, (before_ms, len(ends) + 2**62))
        return ends[number - 1][1] if number else None


def find_parents(
    requests: Sequence[RecordedRequest],
    kinds: Sequence[Kind],
    order: Iterable[int],
    root: int,
    landed: AbstractSet[int],
) -> tuple[dict[int, Parent], int]:
    """Return the parent of each request but *root*, and how many initiators were not believed.

    *order* has the indexes of the requests by time, *landed* those to which redirects of the root
    led. An initiator is not believed if it begins after what it should have begun.
    """
    seen, clock = _Seen(), _Clock(requests, kinds)
    known: set[int] = set()
    page: int | None = None
    urls = {without_fragment(request.url) for request in requests}
    parents: dict[int, Parent] = {}
    n_unbelieved = 0
    for index in order:
        request = requests[index]
        if index != root:
            parents[index] = _parent(index, requests, kinds, seen, known, clock, page)
            is_weak = parents[index].basis not in (
                ParentEvidence.GIVEN,
                ParentEvidence.REDIRECT,
                ParentEvidence.INITIATOR,
            )
            names = without_fragment(request.initiator) in urls
            n_unbelieved += is_weak and names
        seen.add(index, request)
        known.add(index)
        # Behind redirects the page is what they led to: nothing comes of a redirect but that.
        page = index if index == root or index in landed else page
    return parents, n_unbelieved


def _parent(
    index: int,
    requests: Sequence[RecordedRequest],
    kinds: Sequence[Kind],
    seen: _Seen,
    known: set[int],
    clock: _Clock,
    page: int | None,
) -> Parent:
    request = requests[index]
    if request.trigger is not None and request.trigger.by in known:
        return Parent(request.trigger.by, ParentEvidence.GIVEN)
    if request.parent in known:
        return Parent(request.parent, ParentEvidence.GIVEN)
    if request.redirect_of in known:
        return Parent(request.redirect_of, ParentEvidence.REDIRECT)
    if (found := seen.find(request.initiator)) is not None:
        return Parent(found, ParentEvidence.INITIATOR)
    for url in request.stack:
        if (found := seen.find(url)) is not None:
            return Parent(found, ParentEvidence.STACK)
    # Of a fetch the Referer is the page, and not the script that made it.
    found = seen.find(request.referer) if kinds[index] is not Kind.FETCH else None
    if found is not None and kinds[found] in (Kind.DOCUMENT, Kind.STYLESHEET):
        return Parent(found, ParentEvidence.REFERER)
    if page is None:
        return Parent(None, ParentEvidence.NONE)
    return Parent(_by_clock(request, kinds[index], known, clock, page), ParentEvidence.TIMING)


def _by_clock(
    request: RecordedRequest, kind: Kind, known: set[int], clock: _Clock, page: int
) -> int:
    """Return the likeliest parent of what nothing else is known of.

    A font: the stylesheet that was complete last. A fetch, or what is none of the kinds that
    markup names: the script that was complete last. Anything else: the page.
    """
    found = None
    if kind is Kind.FONT:
        found = clock.last(Kind.STYLESHEET, request.start_ms)
    elif kind in (Kind.FETCH, Kind.OTHER):
        found = clock.last(Kind.SCRIPT, request.start_ms)
    return page if found is None or found not in known else found


_TRIPS_OF_TCP, _TRIPS_OF_QUIC = 2, 1
"""Before the first request: TCP and TLS 1.3 (RFC 8446 § 2), or both in one (RFC 9000 § 7)."""
_CLOCK_MS = 1.0
_QUIC = ("h3", "http/3", "hq", "quic")


def opening_ms(request: RecordedRequest, rtt_ms: float) -> float:
    """Return how long a load takes to open a connection for *request*.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> opening_ms(RecordedRequest(key="0", url="", protocol="h2"), 20)
    40
    """
    return rtt_ms * (_TRIPS_OF_QUIC if request.protocol.startswith(_QUIC) else _TRIPS_OF_TCP)


def see_multiplexing(requests: Iterable[RecordedRequest]) -> None:
    """Call the protocol h2 where more than one request was under way on a connection.

    Early recorders call HTTP/2 and SPDY "unknown", or by what the status line of HTTP/1.1 says. One
    such overlap may be a matter of rounded times; HTTP/1.1 has no second one.

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
        is_told = request.reached.connection and not request.protocol.startswith(MULTIPLEXED)
        if is_told and request.sent_ms is not None and request.first_byte_ms is not None:
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
    """Note for each of *requests*, which come by time, when the browser let go of it.

    Those of one of the *groups* share a connection in a load, and *rtts_ms* are to their servers.
    Looking up the name of the root's host is over then: a load begins with that.

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
        # Over one connection all wait for it; over HTTP/1.1 each for one of its own.
        is_shared = request.protocol.startswith(MULTIPLEXED)
        left_ms = ready_ms[group] if is_shared else sent_ms
        looked_up_ms = 0.0 if request is root else request.reached.dns_ms or 0.0
        request.asked_ms = left_ms - needed_ms - looked_up_ms


_STOPPING = (Kind.SCRIPT, Kind.STYLESHEET)


class ParserStops:
    """What parsers may have stood at, of *requests* that *documents* name.

    *documents* has the document of each that one names, by their places. Those of which Chrome's
    priority or the markup says that they can wait stopped none.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> times = [(0, 50), (20, 90), (95, 120)]
    >>> page, style, image = (
    ...     RecordedRequest(key="", url="", start_ms=begin, end_ms=end) for begin, end in times)
    >>> kinds = [Kind.DOCUMENT, Kind.STYLESHEET, Kind.IMAGE]
    >>> stops = ParserStops([page, style, image], kinds, {1: 0, 2: 0})
    >>> stops.last_before(2), stops.last_before(1)
    (1, None)
    """

    def __init__(
        self,
        requests: Sequence[RecordedRequest],
        kinds: Sequence[Kind],
        documents: Mapping[int, int],
    ) -> None:
        self._requests = requests
        self._documents = documents
        self._ends = sorted(
            (end_ms, index)
            for index in documents
            if kinds[index] in _STOPPING
            and _may_stop(requests[index])
            and (end_ms := requests[index].end_ms) is not None
        )

    def last_before(self, index: int) -> int | None:
        """Return what the parser stood at last before it came upon *index*.

        None where it need not have stood at anything, for the document was there last.
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
    return not can_wait and not (request.flags or {}).get("is_async")


class ParentMatch(NamedTuple):
    """A trigger, and in words what it was worked out from."""

    at: TriggerEvent
    offset_bytes: int | None
    delay_ms: float
    basis: str


def trigger_of(
    child: RecordedRequest, parent: RecordedRequest, parent_kind: Kind, *, direct: bool
) -> ParentMatch:
    """Return the trigger of *child*, an event of *parent*.

    *direct* says that nothing that was left out of the page stood between the two.
    """
    if child.is_pushed:
        return ParentMatch(
            TriggerEvent.REQUEST, None, _after(child, _left_ms(parent)), "trigger from the push"
        )
    if child.redirect_of is not None and direct:
        return ParentMatch(
            TriggerEvent.COMPLETE, None, _after(child, parent.end_ms), "trigger from the redirect"
        )
    first_ms = parent.start_ms if parent.first_byte_ms is None else parent.first_byte_ms
    if _is_before(child, first_ms):
        delay_ms = _after(child, _left_ms(parent))
        return ParentMatch(
            TriggerEvent.REQUEST, None, delay_ms, "trigger for a request before its parent came"
        )
    if parent_kind is Kind.DOCUMENT and direct and child.offset is not None:
        offset = _on_the_wire(child.offset, parent)
        if offset is not None:
            delay_ms = _after(child, _arrival_ms(offset, parent))
            return ParentMatch(
                TriggerEvent.OFFSET, offset, delay_ms, "trigger from the place in the document"
            )
    if _is_before(child, parent.end_ms):
        offset, delay_ms = _arrived(parent, child)
        if offset:
            return ParentMatch(
                TriggerEvent.OFFSET,
                offset,
                max(0.0, delay_ms + child.held_ms),
                "trigger from the clock",
            )
    return _when_there(child, parent, parent_kind)


def _when_there(child: RecordedRequest, parent: RecordedRequest, parent_kind: Kind) -> ParentMatch:
    """Return what follows when all of the parent is there; a script has then to run, too."""
    ends = (parent.end_ms, parent.first_byte_ms, parent.start_ms)
    end_ms = next((at_ms for at_ms in ends if at_ms is not None), None)
    if child.start_ms is None or end_ms is None:
        event = TriggerEvent.EXECUTED if parent_kind is Kind.SCRIPT else TriggerEvent.COMPLETE
        return ParentMatch(event, None, 0.0, "trigger without times")
    basis = "trigger from the kind of the parent"
    ran_ms = end_ms + parent.parse_ms + parent.execute_ms
    if parent_kind is Kind.SCRIPT and child.start_ms >= ran_ms:
        return ParentMatch(
            TriggerEvent.EXECUTED, None, max(0.0, child.start_ms - ran_ms + child.held_ms), basis
        )
    return ParentMatch(TriggerEvent.COMPLETE, None, _after(child, end_ms), basis)


def _on_the_wire(decoded_offset: int, parent: RecordedRequest) -> int | None:
    """Return the offset in what was transferred, as if each part were compressed alike.

    None stands for what lies behind the end: a decoded size, or the offset, is not what it seems.
    """
    size, decoded = parent.body_bytes, parent.decoded_bytes
    if not size:
        return None
    if decoded is None or decoded <= size:
        return decoded_offset if decoded_offset <= size else None
    return decoded_offset * size // decoded if decoded_offset <= decoded else None


def _arrival_ms(offset: int, parent: RecordedRequest) -> float | None:
    """Return when *offset* bytes of *parent* had come: by its pieces, else at an even pace."""
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
    """Return how many bytes of *parent* had come when *child* was asked for, and for how long."""
    now_ms, size = child.start_ms or 0.0, parent.body_bytes or 0
    first_ms, end_ms = parent.first_byte_ms, parent.end_ms
    come = [(at_ms, n_bytes) for at_ms, n_bytes in parent.pieces if at_ms <= now_ms]
    n_come = min(size, sum(n_bytes for _, n_bytes in come))
    if n_come:
        return n_come, now_ms - come[-1][0]
    if first_ms is None or end_ms is None or end_ms <= first_ms:
        return 0, 0.0
    if parent.pieces:  # the first bytes came, but no piece tells how many
        return min(1, size), now_ms - first_ms
    # In whole nanoseconds: a share as a float may fall a hair short of a byte.
    n_come = size * ms(now_ms - first_ms) // ms(end_ms - first_ms)
    return max(1, n_come) if size else 0, 0.0


def _left_ms(parent: RecordedRequest) -> float | None:
    """Return when the request had left: that is what a load calls the request for it."""
    return parent.start_ms if parent.sent_ms is None else parent.sent_ms


def _after(child: RecordedRequest, event_ms: float | None) -> float:
    if child.start_ms is None or event_ms is None:
        return 0.0
    return max(0.0, child.start_ms + child.held_ms - event_ms)


def _is_before(child: RecordedRequest, event_ms: float | None) -> bool:
    return child.start_ms is not None and event_ms is not None and child.start_ms < event_ms
