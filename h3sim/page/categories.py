"""Categories of pages: by bytes, by number of resources, and by source."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from h3sim.page.model import Page


SIZES: Mapping[str, float] = {"small": 499_999, "medium": 1_000_000, "large": math.inf}
"""The largest total body size, in bytes, of each size class (Marx 2019 § 5)."""

_MAX_RESOURCES_BY_CLASS: Mapping[str, float] = {
    "up to 20 resources": 20,
    "21 to 31": 31,
    "32 and more": math.inf,
}
"""The largest number of resources of each class, which has about a third of the shipped pages."""
_RECORDED_PACKAGE_PREFIXES = ("npm package", "debian package", "pypi package")
"""Prefixes of the source of pages recorded by `tools.record_corpus`, in their provenance."""
_SYNTHETIC_PREFIX = "made up"


def size_class(n_bytes: float) -> str:
    """Return the size class of a page by its total body size.

    >>> size_class(499_999), size_class(1_000_000), size_class(1_000_001)
    ('small', 'medium', 'large')
    """
    return _class_up_to(SIZES, n_bytes)


def origin_of(page: Page) -> str:
    """Return the origin of a page by its provenance.

    >>> from h3sim.page import synthetic
    >>> origin_of(synthetic(seed=1))
    'made up'
    """
    source = page.provenance.get("source", "")
    if source.startswith(_RECORDED_PACKAGE_PREFIXES) or "record" in page.provenance.get("tool", ""):
        return "recorded"
    return "made up" if source.startswith(_SYNTHETIC_PREFIX) else "written down"


def _class_up_to(classes: Mapping[str, float], value: float) -> str:
    """Return the first class whose largest value is not below *value*."""
    return next(name for name, largest in classes.items() if value <= largest)


PAGE_CLASSES: Mapping[str, tuple[tuple[str, ...], Callable[[Page], str]]] = {
    "size": (tuple(SIZES), lambda page: size_class(page.total_bytes)),
    "resources": (
        tuple(_MAX_RESOURCES_BY_CLASS),
        lambda page: _class_up_to(_MAX_RESOURCES_BY_CLASS, len(page.resources)),
    ),
    "origin": (("recorded", "written down", "made up"), origin_of),
}
"""Classifications of pages: the ordered classes, and the function that assigns one."""


def class_of(page: Page, by: str) -> str:
    """Return the class of *page* by "size", number of "resources" or "origin".

    >>> import h3sim
    >>> page = h3sim.load_page("davies-meenan")
    >>> [class_of(page, by) for by in PAGE_CLASSES]
    ['medium', 'up to 20 resources', 'written down']
    """
    _, classify = PAGE_CLASSES[by]
    return classify(page)


def classes_of(page: Page) -> dict[str, str]:
    """Return the class of *page* in each classification of `PAGE_CLASSES`."""
    return {by: class_of(page, by) for by in PAGE_CLASSES}
