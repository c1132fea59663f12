"""The multiplexing diagram (Marx 2019, Fig. 8 and 13): one lane per load, with its legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.transforms import blended_transform_factory

from h3sim.reporting.labels import within
from h3sim.reporting.lane_layout import joined, stack_share, tallest
from h3sim.reporting.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from h3sim.reporting.labels import Paint, Palette
    from h3sim.reporting.lane_layout import Box, LoadLane, Window


_LINE_IN = 0.165
_COLUMNS = 4


def height_in(palette: Palette, *, columns: int = _COLUMNS) -> float:
    """Return how high the legend of *palette* is in so many columns, in inches."""
    lines = -(-len(set(palette.groups)) // columns)
    return _LINE_IN * (lines + 0.5)


def draw_legend_beside(ax: Axes, palette: Palette) -> None:
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


GUIDE = (
    "Each rectangle is a packet; left to right in the order its bytes reached the application;"
    " stacked: delivered together"
)
MERGED_GUIDE = (
    "Packets from left to right in the order their bytes reached the application, neighbours that"
    " look alike joined; stacked: delivered together"
)
_LOST_GUIDE = "\n\N{MULTIPLICATION SIGN} sent and lost"
_AGAIN_GUIDE = "; \N{WHITE UP-POINTING TRIANGLE} sent again, arrived"

MAX_VECTORS = 5000
"""Lanes of more rectangles than this go into SVG and PDF as images, which else grow to 100 MB."""
_LANE_SHARE = 0.84
"""Share of its row that a lane fills."""
_MIN_HATCHED = 5.0
"""The width, in points, from which on a run shows its hatch."""
_MOSTLY = 0.9
_EDGE, _EDGE_SHARE = 0.5, 0.25
"""The width of the white edge of a packet: in points, and at most this share of the packet's."""
_NUMBER_SIZE = SMALL - 1.5
_MARK_SIZE = 3.0
_MANY_MARKS = 150
"""More marks than this are ticks, which do not cover each other."""
_LOST = "#c00000"
_POINTS_PER_INCH = 72
_EM = 0.68
"""The width of a digit and its surroundings, in font sizes."""


def draw(
    ax: Axes,
    lanes: Sequence[LoadLane],
    labels: Sequence[str],
    palette: Palette,
    window: Window,
    *,
    annotate: bool,
) -> None:
    """Draw *lanes* from top to bottom; lane n is n rows from the top, rows are 1 high."""
    highest = tallest(lanes)
    ax.set_xlim(0, window.end_ms)
    ax.set_ylim(0, len(lanes))
    bottoms = [len(lanes) - number - 0.5 - _LANE_SHARE / 2 for number in range(len(lanes))]
    hatched = _hatched_runs(lanes, palette, _points_per_ms(ax))
    for number, (lane, bottom) in enumerate(zip(lanes, bottoms, strict=True)):
        _draw_lane(ax, lane, hatched[number], bottom, highest, f"lane-{number + 1}", palette)
        _mark_losses(ax, lane, bottom, is_alone=len(lanes) == 1)
        if annotate and not palette.is_by_kind:
            _number_runs(ax, lane, bottom, highest)
    ax.set_yticks([bottom + _LANE_SHARE / 2 for bottom in bottoms], labels)
    ax.tick_params(labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    guide = MERGED_GUIDE if any(lane.is_merged for lane in lanes) else GUIDE
    if any(lane.lost_ms for lane in lanes):
        guide += _LOST_GUIDE + _AGAIN_GUIDE * (len(lanes) == 1)
    note = f"; {window.note}" if window.note else ""
    description = f"time since navigation start in ms{note}\n{guide}"
    ax.set_xlabel(within(ax, description), fontsize=SMALL)


def _corners(box: Box, bottom: float, highest: int) -> list[tuple[float, float]]:
    step = stack_share(box.height, highest) * _LANE_SHARE / box.height
    low, high = bottom + box.level * step, bottom + (box.level + 1) * step
    return [(box.start_ms, low), (box.stop_ms, low), (box.stop_ms, high), (box.start_ms, high)]


def _mark_losses(ax: Axes, lane: LoadLane, bottom: float, *, is_alone: bool) -> None:
    """Mark, below the lane, what was lost when it was sent; above one alone what came again."""
    margin = (1 - _LANE_SHARE) / 4
    is_many = max(len(lane.lost_ms), len(lane.again_ms)) > _MANY_MARKS
    lost, again = ("|", "|") if is_many else ("x", "^")
    look: dict[str, Any] = {"linestyle": "", "markersize": _MARK_SIZE, "markeredgewidth": 0.7}
    if lane.lost_ms:
        heights = [bottom - margin] * len(lane.lost_ms)
        ax.plot(lane.lost_ms, heights, marker=lost, color=_LOST, **look)
    if lane.again_ms and is_alone:
        heights = [bottom + _LANE_SHARE + margin] * len(lane.again_ms)
        ax.plot(lane.again_ms, heights, marker=again, color="black", fillstyle="none", **look)


def _draw_lane(
    ax: Axes,
    lane: LoadLane,
    runs: Sequence[Box],
    bottom: float,
    highest: int,
    name: str,
    palette: Palette,
) -> None:
    """Draw a collection per group, with hatches in *runs*; an artist per packet would be slow."""
    name = f"{name}-{palette.noun}"
    faces = _by_group(lane.drawn, bottom, highest)
    hatched = _by_group(runs, bottom, highest)
    for group, corners in sorted(faces.items()):
        collection = PolyCollection(corners, facecolors=palette.look(group).face, linewidths=0)
        collection.set_gid(f"{name}-{group + 1}")
        collection.set_rasterized(len(lane.drawn) > MAX_VECTORS)
        ax.add_collection(collection, autolim=False)
    for group, corners in sorted(hatched.items()):
        hatch = _hatching(corners, palette.look(group))
        hatch.set_gid(f"{name}-{group + 1}-hatch")
        ax.add_collection(hatch, autolim=False)
    if not lane.is_merged:
        every = [corner for corners in faces.values() for corner in corners]
        narrowest = min((box.stop_ms - box.start_ms for box in lane.drawn), default=0.0)
        width = min(_EDGE, _EDGE_SHARE * narrowest * _points_per_ms(ax))
        edges = PolyCollection(every, facecolors="none", edgecolors="white", linewidths=width)
        edges.set_gid(f"{name.rpartition('-')[0]}-edges")
        ax.add_collection(edges, autolim=False)


def _hatched_runs(
    lanes: Sequence[LoadLane], palette: Palette, points_per_ms: float
) -> list[list[Box]]:
    """Return what of each lane shows its hatch: in narrow runs their colour would be lost.

    Where kinds are shown, a hatch here and there would look as if it meant something: there nearly
    all of each lane is hatched, or nothing of any.
    """
    wide: list[list[Box]] = []
    is_mostly_wide = True
    for lane in lanes:
        runs = list(joined(lane.packets))
        wide.append([run for run in runs if _length_ms([run]) * points_per_ms >= _MIN_HATCHED])
        is_mostly_wide = is_mostly_wide and _length_ms(wide[-1]) >= _MOSTLY * _length_ms(runs)
    return wide if is_mostly_wide or not palette.is_by_kind else [[] for _ in lanes]


def _length_ms(runs: Iterable[Box]) -> float:
    return sum(run.stop_ms - run.start_ms for run in runs)


def _by_group(
    drawn: Iterable[Box], bottom: float, highest: int
) -> dict[int, list[list[tuple[float, float]]]]:
    found: dict[int, list[list[tuple[float, float]]]] = {}
    for box in drawn:
        found.setdefault(box.group, []).append(_corners(box, bottom, highest))
    return found


def _hatching(corners: list[list[tuple[float, float]]], look: Paint) -> PathCollection:
    """Return the hatch of a group as one path: hatching rectangle by rectangle is slow."""
    return PathCollection(
        [Path.make_compound_path(*(Path(polygon, closed=False) for polygon in corners))],
        facecolors="none",
        edgecolors=look.ink,
        linewidths=0,
        hatch=look.hatch,
    )


def _points_per_ms(ax: Axes) -> float:
    """Return the scale of the time axis, before a layout has moved its ends a little."""
    low_ms, high_ms = ax.get_xlim()
    points = ax.get_window_extent().width / ax.figure.dpi * _POINTS_PER_INCH
    return float(points) / (high_ms - low_ms)


def _number_runs(ax: Axes, lane: LoadLane, bottom: float, highest: int) -> None:
    """Write a resource's number wherever its packets are alone for long enough to hold it."""
    points_per_ms = _points_per_ms(ax)
    middle = bottom + stack_share(1, highest) * _LANE_SHARE / 2
    for run in joined(box for box in lane.packets if box.height == 1):
        text = str(run.group + 1)
        needed = (len(text) + 1) * _EM * _NUMBER_SIZE
        if (run.stop_ms - run.start_ms) * points_per_ms < needed:
            continue
        ax.text(
            (run.start_ms + run.stop_ms) / 2,
            middle,
            text,
            fontsize=_NUMBER_SIZE,
            ha="center",
            va="center_baseline",
            bbox={"boxstyle": "square,pad=0.12", "facecolor": "white", "linewidth": 0},
        )
