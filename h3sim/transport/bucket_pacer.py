"""Pacing as aioquic 1.7 does it (aioquic/quic/recovery.py): a bucket of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.pacer import Pacer
from h3sim.units import BITS_PER_BYTE, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator

__all__ = ["AioquicPacer", "BucketPacer"]

_LEAST_PACKETS: Final = 2
_MOST_PACKETS: Final = 16
_WINDOW_SHARE: Final = 4
_LEAST_NS: Final = NS_PER_MS // 1000
"""A packet's time is a microsecond at least and a second at most, as aioquic bounds it."""


class BucketPacer:
    """Time fills a bucket; a packet leaves if there is any in it, and takes out a packet's time.

    A packet's time is that of a full one at one window per round trip, whatever its size. Since
    *any* time will do, a packet may leave whenever something else happens, an ACK say: what is
    paced are bursts. The bucket holds a quarter of the window, 2 to 16 packets.

    >>> pacer = BucketPacer(datagram_bytes=1000)
    >>> pacer.begin(window_bytes=8000, rate_bps=8_000_000)
    >>> pacer.ready_at_ns(500_000)
    500000
    >>> pacer.on_sent(500_000)
    >>> pacer.ready_at_ns(500_000), pacer.ready_at_ns(500_001)
    (1500000, 500001)
    """

    __slots__ = ("_datagram_bytes", "_filled_at_ns", "_left_ns", "_most_ns", "_packet_ns")

    def __init__(self, *, datagram_bytes: int) -> None:
        self._datagram_bytes = datagram_bytes
        self._packet_ns = 0
        self._most_ns = 0
        self._left_ns = 0
        self._filled_at_ns = 0

    def begin(self, *, window_bytes: int, rate_bps: int) -> None:
        """Take the window and the rate of the moment."""
        full = self._datagram_bytes
        burst_bytes = max(
            _LEAST_PACKETS * full, min(window_bytes // _WINDOW_SHARE, _MOST_PACKETS * full)
        )
        ns_per_byte = BITS_PER_BYTE * NS_PER_S
        self._packet_ns = max(_LEAST_NS, min(full * ns_per_byte // rate_bps, NS_PER_S))
        # At any rate the bucket holds some time: rounded to nothing, it would let nothing leave.
        self._most_ns = max(1, burst_bytes * ns_per_byte // rate_bps)
        # The bucket may have shrunk with the window; what no longer fits is gone.
        self._left_ns = min(self._left_ns, self._most_ns)

    def ready_at_ns(self, now_ns: int) -> int:
        """Return now if a packet may leave, else when it will without anything else happening."""
        self._fill(now_ns)
        # A whole packet's time, however little is missing: next_send_time of aioquic asks no
        # closer.
        return now_ns if self._left_ns > 0 else now_ns + self._packet_ns

    def on_sent(self, now_ns: int) -> None:
        """Take out a packet's time, or what there is."""
        self._fill(now_ns)
        self._left_ns = max(0, self._left_ns - self._packet_ns)

    def _fill(self, now_ns: int) -> None:
        self._left_ns = min(self._left_ns + now_ns - self._filled_at_ns, self._most_ns)
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
        """Take the rate of the moment; no packet waits."""
        super().begin()
        if self.rate_bps is not None:
            window_bytes = self._controller.congestion_window
            self._bucket.begin(window_bytes=window_bytes, rate_bps=self.rate_bps)

    def allows_part(self, n_bytes: int, now_ns: int) -> bool:  # noqa: ARG002 - of any size
        """Return whether a packet may leave now; note when it may otherwise."""
        if self.rate_bps is None:
            return True
        ready_at_ns = self._bucket.ready_at_ns(now_ns)
        if ready_at_ns <= now_ns:
            return True
        self.due_at_ns = ready_at_ns
        return False

    def on_sent(self, n_bytes: int, now_ns: int) -> None:  # noqa: ARG002 - whatever its size
        """Take a packet's time out."""
        if self.rate_bps is not None:
            self._bucket.on_sent(now_ns)
