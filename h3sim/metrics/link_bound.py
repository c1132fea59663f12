"""What no scheduler can beat on ByteIndex over links, given what arrived when."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

__all__ = ["Opportunity", "Wanted", "lower_bound_over_links_ns"]


class Opportunity(NamedTuple):
    """So many bytes that left and arrived, whatever they were."""

    sent_at_ns: int
    arrived_at_ns: int
    n_bytes: int


class Wanted(NamedTuple):
    """A response of *n_bytes* that is ready to be sent at a time, and its *weight*."""

    ready_at_ns: int
    n_bytes: int
    weight: int


def lower_bound_over_links_ns(
    wanted: Sequence[Wanted], opportunities: Sequence[Opportunity]
) -> float | None:
    """Return the least mean time at which *wanted* are there, by weight; None without any weight.

    Every byte uses one of *opportunities* that left when the response was ready, or later. A
    response is there no earlier than its last byte arrives: the mean of its bytes' arrivals, and
    the way from there to the last of them. The mean over all is least where each opportunity goes
    to what has most weight a byte, and the way is no shorter than in the densest run of as many
    bytes (it is shortest if nothing else arrives in between).

    >>> opportunities = [Opportunity(0, 10, 500), Opportunity(0, 20, 500), Opportunity(0, 40, 500)]
    >>> lower_bound_over_links_ns([Wanted(0, 500, 1), Wanted(0, 1000, 4)], opportunities)
    24.0
    """
    total = sum(response.weight for response in wanted)
    if not total:
        return None
    slots = _slots(opportunities)
    means = _mean_arrivals(wanted, slots)
    ways = _least_ways(wanted, slots)
    return (
        sum(
            response.weight * (mean + way)
            for response, mean, way in zip(wanted, means, ways, strict=True)
        )
        / total
    )


def _slots(opportunities: Sequence[Opportunity]) -> list[Opportunity]:
    """Return them by arrival, as if each had left no earlier than any that came before it.

    So what may use one may use all that come later, which only makes the bound lower.
    """
    slots, latest_ns = [], 0
    for slot in sorted(opportunities, key=lambda slot: slot.arrived_at_ns):
        latest_ns = max(latest_ns, slot.sent_at_ns)
        slots.append(slot._replace(sent_at_ns=latest_ns))
    return slots


def _mean_arrivals(wanted: Sequence[Wanted], slots: Sequence[Opportunity]) -> list[float]:
    """Deal each slot to what has most weight a byte; return the mean arrival of each's bytes."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index].ready_at_ns)
    left = [response.n_bytes for response in wanted]
    sums = [0] * len(wanted)
    ready: list[tuple[float, int]] = []
    n_released = 0
    for sent_at_ns, arrived_at_ns, capacity in slots:
        while n_released < len(order) and wanted[order[n_released]].ready_at_ns <= sent_at_ns:
            index = order[n_released]
            n_released += 1
            if left[index]:
                # Weight a byte of all its bytes, not renewed as they go: what counts is their mean
                # arrival.
                heappush(ready, (-wanted[index].weight / left[index], index))
        while capacity and ready:
            index = ready[0][1]
            n_bytes = min(capacity, left[index])
            sums[index] += n_bytes * arrived_at_ns
            left[index] -= n_bytes
            capacity -= n_bytes
            if not left[index]:
                heappop(ready)
    return [
        tick_sum / response.n_bytes if response.n_bytes else float(response.ready_at_ns)
        for tick_sum, response in zip(sums, wanted, strict=True)
    ]


def _least_ways(wanted: Sequence[Wanted], slots: Sequence[Opportunity]) -> list[float]:
    """Return how long the last byte of each comes at least after the mean of its bytes."""
    import numpy as np  # on use: importing h3sim should stay quick

    n_bytes = np.array([slot.n_bytes for slot in slots], dtype=float)
    arrived = np.array([slot.arrived_at_ns for slot in slots], dtype=float)
    sent = np.array([slot.sent_at_ns for slot in slots])
    until = np.cumsum(n_bytes)
    area = np.cumsum(n_bytes * arrived)
    ways = []
    for response in wanted:
        # Sent times rise in slots, so all from this one on left when it was ready, or later.
        first = int(np.searchsorted(sent, response.ready_at_ns))
        ways.append(_least_way(response.n_bytes, first, until, area, arrived))
    return ways


def _least_way(
    n_bytes: int, first: int, until: np.ndarray, area: np.ndarray, arrived: np.ndarray
) -> float:
    """Return the least time from the mean to the last byte of a run of *n_bytes* after *first*."""
    import numpy as np

    if not n_bytes:
        return 0.0
    begin = until[first:] - n_bytes
    before = until[first - 1] if first else 0.0
    # Half a byte of slack: sums of whole bytes as floats, which rounding must not shut out.
    runs = np.flatnonzero(begin >= before - 0.5)
    begin = begin[runs]
    slot = np.minimum(np.searchsorted(until, begin, side="right"), len(until) - 1)
    """right": a run that begins where a slot ends has no byte of that slot."""
    area_before = np.where(slot > 0, area[slot - 1], 0.0)
    until_before = np.where(slot > 0, until[slot - 1], 0.0)
    area_at_begin = area_before + (begin - until_before) * arrived[slot]
    last = runs + first
    ways = arrived[last] - (area[last] - area_at_begin) / n_bytes
    # Rounding may leave a little less than nothing.
    return max(0.0, float(ways.min())) if len(ways) else 0.0
