"""BBR number by number: how it starts, and probes for bandwidth.

The numbers of its path are those of `congestion_rounds`. The sections named are those of
draft-cardwell-iccrg-bbr-congestion-control-00.
"""

from __future__ import annotations

import pytest

from h3sim.values.units import ms
from tests.unit.congestion_rounds import (
    HIGH_GAIN,
    RATE_BPS,
    SIZE,
    STARTUP_BPS,
    RoundRing,
    in_probe_bw,
)

# Startup


def test_startup_raises_the_pace_with_the_bandwidth_and_never_lowers_it() -> None:
    """§ 4.2.1: before an ACK 10 000 bytes in 1 ms, with the first in its round trip; then BtlBw."""
    sender = RoundRing()
    assert sender.rate_bps == int(HIGH_GAIN * 80_000_000)
    assert (sender.bbr.bandwidth_bps, sender.bbr.min_rtt_ns) == (0, None)
    sender.round(5000)
    assert (sender.bbr.bandwidth_bps, sender.rate_bps) == (400_000, STARTUP_BPS)
    sender.round(20_000)
    assert sender.rate_bps == int(HIGH_GAIN * 1_600_000)
    sender.round(5000)
    assert sender.rate_bps == int(HIGH_GAIN * 1_600_000)


@pytest.mark.parametrize(
    ("window", "rtt_ns", "rate_bps"),
    [
        (1, 1, int(HIGH_GAIN * 8 * 10**9)),
        (1, 2, int(HIGH_GAIN * 4 * 10**9)),
        (1, 10**13, 1),  # nothing would be sent at 0
        (10, 10**11, 1),
    ],
)
def test_the_first_pace_is_above_nothing_and_of_a_time_above_nothing(
    window: int, rtt_ns: int, rate_bps: int
) -> None:
    sender = RoundRing(window=window, datagram=1)
    sender.rtt.on_sample(rtt_ns)
    assert sender.rate_bps == rate_bps


def test_startups_window_grows_by_what_arrives_while_it_is_below_its_target() -> None:
    """§ 4.2.3.6: 2.885 products of 10 000 bytes and three quanta of 2000 are 34 853."""
    sender = RoundRing()
    windows = []
    for _ in range(3):
        sender.round()
        windows.append(sender.window)
    assert windows == [20_000, 30_000, 40_000]
    sender.round(12_500)  # a quarter more: not full yet; 36 067 and 6000 are above 40 000
    assert sender.window == 52_500
    sender.round(12_500)
    assert (sender.state, sender.window) == ("startup", 52_500)


def test_startup_raises_the_pace_however_much_is_in_flight() -> None:
    sender = RoundRing()
    sender.rounds(1)
    sender.round(rtt_ms=101, in_flight=60_000)
    assert (sender.state, sender.bbr.pacing_gain) == ("startup", HIGH_GAIN)


@pytest.mark.parametrize(("window", "after"), [(34_852, 44_852), (34_853, 34_853)])
def test_a_window_at_its_target_does_not_grow_in_startup(window: int, after: int) -> None:
    sender = RoundRing()
    sender.rounds(2)
    sender.bbr.congestion_window = window
    sender.round()
    assert sender.window == after


@pytest.mark.parametrize(("first_window", "after"), [(10_000, 40_000), (10_001, 50_000)])
def test_until_the_first_window_is_delivered_the_target_holds_nothing_back(
    first_window: int, after: int
) -> None:
    sender = RoundRing(window=first_window)
    sender.bbr.congestion_window = 40_000
    sender.round()
    assert sender.window == after


@pytest.mark.parametrize(("left", "state"), [(16_000, "probe_bw"), (16_001, "drain")])
def test_drain_is_over_when_a_product_and_three_quanta_are_left(left: int, state: str) -> None:
    """§ 4.3.3: that may be at once; the quanta are those of Startup's rate, 2000 bytes each."""
    sender = RoundRing()
    sender.rounds(3)
    sender.round(in_flight=SIZE + left)
    assert sender.state == state


def test_drain_lowers_the_pace_and_keeps_startups_window() -> None:
    sender = RoundRing()
    sender.rounds(3)
    sender.round(in_flight=30_000)
    assert (sender.state, sender.bbr.pacing_gain) == ("drain", 1 / HIGH_GAIN)
    assert sender.rate_bps == int(RATE_BPS / HIGH_GAIN)
    assert sender.window == int(HIGH_GAIN * SIZE) + 3000
    # Restarting from idle changes the rate in ProbeBW only (§ 4.3.4.4).
    sender.send(is_app_limited=True)
    assert sender.rate_bps == int(RATE_BPS / HIGH_GAIN)
    # With the rate of Drain the quanta are of 1000 bytes.
    sender.round(in_flight=SIZE + 13_001)
    assert sender.state == "drain"
    sender.round(in_flight=SIZE + 13_000)
    assert sender.state == "probe_bw"


def test_a_rate_of_nothing_is_no_pace() -> None:
    """A bit per second, times Drain's gain, would be none."""
    sender = RoundRing(window=10, datagram=1)
    for _ in range(3):
        sender.round(1, rtt_ms=8000)
    before = sender.rate_bps
    sender.round(1, rtt_ms=8000, in_flight=100)
    assert (sender.state, sender.bbr.bandwidth_bps) == ("drain", 1)
    assert sender.rate_bps == before == int(HIGH_GAIN * 10)


# ProbeBW


def test_probe_bw_keeps_two_products_and_three_quanta_in_flight() -> None:
    sender = in_probe_bw()
    assert sender.rate_bps == 1_000_000
    assert sender.window == 23_000
    sender.bbr.congestion_window = 12_999
    sender.round()
    assert sender.window == 22_999
    sender.round()
    assert sender.window == 23_000


def test_a_window_below_four_packets_is_raised_to_them() -> None:
    sender = RoundRing(window=1000)
    sender.round(100, rtt_ms=100)
    assert sender.window == 4000


@pytest.mark.parametrize(
    ("rtt_ms", "in_flight", "gain"),
    [
        (100, 15_500, 1.25),  # a round trip, and not more
        (100.001, 15_499, 1.25),
        (100.001, 15_500, 0.75),  # 1.25 products and three quanta
    ],
)
def test_the_raised_gain_ends_after_a_round_trip_in_which_it_has_shown(
    rtt_ms: float, in_flight: int, gain: float
) -> None:
    sender = in_probe_bw()
    sender.round(rtt_ms=rtt_ms, in_flight=in_flight)
    assert sender.bbr.pacing_gain == gain


@pytest.mark.parametrize(("rtt_ms", "gain"), [(100, 1.25), (100.001, 0.75)])
def test_the_raised_gain_ends_after_a_round_trip_in_which_something_was_lost(
    rtt_ms: float, gain: float
) -> None:
    sender = in_probe_bw()
    lost, packet = sender.send(1000), sender.send()
    sender.now_ns += ms(rtt_ms)
    sender.lose(lost, in_flight=11_000)
    sender.ack(packet)
    assert sender.bbr.pacing_gain == gain
    # What was lost before this ACK says nothing of the next one, in which too little is in flight.
    sender.round(in_flight=13_001)
    assert sender.bbr.pacing_gain == gain


@pytest.mark.parametrize(
    ("rtt_ms", "in_flight", "gain"),
    [
        (100, 13_001, 0.75),
        (100, 13_000, 1.0),  # a product and three quanta
        (100.001, 13_001, 1.0),
    ],
)
def test_the_lowered_gain_ends_with_the_queue_or_after_a_round_trip(
    rtt_ms: float, in_flight: int, gain: float
) -> None:
    sender = in_probe_bw()
    sender.round(rtt_ms=100.001, in_flight=15_500)
    sender.round(rtt_ms=rtt_ms, in_flight=in_flight)
    assert sender.bbr.pacing_gain == gain


def test_the_gain_is_one_for_six_round_trips_whatever_is_in_flight() -> None:
    sender = in_probe_bw()
    sender.round(rtt_ms=100.001, in_flight=15_500)
    gains = []
    for _ in range(9):
        sender.round(in_flight=1000)
        sender.round(rtt_ms=0.001, size=10)
        gains.append(sender.bbr.pacing_gain)
    assert gains == [1.0] * 6 + [1.25] * 3


@pytest.mark.parametrize(
    ("in_flight", "is_app_limited", "rate_bps"),
    [
        (1000, True, RATE_BPS),
        (1001, True, 1_000_000),  # something else was in flight
        (1000, False, 1_000_000),
    ],
)
def test_a_sender_without_data_restarts_from_idle_at_the_bandwidth(
    in_flight: int, is_app_limited: bool, rate_bps: int
) -> None:
    """§ 4.3.4.4."""
    sender = in_probe_bw()
    sender.send(1000, in_flight=in_flight, is_app_limited=is_app_limited)
    assert sender.rate_bps == rate_bps
