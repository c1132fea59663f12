"""`h3sim compare`: several schemes against a baseline, with one seed or many."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.options import (
    add_load_options,
    add_pages,
    add_sample_option,
    add_schemes,
    check_sample_option,
    read_config,
    read_pages,
    read_schemes,
)
from h3sim.cli.parsing import (
    ErrorList,
    Parser,
    RawHelp,
    check_outputs_differ,
    check_plot_path,
    progress_bar,
)
from h3sim.cli.tables import (
    add_wide,
    fitted,
    plural,
    ratios,
    sampled_every,
    table,
    terminal_width,
    times,
)
from h3sim.errors import InputError, ValidationIssue
from h3sim.results.figures import FIGURES
from h3sim.schema import check_output
from h3sim.study import baseline_of, check_names, compare
from h3sim.text import decimals_of, escape_control

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.config import LoadConfig
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study import Comparison
    from h3sim.study.compare import ComparisonRow, SeedComparison, SeedComparisonRow
    from h3sim.study.statistics import SchemeRow


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
        help="load each with N seeds, starting at --seed; show intervals and wins (needs scipy)",
    )
    group.add_argument("-j", "--workers", type=int, metavar="N", help="worker processes")
    group.add_argument("--csv", metavar="FILE", help="write one row per load")
    group.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    group.add_argument(
        "--sort", action="store_true", help="sort by speedup, fastest first (default: as given)"
    )


def check_seed_options(options: argparse.Namespace) -> None:
    """Refuse options that need --seeds without it, and options that exclude it.

    Raises:
        InputError: with one issue per option.
    """
    problems = []
    if options.seeds is None:
        wrong = [name for name in ("workers", "csv", "markdown", "sort") if getattr(options, name)]
        problems = [
            ValidationIssue(key=f"--{name}", message="goes only with --seeds") for name in wrong
        ]
    else:
        wrong = [name.replace("_", "-") for name in _NOT_WITH if getattr(options, name)]
        problems = [
            ValidationIssue(key=f"--{n}", message="does not go with --seeds") for n in wrong
        ]
        if options.seeds < 1:
            message = f"must be at least 1, is {options.seeds}"
            problems.append(ValidationIssue(key="--seeds", message=message))
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
    """Run the loads, and print each scheme's speedup over the baseline."""
    with progress_bar("load") as progress:
        comparison = compare(
            pages,
            schemes=schemes,
            baseline=baseline,
            config=config,
            send_buffers_kb=send_buffers_kb,
            seeds=options.seeds,
            workers=options.workers,
            progress=progress,
        )
    results = comparison.results
    if options.csv is not None:
        results.to_csv(options.csv)
    width = terminal_width(options)
    seeds = plural(options.seeds, "seed")
    print(fitted(f"{plural(len(pages), 'page')}, {seeds} each: {results.counts}", width))
    for page, judged in comparison.fidelity.items():
        for line in judged.lines():
            print(fitted(f"{escape_control(page)}: {line}", width))
    for text in _tables(options, comparison, width):
        print(f"\n{text}")
    note = (
        f"Speedups to {baseline.name} with the same buffer: geometric means over pages, each the"
        " mean of its seeds; intervals: studentized bootstrap over pages (over seeds, if there is"
        " one page); p: Wilcoxon, corrected for the number of schemes; wins and losses count loads."
    )
    print(f"\n{fitted(note, width)}")
    return 1 if results.counts and results.counts.failed else 0


def _tables(
    options: argparse.Namespace, comparison: SeedComparison, width: int | None
) -> Iterator[str]:
    """Yield a table of each send buffer and metric."""
    noun = "page" if len(set(comparison.results.column("page"))) > 1 else "seed"
    titles = {figure.name: figure.title for figure in FIGURES}
    tables: dict[tuple[str, float], list[SeedComparisonRow]] = {}
    for row in comparison.rows:
        tables.setdefault((row.metric, row.send_buffer_kb), []).append(row)
    for (metric, send_buffer_kb), rows in tables.items():
        if options.sort:
            rows.sort(key=lambda row: -row.geometric)
        cells = [*_cells(rows)]
        heading = f"{titles[metric]}, {send_buffer_kb:g} kB buffer"
        few = too_few([row for row in rows if row.scheme != comparison.baseline], noun)
        note = f"\n\n{few}" if few else ""
        if options.markdown:
            yield f"**{heading}**\n\n{_markdown(cells)}{note}"
        else:
            shown = table(_HEADERS, cells, width=width, shorten=True)
            yield f"{heading}:\n\n{shown}{note and fitted(note, width)}"


def too_few(rows: Sequence[SchemeRow | SeedComparisonRow], noun: str) -> str:
    """Explain why *rows* other than the baseline lack an interval or a p-value; "" if none does.

    Even if all n clusters agree, Wilcoxon's p is 2 / 2^n; Holm multiplies it by the schemes.
    """
    if not rows:
        return ""
    n = min(row.clusters for row in rows)
    lacking = ["an interval"] if any(row.low is None for row in rows) else []
    if len(rows) * 2 / 2**n >= 1:
        lacking.append("a p-value below 1")
    many = f", corrected for {len(rows)} schemes" if len(rows) > 1 and len(lacking) else ""
    return f"{plural(n, noun)}: too few for {' or '.join(lacking)}{many}" if lacking else ""


def _cells(rows: Sequence[SeedComparisonRow]) -> Iterator[tuple[str, ...]]:
    """Yield the table cells of each row, with enough decimals to tell speedups apart."""
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


_EPILOG = """\
examples:
  h3sim compare http2rulez davies-meenan
  h3sim compare papers --scheme fifo,bucket-html --baseline dfifo
  h3sim compare my-page.json --send-buffer-kb 0,14,280,1000 --mean geometric
  h3sim compare davies-meenan --plot schemes.png
  h3sim compare corpus:small --loss 1% --rtt-ms 50 --seeds 30 --send-buffer-kb 0
  h3sim compare corpus --scheme fifo,chrome-eps --by-page --no-truncate | less -S

A speedup is the ByteIndex of the baseline without a send buffer, divided by the ByteIndex of the
scheme: 2.00 is twice as fast, 0.50 half as fast. Several versions of one page are also compared
with the first version.
"""
_FEW_PAGES = 4
"""Largest number of pages whose own tables are shown by default; beyond it, only means are."""
_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
_LONGEST_NAME = 100
_MEANS = {"arithmetic": statistics.fmean, "geometric": statistics.geometric_mean}


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help=summary,
        description="Load pages with several schemes and show which are faster, and why.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    add_schemes(parser)
    parser.add_argument(
        "--baseline", metavar="NAME", default="rr", help="reference scheme (default: %(default)s)"
    )
    add_load_options(parser)
    parser.add_argument(
        "--send-buffer-kb",
        metavar="KB",
        default="0,1000",
        help="send buffers in kB (1000 bytes), comma-separated (default: %(default)s)",
    )
    parser.add_argument(
        "--mean", choices=tuple(_MEANS), default="arithmetic", help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-comparison/2 instead")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="plot each page's loads by scheme: FILE.png, .svg or .pdf; with several pages the"
        " page's name is inserted before the extension",
    )
    add_sample_option(parser)
    parser.add_argument(
        "--by-page",
        action=argparse.BooleanOptionalAction,
        help=f"also show each page's table (default: for up to {_FEW_PAGES} pages)",
    )
    add_seed_options(parser)
    add_wide(parser)
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    wanted = read_schemes(options, mistakes)
    mistakes.collect(lambda: check_names(pages=pages, schemes=wanted))
    baseline = mistakes.collect(lambda: baseline_of(options.baseline, wanted))
    send_buffers_kb = mistakes.collect(lambda: _buffers(options.send_buffer_kb)) or [0.0]
    config = read_config(options, mistakes, send_buffer_kb=send_buffers_kb[0], pages=pages)
    mistakes.collect(lambda: check_plot_path(options.plot))
    mistakes.collect(lambda: check_seed_options(options))
    mistakes.collect(lambda: check_sample_option(options))
    if mistakes.lines or baseline is None or config is None:
        return mistakes.tell("compare")
    if options.seeds is not None:
        return compare_over_seeds(options, pages, wanted, baseline, config, send_buffers_kb)
    with progress_bar("load") as progress:
        comparison = compare(
            pages,
            schemes=wanted,
            config=config,
            send_buffers_kb=send_buffers_kb,
            baseline=baseline,
            sample_ms=options.sample_ms,
            keep_loads=options.plot is not None,
            progress=progress,
        )
    _draw(comparison, pages, send_buffers_kb[0], options.plot)
    if options.json:
        print(json.dumps(comparison.to_dict(), allow_nan=False))
        return 0
    width = terminal_width(options)
    print(f"{fitted(escape_control(comparison.told()), width)}\n")
    if options.by_page or (options.by_page is None and len(pages) <= _FEW_PAGES):
        _show_pages(comparison, pages, send_buffers_kb, width)
    else:
        for page in pages:
            _show_notes(comparison, page.name, width)
    if comparison.are_versions:
        _show_versions(comparison, send_buffers_kb, width)
    else:
        _show_means(comparison, pages, send_buffers_kb, options.mean, width)
    _explain(wanted, width)
    return 0


def _buffers(text: str) -> list[float]:
    buffers: list[float] = []
    problems: list[ValidationIssue] = []
    for part in text.split(","):
        try:
            buffers.append(float(part))
        except ValueError:
            message = f"must be comma-separated numbers, is {part!r}"
            problems.append(ValidationIssue(key="--send-buffer-kb", message=message))
            continue
        if not 0 <= buffers[-1] <= 1e9:
            message = f"must be 0 to 1e+09, is {part}"
            problems.append(ValidationIssue(key="--send-buffer-kb", message=message))
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(buffers))


def _show_pages(
    comparison: Comparison, pages: list[Page], send_buffers_kb: list[float], width: int | None
) -> None:
    for page in pages:
        kb, n = page.total_bytes / 1000, len(page.resources)
        name, digest = escape_control(page.name), page.short_digest
        print(f"{escape_control(name)}: {plural(n, 'resource')}, {kb:,.0f} kB, page {digest}")
        _show_notes(comparison, page.name, width)
        print()
        for send_buffer_kb in send_buffers_kb:
            rows = [
                row
                for row in comparison.rows
                if (row.page, row.send_buffer_kb) == (page.name, send_buffer_kb)
            ]
            print(
                f"a send buffer of {send_buffer_kb:g} kB:\n"
                if send_buffer_kb
                else "no send buffer:\n"
            )
            print(_page_table(rows, width))
            if comparison.sample_ms is not None:
                print(f"\nByteIndexes {sampled_every(comparison.sample_ms)}:\n")
                print(_sampled_table(rows, width))
            if any(row.first_paint_ms is not None for row in rows):
                print(f"\n{_paint_table(rows, width)}")
            print()


def _show_notes(comparison: Comparison, page: str, width: int | None) -> None:
    """Print how well a recording's replay fits, and the caveats of the page's figures."""
    judged = comparison.fidelity.get(page)
    notes = [*(() if judged is None else judged.lines()), *comparison.notes.get(page, ())]
    if page in comparison.missing_reason:
        notes.append(f"above the fold: {comparison.missing_reason[page]}")
    for note in notes:
        print(fitted(f"{escape_control(page)}: {note}", width))


def _show_means(
    comparison: Comparison,
    pages: list[Page],
    send_buffers_kb: list[float],
    mean_name: str,
    width: int | None,
) -> None:
    baseline = escape_control(comparison.baseline)
    print(f"{mean_name} mean speedups to {baseline} over {plural(len(pages), 'page')}\n")
    means = {
        (row.scheme, row.send_buffer_kb): row for row in comparison.means_by(_MEANS[mean_name])
    }
    schemes = dict.fromkeys(scheme for scheme, _ in means)
    headers = [
        f"{which} {kb:g} kB" for kb in send_buffers_kb for which in ("all", "above the fold")
    ]
    columns = [
        ratios(getattr(means[scheme, kb], mean) for scheme in schemes)
        for kb in send_buffers_kb
        for mean in ("mean_all", "mean_atf")
    ]
    print(table(["scheme", *headers], zip(schemes, *columns, strict=True), width=width))


def _show_versions(comparison: Comparison, send_buffers_kb: list[float], width: int | None) -> None:
    """Print the speedup of each other version over the first page, scheme by scheme."""
    original = escape_control(comparison.rows[0].page)
    for name in dict.fromkeys(comparison.versions.column("page")):
        for send_buffer_kb in send_buffers_kb:
            rows = [
                row
                for row in comparison.versions
                if (row.page, row.send_buffer_kb) == (name, send_buffer_kb)
            ]
            body = zip(
                [row.scheme for row in rows],
                ratios(row.speedup_all for row in rows),
                ratios(row.speedup_atf for row in rows),
                ratios(row.speedup_page_load for row in rows),
                strict=True,
            )
            buffer = f", a send buffer of {send_buffer_kb:g} kB" if send_buffer_kb else ""
            version = escape_control(name)
            print(f"{version} against {original} with the same scheme{buffer}: speedups\n")
            headers = ("scheme", "all", "above the fold", "page load")
            print(f"{table(headers, body, width=width)}\n")


def _explain(schemes: list[Scheme], width: int | None) -> None:
    """Print the caveats of the schemes."""
    notes = [f"{scheme.name}: {scheme.caveat}" for scheme in schemes if scheme.caveat]
    notes += [
        f"{scheme.name}: uses information that browsers do not have ({', '.join(scheme.knows)})"
        for scheme in schemes
        if scheme.knows
    ]
    if notes:
        print("\n" + "\n".join(fitted(escape_control(note), width) for note in notes))


def _page_table(rows: list[ComparisonRow], width: int | None) -> str:
    headers = (
        *("scheme", "all ms", "above fold ms", "speedup all", "speedup above fold"),
        *("document at ms", "last above fold at ms", "which is"),
    )
    body = zip(
        [row.scheme for row in rows],
        times(row.byte_index_all_ms for row in rows),
        times(row.byte_index_atf_ms for row in rows),
        ratios(row.speedup_all for row in rows),
        ratios(row.speedup_atf for row in rows),
        times(row.document_ms for row in rows),
        times(row.last_atf_ms for row in rows),
        [row.last_atf_id or "-" for row in rows],
        strict=True,
    )
    return table(headers, body, width=width, shorten=True)


def _sampled_table(rows: list[ComparisonRow], width: int | None) -> str:
    """Return the table of ByteIndexes sampled with `--sample-ms`; speedups use the exact ones."""
    body = zip(
        [row.scheme for row in rows],
        times(row.byte_index_sampled_all_ms for row in rows),
        times(row.byte_index_sampled_atf_ms for row in rows),
        strict=True,
    )
    return table(("scheme", "all ms", "above fold ms"), body, width=width, shorten=True)


def _paint_table(rows: list[ComparisonRow], width: int | None) -> str:
    """Return the table of paint and load-event times, which only computing browsers have."""
    headers = ("scheme", "first paint ms", "largest paint ms", "SpeedIndex ms", "load event ms")
    body = zip(
        [row.scheme for row in rows],
        times(row.first_paint_ms for row in rows),
        times(row.largest_paint_ms for row in rows),
        times(row.speed_index_ms for row in rows),
        times(row.load_event_ms for row in rows),
        strict=True,
    )
    return table(headers, body, width=width, shorten=True)


def _draw(
    comparison: Comparison, pages: list[Page], send_buffer_kb: float, path: str | None
) -> None:
    if path is None:
        return
    from h3sim.reporting import LoadPlots

    for page, target in zip(pages, plot_paths(path, [page.name for page in pages]), strict=True):
        LoadPlots(comparison.loads_of(page.name, send_buffer_kb=send_buffer_kb)).save(target)
        print(f"wrote {escape_control(str(target))}", file=sys.stderr)


def plot_paths(path: str, names: Sequence[str]) -> list[Path]:
    """Return each page's figure path: *path*, or with the page's name before its extension.

    Names are truncated; characters unfit for file names become hyphens, so no name is a path.

    >>> [str(made) for made in plot_paths("a/b.png", ["docs/index", "docs-index"])]
    ['a/b-docs-index.png', 'a/b-docs-index-2.png']
    """
    target = Path(path)
    if len(names) == 1:
        return [target]
    made: list[Path] = []
    for name in names:
        stem = f"{target.stem}-{_UNFIT.sub('-', name)[:_LONGEST_NAME]}"
        number = 1
        while (found := target.with_stem(stem if number == 1 else f"{stem}-{number}")) in made:
            number += 1
        made.append(found)
    return made
