"""What a TCP sender and receiver keep count of, part by part, by hand from the RFCs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.transport.delivery_rate import DeliverySampler
from h3sim.transport.rtt import RttEstimator
from h3sim.transport.tcp import TcpSettings
from h3sim.transport.tcp.loss_detection import Scoreboard
from h3sim.transport.tcp.records import AutotunedSendStream, Reassembly, Segment, SentSegment
from h3sim.transport.tcp.recovery import (
    Episode,
    ProportionalRateReduction,
    Recovery,
    RetransmissionTimer,
    WindowUsage,
    _find_duplicate,
)
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow
from tests.unit.test_quic_windows import Endless
from tests.unit.test_tcp_detectors import Flight
from tests.unit.test_tcp_recovery import Halving

if TYPE_CHECKING:
    from h3sim.transport.tcp.recovery import TailLossProbe

SIZE = 88


class Reporting(Halving):
    """Notes what was in flight by what it is told of deliveries and losses."""

    def __init__(self, window_bytes: int) -> None:
        super().__init__(window_bytes)
        self.reported: list[tuple[str, int, bool]] = []

    def on_acked(self, packets: Any, now_ns: int, rtt: Any, in_flight: Any, is_under: bool) -> None:
        super().on_acked(packets, now_ns, rtt, in_flight, is_under)
        self.reported.append(("acked", in_flight, is_under))

    def on_lost(self, packets: Any, now_ns: int, in_flight: Any, next_number: Any) -> None:
        super().on_lost(packets, now_ns, in_flight, next_number)
        self.reported.append(("lost", in_flight, False))


def sending(n_segments: int, settings: TcpSettings) -> tuple[Recovery, Reporting]:
    """Return a sender with segments 0, 1, ... of 88 bytes in flight, sent 1 ms apart."""
    window = Reporting(100 * SIZE)
    recovery = Recovery(settings, window)
    recovery.on_rtt(ms(100))
    for n in range(n_segments):
        recovery.on_sent(SentSegment(n, ms(n), SIZE * n, SIZE, [], []))
    return recovery, window


def ack(recovery: Recovery, number: int, *spans: tuple[int, int], at_ms: float = 100) -> None:
    blocks = tuple((SIZE * start, SIZE * stop) for start, stop in spans)
    recovery.on_ack(Segment(0, ms(at_ms), 0, 0, SIZE * number, 0, 0, blocks), ms(at_ms))


def test_a_controller_hears_what_was_in_flight_without_what_is_lost_now() -> None:
    # 5 were out; 3 arrive above the first, which is lost: with the loss 2 are out, and with the
    # deliveries 4 were, since what is lost does not count.
    recovery, window = sending(5, TcpSettings(mss_bytes=SIZE))
    ack(recovery, 0, (1, 4))
    assert window.reported == [("lost", 2 * SIZE, False), ("acked", 4 * SIZE, True)]
    assert recovery.board.pipe_bytes == SIZE


def test_a_reduction_begins_with_what_was_not_known_to_have_arrived() -> None:
    """RFC 9937 § 6: RecoverFS is SND.NXT - SND.UNA without what was SACKed before."""
    recovery, _ = sending(8, TcpSettings(mss_bytes=SIZE))
    ack(recovery, 1)
    ack(recovery, 1, (6, 7))
    assert not recovery._prr.is_active
    ack(recovery, 1, (6, 7), (3, 5))
    # 7 are not acknowledged, one was SACKed before.
    assert recovery._prr._flight_bytes == 6 * SIZE
    assert recovery._prr._target_bytes == 50 * SIZE
    assert recovery.episode.point == 8 * SIZE


def test_without_a_smaller_window_nothing_is_reduced() -> None:
    board, window = Scoreboard(), FixedWindow(1000)
    for has_prr, ssthresh, expected in ((True, None, False), (False, 9, False), (True, 9, True)):
        window.ssthresh = ssthresh
        episode = Episode(TcpSettings(has_prr=has_prr), window, board)
        episode.begin()
        episode.reduce([])
        assert episode.prr.is_active is expected
        assert (episode.may_exceed_window, episode.holds_window) == (True, True)
        episode.time_out()
        assert (episode.prr.is_active, episode.may_exceed_window) == (False, True)
        assert not episode.holds_window
        episode.end()
        assert (episode.point, episode.is_timed_out, episode.may_exceed_window) == (
            *(None, False, False),
        )


def test_a_timeout_by_time_takes_the_first_and_what_is_old_enough() -> None:
    """RFC 8985 § 6.3: RACK_mark_losses_on_RTO, with a round trip of 100 ms."""
    flight = Flight(5, by_time=True)
    flight.ack(0, (2, 3), now_ms=102)
    lost = flight.detector.lost_on_timeout(ms(101))
    assert [segment.seq // 10 for segment in lost] == [0, 1]
    assert flight.detector.due_at_ns is None
    assert [segment.seq // 10 for segment in flight.detector.lost_on_timeout(ms(200))] == [3, 4]


def test_a_timeout_by_time_before_anything_is_old_takes_the_first_alone() -> None:
    flight = Flight(5, by_time=True)
    flight.ack(0, (2, 3), now_ms=102)
    assert [segment.seq // 10 for segment in flight.detector.lost_on_timeout(ms(99))] == [0]


def test_a_tail_is_rescued_when_its_ack_is_overdue_and_not_before() -> None:
    # 9/8 of 100 ms after it was sent, at 2 ms.
    flight = Flight(3, mss=10)
    assert flight.detector.next_speculative(ms(114.5) - 1) is None
    segment = flight.detector.next_speculative(ms(114.5))
    assert segment is not None
    assert segment.seq == 20


@pytest.mark.parametrize(
    ("number", "blocks", "duplicate"),
    [
        (8, ((5, 8),), (5, 8)),
        (7, ((5, 8),), None),
        (2, ((5, 8), (3, 9)), (5, 8)),
        (2, ((5, 8), (5, 8)), (5, 8)),
        (2, ((5, 8), (6, 9)), None),
        (2, ((5, 8), (3, 7)), None),
        (2, ((5, 8), (9, 12), (3, 9)), None),
    ],
)
def test_a_first_block_reports_a_duplicate_below_the_ack_or_within_the_second(
    number: int, blocks: Any, duplicate: Any
) -> None:
    """RFC 2883 § 4."""
    assert _find_duplicate(number, blocks) == duplicate


class TestReassembly:
    """RFC 5681 § 4.2, RFC 9293 § 3.8.6.3: every second segment, and none later than 40 ms."""

    def test_the_second_segment_is_acknowledged_at_once(self) -> None:
        received = Reassembly(every=2, max_delay_ns=ms(40))
        assert (received.due_at_ns, received.wants_sack) == (None, False)
        received.on_segment(Segment(0, 0, 0, 10, 0, None, 0), ms(5))
        assert received.due_at_ns == ms(45)
        received.on_segment(Segment(1, 0, 10, 10, 0, None, 0), ms(6))
        assert received.due_at_ns == ms(6)
        received.on_acked()
        assert [received.last_ack, received.due_at_ns] == [20, None]
        received.on_segment(Segment(2, 0, 20, 10, 0, None, 0), ms(7))
        assert received.due_at_ns == ms(47)

    def test_spans_that_meet_are_one_and_the_one_that_grew_is_reported_first(self) -> None:
        received = Reassembly(every=2, max_delay_ns=ms(40))
        for number, seq in enumerate((50, 30, 10, 40, 20)):
            received.on_segment(Segment(number, 0, seq, 10, 0, None, 0), ms(1))
            assert received.due_at_ns == ms(1)
        assert received.take_blocks() == ((10, 60),)
        received.on_segment(Segment(5, 0, 70, 10, 0, None, 0), ms(2))
        assert received.take_blocks() == ((70, 80), (10, 60))
        # What comes again is told once, before the span that holds it (RFC 2883 § 4).
        received.on_segment(Segment(6, 0, 30, 10, 0, None, 0), ms(3))
        assert received.take_blocks() == ((30, 40), (10, 60), (70, 80))
        assert received.take_blocks() == ((10, 60), (70, 80))
        # The hole is filled: an ACK is due at once (RFC 5681 § 4.2), and 60 is next.
        received.on_segment(Segment(7, 0, 0, 10, 0, None, 0), ms(4))
        assert (received.next_seq, received.due_at_ns) == (60, ms(4))
        assert received.take_blocks() == ((70, 80),)
        received.on_segment(Segment(8, 0, 60, 10, 0, None, 0), ms(5))
        assert (received.next_seq, received.take_blocks()) == (80, ())
        received.on_segment(Segment(9, 0, 0, 10, 0, None, 0), ms(6))
        assert received.take_blocks() == ((0, 10),)

    def test_numbers_that_came_are_reported_from_the_highest_on(self) -> None:
        received = Reassembly(every=2, max_delay_ns=0)
        for number in (0, 1, 4, 2, 7):
            received.on_segment(Segment(number, 0, 10 * number, 10, 0, None, 0), 0)
        assert received.spans() == ((7, 7), (4, 4), (0, 2))


class TestProbes:
    """RFC 8985 § 7."""

    def probe(self) -> TailLossProbe:
        recovery, _ = sending(1, TcpSettings.linux())
        assert recovery.probe is not None
        return recovery.probe

    def test_a_probe_of_new_data_makes_up_for_nothing(self) -> None:
        probe = self.probe()
        probe.on_sent(20, None)
        assert probe.on_ack(20, None) is None
        assert probe.end_seq is None

    @pytest.mark.parametrize(
        ("acks", "expected"),
        [
            # The probe or what it repeats: the next says. Beyond it, without a duplicate: a loss.
            ([(10, None)], [False]),
            ([(20, None)], [False]),
            ([(20, None), (30, None)], [False, True]),
            ([(30, None), (40, None)], [True, False]),
            # It came twice: nothing was lost.
            ([(20, (10, 20)), (30, None)], [False, False]),
            ([(30, (10, 20))], [False]),
            # Something else came twice.
            ([(20, (0, 10)), (30, None)], [False, True]),
            ([(30, (0, 10))], [True]),
        ],
    )
    def test_a_probe_that_repeats_makes_up_for_a_loss_unless_it_came_twice(
        self, acks: Any, expected: list[bool]
    ) -> None:
        """RFC 8985 § 7.4.2."""
        probe = self.probe()
        segment = SentSegment(0, 0, 10, 10, [], [])
        probe.on_sent(20, segment)
        assert [probe.on_ack(*each) is segment for each in acks] == expected

    def test_no_probe_is_due_where_something_was_selectively_acknowledged(self) -> None:
        recovery, _ = sending(3, TcpSettings.linux())
        assert recovery.probe is not None
        # 2 * 100 ms after the last.
        assert recovery.probe.due_at_ns == ms(2 + 200)
        ack(recovery, 0, (2, 3), at_ms=101)
        assert recovery.probe.due_at_ns is None

    def test_a_lone_segment_waits_for_a_late_ack_too_but_not_beyond_the_timeout(self) -> None:
        recovery, _ = sending(1, TcpSettings.linux())
        assert recovery.probe is not None
        # 2 * 100 + 200 ms is 400; the timeout is 100 + 200 ms.
        assert recovery.probe.due_at_ns == recovery._timer.due_at_ns == ms(300)
        ack(recovery, 1, at_ms=100)
        assert recovery.probe.due_at_ns is None

    def test_before_a_sample_a_probe_is_due_after_a_second(self) -> None:
        recovery = Recovery(TcpSettings.linux(), FixedWindow(1000))
        recovery.on_sent(SentSegment(0, ms(5), 0, 10, [], []))
        assert recovery.probe is not None
        assert recovery.probe.due_at_ns == ms(1005)

    def test_one_probe_at_a_time(self) -> None:
        recovery, _ = sending(2, TcpSettings.linux())
        assert recovery.probe is not None
        recovery.on_timer(recovery.probe.due_at_ns or 0)
        assert recovery.probe.is_due
        recovery.probe.arm(ms(300))
        assert recovery.probe.due_at_ns is None
        recovery.probe.on_sent(2 * SIZE, None)
        recovery.probe.arm(ms(300))
        assert (recovery.probe.due_at_ns, recovery.probe.is_due) == (None, False)
        recovery.probe.forget()
        recovery.probe.arm(ms(300))
        assert recovery.probe.due_at_ns == ms(300 + 200)


def rtt_of(*samples_ms: float) -> RttEstimator:
    rtt = RttEstimator(initial_ns=ms(1000))
    for sample_ms in samples_ms:
        rtt.on_sample(ms(sample_ms))
    return rtt


@pytest.mark.parametrize(
    ("settings", "samples_ms", "expected_ms"),
    [
        # 100 + 4 * 50, but a second at least; by Linux's settings 100 + max(200, 200).
        ({}, [100], 1000),
        ({"min_rto_ns": 0}, [100], 300),
        ({"min_rto_ns": 0, "rto_granularity_ns": ms(300)}, [100], 400),
        ({"min_rto_ns": 0}, [900], 2700),
        ({"min_rto_ns": 0, "max_rto_ns": ms(2600)}, [900], 2600),
    ],
)
def test_the_timeout_is_the_round_trip_and_four_times_its_variation_within_limits(
    settings: Any, samples_ms: Any, expected_ms: float
) -> None:
    """RFC 6298 §§ 2.2-2.5."""
    timer = RetransmissionTimer(TcpSettings(**settings))
    timer.on_rtt(rtt_of(*samples_ms))
    timer.start(ms(7))
    assert timer.due_at_ns == ms(7 + expected_ms)
    timer.stop()
    assert timer.due_at_ns is None


def test_a_timeout_that_runs_out_is_doubled_to_its_largest() -> None:
    """RFC 6298 §§ 5.5, 2.5."""
    timer = RetransmissionTimer(TcpSettings(max_rto_ns=ms(3000)))
    due = []
    for _ in range(3):
        timer.back_off(0)
        due.append(timer.due_at_ns)
    assert due == [ms(2000), ms(3000), ms(3000)]


def test_the_first_segment_begins_the_samples_of_delivery() -> None:
    """draft-ietf-ccwg-bbr-06 § 4.1.2."""
    sampler = DeliverySampler()
    first, second, third = (SentSegment(n, ms(5 + n), 10 * n, 10, [], []) for n in range(3))
    sampler.on_sent(first, 10)
    assert (first.first_sent_at_ns, first.delivered_at_ns) == (ms(5), ms(5))
    assert (first.delivered_bytes, first.is_app_limited) == (0, False)
    sampler.on_sent(second, 20)
    assert (second.first_sent_at_ns, second.delivered_at_ns) == (ms(5), ms(5))
    sampler.on_app_limited(20)
    sampler.on_sent(third, 30)
    assert third.is_app_limited
    sampler.on_delivered(20, second, ms(100))
    later = SentSegment(3, ms(101), 30, 10, [], [])
    sampler.on_sent(later, 20)
    # Second was the last that was sent of what came. "C.delivered > C.app_limited" ends the limit.
    assert (later.first_sent_at_ns, later.delivered_at_ns) == (ms(6), ms(100))
    assert (later.delivered_bytes, later.is_app_limited) == (20, True)
    sampler.on_delivered(10, third, ms(102))
    last = SentSegment(4, ms(103), 40, 10, [], [])
    sampler.on_sent(last, 10)
    assert not last.is_app_limited


def test_slow_start_may_go_on_up_to_twice_what_was_out_of_a_window_of_data() -> None:
    """Linux: tcp_is_cwnd_limited and tcp_cwnd_validate."""
    board, window = Scoreboard(), FixedWindow(0)
    usage = WindowUsage(board, window, 10)
    for n in range(3):
        board.add(SentSegment(n, 0, 10 * n, 10, [], []))
        usage.on_sent()
    # 3 were out: below 60 bytes it may grow, and only in slow start.
    for congestion_window, ssthresh, expected in (
        *((59, None, True), (60, None, False), (59, 60, True)),
        *((59, 59, False), (59, 58, False)),
    ):
        window.congestion_window, window.ssthresh = congestion_window, ssthresh
        assert usage.may_double() is expected
    # Within the window of data of the third fewer do not count, and as many do not prolong it:
    # it ends when the 30 bytes are acknowledged that were sent as the third left.
    window.ssthresh = None
    board.take_acked(10)
    board.add(SentSegment(3, 0, 30, 10, [], []))
    usage.on_sent()
    board.take_acked(20)
    assert usage.may_double()
    board.take_acked(30)
    board.add(SentSegment(4, 0, 40, 10, [], []))
    usage.on_sent()
    # 2 are out, and 59 is not below 40.
    assert not usage.may_double()


def test_a_reduction_is_rounded_up_to_full_segments() -> None:
    """RFC 9937 § 6.2: 70 for 100; 18 for 25 are two segments of 10."""
    prr = ProportionalRateReduction(mss_bytes=10)
    prr.begin(target_bytes=70, flight_bytes=100)
    assert prr.room_bytes == 0
    prr.on_ack(25, pipe_bytes=90, is_safe=False)
    assert prr.room_bytes == 20
    prr.on_sent(20)
    assert prr.room_bytes == 0
    prr.on_ack(10, pipe_bytes=71, is_safe=True)
    # 25 for 35, less 20: a segment.
    assert prr.room_bytes == 10
    prr.on_ack(10, pipe_bytes=70, is_safe=True)
    assert prr.room_bytes == 0


@pytest.mark.parametrize(("mss", "memory"), [(1396, 2048), (1397, 4096), (1448, 4096)])
def test_a_segments_memory_is_the_next_power_of_two(mss: int, memory: int) -> None:
    # 12 bytes of timestamps, 640 of headroom; and 256 of an sk_buff.
    stream = AutotunedSendStream(TcpSettings(mss_bytes=mss), Endless())
    assert stream._limit_bytes == 2 * 10 * (memory + 256)


def test_what_is_lost_goes_again_from_the_lowest_on_unless_it_came_after_all() -> None:
    flight = Flight(6)
    board = flight.board
    board.mark_lost([board.sent[30], board.sent[10], board.sent[20]])
    assert board.pipe_bytes == 30
    assert [segment.seq for segment in board.lost(with_resent=True)] == [10, 20, 30]
    board.take_sacked([(10, 20)])
    again = board.next_lost()
    assert again is board.sent[20]
    board.mark_resent(board.sent[20])
    assert board.pipe_bytes == 40
    assert board.next_lost() is board.sent[30]
    assert [segment.seq for segment in board.lost(with_resent=True)] == [20, 30]
    assert [segment.seq for segment in board.lost(with_resent=False)] == [30]
    board.take_acked(40)
    assert board.next_lost() is None
    assert (board.una, board.pipe_bytes, board.sacked_segments, board.runs) == (40, 20, 0, {})
