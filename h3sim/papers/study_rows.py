"""Rows of a study by page, and figures over pages with intervals, orders and ranks."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import TYPE_CHECKING, Any

from h3sim.papers.findings import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


_EPSILON = 1e-10
"""Keeps relative differences finite, as Sander 2022 § V has it."""


class Loads:
    """Rows of loads, in the order of their study; `resources` has a row a resource, if kept."""

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
        return tuple(dict.fromkeys(row["page"] for row in self.rows))

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(dict.fromkeys(row["scheme"] for row in self.rows))

    def where(self, **equal: Any) -> Loads:
        """Return the loads whose columns are as given."""
        return Loads(_where(self.rows, equal), _where(self.resources, equal))

    def values(self, column: str) -> list[float]:
        """Return a column, without the loads that have no such figure."""
        return [row[column] for row in self.rows if row[column] is not None]

    def medians(self, column: str) -> dict[str, float]:
        """Return the median of a column by page, of the pages that have it."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            if row[column] is not None:
                found.setdefault(row["page"], []).append(row[column])
        return {page: statistics.median(values) for page, values in found.items()}

    def deltas(self, other: Loads, column: str) -> dict[str, float]:
        """Return by page how far the median lies from that of *other*, relative to it."""
        ours, theirs = self.medians(column), other.medians(column)
        return {
            page: (ours[page] - theirs[page]) / (theirs[page] + _EPSILON)
            for page in ours
            if page in theirs
        }

    def complete_groups(
        self, by: Sequence[str], predicate: Callable[[Mapping[str, Any]], bool]
    ) -> Loads:
        """Return the loads of those groups, by columns *by*, in which *predicate* holds for all.

        A group that lacks a load others have, as it failed, is not whole either.
        """
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        size = max(map(len, groups.values()), default=0)
        complete = (
            rows for rows in groups.values() if len(rows) == size and all(map(predicate, rows))
        )
        return Loads((row for rows in complete for row in rows), self.resources)


def _where(rows: Sequence[Mapping[str, Any]], equal: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # A row of a resource says of its load only what varies.
    return [
        row for row in rows if all(row.get(name, value) == value for name, value in equal.items())
    ]


_RESAMPLES = 1000
_FEWEST = 5
"""Fewer pages than that have no interval."""
_ENDS = (2.5, 97.5)


def over_pages(
    rows: Sequence[Any], statistic: Callable[[Any], float], *, vectorized: Any = None
) -> Estimate:
    """Return *statistic* of *rows*, one a page, with its percentile bootstrap interval of 95 %.

    Pages are drawn with a fixed seed, so the same rows give the same interval (Efron and
    Tibshirani 1993, ch. 13). *vectorized* takes an array of samples and gives all their figures at
    once. Of no pages the figure is not a number.
    """
    import numpy as np  # lazy: h3sim.papers should load quickly

    if not len(rows):
        return Estimate(math.nan)
    values = np.asarray(rows, dtype=float)
    figure = float(statistic(values))
    if len(values) < _FEWEST:
        return Estimate(figure)
    # All at once and with a fixed seed: so the figures of one study share their draws.
    drawn = np.random.default_rng(0).integers(0, len(values), size=(_RESAMPLES, len(values)))
    if vectorized is not None:
        found = vectorized(values[drawn])
    else:
        found = [statistic(values[sample]) for sample in drawn]
    low, high = np.percentile(found, _ENDS)
    return Estimate(figure, float(low), float(high))


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean with its interval."""
    import numpy as np

    return over_pages(values, np.mean, vectorized=lambda drawn: drawn.mean(axis=1))


def median(values: Sequence[float]) -> Estimate:
    """Return the median with its interval."""
    import numpy as np

    return over_pages(values, np.median, vectorized=lambda drawn: np.median(drawn, axis=1))


def share(values: Sequence[bool]) -> Estimate:
    """Return the share of *values* that are true, with its interval."""
    return mean([float(value) for value in values])


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
    """Return Spearman's rho: Pearson's of the ranks; None where one side does not vary.

    >>> spearman([1, 2, 4], [3, 5, 5]), spearman([1, 2], [3, 3])
    (0.8660254037844387, None)
    """
    if len({*left}) < 2 or len({*right}) < 2:
        return None
    # In whole numbers: the library's own correlation differs between versions of Python.
    x, y = _centred_ranks(left), _centred_ranks(right)
    squares = sum(rank * rank for rank in x) * sum(rank * rank for rank in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(squares)


def _centred_ranks(values: Sequence[float]) -> list[int]:
    """Return twice how far each value's rank is above the mean rank; equal ones share theirs."""
    ordered = sorted(values)
    n = len(values)
    # Twice the mid-rank less its mean, which keeps ties at halves whole numbers.
    return [2 * ordered.index(value) + ordered.count(value) - n for value in values]


def _sign(a: float, b: float) -> int:
    return (a > b) - (a < b)
