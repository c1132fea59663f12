"""How fast a path delivers (draft-cheng-iccrg-delivery-rate-estimation), and a windowed maximum."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h3sim.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.packets import SentPacket

__all__ = ["WindowedMaximum", "delivery_rate_bps"]


def delivery_rate_bps(
    packet: SentPacket, delivered_bytes: int, now_ns: int, min_rtt_ns: int
) -> int | None:
    """Return the delivery rate while *packet*, acknowledged now, was on its way; None if unknown.

    *delivered_bytes* includes what this ACK acknowledges. What was delivered since the packet was
    sent is divided by the longer of the times in which it was sent and acknowledged, so that
    bunched ACKs do not feign a high rate; a time below the smallest RTT is not believed (§ 3.3).
    """
    send_ns = packet.sent_at_ns - packet.first_sent_at_ns
    ack_ns = now_ns - packet.delivered_at_ns
    interval_ns = send_ns if send_ns > ack_ns else ack_ns
    if interval_ns <= 0 or interval_ns < min_rtt_ns:
        return None
    newly_delivered_bytes = delivered_bytes - packet.delivered_bytes
    return newly_delivered_bytes * BITS_PER_BYTE * NS_PER_S // interval_ns


class WindowedMaximum:
    """The largest of the values that were put in during the last *length* rounds.

    >>> filtered = WindowedMaximum(length=10)
    >>> [filtered.put(value, round_count) for value, round_count in ((7, 0), (3, 9), (2, 10))]
    [7, 7, 3]
    """

    __slots__ = ("_length", "_values")

    def __init__(self, *, length: int) -> None:
        self._length = length
        self._values: deque[tuple[int, int]] = deque()
        """Rounds and values; both the rounds and, backwards, the values rise."""

    def put(self, value: int, round_count: int) -> int:
        """Take *value* in and return the maximum."""
        values = self._values
        # Of equal values the younger one counts longer.
        while values and values[-1][1] <= value:
            values.pop()
        # A lower one of the same round would leave with the one before it, and never be the first.
        if not values or values[-1][0] != round_count:
            values.append((round_count, value))
        while values[0][0] <= round_count - self._length:
            values.popleft()
        return values[0][1]
