"""Round robin: one turn each, in rounds; batched, where a turn is more than a packet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.rounds import Rounds
from h3sim.schedulers.turn_counter import TurnCounter
from h3sim.schedulers.turns import Turn

if TYPE_CHECKING:
    from h3sim.signals import Signal

__all__ = ["RoundRobinScheduler"]


class RoundRobinScheduler:
    """Gives each active stream one turn a round (Marx 2019, Table 1: rr); signals are ignored.

    With a *turn* of several packets it is batched: a stream keeps its turn until it is used up, or
    until it has no data (Sander 2022 § V-D).

    >>> from h3sim.signals import H2Priority
    >>> scheduler = RoundRobinScheduler()
    >>> for stream_id in (0, 4):
    ...     scheduler.open(stream_id, H2Priority())
    ...     scheduler.activate(stream_id)
    >>> scheduler.charge(0, 1400)
    >>> scheduler.pick()
    4
    """

    def __init__(self, *, turn: Turn = Turn()) -> None:  # noqa: B008 - a frozen value
        self._rounds = Rounds()
        self._turns = TurnCounter(turn)
        self._is_one_packet = turn == Turn()
        """Whether each packet is a turn, so that none is ever begun and not over."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Put the stream among those that take turns, from the next round on."""
        self._rounds.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Take the stream out of the turns."""
        # Streams come and go with every packet of a small resource: a call for nothing is worth a
        # test.
        if not self._is_one_packet:
            self._turns.drop(stream_id)
        self._rounds.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Send the stream to the end of the line."""
        self._rounds.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)

    def pick(self) -> int | None:
        """Return the stream whose turn it is."""
        return self._rounds.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count a packet of the stream's turn, and end the turn if it was the last."""
        if self._is_one_packet or self._turns.charge(stream_id, n_bytes):
            self._rounds.took_turn(stream_id)
        else:
            self._rounds.keeps_turn(stream_id)
