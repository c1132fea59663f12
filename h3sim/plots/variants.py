"""Two loads one above the other, of one page or of two variants of it, and what moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.plots import deltas, labels, legend, waterfall
from h3sim.plots.alt_texts import delta_alt, waterfall_alt
from h3sim.plots.files import ShownFigure, say
from h3sim.plots.palette import Palette
from h3sim.plots.window import window_of

if TYPE_CHECKING:
    from h3sim.results import Load

__all__ = ["figure_of"]

_WIDTH_IN, _MAX_HEIGHT_IN = 12.0, 200.0
_ROW_IN, _AXIS_IN = 0.19, 0.95


def figure_of(first: Load, second: Load, *, until_ms: float | None = None) -> ShownFigure:
    """Return a new figure: both waterfalls over one axis of time, and below them what moved."""
    pair = (first, second)
    window = window_of(pair, until_ms)
    # Numbers of resources may differ between variants, so colours cannot go by them.
    palettes = [Palette(load.page, is_by_kind=True) for load in pair]
    n_rows = [
        len(waterfall.rows_of(load, palette)) for load, palette in zip(pair, palettes, strict=True)
    ]
    n_rows.append(len(deltas.shown(deltas.deltas_of(first, second))))
    heights_in = [_ROW_IN * max(1, n) + _AXIS_IN for n in n_rows]
    heights_in.insert(2, legend.height_in(palettes[0]))
    figure = ShownFigure(
        figsize=(_WIDTH_IN, min(sum(heights_in), _MAX_HEIGHT_IN)), layout="constrained"
    )
    above, below, names, moved = figure.subplots(4, height_ratios=heights_in)
    for ax, load, palette in zip((above, below), pair, palettes, strict=True):
        waterfall.draw(ax, load, palette, window)
        say(ax, waterfall_alt(load))
    above.set_xlabel("")
    legend.below(names, *palettes)
    one, other = labels.lane_labels(pair)
    same = one == other
    deltas.draw(moved, first, second, ("the first", "the second") if same else (one, other))
    say(moved, delta_alt(first, second))
    return figure
