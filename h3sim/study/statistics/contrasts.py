"""Schemes, or values of an axis, against a baseline: intervals, tests, wins, corrections."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from h3sim.load.options import LEVEL, SEED
from h3sim.schema.arguments import ErrorCollector, check_arguments
from h3sim.schema.values import Choice
from h3sim.study import pairing
from h3sim.study.pairing import columns_of
from h3sim.study.statistics.intervals import (
    MIN_CLUSTERS,
    IntervalOf,
    mean_interval,
    ratio_end,
    scipy_stats,
)
from h3sim.study.statistics.pairs import (
    HOW,
    SCHEME,
    How,
    Pair,
    check_columns,
    check_pooled,
    clusters_of,
    how_of,
    pairs_over,
    with_ratios,
)
from h3sim.trace import Rows
from h3sim.values.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.study.columns import Columns
    from h3sim.study.statistics.pairs import RowsOrColumns

_SMALL_WIN, _LARGE_WIN = 0.05, 0.25
"""A speedup counts as a win beyond these (Sander 2022 § 5)."""


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


def compare_schemes(
    results: RowsOrColumns,
    *,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    how: How | None = None,
    pool: Sequence[str] = (),
    confidence: float = 0.95,
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

    - Interval: of the mean, by `mean_interval`: the studentized bootstrap over clusters.
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
        interval_of = errors.collect("", lambda: _interval(confidence, seed, how, correction))
        errors.collect("", lambda: check_pooled(columns, over=SCHEME, pool=pool, **_OF_TABLES))
        errors.collect("", lambda: check_columns(columns, value=value, baseline=baseline))
    pairs = pairs_over(columns, SCHEME, baseline, value)
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
        interval_of = errors.collect("", lambda: _interval(confidence, seed, how, correction))
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
    return f"{clusters}: an interval takes {MIN_CLUSTERS} or more"


def _interval(confidence: object, seed: object, how: object, correction: object) -> IntervalOf:
    """Return the function that estimates intervals, after checking its and the other arguments."""
    typed: dict[str, Any] = {
        "confidence": (LEVEL, confidence),
        "seed": (SEED, seed),
    }
    typed |= {"how": (HOW, how), "correction": (_CORRECTIONS, correction)}
    valid = check_arguments(InputError, **typed)
    return partial(
        mean_interval,
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
    clusters = list(clusters_of(pairs, by_seed=by_seed).values())
    if by_seed and not is_baseline and _are_copies(pairs):
        del clusters[1:]
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
