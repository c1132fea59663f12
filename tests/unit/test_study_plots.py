"""Figures of studies show the numbers of their tables."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from h3sim.errors import InputError
from h3sim.study import Results


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
    ax = results.plot.cdf("ms", relative_to="rr")
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
    ax = results.plot.forest("ms", baseline="rr")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["rr", "x"]
    (row,) = [row for row in results.compare("rr", value="ms") if row.scheme == "x"]
    drawn = [[float(x) for x in drawn.get_xdata()] for drawn in ax.get_lines()]
    assert [row.low, row.high] in drawn
    assert [row.geometric] in drawn


def test_lines_go_through_the_means() -> None:
    results = study()
    ax = results.plot.lines("rtt_ms", "ms")
    means = {
        (row["scheme"], row["rtt_ms"]): row["mean"]
        for row in results.summary("ms", by=["scheme", "rtt_ms"])
    }
    for drawn in ax.get_lines():
        for x, y in zip(drawn.get_xdata(), drawn.get_ydata(), strict=True):
            assert means[drawn.get_label(), x] == y
    with pytest.raises(InputError, match="network is no column of numbers"):
        results.plot.lines("network", "ms")


def test_a_map_shows_each_mean() -> None:
    results = study()
    ax = results.plot.heat("scheme", "page", "ms")
    means = results.summary("ms", by=["scheme", "page"]).column("mean")
    assert sorted(text.get_text() for text in ax.texts) == sorted(f"{mean:,.0f}" for mean in means)
    with pytest.raises(InputError, match="no column 'colour'"):
        results.plot.heat("colour", "page", "ms")


def test_a_figure_is_drawn_on_the_axes_that_are_given() -> None:
    ax = Figure().subplots()
    assert study().plot.lines("rtt_ms", "ms", ax=ax) is ax
    assert "cdf" in repr(study().plot)
