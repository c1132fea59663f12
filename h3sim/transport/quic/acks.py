"""The receiving side of acknowledgement: which packets came, and when to say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from h3sim.ranges import Ranges

if TYPE_CHECKING:
    from h3sim.transport.quic.packets import Spans
    from h3sim.transport.quic.settings import QuicSettings

__all__ = ["AckState"]

_MAX_SPANS: Final = 8
"""So many spans are told of; older ones were told of several times already."""


class AckState:
    """Decides when an ACK is due (RFC 9000 § 13.2).

    At once with every *every*-th ack-eliciting packet and, with *gaps_at_once*, when numbers have a
    gap or come late; else *max_delay_ns* after the first packet that is not acknowledged yet.

    >>> state = AckState(every=2, max_delay_ns=25)
    >>> state.on_packet(0, 100, True), state.due_at_ns
    (True, 125)
    >>> state.on_packet(1, 110, True), state.due_at_ns
    (True, 110)
    >>> state.take(), state.due_at_ns
    (((0, 1),), None)
    """

    __slots__ = (
        "_eliciting",
        "_every",
        "_gaps_at_once",
        "_largest",
        "_max_delay_ns",
        "_newest_from",
        "_older",
        "_received",
        "_told_to",
        "due_at_ns",
        "largest_at_ns",
    )

    def __init__(self, *, every: int, max_delay_ns: int, gaps_at_once: bool = True) -> None:
        self._every = every
        self._gaps_at_once = gaps_at_once
        self._max_delay_ns = max_delay_ns
        # The newest span grows with every packet, so it is kept as two numbers; the rest changes
        # only where there is a gap, so what an ACK tells of it is kept as well.
        self._newest_from = 0
        self._told_to = -1
        self._largest = -1
        self._older: Spans = ()
        self._received = Ranges()
        """All spans as they were when last a number did not follow the one before."""
        self.largest_at_ns = 0
        """When the packet with the largest number came: an ACK says how long ago that is."""
        self._eliciting = 0
        self.due_at_ns: int | None = None
        """When an ACK is due; None if no ack-eliciting packet has come since the last."""

    @classmethod
    def of(cls, settings: QuicSettings) -> AckState:
        """Return the state of an end with these settings."""
        return cls(
            every=settings.ack_every,
            max_delay_ns=settings.max_ack_delay_ns,
            gaps_at_once=settings.acks_gaps_at_once,
        )

    def on_packet(self, number: int, now_ns: int, is_ack_eliciting: bool) -> bool:
        """Note packet *number*; return False if it came before."""
        is_next = number == self._largest + 1
        if is_next:
            self._largest = number
            self.largest_at_ns = now_ns
        elif not self._out_of_order(number, now_ns):
            return False
        if is_ack_eliciting:
            self._eliciting = eliciting = self._eliciting + 1
            # Also where a gap is filled: the sender learns soonest that its loss was reordering (§
            # 13.2.1). Narrower than there: a gap in front of one that elicits nothing is forgotten.
            if eliciting >= self._every or (not is_next and self._gaps_at_once):
                self.due_at_ns = now_ns
            # Not moved on by later packets: max_ack_delay is a promise about the first of them.
            elif self.due_at_ns is None:
                self.due_at_ns = now_ns + self._max_delay_ns
        return True

    def take(self) -> Spans:
        """Return what an ACK says of everything so far; nothing is due any more."""
        self._eliciting = 0
        self.due_at_ns = None
        spans: Spans = ((self._newest_from, self._largest), *self._older)
        low = self._told_to + 1
        # Something must remain: an ACK frame has one range at least, the newest.
        if low and spans[-1][0] < low <= spans[0][1]:
            spans = tuple((max(first, low), last) for first, last in spans if last >= low)
        return spans

    def forget(self, number: int) -> None:
        """Tell no more of the packets up to *number*: the peer has an ACK of them (§ 13.2.4)."""
        self._told_to = max(self._told_to, number)

    def _out_of_order(self, number: int, now_ns: int) -> bool:
        """Note a number that leaves a gap or fills one; return False if it came before."""
        received = self._received
        # The newest span grew without `received` being told, packet by packet; it is told now.
        received.add(self._newest_from, self._largest + 1)
        if not received.add(number, number + 1):
            return False
        # ACK Delay is that of the largest number (RFC 9000 § 19.3), so a late packet leaves its
        # time.
        if number > self._largest:
            self._largest = number
            self.largest_at_ns = now_ns
        newest, *older = received.last_spans(_MAX_SPANS)
        self._newest_from = newest[0]
        self._older = tuple(older)
        return True
