"""What a report says of which scheme is best: the sentence, how the race ended, each scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.reporting.document import ReportTable, Section

if TYPE_CHECKING:
    from h3sim.study import Advice, FoundScheme

__all__ = ["part_of_advice", "part_of_found", "settings_of_found", "verdict_of_advice"]

_NOT_KEPT = "The loads were not kept, so none is drawn: advise(..., keep_loads=True) keeps them."


def verdict_of_advice(advice: Advice) -> list[str]:
    """Return which scheme serves the page best, and how far its replay is from the recording."""
    judged = [] if advice.fidelity is None else advice.fidelity.lines()
    return [*judged, advice.sentence]


def part_of_advice(advice: Advice) -> Section:
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


def part_of_found(found: FoundScheme) -> Section:
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


def settings_of_found(found: FoundScheme) -> list[tuple[str, Any]]:
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


def _race(found: FoundScheme) -> ReportTable:
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


def _warnings(advice: Advice) -> tuple[str, ...]:
    return () if advice.imported is None else advice.imported.warnings
