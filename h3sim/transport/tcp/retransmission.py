"""The retransmission timer, recovery episodes (RFC 9937), and tail loss probes (RFC 8985)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.transport.congestion import CongestionController
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.loss_detection import Scoreboard
    from h3sim.transport.tcp.segments import SentSegment
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
    queue that has just overflowed. With it, deliveries clock transmissions: at the ratio of the new
    window to the old, then, below the new window, one segment more than was delivered.

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

    def reduce(self, news: Iterable[SentSegment]) -> None:
        """Begin PRR if the window was reduced; *news* came with the loss."""
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
            flight_bytes=flight_bytes + sum(segment.size_bytes for segment in news),
        )

    def time_out(self) -> None:
        """Restart from the first segment regardless of the window, without PRR."""
        self.point = self._board.next_seq
        # The window collapses below the bytes in flight: the first segment must leave all the same.
        self.is_timed_out = self.may_exceed_window = True
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
        "_from_ns",
        "_resent",
        "_rtt",
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
        self._from_ns: int | None = None
        """Start of its timer; None while stopped."""
        self._armed_at_ns = 0
        self.is_due = False
        """True if a probe has to leave now."""

    @property
    def due_at_ns(self) -> int | None:
        """Time when a probe is due: outside recovery, with data in flight (RFC 8985 § 7.2)."""
        from_ns = self._from_ns
        if from_ns is None:
            return None
        board = self._board
        # With SACKed data RACK detects losses by itself.
        is_needless = self._episode.point is not None or board.runs or not board.sent
        # One probe at a time: without an answer the timeout follows (RFC 8985 § 7.3).
        if is_needless or self.end_seq is not None or self.is_due:
            self._from_ns = None  # the obstacle may vanish, but that does not restart the timer
            return None
        rtt = self._rtt
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
        self._from_ns = self._armed_at_ns = now_ns

    def resume(self, now_ns: int) -> None:
        """Set the timer as if the probe that is over had not been sent.

        The timer has run since the last transmission, and an ACK without news does not stop it (RFC
        8985 § 7.2). If it has expired meanwhile, it did so without effect (§ 7.3).
        """
        self._from_ns = self._armed_at_ns
        due_at_ns = self.due_at_ns
        if due_at_ns is not None and due_at_ns < now_ns:
            self._from_ns = None

    def on_due(self) -> None:
        """Send a probe with the next packets."""
        self._from_ns = None
        self.is_due = True

    def on_sent(self, end_seq: int, resent: SentSegment | None) -> None:
        """Record that the probe was sent: new data, or a retransmission of *resent*."""
        self.is_due = False
        self.end_seq = end_seq
        self._resent = resent

    def on_ack(self, ack: int, duplicate: tuple[int, int] | None) -> SentSegment | None:
        """Return the segment whose loss the probe repaired.

        Once that is certain (RFC 8985 § 7.4.2).
        """
        if self.end_seq is None or ack < self.end_seq:
            return None
        resent = self._resent
        came_twice = duplicate is not None and duplicate[1] == self.end_seq
        if resent is not None and not came_twice and ack == self.end_seq:
            return None  # either the probe or the segment itself arrived: wait for the next ACK
        self.end_seq = self._resent = None
        return None if came_twice else resent

    def forget(self) -> None:
        """Discard the probe: recovery has begun."""
        self.end_seq = self._resent = self._from_ns = None
