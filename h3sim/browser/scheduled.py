"""What a browser asks the engine for: requests, and changes of what is known, each at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from h3sim.page import Standing

__all__ = ["Scheduled", "ScheduledChange", "ScheduledRequest"]


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
