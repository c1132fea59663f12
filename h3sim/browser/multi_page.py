"""A browser for several pages at once, each loaded in a tab of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.base import Browser, ScheduledRequest
from h3sim.browser.rendering import RenderingBrowser
from h3sim.page import TriggerEvent
from h3sim.page.model import parts_of, redirects_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.browser.model import BrowserModel, TightMode
    from h3sim.page import Page
    from h3sim.trace import Activity


class MultiPageBrowser(Browser):
    """Computes the load of each root of *page* separately, with its own parser and main thread.

    Browsers do so with a process per tab (Chromium's site isolation); the limits of *model* apply
    to each. A root that another one opens is requested by `ReprioritizingBrowser`, when its trigger
    fires; its load begins with its request.
    """

    def __init__(self, page: Page, model: BrowserModel, tight_mode: TightMode) -> None:
        self._page = page
        self._parts = parts_of(page)
        self._browsers = [RenderingBrowser(part.page, model, tight_mode) for part in self._parts]
        self._tab_and_index = {
            index: (tab, own_index)
            for tab, part in enumerate(self._parts)
            for own_index, index in enumerate(part.indices)
        }
        """The tab of each resource, and its index in the page of that tab."""
        self._begun_tabs: dict[int, None] = {}
        """The tabs whose root was requested, in this order."""
        self._n_executed = [0] * len(self._parts)
        """The number of resources of each tab that are in `executed`."""
        self.executed: list[int] = []
        """The resources that have run, or that have arrived and have nothing to run."""

    def has_laid_out(self, resource: int) -> bool:
        """Return whether the position of that resource in the layout is known."""
        tab, own_index = self._tab_and_index[resource]
        return self._browsers[tab].has_laid_out(own_index)

    @property
    def is_done(self) -> bool:
        """True if all was delivered, and all tabs are idle."""
        return all(browser.is_done for browser in self._browsers)

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return [id_ for browser in self._browsers for id_ in browser.waiting]

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The activities, page by page; redirects come last, as they paint nothing.

        So the milestones of a load are those of the document at the end of a chain of redirects.
        """
        activities: list[Activity] = []
        redirects = redirects_of(self._page)
        # The sort is stable: tabs of one kind keep the order of the file.
        tabs = sorted(range(len(self._parts)), key=lambda tab: self._parts[tab].root in redirects)
        for tab in tabs:
            part, browser = self._parts[tab], self._browsers[tab]
            before = len(activities)
            for activity in browser.activities:
                resource = None if activity.resource is None else part.indices[activity.resource]
                # A tab counts its activities from 0; here they follow those of the tabs before.
                after = None if activity.after is None else activity.after + before
                activities.append(activity._replace(resource=resource, after=after))
        return tuple(activities)

    def on_navigation(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the roots requested since *now_ns* that depend on no resource."""
        due = []
        for part in self._parts:
            discovery = self._page.resources[part.root].discovered
            if discovery is None or discovery.at is TriggerEvent.TIME:
                at_ns = now_ns if discovery is None else max(now_ns, discovery.delay_ns)
                due.append(ScheduledRequest(at_ns, part.root))
        return due

    def on_requested(self, resource: int, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that follow from that for *resource*; a root begins a load."""
        tab, own_index = self._tab_and_index[resource]
        browser = self._browsers[tab]
        due: list[ScheduledRequest] = []
        if tab not in self._begun_tabs:
            self._begun_tabs[tab] = None
            # The request for the root is the current one.
            due += (item for item in browser.on_navigation(now_ns) if item.resource != own_index)
        return self._to_page_indices(tab, [*due, *browser.on_requested(own_index, now_ns)])

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        tab, own_index = self._tab_and_index[resource]
        return self._browsers[tab].next_offset(own_index)

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> list[ScheduledRequest]:
        """Return the requests and changes that follow from that many delivered bytes."""
        tab, own_index = self._tab_and_index[resource]
        return self._to_page_indices(
            tab, self._browsers[tab].on_delivered(own_index, contiguous_bytes, now_ns)
        )

    def on_wake(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests and changes that are due now."""
        return [
            item
            # A wake-up does not name its tab; a tab that has nothing due does nothing.
            for tab in self._begun_tabs
            for item in self._to_page_indices(tab, self._browsers[tab].on_wake(now_ns))
        ]

    def _to_page_indices(self, tab: int, due: Iterable[ScheduledRequest]) -> list[ScheduledRequest]:
        """Return the requests of a tab by indices of the page; record what has run in it."""
        indices, executed = self._parts[tab].indices, self._browsers[tab].executed
        self.executed += (indices[own_index] for own_index in executed[self._n_executed[tab] :])
        self._n_executed[tab] = len(executed)
        return [
            item if item.resource is None else ScheduledRequest(item.at_ns, indices[item.resource])
            for item in due
        ]
