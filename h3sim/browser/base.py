"""The interface between a browser and the engine: requests and changes, each at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from h3sim.values._mypyc import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import ResourceState
    from h3sim.trace import Activity


class ScheduledRequest(NamedTuple):
    """A request for the resource at that index of the page, at *at_ns*; a wake-up if it is None."""

    at_ns: int
    resource: int | None


class ScheduledPriorityChange(NamedTuple):
    """A state change at *at_ns*, of one resource or of all (None); it may change priorities."""

    at_ns: int
    resource: int | None
    change: ResourceState


Scheduled: TypeAlias = ScheduledRequest | ScheduledPriorityChange
"""Something that a browser wants to happen at a time."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Browser:
    """Interface of browsers, one per load. Resources are identified by their indices in the page.

    Each event is passed with its time; the resulting requests and changes are returned.
    """

    @property
    def is_done(self) -> bool:
        """True if the load is over: every resource has been delivered and nothing is left to do."""
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
        """Return the requests and changes since *now_ns* that depend on no resource."""
        raise NotImplementedError

    def on_requested(self, resource: int, now_ns: int) -> Sequence[Scheduled]:
        """Return the requests and changes that follow once the request for *resource* has left."""
        raise NotImplementedError

    def next_offset(self, resource: int) -> int:
        """Return the contiguous bytes of *resource*'s stream at which to report it next."""
        raise NotImplementedError

    def on_delivered(
        self, resource: int, contiguous_bytes: int, now_ns: int
    ) -> Sequence[Scheduled]:
        """Return the requests and changes that follow from that many delivered bytes.

        The end of a response must be reported only once.
        """
        raise NotImplementedError

    def on_wake(self, now_ns: int) -> Sequence[Scheduled]:
        """Return the requests and changes due at a time for which it requested a wake-up."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class WrappingBrowser(Browser):
    """A browser that adds requests or changes to those of *inner*, which decides when it ends."""

    def __init__(self, inner: Browser) -> None:
        self._inner = inner

    @property
    def is_done(self) -> bool:
        """True if the load is over, even if changes remain."""
        return self._inner.is_done

    @property
    def waiting(self) -> list[str]:
        """The ids of the resources that have not been delivered."""
        return self._inner.waiting

    @property
    def activities(self) -> tuple[Activity, ...]:
        """The activities of the browser."""
        return self._inner.activities
