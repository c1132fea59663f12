"""Congestion controllers on one path, recorded: the window, threshold and pace of each.

The path is what moves them through all that they know: a queue that overflows, single losses, a
rate that falls and rises, an idle time, a sender without data, an outage, round trips that get
longer, and ten seconds in which the shortest of them grows old.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from pathlib import Path
from typing import Any, Final

from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.packets import SentPacket
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("controllers.json")
_QUEUE_PACKETS: Final = 12
_TIMEOUT_NS: Final = ms(400)
_LATER_AFTER: Final = 3
"""A packet is lost when one that was sent so many later has arrived (RFC 9002 § 6.1.1)."""
_PHASES: Final = (
    # Until when, packets a second, round trip, and the packets that the application has.
    (ms(2000), 200, ms(50), 1000),
    (ms(4000), 50, ms(50), 1000),
    (ms(5500), 400, ms(60), 1000),
    (ms(6000), 400, ms(60), 0),
    (ms(7000), 150, ms(40), 3),
    (ms(8200), 0, ms(40), 1000),
    (ms(11_000), 150, ms(120), 1000),
    (ms(22_000), 15, ms(130), 1000),
)
_LOST: Final = (97, 401, 402, 405, 523, 700, 701, 702, 703, 704, 705)
"""Packets that the path loses besides."""


class _Packet(SentPacket):
    """What a controller reads of a packet."""


class _Path:
    """A bottleneck with a short queue; every second packet is acknowledged with the one before."""

    def __init__(self, controller: Any, datagram_bytes: int, times: int) -> None:
        self.controller, self.datagram_bytes = controller, datagram_bytes
        self.times = times
        self.rtt = RttEstimator(initial_ns=ms(50))
        self.now_ns = self.free_at_ns = self.sent_at_ns = 0
        self.delivered_bytes = self.delivered_at_ns = self.first_sent_at_ns = 0
        self.flying: dict[int, _Packet] = {}
        self.arrivals: list[tuple[int, int]] = []
        self.unacked: list[int] = []
        self.next_number = self.heard_at_ns = self.n_timeouts = 0
        self.log: list[tuple[int | None, ...]] = []

    def run(self) -> None:
        for until_ns, per_s, rtt_ns, n_packets in _PHASES:
            while self.now_ns < until_ns:
                self._send(per_s * self.times, rtt_ns, n_packets)
                self.now_ns += ms(1)
                while self.arrivals and self.arrivals[0][0] <= self.now_ns:
                    self._arrive(heapq.heappop(self.arrivals)[1])
                    self.heard_at_ns = self.now_ns
                if self.flying and self.now_ns - self.heard_at_ns > _TIMEOUT_NS:
                    self._time_out()

    def _time_out(self) -> None:
        """Nothing has come for long: give up all under way; twice in a row is persistent."""
        self._lose([*self.flying])
        self.n_timeouts += 1
        if self.n_timeouts > 1:
            self.controller.on_persistent_congestion(self.now_ns)
        self.heard_at_ns = self.now_ns

    def _send(self, per_s: int, rtt_ns: int, n_packets: int) -> None:
        """Send what the window and the pace let go within this millisecond."""
        size = self.datagram_bytes
        while len(self.flying) < n_packets and self.sent_at_ns <= self.now_ns:
            if self._in_flight() + size > self.controller.congestion_window:
                return
            if not self.flying:
                self.first_sent_at_ns = self.delivered_at_ns = self.now_ns
            packet = _Packet()
            packet.number, packet.sent_at_ns, packet.size_bytes = (
                self.next_number,
                self.now_ns,
                size,
            )
            packet.is_app_limited = n_packets < 1000
            packet.delivered_bytes = self.delivered_bytes
            packet.delivered_at_ns = self.delivered_at_ns
            packet.first_sent_at_ns = self.first_sent_at_ns
            self.flying[packet.number] = packet
            self.next_number += 1
            self.controller.on_sent(packet, self._in_flight())
            pace_bps = self.controller.pacing_rate_bps(self.rtt)
            if pace_bps is not None:
                self.sent_at_ns = max(self.sent_at_ns, self.now_ns - ms(1))
                self.sent_at_ns += size * 8 * 10**9 // pace_bps
            if per_s and packet.number not in _LOST:
                cost_ns = 10**9 // per_s
                if self.free_at_ns - self.now_ns <= _QUEUE_PACKETS * self.times * cost_ns:
                    self.free_at_ns = max(self.free_at_ns, self.now_ns) + cost_ns
                    heapq.heappush(self.arrivals, (self.free_at_ns + rtt_ns, packet.number))

    def _in_flight(self) -> int:
        return len(self.flying) * self.datagram_bytes

    def _arrive(self, number: int) -> None:
        if number not in self.flying:
            return
        self.unacked.append(number)
        if len(self.unacked) < 2 and len(self.flying) > 1:
            return
        self.n_timeouts = 0
        before = self._in_flight()
        packets = [self.flying.pop(number) for number in self.unacked]
        self.unacked = []
        newest = packets[-1]
        self.rtt.on_sample(self.now_ns - newest.sent_at_ns)
        self.delivered_bytes += sum(packet.size_bytes for packet in packets)
        self.delivered_at_ns, self.first_sent_at_ns = self.now_ns, newest.sent_at_ns
        is_underutilized = before + 3 * self.datagram_bytes < self.controller.congestion_window
        self.controller.on_acked(packets, self.now_ns, self.rtt, before, is_underutilized)
        self._lose([n for n in self.flying if n <= newest.number - _LATER_AFTER])
        controller = self.controller
        pace_bps = controller.pacing_rate_bps(self.rtt)
        self.log.append((self.now_ns, controller.congestion_window, controller.ssthresh, pace_bps))

    def _lose(self, numbers: list[int]) -> None:
        if numbers:
            before = self._in_flight()
            packets = [self.flying.pop(number) for number in numbers]
            self.unacked = [number for number in self.unacked if number in self.flying]
            self.controller.on_lost(packets, self.now_ns, before, self.next_number)


_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "bbr1": {},
    "bbr1, 10 kB": {"max_datagram_bytes": 10_000},
    "bbr1, 100 kB": {"max_datagram_bytes": 100_000},
    "bbr": {},
    "bbr, 10 kB": {"max_datagram_bytes": 10_000},
    "constant": {"rate_bps": 1_000_000},
    "cubic": {},
    "cubic, hystart": {"hystart": True, "initial_window_bytes": 4000},
    "cubic, search": {"search": True, "initial_window_bytes": 4000},
    "cubic-aioquic": {},
    "cubic-linux": {},
    "cubic-linux, hystart": {"hystart": True, "initial_window_bytes": 16_000},
    "cubic-quicly": {},
    "newreno": {"beta": 0.6},
    "newreno, hystart": {"hystart": True},
    "reno-aioquic": {},
    "reno-quicly": {},
}


def compute() -> dict[str, Any]:
    """Return, by controller and path, its windows after some of the ACKs, and a digest of all."""
    return {
        f"{name}, path of {times}": _summary(name.partition(",")[0], settings, times)
        for name, settings in _SETTINGS.items()
        for times in (1, 4)
    }


def _summary(name: str, settings: dict[str, Any], times: int) -> dict[str, Any]:
    made = ControllerSettings(**{"max_datagram_bytes": 1000, **settings})
    path = _Path(make_controller(name, made), made.max_datagram_bytes, times)
    path.run()
    return {
        "acks": len(path.log),
        "windows": [entry[1] for entry in path.log[:: len(path.log) // 8]],
        "digest": hashlib.sha256(repr(path.log).encode()).hexdigest()[:16],
    }


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded."""
    return json.dumps(document, indent=1) + "\n"
