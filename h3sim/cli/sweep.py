"""`h3sim sweep` and `h3sim store`: running and resuming studies, and managing stores."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.cli import common, output, shared
from h3sim.cli.command import COMMANDS, FAILED, Argument, Command, Options, command, refuse
from h3sim.load.figures import FIGURES, ON_DEMAND
from h3sim.page import Page
from h3sim.schema import format_value
from h3sim.schema.values import share
from h3sim.study import Store, merge_stores, read_results
from h3sim.study.cache_key import model_version
from h3sim.study.design import StoppingRule, StudyPart
from h3sim.study.runner import dask_client
from h3sim.study.statistics.pairs import how_of
from h3sim.study.store import repair_store
from h3sim.study.study_file import read_study
from h3sim.study.sweep import run_until
from h3sim.values.errors import InputError, NothingToMeasureError, ValidationIssue, require_extra
from h3sim.values.table import MISSING, Column, Table
from h3sim.values.text import escape_control
from h3sim.values.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.study import Results, Study
    from h3sim.study.sweep import Sequential


_MAX_SHOWN_ERRORS = 10
_LEVEL = 0.05
"""Level of significance that p must be able to reach."""
_MIN_SCIENTIFIC = 1e6
"""Smallest speedup that is printed in scientific notation."""
_MIN_ROUNDED = 100
"""Smallest difference that is printed without decimals."""
_SUMMARY_HEADS = ("ByteIndex all ms", "ByteIndex above fold ms", "page load ms")
"""Headings of the means of `_SUMMARY_METRICS`."""
_SUMMARY_METRICS = tuple(figure for figure in FIGURES if figure.is_headline)


def _read_study(name: str, options: Options) -> Study:
    study = read_study(name)
    pages = tuple(
        shared.with_marks(page, options.above_the_fold) if isinstance(page, Page) else page
        for page in study.design.pages
    )
    study = replace(
        study,
        design=replace(study.design, pages=pages),
        has_resources=study.has_resources or options.resources,
    )
    axes = shared.read_values("--vary", options.vary or ())
    study = study.with_axes(axes) if axes else study
    return replace(study, part=StudyPart.parse(options.part)) if options.part else study


def _read_metric(name: str, options: Options) -> str:
    if options.study is not None:
        options.study.ask_for([name])
    return name


def _read_contrast(options: Options) -> tuple[str, str, list[str], list[str]]:
    """Return the axis and the baseline that --compare names, and --by and --pool."""
    over, _, baseline = options.compare.partition("=")
    return over, baseline, options.by or [], options.pool or []


def _check_contrast(options: Options) -> None:
    """Refuse, before anything runs, a comparison that the axes of the study do not allow.

    Raises:
        InputError: listing every mistake.
    """
    if options.compare is None or options.study is None:
        return
    (over, baseline, by, pool), axes = _read_contrast(options), options.study.axes
    problems = []
    if not over or not baseline:
        message = f"must be like transport=tcp, is {format_value(options.compare)}"
        problems.append(("--compare", message))
    keys = {"--compare": [over], "--by": by, "--pool": pool}
    problems += (
        (key, f"no axis is called {name!r}: {', '.join(axes)}")
        for key, names in keys.items()
        for name in names
        if name and name not in axes
    )
    named = {"page", "seed", over, *by, *pool}
    if others := [name for name in axes if name not in named]:
        message = f"the loads differ in {', '.join(others)}, too: add to --by, or to --pool"
        problems.append(("--compare", message))
    refuse(problems)


def _print_contrast(results: Results, options: Options) -> None:
    """Print how the values of an axis compare with one of them."""
    over, text, by, pool = _read_contrast(options)
    width, levels = options.width, dict.fromkeys(results.column(over))
    baseline = next((level for level in levels if _is_named(level, text)), None)
    if baseline is None:
        known = ", ".join(map(str, levels))
        raise InputError.at("--compare", f"no load has {over} {text}; there are {known}")
    for figure in FIGURES:
        if not figure.is_compared:
            continue
        try:
            rows = results.compare(baseline, over=over, value=figure.name, by=by, pool=pool)
        except NothingToMeasureError:
            continue
        is_ratio = how_of(figure.name, None) == "ratio"
        cell = _ratio_cell if is_ratio else _difference_cell
        shown = output.of(
            rows,
            ("setting", lambda row: row.setting or "all"),
            (over, "level"),
            ("pairs", "pairs"),
            ("clusters", lambda row: f"{row.clusters:,} {row.cluster}{'s' * (row.clusters != 1)}"),
            ("speedup", cell("geometric")) if is_ratio else ("difference", cell("difference")),
            ("low", cell("low")),
            ("high", cell("high")),
            ("p", lambda row: "-" if row.p_corrected is None else f"{row.p_corrected:.3f}"),
        )
        what = "speedups" if is_ratio else f"differences in {unit_of(figure.name) or 'number'}"
        heading = f"{figure.title}: {what} to {over} {baseline}, paired by {rows[0].pairing}"
        output.show(width, heading, shown)
        print()
        lines = [rows.note] if rows.note else []
        lines += (f"no interval: {row.refusal}" for row in rows if row.refusal)
        lines += (
            f"{row.clusters} {row.cluster}s: p is never below {row.p_least:g}"
            for row in rows
            if row.p_least is not None and row.p_least > _LEVEL
        )
        for line in dict.fromkeys(lines):
            print(f"{output.fitted(line, width)}\n")


def _is_named(level: object, text: str) -> bool:
    """Return whether *text* names the value *level* of an axis on the command line.

    >>> _is_named(60.0, "60"), _is_named("tcp", "tcp"), _is_named(True, "1")
    (True, True, False)
    """
    if isinstance(level, int | float) and not isinstance(level, bool):
        try:
            return level == float(text)
        except ValueError:
            return False
    return str(level) == text


def _set_target_width(width: float, options: Options) -> float:
    """Make the study add seeds until its intervals have that width."""
    study: Study | None = options.study
    if study is None:
        return width
    try:
        stopping = study.stopping or StoppingRule(width=width)
        study.stopping = replace(stopping, width=width)
    except InputError as error:
        problems = (
            ValidationIssue(key="--target-ci-width", message=problem.message)
            for problem in error.problems
        )
        raise InputError(problems) from error
    return width


def _print_plan(study: Study, options: Options) -> None:
    """Print the planned loads; if seeds are added, for the first and the last round."""
    if study.stopping is None:
        print(study.plan(store=options.store, workers=options.workers))
        return
    looks = study.stopping.looks
    for n_seeds in dict.fromkeys((looks[0], looks[-1])):
        plan = study.with_seeds(range(n_seeds)).plan(store=options.store, workers=options.workers)
        print(f"with {n_seeds:,} seeds: {plan}")


def _run_study(
    study: Study, options: Options, **settings: Any
) -> tuple[Results, Sequential | None]:
    settings |= {name: getattr(options, name) for name in ("store", "workers", "retry_failed")}
    if study.stopping is None:
        return study.run(**settings), None
    found = run_until(study, study.stopping, **settings)
    return found.results, found


def _write_rows(results: Results, options: Options) -> None:
    rows = results.resources() if options.resources else results
    writers = {"csv": rows.to_csv, "parquet": rows.to_parquet, "save": rows.save}
    for name, write in writers.items():
        if (path := getattr(options, name)) is not None:
            write(path)
            output.report_written(path)


def _print_sequential(until: Sequential, options: Options) -> None:
    """Print each scheme's speedup with its interval over seeds."""
    rule = until.rule
    percent = f"{100 * rule.confidence:g} %"
    shown = output.of(
        until.rows,
        "scheme",
        "seeds",
        (f"speedup to {rule.baseline}", lambda row: _format_speedup(row.geometric)),
        ("low", lambda row: _format_speedup(row.low)),
        ("high", lambda row: _format_speedup(row.high)),
        # With few seeds an interval may extend down to 0.
        ("width %", lambda row: f"{100 * (row.high / row.low - 1):.1f}" if row.low else "-"),
    )
    print()
    heading = f"{rule.value}, {percent} intervals over seeds of these pages"
    output.show(options.width, heading, shown)
    if not until.is_narrow:
        message = f"some intervals exceed {100 * rule.width:g} % after {rule.most_seeds:,} seeds"
        print(f"h3sim sweep: {message}: raise until.most_seeds", file=sys.stderr)


def _format_speedup(number: float | None) -> str:
    """Format a speedup; huge ends of meaningless intervals use scientific notation.

    >>> _format_speedup(1.23456), _format_speedup(2e300)
    ('1.235', '2e+300')
    """
    if number is None:
        return MISSING
    return f"{number:.3f}" if number < _MIN_SCIENTIFIC else f"{number:.0e}"


def _ratio_cell(name: str) -> Callable[[Any], str]:
    return lambda row: _format_speedup(getattr(row, name))


def _difference_cell(name: str) -> Callable[[Any], str]:
    return lambda row: _format_difference(getattr(row, name))


def _format_difference(number: float | None) -> str:
    """Format a difference with its sign.

    >>> _format_difference(-8800.0), _format_difference(0.25), _format_difference(None)
    ('-8,800', '+0.25', '-')
    """
    if number is None:
        return MISSING
    return f"{number:+,.0f}" if abs(number) >= _MIN_ROUNDED else f"{number:+.3g}"


def _print_results(results: Results, options: Options) -> None:
    """Print the means by network, what --vary names, and scheme."""
    if not len(results):
        return
    varied = shared.read_values("--vary", options.vary or ())
    by = [name for name in ("network", *varied, "scheme") if name in results.columns]
    by = list(dict.fromkeys(by))
    means = [results.summary(figure.name, by=by) for figure in _SUMMARY_METRICS]
    # Each row has a summary per metric, of the same loads.
    rows = (
        (
            *(first[name] for name in by),
            first["n"],
            first["mean"],
            *(each["mean"] for each in others),
        )
        for first, *others in zip(*means, strict=True)
    )
    shown = Table((*by, "loads", *map(Column.ms, _SUMMARY_HEADS)), rows)
    output.show(options.width, "means over all other parameters", shown)


def _check_prune(options: Options) -> None:
    if not options.failed and not options.other_models:
        raise InputError.at("prune", "choose what to delete: --failed, --other-models or both")


_EXPORT_SUFFIXES = (".csv", ".parquet", ".jsonl")
_STORE_ARGUMENT = Argument("STORE", "the store file")


@command(
    "sweep",
    shared.marks(),
    Argument("--resources", "keep one row per resource, and write these"),
    Argument(
        "--vary KEY=VALUES",
        "another axis, values with commas between; may be given several times: rtt_ms=20,80, or a"
        " key of network or profile files: network.down.loss=0,0.02, profile.quic.ack_every=2,10",
        action="append",
    ),
    Argument("STUDY", "a study file (.toml, format h3sim-study/1)", read=_read_study),
    Argument("--part K/N", "run only the k-th of n parts, such as 3/16; see `h3sim store merge`"),
    Argument("--store FILE", "store finished loads and reuse them", output=()),
    common.WORKERS,
    common.DASK,
    Argument("--dry-run", "show the number of loads and their estimated duration"),
    common.RETRY,
    Argument("--csv FILE", "write the rows as CSV", output=()),
    Argument("--parquet FILE", "write the rows as Parquet", output=()),
    Argument("--save FILE", "write results for h3sim.read_results", output=()),
    Argument(
        "--metrics NAME,...",
        f"additional columns that take longer: {', '.join(ON_DEMAND)}",
        many="commas",
        read=_read_metric,
    ),
    Argument(
        "--target-ci-width SHARE",
        "add seeds until each speedup's confidence interval is narrower: 0.05 or 5%; other"
        " settings come from the study's table `until`",
        type=share,
        read=_set_target_width,
    ),
    Argument(
        "--compare AXIS=BASELINE",
        "compare the values of an axis with one of them, in pairs: transport=tcp",
    ),
    Argument(
        "--by NAMES",
        "columns whose values have rows of their own, with commas between",
        many="commas",
        needs="--compare",
    ),
    Argument(
        "--pool NAMES",
        "axes to average over besides pages and seeds",
        many="commas",
        needs="--compare",
    ),
    common.NO_TRUNCATE,
    checks=(_check_contrast,),
)
def _run_sweep(options: Options, progress: output.Progress | None) -> int:
    """Run every load of a study and write one row per load.

    Examples:
      h3sim sweep study.toml --dry-run
      h3sim sweep study.toml --vary profile.initial_window_bytes=13500,40000
      h3sim sweep study.toml --store study.db --csv rows.csv
      h3sim sweep study.toml --store part-3.db --part 3/16
      h3sim sweep study.toml --store study.db --dask tcp://scheduler:8786
      h3sim sweep study.toml --store study.db --target-ci-width 5%
      h3sim sweep study.toml --store study.db --compare transport=tcp --by network,scheme
      h3sim store list study.db

    The store keeps every finished load; if interrupted, run the same command again to resume.
    """
    study: Study = options.study
    # A library that is missing is reported now, not after all loads have run.
    if options.compare is not None:
        require_extra("scipy", "study")
    if options.parquet is not None:
        require_extra("pyarrow", "study")
    if options.dry_run:
        _print_plan(study, options)
        return 0
    began = time.monotonic()
    with dask_client(options.dask) as client:
        results, until = _run_study(study, options, executor=client, progress=progress or False)
    _write_rows(results, options)
    if options.compare is None:
        _print_results(results, options)
    else:
        _print_contrast(results, options)
    if until is not None:
        _print_sequential(until, options)
    seconds = time.monotonic() - began
    loads = len(results) + len(results.errors)
    print(f"\n{loads:,} loads: {results.counts}; {seconds:,.1f} s")
    for error in results.errors[:_MAX_SHOWN_ERRORS]:
        print(f"h3sim sweep: failed: {escape_control(error)}", file=sys.stderr)
    is_enough = until is None or until.is_narrow
    return 0 if is_enough and not results.errors else FAILED


@command("store list", _STORE_ARGUMENT, common.NO_TRUNCATE)
def _list_studies(options: Options) -> None:
    """List the studies and their finished loads."""
    with Store(options.store, may_write=False) as store:
        studies, stored = store.studies(), store.counts()
    shown = output.of(
        studies,
        ("study", "id"),
        ("name", lambda study: study.name or "-"),
        ("cells", "n"),
        "done",
        "failed",
        ("axes", lambda study: ", ".join(study.axes) or "-"),
    )
    models = (
        (model, f"{done:,}", f"{failed:,}", f"{seconds:,.1f}")
        for model, done, failed, seconds in stored
    )
    by_model = Table(("model", "done", "failed", "took s"), models)
    output.show(options.width, shown, by_model, shorten=False)


@command("store verify", _STORE_ARGUMENT)
def _verify_store(options: Options) -> int:
    """Check the file's integrity and list damaged entries."""
    with Store(options.store, may_write=False) as store:
        found = store.verify()
    for line in found:
        print(escape_control(f"{options.store}: {line}"))
    if not found:
        print(escape_control(f"{options.store}: sound"))
    return FAILED if found else 0


@command("store repair", _STORE_ARGUMENT)
def _repair_store(options: Options) -> None:
    """Drop damaged entries, so that the next run computes them again."""
    dropped = repair_store(options.store)
    for line in dropped:
        print(escape_control(f"{options.store}: dropped: {line}"))
    left = "run the same sweep again to recompute them" if dropped else "nothing to drop"
    print(escape_control(f"{options.store}: {left}"))


@command(
    "store export",
    _STORE_ARGUMENT,
    Argument("FILE", f"FILE{', FILE'.join(_EXPORT_SUFFIXES)}", output=_EXPORT_SUFFIXES),
    Argument("--study N", "the study's number in `h3sim store list` (default: the last)", type=int),
    Argument("--resources", "write one row per resource"),
)
def _export_store(options: Options) -> None:
    """Write the rows of a study."""
    suffix = Path(options.file).suffix.lower()
    results = read_results(options.store, study=options.study)
    rows = results.resources() if options.resources else results
    {".csv": rows.to_csv, ".parquet": rows.to_parquet, ".jsonl": rows.save}[suffix](options.file)
    print(escape_control(f"wrote {len(rows):,} rows to {options.file}"))


@command(
    "store prune",
    _STORE_ARGUMENT,
    Argument("--failed", "delete failed loads"),
    Argument("--other-models", "delete loads of other versions of h3sim"),
    checks=(_check_prune,),
)
def _prune_store(options: Options) -> None:
    """Delete entries that are no longer useful."""
    Store(options.store, may_write=False).close()  # a missing store must not be created
    keep = model_version() if options.other_models else None
    with Store(options.store) as store:
        n = store.prune(keep_model=keep, failed=options.failed)
    print(escape_control(f"{options.store}: deleted {n:,} entries"))


@command(
    "store merge",
    Argument("STORES", "the store files", nargs="+"),
    Argument("-o --output FILE", "the merged store, a new file", required=True),
    Argument("--other-models", "merge loads of other versions of h3sim, too"),
)
def _merge_stores(options: Options) -> None:
    """Write the studies and loads of several stores to a new one.

    Each store is verified. Parts of one study become one study.
    """
    n = merge_stores(options.stores, options.output, other_models=options.other_models)
    print(escape_control(f"{options.output}: {n:,} loads"))


COMMANDS["store"] = Command(
    about="""Show, verify, repair, export, merge or prune a store of studies.

examples:
  h3sim store list study.db
  h3sim store verify study.db
  h3sim store repair study.db
  h3sim store export study.db rows.csv --study 2
  h3sim store merge part-1.db part-2.db -o study.db
  h3sim store prune study.db --failed --other-models
"""
)
