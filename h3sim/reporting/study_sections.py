"""Report sections about a study and about the search for the best scheme."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.errors import H3SimError, InputError, ValidationIssue
from h3sim.reporting.document import ReportTable, Section
from h3sim.reporting.load_sections import picture
from h3sim.text import decimals_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from h3sim.reporting.document import Picture
    from h3sim.study import Recommendation, Results, SearchResult


_NOT_KEPT = "The loads were not kept, so none is drawn: advise(..., keep_loads=True) keeps them."


def verdict_of_advice(advice: Recommendation) -> list[str]:
    """Return which scheme serves the page best, and how far its replay is from the recording."""
    judged = [] if advice.fidelity is None else advice.fidelity.lines()
    return [*judged, advice.sentence]


def part_of_advice(advice: Recommendation) -> Section:
    """Return the section of an advice; its loads, where it kept them, have one of their own."""
    compared = advice.comparison
    words = [compared.told(), *compared.notes.get(advice.page.name, ())]
    words += [f"Of the recording: {text}" for text in _warnings(advice)]
    words += [] if compared.loads else [_NOT_KEPT]
    table = ReportTable(
        title=f"Each scheme over the network as it is said to be; speedups to {compared.baseline}",
        columns=compared.rows.columns,
        rows=[tuple(row) for row in compared.rows],
    )
    title = f"{advice.page.name}: which scheme serves it best"
    return Section(title=title, words=words, tables=[_race(advice.found), table])


def part_of_found(found: SearchResult) -> Section:
    """Return the section of a search for the best scheme."""
    tables = [_race(found)]
    if found.robustness:
        tables.append(
            ReportTable(
                title=f"What {found.best} loses to the best where something is otherwise",
                columns=("changed", "best there", "loss, %"),
                rows=[(row.changed, row.best_there, 100 * row.loss) for row in found.robustness],
            )
        )
    return Section(title="Which scheme is best", words=[found.told()], tables=tables)


def settings_of_found(found: SearchResult) -> list[tuple[str, Any]]:
    """Return what the race was run with."""
    pages = [(f"page {name}", digest) for name, digest in found.page_digests.items()]
    own = {
        "pages": len(found.page_digests),
        "seeds at most": found.n_seeds,
        "confidence": found.confidence,
        "network within": found.network_within,
        "loads of the race": found.n_loads,
    }
    config = [(name, "-" if v is None else str(v)) for name, v in found.configuration.items()]
    return [*pages, *own.items(), *config]


def _race(found: SearchResult) -> ReportTable:
    of = "above the fold" if found.which == "atf" else "of all resources"
    level = f"{100 * found.confidence:g} %"
    return ReportTable(
        title=f"The ByteIndex {of}, times that of {found.best}, with {level} intervals",
        columns=("scheme", "pairs", "times the best", "low", "high", "standing"),
        rows=[
            (row.scheme, row.pairs, row.ratio, row.low, row.high, found.standing(row))
            for row in found.rows
        ],
    )


def _warnings(advice: Recommendation) -> tuple[str, ...]:
    return () if advice.imported is None else advice.imported.warnings


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
        raise InputError([ValidationIssue(key="study", message=message)])
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
        raise InputError([ValidationIssue(key="baseline", message=message)])
    return baseline or ("rr" if "rr" in schemes else next(iter(schemes), ""))
