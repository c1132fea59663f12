"""BBR, version 3, by hand: one packet of 10 000 bytes per round trip of 100 ms.

That is a bandwidth of 800 kbit/s and a bandwidth-delay product of 10 000 bytes. A packet is 1000
bytes: a quantum is 2000 bytes, and the minimum window is 4000. The packet is acknowledged at once,
so 10 000 bytes are added to what may be in flight (§ 5.5.9).
"""

from __future__ import annotations

from typing import Any

import pytest

from h3sim.transport.congestion import BbrController, ControllerSettings
from h3sim.transport.congestion.bbr_common import FullPipeDetector, WindowedMaximum
from h3sim.transport.congestion.bbr_model import UNLIMITED, AckAggregation
from h3sim.transport.delivery_rate import delivery_rate_bps
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import NS_PER_S, ms
from tests.unit.congestion_sender import Sent

SIZE = 10_000
RATE_BPS = 800_000


class Flow:
    """A sender whose packets are acknowledged and lost as a test says."""

    def __init__(self, *, window: int = 10_000, datagram: int = 1000, source: Any = None) -> None:
        settings = ControllerSettings(max_datagram_bytes=datagram, initial_window_bytes=window)
        self.bbr = BbrController(settings, source=source)
        self.rtt = RttEstimator(initial_ns=ms(100))
        self.now_ns = 0
        self.number = 0
        self.in_flight = 0
        self.delivered = 0

    @property
    def state(self) -> str:
        return self.bbr.state.value

    @property
    def window(self) -> int:
        return self.bbr.congestion_window

    @property
    def rate_bps(self) -> int | None:
        return self.bbr.pacing_rate_bps(self.rtt)

    def send(self, size: int = SIZE, *, is_app_limited: bool = False) -> Sent:
        packet = Sent(
            self.number,
            self.now_ns,
            size,
            delivered_bytes=self.delivered,
            delivered_at_ns=self.now_ns,
            first_sent_at_ns=self.now_ns,
            is_app_limited=is_app_limited,
        )
        self.number += 1
        self.in_flight += size
        self.bbr.on_sent(packet, self.in_flight)
        return packet

    def ack(self, *packets: Sent, wait_ms: float = 0) -> None:
        """Acknowledge packets so much later."""
        self.now_ns += ms(wait_ms)
        self.rtt.on_sample(self.now_ns - packets[-1].sent_at_ns)
        n_bytes = sum(packet.size_bytes for packet in packets)
        self.delivered += n_bytes
        self.bbr.on_acked(packets, self.now_ns, self.rtt, self.in_flight, False)
        self.in_flight -= n_bytes

    def lose(self, *packets: Sent) -> None:
        self.bbr.on_lost(packets, self.now_ns, self.in_flight, self.number)
        self.in_flight -= sum(packet.size_bytes for packet in packets)

    def round(self, size: int = SIZE, *, rtt_ms: float = 100, is_app_limited: bool = False) -> None:
        """Send a packet and acknowledge it a round trip later."""
        self.ack(self.send(size, is_app_limited=is_app_limited), wait_ms=rtt_ms)

    def rounds(self, count: int, *, rtt_ms: float = 100) -> list[str]:
        """Return the state after each of so many rounds."""
        states = []
        for _ in range(count):
            self.round(rtt_ms=rtt_ms)
            states.append(self.state)
        return states


class Draws:
    """A source that always draws the same."""

    def __init__(self, whole: int, share: float) -> None:
        self.whole, self.share = whole, share

    def randint(self, low: int, high: int) -> int:
        assert (low, high) == (0, 1)
        return self.whole

    def random(self) -> float:
        return self.share


# States


def test_a_whole_cycle_takes_as_many_rounds_as_the_rules_say() -> None:
    """Three rounds without growth end STARTUP and UP, a round REFILL, ten rounds CRUISE (Reno)."""
    cycle = [*["probe_bw_cruise"] * 9, "probe_bw_refill", *["probe_bw_up"] * 3, "probe_bw_down"]
    flow = Flow()
    assert flow.rounds(4) == [*["startup"] * 3, "probe_bw_cruise"]
    assert flow.rounds(14) == cycle
    assert flow.rounds(14) == cycle
    # The smallest RTT is of 100 ms: after 5100 ms it has expired. PROBE_RTT lasts longer than
    # 200 ms, and begins when the path is empty.
    flow.rounds(19)
    assert flow.now_ns == ms(5100)
    assert flow.rounds(4) == [*["probe_rtt"] * 3, "probe_bw_cruise"]
    assert flow.rounds(10)[-2:] == ["probe_bw_cruise", "probe_bw_refill"]


def test_each_state_has_its_rate_and_its_window() -> None:
    flow, seen = Flow(), {}
    for _ in range(53):
        flow.round()
        seen[flow.state] = (flow.rate_bps, flow.window)
    assert seen == {
        # The rate of the first window; later ones are lower, and only higher ones count.
        "startup": (int(2.77 * RATE_BPS), 3 * SIZE),
        # Two products, and what one ACK covers
        "probe_bw_cruise": (792_000, 30_000),
        "probe_bw_refill": (792_000, 30_000),
        # 2.25 products, that, and two packets
        "probe_bw_up": (990_000, 34_500),
        "probe_bw_down": (712_800, 30_000),
        "probe_rtt": (792_000, 5000),
    }


def test_drain_lasts_until_a_product_is_in_flight() -> None:
    for extra_bytes, state in ((10_000, "probe_bw_cruise"), (10_001, "drain")):
        flow = Flow()
        flow.rounds(3)
        flow.send(extra_bytes)
        flow.round()
        assert flow.state == state


def test_drain_lasts_for_three_rounds_at_most() -> None:
    flow = Flow(window=1_000_000)
    flow.rounds(3)
    flow.send(30_000)
    assert flow.rounds(1) == ["drain"]
    assert (flow.bbr.pacing_gain, flow.rate_bps, flow.window) == (0.5, 396_000, 30_000)
    assert flow.rounds(4) == ["drain", "drain", "drain", "probe_bw_down"]
    # More than a product is in flight: DOWN goes on.
    assert flow.rounds(3) == ["probe_bw_down"] * 3


def test_down_lasts_until_a_product_is_in_flight() -> None:
    for extra_bytes, state in ((10_000, "probe_bw_cruise"), (10_001, "probe_bw_down")):
        flow = Flow()
        flow.rounds(18)
        flow.send(extra_bytes)
        assert flow.rounds(2) == [state] * 2


@pytest.mark.parametrize(
    ("source", "probed_after_ms"),
    # The time of the round that ends more than 2, 2.5 or 2.75 s after 400 ms
    [(Draws(0, 0.0), 2500), (None, 3000), (Draws(0, 0.5), 3000), (Draws(0, 0.75), 3200)],
)
def test_bandwidth_is_probed_after_2_to_3_s(source: Any, probed_after_ms: int) -> None:
    flow = Flow(datagram=100, source=source)  # a product of 100 packets: Reno would take longer
    flow.rounds(4)
    while flow.state == "probe_bw_cruise":
        flow.round()
    assert (flow.state, flow.now_ns) == ("probe_bw_refill", ms(probed_after_ms))


@pytest.mark.parametrize(("whole", "rounds"), [(0, 63), (1, 62)])
def test_bandwidth_is_probed_after_63_rounds_at_the_latest(whole: int, rounds: int) -> None:
    flow = Flow(datagram=100, source=Draws(whole, 0.5))
    flow.rounds(4, rtt_ms=10)
    assert flow.rounds(rounds, rtt_ms=10)[-2:] == ["probe_bw_cruise", "probe_bw_refill"]


# The long-term bound


def in_up(**settings: Any) -> Flow:
    """Return a flow in its first round of UP, with packets of 1000 bytes at 1500 ms."""
    flow = Flow(**settings)
    while flow.state != "probe_bw_up":
        flow.round()
    return flow


def lose_in_up() -> Flow:
    """Return a flow that lost 1000 bytes of 11 000 in UP, and is in CRUISE at 1600 ms.

    Two per cent of the 10 000 bytes before the packet are 200, which is its first fiftieth: 204
    bytes beyond those, as 200 / 0.98.
    """
    flow = in_up()
    rest, lost = flow.send(), flow.send(1000)
    flow.lose(lost)
    assert (flow.state, flow.bbr.inflight_longterm) == ("probe_bw_down", 10_204)
    flow.ack(rest, wait_ms=100)
    return flow


def test_a_probe_that_loses_too_much_bounds_what_is_in_flight() -> None:
    flow = lose_in_up()
    # An eighth and a bit is left to others: int(0.15 * 10 204) bytes.
    assert (flow.state, flow.window) == ("probe_bw_cruise", 8674)
    # The window counts as Reno's: eight rounds from the one that ended DOWN.
    assert flow.rounds(7)[-2:] == ["probe_bw_cruise", "probe_bw_refill"]
    assert flow.window == 10_204


def test_losses_of_a_probe_leave_the_short_term_bounds() -> None:
    flow = lose_in_up()
    flow.rounds(2)
    assert flow.bbr.bandwidth_shortterm_bps == flow.bbr.inflight_shortterm == UNLIMITED


def test_a_full_window_in_up_raises_the_bound_by_one_two_and_four_packets_per_round() -> None:
    flow = lose_in_up()
    flow.rounds(8)
    bounds = []
    for _ in range(4):
        flow.round()
        bounds.append((flow.state, flow.bbr.inflight_longterm))
    assert bounds == [
        # A packet per window of 10 204 bytes, of which 10 000 have been acknowledged
        ("probe_bw_up", 10_204),
        # Twice as many: 20 000 bytes are three times 5102, and 4694 remain
        ("probe_bw_up", 13_204),
        # The window was not full
        ("probe_bw_up", 13_204),
        ("probe_bw_down", 13_204),
    ]
    assert flow.window == 13_204
    flow.round()
    assert (flow.state, flow.window) == ("probe_bw_cruise", 13_204 - 1980)


def test_the_bound_follows_what_was_in_flight_without_losses() -> None:
    flow = lose_in_up()
    flow.round(10_500)
    assert flow.bbr.inflight_longterm == 10_500
    flow.round(9000)
    assert flow.bbr.inflight_longterm == 10_500


def test_the_headroom_is_a_packet_at_least_and_leaves_four() -> None:
    """Packets of 1000 and 2000 bytes, and 0.15 times 10 204 of headroom."""
    windows = []
    for datagram in (1000, 2000, 2500):
        flow = in_up(datagram=datagram)
        rest, lost = flow.send(), flow.send(1000)
        flow.lose(lost)
        flow.ack(rest, wait_ms=100)
        windows.append(flow.window)
    assert windows == [10_204 - 1530, 10_204 - 2000, 10_000]


@pytest.mark.parametrize(
    ("in_flight", "lost", "bound"),
    [
        (50_000, 1, None),  # 1000 bytes are two per cent
        (49_900, 1, 49_897),  # two per cent of the 48 900 before it are 978, of 49 fiftieths
        (60_000, 2, 59_183),  # 1180 of 59 000, of which the first has taken 1000
    ],
)
def test_the_bound_is_where_two_per_cent_were_exceeded(
    in_flight: int, lost: int, bound: int | None
) -> None:
    flow = in_up(window=100_000)
    flow.send(in_flight - 1000 * lost)
    packets = [flow.send(1000) for _ in range(lost)]
    packets[0].in_flight_bytes = in_flight
    flow.lose(*packets)
    if bound is None:
        assert (flow.state, flow.bbr.inflight_longterm) == ("probe_bw_up", UNLIMITED)
    else:
        assert (flow.state, flow.bbr.inflight_longterm) == ("probe_bw_down", bound)


def test_losses_from_before_a_packet_was_sent_do_not_count_for_it() -> None:
    flow = Flow()
    flow.lose(flow.send(1000))
    while flow.state != "probe_bw_up":
        flow.round()
    flow.send()
    flow.lose(flow.send(1000))
    assert flow.bbr.inflight_longterm == 10_204


def test_the_bound_is_seven_tenths_of_the_product_at_least() -> None:
    flow = in_up()
    flow.lose(flow.send(1000))  # nothing was in flight before it
    assert flow.bbr.inflight_longterm == 7000


def test_losses_of_a_limited_application_end_a_probe_and_bound_nothing() -> None:
    flow = in_up()
    flow.send()
    flow.lose(flow.send(1000, is_app_limited=True))
    assert (flow.state, flow.bbr.inflight_longterm) == ("probe_bw_down", UNLIMITED)


def test_losses_are_put_down_to_a_probe_until_the_round_after_it() -> None:
    for rounds, bound in ((0, 10_204), (1, UNLIMITED)):
        flow = in_up()
        assert flow.rounds(3)[-1] == "probe_bw_down"
        flow.rounds(rounds)
        flow.send()
        flow.lose(flow.send(1000))
        assert flow.bbr.inflight_longterm == bound


def test_a_probe_is_judged_once() -> None:
    flow = in_up()
    flow.send(20_000)
    late = flow.send(1000)
    flow.lose(flow.send(1000))
    bound = flow.bbr.inflight_longterm
    assert bound == 21_000 + int(420 / 0.98)
    flow.lose(late)
    assert flow.bbr.inflight_longterm == bound


def test_startup_refill_and_cruise_are_no_probes() -> None:
    for rounds in (2, 6, 14):
        flow = Flow()
        flow.rounds(rounds)
        flow.send()
        flow.lose(flow.send(1000))
        assert flow.bbr.inflight_longterm == UNLIMITED


def test_a_probe_that_reaches_a_bound_that_was_too_high_is_followed_by_another() -> None:
    """§ 5.3.3.6: precautionary probing; what is in flight counts before the ACK."""
    for rest_bytes, states in (
        (1204, ["probe_bw_down", "probe_bw_refill", "probe_bw_up", "probe_bw_up"]),
        (1203, ["probe_bw_up", "probe_bw_up", "probe_bw_up", "probe_bw_down"]),
    ):
        flow = lose_in_up()
        assert flow.rounds(8)[-2:] == ["probe_bw_refill", "probe_bw_up"]
        first, rest = flow.send(9000), flow.send(rest_bytes)
        flow.ack(first, wait_ms=100)
        seen = [flow.state]
        flow.ack(rest)
        assert [*seen, *flow.rounds(3)] == states


def test_a_bound_that_was_not_too_high_ends_no_probe() -> None:
    """The second probe has raised it to 13 204 bytes; the third has as much in flight."""
    flow = lose_in_up()
    while flow.bbr.inflight_longterm < 13_204 or flow.state != "probe_bw_cruise":
        flow.round()
    while flow.state != "probe_bw_up":
        flow.round()
    first, rest = flow.send(12_000), flow.send(1204)
    flow.ack(first, wait_ms=100)
    assert (flow.state, flow.bbr.inflight_longterm) == ("probe_bw_up", 13_204)
    flow.ack(rest)
    assert flow.state == "probe_bw_up"


# The short-term bounds


def lossy_rounds(flow: Flow, *sizes: int) -> list[tuple[int, int]]:
    """Return the short-term bounds after each pair of rounds, the first of which loses a packet."""
    bounds = []
    for size in sizes:
        rest, lost = flow.send(size), flow.send(1000)
        flow.lose(lost)
        before = (flow.bbr.bandwidth_shortterm_bps, flow.bbr.inflight_shortterm)
        flow.ack(rest, wait_ms=100)
        assert (flow.bbr.bandwidth_shortterm_bps, flow.bbr.inflight_shortterm) == before
        flow.round(size)
        bounds.append((flow.bbr.bandwidth_shortterm_bps, flow.bbr.inflight_shortterm))
    return bounds


def test_a_round_of_losses_bounds_the_model_by_its_deliveries_or_seven_tenths() -> None:
    flow = Flow()
    flow.rounds(4)
    assert lossy_rounds(flow, 10_000, 2000, 2000) == [
        # As much is delivered, and 0.7 times the window
        (800_000, 21_000),
        # The round began with the deliveries before the loss.
        (800_000, 14_699),
        # Nothing else was delivered than 2000 bytes per round trip.
        (560_000, 10_289),
    ]
    assert (flow.window, flow.rate_bps) == (10_289, int(0.99 * 560_000))


def test_rounds_without_losses_leave_the_bounds() -> None:
    flow = Flow()
    flow.rounds(4)
    bounds = lossy_rounds(flow, 10_000)
    flow.round(1000)
    flow.round(1000)
    assert [(flow.bbr.bandwidth_shortterm_bps, flow.bbr.inflight_shortterm)] == bounds


def test_losses_of_refill_and_up_bound_nothing() -> None:
    flow = Flow(window=100_000)
    flow.rounds(14)
    assert flow.state == "probe_bw_refill"
    flow.send(80_000)  # so that the losses are below two per cent
    assert lossy_rounds(flow, 2000) == [(UNLIMITED, UNLIMITED)]
    assert flow.state == "probe_bw_up"


# Startup


@pytest.mark.parametrize(
    ("lost", "state"),
    [
        ((3, 5, 7, 9, 11, 13), "probe_bw_cruise"),  # six ranges
        ((4, 5, 7, 8, 10, 12, 13), "startup"),  # four
        ((3, 5, 7, 9, 10, 13), "startup"),  # five
    ],
)
def test_startup_ends_with_six_ranges_that_are_lost_in_a_round(
    lost: tuple[int, ...], state: str
) -> None:
    flow = Flow(window=30_000)
    flow.round()
    packets = [flow.send(1000) for _ in range(13)]
    *first, last = lost
    flow.lose(*(packets[number - 1] for number in first))
    flow.ack(packets[0], wait_ms=100)
    newest = flow.send(12_000)
    flow.lose(packets[last - 1])  # after *newest* was sent, so that it tells of losses
    flow.ack(newest, wait_ms=200)
    assert flow.state == state
    # What was delivered in this round, as it is more than the product.
    assert flow.bbr.inflight_longterm == (UNLIMITED if state == "startup" else 12_000)


def test_a_share_of_losses_that_is_small_ends_no_startup() -> None:
    flow = Flow(window=100_000)
    flow.round()
    packets = [flow.send(100) for _ in range(13)]
    flow.lose(*packets[1:11:2])
    flow.ack(packets[0], wait_ms=100)
    newest = flow.send(50_000)
    flow.lose(packets[11])
    flow.ack(newest, wait_ms=100)
    assert flow.state == "startup"


def test_startup_counts_what_one_ack_covers_of_this_round_only() -> None:
    """Two packets at once are 20 000 bytes on top of two products of 20 000; then one is."""
    flow = Flow(window=30_000)
    flow.ack(flow.send(), flow.send(), wait_ms=100)
    assert flow.window == 50_000
    flow.round()  # 50 000 are not below 40 000 and 10 000
    assert flow.window == 50_000


def test_the_first_window_is_let_out_whatever_the_model_says() -> None:
    """Each round delivers a quarter more: after the fifth 82 072 bytes, which is all of it."""
    flow, windows = Flow(window=82_072), []
    for size in (10_000, 12_500, 15_625, 19_532, 24_415):
        flow.round(size)
        windows.append(flow.window)
    # Two products and an ACK are 30 000 to 73 245 bytes, less than the window.
    assert windows == [92_072, 104_572, 120_197, 139_729, 139_729]
    assert flow.state == "startup"


# PROBE_RTT


def in_probe_rtt(**settings: Any) -> Flow:
    """Return a flow whose PROBE_RTT begins at 5200 ms."""
    flow = Flow(**settings)
    assert flow.rounds(52)[-2:] == ["probe_bw_cruise", "probe_rtt"]
    return flow


def test_the_200_ms_begin_when_half_a_product_is_in_flight() -> None:
    for extra_bytes, n_rounds in ((5000, 2), (5001, 3)):
        flow = Flow()
        flow.rounds(51)
        extra = flow.send(extra_bytes)
        assert flow.rounds(2) == ["probe_rtt"] * 2
        flow.ack(extra)
        assert flow.rounds(3).index("probe_bw_cruise") + 1 == n_rounds


def test_packets_of_probe_rtt_tell_nothing_about_the_path() -> None:
    flow = in_probe_rtt()
    extra = flow.send(3000)
    assert extra.is_app_limited
    assert flow.rounds(3)[-1] == "probe_bw_cruise"
    # Until what was in flight then has been delivered, and a byte more.
    flow.ack(extra)
    assert flow.send(1000).is_app_limited
    flow.round(1000)
    assert not flow.send(1000).is_app_limited
    # Where nothing was in flight, until a byte has been.
    flow = in_probe_rtt()
    flow.rounds(3)
    flow.round(1)
    assert not flow.send(1000).is_app_limited


def test_probe_rtt_needs_a_round_after_the_path_was_empty() -> None:
    flow = Flow()
    flow.rounds(51)
    extra = flow.send(5001)
    assert flow.rounds(1) == ["probe_rtt"]
    late = flow.send(100)
    flow.ack(extra, wait_ms=100)
    flow.ack(late, wait_ms=300)  # sent before
    assert flow.state == "probe_rtt"
    assert flow.rounds(1) == ["probe_bw_cruise"]


def test_a_loss_in_probe_rtt_does_not_forget_the_window_before_it() -> None:
    flow = in_probe_rtt()
    flow.lose(flow.send(1000))
    assert flow.rounds(3)[-1] == "probe_bw_cruise"
    assert flow.window == 30_000


def test_the_first_round_trip_is_no_old_one() -> None:
    flow = Flow()
    flow.now_ns = ms(60_000)
    assert flow.rounds(1) == ["startup"]


def test_a_smaller_round_trip_puts_probe_rtt_off() -> None:
    flow = Flow()
    flow.rounds(40)
    flow.round(rtt_ms=99)
    assert "probe_rtt" not in flow.rounds(20)


def test_the_smallest_round_trip_is_kept_for_ten_seconds() -> None:
    """One of 90 ms, then those of 100: the probes at 5 s replace it once it is ten seconds old."""
    flow = Flow()
    flow.round(rtt_ms=90)
    while flow.now_ns <= ms(10_000):
        flow.round()
        assert flow.bbr.min_rtt_ns == ms(90)
    flow.rounds(2)
    assert flow.bbr.min_rtt_ns == ms(100)


def test_an_application_that_pauses_needs_no_probe_rtt() -> None:
    flow = Flow()
    flow.rounds(51)
    flow.round(is_app_limited=True)
    assert (flow.now_ns, flow.state) == (ms(5200), "probe_bw_cruise")
    # Until the round trip that it had then is five seconds old, too.
    assert flow.rounds(51).index("probe_rtt") == 50


def test_after_a_pause_in_probe_rtt_it_is_over_once_its_time_is() -> None:
    for now_ms, state in ((5400, "probe_rtt"), (5401, "probe_bw_cruise")):
        flow = in_probe_rtt()
        flow.now_ns = ms(now_ms)
        flow.send(is_app_limited=True)
        assert flow.state == state
        assert flow.window == (5000 if state == "probe_rtt" else 30_000)


def test_a_pause_before_the_200_ms_have_begun_ends_nothing() -> None:
    flow = Flow()
    flow.rounds(51)
    extra = flow.send(5001)
    assert flow.rounds(1) == ["probe_rtt"]
    flow.lose(extra)
    flow.send(is_app_limited=True)
    assert flow.state == "probe_rtt"


def test_probe_rtt_of_startup_leads_back_to_it() -> None:
    flow = Flow()
    for _ in range(51):
        flow.round(is_app_limited=True)
    flow.send(1000)  # no pause
    flow.round()
    assert (flow.state, flow.window) == ("probe_rtt", 5000)
    assert flow.rounds(3) == ["probe_rtt", "probe_rtt", "startup"]
    assert flow.window == 30_000


# Rate and window


def test_after_a_pause_the_rate_is_that_of_the_path() -> None:
    for is_app_limited, others, rate_bps in (
        (True, 0, 792_000),
        (False, 0, 990_000),
        (True, 1, 990_000),
    ):
        flow = in_up()
        flow.in_flight = others
        flow.send(is_app_limited=is_app_limited)
        assert flow.rate_bps == rate_bps


def test_a_pause_of_startup_leaves_its_rate() -> None:
    flow = Flow()
    flow.round()
    flow.send(is_app_limited=True)
    assert flow.rate_bps == 2_216_000


def test_a_quantum_is_what_leaves_in_a_millisecond_up_to_64_kib() -> None:
    """Two products and an ACK are 30 000 bytes; 0.99 of the rate is 49 500 bytes per ms."""
    windows = []
    for rtt_ms in (0.4, 0.2, 0.1):
        flow = Flow()
        flow.rounds(8, rtt_ms=rtt_ms)
        assert flow.state == "probe_bw_cruise"
        windows.append(flow.window)
    assert windows == [30_000, 49_500, 65_536]


def test_without_a_round_trip_the_first_window_leaves_in_a_millisecond() -> None:
    flow = Flow()
    assert flow.rate_bps == int(2.77 * 80_000_000)
    flow.rtt.on_sample(0)
    assert flow.rate_bps == int(2.77 * 80_000 * NS_PER_S)  # as if it were a nanosecond
    slow = Flow()
    slow.rtt.on_sample(10**15)
    assert slow.rate_bps == 1


def test_the_bandwidth_is_the_largest_of_two_cycles() -> None:
    """A cycle later 790 kbit/s take the place of 800, unless those were seen again."""
    for limited_bytes, expected_bps in ((10_000, 800_000), (9950, 790_000)):
        flow = Flow()
        flow.rounds(4)
        for n in range(15):
            flow.round(9875)
            assert n == 14 or flow.bbr.max_bandwidth_bps == 800_000
            if n == 5:
                # A rate that the application limits counts only if it is as high.
                flow.round(limited_bytes, is_app_limited=True)
        assert flow.bbr.max_bandwidth_bps == expected_bps


@pytest.mark.parametrize(("is_app_limited", "bandwidth_bps"), [(False, 790_000), (True, 800_000)])
def test_a_cycle_that_the_application_limits_does_not_count(
    is_app_limited: bool, bandwidth_bps: int
) -> None:
    flow = Flow()
    flow.rounds(4)
    while flow.state != "probe_bw_down":
        flow.round(9875)
    flow.round(9875, is_app_limited=is_app_limited)
    flow.round(9875)
    assert flow.bbr.max_bandwidth_bps == bandwidth_bps


def test_an_ack_without_a_rate_leaves_the_bandwidth() -> None:
    flow = Flow()
    flow.rounds(4)
    for _ in range(30):  # two cycles
        packet = flow.send()
        packet.delivered_at_ns += ms(50)  # less than a round trip
        flow.ack(packet, wait_ms=100)
    assert flow.bbr.max_bandwidth_bps == RATE_BPS


def test_recovery_restores_the_window_that_was_before_it() -> None:
    """And not that of a recovery before: a window of 8674 bytes is probed after eight rounds."""
    flow = lose_in_up()
    assert flow.rounds(6)[-1] == "probe_bw_cruise"
    flow.lose(flow.send(1000))
    flow.bbr.on_persistent_congestion(flow.now_ns)
    assert flow.window == 2000
    assert flow.rounds(1) == ["probe_bw_refill"]


def test_persistent_congestion_lasts_until_recovery_is_over() -> None:
    flow = Flow()
    flow.round()
    late, lost = flow.send(), flow.send(1000)
    flow.lose(lost)
    flow.bbr.on_persistent_congestion(flow.now_ns)
    assert flow.window == 2000
    flow.ack(late, wait_ms=100)  # sent before the loss
    assert flow.window == 12_000
    flow.round()
    assert flow.window == 30_000  # the 20 000 from before, and what was acknowledged


# The parts


def test_a_rate_is_over_the_longer_of_the_times_of_sending_and_of_acks() -> None:
    packet = Sent(0, ms(50), delivered_bytes=1000, delivered_at_ns=ms(60))
    packet.first_sent_at_ns = ms(10)
    assert delivery_rate_bps(packet, 11_000, ms(90), ms(40)) == 2_000_000  # 40 and 30 ms
    assert delivery_rate_bps(packet, 11_000, ms(140), ms(40)) == 1_000_000  # 80 ms
    assert delivery_rate_bps(packet, 11_000, ms(90), ms(40) + 1) is None
    packet.first_sent_at_ns = packet.delivered_at_ns = ms(50)
    assert delivery_rate_bps(packet, 11_000, ms(50), 0) is None
    assert delivery_rate_bps(packet, 11_000, ms(50) + 1, 0) == 80_000 * NS_PER_S


def test_an_equal_value_stays_in_the_window_longer() -> None:
    maximum = WindowedMaximum(length=3)
    assert [maximum.put(5, 0), maximum.put(5, 2), maximum.put(1, 4), maximum.put(1, 5)] == [
        5,
        5,
        5,
        1,
    ]


def test_growth_starts_the_count_of_rounds_anew() -> None:
    detector = FullPipeDetector()
    detector.on_round(100)
    detector.on_round(124)
    detector.on_round(124)
    detector.on_round(125)  # exactly a quarter more
    for _ in range(3):
        assert not detector.is_full
        detector.on_round(156)
    assert detector.is_full


def test_what_acks_cover_is_compared_with_what_the_path_delivers() -> None:
    """8 Mbit/s are 1000 bytes per millisecond."""
    aggregation, rate_bps = AckAggregation(), 8_000_000
    aggregation.on_acked(1000, ms(1), rate_bps, 10**6, 0)
    aggregation.on_acked(5000, ms(1.5), rate_bps, 10**6, 0)
    assert aggregation.extra_bytes == 5500
    aggregation.on_acked(1000, ms(2), rate_bps, 10**6, 0)
    assert aggregation.extra_bytes == 6000
    aggregation.on_acked(10_000, ms(2), rate_bps, 7000, 0)
    assert aggregation.extra_bytes == 7000  # the window
    aggregation.forget()
    aggregation.on_acked(1, ms(100), rate_bps, 10**6, 0)
    assert aggregation.extra_bytes == 1


def test_after_a_pause_acks_are_compared_with_the_time_since() -> None:
    aggregation, rate_bps = AckAggregation(), 8_000_000
    aggregation.on_acked(1000, ms(1), rate_bps, 10**6, 0)
    aggregation.restart(ms(11))
    aggregation.on_acked(5000, ms(11.5), rate_bps, 10**6, 0)
    assert aggregation.extra_bytes == 5500
