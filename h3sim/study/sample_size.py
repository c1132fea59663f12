"""Sample sizes: how many seeds and pages detect a difference, from the variance in results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from h3sim.config.options import LEVEL
from h3sim.errors import InputError, NothingToMeasureError, needing_extra
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import is_quantity, plain_number
from h3sim.study.statistics import pairs_by_scheme
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from h3sim.study.rows import StudyRows
    from h3sim.study.statistics import Pair


_EFFICIENCY = 3 / math.pi
"""Asymptotic efficiency of Wilcoxon's signed ranks relative to Student's t (Hodges 1956)."""
_MOST = 1_000_000
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
) -> Rows[PowerRow]:
    """Return for each scheme the numbers of seeds and pages needed to detect a *speedup*.

    They give Wilcoxon's test of `compare` at *level* the given *power*. The logarithm of a speedup
    is modelled as a normal page effect plus a normal seed effect. Their variances are estimated
    from these results (analysis of variance of a one-way random model, by unweighted means; Searle,
    Casella and McCulloch 1992, ch. 3); settings of one page and seed are averaged first. The power
    of Wilcoxon's test is that of Student's with 3 / pi of the clusters, its asymptotic efficiency
    (Lehmann 1975; as in G*Power, Faul et al. 2007). For a single page the seeds are the clusters,
    as in `compare`. For several schemes, divide *level* by their number.

    Raises:
        InputError: if there is no such scheme or column, or a number is out of range.
        NothingToMeasureError: if no scheme has two pairs, so that their variance is unknown.
        MissingExtraError: if scipy is not installed.
    """
    with ErrorCollector() as errors:
        errors.collect("", lambda: _check(speedup=speedup, level=level, power=power))
        pairs = errors.collect("", lambda: pairs_by_scheme(results, baseline, value))
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
    with needing_extra("scipy", "study"):
        from scipy import stats  # lazy: optional dependency
    if 2 * 0.5**n > level:
        return 0.0
    if math.isinf(effect):
        return 1.0
    like = n * _EFFICIENCY
    critical = stats.t.ppf(1 - level / 2, like - 1)
    moved = effect * math.sqrt(like)
    if moved > 2 * critical + 40:  # practically 1, and beyond scipy's range
        return 1.0
    tails = stats.nct.sf(critical, like - 1, moved) + stats.nct.cdf(-critical, like - 1, moved)
    return min(1.0, float(tails))


def _means(pairs: Iterable[Pair]) -> dict[str, list[float]]:
    """Return, by page, the mean log speedup of each seed over the settings."""
    logs: dict[str, dict[int, list[float]]] = {}
    for pair in pairs:
        logs.setdefault(pair.page, {}).setdefault(pair.seed, []).append(math.log(pair.speedup))
    return {
        page: [math.fsum(own) / len(own) for own in seeds.values()] for page, seeds in logs.items()
    }


def _estimate_spread(means: Mapping[str, list[float]]) -> _Spread:
    """Return the variance between pages, and between seeds of a page."""
    own = list(means.values())
    freedom = sum(len(seeds) - 1 for seeds in own)
    squares = math.fsum(_squares(seeds) for seeds in own)
    within = squares / freedom if freedom else 0.0
    # The mean over pages of the seeds' contribution to the variance of the page's mean.
    per_page = math.fsum(1 / len(seeds) for seeds in own) / len(own)
    centres = [math.fsum(seeds) / len(seeds) for seeds in own]
    # A difference of estimates may be negative if pages do not differ.
    between = 0.0
    if len(own) > 1:
        between = max(0.0, _squares(centres) / (len(own) - 1) - within * per_page)
    # The harmonic mean of the numbers of seeds of pages: equal ones give just that number.
    return _Spread(len(own), 1 / per_page, between, within)


def _squares(values: list[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _power_row(
    scheme: str, means: Mapping[str, list[float]], shift: float, level: float, power: float
) -> PowerRow:
    """Return the sample sizes for which a difference of *shift* is significant."""
    spread = _estimate_spread(means)
    n_seeds = max(map(len, means.values()))
    has_many = n_seeds > 1

    def reached(pages: int, seeds: float) -> float:
        # Then seeds are the clusters, each with the full variance within pages.
        if spread.pages == 1:
            return power_of_test(round(seeds), _ratio(shift, spread.within), level)
        variance = spread.between + spread.within / seeds
        return power_of_test(pages, _ratio(shift, variance), level)

    pages_needed = None
    if spread.pages > 1:
        pages_needed = _least(lambda pages: reached(pages, spread.seeds) >= power)
    return PowerRow(
        scheme=scheme,
        pages=spread.pages,
        seeds=n_seeds,
        sd_pages=math.sqrt(spread.between) if spread.pages > 1 else None,
        sd_seeds=math.sqrt(spread.within) if has_many else None,
        power=reached(spread.pages, spread.seeds),
        seeds_needed=_least(lambda n: reached(spread.pages, n) >= power) if has_many else None,
        pages_needed=pages_needed,
    )


def _ratio(shift: float, variance: float) -> float:
    return shift / math.sqrt(variance) if variance else math.inf


def _least(is_enough: Callable[[int], bool]) -> int | None:
    """Return the smallest sufficient number up to a million; sufficiency must be monotonic."""
    high = 1
    while not is_enough(high):
        high *= 2
        if high > _MOST:
            return None
    # The doubling has shown that this does not suffice.
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _check(*, speedup: float, level: float, power: float) -> None:
    check_arguments(
        InputError, speedup=(_SPEEDUP, speedup), level=(LEVEL, level), power=(LEVEL, power)
    )
