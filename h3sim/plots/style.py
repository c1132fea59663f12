"""How things look: lines that differ in grey too, and what every figure has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from matplotlib import rc_context

from h3sim.plots.fonts import families

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["SIGNIFICANT", "SMALL", "LineStyle", "in_style", "line"]

SMALL = 8.0
"""The size, in points, of everything but titles."""

_SETTINGS = {
    "font.size": SMALL,
    "hatch.linewidth": 0.7,
    "svg.hashsalt": "h3sim",
    "text.usetex": False,
}

SIGNIFICANT = 0.005
"""A smaller p is drawn as a difference (Sander 2022 § 5)."""

_LINE_COLOURS = ("#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400")
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = "os^DvPX<>*phd"


def in_style() -> AbstractContextManager[None]:
    """Return the context in which figures are built and written, whatever the reader's settings."""
    return rc_context(cast(Any, _SETTINGS | {"font.family": families()}))


class LineStyle(NamedTuple):
    """How the line of a load is drawn."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str


def line(number: int) -> LineStyle:
    """Return the look of line *number* of a figure; thirteen differ by their markers alone.

    >>> len({line(number).marker for number in range(13)})
    13
    """
    return LineStyle(
        _LINE_COLOURS[number % len(_LINE_COLOURS)],
        _DASHES[number % len(_DASHES)],
        _MARKERS[number % len(_MARKERS)],
    )
