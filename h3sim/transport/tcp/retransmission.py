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
    """Runs while data is in flight; doubles each time it runs out, until the next sample.

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
        """Time when it runs out; None while it does not run."""

    def on_rtt(self, rtt: RttEstimator) -> None:
        """Set the timeout by a new sample, which also ends the back-off (§§ 2.2-2.5)."""
        spread_ns = 4 * rtt.rttvar_ns
        # Comparisons, not `max`: this runs with each ACK.
        if spread_ns < self._granularity_ns:
            spread_ns = self._granularity_ns
        timeout_ns = rtt.smoothed_rtt_ns + spread_ns
        if timeout_ns < self._min_ns:
            timeout_ns = self._min_ns
        self._timeout_ns = timeout_ns if timeout_ns < self._max_ns else self._max_ns

    def start(self, now_ns: int) -> None:
        """Start it, anew if it runs already (§§ 5.1, 5.3)."""
        self.due_at_ns = now_ns + self._timeout_ns

    def stop(self) -> None:
        """Stop it (§ 5.2)."""
        self.due_at_ns = None

    def back_off(self, now_ns: int) -> None:
        """Start it for twice as long (§§ 5.5, 5.6)."""
        self._timeout_ns = min(2 * self._timeout_ns, self._max_ns)
        self.start(now_ns)


class ProportionalRateReduction:
    """Spreads the reduction of a window over an episode of recovery.

    Without it, what counts as lost leaves the pipe at once, and as much is sent in a burst into a
    queue that has just overflowed. With it, what arrives paces what leaves: at the ratio of the new
    window to the old, then, below the new window, one segment more than arrives.

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
        """ssthresh, which here is the window that the controller set."""
        self._flight_bytes = 1
        """RecoverFS."""
        self._delivered_bytes = 0
        """prr_delivered."""
        self._sent_bytes = 0
        """prr_out."""
        self.is_active = False
        self.room_bytes = 0
        """What may leave before the next ACK (sndcnt)."""

    def begin(self, *, target_bytes: int, flight_bytes: int) -> None:
        """Begin an episode with *flight_bytes* that were not known to have arrived before."""
        self.is_active = True
        self._target_bytes = target_bytes
        self._flight_bytes = flight_bytes
        self._delivered_bytes = self._sent_bytes = self.room_bytes = 0

    def end(self) -> None:
        """End the episode: the window rules again."""
        self.is_active = False

    def on_ack(self, n_bytes: int, *, pipe_bytes: int, is_safe: bool) -> None:
        """Take an ACK that delivered *n_bytes*.

        *is_safe*: it moved the first hole and showed no further loss (SafeACK).
        """
        self._delivered_bytes += n_bytes
        if pipe_bytes > self._target_bytes:
            # CEIL in RFC 6937 § 3: rounded down, the last bytes of the reduction would never be
            # allowed.
            share = -(-self._delivered_bytes * self._target_bytes // self._flight_bytes)
            room = share - self._sent_bytes
            # Whole segments, rounded up, as a stack has it that counts segments.
            self.room_bytes = -(-room // self._mss_bytes) * self._mss_bytes
            return
        # At least what this ACK delivered (PRR-CRB), even if less than that is left over from
        # before.
        limit = max(self._delivered_bytes - self._sent_bytes, n_bytes)
        if is_safe:
            limit += self._mss_bytes
        self.room_bytes = min(self._target_bytes - pipe_bytes, limit)

    def on_sent(self, n_bytes: int) -> None:
        """Count data that leaves, for the first time or again."""
        self._sent_bytes += n_bytes
        self.room_bytes -= n_bytes


class Episode:
    """The episode of recovery that lasts, if one does.

    It begins with the first loss and ends when all that was sent before it has been acknowledged.
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
        """The recovery point: where what was sent before ends; None outside an episode."""
        self.is_timed_out = False
        """True if a timeout began this episode, or took it over."""
        self.holds_window = False
        """True if the window may not grow: in an episode that no timeout took over."""
        self.may_exceed_window = False
        """True if its first retransmission is still to go, whatever the window."""

    def begin(self) -> None:
        """Begin with all that was sent so far."""
        self.point = self._board.next_seq
        self.holds_window = True

    def reduce(self, news: Iterable[SentSegment]) -> None:
        """Spread the reduction of the window, if there was one; *news* came with the loss."""
        self.may_exceed_window = True
        if not self._has_prr or self._controller.ssthresh is None:
            return
        board = self._board
        # As RecoverFS of RFC 9937 § 6: without what was known to have arrived before this ACK, but
        # with what it delivered itself.
        sacked_bytes = sum(stop - start for start, stop in board.runs.items())
        flight_bytes = board.next_seq - board.una - sacked_bytes
        self.prr.begin(
            target_bytes=self._controller.congestion_window,
            flight_bytes=flight_bytes + sum(segment.size_bytes for segment in news),
        )

    def time_out(self) -> None:
        """Begin anew from the first segment, whatever the window; the window rules again."""
        self.point = self._board.next_seq
        # The window falls below what is in flight by old count: the first segment must go all the
        # same.
        self.is_timed_out = self.may_exceed_window = True
        self.holds_window = False
        self.prr.end()

    def end(self) -> None:
        """End: the window rules again."""
        self.point = None
        self.is_timed_out = self.holds_window = self.may_exceed_window = False
        self.prr.end()


_MAX_ACK_DELAY_NS: Final = 200 * NS_PER_MS
"""TLP.max_ack_delay: how late the ACK of a lone segment may be."""


class TailLossProbe:
    """Says when a probe is due, and whether it has made up for a loss."""

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
        """Where the probe under way ends, or None."""
        self._resent: SentSegment | None = None
        """What the probe under way sent again; None if it was new data."""
        self._from_ns: int | None = None
        """From when on it waits; None where it does not, until it is armed."""
        self._armed_at_ns = 0
        self.is_due = False
        """True if a probe has to leave now."""

    @property
    def due_at_ns(self) -> int | None:
        """Time when a probe is due: outside recovery, with something in flight (RFC 8985 § 7.2)."""
        from_ns = self._from_ns
        if from_ns is None:
            return None
        board = self._board
        # Where something was selectively acknowledged RACK sees losses by itself.
        is_needless = self._episode.point is not None or board.runs or not board.sent
        # One probe at a time: a second without an answer is the timeout's affair (RFC 8985 § 7.3).
        if is_needless or self.end_seq is not None or self.is_due:
            self._from_ns = None  # what is in the way may go, but does not start the clock
            return None
        rtt = self._rtt
        wait_ns = NS_PER_S
        if rtt.has_sample:
            wait_ns = 2 * rtt.smoothed_rtt_ns
            # A lone segment's ACK may be delayed; of two or more the second draws it out.
            if len(board.sent) == 1:
                wait_ns += _MAX_ACK_DELAY_NS
        at_ns, rto_at_ns = from_ns + wait_ns, self._timer.due_at_ns
        assert rto_at_ns is not None  # noqa: S101 - it runs while anything is out
        # Not after the timeout, which would collapse the window for a loss that a probe repairs.
        return at_ns if at_ns < rto_at_ns else rto_at_ns

    def arm(self, now_ns: int) -> None:
        """Set when a probe is due, after a segment that left or an ACK."""
        self._from_ns = self._armed_at_ns = now_ns

    def resume(self, now_ns: int) -> None:
        """Let the next one be due when it would have been without the one that is over.

        The timer of what left meanwhile has run all along, and an ACK of nothing new does not stop
        it (RFC 8985 § 7.2). If it has run out, it did so in vain (§ 7.3).
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
        """Note that the probe left: new data, or *resent* once more."""
        self.is_due = False
        self.end_seq = end_seq
        self._resent = resent

    def on_ack(self, ack: int, duplicate: tuple[int, int] | None) -> SentSegment | None:
        """Return the segment whose loss the probe made up for, once that is clear (§ 7.4.2)."""
        if self.end_seq is None or ack < self.end_seq:
            return None
        resent = self._resent
        came_twice = duplicate is not None and duplicate[1] == self.end_seq
        if resent is not None and not came_twice and ack == self.end_seq:
            return None  # the probe or the segment itself: what comes next will tell
        self.end_seq = self._resent = None
        return None if came_twice else resent

    def forget(self) -> None:
        """Give the probe up: recovery has begun."""
        self.end_seq = self._resent = self._from_ns = None
