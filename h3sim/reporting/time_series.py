"""Time series of a load: byte ranges, congestion window, throughput and progress."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from h3sim.reporting.labels import folded, plain, shortened
from h3sim.reporting.output import check_choice
from h3sim.reporting.style import SIDE_LEGEND, SMALL, finish_axes, line
from h3sim.schema import format_value
from h3sim.trace import Delivery
from h3sim.values.errors import InputError, NothingToMeasureError
from h3sim.values.table import decimals_of
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from h3sim.engine.connections import Connection
    from h3sim.load import Load
    from h3sim.load.load import Which
    from h3sim.reporting.lane_layout import Window
    from h3sim.trace import RecoveryRow, Trace


MAX_STREAMS = 24
"""Most streams that are shown, the largest ones: each needs some height."""
_ROW_SHARE = 0.86
"""Share of its row that a stream fills."""
_NEW_COLOUR = "#0b4f8c"
_RESENT_COLOUR = "#d4622a"
_WAITING_COLOUR = "#1b1b1b"
_DELIVERED_COLOUR = "#dbe5f0"
_RANGE_LABELS = {
    _NEW_COLOUR: "arrived",
    _RESENT_COLOUR: "sent again,\narrived",
    _WAITING_COLOUR: "waited\nfor bytes\nbefore it",
}
_RANGE_LINE_WIDTHS = {_NEW_COLOUR: 2.4, _RESENT_COLOUR: 4.2, _WAITING_COLOUR: 0.8}
"""Line widths in points, which distinguish retransmissions in grey print, too."""


class ByteRange(NamedTuple):
    """Bytes of a stream that arrived in one packet."""

    stream_id: int
    arrived_ms: float
    delivered_ms: float | None
    """Time when the application got them; None if it had them before."""
    offset: int
    n_bytes: int
    is_again: bool
    """True if they were retransmitted."""


def ranges_of(trace: Trace) -> list[ByteRange]:
    """Return the bytes that arrived, in the order in which they were sent."""
    found = []
    ends: dict[int, int] = {}  # the highest offset sent so far, by stream
    for _, arrived_at_ns, stream_id, offset, n_bytes, _, delivered_at_ns in trace.packet_rows:
        # -1, so that a stream without a byte, which ends at 0, counts as new.
        is_again = offset + n_bytes <= ends.get(stream_id, -1)
        ends[stream_id] = max(ends.get(stream_id, 0), offset + n_bytes)
        if arrived_at_ns is not None:
            delivered_ms = None if delivered_at_ns is None else to_ms(delivered_at_ns)
            found.append(
                ByteRange(stream_id, to_ms(arrived_at_ns), delivered_ms, offset, n_bytes, is_again)
            )
    return found


def shown_streams(trace: Trace) -> list[int]:
    """Return the largest streams, which are shown, in request order."""
    by_size = sorted(trace.requests, key=lambda request: -request.length_bytes)
    largest = {request.stream_id for request in by_size[:MAX_STREAMS]}
    return [request.stream_id for request in trace.requests if request.stream_id in largest]


def draw_byte_ranges(
    ax: Axes,
    trace: Trace,
    title: str,
    window: Window,
    *,
    labels: Mapping[int, str],
    n_waited: int,
) -> str:
    """Draw a row per stream, in which its bytes rise from bottom to top over time.

    Returns the alternative text, which says that *n_waited* bytes waited for others.
    """
    streams = shown_streams(trace)
    bottoms = {stream_id: len(streams) - 1 - row for row, stream_id in enumerate(streams)}
    sizes = {request.stream_id: max(1, request.length_bytes) for request in trace.requests}
    lines: dict[str, list[list[tuple[float, float]]]] = {
        _WAITING_COLOUR: [],
        _NEW_COLOUR: [],
        _RESENT_COLOUR: [],
    }
    edges: dict[int, list[tuple[float, float]]] = {stream_id: [] for stream_id in streams}
    for part in ranges_of(trace):
        if part.stream_id not in bottoms:
            continue
        low, high = (
            bottoms[part.stream_id] + _ROW_SHARE * offset / sizes[part.stream_id]
            for offset in (part.offset, part.offset + part.n_bytes)
        )
        if part.delivered_ms is not None:
            edges[part.stream_id].append((part.delivered_ms, high))
            if part.delivered_ms > part.arrived_ms:
                middle = (low + high) / 2
                lines[_WAITING_COLOUR].append(
                    [(part.arrived_ms, middle), (part.delivered_ms, middle)]
                )
        colour = _RESENT_COLOUR if part.is_again else _NEW_COLOUR
        lines[colour].append([(part.arrived_ms, low), (part.arrived_ms, high)])
    for stream_id, points in edges.items():
        _draw_delivered(ax, points, bottoms[stream_id], window.end_ms)
    for order, (colour, drawn) in enumerate(lines.items()):
        collection = LineCollection(
            drawn,
            colors=colour,
            linewidths=_RANGE_LINE_WIDTHS[colour],
            # A packet stays visible, however small its part of a large stream.
            capstyle="projecting",
            # Lines of less than a pixel would be rounded to no length, and not drawn.
            snap=False,
            zorder=3 + order,
        )
        collection.set_gid(f"ranges-{('waited', 'new', 'again')[order]}")
        # The limits are known; matplotlib would go through every line to find them.
        ax.add_collection(collection, autolim=False)
    ax.set_xlim(0, window.end_ms)
    ax.set_ylim(-0.1, len(streams))
    ax.set_yticks(
        [bottom + _ROW_SHARE / 2 for bottom in bottoms.values()],
        [labels[stream_id] for stream_id in streams],
    )
    for row in range(len(streams)):
        ax.axhline(row - 0.07, color="0.9", linewidth=0.6, zorder=1)
    n_all = len(trace.requests)
    description = f"; the largest of {n_all} streams" if n_all > len(streams) else ""
    finish_axes(ax, title=plain(title), x=window.label(description), has_rows=True)
    handles: list[Artist] = [
        Line2D([], [], color=colour, linewidth=_RANGE_LINE_WIDTHS[colour], label=text)
        for colour, text in _RANGE_LABELS.items()
        if lines[colour]
    ]
    handles.append(Patch(color=_DELIVERED_COLOUR, label="delivered\nin order"))
    ax.legend(handles=handles, **SIDE_LEGEND)
    return (
        "A row per stream, in which its bytes rise over time; an area shows what was delivered in"
        f" order. {n_waited:,} bytes waited for others of their stream."
    )


def _draw_delivered(
    ax: Axes, points: Sequence[tuple[float, float]], bottom: float, end_ms: float
) -> None:
    """Draw the bytes of a stream that the application has as an area that grows upward."""
    times, tops, highest = [0.0], [float(bottom)], float(bottom)
    for at_ms, top in sorted(points):
        highest = max(top, highest)
        times.append(at_ms)
        tops.append(highest)
    times.append(end_ms)
    tops.append(highest)
    ax.fill_between(
        times, tops, bottom, step="post", color=_DELIVERED_COLOUR, linewidth=0, zorder=2
    )


_BYTES_PER_KB = 1000
_IN_FLIGHT_COLOUR = "#7d9dc4"
_WINDOW_COLOUR = "#1b1b1b"
_LOST_COLOUR = "#c00000"
_STEP_LINE: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.2}
"""Options of lines of values that hold until the next one."""
_MARK_SIZE = 5
_SMALL_MARK_SIZE = 2.5
_MAX_LARGE_MARKS = 100
"""Number of losses beyond which marks are smaller, so that they do not hide the window."""


class Sample(NamedTuple):
    """State of the server's loss recovery after an event; sizes are in bytes.

    *n_lost* packets were declared lost by the event.
    """

    at_ms: float
    congestion_window: int
    bytes_in_flight: int
    smoothed_rtt_ms: float
    n_lost: int


def connection_of(load: Load, number: int | None = None) -> Connection:
    """Return connection *number* of *load*, by default the one that carries most bytes.

    Raises:
        InputError: if there is no such connection.
    """
    known = {connection.number: connection for connection in load.connections}
    if number is None:
        # Of several with equally many bytes, the one that was opened first.
        return max(load.connections, key=lambda each: (each.stream_bytes, -each.number))
    if not isinstance(number, int) or number not in known:
        message = f"must be one of {', '.join(map(str, known))}, is {format_value(number)}"
        raise InputError.at("connection", message)
    return known[number]


def describe_connection(load: Load, connection: Connection) -> str:
    """Describe a connection by its number and hosts; "" if it is the only one."""
    n = len(load.connections)
    hosts = shortened(", ".join(connection.hosts), 40)
    return f"connection {connection.number} of 0 to {n - 1} ({hosts})" if n > 1 else ""


def samples_of(trace: Trace) -> list[Sample]:
    """Return the states of the server's loss recovery, by time.

    Raises:
        NothingToMeasureError: if they were not recorded, or the load had none.
    """
    if not trace.recovery:
        raise NothingToMeasureError(
            "no recovery was recorded: simulate(..., record_packets=True), over links"
        )
    return [
        Sample(
            to_ms(row.at_ns),
            row.congestion_window,
            row.bytes_in_flight,
            to_ms(row.smoothed_rtt_ns),
            len(row.lost),
        )
        for row in trace.recovery
    ]


def draw_congestion(
    ax: Axes, trace: Trace, title: str, window: Window, *, connection: str = ""
) -> str:
    """Draw the window as a line of steps above the bytes in flight, and a cross at each loss.

    Returns the alternative text, which names the *connection*.
    """
    samples = samples_of(trace)
    times = [sample.at_ms for sample in samples]
    in_flight = [sample.bytes_in_flight / _BYTES_PER_KB for sample in samples]
    windows = [sample.congestion_window / _BYTES_PER_KB for sample in samples]
    ax.fill_between(times, in_flight, step="post", color=_IN_FLIGHT_COLOUR, label="bytes in flight")
    ax.plot(times, windows, color=_WINDOW_COLOUR, label="congestion window", **_STEP_LINE)
    lost = [
        (sample.at_ms, kb) for sample, kb in zip(samples, windows, strict=True) if sample.n_lost
    ]
    if lost:
        ax.plot(
            *zip(*lost, strict=True),
            linestyle="",
            marker="x",
            color=_LOST_COLOUR,
            markersize=_MARK_SIZE if len(lost) <= _MAX_LARGE_MARKS else _SMALL_MARK_SIZE,
            label="declared lost",
        )
    _finish_curve(ax, title, "kB", window)
    largest = max(sample.congestion_window for sample in samples)
    return (
        f"The window{f' of {connection}' if connection else ''} grows to {largest:,} bytes at"
        f" most; {sum(sample.n_lost for sample in samples):,} packets were declared lost."
    )


class Transferred(NamedTuple):
    """Bytes that the server had sent by a time, and of them acknowledged and declared lost."""

    at_ms: float
    sent: int
    acknowledged: int
    lost: int


def transferred_of(trace: Trace) -> list[Transferred]:
    """Return the cumulative bytes of the server's packets, a row per change, by time.

    Packets that are declared lost and later acknowledged count as both. Senders over TCP do not
    record which packets they declare lost.

    Raises:
        NothingToMeasureError: if packets and recovery were not recorded.
    """
    samples_of(trace)
    sizes = {row.number: row.size_bytes for row in trace.wire if row.is_down}
    # Each with the index of its sum: sent, acknowledged, lost.
    sent, acknowledged, lost = range(3)
    events = [(row.sent_at_ns, sent, row.size_bytes) for row in trace.wire if row.is_down]
    events += [
        (row.at_ns, lost, sum(sizes.get(number, 0) for number in row.lost))
        for row in trace.recovery
        if row.lost
    ]
    # Acknowledgements repeat the ranges of earlier ones, so each packet counts once.
    outstanding = sorted(sizes)
    acks = [row for row in trace.wire if not row.is_down and row.arrived_at_ns is not None]
    for row in sorted(acks, key=lambda each: each.arrived_at_ns or 0):
        n_bytes = 0
        for low, high in row.acked:
            span = slice(bisect_left(outstanding, low), bisect_right(outstanding, high))
            n_bytes += sum(sizes[number] for number in outstanding[span])
            del outstanding[span]
        events.append((row.arrived_at_ns or 0, acknowledged, n_bytes))
    sums = [0, 0, 0]
    found: list[Transferred] = []
    for at_ns, index, n_bytes in sorted(events):
        sums[index] += n_bytes
        if n_bytes:
            found.append(Transferred(to_ms(at_ns), *sums))
    return found


def draw_transferred(ax: Axes, trace: Trace, title: str, window: Window) -> str:
    """Draw lines of steps for the bytes sent, acknowledged and declared lost.

    Returns the alternative text.
    """
    rows = transferred_of(trace)
    last = rows[-1]
    lines = (
        ("sent", _WINDOW_COLOUR, "-"),
        ("acknowledged", _NEW_COLOUR, "--"),
        ("declared lost", _LOST_COLOUR, ":"),
    )
    for column, (name, colour, dashes) in enumerate(lines if last.lost else lines[:2], start=1):
        ax.plot(
            [0.0, *(row.at_ms for row in rows), window.end_ms],
            [0.0, *(row[column] / _BYTES_PER_KB for row in (*rows, last))],
            color=colour,
            linestyle=dashes,
            label=name,
            **_STEP_LINE | {"linewidth": 1.4},
        )
    _finish_curve(ax, title, "kB", window)
    lost = f", {last.lost:,} declared lost" if last.lost else ""
    return (
        f"A line each rises over time to {last.sent:,} bytes sent by the server, and"
        f" {last.acknowledged:,} acknowledged{lost}."
    )


def rtt_rows_of(trace: Trace) -> list[RecoveryRow]:
    """Return the recovery states from the first acknowledgement on; earlier RTTs are guesses.

    Raises:
        NothingToMeasureError: if packets and recovery were not recorded.
    """
    samples_of(trace)
    acks = (row.arrived_at_ns for row in trace.wire if not row.is_down and row.acked)
    first = min((at_ns for at_ns in acks if at_ns is not None), default=None)
    if first is None:
        raise NothingToMeasureError("no packet was acknowledged: there is no round-trip time")
    return [row for row in trace.recovery if row.at_ns >= first]


def draw_rtt(ax: Axes, trace: Trace, title: str, window: Window) -> str:
    """Draw the latest samples as dots and the estimates as lines.

    Returns the alternative text.
    """
    rows = rtt_rows_of(trace)
    times, latest, smoothed, least = (
        [to_ms(getattr(row, name)) for row in rows]
        for name in ("at_ns", "latest_rtt_ns", "smoothed_rtt_ns", "min_rtt_ns")
    )
    ax.plot(
        times,
        latest,
        linestyle="",
        marker=".",
        markersize=3,
        color=_IN_FLIGHT_COLOUR,
        label="latest",
    )
    ax.plot(times, smoothed, color=_WINDOW_COLOUR, label="smoothed", **_STEP_LINE)
    ax.plot(times, least, color=_NEW_COLOUR, linestyle="--", label="least", **_STEP_LINE)
    _finish_curve(ax, title, "ms", window)
    return (
        f"The latest round-trip time goes from {min(latest):,.1f} to {max(latest):,.1f} ms, the"
        f" smoothed one ends at {smoothed[-1]:,.1f} ms."
    )


def _finish_curve(ax: Axes, title: str, unit: str, window: Window, description: str = "") -> None:
    """Set limits, labels and legend of curves over time, which begin at 0."""
    ax.set_xlim(0, window.end_ms)
    ax.set_ylim(bottom=0)
    finish_axes(ax, title=plain(title), x=window.label(description), y=unit, grid="both")
    ax.legend(**SIDE_LEGEND)


_TARGET_BINS = 60
"""About as many spans of time have a throughput of their own."""


class Bin(NamedTuple):
    """Bytes received in the time bin that begins at *start_ms*."""

    start_ms: float
    arrived_mbps: float
    """Bytes of responses that arrived over the link, including duplicates."""
    delivered_mbps: float
    """Bytes that the application got, once and in order."""


def bins_of(trace: Trace, end_ms: float, *, min_width_ms: float = 0.0) -> list[Bin]:
    """Return the throughput of *trace* in spans of a round length, about sixty up to *end_ms*.

    No span is shorter than *min_width_ms*: in a span for one or two packets, a single packet would
    look faster than the link.
    """
    width_ms = _round_up(max(end_ms / _TARGET_BINS, min_width_ms, 1e-3 / _TARGET_BINS))
    n_bins = math.ceil(max(end_ms, 1e-3) / width_ms)
    arrived, delivered = [0] * n_bins, [0] * n_bins
    columns = trace.packet_rows.columns
    for counted, times in ((arrived, columns.arrived_at_ns), (delivered, columns.delivered_at_ns)):
        for at_ns, n_bytes in zip(times, columns.length_bytes, strict=True):
            if at_ns is not None and (index := int(to_ms(at_ns) / width_ms)) <= n_bins:
                # Bytes that arrive at the very end belong to the last span.
                counted[min(index, n_bins - 1)] += n_bytes
    mbps_per_byte = 8 / 1000 / width_ms
    return [
        Bin(number * width_ms, n_arrived * mbps_per_byte, n_delivered * mbps_per_byte)
        for number, (n_arrived, n_delivered) in enumerate(zip(arrived, delivered, strict=True))
    ]


def draw_throughput(ax: Axes, trace: Trace, title: str, window: Window) -> str:
    """Draw the rate of what arrived as an area, of what was delivered in order as steps.

    Returns the alternative text.
    """
    bins = bins_of(trace, window.end_ms)
    edges = [span.start_ms for span in bins]
    width_ms = edges[1] if len(edges) > 1 else window.end_ms
    edges.append(edges[-1] + width_ms)
    _, arrived, delivered = zip(*bins, strict=True)
    ax.stairs(arrived, edges, fill=True, color=_IN_FLIGHT_COLOUR, label="arrived")
    ax.stairs(delivered, edges, color=_WINDOW_COLOUR, linewidth=1.2, label="delivered in order")
    _finish_curve(ax, title, "Mbit/s", window, f", in spans of {width_ms:g}")
    peak = max(bins, key=lambda span: span.arrived_mbps)
    return (
        f"Arriving bytes peak at {peak.arrived_mbps:.2f} Mbit/s, from {peak.start_ms:,.0f} ms on; a"
        " line shows what was delivered in order."
    )


def _round_up(value: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten, apart from rounding errors.

    >>> _round_up(30.0), _round_up(0.3)
    (50.0, 0.5)
    """
    power = float(10.0 ** math.floor(math.log10(value)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= value * (1 - 1e-9))


_MARKERS_PER_LINE = 6
"""Markers on a line, about: they tell lines apart that are drawn on top of each other."""


def curve(load: Load, which: Which) -> tuple[list[float], list[float]]:
    """Return times in ms and, from each on, the share of bytes in complete resources.

    The first point is the first request, with 0; the last has 1. The area above the steps is the
    ByteIndex. If these resources have no bytes, there are no points.
    """
    rows = [row for row in load.timings if row.bytes and (which == "all" or row.above_the_fold)]
    if not rows:
        return [], []
    times_ms, step = np.unique([row.finished_ms for row in rows], return_inverse=True)
    n_bytes = np.bincount(step, weights=[row.bytes for row in rows])
    begin_ms = to_ms(load.trace.requests[0].requested_at_ns)
    shares = np.cumsum(n_bytes) / n_bytes.sum()
    return [begin_ms, *times_ms.tolist()], [0.0, *shares.tolist()]


def shown_set(load: Load, which: Which) -> Which:
    """Return *which*, or "all" if the resources above the fold have no bytes.

    Raises:
        InputError: if there is no such set of resources.
    """
    check_choice("which", which, ("all", "atf"))
    try:
        load.byte_index(which)
    except NothingToMeasureError:
        return "all"
    return which


_POINTS_PER_INCH = 72
_MAX_LINES = 5
"""Lines of a ByteIndex figure: of more loads, those at even ranks have one."""


def draw_progress(
    ax: Axes,
    loads: Sequence[Load],
    labels: Sequence[str],
    which: Which,
    *,
    sample_ms: float | None = None,
) -> str:
    """Draw lines over the resources of *which*, named with their ByteIndexes, the least first.

    Returns the alternative text.
    """
    shown = shown_set(loads[0], which)
    indexes = [load.byte_index_or_none(shown, sample_ms=sample_ms) for load in loads]
    decimals = decimals_of(indexes, least=0)
    blocked = [_blocked_bytes(load) for load in loads]
    sampled = "" if sample_ms is None else f"sampled every {sample_ms:g} ms"
    stated = []
    names: dict[int, str] = {}
    for number, (label, index_ms) in enumerate(zip(labels, indexes, strict=True)):
        if index_ms is not None:
            index = f"{index_ms:,.{decimals}f} ms"
            stated.append(f"{label} has a ByteIndex of {index}{sampled and f' ({sampled})'}")
            names[number] = f"{folded(label)}: {index}"
            if len(loads) > 1 and any(blocked):
                held = f"{blocked[number] / 1000:,.0f} kB"
                stated[-1] += f" and blocks {held}"
                names[number] += f", {held}"
    ranked = sorted(names, key=lambda number: (indexes[number], number))
    n_drawn = min(len(ranked), _MAX_LINES)
    drawn = {ranked[at * (len(ranked) - 1) // max(1, n_drawn - 1)] for at in range(n_drawn)}
    for at, number in enumerate(sorted(drawn)):
        _draw_line(ax, at, n_drawn, curve(loads[number], shown), names[number])
    title = "ByteIndex of " + (
        "the resources above the fold" if shown == "atf" else "all resources"
    )
    if shown != which:
        title += f" (above the fold: {loads[0].page.nothing_visible_reason})"
    lines = ax.get_lines()
    if len(loads) == 1 and lines:
        # A legend would cover the only line, or take its room beside it.
        title += f": {indexes[0]:,.0f} ms{sampled and f', {sampled}'}"
    pad = 6.0
    if 1 < len(lines) == len(ranked) and not any("\n" in name for name in names.values()):
        pad += _label_ends(ax, lines)
        title += " (at the ends of the lines" + ", and bytes held back" * any(blocked) + ")"
    elif len(lines) > 1:
        name = f"ByteIndex{sampled and f',{chr(10)}{sampled}'}"
        if any(blocked):
            name = f"ByteIndex{sampled and f', {sampled}'},\nbytes held back (HOL)"
        if len(ranked) > len(lines):
            name += f"\n({len(lines)} of {len(ranked)} are drawn)"
        look = {"title": name, "title_fontsize": SMALL, "alignment": "left", "handlelength": 4}
        by_name = {each.get_label(): each for each in lines}
        # Loads without a line are listed, too, in their rank.
        unseen = Line2D([], [], linestyle="none")
        handles = [by_name.get(names[number], unseen) for number in ranked]
        ax.legend(handles, [names[number] for number in ranked], **SIDE_LEGEND | look)
    elif not lines:
        ax.text(0.5, 0.5, "no resource has a byte", ha="center", transform=ax.transAxes)
    y = "share of bytes in\ncomplete resources"
    finish_axes(ax, title=title, x="time since navigation start in ms", y=y, grid="both")
    ax.set_title(title, fontsize=SMALL + 1, loc="left", pad=pad)
    ax.set_xlim(left=0)
    ax.set_ylim(0, 1.03)
    description = ", ".join(stated) or "none has a byte to weigh"
    return f"A line per load rises from 0 to 1: {description}."


# Wide, as a legend beside other axes will make these narrower.
_CHAR_WIDTH_PT, _LABEL_HEIGHT_PT = 0.85 * SMALL, 1.35 * SMALL


def _label_ends(ax: Axes, lines: Sequence[Line2D]) -> float:
    """Write each line's name above its end, in rows where they would overlap; return their height.

    All lines end at 1.
    """
    ends = [float(np.max(each.get_xdata())) for each in lines]
    width_pt = float(ax.get_window_extent().width) / ax.figure.dpi * _POINTS_PER_INCH
    ms_per_pt = max(ends) / width_pt or 1.0
    rows: list[list[tuple[float, float]]] = []
    for end_ms, each in sorted(zip(ends, lines, strict=True), key=lambda item: -item[0]):
        name = str(each.get_label())
        width_ms = len(name) * _CHAR_WIDTH_PT * ms_per_pt
        is_right = end_ms > width_ms
        span = (end_ms - width_ms, end_ms) if is_right else (end_ms, end_ms + width_ms)
        row = next(
            (
                number
                for number, taken in enumerate(rows)
                if all(span[1] < low or high < span[0] for low, high in taken)
            ),
            len(rows),
        )
        rows += [[]] * (row == len(rows))
        rows[row] = [*rows[row], span]
        ax.annotate(
            name,
            (end_ms, 1.0),
            (4 if is_right else -4, 6 + row * _LABEL_HEIGHT_PT),
            textcoords="offset points",
            ha="right" if is_right else "left",
            color=each.get_color(),
            fontsize=SMALL,
        )
    return len(rows) * _LABEL_HEIGHT_PT


def _blocked_bytes(load: Load) -> int:
    """Return the bytes that waited for a gap, in the order in which the transport delivers."""
    hol = load.hol
    is_tcp = load.connections[0].trace.delivery is Delivery.CONNECTION
    return hol.connection_bytes if is_tcp else hol.stream_bytes


def _draw_line(
    ax: Axes, number: int, of: int, points: tuple[list[float], list[float]], label: str
) -> None:
    """Draw line *number* of *of*, with markers at other points than the others', and at its end."""
    last = len(points[0]) - 1
    step = max(1, (last + 1) // _MARKERS_PER_LINE)
    ax.plot(
        *points,
        **line(number)._asdict() | _STEP_LINE,
        markevery=[*range(1 + number * step // of, last, step), last],
        markersize=4.5,
        markerfacecolor="white",
        label=label,
        clip_on=False,
    )
