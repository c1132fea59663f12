"""Window controllers against the closed forms of their documents.

The path is fixed: an ACK for each packet one RTT after it was sent, no queue, losses as told.
"""

from __future__ import annotations

import math
import random
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.transport.congestion import (
    ControllerSettings,
    CubicController,
    NewRenoController,
    QuiclyCubicController,
    QuiclyRenoController,
)
from h3sim.transport.rtt import RttEstimator
from tests.unit.congestion_sender import Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from h3sim.transport.congestion import CongestionController

PACKET_BYTES = 1000
C = 0.4
BETA = 0.7
LOSS_RATES = (0.001, 0.005, 0.01, 0.02, 0.05)


def settings(window_packets: int) -> ControllerSettings:
    return ControllerSettings(
        max_datagram_bytes=PACKET_BYTES, initial_window_bytes=window_packets * PACKET_BYTES
    )


def windows(
    controller: CongestionController, rtt_ns: int, is_lost: Callable[[int], bool]
) -> Iterator[tuple[int, int, int]]:
    """Yield, when each packet is acknowledged or lost: when, its number, the window before."""
    rtt = RttEstimator(initial_ns=rtt_ns)
    rtt.on_sample(rtt_ns)
    flying: deque[Sent] = deque()
    number = now_ns = 0
    first = controller.congestion_window // PACKET_BYTES
    while True:
        while (len(flying) + 1) * PACKET_BYTES <= controller.congestion_window:
            # The first window is spread over a round trip, so that the ACKs are, too.
            packet = Sent(number, now_ns if number >= first else number * rtt_ns // first)
            number += 1
            flying.append(packet)
            controller.on_sent(packet, bytes_in_flight=len(flying) * PACKET_BYTES)
        in_flight = len(flying) * PACKET_BYTES
        packet = flying.popleft()
        now_ns = packet.sent_at_ns + rtt_ns
        yield now_ns, packet.number, controller.congestion_window
        if is_lost(packet.number):
            controller.on_lost(
                [packet], now_ns=now_ns, bytes_in_flight=in_flight, next_number=number
            )
        else:
            controller.on_acked(
                [packet],
                now_ns=now_ns,
                rtt=rtt,
                bytes_in_flight=in_flight,
                is_cwnd_underutilized=False,
            )


def mean_window(
    controller: CongestionController,
    rtt_s: float,
    is_lost: Callable[[int], bool],
    packets: range,
) -> float:
    """Return the mean over time of the window, in packets, while *packets* come back."""
    area = 0
    before_ns = begin_ns = None
    for now_ns, number, window in windows(controller, round(rtt_s * 1e9), is_lost):
        if number >= packets.start:
            if before_ns is None:
                begin_ns = now_ns
            else:
                area += (now_ns - before_ns) * window
            before_ns = now_ns
        if number >= packets.stop:
            return area / (now_ns - begin_ns) / PACKET_BYTES
    raise AssertionError


def mean_window_at(controller: CongestionController, rtt_s: float, loss_rate: float) -> float:
    """Return the mean window of 300 random losses, after 40 that are not counted."""
    # Not slow start: the laws describe congestion avoidance.
    controller.ssthresh = controller.congestion_window
    source = random.Random(1)
    packets = range(round(40 / loss_rate), round(340 / loss_rate))
    return mean_window(controller, rtt_s, lambda _: source.random() < loss_rate, packets)


# How the window grows after a loss


@pytest.mark.parametrize(("w_max", "rtt_s"), [(100, 0.2), (400, 0.1), (800, 0.2)])
def test_cubic_follows_its_curve_within_2_percent_until_it_is_as_far_above_as_it_was_below(
    w_max: Any, rtt_s: Any
) -> None:
    """W_cubic(t) of RFC 9438 § 4.2, on paths where Reno would be slower."""
    controller = CubicController(settings(w_max))
    k_s = math.cbrt(w_max * (1 - BETA) / C)
    epoch_ns = None
    seen = []
    for now_ns, _, window in windows(controller, round(rtt_s * 1e9), lambda number: number == 0):
        if epoch_ns is None and window > w_max * BETA * PACKET_BYTES and now_ns > rtt_s * 1e9:
            epoch_ns = now_ns
        if epoch_ns is not None:
            t_s = (now_ns - epoch_ns) / 1e9
            if t_s > 2 * k_s:
                break
            seen.append((window / PACKET_BYTES, C * (t_s - k_s) ** 3 + w_max))
    assert len(seen) > 1000
    assert seen[-1][0] > 1.25 * w_max
    assert max(abs(window / expected - 1) for window, expected in seen) <= 0.02


@pytest.mark.parametrize(("w_max", "rtt_s"), [(100, 0.1), (400, 0.1)])
def test_quicly_cubic_follows_the_curve_of_rfc_8312_within_2_percent(
    w_max: Any, rtt_s: Any
) -> None:
    """Time begins with the loss, and the window waits for the end of recovery."""
    controller = QuiclyCubicController(settings(w_max))
    k_s = math.cbrt(w_max * (1 - BETA) / C)
    loss_ns = None
    seen = []
    for now_ns, number, window in windows(controller, round(rtt_s * 1e9), lambda n: n == 0):
        loss_ns = now_ns if number == 0 else loss_ns
        t_s = (now_ns - loss_ns) / 1e9
        if t_s > 2 * k_s:
            break
        # Before it can follow, it has to catch up with the time that recovery took.
        if t_s > 10 * rtt_s:
            w_est = w_max * BETA + 3 * (1 - BETA) / (1 + BETA) * t_s / rtt_s
            seen.append((window / PACKET_BYTES, max(C * (t_s - k_s) ** 3 + w_max, w_est)))
    assert len(seen) > 1000
    assert max(abs(window / expected - 1) for window, expected in seen) <= 0.02


@pytest.mark.parametrize(
    ("controller", "rest"), [(NewRenoController, 0.5), (QuiclyRenoController, 0.7)]
)
def test_reno_adds_a_packet_per_round_trip(controller: Any, rest: Any) -> None:
    """RFC 9002 § 7.3.3, within 2 %: a window of packets takes a round trip."""
    rtt_ns = 100_000_000
    target = 200 * rest + 50
    for now_ns, _, window in windows(controller(settings(200)), rtt_ns, lambda n: n == 0):
        # One round trip to the loss and one in recovery come first.
        if now_ns > 2 * rtt_ns and window >= target * PACKET_BYTES:
            assert now_ns / rtt_ns - 2 == pytest.approx(50, rel=0.02)
            return


# The mean window at a loss rate


@pytest.mark.parametrize("loss_rate", LOSS_RATES)
def test_renos_mean_window_is_within_15_percent_of_the_square_root_law(loss_rate: Any) -> None:
    """sqrt(3/2) / sqrt(p): Mathis, Semke, Mahdavi, Ott 1997; RFC 9438 § 4.3 with AIMD(1, 0.5)."""
    window = mean_window_at(NewRenoController(settings(10)), 0.1, loss_rate)
    assert window == pytest.approx(math.sqrt(1.5 / loss_rate), rel=0.15)


@pytest.mark.parametrize("loss_rate", LOSS_RATES)
def test_quicly_renos_mean_window_is_within_15_percent_of_the_law_of_its_beta(
    loss_rate: Any,
) -> None:
    """AIMD(1, 0.7) in equation 3 of RFC 9438 § 4.3: sqrt((1 + β) / (2(1 - β)p))."""
    window = mean_window_at(QuiclyRenoController(settings(10)), 0.1, loss_rate)
    assert window == pytest.approx(math.sqrt(1.7 / (0.6 * loss_rate)), rel=0.15)


@pytest.mark.parametrize("loss_rate", LOSS_RATES)
def test_cubics_mean_window_on_a_short_path_is_within_20_percent_of_renos(loss_rate: Any) -> None:
    """The Reno-friendly region (RFC 9438 § 5.1, table 2)."""
    window = mean_window_at(CubicController(settings(10)), 0.01, loss_rate)
    assert window == pytest.approx(math.sqrt(1.5 / loss_rate), rel=0.20)


@pytest.mark.parametrize("loss_rate", LOSS_RATES)
def test_cubics_mean_window_on_a_long_path_is_within_20_percent_of_its_own_law(
    loss_rate: Any,
) -> None:
    """(C(3 + β) / 4(1 - β))^¼ (RTT / p)^¾ (RFC 9438 § 5.1), 1.8 to 4.8 times Reno's here."""
    law = (C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (1.0 / loss_rate) ** 0.75
    assert law > 1.8 * math.sqrt(1.5 / loss_rate)
    window = mean_window_at(CubicController(settings(10)), 1.0, loss_rate)
    assert window == pytest.approx(law, rel=0.20)


@pytest.mark.parametrize(("loss_rate", "rtt_s"), [(1e-4, 0.1), (1e-4, 0.2), (3e-4, 0.3)])
def test_cubic_stays_within_5_percent_of_its_law_where_a_loss_comes_every_1_p_packets(
    loss_rate: Any, rtt_s: Any
) -> None:
    """RFC 9438 § 5.1 assumes such losses, no fast convergence, and that all is in balance."""
    law = (C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (rtt_s / loss_rate) ** 0.75
    # In balance the curve ends at its plateau, where its mean is (3 + β)/4 of W_max.
    controller = CubicController(settings(round(4 * law / (3 + BETA))), fast_convergence=False)
    period = round(1 / loss_rate)
    packets = range(period, 5 * period)
    window = mean_window(controller, rtt_s, lambda number: number % period == 0, packets)
    assert window == pytest.approx(law, rel=0.05)
