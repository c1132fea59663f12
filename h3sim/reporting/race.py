"""Races: loads of one page side by side, as pages that fill in, in one HTML file."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.reporting.animation import STYLE, legend_of, player_controls, scene_of
from h3sim.reporting.document import check_suffix, html_page
from h3sim.reporting.labels import shortened
from h3sim.schema import write_atomically
from h3sim.table import Column, Table
from h3sim.trace import Delivery

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from h3sim.page import Page
    from h3sim.reporting.labels import Palette
    from h3sim.results import Load


MAX_BOXES = 120
"""Most boxes of a page: the largest resources, in the order of the page."""
_WIDTH, _HEIGHT = 480, 300
_LEAST_SHARE = 0.004
"""Least share of the viewport that a box has, so that it can be seen."""
_DIGITS = 2
_SPEEDS = (("1/50 of real time", 0.02), ("1/10", 0.1), ("1/4", 0.25), ("real time", 1.0))
_STEADY_S = 12.0
"""About so long a race plays with the speed that is chosen at first."""
_WIDTH_REM = 76
_KEYS = (
    "<p>Keys: <kbd>Space</kbd> plays and pauses, <kbd>&larr;</kbd> and <kbd>&rarr;</kbd> go to"
    " the next time at which a resource is complete, <kbd>D</kbd> to the next at which it is"
    " complete with one and not with all, <kbd>Home</kbd> to the start. Below each page:"
    " packets from the server (left) to the browser; a red cross is a lost one. Frames of the"
    " filmstrip with a thick edge differ from the one before.</p>\n"
)
_RACE_STYLE = """
.lanes { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
.lanes canvas { display: block; width: 100%; height: auto; }
.lanes h2 { margin: 0.25rem 0; overflow-wrap: anywhere; }
.lanes p { margin: 0.25rem 0; font-variant-numeric: tabular-nums; }
.film canvas { display: block; margin: 0.25rem 0; max-width: none; }
@media print { .controls { display: none; } }
"""


class ViewportBox(NamedTuple):
    """A resource of the viewport: its index in the page, and its rectangle in pixels."""

    resource: int
    left: float
    top: float
    width: float
    height: float


def boxes_of(page: Page) -> list[ViewportBox]:
    """Return the rectangles of what is above the fold, or of all where nothing is marked.

    Pages record which share of the viewport a resource covers, not where: rectangles have these
    shares as areas, in the order of the page from the top left on. Resources without a share split
    what is left by their bytes.

    >>> import h3sim
    >>> [box.resource for box in boxes_of(h3sim.load_page("davies-meenan"))]
    [0, 1, 6, 7]
    """
    resources = page.resources
    chosen = [index for index, each in enumerate(resources) if each.above_the_fold]
    chosen = chosen or list(range(len(resources)))
    largest = sorted(chosen, key=lambda index: (-resources[index].size_bytes, index))[:MAX_BOXES]
    chosen = sorted(largest)
    known = sum(resources[index].viewport or 0.0 for index in chosen)
    unknown = [index for index in chosen if resources[index].viewport is None]
    n_bytes = sum(resources[index].size_bytes for index in unknown) or 1
    left = max(1.0 - known, 0.25)
    shares = []
    for index in chosen:
        share = resources[index].viewport
        own = left * resources[index].size_bytes / n_bytes if share is None else share
        shares.append(max(own, _LEAST_SHARE))
    total = sum(shares)
    areas = [_WIDTH * _HEIGHT * share / total for share in shares]
    return list(_strips(chosen, areas))


def _strips(resources: Sequence[int], areas: Sequence[float]) -> Iterator[ViewportBox]:
    """Yield rectangles in rows that fill the viewport, nearly square (Bederson et al. 2002)."""
    top, first = 0.0, 0
    while first < len(areas):
        last = first + 1
        while last < len(areas) and _aspect(areas[first : last + 1]) < _aspect(areas[first:last]):
            last += 1
        height = sum(areas[first:last]) / _WIDTH
        left = 0.0
        for resource, area in zip(resources[first:last], areas[first:last], strict=True):
            yield ViewportBox(resource, left, top, area / height, height)
            left += area / height
        top, first = top + height, last


def _aspect(areas: Sequence[float]) -> float:
    """Return the mean ratio of the longer side to the shorter of a row of *areas*."""
    height = sum(areas) / _WIDTH
    ratios = [area / height / height for area in areas]
    return sum(max(ratio, 1 / ratio) for ratio in ratios) / len(ratios)


class CompletionDifference(NamedTuple):
    """A time after which a resource is complete in some loads (by index), and not in others."""

    at_ms: float
    resource: int
    complete: tuple[int, ...]


def differences_of(loads: Sequence[Load]) -> list[CompletionDifference]:
    """Return when a visible resource became complete in a load, but not yet in all, by time."""
    finished = _finished(loads)
    found = []
    for box in boxes_of(loads[0].page):
        times = finished[box.resource]
        known = sorted({at_ms for at_ms in times if at_ms is not None})
        for at_ms in known:
            complete = [i for i, each in enumerate(times) if each is not None and each <= at_ms]
            if len(complete) < len(times):
                found.append(CompletionDifference(at_ms, box.resource, tuple(complete)))
    return sorted(found)


def _finished(loads: Sequence[Load]) -> list[list[float | None]]:
    """Return when each resource of the page was complete in each load."""
    times = [{row.id: row.finished_ms for row in load.timings} for load in loads]
    return [[own.get(each.id) for own in times] for each in loads[0].page.resources]


def page_of(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> str:
    """Return the race of *loads* as a whole file; *names* tell them apart."""
    page = loads[0].page
    title = f"Race of {page.name}: {', '.join(names)}"
    document = _document(loads, names, palette)
    # `</script>` in a name would end the element, whatever quotes stand around it.
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    words = "".join(f"<p>{html.escape(each)}</p>" for each in words_of(loads, names))
    lanes = "".join(
        f'<section aria-labelledby="lane-{number}"><h2 id="lane-{number}">{html.escape(name)}</h2>'
        f'<p id="clock-{number}"></p><canvas id="page-{number}" role="img" aria-label="Viewport and'
        f' packets with {html.escape(name)}; the status says the same in words"></canvas></section>'
        for number, name in enumerate(names)
    )
    film = "".join(
        f'<canvas id="film-{number}" role="img" aria-label="Filmstrip with {html.escape(name)};'
        ' the table says when each resource was complete"></canvas>'
        for number, name in enumerate(names)
    )
    body = (
        f"<main>\n<h1>{html.escape(title)}</h1>\n{words}\n{_controls(document)}"
        f'<div class="lanes">{lanes}</div>\n{legend_of(page, palette)}'
        '<h2>Filmstrip</h2><div class="scroll film" tabindex="0" role="group"'
        f' aria-label="Filmstrip">{film}</div>\n'
        '<div class="scroll" tabindex="0" role="group" aria-label="Completion times">'
        f"{_table(loads, names).to_html(most_rows=MAX_BOXES)}</div>\n</main>\n"
        f'<script type="application/json" id="race">{data}</script>\n'
    )
    script = files("h3sim.reporting").joinpath("race.js").read_text(encoding="utf-8")
    return html_page(title, body, style=STYLE + _RACE_STYLE, width_rem=_WIDTH_REM, script=script)


def words_of(loads: Sequence[Load], names: Sequence[str]) -> list[str]:
    """Return in sentences how the race ends, for readers who do not see it."""
    boxes = boxes_of(loads[0].page)
    finished = _finished(loads)
    ends = []
    for number, name in enumerate(names):
        known = [finished[box.resource][number] for box in boxes]
        latest = max((at_ms for at_ms in known if at_ms is not None), default=0.0)
        ends.append(f"{latest:,.0f} ms with {name}")
    what = "Everything above the fold" if loads[0].page.nothing_visible_reason == "" else "The page"
    n = len(differences_of(loads))
    return [
        f"{what} is complete after {', '.join(ends)}.",
        f"A resource is complete with one and not yet with all at {n} times. Boxes stand for the"
        f" {len(boxes)} largest resources; their areas are the recorded shares of the viewport, or"
        " bytes where none was recorded. A box fills with the bytes that the browser has.",
    ]


def _controls(document: dict[str, Any]) -> str:
    end_s = document["end"] / 1000
    chosen, _ = min(_SPEEDS, key=lambda speed: abs(end_s / speed[1] - _STEADY_S))
    jump = ("difference", "Next difference", "D")
    return (
        f"{player_controls(_SPEEDS, chosen, jump, document['end'])}"
        f"{_KEYS}"
        "<noscript><p>The pictures need JavaScript; the sentences above and the table below do"
        " not.</p></noscript>\n"
    )


def _table(loads: Sequence[Load], names: Sequence[str]) -> Table[Any]:
    finished = _finished(loads)
    resources = loads[0].page.resources
    rows = [
        (f"{box.resource + 1} {resources[box.resource].id}", *finished[box.resource])
        for box in boxes_of(loads[0].page)
    ]
    heads: tuple[str | Column, ...]
    heads = ("resource", *(Column.ms(f"{name}, complete at ms") for name in names))
    return Table(heads, rows, title="When each resource of the viewport was complete")


def _document(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> dict[str, Any]:
    """Return what the script knows; times in ms."""
    page = loads[0].page
    looks = [palette.look(group) for group in palette.groups]
    finished = _finished(loads)
    boxes = boxes_of(page)
    ends = [at_ms for box in boxes for at_ms in finished[box.resource] if at_ms is not None]
    return {
        "size": (_WIDTH, _HEIGHT),
        "end": round(max(ends, default=1.0) * 1.02, _DIGITS),
        "colours": [look.face for look in looks],
        "inks": [look.ink for look in looks],
        "boxes": [[box.resource, *(round(value, 1) for value in box[1:])] for box in boxes],
        "labels": [
            f"{box.resource + 1} {shortened(page.resources[box.resource].id)}" for box in boxes
        ],
        "bytes": [max(1, page.resources[box.resource].size_bytes) for box in boxes],
        "differences": [
            [_short(at_ms), resource, complete]
            for at_ms, resource, complete in differences_of(loads)
        ],
        "start": _telling(loads),
        "loads": [
            {
                "name": name,
                "finished": [_short(finished[box.resource][number]) for box in boxes],
                "packets": list(_packets(load)),
            }
            for number, (name, load) in enumerate(zip(names, loads, strict=True))
        ],
    }


def _telling(loads: Sequence[Load]) -> int:
    """Return the index of the difference after which the loads are farthest apart, in bytes."""
    page = loads[0].page
    finished = _finished(loads)
    boxes = boxes_of(page)

    def spread(at_ms: float) -> int:
        complete = [
            sum(
                page.resources[box.resource].size_bytes
                for box in boxes
                if (end := finished[box.resource][number]) is not None and end <= at_ms
            )
            for number in range(len(loads))
        ]
        return max(complete) - min(complete)

    spreads = [spread(each.at_ms) for each in differences_of(loads)]
    return spreads.index(max(spreads)) if spreads else 0


def _packets(load: Load) -> Iterator[list[Any]]:
    """Yield [shown on the wire, arrived or null, gone, resource, bytes, delivered or null]."""
    order = 0 if load.trace.delivery is Delivery.STREAM else 1
    for flight in sorted(scene_of(load).flights, key=lambda each: each.shown_ms):
        times = (flight.shown_ms, flight.came_ms, flight.gone_ms)
        yield [
            *map(_short, times),
            flight.resource,
            flight.n_bytes,
            _short(flight.given_ms[order]),
        ]


def _short(at_ms: float | None) -> float | None:
    return None if at_ms is None else round(at_ms, _DIGITS)


def write(
    loads: Sequence[Load], names: Sequence[str], palette: Palette, path: str | os.PathLike[str]
) -> None:
    """Write the race of *loads* to *path*, whole or not at all.

    Raises:
        InputError: if the ending is not .html, or the file cannot be written.
    """
    check_suffix(path)
    write_atomically(path, page_of(loads, names, palette))
