"""Friedman ranks of schemes, with Nemenyi's critical difference."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from h3sim.load.options import LEVEL
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.study.pairing import columns_of
from h3sim.study.statistics.intervals import scipy_stats
from h3sim.study.statistics.pairs import SCHEME, check_columns, check_pooled, values_by_setting
from h3sim.values.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.study.columns import Columns
    from h3sim.study.rows import StudyRows


class Ranks(NamedTuple):
    """Mean ranks of schemes over blocks, which are pages in settings; 1 is the fastest.

    Schemes whose ranks differ by less than `critical_difference` are not significantly different.
    `p` is from Friedman's test that any differ.
    """

    ranks: dict[str, float]
    blocks: int
    critical_difference: float
    p: float

    def groups(self) -> list[tuple[str, ...]]:
        """Return the maximal groups of schemes without significant differences, fastest first.

        >>> Ranks({"a": 1.2, "b": 1.9, "c": 2.9}, 10, 1.05, 0.01).groups()
        [('a', 'b'), ('b', 'c')]
        """
        names = sorted(self.ranks, key=lambda name: self.ranks[name])
        groups: list[tuple[str, ...]] = []
        for index, name in enumerate(names):
            limit = self.ranks[name] + self.critical_difference
            group = tuple(other for other in names[index:] if self.ranks[other] < limit)
            # Groups are contiguous in rank order: one that ends inside the previous group is part
            # of it.
            is_part = bool(groups) and group[-1] in groups[-1]
            if len(group) > 1 and not is_part:
                groups.append(group)
        return groups


def mean_ranks(results: StudyRows, *, value: str, level: float, pool: Sequence[str] = ()) -> Ranks:
    """Rank schemes by the median of *value* over seeds, by page and setting.

    Each page and setting is a block that ranks all schemes, with mean ranks for ties; Friedman's
    test, and Nemenyi's critical difference at *level* (Demsar 2006, § 3.2.2). Blocks are assumed
    independent: with few pages, use results of one setting. Settings differ only in the columns
    that *pool* names. Blocks without all schemes are left out.

    Raises:
        InputError: if the column is unknown, *level* is out of range, or loads differ in columns
            that *pool* lacks.
        NothingToMeasureError: with fewer than three schemes or two blocks.
        MissingExtraError: if scipy is not installed.
    """
    columns = columns_of(results, value)
    with ErrorCollector() as errors:
        errors.collect("", lambda: check_columns(columns, value=value))
        errors.collect("", lambda: check_arguments(InputError, level=(LEVEL, level)))
        errors.collect("", lambda: check_pooled(columns, over=SCHEME, pool=pool))
    stats = scipy_stats()
    schemes, blocks = _blocks(columns, value)
    if len(schemes) < 3 or len(blocks) < 2:
        message = f"ranks need three schemes, and two pages that have {value} with each of them"
        raise NothingToMeasureError(message)
    ranked = [stats.rankdata(block) for block in blocks]
    means = {
        name: float(sum(block[index] for block in ranked)) / len(blocks)
        for index, name in enumerate(schemes)
    }
    # Then Friedman's statistic would divide by a spread of ranks of 0.
    all_tied = all(len({*block}) == 1 for block in blocks)
    p = 1.0 if all_tied else float(stats.friedmanchisquare(*zip(*blocks, strict=True)).pvalue)
    return Ranks(means, len(blocks), critical_difference(len(schemes), len(blocks), level), p)


def critical_difference(n_schemes: int, n_blocks: int, level: float) -> float:
    """Return the critical difference of mean ranks (Nemenyi 1963; Demsar 2006, § 3.2.2).

    Four classifiers on 14 data sets, as there:

    >>> round(critical_difference(4, 14, 0.05), 2)
    1.25
    """
    studentized = float(scipy_stats().studentized_range.ppf(1 - level, n_schemes, math.inf))
    # Demsar's tables of q are of the studentized range divided by the square root of 2.
    return studentized / math.sqrt(2) * math.sqrt(n_schemes * (n_schemes + 1) / (6 * n_blocks))


def _blocks(columns: Columns, value: str) -> tuple[list[str], list[Sequence[float]]]:
    """Return the schemes, and for each block their medians in that order."""
    schemes = columns.distinct(SCHEME)
    _, groups = values_by_setting(columns, value)
    return schemes, [
        [median(values_by_scheme[name]) for name in schemes]
        for values_by_scheme in groups.values()
        if len(values_by_scheme) == len(schemes)
    ]
