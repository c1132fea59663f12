"""What counts as lost, by the detectors alone: segments of 10 bytes, at 0, 10, 20, ..."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.rtt import RttEstimator
from h3sim.transport.tcp.loss_detection import RackDetector, SackDetector, Scoreboard
from h3sim.transport.tcp.records import Segment, SentSegment
from h3sim.transport.tcp.recovery import ProportionalRateReduction, Recovery
from h3sim.transport.tcp.settings import TcpSettings
from h3sim.values.units import ms
from tests.tcp_pair import FixedWindow


class Flight:
    """A scoreboard with *n* segments that were sent 1 ms apart, and a detector; RTT is 100 ms."""

    def __init__(self, n: Any, *, mss: int = 1448, by_time: bool = False) -> None:
        self.board = Scoreboard()
        rtt = RttEstimator(initial_ns=ms(100))
        rtt.on_sample(ms(100))
        self.detector = (
            RackDetector(self.board, rtt) if by_time else SackDetector(self.board, rtt, mss)
        )
        for position in range(n):
            self.send(position)

    def send(self, position: Any) -> None:
        segment = SentSegment(position, ms(position), 10 * position, 10, [], [])
        self.board.add(segment)
        self.detector.on_sent(segment)

    def again(self, position: Any, *, number: Any, now_ms: float) -> None:
        segment = self.board.sent[10 * position]
        self.detector.on_resend(segment)
        segment.number, segment.sent_at_ns = number, ms(now_ms)
        self.board.mark_resent(segment)
        self.detector.on_sent(segment)

    def ack(
        self, ack: Any, *spans: Any, now_ms: float = 100, is_recovering: bool = False
    ) -> list[Any]:
        """Return which segments an acknowledgement shows to be lost."""
        news = self.board.take_acked(10 * ack) if 10 * ack > self.board.una else []
        is_advance = bool(news)
        news += self.board.take_sacked([(10 * start, 10 * stop) for start, stop in spans])
        lost = self.detector.detect(
            news, is_advance=is_advance, is_recovering=is_recovering, now_ns=ms(now_ms)
        )
        for segment in lost:
            self.board.mark_lost([segment])
        return [segment.seq // 10 for segment in lost]


def test_three_separate_spans_above_make_a_segment_lost_however_small_they_are() -> None:
    flight = Flight(10)
    assert flight.ack(0, (1, 2)) == []
    assert flight.ack(0, (3, 4)) == []
    assert flight.ack(0, (5, 6), is_recovering=True) == [0]
    assert flight.ack(0, (7, 8), is_recovering=True) == [2]


def test_more_than_two_segments_above_make_a_segment_lost() -> None:
    flight = Flight(10, mss=10)
    assert flight.ack(0, (3, 5), is_recovering=True) == []
    assert flight.ack(0, (3, 6), is_recovering=True) == [0, 1, 2]


def test_the_third_duplicate_makes_the_first_segment_lost_however_small_they_are() -> None:
    flight = Flight(10)
    assert [flight.ack(0, (2, stop)) for stop in (3, 4, 5, 6)] == [[], [], [0], []]


def test_duplicates_are_counted_from_the_last_advance() -> None:
    flight = Flight(10)
    assert [flight.ack(0, (2, stop)) for stop in (3, 4)] == [[], []]
    assert flight.ack(1, (2, 4)) == []
    assert [flight.ack(1, (2, stop)) for stop in (5, 6, 7)] == [[], [], [1]]


def test_what_went_again_on_suspicion_loses_only_its_first_transmission() -> None:
    flight = Flight(10, mss=10)
    flight.ack(0, (1, 4), (6, 7))
    assert flight.detector.next_speculative(ms(100)).seq == 40
    flight.again(4, number=10, now_ms=100)
    before = flight.board.pipe_bytes
    assert flight.ack(0, (6, 9), is_recovering=True) == [5]
    # 7 and 8 arrived, 5 is lost, and so is one of the two transmissions of 4.
    assert before - flight.board.pipe_bytes == 40
    assert flight.board.sent[40].copies == 1


def test_a_tail_is_rescued_once_per_episode() -> None:
    flight = Flight(3, mss=10)
    assert flight.detector.next_speculative(ms(101)) is None
    assert flight.detector.next_speculative(ms(200)).seq == 20
    flight.send(3)
    assert flight.detector.next_speculative(ms(400)) is None
    flight.detector.on_recovered()
    assert flight.detector.next_speculative(ms(400)).seq == 30


def test_by_time_a_segment_is_lost_a_quarter_of_the_round_trip_after_a_later_one_came() -> None:
    flight = Flight(10, by_time=True)
    # 2 was sent at 2 ms and took 100 ms; 0 and 1 have until 100 + 25 ms after they were sent.
    assert flight.ack(0, (2, 3), now_ms=102) == []
    assert flight.detector.due_at_ns == ms(126)
    assert flight.ack(0, now_ms=125) == [0]
    assert flight.ack(0, now_ms=126) == [1]
    assert flight.detector.due_at_ns is None


def test_by_time_an_acknowledgement_too_soon_for_a_retransmission_is_for_what_went_before() -> None:
    flight = Flight(3, by_time=True)
    flight.again(0, number=3, now_ms=60)
    assert flight.ack(1, now_ms=105) == []
    # Otherwise what was sent before 60 ms would be late.
    assert flight.detector.due_at_ns is None
    assert flight.ack(2, now_ms=106) == []


def test_by_time_what_came_out_of_order_does_not_move_the_clock_back() -> None:
    flight = Flight(6, by_time=True)
    assert flight.ack(0, (4, 5), now_ms=104) == []
    assert flight.ack(0, (1, 2), now_ms=105) == []
    assert flight.detector.due_at_ns == ms(3 + 104 + 25)


def test_by_time_a_needless_retransmission_widens_the_window_and_16_recoveries_narrow_it() -> None:
    flight = Flight(60, by_time=True)
    flight.ack(0, (1, 2), now_ms=101)
    assert flight.detector.due_at_ns == ms(100 + 25)
    flight.detector.on_duplicate()
    flight.ack(2, now_ms=104)  # sets nothing: all that is left was sent later
    flight.ack(2, (3, 4), now_ms=103)
    assert flight.detector.due_at_ns == ms(2 + 100 + 50)
    for _ in range(15):
        flight.detector.on_recovered()
    flight.ack(4, (5, 6), now_ms=105)
    assert flight.detector.due_at_ns == ms(4 + 100 + 50)
    flight.detector.on_recovered()
    flight.ack(6, (7, 8), now_ms=107)
    assert flight.detector.due_at_ns == ms(6 + 100 + 25)


def test_by_time_the_window_is_widened_once_per_round() -> None:
    flight = Flight(60, by_time=True)
    flight.ack(0, (1, 2), now_ms=101)
    for now_ms in (102, 103):
        flight.detector.on_duplicate()
        flight.ack(0, (1, 2), now_ms=now_ms)
    assert flight.detector.due_at_ns == ms(100 + 50)


@pytest.mark.parametrize("by_time", [False, True])
def test_a_timeout_lets_the_first_segment_go_whatever_the_window(by_time: Any) -> None:
    settings = TcpSettings.linux() if by_time else TcpSettings()
    recovery = Recovery(settings, FixedWindow(10))
    recovery.on_rtt(ms(100))
    recovery.on_sent(SentSegment(0, 0, 0, 10, [], []))
    while not recovery.episode.is_timed_out:
        now_ns = recovery.timer_at_ns()
        if recovery.board.next_seq == 10:
            recovery.on_sent(SentSegment(1, now_ns - 1, 10, 10, [], []))
        recovery.on_timer(now_ns)  # type: ignore[arg-type]
    assert recovery.episode.may_exceed_window
    assert recovery.board.next_lost().seq == 0


def test_a_loss_that_could_not_go_again_within_an_episode_begins_the_next() -> None:
    window = FixedWindow(100)
    recovery = Recovery(TcpSettings(mss_bytes=88), window)

    def send(*positions: Any) -> None:
        for position in positions:
            recovery.on_sent(SentSegment(2 * position, ms(position), 88 * position, 88, [], []))

    def ack(number: Any, *spans: Any) -> None:
        blocks = tuple((88 * start, 88 * stop) for start, stop in spans)
        recovery.on_ack(Segment(0, ms(100), 0, 0, 88 * number, 0, 0, blocks), ms(150))

    send(0, 1, 2, 3)
    ack(0, (1, 4))
    recovery.on_resent(recovery.board.next_lost(), 7, ms(150))  # type: ignore[arg-type]
    send(4, 5, 6, 7)
    ack(0, (5, 8), (1, 4))
    assert recovery.board.next_lost().seq == 4 * 88
    assert window.lost == [[0]]
    ack(4, (5, 8))
    assert window.lost == [[0], [4 * 88]]
    assert (recovery.board.next_lost().seq, recovery.episode.point) == (4 * 88, 8 * 88)


def test_an_old_report_adds_nothing_to_a_newer_one() -> None:
    flight = Flight(10)
    flight.ack(0, (3, 7))
    assert flight.board.take_sacked([(40, 60)]) == []
    assert flight.board.runs == {30: 70}
    assert flight.board.take_sacked([(10, 20), (80, 90)]) == [
        flight.board.sent[10],
        flight.board.sent[80],
    ]
    flight.board.take_sacked([(10, 90)])
    assert flight.board.runs == {10: 90}
    assert flight.board.pipe_bytes == 20


def test_what_is_acknowledged_twice_counts_once() -> None:
    flight = Flight(4)
    flight.board.take_sacked([(10, 20)])
    assert [segment.seq for segment in flight.board.take_acked(30)] == [0, 20]
    assert (flight.board.pipe_bytes, flight.board.sacked_segments, flight.board.runs) == (10, 0, {})


def test_below_the_new_window_a_segment_more_leaves_than_arrives() -> None:
    prr = ProportionalRateReduction(10)
    prr.begin(target_bytes=50, flight_bytes=100)
    prr.on_ack(10, pipe_bytes=20, is_safe=True)
    assert prr.room_bytes == 20
    prr.on_sent(20)
    prr.on_ack(10, pipe_bytes=20, is_safe=False)
    assert prr.room_bytes == 10
    prr.on_ack(10, pipe_bytes=45, is_safe=True)
    assert prr.room_bytes == 5


def test_an_acknowledgement_of_nothing_new_changes_nothing() -> None:
    window = FixedWindow(100)
    recovery = Recovery(TcpSettings(), window)
    recovery.on_sent(SentSegment(0, 0, 0, 10, [], []))
    due_ns = recovery.timer_at_ns()
    recovery.on_ack(Segment(0, 5, 0, 0, 0, None, 0), 5)
    assert (window.acked_bytes, recovery.timer_at_ns(), recovery.rtt.has_sample) == (
        0,
        due_ns,
        False,
    )


def test_within_a_recovery_duplicates_prove_nothing() -> None:
    """RFC 6675 § 5: the third begins a recovery; in one IsLost alone decides."""
    flight = Flight(10)
    lost = [flight.ack(0, (2, stop), is_recovering=True) for stop in (3, 4, 5, 6, 7)]
    assert lost == [[]] * 5


def test_what_arrived_above_it_loses_no_segment_that_a_timeout_sent_again() -> None:
    """RFC 6675 knows no loss of retransmissions: that is the next timeout's."""
    flight = Flight(6, mss=10)
    flight.board.mark_lost(flight.detector.lost_on_timeout(ms(1000)))
    assert flight.board.pipe_bytes == 0
    for position in range(6):
        flight.again(position, number=6 + position, now_ms=1000)
    assert flight.ack(0, (2, 6), now_ms=1100, is_recovering=True) == []
    assert flight.board.pipe_bytes == 20


def test_a_timeout_takes_what_is_out_and_nothing_else() -> None:
    flight = Flight(8, mss=10)
    assert flight.ack(0, (1, 4), (5, 6)) == [0]
    # 0 waits to go again, 1 to 3 and 5 have come.
    lost = flight.detector.lost_on_timeout(ms(1000))
    assert [segment.seq // 10 for segment in lost] == [4, 6, 7]


def test_a_tail_that_went_again_already_is_not_rescued() -> None:
    flight = Flight(4, mss=10)
    assert flight.ack(0, (3, 4), is_recovering=True) == []
    flight.board.mark_lost([flight.board.sent[20]])
    flight.again(2, number=4, now_ms=100)
    flight.board.take_acked(20)
    assert flight.detector.next_speculative(ms(9000)) is None


def test_what_went_again_on_suspicion_and_was_lost_once_is_no_longer_suspect() -> None:
    flight = Flight(10, mss=10)
    flight.ack(0, (1, 4), (6, 7))
    flight.again(4, number=10, now_ms=100)
    assert flight.ack(0, (6, 9), is_recovering=True) == [5]
    # Rule 3 takes what was sent once and is on its way: of 4 one transmission is left, its second.
    flight.again(5, number=11, now_ms=101)
    last = flight.detector.next_speculative(ms(9000))
    assert last is not None
    assert last.seq == 90


def test_an_old_block_hides_no_new_one() -> None:
    flight = Flight(10)
    board = flight.board
    board.take_acked(20)
    # Below what is acknowledged, within what was reported, and news.
    board.take_sacked([(40, 70)])
    news = board.take_sacked([(0, 10), (50, 60), (80, 90)])
    assert [segment.seq for segment in news] == [80]
    assert board.runs == {40: 70, 80: 90}
    assert [segment.copies for segment in board.sent.values()] == [1, 1, 0, 0, 0, 1, 0, 1]
