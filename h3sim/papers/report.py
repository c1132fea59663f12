"""The report of a reproduction: tables, and the Markdown of docs/generated/findings.md."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim._version import __version__, commit
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
    from h3sim.papers.reproduce import ExperimentRun, Reproduction


BEGIN, END = "<!-- reproduced -->", "<!-- end of what is reproduced -->"
"""The lines of a document between which a reproduction is written."""

_PAPER_BY_ID = {
    "marx": "Marx 2019",
    "sander": "Sander 2022",
    "frindell": "Frindell 2017",
    "koshiba": "Koshiba 2016",
}
"""Papers by the beginning of the ids of their findings."""
_OTHERS = "Others"
_FINDING_HEADING = re.compile(r"^\*\*([a-z0-9-]+): ([a-z ]+)\.\*\*")
_VERDICT_ROW = re.compile(r"^\| ([a-z0-9-]+) \| [^|]* \| ([a-z ]+) \| [^|]* \|$", re.M)


class FullFinding(NamedTuple):
    """Finding in the document of a full run: its verdict, and the lines about it."""

    verdict: Verdict
    lines: tuple[str, ...]


class Published(NamedTuple):
    """Published verdict of a finding, and the run that it is from: full, quick, or none."""

    verdict: Verdict
    run: str


def published(
    reproduction: Reproduction, full_run: Mapping[str, FullFinding] | None = None
) -> dict[str, Published]:
    """Return the verdict to publish by finding.

    That of *full_run*, if it has one, replaces the verdict of an incomplete run.
    """
    full_run = full_run or {}
    verdicts = {}
    for judgement in reproduction.judgements:
        finding_id, verdict = judgement.finding.id, judgement.verdict
        is_complete = reproduction.is_complete(judgement)
        if judgement.claims and not is_complete and finding_id in full_run:
            verdict, is_complete = full_run[finding_id].verdict, True
        run = "full" if is_complete else "quick"
        verdicts[finding_id] = Published(verdict, run if judgement.claims else "-")
    return verdicts


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


def verdicts_in(text: str) -> dict[str, str]:
    r"""Return the verdicts that a document of `markdown` has, by finding.

    >>> verdicts_in("| finding | says | verdict | run |\n| marx-1 | rr is slow | holds | full |\n")
    {'marx-1': 'holds'}
    """
    known = {verdict.value for verdict in Verdict}
    return {name: verdict for name, verdict in _VERDICT_ROW.findall(text) if verdict in known}


def findings_in(text: str) -> dict[str, FullFinding]:
    """Return the findings that a document of `markdown` or `written_into` has, with their lines."""
    verdicts = verdicts_in(text)
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        heading = _FINDING_HEADING.match(line)
        if heading is not None and heading[1] in verdicts:
            current = found.setdefault(heading[1], [])
        elif line.startswith(("#", "<!--")):
            current = None
        if current is not None:
            current.append(line)
    return {
        name: FullFinding(Verdict(verdict), tuple(found.get(name, ())))
        for name, verdict in verdicts.items()
    }


def markdown(reproduction: Reproduction, full_run: Mapping[str, FullFinding] | None = None) -> str:
    """Return the document: rules, all verdicts, the claims of each, and the tables.

    Findings of *full_run* replace those of a quick one: verdict, claims and reasons.
    """
    verdicts = published(reproduction, full_run)
    table = _verdict_table(reproduction, verdicts).to_markdown()
    lines = ["# Findings", "", _introduction_text(reproduction, verdicts), "", table, ""]
    papers = [*_PAPER_BY_ID.values(), _OTHERS]
    by_paper: dict[str, list[Judgement]] = {paper: [] for paper in papers}
    for judgement in reproduction.judgements:
        paper_id, _, _ = judgement.finding.id.rpartition("-")
        by_paper[_PAPER_BY_ID.get(paper_id, _OTHERS)].append(judgement)
    for paper, judgements in by_paper.items():
        lines += [f"## {paper}", ""] if judgements else []
        for judgement in judgements:
            name = judgement.finding.id
            is_full = verdicts[name].run == "full" and not reproduction.is_complete(judgement)
            lines += full_run[name].lines if is_full and full_run else _section_of(judgement)
    lines += ["## The experiments", ""]
    for run in reproduction.runs.values():
        lines += _experiment_section(run)
    return "\n".join(lines).rstrip() + "\n"


def written_into(
    text: str, reproduction: Reproduction, full_run: Mapping[str, FullFinding] | None = None
) -> str:
    """Return *text* with verdicts and tables between its marks; without marks, the document.

    The text around the marks has to explain the verdicts.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(END)
    if not begin or not end:
        return markdown(reproduction, full_run)
    verdicts = published(reproduction, full_run)
    table = _verdict_table(reproduction, verdicts).to_markdown()
    version = f"h3sim {__version__} (commit {commit()})"
    lines = ["", f"{version}, {_variant(reproduction)}.", "", table, ""]
    for judgement in reproduction.judgements:
        lines += _section_of(judgement)
    for run in reproduction.runs.values():
        lines += _experiment_section(run)
    return f"{before}{begin}{chr(10).join(lines)}{end}{after}"


def _verdict_table(reproduction: Reproduction, verdicts: Mapping[str, Published]) -> Table[Any]:
    """Return the table of all findings with their verdicts."""
    rows = []
    for judgement in reproduction.judgements:
        finding, (verdict, run) = judgement.finding, verdicts[judgement.finding.id]
        rows.append((finding.id, finding.statement, verdict.value, run))
    return Table(("finding", "what was published", "verdict", "run"), rows)


def _section_of(judgement: Judgement) -> list[str]:
    """Return the lines on a finding: statement, claims, reasons, and how it was read."""
    finding = judgement.finding
    heading = f"**{finding.id}: {judgement.verdict.value}.**"
    lines = [f"{heading} {_sentence(finding.statement)} ({finding.source})", ""]
    if judgement.claims:
        table = Table(("", "claim", "h3sim", "expected"), claim_rows(judgement))
        lines += [table.to_markdown(), ""]
    for text in (judgement.reason, judgement.note):
        lines += [text, ""] if text else []
    return lines


def _experiment_section(run: ExperimentRun) -> list[str]:
    """Return the lines on an experiment: source, remarks and tables."""
    experiment = run.experiment
    lines = [
        f"### {experiment.name}",
        "",
        f"{_sentence(experiment.title)} {_sentence(experiment.source)} {_sentence(size_of(run))}",
        "",
    ]
    remarks = [f"- {remark}" for remark in remarks_of(run)]
    lines += [*remarks, ""] if remarks else []
    for table in tables_of(run):
        lines += [f"{_sentence(table.title).removesuffix('.')}:", "", table.to_markdown(), ""]
    return lines


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


def _sentence(text: str) -> str:
    """Return *text* as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


_RULES_TEXT = """\
**The rules.** A finding is a list of claims, each about one figure (`models/findings.toml`). No
scheme, network or page is tuned to meet one. An order is met where Kendall's tau is at least 0.7; a
number within a quarter of it; a share within 15 percentage points; "nearly none" is at most 10 %.
In brackets are 95 % intervals: percentile bootstrap over pages and over seeds, drawn separately, as
every page met the same seeds (Owen 2007, the pigeonhole bootstrap); where there is one page, over
seeds alone. A claim is met, "yes", or not, "no", by all of its interval; where that holds the
limit, the claim is undecided. Where the limit is another figure, that is the interval of their
difference, page by page. It is reversed if all of its interval lies on the other side: a direction
("above", "below") is opposite, or a number or an order is beyond the value without any effect. A
figure without an interval is of a single load, or of one page that is enough ("can be", "up to").

A finding holds if all its claims do, does not hold if none does, and holds in part else. It is
reversed if any claim is, however many others hold, and undecided if undecided claims could change
the verdict. A reason is printed with the figures of the same run that it stands on; a note says how
the publication is read.

**The ByteIndex.** Findings of Marx 2019 are judged, and their tables and figures made, with
ByteIndexes sampled every 100 ms, as the paper has them; all others with the integral itself."""

_PAGES_TEXT = """\
**The pages.** The papers' are not public. Here it is the corpus ([corpus.md](../corpus.md)):
recorded, of the same sizes. The quick variant takes all of them at a constant rate; where loads go
over links it takes some of them, spread over their sizes, and fewer seeds (`h3sim reproduce
--list` says how many)."""


def _variant(reproduction: Reproduction) -> str:
    variant = "the full variant" if reproduction.is_full else "the quick variant"
    pages = "the shipped pages" if reproduction.pages is None else reproduction.pages
    return f"{variant}, over {pages}"


def _introduction_text(reproduction: Reproduction, verdicts: Mapping[str, Published]) -> str:
    """Return the first lines of the page, with counts of verdicts."""
    counts = counted(verdict for verdict, _ in verdicts.values())
    n_full = sum(run == "full" for _, run in verdicts.values())
    n_quick = sum(run == "quick" for _, run in verdicts.values())
    n_unjudged = len(verdicts) - n_full - n_quick
    unjudged = f", and {n_unjudged} cannot be judged by any run" if n_unjudged else ""
    introduction = f"""\
Every result of the papers that h3sim could meet, each judged by a rule that was written down with
it: {counts}.

`make findings` writes this page, and fails if a verdict has changed unnoticed. This is
{_variant(reproduction)}. `h3sim reproduce marx-2` does one finding or experiment again, `--full`
with as many seeds as the paper had runs, `--pages DIR` over other pages.

**The runs.** Where all pages and seeds were run, verdict, claims and reasons are of that run
("full" in the table, {n_full}): the quick variant leaves nothing out, or
[full-runs.md](full-runs.md) has
the full one. The others ({n_quick}) are of the quick variant, as are the tables of
[the experiments](#the-experiments){unjudged}."""
    return "\n\n".join((introduction, _RULES_TEXT, _PAGES_TEXT))
