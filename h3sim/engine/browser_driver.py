"""The driver of a browser: makes its requests when they are due, and advances its time.

Read next, on the path of docs/reading.md: `h3sim/browser/replay.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from h3sim.browser import BrowserModel, ScheduledPriorityChange, make_browser
from h3sim.engine.environment import EventPriority, FifoEventQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.browser import Scheduled
    from h3sim.browser.model import TightMode
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.page import Page, Resource, ResourceState


# A plain int: looking up a member of an enum costs as much as half a pick.
_REQUEST = int(EventPriority.REQUEST)


class Requester(Protocol):
    """The interface that fetches resources for a browser."""

    def request(self, resource: int, now_ns: int) -> None:
        """Request the resource at that index of the page."""

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Record changed state of a resource, or (None) of all."""


class BrowserDriver:
    """A browser that loads *page* in simulated time; `requester` is to be set.

    *plays_recorded*: the scheme uses recorded priorities.
    """

    requester: Requester

    def __init__(
        self,
        page: Page,
        environment: LoadEnvironment,
        model: BrowserModel,
        *,
        plays_recorded: bool,
        tight_mode: TightMode | None,
    ) -> None:
        self._page = page
        self._environment = environment
        self.browser = make_browser(
            page, model, plays_recorded=plays_recorded, tight_mode=tight_mode
        )
        self.asked_for: list[int] = []
        """The requested resources by index, in the order of their requests."""
        # A queue of its own: many are requested at one instant.
        self._requests_due = FifoEventQueue(environment, _REQUEST, self._on_due)

    def on_connected(self, now_ns: int) -> None:
        """Make the requests that do not depend on any response."""
        self.schedule(self.browser.on_navigation(now_ns))

    def schedule(self, due: Iterable[Scheduled]) -> None:
        """Schedule the requests, changes and timers of the browser."""
        for item in due:
            if isinstance(item, ScheduledPriorityChange):
                self._environment.at(item.at_ns, _REQUEST, self._on_changed, item)
            elif item.resource is None:
                self._environment.at(item.at_ns, _REQUEST, self._on_woken, None)
            else:
                self._requests_due.put(item.at_ns, item.resource)

    def _on_due(self, resource: int, now_ns: int) -> None:
        """Make a request of the browser, and schedule what follows from it."""
        self.asked_for.append(resource)
        due = self.browser.on_requested(resource, now_ns)
        if due:
            self.schedule(due)
        self.requester.request(resource, now_ns)

    def _on_woken(self, _value: None, now_ns: int) -> None:
        """Wake the browser as it requested; end the load if nothing is left to do."""
        self.schedule(self.browser.on_wake(now_ns))
        if self.browser.is_done:
            self._environment.stop()

    def _on_changed(self, item: ScheduledPriorityChange, now_ns: int) -> None:
        """Apply a change of a resource's state; open streams may be reprioritized."""
        resource = None if item.resource is None else self._page.resources[item.resource]
        self.requester.on_changed(resource, item.change, now_ns)
