"""Differences as contrasts: what can be 0 has no ratio, and zeros do not vanish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scipy import stats

from h3sim.cli.main import main
from h3sim.load.figures import FIGURES
from h3sim.study import Results
from h3sim.study.statistics.contrasts import DifferenceRow, SchemeRow
from h3sim.study.statistics.intervals import mean_interval
from h3sim.study.statistics.pairs import how_of
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def results_of(values: Mapping[tuple[str, str, int], float], **columns: Any) -> Results:
    """Return results of {(page, scheme, seed): blocked bytes}."""
    rows = [
        {"page": page, "scheme": scheme, "seed": seed, **columns, "hol_stream_bytes": value}
        for (page, scheme, seed), value in values.items()
    ]
    return Results.of(rows, axes=["page", "scheme", "seed"])


def rare(n: int = 10) -> Results:
    """Return a scheme that blocks 12,000 once in *n* and else 0, and one that always 10,000."""
    return results_of(
        {("p", "always", seed): 10_000 for seed in range(n)}
        | {("p", "rarely", seed): 12_000 if seed == 3 else 0 for seed in range(n)}
    )


def test_a_scheme_that_rarely_blocks_is_better_than_one_that_always_does() -> None:
    base, row = rare().compare("always", value="hol_stream_bytes")
    assert (base.difference, base.equal, base.p) == (0, 10, None)
    assert (row.scheme, row.pairs, row.clusters) == ("rarely", 10, 10)
    assert (row.baseline_mean, row.mean, row.difference) == (10_000, 1_200, -8_800)
    assert (row.lower, row.equal, row.higher) == (9, 0, 1)
    differences = [2_000.0 if seed == 3 else -10_000.0 for seed in range(10)]
    assert (row.low, row.high) == mean_interval(differences)
    assert row.p == stats.wilcoxon(differences, zero_method="zsplit").pvalue
    # Of the ranks 1 to 10, only the least is of a higher value.
    assert row.effect == pytest.approx((55 - 2) / 55)


def queued() -> Results:
    """Return six pages and seeds, of which a longer queue removes blocking in 10 of 36 pairs."""
    rows = []
    for page in range(6):
        for seed in range(6):
            number = 6 * page + seed
            short = 0 if number < 10 else 20_000 * (1 + number % 4)
            long = 0 if number < 20 else short / 2
            rows += [
                {"page": f"p{page}", "scheme": "rr", "seed": seed, "queue_bdp": bdp}
                | {"hol_stream_bytes": value}
                for bdp, value in ((1, short), (8, long))
            ]
    return Results.of(rows, axes=["page", "seed", "queue_bdp"])


def test_blocking_that_a_queue_removes_counts() -> None:
    results = queued()
    (row,) = results.compare(1, over="queue_bdp", value="hol_stream_bytes")
    by_bdp = {
        row["queue_bdp"]: row["mean"]
        for row in results.summary("hol_stream_bytes", by=["queue_bdp"])
    }
    assert (row.level, row.cluster, row.pairs, row.clusters) == (8, "page", 36, 6)
    assert row.baseline_mean == pytest.approx(by_bdp[1])
    assert row.mean == pytest.approx(by_bdp[8])
    assert row.difference == pytest.approx(by_bdp[8] - by_bdp[1])
    assert (row.lower, row.equal, row.higher) == (26, 10, 0)
    assert row.low < row.difference < row.high < 0
    # The ratios of the other pairs, 2 each, would hide the ten in which blocking disappears.
    with pytest.raises(InputError, match=r"no ratio in 20 of 36 pairs of '8'.* how='difference'"):
        results.compare(1, over="queue_bdp", value="hol_stream_bytes", how="ratio")


def test_differences_of_more_clusters_have_the_intervals_of_ratios() -> None:
    values = {
        (page, scheme, seed): number * 1000.0 + seed + (50.0 * number if scheme == "x" else 0)
        for number, page in enumerate("abcdef")
        for scheme in ("rr", "x")
        for seed in (0, 1)
    }
    row = results_of(values).compare("rr", value="hol_stream_bytes")[1]
    expected = mean_interval([50.0 * number for number in range(6)])
    assert (row.difference, (row.low, row.high)) == (125, expected)


def with_zeros(n_zeros: int, n: int = 40) -> Results:
    values = {("p", "rr", seed): 10.0 + seed for seed in range(n)}
    values |= {("p", "x", seed): 0 if seed < n_zeros else 5.0 + seed for seed in range(n)}
    rows = [
        {"page": page, "scheme": scheme, "seed": seed, "ms": value}
        for (page, scheme, seed), value in values.items()
    ]
    return Results.of(rows, axes=["scheme", "seed"])


def test_ratios_state_how_many_pairs_they_leave_out_and_are_refused_if_these_are_many() -> None:
    base, row = with_zeros(2).compare("rr", value="ms")
    assert (row.pairs, row.without_ratio, base.without_ratio) == (38, 2, 0)
    (contrast,) = with_zeros(2).compare("rr", over="scheme", value="ms")
    assert (contrast.pairs, contrast.without_ratio) == (38, 2)
    many = with_zeros(3)
    for refused in (
        lambda: many.compare("rr", value="ms"),
        lambda: many.compare("rr", over="scheme", value="ms"),
        lambda: many.power(value="ms"),
        lambda: many.plot.forest("ms"),
    ):
        with pytest.raises(InputError, match="how: ms has no ratio in 3 of 40 pairs of 'x'"):
            refused()
    assert many.compare("rr", value="ms", how="difference")[1].pairs == 40


def test_a_baseline_of_zeros_is_refused_too() -> None:
    with pytest.raises(InputError, match="no ratio in 3 of 40 pairs of 'rr'"):
        with_zeros(3).compare("x", value="ms")
    with pytest.raises(InputError, match="no ratio in 40 of 40 pairs of 'x'"):
        with_zeros(40).compare("rr", value="ms")


def test_values_below_zero_have_no_ratio() -> None:
    rows = [
        {"page": "p", "scheme": scheme, "seed": seed, "slope": sign * (1.0 + seed)}
        for scheme, sign in (("rr", 1), ("x", -1))
        for seed in range(5)
    ]
    results = Results.of(rows, axes=["scheme", "seed"])
    with pytest.raises(InputError, match="no ratio in 5 of 5 pairs"):
        results.compare("rr", value="slope")
    assert results.compare("rr", value="slope", how="difference")[1].difference == -6


def test_what_can_be_zero_is_compared_by_differences_unless_requested_otherwise() -> None:
    counted = ("hol_stream_bytes", "hol_connection_delay_ms", "packets_lost", "priority_frames")
    assert {how_of(name, None) for name in (*counted, "packets_retransmitted")} == {"difference"}
    assert how_of("packets_lost", "ratio") == "ratio"
    assert {how_of(name, None) for name in ("page_load_ms", "packets_sent", "ms")} == {"ratio"}
    assert all(not figure.can_be_zero for figure in FIGURES if figure.is_headline)
    values = {("p", scheme, seed): 5 + seed for scheme in ("rr", "x") for seed in range(3)}
    results = results_of(values)
    assert isinstance(results.compare(value="hol_stream_bytes")[0], DifferenceRow)
    assert isinstance(results.compare(value="hol_stream_bytes", how="ratio")[0], SchemeRow)
    with pytest.raises(InputError, match=r"how: 'quotient' .*ratio, difference"):
        results.compare(value="hol_stream_bytes", how="quotient")  # type: ignore[arg-type]


def test_seeds_that_change_nothing_are_one_load_in_differences_too() -> None:
    values = {("p", "rr", seed): 5_000 for seed in range(9)}
    row = results_of(values | {("p", "x", seed): 0 for seed in range(9)}).compare(
        "rr", value="hol_stream_bytes"
    )[1]
    assert (row.pairs, row.clusters, row.difference, row.low, row.p) == (9, 1, -5_000, None, None)


def test_a_count_that_is_the_same_with_every_seed_by_chance_is_a_sample() -> None:
    """The loads differ, so the seeds are no copies, although none of them blocks anything."""
    rows = [
        {**row, "page_load_ms": 100.0 + row["seed"]}
        for row in results_of(
            {("p", name, seed): n for name, n in (("rr", 5_000), ("x", 0)) for seed in range(9)}
        )
    ]
    row = Results.of(rows, axes=["scheme", "seed"]).compare("rr", value="hol_stream_bytes")[1]
    assert (row.clusters, row.difference, row.low, row.high) == (9, -5_000, -5_000, -5_000)
    assert row.p == pytest.approx(2 / 2**9)


def test_medians_of_what_can_be_zero_change_by_differences() -> None:
    base, row = rare().relative_medians("always", value="hol_stream_bytes")
    assert (base.delta, row.delta) == (0, -10_000)
    reversed_row = rare().relative_medians("rarely", value="hol_stream_bytes")[0]
    # The median of "rarely" is 0, to which nothing is relative.
    assert (reversed_row.scheme, reversed_row.delta) == ("always", 10_000)
    with pytest.raises(InputError, match="the median hol_stream_bytes of rarely is 0"):
        rare().relative_medians("rarely", value="hol_stream_bytes", how="ratio")


def test_figures_show_differences_where_there_are_no_ratios() -> None:
    plot = rare().plot
    forest: Any = plot.forest("hol_stream_bytes", baseline="always")
    row = rare().compare("always", value="hol_stream_bytes")[1]
    drawn = [[float(x) for x in line.get_xdata()] for line in forest.get_lines()]
    assert [row.low, row.high] in drawn
    assert [row.difference] in drawn
    assert [0, 0] in drawn
    assert "difference to always" in " ".join(forest.get_xlabel().split())
    cdf = plot.cdf("hol_stream_bytes", relative_to="always")
    assert "%" not in cdf.get_xlabel()
    for name in ("scatter", "buffers"):
        results = Results.of([{**row, "page_bytes": 9, "send_buffer_kb": 0} for row in rare()])
        with pytest.raises(InputError, match="no ratio in 9 of 10 pairs"):
            getattr(results.plot, name)("hol_stream_bytes", baseline="always")


STUDY = """
format = "h3sim-study/1"
pages = ["davies-meenan", "creative", "http2rulez"]
schemes = ["rr", "fifo"]
[settings]
network = "4g"
[until]
width = 0.5
value = "packets_lost"
most_seeds = 3
"""


def test_sequential_studies_of_what_is_zero_are_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace('network = "4g"', 'network = "4g"\nqueue_bdp = 50')
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    assert main(["sweep", str(tmp_path / "study.toml"), "-j", "1"]) == 2
    assert "packets_lost has no ratio" in capsys.readouterr().err
