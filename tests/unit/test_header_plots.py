"""Figures of header compression show every point of every scheme."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

from h3sim.reporting.study_plots import header_figure


def test_panels_of_a_row_share_an_axis_that_fits_all_of_them() -> None:
    # Without loss nothing waits; with loss all does, for longer than the first panel shows.
    rows: list[Any] = [
        SimpleNamespace(scheme="hpack", rtt_ms=rtt_ms, loss=loss, hol_mean_ms=held_ms, ratio=0.2)
        for loss, held_ms in ((0.0, 0.0), (0.05, 40.0))
        for rtt_ms in (20, 100)
    ]
    first, second = header_figure(rows).axes[:2]
    assert first.get_ylim() == second.get_ylim()
    low, high = second.get_ylim()
    (line,) = second.get_lines()
    held: Any = line.get_ydata()
    assert low == 0
    assert high >= max(held) == 40


def test_a_single_condition_is_drawn_as_a_bar_per_scheme() -> None:
    rows: list[Any] = [
        SimpleNamespace(scheme=scheme, rtt_ms=100, loss=0.02, hol_mean_ms=delay_ms, ratio=0.2)
        for scheme, delay_ms in (("hpack", 40.0), ("qpack", 10.0))
    ]
    first: Any = header_figure(rows).axes[0]
    heights = [bar.get_height() for bar in first.patches]
    assert heights == [40.0, 10.0]
    assert first.get_lines() == []
    # What is 0 has a number, where it has no bar to be seen.
    assert [text.get_text() for text in first.texts] == ["40", "10"]


def test_a_delay_of_zero_is_written_where_no_bar_can_be_seen() -> None:
    rows: list[Any] = [
        SimpleNamespace(scheme="hpack", rtt_ms=100, loss=0.0, hol_mean_ms=0.0, ratio=0.2)
    ]
    first = header_figure(rows).axes[0]
    assert [text.get_text() for text in first.texts] == ["0"]


def test_numbers_and_names_of_bars_do_not_overlap_in_a_column_of_a_paper() -> None:
    rows: list[Any] = [
        SimpleNamespace(scheme=scheme, rtt_ms=100, loss=0.02, hol_mean_ms=0.0, ratio=ratio)
        for scheme, ratio in (("hpack", 0.165), ("qpack", 0.213), ("static", 0.703),
                              ("early-qpack", 0.166), ("early-qpack-safe", 0.598),
                              ("early-qpack-keep", 0.166), ("qcram", 0.583),
                              ("qcram-packets", 0.556))
    ]  # fmt: skip
    figure = header_figure(rows, style="paper", width="column")
    figure.draw_without_rendering()
    # Bars have their names below them: a legend would repeat them.
    assert figure.legends == []
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts]
        for left, right in itertools.pairwise(sorted(boxes, key=lambda box: box.x0)):
            assert left.x1 <= right.x0 or left.y0 >= right.y1 or right.y0 >= left.y1


def test_lines_have_their_legend_above_them_in_a_paper() -> None:
    rows: list[Any] = [
        SimpleNamespace(scheme=scheme, rtt_ms=rtt_ms, loss=0.02, hol_mean_ms=1.0, ratio=0.2)
        for scheme in ("hpack", "qpack")
        for rtt_ms in (20, 100)
    ]
    figure = header_figure(rows, style="paper", width="column")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["hpack", "qpack"]
    assert legend.get_window_extent().y0 >= max(ax.get_window_extent().y1 for ax in figure.axes)
