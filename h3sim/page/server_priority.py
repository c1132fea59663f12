"""What the origin itself says of a response's priority, as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Flag, Whole
from h3sim.errors import PageError, Problem
from h3sim.signals import MAX_URGENCY, BucketPriority, Eps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.signals import Signal

__all__ = ["ServerPriority"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPriority:
    """The Priority field of a response (RFC 9218 § 8), or Cloudflare's `cf-priority`.

    With *after_bytes* it holds once so many bytes of the response were given out
    (`cf-priority-change`). Cloudflare's concurrency 0, 1 and n are the levels 3, 2 and 1.

    Raises:
        PageError: if it says nothing.
    """

    urgency: int | None = field(
        default=None,
        metadata=says(Whole(low=0, high=MAX_URGENCY), "u of the Priority field", is_premise=True),
    )
    incremental: bool | None = field(
        default=None, metadata=says(Flag(), "i of the Priority field", is_premise=True)
    )
    bucket: int | None = field(
        default=None, metadata=says(Whole(low=0, high=63), "the bucket", is_premise=True)
    )
    level: int | None = field(
        default=None, metadata=says(Whole(low=1, high=3), "the level in it", is_premise=True)
    )
    after_bytes: int = field(
        default=0, metadata=says(Whole(low=0), "from when on it holds, in bytes given out")
    )

    def __post_init__(self) -> None:
        settle(self, PageError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield that it says nothing."""
        said = (self.urgency, self.incremental, self.bucket, self.level)
        if all(value is None for value in said):
            message = "one of urgency, incremental, bucket and level is needed: what is said"
            yield Problem(key="", message=message)

    def merged_with(self, wanted: Signal) -> Signal:
        """Return what counts where the client wants that: what is left out stays as it wants it.

        >>> ServerPriority(urgency=1).merged_with(Eps(urgency=5, incremental=True))
        Eps(urgency=1, incremental=True)
        """
        if isinstance(wanted, Eps):
            return Eps(
                urgency=wanted.urgency if self.urgency is None else self.urgency,
                incremental=wanted.incremental if self.incremental is None else self.incremental,
            )
        if isinstance(wanted, BucketPriority):
            return BucketPriority(
                bucket=wanted.bucket if self.bucket is None else self.bucket,
                level=wanted.level if self.level is None else self.level,
            )
        return wanted
