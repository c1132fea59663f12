"""A path of one bottleneck whose queue has no end, for tests of controllers that pace."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sent

__all__ = ["PACKET_BYTES", "RATE_BPS", "RTT_NS", "Path"]

PACKET_BYTES = 1000
PACKET_BITS = 8 * PACKET_BYTES
RATE_BPS = 8_000_000
"""A packet per millisecond."""
RTT_NS = ms(50)


class Path:
    """A sender that always has data, a bottleneck, and an ACK for each packet."""

    def __init__(self, controller: Any, *, rtt_ns: int = RTT_NS) -> None:
        self.controller = controller
        self.rtt = RttEstimator(initial_ns=rtt_ns)
        self.rtt_ns = rtt_ns
        self.rate_bps = RATE_BPS
        self.now_ns = 0
        self.log: list[Any] = []
        """When, the state, the pacing gain, the bytes in flight and the window, after each ACK."""
        self._events: list[Any] = []
        self._order = itertools.count()
        self._free_at_ns = 0
        self._next_number = 0
        self.in_flight = 0
        self._delivered = 0
        self._delivered_at_ns = 0
        self._first_sent_at_ns = 0
        self._wakes_at_ns: Any = None
        self.lose = lambda number: False
        self.is_app_limited = False
        self.most_in_flight = 1 << 60
        """What the application has to send."""

    def lose_one(self) -> None:
        """Lose the packet that arrives next, and none after it."""
        arrivals = itertools.count()
        self.lose = lambda number: next(arrivals) == 0

    def run(self, until_ns: int) -> Any:
        """Send as fast as the controller lets, until then."""
        self._wake(self.now_ns)
        while self._events and self._events[0][0] <= until_ns:
            self.now_ns, _, packet = heapq.heappop(self._events)
            if packet is None:
                self._wakes_at_ns = None
            elif self.lose(packet.number):  # type: ignore[no-untyped-call]
                self._lose(packet)
            else:
                self._ack(packet)
            self._send()
        self.now_ns = until_ns
        return self.log

    def states(self) -> Any:
        """Return the sequence of states, each once, and when it was first seen."""
        seen: list[Any] = []
        for now_ns, state, *_ in self.log:
            if not seen or seen[-1][1] is not state:
                seen.append((now_ns, state))
        return seen

    def _wake(self, at_ns: int) -> None:
        if self._wakes_at_ns is None:
            self._wakes_at_ns = at_ns
            heapq.heappush(self._events, (at_ns, next(self._order), None))

    def _send(self) -> None:
        """Send one packet, if the window has room and the pace is kept."""
        if self._wakes_at_ns is not None:
            return
        most = min(self.controller.congestion_window, self.most_in_flight)
        if self.in_flight + PACKET_BYTES > most:
            return
        if not self.in_flight:
            self._first_sent_at_ns = self._delivered_at_ns = self.now_ns
        packet = Sent(
            self._next_number,
            self.now_ns,
            is_app_limited=self.is_app_limited,
            delivered_bytes=self._delivered,
            delivered_at_ns=self._delivered_at_ns,
            first_sent_at_ns=self._first_sent_at_ns,
        )
        self._next_number += 1
        self.in_flight += PACKET_BYTES
        self.controller.on_sent(packet, bytes_in_flight=self.in_flight)
        cost_ns = PACKET_BITS * 10**9 // self.rate_bps
        self._free_at_ns = max(self._free_at_ns, self.now_ns) + cost_ns
        arrives_at_ns = self._free_at_ns + self.rtt_ns
        heapq.heappush(self._events, (arrives_at_ns, next(self._order), packet))
        pace_bps = self.controller.pacing_rate_bps(self.rtt)
        self._wake(self.now_ns + PACKET_BITS * 10**9 // pace_bps)

    def _ack(self, packet: Any) -> None:
        self.rtt.on_sample(self.now_ns - packet.sent_at_ns)
        self._delivered += PACKET_BYTES
        self._delivered_at_ns = self.now_ns
        self._first_sent_at_ns = packet.sent_at_ns
        before = self.in_flight
        self.in_flight -= PACKET_BYTES
        self.controller.on_acked(
            [packet],
            now_ns=self.now_ns,
            rtt=self.rtt,
            bytes_in_flight=before,
            is_cwnd_underutilized=False,
        )
        controller = self.controller
        entry = (controller.state, controller.pacing_gain, before, controller.congestion_window)
        self.log.append((self.now_ns, *entry))

    def _lose(self, packet: Any) -> None:
        before = self.in_flight
        self.in_flight -= PACKET_BYTES
        self.controller.on_lost(
            [packet],
            now_ns=self.now_ns,
            bytes_in_flight=before,
            next_number=self._next_number,
        )
