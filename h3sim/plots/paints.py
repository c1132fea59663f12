"""Paints that differ in grey too. Needs no drawing library."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DARK", "LIGHT", "Paint", "paint"]

DARK, LIGHT = "#303030", "#ffffff"
"""What is written on light and on dark."""

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


class Paint(NamedTuple):
    """How a resource is painted: the colour of its face, its hatch, and the colour of that."""

    face: str
    hatch: str
    ink: str


def paint(index: int) -> Paint:
    """Return the paint of the resource at *index* in its page; it comes back after 70 of them.

    >>> paint(0) == paint(70), len({paint(index) for index in range(70)})
    (True, 70)
    """
    face, ink = _FACES[index % len(_FACES)]
    return Paint(face, _HATCHES[index % len(_HATCHES)], ink)
