"""What the server's scheduler knew at an instant: a tree, or groups in the order served."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots import boxes
from h3sim.plots.labels import plain, shortened
from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.page import Page
    from h3sim.plots.palette import Palette
    from h3sim.plots.priority_state import PrioritizedElement

__all__ = ["ElementBox", "boxes_of", "draw", "height_in"]

_NAME_CHARS = 22
_FOLDED_FROM = 3
"""So many streams of one kind, without any below them, share a box if all is said alike."""
_MAX_BOXES = 60
"""Of more, those in front are drawn, and how many there are more."""
_FACES = {"waits": "white", "done": "#e4e4e4", "idle": "white", "group": "#eef2f7"}
_DASHES = {"waits": "-", "done": "-", "idle": ":", "group": "-"}
_STATES = {"idle": "nothing to send yet", "done": "all sent"}
_GUIDE = "percent: what was sent of the response; grey: all sent; dotted: nothing to send yet"


class ElementBox(NamedTuple):
    """What one box shows: an element, or several alike; *parent* is the index of another box."""

    elements: tuple[int, ...]
    parent: int | None
    text: str
    state: str
    resources: tuple[int, ...]


def boxes_of(page: Page, elements: Sequence[PrioritizedElement]) -> list[ElementBox]:
    """Return the boxes of *elements*, parents before what is below them."""
    parents = {element.parent for element in elements}
    found: list[ElementBox] = []
    box_of: dict[int | None, int | None] = {None: None}
    folded: dict[object, list[int]] = {}
    for index, element in enumerate(elements):
        if element.resource is not None and index not in parents:
            folded.setdefault(_alike(page, element), []).append(index)
    for index, element in enumerate(elements):
        key = _alike(page, element) if element.resource is not None else None
        members = folded.get(key, [index]) if index not in parents else [index]
        if len(members) < _FOLDED_FROM:
            members = [index]
        if members[0] != index:
            continue
        if len(found) == _MAX_BOXES:
            more = len(elements) - sum(len(box.elements) for box in found)
            text = f"{more} more below"
            found.append(ElementBox((), box_of.get(element.parent), text, "group", ()))
            break
        box_of[index] = len(found)
        parent = box_of[element.parent]
        text = _text(page, [elements[member] for member in members])
        resources = [elements[member].resource for member in members]
        shown = tuple(index for index in resources if index is not None)
        found.append(ElementBox(tuple(members), parent, text, element.state, shown))
    return found


def _alike(page: Page, element: PrioritizedElement) -> tuple[object, ...]:
    """Return what elements have in common that share a box."""
    kind = None if element.resource is None else page.resources[element.resource].kind
    has_begun = element.state == "waits" and element.sent > 0
    return element.parent, element.label, element.state, kind, has_begun


def _text(page: Page, elements: Sequence[PrioritizedElement]) -> str:
    first = elements[0]
    if first.resource is None:
        return plain(first.label)
    resource = page.resources[first.resource]
    name = resource.id if len(elements) == 1 else f"{len(elements)} x {resource.kind.value}"
    return f"{plain(shortened(name, _NAME_CHARS))}\n{_detail(elements)}"


def _detail(elements: Sequence[PrioritizedElement]) -> str:
    """Return the second line: what was said, and how much was sent."""
    first = elements[0]
    low, high = (pick(element.sent for element in elements) for pick in (min, max))
    share = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
    told = _STATES.get(first.state, f"{share} sent")
    return ", ".join(part for part in (first.label, told) if part)


def height_in(found: Sequence[ElementBox]) -> float:
    """Return how high the figure of these boxes is, in inches."""
    positions = boxes.positions_of([box.parent for box in found])
    return boxes.HEIGHT_IN * (max(at.row for at in positions) + 1) + boxes.TITLE_IN


def draw(ax: Axes, found: Sequence[ElementBox], palette: Palette, title: str) -> None:
    """Draw the boxes from left to right, those that are served first at the top."""
    positions = boxes.positions_of([box.parent for box in found])
    for box, at in zip(found, positions, strict=True):
        if box.parent is not None:
            boxes.draw_edge(ax, positions[box.parent], at)
        look = palette.look_of_all(box.resources)
        face, dashes = _FACES[box.state], _DASHES[box.state]
        boxes.draw_box(ax, at, box.text, look, face=face, dashes=dashes)
    boxes.set_limits(ax, positions)
    ax.set_title(f"{title}\n{_GUIDE}", fontsize=SMALL + 1, loc="left")
