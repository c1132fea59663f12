"""An FQ-CoDel link driven by a heap, with flows that note the fates of their packets."""

from __future__ import annotations

import itertools
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from h3sim.transport.fair_link import FairLink
from h3sim.transport.link_profile import FqCoDel, LinkProfile
from h3sim.transport.packets import NOT_ECT, WirePacket
from h3sim.values.rng import substream
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    import random

__all__ = ["FairPath", "NoCoDel"]

NoCoDel = FqCoDel(target_ns=60_000_000_000, interval_ns=60_000_000_000)
"""A queue that never drops unless it is full."""


class Packet(WirePacket):
    """A packet with a codepoint."""

    def __init__(self, number: int, ecn: int) -> None:
        self.number = number
        self.ecn = ecn


class Flow:
    """A sender that notes when each of its packets arrives."""

    def __init__(self) -> None:
        self.fates: dict[int, int | None] = {}
        self.codepoints: dict[int, int] = {}

    def on_departed(self, packet: WirePacket, arrives_at_ns: int | None) -> None:
        assert packet.number not in self.fates
        self.fates[packet.number] = arrives_at_ns
        self.codepoints[packet.number] = packet.ecn

    @property
    def arrivals_ms(self) -> list[float | None]:
        fates = [self.fates[number] for number in sorted(self.fates)]
        return [None if at_ns is None else to_ms(at_ns) for at_ns in fates]


class FairPath:
    """A link of that profile, and packets that are put into it at given times."""

    def __init__(self, **profile: Any) -> None:
        settings = {"rate_bps": 8_000_000, "burst_bytes": 0, "fq_codel": NoCoDel, **profile}
        self._begin(LinkProfile(**settings), 0)

    @classmethod
    def of(cls, profile: LinkProfile, rtt_ns: int = 0) -> FairPath:
        """Return the path of *profile*, with the random numbers of test_link_laws.py."""
        path = cls.__new__(cls)
        path._begin(profile, rtt_ns)
        return path

    def _begin(self, profile: LinkProfile, rtt_ns: int) -> None:
        def streams(purpose: str) -> random.Random:
            return substream(0, purpose)

        self.link = FairLink(profile, rtt_ns=rtt_ns, streams=streams)
        self.link.attach(self.at, 0)
        self._events: list[Any] = []
        self._order = itertools.count()
        self._number = itertools.count()

    def at(self, at_ns: int, rank: int, call: Any, value: Any) -> None:
        heappush(self._events, (at_ns, rank, next(self._order), call, value))

    def put(self, flow: Flow, at_ns: int, size_bytes: int, ecn: int = NOT_ECT) -> None:
        """Send a packet then, behind any departure of that instant."""
        packet = Packet(next(self._number), ecn)

        def send(value: Any, now_ns: int) -> None:
            del value
            self.link.send_packet(now_ns, packet, size_bytes, flow)

        self.at(at_ns, 1, send, None)

    def run(self, until_ns: int = 10**18) -> None:
        while self._events and self._events[0][0] <= until_ns:
            at_ns, _, _, call, value = heappop(self._events)
            call(value, at_ns)
