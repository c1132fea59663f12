"""The receiving side of acknowledgement: which packets came, and when to say so."""

from __future__ import annotations

from h3sim.ranges import Ranges
from h3sim.transport.quic.packets import AckFrame

__all__ = ["AckState"]

_MAX_SPANS = 8
"""So many spans are told of; older ones were told of several times already."""


class AckState:
    """Decides when an ACK is due (RFC 9000 § 13.2).

    At once with every *every*-th ack-eliciting packet and when numbers have a gap or come late;
    else *max_delay_ns* after the first packet that is not acknowledged yet.

    >>> state = AckState(every=2, max_delay_ns=25)
    >>> state.on_packet(0, 100, is_ack_eliciting=True), state.due_at_ns
    (True, 125)
    >>> state.on_packet(1, 110, is_ack_eliciting=True), state.due_at_ns
    (True, 110)
    >>> state.frame(110).spans, state.due_at_ns
    (((0, 1),), None)
    """

    __slots__ = (
        "_eliciting",
        "_every",
        "_largest",
        "_largest_at_ns",
        "_max_delay_ns",
        "_received",
        "due_at_ns",
    )

    def __init__(self, *, every: int, max_delay_ns: int) -> None:
        self._every = every
        self._max_delay_ns = max_delay_ns
        self._received = Ranges()
        self._largest = -1
        self._largest_at_ns = 0
        self._eliciting = 0
        self.due_at_ns: int | None = None

    @property
    def has_news(self) -> bool:
        """Whether an ack-eliciting packet has come since the last ACK."""
        return self._eliciting > 0

    def on_packet(self, number: int, now_ns: int, *, is_ack_eliciting: bool) -> bool:
        """Note packet *number*; return False if it came before."""
        if not self._received.add(number, number + 1):
            return False
        expected = self._largest + 1
        if number > self._largest:
            self._largest = number
            self._largest_at_ns = now_ns
        if is_ack_eliciting:
            self._eliciting += 1
            if self._eliciting >= self._every or number != expected:
                self.due_at_ns = now_ns
            elif self.due_at_ns is None:
                self.due_at_ns = now_ns + self._max_delay_ns
        return True

    def frame(self, now_ns: int) -> AckFrame:
        """Return an ACK of everything so far; nothing is due any more."""
        self._eliciting = 0
        self.due_at_ns = None
        return AckFrame(self._received.last_spans(_MAX_SPANS), now_ns - self._largest_at_ns)
