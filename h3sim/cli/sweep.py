"""`h3sim sweep` and `h3sim store`: running and resuming studies, and managing stores."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.cli.options import add_marks, share, with_choice
from h3sim.cli.parsing import FAILED, ErrorList, Parser, RawHelp, check_outputs_differ, progress_bar
from h3sim.cli.tables import add_wide, fitted, terminal_width
from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue, require_extra
from h3sim.page import Page
from h3sim.results.figures import FIGURES, ON_DEMAND
from h3sim.schema import check_output, format_value
from h3sim.study import Store, read_results
from h3sim.study.backends import dask_client
from h3sim.study.cache_key import model_version
from h3sim.study.design import StoppingRule
from h3sim.study.sequential import run_until
from h3sim.study.store_repair import repair_store
from h3sim.study.study_file import read_study
from h3sim.table import Column, Table
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse

    from h3sim.study import Results, Study
    from h3sim.study.sequential import Sequential


_EPILOG = """\
examples:
  h3sim sweep study.toml --dry-run
  h3sim sweep study.toml --store study.db --csv rows.csv
  h3sim sweep study.toml --store study.db --dask tcp://scheduler:8786
  h3sim sweep study.toml --store study.db --target-ci-width 5%
  h3sim sweep study.toml --store study.db --compare transport=tcp --by network,scheme
  h3sim store list study.db

The store keeps every finished load; if interrupted, run the same command again to resume.
"""
_TOLD = 10
_HUGE = 1e6
"""Smallest speedup that is printed in scientific notation."""
_SHOWN_BY = ("network", "scheme")
_FIGURES = tuple(figure.name for figure in FIGURES if figure.is_headline)


def add_sweep(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "sweep",
        help=summary,
        description="Run every load of a study and write one row per load.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("study", metavar="STUDY", help="a study file (.toml, format h3sim-study/1)")
    parser.add_argument("--store", metavar="FILE", help="store finished loads and reuse them")
    parser.add_argument(
        "-j", "--workers", type=int, metavar="N", help="worker processes (default: one per core)"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the workers of this dask.distributed scheduler"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show the number of loads and their estimated duration",
    )
    parser.add_argument("--retry-failed", action="store_true", help="rerun loads that failed")
    parser.add_argument(
        "--resources", action="store_true", help="keep one row per resource, and write these"
    )
    parser.add_argument(
        "--metrics",
        metavar="NAME,...",
        help=f"additional columns that take longer: {', '.join(ON_DEMAND)}",
    )
    parser.add_argument(
        "--target-ci-width",
        type=share,
        metavar="SHARE",
        help="add seeds until each speedup's confidence interval is narrower: 0.05 or 5%%; other"
        " settings come from the study's table `until`",
    )
    parser.add_argument(
        "--compare",
        metavar="AXIS=BASELINE",
        help="compare the values of an axis with one of them, in pairs: transport=tcp",
    )
    parser.add_argument(
        "--by",
        metavar="NAMES",
        default="",
        help="with --compare: columns whose values have rows of their own, with commas between",
    )
    parser.add_argument(
        "--pool",
        metavar="NAMES",
        default="",
        help="with --compare: axes to average over besides pages and seeds",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the rows as CSV")
    parser.add_argument("--parquet", metavar="FILE", help="write the rows as Parquet")
    parser.add_argument("--save", metavar="FILE", help="write results for h3sim.read_results")
    add_marks(parser)
    add_wide(parser)
    parser.set_defaults(command=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    study = mistakes.collect(lambda: _study(options))
    for name in ("csv", "parquet", "save"):
        path = getattr(options, name)
        if path is not None:
            mistakes.collect(partial(check_output, path, key=f"--{name}"))
    outputs = {name: f"--{name}" for name in ("store", "csv", "parquet", "save")}
    mistakes.collect(lambda: check_outputs_differ(options, **outputs))
    if study is not None and options.metrics is not None:
        mistakes.collect(partial(study.ask_for, options.metrics.split(",")))
    if study is not None and options.target_ci_width is not None:
        stopping = mistakes.collect(partial(_with_width, study, options.target_ci_width))
        study.stopping = stopping or study.stopping
    if study is not None:
        mistakes.collect(partial(_check_contrast, study, options))
    if study is None or mistakes.lines:
        return mistakes.tell("sweep")
    if options.compare is not None:
        require_extra("scipy", "study")  # when all loads have run
    if options.parquet is not None:
        require_extra("pyarrow", "study")  # fail now, not after all loads have run
    study.has_resources = study.has_resources or options.resources
    if options.dry_run:
        return _plan(study, options)
    began = time.monotonic()
    with dask_client(options.dask) as client:
        results, until = _run(study, options, client)
    _write(results, options)
    if options.compare is None:
        _show(results, options)
    else:
        _show_contrast(results, options)
    if until is not None:
        _show_until(until, options)
    seconds = time.monotonic() - began
    loads = len(results) + len(results.errors)
    print(f"\n{loads:,} loads: {results.counts}; {seconds:,.1f} s")
    for error in results.errors[:_TOLD]:
        print(f"h3sim sweep: failed: {escape_control(error)}", file=sys.stderr)
    is_enough = until is None or until.is_narrow
    return 0 if is_enough and not results.errors else FAILED


def _study(options: argparse.Namespace) -> Study:
    study = read_study(options.study)
    pages = tuple(
        with_choice(page, options.above_the_fold) if isinstance(page, Page) else page
        for page in study.design.pages
    )
    return replace(study, design=replace(study.design, pages=pages))


class _Contrast(NamedTuple):
    """Contrast that --compare, --by and --pool ask for."""

    over: str
    baseline: str
    by: list[str]
    pool: list[str]


def _contrast(options: argparse.Namespace) -> _Contrast:
    over, _, baseline = options.compare.partition("=")
    by, pool = ([name for name in text.split(",") if name] for text in (options.by, options.pool))
    return _Contrast(over, baseline, by, pool)


def _check_contrast(study: Study, options: argparse.Namespace) -> None:
    """Refuse, before anything runs, a comparison that the axes of *study* do not allow.

    Raises:
        InputError: listing every mistake.
    """
    if options.compare is None:
        given = [f"--{name}" for name in ("by", "pool") if getattr(options, name)]
        problems = [ValidationIssue(key=key, message="goes only with --compare") for key in given]
        if problems:
            raise InputError(problems)
        return
    wanted, axes = _contrast(options), study.axes
    problems = []
    if not wanted.over or not wanted.baseline:
        message = f"must be like transport=tcp, is {format_value(options.compare)}"
        problems.append(ValidationIssue(key="--compare", message=message))
    keys = {"--compare": [wanted.over], "--by": wanted.by, "--pool": wanted.pool}
    problems += (
        ValidationIssue(key=key, message=f"no axis is called {name!r}: {', '.join(axes)}")
        for key, names in keys.items()
        for name in names
        if name and name not in axes
    )
    named = {"page", "seed", wanted.over, *wanted.by, *wanted.pool}
    if others := [name for name in axes if name not in named]:
        message = f"the loads differ in {', '.join(others)}, too: add to --by, or to --pool"
        problems.append(ValidationIssue(key="--compare", message=message))
    if problems:
        raise InputError(problems)


def _show_contrast(results: Results, options: argparse.Namespace) -> None:
    """Print how the values of an axis compare with one of them."""
    over, text, by, pool = _contrast(options)
    width, levels = terminal_width(options), dict.fromkeys(results.column(over))
    baseline = next((level for level in levels if _is_meant(level, text)), None)
    if baseline is None:
        known = ", ".join(map(str, levels))
        message = f"no load has {over} {text}; there are {known}"
        raise InputError([ValidationIssue(key="--compare", message=message)])
    headers = ("setting", over, "pairs", "clusters", "speedup", "low", "high", "p")
    for figure in FIGURES:
        if not figure.is_compared:
            continue
        try:
            rows = results.compare(baseline, over=over, value=figure.name, by=by, pool=pool)
        except NothingToMeasureError:
            continue
        body = [
            (
                row.setting or "all",
                str(row.level),
                f"{row.pairs:,}",
                f"{row.clusters:,} {row.cluster}{'s' * (row.clusters != 1)}",
                *("-" if end is None else _speedup(end) for end in (row.geometric, row.low)),
                "-" if row.high is None else _speedup(row.high),
                "-" if row.p_holm is None else f"{row.p_holm:.3f}",
            )
            for row in rows
        ]
        heading = f"{figure.title}: speedups to {over} {baseline}, paired by {rows[0].pairing}"
        print(f"{fitted(escape_control(heading), width)}\n")
        print(f"{Table(headers, body).to_text(width, shorten=True)}\n")
        refusals = dict.fromkeys(row.refusal for row in rows if row.refusal)
        for refusal in refusals:
            print(f"{fitted(f'no interval: {refusal}', width)}\n")


def _is_meant(level: object, text: str) -> bool:
    """Return whether *text* is what a command line calls a value of an axis.

    >>> _is_meant(60.0, "60"), _is_meant("tcp", "tcp"), _is_meant(True, "1")
    (True, True, False)
    """
    if isinstance(level, int | float) and not isinstance(level, bool):
        try:
            return level == float(text)
        except ValueError:
            return False
    return str(level) == text


def _with_width(study: Study, width: float) -> StoppingRule:
    try:
        if study.stopping is None:
            return StoppingRule(width=width)
        return replace(study.stopping, width=width)
    except InputError as error:
        problems = (
            ValidationIssue(key="--target-ci-width", message=p.message) for p in error.problems
        )
        raise InputError(problems) from error


def _plan(study: Study, options: argparse.Namespace) -> int:
    """Print the planned loads; if seeds are added, for the first and the last round."""
    if study.stopping is None:
        print(study.plan(store=options.store, workers=options.workers))
        return 0
    looks = study.stopping.looks
    for n_seeds in dict.fromkeys((looks[0], looks[-1])):
        plan = study.with_seeds(range(n_seeds)).plan(store=options.store, workers=options.workers)
        print(f"with {n_seeds:,} seeds: {plan}")
    return 0


def _run(
    study: Study, options: argparse.Namespace, client: object
) -> tuple[Results, Sequential | None]:
    with progress_bar("load") as progress:
        how: dict[str, Any] = {
            "store": options.store,
            "executor": client,
            "workers": options.workers,
            "retry_failed": options.retry_failed,
            "progress": progress or False,
        }
        if study.stopping is None:
            return study.run(**how), None
        found = run_until(study, study.stopping, **how)
        return found.results, found


def _write(results: Results, options: argparse.Namespace) -> None:
    rows = results.resources() if options.resources else results
    if options.csv is not None:
        rows.to_csv(options.csv)
    if options.parquet is not None:
        rows.to_parquet(options.parquet)
    if options.save is not None:
        rows.save(options.save)


def _show_until(until: Sequential, options: argparse.Namespace) -> None:
    """Print each scheme's speedup with its interval over seeds."""
    rule = until.rule
    percent = f"{100 * rule.confidence:g} %"
    headers = ("scheme", "seeds", f"speedup to {rule.baseline}", "low", "high", "width %")
    rows = (
        (
            row.scheme,
            row.seeds,
            *(_speedup(number) for number in (row.geometric, row.low, row.high)),
            # With few seeds an interval may extend down to 0.
            f"{100 * (row.high / row.low - 1):.1f}" if row.low else "-",
        )
        for row in until.rows
    )
    width = terminal_width(options)
    print(f"\n{fitted(f'{rule.value}, {percent} intervals over seeds of these pages', width)}")
    print(f"\n{Table(headers, rows).to_text(width, shorten=True)}")
    if not until.is_narrow:
        told = f"some intervals exceed {100 * rule.width:g} % after {rule.most_seeds:,} seeds"
        print(f"h3sim sweep: {told}: raise until.most_seeds", file=sys.stderr)


def _speedup(number: float) -> str:
    """Format a speedup; huge ends of meaningless intervals use scientific notation.

    >>> _speedup(1.23456), _speedup(2e300)
    ('1.235', '2e+300')
    """
    return f"{number:.3f}" if number < _HUGE else f"{number:.0e}"


def _show(results: Results, options: argparse.Namespace) -> None:
    """Print the means by network and scheme."""
    if not len(results):
        return
    width = terminal_width(options)
    by = [name for name in _SHOWN_BY if name in results.columns]
    means = [results.summary(figure, by=by) for figure in _FIGURES]
    rows = (
        (*(first[name] for name in (*by, "n")), *(row["mean"] for row in (first, *others)))
        for first, *others in zip(*means, strict=True)
    )
    print(fitted("means over all other parameters", width))
    times = map(Column.ms, ("ByteIndex all ms", "ByteIndex above fold ms", "page load ms"))
    print(f"\n{Table((*by, 'loads', *times), rows).to_text(width, shorten=True)}")


_STORE_EPILOG = """\
examples:
  h3sim store list study.db
  h3sim store verify study.db
  h3sim store repair study.db
  h3sim store export study.db rows.csv --study 2
  h3sim store prune study.db --failed --other-models
"""
_FORMATS = (".csv", ".parquet", ".jsonl")


def add_store(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "store",
        help=summary,
        description="Show, verify, repair, export or prune a store of studies.",
        epilog=_STORE_EPILOG,
        formatter_class=RawHelp,
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION", parser_class=Parser)
    for name, action, text in (
        ("list", _list, "list the studies and their finished loads"),
        ("verify", _verify, "check the file's integrity and list damaged entries"),
        ("repair", _repair, "drop damaged entries, so that the next run computes them again"),
        ("export", _export, "write the rows of a study"),
        ("prune", _prune, "delete entries that are no longer useful"),
    ):
        command = actions.add_parser(name, help=text, description=text)
        command.add_argument("store", metavar="STORE", help="the store file")
        command.set_defaults(command=action)
        if name == "export":
            command.add_argument("file", metavar="FILE", help=f"FILE{', FILE'.join(_FORMATS)}")
            command.add_argument(
                "--study",
                type=int,
                metavar="N",
                help="the study's number in `h3sim store list` (default: the last)",
            )
            command.add_argument(
                "--resources", action="store_true", help="write one row per resource"
            )
        if name == "list":
            add_wide(command)
        if name == "prune":
            command.add_argument("--failed", action="store_true", help="delete failed loads")
            command.add_argument(
                "--other-models",
                action="store_true",
                help="delete loads of other versions of h3sim",
            )


def _list(options: argparse.Namespace) -> int:
    with Store(options.store, may_write=False) as store:
        studies, counts = store.studies(), store.counts()
    rows = (
        (s.id, s.name or "-", f"{s.n:,}", f"{s.done:,}", f"{s.failed:,}", ", ".join(s.axes) or "-")
        for s in studies
    )
    width = terminal_width(options)
    print(Table(("study", "name", "cells", "done", "failed", "axes"), rows).to_text(width))
    print()
    models = (
        (model, f"{done:,}", f"{failed:,}", f"{seconds:,.1f}")
        for model, done, failed, seconds in counts
    )
    print(Table(("model", "done", "failed", "took s"), models).to_text(width))
    return 0


def _verify(options: argparse.Namespace) -> int:
    with Store(options.store, may_write=False) as store:
        found = store.verify()
    for line in found:
        print(escape_control(f"{options.store}: {line}"))
    if not found:
        print(escape_control(f"{options.store}: sound"))
    return FAILED if found else 0


def _repair(options: argparse.Namespace) -> int:
    dropped = repair_store(options.store)
    for line in dropped:
        print(escape_control(f"{options.store}: dropped: {line}"))
    left = "run the same sweep again to recompute them" if dropped else "nothing to drop"
    print(escape_control(f"{options.store}: {left}"))
    return 0


def _export(options: argparse.Namespace) -> int:
    suffix = next((ending for ending in _FORMATS if options.file.endswith(ending)), "")
    if not suffix:
        message = f"must end in {', '.join(_FORMATS)}, is {options.file!r}"
        raise InputError([ValidationIssue(key="FILE", message=message)])
    check_output(options.file, key="FILE")
    results = read_results(options.store, study=options.study)
    rows = results.resources() if options.resources else results
    {".csv": rows.to_csv, ".parquet": rows.to_parquet, ".jsonl": rows.save}[suffix](options.file)
    print(escape_control(f"wrote {len(rows):,} rows to {options.file}"))
    return 0


def _prune(options: argparse.Namespace) -> int:
    if not options.failed and not options.other_models:
        message = "choose what to delete: --failed, --other-models or both"
        raise InputError([ValidationIssue(key="prune", message=message)])
    Store(options.store, may_write=False).close()  # a missing store must not be created
    keep = model_version() if options.other_models else None
    with Store(options.store) as store:
        n = store.prune(keep_model=keep, failed=options.failed)
    print(escape_control(f"{options.store}: deleted {n:,} entries"))
    return 0
