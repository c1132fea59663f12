"""How much of its turn each stream has used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.compiling import mypyc_attr

if TYPE_CHECKING:
    from h3sim.schedulers.turns import Turn

__all__ = ["TurnCounter"]


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class TurnCounter:
    """What each stream has used up of its turn.

    >>> from h3sim.schedulers.turns import Turn
    >>> counter = TurnCounter(Turn(packets=2))
    >>> counter.charge(0, 1400), counter.charge(0, 1400), counter.charge(0, 1400)
    (0, 1, 0)
    """

    __slots__ = ("_in_bytes", "_is_one_packet", "_size", "_used")

    def __init__(self, turn: Turn) -> None:
        self._is_one_packet = turn.packets == 1 and turn.size_bytes is None
        self._in_bytes = turn.size_bytes is not None
        self._size = turn.packets if turn.size_bytes is None else turn.size_bytes
        self._used: dict[int, int] = {}

    def charge(self, stream_id: int, n_bytes: int) -> int:
        """Count a packet of *n_bytes*; return how many turns are over with it, mostly 0 or 1.

        What a packet has above the size of a turn is forgotten; one may be as long as several.
        """
        # The usual case, once for every packet, without touching the dict.
        if self._is_one_packet:
            return 1
        used = self._used.pop(stream_id, 0) + (n_bytes if self._in_bytes else 1)
        # A packet without bytes (an end of stream alone) begins no turn that is counted in bytes.
        if 0 < used < self._size:
            self._used[stream_id] = used
        return used // self._size

    def has_begun(self, stream_id: int) -> bool:
        """Return whether the stream has sent some of a turn that is not over."""
        return stream_id in self._used

    def drop(self, stream_id: int) -> None:
        """End the stream's turn, if it has one."""
        self._used.pop(stream_id, None)
