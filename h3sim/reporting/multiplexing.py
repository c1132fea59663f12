"""The multiplexing diagram (Marx 2019, Fig. 8 and 13): one lane per load, with its legend."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, Any

from matplotlib.collections import PolyCollection
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from h3sim.reporting.labels import within
from h3sim.reporting.lane_layout import joined, stack_share, tallest
from h3sim.reporting.paper import is_narrow, paper_in
from h3sim.reporting.style import SIDE_LEGEND, SMALL, finish_axes, text_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.reporting.labels import Palette
    from h3sim.reporting.lane_layout import Box, LoadLane, Window


_LEGEND_LINE_IN = 0.165
_FIGURE_WIDTH_IN, _LEGEND_COLUMN_IN = 12.0, 3.0
_NARROW_COLUMN_IN, _MAX_NARROW_CHARS = 1.66, 20
"""Width of a legend's column in a column of a paper, if its labels are this short."""


def _n_columns(palette: Palette) -> int:
    longest = max(len(entry.label) for entry in palette.legend())
    column_in = _NARROW_COLUMN_IN if longest <= _MAX_NARROW_CHARS else _LEGEND_COLUMN_IN
    return int((paper_in() or _FIGURE_WIDTH_IN) / (column_in if is_narrow() else _LEGEND_COLUMN_IN))


def height_in(palette: Palette, *, columns: int | None = None) -> float:
    """Return the height in inches of a legend, by default in as many columns as fit."""
    lines = math.ceil(len(palette.legend()) / (columns or _n_columns(palette)))
    return _LEGEND_LINE_IN * (lines + 0.5)


def draw_side_legend(ax: Axes, palette: Palette) -> None:
    """Put the legend of *palette* in one column to the right of *ax*."""
    ax.legend(*_legend_entries(palette), **SIDE_LEGEND | _LEGEND_LOOK)


def below(ax: Axes, palette: Palette, *more: Palette) -> None:
    """Draw the legend of *palette* in place of *ax*, over the whole width of the figure.

    With *more* palettes, all by kind, it has the kinds of all pages, without their bytes.
    """
    handles, names = _legend_entries(palette)
    if more:
        # By group, so that a kind of several pages is listed once.
        kinds = {}
        for each in (palette, *more):
            for entry, handle, name in zip(each.legend(), *_legend_entries(each), strict=True):
                kinds[entry.groups] = (handle, name.partition(":")[0])
        pairs = [kinds[groups] for groups in sorted(kinds)]
        handles, names = [handle for handle, _ in pairs], [name for _, name in pairs]
    ax.set_axis_off()
    legend = ax.legend(
        handles,
        names,
        loc="center",
        ncols=min(_n_columns(palette), len(handles)),
        bbox_to_anchor=(0.5, 0.5),
        bbox_transform=blended_transform_factory(ax.figure.transFigure, ax.transAxes),
        **_LEGEND_LOOK,
    )
    # The axes must not shrink for the legend, which may be wider.
    legend.set_in_layout(False)


_LEGEND_LOOK: dict[str, Any] = {
    "fontsize": SMALL,
    "frameon": False,
    "handlelength": 2.4,
    "handleheight": 1.0,
    "labelspacing": 0.35,
    # The shades of a class are side by side, as in the lanes.
    "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0.0)},
}


def _legend_entries(palette: Palette) -> tuple[list[tuple[Patch, ...]], list[str]]:
    handles, names = [], []
    for entry in palette.legend():
        looks = [palette.look(group) for group in entry.groups]
        handles.append(
            tuple(
                Patch(facecolor=look.face, edgecolor=look.ink, hatch=look.hatch, linewidth=0)
                for look in looks
            )
        )
        names.append(entry.label)
    return handles, names


PACKET_GUIDE = (
    "Each rectangle is a packet; left to right in the order its bytes reached the application;"
    " stacked: delivered together"
)
MERGED_GUIDE = (
    "Packets from left to right in the order their bytes reached the application, neighbours of a"
    " resource joined; stacked: delivered together"
)
_FOLD_GUIDE = "; dashed line: all above the fold is complete"
_LOST_GUIDE = "red \N{MULTIPLICATION SIGN}: sent and lost"
_DROPPED_GUIDE = "brown +: sent and dropped by the queue"
_RESENT_GUIDE = "\N{WHITE UP-POINTING TRIANGLE} sent again, arrived"

MAX_VECTORS = 5000
"""Lanes of more rectangles are images in SVG and PDF files, which would grow to 100 MB."""
_LANE_SHARE = 0.84
"""Share of its row that a lane fills."""
_EDGE_WIDTH_PT, _MIN_EDGED_WIDTH_PT = 0.5, 2.5
"""Width of the white edge of a packet, and the least width of a packet with one, in points."""
_NUMBER_REDUCTION_PT = 1.5
"""Numbers of resources are smaller than other text by this many points."""
_MARK_SIZE = 3.0
_MAX_LARGE_MARKS = 150
"""More marks than this are thin ticks, which do not cover each other."""
_LOST_COLOUR = "#c00000"
_DROPPED_COLOUR = "#7a4a00"
_POINTS_PER_INCH = 72
_DIGIT_WIDTH = 0.68
"""Width of a digit with some space, in font sizes."""


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
    # An estimate, as a layout will change the ends of the axis a little.
    points = ax.get_window_extent().width / ax.figure.dpi * _POINTS_PER_INCH
    points_per_ms = float(points) / window.end_ms
    has_single = False
    for number, (lane, bottom) in enumerate(zip(lanes, bottoms, strict=True)):
        is_single = _has_edges(lane, points_per_ms)
        has_single = has_single or is_single
        _draw_lane(ax, lane, bottom, highest, f"lane-{number + 1}", palette, has_edges=is_single)
        _mark_losses(ax, lane, bottom, is_only_lane=len(lanes) == 1)
        if (at_ms := lane.above_the_fold_ms) is not None:
            margin = (1 - _LANE_SHARE) / 4
            ends = len(lanes) - number - 1 + margin, len(lanes) - number - margin
            halo = ax.vlines(at_ms, *ends, colors="white", linewidth=4)
            halo.set_gid(f"lane-{number + 1}-halo")
            line = ax.vlines(at_ms, *ends, colors="black", linestyles=(0, (3, 1)), linewidth=1.5)
            line.set_gid(f"lane-{number + 1}-fold")
        if annotate:
            _number_runs(ax, lane, bottom, highest, points_per_ms)
    ax.set_yticks([bottom + _LANE_SHARE / 2 for bottom in bottoms], labels)
    guide = PACKET_GUIDE if has_single else MERGED_GUIDE
    guide += f" (at most {highest:,})" * (highest > 1)
    if any(lane.above_the_fold_ms is not None for lane in lanes):
        guide += _FOLD_GUIDE
    marks = [_LOST_GUIDE] * any(lane.lost_ms for lane in lanes)
    marks += [_DROPPED_GUIDE] * any(lane.dropped_ms for lane in lanes)
    marks += [_RESENT_GUIDE] * (len(lanes) == 1 and bool(marks))
    if marks:
        guide += f"\n{'; '.join(marks)}"
    # In papers the caption explains it.
    words = window.label() if paper_in() is not None else f"{window.label()}\n{guide}"
    finish_axes(ax, x=within(ax, words), has_rows=True)


def _corners(box: Box, bottom: float, highest: int) -> list[tuple[float, float]]:
    step = stack_share(box.height, highest) * _LANE_SHARE / box.height
    low, high = bottom + box.level * step, bottom + (box.level + 1) * step
    return [(box.start_ms, low), (box.stop_ms, low), (box.stop_ms, high), (box.start_ms, high)]


def _mark_losses(ax: Axes, lane: LoadLane, bottom: float, *, is_only_lane: bool) -> None:
    """Mark when lost and dropped packets were sent, and resent bytes arrived.

    The first two are below the lane; the third is above it, if it is the only one.
    """
    margin = (1 - _LANE_SHARE) / 4
    n_most = max(len(lane.lost_ms), len(lane.dropped_ms), len(lane.again_ms))
    lost, dropped, resent = "|||" if n_most > _MAX_LARGE_MARKS else "x+^"
    look: dict[str, Any] = {"linestyle": "", "markersize": _MARK_SIZE, "markeredgewidth": 0.7}
    for times_ms, marker, colour in (
        (lane.dropped_ms, dropped, _DROPPED_COLOUR),
        (lane.lost_ms, lost, _LOST_COLOUR),
    ):
        if times_ms:
            heights = [bottom - margin] * len(times_ms)
            ax.plot(times_ms, heights, marker=marker, color=colour, **look)
    if lane.again_ms and is_only_lane:
        heights = [bottom + _LANE_SHARE + margin] * len(lane.again_ms)
        ax.plot(lane.again_ms, heights, marker=resent, color="black", fillstyle="none", **look)


def _draw_lane(
    ax: Axes,
    lane: LoadLane,
    bottom: float,
    highest: int,
    name: str,
    palette: Palette,
    *,
    has_edges: bool,
) -> None:
    """Draw the packets, as one collection per group, since an artist per packet would be slow."""
    drawn = lane.drawn if has_edges else list(joined(lane.packets))
    every = [_corners(box, bottom, highest) for box in drawn]
    corners_of: dict[int, list[list[tuple[float, float]]]] = {}
    for box, corners in zip(drawn, every, strict=True):
        corners_of.setdefault(palette.groups[box.resource], []).append(corners)
    for group, polygons in sorted(corners_of.items()):
        collection = PolyCollection(polygons, facecolors=palette.look(group).face, linewidths=0)
        collection.set_gid(f"{name}-{palette.noun}-{group + 1}")
        collection.set_rasterized(len(drawn) > MAX_VECTORS)
        ax.add_collection(collection, autolim=False)
    if has_edges:
        edges = PolyCollection(
            every, facecolors="none", edgecolors="white", linewidths=_EDGE_WIDTH_PT
        )
        edges.set_gid(f"{name}-edges")
        ax.add_collection(edges, autolim=False)


def _has_edges(lane: LoadLane, points_per_ms: float) -> bool:
    """Return whether packets of *lane* have white edges, which would hide those of narrow ones."""
    if lane.is_merged or not lane.drawn:
        return False
    width_ms = median(box.stop_ms - box.start_ms for box in lane.drawn)
    return width_ms * points_per_ms >= _MIN_EDGED_WIDTH_PT


def _number_runs(
    ax: Axes, lane: LoadLane, bottom: float, highest: int, points_per_ms: float
) -> None:
    """Write a resource's number on each run of its unstacked packets that is wide enough."""
    middle = bottom + stack_share(1, highest) * _LANE_SHARE / 2
    size = text_size(_NUMBER_REDUCTION_PT)
    for run in joined(box for box in lane.packets if box.height == 1):
        text = str(run.resource + 1)
        needed = (len(text) + 1) * _DIGIT_WIDTH * size
        if (run.stop_ms - run.start_ms) * points_per_ms < needed:
            continue
        ax.text(
            (run.start_ms + run.stop_ms) / 2,
            middle,
            text,
            fontsize=size,
            ha="center",
            va="center_baseline",
            bbox={"boxstyle": "square,pad=0.12", "facecolor": "white", "linewidth": 0},
        )
