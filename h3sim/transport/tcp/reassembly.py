"""The receiving side: bytes in order, records when whole, and when to acknowledge."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from h3sim.transport.tcp.records import TlsRecord
    from h3sim.transport.tcp.segments import Segment


_MAX_BLOCKS: Final = 3
"""What a header has room for beside timestamps (RFC 2018 § 3)."""
_MAX_SPANS: Final = 32
"""So many spans of numbers are reported to a log, as an ACK of QUIC would have them."""


class Reassembly:
    """Holds what came early until the hole before it is filled.

    An ACK is due at once when *every* segments came in order since the last one, when a segment
    comes early or again, and when it fills a hole; else *max_delay_ns* after the first segment that
    is not acknowledged (RFC 5681 § 4.2).
    """

    __slots__ = (
        "_duplicate",
        "_early",
        "_every",
        "_max_delay_ns",
        "_numbers",
        "_numbers_seen",
        "_run_starts",
        "_runs",
        "_unacked",
        "due_at_ns",
        "echo_ns",
        "last_ack",
        "next_seq",
        "wants_sack",
    )

    def __init__(self, *, every: int, max_delay_ns: int) -> None:
        self._every = every
        self._max_delay_ns = max_delay_ns
        self._early: dict[int, Segment] = {}
        self._runs: dict[int, int] = {}
        """What came early: the start and stop of each span, the one that grew last at the end."""
        self._run_starts: dict[int, int] = {}
        self._duplicate: tuple[int, int] | None = None
        self._unacked = 0
        self._numbers: list[int] = []
        self._numbers_seen = Ranges()
        self.next_seq = 0
        """The first byte that has not come."""
        self.last_ack = 0
        """What the last segment sent acknowledged."""
        self.echo_ns: int | None = None
        """TS.Recent (RFC 7323 § 4.3): when that was sent which the next ACK is for."""
        self.due_at_ns: int | None = None
        """Time when an ACK is due."""
        self.wants_sack = False
        """True if an ACK says more than its number; asked with each segment, so kept."""

    def on_segment(self, segment: Segment, now_ns: int) -> list[TlsRecord]:
        """Take a segment with data; return the records that are whole now, in order."""
        seq = segment.seq
        # Put into ranges only where a log asks: an append is all that most loads pay for it.
        self._numbers.append(segment.number)
        if seq != self.next_seq:
            self._on_early(segment, now_ns)
            return []
        self.next_seq = seq + segment.length
        if self._early:
            # A hole is filled, in part or whole (RFC 5681 § 4.2).
            self.due_at_ns = now_ns
            return self._with_followers(segment)
        self._unacked += 1
        if self._unacked >= self._every:
            self.due_at_ns = now_ns
        elif self.due_at_ns is None:
            self.due_at_ns = now_ns + self._max_delay_ns
        return segment.records

    def on_acked(self) -> None:
        """Note that a segment leaves whose number acknowledges all that came in order."""
        self.last_ack = self.next_seq
        self._unacked = 0
        self.due_at_ns = None

    def take_blocks(self) -> tuple[tuple[int, int], ...]:
        """Return what the SACK option says: first what came again, then the newest spans.

        See RFC 2018 § 4, and RFC 2883 § 4 for what came again (D-SACK).
        """
        duplicate = self._duplicate
        if duplicate is None:
            return tuple(islice(reversed(self._runs.items()), _MAX_BLOCKS))
        self._duplicate = None
        self.wants_sack = bool(self._early)
        return (duplicate, *islice(reversed(self._runs.items()), _MAX_BLOCKS - 1))

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the segments that came, (low, high) inclusive, highest first."""
        for number in self._numbers:
            self._numbers_seen.add(number, number + 1)
        self._numbers.clear()
        newest = self._numbers_seen.spans()[-_MAX_SPANS:]
        return tuple((start, stop - 1) for start, stop in reversed(newest))

    def _on_early(self, segment: Segment, now_ns: int) -> None:
        """Keep a segment that came before its time, unless it came before."""
        self.due_at_ns = now_ns
        self.wants_sack = True
        seq, stop = segment.seq, segment.seq + segment.length
        # Segments are never cut anew, so one is new or known as a whole.
        if seq < self.next_seq or seq in self._early:
            self._duplicate = (seq, stop)
            self._renew(seq)
            return
        self._early[seq] = segment
        # The span grows at either end, or joins two.
        below = self._run_starts.pop(seq, None)
        if below is not None:
            del self._runs[below]
            seq = below
        above = self._runs.pop(stop, None)
        if above is not None:
            stop = above
        # Put in anew, so that it stands last: the first block reports the span that grew (RFC 2018
        # § 4).
        self._runs[seq] = stop
        self._run_starts[stop] = seq

    def _renew(self, seq: int) -> None:
        """Put the span last that holds *seq*, if one does, so that it is reported next.

        The block behind a duplicate is the one that the duplicate lies in (RFC 2883 § 4): without
        it the sender would take it for one more block (tcp_sack_new_ofo_skb of Linux does it, too).
        """
        start = next((start for start, stop in self._runs.items() if start <= seq < stop), None)
        if start is not None:
            self._runs[start] = self._runs.pop(start)

    def _with_followers(self, segment: Segment) -> list[TlsRecord]:
        """Return the records that end in a segment, and in those that waited for it."""
        records = list(segment.records)
        stop = self._runs.pop(self.next_seq, None)
        if stop is None:
            return records
        del self._run_starts[stop]
        while self.next_seq < stop:
            follower = self._early.pop(self.next_seq)
            self.next_seq += follower.length
            records += follower.records
        self.wants_sack = bool(self._early) or self._duplicate is not None
        return records
