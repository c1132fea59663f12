"""Round trips for tests of BBR by hand: one packet of 10 000 bytes, 100 ms long.

That is a bandwidth of 800 kbit/s and a bandwidth-delay product of 10 000 bytes. Three quanta are
3000 bytes, or 6000 at a pacing rate of 1.2 Mbit/s and more; four packets of 1000 bytes are the
minimum.
"""

from __future__ import annotations

from h3sim.transport.congestion import Bbr1Controller, ControllerSettings
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sent

__all__ = ["HIGH_GAIN", "RATE_BPS", "SIZE", "STARTUP_BPS", "RoundRing", "in_probe_bw"]

HIGH_GAIN = 2.8853900817779268
SIZE = 10_000
RATE_BPS = 800_000
STARTUP_BPS = int(HIGH_GAIN * RATE_BPS)


class RoundRing:
    """A sender that has one packet on its way at a time."""

    def __init__(self, *, window: int = 10_000, datagram: int = 1000) -> None:
        settings = ControllerSettings(max_datagram_bytes=datagram, initial_window_bytes=window)
        self.bbr = Bbr1Controller(settings)
        self.rtt = RttEstimator(initial_ns=ms(100))
        self.now_ns = 0
        self.number = 0
        self.delivered = 0

    @property
    def state(self) -> str:
        return self.bbr.state.value

    @property
    def rate_bps(self) -> int | None:
        return self.bbr.pacing_rate_bps(self.rtt)

    @property
    def window(self) -> int:
        return self.bbr.congestion_window

    def send(
        self, size: int = SIZE, *, in_flight: int | None = None, is_app_limited: bool = False
    ) -> Sent:
        """Send a packet, after which *in_flight* bytes are on their way."""
        packet = Sent(
            self.number,
            self.now_ns,
            size,
            delivered_bytes=self.delivered,
            delivered_at_ns=self.now_ns,
            first_sent_at_ns=self.now_ns,
            is_app_limited=is_app_limited,
        )
        self.number += 1
        self.bbr.on_sent(packet, size if in_flight is None else in_flight)
        return packet

    def ack(self, packet: Sent, *, in_flight: int | None = None) -> None:
        """Acknowledge it now; *in_flight* includes it."""
        self.rtt.on_sample(self.now_ns - packet.sent_at_ns)
        self.delivered += packet.size_bytes
        before = packet.size_bytes if in_flight is None else in_flight
        self.bbr.on_acked([packet], self.now_ns, self.rtt, before, False)

    def lose(self, packet: Sent, *, in_flight: int) -> None:
        self.bbr.on_lost([packet], self.now_ns, in_flight, self.number)

    def round(
        self,
        size: int = SIZE,
        *,
        rtt_ms: float = 100,
        in_flight: int | None = None,
        is_app_limited: bool = False,
    ) -> None:
        """Send a packet and acknowledge it a round trip later."""
        packet = self.send(size, is_app_limited=is_app_limited)
        self.now_ns += ms(rtt_ms)
        self.ack(packet, in_flight=in_flight)

    def rounds(self, count: int, *, is_app_limited: bool = False) -> None:
        for _ in range(count):
            self.round(is_app_limited=is_app_limited)


def in_probe_bw() -> RoundRing:
    """Return a sender that has just begun to probe, at 400 ms, with the raised gain."""
    sender = RoundRing()
    sender.rounds(4)
    assert sender.state == "probe_bw"
    assert sender.bbr.pacing_gain == 1.25
    return sender
