"""HyStart++ by hand (RFC 9406): rounds of ten packets of 1000 bytes, each acknowledged alone."""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.congestion import HyStart
from h3sim.values.units import ms
from tests.unit.congestion_sender import Sender


class RoundRing:
    """Sends rounds of packets, and hands their RTTs to HyStart++."""

    def __init__(self) -> None:
        self.hystart = HyStart(max_datagram_bytes=1000)
        self.next_number = 0

    def round(self, *rtts_ms: Any) -> Any:
        """Return whether an ACK of this round ended slow start."""
        first = self.next_number
        self.next_number += len(rtts_ms)
        for number in range(first, self.next_number):
            self.hystart.on_sent(number)
        ends = [
            self.hystart.on_ack(first + position, ms(rtt)) for position, rtt in enumerate(rtts_ms)
        ]
        return any(ends)


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "is_conservative"),
    [
        (20, 23.9, False),  # 4 ms at least
        (20, 24, True),
        (100, 112.4, False),  # an eighth
        (100, 112.5, True),
        (400, 415.9, False),  # 16 ms at most
        (400, 416, True),
    ],
)
def test_a_round_whose_smallest_rtt_has_risen_by_the_threshold_begins_conservative_slow_start(
    before_ms: float, after_ms: float, is_conservative: bool
) -> None:
    rounds = RoundRing()
    rounds.round(*[before_ms + 50] * 9, before_ms)
    rounds.round(*[after_ms] * 8)
    assert rounds.hystart.is_conservative == is_conservative


def test_seven_samples_are_not_enough() -> None:
    rounds = RoundRing()
    rounds.round(*[100] * 10)
    rounds.round(*[200] * 7)
    assert not rounds.hystart.is_conservative


def test_one_low_sample_keeps_slow_start() -> None:
    rounds = RoundRing()
    rounds.round(*[100] * 10)
    rounds.round(100, *[200] * 9)
    assert not rounds.hystart.is_conservative


def test_conservative_slow_start_grows_by_a_quarter_and_neither_by_more_than_eight_packets() -> (
    None
):
    rounds = RoundRing()
    assert [rounds.hystart.growth_bytes(n) for n in (2000, 8000, 9000)] == [2000, 8000, 8000]
    rounds.round(*[100] * 10)
    rounds.round(*[200] * 10)
    assert [rounds.hystart.growth_bytes(n) for n in (2000, 8000, 9000)] == [500, 2000, 2000]


def test_slow_start_ends_after_five_conservative_rounds_the_begun_one_included() -> None:
    rounds = RoundRing()
    rounds.round(*[100] * 10)
    # A round is over when the first packet of the next comes back.
    assert [rounds.round(*[200] * 10) for _ in range(6)] == [False] * 5 + [True]


def test_slow_start_resumes_when_the_rtt_falls_below_what_it_was_when_it_was_left() -> None:
    rounds = RoundRing()
    rounds.round(*[100] * 10)
    rounds.round(*[200] * 10)
    rounds.round(*[200] * 10)
    assert rounds.hystart.is_conservative
    rounds.round(*[199] * 8)
    assert not rounds.hystart.is_conservative
    # The count begins anew with the next rise.
    rounds.round(*[100] * 10)  # type: ignore[unreachable]
    assert [rounds.round(*[200] * 10) for _ in range(6)] == [False] * 5 + [True]


def test_a_round_lasts_until_a_packet_comes_back_that_was_sent_after_it_began() -> None:
    hystart = HyStart(max_datagram_bytes=1000)
    for number in range(10):
        hystart.on_sent(number)
    for number in range(10):
        # Each ACK releases two packets, the first ones while the first round still lasts.
        hystart.on_ack(number, ms(100))
        hystart.on_sent(10 + 2 * number)
        hystart.on_sent(11 + 2 * number)
    for number in range(10, 17):
        hystart.on_ack(number, ms(200))
    assert not hystart.is_conservative
    hystart.on_ack(17, ms(200))
    assert hystart.is_conservative


def test_an_ack_that_was_overtaken_gives_no_sample() -> None:
    hystart = HyStart(max_datagram_bytes=1000)
    for number in range(30):
        hystart.on_sent(number)
    hystart.on_ack(0, ms(100))
    for number in range(30, 38):
        hystart.on_sent(number)
    for number in range(30, 37):
        hystart.on_ack(number, ms(200))
    hystart.on_ack(5, ms(200))
    assert not hystart.is_conservative
    hystart.on_ack(37, ms(200))
    assert hystart.is_conservative


@pytest.mark.parametrize("name", ["newreno", "cubic"])
def test_a_delay_that_rises_ends_the_slow_start_of_a_controller(name: str) -> None:
    sender = Sender(name, hystart=True)
    growth = []
    for rtt_ms in (100, *[150] * 6):
        before = sender.window
        sender.rtt.latest_rtt_ns = ms(rtt_ms)
        first = sender.next_number
        sender.send(20, at_ms=0)
        for number in range(first, first + 20):
            sender.ack(number, at_ms=0)
        growth.append(sender.window - before)
    # Eight samples tell; then 250 bytes are added per packet, in this round and four more. The
    # first ACK of the sixth ends slow start.
    assert growth[:6] == [20_000, 8 * 1000 + 12 * 250, *[20 * 250] * 4]
    assert sender.controller.ssthresh == 10_000 + sum(growth[:6]) + 250
    # In congestion avoidance 19 packets add less than half a packet to 60.
    assert 250 < growth[6] < 250 + 500


@pytest.mark.parametrize("name", ["newreno", "cubic"])
def test_a_loss_ends_hystart_for_good(name: str) -> None:
    sender = Sender(name, window=100_000, hystart=True)
    sender.send(at_ms=0)
    sender.lose(0, at_ms=100)
    sender.controller.on_persistent_congestion(now_ns=ms(100))
    for rtt_ms in (100, 300, 300):
        sender.rtt.latest_rtt_ns = ms(rtt_ms)
        before = sender.window
        first = sender.next_number
        sender.send(10, at_ms=200)
        for number in range(first, first + 10):
            sender.ack(number, at_ms=200)
        assert sender.window == before + 10_000


def test_without_hystart_a_delay_that_rises_changes_nothing() -> None:
    sender = Sender("newreno")
    for rtt_ms in (100, 300, 600, 900, 1200):
        sender.rtt.latest_rtt_ns = ms(rtt_ms)
        for _ in range(10):
            sender.exchange(at_ms=200)
    assert sender.window == 60_000
    assert sender.controller.ssthresh is None


def test_hystart_lets_cubic_begin_at_its_plateau() -> None:
    sender = Sender("cubic", window=70_000, hystart=True)
    sender.exchange(at_ms=0)
    for rtt_ms in (100, *[200] * 5):
        sender.rtt.latest_rtt_ns = ms(rtt_ms)
        first = sender.next_number
        sender.send(10, at_ms=0)
        for number in range(first, first + 10):
            sender.ack(number, at_ms=0)
    assert sender.controller.ssthresh is None
    sender.exchange(at_ms=0)
    start = sender.controller.ssthresh
    sender.exchange(at_ms=1000)
    for _ in range(700):
        sender.exchange(at_ms=4000)
    # RFC 9438 § 4.10: K = 0, and three seconds and an RTT give 0.4 · 3.1³ packets.
    assert sender.window == pytest.approx(start + 0.4 * 3.1**3 * 1000, rel=0.003)
