"""How things look: paints that differ in grey too, and what every figure has in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from matplotlib import rc_context

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = ["DARK", "LIGHT", "SIGNIFICANT", "SMALL", "Line", "Paint", "in_style", "line", "paint"]

SMALL = 8.0
"""The size, in points, of everything but titles."""

_SETTINGS = {
    "font.family": ["DejaVu Sans"],
    "font.size": SMALL,
    "hatch.linewidth": 0.7,
    "svg.hashsalt": "h3sim",
    "text.usetex": False,
}

DARK, LIGHT = "#303030", "#ffffff"
"""What is written on light and on dark."""
SIGNIFICANT = 0.005
"""A smaller p is drawn as a difference (Sander 2022 § 5)."""

# The hues of Okabe and Ito (2008), which colour-blind readers tell apart, and two more, moved to
# lightnesses that differ in grey print; neighbours stand far apart in both.
_FACES = (
    ("#0b4f8c", LIGHT),  # blue
    ("#f5e768", DARK),  # yellow
    ("#d4622a", LIGHT),  # vermilion
    ("#a3dbf7", DARK),  # sky blue
    ("#1b1b1b", LIGHT),  # black
    ("#efab35", DARK),  # orange
    ("#007a5b", LIGHT),  # bluish green
    ("#cf93bd", DARK),  # reddish purple
    ("#7d1f52", LIGHT),  # wine
    ("#c8c8c8", DARK),  # grey
)
_HATCHES = ("", "/////", ".....", "-----", "\\\\\\\\\\", "xxxxx", "|||||")
"""Seven against ten colours: they pair up differently for 70 resources."""

_LINE_COLOURS = ("#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400")
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = "os^DvPX<>*phd"


def in_style() -> AbstractContextManager[None]:
    """Return the context in which figures are built and written, whatever the reader's settings."""
    return rc_context(cast(Any, _SETTINGS))


class Paint(NamedTuple):
    """How a resource is painted: the colour of its face, its hatch, and the colour of that."""

    face: str
    hatch: str
    ink: str


class Line(NamedTuple):
    """How the line of a load is drawn."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str


def paint(index: int) -> Paint:
    """Return the paint of the resource at *index* in its page; it comes back after 70 of them.

    >>> paint(0) == paint(70), len({paint(index) for index in range(70)})
    (True, 70)
    """
    face, ink = _FACES[index % len(_FACES)]
    return Paint(face, _HATCHES[index % len(_HATCHES)], ink)


def line(number: int) -> Line:
    """Return the look of line *number* of a figure; thirteen differ by their markers alone.

    >>> len({line(number).marker for number in range(13)})
    13
    """
    return Line(
        _LINE_COLOURS[number % len(_LINE_COLOURS)],
        _DASHES[number % len(_DASHES)],
        _MARKERS[number % len(_MARKERS)],
    )
