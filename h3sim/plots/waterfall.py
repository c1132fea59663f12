"""The waterfall of a load: when each resource was asked for, began to come, and was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.plots.labels import resource_label
from h3sim.plots.style import SMALL, paint

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from h3sim.results import Load

__all__ = ["draw"]

_BAR_HEIGHT = 0.64
_GUIDE = "thin line: asked for, nothing there yet; bar: first to last byte; \u25b2 above the fold"


def draw(ax: Axes, load: Load) -> None:
    """Draw a row per resource, in the order in which they were asked for."""
    rows = range(len(load.timings))
    requested, first, finished = (
        load.timings.column(key) for key in ("requested_ms", "first_byte_ms", "finished_ms")
    )
    indexes = [load.page.index[timing.id] for timing in load.timings]
    looks = [paint(index) for index in indexes]
    lengths = [end - start for start, end in zip(first, finished, strict=True)]
    ax.hlines(rows, requested, first, color="0.35", linewidth=0.9)
    ax.barh(
        rows,
        lengths,
        left=first,
        height=_BAR_HEIGHT,
        color=[look.face for look in looks],
        edgecolor=[look.ink for look in looks],
        hatch=[look.hatch for look in looks],
        linewidth=0,
    )
    # A frame of its own, for a hatch has the colour of its edge; it keeps the bar of a single
    # packet, which has no length, in sight.
    ax.barh(
        rows, lengths, left=first, height=_BAR_HEIGHT, color="none", edgecolor="0.2", linewidth=0.8
    )
    names = [resource_label(load.page, index) for index in indexes]
    ax.set_yticks(rows, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(0, load.page_load_ms * 1.005 or 1.0)
    ax.tick_params(labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title("Waterfall", fontsize=SMALL + 1, loc="left")
    ax.set_xlabel(f"time since navigation start in ms\n{_GUIDE}", fontsize=SMALL)
