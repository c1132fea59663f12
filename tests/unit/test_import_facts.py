"""Tables of real page loads, where they stand beside the checkout: they import and load."""

from __future__ import annotations

import pytest

import h3sim
from validation.pages import TABLES, facts_of, load_under

beside_the_checkout = pytest.mark.skipif(
    not TABLES, reason="the tables of real page loads are not in ../shared/data/pages"
)


@beside_the_checkout
def test_counts_bytes_and_parents_of_real_pages_survive() -> None:
    for path in TABLES:
        recorded, imported = facts_of(path)
        assert imported == recorded, path.name


@beside_the_checkout
def test_real_pages_load_each_under_one_scheme() -> None:
    """`make validate-pages` loads all under all."""
    schemes = h3sim.list_schemes()
    for number, path in enumerate(TABLES[::4]):
        recorded, _ = facts_of(path)
        wanted = (len(recorded), sum(n_bytes for _, n_bytes, _ in recorded))
        assert load_under(path, schemes[number % len(schemes)].name) == wanted, path.name
