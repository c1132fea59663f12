"""Visual metrics of a load: first contentful and largest paint, SpeedIndex, visual progress."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Paint = tuple[int, Fraction]
"""Time of a paint, and a share of what it paints: the share painted by then, or the one added."""


class Element(NamedTuple):
    """A visible element, and when it is painted."""

    share: float | None
    """Share of the viewport that it covers; None if unknown."""
    is_hero: bool
    """True if the page names it as its largest element."""
    ready_at_ns: int
    """Time at which it is complete."""
    partial: tuple[Paint, ...] = ()
    """Earlier paints: times and painted shares of the element, both rising."""

    def steps(self, first_paint_ns: int) -> Iterator[Paint]:
        """Yield the time and the added share of each paint, none before the page's first paint.

        >>> half = Element(0.2, False, 90, ((20, Fraction(1, 2)),))
        >>> [(at_ns, float(added)) for at_ns, added in half.steps(50)]
        [(50, 0.5), (90, 0.5)]
        """
        painted = Fraction(0)
        for at_ns, share in (*self.partial, (self.ready_at_ns, Fraction(1))):
            if share > painted:
                yield max(first_paint_ns, at_ns), share - painted
                painted = share


def first_contentful_paint_ns(
    first_paint_ns: int, elements: Iterable[Element], *, has_text: bool
) -> int:
    """Return when the first text or image is painted (W3C Paint Timing § 3.3, FCP).

    Text counts from the first paint on, as in Chromium, where it counts even while its font hides
    it (`TextPainter::Paint` calls `SetTextPainted` before it asks `ShouldSkipDrawing`).

    >>> first_contentful_paint_ns(50, [Element(1.0, False, 90)], has_text=False)
    90
    """
    if has_text:
        return first_paint_ns
    paint_times_ns = (at_ns for each in elements for at_ns, _ in each.steps(first_paint_ns))
    return min(paint_times_ns, default=first_paint_ns)


def largest_paint_ns(first_paint_ns: int, elements: Iterable[Element]) -> int:
    """Return when the largest element is painted, an approximation of LCP.

    The largest element is the hero image where the page names one (the last of several), else the
    one with the largest share of the viewport, else the text of the first paint. Of elements with
    the same share the first counts: only a larger one replaces it (Largest Contentful Paint § 4.2).
    Nothing is painted before the first paint.

    >>> largest_paint_ns(50, [Element(0.2, False, 90), Element(0.1, False, 200)])
    90
    >>> largest_paint_ns(50, [Element(0.2, True, 90), Element(0.2, False, 70)])
    70
    >>> largest_paint_ns(50, [])
    50
    """
    elements = list(elements)
    first_by_share: dict[Fraction | float, int] = {}
    for each in elements:
        if each.share:
            at_ns = first_by_share.get(each.share, each.ready_at_ns)
            first_by_share[each.share] = min(at_ns, each.ready_at_ns)
    heroes = [each for each in elements if each.is_hero]
    if heroes:
        ready_ns = (first_by_share.get(each.share or 0, each.ready_at_ns) for each in heroes)
        return max(first_paint_ns, *ready_ns)
    return max(first_paint_ns, first_by_share[max(first_by_share)] if first_by_share else 0)


def speed_index_ns(
    first_paint_ns: int,
    elements: Sequence[Element],
    *,
    text: Element | None = None,
    origin_ns: int = 0,
) -> Fraction | None:
    """Return the approximate SpeedIndex: the integral of the viewport share not yet painted.

    The area that no element covers (*text*, plain backgrounds) is painted as *text* is, by default
    all of it at the first paint. Overlapping elements are scaled to fit the viewport. None if no
    element has a share.

    >>> float(speed_index_ns(100, [Element(0.25, False, 500)]))
    200.0
    >>> float(speed_index_ns(100, [Element(0.25, False, 500, ((300, Fraction(1, 2)),))]))
    175.0
    """
    paints = _paints(first_paint_ns, elements, text)
    if paints is None:
        return None
    return sum(((at_ns - origin_ns) * added for at_ns, added in paints), Fraction(0))


def seen_at_ns(
    first_paint_ns: int,
    elements: Sequence[Element],
    share: Fraction,
    *,
    text: Element | None = None,
) -> int | None:
    """Return when at least *share* of the viewport is painted, by the paints of the SpeedIndex.

    None if no element has a share.

    >>> seen_at_ns(100, [Element(0.25, False, 500)], Fraction(85, 100))
    500
    """
    paints = _paints(first_paint_ns, elements, text)
    if paints is None:
        return None
    painted, reached_ns = Fraction(0), first_paint_ns
    for at_ns, added in sorted(paints):
        if painted >= share:
            break
        painted += added
        reached_ns = at_ns
    return reached_ns


def _paints(
    first_paint_ns: int, elements: Sequence[Element], text: Element | None
) -> list[Paint] | None:
    """Return all paints, each with the share of the viewport that it adds; they add up to 1.

    None if no element has a share.
    """
    # Fractions, since sums of floats depend on their order.
    shares = [Fraction(element.share or 0) for element in elements]
    covered = sum(shares, Fraction(0))
    if not covered:
        return None
    total = max(covered, Fraction(1))  # more than 1 if elements overlap
    background = text or Element(None, False, first_paint_ns)
    return [
        (at_ns, added * share / total)
        for element, share in zip([*elements, background], [*shares, total - covered], strict=True)
        if share
        for at_ns, added in element.steps(first_paint_ns)
    ]
