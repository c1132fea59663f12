"""The packets of a load as rectangles in lanes, within a time range; needs no drawing library."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from h3sim.errors import InputError
from h3sim.schema import format_value, is_quantity
from h3sim.schema.errors import plain_number
from h3sim.units import NS_PER_MS, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.results import Load


_GAP_SHARE, _LATE_SHARE = 0.5, 0.02
"""Shortest pause, relative to the time before it, after which at most 2 % of the bytes are cut off,
so that they do not squash the rest."""
_MARGIN = 1.005


class Window(NamedTuple):
    """The end of the time axis in ms, and what is to be said of what lies beyond."""

    end_ms: float
    note: str = ""

    def label(self, description: str = "") -> str:
        """Return the label of the axis, with a further *description* of it."""
        return f"time since navigation start in ms{description}{self.note and f'; {self.note}'}"


MILESTONES = {
    "first_paint_ms": ("first paint", "-"),
    "largest_paint_ms": ("largest paint", "--"),
    "dom_content_loaded_ms": ("DOMContentLoaded", "-."),
    "load_event_ms": ("load event", ":"),
}
"""Names and dashes of the times that a browser that parses the page reports."""


def instant_ns(at_ms: float) -> int:
    """Return an instant that was given in ms since navigation start.

    Raises:
        InputError: if it is none.

    >>> instant_ns(1.5)
    1500000
    """
    return ms(_checked_ms("at_ms", at_ms))


def _checked_ms(key: str, given_ms: float) -> float:
    at_ms: float = plain_number(given_ms)
    if not is_quantity(at_ms) or at_ms < 0:
        message = f"must be a time in ms, is {format_value(given_ms)}"
        raise InputError.at(key, message)
    return at_ms


def window_of(loads: Sequence[Load], until_ms: float | None = None) -> Window:
    """Return the window of *loads*: up to *until_ms*, or where that is None up to a late rest.

    Raises:
        InputError: if *until_ms* is no time.
    """
    finished = sorted(
        (timing.finished_ms, timing.bytes) for load in loads for timing in load.timings
    )
    last_ms = finished[-1][0] if finished else 0.0
    end_ms = _cut(finished) if until_ms is None else _checked_ms("until_ms", until_ms)
    if end_ms >= last_ms:
        if until_ms is None:
            last_ms = max([last_ms, *_milestones(loads)])
        return Window(last_ms * _MARGIN or 1.0)
    late = max(sum(timing.finished_ms > end_ms for timing in load.timings) for load in loads)
    what = "1 resource is" if late == 1 else f"{late} resources are"
    note = f"cut here: {what} complete later, the last at {last_ms:,.0f} ms"
    return Window(end_ms * _MARGIN or 1.0, note)


def _milestones(loads: Sequence[Load]) -> Iterator[float]:
    """Yield the milestones of loads that were painted."""
    for load in loads:
        if load.first_paint_ms is not None:
            times = (getattr(load, key) for key in MILESTONES)
            yield from (at_ms for at_ms in times if at_ms is not None)


def _cut(finished: list[tuple[float, int]]) -> float:
    """Return when what is not late is complete."""
    total = sum(n_bytes for _, n_bytes in finished)
    done = 0
    for (now_ms, n_bytes), (next_ms, _) in pairwise(finished):
        done += n_bytes
        is_long = now_ms > 0 and next_ms - now_ms > _GAP_SHARE * now_ms
        if is_long and total - done <= _LATE_SHARE * total:
            return now_ms
    return finished[-1][0] if finished else 0.0


MAX_SINGLE = 480
"""Lanes of more packets than this show neighbouring packets of a resource as one rectangle."""
_GROWTH, _MAX_LEVELS = 0.27, 8
"""Each further packet of the highest stack makes lanes higher by this share of a single packet, up
to a stack of 8; a single packet keeps its height."""
LEAST_SHARE = 1 / 800
"""Least width of a packet as a share of the axis, about a pixel, if nothing precedes it."""


class Box(NamedTuple):
    """A packet, or several of one resource, on *level* (0 lowest) of a stack of *height*.

    *resource* is an index in the page.
    """

    resource: int
    start_ms: float
    stop_ms: float
    level: int
    height: int


class LoadLane(NamedTuple):
    """The strip of one load: its packets in the order of time, and what is drawn of them."""

    packets: list[Box]
    drawn: list[Box]
    lost_ms: list[float]
    """Send times of lost packets."""
    again_ms: list[float]
    """Arrival times of retransmitted bytes."""
    above_the_fold_ms: float | None
    """Time when all resources above the fold were complete; None if there are none."""

    @property
    def is_merged(self) -> bool:
        """True if fewer rectangles are drawn than there are packets."""
        return len(self.packets) > MAX_SINGLE


def lane_of(load: Load, end_ms: float) -> LoadLane:
    """Return the lane of *load* on an axis up to *end_ms*."""
    packets = list(boxes(load, least_ms=end_ms * LEAST_SHARE))
    drawn = packets if len(packets) <= MAX_SINGLE else list(joined(packets))
    above_ms = (row.finished_ms for row in load.timings if row.above_the_fold)
    return LoadLane(packets, drawn, *_losses(load), max(above_ms, default=None))


def _losses(load: Load) -> tuple[list[float], list[float]]:
    """Return when packets left that were lost, and when bytes arrived that were sent again."""
    lost: dict[int, float] = {}
    again: dict[int, float] = {}
    ends: dict[int, int] = {}
    for sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, *_ in load.trace.packet_rows:
        if arrived_at_ns is None:
            lost[number] = to_ms(sent_at_ns)
        elif offset + n_bytes <= ends.get(stream_id, -1):
            again[number] = to_ms(arrived_at_ns)
        ends[stream_id] = max(ends.get(stream_id, 0), offset + n_bytes)
    return list(lost.values()), list(again.values())


def boxes(load: Load, *, least_ms: float = 0.0) -> Iterator[Box]:
    """Yield each packet of *load*, in the order in which they were delivered.

    A packet stands where its bytes were delivered to the application, to the left of that instant:
    as wide as a send interval, and as *least_ms*, or less where something else was delivered in
    that time.
    """
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    delivered_at_ns = load.trace.delivered_at_ns
    in_time = sorted((at_ns, row) for row, at_ns in enumerate(delivered_at_ns) if at_ns is not None)
    heights = Counter(at_ns for at_ns, _ in in_time)
    starts_ns: dict[int, float] = {}
    before_ns = 0
    width_ns = max(load.network.packet_interval_ns, least_ms * NS_PER_MS)
    for at_ns in sorted(heights):
        # Never over the delivery before it, which would hide that one.
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
    # By level, as the packets of a stack continue those that lay as high before them.
    still_open: dict[int, Box] = {}
    for box in packets:
        last = still_open.get(box.level)
        if last is not None and _continues(last, box):
            still_open[box.level] = last._replace(stop_ms=box.stop_ms)
            continue
        if last is not None:
            yield last
        still_open[box.level] = box
    yield from still_open.values()


def tallest(lanes: Iterable[LoadLane]) -> int:
    """Return the height of the highest stack of *lanes*."""
    return max((box.height for lane in lanes for box in lane.packets), default=1)


def stack_share(height: int, highest: int) -> float:
    """Return the share of its lane that a stack fills, where *highest* fills it all.

    A lane is ``1 / stack_share(1, highest)`` times as high as a single packet. Packets of a stack
    share its height equally.

    >>> [round(stack_share(1, highest), 2) for highest in (1, 2, 4, 8, 100)]
    [1.0, 0.79, 0.55, 0.35, 0.35]
    """
    if highest == 1:
        return 1.0
    alone = 1 / (1 + _GROWTH * (min(highest, _MAX_LEVELS) - 1))
    return alone + (1 - alone) * (height - 1) / (highest - 1)


def _continues(left: Box, right: Box) -> bool:
    """Return whether *right* continues the bar of *left*, so that both are drawn as one."""
    width_ms = right.stop_ms - right.start_ms
    return (
        left.resource == right.resource
        and left.height == right.height
        # Sums of floats: what touches may lie a rounding error apart.
        and abs(right.start_ms - left.stop_ms) < width_ms / 100
    )
