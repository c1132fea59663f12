"""Loss detection of TCP: the scoreboard, by SACK (RFC 6675) and by time (RFC 8985)."""

# ruff: noqa: ARG002 - a detector need not use every argument

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.transport.rtt import RttEstimator
    from h3sim.transport.tcp.records import SentSegment


class Scoreboard:
    """The segments from SND.UNA on, each as it was first sent.

    Segments are never split again, so acknowledgements always end between two of them.
    """

    __slots__ = (
        "_to_resend",
        "next_seq",
        "pipe_bytes",
        "runs",
        "sacked_segments",
        "sent",
        "una",
    )

    def __init__(self) -> None:
        self.una = 0
        """The first unacknowledged byte (SND.UNA)."""
        self.next_seq = 0
        """The first byte that was never sent (SND.NXT)."""
        self.pipe_bytes = 0
        """The estimate of bytes in flight (pipe, RFC 6675 § 2)."""
        self.sent: dict[int, SentSegment] = {}
        """Segments by sequence number, rising."""
        self.runs: dict[int, int] = {}
        """The start and end of each SACKed span."""
        self.sacked_segments = 0
        """The number of SACKed segments in `sent`."""
        self._to_resend: list[int] = []
        """A heap of sequence numbers of lost segments; some may have arrived after all."""

    def add(self, segment: SentSegment) -> None:
        """Add a segment that is sent for the first time."""
        self.sent[segment.seq] = segment
        self.next_seq = segment.stop
        self.pipe_bytes += segment.size_bytes

    def take_acked(self, ack: int) -> list[SentSegment]:
        """Remove the segments up to *ack*; return those not SACKed before, in rising order."""
        delivered = []
        sent = self.sent
        seq = self.una
        # Each step looks up the next segment by its number: no search, however many are in flight.
        while seq < ack:
            segment = sent.pop(seq)
            seq = segment.stop
            if segment.is_sacked:
                self.sacked_segments -= 1
            else:
                self.pipe_bytes -= segment.size_bytes * segment.copies
                delivered.append(segment)
        self.una = ack
        if self.runs:
            # Segments are acknowledged as a unit and spans begin with one, so none is split.
            self.runs = {start: stop for start, stop in self.runs.items() if start >= ack}
        return delivered

    def take_sacked(self, blocks: Iterable[tuple[int, int]]) -> list[SentSegment]:
        """Mark the segments in *blocks*; return the newly SACKed ones, in rising order."""
        delivered: list[SentSegment] = []
        # On the wire the newest span comes first; callers expect rising order.
        for start, stop in sorted(blocks):
            # A D-SACK (RFC 2883 § 4), or an ACK that was reordered.
            if start < self.una or self._is_inside(start):
                continue
            seq = start
            while seq < stop:
                known_stop = self.runs.pop(seq, None)
                if known_stop is not None:
                    seq = known_stop
                    continue
                segment = self.sent[seq]
                seq = segment.stop
                segment.is_sacked = True
                self.pipe_bytes -= segment.size_bytes * segment.copies
                segment.copies = 0
                delivered.append(segment)
            self.runs[start] = seq
        self.sacked_segments += len(delivered)
        return delivered

    def mark_lost(self, lost: Iterable[SentSegment]) -> None:
        """Remove all transmissions of these from the pipe, and queue them for retransmission."""
        for segment in lost:
            segment.is_lost = True
            self.pipe_bytes -= segment.size_bytes * segment.copies
            segment.copies = 0
            heappush(self._to_resend, segment.seq)

    def next_lost(self) -> SentSegment | None:
        """Return the lowest segment that is lost and not resent (RFC 6675 § 4, rule 1)."""
        heap, sent = self._to_resend, self.sent
        while heap:
            segment = sent.get(heap[0])
            # Lazy deletion: segments that arrived after all, or were resent, are skipped here.
            if segment is not None and not segment.copies and not segment.is_sacked:
                return segment
            heappop(heap)
        return None

    def lost(self, *, with_resent: bool) -> list[SentSegment]:
        """Return the segments declared lost that have not arrived, rising."""
        lost = [segment for segment in self.sent.values() if segment.is_lost]
        return [s for s in lost if not s.is_sacked and (with_resent or not s.copies)]

    def drop_copy(self, segment: SentSegment) -> None:
        """Remove the first transmission of *segment* from the pipe, but not a later one."""
        segment.is_lost = True
        self.pipe_bytes -= segment.size_bytes
        segment.copies -= 1

    def mark_resent(self, segment: SentSegment) -> None:
        """Add one more transmission of *segment* to the pipe."""
        segment.is_retransmitted = True
        segment.copies += 1
        self.pipe_bytes += segment.size_bytes

    def _is_inside(self, start: int) -> bool:
        """Return whether *start* lies inside a SACKed span that begins before it.

        Then the span holds all of a block that starts there: of two reports of one byte, the later
        one covers at least as much, so the block is an old one.
        """
        return self.sent[start].is_sacked and start not in self.runs


DUP_THRESH: Final = 3
"""DupThresh (RFC 6675 § 2)."""


class Detector:
    """A loss detector; its caller keeps the scoreboard."""

    __slots__ = ("due_at_ns",)

    due_at_ns: int | None
    """Time of the next check without an acknowledgement."""

    def on_sent(self, segment: SentSegment) -> None:
        """Handle *segment* being sent, for the first time or again."""

    def on_resend(self, segment: SentSegment) -> None:
        """Handle *segment* being resent, under another number."""

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return the segments that this acknowledgement shows to be lost."""
        raise NotImplementedError

    def on_duplicate(self) -> None:
        """Handle a segment that arrived twice: a retransmission was spurious."""

    def on_recovered(self) -> None:
        """Handle the end of a recovery episode."""

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return the segments that are lost when the retransmission timer expires."""
        raise NotImplementedError

    def next_speculative(self, now_ns: int) -> SentSegment | None:
        """Return a segment that may be resent though it is not known to be lost, or None."""
        return None


class SackDetector(Detector):
    """Loss detection by the number of SACKed segments above (RFC 6675)."""

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
        """Duplicate ACKs since SND.UNA last advanced (DupAcks)."""
        self._lost_to = 0
        """A sequence number below which every segment is lost or SACKed."""
        self._has_rescued = False
        """True if rule 4 has been used: once per episode (RescueRxt)."""
        self.due_at_ns = None

    def on_recovered(self) -> None:
        """Allow a rescue retransmission again."""
        self._has_rescued = False

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return the segments lost by IsLost, or by the third duplicate ACK (RFC 6675 §§ 4-5)."""
        del now_ns
        if is_advance:
            self._dup_acks = 0
        runs = self._board.runs
        if not runs:
            return []
        lost: list[SentSegment] = []
        threshold = self._loss_threshold(runs)
        # Below an earlier threshold everything is decided: each segment is checked once.
        if threshold > self._lost_to:
            lost = self._lost_between(self._lost_to, threshold)
            self._lost_to = threshold
        if not is_advance:  # called only if something new was SACKed: a duplicate ACK (§ 2)
            self._dup_acks += 1
            # Three duplicates begin a recovery (RFC 6675 § 5, step 2); within one only IsLost
            # counts.
            if self._dup_acks >= DUP_THRESH and not is_recovering and not lost:
                first = self._board.sent[self._board.una]
                if not first.is_lost:
                    lost.append(first)
        return lost

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return all segments that were not SACKed (RFC 6675 § 5.1)."""
        del now_ns
        # SACKed segments have no transmission in flight, nor have those queued for retransmission.
        return [segment for segment in self._board.sent.values() if segment.copies]

    def next_speculative(self, now_ns: int) -> SentSegment | None:
        """Return the segment of NextSeg's rules 3 and 4 (RFC 6675 § 4).

        Rule 4 rescues a lost tail, above which nothing can be SACKed. By its letter it would resend
        the last segment at once, lost or not; here only once its ACK is overdue.
        """
        # HighData SACKed so far: rule 3 resends nothing above it.
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

    def _loss_threshold(self, runs: dict[int, int]) -> int:
        """Return the sequence number below which IsLost holds (RFC 6675 § 4).

        Three spans, or more than two segments, were acknowledged above it.
        """
        n_bytes = 0
        # From the top down: the first span with enough above it is the highest threshold.
        for n_runs, start in enumerate(sorted(runs, reverse=True), start=1):
            n_bytes += runs[start] - start
            if n_runs >= DUP_THRESH or n_bytes > (DUP_THRESH - 1) * self._mss_bytes:
                return start
        return 0

    def _lost_between(self, start: int, stop: int) -> list[SentSegment]:
        """Return the segments from *start* to *stop* that are lost."""
        sent = self._board.sent
        seq = max(start, self._board.una)
        lost = []
        while seq < stop:
            segment = sent[seq]
            seq = segment.stop
            if segment.is_sacked or segment.is_lost:
                continue
            if segment.copies > 1:
                # It was resent speculatively (rule 3): the first of the two transmissions is lost.
                self._board.drop_copy(segment)
            else:
                lost.append(segment)
        return lost


def _is_first_try(segment: SentSegment) -> bool:
    """Return whether a segment was sent once and is not declared lost."""
    return not segment.is_lost and segment.copies == 1


_PERSIST_RECOVERIES: Final = 16
"""Recoveries without a spurious retransmission that reset the reordering window."""


class RackDetector(Detector):
    """RACK (RFC 8985): a segment is lost if a later one arrived and the reordering window passed.

    Transmissions are ordered by their numbers. Real TCP has no such numbers, so the RFC orders by
    time and sequence number. Tail loss probes replace the speculative retransmissions of RFC 6675.
    """

    __slots__ = (
        "_board",
        "_duplicate_round",
        "_highest_delivered",
        "_in_flight",
        "_newest_number",
        "_persist_recoveries",
        "_rtt",
        "_rtt_ns",
        "_sees_reordering",
        "_window_factor",
    )

    def __init__(self, board: Scoreboard, rtt: RttEstimator) -> None:
        self._board = board
        self._rtt = rtt
        self._in_flight: dict[int, SentSegment] = {}
        """Segments in flight by number, in the order of their last transmission."""
        self._newest_number = -1
        """The number of the delivered segment that was sent last (RACK.xmit_ts, RACK.end_seq)."""
        self._rtt_ns = 0
        """RACK.rtt."""
        self._highest_delivered = 0
        """RACK.fack."""
        self._sees_reordering = False
        """RACK.reordering_seen."""
        self._duplicate_round: int | None = None
        """RACK.dsack_round."""
        self._window_factor = 1
        """RACK.reo_wnd_mult."""
        self._persist_recoveries = _PERSIST_RECOVERIES
        """RACK.reo_wnd_persist: the recoveries until the factor is reset."""
        self.due_at_ns = None

    def on_sent(self, segment: SentSegment) -> None:
        """Note that *segment* leaves, for the first time or again."""
        self._in_flight[segment.number] = segment

    def on_resend(self, segment: SentSegment) -> None:
        """Forget the earlier transmission of *segment*."""
        self._in_flight.pop(segment.number, None)

    def on_duplicate(self) -> None:
        """Widen the reordering window, once per round (RFC 8985 § 6.2, step 4)."""
        una = self._board.una
        # Once per round: duplicates of one round have one cause, a window that was too narrow.
        if self._duplicate_round is None or una >= self._duplicate_round:
            self._duplicate_round = self._board.next_seq
            self._window_factor += 1
            self._persist_recoveries = _PERSIST_RECOVERIES

    def on_recovered(self) -> None:
        """Reset the reordering window after 16 recoveries without a duplicate."""
        self._persist_recoveries -= 1
        if self._persist_recoveries <= 0:
            self._window_factor = 1

    def detect(
        self,
        delivered: list[SentSegment],
        is_advance: bool,
        is_recovering: bool,
        now_ns: int,
    ) -> list[SentSegment]:
        """Return lost segments; set the time of the next check (RFC 8985 § 6.2, steps 2-5)."""
        del is_advance
        self._on_delivered(delivered, now_ns)
        self.due_at_ns = None
        under_way, newest_number = self._in_flight, self._newest_number
        first = next(iter(under_way.values()), None)
        # Every segment in flight was sent after the most recently sent one that was delivered.
        if first is None or first.number > newest_number:
            return []
        # RFC 8985 § 6.2, step 5: RACK.rtt after a segment was sent, its ACK is as late as that of
        # the newest delivered one; the reordering window is what a late packet may take beyond.
        wait_ns = self._rtt_ns + self._window_ns(is_recovering=is_recovering)
        lost: list[SentSegment] = []
        # A resent segment is inserted anew, so the dict has the order of transmissions.
        for number, segment in under_way.items():
            if number > newest_number:
                break
            due_at_ns = segment.sent_at_ns + wait_ns
            if due_at_ns <= now_ns:
                lost.append(segment)
            else:
                self.due_at_ns = due_at_ns  # the latest deadline: then all are decided at once
        for segment in lost:
            # It has no transmission in flight until it is resent.
            del under_way[segment.number]
        return lost

    def lost_on_timeout(self, now_ns: int) -> list[SentSegment]:
        """Return the first segment and all that are old enough (RFC 8985 § 6.3)."""
        self.due_at_ns = None
        wait_ns = self._rtt_ns + self._window_ns(is_recovering=True)
        lost = [
            segment
            for segment in self._in_flight.values()
            if segment.seq == self._board.una or segment.sent_at_ns + wait_ns <= now_ns
        ]
        for segment in lost:
            del self._in_flight[segment.number]
        return lost

    def _on_delivered(self, delivered: list[SentSegment], now_ns: int) -> None:
        """Remove delivered segments, and update RACK.segment (RFC 8985 § 6.2, steps 1-3)."""
        under_way, newest_number, highest = (
            self._in_flight,
            self._newest_number,
            self._highest_delivered,
        )
        for segment in delivered:
            number, stop = segment.number, segment.stop
            under_way.pop(number, None)
            if stop > highest:
                highest = stop
            # A retransmission arrives below the highest without reordering (step 3).
            elif not segment.is_retransmitted:
                self._sees_reordering = True
            rtt_ns = now_ns - segment.sent_at_ns
            if segment.is_retransmitted and rtt_ns < self._rtt.min_rtt_ns:
                continue  # faster than the path: the ACK is for an earlier transmission
            self._rtt_ns = rtt_ns
            if number > newest_number:
                newest_number = number
        self._newest_number, self._highest_delivered = newest_number, highest

    def _window_ns(self, *, is_recovering: bool) -> int:
        """Return RACK.reo_wnd (RFC 8985 § 6.2, step 4)."""
        # RFC 8985 § 6.2 step 4: without observed reordering, 3 SACKed segments suffice as in RFC
        # 6675.
        is_proven = is_recovering or self._board.sacked_segments >= DUP_THRESH
        if is_proven and not self._sees_reordering:
            return 0
        # § 6.2, step 4: quarters of min_rtt, one more for each round that showed a spurious
        # retransmission (DSACK).
        window_ns = self._window_factor * self._rtt.min_rtt_ns // 4
        smoothed_rtt_ns = self._rtt.smoothed_rtt_ns
        # Capped by the smoothed RTT, beyond which the timeout would come first.
        return window_ns if window_ns < smoothed_rtt_ns else smoothed_rtt_ns
