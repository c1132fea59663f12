"""What BBR knows of a path, by hand: delivery rates, rounds, the smallest RTT."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.transport.congestion.bbr_model import PathModel
from h3sim.transport.congestion.delivery_rate import WindowedMaximum, delivery_rate_bps
from h3sim.transport.rtt import RttEstimator
from h3sim.units import ms
from tests.unit.congestion_sender import Sent


class Rounds:
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
    for place in range(500):
        values.append((place // 3, source.randrange(100)))
        newest = place // 3
        expected = max(value for count, value in values if count > newest - 10)
        assert filtered.put(values[-1][1], newest) == expected


def test_the_path_is_full_after_three_rounds_that_bring_less_than_a_quarter_more() -> None:
    rounds = Rounds()
    full = []
    for rate_bps in (80_000, 100_000, 120_000, 124_000, 126_000, 130_000, 150_000, 157_000):
        rounds.round(rate_bps)
        full.append(rounds.model.is_full)
    # 126 000 is more than 1.25 · 100 000, after two rounds below; then three are not enough.
    assert full == [False] * 7 + [True]


def test_rounds_in_which_the_sender_lacked_data_do_not_fill_the_path() -> None:
    rounds = Rounds()
    for _ in range(20):
        rounds.round(80_000, is_app_limited=True)
    assert not rounds.model.is_full


def test_a_low_rate_of_a_sender_that_lacked_data_is_ignored_and_a_high_one_is_not() -> None:
    rounds = Rounds()
    rounds.round(80_000)
    assert [rounds.round(8000, is_app_limited=True) for _ in range(20)] == [80_000] * 20
    assert rounds.round(160_000, is_app_limited=True) == 160_000


def test_low_rates_are_ignored_on_demand_until_what_was_in_flight_has_arrived() -> None:
    rounds = Rounds()
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
    rounds = Rounds()
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
