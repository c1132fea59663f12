"""Replays a recorded dependency graph: resources are requested when their triggers fire.

A stylesheet that arrives late therefore delays its fonts (the "smart play-back" of Marx 2019 §
4.2). Parsing and execution take the times in the page file and do not wait for one another.

Read next, on the path of docs/reading.md: `h3sim/engine/http_connection.py`.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING

from h3sim.browser.base import Browser, ScheduledRequest

if TYPE_CHECKING:
    from h3sim.page import Page
    from h3sim.trace import Activity


# From a plain tuple, without calling a Python function: a page may request a thousand at once.
_REQUEST_ROW = partial(tuple.__new__, ScheduledRequest)


class ReplayBrowser(Browser):
    """One load of *page*; resources are identified by their indices in `page.resources`.

    >>> from h3sim.page import TriggerEvent, Discovery, Kind, Page, Resource
    >>> late = Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=50, delay_ns=7)
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
        self._triggers = page.triggers
        self._stream_bytes = page.stream_bytes
        self._offsets_ahead: dict[int, list[tuple[int, int, int]]] = {}
        """The offsets that still trigger something, the nearest last, with the resource to request
        and its delay."""
        self._unfinished = len(page.resources)
        self._finished = [False] * len(page.resources)

    @property
    def is_done(self) -> bool:
        """True if every resource has been delivered."""
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
        """Return the requests that depend on no resource: the root, and those with a time.

        Times count from navigation start; none is earlier than *now_ns*.
        """
        times, indices = self._page.at_navigation
        at_ns = map(max, times, repeat(now_ns))
        return list(map(_REQUEST_ROW, zip(at_ns, indices, strict=True)))

    def on_requested(self, resource: int, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests and changes that follow from the request for *resource*."""
        triggers = self._triggers.get(resource)
        if triggers is None:
            return []
        if triggers.at_offset:
            # A copy, as it is consumed; that of the page serves every load.
            self._offsets_ahead[resource] = [*triggers.at_offset]
        return [ScheduledRequest(now_ns + delay, child) for delay, child in triggers.at_request]

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        ahead = self._offsets_ahead.get(resource)
        if not ahead:
            return self._stream_bytes[resource]
        offset_bytes, _, _ = ahead[-1]
        return offset_bytes

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> list[ScheduledRequest]:
        """Return the requests and changes that follow from that many delivered bytes."""
        due: list[ScheduledRequest] = []
        ahead = self._offsets_ahead.get(resource)
        while ahead:
            offset_bytes, child, delay_ns = ahead[-1]
            if offset_bytes > contiguous_bytes:
                break
            ahead.pop()
            due.append(ScheduledRequest(now_ns + delay_ns, child))
        if contiguous_bytes >= self._stream_bytes[resource]:
            self._finished[resource] = True
            self._unfinished -= 1
            triggers = self._triggers.get(resource)
            if triggers is not None:
                due += [ScheduledRequest(now_ns + delay, child) for delay, child in triggers.at_end]
        return due

    def on_wake(self, now_ns: int) -> list[ScheduledRequest]:  # noqa: ARG002 - it never asks to be woken
        """Return nothing: it never asks to be woken."""
        return []
