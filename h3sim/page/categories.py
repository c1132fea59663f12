"""Categories of pages: by bytes, by number of resources, and by source."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from h3sim.page.model import Page


SIZES: Mapping[str, float] = {"small": 499_999, "medium": 1_000_000, "large": math.inf}
"""The most bytes of the bodies of a page of each size (Marx 2019 § 5)."""

# Each holds about a third of the shipped pages.
_COUNTS: Mapping[str, float] = {
    "up to 20 resources": 20,
    "21 to 31": 31,
    "32 and more": math.inf,
}
_PACKAGES = ("npm package", "debian package", "pypi package")
"""The beginning of the provenance of pages recorded by `tools.record_corpus`."""
_MADE_UP = "made up"


def size_class(n_bytes: float) -> str:
    """Return the size of a page by the bytes of its bodies.

    >>> size_class(499_999), size_class(1_000_000), size_class(1_000_001)
    ('small', 'medium', 'large')
    """
    return _named(SIZES, n_bytes)


def origin_of(page: Page) -> str:
    """Return where a page comes from, by its provenance: what wrote it down.

    >>> from h3sim.page import synthetic
    >>> origin_of(synthetic(seed=1))
    'made up'
    """
    source = page.provenance.get("source", "")
    if source.startswith(_PACKAGES) or "record" in page.provenance.get("tool", ""):
        return "recorded"
    return "made up" if source.startswith(_MADE_UP) else "written down"


def _named(classes: Mapping[str, float], value: float) -> str:
    return next(name for name, most in classes.items() if value <= most)


PAGE_CLASSES: Mapping[str, tuple[tuple[str, ...], Callable[[Page], str]]] = {
    "size": (tuple(SIZES), lambda page: size_class(page.total_bytes)),
    "resources": (tuple(_COUNTS), lambda page: _named(_COUNTS, len(page.resources))),
    "origin": (("recorded", "written down", "made up"), origin_of),
}
"""By what pages may be told apart: the classes, in order, and what says which a page is in."""


def class_of(page: Page, by: str) -> str:
    """Return the class of *page* by its "size", its number of "resources" or its "origin".

    >>> import h3sim
    >>> page = h3sim.load_page("davies-meenan")
    >>> [class_of(page, by) for by in PAGE_CLASSES]
    ['medium', 'up to 20 resources', 'written down']
    """
    return PAGE_CLASSES[by][1](page)


def classes_of(page: Page) -> dict[str, str]:
    """Return the class of *page* by each of `PAGE_CLASSES`."""
    return {by: class_of(page, by) for by in PAGE_CLASSES}
