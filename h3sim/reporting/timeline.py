"""The linked timeline of a report: packets, waterfall, progress and the server on one axis."""

from __future__ import annotations

import html
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from h3sim.reporting.labels import ATF_MARK, Palette, shortened
from h3sim.reporting.lane_layout import ClientArrivals, client_arrivals, lane_of, window_of
from h3sim.reporting.script_data import data_element
from h3sim.reporting.time_series import connection_of, curve
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from h3sim.load import Load


_MAX_PACKETS = 150_000
"""Most packets of all loads of a timeline: more would make files of more than 5 MB."""
_MAX_MATTERING, _N_LATEST = 20, 3
"""Rows of large pages that are not folded by kind: the largest that matter, and the latest."""
_MS_DECIMALS = 2
"""Decimals of times in the file, which would grow with more."""
_WIRE_BINS = 4000
"""Spans of time for each of which the bytes in flight are shown: more than a screen has pixels."""

_TIMELINE_CSS = """
.timeline .stage { position: relative; touch-action: pan-y; cursor: crosshair; }
.timeline canvas { display: block; width: 100%; }
.timeline canvas + canvas { position: absolute; inset: 0 auto auto 0; }
.timeline .stage:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
/* What changes with each move must not have the whole report laid out anew. */
.timeline { contain: content; }
.timeline output { display: block; height: 4.6em; overflow: hidden; contain: strict;
  font-size: 0.875rem; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.timeline button, .timeline select { font: inherit; font-size: 0.875rem; padding: 0.2rem 0.6rem; }
.timeline .rows { max-height: 20rem; overflow: auto; position: relative; margin-top: 0.5rem;
  contain: content; }
.timeline ~ figure { content-visibility: auto; contain-intrinsic-size: auto 40rem; }
.timeline tbody tr { cursor: pointer; }
.timeline .rows td + td, .timeline .rows th + th + th { text-align: right; }
.timeline tr.on { background: var(--chosen); }
.timeline thead th { position: sticky; top: 0; background: var(--paper); }
.timeline .keys { font-size: 0.875rem; }
@media print { .timeline button, .timeline .keys, .timeline .rows { display: none; } }
"""
_COLUMN_HEADS = (
    *("resource", "kind", "bytes", "requested, ms", "first packet, ms"),
    *("first byte delivered, ms", "complete, ms"),
)
_INSTRUCTIONS = (
    "Drag to pan, or zoom with Ctrl or Shift and the wheel; click a packet or a row to keep it"
    " highlighted, or a folded row to open it. Keys: \N{LEFTWARDS ARROW} \N{RIGHTWARDS ARROW} move"
    " the cursor, \N{UPWARDS ARROW} \N{DOWNWARDS ARROW} choose a resource, Enter opens its folded"
    " row, + and - zoom, Home shows all, Esc clears the choice."
    " In a row, a thin line shows that nothing has arrived, a narrow red bar that bytes have"
    " arrived and are held back until others come, and a bar the time from the first to the last"
    " byte that was delivered to the browser."
    " The dashed line marks when everything above the fold is complete; red marks show when packets"
    " were sent that got lost on the way, brown ones when packets were sent that the queue of the"
    " bottleneck dropped. The curves show the share of bytes in complete resources and, where"
    " packets take time, the bytes in flight; and, if they were recorded, the congestion window and"
    " the bytes in the send buffer."
)


@dataclass(frozen=True)
class Timeline:
    """Timeline of loads of one page, with a name for each load."""

    style: ClassVar[str] = _TIMELINE_CSS
    """CSS of all timelines of a file, which `timeline.js` draws."""

    title: str
    names: Sequence[str]
    loads: Sequence[Load]

    def to_html(self, name: str) -> str:
        """Return the figure as HTML that needs `timeline.js`; its ids begin with *name*."""
        documents = list(_all_script_data(self.names, self.loads))
        options = "".join(f"<option>{html.escape(each['name'])}</option>" for each in documents)
        left_out = len(self.loads) - len(documents)
        more = f"<p>{left_out} more loads are left out here.</p>" if left_out else ""
        heads = "".join(f'<th scope="col">{head}</th>' for head in _COLUMN_HEADS)
        title = html.escape(self.title)
        return (
            f'<figure class="timeline" aria-labelledby="{name}-title">'
            f'<figcaption id="{name}-title">{title}</figcaption>\n'
            f"<p><label>Load <select>{options}</select></label>"
            ' <button type="button" data-do="in">Zoom in</button>'
            ' <button type="button" data-do="out">Zoom out</button>'
            ' <button type="button" data-do="all">Show all</button>'
            ' <label><input type="checkbox" data-do="fold"> Fold rows by kind</label></p>\n'
            '<output aria-live="polite"></output>\n'
            f'<div class="stage" role="application" tabindex="0" aria-label="{title}"'
            f' aria-describedby="{name}-keys"><canvas></canvas><canvas></canvas></div>\n'
            f'<p class="keys" id="{name}-keys">{_INSTRUCTIONS}</p>{more}\n'
            f'<div class="rows" tabindex="0" role="group" aria-label="Resources of the timeline">'
            f"<table><caption>Resources in request order</caption><thead><tr>{heads}</tr></thead>"
            "<tbody></tbody></table></div>\n"
            "<noscript><p>The timeline needs JavaScript; the figures and tables below do not."
            "</p></noscript>\n"
            f"{data_element(documents)}</figure>\n"
        )


def _all_script_data(names: Sequence[str], loads: Sequence[Load]) -> Iterator[dict[str, Any]]:
    n_packets = 0
    for name, load in zip(names, loads, strict=True):
        n_packets += len(load.trace.packet_rows)
        if n_packets > _MAX_PACKETS and load is not loads[0]:
            return
        yield _script_data(name, load)


def _script_data(name: str, load: Load) -> dict[str, Any]:
    """Return the data of *load* that `timeline.js` draws: times in ms, rows in request order."""
    end_ms = window_of([load]).end_ms
    palette = Palette(load.page)
    lane = lane_of(load, end_ms)
    indices = [load.page.index[row.id] for row in load.timings]
    row_of = {index: row for row, index in enumerate(indices)}
    arrivals = client_arrivals(load)
    boxes = sorted(lane.packets, key=lambda box: (box.stop_ms, box.level))
    return {
        "name": name,
        "end": max(end_ms, max((row.finished_ms for row in load.timings), default=0.0)),
        "fold": lane.above_the_fold_ms,
        "lost": _rounded(lane.lost_ms),
        "dropped": _rounded(lane.dropped_ms),
        "resources": [
            {
                "label": f"{index + 1} {shortened(row.id)}{f' {ATF_MARK}' * row.above_the_fold}",
                "name": f"{index + 1} {row.id}",
                "kind": str(row.kind),
                "bytes": row.bytes,
                "face": palette.look(palette.groups[index]).face,
                "row_face": (palette.look_of_all([index]) or palette.look(0)).face,
                "requested": round(row.requested_ms, _MS_DECIMALS),
                "arrived": round(arrived.first_ms, _MS_DECIMALS),
                "held": [_rounded(span) for span in arrived.held],
                "first": round(row.first_byte_ms, _MS_DECIMALS),
                "finished": round(row.finished_ms, _MS_DECIMALS),
            }
            for index, row in zip(indices, load.timings, strict=True)
            # An empty response has no packet with bytes.
            for arrived in (arrivals.get(row.stream_id, ClientArrivals(row.first_byte_ms, ())),)
        ],
        "matters": _mattering_rows(load),
        "packets": {
            "row": [row_of[box.resource] for box in boxes],
            "start": _rounded([box.start_ms for box in boxes]),
            "stop": _rounded([box.stop_ms for box in boxes]),
            "level": [box.level for box in boxes],
            "height": [box.height for box in boxes],
        },
        "progress": [
            {"name": label, "t": _rounded(times), "y": [round(share, 5) for share in shares]}
            for which, label in (("all", "of all bytes"), ("atf", "above the fold"))
            if (points := curve(load, which))[0]  # type: ignore[arg-type]
            for times, shares in (points,)
        ],
        "wire": _bytes_in_flight(load, end_ms),
        "window": _recovery_changes(load, "congestion_window"),
        "buffer": _recovery_changes(load, "buffered_bytes"),
    }


def _mattering_rows(load: Load) -> list[int]:
    """Return the rows that are not folded: blocking or above the fold, and those complete last."""
    rows = range(len(load.timings))
    resources = [load.page.resources[load.page.index[row.id]] for row in load.timings]
    chosen = [
        row for row in rows if resources[row].above_the_fold or resources[row].render_blocking
    ]
    chosen.sort(key=lambda row: (-load.timings[row].bytes, row))
    latest = sorted(rows, key=lambda row: (-load.timings[row].finished_ms, row))
    return sorted({*chosen[:_MAX_MATTERING], *latest[:_N_LATEST]})


def _rounded(times_ms: Sequence[float]) -> list[float]:
    return [round(float(at_ms), _MS_DECIMALS) for at_ms in times_ms]


def _bytes_in_flight(load: Load, end_ms: float) -> dict[str, list[float]]:
    """Return the most bytes in flight in each short span, of packets that arrived."""
    changes: list[tuple[int, int]] = []
    for sent_at_ns, arrived_at_ns, _, _, n_bytes, *_ in load.trace.packet_rows:
        if arrived_at_ns is not None:
            changes += ((sent_at_ns, n_bytes), (arrived_at_ns, -n_bytes))
    max_bytes: dict[int, int] = {}
    last_span = in_flight = 0
    for at_ns, change in sorted(changes):
        last_span = int(to_ms(at_ns) / end_ms * _WIRE_BINS)
        in_flight += change
        max_bytes[last_span] = max(max_bytes.get(last_span, 0), in_flight)
    times = [span * end_ms / _WIRE_BINS for span in max_bytes]
    return {
        "t": [*_rounded(times), round((last_span + 1) * end_ms / _WIRE_BINS, _MS_DECIMALS)],
        "y": [*max_bytes.values(), in_flight],
    }


def _recovery_changes(load: Load, name: str) -> dict[str, list[float]] | None:
    """Return a value of the recovery state at each of its changes.

    The state is that of the connection with most bytes. None if it was not recorded, or is always
    0.
    """
    states = [(row.at_ns, getattr(row, name)) for row in connection_of(load).trace.recovery]
    if not any(value for _, value in states):
        return None
    changed = [next(equal) for _, equal in groupby(states, key=itemgetter(1))]
    return {
        "t": _rounded([to_ms(at_ns) for at_ns, _ in changed]),
        "y": [value for _, value in changed],
    }
