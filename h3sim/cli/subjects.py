"""What several commands are about: pages, and the schemes that serve them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from h3sim.documents import read_text
from h3sim.errors import InputError
from h3sim.study import resolve_pages, resolve_schemes
from h3sim.study.run import resolve_page

if TYPE_CHECKING:
    import argparse

    from h3sim.cli.parsing import Mistakes
    from h3sim.page import Page
    from h3sim.schemes import Scheme

__all__ = [
    "add_marks",
    "add_pages",
    "add_schemes",
    "check_choice",
    "named_page",
    "named_pages",
    "read_pages",
    "read_schemes",
    "with_choice",
]

_SCHEMES = "marx-2019"


def add_pages(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names pages."""
    parser.add_argument(
        "pages",
        metavar="PAGE",
        nargs="+",
        help="shipped pages, sets of them, files.json, or recordings",
    )
    add_marks(parser)


def add_marks(
    parser: argparse.ArgumentParser, *, usual: str | None = None, shown: str = "as the page says"
) -> None:
    """Add the option that says what is above the fold; *shown* is what happens without it."""
    shown = shown if usual is None else f"{usual}, where the recording does not know"
    parser.add_argument(
        "--above-the-fold",
        metavar="FILE|heuristic|none",
        default=usual,
        help="what is above the fold: the ids or globs in FILE, one a line; or what markup and"
        f" order make likely; or nothing (default: {shown})",
    )


def add_schemes(parser: argparse.ArgumentParser) -> None:
    """Add the option that names schemes; it may stand more than once."""
    parser.add_argument(
        "--scheme",
        metavar="NAMES",
        action="append",
        help=f"schemes, sets of them, or files.toml, with commas between (default: {_SCHEMES})",
    )


def read_pages(options: argparse.Namespace, mistakes: Mistakes) -> list[Page]:
    """Return the pages that are meant, in the order given, after noting every unknown one."""
    groups = [
        mistakes.collect(partial(named_pages, name, options.above_the_fold))
        for name in options.pages
    ]
    return [page for group in groups for page in group or ()]


def named_pages(name: str, above_the_fold: str | None) -> list[Page]:
    """Return the pages of that name, with the marks that are asked for.

    Raises:
        InputError: listing every mistake in a page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return [with_choice(page, above_the_fold) for page in resolve_pages(name)]


def named_page(name: str, above_the_fold: str | None) -> Page:
    """Return the page of that name, no set of them, with the marks that are asked for.

    Raises:
        InputError: listing every mistake in the page, or in the file of marks.
        UnknownNameError: if there is none.
    """
    return with_choice(resolve_page(name), above_the_fold)


def with_choice(page: Page, above_the_fold: str | None) -> Page:
    """Return *page* with the marks that are asked for, its own where none are.

    Raises:
        InputError: listing every mistake in the file of marks.
    """
    if above_the_fold is None:
        return page
    from h3sim.browser import with_marks  # on use: starting should stay quick

    return with_marks(page, above_the_fold)


def check_choice(above_the_fold: str | None) -> None:
    """Refuse a file of marks that cannot be read, before there is a page that it could mark.

    Raises:
        InputError: if it cannot be read.
    """
    from h3sim.browser.first_view import HEURISTIC, NONE  # on use: starting should stay quick

    if above_the_fold not in (None, HEURISTIC, NONE):
        read_text(above_the_fold, InputError)


def read_schemes(options: argparse.Namespace, mistakes: Mistakes) -> list[Scheme]:
    """Return the schemes that are meant, each once, after noting every unknown one."""
    names = [name for given in options.scheme or [_SCHEMES] for name in given.split(",")]
    groups = [mistakes.collect(partial(resolve_schemes, name)) for name in names]
    return list(dict.fromkeys(scheme for group in groups for scheme in group or ()))
