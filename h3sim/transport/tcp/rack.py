"""Which segments are lost, by time (RFC 8985 § 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.transport.tcp.detectors import DUP_THRESH, Detector

if TYPE_CHECKING:
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.scoreboard import Scoreboard
    from h3sim.transport.tcp.segments import SentSegment

__all__ = ["RackDetector"]

_PERSISTS: Final = 16
"""So many recoveries without a needless retransmission reset the reordering window."""


class RackDetector(Detector):
    """A segment is lost if one sent a reordering window after it has been delivered.

    Transmissions are ordered by their numbers; the RFC orders them by time and sequence number,
    since it has nothing better. Nothing goes again on suspicion: probes take care of a lost tail.
    """

    __slots__ = (
        "_board",
        "_duplicate_round",
        "_highest_delivered",
        "_newest",
        "_persist",
        "_rtt",
        "_rtt_ns",
        "_sees_reordering",
        "_under_way",
        "_window_factor",
    )

    def __init__(self, board: Scoreboard, rtt: RttEstimator) -> None:
        self._board = board
        self._rtt = rtt
        self._under_way: dict[int, SentSegment] = {}
        """By number: in the order of their last transmission."""
        self._newest = -1
        """RACK.xmit_ts and RACK.end_seq: the last sent of all that were delivered."""
        self._rtt_ns = 0
        """RACK.rtt."""
        self._highest_delivered = 0
        """RACK.fack."""
        self._sees_reordering = False
        self._duplicate_round: int | None = None
        """RACK.dsack_round."""
        self._window_factor = 1
        """RACK.reo_wnd_mult."""
        self._persist = _PERSISTS
        self.due_at_ns = None

    def on_sent(self, segment: SentSegment) -> None:
        """Note that *segment* leaves, for the first time or again."""
        self._under_way[segment.number] = segment

    def on_resend(self, segment: SentSegment) -> None:
        """Forget about its earlier transmission."""
        self._under_way.pop(segment.number, None)

    def on_duplicate(self) -> None:
        """Widen the reordering window, once per round (RFC 8985 § 6.2, step 4)."""
        una = self._board.una
        # Once a round: duplicates of one round come of one window that was too narrow.
        if self._duplicate_round is None or una >= self._duplicate_round:
            self._duplicate_round = self._board.next_seq
            self._window_factor += 1
            self._persist = _PERSISTS

    def on_recovered(self) -> None:
        """Narrow the reordering window again after 16 recoveries without a duplicate."""
        self._persist -= 1
        if self._persist <= 0:
            self._window_factor = 1

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return what is lost, and set when to ask again (RFC 8985 § 6.2, steps 2 to 5)."""
        del is_advance
        self._take_out(delivered, now_ns)
        self.due_at_ns = None
        under_way, newest = self._under_way, self._newest
        first = next(iter(under_way.values()), None)
        # Nothing that is on its way was sent before what was delivered last.
        if first is None or first.number > newest:
            return []
        wait_ns = self._rtt_ns + self._window_ns(is_recovering=is_recovering)
        lost: list[SentSegment] = []
        # A resent segment is put in anew, so the dict's order is that of the transmissions.
        for number, segment in under_way.items():
            if number > newest:
                break
            due_at_ns = segment.sent_at_ns + wait_ns
            if due_at_ns <= now_ns:
                lost.append(segment)
            else:
                self.due_at_ns = due_at_ns  # the last one's: then all are decided at once
        for segment in lost:
            # It has no transmission under way now, and comes back with its next one.
            del under_way[segment.number]
        return lost

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return the first segment and all that are old enough (RFC 8985 § 6.3)."""
        self.due_at_ns = None
        wait_ns = self._rtt_ns + self._window_ns(is_recovering=True)
        lost = [
            segment
            for segment in self._under_way.values()
            if segment.seq == self._board.una or segment.sent_at_ns + wait_ns <= now_ns
        ]
        for segment in lost:
            del self._under_way[segment.number]
        return lost

    def _take_out(self, delivered: list[SentSegment], now_ns: int) -> None:
        """Forget what was delivered; note what was sent last of it (RFC 8985 § 6.2, step 2)."""
        under_way, newest, highest = self._under_way, self._newest, self._highest_delivered
        for segment in delivered:
            number, stop = segment.number, segment.stop
            under_way.pop(number, None)
            if stop > highest:
                highest = stop
            # A retransmission arrives below the highest without any reordering (step 3).
            elif not segment.is_retransmitted:
                self._sees_reordering = True
            rtt_ns = now_ns - segment.sent_at_ns
            if segment.is_retransmitted and rtt_ns < self._rtt.min_rtt_ns:
                continue  # so soon after, it is an earlier transmission that came
            self._rtt_ns = rtt_ns
            if number > newest:
                newest = number
        self._newest, self._highest_delivered = newest, highest

    def _window_ns(self, *, is_recovering: bool) -> int:
        """Return RACK.reo_wnd (RFC 8985 § 6.2, step 4)."""
        # On a path that has never reordered three segments above are proof, as in RFC 6675.
        is_proven = is_recovering or self._board.sacked_segments >= DUP_THRESH
        if is_proven and not self._sees_reordering:
            return 0
        window_ns = self._window_factor * self._rtt.min_rtt_ns // 4
        smoothed_rtt_ns = self._rtt.smoothed_rtt_ns
        # Later than a smoothed RTT the timeout would come first.
        return window_ns if window_ns < smoothed_rtt_ns else smoothed_rtt_ns
