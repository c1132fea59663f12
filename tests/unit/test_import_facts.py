"""Tables of real page loads: they import and load."""

from __future__ import annotations

import h3sim
from validation.data import PAGES
from validation.pages import facts_of, load_under


def test_counts_bytes_and_parents_of_real_pages_survive() -> None:
    for path in PAGES:
        recorded, imported = facts_of(path)
        assert imported == recorded, path.name


def test_real_pages_load_each_under_one_scheme() -> None:
    """`make validate-pages` loads all under all."""
    schemes = h3sim.list_schemes()
    for number, path in enumerate(PAGES[::4]):
        recorded, _ = facts_of(path)
        expected = (len(recorded), sum(n_bytes for _, n_bytes, _ in recorded))
        assert load_under(path, schemes[number % len(schemes)].name) == expected, path.name
