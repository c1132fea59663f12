"""How many requests a browser has open to one host: over HTTP/1.1 one on each connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.browser.requests import LoadProgress
    from h3sim.page import Page

__all__ = ["PerHost"]


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
