"""Sensitivity analysis: the share of a metric's variance that each setting explains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.config.load_config import refuse_options
from h3sim.config.options import SEED, check_running
from h3sim.errors import InputError, NothingToMeasureError, needing_extra
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import plain_number
from h3sim.study.design import Range, at_shares
from h3sim.study.statistics import check_columns
from h3sim.study.sweep import load_study
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from h3sim.study.rows import StudyRows
    from h3sim.study.run import PageLike, SchemeLike


_OWN = ("cells", "seeds")
"""Arguments of `load_study` that a sensitivity analysis sets itself."""


class SensitivityRow(NamedTuple):
    """Sobol' indices of one option: of first order (`first`) and with interactions (`total`).

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

    Other options are fixed. With d ranges, (d + 2) * *samples* loads run; *samples* is a power of
    2. Ranges are sampled independently and uniformly, or log-uniformly. Estimators of Saltelli, by
    scipy.stats.sobol_indices; more samples give narrower intervals.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if some loads lack the value, or all have the same one.
        MissingExtraError: if scipy is not installed.

    >>> rows = sensitivity(
    ...     "davies-meenan", rtt_ms=Range(low=1, high=5), rate_mbps=Range(low=1, high=50),
    ...     samples=8, executor="serial",
    ... )
    >>> rows[1].total > rows[0].total
    True
    """
    ranges = {name: limits for name, limits in options.items() if isinstance(limits, Range)}
    fixed = {name: given for name, given in options.items() if name not in (*ranges, *_OWN)}
    own = {"samples": (_SAMPLES, samples), "seed": (SEED, seed)}
    lowest: dict[str, Any] = {name: limits.low for name, limits in ranges.items()}
    with ErrorCollector() as errors:
        errors.collect("", lambda: check_running(store=store, executor=executor, workers=workers))
        errors.collect("", lambda: _check_ranges(ranges))
        taken = errors.collect("", lambda: check_arguments(InputError, **own))
        errors.collect("", lambda: refuse_options([name for name in _OWN if name in options], ()))
        errors.collect("", lambda: load_study(page, schemes=[scheme], **lowest, **fixed))

    def figures_at(points: list[dict[str, float]]) -> list[float]:
        study = load_study(page, schemes=[scheme], seeds=[taken["seed"]], cells=points, **fixed)
        results = study.run(store=store, executor=executor, workers=workers, progress=False)
        return _column(results, value, len(points))

    rows = _indices(figures_at, ranges, int(taken["samples"]), taken["seed"])
    # The indices are shares of the variance; without variance they would be 0 / 0.
    if not all(math.isfinite(row.total) for row in rows):
        raise NothingToMeasureError(f"{value} is the same in all loads")
    return Rows(SensitivityRow, rows)


def _column(results: StudyRows, value: str, n: int) -> list[float]:
    """Return the *value* of all *n* loads."""
    if len(results):
        check_columns(results, value=value)
    found = results.column(value)
    if len(found) < n or None in found:
        why = "".join(f": {error}" for error in results.errors[:1])
        raise NothingToMeasureError(f"not all loads have {value}{why}")
    return found


def _check_ranges(ranges: Mapping[str, Range]) -> None:
    if len(ranges) < 2:
        message = "at least two must be a Range: a single one explains all variance"
        raise InputError.at("options", message)


def _is_balanced(samples: Any) -> bool:
    number = plain_number(samples)
    return type(number) is int and number >= 2 and not number & (number - 1)


# Only powers of two of Sobol' points are balanced; scipy refuses other numbers.
_SAMPLES = Predicate("a power of two of at least 2", _is_balanced)


def _indices(
    figures_at: Callable[[list[dict[str, float]]], list[float]],
    ranges: Mapping[str, Range],
    samples: int,
    seed: int,
) -> list[SensitivityRow]:
    """Return the indices of each of *ranges*, estimated with *figures_at* the sampled points."""
    with needing_extra("scipy", "study"):
        import numpy as np  # lazy: optional dependencies
        from scipy import stats

    def figures(shares: Any) -> Any:
        """Return the metric at each column of *shares*, whose rows are the ranges."""
        # Quantiles are drawn uniformly and mapped here, so that log-uniform and integer ranges need
        # no distributions of their own.
        points = [at_shares(ranges, column) for column in shares.T]
        # All points in one study, so that its workers run in parallel; scipy expects one row per
        # metric.
        return np.array([figures_at(points)])

    indices = stats.sobol_indices(
        func=figures, n=samples, dists=[stats.uniform()] * len(ranges), rng=seed
    )
    parts = zip(ranges, *_with_intervals(indices), strict=True)
    return [SensitivityRow(name, *map(float, ends)) for name, *ends in parts]


def _with_intervals(indices: Any) -> list[Any]:
    """Return first-order and total indices, each with the ends of its interval."""
    import warnings

    import numpy as np

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about constant metrics, which have no interval
        bounds = indices.bootstrap(confidence_level=0.95)
    parts = []
    for name in ("first_order", "total_order"):
        found, interval = getattr(indices, name), getattr(bounds, name).confidence_interval
        ends = [np.where(np.isnan(end), found, end) for end in (interval.low, interval.high)]
        parts += [np.ravel(part) for part in (found, *ends)]
    return parts
