"""How Chrome holds requests back: what a page needs to be seen goes first.

Two parts of it do so, one after the other: the loader of each page, which knows how far the parser
is, and the network service, which only sees requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.browser.discoverer import is_lazy
from h3sim.page import FetchPriority, Kind

if TYPE_CHECKING:
    from h3sim.browser.requests import LoadProgress
    from h3sim.page import Page, Resource

__all__ = ["DelayedRequests", "TightMode", "low_priorities"]

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
