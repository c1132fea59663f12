"""One direction of a path as a value: bottleneck, queue, loss and jitter."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from h3sim.documents import shown
from h3sim.documents.declared import keys_of, says, settle
from h3sim.documents.nested import Inline, Table
from h3sim.documents.refused import ABSENT, RefusedError
from h3sim.documents.values import ListOf, MegabitsPerSecond, Milliseconds, Number, ValueType, Whole
from h3sim.errors import NetworkError, Problem
from h3sim.transport.jitter import Jitter, LinkJitter
from h3sim.units import BITS_PER_BYTE, MS_PER_S, NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OPPORTUNITY_BYTES", "PACKET_BYTES", "CoDel", "LinkProfile"]

PACKET_BYTES = 1514
"""A full Ethernet frame without its checksum, as tc counts it; a queue must hold one."""
OPPORTUNITY_BYTES = 1500
"""What one line of a Mahimahi trace lets through."""

_MAX_BYTES = 10**12
_CODEL_TIME = Milliseconds(low=0, high=60_000, is_above=True)
_QUEUES = ("queue_bytes", "queue_packets", "queue_bdp")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoDel:
    """CoDel's two parameters; the defaults are those of RFC 8289 § 5."""

    target_ns: int = field(
        default=5 * NS_PER_MS, metadata=says(_CODEL_TIME, "the delay that may stand")
    )
    interval_ns: int = field(
        default=100 * NS_PER_MS, metadata=says(_CODEL_TIME, "for how long it may be exceeded")
    )

    def __post_init__(self) -> None:
        settle(self, NetworkError)


class _CoDelTable(Table):
    """A table, or true for its defaults, or false for none."""

    def read(self, given: Any) -> CoDel | None:
        if isinstance(given, bool):
            return CoDel() if given else None
        if not isinstance(given, dict):
            keys = " and ".join(keys_of(CoDel))
            raise RefusedError(f"must be true, false, or a table with {keys}, is {shown(given)}")
        codel: CoDel = super().read(given)
        return codel

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, super().schema()]}


class _JitterKeys(Inline):
    """What is said of jitter without saying how much it is says nothing."""

    def read(self, given: dict[str, Any]) -> LinkJitter:
        if "jitter_ms" not in given:
            message = "says something about jitter_ms, which is missing"
            raise RefusedError([Problem(key=key, message=message) for key in given])
        jitter: LinkJitter = super().read(given)
        return jitter


class _Hold(ValueType):
    """A `Jitter`, written as "4:1-3"."""

    def accept(self, value: Any) -> Jitter:
        if isinstance(value, Jitter):
            return value
        raise RefusedError(f"must be a Jitter, is {shown(value)}")

    def read(self, given: Any) -> Jitter | None:
        try:
            return Jitter.parse(given)
        except NetworkError as error:
            raise RefusedError(
                Problem(key=problem.key.removeprefix("jitter").lstrip("."), message=problem.message)
                for problem in error.problems
            ) from error

    def write(self, value: Any) -> str:
        text: str = value.text
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^(none|[0-9]+:[0-9]+(-[0-9]+)?)$"}


class _Trace(ListOf):
    """Milliseconds that do not fall. The path of a file is replaced by them before it is read."""

    def __init__(self) -> None:
        super().__init__(Whole(low=0), "milliseconds")

    def read(self, given: Any) -> tuple[int, ...]:
        if isinstance(given, RefusedError):  # the file could not be read
            raise given
        if not isinstance(given, list):
            raise RefusedError(f"must be a path, or a list of milliseconds, is {shown(given)}")
        return super().read(given)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, super().schema()]}


def _optional(kind: ValueType, about: str, stand_in: Any = ABSENT) -> Any:
    return field(default=None, metadata=says(kind, about, stand_in=stand_in))


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
    h3sim.errors.NetworkError: queue_bytes: must be 1,514 to 1e+12 (at least one packet), is 1000
    queue_packets: must be 1 to 1e+12, is 0
    loss: must be at least 0 and less than 1 (0.02 is 2 %), is 1
    """

    rate_bps: int | None = _optional(
        MegabitsPerSecond(low=1e-6, high=1e7),
        "what the bottleneck passes, in Mbit/s on the wire",
        stand_in=1_000_000,  # a wrong rate is still a rate: what needs one has it
    )
    mahimahi: tuple[int, ...] | None = _optional(
        _Trace(),
        "in place of rate_mbps: a trace, as milliseconds or as the path of a file",
        stand_in=(1,),
    )
    burst_bytes: int = field(
        default=PACKET_BYTES, metadata=says(Whole(low=0, high=10**9), "what it passes at once")
    )
    queue_bytes: int | None = _optional(
        Whole(low=PACKET_BYTES, high=_MAX_BYTES, hint="at least one packet"), "the queue before it"
    )
    queue_packets: int | None = _optional(Whole(low=1, high=_MAX_BYTES), "the same in packets")
    queue_bdp: float | None = _optional(
        Number(low=0, high=1e6, is_above=True), "the same in products of rate and RTT"
    )
    frame_overhead_bytes: int = field(
        default=0, metadata=says(Whole(low=0, high=1000), "added to each packet's size")
    )
    codel: CoDel | None = field(
        default=None, metadata=says(_CoDelTable(CoDel), "active queue management (RFC 8289)")
    )
    loss: float = field(
        default=0.0,
        metadata=says(
            Number(low=0, high=1, is_below=True, example="0.02 is 2 %"), "the share that is lost"
        ),
    )
    loss_burst: float | None = _optional(Number(low=1, high=1e6), "how many in a row, on average")
    loss_list: tuple[int, ...] = field(
        default=(), metadata=says(ListOf(Whole(low=0), "whole numbers"), "which packets are lost")
    )
    loss_list_from_bytes: int = field(
        default=0, metadata=says(Whole(low=0, high=_MAX_BYTES), "smaller ones are not counted")
    )
    jitter: LinkJitter | None = field(
        default=None, metadata=says(_JitterKeys(LinkJitter), "an extra delay")
    )
    hold: Jitter | None = field(
        default=None, metadata=says(_Hold(), "every n-th packet is overtaken, as `4:1-3`")
    )

    def __post_init__(self) -> None:
        settle(self, NetworkError)

    @property
    def mean_rate_bps(self) -> Fraction | None:
        """What the bottleneck passes on average, exactly; None if there is none."""
        if self.rate_bps is not None:
            return Fraction(self.rate_bps)
        if self.mahimahi is None:
            return None
        bits = len(self.mahimahi) * OPPORTUNITY_BYTES * BITS_PER_BYTE
        return Fraction(bits * MS_PER_S, self.mahimahi[-1])

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
        return math.ceil(bits / BITS_PER_BYTE)

    # What is wrong between its values, under the keys of a network file

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if self.mahimahi is not None:
            if self.rate_bps is not None:
                message = "says the same as rate_mbps: give only one"
                yield Problem(key="mahimahi", message=message)
            message = _trace_mistake(self.mahimahi)
            if message:
                yield Problem(key="mahimahi", message=message)
        yield from self._queue_problems()
        yield from self._loss_problems()
        if self.hold is None:
            return
        if self.rate_bps is None:
            yield Problem(key="hold", message="needs rate_mbps: it counts in packets at that rate")
        if self.jitter is not None:
            yield Problem(key="hold", message="cannot be combined with jitter_ms: give only one")

    def _queue_problems(self) -> Iterator[Problem]:
        given = [name for name in _QUEUES if getattr(self, name) is not None]
        for name in given[1:]:
            yield Problem(key=name, message=f"says the same as {given[0]}: give only one")
        if self.codel is not None:
            given.append("codel")
        if self.rate_bps is None and self.mahimahi is None:
            for name in given:
                message = "needs rate_mbps or mahimahi: without them nothing waits"
                yield Problem(key=name, message=message)

    def _loss_problems(self) -> Iterator[Problem]:
        if self.loss_list and (self.loss or self.loss_burst is not None):
            message = "says which packets are lost: give no loss or loss_burst beside it"
            yield Problem(key="loss_list", message=message)
        if self.loss_burst is not None and self.loss < 1:
            # Gilbert-Elliott: p = L / (B * (1 - L)) is a probability.
            least = self.loss / (1 - self.loss)
            if self.loss_burst < least:
                message = f"must be at least {least:g} for a loss of {self.loss:g}"
                yield Problem(key="loss_burst", message=f"{message}, is {self.loss_burst:g}")


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
