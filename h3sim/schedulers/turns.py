"""Turns: how much a stream sends before another one may go."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Whole
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turn", "TurnCounter"]


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


class TurnCounter:
    """What each stream has used up of its turn.

    >>> counter = TurnCounter(Turn(packets=2))
    >>> counter.charge(0, 1400), counter.charge(0, 1400), counter.charge(0, 1400)
    (0, 1, 0)
    """

    __slots__ = ("_in_bytes", "_is_one_packet", "_size", "_used")

    def __init__(self, turn: Turn) -> None:
        self._is_one_packet = turn == Turn()
        self._in_bytes = turn.size_bytes is not None
        self._size = turn.packets if turn.size_bytes is None else turn.size_bytes
        self._used: dict[int, int] = {}

    def charge(self, stream_id: int, n_bytes: int) -> int:
        """Count a packet of *n_bytes*; return how many turns are over with it, mostly 0 or 1.

        What a packet has above the size of a turn is forgotten; one may be as long as several.
        """
        if self._is_one_packet:
            return 1
        used = self._used.pop(stream_id, 0) + (n_bytes if self._in_bytes else 1)
        if 0 < used < self._size:
            self._used[stream_id] = used
        return used // self._size

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream has sent some of a turn that is not over."""
        return stream_id in self._used

    def drop(self, stream_id: int) -> None:
        """End the stream's turn, if it has one."""
        self._used.pop(stream_id, None)
