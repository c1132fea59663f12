"""What is said of schemes: hand-worked numbers, and what scipy says."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from scipy import stats

from h3sim.study import Results
from h3sim.study.statistics.contrasts import holm, rank_biserial
from h3sim.study.statistics.intervals import mean_interval
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.effort import some
from validation.intervals import coverage

AXES = ("page", "scheme", "seed")


def results_of(values: Any, axes: Any = AXES) -> Any:
    """Return results of {(page, scheme, seed): value}."""
    rows = [
        {"page": page, "scheme": scheme, "seed": seed, "ms": value}
        for (page, scheme, seed), value in values.items()
    ]
    return Results.of(rows, axes=axes)


# Three pages, two seeds: the scheme takes 1/2, 1/2; 1/1, 1/1; 2/1, 2/1 of the time of rr.
FAST = results_of(
    {
        (page, scheme, seed): 100.0 * (factor if scheme == "x" else 1) * (1 + seed)
        for page, factor in (("a", 0.5), ("b", 1.0), ("c", 2.0))
        for scheme in ("rr", "x")
        for seed in (0, 1)
    }
)


def test_speedups_wins_and_means_are_those_worked_out_by_hand() -> None:
    base, row = FAST.compare("rr", value="ms")
    assert (base.scheme, base.geometric, base.arithmetic, base.ties_5) == ("rr", 1, 1, 6)
    assert (base.p, base.p_corrected) == (None, None)
    assert row.p_corrected == row.p
    assert (row.scheme, row.pairs, row.clusters) == ("x", 6, 3)
    assert row.arithmetic == pytest.approx((2 + 1 + 0.5) / 3)
    assert row.geometric == pytest.approx(1)  # 2 x 1 x 1/2
    assert (row.wins_5, row.ties_5, row.losses_5) == (2, 2, 2)
    assert (row.wins_25, row.losses_25) == (2, 2)
    assert row.effect == 0
    assert row.low <= row.geometric <= row.high


def test_pairs_meet_the_same_seed() -> None:
    # Each pair halves; were they not paired, the seeds' spread would hide it.
    values = {
        ("p", scheme, seed): ms * 10**seed
        for scheme, ms in (("rr", 100.0), ("x", 50.0))
        for seed in range(6)
    }
    row = results_of(values).compare("rr", value="ms")[1]
    # One page: each seed is a cluster. All six agree: p = 2 / 2^6.
    assert (row.clusters, row.geometric, row.low, row.high) == (6, 2, 2, 2)
    assert row.p == pytest.approx(2 / 64)
    assert row.effect == 1


def test_copies_of_one_load_are_no_sample() -> None:
    values = {
        ("p", scheme, seed): ms for scheme, ms in (("rr", 100.0), ("x", 50.0)) for seed in range(9)
    }
    row = results_of(values).compare("rr", value="ms")[1]
    assert (row.pairs, row.wins_5, row.clusters, row.geometric) == (9, 9, 1, 2)
    assert (row.low, row.high, row.p, row.p_corrected) == (None, None, None, None)
    # A single seed that differs shows that loads are random.
    values["p", "x", 8] = 49.0
    row = results_of(values).compare("rr", value="ms")[1]
    assert (row.clusters, row.p) == (9, pytest.approx(2 / 2**9))


def test_pages_are_clusters_so_that_more_seeds_are_not_more_pages() -> None:
    def study(n_seeds: int) -> Any:
        factors = {"a": 0.8, "b": 0.9, "c": 1.1, "d": 0.7, "e": 0.95, "f": 0.6}
        return results_of(
            {
                (page, scheme, seed): 100.0 * (factor if scheme == "x" else 1)
                for page, factor in factors.items()
                for scheme in ("rr", "x")
                for seed in range(n_seeds)
            }
        ).compare("rr", value="ms")[1]

    few, many = study(1), study(50)
    assert few.p == many.p
    # The bootstrap counts ties, and means of equal numbers differ in their last bit.
    assert (few.low, few.high) == pytest.approx((many.low, many.high), rel=0.01)
    logs = [-math.log(f) for f in (0.8, 0.9, 1.1, 0.7, 0.95, 0.6)]
    assert few.p == pytest.approx(stats.wilcoxon(logs, zero_method="zsplit").pvalue)
    # Of the ranks 1 to 6 by size, only that of "c" (the second) stands against it.
    assert few.effect == pytest.approx((21 - 2 * 2) / 21)


def test_the_same_seed_gives_the_same_interval() -> None:
    first, second = (FAST.compare("rr", value="ms", seed=3)[1] for _ in range(2))
    assert first == second


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


def test_ties_share_their_ranks() -> None:
    assert rank_biserial([2.0, -2.0, 1.0]) == pytest.approx((2.5 - 2.5 + 1) / 6)


def test_medians_are_relative_as_sander_has_them() -> None:
    values = {
        ("p", scheme, seed): base + seed
        for scheme, base in (("rr", 100.0), ("x", 150.0))
        for seed in range(5)
    }
    base, row = results_of(values).relative_medians("rr", value="ms")
    assert (base.delta, base.n) == (0, 5)
    assert (row.median, row.baseline_median) == (152, 102)
    assert row.delta == pytest.approx(50 / 102)
    expected = stats.mannwhitneyu([150 + n for n in range(5)], [100 + n for n in range(5)])
    assert row.p == expected.pvalue


def test_correlations_are_those_of_scipy() -> None:
    rows = [{"x": float(n), "y": float((n * 7) % 11)} for n in range(11)]
    found = Results.of(rows).correlation("x", "y")
    xs, ys = zip(*((row["x"], row["y"]) for row in rows), strict=True)
    assert found.rho == pytest.approx(stats.spearmanr(xs, ys).statistic)
    assert found.tau == pytest.approx(stats.kendalltau(xs, ys).statistic)
    reach = 1.959964 * math.sqrt(0.437 / 7)
    middle = math.atanh(found.tau)
    assert found.tau_low == pytest.approx(math.tanh(middle - reach), rel=1e-6)
    assert found.tau_high == pytest.approx(math.tanh(middle + reach), rel=1e-6)
    with pytest.raises(NothingToMeasureError, match="fewer than three"):
        Results.of(rows[:2]).correlation("x", "y")


def test_rows_of_one_page_are_no_independent_evidence_of_a_correlation() -> None:
    noise = random.Random(1)
    pages = [(noise.gauss(0, 1), noise.gauss(0, 1)) for _ in range(10)]
    rows = [
        {"page": f"p{number}", "seed": seed, "x": x + noise.gauss(0, 0.1), "y": y}
        for number, (x, y) in enumerate(pages)
        for seed in range(20)
    ]
    found = Results.of(rows).correlation("x", "y")
    assert (found.n, found.clusters) == (200, 10)
    few = Results.of([row for row in rows if row["seed"] == 0]).correlation("x", "y")
    assert found.p_tau == pytest.approx(few.p_tau, abs=0.2)
    assert found.tau_high - found.tau_low > 0.5 * (few.tau_high - few.tau_low)
    # What 200 independent rows would have.
    xs, ys = zip(*((row["x"], row["y"]) for row in rows), strict=True)
    assert stats.kendalltau(xs, ys).pvalue < found.p_tau / 5


def test_what_cannot_be_compared_is_reported() -> None:
    with pytest.raises(InputError, match="baseline: no load has scheme 'fifo'"):
        FAST.compare("fifo", value="ms")
    with pytest.raises(InputError, match="value: there is no column 'sec'; there are "):
        FAST.compare("rr", value="sec")
    with pytest.raises(InputError, match="confidence: "):
        FAST.compare("rr", value="ms", confidence=95)
    with pytest.raises(NothingToMeasureError, match="no load has ms"):
        results_of({("p", "rr", 0): None}).compare("rr", value="ms")


def test_what_never_varies_goes_with_nothing() -> None:
    results = Results.of([{"x": 5, "y": float(n), "name": f"n{n}"} for n in range(11)])
    with pytest.raises(NothingToMeasureError, match="x is 5 in all rows"):
        results.correlation("x", "y")
    with pytest.raises(InputError, match="name: is not a numeric column"):
        results.correlation("y", "name")


# Intervals

KEPT = [
    *((spread, n) for spread in ("normal", "uniform") for n in (5, 10, 20, 100)),
    *(("exponential", n) for n in (10, 15, 20, 40, 100)),
    ("gamma (1/2)", 40),
    ("log-normal (1)", 100),
]
"""Where `docs/studies.md` says that intervals keep their level."""


@pytest.mark.parametrize(("spread", "pages"), some([("exponential", 15)], KEPT))
def test_intervals_cover_the_truth_as_often_as_they_state(spread: str, pages: int) -> None:
    assert 0.93 <= coverage(spread, pages) <= 0.97


def test_an_interval_reaches_farther_on_the_long_side() -> None:
    values = [0.0, 0.1, 0.1, 0.2, 0.3, 1.5]
    mean = sum(values) / len(values)
    low, high = mean_interval(values)
    assert low is not None
    assert high is not None
    assert high - mean > 2 * (mean - low)
    mirrored = mean_interval([-value for value in values])
    assert mirrored[0] == pytest.approx(-high, rel=0.05)


def test_an_interval_of_four_is_that_of_student() -> None:
    values = [0.1, 0.4, 0.2, 0.9]
    expected = stats.t.interval(0.9, 3, 0.4, stats.sem(values))
    assert mean_interval(values, 0.9) == pytest.approx(expected)
    assert mean_interval(values[:2]) == (None, None)
    assert mean_interval([0.3] * 4) == (0.3, 0.3)


def test_an_interval_is_finite_where_nearly_all_are_equal() -> None:
    # A third of all resamples have no spread, and so no finite t.
    low, high = mean_interval([0.0] * 14 + [1.0])
    assert low is not None
    assert high is not None
    assert math.isfinite(high - low)
    # 0/0 in resamples that consist of the mean alone is no surprise either.
    assert all(map(math.isfinite, mean_interval([1.0, 2.0, 2.0, 2.0, 3.0])))  # type: ignore[arg-type]


def test_a_studentized_interval_of_many_normal_values_is_that_of_student() -> None:
    values = [float(value) for value in stats.norm.ppf([(n + 0.5) / 200 for n in range(200)])]
    expected = stats.t.interval(0.95, 199, 0, stats.sem(values))
    assert mean_interval(values) == pytest.approx(expected, abs=0.01)


def test_loads_of_the_baseline_that_no_axis_distinguishes_are_refused() -> None:
    # Over two networks of one name, say: each pair would meet the baseline of the second.
    one, two = (results_of({("p", "rr", 0): 100.0 * n, ("p", "x", 0): 50.0 * n}) for n in (1, 2))
    for alone in (one, two, one.join(one)):
        assert {row.geometric for row in alone.compare("rr", value="ms")} == {1, 2}
    both = Results.of([*one, *two], axes=AXES)
    with pytest.raises(
        InputError, match="axes: several different loads have scheme 'rr', page 'p', seed 0"
    ):
        both.compare("rr", value="ms")
