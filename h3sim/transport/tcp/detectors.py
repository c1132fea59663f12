"""Which segments are lost, by what was selectively acknowledged above them (RFC 6675)."""

# ruff: noqa: ARG002 - a detector need not use all that it is told

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.scoreboard import Scoreboard
    from h3sim.transport.tcp.segments import SentSegment

__all__ = ["DUP_THRESH", "Detector", "SackDetector"]

DUP_THRESH: Final = 3
"""DupThresh (RFC 6675 § 2)."""


class Detector:
    """Says which segments are lost; the one who asks keeps the scoreboard."""

    __slots__ = ("due_at_ns",)

    due_at_ns: int | None
    """When to ask again though no acknowledgement has come."""

    def on_sent(self, segment: SentSegment) -> None:
        """Note that *segment* leaves, for the first time or again."""

    def on_resend(self, segment: SentSegment) -> None:
        """Note that *segment* is about to leave again, under another number."""

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return what an acknowledgement that delivered these segments shows to be lost."""
        raise NotImplementedError

    def on_duplicate(self) -> None:
        """Note that a segment arrived twice: a retransmission was needless."""

    def on_recovered(self) -> None:
        """Note that an episode of recovery is over."""

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return what counts as lost when the retransmission timer expires."""
        raise NotImplementedError

    def next_speculative(self, now_ns: int) -> SentSegment | None:
        """Return what may go again though it does not count as lost, or None."""
        return None


class SackDetector(Detector):
    """Counts what was selectively acknowledged above a segment."""

    __slots__ = (
        "_board",
        "_dup_acks",
        "_has_rescued",
        "_lost_to",
        "_mss_bytes",
        "_rtt",
    )

    def __init__(self, board: Scoreboard, rtt: RttEstimator, mss_bytes: int) -> None:
        self._board = board
        self._rtt = rtt
        self._mss_bytes = mss_bytes
        self._dup_acks = 0
        self._lost_to = 0
        """All below is lost, or was selectively acknowledged."""
        self._has_rescued = False
        """Whether rule 4 has been used: once per episode (RescueRxt)."""
        self.due_at_ns = None

    def on_recovered(self) -> None:
        """Forget about the rescue."""
        self._has_rescued = False

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return what is lost by IsLost, or as third duplicate ACKs show (RFC 6675 §§ 4-5)."""
        del now_ns
        if is_advance:
            self._dup_acks = 0
        runs = self._board.runs
        if not runs:
            return []
        lost: list[SentSegment] = []
        threshold = self._threshold(runs)
        # What lies below an earlier threshold was decided then: each segment is looked at once.
        if threshold > self._lost_to:
            lost = self._between(self._lost_to, threshold)
            self._lost_to = threshold
        if not is_advance:  # only asked where something new was reported (RFC 6675 § 2)
            self._dup_acks += 1
            # Three duplicates begin a recovery (RFC 6675 § 5, step 2); within one IsLost alone
            # decides.
            if self._dup_acks >= DUP_THRESH and not is_recovering and not lost:
                first = self._board.sent[self._board.una]
                if not first.is_lost:
                    lost.append(first)
        return lost

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return all that was not selectively acknowledged (RFC 6675 § 5.1)."""
        del now_ns
        # What was selectively acknowledged is under way no more, nor is what waits to go again.
        return [segment for segment in self._board.sent.values() if segment.copies]

    def next_speculative(self, now_ns: int) -> SentSegment | None:
        """Return the segment of NextSeg's rules 3 and 4 (RFC 6675 § 4).

        Rule 4 rescues a lost tail, above which nothing can be acknowledged. By its letter it would
        send the last segment again at once, lost or not; here only once its ACK is overdue.
        """
        # HighData that was selectively acknowledged: rule 3 sends nothing from above it.
        highest = max(self._board.runs.values(), default=0)
        last: SentSegment | None = None
        for segment in self._board.sent.values():
            if segment.is_sacked:
                continue
            last = segment
            if segment.seq < highest and _is_first_try(segment):
                return segment
        assert last is not None  # noqa: S101 - the first that is out was never reported
        if self._has_rescued or not _is_first_try(last):
            return None
        if last.sent_at_ns + self._rtt.loss_delay_ns() > now_ns:
            return None
        self._has_rescued = True
        return last

    def _threshold(self, runs: dict[int, int]) -> int:
        """Return below what IsLost holds: under 3 spans, or under more than 2 segments' bytes."""
        n_bytes = 0
        # From the top down: the first span that has enough above it is the highest threshold.
        for n_runs, start in enumerate(sorted(runs, reverse=True), start=1):
            n_bytes += runs[start] - start
            if n_runs >= DUP_THRESH or n_bytes > (DUP_THRESH - 1) * self._mss_bytes:
                return start
        return 0

    def _between(self, start: int, stop: int) -> list[SentSegment]:
        sent = self._board.sent
        seq = max(start, self._board.una)
        lost = []
        while seq < stop:
            segment = sent[seq]
            seq = segment.stop
            if segment.is_sacked or segment.is_lost:
                continue
            if segment.copies > 1:
                # It was sent again on suspicion (rule 3): what was lost is the first of the two.
                self._board.drop_copy(segment)
            else:
                lost.append(segment)
        return lost


def _is_first_try(segment: SentSegment) -> bool:
    """Whether a segment was sent once, and counts as on its way."""
    return not segment.is_lost and segment.copies == 1
