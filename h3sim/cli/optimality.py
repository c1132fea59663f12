"""`h3sim optimality` and `h3sim what-if`: ratios to a lower bound, and critical paths."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import TYPE_CHECKING

from h3sim import catalog
from h3sim.cli.options import (
    add_buffer_option,
    add_load_options,
    add_pages,
    add_schemes,
    read_config,
    read_pages,
    read_schemes,
)
from h3sim.cli.parsing import ErrorList, Parser, RawHelp, check_plot_path, progress_bar
from h3sim.cli.tables import (
    add_wide,
    fitted,
    in_ms,
    plural,
    ratio,
    ratios,
    table,
    terminal_width,
    times,
)
from h3sim.page.categories import PAGE_CLASSES
from h3sim.study import check_names, optimality
from h3sim.study.run import resolve_scheme
from h3sim.study.what_if import WHAT_IFS, what_if
from h3sim.text import escape_control

if TYPE_CHECKING:
    from h3sim.study import CategoryOptimalityRow, Optimality, OptimalityRow, SchemeOptimalityRow
    from h3sim.study.what_if import WhatIf, WhatIfRow


_EPILOG = """\
examples:
  h3sim optimality davies-meenan http2rulez
  h3sim optimality corpus:small --scheme dfifo,chrome-h2,atf-first
  h3sim optimality my-page.json --network cable --transport tcp --by-page
  h3sim optimality corpus --networks cable,4g --group-by size --plot optimality.png

The optimality ratio is a load's ByteIndex divided by a lower bound: 1.00 is optimal, 1.20 at most
20 % above the optimum (the bound itself may be out of reach). Given the page, the bound holds for
every order of responses; given the requests, for every order that keeps the times of requests and,
over links, of packet arrivals.
"""
_FEW_PAGES = 4
"""Largest number of pages whose own tables are shown by default."""


def add_optimality(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "optimality",
        help=summary,
        description="Load pages with several schemes and compare each with a lower bound.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    add_schemes(parser)
    parser.add_argument(
        "--bound",
        choices=("page", "requests"),
        help="lower bound given the page, or given the times of requests (default: page if the"
        " network has a constant rate and the browser replays; else requests)",
    )
    parser.add_argument(
        "--networks",
        metavar="NAMES",
        help="networks to compare, comma-separated, instead of --network",
    )
    parser.add_argument(
        "--group-by",
        choices=tuple(PAGE_CLASSES),
        help="also show the mean of each class of pages, with 95 %% intervals",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="plot the ratios above the fold (.png, .svg, .pdf): one per page, or with --group-by"
        " the means of classes",
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-optimality/1 instead")
    parser.add_argument(
        "--by-page",
        action=argparse.BooleanOptionalAction,
        help=f"also show each page's table (default: for up to {_FEW_PAGES} pages)",
    )
    add_wide(parser)
    parser.set_defaults(command=_show_optimality)


def _show_optimality(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    wanted = read_schemes(options, mistakes)
    mistakes.collect(lambda: check_names(pages=pages, schemes=wanted))
    mistakes.collect(lambda: check_plot_path(options.plot))
    networks = [name for name in (options.networks or "").split(",") if name]
    for name in networks:
        mistakes.collect(partial(catalog.load_network, name))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    if mistakes.lines or config is None:
        return mistakes.tell("optimality")
    with progress_bar("load") as progress:
        held = optimality(
            pages,
            schemes=wanted,
            networks=networks,
            given=options.bound,
            config=config,
            progress=progress,
        )
    if options.json:
        print(json.dumps(held.to_dict(), allow_nan=False))
    else:
        _show(held, options)
    if options.plot is not None:
        held.plot.save(options.plot, by=options.group_by)
        print(f"wrote {escape_control(options.plot)}", file=sys.stderr)
    return 0


def _show(held: Optimality, options: argparse.Namespace) -> None:
    width = terminal_width(options)
    print(fitted(escape_control(held.told()), width))
    pages = [*held.page_digests]
    for network in held.configurations:
        here = [row for row in held.rows if row.network == network]
        over = f" {escape_control(network)}," if len(held.configurations) > 1 else ""
        if options.by_page or (options.by_page is None and len(pages) <= _FEW_PAGES):
            for page in pages:
                told = f"{escape_control(page)},{over} ByteIndexes, given the {here[0].given}"
                print(f"\n{told}:\n")
                print(_page_table([row for row in here if row.page == page], width))
        told = f"over {plural(len(pages), 'page')},{over} given the {here[0].given}"
        print(f"\n{told}:\n")
        print(_scheme_table([row for row in held.schemes if row.network == network], width))
        if options.group_by is not None:
            _show_classes(
                [row for row in held.by_class(options.group_by) if row.network == network], width
            )


def _show_classes(rows: list[CategoryOptimalityRow], width: int | None) -> None:
    """Print one table of means for all resources and one above the fold, a column per class."""
    for which, said in (("all", "for all resources"), ("atf", "above the fold")):
        here = [row for row in rows if row.which == which]
        counts = {row.page_class: row.n_pages for row in here}
        headers = ("scheme", *(f"{name} ({n})" for name, n in counts.items()))
        cells = {(row.scheme, row.page_class): _with_interval(row) for row in here}
        body = (
            (scheme, *(cells.get((scheme, name), "-") for name in counts))
            for scheme in dict.fromkeys(row.scheme for row in here)
        )
        print(f"\nmean {said}, 95 % intervals:\n")
        print(table(headers, body, width=width, shorten=True))


def _with_interval(row: CategoryOptimalityRow) -> str:
    ends = "" if row.low is None else f" ({ratio(row.low)} to {ratio(row.high)})"
    return f"{ratio(row.mean)}{ends}"


def _page_table(rows: list[OptimalityRow], width: int | None) -> str:
    headers = (
        *("scheme", "all ms", "bound", "ratio"),
        *("above fold ms", "bound", "ratio"),
    )
    body = zip(
        [row.scheme for row in rows],
        times(row.byte_index_all_ms for row in rows),
        times(row.bound_all_ms for row in rows),
        ratios(row.optimality_ratio_all for row in rows),
        times(row.byte_index_atf_ms for row in rows),
        times(row.bound_atf_ms for row in rows),
        ratios(row.optimality_ratio_atf for row in rows),
        strict=True,
    )
    return table(headers, body, width=width, shorten=True)


def _scheme_table(rows: list[SchemeOptimalityRow], width: int | None) -> str:
    headers = (
        *("scheme", "all: mean", "median", "worst"),
        *("above the fold: mean", "median", "worst", "worst page"),
    )
    cells = {(row.scheme, row.which): row for row in rows}
    schemes = [*dict.fromkeys(row.scheme for row in rows)]
    columns = (
        ratios(getattr(cells[scheme, which], measure) for scheme in schemes)
        for which in ("all", "atf")
        for measure in ("mean", "median", "worst")
    )
    worst = [cells[scheme, "atf"].worst_page or "-" for scheme in schemes]
    body = zip(schemes, *columns, worst, strict=True)
    return table(headers, body, width=width, shorten=True)


_WHAT_IF_EPILOG = """\
examples:
  h3sim what-if davies-meenan --network cable
  h3sim what-if corpus:small --network cable --cpu-slowdown 4
  h3sim what-if my-page.json --scheme chrome-eps --network 4g --json

The critical path is split by the dependency policies of WProf: F (flow), one activity needs the
other's output; O (output), a fixed order (scripts block the parser, stylesheets block painting);
B (binding), late discovery; R (resources), waiting for the main thread.
"""
_POLICIES = {"F": "flow", "O": "output", "B": "binding", "R": "resource", "start": "start"}


def add_what_if(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "what-if",
        help=summary,
        description="Explain what the load event waits for, with the what-if analysis of WProf.",
        epilog=_WHAT_IF_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    parser.add_argument(
        "--scheme", metavar="NAME", default="rr", help="a scheme or a file.toml (default: rr)"
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-what-if/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_what_if, browser="parse")


def _what_if(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    scheme = mistakes.collect(partial(resolve_scheme, options.scheme))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb)
    if mistakes.lines or config is None or scheme is None:
        return mistakes.tell("what-if")
    with progress_bar("load") as progress:
        found = what_if(pages, scheme=scheme, config=config, progress=progress)
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
    else:
        _show_what_if(found, terminal_width(options))
    return 0


def _show_what_if(found: WhatIf, width: int | None) -> None:
    print(f"{fitted(escape_control(found.told()), width)}\n")
    cells = {(row.page, row.what): row for row in found.rows}
    body = [[page, *(_cell(cells[page, what]) for what in WHAT_IFS)] for page in found.page_digests]
    if len(body) > 1:
        means = (ratio(found.mean_part(what)) for what in WHAT_IFS)
        body.append([f"mean of {plural(len(body), 'page')}", *means])
    headers = ("load event, ms", *WHAT_IFS)
    print(table(headers, body, width=width, shorten=True))
    for by, said in (
        ("policy", "blocking rule"),
        ("kind", "kind of resource"),
        ("part", "activity"),
    ):
        rows = [row for row in found.contributions if row.by == by]
        parts = (f"{_POLICIES.get(row.name, row.name)} {100 * row.mean_part:.0f} %" for row in rows)
        said_of = f"critical path by {said}: {', '.join(parts)}"
        print(f"\n{fitted(said_of, width)}")


def _cell(row: WhatIfRow) -> str:
    return f"{in_ms(row.load_event_ms)} ({ratio(row.part)})"
