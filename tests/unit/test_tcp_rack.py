"""RACK-TLP by hand from RFC 8985: segments 1 ms apart over a round trip of 100 ms."""

from __future__ import annotations

from dataclasses import replace

import pytest

from h3sim.values.units import ms
from tests.unit.test_tcp_bookkeeping import SIZE
from tests.unit.test_tcp_detectors import Flight
from tests.unit.test_tcp_recovery_rules import RACK, SACK, Sender


def lost_on_timeout(flight: Flight, now_ms: float) -> list[int]:
    return [segment.seq // 10 for segment in flight.detector.lost_on_timeout(ms(now_ms))]


class TestClock:
    """§ 6.2, step 2: RACK.rtt and RACK.xmit_ts are those of what was delivered."""

    def test_a_first_transmission_may_be_quicker_than_any_before(self) -> None:
        flight = Flight(4, by_time=True)
        assert flight.ack(0, (2, 3), now_ms=92) == []
        # It took 90 ms; the window is a quarter of the least so far, of 100 ms.
        assert flight.detector.due_at_ns == ms(1 + 90 + 25)

    def test_next_to_a_retransmission_too_quick_to_count_what_else_came_counts(self) -> None:
        flight = Flight(5, by_time=True)
        flight.again(0, number=5, now_ms=60)
        # 0 went again 44 ms ago, so it is its first transmission that came; 3 took 101 ms.
        assert flight.ack(1, (3, 4), now_ms=104) == []
        assert flight.detector.due_at_ns == ms(2 + 101 + 25)

    def test_a_retransmission_after_the_least_round_trip_counts(self) -> None:
        flight = Flight(3, by_time=True)
        flight.again(0, number=3, now_ms=60)
        # Exactly 100 ms after it: so 1 and 2 left before what came, and more than 125 ms ago.
        assert flight.ack(1, now_ms=160) == [1, 2]

    def test_what_left_after_the_last_that_came_is_not_looked_at(self) -> None:
        flight = Flight(5, by_time=True)
        assert flight.ack(0, (1, 2), now_ms=5000) == []
        # 0 alone left before it, and has 25 ms more than the 4999 that 1 took.
        assert flight.detector.due_at_ns == ms(4999 + 25)
        assert flight.ack(0, now_ms=5024) == [0]


class TestReordering:
    """§ 6.2, steps 3 and 4: without any seen, three segments above or a recovery are proof."""

    def test_a_retransmission_that_fills_a_hole_is_no_reordering(self) -> None:
        flight = Flight(110, by_time=True)
        assert flight.ack(0, (2, 3), now_ms=102) == []
        flight.again(0, number=110, now_ms=110)
        # In a recovery all is lost at once that left before it.
        assert flight.ack(1, now_ms=210, is_recovering=True) == [1, *range(3, 110)]

    def test_an_original_below_the_highest_is_reordering_and_keeps_the_window_open(self) -> None:
        flight = Flight(6, by_time=True)
        flight.ack(0, (3, 4), now_ms=103)
        flight.ack(0, (1, 2), now_ms=104)
        assert flight.ack(0, (4, 6), now_ms=105) == []
        # 4 of 6 have come, but 0 and 2 have a quarter of the round trip all the same.
        assert flight.detector.due_at_ns == ms(2 + 100 + 25)

    def test_a_timeout_leaves_out_what_may_only_be_late(self) -> None:
        """§ 6.3."""
        flight = Flight(6, by_time=True)
        flight.ack(0, (4, 5), now_ms=104)
        flight.ack(0, (1, 2), now_ms=105)
        # 1 took 104 ms, and 2 has until 2 + 104 + 25 ms; the first segment is lost in any case.
        assert lost_on_timeout(flight, 131 - 1e-6) == [0]
        flight = Flight(6, by_time=True)
        flight.ack(0, (4, 5), now_ms=104)
        flight.ack(0, (1, 2), now_ms=105)
        assert lost_on_timeout(flight, 131) == [0, 2]

    def test_a_timeout_before_anything_came_takes_all_that_was_sent(self) -> None:
        """§ 6.3, with RACK.rtt still 0."""
        assert lost_on_timeout(Flight(5, by_time=True), 4) == [0, 1, 2, 3, 4]

    def test_the_window_is_no_wider_than_the_smoothed_round_trip(self) -> None:
        flight = Flight(1, by_time=True)
        for index in range(5):
            flight.detector.on_duplicate()
            flight.ack(index + 1, now_ms=index + 100)
            flight.send(index + 1)
        flight.send(6)
        flight.ack(5, (6, 7), now_ms=106)
        # Six quarters of the round trip would be 150 ms.
        assert flight.detector.due_at_ns == ms(5 + 100 + 100)


class TestDuplicates:
    """§ 6.2, step 4: each round with a D-SACK widens the window by a quarter of the round trip."""

    def due_ms(self, flight: Flight, index: int) -> float:
        """Let the segment behind *index* come after 100 ms; return when *index* is due."""
        flight.ack(index, (index + 1, index + 2), now_ms=index + 101)
        assert flight.detector.due_at_ns is not None
        return flight.detector.due_at_ns / ms(1)

    def test_a_round_lasts_until_what_was_out_at_the_duplicate_is_acknowledged(self) -> None:
        flight = Flight(4, by_time=True)
        flight.detector.on_duplicate()
        for index in range(4, 10):
            flight.send(index)
        flight.ack(3, now_ms=103)
        flight.detector.on_duplicate()  # of the same round: 4 segments were out
        assert self.due_ms(flight, 4) == 4 + 100 + 50
        flight.ack(4, now_ms=106)
        flight.detector.on_duplicate()  # of a later one
        assert self.due_ms(flight, 6) == 6 + 100 + 75

    def test_a_round_ends_with_exactly_what_was_out(self) -> None:
        flight = Flight(4, by_time=True)
        flight.detector.on_duplicate()
        flight.ack(4, now_ms=103)
        for index in range(4, 10):
            flight.send(index)
        flight.detector.on_duplicate()
        assert self.due_ms(flight, 4) == 4 + 100 + 75

    def test_a_duplicate_begins_the_sixteen_recoveries_anew(self) -> None:
        flight = Flight(60, by_time=True)
        flight.detector.on_duplicate()
        for _ in range(15):
            flight.detector.on_recovered()
        for index in range(60, 70):
            flight.send(index)
        flight.ack(60, now_ms=160)
        flight.detector.on_duplicate()
        flight.detector.on_recovered()
        # Three quarters: the first 15 recoveries no longer count.
        assert self.due_ms(flight, 60) == 60 + 100 + 75

    def test_a_first_block_below_the_acknowledgement_widens_the_window(self) -> None:
        for blocks, window_ms in ((((2, 3),), 25), (((0, 1), (2, 3)), 50)):
            sender = Sender(4, RACK)
            sender.ack(1, *blocks, at_ms=102)
            assert sender.timer_ms() == 1 + 100 + window_ms

    def test_the_end_of_an_episode_is_a_recovery(self) -> None:
        sender = Sender(1, RACK)
        sender.ack(1, (0, 1), at_ms=101)  # a duplicate: two quarters from now on
        for n_recoveries in range(16):
            first = 1 + 4 * n_recoveries
            for index in range(first, first + 4):
                sender.send(index, at_ms=1000 * first)
            sender.ack(first, (first + 1, first + 4), at_ms=1000 * first + 100)
            sender.send_again(first, at_ms=1000 * first + 100)
            sender.ack(first + 4, at_ms=1000 * first + 200)
        for index in range(65, 69):
            sender.send(index, at_ms=100_000)
        sender.ack(65, (66, 67), at_ms=100_100)
        assert sender.timer_ms() == 100_100 + 25


class TestTimers:
    """Of the three timers of Linux's sender the first that is due counts."""

    def test_the_reordering_timer_is_requested_when_it_is_due_and_not_before(self) -> None:
        sender = Sender(4, RACK)
        sender.ack(0, (2, 3), at_ms=102)
        # 0 could be told lost at 125 ms, but both are decided together.
        assert sender.timer_ms() == 1 + 100 + 25
        sender.recovery.on_timer(ms(125))
        assert sender.lost() == []
        sender.recovery.on_timer(ms(126))
        assert sender.lost() == [0, 1]

    def test_a_retransmission_timeout_may_come_before_the_reordering_timer(self) -> None:
        sender = Sender(2, RACK)
        sender.ack(0, (1, 2), at_ms=290)
        # 0 + 289 + 25 ms would be 314; the timeout is 100 + 200 ms after the first left.
        assert sender.timer_ms() == 300

    def test_a_reordering_timer_may_come_before_a_probe(self) -> None:
        sender = self.after_an_episode()
        # 6 left at 105 ms, before the retransmission that came at 206 ms.
        assert sender.timer_ms() == 105 + 100 + 25

    def test_the_beginning_of_an_episode_cancels_the_probe(self) -> None:
        sender = self.after_an_episode()
        probe = sender.recovery.probe
        assert probe is not None
        assert probe.due_at_ns == ms(206 + 100 + 200)
        sender.recovery.on_timer(ms(230))
        assert sender.lost() == [6]
        assert probe.due_at_ns is None

    def after_an_episode(self) -> Sender:
        """0 and 1 are lost and go again, 6 in between; 6 is out alone as the episode ends."""
        sender = Sender(6, RACK)
        sender.ack(0, (2, 6), at_ms=105)
        assert sender.lost() == [0, 1]
        sender.send_again(0, at_ms=105)
        sender.send(6, at_ms=105)
        sender.send_again(1, at_ms=106)
        sender.ack(6, at_ms=206)
        assert sender.recovery.episode.point is None
        return sender

    def test_by_sack_nothing_but_the_timeout_is_due(self) -> None:
        sender = Sender(4, SACK)
        sender.ack(0, (2, 3), at_ms=102)
        assert sender.timer_ms() == 1000
        assert Sender(0, SACK).timer_ms() is None


class TestProbes:
    """§ 7."""

    def test_a_probe_leaves_when_it_is_due_and_not_before(self) -> None:
        sender = Sender(2, RACK)
        assert sender.recovery.probe is not None
        is_due = []
        for now_ns in (ms(1 + 200) - 1, ms(1 + 200)):
            sender.recovery.on_timer(now_ns)
            is_due.append(sender.recovery.probe.is_due)
        assert is_due == [False, True]
        # The timeout begins anew with the probe: 100 + 200 ms.
        assert sender.timer_ms() == 201 + 300

    @pytest.mark.parametrize(("n_segments", "due_ms"), [(1, 200 + 200), (2, 1 + 200)])
    def test_a_lone_segment_is_given_the_time_of_a_delayed_ack(
        self, n_segments: int, due_ms: float
    ) -> None:
        """§ 7.2: 2 * SRTT, and WCDelAckT where there is but one."""
        sender = Sender(n_segments, replace(RACK, min_rto_ns=ms(1000)))
        assert sender.timer_ms() == due_ms

    def test_within_an_episode_that_a_timeout_began_no_probe_is_due(self) -> None:
        sender = Sender(3, RACK)
        sender.recovery.on_timer(ms(202))
        assert sender.recovery.probe is not None
        sender.recovery.probe.on_sent(3 * SIZE, sender.recovery.board.sent[2 * SIZE])
        sender.send_again(2, at_ms=202)
        sender.recovery.on_timer(ms(502))
        assert sender.window.collapses == 1
        sender.send_again(0, at_ms=502)
        sender.ack(1, at_ms=602)
        # 1 and 2 are left: in a quiet sender a probe would follow after two round trips.
        assert sender.recovery.probe.due_at_ns is None

    @pytest.mark.parametrize("begins_an_episode", [False, True])
    def test_a_probe_cuts_no_window_that_an_episode_has_cut_since(
        self, begins_an_episode: bool
    ) -> None:
        sender = Sender(6, RACK)
        sender.recovery.on_timer(ms(205))
        assert sender.recovery.probe is not None
        sender.recovery.probe.on_sent(6 * SIZE, sender.recovery.board.sent[5 * SIZE])
        sender.send_again(5, at_ms=205)
        sender.send(6, at_ms=206)
        if begins_an_episode:
            sender.ack(0, (1, 4), at_ms=207)
            sender.send_again(0, at_ms=207)
        sender.ack(7, at_ms=307)
        # Beyond the probe without a duplicate: a loss that it made up for, and that nothing showed.
        assert sender.window.lost == ([[0]] if begins_an_episode else [[5 * SIZE]])

    @pytest.mark.parametrize(
        ("duplicate_at_ms", "due_ms"), [(303, 302 + 200), (502, 502), (502.5, None)]
    )
    def test_a_duplicate_that_ends_a_probe_leaves_the_timer_of_what_was_sent_since(
        self, duplicate_at_ms: float, due_ms: float | None
    ) -> None:
        """§ 7.2: an ACK of nothing new neither starts the timer nor stops it.

        Where it ran out while a probe was under way, none went, and the timeout is left (§ 7.3).
        """
        sender = Sender(2, RACK)
        probe = sender.recovery.probe
        assert probe is not None
        sender.recovery.on_timer(ms(201))
        probe.on_sent(2 * SIZE, sender.recovery.board.sent[SIZE])
        sender.send_again(1, at_ms=201)
        for number in (2, 3):
            sender.send(number, at_ms=210)
        sender.ack(2, at_ms=302)
        assert (probe.end_seq, probe.due_at_ns) == (2 * SIZE, None)
        sender.ack(2, (1, 2), at_ms=duplicate_at_ms)
        assert (probe.end_seq, sender.window.lost) == (None, [])
        assert probe.due_at_ns == (None if due_ms is None else ms(due_ms))
        assert sender.timer_ms() == (302 + 300 if due_ms is None else due_ms)
