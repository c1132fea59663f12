"""Report sections about a study and about the search for the best scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.errors import H3SimError, InputError, ValidationIssue
from h3sim.reporting.document import Section
from h3sim.reporting.labels import Interval
from h3sim.reporting.load_sections import picture
from h3sim.reporting.study_plots import draw_ratios
from h3sim.study.recommendation import EXAMPLE
from h3sim.study.statistics import NO_SEED_MATTERS
from h3sim.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.reporting.document import Picture
    from h3sim.study import Recommendation, Results, SearchResult
    from h3sim.study.statistics import SchemeRow


_NOT_KEPT = "No load was kept to be drawn: recommend(..., keep_loads=True) keeps them."


def verdict_of_advice(advice: Recommendation) -> list[str]:
    """Return how far its replay is from the recording, and the verdict of its search."""
    judged = [] if advice.fidelity is None else advice.fidelity.lines()
    return [*judged, advice.sentence]


def part_of_advice(advice: Recommendation) -> Section:
    """Return the section of a recommendation: that of its search, and what its page is made of."""
    found = part_of_found(advice.found)
    compared = advice.comparison
    words = [*found.words, *compared.notes.get(advice.page.name, ())]
    words += [f"Of the recording: {text}" for text in _warnings(advice)]
    words += [] if compared.loads else [_NOT_KEPT]
    return Section(title=found.title, words=words, pictures=found.pictures, tables=found.tables)


def part_of_found(found: SearchResult) -> Section:
    """Return the section of a search for the best scheme: a figure and tables of its rows."""
    race = _race(found)
    ratios = {row.scheme: Interval(row.ratio, row.low, row.high) for row in found.rows}
    tables = [race]
    if found.robustness:
        tables.append(
            Table(
                ("changed", "best there", "loss, %", "low, %", "high, %"),
                [
                    (row.changed, row.best_there, *map(_percent, (row.loss, row.low, row.high)))
                    for row in found.robustness
                ],
                title=f"Sensitivity of {found.best}: distance from the best under other conditions",
            )
        )
    return Section(
        title=f"The best scheme for {', '.join(found.page_digests)}",
        words=[found.describe()],
        pictures=[picture(draw_ratios(ratios, race.title), title=race.title, data=race)],
        tables=tables,
    )


def note_of_example(advice: Recommendation) -> str:
    """Return what to know of the loads that a recommendation kept."""
    return f"{EXAMPLE[0].upper()}{EXAMPLE[1:]}: {advice.comparison.describe()}."


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def settings_of_found(found: SearchResult) -> list[tuple[str, Any]]:
    """Return what the search was run with."""
    pages = [(f"page {name}", digest) for name, digest in found.page_digests.items()]
    own = {
        "pages": len(found.page_digests),
        "seeds at most": found.n_seeds,
        "seeds run": found.words["seed"],
        "confidence": found.confidence,
        "network within": found.network_within,
        "loads of the search": found.n_loads,
    }
    config = [
        (name, "-" if value is None else str(value))
        for name, value in found.configuration.items()
        if name != "seed"
    ]
    return [*pages, *own.items(), *config]


def _race(found: SearchResult) -> Table[Any]:
    of = "above the fold" if found.which == "atf" else "of all resources"
    level = f"{100 * found.confidence:g} %"
    return Table(
        ("scheme", "pairs", "ratio to the best", "low", "high", "standing"),
        [
            (row.scheme, row.pairs, row.ratio, row.low, row.high, found.status(row))
            for row in found.rows
        ],
        title=f"ByteIndex {of}: ratio to that of {found.best}, with {level} intervals",
    )


def _warnings(advice: Recommendation) -> tuple[str, ...]:
    return () if advice.imported is None else advice.imported.warnings


_VALUES = (
    ("byte_index_all_ms", "ByteIndex of all resources"),
    ("byte_index_atf_ms", "ByteIndex above the fold"),
)
_FIRST_FIGURE = "byte_index_all_ms"
_BY = ("network", "scheme")
_MOST_FIGURES = 6
"""Most settings with a figure of their own: of more, only the table has them."""


class ComparedSetting(NamedTuple):
    """The schemes of a study in one setting, compared with the baseline; or why they are not."""

    setting: str
    rows: Sequence[SchemeRow]
    refusal: str = ""

    def sentence(self, what: str, baseline: str) -> str:
        """Return which scheme gains most over the baseline, and how sure that is."""
        where = f"{what}, {self.setting}" if self.setting else what
        others = [row for row in self.rows if row.scheme != baseline]
        if not others:
            return f"{where}: not compared, for {self.refusal or f'{baseline} is alone'}."
        best = max(others, key=lambda row: row.geometric)
        speedup = f"{best.geometric:.2f}"
        most = f"{where}: {best.scheme} has the largest speedup to {baseline}"
        if best.low is None or best.high is None:
            are_copies = best.clusters == 1 < best.pairs
            few = NO_SEED_MATTERS if are_copies else f"{_clusters(best)}, too few for an interval"
            return f"{most}: {speedup} ({few})."
        reach = f"{best.low:.2f} to {best.high:.2f}, 95 % interval over {_clusters(best)}"
        if best.low > 1:
            return f"{most}: {speedup} ({reach})."
        return (
            f"{where}: no scheme is shown to be faster than {baseline}; {best.scheme} comes"
            f" closest, with a speedup of {speedup} ({reach})."
        )


def _clusters(row: SchemeRow) -> str:
    return f"{row.clusters} cluster{'s' * (row.clusters != 1)}"


def describe_study(results: Results, baseline: str | None) -> tuple[list[str], Section]:
    """Return the verdict of a study and its section, of which both say the same numbers.

    Schemes are compared setting by setting: a mean over networks or loss rates answers no question.

    Raises:
        InputError: if its rows are not loads, as those of header lists and of resources are not.
    """
    if len(results) and _FIRST_FIGURE not in results.columns:
        message = f"must be of page loads, and its rows have no {_FIRST_FIGURE}"
        raise InputError([ValidationIssue(key="study", message=message)])
    base = _baseline(results, baseline)
    failed = len(results.errors)
    verdict = [
        f"{len(results):,} loads over {', '.join(results.axes) or 'no parameter'}"
        + (f"; {failed:,} failed and are left out." if failed else ".")
    ]
    pictures: list[Picture] = []
    tables: list[Table[Any]] = []
    for value, what in _VALUES:
        if not _has_values(results, value):
            verdict.append(f"No load has a {what}.")
            continue
        compared = _compared(results, base, value)
        verdict += [one.sentence(what, base) for one in compared]
        tables.append(_speedups(compared, f"Speedups of {what} to {base}"))
        drawn = compared if len(compared) <= _MOST_FIGURES else ()
        pictures += (_forest(one, what, base) for one in drawn if one.rows)
        if (lines := _over_axis(results, value, what)) is not None:
            pictures.append(lines)
        tables.append(_mean_table(results, value, what))
    return verdict, Section(title="The study", pictures=pictures, tables=tables)


def _compared(results: Results, baseline: str, value: str) -> list[ComparedSetting]:
    """Return the comparison in each setting: all that the axes are but page, scheme and seed."""
    axes = [name for name in results.axes if name not in ("page", "scheme", "seed")]
    found = []
    for key, rows in results.group(*axes).items() if axes else [((), results)]:
        setting = ", ".join(f"{name} {_shown(v)}" for name, v in zip(axes, key, strict=True))
        try:
            compared = rows.compare(baseline, value=value)
        except H3SimError as error:
            found.append(ComparedSetting(setting, (), str(error)))
        else:
            found.append(ComparedSetting(setting, list(compared)))
    return found


def _speedups(compared: Sequence[ComparedSetting], title: str) -> Table[Any]:
    return Table(
        ("setting", *_COMPARED),
        [
            (one.setting, *(getattr(row, name) for name in _COMPARED))
            for one in compared
            for row in one.rows
        ],
        title=f"{title}, with 95 % intervals; above 1 is faster",
    )


_COMPARED = ("scheme", "pairs", "clusters", "geometric", "low", "high", "p_holm")


def _forest(compared: ComparedSetting, what: str, baseline: str) -> Picture:
    data = _speedups([compared], f"Speedups of {what} to {baseline}")
    ratios = {row.scheme: Interval(row.geometric, row.low, row.high) for row in compared.rows}
    setting = f", {compared.setting}" if compared.setting else ""
    title = f"{what}{setting}: speedups to {baseline}"
    return picture(draw_ratios(ratios, f"{title}, 95 % intervals"), title=title, data=data)


def settings_of(results: Results) -> list[str]:
    """Return the columns that say what was run, not what came of it."""
    columns = list(results.columns)
    if _FIRST_FIGURE in columns:
        return columns[: columns.index(_FIRST_FIGURE)]
    return [name for name in results.axes if name in columns]


def _over_axis(results: Results, value: str, what: str) -> Picture | None:
    """Return lines over the first axis of numbers but the seed, None where there is none."""
    for axis in results.axes:
        if axis in ("seed", "scheme", "page") or axis not in results.columns:
            continue
        values = set(results.column(axis))
        if len(values) > 1 and all(type(one) in (int, float) for one in values):
            title = f"{what} over {axis}"
            data = _summary_table(results, value, (axis, "scheme"), f"{title}, ms")
            return picture(results.plot.lines(axis, value), title=title, data=data)
    return None


def _has_values(results: Results, value: str) -> bool:
    return value in results.columns and any(row.get(value) is not None for row in results)


def _mean_table(results: Results, value: str, what: str) -> Table[Any]:
    by = [name for name in _BY if name in results.columns]
    by += [name for name in results.axes if name not in (*by, "page", "seed")]
    return _summary_table(results, value, by, f"{what}, ms, over pages and seeds")


def _summary_table(results: Results, value: str, by: Sequence[str], title: str) -> Table[Any]:
    rows = [row for row in results.summary(value, by=list(by)) if row["n"]]
    measures = [name for name in rows[0] if name not in (*by, "value")]
    return Table(
        (*by, *measures),
        [(*(_shown(row[name]) for name in by), *(row[m] for m in measures)) for row in rows],
        title=title,
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
