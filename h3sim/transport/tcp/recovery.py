"""Loss recovery of TCP (RFC 6298, RFC 6675, RFC 8985): timers, episodes and samples."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from h3sim.transport.delivery_rate import DeliverySampler
from h3sim.transport.rtt import RttEstimator
from h3sim.transport.tcp.loss_detection import RackDetector, SackDetector, Scoreboard
from h3sim.transport.tcp.settings import LossDetection
from h3sim.values.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.tcp.loss_detection import Detector
    from h3sim.transport.tcp.records import Segment, SentSegment
    from h3sim.transport.tcp.settings import TcpSettings


class RetransmissionTimer:
    """The RTO timer (RFC 6298): runs with data in flight; backs off until the next RTT sample.

    >>> from h3sim.transport.tcp import TcpSettings
    >>> timer = RetransmissionTimer(TcpSettings())
    >>> timer.start(5)
    >>> timer.back_off(timer.due_at_ns)
    >>> timer.due_at_ns
    3000000005
    """

    __slots__ = ("_granularity_ns", "_max_ns", "_min_ns", "_timeout_ns", "due_at_ns")

    def __init__(self, settings: TcpSettings) -> None:
        self._min_ns = settings.min_rto_ns
        self._max_ns = settings.max_rto_ns
        self._granularity_ns = settings.rto_granularity_ns
        self._timeout_ns = settings.initial_rto_ns
        self.due_at_ns: int | None = None
        """Time when it expires; None while stopped."""

    def on_rtt(self, rtt: RttEstimator) -> None:
        """Set the timeout from a new sample, which also ends the backoff (§§ 2.2-2.5)."""
        # § 2.3: SRTT + max(G, 4 * RTTVAR), within the limits of §§ 2.4 and 2.5.
        spread_ns = 4 * rtt.rttvar_ns
        # Comparisons, not `max`: this runs with each ACK.
        if spread_ns < self._granularity_ns:
            spread_ns = self._granularity_ns
        timeout_ns = rtt.smoothed_rtt_ns + spread_ns
        if timeout_ns < self._min_ns:
            timeout_ns = self._min_ns
        self._timeout_ns = timeout_ns if timeout_ns < self._max_ns else self._max_ns

    def start(self, now_ns: int) -> None:
        """Start or restart it (§§ 5.1, 5.3)."""
        self.due_at_ns = now_ns + self._timeout_ns

    def stop(self) -> None:
        """Stop it (§ 5.2)."""
        self.due_at_ns = None

    def back_off(self, now_ns: int) -> None:
        """Double the timeout and restart (§§ 5.5, 5.6)."""
        self._timeout_ns = min(2 * self._timeout_ns, self._max_ns)
        self.start(now_ns)


class ProportionalRateReduction:
    """PRR: spreads the reduction of a window over a recovery episode (RFC 9937).

    Without it, lost segments leave the pipe at once, and as many bytes are sent in a burst into a
    queue that has just overflowed. With it, deliveries clock transmissions: first at the ratio of
    the new window to the old one; then, below the new window, one segment more than was delivered.

    >>> prr = ProportionalRateReduction(mss_bytes=10)
    >>> prr.begin(target_bytes=70, flight_bytes=100)
    >>> prr.on_ack(30, pipe_bytes=90, is_safe=False)
    >>> prr.room_bytes
    30
    """

    __slots__ = (
        "_delivered_bytes",
        "_flight_bytes",
        "_mss_bytes",
        "_sent_bytes",
        "_target_bytes",
        "is_active",
        "room_bytes",
    )

    def __init__(self, mss_bytes: int) -> None:
        self._mss_bytes = mss_bytes
        self._target_bytes = 0
        """ssthresh, here the window that the controller has set."""
        self._flight_bytes = 1
        """RecoverFS."""
        self._delivered_bytes = 0
        """prr_delivered."""
        self._sent_bytes = 0
        """prr_out."""
        self.is_active = False
        self.room_bytes = 0
        """The bytes that may leave before the next ACK (sndcnt)."""

    def begin(self, *, target_bytes: int, flight_bytes: int) -> None:
        """Begin an episode with *flight_bytes* not known to have arrived before."""
        self.is_active = True
        self._target_bytes = target_bytes
        self._flight_bytes = flight_bytes
        self._delivered_bytes = self._sent_bytes = self.room_bytes = 0

    def end(self) -> None:
        """End the episode: the congestion window applies again."""
        self.is_active = False

    def on_ack(self, n_bytes: int, *, pipe_bytes: int, is_safe: bool) -> None:
        """Process an ACK that delivered *n_bytes*.

        *is_safe*: it advanced SND.UNA and showed no further loss (SafeACK).
        """
        self._delivered_bytes += n_bytes
        if pipe_bytes > self._target_bytes:
            # CEIL in RFC 6937 § 3: rounded down, the last bytes of the reduction would never be
            # sent.
            share = -(-self._delivered_bytes * self._target_bytes // self._flight_bytes)
            room = share - self._sent_bytes
            # Whole segments, rounded up, as in a stack that counts segments.
            self.room_bytes = -(-room // self._mss_bytes) * self._mss_bytes
            return
        # At least the bytes this ACK delivered (PRR-CRB), even if less is left over from before.
        limit = max(self._delivered_bytes - self._sent_bytes, n_bytes)
        # PRR-SSRB: recovery proceeds without further loss, so the pipe may regain the target one
        # segment per ACK faster, as in slow start.
        if is_safe:
            limit += self._mss_bytes
        self.room_bytes = min(self._target_bytes - pipe_bytes, limit)

    def on_sent(self, n_bytes: int) -> None:
        """Count data that is sent, for the first time or again."""
        self._sent_bytes += n_bytes
        self.room_bytes -= n_bytes


class Episode:
    """The current recovery episode, if any.

    It begins with the first loss and ends when everything sent before it has been acknowledged.
    """

    __slots__ = (
        "_board",
        "_controller",
        "_has_prr",
        "holds_window",
        "is_timed_out",
        "may_exceed_window",
        "point",
        "prr",
    )

    def __init__(
        self, settings: TcpSettings, controller: CongestionController, board: Scoreboard
    ) -> None:
        self._controller = controller
        self._board = board
        self._has_prr = settings.has_prr
        self.prr = ProportionalRateReduction(settings.mss_bytes)
        self.point: int | None = None
        """The recovery point, the end of the data sent before; None outside an episode."""
        self.is_timed_out = False
        """True if a timeout began this episode or occurred in it."""
        self.holds_window = False
        """True if the window may not grow: in an episode without a timeout."""
        self.may_exceed_window = False
        """True if the first retransmission, which ignores the window, is still due."""

    def begin(self) -> None:
        """Begin an episode; the recovery point is SND.NXT."""
        self.point = self._board.next_seq
        self.holds_window = True

    def reduce(self, delivered: Iterable[SentSegment]) -> None:
        """Begin PRR if the window was reduced; *delivered* arrived with the ACK of the loss."""
        self.may_exceed_window = True
        if not self._has_prr or self._controller.ssthresh is None:
            return
        board = self._board
        # RecoverFS of RFC 9937 § 6: without data SACKed before this ACK, but with the data that
        # this ACK delivered.
        sacked_bytes = sum(stop - start for start, stop in board.runs.items())
        flight_bytes = board.next_seq - board.una - sacked_bytes
        self.prr.begin(
            target_bytes=self._controller.congestion_window,
            flight_bytes=flight_bytes + sum(segment.size_bytes for segment in delivered),
        )

    def time_out(self) -> None:
        """Restart from the first segment regardless of the window, without PRR."""
        self.point = self._board.next_seq
        # The window collapses below the bytes in flight: the first segment must leave all the same.
        self.is_timed_out = self.may_exceed_window = True
        self.holds_window = False
        self.prr.end()

    def release(self) -> None:
        """Restore the congestion window as the limit, while lost segments may still be resent."""
        self.holds_window = False
        self.prr.end()

    def end(self) -> None:
        """End the episode: the congestion window applies again."""
        self.point = None
        self.is_timed_out = self.holds_window = self.may_exceed_window = False
        self.prr.end()


_MAX_ACK_DELAY_NS: Final = 200 * NS_PER_MS
"""TLP.max_ack_delay: the largest delay of the ACK of a single segment."""


class TailLossProbe:
    """The tail loss probe: its timer, and detection of a loss that it repaired."""

    __slots__ = (
        "_armed_at_ns",
        "_board",
        "_episode",
        "_resent",
        "_rtt",
        "_runs_from_ns",
        "_timer",
        "end_seq",
        "is_due",
    )

    def __init__(
        self, board: Scoreboard, rtt: RttEstimator, timer: RetransmissionTimer, episode: Episode
    ) -> None:
        self._board = board
        self._rtt = rtt
        self._timer = timer
        self._episode = episode
        self.end_seq: int | None = None
        """End of the probe in flight (TLP.end_seq), or None."""
        self._resent: SentSegment | None = None
        """The segment that the probe in flight retransmitted; None if it was new data."""
        self._runs_from_ns: int | None = None
        """Start of its timer; None while stopped."""
        self._armed_at_ns = 0
        """Start of the timer as it was last armed, to which `resume` returns it."""
        self.is_due = False
        """True if a probe has to leave now."""

    @property
    def due_at_ns(self) -> int | None:
        """Time when a probe is due: outside recovery, with data in flight (RFC 8985 § 7.2)."""
        from_ns = self._runs_from_ns
        if from_ns is None:
            return None
        board = self._board
        # With SACKed data RACK detects losses by itself.
        is_needless = self._episode.point is not None or board.runs or not board.sent
        # One probe at a time: without an answer the timeout follows (RFC 8985 § 7.3).
        if is_needless or self.end_seq is not None or self.is_due:
            # The obstacle may vanish, but that does not restart the timer.
            self._runs_from_ns = None
            return None
        rtt = self._rtt
        # RFC 8985 § 7.2: two round trips, or a second before the first sample.
        wait_ns = NS_PER_S
        if rtt.has_sample:
            wait_ns = 2 * rtt.smoothed_rtt_ns
            # The ACK of a single segment may be delayed; of two or more the second elicits it.
            if len(board.sent) == 1:
                wait_ns += _MAX_ACK_DELAY_NS
        at_ns, rto_at_ns = from_ns + wait_ns, self._timer.due_at_ns
        assert rto_at_ns is not None  # noqa: S101 - it runs while anything is out
        # Not after the timeout, which would collapse the window for a loss that a probe repairs.
        return at_ns if at_ns < rto_at_ns else rto_at_ns

    def arm(self, now_ns: int) -> None:
        """Restart the timer, after a segment was sent or an ACK arrived."""
        self._runs_from_ns = self._armed_at_ns = now_ns

    def resume(self, now_ns: int) -> None:
        """Set the timer as if the probe that is over had not been sent.

        The timer has run since the last transmission, and an ACK without news does not stop it (RFC
        8985 § 7.2). If it has expired meanwhile, it did so without effect (§ 7.3).
        """
        self._runs_from_ns = self._armed_at_ns
        due_at_ns = self.due_at_ns
        if due_at_ns is not None and due_at_ns < now_ns:
            self._runs_from_ns = None

    def on_due(self) -> None:
        """Send a probe with the next packets."""
        self._runs_from_ns = None
        self.is_due = True

    def on_sent(self, end_seq: int, resent: SentSegment | None) -> None:
        """Record that the probe was sent: new data, or a retransmission of *resent*."""
        self.is_due = False
        self.end_seq = end_seq
        self._resent = resent

    def on_ack(self, ack: int, duplicate: tuple[int, int] | None) -> SentSegment | None:
        """Return the segment whose loss the probe repaired, once certain (RFC 8985 § 7.4.2)."""
        if self.end_seq is None or ack < self.end_seq:
            return None
        resent = self._resent
        has_arrived_twice = False
        if duplicate is not None:
            _, duplicate_end = duplicate
            has_arrived_twice = duplicate_end == self.end_seq
        if resent is not None and not has_arrived_twice and ack == self.end_seq:
            return None  # either the probe or the segment itself arrived: wait for the next ACK
        self.end_seq = self._resent = None
        return None if has_arrived_twice else resent

    def forget(self) -> None:
        """Discard the probe: recovery has begun."""
        self.end_seq = self._resent = self._runs_from_ns = None


class WindowUsage:
    """The largest number of segments in flight within a window of data."""

    __slots__ = ("_board", "_controller", "_ends_at_seq", "_max_out", "_mss_bytes")

    def __init__(self, board: Scoreboard, controller: CongestionController, mss_bytes: int) -> None:
        self._board = board
        self._controller = controller
        self._mss_bytes = mss_bytes
        self._max_out = 0
        """max_packets_out."""
        self._ends_at_seq = 0
        """End of the window of data that the maximum applies to (cwnd_usage_seq)."""

    def on_sent(self) -> None:
        """Record that a segment was sent."""
        board = self._board
        n_out = len(board.sent)
        # A new maximum begins its own window of data; otherwise it would outlive the data that it
        # was measured on.
        if n_out > self._max_out or board.una >= self._ends_at_seq:
            self._max_out, self._ends_at_seq = n_out, board.next_seq

    def may_double(self) -> bool:
        """Return whether slow start may continue although the application pauses.

        It may until the window is twice the maximum in flight (tcp_is_cwnd_limited).
        """
        window, ssthresh = self._controller.congestion_window, self._controller.ssthresh
        is_slow_start = ssthresh is None or window < ssthresh
        return is_slow_start and window < 2 * self._max_out * self._mss_bytes


_BY_NUMBER = attrgetter("number")
"""The sort key of segments in the order of their last transmissions."""


class SpuriousRecovery:
    """Detection of an episode whose retransmissions were all needless (RFC 3708, RFC 3522)."""

    __slots__ = ("_first_resent_at_ns", "_is_undoable", "_n_unproven", "_una")

    def __init__(self) -> None:
        self._is_undoable = False
        self._una = 0
        """SND.UNA when the episode began (undo_marker)."""
        self._n_unproven = 0
        """The retransmissions that no D-SACK has reported (undo_retrans)."""
        self._first_resent_at_ns: int | None = None
        """Time of the first of them (retrans_stamp)."""

    def begin(self, una: int, n_resent: int) -> None:
        """Begin an episode, with *n_resent* retransmissions of the last one in flight."""
        self._is_undoable = True
        self._una = una
        self._n_unproven = n_resent
        if not n_resent:
            self._first_resent_at_ns = None

    def on_resent(self, now_ns: int) -> None:
        """Count a retransmission."""
        self._n_unproven += 1
        if self._first_resent_at_ns is None:
            self._first_resent_at_ns = now_ns

    def is_refuted(self, duplicate: tuple[int, int]) -> bool:
        """Return whether a D-SACK proves the last retransmission needless; True once."""
        _, stop = duplicate
        if not self._is_undoable or not self._n_unproven or stop <= self._una:
            return False
        self._n_unproven -= 1
        self._is_undoable = self._n_unproven > 0
        return not self._is_undoable

    def is_delayed(self, echo_ns: int | None) -> bool:
        """Return whether the ACK of all the data answers no retransmission; True once."""
        resent_at_ns = self._first_resent_at_ns
        is_old = resent_at_ns is None or (echo_ns is not None and echo_ns < resent_at_ns)
        is_delayed = self._is_undoable and is_old
        self._is_undoable = self._is_undoable and not is_old
        return is_delayed


class Recovery:
    """Loss recovery of one sender, which reports the outcome of segments to its controller.

    A loss is reported once per recovery episode, since TCP reduces its window once per window of
    data (RFC 5681 § 4.3); until the end of an episode without a timeout, the window does not grow.
    Marks that the receiver echoes reduce it as well, likewise once per window (RFC 3168 § 6.1.2).
    """

    def __init__(self, settings: TcpSettings, controller: CongestionController) -> None:
        self.controller = controller
        self.rtt = RttEstimator(initial_ns=settings.initial_rto_ns)
        self.board = Scoreboard()
        self.is_cwnd_underutilized = False
        """True if the window still had room when the sender last ran out of data."""
        self.episode = Episode(settings, controller, self.board)
        self._timer = RetransmissionTimer(settings)
        self.probe: TailLossProbe | None = None
        self._usage: WindowUsage | None = None
        """Both are for RACK-TLP only, as in Linux."""
        if settings.recovery is LossDetection.RACK:
            self.probe = TailLossProbe(self.board, self.rtt, self._timer, self.episode)
            self._usage = WindowUsage(self.board, controller, settings.mss_bytes)
        self._detector = _make_detector(settings, self.board, self.rtt)
        self._sampler = DeliverySampler() if controller.reads_delivery else None
        self._undo = SpuriousRecovery() if settings.undoes_reductions else None
        self._prr = self.episode.prr
        self._next_number = 0
        """The number of the next segment with data, as controllers count them."""
        self._resent_end = 0
        """The end of the bytes that were ever retransmitted."""
        self._due_at_ns: int | None = None
        self._is_due_known = True
        """False if `_due_at_ns` has to be computed again, before it is next read."""
        self._cwr_point = -1
        """SND.NXT when a mark or a loss was last handled."""
        self._marked_point = -1
        """The same, if the mark reduced the window."""
        self._is_cwr_due = False
        """True if the next new data carries CWR."""

    # Sending

    def room_bytes(self) -> int:
        """Return the bytes that may leave now: by PRR in an episode, else by the window."""
        if self._prr.is_active:
            return self._prr.room_bytes
        return self.controller.congestion_window - self.board.pipe_bytes

    def on_sent(self, segment: SentSegment) -> None:
        """Add a segment with new data that leaves now."""
        self.board.add(segment)
        if self._timer.due_at_ns is None:  # RFC 6298 § 5.1: not restarted for each segment
            self._timer.start(segment.sent_at_ns)
        self._on_transmission(segment)
        if self.probe is not None:
            self.probe.arm(segment.sent_at_ns)

    def on_resent(self, segment: SentSegment, number: int, now_ns: int) -> None:
        """Record the retransmission of a segment as *number*."""
        self._detector.on_resend(segment)
        is_probe = self.probe is not None and self.probe.is_due
        if self._undo is not None and not is_probe:
            self._undo.on_resent(now_ns)
        segment.number = number
        segment.sent_at_ns = now_ns
        self.board.mark_resent(segment)
        self.episode.may_exceed_window = False
        self._resent_end = max(self._resent_end, segment.stop)  # below, numbers need not rise
        self._on_transmission(segment)
        if segment.seq == self.board.una:
            # As in Linux: the timer covers the transmission that is awaited, not an earlier one.
            self._timer.start(now_ns)

    def next_speculative(self, now_ns: int) -> SentSegment | None:
        """Return a segment for speculative retransmission in this episode, or None."""
        # NextSeg's rules 3 and 4 belong to fast recovery: after a timeout everything is lost.
        return None if self.episode.is_timed_out else self._detector.next_speculative(now_ns)

    def on_app_limited(self) -> None:
        """Record that the window has room, but there is nothing to send."""
        self.is_cwnd_underutilized = True
        if self._sampler is not None:
            self._sampler.on_app_limited(self.board.pipe_bytes)

    # Receiving

    def on_rtt(self, latest_rtt_ns: int) -> None:
        """Add a round-trip time sample (any will do with timestamps: RFC 7323 § 4)."""
        self.rtt.on_sample(latest_rtt_ns)
        self._timer.on_rtt(self.rtt)

    def on_ack(self, segment: Segment, now_ns: int) -> None:
        """Process the acknowledgement in a segment."""
        ack, blocks = segment.ack, segment.sack
        assert ack is not None  # noqa: S101 - only SYNs come without
        board = self.board
        self._is_due_known = False
        is_advance = ack > board.una
        in_flight = board.pipe_bytes
        # The ACK that ends an episode does not grow the window yet.
        was_held = self.episode.holds_window or board.una < self._marked_point
        delivered = board.take_acked(ack) if is_advance else []
        if is_advance:
            self._on_advance(ack, segment.echo_ns, now_ns)
        duplicate = _find_duplicate(ack, blocks) if blocks else None
        if duplicate is not None:
            self._detector.on_duplicate()
            if self._undo is not None and self._undo.is_refuted(duplicate):
                self.episode.release()  # tcp_try_undo_dsack
                self.controller.on_spurious_loss(now_ns)
        if blocks:
            delivered += board.take_sacked(blocks)
        if self.probe is not None and self.probe.end_seq is not None:
            self._on_probe_acked(self.probe, ack, duplicate, now_ns)
        # A receiver that gets its next byte acknowledges beyond its SACK blocks: an ACK that
        # advances always delivers a segment that was not SACKed before.
        if not delivered:
            return
        if segment.is_ece:
            self._on_echo(ack, now_ns)
        lost = self._detect(delivered, is_advance=is_advance, now_ns=now_ns)
        if lost:
            in_flight -= sum(gone.size_bytes for gone in lost)
        if self.probe is not None:
            self.probe.arm(now_ns)
        if self._prr.is_active:
            n_bytes = sum(segment.size_bytes for segment in delivered)
            self._prr.on_ack(n_bytes, pipe_bytes=board.pipe_bytes, is_safe=is_advance and not lost)
        is_held = was_held or self.episode.holds_window or not is_advance
        self._on_delivered(delivered, in_flight, now_ns, is_held=is_held)

    def take_cwr(self) -> bool:
        """Return whether the next new data reports a reduced window (CWR)."""
        is_due, self._is_cwr_due = self._is_cwr_due, False
        return is_due

    # Timers

    def timer_at_ns(self) -> int | None:
        """Return the time of the next `on_timer` call."""
        if not self._is_due_known:
            self._due_at_ns = None
            if self.board.sent:  # rare at a client: without data in flight nothing is due
                self._due_at_ns = _earliest_deadline(self._timer, self.probe, self._detector)
            self._is_due_known = True
        return self._due_at_ns

    def on_timer(self, now_ns: int) -> None:
        """Declare lost, probe or time out, whichever is due."""
        due_at_ns = self.timer_at_ns()
        if due_at_ns is None or due_at_ns > now_ns:  # the pacer or an ACK is due instead
            return
        self._is_due_known = False
        due_at_ns = self._detector.due_at_ns
        if due_at_ns is not None and due_at_ns <= now_ns:
            self._detect([], is_advance=False, now_ns=now_ns)
        if self.probe is not None:
            due_at_ns = self.probe.due_at_ns
            if due_at_ns is not None and due_at_ns <= now_ns:
                self.probe.on_due()
                # RFC 8985 § 7.3: the RTO restarts with a probe, even if it was due at the same
                # time.
                self._timer.start(now_ns)
                return
        due_at_ns = self._timer.due_at_ns
        if due_at_ns is not None and due_at_ns <= now_ns:
            self._on_timeout(now_ns)

    # Internals

    def _on_echo(self, ack: int, now_ns: int) -> None:
        """Reduce the window for a mark, unless it was reduced for the same window of data."""
        # Also at the very point: the data behind it, with CWR, is what stops the echo.
        if ack <= self._cwr_point:
            return
        self._cwr_point = self.board.next_seq
        self._is_cwr_due = True
        if self.episode.point is None:  # else a timeout has reduced it
            self._marked_point = self._cwr_point
            # By sequence numbers, not by the time of sending: data of this instant is behind it.
            self.controller.on_congestion_experienced(now_ns, now_ns)

    def _on_transmission(self, segment: SentSegment) -> None:
        """Record a transmission with the sampler, the detector and the controller."""
        in_flight = self.board.pipe_bytes
        self._is_due_known = False
        if self._sampler is not None:
            self._sampler.on_sent(segment, in_flight)
        if self._usage is not None:
            self._usage.on_sent()
        self._next_number = segment.number + 1
        if self._prr.is_active:
            self._prr.on_sent(segment.size_bytes)
        if self.probe is not None:
            self._detector.on_sent(segment)
        self.controller.on_sent(segment, in_flight)

    def _on_advance(self, ack: int, echo_ns: int | None, now_ns: int) -> None:
        """Restart the timer if data is left (RFC 6298 § 5); end recovery at its recovery point."""
        # Before the timer restarts, which then uses the new timeout. A sample of an ACK that
        # advances is valid even after a retransmission, since its timestamp says which transmission
        # it answers (Karn's ambiguity, RFC 6298 § 3).
        if echo_ns is not None:
            self.on_rtt(now_ns - echo_ns)
        if self.board.sent:
            self._timer.start(now_ns)
        else:
            self._timer.stop()
        point = self.episode.point
        if point is not None and ack >= point:
            self.episode.end()
            self._detector.on_recovered()
            if self._undo is not None and self._undo.is_delayed(echo_ns):
                self.controller.on_spurious_loss(now_ns)
            self._continue_recovery(now_ns)

    def _continue_recovery(self, now_ns: int) -> None:
        """Begin the next episode if a segment sent within the last one is lost too.

        Linux counts segments resent and still in flight (lost_out in tcp_time_to_recover).
        """
        lost = self.board.lost(with_resent=self.probe is not None)
        if not lost:
            return
        in_flight = self.board.pipe_bytes
        in_flight += sum(segment.size_bytes for segment in lost if not segment.copies)
        self._begin(lost, in_flight, now_ns)
        self.episode.reduce([])

    def _on_delivered(
        self, delivered: list[SentSegment], in_flight: int, now_ns: int, *, is_held: bool
    ) -> None:
        """Report delivered segments to the controller; with *is_held* its window does not grow."""
        if delivered[0].seq < self._resent_end:
            delivered.sort(key=_BY_NUMBER)  # retransmissions have higher numbers than later data
        if self._sampler is not None:
            n_bytes = sum(segment.size_bytes for segment in delivered)
            self._sampler.on_delivered(n_bytes, delivered[-1], now_ns)
        is_underutilized = is_held or (
            self.is_cwnd_underutilized and (self._usage is None or not self._usage.may_double())
        )
        self.controller.on_acked(delivered, now_ns, self.rtt, in_flight, is_underutilized)

    def _detect(
        self, delivered: list[SentSegment], *, is_advance: bool, now_ns: int
    ) -> list[SentSegment]:
        """Return the segments that are lost now, queued for retransmission."""
        is_recovering = self.episode.point is not None
        lost = self._detector.detect(delivered, is_advance, is_recovering, now_ns)
        if lost:
            in_flight = self.board.pipe_bytes
            self.board.mark_lost(lost)
            if not is_recovering:
                self._begin(lost, in_flight, now_ns)
                self.episode.reduce(delivered)
            elif self.controller.reads_losses:
                self._report_lost(sorted(lost, key=_BY_NUMBER), in_flight, now_ns)
        return lost

    def _begin(self, lost: list[SentSegment], in_flight: int, now_ns: int) -> None:
        """Begin an episode."""
        self.episode.begin()
        self._cwr_point = self.board.next_seq
        self._is_cwr_due = True
        if self._undo is not None:
            sent = self.board.sent.values()
            self._undo.begin(
                self.board.una, sum(each.copies for each in sent if each.is_retransmitted)
            )
        if self.probe is not None:
            self.probe.forget()
        self._report_lost(sorted(lost, key=_BY_NUMBER), in_flight, now_ns)

    def _on_timeout(self, now_ns: int) -> None:
        """Back off and restart from the first segment (RFC 6298 §§ 5.4-5.6, RFC 6675 § 5.1).

        A window that was reduced in this episode is not reduced again; it only collapses.
        """
        in_flight = self.board.pipe_bytes
        lost = self._detector.lost_on_timeout(now_ns)
        self.board.mark_lost(lost)
        # Reduced, then collapsed: the controller needs the window before for `ssthresh`.
        if self.episode.point is None:
            self._begin(lost, in_flight, now_ns)
        self.episode.time_out()
        # RFC 5681 § 3.1: the loss window, and slow start; in QUIC's terms, persistent congestion.
        self.controller.on_persistent_congestion(now_ns)
        self._timer.back_off(now_ns)

    # Probes (RACK-TLP only)

    def _on_probe_acked(
        self, probe: TailLossProbe, ack: int, duplicate: tuple[int, int] | None, now_ns: int
    ) -> None:
        """Reduce the window if the probe repaired a loss that nothing else shows."""
        repaired = probe.on_ack(ack, duplicate)
        if probe.end_seq is None:
            probe.resume(now_ns)
        if repaired is not None:  # never in an episode: its beginning discards the probe
            self._report_lost([repaired], self.board.pipe_bytes, now_ns)

    def _report_lost(self, lost: list[SentSegment], in_flight: int, now_ns: int) -> None:
        """Report lost segments to the controller, once per window of data."""
        if self.board.una < self._marked_point:  # RFC 3168 § 6.1.2: a mark has reduced this window
            return
        self.controller.on_lost(lost, now_ns, in_flight, self._next_number)


def _make_detector(settings: TcpSettings, board: Scoreboard, rtt: RttEstimator) -> Detector:
    """Return the loss detection that the settings name."""
    if settings.recovery is LossDetection.RACK:
        return RackDetector(board, rtt)
    return SackDetector(board, rtt, settings.mss_bytes)


def _earliest_deadline(
    timer: RetransmissionTimer, probe: TailLossProbe | None, detector: Detector
) -> int | None:
    """Return the earliest deadline of the three."""
    # A probe deadline is never after the timeout.
    at_ns = None if probe is None else probe.due_at_ns
    if at_ns is None:
        at_ns = timer.due_at_ns
    due_at_ns = detector.due_at_ns
    if due_at_ns is not None and (at_ns is None or due_at_ns < at_ns):
        at_ns = due_at_ns
    return at_ns


def _find_duplicate(ack: int, blocks: tuple[tuple[int, int], ...]) -> tuple[int, int] | None:
    """Return the span that arrived twice (D-SACK, RFC 2883 § 4), or None.

    The first block is one if it lies below the acknowledgement or within the second block.
    """
    start, stop = first = blocks[0]
    if stop <= ack:
        return first
    if len(blocks) > 1:
        outer_start, outer_stop = blocks[1]
        if outer_start <= start and stop <= outer_stop:
            return first
    return None
