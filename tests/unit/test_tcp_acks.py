"""When TCP acknowledges, and what an acknowledgement says."""

from __future__ import annotations

from typing import Any

from h3sim.transport.tcp import Segment, TcpSettings
from h3sim.transport.tcp.records import Reassembly, sack_option_bytes
from h3sim.values.units import ms
from tests.tcp_pair import CLIENT, MSS, SERVER, FixedWindow, Pair, body_bytes, drops


def load(n_segments: int, *, settings: Any = None, **path: Any) -> Any:
    pair = Pair(settings=settings, server_controller=FixedWindow(100 * MSS), **path)
    pair.put(SERVER, 0, body_bytes(n_segments))
    return pair.run()


def reports(pair: Any) -> list[Any]:
    return [(sent.at_ms, sent.segment.ack // MSS, blocks(sent.segment)) for sent in pair.acks()]


def blocks(segment: Any) -> list[Any]:
    return [(start // MSS, stop // MSS) for start, stop in segment.sack]


def apart(role: Any, index: Any, segment: Any) -> Any:
    """Segments arrive 10 ms apart."""
    return 10 * (index or 0)


def test_every_second_segment_is_acknowledged_at_once_and_a_lone_one_after_40_ms() -> None:
    assert reports(load(5, delay_ms=apart)) == [(60, 2, []), (80, 4, []), (130, 5, [])]


def test_the_delay_begins_with_the_first_segment_that_waits() -> None:
    settings = TcpSettings(ack_every=10, max_ack_delay_ns=ms(25))
    assert reports(load(5, settings=settings, delay_ms=apart)) == [(75, 3, []), (105, 5, [])]


def test_each_segment_can_be_acknowledged() -> None:
    pair = load(3, settings=TcpSettings(ack_every=1), delay_ms=apart)
    assert reports(pair) == [(50, 1, []), (60, 2, []), (70, 3, [])]


def test_a_hole_is_reported_with_each_segment_and_its_filling_at_once() -> None:
    def late(role: Any, index: Any, segment: Any) -> Any:
        return {0: 0, 1: 35, 2: 20, 3: 30, 4: 60}.get(index, 0)

    assert reports(load(5, delay_ms=late)) == [
        (70, 1, [(2, 3)]),
        (80, 1, [(2, 4)]),
        (85, 4, []),
        (150, 5, []),
    ]


def test_the_newest_of_at_most_three_blocks_comes_first() -> None:
    pair = load(12, delay_ms=apart, drop=drops(1, 3, 5, 7, 9))
    reported = [row[2] for row in reports(pair) if row[0] <= 160]
    assert reported == [
        [(2, 3)],
        [(4, 5), (2, 3)],
        [(6, 7), (4, 5), (2, 3)],
        [(8, 9), (6, 7), (4, 5)],
        [(10, 11), (8, 9), (6, 7)],
        [(10, 12), (8, 9), (6, 7)],
    ]


def test_a_block_that_closes_a_gap_between_others_takes_them_in() -> None:
    early = Reassembly(every=2, max_delay_ns=40)
    for seq in (20, 40, 10, 30):
        early.on_segment(Segment(seq, 0, seq, 10, 0, None, 0), 0)
    assert early.take_blocks() == ((10, 50),)
    assert early.on_segment(Segment(0, 0, 0, 10, 0, None, 0), 0) == []
    assert (early.next_seq, early.take_blocks()) == (50, ())


def test_a_block_that_grows_at_its_end_is_the_newest() -> None:
    """RFC 2018 § 4: the first block holds the segment that brought the ACK about."""
    early = Reassembly(every=2, max_delay_ns=40)
    for seq, length in ((10, 10), (30, 10), (20, 5)):
        early.on_segment(Segment(seq, 0, seq, length, 0, None, 0), 0)
    assert early.take_blocks() == ((10, 25), (30, 40))


def test_what_comes_again_is_reported_first_and_once() -> None:
    received = Reassembly(every=2, max_delay_ns=40)
    for seq in (0, 20, 40, 60):
        received.on_segment(Segment(seq, 0, seq, 10, 0, None, 0), 0)
    received.on_segment(Segment(7, 0, 0, 10, 0, None, 0), 5)
    assert received.due_at_ns == 5
    assert received.take_blocks() == ((0, 10), (60, 70), (40, 50))
    assert received.take_blocks() == ((60, 70), (40, 50), (20, 30))
    received.on_segment(Segment(8, 0, 40, 10, 0, None, 0), 6)
    # It lies in a span above the hole, which comes next (RFC 2883 § 4, item 4), once more, too.
    assert received.take_blocks() == ((40, 50), (40, 50), (60, 70))
    assert received.take_blocks() == ((40, 50), (60, 70), (20, 30))


def test_data_carries_the_acknowledgement() -> None:
    pair = Pair(answer={0: 500})
    pair.put(CLIENT, 0, 100)
    pair.run()
    assert pair.acks(SERVER) == []
    assert pair.data()[0].segment.ack == pair.data(CLIENT)[0].segment.length


def test_what_is_selectively_acknowledged_goes_in_a_segment_of_its_own() -> None:
    pair = Pair(server_controller=FixedWindow(10 * MSS), drop=drops(0))
    pair.put(SERVER, 0, body_bytes(2))
    pair.run(until_ms=49)
    # The client has something to say itself when the hole becomes known.
    pair.sources[CLIENT].put(4, body_bytes(1))
    pair.run(until_ms=50, flush=False)
    client = [(sent.at_ms, sent.segment.length, blocks(sent.segment)) for sent in pair.sent[2:]]
    assert client == [(50, 0, [(1, 2)]), (50, MSS, [])]


def test_an_ack_is_as_large_as_its_header() -> None:
    sizes = {
        len(sent.segment.sack): sent.segment.size_bytes
        for sent in load(12, delay_ms=apart, drop=drops(1, 3, 5)).acks()
    }
    assert sizes == {0: 32, 1: 44, 2: 52, 3: 60}
    assert [sack_option_bytes(n_blocks) for n_blocks in range(4)] == [0, 12, 20, 28]


def test_of_many_spans_the_32_highest_are_reported_to_a_log() -> None:
    received = Reassembly(every=2, max_delay_ns=0)
    for number in range(0, 66, 2):
        received.on_segment(Segment(number, 0, 10 * number, 10, 0, None, 0), 0)
    assert received.spans() == tuple((number, number) for number in range(64, 0, -2))


def test_it_is_known_which_transmissions_an_ack_is_for() -> None:
    pair = load(10, drop=drops(4))
    client = pair.ends[CLIENT]
    last = pair.acks()[-1].segment
    # Number 4 was lost; what it held came with number 10.
    assert client.ack_ranges(last) == ((5, 10), (0, 3))


def test_a_delayed_ack_is_measured_from_the_first_of_its_segments() -> None:
    # They leave 10 ms apart; the second, which brings about the ACK, arrives at 60 ms.
    pair = load(2, settings=TcpSettings(pacing_gain=0.1, pacing_burst_segments=1))
    assert [sent.at_ms for sent in pair.data()] == [0, 10]
    assert reports(pair) == [(60, 2, [])]
    assert pair.ends[SERVER].recovery.rtt.latest_rtt_ns == ms(110)


def test_an_older_segment_that_comes_late_is_not_what_an_ack_is_measured_by() -> None:
    client = Pair().ends[CLIENT]
    client.on_packet(Segment(1, ms(30), 0, 10, 0, None, 1), ms(50))
    client.on_packet(Segment(0, ms(10), 0, 10, 0, None, 1), ms(60))
    assert [ack.echo_ns for ack in client.packets_to_send(ms(60))] == [ms(30)]


def test_nothing_is_due_once_all_is_acknowledged() -> None:
    pair = load(7)
    assert pair.ends[CLIENT].timer_at_ns() is None
    assert pair.ends[SERVER].timer_at_ns() is None
