"""BBR, version 3: the cases of the draft's appendix, on a path of 8 Mbit/s and 51 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.transport.congestion import BbrController, BbrState, ControllerSettings
from h3sim.transport.congestion.bbr_common import FullPipeDetector
from h3sim.transport.congestion.bbr_model import UNLIMITED, AckAggregation
from h3sim.transport.rtt import RttEstimator
from h3sim.values.units import NS_PER_S, ms
from tests.helpers import page_of
from tests.unit.congestion_path import PACKET_BYTES, RATE_BPS, Path
from tests.unit.congestion_sender import Sent

if TYPE_CHECKING:
    from collections.abc import Callable

BDP_BYTES = 51_000
"""50 ms, and the millisecond of a packet, at 8 Mbit/s."""


def path_with(**settings: Any) -> Path:
    made = ControllerSettings(max_datagram_bytes=PACKET_BYTES, **settings)
    return Path(BbrController(made))


def names(path: Path) -> list[str]:
    return [state.value for _, state in path.states()]


# Startup and Drain


def test_startup_ends_on_a_plateau_and_drain_without_its_queue() -> None:
    path = path_with()
    path.run(NS_PER_S)
    assert names(path) == ["startup", "drain", "probe_bw_cruise"]
    assert path.controller.max_bandwidth_bps == pytest.approx(RATE_BPS, rel=0.02)
    assert path.controller.min_rtt_ns == ms(51)
    startup = [in_flight for _, state, _, in_flight, _ in path.log if state is BbrState.STARTUP]
    # § 5.3.1.1: at most one bandwidth-delay product waits, by a window gain of 2.
    assert BDP_BYTES < max(startup) <= 2.1 * BDP_BYTES
    assert path.log[-1][3] <= BDP_BYTES


def test_three_rounds_without_a_quarter_more_are_a_plateau() -> None:
    detector = FullPipeDetector()
    for rate_bps in (100, 125, 156, 157, 156):
        detector.on_round(rate_bps)
    assert not detector.is_full  # 156 is below 1.25 times 125: two rounds, and this was the third
    detector.on_round(400)
    for _ in range(3):
        assert not detector.is_full
        detector.on_round(499)
    assert (detector.is_full, detector.was_full) == (True, True)
    detector.restart(0)
    assert (detector.is_full, detector.was_full) == (False, True)


def test_startup_ends_when_six_ranges_of_a_round_are_lost() -> None:
    path = path_with()
    path.lose = lambda number: number > 60 and number % 10 == 0
    path.run(ms(500))
    begins_ns = next(at_ns for at_ns, state in path.states() if state is BbrState.DRAIN)
    # Without losses it is at 580 ms.
    assert begins_ns < ms(400)
    assert path.controller.inflight_longterm != UNLIMITED


def test_a_burst_of_losses_does_not_end_startup() -> None:
    path = path_with()
    path.lose = lambda number: 60 < number < 80
    path.run(ms(350))
    assert names(path) == ["startup"]


def test_an_application_that_pauses_ends_no_startup() -> None:
    path = path_with()
    path.is_app_limited = True
    path.run(3 * NS_PER_S)
    assert names(path) == ["startup"]


# ProbeBW


def probed() -> Path:
    path = path_with()
    path.run(5 * NS_PER_S)
    return path


def test_bandwidth_is_probed_every_two_to_three_seconds() -> None:
    path = path_with()
    path.run(4_500 * 10**6)
    assert names(path)[2:7] == [
        "probe_bw_cruise",
        "probe_bw_refill",
        "probe_bw_up",
        "probe_bw_down",
        "probe_bw_cruise",
    ]
    times = {state.value: at_ns for at_ns, state in path.states()[2:6]}
    assert 2 * NS_PER_S < times["probe_bw_refill"] - times["probe_bw_cruise"] < 3 * NS_PER_S
    # REFILL takes one round trip (§ 5.3.3.3).
    assert times["probe_bw_up"] - times["probe_bw_refill"] == pytest.approx(ms(51), rel=0.05)


def test_a_short_path_is_probed_as_often_as_reno_would() -> None:
    """§ 5.3.3.9: after as many round trips as packets are in flight, here 8."""
    path = Path(BbrController(ControllerSettings(max_datagram_bytes=1000)), rtt_ns=ms(7))
    path.run(2 * NS_PER_S)
    refills = [at_ns for at_ns, state in path.states() if state is BbrState.PROBE_BW_REFILL]
    assert refills[1] - refills[0] < ms(8 * 2 * 10)


@pytest.mark.parametrize(
    ("state", "gain", "most_bytes"),
    [
        (BbrState.PROBE_BW_CRUISE, 1.0, 1.02 * BDP_BYTES),
        (BbrState.PROBE_BW_REFILL, 1.0, 1.02 * BDP_BYTES),
        (BbrState.PROBE_BW_UP, 1.25, 2.25 * BDP_BYTES),
    ],
)
def test_what_is_in_flight_follows_the_gain(
    state: BbrState, gain: float, most_bytes: float
) -> None:
    in_flight = [entry[3] for entry in probed().log if entry[1] is state]
    gains = {entry[2] for entry in probed().log if entry[1] is state}
    assert gains == {gain}
    assert max(in_flight) <= most_bytes


def test_more_bandwidth_is_found_by_the_probes() -> None:
    path = probed()
    path.rate_bps = 4 * RATE_BPS
    path.run(16 * NS_PER_S)
    assert path.controller.max_bandwidth_bps == pytest.approx(4 * RATE_BPS, rel=0.05)


def test_less_bandwidth_is_believed_after_two_cycles() -> None:
    path = probed()
    path.rate_bps = RATE_BPS // 4
    path.run(20 * NS_PER_S)
    assert path.controller.max_bandwidth_bps == pytest.approx(RATE_BPS / 4, rel=0.05)


# Losses


def run_until(path: Path, holds: Callable[[BbrController], bool]) -> Path:
    while not holds(path.controller):
        path.run(path.now_ns + ms(1))
        assert path.now_ns < 20 * NS_PER_S
    return path


def bounded(share: int) -> Path:
    """Return a path that loses every share-th packet from 1.5 s on, after its second reaction.

    The first is to a round whose largest samples are from before the losses.
    """
    path = path_with()
    path.run(ms(1500))
    path.lose = lambda number: number % share == 0
    return run_until(path, lambda bbr: bbr.bandwidth_shortterm_bps < 0.98 * RATE_BPS)


def test_losses_while_cruising_bound_the_short_term_model_by_what_is_delivered() -> None:
    path = bounded(10)
    bbr = path.controller
    assert bbr.state is BbrState.PROBE_BW_CRUISE
    assert path.now_ns < ms(1500 + 4 * 51)
    # Nine tenths of 0.99 of the rate are delivered.
    assert bbr.bandwidth_shortterm_bps == pytest.approx(0.9 * 0.99 * RATE_BPS, rel=0.05)
    assert 0.9 * BDP_BYTES < bbr.inflight_shortterm < 2 * BDP_BYTES
    assert bbr.inflight_longterm == UNLIMITED


def test_a_round_that_delivers_next_to_nothing_takes_three_tenths() -> None:
    bbr = bounded(2).controller
    # Half is delivered; the bound falls to 0.7 of the bandwidth at most (§ 5.5.10.3).
    assert bbr.bandwidth_shortterm_bps == pytest.approx(0.7 * 0.99 * RATE_BPS, rel=0.02)


def test_a_probe_forgets_the_short_term_model() -> None:
    path = bounded(10)
    path.lose = lambda number: False
    run_until(path, lambda bbr: bbr.state is BbrState.PROBE_BW_REFILL)
    assert path.controller.bandwidth_shortterm_bps == UNLIMITED
    assert path.controller.inflight_shortterm == UNLIMITED


def in_up() -> Path:
    return run_until(path_with(), lambda bbr: bbr.state is BbrState.PROBE_BW_UP)


def test_losses_of_a_probe_bound_what_may_be_in_flight_and_end_it() -> None:
    path = in_up()
    path.lose = lambda number: number % 20 == 0
    path.run(path.now_ns + ms(120))
    bbr = path.controller
    assert bbr.state in (BbrState.PROBE_BW_DOWN, BbrState.PROBE_BW_CRUISE)
    # What was in flight where losses exceeded 2 %: above the product, below the gain times it.
    assert 0.7 * BDP_BYTES <= bbr.inflight_longterm <= 1.4 * BDP_BYTES


def test_cruising_leaves_headroom_below_the_bound() -> None:
    path = in_up()
    path.lose = lambda number: number % 20 == 0
    path.run(path.now_ns + ms(120))
    path.lose = lambda number: False
    bound = path.controller.inflight_longterm
    path.run(path.now_ns + ms(300))
    assert path.controller.state is BbrState.PROBE_BW_CRUISE
    assert path.log[-1][4] <= 0.85 * bound + 1


def test_a_loss_rate_below_the_threshold_ends_no_probe() -> None:
    path = in_up()
    number = path._next_number
    path.lose = lambda lost: lost == number
    path.run(path.now_ns + ms(120))
    assert path.controller.state is BbrState.PROBE_BW_UP
    assert path.controller.inflight_longterm == UNLIMITED


def test_the_probe_after_one_that_was_too_high_stops_at_the_bound_and_then_goes_on() -> None:
    """§ 5.3.3.6: precautionary probing."""
    path = in_up()
    path.lose = lambda number: number % 20 == 0
    path.run(path.now_ns + ms(120))
    path.lose = lambda number: False
    seen = len(path.states())
    path.run(path.now_ns + 6 * NS_PER_S)
    later = [state.value for _, state in path.states()[seen:] if state.value != "probe_rtt"]
    first = later.index("probe_bw_up")
    assert later[first : first + 4] == [
        "probe_bw_up",
        "probe_bw_down",
        "probe_bw_refill",
        "probe_bw_up",
    ]


# ProbeRTT


def test_the_path_is_emptied_every_five_seconds() -> None:
    path = path_with()
    path.run(11 * NS_PER_S)
    visits = [at_ns for at_ns, state in path.states() if state is BbrState.PROBE_RTT]
    assert len(visits) == 2
    assert visits[1] - visits[0] == pytest.approx(5.2 * NS_PER_S, rel=0.02)
    least = min(entry[3] for entry in path.log if entry[1] is BbrState.PROBE_RTT)
    assert least <= BDP_BYTES / 2 + PACKET_BYTES  # § 2.15.2: half of the product
    index = names(path).index("probe_rtt")
    assert names(path)[index + 1] == "probe_bw_cruise"


def test_an_idle_time_takes_the_place_of_probe_rtt() -> None:
    bbr, rtt = probed().controller, RttEstimator(initial_ns=ms(51))
    rtt.on_sample(ms(51))
    packet = Sent(10**6, 30 * NS_PER_S, is_app_limited=True, delivered_bytes=10**9)
    packet.delivered_at_ns = packet.first_sent_at_ns = 30 * NS_PER_S
    bbr.on_sent(packet, PACKET_BYTES)
    bbr.on_acked([packet], 30 * NS_PER_S + ms(51), rtt, PACKET_BYTES, True)
    assert bbr.state is not BbrState.PROBE_RTT


# Window and rate


def test_four_packets_are_the_least_window() -> None:
    path = Path(BbrController(ControllerSettings(max_datagram_bytes=1000)), rtt_ns=ms(0.1))
    path.run(2 * NS_PER_S)
    assert min(entry[4] for entry in path.log) >= 4000
    assert path.controller.max_bandwidth_bps == pytest.approx(RATE_BPS, rel=0.02)


def test_persistent_congestion_leaves_the_least_window() -> None:
    path = probed()
    path.controller.on_persistent_congestion(path.now_ns)
    assert path.controller.congestion_window == 2000


def test_bunched_acks_widen_the_window() -> None:
    """§ 5.5.9: 8000 bits per millisecond are expected; ten packets at once are nine too many."""
    aggregation = AckAggregation()
    aggregation.on_acked(1000, ms(1), RATE_BPS, 10**6, 0)
    aggregation.on_acked(10_000, ms(2), RATE_BPS, 10**6, 0)
    assert aggregation.extra_bytes == 10_000
    aggregation.on_acked(1000, ms(100), RATE_BPS, 10**6, 9)
    assert aggregation.extra_bytes == 10_000
    aggregation.on_acked(1000, ms(200), RATE_BPS, 10**6, 10)
    assert aggregation.extra_bytes == 1000


def test_waits_between_probes_are_drawn_from_a_source() -> None:
    class Latest:
        def randint(self, low: int, high: int) -> int:
            return high

        def random(self) -> float:
            return 0.999

    made = ControllerSettings(max_datagram_bytes=PACKET_BYTES)
    path = Path(BbrController(made, source=Latest()), rtt_ns=ms(100))  # type: ignore[arg-type]
    path.run(5 * NS_PER_S)
    times = [at_ns for at_ns, _ in path.states()]
    assert times[3] - times[2] > ms(2900)


def test_the_first_packet_after_idle_time_restarts_from_idle() -> None:
    """draft-ietf-ccwg-bbr-06 § 5.4.1: C.inflight is 0, and C.app_limited not."""
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 3_000_000},
        {
            "id": "late",
            "kind": "image",
            "bytes": 500_000,
            "discovered": {"at": "time", "delay_ms": 9000},
        },
    )
    seen: list[Any] = []

    class Watched(BbrController):
        def on_acked(self, packets: Any, now_ns: int, *rest: Any) -> None:
            super().on_acked(packets, now_ns, *rest)
            seen.append((now_ns, self.state))

    h3sim.simulate(page, network="cable", transport="quic", cc=Watched)
    after = {state for now_ns, state in seen if now_ns > 9 * NS_PER_S}
    assert after
    assert BbrState.PROBE_RTT not in after
