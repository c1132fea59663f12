"""What a study says of its schemes: how much faster, how surely, and of how many pages.

Each method is documented with its source and what it assumes; `docs/studies.md` has them together.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.documents.arguments import GatheredMistakes, Only, check_arguments
from h3sim.errors import InputError, NothingToMeasureError, Problem, needing_extra
from h3sim.study.arguments import LEVEL, SEED
from h3sim.study.intervals import METHODS, mean_interval, ratio_end
from h3sim.study.pairs import check_columns, pairs_by_scheme
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.study.intervals import Method
    from h3sim.study.pairs import Pair
    from h3sim.study.results import Results

__all__ = [
    "Correlation",
    "RelativeRow",
    "SchemeRow",
    "compare_schemes",
    "correlation",
    "holm",
    "rank_biserial",
    "relative_medians",
]

EPSILON = 1e-10
"""Keeps Sander 2022's relative medians finite (printed "1-10" there)."""
_SMALL, _LARGE = 0.05, 0.25
"""A speedup counts as a win beyond these (Sander 2022 § 5)."""
_FIELLER = 0.437
"""Times 1 / (n - 4) the variance of atanh(tau), by sampling (Fieller, Hartley and Pearson 1957)."""
_LEAST_FOR_TAU = 10
_SCHEME = "scheme"
_METHOD = Only(" or ".join(METHODS), lambda value: isinstance(value, str) and value in METHODS)


class SchemeRow(NamedTuple):
    """One scheme against the baseline; a speedup above 1 is faster.

    `geometric` is the geometric mean of the clusters' speedups, `low` to `high` its confidence
    interval, `arithmetic` the mean as in Marx 2019, Table 2. `p` is Wilcoxon's, `p_holm` the same
    after Holm's correction for all schemes, `effect` the matched-pairs rank-biserial correlation.
    """

    scheme: str
    pairs: int
    clusters: int
    arithmetic: float
    geometric: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    effect: float
    wins_5: int
    losses_5: int
    ties_5: int
    wins_25: int
    losses_25: int


class RelativeRow(NamedTuple):
    """One scheme on one page and setting: medians over seeds, as Sander 2022 compares them."""

    page: str
    setting: str
    scheme: str
    n: int
    median: float
    baseline_median: float
    delta: float
    p: float | None


class Correlation(NamedTuple):
    """How two columns go together: Spearman's rho, and Kendall's tau-b with its interval."""

    n: int
    rho: float
    p_rho: float
    tau: float
    p_tau: float
    tau_low: float | None
    tau_high: float | None


def compare_schemes(
    results: Results,
    *,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    confidence: float = 0.95,
    interval: Method = "bootstrap-t",
    seed: int = 0,
) -> Rows[SchemeRow]:
    """Return each scheme against *baseline*, paired by page, setting and seed.

    All schemes of a cell meet the same losses, so the ratio of their *value* is taken pair by pair.
    Pairs of one page are not independent: they are averaged (as logarithms) into a cluster, and
    interval and test are about clusters. So they speak about other pages like these. Of a single
    page each seed is a cluster, and they speak about other seeds of that page.

    - Interval: of the mean logarithm, by `h3sim.study.intervals.mean_interval`: the studentized
      bootstrap over clusters, or with *interval* "bca" the bias-corrected and accelerated one.
    - Test: Wilcoxon's signed ranks, two-sided; it assumes that the differences lie symmetrically
      about their median. Zeros are ranked, and half of their ranks counts for either side, where
      Pratt 1959 leaves those out: p is rather too large. Corrected over schemes as Holm 1979.
    - Effect: matched-pairs rank-biserial correlation (Kerby 2014), -1 to 1; above 0 is faster.
    - Wins and losses count pairs whose speedup lies beyond 5 % and 25 %.

    Raises:
        InputError: if there is no such scheme or column.
        NothingToMeasureError: if no pair has the value.
        MissingExtraError: if scipy is not installed.
    """
    with GatheredMistakes() as mistakes:
        interval_of = mistakes.of("", lambda: _interval(confidence, interval, seed))
        pairs = mistakes.of("", lambda: pairs_by_scheme(results, baseline, value))
    by_seed = len(set(results.column("page"))) == 1
    rows = [
        _scheme_row(
            scheme,
            _clusters(own, by_seed=by_seed),
            interval_of,
        )
        for scheme, own in pairs.items()
    ]
    if not rows:
        raise NothingToMeasureError(f"no load has {value} beside one of {baseline}")
    # The baseline beside itself is no test, and counts as none.
    rows = [row._replace(p=None) if row.scheme == baseline else row for row in rows]
    tested = [row for row in rows if row.p is not None]
    corrected = holm([row.p for row in tested if row.p is not None])
    known = dict(zip((row.scheme for row in tested), corrected, strict=True))
    return Rows(SchemeRow, (row._replace(p_holm=known.get(row.scheme)) for row in rows))


def _interval(
    confidence: object, method: object, seed: object
) -> Callable[[list[float]], tuple[float, float] | tuple[None, None]]:
    how = {"confidence": (LEVEL, confidence), "interval": (_METHOD, method), "seed": (SEED, seed)}
    taken = check_arguments(InputError, **how)
    return partial(mean_interval, method=taken.pop("interval"), **taken)


def _scheme_row(
    scheme: str,
    ratios: Mapping[str, Sequence[float]],
    interval: Callable[[list[float]], tuple[float, float] | tuple[None, None]],
) -> SchemeRow:
    every = [ratio for cluster in ratios.values() for ratio in cluster]
    logs = [
        math.fsum(math.log(ratio) for ratio in cluster) / len(cluster)
        for cluster in ratios.values()
    ]
    low, high = interval(logs)
    return SchemeRow(
        scheme=scheme,
        pairs=len(every),
        clusters=len(logs),
        arithmetic=math.fsum(every) / len(every),
        geometric=math.exp(math.fsum(logs) / len(logs)),
        low=None if low is None else ratio_end(low),
        high=None if high is None else ratio_end(high),
        p=_wilcoxon(logs),
        p_holm=None,
        effect=rank_biserial(logs),
        wins_5=sum(ratio > 1 + _SMALL for ratio in every),
        # The mirror of a win in the logarithm: whichever of two schemes is the baseline, the other
        # wins as often as this one loses. 0.95 would not do that.
        losses_5=sum(ratio < 1 / (1 + _SMALL) for ratio in every),
        ties_5=sum(1 / (1 + _SMALL) <= ratio <= 1 + _SMALL for ratio in every),
        wins_25=sum(ratio > 1 + _LARGE for ratio in every),
        losses_25=sum(ratio < 1 / (1 + _LARGE) for ratio in every),
    )


def _clusters(pairs: Sequence[Pair], *, by_seed: bool) -> dict[str, list[float]]:
    """Return the speedups of each page; of a single page, of each seed."""
    found: dict[str, list[float]] = {}
    for pair in pairs:
        found.setdefault(str(pair.seed if by_seed else pair.page), []).append(pair.speedup)
    return found


def _wilcoxon(differences: Any) -> float | None:
    """Return the two-sided p of Wilcoxon's signed ranks; none of fewer than two values."""
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    return float(_stats().wilcoxon(differences, zero_method="zsplit").pvalue)


def rank_biserial(differences: Sequence[float]) -> float:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014).

    It is the share of the ranks of absolute differences that stand for it, less the share against.

    >>> rank_biserial([3.0, 1.0, -2.0]), rank_biserial([1.0, 2.0]), rank_biserial([0.0])
    (0.3333333333333333, 1.0, 0.0)
    """
    ordered = sorted(abs(value) for value in differences)
    total = for_it = 0.0
    for value in differences:
        first = ordered.index(abs(value)) + 1
        # Equal values share the mean of the ranks that they take up.
        rank = first + (ordered.count(abs(value)) - 1) / 2
        total += rank
        for_it += rank if value > 0 else -rank if value < 0 else 0.0
    return for_it / total if total else 0.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for being many (Holm 1979), in the order given.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda n: p_values[n])):
        # Step-down: a larger p is not corrected to a smaller one, though its factor is smaller.
        least = max(least, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = least
    return corrected


def relative_medians(
    results: Results, *, baseline: str = "rr", value: str = "byte_index_all_ms"
) -> Rows[RelativeRow]:
    """Return the change of the median over seeds, per page and setting, as Sander 2022 § 5.

    delta = (median of the scheme - median of the baseline) / (median of the baseline + epsilon),
    with epsilon 1e-10; below 0 is faster. `p` is that of the Mann-Whitney U test, two-sided, which
    takes the loads of both schemes as independent; Sander calls p < 0.005 significant. It is None
    where seeds make no difference: nothing was random.

    Raises:
        InputError: if there is no such scheme or column.
        NothingToMeasureError: if no load has the value beside one of the baseline.
        MissingExtraError: if scipy is not installed.
    """
    check_columns(results, baseline=baseline, value=value)
    axes = [name for name in results.axes if name not in ("page", _SCHEME, "seed")]
    groups: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in results:
        if row.get(value) is not None:
            by_scheme = groups.setdefault(tuple(row.get(name) for name in ("page", *axes)), {})
            by_scheme.setdefault(row[_SCHEME], []).append(row[value])
    rows = [
        _relative_row(key, axes, scheme, values, by_scheme[baseline])
        for key, by_scheme in groups.items()
        if baseline in by_scheme
        for scheme, values in by_scheme.items()
    ]
    if not rows:
        raise NothingToMeasureError(f"no load has {value} beside one of {baseline}")
    return Rows(RelativeRow, rows)


def _relative_row(
    key: tuple[Any, ...], axes: Sequence[str], scheme: str, values: list[float], base: list[float]
) -> RelativeRow:
    median, base_median = _median(values), _median(base)
    p = None
    # Where nothing is random all seeds are one load: there is nothing to test.
    if min(len(values), len(base)) > 1 and len({*values}) + len({*base}) > 2:
        p = float(_stats().mannwhitneyu(values, base).pvalue)
    page, *settings = key
    told = ", ".join(f"{name}={value}" for name, value in zip(axes, settings, strict=True))
    delta = (median - base_median) / (base_median + EPSILON)
    return RelativeRow(page, told, scheme, len(values), median, base_median, delta, p)


def _median(values: Sequence[float]) -> float:
    import statistics  # on use: importing h3sim should stay quick

    return statistics.median(values)


def correlation(results: Results, x: str, y: str, *, confidence: float = 0.95) -> Correlation:
    """Return how columns *x* and *y* go together over the rows that have both.

    Tau's interval is that of Fieller, Hartley and Pearson 1957: atanh(tau) is nearly normal with
    variance 0.437 / (n - 4); none for fewer than ten rows. Rows are taken as independent.

    Raises:
        KeyError: if there is no such column.
        InputError: if one of them is no column of numbers.
        NothingToMeasureError: if fewer than three rows have both, or one is the same in all.
        MissingExtraError: if scipy is not installed.
    """
    check_arguments(InputError, confidence=(LEVEL, confidence))
    pairs = [
        pair for pair in zip(results.column(x), results.column(y), strict=True) if None not in pair
    ]
    n = len(pairs)
    if n < 3:
        raise NothingToMeasureError(f"fewer than three rows have {x} and {y}")
    first, second = zip(*pairs, strict=True)
    _check_varies({x: first, y: second})
    stats = _stats()
    rho, tau = stats.spearmanr(first, second), stats.kendalltau(first, second)
    low = high = None
    # atanh has no value at -1 and 1, where no pair of rows disagrees or agrees.
    if n >= _LEAST_FOR_TAU and abs(tau.statistic) < 1:
        reach = stats.norm.ppf((1 + confidence) / 2) * math.sqrt(_FIELLER / (n - 4))
        middle = math.atanh(tau.statistic)
        low, high = float(math.tanh(middle - reach)), float(math.tanh(middle + reach))
    return Correlation(
        n=n,
        rho=float(rho.statistic),
        p_rho=float(rho.pvalue),
        tau=float(tau.statistic),
        p_tau=float(tau.pvalue),
        tau_low=low,
        tau_high=high,
    )


def _check_varies(columns: Mapping[str, Sequence[Any]]) -> None:
    """Refuse columns that have no order among their rows."""
    problems = [
        Problem(key=name, message="is no column of numbers")
        for name, values in columns.items()
        if not all(isinstance(value, int | float) for value in values)
    ]
    if problems:
        raise InputError(problems)
    for name, values in columns.items():
        if len(set(values)) == 1:
            raise NothingToMeasureError(
                f"{name} is {values[0]:g} in all rows: nothing goes with it"
            )


def _stats() -> Any:
    with needing_extra("scipy", "study"):
        from scipy import stats  # on use: an extra
    return stats
