"""aioquic's controllers by hand: packets of 1000 bytes, times in milliseconds."""

from __future__ import annotations

import itertools
import math

import pytest

from h3sim.transport.congestion.aioquic import _RttMonitor
from h3sim.values.units import NS_PER_MS, ms
from tests.unit.congestion_sender import Sender

NAMES = ("cubic-aioquic", "reno-aioquic")


# The end of slow start (QuicRttMonitor): with samples of 100 ms and then of 130 the tenth is the
# first whose last five are all above, and the fourteenth the fifth of them.


def first_rise(*rtts_ms: float, apart_ns: int = 2 * NS_PER_MS) -> int | None:
    """Return which sample, from 1, is said to be the last that was needed."""
    monitor = _RttMonitor()
    times_ns = itertools.count(apart_ns, apart_ns)
    rises = [monitor.is_rising(now_ns, ms(rtt)) for now_ns, rtt in zip(times_ns, rtts_ms)]  # noqa: B905 - times go on for ever
    return rises.index(True) + 1 if True in rises else None


@pytest.mark.parametrize(
    ("floor_ms", "later_ms", "rise"),
    [
        ([100] * 5, 125, 14),  # a quarter
        ([100] * 5, 124, None),
        ([100, 100, 100, 100, 104], 130, 14),  # above the largest of five
        ([100, 100, 100, 100, 104], 129, None),
        ([200] * 5 + [100] * 5, 125, 19),  # where that is smallest
        ([200] * 5 + [100] * 5, 124, None),
        ([100] * 5 + [100] * 5, 125, 19),
    ],
)
def test_delay_has_risen_when_five_samples_lie_a_quarter_above_the_floor_five_times(
    floor_ms: list[float], later_ms: float, rise: int | None
) -> None:
    assert first_rise(*floor_ms, *[later_ms] * 30) == rise


def test_a_sample_between_the_floor_and_a_quarter_above_begins_the_count_anew() -> None:
    # 8 of 130 rise four times; after 101 the next five of 130 are the first that rise again.
    assert first_rise(*[100] * 5, *[130] * 8, 101, *[130] * 20) == 5 + 8 + 1 + 9


def test_a_sample_is_taken_more_than_a_millisecond_after_the_one_before() -> None:
    rtts_ms = [*[100] * 5, *[130] * 30]
    assert first_rise(*rtts_ms, apart_ns=NS_PER_MS + 1) == 14
    # At one millisecond the first is too early, and then every second.
    twice = [rtt for rtt in rtts_ms for _ in range(2)]
    assert first_rise(*twice, apart_ns=NS_PER_MS) == 28


def rising(sender: Sender, start_ms: float = 1000) -> list[int]:
    """Let delay rise from 100 to 130 ms; return the windows after each of 14 ACKs."""
    windows = []
    for n, rtt_ms in enumerate([*[100] * 5, *[130] * 9]):
        sender.rtt.latest_rtt_ns = ms(rtt_ms)
        windows.append(sender.exchange(at_ms=start_ms + 2 * n))
    return windows


@pytest.mark.parametrize("name", NAMES)
def test_slow_start_ends_with_the_ack_that_shows_the_rise_full_or_not(name: str) -> None:
    sender = Sender(name)
    assert sender.exchange(at_ms=0, is_cwnd_underutilized=True) == 11_000
    assert rising(sender) == [1000 * n for n in range(12, 26)]
    assert sender.controller.ssthresh == 25_000
    # Congestion avoidance: a packet per window with Reno, W_est with CUBIC
    assert sender.exchange(at_ms=2000) - 25_000 == {"reno-aioquic": 0, "cubic-aioquic": 40}[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_rise_after_a_loss_is_ignored(name: str) -> None:
    sender = Sender(name, window=20_000)
    sender.others_bytes = 20_000
    sender.send(at_ms=0)
    sender.lose(0, at_ms=100)
    threshold = sender.controller.ssthresh
    assert threshold == {"reno-aioquic": 10_000, "cubic-aioquic": 14_000}[name]
    assert rising(sender)[-1] > threshold
    assert sender.controller.ssthresh == threshold


def test_aioquics_reno_grows_by_a_packet_per_window_full_or_not() -> None:
    sender = Sender("reno-aioquic", window=20_000)
    sender.send(at_ms=0)
    assert sender.lose(0, at_ms=100) == 10_000
    sender.send(9, at_ms=200)
    sender.send(at_ms=200, size=999)
    assert sender.ack(*range(1, 11), at_ms=200) == 10_000
    assert sender.exchange(at_ms=200, is_cwnd_underutilized=True) == 11_000  # and 999 bytes
    assert sender.exchange(count=10, at_ms=200) == 11_000
    assert sender.exchange(count=1, at_ms=200) == 12_000


def test_aioquics_reno_grows_by_two_if_a_loss_left_half_of_what_was_nearly_acknowledged() -> None:
    sender = Sender("reno-aioquic", window=20_000)
    sender.send(at_ms=0)
    sender.lose(0, at_ms=100)
    sender.exchange(count=9, at_ms=200)
    sender.send(at_ms=300)
    assert sender.lose(10, at_ms=400) == 5000
    assert sender.exchange(at_ms=500) == 7000


# CUBIC: a loss with 100 packets in flight behind it leaves 70, and K = (30 / 0.4) ** (1 / 3).


def after_loss(window: int = 100_000, flight: int = 100_000) -> Sender:
    """Return a sender whose first packet was lost at 100 ms, with *flight* bytes left in flight."""
    sender = Sender("cubic-aioquic", window=window)
    sender.others_bytes = flight
    sender.send(at_ms=0)
    sender.lose(0, at_ms=100)
    return sender


def ack_late(sender: Sender, at_ms: float) -> int:
    """Send a packet at 300 ms and acknowledge it then; return the window."""
    sender.send(at_ms=300)
    window: int = sender.ack(sender.next_number - 1, at_ms=at_ms)
    return window


def curve_bytes(t_s: float, w_max: int, k_s: float) -> float:
    """Return W_cubic (RFC 9438 § 4.2)."""
    return (0.4 * (t_s - k_s) ** 3) * 1000 + w_max


def test_a_loss_leaves_0_7_of_what_is_in_flight_without_it_and_two_packets_at_least() -> None:
    for flight, window in ((100_000, 70_000), (50_000, 35_000), (1000, 2000)):
        sender = after_loss(flight=flight)
        assert (sender.window, sender.controller.ssthresh) == (window, window)


def test_the_window_is_west_where_the_curve_lies_below_it_and_comes_down_to_it() -> None:
    sender = after_loss()
    # The first ACK begins the curve: 70 000 + 1000 * 1000 / 70 000
    assert sender.exchange(at_ms=200) == 70_014
    sender.controller.congestion_window = 71_000
    assert sender.exchange(at_ms=200) == int(70_014 + 1000 * 1000 / 71_000)
    # By the packet's bytes
    sender.send(at_ms=200, size=5000)
    assert sender.ack(3, at_ms=200) == int(70_028 + 1000 * 5000 / 70_028)


def test_the_window_moves_by_a_packets_share_to_the_curve_a_latest_rtt_ahead() -> None:
    sender = after_loss()
    sender.rtt.latest_rtt_ns = ms(300)
    sender.exchange(at_ms=200)
    sender.rtt.latest_rtt_ns = ms(900)  # of this ACK: the one after looks so far ahead
    target = curve_bytes(1.3, 100_000, math.cbrt(75))
    window = sender.exchange(at_ms=1200)
    assert window == int(70_014 + (int(target) - 70_014) * 1000 / 70_014) == 70_300
    target = curve_bytes(1.9, 100_000, math.cbrt(75))
    assert sender.exchange(at_ms=1200) == int(window + (int(target) - window) * 1000 / window)


def test_before_the_first_ack_the_latest_rtt_is_20_ms() -> None:
    """A packet of one byte does not move W_est; 20 ms ahead the curve is 20 * 35.7 bytes above."""
    sender = after_loss(flight=50_000)
    sender.send(at_ms=200, size=1)
    target = curve_bytes(0.020, 100_000, math.cbrt(65 / 0.4))
    assert sender.ack(1, at_ms=200) == int(35_000 + (int(target) - 35_000) * 1000 / 35_000)


def test_the_target_is_one_and_a_half_windows_at_most_and_the_window_at_least() -> None:
    sender = after_loss()
    sender.exchange(at_ms=200)
    assert ack_late(sender, 60_000) == 70_014 + 500
    sender = after_loss()
    sender.exchange(at_ms=200)
    sender.controller.congestion_window = 100_000
    assert sender.exchange(at_ms=1200) == 100_000


def test_losses_of_what_was_sent_until_the_cut_do_not_cut_again() -> None:
    sender = after_loss()
    sender.send(4, at_ms=100)
    assert sender.lose(1, 2, at_ms=150) == 70_000
    sender.send(1, at_ms=101)
    # The last of them says.
    assert sender.lose(3, 4, 5, at_ms=250) == 70_000
    assert sender.controller.ssthresh == 70_000
    sender.send(3, at_ms=260)
    sender.flying[6].sent_at_ns = sender.flying[7].sent_at_ns = ms(90)
    sender.others_bytes = 50_000
    assert sender.lose(6, 7, 8, at_ms=300) == 35_000


@pytest.mark.parametrize(
    ("window", "w_max"),
    [(99_000, int(99_000 * 0.85)), (100_000, 100_000), (101_000, 101_000)],
)
def test_a_loss_below_the_plateau_before_lowers_it(window: int, w_max: int) -> None:
    sender = after_loss()
    sender.controller.congestion_window = window
    sender.others_bytes = 70_000
    sender.send(at_ms=200)
    assert sender.lose(1, at_ms=300) == 49_000
    sender.exchange(at_ms=400)
    assert sender.window == 49_020
    k_s = math.cbrt((w_max - 49_000) / 1000 / 0.4)
    target = curve_bytes(0.6, w_max, k_s)
    assert ack_late(sender, 900) == int(49_020 + (int(target) - 49_020) * 1000 / 49_020)


def test_a_slow_start_without_a_loss_ends_at_the_plateau_of_the_curve() -> None:
    sender = Sender("cubic-aioquic")
    rising(sender)
    assert sender.controller.ssthresh == 24_000
    sender.rtt.latest_rtt_ns = ms(100)
    assert ack_late(sender, 1200) == 24_000 + 41
    # W_max is 24 000, K is 0: three seconds and an RTT give 0.4 * 3.1 ** 3 packets.
    target = curve_bytes(3.1, 24_000, 0)
    assert ack_late(sender, 4200) == int(24_041 + (int(target) - 24_041) * 1000 / 24_041)


@pytest.mark.parametrize(
    ("flight", "k_s", "t_s"),
    [(20_000, -math.cbrt(4 / 0.4), 0.5), (14_000, math.cbrt(0.2 / 0.4), 1.5)],
)
def test_a_cut_that_leaves_more_than_the_plateau_begins_behind_it(
    flight: int, k_s: float, t_s: float
) -> None:
    """W_max is 10 packets; 14 are left, or 9.8."""
    sender = after_loss(window=10_000, flight=flight)
    left = sender.exchange(at_ms=200)
    target = curve_bytes(t_s + 0.1, 10_000, k_s)
    assert left < target < left * 1.5
    assert sender.exchange(at_ms=200 + 1000 * t_s) == int(left + (int(target) - left) * 1000 / left)


def test_below_the_threshold_persistent_congestion_leaves_slow_start() -> None:
    sender = after_loss(window=10_000, flight=10_000)
    sender.controller.on_persistent_congestion(ms(100))
    assert sender.window == 2000
    assert [sender.exchange(at_ms=200) for _ in range(5)] == [3000, 4000, 5000, 6000, 7000]
    assert sender.controller.ssthresh == 7000
    assert sender.exchange(at_ms=200) == 7000 + 142


def test_all_begins_anew_two_seconds_after_what_was_acknowledged_last_was_sent() -> None:
    sender = after_loss(window=11_000, flight=11_000)  # int(0.7 * 11 000) is 7699
    sender.send(at_ms=150)  # stays in flight: before the first ACK nothing begins anew
    sender.send(at_ms=2150)
    assert sender.window == 7699
    sender.send(at_ms=2200)
    sender.ack(3, at_ms=2300)
    before = sender.window
    assert before == 7699 + 129
    sender.send(at_ms=4199.999)
    assert (sender.window, sender.controller.ssthresh) == (before, 7699)
    sender.send(at_ms=4200)
    assert (sender.window, sender.controller.ssthresh) == (11_000, None)
    # Slow start again, and a curve without what the loss had left.
    assert rising(sender, 4300)[-1] == 25_000 == sender.controller.ssthresh
    sender.rtt.latest_rtt_ns = ms(100)
    assert sender.exchange(at_ms=4400) == 25_000 + 40
    target = curve_bytes(1.6, 25_000, 0)
    assert target > 26_600
    assert sender.exchange(at_ms=5900) == int(25_040 + (int(target) - 25_040) * 1000 / 25_040)
