"""Boxes from left to right by depth, with lines from parents to children: drawings of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.style import SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from h3sim.plots.paints import Paint

__all__ = [
    "CHAIN",
    "HEIGHT_IN",
    "TITLE_IN",
    "Position",
    "draw_box",
    "draw_edge",
    "positions_of",
    "set_limits",
]

HEIGHT_IN, TITLE_IN = 0.36, 0.5
"""How high a row of boxes and a title are, in inches."""
CHAIN = "#c00000"
_WIDTH, _HEIGHT = 0.74, 0.72
_COLUMNS = 6
"""Deeper trees are drawn as an outline: a box a line, indented a little."""


class Position(NamedTuple):
    """Where a box stands.

    *depth* counts its steps from what has no parent; *row* is from the top, *left* in columns.
    """

    depth: int
    row: float
    left: float


def positions_of(parents: Sequence[int | None]) -> list[Position]:
    """Return where boxes stand, each given by the index of its parent, which stands before it.

    What is below a box follows it at once. A parent stands level with its first child, so that
    chains run straight.

    >>> [(at.row, at.left) for at in positions_of([None, 0, 0])]
    [(0.0, 0), (0.0, 1), (1.0, 1)]
    """
    depths: list[int] = []
    rows: list[float] = []
    has_child = [False] * len(parents)
    next_row = 0.0
    for index, parent in enumerate(parents):
        depths.append(0 if parent is None else depths[parent] + 1)
        if (parent is not None and has_child[parent]) or (parent is None and index):
            next_row += 1
        if parent is not None:
            has_child[parent] = True
        rows.append(next_row)
    if max(depths, default=0) < _COLUMNS:
        return [Position(*at) for at in zip(depths, rows, depths, strict=True)]
    # An outline, the deepest box in the last column.
    step = (_COLUMNS - 1) / max(depths)
    return [Position(depth, float(row), depth * step) for row, depth in enumerate(depths)]


def draw_edge(
    ax: Axes, parent: Position, child: Position, *, dashes: str = "-", is_chain: bool = False
) -> None:
    """Draw the line from a parent to its child."""
    if child.left - parent.left < 1:
        # In an outline: down from the left end of the parent, and into the child.
        middle = (parent.left + child.left) / 2
        xs = [middle, middle, child.left]
        ys = [parent.row + _HEIGHT / 2, child.row, child.row]
    else:
        start, middle = parent.left + _WIDTH, parent.left + (1 + _WIDTH) / 2
        xs, ys = [start, middle, middle, child.left], [parent.row, parent.row, child.row, child.row]
    ax.plot(
        xs,
        ys,
        color=CHAIN if is_chain else "0.55",
        linewidth=2.0 if is_chain else 0.8,
        linestyle=dashes,
        zorder=2 if is_chain else 1,
        solid_joinstyle="round",
    )


def draw_box(
    ax: Axes,
    at: Position,
    text: str,
    look: Paint | None = None,
    *,
    face: str = "white",
    dashes: str = "-",
    is_chain: bool = False,
) -> None:
    """Draw a box with its text, and beside that a band of the colour of *look*."""
    from matplotlib.patches import Rectangle

    low = at.row - _HEIGHT / 2
    frame = Rectangle((at.left, low), _WIDTH, _HEIGHT, facecolor=face)
    frame.set(edgecolor=CHAIN if is_chain else "0.4", linewidth=2.0 if is_chain else 0.8)
    frame.set(linestyle=dashes, zorder=3)
    ax.add_patch(frame)
    if look is not None:
        # The text stays readable on any colour.
        band = Rectangle((at.left, low), 0.045, _HEIGHT, facecolor=look.face, edgecolor=look.ink)
        band.set(hatch=look.hatch, linewidth=0, zorder=4)
        ax.add_patch(band)
    left = at.left + 0.06
    ax.text(left, at.row, text, fontsize=SMALL - 1.5, va="center", linespacing=1.05, zorder=5)


def set_limits(ax: Axes, positions: Sequence[Position]) -> None:
    """Let the axes show all boxes, and no axis."""
    ax.set_xlim(-0.05, max(3.0, max(at.left for at in positions)) + _WIDTH + 0.05)
    ax.set_ylim(max(at.row for at in positions) + 0.6, -0.6)
    ax.set_axis_off()
