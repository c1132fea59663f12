"""`h3sim search` and `h3sim recommend`: the best scheme for pages, with its uncertainty."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.browser.above_the_fold import HEURISTIC
from h3sim.cli.options import (
    add_buffer_option,
    add_load_options,
    add_marks,
    add_pages,
    add_schemes,
    read_config,
    read_pages,
    read_schemes,
)
from h3sim.cli.parsing import ErrorList, Parser, RawHelp, check_plot_path, progress_bar
from h3sim.cli.tables import add_wide, fitted, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import check_output, format_value
from h3sim.study import recommend, resolve_scheme, resolve_schemes, search
from h3sim.study.racing import arms_of
from h3sim.study.recommendation import EXAMPLE, read_subject
from h3sim.study.search import DEPLOYABLE, ESTIMATED_WITHIN, ROBUSTNESS_NETWORKS
from h3sim.table import SURE, Column, Table
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from h3sim.importers import ImportedPage
    from h3sim.page import Page
    from h3sim.study import Recommendation, SearchResult


_EPILOG = """\
examples:
  h3sim search http2rulez --network cable --loss 1%
  h3sim search corpus:small --scheme chrome-h2,firefox-eps,h3sim-1 --resources all
  h3sim search http2rulez --scheme rr,wrr --param turn_packets=1,4,16
  h3sim search my-page.json --scheme marx-2019,h3sim-1 --baseline chrome-h2 --seeds 100

All schemes meet the same pages and seeds; the better half goes on, round by round, until the best
is certain or the seeds are used up. Then the choice is tried on other networks, and with RTT, loss
and sizes that were misjudged. Schemes that use what no client knows are marked so.
With --param, each scheme is tried with every combination of the values
that it can have: of keys of its file (h3sim show scheme NAME), with dots between tables, or of
send_buffer_kb, send_buffer_refill, retransmission_order and cc, which servers choose.
"""
_MOST_WITHIN = 100
_N_SEEDS = 30


def add_search(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "search",
        help=summary,
        description="Find the scheme with the least ByteIndex, and say how sure that is.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    add_pages(parser)
    add_schemes(parser, usual=",".join(DEPLOYABLE))
    parser.add_argument(
        "--param",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        help="try these values of a parameter, with commas between; may be given several times",
    )
    _add_search_options(parser)
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument("--json", action="store_true", help="print h3sim-found/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_find)


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a search, which both commands have, with the same defaults."""
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        default="chrome-eps",
        help="scheme that the gain is relative to (default: %(default)s)",
    )
    parser.add_argument(
        "--resources",
        choices=("atf", "all"),
        help="compare above the fold or all resources (default: atf, if any is marked)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=_N_SEEDS,
        metavar="N",
        help="at most this many seeds, from --seed on (default: %(default)s)",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="SHARE", help="default: %(default)s"
    )
    parser.add_argument(
        "--robustness-networks",
        metavar="NAMES",
        default=",".join(ROBUSTNESS_NETWORKS),
        help="other networks on which the choice is tried, with commas between (default:"
        " %(default)s)",
    )
    parser.add_argument(
        "--network-uncertainty",
        type=float,
        metavar="FACTOR",
        help="with each seed, multiply RTT and rate by factors between 1/FACTOR and FACTOR"
        f" (default: {ESTIMATED_WITHIN:g} for a network estimated from a recording, else 1)",
    )


def _search_arguments(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "which": options.resources,
        "baseline": options.baseline,
        "n_seeds": options.seeds,
        "confidence": options.confidence,
        "networks": _networks(options),
        "network_within": options.network_uncertainty,
    }


def _networks(options: argparse.Namespace) -> list[str]:
    return [name for name in options.robustness_networks.split(",") if name]


def _check_search(options: argparse.Namespace, mistakes: ErrorList) -> None:
    mistakes.collect(partial(resolve_scheme, options.baseline))
    mistakes.collect(partial(_check, options))
    for name in _networks(options):
        mistakes.collect(partial(catalog.load_network, name))


def _find(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    wanted = read_schemes(options, mistakes, usual=",".join(DEPLOYABLE))
    _check_search(options, mistakes)
    vary = mistakes.collect(partial(_varied, options.param)) or {}
    mistakes.collect(partial(arms_of, wanted, vary))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    if mistakes.lines or config is None:
        return mistakes.tell("search")
    with progress_bar("load") as progress:
        found = search(
            pages,
            schemes=wanted,
            vary=vary,
            config=config,
            progress=progress,
            **_search_arguments(options),
        )
    if options.json:
        print(json.dumps(found.to_dict(), allow_nan=False))
        return 0
    _show(found, terminal_width(options))
    return 0


def _varied(given: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values that are tried, by key.

    >>> _varied(["turn_packets=1,4", "classes.all.incremental=true"])
    {'turn_packets': [1, 4], 'classes.all.incremental': [True]}
    """
    wrong = [text for text in given if not all(text.partition("=")[::2])]
    if wrong:
        message = f"must be like turn_packets=1,4, is {format_value(wrong[0])}"
        raise InputError([ValidationIssue(key="--param", message=message)])
    pairs = (text.partition("=")[::2] for text in given)
    return {key: [_value(text) for text in values.split(",")] for key, values in pairs}


def _value(text: str) -> Any:
    """Return what *text* stands for in a scheme's file: a number, true, false, or itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _check(options: argparse.Namespace) -> None:
    problems = []
    if options.seeds < 1:
        problems.append(
            ValidationIssue(key="--seeds", message=f"must be 1 or more, is {options.seeds}")
        )
    if not 0 < options.confidence < 1:
        message = f"must be between 0 and 1, is {options.confidence:g}"
        problems.append(ValidationIssue(key="--confidence", message=message))
    within = options.network_uncertainty
    if within is not None and not 1 <= within <= _MOST_WITHIN:
        message = f"must be 1 to {_MOST_WITHIN}, is {within:g}"
        problems.append(ValidationIssue(key="--network-uncertainty", message=message))
    if problems:
        raise InputError(problems)


def _show(found: SearchResult, width: int | None) -> None:
    print(f"{fitted(escape_control(found.verdict), width)}\n")
    print(f"{fitted(escape_control(found.describe()), width)}; {found.n_loads:,} loads\n")
    rows = found.rows
    cells = ((*row[:5], found.status(row)) for row in rows)
    ends = (Column.ratio(name, apart=SURE) for name in ("ratio to the best", "low", "high"))
    print(Table(("scheme", "pairs", *ends, ""), cells).to_text(width, shorten=True))
    if found.robustness:
        best = escape_control(found.best)
        print(f"\nsensitivity of {best}: distance from the best under other conditions\n")
        lost = (
            (row.changed, row.best_there, *map(_percent, (row.loss, row.low, row.high)))
            for row in found.robustness
        )
        columns = ("changed", "best there", "loss %", "low", "high")
        print(Table(columns, lost).to_text(width, shorten=True))


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


_RECOMMEND_EPILOG = """\
examples:
  h3sim recommend shop.har
  h3sim recommend shop.har --report shop.html --plot none
  h3sim recommend shop.har --scheme rr,chrome-eps,my-server.toml --baseline chrome-eps
  h3sim recommend shop.har --network cable --loss 1% --network-uncertainty 1
  h3sim recommend shop.json --above-the-fold seen.txt --json

It imports the recording, reports how well its replay fits, and searches as `h3sim search` does,
with the same defaults. The network of a recording is an estimate: schemes are compared over
networks of up to twice or half its RTT and rate.
"""
_NO_PLOT = "none"


def add_recommend(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "recommend",
        help=summary,
        description="Find the best scheme for a page, by how much, and with which uncertainty.",
        epilog=_RECOMMEND_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "page",
        metavar="FILE",
        help="a HAR or another recording, a site, a page file; a shipped page",
    )
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        default=",".join(DEPLOYABLE),
        help="schemes, sets of them, or files.toml, with commas between (default: %(default)s)",
    )
    parser.add_argument("--host", metavar="HOST", help="of the recording keep one host's requests")
    parser.add_argument(
        "--page",
        type=int,
        default=1,
        metavar="N",
        dest="number",
        help="which page load of several that are in the recording (default: 1)",
    )
    add_marks(parser, usual=HEURISTIC)
    _add_search_options(parser)
    _add_output_options(parser)
    add_load_options(parser)
    add_buffer_option(parser)
    parser.set_defaults(command=_advise)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="where the picture goes: FILE.png, .svg or .pdf; none draws none (default: the name of"
        " the recording with -advice.png)",
    )
    parser.add_argument("--report", metavar="FILE", help="write a report, too: FILE.html")
    parser.add_argument("--json", action="store_true", help="print h3sim-advice/2 instead")
    add_wide(parser)


def _advise(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    subject = mistakes.collect(
        partial(
            read_subject,
            options.page,
            host=options.host,
            page=options.number,
            above_the_fold=options.above_the_fold,
        )
    )
    pages = [] if subject is None else [subject[0]]
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    for name in options.scheme.split(","):
        mistakes.collect(partial(resolve_schemes, name))
    _check_search(options, mistakes)
    plot = _plot_path(options)
    mistakes.collect(partial(_check_recommend, options, plot))
    if mistakes.lines or subject is None or config is None:
        return mistakes.tell("recommend")
    page, imported = subject
    with progress_bar("load") as progress:
        advice = recommend(
            page if imported is None else imported,
            schemes=options.scheme.split(","),
            keep_loads=plot is not None or options.report is not None,
            config=config,
            progress=progress,
            **_search_arguments(options),
        )
    _write(advice, plot, options)
    if options.json:
        print(json.dumps(advice.to_dict(), allow_nan=False))
        return 0
    _show_recommend(advice, imported, terminal_width(options))
    return 0


def _plot_path(options: argparse.Namespace) -> str | None:
    if options.plot == _NO_PLOT:
        return None
    stem = Path(options.page).name.partition(".har")[0].removesuffix(".json")
    return options.plot or f"{stem or 'page'}-advice.png"


def _check_recommend(options: argparse.Namespace, plot: str | None) -> None:
    problems: list[ValidationIssue] = []
    for check in (partial(check_plot_path, plot), partial(_check_report, options.report)):
        try:
            check()
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)


def _check_report(path: str | None) -> None:
    if path is not None:
        from h3sim.reporting.document import check_suffix  # on use: it draws

        check_suffix(path, key="--report")
        check_output(path, key="--report")


def _write(advice: Recommendation, plot: str | None, options: argparse.Namespace) -> None:
    """Write picture and report, each of the loads of the table."""
    loads = advice.comparison.loads
    if plot is not None:
        from h3sim.reporting import LoadPlots  # on use, as the report: matplotlib

        LoadPlots(loads).save(plot)
        print(f"wrote {escape_control(plot)}", file=sys.stderr)
    if options.report is not None:
        from h3sim.reporting import report

        command = f"h3sim {shlex.join(options.arguments)}"
        report(advice, command=command).save(options.report)
        print(f"wrote {escape_control(options.report)}", file=sys.stderr)


def _show_recommend(
    advice: Recommendation, imported: ImportedPage | None, width: int | None
) -> None:
    for line in () if advice.fidelity is None else advice.fidelity.lines():
        print(fitted(escape_control(line), width))
    for line in _page_lines(advice.page, imported):
        print(fitted(escape_control(line), width))
    for note in advice.comparison.notes.get(advice.page.name, ()):
        print(fitted(escape_control(note), width))
    print()
    _show(advice.found, width)
    print(f"\n{_example_table(advice, width)}")


def _page_lines(page: Page, imported: ImportedPage | None) -> Iterator[str]:
    """Yield what there is to know of the page, and what of its recording could not be used."""
    if imported is None:
        yield f"{page.name}: {page.title}"
        return
    first, *rest = imported.lines()
    yield first
    wanted = ("warning:", "mended:", "skipped:")
    yield from (line for line in rest if line.startswith(wanted))


def _example_table(advice: Recommendation, width: int | None) -> str:
    """Return an example load of each scheme, in the order of the search."""
    by_scheme = {row.scheme: row for row in advice.comparison.rows}
    loads = [by_scheme[row.scheme] for row in advice.found.rows]
    table = Table.select(
        loads,
        ("scheme", "scheme"),
        (Column.ms("above fold ms"), "byte_index_atf_ms"),
        (Column.ms("all ms"), "byte_index_all_ms"),
        (Column.ms("last above fold at ms"), "last_atf_ms"),
        (Column.ms("page load ms"), "page_load_ms"),
    )
    note = f"{EXAMPLE}: {advice.comparison.describe()}"
    return f"{fitted(escape_control(note), width)}\n\n{table.to_text(width)}"
