"""`h3sim.report`: the choice of report sections for given results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim._version import __version__
from h3sim.advice import Recommendation, SearchResult
from h3sim.advice.recommendation import EXAMPLE
from h3sim.export import SavedLoad
from h3sim.load import Load, in_words
from h3sim.load.configuration import identity
from h3sim.load.qlog_metrics import Measurement
from h3sim.reporting.document import Report, ReportParts, Section
from h3sim.reporting.labels import Interval, shared_settings
from h3sim.reporting.load_sections import describe_loads, describe_log, picture
from h3sim.reporting.study_plots import draw_ratios
from h3sim.schema import format_value
from h3sim.study import Comparison, Results, Sequential
from h3sim.study.pairing import LOAD_COLUMNS
from h3sim.study.statistics.contrasts import NO_SEED_MATTERS
from h3sim.study.worker import row_of
from h3sim.values.errors import H3SimError, InputError
from h3sim.values.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.reporting.document import Picture
    from h3sim.study.statistics.contrasts import SchemeRow


Reported: TypeAlias = (
    "Load | SavedLoad | Comparison | Results | Sequential | Measurement | Recommendation"
    " | SearchResult"
)
_OtherResult: TypeAlias = "Results | Measurement | Recommendation | SearchResult"


def report(
    of: Reported | Iterable[Reported],
    *,
    baseline: str | None = None,
    title: str | None = None,
    command: str = "",
) -> Report:
    """Return a report of loads, a comparison that kept its loads, a study, or a measured log.

    Loads of one page are compared with that of scheme *baseline*, by default rr or else the first.
    Saved loads are simulated again. Results of `recommend` and `search` are reported with their
    verdicts and numbers, followed by the loads that a recommendation kept, as examples. *command*
    is shown as the command that made the report.

    Raises:
        InputError: if there is nothing to report, or something else.
        NothingToMeasureError: if a comparison kept no loads.

    >>> from h3sim.load import simulate
    >>> made = report([simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")])
    >>> print(made.verdict[0].partition(",")[2].partition(";")[0])
     above the fold: fifo is fastest, with a ByteIndex of 2,709 ms, 1.26 times as fast as rr
    """
    values = _reported_values(of)
    groups: dict[str, list[Load]] = {}
    for value in values:
        if isinstance(value, Load):
            groups.setdefault(value.page.digest, []).append(value)
    loads = [load for group in groups.values() for load in group]
    described = [describe_loads(group, baseline) for group in groups.values()]
    names = [one.name for one in described]
    if len(groups) > 1 and len({load.scheme.name for load in loads}) > 1:
        # The answer is that over all pages; what each says stands with its figures.
        described = [
            each._replace(verdict=(), section=replace(each.section, answer=each.verdict))
            for each in described
        ]
        rows = Results.of(map(row_of, loads), axes=LOAD_COLUMNS)
        over_pages = describe_study(rows, baseline)
        section = replace(over_pages.section, title=f"All {len(groups)} pages")
        described.insert(0, over_pages._replace(section=section))
    others = [value for value in values if not isinstance(value, Load)]
    of_others = [one for value in others for one in _describe(value, baseline)]
    described += of_others
    names += [one.name for one in of_others]
    settings = [
        ("h3sim", __version__),
        *_settings_of_loads(loads),
        *(row for one in described for row in one.settings),
    ]
    return Report(
        title=title or f"h3sim: {_default_title([*dict.fromkeys(names)], loads)}",
        verdict=[sentence for one in described for sentence in one.verdict],
        parts=[one.section for one in described],
        made=Table(("setting", "value"), settings, title="Settings and versions"),
        command=command,
    )


def _describe(value: _OtherResult, baseline: str | None) -> Iterator[ReportParts]:
    if isinstance(value, Measurement):
        yield describe_log(value)
    elif isinstance(value, Recommendation):
        yield from _describe_recommendation(value, baseline)
    elif isinstance(value, SearchResult):
        settings = _settings_of_search(value)
        yield ReportParts("the best scheme", [value.verdict], _section_of_search(value), settings)
    else:
        yield describe_study(value, baseline)


def _reported_values(of: Reported | Iterable[Reported]) -> list[Load | _OtherResult]:
    """Return the values to report, with comparisons and saved loads replaced by their loads.

    A study is one value, although it can be iterated over.
    """
    given: list[Any] = (
        [of] if isinstance(of, (*_REPORTED_TYPES, str)) or not isinstance(of, Iterable) else [*of]
    )
    found: list[Any] = []
    for value in given:
        if isinstance(value, Comparison):
            for page, send_buffer_kb in dict.fromkeys(
                (row.page, row.send_buffer_kb) for row in value.rows
            ):
                found += value.loads_of(page, send_buffer_kb=send_buffer_kb)
        elif isinstance(value, SavedLoad):
            found.append(value.run(record_packets=True))
        elif isinstance(value, Sequential):
            found.append(value.results)
        else:
            found.append(value)
    wrong = [value for value in found if not isinstance(value, _REPORTED_TYPES)]
    if not found or wrong:
        kinds = "loads, comparisons, studies, measured logs, recommendations or searches"
        message = f"must be {kinds}, is {format_value(wrong[0]) if wrong else 'nothing'}"
        raise InputError.at("of", message)
    return found


_REPORTED_TYPES = (
    Load,
    SavedLoad,
    Comparison,
    Results,
    Sequential,
    Measurement,
    Recommendation,
    SearchResult,
)


_MAX_NAMED = 3
"""Most pages that a title names."""


def _default_title(names: Sequence[str], loads: Sequence[Load]) -> str:
    counted = f"{len(names)} {'pages' if loads else 'results'}"
    description = ", ".join(names) if len(names) <= _MAX_NAMED else counted
    schemes = dict.fromkeys(load.scheme.name for load in loads)
    if not schemes:
        return description
    if len(schemes) == 1:
        return f"how does {description} load with {next(iter(schemes))}?"
    return f"which of {len(schemes)} schemes loads {description} fastest?"


def _settings_of_loads(loads: Sequence[Load]) -> list[tuple[str, Any]]:
    """Return every setting of *loads*: once if all have the same value, otherwise for each load."""
    if not loads:
        return []
    settings_by_load = [_flat_settings(load) for load in loads]
    shared = shared_settings(settings_by_load)
    rows: list[tuple[str, Any]] = list(shared.items())
    for number, settings in enumerate(settings_by_load, start=1):
        differing = [f"{key} {value}" for key, value in settings.items() if key not in shared]
        if differing:
            rows.append((f"load {number}", ", ".join(differing)))
    if len(loads) == 1:
        rows.append(("in words", ", ".join(in_words(loads[0].spec).values())))
    return rows


def _flat_settings(load: Load) -> dict[str, Any]:
    known = identity(load.spec)
    values = {key: known[key] for key in ("build", "page", "page_digest", "scheme")}
    values |= known["configuration"]
    # As text, so that tables do not format settings with thousands separators.
    return {
        key: "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for key, value in values.items()
    }


def _settings_of_study(results: Results) -> list[tuple[str, Any]]:
    """Return the axes of a study, and the values of its columns of settings."""
    rows: list[tuple[str, Any]] = [("study over", ", ".join(results.axes) or "nothing")]
    columns = list(results.columns)
    # Columns of settings precede those of metrics.
    names = [name for name in results.axes if name in columns]
    if _FIRST_METRIC_COLUMN in columns:
        names = columns[: columns.index(_FIRST_METRIC_COLUMN)]
    for name in names:
        values = list(
            dict.fromkeys("-" if value is None else str(value) for value in results.column(name))
        )
        shown = ", ".join(values[:20]) + (f" and {len(values) - 20} more" if values[20:] else "")
        rows.append((name, shown))
    return rows


_NO_LOADS_NOTE = "No load was kept to be drawn: recommend(..., keep_loads=True) keeps them."


def _describe_recommendation(advice: Recommendation, baseline: str | None) -> Iterator[ReportParts]:
    """Yield the parts of a recommendation, and of the loads that it kept as examples."""
    found = _section_of_search(advice.found)
    compared = advice.comparison
    loads = compared.loads
    # The verdict of the search, and how well a replay matches the recording.
    verdict = [advice.sentence, *([] if advice.fidelity is None else advice.fidelity.lines())]
    words = [*found.words, *compared.notes.get(advice.page.name, ())]
    if advice.imported is not None:
        words += [f"Of the recording: {text}" for text in advice.imported.warnings]
    words += [] if loads else [_NO_LOADS_NOTE]
    settings = _settings_of_search(advice.found)
    yield ReportParts(advice.page.name, verdict, replace(found, words=words), settings)
    if loads:
        # Without their verdicts, as single loads say less than the search.
        described = describe_loads(loads, baseline or compared.baseline)
        note = f"{EXAMPLE[0].upper()}{EXAMPLE[1:]}: {compared.describe()}."
        section = replace(described.section, words=[note, *described.section.words])
        yield described._replace(verdict=(), section=section)


def _section_of_search(found: SearchResult) -> Section:
    """Return the section of a search for the best scheme: a figure and tables of its rows."""
    of = "above the fold" if found.which == "atf" else "of all resources"
    race = Table(
        ("scheme", "pairs", "ratio to the best", "low", "high", "standing"),
        [
            (row.scheme, row.pairs, row.ratio, row.low, row.high, found.status(row))
            for row in found.rows
        ],
        title=f"ByteIndex {of}: ratio to that of {found.best}, with"
        f" {100 * found.confidence:g} % intervals",
    )
    ratios = {row.scheme: Interval(row.ratio, row.low, row.high) for row in found.rows}
    tables: list[Table[Any]] = [race]
    if conditions := (*found.guesses, *found.robustness):
        sensitivity = [
            (
                row.changed,
                row.best_there,
                *(None if loss is None else 1 + loss for loss in (row.loss, row.low, row.high)),
            )
            for row in conditions
        ]
        ratios_of = map(Column.ratio, ("ratio to the best", "low", "high"))
        heads: tuple[str | Column, ...] = ("changed", "best there", *ratios_of)
        title = f"Sensitivity of {found.best}: its ratio to the best under other conditions"
        tables.append(Table(heads, sensitivity, title=title))
    return Section(
        title=f"The best scheme for {', '.join(found.page_digests)}",
        words=[found.describe()],
        pictures=[picture(draw_ratios(ratios, race.title), title=race.title, data=race)],
        tables=tables,
    )


def _settings_of_search(found: SearchResult) -> list[tuple[str, Any]]:
    """Return the settings of a search."""
    pages = [(f"page {name}", digest) for name, digest in found.page_digests.items()]
    search = {
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
    return [*pages, *search.items(), *config]


_COMPARED_METRICS = (
    ("byte_index_atf_ms", "ByteIndex above the fold"),
    ("byte_index_all_ms", "ByteIndex of all resources"),
)
"""What is visible first, if it is known."""
_FIRST_METRIC_COLUMN = "byte_index_all_ms"
"""The first column of metrics: those before it are settings."""
_SUMMARY_COLUMNS = ("network", "scheme")
"""Columns by which a study is summarized first, if it has them."""
_MAX_FOREST_PLOTS = 6
"""Most settings with a figure each; with more, only tables have them."""


class ComparedSetting(NamedTuple):
    """Comparison of a study's schemes with the baseline in one setting, or why there is none."""

    setting: str
    rows: Sequence[SchemeRow]
    refusal: str = ""
    cluster: str = "page"
    """What intervals are over: "page", or "seed" where there is one page."""

    def sentence(self, what: str, baseline: str) -> str:
        """Return a sentence on the scheme with the largest speedup, and its uncertainty."""
        where = f"{what}, {self.setting}" if self.setting else what
        others = [row for row in self.rows if row.scheme != baseline]
        if not others:
            return f"{where}: not compared, for {self.refusal or f'{baseline} is alone'}."
        best = max(others, key=lambda row: row.geometric)
        speedup = f"{best.geometric:.2f}"
        most = f"{where}: {best.scheme} has the largest speedup to {baseline}"
        if best.low is None or best.high is None:
            are_copies = best.clusters == 1 < best.pairs
            few = (
                NO_SEED_MATTERS
                if are_copies
                else f"{self._clusters(best)}, too few for an interval"
            )
            return f"{most}: {speedup} ({few})."
        reach = f"{best.low:.2f} to {best.high:.2f}, 95 % interval over {self._clusters(best)}"
        if best.low > 1:
            return f"{most}: {speedup} ({reach})."
        return (
            f"{where}: no scheme is shown to be faster than {baseline}; {best.scheme} comes"
            f" closest, with a speedup of {speedup} ({reach})."
        )

    def _clusters(self, row: SchemeRow) -> str:
        return f"{row.clusters} {self.cluster}{'s' * (row.clusters != 1)}"


def describe_study(results: Results, baseline: str | None) -> ReportParts:
    """Return the verdict of a study, and its section with the same numbers.

    Schemes are compared in each setting: a mean over networks or loss rates would be meaningless.

    Raises:
        InputError: if its rows are not loads, but header lists or resources for example.
    """
    if len(results) and _FIRST_METRIC_COLUMN not in results.columns:
        message = f"must be of page loads, and its rows have no {_FIRST_METRIC_COLUMN}"
        raise InputError.at("study", message)
    base = _baseline_scheme(results, baseline)
    failed = len(results.errors)
    verdict: list[str] = []
    pictures: list[Picture] = []
    tables: list[Table[Any]] = []
    absent: list[str] = []
    for value, what in _COMPARED_METRICS:
        if all(row.get(value) is None for row in results):
            absent.append(f"No load has a {what}.")
            continue
        compared = _compare_settings(results, base, value)
        verdict += [one.sentence(what, base) for one in compared]
        tables.append(_speedup_table(compared, f"Speedups of {what} to {base}"))
        drawn = compared if len(compared) <= _MAX_FOREST_PLOTS else ()
        pictures += (_forest_plot(one, what, base) for one in drawn if one.rows)
        pictures += _line_plots(results, value, what)
        by = [name for name in _SUMMARY_COLUMNS if name in results.columns]
        by += [name for name in results.axes if name not in (*by, "page", "seed")]
        title = f"{what}, ms, over pages and seeds"
        tables.append(_summary_table(results, value, by, title))
    verdict += absent
    verdict.append(
        f"{len(results):,} loads over {', '.join(results.axes) or 'no parameter'}"
        + (f"; {failed:,} failed and are left out." if failed else ".")
    )
    part = Section(title="The study", pictures=pictures, tables=tables)
    return ReportParts("a study", verdict, part, _settings_of_study(results))


def _compare_settings(results: Results, baseline: str, value: str) -> list[ComparedSetting]:
    """Return the comparison in each combination of axes other than page, scheme and seed."""
    axes = [name for name in results.axes if name not in LOAD_COLUMNS]
    found = []
    for setting, rows in _by_setting(results, axes).items():
        try:
            compared = rows.compare(baseline, value=value)
        except H3SimError as error:
            found.append(ComparedSetting(setting, (), str(error)))
        else:
            cluster = "seed" if len(set(rows.column("page"))) == 1 else "page"
            found.append(ComparedSetting(setting, list(compared), cluster=cluster))
    return found


def _speedup_table(compared: Sequence[ComparedSetting], title: str) -> Table[Any]:
    return Table(
        ("setting", *_SPEEDUP_COLUMNS),
        [
            (one.setting, *(getattr(row, name) for name in _SPEEDUP_COLUMNS))
            for one in compared
            for row in one.rows
        ],
        title=f"{title}, with 95 % intervals; above 1 is faster",
    )


_SPEEDUP_COLUMNS = ("scheme", "pairs", "clusters", "geometric", "low", "high", "p_corrected")


def _forest_plot(compared: ComparedSetting, what: str, baseline: str) -> Picture:
    data = _speedup_table([compared], f"Speedups of {what} to {baseline}")
    ratios = {row.scheme: Interval(row.geometric, row.low, row.high) for row in compared.rows}
    setting = f", {compared.setting}" if compared.setting else ""
    title = f"{what}{setting}: speedups to {baseline}"
    return picture(draw_ratios(ratios, f"{title}, 95 % intervals"), title=title, data=data)


def _line_plots(results: Results, value: str, what: str) -> Iterator[Picture]:
    """Yield line plots over the first numeric axis other than the seed, if there is any.

    There is one in each setting of the other axes, unless there are too many.
    """
    for axis in results.axes:
        if axis in LOAD_COLUMNS or axis not in results.columns:
            continue
        values = set(results.column(axis))
        if len(values) > 1 and all(type(one) in (int, float) for one in values):
            others = [name for name in results.axes if name not in (axis, *LOAD_COLUMNS)]
            groups = _by_setting(results, others)
            if len(groups) <= _MAX_FOREST_PLOTS:
                for setting, rows in groups.items():
                    title = f"{what} over {axis}" + (f", {setting}" if setting else "")
                    data = _summary_table(rows, value, (axis, "scheme"), f"{title}, ms")
                    yield picture(rows.plot.lines(axis, value), title=title, data=data)
            return


def _by_setting(results: Results, axes: Sequence[str]) -> dict[str, Results]:
    """Return the results of each combination of *axes*, by its description."""
    groups = results.group(*axes) if axes else {(): results}
    return {
        ", ".join(f"{name} {_cell_value(v)}" for name, v in zip(axes, key, strict=True)): rows
        for key, rows in groups.items()
    }


def _summary_table(results: Results, value: str, by: Sequence[str], title: str) -> Table[Any]:
    rows = [row for row in results.summary(value, by=list(by)) if row["n"]]
    measures = [name for name in rows[0] if name not in (*by, "value")]
    return Table(
        (*by, *measures),
        [
            (*(_cell_value(row[name]) for name in by), *(row[measure] for measure in measures))
            for row in rows
        ],
        title=title,
    )


def _cell_value(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # so that 20 and 100 of one column look alike
    return value if isinstance(value, int | float | str | None) else str(value)


def _baseline_scheme(results: Results, baseline: str | None) -> str:
    schemes = (
        [] if "scheme" not in results.columns else list(dict.fromkeys(results.column("scheme")))
    )
    if baseline is not None and baseline not in schemes:
        message = f"must be a scheme of the study ({', '.join(schemes)}), is {baseline!r}"
        raise InputError.at("baseline", message)
    return baseline or ("rr" if "rr" in schemes else next(iter(schemes), ""))
