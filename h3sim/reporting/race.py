"""Races: loads of one page side by side, as pages that fill in, in one HTML file."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.reporting.animation import STYLE, legend_of, player_controls, rounded, scene_of
from h3sim.reporting.document import check_suffix, data_element, html_page, scrolled
from h3sim.reporting.labels import join_words, shortened
from h3sim.schema import write_atomically
from h3sim.table import Column, Table
from h3sim.trace import Delivery

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from h3sim.page import Layout, Page
    from h3sim.reporting.labels import Palette
    from h3sim.results import Load


MAX_BOXES = 120
"""Most boxes of a page: the largest resources, in the order of the page."""
_WIDTH, _HEIGHT = 480, 300
_MOST_HEIGHT = 360
"""Most pixels that a recorded viewport is high."""
_BELOW, _BELOW_GAP = 48, 20
"""The height of what has no rectangle, and of the gap above it with its title."""
_LEAST_SHARE = 0.004
"""Least share of the viewport that a box has, so that it can be seen."""
_DIGITS = 2
_SPEEDS = (
    ("1/50 of real time", 0.02),
    ("1/10", 0.1),
    ("1/4", 0.25),
    ("real time", 1.0),
    ("10 times", 10.0),
)
_STEADY_S = 12.0
"""About so long a race plays with the speed that is chosen at first."""
_WIDTH_REM = 76
_KEYS = (
    "<p>Below each page, packets travel from the server (left) to the browser; a red cross is a"
    " lost packet. In the filmstrip, a frame with a thick edge differs from the one before it."
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
    """A rectangle of the picture in its pixels, and the index of the resource that it shows."""

    resource: int
    left: float
    top: float
    width: float
    height: float


class ViewportPicture(NamedTuple):
    """The picture of a viewport: its boxes, the size of the viewport, and the height with the rest.

    Resources without a recorded rectangle, such as documents and styles, are below the viewport.
    """

    boxes: tuple[ViewportBox, ...]
    width: float
    height: float
    full_height: float
    is_recorded: bool

    @property
    def resources(self) -> tuple[int, ...]:
        """The indices of the resources that it shows, in the order of the page."""
        return tuple(sorted({box.resource for box in self.boxes}))


def picture_of(page: Page) -> ViewportPicture:
    """Return the boxes of what is above the fold, or of all where nothing is marked.

    They are where the page records its layout. Pages that record shares of the viewport, but no
    rectangles, have boxes with these shares as areas, in the order of the page from the top left
    on. Resources without a share split what is left by their bytes.

    >>> import h3sim
    >>> picture_of(h3sim.load_page("davies-meenan")).resources
    (0, 1, 6, 7)
    """
    resources = page.resources
    recorded = () if page.layout is None else tuple(_recorded_boxes(page, page.layout))
    shown = {box.resource for box in recorded}
    chosen = [index for index, each in enumerate(resources) if each.above_the_fold]
    chosen = [each for each in chosen or range(len(resources)) if each not in shown]
    most = MAX_BOXES - len(shown)
    chosen = sorted(sorted(chosen, key=lambda index: (-resources[index].size_bytes, index))[:most])
    if page.layout is None or not recorded:
        areas = [_WIDTH * _HEIGHT * share for share in _shares(page, chosen)]
        boxes = tuple(_strips(chosen, areas, _WIDTH))
        return ViewportPicture(boxes, _WIDTH, _HEIGHT, _HEIGHT, is_recorded=False)
    width, height = (size * _scale(page.layout) for size in (page.layout.width, page.layout.height))
    if not chosen:
        return ViewportPicture(recorded, width, height, height, is_recorded=True)
    below = _strips(chosen, [_WIDTH * _BELOW / len(chosen)] * len(chosen), _WIDTH)
    top = height + _BELOW_GAP
    moved = (box._replace(top=box.top + top) for box in below)
    return ViewportPicture((*recorded, *moved), width, height, top + _BELOW, is_recorded=True)


def _scale(layout: Layout) -> float:
    return min(_WIDTH / layout.width, _MOST_HEIGHT / layout.height)


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
    # What is small lies on what is large: text on its background.
    yield from sorted(found, key=lambda box: (-box.width * box.height, box))


def _shares(page: Page, chosen: Sequence[int]) -> list[float]:
    """Return the shares of the viewport of resources; together they are 1."""
    resources = page.resources
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
    return [share / total for share in shares]


def _strips(
    resources: Sequence[int], areas: Sequence[float], width: float
) -> Iterator[ViewportBox]:
    """Yield rectangles in rows of this width, nearly square (Bederson et al. 2002)."""
    top, first = 0.0, 0
    while first < len(areas):
        last = first + 1
        while last < len(areas) and _aspect(areas[first : last + 1], width) < _aspect(
            areas[first:last], width
        ):
            last += 1
        height = sum(areas[first:last]) / width
        left = 0.0
        for resource, area in zip(resources[first:last], areas[first:last], strict=True):
            yield ViewportBox(resource, left, top, area / height, height)
            left += area / height
        top, first = top + height, last


def _aspect(areas: Sequence[float], width: float) -> float:
    """Return the mean ratio of the longer side to the shorter of a row of *areas*."""
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
    finished = _finished(loads)
    found = []
    for resource in picture_of(loads[0].page).resources:
        times = finished[resource]
        known = sorted({at_ms for at_ms in times if at_ms is not None})
        for at_ms in known:
            complete = [i for i, each in enumerate(times) if each is not None and each <= at_ms]
            if len(complete) < len(times):
                found.append(CompletionDifference(at_ms, resource, tuple(complete)))
    return sorted(found)


def _finished(loads: Sequence[Load]) -> list[list[float | None]]:
    """Return when each resource of the page was complete in each load."""
    times = [{row.id: row.finished_ms for row in load.timings} for load in loads]
    return [[own.get(each.id) for own in times] for each in loads[0].page.resources]


def race_html(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> str:
    """Return an HTML file that replays *loads* of one page side by side, labelled by *names*."""
    page = loads[0].page
    title = f"Race of {page.name}: {', '.join(names)}"
    document = _document(loads, names, palette)
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
    chosen, _ = min(_SPEEDS, key=lambda speed: abs(end_s / speed[1] - _STEADY_S))
    jump = ("difference", "Next difference", "D")
    finished = _finished(loads)
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
        f"{player_controls(_SPEEDS, chosen, jump, document['end'])}"
        "<noscript><p>The pictures need JavaScript; the sentences above and the table below do"
        " not.</p></noscript>\n"
        f'<div class="lanes">{lanes}</div>\n{legend_of(page, palette)}'
        f"{boxes}{_KEYS}<h2>Filmstrip</h2>{scrolled('Filmstrip', film, 'scroll film')}\n"
        f"{scrolled('Completion times', table.to_html(most_rows=MAX_BOXES))}\n</main>\n"
        f"{data_element(document, 'race')}\n"
    )
    style = STYLE + _RACE_STYLE
    return html_page(title, body, style=style, width_rem=_WIDTH_REM, script="race.js")


def words_of(loads: Sequence[Load], names: Sequence[str]) -> list[str]:
    """Return two paragraphs: how the race ends, for readers who do not see it, and its boxes."""
    picture = picture_of(loads[0].page)
    finished = _finished(loads)
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
    """Return which resources have boxes: those above the fold, or the largest of these."""
    shown = picture.resources
    visible = [index for index, each in enumerate(page.resources) if each.above_the_fold]
    of, every = (" above the fold", visible) if visible else ("", range(len(page.resources)))
    n_missing = len(set(every) - set(shown))
    n_more = len(set(shown) - set(every))
    more = f" and {n_more} more with a recorded position" if n_more else ""
    if n_missing:
        return f"the {len(shown) - n_more} largest of the {len(every)} resources{of}{more}"
    all_of_them = f"the {len(every)} resources" if len(every) != 1 else "the only resource"
    return f"{all_of_them}{of}{more}"


def _document(loads: Sequence[Load], names: Sequence[str], palette: Palette) -> dict[str, Any]:
    """Return what the script knows; times in ms."""
    page = loads[0].page
    looks = [palette.look(group) for group in palette.groups]
    finished = _finished(loads)
    picture = picture_of(page)
    resources = picture.resources
    ends = [at_ms for index in resources for at_ms in finished[index] if at_ms is not None]
    return {
        "size": (_WIDTH, round(picture.full_height, 1)),
        "viewport": (round(picture.width, 1), round(picture.height, 1), picture.is_recorded),
        "end": round(max(ends, default=1.0) * 1.02, _DIGITS),
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
            [round(at_ms, _DIGITS), resource, complete]
            for at_ms, resource, complete in differences_of(loads)
        ],
        "loads": [
            {
                "name": name,
                "finished": [rounded(finished[index][number], _DIGITS) for index in resources],
                "packets": list(_packets(load)),
            }
            for number, (name, load) in enumerate(zip(names, loads, strict=True))
        ],
    }


def _packets(load: Load) -> Iterator[list[Any]]:
    """Yield [shown on the wire, arrived or null, gone, resource, bytes, delivered or null]."""
    order = 0 if load.trace.delivery is Delivery.STREAM else 1
    requested_ms = {load.page.index[row.id]: row.requested_ms for row in load.timings}
    # Where packets take no time they are shown before they left, but never before the request.
    flights = [
        each._replace(shown_ms=max(each.shown_ms, requested_ms[each.resource]))
        for each in scene_of(load).flights
    ]
    for flight in sorted(flights, key=lambda each: each.shown_ms):
        times = (flight.shown_ms, flight.came_ms, flight.gone_ms, flight.given_ms[order])
        *under_way, delivered = (rounded(at_ms, _DIGITS) for at_ms in times)
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
