"""Tail loss probes (RFC 8985 § 7): a segment that makes the peer say what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.episode import Episode
    from h3sim.transport.tcp.scoreboard import Scoreboard
    from h3sim.transport.tcp.segments import SentSegment
    from h3sim.transport.tcp.timer import RetransmissionTimer

__all__ = ["TailLossProbe"]

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
        """Whether a probe has to leave now."""

    @property
    def due_at_ns(self) -> int | None:
        """When a probe is due: outside recovery, with something in flight (RFC 8985 § 7.2)."""
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
