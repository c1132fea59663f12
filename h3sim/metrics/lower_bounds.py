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
    """Packets of one response that must all be sent before something that depends on them.

    Its first packet leaves at tick *first_tick* at the earliest, and *lag_ticks* after the last
    packet of the part *after* (an index in the list), if there is one. *weight* counts when its
    last packet has arrived.
    """

    after: int | None
    lag_ticks: int
    first_tick: int
    n_packets: int
    weight: int


class _RequestRelease(NamedTuple):
    """The release of a request: *ns* after part *after* was delivered, or unconditional."""

    after: int | None
    ns: int


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
    requests_by_part: dict[int, _RequestRelease] = {}
    ends: dict[tuple[int, int], int] = {}
    for index in _parents_first(page):
        resource = page.resources[index]
        requests_by_part[index] = _request_release(page, index, path, requests_by_part, ends)
        weight = resource.size_bytes if weighs(resource) else 0
        cuts = _cuts(page, index, path.packet_bytes)
        for begin, end in zip([0, *cuts], cuts, strict=False):
            after, lag_ticks, first_tick = _release(requests_by_part[index], resource, path, parts)
            # What follows a cut waits for what precedes it, and for nothing else.
            if begin:
                after, lag_ticks = len(parts) - 1, 1
                first_tick = _last_tick(parts[-1]) + 1
            is_last = end == cuts[-1]
            # A response counts once it is complete, so its weight lies on the last part.
            parts.append(Part(after, lag_ticks, first_tick, end - begin, weight * is_last))
            ends[index, end] = len(parts) - 1
    return parts


def _parents_first(page: Page) -> list[int]:
    """Return the resources in an order in which each follows its parent."""
    order, on_stack = [], [i for i, r in enumerate(page.resources) if _parent(page, r) is None]
    children: Mapping[int, tuple[int, ...]] = page.children
    while on_stack:
        index = on_stack.pop()
        order.append(index)
        on_stack += children.get(index, ())
    return order


def _parent(page: Page, resource: Resource) -> int | None:
    discovery = resource.discovered
    if discovery is None or discovery.by is None or discovery.at is TriggerEvent.TIME:
        return None
    return page.index[discovery.by]


def _request_release(
    page: Page,
    index: int,
    path: Path,
    requests_by_part: Mapping[int, _RequestRelease],
    ends: Mapping[tuple[int, int], int],
) -> _RequestRelease:
    """Return the release of the request for a resource; its parent's is known already.

    *ends* has the index of the part that ends with a packet, by resource and number of packets.
    """
    resource = page.resources[index]
    discovery, parent = resource.discovered, _parent(page, resource)
    if discovery is None:
        return _RequestRelease(None, path.begins_at_ns)
    if parent is None:
        return _RequestRelease(None, max(path.begins_at_ns, discovery.delay_ns))
    if discovery.at is TriggerEvent.REQUEST:
        after, ns = requests_by_part[parent]
        return _RequestRelease(after, ns + discovery.delay_ns)
    of = page.resources[parent]
    ns = discovery.delay_ns
    if discovery.at is TriggerEvent.EXECUTED:
        ns += of.parse_ns + of.execute_ns
    return _RequestRelease(ends[parent, _n_packets_until(of, discovery, path.packet_bytes)], ns)


def _n_packets_until(parent: Resource, discovery: Discovery, packet_bytes: int) -> int:
    """Return the least number of packets of *parent* needed for *discovery* to happen."""
    n_bytes = parent.stream_bytes
    if discovery.at is TriggerEvent.OFFSET:
        n_bytes = parent.header_bytes + (discovery.offset_bytes or 0)
    return max(1, -(-n_bytes // packet_bytes))


def _cuts(page: Page, index: int, packet_bytes: int) -> list[int]:
    """Return the packet counts after which something depends on a response; the last is its end."""
    resource = page.resources[index]
    # A response without bytes takes a packet as well, which carries its end.
    cuts = {max(1, -(-resource.stream_bytes // packet_bytes))}
    for child in page.children.get(index, ()):
        discovery = page.resources[child].discovered
        if discovery is not None and discovery.at is not TriggerEvent.REQUEST:
            cuts.add(_n_packets_until(resource, discovery, packet_bytes))
    return sorted(cuts)


def _release(
    requests_by_part: _RequestRelease, resource: Resource, path: Path, parts: list[Part]
) -> tuple[int | None, int, int]:
    """Return the part that a response waits for, for how long, and its first tick."""
    ns = requests_by_part.ns + path.up_ns + resource.server_ns
    if requests_by_part.after is None:
        return None, 1, max(1, -(-ns // path.interval_ns))
    # A tick is rounded to whole nanoseconds, so it may be up to 1 ns before its exact time.
    cut_ns = int(path.interval_ns.denominator > 1)
    lag_ticks = max(1, -(-(ns + path.down_ns - cut_ns) // path.interval_ns))
    return requests_by_part.after, lag_ticks, _last_tick(parts[requests_by_part.after]) + lag_ticks


def _last_tick(part: Part) -> int:
    return part.first_tick + part.n_packets - 1


class Response(NamedTuple):
    """A response that becomes ready at a time, with its bytes and packets."""

    ready_at_ns: int
    n_bytes: int
    n_packets: int


def lower_bound_ns(
    responses: Iterable[Response], *, interval_ns: Fraction, delay_ns: int = 0
) -> Fraction | None:
    """Return the least ByteIndex of *responses*; None if they have no bytes.

    A packet leaves at each multiple of *interval_ns*, and arrives *delay_ns* later. Responses that
    take packets but do not count have 0 bytes.

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
    """Return the sum of ticks of each job if each tick goes to the densest job that is ready.

    The densest job has the most weight per packet; this order minimizes the sum over all jobs of
    weight times mean tick.

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
            # The heap yields the least, and the most weight per packet goes first. Density is that
            # of the complete job, so a job once begun stays in front (Goemans 1997).
            heappush(ready, (-weights[index] / left[index], index))
            n_released += 1
        index = ready[0][1]
        until = tick + left[index]
        if n_released < len(order):
            until = min(until, first_ticks[order[n_released]])
        # Consecutive ticks: their number times (first + last), halved; one of the factors is even.
        sums[index] += (until - tick) * (tick + until - 1) // 2
        left[index] -= until - tick
        if not left[index]:
            heappop(ready)
        tick = until
    return sums


_N_STEPS = 200
_PATIENCE = 5
"""The number of steps without an improvement after which the step length is halved."""
_LEAST_GAIN = 1e-9


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
    """Return the best bound on the sum of weights times ends found from *moved* on."""
    densest = max(part.weight / part.n_packets for part in parts)
    best, ends = _bound(parts, moved)
    best_moved, slopes = moved, _slopes(parts, ends)
    length, n_vain = 1.0, 0
    for _ in range(n_steps):
        steepest = max(map(abs, slopes))
        if not steepest:
            break
        moved = _stepped(parts, moved, slopes, length * densest / steepest)
        bound, ends = _bound(parts, moved)
        n_vain += 1
        # A smaller gain is rounding, and would keep the steps long forever.
        if bound > best * (1 + _LEAST_GAIN):
            best, best_moved, n_vain = bound, moved, 0
        elif n_vain == _PATIENCE:
            moved, length, n_vain = best_moved, length / 2, 0
            _, ends = _bound(parts, moved)
        slopes = _slopes(parts, ends)
    return best


def _bound(parts: Sequence[Part], moved: Sequence[float]) -> tuple[float, list[float]]:
    """Return the bound of step 1 with these amounts of weight moved up, and the ends it has."""
    weights = [float(part.weight) for part in parts]
    added = 0.0
    for index, part in enumerate(parts):
        if part.after is not None:
            weights[index] -= moved[index]
            weights[part.after] += moved[index]
            added += moved[index] * _least_gap(part)
    ends = _ends(parts, weights)
    # Rounded once, so the same on every Python: `sum` rounds differently from 3.12 on.
    return added + math.fsum(map(operator.mul, weights, ends)), ends


def _least_gap(part: Part) -> int:
    """Return the least number of ticks between the ends of a part and of the one it waits for."""
    return part.lag_ticks + part.n_packets - 1


def _slopes(parts: Sequence[Part], ends: Sequence[float]) -> list[float]:
    """Return how much the bound rises per unit of weight moved up from each part."""
    return [
        0.0 if part.after is None else _least_gap(part) + ends[part.after] - end
        for part, end in zip(parts, ends, strict=True)
    ]


def _stepped(
    parts: Sequence[Part], moved: Sequence[float], slopes: Sequence[float], length: float
) -> list[float]:
    """Return *moved* after a step: scaled per packet of each part, and no weight below 0."""
    further = [
        weight + length * slope * part.n_packets
        for weight, slope, part in zip(moved, slopes, parts, strict=True)
    ]
    return _allowed(parts, further)


def _allowed(parts: Sequence[Part], moved: list[float]) -> list[float]:
    """Return *moved* clipped so that each part moves at least 0 and at most what it has."""
    weights = [float(part.weight) for part in parts]
    # From the end: a part follows the one that it waits for, so all weight that moves onto it has
    # been counted.
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

    Without lags this is optimal: a part that waits is then sent together with the one it waits for,
    at the mean density of both, and the same step is applied to the one that those wait for (Horn
    1972).
    """
    weights = [part.weight for part in parts]
    sizes = [part.n_packets for part in parts]
    joined = [False] * len(parts)
    """True if a part is sent together with the one that it waits for."""
    behind: list[list[tuple[float, int]]] = [[] for _ in parts]
    """The dependents of each job, or of its block: the densest first."""
    for index in range(len(parts) - 1, -1, -1):
        waiting = behind[index]
        # In integers: equal densities compare equal, which rounding could change.
        while waiting and _is_denser(waiting[0][1], index, weights, sizes):
            other = heappop(waiting)[1]
            joined[other] = True
            weights[index] += weights[other]
            sizes[index] += sizes[other]
            for each in behind[other]:
                heappush(waiting, each)
            behind[other] = []
        after = parts[index].after
        if after is not None:
            heappush(behind[after], (-weights[index] / sizes[index], index))
    return _moved_within(parts, joined, weights, sizes)


def _is_denser(index: int, other: int, weights: Sequence[int], sizes: Sequence[int]) -> bool:
    return weights[index] * sizes[other] > weights[other] * sizes[index]


def _moved_within(
    parts: Sequence[Part], joined: Sequence[bool], weights: Sequence[int], sizes: Sequence[int]
) -> list[float]:
    """Return the weight to move so that all parts of a block have its mean weight per packet.

    *weights* and *sizes* are those of each block, at the index of its first part.
    """
    density: list[Fraction] = []
    for index, part in enumerate(parts):
        if part.after is not None and joined[index]:
            density.append(density[part.after])
        else:
            density.append(Fraction(weights[index], sizes[index]))
    moved = [Fraction(0)] * len(parts)
    over = [part.weight - density[index] * part.n_packets for index, part in enumerate(parts)]
    # From the end, as in `_allowed`: with the weight that moves up from later parts.
    for index in range(len(parts) - 1, -1, -1):
        after = parts[index].after
        if after is not None and joined[index]:
            moved[index] = over[index]
            over[after] += over[index]
    # Rounding may leave slightly more than there is.
    return _allowed(parts, [float(weight) for weight in moved])


def _ends(parts: Sequence[Part], weights: Sequence[float]) -> list[float]:
    """Return mean tick + (n-1)/2 of each part in the order with the least weighted mean."""
    sums = tick_sums(
        [part.first_tick for part in parts], [part.n_packets for part in parts], weights
    )
    return [
        tick_sum / part.n_packets + (part.n_packets - 1) / 2
        for tick_sum, part in zip(sums, parts, strict=True)
    ]


class TransmissionOpportunity(NamedTuple):
    """A number of bytes that left and arrived, whatever their stream."""

    sent_at_ns: int
    arrived_at_ns: int
    n_bytes: int


class TransmissionJob(NamedTuple):
    """A response of *n_bytes* that becomes ready at a time, and its *weight*."""

    ready_at_ns: int
    n_bytes: int
    weight: int


def lower_bound_over_links_ns(
    jobs: Sequence[TransmissionJob], opportunities: Sequence[TransmissionOpportunity]
) -> float | None:
    """Return the least weighted mean completion time of *jobs*; None without any weight.

    Every byte uses one of *opportunities* that left when the response was ready, or later. A
    response completes no earlier than its last byte arrives: the mean arrival of its bytes, plus
    the gap between that mean and the last of them. The mean over all is least if each opportunity
    goes to the job with the most weight per byte, and the gap is no shorter than in the densest run
    of as many bytes (it is shortest if nothing else arrives in between).

    >>> opportunities = [TransmissionOpportunity(0, at, 500) for at in (10, 20, 40)]
    >>> jobs = [TransmissionJob(0, 500, 1), TransmissionJob(0, 1000, 4)]
    >>> lower_bound_over_links_ns(jobs, opportunities)
    24.0
    """
    total = sum(response.weight for response in jobs)
    if not total:
        return None
    slots = _slots(opportunities)
    means = _mean_arrivals(jobs, slots)
    ways = _least_ways(jobs, slots)
    return (
        sum(
            response.weight * (mean + way)
            for response, mean, way in zip(jobs, means, ways, strict=True)
        )
        / total
    )


def _slots(opportunities: Sequence[TransmissionOpportunity]) -> list[TransmissionOpportunity]:
    """Return the opportunities by arrival, each leaving no earlier than those before it.

    A job that may use one may therefore use all later ones, which can only lower the bound.
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
    order = sorted(range(len(jobs)), key=lambda index: jobs[index].ready_at_ns)
    left = [response.n_bytes for response in jobs]
    sums = [0] * len(jobs)
    ready: list[tuple[float, int]] = []
    n_released = 0
    for sent_at_ns, arrived_at_ns, capacity in slots:
        while n_released < len(order) and jobs[order[n_released]].ready_at_ns <= sent_at_ns:
            index = order[n_released]
            n_released += 1
            if left[index]:
                # Density is that of the complete job and is not updated while bytes go: what counts
                # is their mean arrival.
                heappush(ready, (-jobs[index].weight / left[index], index))
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
        for tick_sum, response in zip(sums, jobs, strict=True)
    ]


def _least_ways(
    jobs: Sequence[TransmissionJob], slots: Sequence[TransmissionOpportunity]
) -> list[float]:
    """Return the least gap of each job between its mean and its last byte."""
    import numpy as np  # on use: importing h3sim should stay quick

    n_bytes = np.array([slot.n_bytes for slot in slots], dtype=float)
    arrived = np.array([slot.arrived_at_ns for slot in slots], dtype=float)
    sent = np.array([slot.sent_at_ns for slot in slots])
    until = np.cumsum(n_bytes)
    area = np.cumsum(n_bytes * arrived)
    ways = []
    for response in jobs:
        # Departures rise in slots, so all from this one on left when it was ready, or later.
        first = int(np.searchsorted(sent, response.ready_at_ns))
        ways.append(_least_way(response.n_bytes, first, until, area, arrived))
    return ways


def _least_way(
    n_bytes: int, first: int, until: np.ndarray, area: np.ndarray, arrived: np.ndarray
) -> float:
    """Return the least gap between mean and last byte of a run of *n_bytes* after *first*."""
    import numpy as np

    if not n_bytes:
        return 0.0
    begin = until[first:] - n_bytes
    before = until[first - 1] if first else 0.0
    # Half a byte of slack: whole bytes summed as floats, which rounding must not exclude.
    runs = np.flatnonzero(begin >= before - 0.5)
    begin = begin[runs]
    slot = np.minimum(np.searchsorted(until, begin, side="right"), len(until) - 1)
    """right": a run that begins where a slot ends has no byte of that slot."""
    area_before = np.where(slot > 0, area[slot - 1], 0.0)
    until_before = np.where(slot > 0, until[slot - 1], 0.0)
    area_at_begin = area_before + (begin - until_before) * arrived[slot]
    last = runs + first
    ways = arrived[last] - (area[last] - area_at_begin) / n_bytes
    # Rounding may yield slightly less than 0.
    return max(0.0, float(ways.min())) if len(ways) else 0.0
