"""Colours and hatches of resources, distinct in grey too; needs no drawing library."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import Kind
from h3sim.reporting.labels import resource_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import Page


DARK, LIGHT = "#303030", "#ffffff"
"""Text colours on dark and on light faces."""

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
    """Paint of a resource: face colour, hatch and hatch colour."""

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


MAX_OWN = 12
"""Pages of more resources are coloured by kind: nobody tells so many colours apart."""

# The hues of WebPageTest's waterfalls, moved to lightnesses that differ in grey print; where two
# lie close, one is hatched.
KINDS = {
    Kind.DOCUMENT: Paint("#1f4e99", "", LIGHT),
    Kind.STYLESHEET: Paint("#a9dd8c", ".....", DARK),
    Kind.SCRIPT: Paint("#f2b04c", "", DARK),
    Kind.FONT: Paint("#a3220f", "xxxxx", LIGHT),
    Kind.IMAGE: Paint("#a57bd1", "/////", LIGHT),
    Kind.FETCH: Paint("#9fe3f0", "-----", DARK),
    Kind.MEDIA: Paint("#0c7a63", "|||||", LIGHT),
    Kind.OTHER: Paint("#d6d6d6", "", DARK),
}
_ORDER = tuple(KINDS)


class Palette:
    """The colours of a *page*. A *group* is what looks alike: a resource, or all of a kind.

    *is_by_kind* has even a small page coloured by kind: beside another page, where numbers differ.
    """

    def __init__(self, page: Page, *, is_by_kind: bool = False) -> None:
        self._page = page
        self.is_by_kind = is_by_kind or len(page.resources) > MAX_OWN

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The group of each resource, by its index in the page."""
        if not self.is_by_kind:
            return tuple(range(len(self._page.resources)))
        return tuple(_ORDER.index(resource.kind) for resource in self._page.resources)

    @property
    def noun(self) -> str:
        """Noun for a group."""
        return "kind" if self.is_by_kind else "resource"

    def look(self, group: int) -> Paint:
        """Return how the resources of a group are painted."""
        return KINDS[_ORDER[group]] if self.is_by_kind else paint(group)

    def look_of_all(self, resources: Sequence[int]) -> Paint | None:
        """Return how resources that share a box are painted, None where they differ."""
        groups = dict.fromkeys(self.groups[index] for index in resources)
        return self.look(next(iter(groups))) if len(groups) == 1 else None

    def label(self, group: int) -> str:
        """Return what a legend says of a group."""
        if not self.is_by_kind:
            return resource_label(self._page, group)
        sizes = [r.size_bytes for r in self._page.resources if r.kind is _ORDER[group]]
        return f"{_ORDER[group].value}: {len(sizes)}, {sum(sizes) / 1000:,.0f} kB"
