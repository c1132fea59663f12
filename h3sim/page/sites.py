"""The sites of pages, and their division into pages to learn from and pages to test with."""

from __future__ import annotations

import random
from collections.abc import Iterable

from h3sim.page.model import Page
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.values import Integer, Number
from h3sim.values.errors import InputError

_IS_PAGE = Predicate("a page", lambda value: isinstance(value, Page))
_PACKAGES = ("npm package", "debian package")


def site_of(page: Page) -> str:
    """Return where a page comes from: its package, else itself.

    Raises:
        InputError: if *page* is not a page.

    >>> import h3sim
    >>> site_of(h3sim.load_page("admin-lte-index")), site_of(h3sim.load_page("http2rulez"))
    ('npm package admin-lte', 'http2rulez')
    """
    check_arguments(InputError, page=(_IS_PAGE, page))
    source = page.provenance.get("source", "")
    return " ".join(source.split()[:3]) if source.startswith(_PACKAGES) else page.name


def split_by_site(
    pages: Iterable[Page], *, test_share: float = 0.5, seed: int = 2026
) -> tuple[list[Page], list[Page]]:
    """Return pages to learn from, and pages of other sites, about *test_share*, to test with.

    The rules of the scheme h3sim-1 come from the first half of the shipped pages by this seed.

    Raises:
        InputError: if *pages* are no pages, or a number is out of its range.

    >>> import h3sim
    >>> train, test = split_by_site(map(h3sim.load_page, ("creative", "admin-lte-index", "agency")))
    >>> [page.name for page in train], [page.name for page in test]
    (['creative'], ['agency', 'admin-lte-index'])
    """
    check_arguments(
        InputError,
        pages=(Predicate("pages", lambda value: isinstance(value, Iterable)), pages),
        test_share=(Number(low=0, high=1), test_share),
        seed=(Integer(low=0), seed),
    )
    sites: dict[str, list[Page]] = {}
    for page in pages:
        sites.setdefault(site_of(page), []).append(page)
    names = sorted(sites)
    random.Random(seed).shuffle(names)  # noqa: S311 - a split, no secret
    n_train = int(len(names) * (1 - test_share))
    train, test = (
        [page for name in some for page in sites[name]]
        for some in (names[:n_train], names[n_train:])
    )
    return train, test
