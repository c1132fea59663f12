"""The interface between a browser and the engine: requests and changes, each at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from h3sim._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import ResourceState
    from h3sim.trace import Activity


class ScheduledRequest(NamedTuple):
    """At *at_ns*, ask for the resource at that index of the page; without one, call `on_wake`."""

    at_ns: int
    resource: int | None


class ScheduledChange(NamedTuple):
    """At *at_ns* that is known of the resource, or of all (None), which may change priorities."""

    at_ns: int
    resource: int | None
    change: ResourceState


Scheduled: TypeAlias = ScheduledRequest | ScheduledChange


@mypyc_attr(allow_interpreted_subclasses=True)
class Browser:
    """One load of a page. Resources are told by their indices in `page.resources`.

    What happens is told with the time; what follows is returned.
    """

    @property
    def is_done(self) -> bool:
        """True if the load is over: every resource was delivered, and nothing is left to do."""
        raise NotImplementedError

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        raise NotImplementedError

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The browser's activities, if it records them."""
        raise NotImplementedError

    def on_navigation(self, now_ns: int) -> Sequence[Scheduled]:
        """Return what is asked for since *now_ns* whatever happens."""
        raise NotImplementedError

    def on_requested(self, resource: int, now_ns: int) -> Sequence[Scheduled]:
        """Return what follows from the request for *resource* having left."""
        raise NotImplementedError

    def next_offset(self, resource: int) -> int:
        """Return how many contiguous bytes of *resource*'s stream it next wants to hear of."""
        raise NotImplementedError

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> Sequence[Scheduled]:
        """Return what follows from so many bytes of the stream having been delivered."""
        raise NotImplementedError

    def on_wake(self, now_ns: int) -> Sequence[Scheduled]:
        """Return what follows from time having passed, as it asked for."""
        raise NotImplementedError
