"""The design of a study: every load by its index, and the rule by which seeds are added.

A study of a million loads is a few lists: nothing here grows with the number of loads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.config.arguments import N_SAMPLES, SAMPLING
from h3sim.config.load_config import LoadConfig
from h3sim.errors import InputError, ValidationIssue, needing_extra
from h3sim.schema.arguments import check_arguments
from h3sim.schema.errors import plain_values
from h3sim.schema.fields import declare, validate
from h3sim.schema.values import Flag, Number, Text, Whole

if TYPE_CHECKING:
    from h3sim.headers.base import HeaderLists
    from h3sim.page import Page
    from h3sim.schemes import Scheme


OPTIONS = tuple(entry.name for entry in fields(LoadConfig) if entry.name != "seed")
"""What may be an axis beside pages, schemes and seeds: every option of a load."""


class DesignPoint(NamedTuple):
    """One load of a study."""

    page: Page | HeaderLists
    scheme: Scheme
    options: dict[str, Any]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What samples of an axis are drawn from: *low* to *high*, evenly, or evenly in the logarithm.

    Raises:
        InputError: listing what is wrong with it.
    """

    low: float = field(metadata=declare(Number(), "the least", is_premise=True))
    high: float = field(metadata=declare(Number(), "the most", is_premise=True))
    log: bool = field(default=False, metadata=declare(Flag(), "evenly in the logarithm"))
    whole: bool = field(default=False, metadata=declare(Flag(), "whole numbers alone"))

    def __post_init__(self) -> None:
        validate(self, InputError)

    def mistakes(self) -> Iterator[ValidationIssue]:
        """Yield what is wrong between its values."""
        if self.low >= self.high:
            message = f"must be more than low ({self.low:g}), is {self.high:g}"
            yield ValidationIssue(key="high", message=message)
        if self.log and self.low <= 0:
            yield ValidationIssue(key="low", message="must be more than 0 where log is set")

    def at(self, share: float) -> float:
        """Return the value that lies at *share* (0 to 1) of the range.

        >>> Range(low=1, high=100, log=True).at(0.5), Range(low=0, high=9, whole=True).at(0.5)
        (10.0, 5)
        """
        if self.log:
            value = math.exp(
                math.log(self.low) + share * (math.log(self.high) - math.log(self.low))
            )
        else:
            value = self.low + share * (self.high - self.low)
        if self.whole:
            return min(int(self.high), math.floor(value + 0.5))
        # Twelve digits: what a library's logarithm leaves in the last ones differs between
        # machines.
        return float(f"{value:.12g}")


@dataclass(frozen=True, kw_only=True)
class FactorialDesign(Sequence[dict[str, Any]]):
    """Every combination of *listed* settings with one value of each of *axes*, the last fastest.

    >>> combinations = FactorialDesign(listed=({},), axes={"rtt_ms": (10, 20), "loss": (0, 0.02)})
    >>> len(combinations), combinations[1]
    (4, {'rtt_ms': 10, 'loss': 0.02})
    """

    listed: tuple[Mapping[str, Any], ...]
    axes: Mapping[str, tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.listed) * math.prod(len(values) for values in self.axes.values())

    def __getitem__(self, index: Any) -> Any:
        rest = range(len(self))[index]  # refuses what lies outside
        chosen: dict[str, Any] = {}
        # The last axis is the fastest, so it is the lowest digit.
        for name, values in reversed(list(self.axes.items())):
            rest, at = divmod(rest, len(values))
            chosen[name] = values[at]
        return {**self.listed[rest], **dict(reversed(list(chosen.items())))}


@dataclass(frozen=True, kw_only=True)
class Design(Sequence[DesignPoint]):
    """Every load of a study: each page, with each setting, each scheme, each seed (the fastest).

    The scheme has no say in the accidents: all schemes of a page, setting and seed meet the same
    losses, so their loads can be compared in pairs. Header lists are sent in place of a page, and
    their rows have other figures. *metrics* names the figures that rows have
    besides, of those that are had on demand (`results.figures.ON_DEMAND`).
    """

    pages: tuple[Page | HeaderLists, ...]
    schemes: tuple[Scheme, ...]
    settings: FactorialDesign
    seeds: Sequence[int]
    metrics: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.pages) * len(self.settings) * len(self.schemes) * len(self.seeds)

    def __getitem__(self, index: Any) -> Any:
        page, setting, scheme, seed = self.indices(index)
        return DesignPoint(
            self.pages[page], self.schemes[scheme], self.settings[setting], self.seeds[seed]
        )

    def __iter__(self) -> Iterator[DesignPoint]:
        return (self[index] for index in range(len(self)))

    def indices(self, index: int) -> tuple[int, int, int, int]:
        """Return the indices of page, setting, scheme and seed of the load at *index*."""
        # `range` takes negative indices as lists do, and refuses those outside.
        rest, seed = divmod(range(len(self))[index], len(self.seeds))
        rest, scheme = divmod(rest, len(self.schemes))
        page, setting = divmod(rest, len(self.settings))
        return page, setting, scheme, seed

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns in which the loads differ, slowest first."""
        varying = [name for name, values in self.settings.axes.items() if len(values) > 1]
        listed = dict.fromkeys(name for entry in self.settings.listed for name in entry)
        return (
            *(["page"] if len(self.pages) > 1 else []),
            *(listed if len(self.settings.listed) > 1 else ()),
            *varying,
            *(["scheme"] if len(self.schemes) > 1 else []),
            *(["seed"] if len(self.seeds) > 1 else []),
        )


def values_of_axis(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of an axis in the order given; one value is an axis too.

    Raises:
        InputError: if it has no value, or one twice.
    """
    given = plain_values(given)
    is_many = isinstance(given, Sequence | Iterator) and not isinstance(given, str)
    values = tuple(given) if is_many else (given,)
    messages = [] if values else ["at least one value is needed"]
    if any(isinstance(value, Range) for value in values):
        messages.append("a range needs samples=: how many to draw")
    for index, value in enumerate(values):
        if any(value is other or value == other for other in values[:index]):
            messages.append(f"{value!r} is given twice")
    if messages:
        raise InputError(ValidationIssue(key=name, message=message) for message in messages)
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def sampled(
    ranges: Mapping[str, Range], n: int, *, method: str = "latin-hypercube", seed: int = 0
) -> tuple[dict[str, Any], ...]:
    """Return *n* settings that fill *ranges*: a Latin hypercube, or Sobol' points.

    The same seed gives the same settings. Sobol' points are balanced where *n* is a power of two
    (scipy.stats.qmc, which scrambles them as Owen 1998).

    Raises:
        InputError: if there is no such method, or *n* is out of range.
        MissingExtraError: if scipy is not installed.
    """
    check_arguments(InputError, sampling=(SAMPLING, method), samples=(N_SAMPLES, n))
    if method == "sobol" and n & (n - 1):
        message = f"must be a power of two for Sobol' points, is {n}"
        raise InputError([ValidationIssue(key="samples", message=message)])
    with needing_extra("scipy", "study"):
        from scipy.stats import qmc  # on use: an extra
    maker = qmc.LatinHypercube if method == "latin-hypercube" else qmc.Sobol
    points = maker(d=len(ranges), rng=seed).random(n)
    return tuple(
        {
            name: limits.at(float(share))
            for (name, limits), share in zip(ranges.items(), point, strict=True)
        }
        for point in points
    )


_FIRST, _GROWTH = 8, 1.5
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Add seeds until the interval of each scheme's speedup is narrower than *width*.

    Raises:
        InputError: listing every value that is out of range.

    >>> StoppingRule(width=0.05, most_seeds=50).looks
    (8, 12, 18, 27, 40, 50)
    """

    width: float = field(
        metadata=declare(
            Number(low=0, high=1, is_above=True, example="0.05 is 5 %"),
            "the upper end of an interval by its lower, less 1",
        )
    )
    baseline: str = field(
        default="rr", metadata=declare(Text(is_needed=True), "the scheme that speedups are to")
    )
    value: str = field(
        default="byte_index_all_ms", metadata=declare(Text(is_needed=True), "the column of figures")
    )
    confidence: float = field(
        default=0.95,
        metadata=declare(
            Number(low=0, high=1, is_above=True, is_below=True),
            "how often the interval of a scheme covers its speedup, wherever one stops",
        ),
    )
    most_seeds: int = field(
        default=_MOST,
        metadata=declare(Whole(low=2, high=10**6), "how many seeds there are at most"),
    )

    def __post_init__(self) -> None:
        validate(self, InputError)

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many seeds one looks: from 8 on, each time half as many again."""
        found, n_seeds = [], min(_FIRST, self.most_seeds)
        # Fewer than 8 only where that is the most, so half as many again is always more.
        while n_seeds < self.most_seeds:
            found.append(n_seeds)
            n_seeds = int(n_seeds * _GROWTH)
        return (*found, self.most_seeds)

    @property
    def level(self) -> float:
        """The chance of missing a speedup that each look may spend."""
        return (1 - self.confidence) / len(self.looks)
