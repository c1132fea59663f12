"""`h3sim compare`: pages by schemes, against a baseline."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.load_tables import sampled_every
from h3sim.cli.options import (
    add_load_options,
    add_sample_option,
    check_sample_option,
    read_config,
)
from h3sim.cli.outputs import check_plot_path
from h3sim.cli.parsing import Mistakes, Parser, RawHelp, progress_bar
from h3sim.cli.seeds import add_seed_options, check_seed_options, compare_over_seeds
from h3sim.cli.subjects import add_pages, add_schemes, read_pages, read_schemes
from h3sim.cli.tables import add_wide, fitted, plural, ratios, table, terminal_width, times
from h3sim.errors import InputError, Problem
from h3sim.printable import printable
from h3sim.study import baseline_of, check_names, compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study import Comparison
    from h3sim.study.compare import ComparisonRow

__all__ = ["add_command", "plot_paths"]

_EPILOG = """\
examples:
  h3sim compare http2rulez davies-meenan
  h3sim compare papers --scheme fifo,bucket-html --baseline dfifo
  h3sim compare my-page.json --send-buffer-kb 0,14,280,1000 --mean geometric
  h3sim compare davies-meenan --plot schemes.png
  h3sim compare corpus:small --loss 1% --rtt-ms 50 --seeds 30 --send-buffer-kb 0
  h3sim compare corpus --scheme fifo,chrome-eps --by-page --no-truncate | less -S

A speedup is a ratio of ByteIndexes: that of the baseline without a send buffer to that of the
scheme. 2.00 is twice as fast, 0.50 half as fast. Of several versions of one page each is also
compared with the first.
"""
_FEW_PAGES = 4
"""Of more pages than this only the means are shown, unless told otherwise."""
_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
_LONGEST_NAME = 100
_MEANS = {"arithmetic": statistics.fmean, "geometric": statistics.geometric_mean}


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help=summary,
        description="Load pages with several schemes and show who is faster, and why.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    add_schemes(parser)
    parser.add_argument(
        "--baseline", metavar="NAME", default="rr", help="compared with (default: %(default)s)"
    )
    add_load_options(parser)
    parser.add_argument(
        "--send-buffer-kb",
        metavar="KB",
        default="0,1000",
        help="send buffers in kB of 1000 bytes, with commas between (default: %(default)s)",
    )
    parser.add_argument(
        "--mean", choices=tuple(_MEANS), default="arithmetic", help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-comparison/2 instead")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw each page's loads, by scheme: FILE.png, .svg or .pdf; with several pages the"
        " page's name is put before the ending",
    )
    add_sample_option(parser)
    parser.add_argument(
        "--by-page",
        action=argparse.BooleanOptionalAction,
        help=f"show each page's table, too (default: of up to {_FEW_PAGES} pages)",
    )
    add_seed_options(parser)
    add_wide(parser)
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
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
    print(f"{fitted(printable(comparison.told()), width)}\n")
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
    problems: list[Problem] = []
    for part in text.split(","):
        try:
            buffers.append(float(part))
        except ValueError:
            message = f"must be numbers with commas between, is {part!r}"
            problems.append(Problem(key="--send-buffer-kb", message=message))
            continue
        if not 0 <= buffers[-1] <= 1e9:
            message = f"must be 0 to 1e+09, is {part}"
            problems.append(Problem(key="--send-buffer-kb", message=message))
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(buffers))


def _show_pages(
    comparison: Comparison, pages: list[Page], send_buffers_kb: list[float], width: int | None
) -> None:
    for page in pages:
        kb, n = page.total_bytes / 1000, len(page.resources)
        name, digest = printable(page.name), page.short_digest
        print(f"{printable(name)}: {plural(n, 'resource')}, {kb:,.0f} kB, page {digest}")
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
    """Say what must be known of the page before believing its figures."""
    notes = [*comparison.notes.get(page, ())]
    if page in comparison.why_none:
        notes.append(f"above the fold: {comparison.why_none[page]}")
    for note in notes:
        print(fitted(f"{printable(page)}: {note}", width))


def _show_means(
    comparison: Comparison,
    pages: list[Page],
    send_buffers_kb: list[float],
    mean_name: str,
    width: int | None,
) -> None:
    baseline = printable(comparison.baseline)
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
    """Print what other versions of the first page change, scheme by scheme."""
    original = printable(comparison.rows[0].page)
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
            print(f"{printable(name)} against {original} with the same scheme{buffer}: speedups\n")
            headers = ("scheme", "all", "above the fold", "page load")
            print(f"{table(headers, body, width=width)}\n")


def _explain(schemes: list[Scheme], width: int | None) -> None:
    """Say what a reader must know of the schemes before comparing them."""
    notes = [f"{scheme.name}: {scheme.caveat}" for scheme in schemes if scheme.caveat]
    notes += [
        f"{scheme.name}: knows what no browser does ({', '.join(scheme.knows)})"
        for scheme in schemes
        if scheme.knows
    ]
    if notes:
        print("\n" + "\n".join(fitted(printable(note), width) for note in notes))


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
    """Return the ByteIndexes of `--sample-ms`, which are not those of speedups."""
    body = zip(
        [row.scheme for row in rows],
        times(row.byte_index_sampled_all_ms for row in rows),
        times(row.byte_index_sampled_atf_ms for row in rows),
        strict=True,
    )
    return table(("scheme", "all ms", "above fold ms"), body, width=width, shorten=True)


def _paint_table(rows: list[ComparisonRow], width: int | None) -> str:
    """Return what only browsers that compute their load can tell."""
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
    from h3sim.plots import LoadPlots

    for page, target in zip(pages, plot_paths(path, [page.name for page in pages]), strict=True):
        LoadPlots(comparison.loads_of(page.name, send_buffer_kb=send_buffer_kb)).save(target)
        print(f"wrote {printable(str(target))}", file=sys.stderr)


def plot_paths(path: str, names: Sequence[str]) -> list[Path]:
    """Return where the figure of each page goes: *path*, or with the page's name before its ending.

    A name is cut, and what a name of a file should not hold is a hyphen, so that none is a path.

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
