"""What makes the browser ask for a resource, and when, as frozen values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.nested import Table
from h3sim.documents.values import Choice, Milliseconds, Text, Whole
from h3sim.errors import PageError, Problem
from h3sim.units import NS_PER_DAY, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DELAY", "MAX_TIME_NS", "TRIGGER", "At", "Discovery"]

MAX_TIME_NS = NS_PER_DAY
"""A day: longer delays are mistakes."""
DELAY = Milliseconds(low=0, high=to_ms(MAX_TIME_NS), hint="a day")


class At(enum.Enum):
    """The event that makes the browser ask for a resource."""

    TIME = "time"
    """Navigation start."""
    REQUEST = "request"
    """The parent is requested."""
    OFFSET = "offset"
    """So many contiguous bytes of the parent were delivered."""
    COMPLETE = "complete"
    """All bytes of the parent were delivered."""
    EXECUTED = "executed"
    """The parent was delivered, parsed and executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """Why and when a resource is asked for: *delay_ns* after event *at* of resource *by*.

    Raises:
        PageError: listing every value that is out of range or goes with another event.
    """

    by: str | None = field(
        default=None,
        metadata=says(Text(), "the id of the parent: whose event it is; needed, but for `time`"),
    )
    at: At = field(
        metadata=says(Choice(At), "the event, see below", stand_in=At.COMPLETE, is_premise=True)
    )
    offset_bytes: int | None = field(
        default=None,
        metadata=says(
            Whole(low=0), "how many bytes of the parent's body; needed with `offset`, only there"
        ),
    )
    delay_ns: int = field(
        default=0, metadata=says(DELAY, "how long after the event the request is made")
    )

    def __post_init__(self) -> None:
        settle(self, PageError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its fields."""
        if self.at is not At.TIME and self.by is None:
            yield Problem(key="by", message=f"is needed where at is {self.at.value!r}")
        if self.at is At.OFFSET and self.offset_bytes is None:
            yield Problem(key="offset_bytes", message="is needed where at is 'offset'")
        if self.at is not At.OFFSET and self.offset_bytes is not None:
            yield Problem(key="offset_bytes", message="goes only with at = 'offset'")


TRIGGER = Table(Discovery, noun="an object", is_kept=True)
"""A trigger, as it stands in a page file."""
