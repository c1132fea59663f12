"""What Marx 2019 found, on pages small enough to see why."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import h3sim
from tests.helpers import replay

SCHEMES = [scheme.name for scheme in h3sim.list_schemes()]
PAGES = ["http2rulez", "davies-meenan"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_load_time_is_the_same_under_all_schemes(scheme: str) -> None:
    # 11 packets are asked for at 0, so 10 to 110 are busy; one more at 205: 210; then 3 at 300.
    steps = [
        *((0, "document", 2), (0, "image", 5), (0, "stylesheet", 1), (30, "script", 3)),
        *((205, "font", 1), (300, "fetch", 2), (300, "other", 1)),
    ]
    load = replay(steps, scheme)
    assert load.page_load_ms == 320
    ticks = [row[0] // 10**7 for row in load.trace.packet_rows]
    assert ticks == [*range(1, 12), 21, 30, 31, 32]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_send_buffer_larger_than_the_page_makes_every_scheme_fifo(scheme: str) -> None:
    # Each response enters the buffer whole when it is asked for, and nothing can overtake it there.
    steps = [(0, "image", 4), (0, "document", 2), (15, "stylesheet", 1), (25, "script", 2)]
    load = replay(steps, scheme, send_buffer_kb=1000)
    assert load.trace.order == [0] * 4 + [4] * 2 + [8] + [12] * 2


@pytest.mark.parametrize("scheme", ["bucket-html", "zeroweight"])
@pytest.mark.parametrize("page", PAGES)
def test_a_large_send_buffer_takes_away_much_of_the_speedup(page: str, scheme: str) -> None:
    comparison = h3sim.compare(page, schemes=[scheme], send_buffers_kb=[0, 1000])
    unbuffered, buffered = (row.speedup_atf for row in comparison.rows)
    assert unbuffered is not None
    assert buffered is not None
    assert 1 < buffered < unbuffered / 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_davies_meenan_fits_into_a_buffer_of_1000_kb_and_becomes_fifo(scheme: str) -> None:
    # The whole page has 635 kB, so each response enters the buffer the moment it is asked for.
    load = h3sim.simulate("davies-meenan", scheme=scheme, send_buffer_kb=1000)
    assert load.trace.order == h3sim.simulate("davies-meenan", scheme="fifo").trace.order


def equal_streams(n_streams: int, n_packets: int) -> list[tuple[int, str, int]]:
    return [(0, "document" if n == 0 else "image", n_packets) for n in range(n_streams)]


def test_jitter_makes_no_stack_under_rr_with_four_streams_and_stacks_of_four_under_tcp() -> None:
    # Every fourth packet is held for 3.5 intervals. With four streams in turn it is always one of
    # the fourth stream, whose next packet leaves 4 intervals later: no stream waits for itself. In
    # one order the three packets behind a held one wait for it: of 40 packets the first three come
    # alone, then nine stacks of four, and the last, held one has none behind it.
    steps = equal_streams(4, 10)
    quic = replay(steps, "rr", reorder="4:3")
    tcp = replay(steps, "rr", reorder="4:3", transport="tcp")
    assert quic.hol.stack_histogram == {1: 40}
    assert tcp.hol.stack_histogram == {1: 4, 4: 9}


def test_jitter_makes_stacks_of_two_under_rr_with_three_streams() -> None:
    # The next packet of the held one's stream leaves 3 intervals later, and waits half of one.
    # Of 30 packets numbers 4, 8, ... 28 are held, and 7, 11, ... 27 wait for them; behind 28 its
    # stream has none (31 would be it). So 6 stacks of two and 18 single packets.
    quic = replay(equal_streams(3, 10), "rr", reorder="4:3")
    assert quic.hol.stack_histogram == {1: 18, 2: 6}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_streams", [2, 3, 4, 5, 7])
def test_under_rr_stacks_stay_at_two_with_streams_of_their_own(n_streams: int, seed: int) -> None:
    # At most 3 packets overtake a held one; with two streams or more that take turns, at most one
    # of those 3 is of its own stream. (Equal streams end together, so that none is left alone.)
    steps = equal_streams(n_streams, 30)
    quic = replay(steps, "rr", reorder="4:1-3", seed=seed)
    tcp = replay(steps, "rr", reorder="4:1-3", seed=seed, transport="tcp")
    assert max(quic.hol.stack_histogram) <= 2
    assert max(tcp.hol.stack_histogram) == 4


@pytest.mark.parametrize("seed", range(5))
def test_under_fifo_both_transports_stack_alike_where_streams_end_before_a_held_packet(
    seed: int,
) -> None:
    # A held packet makes those wait that leave within 3.5 intervals: under TCP all of them, under
    # QUIC those of its stream. These are the same if no stream ends among them, that is, if each
    # stream ends right before a held packet: 3 packets, then multiples of 4.
    steps = [(0, "document", 3), (0, "image", 20), (0, "script", 4), (0, "image", 40)]
    quic = replay(steps, "fifo", reorder="4:1-3", seed=seed)
    tcp = replay(steps, "fifo", reorder="4:1-3", seed=seed, transport="tcp")
    assert quic.trace.delivered_at_ns == tcp.trace.delivered_at_ns
    assert quic.hol.stack_histogram == tcp.hol.stack_histogram
    assert max(quic.hol.stack_histogram) == 4


def test_under_fifo_the_transports_differ_where_a_stream_ends_with_a_held_packet() -> None:
    # Packet 4, the last of stream 0, is held for 3.5 intervals, from 40 to 75. Packets 5 to 7 are
    # of stream 4: QUIC hands them over at 50, 60 and 70, TCP with packet 4. So again with packet
    # 8, the last of stream 4 (80 to 115), and one of stream 8 behind it.
    steps = [(0, "document", 4), (0, "image", 4), (0, "image", 1)]
    quic = replay(steps, "fifo", reorder="4:3")
    tcp = replay(steps, "fifo", reorder="4:3", transport="tcp")
    in_ms = [at_ns / 10**6 for at_ns in quic.trace.delivered_at_ns]
    assert in_ms == [10, 20, 30, 75, 50, 60, 70, 115, 90]
    assert quic.hol.stack_histogram == {1: 9}
    assert tcp.hol.stack_histogram == {1: 3, 2: 1, 4: 1}


@pytest.mark.parametrize("page", PAGES)
def test_on_the_shipped_pages_rr_stacks_higher_than_two_only_where_a_stream_is_alone(
    page: str,
) -> None:
    quic = h3sim.simulate(page, scheme="rr", reorder="4:1-3")
    tcp = h3sim.simulate(page, scheme="rr", reorder="4:1-3", transport="tcp")
    by_instant: dict[int, list[int]] = {}
    for number, at_ns in enumerate(quic.trace.delivered_at_ns):
        by_instant.setdefault(at_ns, []).append(number)  # type: ignore[arg-type]
    order = quic.trace.order
    high = [numbers for numbers in by_instant.values() if len(numbers) > 2]
    # rr sends the same stream twice in a row only where no other has data.
    assert all(any(b == a + 1 and order[a] == order[b] for a, b in pairwise(n)) for n in high)
    # Marx 2019, Fig. 13: stacks of four are frequent in one order.
    assert len(high) < len(by_instant) / 100
    assert tcp.hol.stack_histogram[4] > len(tcp.trace.packet_rows) / 20
    assert max(tcp.hol.stack_histogram) == 4


def test_on_the_shipped_page_fifo_hands_over_alike_but_for_the_first_packets_of_a_stream() -> None:
    # At most three packets are behind a held one of another stream: the first three of a stream.
    quic = h3sim.simulate("davies-meenan", scheme="fifo", reorder="4:1-3", seed=2)
    tcp = h3sim.simulate("davies-meenan", scheme="fifo", reorder="4:1-3", seed=2, transport="tcp")
    assert quic.trace.order == tcp.trace.order
    sent = Counter[int]()
    differ = set()
    for stream_id, *times in zip(
        quic.trace.order, quic.trace.delivered_at_ns, tcp.trace.delivered_at_ns, strict=True
    ):
        sent[stream_id] += 1
        if times[0] != times[1]:
            differ.add(sent[stream_id])
    assert differ
    assert differ <= {1, 2, 3}
