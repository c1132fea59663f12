"""`h3sim reproduce`: the papers' experiments repeated, with a verdict on each finding."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli import common, output
from h3sim.cli.command import FAILED, Argument, Options, call_with, command
from h3sim.papers import report
from h3sim.papers.experiments import load_experiment, page_files
from h3sim.papers.figures import draw_all
from h3sim.papers.reproduce import chosen_experiments, reproduce
from h3sim.values.errors import InputError
from h3sim.values.table import Table
from h3sim.values.text import plural

if TYPE_CHECKING:
    from h3sim.papers.findings import Judgement
    from h3sim.papers.reproduce import ExperimentRun, Reproduction


_MINUTE_S = 60


def _print_plan(options: Options) -> int:
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
    print(Table(headers, rows).to_text(options.width))
    print(f"\nabout {seconds / _MINUTE_S:,.0f} minutes on one core")
    return 0


def _print_reproduction(done: Reproduction, width: int | None) -> None:
    """Print all runs and verdicts."""
    for run in done.runs.values():
        _print_run(run, width)
    for judgement in done.judgements:
        _print_judgement(judgement, width)
    if done.judgements:
        verdicts = report.counted(judgement.verdict for judgement in done.judgements)
        count = f"{plural(len(done.judgements), 'finding')}: {verdicts}"
        output.show(width, count)


def _print_run(run: ExperimentRun, width: int | None) -> None:
    """Print the tables of an experiment."""
    experiment = run.experiment
    output.show(width, f"{experiment.name}: {experiment.title}")
    output.show(width, f"{experiment.source}; {report.size_of(run)}")
    for remark in report.remarks_of(run):
        output.show(width, remark)
    for found in report.tables_of(run):
        print("\n" + output.fitted(found.title, width))
        print(found.to_text(width))
    print()


def _print_judgement(judgement: Judgement, width: int | None) -> None:
    """Print a verdict with its claims."""
    finding = judgement.finding
    output.show(width, f"{finding.id}: {judgement.verdict.value}")
    for text in (finding.statement, judgement.reason, judgement.note):
        if text:
            print(textwrap.indent(output.fitted(text, None if width is None else width - 2), "  "))
    if judgement.claims:
        rows = report.claim_rows(judgement)
        print(Table(("", "claim", "h3sim (95 %)", "limit"), rows).to_text(width))
    print()


def _check_names(options: Options) -> None:
    chosen_experiments(options.names or [])


def _read_pages(pages: str, _: Options) -> str:
    page_files(pages)
    return pages


def _make_figures_folder(folder: str, _: Options) -> str:
    """Create the folder for figures."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder}: cannot be created: {error.strerror}"
        raise InputError.at("--figures", message) from error
    return folder


@command(
    "reproduce",
    Argument(
        "NAME",
        "experiments, findings, papers (such as marx-2019), or all (see `h3sim list experiments`)",
        dest="names",
        nargs="*",
    ),
    Argument(
        "--full", "use all pages, and as many seeds as the paper had runs (hours; default: minutes)"
    ),
    Argument(
        "--dry-run", "show the number of loads and estimate their duration from a few samples"
    ),
    Argument(
        "--pages PAGES",
        "load this set of pages, or the page files in this folder, instead of the corpus",
        read=_read_pages,
    ),
    common.STORE,
    common.WORKERS,
    common.JSON("print h3sim-reproduction/1 instead"),
    Argument("--figures DIR", "plot each experiment into this folder", read=_make_figures_folder),
    Argument(
        "--format FORMAT",
        "format of the figures",
        default="png",
        choices=tuple(suffix.removeprefix(".") for suffix in output.PLOT),
        needs="--figures",
    ),
    *common.figure_options(needs="--figures"),
    common.NO_TRUNCATE,
    checks=(_check_names,),
    about="""Repeat experiments of the papers: show their numbers next to h3sim's, and judge
each finding with the figures behind it.

examples:
  h3sim reproduce marx-2019-table-2
  h3sim reproduce marx-2019
  h3sim reproduce marx-7 koshiba-2016 --figures figures --format pdf
  h3sim reproduce all --store papers.db -j 2 --json > findings.json
  h3sim reproduce all --full --dry-run
  h3sim reproduce sander-2022-fig-6 --full --pages web:2015-2019 --store papers.db

`h3sim list experiments` and `h3sim list findings` list them; all experiments that findings need are
run. The store keeps
every finished load; if interrupted, run the same command again to resume.
""",
)
def _run_reproduce(options: Options) -> int:
    """Reproduce the findings that the options name; return the exit code."""
    if options.dry_run:
        return _print_plan(options)
    done: Reproduction = call_with(reproduce, options, progress=options.progress or False)
    if options.json:
        print(json.dumps(done.to_dict(), indent=1, allow_nan=False))
    else:
        _print_reproduction(done, options.width)
    if options.figures is not None:
        for path in draw_all(
            done, Path(options.figures), file_format=options.format, **output.figure_style(options)
        ):
            output.report_written(path)
    failed = any(run.failed for run in done.runs.values())
    return FAILED if failed else 0
