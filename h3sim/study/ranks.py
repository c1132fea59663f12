"""Which schemes rank apart over many pages: Friedman's test, and Nemenyi's critical difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from h3sim.documents.arguments import GatheredMistakes, check_arguments
from h3sim.errors import InputError, NothingToMeasureError, needing_extra
from h3sim.study.arguments import LEVEL
from h3sim.study.pairs import check_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.study.results import Results

__all__ = ["Ranks", "critical_difference", "mean_ranks"]


class Ranks(NamedTuple):
    """Mean ranks of schemes over blocks, which are pages in settings; 1 is the fastest.

    Two schemes whose ranks differ by less than `critical_difference` are not told apart. `p` is
    Friedman's: whether any differ.
    """

    ranks: dict[str, float]
    blocks: int
    critical_difference: float
    p: float

    def groups(self) -> list[tuple[str, ...]]:
        """Return the schemes that are not told apart, each largest group once, the fastest first.

        >>> Ranks({"a": 1.2, "b": 1.9, "c": 2.9}, 10, 1.05, 0.01).groups()
        [('a', 'b'), ('b', 'c')]
        """
        names = sorted(self.ranks, key=lambda name: self.ranks[name])
        found: list[tuple[str, ...]] = []
        for index, name in enumerate(names):
            reach = self.ranks[name] + self.critical_difference
            group = tuple(other for other in names[index:] if self.ranks[other] < reach)
            # Groups are stretches of the order: if its last is in the group before, all of it is.
            if len(group) > 1 and not (found and group[-1] in found[-1]):
                found.append(group)
        return found


def mean_ranks(results: Results, *, value: str, level: float) -> Ranks:
    """Return how schemes rank by the median of *value* over seeds, page by page and by setting.

    Each page in each setting is a block that ranks all schemes, ties sharing theirs; Friedman's
    test, and Nemenyi's critical difference at *level* (Demsar 2006, § 3.2.2). Blocks are taken as
    independent: give results of one setting where pages are few. A block without all schemes is
    left out.

    Raises:
        InputError: if there is no such column, or *level* is out of range.
        NothingToMeasureError: with fewer than three schemes or two blocks.
        MissingExtraError: if scipy is not installed.
    """
    with GatheredMistakes() as mistakes:
        mistakes.of("", lambda: check_columns(results, value=value))
        mistakes.of("", lambda: check_arguments(InputError, level=(LEVEL, level)))
    with needing_extra("scipy", "study"):
        from scipy import stats  # on use: an extra
    schemes, blocks = _blocks(results, value)
    if len(schemes) < 3 or len(blocks) < 2:
        message = f"ranks need three schemes and two pages that have {value} with each"
        raise NothingToMeasureError(message)
    ranked = [stats.rankdata(block) for block in blocks]
    means = {
        name: float(sum(block[index] for block in ranked)) / len(blocks)
        for index, name in enumerate(schemes)
    }
    all_tied = all(len({*block}) == 1 for block in blocks)
    # The statistic divides by the spread of ranks, of which there is none.
    p = 1.0 if all_tied else float(stats.friedmanchisquare(*zip(*blocks, strict=True)).pvalue)
    return Ranks(means, len(blocks), critical_difference(len(schemes), len(blocks), level), p)


def critical_difference(n_schemes: int, n_blocks: int, level: float) -> float:
    """Return by how much mean ranks must differ (Nemenyi 1963; Demsar 2006, § 3.2.2).

    Four classifiers on 14 data sets, as there:

    >>> round(critical_difference(4, 14, 0.05), 2)
    1.25
    """
    from scipy import stats  # on use: an extra

    studentized = float(stats.studentized_range.ppf(1 - level, n_schemes, math.inf))
    # Demsar's tables of q hold the studentized range divided by the square root of 2.
    return studentized / math.sqrt(2) * math.sqrt(n_schemes * (n_schemes + 1) / (6 * n_blocks))


def _blocks(results: Results, value: str) -> tuple[list[str], list[Sequence[float]]]:
    """Return the schemes, and of each block their medians in that order."""
    import statistics  # on use: importing h3sim should stay quick

    cell = [name for name in results.axes if name not in ("page", "scheme", "seed")]
    found: dict[tuple[object, ...], dict[str, list[float]]] = {}
    schemes: dict[str, None] = {}
    for row in results:
        schemes[row["scheme"]] = None
        if row.get(value) is not None:
            block = found.setdefault((row["page"], *(row.get(name) for name in cell)), {})
            block.setdefault(row["scheme"], []).append(row[value])
    return list(schemes), [
        [statistics.median(block[name]) for name in schemes]
        for block in found.values()
        if len(block) == len(schemes)
    ]
