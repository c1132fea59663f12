"""Linux's CUBIC and HyStart by hand: segments of 1000 bytes, round trips of 100 ms."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.congestion.slow_start import LinuxHyStart
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender, after_loss


def hystart_with(*rtts_ms: Any, apart_ms: float = 12, segments: int = 40) -> Any:
    """Return a HyStart that has seen a round of these round-trip times, and whether it ended."""
    hystart = LinuxHyStart()
    ends = []
    for number in range(100):
        hystart.on_sent(number)
    for number, rtt_ms in enumerate(rtts_ms):
        now_ns = ms(1000 + apart_ms * number)
        ends.append(hystart.on_ack(number, ms(rtt_ms), now_ns=now_ns, segments=segments))
    return ends


@pytest.mark.parametrize(
    ("least_ms", "later_ms", "ends"),
    [
        (100, 112.4, False),  # an eighth
        (100, 112.6, True),
        (20, 24, False),  # 4 ms at least
        (20, 24.1, True),
        (400, 416, False),  # 16 ms at most
        (400, 416.1, True),
    ],
)
def test_slow_start_ends_when_a_rounds_least_delay_has_risen(
    least_ms: float, later_ms: float, ends: Any
) -> None:
    hystart = LinuxHyStart()
    for number in range(20):
        hystart.on_sent(number)
    hystart.on_ack(0, ms(least_ms), now_ns=ms(1000), segments=16)
    hystart.on_sent(40)
    hystart.on_ack(20, ms(later_ms), now_ns=ms(2000), segments=16)  # a round begins
    for n_acks in range(1, 8):
        assert not hystart.on_ack(20, ms(later_ms), now_ns=ms(2000 + 12 * n_acks), segments=16)
    assert hystart.on_ack(20, ms(later_ms), now_ns=ms(2096), segments=16) == ends


def test_below_16_segments_delay_does_not_matter() -> None:
    assert not any(hystart_with(100, *[300] * 20, segments=15))


def test_one_low_sample_of_a_round_keeps_slow_start() -> None:
    assert not any(hystart_with(*[300] * 8, 100, *[300] * 8))


def test_a_train_of_acks_that_lasts_for_half_a_round_trip_ends_slow_start() -> None:
    ends = hystart_with(*[100] * 60, apart_ms=1)
    assert ends.index(True) == 51  # 51 ms after the first is more than 50


def test_a_gap_of_more_than_2_ms_is_no_train() -> None:
    assert hystart_with(*[100] * 60, apart_ms=2).index(True) == 26  # after 52 ms
    assert not any(hystart_with(*[100] * 60, apart_ms=2.1))


def test_the_train_is_compared_with_the_smallest_round_trip_yet_whenever_it_was() -> None:
    ends = hystart_with(100, 60, *[100] * 58, apart_ms=1)
    assert ends.index(True) == 31  # half of 60, and one


def test_a_loss_leaves_seven_tenths_in_full_segments() -> None:
    sender = after_loss("cubic-linux", 19_000)
    assert (sender.window, sender.controller.ssthresh) == (13_000, 13_000)


def test_two_segments_are_always_left() -> None:
    assert after_loss("cubic-linux", 2000).window == 2000


def test_slow_start_grows_by_a_segment_for_each_that_was_acknowledged() -> None:
    assert Sender("cubic-linux").exchange(at_ms=0, count=5) == 15_000


def test_renos_window_grows_by_a_segment_per_15_eighths_of_a_window() -> None:
    """Two segments are left of two, so the curve is flat: only Reno's estimate grows.

    2 * 15 // 8 = 3 acknowledged segments are not more than 3; with the fourth Reno has 3, one more
    than the window, so 2 // 1 acknowledged segments free some space for one.
    """
    sender = after_loss("cubic-linux", 2000)
    assert [sender.exchange(at_ms=200 + 12 * n) for n in range(4)] == [2000, 2000, 2000, 3000]


def test_a_limited_sender_does_not_grow() -> None:
    sender = after_loss("cubic-linux", 19_000)
    for n_acks in range(200):
        sender.exchange(at_ms=200 + 12 * n_acks, is_cwnd_underutilized=True)
    assert sender.window == 13_000


def test_at_most_every_second_acknowledged_segment_opens_the_window() -> None:
    sender = after_loss("cubic-linux", 100_000)
    sender.exchange(at_ms=200)
    before = sender.window
    sender.exchange(at_ms=60_000, count=40)  # far up the curve
    assert sender.window == before + 20_000


def test_a_second_loss_below_the_first_lowers_the_plateau() -> None:
    sender = after_loss("cubic-linux", 100_000)
    sender.send(at_ms=200)
    sender.lose(1, at_ms=300)
    assert sender.window == 49_000
    sender.exchange(at_ms=400)
    assert sender.controller._origin == int(70 * (1 + 717 / 1024) / 2)


def test_a_timeout_forgets_the_curve() -> None:
    sender = after_loss("cubic-linux", 100_000)
    sender.controller.on_persistent_congestion(now_ns=ms(200))
    assert (sender.window, sender.controller.ssthresh) == (1000, 70_000)
    sender.exchange(at_ms=300, count=3)
    assert sender.window == 4000


def test_time_without_anything_in_flight_does_not_count() -> None:
    busy, idle = after_loss("cubic-linux", 19_000), after_loss("cubic-linux", 19_000)
    for sender, pause_ms in ((busy, 0), (idle, 60_000)):
        sender.others_bytes = 0
        sender.exchange(at_ms=200)
        for n_acks in range(100):
            sender.exchange(at_ms=220 + pause_ms + 20 * n_acks)
    assert busy.window == idle.window


def test_rounds_begin_with_the_first_ack_though_the_window_is_below_16_segments() -> None:
    hystart = LinuxHyStart()
    for number in range(10):
        hystart.on_sent(number)
    ends = []
    for number in range(20):
        # Slow start: each ACK lets two more segments leave; 16 are reached with ACK 6.
        rtt_ms = 100 if number < 10 else 150
        now_ns = ms(1000 + 12 * number)
        ends.append(hystart.on_ack(number, ms(rtt_ms), now_ns=now_ns, segments=10 + number))
        hystart.on_sent(10 + 2 * number)
        hystart.on_sent(11 + 2 * number)
    # The first round is 0 to 9. The ninth sample of the next one, that of 18, decides; had the
    # round begun with ACK 6, its samples of 100 ms would hide the rise until 22.
    assert ends.index(True) == 18


@pytest.mark.parametrize("hystart", [True, False])
def test_the_first_slow_start_ends_where_delay_rises_if_hystart_is_on(hystart: bool) -> None:
    """A round of 100 ms, then one of 150; ACKs lie 3 ms apart, which is no train."""
    sender = Sender("cubic-linux", window=20_000, hystart=hystart)
    for began_ms, rtt_ms in ((0, 100), (160, 150)):
        first = sender.next_number
        for n in range(20):
            sender.send(at_ms=began_ms + 3 * n)
        for n in range(20):
            sender.ack(first + n, at_ms=began_ms + 3 * n + rtt_ms)
    assert (sender.controller.ssthresh is not None) is hystart


def test_after_a_loss_a_rise_of_the_delay_changes_no_threshold() -> None:
    sender = after_loss("cubic-linux", 40_000, hystart=True)
    threshold = sender.controller.ssthresh
    for began_ms, rtt_ms in ((200, 100), (1500, 100), (1800, 150)):
        first = sender.next_number
        sender.send(20, at_ms=began_ms)
        for n in range(20):
            sender.ack(first + n, at_ms=began_ms + rtt_ms + 3 * n)
    assert sender.window > threshold == sender.controller.ssthresh == 28_000
