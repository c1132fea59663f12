"""The network as a value: delay, pace and jitter between a server and a client."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from h3sim.errors import NetworkError, Problem
from h3sim.trace import Delivery
from h3sim.units import NS_PER_S, to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Jitter", "Network", "Pacing", "Protocol"]

_MAX_PACKET_BYTES = 65_507
"""The payload of the largest UDP datagram over IPv4."""
_MAX_RTT_NS = 600 * NS_PER_S
_MIN_INTERVAL_NS = 1
_MAX_INTERVAL_NS = 60 * NS_PER_S
_BITS_PER_BYTE = 8


class Protocol(enum.Enum):
    """What carries HTTP."""

    QUIC = "quic"
    TCP = "tcp"

    @property
    def delivery(self) -> Delivery:
        """In what order bytes are handed over."""
        return Delivery.STREAM if self is Protocol.QUIC else Delivery.CONNECTION

    @property
    def handshake_rtts(self) -> int:
        """Round trips before the first request leaves: QUIC 1, TCP with TLS 1.3 2."""
        return 1 if self is Protocol.QUIC else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """A constant rate: one packet of up to *packet_bytes* at each multiple of *interval_ns*.

    The interval is a fraction, so that a rate that does not divide a second is kept exactly.

    >>> Pacing.at_rate(packet_bytes=1400, rate_bps=1_120_000).interval_ns
    Fraction(10000000, 1)
    """

    packet_bytes: int
    interval_ns: Fraction

    @classmethod
    def at_rate(cls, *, packet_bytes: int, rate_bps: int) -> Pacing:
        """Return the pacing whose packets of *packet_bytes* make up *rate_bps*.

        Raises:
            NetworkError: if the rate is not above 0.
        """
        if rate_bps <= 0:
            message = f"must be more than 0, is {to_mbps(rate_bps)} Mbit/s"
            raise NetworkError([Problem(key="rate_mbps", message=message)])
        bits = packet_bytes * _BITS_PER_BYTE
        return cls(packet_bytes=packet_bytes, interval_ns=Fraction(bits * NS_PER_S, rate_bps))

    @property
    def rate_bps(self) -> int:
        """The rate while there is something to send, to the nearest bit per second."""
        return round(self.packet_bytes * _BITS_PER_BYTE * NS_PER_S / self.interval_ns)

    def tick_at_ns(self, number: int) -> int:
        """Return when tick *number* falls, counted from 0 at navigation start; cut to whole ns."""
        return number * self.interval_ns.numerator // self.interval_ns.denominator

    def first_tick_from(self, now_ns: int) -> int:
        """Return the number of the first tick at or after *now_ns*."""
        return -(-now_ns * self.interval_ns.denominator // self.interval_ns.numerator)

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it."""
        if not 1 <= self.packet_bytes <= _MAX_PACKET_BYTES:
            message = f"must be 1 to {_MAX_PACKET_BYTES}, is {self.packet_bytes}"
            yield Problem(key="packet_bytes", message=message)
        if not _MIN_INTERVAL_NS <= self.interval_ns <= _MAX_INTERVAL_NS:
            message = "must be 1 ns to 60 s between packets"
            yield Problem(key="interval_ms", message=f"{message}, is {float(self.interval_ns)} ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """Every *every*-th data packet is held until *min_overtaken* to *max_overtaken* others left."""

    every: int
    min_overtaken: int
    max_overtaken: int

    @classmethod
    def parse(cls, text: str) -> Jitter | None:
        """Return the jitter that *text* says: EVERY:LOW-HIGH, EVERY:N, or none.

        Raises:
            NetworkError: if it says something else.

        >>> Jitter.parse("4:1-3")
        Jitter(every=4, min_overtaken=1, max_overtaken=3)
        """
        if text == "none":
            return None
        match = re.fullmatch(r"(\d{1,9}):(\d{1,9})(?:-(\d{1,9}))?", text)
        if match is None:
            message = f"must be 'none', or like '4:1-3' or '4:2', is {text!r}"
            raise NetworkError([Problem(key="jitter", message=message)])
        every, low, high = (int(group or match[2]) for group in match.groups())
        jitter = cls(every=every, min_overtaken=low, max_overtaken=high)
        problems = [
            Problem(key=f"jitter.{problem.key}", message=problem.message)
            for problem in jitter.problems()
        ]
        if problems:
            raise NetworkError(problems)
        return jitter

    def problems(self) -> Iterator[Problem]:
        """Yield what is wrong with it."""
        if self.every < 1:
            yield Problem(key="every", message=f"must be at least 1, is {self.every}")
        if self.min_overtaken < 0:
            message = f"must not be negative, is {self.min_overtaken}"
            yield Problem(key="min_overtaken", message=message)
        if self.max_overtaken < self.min_overtaken:
            message = f"must be at least min_overtaken ({self.min_overtaken})"
            yield Problem(key="max_overtaken", message=f"{message}, is {self.max_overtaken}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A path between a server and a client.

    Raises:
        NetworkError: listing every value that is out of range.

    >>> pacing = Pacing(packet_bytes=0, interval_ns=Fraction(10))
    >>> Network(name="x", rtt_ns=-5_000_000, pacing=pacing)
    Traceback (most recent call last):
    ...
    h3sim.errors.NetworkError: x: rtt_ms: must be 0 to 600000, is -5.0
    x: pacing.packet_bytes: must be 1 to 65507, is 0
    """

    name: str
    pacing: Pacing
    rtt_ns: int = 0
    jitter: Jitter | None = None
    title: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise NetworkError(problems, self.name)

    @property
    def one_way_ns(self) -> int:
        """The delay from server to client; upward the rest of the round trip is spent."""
        return self.rtt_ns // 2

    def _problems(self) -> Iterator[Problem]:
        if not 0 <= self.rtt_ns <= _MAX_RTT_NS:
            message = f"must be 0 to {to_ms(_MAX_RTT_NS):.0f}, is {to_ms(self.rtt_ns)}"
            yield Problem(key="rtt_ms", message=message)
        for problem in self.pacing.problems():
            yield Problem(key=f"pacing.{problem.key}", message=problem.message)
        if self.jitter is not None:
            for problem in self.jitter.problems():
                yield Problem(key=f"jitter.{problem.key}", message=problem.message)
