"""What is wrong with the look of figures is found, and figures have none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.reporting.output import ShownFigure
from tests.effort import some
from tools.figures import drawn
from tools.picture_check import errors_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@pytest.fixture
def ax() -> Axes:
    ax: Axes = ShownFigure(figsize=(4, 3), layout="constrained").subplots()
    ax.set_xlim(0, 10)
    ax.plot([0, 10], [0, 1], label="a line")
    return ax


def _found(ax: Axes) -> list[str]:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return list(errors_in(figure))


def test_a_plain_figure_has_no_errors(ax: Axes) -> None:
    ax.text(2, 0.9, "here")
    ax.text(6, 0.9, "there")
    assert _found(ax) == []


def test_texts_that_overlap_are_reported(ax: Axes) -> None:
    ax.text(2, 0.9, "here")
    ax.text(2.3, 0.91, "there")
    assert _found(ax) == ["overlap: 'here' and 'there'"]


def test_a_text_that_is_cut_is_reported(ax: Axes) -> None:
    ax.text(9, 0.5, "what is far too long for what is left of a line").set_in_layout(False)
    assert _found(ax) == ["cut: 'what is far too long for what is left of a line'"]


def test_a_legend_over_a_line_is_reported_and_one_next_to_it_is_not(ax: Axes) -> None:
    ax.legend(loc="upper right")
    assert _found(ax) == ["legend over the line 'a line'"]
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    assert _found(ax) == []


def test_a_step_goes_where_it_is_drawn(ax: Axes) -> None:
    # From corner to corner it would pass below the legend; its step goes through it.
    ax.get_lines()[0].set_drawstyle("steps-pre")
    ax.legend(loc="upper left")
    assert _found(ax) == ["legend over the line 'a line'"]


def test_labels_of_ticks_beyond_the_axis_are_nobody_s_concern(ax: Axes) -> None:
    ax.set_xticks([0, 5, 10, 10.2, 10.4], ["0", "5", "10", "so far", "that nobody sees it"])
    ax.set_xlim(0, 10)
    assert _found(ax) == []


@pytest.mark.parametrize("n_resources", some([9], [9, 60, 289]))
def test_every_figure_of_a_page_looks_as_it_should(n_resources: int) -> None:
    # All in one go, for they share their loads; layout takes most of these seconds.
    page = h3sim.page.synthetic(seed=2, n_resources=n_resources)
    errors = [f"{name}: {error}" for name, figure in drawn(page) for error in errors_in(figure)]
    assert errors == []
