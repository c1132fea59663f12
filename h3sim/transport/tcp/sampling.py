"""Delivery-rate sampling (draft-cheng-iccrg-delivery-rate-estimation §§ 3-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from h3sim.transport.tcp.segments import SentSegment

__all__ = ["DeliverySampler"]


class DeliverySampler:
    """Notes with each transmission what had been delivered when it left."""

    __slots__ = ("_app_limited_to", "_delivered_at_ns", "_delivered_bytes", "_first_sent_at_ns")

    def __init__(self) -> None:
        self._delivered_bytes = 0
        self._delivered_at_ns = 0
        self._first_sent_at_ns = 0
        self._app_limited_to = 0
        """As long as less than this was delivered, what leaves is limited by the application."""

    def on_sent(self, segment: SentSegment, in_flight: int) -> None:
        """Note the state with *segment*; *in_flight* includes it."""
        # Nothing else was on its way: the time before is no time of the path.
        if in_flight == segment.size_bytes:
            self._first_sent_at_ns = self._delivered_at_ns = segment.sent_at_ns
        segment.first_sent_at_ns = self._first_sent_at_ns
        segment.delivered_at_ns = self._delivered_at_ns
        segment.delivered_bytes = self._delivered_bytes
        segment.is_app_limited = self._delivered_bytes < self._app_limited_to

    def on_delivered(self, segments: list[SentSegment], now_ns: int) -> None:
        """Count what was delivered; the last of *segments* is the last sent."""
        for segment in segments:
            self._delivered_bytes += segment.size_bytes
        self._delivered_at_ns = now_ns
        self._first_sent_at_ns = segments[-1].sent_at_ns

    def on_app_limited(self, in_flight: int) -> None:
        """Note that there is nothing to send though there is room."""
        self._app_limited_to = self._delivered_bytes + in_flight
