"""Turns: how much a stream sends before another one may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """So many *packets*, or packets until they make at least *size_bytes*.

    A packet is what the scheduler is charged for at once. A turn also ends where the stream has
    nothing more to send.

    Raises:
        InputError: if both are given, or either is less than 1.

    >>> Turn(), Turn(size_bytes=16_000)
    (Turn(packets=1, size_bytes=None), Turn(packets=1, size_bytes=16000))
    """

    # Of packets that are wrong, two stand for them: so a turn of both is still told.
    packets: int = field(default=1, metadata=says(Whole(low=1), key="turn_packets", stand_in=2))
    size_bytes: int | None = field(default=None, metadata=says(Whole(low=1), key="turn_bytes"))

    def __post_init__(self) -> None:
        settle(self, InputError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if self.size_bytes is not None and self.packets > 1:
            message = "a turn is of packets or of bytes, not of both"
            yield Problem(key="turn_bytes", message=message)
