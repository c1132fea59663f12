"""Senders that put a congestion controller on a path: over a bottleneck, or round by round."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Any, Final

from h3sim.transport.congestion import ControllerSettings
from h3sim.transport.congestion.bbr_output import BbrState
from h3sim.transport.delivery_rate import DeliverySampler
from h3sim.transport.packets import SentPacket
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import NS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.transport.congestion import CongestionController

    Factory = Callable[[ControllerSettings], CongestionController]

SIZE: Final = 1200
"""The size of a packet."""
RATE_BPS: Final = 10_000_000
RTT_NS: Final = ms(40)
BDP: Final = RATE_BPS * RTT_NS // (8 * NS_PER_S)
S: Final = NS_PER_S
_BBR_STATES: Final = frozenset(state.value for state in BbrState)


class SimulatedPath:
    """A sender with a controller made by *make*, a bottleneck, and a receiver that acknowledges.

    It acknowledges each packet. Where a case reads the state of BBR's model, the controller has
    BBR's attributes: `state` (the draft's name in lower case, as `probe_bw_up`), `pacing_gain`,
    `max_bandwidth_bps`, `bandwidth_shortterm_bps` and `inflight_longterm`.
    """

    def __init__(self, make: Factory, *, rate_bps: int = RATE_BPS, rtt_ns: int = RTT_NS) -> None:
        self.controller = make(ControllerSettings(max_datagram_bytes=SIZE, rate_bps=rate_bps))
        self.model: Any = getattr(self.controller, "controller", self.controller)
        """The controller itself, without the proxy that checks it."""
        self.rtt = RttEstimator(initial_ns=rtt_ns)
        self.rate_bps, self.rtt_ns = rate_bps, rtt_ns
        self.app_bps: int | None = None
        """The rate at which the application writes; None for more than the path takes."""
        self.queue_bytes = 1 << 60
        self.loses: Callable[[int], bool] = lambda _: False
        self.acks_every_ns = 0
        """The interval at which ACKs arrive together; 0 if each does at once."""
        self.policer: tuple[int, int] | None = None
        """Rate and bucket of a policer, which drops what exceeds both."""
        self.now_ns = 0
        self.sent: dict[int, SentPacket] = {}
        self.in_flight = self.delivered_bytes = self.lost = self.round = 0
        self.next_number = 0
        self.states: list[tuple[int, BbrState | None, int]] = [(0, self.state, 0)]
        """Each state with its time and round."""
        self.rounds: list[int] = []
        """The bandwidth estimate at the end of each round."""
        self.windows: list[int] = []
        """The window at the end of each round."""
        self._round_end = 0
        self._sampler = DeliverySampler()
        self._events: list[tuple[int, int, tuple[str, int] | None]] = []
        self._order = itertools.count()
        self._free_at_ns = 0
        self._tokens, self._filled_at_ns = 0.0, 0
        self._may_send_at_ns = 0
        self._written_at_ns = 0
        self._is_waking = False

    @property
    def state(self) -> BbrState | None:
        """The current state of BBR; None of other controllers."""
        state = getattr(self.model, "state", None)
        name = getattr(state, "value", state)
        return BbrState(name) if name in _BBR_STATES else None

    def run(self, seconds: float) -> SimulatedPath:
        """Run for that long."""
        return self.until(lambda: False, seconds)

    def until(self, is_met: Callable[[], bool], seconds: float = 30) -> SimulatedPath:
        """Run until a condition holds after an event, for *seconds* at most."""
        end_ns = self.now_ns + int(seconds * S)
        self._wake(self.now_ns)
        while not is_met() and self._events and self._events[0][0] <= end_ns:
            self.now_ns, _, event = heapq.heappop(self._events)
            if event is None:
                self._is_waking = False
            else:
                self._report(*event)
            self._send()
            if self.state is not self.states[-1][1]:
                self.states.append((self.now_ns, self.state, self.round))
        return self

    def reach(self, *states: BbrState) -> SimulatedPath:
        """Run until one of the states is entered."""
        return self.until(lambda: self.state in states)

    def pause(self, seconds: float) -> SimulatedPath:
        """Send nothing for that long; then the application has as much as before."""
        self.app_bps, self._written_at_ns = self.rate_bps, self.now_ns + int(seconds * S)
        self.run(seconds)
        self.app_bps = None
        return self

    def _wake(self, at_ns: int) -> None:
        if not self._is_waking:
            self._is_waking = True
            heapq.heappush(self._events, (at_ns, next(self._order), None))

    def _send(self) -> None:
        """Send packets as window, pace and application allow."""
        while self.in_flight + SIZE <= self.controller.congestion_window:
            ready_at_ns = max(self._may_send_at_ns, self._written_at_ns)
            if self.app_bps is not None and self._written_at_ns > self.now_ns:
                self._sampler.on_app_limited(self.in_flight)
            if ready_at_ns > self.now_ns:
                self._wake(ready_at_ns)
                return
            packet = SentPacket()
            packet.number, packet.sent_at_ns = self.next_number, self.now_ns
            packet.size_bytes = SIZE
            self.next_number += 1
            self.in_flight += SIZE
            self._sampler.on_sent(packet, self.in_flight)
            self.controller.on_sent(packet, self.in_flight)
            self.sent[packet.number] = packet
            self._cross(packet.number)
            pace_bps = self.controller.pacing_rate_bps(self.rtt) or self.rate_bps
            self._may_send_at_ns = self.now_ns + SIZE * 8 * S // pace_bps
            if self.app_bps is not None:
                since_ns = max(self._written_at_ns, self.now_ns - ms(5))
                self._written_at_ns = since_ns + SIZE * 8 * S // self.app_bps

    def _cross(self, number: int) -> None:
        """Decide when which fate of a packet is known."""
        queue_bytes = max(0, self._free_at_ns - self.now_ns) * self.rate_bps // (8 * S)
        is_lost = self.loses(number) or queue_bytes > self.queue_bytes
        if self.policer is not None:
            rate_bps, bucket = self.policer
            filled = self._tokens + (self.now_ns - self._filled_at_ns) * rate_bps / (8 * S)
            self._tokens, self._filled_at_ns = min(bucket, filled), self.now_ns
            is_lost = is_lost or self._tokens < SIZE
            self._tokens -= 0 if is_lost else SIZE
        if not is_lost:
            cost_ns = SIZE * 8 * S // self.rate_bps
            self._free_at_ns = max(self._free_at_ns, self.now_ns) + cost_ns
        at_ns = max(self._free_at_ns, self.now_ns) + self.rtt_ns
        if self.acks_every_ns:
            at_ns = -(-at_ns // self.acks_every_ns) * self.acks_every_ns
        event = ("lost" if is_lost else "acked", number)
        heapq.heappush(self._events, (at_ns, next(self._order), event))

    def _report(self, fate: str, number: int) -> None:
        """Report a fate, with all others of this kind and instant."""
        numbers = [number]
        while self._events and self._events[0][0] == self.now_ns:
            event = self._events[0][2]
            if event is None or event[0] != fate:
                break
            numbers.append(event[1])
            heapq.heappop(self._events)
        packets = [self.sent.pop(each) for each in sorted(numbers) if each in self.sent]
        if packets:
            self.report(packets, is_lost=fate == "lost")

    def report(self, packets: list[SentPacket], *, is_lost: bool) -> None:
        """Report packets as lost, or acknowledged."""
        before, n_bytes = self.in_flight, SIZE * len(packets)
        self.in_flight -= n_bytes
        if is_lost:
            self.lost += len(packets)
            self.controller.on_lost(packets, self.now_ns, before, self.next_number)
            return
        self.delivered_bytes += n_bytes
        newest = packets[-1]
        self.rtt.on_sample(self.now_ns - newest.sent_at_ns)
        self._sampler.on_delivered(n_bytes, newest, self.now_ns)
        self.controller.on_acked(packets, self.now_ns, self.rtt, before, False)
        if newest.number >= self._round_end:
            self._round_end = self.next_number
            self.round += 1
            self.rounds.append(getattr(self.model, "max_bandwidth_bps", 0))
            self.windows.append(self.controller.congestion_window)


class Rounds:
    """A controller whose window is sent and acknowledged once per round trip, without a queue."""

    def __init__(
        self, make: Factory, *, rtt_ms: float = 100, segments: int = 100, beta: float | None = None
    ) -> None:
        settings = ControllerSettings(
            max_datagram_bytes=SIZE, initial_window_bytes=segments * SIZE, beta=beta
        )
        self.controller = make(settings)
        self.rtt_ns = ms(rtt_ms)
        self.rtt = RttEstimator(initial_ns=self.rtt_ns)
        self.rtt.on_sample(self.rtt_ns)
        self.now_ns = self.number = 0
        self._sampler = DeliverySampler()

    @property
    def segments(self) -> float:
        """The window in segments."""
        return self.controller.congestion_window / SIZE

    def lose(self) -> None:
        """Lose a packet, and acknowledge another that was sent after the reduction."""
        self.now_ns += 1
        lost, n_bytes = self.send(1), self.controller.congestion_window
        self.controller.on_lost(lost, self.now_ns, n_bytes, self.number)
        self.now_ns += 1

    def round(self) -> int:
        """Send and acknowledge a window; return its packets."""
        packets = self.send(self.controller.congestion_window // SIZE)
        self.now_ns += self.rtt_ns
        for n in range(0, len(packets), 2):
            acked, n_bytes = packets[n : n + 2], SIZE * (len(packets) - n)
            self._sampler.on_delivered(SIZE * len(acked), acked[-1], self.now_ns)
            self.controller.on_acked(acked, self.now_ns, self.rtt, n_bytes, False)
        return len(packets)

    def until(self, segments: float) -> float:
        """Run until the window has that many segments; return the seconds."""
        began_ns = self.now_ns
        while self.segments < segments and self.now_ns < began_ns + 60 * S:
            self.round()
        return (self.now_ns - began_ns) / S

    def send(self, n_packets: int) -> list[SentPacket]:
        """Send so many packets."""
        packets = []
        for _ in range(n_packets):
            packet = SentPacket()
            packet.number, packet.sent_at_ns, packet.size_bytes = self.number, self.now_ns, SIZE
            self.number += 1
            # As if others were in flight: the time of the curve does not stop.
            self._sampler.on_sent(packet, 2 * SIZE)
            self.controller.on_sent(packet, 2 * SIZE)
            packets.append(packet)
        return packets
