"""The requests of a browser: discovered, held back by rules and limits, and sent.

Two parts of it do so, one after the other: the loader of each page, which knows how far the parser
is, and the network service, which only sees requests.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, Protocol

from h3sim.browser.base import ScheduledRequest
from h3sim.page import FetchPriority, Kind, TriggerEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.browser.model import BrowserModel
    from h3sim.page import Page, Resource


class LoadProgress:
    """The progress of a load, for rules that delay requests."""

    __slots__ = ("has_passed_head", "in_flight", "n_low_in_flight")

    def __init__(self) -> None:
        self.in_flight: dict[int, None] = {}
        """The resources whose responses are not over."""
        self.n_low_in_flight = 0
        """The number of those that Chrome requests with priority Low or less."""
        self.has_passed_head = False
        """True if the parser went beyond all that the head names."""

    @property
    def n_in_flight(self) -> int:
        """The number of requests without a complete response."""
        return len(self.in_flight)


class Requests:
    """Sends at most *limit* requests at once (None: any number), first asked first.

    One that any of *rules* holds lets those behind it go first. *is_low* says which are of low
    priority, for those rules.

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
        is_low: Sequence[bool] = (),
    ) -> None:
        self.progress = LoadProgress()
        self._is_low = is_low
        self._limit = limit
        self._rules = tuple(rules)
        self._later: list[tuple[int, int, int]] = []
        self._ready: deque[int] = deque()
        self.after: dict[int, int | None] = {}
        """The activity, by index, that caused each request."""

    @property
    def n_open(self) -> int:
        """The number of resources that wait for their request or for the end of their response."""
        return len(self._ready) + self.progress.n_in_flight

    @property
    def next_at_ns(self) -> int | None:
        """Time when the next one is asked for that has a delay."""
        return self._later[0][0] if self._later else None

    def ask(self, resource: int, now_ns: int, delay_ns: int, *, after: int | None) -> None:
        """Ask for a resource after a delay; without effect where it was asked for."""
        if resource in self.after:
            return
        self.after[resource] = after
        if delay_ns:
            # The count breaks ties: of one instant the one asked for first goes first.
            heappush(self._later, (now_ns + delay_ns, len(self.after), resource))
        else:
            self._ready.append(resource)

    def ripen(self, now_ns: int) -> None:
        """Make those ready whose delay is over."""
        while self._later and self._later[0][0] <= now_ns:
            self._ready.append(heappop(self._later)[2])

    def due(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that leave now."""
        found, held = [], []
        progress = self.progress
        while self._ready and (self._limit is None or progress.n_in_flight < self._limit):
            resource = self._ready.popleft()
            # Asked one by one: a request that leaves here counts for those behind it.
            if any(rule.holds(resource, progress) for rule in self._rules):
                held.append(resource)
            else:
                progress.in_flight[resource] = None
                progress.n_low_in_flight += self._counts_as_low(resource)
                found.append(ScheduledRequest(now_ns, resource))
        # `extendleft` turns them round, so they are turned before: they keep their order, in front.
        self._ready.extendleft(reversed(held))
        return found

    def on_finished(self, resource: int) -> None:
        """Take in that the response with a resource is over."""
        del self.progress.in_flight[resource]
        self.progress.n_low_in_flight -= self._counts_as_low(resource)

    def _counts_as_low(self, resource: int) -> int:
        return int(bool(self._is_low) and self._is_low[resource])


OF_LAYOUT = (Kind.FONT, Kind.IMAGE)
"""The kinds that a stylesheet references and that are requested once the layout needs them."""
_MAY_BE_LAZY = (Kind.IMAGE, Kind.MEDIA, Kind.DOCUMENT)


def is_lazy(resource: Resource) -> bool:
    """Return whether it waits until it is nearly in sight (`loading=lazy`)."""
    return resource.is_lazy and resource.kind in _MAY_BE_LAZY


class Discoverer:
    """Asks for the resources of *page* through *requests*; resources are told by their indices.

    Lazy ones wait: those in sight for the first paint, the others for the load event.
    """

    def __init__(self, page: Page, requests: Requests, *, has_scanner: bool) -> None:
        self._page = page
        self._requests = requests
        self._has_scanner = has_scanner
        self._lazy: list[int] = []
        self._painted: int | None = None
        self._loaded: int | None = None

    def ask(self, index: int, now_ns: int, after: int | None, *, delayed: bool = False) -> None:
        """Ask for a resource that was come upon, because of the activity *after*.

        Where it is *delayed*, it is so by what was recorded.
        """
        resource = self._page.resources[index]
        if is_lazy(resource):
            self._lazy.append(index)
            self._ask_lazy(now_ns)
            return
        delay_ns = 0
        if delayed and resource.discovered is not None:
            delay_ns = resource.discovered.delay_ns
        self._requests.ask(index, now_ns, delay_ns, after=after)

    def on_painted(self, activity: int, now_ns: int) -> None:
        """Ask for the lazy resources in sight, now and from now on."""
        self._painted = activity
        self._ask_lazy(now_ns)

    def on_loaded(self, activity: int, now_ns: int) -> None:
        """Ask for the other lazy resources, now and from now on."""
        self._loaded = activity
        self._ask_lazy(now_ns)

    def children(self, index: int, at: TriggerEvent) -> Iterator[int]:
        """Yield what a resource leads to by that trigger."""
        for child in self._page.children.get(index, ()):
            discovery = self._page.resources[child].discovered
            if discovery is not None and discovery.at is at:
                yield child

    def offsets(self, index: int) -> list[tuple[int, int]]:
        """Return at how many bytes of its stream which child is come upon, the nearest last."""
        resource = self._page.resources[index]
        is_root = index == self._page.root
        # The parser goes through the document by itself.
        if is_root and not self._has_scanner:
            return []
        found = []
        for child in self.children(index, TriggerEvent.OFFSET):
            named = self._page.resources[child]
            of_layout = resource.kind is Kind.STYLESHEET and named.kind in OF_LAYOUT
            # The preload scanner leaves lazy images to the parser.
            if named.discovered is not None and not of_layout and not (is_root and is_lazy(named)):
                offset_bytes = named.discovered.offset_bytes or 0
                found.append((resource.header_bytes + offset_bytes, child))
        # Taken off the end, so of one offset the child that stands first in the file comes first.
        return sorted(found, reverse=True)

    def _ask_lazy(self, now_ns: int) -> None:
        # Those asked for before stay in the list: to ask again has no effect.
        for index in self._lazy:
            in_sight = self._page.resources[index].above_the_fold
            after = self._painted if in_sight else self._loaded
            if after is not None:
                self._requests.ask(index, now_ns, 0, after=after)


_LIMIT: Final = 2
_MOST_IMPORTANT: Final = 1
"""kInFlightNonDelayableRequestCountPerClientThreshold of Chromium's resource_scheduler.cc."""
_MOST_LOW: Final = 1
"""kMaxNumDelayableWhileLayoutBlockingPerClient, there too."""


class TightMode:
    """Holds images and the like back while two requests are open, until the head is passed."""

    def __init__(self, page: Page) -> None:
        lows = zip(low_priorities(page), page.resources, strict=True)
        # What is lazy waits for the first paint anyhow, and the head is passed by then.
        self._is_held = [is_low and not is_lazy(resource) for is_low, resource in lows]

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether *resource* is unimportant, and the head is not passed."""
        is_crowded = progress.n_in_flight >= _LIMIT
        return is_crowded and not progress.has_passed_head and self._is_held[resource]


class DelayedRequests:
    """Lets one request of low priority be open while others are: Chromium's network service.

    It does so wherever the parser is, so that images wait for the scripts at the end, too.
    """

    def __init__(self, page: Page) -> None:
        self._is_low = low_priorities(page)

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether *resource* is unimportant, and what is important under way."""
        n_important = progress.n_in_flight - progress.n_low_in_flight
        is_busy = n_important > _MOST_IMPORTANT and progress.n_low_in_flight >= _MOST_LOW
        return is_busy and self._is_low[resource]


def low_priorities(page: Page) -> list[bool]:
    """Return of each resource whether Chrome asks for it with priority Low or less."""
    return [_has_low_priority(resource) for resource in page.resources]


def _has_low_priority(resource: Resource) -> bool:
    if resource.fetchpriority is not FetchPriority.AUTO:
        return resource.fetchpriority is FetchPriority.LOW
    if resource.kind is Kind.SCRIPT:
        return resource.is_async or resource.is_defer
    return resource.kind in (Kind.IMAGE, Kind.MEDIA, Kind.OTHER)


class PerHost:
    """Holds what a host is asked for while *limit* of its responses are missing (WProf's R1)."""

    def __init__(self, page: Page, limit: int) -> None:
        own = page.resources[page.root].host
        self._host_of = [resource.host or own for resource in page.resources]
        self._limit = limit

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether as many requests as may be are open to the host of *resource*."""
        host = self._host_of[resource]
        n_open = sum(self._host_of[other] == host for other in progress.in_flight)
        return n_open >= self._limit


class RequestRule(Protocol):
    """Holds requests back during one load of a page."""

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether the request for *resource* has to wait; it is asked again later."""


RULES: tuple[tuple[str, Callable[[Page, Any], RequestRule]], ...] = (
    ("tight_mode", lambda page, _: TightMode(page)),
    ("tight_mode", lambda page, _: DelayedRequests(page)),
    ("max_concurrent_requests_per_host", PerHost),
)
"""The rules, each with the setting of `BrowserModel` that turns it on, and of which it is made."""


def rules_of(page: Page, model: BrowserModel) -> list[RequestRule]:
    """Return the rules that *model* has, for a load of *page*."""
    settings = [(rule, getattr(model, setting)) for setting, rule in RULES]
    return [rule(page, value) for rule, value in settings if value]
