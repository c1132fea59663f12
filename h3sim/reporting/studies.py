"""What a report says of a study: which scheme is faster over all loads, how surely."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.errors import H3SimError, InputError, Problem
from h3sim.fitting import decimals_of
from h3sim.reporting.document import ReportTable, Section
from h3sim.reporting.drawing import picture

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from h3sim.reporting.document import Picture
    from h3sim.study import Results

__all__ = ["part_of_study", "settings_of", "verdict_of_study"]

_VALUES = (
    ("byte_index_all_ms", "ByteIndex of all resources"),
    ("byte_index_atf_ms", "ByteIndex above the fold"),
)
_FIRST_FIGURE = "byte_index_all_ms"
_BY = ("network", "scheme")


def verdict_of_study(results: Results, baseline: str | None) -> list[str]:
    """Return which scheme has the least mean, and how much that is, in sentences.

    Raises:
        InputError: if its rows are not loads, as those of header lists and of resources are not.
    """
    if len(results) and _FIRST_FIGURE not in results.columns:
        message = f"must be of page loads, and its rows have no {_FIRST_FIGURE}"
        raise InputError([Problem(key="study", message=message)])
    base = _baseline(results, baseline)
    failed = len(results.errors)
    said = [
        f"{len(results):,} loads over {', '.join(results.axes) or 'no parameter'}"
        + (f"; {failed:,} failed and are left out." if failed else ".")
    ]
    for value, what in _VALUES:
        means = _means(results, value)
        if not means:
            said.append(f"No load has a {what}.")
            continue
        (best, best_ms), (worst, worst_ms) = (
            pick(means.items(), key=lambda item: item[1]) for pick in (min, max)
        )
        decimals = decimals_of((best_ms, worst_ms), least=0)
        ratio = f" ({means[base] / best_ms:.2f} times as fast as {base})" if means.get(base) else ""
        said.append(
            f"{what}: {best} has the least mean over all loads, {best_ms:,.{decimals}f} ms{ratio};"
            f" {worst} the largest, {worst_ms:,.{decimals}f} ms."
        )
    return said


def part_of_study(results: Results, baseline: str | None) -> Section:
    """Return the section of a study: intervals and tests where they can be had, means always."""
    base = _baseline(results, baseline)
    words: list[str] = []
    pictures: list[Picture] = []
    tables: list[ReportTable] = []
    for value, what in _VALUES:
        if not _means(results, value):
            continue
        try:
            compared = results.compare(base, value=value)
        except (H3SimError, KeyError) as error:
            words.append(f"{what}: no comparison of schemes, for {error}.")
        else:
            rows = [tuple(row) for row in compared]
            data = ReportTable(
                title=f"Speedups of {what} to {base}", columns=compared.columns, rows=rows
            )
            _add(
                *(pictures, words, f"{what}: speedups to {base}"),
                partial(results.plot.forest, value, baseline=base),
                data=data,
            )
        means = _mean_table(results, value, what)
        _add(
            *(pictures, words, f"{what}: schemes over settings"),
            partial(_over_axis, results, value),
            data=means,
        )
        tables.append(means)
    return Section(title="The study", words=words, pictures=pictures, tables=tables)


def settings_of(results: Results) -> list[str]:
    """Return the columns that say what was run, not what came of it."""
    columns = list(results.columns)
    if _FIRST_FIGURE in columns:
        return columns[: columns.index(_FIRST_FIGURE)]
    return [name for name in results.axes if name in columns]


def _add(
    pictures: list[Picture],
    words: list[str],
    title: str,
    draw: Callable[[], Axes | None],
    *,
    data: ReportTable,
) -> None:
    """Add a picture, or a sentence that says why it cannot be drawn."""
    try:
        drawn = draw()
    except H3SimError as error:
        words.append(f"{title}: not drawn, for {error}.")
        return
    if drawn is not None:
        pictures.append(picture(drawn, title=title, data=data))


def _over_axis(results: Results, value: str) -> Axes | None:
    """Return lines over the first axis of numbers but the seed, None where there is none."""
    for axis in results.axes:
        if axis in ("seed", "scheme", "page") or axis not in results.columns:
            continue
        values = set(results.column(axis))
        if len(values) > 1 and all(type(one) in (int, float) for one in values):
            drawn: Axes = results.plot.lines(axis, value)
            return drawn
    return None


def _means(results: Results, value: str) -> dict[str, float]:
    if value not in results.columns or "scheme" not in results.columns:
        return {}
    rows = results.summary(value, by=("scheme",))
    return {row["scheme"]: row["mean"] for row in rows if row["mean"] is not None}


def _mean_table(results: Results, value: str, what: str) -> ReportTable:
    by = [name for name in _BY if name in results.columns]
    by += [name for name in results.axes if name not in (*by, "page", "seed")]
    rows = [row for row in results.summary(value, by=by) if row["n"]]
    measures = [name for name in rows[0] if name not in (*by, "value")]
    return ReportTable(
        title=f"{what}, ms, over all other parameters",
        columns=(*by, *measures),
        rows=[(*(_shown(row[name]) for name in by), *(row[m] for m in measures)) for row in rows],
    )


def _shown(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # so that 20 and 100 of one column look alike
    return value if isinstance(value, int | float | str | None) else str(value)


def _baseline(results: Results, baseline: str | None) -> str:
    schemes = (
        [] if "scheme" not in results.columns else list(dict.fromkeys(results.column("scheme")))
    )
    if baseline is not None and baseline not in schemes:
        message = f"must be a scheme of the study ({', '.join(schemes)}), is {baseline!r}"
        raise InputError([Problem(key="baseline", message=message)])
    return baseline or ("rr" if "rr" in schemes else next(iter(schemes), ""))
