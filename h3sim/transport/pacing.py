"""Pacing: a window spread over a round trip (RFC 9002 § 7.7), and aioquic's token bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.values.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator


_BIT_NS_PER_BYTE: Final = BITS_PER_BYTE * NS_PER_S
"""A number of bytes, times this, over a rate in bit/s, is a time in nanoseconds."""


class Pacer:
    """A leaky bucket: up to *burst_bytes* at once, then at the current rate.

    The rate is the controller's own, or else *gain* windows per round trip; without either, nothing
    is paced.

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
        "_burst_bytes",
        "_burst_room_bits",
        "_burst_room_ns",
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
        """The time of a full packet at the current rate."""
        self._burst_room_bits = self._room_bits(packet_bytes)
        """The room that a full packet leaves in a burst, scaled as in `_room_bits`."""
        self._burst_room_ns = 0
        """The time before the bucket is empty at which a full packet fits into it."""
        self.rate_bps: int | None = None
        """The current rate; None without pacing."""
        self.empty_at_ns = 0
        """Time when the bucket is empty; from then on a packet of any size may leave."""
        self.ready_at_ns = 0
        """Earliest departure of a full packet. Checked for each packet, so it is precomputed."""
        self.due_at_ns: int | None = None
        """Departure time of a packet that has to wait."""

    def begin(self) -> None:
        """Update the rate; no packet waits."""
        self.due_at_ns = None
        controller = self._controller
        rate_bps = controller.pacing_rate_bps(self._rtt)
        if rate_bps is None:
            # RFC 9002 § 7.7: rate = N * congestion_window / smoothed_rtt; N above 1 (5/4 there)
            # keeps pacing from leaving the window unused when the RTT varies.
            if self._gain is None or not self._rtt.has_sample:
                # kInitialRtt is a value for timeouts. Spread over it, a first window would leave at
                # 48 kB/s, although RFC 9002 § 7.7 allows it as a burst; ngtcp2 uses 1 ms here.
                self.end()
                return
            window_bits = controller.congestion_window * BITS_PER_BYTE
            rtt_ns = self._rtt.smoothed_rtt_ns or 1  # links may have no delay
            rate_bps = max(1, int(self._gain * window_bits * NS_PER_S / rtt_ns))
        if rate_bps != self.rate_bps:  # a controller's own rate rarely changes
            self.rate_bps = rate_bps
            self._burst_room_ns = self._burst_room_bits // rate_bps
            self._packet_ns = self._packet_bytes * _BIT_NS_PER_BYTE // rate_bps
            self.ready_at_ns = self.empty_at_ns - self._burst_room_ns

    def end(self) -> None:
        """Stop pacing until the next `begin`."""
        self.rate_bps = None
        self.ready_at_ns = 0

    def allows(self, now_ns: int) -> bool:
        """Return whether a full packet may leave now; otherwise set when it may."""
        if self.ready_at_ns <= now_ns:
            return True
        self.due_at_ns = self.ready_at_ns
        return False

    def allows_part(self, n_bytes: int, now_ns: int) -> bool:
        """Return the same for a packet of *n_bytes*, which may leave earlier than a full one."""
        rate_bps = self.rate_bps
        if rate_bps is None or self.empty_at_ns <= now_ns:
            return True
        ready_at_ns = self.empty_at_ns - self._room_bits(n_bytes) // rate_bps
        if ready_at_ns <= now_ns:
            return True
        self.due_at_ns = ready_at_ns
        return False

    def on_sent(self, n_bytes: int, now_ns: int) -> None:
        """Fill the bucket with a packet that is sent now."""
        rate_bps = self.rate_bps
        if rate_bps is not None:
            # An empty bucket fills from now on: unused time is no credit for a later burst.
            from_ns = self.empty_at_ns
            if from_ns < now_ns:
                from_ns = now_ns
            packet_ns = self._packet_ns  # nearly all are full
            if n_bytes != self._packet_bytes:
                packet_ns = n_bytes * _BIT_NS_PER_BYTE // rate_bps
            self.empty_at_ns = empty_at_ns = from_ns + packet_ns
            self.ready_at_ns = empty_at_ns - self._burst_room_ns

    def _room_bits(self, n_bytes: int) -> int:
        """Return the room that *n_bytes* leave in a burst, as a dividend.

        Divided by a rate, it is the time before the bucket is empty from which on they fit.
        """
        spare = self._burst_bytes - n_bytes
        return spare * _BIT_NS_PER_BYTE if spare > 0 else 0


# The constants of aioquic's pacer.
_MIN_BURST_PACKETS: Final = 2
_MAX_BURST_PACKETS: Final = 16
"""The limits of a burst, in packets."""
_BURSTS_PER_WINDOW: Final = 4
"""The divisor of the window that gives a burst: a quarter of the window may leave at once."""
_MIN_PACKET_NS: Final = NS_PER_MS // 1000
"""The shortest time that a packet takes out of the bucket: a microsecond."""
_MAX_PACKET_NS: Final = NS_PER_S
"""The longest time that it takes."""


class BucketPacer:
    """aioquic's token bucket, which holds time: the clock fills it, and each packet drains it.

    Each packet, whatever its size, takes the time of a full packet at one window per round trip.
    Any remaining time suffices to send, so a packet may leave whenever another event (such as an
    ACK) occurs: only bursts are paced. The bucket holds a quarter of the window, 2 to 16 packets.

    >>> pacer = BucketPacer(datagram_bytes=1000)
    >>> pacer.begin(window_bytes=8000, rate_bps=8_000_000)
    >>> pacer.ready_at_ns(500_000)
    500000
    >>> pacer.on_sent(500_000)
    >>> pacer.ready_at_ns(500_000), pacer.ready_at_ns(500_001)
    (1500000, 500001)
    """

    __slots__ = ("_capacity_ns", "_datagram_bytes", "_filled_at_ns", "_level_ns", "_packet_ns")

    def __init__(self, *, datagram_bytes: int) -> None:
        self._datagram_bytes = datagram_bytes
        self._packet_ns = 0
        """The time that a packet takes out of the bucket."""
        self._capacity_ns = 0
        self._level_ns = 0
        """The time in the bucket, as of `_filled_at_ns`."""
        self._filled_at_ns = 0

    def begin(self, *, window_bytes: int, rate_bps: int) -> None:
        """Update the window and the rate."""
        packet_bytes = self._datagram_bytes
        burst_bytes = min(window_bytes // _BURSTS_PER_WINDOW, _MAX_BURST_PACKETS * packet_bytes)
        burst_bytes = max(_MIN_BURST_PACKETS * packet_bytes, burst_bytes)
        packet_ns = packet_bytes * _BIT_NS_PER_BYTE // rate_bps
        self._packet_ns = max(_MIN_PACKET_NS, min(packet_ns, _MAX_PACKET_NS))
        # At least 1 ns at any rate: rounded down to 0, the bucket would never let a packet leave.
        self._capacity_ns = max(1, burst_bytes * _BIT_NS_PER_BYTE // rate_bps)
        # The bucket may have shrunk with the window; the excess is dropped.
        self._level_ns = min(self._level_ns, self._capacity_ns)

    def ready_at_ns(self, now_ns: int) -> int:
        """Return now if a packet may leave, else when it may without any other event."""
        self._fill(now_ns)
        # A full packet's time, however little is missing, as next_send_time of aioquic.
        return now_ns if self._level_ns > 0 else now_ns + self._packet_ns

    def on_sent(self, now_ns: int) -> None:
        """Take out a packet's time, or all that remains."""
        self._fill(now_ns)
        self._level_ns = max(0, self._level_ns - self._packet_ns)

    def _fill(self, now_ns: int) -> None:
        """Add the time since the last call, up to the capacity."""
        self._level_ns = min(self._level_ns + now_ns - self._filled_at_ns, self._capacity_ns)
        self._filled_at_ns = now_ns


class AioquicPacer(Pacer):
    """A `Pacer` whose bucket is a `BucketPacer`."""

    __slots__ = ("_bucket",)

    def __init__(
        self,
        controller: CongestionController,
        rtt: RttEstimator,
        *,
        gain: float | None,
        burst_bytes: int,
        packet_bytes: int,
    ) -> None:
        super().__init__(
            controller, rtt, gain=gain, burst_bytes=burst_bytes, packet_bytes=packet_bytes
        )
        self._bucket = BucketPacer(datagram_bytes=packet_bytes)

    def begin(self) -> None:
        """Update the rate; no packet waits."""
        super().begin()
        if self.rate_bps is not None:
            window_bytes = self._controller.congestion_window
            self._bucket.begin(window_bytes=window_bytes, rate_bps=self.rate_bps)

    def allows_part(self, n_bytes: int, now_ns: int) -> bool:  # noqa: ARG002 - of any size
        """Return whether a packet may leave now; otherwise set when it may."""
        if self.rate_bps is None:
            return True
        ready_at_ns = self._bucket.ready_at_ns(now_ns)
        if ready_at_ns <= now_ns:
            return True
        self.due_at_ns = ready_at_ns
        return False

    def on_sent(self, n_bytes: int, now_ns: int) -> None:  # noqa: ARG002 - whatever its size
        """Take out a packet's time."""
        if self.rate_bps is not None:
            self._bucket.on_sent(now_ns)
