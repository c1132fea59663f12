"""Progress of a load: resource timings, paints, and time integrals (Bocchi 2016).

An index is the integral over time of 1 - x(t), where x rises from 0 to 1; if x is the weighted
share of resources complete at time t, it equals the weighted mean completion time.

The reading path of `docs/reading.md` ends here; that page says where to go next.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.trace import Trace


class Timing(NamedTuple):
    """Times of one resource, in nanoseconds since navigation start; rows in request order."""

    stream_id: int
    resource: int
    requested_at_ns: int
    first_byte_at_ns: int
    finished_at_ns: int

    @property
    def completion_ms(self) -> float:
        """Time to completion: from the request to the last byte."""
        return to_ms(self.finished_at_ns - self.requested_at_ns)


def timings(trace: Trace) -> list[Timing]:
    """Return the times of each request of *trace*, with first and last byte as first delivered."""
    first, last = trace.packet_rows.first_and_last([r.stream_id for r in trace.requests])
    return [
        Timing(r.stream_id, r.resource, r.requested_at_ns, first[r.stream_id], last[r.stream_id])
        for r in trace.requests
    ]


SAMPLE_MS = 100.0
"""Interval at which Marx 2019 § 4.2 samples the progress of a page."""


def byte_index_ns(
    finished: Iterable[tuple[int, int]], *, origin_ns: int = 0, sample_ns: int | None = None
) -> Fraction | None:
    """Return the ByteIndex of resources given as (bytes, finished at), in nanoseconds.

    Only complete resources count (Marx 2019 § 4.2). The integral is exact unless *sample_ns* is
    given, which samples progress from *origin_ns* on: what completes at a sampling instant counts
    at it. None if there are no bytes.

    >>> page = [(500, 250_000_000), (500, 1_000_000_000)]
    >>> float(byte_index_ns(page))
    625000000.0
    >>> float(byte_index_ns(page, sample_ns=100_000_000))
    650000000.0
    """
    total = 0
    weighted = 0
    for n_bytes, finished_at_ns in finished:
        time_ns = finished_at_ns - origin_ns
        if sample_ns is not None:
            # Rounded up: what completes between two samples is seen at the second.
            time_ns = -(-time_ns // sample_ns) * sample_ns
        total += n_bytes
        weighted += n_bytes * time_ns
    return Fraction(weighted, total) if total else None


def object_index_ns(finished_at_ns: Iterable[int], *, origin_ns: int = 0) -> Fraction | None:
    """Return the ObjectIndex, the mean time to completion, in nanoseconds; None without objects.

    >>> float(object_index_ns([100, 300]))
    200.0
    """
    times = [at_ns - origin_ns for at_ns in finished_at_ns]
    return Fraction(sum(times), len(times)) if times else None


Paint = tuple[int, Fraction]
"""A paint of an element: its time, and the share of the element that is painted by then."""


class Element(NamedTuple):
    """A visible element: its *share* of the viewport (None: unknown), and when it is complete.

    *partial* are the earlier paints, both columns rising.
    """

    share: float | None
    is_hero: bool
    ready_at_ns: int
    partial: tuple[Paint, ...] = ()

    def steps(self, first_paint_ns: int) -> Iterator[Paint]:
        """Yield each paint with the share that it adds; nothing is painted before the first paint.

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
    begun = (at_ns for each in elements for at_ns, _ in each.steps(first_paint_ns))
    return min(begun, default=first_paint_ns)


def largest_paint_ns(first_paint_ns: int, elements: Iterable[Element]) -> int:
    """Return when the largest element is painted, an approximation of LCP.

    The largest element is the hero image where the page names one (the last of several), else the
    one with the largest share of the viewport (the first of several), else the text of the first
    paint. Nothing is painted before the first paint.

    >>> largest_paint_ns(50, [Element(0.2, False, 90), Element(0.1, False, 200)])
    90
    >>> largest_paint_ns(50, [])
    50
    """
    elements = list(elements)
    heroes = [element.ready_at_ns for element in elements if element.is_hero]
    if heroes:
        return max(first_paint_ns, *heroes)
    # Of equal sizes the first that is ready: only a larger element replaces it.
    largest = max(
        elements, key=lambda element: (element.share or 0, -element.ready_at_ns), default=None
    )
    if largest is None or not largest.share:
        return first_paint_ns
    return max(first_paint_ns, largest.ready_at_ns)


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
    """Return when at least *share* of the viewport is painted, as the SpeedIndex counts it.

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
    """Return all paints, each with the share of the viewport that it adds; they add up to 1."""
    # Exact, as sums of floats depend on their order.
    shares = [Fraction(element.share or 0) for element in elements]
    covered = sum(shares, Fraction(0))
    if not covered:
        return None
    scale = max(covered, Fraction(1))
    uncovered = text or Element(None, False, first_paint_ns)
    return [
        (at_ns, added * part / scale)
        for element, part in (*zip(elements, shares, strict=True), (uncovered, scale - covered))
        if part
        for at_ns, added in element.steps(first_paint_ns)
    ]
