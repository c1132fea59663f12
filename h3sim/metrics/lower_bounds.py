"""Lower bounds on ByteIndex: for fixed requests, for a dependency graph, and over links."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import TriggerEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from h3sim.page import Discovery, Page, Resource


class Path(NamedTuple):
    """The timing of a constant rate: a packet each *interval_ns*, and both one-way delays.

    *begins_at_ns* is when the root is requested.
    """

    packet_bytes: int
    interval_ns: Fraction
    down_ns: int
    up_ns: int
    begins_at_ns: int = 0


class Part(NamedTuple):
    """Consecutive packets of one response, up to one on which a request depends, or the last."""

    after: int | None
    """Index of the part that must be sent before, if any."""
    lag_ticks: int
    """Least number of ticks from the last packet of *after* to its first."""
    first_tick: int
    """Earliest tick at which its first packet can leave."""
    n_packets: int
    weight: int
    """Weight of the tick of its last packet in the mean."""


class _RequestRelease(NamedTuple):
    """Earliest time of a request."""

    after: int | None
    """Index of the part whose delivery it waits for, if any."""
    ns: int
    """Time after that delivery, or else after navigation start."""


def parts_of(page: Page, path: Path, *, weighs: Callable[[Resource], bool]) -> list[Part]:
    """Return the parts of *page*, each after the one that it waits for.

    A response is cut where the browser requests something, after the fewest packets that can carry
    the bytes before that. A response for which *weighs* is true has the bytes of its body as
    weight, from its completion on.

    >>> from fractions import Fraction
    >>> from h3sim.page import Kind, Page, Resource
    >>> page = Page(name="one", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=2800),))
    >>> parts_of(page, Path(1400, Fraction(10), 0, 0), weighs=lambda resource: True)
    [Part(after=None, lag_ticks=1, first_tick=1, n_packets=2, weight=2800)]
    """
    parts: list[Part] = []
    requests: dict[int, _RequestRelease] = {}  # by resource
    part_by_end: dict[tuple[int, int], int] = {}
    for index in _parents_first(page):
        resource = page.resources[index]
        requests[index] = _request_release(page, index, path, requests, part_by_end)
        weight = resource.size_bytes if weighs(resource) else 0
        cuts = _cuts(page, index, path.packet_bytes)
        for begin, end in zip([0, *cuts], cuts, strict=False):
            after, lag_ticks, first_tick = _release(requests[index], resource, path, parts)
            if begin:  # the rest of a response waits only for the part before it
                after, lag_ticks = len(parts) - 1, 1
                first_tick = _last_tick(parts[-1]) + 1
            is_last = end == cuts[-1]
            # A response counts once it is complete, so its weight lies on the last part.
            parts.append(Part(after, lag_ticks, first_tick, end - begin, weight * is_last))
            part_by_end[index, end] = len(parts) - 1
    return parts


def _parents_first(page: Page) -> list[int]:
    """Return the resources in an order in which each follows its parent."""
    order, stack = [], [i for i, r in enumerate(page.resources) if _parent(page, r) is None]
    while stack:
        index = stack.pop()
        order.append(index)
        stack += _children(page, index)
    return order


def _children(page: Page, index: int) -> list[int]:
    """Return the resources whose `_parent` is that one."""
    children = page.children.get(index, ())
    return [child for child in children if _parent(page, page.resources[child]) == index]


def _parent(page: Page, resource: Resource) -> int | None:
    """Return the resource whose progress triggers the request for another, if any.

    Of several that are all waited for, it is the first: a bound that ignores the others is lower.
    With alternatives none need have progressed.
    """
    discovery = resource.discovered
    if discovery is None or discovery.or_else or discovery.at is TriggerEvent.TIME:
        return None
    by = discovery.first_parent
    return None if by is None else page.index[by]


def _request_release(
    page: Page,
    index: int,
    path: Path,
    requests: Mapping[int, _RequestRelease],
    part_by_end: Mapping[tuple[int, int], int],
) -> _RequestRelease:
    """Return the release of the request for a resource.

    *requests* has that of its parent; *part_by_end* has the index of each part of its parent, by
    the parent and the number of its packets up to the end of the part.
    """
    resource = page.resources[index]
    discovery, parent = resource.discovered, _parent(page, resource)
    if discovery is None:
        return _RequestRelease(None, path.begins_at_ns)
    if parent is None:
        delay_ns = 0 if discovery.or_else else discovery.delay_ns
        return _RequestRelease(None, max(path.begins_at_ns, delay_ns))
    if discovery.at is TriggerEvent.REQUEST:
        after, ns = requests[parent]
        return _RequestRelease(after, ns + discovery.delay_ns)
    trigger = page.resources[parent]
    ns = discovery.delay_ns
    if discovery.at is TriggerEvent.EXECUTED:
        ns += trigger.parse_ns + trigger.execute_ns
    n_packets = _n_packets_until(trigger, discovery, path.packet_bytes)
    return _RequestRelease(part_by_end[parent, n_packets], ns)


def _n_packets_until(parent: Resource, discovery: Discovery, packet_bytes: int) -> int:
    """Return the least number of packets of *parent* needed for *discovery* to happen."""
    n_bytes = parent.stream_bytes
    if discovery.at is TriggerEvent.OFFSET:
        n_bytes = parent.header_bytes + (discovery.offset_bytes or 0)
    return max(1, -(-n_bytes // packet_bytes))


def _cuts(page: Page, index: int, packet_bytes: int) -> list[int]:
    """Return the packet counts after which something depends on a response; the last is its end."""
    resource = page.resources[index]
    # A response without bytes takes one packet too, with the end of the stream.
    cuts = {max(1, -(-resource.stream_bytes // packet_bytes))}
    for child in _children(page, index):
        discovery = page.resources[child].discovered
        if discovery is not None and discovery.at is not TriggerEvent.REQUEST:
            cuts.add(_n_packets_until(resource, discovery, packet_bytes))
    return sorted(cuts)


def _release(
    request: _RequestRelease, resource: Resource, path: Path, parts: list[Part]
) -> tuple[int | None, int, int]:
    """Return *after*, *lag_ticks* and *first_tick* of a response's first `Part`."""
    ns = request.ns + path.up_ns + resource.server_ns
    if request.after is None:
        return None, 1, max(1, -(-ns // path.interval_ns))
    # Ticks are rounded down to whole nanoseconds: a part may arrive up to 1 ns early.
    rounding_ns = int(path.interval_ns.denominator > 1)
    lag_ticks = max(1, -(-(ns + path.down_ns - rounding_ns) // path.interval_ns))
    return request.after, lag_ticks, _last_tick(parts[request.after]) + lag_ticks


def _last_tick(part: Part) -> int:
    """Return the earliest tick at which the last packet of a part can leave."""
    return part.first_tick + part.n_packets - 1


class Response(NamedTuple):
    """A response: when the server can send it, and its size."""

    ready_at_ns: int
    n_bytes: int
    n_packets: int


def lower_bound_ns(
    responses: Iterable[Response], *, interval_ns: Fraction, delay_ns: int = 0
) -> Fraction | None:
    """Return the least ByteIndex of *responses*; None if they have no bytes.

    A packet leaves at each multiple of *interval_ns*, and arrives *delay_ns* later. Responses whose
    packets use ticks, but which are not part of the ByteIndex, have 0 bytes.

    ByteIndex is a mean completion time with bytes as weights, and a response completes no earlier
    than half its length after the mean of the instants at which its packets leave. The mean over
    all is least if each instant goes to the response with the most bytes per packet among those
    that are ready (Goemans 1997, for machine scheduling). If bytes are proportional to packets, any
    work-conserving order that finishes each response before it starts another attains the bound.

    >>> two = [Response(0, 2800, 2), Response(5, 1400, 1)]
    >>> float(lower_bound_ns(two, interval_ns=Fraction(10)))
    23.333333333333332
    """
    jobs = list(responses)
    total = sum(job.n_bytes for job in jobs)
    if not total:
        return None
    sums = tick_sums(
        # Rounded up to the next tick. The first is tick 1, one interval after navigation start.
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
    """Return the sum of ticks of each job if each tick goes to the densest job that is ready.

    The densest job has the most weight per packet; this order minimizes the sum over all jobs of
    weight times mean tick.

    >>> tick_sums([1, 2], [2, 1], [2, 9])
    [4, 2]
    """
    by_release = sorted(range(len(first_ticks)), key=first_ticks.__getitem__)
    packets_left = list(n_packets)
    sums = [0] * len(packets_left)
    ready: list[tuple[float, int]] = []  # a heap of jobs by negative density
    tick, n_released = 1, 0
    while ready or n_released < len(by_release):
        if not ready:
            tick = max(tick, first_ticks[by_release[n_released]])
        while n_released < len(by_release) and first_ticks[by_release[n_released]] <= tick:
            index = by_release[n_released]
            # The density of the complete job, not of its rest: the mean tick of all packets counts.
            heappush(ready, (-weights[index] / packets_left[index], index))
            n_released += 1
        _, index = ready[0]
        until = tick + packets_left[index]
        if n_released < len(by_release):  # a job released meanwhile may be denser
            until = min(until, first_ticks[by_release[n_released]])
        # The sum of consecutive ticks: their number times (first + last) / 2, which is an integer.
        sums[index] += (until - tick) * (tick + until - 1) // 2
        packets_left[index] -= until - tick
        if not packets_left[index]:
            heappop(ready)
        tick = until
    return sums


_N_STEPS = 200
"""Default number of steps of the ascent: more improve the bound little."""
_MAX_VAIN_STEPS = 5
"""The number of steps without an improvement after which the step length is halved."""
_MIN_RELATIVE_GAIN = 1e-9
"""Smallest relative improvement of the bound that counts; less may be a rounding error."""


def mean_tick_bound(parts: Sequence[Part], *, n_steps: int = _N_STEPS) -> float | None:
    """Return a lower bound on the weighted mean tick at which parts have been sent.

    None if nothing has a weight. It holds for every schedule that sends at most one packet at each
    tick, in three steps.

    1. The mean of the ticks at which a part of n packets is sent is at most its last one minus
       (n-1)/2. So its last tick is at least that mean plus (n-1)/2. Weighted, these means are least
       if each tick goes to the part with the most weight per packet among those that may be sent by
       then, each from its `first_tick` on (Goemans 1997).
    2. A part that waits for another ends at least lag + n - 1 ticks after it. So if some of its
       weight is moved to the other part, and that many ticks are added for it, the sum of weights
       times ends does not rise. The bound of step 1 for the new weights is therefore a lower bound
       on the old sum (a Lagrangian relaxation of the precedence constraints).
    3. The best amounts to move are sought by *n_steps* steps along the supergradient. They decide
       how tight the bound is, not whether it holds.

    >>> from h3sim.metrics.lower_bounds import Part
    >>> first = Part(after=None, lag_ticks=1, first_tick=1, n_packets=9, weight=0)
    >>> behind = Part(after=0, lag_ticks=1, first_tick=10, n_packets=1, weight=8)
    >>> sibling = Part(after=None, lag_ticks=1, first_tick=1, n_packets=1, weight=1)
    >>> round(mean_tick_bound([first, behind, sibling]), 6)  # (1 + 8 * 11) / 9
    9.888889
    """
    total = math.fsum(part.weight for part in parts)
    if not total:
        return None
    # The supergradient reaches the same maximum from any start, but not in so few steps.
    starts = ([0.0] * len(parts), _levelled(parts))
    return max(_ascend(parts, moved, n_steps) for moved in starts) / total


def _ascend(parts: Sequence[Part], moved: list[float], n_steps: int) -> float:
    """Return the best bound on the sum of weights times ends, by steps that start at *moved*.

    *moved* is the weight that each part moves to the part it waits for.
    """
    highest_density = max(part.weight / part.n_packets for part in parts)
    best, ends = _bound(parts, moved)
    best_moved, slopes = moved, _slopes(parts, ends)
    step_length, n_vain_steps = 1.0, 0
    for _ in range(n_steps):
        steepest = max(map(abs, slopes))
        if not steepest:
            break
        moved = _stepped(parts, moved, slopes, step_length * highest_density / steepest)
        bound, ends = _bound(parts, moved)
        n_vain_steps += 1
        if bound > best * (1 + _MIN_RELATIVE_GAIN):
            best, best_moved, n_vain_steps = bound, moved, 0
        elif n_vain_steps == _MAX_VAIN_STEPS:
            moved, step_length, n_vain_steps = best_moved, step_length / 2, 0
            _, ends = _bound(parts, moved)
        slopes = _slopes(parts, ends)
    return best


def _bound(parts: Sequence[Part], moved: Sequence[float]) -> tuple[float, list[float]]:
    """Return the bound of step 2 for these moved weights, and the ends of the parts in it."""
    weights = [float(part.weight) for part in parts]
    moved_ticks = 0.0
    for index, part in enumerate(parts):
        if part.after is not None:
            weights[index] -= moved[index]
            weights[part.after] += moved[index]
            moved_ticks += moved[index] * _least_ticks_between_ends(part)
    ends = _ends(parts, weights)
    # `fsum`, since `sum` rounds floats differently from Python 3.12 on.
    return moved_ticks + math.fsum(map(operator.mul, weights, ends)), ends


def _least_ticks_between_ends(part: Part) -> int:
    """Return the least number of ticks between the ends of a part and of the one it waits for."""
    return part.lag_ticks + part.n_packets - 1


def _slopes(parts: Sequence[Part], ends: Sequence[float]) -> list[float]:
    """Return how much the bound rises per unit of weight moved from each part (supergradient)."""
    return [
        0.0 if part.after is None else _least_ticks_between_ends(part) + ends[part.after] - end
        for part, end in zip(parts, ends, strict=True)
    ]


def _stepped(
    parts: Sequence[Part], moved: Sequence[float], slopes: Sequence[float], length: float
) -> list[float]:
    """Return *moved* after a step along *slopes*, of *length* per packet and unit of slope."""
    further = [
        weight + length * slope * part.n_packets
        for weight, slope, part in zip(moved, slopes, parts, strict=True)
    ]
    return _allowed(parts, further)


def _allowed(parts: Sequence[Part], moved: list[float]) -> list[float]:
    """Clip *moved* in place, so that each part moves between 0 and its whole weight; return it."""
    weights = [float(part.weight) for part in parts]
    # Backwards: parts come after those that they wait for, so all weight that moves to a part has
    # been added when it is reached.
    for index in range(len(parts) - 1, -1, -1):
        after = parts[index].after
        if after is None:
            moved[index] = 0.0
        else:
            moved[index] = min(max(0.0, moved[index]), weights[index])
            weights[after] += moved[index]
    return moved


def _levelled(parts: Sequence[Part]) -> list[float]:
    """Return the weight to move so that no part is denser than the one it waits for.

    Without lags this is optimal (Horn 1972): a part denser than the one it waits for directly
    follows it, so both form a block with the mean density of their packets. The same applies to
    blocks.
    """
    # Of each block, at the index of its first part: weight, packets, and a heap of the parts that
    # wait for a part of it, by negative density.
    weights = [part.weight for part in parts]
    n_packets = [part.n_packets for part in parts]
    dependents: list[list[tuple[float, int]]] = [[] for _ in parts]
    is_joined = [False] * len(parts)  # to the block of the part that it waits for
    for index in range(len(parts) - 1, -1, -1):
        waiting = dependents[index]
        while waiting:
            _, densest = waiting[0]
            # Compared as integers, since rounding could make equal densities differ.
            if weights[densest] * n_packets[index] <= weights[index] * n_packets[densest]:
                break
            heappop(waiting)
            is_joined[densest] = True
            weights[index] += weights[densest]
            n_packets[index] += n_packets[densest]
            for dependent in dependents[densest]:
                heappush(waiting, dependent)
            dependents[densest] = []
        after = parts[index].after
        if after is not None:
            heappush(dependents[after], (-weights[index] / n_packets[index], index))
    return _levelling_moves(parts, is_joined, weights, n_packets)


def _levelling_moves(
    parts: Sequence[Part],
    is_joined: Sequence[bool],
    weights: Sequence[int],
    n_packets: Sequence[int],
) -> list[float]:
    """Return the weight to move so that all parts of a block have its mean weight per packet.

    *weights* and *n_packets* are those of each block, at the index of its first part.
    """
    densities: list[Fraction] = []
    for index, part in enumerate(parts):
        if part.after is not None and is_joined[index]:
            densities.append(densities[part.after])
        else:
            densities.append(Fraction(weights[index], n_packets[index]))
    moved = [Fraction(0)] * len(parts)
    excess = [part.weight - densities[index] * part.n_packets for index, part in enumerate(parts)]
    # Backwards, as in `_allowed`, so that the excess includes what later parts move.
    for index in range(len(parts) - 1, -1, -1):
        after = parts[index].after
        if after is not None and is_joined[index]:
            moved[index] = excess[index]
            excess[after] += excess[index]
    # Conversion to float may round up beyond the weight of a part.
    return _allowed(parts, [float(weight) for weight in moved])


def _ends(parts: Sequence[Part], weights: Sequence[float]) -> list[float]:
    """Return the end of each part, mean tick + (n-1)/2, in the order of step 1."""
    sums = tick_sums(
        [part.first_tick for part in parts], [part.n_packets for part in parts], weights
    )
    return [
        tick_sum / part.n_packets + (part.n_packets - 1) / 2
        for tick_sum, part in zip(sums, parts, strict=True)
    ]


class TransmissionOpportunity(NamedTuple):
    """A packet of a load, whose bytes another schedule could use for any stream."""

    sent_at_ns: int
    arrived_at_ns: int
    n_bytes: int


class TransmissionJob(NamedTuple):
    """A response: when the server can send it, its size, and its weight in the mean."""

    ready_at_ns: int
    n_bytes: int
    weight: int


def lower_bound_over_links_ns(
    jobs: Sequence[TransmissionJob], opportunities: Sequence[TransmissionOpportunity]
) -> float | None:
    """Return the least weighted mean completion time of *jobs*; None without any weight.

    Each byte of a response is carried by one of *opportunities* that left when it was ready, or
    later. A response is complete when its last byte arrives: that is the mean arrival of its bytes
    plus the gap between this mean and the last arrival. The weighted mean of the first terms is
    least if each opportunity goes to the job with the most weight per byte; each gap is at least
    that of the densest run of as many bytes, in which nothing else arrives.

    >>> opportunities = [TransmissionOpportunity(0, at, 500) for at in (10, 20, 40)]
    >>> jobs = [TransmissionJob(0, 500, 1), TransmissionJob(0, 1000, 4)]
    >>> lower_bound_over_links_ns(jobs, opportunities)
    24.0
    """
    total = sum(job.weight for job in jobs)
    if not total:
        return None
    slots = _slots(opportunities)
    means = _mean_arrivals(jobs, slots)
    gaps = _least_gaps(jobs, slots)
    weighted = (job.weight * (mean + gap) for job, mean, gap in zip(jobs, means, gaps, strict=True))
    return sum(weighted) / total


def _slots(opportunities: Sequence[TransmissionOpportunity]) -> list[TransmissionOpportunity]:
    """Return the opportunities in order of arrival, with departures that are made to rise as well.

    A job that can use one can then use all later ones. As this only adds choices, the result is
    still a lower bound.
    """
    slots, latest_ns = [], 0
    for slot in sorted(opportunities, key=lambda slot: slot.arrived_at_ns):
        latest_ns = max(latest_ns, slot.sent_at_ns)
        slots.append(slot._replace(sent_at_ns=latest_ns))
    return slots


def _mean_arrivals(
    jobs: Sequence[TransmissionJob], slots: Sequence[TransmissionOpportunity]
) -> list[float]:
    """Return the mean arrival of each job if each slot goes to the densest job that is ready."""
    by_release = sorted(range(len(jobs)), key=lambda index: jobs[index].ready_at_ns)
    bytes_left = [job.n_bytes for job in jobs]
    arrival_sums = [0] * len(jobs)  # over the bytes of each job
    ready: list[tuple[float, int]] = []  # a heap of jobs by negative density
    n_released = 0
    for sent_at_ns, arrived_at_ns, capacity in slots:
        while n_released < len(jobs) and jobs[by_release[n_released]].ready_at_ns <= sent_at_ns:
            index = by_release[n_released]
            n_released += 1
            if bytes_left[index]:
                # The density of the complete job, not of its rest: the mean of all bytes counts.
                heappush(ready, (-jobs[index].weight / bytes_left[index], index))
        while capacity and ready:
            _, index = ready[0]
            n_bytes = min(capacity, bytes_left[index])
            arrival_sums[index] += n_bytes * arrived_at_ns
            bytes_left[index] -= n_bytes
            capacity -= n_bytes
            if not bytes_left[index]:
                heappop(ready)
    return [
        arrival_sum / job.n_bytes if job.n_bytes else float(job.ready_at_ns)
        for arrival_sum, job in zip(arrival_sums, jobs, strict=True)
    ]


def _least_gaps(
    jobs: Sequence[TransmissionJob], slots: Sequence[TransmissionOpportunity]
) -> list[float]:
    """Return the least gap of each job between the mean arrival of its bytes and the last one."""
    import numpy as np  # on use: importing h3sim should stay quick

    n_bytes = np.array([slot.n_bytes for slot in slots], dtype=float)
    arrived = np.array([slot.arrived_at_ns for slot in slots], dtype=float)
    sent = np.array([slot.sent_at_ns for slot in slots])
    bytes_until = np.cumsum(n_bytes)
    arrival_sums = np.cumsum(n_bytes * arrived)
    gaps = []
    for job in jobs:
        # Departures rise, so the job can use this slot and all later ones.
        first = int(np.searchsorted(sent, job.ready_at_ns))
        gaps.append(_least_gap_of_run(job.n_bytes, first, bytes_until, arrival_sums, arrived))
    return gaps


def _least_gap_of_run(
    n_bytes: int,
    first: int,
    bytes_until: np.ndarray,
    arrival_sums: np.ndarray,
    arrived: np.ndarray,
) -> float:
    """Return the least gap between the mean and the last arrival of a run of *n_bytes*.

    A run is of consecutive bytes of the slots from *first* on. It includes all bytes of its last
    slot: with fewer of them the mean would be earlier, and the gap longer. *bytes_until* and
    *arrival_sums*, the sum of the arrivals of bytes, are cumulated up to the end of each slot.
    """
    import numpy as np

    if not n_bytes:
        return 0.0
    begin = bytes_until[first:] - n_bytes
    bytes_before_first = bytes_until[first - 1] if first else 0.0
    # Half a byte of tolerance for the rounding of byte counts that are summed as floats.
    runs = np.flatnonzero(begin >= bytes_before_first - 0.5)
    begin = begin[runs]
    # "right": a run that begins where a slot ends has no byte of that slot.
    slot = np.minimum(np.searchsorted(bytes_until, begin, side="right"), len(bytes_until) - 1)
    sum_before_slot = np.where(slot > 0, arrival_sums[slot - 1], 0.0)
    bytes_before_slot = np.where(slot > 0, bytes_until[slot - 1], 0.0)
    sum_at_begin = sum_before_slot + (begin - bytes_before_slot) * arrived[slot]
    last = runs + first
    gaps = arrived[last] - (arrival_sums[last] - sum_at_begin) / n_bytes
    # Rounding may yield slightly less than 0.
    return max(0.0, float(gaps.min())) if len(gaps) else 0.0
