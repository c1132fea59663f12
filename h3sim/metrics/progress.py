"""Progress of a load: resource timings and time integrals (Bocchi 2016).

An index is the integral over time of 1 - x(t), where x rises from 0 to 1; if x is the weighted
share of resources complete at time t, it equals the weighted mean completion time.

The reading path of `docs/reading.md` ends here; that page says where to go next.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from h3sim.values.units import to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """Return the times of each request of *trace*, by the first delivery of each byte."""
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
    given: then progress is sampled at this interval, from *origin_ns* on, and a resource that
    completes at a sampling instant counts in that sample. None if there are no bytes.

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
            # Rounded up: a resource that completes between two samples counts in the second.
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
