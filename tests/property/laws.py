"""Laws that a load obeys, each a function that raises AssertionError where it is broken.

They read traces and pages only, so that a law cannot share a mistake with what it checks.
`tests/mutants` shows for each law a broken part that it finds out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest

from h3sim import trace
from h3sim.page import TriggerEvent
from h3sim.values.errors import StalledError
from h3sim.values.ranges import Ranges

ROUNDING = 1e-6
"""Relative: the bound counts in exact intervals, the clock in whole nanoseconds."""


def check_the_load_ends(start: Any) -> Any:
    """*start()* returns a load in which every resource is requested and finished; return it."""
    try:
        load = start()
    except StalledError as stalled:
        raise AssertionError(f"the load stalls: {stalled}") from stalled
    assert sorted(row.id for row in load.timings) == sorted(r.id for r in load.page.resources)
    for row in load.timings:
        assert row.requested_ms <= row.first_byte_ms <= row.finished_ms, row
    return load


def check_bytes_are_conserved(load: Any) -> None:
    """The packets of each stream cover it once; none is too long; an empty one takes one packet."""
    spans = defaultdict(list)
    for _, _, stream_id, offset, length, *_ in load.trace.packet_rows:
        assert length <= load.network.constant_rate.packet_bytes, f"a packet of {length} bytes"
        spans[stream_id].append((offset, offset + length))
    for request in load.trace.requests:
        ordered = sorted(spans.pop(request.stream_id, []))
        assert ordered, f"stream {request.stream_id} has no packet"
        assert [start for start, _ in ordered] == [0, *(stop for _, stop in ordered[:-1])]
        assert ordered[-1][1] == request.length_bytes
        assert len(ordered) == 1 or all(start < stop for start, stop in ordered)
    assert not spans, f"packets of streams that nobody asked for: {list(spans)}"


def check_requests_follow_their_triggers(load: Any) -> None:
    """Each resource is requested its delay after its trigger, neither before nor later.

    So what is reported is what the browser had: when a resource was finished, or so much of it
    there, is taken from the load's figures, and what waited for that was requested then.
    """
    requested_at_ns = {r.resource: r.requested_at_ns for r in load.trace.requests}
    for position, resource in enumerate(load.page.resources):
        if resource.discovered is not None:
            expected = _trigger_ns(load, resource.discovered) + resource.discovered.delay_ns
            if resource.discovered.at is TriggerEvent.TIME:
                expected = max(expected, requested_at_ns[load.page.root])
            assert requested_at_ns[position] == expected, f"{resource.id}: {resource.discovered}"


def _trigger_ns(load: Any, discovered: Any) -> Any:
    """Recompute when the trigger fired, from the table of timings where that says it."""
    if discovered.at is TriggerEvent.TIME:
        return 0
    parent = load.page.resources[load.page.index[discovered.by]]
    timing = next(row for row in load.timings if row.id == parent.id)
    if discovered.at is TriggerEvent.REQUEST:
        return round(timing.requested_ms * 1e6)
    if discovered.at is TriggerEvent.OFFSET:
        return _delivered_ns(load, timing.stream_id, parent.header_bytes + discovered.offset_bytes)
    busy_ns = parent.parse_ns + parent.execute_ns if discovered.at is TriggerEvent.EXECUTED else 0
    return round(timing.finished_ms * 1e6) + busy_ns


def _delivered_ns(load: Any, stream_id: int, n_bytes: int) -> Any:
    """Return when *n_bytes* of the stream had been delivered, and at least its first packet."""
    return min(
        row.delivered_at_ns
        for row in load.trace.packets
        if row.delivered_at_ns is not None
        and row.stream_id == stream_id
        and row.offset + row.length_bytes >= n_bytes
    )


def check_every_byte_is_delivered_once(load: Any) -> None:
    """The rows that were delivered cover each stream, and none of them for nothing."""
    got: defaultdict[Any, Any] = defaultdict(Ranges)
    rows = [row for row in load.trace.packets if row.delivered_at_ns is not None]
    for row in sorted(rows, key=lambda row: row.arrived_at_ns):
        assert row.arrived_at_ns <= row.delivered_at_ns, row
        is_empty = not row.length_bytes and row.stream_id not in got
        assert got[row.stream_id].add(row.offset, row.offset + row.length_bytes) or is_empty, row
    for request in load.trace.requests:
        assert got[request.stream_id].contiguous == request.length_bytes, request


def check_no_tick_is_wasted(load: Any) -> None:
    """A packet leaves at every tick at which a response is ready and not wholly sent."""
    constant_rate = load.network.constant_rate
    sent = [row[0] for row in load.trace.packet_rows]
    last_tick = constant_rate.first_tick_from(sent[-1])
    ticks = [constant_rate.tick_at_ns(number) for number in range(1, last_tick + 1)]
    assert sent == sorted(set(sent)), "two packets at once"
    assert set(sent) <= set(ticks), "a packet beside its tick"
    ready, until = _ready_ns(load), _last_sent_ns(load)
    for at_ns in sorted(set(ticks) - set(sent)):
        waiting = [s for s, ready_ns in ready.items() if ready_ns <= at_ns < until[s]]
        assert not waiting, f"at {at_ns} ns nothing leaves, though {waiting} wait"


def _ready_ns(load: Any) -> dict[Any, Any]:
    """Return when each stream's response is ready."""
    resources = load.page.resources
    return {
        r.stream_id: r.arrived_at_ns + resources[r.resource].server_ns for r in load.trace.requests
    }


def _last_sent_ns(load: Any) -> dict[Any, Any]:
    return {row[2]: row[0] for row in load.trace.packet_rows}


def check_page_loads_take_equally_long(loads: Any) -> None:
    """Without jitter, and where no request waits for a delivery, no scheme ends sooner."""
    assert len({load.page_load_ms for load in loads}) == 1, [
        (load.scheme.name, load.page_load_ms) for load in loads
    ]


def check_none_is_overtaken(load: Any, rank: Any) -> None:
    """No packet leaves while a stream of a lower *rank(page, resource, stream_id)* has data.

    Ranks are compared as they are; None keeps a stream out of the law.
    """
    resources = [load.page.resources[r.resource] for r in load.trace.requests]
    ranks = {4 * n: rank(load.page, resource, 4 * n) for n, resource in enumerate(resources)}
    first, until = _certainly_ready_ns(load), _last_sent_ns(load)
    for at_ns, _, stream_id, *_ in load.trace.packet_rows:
        own = ranks[stream_id]
        if own is None:
            continue
        for other, theirs in ranks.items():
            if theirs is not None and theirs < own and first[other] <= at_ns < until[other]:
                message = f"{stream_id} ({own}) leaves at {at_ns} ns before {other} ({theirs})"
                raise AssertionError(message)


def _certainly_ready_ns(load: Any) -> Any:
    """Return from when on each stream can be sent at a tick.

    Without delay, a packet may bring about a request at the tick at which it leaves itself: that
    is too late for this tick. Only where the instant itself leaves it open is one added.
    """
    ready = _ready_ns(load)
    for request in load.trace.requests:
        discovered = load.page.resources[request.resource].discovered
        waits = discovered is not None and discovered.at is not TriggerEvent.TIME
        if waits and ready[request.stream_id] == request.requested_at_ns:
            ready[request.stream_id] += 1
    return ready


def check_shares_follow_weights(turns: Any, weights: Any) -> None:
    """As long as all have something to send, none is a turn off its share against another.

    *turns* names who sent each packet, *weights* those who share from the first packet on. With
    n_i turns of weight w_i, fair queueing keeps n_i / w_i - n_j / w_j between -1 / w_i and 1 / w_j.
    """
    last_turn = {key: number for number, key in enumerate(turns)}
    assert set(last_turn) == set(weights), "someone never sends"
    counts = dict.fromkeys(weights, 0)
    for key in turns[: min(last_turn.values())]:
        counts[key] += 1
        for i, j in combinations(weights, 2):
            ahead = counts[i] * weights[j] - counts[j] * weights[i]
            assert -weights[j] <= ahead <= weights[i], f"{i} and {j} have had {counts}"


def check_large_buffers_hide_the_scheme(load: Any, fifo: Any) -> None:
    """Where all responses fit into the send buffer, packets leave as they do under fifo.

    Of responses that are ready in one instant the scheme may still choose the first, and so when
    what they name is asked for.
    """
    ready_at_ns = when_ready(load)
    in_order = list(map(ready_at_ns.__getitem__, load.trace.order))
    assert in_order == sorted(in_order)
    assert sorted(load.trace.order) == sorted(fifo.trace.order)
    if len(set(ready_at_ns.values())) == len(ready_at_ns):
        assert load.trace.order == fifo.trace.order
    if load.trace.order == fifo.trace.order:
        assert load.trace.packet_rows == fifo.trace.packet_rows
        assert load.timings == fifo.timings


def when_ready(load: Any) -> dict[int, int]:
    """Return of each stream when the server was ready with its response."""
    return {
        request.stream_id: request.arrived_at_ns + load.page.resources[request.resource].server_ns
        for request in load.trace.requests
    }


def check_one_order_is_never_earlier(load: Any) -> None:
    """TCP delivers no packet before QUIC would, and exactly then where there is one stream.

    What the load says is what the two orders come to, worked out from when packets arrived.
    """
    rows = load.trace.packet_rows
    quic = trace.delivered_per_stream(rows)
    tcp = trace.delivered_in_one_order(rows, quic)
    assert load.trace.delivered_at_ns == (quic if load.protocol.value == "quic" else tcp)
    assert all(row[1] <= at for row, at in zip(load.trace.packet_rows, quic, strict=True))
    assert all(early <= late for early, late in zip(quic, tcp, strict=True))
    if len(load.trace.requests) == 1:
        assert quic == tcp


def check_blocking_of_a_connection_contains_that_of_streams(load: Any) -> None:
    """What waits within a stream waits in one order too; without overtaking nothing waits."""
    hol = load.hol
    assert hol.connection_bytes >= hol.stream_bytes
    assert hol.connection_delay_ms >= hol.stream_delay_ms
    if load.network.jitter is None:
        assert (hol.connection_bytes, hol.connection_delay_ms) == (0, 0)


def check_sander_counts_nothing(load: Any) -> None:
    """Streams sent in order and without loss are never blocked as Sander 2022 counts it."""
    assert (load.hol.sander_stream_bytes, load.hol.sander_connection_bytes) == (0, 0)


def check_stacks_hold_all_packets(load: Any) -> None:
    """Each packet is delivered in one stack."""
    stacked = sum(height * n for height, n in load.hol.stack_histogram.items())
    assert stacked == len(load.trace.packet_rows) == load.packets.sent


def check_no_scheme_beats_the_bound(load: Any) -> None:
    """ByteIndex is no less than what these requests allow."""
    _check_no_better(load, "requests")


def check_no_scheme_beats_the_bound_of_the_page(load: Any) -> None:
    """ByteIndex is no less than what any order of requests allows; that of requests is tighter."""
    _check_no_better(load, "page")


def _check_no_better(load: Any, given: Any) -> None:
    for which in ("all", "atf"):
        index = load.byte_index_or_none(which, sample_ms=None)
        if index is not None:
            assert index >= load.lower_bound(which, given=given) * (1 - ROUNDING)


def check_bound_is_attained(load: Any) -> None:
    """ByteIndex is what the bound says: sent one at a time, in packets that are all full."""
    index = load.byte_index("all", sample_ms=None)
    assert index == pytest.approx(load.lower_bound(), rel=ROUNDING)


def check_bound_above_the_fold_is_attained(load: Any) -> None:
    """ByteIndex above the fold is as if nothing else were there, sent one at a time."""
    index = load.byte_index_or_none("atf", sample_ms=None)
    if index is not None:
        assert index == pytest.approx(load.lower_bound("atf"), rel=ROUNDING)


def check_sampling_never_hides_progress(load: Any, sample_ms: float) -> None:
    """The sampled ByteIndex exceeds the integral by less than one sampling interval."""
    exact = load.byte_index_or_none("all", sample_ms=None)
    if exact is not None:
        late = load.byte_index("all", sample_ms=sample_ms) - exact
        assert -ROUNDING <= late < sample_ms


def check_streams_are_numbered_as_requested(load: Any) -> None:
    """Stream ids are 0, 4, 8, ... in the order of the requests."""
    requests = load.trace.requests
    assert [r.stream_id for r in requests] == list(range(0, 4 * len(requests), 4))
    at_ns = [r.requested_at_ns for r in requests]
    assert at_ns == sorted(at_ns)
    assert Counter(r.resource for r in requests) == Counter(range(len(load.page.resources)))
