"""Head-of-line blocking by hand: exact, as Sander 2022 counts it, and as stacks."""

from __future__ import annotations

import pytest

from h3sim.metrics import (
    Frame,
    SanderCount,
    hol_blocking,
    sander_count,
    stack_histogram,
    stacks,
    timings,
)
from h3sim.metrics.progress import Timing
from h3sim.trace import (
    Delivery,
    PacketRows,
    Request,
    Trace,
    delivered_in_one_order,
    with_delivery,
)
from tests.helpers import finished_ms, replay

A, B, C = 0, 4, 8


def frames(*numbers: tuple[int, int] | None) -> list[list[Frame] | None]:
    """Return packets of one frame of 1000 bytes each: (stream, place in it), or None if lost."""
    return [None if n is None else [Frame(n[0], n[1] * 1000, 1000)] for n in numbers]


@pytest.mark.parametrize(
    ("n_streams", "lost", "expected"),
    # Ten packets of 1000 bytes, one of them lost and sent again at the end.
    [
        # One stream: the seven behind the hole wait, in any order.
        (1, 2, SanderCount(7000, 7000)),
        # Two in turn: packets 4, 6 and 8 of the same stream wait. In one order, those of the other
        # are withheld from packet 7 on, once a frame behind the hole has been seen (at 4) and the
        # frame lies beyond what its stream had then (which 5 continues): 7 and 9.
        (2, 2, SanderCount(3000, 5000)),
        # Five in turn: packet 7 waits, and no stream has a frame far enough behind it.
        (5, 2, SanderCount(1000, 1000)),
    ],
)
def test_the_count_of_the_testbed_is_met(n_streams: int, lost: int, expected: SanderCount) -> None:
    sent = [(n % n_streams, n // n_streams) for n in range(10)]
    arrived = [None if n == lost else packet for n, packet in enumerate(sent)]
    assert sander_count(frames(*arrived, sent[lost])) == expected


def test_empty_responses_that_are_lost_hold_up_one_order_until_they_come_again() -> None:
    # (sent, arrived, stream, offset, bytes, number): A and B end without a byte, and both are lost.
    rows = [
        *((0, None, A, 0, 0, 0), (1, None, B, 0, 0, 1), (2, 12, C, 0, 1000, 2)),
        *((20, 30, A, 0, 0, 3), (21, 31, B, 0, 0, 4), (22, 32, C, 1000, 500, 5)),
    ]
    table = with_delivery(rows, Delivery.STREAM)
    assert table.columns.delivered_at_ns == [None, None, 12, 30, 31, 32]
    times = delivered_in_one_order(table, table.columns.delivered_at_ns)
    assert times == [None, None, 31, 30, 31, 32]


def test_a_duplicate_counts_no_byte_twice() -> None:
    # A1 is lost. A2 waits: 1000 in both. Its duplicate adds nothing. When A2 was seen, B had ended
    # at 1000: B1 begins there and passes, B2 begins beyond it: 1000 for the one order. A1, sent
    # again, fills the head of its stream and waits for nothing; B3 comes when A blocks no more.
    packets = frames((A, 0), (B, 0), None, (A, 2), (A, 2), (B, 1), (B, 2), (A, 1), (B, 3))
    assert sander_count(packets) == SanderCount(1000, 2000)


def test_a_retransmission_that_fills_a_later_hole_waits_again() -> None:
    # A1 and A3 are lost. A2 and A4 wait; A3, sent again, still lies behind the hole at A1: its
    # bytes count too. A1 fills the head.
    packets = frames((A, 0), None, (A, 2), None, (A, 4), (A, 3), (A, 1))
    assert sander_count(packets) == SanderCount(3000, 3000)


def test_a_stream_that_is_not_known_yet_remembers_nothing() -> None:
    # B's first frame comes after A2 was seen to wait, so none of B's frames counts.
    packets = frames((A, 0), None, (A, 2), (B, 0), (B, 1), (A, 1))
    assert sander_count(packets) == SanderCount(1000, 1000)


def test_what_a_stream_had_when_another_was_seen_to_wait_is_remembered() -> None:
    # When A2 was seen, B had ended at 1000: B1 begins there and passes. B2 is lost, B3 waits. B2,
    # sent again, fills its head, and lies beyond 1000: in one order it waits for A1. B4 waits for
    # nothing.
    lost_and_sent_again = [(B, 3), (B, 2), (A, 1), (B, 4)]
    packets = frames((A, 0), (B, 0), None, (A, 2), (B, 1), None, *lost_and_sent_again)
    assert sander_count(packets) == SanderCount(2000, 3000)


def test_a_stream_that_came_late_does_not_make_others_forget() -> None:
    # A2 was seen to wait before B came: B remembers nothing of it. C had ended at 1000 then, so C1
    # passes and C2 waits.
    packets = frames((A, 0), (C, 0), None, (A, 2), (B, 0), (B, 1), (C, 1), (C, 2), (A, 1))
    assert sander_count(packets) == SanderCount(1000, 2000)


def test_a_hole_that_was_filled_withholds_nobody_though_an_older_one_is_there() -> None:
    # A5 was seen to wait before B came, A2 after B0. A1 fills the hole before A2: B1 and B2 pass.
    packets = frames((A, 0), (A, 5), (B, 0), (A, 2), (A, 1), (B, 1), (B, 2))
    assert sander_count(packets) == SanderCount(2000, 2000)


def test_who_was_once_blocked_itself_waits_for_another_that_is() -> None:
    # A2 waits, and A1 lets it go. When B2 was seen to wait, A had ended at 3000: A3 begins there
    # and passes, A4 begins beyond it.
    packets = frames((A, 0), (A, 2), (A, 1), (B, 0), (B, 2), (A, 3), (A, 4))
    assert sander_count(packets) == SanderCount(2000, 3000)


def test_time_to_completion_is_from_the_request_to_the_last_byte() -> None:
    timing = Timing(0, 0, 5_000_000, 7_000_000, 12_500_000)
    assert timing.completion_ms == 7.5


def test_a_packet_may_hold_frames_of_several_streams_and_empty_ones() -> None:
    # The second packet is lost. A2 waits and B1 begins where B ended then.
    packets = [
        [Frame(A, 0, 1000), Frame(B, 0, 1000)],
        None,
        [Frame(A, 2000, 1000), Frame(B, 1000, 1000), Frame(B, 2000, 0)],
        [Frame(B, 2000, 1000), Frame(A, 1000, 1000)],
    ]
    assert sander_count(packets) == SanderCount(1000, 2000)


def test_reordering_alone_does_not_show_in_the_count() -> None:
    load = replay([(0, "document", 10)], "fifo", reorder="4:3")
    assert load.hol.stream_bytes > 0
    assert (load.hol.sander_stream_bytes, load.hol.sander_connection_bytes) == (0, 0)


def test_exact_blocking_on_two_streams_with_a_held_packet() -> None:
    # rr: 0 4 0 4 0 4 at 10 ... 60. The fourth packet (stream 4) is held for 25, from 40 to 65.
    # Within streams: the sixth (stream 4) arrives at 60 and waits 5. In one order: the fifth
    # arrives at 50 and waits 15, the sixth waits 5.
    steps = [(0, "document", 3), (0, "image", 3)]
    quic = replay(steps, "rr", reorder="4:2")
    tcp = replay(steps, "rr", reorder="4:2", transport="tcp")
    assert [at_ns / 1e6 for at_ns in quic.trace.delivered_at_ns] == [10, 20, 30, 65, 50, 65]
    assert [at_ns / 1e6 for at_ns in tcp.trace.delivered_at_ns] == [10, 20, 30, 65, 65, 65]
    for load in (quic, tcp):
        # Both views are given for either transport.
        assert (load.hol.stream_bytes, load.hol.stream_delay_ms) == (1400, 5)
        assert (load.hol.connection_bytes, load.hol.connection_delay_ms) == (2800, 20)
    assert quic.hol.stack_histogram == {1: 4, 2: 1}
    assert tcp.hol.stack_histogram == {1: 3, 3: 1}
    assert finished_ms(quic) == {0: 50, 4: 65}
    assert finished_ms(tcp) == {0: 65, 4: 65}


def test_without_jitter_nothing_waits() -> None:
    load = replay([(0, "document", 5), (0, "image", 5)], "rr", transport="tcp")
    assert (load.hol.stream_bytes, load.hol.connection_bytes) == (0, 0)
    assert (load.hol.stream_delay_ms, load.hol.connection_delay_ms) == (0, 0)
    assert load.hol.stack_histogram == {1: 10}


def test_a_packet_of_several_streams_is_one_packet_of_its_stack() -> None:
    # Packets 0 and 1 carry both streams; packet 1 overtakes packet 0 on its way.
    numbered = [(1, 30, A, 0, 10, 0), (1, 30, B, 0, 10, 0), (2, 20, A, 10, 10, 1)]
    numbered += [(2, 20, B, 10, 10, 1), (3, 40, A, 20, 10, 2), (3, 40, B, 20, 10, 2)]
    requests = tuple(Request(stream_id, n, 0, 0, 0) for n, stream_id in enumerate((A, B)))
    rows = with_delivery(numbered, Delivery.STREAM)
    trace = Trace(delivery=Delivery.STREAM, requests=requests, signals=(), packet_rows=rows)
    assert stacks(trace) == {1: 1, 2: 1}


def made_trace(*rows: tuple[int, int | None, int, int, int]) -> Trace:
    """Return a trace of packets (sent, arrived, stream, offset, length), as of a real stack."""
    requests = tuple(
        Request(stream_id, position, 0, 0, 0)
        for position, stream_id in enumerate(sorted({row[2] for row in rows}))
    )
    numbered = [(*row, number) for number, row in enumerate(rows)]
    delivered = with_delivery(numbered, Delivery.STREAM)
    return Trace(delivery=Delivery.STREAM, requests=requests, signals=(), packet_rows=delivered)


def test_a_retransmission_delivers_what_waits_behind_it() -> None:
    # The second packet was lost (it has no row) and is sent again as the last.
    trace = made_trace((1, 11, A, 0, 10), (3, 13, A, 20, 10), (4, 14, B, 0, 5), (5, 15, A, 10, 10))
    assert trace.delivered_at_ns == [11, 15, 14, 15]
    blocked = hol_blocking(trace)
    assert (blocked.stream_bytes, blocked.stream_delay_ns) == (10, 2)
    rows = [(t.first_byte_at_ns, t.finished_at_ns) for t in timings(trace)]
    assert rows == [(11, 15), (14, 14)]


def test_in_one_order_all_wait_for_what_was_sent_before() -> None:
    # B was sent behind the lost packet of A, whose bytes come last; the row lost has no time.
    trace = made_trace(
        (1, 11, A, 0, 10), (2, None, A, 10, 10), (3, 13, B, 0, 5), (4, 15, A, 10, 10)
    )
    assert delivered_in_one_order(trace.packet_rows, trace.delivered_at_ns) == [11, None, 15, 15]
    blocked = hol_blocking(trace)
    assert (blocked.connection_bytes, blocked.connection_delay_ns) == (5, 2)


def test_over_tcp_the_wait_for_a_record_is_not_blocking() -> None:
    # Both arrive in order; the first is delivered with the second, which ends their TLS record.
    rows = ((1, 11, A, 0, 10, 0, 12), (2, 12, A, 10, 10, 1, 12))
    trace = Trace(
        delivery=Delivery.CONNECTION, requests=(), signals=(), packet_rows=PacketRows.of(rows)
    )
    assert hol_blocking(trace) == (0, 0, 0, 0)


def test_a_late_copy_does_not_delay_what_was_complete() -> None:
    trace = made_trace((1, 11, A, 0, 10), (2, 12, A, 10, 10), (3, 99, A, 10, 10))
    assert [t.finished_at_ns for t in timings(trace)] == [12]


def test_streams_are_put_together_in_the_order_of_arrival() -> None:
    # Sent 0, 10, 20 (in order), but the second offset is sent last, and the first arrives last.
    trace = made_trace((1, 30, A, 0, 10), (2, 12, A, 20, 10), (3, 13, A, 10, 10))
    assert trace.delivered_at_ns == [30, 30, 30]


def test_a_copy_of_what_was_there_has_no_time() -> None:
    # The third packet, sent again needlessly, overtakes the first; the first brings nothing new.
    trace = made_trace((1, 14, A, 0, 10), (2, 20, A, 10, 10), (3, 13, A, 0, 10))
    assert trace.delivered_at_ns == [None, 20, 13]


def test_stacks_are_packets_of_one_instant() -> None:
    assert stack_histogram([50, 10, 20, 50, 50]) == {1: 2, 3: 1}
    assert stack_histogram([]) == {}


def test_a_packet_that_brought_nothing_new_waited_for_nothing() -> None:
    # Bytes 9 to 17 come at 30, and again at 40; 18 to 26 came at 20, and waited for them.
    rows = [(0, 10, 0, 0, 9, 0), (1, 20, 0, 18, 9, 1), (2, 30, 0, 9, 9, 2), (3, 40, 0, 9, 9, 3)]
    for delivery in Delivery:
        trace = Trace(
            delivery=delivery,
            requests=(Request(0, 0, 0, 0, 0),),
            signals=(),
            packet_rows=with_delivery(rows, delivery),
        )
        assert hol_blocking(trace) == (9, 10, 9, 10)
