"""`h3sim.report`: the choice of report sections for given results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim._version import __version__
from h3sim.errors import InputError, ValidationIssue
from h3sim.reporting.document import Report
from h3sim.reporting.load_sections import named, part_of, part_of_log, verdict_of, verdict_of_log
from h3sim.reporting.study_sections import (
    describe_study,
    note_of_example,
    part_of_advice,
    part_of_found,
    settings_of,
    settings_of_found,
    verdict_of_advice,
)
from h3sim.results import Load, in_words
from h3sim.results.configuration import identity
from h3sim.results.qlog_metrics import Measurement
from h3sim.schema import format_value
from h3sim.study import Comparison, Recommendation, Results, SavedLoad, SearchResult, Sequential
from h3sim.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.reporting.document import Section
    from h3sim.reporting.load_sections import NamedLoad


Reported: TypeAlias = (
    "Load | SavedLoad | Comparison | Results | Sequential | Measurement | Recommendation"
    " | SearchResult"
)
_Other: TypeAlias = "Results | Measurement | Recommendation | SearchResult"


def report(
    of: Reported | Iterable[Reported],
    *,
    baseline: str | None = None,
    title: str | None = None,
    command: str = "",
) -> Report:
    """Return a report of loads, a comparison that kept its loads, a study, or a measured log.

    Loads of one page are compared with each other: with that of scheme *baseline*, by default rr,
    where there is none the first. Loads that were saved are run again. What `recommend` and
    `search` return is reported with its verdict and the numbers behind it; the loads that a
    recommendation kept follow as examples. *command* is shown as what made the report.

    Raises:
        InputError: if there is nothing to report, or something else.
        NothingToMeasureError: if a comparison kept no loads.

    >>> from h3sim.study import simulate
    >>> made = report([simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")])
    >>> print(made.verdict[0].partition(",")[2].partition(";")[0])
     all resources: fifo is fastest, with a ByteIndex of 2,630 ms, 1.41 times as fast as rr
    """
    values = _values(of)
    groups: dict[str, list[Load]] = {}
    for value in values:
        if isinstance(value, Load):
            groups.setdefault(value.page.digest, []).append(value)
    description = [_parts_of_page(loads, baseline) for loads in groups.values()]
    others = [value for value in values if not isinstance(value, Load)]
    description += [one for value in others for one in _parts_of(value, baseline)]
    loads = [load for group in groups.values() for load in group]
    made = [
        ("h3sim", __version__),
        *_made_of(loads),
        *(row for one in description for row in one.made),
    ]
    return Report(
        title=title or f"h3sim: {_title([*dict.fromkeys(one.name for one in description)], loads)}",
        verdict=[sentence for one in description for sentence in one.verdict],
        parts=[one.part for one in description],
        made=Table(("setting", "value"), made, title="Settings and versions"),
        command=command,
    )


class _ReportParts(NamedTuple):
    """Parts of a report about a page, a study or a log."""

    name: str
    verdict: Sequence[str]
    part: Section
    made: Sequence[tuple[str, Any]]


def _parts_of_page(loads: Sequence[Load], baseline: str | None) -> _ReportParts:
    pairs = named(loads)
    base = _base(pairs, baseline)
    return _ReportParts(loads[0].page.name, verdict_of(pairs, base), part_of(pairs, base), ())


def _parts_of(value: _Other, baseline: str | None) -> Iterator[_ReportParts]:
    if isinstance(value, Measurement):
        name = value.log.title
        yield _ReportParts(name, verdict_of_log(value), part_of_log(value), [("log", name)])
    elif isinstance(value, Recommendation):
        name, loads = value.page.name, value.comparison.loads
        made = settings_of_found(value.found)
        yield _ReportParts(name, verdict_of_advice(value), part_of_advice(value), made)
        if loads:
            # Without a verdict of their own: one load each says less than the search.
            description = _parts_of_page(loads, baseline or value.comparison.baseline)
            words = [note_of_example(value), *description.part.words]
            yield description._replace(verdict=(), part=replace(description.part, words=words))
    elif isinstance(value, SearchResult):
        made = settings_of_found(value)
        yield _ReportParts("the best scheme", [value.verdict], part_of_found(value), made)
    else:
        verdict, part = describe_study(value, baseline)
        yield _ReportParts("a study", verdict, part, _made_of_study(value))


def _values(of: Reported | Iterable[Reported]) -> list[Load | _Other]:
    """Return what is to be reported, one by one.

    Rows of a study can be gone through like a list, and are one thing here.
    """
    given: list[Any] = (
        [of] if isinstance(of, (*_KINDS, str)) or not isinstance(of, Iterable) else [*of]
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
    wrong = [value for value in found if not isinstance(value, _KINDS)]
    if not found or wrong:
        kinds = "loads, comparisons, studies, measured logs, recommendations or searches"
        message = f"must be {kinds}, is {format_value(wrong[0]) if wrong else 'nothing'}"
        raise InputError([ValidationIssue(key="of", message=message)])
    return found


_KINDS = (
    Load,
    SavedLoad,
    Comparison,
    Results,
    Sequential,
    Measurement,
    Recommendation,
    SearchResult,
)


def _base(pairs: Sequence[NamedLoad], baseline: str | None) -> NamedLoad:
    requested = "rr" if baseline is None else baseline
    found = next((pair for pair in pairs if pair.load.scheme.name == requested), None)
    if found is None and baseline is not None:
        names = ", ".join(dict.fromkeys(pair.load.scheme.name for pair in pairs))
        message = f"must be the scheme of a load ({names}), is {baseline!r}"
        raise InputError([ValidationIssue(key="baseline", message=message)])
    return found or pairs[0]


def _title(names: Sequence[str], loads: Sequence[Load]) -> str:
    description = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    schemes = dict.fromkeys(load.scheme.name for load in loads)
    if not schemes:
        return description
    of_schemes = next(iter(schemes)) if len(schemes) == 1 else f"{len(schemes)} schemes"
    return f"{description} with {of_schemes}"


def _made_of(loads: Sequence[Load]) -> list[tuple[str, Any]]:
    """Return every setting of *loads*: once where all have the same, else with each load."""
    if not loads:
        return []
    description = [_flat(load) for load in loads]
    shared = {
        key: value
        for key, value in description[0].items()
        if all(t[key] == value for t in description)
    }
    rows: list[tuple[str, Any]] = list(shared.items())
    for number, own in enumerate(description, start=1):
        differs = [f"{key} {value}" for key, value in own.items() if key not in shared]
        if differs:
            rows.append((f"load {number}", ", ".join(differs)))
    if len(loads) == 1:
        rows.append(("in words", ", ".join(in_words(loads[0]).values())))
    return rows


def _flat(load: Load) -> dict[str, Any]:
    known = identity(load)
    description = {key: known[key] for key in ("build", "page", "page_digest", "scheme")}
    # As text: a byte count of 1000 in a table of settings is no figure to be read with commas.
    values = description | known["configuration"]
    return {
        key: "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        for key, value in values.items()
    }


def _made_of_study(results: Results) -> list[tuple[str, Any]]:
    """Return the columns of a study in which all rows have the same value, and the axes."""
    rows: list[tuple[str, Any]] = [("study over", ", ".join(results.axes) or "nothing")]
    for name in settings_of(results):
        values = list(dict.fromkeys("-" if v is None else str(v) for v in results.column(name)))
        shown = ", ".join(values[:20]) + (f" and {len(values) - 20} more" if values[20:] else "")
        rows.append((name, shown))
    return rows
