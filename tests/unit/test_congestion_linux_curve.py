"""Linux's CUBIC by hand: segments of 1000 bytes; so many are acknowledged for one more (`cnt`).

After a loss at 100 segments 70 are left, and K is the cube root of 30 / 0.4, that is 4.217 s. What
an ACK of many segments adds tells how many it took for each.
"""

from __future__ import annotations

import pytest

from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender, after_loss

LOOK_AGAIN_MS = 1000 / 32


def after_loss_at(segments: int) -> Sender:
    """Return a sender whose curve begins at 200 ms, with one segment acknowledged."""
    sender: Sender = after_loss("cubic-linux", 1000 * segments)
    sender.exchange(at_ms=200)
    return sender


@pytest.mark.parametrize(
    ("t_ms", "cnt"),
    [
        (100, 70 // 3),  # 100 - int(27.9) = 73
        (500, 70 // 10),  # 100 - int(20.5) = 80
        (1000, 70 // 17),  # 100 - int(13.3) = 87
        (2000, 70 // 26),  # 100 - int(4.4) = 96
        (6000, 2),  # 70 // 32, and never less than two
        (9000, 2),  # 100 + int(43.8) = 143: 70 // 73 is none
    ],
)
def test_the_distance_to_the_curve_determines_how_many_acknowledged_segments_add_one(
    t_ms: int, cnt: int
) -> None:
    """bictcp_update: cnt = cwnd / (bic_target - cwnd)."""
    sender = after_loss_at(100)
    # The first look found 100 - int(29.99...) = 71, so 70 for one more: one counts so far.
    assert sender.window == 70_000
    assert sender.exchange(count=100, at_ms=200 + t_ms) == 1000 * (70 + 101 // cnt)


def test_the_curve_is_read_the_smallest_round_trip_ahead() -> None:
    sender = after_loss("cubic-linux", 100_000)
    sender.send(2, at_ms=150)
    sender.send(14, at_ms=200)
    sender.ack(1, at_ms=1000)  # of recovery, and 850 ms: not the smallest
    assert sender.lose(2, at_ms=1000) == 49_000  # the window before: 70 segments
    # W_max = int(70 * 0.85009765625) = 59, K = (10 / 0.4) ** (1 / 3) = 2.924 s; 0.5 s ahead it is
    # 59 - int(0.4 * 2.424 ** 3 = 5.69) = 54, so 49 // 5 = 9 for one more.
    sender.send(9, at_ms=1000)
    assert sender.ack(*range(17, 25), at_ms=1500) == 49_000
    assert sender.ack(25, at_ms=1500) == 50_000


def test_round_trips_of_the_first_second_of_the_curve_are_not_taken() -> None:
    """cubictcp_acked: the queue that the loss came from may still be there."""
    windows = []
    for at_ms in (1699, 1700):
        sender = after_loss("cubic-linux", 10_000_000)
        sender.send(at_ms=200)
        sender.ack(1, at_ms=700)  # 500 ms; the curve begins here
        sender.exchange(at_ms=at_ms)  # 0 ms
        sender.send(1000, at_ms=1000)
        windows.append(sender.ack(*range(3, 1003), at_ms=2500))
    # The curve is read 1.8 s + 0.5 s after it began, or 1.8 s: 2999 - 0.4 * 17.272 ** 3 = 938, or
    # 2999 - 0.4 * 17.772 ** 3 = 753 above 7001; so 7 segments free some space for one, or 9.
    assert windows == [1000 * (7001 + 1002 // 7), 1000 * (7001 + 1002 // 9)]


def test_a_window_that_stands_is_looked_at_again_after_a_thirty_second_of_a_second() -> None:
    """With 7001 of 10 000 segments K is (2999 / 0.4) ** (1 / 3) = 19.572 s.

    31.25 ms later the curve has 10 000 - int(0.4 * 19.541 ** 3) = 7016: 7001 // 15 = 466 for one.
    """
    sender = after_loss_at(10_000)
    assert sender.exchange(count=1000, at_ms=200 + LOOK_AGAIN_MS) == 7_001_000
    sender = after_loss_at(10_000)
    assert sender.exchange(count=1000, at_ms=200 + LOOK_AGAIN_MS + 0.001) == 7_003_000


def test_a_window_that_has_moved_is_looked_at_again_at_once() -> None:
    sender = after_loss_at(100)
    # 87 is the target, 70 // 17 = 4 for one more; from 86 it takes 86.
    assert sender.exchange(count=63, at_ms=1200) == 86_000
    assert sender.exchange(count=85, at_ms=1200) == 86_000
    assert sender.exchange(count=1, at_ms=1200) == 87_000


def test_credit_from_when_a_segment_was_dearer_opens_the_window_by_one() -> None:
    """tcp_cong_avoid_ai: credits of a higher price are applied gently."""
    sender = after_loss_at(100)
    sender.exchange(count=59, at_ms=200)  # 60 of 70
    # Now 4 would be enough: 60 are worth one all the same, and one is left for the next.
    assert sender.exchange(at_ms=1200) == 71_000
    assert sender.exchange(count=2, at_ms=1200) == 71_000  # 71 // (87 - 71) = 4
    assert sender.exchange(count=1, at_ms=1200) == 72_000


def far_above_the_curve() -> Sender:
    """Return a sender of 102 segments where the curve has 87.

    One ACK of 130 segments, of which 4 each free some space for one: 131 // 4 = 32, and 3 are left.
    """
    sender = after_loss_at(100)
    assert sender.exchange(count=130, at_ms=1200) == 102_000
    return sender


def test_above_the_curve_it_takes_a_hundred_windows_for_one_more() -> None:
    sender = far_above_the_curve()
    sender.exchange(at_ms=1200)  # 10 200 for one more; 4 are there
    # Within 31.25 ms nobody looks again: 131 + 10 195 acknowledged count for Reno's window later.
    assert sender.exchange(count=10_195, at_ms=1200) == 102_000
    assert sender.exchange(count=1, at_ms=1200) == 103_000


@pytest.mark.parametrize(("n_acked", "cnt"), [(6172, 10_200), (6173, 102)])
def test_renos_window_counts_once_it_is_above_the_window(n_acked: int, cnt: int) -> None:
    """From 70 it is 103 after 33 times 102 * 15 // 8 = 191 segments, and one more (6304).

    131 of them have been acknowledged before; at 102 it says nothing, and at 103 that one round
    trip has to bring it there: 102 // 1.
    """
    sender = far_above_the_curve()
    # One look, at so many; 3 are left from before.
    assert sender.exchange(count=n_acked, at_ms=1200) == 1000 * (102 + (3 + n_acked) // cnt)


def test_what_was_acknowledged_before_a_loss_is_no_credit_for_renos_window() -> None:
    """As in the test of 15 eighths: with two segments left it takes four."""
    sender = after_loss("cubic-linux", 2000)
    assert [sender.exchange(at_ms=200) for _ in range(3)] == [2000] * 3
    sender.send(at_ms=300)
    assert sender.lose(4, at_ms=400) == 2000
    assert [sender.exchange(at_ms=500 + 40 * n) for n in range(4)] == [2000, 2000, 2000, 3000]


def test_a_second_loss_at_the_plateau_leaves_it_where_it_was() -> None:
    """Fast convergence is for a window below it; from 100 again, 87 is the target after 1 s."""
    sender = after_loss_at(100)
    assert sender.exchange(count=119, at_ms=1200) == 100_000
    sender.send(at_ms=1300)
    assert sender.lose(sender.next_number - 1, at_ms=1400) == 70_000
    sender.exchange(at_ms=1500)
    assert sender.exchange(count=100, at_ms=2500) == 1000 * (70 + 101 // (70 // 17))


def test_without_a_loss_that_is_remembered_20_segments_make_room_for_one() -> None:
    sender = after_loss("cubic-linux", 20_000)
    sender.controller.on_persistent_congestion(ms(200))
    assert sender.exchange(count=13, at_ms=300) == 14_000 == sender.controller.ssthresh
    assert sender.exchange(count=19, at_ms=300) == 14_000
    assert sender.exchange(count=1, at_ms=300) == 15_000


def test_slow_start_hands_what_is_beyond_the_threshold_to_congestion_avoidance() -> None:
    """tcp_slow_start, tcp_cong_avoid: 13 to the threshold of 14, and 20 for one more."""
    sender = after_loss("cubic-linux", 20_000)
    sender.controller.on_persistent_congestion(ms(200))
    assert sender.exchange(count=13 + 40, at_ms=300) == 16_000


def test_the_kernels_share_is_717_of_1024() -> None:
    """tcp_cubic.c, beta: cut to whole segments."""
    assert after_loss("cubic-linux", 1_024_000).window == 717_000


def test_a_first_window_may_be_one_segment() -> None:
    assert Sender("cubic-linux", window=1000).exchange(at_ms=0) == 2000


def test_a_pause_is_left_out_from_when_the_last_segment_left_or_the_curve_began() -> None:
    """cubictcp_cwnd_event: epoch_start moves by what has passed, and never beyond now."""
    sender = after_loss("cubic-linux", 100_000)
    sender.send(at_ms=200)
    sender.ack(1, at_ms=500)  # 300 ms; the curve begins, after the last segment left
    assert sender.controller._epoch_at_ns == ms(500)
    sender.others_bytes = 0
    sender.send(at_ms=700)
    assert sender.controller._epoch_at_ns == ms(700)
    sender.send(at_ms=900)  # another is in flight
    assert sender.controller._epoch_at_ns == ms(700)
    sender.forget()
    sender.send(at_ms=1000)
    assert sender.controller._epoch_at_ns == ms(800)
