"""Sample sizes: the power of a study, and the seeds and pages that it needs."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from h3sim.load.options import LEVEL
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import is_quantity, plain_number
from h3sim.study.pairing import columns_of
from h3sim.study.statistics.intervals import scipy_stats
from h3sim.study.statistics.pairs import SCHEME, Pair, check_columns, check_pooled, pairs_by_scheme
from h3sim.trace import Rows
from h3sim.values.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from h3sim.study.rows import StudyRows

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
        errors.collect("", lambda: check_pooled(columns, over=SCHEME, pool=pool))
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
