"""Confidence intervals of the mean of independent clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from h3sim.errors import InputError, Problem, needing_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["METHODS", "Method", "mean_interval", "ratio_end"]

Method: TypeAlias = Literal["bootstrap-t", "bca"]
METHODS: tuple[Method, ...] = get_args(Method)

_LEAST = 3
"""Of fewer clusters nothing is said: their spread is as good as unknown."""
_LEAST_FOR_T = 5
"""Of fewer, resamples without any spread decide where a studentized interval ends."""
_RESAMPLES = 9_999
"""(n + 1) times a tail is a whole number for the usual levels (Davison and Hinkley 1997, § 5.2)."""
_BCA_RESAMPLES = 2_000
_MOST_RESAMPLES = 99_999
_BEYOND = 20
"""So many resamples lie beyond each end, so that it is no matter of a few of them."""
_AT_ONCE = 1_000_000
"""So many numbers are drawn at a time: 8 MB, however many values and resamples there are."""
_MOST_LOG = 700.0
"""More than that overflows; an interval that ends there says nothing of its upper end."""


def mean_interval(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    method: Method = "bootstrap-t",
    seed: int = 0,
) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval of the mean of *values*; none of fewer than three.

    "bootstrap-t" studentizes each resample, so that skewed values get an interval that reaches
    farther on their long side (Efron 1982; Hall 1988; Davison and Hinkley 1997, § 5.2; Hesterberg
    2015, § 5, compares it with others). It takes the values as independent draws of one
    distribution with a variance; `docs/studies.md` says how often it covers, by how many and how
    skewed they are. Of three or four values, and where nearly all are equal so that many resamples
    have no spread, it is Student's, which takes them as normal.

    "bca" is the bias-corrected and accelerated one (Efron 1987), too short for few values.

    Raises:
        InputError: if there is no such method.
        MissingExtraError: if scipy is not installed.

    >>> [round(end, 2) for end in mean_interval([0.1, 0.2, 0.3, 0.2, 1.1])]
    [0.08, 2.21]
    """
    if method not in METHODS:
        message = f"must be {' or '.join(METHODS)}, is {method!r}"
        raise InputError([Problem(key="interval", message=message)])
    if len(values) < _LEAST:
        return None, None
    # Without a spread each resample would be 0 / 0, and BCa's acceleration too.
    if len(set(values)) == 1:
        return values[0], values[0]
    stats = _stats()
    import numpy as np  # on use: scipy brings it

    known = np.asarray(values, dtype=float)
    if method == "bca":
        return _bca(stats, known, confidence, seed)
    tails = None if len(known) < _LEAST_FOR_T else _studentized_tails(known, confidence, seed)
    if tails is None:
        reach = float(stats.t.ppf((1 + confidence) / 2, len(known) - 1))
        tails = -reach, reach
    mean, error = float(np.mean(known)), float(np.std(known, ddof=1)) / math.sqrt(len(known))
    # The upper tail says how far the mean may lie below, and the other way round.
    return mean - tails[1] * error, mean - tails[0] * error


def ratio_end(log_end: float) -> float:
    """Return the end of an interval of a ratio, by that of an interval of its logarithm.

    >>> ratio_end(0.0), ratio_end(40_000.0) < float("inf")
    (1.0, True)
    """
    return math.exp(min(log_end, _MOST_LOG))


def _studentized_tails(values: Any, confidence: float, seed: int) -> tuple[float, float] | None:
    """Return the quantiles of resampled t statistics, or None where one of them is not finite."""
    import numpy as np

    n, tail = len(values), (1 - confidence) / 2
    # So many that (resamples + 1) * tail is at least `_BEYOND`: rare tails take more of them.
    resamples = min(_MOST_RESAMPLES, max(_RESAMPLES, math.ceil(_BEYOND / tail) - 1))
    source = np.random.default_rng(seed)
    parts = []
    for first in range(0, resamples, step := max(1, _AT_ONCE // n)):
        drawn = values[source.integers(0, n, (min(step, resamples - first), n))]
        moved = drawn.mean(axis=1) - values.mean()
        errors = drawn.std(axis=1, ddof=1) / math.sqrt(n)
        # The computed spread of equal numbers is not always 0.
        errors[np.ptp(drawn, axis=1) == 0] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            # A resample of equal values is infinitely far away, but at 0 if its mean did not move.
            parts.append(np.where(moved == 0, 0.0, moved / errors))
    ordered = np.sort(np.concatenate(parts))
    # 1 - confidence is not exact: for 0.9 it is 499.99... that would be cut to 499.
    beyond = max(1, math.floor((resamples + 1) * tail + 1e-9))
    low, high = float(ordered[beyond - 1]), float(ordered[-beyond])
    # Where so many resamples have no spread that they reach the tail, Student's is taken.
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _bca(stats: Any, values: Any, confidence: float, seed: int) -> tuple[float, float]:
    import numpy as np

    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=_BCA_RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def _stats() -> Any:
    with needing_extra("scipy", "study"):
        from scipy import stats  # on use: an extra
    return stats
