"""Sensitivity analyses: the share of a metric's variance that each setting explains (Sobol')."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim.load.load_config import unknown_option
from h3sim.load.options import SEED, check_running
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.errors import plain_number
from h3sim.study.design import Range
from h3sim.study.statistics.pairs import check_columns
from h3sim.study.sweep import load_study, resolve_seeds
from h3sim.values.errors import InputError, NothingToMeasureError, UnknownOptionError, needing_extra
from h3sim.values.table import Rows

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.study.rows import StudyRows
    from h3sim.study.sweep import Study

_SET_HERE = ("cells",)
"""Arguments of `load_study` that a sensitivity analysis sets itself."""
_N_RESAMPLES = 999
_LEVEL = 0.95


class SensitivityRow(NamedTuple):
    """Sobol' indices of one option: of first order (`first`) and with interactions (`total`).

    Each has a 95 % bootstrap interval. The options "page", "scheme" and "seed" are those of the
    study.
    """

    option: str
    first: float
    first_low: float
    first_high: float
    total: float
    total_low: float
    total_high: float


@dataclass(frozen=True)
class _Values:
    """Factor with a list of values, which are equally likely; a point has the index of one."""

    values: tuple[Any, ...]

    def at(self, share: float) -> int:
        return min(len(self.values) - 1, int(share * len(self.values)))


_Factor: TypeAlias = "Range | _Values"
_Point: TypeAlias = "tuple[float, ...]"
"""For each factor a value of its range, or the index of a listed value."""


def sensitivity(
    page: PageLike | Iterable[PageLike],
    *,
    scheme: SchemeLike | Iterable[SchemeLike] = "rr",
    value: str = "byte_index_all_ms",
    samples: int = 64,
    seed: int = 0,
    seeds: int | Iterable[int] | None = None,
    store: str | Path | None = None,
    executor: Any = None,
    workers: int | None = None,
    **options: Any,
) -> Rows[SensitivityRow]:
    """Return the Sobol' indices of *value* for all that varies.

    These are each of *options* that is a `Range` or a list of values, and page, scheme and seed
    where there are several. The index of the seed is the share of chance, which no setting
    explains. *seeds* is a list, or a number of seeds from *seed* on (default: *seed* alone). All
    other options are fixed.

    With d factors, at most (d + 2) * *samples* loads run; *samples* is a power of 2. Factors are
    sampled independently by *seed*: ranges uniformly or log-uniformly, listed values with equal
    probability. The indices need no order of values. The estimators are those of Saltelli, in
    scipy.stats.sobol_indices; more samples give narrower intervals.

    Raises:
        InputError: listing every error in the arguments.
        NothingToMeasureError: if some loads lack the value, all have the same one, or the samples
            are too few to vary every factor.
        MissingExtraError: if scipy is not installed.

    >>> rows = sensitivity(
    ...     "davies-meenan", rtt_ms=Range(low=1, high=5), rate_mbps=Range(low=1, high=50),
    ...     scheme=["rr", "fifo"], value="page_load_ms", samples=8, executor="serial",
    ... )
    >>> [row.option for row in sorted(rows, key=lambda row: -row.total)]
    ['rate_mbps', 'rtt_ms', 'scheme']
    """
    reserved = [name for name in _SET_HERE if name in options]
    given = {name: option for name, option in options.items() if name not in reserved}
    ranges = {name: limits for name, limits in given.items() if isinstance(limits, Range)}
    lowest: dict[str, Any] = {name: limits.low for name, limits in ranges.items()}
    typed = {"samples": (_SAMPLES, samples), "seed": (SEED, seed)}
    check_running(store=store, executor=executor, workers=workers)
    valid = check_arguments(InputError, **typed)
    if reserved:
        raise UnknownOptionError([unknown_option(reserved[0], ())])
    chosen = _seeds(seeds, valid["seed"])
    # Checks the other options, at one point of the ranges.
    study = load_study(page, schemes=scheme, seeds=chosen, **(given | lowest))
    factors = _factors(ranges, study)
    _check_factors(factors)
    fixed = {name: given[name] for name in given if name not in factors}

    def metric_at(points: Sequence[_Point]) -> list[float]:
        """Return the metric at *points*, which are one study, whose loads run in parallel."""
        distinct = list(dict.fromkeys(points))
        planned = _study_at(distinct, factors, study, fixed)
        results = planned.run(store=store, executor=executor, workers=workers, progress=False)
        column = _complete_column(results, value, len(distinct))
        values = dict(zip(distinct, column, strict=True))
        return [values[point] for point in points]

    rows = indices_of(metric_at, factors, int(valid["samples"]), valid["seed"])
    # Indices are shares of the variance, and undefined without any.
    if not all(math.isfinite(row.total) for row in rows):
        raise NothingToMeasureError(f"{value} is the same in all loads: it has no variance")
    return Rows(SensitivityRow, rows)


def _seeds(seeds: int | Iterable[int] | None, first: int) -> Sequence[int]:
    """Return the seeds of the loads: those listed, or a number of seeds from *first* on."""
    if seeds is None:
        return [first]
    chosen = resolve_seeds(seeds)
    return chosen if isinstance(seeds, Iterable) else range(first, first + len(chosen))


def _factors(ranges: Mapping[str, Range], study: Study) -> dict[str, _Factor]:
    """Return all that varies, in the order of the study: its pages, options, schemes and seeds."""
    design = study.design
    options = {name: ranges.get(name, values) for name, values in design.settings.axes.items()}
    everything = {
        "page": design.pages,
        **options,
        "scheme": design.schemes,
        "seed": tuple(design.seeds),
    }
    return {
        name: values if isinstance(values, Range) else _Values(values)
        for name, values in everything.items()
        if isinstance(values, Range) or len(values) > 1
    }


def _check_factors(factors: Mapping[str, _Factor]) -> None:
    if len(factors) < 2:
        message = (
            "at least two must vary, each as a Range or a list of values: a single one explains all"
            " variance"
        )
        raise InputError.at("options", message)


def _study_at(
    points: Sequence[_Point],
    factors: Mapping[str, _Factor],
    study: Study,
    fixed: Mapping[str, Any],
) -> Study:
    """Return the study of one load per point."""
    design = study.design
    cells = []
    indices = []
    for number, point in enumerate(points):
        chosen = dict(zip(factors, point, strict=True))
        page, scheme, seed = (int(chosen.pop(name, 0)) for name in ("page", "scheme", "seed"))
        indices.append((page, number, scheme, seed))
        cells.append({name: _option(factors[name], at) for name, at in chosen.items()})
    planned = load_study(
        design.pages, schemes=design.schemes, seeds=design.seeds, cells=cells, **fixed
    )
    return replace(planned, design=replace(planned.design, listed=tuple(indices)))


def _option(factor: _Factor, at: float) -> Any:
    return factor.values[int(at)] if isinstance(factor, _Values) else at


def _complete_column(results: StudyRows, value: str, n: int) -> list[float]:
    """Return the *value* of all *n* loads.

    Raises:
        NothingToMeasureError: if a load failed, or has no such value.
    """
    if len(results):
        check_columns(results, value=value)
    column = results.column(value)
    if len(column) < n or None in column:
        n_known = sum(number is not None for number in column)
        reason = "".join(f": {error}" for error in results.errors[:1])
        message = f"not all loads have {value}, only {n_known:,} of {n:,}{reason}"
        raise NothingToMeasureError(message)
    return column


def _is_power_of_two(samples: Any) -> bool:
    number = plain_number(samples)
    return type(number) is int and number >= 2 and not number & (number - 1)


# Other numbers of Sobol' points are not balanced, and scipy refuses them.
_SAMPLES = Predicate("a power of two of at least 2", _is_power_of_two)


def indices_of(
    metric_at: Callable[[Sequence[_Point]], list[float]],
    factors: Mapping[str, _Factor],
    samples: int,
    seed: int,
) -> list[SensitivityRow]:
    """Return the indices of each of *factors*; *metric_at* returns the metric at points.

    Raises:
        NothingToMeasureError: if a factor has the same value in all pairs of points.
        MissingExtraError: if scipy is not installed.
    """
    with needing_extra("scipy", "study"):
        import numpy as np  # lazy: optional dependencies
        from scipy import stats

    samples_of: list[list[_Point]] = []  # of each call

    def metric_at_shares(shares: Any) -> Any:
        """Return the metric at each column of *shares*, whose rows are the factors."""
        # Quantiles are sampled uniformly and mapped here, so that log-uniform and integer ranges
        # and listed values need no distributions of their own.
        points = [
            tuple(
                factor.at(float(share))
                for factor, share in zip(factors.values(), column, strict=True)
            )
            for column in shares.T
        ]
        samples_of.append(points)
        # The samples A and B, of which pairs of points are compared.
        if len(samples_of) == 2:
            _check_variation(factors, *samples_of)
        # scipy expects one row per metric. It subtracts means in place: integers would fail.
        return np.array([metric_at(points)], dtype=float)

    outputs: list[Any] = []  # the metric at the samples A, B and AB of scipy, for the intervals

    def estimate(f_A: Any, f_B: Any, f_AB: Any) -> Any:  # noqa: N803 - as scipy names them
        outputs[:] = f_A, f_B, f_AB
        return _sobol_indices(f_A, f_B, f_AB)

    stats.sobol_indices(
        func=metric_at_shares,
        n=samples,
        dists=[stats.uniform()] * len(factors),
        method=estimate,
        rng=seed,
    )
    rows = zip(factors, *_indices_with_intervals(outputs, seed), strict=True)
    return [SensitivityRow(name, *map(float, numbers)) for name, *numbers in rows]


def _check_variation(
    factors: Iterable[str], at_a: Sequence[_Point], at_b: Sequence[_Point]
) -> None:
    """Check that each factor differs in some pair of points: otherwise its indices would be 0.

    Raises:
        NothingToMeasureError: if it does not.
    """
    constant = [
        name
        for name, *values in zip(
            factors, zip(*at_a, strict=True), zip(*at_b, strict=True), strict=True
        )
        if values[0] == values[1]
    ]
    if constant:
        message = f"{len(at_a)} samples vary no {' and no '.join(constant)}: take more samples"
        raise NothingToMeasureError(message)


def _sobol_indices(at_a: Any, at_b: Any, at_ab: Any) -> Any:
    """Return first-order and total indices, one row per metric (Saltelli et al. 2010, Table 2).

    *at_a* and *at_b* have the metrics at two independent samples, *at_ab* those at the first with
    one option after the other from the second.
    """
    import numpy as np

    variance = np.var([at_a, at_b], axis=(0, -1))
    first = np.mean(at_b * (at_ab - at_a), axis=-1) / variance
    total = np.mean((at_a - at_ab) ** 2, axis=-1) / 2 / variance
    return first.T, total.T


def _indices_with_intervals(outputs: Sequence[Any], seed: int) -> list[Any]:
    """Return first-order and total indices, each followed by the low and high ends of intervals."""
    import warnings

    import numpy as np
    from scipy import stats

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about constant metrics, which have no interval
        indices = _sobol_indices(*outputs)
        # Like `SobolResult.bootstrap`, which cannot be seeded.
        found = stats.bootstrap(
            [np.arange(outputs[0].shape[-1])],
            lambda rows: np.array(_sobol_indices(*(each[..., rows] for each in outputs))),
            n_resamples=_N_RESAMPLES,
            confidence_level=_LEVEL,
            method="BCa",
            rng=seed,
        )
        tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
        # Where the correction is undefined, as in resamples of few distinct values.
        plain = np.nanquantile(found.bootstrap_distribution, tails, axis=-1)
    interval = found.confidence_interval
    columns = []
    for number, index in enumerate(indices):
        columns.append(np.ravel(index))
        for end, uncorrected in zip((interval.low, interval.high), plain, strict=True):
            columns.append(
                np.ravel(np.where(np.isnan(end[number]), uncorrected[number], end[number]))
            )
    return columns
