"""`h3sim compare`: pages by schemes, against a baseline."""

from __future__ import annotations

import json
import statistics
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.cli.options import BAD_INPUT, Mistakes, Parser, add_setting, progress_bar, read_setting
from h3sim.cli.run import RawHelp, check_plot_path
from h3sim.cli.tables import in_ms, plural, ratio, table
from h3sim.errors import InputError, Problem
from h3sim.study import baseline_of, check_names, compare, resolve_pages, resolve_schemes

if TYPE_CHECKING:
    import argparse

    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study import Comparison

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim compare http2rulez davies-meenan
  h3sim compare papers --scheme fifo,bucket-html --baseline dfifo
  h3sim compare my-page.json --buffer-kb 0,14,280,1000 --mean geometric
  h3sim compare davies-meenan --plot schemes.png

A speedup is a ratio of ByteIndexes: that of the baseline without a send buffer to that of the
scheme. 2.00 is twice as fast, 0.50 half as fast.
"""
_MEANS = {"arithmetic": statistics.fmean, "geometric": statistics.geometric_mean}


def add_command(commands: argparse._SubParsersAction[Parser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="load pages with several schemes",
        description="Load pages with several schemes and show who is faster, and why.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "pages", metavar="PAGE", nargs="+", help="shipped pages, sets of them, or files.json"
    )
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        action="append",
        help="schemes, sets of them, or files.toml, with commas between (default: marx-2019)",
    )
    parser.add_argument(
        "--baseline", metavar="NAME", default="rr", help="compared with (default: %(default)s)"
    )
    add_setting(parser)
    parser.add_argument(
        "--buffer-kb",
        metavar="KB",
        default="0,1000",
        help="send buffers in kB of 1000 bytes, with commas between (default: %(default)s)",
    )
    parser.add_argument(
        "--mean", choices=tuple(_MEANS), default="arithmetic", help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print h3sim-comparison/1 instead")
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw each page's loads, by scheme: FILE.png, .svg or .pdf; with several pages the"
        " page's name is put before the ending",
    )
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    names = [name for given in options.scheme or ["marx-2019"] for name in given.split(",")]
    found = [mistakes.collect(partial(resolve_pages, name)) for name in options.pages]
    pages = [page for group in found for page in group or ()]
    schemes = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    wanted = list(dict.fromkeys(scheme for group in schemes for scheme in group or ()))
    mistakes.collect(lambda: check_names(pages=pages, schemes=wanted))
    baseline = mistakes.collect(lambda: baseline_of(options.baseline, wanted))
    buffers_kb = mistakes.collect(lambda: _buffers(options.buffer_kb)) or [0.0]
    setting = read_setting(options, mistakes, buffer_kb=buffers_kb[0])
    mistakes.collect(lambda: check_plot_path(options.plot))
    if mistakes.lines or baseline is None:
        for line in mistakes.lines:
            print(f"h3sim compare: {line}", file=sys.stderr)
        return BAD_INPUT
    with progress_bar("load") as progress:
        comparison = compare(
            pages,
            schemes=wanted,
            setting=setting,
            buffers_kb=buffers_kb,
            baseline=baseline,
            keep_loads=options.plot is not None,
            progress=progress,
        )
    _draw(comparison, pages, buffers_kb[0], options.plot)
    if options.json:
        print(json.dumps(comparison.to_dict(), allow_nan=False))
        return 0
    _show(comparison, pages, buffers_kb, options.mean)
    _explain(wanted)
    return 0


def _buffers(text: str) -> list[float]:
    buffers: list[float] = []
    problems: list[Problem] = []
    for part in text.split(","):
        try:
            buffers.append(float(part))
        except ValueError:
            message = f"must be numbers with commas between, is {part!r}"
            problems.append(Problem(key="--buffer-kb", message=message))
            continue
        if not 0 <= buffers[-1] <= 1e9:
            message = f"must be 0 to 1e+09, is {part}"
            problems.append(Problem(key="--buffer-kb", message=message))
    if problems:
        raise InputError(problems)
    return list(dict.fromkeys(buffers))


def _show(
    comparison: Comparison, pages: list[Page], buffers_kb: list[float], mean_name: str
) -> None:
    for page in pages:
        kb, n = page.total_bytes / 1000, len(page.resources)
        print(f"{page.name}: {plural(n, 'resource')}, {kb:,.0f} kB\n")
        print(_page_table(comparison, page, buffers_kb))
        print()
    print(f"{mean_name} mean speedups to {comparison.baseline} over {plural(len(pages), 'page')}\n")
    means = {(row.scheme, row.buffer_kb): row for row in comparison.means_by(_MEANS[mean_name])}
    schemes = dict.fromkeys(scheme for scheme, _ in means)
    headers = [f"{which} {kb:g} kB" for kb in buffers_kb for which in ("all", "above the fold")]
    rows = (
        [scheme]
        + [
            ratio(value)
            for kb in buffers_kb
            for value in (means[scheme, kb].mean_all, means[scheme, kb].mean_atf)
        ]
        for scheme in schemes
    )
    print(table(["scheme", *headers], rows))


def _explain(schemes: list[Scheme]) -> None:
    """Say what a reader must know of the schemes before comparing them."""
    notes = [f"{scheme.name}: {scheme.caveat}" for scheme in schemes if scheme.caveat]
    notes += [
        f"{scheme.name}: knows what no browser does ({', '.join(scheme.knows)})"
        for scheme in schemes
        if scheme.knows
    ]
    if notes:
        print("\n" + "\n".join(notes))


def _page_table(comparison: Comparison, page: Page, buffers_kb: list[float]) -> str:
    headers = (
        *("scheme", "buffer kB", "all ms", "above fold ms", "speedup all", "speedup above fold"),
        *("document at ms", "last above fold at ms", "which is"),
    )
    rows = (
        (
            row.scheme,
            f"{row.buffer_kb:g}",
            in_ms(row.byte_index_all_ms),
            in_ms(row.byte_index_atf_ms),
            ratio(row.speedup_all),
            ratio(row.speedup_atf),
            in_ms(row.document_ms),
            in_ms(row.last_atf_ms),
            row.last_atf_id or "-",
        )
        for kb in buffers_kb
        for row in comparison.rows
        if row.page == page.name and row.buffer_kb == kb
    )
    return table(headers, rows)


def _draw(comparison: Comparison, pages: list[Page], buffer_kb: float, path: str | None) -> None:
    if path is None:
        return
    from h3sim.plots import LoadPlots

    for page in pages:
        target = Path(path)
        if len(pages) > 1:
            target = target.with_stem(f"{target.stem}-{page.name}")
        LoadPlots(comparison.loads_of(page.name, buffer_kb=buffer_kb)).save(target)
        print(f"wrote {target}", file=sys.stderr)
