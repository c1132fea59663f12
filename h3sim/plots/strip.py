"""The strip of Marx 2019, Fig. 8 and 13: each packet a rectangle, each load a lane."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.path import Path

from h3sim.plots.style import SMALL, paint
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.axes import Axes

    from h3sim.results import Load

__all__ = ["GUIDE", "MERGED_GUIDE", "Box", "Lane", "boxes", "draw", "lane_of", "tallest"]

GUIDE = (
    "Each rectangle is a packet; left to right in the order its bytes reached the application;"
    " stacked: delivered together"
)
MERGED_GUIDE = (
    "Packets from left to right in the order their bytes reached the application, neighbours of"
    " one resource joined; stacked: delivered together"
)

MAX_SINGLE = 480
"""Lanes of more packets than this show neighbours of one resource as one rectangle."""
MAX_VECTORS = 5000
"""Lanes of more rectangles than this go into SVG and PDF as images, which else grow to 100 MB."""
_LANE_SHARE = 0.84
"""How much of its row a lane fills."""
_MIN_SHARE = 0.25
"""How much of its lane a lone packet fills at least, however high the stacks beside it."""
_MIN_HATCHED = 5.0
"""The width, in points, from which on a run shows its hatch."""
_EDGE, _EDGE_SHARE = 0.5, 0.25
"""The width of the white edge of a packet: in points, and at most this share of the packet's."""
_NUMBER_SIZE = SMALL - 1.5
_POINTS_PER_INCH = 72
_EM = 0.68
"""The width of a digit and its surroundings, in font sizes."""


class Box(NamedTuple):
    """A packet, or several that look like one, on *level* (0 lowest) of a stack of *height*."""

    resource: int
    start_ms: float
    stop_ms: float
    level: int
    height: int


class Lane(NamedTuple):
    """The strip of one load: its packets in the order of time, and what is drawn of them."""

    packets: list[Box]
    drawn: list[Box]

    @property
    def is_merged(self) -> bool:
        """Whether fewer rectangles are drawn than there are packets."""
        return len(self.packets) > MAX_SINGLE


def lane_of(load: Load) -> Lane:
    """Return the lane of *load*."""
    packets = list(boxes(load))
    return Lane(packets, packets if len(packets) <= MAX_SINGLE else list(joined(packets)))


def boxes(load: Load) -> Iterator[Box]:
    """Yield each packet of *load*, in the order in which they were delivered.

    A packet stands where its bytes were delivered to the application, to the left of that instant:
    as wide as a send interval, or less where something else was delivered within that interval.
    """
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    delivered_at_ns = load.trace.delivered_at_ns
    in_time = sorted((at_ns, row) for row, at_ns in enumerate(delivered_at_ns) if at_ns is not None)
    heights = Counter(at_ns for at_ns, _ in in_time)
    starts_ns: dict[int, float] = {}
    before_ns = 0
    width_ns = load.network.packet_interval_ns
    for at_ns in sorted(heights):
        starts_ns[at_ns] = max(before_ns, at_ns - width_ns)
        before_ns = at_ns
    levels: Counter[int] = Counter()
    for at_ns, row in in_time:
        resource = resource_of[load.trace.packet_rows[row][2]]
        start_ms, level = starts_ns[at_ns] / 1e6, levels[at_ns]
        yield Box(resource, start_ms, to_ms(at_ns), level, heights[at_ns])
        levels[at_ns] += 1


def joined(packets: Iterable[Box]) -> Iterator[Box]:
    """Yield *packets* with those of one resource that touch, on equal levels, made one."""
    still_open: dict[int, Box] = {}
    for box in packets:
        last = still_open.get(box.level)
        if last is not None and _touches(last, box):
            still_open[box.level] = last._replace(stop_ms=box.stop_ms)
            continue
        if last is not None:
            yield last
        still_open[box.level] = box
    yield from still_open.values()


def tallest(lanes: Iterable[Lane]) -> int:
    """Return the height of the highest stack of *lanes*."""
    return max((box.height for lane in lanes for box in lane.packets), default=1)


def stack_share(height: int, highest: int) -> float:
    """Return how much of its lane a stack fills, where *highest* fills it all.

    Up to four, all packets are equally high. Higher stacks are drawn denser, so that a packet
    alone can still be seen.

    >>> [stack_share(height, 4) for height in (1, 2, 4)], stack_share(1, 100)
    ([0.25, 0.5, 1.0], 0.25)
    """
    if highest == 1:
        return 1.0
    alone = max(1 / highest, _MIN_SHARE)
    return alone + (1 - alone) * (height - 1) / (highest - 1)


def draw(ax: Axes, lanes: Sequence[Lane], labels: Sequence[str], *, annotate: bool) -> None:
    """Draw *lanes* from top to bottom; lane n is n rows from the top, rows are 1 high."""
    highest = tallest(lanes)
    end_ms = max((box.stop_ms for lane in lanes for box in lane.packets), default=0) or 1.0
    ax.set_xlim(0, end_ms * 1.005)
    ax.set_ylim(0, len(lanes))
    bottoms = [len(lanes) - number - 0.5 - _LANE_SHARE / 2 for number in range(len(lanes))]
    for number, (lane, bottom) in enumerate(zip(lanes, bottoms, strict=True)):
        _draw_lane(ax, lane, bottom, highest, f"lane-{number + 1}")
        if annotate:
            _number_runs(ax, lane, bottom, highest)
    ax.set_yticks([bottom + _LANE_SHARE / 2 for bottom in bottoms], labels)
    ax.tick_params(labelsize=SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    guide = MERGED_GUIDE if any(lane.is_merged for lane in lanes) else GUIDE
    ax.set_xlabel(f"time since navigation start in ms\n{guide}", fontsize=SMALL)


def _touches(left: Box, right: Box) -> bool:
    width_ms = right.stop_ms - right.start_ms
    return (
        left.resource == right.resource
        and left.height == right.height
        and abs(right.start_ms - left.stop_ms) < width_ms / 100
    )


def _corners(box: Box, bottom: float, highest: int) -> list[tuple[float, float]]:
    step = stack_share(box.height, highest) * _LANE_SHARE / box.height
    low, high = bottom + box.level * step, bottom + (box.level + 1) * step
    return [(box.start_ms, low), (box.stop_ms, low), (box.stop_ms, high), (box.start_ms, high)]


def _draw_lane(ax: Axes, lane: Lane, bottom: float, highest: int, name: str) -> None:
    """Draw a collection per resource; an artist per packet would be far slower."""
    points_per_ms = _points_per_ms(ax)
    faces = _by_resource(lane.drawn, bottom, highest)
    # Narrow runs go without their hatch, in which their colour would be lost.
    wide = [
        run
        for run in joined(lane.packets)
        if (run.stop_ms - run.start_ms) * points_per_ms >= _MIN_HATCHED
    ]
    hatched = _by_resource(wide, bottom, highest)
    for resource, corners in sorted(faces.items()):
        collection = PolyCollection(corners, facecolors=paint(resource).face, linewidths=0)
        collection.set_gid(f"{name}-resource-{resource + 1}")
        collection.set_rasterized(len(lane.drawn) > MAX_VECTORS)
        ax.add_collection(collection, autolim=False)
    for resource, corners in sorted(hatched.items()):
        ax.add_collection(_hatching(corners, resource, name), autolim=False)
    if not lane.is_merged:
        every = [corner for corners in faces.values() for corner in corners]
        narrowest = min((box.stop_ms - box.start_ms for box in lane.drawn), default=0.0)
        width = min(_EDGE, _EDGE_SHARE * narrowest * points_per_ms)
        edges = PolyCollection(every, facecolors="none", edgecolors="white", linewidths=width)
        edges.set_gid(f"{name}-edges")
        ax.add_collection(edges, autolim=False)


def _by_resource(
    drawn: Iterable[Box], bottom: float, highest: int
) -> dict[int, list[list[tuple[float, float]]]]:
    found: dict[int, list[list[tuple[float, float]]]] = {}
    for box in drawn:
        found.setdefault(box.resource, []).append(_corners(box, bottom, highest))
    return found


def _hatching(corners: list[list[tuple[float, float]]], resource: int, name: str) -> PathCollection:
    """Return the hatch of a resource as one path: hatching rectangle by rectangle is slow."""
    look = paint(resource)
    collection = PathCollection(
        [Path.make_compound_path(*(Path(polygon, closed=False) for polygon in corners))],
        facecolors="none",
        edgecolors=look.ink,
        linewidths=0,
        hatch=look.hatch,
    )
    collection.set_gid(f"{name}-resource-{resource + 1}-hatch")
    return collection


def _points_per_ms(ax: Axes) -> float:
    """Return the scale of the time axis, before a layout has moved its ends a little."""
    low_ms, high_ms = ax.get_xlim()
    points = ax.get_window_extent().width / ax.figure.dpi * _POINTS_PER_INCH
    return float(points) / (high_ms - low_ms)


def _number_runs(ax: Axes, lane: Lane, bottom: float, highest: int) -> None:
    """Write a resource's number wherever its packets are alone for long enough to hold it."""
    points_per_ms = _points_per_ms(ax)
    middle = bottom + stack_share(1, highest) * _LANE_SHARE / 2
    for run in joined(box for box in lane.packets if box.height == 1):
        text = str(run.resource + 1)
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
