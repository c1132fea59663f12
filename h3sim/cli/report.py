"""`h3sim report`: loads, a comparison, a study or a log as a single HTML file."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.cli.options import (
    add_buffer_option,
    add_load_options,
    add_marks,
    named_pages,
    read_config,
)
from h3sim.cli.parsing import ErrorList, Parser, RawHelp, progress_bar
from h3sim.errors import InputError
from h3sim.schema import check_output, open_input
from h3sim.study import (
    check_names,
    is_saved_load,
    read_load,
    read_results,
    resolve_schemes,
    run_config,
)
from h3sim.text import escape_control

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from h3sim.config import LoadConfig
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study import SavedLoad


_EPILOG = """\
examples:
  h3sim report davies-meenan --scheme dfifo -o report.html
  h3sim report http2rulez davies-meenan --scheme rr,fifo,bucket-html -o report.html
  h3sim report my-page.json --scheme chrome-h2,chrome-eps --network cable --loss 1% -o report.html
  h3sim run davies-meenan --json > load.json && h3sim report load.json -o report.html
  h3sim report study.db --baseline fifo -o report.html
  h3sim report client.qlog -o report.html

The report is self-contained: findings in words, figures with their data in tables, and all
settings.
"""
_LOGS = (".qlog", ".sqlog", ".qlog.gz", ".sqlog.gz")
_SQLITE = b"SQLite format 3\0"
_RESULTS = b'{"format": "h3sim-results/'
_OWN = ("what", "out", "title", "baseline")
"""Options that do not describe a load."""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        help=summary,
        description="Write a report of loads, a study or a log, with findings, figures and tables.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="+",
        help="pages or page sets to load; or saved results: loads (h3sim run --json), the store or"
        " saved results of a study, qlogs",
    )
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="FILE.html")
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        action="append",
        help="schemes, scheme sets or scheme files (.toml), comma-separated (default: rr)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="reference scheme (default: rr if present, else the first)",
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the report")
    add_marks(parser)
    add_load_options(parser)
    add_buffer_option(parser)
    parser.set_defaults(usual=vars(parser.parse_args(["WHAT", "-o", "FILE"])))
    parser.set_defaults(command=_report)


def _report(options: argparse.Namespace) -> int:
    from h3sim.reporting.document import check_suffix  # lazy, like the next: imports matplotlib

    mistakes = ErrorList()
    mistakes.collect(lambda: check_suffix(options.out, key="--out"))
    mistakes.collect(lambda: check_output(options.out, key="--out"))
    kept = [(name, read) for name in options.what if (read := _reader_of(name)) is not None]
    names = [name for name in options.what if _reader_of(name) is None]
    cells = _cells(names, options, mistakes) if names else _no_cells(options, mistakes)
    found = [mistakes.collect(partial(read, name)) for name, read in kept]
    if mistakes.lines:
        return mistakes.tell("report")
    with progress_bar("load") as progress:
        loads = []
        for number, (page, scheme, config) in enumerate(cells, start=1):
            loads.append(run_config(page, scheme, config, record_packets=True))
            if progress is not None:
                progress(number, len(cells))
    _write([*loads, *found], options)
    return 0


def _write(found: list[Any], options: argparse.Namespace) -> None:
    from h3sim.reporting import report

    made = report(
        found,
        baseline=options.baseline,
        title=options.title,
        command=f"h3sim {shlex.join(options.arguments)}",
    )
    made.save(options.out)
    for sentence in made.verdict:
        print(escape_control(sentence))
    print(f"wrote {escape_control(str(options.out))}", file=sys.stderr)


def _reader_of(name: str) -> Callable[[str], Any] | None:
    """Return the reader for a file of saved results, or None for a page to load."""
    if name.lower().endswith(_LOGS):
        from h3sim.results.qlog_metrics import measure

        return measure
    if is_saved_load(name):
        return _again
    try:
        with open_input(name, InputError) as file:
            head = file.read(max(len(_SQLITE), len(_RESULTS)))
    except InputError:  # the name of a shipped page, or an error reported later
        return None
    return read_results if head.startswith((_SQLITE, _RESULTS)) else None


def _again(name: str) -> Any:
    saved: SavedLoad = read_load(name)
    return saved.run(record_packets=True)


def _cells(
    names: list[str], options: argparse.Namespace, mistakes: ErrorList
) -> list[tuple[Page, Scheme, LoadConfig]]:
    """Return the loads to run, page by page; none after errors."""
    pages = [
        page
        for name in names
        for page in mistakes.collect(partial(named_pages, name, options.above_the_fold)) or ()
    ]
    given = [name for text in options.scheme or ["rr"] for name in text.split(",")]
    schemes = list(
        dict.fromkeys(
            scheme
            for name in given
            for scheme in mistakes.collect(partial(resolve_schemes, name)) or ()
        )
    )
    mistakes.collect(lambda: check_names(pages=pages, schemes=schemes))
    config = read_config(options, mistakes, send_buffer_kb=options.send_buffer_kb, pages=pages)
    if mistakes.lines or config is None:
        return []
    return [(page, scheme, config) for page in pages for scheme in schemes]


def _no_cells(
    options: argparse.Namespace, mistakes: ErrorList
) -> list[tuple[Page, Scheme, LoadConfig]]:
    """Refuse options of a load if nothing is loaded: saved results have their own settings."""
    mistakes.lines += [
        f"--{key.replace('_', '-')}: is valid only with a page to load"
        for key, value in vars(options).items()
        if key in options.usual and key not in _OWN and value != options.usual[key]
    ]
    return []
