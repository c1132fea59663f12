"""Resources that wait for several others, or for the first of several events.

`Join`s of a page are followed during one load: a computing browser asks `JoinedTriggers` which of
them fire, and `JoiningBrowser` adds their requests to those of a replay.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser.base import ScheduledRequest, WrappingBrowser
from h3sim.page import TriggerEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.browser.base import Browser, Scheduled
    from h3sim.page import Page


class FiredJoin(NamedTuple):
    """A join whose last event has happened: its child, and the time of the request."""

    child: int
    at_ns: int


class JoinedTriggers:
    """The progress of the joins of *page* during one load.

    >>> from h3sim.page import Discovery, Kind, Page, Resource
    >>> root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9)
    >>> found = Discovery(by="/", at=TriggerEvent.COMPLETE)
    >>> data = [Resource(id=id_, kind=Kind.FETCH, size_bytes=9, discovered=found) for id_ in "ab"]
    >>> both = Discovery(by=("a", "b"), at=TriggerEvent.COMPLETE, delay_ns=5)
    >>> image = Resource(id="c", kind=Kind.IMAGE, size_bytes=9, discovered=both)
    >>> joins = JoinedTriggers(Page(name="p", resources=(root, *data, image)))
    >>> [list(joins.fire(index, TriggerEvent.COMPLETE, 10 * index)) for index in (1, 2)]
    [[], [FiredJoin(child=3, at_ns=25)]]
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._joins = page.joins
        self._missing = [set(join.parents) for join in self._joins]
        self._ready_ns = [0] * len(self._joins)
        """The time of the last event of each join so far."""

    def __bool__(self) -> bool:
        return bool(self._joins)

    def timers(self, now_ns: int) -> Iterator[FiredJoin]:
        """Yield the joins that only wait for a time since navigation start."""
        for join in self._joins:
            if not join.parents:
                yield FiredJoin(join.child, max(now_ns, join.delay_ns))

    def offsets(self, parent: int) -> Iterator[tuple[int, int, int]]:
        """Yield what offsets of a stream trigger: (bytes, child, delay in ns)."""
        for number in self._page.joins_of.get(parent, ()):
            join = self._joins[number]
            if join.at is TriggerEvent.OFFSET:
                yield join.offset_bytes, join.child, join.delay_ns

    def fire(
        self,
        parent: int,
        at: TriggerEvent,
        event_ns: int,
        matches: Callable[[int], bool] = lambda _: True,
    ) -> Iterator[FiredJoin]:
        """Yield the joins whose last event is this one, of the children that are wanted.

        The event may be in the future. Offsets are not among the events: each has one parent.
        """
        for number in self._page.joins_of.get(parent, ()):
            join, missing = self._joins[number], self._missing[number]
            if join.at is at and parent in missing and matches(join.child):
                missing.remove(parent)
                self._ready_ns[number] = max(self._ready_ns[number], event_ns)
                if not missing:
                    yield FiredJoin(join.child, self._ready_ns[number] + join.delay_ns)


class JoiningBrowser(WrappingBrowser):
    """A replay by *inner* with the requests for what waits for several resources of *page*.

    A module script has run when it and all its imports have arrived, after the times to parse and
    execute those that have not run before.
    """

    def __init__(self, inner: Browser, page: Page) -> None:
        super().__init__(inner)
        self._page = page
        self._joined = JoinedTriggers(page)
        self._offsets_ahead: dict[int, list[tuple[int, int, int]]] = {}
        """The offsets of each requested resource that trigger joins, the nearest last."""
        self._pending: list[tuple[int, int]] = []
        """A heap of requests in the future: time, child."""
        self._requested: set[int] = set()
        """The children that were requested."""
        self._graphs = page.module_graphs
        self._absent = {module: set(graph) for module, graph in self._graphs.items()}
        """The modules of each graph that have not arrived."""
        self._run_modules: set[int] = set()

    def on_navigation(self, now_ns: int) -> list[Scheduled]:
        """Return the requests that depend on no resource."""
        due = [*self._inner.on_navigation(now_ns)]
        return due + self._scheduled(self._joined.timers(now_ns), now_ns)

    def on_requested(self, resource: int, now_ns: int) -> list[Scheduled]:
        """Return the requests that follow from that for *resource*."""
        ahead = sorted(self._joined.offsets(resource), key=lambda entry: -entry[0])
        if ahead:
            self._offsets_ahead[resource] = ahead
        due = [*self._inner.on_requested(resource, now_ns)]
        return due + self._on_event(resource, TriggerEvent.REQUEST, now_ns, now_ns)

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        offset = self._inner.next_offset(resource)
        ahead = self._offsets_ahead.get(resource)
        if not ahead:
            return offset
        nearest, *_ = ahead[-1]
        return min(offset, nearest)

    def on_delivered(self, resource: int, contiguous_bytes: int, now_ns: int) -> list[Scheduled]:
        """Return the requests that follow from that many delivered bytes."""
        due = [*self._inner.on_delivered(resource, contiguous_bytes, now_ns)]
        ahead = self._offsets_ahead.get(resource)
        while ahead and ahead[-1][0] <= contiguous_bytes:
            _, child, delay_ns = ahead.pop()
            due += self._scheduled([FiredJoin(child, now_ns + delay_ns)], now_ns)
        described = self._page.resources[resource]
        if contiguous_bytes >= described.stream_bytes:
            due += self._on_event(resource, TriggerEvent.COMPLETE, now_ns, now_ns)
            for module, executed_ns in self._executed(resource, now_ns):
                due += self._on_event(module, TriggerEvent.EXECUTED, executed_ns, now_ns)
        return due

    def on_wake(self, now_ns: int) -> list[Scheduled]:
        """Return the requests that are due now."""
        due = [*self._inner.on_wake(now_ns)]
        while self._pending and self._pending[0][0] <= now_ns:
            _, child = heappop(self._pending)
            due += self._scheduled([FiredJoin(child, now_ns)], now_ns)
        return due

    def _executed(self, arrived: int, now_ns: int) -> Iterator[tuple[int, int]]:
        """Yield the resources that run because one has arrived, and when they have run."""
        if arrived not in self._graphs:
            yield arrived, now_ns + self._cost_ns([arrived])
        for module, absent in self._absent.items():
            if arrived in absent:
                absent.remove(arrived)
                if not absent:
                    graph = self._graphs[module]
                    cost_ns = self._cost_ns(each for each in graph if each not in self._run_modules)
                    self._run_modules.update(graph)
                    yield module, now_ns + cost_ns

    def _cost_ns(self, indices: Iterable[int]) -> int:
        resources = (self._page.resources[index] for index in indices)
        return sum(each.parse_ns + each.execute_ns for each in resources)

    def _on_event(
        self, parent: int, at: TriggerEvent, event_ns: int, now_ns: int
    ) -> list[Scheduled]:
        return self._scheduled(self._joined.fire(parent, at, event_ns), now_ns)

    def _scheduled(self, fired: Iterable[FiredJoin], now_ns: int) -> list[Scheduled]:
        """Return the requests that are due, and wake-ups for later ones; each child only once."""
        due: list[Scheduled] = []
        for child, at_ns in fired:
            if child in self._requested:
                continue
            if at_ns > now_ns:
                heappush(self._pending, (at_ns, child))
                due.append(ScheduledRequest(at_ns, None))
            else:
                self._requested.add(child)
                due.append(ScheduledRequest(now_ns, child))
        return due
