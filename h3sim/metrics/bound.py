"""What no scheduler can beat on ByteIndex, given when each response is ready."""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Response", "lower_bound_ns"]


class Response(NamedTuple):
    """A response that is ready to be sent at a time, as so many bytes in so many packets."""

    ready_at_ns: int
    n_bytes: int
    n_packets: int


def lower_bound_ns(
    responses: Iterable[Response], *, interval_ns: Fraction, delay_ns: int = 0
) -> Fraction | None:
    """Return the least exact ByteIndex over all resources; None where there is no byte.

    A packet leaves at each multiple of *interval_ns*, and arrives *delay_ns* later.

    ByteIndex is a mean completion time with bytes as weights, and a response completes no earlier
    than half its length after the mean of the instants at which its packets leave. The mean over
    all is least where each instant goes to the response with most bytes a packet among those that
    are ready (Goemans 1997, for machine scheduling). Where bytes are in proportion to packets, any
    work-conserving order that ends what it has begun attains it.

    >>> two = [Response(0, 2800, 2), Response(5, 1400, 1)]
    >>> float(lower_bound_ns(two, interval_ns=Fraction(10)))
    23.333333333333332
    """
    jobs = sorted(responses)
    total = sum(job.n_bytes for job in jobs)
    if not total:
        return None
    weighted = Fraction(0)
    for job, tick_sum in zip(jobs, _tick_sums(jobs, interval_ns), strict=True):
        last_tick = Fraction(tick_sum, job.n_packets) + Fraction(job.n_packets - 1, 2)
        weighted += job.n_bytes * last_tick
    return weighted * interval_ns / total + delay_ns


def _tick_sums(jobs: Sequence[Response], interval_ns: Fraction) -> list[int]:
    """Deal the ticks to the densest job that is ready; return the sum of each job's ticks."""
    first = [max(1, -(-job.ready_at_ns // interval_ns)) for job in jobs]
    left = [job.n_packets for job in jobs]
    sums = [0] * len(jobs)
    ready: list[tuple[Fraction, int]] = []
    tick, arrived = 1, 0
    while ready or arrived < len(jobs):
        if not ready:
            tick = max(tick, first[arrived])
        while arrived < len(jobs) and first[arrived] <= tick:
            heappush(ready, (-Fraction(jobs[arrived].n_bytes, left[arrived]), arrived))
            arrived += 1
        job = ready[0][1]
        until = tick + left[job]
        if arrived < len(jobs):
            until = min(until, first[arrived])
        sums[job] += sum(range(tick, until))
        left[job] -= until - tick
        if not left[job]:
            heappop(ready)
        tick = until
    return sums
