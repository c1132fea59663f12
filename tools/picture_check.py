"""Says what is wrong with the look of a figure: labels that overlap, that are cut, or that cover.

What people see when they look at it, as far as it can be measured: where each text stands after
layout. Colours, and what lies under a text that is meant to lie there, are for eyes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import STEP_LOOKUP_MAP
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from h3sim.reporting.style import in_style

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

__all__ = ["errors_in"]

_SLACK_PX = 1.0
"""Boxes of texts have a margin: those that touch by so little do not overlap for an eye."""


class _Label(NamedTuple):
    message: str
    box: Bbox


def errors_in(figure: Figure) -> Iterator[str]:
    """Yield a line for each text that is cut or overlaps another, and each legend over a line."""
    with in_style():
        # Layout moves things: only once it is drawn they stand.
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
        labels = _labels(figure)
        yield from _cut(figure, labels)
        yield from _overlaps(labels)
        for ax in figure.axes:
            yield from _covered(ax)


def _labels(figure: Figure) -> list[_Label]:
    hidden = {id(text) for ax in figure.axes for text in _undrawn(ax)}
    return [
        _Label(text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text.get_visible()
        and text.get_text().strip()
        and id(text) not in hidden
    ]


def _undrawn(ax: Axes) -> Iterator[Text]:
    """Yield the texts of ticks beyond the axis, and of axes that are off: nobody draws them."""
    for axis in (ax.xaxis, ax.yaxis):
        if not ax.axison or not axis.get_visible():
            yield from (text for text in axis.findobj(Text) if isinstance(text, Text))
        else:
            yield from _beyond(axis)


def _beyond(axis: Axis) -> Iterator[Text]:
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
        if not low - slack <= tick.get_loc() <= high + slack:
            yield from (tick.label1, tick.label2)


def _cut(figure: Figure, labels: Sequence[_Label]) -> Iterator[str]:
    complete = figure.bbox.padded(_SLACK_PX)
    for message, box in labels:
        if (
            box.x0 < complete.x0
            or box.x1 > complete.x1
            or box.y0 < complete.y0
            or box.y1 > complete.y1
        ):
            yield f"cut: {message!r}"


def _overlaps(labels: Sequence[_Label]) -> Iterator[str]:
    shrunk = sorted(
        (_Label(message, box.padded(-_SLACK_PX)) for message, box in labels),
        key=lambda each: each.box.x0,
    )
    for position, (message, box) in enumerate(shrunk):
        for other, other_box in shrunk[position + 1 :]:
            if other_box.x0 >= box.x1:
                break
            if other_box.y0 < box.y1 and box.y0 < other_box.y1:
                yield f"overlap: {message!r} and {other!r}"


def _covered(ax: Axes) -> Iterator[str]:
    legend = ax.get_legend()
    if legend is None:
        return
    # What reaches beyond the axes is cut off there: a legend beside them covers nothing.
    box = Bbox.intersection(legend.get_window_extent(), ax.bbox)
    if box is None or not box.width or not box.height:
        return
    for line in ax.get_lines():
        if line.get_visible() and _drawn_path(line).intersects_bbox(box, filled=False):
            yield f"legend over the line {line.get_label()!r}"
    for patch in ax.patches:
        if patch.get_visible() and patch.get_window_extent().overlaps(box):
            yield f"legend over a bar at {patch.get_window_extent().bounds}"


def _drawn_path(line: Line2D) -> Path:
    """Return where a line goes on the screen, its steps included."""
    points = STEP_LOOKUP_MAP[line.get_drawstyle()](*line.get_data(orig=False))
    return line.get_transform().transform_path(Path(np.column_stack(points)))
