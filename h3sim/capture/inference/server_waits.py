"""How long servers thought: what requests waited for beyond what the network explains."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from h3sim.capture.inference.estimates import (
    LEAST_TRANSFER_MS,
    MULTIPLEXED,
    by_connection,
    connection_of,
    transfers_of,
    wait_ms,
)
from h3sim.units import BITS_PER_BYTE, MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from h3sim.capture.inference.estimates import EstimatedPath, Transfer
    from h3sim.capture.inference.observed import Observed

__all__ = ["server_times"]


def server_times(
    requests: Sequence[Observed], path: EstimatedPath, rtts_ms: Sequence[float]
) -> list[float | None]:
    """Return how long the server seems to have thought about each request, None for unknown.

    That is what the request waited for its first byte beyond a round trip, less what the link took
    for all else that came meanwhile: a link that stands idle keeps no answer waiting. Over HTTP/2
    and HTTP/3 less also all the time in which anything came on the same connection: there another
    response may have gone first. *rtts_ms* are those to the server of each.
    """
    came = _Arrivals(transfers_of(requests, path.rtt_ms))
    connections = by_connection(requests)
    busy = {key: _union(map(_arriving, on_one)) for key, on_one in connections.items()}

    def thought(request: Observed, rtt_ms: float) -> float | None:
        waited_ms = wait_ms(request)
        if waited_ms is None or request.first_byte_ms is None or request.sent_ms is None:
            return None
        during = request.sent_ms, request.first_byte_ms
        others_ms = came.between(*during) * BITS_PER_BYTE * MS_PER_S / path.rate_bps
        if request.protocol.startswith(MULTIPLEXED):
            others_ms = max(others_ms, _overlap(busy[connection_of(request)], *during))
        return max(0.0, waited_ms - rtt_ms - others_ms)

    return [thought(*each) for each in zip(requests, rtts_ms, strict=True)]


def _arriving(request: Observed) -> tuple[float, float]:
    """Return when a response was arriving; (0, 0) where that is not told."""
    if request.first_byte_ms is None or request.end_ms is None:
        return 0.0, 0.0
    return request.first_byte_ms, request.end_ms


def _overlap(stretches: Sequence[tuple[float, float]], from_ms: float, to_ms: float) -> float:
    """Return how much of the time between the two lies within *stretches*, which do not touch."""
    last = bisect_left(stretches, (to_ms, 0.0))
    total = 0.0
    for begin_ms, end_ms in reversed(stretches[:last]):
        if end_ms <= from_ms:
            break
        total += min(end_ms, to_ms) - max(begin_ms, from_ms)
    return total


def _union(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the same times as stretches that do not touch, in order."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


class _Arrivals:
    """How many bytes had come by when, each transfer at an even pace."""

    def __init__(self, transfers: Iterable[Transfer]) -> None:
        slopes: dict[float, float] = {}
        jumps: dict[float, float] = {}
        for from_ms, to_ms, n_bytes in transfers:
            if to_ms - from_ms < LEAST_TRANSFER_MS:
                jumps[to_ms] = jumps.get(to_ms, 0.0) + n_bytes
                continue
            pace = n_bytes / (to_ms - from_ms)
            slopes[from_ms] = slopes.get(from_ms, 0.0) + pace
            slopes[to_ms] = slopes.get(to_ms, 0.0) - pace
        self._times = sorted({*slopes, *jumps})
        self._came: list[float] = []
        self._paces: list[float] = []
        total = pace = 0.0
        last_ms = self._times[0] if self._times else 0.0
        for at_ms in self._times:
            total += pace * (at_ms - last_ms) + jumps.get(at_ms, 0.0)
            pace += slopes.get(at_ms, 0.0)
            last_ms = at_ms
            self._came.append(total)
            self._paces.append(pace)

    def between(self, from_ms: float, to_ms: float) -> float:
        """Return how many bytes came then; what came at the end itself does not count."""
        return max(0.0, self._before(to_ms) - self._before(from_ms))

    def _before(self, at_ms: float) -> float:
        last = bisect_left(self._times, at_ms) - 1
        if last < 0:
            return 0.0
        return self._came[last] + self._paces[last] * (at_ms - self._times[last])
