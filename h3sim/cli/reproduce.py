"""`h3sim reproduce`: the papers' experiments repeated, with a verdict on each finding."""

from __future__ import annotations

import json
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.parsing import ErrorList, Parser, RawHelp, progress_bar
from h3sim.cli.tables import add_wide, fitted, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.papers import report
from h3sim.papers.experiments import experiment_names, load_experiment, page_files
from h3sim.papers.figures import draw_all
from h3sim.papers.reproduce import chosen_experiments, reproduce
from h3sim.schema import check_output, read_text, write_whole
from h3sim.table import Table
from h3sim.text import plural

if TYPE_CHECKING:
    import argparse

    from h3sim.papers.findings import Judgement
    from h3sim.papers.reproduce import ExperimentRun, Reproduction


_EPILOG = """\
examples:
  h3sim reproduce --list
  h3sim reproduce marx-2019-table-2
  h3sim reproduce marx-7 koshiba-2016 --figures figures
  h3sim reproduce all --store papers.db -j 2 --json > findings.json
  h3sim reproduce all --full --dry-run
  h3sim reproduce sander-2022-fig-6 --full --pages my-pages --store papers.db

Findings are named as in docs/findings.md; all experiments that they need are run. The store keeps
every finished load; if interrupted, run the same command again to resume.
"""
_FAILED = 1
_MINUTE_S = 60


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "reproduce",
        help=summary,
        description="Repeat experiments of the papers: show their numbers next to h3sim's, and"
        " judge each finding with the figures behind it.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="experiments or findings, or all (see --list)"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument(
        "--full",
        action="store_true",
        help="use all pages, and as many seeds as the paper had runs (hours; default: minutes)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show the number of loads and estimate their duration from a few samples",
    )
    parser.add_argument(
        "--pages", metavar="DIR", help="load the page files in this folder instead of the corpus"
    )
    parser.add_argument("--store", metavar="FILE", help="store finished loads and reuse them")
    parser.add_argument(
        "-j", "--workers", type=int, metavar="N", help="worker processes (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-reproduction/1 instead")
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="write verdicts and tables to FILE; fails without writing if FILE has a different"
        " verdict (see --update). In a file with the lines"
        f" {report.BEGIN!r} and {report.END!r} only the text between them is replaced",
    )
    parser.add_argument(
        "--update", action="store_true", help="with --markdown: accept changed verdicts"
    )
    parser.add_argument(
        "--figures", metavar="DIR", help="plot each experiment as PNG into this folder"
    )
    add_wide(parser)
    parser.set_defaults(command=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    if options.list:
        return _list(options)
    mistakes = ErrorList()
    mistakes.collect(lambda: chosen_experiments(options.names))
    if options.pages is not None:
        mistakes.collect(lambda: page_files(options.pages))
    if options.markdown is not None:
        mistakes.collect(partial(check_output, options.markdown, key="--markdown"))
        mistakes.collect(partial(_standing, Path(options.markdown)))
    if options.figures is not None:
        mistakes.collect(lambda: _check_folder(options.figures))
    if options.workers is not None and options.workers < 1:
        mistakes.lines.append(f"--workers: must be at least 1, is {options.workers}")
    if mistakes.lines:
        return mistakes.tell("reproduce")
    if options.dry_run:
        return _plan(options)
    with progress_bar("load") as progress:
        done = reproduce(
            options.names,
            full=options.full,
            pages=options.pages,
            store=options.store,
            workers=options.workers,
            progress=progress or False,
        )
    if options.json:
        print(json.dumps(done.to_dict(), indent=1, allow_nan=False))
    else:
        _show(done, options)
    if options.figures is not None:
        draw_all(done, Path(options.figures))
    failed = any(run.failed for run in done.runs.values())
    wrote = options.markdown is None or _write(done, Path(options.markdown), options)
    return 0 if wrote and not failed else _FAILED


def _list(options: argparse.Namespace) -> int:
    """Print all experiments and the reductions of their quick variants."""
    rows = []
    for name in experiment_names():
        experiment = load_experiment(name)
        quick = "not reduced" if experiment.is_about_headers else str(experiment.quick)
        rows.append((name, experiment.title, quick))
    headers = ("experiment", "description", "quick variant")
    print(Table(headers, rows).to_text(terminal_width(options)))
    return 0


def _plan(options: argparse.Namespace) -> int:
    """Print the number of loads of each experiment and their estimated time on one core."""
    files = None if options.pages is None else page_files(options.pages)
    rows, seconds = [], 0.0
    for name in chosen_experiments(options.names):
        experiment = load_experiment(name)
        plan = experiment.study(full=options.full, pages=files).plan(store=options.store)
        seconds += plan.seconds
        known = f"{plan.reused:,}"
        rows.append((name, f"{plan.loads:,}", known, f"{plan.seconds / _MINUTE_S:,.1f}"))
    headers = ("experiment", "loads", "stored", "minutes on one core")
    print(Table(headers, rows).to_text(terminal_width(options)))
    print(f"\nabout {seconds / _MINUTE_S:,.0f} minutes on one core")
    return 0


def _show(done: Reproduction, options: argparse.Namespace) -> None:
    width = terminal_width(options)
    for run in done.runs.values():
        _show_run(run, width)
    for judgement in done.judgements:
        _show_judgement(judgement, width)
    if done.judgements:
        told = f"{plural(len(done.judgements), 'finding')}: {report.counted(done)}"
        print(fitted(told, width))


def _show_run(run: ExperimentRun, width: int | None) -> None:
    experiment = run.experiment
    print(fitted(f"{experiment.name}: {experiment.title}", width))
    print(fitted(f"{experiment.source}; {report.size_of(run)}", width))
    for remark in report.remarks_of(run):
        print(fitted(remark, width))
    for found in report.tables_of(run):
        print("\n" + fitted(found.title, width))
        print(found.to_text(width))
    print()


def _show_judgement(judgement: Judgement, width: int | None) -> None:
    finding, verdict, claims = judgement
    print(fitted(f"{finding.id}: {verdict.value}", width))
    for text in (finding.says, finding.cannot or finding.reason):
        if text:
            print(textwrap.indent(fitted(text, None if width is None else width - 2), "  "))
    if claims:
        rows = report.claim_rows(judgement)
        print(Table(("holds", "claim", "h3sim (95 %)", "limit"), rows).to_text(width))
    print()


def _write(done: Reproduction, path: Path, options: argparse.Namespace) -> bool:
    """Write the document unless a verdict changed without --update; return whether it was."""
    stands = _standing(path)
    text = report.written_into(stands, done)
    before, now = report.verdicts_in(stands), report.verdicts_in(text)
    changed = [
        f"{name}: was {before[name]!r}, is {now.get(name, 'not judged')!r}"
        for name in before
        if now.get(name) != before[name]
    ]
    if changed and not options.update:
        for line in changed:
            print(f"h3sim reproduce: {options.markdown}: {line}", file=sys.stderr)
        return False
    write_whole(path, text)
    return True


def _standing(path: Path) -> str:
    """Return the present text of the document; "" if there is none.

    Raises:
        InputError: if it cannot be read, or is not text.
    """
    return read_text(path, InputError) if path.is_file() else ""


def _check_folder(given: str) -> None:
    """Create the folder for figures.

    Raises:
        InputError: if it cannot be created.
    """
    try:
        Path(given).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{given}: cannot be created: {error.strerror}"
        raise InputError([ValidationIssue(key="--figures", message=message)]) from error
