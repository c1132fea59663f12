"""What a recording tells of its network, and of the server: estimated from times of requests.

- **RTT**: of each connection the shorter of its handshake, without TLS (TCP's is one round trip,
  RFC 9293 § 3.5, and so is QUIC's, RFC 9000 § 7), and of the shortest wait for a first byte on it;
  then the median of connections. Where no connection was seen to open, the shortest wait that
  another bears out. So Lighthouse's NetworkAnalyzer does it, but for its guesses at what part of
  a wait was the server's.
- **Rate**: where pieces are packets, the pace at which they came. Else the most that came as a
  whole within any stretch of 100 ms or longer: responses (or pieces of them) that began and ended
  within it. When the bytes of one that reaches beyond it came is not known, so they do not count.
  As for BBR's bandwidth (Cardwell et al. 2017, "BBR: congestion-based
  congestion control"), the maximum is taken since everything else that is slow, from slow start to
  the server, makes deliveries slower than the path and nothing makes them faster. So it is a lower
  bound.
"""

from __future__ import annotations

import statistics
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from h3sim.capture.inference.observed import LONGEST_MS, recorded_ns
from h3sim.page import RecordedLoad
from h3sim.units import BITS_PER_BYTE, MS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from h3sim.capture.inference.observed import Observed

__all__ = [
    *("MULTIPLEXED", "SLOWEST_MS", "EstimatedPath", "EstimatedRtt", "Transfer", "estimated_path"),
    *("estimated_rtt", "handshake_rtt_ms", "packet_rate_bps", "path_of", "peak_rate_bps"),
    *("LEAST_TRANSFER_MS", "by_connection", "connection_of", "recorded_load", "transfers_of"),
    "wait_ms",
]

_LEAST_WINDOW_MS = 100.0
"""Clocks of recorders tell milliseconds, and what the browser reads in one go comes in bursts."""
LEAST_TRANSFER_MS = 1.0
_PACKET_BYTES = 1500
_LEAST_PACKETS = 20
_PACKET_HEADER_BYTES = 58
"""IPv4 and UDP (28), a short header with its tag and the frame's own fields (RFC 9000 § 17.3)."""
_STEPS = 4
"""Of a window: pieces that come within a quarter of it are not told apart."""
_LEAST_BYTES = 10_000
"""Of less than an initial window (RFC 9002 § 7.2) no rate can be told."""
_DIGITS = 3
_LEAST_WAIT_MS = 1.0
"""What waited less came from a cache or a proxy, or its clock tells no more."""
_LEAST_SHARE = 0.5
"""Less than half of a handshake is no wait for an answer over the same path."""
_BORNE_OUT = 1.25
"""Waits that differ by no more bear one another out."""
SLOWEST_MS = 600_000.0
MULTIPLEXED = ("h2", "http/2", "h3", "hq", "quic", "http/3", "spdy")
"""How recorders call the protocols in which a connection can have several hosts."""
_FASTEST_BPS = 10**13


class Transfer(NamedTuple):
    """Bytes that came between two instants, in ms."""

    from_ms: float
    to_ms: float
    n_bytes: int


class EstimatedRtt(NamedTuple):
    """An estimate of a round-trip time, and what it was taken from."""

    rtt_ms: float
    rtt_from: str


class EstimatedPath(NamedTuple):
    """An estimate of a path: its round trip and rate, each with what it was taken from."""

    rtt_ms: float
    rtt_from: str
    rate_bps: int
    rate_from: str


def estimated_path(rtt: EstimatedRtt | None, transfers: Sequence[Transfer]) -> EstimatedPath | None:
    """Return what a recording tells of its path, None where it tells too little.

    >>> estimated_path(EstimatedRtt(25, "a handshake"), [Transfer(0, 200, 50_000)])[::2]
    (25, 2000000)
    """
    n_bytes = sum(transfer.n_bytes for transfer in transfers)
    if n_bytes < _LEAST_BYTES or rtt is None:
        return None
    rate_bps, rate_from = packet_rate_bps(transfers), f"the pace of {len(transfers):,} packets"
    if rate_bps is None:
        rate_bps = peak_rate_bps(transfers, _LEAST_WINDOW_MS)
        rate_from = f"{len(transfers):,} transfers"
    rate_bps = _rounded(rate_bps)
    if not 1 <= rate_bps <= _FASTEST_BPS:
        return None
    return EstimatedPath(*rtt, int(rate_bps), rate_from)


def packet_rate_bps(transfers: Sequence[Transfer]) -> float | None:
    """Return the rate by the pace at which packets came, None where *transfers* are no packets.

    Each packet left the bottleneck as long after the one before as it took to send (Keshav 1991,
    "A control-theoretic approach to flow control"). The median by bytes, since what loss held back
    comes at once, and what no one sent leaves gaps.

    >>> packet_rate_bps([Transfer(at_ms - 10, at_ms, 1200) for at_ms in range(10, 500, 10)])
    1006400.0
    """
    came: dict[float, int] = {}
    sizes = sorted(transfer.n_bytes for transfer in transfers)
    if not sizes or sizes[len(sizes) // 2] > _PACKET_BYTES or len(sizes) < _LEAST_PACKETS:
        return None
    for transfer in transfers:
        n_bytes = transfer.n_bytes + _PACKET_HEADER_BYTES
        came[transfer.to_ms] = came.get(transfer.to_ms, 0) + n_bytes
    paces = sorted(
        (came[at_ms] / (at_ms - before_ms), came[at_ms])
        for before_ms, at_ms in pairwise(sorted(came))
    )
    half = sum(n_bytes for _, n_bytes in paces) / 2
    for pace, n_bytes in paces:
        half -= n_bytes
        if half <= 0:
            return pace * BITS_PER_BYTE * MS_PER_S
    return None


def path_of(requests: Sequence[Observed], root: int) -> EstimatedPath | None:
    """Return the path that *requests* went over, None where they tell too little.

    Its round-trip time is that to the host of the *root*, where its connection was seen to open.
    """
    host = urlsplit(requests[root].url).netloc
    own_ms = handshake_rtt_ms(each for each in requests if urlsplit(each.url).netloc == host)
    if own_ms is None:
        rtt = estimated_rtt(requests)
    else:
        rtt = EstimatedRtt(own_ms, "handshakes and shortest waits of the page's own host")
    return None if rtt is None else estimated_path(rtt, transfers_of(requests, rtt.rtt_ms))


def estimated_rtt(requests: Iterable[Observed]) -> EstimatedRtt | None:
    """Return the round-trip time that *requests* tell of, None where they tell none.

    Of a connection it is the shorter of its handshake and the shortest wait for a first byte on it:
    either can only be longer than a round trip. Of connections it is the median. Where none was
    seen to open, it is the shortest wait that another one bears out.
    """
    opened: list[float] = []
    waits: list[float] = []
    for on_one in by_connection(requests).values():
        waits_ms = _plausible(map(wait_ms, on_one))
        waits += waits_ms
        handshakes = _plausible(each.reached.handshake_ms for each in on_one)
        longest = _plausible(each.reached.connect_ms for each in on_one)
        if not (handshakes or longest):
            continue
        bound_ms = min(handshakes or longest)
        least_ms = bound_ms * _LEAST_SHARE if handshakes else _LEAST_WAIT_MS
        opened.append(min([bound_ms, *(wait for wait in waits_ms if wait >= least_ms)]))
    if opened:
        told = f"the median of {len(opened):,} connections' handshakes and shortest waits"
        return EstimatedRtt(_rounded(statistics.median_low(opened)), told)
    waits = sorted(wait for wait in waits if wait >= _LEAST_WAIT_MS)
    if not waits:
        return None
    borne_out = (wait for wait, other in pairwise(waits) if other <= wait * _BORNE_OUT)
    return EstimatedRtt(_rounded(next(borne_out, waits[0])), "the shortest waits for first bytes")


def by_connection(requests: Iterable[Observed]) -> dict[tuple[str, str], list[Observed]]:
    """Return *requests* by connection, by host where the recorder does not tell connections."""
    found: dict[tuple[str, str], list[Observed]] = {}
    for request in requests:
        found.setdefault(connection_of(request), []).append(request)
    return found


def connection_of(request: Observed) -> tuple[str, str]:
    """Return what tells its connection from others: numbers are those of one server, at times."""
    reached = request.reached
    if reached.connection:
        return reached.connection, reached.ip
    return "", urlsplit(request.url).netloc


def wait_ms(request: Observed) -> float | None:
    """Return how long a request waited for its first byte; what was pushed waited for nothing."""
    sent_ms = request.start_ms if request.sent_ms is None else request.sent_ms
    first_ms = request.first_byte_ms
    if sent_ms is None or first_ms is None or request.is_pushed:
        return None
    return first_ms - sent_ms


def handshake_rtt_ms(requests: Iterable[Observed]) -> float | None:
    """Return the round-trip time by the connections of *requests*, None where none was opened.

    Without a handshake nothing can be told: from few requests the time of the server cannot be
    told apart.
    """
    requests = [*requests]
    if not any(_plausible((r.reached.handshake_ms, r.reached.connect_ms)) for r in requests):
        return None
    rtt = estimated_rtt(requests)
    return None if rtt is None else rtt.rtt_ms


def recorded_load(
    path: EstimatedPath | None,
    times_ms: Mapping[str, float],
    *,
    completed_ms: Mapping[str, float] = MappingProxyType({}),
    n_bytes: int | None = None,
    protocol: str = "",
) -> RecordedLoad | None:
    """Return what is kept of a recording as a whole, None where that is nothing.

    *times_ms* are by the fields of `RecordedLoad`, without their unit, *completed_ms* by the ids of
    resources. *n_bytes* came in all.
    """
    values: dict[str, int | str | dict[str, int]] = {
        f"{name}_ns": recorded_ns(time_ms)
        for name, time_ms in times_ms.items()
        if 0 < time_ms <= LONGEST_MS
    }
    if path is not None:
        values |= {"rtt_ns": ms(path.rtt_ms), "rtt_from": path.rtt_from}
        values |= {"rate_bps": path.rate_bps, "rate_from": path.rate_from}
    if not values and n_bytes is None:
        return None
    values["completed_ns"] = {
        id_: recorded_ns(at_ms) for id_, at_ms in completed_ms.items() if at_ms <= LONGEST_MS
    }
    if n_bytes is not None:
        values["n_bytes"] = n_bytes
    return RecordedLoad(protocol=protocol, **values)  # type: ignore[arg-type]


def peak_rate_bps(transfers: Sequence[Transfer], window_ms: float) -> float:
    """Return the most that came as a whole within any *window_ms* or longer, as a rate.

    Where all came in less than a window, the window is that long.

    >>> peak_rate_bps([Transfer(0, 100, 1000), Transfer(50, 150, 3000)], 100)
    240000.0
    """
    begin_ms = min(transfer.from_ms for transfer in transfers)
    end_ms = max(transfer.to_ms for transfer in transfers)
    window_ms = min(window_ms, max(LEAST_TRANSFER_MS, end_ms - begin_ms))
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


def transfers_of(requests: Iterable[Observed], rtt_ms: float) -> list[Transfer]:
    """Return what came when: by recorded pieces where there are any, else evenly.

    The first piece may have come as soon as *rtt_ms* after the request had left.
    """
    found = []
    for request in requests:
        first_ms, end_ms = request.first_byte_ms, request.end_ms
        n_bytes = (request.header_bytes or 0) + (request.body_bytes or 0)
        if first_ms is None or end_ms is None or end_ms < first_ms or not n_bytes:
            continue
        if not request.pieces:
            found.append(Transfer(first_ms, end_ms, n_bytes))
            continue
        # What a lost packet held back was handed over in one piece with the first byte.
        sent_ms = first_ms if request.sent_ms is None else request.sent_ms
        at_ms = min(first_ms, sent_ms + rtt_ms)
        for piece_ms, piece_bytes in request.pieces:
            if piece_ms >= at_ms:
                found.append(Transfer(at_ms, piece_ms, piece_bytes))
                at_ms = piece_ms
    return found


def _plausible(times_ms: Iterable[float | None]) -> list[float]:
    """Return the times that can be believed, in order."""
    return sorted(each for each in times_ms if each is not None and 0 < each < SLOWEST_MS)


def _rounded(value: float) -> float:
    """Return a value to three digits: an estimate has no more."""
    return float(f"{value:.{_DIGITS}g}")
