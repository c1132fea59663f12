"""The packets of a load as rectangles in lanes, within a time range; needs no drawing library."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from h3sim.schema import format_value, is_quantity
from h3sim.schema.errors import plain_number
from h3sim.values.errors import InputError
from h3sim.values.units import NS_PER_MS, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.load import Load


# An axis is cut at a long pause if few bytes follow, so that these do not squash the rest.
_MIN_GAP_SHARE = 0.5
"""Least pause at which an axis is cut, as a share of the time before it."""
_MAX_LATE_SHARE = 0.02
"""Largest share of the bytes that may follow where an axis is cut."""
_AXIS_MARGIN = 1.005
"""Factor by which an axis is longer than its data, so that the last packet is not at the edge."""


class Window(NamedTuple):
    """The end of the time axis in ms, with a note on data beyond it."""

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
"""Milestones of a computed load, with names and dashes of their lines."""


def instant_ns(at_ms: float) -> int:
    """Convert a time of the user, in ms since navigation start.

    Raises:
        InputError: if it is not a time.

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
    """Return the window of *loads*: up to *until_ms*, or else up to resources that are very late.

    Raises:
        InputError: if *until_ms* is not a time.
    """
    finished = sorted(
        (timing.finished_ms, timing.bytes) for load in loads for timing in load.timings
    )
    last_ms = finished[-1][0] if finished else 0.0
    end_ms = _last_before_late(finished) if until_ms is None else _checked_ms("until_ms", until_ms)
    if end_ms >= last_ms:
        if until_ms is None:
            last_ms = max([last_ms, *_milestones(loads)])
        return Window(last_ms * _AXIS_MARGIN or 1.0)
    late = max(sum(timing.finished_ms > end_ms for timing in load.timings) for load in loads)
    what = "1 resource is" if late == 1 else f"{late} resources are"
    note = f"cut here: {what} complete later, the last at {last_ms:,.0f} ms"
    return Window(end_ms * _AXIS_MARGIN or 1.0, note)


def _milestones(loads: Sequence[Load]) -> Iterator[float]:
    """Yield the milestones of loads that were painted."""
    for load in loads:
        if load.load_event_ms is not None:
            times = (getattr(load, key) for key in MILESTONES)
            yield from (at_ms for at_ms in times if at_ms is not None)


def _last_before_late(finished: list[tuple[float, int]]) -> float:
    """Return the last completion before resources that are very late; *finished* is by time."""
    total = sum(n_bytes for _, n_bytes in finished)
    complete = 0
    for (now_ms, n_bytes), (next_ms, _) in pairwise(finished):
        complete += n_bytes
        is_long_pause = now_ms > 0 and next_ms - now_ms > _MIN_GAP_SHARE * now_ms
        if is_long_pause and total - complete <= _MAX_LATE_SHARE * total:
            return now_ms
    return finished[-1][0] if finished else 0.0


MAX_SEPARATE = 480
"""Lanes of more packets than this show neighbouring packets of a resource as one rectangle."""
# Lanes grow with their highest stack, so that a single packet keeps its height, but only up to a
# limit, so that figures stay small.
_LANE_GROWTH = 0.27
"""Height that each further packet of a stack adds, as a share of a single packet's."""
_MAX_GROWTH_LEVELS = 8
"""Stacks higher than this make lanes no higher."""
MIN_WIDTH_SHARE = 1 / 800
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
    """The strip of one load, with its packets in the order of time."""

    packets: list[Box]
    drawn: list[Box]
    """Rectangles to draw: the packets, or with very many of them neighbours made one."""
    lost_ms: list[float]
    """Send times of packets that were lost on the way."""
    dropped_ms: list[float]
    """Send times of packets that the queue of the bottleneck dropped."""
    again_ms: list[float]
    """Arrival times of retransmitted bytes."""
    above_the_fold_ms: float | None
    """Time when all resources above the fold were complete; None if there are none."""

    @property
    def is_merged(self) -> bool:
        """True if fewer rectangles are drawn than there are packets."""
        return len(self.packets) > MAX_SEPARATE


def lane_of(load: Load, end_ms: float) -> LoadLane:
    """Return the lane of *load* on an axis up to *end_ms*."""
    packets = list(boxes(load, min_width_ms=end_ms * MIN_WIDTH_SHARE))
    drawn = packets if len(packets) <= MAX_SEPARATE else list(joined(packets))
    above_ms = (row.finished_ms for row in load.timings if row.above_the_fold)
    return LoadLane(packets, drawn, *_losses(load), max(above_ms, default=None))


def _losses(load: Load) -> tuple[list[float], list[float], list[float]]:
    """Return when lost and dropped packets were sent, and when retransmitted bytes arrived."""
    # By packet number, as a packet may have rows of several streams.
    lost: dict[int, float] = {}
    dropped: dict[int, float] = {}
    queue_drops = set(load.trace.queue_drops)
    again: dict[int, float] = {}
    ends: dict[int, int] = {}  # the highest offset sent so far, by stream
    for sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, *_ in load.trace.packet_rows:
        if arrived_at_ns is None:
            (dropped if number in queue_drops else lost)[number] = to_ms(sent_at_ns)
        elif offset + n_bytes <= ends.get(stream_id, -1):
            again[number] = to_ms(arrived_at_ns)
        ends[stream_id] = max(ends.get(stream_id, 0), offset + n_bytes)
    return list(lost.values()), list(dropped.values()), list(again.values())


class Span(NamedTuple):
    """A time from *start_ms* to *stop_ms*."""

    start_ms: float
    stop_ms: float


class ClientArrivals(NamedTuple):
    """The arrival of a stream's bytes at the client, and the times for which some were held back.

    Bytes are held back while earlier ones of their stream, of the connection (TCP), or of their
    record (TLS) are missing. The application had nothing of them until then.
    """

    first_ms: float
    """Arrival of the first packet with new bytes, which need not be the first ones."""
    held: tuple[Span, ...]
    """The times at which at least one packet had arrived and was not delivered, rising."""


def client_arrivals(load: Load) -> dict[int, ClientArrivals]:
    """Return when packets of each stream arrived, and when some of them waited, by stream."""
    columns = load.trace.packet_rows.columns
    waits: dict[int, list[tuple[int, int]]] = {}
    for stream_id, arrived_at_ns, delivered_at_ns in zip(
        columns.stream_id, columns.arrived_at_ns, columns.delivered_at_ns, strict=True
    ):
        if arrived_at_ns is not None and delivered_at_ns is not None:
            waits.setdefault(stream_id, []).append((arrived_at_ns, delivered_at_ns))
    return {
        stream_id: ClientArrivals(to_ms(min(found)[0]), merged_spans(found))
        for stream_id, found in waits.items()
    }


def merged_spans(spans_ns: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    """Return the times that *spans_ns* cover, without those of no length.

    >>> merged_spans([(5_000_000, 9_000_000), (1_000_000, 2_000_000), (8_000_000, 10_000_000)])
    (Span(start_ms=1.0, stop_ms=2.0), Span(start_ms=5.0, stop_ms=10.0))
    """
    found: list[tuple[int, int]] = []
    for start_ns, stop_ns in sorted(spans_ns):
        if start_ns == stop_ns:
            continue
        if found and start_ns <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop_ns)
        else:
            found.append((start_ns, stop_ns))
    return tuple(Span(to_ms(start_ns), to_ms(stop_ns)) for start_ns, stop_ns in found)


def boxes(load: Load, *, min_width_ms: float = 0.0) -> Iterator[Box]:
    """Yield each packet of *load*, in the order in which they were delivered.

    A packet's box ends when its bytes were delivered to the application. It is as wide as a send
    interval, or as *min_width_ms* if that is more, or less if the delivery before was later.
    """
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    delivered_at_ns = load.trace.delivered_at_ns
    deliveries = sorted(
        (at_ns, row) for row, at_ns in enumerate(delivered_at_ns) if at_ns is not None
    )
    heights = Counter(at_ns for at_ns, _ in deliveries)
    starts_ns: dict[int, float] = {}
    previous_ns = 0
    width_ns = max(load.network.packet_interval_ns, min_width_ms * NS_PER_MS)
    for at_ns in sorted(heights):
        # Not before the previous delivery, which would be hidden.
        starts_ns[at_ns] = max(previous_ns, at_ns - width_ns)
        previous_ns = at_ns
    levels: Counter[int] = Counter()
    for at_ns, row in deliveries:
        resource = resource_of[load.trace.packet_rows.columns.stream_id[row]]
        start_ms, level = starts_ns[at_ns] / 1e6, levels[at_ns]
        yield Box(resource, start_ms, to_ms(at_ns), level, heights[at_ns])
        levels[at_ns] += 1


def joined(packets: Iterable[Box]) -> Iterator[Box]:
    """Yield *packets*, with touching ones of one resource on the same level made one."""
    open_by_level: dict[int, Box] = {}
    for box in packets:
        last = open_by_level.get(box.level)
        if last is not None and _continues(last, box):
            open_by_level[box.level] = last._replace(stop_ms=box.stop_ms)
            continue
        if last is not None:
            yield last
        open_by_level[box.level] = box
    yield from open_by_level.values()


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
    alone = 1 / (1 + _LANE_GROWTH * (min(highest, _MAX_GROWTH_LEVELS) - 1))
    return alone + (1 - alone) * (height - 1) / (highest - 1)


def _continues(left: Box, right: Box) -> bool:
    """Return whether *right* continues the bar of *left*, so that both are drawn as one."""
    width_ms = right.stop_ms - right.start_ms
    return (
        left.resource == right.resource
        and left.height == right.height
        # Touching boxes may be apart by a rounding error.
        and abs(right.start_ms - left.stop_ms) < width_ms / 100
    )
