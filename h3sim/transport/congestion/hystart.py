"""HyStart++: leaves the initial slow start when the delay rises (RFC 9406)."""

from __future__ import annotations

from typing import Final

from h3sim.units import NS_PER_MS

__all__ = ["HyStart"]

# RFC 9406 § 4.3
_MIN_RTT_THRESH_NS: Final = 4 * NS_PER_MS
_MAX_RTT_THRESH_NS: Final = 16 * NS_PER_MS
_MIN_RTT_DIVISOR: Final = 8
_N_RTT_SAMPLE: Final = 8
_CSS_GROWTH_DIVISOR: Final = 4
_CSS_ROUNDS: Final = 5
_L: Final = 8
"""What one ACK may add, in packets; the value of RFC 9406 § 4.3 for senders that do not pace."""


class HyStart:
    """Watches the smallest RTT of each round of the initial slow start (RFC 9406 § 4.2).

    A round ends when a packet is acknowledged that was sent after its beginning. If a round's
    smallest RTT has risen, Conservative Slow Start (CSS) begins, in which the window grows by a
    quarter of what it did; it is left when the RTT falls again, and ends slow start after five
    rounds. Only the initial slow start uses it (§ 4.3).

    >>> hystart = HyStart(max_datagram_bytes=1000)
    >>> hystart.on_sent(0)
    >>> hystart.growth_bytes(2000), hystart.on_ack(0, 50_000_000), hystart.is_conservative
    (2000, False, False)
    """

    __slots__ = (
        "_baseline_ns",
        "_current_ns",
        "_largest_acked",
        "_largest_sent",
        "_last_ns",
        "_most_bytes",
        "_round_end",
        "_rounds",
        "_samples",
    )

    def __init__(self, *, max_datagram_bytes: int) -> None:
        self._most_bytes = _L * max_datagram_bytes
        self._largest_sent = -1
        self._largest_acked = -1
        self._round_end = 0
        """windowEnd: the first packet that was sent after the round began."""
        self._last_ns: int | None = None
        """lastRoundMinRTT; None for infinity, as in the next two."""
        self._current_ns: int | None = None
        """currentRoundMinRTT."""
        self._baseline_ns: int | None = None
        """cssBaselineMinRtt; there is one exactly during CSS."""
        self._samples = 0
        self._rounds = 0

    @property
    def is_conservative(self) -> bool:
        """Whether this is Conservative Slow Start."""
        return self._baseline_ns is not None

    def on_sent(self, number: int) -> None:
        """Take note of a packet that leaves."""
        self._largest_sent = number

    def growth_bytes(self, acked_bytes: int) -> int:
        """Return by how much the window grows when one ACK covers *acked_bytes* more."""
        growth_bytes = min(acked_bytes, self._most_bytes)
        return growth_bytes if self._baseline_ns is None else growth_bytes // _CSS_GROWTH_DIVISOR

    def on_ack(self, number: int, latest_rtt_ns: int) -> bool:
        """Take note of an ACK whose highest new packet is *number*; return if slow start ends."""
        # Before the sample: the ACK that ends a round is the first of the next one.
        if number >= self._round_end and self._ends_in_new_round():
            return True
        if number > self._largest_acked:
            # Only such an ACK gives an RTT sample (RFC 9002 § 5.1).
            self._largest_acked = number
            self._sample(latest_rtt_ns)
        return False

    def _sample(self, latest_rtt_ns: int) -> None:
        self._samples += 1
        current_ns = self._current_ns
        if current_ns is None or latest_rtt_ns < current_ns:
            self._current_ns = current_ns = latest_rtt_ns
        # A few samples may all have met a queue that is gone a moment later.
        if self._samples < _N_RTT_SAMPLE:
            return
        if self._baseline_ns is not None:
            if current_ns < self._baseline_ns:
                self._baseline_ns = None  # The exit was spurious: back to slow start.
        elif self._last_ns is not None:
            threshold_ns = self._last_ns // _MIN_RTT_DIVISOR
            threshold_ns = max(_MIN_RTT_THRESH_NS, min(threshold_ns, _MAX_RTT_THRESH_NS))
            if current_ns >= self._last_ns + threshold_ns:
                self._baseline_ns = current_ns
                self._rounds = 0

    def _ends_in_new_round(self) -> bool:
        """Begin a round; return whether there were enough of them."""
        self._last_ns = self._current_ns
        self._current_ns = None
        self._samples = 0
        self._round_end = self._largest_sent + 1
        if self._baseline_ns is None:
            return False
        # The round in which CSS began counts too, however little of it was left.
        self._rounds += 1
        return self._rounds >= _CSS_ROUNDS
