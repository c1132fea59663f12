"""How many seeds and pages are enough: closed forms, published numbers and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from h3sim.study import Results
from h3sim.study.statistics.power import power_of_test
from h3sim.values.errors import InputError, NothingToMeasureError


def load_study(logs: Any) -> Any:
    """Return results where x is faster than rr by exp(logs[page][seed])."""
    rows = [
        {"page": str(page), "scheme": scheme, "seed": seed, "ms": ms}
        for page, seeds in enumerate(logs)
        for seed, log in enumerate(seeds)
        for scheme, ms in (("rr", 100.0), ("x", 100.0 * math.exp(-log)))
    ]
    return Results.of(rows, axes=("page", "scheme", "seed"))


def power_of(logs: Any, **arguments: Any) -> Any:
    (row,) = load_study(logs).power(value="ms", **arguments)
    return row


def test_variances_are_those_of_the_analysis_of_variance() -> None:
    # Page means 0, 2, 4: variance 4. Within each page +-1: variance 2, half of it in each mean.
    row = power_of([[-1, 1], [1, 3], [3, 5]])
    assert (row.pages, row.seeds) == (3, 2)
    assert row.sd_seeds == pytest.approx(math.sqrt(2))
    assert row.sd_pages == pytest.approx(math.sqrt(4 - 1))


def test_the_power_is_that_of_the_t_test_with_its_efficiency() -> None:
    # Student's t needs 34 pairs for d = 0.5 at 5 % and 80 % (Cohen 1988); 34 x pi / 3 = 35.6.
    def by_hand(like: Any) -> Any:
        critical = stats.t.ppf(0.975, like - 1)
        return stats.nct.sf(critical, like - 1, 0.5 * math.sqrt(like))

    assert by_hand(33) < 0.8 <= by_hand(34)
    assert power_of_test(36, 0.5, 0.05) == pytest.approx(by_hand(36 * 3 / math.pi), abs=1e-5)
    assert power_of_test(34, 0.5, 0.05) < 0.8 <= power_of_test(36, 0.5, 0.05)


def test_the_power_is_about_that_of_simulated_studies() -> None:
    rng = np.random.default_rng(12)
    drawn = rng.normal(0.6, 1, (1500, 25))
    seen = np.mean(stats.wilcoxon(drawn, axis=1, method="asymptotic").pvalue < 0.05)
    # 1,500 studies: a standard error of 1 %.
    assert power_of_test(25, 0.6, 0.05) == pytest.approx(seen, abs=0.03)


def test_the_numbers_that_are_needed_are_the_least_that_are_enough() -> None:
    logs = np.random.default_rng(1).normal(0, 0.1, (8, 1)) + np.random.default_rng(2).normal(
        0, 0.2, (8, 4)
    )
    asked = {"speedup": 1.15, "level": 0.05, "power": 0.8}
    row = power_of(logs.tolist(), **asked)

    def reached(pages: Any, seeds: Any) -> Any:
        variance = row.sd_pages**2 + row.sd_seeds**2 / seeds
        return power_of_test(pages, math.log(1.15) / math.sqrt(variance), 0.05)

    assert reached(row.pages_needed, 4) >= 0.8 > reached(row.pages_needed - 1, 4)
    assert row.power == pytest.approx(reached(8, 4))
    strong = power_of(logs.tolist(), speedup=1.3)
    assert strong.seeds_needed < 4 or strong.power < 0.8


def test_where_pages_differ_too_much_no_number_of_seeds_is_enough() -> None:
    row = power_of([[-1, -0.9], [1, 1.1], [0, 0.1], [0.5, 0.4], [-0.5, -0.4], [0.2, 0.1]])
    assert row.seeds_needed is None
    assert row.pages_needed > 6


def test_few_pages_cannot_reach_a_level_however_large_the_difference() -> None:
    # Wilcoxon's p of five that agree is 2 / 2^5, more than 5 %.
    row = power_of([[0.01, 0.02]] * 5, speedup=9)
    assert (row.power, row.seeds_needed, row.pages_needed) == (0, None, 6)


def test_of_one_page_seeds_are_counted_and_where_nothing_is_random_pages_are() -> None:
    row = power_of([[0.0, 0.1, -0.1, 0.05]], speedup=1.1)
    assert row.sd_pages is None
    assert row.pages_needed is None
    assert power_of_test(row.seeds_needed, math.log(1.1) / row.sd_seeds, 0.05) >= 0.8
    row = power_of([[0.1], [0.2], [0.3]])
    assert (row.sd_seeds, row.seeds_needed) == (None, None)
    assert row.sd_pages == pytest.approx(0.1)


def test_what_cannot_be_requested_is_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        power_of([[0.1, 0.2]], speedup=1, level=5, power=0)
    assert [problem.key for problem in caught.value.problems] == ["speedup", "level", "power"]
    with pytest.raises(NothingToMeasureError, match="no scheme has two pairs"):
        power_of([[0.1]])
