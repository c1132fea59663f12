"""Drives a browser: asks for what it wants when that is due, and tells it of time that passed.

Read next, on the path of docs/reading.md: `h3sim/browser/replay.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from h3sim.browser import BrowserModel, ScheduledChange, make_browser
from h3sim.engine.environment import EventPriority, FifoEventQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.browser import Scheduled
    from h3sim.engine.environment import LoadEnvironment
    from h3sim.page import Page, Resource, ResourceState


# A plain number: looking a member of an enum up costs as much as half a pick.
_REQUEST = int(EventPriority.REQUEST)


class Requester(Protocol):
    """Who brings what the browser asks for."""

    def request(self, resource: int, now_ns: int) -> None:
        """Ask for the resource at that index of the page."""

    def on_changed(self, resource: Resource | None, change: ResourceState, now_ns: int) -> None:
        """Record that more is known of a resource, or of all."""


class BrowserDriver:
    """A browser that loads *page*, and that time passes for; `requester` is to be set.

    *plays_recorded*: somebody asks what was recorded of priorities.
    """

    requester: Requester

    def __init__(
        self,
        page: Page,
        environment: LoadEnvironment,
        model: BrowserModel,
        *,
        plays_recorded: bool,
    ) -> None:
        self._page = page
        self._environment = environment
        self.browser = make_browser(page, model, plays_recorded=plays_recorded)
        self.asked_for: list[int] = []
        """The resources in the order in which they were asked for, by their index in the page."""
        # Many are asked for at one instant.
        self._requests_due = FifoEventQueue(environment, _REQUEST, self._on_due)

    def on_connected(self, now_ns: int) -> None:
        """Ask for what is asked for whatever happens."""
        self.schedule(self.browser.on_navigation(now_ns))

    def schedule(self, due: Iterable[Scheduled]) -> None:
        """See to it that what the browser wants happens when it is due."""
        for item in due:
            if isinstance(item, ScheduledChange):
                self._environment.at(item.at_ns, _REQUEST, self._on_changed, item)
            elif item.resource is None:
                self._environment.at(item.at_ns, _REQUEST, self._on_woken, None)
            else:
                self._requests_due.put(item.at_ns, item.resource)

    def _on_due(self, resource: int, now_ns: int) -> None:
        self.asked_for.append(resource)
        due = self.browser.on_requested(resource, now_ns)
        if due:
            self.schedule(due)
        self.requester.request(resource, now_ns)

    def _on_woken(self, value: None, now_ns: int) -> None:
        del value
        self.schedule(self.browser.on_wake(now_ns))
        if self.browser.is_done:
            self._environment.stop()

    def _on_changed(self, item: ScheduledChange, now_ns: int) -> None:
        """Record that more is known of a resource; open streams may get another priority."""
        _, resource, change = item
        described = None if resource is None else self._page.resources[resource]
        self.requester.on_changed(described, change, now_ns)
