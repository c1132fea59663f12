"""The requests of a browser: which are due, which wait for a free place, which are open."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from h3sim.browser.base import ScheduledRequest

__all__ = ["Requests"]

_TIGHT_LIMIT = 2


class Requests:
    """Lets at most *limit* requests be open at once (None: any number), first asked first.

    While `is_tight`, one that is asked for as unimportant leaves only if fewer than two are open.

    >>> requests = Requests(limit=1)
    >>> requests.ask(0, 0, 0, after=None); requests.ask(1, 0, 0, after=None)
    >>> requests.due(0), requests.n_open
    ([ScheduledRequest(at_ns=0, resource=0)], 2)
    >>> requests.on_finished(); requests.due(7)
    [ScheduledRequest(at_ns=7, resource=1)]
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._later: list[tuple[int, int, int]] = []
        self._ready: deque[int] = deque()
        self._unimportant: dict[int, None] = {}
        self._in_flight = 0
        self.is_tight = False
        self.after: dict[int, int | None] = {}
        """What let each resource be asked for: the place of an activity."""

    @property
    def n_open(self) -> int:
        """How many wait for their turn, or for the end of their response."""
        return len(self._ready) + self._in_flight

    @property
    def next_at_ns(self) -> int | None:
        """When the next one is asked for that has a delay."""
        return self._later[0][0] if self._later else None

    def ask(
        self,
        resource: int,
        now_ns: int,
        delay_ns: int,
        *,
        after: int | None,
        is_unimportant: bool = False,
    ) -> None:
        """Ask for a resource after a delay; without effect where it was asked for."""
        if resource in self.after:
            return
        self.after[resource] = after
        if is_unimportant:
            self._unimportant[resource] = None
        if delay_ns:
            heappush(self._later, (now_ns + delay_ns, len(self.after), resource))
        else:
            self._ready.append(resource)

    def ripen(self, now_ns: int) -> None:
        """Let those whose delay is over be ready."""
        while self._later and self._later[0][0] <= now_ns:
            self._ready.append(heappop(self._later)[2])

    def due(self, now_ns: int) -> list[ScheduledRequest]:
        """Return the requests that leave now."""
        found, held = [], []
        while self._ready and (self._limit is None or self._in_flight < self._limit):
            resource = self._ready.popleft()
            if self._is_held(resource):
                held.append(resource)
            else:
                self._in_flight += 1
                found.append(ScheduledRequest(now_ns, resource))
        self._ready.extendleft(reversed(held))
        return found

    def _is_held(self, resource: int) -> bool:
        is_crowded = self._in_flight >= _TIGHT_LIMIT
        return self.is_tight and is_crowded and resource in self._unimportant

    def on_finished(self) -> None:
        """Let a response be over."""
        self._in_flight -= 1
