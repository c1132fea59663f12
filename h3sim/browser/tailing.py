"""Firefox's tailing: requests to trackers wait while others are open, for some seconds at most.

Source: netwerk/base/RequestContextService.cpp (`ScheduleUnblock`, `IsContextTailBlocked`), the
preferences network.http.tailing.* of all.js, and Firefox's documentation "Resource Tailing", read
on 2026-11-28. The list of trackers there is Disconnect's, here the hosts of `is_tracker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.unseen import is_tracker
from h3sim.page import Kind
from h3sim.values.units import ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.browser.requests import LoadProgress
    from h3sim.page import Page


_QUANTUM_NS = ms(600)
"""The delay per open request, and one more, until DOMContentLoaded (delay-quantum)."""
_LATER_QUANTUM_NS = ms(100)
"""The delay per open request from then on (delay-quantum-after-domcontentloaded)."""
_MAX_DELAY_NS = ms(6000)
"""The longest delay at navigation start (delay-max); it falls to 0 over the next time."""
_MAX_TOTAL_NS = ms(45_000)
"""The end of all delays (total-max)."""


class Tailing:
    """Holds the requests to trackers of one load.

    >>> from h3sim.browser.requests import LoadProgress
    >>> from h3sim.page import page_from_dict
    >>> found = {"by": "/", "at": "complete"}
    >>> page = page_from_dict({"format": "h3sim-page/1", "name": "x", "resources": [
    ...     {"id": "/", "kind": "document", "bytes": 9},
    ...     {"id": "t", "kind": "image", "bytes": 9, "host": "adnxs.com", "discovered": found}]})
    >>> tailing, progress = Tailing(page), LoadProgress()
    >>> progress.in_flight[0] = None; tailing.update(0, progress)
    >>> tailing.holds(1, progress), tailing.until_ns  # (1 + 1) quanta of 600 ms
    (True, 1200000000)
    """

    def __init__(self, page: Page) -> None:
        own_host = page.resources[page.root].host
        self._is_tailed = [
            _may_wait(page, index) and _is_of_tracker(page, index, own_host)
            for index in range(len(page.resources))
        ]
        self._others: frozenset[int] = frozenset()
        """The open requests that others wait for."""
        self._began_at_ns: int | None = None
        self._is_parsed = False
        self.until_ns: int | None = None
        """The time until which requests are held; None if none are."""

    @property
    def is_needed(self) -> bool:
        """True if the page has any request that may be held."""
        return any(self._is_tailed)

    def update(self, now_ns: int, progress: LoadProgress, ready: Iterable[int] = ()) -> None:
        """Take note of what is open or *ready*, before and after requests leave."""
        if self.until_ns is not None and self.until_ns <= now_ns:
            self.until_ns = None
        others = frozenset(
            index for index in (*progress.in_flight, *ready) if not self._is_tailed[index]
        )
        if others == self._others and progress.is_parsed is self._is_parsed:
            return
        self._others, self._is_parsed = others, progress.is_parsed
        if self._began_at_ns is None:
            self._began_at_ns = now_ns
        left_ns = max(0, _MAX_TOTAL_NS - (now_ns - self._began_at_ns))
        longest_ns = _MAX_DELAY_NS * left_ns // _MAX_TOTAL_NS
        quantum_ns = _LATER_QUANTUM_NS if self._is_parsed else _QUANTUM_NS
        n_quanta = len(others) + (not self._is_parsed)
        delay_ns = min(quantum_ns * n_quanta, longest_ns)
        self.until_ns = now_ns + delay_ns if delay_ns else None

    def holds(self, resource: int, progress: LoadProgress) -> bool:  # noqa: ARG002 - one of several
        """Return whether the request for *resource* has to wait."""
        return self._is_tailed[resource] and self.until_ns is not None


def _may_wait(page: Page, index: int) -> bool:
    """Return whether a request for that resource could be tailed.

    Documents, stylesheets and scripts that block the parser or that are deferred never are.
    """
    resource = page.resources[index]
    if resource.kind is Kind.SCRIPT:
        found = resource.discovered
        by = None if found is None else found.first_parent
        is_inserted = by is not None and page.resources[page.index[by]].kind is Kind.SCRIPT
        return resource.is_async or is_inserted
    return resource.kind not in (Kind.DOCUMENT, Kind.STYLESHEET)


def _is_of_tracker(page: Page, index: int, own_host: str) -> bool:
    """Return whether a resource is a tracker's, or requested by a script of one."""
    resource = page.resources[index]
    if resource.host != own_host and is_tracker(resource):
        return True
    found = resource.discovered
    by = None if found is None else found.first_parent
    parent = None if by is None else page.resources[page.index[by]]
    return (
        parent is not None
        and parent.kind is Kind.SCRIPT
        and parent.host != own_host
        and is_tracker(parent)
    )
