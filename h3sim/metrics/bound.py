"""What no scheduler can beat on ByteIndex, given when each response is ready."""

from __future__ import annotations

from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Response", "lower_bound_ns", "tick_sums"]


class Response(NamedTuple):
    """A response that is ready to be sent at a time, as so many bytes in so many packets."""

    ready_at_ns: int
    n_bytes: int
    n_packets: int


def lower_bound_ns(
    responses: Iterable[Response], *, interval_ns: Fraction, delay_ns: int = 0
) -> Fraction | None:
    """Return the least ByteIndex of *responses*; None where there is no byte.

    A packet leaves at each multiple of *interval_ns*, and arrives *delay_ns* later. Responses that
    take packets and are not weighed have 0 bytes.

    ByteIndex is a mean completion time with bytes as weights, and a response completes no earlier
    than half its length after the mean of the instants at which its packets leave. The mean over
    all is least where each instant goes to the response with most bytes a packet among those that
    are ready (Goemans 1997, for machine scheduling). Where bytes are in proportion to packets, any
    work-conserving order that ends what it has begun attains it.

    >>> two = [Response(0, 2800, 2), Response(5, 1400, 1)]
    >>> float(lower_bound_ns(two, interval_ns=Fraction(10)))
    23.333333333333332
    """
    jobs = list(responses)
    total = sum(job.n_bytes for job in jobs)
    if not total:
        return None
    sums = tick_sums(
        # Rounded up, and tick 0 is over: nothing is ready at navigation start.
        [max(1, -(-job.ready_at_ns // interval_ns)) for job in jobs],
        [job.n_packets for job in jobs],
        [job.n_bytes for job in jobs],
    )
    weighted = Fraction(0)
    for job, tick_sum in zip(jobs, sums, strict=True):
        last_tick = Fraction(tick_sum, job.n_packets) + Fraction(job.n_packets - 1, 2)
        weighted += job.n_bytes * last_tick
    return weighted * interval_ns / total + delay_ns


def tick_sums(
    first_ticks: Sequence[int], n_packets: Sequence[int], weights: Sequence[float]
) -> list[int]:
    """Deal each tick to what has most weight a packet of what is ready; return the sum of each's.

    That makes the sum over all of weight times mean tick as small as it can be.

    >>> tick_sums([1, 2], [2, 1], [2, 9])
    [4, 2]
    """
    order = sorted(range(len(first_ticks)), key=first_ticks.__getitem__)
    left = list(n_packets)
    sums = [0] * len(left)
    ready: list[tuple[float, int]] = []
    tick, n_released = 1, 0
    while ready or n_released < len(order):
        if not ready:
            tick = max(tick, first_ticks[order[n_released]])
        while n_released < len(order) and first_ticks[order[n_released]] <= tick:
            index = order[n_released]
            # The heap gives the least, and most weight a packet goes first. By what it weighs as a
            # whole, so what is begun stays in front (Goemans 1997).
            heappush(ready, (-weights[index] / left[index], index))
            n_released += 1
        index = ready[0][1]
        until = tick + left[index]
        if n_released < len(order):
            until = min(until, first_ticks[order[n_released]])
        # Ticks in a row: their number times first and last, halved; one of the factors is even.
        sums[index] += (until - tick) * (tick + until - 1) // 2
        left[index] -= until - tick
        if not left[index]:
            heappop(ready)
        tick = until
    return sums
