"""Delivery-rate samples (draft-ietf-ccwg-bbr § 4.1), the same for QUIC and TCP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.values.units import BITS_PER_BYTE, NS_PER_S

if TYPE_CHECKING:
    from h3sim.transport.packets import SentPacket


class DeliverySampler:
    """Delivery-rate sampling: stores the delivery state with each transmission."""

    __slots__ = ("_app_limited_to", "_delivered_at_ns", "_delivered_bytes", "_first_sent_at_ns")

    def __init__(self) -> None:
        self._delivered_bytes = 0
        self._delivered_at_ns = 0
        self._first_sent_at_ns = 0
        """With the two before, the state that rate samples begin with (`SentPacket`)."""
        self._app_limited_to = -1
        """Delivered bytes up to which transmissions are app-limited (C.app_limited)."""

    def on_sent(self, packet: SentPacket, in_flight: int) -> None:
        """Store the state with *packet*; *in_flight* includes it."""
        # Nothing else was in flight: idle time does not belong to the path.
        if in_flight == packet.size_bytes:
            self._first_sent_at_ns = self._delivered_at_ns = packet.sent_at_ns
        packet.first_sent_at_ns = self._first_sent_at_ns
        packet.delivered_at_ns = self._delivered_at_ns
        packet.delivered_bytes = delivered_bytes = self._delivered_bytes
        packet.is_app_limited = delivered_bytes <= self._app_limited_to

    def on_delivered(self, n_bytes: int, newest: SentPacket, now_ns: int) -> None:
        """Count delivered bytes; *newest* is the packet among them that was sent last."""
        self._delivered_bytes += n_bytes
        self._delivered_at_ns = now_ns
        # A rate sample spans the sending of what was delivered meanwhile (P.first_sent_time).
        self._first_sent_at_ns = newest.sent_at_ns

    def on_app_limited(self, in_flight: int) -> None:
        """Record that there is nothing to send although the window has room."""
        self._app_limited_to = self._delivered_bytes + in_flight


def delivery_rate_bps(
    packet: SentPacket, delivered_bytes: int, now_ns: int, min_rtt_ns: int
) -> int | None:
    """Return the delivery rate while *packet*, acknowledged now, was on its way; None if unknown.

    *delivered_bytes* includes the bytes of this ACK. The bytes delivered since the packet was sent
    are divided by the time that it took to send them, or to acknowledge them if that was longer, so
    bunched ACKs do not feign a high rate. Times below the smallest RTT are implausible (§ 3.3).
    """
    send_ns = packet.sent_at_ns - packet.first_sent_at_ns
    ack_ns = now_ns - packet.delivered_at_ns
    interval_ns = send_ns if send_ns > ack_ns else ack_ns
    if interval_ns <= 0 or interval_ns < min_rtt_ns:
        return None
    newly_delivered_bytes = delivered_bytes - packet.delivered_bytes
    return newly_delivered_bytes * BITS_PER_BYTE * NS_PER_S // interval_ns
