"""Marks of what is above the fold: who set them, and pages with others."""

from __future__ import annotations

import enum
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from h3sim.documents import read_text, shown
from h3sim.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from h3sim.page.model import Page

__all__ = ["MarksFrom", "ids_like", "ids_that_match", "marked", "read_marks"]

_COMMENT = "#"


class MarksFrom(enum.Enum):
    """Who says what is above the fold."""

    PAGE = "page"
    """Whoever wrote the page, or a browser that recorded it and knows where things lie."""
    HEURISTIC = "heuristic"
    """Inferred from markup and order (`h3sim.browser.infer_above_the_fold`)."""
    CRITICAL_PATH = "critical-path"
    """The critical path of a WProfX graph."""
    HAND = "hand"
    """Somebody, by hand (`h3sim mark`)."""

    @property
    def is_inferred(self) -> bool:
        """Whether nobody saw it, so that figures that rest on it must say so."""
        return self in (MarksFrom.HEURISTIC, MarksFrom.CRITICAL_PATH)


def marked(page: Page, ids: Collection[str], how: MarksFrom) -> Page:
    """Return *page* with exactly the resources called *ids* marked as above the fold.

    >>> from h3sim.page import Kind, Page, Resource
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> marked(page, {"/"}, MarksFrom.HAND).resources[0].above_the_fold
    True
    """
    resources = tuple(
        resource
        if resource.above_the_fold == (resource.id in ids)
        else replace(resource, above_the_fold=resource.id in ids)
        for resource in page.resources
    )
    return replace(page, resources=resources, above_the_fold_from=how)


def ids_like(page: Page, pattern: str) -> list[str]:
    """Return the ids that *pattern* names: an id as it stands, else a glob (`*.css`)."""
    # An id may hold a bracket or a star itself, so the id goes before the glob.
    if pattern in page.index:
        return [pattern]
    return [id_ for id_ in page.index if fnmatchcase(id_, pattern)]


def ids_that_match(page: Page, patterns: Iterable[tuple[str, str]]) -> dict[str, None]:
    """Return the ids that any of *patterns* names: an id as it stands, else a glob (`*.css`).

    Each pattern comes with where it was given.

    Raises:
        InputError: listing every pattern that names nothing.
    """
    found: dict[str, None] = {}
    problems = []
    for where, pattern in patterns:
        hits = ids_like(page, pattern)
        if not hits:
            message = f"{shown(pattern)} matches no resource of {page.name}"
            problems.append(Problem(key=where, message=message))
        found |= dict.fromkeys(hits)
    if problems:
        raise InputError(problems)
    return found


def read_marks(path: str | Path, page: Page) -> Page:
    """Return *page* marked as the file at *path* says: an id or a glob a line, # for comments.

    Raises:
        InputError: if it cannot be read, or listing every line that names no resource.
    """
    lines = enumerate(read_text(path, InputError).splitlines(), start=1)
    given = [(f"line {number}", line.strip()) for number, line in lines]
    patterns = [(where, text) for where, text in given if text and not text.startswith(_COMMENT)]
    try:
        ids = ids_that_match(page, patterns)
    except InputError as error:
        raise InputError(error.problems, str(path)) from error
    return marked(page, ids, MarksFrom.HAND)
