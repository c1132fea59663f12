"""BBR on a path of one bottleneck, whose queue has no end."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from h3sim.transport.congestion import Bbr1Controller, Bbr1State, ControllerSettings
from h3sim.transport.congestion.bbr1 import _quantum_bytes
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.unit.congestion_path import PACKET_BYTES, RATE_BPS, RTT_NS, Path
from tests.unit.congestion_sender import Sender, Sent

SETTINGS = ControllerSettings(max_datagram_bytes=PACKET_BYTES)


@pytest.fixture(scope="module")
def long_run() -> Any:
    """22 seconds on a path of 8 Mbit/s and 50 ms."""
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(22_000))
    return path


def test_the_states_follow_each_other_as_the_draft_has_them(long_run: Any) -> None:
    assert [state for _, state in long_run.states()] == [
        Bbr1State.STARTUP,
        Bbr1State.DRAIN,
        Bbr1State.PROBE_BW,
        Bbr1State.PROBE_RTT,
        Bbr1State.PROBE_BW,
        Bbr1State.PROBE_RTT,
        Bbr1State.PROBE_BW,
    ]


def test_bandwidth_and_round_trip_are_those_of_the_path(long_run: Any) -> None:
    assert long_run.controller.bandwidth_bps == pytest.approx(RATE_BPS, rel=0.01)
    assert long_run.controller.min_rtt_ns == RTT_NS + ms(1)


def test_startup_doubles_what_is_in_flight_and_ends_three_rounds_after_the_path_is_full(
    long_run: Any,
) -> None:
    drain_at_ns = long_run.states()[1][0]
    startup = [entry for entry in long_run.log if entry[0] < drain_at_ns]
    in_flight = [max(entry[3] for entry in startup if entry[0] <= ms(t)) for t in (51, 102, 165)]
    assert in_flight == pytest.approx([10_000, 20_000, 40_000], rel=0.1)
    # The path holds 51 packets, so in the fourth round it is full. The next three take the longer
    # the more they put into the queue, up to 2.885 round trips.
    assert ms(7 * 51) < drain_at_ns < ms(4 * 51 + 3 * 2.885 * 51 + 100)
    # The pace was above the bottleneck's by the gain when Startup ended.
    assert startup[-1][2] == pytest.approx(2.885, abs=0.001)


def test_drain_ends_when_the_queue_is_gone(long_run: Any) -> None:
    (_, _), (drain_ns, _), (probe_ns, _) = long_run.states()[:3]
    drain = [entry for entry in long_run.log if drain_ns <= entry[0] < probe_ns]
    assert all(gain == pytest.approx(1 / 2.885, abs=0.001) for _, _, gain, _, _ in drain)
    first_in_flight = next(entry[3] for entry in long_run.log if entry[0] == probe_ns)
    # A bandwidth-delay product of 51 packets, and three quanta of two
    assert first_in_flight - PACKET_BYTES <= 51_000 + 6000 + 600
    assert drain[0][3] > first_in_flight


def test_the_gain_cycles_through_its_phases_of_a_round_trip(long_run: Any) -> None:
    probe_ns, probe_rtt_ns = long_run.states()[2][0], long_run.states()[3][0]
    phases: list[Any] = []
    for now_ns, _, gain, _, _ in long_run.log:
        if probe_ns <= now_ns < probe_rtt_ns and (not phases or phases[-1][1] != gain):
            phases.append((now_ns, gain))
    gains = [gain for _, gain in phases]
    assert gains[:9] == [1.25, 0.75, 1.0] * 3
    ups = [now_ns for now_ns, gain in phases if gain == 1.25]
    # Eight phases; the one that drains may end early, none lasts longer than an RTT and an ACK.
    for before, after in itertools.pairwise(ups):
        assert ms(7 * 51) <= after - before <= ms(8 * 51 + 60)


def test_probe_rtt_comes_after_ten_seconds_and_keeps_four_packets_in_flight_for_200_ms(
    long_run: Any,
) -> None:
    (begin_ns, _), (end_ns, _) = long_run.states()[3:5]
    assert ms(10_000) < begin_ns < ms(11_500)
    inside = [entry for entry in long_run.log if begin_ns <= entry[0] < end_ns]
    assert {entry[4] for entry in inside} == {4000}
    low_at_ns = next(entry[0] for entry in inside if entry[3] - PACKET_BYTES <= 4000)
    assert ms(200) < end_ns - low_at_ns <= ms(200 + 51)


def test_probe_rtt_does_not_come_again_for_ten_seconds(long_run: Any) -> None:
    (_, _), (end_ns, _), (begin_ns, _) = long_run.states()[3:6]
    assert ms(10_000) < begin_ns - end_ns < ms(10_100)


def test_the_next_ten_seconds_begin_with_the_end_of_probe_rtt() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    while path.controller.state is not Bbr1State.PROBE_RTT:
        path.run(path.now_ns + ms(10))
    path.run(path.now_ns + ms(100))
    # From here on there are no RTTs any more that are as small as the smallest.
    path.rtt_ns = ms(80)
    path.run(ms(22_000))
    (_, _), (end_ns, _), (begin_ns, _) = path.states()[3:6]
    assert ms(10_000) < begin_ns - end_ns < ms(10_100)


def test_the_low_rates_of_probe_rtt_are_not_believed() -> None:
    """On a path of 10 ms it lasts for more rounds than are remembered."""
    path = Path(Bbr1Controller(SETTINGS), rtt_ns=ms(10))
    path.run(ms(10_000))
    for state in (Bbr1State.PROBE_RTT, Bbr1State.PROBE_BW):
        while path.controller.state is not state:
            path.run(path.now_ns + ms(1))
    assert path.controller.bandwidth_bps == pytest.approx(RATE_BPS, rel=0.01)


def test_after_probe_rtt_the_window_is_restored_and_the_bandwidth_not_forgotten(
    long_run: Any,
) -> None:
    begin_ns, end_ns = long_run.states()[3][0], long_run.states()[4][0]
    before = [entry[4] for entry in long_run.log if entry[0] < begin_ns][-1]
    after = next(entry[4] for entry in long_run.log if entry[0] >= end_ns)
    assert after == pytest.approx(before, rel=0.01)


def test_equal_runs_are_equal() -> None:
    runs = [Path(Bbr1Controller(SETTINGS)).run(ms(1500)) for _ in range(2)]
    assert runs[0] == runs[1]


def test_the_first_phase_is_drawn_only_from_a_source_that_was_given() -> None:
    first_gains = set()
    for seed in range(20):
        path = Path(Bbr1Controller(SETTINGS, phases=random.Random(seed)))
        path.run(ms(1000))
        first_gains.add(next(entry[2] for entry in path.log if entry[1] is Bbr1State.PROBE_BW))
    # Never the phase that lowers the rate (§ 4.3.4.2)
    assert first_gains == {1.25, 1.0}


def test_a_faster_path_is_found_by_the_raised_gain() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    path.rate_bps = 2 * RATE_BPS
    path.run(ms(4000))
    assert path.controller.bandwidth_bps == pytest.approx(2 * RATE_BPS, rel=0.02)


def test_a_slower_path_is_believed_after_ten_rounds() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    path.rate_bps = RATE_BPS // 2
    path.run(ms(1100))
    assert path.controller.bandwidth_bps == pytest.approx(RATE_BPS, rel=0.01)
    path.run(ms(4000))
    assert path.controller.bandwidth_bps == pytest.approx(RATE_BPS // 2, rel=0.01)


def test_low_rates_of_a_sender_without_data_do_not_lower_the_bandwidth() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    path.rate_bps = RATE_BPS // 2
    path.is_app_limited = True
    path.run(ms(4000))
    assert path.controller.bandwidth_bps == pytest.approx(RATE_BPS, rel=0.01)


def test_a_loss_keeps_what_is_in_flight_for_a_round_trip_and_then_restores_the_window() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    before = path.controller.congestion_window
    path.lose_one()
    path.run(ms(1010))
    in_flight = path.log[-1][3]
    assert path.controller.congestion_window == pytest.approx(in_flight, abs=2000)
    assert path.controller.congestion_window < before
    path.run(ms(1120))
    assert path.controller.congestion_window == pytest.approx(before, rel=0.05)
    assert path.controller.bandwidth_bps == pytest.approx(RATE_BPS, rel=0.01)


def test_persistent_congestion_leaves_two_packets_until_recovery_is_over() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    before = path.controller.congestion_window
    path.lose_one()
    path.run(ms(1001))
    path.controller.on_persistent_congestion(now_ns=path.now_ns)
    assert path.controller.congestion_window == 2000
    path.run(ms(1200))
    assert path.controller.congestion_window == pytest.approx(before, rel=0.05)


def test_random_losses_of_5_percent_leave_it_four_fifths_of_the_path() -> None:
    """Reno's share would be a tenth: sqrt(1.5 / 0.05) of 51 packets."""
    path = Path(Bbr1Controller(SETTINGS))
    source = random.Random(1)
    path.lose = lambda number: source.random() < 0.05
    path.run(ms(5000))
    acked = len([entry for entry in path.log if entry[0] >= ms(1000)])
    assert 0.8 * 4000 < acked < 0.96 * 4000


def test_a_window_that_persistent_congestion_took_is_the_one_before_the_loss() -> None:
    sender = Sender("bbr1", window=20_000)
    sender.send(10, at_ms=0)
    sender.lose(0, at_ms=100)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    sender.send(at_ms=100)
    assert sender.ack(10, at_ms=200) >= 20_000


def test_the_first_window_of_deliveries_grows_the_window_whatever_the_model() -> None:
    sender = Sender("bbr1")
    sender.send(10, at_ms=0)
    # One packet in 100 ms would make a target of 2885 bytes and three quanta of 2000.
    assert [sender.ack(number, at_ms=100) for number in range(2)] == [11_000, 12_000]


def test_the_first_pace_is_that_of_the_first_window() -> None:
    sender = Sender("bbr1")
    # 10 packets in 100 ms, times 2 / ln 2
    assert sender.controller.pacing_rate_bps(sender.rtt) == int(2.8853900817779268 * 800_000)
    unknown = RttEstimator(initial_ns=ms(333))
    assert sender.controller.pacing_rate_bps(unknown) == int(2.8853900817779268 * 80_000_000)


def test_there_is_no_slow_start_threshold() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.lose = lambda number: number == 30
    path.run(ms(500))
    assert path.controller.ssthresh is None


def test_after_a_loss_the_window_follows_the_bandwidth_again() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    before = path.controller.congestion_window
    path.lose_one()
    path.run(ms(1200))
    path.rate_bps = 2 * RATE_BPS
    path.run(ms(4000))
    assert path.controller.congestion_window == pytest.approx(2 * before, rel=0.1)


def test_the_window_in_recovery_is_what_is_in_flight_and_what_is_delivered() -> None:
    sender = Sender("bbr1")
    controller = sender.controller
    packets = [Sent(number, 0) for number in range(10)]
    for number, packet in enumerate(packets, 1):
        controller.on_sent(packet, bytes_in_flight=1000 * number)
    # An ACK of three packets loses one: six are left in flight.
    controller.on_lost(packets[:1], now_ns=ms(100), bytes_in_flight=7000, next_number=10)
    assert controller.congestion_window == 7000
    controller.on_acked(
        packets[1:4],
        now_ns=ms(100),
        rtt=sender.rtt,
        bytes_in_flight=9000,
        is_cwnd_underutilized=False,
    )
    assert controller.congestion_window == 9000
    controller.on_lost(packets[4:6], now_ns=ms(110), bytes_in_flight=6000, next_number=10)
    assert controller.congestion_window == 7000


def test_the_raised_gain_lasts_until_it_shows_or_loses_something() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.run(ms(1000))
    path.most_in_flight = 40_000
    path.run(ms(4000))
    assert {gain for now_ns, _, gain, _, _ in path.log if now_ns > ms(2000)} == {1.25}
    path.lose_one()
    path.run(ms(8000))
    gains = [gain for now_ns, _, gain, _, _ in path.log if now_ns > ms(4000)]
    assert [gain for gain, _ in itertools.groupby(gains)] == [0.75, 1.0, 1.25]


def test_the_lowered_gain_ends_with_the_queue() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    until_ms = 1000
    while path.controller.pacing_gain != 0.75:
        until_ms += 1
        path.run(ms(until_ms))
    path.most_in_flight = 0
    path.run(ms(until_ms + 40))
    assert path.controller.pacing_gain == 1.0


def test_a_sender_without_data_does_not_leave_startup() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    path.is_app_limited = True
    path.most_in_flight = 5000
    path.run(ms(3000))
    assert path.controller.state is Bbr1State.STARTUP


def test_a_sender_restarts_from_idle_at_the_bandwidth_and_without_probing_the_round_trip() -> None:
    path = Path(Bbr1Controller(SETTINGS))
    until_ms = 1000
    while path.controller.pacing_gain != 1.25:
        until_ms += 1
        path.run(ms(until_ms))
    path.most_in_flight = 0
    path.run(ms(until_ms + 500))
    assert path.in_flight == 0
    assert path.controller.pacing_gain == 1.25
    path.now_ns = ms(until_ms + 12_000)
    path.most_in_flight = 20_000
    path.is_app_limited = True
    path.run(path.now_ns)
    assert path.in_flight == PACKET_BYTES
    assert path.controller.pacing_rate_bps(path.rtt) == path.controller.bandwidth_bps
    path.run(path.now_ns + ms(1000))
    assert {state for now_ns, state, *_ in path.log if now_ns > ms(until_ms)} == {
        Bbr1State.PROBE_BW
    }


@pytest.mark.parametrize(
    ("rate_bps", "quantum_bytes"),
    [
        (1_199_999, 1000),  # a packet
        (1_200_000, 2000),  # two
        (23_999_999, 2000),
        (24_000_000, 3000),  # what a millisecond takes
        (524_287_999, 65_535),
        (524_288_000, 65_536),
        (600_000_000, 65_536),  # 64 KB at most
    ],
)
def test_what_is_sent_at_once_follows_the_pacing_rate(rate_bps: int, quantum_bytes: int) -> None:
    """draft-cardwell-iccrg-bbr-congestion-control-00 § 4.2.2 (BBRSetSendQuantum)."""
    assert _quantum_bytes(rate_bps, 1000) == quantum_bytes
