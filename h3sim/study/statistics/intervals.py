"""Confidence intervals of means: the studentized bootstrap, and Student's."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.values.errors import needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

IntervalOf: TypeAlias = "Callable[[list[float]], tuple[float, float] | tuple[None, None]]"
MIN_CLUSTERS = 3
"""Fewest clusters for an interval: the spread of fewer is practically unknown."""
_MIN_STUDENTIZED_VALUES = 5
"""Fewest values for a studentized interval: with fewer, resamples without spread dominate."""
_MIN_RESAMPLES = 9_999
"""(n + 1) times a tail is a whole number for the usual levels (Davison and Hinkley 1997, § 5.2)."""
_MAX_RESAMPLES = 99_999
"""Bootstrap samples of a studentized interval, at most, however small its tails are."""
_MIN_RESAMPLES_PER_TAIL = 20
"""Fewest resamples beyond each end of an interval, so that it does not depend on a few of them."""
_MAX_DRAWN_VALUES = 1_000_000
"""Number of values drawn at a time, which take 8 MB."""
_MAX_LOG = 700.0
"""Largest logarithm without overflow; an interval that ends here has no meaningful upper end."""


def mean_interval(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    seed: int = 0,
) -> tuple[float, float] | tuple[None, None]:
    """Return the confidence interval of the mean of *values*; None for fewer than three.

    The bootstrap studentizes each resample, so that intervals of skewed values extend farther on
    the long side (Efron 1982; Hall 1988; Davison and Hinkley 1997, § 5.2; Hesterberg 2015, § 5,
    compares it with others). It assumes independent draws from one distribution with finite
    variance; `docs/studies.md` lists its coverage by number and skewness of values. For three or
    four values, or if nearly all are equal so that many resamples have no spread, it falls back to
    Student's interval, which assumes normality.

    Raises:
        MissingExtraError: if scipy is not installed.

    >>> [round(end, 2) for end in mean_interval([0.1, 0.2, 0.3, 0.2, 1.1])]
    [0.08, 2.21]
    """
    if len(values) < MIN_CLUSTERS:
        return None, None
    # Without spread each resample would be 0 / 0.
    if len(set(values)) == 1:
        return values[0], values[0]
    scipy_stats()  # numpy is installed with it
    import numpy as np  # lazy

    sample = np.asarray(values, dtype=float)
    is_small = len(sample) < _MIN_STUDENTIZED_VALUES
    tails = None if is_small else _studentized_tails(sample, confidence, seed)
    if tails is None:
        return student_interval(values, confidence)
    mean, error = float(np.mean(sample)), float(np.std(sample, ddof=1)) / math.sqrt(len(sample))
    low_tail, high_tail = tails
    # The upper tail gives the lower end, and vice versa.
    return mean - high_tail * error, mean - low_tail * error


def student_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return Student's interval of the mean of at least two *values*, assumed normal.

    Raises:
        MissingExtraError: if scipy is not installed.

    >>> [round(end, 3) for end in student_interval([1.0, 2.0, 3.0], 0.95)]
    [-0.484, 4.484]
    """
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half_width = t_quantile((1 + confidence) / 2, n - 1) * math.sqrt(variance / n)
    return mean - half_width, mean + half_width


@cache
def t_quantile(probability: float, degrees_of_freedom: int) -> float:
    """Return the quantile of Student's distribution at that *probability*."""
    return float(scipy_stats().t.ppf(probability, degrees_of_freedom))


def ratio_end(log_end: float) -> float:
    """Return the end of a ratio's interval, from the end of its logarithm's interval.

    >>> ratio_end(0.0), ratio_end(40_000.0) < float("inf")
    (1.0, True)
    """
    return math.exp(min(log_end, _MAX_LOG))


def _studentized_tails(values: Any, confidence: float, seed: int) -> tuple[float, float] | None:
    """Return the tail quantiles of resampled t statistics, or None if one is not finite."""
    import numpy as np

    n, tail = len(values), (1 - confidence) / 2
    # A rare tail needs more resamples.
    n_for_tail = math.ceil(_MIN_RESAMPLES_PER_TAIL / tail) - 1
    n_resamples = min(_MAX_RESAMPLES, max(_MIN_RESAMPLES, n_for_tail))
    source = np.random.default_rng(seed)
    parts = []
    step = max(1, _MAX_DRAWN_VALUES // n)
    for first in range(0, n_resamples, step):
        drawn = values[source.integers(0, n, (min(step, n_resamples - first), n))]
        shifts = drawn.mean(axis=1) - values.mean()
        errors = drawn.std(axis=1, ddof=1) / math.sqrt(n)
        # The computed spread of equal numbers is not always 0.
        errors[np.ptp(drawn, axis=1) == 0] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            # t of a resample of equal values is infinite, or 0 if its mean did not change.
            parts.append(np.where(shifts == 0, 0.0, shifts / errors))
    ordered = np.sort(np.concatenate(parts))
    # 1 - confidence is not exact: for 0.9, 499.99... would be truncated to 499.
    n_beyond = max(1, math.floor((n_resamples + 1) * tail + 1e-9))
    low, high = float(ordered[n_beyond - 1]), float(ordered[-n_beyond])
    # Infinite if the resamples without spread reach the tail: then Student's interval is used.
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def scipy_stats() -> Any:
    """Return `scipy.stats`.

    Raises:
        MissingExtraError: if scipy is not installed.
    """
    with needing_extra("scipy", "study"):
        from scipy import stats  # lazy: optional dependency
    return stats
