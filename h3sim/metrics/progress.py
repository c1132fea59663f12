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
    from collections.abc import Iterable, Sequence

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


class Element(NamedTuple):
    """A visible element: its *share* of the viewport (None: unknown), and when it appears."""

    share: float | None
    is_hero: bool
    ready_at_ns: int


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
    first_paint_ns: int, elements: Sequence[Element], *, origin_ns: int = 0
) -> Fraction | None:
    """Return the approximate SpeedIndex: the integral of the viewport share not yet painted.

    The area that no element covers (text, plain backgrounds) is painted at the first paint.
    Overlapping elements are scaled to fit the viewport. None if no element has a share.

    >>> float(speed_index_ns(100, [Element(0.25, False, 500)]))
    200.0
    """
    # Exact, as sums of floats depend on their order.
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
    """Return when at least *share* of the viewport is painted, as the SpeedIndex counts it.

    None if no element has a share.

    >>> seen_at_ns(100, [Element(0.25, False, 500)], Fraction(85, 100))
    500
    """
    shares = [Fraction(element.share or 0) for element in elements]
    covered = sum(shares, Fraction(0))
    if not covered:
        return None
    scale = max(covered, Fraction(1))
    seen = scale - covered  # text, at the first paint
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
