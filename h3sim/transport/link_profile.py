"""One direction of a path as a value: bottleneck, queue, loss and jitter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from h3sim.errors import NetworkError, Problem
from h3sim.units import NS_PER_MS, NS_PER_S, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.transport.jitter import Jitter, LinkJitter

__all__ = ["OPPORTUNITY_BYTES", "PACKET_BYTES", "CoDel", "LinkProfile"]

PACKET_BYTES = 1514
"""A full Ethernet frame without its checksum, as tc counts it; a queue must hold one."""
OPPORTUNITY_BYTES = 1500
"""What one line of a Mahimahi trace lets through."""

_BITS_PER_BYTE = 8
_MS_PER_S = 1000
_MAX_RATE_BPS = 10**13
_MAX_BYTES = 10**12
_MAX_BURST_BYTES = 10**9
_MAX_OVERHEAD_BYTES = 1000
_MAX_BDPS = 1e6
_QUEUES = ("queue_bytes", "queue_packets", "queue_bdp")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoDel:
    """CoDel's two parameters; the defaults are those of RFC 8289 § 5."""

    target_ns: int = 5 * NS_PER_MS
    interval_ns: int = 100 * NS_PER_MS

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it."""
        for name, value_ns in (("target_ms", self.target_ns), ("interval_ms", self.interval_ns)):
            if not 0 < value_ns <= 60 * NS_PER_S:
                message = f"must be more than 0, to 60000, is {to_ms(value_ns)}"
                yield Problem(key=f"codel.{name}", message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProfile:
    """What a packet meets, in this order: queue and bottleneck, loss, delay with jitter.

    The bottleneck passes *rate_bps* on average and *burst_bytes* at once (0: it serializes), or the
    opportunities of a *mahimahi* trace (milliseconds, 1500 bytes each), or everything at once.
    Each packet counts with *frame_overhead_bytes* added to its size. The queue before it holds
    *queue_bytes*, or *queue_packets*, or *queue_bdp* times rate times round-trip time, or all.
    Lost is a share *loss* of the packets that leave the bottleneck, in bursts of mean *loss_burst*
    if given; or those of *loss_list*, counted there from 0 (those with fewer bytes than
    *loss_list_from_bytes* are not counted: a recording may not know them). *jitter* draws an extra
    delay for each packet; *hold* holds every nth one for as long as k and a half packets of its
    size take.

    Raises:
        NetworkError: listing every value that is out of range.

    >>> LinkProfile(rate_bps=2_000_000, queue_bytes=1000, loss=1, queue_packets=0)
    Traceback (most recent call last):
    ...
    h3sim.errors.NetworkError: queue_packets: says the same as queue_bytes: give only one
    queue_bytes: must be 1514 (one packet) to 1e+12, is 1000
    queue_packets: must be 1 to 1e+12, is 0
    loss: must be at least 0 and less than 1 (0.02 is 2 %), is 1
    """

    rate_bps: int | None = None
    mahimahi: tuple[int, ...] | None = None
    burst_bytes: int = PACKET_BYTES
    queue_bytes: int | None = None
    queue_packets: int | None = None
    queue_bdp: float | None = None
    frame_overhead_bytes: int = 0
    codel: CoDel | None = None
    loss: float = 0.0
    loss_burst: float | None = None
    loss_list: tuple[int, ...] = ()
    loss_list_from_bytes: int = 0
    jitter: LinkJitter | None = None
    hold: Jitter | None = None

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise NetworkError(problems)

    @property
    def mean_rate_bps(self) -> Fraction | None:
        """What the bottleneck passes on average, exactly; None if there is none."""
        if self.rate_bps is not None:
            return Fraction(self.rate_bps)
        if self.mahimahi is None:
            return None
        bits = len(self.mahimahi) * OPPORTUNITY_BYTES * _BITS_PER_BYTE
        return Fraction(bits * _MS_PER_S, self.mahimahi[-1])

    def queue_limit_bytes(self, rtt_ns: int) -> int | None:
        """Return how many bytes the queue holds at this RTT; None if bytes set no limit.

        A BDP is rate * rtt / 8 in exact arithmetic, the product with *queue_bdp* rounded up.

        >>> LinkProfile(rate_bps=2_000_000, queue_bdp=1).queue_limit_bytes(100_000_000)
        25000
        """
        rate_bps = self.mean_rate_bps
        if self.queue_bdp is None or rate_bps is None:
            return self.queue_bytes
        # Through text, so that 0.1 is a tenth and not the nearest binary fraction.
        bits = Fraction(str(self.queue_bdp)) * rate_bps * Fraction(rtt_ns, NS_PER_S)
        return math.ceil(bits / _BITS_PER_BYTE)

    # What is wrong with it, under the keys of a network file

    def _problems(self) -> Iterator[Problem]:
        yield from self._rate_problems()
        yield from self._queue_problems()
        yield from self._loss_problems()
        if self.jitter is not None:
            yield from self.jitter.problems()
        if self.hold is None:
            return
        for problem in self.hold.problems():
            yield Problem(key=f"hold.{problem.key}", message=problem.message)
        if self.rate_bps is None:
            yield Problem(key="hold", message="needs rate_mbps: it counts in packets at that rate")
        if self.jitter is not None:
            yield Problem(key="hold", message="cannot be combined with jitter_ms: give only one")

    def _rate_problems(self) -> Iterator[Problem]:
        if self.rate_bps is not None and not 1 <= self.rate_bps <= _MAX_RATE_BPS:
            message = f"must be 1e-06 to 1e+07, is {to_mbps(self.rate_bps):g}"
            yield Problem(key="rate_mbps", message=message)
        yield from self._within("burst_bytes", 0, _MAX_BURST_BYTES)
        yield from self._within("frame_overhead_bytes", 0, _MAX_OVERHEAD_BYTES)
        if self.mahimahi is None:
            return
        if self.rate_bps is not None:
            message = "says the same as rate_mbps: give only one"
            yield Problem(key="mahimahi", message=message)
        message = _trace_mistake(self.mahimahi)
        if message:
            yield Problem(key="mahimahi", message=message)

    def _queue_problems(self) -> Iterator[Problem]:
        given = [name for name in _QUEUES if getattr(self, name) is not None]
        for name in given[1:]:
            yield Problem(key=name, message=f"says the same as {given[0]}: give only one")
        if self.codel is not None:
            yield from self.codel.problems()
            given.append("codel")
        if self.rate_bps is None and self.mahimahi is None:
            for name in given:
                message = "needs rate_mbps or mahimahi: without them nothing waits"
                yield Problem(key=name, message=message)
        yield from self._within("queue_bytes", PACKET_BYTES, _MAX_BYTES, " (one packet)")
        yield from self._within("queue_packets", 1, _MAX_BYTES)
        if self.queue_bdp is not None and not 0 < self.queue_bdp <= _MAX_BDPS:
            message = f"must be more than 0, to {_MAX_BDPS:g}, is {self.queue_bdp:g}"
            yield Problem(key="queue_bdp", message=message)

    def _loss_problems(self) -> Iterator[Problem]:
        if self.loss_list:
            if self.loss or self.loss_burst is not None:
                message = "says which packets are lost: give no loss or loss_burst beside it"
                yield Problem(key="loss_list", message=message)
            if min(self.loss_list) < 0:
                message = f"must not be negative, is {min(self.loss_list)}"
                yield Problem(key="loss_list", message=message)
        yield from self._within("loss_list_from_bytes", 0, _MAX_BYTES)
        if not 0 <= self.loss < 1:
            message = f"must be at least 0 and less than 1 (0.02 is 2 %), is {self.loss:g}"
            yield Problem(key="loss", message=message)
        elif self.loss_burst is not None:
            # Gilbert-Elliott: p = L / (B * (1 - L)) is a probability.
            least = max(1.0, self.loss / (1 - self.loss))
            if not (math.isfinite(self.loss_burst) and self.loss_burst >= least):
                reason = f" for a loss of {self.loss:g}" if least > 1 else ""
                message = f"must be at least {least:g}{reason}, is {self.loss_burst:g}"
                yield Problem(key="loss_burst", message=message)

    def _within(self, name: str, low: int, high: int, meaning: str = "") -> Iterator[Problem]:
        value = getattr(self, name)
        if value is not None and not low <= value <= high:
            yield Problem(key=name, message=f"must be {low}{meaning} to {high:g}, is {value}")


def _trace_mistake(opportunities_ms: tuple[int, ...]) -> str:
    """Return what is wrong with a Mahimahi trace, or nothing."""
    if not opportunities_ms:
        return "has no delivery opportunity"
    if opportunities_ms[0] < 0:
        return f"must not be negative, is {opportunities_ms[0]}"
    for before, after in pairwise(opportunities_ms):
        if after < before:
            return f"must not fall, but {after} comes after {before}"
    return "" if opportunities_ms[-1] else "must last longer than 0 ms"
