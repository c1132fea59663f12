"""The figures of `make validate-recordings`, by hand, and of orders."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import h3sim
from h3sim.papers.estimates import tau
from validation import recordings
from validation.recordings import computed, error_share, order_alike, spearman


def test_spearman_looks_at_ranks_only_and_shares_them_among_equals() -> None:
    assert spearman([1, 2, 3], [10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
    assert spearman([1, 5, 5, 9], [1, 2, 3, 4]) == pytest.approx((4.5 / 5) ** 0.5)


def test_orders_are_compared_where_both_know_the_resource() -> None:
    measured = {"a": 1.0, "b": 2.0, "c": 3.0, "only here": 0.0}
    assert order_alike(measured, {"a": 7.0, "c": 8.0, "b": 9.0}) == pytest.approx(0.5)


def test_an_error_share_counts_too_long_and_too_short_alike() -> None:
    assert error_share([100, 100], [90, 130]) == pytest.approx(20)


def test_kendalls_tau_leaves_out_ties() -> None:
    assert tau([1, 2, 3], [1, 2, 3]) == 1
    assert tau([1, 2, 3], [3, 2, 1]) == -1
    # Of three pairs one is tied on the left: two agree, of 2 and 3 that are not tied.
    assert tau([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)


def test_loads_that_hold_requests_back_as_chromium_come_within_seven_per_cent_of_it() -> None:
    path = Path(recordings.__file__).with_suffix(".toml")
    measured = tomllib.loads(path.read_text(encoding="utf-8"))["measured_ms"]
    found = [computed(h3sim.load_page(name), 4.0, 100.0).page_load_ms for name in measured]
    assert error_share([*measured.values()], found) < 7
