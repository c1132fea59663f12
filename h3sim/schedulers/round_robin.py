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
        self._ring = RoundRing()
        self._quanta = DeficitCounter(turn)
        self._is_one_packet = turn == Quantum()
        """True if each packet is a quantum, so that `_quanta` has nothing to count."""

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add the stream to the ring, from the next round on."""
        self._ring.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Remove the stream from the ring."""
        # Streams with small resources change state with every packet: a test is cheaper than a
        # call.
        if not self._is_one_packet:
            self._quanta.drop(stream_id)
        self._ring.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Move the stream to the end of the line."""
        self._ring.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)

    def pick(self) -> int | None:
        """Return the stream to send next."""
        return self._ring.next_stream

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a packet, and end the stream's quantum if it is used up."""
        if self._is_one_packet or self._quanta.charge(stream_id, n_bytes):
            self._ring.end_quantum(stream_id)
        else:
            self._ring.continue_quantum(stream_id)


_QUANTUM_PER_BURST = 2
"""The quantum in mean bursts: Sander 2022 § V-D suggests multiples of the burst length."""
_MAX_QUANTUM_PACKETS = 64
"""The largest quantum. A larger one covers the whole of a small resource, and a mean raised by one
long outage would serialise the page."""
_INVERSE_GAIN = 4
"""A burst moves the mean by a fourth of the difference (RTT estimates use an eighth)."""
_PACKETS_ENDING_BURST = 8
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
        self._ring = RoundRing()
        self._current_stream: int | None = None
        """The stream whose quantum is partly used."""
        self._used_packets = 0
        """The used part of that quantum."""
        self._burst_losses = 0
        """The losses of the current burst; 0 outside of bursts."""
        self._sent_since_loss = 0
        """The packets sent since the last loss of the current burst."""
        self._mean_in_quarters = _INVERSE_GAIN
        """Four times the mean burst, initially 1; an integer, so equal on every machine."""
        self.turn_packets = 1
        """The current quantum in packets."""

    def on_lost(self) -> None:
        """Count the loss of a packet in the current burst, which it may begin."""
        self._burst_losses += 1
        self._sent_since_loss = 0

    def open(self, stream_id: int, signal: Signal) -> None:
        """Open the stream."""

    def update(self, stream_id: int, signal: Signal) -> None:
        """Ignore the signal."""

    def activate(self, stream_id: int) -> None:
        """Add the stream to the ring, from the next round on."""
        self._ring.join(stream_id)

    def deactivate(self, stream_id: int) -> None:
        """Remove the stream from the ring, which ends its quantum."""
        if stream_id == self._current_stream:
            self._current_stream = None
        self._ring.leave(stream_id)

    def requeue(self, stream_id: int) -> None:
        """Move the stream to the end of the line."""
        self._ring.requeue(stream_id)

    def close(self, stream_id: int) -> None:
        """Forget the stream."""
        self.deactivate(stream_id)

    def pick(self) -> int | None:
        """Return the stream to send next."""
        return self._ring.next_stream

    def charge(self, stream_id: int, n_bytes: int) -> None:
        """Charge a packet, and end the stream's quantum if it is used up."""
        del n_bytes
        # Packets without loss are counted only within a burst, to find its end. Outside of bursts
        # the mean does not decay: it estimates how long bursts are, not how frequent.
        if self._burst_losses:
            self._sent_since_loss += 1
            if self._sent_since_loss >= _PACKETS_ENDING_BURST:
                self._end_burst()
        # A quantum that another stream interrupted is over: its rest does not carry over.
        if stream_id != self._current_stream:
            self._current_stream, self._used_packets = stream_id, 0
        self._used_packets += 1
        if self._used_packets >= self.turn_packets:
            self._current_stream = None
            self._ring.end_quantum(stream_id)
        else:
            self._ring.continue_quantum(stream_id)

    def _end_burst(self) -> None:
        """End the burst, and update the mean and the quantum."""
        burst, self._burst_losses = self._burst_losses, 0
        # The scaled integer form of Jacobson 1988, appendix A: rounding down can leave the mean up
        # to 3/4 above bursts that have become shorter.
        self._mean_in_quarters += burst - self._mean_in_quarters // _INVERSE_GAIN
        # No burst is shorter than one packet, so the mean is not either.
        mean = self._mean_in_quarters / _INVERSE_GAIN
        self.turn_packets = min(round(_QUANTUM_PER_BURST * mean), _MAX_QUANTUM_PACKETS)
