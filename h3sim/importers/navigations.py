"""Navigations: the page loads of a recording that went on while its user left for another page.

Recorders that keep their log over navigations ("Persist Logs", "Preserve log") may put all of them
into one page. A load begins with the request of its document. A request belongs to the load whose
document it names as its Referer or initiator, and otherwise to the last one that had begun.

A document is that of a page, not of a frame or a script, if the browser says so (Sec-Fetch-Dest,
"Fetch Metadata Request Headers"). Where it does not, the page before must have come to rest, and
must make no request once the document has arrived, and something must show that a browser displayed
it: its Accept field, the recorder's word for its kind, or a request that names it.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from typing import TYPE_CHECKING, TypeVar

from h3sim.importers.recorded_request import (
    REDIRECTS,
    RecordedRequest,
    RequestOutcome,
    by_time,
    kind_of,
)
from h3sim.importers.request_fields import address, without_fragment
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence


RequestT = TypeVar("RequestT", bound=RecordedRequest)
_QUIET_MS = 500.0
"""A page is at rest if nothing was under way for this long, as for Lighthouse and Puppeteer."""
_LOADED_OUTCOMES = (
    RequestOutcome.ANSWERED,
    RequestOutcome.CACHE,
    RequestOutcome.SERVICE_WORKER,
    RequestOutcome.OVERRIDDEN,
)
_DEPENDENT_INITIATORS = ("parser", "preload", "preflight")
"""Initiator types of what a page contains, which no navigation has."""


def split_navigations(
    requests: Sequence[RequestT], load_event_ms: float | None = None
) -> list[list[RequestT]]:
    """Return *requests* by page load, in the order of their documents; one list if there is one.

    *load_event_ms* is the time of the load event of the first load. Redirects must be joined. A
    page that replaces itself before it has loaded ("client redirect") begins no other load.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> def asked(url, at_ms, **more):
    ...     return RecordedRequest(key="", url=url, start_ms=at_ms, end_ms=at_ms + 90, **more)
    >>> one, two = "https://a.example/1", "https://a.example/2"
    >>> requests = [asked(one, 0, kind=Kind.DOCUMENT), asked(two, 9000, kind=Kind.DOCUMENT),
    ...             asked("https://a.example/beacon", 9010, referer=one),
    ...             asked("https://a.example/b.png", 9100, referer=two)]
    >>> [[each.url[-5:] for each in load] for load in split_navigations(requests)]
    [['ple/1', 'eacon'], ['ple/2', 'b.png']]
    """
    finder = _NavigationFinder(requests, load_event_ms)
    chains = finder.chains()
    if len(chains) < 2:
        return [[*requests]]
    position = {index: number for number, index in enumerate(finder.order)}
    load_by_hop = {index: number for number, chain in enumerate(chains) for index in chain}
    begun_at = [position[chain[0]] for chain in chains]
    loads_by_url: dict[str, list[int]] = {}
    for number, chain in enumerate(chains):
        loads_by_url.setdefault(without_fragment(requests[chain[-1]].url), []).append(number)
    loads: list[list[RequestT]] = [[] for _ in chains]
    last_begun = _last_begun(begun_at, len(requests))
    for index, request in enumerate(requests):
        load = load_by_hop.get(index)
        if load is None:
            last = last_begun[position[index]]
            named = [loads_by_url.get(url, []) for url in _referring_urls(request)]
            # Of several loads of one address, the last that had begun.
            begun = [each[: bisect_right(each, last)][-1:] for each in named]
            load = max(itertools.chain.from_iterable(begun), default=last)
        loads[load].append(request)
    return loads


def _last_begun(begun_at: Sequence[int], n_requests: int) -> list[int]:
    """Return by position which load had begun last; before all of them it is the first."""
    found, load = [], 0
    for position in range(n_requests):
        while load + 1 < len(begun_at) and begun_at[load + 1] <= position:
            load += 1
        found.append(load)
    return found


def _referring_urls(request: RecordedRequest) -> list[str]:
    """Return the URLs that tell which page made a request.

    A Referer without a path says little to another host: it may be cut to its origin (Referrer
    Policy § 3, "strict-origin-when-cross-origin" is the default).
    """
    urls = [request.initiator, *request.stack]
    referer, target = address(request.referer), address(request.url)
    if referer is not None and target is not None:
        is_complete = referer.path != "/" or referer.host == target.host
        urls += [request.referer] if is_complete else []
    return [without_fragment(url) for url in urls if url]


class _NavigationFinder:
    """Search for the navigations among *requests*, by the best evidence."""

    def __init__(self, requests: Sequence[RecordedRequest], load_event_ms: float | None) -> None:
        self._requests = requests
        self.order = by_time(requests)
        self._load_event_ms = load_event_ms
        self._last_named_ms: dict[str, float] = {}
        """Time of the last request that names a URL as what made it."""
        for request in requests:
            for url in _referring_urls(request):
                last_ms = self._last_named_ms.get(url, -math.inf)
                self._last_named_ms[url] = max(last_ms, _start_ms(request))

    def chains(self) -> list[list[int]]:
        """Return for each navigation the indices of its redirects and, last, of its document."""
        chains: list[list[int]] = []
        busy_until_ms = -math.inf
        page = ""
        for index in self.order:
            request = self._requests[index]
            if self._may_navigate(request):
                chain = self._chain(index)
                first = self._requests[chain[0]]
                is_redirect = bool(chains) and chain[0] in chains[-1]
                if not chains or (
                    not is_redirect and self._leaves(page, request, first, busy_until_ms, chains)
                ):
                    chains.append(chain)
                    page, busy_until_ms = without_fragment(request.url), -math.inf
            if request.end_ms is not None:
                busy_until_ms = max(busy_until_ms, request.end_ms)
        return chains

    def _may_navigate(self, request: RecordedRequest) -> bool:
        is_document = kind_of(request)[0] is Kind.DOCUMENT and request.outcome in _LOADED_OUTCOMES
        is_of_page = request.is_framed or request.is_xhr or request.is_pushed
        is_hop = bool(request.redirect_to) or request.status in REDIRECTS
        if not is_document or is_of_page or is_hop or request.is_speculative:
            return False
        if request.destination:
            return request.destination == "document"
        return request.accepts_html is not False

    def _chain(self, index: int) -> list[int]:
        """Return the redirects that led to a request, from the first one on, and itself."""
        chain = {index: None}
        before = self._requests[index].redirect_of
        while before is not None and before not in chain:
            chain[before] = None
            before = self._requests[before].redirect_of
        return [*reversed(chain)]

    def _leaves(
        self,
        page: str,
        request: RecordedRequest,
        first: RecordedRequest,
        busy_until_ms: float,
        chains: Sequence[object],
    ) -> bool:
        """Return whether the request of a document left *page*, the one before.

        *first* is the first of its redirects.
        """
        if request.is_user_activated or first.is_user_activated:
            return True
        begun_ms = _start_ms(first)
        is_quiet = begun_ms >= busy_until_ms + _QUIET_MS
        load_event_ms = self._load_event_ms if len(chains) == 1 else None
        if request.destination:
            is_loaded = load_event_ms is not None and begun_ms >= load_event_ms
            return is_quiet or is_loaded
        if not (is_quiet and self._is_like_a_page(request)):
            return False
        is_loaded = load_event_ms is None or begun_ms >= load_event_ms
        is_reload = without_fragment(request.url) == page
        # Until the next document arrives, the page before may still make requests.
        arrived_ms = _start_ms(request) if request.end_ms is None else request.end_ms
        is_left = is_reload or self._last_named_ms.get(page, -math.inf) <= arrived_ms
        return is_loaded and is_left

    def _is_like_a_page(self, request: RecordedRequest) -> bool:
        """Return whether anything shows that a browser displayed the response as a document."""
        if request.initiator_type in _DEPENDENT_INITIATORS:
            return False
        is_named = without_fragment(request.url) in self._last_named_ms
        return is_named or request.accepts_html is True or request.kind is Kind.DOCUMENT


def _start_ms(request: RecordedRequest) -> float:
    return -math.inf if request.start_ms is None else request.start_ms
