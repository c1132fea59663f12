"""Changes of medians over seeds, as in Sander 2022."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.study import pairing
from h3sim.study.pairing import columns_of
from h3sim.study.statistics.intervals import scipy_stats
from h3sim.study.statistics.pairs import (
    HOW,
    MAX_SHARE_WITHOUT_RATIO,
    SCHEME,
    How,
    check_columns,
    how_of,
    values_by_setting,
)
from h3sim.trace import Rows
from h3sim.values.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.study.statistics.pairs import RowsOrColumns

EPSILON = 1e-10
"""Keeps Sander 2022's relative medians finite (printed "1-10" there)."""


class RelativeRow(NamedTuple):
    """Change of medians over seeds for one scheme, page and setting (Sander 2022).

    *delta* is relative, or in the unit of the value with `how="difference"`.
    """

    page: str
    setting: str
    scheme: str
    n: int
    median: float
    baseline_median: float
    delta: float
    p: float | None


def relative_medians(
    results: RowsOrColumns,
    *,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    how: How | None = None,
) -> Rows[RelativeRow]:
    """Return relative changes of the median over seeds, by page and setting (Sander 2022 § 5).

    delta = (median of the scheme - median of the baseline) / (median of the baseline + epsilon),
    with epsilon 1e-10; below 0 is faster. With *how* "difference", the default for metrics that can
    be 0, delta is the difference of the medians. Each combination of all other columns in which
    loads differ is a setting with rows of its own. `p` is from the two-sided Mann-Whitney U test,
    which assumes independent loads of both schemes; Sander calls p < 0.005 significant. It is None
    if all seeds give the same result (deterministic loads).

    Raises:
        InputError: if the scheme or column is unknown, if several different loads agree in
            everything, or if more than `MAX_SHARE_WITHOUT_RATIO` of the medians of the baseline are
            0, so that there is no relative change.
        NothingToMeasureError: if no load has the value together with one of the baseline.
        MissingExtraError: if scipy is not installed.
    """
    columns = columns_of(results, value)
    with ErrorCollector() as errors:
        errors.collect("", lambda: check_arguments(InputError, how=(HOW, how)))
        errors.collect("", lambda: check_columns(columns, baseline=baseline, value=value))
    settings, groups = values_by_setting(columns, value)
    kind = how_of(value, how)
    rows = [
        _relative_row(key, settings, scheme, values, by_scheme[baseline], kind)
        for key, by_scheme in groups.items()
        if baseline in by_scheme
        for scheme, values in by_scheme.items()
    ]
    n_others = len({row.scheme for row in rows} - {baseline})
    if not rows or (not n_others and not columns.is_constant(SCHEME)):
        key = ("page", *settings)
        reason = pairing.reason_without_pairs(columns, key, SCHEME, baseline, value)
        raise NothingToMeasureError(reason)
    n_zero = sum(row.baseline_median <= 0 for row in rows)
    if kind == "ratio" and n_zero > MAX_SHARE_WITHOUT_RATIO * len(rows):
        message = (
            f"the median {value} of {baseline} is 0 or less in {n_zero:,} of {len(rows):,} rows,"
            " which have no relative change: use how='difference'"
        )
        raise InputError.at("how", message)
    return Rows(RelativeRow, rows)


def _relative_row(
    key: tuple[Any, ...],
    names: Sequence[str],
    scheme: str,
    values: list[float],
    base: list[float],
    how: How,
) -> RelativeRow:
    """Return the change of medians, with a Mann-Whitney test."""
    own_median, base_median = median(values), median(base)
    p = None
    is_deterministic = len({*values}) == 1 and len({*base}) == 1
    if min(len(values), len(base)) > 1 and not is_deterministic:
        p = float(scipy_stats().mannwhitneyu(values, base).pvalue)
    page, *settings = key
    description = ", ".join(f"{name}={value}" for name, value in zip(names, settings, strict=True))
    delta = own_median - base_median
    if how == "ratio":
        delta /= base_median + EPSILON
    return RelativeRow(page, description, scheme, len(values), own_median, base_median, delta, p)
