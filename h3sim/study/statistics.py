"""Statistics of a study: paired differences, confidence intervals, wins, Friedman ranks.

Each method is documented with its source and what it assumes; `docs/studies.md` has them together.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from h3sim.config.arguments import LEVEL, SEED
from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue, needing_extra
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.values import ListOf, OrNone, Scalar, Text
from h3sim.study.results import no_column
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from h3sim.study.results import Results


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
        raise InputError([ValidationIssue(key="interval", message=message)])
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


_SCHEME = "scheme"
_LOAD = ("page", _SCHEME, "seed")


class Pair(NamedTuple):
    """The baseline's figure by the scheme's, on the same page, setting and seed: the speedup."""

    page: str
    seed: int
    speedup: float


def check_columns(
    results: Results, *, value: object, baseline: object = None, over: str = _SCHEME
) -> None:
    """Refuse a *value* that is no column of numbers, and a *baseline* that column *over* lacks.

    Raises:
        InputError: listing both, and what tells loads apart that the rows do not say.
    """
    of_baseline = OrNone(Text() if over == _SCHEME else Scalar())
    check_arguments(
        InputError, value=(Text(), value), baseline=(of_baseline, baseline), over=(Text(), over)
    )
    columns = results.columns
    problems = []
    if value not in columns:
        problems.append(ValidationIssue(key="value", message=no_column(value, columns)))
    elif not all(isinstance(row.get(value), int | float | None) for row in results):
        problems.append(ValidationIssue(key="value", message=f"{value} is no column of numbers"))
    if lacking := [name for name in _LOAD if columns and name not in columns]:
        message = f"do not say {', '.join(lacking)}: nobody knows which loads belong together"
        problems.append(ValidationIssue(key="rows", message=message))
    elif columns and over not in columns:
        problems.append(ValidationIssue(key="over", message=no_column(over, columns)))
    elif baseline is not None and baseline not in (known := dict.fromkeys(results.column(over))):
        message = f"no load has {over} {format_value(baseline)}"
        if over != _SCHEME:
            message += f"; there are {', '.join(map(format_value, known))}"
        problems.append(ValidationIssue(key="baseline", message=message))
    if problems:
        raise InputError(problems)


def pairs_by_scheme(results: Results, baseline: str, value: str) -> dict[str, list[Pair]]:
    """Return the pairs of each scheme, as `pairs_over`."""
    return pairs_over(results, _SCHEME, baseline, value)


def pairs_over(results: Results, over: str, baseline: Any, value: str) -> dict[Any, list[Pair]]:
    """Return the pairs of each value of *over*, the baseline's own among them, in row order.

    The two loads of a pair have all axes but *over* in common, page and seed among them. Loads
    without the value, or with 0, have no pair.

    Raises:
        InputError: if there is no such baseline or column, or loads of the baseline differ that no
            axis tells apart.
    """
    check_columns(results, baseline=baseline, value=value, over=over)
    # Page and seed are columns even of studies that have one of each, where they are no axes.
    cell = [name for name in dict.fromkeys(("page", *results.axes, "seed")) if name != over]
    rows = list(results)

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in cell)

    base: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        # Of two loads that no axis tells apart one would stand for both, over another network, say.
        known = row.get(value)
        if row[over] == baseline and base.setdefault(key(row), known) != known:
            raise InputError([_not_apart(row, over, cell)])
    found: dict[Any, list[Pair]] = {}
    for row in rows:
        before = base.get(key(row))
        if (known := row.get(value)) and before:
            # Where pages are compared, the pair has two.
            page = "" if over == "page" else row["page"]
            found.setdefault(row[over], []).append(Pair(page, row["seed"], before / known))
    return found


def _not_apart(row: dict[str, Any], over: str, cell: Sequence[str]) -> ValidationIssue:
    """Return the mistake that loads like that of *row* differ in what is not in *cell*."""
    alike = ", ".join(f"{name} {format_value(row.get(name))}" for name in cell)
    level = format_value(row[over])
    message = f"several loads of {level} have {alike}, and differ: compare them apart"
    return ValidationIssue(key="axes", message=message)


EPSILON = 1e-10
"""Keeps Sander 2022's relative medians finite (printed "1-10" there)."""
_SMALL, _LARGE = 0.05, 0.25
"""A speedup counts as a win beyond these (Sander 2022 § 5)."""
_FIELLER = 0.437
"""Times 1 / (n - 4) the variance of atanh(tau), by sampling (Fieller, Hartley and Pearson 1957)."""
_LEAST_FOR_TAU = 10
_METHOD = Predicate(" or ".join(METHODS), lambda value: isinstance(value, str) and value in METHODS)


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


class ContrastRow(NamedTuple):
    """One value of an axis against the baseline, in one setting; a speedup above 1 is faster.

    *pairing* names what the loads of a pair have in common, *cluster* what is independent: pages,
    or seeds of a single page. *refusal* says why there is no interval. The rest is as in
    `SchemeRow`; `p_holm` is corrected for all rows.
    """

    setting: str
    level: Any
    pairing: str
    cluster: str
    pairs: int
    clusters: int
    geometric: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    effect: float
    refusal: str


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
    pool: Sequence[str] = (),
    confidence: float = 0.95,
    interval: Method = "bootstrap-t",
    seed: int = 0,
) -> Rows[SchemeRow]:
    """Return each scheme against *baseline*, paired by page, setting and seed.

    All schemes of a cell meet the same losses, so the ratio of their *value* is taken pair by pair.
    Pairs of one page are not independent: they are averaged (as logarithms) into a cluster, and
    interval and test are about clusters. So they speak about other pages like these. Of a single
    page each seed is a cluster, and they speak about other seeds of that page.

    - Interval: of the mean logarithm, by `h3sim.study.statistics.mean_interval`: the studentized
      bootstrap over clusters, or with *interval* "bca" the bias-corrected and accelerated one.
    - Test: Wilcoxon's signed ranks, two-sided; it assumes that the differences lie symmetrically
      about their median. Zeros are ranked, and half of their ranks counts for either side, where
      Pratt 1959 leaves those out: p is rather too large. Corrected over schemes as Holm 1979.
    - Effect: matched-pairs rank-biserial correlation (Kerby 2014), -1 to 1; above 0 is faster.
    - Wins and losses count pairs whose speedup lies beyond 5 % and 25 %.

    Other axes than page, seed and scheme are averaged over only where *pool* names them.

    Raises:
        InputError: if there is no such scheme or column, or loads differ in axes that *pool* lacks.
        NothingToMeasureError: if no pair has the value.
        MissingExtraError: if scipy is not installed.
    """
    with ErrorCollector() as mistakes:
        interval_of = mistakes.of("", lambda: _interval(confidence, interval, seed))
        mistakes.of("", lambda: check_pooled(results, over=_SCHEME, pool=pool))
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


def check_pooled(
    results: Results, *, over: str, by: Sequence[str] = (), pool: Sequence[str] = ()
) -> None:
    """Refuse to average over axes that nobody named; pages and seeds are what is averaged over.

    Raises:
        InputError: listing the axes in which the loads differ besides, and columns that are none.
    """
    check_arguments(InputError, by=(_NAMES, by), pool=(_NAMES, pool))
    columns = results.columns
    problems = [
        ValidationIssue(key=key, message=no_column(name, columns))
        for key, names in (("by", by), ("pool", pool))
        for name in names
        if columns and name not in columns
    ]
    named = {over, "page", "seed", *by, *pool}
    others = [
        name
        for name in results.axes
        if name not in named and name in columns and len(set(results.column(name))) > 1
    ]
    if others:
        message = (
            f"the loads differ in {', '.join(others)}, too: name what has a row of its own in by=,"
            " what is averaged over in pool=, or filter"
        )
        problems.append(ValidationIssue(key="by", message=message))
    if problems:
        raise InputError(problems)


_NAMES = ListOf(Text(), "names of columns")


def compare_over(
    results: Results,
    *,
    over: str,
    baseline: Any,
    value: str = "byte_index_all_ms",
    by: Sequence[str] = (),
    pool: Sequence[str] = (),
    confidence: float = 0.95,
    interval: Method = "bootstrap-t",
    seed: int = 0,
) -> Rows[ContrastRow]:
    """Return each value of the axis *over* against *baseline*, paired, in each setting of *by*.

    The loads of a pair have everything in common but *over*. Pairs of one page are averaged (as
    logarithms) into a cluster, as `compare_schemes` does; of a single page, and where pages are
    compared, each seed is a cluster. Interval, test and effect are those of `compare_schemes`;
    where too few clusters are independent for them, the row says so.

    Raises:
        InputError: if there is no such column or baseline, or loads differ in axes that are named
            nowhere.
        NothingToMeasureError: if no pair has the value.
        MissingExtraError: if scipy is not installed.
    """
    with ErrorCollector() as mistakes:
        interval_of = mistakes.of("", lambda: _interval(confidence, interval, seed))
        mistakes.of("", lambda: _check_over(over))
        mistakes.of("", lambda: check_columns(results, value=value, baseline=baseline, over=over))
        if isinstance(over, str):
            mistakes.of("", lambda: check_pooled(results, over=over, by=by, pool=pool))
    groups = results.group(*by) if by else {(): results}
    rows = [
        row
        for key, some in groups.items()
        if baseline in some.column(over)
        for row in _contrasts(_setting(by, key), some, over, baseline, value, interval_of)
    ]
    if not rows:
        raise NothingToMeasureError(f"no load has {value} beside one of {over} {baseline}")
    tested = [index for index, row in enumerate(rows) if row.p is not None]
    corrected = holm([p for row in rows if (p := row.p) is not None])
    for index, p_holm in zip(tested, corrected, strict=True):
        rows[index] = rows[index]._replace(p_holm=p_holm)
    return Rows(ContrastRow, rows)


def _check_over(over: str) -> None:
    if over == "seed":
        message = "must be an axis whose values differ in kind: seeds are replications"
        raise InputError([ValidationIssue(key="over", message=message)])


def _setting(by: Sequence[str], key: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(by, key, strict=True))


def _contrasts(
    setting: str,
    results: Results,
    over: str,
    baseline: Any,
    value: str,
    interval: Callable[[list[float]], tuple[float, float] | tuple[None, None]],
) -> Iterator[ContrastRow]:
    """Yield the rows of one setting, one for each value beside the baseline."""
    by_seed = over == "page" or len(set(results.column("page"))) == 1
    cluster = "seed" if by_seed else "page"
    shared = [
        name
        for name in dict.fromkeys(("page", *results.axes, "seed"))
        if name != over and len(set(results.column(name))) > 1
    ]
    for level, pairs in pairs_over(results, over, baseline, value).items():
        if level == baseline:
            continue
        ratios = _clusters(pairs, by_seed=by_seed)
        is_alone = by_seed and len({pair.speedup for pair in pairs}) == 1
        if is_alone:  # seeds that change nothing are one load
            ratios = dict([next(iter(ratios.items()))])
        row = _scheme_row("", ratios, interval)
        yield ContrastRow(
            setting=setting,
            level=level,
            pairing=", ".join(shared) or "all settings",
            cluster=cluster,
            pairs=len(pairs),
            refusal=_refusal(row, cluster, is_alone=is_alone and len(pairs) > 1),
            **{name: getattr(row, name) for name in _OF_CONTRAST},
        )


_OF_CONTRAST = ("clusters", "geometric", "low", "high", "p", "p_holm", "effect")


def _refusal(row: SchemeRow, cluster: str, *, is_alone: bool) -> str:
    """Return why a row has no interval; nothing where it has one."""
    if row.low is not None:
        return ""
    if is_alone:
        return "no seed changes the result: one independent load, which is no sample"
    several = "s" * (row.clusters != 1)
    return f"{row.clusters} independent {cluster}{several}: an interval takes {_LEAST} or more"


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
    return float(_stats_statistics().wilcoxon(differences, zero_method="zsplit").pvalue)


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
        p = float(_stats_statistics().mannwhitneyu(values, base).pvalue)
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
    stats = _stats_statistics()
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
        ValidationIssue(key=name, message="is no column of numbers")
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


def _stats_statistics() -> Any:
    with needing_extra("scipy", "study"):
        from scipy import stats  # on use: an extra
    return stats


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
    with ErrorCollector() as mistakes:
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
