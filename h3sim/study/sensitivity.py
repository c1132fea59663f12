"""Which knob matters: how much of a figure's variance each setting explains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.documents import shown
from h3sim.documents.arguments import check_arguments
from h3sim.errors import InputError, NothingToMeasureError, Problem, needing_extra
from h3sim.study.arguments import SEED
from h3sim.study.design import Range
from h3sim.study.rows import no_column
from h3sim.study.sweep import study_of
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from h3sim.study.run import PageLike, SchemeLike

__all__ = ["SensitivityRow", "sensitivity"]


class SensitivityRow(NamedTuple):
    """One option: its share of the variance, alone (`first`) and with all others (`total`).

    Each has a 95 % bootstrap interval.
    """

    option: str
    first: float
    first_low: float
    first_high: float
    total: float
    total_low: float
    total_high: float


def sensitivity(
    page: PageLike,
    *,
    scheme: SchemeLike = "rr",
    value: str = "byte_index_all_ms",
    samples: int = 64,
    seed: int = 0,
    store: str | Path | None = None,
    executor: Any = None,
    workers: int | None = None,
    **options: Any,
) -> Rows[SensitivityRow]:
    """Return the Sobol' indices of *value* for each of *options* that is a `Range`.

    The others are fixed. (d + 2) * *samples* loads run, for d ranges; *samples* is a power of two.
    Ranges are taken as independent, and evenly filled (in the logarithm where they say so).
    Saltelli's estimators, as scipy.stats.sobol_indices has them; more samples, narrower intervals.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if some loads do not have the value, or all have the same.
        MissingExtraError: if scipy is not installed.

    >>> rows = sensitivity(
    ...     "davies-meenan", rtt_ms=Range(low=1, high=5), rate_mbps=Range(low=1, high=50),
    ...     samples=8, executor="serial",
    ... )
    >>> rows[1].total > rows[0].total
    True
    """
    ranges = {name: limits for name, limits in options.items() if isinstance(limits, Range)}
    fixed = {name: given for name, given in options.items() if name not in ranges}
    _check(ranges, samples, seed)

    def figures_at(points: list[dict[str, float]]) -> list[float]:
        study = study_of(page, schemes=scheme, seeds=[seed], cells=points, **fixed)
        results = study.run(store=store, executor=executor, workers=workers, progress=False)
        if len(results) and value not in results.columns:
            message = no_column(value, results.columns)
            raise InputError([Problem(key="value", message=message)])
        found = results.column(value)
        if len(found) < len(points) or None in found:
            raise NothingToMeasureError(f"not all loads have {value}: {results.errors[:1]}")
        return found

    rows = _indices(figures_at, ranges, samples, seed)
    # The indices are parts of the variance, and of none they are 0 / 0.
    if not all(math.isfinite(row.total) for row in rows):
        raise NothingToMeasureError(f"{value} is the same in all loads")
    return Rows(SensitivityRow, rows)


def _check(ranges: Mapping[str, Range], samples: object, seed: object) -> None:
    problems = []
    if len(ranges) < 2:
        message = "at least two must be a Range: one alone explains all there is"
        problems.append(Problem(key="options", message=message))
    # Only so many points of Sobol's sequence are balanced; scipy refuses others.
    if type(samples) is not int or samples < 2 or samples & (samples - 1):
        message = f"must be a power of two of at least 2, is {shown(samples)}"
        problems.append(Problem(key="samples", message=message))
    try:
        check_arguments(InputError, seed=(SEED, seed))
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(problems)


def _indices(
    figures_at: Callable[[list[dict[str, float]]], list[float]],
    ranges: Mapping[str, Range],
    samples: int,
    seed: int,
) -> list[SensitivityRow]:
    """Return a row for each of *ranges*, by what *figures_at* the drawn points are."""
    with needing_extra("scipy", "study"):
        import numpy as np  # on use: extras
        from scipy import stats

    def figures(shares: Any) -> Any:
        """Return the figure at each column of *shares*, of which each row is one range."""
        points = [
            {
                # Shares of each range are drawn evenly, and mapped here: neither logarithms nor
                # whole numbers need a distribution of their own.
                name: limits.at(float(share))
                for (name, limits), share in zip(ranges.items(), column, strict=True)
            }
            for column in shares.T
        ]
        # All points in one study, so that its workers have them at once; scipy wants a row a
        # figure.
        return np.array([figures_at(points)])

    indices = stats.sobol_indices(
        func=figures, n=samples, dists=[stats.uniform()] * len(ranges), rng=seed
    )
    parts = zip(ranges, *_with_intervals(indices), strict=True)
    return [SensitivityRow(name, *map(float, ends)) for name, *ends in parts]


def _with_intervals(indices: Any) -> list[Any]:
    """Return the indices of first order and in total, each with its low and high ends."""
    import warnings

    import numpy as np

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what never varies, which has no interval
        bounds = indices.bootstrap(confidence_level=0.95)
    parts = []
    for name in ("first_order", "total_order"):
        found, interval = getattr(indices, name), getattr(bounds, name).confidence_interval
        ends = [np.where(np.isnan(end), found, end) for end in (interval.low, interval.high)]
        parts += [np.ravel(part) for part in (found, *ends)]
    return parts
