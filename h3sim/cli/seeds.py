"""`h3sim compare --seeds N`: schemes over many accidents, with intervals and wins."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from h3sim.cli.outputs import check_outputs_differ
from h3sim.cli.parsing import progress_bar
from h3sim.cli.tables import fitted, plural, table, terminal_width
from h3sim.documents import check_output
from h3sim.errors import InputError, NothingToMeasureError, Problem, require_extra
from h3sim.fitting import decimals_of
from h3sim.results.figures import FIGURES
from h3sim.study import study_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study import LoadConfig, Results
    from h3sim.study.statistics import SchemeRow

__all__ = ["add_seed_options", "check_seed_options", "compare_over_seeds", "too_few"]

_HEADERS = (
    *("scheme", "speedup", "95 % interval", "p (Holm)", "effect"),
    *("wins 5 %", "ties", "losses", "wins 25 %", "losses"),
)
_NOT_WITH = ("json", "plot", "by_page", "sample_ms")


def add_seed_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of comparisons over seeds."""
    group = parser.add_argument_group("many seeds")
    group.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help="load each with N seeds, from --seed on, and show intervals and wins (needs scipy)",
    )
    group.add_argument("-j", "--workers", type=int, metavar="N", help="processes for that")
    group.add_argument("--csv", metavar="FILE", help="write a row a load")
    group.add_argument(
        "--markdown", action="store_true", help="print the tables for a page of Markdown"
    )
    group.add_argument(
        "--sort", action="store_true", help="the fastest scheme first (default: as given)"
    )


def check_seed_options(options: argparse.Namespace) -> None:
    """Refuse options that go only with many seeds, or not with them.

    Raises:
        InputError: listing them.
    """
    problems = []
    if options.seeds is None:
        wrong = [name for name in ("workers", "csv", "markdown", "sort") if getattr(options, name)]
        problems = [Problem(key=f"--{name}", message="goes only with --seeds") for name in wrong]
    else:
        wrong = [name.replace("_", "-") for name in _NOT_WITH if getattr(options, name)]
        problems = [Problem(key=f"--{n}", message="does not go with --seeds") for n in wrong]
        if options.seeds < 1:
            message = f"must be at least 1, is {options.seeds}"
            problems.append(Problem(key="--seeds", message=message))
    if problems:
        raise InputError(problems)
    if options.csv is not None:
        check_output(options.csv, key="--csv")
        check_outputs_differ(options, csv="--csv")


def compare_over_seeds(
    options: argparse.Namespace,
    pages: Sequence[Page],
    schemes: Sequence[Scheme],
    baseline: Scheme,
    config: LoadConfig,
    send_buffers_kb: Sequence[float],
) -> int:
    """Run the loads, and print how each scheme fares against the baseline."""
    require_extra("scipy", "study")  # for the intervals, when all loads have run
    changed: dict[str, Any] = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name not in ("seed", "send_buffer_kb")
        and getattr(config, field.name) != field.default
    }
    study = study_of(
        pages,
        schemes=list(dict.fromkeys([baseline, *schemes])),
        seeds=range(config.seed, config.seed + options.seeds),
        send_buffer_kb=list(send_buffers_kb),
        **changed,
    )
    with progress_bar("load") as progress:
        results = study.run(workers=options.workers, progress=progress or False)
    if options.csv is not None:
        results.to_csv(options.csv)
    width = terminal_width(options)
    seeds = plural(options.seeds, "seed")
    print(fitted(f"{plural(len(pages), 'page')}, {seeds} each: {results.counts}", width))
    for send_buffer_kb in send_buffers_kb:
        some = results.filter(send_buffer_kb=send_buffer_kb)
        for text in _tables(options, some, baseline.name, width, f"{send_buffer_kb:g} kB buffer"):
            print(f"\n{text}")
    note = (
        f"Speedups to {baseline.name} with the same buffer: geometric means over pages, each the"
        " mean of its seeds; intervals: studentized bootstrap over pages (over seeds, if there is"
        " one page); p: Wilcoxon, corrected for the number of schemes; wins and losses count loads."
    )
    print(f"\n{fitted(note, width)}")
    return 1 if results.counts and results.counts.failed else 0


def _tables(
    options: argparse.Namespace, results: Results, baseline: str, width: int | None, what: str
) -> Iterator[str]:
    noun = "page" if len(set(results.column("page"))) > 1 else "seed"
    for figure in FIGURES:
        if not figure.is_compared:
            continue
        try:
            rows: Iterable[SchemeRow] = results.compare(baseline, value=figure.name)
        except NothingToMeasureError:
            continue
        if options.sort:
            rows = sorted(rows, key=lambda row: -row.geometric)
        rows = list(rows)
        cells = [*_cells(rows)]
        heading = f"{figure.title}, {what}"
        few = too_few([row for row in rows if row.scheme != baseline], noun)
        note = f"\n\n{few}" if few else ""
        if options.markdown:
            yield f"**{heading}**\n\n{_markdown(cells)}{note}"
        else:
            shown = table(_HEADERS, cells, width=width, shorten=True)
            yield f"{heading}:\n\n{shown}{note and fitted(note, width)}"


def too_few(rows: Sequence[SchemeRow], noun: str) -> str:
    """Return why the *rows* beside the baseline lack an interval or a p-value; empty if none does.

    Even where all n clusters agree, Wilcoxon's p is 2 / 2^n, and Holm's the same by the schemes.
    """
    if not rows:
        return ""
    n = min(row.clusters for row in rows)
    lacking = ["an interval"] if any(row.low is None for row in rows) else []
    if len(rows) * 2 / 2**n >= 1:
        lacking.append("a p-value below 1")
    many = f", corrected for {len(rows)} schemes" if len(rows) > 1 and len(lacking) else ""
    return f"{plural(n, noun)}: too few for {' or '.join(lacking)}{many}" if lacking else ""


def _cells(rows: Sequence[SchemeRow]) -> Iterator[tuple[str, ...]]:
    """Yield what a table shows of each row, with so many decimals that speedups differ."""
    decimals = decimals_of((row.geometric for row in rows), least=2)
    for row in rows:
        has_interval = row.low is not None and row.high is not None
        counts = (row.wins_5, row.ties_5, row.losses_5, row.wins_25, row.losses_25)
        yield (
            row.scheme,
            f"{row.geometric:.{decimals}f}",
            f"{row.low:.{decimals}f} to {row.high:.{decimals}f}" if has_interval else "-",
            "-" if row.p_holm is None else f"{row.p_holm:.3f}",
            f"{row.effect:+.2f}",
            *map(str, counts),
        )


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [_HEADERS, ["---", *["---:"] * (len(_HEADERS) - 1)], *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
