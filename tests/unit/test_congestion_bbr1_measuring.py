"""BBR number by number: how it measures the round trip, and what losses do.

The numbers of its path are those of `congestion_rounds`. The sections named are those of
draft-cardwell-iccrg-bbr-congestion-control-00.
"""

from __future__ import annotations

import pytest

from h3sim.transport.congestion.bbr1 import PathModel, ProbeRtt
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.unit.congestion_rounds import HIGH_GAIN, RATE_BPS, SIZE, RoundRing, in_probe_bw
from tests.unit.congestion_sender import Sent


def in_probe_rtt(*, in_flight: int = SIZE) -> RoundRing:
    """Return a sender that has just begun to measure the round trip, eleven seconds later."""
    sender = in_probe_bw()
    sender.round(rtt_ms=11_000, in_flight=in_flight)
    assert sender.state == "probe_rtt"
    return sender


# ProbeRTT


@pytest.mark.parametrize(("wait_ms", "is_due"), [(10_000, False), (10_000.001, True)])
def test_the_round_trip_is_measured_when_its_smallest_is_older_than_ten_seconds(
    wait_ms: float, is_due: bool
) -> None:
    sender = in_probe_bw()
    sender.round(rtt_ms=wait_ms)
    assert (sender.state == "probe_rtt") is is_due


def test_probe_rtt_leaves_four_packets_at_the_bandwidth() -> None:
    sender = in_probe_rtt()
    assert (sender.bbr.pacing_gain, sender.rate_bps, sender.window) == (1.0, RATE_BPS, 4000)


def test_a_restart_from_idle_spares_one_ack_the_measurement() -> None:
    """§ 4.3.5: the sample after a pause is as good as one that is measured."""
    sender = in_probe_bw()
    sender.round(rtt_ms=11_000, is_app_limited=True)
    assert sender.state == "probe_bw"
    assert sender.bbr.min_rtt_ns == ms(11_000)
    sender.round(rtt_ms=21_000.001)
    assert sender.state == "probe_rtt"


def test_what_is_spared_the_measurement_leaves_the_gains_as_they_follow() -> None:
    sender = in_probe_bw()
    sender.round(rtt_ms=100.001, in_flight=15_500)
    gains = [sender.bbr.pacing_gain]
    for rtt_ms in (11_000, 22_000, 33_000):
        sender.round(rtt_ms=rtt_ms, is_app_limited=True)  # nothing else is in flight
        gains.append(sender.bbr.pacing_gain)
    assert gains == [0.75, 1.0, 1.0, 1.0]


def test_the_measurement_ends_after_200_ms_and_a_round_trip_with_four_packets() -> None:
    probe, model = ProbeRtt(4000), PathModel()
    probe.begin()
    assert not probe.is_over(model, ms(1000), 4001)
    assert not probe.is_over(model, ms(1100), 4000)
    model.is_round_start = True
    assert not probe.is_over(model, ms(1300), 9000)
    model.is_round_start = False  # that there was one is enough
    assert probe.is_over(model, ms(1300) + 1, 0)
    probe.begin()
    model.is_round_start = False
    assert not probe.is_over(model, ms(2000), 4000)
    assert not probe.is_over(model, ms(2300), 4000)  # none since
    model.is_round_start = True
    assert probe.is_over(model, ms(2301), 4000)


def test_the_round_trip_of_the_measurement_begins_when_little_is_in_flight() -> None:
    probe, model, rtt = ProbeRtt(4000), PathModel(), RttEstimator(initial_ns=1)
    for number, delivered in enumerate((0, 1000, 1000)):
        model.on_acked([Sent(number, 0, delivered_bytes=delivered)], ms(100), rtt)
    probe.begin()
    assert not probe.is_over(model, ms(100), 4000)
    # 3000 bytes were delivered then; this packet was sent when it were 2000.
    model.on_acked([Sent(3, 0, delivered_bytes=2000)], ms(200), rtt)
    assert not model.is_round_start
    model.on_acked([Sent(4, 0, delivered_bytes=3000)], ms(301), rtt)
    assert probe.is_over(model, ms(301), 4000)


def test_after_the_measurement_probing_goes_on_with_the_window_before() -> None:
    sender = in_probe_rtt()
    sender.round(4000, rtt_ms=150)
    assert sender.state == "probe_rtt"
    sender.round(4000, rtt_ms=150)
    assert sender.state == "probe_bw"
    assert sender.bbr.pacing_gain == 1.25
    assert sender.window == 23_000 + 4000


def test_a_measurement_in_startup_goes_back_to_startup() -> None:
    sender = RoundRing()
    sender.rounds(3, is_app_limited=True)
    before = sender.window
    assert before == 40_000
    sender.round(rtt_ms=11_000)
    assert sender.state == "probe_rtt"
    assert sender.window == 4000
    sender.round(4000, rtt_ms=150, is_app_limited=True)
    sender.round(4000, rtt_ms=150, is_app_limited=True)
    assert sender.state == "startup"
    assert sender.bbr.pacing_gain == HIGH_GAIN
    assert sender.window >= before


def test_a_measurement_that_lasts_for_ten_seconds_does_not_begin_again() -> None:
    sender = in_probe_rtt()  # nothing is left: 200 ms begin at once
    sender.round(4000, rtt_ms=22_000)
    assert sender.state == "probe_bw"


# Losses


def in_recovery(*, window: int = 30_000) -> RoundRing:
    """Return a sender that lost the first of ten packets of 1000 bytes at 100 ms."""
    sender = RoundRing(window=window)
    packets = [sender.send(1000) for _ in range(10)]
    sender.now_ns = ms(100)
    sender.lose(packets[0], in_flight=10_000)
    assert sender.window == 9000 + 1000
    return sender


def test_recovery_is_over_with_a_packet_that_was_sent_after_it_began() -> None:
    """§ 4.2.3.4; the window is then the one before, and what was acknowledged."""
    sender = in_recovery()
    sender.ack(Sent(9, 0), in_flight=9000)
    assert sender.window == 10_000
    sender.ack(Sent(10, ms(1)), in_flight=8000)
    assert sender.window == 31_000


def test_losses_in_recovery_take_their_bytes_and_leave_a_packet() -> None:
    sender = in_recovery()
    sender.lose(Sent(1, 0, 8999), in_flight=9000)
    assert sender.window == 1001
    sender.lose(Sent(2, 0, 5), in_flight=9000)
    assert sender.window == 1000
    # All that was in flight is acknowledged: so much may be sent, and nothing beside it.
    sender.ack(Sent(9, 0, 3000), in_flight=3000)
    assert sender.window == 3000
    sender.ack(Sent(9, 0, 3000), in_flight=2000)  # less than is acknowledged is none left
    assert sender.window == 3000


def test_a_loss_of_all_that_is_in_flight_leaves_a_packet() -> None:
    sender = RoundRing(window=30_000)
    sender.lose(sender.send(1000), in_flight=1000)
    assert sender.window == 1000


def test_the_window_before_persistent_congestion_is_restored_if_it_was_the_larger_one() -> None:
    """A window of 12 000, 30 000 in flight: conservation allows 30 000 (BBRSaveCwnd, § 4.2.3.4)."""
    sender = RoundRing(window=12_000)
    lost = sender.send(1000)
    sender.lose(lost, in_flight=30_000)
    assert sender.window == 30_000
    sender.bbr.on_persistent_congestion(ms(100))
    assert sender.window == 2000
    sender.now_ns = ms(100)
    sender.round(1000)
    assert sender.window == 31_000


def test_a_loss_while_the_round_trip_is_measured_keeps_the_window_before_both() -> None:
    sender = in_probe_rtt()
    sender.lose(sender.send(1000), in_flight=4000)
    sender.round(4000, rtt_ms=150)
    sender.round(4000, rtt_ms=150)
    assert sender.state == "probe_bw"
    assert sender.window == 23_000 + 4000


def test_a_window_that_a_loss_left_below_four_packets_stays_while_the_round_trip_is_measured() -> (
    None
):
    sender = in_probe_rtt()
    before = sender.send(1000)
    sender.lose(sender.send(1000), in_flight=1000)
    assert sender.window == 1000
    sender.now_ns += ms(1)
    sender.ack(before, in_flight=1000)
    assert (sender.state, sender.window) == ("probe_rtt", 1000)
