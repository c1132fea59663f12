"""Chrome's tight mode: what a page needs to be seen goes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.browser.discoverer import is_lazy
from h3sim.page import FetchPriority, Kind

if TYPE_CHECKING:
    from h3sim.browser.requests import Progress
    from h3sim.page import Page, Resource

__all__ = ["TightMode"]

_LIMIT: Final = 2


class TightMode:
    """Holds images and the like back while two requests are open, until the head is passed."""

    def __init__(self, page: Page) -> None:
        self._is_unimportant = [_is_unimportant(resource) for resource in page.resources]

    def holds(self, resource: int, progress: Progress) -> bool:
        """Return whether *resource* is unimportant, and the head is not passed."""
        is_crowded = progress.n_in_flight >= _LIMIT
        return is_crowded and not progress.has_passed_head and self._is_unimportant[resource]


def _is_unimportant(resource: Resource) -> bool:
    """Return whether Chrome asks for it with priority Low or less.

    What is lazy waits for the first paint anyhow, and the head is passed by then.
    """
    if is_lazy(resource):
        return False
    if resource.fetchpriority is not FetchPriority.AUTO:
        return resource.fetchpriority is FetchPriority.LOW
    if resource.kind is Kind.SCRIPT:
        return resource.is_async or resource.is_defer
    return resource.kind in (Kind.IMAGE, Kind.MEDIA, Kind.OTHER)
