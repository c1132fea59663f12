"""Jitter: how much longer than the path's delay a packet takes, and who may overtake whom."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.documents import shown
from h3sim.documents.declared import says, settle
from h3sim.documents.refused import RefusedError
from h3sim.documents.values import Choice, Flag, Milliseconds, Whole
from h3sim.errors import NetworkError, Problem
from h3sim.units import to_ms

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

__all__ = ["Distribution", "HoldEveryNth", "Jitter", "LinkJitter", "make_draw"]

_SMALLEST_DRAW = 2.0**-53
"""The step of `random.Random.random`; stands in for a draw of exactly 0."""
_MAX_COUNT = 10**9
_COUNT = Whole(low=0, high=_MAX_COUNT)
_HALF: Any = None
"""Stands for half of the mean until that is known."""
_TIME = Milliseconds(low=0, high=600_000, is_above=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jitter:
    """Every *every*-th data packet is held until *min_overtaken* to *max_overtaken* others left.

    Raises:
        NetworkError: listing every value that is out of range.
    """

    every: int = field(metadata=says(Whole(low=1, high=_MAX_COUNT), "one packet of so many"))
    min_overtaken: int = field(metadata=says(_COUNT, "the least that overtake it"))
    max_overtaken: int = field(metadata=says(_COUNT, "the most"))

    def __post_init__(self) -> None:
        settle(self, NetworkError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if self.max_overtaken < self.min_overtaken:
            message = f"must be at least min_overtaken ({self.min_overtaken})"
            yield Problem(key="max_overtaken", message=f"{message}, is {self.max_overtaken}")

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
        match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})(?:-([0-9]{1,9}))?", str(text))
        if match is None:
            message = f"must be 'none', or like '4:1-3' or '4:2', is {shown(text)}"
            raise NetworkError([Problem(key="jitter", message=message)])
        every, low, high = (int(group or match[2]) for group in match.groups())
        try:
            return cls(every=every, min_overtaken=low, max_overtaken=high)
        except NetworkError as error:
            raise NetworkError(RefusedError(error.problems).under("jitter")) from error

    @property
    def text(self) -> str:
        """What `parse` reads."""
        low, high = self.min_overtaken, self.max_overtaken
        return f"{self.every}:{low}" if low == high else f"{self.every}:{low}-{high}"


class HoldEveryNth:
    """Says for how long each data packet is held, as Marx 2019 § 5.2 did it.

    A packet that k others shall overtake is held for k and a half send intervals: it arrives
    between the k-th packet behind it and the next. So it arrives even if nothing is sent any more,
    as in the original, whose timer ran for 20 to 25 ms at an interval of 10 ms.

    >>> import random
    >>> jitter = Jitter(every=4, min_overtaken=2, max_overtaken=2)
    >>> hold = HoldEveryNth(jitter, interval_ns=10, source=random.Random(0))
    >>> [hold.next_hold_ns() for _ in range(8)]
    [0, 0, 0, 25, 0, 0, 0, 25]
    """

    def __init__(self, jitter: Jitter, *, source: random.Random, interval_ns: int = 0) -> None:
        self._jitter = jitter
        self._interval_ns = interval_ns
        self._source = source
        self._sent = 0

    def next_hold_ns(self) -> int:
        """Return for how long the packet that is sent now is held."""
        return self.next_hold_of_ns(self._interval_ns)

    def next_hold_of_ns(self, interval_ns: int) -> int:
        """Return the same where packets like the one that is sent now leave *interval_ns* apart."""
        self._sent += 1
        if self._sent % self._jitter.every:
            return 0
        overtaken = self._source.randint(self._jitter.min_overtaken, self._jitter.max_overtaken)
        # The half lies between two packets, so that none arrives at the same instant.
        return overtaken * interval_ns + interval_ns // 2 if overtaken else 0


class Distribution(enum.Enum):
    """How the extra delay of packets is spread."""

    UNIFORM = "uniform"
    NORMAL = "normal"
    PARETO = "pareto"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkJitter:
    """Each packet takes longer than the link's delay, by a time drawn from *distribution*.

    UNIFORM lies within *deviation_ns* of *mean_ns* (as netem's does), NORMAL and PARETO have it as
    standard deviation. NORMAL is cut at 0, which raises its mean where the deviation is large.
    Without *reorder* a packet waits for those before it, as in a queue.
    """

    mean_ns: int = field(metadata=says(_TIME, "the mean extra delay", key="jitter_ms"))
    deviation_ns: int = field(
        default=_HALF,
        metadata=says(_TIME, "half of the mean by default", key="jitter_deviation_ms"),
    )
    distribution: Distribution = field(
        default=Distribution.UNIFORM,
        metadata=says(Choice(Distribution), "how it is spread", key="jitter_distribution"),
    )
    reorder: bool = field(
        default=False, metadata=says(Flag(), "whether packets may overtake one another")
    )

    def __post_init__(self) -> None:
        if self.deviation_ns is _HALF and isinstance(self.mean_ns, int):
            object.__setattr__(self, "deviation_ns", self.mean_ns // 2)
        settle(self, NetworkError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        if self.deviation_ns is _HALF or self.distribution is not Distribution.UNIFORM:
            return
        if self.deviation_ns > self.mean_ns:
            message = f"must not exceed jitter_ms ({to_ms(self.mean_ns)}): no delay is negative"
            message = f"{message}, is {to_ms(self.deviation_ns)}"
            yield Problem(key="jitter_deviation_ms", message=message)


def make_draw(jitter: LinkJitter, source: random.Random) -> Callable[[], int]:
    """Return what gives the extra delay of one packet after the other, in nanoseconds.

    Each takes exactly one number of *source*: the inverse of the distribution function is applied
    to it, where sampling by rejection would take as many as it pleases.

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
