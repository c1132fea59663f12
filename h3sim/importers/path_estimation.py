"""Estimates of the network, the server and its hosts from recorded times.

- **RTT**: per connection, the minimum of its handshake without TLS (one round trip for TCP, RFC
  9293 § 3.5, and for QUIC, RFC 9000 § 7) and of the shortest wait for a first byte; then the median
  over connections. If no handshake was recorded, the shortest wait that another one confirms. This
  is the method of Lighthouse's NetworkAnalyzer, without its guesses at the server's part of waits.
- **Rate**: if pieces are packets, their pace; if they are TLS records, the pace of most of them,
  apart from stalls and the data that a stall held back. A response that was recorded as a whole is
  no packet, however small. Otherwise the most bytes of responses (or pieces) that began and ended
  within any interval of at least 100 ms; of others it is unknown when their bytes arrived. The
  maximum is taken, as for BBR's bandwidth (Cardwell et al. 2017, "BBR: congestion-based congestion
  control"): slow start, the server and the like can make a delivery slower than the path, but
  nothing makes it faster. So the estimate is a lower bound.

The estimates bound each other. A pace that no interval of the same transfers reached, although they
had bytes enough, is that of reads, not of the link; and whole responses arrived between a round
trip after their request and their end, so that the link carried them in that time. The shortest
wait for the page's own host bounds its round-trip time, whatever handshakes of other hosts took. A
network that the file states takes precedence (`stated_network`). How far the estimates are apart is
how far the network may differ from the one that was taken.

Hosts share a connection if the recorder saw requests to both on one. If it did not record
connections, or only those of HTTP/1.1, which no two hosts share, a browser may use one for both if
they have the same address and the certificate of the first is valid for the second (RFC 9113
§ 9.1.1, RFC 9114 § 3.3). It need not: Chrome keeps requests without credentials apart. So recorded
connections take precedence over those that would be allowed.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import deque
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from h3sim.importers.causes import connection_setup_ms
from h3sim.importers.recorded_request import (
    LONGEST_MS,
    MULTIPLEXED,
    RecordedRequest,
    recorded_ms,
    recorded_ns,
)
from h3sim.page import Host, Kind
from h3sim.page.hosts import host_groups
from h3sim.page.recording import ESTIMATED_WITHIN
from h3sim.values.units import BITS_PER_BYTE, MS_PER_S, ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.importers.stated_network import StatedNetwork


_MIN_WINDOW_MS = 100.0
"""Shorter intervals measure bursts: browsers read in bulk, and recorders round to milliseconds."""
_MIN_SPAN_MS = 10.0
"""Bytes that were read within less time arrived over some of it before: browsers read in bulk."""
_MIN_BURST_MS = 20.0
"""Interval over which a page too small for longer ones must have reached the pace of its bytes."""
_MIN_WINDOWS = 5
"""A page whose bytes fill as many windows at the rate of a link must have reached that rate."""
MIN_TRANSFER_MS = 1.0
"""Shorter transfers count as arriving in an instant: recorders round to milliseconds."""
_PACKET_BYTES = 1500
"""Largest packet of Ethernet."""
_MIN_PIECES = 20
"""Fewest pieces whose sizes tell whether they are packets or TLS records."""
_PACKET_HEADER_BYTES = 58
"""IPv4 and UDP (28), a short header with its tag and the frame's own fields (RFC 9000 § 17.3)."""
_RECORD_BYTES = 16_384
"""Largest plaintext of a TLS record (RFC 8446 § 5.1)."""
_STALL_GAPS = 2
"""A gap of this many median ones may be a stall."""
_AGREEING_RATIO = 1.1
"""Paces agree if their ratio is at most this."""
_MIN_RECORD_SHARE = 0.6
"""Least share of the bytes that must agree on a pace of records."""
_MIN_PACKET_SHARE = 0.3
"""Least share of the bytes that must agree on a pace of packets."""
_MIN_AGREEING_RECORDS = 3
_STEPS_PER_WINDOW = 4
"""Chunks within one such part of a window are merged, to bound the number of pairs to try."""
_MAX_TRANSFERS = 2000
"""Beyond as many transfers, larger parts of a window are merged: the time grows with the square."""
_MIN_TOTAL_BYTES = 10_000
"""Fewest bytes for a rate estimate: an initial window (RFC 9002 § 7.2)."""
_INITIAL_WINDOW_BYTES = 14_600
"""The first window of a connection: ten segments (RFC 6928)."""
_SIGNIFICANT_DIGITS = 3
"""Digits of an estimate: it is not more precise."""
_MIN_WAIT_MS = 1.0
"""Shortest plausible wait; shorter ones are from caches, proxies or coarse clocks."""
_MIN_HANDSHAKE_SHARE = 0.5
"""Waits shorter than half a handshake are not over the same path."""
_MIN_DOUBTED_WAIT_MS = 10.0
"""Handshakes of less than `_MIN_WAIT_MS` are not believed of hosts with longer waits than this: a
proxy or another process of the machine answered them."""
_TCP_TLS_ROUND_TRIPS = 2
"""Round trips of a new connection over TCP with TLS 1.3 (RFC 8446 § 2); TLS 1.2 takes another."""
_CONFIRMING_RATIO = 1.25
"""A wait is confirmed by another one that is at most this many times as long."""
MAX_RTT_MS = 600_000.0
"""Longer handshakes, waits and DNS lookups are mistakes of the recorder."""
_MAX_RATE_BPS = 10**13
"""Highest rate that is believed: above 10 Tbit/s, the recorded times are wrong."""
_IMPOSED_WITHIN = 1.25
"""Least factor by which a network may differ from the one that a tool imposed on it."""
_MAX_WITHIN = 10.0
"""Largest factor: estimates that are further apart tell nothing but an order of magnitude."""
_CONTRADICTING_RATIO = 1.25
"""A stated value that measured ones exceed by this factor was not in effect."""


class Transfer(NamedTuple):
    """Bytes that arrived between two instants, in ms."""

    from_ms: float
    to_ms: float
    n_bytes: int
    is_response: bool = False
    """True for a whole response, of which no pieces were recorded."""


class EstimatedRtt(NamedTuple):
    """Estimate of a round-trip time, with its evidence."""

    rtt_ms: float
    rtt_from: str
    is_handshake: bool = False
    """True if it rests on handshakes, not only on waits, which have the server's time in them."""


class EstimatedPath(NamedTuple):
    """A path: its round-trip time and rate, each with its evidence, and all estimates of them."""

    rtt_ms: float
    rtt_from: str
    rate_bps: int
    rate_from: str
    rtts_ms: Mapping[str, float] = {}
    """Round-trip times by their evidence, with the one that was taken."""
    rates_bps: Mapping[str, int] = {}
    """Rates by their evidence, with the one that was taken."""
    within: float = ESTIMATED_WITHIN
    """Factor by which round-trip time and rate may be wrong."""
    up_bps: int | None = None
    """Rate of the uplink, if it is stated."""
    loss: float = 0.0
    """Stated share of packets that are lost at random."""


def estimated_path(
    rtt: EstimatedRtt | None,
    transfers: Sequence[Transfer],
    *,
    responses: Sequence[Transfer] = (),
    stated: StatedNetwork | None = None,
) -> EstimatedPath | None:
    """Return the path of a recording; None if it lacks the data.

    *transfers* are the recorded pieces, or whole responses; *responses* are all responses, each
    from the earliest instant at which it may have begun to arrive. What is *stated* is taken unless
    measured values contradict it.

    >>> path = estimated_path(EstimatedRtt(25, "a handshake"), [Transfer(0, 200, 50_000)])
    >>> path.rtt_ms, path.rate_bps, path.within
    (25, 2000000, 2.0)
    """
    rates = _rate_estimates(rtt, transfers, responses)
    rtts = {} if rtt is None else {rtt.rtt_from: rtt.rtt_ms}
    rtt_ms, rtt_from = (None, "") if rtt is None else rtt[:2]
    rate_from, rate_bps = next(iter(rates.items()), ("", None))
    n_imposed = 0
    if stated is not None and stated.rtt_ms is not None:
        stated_from = f"{stated.source}, as the file states"
        rtts = {stated_from: stated.rtt_ms, **rtts}
        # A shaper delays what the path delays, too, so handshakes may take longer.
        is_longer = rtt_ms is not None and rtt is not None and rtt.is_handshake
        # A proxy answered at once what came from further away.
        is_doubted = (
            rtt_ms is not None and stated.rtt_ms < _MIN_WAIT_MS < _MIN_DOUBTED_WAIT_MS <= rtt_ms
        )
        if rtt_ms is None or not (
            is_doubted or (is_longer and rtt_ms > stated.rtt_ms / _CONTRADICTING_RATIO)
        ):
            rtt_ms, rtt_from = stated.rtt_ms, stated_from
        n_imposed += stated.is_imposed
    if stated is not None and stated.rate_bps is not None:
        stated_from = f"{stated.source}, as the file states"
        least_bps = peak_rate_bps(responses, _MIN_WINDOW_MS) if responses else 0.0
        rates = {stated_from: stated.rate_bps, **rates}
        if rate_bps is None or least_bps <= stated.rate_bps * _CONTRADICTING_RATIO:
            rate_bps, rate_from = stated.rate_bps, stated_from
            if not stated.is_imposed:  # measured of the whole load, which no part of it exceeds
                rates = {stated_from: stated.rate_bps}
            n_imposed += stated.is_imposed
    if rtt_ms is None or rate_bps is None or not 1 <= rate_bps <= _MAX_RATE_BPS:
        return None
    is_imposed = n_imposed == _VALUES_OF_PATH
    least_within = _IMPOSED_WITHIN if is_imposed else ESTIMATED_WITHIN
    return EstimatedPath(
        rtt_ms,
        rtt_from,
        rate_bps,
        rate_from,
        rtts,
        rates,
        # Of a link that a tool limits, the page need not have used all: only the limit counts.
        least_within if is_imposed else _factor_between(rate_bps, rates, least_within),
        None if stated is None else stated.up_bps,
        0.0 if stated is None else stated.loss,
    )


_VALUES_OF_PATH = 2
"""A path has a round-trip time and a rate."""


def _factor_between(taken: float, estimates: Mapping[str, float], least: float) -> float:
    """Return the largest ratio of an estimate to the one that was *taken*, either way."""
    ratios = [max(taken / each, each / taken) for each in estimates.values() if each > 0]
    return round(min(max(least, *ratios), _MAX_WITHIN), 2)


def _rate_estimates(
    rtt: EstimatedRtt | None, transfers: Sequence[Transfer], responses: Sequence[Transfer]
) -> dict[str, int]:
    """Return the estimates of the rate by their evidence, the one to take first."""
    n_bytes = sum(transfer.n_bytes for transfer in transfers)
    if rtt is None or n_bytes < _MIN_TOTAL_BYTES:
        return {}
    pieces = [transfer for transfer in transfers if not transfer.is_response]
    pace, pace_from = packet_rate_bps(pieces), f"the pace of {len(pieces):,} packets"
    if pace is None:
        pace = record_rate_bps(pieces, rtt.rtt_ms)
        pace_from = f"the pace of {len(pieces):,} TLS records"
    by_window, window_from = (
        peak_rate_bps(transfers, _MIN_WINDOW_MS),
        f"{len(transfers):,} transfers",
    )
    found: dict[str, float] = {window_from: by_window}
    if pace is not None:
        is_long = n_bytes * BITS_PER_BYTE * MS_PER_S >= pace * _MIN_WINDOWS * _MIN_WINDOW_MS
        most = by_window if is_long else peak_rate_bps(transfers, _MIN_BURST_MS)
        # What follows a loss is delivered at once, so windows are no estimate beside a pace, only
        # a bound of it.
        is_kept_up = pace <= most * _AGREEING_RATIO
        found = {pace_from: pace} if is_kept_up else {**found, pace_from: pace}
    if responses and not pieces:
        # Not taken, as what was read at once may have arrived before.
        fastest = peak_rate_bps(responses, _MIN_BURST_MS, least_bytes=_MIN_TOTAL_BYTES)
        found[f"the fastest of {len(responses):,} responses"] = fastest
    if responses and pieces:
        response_from = f"{len(responses):,} whole responses"
        response_bps = peak_rate_bps(responses, _MIN_WINDOW_MS)
        is_more = response_bps > next(iter(found.values())) * _AGREEING_RATIO
        of_responses = {response_from: response_bps}
        found = of_responses | found if is_more else found | of_responses
    return {basis: int(_round_estimate(rate_bps)) for basis, rate_bps in found.items() if rate_bps}


def packet_rate_bps(transfers: Sequence[Transfer]) -> float | None:
    """Return the rate by the pace of packets, None if *transfers* are not packets.

    Packets leave a bottleneck at intervals of their transmission time (Keshav 1991, "A
    control-theoretic approach to flow control"). Losses cause bursts and a slow sender gaps, so the
    most common pace is used, or else the median weighted by bytes.

    >>> round(packet_rate_bps([Transfer(at - 10, at, 1200) for at in range(10, 500, 10)]))
    1006400
    """
    arrived = _arrived_bytes(transfers, _PACKET_BYTES, _PACKET_HEADER_BYTES)
    paces = sorted(  # each with its bytes
        (arrived[at_ms] / (at_ms - before_ms), arrived[at_ms])
        for before_ms, at_ms in pairwise(sorted(arrived))
    )
    common = _most_common_pace(paces)
    if common is not None and common.share >= _MIN_PACKET_SHARE:
        return common.pace * BITS_PER_BYTE * MS_PER_S
    left_of_half = sum(n_bytes for _, n_bytes in paces) / 2
    for pace, n_bytes in paces:
        left_of_half -= n_bytes
        if left_of_half <= 0:
            return pace * BITS_PER_BYTE * MS_PER_S
    return None


def _arrived_bytes(
    transfers: Sequence[Transfer], largest_bytes: int, header_bytes: int = 0
) -> dict[float, int]:
    """Return the bytes by arrival time; none if pieces are too few, or mostly over *largest_bytes*.

    Most pieces must be that small, and most bytes be in such pieces: many small responses, each of
    one piece, do not make packets of the large ones beside them. *header_bytes* are added for each
    piece.
    """
    sizes = [transfer.n_bytes for transfer in transfers if not transfer.is_response]
    arrived: dict[float, int] = {}
    if len(sizes) < _MIN_PIECES or statistics.median_high(sizes) > largest_bytes:
        return arrived
    if 2 * sum(size for size in sizes if size <= largest_bytes) >= sum(sizes):
        for transfer in transfers:
            if not transfer.is_response:
                arrived[transfer.to_ms] = (
                    arrived.get(transfer.to_ms, 0) + transfer.n_bytes + header_bytes
                )
    return arrived


class _CommonPace(NamedTuple):
    """Pace of most bytes, in bytes per ms, with their share of all bytes and number of pieces."""

    pace: float
    share: float
    n_pieces: int


def _most_common_pace(paces: Sequence[tuple[float, int]]) -> _CommonPace | None:
    """Return the mean of the agreeing paces with the most bytes; None without any paces.

    *paces* are in ascending order, each with its bytes; a window of agreeing ones slides over them.
    """
    best, window, n_bytes, weighted = None, deque[tuple[float, int]](), 0, 0.0
    total = sum(n for _, n in paces)
    for pace, n in paces:
        window.append((pace, n))
        n_bytes, weighted = n_bytes + n, weighted + pace * n
        slowest, n_slowest = window[0]
        while slowest * _AGREEING_RATIO < pace:
            window.popleft()
            n_bytes, weighted = n_bytes - n_slowest, weighted - slowest * n_slowest
            slowest, n_slowest = window[0]
        if best is None or n_bytes > best.share * total:
            best = _CommonPace(weighted / n_bytes, n_bytes / total, len(window))
    return best


def record_rate_bps(transfers: Sequence[Transfer], rtt_ms: float) -> float | None:
    """Return the rate by the pace of TLS records, None if they do not agree on one.

    TCP delivers in order: a lost packet stalls everything, and the data that arrived after it is
    then delivered too fast, for about as long. So gaps of a round trip or more, and as long a time
    after each, do not count. The paces of most remaining bytes must agree, which those of pieces
    that the browser happened to read at once do not.

    >>> records = [Transfer(0, at_ms, 16_384) for at_ms in range(0, 3000, 100)]
    >>> round(record_rate_bps(records, 50) / 1e6, 2)
    1.36
    """
    arrived = _arrived_bytes(transfers, _RECORD_BYTES)
    times = sorted(arrived)
    gaps = sorted(after - before for before, after in pairwise(times))
    if not gaps:
        return None
    gap_ms = max(rtt_ms, _STALL_GAPS * gaps[len(gaps) // 2])
    paces: list[tuple[float, int]] = []
    distorted_until_ms = times[0]
    for before_ms, at_ms in pairwise(times):
        took_ms = at_ms - before_ms
        if took_ms >= gap_ms:
            distorted_until_ms = at_ms + took_ms
        elif at_ms > distorted_until_ms:
            n_bytes = arrived[at_ms]
            n_packets = -(-n_bytes // _PACKET_BYTES)  # rounded up
            paces.append(((n_bytes + n_packets * _PACKET_HEADER_BYTES) / took_ms, n_bytes))
    common = _most_common_pace(sorted(paces))
    if common is None or common.n_pieces < _MIN_AGREEING_RECORDS:
        return None
    return common.pace * BITS_PER_BYTE * MS_PER_S if common.share >= _MIN_RECORD_SHARE else None


def path_of(
    requests: Sequence[RecordedRequest], root: int, stated: StatedNetwork | None = None
) -> EstimatedPath | None:
    """Return the path of *requests*, None if there is not enough evidence.

    Its round-trip time is that to the host of the *root*, if a handshake with it was recorded.
    *stated* is the network that the file states.
    """
    rtt = _rtt_to_root(requests, root) or _rtt_from_responses(requests, root)
    if rtt is None:
        return estimated_path(None, (), stated=stated)
    responses = _response_transfers(requests, rtt.rtt_ms)
    transfers = transfers_of(requests, rtt.rtt_ms) or responses
    return estimated_path(rtt, transfers, responses=responses, stated=stated)


def _rtt_from_responses(requests: Sequence[RecordedRequest], root: int) -> EstimatedRtt | None:
    """Return the shortest time of a response of the *root*'s host, which bounds its round trip."""
    host = urlsplit(requests[root].url).netloc
    times_ms = [
        request.end_ms - begun_ms
        for request in requests
        if urlsplit(request.url).netloc == host
        and (begun_ms := _begun_ms(request)) is not None
        and request.end_ms is not None
    ]
    least_ms = min((each for each in times_ms if each >= _MIN_WAIT_MS), default=None)
    if least_ms is None:
        return None
    return EstimatedRtt(_round_estimate(least_ms), "the shortest response of the page's own host")


def _rtt_to_root(requests: Sequence[RecordedRequest], root: int) -> EstimatedRtt | None:
    """Return the round-trip time to the host of the *root*, bounded by the waits for it.

    If no handshake with it was recorded, those with others count, but not with servers on the same
    machine.
    """
    host = urlsplit(requests[root].url).netloc
    own = [each for each in requests if urlsplit(each.url).netloc == host]
    host_rtt_ms = handshake_rtt_ms(own)
    if host_rtt_ms is not None:
        return EstimatedRtt(
            host_rtt_ms, "handshakes and shortest waits of the page's own host", is_handshake=True
        )
    waits_ms = [each for each in _plausible(map(wait_ms, own)) if each >= _MIN_WAIT_MS]
    least_wait_ms = min(waits_ms, default=math.inf)
    least_ms = _MIN_WAIT_MS if _MIN_DOUBTED_WAIT_MS <= least_wait_ms < math.inf else 0.0
    remote = [each for each in requests if not each.reached.is_loopback]
    rtt = estimated_rtt(remote or requests, least_ms=least_ms)
    if rtt is not None and rtt.rtt_ms > least_wait_ms:
        own_from = "the shortest wait for the page's own host"
        return EstimatedRtt(_round_estimate(least_wait_ms), own_from)
    return rtt


def estimated_rtt(
    requests: Iterable[RecordedRequest], *, least_ms: float = 0.0
) -> EstimatedRtt | None:
    """Estimate the round-trip time of *requests*; return None if there is no evidence.

    The handshake of a connection and each wait for a first byte on it take a round trip or more, so
    the shortest of them is used. If the recorder does not separate TLS from TCP, and a wait was
    shorter than both together, these took two round trips or more. The result is the median over
    connections. If no handshake was recorded, it is the shortest wait that another one confirms.
    Connections with less than *least_ms* do not count, nor handshakes that were over before
    anything could have come from as far as the answers did.
    """
    connection_rtts_ms: list[float] = []
    all_waits_ms: list[float] = []
    for on_connection in by_connection(requests).values():
        waits_ms = _plausible(map(wait_ms, on_connection))
        all_waits_ms += waits_ms
        handshakes_ms = _plausible(each.reached.handshake_ms for each in on_connection)
        connects_ms = _plausible(each.reached.connect_ms for each in on_connection)
        if not (handshakes_ms or connects_ms):
            continue
        bound_ms = min(handshakes_ms or connects_ms)
        if not handshakes_ms and any(wait < bound_ms for wait in waits_ms):
            bound_ms /= _TCP_TLS_ROUND_TRIPS
        is_local = bound_ms < _MIN_WAIT_MS and min(waits_ms, default=0.0) >= _MIN_DOUBTED_WAIT_MS
        if is_local or bound_ms < least_ms:
            continue
        min_wait_ms = bound_ms * _MIN_HANDSHAKE_SHARE if handshakes_ms else _MIN_WAIT_MS
        connection_rtts_ms.append(
            min([bound_ms, *(wait_ms for wait_ms in waits_ms if wait_ms >= min_wait_ms)])
        )
    if connection_rtts_ms:
        n_connections = f"{len(connection_rtts_ms):,} connections"
        description = f"the median of {n_connections}' handshakes and shortest waits"
        median_ms = _round_estimate(statistics.median_low(connection_rtts_ms))
        return EstimatedRtt(median_ms, description, is_handshake=True)
    waits_ms = sorted(wait for wait in all_waits_ms if wait >= _MIN_WAIT_MS)
    if not waits_ms:
        return None
    confirmed = (w for w, next_w in pairwise(waits_ms) if next_w <= w * _CONFIRMING_RATIO)
    rtt_ms = _round_estimate(next(confirmed, waits_ms[0]))
    return EstimatedRtt(rtt_ms, "the shortest waits for first bytes")


def by_connection(
    requests: Iterable[RecordedRequest],
) -> dict[tuple[str, str], list[RecordedRequest]]:
    """Return *requests* by connection, or by host if the recorder does not identify connections."""
    found: dict[tuple[str, str], list[RecordedRequest]] = {}
    for request in requests:
        found.setdefault(connection_of(request), []).append(request)
    return found


def connection_of(request: RecordedRequest) -> tuple[str, str]:
    """Return a key for the connection of a request, or for its host.

    The address is part of it, as some recorders number the connections of each server.
    """
    reached = request.reached
    if reached.connection:
        return reached.connection, reached.ip
    return "", urlsplit(request.url).netloc


def wait_ms(request: RecordedRequest) -> float | None:
    """Return how long a request waited for its first byte; None if pushed or not recorded."""
    # Some recordings have only the start, which is before the request was sent.
    sent_ms = request.start_ms if request.sent_ms is None else request.sent_ms
    first_ms = request.first_byte_ms
    if sent_ms is None or first_ms is None or request.is_pushed:
        return None
    return first_ms - sent_ms


def handshake_rtt_ms(requests: Iterable[RecordedRequest]) -> float | None:
    """Estimate the round-trip time of *requests*; return None without a recorded handshake.

    Waits alone are no evidence here, as those of few requests may all include the server's time.
    """
    requests = [*requests]
    if not any(
        _plausible((request.reached.handshake_ms, request.reached.connect_ms))
        for request in requests
    ):
        return None
    rtt = estimated_rtt(requests)
    return rtt.rtt_ms if rtt is not None and rtt.is_handshake else None


def peak_rate_bps(
    transfers: Sequence[Transfer], window_ms: float, *, least_bytes: int = 0
) -> float:
    """Return the highest rate of transfers that lie within any interval of at least *window_ms*.

    Intervals with fewer than *least_bytes* do not count.

    If all transfers together are shorter than a window, the window is as long as they are, but at
    least 10 ms.

    >>> peak_rate_bps([Transfer(0, 100, 1000), Transfer(50, 150, 3000)], 100)
    240000.0
    """
    begin_ms = min(transfer.from_ms for transfer in transfers)
    end_ms = max(transfer.to_ms for transfer in transfers)
    window_ms = min(window_ms, max(_MIN_SPAN_MS, end_ms - begin_ms))
    step_ms = window_ms / _STEPS_PER_WINDOW
    by_end = _merged_transfers(transfers, step_ms)
    while len(by_end) > _MAX_TRANSFERS:
        step_ms *= 2
        by_end = _merged_transfers(by_end, step_ms)
    ends_ms = [transfer.to_ms for transfer in by_end]
    total_bytes = sum(transfer.n_bytes for transfer in by_end)
    most = 0.0
    for from_ms in {transfer.from_ms: None for transfer in by_end}:
        n_bytes = 0
        for transfer in islice(by_end, bisect_left(ends_ms, from_ms), None):
            took_ms = max(window_ms, transfer.to_ms - from_ms)
            if total_bytes <= most * took_ms:  # longer intervals cannot have a higher rate
                break
            if transfer.from_ms >= from_ms:
                n_bytes += transfer.n_bytes
                if n_bytes >= least_bytes:
                    most = max(most, n_bytes / took_ms)
    return most * BITS_PER_BYTE * MS_PER_S


def _merged_transfers(transfers: Sequence[Transfer], step_ms: float) -> list[Transfer]:
    """Return *transfers* by their ends, with those merged that start and end in the same steps.

    A log may have thousands of pieces, and each pair of a start and an end is tried.
    """
    merged: dict[tuple[int, int], Transfer] = {}
    for transfer in transfers:
        key = int(transfer.from_ms // step_ms), int(transfer.to_ms // step_ms)
        other = merged.get(key, Transfer(transfer.from_ms, transfer.to_ms, 0))
        merged[key] = Transfer(
            min(transfer.from_ms, other.from_ms),
            max(transfer.to_ms, other.to_ms),
            transfer.n_bytes + other.n_bytes,
        )
    return sorted(merged.values(), key=lambda transfer: transfer.to_ms)


def transfers_of(requests: Iterable[RecordedRequest], rtt_ms: float) -> list[Transfer]:
    """Return the transfers of requests: of each its recorded pieces, or one for the response.

    The first piece may have started to arrive *rtt_ms* after the request was sent.
    """
    found = []
    for request in requests:
        first_ms, end_ms = request.first_byte_ms, request.end_ms
        n_bytes = (request.header_bytes or 0) + (request.body_bytes or 0)
        if first_ms is None or end_ms is None or end_ms < first_ms or not n_bytes:
            continue
        if not request.pieces:
            found.append(Transfer(first_ms, end_ms, n_bytes, is_response=True))
            continue
        # Data held back by a lost packet is delivered in one piece, with the first byte, but
        # arrived before that.
        sent_ms = first_ms if request.sent_ms is None else request.sent_ms
        at_ms = min(first_ms, sent_ms + rtt_ms)
        for exact_ms, piece_bytes in request.pieces:
            piece_ms = recorded_ms(exact_ms)
            if piece_ms >= at_ms:
                found.append(Transfer(at_ms, piece_ms, piece_bytes))
                at_ms = piece_ms
    return found


def with_inferred_first_bytes(
    requests: Sequence[RecordedRequest],
    groups: Sequence[int],
    rtts_ms: Sequence[float],
    path: EstimatedPath,
) -> list[RecordedRequest]:
    """Return *requests*, with copies of those that only have a start and an end.

    Such a request was sent once the connection of its group was open, and its response came as fast
    as the path allows: at its rate, or in the round trips of slow start (RFC 9002 § 7.3.1), in
    which the window of a connection grows by what it has delivered. What remains of its time is
    the wait for its first byte.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> page = RecordedRequest(key="", url="", start_ms=0, end_ms=300, body_bytes=40_000)
    >>> path = estimated_path(EstimatedRtt(20, ""), [Transfer(0, 200, 200_000)])
    >>> inferred, = with_inferred_first_bytes([page], [0], [20], path)
    >>> inferred.sent_ms, inferred.first_byte_ms
    (40, 260.0)
    """
    ready_ms: dict[int, float] = {}
    delivered_bytes: dict[int, int] = {}
    found = []
    for request, group, rtt_ms in zip(requests, groups, rtts_ms, strict=True):
        asked_ms, end_ms = _begun_ms(request), request.end_ms
        is_inferred = request.sent_ms is None and request.first_byte_ms is None
        if is_inferred and asked_ms is not None and end_ms is not None:
            setup_ms = connection_setup_ms(request, rtt_ms)
            sent_ms = max(asked_ms, ready_ms.setdefault(group, asked_ms + setup_ms))
            n_bytes = (request.header_bytes or 0) + (request.body_bytes or 0)
            window_bytes = _INITIAL_WINDOW_BYTES + delivered_bytes.get(group, 0)
            n_rounds = math.ceil(math.log2(n_bytes / window_bytes + 1))
            link_ms = n_bytes * BITS_PER_BYTE * MS_PER_S / path.rate_bps
            took_ms = max(link_ms, (n_rounds - 1) * rtt_ms)
            first_ms = min(end_ms, max(sent_ms + rtt_ms, end_ms - took_ms))
            delivered_bytes[group] = delivered_bytes.get(group, 0) + n_bytes
            request = replace(request, sent_ms=min(sent_ms, first_ms), first_byte_ms=first_ms)
        found.append(request)
    return found


def _response_transfers(requests: Iterable[RecordedRequest], rtt_ms: float) -> list[Transfer]:
    """Return each response as one transfer: none of it arrived earlier than it could be there."""
    found = []
    for request in requests:
        first_ms, end_ms = request.first_byte_ms, request.end_ms
        sent_ms = request.sent_ms
        if sent_ms is None:
            sent_ms = _begun_ms(request) if first_ms is None else first_ms
        n_bytes = (request.header_bytes or 0) + (request.body_bytes or 0)
        if sent_ms is None or end_ms is None or not n_bytes:
            continue
        latest_ms = end_ms if first_ms is None else first_ms
        if latest_ms <= end_ms:
            from_ms = min(latest_ms, sent_ms + rtt_ms)
            found.append(Transfer(from_ms, end_ms, n_bytes, is_response=True))
    return found


def _begun_ms(request: RecordedRequest) -> float | None:
    """Return when the network had the request, as far as known."""
    return request.start_ms if request.asked_ms is None else request.asked_ms


def _plausible(times_ms: Iterable[float | None]) -> list[float]:
    """Return the known times that are neither 0 nor too long, in ascending order."""
    return sorted(each for each in times_ms if each is not None and 0 < each < MAX_RTT_MS)


def _round_estimate(value: float) -> float:
    """Return a value rounded to three significant digits."""
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def server_times(
    requests: Sequence[RecordedRequest],
    path: EstimatedPath,
    rtts_ms: Sequence[float],
    groups: Sequence[int],
    stated_ms: Mapping[str, float] = {},
) -> list[float | None]:
    """Estimate the server's response time for each request; None if unknown.

    It is the wait for the first byte, minus a round trip, minus the link's time for other bytes
    that arrived meanwhile. Over HTTP/2 and HTTP/3 all time in which the same connection received
    data is subtracted as well, as another response may have been sent first. *rtts_ms* are the
    round-trip times to the servers, *groups* the connections of a load, and *stated_ms* the usual
    response times by host that the file states, for requests without times. What is no longer than
    a host's files usually wait is noise (`_without_noise`).
    """
    requests = with_inferred_first_bytes(requests, groups, rtts_ms, path)
    arrived = _Arrivals(transfers_of(requests, path.rtt_ms))
    connections = by_connection(requests)
    busy = {key: _union(map(_arrival_interval, each)) for key, each in connections.items()}

    def think_time_ms(request: RecordedRequest, rtt_ms: float) -> float | None:
        waited_ms = wait_ms(request)
        if waited_ms is None or request.first_byte_ms is None or request.sent_ms is None:
            return None
        during = request.sent_ms, request.first_byte_ms
        others_ms = arrived.between(*during) * BITS_PER_BYTE * MS_PER_S / path.rate_bps
        if request.protocol.startswith(MULTIPLEXED):
            others_ms = max(others_ms, _overlap(busy[connection_of(request)], *during))
        return max(0.0, waited_ms - rtt_ms - others_ms)

    times_ms = [think_time_ms(*each) for each in zip(requests, rtts_ms, strict=True)]
    stated = [stated_ms.get(urlsplit(request.url).netloc) for request in requests]
    times_ms = [*map(lambda one, other: other if one is None else one, times_ms, stated)]
    return _without_noise(requests, times_ms, stated_ms)


_LONGEST_LOSS_MS = 200.0
"""A lost packet stops a response for a timeout of this and a round trip, and another round trip
(RFC 6298, with Linux's least timeout)."""


def produced_bodies(
    requests: Sequence[RecordedRequest], path: EstimatedPath, rtts_ms: Sequence[float]
) -> list[tuple[tuple[int, int], ...]]:
    """Return for each response when its server had which bytes, in ns after the first byte.

    There is nothing for a response that was there at once, for files, which a server has, and
    without recorded pieces. A pause before a piece is the server's if it is longer than a lost
    packet explains, after the time that the link takes for the piece and for others. So bytes that
    came in while a busy browser read nothing are no pause; nor is what it read after the end. Of a
    response with pauses, what was read becomes its pieces, which its children wait for.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> page = RecordedRequest(key="", url="", sent_ms=0, first_byte_ms=50, end_ms=900)
    >>> page.body_bytes, page.pieces = 9000, ((50, 3000), (51, 2000), (900, 4000))
    >>> produced_bodies([page], EstimatedPath(30, "", 10_000_000, ""), [30])
    [((0, 5000), (850000000, 4000))]
    """
    arrived = _Arrivals(transfers_of(requests, path.rtt_ms))

    def produced(request: RecordedRequest, rtt_ms: float) -> Iterator[tuple[int, int]]:
        read = request.pieces or request.reads
        last_ms = math.inf if request.end_ms is None else request.end_ms
        begun_ms = before_ms = request.first_byte_ms or read[0][0]
        from_ms, size = begun_ms, 0
        for read_ms, n_bytes in read:
            at_ms = min(read_ms, last_ms)
            link_bytes = max(n_bytes, arrived.between(before_ms, at_ms))
            link_ms = link_bytes * BITS_PER_BYTE * MS_PER_S / path.rate_bps
            if at_ms - before_ms - link_ms > _LONGEST_LOSS_MS + 2 * rtt_ms:
                if size:
                    yield recorded_ns(from_ms - begun_ms), size
                from_ms, size = at_ms, 0
            size += n_bytes
            before_ms = max(before_ms, at_ms)
        if from_ms > begun_ms:
            yield recorded_ns(min(from_ms - begun_ms, LONGEST_MS)), size

    bodies = []
    for request, rtt_ms in zip(requests, rtts_ms, strict=True):
        sizes = [n_bytes for _, n_bytes in request.pieces or request.reads]
        is_computed = request.resolved_kind not in _FILE_KINDS
        is_known = bool(sizes) and is_computed and sum(sizes) == request.body_bytes
        bodies.append(tuple(produced(request, rtt_ms)) if is_known else ())
        if bodies[-1] and not request.pieces:
            request.pieces = request.reads
    return bodies


_FILE_KINDS = frozenset((Kind.STYLESHEET, Kind.SCRIPT, Kind.IMAGE, Kind.FONT, Kind.MEDIA))
"""Kinds of files, which a server rarely computes for a request."""
_MIN_FILES = 4
"""Fewest files of a host of which one can be an outlier of their quartiles."""
_FENCE_SPREADS = 1.5
"""Distance of an outlier from the upper quartile in interquartile ranges (Tukey 1977)."""


def _without_noise(
    requests: Sequence[RecordedRequest],
    times_ms: Sequence[float | None],
    stated_ms: Mapping[str, float] = {},
) -> list[float | None]:
    """Return server times without what the machines of the recorded load added to them.

    A server has a file as soon as the shortest of its waits says. What other files of its host
    waited beyond that is due to that load: requests that came together, a busy browser, disk or
    proxy. So all of the host that waited no longer than its files do, but for outliers, get the
    shortest wait. Outliers, such as a computed document, keep theirs. If *stated_ms* has the usual
    response time of a host, its files get that one, and only they: the noise is already out of it.

    >>> from h3sim.importers.recorded_request import RecordedRequest
    >>> requests = [RecordedRequest(key="", url=f"https://a.example/{n}") for n in range(6)]
    >>> for request in requests[1:]:
    ...     request.resolved_kind = Kind.IMAGE
    >>> _without_noise(requests, [80.0, 0.4, 2.0, 0.1, 45.0, 1.0])
    [80.0, 0.1, 0.1, 0.1, 45.0, 0.1]
    """
    files_ms: dict[str, list[float]] = {}
    hosts = [urlsplit(request.url).netloc for request in requests]
    for host, request, time_ms in zip(hosts, requests, times_ms, strict=True):
        if time_ms is not None and request.resolved_kind in _FILE_KINDS:
            files_ms.setdefault(host, []).append(time_ms)
    shortest_ms: dict[str, float] = {}
    fence_ms: dict[str, float] = {}
    for host, known_ms in files_ms.items():
        if len(known_ms) >= _MIN_FILES:
            lower, _, upper = statistics.quantiles(known_ms, n=4, method="inclusive")
            shortest_ms[host] = max(min(known_ms), stated_ms.get(host, 0.0))
            fence_ms[host] = upper + _FENCE_SPREADS * (upper - lower)
    return [
        min(time_ms, shortest_ms[host])
        if time_ms is not None
        and time_ms <= fence_ms.get(host, -1.0)
        and (host not in stated_ms or request.resolved_kind in _FILE_KINDS)
        else time_ms
        for host, request, time_ms in zip(hosts, requests, times_ms, strict=True)
    ]


def _arrival_interval(request: RecordedRequest) -> tuple[float, float]:
    """Return the start and end of a response's arrival; (0, 0), an empty interval, if unknown."""
    if request.first_byte_ms is None or request.end_ms is None:
        return 0.0, 0.0
    return request.first_byte_ms, request.end_ms


def _overlap(intervals: Sequence[tuple[float, float]], from_ms: float, to_ms: float) -> float:
    """Return the time from *from_ms* to *to_ms* that *intervals*, disjoint and in order, cover."""
    n_started = bisect_left(intervals, (to_ms, 0.0))
    total = 0.0
    for start_ms, end_ms in reversed(intervals[:n_started]):
        if end_ms <= from_ms:
            break
        total += min(end_ms, to_ms) - max(start_ms, from_ms)
    return total


def _union(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of *intervals* as disjoint intervals in order."""
    union: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        last_start, last_end = union[-1] if union else (-math.inf, -math.inf)
        if start <= last_end:
            union[-1] = (last_start, max(last_end, end))
        else:
            union.append((start, end))
    return union


class _Arrivals:
    """Cumulative bytes received over time, each transfer at a constant rate."""

    def __init__(self, transfers: Iterable[Transfer]) -> None:
        # Changes at each time: of the rate, and of the bytes received at once.
        pace_changes: dict[float, float] = {}
        jumps: dict[float, float] = {}
        for from_ms, to_ms, n_bytes, _ in transfers:
            if to_ms - from_ms < MIN_TRANSFER_MS:
                jumps[to_ms] = jumps.get(to_ms, 0.0) + n_bytes
                continue
            pace = n_bytes / (to_ms - from_ms)
            pace_changes[from_ms] = pace_changes.get(from_ms, 0.0) + pace
            pace_changes[to_ms] = pace_changes.get(to_ms, 0.0) - pace
        self._times = sorted({*pace_changes, *jumps})
        self._totals: list[float] = []
        self._paces: list[float] = []
        total = pace = 0.0
        last_ms = self._times[0] if self._times else 0.0
        for at_ms in self._times:
            total += pace * (at_ms - last_ms) + jumps.get(at_ms, 0.0)
            pace += pace_changes.get(at_ms, 0.0)
            last_ms = at_ms
            self._totals.append(total)
            self._paces.append(pace)

    def between(self, from_ms: float, to_ms: float) -> float:
        """Return how many bytes arrived; those at the end itself do not count."""
        return max(0.0, self._before(to_ms) - self._before(from_ms))

    def _before(self, at_ms: float) -> float:
        last = bisect_left(self._times, at_ms) - 1
        if last < 0:
            return 0.0
        return self._totals[last] + self._paces[last] * (at_ms - self._times[last])


class PageHosts(NamedTuple):
    """Host of each resource, "" for that of the root, and the hosts with known properties."""

    names: tuple[str, ...]
    known: tuple[Host, ...] = ()

    def group_numbers(self, names: Sequence[str]) -> list[int]:
        """Return for each of *names* its group's number: a group shares a connection in a load."""
        groups = enumerate(host_groups(tuple(dict.fromkeys(names)), self.known))
        number_of = {host.name: number for number, group in groups for host in group.hosts}
        return [number_of[name] for name in names]


def hosts_of(
    requests: Sequence[RecordedRequest],
    names: Sequence[str],
    root: int,
    *,
    rtt_ms: float | None,
    stated_ms: Mapping[str, float] = {},
) -> PageHosts:
    """Return the hosts of *requests*, whose names are *names*; "" stands for the root's host.

    Nothing is returned for a page with a single host. The host of the *root* has no lookup time, as
    a load begins after that lookup. A host has a round-trip time if it differs from that of the
    network, *rtt_ms*, or, if that is unknown, of the root's host. *stated_ms* are round-trip times
    by host that the file states.

    >>> from h3sim.importers.recorded_request import RecordedRequest, ConnectionInfo
    >>> page, image = (RecordedRequest(key=key, url="") for key in ("page", "image"))
    >>> image.reached = ConnectionInfo(dns_ms=12, handshake_ms=30)
    >>> found = hosts_of([page, image], ["www.example", "cdn.example"], 0, rtt_ms=20)
    >>> found.names, found.known[0].rtt_ns, found.known[0].dns_ns
    (('www.example', 'cdn.example'), 30000000, 12000000)
    """
    root_host = names[root] or next(filter(None, names), "")
    names = [name or root_host for name in names]
    by_host: dict[str, list[RecordedRequest]] = {root_host: []}
    for name, request in zip(names, requests, strict=True):
        by_host.setdefault(name, []).append(request)
    if len(by_host) == 1:
        return PageHosts(("",) * len(names))
    groups = [{name: by_host[name] for name in group} for group in _group_hosts(by_host)]
    if rtt_ms is None:
        rtt_ms = handshake_rtt_ms(request for of_host in groups[0].values() for request in of_host)
    known = {
        host.name: host
        for group in groups
        for host in _known_hosts(group, root_host, rtt_ms, stated_ms)
    }
    return PageHosts(
        # Only the root names its own host: it is the default of the others.
        tuple(
            name if index == root or name != root_host else "" for index, name in enumerate(names)
        ),
        tuple(known[name] for name in by_host if name in known),
    )


def _group_hosts(by_host: Mapping[str, Iterable[RecordedRequest]]) -> list[list[str]]:
    """Return groups of hosts that share a connection, in the order of their first requests."""
    groups: list[list[str]] = []
    group_of_connection: dict[tuple[str, str], int] = {}
    group_of_certificate: dict[tuple[str, str], int] = {}
    for name, requests in by_host.items():
        connections = [
            connection_of(request)
            for request in requests
            if request.reached.connection and request.protocol.startswith(MULTIPLEXED)
        ]
        found = [group_of_connection[key] for key in connections if key in group_of_connection]
        if not connections:
            keys = _valid_certificates(name, requests)
            found = [group_of_certificate[key] for key in keys if key in group_of_certificate]
        group = next(iter(found), len(groups))
        if group == len(groups):
            groups.append([])
        groups[group].append(name)
        for key in connections:
            group_of_connection.setdefault(key, group)
        for key in _shown_certificates(requests):
            group_of_certificate.setdefault(key, group)
    return groups


def _shown_certificates(requests: Iterable[RecordedRequest]) -> Iterator[tuple[str, str]]:
    """Yield each address with the identity of its certificate, and with each name in it."""
    for request in requests:
        if address := request.reached.ip:
            reached = request.reached
            for identity in (reached.certificate, *map(str.lower, reached.certificate_names)):
                yield address, identity


def _valid_certificates(
    name: str, requests: Iterable[RecordedRequest]
) -> Iterator[tuple[str, str]]:
    """Yield each address with each name or identity by which a certificate is valid for *name*.

    A wildcard stands for the whole leftmost label (RFC 9525 § 6.3). A host with a port is another
    origin, for which a name is not enough.
    """
    names = [] if ":" in name else [name, f"*.{name.partition('.')[2]}"]
    for request in requests:
        if address := request.reached.ip:
            for identity in filter(None, (*names, request.reached.certificate)):
                yield address, identity


def _known_hosts(
    group: Mapping[str, Sequence[RecordedRequest]],
    root_host: str,
    rtt_ms: float | None,
    stated_ms: Mapping[str, float],
) -> Iterator[Host]:
    """Yield the hosts of a group that have any known property."""
    first, is_shared = next(iter(group)), len(group) > 1
    requests = [request for of_host in group.values() for request in of_host]
    addresses = (request.reached.ip for request in requests)
    # A shared connection needs a common server: without an address, the first host names it.
    address = next(filter(None, addresses), first if is_shared else "")
    group_rtt_ms = handshake_rtt_ms(requests)
    if group_rtt_ms is None and root_host not in group:
        group_rtt_ms = next((stated_ms[name] for name in group if name in stated_ms), None)
    for name, of_host in group.items():
        host = Host(
            name=name,
            certificate=first if is_shared else "",
            server=address,
            rtt_ns=None if group_rtt_ms is None or group_rtt_ms == rtt_ms else ms(group_rtt_ms),
            dns_ns=None if name == root_host else _dns_ns(of_host),
        )
        if host != Host(name=name):
            yield host


def _dns_ns(requests: Iterable[RecordedRequest]) -> int | None:
    """Return the time of the first DNS lookup; None if the name was cached or it is unknown."""
    times_ms = (request.reached.dns_ms for request in requests)
    first_ms = next((each for each in times_ms if each and each < MAX_RTT_MS), None)
    return None if first_ms is None else recorded_ns(first_ms)
