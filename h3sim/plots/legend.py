"""The legend of resources or of kinds: what it is called, and how it is painted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.plots.palette import Palette

__all__ = ["below", "beside", "height_in"]

_LINE_IN = 0.165
_COLUMNS = 4


def height_in(palette: Palette, *, columns: int = _COLUMNS) -> float:
    """Return how high the legend of *palette* is in so many columns, in inches."""
    lines = -(-len(set(palette.groups)) // columns)
    return _LINE_IN * (lines + 0.5)


def beside(ax: Axes, palette: Palette) -> None:
    """Put the legend of *palette* in one column to the right of *ax*."""
    ax.legend(
        handles=_handles(palette),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        fontsize=SMALL,
        frameon=False,
        handlelength=2.4,
        handleheight=1.0,
        labelspacing=0.35,
    )


def below(ax: Axes, palette: Palette, *more: Palette) -> None:
    """Put the legend of *palette* in place of *ax*, over the whole width of the figure.

    With *more*, which are by kind as well, it names the kinds of all, and not what they weigh.
    """
    handles = _handles_of_kinds((palette, *more)) if more else _handles(palette)
    ax.set_axis_off()
    legend = ax.legend(
        handles=handles,
        loc="center",
        ncols=min(_COLUMNS, len(handles)),
        bbox_to_anchor=(0.5, 0.5),
        bbox_transform=blended_transform_factory(ax.figure.transFigure, ax.transAxes),
        fontsize=SMALL,
        frameon=False,
        handlelength=2.4,
        handleheight=1.0,
        labelspacing=0.35,
    )
    # It may be wider than the axes, which must not shrink for it.
    legend.set_in_layout(False)


def _handles(palette: Palette) -> list[Patch]:
    return [_handle(palette, group) for group in sorted(set(palette.groups))]


def _handles_of_kinds(palettes: Sequence[Palette]) -> list[Patch]:
    homes = {group: palette for palette in palettes for group in palette.groups}
    handles = [_handle(homes[group], group) for group in sorted(homes)]
    for handle in handles:
        handle.set_label(str(handle.get_label()).partition(":")[0])
    return handles


def _handle(palette: Palette, group: int) -> Patch:
    look = palette.look(group)
    return Patch(
        facecolor=look.face,
        edgecolor=look.ink,
        hatch=look.hatch,
        linewidth=0,
        label=palette.label(group),
    )
