"""Progress of a load: resource timings, paints, and time integrals (Bocchi 2016).

An index is the integral over time of 1 - x(t), where x rises from 0 to 1; with x a share of
weights that are complete at time t, that is the weighted mean completion time.

The path in `docs/reading.md` ends here; that page says where to go next.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from h3sim.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.trace import Trace


class Timing(NamedTuple):
    """One resource's times, in nanoseconds since navigation start; rows in request order."""

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
    """Return the times of each request of *trace*: its first and last byte as first delivered."""
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

    Only complete resources count (Marx 2019 § 4.2). The integral is exact, unless progress is
    sampled every *sample_ns* from *origin_ns* on: what completes at such an instant counts at it.
    None where there is no byte to weigh.

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
            # Rounded up: what is complete between two looks is seen at the second.
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
