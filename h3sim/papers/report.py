"""The report of a reproduction in words and tables."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from h3sim.page.categories import SIZES
from h3sim.papers.estimates import Estimate, shown
from h3sim.papers.findings import Verdict
from h3sim.papers.minor_studies import (
    FLAG_TITLES,
    METRICS,
    TITLES,
    VARIANTS,
    cells_of,
    flag_remarks,
    map_remarks,
)
from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.papers.findings import Judgement
    from h3sim.papers.reproduce import ExperimentRun


def counted(verdicts: Iterable[Verdict]) -> str:
    """Return how many findings there are of each verdict, in words.

    >>> counted([Verdict.HOLDS, Verdict.HOLDS])
    '2 hold, 0 in part, 0 do not hold, 0 are reversed, 0 are undecided, 0 cannot be judged'
    """
    counts = Counter(verdicts)
    singulars = {Verdict.REVERSED: "is reversed", Verdict.UNDECIDED: "is undecided"}
    plurals = {
        Verdict.HOLDS: "hold",
        Verdict.DOES_NOT_HOLD: "do not hold",
        Verdict.REVERSED: "are reversed",
        Verdict.UNDECIDED: "are undecided",
    }
    parts = []
    for verdict in Verdict:
        count = counts[verdict]
        words = singulars if count == 1 else plurals
        word = words.get(verdict, verdict.value)
        parts.append(f"{count} {word}")
    return ", ".join(parts)


def size_of(run: ExperimentRun) -> str:
    """Return the numbers of pages, seeds and loads of an experiment in words."""
    subject = "header list" if run.experiment.is_about_headers else "page"
    parts = [plural(run.pages, subject), plural(run.seeds, "seed"), plural(run.n_loads, "load")]
    if run.timed_out:
        parts.append(f"{run.timed_out:,} of which the connection timed out")
    if run.failed:
        parts.append(f"{run.failed} failed")
    if run.given_up:
        parts.append(f"{run.given_up} given up")
    return ", ".join(parts)


def tables_of(run: ExperimentRun) -> Iterator[Table[Any]]:
    """Yield the tables of an experiment: the paper beside h3sim, and its own."""
    if run.comparisons:
        compared = [(name, shown(paper), str(figure)) for name, paper, figure in run.comparisons]
        yield Table(("figure", "paper", "h3sim"), compared, title="the paper beside h3sim")
    figures = run.figures
    rows: list[tuple[tuple[str, ...], str]]
    match run.experiment.name:
        case "frindell-2017":
            rows = [((name, shown(paper)), name) for name, paper, _ in run.comparisons]
            columns = [(page, f"{page}.{{}}", _value) for page in run.loads.pages]
            yield _figure_table(run, ("figure", "paper"), rows, columns, "the same by page")
        case "loss-map":
            yield from (_loss_map_table(run, metric) for metric in METRICS)
        case "incremental-flag":
            networks = run.loads.distinct("network")
            rows = [((variant,), variant) for variant in VARIANTS]
            for name, title in FLAG_TITLES.items():
                columns = [("all networks", f"{{}}.{name}", _percent)]
                columns += [(each, f"{{}}.{name}.{each}", _percent) for each in networks]
                title += ": mean change in %, relative to chrome-eps, by what is incremental"
                yield _figure_table(run, ("incremental",), rows, columns, title)
        case "marx-2019-fig-12":
            rows = [((name,), name) for name in SIZES if f"{name}.atf" in figures]
            yield _figure_table(run, ("pages",), rows, _BY_SIZE, _title_by_size(figures))
        case "marx-2019-buffers":
            title = "median over pages of how far speedups above the fold move"
            yield _figure_table(run, ("send buffer",), _buffers(figures), _BY_BUFFER, title)
        case "sander-2022-fig-5" | "sander-2022-fig-6" | "sander-2022-fig-8":
            names = [name.removesuffix(".si-ms") for name in figures if name.endswith(".si-ms")]
            rows = [(tuple(name.split(".", 1)), name) for name in names]
            title = "changes relative to Chrome's scheme: median over pages in %, means in ms"
            yield _figure_table(run, ("cell", "scheme"), rows, _CAUSES, title)
        case "sander-2022-table-1":
            names = [name.removesuffix(".seconds") for name in figures if name.endswith(".seconds")]
            rows = [((name,), name) for name in names]
            yield _figure_table(run, ("cell",), rows, _CELLS, _CELLS_TITLE)
        case "wijnants-2018":
            rows = [((name,), name) for name in ("rr", "wrr", "firefox")]
            title = "SpeedIndex to that of Chrome's scheme, median change in %"
            yield _figure_table(run, ("scheme",), rows, _CLIENTS, title)


def remarks_of(run: ExperimentRun) -> list[str]:
    """Return sentences on the figures of an experiment."""
    match run.experiment.name:
        case "loss-map":
            return map_remarks(run.loads)
        case "incremental-flag":
            return flag_remarks(run.figures)
    return []


def claim_rows(judgement: Judgement) -> list[tuple[str, ...]]:
    """Return a row for each claim: the answer, its statement, the figure, the limit.

    Where the limit is a figure, too, the difference between both is stated with its interval: that
    is what the answer stands on.
    """
    return [
        (
            "-" if claim.answer is None else claim.answer.value,
            claim.claim.statement,
            str(claim.figure or "-"),
            claim.expected
            if claim.difference is None
            else f"{claim.expected}; difference {claim.difference}",
        )
        for claim in judgement.claims
    ]


def _loss_map_table(run: ExperimentRun, metric: str) -> Table[Any]:
    """Return for each network the best scheme by *metric*, and each scheme's ratio to fifo's."""
    cells = [*cells_of(run.loads, metric)]
    first_cell, *_ = cells
    schemes = [name for name in first_cell.ratios if name != "fifo"]
    rows = [
        (
            f"{cell.rate_mbps:g}",
            f"{cell.rtt_ms:g}",
            f"{100 * cell.loss:g}",
            f"{cell.burst:g}",
            _turn_label(cell.best),
            *(str(cell.ratios[scheme]) for scheme in schemes),
        )
        for cell in cells
    ]
    headers = ("Mbit/s", "RTT ms", "loss %", "burst", "best", *map(_turn_label, schemes))
    title = f"{TITLES[metric]}: mean ratio to that of one response after the other, by turn"
    return Table(headers, rows, title=title)


def _figure_table(
    run: ExperimentRun,
    names: Sequence[str],
    rows: Iterable[tuple[Sequence[str], str]],
    columns: Sequence[_FigureColumn],
    title: str,
) -> Table[Any]:
    """Return a table of figures.

    Each row has labels, in columns with *names*, and the stem of the names of its figures.
    """
    cells = [
        (*labels, *(text(run.figures.get(figure.format(stem))) for _, figure, text in columns))
        for labels, stem in rows
    ]
    return Table((*names, *(head for head, _, _ in columns)), cells, title=title)


def _title_by_size(figures: Mapping[str, Estimate]) -> str:
    return (
        "speedups by size of page; Spearman's rho of a page's mean speedup with its share above the"
        f" fold: {figures['rho.above-fold']}, with its size: {figures['rho.size']}, with"
        f" its size where that share is the same: {figures['rho.size-given-share']}"
    )


def _buffers(figures: Iterable[str]) -> Iterator[tuple[tuple[str], str]]:
    """Yield the label of each size of buffer, and the stem of the names of its figures."""
    for start, suffix in (("kept.", ""), ("bursts.kept.", ", filled in bursts")):
        for name in figures:
            if name.startswith(start) and not (suffix and name.endswith(".0")):
                label = f"{name.removeprefix(start)} kB{suffix}"
                yield (label,), name.replace("kept", "change", 1)


def _text(figure: Estimate | None) -> str:
    return "-" if figure is None else str(figure)


def _value(figure: Estimate | None) -> str:
    return "-" if figure is None else shown(figure.value)


def _percent(figure: Estimate | None) -> str:
    """Return a share as a percentage with its interval."""
    if figure is None:
        return "-"
    text = f"{100 * figure.value:.1f}"
    if figure.low is None or figure.high is None:
        return text
    return f"{text} ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


_FigureColumn: TypeAlias = "tuple[str, str, Callable[[Estimate | None], str]]"
"""Title of a column, name of its figures, with {} for the stem, and function that shows them."""
_BY_SIZE: tuple[_FigureColumn, ...] = (
    ("how many", "{}.pages", _value),
    ("share of bytes below the fold", "{}.below-fold", _text),
    ("mean speedup above the fold", "{}.atf", _text),
)
_BY_BUFFER: tuple[_FigureColumn, ...] = (
    ("all pages", "{}", _text),
    *((size, f"{{}}.{size}", _text) for size in SIZES),
)
"""All pages, and each class of sizes."""
_CELLS: tuple[_FigureColumn, ...] = (
    ("load time, s", "{}.seconds", _text),
    ("packets lost, %", "{}.loss", _percent),
    ("loads without loss, %", "{}.loss-free", _percent),
    ("longest burst", "{}.longest-burst", _value),
)
_CELLS_TITLE = "over pages, of the loads that finished: medians; of bursts the longest of any load"
_CAUSES: tuple[_FigureColumn, ...] = (
    ("SpeedIndex, %", "{}.si", _percent),
    ("SpeedIndex, ms", "{}.si-ms", _text),
    ("first paint, ms", "{}.paint-ms", _text),
)
_CLIENTS: tuple[_FigureColumn, ...] = (
    ("both clients", "{}.slower", _percent),
    ("one that holds back", "holding.{}.slower", _percent),
    ("one that does not", "eager.{}.slower", _percent),
    ("load time", "{}.load-slower", _percent),
)


def _turn_label(scheme: str) -> str:
    """Return how long turns of a scheme are, in words."""
    labels = {"fifo": "one after the other", "sander-rr": "1 packet", "adaptive-rr": "by losses"}
    return labels.get(scheme, scheme.removeprefix("rr-").replace("-", " "))
