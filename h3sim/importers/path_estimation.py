"""Estimates of the network, the server and its hosts from recorded times.

- **RTT**: of each connection the shorter of its handshake, without TLS (TCP's is one round trip,
  RFC 9293 § 3.5, and so is QUIC's, RFC 9000 § 7), and of the shortest wait for a first byte on it;
  then the median of connections. Where no connection was seen to open, the shortest wait that
  another bears out. So Lighthouse's NetworkAnalyzer does it, but for its guesses at what part of
  a wait was the server's.
- **Rate**: where pieces are packets, the pace at which they came; where they are TLS records, the
  pace on which most agree, apart from stalls and what they held back. Else the most that came as a
  whole within any stretch of 100 ms or longer: responses (or pieces of them) that began and ended
  within it. When the bytes of one that reaches beyond it came is not known, so they do not count.
  As for BBR's bandwidth (Cardwell et al. 2017, "BBR: congestion-based
  congestion control"), the maximum is taken since everything else that is slow, from slow start to
  the server, makes deliveries slower than the path and nothing makes them faster. So it is a lower
  bound.

Hosts shared a connection if the recorder saw requests to both on one. Where it did not see on which
connections they were, or saw only those of HTTP/1.1, which no two hosts share, a browser may use
one for both if both have one address and the certificate of the first is good for the second, too
(RFC 9113 § 9.1.1, RFC 9114 § 3.3). It need not: Chrome keeps what it sends without credentials
apart. So what was seen goes before what would be allowed.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from h3sim.importers.recorded_request import MULTIPLEXED, RecordedRequest, recorded_ns
from h3sim.page import Host
from h3sim.page.hosts import host_groups
from h3sim.units import BITS_PER_BYTE, MS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_LEAST_WINDOW_MS = 100.0
"""Clocks of recorders tell milliseconds, and what the browser reads in one go comes in bursts."""
LEAST_TRANSFER_MS = 1.0
_PACKET_BYTES = 1500
_LEAST_PACKETS = 20
_PACKET_HEADER_BYTES = 58
"""IPv4 and UDP (28), a short header with its tag and the frame's own fields (RFC 9000 § 17.3)."""
_RECORD_BYTES = 16_384
"""Largest plaintext of a TLS record (RFC 8446 § 5.1)."""
_STALL = 2
"""A gap of so many usual ones may be a stall."""
_AGREED = 1.1
"""Paces that differ by no more agree."""
_MOST, _SOME = 0.6, 0.3
"""Least share of the bytes that must agree on the pace of records, and of packets."""
_LEAST_AGREEING = 3
_STEPS = 4
"""Fraction of a window within which chunks are merged."""
_LEAST_BYTES = 10_000
"""Fewest bytes for a rate estimate: an initial window (RFC 9002 § 7.2)."""
_DIGITS = 3
_LEAST_WAIT_MS = 1.0
"""Shortest plausible wait; shorter ones are from caches, proxies or coarse clocks."""
_LEAST_SHARE = 0.5
"""Less than half of a handshake is no wait for an answer over the same path."""
_SECURE_ROUND_TRIPS = 2
"""Round trips of a new connection over TCP with TLS 1.3 (RFC 8446 § 2); TLS 1.2 takes another."""
_BORNE_OUT = 1.25
"""Waits that differ by no more bear one another out."""
SLOWEST_MS = 600_000.0
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
    """Estimate the path of a recording; return None if it lacks the data.

    >>> estimated_path(EstimatedRtt(25, "a handshake"), [Transfer(0, 200, 50_000)])[::2]
    (25, 2000000)
    """
    n_bytes = sum(transfer.n_bytes for transfer in transfers)
    if n_bytes < _LEAST_BYTES or rtt is None:
        return None
    rate_bps, rate_from = packet_rate_bps(transfers), f"the pace of {len(transfers):,} packets"
    if rate_bps is None:
        rate_bps = record_rate_bps(transfers, rtt.rtt_ms)
        rate_from = f"the pace of {len(transfers):,} TLS records"
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
    "A control-theoretic approach to flow control"). What loss held back comes at once, and what no
    one sent leaves gaps: so it is the pace on which most agree, else the median by bytes.

    >>> round(packet_rate_bps([Transfer(at - 10, at, 1200) for at in range(10, 500, 10)]))
    1006400
    """
    came = _came(transfers, _PACKET_BYTES, _PACKET_HEADER_BYTES)
    paces = sorted(
        (came[at_ms] / (at_ms - before_ms), came[at_ms])
        for before_ms, at_ms in pairwise(sorted(came))
    )
    agreed = _agreed(paces)
    if agreed is not None and agreed.share >= _SOME:
        return agreed.pace * BITS_PER_BYTE * MS_PER_S
    half = sum(n_bytes for _, n_bytes in paces) / 2
    for pace, n_bytes in paces:
        half -= n_bytes
        if half <= 0:
            return pace * BITS_PER_BYTE * MS_PER_S
    return None


def _came(
    transfers: Sequence[Transfer], largest_bytes: int, header_bytes: int = 0
) -> dict[float, int]:
    """Return the bytes by when they came; none of pieces that are few, or mostly larger."""
    sizes = [transfer.n_bytes for transfer in transfers]
    came: dict[float, int] = {}
    if len(sizes) >= _LEAST_PACKETS and statistics.median_high(sizes) <= largest_bytes:
        for transfer in transfers:
            came[transfer.to_ms] = came.get(transfer.to_ms, 0) + transfer.n_bytes + header_bytes
    return came


class _Agreed(NamedTuple):
    """The pace on which most bytes agree, in bytes per ms, and their share and number of pieces."""

    pace: float
    share: float
    n: int


def _agreed(paces: Sequence[tuple[float, int]]) -> _Agreed | None:
    """Return the densest paces of those in order, each with its bytes; None without any."""
    best, first, n_bytes, weighted = None, 0, 0, 0.0
    total = sum(n for _, n in paces)
    for last, (pace, n) in enumerate(paces):
        n_bytes, weighted = n_bytes + n, weighted + pace * n
        while paces[first][0] * _AGREED < pace:
            n_bytes, weighted = n_bytes - paces[first][1], weighted - math.prod(paces[first])
            first += 1
        if best is None or n_bytes > best.share * total:
            best = _Agreed(weighted / n_bytes, n_bytes / total, last - first + 1)
    return best


def record_rate_bps(transfers: Sequence[Transfer], rtt_ms: float) -> float | None:
    """Return the rate by the pace of TLS records, None where it cannot be told from them.

    TCP delivers in order: a lost packet stalls everything, and what had arrived behind it then
    comes too fast, for about as long. So a gap of a round trip or more, and as long a time after
    it, do not count. Of the rest the paces of most bytes must agree: those of pieces that the
    browser happened to read at once do not.

    >>> records = [Transfer(0, at_ms, 16_384) for at_ms in range(0, 3000, 100)]
    >>> round(record_rate_bps(records, 50) / 1e6, 2)
    1.36
    """
    came = _came(transfers, _RECORD_BYTES)
    times = sorted(came)
    gaps = sorted(after - before for before, after in pairwise(times))
    if not gaps:
        return None
    gap_ms = max(rtt_ms, _STALL * gaps[len(gaps) // 2])
    paces: list[tuple[float, int]] = []
    until_ms = times[0]
    for before_ms, at_ms in pairwise(times):
        took_ms = at_ms - before_ms
        if took_ms >= gap_ms:
            until_ms = at_ms + took_ms
        elif at_ms > until_ms:
            n_bytes = came[at_ms]
            n_packets = -(-n_bytes // _PACKET_BYTES)
            paces.append(((n_bytes + n_packets * _PACKET_HEADER_BYTES) / took_ms, n_bytes))
    agreed = _agreed(sorted(paces))
    if agreed is None or agreed.n < _LEAST_AGREEING or agreed.share < _MOST:
        return None
    return agreed.pace * BITS_PER_BYTE * MS_PER_S


def path_of(requests: Sequence[RecordedRequest], root: int) -> EstimatedPath | None:
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


def estimated_rtt(requests: Iterable[RecordedRequest]) -> EstimatedRtt | None:
    """Return the round-trip time that *requests* tell of, None where they tell none.

    Of a connection it is the shorter of its handshake and the shortest wait for a first byte on it:
    either can only be longer than a round trip. Where the recorder does not tell TLS from TCP, and
    a wait was shorter than both together, they took two round trips or more. Of connections it is
    the median. Where none was seen to open, it is the shortest wait that another one bears out.
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
        if not handshakes and any(wait < bound_ms for wait in waits_ms):
            # A wait takes a round trip or more, so this handshake took more than one: TLS's, too.
            bound_ms /= _SECURE_ROUND_TRIPS
        least_ms = bound_ms * _LEAST_SHARE if handshakes else _LEAST_WAIT_MS
        opened.append(min([bound_ms, *(wait for wait in waits_ms if wait >= least_ms)]))
    if opened:
        description = f"the median of {len(opened):,} connections' handshakes and shortest waits"
        return EstimatedRtt(_rounded(statistics.median_low(opened)), description)
    waits = sorted(wait for wait in waits if wait >= _LEAST_WAIT_MS)
    if not waits:
        return None
    borne_out = (wait for wait, other in pairwise(waits) if other <= wait * _BORNE_OUT)
    return EstimatedRtt(_rounded(next(borne_out, waits[0])), "the shortest waits for first bytes")


def by_connection(
    requests: Iterable[RecordedRequest],
) -> dict[tuple[str, str], list[RecordedRequest]]:
    """Return *requests* by connection, by host where the recorder does not tell connections."""
    found: dict[tuple[str, str], list[RecordedRequest]] = {}
    for request in requests:
        found.setdefault(connection_of(request), []).append(request)
    return found


def connection_of(request: RecordedRequest) -> tuple[str, str]:
    """Return what tells its connection from others: numbers are those of one server, at times."""
    reached = request.reached
    if reached.connection:
        return reached.connection, reached.ip
    return "", urlsplit(request.url).netloc


def wait_ms(request: RecordedRequest) -> float | None:
    """Return how long a request waited for its first byte; None if pushed or not recorded."""
    # Recordings without the time of sending have that of the start, which is earlier.
    sent_ms = request.start_ms if request.sent_ms is None else request.sent_ms
    first_ms = request.first_byte_ms
    if sent_ms is None or first_ms is None or request.is_pushed:
        return None
    return first_ms - sent_ms


def handshake_rtt_ms(requests: Iterable[RecordedRequest]) -> float | None:
    """Return the round-trip time by the connections of *requests*, None where none was opened.

    Without a handshake nothing can be told: from few requests the time of the server cannot be
    told apart.
    """
    requests = [*requests]
    if not any(_plausible((r.reached.handshake_ms, r.reached.connect_ms)) for r in requests):
        return None
    rtt = estimated_rtt(requests)
    return None if rtt is None else rtt.rtt_ms


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


def transfers_of(requests: Iterable[RecordedRequest], rtt_ms: float) -> list[Transfer]:
    """Return the transfers of a request: its recorded chunks, or one at a constant rate.

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


def server_times(
    requests: Sequence[RecordedRequest], path: EstimatedPath, rtts_ms: Sequence[float]
) -> list[float | None]:
    """Estimate the server's response time for each request; None if unknown.

    It is the wait for the first byte, minus a round trip, minus the link's time for other bytes
    that arrived meanwhile. Over HTTP/2 and HTTP/3 all time in which the same connection received
    data is subtracted as well, as another response may have been sent first. *rtts_ms* are the
    round-trip times to the servers.
    """
    came = _Arrivals(transfers_of(requests, path.rtt_ms))
    connections = by_connection(requests)
    busy = {key: _union(map(_arriving, on_one)) for key, on_one in connections.items()}

    def thought(request: RecordedRequest, rtt_ms: float) -> float | None:
        waited_ms = wait_ms(request)
        if waited_ms is None or request.first_byte_ms is None or request.sent_ms is None:
            return None
        during = request.sent_ms, request.first_byte_ms
        others_ms = came.between(*during) * BITS_PER_BYTE * MS_PER_S / path.rate_bps
        if request.protocol.startswith(MULTIPLEXED):
            others_ms = max(others_ms, _overlap(busy[connection_of(request)], *during))
        return max(0.0, waited_ms - rtt_ms - others_ms)

    return [thought(*each) for each in zip(requests, rtts_ms, strict=True)]


def _arriving(request: RecordedRequest) -> tuple[float, float]:
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
    """Cumulative bytes received over time, each transfer at a constant rate."""

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


class PageHosts(NamedTuple):
    """The host of each resource, "" for that of the root, and what is known of hosts."""

    names: tuple[str, ...]
    known: tuple[Host, ...] = ()

    def group_numbers(self, names: Sequence[str]) -> list[int]:
        """Return for each of *names* the number of the connection that a load has for it."""
        groups = enumerate(host_groups(tuple(dict.fromkeys(names)), self.known))
        number_of = {host.name: number for number, group in groups for host in group.hosts}
        return [number_of[name] for name in names]


def hosts_of(
    requests: Sequence[RecordedRequest], names: Sequence[str], root: int, *, rtt_ms: float | None
) -> PageHosts:
    """Return the hosts of a page's *requests*, which went to *names*; "" counts as the root's.

    Of a page of one host nothing is told, and of the host of the *root* no time to look it up: a
    load begins when that is known, unless somebody says otherwise. A round-trip time of its own has
    what is not as far away as the network is, *rtt_ms*, or, where that is not known, as the root.

    >>> from h3sim.importers.recorded_request import RecordedRequest, ConnectionInfo
    >>> page, image = (RecordedRequest(key=key, url="") for key in ("page", "image"))
    >>> image.reached = ConnectionInfo(dns_ms=12, handshake_ms=30)
    >>> found = hosts_of([page, image], ["www.example", "cdn.example"], 0, rtt_ms=20)
    >>> found.names, found.known[0].rtt_ns, found.known[0].dns_ns
    (('www.example', 'cdn.example'), 30000000, 12000000)
    """
    own = names[root] or next(filter(None, names), "")
    names = [name or own for name in names]
    by_host: dict[str, list[RecordedRequest]] = {own: []}
    for name, request in zip(names, requests, strict=True):
        by_host.setdefault(name, []).append(request)
    if len(by_host) == 1:
        return PageHosts(("",) * len(names))
    groups = [{name: by_host[name] for name in group} for group in _groups(by_host)]
    if rtt_ms is None:
        rtt_ms = handshake_rtt_ms(request for of_host in groups[0].values() for request in of_host)
    known = {host.name: host for group in groups for host in _hosts(group, own, rtt_ms)}
    return PageHosts(
        # The root names its host; what does not name one comes from there.
        tuple(name if index == root or name != own else "" for index, name in enumerate(names)),
        tuple(known[name] for name in by_host if name in known),
    )


def _groups(by_host: Mapping[str, Iterable[RecordedRequest]]) -> list[list[str]]:
    """Return the hosts by the connection that they share, in the order of their first requests."""
    groups: list[list[str]] = []
    seen: dict[tuple[str, str], int] = {}
    allowed: dict[tuple[str, str], int] = {}
    for name, requests in by_host.items():
        on = [
            connection_of(request)
            for request in requests
            if request.reached.connection and request.protocol.startswith(MULTIPLEXED)
        ]
        shared = next((seen[key] for key in on if key in seen), None)
        if shared is None and not on:
            shared = next((allowed[k] for k in _good_for(name, requests) if k in allowed), None)
        if shared is None:
            shared = len(groups)
            groups.append([])
        groups[shared].append(name)
        for key in on:
            seen.setdefault(key, shared)
        for key in _certified(requests):
            allowed.setdefault(key, shared)
    return groups


def _certified(requests: Iterable[RecordedRequest]) -> Iterator[tuple[str, str]]:
    """Yield each address, with what its certificate is known by, and with the names it is for."""
    for request in requests:
        if address := request.reached.ip:
            reached = request.reached
            for known_by in (reached.certificate, *map(str.lower, reached.certificate_names)):
                yield address, known_by


def _good_for(name: str, requests: Iterable[RecordedRequest]) -> Iterator[tuple[str, str]]:
    """Yield each address, with what in a certificate makes it good for host *name*.

    A wildcard stands for the whole of the leftmost label (RFC 9525 § 6.3). A name with a port of
    its own is another origin, which nobody takes for that of the usual port.
    """
    names = [] if ":" in name else [name, f"*.{name.partition('.')[2]}"]
    for request in requests:
        if address := request.reached.ip:
            for known_by in (*names, request.reached.certificate):
                if known_by:
                    yield address, known_by


def _hosts(
    group: Mapping[str, Sequence[RecordedRequest]], own: str, rtt_ms: float | None
) -> Iterator[Host]:
    """Yield what is known of the hosts of a group; those of which nothing is are left out."""
    first, shares = next(iter(group)), len(group) > 1
    requests = [request for of_host in group.values() for request in of_host]
    addresses = (request.reached.ip for request in requests)
    address = next(filter(None, addresses), first if shares else "")
    own_rtt_ms = handshake_rtt_ms(requests)
    for name, of_host in group.items():
        host = Host(
            name=name,
            certificate=first if shares else "",
            server=address,
            rtt_ns=None if own_rtt_ms is None or own_rtt_ms == rtt_ms else ms(own_rtt_ms),
            dns_ns=None if name == own else _lookup_ns(of_host),
        )
        if host != Host(name=name):
            yield host


def _lookup_ns(requests: Iterable[RecordedRequest]) -> int | None:
    """Return how long the first lookup took; a name that was known is not looked up."""
    times_ms = (request.reached.dns_ms for request in requests)
    first_ms = next((each for each in times_ms if each and each < SLOWEST_MS), None)
    return None if first_ms is None else recorded_ns(first_ms)
