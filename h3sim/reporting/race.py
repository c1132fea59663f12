"""Races: loads of one page side by side, as pages that fill in, in one HTML file."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.reporting.animation import STYLE, legend_of, player_controls, rounded, scene_of
from h3sim.reporting.document import check_suffix, html_page, scrolled
from h3sim.reporting.labels import join_words, shortened
from h3sim.reporting.script_data import data_element
from h3sim.schema import write_atomically
from h3sim.trace import Delivery
from h3sim.values.table import Column, Table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from h3sim.load import Load
    from h3sim.page import Layout, Page
    from h3sim.reporting.labels import Palette


MAX_BOXES = 120
"""Most boxes of a page: the largest resources, in the order of the page."""
_PICTURE_WIDTH, _PICTURE_HEIGHT = 480, 300
"""Pixels of a picture of a page without recorded layout; others have the same width."""
_MAX_VIEWPORT_HEIGHT = 360
"""Most pixels of height for a recorded viewport, of a telephone for example."""
_BELOW_HEIGHT = 48
"""Pixels of height of the row of resources without rectangle."""
_BELOW_GAP = 20
"""Pixels of height of the gap above that row."""
_MIN_BOX_SHARE = 0.004
"""Least share of the viewport that a box has, so that it is visible."""
_MS_DECIMALS = 2
"""Decimals of times in the file, which would grow with more."""
_SPEEDS = (
    ("1/50 of real time", 0.02),
    ("1/10", 0.1),
    ("1/4", 0.25),
    ("real time", 1.0),
    ("10 times", 10.0),
)
"""Speeds to choose from, as multiples of real time."""
_TARGET_DURATION_S = 12.0
"""The initial speed is the one with which the race lasts about this long."""
_WIDTH_REM = 76
_INSTRUCTIONS = (
    "<p>Below each page, packets travel from the server (left) to the browser; a red cross is a"
    " packet that was lost or dropped by the queue. In the filmstrip, a frame with a thick edge"
    " differs from the one before it."
    " Keys: <kbd>Space</kbd> plays and pauses, <kbd>&larr;</kbd> and <kbd>&rarr;</kbd> go to the"
    " previous and next completion of a resource, <kbd>D</kbd> to the next difference between the"
    " loads, <kbd>Home</kbd> to the start.</p>\n"
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
    """Rectangle in the pixels of a picture, for a resource by its index in the page."""

    resource: int
    left: float
    top: float
    width: float
    height: float


class ViewportPicture(NamedTuple):
    """Picture of a viewport, with a box for each visible resource.

    Resources without a recorded rectangle, such as documents and styles, are below the viewport.
    """

    boxes: tuple[ViewportBox, ...]
    width: float
    height: float
    """Height of the viewport."""
    full_height: float
    """Height with the boxes below the viewport."""
    is_recorded: bool
    """True if positions were recorded, not chosen."""

    @property
    def resources(self) -> tuple[int, ...]:
        """The indices of the resources that it shows, in the order of the page."""
        return tuple(sorted({box.resource for box in self.boxes}))


def picture_of(page: Page) -> ViewportPicture:
    """Return boxes for the resources above the fold, or for all if none is marked.

    Boxes have the positions that the page's layout records. For a page with shares of the viewport
    but without rectangles, boxes have these shares as areas, in the order of the page from the top
    left; resources without a share divide the rest by their bytes.

    >>> import h3sim
    >>> picture_of(h3sim.load_page("davies-meenan")).resources
    (0, 1, 6, 7)
    """
    resources = page.resources
    recorded = () if page.layout is None else tuple(_recorded_boxes(page, page.layout))
    recorded_ids = {box.resource for box in recorded}
    visible = [index for index, each in enumerate(resources) if each.above_the_fold]
    unplaced = [index for index in visible or range(len(resources)) if index not in recorded_ids]
    largest = sorted(unplaced, key=lambda index: (-resources[index].size_bytes, index))
    chosen = sorted(largest[: MAX_BOXES - len(recorded_ids)])
    if page.layout is None or not recorded:
        areas = [
            _PICTURE_WIDTH * _PICTURE_HEIGHT * share for share in _viewport_shares(page, chosen)
        ]
        boxes = tuple(_rows_of_boxes(chosen, areas, _PICTURE_WIDTH))
        return ViewportPicture(
            boxes, _PICTURE_WIDTH, _PICTURE_HEIGHT, _PICTURE_HEIGHT, is_recorded=False
        )
    width, height = (size * _scale(page.layout) for size in (page.layout.width, page.layout.height))
    if not chosen:
        return ViewportPicture(recorded, width, height, height, is_recorded=True)
    below = _rows_of_boxes(
        chosen, [_PICTURE_WIDTH * _BELOW_HEIGHT / len(chosen)] * len(chosen), _PICTURE_WIDTH
    )
    top = height + _BELOW_GAP
    lowered = (box._replace(top=box.top + top) for box in below)
    return ViewportPicture(
        (*recorded, *lowered), width, height, top + _BELOW_HEIGHT, is_recorded=True
    )


def _scale(layout: Layout) -> float:
    return min(_PICTURE_WIDTH / layout.width, _MAX_VIEWPORT_HEIGHT / layout.height)


def _recorded_boxes(page: Page, layout: Layout) -> Iterator[ViewportBox]:
    """Yield the visible rectangles of the largest resources, the largest rectangles first."""
    scale = _scale(layout)
    shares = {id_: layout.share(id_) for id_ in layout.rectangles}
    largest = sorted(shares, key=lambda id_: (-shares[id_], page.index[id_]))[:MAX_BOXES]
    found = [
        ViewportBox(
            page.index[id_], each.x * scale, each.y * scale, each.width * scale, each.height * scale
        )
        for id_ in largest
        for each in layout.visible(id_)
    ]
    # Drawn in this order, so that small boxes are on large ones: text on its background.
    yield from sorted(found, key=lambda box: (-box.width * box.height, box))


def _viewport_shares(page: Page, chosen: Sequence[int]) -> list[float]:
    """Return the shares of the viewport of resources; together they are 1."""
    resources = page.resources
    known = sum(resources[index].viewport or 0.0 for index in chosen)
    unknown = [index for index in chosen if resources[index].viewport is None]
    n_bytes = sum(resources[index].size_bytes for index in unknown) or 1
    # Some room, even if known shares, which may overlap, fill the viewport.
    remaining = max(1.0 - known, 0.25)
    shares = []
    for index in chosen:
        recorded = resources[index].viewport
        estimated = remaining * resources[index].size_bytes / n_bytes
        shares.append(max(estimated if recorded is None else recorded, _MIN_BOX_SHARE))
    total = sum(shares)
    return [share / total for share in shares]


def _rows_of_boxes(
    resources: Sequence[int], areas: Sequence[float], width: float
) -> Iterator[ViewportBox]:
    """Yield rectangles in rows of this width, nearly square (Bederson et al. 2002).

    A row takes areas as long as that brings their rectangles closer to squares.
    """
    top, first = 0.0, 0
    while first < len(areas):
        last = first + 1
        while last < len(areas) and _mean_aspect_ratio(
            areas[first : last + 1], width
        ) < _mean_aspect_ratio(areas[first:last], width):
            last += 1
        height = sum(areas[first:last]) / width
        left = 0.0
        for resource, area in zip(resources[first:last], areas[first:last], strict=True):
            yield ViewportBox(resource, left, top, area / height, height)
            left += area / height
        top, first = top + height, last


def _mean_aspect_ratio(areas: Sequence[float], width: float) -> float:
    """Return the mean ratio of the longer side to the shorter one in a row of *areas*."""
    height = sum(areas) / width
    ratios = [area / height / height for area in areas]
    return sum(max(ratio, 1 / ratio) for ratio in ratios) / len(ratios)


class CompletionDifference(NamedTuple):
    """A time after which a resource is complete in some loads (by index), and not in others."""

    at_ms: float
    resource: int
    complete: tuple[int, ...]


def differences_of(loads: Sequence[Load]) -> list[CompletionDifference]:
    """Return when a visible resource became complete in a load, but not yet in all, by time."""
    completion_times = _completion_times(loads)
    found = []
    for resource in picture_of(loads[0].page).resources:
        times_ms = completion_times[resource]
        for at_ms in sorted({each for each in times_ms if each is not None}):
            complete = [i for i, each in enumerate(times_ms) if each is not None and each <= at_ms]
            if len(complete) < len(times_ms):
                found.append(CompletionDifference(at_ms, resource, tuple(complete)))
    return sorted(found)


def _completion_times(loads: Sequence[Load]) -> list[list[float | None]]:
    """Return, for each resource of the page, when it was complete in each load."""
    by_load = [{row.id: row.finished_ms for row in load.timings} for load in loads]
    return [[times.get(each.id) for times in by_load] for each in loads[0].page.resources]


def race_html(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> str:
    """Return an HTML file that replays *loads* of one page side by side, labelled by *names*."""
    page = loads[0].page
    title = f"Race of {page.name}: {', '.join(names)}"
    document = _script_data(loads, names, palette)
    result, boxes = (f"<p>{html.escape(each)}</p>\n" for each in words_of(loads, names))
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
    end_s = document["end"] / 1000
    speed_name, _ = min(_SPEEDS, key=lambda speed: abs(end_s / speed[1] - _TARGET_DURATION_S))
    jump = ("difference", "Next difference", "D")
    finished = _completion_times(loads)
    table = Table(
        ("resource", *(Column(f"{name}, complete at ms", 0) for name in names)),
        [
            (f"{index + 1} {page.resources[index].id}", *finished[index])
            for index in document["resources"]
        ],
        title="When each resource of the viewport was complete",
    )
    body = (
        f"<main>\n<h1>{html.escape(title)}</h1>\n{result}"
        f"{player_controls(_SPEEDS, speed_name, jump, document['end'])}"
        "<noscript><p>The pictures need JavaScript; the sentences above and the table below do"
        " not.</p></noscript>\n"
        f'<div class="lanes">{lanes}</div>\n{legend_of(page, palette)}'
        f"{boxes}{_INSTRUCTIONS}<h2>Filmstrip</h2>{scrolled('Filmstrip', film, 'scroll film')}\n"
        f"{scrolled('Completion times', table.to_html(most_rows=MAX_BOXES))}\n</main>\n"
        f"{data_element(document, 'race')}\n"
    )
    style = STYLE + _RACE_STYLE
    return html_page(title, body, style=style, width_rem=_WIDTH_REM, script="race.js")


def words_of(loads: Sequence[Load], names: Sequence[str]) -> list[str]:
    """Return two paragraphs: how the race ends, for readers who do not see it, and its boxes."""
    picture = picture_of(loads[0].page)
    finished = _completion_times(loads)
    ends = []
    for number, name in enumerate(names):
        known = [finished[resource][number] for resource in picture.resources]
        latest = max((at_ms for at_ms in known if at_ms is not None), default=0.0)
        ends.append(f"{latest:,.0f} ms with {name}")
    is_marked = loads[0].page.nothing_visible_reason == ""
    what = "Everything above the fold" if is_marked else "The page"
    where = (
        "the area of each is its recorded share of the viewport or, if none was recorded,"
        " proportional to its bytes"
    )
    if picture.is_recorded:
        where = (
            "images and text in web fonts are where they were recorded, and resources without a"
            " position, such as documents and styles, are below them"
        )
    n, differ = len(differences_of(loads)), ""
    if n:
        moments = f"{n:,} moment{'s' * (n != 1)}"
        other = "the other" if len(loads) == 2 else "another"
        differ = f" At {moments}, one load completes a resource that {other} is still waiting for."
    elif len(loads) > 1:
        differ = " Every resource is complete at the same time in all loads."
    return [
        f"{what} is complete after {join_words(ends)}.{differ}",
        f"Boxes stand for {_resources_in_words(loads[0].page, picture)}; {where}. A box fills"
        " up as the bytes of its resource arrive.",
    ]


def _resources_in_words(page: Page, picture: ViewportPicture) -> str:
    """Describe which resources have boxes: those above the fold, or the largest of these."""
    shown = picture.resources
    visible = [index for index, each in enumerate(page.resources) if each.above_the_fold]
    of, candidates = (" above the fold", visible) if visible else ("", range(len(page.resources)))
    n_missing = len(set(candidates) - set(shown))
    n_more = len(set(shown) - set(candidates))
    more = f" and {n_more} more with a recorded position" if n_more else ""
    if n_missing:
        return f"the {len(shown) - n_more} largest of the {len(candidates)} resources{of}{more}"
    n = len(candidates)
    all_of_them = f"the {n} resources" if n != 1 else "the only resource"
    return f"{all_of_them}{of}{more}"


def _script_data(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> dict[str, Any]:
    """Return the data that `race.js` draws; times are in ms."""
    page = loads[0].page
    looks = [palette.look(group) for group in palette.groups]
    finished = _completion_times(loads)
    picture = picture_of(page)
    resources = picture.resources
    ends = [at_ms for index in resources for at_ms in finished[index] if at_ms is not None]
    return {
        "size": (_PICTURE_WIDTH, round(picture.full_height, 1)),
        "viewport": (round(picture.width, 1), round(picture.height, 1), picture.is_recorded),
        "end": round(max(ends, default=1.0) * 1.02, _MS_DECIMALS),
        "colours": [look.face for look in looks],
        "inks": [look.ink for look in looks],
        "resources": resources,
        "boxes": [
            [resources.index(box.resource), *(round(value, 1) for value in box[1:])]
            for box in picture.boxes
        ],
        "labels": [f"{index + 1} {shortened(page.resources[index].id)}" for index in resources],
        "bytes": [max(1, page.resources[index].size_bytes) for index in resources],
        "differences": [
            [round(at_ms, _MS_DECIMALS), resource, complete]
            for at_ms, resource, complete in differences_of(loads)
        ],
        "loads": [
            {
                "name": name,
                "finished": [rounded(finished[index][number], _MS_DECIMALS) for index in resources],
                "packets": list(_packet_rows(load)),
            }
            for number, (name, load) in enumerate(zip(names, loads, strict=True))
        ],
    }


def _packet_rows(load: Load) -> Iterator[list[Any]]:
    """Yield [shown on the wire, arrived or null, gone, resource, bytes, delivered or null]."""
    # The index of the load's own order of delivery among `animation.ORDERS`.
    order = 0 if load.trace.delivery is Delivery.STREAM else 1
    requested_ms = {load.page.index[row.id]: row.requested_ms for row in load.timings}
    # Packets without delay are shown before they left, but never before their request.
    flights = [
        each._replace(shown_ms=max(each.shown_ms, requested_ms[each.resource]))
        for each in scene_of(load).flights
    ]
    for flight in sorted(flights, key=lambda each: each.shown_ms):
        times = (flight.shown_ms, flight.arrived_ms, flight.gone_ms, flight.delivered_ms[order])
        *under_way, delivered = (rounded(at_ms, _MS_DECIMALS) for at_ms in times)
        yield [*under_way, flight.resource, flight.n_bytes, delivered]


def write(
    loads: Sequence[Load], names: Sequence[str], palette: Palette, path: str | os.PathLike[str]
) -> None:
    """Write the race of *loads* to *path*, whole or not at all.

    Raises:
        InputError: if the ending is not .html, or the file cannot be written.
    """
    check_suffix(path)
    write_atomically(path, race_html(loads, names, palette))
