"""`h3sim advise`: from a HAR to the scheme that serves its page best, in one command."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim.browser.first_view import HEURISTIC
from h3sim.cli.find import add_network_within, network_within_problems
from h3sim.cli.options import add_buffer_option, add_load_options, read_config
from h3sim.cli.outputs import check_plot_path
from h3sim.cli.parsing import Mistakes, Parser, RawHelp, progress_bar
from h3sim.cli.subjects import add_marks
from h3sim.cli.tables import add_wide, fitted, plural, ratios, table, terminal_width, times
from h3sim.documents import check_output
from h3sim.errors import InputError, Problem
from h3sim.fitting import SURE
from h3sim.printable import printable
from h3sim.study import advise, resolve_scheme, resolve_schemes
from h3sim.study.advise import DEPLOYABLE, read_subject

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from h3sim.capture import ImportedPage
    from h3sim.page import Page
    from h3sim.study import Advice

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim advise shop.har
  h3sim advise shop.har --report shop.html --plot none
  h3sim advise shop.har --scheme rr,chrome-eps,my-server.toml --baseline chrome-eps
  h3sim advise shop.har --network cable --loss 1% --network-uncertainty 1
  h3sim advise shop.json --above-the-fold seen.txt --json

The page is loaded over the network that its recording tells of. That is an estimate: schemes are
compared over networks of up to twice or half its RTT and rate, until what is best is sure.
"""
_NO_PLOT = "none"


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "advise",
        help=summary,
        description="Say which scheme serves a page best, by how much, and how sure that is.",
        epilog=_EPILOG,
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
    mistakes = Mistakes()
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
    mistakes.collect(partial(_check, options, plot))
    if mistakes.lines or subject is None or config is None:
        return mistakes.tell("advise")
    page, imported = subject
    with progress_bar("load") as progress:
        advice = advise(
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
    _show(advice, imported, terminal_width(options))
    return 0


def _plot_path(options: argparse.Namespace) -> str | None:
    if options.plot == _NO_PLOT:
        return None
    stem = Path(options.page).name.partition(".har")[0].removesuffix(".json")
    return options.plot or f"{stem or 'page'}-advice.png"


def _check(options: argparse.Namespace, plot: str | None) -> None:
    problems = []
    if options.seeds < 1:
        problems.append(Problem(key="--seeds", message=f"must be 1 or more, is {options.seeds}"))
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


def _write(advice: Advice, plot: str | None, options: argparse.Namespace) -> None:
    """Write picture and report, each of the loads of the table."""
    loads = advice.comparison.loads
    if plot is not None:
        from h3sim.plots import LoadPlots  # on use, as the report: matplotlib

        LoadPlots(loads).save(plot)
        print(f"wrote {printable(plot)}", file=sys.stderr)
    if options.report is not None:
        from h3sim.reporting import report

        command = f"h3sim {shlex.join(options.arguments)}"
        report(advice, command=command).save(options.report)
        print(f"wrote {printable(options.report)}", file=sys.stderr)


def _show(advice: Advice, imported: ImportedPage | None, width: int | None) -> None:
    for line in () if advice.fidelity is None else advice.fidelity.lines():
        print(fitted(printable(line), width))
    for line in _told(advice.page, imported):
        print(fitted(printable(line), width))
    for note in advice.comparison.notes.get(advice.page.name, ()):
        print(fitted(printable(note), width))
    print(fitted(printable(advice.comparison.told()), width))
    print(f"\n{_table(advice, width)}\n")
    print(fitted(printable(advice.sentence), width))


def _told(page: Page, imported: ImportedPage | None) -> Iterator[str]:
    """Yield what there is to know of the page, and what of its recording could not be used."""
    if imported is None:
        yield f"{page.name}: {page.title}"
        return
    first, *rest = imported.lines()
    yield first
    wanted = ("warning:", "mended:", "skipped:")
    yield from (line for line in rest if line.startswith(wanted))


def _table(advice: Advice, width: int | None) -> str:
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
