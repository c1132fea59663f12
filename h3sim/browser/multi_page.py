"""A browser for several pages at once: each is loaded as in a tab of its own."""

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
    """Computes the load of each root of *page* by itself, with its own parser and main thread.

    So browsers do it, with a process for each tab (Chromium's site isolation); what *model* limits
    is limited in each. A root that another one asks for is asked for by whoever sees that happen
    (`ReprioritizingBrowser`); its load begins with its request.
    """

    def __init__(self, page: Page, model: BrowserModel, tight_mode: TightMode) -> None:
        self._page = page
        self._parts = parts_of(page)
        self._browsers = [RenderingBrowser(part.page, model, tight_mode) for part in self._parts]
        self._tab_and_index = {
            index: (tab, at)
            for tab, part in enumerate(self._parts)
            for at, index in enumerate(part.indices)
        }
        self._begun: dict[int, None] = {}
        self._n_executed = [0] * len(self._parts)
        self.executed: list[int] = []
        """The resources that have run, or that are there and have nothing to run."""

    def has_laid_out(self, resource: int) -> bool:
        """Return whether it knows where on the screen that resource is."""
        tab, at = self._tab_and_index[resource]
        return self._browsers[tab].has_laid_out(at)

    @property
    def is_done(self) -> bool:
        """True if all was delivered, and every tab has come to rest."""
        return all(browser.is_done for browser in self._browsers)

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return [id_ for browser in self._browsers for id_ in browser.waiting]

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The activities, page by page: redirects come last, as they have nothing to show.

        So the milestones of a load are those of the document that a chain of redirects led to.
        """
        found: list[Activity] = []
        redirects = redirects_of(self._page)
        tabs = list(zip(self._parts, self._browsers, strict=True))
        # The sort is stable: tabs of one kind stay in the order of the file.
        for part, browser in sorted(tabs, key=lambda tab: tab[0].root in redirects):
            before = len(found)
            for done in browser.activities:
                resource = None if done.resource is None else part.indices[done.resource]
                # A tab counts its activities from 0; here they stand behind those of the tabs
                # before.
                after = None if done.after is None else done.after + before
                found.append(done._replace(resource=resource, after=after))
        return tuple(found)

    def on_navigation(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the roots that are asked for since *now_ns* whatever happens."""
        found = []
        for part in self._parts:
            discovery = self._page.resources[part.root].discovered
            if discovery is None or discovery.at is TriggerEvent.TIME:
                at_ns = now_ns if discovery is None else max(now_ns, discovery.delay_ns)
                found.append(ScheduledRequest(at_ns, part.root))
        return found

    def on_requested(self, resource: int, now_ns: int) -> list[ScheduledRequest]:
        """Return what follows from *resource* being requested; with a root a load begins."""
        tab, at = self._tab_and_index[resource]
        browser = self._browsers[tab]
        due: list[ScheduledRequest] = []
        if tab not in self._begun:
            self._begun[tab] = None
            # The request of the root is the one that is being made.
            due += (item for item in browser.on_navigation(now_ns) if item.resource != at)
        return self._to_page_indices(tab, [*due, *browser.on_requested(at, now_ns)])

    def next_offset(self, resource: int) -> int:
        """Return how many contiguous bytes of *resource*'s stream it next wants to hear of."""
        tab, at = self._tab_and_index[resource]
        return self._browsers[tab].next_offset(at)

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> list[ScheduledRequest]:
        """Return what follows from so many bytes of the stream having been delivered."""
        tab, at = self._tab_and_index[resource]
        return self._to_page_indices(
            tab, self._browsers[tab].on_delivered(at, contiguous_bytes, now_ns)
        )

    def on_wake(self, now_ns: int) -> list[ScheduledRequest]:
        """Return what follows from time having passed."""
        return [
            item
            # A wake says nothing of whose it is; a tab that has nothing due does nothing.
            for tab in self._begun
            for item in self._to_page_indices(tab, self._browsers[tab].on_wake(now_ns))
        ]

    def _to_page_indices(self, tab: int, due: Iterable[ScheduledRequest]) -> list[ScheduledRequest]:
        """Return what a tab asks for by the indices of the whole page; note what has run in it."""
        indices, executed = self._parts[tab].indices, self._browsers[tab].executed
        self.executed += (indices[at] for at in executed[self._n_executed[tab] :])
        self._n_executed[tab] = len(executed)
        return [
            item if item.resource is None else ScheduledRequest(item.at_ns, indices[item.resource])
            for item in due
        ]
