"""One direction of a path as a value: bottleneck, queue, loss, jitter and reordering."""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from h3sim.schema import format_value
from h3sim.schema.errors import ABSENT, RejectedValueError
from h3sim.schema.fields import Inline, Record, declare, keys_of, validate
from h3sim.schema.values import (
    Choice,
    Flag,
    Integer,
    ListOf,
    MegabitsPerSecond,
    Milliseconds,
    Number,
    ValueType,
)
from h3sim.values.errors import NetworkError, ValidationIssue
from h3sim.values.units import BITS_PER_BYTE, MS_PER_S, NS_PER_MS, NS_PER_S, to_ms

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator


_SMALLEST_DRAW = 2.0**-53
"""The resolution of `random.Random.random`; replaces a draw of exactly 0."""
_MAX_PACKET_COUNT = 10**9
"""More packets than any load has; `Jitter.parse` reads up to nine digits."""
_JITTER_PATTERN = (
    r"(?:(?P<every>[0-9]{1,9})|(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,30})?)%)"
    r":(?P<low>[0-9]{1,9})(?:-(?P<high>[0-9]{1,9}))?"
)
MIN_HELD_SHARE = 1e-9
"""The least share of packets to hold: no load has as many packets as would hold one then."""
_PACKET_COUNT = Integer(low=0, high=_MAX_PACKET_COUNT)
"""The type of `Jitter`'s bounds."""
_HALF: Any = None
"""A marker for half of the mean until the mean is known."""
_EXTRA_DELAY = Milliseconds(low=0, high=600_000, is_above=True)
"""The type of `LinkJitter`'s times."""


def _optional(kind: ValueType, about: str, stand_in: Any = ABSENT) -> Any:
    """Return a field that is None by default."""
    return field(default=None, metadata=declare(kind, about, stand_in=stand_in))


def percent_text(share: float) -> str:
    """Return a share as a percentage that is read back as the same share.

    >>> percent_text(0.25), percent_text(0.007)
    ('25%', '0.7%')
    """
    # Through its shortest decimal form: in binary, 100 * 0.007 is not 0.7.
    return f"{(100 * Decimal(repr(share))).normalize():f}%"


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """Reordering: some data packets are held until others have overtaken them.

    These are every *every*-th packet, or each with the probability *share*.

    Raises:
        NetworkError: listing every value that is out of range.
    """

    every: int | None = _optional(
        Integer(low=1, high=_MAX_PACKET_COUNT), "hold every n-th packet", stand_in=1
    )
    share: float | None = _optional(
        Number(low=MIN_HELD_SHARE, high=1, example="0.25 is 25 %"),
        "in place of `every`: hold each packet with this probability",
        stand_in=1.0,
    )
    min_overtaken: int = field(metadata=declare(_PACKET_COUNT, "minimum number that overtake it"))
    max_overtaken: int = field(metadata=declare(_PACKET_COUNT, "the maximum"))

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if self.every is None and self.share is None:
            yield ValidationIssue(key="every", message="is missing: give every or share")
        if self.every is not None and self.share is not None:
            message = "cannot be combined with every: give only one"
            yield ValidationIssue(key="share", message=message)
        if self.max_overtaken < self.min_overtaken:
            message = f"must be at least min_overtaken ({self.min_overtaken})"
            yield ValidationIssue(
                key="max_overtaken", message=f"{message}, is {self.max_overtaken}"
            )

    @classmethod
    def parse(cls, text: str) -> Jitter | None:
        """Return the jitter in *text*: EVERY:LOW-HIGH, SHARE%:LOW-HIGH, either with N, or none.

        Raises:
            NetworkError: if *text* has another form.

        >>> Jitter.parse("4:1-3")
        Jitter(every=4, share=None, min_overtaken=1, max_overtaken=3)
        >>> Jitter.parse("25%:2")
        Jitter(every=None, share=0.25, min_overtaken=2, max_overtaken=2)
        """
        if text == "none":
            return None
        match = re.fullmatch(_JITTER_PATTERN, str(text))
        if match is None:
            message = (
                f"must be 'none', or like '4:1-3', '4:2' or '25%:1-3', is {format_value(text)}"
            )
            raise NetworkError.at("jitter", message)
        # Only the last group may be missing: "4:2" is short for "4:2-2".
        low, high = int(match["low"]), int(match["high"] or match["low"])
        try:
            if match["percent"] is not None:
                share = float(Decimal(match["percent"]) / 100)
                return cls(share=share, min_overtaken=low, max_overtaken=high)
            return cls(every=int(match["every"]), min_overtaken=low, max_overtaken=high)
        except NetworkError as error:
            raise NetworkError(RejectedValueError(error.problems).under("jitter")) from error

    @property
    def is_random(self) -> bool:
        """True if another seed holds other packets, or holds them for another time."""
        return self.every is None or self.min_overtaken < self.max_overtaken

    @property
    def text(self) -> str:
        """The text form, as `parse` reads it."""
        low, high = self.min_overtaken, self.max_overtaken
        which = str(self.every)
        if self.share is not None:
            which = percent_text(self.share)
        return f"{which}:{low}" if low == high else f"{which}:{low}-{high}"


class PacketHold:
    """The delay of data packets that others shall overtake, as in Marx 2019 § 5.2.

    A packet that k others shall overtake is held for k and a half send intervals: it arrives
    between the k-th packet behind it and the next. So it arrives even if nothing else is sent, as
    in the original, whose timer ran for 20 to 25 ms at an interval of 10 ms.

    >>> import random
    >>> jitter = Jitter(every=4, min_overtaken=2, max_overtaken=2)
    >>> hold = PacketHold(jitter, interval_ns=10, source=random.Random(0))
    >>> [hold.next_hold_ns() for _ in range(8)]
    [0, 0, 0, 25, 0, 0, 0, 25]
    """

    def __init__(self, jitter: Jitter, *, source: random.Random, interval_ns: int = 0) -> None:
        self._jitter = jitter
        self._interval_ns = interval_ns
        self._source = source
        self._sent = 0

    def next_hold_ns(self) -> int:
        """Return how long the packet that is sent now is held."""
        return self.next_hold_of_ns(self._interval_ns)

    def next_hold_of_ns(self, interval_ns: int) -> int:
        """Return the same for a given *interval_ns* between packets of this size."""
        if not self._is_next_held():
            return 0
        overtaken = self._source.randint(self._jitter.min_overtaken, self._jitter.max_overtaken)
        # The half falls between two packets, so that no two arrive at the same instant.
        return overtaken * interval_ns + interval_ns // 2 if overtaken else 0

    def _is_next_held(self) -> bool:
        """Return whether the packet that is sent now is one to hold."""
        if self._jitter.share is not None:
            return self._source.random() < self._jitter.share
        self._sent += 1
        assert self._jitter.every is not None  # noqa: S101 - `Jitter.issues`
        return self._sent % self._jitter.every == 0


class Distribution(enum.Enum):
    """Distribution of the extra delay of packets."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkJitter:
    """Random extra delay of each packet, drawn from *distribution*.

    UNIFORM lies within *deviation_ns* of *mean_ns* (as in netem); NORMAL and PARETO use it as
    standard deviation. NORMAL is truncated at 0, which raises its mean if the deviation is large.
    Without *reorder* a packet waits for those before it, as in a queue. *steps* are pairs of a
    duration in ms and the factor by which delays are multiplied then; they repeat.
    """

    mean_ns: int = field(metadata=declare(_EXTRA_DELAY, "the mean extra delay", key="jitter_ms"))
    deviation_ns: int = field(
        default=_HALF,
        metadata=declare(_EXTRA_DELAY, "half of the mean by default", key="jitter_deviation_ms"),
    )
    distribution: Distribution = field(
        default=Distribution.UNIFORM,
        metadata=declare(Choice(Distribution), "its distribution", key="jitter_distribution"),
    )
    reorder: bool = field(
        default=False, metadata=declare(Flag(), "whether packets may overtake one another")
    )
    steps: tuple[tuple[float, ...], ...] = field(
        default=(),
        metadata=declare(
            ListOf(ListOf(Number(low=0, high=1e5), "numbers"), "pairs of ms and a factor"),
            "how the extra delay changes: pairs of a duration in ms and a factor; they repeat",
            key="jitter_steps",
        ),
    )

    def __post_init__(self) -> None:
        if self.deviation_ns is _HALF and isinstance(self.mean_ns, int):
            object.__setattr__(self, "deviation_ns", self.mean_ns // 2)
        validate(self, NetworkError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        for step in self.steps:
            if len(step) != 2 or step[0] < 1:
                message = f"needs pairs of at least 1 ms and a factor, has {format_value(step)}"
                yield ValidationIssue(key="jitter_steps", message=message)
        if self.deviation_ns is _HALF or self.distribution is not Distribution.UNIFORM:
            return
        if self.deviation_ns > self.mean_ns:
            message = f"must not exceed jitter_ms ({to_ms(self.mean_ns)}): no delay is negative"
            message = f"{message}, is {to_ms(self.deviation_ns)}"
            yield ValidationIssue(key="jitter_deviation_ms", message=message)


def make_draw(jitter: LinkJitter, source: random.Random) -> Callable[[], int]:
    """Return a function that draws the extra delay of one packet after the other, in nanoseconds.

    Each call draws exactly one number of *source*: the inverse of the distribution function is
    applied to it, where rejection sampling would draw an unknown number of them.

    >>> import random
    >>> draw = make_draw(LinkJitter(mean_ns=1000, deviation_ns=100), random.Random(0))
    >>> [draw() for _ in range(4)]
    [1069, 1052, 984, 952]
    """
    uniform, mean, deviation = source.random, jitter.mean_ns, jitter.deviation_ns
    if jitter.distribution is Distribution.UNIFORM:
        return lambda: round(mean + deviation * (2 * uniform() - 1))
    if jitter.distribution is Distribution.NORMAL:
        from statistics import NormalDist  # on use: importing h3sim should stay quick

        inverse = NormalDist(mean, deviation).inv_cdf
        return lambda: max(0, round(inverse(uniform() or _SMALLEST_DRAW)))
    # Pareto (type I) with scale x and shape a: its mean is a * x / (a - 1), and the square of mean
    # over deviation a * (a - 2).
    shape = 1 + (1 + (mean / deviation) ** 2) ** 0.5
    scale, exponent = mean * (shape - 1) / shape, -1 / shape
    return lambda: round(scale * (1 - uniform()) ** exponent)


def factor_at(steps: tuple[tuple[float, ...], ...], at_ns: int) -> float:
    """Return the factor of the step in which a time lies.

    >>> [factor_at(((1000, 1), (2000, 12)), at_s * 10**9) for at_s in (0, 1, 2, 3)]
    [1, 12, 12, 1]
    """
    left_ns = at_ns % max(1, round(sum(duration_ms for duration_ms, _ in steps) * NS_PER_MS))
    for duration_ms, factor in steps:
        left_ns -= round(duration_ms * NS_PER_MS)
        if left_ns < 0:
            return factor
    return 1.0


PACKET_BYTES = 1514
"""A full Ethernet frame without its checksum, as tc counts it; a queue must hold one."""
OPPORTUNITY_BYTES = 1500
"""The bytes per delivery opportunity (line) of a Mahimahi trace."""

_MAX_QUEUE = 10**12  # bytes or packets: more than any load has
_CODEL_DELAY = Milliseconds(low=0, high=60_000, is_above=True)
"""The type of CoDel's times."""
_QUEUE_LIMITS = ("queue_bytes", "queue_packets", "queue_bdp")
"""Fields of a `LinkProfile` that exclude one another."""
_QUEUE_DISCIPLINES = ("codel", "fq_codel")
"""Fields of a `LinkProfile` that exclude one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoDel:
    """CoDel's two parameters; the defaults are those of RFC 8289 § 5."""

    target_ns: int = field(
        default=5 * NS_PER_MS, metadata=declare(_CODEL_DELAY, "acceptable standing delay")
    )
    interval_ns: int = field(
        default=100 * NS_PER_MS, metadata=declare(_CODEL_DELAY, "time for which it may be exceeded")
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)


class QueueDiscipline(enum.Enum):
    """The discipline of the queue before a bottleneck."""

    DROP_TAIL = "drop-tail"
    CODEL = "codel"
    FQ_CODEL = "fq-codel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCoDel(CoDel):
    """FQ-CoDel's parameters; the defaults are those of RFC 8290 § 5.2."""

    quantum_bytes: int = field(
        default=PACKET_BYTES,
        metadata=declare(Integer(low=1, high=10**9), "bytes per flow and round"),
    )


class _CoDelTable(Record):
    """A table, true for the defaults, or false for none."""

    def __init__(self, kind: type[CoDel]) -> None:
        super().__init__(kind)
        self._codel = kind

    def read(self, raw: Any) -> CoDel | None:
        if isinstance(raw, bool):
            return self._codel() if raw else None
        if not isinstance(raw, dict):
            *keys, last = keys_of(self._codel)
            raise RejectedValueError(
                f"must be true, false, or a table with {', '.join(keys)} and {last}, "
                f"is {format_value(raw)}"
            )
        codel: CoDel = super().read(raw)
        return codel

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "boolean"}, super().schema()]}


class _JitterKeys(Inline):
    """Jitter options, of which jitter_ms is required."""

    def read(self, raw: dict[str, Any]) -> LinkJitter:
        if "jitter_ms" not in raw:
            message = "says something about jitter_ms, which is missing"
            raise RejectedValueError([ValidationIssue(key=key, message=message) for key in raw])
        jitter: LinkJitter = super().read(raw)
        return jitter


class _Hold(ValueType):
    """A `Jitter`, written as "4:1-3"."""

    def accept(self, value: Any) -> Jitter:
        if isinstance(value, Jitter):
            return value
        raise RejectedValueError(f"must be a Jitter, is {format_value(value)}")

    def read(self, raw: Any) -> Jitter | None:
        try:
            return Jitter.parse(raw)
        except NetworkError as error:
            raise RejectedValueError(
                ValidationIssue(
                    key=problem.key.removeprefix("jitter").lstrip("."), message=problem.message
                )
                for problem in error.problems
            ) from error

    def write(self, value: Any) -> str:
        text: str = value.text
        return text

    def schema(self) -> dict[str, Any]:
        pattern = "^(none|([0-9]+|[0-9]+(\\.[0-9]+)?%):[0-9]+(-[0-9]+)?)$"
        return {"type": "string", "pattern": pattern}


def trace_of_spans(spans: Iterable[tuple[int, float]]) -> tuple[int, ...]:
    """Return the opportunities of a rate that changes: pairs of milliseconds and Mbit/s.

    >>> trace_of_spans([(2, 12), (3, 0), (2, 24)])
    (1, 2, 6, 6, 7, 7)
    """
    opportunities_ms: list[int] = []
    at_ms, credit = 0, Fraction(0)
    for duration_ms, rate_mbps in spans:
        bits_per_ms = Fraction(str(rate_mbps)) * 1000
        for _ in range(duration_ms):
            at_ms += 1
            credit += bits_per_ms / (OPPORTUNITY_BYTES * BITS_PER_BYTE)
            n_whole = int(credit)
            credit -= n_whole
            opportunities_ms += [at_ms] * n_whole
    return tuple(opportunities_ms)


_MAX_SPANS_MS = 600_000
"""The longest trace that is given as spans."""


class _Trace(ListOf):
    """A non-decreasing list of milliseconds, or pairs of a duration in ms and a rate in Mbit/s.

    A file's path is replaced by its list before reading.
    """

    _span = ListOf(Number(low=0, high=1e5), "a duration in ms and a rate in Mbit/s")

    def __init__(self) -> None:
        super().__init__(Integer(low=0), "milliseconds")

    def read(self, raw: Any) -> tuple[int, ...]:
        if isinstance(raw, RejectedValueError):  # the file could not be read
            raise raw
        if not isinstance(raw, list):
            raise RejectedValueError(
                f"must be a path, or a list of milliseconds, is {format_value(raw)}"
            )
        if raw and isinstance(raw[0], list):
            return self._read_spans(raw)
        return super().read(raw)

    def _read_spans(self, raw: list[Any]) -> tuple[int, ...]:
        """Return the trace of a rate that changes."""
        try:
            spans = ListOf(self._span, "pairs of milliseconds and Mbit/s").read(raw)
        except RejectedValueError as refused:
            raise RejectedValueError(refused.problems, (1,)) from refused
        for span in spans:
            if len(span) != 2 or span[0] != int(span[0]) or span[0] < 1:
                message = "needs whole milliseconds and Mbit/s in each pair"
                raise RejectedValueError(f"{message}, has {format_value(list(span))}", (1,))
        if sum(span[0] for span in spans) > _MAX_SPANS_MS or not spans[-1][1]:
            message = f"must end with a rate above 0, and last {_MAX_SPANS_MS:,} ms at most"
            raise RejectedValueError(message, (1,))
        return trace_of_spans((int(duration_ms), rate) for duration_ms, rate in spans)

    def schema(self) -> dict[str, Any]:
        span = {
            "type": "array",
            "items": {"type": "number", "minimum": 0},
            "minItems": 2,
            "maxItems": 2,
        }
        spans = {"type": "array", "items": span}
        return {"anyOf": [{"type": "string"}, super().schema(), spans]}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkProfile:
    """One direction of a path: queue and bottleneck, loss, then delay with jitter.

    The bottleneck passes *rate_bps* on average and *burst_bytes* at once (0: it serializes), or the
    opportunities of a *mahimahi* trace (milliseconds, 1500 bytes each), or everything at once.
    *frame_overhead_bytes* is added to the size of each packet. The queue before it holds
    *queue_bytes*, or *queue_packets*, or *queue_bdp* times rate times round-trip time, or has no
    limit; *codel* or *fq_codel* drop from it, or with *ecn* mark. A share *loss* of the packets
    that leave the bottleneck is lost, in bursts of mean *loss_burst* if set; or exactly those of
    *loss_list*, counted there from 0 (packets with fewer bytes than *loss_list_from_bytes* are not
    counted, since a recording may not include them). *jitter* draws an extra delay for each packet;
    *hold* delays every n-th one, or a share, by the time of k and a half packets of its size.

    Raises:
        NetworkError: listing every value that is out of range.

    >>> LinkProfile(rate_bps=2_000_000, queue_bytes=1000, loss=1, queue_packets=0)
    Traceback (most recent call last):
    ...
    h3sim.values.errors.NetworkError: queue_bytes: must be 1,514 to 1e+12 (at least one packet), \
is 1000
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
        "in place of rate_mbps: a trace, as milliseconds, as the path of a file, or as pairs of"
        " a duration in ms and a rate in Mbit/s",
        stand_in=(1,),
    )
    burst_bytes: int = field(
        default=PACKET_BYTES,
        metadata=declare(Integer(low=0, high=10**9), "size of the token bucket; 0 serializes"),
    )
    queue_bytes: int | None = _optional(
        Integer(low=PACKET_BYTES, high=_MAX_QUEUE, hint="at least one packet"),
        "limit of the queue before the bottleneck, with the packet in service",
    )
    queue_packets: int | None = _optional(Integer(low=1, high=_MAX_QUEUE), "the same in packets")
    queue_bdp: float | None = _optional(
        Number(low=0, high=1e6, is_above=True), "the same in products of rate and RTT"
    )
    frame_overhead_bytes: int = field(
        default=0, metadata=declare(Integer(low=0, high=1000), "added to each packet's size")
    )
    codel: CoDel | None = field(
        default=None, metadata=declare(_CoDelTable(CoDel), "active queue management (RFC 8289)")
    )
    fq_codel: FqCoDel | None = field(
        default=None,
        metadata=declare(_CoDelTable(FqCoDel), "a queue with CoDel per flow (RFC 8290)"),
    )
    ecn: bool = field(
        default=False,
        metadata=declare(Flag(), "whether CoDel marks packets that are ECN-capable"),
    )
    loss: float = field(
        default=0.0,
        metadata=declare(
            Number(low=0, high=1, is_below=True, example="0.02 is 2 %"),
            "the share of packets lost behind the bottleneck",
        ),
    )
    loss_burst: float | None = _optional(
        Number(low=1, high=1e6), "mean number lost in a row (Gilbert-Elliott); else independent"
    )
    loss_list: tuple[int, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Integer(low=0), "whole numbers"),
            "in place of loss: numbers of the lost packets, from 0, as they leave the bottleneck",
        ),
    )
    loss_list_from_bytes: int = field(
        default=0, metadata=declare(Integer(low=0, high=_MAX_QUEUE), "smaller ones are not counted")
    )
    jitter: LinkJitter | None = field(
        default=None, metadata=declare(_JitterKeys(LinkJitter), "an extra delay")
    )
    hold: Jitter | None = field(
        default=None,
        metadata=declare(
            _Hold(),
            "in place of jitter_ms: as `[jitter]`, at `rate_mbps`: `4:1-3` or `25%:1-3`",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, NetworkError)

    @property
    def mean_rate_bps(self) -> Fraction | None:
        """The mean rate of the bottleneck, exact; None without a bottleneck."""
        if self.rate_bps is not None:
            return Fraction(self.rate_bps)
        if self.mahimahi is None:
            return None
        bits = len(self.mahimahi) * OPPORTUNITY_BYTES * BITS_PER_BYTE
        return Fraction(bits * MS_PER_S, self.mahimahi[-1])

    @property
    def is_random(self) -> bool:
        """True if another seed loses, delays or holds other packets."""
        holds_at_random = self.hold is not None and self.hold.is_random
        return self.loss > 0 or self.jitter is not None or holds_at_random

    @property
    def queue_discipline(self) -> QueueDiscipline:
        """The discipline of the queue."""
        if self.fq_codel is not None:
            return QueueDiscipline.FQ_CODEL
        return QueueDiscipline.DROP_TAIL if self.codel is None else QueueDiscipline.CODEL

    def with_discipline(self, discipline: QueueDiscipline) -> LinkProfile:
        """Return the link with that queue discipline, with its own parameters if it has them.

        >>> link = LinkProfile(rate_bps=2_000_000, codel=CoDel(target_ns=1), ecn=True)
        >>> link.with_discipline(QueueDiscipline.FQ_CODEL).fq_codel.target_ns
        1
        >>> link.with_discipline(QueueDiscipline.DROP_TAIL).ecn
        False
        """
        current = self.fq_codel or self.codel or CoDel()
        times = {"target_ns": current.target_ns, "interval_ns": current.interval_ns}
        if discipline is QueueDiscipline.CODEL:
            return replace(self, codel=CoDel(**times), fq_codel=None)
        if discipline is QueueDiscipline.FQ_CODEL:
            return replace(self, codel=None, fq_codel=self.fq_codel or FqCoDel(**times))
        return replace(self, codel=None, fq_codel=None, ecn=False)

    def queue_limit_bytes(self, rtt_ns: int) -> int | None:
        """Return the size of the queue in bytes at this RTT; None if bytes are not limited.

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

    # Checks of values against one another, under the keys of a network file

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield inconsistencies between its values."""
        if self.mahimahi is not None:
            if self.rate_bps is not None:
                message = "says the same as rate_mbps: give only one"
                yield ValidationIssue(key="mahimahi", message=message)
            message = _trace_error(self.mahimahi)
            if message:
                yield ValidationIssue(key="mahimahi", message=message)
        yield from self._queue_issues()
        yield from self._loss_issues()
        if self.hold is None:
            return
        if self.rate_bps is None:
            yield ValidationIssue(
                key="hold", message="needs rate_mbps: it counts in packets at that rate"
            )
        if self.jitter is not None:
            yield ValidationIssue(
                key="hold", message="cannot be combined with jitter_ms: give only one"
            )

    def _queue_issues(self) -> Iterator[ValidationIssue]:
        """Yield contradictions between the settings of the queue."""
        limits = [name for name in _QUEUE_LIMITS if getattr(self, name) is not None]
        for name in limits[1:]:
            yield ValidationIssue(key=name, message=f"says the same as {limits[0]}: give only one")
        disciplines = [name for name in _QUEUE_DISCIPLINES if getattr(self, name) is not None]
        for name in disciplines[1:]:
            yield ValidationIssue(
                key=name, message=f"cannot be combined with {disciplines[0]}: give only one"
            )
        if self.ecn and not disciplines:
            message = "needs codel or fq_codel: a drop-tail queue marks nothing"
            yield ValidationIssue(key="ecn", message=message)
        if self.rate_bps is None and self.mahimahi is None:
            for name in limits + disciplines:
                message = "needs rate_mbps or mahimahi: without them nothing waits"
                yield ValidationIssue(key=name, message=message)

    def _loss_issues(self) -> Iterator[ValidationIssue]:
        """Yield contradictions between the settings of losses."""
        if self.loss_list and (self.loss or self.loss_burst is not None):
            message = "says which packets are lost: give no loss or loss_burst beside it"
            yield ValidationIssue(key="loss_list", message=message)
        if self.loss_burst is not None:
            # Gilbert-Elliott: p = L / (B * (1 - L)) is a probability. Through text, so that 0.9 is
            # nine tenths and not the nearest binary fraction.
            loss = Fraction(str(self.loss))
            min_burst = loss / (1 - loss)
            if Fraction(str(self.loss_burst)) < min_burst:
                message = f"must be at least {float(min_burst):g} for a loss of {self.loss:g}"
                yield ValidationIssue(
                    key="loss_burst", message=f"{message}, is {self.loss_burst:g}"
                )


def _trace_error(opportunities_ms: tuple[int, ...]) -> str:
    """Return an error message for an invalid Mahimahi trace, or ""."""
    if not opportunities_ms:
        return "has no delivery opportunity"
    if opportunities_ms[0] < 0:
        return f"must not be negative, is {opportunities_ms[0]}"
    for before, after in pairwise(opportunities_ms):
        if after < before:
            return f"must not fall, but {after} comes after {before}"
    return "" if opportunities_ms[-1] else "must last longer than 0 ms"
