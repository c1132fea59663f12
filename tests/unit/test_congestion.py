"""Congestion controllers by hand: packets of 1000 bytes, times in milliseconds."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.congestion.aioquic import _RttMonitor
from h3sim.transport.congestion.loss_based import cube_root
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender, after_loss

LOSS_BASED = ("cubic", "cubic-linux", "cubic-quicly", "newreno", "reno-quicly")
RFC_9002 = ("cubic", "newreno")
QUICLY = ("cubic-quicly", "reno-quicly")


# Windows before and in slow start


@pytest.mark.parametrize("name", [*LOSS_BASED, "bbr", "bbr1"])
@pytest.mark.parametrize(
    ("datagram", "window"),
    [(1200, 12_000), (1280, 12_800), (1472, 14_720), (1500, 14_720), (9000, 18_000)],
)
def test_the_first_window_is_ten_packets_and_between_14720_bytes_and_two_packets(
    name: str, datagram: Any, window: Any
) -> None:
    assert Sender(name, window=None, datagram=datagram).window == window  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LOSS_BASED)
def test_slow_start_doubles_the_window_in_a_round_trip(name: str) -> None:
    sender = Sender(name)
    assert sender.exchange(count=10, at_ms=100) == 20_000
    assert sender.exchange(count=20, at_ms=200) == 40_000
    assert sender.controller.ssthresh is None


@pytest.mark.parametrize("name", RFC_9002)
def test_the_window_does_not_grow_while_it_is_not_full(name: str) -> None:
    sender = Sender(name)
    assert sender.exchange(at_ms=0, is_cwnd_underutilized=True) == 10_000
    sender = after_loss(name, 100_000)
    assert sender.exchange(at_ms=200, is_cwnd_underutilized=True) == sender.controller.ssthresh


@pytest.mark.parametrize("name", QUICLY)
def test_quicly_grows_a_window_that_is_not_full(name: str) -> None:
    assert Sender(name).exchange(at_ms=0, is_cwnd_underutilized=True) == 11_000


# Losses


@pytest.mark.parametrize(
    ("name", "window"),
    [
        *(("newreno", 5000), ("cubic", 7000), ("cubic-linux", 7000)),
        *(("cubic-quicly", 7000), ("reno-quicly", 7000)),
    ],
)
def test_losses_of_one_round_trip_reduce_the_window_once(name: str, window: Any) -> None:
    sender = Sender(name)
    sender.send(10, at_ms=0)
    assert sender.lose(0, 1, at_ms=100) == window
    assert sender.lose(2, at_ms=100) == window
    assert sender.lose(3, 4, at_ms=150) == window
    assert sender.controller.ssthresh == window


@pytest.mark.parametrize("name", LOSS_BASED)
def test_what_was_sent_before_the_loss_was_noticed_grows_nothing(name: str) -> None:
    sender = Sender(name, window=100_000)
    sender.send(100, at_ms=0)
    window = sender.lose(0, at_ms=100)
    assert sender.ack(*range(1, 99), at_ms=100) == window
    assert sender.ack(99, at_ms=110) == window


@pytest.mark.parametrize("name", LOSS_BASED)
def test_a_packet_sent_after_the_loss_was_noticed_reduces_the_window_again(name: str) -> None:
    sender = after_loss(name, 10_000)
    window = sender.window
    sender.send(at_ms=101)
    assert sender.lose(1, at_ms=200) < window


@pytest.mark.parametrize("name", RFC_9002)
def test_what_was_sent_at_the_instant_of_the_loss_counts_as_before_it(name: str) -> None:
    """InCongestionRecovery of RFC 9002 § B.5 compares with "<="."""
    sender = after_loss(name, 10_000)
    window = sender.window
    sender.send(2, at_ms=100)
    assert sender.lose(1, at_ms=200) == window
    assert sender.ack(2, at_ms=200) == window


@pytest.mark.parametrize("name", QUICLY)
def test_quicly_knows_by_the_number_what_was_sent_after_the_loss_was_noticed(name: str) -> None:
    sender = after_loss(name, 100_000)
    window = sender.window
    sender.send(2, at_ms=100)
    assert sender.lose(1, at_ms=200) < window


@pytest.mark.parametrize("name", LOSS_BASED)
def test_the_window_never_falls_below_two_packets(name: str) -> None:
    sender = Sender(name)
    for second in range(1, 10):
        sender.send(at_ms=1000 * second)
        sender.lose(sender.next_number - 1, at_ms=1000 * second + 500)
    assert sender.window == 2000


@pytest.mark.parametrize("name", LOSS_BASED)
def test_beta_can_be_chosen(name: str) -> None:
    assert after_loss(name, 10_000, beta=0.6).window == 6000


@pytest.mark.parametrize(("name", "ssthresh"), [("newreno", 5000), ("cubic", 7000)])
def test_persistent_congestion_leaves_the_minimum_window_slow_start_and_no_recovery(
    name: str, ssthresh: Any
) -> None:
    sender = Sender(name)
    sender.send(10, at_ms=0)
    sender.lose(0, 1, at_ms=100)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    assert sender.window == 2000
    assert sender.controller.ssthresh == ssthresh
    assert sender.ack(2, at_ms=110) == 3000


@pytest.mark.parametrize("name", QUICLY)
def test_quicly_knows_no_persistent_congestion(name: str) -> None:
    sender = after_loss(name, 10_000)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    assert sender.window == 7000


@pytest.mark.parametrize("name", QUICLY)
def test_quicly_lets_a_late_packet_grow_the_window_once_recovery_is_over(name: str) -> None:
    sender = Sender(name, window=100_000)
    sender.send(3, at_ms=0)
    sender.lose(0, at_ms=100)
    sender.controller.ssthresh = 200_000
    assert sender.ack(1, at_ms=110) == 70_000
    sender.exchange(at_ms=120)
    assert sender.ack(2, at_ms=130) == 72_000


# Reno's congestion avoidance


def test_newreno_grows_by_a_packet_per_window_and_keeps_the_rest_of_each_division() -> None:
    sender = after_loss("newreno", 20_000)
    # 1000² / 10 000 = 100; / 10 100 = 99 and 100 over; (1000² + 100) / 10 199 = 98 and 598 over
    assert [sender.exchange(at_ms=200) for _ in range(3)] == [10_100, 10_199, 10_297]


def test_newreno_counts_each_packet_of_an_ack() -> None:
    sender = after_loss("newreno", 20_000)
    assert sender.exchange(count=3, at_ms=200) == 10_297


def test_a_loss_leaves_nothing_of_the_rest_that_newreno_keeps() -> None:
    sender = after_loss("newreno", 20_000)
    # 7415 of 10 585 are over after six packets.
    assert [sender.exchange(at_ms=200) for _ in range(6)][-1] == 10_585
    sender.send(at_ms=300)
    assert sender.lose(7, at_ms=400) == 5292
    assert sender.exchange(at_ms=500) == 5292 + 1000 * 1000 // 5292


def test_of_one_ack_only_what_was_sent_after_the_loss_was_noticed_grows_the_window() -> None:
    sender = Sender("newreno")
    sender.send(2, at_ms=0)
    sender.lose(0, at_ms=100)
    sender.send(at_ms=101)
    assert sender.ack(1, 2, at_ms=200) == 5000 + 1000 * 1000 // 5000


@pytest.mark.parametrize(("name", "window"), [("newreno", 2500), ("cubic", 4900)])
def test_of_packets_lost_together_the_last_sent_decides_whether_the_window_is_reduced(
    name: str, window: int
) -> None:
    """RFC 9002 § B.8 (OnPacketsLost)."""
    sender = Sender(name)
    sender.send(2, at_ms=0)
    sender.lose(0, at_ms=100)
    sender.send(at_ms=101)
    assert sender.lose(1, 2, at_ms=200) == window


def test_newreno_grows_a_window_above_the_square_of_the_packet_size() -> None:
    sender = Sender("newreno", window=80_000, datagram=100)
    sender.send(at_ms=0, size=100)
    sender.lose(0, at_ms=100)
    sender.send(8, at_ms=200, size=100)
    # 100² / 40 000 is a quarter of a byte.
    assert [sender.ack(number, at_ms=300) for number in range(1, 9)] == (
        [40_000] * 3 + [40_001] * 5
    )


def test_quicly_reno_grows_by_a_packet_when_a_window_was_acknowledged() -> None:
    sender = after_loss("reno-quicly", 10_000)
    assert sender.exchange(count=6, at_ms=200) == 7000
    assert sender.exchange(count=2, at_ms=200) == 8000
    # A packet is over from before: seven more make the next window.
    assert sender.exchange(count=6, at_ms=200) == 8000
    assert sender.exchange(count=1, at_ms=200) == 9000


# Constant rate


def test_a_constant_rate_has_a_window_that_is_never_full_and_minds_no_loss() -> None:
    sender = Sender("constant", rate_bps=1_120_000)
    sender.send(3, at_ms=0)
    sender.lose(0, 1, at_ms=100)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    sender.ack(2, at_ms=100)
    assert sender.window > 10**15
    assert sender.controller.ssthresh is None
    assert sender.controller.pacing_rate_bps(sender.rtt) == 1_120_000


@pytest.mark.parametrize("name", LOSS_BASED)
def test_a_window_is_not_paced_by_its_controller(name: str) -> None:
    sender = Sender(name)
    assert sender.controller.pacing_rate_bps(sender.rtt) is None


def test_cube_roots_are_cut_to_integers() -> None:
    values = [*range(200), 10**27 - 1, 10**27, 10**27 + 1, (1 << 90) - 1, 75 * 10**27]
    for value in values:
        root = cube_root(value)
        assert root**3 <= value < (root + 1) ** 3


@pytest.mark.parametrize(
    ("between_ms", "rises"),
    # What is no higher than the floor leaves the count as it was; a little more begins it anew.
    [([], True), ([100], True), ([101], False)],
)
def test_aioquics_slow_start_ends_after_five_samples_a_quarter_above_the_floor(
    between_ms: list[int], rises: bool
) -> None:
    """aioquic 1.7, quic/congestion/base.py (QuicRttMonitor): five of which each least is above."""
    monitor = _RttMonitor()
    samples_ms = [*[100] * 5, *[130] * 8, *between_ms, *[130] * (5 if between_ms else 1)]
    found = [
        monitor.is_rising(ms(2 * number), ms(sample)) for number, sample in enumerate(samples_ms, 1)
    ]
    assert found == [*[False] * (len(found) - 1), rises]


def test_a_new_controller_has_no_credit_from_before() -> None:
    """RFC 9002 § B.5: 1000 * 1000 / 9901 is 100.999; a byte more would make it 101."""
    sender = Sender("newreno", window=9901)
    sender.controller.ssthresh = 9901
    sender.send(5, at_ms=0)
    assert sender.ack(0, at_ms=100) == 9901 + 100
