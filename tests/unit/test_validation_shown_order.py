"""What a table shows has the order of what it shows: a small part of `validation.shown_order`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from validation.shown_order import ResultTable, distinguished, over

if TYPE_CHECKING:
    from h3sim.load import Which

PAGES = ("davies-meenan", "creative", "agency")


@pytest.mark.parametrize("network", ["marx-2019", "fibre", "cable"])
@pytest.mark.parametrize("which", ["all", "atf"])
def test_schemes_that_differ_by_more_than_a_hundredth_are_shown_in_their_order(
    network: str, which: Which
) -> None:
    found = sum((over(page, network, which) for page in PAGES), ResultTable())
    assert found.pairs >= 15
    assert found.shown_wrong == 0


def test_sampled_values_would_be_shown_in_another_order() -> None:
    found = sum((over(page, "fibre", "atf") for page in PAGES), ResultTable())
    assert found.sampled_wrong > found.pairs / 4


def test_pairs_that_are_shown_equal_or_reversed_are_counted() -> None:
    exact, sampled = [10.0, 10.05, 20.0, 30.0], [100.0, 100.0, 100.0, 100.0]
    assert distinguished(exact, sampled, ["10.0", "10.1", "30.0", "20.0"]) == ResultTable(5, 1, 5)
    assert distinguished(exact, sampled, ["10.0", "10.1", "20.0", "20.0"]) == ResultTable(5, 1, 5)
