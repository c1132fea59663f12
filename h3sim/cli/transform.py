"""`h3sim transform` and `h3sim annotate`: page files derived from a page."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.browser import with_marks
from h3sim.cli.options import add_marks
from h3sim.cli.parsing import STANDARD_OUTPUT, ErrorList, Parser, RawHelp, check_file, put_file
from h3sim.cli.tables import add_wide, terminal_width
from h3sim.errors import InputError, ValidationIssue
from h3sim.page.model import MarksFrom, ids_that_match, marked
from h3sim.page.transforms import (
    OpenMode,
    merge_pages,
    with_cached,
    with_early_hints,
    with_first_layout,
    with_inlined_styles,
    with_push,
    with_revalidated,
    with_staged_hints,
)
from h3sim.study.run import resolve_page
from h3sim.table import Table
from h3sim.text import escape_control, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.page import Page


_EPILOG = """\
examples:
  h3sim transform shop.json --early-hints stylesheet --early-hints 'fonts/*' -o hinted.json
  h3sim transform shop.json --cached script --cached stylesheet -o second-visit.json
  h3sim transform shop.json --with-page news.json@500,background -o tabs.json
  h3sim transform http2rulez --staged-hints -o staged.json && h3sim compare http2rulez staged.json

WHAT is the id of a resource, a kind (stylesheet, script, font, image, ...) or a glob of ids. Quote
globs to protect them from the shell. Changes are applied in the order given.
"""


def _without(page: Page, ids: list[str]) -> Page:
    for id_ in ids:
        page = page.without(id_)
    return page


def _with_pages(page: Page, pages: list[str]) -> Page:
    for text in pages:
        name, after_ms, opened = _opened(text)
        page = merge_pages(page, resolve_page(name), after_ms=after_ms, opened=opened)
    return page


def _opened(text: str) -> tuple[str, float, OpenMode]:
    """Parse PAGE@MS,HOW into the page, the time when it is opened in ms, and the open mode."""
    name, sign, how = text.rpartition("@")
    if not sign:
        return text, 0.0, OpenMode.BESIDE
    after, comma, where = how.partition(",")
    try:
        return name, float(after), OpenMode(where) if comma else OpenMode.BESIDE
    except ValueError:
        known = ", ".join(each.value for each in OpenMode)
        message = f"must be PAGE@MS, or PAGE@MS,HOW, HOW one of {known}; is {text!r}"
        raise InputError([ValidationIssue(key="--with-page", message=message)]) from None


_OF_SOME: dict[str, tuple[Callable[[Page, list[str]], Page], str]] = {
    "--push": (with_push, "push these with the response to the document's request"),
    "--early-hints": (with_early_hints, "hint at these before the response (103 Early Hints)"),
    "--cached": (with_cached, "serve these from the browser's cache (fresh)"),
    "--revalidated": (with_revalidated, "revalidate these in the browser's cache (304)"),
    "--remove": (_without, "remove these and everything that they request"),
    "--with-page": (
        _with_pages,
        "load another PAGE over the same connection MS later: PAGE@500 side by side,"
        " PAGE@500,background in a background tab, PAGE@500,front in the foreground",
    ),
}
_OF_ALL: dict[str, tuple[Callable[[Page], Page], str]] = {
    "--staged-hints": (with_staged_hints, "hint at all dependencies, in stages (Vroom)"),
    "--inlined-styles": (
        with_inlined_styles,
        "inline the head's styles into the document and load scripts last (Shandian)",
    ),
    "--first-layout": (with_first_layout, "raise the priority of visible images at first layout"),
}


def add_transform(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "transform",
        help=summary,
        description="Write a page with changed delivery of its resources.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("page", metavar="PAGE", help="a shipped page or a page file (.json)")
    for option, (_, about) in _OF_SOME.items():
        parser.add_argument(
            option,
            metavar="WHAT",
            dest="changes",
            action="append",
            type=partial(_given, option),
            help=about,
        )
    for option, (_, about) in _OF_ALL.items():
        parser.add_argument(
            option, dest="changes", action="append_const", const=(option, ""), help=about
        )
    parser.add_argument(
        "--name", help="name of the new page (default: the page's name and a digest)"
    )
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        required=True,
        help="write the page file here; - is standard output",
    )
    parser.set_defaults(command=_edit)


def _given(option: str, what: str) -> tuple[str, str]:
    return option, what


def _edit(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    page: Any = mistakes.collect(partial(catalog.load_page, options.page))
    mistakes.collect(partial(check_file, options.output))
    edited = page
    if page is not None:
        for change in _changes(options.changes or ()):
            edited = mistakes.collect(partial(change, edited)) or edited
        edited = edited.with_resources(edited.resources, name=options.name)
    if mistakes.lines:
        return mistakes.tell("transform")
    put_file(options.output, edited.to_json())
    print(_summary(page, edited), file=sys.stderr)
    return 0


def _changes(given: Iterable[tuple[str, str]]) -> Iterator[Callable[[Page], Page]]:
    """Yield the changes in the order given; repeated options make one change."""
    names: dict[str, list[str]] = {}
    for option, what in given:
        names.setdefault(option, []).append(what)
    for option, whats in names.items():
        if option in _OF_SOME:
            yield partial(_of_some, _OF_SOME[option][0], whats)
        else:
            yield _OF_ALL[option][0]


def _of_some(change: Callable[[Page, list[str]], Page], whats: list[str], page: Page) -> Page:
    return change(page, whats)


def _summary(page: Page, edited: Page) -> str:
    """Describe the change of the page in one line."""
    was, now = (
        f"{plural(len(each.resources), 'resource')}, {each.total_bytes:,} bytes"
        for each in (page, edited)
    )
    return escape_control(f"{edited.name}: {now} ({page.name}: {was})")


_ANNOTATE_EPILOG = """\
examples:
  h3sim annotate shop.json
  h3sim annotate shop.json --set hero.jpg --set 'fonts/*' --clear 'ads/*'
  h3sim annotate shop.json --above-the-fold heuristic --set logo.svg -o marked.json
  h3sim annotate shop.json --above-the-fold none

Without changes the resources are listed. With changes the page file is rewritten, or a new one
written with -o. Quote globs to protect them from the shell.
"""


def add_annotate(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "annotate",
        help=summary,
        description="Show which resources are above the fold, or change the marks.",
        epilog=_ANNOTATE_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("page", metavar="PAGE", help="a page file (.json) or a shipped page")
    parser.add_argument(
        "--set",
        metavar="ID",
        action="append",
        default=[],
        help="mark the resources that match this id or glob (repeatable)",
    )
    parser.add_argument(
        "--clear",
        metavar="ID",
        action="append",
        default=[],
        help="unmark these (takes precedence over --set)",
    )
    add_marks(parser)
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        help="write the page here; - is standard output (default: overwrite PAGE)",
    )
    add_wide(parser)
    parser.set_defaults(command=_mark)


def _mark(options: argparse.Namespace) -> int:
    mistakes = ErrorList()
    page = mistakes.collect(lambda: catalog.load_page(options.page))
    is_changed = bool(options.set or options.clear or options.above_the_fold)
    target = options.output or options.page
    if is_changed or options.output:
        mistakes.collect(lambda: _check_target(options))
    changed = None if page is None else mistakes.collect(lambda: _changed(page, options))
    if changed is None or mistakes.lines:
        return mistakes.tell("annotate")
    if is_changed or options.output:
        put_file(target, changed.to_json())
        if target == STANDARD_OUTPUT:
            return 0
        print(f"wrote {escape_control(str(target))}", file=sys.stderr)
    _show(changed, terminal_width(options))
    return 0


def _check_target(options: argparse.Namespace) -> None:
    if options.output is None and not Path(options.page).is_file():
        message = f"is required: {options.page} is a shipped page and cannot be overwritten"
        raise InputError([ValidationIssue(key="-o", message=message)])
    check_file(options.output or options.page)


def _changed(page: Page, options: argparse.Namespace) -> Page:
    if options.above_the_fold is not None:
        page = with_marks(page, options.above_the_fold)
    if not options.set and not options.clear:
        return page
    given = [("--set", text) for text in options.set] + [("--clear", t) for t in options.clear]
    ids_that_match(page, given)  # every error in both options at once
    unset = ids_that_match(page, [each for each in given if each[0] == "--clear"])
    ids = {resource.id for resource in page.resources if resource.above_the_fold}
    ids |= set(ids_that_match(page, [each for each in given if each[0] == "--set"]))
    return marked(page, ids.difference(unset), MarksFrom.HAND)


def _show(page: Page, width: int | None) -> None:
    seen = [resource for resource in page.resources if resource.above_the_fold]
    n_bytes = sum(resource.size_bytes for resource in seen)
    how = f"by {page.above_the_fold_from.value}" if page.knows_above_the_fold else "unknown"
    print(escape_control(f"{page.name}: {plural(len(page.resources), 'resource')}, {_of(page)}"))
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
    print(Table(("resource", "kind", "bytes", "above fold"), rows).to_text(width, shorten=True))


def _of(page: Page) -> str:
    return f"{page.total_bytes:,} bytes"
