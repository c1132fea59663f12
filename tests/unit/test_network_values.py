"""Constant rates, networks of links and flows beside them: their limits, and what they come to."""

from __future__ import annotations

import random
import re
from fractions import Fraction
from typing import Any

import pytest

from h3sim.trace import Delivery
from h3sim.transport import ConstantRate, LinkProfile, Network, Protocol
from h3sim.transport.link_profile import Jitter, PacketHold
from h3sim.transport.network import CrossFlow, parse_cross_traffic
from h3sim.values.errors import NetworkError
from h3sim.values.units import mbps, ms
from tests.helpers import unworded

ONE_NS = Fraction(1)


def refused(make: Any) -> list[str]:
    with pytest.raises(NetworkError) as caught:
        make()
    return caught.value.lines()


@pytest.mark.parametrize("packet_bytes", [1, 65_507])
@pytest.mark.parametrize("interval_ns", [ONE_NS, Fraction(7, 3), Fraction(60 * 10**9)])
def test_a_constant_rate_is_taken_up_to_its_limits(
    packet_bytes: int, interval_ns: Fraction
) -> None:
    made = ConstantRate(packet_bytes=packet_bytes, interval_ns=interval_ns)
    assert (made.packet_bytes, made.interval_ns) == (packet_bytes, interval_ns)


def test_a_constant_rate_beyond_its_limits_is_refused() -> None:
    """The largest payload of a UDP datagram over IPv4 is 65,507 bytes."""
    for packet_bytes in (0, 65_508):
        (line,) = refused(lambda n=packet_bytes: ConstantRate(packet_bytes=n, interval_ns=ONE_NS))
        limits = f"packet_bytes: must be 1 to 65,507, is {packet_bytes}"
        assert unworded([line]) == unworded([limits])
    for interval_ns, given in (
        (Fraction(1, 2), "0.5"),
        (Fraction(60 * 10**9 + 1), "6e+10"),
        (Fraction(2**63 - 1), "9.22337e+18"),
        (Fraction(2**63), "a huge number of"),
    ):
        (line,) = refused(lambda at=interval_ns: ConstantRate(packet_bytes=1, interval_ns=at))
        assert line == f"interval_ms: must be 1 ns to 60 s between packets, is {given} ns"
    assert type(ConstantRate(packet_bytes=1, interval_ns=5).interval_ns) is Fraction  # type: ignore[arg-type]
    for wrong in (True, 1.5, "1"):
        (line,) = refused(lambda at=wrong: ConstantRate(packet_bytes=1, interval_ns=at))
        assert line.startswith("interval_ms: must be whole or a Fraction")


@pytest.mark.parametrize("rate_bps", [0, -1, 1.5, True, "1"])
def test_a_rate_is_an_integer_above_0(rate_bps: Any) -> None:
    (line,) = refused(lambda: ConstantRate.at_rate(packet_bytes=1400, rate_bps=rate_bps))
    assert line.startswith("rate_mbps: must be a whole number above 0, is ")


def test_a_rate_with_impossible_packets_reports_the_packets_alone() -> None:
    for packet_bytes in (0, 65_508):
        (line,) = refused(lambda n=packet_bytes: ConstantRate.at_rate(packet_bytes=n, rate_bps=1))
        assert line.startswith("packet_bytes: ")
    # 65,507 bytes in 60 s are 8734.3 bit/s: a bit/s less and they take longer than may be.
    assert ConstantRate.at_rate(packet_bytes=65_507, rate_bps=8735).rate_bps == 8735
    (line,) = refused(lambda: ConstantRate.at_rate(packet_bytes=65_507, rate_bps=8734))
    assert line.startswith("interval_ms: must be 1 ns to 60 s")


def test_of_packets_that_are_no_number_the_rate_asks_nothing() -> None:
    (line,) = refused(lambda: ConstantRate.at_rate(packet_bytes="all", rate_bps=1))  # type: ignore[arg-type]
    assert line.startswith("packet_bytes: must be a whole number")


def test_ticks_are_integer_multiples_of_an_interval_that_may_be_fractional() -> None:
    pace = ConstantRate.at_rate(packet_bytes=1, rate_bps=mbps(3))  # 2666 and 2/3 ns
    assert [pace.tick_at_ns(number) for number in range(4)] == [0, 2666, 5333, 8000]
    # The first at or after: that at 2666.67 is over 2667 ns later.
    assert [pace.first_tick_from(at) for at in (0, 1, 2666, 2667, 5333, 5334)] == [0, 1, 1, 2, 2, 3]
    assert pace.rate_bps == mbps(3)
    assert ConstantRate(packet_bytes=1, interval_ns=Fraction(3)).rate_bps == 2_666_666_667


def test_tcp_takes_a_round_trip_more_than_quic_and_delivers_in_one_order() -> None:
    assert [protocol.handshake_rtts for protocol in (Protocol.QUIC, Protocol.TCP)] == [1, 2]
    assert Protocol.QUIC.delivery is Delivery.STREAM
    assert Protocol.TCP.delivery is Delivery.CONNECTION


@pytest.mark.parametrize(
    ("values", "interval_ns"),
    [
        ({"constant_rate": ConstantRate(packet_bytes=9, interval_ns=Fraction(5, 2))}, 2.5),
        # 1500 bytes at 12 Mbit/s take a millisecond.
        ({"down": LinkProfile(rate_bps=mbps(12))}, 1e6),
        ({"down": LinkProfile()}, 1e5),
    ],
)
def test_between_two_full_packets_lies_the_pace_or_a_packet_s_time(
    values: Any, interval_ns: float
) -> None:
    assert Network(name="x", **values).packet_interval_ns == interval_ns


def test_half_of_a_round_trip_is_spent_downward() -> None:
    assert Network(name="x", rtt_ns=7, down=LinkProfile()).one_way_ns == 3


class TestFullPackets:
    """A queue that a full packet never enters makes a load stand still."""

    def network(self, **up: Any) -> Network:
        queued = LinkProfile(rate_bps=mbps(1), queue_bytes=1600, frame_overhead_bytes=14)
        return Network(name="x", rtt_ns=ms(100), down=queued, up=LinkProfile(**up))

    def test_one_that_just_fits_with_its_frame_is_let_in(self) -> None:
        self.network().check_packets(down_bytes=1586, up_bytes=10**6)
        lines = refused(lambda: self.network().check_packets(down_bytes=1587, up_bytes=10**6))
        assert lines == [
            "x: down.queue_bytes: must hold a full packet of this load (1,601 bytes), holds 1,600"
        ]

    def test_a_link_without_a_limit_hides_no_error_of_the_other(self) -> None:
        up = LinkProfile(rate_bps=mbps(1), queue_bytes=1600)
        network = Network(name="x", rtt_ns=ms(100), down=LinkProfile(), up=up)
        (line,) = refused(lambda: network.check_packets(down_bytes=9999, up_bytes=1601))
        assert line.startswith("x: up.queue_bytes: must hold a full packet")
        pace = ConstantRate(packet_bytes=9, interval_ns=ONE_NS)
        assert Network(name="x", constant_rate=pace).down is None
        Network(name="x", constant_rate=pace).check_packets(down_bytes=9999, up_bytes=9999)

    def test_both_directions_are_reported_in_the_words_of_the_profile(self) -> None:
        # A product of 1 Mbit/s and 100 ms is 12,500 bytes.
        network = self.network(rate_bps=mbps(1), queue_bdp=0.2, frame_overhead_bytes=0)
        network.check_packets(down_bytes=1500, up_bytes=2500)
        lines = refused(lambda: network.check_packets(down_bytes=2000, up_bytes=2501))
        assert [line.split(":")[1].strip() for line in lines] == [
            "down.queue_bytes",
            "up.queue_bdp",
        ]


def test_a_queue_of_exactly_a_packet_is_enough() -> None:
    # 1514 bytes are 12,112 bits: at 1 Mbit/s a round trip of 12.112 ms.
    link = LinkProfile(rate_bps=mbps(1), queue_bdp=1)
    Network(name="x", rtt_ns=ms(12.112), down=link)
    lines = refused(lambda: Network(name="x", rtt_ns=ms(12.104), down=link, up=LinkProfile()))
    assert re.search(r"queue_bdp: .*1514.*, is 1513", lines[0])
    lines = refused(lambda: Network(name="x", rtt_ns=0, down=link, up=LinkProfile()))
    assert lines[0].endswith("at this rate and RTT, is 0")


class TestHolding:
    """Every n-th packet waits until k others have left, and half an interval more."""

    @pytest.mark.parametrize(("text", "jitter"), [("4:2", (4, 2, 2)), ("1:0-3", (1, 0, 3))])
    def test_it_is_stated_in_text(self, text: str, jitter: tuple[int, int, int]) -> None:
        made = Jitter.parse(text)
        assert made is not None
        assert (made.every, made.min_overtaken, made.max_overtaken) == jitter
        assert made.text == text
        assert Jitter.parse("none") is None

    def test_a_packet_that_none_shall_overtake_is_not_held(self) -> None:
        jitter = Jitter(every=2, min_overtaken=0, max_overtaken=0)
        hold = PacketHold(jitter, interval_ns=10, source=random.Random(0))
        assert [hold.next_hold_ns() for _ in range(4)] == [0, 0, 0, 0]

    def test_one_that_others_shall_overtake_is_held_between_two_of_them(self) -> None:
        jitter = Jitter(every=2, min_overtaken=1, max_overtaken=1)
        hold = PacketHold(jitter, interval_ns=10, source=random.Random(0))
        assert [hold.next_hold_ns() for _ in range(4)] == [0, 15, 0, 15]
        assert [hold.next_hold_of_ns(100) for _ in range(2)] == [0, 150]


class TestFlows:
    def test_a_greedy_flow_starts_at_once_and_has_no_segments(self) -> None:
        (flow,) = parse_cross_traffic("cubic")
        assert flow == CrossFlow(cc="cubic", starts_at_ns=0, mean_bps=None, period_ns=0)
        assert (flow.segment_bytes, flow.text) == (None, "cubic")

    def test_a_segment_has_at_least_a_byte(self) -> None:
        for mean_bps, n_bytes in ((8000, 1), (15_999, 1), (16_000, 2), (1, 1)):
            flow = CrossFlow(cc="cubic", mean_bps=mean_bps, period_ns=ms(1))
            assert flow.segment_bytes == n_bytes

    @pytest.mark.parametrize(
        "text",
        ["cubic@0", "cubic@600000", "on-off:100000:600000@600000", "on-off:0.001:0.001"],
    )
    def test_flows_are_taken_up_to_their_limits(self, text: str) -> None:
        assert len(parse_cross_traffic(text)) == 1

    @pytest.mark.parametrize(
        ("text", "n_issues"),
        [
            ("cubic@600001", 1),
            ("on-off:100001", 1),
            ("on-off:1:600001", 1),
            ("on-off:100001:600001@600001", 3),
            ("on-off:1:2:3", 1),
            ("on-off:0@0", 1),  # a start may be 0, a rate may not
        ],
    )
    def test_flows_beyond_their_limits_are_reported(self, text: str, n_issues: int) -> None:
        assert len(refused(lambda: parse_cross_traffic(text))) == n_issues
