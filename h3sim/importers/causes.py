"""Causes of requests: the parent, the event that triggered each, its loading attributes.

Only values with evidence are set. Recorded markup, parsed earlier, takes precedence; then the
recorder's render-blocking status, then Chrome's initial priority, then the order of requests.

A cause always precedes its effect, by time and then by position in the file, so that the result is
a tree even if a recording has cycles, or several responses of the same millisecond.

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
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.html import read_markup, scan
from h3sim.importers.recorded_request import (
    MULTIPLEXED,
    NON_BLOCKING_SCRIPT_LEVELS,
    QUIC,
    by_time,
    level_of,
    recorded_ms,
)
from h3sim.importers.request_fields import without_fragment
from h3sim.page import FetchPriority, Kind, Level, TriggerEvent
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from h3sim.importers.html import Reference, Scan
    from h3sim.importers.recorded_request import RecordedRequest


_MAX_INDEXED_LINES = 200_000
"""Lines of a document whose offsets are computed: a file of line breaks must not fill memory."""
_SCRIPT_INITIATORS = ("script", "preflight")
"""Initiator types of requests made by scripts: a tag with the same URL did not cause them."""
BLOCKING_KINDS = (Kind.SCRIPT, Kind.STYLESHEET)
"""Kinds whose elements block the parser or what is painted, wherever they are preloaded."""


def apply_markup(requests: Sequence[RecordedRequest], inferred: Counter[str]) -> None:
    """Set for each request its offset in a document's text, and the attributes of its tag.

    A request without initiator gets the document as initiator. The texts are then discarded.
    """
    pages = {without_fragment(each.url) for each in requests if each.resolved_kind is Kind.DOCUMENT}
    for document in requests:
        if document.text:
            # What names another document as its Referer is not of this one, whatever its markup.
            others = pages - {without_fragment(document.url)}
            candidates = [each for each in requests if without_fragment(each.referer) not in others]
            _apply_document_markup(document, candidates, inferred)
            document.text = ""


def _apply_document_markup(
    document: RecordedRequest, requests: Sequence[RecordedRequest], inferred: Counter[str]
) -> None:
    document_url = without_fragment(document.url)
    data = document.text.encode("utf-8", "replace")
    document.decoded_bytes = len(data)
    found = scan(data)
    document.shows_nothing = not found.has_content
    references = _references_by_url(found, document_url)
    line_offsets: list[int] = []
    for request in requests:
        url, has_initiator = without_fragment(request.url), bool(request.initiator)
        is_scripted = request.stack or request.initiator_type in _SCRIPT_INITIATORS
        if request is document or request.offset is not None or is_scripted:
            continue
        if has_initiator and without_fragment(request.initiator) != document_url:
            continue
        if url in references:
            reference = references[url]
            request.offset, request.flags = reference.offset, dict(reference.flags)
            if request.flags.get("prefetch"):
                request.resolved_kind = Kind.OTHER  # not part of this page, whatever it is
            if reference.element_offset is not None:
                element_offset = _wire_offset(reference.element_offset, document)
                request.reference_offset_bytes = element_offset
            request.initiator = document.url
            inferred["place and flags from the markup"] += 1
            inferred["parent from the markup"] += not has_initiator
        elif has_initiator and request.line is not None:
            if not line_offsets:  # few documents need them
                line_breaks = itertools.islice(re.finditer(b"\n", data), _MAX_INDEXED_LINES)
                line_offsets = [0, *(line_break.end() for line_break in line_breaks)]
            request.offset = line_offsets[min(request.line, len(line_offsets) - 1)]


class _FirstReference(NamedTuple):
    """First reference to a URL in a document."""

    offset: int
    flags: dict[str, Any]
    element_offset: int | None = None
    """Offset of the first blocking element with the URL of a preload."""


def _references_by_url(found: Scan, document_url: str) -> dict[str, _FirstReference]:
    """Return the first reference to each URL in a document, with the attributes of all its tags."""
    markup = read_markup(found)
    by_url: dict[str, _FirstReference] = {}
    for reference in markup.references:
        url = reference.url_in(document_url)
        known = by_url.get(url, _FirstReference(reference.offset_bytes, {}))
        # If several tags have an attribute, the first one counts.
        flags = reference.flags | known.flags
        is_after_preload = known.flags.get("preload") and not reference.flags.get("preload")
        if _is_found_by_link(reference, known.flags):
            known = known._replace(offset=reference.offset_bytes)
        if is_after_preload and known.element_offset is None and reference.kind in BLOCKING_KINDS:
            flags["in_head"] = reference.flags.get("in_head", False)
            known = known._replace(element_offset=reference.offset_bytes)
        by_url[url] = known._replace(flags=flags)
    return by_url


def _is_found_by_link(reference: Reference, known_flags: Mapping[str, Any]) -> bool:
    """Return whether a preload link requests what a lazy element before it does not."""
    is_waiting = known_flags.get("is_lazy") and not known_flags.get("preload")
    return bool(is_waiting and reference.flags.get("preload"))


_RENDER_BLOCKING = "blocking"
_NOT_RENDER_BLOCKING = frozenset(
    ("non_blocking", "nonblocking", "non_blocking_dynamic", "nonblockingdynamic")
)
"""Words of WebPageTest and Chrome for resources that do not block rendering, in lower case."""
_BLOCKING_IN_HEAD = {"in_head": True, "render_blocking": True}
_HIGH_LEVELS = (Level.VERY_HIGH, Level.HIGH)
"""Chrome's priorities of resources that block the parser before the first image."""


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
    if kind is Kind.IMAGE and level_of(request.priority) in _HIGH_LEVELS and is_parsed:
        # Chrome requests images with Low; only the author's fetchpriority makes it High initially.
        flags["fetchpriority"] = FetchPriority.HIGH
        inferred["fetchpriority from Chrome's priority"] += 1
    if kind not in (Kind.STYLESHEET, Kind.SCRIPT) or request.is_preload:
        return flags
    if not in_document:
        if kind is Kind.SCRIPT and level_of(request.priority) in NON_BLOCKING_SCRIPT_LEVELS:
            flags["is_async"] = True  # scripts added by scripts are async by default
            inferred["async from Chrome's priority"] += 1
        return flags
    blocking_flags: dict[str, Any] = {}
    if request.blocking:
        inferred["in head, async from the recorder's word for blocking"] += 1
        if request.blocking == _RENDER_BLOCKING:
            blocking_flags = _BLOCKING_IN_HEAD
        elif request.blocking in _NOT_RENDER_BLOCKING and kind is Kind.SCRIPT:
            blocking_flags = {"is_async": True}
        elif kind is Kind.SCRIPT and level_of(request.priority) is Level.MEDIUM:
            blocking_flags = {"after_first_image": True}  # it blocks the parser in the body
    elif request.priority:
        inferred["in head, async, blocking from Chrome's priority"] += 1
        blocking_flags = _flags_by_priority(level_of(request.priority), kind, before_image)
    elif request.start_ms is not None:
        inferred["in head, blocking from the order of requests"] += 1
        blocking_flags = _BLOCKING_IN_HEAD if before_image else {"after_first_image": True}
    return flags | blocking_flags


def _flags_by_priority(level: Level | None, kind: Kind, before_image: bool) -> dict[str, Any]:
    """Infer attributes of a resource found by the parser from Chrome's table of priorities.

    Render-blocking stylesheets have the highest priority. Blocking scripts are High before the
    first image and Medium after it; async and deferred scripts are Low. A script that was requested
    behind an image is not in the head, since an image ends that (HTML standard, "in head").
    """
    if kind is Kind.STYLESHEET:
        return _BLOCKING_IN_HEAD if level is Level.VERY_HIGH else {}
    if level in _HIGH_LEVELS:
        return _BLOCKING_IN_HEAD if before_image else {}
    return (
        {"is_async": True} if level in NON_BLOCKING_SCRIPT_LEVELS else {"after_first_image": True}
    )


class ParentEvidence(enum.Enum):
    """Evidence for a parent, the best first."""

    GIVEN = "the recording"
    REDIRECT = "redirect"
    INITIATOR = "initiator"
    STACK = "stack"
    REFERER = "Referer"
    TIMING = "timing"
    NONE = "nothing"


_REFERRING_KINDS = (Kind.DOCUMENT, Kind.STYLESHEET)
"""Kinds that refer to other resources, so that a Referer of such a kind is a parent."""
_SCRIPT_RESPONSE_KINDS = (Kind.SCRIPT, Kind.FETCH)
"""Kinds of the responses for which the callbacks of scripts may wait."""
_ELEMENT_KINDS = (Kind.IMAGE, Kind.MEDIA)
"""Kinds of what elements load that scripts insert."""
_EXPLICIT_EVIDENCE = (ParentEvidence.GIVEN, ParentEvidence.REDIRECT, ParentEvidence.INITIATOR)
"""Evidence that is not worse than a recorded initiator."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Index of a request's parent, or None, with the evidence for it."""

    index: int | None
    basis: ParentEvidence


class _Completions:
    """Completions of some *requests*, given by their *indices*, in order of time.

    A response precedes a request if it was complete by then and, of those at the same instant, if
    it is of a request that came before in the recording.
    """

    def __init__(self, requests: Sequence[RecordedRequest], indices: Iterable[int]) -> None:
        self._requests = requests
        self._position = {index: number for number, index in enumerate(by_time(requests))}
        self._in_order = sorted(
            (end_ms, self._position[index], index)
            for index in indices
            if (end_ms := requests[index].end_ms) is not None
        )

    def before(self, index: int) -> Iterator[int]:
        """Yield the indices of those that precede the request *index*, the last one first."""
        start_ms = self._requests[index].start_ms
        if start_ms is None:
            return
        n_before = bisect_left(self._in_order, (start_ms, self._position[index]))
        for _, position, completed in reversed(self._in_order[:n_before]):
            # An end before its own start is a mistake of the recorder.
            if position < self._position[index]:
                yield completed


class _ParentFinder:
    """Search for the parents of *requests*, among those that were added before."""

    def __init__(self, requests: Sequence[RecordedRequest]) -> None:
        self._requests = requests
        self.page: int | None = None
        """Index of the page's document, once it is added: the parent of last resort."""
        self._added: set[int] = set()
        self._by_url: dict[str, int] = {}
        self._by_url_without_query: dict[str, int] = {}
        self._completions_by_kind = {
            kind: _Completions(
                requests,
                (index for index, request in enumerate(requests) if request.resolved_kind is kind),
            )
            for kind in (Kind.SCRIPT, Kind.STYLESHEET)
        }
        self._completed_for_scripts = _Completions(
            requests,
            (i for i, each in enumerate(requests) if each.resolved_kind in _SCRIPT_RESPONSE_KINDS),
        )

    def add(self, index: int) -> None:
        """Add a request; the requests are added in order of time."""
        # The latest wins: if something is loaded twice, later requests follow the second load.
        url = without_fragment(self._requests[index].url)
        self._by_url[url] = self._by_url_without_query[url.partition("?")[0]] = index
        self._added.add(index)

    def parent(self, index: int) -> Parent:
        """Return the parent of a request, by the best evidence."""
        request = self._requests[index]
        if request.trigger is not None and request.trigger.by in self._added:
            return Parent(request.trigger.by, ParentEvidence.GIVEN)
        if request.parent in self._added:
            return Parent(request.parent, ParentEvidence.GIVEN)
        if request.redirect_of in self._added:
            return Parent(request.redirect_of, ParentEvidence.REDIRECT)
        if (found := self._index_of_url(request.initiator)) is not None:
            return Parent(found, ParentEvidence.INITIATOR)
        for url in request.stack:
            if (found := self._index_of_url(url)) is not None:
                awaited = self._awaited_by_loader(index)
                return Parent(found if awaited is None else awaited, ParentEvidence.STACK)
        if request.initiator_type == "other" and request.resolved_kind in _ELEMENT_KINDS:
            # No parser and no script on a stack: an element that a promise's callback inserted. It
            # may have waited for the last complete response that is of use to a script.
            completed = self._completed_for_scripts.before(index)
            waited_for = next((each for each in completed if each in self._added), None)
            if waited_for is not None:
                return Parent(waited_for, ParentEvidence.TIMING)
        # The Referer of a fetch is the page, not the script that made it.
        is_fetch = request.resolved_kind is Kind.FETCH
        found = None if is_fetch else self._index_of_url(request.referer)
        if found is not None and self._requests[found].resolved_kind in _REFERRING_KINDS:
            return Parent(found, ParentEvidence.REFERER)
        if self.page is None:
            return Parent(None, ParentEvidence.NONE)
        return Parent(self._parent_by_timing(index, self.page), ParentEvidence.TIMING)

    def _awaited_by_loader(self, index: int) -> int | None:
        """Return the script for which a loader of scripts waited before it inserted this one.

        That is the last of those that it had inserted and that had run: loaders such as RequireJS
        insert what a script needs from the event that it is loaded, with their own stack.
        """
        request = self._requests[index]
        if request.resolved_kind is not Kind.SCRIPT:
            return None
        completed = self._completions_by_kind[Kind.SCRIPT].before(index)
        return next(
            (
                each
                for each in completed
                if each in self._added
                and self._requests[each].stack == request.stack
                and starts_after(request, self._requests[each])
            ),
            None,
        )

    def _index_of_url(self, url: str) -> int | None:
        if not url:
            return None
        url = without_fragment(url)
        if url in self._by_url:
            return self._by_url[url]
        # The initiator may be recorded without its query, or with another one.
        return self._by_url_without_query.get(url.partition("?")[0])

    def _parent_by_timing(self, index: int, page: int) -> int:
        """Return the most likely parent of a request without other evidence.

        For a font: the last completed stylesheet. For a fetch, or a kind that markup does not
        refer to: the last completed script. Otherwise: the *page*.
        """
        kind = self._requests[index].resolved_kind
        if kind not in (Kind.FONT, Kind.FETCH, Kind.OTHER):
            return page
        parent_kind = Kind.STYLESHEET if kind is Kind.FONT else Kind.SCRIPT
        completed = self._completions_by_kind[parent_kind].before(index)
        return next((each for each in completed if each in self._added), page)


def find_parents(
    requests: Sequence[RecordedRequest],
    order: Iterable[int],
    root: int,
    redirect_targets: AbstractSet[int],
) -> tuple[dict[int, Parent], int]:
    """Return the parent of each request but *root*, and the number of rejected initiators.

    *order* has the indices of the requests by time, *redirect_targets* those of the documents to
    which the root was redirected. An initiator that starts after its request is rejected.
    """
    finder = _ParentFinder(requests)
    urls = {without_fragment(request.url) for request in requests}
    parents: dict[int, Parent] = {}
    n_rejected = 0
    for index in order:
        if index != root:
            parents[index] = finder.parent(index)
            # The initiator is in the recording, and yet the parent was found by other evidence.
            is_implicit = parents[index].basis not in _EXPLICIT_EVIDENCE
            n_rejected += is_implicit and without_fragment(requests[index].initiator) in urls
        finder.add(index)
        # After redirects the page is their target: a redirect causes no other request.
        if index == root or index in redirect_targets:
            finder.page = index
    return parents, n_rejected


_TCP_TLS_ROUND_TRIPS = 2
"""Round trips of TCP and TLS 1.3 before the first request (RFC 8446 § 2)."""
_QUIC_ROUND_TRIPS = 1
"""Round trips of QUIC before the first request (RFC 9000 § 7)."""
_CLOCK_PRECISION_MS = 1.0
"""Requests that overlap by less may follow each other: recorded times are rounded."""


def connection_setup_ms(request: RecordedRequest, rtt_ms: float) -> float:
    """Return the time in ms that a load takes to open a connection for *request*.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> connection_setup_ms(RecordedRequest(key="0", url="", protocol="h2"), 20)
    40
    """
    return rtt_ms * (
        _QUIC_ROUND_TRIPS if request.protocol.startswith(QUIC) else _TCP_TLS_ROUND_TRIPS
    )


def detect_multiplexing(requests: Iterable[RecordedRequest]) -> None:
    """Set the protocol to h2 if requests overlapped on a connection.

    Early recorders call HTTP/2 and SPDY "unknown", or use the status line of HTTP/1.1. One overlap
    may be due to rounded times; with HTTP/1.1 there is no second one.

    >>> from h3sim.importers.recorded_request import RecordedRequest, ConnectionInfo
    >>> requests = [
    ...     RecordedRequest(key="", url="", protocol="unknown", sent_ms=at, first_byte_ms=at + 50)
    ...     for at in (0, 10, 20)]
    >>> for request in requests:
    ...     request.reached = ConnectionInfo(connection="7")
    >>> detect_multiplexing(requests)
    >>> requests[0].protocol
    'h2'
    """
    by_connection: dict[tuple[str, str], list[RecordedRequest]] = {}
    for request in requests:
        is_known = request.reached.connection and not request.protocol.startswith(MULTIPLEXED)
        if is_known and request.sent_ms is not None and request.first_byte_ms is not None:
            key = request.reached.connection, request.reached.ip
            by_connection.setdefault(key, []).append(request)
    for on_connection in by_connection.values():
        waits = sorted((each.sent_ms or 0.0, each.first_byte_ms or 0.0) for each in on_connection)
        n_overlaps = sum(
            next_sent_ms < answered_ms - _CLOCK_PRECISION_MS
            for (_, answered_ms), (next_sent_ms, _) in pairwise(waits)
        )
        if n_overlaps > 1:
            for request in on_connection:
                request.protocol = "h2"


def set_release_times(
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
    >>> set_release_times([page, image], [0, 0], [30, 30], page)
    >>> page.asked_ms, image.asked_ms
    (85.0, 85.0)
    """
    timed = [
        (request, request.start_ms, request.sent_ms, group, connection_setup_ms(request, rtt_ms))
        for request, group, rtt_ms in zip(requests, groups, rtts_ms, strict=True)
        if request.start_ms is not None and request.sent_ms is not None
    ]
    # The connection of a group is ready when its first request is sent.
    ready_ms: dict[int, float] = {}
    for _, _, sent_ms, group, _ in timed:
        ready_ms[group] = min(sent_ms, ready_ms.get(group, sent_ms))
    for request, start_ms, sent_ms, group, setup_ms in timed:
        if start_ms >= ready_ms[group] and request is not root:
            request.asked_ms = max(start_ms, sent_ms)
            continue
        # With one connection all wait for it; with HTTP/1.1 each waits for its own.
        is_shared = request.protocol.startswith(MULTIPLEXED)
        connected_ms = ready_ms[group] if is_shared else sent_ms
        dns_ms = 0.0 if request is root else request.reached.dns_ms or 0.0
        request.asked_ms = connected_ms - setup_ms - dns_ms


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
        self._completions = _Completions(
            requests, (index for index in documents if _may_block_parser(requests[index]))
        )

    def last_before(self, index: int) -> int | None:
        """Return the last resource that blocked the parser before it reached *index*.

        None if nothing need have blocked it, as the document completed last.
        """
        document = self._documents.get(index)
        document_end_ms = None if document is None else self._requests[document].end_ms
        if document_end_ms is None:
            return None
        for stop in self._completions.before(index):
            end_ms = self._requests[stop].end_ms
            if end_ms is None or end_ms <= document_end_ms:
                return None
            if self._documents[stop] == document:
                return stop
        return None


def _may_block_parser(request: RecordedRequest) -> bool:
    is_deferred = level_of(request.priority) in NON_BLOCKING_SCRIPT_LEVELS or request.is_preload
    has_blocking_kind = request.resolved_kind in BLOCKING_KINDS
    return has_blocking_kind and not is_deferred and not (request.flags or {}).get("is_async")


class InferredTrigger(NamedTuple):
    """Event of the parent that triggered a request."""

    at: TriggerEvent
    delay_ms: float
    basis: str
    """The evidence in words, after "trigger", for the counts of the import."""
    offset_bytes: int | None = None


def trigger_of(child: RecordedRequest, parent: RecordedRequest, *, direct: bool) -> InferredTrigger:
    """Return the trigger of *child*, an event of *parent*, by the times and offsets recorded.

    *direct*: no resource between the two was left out of the page.
    """
    if child.is_pushed:
        return InferredTrigger(
            TriggerEvent.REQUEST, _delay_after_ms(child, _request_sent_ms(parent)), "from the push"
        )
    if child.redirect_of is not None and direct:
        return InferredTrigger(
            TriggerEvent.COMPLETE, _delay_after_ms(child, parent.end_ms), "from the redirect"
        )
    first_ms = parent.start_ms if parent.first_byte_ms is None else parent.first_byte_ms
    if _starts_before(child, first_ms):
        delay_ms = _delay_after_ms(child, _request_sent_ms(parent))
        return InferredTrigger(
            TriggerEvent.REQUEST, delay_ms, "for a request before its parent came"
        )
    if parent.resolved_kind is Kind.DOCUMENT and direct and child.offset is not None:
        offset = _wire_offset(child.offset, parent)
        if offset is not None:
            delay_ms = _delay_after_ms(child, _arrival_ms(offset, parent))
            basis = "from the place in the document"
            return InferredTrigger(TriggerEvent.OFFSET, delay_ms, basis, offset)
    if _starts_before(child, parent.end_ms):
        offset, since_ms = _received_before(parent, child)
        if offset:
            delay_ms = max(0.0, since_ms + child.held_ms)
            return InferredTrigger(TriggerEvent.OFFSET, delay_ms, "from the clock", offset)
    return _trigger_at_completion(child, parent)


def trigger_of_import(child: RecordedRequest, parent: RecordedRequest) -> InferredTrigger:
    """Return the trigger of a module that *parent* imports: the browser reads its imports."""
    delay_ms = _delay_after_ms(child, parent.end_ms)
    return InferredTrigger(TriggerEvent.COMPLETE, delay_ms, "from the imports of a module")


def starts_after(child: RecordedRequest, parent: RecordedRequest) -> bool:
    """Return whether *child* was requested once *parent* had ended and run, as far as is known."""
    if child.start_ms is None or parent.end_ms is None:
        return False
    return child.start_ms >= parent.end_ms + parent.parse_ms + parent.execute_ms


def _trigger_at_completion(child: RecordedRequest, parent: RecordedRequest) -> InferredTrigger:
    """Return the trigger at the completion of the parent or, for a script, its execution."""
    times_ms = (parent.end_ms, parent.first_byte_ms, parent.start_ms)
    end_ms = next((at_ms for at_ms in times_ms if at_ms is not None), None)
    is_script = parent.resolved_kind is Kind.SCRIPT
    event = TriggerEvent.EXECUTED if is_script else TriggerEvent.COMPLETE
    if child.start_ms is None or end_ms is None:
        return InferredTrigger(event, 0.0, "without times")
    executed_ms = end_ms + parent.parse_ms + parent.execute_ms
    delay_ms = max(0.0, child.start_ms - executed_ms + child.held_ms)
    if event is TriggerEvent.COMPLETE or child.start_ms < executed_ms:
        event, delay_ms = TriggerEvent.COMPLETE, _delay_after_ms(child, end_ms)
    return InferredTrigger(event, delay_ms, "from the kind of the parent")


def _wire_offset(decoded_offset: int, parent: RecordedRequest) -> int | None:
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
    received = 0
    for at_ms, n_bytes in parent.pieces:
        received += n_bytes
        if received >= offset:
            return at_ms
    first_ms, end_ms, size = parent.first_byte_ms, parent.end_ms, parent.body_bytes
    if first_ms is None or end_ms is None or not size:
        return parent.start_ms if end_ms is None else end_ms
    return first_ms + (end_ms - first_ms) * min(offset, size) / size


def _received_before(parent: RecordedRequest, child: RecordedRequest) -> tuple[int, float]:
    """Return the bytes of *parent* received before the request of *child*, and the time since."""
    now_ms, size = recorded_ms(child.start_ms or 0.0), parent.body_bytes or 0
    first_ms, end_ms = parent.first_byte_ms, parent.end_ms
    pieces = [(recorded_ms(at_ms), n_bytes) for at_ms, n_bytes in parent.pieces]
    received = [(at_ms, n_bytes) for at_ms, n_bytes in pieces if at_ms <= now_ms]
    n_received = min(size, sum(n_bytes for _, n_bytes in received))
    if n_received:
        last_piece_ms, _ = received[-1]
        return n_received, now_ms - last_piece_ms
    if first_ms is None or end_ms is None or end_ms <= first_ms:
        return 0, 0.0
    if parent.pieces:  # bytes arrived before the first chunk, in unknown number
        return min(1, size), now_ms - first_ms
    # In whole nanoseconds: with floats the share may round down to one byte less.
    n_received = size * ms(now_ms - first_ms) // ms(end_ms - first_ms)
    return max(1, n_received) if size else 0, 0.0


def _request_sent_ms(parent: RecordedRequest) -> float | None:
    """Return when *parent* was sent, else when it started: its request time in a load."""
    return parent.start_ms if parent.sent_ms is None else parent.sent_ms


def _delay_after_ms(child: RecordedRequest, event_ms: float | None) -> float:
    """Return the time from an event until the browser released *child*, 0 if it is unknown."""
    if child.start_ms is None or event_ms is None:
        return 0.0
    return max(0.0, child.start_ms + child.held_ms - event_ms)


def _starts_before(child: RecordedRequest, event_ms: float | None) -> bool:
    return child.start_ms is not None and event_ms is not None and child.start_ms < event_ms
