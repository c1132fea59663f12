"""The design of a study: every load by its index, and the stopping rule for seeds.

Designs are lazy: memory does not grow with the number of loads.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim.load.load_config import LoadConfig, unknown_option
from h3sim.load.network_path import FILE_TABLES, is_file_key
from h3sim.load.options import N_SAMPLES, SAMPLING, file_key
from h3sim.schema import format_value
from h3sim.schema.arguments import check_arguments
from h3sim.schema.errors import plain_values
from h3sim.schema.fields import validate
from h3sim.schema.values import Flag, Integer, Number, Text
from h3sim.transport.congestion.registry import controller_named
from h3sim.values.errors import InputError, ValidationIssue, needing_extra
from h3sim.values.likeness import names_like

if TYPE_CHECKING:
    from h3sim.engine import Process
    from h3sim.headers.base import HeaderLists
    from h3sim.load import Load
    from h3sim.page import Page
    from h3sim.schemes import Scheme


Keep: TypeAlias = "str | Callable[[Load], str | None]"
KEPT = ("qlog", "trace")
"""Values of `keep`: the qlog of a load, or the load for `read_load`."""
OPTIONS = tuple(entry.name for entry in fields(LoadConfig) if entry.name != "seed")
"""Options of a load, which may be axes of a study besides pages, schemes and seeds."""


def is_axis(name: str) -> bool:
    """Return whether *name* may be an axis: an option, or a key of a network or profile file."""
    return name in OPTIONS or is_file_key(name)


def unknown_axis(name: str, others: Iterable[str]) -> ValidationIssue:
    """Return the issue of an axis that is no option, key or one of the *others*.

    >>> print(unknown_axis("profil.quic.ack_every", ["processes"]))
    profil.quic.ack_every: there is no such option; did you mean profile.quic.ack_every?
    """
    first, dot, key = name.partition(".")
    tables = names_like(first, FILE_TABLES) or FILE_TABLES
    known = [f"{table}.{key}" for table in tables] if dot else [*OPTIONS, *others]
    return unknown_option(name, known)


class StudyPart(NamedTuple):
    """Part of a study: one of *n* of about the same size, by a hash of page, setting and seed.

    It has all schemes of its pages, settings and seeds, so that they can be compared within it.
    """

    number: int
    n: int

    @classmethod
    def parse(cls, text: object) -> StudyPart | None:
        """Return the part that a text like 3/16 names; None for None.

        Raises:
            InputError: if it names none.

        >>> StudyPart.parse("3/16")
        StudyPart(number=3, n=16)
        """
        if text is None:
            return None
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text) if isinstance(text, str) else None
        number, n = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= n:
            message = f"must be a number of n, from 1/16 to 16/16, is {format_value(text)}"
            raise InputError.at("part", message)
        return cls(number, n)

    def has(self, key: bytes) -> bool:
        """Return whether the loads with this hash are in the part."""
        return int.from_bytes(key) % self.n == self.number - 1


class DesignPoint(NamedTuple):
    """One load of a study."""

    page: Page | HeaderLists
    scheme: Scheme
    options: dict[str, Any]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Sampling range of an axis: uniform from *low* to *high*, or log-uniform.

    Raises:
        InputError: listing every error in its values.
    """

    low: float = file_key(Number(), "lowest value", is_premise=True)
    high: float = file_key(Number(), "highest value", is_premise=True)
    log: bool = file_key(Flag(), "sample log-uniformly", default=False)
    integer: bool = file_key(Flag(), "round to whole numbers", key="whole", default=False)

    def __post_init__(self) -> None:
        validate(self, InputError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield issues between its values."""
        if self.low >= self.high:
            message = f"must be more than low ({self.low:g}), is {self.high:g}"
            yield ValidationIssue(key="high", message=message)
        if self.log and self.low <= 0:
            yield ValidationIssue(key="low", message="must be more than 0 if log is set")

    def at(self, share: float) -> float:
        """Return the value at quantile *share* (0 to 1) of the range.

        >>> Range(low=1, high=100, log=True).at(0.5), Range(low=0, high=9, integer=True).at(0.5)
        (10.0, 5)
        """
        low, high = map(math.log, (self.low, self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        if self.log:
            value = math.exp(value)
        if self.integer:
            return min(int(self.high), math.floor(value + 0.5))
        # Twelve digits: the last ones of a logarithm differ between C libraries.
        return float(f"{value:.12g}")


@dataclass(frozen=True, kw_only=True)
class FactorialDesign(Sequence[dict[str, Any]]):
    """Every combination of *listed* settings and one value per axis; the last axis varies fastest.

    >>> combinations = FactorialDesign(listed=({},), axes={"rtt_ms": (10, 20), "loss": (0, 0.02)})
    >>> len(combinations), combinations[1]
    (4, {'rtt_ms': 10, 'loss': 0.02})
    """

    listed: tuple[Mapping[str, Any], ...]
    axes: Mapping[str, tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.listed) * math.prod(len(values) for values in self.axes.values())

    def __getitem__(self, index: Any) -> Any:
        rest = range(len(self))[index]  # raises IndexError if out of range
        chosen: list[tuple[str, Any]] = []
        # The last axis varies fastest, so it is the lowest digit of the index.
        for name, values in reversed([*self.axes.items()]):
            rest, digit = divmod(rest, len(values))
            chosen.append((name, values[digit]))
        return {**self.listed[rest], **dict(reversed(chosen))}


_MAX_SHOWN_VALUES = 5
"""Values of an axis that a notebook shows."""


@dataclass(frozen=True, kw_only=True)
class Design(Sequence[DesignPoint]):
    """Every load of a study, by page, setting, scheme and seed (which varies fastest).

    By default these are all combinations, otherwise those *listed*.

    Schemes share common random numbers: for one page, setting and seed all see the same losses, so
    loads can be compared in pairs. Header lists may take the place of pages; their rows have other
    columns. *metrics* names additional columns, from `results.figures.ON_DEMAND`; *columns* are
    functions of a load, by the name of the column.
    """

    pages: tuple[Page | HeaderLists, ...]
    schemes: tuple[Scheme, ...]
    settings: FactorialDesign
    seeds: Sequence[int]
    metrics: tuple[str, ...] = ()
    columns: Mapping[str, Callable[[Load], Any]] = field(default_factory=dict)
    keep: Keep | None = None
    """What is kept of loads besides rows: "qlog", "trace", or a function that chooses."""
    processes: tuple[Process, ...] = ()
    """Functions that make the SimPy processes beside each load."""
    listed: tuple[tuple[int, int, int, int], ...] | None = None
    """The loads, by indices of page, setting, scheme and seed; None for all combinations."""

    def __len__(self) -> int:
        if self.listed is not None:
            return len(self.listed)
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
        if self.listed is not None:
            return self.listed[index]
        # `range` takes negative indices as lists do, and refuses those outside.
        rest, seed = divmod(range(len(self))[index], len(self.seeds))
        rest, scheme = divmod(rest, len(self.schemes))
        page, setting = divmod(rest, len(self.settings))
        return page, setting, scheme, seed

    def controllers(self) -> Iterator[tuple[str, Any]]:
        """Yield name and code of each congestion controller that is given as code."""
        listed = (value for options in self.settings.listed for value in options.items())
        axes = ((name, value) for name, values in self.settings.axes.items() for value in values)
        for name, value in itertools.chain(listed, axes):
            if name == "cc" and callable(value):
                yield controller_named(value)[0], value
            controller = getattr(value, "controller", None)
            if name == "transport_profile" and controller is not None:
                yield value.cc, controller

    def values(self) -> Iterator[tuple[str, int, str]]:
        """Yield the name of each axis, the number of its values, and the first of these as text."""
        known: dict[str, Sequence[Any]] = {"page": self.pages, "scheme": self.schemes}
        known |= {**self.settings.axes, "seed": self.seeds}
        for axis in self.axes:
            listed = (entry[axis] for entry in self.settings.listed if axis in entry)
            values = known.get(axis) or [*dict.fromkeys(map(_name_of, listed))]
            shown = [str(_name_of(value)) for value in values[:_MAX_SHOWN_VALUES]]
            yield axis, len(values), ", ".join([*shown, *["..."][: len(values) > len(shown)]])

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns in which the loads differ, slowest first."""
        names = ["page"] if len(self.pages) > 1 else []
        if len(self.settings.listed) > 1:
            names += dict.fromkeys(name for entry in self.settings.listed for name in entry)
        names += (name for name, values in self.settings.axes.items() if len(values) > 1)
        names += ["scheme"] if len(self.schemes) > 1 else []
        names += ["seed"] if len(self.seeds) > 1 else []
        return tuple(names)


def _name_of(value: Any) -> Any:
    return getattr(value, "name", value)


def values_of_axis(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of an axis in the order given; a single value makes an axis of one.

    Raises:
        InputError: if it has no values, or duplicates.
    """
    given = plain_values(given)
    is_list = isinstance(given, Sequence | Iterator) and not isinstance(given, str)
    values = tuple(given) if is_list else (given,)
    messages = [] if values else ["at least one value is needed"]
    if any(isinstance(value, Range) for value in values):
        messages.append("a range needs samples=, the number of draws")
    for index, value in enumerate(values):
        if any(value is other or value == other for other in values[:index]):
            messages.append(f"{value!r} is given twice")
    if messages:
        raise InputError(ValidationIssue(key=name, message=message) for message in messages)
    # numpy's numbers as Python's.
    return tuple(value.item() if hasattr(value, "item") else value for value in values)


def sampled(
    ranges: Mapping[str, Range], n: int, *, method: str = "latin-hypercube", seed: int = 0
) -> tuple[dict[str, Any], ...]:
    """Sample *n* settings from *ranges* by a Latin hypercube or Sobol' points.

    The same seed gives the same settings. Sobol' points are balanced if *n* is a power of two
    (scipy.stats.qmc, which scrambles them as Owen 1998).

    Raises:
        InputError: if the method is unknown or *n* is out of range.
        MissingExtraError: if scipy is not installed.
    """
    check_arguments(InputError, sampling=(SAMPLING, method), samples=(N_SAMPLES, n))
    if method == "sobol" and n & (n - 1):
        raise InputError.at("samples", f"must be a power of two for Sobol' points, is {n}")
    with needing_extra("scipy", "study"):
        from scipy.stats import qmc  # lazy: optional dependency
    sampler = qmc.LatinHypercube if method == "latin-hypercube" else qmc.Sobol
    return tuple(at_shares(ranges, point) for point in sampler(d=len(ranges), rng=seed).random(n))


def at_shares(ranges: Mapping[str, Range], shares: Iterable[float]) -> dict[str, Any]:
    """Return the values of *ranges* at these quantiles, one for each range.

    >>> at_shares({"rtt_ms": Range(low=10, high=30)}, [0.5])
    {'rtt_ms': 20.0}
    """
    pairs = zip(ranges.items(), shares, strict=True)
    return {name: limits.at(float(share)) for (name, limits), share in pairs}


_SEEDS_OF_FIRST_LOOK, _LOOK_GROWTH = 20, 1.5
"""Seeds at the first interim analysis, and their ratio between two analyses."""
_LEVEL_FACTOR = 0.8
"""Factor of the error probability with which intervals of 95 %, at which sampling stopped, cover
the mean in 94 to 96 % of studies, whatever the width (docs/studies.md)."""
_UNNOTICED_SHARE = 0.1
"""Share of seeds that may differ from all others unnoticed."""
_DEFAULT_MOST_SEEDS = 200
"""Default maximum of seeds until a stopping rule is met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Stopping rule: add seeds until each speedup's interval is narrower than *width*.

    Raises:
        InputError: listing every value that is out of range.

    >>> StoppingRule(width=0.05, most_seeds=50).looks
    (20, 30, 45, 50)
    """

    width: float = file_key(
        Number(low=0, high=1, is_above=True, example="0.05 is 5 %"),
        "relative width: upper end of an interval divided by its lower end, minus 1",
    )
    baseline: str = file_key(Text(is_needed=True), "the reference scheme of speedups", default="rr")
    value: str = file_key(
        Text(is_needed=True), "the column to compare", default="byte_index_all_ms"
    )
    confidence: float = file_key(
        Number(low=0, high=1, is_above=True, is_below=True),
        "coverage probability of each scheme's interval where sampling stops",
        default=0.95,
    )
    most_seeds: int = file_key(
        Integer(low=3, high=10**6), "maximum number of seeds", default=_DEFAULT_MOST_SEEDS
    )

    def __post_init__(self) -> None:
        validate(self, InputError)

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds at the interim analyses: from 20 on, each half as many again."""
        looks, n_seeds = [], min(_SEEDS_OF_FIRST_LOOK, self.most_seeds)
        while n_seeds < self.most_seeds:
            looks.append(n_seeds)
            n_seeds = int(n_seeds * _LOOK_GROWTH)
        return (*looks, self.most_seeds)

    @property
    def level(self) -> float:
        """Nominal error probability of the intervals.

        The width depends on the spread of the seeds alone, which is independent of their mean if
        they are normal. So stopping costs little coverage (Chow and Robbins 1965), which four
        fifths of the error probability compensate.
        """
        return (1 - self.confidence) * _LEVEL_FACTOR

    def is_met(self, low: float, high: float, n_seeds: int) -> bool:
        """Return whether the interval of *n_seeds* is narrow enough to stop.

        If all seeds are equal, the interval has no width, although others may differ. It counts
        once there are so many seeds that all of them are equal with a probability of at most
        `level` if one in ten differs (the rule of three: Hanley 1983).
        """
        if low == high:
            n_needed = math.ceil(math.log(self.level) / math.log(1 - _UNNOTICED_SHARE))
            return n_seeds >= min(n_needed, self.most_seeds)
        # Without dividing: the lower end of a very wide interval is 0.
        return high - low < self.width * low
