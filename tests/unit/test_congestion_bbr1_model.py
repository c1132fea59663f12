"""What BBR knows of a path, by hand: delivery rates, rounds, the smallest RTT."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.transport.congestion.bbr1 import PathModel
from h3sim.transport.congestion.bbr_common import WindowedMaximum
from h3sim.transport.delivery_rate import delivery_rate_bps
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sent


class RoundRing:
    """A model that is told of round trips of 100 ms, each of one packet."""

    def __init__(self) -> None:
        self.model = PathModel()
        self.rtt = RttEstimator(initial_ns=ms(100))
        self.rtt.on_sample(ms(100))
        self.number = 0

    def round(self, rate_bps: Any, *, is_app_limited: bool = False) -> Any:
        """Return the bandwidth after a packet came back whose size makes up that rate."""
        now_ns = ms(100) * self.number
        packet = Sent(
            self.number,
            now_ns,
            rate_bps // 80,
            is_app_limited=is_app_limited,
            delivered_bytes=self.model.delivered_bytes,
            delivered_at_ns=now_ns,
            first_sent_at_ns=now_ns,
        )
        self.model.on_sent(self.number)
        self.number += 1
        self.model.on_acked([packet], now_ns=now_ns + ms(100), rtt=self.rtt)
        return self.model.bandwidth_bps


def test_the_delivery_rate_is_that_of_the_longer_of_sending_and_acknowledging() -> None:
    packet = Sent(9, ms(40), delivered_bytes=5000, delivered_at_ns=ms(30), first_sent_at_ns=0)
    # 10 packets: acknowledged in 70 ms, sent in 40
    rate_bps = delivery_rate_bps(packet, delivered_bytes=15_000, now_ns=ms(100), min_rtt_ns=ms(50))
    assert rate_bps == 80_000 * 1000 // 70
    packet.first_sent_at_ns = -ms(60)
    rate_bps = delivery_rate_bps(packet, delivered_bytes=15_000, now_ns=ms(100), min_rtt_ns=ms(50))
    assert rate_bps == 800_000


def test_a_delivery_rate_over_less_than_the_smallest_rtt_is_not_believed() -> None:
    packet = Sent(9, ms(40), delivered_at_ns=ms(30), first_sent_at_ns=ms(10))
    assert delivery_rate_bps(packet, delivered_bytes=1000, now_ns=ms(79), min_rtt_ns=ms(50)) is None


@pytest.mark.parametrize(
    ("interval_ns", "min_rtt_ns", "is_believed"),
    [(0, 0, False), (1, 0, True), (1, 2, False), (2, 2, True), (-1, -2, False)],
)
def test_a_delivery_rate_needs_a_time_and_the_smallest_rtt_at_least(
    interval_ns: int, min_rtt_ns: int, is_believed: bool
) -> None:
    packet = Sent(0, 0)
    rate_bps = delivery_rate_bps(
        packet, delivered_bytes=1, now_ns=interval_ns, min_rtt_ns=min_rtt_ns
    )
    assert rate_bps == (8 * 10**9 // interval_ns if is_believed else None)


def test_the_windowed_maximum_is_that_of_the_last_rounds() -> None:
    source = random.Random(1)
    filtered = WindowedMaximum(length=10)
    values = []
    for position in range(500):
        values.append((position // 3, source.randrange(100)))
        newest = position // 3
        expected = max(value for count, value in values if count > newest - 10)
        assert filtered.put(values[-1][1], newest) == expected


def test_the_path_is_full_after_three_rounds_that_bring_less_than_a_quarter_more() -> None:
    rounds = RoundRing()
    full = []
    for rate_bps in (80_000, 100_000, 120_000, 124_000, 126_000, 130_000, 150_000, 157_000):
        rounds.round(rate_bps)
        full.append(rounds.model.is_full)
    # 126 000 is more than 1.25 · 100 000, after two rounds below; then three are not enough.
    assert full == [False] * 7 + [True]


def test_rounds_in_which_the_sender_lacked_data_do_not_fill_the_path() -> None:
    rounds = RoundRing()
    for _ in range(20):
        rounds.round(80_000, is_app_limited=True)
    assert not rounds.model.is_full


def test_a_low_rate_of_a_sender_that_lacked_data_is_ignored_and_a_high_one_is_not() -> None:
    rounds = RoundRing()
    rounds.round(80_000)
    assert [rounds.round(8000, is_app_limited=True) for _ in range(20)] == [80_000] * 20
    assert rounds.round(160_000, is_app_limited=True) == 160_000


def test_low_rates_are_ignored_on_demand_until_what_was_in_flight_has_arrived() -> None:
    rounds = RoundRing()
    rounds.round(80_000)
    for _ in range(20):
        rounds.model.ignore_low_rates(0)
        assert rounds.round(8000) == 80_000
    # The demand ended with the last of them.
    bandwidths = [rounds.round(8000) for _ in range(12)]
    assert bandwidths[-1] == 8000
    # And it may come again.
    rounds.model.ignore_low_rates(0)
    assert rounds.round(800) == 8000


def test_a_round_ends_with_a_packet_that_was_sent_after_it_began() -> None:
    rounds = RoundRing()
    first, second = Sent(0, 0), Sent(1, 0)
    model = rounds.model
    model.on_acked([first], now_ns=ms(100), rtt=rounds.rtt)
    assert (model.round_count, model.is_round_start) == (1, True)
    model.on_acked([second], now_ns=ms(100), rtt=rounds.rtt)
    assert (model.round_count, model.is_round_start) == (1, False)
    third = Sent(2, ms(100), delivered_bytes=1000, delivered_at_ns=ms(100))
    model.on_acked([third], now_ns=ms(200), rtt=rounds.rtt)
    assert (model.round_count, model.is_round_start) == (2, True)


def test_the_smallest_rtt_is_forgotten_after_ten_seconds() -> None:
    model = PathModel()
    seen = []
    for number, (at_ms, rtt_ms) in enumerate(
        [(0, 100), (1000, 90), (5000, 95), (11_000, 95), (11_001, 95), (11_002, 99)]
    ):
        model.on_rtt(number, ms(rtt_ms), now_ns=ms(at_ms))
        seen.append((model.min_rtt_ns // ms(1), model.is_min_rtt_expired))
    assert seen == [
        (100, False),
        (90, False),
        (90, False),
        (90, False),
        (95, True),
        (95, False),
    ]


def test_a_packet_that_was_overtaken_gives_no_rtt() -> None:
    model = PathModel()
    model.on_rtt(5, ms(100), now_ns=ms(100))
    model.on_rtt(3, ms(50), now_ns=ms(110))
    assert model.min_rtt_ns == ms(100)


def test_a_round_trip_that_is_the_first_is_not_too_old_whenever_it_comes() -> None:
    model = PathModel()
    model.on_rtt(0, ms(100), now_ns=ms(11_000))
    assert (model.min_rtt_ns, model.is_min_rtt_expired) == (ms(100), False)


def test_the_path_is_not_filled_by_acks_of_one_round() -> None:
    rounds = RoundRing()
    for _ in range(3):
        rounds.round(80_000)
    for number in range(10):
        # Sent before the round began
        rounds.model.on_acked([Sent(number, 0, 1)], now_ns=ms(400), rtt=rounds.rtt)
    assert not rounds.model.is_full
    rounds.round(80_000)
    assert rounds.model.is_full


def test_a_sample_over_less_than_the_smallest_rtt_leaves_the_bandwidth_as_it_is() -> None:
    rounds = RoundRing()
    rounds.model.on_acked([Sent(0, 0)], now_ns=ms(99), rtt=rounds.rtt)
    assert rounds.model.bandwidth_bps == 0


def test_an_equal_rate_of_a_sender_that_lacked_data_keeps_the_bandwidth_for_ten_rounds_more() -> (
    None
):
    rounds = RoundRing()
    rounds.round(80_000)
    for _ in range(8):
        rounds.round(8000)
    rounds.round(80_000, is_app_limited=True)
    assert [rounds.round(8000) for _ in range(10)] == [80_000] * 9 + [8000]


def test_the_product_follows_both_bandwidth_and_round_trip() -> None:
    rounds = RoundRing()
    assert rounds.model.inflight_bytes(1.0) is None
    rounds.model.on_rtt(0, ms(100), now_ns=0)
    rounds.round(80_000)
    assert rounds.model.inflight_bytes(1.5) == 1500
    rounds.model.on_rtt(1, ms(50), now_ns=0)
    assert rounds.model.inflight_bytes(1.5) == 750


def is_believed(model: PathModel, rtt: RttEstimator, number: int, size_bytes: int) -> bool:
    """Say if a packet, acknowledged ten rounds later with a lower rate, lowers the bandwidth."""
    before_bps = model.bandwidth_bps
    model.round_count += 10
    packet = Sent(number, 0, size_bytes, delivered_bytes=model.delivered_bytes)
    model.on_acked([packet], now_ns=ms(100), rtt=rtt)
    return model.bandwidth_bps < before_bps


def test_what_is_sent_until_what_was_in_flight_has_arrived_is_not_believed() -> None:
    """Of six packets three are in flight when it is asked for, and again with the next one."""
    rounds = RoundRing()
    model = rounds.model
    for number in range(6):
        model.on_sent(number)
    model.on_acked([Sent(0, 0, 10_000)], now_ns=ms(100), rtt=rounds.rtt)
    model.ignore_low_rates(3000)
    model.on_sent(6)
    model.ignore_low_rates(3000)
    model.on_sent(7)
    # 5 left before; 6 and 7 meanwhile.
    seen = [is_believed(model, rounds.rtt, n, 1000 - n) for n in (5, 6)]
    assert seen == [True, False]
    model.on_acked([Sent(2, 0, 1012)], now_ns=ms(100), rtt=rounds.rtt)
    assert model.delivered_bytes == 13_001
    model.on_sent(8)  # 13 000 have arrived and more: it is over
    assert not is_believed(model, rounds.rtt, 7, 900)
    assert is_believed(model, rounds.rtt, 8, 800)


@pytest.mark.parametrize(("size_bytes", "is_over"), [(3000, False), (3001, True)])
def test_it_is_over_when_more_has_arrived_than_was_in_flight(
    size_bytes: int, is_over: bool
) -> None:
    rounds = RoundRing()
    model = rounds.model
    model.on_sent(0)
    model.on_acked([Sent(0, 0, 10_000)], now_ns=ms(100), rtt=rounds.rtt)
    model.ignore_low_rates(3000)
    model.on_acked([Sent(1, 0, size_bytes)], now_ns=ms(100), rtt=rounds.rtt)
    model.on_sent(2)
    assert is_believed(model, rounds.rtt, 2, 100) is is_over
