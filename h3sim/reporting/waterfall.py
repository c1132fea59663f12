"""Waterfalls of one load, and of two loads compared resource by resource."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from matplotlib.colors import to_rgb

from h3sim.engine.requests import priorities_of
from h3sim.page import Kind
from h3sim.reporting.labels import ATF_MARK, KINDS, Paint, plain, resource_label, shortened, within
from h3sim.reporting.lane_layout import (
    MILESTONES,
    MIN_WIDTH_SHARE,
    ClientArrivals,
    Span,
    client_arrivals,
)
from h3sim.reporting.paper import is_narrow, paper_in
from h3sim.reporting.style import SIDE_LEGEND, finish_axes, text_size
from h3sim.reporting.time_series import bins_of
from h3sim.trace import Work
from h3sim.values.text import plural
from h3sim.values.units import NS_PER_MS, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from h3sim.load import Load, ResourceTiming
    from h3sim.reporting.labels import Palette
    from h3sim.reporting.lane_layout import Window
    from h3sim.trace import Activity


Fold = Literal["host", "kind"]
"""Common properties of the resources of a row."""
_MAX_NARROW_ROWS = 12
MAX_ROWS = 60
"""Most rows; with more resources, the smallest below the fold share rows with neighbours."""
_BAR_HEIGHT = 0.64
_LIGHT_OPACITY = 0.3
"""Opacity of a bar while none of its bytes arrive."""
_MIN_HATCHED_SHARE = 0.9
"""A bar is hatched if bytes arrived for at least this share of its time."""
_MAX_TITLE_CHARS = 40
_BAR_GUIDE = (
    "thin line: requested, nothing has arrived; {held}bar: first to last delivery, full colour at"
    " deliveries; \u25b2 above the fold"
)
_HELD_GUIDE = "narrow and red: arrived, held back for others; "
_HELD_COLOUR = "#c00000"
_HELD_HEIGHT = 0.24
_FOLDED_GUIDE = "\nrows of several resources, as 7 x image: from the first request to the last byte"
_MAX_LISTED_KINDS = 2
"""Kinds that the label of a row of several kinds lists, the most frequent ones."""
_MIXED_PAINT = Paint("#8a8a8a", "", "#ffffff")
_BANDWIDTH_LINES = 2
"""Height of the bandwidth, in rows."""
_MIN_PACKETS_PER_SPAN = 10
"""Spans of the bandwidth are at least this many packets long: shorter ones would be noise."""
_BANDWIDTH_COLOUR = "#7d9dc4"
_PAINT_BY_WORK = {
    Work.PARSE: KINDS[Kind.DOCUMENT],
    Work.STYLE: KINDS[Kind.STYLESHEET],
    Work.EXECUTE: KINDS[Kind.SCRIPT],
    Work.RENDER: KINDS[Kind.DOCUMENT],
}
"""Paint of the main thread's work: that of the kind on which it works."""


class WaterfallRow(NamedTuple):
    """Row of a resource, or of several."""

    label: str
    look: Paint
    requested_ms: float
    first_arrival_ms: float
    """Time when the first packet arrived; the client may have held its bytes back."""
    first_byte_ms: float
    """Time when the first byte was delivered to the application."""
    finished_ms: float
    chunks: tuple[Span, ...]
    """The times during which packets were delivered without a gap."""
    held: tuple[Span, ...]
    """The times during which bytes had arrived and were held back."""


def rows_of(load: Load, palette: Palette, fold: Fold | None = None) -> list[WaterfallRow]:
    """Return the rows of *load* in request order: one per resource, or fewer, folded."""
    times = _chunks_of(load), client_arrivals(load)
    priorities = priorities_of(load.trace)
    return [_make_row(load, palette, run, *times, priorities) for run in _row_groups(load, fold)]


def draw_waterfall(
    ax: Axes, load: Load, palette: Palette, window: Window, *, fold: Fold | None = None
) -> str:
    """Draw the rows of *load* in request order, for the time of *window*.

    Returns the alternative text.
    """
    rows = rows_of(load, palette, fold)
    _draw_bars(ax, rows, min_width_ms=window.end_ms * MIN_WIDTH_SHARE)
    labels = {float(number): row.label for number, row in enumerate(rows)}
    labels |= _draw_activity(ax, load, len(rows), window)
    ax.set_yticks([*labels], [*labels.values()])
    ax.set_ylim(len(rows) + _activity_lines(load) - 0.4, -0.6)
    ax.set_xlim(0, window.end_ms)
    _mark_milestones(ax, load)
    names = (load.page.name, load.scheme.name, load.network.name)
    page, scheme, network = (plain(shortened(name, _MAX_TITLE_CHARS)) for name in names)
    title = f"Waterfall of {page} with {scheme} over {network}"
    is_held = any(row.held for row in rows)
    guide = _BAR_GUIDE.format(held=_HELD_GUIDE * is_held)
    guide += _FOLDED_GUIDE * (len(rows) < len(load.timings))
    # In papers the caption explains it.
    x = window.label() if paper_in() is not None else within(ax, f"{window.label()}\n{guide}")
    finish_axes(ax, title=title, x=x, grid="x", has_rows=True)
    last = max(load.timings, key=lambda row: row.finished_ms)
    waits = max(load.timings, key=_wait_ms)
    return (
        f"A row per {fold or 'resource'}, in request order: {last.id} ends last, at"
        f" {last.finished_ms:,.0f} ms; {waits.id} waits longest for its first byte to be delivered,"
        f" {_wait_ms(waits):,.0f} ms. {_describe_holding(load)}"
    )


def _describe_holding(load: Load) -> str:
    """Describe for how long bytes that had arrived were held back, and of which resource most."""
    arrivals = client_arrivals(load)
    held_ms = {
        row.id: sum(stop_ms - start_ms for start_ms, stop_ms in arrivals[row.stream_id].held)
        for row in load.timings
        if row.stream_id in arrivals
    }
    most = max(held_ms, key=lambda id_: held_ms[id_], default=None)
    if most is None or not held_ms[most]:
        return "No byte was held back after it had arrived."
    n_held = sum(each_ms > 0 for each_ms in held_ms.values())
    return (
        f"Of {plural(n_held, 'resource')}, bytes were held back after they had arrived, longest"
        f" of {most}, for {held_ms[most]:,.0f} ms."
    )


def _wait_ms(row: ResourceTiming) -> float:
    return row.first_byte_ms - row.requested_ms


def n_lines(load: Load, palette: Palette, fold: Fold | None = None) -> int:
    """Return how many lines a waterfall of *load* has, with those of bandwidth and main thread."""
    return len(rows_of(load, palette, fold)) + _activity_lines(load)


def _activity_lines(load: Load) -> int:
    return _BANDWIDTH_LINES + any(_computations(load))


def _computations(load: Load) -> Iterator[Activity]:
    """Yield the activities of the main thread that took time."""
    for each in load.trace.activities:
        if each.work.is_computation and each.ended_at_ns > each.began_at_ns:
            yield each


def _draw_activity(ax: Axes, load: Load, first: int, window: Window) -> dict[float, str]:
    """Draw bandwidth and main thread from row *first* on; return their labels by position."""
    min_width_ms = _MIN_PACKETS_PER_SPAN * load.network.packet_interval_ns / NS_PER_MS
    bins = bins_of(load.trace, window.end_ms, min_width_ms=min_width_ms)
    peak = max(span.arrived_mbps for span in bins)
    bottom = first + _BANDWIDTH_LINES - 0.6
    height = (_BANDWIDTH_LINES - 0.3) / (peak or 1.0)
    edges = [span.start_ms for span in bins]
    edges.append(edges[-1] + (edges[1] if len(edges) > 1 else window.end_ms))
    tops = [bottom - height * span.arrived_mbps for span in bins]
    drawn = ax.stairs(tops, edges, baseline=bottom, fill=True, color=_BANDWIDTH_COLOUR)
    drawn.set_gid("bandwidth")
    ax.hlines(first - 0.5, 0, window.end_ms, color="0.6", linewidth=0.8)
    separator = "\n" if is_narrow() else " "
    labels = {(first + bottom) / 2 - 0.2: f"bandwidth, up to{separator}{peak:.3g} Mbit/s"}
    spans: dict[Work, list[tuple[float, float]]] = {}
    for each in _computations(load):
        took_ms = to_ms(each.ended_at_ns - each.began_at_ns)
        spans.setdefault(each.work, []).append((to_ms(each.began_at_ns), took_ms))
    for work, own in spans.items():
        at = first + _BANDWIDTH_LINES - _BAR_HEIGHT / 2
        bars = ax.broken_barh(
            own, (at, _BAR_HEIGHT), facecolor=_PAINT_BY_WORK[work].face, linewidth=0
        )
        bars.set_label(f"main thread: {work.value}")
        bars.set_gid(f"main-thread-{work.value}")
        labels[float(first + _BANDWIDTH_LINES)] = "main thread"
    return labels


def _draw_bars(ax: Axes, rows: Sequence[WaterfallRow], *, min_width_ms: float) -> None:
    positions, first = range(len(rows)), [row.first_byte_ms for row in rows]
    arrived = [row.first_arrival_ms for row in rows]
    ax.hlines(positions, [row.requested_ms for row in rows], arrived, color="0.35", linewidth=0.9)
    for number, row in enumerate(rows):
        _draw_chunks(ax, number, row, min_width_ms)
    # Separate frames, as the colour of an edge is that of the hatch; they also make the bar of a
    # single packet visible, which has no length.
    lengths = [row.finished_ms - row.first_byte_ms for row in rows]
    frame: dict[str, Any] = {"color": "none", "edgecolor": "0.2", "linewidth": 0.8}
    ax.barh(positions, lengths, left=first, height=_BAR_HEIGHT, **frame)


def _mark_milestones(ax: Axes, load: Load) -> None:
    """Draw lines at the milestones of a computed load."""
    if load.load_event_ms is None:
        return
    for key, (name, dashes) in MILESTONES.items():
        at_ms = getattr(load, key)
        if at_ms is not None:
            label = f"{name}: {at_ms:,.0f} ms"
            ax.axvline(at_ms, color="0.1", linestyle=dashes, linewidth=1.1, label=label)
    ax.legend(**SIDE_LEGEND)


def _row_groups(load: Load, fold: Fold | None) -> Iterator[list[ResourceTiming]]:
    """Yield the resources of each row: one, or several that are folded."""
    if fold is not None:
        groups: dict[str, list[ResourceTiming]] = {}
        for timing in load.timings:
            key = timing.kind if fold == "kind" else host_of(timing.id)
            groups.setdefault(key, []).append(timing)
        yield from groups.values()
        return
    folded = _folded_rows(load)
    # Neighbours that are folded have the same key, and thus one row; others have unique keys.
    keys = (-1 if index in folded else index for index in range(len(load.timings)))
    for _, group in groupby(zip(keys, load.timings, strict=True), key=itemgetter(0)):
        yield [timing for _, timing in group]


def host_of(id_: str) -> str:
    """Return the host of a resource whose id is a URL, "" if it is a path.

    >>> host_of("https://cdn.example.org/a.js"), host_of("a.js")
    ('cdn.example.org', '')
    """
    match = re.match(r"[a-z][a-z0-9+.-]*://([^/?#]+)", id_, re.IGNORECASE)
    return "" if match is None else match[1].lower()


def _folded_rows(load: Load) -> dict[int, None]:
    """Return the resources to fold to keep the limit of rows: small ones below the fold first."""
    timings = load.timings
    by_weight = sorted(
        range(1, len(timings)), key=lambda i: (timings[i].above_the_fold, timings[i].bytes, -i)
    )
    folded: dict[int, None] = {}
    n_rows = len(timings)
    for index in by_weight:
        if n_rows <= (_MAX_NARROW_ROWS if is_narrow() else MAX_ROWS):
            break
        # Folding the neighbour of a folded row saves a row, and between two of them another one.
        n_rows -= (index - 1 in folded) + (index + 1 in folded)
        folded[index] = None
    return folded


def _chunks_of(load: Load) -> dict[int, list[Span]]:
    """Return when the bytes of each stream were delivered, neighbouring packets as one chunk."""
    found: dict[int, list[Span]] = {}
    # Packets are neighbours if the second follows within the time of a packet, but for rounding.
    width_ms = 1.01 * load.network.packet_interval_ns / NS_PER_MS
    columns = load.trace.packet_rows.columns
    deliveries = sorted(
        (at_ns, stream_id)
        for at_ns, stream_id in zip(columns.delivered_at_ns, columns.stream_id, strict=True)
        if at_ns is not None
    )
    for at_ns, stream_id in deliveries:
        at_ms = to_ms(at_ns)
        chunks = found.setdefault(stream_id, [])
        if chunks and at_ms - chunks[-1].stop_ms <= width_ms:
            chunks[-1] = Span(chunks[-1].start_ms, at_ms)
        else:
            chunks.append(Span(at_ms, at_ms))
    return found


def _draw_chunks(ax: Axes, number: int, row: WaterfallRow, min_width_ms: float) -> None:
    """Draw a light bar, in full colour where bytes were delivered; narrow and red while held."""
    height = number - _BAR_HEIGHT / 2, _BAR_HEIGHT
    took_ms = row.finished_ms - row.first_byte_ms
    light = tuple(1 - _LIGHT_OPACITY * (1 - part) for part in to_rgb(row.look.face))
    ax.broken_barh([(row.first_byte_ms, took_ms)], height, facecolor=light, linewidth=0)
    if row.held:
        spans = [(start_ms, stop_ms - start_ms) for start_ms, stop_ms in row.held]
        narrow = number - _HELD_HEIGHT / 2, _HELD_HEIGHT
        held = ax.broken_barh(spans, narrow, facecolor=_HELD_COLOUR, linewidth=0)
        held.set_gid(f"held-{number + 1}")
    # A packet ends when it was delivered, and is wide enough to be visible, within the bar.
    spans = []
    for start_ms, stop_ms in row.chunks:
        begin_ms = max(row.first_byte_ms, min(start_ms, stop_ms - min_width_ms))
        spans.append((begin_ms, max(stop_ms - begin_ms, min_width_ms / 2)))
    drawn = ax.broken_barh(spans, height, facecolor=row.look.face, linewidth=0)
    drawn.set_gid(f"chunks-{number + 1}")
    if sum(stop_ms - start_ms for start_ms, stop_ms in row.chunks) >= _MIN_HATCHED_SHARE * took_ms:
        # A hatch would hide the colour of narrow chunks.
        drawn.set(hatch=row.look.hatch, edgecolor=row.look.ink)


def _make_row(
    load: Load,
    palette: Palette,
    run: list[ResourceTiming],
    chunks: dict[int, list[Span]],
    arrivals: dict[int, ClientArrivals],
    priorities: dict[int, str],
) -> WaterfallRow:
    indexes = [load.page.index[timing.id] for timing in run]
    look = palette.look_of_all(indexes) or _MIXED_PAINT
    if len(run) == 1:
        label = resource_label(load.page, indexes[0])
        priority = priorities.get(run[0].stream_id, "")
        label += f"  {plain(priority)}" if priority else ""
    else:
        kinds = Counter(timing.kind for timing in run)
        shown = [f"{n} {kind}" for kind, n in kinds.most_common(_MAX_LISTED_KINDS)]
        more = ", ..." if len(kinds) > _MAX_LISTED_KINDS else ""
        mixed = f"{len(run)}: {', '.join(shown)}{more}"
        label = mixed if len(kinds) > 1 else f"{len(run)} x {run[0].kind}"
        hosts = dict.fromkeys(host_of(timing.id) for timing in run)
        if len(hosts) == 1 and (host := next(iter(hosts))):
            label = f"{plain(shortened(host))}, {label}"
    arrived = [arrivals[row.stream_id] for row in run if row.stream_id in arrivals]
    first_byte_ms = min(timing.first_byte_ms for timing in run)
    return WaterfallRow(
        label,
        look,
        requested_ms=min(timing.requested_ms for timing in run),
        # An empty response has no packet with bytes.
        first_arrival_ms=min((each.first_ms for each in arrived), default=first_byte_ms),
        first_byte_ms=first_byte_ms,
        finished_ms=max(timing.finished_ms for timing in run),
        chunks=tuple(chunk for timing in run for chunk in chunks.get(timing.stream_id, ())),
        held=tuple(span for each in arrived for span in each.held),
    )


_SOONER_COLOUR, _LATER_COLOUR = "#0b4f8c", "#d4622a"
_MAX_LISTED_IDS = 4


class Delta(NamedTuple):
    """Completion times of a resource in two loads; negative *delta_ms*: earlier in the second.

    A time is None if a load did not request the resource. If the loads are of variants of a page,
    *bytes* and so on are those of the first variant that has the resource.
    """

    id: str
    kind: str
    bytes: int
    above_the_fold: bool
    first_ms: float | None
    second_ms: float | None
    delta_ms: float | None


def deltas_of(first: Load, second: Load) -> list[Delta]:
    """Return a row per resource: those of the first load's page, then others of the second's.

    Resources of two variants of a page are identified by their ids.
    """
    times = [{row.id: row.finished_ms for row in load.timings} for load in (first, second)]
    # The first load last, so that its resources replace those of the second.
    resources = {each.id: each for load in (second, first) for each in load.page.resources}
    rows = []
    for id_ in dict.fromkeys(each.id for load in (first, second) for each in load.page.resources):
        one, other = (found.get(id_) for found in times)
        delta_ms = None if one is None or other is None else other - one
        resource = resources[id_]
        kind, is_above = resource.kind.value, resource.above_the_fold
        rows.append(Delta(id_, kind, resource.size_bytes, is_above, one, other, delta_ms))
    return rows


def unshared(rows: Sequence[Delta]) -> str:
    """Describe the resources that only one of two loads requested; "" if there are none.

    >>> unshared([Delta("a.js", "script", 9, False, 3.0, None, None)])
    'only in the first: a.js'
    """
    sentences = []
    only_first = [each.id for each in rows if each.first_ms is not None and each.second_ms is None]
    only_second = [each.id for each in rows if each.first_ms is None and each.second_ms is not None]
    for name, ids in (("first", only_first), ("second", only_second)):
        names = ", ".join(plain(shortened(id_)) for id_ in ids[:_MAX_LISTED_IDS])
        more = f" and {len(ids) - _MAX_LISTED_IDS} more" if len(ids) > _MAX_LISTED_IDS else ""
        if ids:
            sentences.append(f"only in the {name}: {names}{more}")
    return "; ".join(sentences)


def shown(rows: Sequence[Delta]) -> list[tuple[int, float]]:
    """Return the resources with the largest differences, by index in the page, with these in ms."""
    known = [(index, row.delta_ms) for index, row in enumerate(rows) if row.delta_ms is not None]
    largest = sorted(known, key=lambda item: (-abs(item[1]), item[0]))
    return sorted(largest[: _MAX_NARROW_ROWS if is_narrow() else MAX_ROWS])


def draw_paired(ax: Axes, first: Load, second: Load, titles: Sequence[str]) -> str:
    """Draw a bar per resource: to the left where it was complete sooner in the second load.

    Returns the alternative text.
    """
    rows = deltas_of(first, second)
    bars = shown(rows)
    positions, values = range(len(bars)), [delta_ms for _, delta_ms in bars]
    ax.barh(
        positions,
        values,
        height=_BAR_HEIGHT,
        color=[_SOONER_COLOUR if value <= 0 else _LATER_COLOUR for value in values],
        # Distinct in grey print, too.
        hatch=["" if value <= 0 else "/////" for value in values],
        edgecolor="white",
        linewidth=0,
    )
    for position, value in zip(positions, values, strict=True):
        # On the other side of 0, where the row has no bar.
        ax.annotate(
            f"{value:+,.0f}" if round(value) else "0",
            (0, position),
            xytext=(4 if value <= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if value <= 0 else "right",
            va="center_baseline",
            fontsize=text_size(1),
        )
    ax.axvline(0, color="0.2", linewidth=0.8)
    widest = max(map(abs, values), default=0.0) or 1.0
    ax.set_xlim(-1.05 * widest, 1.05 * widest)
    ax.set_ylim(max(1, len(bars)) - 0.4, -0.6)
    names = []
    for index, _ in bars:
        mark = f" {ATF_MARK}" * rows[index].above_the_fold
        names.append(f"{index + 1}  {plain(shortened(rows[index].id))}{mark}")
    ax.set_yticks(positions, names)
    one, other = titles
    pages = dict.fromkeys(plain(shortened(load.page.name, 40)) for load in (second, first))
    n_both = sum(row.delta_ms is not None for row in rows)
    cut = f"; the {len(bars)} of {n_both} that moved most" if len(bars) < n_both else ""
    own = unshared(rows)
    finish_axes(
        ax,
        title=f"{' against '.join(pages)}: {other} against {one}",
        x=f"complete so many ms sooner (left) or later (right) with {other}{cut}"
        f"\n\u25b2 above the fold{f'; {own}' if own else ''}",
        grid="x",
        has_rows=True,
    )
    moved = [row.delta_ms for row in rows if row.delta_ms is not None]
    sooner, later = (sum(sign * delta_ms > 0 for delta_ms in moved) for sign in (-1, 1))
    return (
        f"A bar per resource: {sooner} of {len(rows)} are complete sooner with"
        f" {'the second' if one == other else other}, {later} later."
    )
