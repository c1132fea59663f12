"""The requests of a browser: which are due, which wait for a free place, which are open."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from h3sim.browser.scheduled import ScheduledRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.browser.rules import RequestRule

__all__ = ["LoadProgress", "Requests"]


class LoadProgress:
    """How far a load is, for rules that hold requests back."""

    __slots__ = ("has_passed_head", "in_flight", "n_low_in_flight")

    def __init__(self) -> None:
        self.in_flight: dict[int, None] = {}
        """The resources whose responses are not over."""
        self.n_low_in_flight = 0
        """How many of them Chrome would make with priority Low or less."""
        self.has_passed_head = False
        """Whether the parser went beyond all that the head names."""

    @property
    def n_in_flight(self) -> int:
        """How many requests wait for the end of their response."""
        return len(self.in_flight)


class Requests:
    """Sends at most *limit* requests at once (None: any number), first asked first.

    One that any of *rules* holds lets those behind it go first. *is_low* says which are of low
    priority, for those rules.

    >>> requests = Requests(limit=1)
    >>> requests.ask(0, 0, 0, after=None); requests.ask(1, 0, 0, after=None)
    >>> requests.due(0), requests.n_open
    ([ScheduledRequest(at_ns=0, resource=0)], 2)
    >>> requests.on_finished(0); requests.due(7)
    [ScheduledRequest(at_ns=7, resource=1)]
    """

    def __init__(
        self,
        limit: int | None,
        rules: Sequence[RequestRule] = (),
        is_low: Sequence[bool] = (),
    ) -> None:
        self.progress = LoadProgress()
        self._is_low = is_low
        self._limit = limit
        self._rules = tuple(rules)
        self._later: list[tuple[int, int, int]] = []
        self._ready: deque[int] = deque()
        self.after: dict[int, int | None] = {}
        """What let each resource be asked for: the index of an activity."""

    @property
    def n_open(self) -> int:
        """How many wait for their turn, or for the end of their response."""
        return len(self._ready) + self.progress.n_in_flight

    @property
    def next_at_ns(self) -> int | None:
        """When the next one is asked for that has a delay."""
        return self._later[0][0] if self._later else None

    def ask(self, resource: int, now_ns: int, delay_ns: int, *, after: int | None) -> None:
        """Ask for a resource after a delay; without effect where it was asked for."""
        if resource in self.after:
            return
        self.after[resource] = after
        if delay_ns:
            # The count breaks ties: of one instant the one asked for first goes first.
            heappush(self._later, (now_ns + delay_ns, len(self.after), resource))
        else:
            self._ready.append(resource)

    def ripen(self, now_ns: int) -> None:
        """Make those ready whose delay is over."""
        while self._later and self._later[0][0] <= now_ns:
            self._ready.append(heappop(self._later)[2])

    def due(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that leave now."""
        found, held = [], []
        progress = self.progress
        while self._ready and (self._limit is None or progress.n_in_flight < self._limit):
            resource = self._ready.popleft()
            # Asked one by one: a request that leaves here counts for those behind it.
            if any(rule.holds(resource, progress) for rule in self._rules):
                held.append(resource)
            else:
                progress.in_flight[resource] = None
                progress.n_low_in_flight += self._counts_as_low(resource)
                found.append(ScheduledRequest(now_ns, resource))
        # `extendleft` turns them round, so they are turned before: they keep their order, in front.
        self._ready.extendleft(reversed(held))
        return found

    def on_finished(self, resource: int) -> None:
        """Take in that the response with a resource is over."""
        del self.progress.in_flight[resource]
        self.progress.n_low_in_flight -= self._counts_as_low(resource)

    def _counts_as_low(self, resource: int) -> int:
        return int(bool(self._is_low) and self._is_low[resource])
