"""Which request made each request happen: initiator, stack, Referer, then the clock.

A parent always comes before its child, by time and then by place in the file. So what is found is
a tree, whatever circles a recording claims.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.capture.inference.urls import without_fragment
from h3sim.page import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from h3sim.capture.inference.observed import Observed

__all__ = ["Basis", "Parent", "find_parents"]


class Basis(enum.Enum):
    """From what a parent was told, the best first."""

    GIVEN = "the recording"
    REDIRECT = "redirect"
    INITIATOR = "initiator"
    STACK = "stack"
    REFERER = "Referer"
    TIMING = "timing"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class Parent:
    """The place of a request's parent, None for none, and how it was told."""

    index: int | None
    basis: Basis


@dataclass(slots=True)
class _Seen:
    """What came before the request that is looked at."""

    by_url: dict[str, int] = field(default_factory=dict)
    by_bare_url: dict[str, int] = field(default_factory=dict)

    def add(self, index: int, request: Observed) -> None:
        # The latest wins: a page that loads something twice goes on with the later one.
        url = without_fragment(request.url)
        self.by_url[url] = index
        self.by_bare_url[url.partition("?")[0]] = index

    def find(self, url: str) -> int | None:
        if not url:
            return None
        url = without_fragment(url)
        index = self.by_url.get(url)
        return self.by_bare_url.get(url.partition("?")[0]) if index is None else index


class _Clock:
    """Scripts and stylesheets by when they were complete, for requests in the order of time."""

    def __init__(self, requests: Sequence[Observed], kinds: Sequence[Kind]) -> None:
        self._ends: dict[Kind, list[tuple[float, int]]] = {}
        for kind in (Kind.SCRIPT, Kind.STYLESHEET):
            self._ends[kind] = sorted(
                (end_ms, index)
                for index, request in enumerate(requests)
                if kinds[index] is kind and (end_ms := request.end_ms) is not None
            )

    def last(self, kind: Kind, before_ms: float | None) -> int | None:
        """Return the place of that kind which was complete last before that time."""
        if before_ms is None:
            return None
        ends = self._ends[kind]
        # With a place behind all others: what was complete at this very instant counts.
        number = bisect_right(ends, (before_ms, len(ends) + 2**62))
        return ends[number - 1][1] if number else None


def find_parents(
    requests: Sequence[Observed],
    kinds: Sequence[Kind],
    order: Iterable[int],
    root: int,
    landed: AbstractSet[int],
) -> tuple[dict[int, Parent], int]:
    """Return the parent of each request but *root*, and how many initiators were not believed.

    *order* has the indexes of the requests by time, *landed* those to which redirects of the root
    led. An initiator is not believed if it begins after what it should have begun.
    """
    seen, clock = _Seen(), _Clock(requests, kinds)
    known: set[int] = set()
    page: int | None = None
    urls = {without_fragment(request.url) for request in requests}
    parents: dict[int, Parent] = {}
    n_unbelieved = 0
    for index in order:
        request = requests[index]
        if index != root:
            parents[index] = _parent(index, requests, kinds, seen, known, clock, page)
            is_weak = parents[index].basis not in (Basis.GIVEN, Basis.REDIRECT, Basis.INITIATOR)
            names = without_fragment(request.initiator) in urls
            n_unbelieved += is_weak and names
        seen.add(index, request)
        known.add(index)
        # Behind redirects the page is what they led to: nothing comes of a redirect but that.
        page = index if index == root or index in landed else page
    return parents, n_unbelieved


def _parent(
    index: int,
    requests: Sequence[Observed],
    kinds: Sequence[Kind],
    seen: _Seen,
    known: set[int],
    clock: _Clock,
    page: int | None,
) -> Parent:
    request = requests[index]
    if request.trigger is not None and request.trigger.by in known:
        return Parent(request.trigger.by, Basis.GIVEN)
    if request.parent in known:
        return Parent(request.parent, Basis.GIVEN)
    if request.redirect_of in known:
        return Parent(request.redirect_of, Basis.REDIRECT)
    if (found := seen.find(request.initiator)) is not None:
        return Parent(found, Basis.INITIATOR)
    for url in request.stack:
        if (found := seen.find(url)) is not None:
            return Parent(found, Basis.STACK)
    # Of a fetch the Referer is the page, and not the script that made it.
    found = seen.find(request.referer) if kinds[index] is not Kind.FETCH else None
    if found is not None and kinds[found] in (Kind.DOCUMENT, Kind.STYLESHEET):
        return Parent(found, Basis.REFERER)
    if page is None:
        return Parent(None, Basis.NONE)
    return Parent(_by_clock(request, kinds[index], known, clock, page), Basis.TIMING)


def _by_clock(request: Observed, kind: Kind, known: set[int], clock: _Clock, page: int) -> int:
    """Return the likeliest parent of what nothing else is known of.

    A font: the stylesheet that was complete last. A fetch, or what is none of the kinds that
    markup names: the script that was complete last. Anything else: the page.
    """
    found = None
    if kind is Kind.FONT:
        found = clock.last(Kind.STYLESHEET, request.start_ms)
    elif kind in (Kind.FETCH, Kind.OTHER):
        found = clock.last(Kind.SCRIPT, request.start_ms)
    return page if found is None or found not in known else found
