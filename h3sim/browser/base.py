"""What the engine asks of a browser, and what a browser asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import Standing
    from h3sim.trace import Activity

__all__ = ["Browser", "Scheduled", "ScheduledChange", "ScheduledRequest"]


class ScheduledRequest(NamedTuple):
    """At *at_ns*, ask for the resource at that index of the page; without one, call `on_wake`."""

    at_ns: int
    resource: int | None


class ScheduledChange(NamedTuple):
    """At *at_ns* that is known of the resource, or of all (None), which may change priorities."""

    at_ns: int
    resource: int | None
    change: Standing


Scheduled: TypeAlias = ScheduledRequest | ScheduledChange


class Browser(Protocol):
    """One load of a page. Resources are told by their indices in `page.resources`.

    What happens is told with the time; what follows is returned.
    """

    @property
    def is_done(self) -> bool:
        """Whether the load is over: every resource was delivered, and nothing is left to do."""

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""

    @property
    def activities(self) -> tuple[Activity, ...]:
        """What it did, where it keeps a record."""

    def on_navigation(self, now_ns: int) -> Sequence[Scheduled]:
        """Return what is asked for since *now_ns* whatever happens."""

    def on_requested(self, resource: int, now_ns: int) -> Sequence[Scheduled]:
        """Return what follows from the request for *resource* having left."""

    def next_offset(self, resource: int) -> int:
        """Return how many contiguous bytes of *resource*'s stream it next wants to hear of."""

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> Sequence[Scheduled]:
        """Return what follows from so many bytes of the stream having been delivered."""

    def on_wake(self, now_ns: int) -> Sequence[Scheduled]:
        """Return what follows from time having passed, as it asked for."""
