"""Round robin: one quantum per round, batched, or adapted to bursts of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.schedulers.base import Quantum
from h3sim.schedulers.queues import DeficitCounter, RoundRing

if TYPE_CHECKING:
    from h3sim.signals import Signal


class RoundRobinScheduler:
    """Round robin with a quantum per round (Marx 2019, Table 1: rr); signals are ignored.

    With a *turn* of several packets it is batched: a stream sends until its quantum is used up, or
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
        """True if each packet is a quantum, so that none is ever partly used."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add the stream to the ring, from the next round on."""
        self._rounds.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Remove the stream from the ring."""
        # Streams with small resources change state with every packet: a test is cheaper than a
        # call.
        if not self._is_one_packet:
            self._turns.drop(stream_id)
        self._rounds.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Move the stream to the end of the line."""
        self._rounds.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)

    def pick(self) -> int | None:
        """Return the stream to send next."""
        return self._rounds.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a packet, and end the stream's quantum if it is used up."""
        if self._is_one_packet or self._turns.charge(stream_id, n_bytes):
            self._rounds.took_quantum(stream_id)
        else:
            self._rounds.keeps_turn(stream_id)


_MULTIPLE = 2
"""A quantum in mean bursts: Sander 2022 § V-D suggests multiples of the burst length."""
_LONGEST_TURN = 64
"""The largest quantum. A larger one covers the whole of a small resource, and a mean raised by one
long outage would serialise the page."""
_GAIN = 4
"""A burst moves the mean by a fourth of the difference (RTT estimates use an eighth)."""
_QUIET_PACKETS = 8
"""Packets without a loss that end a burst: its losses are detected one after the other, with
acknowledgements of later packets (RFC 9002 § 6.1)."""


class AdaptiveRoundRobinScheduler:
    """Round robin with a quantum that adapts to the length of loss bursts.

    Per-packet round robin spreads a burst over many streams, each of which waits for it (Sander
    2022 § V-D). Quanta of several packets confine it to a few, and delay the others; so a quantum
    is one packet until the first loss, and then twice the mean burst, at most 64. `on_lost` is
    called for each lost packet; signals are ignored.

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
        self._current_stream: int | None = None
        """The stream whose quantum is partly used."""
        self._burst = 0
        self._quiet = 0
        self._mean_in_quarters = _GAIN
        """Four times the mean burst, initially 1; an integer, so equal on every machine."""
        self.turn_packets = 1
        """The current quantum in packets."""

    def on_lost(self) -> None:
        """Handle the loss of a packet."""
        self._burst += 1
        self._quiet = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add the stream to the ring, from the next round on."""
        self._rounds.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Remove the stream from the ring."""
        self._end_turn_of(stream_id)
        self._rounds.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Move the stream to the end of the line."""
        self._rounds.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self._end_turn_of(stream_id)
        self._rounds.leave(stream_id)

    def pick(self) -> int | None:
        """Return the stream to send next."""
        return self._rounds.first

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a packet, and end the stream's quantum if it is used up."""
        del n_bytes
        # Packets without loss are counted only within a burst, to find its end. Outside of bursts
        # the mean does not decay: it estimates how long bursts are, not how frequent.
        if self._burst:
            self._quiet += 1
            if self._quiet >= _QUIET_PACKETS:
                self._learn()
        # A quantum that another stream interrupted is over: its rest does not carry over.
        if stream_id != self._current_stream:
            self._current_stream, self._used = stream_id, 0
        self._used += 1
        if self._used >= self.turn_packets:
            self._current_stream = None
            self._rounds.took_quantum(stream_id)
        else:
            self._rounds.keeps_turn(stream_id)

    def _learn(self) -> None:
        """End the burst, and update the mean and the quantum."""
        burst, self._burst = self._burst, 0
        # The scaled integer form of Jacobson 1988, appendix A: rounding down can leave the mean up
        # to 3/4 above bursts that have become shorter.
        self._mean_in_quarters += burst - self._mean_in_quarters // _GAIN
        # No burst is shorter than one packet, so the mean is not either.
        self.turn_packets = min(round(_MULTIPLE * self._mean_in_quarters / _GAIN), _LONGEST_TURN)

    def _end_turn_of(self, stream_id: int) -> None:
        if stream_id == self._current_stream:
            self._current_stream = None
