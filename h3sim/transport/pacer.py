"""Pacing: spreads a window over a round trip (RFC 9002 § 7.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator

__all__ = ["Pacer"]

_BITS_BY_NS: Final = BITS_PER_BYTE * NS_PER_S


class Pacer:
    """A leaky bucket: up to *burst_bytes* at once, then at the rate of the moment.

    That is the controller's own, else *gain* windows a round trip; without either, packets leave at
    any time.

    >>> from h3sim.transport.rtt import RttEstimator
    >>> from h3sim.transport.congestion import ControllerSettings, make_controller
    >>> controller = make_controller("newreno", ControllerSettings(max_datagram_bytes=1000))
    >>> rtt = RttEstimator(initial_ns=333_000_000); rtt.on_sample(100_000_000)
    >>> pacer = Pacer(controller, rtt, gain=1.0, burst_bytes=2000, packet_bytes=1000)
    >>> pacer.begin(); pacer.on_sent(1000, now_ns=0); pacer.on_sent(1000, now_ns=0)
    >>> pacer.rate_bps, pacer.allows(0), pacer.due_at_ns
    (800000, False, 10000000)
    """

    __slots__ = (
        "_ahead_bits",
        "_ahead_ns",
        "_burst_bytes",
        "_controller",
        "_gain",
        "_packet_bytes",
        "_packet_ns",
        "_rtt",
        "due_at_ns",
        "empty_at_ns",
        "rate_bps",
        "ready_at_ns",
    )

    def __init__(
        self,
        controller: CongestionController,
        rtt: RttEstimator,
        *,
        gain: float | None,
        burst_bytes: int,
        packet_bytes: int,
    ) -> None:
        self._controller = controller
        self._rtt = rtt
        self._gain = gain
        self._burst_bytes = burst_bytes
        self._packet_bytes = packet_bytes
        self._packet_ns = 0
        """How long a full packet takes at the rate of the moment."""
        self._ahead_bits = self._bits_ahead(packet_bytes)
        """How much less than a burst a full packet is, as in `_bits_ahead`."""
        self._ahead_ns = 0
        """How long before the bucket is empty a full packet fits into it."""
        self.rate_bps: int | None = None
        """The rate of the moment, None where nothing is paced."""
        self.empty_at_ns = 0
        """When the bucket is empty; from then on packets of any size may leave, at any rate."""
        self.ready_at_ns = 0
        """From when on a full packet may leave. It is looked at for each, so it is kept."""
        self.due_at_ns: int | None = None
        """When a packet may leave that had to wait."""

    def begin(self) -> None:
        """Take the rate of the moment; no packet waits."""
        self.due_at_ns = None
        controller = self._controller
        rate_bps = controller.pacing_rate_bps(self._rtt)
        if rate_bps is None:
            if self._gain is None or not self._rtt.has_sample:
                # kInitialRtt is made for timeouts. A first window over it would leave at 48 kB/s,
                # where bursts of such a window are allowed (RFC 9002 § 7.7); ngtcp2 takes 1 ms.
                self.end()
                return
            window_bits = controller.congestion_window * BITS_PER_BYTE
            rate_bps = int(self._gain * window_bits * NS_PER_S / (self._rtt.smoothed_rtt_ns or 1))
            rate_bps = rate_bps if rate_bps > 1 else 1
        if rate_bps != self.rate_bps:  # a controller's own seldom changes
            self.rate_bps = rate_bps
            self._ahead_ns = self._ahead_bits // rate_bps
            self._packet_ns = self._packet_bytes * _BITS_BY_NS // rate_bps
            self.ready_at_ns = self.empty_at_ns - self._ahead_ns

    def end(self) -> None:
        """Pace nothing until the next beginning."""
        self.rate_bps = None
        self.ready_at_ns = 0

    def allows(self, now_ns: int) -> bool:
        """Return whether a full packet may leave now; note when it may otherwise."""
        if self.ready_at_ns <= now_ns:
            return True
        self.due_at_ns = self.ready_at_ns
        return False

    def allows_part(self, n_bytes: int, now_ns: int) -> bool:
        """Return the same of a packet of *n_bytes*, which may leave earlier than a full one."""
        rate_bps = self.rate_bps
        if rate_bps is None or self.empty_at_ns <= now_ns:
            return True
        ready_at_ns = self.empty_at_ns - self._bits_ahead(n_bytes) // rate_bps
        if ready_at_ns <= now_ns:
            return True
        self.due_at_ns = ready_at_ns
        return False

    def on_sent(self, n_bytes: int, now_ns: int) -> None:
        """Fill the bucket with what leaves now."""
        rate_bps = self.rate_bps
        if rate_bps is not None:
            # An empty bucket fills from now on: what was not sent while nothing waited is no
            # credit.
            from_ns = self.empty_at_ns
            if from_ns < now_ns:
                from_ns = now_ns
            took_ns = self._packet_ns  # nearly all are full
            if n_bytes != self._packet_bytes:
                took_ns = n_bytes * _BITS_BY_NS // rate_bps
            self.empty_at_ns = empty_at_ns = from_ns + took_ns
            self.ready_at_ns = empty_at_ns - self._ahead_ns

    def _bits_ahead(self, n_bytes: int) -> int:
        """Return what over a rate is how long before the bucket is empty *n_bytes* fit into it."""
        spare = self._burst_bytes - n_bytes
        return spare * _BITS_BY_NS if spare > 0 else 0
