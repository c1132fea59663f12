"""Time-integral indexes (Bocchi, De Cicco, Rossi 2016): how long progress was outstanding.

An index is the integral over time of 1 - x(t), where x rises from 0 to 1; with x a share of
weights that are complete at time t, that is the weighted mean completion time.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SAMPLE_MS", "byte_index_ns", "object_index_ns"]

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
