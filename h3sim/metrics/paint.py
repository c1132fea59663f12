"""What is seen when: first paint, largest paint, visual progress."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Element", "largest_paint_ns", "seen_at_ns", "speed_index_ns"]


class Element(NamedTuple):
    """Something that is seen: *share* of the viewport's pixels (None: not known), and from when."""

    share: float | None
    is_hero: bool
    ready_at_ns: int


def largest_paint_ns(first_paint_ns: int, elements: Iterable[Element]) -> int:
    """Return when the largest element is painted, an approximation of LCP.

    That is the hero where the page names one (the last of several), else what has the largest share
    of the viewport (the first of several), else the text of the first paint. Nothing is painted
    before that.

    >>> largest_paint_ns(50, [Element(0.2, False, 90), Element(0.1, False, 200)])
    90
    >>> largest_paint_ns(50, [])
    50
    """
    elements = list(elements)
    heroes = [element.ready_at_ns for element in elements if element.is_hero]
    if heroes:
        return max(first_paint_ns, *heroes)
    # Of one size the first that is ready: one that is no larger does not replace it.
    largest = max(
        elements, key=lambda element: (element.share or 0, -element.ready_at_ns), default=None
    )
    if largest is None or not largest.share:
        return first_paint_ns
    return max(first_paint_ns, largest.ready_at_ns)


def speed_index_ns(
    first_paint_ns: int, elements: Sequence[Element], *, origin_ns: int = 0
) -> Fraction | None:
    """Return the approximate SpeedIndex: the integral of what is not seen yet, by viewport share.

    What no element covers (text, plain backgrounds) is seen from the first paint on. Elements that
    overlap are scaled to the whole. None where no element has a share.

    >>> float(speed_index_ns(100, [Element(0.25, False, 500)]))
    200.0
    """
    # Exactly, as sums of floats depend on their order.
    shares = [Fraction(element.share or 0) for element in elements]
    covered = sum(shares, Fraction(0))
    if not covered:
        return None
    scale = max(covered, Fraction(1))
    seen = [
        share * (max(first_paint_ns, element.ready_at_ns) - origin_ns)
        for share, element in zip(shares, elements, strict=True)
    ]
    text = (scale - covered) * (first_paint_ns - origin_ns)
    return (sum(seen, text)) / scale


def seen_at_ns(first_paint_ns: int, elements: Sequence[Element], share: Fraction) -> int | None:
    """Return when at least *share* of the viewport is seen, as the SpeedIndex counts it.

    None where no element has a share.

    >>> seen_at_ns(100, [Element(0.25, False, 500)], Fraction(85, 100))
    500
    """
    shares = [Fraction(element.share or 0) for element in elements]
    covered = sum(shares, Fraction(0))
    if not covered:
        return None
    scale = max(covered, Fraction(1))
    seen = scale - covered  # text, from the first paint on
    at_ns = first_paint_ns
    ready = sorted(
        (max(first_paint_ns, element.ready_at_ns), part)
        for element, part in zip(elements, shares, strict=True)
    )
    for ready_at_ns, part in ready:
        if seen < share * scale:
            seen += part
            at_ns = ready_at_ns
    return at_ns
