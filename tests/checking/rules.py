"""The rules of a load, each a function that yields what breaks it; none calls the engine's code."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from h3sim.page import TriggerEvent
from h3sim.trace import Delivery

if TYPE_CHECKING:
    from h3sim.page import Page, Resource
    from h3sim.trace import Packet, Request, Trace, WireRow
    from tests.checking.path import FifoEventQueue

__all__ = ["LATE", "RULES", "Checked", "delays", "violations"]

_PROBES = 2
"""A timer sends up to two packets whatever the window (RFC 9002 § 6.2.4; RFC 3042 for TCP)."""
_BITS_NS = 8 * 10**9
_RECORD_BYTES = 2**14
"""What a TLS record may hold (RFC 8446 § 5.1), and a frame of HTTP/2 (RFC 9113 § 4.2)."""
_BARE_BYTES = 32
"""TCP's header with timestamps. With SACK's blocks it may be as long as with a record's end."""
RECORD = "for the rest of a record"
REST = "for the end of a record in a segment of its own"
HANDSHAKE = "for the server's handshake flight"
OTHERWISE = "later, otherwise"
LATE = (RECORD, REST, HANDSHAKE, OTHERWISE)
"""What a row over TCP is held up for when all before it has come."""


class Checked(NamedTuple):
    """What is checked: a trace with its wire, the page, both lanes and the largest packet.

    *restarts_after_rest*: the server's controller takes its first window again when it sends after
    it had nothing acknowledged for a while (CUBIC of aioquic 1.7: 2 s).
    """

    page: Page
    trace: Trace
    lanes: dict[bool, FifoEventQueue]
    packet_bytes: int
    restarts_after_rest: bool = False


def violations(checked: Checked) -> list[str]:
    """Return what is wrong with a load, each with the rule's name."""
    return [f"{name}: {each}" for name, rule in RULES.items() for each in rule(checked)]


def _by_stream(trace: Trace) -> dict[int, list[Packet]]:
    rows: dict[int, list[Packet]] = defaultdict(list)
    for row in trace.packets:
        rows[row.stream_id].append(row)
    return rows


def every_byte_once_in_order(checked: Checked) -> Iterator[str]:
    """What was delivered covers each stream, brings something new each time, and rises."""
    trace, page = checked.trace, checked.page
    if sorted(r.resource for r in trace.requests) != list(range(len(page.resources))):
        yield f"requested are {[r.resource for r in trace.requests]}"
        return
    rows = _by_stream(trace)
    if extra := rows.keys() - {r.stream_id for r in trace.requests}:
        yield f"nobody asked for streams {sorted(extra)}"
    for request in trace.requests:
        resource = page.resources[request.resource]
        n_bytes = resource.size_bytes + resource.header_bytes
        if request.length_bytes != n_bytes:
            yield f"{resource.id} has {request.length_bytes} bytes in place of {n_bytes}"
        yield from _covered(resource.id, n_bytes, rows[request.stream_id])


def _covered(of: str, n_bytes: int, rows: list[Packet]) -> Iterator[str]:
    """Yield where the rows that came do not cover *n_bytes*, or one was delivered for nothing."""
    came = sorted((row for row in rows if row.arrived_at_ns is not None), key=_arrival)
    if not came:
        yield f"nothing of {of} arrives"
    had: set[int] = set()
    delivered: list[tuple[int, int]] = []
    is_first = True
    for row in came:
        new = set(range(row.offset, row.offset + row.length_bytes)) - had
        had |= new
        brings = bool(new) or (is_first and not n_bytes)
        is_first = False
        if brings is (row.delivered_at_ns is None):
            yield f"{of}: brings {len(new)} bytes, delivered at {row.delivered_at_ns}: {row}"
        if row.delivered_at_ns is not None:
            # By the last byte that is new: a retransmission may begin with bytes of earlier rows.
            delivered.append((max(new, default=0), row.delivered_at_ns))
    if had != set(range(n_bytes)):
        yield f"{of}: {len(had)} bytes of {n_bytes} arrive"
    if any(a[1] > b[1] for a, b in pairwise(sorted(delivered))):
        yield f"{of} is delivered out of order"


def _arrival(row: Packet) -> int:
    assert row.arrived_at_ns is not None
    return row.arrived_at_ns


def nothing_before_it_arrived(checked: Checked) -> Iterator[str]:
    """A row is delivered when what precedes it has come: of its stream, over TCP of all streams.

    Over TCP bytes that are not of a response, and records that come whole, may hold it up longer.
    """
    trace = checked.trace
    is_stream = trace.delivery is Delivery.STREAM
    complete_at_ns = _complete_at_ns(trace, is_stream=is_stream)
    for row in trace.packets:
        if row.delivered_at_ns is None:
            continue
        if row.arrived_at_ns is None or row.delivered_at_ns < row.arrived_at_ns:
            yield f"delivered before it arrived: {row}"
        earliest_ns = complete_at_ns.get((row.stream_id, row.offset + row.length_bytes))
        if earliest_ns is None or row.delivered_at_ns < earliest_ns:
            yield f"delivered before {earliest_ns}, when all before it had come: {row}"
        elif is_stream and row.delivered_at_ns > max(earliest_ns, row.arrived_at_ns or 0):
            yield f"delivered after {earliest_ns}, when all before it had come: {row}"


def tcp_no_later_than_explained(checked: Checked) -> Iterator[str]:
    """Over TCP a row is delivered no later than its record, or bytes beside bodies, explain."""
    for reason, row in _late(checked.trace):
        if reason == OTHERWISE:
            yield f"later than all before it and its record explain: {row}"


def delays(trace: Trace) -> set[str]:
    """Return what holds rows up, over TCP, that have come with all before them: names of `LATE`."""
    return {reason for reason, _ in _late(trace)}


def _late(trace: Trace) -> Iterator[tuple[str, Packet]]:
    """Yield the rows that are delivered after they and all before them came, and what they await.

    Each is delivered when something arrives: what completes all up to some later piece that its
    record may hold, or a segment with neither body nor header of a response.
    """
    if trace.delivery is Delivery.STREAM:
        return
    complete_at_ns = _complete_at_ns(trace, is_stream=False)
    pieces = list(complete_at_ns)
    positions = {piece: position for position, piece in enumerate(pieces)}
    n_bytes = _lengths(pieces)
    others = _other_responses(trace)
    for row in trace.packets:
        if row.delivered_at_ns is None or row.arrived_at_ns is None:
            continue
        position = positions[row.stream_id, row.offset + row.length_bytes]
        earliest_ns = complete_at_ns[pieces[position]]
        if earliest_ns is None or row.delivered_at_ns <= max(earliest_ns, row.arrived_at_ns):
            continue  # not late: `nothing_before_it_arrived` has what is wrong with it
        behind_bytes = 0
        while (position := position + 1) < len(pieces) and behind_bytes < _RECORD_BYTES:
            if complete_at_ns[pieces[position]] == row.delivered_at_ns:
                yield RECORD, row
                break
            behind_bytes += n_bytes[pieces[position]]
        else:
            yield _awaited(others, row.delivered_at_ns, trace.packets[0].number), row


def _lengths(pieces: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return how long each piece is, which goes from the end of the one before in its stream."""
    ends: dict[int, int] = {}
    lengths: dict[tuple[int, int], int] = {}
    for stream_id, end in sorted(pieces):
        lengths[stream_id, end] = end - ends.get(stream_id, 0)
        ends[stream_id] = end
    return lengths


def _other_responses(trace: Trace) -> list[WireRow]:
    """Return the segments of the server that may have bytes, and none of a response.

    A SYN acknowledges nothing by a number; it has 40 bytes, as a segment with 8 of a record.
    """
    carries = {row.number for row in trace.packets}
    return [
        row
        for row in trace.wire
        if row.is_down and row.number not in carries and row.acked and row.size_bytes > _BARE_BYTES
    ]


def _awaited(others: list[WireRow], at_ns: int, first_number: int) -> str:
    """Return what came at that time and was awaited: no segment sent before it could stand in."""
    for row in others:
        if row.arrived_at_ns != at_ns:
            continue
        copies = [each for each in others if each.size_bytes == row.size_bytes]
        before = [each.arrived_at_ns for each in copies if each.number < row.number]
        is_first = row.sent_at_ns == copies[0].sent_at_ns
        if not is_first and all(came is not None and came < at_ns for came in before):
            continue  # a copy of what had come
        is_early = any(each.number < first_number for each in copies)
        return HANDSHAKE if is_early else REST
    return OTHERWISE


def _complete_at_ns(trace: Trace, *, is_stream: bool) -> dict[tuple[int, int], int | None]:
    """Return, by stream and end of a row, when everything up to there had arrived.

    Streams are cut at all rows' ends; pieces stand in the order in which they were first sent.
    """
    pieces: list[tuple[int, int]] = []  # (stream, end), as first sent
    came: dict[tuple[int, int], int] = {}
    cuts = {
        stream_id: sorted({cut for r in rows for cut in (r.offset, r.offset + r.length_bytes)})
        for stream_id, rows in _by_stream(trace).items()
    }
    known: set[tuple[int, int]] = set()
    for row in trace.packets:
        ends = cuts[row.stream_id]
        first = bisect_left(ends, row.offset) + (row.length_bytes > 0)
        for end in ends[first : bisect_left(ends, row.offset + row.length_bytes) + 1]:
            piece = (row.stream_id, end)
            if piece not in known:
                known.add(piece)
                pieces.append(piece)
            if row.arrived_at_ns is not None:
                came[piece] = min(came.get(piece, row.arrived_at_ns), row.arrived_at_ns)
    if is_stream:
        pieces.sort()
    return _latest_so_far(pieces, came, is_stream=is_stream)


def _latest_so_far(
    pieces: list[tuple[int, int]], came: dict[tuple[int, int], int], *, is_stream: bool
) -> dict[tuple[int, int], int | None]:
    """Return the latest arrival up to each piece; None from one on that never came."""
    latest: dict[int, int | None] = {}
    found: dict[tuple[int, int], int | None] = {}
    for piece in pieces:
        line = piece[0] if is_stream else 0
        before = latest.get(line, 0)
        at_ns = came.get(piece)
        latest[line] = found[piece] = (
            None if before is None or at_ns is None else max(before, at_ns)
        )
    return found


def wire_and_rows_agree(checked: Checked) -> Iterator[str]:
    """A row of bytes was sent and came with the packet that the wire has under its number."""
    wire = {
        (row.number, row.sent_at_ns, row.arrived_at_ns) for row in checked.trace.wire if row.is_down
    }
    for row in checked.trace.packets:
        if (row.number, row.sent_at_ns, row.arrived_at_ns) not in wire:
            yield f"on no wire: {row}"
    if any(a.sent_at_ns > b.sent_at_ns for a, b in pairwise(checked.trace.wire)):
        yield "the wire's rows do not stand as sent"


def no_link_outrun(checked: Checked) -> Iterator[str]:
    """Between any two packets a link carries no more than its rate, its burst and a packet."""
    for is_down, lane in checked.lanes.items():
        rows = [r for r in checked.trace.wire if r.is_down is is_down and r.arrived_at_ns]
        yield from _outrun(rows, lane)


def _outrun(rows: list[WireRow], lane: FifoEventQueue) -> Iterator[str]:
    """Yield the packets that came before the link could have carried all since some packet sent.

    A packet takes its bytes over the rate when it was sent, and follows those before it. So it
    leaves no sooner than any of them was sent, later by what all from that one on take; a burst
    goes before its time at the lowest rate there was.
    """
    slack_ns = Fraction(lane.burst_bytes * _BITS_NS, min(rate for _, rate in lane.steps))
    busy_until, before = Fraction(0), 0
    for row in rows:
        assert row.arrived_at_ns is not None
        wire_bytes = row.size_bytes + lane.overhead_bytes
        busy_until = max(busy_until, Fraction(row.sent_at_ns))
        busy_until += Fraction(wire_bytes * _BITS_NS, lane.rate_at(row.sent_at_ns))
        leaves_at_ns = row.arrived_at_ns - lane.delay_ns
        # Each time is cut to a whole nanosecond.
        earliest_ns = max(busy_until - slack_ns - 1 - len(lane.steps), Fraction(row.sent_at_ns))
        if leaves_at_ns < earliest_ns:
            yield f"left at {leaves_at_ns}, not from {float(earliest_ns):.0f} on: {row}"
        if not lane.is_reordered and row.arrived_at_ns < before:
            yield f"overtakes on a link that keeps the order: {row}"
        before = row.arrived_at_ns


def no_queue_overfull(checked: Checked) -> Iterator[str]:
    """Without jitter no packet waits longer than a full queue takes at the lowest rate."""
    for is_down, lane in checked.lanes.items():
        if lane.queue_bytes is None or lane.is_jittered:
            continue
        most_ns = 1 + lane.queue_bytes * _BITS_NS // min(rate for _, rate in lane.steps)
        for row in checked.trace.wire:
            if row.is_down is not is_down or row.arrived_at_ns is None:
                continue
            if row.arrived_at_ns - lane.delay_ns - row.sent_at_ns > most_ns:
                yield f"waited longer than {most_ns} ns: {row}"


def windows_kept(checked: Checked) -> Iterator[str]:
    """What is in flight outgrows the window by probes only, each time something happens.

    A row is written before what then leaves, so the window that this had is that of the row before;
    or that of the row after, for a controller that begins anew when it sends after a rest.
    """
    most_bytes = _PROBES * checked.packet_bytes
    for before, after in pairwise(checked.trace.recovery):
        window_bytes = before.congestion_window
        if checked.restarts_after_rest:
            window_bytes = max(window_bytes, after.congestion_window)
        allowed = max(before.bytes_in_flight, window_bytes) + most_bytes
        if not after.lost and after.bytes_in_flight > allowed:
            yield f"{after.bytes_in_flight} bytes in flight, at most {allowed}: {after}"
    yield from _unsaid_flight(checked)


def _unsaid_flight(checked: Checked) -> Iterator[str]:
    """Yield where less is said to be in flight than was sent and neither acknowledged nor lost.

    Only over QUIC, where a number is a packet's own: an ACK of TCP may mean either of two copies.
    """
    trace = checked.trace
    if trace.delivery is not Delivery.STREAM:
        return
    carries = {row.number for row in trace.packets}
    sent = [r for r in trace.wire if r.is_down and r.number in carries]
    acks = sorted(
        (r.arrived_at_ns, r.acked)
        for r in trace.wire
        if not r.is_down and r.arrived_at_ns is not None  # 0 where nothing takes time
    )
    flight: dict[int, int] = {}
    n_sent = n_acks = 0
    gone: set[int] = set()  # acknowledged or lost; without delay an ACK comes as its packet leaves
    for row in trace.recovery:
        gone.update(row.lost)
        while n_sent < len(sent) and sent[n_sent].sent_at_ns < row.at_ns:
            flight[sent[n_sent].number] = sent[n_sent].size_bytes
            n_sent += 1
        while n_acks < len(acks) and acks[n_acks][0] <= row.at_ns:
            gone.update(n for low, high in acks[n_acks][1] for n in range(low, high + 1))
            n_acks += 1
        flight = {number: size for number, size in flight.items() if number not in gone}
        if sum(flight.values()) > row.bytes_in_flight:
            yield f"{sum(flight.values())} bytes are in flight: {row}"


def requests_at_their_triggers(checked: Checked) -> Iterator[str]:
    """Each resource is asked for its delay after its trigger, neither before nor later."""
    page, trace = checked.page, checked.trace
    rows = _by_stream(trace)
    requests = {request.resource: request for request in trace.requests}
    by_id = {resource.id: n for n, resource in enumerate(page.resources)}
    for n, resource in enumerate(page.resources):
        request, found = requests.get(n), resource.discovered
        if request is None or found is None:
            continue
        expected_ns = found.delay_ns
        latest_ns = 0  # after that
        if found.at is TriggerEvent.TIME:
            root = next(i for i, each in enumerate(page.resources) if each.discovered is None)
            expected_ns = max(found.delay_ns, requests[root].requested_at_ns)
        elif found.by is not None and by_id[found.by] in requests:
            parent = requests[by_id[found.by]]
            fired_ns = parent.requested_at_ns
            graph = page.module_graphs.get(by_id[found.by], ())
            if found.at is TriggerEvent.EXECUTED and graph:
                # A module has run once all its imports have arrived and run: each runs once.
                arrived = [
                    _arrived_ns(page.resources[each], requests, each, rows) for each in graph
                ]
                fired_ns = -1 if None in arrived else max(filter(None, arrived))
                latest_ns = sum(
                    page.resources[each].parse_ns + page.resources[each].execute_ns
                    for each in graph
                )
            elif found.at is not TriggerEvent.REQUEST:
                of = page.resources[by_id[found.by]]
                fired = _fired_ns(of, found.at, found.offset_bytes, rows[parent.stream_id])
                fired_ns = -1 if fired is None else fired
            expected_ns = fired_ns + found.delay_ns
        if not 0 <= request.requested_at_ns - expected_ns <= latest_ns:
            yield f"{resource.id} at {request.requested_at_ns}, not {expected_ns}: {found}"


def _arrived_ns(
    of: Resource, requests: Mapping[int, Request], resource: int, rows: Mapping[int, list[Packet]]
) -> int | None:
    """Return when *of*, the *resource* of that index, was complete; None if it never was."""
    if resource not in requests:
        return None
    return _fired_ns(of, TriggerEvent.COMPLETE, None, rows[requests[resource].stream_id])


def _fired_ns(
    of: Resource, at: TriggerEvent, offset_bytes: int | None, rows: list[Packet]
) -> int | None:
    """Return when so much of *of* was delivered, and run where that is waited for."""
    n_bytes = of.header_bytes + (of.size_bytes if offset_bytes is None else offset_bytes)
    at_ns = [
        row.delivered_at_ns
        for row in rows
        if row.delivered_at_ns is not None and row.offset + row.length_bytes >= n_bytes
    ]
    if not at_ns:
        return None
    return min(at_ns) + (of.parse_ns + of.execute_ns if at is TriggerEvent.EXECUTED else 0)


Rule = Callable[[Checked], Iterator[str]]

RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        every_byte_once_in_order,
        nothing_before_it_arrived,
        tcp_no_later_than_explained,
        wire_and_rows_agree,
        no_link_outrun,
        no_queue_overfull,
        windows_kept,
        requests_at_their_triggers,
    )
}
