"""Round robin: one quantum per round, batched, or adapted to bursts of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.base import Quantum
from h3sim.schedulers.queues import DeficitCounter, RoundRing

if TYPE_CHECKING:
    from h3sim.signals import Signal


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

    def __init__(self, *, turn: Quantum = Quantum()) -> None:  # noqa: B008 - a frozen value
        self._rounds = RoundRing()
        self._turns = DeficitCounter(turn)
        self._is_one_packet = turn == Quantum()
        """True if each packet is a turn, so that none is ever begun and not over."""

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
            self._rounds.took_quantum(stream_id)
        else:
            self._rounds.keeps_turn(stream_id)


_MULTIPLE = 2
"""A turn is so many mean bursts long: Sander 2022 § V-D suggests multiples of the burst length."""
_LONGEST_TURN = 64
"""Beyond it a turn is as good as the whole of a small resource, and a mean that one long outage
drew up would serialise the page."""
_GAIN = 4
"""One burst moves the mean by a fourth of the difference (as RTT estimates do by an eighth)."""
_QUIET_PACKETS = 8
"""A burst is over once so many packets were given out and none was lost: of one burst the losses
are found out one after the other, as acknowledgements of later packets come in (RFC 9002 § 6.1)."""


class AdaptiveRoundRobinScheduler:
    """Gives each active stream one turn a round, longer where losses come in longer bursts.

    Per-packet round robin spreads a burst over many streams, each of which waits for it (Sander
    2022 § V-D). Turns of several packets keep it within few, and cost the others time; so a turn is
    one packet until something is lost, and then twice as long as the mean burst, at most 64.
    `on_lost` is told of each packet that was lost; signals are ignored.

    >>> from h3sim.signals import H2Priority
    >>> scheduler = AdaptiveRoundRobinScheduler()
    >>> for stream_id in (0, 4):
    ...     scheduler.open(stream_id, H2Priority())
    ...     scheduler.activate(stream_id)
    >>> for _ in range(5):
    ...     scheduler.on_lost()
    >>> for _ in range(10):
    ...     scheduler.charge(scheduler.pick(), 1400)
    >>> scheduler.turn_packets
    4
    """

    def __init__(self) -> None:
        self._rounds = RoundRing()
        self._used = 0
        self._of: int | None = None
        """Whose turn has begun."""
        self._burst = 0
        self._quiet = 0
        self._mean_in_quarters = _GAIN
        """Four times the mean burst, which is 1 at first: whole numbers, so equal everywhere."""
        self.turn_packets = 1
        """How long a turn is now."""

    def on_lost(self) -> None:
        """Take in that a packet was lost."""
        self._burst += 1
        self._quiet = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Take up the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Give the stream turns, from the next round on."""
        self._rounds.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Give the stream no more turns."""
        self._end_turn_of(stream_id)
        self._rounds.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Send the stream to the end of the line."""
        self._rounds.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._end_turn_of(stream_id)
        self._rounds.leave(stream_id)

    def pick(self) -> int | None:
        """Return the stream whose turn it is."""
        return self._rounds.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Count a packet of the stream's turn, and end the turn if it was the last."""
        del n_bytes
        # Silence is counted only inside a burst: outside of one there is no end to be found.
        if self._burst:
            self._quiet += 1
            if self._quiet >= _QUIET_PACKETS:
                self._learn()
        # A turn that another stream interrupted is over: what was used of it is not carried into
        # the next.
        if stream_id != self._of:
            self._of, self._used = stream_id, 0
        self._used += 1
        if self._used >= self.turn_packets:
            self._of = None
            self._rounds.took_quantum(stream_id)
        else:
            self._rounds.keeps_turn(stream_id)

    def _learn(self) -> None:
        """End the burst, and let turns follow the mean of those seen."""
        burst, self._burst = self._burst, 0
        # The scaled integer form of Jacobson 1988, appendix A: rounding down can leave the mean up
        # to 3/4 above bursts that have become shorter.
        self._mean_in_quarters += burst - self._mean_in_quarters // _GAIN
        # No burst is shorter than one packet, so the mean is not either.
        self.turn_packets = min(round(_MULTIPLE * self._mean_in_quarters / _GAIN), _LONGEST_TURN)

    def _end_turn_of(self, stream_id: int) -> None:
        if stream_id == self._of:
            self._of = None
