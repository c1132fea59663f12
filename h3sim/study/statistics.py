"""Statistics of a study: paired differences, intervals, wins, Friedman ranks, sample sizes.

Each method is documented with its source and assumptions; `docs/studies.md` summarizes them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache, partial
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from h3sim.load.figures import FIGURES
from h3sim.load.options import LEVEL, SEED, refuse
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import is_quantity, plain_number
from h3sim.schema.values import Choice, ListOf, OrNone, Scalar, Text
from h3sim.study import pairing
from h3sim.study.columns import Columns
from h3sim.study.pairing import LOAD_COLUMNS, columns_of
from h3sim.study.rows import StudyRows, no_column
from h3sim.trace import Rows
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue, needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


Method: TypeAlias = Literal["bootstrap-t", "bca"]
IntervalOf: TypeAlias = "Callable[[list[float]], tuple[float, float] | tuple[None, None]]"
METHODS: tuple[Method, ...] = get_args(Method)

_MIN_CLUSTERS = 3
"""Fewest clusters for an interval: the spread of fewer is practically unknown."""
_MIN_STUDENTIZED_VALUES = 5
"""Fewest values for a studentized interval: with fewer, resamples without spread dominate."""
_MIN_RESAMPLES = 9_999
"""(n + 1) times a tail is a whole number for the usual levels (Davison and Hinkley 1997, § 5.2)."""
_BCA_RESAMPLES = 2_000
"""Bootstrap samples of a BCa interval."""
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
    method: Method = "bootstrap-t",
    seed: int = 0,
) -> tuple[float, float] | tuple[None, None]:
    """Return the confidence interval of the mean of *values*; None for fewer than three.

    "bootstrap-t" studentizes each resample, so that intervals of skewed values extend farther on
    the long side (Efron 1982; Hall 1988; Davison and Hinkley 1997, § 5.2; Hesterberg 2015, § 5,
    compares it with others). It assumes independent draws from one distribution with finite
    variance; `docs/studies.md` lists its coverage by number and skewness of values. For three or
    four values, or if nearly all are equal so that many resamples have no spread, it falls back to
    Student's interval, which assumes normality.

    "bca" is the bias-corrected and accelerated bootstrap (Efron 1987), too short for few values.

    Raises:
        InputError: if the method is unknown.
        MissingExtraError: if scipy is not installed.

    >>> [round(end, 2) for end in mean_interval([0.1, 0.2, 0.3, 0.2, 1.1])]
    [0.08, 2.21]
    """
    if method not in METHODS:
        raise InputError.at("interval", f"must be {' or '.join(METHODS)}, is {method!r}")
    if len(values) < _MIN_CLUSTERS:
        return None, None
    # Without spread each resample would be 0 / 0, and so would BCa's acceleration.
    if len(set(values)) == 1:
        return values[0], values[0]
    stats = scipy_stats()
    import numpy as np  # lazy: installed with scipy

    sample = np.asarray(values, dtype=float)
    if method == "bca":
        return _bca_interval(stats, sample, confidence, seed)
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
    half_width = _t_quantile((1 + confidence) / 2, n - 1) * math.sqrt(variance / n)
    return mean - half_width, mean + half_width


@cache
def _t_quantile(probability: float, degrees_of_freedom: int) -> float:
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


def _bca_interval(stats: Any, values: Any, confidence: float, seed: int) -> tuple[float, float]:
    """Return a bias-corrected and accelerated bootstrap interval of the mean."""
    import numpy as np

    interval = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=_BCA_RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def scipy_stats() -> Any:
    """Return `scipy.stats`.

    Raises:
        MissingExtraError: if scipy is not installed.
    """
    with needing_extra("scipy", "study"):
        from scipy import stats  # lazy: optional dependency
    return stats


_SCHEME = "scheme"
How: TypeAlias = Literal["ratio", "difference"]
HOWS: tuple[How, ...] = get_args(How)
MAX_SHARE_WITHOUT_RATIO = 0.05
"""Share of pairs up to which a comparison of ratios leaves out those that have none.

A value of 0 has no ratio to another. If more pairs were left out, those that remain would no longer
represent the loads: a scheme without any blocking would vanish from a comparison of blocking.
"""
_HEADER_COUNTS = (
    *("hol_total_ms", "blocked", "n_lost"),
    *("held_compressed_bytes", "held_decompressed_bytes"),
)
"""Columns of studies of header lists that can be 0."""
_CAN_BE_ZERO = {figure.name for figure in FIGURES if figure.can_be_zero}.union(_HEADER_COUNTS)


class Pair(NamedTuple):
    """Values of a load and of the baseline's load for the same page, setting and seed."""

    page: str
    seed: int
    baseline: float
    value: float
    outcomes: tuple[int, ...] = ()
    """Hashes of all metrics of both loads, by which seeds that change nothing are recognized."""

    @property
    def has_ratio(self) -> bool:
        """True if both values are above 0."""
        return self.baseline > 0 and self.value > 0

    @property
    def speedup(self) -> float:
        """The baseline's value divided by the other, if `has_ratio`."""
        return self.baseline / self.value

    @property
    def difference(self) -> float:
        """The value minus the baseline's."""
        return self.value - self.baseline


def how_of(value: str, how: How | None) -> How:
    """Return how values are compared by default: by differences if the metric can be 0.

    >>> how_of("page_load_ms", None), how_of("hol_stream_bytes", None)
    ('ratio', 'difference')
    """
    return how or ("difference" if value in _CAN_BE_ZERO else "ratio")


RowsOrColumns: TypeAlias = StudyRows | Columns


def check_columns(
    results: RowsOrColumns, *, value: object, baseline: object = None, over: str = _SCHEME
) -> None:
    """Refuse a *value* that is not a numeric column, and a *baseline* that column *over* lacks.

    Raises:
        InputError: listing both, and axes that the rows lack.
    """
    baseline_type = OrNone(Text() if over == _SCHEME else Scalar())
    check_arguments(
        InputError, value=(Text(), value), baseline=(baseline_type, baseline), over=(Text(), over)
    )
    table = columns_of(results, value, over)
    columns = table.names
    problems = []
    if value not in columns:
        problems.append(ValidationIssue(key="value", message=no_column(value, columns)))
    elif not all(isinstance(own, int | float | None) for own in table[str(value)]):
        problems.append(ValidationIssue(key="value", message=f"{value} is not a numeric column"))
    if lacking := [name for name in LOAD_COLUMNS if columns and name not in columns]:
        message = f"lack the columns {', '.join(lacking)}, so that loads cannot be paired"
        problems.append(ValidationIssue(key="rows", message=message))
    elif columns and over not in columns:
        problems.append(ValidationIssue(key="over", message=no_column(over, columns)))
    elif baseline is not None and baseline not in (known := table.distinct(over)):
        message = f"no load has {over} {format_value(baseline)}"
        if over != _SCHEME:
            message += f"; there are {', '.join(map(format_value, known))}"
        problems.append(ValidationIssue(key="baseline", message=message))
    refuse(problems)


def pairs_by_scheme(results: RowsOrColumns, baseline: str, value: str) -> dict[str, list[Pair]]:
    """Return the pairs of each scheme that have a ratio, as `pairs_over`.

    Raises:
        InputError: as `pairs_over`, or if too many pairs have no ratio.
    """
    pairs = pairs_over(results, _SCHEME, baseline, value)
    return {scheme: with_ratios(own, scheme, value) for scheme, own in pairs.items()}


def pairs_over(
    results: RowsOrColumns, over: str, baseline: Any, value: str
) -> dict[Any, list[Pair]]:
    """Return the pairs of each value of *over*, including those of the baseline, in row order.

    The two loads of a pair agree in everything but *over*: page and its digest, every setting, seed
    and version. Loads without the value have no pair.

    Raises:
        InputError: if there is no such baseline or column, or several different loads agree in
            everything.
        NothingToMeasureError: if no load of another value of *over* has a partner.
    """
    columns = columns_of(results, value, over)
    check_columns(columns, baseline=baseline, value=value, over=over)
    found = pairing.varying(columns, columns.axes, over=over)
    # Page and seed are no axes of studies that have only one, but always columns.
    shared = [name for name in dict.fromkeys(("page", *found, "seed")) if name != over]
    loads = pairing.distinct_loads(columns, [over, *shared], value)
    pairs: dict[Any, list[Pair]] = {}
    for (level, *where), (own, outcome) in loads.items():
        if (baseline, *where) in loads:
            of_baseline, baseline_outcome = loads[baseline, *where]
            named = dict(zip(shared, where, strict=True))
            # A pair of pages has two names.
            page, outcomes = named.get("page", ""), (baseline_outcome, outcome)
            pair = Pair(page, named["seed"], of_baseline, own, outcomes)
            pairs.setdefault(level, []).append(pair)
    if not set(pairs) - {baseline} and len({level for level, *_ in loads}) > 1:
        raise NothingToMeasureError(
            pairing.reason_without_pairs(columns, shared, over, baseline, value)
        )
    return pairs


def with_ratios(pairs: Sequence[Pair], level: object, value: str) -> list[Pair]:
    """Return the pairs whose values are both above 0.

    Raises:
        InputError: if more than `MAX_SHARE_WITHOUT_RATIO` of the pairs are not.
    """
    usable = [pair for pair in pairs if pair.has_ratio]
    n_without = len(pairs) - len(usable)
    if n_without > MAX_SHARE_WITHOUT_RATIO * len(pairs):
        message = (
            f"{value} has no ratio in {n_without:,} of {len(pairs):,} pairs of"
            f" {format_value(level)}, because a value is 0 or less; ratios of the others (more than"
            f" {100 * MAX_SHARE_WITHOUT_RATIO:g} % would be left out) would be misleading: use"
            " how='difference'"
        )
        raise InputError.at("how", message)
    return usable


def differences_by_scheme(
    results: StudyRows, baseline: str, value: str
) -> dict[str, dict[str, float]]:
    """Return the mean difference of *value* to the baseline, by scheme and cluster.

    Loads are paired as by `pairs_over`; a cluster is a page or, for a single page, a seed.

    Raises:
        InputError: as `pairs_over`.
        NothingToMeasureError: as `pairs_over`.
    """
    columns = columns_of(results, value)
    pairs = pairs_over(columns, _SCHEME, baseline, value)
    by_seed = columns.is_constant("page")
    return {
        scheme: {
            name: math.fsum(pair.difference for pair in cluster) / len(cluster)
            for name, cluster in _clusters(own, by_seed=by_seed).items()
        }
        for scheme, own in pairs.items()
    }


EPSILON = 1e-10
"""Keeps Sander 2022's relative medians finite (printed "1-10" there)."""
_SMALL_WIN, _LARGE_WIN = 0.05, 0.25
"""A speedup counts as a win beyond these (Sander 2022 § 5)."""
_FIELLER_VARIANCE = 0.437
"""Factor of 1 / (n - 4) in the variance of atanh(tau) (Fieller, Hartley and Pearson 1957)."""
_MIN_ROWS_FOR_TAU_INTERVAL = 10
"""Rows from which on the normal approximation of Kendall's tau is used."""
_HOW = OrNone(Choice(HOWS), none=None)
_METHOD = Predicate(" or ".join(METHODS), lambda value: isinstance(value, str) and value in METHODS)


class SchemeRow(NamedTuple):
    """Comparison of one scheme with the baseline; a speedup above 1 is faster.

    `geometric` is the geometric mean of the clusters' speedups, `low` to `high` its confidence
    interval, `arithmetic` the mean as in Marx 2019, Table 2. `p` is Wilcoxon's, `p_corrected` the
    same corrected for all schemes, `effect` the matched-pairs rank-biserial correlation. `p_least`
    is the smallest p that so few clusters can have, if all agree: 0.125 for four. `without_ratio`
    is the number of pairs that were left out because a value is 0.
    """

    scheme: str
    pairs: int
    clusters: int
    arithmetic: float
    geometric: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    effect: float
    wins_5: int
    losses_5: int
    ties_5: int
    wins_25: int
    losses_25: int
    without_ratio: int = 0
    p_least: float | None = None


class DifferenceRow(NamedTuple):
    """Difference of one scheme to the baseline, in the unit of the value; below 0 is less.

    `mean` and `baseline_mean` are means over clusters of the clusters' means, `difference` is the
    first minus the second, and `low` to `high` its confidence interval. The other columns are as in
    `SchemeRow`: above 0, the effect is a lower value. The pairs are those in which the value is
    `lower`, `equal` and `higher`.
    """

    scheme: str
    pairs: int
    clusters: int
    baseline_mean: float
    mean: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    effect: float
    lower: int
    equal: int
    higher: int
    p_least: float | None = None


class ContrastRow(NamedTuple):
    """One value of an axis against *baseline*, in one setting; a speedup above 1 is faster.

    *pairing* names what the loads of a pair have in common, *cluster* what is independent: pages,
    or seeds of a single page. *refusal* says why there is no interval. The rest is as in
    `SchemeRow`; `p_corrected` is corrected for all rows.
    """

    setting: str
    level: Any
    baseline: Any
    pairing: str
    cluster: str
    pairs: int
    clusters: int
    geometric: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    effect: float
    refusal: str
    without_ratio: int = 0
    p_least: float | None = None


class DifferenceContrastRow(NamedTuple):
    """One value of an axis minus the baseline, in one setting; below 0 is less.

    *setting*, *pairing*, *cluster* and *refusal* are as in `ContrastRow`, the rest as in
    `DifferenceRow`.
    """

    setting: str
    level: Any
    baseline: Any
    pairing: str
    cluster: str
    pairs: int
    clusters: int
    baseline_mean: float
    mean: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    effect: float
    lower: int
    equal: int
    higher: int
    refusal: str
    p_least: float | None = None


TestedT = TypeVar("TestedT", SchemeRow, ContrastRow, DifferenceRow, DifferenceContrastRow)


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


def compare_schemes(
    results: RowsOrColumns,
    *,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    how: How | None = None,
    pool: Sequence[str] = (),
    confidence: float = 0.95,
    interval: Method = "bootstrap-t",
    correction: Correction = "holm",
    seed: int = 0,
) -> Rows[Any]:
    """Compare each scheme with *baseline*, paired by page, setting and seed.

    Schemes share common random numbers, so values are compared pair by pair: the two loads of a
    pair agree in everything but the scheme (`h3sim.study.pairing`). Pairs of one page are not
    independent: they are averaged into a cluster, and interval and test are over clusters, so they
    generalize to similar pages. For a single page each seed is a cluster, and they generalize to
    other seeds of that page.

    With *how* "ratio", rows are `SchemeRow`: ratios of the values, whose logarithms are averaged.
    With "difference", they are `DifferenceRow`, whose values are averaged themselves. The default
    is "difference" for metrics that can be 0, such as blocked bytes or losses, because a value of 0
    has no ratio to another; all other metrics and columns are compared by ratios.

    - Interval: of the mean, by `h3sim.study.statistics.mean_interval`: the studentized bootstrap
      over clusters, or with *interval* "bca" the bias-corrected and accelerated one.
    - Test: Wilcoxon's signed ranks, two-sided; it assumes differences symmetric about their median.
      Zeros are ranked and half of their ranks counted on either side, where Pratt 1959 drops them:
      p is conservative. Corrected for the number of schemes: see `corrected`.
    - Effect: matched-pairs rank-biserial correlation (Kerby 2014), -1 to 1; above 0 is faster.
    - Wins and losses count pairs whose speedup lies beyond 5 % and 25 %.

    Other axes than page, seed and scheme are averaged over only where *pool* names them.

    Raises:
        InputError: if there is no such scheme or column, if loads differ in columns that *pool*
            lacks, or if more than `MAX_SHARE_WITHOUT_RATIO` of a scheme's pairs have no ratio.
        NothingToMeasureError: if no pair has the value.
        MissingExtraError: if scipy is not installed.
    """
    columns = columns_of(results, value)
    with ErrorCollector() as errors:
        interval_of = errors.collect(
            "", lambda: _interval(confidence, interval, seed, how, correction)
        )
        errors.collect("", lambda: check_pooled(columns, over=_SCHEME, pool=pool, **_OF_TABLES))
        errors.collect("", lambda: check_columns(columns, value=value, baseline=baseline))
    pairs = pairs_over(columns, _SCHEME, baseline, value)
    by_seed = columns.is_constant("page")
    row_of = _row_function(value, how, interval_of, by_seed=by_seed)
    with ErrorCollector() as errors:
        rows = [
            errors.collect("", partial(row_of, scheme, own, is_baseline=scheme == baseline))
            for scheme, own in pairs.items()
        ]
    rows = [row for row in rows if row is not None]
    if not rows:
        raise NothingToMeasureError(f"no load has {value} together with one of {baseline}")
    return Rows(type(rows[0]), corrected(rows, correction))


_OF_TABLES = {
    "key": "by",
    "remedy": "name what has a row of its own in by=, what is averaged over in pool=, or filter",
}
"""Options of `check_pooled` for tables, which may have rows of their own."""


def check_pooled(
    results: RowsOrColumns,
    *,
    over: str,
    by: Sequence[str] = (),
    pool: Sequence[str] = (),
    key: str = "pool",
    remedy: str = pairing.NAME_POOLED,
) -> None:
    """Refuse to average over columns other than page and seed unless *pool* names them.

    Raises:
        InputError: listing the other columns in which the loads differ, and unknown columns.
    """
    check_arguments(InputError, by=(_COLUMN_NAMES, by), pool=(_COLUMN_NAMES, pool))
    table = columns_of(results, over)
    columns = table.names
    refuse(
        ValidationIssue(key=key, message=no_column(name, columns))
        for key, names in (("by", by), ("pool", pool))
        for name in names
        if columns and name not in columns
    )
    pairing.check_pooled(
        table,
        pairing.varying(table, table.axes, over=over),
        named=(over, *by, *pool),
        key=key,
        remedy=remedy,
    )


_COLUMN_NAMES = ListOf(Text(), "names of columns")


def compare_over(
    results: RowsOrColumns,
    *,
    over: str,
    baseline: Any,
    value: str = "byte_index_all_ms",
    how: How | None = None,
    by: Sequence[str] = (),
    pool: Sequence[str] = (),
    confidence: float = 0.95,
    interval: Method = "bootstrap-t",
    correction: Correction = "holm",
    seed: int = 0,
) -> Rows[Any]:
    """Compare each value of the axis *over* with *baseline*, paired, in each setting of *by*.

    Without a baseline, each value is compared with each one before it.
    The loads of a pair have everything in common but *over*. Pairs of one page are averaged into a
    cluster, as by `compare_schemes`; for a single page, or if pages are compared, each seed is a
    cluster. Interval, test, effect and *how* are those of `compare_schemes`; if there are too few
    independent clusters for them, the row has the reason. Rows are `ContrastRow` for ratios,
    `DifferenceContrastRow` for differences.

    Raises:
        InputError: if there is no such column or baseline, if loads differ in columns that neither
            *by* nor *pool* names, or if more than `MAX_SHARE_WITHOUT_RATIO` of the pairs of a row
            have no ratio.
        NothingToMeasureError: if no pair has the value.
        MissingExtraError: if scipy is not installed.
    """
    columns = columns_of(results, value, over, *(by if isinstance(by, list | tuple) else ()))
    with ErrorCollector() as errors:
        interval_of = errors.collect(
            "", lambda: _interval(confidence, interval, seed, how, correction)
        )
        errors.collect("", lambda: _check_over(over))
        values = {"value": value} if baseline is None else {"value": value, "baseline": baseline}
        errors.collect("", lambda: check_columns(columns, **values, over=over))
        if isinstance(over, str):
            errors.collect(
                "", lambda: check_pooled(columns, over=over, by=by, pool=pool, **_OF_TABLES)
            )
    groups = columns.group(by) if by else {(): columns}
    rows: list[Any] = []
    reasons: list[str] = []
    with ErrorCollector() as errors:
        for key, some in groups.items():
            setting = _setting_text(by, key)
            for level, compared in _compared_with(some, over, baseline):
                found = partial(_contrasts, setting, compared, over, level, value, how, interval_of)
                try:
                    rows += errors.collect("", found, default=())
                except NothingToMeasureError as error:
                    reasons.append(str(error))
    if not rows:
        reason = f"no load has {value} beside one of {over} {baseline}"
        raise NothingToMeasureError(reasons[0] if reasons else reason)
    return Rows(type(rows[0]), corrected(rows, correction))


def _compared_with(columns: Columns, over: str, baseline: Any) -> Iterator[tuple[Any, Columns]]:
    """Yield each baseline, by default all, with the rows that are compared with it."""
    levels = columns.distinct(over)
    if baseline is not None:
        levels = [level for level in levels if level == baseline]
    earlier: set[Any] = set()
    for level in levels[: len(levels) - (baseline is None)]:
        own = columns[over]
        yield level, columns.take([at for at, value in enumerate(own) if value not in earlier])
        earlier.add(level)


def _check_over(over: str) -> None:
    if over == "seed":
        message = "must be an axis whose values differ in kind: seeds are replications"
        raise InputError.at("over", message)


def _setting_text(by: Sequence[str], key: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(by, key, strict=True))


def _contrasts(
    setting: str,
    columns: Columns,
    over: str,
    baseline: Any,
    value: str,
    how: How | None,
    interval: IntervalOf,
) -> list[ContrastRow | DifferenceContrastRow]:
    """Return the rows of one setting, one for each value except the baseline."""
    by_seed = over == "page" or columns.is_constant("page")
    cluster = "seed" if by_seed else "page"
    varied = pairing.varying(columns, columns.axes, over=over)
    shared = [name for name in dict.fromkeys(("page", *varied)) if name != over and name in varied]
    row_of = _row_function(value, how, interval, by_seed=by_seed)
    rows: list[ContrastRow | DifferenceContrastRow] = []
    for level, pairs in pairs_over(columns, over, baseline, value).items():
        row = None if level == baseline else row_of(str(level), pairs)
        if row is None:
            continue
        named: dict[str, Any] = row._asdict() | {
            "setting": setting,
            "level": level,
            "baseline": baseline,
            "pairing": ", ".join(shared) or "all settings",
            "cluster": cluster,
            "refusal": _refusal(row, cluster),
        }
        kind = ContrastRow if isinstance(row, SchemeRow) else DifferenceContrastRow
        rows.append(kind(**{name: named[name] for name in kind._fields}))
    return rows


NO_SEED_MATTERS = "no seed changes the result: one independent load, which is no sample"


def _refusal(row: SchemeRow | DifferenceRow, cluster: str) -> str:
    """Return the reason why a row has no interval; "" if it has one."""
    if row.low is not None:
        return ""
    if cluster == "seed" and row.clusters == 1 < row.pairs:
        return NO_SEED_MATTERS
    clusters = f"{row.clusters} independent {cluster}{'s' * (row.clusters != 1)}"
    return f"{clusters}: an interval takes {_MIN_CLUSTERS} or more"


def _interval(
    confidence: object, method: object, seed: object, how: object, correction: object
) -> IntervalOf:
    """Return the function that estimates intervals, after checking its and the other arguments."""
    typed: dict[str, Any] = {
        "confidence": (LEVEL, confidence),
        "interval": (_METHOD, method),
        "seed": (SEED, seed),
    }
    typed |= {"how": (_HOW, how), "correction": (_CORRECTIONS, correction)}
    valid = check_arguments(InputError, **typed)
    return partial(
        mean_interval,
        method=valid["interval"],
        confidence=valid["confidence"],
        seed=valid["seed"],
    )


def _are_copies(pairs: Sequence[Pair]) -> bool:
    """Return whether all seeds have the same loads, so that they are no sample.

    Loads are the same if all of their metrics are: a count may be 0 with every seed by chance.
    """
    loads_by_seed: dict[int, list[tuple[float, ...]]] = {}
    for pair in pairs:
        load = (pair.value, pair.baseline, *pair.outcomes)
        loads_by_seed.setdefault(pair.seed, []).append(load)
    first, *others = loads_by_seed.values()
    return all(other == first for other in others)


RowFunction: TypeAlias = "Callable[..., SchemeRow | DifferenceRow | None]"


def _row_function(
    value: str, how: How | None, interval: IntervalOf, *, by_seed: bool
) -> RowFunction:
    """Return the function that compares the pairs of a scheme: its arguments are name and pairs."""
    if how_of(value, how) == "difference":
        return partial(_difference_row, interval=interval, by_seed=by_seed)
    return partial(_scheme_row, value=value, interval=interval, by_seed=by_seed)


def _scheme_row(
    scheme: str,
    pairs: Sequence[Pair],
    *,
    value: str,
    interval: IntervalOf,
    by_seed: bool,
    is_baseline: bool = False,
) -> SchemeRow | None:
    """Return the mean ratio of a scheme, with pages or seeds as clusters; None without any.

    Seeds that are copies of one load are one cluster.
    """
    usable = with_ratios(pairs, scheme, value)
    if not usable:
        return None
    speedups = [pair.speedup for pair in usable]
    clusters = _independent_clusters(usable, by_seed=by_seed, is_baseline=is_baseline)
    logs = [
        math.fsum(math.log(pair.speedup) for pair in cluster) / len(cluster) for cluster in clusters
    ]
    low, high = interval(logs)
    return SchemeRow(
        scheme=scheme,
        pairs=len(speedups),
        clusters=len(logs),
        arithmetic=math.fsum(speedups) / len(speedups),
        geometric=math.exp(math.fsum(logs) / len(logs)),
        low=None if low is None else ratio_end(low),
        high=None if high is None else ratio_end(high),
        # Comparing the baseline with itself is not a test and does not count as one.
        p=None if is_baseline else _wilcoxon(logs),
        p_least=None if is_baseline else _least_p(len(logs)),
        p_corrected=None,
        effect=rank_biserial(logs),
        wins_5=sum(ratio > 1 + _SMALL_WIN for ratio in speedups),
        # A loss is the inverse of a win, not 0.95, so that swapping scheme and baseline swaps wins
        # and losses.
        losses_5=sum(ratio < 1 / (1 + _SMALL_WIN) for ratio in speedups),
        ties_5=sum(1 / (1 + _SMALL_WIN) <= ratio <= 1 + _SMALL_WIN for ratio in speedups),
        wins_25=sum(ratio > 1 + _LARGE_WIN for ratio in speedups),
        losses_25=sum(ratio < 1 / (1 + _LARGE_WIN) for ratio in speedups),
        without_ratio=len(pairs) - len(usable),
    )


def _difference_row(
    scheme: str,
    pairs: Sequence[Pair],
    *,
    interval: IntervalOf,
    by_seed: bool,
    is_baseline: bool = False,
) -> DifferenceRow:
    """Return the mean difference of a scheme, with pages or seeds as clusters as in ratios."""
    clusters = _independent_clusters(pairs, by_seed=by_seed, is_baseline=is_baseline)
    means, of_baseline, differences = (
        [math.fsum(getattr(pair, name) for pair in cluster) / len(cluster) for cluster in clusters]
        for name in ("value", "baseline", "difference")
    )
    low, high = interval(differences)
    n = len(clusters)
    return DifferenceRow(
        scheme=scheme,
        pairs=len(pairs),
        clusters=n,
        baseline_mean=math.fsum(of_baseline) / n,
        mean=math.fsum(means) / n,
        difference=math.fsum(differences) / n,
        low=low,
        high=high,
        p=None if is_baseline else _wilcoxon(differences),
        p_least=None if is_baseline else _least_p(n),
        p_corrected=None,
        effect=rank_biserial([-difference for difference in differences]),
        lower=sum(pair.difference < 0 for pair in pairs),
        equal=sum(pair.difference == 0 for pair in pairs),
        higher=sum(pair.difference > 0 for pair in pairs),
    )


def _independent_clusters(
    pairs: Sequence[Pair], *, by_seed: bool, is_baseline: bool
) -> list[list[Pair]]:
    """Return the clusters of pairs; seeds that are copies of one load are a single one."""
    clusters = list(_clusters(pairs, by_seed=by_seed).values())
    if by_seed and not is_baseline and _are_copies(pairs):
        del clusters[1:]
    return clusters


def _clusters(pairs: Sequence[Pair], *, by_seed: bool) -> dict[str, list[Pair]]:
    """Return the pairs by page or, for a single page, by seed."""
    clusters: dict[str, list[Pair]] = {}
    for pair in pairs:
        clusters.setdefault(str(pair.seed if by_seed else pair.page), []).append(pair)
    return clusters


def _wilcoxon(differences: Any) -> float | None:
    """Return the two-sided p of Wilcoxon's signed-rank test; None for fewer than two values."""
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    return float(scipy_stats().wilcoxon(differences, zero_method="zsplit").pvalue)


def _least_p(n_clusters: int) -> float | None:
    """Return the smallest two-sided p of Wilcoxon's test: that of one of 2^n likely signs."""
    return 2.0 ** (1 - n_clusters) if n_clusters > 1 else None


def rank_biserial(differences: Sequence[float]) -> float:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014).

    The share of the rank sum of positive differences, minus the share of negative ones.

    >>> rank_biserial([3.0, 1.0, -2.0]), rank_biserial([1.0, 2.0]), rank_biserial([0.0])
    (0.3333333333333333, 1.0, 0.0)
    """
    ordered = sorted(abs(value) for value in differences)
    total = signed = 0.0
    for value in differences:
        first_rank = ordered.index(abs(value)) + 1
        rank = first_rank + (ordered.count(abs(value)) - 1) / 2  # ties have their mean rank
        total += rank
        signed += rank if value > 0 else -rank if value < 0 else 0.0
    return signed / total if total else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for multiple tests (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    previous = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        # Step-down: corrected values never decrease, although the factors do.
        previous = max(previous, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = previous
    return corrected


Correction: TypeAlias = Literal["holm", "benjamini-hochberg", "none"]
_CORRECTIONS = Choice(get_args(Correction))


def corrected(rows: Iterable[TestedT], correction: Correction = "holm") -> list[TestedT]:
    """Return *rows* with their p-values corrected for all tests among them.

    The rows of several comparisons that answer one question are a family: pass them together. Holm
    1979 limits the probability of any false positive, Benjamini and Hochberg 1995 the expected
    share of false positives among all positives (`scipy.stats.false_discovery_control`).

    Raises:
        InputError: if there is no such correction.
        MissingExtraError: if scipy is not installed.
    """
    check_arguments(InputError, correction=(_CORRECTIONS, correction))
    tested: list[Any] = [*rows]
    p_values = [row.p for row in tested if row.p is not None]
    if correction == "holm":
        p_values = holm(p_values)
    elif correction == "benjamini-hochberg" and p_values:
        p_values = scipy_stats().false_discovery_control(p_values).tolist()
    found = iter(p_values)
    return [row if row.p is None else row._replace(p_corrected=next(found)) for row in tested]


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
        errors.collect("", lambda: check_arguments(InputError, how=(_HOW, how)))
        errors.collect("", lambda: check_columns(columns, baseline=baseline, value=value))
    settings, groups = _by_setting(columns, value)
    kind = how_of(value, how)
    rows = [
        _relative_row(key, settings, scheme, values, by_scheme[baseline], kind)
        for key, by_scheme in groups.items()
        if baseline in by_scheme
        for scheme, values in by_scheme.items()
    ]
    n_others = len({row.scheme for row in rows} - {baseline})
    if not rows or (not n_others and not columns.is_constant(_SCHEME)):
        key = ("page", *settings)
        reason = pairing.reason_without_pairs(columns, key, _SCHEME, baseline, value)
        raise NothingToMeasureError(reason)
    n_zero = sum(row.baseline_median <= 0 for row in rows)
    if kind == "ratio" and n_zero > MAX_SHARE_WITHOUT_RATIO * len(rows):
        message = (
            f"the median {value} of {baseline} is 0 or less in {n_zero:,} of {len(rows):,} rows,"
            " which have no relative change: use how='difference'"
        )
        raise InputError.at("how", message)
    return Rows(RelativeRow, rows)


def _by_setting(
    columns: Columns, value: str
) -> tuple[list[str], dict[tuple[Any, ...], dict[str, list[float]]]]:
    """Return the columns of a setting, and the values of each scheme by page and setting."""
    varied = pairing.varying(columns, columns.axes)
    settings = [name for name in varied if name not in LOAD_COLUMNS]
    groups: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    loads = pairing.distinct_loads(columns, ["page", *settings, _SCHEME, "seed"], value)
    for (*where, scheme, _), (own, _) in loads.items():
        groups.setdefault(tuple(where), {}).setdefault(scheme, []).append(own)
    return settings, groups


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
    if len(clusters) < _MIN_CLUSTERS:
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
    half_width = _t_quantile((1 + confidence) / 2, n_clusters - 1) * error
    return math.tanh(centre - half_width), math.tanh(centre + half_width)


def _check_varies(columns: Mapping[str, Sequence[Any]]) -> None:
    """Refuse columns that are constant or not numeric."""
    texts = [name for name in columns if not all(isinstance(v, int | float) for v in columns[name])]
    refuse(ValidationIssue(key=name, message="is not a numeric column") for name in texts)
    for name, values in columns.items():
        if len(set(values)) == 1:
            message = f"{name} is {values[0]:g} in all rows: a constant has no correlation"
            raise NothingToMeasureError(message)


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
        errors.collect("", lambda: check_pooled(columns, over=_SCHEME, pool=pool))
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
    schemes = columns.distinct(_SCHEME)
    _, groups = _by_setting(columns, value)
    return schemes, [
        [median(values_by_scheme[name]) for name in schemes]
        for values_by_scheme in groups.values()
        if len(values_by_scheme) == len(schemes)
    ]


_WILCOXON_EFFICIENCY = 3 / math.pi
"""Asymptotic efficiency of Wilcoxon's signed ranks relative to Student's t (Hodges 1956)."""
_MAX_SAMPLE_SIZE = 2**19
"""Largest number of seeds or pages that is considered."""
_SPEEDUP = Predicate(
    "a number greater than 0 other than 1",
    lambda value: is_quantity(plain_number(value)) and value > 0 and value != 1,
)


class PowerRow(NamedTuple):
    """Power of a study like this one for one scheme.

    `sd_pages` and `sd_seeds` are standard deviations of the logarithm of the speedup: between
    pages, and between seeds of one page; None where there is only one. `power` is the chance that
    this study finds a speedup of the given size significant. `seeds_needed` holds for the present
    number of pages, `pages_needed` for the present number of seeds; None if no number suffices.
    """

    scheme: str
    pages: int
    seeds: int
    sd_pages: float | None
    sd_seeds: float | None
    power: float
    seeds_needed: int | None
    pages_needed: int | None


class _Spread(NamedTuple):
    """Variance components of the logarithms: between pages, and *within* pages between seeds."""

    pages: int
    seeds: float
    """Harmonic mean of the numbers of seeds of the pages."""
    between: float
    within: float


def power_of_schemes(
    results: StudyRows,
    *,
    speedup: float,
    baseline: str,
    value: str,
    level: float,
    power: float,
    pool: Sequence[str] = (),
) -> Rows[PowerRow]:
    """Return for each scheme the numbers of seeds and pages needed to detect a *speedup*.

    They give Wilcoxon's test of `compare` at *level* the given *power*. The logarithm of a speedup
    is modelled as a normal page effect plus a normal seed effect. Their variances are estimated
    from these results (analysis of variance of a one-way random model, by unweighted means; Searle,
    Casella and McCulloch 1992, ch. 3); settings of one page and seed, which differ only in the
    columns that *pool* names, are averaged first. The power
    of Wilcoxon's test is that of Student's with 3 / pi of the clusters, its asymptotic efficiency
    (Lehmann 1975; as in G*Power, Faul et al. 2007). For a single page the seeds are the clusters,
    as in `compare`. For several schemes, divide *level* by their number.

    Raises:
        InputError: if there is no such scheme or column, if a number is out of range, or if loads
            differ in columns that *pool* lacks.
        NothingToMeasureError: if no scheme has two pairs, so that their variance is unknown.
        MissingExtraError: if scipy is not installed.
    """
    columns = columns_of(results, value)
    with ErrorCollector() as errors:
        numbers = {"speedup": (_SPEEDUP, speedup), "level": (LEVEL, level), "power": (LEVEL, power)}
        errors.collect("", lambda: check_arguments(InputError, **numbers))
        errors.collect("", lambda: check_pooled(columns, over=_SCHEME, pool=pool))
        errors.collect("", lambda: check_columns(columns, value=value, baseline=baseline))
    pairs = pairs_by_scheme(columns, baseline, value)
    shift = abs(math.log(speedup))
    means = {name: _means(own) for name, own in pairs.items() if name != baseline}
    rows = [
        _power_row(scheme, own, shift, level, power)
        for scheme, own in means.items()
        if sum(map(len, own.values())) > 1
    ]
    if not rows:
        message = f"no scheme has two pairs of {value} with {baseline}: their variance is unknown"
        raise NothingToMeasureError(message)
    return Rows(PowerRow, rows)


def power_of_test(n: int, effect: float, level: float) -> float:
    """Return the power of Wilcoxon's two-sided signed-rank test for *n* normal differences.

    *effect* is their mean in standard deviations. 0 if even n that agree do not reach *level*
    (p = 2 / 2^n). See `power_of_schemes` for the source.

    Raises:
        MissingExtraError: if scipy is not installed.

    >>> round(power_of_test(35, 0.5, 0.05), 2), power_of_test(5, 100.0, 0.05)
    (0.8, 0.0)
    """
    stats = scipy_stats()
    if 2 * 0.5**n > level:
        return 0.0
    if math.isinf(effect):
        return 1.0
    # Student's test with as many values has the same power.
    equivalent_n = n * _WILCOXON_EFFICIENCY
    freedom, noncentrality = equivalent_n - 1, effect * math.sqrt(equivalent_n)
    critical = stats.t.ppf(1 - level / 2, freedom)
    if noncentrality > 2 * critical + 40:  # practically 1, and beyond scipy's range
        return 1.0
    upper_tail = stats.nct.sf(critical, freedom, noncentrality)
    lower_tail = stats.nct.cdf(-critical, freedom, noncentrality)
    return min(1.0, float(upper_tail + lower_tail))


def _means(pairs: Iterable[Pair]) -> dict[str, list[float]]:
    """Return the mean log speedup of each seed over the settings, by page."""
    logs: dict[str, dict[int, list[float]]] = {}
    for pair in pairs:
        logs.setdefault(pair.page, {}).setdefault(pair.seed, []).append(math.log(pair.speedup))
    return {
        page: [math.fsum(own) / len(own) for own in seeds.values()] for page, seeds in logs.items()
    }


def _estimate_spread(means: Mapping[str, list[float]]) -> _Spread:
    """Return the variance between pages, and between seeds of a page."""
    pages = list(means.values())
    freedom = sum(len(seeds) - 1 for seeds in pages)
    squares = math.fsum(_sum_of_squares(seeds) for seeds in pages)
    within = squares / freedom if freedom else 0.0
    # The variance of a page's mean has a share 1 / (number of seeds) of that within pages.
    mean_share = math.fsum(1 / len(seeds) for seeds in pages) / len(pages)
    page_means = [math.fsum(seeds) / len(seeds) for seeds in pages]
    between = 0.0
    if len(pages) > 1:
        of_page_means = _sum_of_squares(page_means) / (len(pages) - 1)
        # The difference of estimates may be negative if pages do not differ.
        between = max(0.0, of_page_means - within * mean_share)
    return _Spread(len(pages), 1 / mean_share, between, within)


def _sum_of_squares(values: list[float]) -> float:
    """Return the sum of squared deviations from the mean."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _power_row(
    scheme: str, means: Mapping[str, list[float]], shift: float, level: float, power: float
) -> PowerRow:
    """Return the sample sizes for which a difference of *shift* is significant."""
    spread = _estimate_spread(means)
    n_seeds = max(map(len, means.values()))
    has_several_seeds = n_seeds > 1

    def power_with(pages: int, seeds: float) -> float:
        if spread.pages == 1:  # the seeds are the clusters, with the variance within pages
            return power_of_test(round(seeds), _effect_size(shift, spread.within), level)
        variance = spread.between + spread.within / seeds
        return power_of_test(pages, _effect_size(shift, variance), level)

    def are_enough_pages(n_pages: int) -> bool:
        return power_with(n_pages, spread.seeds) >= power

    def are_enough_seeds(n_seeds: int) -> bool:
        return power_with(spread.pages, n_seeds) >= power

    return PowerRow(
        scheme=scheme,
        pages=spread.pages,
        seeds=n_seeds,
        sd_pages=math.sqrt(spread.between) if spread.pages > 1 else None,
        sd_seeds=math.sqrt(spread.within) if has_several_seeds else None,
        power=power_with(spread.pages, spread.seeds),
        seeds_needed=_smallest(are_enough_seeds) if has_several_seeds else None,
        pages_needed=_smallest(are_enough_pages) if spread.pages > 1 else None,
    )


def _effect_size(shift: float, variance: float) -> float:
    return shift / math.sqrt(variance) if variance else math.inf


def _smallest(is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest sufficient number, if any; larger ones must be sufficient too."""
    number = bisect_left(range(1, _MAX_SAMPLE_SIZE + 1), True, key=is_enough) + 1
    return number if number <= _MAX_SAMPLE_SIZE else None
