"""The legend of resources: number, name, and how each is painted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from h3sim.plots.labels import resource_label
from h3sim.plots.style import SMALL, paint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from h3sim.page import Page

__all__ = ["MAX_NAMES", "below", "beside", "height_in"]

MAX_NAMES = 24
"""The most lines of a legend."""
_LINE_IN = 0.165
_COLUMNS = 4


def height_in(page: Page, *, columns: int = _COLUMNS) -> float:
    """Return how high the legend of *page* is in so many columns, in inches."""
    lines = -(-min(len(page.resources), MAX_NAMES) // columns)
    return _LINE_IN * (lines + 0.5)


def beside(ax: Axes, page: Page) -> None:
    """Put the legend of *page* in one column to the right of *ax*."""
    ax.legend(
        handles=_handles(page),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        fontsize=SMALL,
        frameon=False,
        handlelength=2.4,
        handleheight=1.0,
        labelspacing=0.35,
    )


def below(ax: Axes, page: Page) -> None:
    """Put the legend of *page* in place of *ax*, over the whole width of the figure."""
    handles = _handles(page)
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


def _handles(page: Page) -> list[Patch]:
    """Return the entries: all, or the root and those of most bytes, and how many there are more."""
    sizes = [resource.size_bytes for resource in page.resources]
    named = sorted(range(len(sizes)), key=lambda index: (index != page.root, -sizes[index]))
    if len(named) > MAX_NAMES:
        named = named[: MAX_NAMES - 1]
    handles = [_handle(page, index) for index in sorted(named)]
    if len(named) < len(sizes):
        handles.append(Patch(alpha=0, label=f"... and {len(sizes) - len(named)} more"))
    return handles


def _handle(page: Page, index: int) -> Patch:
    look = paint(index)
    label = resource_label(page, index)
    return Patch(
        facecolor=look.face, edgecolor=look.ink, hatch=look.hatch, linewidth=0, label=label
    )
