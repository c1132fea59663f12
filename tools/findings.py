"""Writes findings.md and full-runs.md of docs/generated: `python -m tools.findings`."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from h3sim._version import __version__, commit
from h3sim.papers.figures import draw_all
from h3sim.papers.findings import Verdict, list_findings
from h3sim.papers.report import claim_rows, counted, remarks_of, size_of, tables_of
from h3sim.papers.reproduce import reproduce
from h3sim.schema import read_text, write_atomically
from h3sim.values.errors import InputError
from h3sim.values.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

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

    Findings and experiments between the marks that *reproduction* has not stay as they are: a run
    of one experiment updates what is its own. The text around the marks has to explain the
    verdicts.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    kept, end, after = rest.partition(END)
    if not begin or not end:
        return markdown(reproduction, full_run)
    table = _verdict_table(reproduction, published(reproduction, full_run)).to_markdown()
    rows, findings, experiments = _pieces_of(kept)
    new_rows, _, _ = _pieces_of(table)
    rows |= new_rows
    for judgement in reproduction.judgements:
        findings[judgement.finding.id] = _section_of(judgement)
    made_by = f"Made by h3sim {__version__} (commit {commit()}), {_variant(reproduction)}."
    for run in reproduction.runs.values():
        heading, *section = _experiment_section(run)
        experiments[run.experiment.name] = [heading.removeprefix("#"), *section, made_by, ""]
    order = {finding.id: number for number, finding in enumerate(list_findings())}
    lines = ["", *table.splitlines()[:2]]
    lines += [rows[name] for name in sorted(rows, key=order.__getitem__)]
    lines.append("")
    for name in sorted(findings, key=order.__getitem__):
        lines += findings[name]
    for name in sorted(experiments):
        lines += experiments[name]
    body = "\n".join(lines).rstrip("\n")
    return f"{before}{begin}{body}\n\n{end}{after}"


def _pieces_of(text: str) -> tuple[dict[str, str], dict[str, list[str]], dict[str, list[str]]]:
    """Return the rows of verdicts, the lines on findings and those on experiments, by name."""
    rows: dict[str, str] = {}
    findings: dict[str, list[str]] = {}
    experiments: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if current is None and verdicts_in(line):
            rows |= dict.fromkeys(verdicts_in(line), line)
        elif heading := _FINDING_HEADING.match(line):
            current = findings.setdefault(heading[1], [])
        elif line.startswith("## "):
            current = experiments.setdefault(line.removeprefix("## "), [])
        if current is not None:
            current.append(line)
    return rows, findings, experiments


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


def _sentence(text: str) -> str:
    """Return *text* as a sentence, with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


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
with as many seeds as the paper had runs, `--pages PAGES` over other pages.

**The runs.** Where all pages and seeds were run, verdict, claims and reasons are of that run
("full" in the table, {n_full}): the quick variant leaves nothing out, or
[full-runs.md](full-runs.md) has
the full one. The others ({n_quick}) are of the quick variant, as are the tables of
[the experiments](#the-experiments){unjudged}."""
    return "\n\n".join((introduction, _RULES_TEXT, _PAGES_TEXT))


def write(path: Path, text: str, current: str, *, accepts: bool) -> list[str]:
    """Write *text* in place of the *current* one, unless a verdict changed that is not accepted.

    Returns a line for each verdict that changed.
    """
    before, now = verdicts_in(current), verdicts_in(text)
    changed = [
        f"{name}: was {before[name]!r}, is {now.get(name, 'not judged')!r}"
        for name in before
        if now.get(name) != before[name]
    ]
    if accepts or not changed:
        write_atomically(path, text)
    return changed


def main(argv: list[str]) -> int:
    """Reproduce, and write the document; return 1 if a load failed or a verdict changed."""
    parser = argparse.ArgumentParser(prog="findings", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="as of `h3sim reproduce`")
    parser.add_argument("--markdown", type=Path, required=True, help="the document")
    parser.add_argument("--full-run", type=Path, help="publish its findings in place of quick ones")
    parser.add_argument("--full", action="store_true", help="all pages and seeds")
    parser.add_argument("--store", help="keep finished loads in this file")
    parser.add_argument("--figures", type=Path, help="draw each experiment into this folder")
    parser.add_argument("--update", action="store_true", help="accept changed verdicts")
    options = parser.parse_args(argv)
    # Documents are read first: one that is no text is refused before anything runs.
    path, full_run = options.markdown, options.full_run
    current = read_text(path, InputError) if path.is_file() else ""
    full = None if full_run is None else findings_in(read_text(full_run, InputError))
    done = reproduce(options.names, full=options.full, store=options.store, progress=None)
    if options.figures is not None:
        options.figures.mkdir(parents=True, exist_ok=True)
        draw_all(done, options.figures)
    changed = write(path, written_into(current, done, full), current, accepts=options.update)
    for line in changed:
        print(f"findings: {path}: {line}", file=sys.stderr)
    is_refused = bool(changed) and not options.update
    return int(is_refused or any(run.failed for run in done.runs.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
