"""The end of slow start before a loss: HyStart++, SEARCH, and HyStart as Linux 6 has it."""

# ruff: noqa: ARG002 - an algorithm need not use every argument
from __future__ import annotations

from typing import Final

from h3sim.values.units import NS_PER_MS

# RFC 9406 § 4.3
_MIN_RTT_THRESH_NS: Final = 4 * NS_PER_MS
"""The lower limit of the threshold: smaller increases of the RTT never count (MIN_RTT_THRESH)."""
_MAX_RTT_THRESH_NS: Final = 16 * NS_PER_MS
"""The upper limit of the threshold: larger increases always count (MAX_RTT_THRESH)."""
_MIN_RTT_DIVISOR: Final = 8
"""The divisor of the RTT that gives the threshold between these limits (MIN_RTT_DIVISOR)."""
_MIN_RTT_SAMPLES: Final = 8
"""The samples that a round needs (N_RTT_SAMPLE)."""
_CSS_GROWTH_DIVISOR: Final = 4
"""The divisor of growth in Conservative Slow Start (CSS_GROWTH_DIVISOR)."""
_CSS_ROUNDS: Final = 5
"""The rounds of CSS after which slow start ends (CSS_ROUNDS)."""
_MAX_GROWTH_PACKETS: Final = 8
"""The limit of growth per ACK, in packets, for senders without pacing (L, RFC 9406 § 4.3)."""


class SlowStart:
    """The initial slow start of a controller: how it grows, and when it ends before a loss."""

    __slots__ = ()

    def on_sent(self, number: int, size_bytes: int = 0) -> None:
        """Record a packet that is sent."""
        raise NotImplementedError

    def growth_bytes(self, acked_bytes: int) -> int:
        """Return by how much the window grows when one ACK covers *acked_bytes* more."""
        raise NotImplementedError

    def on_ack(
        self,
        number: int,
        latest_rtt_ns: int,
        acked_bytes: int = 0,
        now_ns: int = 0,
        is_cwnd_underutilized: bool = False,
    ) -> bool:
        """Handle an ACK whose highest new packet is *number*; return whether slow start ends."""
        raise NotImplementedError


class HyStart(SlowStart):
    """The HyStart++ algorithm: the smallest RTT of each round ends slow start (RFC 9406 § 4.2).

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
        "_css_rounds",
        "_current_ns",
        "_largest_acked",
        "_largest_sent",
        "_last_ns",
        "_max_growth_bytes",
        "_n_samples",
        "_round_end",
    )

    def __init__(self, *, max_datagram_bytes: int) -> None:
        self._max_growth_bytes = _MAX_GROWTH_PACKETS * max_datagram_bytes
        self._largest_sent = -1
        self._largest_acked = -1
        self._round_end = 0
        """First packet number of the next round (windowEnd)."""
        self._last_ns: int | None = None
        """lastRoundMinRTT; None for infinity, as in the next two."""
        self._current_ns: int | None = None
        """currentRoundMinRTT."""
        self._baseline_ns: int | None = None
        """cssBaselineMinRtt; None outside CSS."""
        self._n_samples = 0
        """rttSampleCount."""
        self._css_rounds = 0

    @property
    def is_conservative(self) -> bool:
        """True in Conservative Slow Start."""
        return self._baseline_ns is not None

    def on_sent(self, number: int, size_bytes: int = 0) -> None:
        """Record a packet that is sent."""
        self._largest_sent = number

    def growth_bytes(self, acked_bytes: int) -> int:
        """Return by how much the window grows when one ACK covers *acked_bytes* more."""
        # RFC 9406 § 4.2: min(N, L * SMSS), divided in CSS. L limits the burst that a stretch ACK
        # would release.
        growth_bytes = min(acked_bytes, self._max_growth_bytes)
        return growth_bytes if self._baseline_ns is None else growth_bytes // _CSS_GROWTH_DIVISOR

    def on_ack(
        self,
        number: int,
        latest_rtt_ns: int,
        acked_bytes: int = 0,
        now_ns: int = 0,
        is_cwnd_underutilized: bool = False,
    ) -> bool:
        """Handle an ACK whose highest new packet is *number*; return whether slow start ends."""
        # Before the sample: the ACK that ends a round is the first of the next one.
        if number >= self._round_end and self._ends_in_new_round():
            return True
        if number > self._largest_acked:
            # Only such an ACK gives an RTT sample (RFC 9002 § 5.1).
            self._largest_acked = number
            self._on_rtt_sample(latest_rtt_ns)
        return False

    def _on_rtt_sample(self, latest_rtt_ns: int) -> None:
        """Compare the round's minimum RTT with that of the round before (RFC 9406 § 4.2)."""
        self._n_samples += 1
        current_ns = self._current_ns
        if current_ns is None or latest_rtt_ns < current_ns:
            self._current_ns = current_ns = latest_rtt_ns
        # A few samples may all include a queue that is gone a moment later.
        if self._n_samples < _MIN_RTT_SAMPLES:
            return
        if self._baseline_ns is not None:
            # RFC 9406 § 4.2: jitter raised the RTT, not a queue, which would have kept growing.
            if current_ns < self._baseline_ns:
                self._baseline_ns = None  # The exit was spurious: back to slow start.
        elif self._last_ns is not None:
            threshold_ns = self._last_ns // _MIN_RTT_DIVISOR
            threshold_ns = max(_MIN_RTT_THRESH_NS, min(threshold_ns, _MAX_RTT_THRESH_NS))
            if current_ns >= self._last_ns + threshold_ns:
                self._baseline_ns = current_ns
                self._css_rounds = 0

    def _ends_in_new_round(self) -> bool:
        """Begin a round; return whether slow start ends after enough rounds of CSS."""
        self._last_ns = self._current_ns
        self._current_ns = None
        self._n_samples = 0
        self._round_end = self._largest_sent + 1
        if self._baseline_ns is None:
            return False
        # The round in which CSS began counts too, however little of it was left.
        self._css_rounds += 1
        return self._css_rounds >= _CSS_ROUNDS


_SEARCH_BINS: Final = 10
"""The bins of a window (W)."""
_SEARCH_WINDOW_PERCENT: Final = 350
"""A window in percent of the first RTT (WINDOW_SIZE_FACTOR)."""
_SEARCH_EXTRA_BINS: Final = 15
"""The bins by which it can look back, beyond a window (EXTRA_BINS)."""
_SEARCH_THRESH_PERCENT: Final = 26
"""The share of the bytes sent that may not have been delivered (THRESH)."""


class Search(SlowStart):
    """SEARCH: slow start ends when delivery falls behind what was sent a round trip before.

    As in neqo, Firefox's QUIC, at 80ca01ee (August 2026; in use since May 2026): draft-chung-ccwg-
    search-09 without its drain phase and without scaled bins. Time is cut into bins of 35 % of the
    first RTT; at the end of each, the bytes that were acknowledged in the last ten are compared
    with those sent in the ten that ended an RTT before.

    >>> search = Search()
    >>> search.on_sent(0, 1000)
    >>> search.growth_bytes(2000), search.on_ack(0, 100_000_000, 1000, 100_000_000)
    (2000, False)
    """

    __slots__ = ("_acked", "_acked_bytes", "_bin_ends_at_ns", "_bin_ns", "_sent", "_sent_bytes")

    def __init__(self) -> None:
        self._acked: list[int] = []
        """All bytes acknowledged by the end of each bin, from the first ACK on."""
        self._sent: list[int] = []
        """All bytes sent by then."""
        self._acked_bytes = self._sent_bytes = 0
        self._bin_ns = self._bin_ends_at_ns = 0

    def on_sent(self, number: int, size_bytes: int = 0) -> None:
        """Count a packet that is sent."""
        self._sent_bytes += size_bytes

    def growth_bytes(self, acked_bytes: int) -> int:
        """Return by how much the window grows when one ACK covers *acked_bytes* more."""
        return acked_bytes

    def on_ack(
        self,
        number: int,
        latest_rtt_ns: int,
        acked_bytes: int = 0,
        now_ns: int = 0,
        is_cwnd_underutilized: bool = False,
    ) -> bool:
        """Handle an ACK; return whether slow start ends."""
        self._acked_bytes += acked_bytes
        if is_cwnd_underutilized:
            return False
        if not self._acked:
            self._bin_ns = max(1, latest_rtt_ns * _SEARCH_WINDOW_PERCENT // (100 * _SEARCH_BINS))
            self._bin_ends_at_ns = now_ns + self._bin_ns
            self._acked, self._sent = [self._acked_bytes], [self._sent_bytes]
        if now_ns <= self._bin_ends_at_ns:
            return False
        n_passed = (now_ns - self._bin_ends_at_ns) // self._bin_ns + 1
        if n_passed > _SEARCH_BINS:  # too old to be compared
            self._acked, self._sent = [], []
            self._acked_bytes = self._sent_bytes = 0
            return False
        self._bin_ends_at_ns += n_passed * self._bin_ns
        self._acked += [self._acked[-1]] * (n_passed - 1) + [self._acked_bytes]
        self._sent += [self._sent[-1]] * (n_passed - 1) + [self._sent_bytes]
        return self._has_flattened(latest_rtt_ns)

    def _has_flattened(self, latest_rtt_ns: int) -> bool:
        """Return whether much less was delivered than had been sent an RTT before."""
        n_back, rest_ns = divmod(latest_rtt_ns, self._bin_ns)
        now = len(self._acked) - 1
        before = now - n_back
        if before <= _SEARCH_BINS or n_back >= _SEARCH_EXTRA_BINS:
            return False
        delivered = self._acked[now] - self._acked[now - _SEARCH_BINS]
        # Between two bins, in whole percent, as neqo does.
        percent = rest_ns * 100 // self._bin_ns
        earlier = self._sent[before - 1] - self._sent[before - 1 - _SEARCH_BINS]
        later = self._sent[before] - self._sent[before - _SEARCH_BINS]
        sent = (earlier * percent + later * (100 - percent)) // 100
        return sent > 0 and max(0, sent - delivered) * 100 // sent >= _SEARCH_THRESH_PERCENT


class LinuxHyStart:
    """Leaves slow start when delay rises, or when a train of ACKs gets long (HyStart, Ha 2011).

    Delay: slow start ends if the smallest of the first 8 RTTs of a round exceeds the smallest RTT
    of the connection by an eighth of it, at least 4 ms and at most 16 ms; the ninth ACK decides.
    Train: it also ends if ACKs that follow one another within 2 ms last for half of the smallest
    RTT. Both apply only to windows of 16 segments or more; rounds are counted from the first ACK
    on, whatever the window (since Linux 5.16).

    >>> hystart = LinuxHyStart()
    >>> hystart.on_sent(0)
    >>> hystart.on_ack(0, 100_000_000, 100_000_000, 16)
    False
    """

    __slots__ = (
        "_current_ns",
        "_largest_sent",
        "_last_ack_at_ns",
        "_min_ns",
        "_n_samples",
        "_round_began_at_ns",
        "_round_end",
    )

    _MIN_SEGMENTS = 16
    _MIN_SAMPLES = 8
    _ACK_GAP_NS = 2 * NS_PER_MS
    _MIN_RISE_NS = 4 * NS_PER_MS
    _MAX_RISE_NS = 16 * NS_PER_MS

    def __init__(self) -> None:
        self._largest_sent = -1
        self._round_end = -1
        """The last segment that was sent when the round began."""
        self._round_began_at_ns = 0
        """Time when the round began, and with it a train of ACKs."""
        self._last_ack_at_ns = 0
        """Time of the last ACK of the train."""
        self._min_ns: int | None = None
        """The smallest RTT of the connection."""
        self._current_ns: int | None = None
        """The smallest RTT of this round."""
        self._n_samples = 0
        """The RTT samples of this round so far."""

    def on_sent(self, number: int) -> None:
        """Record a segment that is sent."""
        self._largest_sent = number

    def on_ack(self, number: int, rtt_ns: int, now_ns: int, segments: int) -> bool:
        """Handle an ACK up to *number*; return whether slow start ends."""
        if self._min_ns is None or rtt_ns < self._min_ns:
            self._min_ns = rtt_ns
        # Rounds go on below 16 segments, too: else the first long one would begin with the
        # connection, and look like a long train (fixed in Linux 5.16).
        if number > self._round_end:
            self._round_end = self._largest_sent
            self._round_began_at_ns = self._last_ack_at_ns = now_ns
            self._current_ns = None
            self._n_samples = 0
        if segments < self._MIN_SEGMENTS:
            return False
        return self._is_ack_train_long(now_ns) or self._has_rtt_risen(rtt_ns)

    def _is_ack_train_long(self, now_ns: int) -> bool:
        """Return whether ACKs in close succession span half the minimum RTT."""
        assert self._min_ns is not None  # noqa: S101 - set before
        # A larger gap ends the train for the rest of the round: its last ACK is not moved on.
        if now_ns - self._last_ack_at_ns > self._ACK_GAP_NS:
            return False
        self._last_ack_at_ns = now_ns
        # Half, as for a sender without pacing; `hystart_update` allows a pacing one twice as long.
        return now_ns - self._round_began_at_ns > self._min_ns // 2

    def _has_rtt_risen(self, rtt_ns: int) -> bool:
        """Return whether the RTT of this round is clearly above the minimum."""
        assert self._min_ns is not None  # noqa: S101 - set before
        if self._current_ns is None or rtt_ns < self._current_ns:
            self._current_ns = rtt_ns
        if self._n_samples < self._MIN_SAMPLES:
            self._n_samples += 1
            return False
        rise_ns = min(max(self._min_ns // 8, self._MIN_RISE_NS), self._MAX_RISE_NS)
        return self._current_ns > self._min_ns + rise_ns
