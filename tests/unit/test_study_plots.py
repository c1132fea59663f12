"""Figures of studies show the numbers of their tables."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure
from scipy import stats

import h3sim
from h3sim.reporting.output import root_figure
from h3sim.study import Results
from h3sim.study.statistics.ranks import Ranks
from h3sim.values.errors import InputError, NothingToMeasureError
from tools.picture_check import errors_in


def study() -> Any:
    """Return two schemes on three pages, two RTTs and five seeds; x halves, but on page c."""
    rows = [
        {
            "page": page,
            "scheme": scheme,
            "rtt_ms": rtt_ms,
            "network": "4g",
            "seed": seed,
            "ms": (100.0 + rtt_ms + seed) * (factor if scheme == "x" else 1),
        }
        for page, factor in (("a", 0.5), ("b", 0.5), ("c", 1.0))
        for rtt_ms in (0, 50)
        for scheme in ("rr", "x")
        for seed in range(8)
    ]
    return Results.of(rows, axes=("page", "rtt_ms", "scheme", "seed"))


def test_a_cdf_steps_at_the_changes_of_the_medians_and_is_thick_where_they_are_significant() -> (
    None
):
    results = study()
    ax = results.plot.cdf("ms", relative_to="rr", pool=["rtt_ms"])
    steps = [drawn for drawn in ax.get_lines() if len(drawn.get_xdata()) == 3]
    changes = sorted(100 * row.delta for row in results.relative_medians("rr", value="ms"))[:6]
    ends = [float(drawn.get_xdata()[-1]) for drawn in steps]
    assert ends == pytest.approx([change for change in changes if change < -1] + [0, 0])
    assert [float(drawn.get_ydata()[-1]) for drawn in steps] == pytest.approx(
        [n / 6 for n in range(1, 7)]
    )
    widths = [drawn.get_linewidth() for drawn in steps]
    assert widths[:4] == [max(widths)] * 4
    assert widths[4:] == [min(widths)] * 2


def test_a_forest_has_the_speedup_of_each_scheme_and_its_interval() -> None:
    results = study()
    ax = results.plot.forest("ms", baseline="rr", pool=["rtt_ms"])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["rr", "x"]
    (row,) = [
        row for row in results.compare("rr", value="ms", pool=["rtt_ms"]) if row.scheme == "x"
    ]
    drawn = [[float(x) for x in drawn.get_xdata()] for drawn in ax.get_lines()]
    assert [row.low, row.high] in drawn
    assert [row.geometric] in drawn


def test_lines_go_through_the_means() -> None:
    results = study()
    ax = results.plot.lines("rtt_ms", "ms", baseline=None)
    means = {
        (row["scheme"], row["rtt_ms"]): row["mean"]
        for row in results.summary("ms", by=["scheme", "rtt_ms"])
    }
    for drawn in ax.get_lines():
        for x, y in zip(drawn.get_xdata(), drawn.get_ydata(), strict=True):
            assert means[drawn.get_label(), x] == pytest.approx(y)


def test_bands_of_lines_are_intervals_of_the_mean_over_pages() -> None:
    ax = study().filter(scheme="x").plot.lines("rtt_ms", "ms", baseline=None)
    pages = [51.75, 51.75, 103.5]
    low, high = stats.t.interval(0.95, 2, loc=69, scale=stats.sem(pages))
    (path,) = ax.collections[0].get_paths()
    heights = [float(y) for x, y in path.vertices if x == 0]
    assert low < 0  # three pages say little, but no time is below 0
    assert [min(heights), max(heights)] == pytest.approx([0, high])


def test_lines_show_paired_differences_with_intervals_over_pages() -> None:
    results = study()
    ax = results.plot.lines("rtt_ms", "ms")
    line, *intervals = [drawn for drawn in ax.get_lines() if len(drawn.get_xdata()) > 1][:3]
    # x halves pages a and b and leaves c: over the pages -1/2, -1/2 and 0 of the mean seed, 103.5.
    assert list(line.get_ydata()) == pytest.approx([-103.5 / 3, -153.5 / 3])
    for drawn, mean in zip(intervals, (103.5, 153.5), strict=True):
        pages = [-mean / 2, -mean / 2, 0.0]
        # Three pages are too few for resamples: Student's interval.
        low, high = stats.t.interval(0.95, 2, loc=sum(pages) / 3, scale=stats.sem(pages))
        assert list(drawn.get_ydata()) == pytest.approx([low, high])


def test_lines_over_categories_stand_side_by_side() -> None:
    results = study()
    ax = results.plot.lines("page", "ms", pool=["rtt_ms"])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    points = ax.get_lines()[0]
    assert points.get_linestyle() == "None"
    assert list(points.get_xdata()) == [0, 1, 2]
    # The mean of both round-trip times and all seeds, 128.5, halved on pages a and b.
    assert list(points.get_ydata()) == pytest.approx([-128.5 / 2, -128.5 / 2, 0])


def test_lines_to_a_baseline_that_no_load_has_are_refused() -> None:
    with pytest.raises(InputError, match="no load has scheme"):
        study().plot.lines("rtt_ms", "ms", baseline="z")


def test_ranks_and_distributions_say_what_is_counted() -> None:
    results = sized_study()
    pages = results.filter(send_buffer_kb=0).plot
    n_pages = len(set(results.column("page")))
    assert f"over {n_pages} pages;" in pages.ranks("ms").get_title()
    assert pages.cdf("ms").get_ylabel() == f"share of {n_pages} pages"
    n_both = n_pages * len(set(results.column("send_buffer_kb")))
    both = f"{n_both} combinations of page \u00d7 send buffer ({n_pages} pages)"
    pool = ["send_buffer_kb"]
    assert both in results.plot.ranks("ms", pool=pool).get_title().replace("\n", " ")
    label = results.plot.cdf("ms", pool=pool).get_ylabel()
    assert " ".join(label.split()) == f"share of {both}"


def test_a_map_shows_each_mean() -> None:
    results = study()
    ax = results.plot.heat("scheme", "page", "ms", pool=["rtt_ms"])
    means = results.summary("ms", by=["scheme", "page"]).column("mean")
    assert sorted(text.get_text() for text in ax.texts) == sorted(f"{mean:,.0f}" for mean in means)
    with pytest.raises(InputError, match="no column 'colour'"):
        results.plot.heat("colour", "page", "ms")


def test_a_figure_is_drawn_on_the_axes_that_are_given() -> None:
    ax = Figure().subplots()
    assert study().plot.lines("rtt_ms", "ms", ax=ax) is ax
    assert "cdf" in repr(study().plot)


def sized_study() -> Results:
    """Return three schemes on three pages of three sizes; y is twice as fast, z half as fast."""
    rows = [
        {
            "page": page,
            "page_bytes": size,
            "scheme": scheme,
            "send_buffer_kb": send_buffer_kb,
            "seed": seed,
            "ms": (100.0 + position + seed) * factor * (1 if not send_buffer_kb else 1 / factor),
            "lost": float(seed if page == "a" else -seed if page == "b" else 1),
        }
        for position, (page, size) in enumerate((("c", 2_000_000), ("a", 100_000), ("b", 600_000)))
        for send_buffer_kb in (0, 1000)
        for scheme, factor in (("rr", 1.0), ("y", 0.5), ("z", 2.0))
        for seed in range(8)
    ]
    return Results.of(rows, axes=("page", "send_buffer_kb", "scheme", "seed"))


def test_a_scatter_has_a_point_a_page_and_scheme_and_factors_lie_symmetrically() -> None:
    ax: Any = sized_study().filter(send_buffer_kb=0).plot.scatter("ms")
    points = [
        (float(drawn.get_xdata()[0]), float(drawn.get_ydata()[0]))
        for drawn in ax.get_lines()
        if drawn.get_marker() not in ("None", None, "")
    ]
    # Each scheme: large, small, medium, as the rows stand, in the lanes right, left, middle.
    assert [x for x, _ in points] == [0.25, -0.25, 0, 1.25, 0.75, 1]
    assert [y for _, y in points] == pytest.approx([2, 2, 2, 0.5, 0.5, 0.5])
    low, high = ax.get_ylim()
    assert low * high == pytest.approx(1)
    labels = [ax.yaxis.get_major_formatter()(tick, 0) for tick in (0.5, 1, 2)]
    assert labels == ["/2", "1", "x2"]


def test_buffers_show_the_speedup_with_each() -> None:
    ax: Any = sized_study().plot.buffers("ms")
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    # With the large buffer all are alike.
    assert list(drawn["y"]) == pytest.approx([2, 1])
    assert list(drawn["z"]) == pytest.approx([0.5, 1])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1000"]


def test_correlations_stand_by_size_full_where_significant_and_none_where_nothing_varies() -> None:
    ax: Any = sized_study().filter(scheme="rr").plot.correlations("lost", "ms")
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([1, -1])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [
        *("a\n100 kB", "b\n600 kB", "c\n2,000 kB")
    ]
    assert [text.get_text() for text in ax.texts] == ["none"]
    with pytest.raises(InputError, match="no column 'sec'"):
        sized_study().plot.correlations("lost", "sec")


def test_ranks_that_differ_by_the_critical_difference_are_told_apart() -> None:
    """Demsar 2006, § 3.2.2: significantly different where they differ by at least that much."""
    ranks = {"a": 1.0, "b": 2.0, "c": 2.5}
    assert Ranks(ranks, 9, 1.0, 0.01).groups() == [("b", "c")]
    assert Ranks(ranks, 9, 1.25, 0.01).groups() == [("a", "b"), ("b", "c")]


def test_a_diagram_of_ranks_joins_what_is_not_told_apart() -> None:
    results = sized_study()
    found = results.filter(send_buffer_kb=0).ranks("ms")
    assert found.ranks == {"rr": 2, "y": 1, "z": 3}
    # Three of three: 2.344 x sqrt(3 x 4 / (6 x 3)).
    assert found.critical_difference == pytest.approx(2.3437 * (2 / 3) ** 0.5, rel=1e-4)
    assert found.groups() == [("y", "rr"), ("rr", "z")]
    expected = stats.friedmanchisquare([1, 1, 1], [2, 2, 2], [3, 3, 3])
    assert found.p == pytest.approx(expected.pvalue)
    ax: Any = results.filter(send_buffer_kb=0).plot.ranks("ms")
    bars = [line.get_xdata() for line in ax.get_lines() if line.get_linewidth() == 3]
    assert [list(bar) for bar in bars] == [[0.97, 2.03], [1.97, 3.03]]
    assert "critical difference 1.91" in [text.get_text() for text in ax.texts]
    with pytest.raises(NothingToMeasureError, match="three schemes"):
        results.filter(scheme=["rr", "y"]).ranks("ms", pool=["send_buffer_kb"])


ONE_SCHEME = h3sim.sweep("creative", schemes="rr", executor="serial")
MANY_SCHEMES = h3sim.sweep(
    "creative", schemes="marx-2019", send_buffer_kb=[0, 14], executor="serial"
)


@pytest.mark.parametrize("name", ["cdf", "scatter", "buffers"])
def test_a_figure_of_schemes_beside_the_baseline_needs_one(name: str) -> None:
    with pytest.raises(NothingToMeasureError, match="no other scheme has byte_index_all_ms"):
        getattr(ONE_SCHEME.plot, name)()


def test_the_number_of_a_map_of_one_cell_is_light_on_dark() -> None:
    assert [text.get_color() for text in ONE_SCHEME.plot.heat("scheme", "page").texts] == ["white"]


@pytest.mark.parametrize(
    "draw", [lambda p, **ax: p.lines("send_buffer_kb", **ax), lambda p, **ax: p.buffers(**ax)]
)
def test_the_names_of_many_lines_stand_beside_them(draw: Any) -> None:
    own = draw(MANY_SCHEMES.plot)
    own.figure.draw_without_rendering()
    assert own.get_legend().get_window_extent().x0 > own.get_window_extent().x1
    theirs = draw(MANY_SCHEMES.plot, ax=Figure().subplots())
    theirs.figure.draw_without_rendering()
    assert theirs.get_legend().get_window_extent().x1 < theirs.get_window_extent().x1


def test_lines_of_what_no_load_has_say_so_and_blame_no_column() -> None:
    results = h3sim.sweep("creative", schemes="rr", send_buffer_kb=[0, 14], executor="serial")
    with pytest.raises(NothingToMeasureError, match="no load has load_event_ms"):
        results.plot.lines("send_buffer_kb", "load_event_ms")


def test_long_labels_wrap_within_the_figure() -> None:
    value = "waiting_for_bytes_of_other_streams_at_the_client_and_at_the_server_ms"
    rows = [{**row, value: row["ms"]} for row in study()]
    results = Results.of(rows, axes=("page", "rtt_ms", "scheme", "seed"))
    pool = ["rtt_ms"]
    for ax in (results.plot.cdf(value, pool=pool), results.plot.lines("page", value, pool=pool)):
        assert [*errors_in(root_figure(ax))] == []
    assert "\n" in ax.get_ylabel()


def test_the_last_step_of_a_cdf_is_not_on_the_edge_nor_behind_the_line_at_0() -> None:
    ax = study().plot.cdf("ms", relative_to="rr", pool=["rtt_ms"])
    steps = [drawn for drawn in ax.get_lines() if len(drawn.get_xdata()) == 3]
    (zero,) = [drawn for drawn in ax.get_lines() if len(drawn.get_xdata()) == 2]
    assert ax.get_xlim()[1] > max(float(drawn.get_xdata()[-1]) for drawn in steps)
    assert zero.get_zorder() < min(drawn.get_zorder() for drawn in steps)


def skewed(ms: float) -> Results:
    """Return results of five pages, of which one is far faster with fifo, and the others hardly."""
    factors = [1.01, 1.01, 1.012, 1.011, ms]
    return Results.of(
        [
            {"page": f"p{n}", "scheme": scheme, "send_buffer_kb": kb, "seed": 0, "ms": value}
            | {"hol_stream_bytes": 0.0 if n else 900.0, "page_bytes": 1000}
            for kb in (0, 10)
            for n, factor in enumerate(factors)
            for scheme, value in (("rr", 100.0 * factor), ("fifo", 100.0))
        ],
        axes=["page", "send_buffer_kb", "scheme"],
    )


def test_an_interval_that_ends_nowhere_leaves_room_for_the_values() -> None:
    results = skewed(1.3)
    _, row = results.compare("rr", value="ms", pool=["send_buffer_kb"])
    assert row.high > 5  # five pages, of which one differs: its interval says nothing
    low, high = results.plot.buffers("ms").get_ylim()
    assert 1 / 3 < low < 1 < row.geometric < high < 3
    left, right = results.filter(send_buffer_kb=0).plot.forest("ms").get_xlim()
    assert left < 1 < row.geometric < right < 4


def test_a_band_of_bytes_does_not_go_below_none() -> None:
    ax = skewed(1.3).plot.lines("send_buffer_kb", "hol_stream_bytes", baseline=None)
    lows = [path.vertices[:, 1].min() for band in ax.collections for path in band.get_paths()]
    assert lows == [0.0, 0.0]
