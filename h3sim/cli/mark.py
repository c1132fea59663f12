"""`h3sim mark`: what of a page is above the fold, shown and set by hand."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from h3sim import catalog
from h3sim.browser import with_marks
from h3sim.cli.outputs import STANDARD_OUTPUT, check_file, put_file
from h3sim.cli.parsing import Mistakes, Parser, RawHelp
from h3sim.cli.subjects import add_marks
from h3sim.cli.tables import add_wide, plural, table, terminal_width
from h3sim.errors import InputError, Problem
from h3sim.page.marks import MarksFrom, ids_that_match, marked
from h3sim.printable import printable

if TYPE_CHECKING:
    import argparse

    from h3sim.page import Page

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim mark shop.json
  h3sim mark shop.json --set hero.jpg --set 'fonts/*' --clear 'ads/*'
  h3sim mark shop.json --above-the-fold heuristic --set logo.svg -o marked.json
  h3sim mark shop.json --above-the-fold none

Without a change the resources are listed. With one the page is written again, whole: into its own
file, or into that of -o. Quote globs, lest the shell takes them for files.
"""


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "mark",
        help=summary,
        description="Show what a page marks as above the fold, or mark it.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("page", metavar="PAGE", help="a page file.json, or a shipped page")
    parser.add_argument(
        "--set",
        metavar="ID",
        action="append",
        default=[],
        help="mark the resources of this id, or glob; may stand more than once",
    )
    parser.add_argument(
        "--clear",
        metavar="ID",
        action="append",
        default=[],
        help="take the mark from these; what is in both is not marked",
    )
    add_marks(parser)
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        help="write the page there; - is standard output (default: where it stands)",
    )
    add_wide(parser)
    parser.set_defaults(command=_mark)


def _mark(options: argparse.Namespace) -> int:
    mistakes = Mistakes()
    page = mistakes.collect(lambda: catalog.load_page(options.page))
    is_changed = bool(options.set or options.clear or options.above_the_fold)
    target = options.output or options.page
    if is_changed or options.output:
        mistakes.collect(lambda: _check_target(options))
    changed = None if page is None else mistakes.collect(lambda: _changed(page, options))
    if changed is None or mistakes.lines:
        return mistakes.tell("mark")
    if is_changed or options.output:
        put_file(target, changed.to_json())
        if target == STANDARD_OUTPUT:
            return 0
        print(f"wrote {printable(str(target))}", file=sys.stderr)
    _show(changed, terminal_width(options))
    return 0


def _check_target(options: argparse.Namespace) -> None:
    if options.output is None and not Path(options.page).is_file():
        message = f"is needed: {options.page} is a shipped page, and stays as it is"
        raise InputError([Problem(key="-o", message=message)])
    check_file(options.output or options.page)


def _changed(page: Page, options: argparse.Namespace) -> Page:
    if options.above_the_fold is not None:
        page = with_marks(page, options.above_the_fold)
    if not options.set and not options.clear:
        return page
    given = [("--set", text) for text in options.set] + [("--clear", t) for t in options.clear]
    ids_that_match(page, given)  # every mistake of both options at once
    unset = ids_that_match(page, [each for each in given if each[0] == "--clear"])
    ids = {resource.id for resource in page.resources if resource.above_the_fold}
    ids |= set(ids_that_match(page, [each for each in given if each[0] == "--set"]))
    return marked(page, ids.difference(unset), MarksFrom.HAND)


def _show(page: Page, width: int | None) -> None:
    seen = [resource for resource in page.resources if resource.above_the_fold]
    n_bytes = sum(resource.size_bytes for resource in seen)
    how = f"by {page.above_the_fold_from.value}" if page.knows_above_the_fold else "unknown"
    print(printable(f"{page.name}: {plural(len(page.resources), 'resource')}, {_of(page)}"))
    print(f"above the fold: {len(seen):,} of them, {n_bytes:,} bytes ({how})\n")
    rows = (
        (
            resource.id,
            resource.kind.value,
            f"{resource.size_bytes:,}",
            "yes" if resource.above_the_fold else "",
        )
        for resource in page.resources
    )
    print(table(("resource", "kind", "bytes", "above fold"), rows, width=width, shorten=True))


def _of(page: Page) -> str:
    return f"{page.total_bytes:,} bytes"
