"""`h3sim import`: a recording of a page load, or a static site, made into a page file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from h3sim.browser.first_view import HEURISTIC
from h3sim.capture import DIALECTS, import_page
from h3sim.cli.outputs import STANDARD_OUTPUT, check_file, check_outputs_differ, put_file
from h3sim.cli.parsing import Mistakes, Parser, RawHelp
from h3sim.cli.subjects import add_marks
from h3sim.cli.tables import add_wide, fitted, terminal_width
from h3sim.errors import InputError, Problem
from h3sim.page import page_to_dict
from h3sim.study.fidelity import IMPORT_REPORT, fidelity

if TYPE_CHECKING:
    import argparse

    from h3sim.capture import ImportedPage

__all__ = ["add_command"]

_INDENT = "  "
_MOST_REPLAYED = 2000
"""Larger pages are imported without being loaded: that would take longer than reading them."""
_EPILOG = """\
examples:
  h3sim import shop.har -o shop.json && h3sim run shop.json
  h3sim import shop.har.gz --host www.shop.example --strict -o shop.json
  h3sim import site/index.html -o site.json
  h3sim import site/pages/about.html --root site -o about.json
  h3sim import devtoolslog.json -o - | less
  h3sim import shop.har --above-the-fold seen.txt -o shop.json

A page file holds facts only: no cookie, no value of a header, no query string. What was found and
what had to be inferred is shown; without -o that is all.
"""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "import",
        help=summary,
        description="Read a HAR, a DevTools log, a WProf graph or a static site, and write a page.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument(
        "file", metavar="FILE", help="a recording, may be gzipped; or the HTML file of a site"
    )
    parser.add_argument(
        "-o", "--output", metavar="PAGE", help="write the page file there; - is standard output"
    )
    parser.add_argument(
        "--dialect", metavar="NAME", help=f"insist that it is one of {', '.join(DIALECTS)}"
    )
    parser.add_argument("--host", metavar="HOST", help="keep one host's requests (default: all)")
    parser.add_argument(
        "--page", type=int, default=1, metavar="N", help="which page load of several (default: 1)"
    )
    parser.add_argument(
        "--root", metavar="DIR", help="where a site's paths begin (default: its document's folder)"
    )
    parser.add_argument(
        "--strict", action="store_true", help="refuse a file of which any part cannot be used"
    )
    add_marks(parser, usual=HEURISTIC)
    parser.add_argument("--json", action="store_true", help="print the report as h3sim-import/1")
    add_wide(parser)
    parser.set_defaults(command=_import)


def _import(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    mistakes.collect(lambda: _check_output(options))
    mistakes.collect(lambda: check_outputs_differ(options, output="-o"))
    imported = mistakes.collect(
        lambda: import_page(
            options.file,
            dialect=options.dialect,
            host=options.host,
            page=options.page,
            root=options.root,
            strict=options.strict,
            above_the_fold=options.above_the_fold,
        )
    )
    if imported is not None and not mistakes.lines and options.output is not None:
        mistakes.collect(lambda: _write(imported, options.output))
    if imported is None or mistakes.lines:
        return mistakes.tell("import")
    _tell(imported, options)
    return 0


def _check_output(options: argparse.Namespace) -> None:
    if options.output == STANDARD_OUTPUT and options.json:
        message = "only one of the page and --json can go to standard output"
        raise InputError([Problem(key="-o", message=message)])
    if options.output is not None:
        check_file(options.output)


def _write(imported: ImportedPage, output: str) -> None:
    text = json.dumps(page_to_dict(imported.page), indent=1, ensure_ascii=False, allow_nan=False)
    put_file(output, f"{text}\n")


def _tell(imported: ImportedPage, options: argparse.Namespace) -> None:
    """Print the report; where the page itself was printed, beside standard output."""
    page = imported.page
    judged = fidelity(page) if len(page.resources) <= _MOST_REPLAYED else None
    if options.json:
        print(json.dumps(IMPORT_REPORT.write(imported, fidelity=judged), allow_nan=False))
        return
    file = sys.stderr if options.output == STANDARD_OUTPUT else sys.stdout
    width = terminal_width(options)
    for line in (*(() if judged is None else judged.lines()), *imported.lines()):
        print(_hanging(line, width), file=file)


def _hanging(line: str, width: int | None) -> str:
    """Return a line folded to *width* cells, all but the first of its lines set in."""
    first, *rest = fitted(line, width).split("\n")
    if width is None or not rest or width <= len(_INDENT):
        return "\n".join([first, *rest])
    words = fitted(" ".join(rest), width - len(_INDENT)).split("\n")
    return "\n".join([first, *(f"{_INDENT}{text}" for text in words)])
