"""`h3sim edit`: another page file of a page, whose resources come in other ways."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.cli.outputs import check_file, put_file
from h3sim.cli.parsing import Mistakes, Parser, RawHelp
from h3sim.cli.tables import plural
from h3sim.errors import InputError, Problem
from h3sim.page.beside import Opened, beside
from h3sim.page.first_layout import with_first_layout
from h3sim.page.variants import (
    with_cached,
    with_early_hints,
    with_inlined_styles,
    with_push,
    with_revalidated,
    with_staged_hints,
)
from h3sim.printable import printable
from h3sim.study.run import resolve_page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from h3sim.page import Page

__all__ = ["add_command"]

_EPILOG = """\
examples:
  h3sim edit shop.json --early-hints stylesheet --early-hints 'fonts/*' -o hinted.json
  h3sim edit shop.json --cached script --cached stylesheet -o second-visit.json
  h3sim edit shop.json --with-page news.json@500,background -o tabs.json
  h3sim edit http2rulez --staged-hints -o staged.json && h3sim compare http2rulez staged.json

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
        page = beside(page, resolve_page(name), after_ms=after_ms, opened=opened)
    return page


def _opened(text: str) -> tuple[str, float, Opened]:
    """Return what PAGE@MS,HOW names: the page, when it is opened, and where."""
    name, sign, how = text.rpartition("@")
    if not sign:
        return text, 0.0, Opened.BESIDE
    after, comma, where = how.partition(",")
    try:
        return name, float(after), Opened(where) if comma else Opened.BESIDE
    except ValueError:
        known = ", ".join(each.value for each in Opened)
        message = f"must be PAGE@MS, or PAGE@MS,HOW, HOW one of {known}; is {text!r}"
        raise InputError([Problem(key="--with-page", message=message)]) from None


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


def add_command(commands: argparse._SubParsersAction[Parser], summary: str) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "edit",
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
    mistakes = Mistakes()
    page: Any = mistakes.collect(partial(catalog.load_page, options.page))
    mistakes.collect(partial(check_file, options.output))
    edited = page
    if page is not None:
        for change in _changes(options.changes or ()):
            edited = mistakes.collect(partial(change, edited)) or edited
        edited = edited.with_resources(edited.resources, name=options.name)
    if mistakes.lines:
        return mistakes.tell("edit")
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
    return printable(f"{edited.name}: {now} ({page.name}: {was})")
