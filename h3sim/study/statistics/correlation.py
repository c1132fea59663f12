"""Rank correlation of two columns, with intervals over clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim.load.options import LEVEL, refuse
from h3sim.schema.arguments import check_arguments
from h3sim.study.pairing import columns_of
from h3sim.study.statistics.intervals import MIN_CLUSTERS, scipy_stats, t_quantile
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.study.columns import Columns
    from h3sim.study.rows import StudyRows

_FIELLER_VARIANCE = 0.437
"""Factor of 1 / (n - 4) in the variance of atanh(tau) (Fieller, Hartley and Pearson 1957)."""
_MIN_ROWS_FOR_TAU_INTERVAL = 10
"""Rows from which on the normal approximation of Kendall's tau is used."""


class Correlation(NamedTuple):
    """Rank correlation of two columns: Spearman's rho, and Kendall's tau-b with its interval."""

    n: int
    clusters: int
    """Independent groups of rows, on which p-values and the interval rest: pages, or seeds."""
    rho: float
    p_rho: float | None
    tau: float
    p_tau: float | None
    tau_low: float | None
    tau_high: float | None


def correlation(results: StudyRows, x: str, y: str, *, confidence: float = 0.95) -> Correlation:
    """Return the rank correlation of columns *x* and *y* over the rows with both.

    Rows of one page are not independent: pages are the clusters, or the seeds of a single page.
    If each has one row, tau's interval follows Fieller, Hartley and Pearson 1957: atanh(tau) is
    nearly normal with variance 0.437 / (n - 4); it is None for fewer than ten rows. Otherwise its
    spread, and that of rho, is found by leaving out one cluster at a time (the jackknife; Efron and
    Tibshirani 1993, ch. 11), with Student's t; None for fewer than three clusters.

    Raises:
        KeyError: if a column is unknown.
        InputError: if one of them is not a numeric column.
        NothingToMeasureError: if fewer than three rows have both, or one is the same in all.
        MissingExtraError: if scipy is not installed.

    >>> from h3sim.study.rows import StudyRows
    >>> rows = [
    ...     {"page": page, "seed": seed, "x": float(x + seed), "y": float(y)}
    ...     for page, x, y in zip("abcd", (1, 2, 3, 4), (1, 3, 2, 4))
    ...     for seed in range(5)
    ... ]
    >>> found = correlation(StudyRows.of(rows), "x", "y")
    >>> found.n, found.clusters
    (20, 4)
    """
    check_arguments(InputError, confidence=(LEVEL, confidence))
    first, second = results.column(x), results.column(y)
    known = [at for at, pair in enumerate(zip(first, second, strict=True)) if None not in pair]
    if len(known) < 3:
        raise NothingToMeasureError(f"fewer than three rows have {x} and {y}")
    values = [(first[at], second[at]) for at in known]
    _check_varies({x: [own for own, _ in values], y: [own for _, own in values]})
    labels = _independent_labels(columns_of(results).take(known))
    stats = scipy_stats()
    rho, tau = stats.spearmanr(values), stats.kendalltau(*zip(*values, strict=True))
    n_clusters = len({*labels})
    p_rho: float | None = float(rho.pvalue)
    p_tau: float | None = float(tau.pvalue)
    ends: tuple[float | None, float | None] = (None, None)
    if n_clusters < len(values):
        of_tau = _jackknife(lambda *pairs: stats.kendalltau(*pairs).statistic, values, labels)
        of_rho = _jackknife(lambda *pairs: stats.spearmanr(*pairs).statistic, values, labels)
        p_tau, p_rho = (_jackknife_p(own, n_clusters) for own in (of_tau, of_rho))
        ends = _jackknife_ends(of_tau, n_clusters, confidence)
    # atanh is infinite at -1 and 1, where all pairs of rows disagree or agree.
    elif len(values) >= _MIN_ROWS_FOR_TAU_INTERVAL and abs(tau.statistic) < 1:
        deviation = math.sqrt(_FIELLER_VARIANCE / (len(values) - 4))
        half_width = stats.norm.ppf((1 + confidence) / 2) * deviation
        centre = math.atanh(tau.statistic)
        ends = float(math.tanh(centre - half_width)), float(math.tanh(centre + half_width))
    return Correlation(
        n=len(values),
        clusters=n_clusters,
        rho=float(rho.statistic),
        p_rho=p_rho,
        tau=float(tau.statistic),
        p_tau=p_tau,
        tau_low=ends[0],
        tau_high=ends[1],
    )


def _independent_labels(columns: Columns) -> Sequence[object]:
    """Return a label for each row that rows share unless they are independent."""
    name = next((name for name in ("page", "seed") if not columns.is_constant(name)), None)
    return range(len(columns)) if name is None else columns[name]


_Spreadable: TypeAlias = "tuple[float, float] | None"
"""A Fisher-transformed correlation and its standard error."""


def _jackknife(
    statistic: Callable[..., float],
    values: Sequence[tuple[float, float]],
    labels: Sequence[object],
) -> _Spreadable:
    """Return atanh of a correlation and its standard error; None if there is no spread."""
    clusters = [*dict.fromkeys(labels)]
    if len(clusters) < MIN_CLUSTERS:
        return None
    parts = [
        [pair for pair, label in zip(values, labels, strict=True) if label != left_out]
        for left_out in (None, *clusters)
    ]
    columns = [tuple(zip(*part, strict=True)) for part in parts]
    if any(len({*column}) == 1 for pair in columns for column in pair):
        return None
    whole, *others = (float(statistic(*pair)) for pair in columns)
    if any(abs(own) >= 1 for own in (whole, *others)):
        return None
    transformed = [math.atanh(own) for own in others]
    mean = math.fsum(transformed) / len(transformed)
    squares = math.fsum((own - mean) ** 2 for own in transformed)
    error = math.sqrt(squares * (len(clusters) - 1) / len(clusters))
    return (math.atanh(whole), error) if error else None


def _jackknife_p(found: _Spreadable, n_clusters: int) -> float | None:
    if found is None:
        return None
    centre, error = found
    return float(2 * scipy_stats().t.sf(abs(centre) / error, n_clusters - 1))


def _jackknife_ends(
    found: _Spreadable, n_clusters: int, confidence: float
) -> tuple[float | None, float | None]:
    if found is None:
        return None, None
    centre, error = found
    half_width = t_quantile((1 + confidence) / 2, n_clusters - 1) * error
    return math.tanh(centre - half_width), math.tanh(centre + half_width)


def _check_varies(columns: Mapping[str, Sequence[Any]]) -> None:
    """Refuse columns that are constant or not numeric."""
    texts = [name for name in columns if not all(isinstance(v, int | float) for v in columns[name])]
    refuse(ValidationIssue(key=name, message="is not a numeric column") for name in texts)
    for name, values in columns.items():
        if len(set(values)) == 1:
            message = f"{name} is {values[0]:g} in all rows: a constant has no correlation"
            raise NothingToMeasureError(message)
