"""Byte ranges per stream, as qvis shows them: what arrived when, what came late, what waited."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from h3sim.plots.labels import plain
from h3sim.plots.style import SMALL
from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from h3sim.trace import Trace

__all__ = ["MAX_STREAMS", "ByteRange", "draw", "ranges_of", "shown_streams"]

MAX_STREAMS = 24
"""Of more streams the largest are shown: a stream needs some height for its bytes to rise in."""
_SHARE = 0.86
_NEW, _AGAIN, _WAITED, _DELIVERED = "#0b4f8c", "#d4622a", "#1b1b1b", "#dbe5f0"
_WIDTHS = {_NEW: 2.4, _AGAIN: 4.2, _WAITED: 0.8}
"""Of marks in points: what came again is told apart in grey print, too."""


class ByteRange(NamedTuple):
    """Bytes of a stream that arrived in one packet; *is_again*: the first copy had been lost.

    *delivered_ms* is when the application got them, None where it had them before.
    """

    stream_id: int
    arrived_ms: float
    delivered_ms: float | None
    offset: int
    n_bytes: int
    is_again: bool


def ranges_of(trace: Trace) -> list[ByteRange]:
    """Return what arrived, in the order sent."""
    found = []
    ends: dict[int, int] = {}
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
    """Return the streams that are shown, in request order: the largest, where there are many."""
    by_size = sorted(trace.requests, key=lambda request: -request.length_bytes)
    kept = {request.stream_id: None for request in by_size[:MAX_STREAMS]}
    return [request.stream_id for request in trace.requests if request.stream_id in kept]


def draw(
    ax: Axes,
    trace: Trace,
    labels: Mapping[int, str],
    title: str,
    *,
    end_ms: float,
    note: str = "",
) -> None:
    """Draw a row per stream, in which its bytes rise from bottom to top over time."""
    streams = shown_streams(trace)
    bottoms = {stream_id: len(streams) - 1 - row for row, stream_id in enumerate(streams)}
    sizes = {request.stream_id: max(1, request.length_bytes) for request in trace.requests}
    lines: dict[str, list[list[tuple[float, float]]]] = {_WAITED: [], _NEW: [], _AGAIN: []}
    edges: dict[int, list[tuple[float, float]]] = {stream_id: [] for stream_id in streams}
    for part in ranges_of(trace):
        if part.stream_id not in bottoms:
            continue
        low, high = (
            bottoms[part.stream_id] + _SHARE * offset / sizes[part.stream_id]
            for offset in (part.offset, part.offset + part.n_bytes)
        )
        if part.delivered_ms is not None:
            edges[part.stream_id].append((part.delivered_ms, high))
            if part.delivered_ms > part.arrived_ms:
                middle = (low + high) / 2
                lines[_WAITED].append([(part.arrived_ms, middle), (part.delivered_ms, middle)])
        colour = _AGAIN if part.is_again else _NEW
        lines[colour].append([(part.arrived_ms, low), (part.arrived_ms, high)])
    for stream_id, points in edges.items():
        _draw_delivered(ax, points, bottoms[stream_id], end_ms)
    _draw_marks(ax, lines)
    _dress(ax, [labels[stream_id] for stream_id in streams], title, end_ms=end_ms)
    more = len(trace.requests) - len(streams)
    told = f"; the largest of {len(trace.requests)} streams" if more else ""
    cut = f"; {note}" if note else ""
    ax.set_xlabel(f"time since navigation start in ms{told}{cut}")
    _legend(ax, lines)


def _draw_marks(ax: Axes, lines: Mapping[str, Sequence[Sequence[tuple[float, float]]]]) -> None:
    """Draw the lines of each colour, each in front of those before it."""
    for order, (colour, drawn) in enumerate(lines.items()):
        collection = LineCollection(
            drawn,
            colors=colour,
            linewidths=_WIDTHS[colour],
            # The few bytes that a packet is of a large stream stay in sight.
            capstyle="projecting",
            # Else those of less than a pixel are moved to no length at all, and not drawn.
            snap=False,
            zorder=3 + order,
        )
        collection.set_gid(f"ranges-{('waited', 'new', 'again')[order]}")
        # The limits are known; matplotlib would go through every line to find them.
        ax.add_collection(collection, autolim=False)


def _draw_delivered(
    ax: Axes, points: Sequence[tuple[float, float]], bottom: float, end_ms: float
) -> None:
    """Draw as an area how far up the application has the bytes of a stream."""
    times, tops = [0.0], [float(bottom)]
    for at_ms, top in sorted(points):
        times.append(at_ms)
        tops.append(max(top, tops[-1]))
    times.append(end_ms)
    tops.append(tops[-1])
    ax.fill_between(times, tops, bottom, step="post", color=_DELIVERED, linewidth=0, zorder=2)


def _dress(ax: Axes, labels: Sequence[str], title: str, *, end_ms: float) -> None:
    ax.set_xlim(0, end_ms)
    ax.set_ylim(-0.1, len(labels))
    ax.set_yticks([len(labels) - 1 - row + _SHARE / 2 for row in range(len(labels))], labels)
    for row in range(len(labels)):
        ax.axhline(row - 0.07, color="0.9", linewidth=0.6, zorder=1)
    ax.set_title(plain(title), fontsize=SMALL + 1, loc="left")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)


def _legend(ax: Axes, lines: Mapping[str, Sequence[object]]) -> None:
    texts = {
        _NEW: "arrived",
        _AGAIN: "sent again,\narrived",
        _WAITED: "waited\nfor bytes\nbefore it",
    }
    handles: list[Artist] = [
        Line2D([], [], color=colour, linewidth=_WIDTHS[colour], label=text)
        for colour, text in texts.items()
        if lines[colour]
    ]
    ax.legend(
        handles=[*handles, Patch(color=_DELIVERED, label="delivered\nin order")],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        borderaxespad=0.0,
        fontsize=SMALL,
    )
