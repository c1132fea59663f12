"""What no scheduler can beat on ByteIndex, whatever it makes the browser ask for and when."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from h3sim.metrics.bound import tick_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.metrics.parts import Part

__all__ = ["least_mean_tick"]

_N_STEPS = 200
_PATIENCE = 5
"""After so many steps that gave nothing they get half as long."""
_LEAST_GAIN = 1e-9


def least_mean_tick(parts: Sequence[Part], *, n_steps: int = _N_STEPS) -> float | None:
    """Return a bound from below on the mean tick, by weight, at which parts have been sent.

    None where nothing has a weight. It holds for every schedule that sends at most one packet at
    each tick, in three steps.

    1. The mean of the ticks at which a part of n packets is sent is at most its last one minus
       (n-1)/2. So its last tick is at least that mean plus (n-1)/2. By weight, these means are
       least where each tick goes to the part with most weight a packet among those that may be sent
       by then, each from its `first_tick` on (Goemans 1997).
    2. A part that waits for another ends at least lag + n - 1 ticks after that. So if some of its
       weight is moved to the other one, and that many ticks are added for it, the sum of weights
       times ends does not rise. What step 1 says of the new weights then bounds the old sum (a
       Lagrangian relaxation of what waits for what).
    3. How much is best moved is sought by *n_steps* steps along the supergradient. That decides how
       close the bound is, and not whether it holds.

    >>> from h3sim.metrics.parts import Part
    >>> first = Part(after=None, lag_ticks=1, first_tick=1, n_packets=9, weight=0)
    >>> behind = Part(after=0, lag_ticks=1, first_tick=10, n_packets=1, weight=8)
    >>> beside = Part(after=None, lag_ticks=1, first_tick=1, n_packets=1, weight=1)
    >>> round(least_mean_tick([first, behind, beside]), 6)  # (1 + 8 * 11) / 9
    9.888889
    """
    total = math.fsum(part.weight for part in parts)
    if not total:
        return None
    # The supergradient leads to the same maximum from anywhere, but not in so few steps.
    starts = ([0.0] * len(parts), _levelled(parts))
    return max(_ascend(parts, moved, n_steps) for moved in starts) / total


def _ascend(parts: Sequence[Part], moved: list[float], n_steps: int) -> float:
    """Return the best bound on the sum of weights times ends that is found from *moved* on."""
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
        # Less than this is rounding, and would keep the steps long for ever.
        if bound > best * (1 + _LEAST_GAIN):
            best, best_moved, n_vain = bound, moved, 0
        elif n_vain == _PATIENCE:
            moved, length, n_vain = best_moved, length / 2, 0
            _, ends = _bound(parts, moved)
        slopes = _slopes(parts, ends)
    return best


def _bound(parts: Sequence[Part], moved: Sequence[float]) -> tuple[float, list[float]]:
    """Return what step 1 says where so much of each weight was moved up, and the ends it has."""
    weights = [float(part.weight) for part in parts]
    added = 0.0
    for index, part in enumerate(parts):
        if part.after is not None:
            weights[index] -= moved[index]
            weights[part.after] += moved[index]
            added += moved[index] * _least_gap(part)
    ends = _ends(parts, weights)
    # Rounded once, and so alike everywhere: `sum` rounds otherwise from Python 3.12 on.
    return added + math.fsum(map(operator.mul, weights, ends)), ends


def _least_gap(part: Part) -> int:
    """Return how many ticks after the one that it waits for a part ends at the earliest."""
    return part.lag_ticks + part.n_packets - 1


def _slopes(parts: Sequence[Part], ends: Sequence[float]) -> list[float]:
    """Return by how much the bound rises for a weight of 1 moved up from each part."""
    return [
        0.0 if part.after is None else _least_gap(part) + ends[part.after] - end
        for part, end in zip(parts, ends, strict=True)
    ]


def _stepped(
    parts: Sequence[Part], moved: Sequence[float], slopes: Sequence[float], length: float
) -> list[float]:
    """Return *moved*, a step further: as far a packet for each, and no weight below 0."""
    further = [
        weight + length * slope * part.n_packets
        for weight, slope, part in zip(moved, slopes, parts, strict=True)
    ]
    return _allowed(parts, further)


def _allowed(parts: Sequence[Part], moved: list[float]) -> list[float]:
    """Return *moved* cut so that none moves more than it has, nor less than nothing."""
    weights = [float(part.weight) for part in parts]
    # From the end: a part stands behind what it waits for, so what is moved onto it has been.
    for index in range(len(parts) - 1, -1, -1):
        after = parts[index].after
        if after is None:
            moved[index] = 0.0
        else:
            moved[index] = min(max(0.0, moved[index]), weights[index])
            weights[after] += moved[index]
    return moved


def _levelled(parts: Sequence[Part]) -> list[float]:
    """Return what to move so that no part has more weight a packet than what it waits for.

    Without lags nothing is better: what waits is then sent as one with what it waits for, by the
    mean weight of both, and what waits for that is asked anew (Horn 1972).
    """
    weights = [part.weight for part in parts]
    sizes = [part.n_packets for part in parts]
    joined = [False] * len(parts)
    """Whether a part is sent as one with what it waits for."""
    behind: list[list[tuple[float, int]]] = [[] for _ in parts]
    """What waits for each, or for what is sent as one with it: the densest first."""
    for index in range(len(parts) - 1, -1, -1):
        waiting = behind[index]
        # In whole numbers: equal densities stay apart, however they would be rounded.
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
    """Return what moves up where all that are sent as one get the mean weight a packet of these.

    *weights* and *sizes* are those of all of them, by the one that waits for none of them.
    """
    density: list[Fraction] = []
    for index, part in enumerate(parts):
        if part.after is not None and joined[index]:
            density.append(density[part.after])
        else:
            density.append(Fraction(weights[index], sizes[index]))
    moved = [Fraction(0)] * len(parts)
    over = [part.weight - density[index] * part.n_packets for index, part in enumerate(parts)]
    # From the end, as in `_allowed`: with what comes from behind.
    for index in range(len(parts) - 1, -1, -1):
        after = parts[index].after
        if after is not None and joined[index]:
            moved[index] = over[index]
            over[after] += over[index]
    # Rounding may leave a little more than there is.
    return _allowed(parts, [float(weight) for weight in moved])


def _ends(parts: Sequence[Part], weights: Sequence[float]) -> list[float]:
    """Return mean tick + (n-1)/2 of each part where the mean by weight is least."""
    sums = tick_sums(
        [part.first_tick for part in parts], [part.n_packets for part in parts], weights
    )
    return [
        tick_sum / part.n_packets + (part.n_packets - 1) / 2
        for tick_sum, part in zip(sums, parts, strict=True)
    ]
