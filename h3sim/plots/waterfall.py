"""The waterfall of a load: when each resource was asked for, began to come, and was there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.labels import plain, resource_label, shortened
from h3sim.plots.style import SMALL, Paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from h3sim.plots.palette import Palette
    from h3sim.plots.window import Window
    from h3sim.results import Load, ResourceTiming

__all__ = ["MAX_ROWS", "Row", "draw", "rows_of"]

MAX_ROWS = 60
"""Of more resources, the smallest below the fold share rows with their neighbours."""
_BAR_HEIGHT = 0.64
_TITLE_CHARS = 40
_GUIDE = "thin line: asked for, nothing there yet; bar: first to last byte; \u25b2 above the fold"
_FOLDED_GUIDE = (
    "\nrows without a number: several resources, from the first request to the last byte"
)
_SHOWN_KINDS = 2
_MIXED = Paint("#f4f4f4", "", "#303030")
_MILESTONES = {
    "first_paint_ms": ("first paint", "-"),
    "largest_paint_ms": ("largest paint", "--"),
    "dom_content_loaded_ms": ("DOMContentLoaded", "-."),
    "load_event_ms": ("load event", ":"),
}


class Row(NamedTuple):
    """A resource, or several that were asked for one behind the other."""

    label: str
    look: Paint
    requested_ms: float
    first_byte_ms: float
    finished_ms: float


def rows_of(load: Load, palette: Palette) -> list[Row]:
    """Return the rows of *load* in request order: one per resource, or fewer, folded."""
    return [_row(load, palette, run) for run in _runs(load)]


def draw(ax: Axes, load: Load, palette: Palette, window: Window) -> None:
    """Draw the rows of *load*, in the order in which they were asked for, into *window*."""
    rows = rows_of(load, palette)
    places = range(len(rows))
    first = [row.first_byte_ms for row in rows]
    lengths = [row.finished_ms - row.first_byte_ms for row in rows]
    looks = [row.look for row in rows]
    ax.hlines(places, [row.requested_ms for row in rows], first, color="0.35", linewidth=0.9)
    ax.barh(
        places,
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
        places,
        lengths,
        left=first,
        height=_BAR_HEIGHT,
        color="none",
        edgecolor="0.2",
        linewidth=0.8,
    )
    ax.set_yticks(places, [row.label for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, window.end_ms)
    _mark_milestones(ax, load)
    ax.tick_params(labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    names = (load.page.name, load.scheme.name, load.network.name)
    page, scheme, network = (plain(shortened(name, _TITLE_CHARS)) for name in names)
    title = f"Waterfall of {page} with {scheme} over {network}"
    ax.set_title(title, fontsize=SMALL + 1, loc="left")
    guide = _GUIDE + _FOLDED_GUIDE * (len(rows) < len(load.timings))
    note = f"; {window.note}" if window.note else ""
    ax.set_xlabel(f"time since navigation start in ms{note}\n{guide}", fontsize=SMALL)


def _mark_milestones(ax: Axes, load: Load) -> None:
    """Draw a line where something was painted or the page was done, where that is known."""
    if load.first_paint_ms is None:
        return
    for key, (name, dashes) in _MILESTONES.items():
        at_ms = getattr(load, key)
        if at_ms is not None:
            label = f"{name}: {at_ms:,.0f} ms"
            ax.axvline(at_ms, color="0.1", linestyle=dashes, linewidth=1.1, label=label)
    ax.legend(loc="upper right", fontsize=SMALL, framealpha=0.95)


def _runs(load: Load) -> Iterator[list[ResourceTiming]]:
    """Yield what stands in one row: a resource, or neighbours that are folded."""
    folded = _folded(load)
    run: list[ResourceTiming] = []
    for index, timing in enumerate(load.timings):
        if index in folded:
            run.append(timing)
            continue
        if run:
            yield run
        run = []
        yield [timing]
    if run:
        yield run


def _folded(load: Load) -> dict[int, None]:
    """Return which rows are folded so that few enough are left: the least above the fold first."""
    timings = load.timings
    by_weight = sorted(
        range(1, len(timings)), key=lambda i: (timings[i].above_the_fold, timings[i].bytes, -i)
    )
    folded: dict[int, None] = {}
    n_rows = len(timings)
    for index in by_weight:
        if n_rows <= MAX_ROWS:
            break
        # A row more beside a folded one costs none, between two of them it joins them.
        n_rows -= (index - 1 in folded) + (index + 1 in folded)
        folded[index] = None
    return folded


def _row(load: Load, palette: Palette, run: list[ResourceTiming]) -> Row:
    indexes = [load.page.index[timing.id] for timing in run]
    groups = dict.fromkeys(palette.groups[index] for index in indexes)
    look = palette.look(next(iter(groups))) if len(groups) == 1 else _MIXED
    if len(run) == 1:
        label = resource_label(load.page, indexes[0])
    else:
        kinds = Counter(timing.kind for timing in run)
        shown = [f"{n} {kind}" for kind, n in kinds.most_common(_SHOWN_KINDS)]
        more = ", ..." if len(kinds) > _SHOWN_KINDS else ""
        label = f"{len(run)}: {', '.join(shown)}{more}" if len(kinds) > 1 else shown[0]
    return Row(
        label,
        look,
        min(timing.requested_ms for timing in run),
        min(timing.first_byte_ms for timing in run),
        max(timing.finished_ms for timing in run),
    )
