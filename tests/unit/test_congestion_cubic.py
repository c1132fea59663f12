"""CUBIC by hand: after a loss at 100 packets of 1000 bytes, 70 are left, and K is 4.217 s."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from h3sim.transport.congestion import ControllerSettings, CubicController
from h3sim.values.units import ms
from tests.unit.congestion_sender import after_loss

K_S = math.cbrt(75)


def cubic_bytes(t_s: Any, w_max: float = 100_000, k_s: Any = K_S) -> Any:
    return 0.4 * 1000 * (t_s - k_s) ** 3 + w_max


def test_cubic_moves_by_the_share_of_the_target_that_a_packet_has_of_the_window() -> None:
    sender = after_loss("cubic", 100_000)
    assert sender.window == 70_000
    # At 0 s the curve is where the window is, so Reno's estimate is ahead: 0.529 packets a window.
    assert sender.exchange(at_ms=1000) == pytest.approx(70_000 + 0.9 / 1.7 * 1000 / 70, abs=1)
    before = sender.window
    expected = before + (cubic_bytes(1.1) - before) * 1000 / before
    assert sender.exchange(at_ms=2000) == pytest.approx(expected, abs=2)


def test_cubics_time_begins_with_the_first_packet_after_recovery() -> None:
    soon, late = after_loss("cubic", 100_000), after_loss("cubic", 100_000)
    for sender, start in ((soon, 200), (late, 5000)):
        for t_ms in (0, 500, 1000):
            sender.exchange(at_ms=start + t_ms)
    assert soon.window == late.window > 70_400


@pytest.mark.parametrize(("t_s", "share"), [(K_S - 0.1, 1.0), (2 * K_S, 1.3)])
def test_cubic_is_back_at_the_old_window_at_k_and_as_far_above_it_at_twice_k(
    t_s: Any, share: Any
) -> None:
    sender = after_loss("cubic", 100_000)
    sender.exchange(at_ms=200)
    for _ in range(1500):
        sender.exchange(at_ms=200 + 1000 * t_s)
    # All these ACKs come at one instant, so the window is at the target, an RTT ahead.
    target = cubic_bytes(t_s + 0.1)
    assert target == pytest.approx(100_000 * share, rel=0.02)
    assert sender.window == pytest.approx(target, rel=0.001)


def test_cubic_aims_at_one_and_a_half_windows_at_most() -> None:
    sender = after_loss("cubic", 100_000)
    sender.exchange(at_ms=200)
    before = sender.window
    assert sender.exchange(at_ms=60_000) == before + 500


def test_cubic_never_lowers_the_window_to_renos_estimate() -> None:
    sender = after_loss("cubic", 100_000)
    sender.exchange(at_ms=200)
    # The RTT raises the target, many ACKs at one instant raise the estimate above the curve.
    sender.rtt.smoothed_rtt_ns = ms(5000)
    windows = [sender.exchange(at_ms=210) for _ in range(100)]
    assert windows == sorted(windows)
    assert windows[-1] > 79_000


def test_cubic_starts_flat_where_the_minimum_window_is_above_the_plateau() -> None:
    sender = after_loss("cubic", 2500)
    sender.send(at_ms=101)
    sender.lose(1, at_ms=200)
    # W_max would be 1.7 packets; the window is 2. It was that before the loss, too, so Reno's
    # estimate grows by a packet per window at once.
    before = sender.exchange(at_ms=300)
    assert before == 2500
    target = cubic_bytes(1.6, w_max=2000, k_s=0)
    assert sender.exchange(at_ms=1800) == int(2500 + (target - 2500) / 2.5)


def test_cubic_follows_reno_on_a_short_path_and_like_reno_once_it_is_back() -> None:
    sender = after_loss("cubic", 20_000, rtt_ms=1)
    windows = []
    for t_ms in range(200, 240):
        sender.exchange(count=sender.window // 1000, at_ms=t_ms)
        windows.append(sender.window)
    # From 14 packets: 0.529 a round trip up to 20, then 1.
    growth = [after - before for before, after in itertools.pairwise(windows)]
    assert growth[:9] == pytest.approx([529] * 9, rel=0.06)
    assert growth[14:] == pytest.approx([1000] * len(growth[14:]), rel=0.06)


@pytest.mark.parametrize(("fast", "plateau"), [(True, 0.85), (False, 1.0)])
def test_fast_convergence_lowers_the_plateau_if_the_window_did_not_come_back(
    fast: Any, plateau: Any
) -> None:
    sender = after_loss("cubic", 100_000)
    settings = ControllerSettings(max_datagram_bytes=1000, initial_window_bytes=100_000)
    sender.controller = CubicController(settings, fast_convergence=fast)
    for at_ms in (200, 400):
        sender.send(at_ms=at_ms)
        sender.lose(sender.next_number - 1, at_ms=at_ms + 100)
    assert sender.window == 49_000
    w_max = 70_000 * plateau
    k_s = math.cbrt((w_max - 49_000) / 1000 / 0.4)
    sender.exchange(at_ms=600)
    for _ in range(800):
        sender.exchange(at_ms=600 + 1000 * (k_s - 0.1))
    assert sender.window == pytest.approx(w_max, rel=0.001)


def test_a_window_above_the_former_one_moves_the_plateau_up_in_full() -> None:
    sender = after_loss("cubic", 100_000)
    sender.exchange(at_ms=200)
    while sender.window < 120_000:
        sender.exchange(at_ms=9000)
    window = sender.window
    sender.send(at_ms=9000)
    sender.lose(sender.next_number - 1, at_ms=9100)
    k_s = math.cbrt(window * 0.3 / 1000 / 0.4)
    sender.exchange(at_ms=9200)
    for _ in range(800):
        sender.exchange(at_ms=9200 + 1000 * (k_s - 0.1))
    assert sender.window == pytest.approx(window, rel=0.001)


def test_time_in_which_the_window_is_not_full_does_not_count() -> None:
    full, limited = after_loss("cubic", 100_000), after_loss("cubic", 100_000)
    for sender in (full, limited):
        sender.exchange(at_ms=200)
        sender.exchange(at_ms=700)
    for at_ms in range(1000, 9000, 1000):
        limited.exchange(at_ms=at_ms, is_cwnd_underutilized=True)
    # For the one that was limited, no time has passed since 700 ms.
    assert limited.exchange(at_ms=9000) == full.exchange(at_ms=700)
    assert limited.exchange(at_ms=9500) == full.exchange(at_ms=1200) > 70_500


def test_time_in_which_nothing_is_in_flight_does_not_count() -> None:
    busy, idle = after_loss("cubic", 100_000), after_loss("cubic", 100_000)
    for sender, pause in ((busy, 0), (idle, 60_000)):
        sender.exchange(at_ms=200)
        sender.exchange(at_ms=700)
        sender.others_bytes = 0
        sender.send(at_ms=700 + pause)
        sender.ack(sender.next_number - 1, at_ms=1000 + pause)
    assert idle.window == busy.window > 70_100


def test_time_is_left_out_once_even_if_the_window_is_not_full_after_a_pause() -> None:
    busy, idle = after_loss("cubic", 100_000), after_loss("cubic", 100_000)
    for sender, pause in ((busy, 0), (idle, 60_000)):
        sender.exchange(at_ms=200)
        sender.exchange(at_ms=700)
        sender.others_bytes = 0
        for _ in range(2):
            sender.exchange(at_ms=700 + pause, is_cwnd_underutilized=True)
        sender.others_bytes = 1000
        sender.exchange(at_ms=700 + pause)
        sender.exchange(at_ms=1700 + pause)
    assert idle.window == busy.window > 70_400


def test_a_loss_in_slow_start_gives_the_curve_its_plateau_back() -> None:
    sender = after_loss("cubic", 100_000)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    sender.exchange(count=48, at_ms=200)
    sender.send(at_ms=201)
    assert sender.lose(sender.next_number - 1, at_ms=300) == 35_000
    sender.exchange(at_ms=400)
    # W_max = 0.85 · 50 packets, K = cbrt(7.5 / 0.4)
    before = 35_000 + 0.9 / 1.7 * 1000 / 35
    target = cubic_bytes(1.3, w_max=42_500, k_s=math.cbrt(7.5 / 0.4))
    assert sender.exchange(at_ms=1600) == int(before + (target - before) * 1000 / before)


def test_persistent_congestion_while_the_window_is_reduced_begins_another_curve() -> None:
    """RFC 9438 § 4.8: W_max is where slow start ends, K is 0, and time begins there."""
    sender = after_loss("cubic", 100_000)
    sender.exchange(at_ms=200)
    sender.controller.on_persistent_congestion(now_ns=ms(250))
    assert sender.exchange(count=68, at_ms=300) == 70_000
    sender.exchange(at_ms=400)
    before = 70_000 + 0.9 / 1.7 * 1000 / 70
    target = cubic_bytes(3.1, w_max=70_000, k_s=0)
    assert sender.exchange(at_ms=3400) == int(before + (target - before) * 1000 / before)


@pytest.mark.parametrize(
    ("share", "w_max"),
    [(0.7, 70_000 * 1.7 / 2), (1.0, 100_000)],
)
def test_the_plateau_after_a_second_loss_lies_between_the_window_and_what_is_left(
    share: float, w_max: float
) -> None:
    """RFC 9438 § 4.7: (1 + 0.7) / 2 of the window if it is below W_max; the window if it is it."""
    sender = after_loss("cubic", 100_000)
    sender.controller.congestion_window = round(100_000 * share)
    sender.send(at_ms=200)
    left = sender.lose(1, at_ms=300)
    assert left == round(70_000 * share)
    sender.exchange(at_ms=400)
    before = left + 0.9 / 1.7 * 1000 * 1000 / left
    target = cubic_bytes(2.1, w_max=w_max, k_s=math.cbrt((w_max - left) / 400))
    assert sender.exchange(at_ms=2400) == int(before + (target - before) * 1000 / before)


def test_after_persistent_congestion_the_curve_begins_at_its_plateau() -> None:
    sender = after_loss("cubic", 100_000)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    sender.exchange(count=68, at_ms=200)
    assert sender.window == 70_000
    sender.exchange(at_ms=300)
    for _ in range(500):
        sender.exchange(at_ms=300 + 2900)
    # RFC 9438 § 4.8: W_max = 70 packets and K = 0, so three seconds give 0.4 · 27.
    assert sender.window == pytest.approx(70_000 + 0.4 * 27 * 1000, rel=0.002)


# CUBIC as quicly has it: time begins at the loss, at 100 ms.


def test_quicly_cubic_moves_once_per_ack_however_much_it_covers() -> None:
    one, many = after_loss("cubic-quicly", 100_000), after_loss("cubic-quicly", 100_000)
    assert one.exchange(at_ms=1100) == many.exchange(count=5, at_ms=1100)
    target = int(cubic_bytes(1.0 + 0.1))
    assert one.window == int(70_000 + (target / 70_000 - 1) * 1000)


def test_quicly_cubic_jumps_to_renos_estimate_and_never_below_the_window() -> None:
    sender = after_loss("cubic-quicly", 10_000, rtt_ms=10)
    # RFC 8312 § 4.2: 7 packets and 0.529 per round trip; K = 1.957 s
    assert sender.exchange(at_ms=200) == int(7000 + 0.9 / 1.7 * 10 * 1000)
    sender.rtt.smoothed_rtt_ns = ms(11)
    assert sender.exchange(at_ms=200) == int(7000 + 0.9 / 1.7 * 10 * 1000)


def test_quicly_cubic_leaves_out_the_time_since_it_last_sent() -> None:
    busy, idle = after_loss("cubic-quicly", 100_000), after_loss("cubic-quicly", 100_000)
    for sender, pause in ((busy, 0), (idle, 60_000)):
        sender.send(at_ms=100)
        sender.ack(1, at_ms=200)
        sender.others_bytes = 0
        sender.send(at_ms=100 + pause)
        sender.ack(2, at_ms=1100 + pause)
    assert idle.window == busy.window > 70_000


def test_quicly_cubic_converges_fast() -> None:
    sender = after_loss("cubic-quicly", 100_000)
    sender.send(at_ms=100)
    sender.lose(1, at_ms=200)
    # W_max = 0.85 · 70 packets, K = cbrt(59.5 · 0.3 / 0.4) = 3.547 s. The curve begins below the
    # window, which waits for it.
    assert sender.exchange(at_ms=210) == 49_000
    curve = cubic_bytes(3.0, w_max=59_500, k_s=math.cbrt(59.5 * 0.75))
    assert sender.exchange(at_ms=3100) == int(49_000 + (int(curve) / 49_000 - 1) * 1000)


def test_quicly_cubic_compares_with_the_window_before_not_with_the_lowered_plateau() -> None:
    sender = after_loss("cubic-quicly", 100_000)
    sender.send(at_ms=100)
    sender.lose(1, at_ms=200)
    sender.controller.congestion_window = 65_000
    sender.send(at_ms=200)
    sender.lose(2, at_ms=300)
    # 65 packets are fewer than 70: W_max = 0.85 · 65 packets
    assert sender.window == 45_500
    curve = cubic_bytes(3.0, w_max=55_250, k_s=math.cbrt(55.25 * 0.75))
    assert sender.exchange(at_ms=3200) == int(45_500 + (int(curve) / 45_500 - 1) * 1000)
