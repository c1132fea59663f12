"""`h3sim search` and `h3sim recommend`: the best scheme for pages, and how sure that is."""

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
from h3sim.cli.tables import add_wide, fitted, plural, ratios, table, terminal_width, times
from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import check_output, format_value
from h3sim.study import recommend, resolve_scheme, resolve_schemes, search
from h3sim.study.racing import arms_of
from h3sim.study.recommendation import DEPLOYABLE, read_subject
from h3sim.text import SURE, escape_control

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

All schemes meet the same pages and seeds; the better half goes on, round by round, until what is
best is sure or the seeds are used up. Then the choice is put over other networks, and over what
may have been misjudged. With --param, each scheme is tried with every combination of the values
that it can have: of keys of its file (h3sim show scheme NAME), with dots between tables, or of
send_buffer_kb, send_buffer_refill, retransmission_order and cc, which servers choose.
"""
_NETWORKS = "cable,4g,dsl"
_MOST_WITHIN = 100


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
    add_schemes(parser)
    parser.add_argument(
        "--param",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        help="try these values of a parameter, with commas between; may be given several times",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        default="chrome-eps",
        help="what the gain is told over (default: %(default)s)",
    )
    parser.add_argument(
        "--resources",
        choices=("atf", "all"),
        default="atf",
        help="above the fold, or all resources",
    )
    add_load_options(parser)
    add_buffer_option(parser)
    parser.add_argument(
        "--seeds",
        type=int,
        default=30,
        metavar="N",
        help="at most so many, from --seed on (default: %(default)s)",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="SHARE", help="default: %(default)s"
    )
    parser.add_argument(
        "--robustness-networks",
        metavar="NAMES",
        default=_NETWORKS,
        help="where the choice is tried as well, with commas between (default: %(default)s)",
    )
    add_network_within(parser, usual=1.0)
    parser.add_argument("--json", action="store_true", help="print h3sim-found/1 instead")
    add_wide(parser)
    parser.set_defaults(command=_find)


def add_network_within(parser: argparse.ArgumentParser, *, usual: float) -> None:
    """Add the option that takes the network for a guess."""
    parser.add_argument(
        "--network-uncertainty",
        type=float,
        default=usual,
        metavar="FACTOR",
        help="the network is a guess: draw RTT and rate anew with each seed, up to so many times or"
        " as small a part of what is said (default: %(default)g; 1: as said)",
    )


def _find(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    pages = read_pages(options, mistakes)
    wanted = read_schemes(options, mistakes)
    mistakes.collect(partial(resolve_scheme, options.baseline))
    mistakes.collect(partial(_check, options))
    vary = mistakes.collect(partial(_varied, options.param)) or {}
    mistakes.collect(partial(arms_of, wanted, vary))
    networks = [name for name in options.robustness_networks.split(",") if name]
    for name in networks:
        mistakes.collect(partial(catalog.load_network, name))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    if mistakes.lines or config is None:
        return mistakes.tell("search")
    with progress_bar("load") as progress:
        found = search(
            pages,
            schemes=wanted,
            vary=vary,
            which=options.resources,
            baseline=options.baseline,
            n_seeds=options.seeds,
            confidence=options.confidence,
            networks=networks,
            network_within=options.network_uncertainty,
            config=config,
            progress=progress,
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


def network_within_problems(options: argparse.Namespace) -> list[ValidationIssue]:
    """Return what is wrong with how far the network may be off."""
    if 1 <= options.network_uncertainty <= _MOST_WITHIN:
        return []
    message = f"must be 1 to {_MOST_WITHIN}, is {options.network_uncertainty:g}"
    return [ValidationIssue(key="--network-uncertainty", message=message)]


def _check(options: argparse.Namespace) -> None:
    problems = []
    if options.seeds < 1:
        problems.append(
            ValidationIssue(key="--seeds", message=f"must be 1 or more, is {options.seeds}")
        )
    if not 0 < options.confidence < 1:
        message = f"must be between 0 and 1, is {options.confidence:g}"
        problems.append(ValidationIssue(key="--confidence", message=message))
    problems += network_within_problems(options)
    if problems:
        raise InputError(problems)


def _show(found: SearchResult, width: int | None) -> None:
    print(f"{fitted(escape_control(found.verdict), width)}\n")
    print(f"{fitted(escape_control(found.told()), width)}; {found.n_loads:,} loads\n")
    rows = found.rows
    body = zip(
        [row.scheme for row in rows],
        [row.pairs for row in rows],
        *(ratios(rows.column(name), apart=SURE) for name in ("ratio", "low", "high")),
        [found.standing(row) for row in rows],
        strict=True,
    )
    headers = ("scheme", "pairs", "times the best", "low", "high", "")
    print(table(headers, body, width=width, shorten=True))
    if found.robustness:
        print(f"\nwhat {escape_control(found.best)} loses where something is otherwise:\n")
        lost = ((row.changed, row.best_there, f"{100 * row.loss:.1f}") for row in found.robustness)
        print(table(("changed", "best there", "loss %"), lost, width=width, shorten=True))


_RECOMMEND_EPILOG = """\
examples:
  h3sim recommend shop.har
  h3sim recommend shop.har --report shop.html --plot none
  h3sim recommend shop.har --scheme rr,chrome-eps,my-server.toml --baseline chrome-eps
  h3sim recommend shop.har --network cable --loss 1% --network-uncertainty 1
  h3sim recommend shop.json --above-the-fold seen.txt --json

The page is loaded over the network that its recording tells of. That is an estimate: schemes are
compared over networks of up to twice or half its RTT and rate, until what is best is sure.
"""
_NO_PLOT = "none"


def add_recommend(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "recommend",
        help=summary,
        description="Say which scheme serves a page best, by how much, and how sure that is.",
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
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        default="chrome-eps",
        help="compared with (default: %(default)s)",
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


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds",
        type=int,
        default=20,
        metavar="N",
        help="at most so many, from --seed on (default: %(default)s)",
    )
    add_network_within(parser, usual=2.0)


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
    mistakes.collect(partial(resolve_scheme, options.baseline))
    plot = _plot_path(options)
    mistakes.collect(partial(_check_recommend, options, plot))
    if mistakes.lines or subject is None or config is None:
        return mistakes.tell("recommend")
    page, imported = subject
    with progress_bar("load") as progress:
        advice = recommend(
            page if imported is None else imported,
            schemes=options.scheme.split(","),
            baseline=options.baseline,
            n_seeds=options.seeds,
            network_within=options.network_uncertainty,
            keep_loads=plot is not None or options.report is not None,
            config=config,
            progress=progress,
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
    problems = []
    if options.seeds < 1:
        problems.append(
            ValidationIssue(key="--seeds", message=f"must be 1 or more, is {options.seeds}")
        )
    problems += network_within_problems(options)
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
    for line in _told(advice.page, imported):
        print(fitted(escape_control(line), width))
    for note in advice.comparison.notes.get(advice.page.name, ()):
        print(fitted(escape_control(note), width))
    print(fitted(escape_control(advice.comparison.told()), width))
    print(f"\n{_table(advice, width)}\n")
    print(fitted(escape_control(advice.sentence), width))


def _told(page: Page, imported: ImportedPage | None) -> Iterator[str]:
    """Yield what there is to know of the page, and what of its recording could not be used."""
    if imported is None:
        yield f"{page.name}: {page.title}"
        return
    first, *rest = imported.lines()
    yield first
    wanted = ("warning:", "mended:", "skipped:")
    yield from (line for line in rest if line.startswith(wanted))


def _table(advice: Recommendation, width: int | None) -> str:
    by_scheme = {row.scheme: row for row in advice.comparison.rows}
    headers = (
        *("scheme", "above fold ms", "all ms", "last above fold at ms", "page load ms"),
        *("times the best", "low", "high", ""),
    )
    found = advice.found.rows
    loads = [by_scheme[row.scheme] for row in found]
    rows = zip(
        [row.scheme for row in found],
        times(load.byte_index_atf_ms for load in loads),
        times(load.byte_index_all_ms for load in loads),
        times(load.last_atf_ms for load in loads),
        times(load.page_load_ms for load in loads),
        *(ratios(found.column(name), apart=SURE) for name in ("ratio", "low", "high")),
        [advice.found.standing(row) for row in found],
        strict=True,
    )
    n_pairs = max(row.pairs for row in found)
    note = f"times the best: ratios of ByteIndexes, over {plural(n_pairs, 'pair')} of loads at most"
    return f"{table(headers, rows, width=width, shorten=True)}\n\n{fitted(note, width)}"
