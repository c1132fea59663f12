"""Estimates from the loads of a study: statistics over pages and seeds, with their intervals."""

from __future__ import annotations

import itertools
import math
import operator
import statistics
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence


_N_RESAMPLES = 1000
_MIN_PAGES = 5
"""Fewest pages with an interval."""
_PERCENTILES = (2.5, 97.5)
"""Ends of intervals of 95 %."""


class EstimateRow(NamedTuple):
    """Estimate with the ends of its interval, as it is written to files."""

    value: float
    low: float | None = None
    high: float | None = None


class Estimate(EstimateRow):
    """Estimate from loads, with its 95 % interval over pages and seeds, if any."""

    samples: Any = None
    """The estimates of resampled pages and seeds, an array; None without an interval."""

    @classmethod
    def of(cls, value: float, samples: Any) -> Estimate:
        """Return the estimate *value* with the percentile interval of *samples*.

        *samples* are the same statistic of resampled pages. Those that are not a number are left
        out, as no page of a sample may have one.
        """
        import numpy as np  # lazy: h3sim.papers should load quickly

        known = samples[~np.isnan(samples)]
        if not len(known):
            return cls(value)
        low, high = np.percentile(known, _PERCENTILES)
        estimate = cls(value, float(low), float(high))
        estimate.samples = samples
        return estimate

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return shown(self.value)
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"


def shown(value: float | str) -> str:
    """Return a number with three significant digits, or a name as it is.

    >>> shown(0.12345), shown(1234.5), shown(3), shown("s:rr"), shown(-0.0001)
    ('0.123', '1,234', '3', 's:rr', '-0.0001')
    """
    if isinstance(value, str):
        return value
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"


_EPSILON = 1e-10
"""Added to denominators, so that relative differences are finite (Sander 2022 § V)."""


class Loads:
    """Rows of loads, in the order of their study; `resources` are those of resources, if any."""

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], resources: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self.rows = tuple(rows)
        self.resources = tuple(resources)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages, in order."""
        return self.distinct("page")

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return self.distinct("scheme")

    def distinct(self, column: str) -> tuple[Any, ...]:
        """Return the values of a column, each once, in order."""
        return tuple(dict.fromkeys(row[column] for row in self.rows))

    def split(self, column: str) -> Iterator[tuple[Any, Loads]]:
        """Yield each value of a column with its loads, in order."""
        for value in self.distinct(column):
            yield value, self.where(**{column: value})

    def where(self, **equal: Any) -> Loads:
        """Return the loads whose columns have these values."""

        # Rows of resources have only those columns of their loads that vary.
        def is_equal(row: Mapping[str, Any]) -> bool:
            return all(row.get(name, value) == value for name, value in equal.items())

        return Loads(filter(is_equal, self.rows), filter(is_equal, self.resources))

    def values(self, column: str) -> list[float]:
        """Return the values of a column, without those that are None."""
        return [row[column] for row in self.rows if row[column] is not None]

    def medians(self, column: str) -> dict[str, float]:
        """Return the median of a column by page, of the pages that have it."""
        by_page: dict[str, list[float]] = {}
        for row in self.rows:
            if row[column] is not None:
                by_page.setdefault(row["page"], []).append(row[column])
        return {page: statistics.median(values) for page, values in by_page.items()}

    def deltas(self, other: Loads, column: str) -> dict[str, float]:
        """Return the difference between the medians of both, relative to *other*, by page."""
        own, base = self.medians(column), other.medians(column)
        return {
            page: (own[page] - base[page]) / (base[page] + _EPSILON) for page in own if page in base
        }

    def complete_groups(
        self, by: Sequence[str], predicate: Callable[[Mapping[str, Any]], bool]
    ) -> Loads:
        """Return the loads of complete groups with equal columns *by*.

        A group is complete if *predicate* is true for all its loads, and none failed, so that it
        has as many as the largest.
        """
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        size = max(map(len, groups.values()), default=0)
        complete = (
            rows for rows in groups.values() if len(rows) == size and all(map(predicate, rows))
        )
        return Loads((row for rows in complete for row in rows), self.resources)


def draws(n: int, purpose: str = "pages") -> Any:
    """Return the resamples of *n* pages, or seeds: an array of indices, one row per resample.

    They depend on *n* alone, so that figures over the same pages are from the same samples, and
    their difference is taken page by page. Figures over different numbers of pages are independent.
    """
    import numpy as np

    size = (_N_RESAMPLES, n)
    return np.random.default_rng([n, *purpose.encode()]).integers(0, n, size=size)


def combined(function: Callable[..., float], *estimates: Estimate) -> Estimate:
    """Return *function* of several estimates, with the interval of its values over all samples.

    An estimate without an interval counts as exact.

    >>> combined(max, Estimate(1.0), Estimate(2.0))
    Estimate(value=2.0, low=None, high=None)
    """
    import numpy as np

    value = function(*(estimate.value for estimate in estimates))
    if all(estimate.samples is None for estimate in estimates):
        return Estimate(value)
    columns = [
        [estimate.value] * _N_RESAMPLES if estimate.samples is None else estimate.samples.tolist()
        for estimate in estimates
    ]
    sampled = [function(*row) for row in zip(*columns, strict=True)]
    return Estimate.of(value, np.asarray(sampled, dtype=float))


def over_pages(rows: Any, statistic: Callable[[Any], float], *, vectorized: Any = None) -> Estimate:
    """Return *statistic* of *rows*, one per page, with its percentile bootstrap interval of 95 %.

    Pages are drawn with a fixed seed, so the same rows give the same interval (Efron and
    Tibshirani 1993, ch. 13). *vectorized* computes the statistic of an array of samples at once.
    Without rows, the figure is not a number.
    """
    import numpy as np

    if not len(rows):
        return Estimate(math.nan)
    values = np.asarray(rows, dtype=float)
    figure = float(statistic(values))
    if len(values) < _MIN_PAGES:
        return Estimate(figure)
    samples = draws(len(values))
    if vectorized is not None:
        figures = vectorized(values[samples])
    else:
        figures = [statistic(values[sample]) for sample in samples]
    return Estimate.of(figure, np.asarray(figures, dtype=float))


def over_groups(groups: Iterable[Any], statistic: Callable[[Any], float]) -> Estimate:
    """Return *statistic* of all values, those of each page in a group; whole groups are drawn."""
    import numpy as np

    arrays = [np.asarray(group, dtype=float) for group in groups if len(group)]
    if not arrays:
        return Estimate(math.nan)
    figure = float(statistic(np.concatenate(arrays)))
    if len(arrays) < _MIN_PAGES:
        return Estimate(figure)
    figures = [
        statistic(np.concatenate([arrays[index] for index in sample]))
        for sample in draws(len(arrays)).tolist()
    ]
    return Estimate.of(figure, np.asarray(figures, dtype=float))


def mean(values: Iterable[float]) -> Estimate:
    """Return the mean with its interval."""
    import numpy as np

    return over_pages([*values], np.mean, vectorized=lambda samples: samples.mean(axis=1))


def median(values: Iterable[float]) -> Estimate:
    """Return the median with its interval."""
    import numpy as np

    return over_pages([*values], np.median, vectorized=lambda samples: np.median(samples, axis=1))


def share(values: Iterable[bool]) -> Estimate:
    """Return the share of *values* that are true, with its interval."""
    return mean(map(float, values))


class PageValues:
    """A figure of each page, and the same of resampled pages and seeds.

    *known* has a value per page, *sampled* a row per resample with a value per drawn page; both are
    not a number where a page has none. Arithmetic is page by page.
    """

    def __init__(self, known: Any, sampled: Any) -> None:
        self.known = known
        self.sampled = sampled

    def __sub__(self, other: PageValues) -> PageValues:
        return self._with(other, operator.sub)

    def __add__(self, other: PageValues | float) -> PageValues:
        if isinstance(other, PageValues):
            return self._with(other, operator.add)
        return self.map(lambda values: values + other)

    def __mul__(self, factor: float) -> PageValues:
        return self.map(lambda values: values * factor)

    @classmethod
    def mean_of(cls, several: Sequence[PageValues]) -> PageValues:
        """Return, page by page, the mean of those of *several* figures that the page has."""
        import numpy as np

        def mean_over(arrays: list[Any]) -> Any:
            stacked = np.stack(arrays, axis=-1)
            return _row_means(stacked.reshape(-1, len(arrays))).reshape(arrays[0].shape)

        is_sampled = all(values.sampled is not None for values in several)
        return cls(
            mean_over([values.known for values in several]),
            mean_over([values.sampled for values in several]) if is_sampled else None,
        )

    def relative_to(self, base: PageValues) -> PageValues:
        """Return the difference from *base*, relative to it."""
        return self._with(base, lambda own, of: (own - of) / (of + _EPSILON))

    def map(self, function: Callable[[Any], Any]) -> PageValues:
        """Return *function* of arrays, applied to the values; what is missing stays missing."""
        return PageValues(
            _keeping_gaps(function, self.known),
            None if self.sampled is None else _keeping_gaps(function, self.sampled),
        )

    def mean(self) -> Estimate:
        """Return the mean over pages."""
        return self.reduce(_row_means)

    def median(self) -> Estimate:
        """Return the median over pages."""
        return self.reduce(lambda rows: _row_quantiles(rows, 0.5))

    def quartile_distance(self) -> Estimate:
        """Return the distance between the quartiles over pages."""
        return self.reduce(lambda rows: _row_quantiles(rows, 0.75) - _row_quantiles(rows, 0.25))

    def reduce(self, statistic: Callable[[Any], Any]) -> Estimate:
        """Return a statistic over pages, given as a function of rows of pages."""
        value = float(statistic(self.known[None])[0])
        if self.sampled is None or math.isnan(value):
            return Estimate(value)
        return Estimate.of(value, statistic(self.sampled))

    def _with(self, other: PageValues, function: Callable[[Any, Any], Any]) -> PageValues:
        is_sampled = self.sampled is not None and other.sampled is not None
        return PageValues(
            function(self.known, other.known),
            function(self.sampled, other.sampled) if is_sampled else None,
        )


class Resampling:
    """Resamples of the pages and seeds of a study, the same for all its figures.

    Pages and seeds are drawn separately, since every page met the same seeds (Owen 2007, the
    pigeonhole bootstrap). So the interval of a figure covers both: other pages, and other losses.
    """

    def __init__(self, loads: Loads) -> None:
        self.pages = loads.pages
        self._page_index = {page: index for index, page in enumerate(self.pages)}
        self._seed_index = {seed: index for index, seed in enumerate(loads.distinct("seed"))}
        is_sampled = len(self.pages) >= _MIN_PAGES
        self._page_draws = draws(len(self.pages)) if is_sampled else None
        n_seeds = len(self._seed_index)
        self._seed_draws = draws(n_seeds, "seeds") if is_sampled and n_seeds > 1 else None

    def medians(self, loads: Loads, column: str) -> PageValues:
        """Return the median of a column over seeds, page by page."""
        return self.medians_of(
            (row["page"], row["seed"], row[column]) for row in loads.rows if row[column] is not None
        )

    def only(self, values: PageValues, pages: Collection[str]) -> PageValues:
        """Return *values* without those of other pages."""
        import numpy as np

        is_chosen = np.array([page in pages for page in self.pages])
        return PageValues(
            np.where(is_chosen, values.known, np.nan),
            None
            if values.sampled is None
            else np.where(is_chosen[self._page_draws], values.sampled, np.nan),
        )

    def medians_of(self, values: Iterable[tuple[str, int, float]]) -> PageValues:
        """Return the median over seeds of values that are given with their page and seed."""
        import numpy as np

        table = np.full((len(self.pages), len(self._seed_index)), np.nan)
        for page, seed, value in values:
            table[self._page_index[page], self._seed_index[seed]] = value
        known = _row_quantiles(table, 0.5)
        if self._page_draws is None:
            return PageValues(known, None)
        if self._seed_draws is None:
            return PageValues(known, known[self._page_draws])
        # Of each resample of seeds, the median of all pages; then the drawn pages of these.
        by_seeds = [_row_quantiles(table[:, seeds], 0.5) for seeds in self._seed_draws]
        return PageValues(known, np.take_along_axis(np.array(by_seeds), self._page_draws, axis=1))


def _keeping_gaps(function: Callable[[Any], Any], values: Any) -> Any:
    """Return *function* of an array as numbers; not a number where the array is."""
    import numpy as np

    return np.where(np.isnan(values), np.nan, function(values).astype(float))


def _row_means(rows: Any) -> Any:
    """Return the mean of each row without what is not a number."""
    import numpy as np

    n_known = (~np.isnan(rows)).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.nansum(rows, axis=1) / n_known


def _row_quantiles(rows: Any, quantile: float) -> Any:
    """Return a quantile of each row without what is not a number, interpolated linearly."""
    import numpy as np

    ordered = np.sort(rows, axis=1)  # what is not a number comes last
    n_known = (~np.isnan(rows)).sum(axis=1)
    rank = quantile * np.maximum(n_known - 1, 0)
    below = np.floor(rank).astype(int)
    above = np.minimum(below + 1, np.maximum(n_known - 1, 0))
    index = np.arange(len(rows))
    low, high = ordered[index, below], ordered[index, above]
    return low + (rank - below) * (high - low)


def tau(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Kendall's tau-b: 1 for the same order, 0 for none.

    >>> tau([1, 2, 3], [10, 30, 20])
    0.3333333333333333
    """
    signs = [
        (_sign(a, b), _sign(x, y))
        for (a, x), (b, y) in itertools.combinations(zip(left, right, strict=True), 2)
    ]
    untied = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return sum(a * b for a, b in signs) / math.sqrt(untied) if untied else 0.0


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's rho, Pearson's correlation of ranks; None if one side does not vary.

    >>> spearman([1, 2, 4], [3, 5, 5]), spearman([1, 2], [3, 3])
    (0.8660254037844387, None)
    """
    if len({*left}) < 2 or len({*right}) < 2:
        return None
    # With integers, as the standard library's correlation differs between versions of Python.
    x, y = _centred_ranks(left), _centred_ranks(right)
    squares = sum(rank * rank for rank in x) * sum(rank * rank for rank in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(squares)


def _centred_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the difference of each value's rank and the mean rank; ties share a rank."""
    ordered = sorted(values)
    n = len(values)
    # Ranks of ties may be halves: twice of them is an integer.
    return [bisect_left(ordered, value) + bisect_right(ordered, value) - n for value in values]


def _sign(a: float, b: float) -> int:
    return (a > b) - (a < b)
