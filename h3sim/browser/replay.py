"""Replays a recorded dependency graph: a resource is asked for when its trigger fires in this load.

So a stylesheet that comes late delays the fonts that it names (the "smart play-back" of Marx 2019
§ 4.2). Parsing and execution take the time that the page file gives them and do not wait for
one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.base import ScheduledRequest
from h3sim.page import At

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.page import Page
    from h3sim.trace import Activity

__all__ = ["ReplayBrowser"]


class ReplayBrowser:
    """Follows one load of *page*; resources are told by their indices in `page.resources`.

    >>> from h3sim.page import Discovery, Kind, Page, Resource
    >>> late = Discovery(at=At.OFFSET, by="/", offset_bytes=50, delay_ns=7)
    >>> page = Page(name="p", resources=(
    ...     Resource(id="/", kind=Kind.DOCUMENT, size_bytes=100),
    ...     Resource(id="a", kind=Kind.IMAGE, size_bytes=9, discovered=late)))
    >>> browser = ReplayBrowser(page)
    >>> browser.on_navigation(0)
    [ScheduledRequest(at_ns=0, resource=0)]
    >>> browser.on_requested(0, 0), browser.next_offset(0)
    ([], 50)
    >>> browser.on_delivered(0, 60, 10), browser.next_offset(0)
    ([ScheduledRequest(at_ns=17, resource=1)], 100)
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._watched: dict[int, list[tuple[int, int]]] = {}
        self._unfinished = len(page.resources)
        self._finished = [False] * len(page.resources)

    @property
    def is_done(self) -> bool:
        """Whether every resource has been delivered."""
        return self._unfinished == 0

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        ids = (resource.id for resource in self._page.resources)
        return [id_ for id_, finished in zip(ids, self._finished, strict=True) if not finished]

    @property
    def activities(self) -> tuple[Activity, ...]:
        """Nothing: it computes nothing."""
        return ()

    def on_navigation(self, now_ns: int) -> list[ScheduledRequest]:
        """Return what is asked for since *now_ns*, whatever happens: the root, and what has a time.

        Times count from navigation start; none is asked for before *now_ns*.
        """
        return [
            ScheduledRequest(max(now_ns, 0 if discovery is None else discovery.delay_ns), index)
            for index, discovery in enumerate(r.discovered for r in self._page.resources)
            if discovery is None or discovery.at is At.TIME
        ]

    def on_requested(self, resource: int, now_ns: int) -> list[ScheduledRequest]:
        """Return what follows from *resource* being requested."""
        parent = self._page.resources[resource]
        children = list(self._children(resource))
        offsets = [
            (parent.header_bytes + offset_bytes, child)
            for child, at, offset_bytes, _ in children
            if at is At.OFFSET
        ]
        # The nearest stands last, to be taken off the end; equal offsets fire in file order.
        self._watched[resource] = sorted(offsets, reverse=True)
        return [
            ScheduledRequest(now_ns + delay_ns, child)
            for child, at, _, delay_ns in children
            if at is At.REQUEST
        ]

    def next_offset(self, resource: int) -> int:
        """Return how many contiguous bytes of *resource*'s stream it next wants to hear of."""
        watched = self._watched[resource]
        return watched[-1][0] if watched else self._page.resources[resource].stream_bytes

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> list[ScheduledRequest]:
        """Return what follows from so many bytes of the stream having been delivered."""
        watched = self._watched[resource]
        due = []
        while watched and watched[-1][0] <= contiguous_bytes:
            _, child = watched.pop()
            due.append(ScheduledRequest(now_ns + self._delay_ns(child), child))
        complete = contiguous_bytes >= self._page.resources[resource].stream_bytes
        if complete and not self._finished[resource]:
            self._finished[resource] = True
            self._unfinished -= 1
            due += self._on_complete(resource, now_ns)
        return due

    def on_wake(self, now_ns: int) -> list[ScheduledRequest]:  # noqa: ARG002 - it never asks to be woken
        """Return nothing: it never asks to be woken."""
        return []

    def _on_complete(self, resource: int, now_ns: int) -> Iterable[ScheduledRequest]:
        parent = self._page.resources[resource]
        executed_at_ns = now_ns + parent.parse_ns + parent.execute_ns
        for child, at, _, delay_ns in self._children(resource):
            if at is At.COMPLETE:
                yield ScheduledRequest(now_ns + delay_ns, child)
            elif at is At.EXECUTED:
                yield ScheduledRequest(executed_at_ns + delay_ns, child)

    def _children(self, resource: int) -> Iterator[tuple[int, At, int, int]]:
        for child in self._page.children.get(resource, ()):
            discovery = self._page.resources[child].discovered
            assert discovery is not None  # noqa: S101 - the root is nobody's child
            yield child, discovery.at, discovery.offset_bytes or 0, discovery.delay_ns

    def _delay_ns(self, child: int) -> int:
        discovery = self._page.resources[child].discovered
        return 0 if discovery is None else discovery.delay_ns
