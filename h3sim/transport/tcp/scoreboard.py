"""What one end has in flight, and what it knows of each segment (RFC 6675 §§ 3-4)."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.transport.tcp.segments import SentSegment

__all__ = ["Scoreboard"]


class Scoreboard:
    """The segments from the first that is not acknowledged on, each as it was first sent.

    Segments are never cut anew, so acknowledgements always end between two of them.
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
        """The first byte that is not acknowledged (SND.UNA)."""
        self.next_seq = 0
        """The first byte that was never sent (SND.NXT)."""
        self.pipe_bytes = 0
        """How much is on its way, by what is known (RFC 6675 § 2)."""
        self.sent: dict[int, SentSegment] = {}
        """By sequence number, rising."""
        self.runs: dict[int, int] = {}
        """The start and stop of each span that was selectively acknowledged."""
        self.sacked_segments = 0
        self._to_resend: list[int] = []
        """A heap of the sequence numbers of lost segments; some may have come after all."""

    def add(self, segment: SentSegment) -> None:
        """Put in a segment that leaves for the first time."""
        self.sent[segment.seq] = segment
        self.next_seq = segment.stop
        self.pipe_bytes += segment.size_bytes

    def take_acked(self, ack: int) -> list[SentSegment]:
        """Take out what *ack* acknowledges; return what nothing was known of, rising."""
        news = []
        sent = self.sent
        seq = self.una
        while seq < ack:
            segment = sent.pop(seq)
            seq = segment.stop
            if segment.is_sacked:
                self.sacked_segments -= 1
            else:
                self.pipe_bytes -= segment.size_bytes * segment.copies
                news.append(segment)
        self.una = ack
        if self.runs:
            # Segments are acknowledged whole and spans begin with one, so none is cut in two.
            self.runs = {start: stop for start, stop in self.runs.items() if start >= ack}
        return news

    def take_sacked(self, blocks: Iterable[tuple[int, int]]) -> list[SentSegment]:
        """Mark what *blocks* acknowledge; return what is new of it, rising."""
        news: list[SentSegment] = []
        # The newest span comes first on the wire; who is told gets what is new in rising order.
        for start, stop in sorted(blocks):
            # A duplicate (RFC 2883 § 4), or an ACK that was overtaken.
            if start < self.una or self._is_inside(start):
                continue
            seq = start
            while seq < stop:
                known = self.runs.pop(seq, None)
                if known is not None:
                    seq = known
                    continue
                segment = self.sent[seq]
                seq = segment.stop
                segment.is_sacked = True
                self.pipe_bytes -= segment.size_bytes * segment.copies
                segment.copies = 0
                news.append(segment)
            self.runs[start] = seq
        self.sacked_segments += len(news)
        return news

    def mark_lost(self, lost: Iterable[SentSegment]) -> None:
        """No longer count any transmission of these as on its way; they wait to go again."""
        for segment in lost:
            segment.is_lost = True
            self.pipe_bytes -= segment.size_bytes * segment.copies
            segment.copies = 0
            heappush(self._to_resend, segment.seq)

    def next_lost(self) -> SentSegment | None:
        """Return the lowest segment that is lost and has to go again (RFC 6675 § 4, rule 1)."""
        heap, sent = self._to_resend, self.sent
        while heap:
            segment = sent.get(heap[0])
            # Entries are dropped lazily: what arrived after all, or went again, is passed by here.
            if segment is not None and not segment.copies and not segment.is_sacked:
                return segment
            heappop(heap)
        return None

    def lost(self, *, with_resent: bool) -> list[SentSegment]:
        """Return what was declared lost and has not come, rising."""
        lost = [segment for segment in self.sent.values() if segment.is_lost]
        return [s for s in lost if not s.is_sacked and (with_resent or not s.copies)]

    def drop_copy(self, segment: SentSegment) -> None:
        """No longer count the first transmission of *segment* as on its way, but a later one."""
        segment.is_lost = True
        self.pipe_bytes -= segment.size_bytes
        segment.copies -= 1

    def mark_resent(self, segment: SentSegment) -> None:
        """Count one more transmission of *segment* as on its way."""
        segment.is_retransmitted = True
        segment.copies += 1
        self.pipe_bytes += segment.size_bytes

    def _is_inside(self, start: int) -> bool:
        """Whether a span holds *start*, but begins before it.

        Then it holds all of a block that starts there: of two reports of one byte, the later one
        says at least as much, so the block is an old one.
        """
        return self.sent[start].is_sacked and start not in self.runs
