"""What a TCP sender does with each acknowledgement and timer, by hand: segments of 88 bytes.

They leave 1 ms apart over a round trip of 100 ms; spans and acknowledgements count segments.
"""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.tcp import TcpSettings
from h3sim.transport.tcp.records import Segment, SentSegment
from h3sim.transport.tcp.recovery import Recovery
from h3sim.values.units import ms
from tests.unit.test_tcp_bookkeeping import SIZE, Reporting

SACK = TcpSettings(mss_bytes=SIZE)
RACK = TcpSettings(
    mss_bytes=SIZE,
    recovery="rack",  # type: ignore[arg-type]
    min_rto_ns=ms(200),
    rto_granularity_ns=ms(200),
)


class Sender:
    """A sender whose window is 100 segments, and half of that after a loss."""

    def __init__(self, n_segments: int, settings: TcpSettings) -> None:
        self.window = Numbered(100 * SIZE)
        self.recovery = Recovery(settings, self.window)
        self.recovery.on_rtt(ms(100))
        self.next_number = 0
        for index in range(n_segments):
            self.send(index, at_ms=index)

    def send(self, index: int, *, at_ms: float) -> None:
        segment = SentSegment(self.next_number, ms(at_ms), SIZE * index, SIZE, [], [])
        self.next_number += 1
        self.recovery.on_sent(segment)

    def send_again(self, index: int, *, at_ms: float) -> None:
        segment = self.recovery.board.sent[SIZE * index]
        self.recovery.on_resent(segment, self.next_number, ms(at_ms))
        self.next_number += 1

    def ack(self, number: int, *spans: tuple[int, int], at_ms: float) -> None:
        """Take an acknowledgement without a timestamp: it measures no round trip."""
        blocks = tuple((SIZE * start, SIZE * stop) for start, stop in spans)
        segment = Segment(0, ms(at_ms), 0, 0, SIZE * number, None, 0, blocks)
        self.recovery.on_ack(segment, ms(at_ms))

    def room(self) -> float:
        """How many segments may leave."""
        return self.recovery.room_bytes() / SIZE

    def lost(self) -> list[int]:
        """Which segments wait to go again."""
        lost = self.recovery.board.lost(with_resent=False)
        return [segment.seq // SIZE for segment in lost]

    def timer_ms(self) -> float | None:
        at_ns = self.recovery.timer_at_ns()
        return None if at_ns is None else at_ns / ms(1)


class Numbered(Reporting):
    """Notes the numbers that were delivered together, and which is next as something is lost."""

    def __init__(self, window_bytes: int) -> None:
        super().__init__(window_bytes)
        self.delivered: list[list[int]] = []
        self.next_numbers: list[int] = []

    def on_acked(self, packets: Any, now_ns: int, rtt: Any, in_flight: Any, is_under: bool) -> None:
        self.delivered.append([packet.number for packet in packets])
        self.reported.append(("acked", in_flight, is_under))

    def on_lost(self, packets: Any, now_ns: int, in_flight: Any, next_number: Any) -> None:
        super().on_lost(packets, now_ns, in_flight, next_number)
        self.next_numbers.append(next_number)


def test_an_acknowledgement_without_loss_covers_all_in_flight() -> None:
    sender = Sender(5, SACK)
    sender.ack(2, at_ms=100)
    assert sender.window.reported == [("acked", 5 * SIZE, False)]
    assert sender.room() == 100 - 3


def test_an_acknowledgement_that_advances_and_shows_a_loss_lets_nothing_grow() -> None:
    sender = Sender(6, SACK)
    sender.ack(1, (2, 5), at_ms=104)
    # The loss is told with what is left beside it: 4 arrived of 6.
    assert sender.window.reported == [("lost", 2 * SIZE, False), ("acked", 5 * SIZE, True)]
    assert sender.window.next_numbers == [6]


def test_what_was_sent_again_is_delivered_behind_what_left_before_it() -> None:
    sender = Sender(6, SACK)
    sender.ack(0, (1, 4), at_ms=103)
    sender.send_again(0, at_ms=103)
    sender.ack(6, at_ms=203)
    # Segment 0 left as number 6, behind 4 and 5.
    assert sender.window.delivered == [[1, 2, 3], [4, 5, 6]]


def test_a_later_resend_of_an_earlier_segment_keeps_the_order_of_what_lies_above_it() -> None:
    sender = Sender(8, SACK)
    sender.ack(0, (1, 2), (3, 8), at_ms=107)
    sender.send_again(2, at_ms=107)
    sender.send_again(0, at_ms=108)
    sender.send(8, at_ms=109)
    sender.ack(2, (3, 8), at_ms=208)
    sender.ack(9, at_ms=209)
    assert sender.window.delivered == [[1, *range(3, 8)], [9], [8, 10]]


class TestProportionalRateReduction:
    """RFC 9937 § 6.2, far below the new window of 50 segments: what arrives may be replaced."""

    def recovering(self) -> Sender:
        sender = Sender(12, SACK)
        sender.ack(0, (1, 5), at_ms=104)
        assert sender.room() == 4
        sender.send_again(0, at_ms=104)
        assert sender.room() == 3
        return sender

    def test_a_duplicate_lets_as_much_leave_as_has_arrived(self) -> None:
        sender = self.recovering()
        sender.ack(0, (6, 8), (1, 5), at_ms=107)
        # 6 have arrived, 1 left; nothing was acknowledged in order, so there is none on top.
        assert sender.room() == 5

    def test_an_advance_without_a_further_loss_lets_one_more_leave(self) -> None:
        sender = self.recovering()
        sender.ack(5, at_ms=204)
        # 5 have arrived, 1 left; and one more.
        assert sender.room() == 5

    def test_an_advance_that_shows_a_further_loss_lets_none_more_leave(self) -> None:
        sender = self.recovering()
        sender.ack(0, (6, 8), (1, 5), at_ms=107)
        sender.ack(5, (6, 9), at_ms=204)
        assert sender.lost() == [5]
        # 8 have arrived, 1 left.
        assert sender.room() == 7

    def test_with_the_end_of_the_episode_the_window_rules_again(self) -> None:
        sender = self.recovering()
        sender.ack(12, at_ms=204)
        assert sender.recovery.episode.point is None
        assert sender.room() == 50

    def test_the_next_episode_begins_with_nothing_of_the_last(self) -> None:
        sender = self.recovering()
        sender.ack(12, at_ms=204)
        for index in range(12, 17):
            sender.send(index, at_ms=205)
        sender.ack(12, (13, 16), at_ms=305)
        assert sender.room() == 3


def test_what_goes_again_on_suspicion_does_so_in_an_episode_that_no_timeout_took_over() -> None:
    """NextSeg's rule 3 (RFC 6675 § 4): a hole under what arrived, with too little above it."""
    sender = Sender(8, SACK)
    sender.ack(0, (1, 4), at_ms=103)
    sender.send_again(0, at_ms=103)
    sender.ack(0, (1, 4), (5, 6), at_ms=105)
    assert sender.lost() == []
    again = sender.recovery.next_speculative(ms(105))
    assert again is not None
    assert again.seq == 4 * SIZE


def test_after_a_timeout_nothing_goes_again_on_suspicion() -> None:
    sender = Sender(3, SACK)
    sender.recovery.on_timer(ms(1000))
    for index in range(3):
        sender.send_again(index, at_ms=1000)
    for index in (3, 4):
        sender.send(index, at_ms=1001)
    sender.ack(0, (4, 5), at_ms=1101)
    assert sender.recovery.next_speculative(ms(9000)) is None


def test_a_timeout_lasts_until_all_is_acknowledged_that_had_left_before_it() -> None:
    """RFC 6675 § 5.1: the recovery point of an episode moves with a timeout."""
    sender = Sender(5, SACK)
    sender.ack(0, (1, 4), at_ms=103)
    assert sender.recovery.episode.point == 5 * SIZE
    sender.send(5, at_ms=104)
    sender.recovery.on_timer(ms(2000))
    assert sender.recovery.episode.point == 6 * SIZE
    # The window was cut as the episode began, and collapses without another cut.
    assert (sender.window.lost, sender.window.collapses) == ([[0]], 1)


def test_a_segment_that_left_twice_is_no_longer_out_at_all_after_a_timeout() -> None:
    sender = Sender(8, SACK)
    sender.ack(0, (1, 4), (5, 6), at_ms=105)
    sender.send_again(0, at_ms=105)
    sender.send_again(4, at_ms=105)  # on suspicion: both of its transmissions count
    assert sender.recovery.board.pipe_bytes == (1 + 2 + 2) * SIZE
    sender.recovery.on_timer(ms(2000))
    assert sender.recovery.board.pipe_bytes == 0
    assert sender.lost() == [0, 4, 6, 7]


class TestGoingOn:
    """An episode that ends while something of it is lost is followed by the next at once."""

    def test_by_sack_what_went_again_does_not_count(self) -> None:
        sender = self.sender(SACK)
        # Lost: 4 (once more under way) and nothing else.
        sender.ack(4, (5, 8), at_ms=206)
        assert sender.window.lost == [[0]]
        assert sender.recovery.episode.point is None

    def test_linux_counts_what_has_gone_again_and_is_still_out(self) -> None:
        sender = self.sender(RACK)
        reported = len(sender.window.reported)
        sender.ack(4, (5, 8), at_ms=206)
        assert [seq // SIZE for seq in sender.window.lost[-1]] == [4]
        assert sender.recovery.episode.point == 8 * SIZE
        # 4 is out once more; it is told as such, and not added to what is in flight.
        assert sender.window.reported[reported:] == [("lost", SIZE, False), ("acked", SIZE, True)]

    @pytest.mark.parametrize("settings", [SACK, RACK], ids=["sack", "rack"])
    def test_what_waits_to_go_again_is_reported_as_if_it_were_out(
        self, settings: TcpSettings
    ) -> None:
        sender = self.sender(settings, resends=False)
        reported = len(sender.window.reported)
        sender.ack(4, (5, 8), at_ms=206)
        assert sender.recovery.episode.point == 8 * SIZE
        assert sender.window.reported[reported] == ("lost", SIZE, False)
        # The reduction begins anew, and its first retransmission leaves whatever the window.
        assert sender.recovery.episode.may_exceed_window
        assert sender.room() == 1 + 1

    def sender(self, settings: TcpSettings, *, resends: bool = True) -> Sender:
        """0 is lost and comes again; then 4, which left within the episode, is lost too."""
        sender = Sender(4, settings)
        sender.ack(0, (1, 4), at_ms=103)
        sender.send_again(0, at_ms=103)
        assert not sender.recovery.episode.may_exceed_window
        for index in range(4, 8):
            sender.send(index, at_ms=104)
        sender.ack(0, (5, 8), (1, 4), at_ms=205)
        assert sender.lost() == ([4] if settings is SACK else [0, 4])
        if resends:
            sender.send_again(4, at_ms=205)
        return sender
