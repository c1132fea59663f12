"""Seeds are added until each interval is as narrow as asked, at a level that stays honest.

To stop when an interval happens to be narrow would make it too short (Chow and Robbins 1965 hold
only for narrow widths). So the error 1 - confidence is spent over all looks, evenly (Bonferroni; a
spending function as Lan and DeMets 1983 have it): all looks together miss the speedup of a scheme
no oftener than that, whenever one stops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.errors import InputError, MissingExtraError, NothingToMeasureError, Problem
from h3sim.study.pairs import pairs_by_scheme
from h3sim.study.store import Store
from h3sim.study.sweep import study_of
from h3sim.trace import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from h3sim.study.pairs import Pair
    from h3sim.study.results import Results
    from h3sim.study.run import PageLike, SchemeLike
    from h3sim.study.sweep import Study

__all__ = ["Sequential", "SequentialRow", "looks", "seed_interval", "sweep_until"]

_FIRST, _GROWTH = 8, 1.5
_MOST = 200


class SequentialRow(NamedTuple):
    """One scheme's speedup over these pages, and its interval over seeds."""

    scheme: str
    seeds: int
    geometric: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Sequential:
    """What came of a study that went on until it knew enough.

    `looks` are the numbers of seeds at which it looked, or would have; `is_narrow` says whether
    every interval became as narrow as asked before the seeds were used up.
    """

    rows: Rows[SequentialRow]
    results: Results
    looks: tuple[int, ...]
    is_narrow: bool


def sweep_until(
    pages: PageLike | Iterable[PageLike],
    *,
    width: float,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    confidence: float = 0.95,
    most_seeds: int = _MOST,
    store: str | Path | None = None,
    executor: Any = None,
    workers: int | None = None,
    **options: Any,
) -> Sequential:
    """Add seeds until the interval of each scheme's speedup is narrower than *width*.

    *width* is the upper end by the lower, less 1: 0.05 is 5 %. The speedup to *baseline* is the
    geometric mean over these pages and settings, and the interval is about other seeds of them (not
    other pages, as in `compare`): Student's, of the mean logarithm of each seed, which it takes as
    normal and independent. It looks after 8, 12, 18, ... seeds, up to *most_seeds*, and misses the
    speedup with the chance 1 - *confidence* over all looks together.

    *options* are those of `sweep`. The rows of `results` are those of a sweep over as many seeds.

    Raises:
        InputError: listing every mistake in what was given.
        NothingToMeasureError: if no pair has the value.
        StoreError: if the store cannot be read or written.
        MissingExtraError: if scipy is not installed.

    >>> found = sweep_until(
    ...     "creative", width=0.1, schemes=["rr", "fifo"], rtt_ms=50, loss=0.02, executor="serial"
    ... )
    >>> found.is_narrow, found.rows[0].seeds
    (True, 8)
    """
    _check(width=width, confidence=confidence, most_seeds=most_seeds, options=options)
    planned = looks(most_seeds)
    study = study_of(pages, schemes=schemes, seeds=planned[0], **options)
    _check_baseline(baseline, study)
    kept = Store(":memory:" if store is None else store)
    level = (1 - confidence) / len(planned)
    for n_seeds in planned:
        results = _with_seeds(study, n_seeds).run(store=kept, executor=executor, workers=workers)
        rows = _rows(results, baseline, value, level)
        is_narrow = all(row.high / row.low - 1 < width for row in rows)
        if is_narrow:
            break
    found = Rows(SequentialRow, rows)
    return Sequential(rows=found, results=results, looks=planned, is_narrow=is_narrow)


def _check_baseline(baseline: str, study: Study) -> None:
    names = [scheme.name for scheme in study.design.schemes]
    if baseline not in names or len(names) < 2:
        message = f"must be one of several schemes ({', '.join(names)}), is {baseline!r}"
        raise InputError([Problem(key="baseline", message=message)])


def looks(most_seeds: int) -> tuple[int, ...]:
    """Return after how many seeds one looks: from 8 on, each time half as many again.

    >>> looks(50), looks(5)
    ((8, 12, 18, 27, 40, 50), (5,))
    """
    found, n_seeds = [], min(_FIRST, most_seeds)
    while n_seeds < most_seeds:
        found.append(n_seeds)
        n_seeds = int(n_seeds * _GROWTH)
    return (*found, most_seeds)


def seed_interval(values: Sequence[float], level: float) -> tuple[float, float]:
    """Return Student's interval of the mean of *values*; it misses with the chance *level*.

    Raises:
        MissingExtraError: if scipy is not installed.

    >>> [round(end, 3) for end in seed_interval([1.0, 2.0, 3.0], 0.05)]
    [-0.484, 4.484]
    """
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    reach = _critical(n - 1, level) * math.sqrt(variance / n)
    return mean - reach, mean + reach


@cache
def _critical(freedom: int, level: float) -> float:
    try:
        from scipy import stats  # on use: an extra
    except ImportError as error:
        raise MissingExtraError("scipy", "study") from error
    return float(stats.t.ppf(1 - level / 2, freedom))


def _with_seeds(study: Study, n_seeds: int) -> Study:
    return replace(study, design=replace(study.design, seeds=range(n_seeds)))


def _rows(results: Results, baseline: str, value: str, level: float) -> list[SequentialRow]:
    rows = []
    for scheme, pairs in pairs_by_scheme(results, baseline, value).items():
        if scheme == baseline:
            continue
        means = _means_of_seeds(pairs)
        if len(means) > 1:
            middle = math.fsum(means) / len(means)
            ends = (math.exp(end) for end in seed_interval(means, level))
            rows.append(SequentialRow(scheme, len(means), math.exp(middle), *ends))
    if not rows:
        raise NothingToMeasureError(f"no load has {value} beside one of {baseline}")
    return rows


def _means_of_seeds(pairs: Iterable[Pair]) -> list[float]:
    """Return the mean logarithm of each seed over those pages and settings that have them all."""
    logs: dict[int, list[float]] = {}
    for pair in pairs:
        logs.setdefault(pair.seed, []).append(math.log(pair.speedup))
    most = max(map(len, logs.values()))
    # A seed of which a load failed is about fewer pages, and its mean about something else.
    return [math.fsum(own) / most for own in logs.values() if len(own) == most]


def _check(*, width: float, confidence: float, most_seeds: int, options: Mapping[str, Any]) -> None:
    problems = []
    if not width > 0:
        problems.append(Problem(key="width", message=f"must be more than 0, is {width}"))
    if not 0 < confidence < 1:
        message = f"must be more than 0 and less than 1, is {confidence}"
        problems.append(Problem(key="confidence", message=message))
    if type(most_seeds) is not int or most_seeds < 2:
        message = f"must be a whole number from 2 on, is {most_seeds!r}"
        problems.append(Problem(key="most_seeds", message=message))
    if "seeds" in options:
        problems.append(Problem(key="seeds", message="are added as needed: give most_seeds="))
    if problems:
        raise InputError(problems)
