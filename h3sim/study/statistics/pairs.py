"""Pairs of loads that agree in everything but one axis, and their clusters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from h3sim.load.figures import FIGURES
from h3sim.load.options import refuse
from h3sim.schema import format_value
from h3sim.schema.arguments import check_arguments
from h3sim.schema.values import Choice, ListOf, OrNone, Scalar, Text
from h3sim.study import pairing
from h3sim.study.columns import Columns
from h3sim.study.pairing import LOAD_COLUMNS, columns_of
from h3sim.study.rows import StudyRows, no_column
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEME = "scheme"
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
    results: RowsOrColumns, *, value: object, baseline: object = None, over: str = SCHEME
) -> None:
    """Refuse a *value* that is not a numeric column, and a *baseline* that column *over* lacks.

    Raises:
        InputError: listing both, and axes that the rows lack.
    """
    baseline_type = OrNone(Text() if over == SCHEME else Scalar())
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
        if over != SCHEME:
            message += f"; there are {', '.join(map(format_value, known))}"
        problems.append(ValidationIssue(key="baseline", message=message))
    refuse(problems)


def pairs_by_scheme(results: RowsOrColumns, baseline: str, value: str) -> dict[str, list[Pair]]:
    """Return the pairs of each scheme that have a ratio, as `pairs_over`.

    Raises:
        InputError: as `pairs_over`, or if too many pairs have no ratio.
    """
    pairs = pairs_over(results, SCHEME, baseline, value)
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
    pairs = pairs_over(columns, SCHEME, baseline, value)
    by_seed = columns.is_constant("page")
    return {
        scheme: {
            name: math.fsum(pair.difference for pair in cluster) / len(cluster)
            for name, cluster in clusters_of(own, by_seed=by_seed).items()
        }
        for scheme, own in pairs.items()
    }


HOW = OrNone(Choice(HOWS), none=None)


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


def clusters_of(pairs: Sequence[Pair], *, by_seed: bool) -> dict[str, list[Pair]]:
    """Return the pairs by page or, for a single page, by seed."""
    clusters: dict[str, list[Pair]] = {}
    for pair in pairs:
        clusters.setdefault(str(pair.seed if by_seed else pair.page), []).append(pair)
    return clusters


def values_by_setting(
    columns: Columns, value: str
) -> tuple[list[str], dict[tuple[Any, ...], dict[str, list[float]]]]:
    """Return the columns of a setting, and the values of each scheme by page and setting."""
    varied = pairing.varying(columns, columns.axes)
    settings = [name for name in varied if name not in LOAD_COLUMNS]
    groups: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    loads = pairing.distinct_loads(columns, ["page", *settings, SCHEME, "seed"], value)
    for (*where, scheme, _), (own, _) in loads.items():
        groups.setdefault(tuple(where), {}).setdefault(scheme, []).append(own)
    return settings, groups
