"""What a recording tells of its network, and of the server: estimated from times of requests.

- **RTT**: the median of what opening a connection took without TLS. TCP's handshake is one round
  trip (RFC 9293 § 3.5), and so is QUIC's (RFC 9000 § 7). Without such times it is the lowest
  decile of the times from requests to first bytes, which hold the server's time, too.
- **Rate**: the most that came as a whole within any stretch of a round trip or longer, but at least
  100 ms: responses (or recorded pieces of them) that began and ended within it. When the bytes of
  one that reaches beyond it came is not known, so they do not count. As for BBR's bandwidth
  (Cardwell et al. 2017, "BBR: congestion-based congestion control"), the maximum is taken since
  everything else that is slow, from slow start to the server, makes deliveries slower than the path
  and nothing makes them faster. So it is a lower bound.
- **Server's time**: what a request waited for its first byte beyond the RTT, where no other
  response was arriving meanwhile, which could have been in front of it.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.inference.observed import LONGEST_MS, recorded_ns
from h3sim.page import RecordedLoad
from h3sim.units import BITS_PER_BYTE, MS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = [
    *("SLOWEST_MS", "EstimatedPath", "Transfer", "estimated_path", "handshake_rtt_ms", "path_of"),
    *("peak_rate_bps", "recorded_load", "server_times", "transfers_of"),
]

_LEAST_WINDOW_MS = 100.0
"""Clocks of recorders tell milliseconds, and what the browser reads in one go comes in bursts."""
_LEAST_TRANSFER_MS = 1.0
_STEPS = 4
"""Of a window: pieces that come within a quarter of it are not told apart."""
_LEAST_BYTES = 10_000
"""Of less than an initial window (RFC 9002 § 7.2) no rate can be told."""
_DIGITS = 3
SLOWEST_MS = 600_000.0
_FASTEST_BPS = 10**13


class Transfer(NamedTuple):
    """Bytes that came between two instants, in ms."""

    from_ms: float
    to_ms: float
    n_bytes: int


class EstimatedPath(NamedTuple):
    """An estimate of a path: its round trip and rate, each with what it was taken from."""

    rtt_ms: float
    rtt_from: str
    rate_bps: int
    rate_from: str


def estimated_path(
    handshakes_ms: Sequence[float], waits_ms: Sequence[float], transfers: Sequence[Transfer]
) -> EstimatedPath | None:
    """Return what a recording tells of its path, None where it tells too little.

    *handshakes_ms* are times that connections took to open, *waits_ms* those from requests to their
    first bytes.

    >>> estimated_path([30, 20, 25], [], [Transfer(0, 200, 50_000)])[::2]
    (25.0, 2000000)
    """
    known, waits = _plausible(handshakes_ms), _plausible(waits_ms)
    n_bytes = sum(transfer.n_bytes for transfer in transfers)
    if n_bytes < _LEAST_BYTES or not (known or waits):
        return None
    rtt_ms = _rounded(statistics.median_low(known) if known else waits[len(waits) // 10])
    told = f"the median of {len(known):,} handshakes" if len(known) > 1 else "a handshake"
    rtt_from = told if known else "the lowest decile of times to first bytes"
    rate_bps = _rounded(peak_rate_bps(transfers, max(rtt_ms, _LEAST_WINDOW_MS)))
    if not 1 <= rate_bps <= _FASTEST_BPS:
        return None
    return EstimatedPath(rtt_ms, rtt_from, int(rate_bps), f"{len(transfers):,} transfers")


def path_of(requests: Sequence[Observed]) -> EstimatedPath | None:
    """Return the path that *requests* went over, None where they tell too little."""
    sent = [(r.start_ms if r.sent_ms is None else r.sent_ms, r.first_byte_ms) for r in requests]
    waits_ms = [first - asked for asked, first in sent if asked is not None and first is not None]
    handshakes_ms = [h for r in requests if (h := r.reached.handshake_ms) is not None]
    return estimated_path(handshakes_ms, waits_ms, transfers_of(requests))


def handshake_rtt_ms(requests: Iterable[Observed]) -> float | None:
    """Return the round-trip time by the handshakes of *requests*, None where none had any.

    Without one nothing can be told: from few requests the time of the server cannot be told apart.
    """
    known = _plausible(each.reached.handshake_ms for each in requests)
    return _rounded(statistics.median_low(known)) if known else None


def recorded_load(
    path: EstimatedPath | None, times_ms: Mapping[str, float], *, protocol: str = ""
) -> RecordedLoad | None:
    """Return what is kept of a recording as a whole, None where that is nothing.

    *times_ms* are by the fields of `RecordedLoad`, without their unit.
    """
    values: dict[str, int | str] = {
        f"{name}_ns": recorded_ns(time_ms)
        for name, time_ms in times_ms.items()
        if 0 < time_ms <= LONGEST_MS
    }
    if path is not None:
        values |= {"rtt_ns": ms(path.rtt_ms), "rtt_from": path.rtt_from}
        values |= {"rate_bps": path.rate_bps, "rate_from": path.rate_from}
    if not values:
        return None
    return RecordedLoad(protocol=protocol, **values)  # type: ignore[arg-type]


def peak_rate_bps(transfers: Sequence[Transfer], window_ms: float) -> float:
    """Return the most that came as a whole within any *window_ms* or longer, as a rate.

    Where all came in less than a window, the window is that long.

    >>> peak_rate_bps([Transfer(0, 100, 1000), Transfer(50, 150, 3000)], 100)
    240000.0
    """
    begin_ms = min(transfer.from_ms for transfer in transfers)
    end_ms = max(transfer.to_ms for transfer in transfers)
    window_ms = min(window_ms, max(_LEAST_TRANSFER_MS, end_ms - begin_ms))
    by_end = _in_steps(transfers, window_ms / _STEPS)
    most = 0.0
    for from_ms in {transfer.from_ms: None for transfer in by_end}:
        n_bytes = 0
        for transfer in by_end:
            if transfer.from_ms >= from_ms:
                n_bytes += transfer.n_bytes
                most = max(most, n_bytes / max(window_ms, transfer.to_ms - from_ms))
    return most * BITS_PER_BYTE * MS_PER_S


def _in_steps(transfers: Sequence[Transfer], step_ms: float) -> list[Transfer]:
    """Return *transfers* by when they end, those within one step of time put together.

    A log tells thousands of pieces, and each pair of a begin and an end is tried.
    """
    together: dict[tuple[int, int], Transfer] = {}
    for transfer in transfers:
        key = int(transfer.from_ms // step_ms), int(transfer.to_ms // step_ms)
        other = together.get(key, Transfer(transfer.from_ms, transfer.to_ms, 0))
        together[key] = Transfer(
            min(transfer.from_ms, other.from_ms),
            max(transfer.to_ms, other.to_ms),
            transfer.n_bytes + other.n_bytes,
        )
    return sorted(together.values(), key=lambda transfer: transfer.to_ms)


def transfers_of(requests: Iterable[Observed]) -> list[Transfer]:
    """Return what came when: by recorded pieces where there are any, else evenly."""
    found = []
    for request in requests:
        first_ms, end_ms = request.first_byte_ms, request.end_ms
        n_bytes = (request.header_bytes or 0) + (request.body_bytes or 0)
        if first_ms is None or end_ms is None or end_ms < first_ms or not n_bytes:
            continue
        if not request.pieces:
            found.append(Transfer(first_ms, end_ms, n_bytes))
            continue
        at_ms = first_ms
        for piece_ms, piece_bytes in request.pieces:
            if piece_ms >= at_ms:
                found.append(Transfer(at_ms, piece_ms, piece_bytes))
                at_ms = piece_ms
    return found


def server_times(requests: Sequence[Observed], rtt_ms: float) -> list[float | None]:
    """Return how long the server seems to have thought about each request, None for unknown."""
    busy = _union(
        (request.first_byte_ms, request.end_ms)
        for request in requests
        if request.first_byte_ms is not None and request.end_ms is not None
    )
    starts = [begin for begin, _ in busy]

    def thought(request: Observed) -> float | None:
        sent_ms, first_ms = request.sent_ms, request.first_byte_ms
        if sent_ms is None or first_ms is None:
            return None
        # The last stretch that begins before the first byte is the only one that can reach so far.
        last = bisect_right(starts, first_ms) - 1
        while last >= 0 and starts[last] >= first_ms:
            last -= 1
        is_alone = last < 0 or busy[last][1] <= sent_ms
        return max(0.0, first_ms - sent_ms - rtt_ms) if is_alone else None

    return [thought(request) for request in requests]


def _union(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the same times as stretches that do not touch, in order."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def _plausible(times_ms: Iterable[float | None]) -> list[float]:
    """Return the times that can be believed, in order."""
    return sorted(each for each in times_ms if each is not None and 0 < each < SLOWEST_MS)


def _rounded(value: float) -> float:
    """Return a value to three digits: an estimate has no more."""
    return float(f"{value:.{_DIGITS}g}")
