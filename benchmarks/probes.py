"""The least that a simulator of a page must do, in three ways: the yardsticks of the model's speed.

A server sends one packet every 10 ms, round robin over all responses; a packet arrives 50 ms later,
and the receiver puts the streams together and notes when each is complete. There is no page graph,
no choice of scheme, no trace and no metric.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERVAL_NS = 10_000_000
_DELAY_NS = 50_000_000
_PACKET_BYTES = 1400


def with_heapq(sizes: Sequence[int]) -> dict[int, int]:
    """Return when each response is complete, by a bare event heap."""
    return _HeapProbe(sizes).run()


def with_plain_simpy(sizes: Sequence[int]) -> dict[int, int]:
    """Return when each response is complete, by callbacks on SimPy timeouts, written plainly."""
    return _SimpyProbe(sizes).run()


def with_simpy(sizes: Sequence[int]) -> dict[int, int]:
    """Return the same by the smallest program: no function of Python between SimPy and a packet.

    Ratios are to this one.
    """
    env = simpy.Environment()
    timeout = env.timeout
    queue = deque((stream, 0, size) for stream, size in enumerate(sizes))
    received = [0] * len(sizes)
    early: dict[tuple[int, int], int] = {}
    finished: dict[int, int] = {}

    def on_tick(_event: simpy.Event) -> None:
        stream, offset, left = queue.popleft()
        n_bytes = left if left < _PACKET_BYTES else _PACKET_BYTES
        if left > n_bytes:
            queue.append((stream, offset + n_bytes, left - n_bytes))
        timeout(_DELAY_NS, (stream, offset, n_bytes)).callbacks.append(on_arrival)
        if queue:
            timeout(_INTERVAL_NS).callbacks.append(on_tick)

    def on_arrival(event: simpy.Event) -> None:
        stream, offset, n_bytes = event._value
        if received[stream] != offset:
            early[stream, offset] = n_bytes
            return
        received[stream] = end = offset + n_bytes
        if end == sizes[stream]:
            finished[stream] = env._now  # type: ignore[assignment]  # whole numbers were put in

    timeout(_INTERVAL_NS).callbacks.append(on_tick)
    env.run()
    return finished


class _Probe:
    def __init__(self, sizes: Sequence[int]) -> None:
        self.queue = deque((stream, 0, size) for stream, size in enumerate(sizes))
        self.sizes = sizes
        self.received = [0] * len(sizes)
        self.finished: dict[int, int] = {}

    def next_packet(self) -> tuple[int, int, int]:
        stream, offset, left = self.queue.popleft()
        n_bytes = min(left, _PACKET_BYTES)
        if left > n_bytes:
            self.queue.append((stream, offset + n_bytes, left - n_bytes))
        return stream, offset, n_bytes

    def on_packet(self, packet: tuple[int, int, int], now_ns: int) -> None:
        stream, offset, n_bytes = packet
        if offset == self.received[stream]:
            self.received[stream] += n_bytes
            if self.received[stream] == self.sizes[stream]:
                self.finished[stream] = now_ns


class _HeapProbe(_Probe):
    def run(self) -> dict[int, int]:
        number = count()
        events: list[tuple[int, int, tuple[int, int, int] | None]] = [(_INTERVAL_NS, -1, None)]
        while events:
            now_ns, _, packet = heappop(events)
            if packet is not None:
                self.on_packet(packet, now_ns)
                continue
            heappush(events, (now_ns + _DELAY_NS, next(number), self.next_packet()))
            if self.queue:
                heappush(events, (now_ns + _INTERVAL_NS, next(number), None))
        return self.finished


class _SimpyProbe(_Probe):
    def run(self) -> dict[int, int]:
        self.env = simpy.Environment()
        self.timeout(_INTERVAL_NS, self.on_tick, None)
        self.env.run()
        return self.finished

    def timeout(self, delay_ns: int, callback: object, value: object) -> None:
        self.env.timeout(delay_ns, value).callbacks.append(callback)  # type: ignore[arg-type]

    def on_tick(self, _event: simpy.Event) -> None:
        self.timeout(_DELAY_NS, self.on_arrival, self.next_packet())
        if self.queue:
            self.timeout(_INTERVAL_NS, self.on_tick, None)

    def on_arrival(self, event: simpy.Event) -> None:
        self.on_packet(event.value, int(self.env.now))  # type: ignore[arg-type]
