"""Figures that need no more than a trace: of a load, or of the log of a real stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.plots import byte_ranges
from h3sim.plots.files import ShownFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from h3sim.trace import Trace

__all__ = ["CURVE_IN", "byte_ranges_height_in", "new_axes"]

_WIDTH_IN, _MAX_HEIGHT_IN = 12.0, 200.0
_ROW_IN, _AXIS_IN = 0.42, 0.9
CURVE_IN = 2.6


def byte_ranges_height_in(trace: Trace) -> float:
    """Return how high the figure of byte ranges is, in inches."""
    return _AXIS_IN + _ROW_IN * max(2, len(byte_ranges.shown_streams(trace)))


def new_axes(height_in: float) -> Axes:
    """Return the axes of a new figure as wide as all, and as high as given, in inches."""
    return ShownFigure(
        figsize=(_WIDTH_IN, min(height_in, _MAX_HEIGHT_IN)), layout="constrained"
    ).subplots()
