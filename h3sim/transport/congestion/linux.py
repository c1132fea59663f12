"""CUBIC as Linux 6 has it (net/ipv4/tcp_cubic.c)."""

# ruff: noqa: ARG002 - a controller need not use every argument
from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from h3sim.transport.congestion.controller import CongestionController
from h3sim.transport.congestion.loss_based import cube_root_ns, cubed_seconds
from h3sim.transport.congestion.slow_start import LinuxHyStart
from h3sim.values._mypyc import mypyc_attr
from h3sim.values.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.transport.congestion.registry import ControllerSettings
    from h3sim.transport.packets import SentPacket
    from h3sim.transport.rtt import RttEstimator


_CUBIC_C: Final = 0.4
"""The curve in segments per cubic second (RFC 9438 § 5)."""
_CUBIC_BETA: Final = 717 / 1024
"""In 1024ths, as the kernel has it (beta): a little above the 0.7 of RFC 9438."""
_UPDATE_EVERY_NS: Final = NS_PER_S // 32
"""The earliest re-evaluation of the curve after the window last changed."""
_MIN_ACKED_PER_SEGMENT: Final = 2
"""The least number of acknowledged segments per segment of growth."""
_MAX_WINDOWS_PER_SEGMENT: Final = 100
"""The largest number of acknowledged windows per segment of growth."""
_MAX_ACKED_BEFORE_LOSS: Final = 20
"""The largest number of acknowledged segments per segment of growth before the first loss."""
_EIGHTHS: Final = 8
"""The denominator of `_reno_eighths` (beta_scale is shifted by 3 bits)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class LinuxCubicController(CongestionController):
    """CUBIC that counts whole segments, as `tcp_cubic.c` does.

    Where it leaves RFC 9438:

    - The estimate of Reno's window always grows by a segment per 15/8 windows; the RFC has it grow
      by one per window once it is back at the window before the loss (§ 4.3).
    - For one more segment at least two have to be acknowledged. Above the curve it takes 100
      windows, but 20 segments before the first loss.
    - The curve is evaluated when the window has changed, or 1/32 s after that; it looks ahead by
      the smallest round-trip time.
    - A timeout forgets the curve, and leaves a window of one segment.

    TCP reports a loss once per recovery episode. QUIC reports all of them, so what was sent before
    the last reduction changes nothing here. With *hystart*, slow start ends as in `LinuxHyStart`.

    >>> from h3sim.transport.congestion import ControllerSettings
    >>> LinuxCubicController(ControllerSettings(max_datagram_bytes=1448)).congestion_window
    14480
    """

    __slots__ = (
        "_acked_per_segment",
        "_beta",
        "_credit",
        "_delay_min_ns",
        "_epoch_at_ns",
        "_has_hystart",
        "_hystart",
        "_k_ns",
        "_last_max",
        "_last_sent_at_ns",
        "_min_segments",
        "_origin",
        "_recovery_end",
        "_reduced_at_ns",
        "_reno_acked",
        "_reno_eighths",
        "_reno_window",
        "_segment_bytes",
        "_segments",
        "_ssthresh_segments",
        "_undo",
        "_updated_at_ns",
        "_updated_window",
    )

    reads_delivery: ClassVar[bool] = False
    responds_to_ecn: ClassVar[bool] = True

    def __init__(self, settings: ControllerSettings) -> None:
        self.congestion_window = settings.initial_congestion_window
        self.ssthresh = None
        self._segment_bytes = settings.max_datagram_bytes
        self._segments = settings.initial_congestion_window // self._segment_bytes
        """The window in segments (snd_cwnd)."""
        self._ssthresh_segments: int | None = None
        self._min_segments = settings.minimum_window_bytes // self._segment_bytes
        self._beta = _CUBIC_BETA if settings.beta is None else settings.beta
        self._reno_eighths = int(_EIGHTHS * (1 + self._beta) / 3 / (1 - self._beta))
        """Eighths of a window that Reno takes to grow by a segment (beta_scale)."""
        self._has_hystart = settings.hystart
        self._last_sent_at_ns = 0
        """Time of the last packet, from which idle time counts."""
        self._reduced_at_ns = -1
        """Time of the last reduction."""
        self._recovery_end = 0
        """The first packet number after the last loss that reduced the window (high_seq)."""
        self._undo: tuple[int, int | None] | None = None
        """Window and threshold before it, if a loss caused it (prior_cwnd, prior_ssthresh)."""
        self._credit = 0
        """Segments acknowledged towards the next one in the window (snd_cwnd_cnt)."""
        self._hystart: LinuxHyStart | None
        self._delay_min_ns: int | None
        """The smallest RTT (delay_min)."""
        self._epoch_at_ns: int | None
        """Time when the curve began, moved on by idle time; None until it does (epoch_start)."""
        self._last_max: int
        """The window before the last loss, less for fast convergence (last_max_cwnd)."""
        self._origin: int
        """The window at the curve's plateau (bic_origin_point), reached after K."""
        self._k_ns: int
        """The time from the beginning of the curve to its plateau (bic_K)."""
        self._reno_acked: int
        """Segments acknowledged towards the next one in Reno's window (ack_cnt)."""
        self._reno_window: int
        """The window that Reno would have (tcp_cwnd)."""
        self._acked_per_segment: int
        """The number of acknowledged segments per segment of growth (cnt)."""
        self._updated_at_ns: int
        """Time when the curve was last evaluated (last_time)."""
        self._updated_window: int
        """The window when the curve was last evaluated (last_cwnd)."""
        self._forget()

    def on_sent(self, packet: SentPacket, bytes_in_flight: int) -> None:
        """Exclude the time in which nothing was in flight from the curve's clock."""
        now_ns = packet.sent_at_ns
        if self._hystart is not None:
            self._hystart.on_sent(packet.number)
        if bytes_in_flight <= packet.size_bytes and self._epoch_at_ns is not None:
            # Not beyond now: the curve may have begun after the last packet was sent
            # (CA_EVENT_TX_START in cubictcp_cwnd_event).
            self._epoch_at_ns += now_ns - max(self._last_sent_at_ns, self._epoch_at_ns)
        self._last_sent_at_ns = now_ns

    def on_acked(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        rtt: RttEstimator,
        bytes_in_flight: int,
        is_cwnd_underutilized: bool,
    ) -> None:
        """Grow the window, if it was full."""
        newest = packets[-1]
        self._on_rtt(newest.number, now_ns - newest.sent_at_ns, now_ns)
        # After the sample: a delay counts even if the window may not grow (tcp_is_cwnd_limited).
        if is_cwnd_underutilized:
            return
        n_acked = len(packets)
        if packets[0].number < self._recovery_end:  # over TCP, recovery holds the window itself
            n_acked = sum(packet.number >= self._recovery_end for packet in packets)
        if self._is_slow_start():
            grown = self._segments + n_acked
            if self._ssthresh_segments is not None:
                # What is acknowledged beyond the threshold goes to congestion avoidance
                # (tcp_slow_start).
                grown = min(grown, self._ssthresh_segments)
            n_acked -= grown - self._segments
            self._segments = grown
        if n_acked:
            self._update_growth(n_acked, now_ns)
            self._avoid_congestion(n_acked)
        self.congestion_window = self._segments * self._segment_bytes

    def on_lost(
        self,
        packets: Sequence[SentPacket],
        now_ns: int,
        bytes_in_flight: int,
        next_number: int,
    ) -> None:
        """Reduce the window, with fast convergence (RFC 9438 §§ 4.6, 4.7)."""
        if packets[-1].number < self._recovery_end:
            return
        undo = (self._segments, self._ssthresh_segments)
        self._reduce(now_ns)
        self._undo = undo
        self._recovery_end = next_number

    def on_congestion_experienced(self, sent_at_ns: int, now_ns: int) -> None:
        """Reduce the window as after a loss, once per round trip."""
        if sent_at_ns > self._reduced_at_ns:
            self._reduce(now_ns)

    def on_spurious_loss(self, now_ns: int) -> None:
        """Restore window and threshold, but not the curve (tcp_undo_cwnd_reduction)."""
        if self._undo is None:
            return
        (segments, ssthresh), self._undo = self._undo, None
        self._recovery_end = 0
        self._segments = max(self._segments, segments)
        self.congestion_window = self._segments * self._segment_bytes
        self._ssthresh_segments = ssthresh
        self.ssthresh = None if ssthresh is None else ssthresh * self._segment_bytes

    def _reduce(self, now_ns: int) -> None:
        """Reduce the window for a loss or mark (bictcp_recalc_ssthresh)."""
        self._undo = None
        self._reduced_at_ns = now_ns
        window = self._segments
        is_shrinking = window < self._last_max
        self._last_max = int(window * (1 + self._beta) / 2) if is_shrinking else window
        self._epoch_at_ns = None
        self._credit = 0
        self._segments = max(int(window * self._beta), self._min_segments)
        self._leave_slow_start()
        self.congestion_window = self._segments * self._segment_bytes

    def on_persistent_congestion(self, now_ns: int) -> None:
        """Restart after a timeout."""
        self._segments = 1
        self._credit = self._recovery_end = 0
        self._forget()
        self.congestion_window = self._segment_bytes

    def pacing_rate_bps(self, rtt: RttEstimator) -> int | None:
        """Return None."""
        return None

    def _forget(self) -> None:
        """Forget delays and the curve (bictcp_reset)."""
        self._hystart = LinuxHyStart() if self._has_hystart else None
        self._delay_min_ns = self._epoch_at_ns = None
        self._last_max = self._origin = self._reno_acked = self._reno_window = 0
        self._k_ns = self._updated_at_ns = self._updated_window = 0
        self._acked_per_segment = _MIN_ACKED_PER_SEGMENT

    def _is_slow_start(self) -> bool:
        return self._ssthresh_segments is None or self._segments < self._ssthresh_segments

    def _leave_slow_start(self) -> None:
        """Set the slow start threshold to the window."""
        self._ssthresh_segments = self._segments
        self.ssthresh = self._segments * self._segment_bytes

    def _on_rtt(self, number: int, rtt_ns: int, now_ns: int) -> None:
        """Add a round-trip time, but not in the first second after a recovery."""
        # cubictcp_acked discards samples that may include the queue which caused the loss.
        if self._epoch_at_ns is not None and now_ns - self._epoch_at_ns < NS_PER_S:
            return
        if self._delay_min_ns is None or rtt_ns < self._delay_min_ns:
            self._delay_min_ns = rtt_ns
        if self._hystart is None or not self._is_slow_start():
            return
        if self._hystart.on_ack(number, rtt_ns, now_ns, self._segments):
            self._hystart = None
            self._leave_slow_start()

    def _update_growth(self, n_acked: int, now_ns: int) -> None:
        """Set how many acknowledged segments the next segment of growth takes (bictcp_update)."""
        self._reno_acked += n_acked
        window = self._segments
        since_ns = now_ns - self._updated_at_ns
        # A window that has changed is evaluated at once: its distance to the target is another.
        if window == self._updated_window and since_ns <= _UPDATE_EVERY_NS:
            return
        self._updated_window, self._updated_at_ns = window, now_ns
        if self._epoch_at_ns is None:
            self._begin_epoch()
            self._epoch_at_ns = now_ns
            # Segments acknowledged before this epoch do not count for Reno's window.
            self._reno_acked = n_acked
        t_ns = now_ns - self._epoch_at_ns + (self._delay_min_ns or 0)
        target = self._origin + int(_CUBIC_C * cubed_seconds(t_ns - self._k_ns))
        step = window // (target - window) if target > window else _MAX_WINDOWS_PER_SEGMENT * window
        # Before the first loss the curve is flat at its origin and knows nothing about the path, so
        # growth is 5 % per round trip.
        if not self._last_max:
            step = min(step, _MAX_ACKED_BEFORE_LOSS)
        per_segment = window * self._reno_eighths // _EIGHTHS
        while self._reno_acked > per_segment:
            self._reno_acked -= per_segment
            self._reno_window += 1
        # Reno would be faster here: choose the step so that the window reaches it in a round trip.
        if self._reno_window > window:
            step = min(step, window // (self._reno_window - window))
        self._acked_per_segment = max(step, _MIN_ACKED_PER_SEGMENT)

    def _begin_epoch(self) -> None:
        """Fix the curve's plateau and K at the start of congestion avoidance."""
        self._reno_window = window = self._segments
        self._origin = max(self._last_max, window)
        self._k_ns = cube_root_ns((self._origin - window) / _CUBIC_C)

    def _avoid_congestion(self, n_acked: int) -> None:
        """Grow by a segment per *_acked_per_segment* acknowledged segments (tcp_cong_avoid_ai)."""
        # Credit from an earlier, slower step is worth one segment, not what it would buy at the new
        # step.
        if self._credit >= self._acked_per_segment:
            self._credit = 0
            self._segments += 1
        grown, self._credit = divmod(self._credit + n_acked, self._acked_per_segment)
        self._segments += grown
