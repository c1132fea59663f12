"""Figures that need no more than a trace: of a load, or of the log of a real stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.plots import byte_ranges, throughput
from h3sim.plots.files import ShownFigure
from h3sim.plots.labels import plain, shortened
from h3sim.plots.style import in_style
from h3sim.plots.throughput import bins_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from h3sim.trace import Trace

__all__ = [
    "CURVE_IN",
    "bins_of",
    "byte_ranges_height_in",
    "byte_ranges_of",
    "new_axes",
    "throughput_of",
]

_WIDTH_IN, _MAX_HEIGHT_IN = 12.0, 200.0
_ROW_IN, _AXIS_IN = 0.42, 0.9
CURVE_IN = 2.6


def byte_ranges_height_in(trace: Trace) -> float:
    """Return how high the figure of byte ranges is, in inches."""
    return _AXIS_IN + _ROW_IN * max(2, len(byte_ranges.shown_streams(trace)))


def byte_ranges_of(trace: Trace, names: Mapping[int, str], of: str, *, end_ms: float) -> Axes:
    """Return the axes of a new figure of byte ranges; *names* are those of streams by id."""
    labels = {stream_id: plain(shortened(name)) for stream_id, name in names.items()}
    with in_style():
        ax = new_axes(byte_ranges_height_in(trace))
        title = f"Byte ranges per stream of {shortened(of, 80)}"
        byte_ranges.draw(ax, trace, labels, title, end_ms=end_ms)
    return ax


def throughput_of(trace: Trace, of: str, *, end_ms: float) -> Axes:
    """Return the axes of a new figure of throughput."""
    with in_style():
        ax = new_axes(CURVE_IN)
        throughput.draw(ax, trace, f"Throughput of {shortened(of, 80)}", end_ms=end_ms)
    return ax


def new_axes(height_in: float) -> Axes:
    """Return the axes of a new figure as wide as all, and as high as given, in inches."""
    return ShownFigure(
        figsize=(_WIDTH_IN, min(height_in, _MAX_HEIGHT_IN)), layout="constrained"
    ).subplots()
