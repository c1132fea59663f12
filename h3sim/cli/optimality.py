"""`h3sim optimality` and `h3sim what-if`: ratios to a lower bound, and critical paths."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from h3sim.advice import optimality
from h3sim.advice.optimality import WHAT_IFS, what_if
from h3sim.cli import common, output, shared
from h3sim.cli.command import Argument, Options, call_with, command
from h3sim.page.categories import PAGE_CLASSES
from h3sim.values.table import Column, Table
from h3sim.values.text import escape_control, plural

if TYPE_CHECKING:
    from h3sim.advice import CategoryOptimalityRow, Optimality, OptimalityRow, SchemeOptimalityRow
    from h3sim.advice.optimality import WhatIf, WhatIfRow


_MAX_DETAILED_PAGES = 4
"""Largest number of pages whose own tables are shown by default."""


def _run_optimality(options: Options) -> Any:
    """Return the ratios to the bounds, and draw them if requested."""
    found = call_with(
        optimality,
        options,
        networks=options.networks or (),
        given=options.bound,
        progress=options.progress,
    )
    output.save_plot(found, options, by=options.group_by)
    return found


def _print_classes(rows: list[CategoryOptimalityRow], width: int | None) -> None:
    """Print one table of means for all resources and one above the fold, a column per class."""
    for which, phrase in (("all", "for all resources"), ("atf", "above the fold")):
        own_rows = [row for row in rows if row.which == which]
        counts = {row.page_class: row.n_pages for row in own_rows}
        headers = ("scheme", *(f"{name} ({n})" for name, n in counts.items()))
        cells = {(row.scheme, row.page_class): _mean_with_interval(row) for row in own_rows}
        body = (
            (scheme, *(cells.get((scheme, name), "-") for name in counts))
            for scheme in dict.fromkeys(row.scheme for row in own_rows)
        )
        print(f"\nmean {phrase}, 95 % intervals:\n")
        output.show(width, Table(headers, body))


def _mean_with_interval(row: CategoryOptimalityRow) -> str:
    ends = "" if row.low is None else f" ({output.ratio(row.low)} to {output.ratio(row.high)})"
    return f"{output.ratio(row.mean)}{ends}"


def _page_table(rows: list[OptimalityRow], width: int | None) -> str:
    """Return the table of a page: every scheme against its bound."""
    shown = output.of(
        rows,
        ("scheme", "scheme"),
        (Column.ms("all ms"), "byte_index_all_ms"),
        (Column.ms("bound"), "bound_all_ms"),
        (Column.ratio("ratio"), "optimality_ratio_all"),
        (Column.ms("above fold ms"), "byte_index_atf_ms"),
        (Column.ms("bound"), "bound_atf_ms"),
        (Column.ratio("ratio"), "optimality_ratio_atf"),
    )
    return shown.to_text(width, shorten=True)


def _scheme_table(rows: list[SchemeOptimalityRow], width: int | None) -> str:
    """Return the table over all pages: mean, median and worst ratio."""
    cells = {(row.scheme, row.which): row for row in rows}
    columns = [
        (
            Column.ratio(f"{prefix}{measure}"),
            # Default arguments, as a loop's variables change before the function is called.
            lambda scheme, which=which, measure=measure: getattr(cells[scheme, which], measure),
        )
        for which, first_prefix in (("all", "all: "), ("atf", "above the fold: "))
        for measure, prefix in (("mean", first_prefix), ("median", ""), ("worst", ""))
    ]
    shown = output.of(
        dict.fromkeys(row.scheme for row in rows),
        ("scheme", str),
        *columns,
        ("worst page", lambda scheme: cells[scheme, "atf"].worst_page or "-"),
    )
    return shown.to_text(width, shorten=True)


_POLICY_NAMES = {"F": "flow", "O": "output", "B": "binding", "R": "resource", "start": "start"}


_PATH_TITLES = {
    "policy": "blocking rule",
    "kind": "kind of resource",
    "resource": "resource",
    "part": "activity",
}
_MAX_NAMED_PARTS = 5


def _what_if_cell(row: WhatIfRow) -> str:
    return f"{output.in_ms(row.load_event_ms)} ({output.ratio(row.part)})"


@command(
    "optimality",
    shared.PAGES,
    shared.marks(),
    shared.schemes(),
    shared.Halves(),
    common.PLOT(
        "plot the ratios above the fold (.png, .svg, .pdf): one per page, or with"
        " --group-by the means of classes",
    ),
    *common.figure_options(),
    Argument(
        "--networks NAMES",
        "networks to compare, comma-separated, instead of --network",
        many="commas",
        read=shared.read_network,
    ),
    shared.LoadOptions(),
    Argument(
        "--bound GIVEN",
        "lower bound given the page, or given the times of requests (default: page if the"
        " network has a constant rate and the browser replays; else requests)",
        choices=("page", "requests"),
    ),
    Argument(
        "--group-by CLASS",
        "also show the mean of each class of pages, with 95 % intervals",
        choices=tuple(PAGE_CLASSES),
    ),
    common.JSON("print h3sim-optimality/1 instead"),
    Argument(
        "--by-page",
        f"also show each page's table (default: for up to {_MAX_DETAILED_PAGES} pages)",
        action=argparse.BooleanOptionalAction,
    ),
    common.NO_TRUNCATE,
    of=_run_optimality,
    checks=(shared.check_names,),
)
def _print_optimality(found: Optimality, options: Options) -> None:
    """Load pages with several schemes and compare each with a lower bound.

    Examples:
      h3sim optimality davies-meenan http2rulez
      h3sim optimality corpus:small --scheme dfifo,chrome-h2,atf-first
      h3sim optimality my-page.json --network cable --transport tcp --by-page
      h3sim optimality corpus --networks cable,4g --group-by size --plot optimality.png

    The optimality ratio is a load's ByteIndex divided by a lower bound: 1.00 is optimal, 1.20 at
    most 20 % above the optimum (the bound itself may be out of reach). Given the page, the bound
    holds for every order of responses; given the requests, for every order that keeps the times of
    requests and, over links, of packet arrivals.
    """
    width = options.width
    output.show(width, found.describe())
    pages = [*found.page_digests]
    for network in found.configurations:
        here = [row for row in found.rows if row.network == network]
        over = f" {escape_control(network)}," if len(found.configurations) > 1 else ""
        if options.by_page or (options.by_page is None and len(pages) <= _MAX_DETAILED_PAGES):
            for page in pages:
                heading = f"{escape_control(page)},{over} ByteIndexes, given the {here[0].given}"
                print(f"\n{heading}:\n")
                print(_page_table([row for row in here if row.page == page], width))
        heading = f"ratios to the bound over {plural(len(pages), 'page')},{over}"
        heading += f" given the {here[0].given}"
        print(f"\n{heading}:\n")
        print(_scheme_table([row for row in found.schemes if row.network == network], width))
        if options.group_by is not None:
            _print_classes(
                [row for row in found.by_class(options.group_by) if row.network == network], width
            )


@command(
    "what-if",
    shared.PAGES,
    shared.marks(),
    shared.scheme(),
    shared.Halves(is_single=True),
    shared.LoadOptions(browser="parse"),
    common.JSON("print h3sim-what-if/1 instead"),
    common.NO_TRUNCATE,
    of=what_if,
)
def _print_what_if(found: WhatIf, options: Options) -> None:
    """Explain what the load event waits for, with the what-if analysis of WProf.

    Examples:
      h3sim what-if davies-meenan --network cable
      h3sim what-if corpus:small --network cable --cpu-slowdown 4
      h3sim what-if my-page.json --scheme chrome-eps --network 4g --json

    The critical path is split by the dependency policies of WProf: F (flow), one activity needs the
    other's output; O (output), a fixed order (scripts block the parser, stylesheets block
    painting); B (binding), late discovery; R (resources), waiting for the main thread.
    """
    width = options.width
    cells = {(row.page, row.what): row for row in found.rows}
    body = [
        [page, *(_what_if_cell(cells[page, what]) for what in WHAT_IFS)]
        for page in found.page_digests
    ]
    if len(body) > 1:
        means = (output.ratio(found.mean_part(what)) for what in WHAT_IFS)
        body.append([f"mean of {plural(len(body), 'page')}", *means])
    shown = Table(("load event, ms", *WHAT_IFS), body)
    sums = []
    for by, title in _PATH_TITLES.items():
        rows = [row for row in found.contributions if row.by == by]
        parts = [
            f"{_POLICY_NAMES.get(row.name, row.name)} {100 * row.mean_part:.0f} %" for row in rows
        ]
        if rest := parts[_MAX_NAMED_PARTS:]:
            parts[_MAX_NAMED_PARTS:] = [f"{len(rest)} more"]
        sums += [f"critical path by {title}: {', '.join(parts)}"] if parts else []
    output.show(width, found.describe(), shown, *sums, _explanation(found))


def _explanation(found: WhatIf) -> str:
    """Say what the load event waits for: computation, the network, and the resource most of all."""
    computing, network = map(found.mean_part, ("no computation", "no network"))
    longest = next((row for row in found.contributions if row.by == "resource"), None)
    named = ""
    if longest is not None:
        named = f"; most of its time belongs to {longest.name} ({100 * longest.mean_part:.0f} %)"
    return (
        "In brackets is the ratio to the load event as it is: without computation it would be"
        f" {computing:.2f}, without the network {network:.2f}. The critical path is the chain of"
        f" steps before the load event of which each began when the one before let it{named}."
    )
