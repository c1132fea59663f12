"""A sender for tests of congestion controllers; its times are in milliseconds."""

from __future__ import annotations

from typing import Any

from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.packets import SentPacket
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms

__all__ = ["Sender", "Sent", "after_loss"]


class Sent(SentPacket):
    def __init__(
        self, number: int, sent_at_ns: int, size_bytes: int = 1000, **delivery: Any
    ) -> None:
        self.number = number
        self.sent_at_ns = sent_at_ns
        self.size_bytes = size_bytes
        self.is_app_limited = delivery.get("is_app_limited", False)
        self.delivered_bytes = delivery.get("delivered_bytes", 0)
        self.delivered_at_ns = delivery.get("delivered_at_ns", 0)
        self.first_sent_at_ns = delivery.get("first_sent_at_ns", 0)


class Sender:
    """Sends packets of 1000 bytes, and tells a controller what became of them.

    `others_bytes` are in flight besides, so that the sender is not idle.
    """

    def __init__(
        self,
        name: str,
        *,
        window: int = 10_000,
        datagram: int = 1000,
        rtt_ms: float = 100,
        **settings: Any,
    ) -> None:
        self.controller = make_controller(
            name,
            ControllerSettings(
                max_datagram_bytes=datagram, initial_window_bytes=window, **settings
            ),
        )
        self.rtt = RttEstimator(initial_ns=ms(rtt_ms))
        self.rtt.on_sample(ms(rtt_ms))
        self.flying: dict[Any, Any] = {}
        self._flying_bytes = 0
        self.next_number = 0
        self.others_bytes = 1000

    @property
    def window(self) -> Any:
        return self.controller.congestion_window

    @property
    def in_flight(self) -> Any:
        return self.others_bytes + self._flying_bytes

    def send(self, count: int = 1, *, at_ms: float, size: int = 1000) -> None:
        for _ in range(count):
            packet = Sent(self.next_number, ms(at_ms), size)
            self.flying[self.next_number] = packet
            self._flying_bytes += size
            self.next_number += 1
            self.controller.on_sent(packet, bytes_in_flight=self.in_flight)

    def ack(self, *numbers: Any, at_ms: float, is_cwnd_underutilized: bool = False) -> Any:
        before = self.in_flight
        packets = self._landed(numbers)
        self.controller.on_acked(
            packets,
            now_ns=ms(at_ms),
            rtt=self.rtt,
            bytes_in_flight=before,
            is_cwnd_underutilized=is_cwnd_underutilized,
        )
        return self.window

    def lose(self, *numbers: Any, at_ms: float) -> Any:
        before = self.in_flight
        packets = self._landed(numbers)
        self.controller.on_lost(
            packets, now_ns=ms(at_ms), bytes_in_flight=before, next_number=self.next_number
        )
        return self.window

    def forget(self) -> None:
        """Leave nothing of its own in flight, and tell the controller nothing of that."""
        self.flying.clear()
        self._flying_bytes = 0

    def _landed(self, numbers: tuple[Any, ...]) -> list[Any]:
        """Return these packets, which are not in flight any more."""
        packets = [self.flying.pop(number) for number in numbers]
        self._flying_bytes -= sum(packet.size_bytes for packet in packets)
        return packets

    def exchange(self, *, at_ms: float, count: int = 1, is_cwnd_underutilized: bool = False) -> Any:
        """Send so many packets, and acknowledge them at once."""
        first = self.next_number
        self.send(count, at_ms=at_ms)
        return self.ack(
            *range(first, first + count), at_ms=at_ms, is_cwnd_underutilized=is_cwnd_underutilized
        )


def after_loss(name: str, window: Any, **settings: Any) -> Any:
    """Return a sender whose first packet was lost at 100 ms, when its window was that."""
    sender = Sender(name, window=window, **settings)
    sender.send(at_ms=0)
    sender.lose(0, at_ms=100)
    return sender
