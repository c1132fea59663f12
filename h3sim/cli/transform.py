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
from h3sim.cli.tables import add_wide, plural, table, terminal_width
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
from h3sim.text import escape_control

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

WHAT is the id of a resource, a kind (stylesheet, script, font, image, ...) or a pattern of ids.
Quote patterns, lest the shell takes them for files. Changes are made in the order given.
"""


def _without(page: Page, ids: list[str]) -> Page:
    for id_ in ids:
        page = page.without(id_)
    return page


def _beside(page: Page, pages: list[str]) -> Page:
    for text in pages:
        name, after_ms, opened = _opened(text)
        page = merge_pages(page, resolve_page(name), after_ms=after_ms, opened=opened)
    return page


def _opened(text: str) -> tuple[str, float, OpenMode]:
    """Return what PAGE@MS,HOW names: the page, when it is opened, and where."""
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
    "--push": (with_push, "the server pushes these with its answer to the document's request"),
    "--early-hints": (with_early_hints, "it hints at these before its answer (103)"),
    "--cached": (with_cached, "the browser has these in its cache, fresh"),
    "--revalidated": (with_revalidated, "it has these, but must ask whether they changed (304)"),
    "--remove": (_without, "without this one, and what it asks for"),
    "--with-page": (
        _beside,
        "another PAGE over the same connection, so many ms later: PAGE@500 beside it,"
        " PAGE@500,background in a tab in the background, PAGE@500,front in front of it",
    ),
}
_OF_ALL: dict[str, tuple[Callable[[Page], Page], str]] = {
    "--staged-hints": (with_staged_hints, "the server names all that is needed, in stages (Vroom)"),
    "--inlined-styles": (
        with_inlined_styles,
        "the document brings the styles of its head, and scripts come last (Shandian)",
    ),
    "--first-layout": (with_first_layout, "images in sight are known to be so once it is laid out"),
}


def add_transform(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "transform",
        help=summary,
        description="Write a page whose resources reach the browser in other ways.",
        epilog=_EPILOG,
        formatter_class=RawHelp,
    )
    parser.add_argument("page", metavar="PAGE", help="a shipped page, or a file.json")
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
    parser.add_argument("--name", help="what results call it (default: its own, and a digest)")
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        required=True,
        help="write the page file there; - is standard output",
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
    print(_told(page, edited), file=sys.stderr)
    return 0


def _changes(given: Iterable[tuple[str, str]]) -> Iterator[Callable[[Page], Page]]:
    """Yield the changes in the order given; those of one option are one change."""
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


def _told(page: Page, edited: Page) -> str:
    """Return in a line what became of the page."""
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

Without a change the resources are listed. With one the page is written again, whole: into its own
file, or into that of -o. Quote globs, lest the shell takes them for files.
"""


def add_annotate(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "annotate",
        help=summary,
        description="Show what a page marks as above the fold, or mark it.",
        epilog=_ANNOTATE_EPILOG,
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
        message = f"is needed: {options.page} is a shipped page, and stays as it is"
        raise InputError([ValidationIssue(key="-o", message=message)])
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
    print(table(("resource", "kind", "bytes", "above fold"), rows, width=width, shorten=True))


def _of(page: Page) -> str:
    return f"{page.total_bytes:,} bytes"
