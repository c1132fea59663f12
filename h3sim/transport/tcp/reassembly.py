"""The receiving side: bytes in order, complete records, and the timing of ACKs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from h3sim.ranges import Ranges
from h3sim.transport.packets import CE

if TYPE_CHECKING:
    from h3sim.transport.tcp.records import TlsRecord
    from h3sim.transport.tcp.segments import Segment


_MAX_BLOCKS: Final = 3
"""The most SACK blocks that fit next to timestamps (RFC 2018 § 3)."""
_MAX_SPANS: Final = 32
"""The most spans of numbers reported to a log, in the form of a QUIC ACK."""


class Reassembly:
    """Reassembly of the byte stream: out-of-order segments wait for the hole to be filled.

    An ACK is due at once after *every* segments in order, after an out-of-order or duplicate
    segment, and when a hole is filled; otherwise *max_delay_ns* after the first unacknowledged
    segment (RFC 5681 § 4.2).
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
        "echoes_mark",
        "last_ack",
        "next_seq",
        "wants_sack",
    )

    def __init__(self, *, every: int, max_delay_ns: int) -> None:
        self._every = every
        self._max_delay_ns = max_delay_ns
        self._early: dict[int, Segment] = {}
        self._runs: dict[int, int] = {}
        """The start and end of each out-of-order span, the most recently extended last."""
        self._run_starts: dict[int, int] = {}
        self._duplicate: tuple[int, int] | None = None
        self._unacked = 0
        self._numbers: list[int] = []
        self._numbers_seen = Ranges()
        self.next_seq = 0
        """The next expected byte (RCV.NXT)."""
        self.last_ack = 0
        """The ACK number of the last segment sent."""
        self.echo_ns: int | None = None
        """TS.Recent (RFC 7323 § 4.3): the timestamp to echo with the next ACK."""
        self.due_at_ns: int | None = None
        """Time when an ACK is due."""
        self.wants_sack = False
        """True if an ACK needs a SACK option; read with each segment, so it is an attribute."""
        self.echoes_mark = False
        """True if ACKs carry ECN-Echo: from a mark until CWR arrives (RFC 3168 § 6.1.3)."""

    def on_segment(self, segment: Segment, now_ns: int) -> list[TlsRecord]:
        """Handle a data segment; return the records that are now complete, in order."""
        seq = segment.seq
        if segment.is_cwr:
            self.echoes_mark = False
        if segment.ecn == CE:  # after CWR: the segment that carries it may be marked itself
            self.echoes_mark = True
        # Converted to ranges only for a log: most loads pay for an append only.
        self._numbers.append(segment.number)
        if seq != self.next_seq:
            self._on_early(segment, now_ns)
            return []
        self.next_seq = seq + segment.length
        if self._early:
            # A hole is filled, partly or fully: ACK at once (RFC 5681 § 4.2).
            self.due_at_ns = now_ns
            return self._with_followers(segment)
        self._unacked += 1
        if self._unacked >= self._every:
            self.due_at_ns = now_ns
        elif self.due_at_ns is None:
            self.due_at_ns = now_ns + self._max_delay_ns
        return segment.records

    def on_acked(self) -> None:
        """Record a segment that acknowledges everything in order."""
        self.last_ack = self.next_seq
        self._unacked = 0
        self.due_at_ns = None

    def take_blocks(self) -> tuple[tuple[int, int], ...]:
        """Return the SACK blocks: first a duplicate, then the newest spans.

        See RFC 2018 § 4, and RFC 2883 § 4 for the duplicate (D-SACK).
        """
        duplicate = self._duplicate
        if duplicate is None:
            return tuple(islice(reversed(self._runs.items()), _MAX_BLOCKS))
        self._duplicate = None
        self.wants_sack = bool(self._early)
        return (duplicate, *islice(reversed(self._runs.items()), _MAX_BLOCKS - 1))

    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers of received segments, (low, high) inclusive, highest first."""
        for number in self._numbers:
            self._numbers_seen.add(number, number + 1)
        self._numbers.clear()
        newest = self._numbers_seen.spans()[-_MAX_SPANS:]
        return tuple((start, stop - 1) for start, stop in reversed(newest))

    def _on_early(self, segment: Segment, now_ns: int) -> None:
        """Keep an out-of-order segment, unless it is a duplicate."""
        self.due_at_ns = now_ns
        self.wants_sack = True
        seq, stop = segment.seq, segment.seq + segment.length
        # Segments are never split again, so one is either new or known as a unit.
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
        # Reinserted, so that it is last: the first block reports the span that grew (RFC 2018 § 4).
        self._runs[seq] = stop
        self._run_starts[stop] = seq

    def _renew(self, seq: int) -> None:
        """Move the span that holds *seq* to the end, if one does, so that it is reported next.

        The block after a D-SACK is the one that contains the duplicate (RFC 2883 § 4): otherwise
        the sender would take it for one more block (as tcp_sack_new_ofo_skb of Linux).
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
