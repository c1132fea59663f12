"""The requests of a browser: discovered, delayed by rules and limits, and sent."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol

from h3sim.browser.base import ScheduledRequest
from h3sim.browser.capabilities import is_hinted
from h3sim.browser.document import hinted
from h3sim.browser.joins import JoinedTriggers
from h3sim.browser.model import TightMode
from h3sim.page import FetchPriority, Kind, Level, TriggerEvent
from h3sim.page.resource import offsets_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from h3sim.browser.model import BrowserModel
    from h3sim.browser.tailing import Tailing
    from h3sim.page import Page, Resource


class LoadProgress:
    """The progress of a load, for rules that delay requests."""

    __slots__ = ("has_passed_head", "in_flight", "is_loaded", "is_parsed")

    def __init__(self) -> None:
        self.in_flight: dict[int, None] = {}
        """The resources whose responses are not complete."""
        self.has_passed_head = False
        """True if the parser has passed all references of the head."""
        self.is_parsed = False
        """True from DOMContentLoaded on."""
        self.is_loaded = False
        """True from the load event on."""

    @property
    def n_in_flight(self) -> int:
        """The number of requests without a complete response."""
        return len(self.in_flight)


class _DelayedRequest(NamedTuple):
    """A request that becomes due; of those at one instant, the first discovered comes first."""

    at_ns: int
    number: int
    """Its position in the order of discovery."""
    resource: int


class Requests:
    """A queue of requests, sent first in, first out, at most *limit* at once (None: unlimited).

    A request that one of *rules* holds is overtaken by those after it. With *ranks* of the
    resources, held requests leave by rank, and so do requests at the same instant: Chrome's loader
    sorts what it holds by priority (`resource_load_scheduler.cc`), and its HTTP/2 session what it
    has not written (`spdy_write_queue.cc`). The load event waits for delayed requests of *awaited*
    resources only: other delayed requests are timers. *tailing* is one more rule, with timers.

    >>> requests = Requests(limit=1)
    >>> requests.ask(0, 0, 0, after=None); requests.ask(1, 0, 0, after=None)
    >>> requests.due(0), requests.n_open
    ([ScheduledRequest(at_ns=0, resource=0)], 2)
    >>> requests.on_finished(0); requests.due(7)
    [ScheduledRequest(at_ns=7, resource=1)]
    """

    def __init__(
        self,
        limit: int | None,
        rules: Sequence[RequestRule] = (),
        ranks: Sequence[int] = (),
        awaited: Collection[int] = (),
        tailing: Tailing | None = None,
    ) -> None:
        self.progress = LoadProgress()
        self._tailing = tailing
        self._limit = limit
        self._awaited = frozenset(awaited)
        self._n_awaited_delayed = 0
        """The number of delayed requests that the load event waits for."""
        self._rules = tuple(rules) if tailing is None else (*rules, tailing)
        self._ranks = ranks
        self._delayed: list[_DelayedRequest] = []
        """A heap, the next one first."""
        self._ready: deque[int] = deque()
        """The resources to request as soon as the limit and the rules allow."""
        self.after: dict[int, int | None] = {}
        """The activity, by index, that caused each request."""

    @property
    def n_open(self) -> int:
        """The number of resources whose request or complete response is outstanding.

        Delayed requests count only if they are awaited.
        """
        return len(self._ready) + self.progress.n_in_flight + self._n_awaited_delayed

    def n_open_of(self, resources: Iterable[int]) -> int:
        """Return how many of *resources*, none of which is awaited, `n_open` counts.

        >>> requests = Requests(limit=1)
        >>> for resource, delay_ns in ((0, 0), (1, 0), (2, 9)):
        ...     requests.ask(resource, 0, delay_ns, after=None)
        >>> requests.n_open_of([1, 2, 3])
        1
        """
        in_flight = self.progress.in_flight
        return sum(each in in_flight or each in self._ready for each in resources)

    @property
    def next_at_ns(self) -> int | None:
        """Time of the next delayed request, or of the end of a rule's delay."""
        until_ns = None if self._tailing is None or not self._ready else self._tailing.until_ns
        delayed_ns = self._delayed[0].at_ns if self._delayed else None
        if until_ns is None or delayed_ns is None:
            return until_ns if delayed_ns is None else delayed_ns
        return min(until_ns, delayed_ns)

    def ask(
        self,
        resource: int,
        now_ns: int,
        delay_ns: int,
        *,
        after: int | None,
        is_alternative: bool = False,
    ) -> None:
        """Request a resource after a delay; does nothing if it was requested before.

        With *is_alternative*, a request that is still delayed moves to an earlier time.
        """
        if resource in self.after:
            delayed = next((each for each in self._delayed if each.resource == resource), None)
            if not is_alternative or delayed is None or delayed.at_ns <= now_ns + delay_ns:
                return
            self._delayed.remove(delayed)
            heapify(self._delayed)
            self._n_awaited_delayed -= resource in self._awaited
        self.after[resource] = after
        if delay_ns:
            delayed = _DelayedRequest(now_ns + delay_ns, len(self.after), resource)
            heappush(self._delayed, delayed)
            if resource in self._awaited:
                self._n_awaited_delayed += 1
        else:
            self._ready.append(resource)

    def ripen(self, now_ns: int) -> None:
        """Queue the requests whose delay is over."""
        while self._delayed and self._delayed[0].at_ns <= now_ns:
            resource = heappop(self._delayed).resource
            if resource in self._awaited:
                self._n_awaited_delayed -= 1
            self._ready.append(resource)

    def due(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that leave now."""
        leaving: list[int] = []
        held: list[int] = []
        progress = self.progress
        if self._tailing is not None:
            self._tailing.update(now_ns, progress, self._ready)
        while self._ready and (self._limit is None or progress.n_in_flight < self._limit):
            resource = self._ready.popleft()
            # One by one: a request that leaves here counts for those after it.
            if any(rule.holds(resource, progress) for rule in self._rules):
                held.append(resource)
            else:
                progress.in_flight[resource] = None
                leaving.append(resource)
        if self._ranks:
            held.sort(key=self._ranks.__getitem__)
            leaving.sort(key=self._ranks.__getitem__)
        # `extendleft` reverses them, so they are reversed before: they keep their order, in front.
        self._ready.extendleft(reversed(held))
        due = [ScheduledRequest(now_ns, resource) for resource in leaving]
        if self._tailing is not None:
            was_tailing = self._tailing.until_ns is not None
            self._tailing.update(now_ns, progress, self._ready)
            if was_tailing and self._tailing.until_ns is None:  # as the longest delay is over
                due += self.due(now_ns)
        return due

    def on_finished(self, resource: int) -> None:
        """Record that the response with a resource is complete."""
        del self.progress.in_flight[resource]


LAYOUT_KINDS = (Kind.FONT, Kind.IMAGE)
"""The kinds that a stylesheet references and that are requested once the layout needs them."""
_LAZY_KINDS = (Kind.IMAGE, Kind.MEDIA, Kind.DOCUMENT)
"""The kinds of elements that may have `loading=lazy`."""


def is_lazy(resource: Resource) -> bool:
    """Return whether its request waits until it is near the viewport (`loading=lazy`).

    Only an element waits: a preload link, an Early Hint and a push request it as soon as they are
    known, and the element then uses what they have loaded.
    """
    found = resource.discovered
    is_found_by_element = not resource.preload and (
        found is None or found.at is not TriggerEvent.REQUEST
    )
    return resource.is_lazy and is_found_by_element and resource.kind in _LAZY_KINDS


def is_of_inline_style(resource: Resource) -> bool:
    """Return whether only CSS inside its document refers to a resource that layout requests."""
    found = resource.discovered
    is_of_css = resource.in_style and not resource.preload and resource.kind in LAYOUT_KINDS
    return is_of_css and found is not None and found.at is TriggerEvent.OFFSET


def first_paint_gates(page: Page) -> Iterator[int]:
    """Yield what the first paint waited for when *page* was recorded (`Page.first_paint`).

    What waits for a layout itself is left out, as an edit may have made it lazy; so is the root, of
    which the parser knows how much has to be there.
    """
    for id_ in () if page.first_paint is None else page.first_paint.after:
        ancestors = [page.index[id_]]
        for index in ancestors:
            found = page.resources[index].discovered
            parents = () if found is None else found.waits_for
            ancestors += [new for by in parents if (new := page.index[by]) not in ancestors]
        resources = [page.resources[index] for index in ancestors]
        waits = any(is_lazy(each) or each.kind in LAYOUT_KINDS for each in resources)
        if not waits and ancestors[0] != page.root:
            yield ancestors[0]


PREFETCHING_MODES = (TightMode.CHROME_95, TightMode.CHROME_118)
"""The modes of browsers that prefetch before the load event.

Chromium 156 requests what a prefetch link names once the tight mode is over, with the lowest
priority (measured in November 2026). Firefox waits until the page has loaded (`nsPrefetchService`).
"""


class Discoverer:
    """Requests the resources of *page* through *requests*; resources are identified by index.

    Lazy ones wait for the first layout if they are near the viewport, otherwise for the load event.
    Near the viewport are those above the fold, and those that a browser requested when the page was
    recorded, as nobody scrolled. Unless the browser *prefetches_early*, what prefetch links name
    waits for the load event, too.
    """

    def __init__(
        self, page: Page, requests: Requests, *, has_scanner: bool, prefetches_early: bool
    ) -> None:
        self._prefetches_early = prefetches_early
        self._page = page
        self._requests = requests
        self._has_scanner = has_scanner
        self._joined = JoinedTriggers(page)
        self._joined_children = frozenset(join.child for join in page.joins)
        self._lazy: list[int] = []
        """The lazy resources that were discovered, requested or not."""
        self._painted: int | None = None
        """The activity of the first layout; None before it."""
        self._loaded: int | None = None
        """The load event as an activity; None before it."""

    def ask(
        self,
        index: int,
        now_ns: int,
        after: int | None,
        *,
        delayed: bool = False,
        delay_ns: int = 0,
    ) -> None:
        """Request a discovered resource because of the activity *after*, *delay_ns* later.

        If *delayed*, the recorded delay is added.
        """
        resource = self._page.resources[index]
        if self._waits_for_layout_or_load(index):
            self._lazy.append(index)
            self._request_lazy(now_ns)
            return
        if delayed:
            assert resource.discovered is not None  # noqa: S101 - something led to it
            delay_ns += resource.discovered.delay_ns
        self._requests.ask(index, now_ns, delay_ns, after=after)

    def ask_timers(self, now_ns: int) -> None:
        """Request what waits for a time since navigation start, or for the first of several."""
        for child, at_ns in self._joined.timers(now_ns):
            self._ask_joined(child, at_ns, now_ns, None)

    def on_event(
        self,
        parent: int,
        at: TriggerEvent,
        now_ns: int,
        after: int | None,
        matches: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """Request what waited for this event of a resource last, among several.

        The recorded delay counts from the last event.
        """
        if self._joined_children:
            for child, at_ns in self._joined.fire(parent, at, now_ns, matches):
                self._ask_joined(child, at_ns, now_ns, after)

    def _waits_for_layout_or_load(self, index: int) -> bool:
        """Return whether a discovered resource waits for a layout or for the load event.

        A prefetch that others wait for does not: the page would wait for itself.
        """
        resource = self._page.resources[index]
        is_prefetch = resource.is_prefetched and index not in self._page.children
        waits_for_layout = is_lazy(resource) or is_of_inline_style(resource)
        return waits_for_layout or (is_prefetch and not self._prefetches_early)

    def _ask_joined(self, child: int, at_ns: int, now_ns: int, after: int | None) -> None:
        if self._waits_for_layout_or_load(child):
            self.ask(child, now_ns, after)
            return
        self._requests.ask(child, now_ns, at_ns - now_ns, after=after, is_alternative=True)

    def on_painted(self, activity: int, now_ns: int) -> None:
        """Request the lazy resources near the viewport, now and from now on."""
        self._painted = activity
        self._request_lazy(now_ns)

    def on_loaded(self, activity: int, now_ns: int) -> None:
        """Request the other lazy resources, now and from now on."""
        self._loaded = activity
        self._request_lazy(now_ns)

    def children(self, index: int, at: TriggerEvent) -> Iterator[int]:
        """Yield the resources that this trigger of a resource leads to; joins are `on_event`."""
        for child in self._page.children.get(index, ()):
            if child in self._joined_children:
                continue
            discovery = self._page.resources[child].discovered
            assert discovery is not None  # noqa: S101 - a root is nobody's child
            if discovery.at is at:
                yield child

    def children_of_sheet(self, sheet: int) -> Iterator[int]:
        """Yield what a stylesheet leads to, by any event; joins are `on_event`."""
        children = self._page.children.get(sheet, ())
        return (child for child in children if child not in self._joined_children)

    def offsets(self, index: int) -> list[tuple[int, int]]:
        """Return the stream offsets at which children are discovered, the nearest last."""
        resource = self._page.resources[index]
        is_root = index == self._page.root
        # The parser finds the references of the document.
        if is_root and not self._has_scanner:
            return []
        offsets: list[tuple[int, int]] = []
        for child_index in self._page.children.get(index, ()):
            child = self._page.resources[child_index]
            of_layout = resource.kind is Kind.STYLESHEET and child.kind in LAYOUT_KINDS
            # The preload scanner leaves lazy images, frames and prefetches to the parser.
            waits_for_layout = is_lazy(child) or is_of_inline_style(child)
            is_found_late = waits_for_layout or child.kind is Kind.DOCUMENT or child.is_prefetched
            of_parser = is_root and is_found_late
            if not of_layout and not of_parser:
                offsets += (
                    (resource.header_bytes + offset_bytes, child_index)
                    for offset_bytes in offsets_in(child, resource.id)
                )
        if is_root:
            elements = hinted(self._page, index)
            offsets += ((resource.header_bytes + at, element) for at, element in elements)
        # Popped off the end, so at equal offsets the first child in the file comes first.
        return sorted(offsets, reverse=True)

    def _request_lazy(self, now_ns: int) -> None:
        """Request lazy images: near ones after the first layout, others after load."""
        # Those requested before stay in the list: another request has no effect.
        for index in self._lazy:
            resource = self._page.resources[index]
            is_near = is_lazy(resource) and (resource.above_the_fold or bool(resource.recorded))
            is_near |= is_of_inline_style(resource)
            after = self._painted if is_near else self._loaded
            if after is not None:
                self._requests.ask(index, now_ns, 0, after=after)


class HoldBack(NamedTuple):
    """The rule by which a browser delays requests, its source, and the date it was read."""

    below: Level
    """Requests less important than this are held."""
    max_open: int
    """While this many requests are open."""
    source: str
    version: str
    n_medium: int = 0
    """The number of Medium requests that may be open regardless."""
    is_per_host: bool = False
    """True if the requests to each host are counted separately."""
    until_load: bool = False
    """True if it holds until the load event, not only until the parser has passed the head."""
    read: str = "2026-11-23"


_CHROME_SOURCE = "third_party/blink/renderer/platform/loader/fetch/resource_load_scheduler.cc"
"""The file of Chromium that has the rules of tight mode."""
HOLD_BACKS: dict[TightMode, HoldBack] = {
    TightMode.CHROME_95: HoldBack(
        below=Level.HIGH,
        max_open=2,
        source=f"{_CHROME_SOURCE}: tight_limit",
        version="Chromium 65 to 115",
    ),
    TightMode.CHROME_118: HoldBack(
        below=Level.HIGH,
        max_open=2,
        n_medium=2,
        source=f"{_CHROME_SOURCE}: tight_limit, kBoostImagePriorityTightMediumLimit",
        version="Chromium 118 to 156",
    ),
    TightMode.SAFARI: HoldBack(
        below=Level.MEDIUM,
        max_open=2,
        is_per_host=True,
        until_load=True,
        source="Source/WebKit/NetworkProcess/NetworkLoadScheduler.cpp:"
        " maximumActiveCountForLowPriority",
        version="WebKit of 2025; 6 instead of 2 in that of 2021",
    ),
}
"""The tight modes.

Over HTTP/2 and HTTP/3 nothing else delays requests: Chrome's network service immediately starts
requests to hosts that support priorities (`resource_scheduler.cc`: `ShouldStartRequest`), except on
connections that it classifies as 3G or slower.
"""
_UNCOUNTED_KINDS = (Kind.DOCUMENT, Kind.FETCH, Kind.MEDIA)
"""Kinds that are never held, and do not count as open.

The loader does not control navigations, and exempts requests that may run for long
(`resource_loader.cc`: `IsThrottlableRequestContext`).
"""
_RANK_BY_LEVEL = {level: rank for rank, level in enumerate(Level)}
"""0 for the most important level."""
_N_BOOSTED_IMAGES = 5
"""kBoostImagePriorityImageCount."""


class HeldBack:
    """Holds unimportant requests while others are open, as a browser's tight mode does.

    References of frames are not held: a frame has a loader and a mode of its own. Nor are preloads
    of Early Hints: no page's loader requests them (`navigation_early_hints_manager.cc`).
    """

    def __init__(self, page: Page, mode: TightMode) -> None:
        self._rules = rules = HOLD_BACKS[mode]
        self._ranks = ranks_of(page, mode)
        self._below = _RANK_BY_LEVEL[rules.below]
        own_host = page.resources[page.root].host
        self._hosts = [resource.host or own_host for resource in page.resources]
        # Lazy resources wait for the first layout anyway, and the head is passed by then.
        self._is_counted = [
            resource.kind not in _UNCOUNTED_KINDS
            and not is_lazy(resource)
            and _document_of(page, index) == page.root
            and not is_hinted(page, resource)
            for index, resource in enumerate(page.resources)
        ]
        """True for each resource that may be held, and that counts as open."""

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether *resource* is unimportant, and important enough ones are open."""
        rules = self._rules
        is_over = progress.is_loaded if rules.until_load else progress.has_passed_head
        if is_over or not self._is_counted[resource] or self._ranks[resource] <= self._below:
            return False
        host = self._hosts[resource]
        n_open = n_medium = 0
        for other in progress.in_flight:
            if self._is_counted[other] and (not rules.is_per_host or self._hosts[other] == host):
                n_open += 1
                n_medium += self._ranks[other] == _MEDIUM_RANK
        if self._ranks[resource] == _MEDIUM_RANK and n_medium < rules.n_medium:
            return False
        return n_open >= rules.max_open


_MEDIUM_RANK = _RANK_BY_LEVEL[Level.MEDIUM]
"""The rank whose requests tight mode treats specially (`HoldBack.n_medium`)."""


def ranks_of(page: Page, mode: TightMode) -> list[int]:
    """Return the rank of each resource's level in that browser: 0 is VeryHigh."""
    level_of = _safari_level if mode is TightMode.SAFARI else _chrome_level
    n_first = _N_BOOSTED_IMAGES if mode is TightMode.CHROME_118 else 0
    return [
        _RANK_BY_LEVEL[level_of(resource, is_first=page.images_before[resource.id] < n_first)]
        for resource in page.resources
    ]


def _chrome_level(resource: Resource, *, is_first: bool) -> Level:
    """Return Chrome's level, by `ComputeLoadPriority` of `resource_fetcher.cc`."""
    if resource.is_prefetched:
        return Level.VERY_LOW
    kind, hint = resource.kind, resource.fetchpriority
    is_late = resource.after_first_image and not resource.render_blocking
    level = _CHROME_LEVELS.get(kind, Level.LOW)
    if kind is Kind.STYLESHEET:
        if resource.other_media:
            return Level.VERY_LOW
        level = Level.MEDIUM if is_late else level
    elif kind is Kind.SCRIPT and not resource.module:
        if resource.is_async or resource.is_defer:
            level = Level.LOW
        elif is_late:
            level = Level.MEDIUM
    elif kind is Kind.FONT and resource.preload:
        level = Level.HIGH
    elif kind is Kind.IMAGE and is_first:
        level = Level.MEDIUM
    if hint is FetchPriority.HIGH and kind in _HINTABLE_KINDS:
        return level if level is Level.VERY_HIGH else Level.HIGH
    if hint is FetchPriority.LOW and kind in _HINTABLE_KINDS:
        return Level.HIGH if level is Level.VERY_HIGH else Level.LOW
    return level


_CHROME_LEVELS = {
    Kind.DOCUMENT: Level.VERY_HIGH,
    Kind.STYLESHEET: Level.VERY_HIGH,
    Kind.FONT: Level.VERY_HIGH,
    Kind.SCRIPT: Level.HIGH,
    Kind.FETCH: Level.HIGH,
}
"""Levels before other attributes count; Low for all other kinds."""
_HINTABLE_KINDS = (Kind.STYLESHEET, Kind.SCRIPT, Kind.IMAGE, Kind.FETCH, Kind.FONT)
"""The kinds whose level fetchpriority changes."""


def _safari_level(resource: Resource, *, is_first: bool) -> Level:  # noqa: ARG001 - Chrome asks
    """Return WebKit's level, by `CachedResource::defaultPriorityForResourceType`."""
    if resource.is_prefetched:
        return Level.VERY_LOW
    level = _SAFARI_LEVELS.get(resource.kind, Level.VERY_LOW)
    step = {FetchPriority.HIGH: -1, FetchPriority.LOW: 1}.get(resource.fetchpriority, 0)
    levels = list(Level)
    return levels[min(max(0, _RANK_BY_LEVEL[level] + step), len(levels) - 1)]


_SAFARI_LEVELS = {
    Kind.DOCUMENT: Level.VERY_HIGH,
    Kind.STYLESHEET: Level.HIGH,
    Kind.SCRIPT: Level.HIGH,
    Kind.FONT: Level.MEDIUM,
    Kind.FETCH: Level.MEDIUM,
    Kind.MEDIA: Level.MEDIUM,
    Kind.IMAGE: Level.LOW,
}
"""Levels before fetchpriority counts; VeryLow for all other kinds."""


def _document_of(page: Page, index: int) -> int:
    """Return the document that a resource belongs to: of the page, or of a frame."""
    while True:
        discovery = page.resources[index].discovered
        by = None if discovery is None else discovery.first_parent
        if by is None:
            return page.root
        index = page.index[by]
        if page.resources[index].kind is Kind.DOCUMENT:
            return index


class PerHost:
    """Holds requests to a host while *limit* of its responses are incomplete (WProf's R1)."""

    def __init__(self, page: Page, limit: int) -> None:
        own_host = page.resources[page.root].host
        self._hosts = [resource.host or own_host for resource in page.resources]
        self._limit = limit

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether the host of *resource* has as many open requests as allowed."""
        host = self._hosts[resource]
        n_open = sum(self._hosts[other] == host for other in progress.in_flight)
        return n_open >= self._limit


class RequestRule(Protocol):
    """A rule that holds requests during one load of a page."""

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether the request for *resource* has to wait; it is evaluated again later."""


def rules_of(page: Page, model: BrowserModel, mode: TightMode) -> list[RequestRule]:
    """Return the rules of *model* for a load of *page* in that mode."""
    rules: list[RequestRule] = []
    if mode in HOLD_BACKS:
        rules.append(HeldBack(page, mode))
    if model.max_concurrent_requests_per_host is not None:
        rules.append(PerHost(page, model.max_concurrent_requests_per_host))
    return rules
