"""Reductions of the window that turn out to be spurious, and their undoing (RFC 4015, RFC 9438)."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim import load_profile
from h3sim.page import synthetic
from h3sim.transport.congestion import ControllerSettings, make_controller
from h3sim.transport.link_profile import LinkJitter, LinkProfile
from h3sim.transport.network import Network
from h3sim.transport.quic import QuicPacket, QuicSettings
from h3sim.transport.quic.loss_thresholds import LossThresholds, SpuriousLosses
from h3sim.transport.tcp.recovery import SpuriousRecovery
from h3sim.values.errors import InputError
from h3sim.values.units import mbps, ms

PAGE = synthetic(n_resources=1, total_bytes=2_000_000)
LINK = LinkProfile(
    rate_bps=mbps(100), jitter=LinkJitter(mean_ns=ms(1), deviation_ns=ms(1), reorder=True)
)
NETWORK = Network(name="reordering", rtt_ns=ms(18), down=LINK)


def packet(number: int, sent_at_ns: int) -> QuicPacket:
    return QuicPacket(number, sent_at_ns, 1000, [], None, (), True)


@pytest.mark.parametrize("name", ["newreno", "cubic", "cubic-linux"])
@pytest.mark.parametrize("ssthresh_is_set", [False, True])
def test_a_spurious_loss_leaves_window_and_threshold_as_they_were(
    name: str, ssthresh_is_set: bool
) -> None:
    controller = make_controller(name, ControllerSettings(max_datagram_bytes=1000))
    if ssthresh_is_set:
        controller.on_lost([packet(0, 0)], ms(1), 10_000, 10)
    before = controller.congestion_window, controller.ssthresh
    controller.on_lost([packet(20, ms(2))], ms(3), 10_000, 30)
    assert controller.congestion_window < before[0]
    controller.on_spurious_loss(ms(4))
    assert (controller.congestion_window, controller.ssthresh) == before
    controller.on_spurious_loss(ms(5))  # once per reduction
    assert (controller.congestion_window, controller.ssthresh) == before


@pytest.mark.parametrize("undo", ["quiche", "episode"])
def test_a_second_spurious_loss_of_one_flight_is_undone_like_the_first(undo: Any) -> None:
    """To undo a reduction ends its recovery period, so that the window is reduced once more."""
    controller = make_controller("cubic", ControllerSettings(max_datagram_bytes=1000))
    controller.on_lost([packet(0, 0)], ms(1), 10_000, 10)  # ends slow start
    before = controller.congestion_window
    settings = QuicSettings(undo=undo)
    spurious = SpuriousLosses(settings, controller, LossThresholds(settings))
    for number, at_ns in ((20, ms(30)), (25, ms(32))):
        lost = [packet(number, ms(2))]
        spurious.on_lost(lost, number + 3, ms(20), at_ns, 100)
        controller.on_lost(lost, at_ns, 10_000, 100)
        assert controller.congestion_window < before
        spurious.on_ack(
            ((number + 2, number + 3), (number, number)), number + 3, ms(20), at_ns + ms(1)
        )
        assert controller.congestion_window == before


@pytest.mark.parametrize("name", ["newreno", "cubic", "cubic-linux"])
def test_a_reduction_by_a_mark_is_not_undone(name: str) -> None:
    controller = make_controller(name, ControllerSettings(max_datagram_bytes=1000))
    controller.on_lost([packet(0, 0)], ms(1), 10_000, 10)
    controller.on_congestion_experienced(ms(2), ms(3))
    reduced = controller.congestion_window
    controller.on_spurious_loss(ms(4))
    assert controller.congestion_window == reduced


def test_an_episode_is_refuted_by_a_d_sack_for_each_of_its_retransmissions() -> None:
    spurious = SpuriousRecovery()
    spurious.begin(1000, 0)
    spurious.on_resent(ms(1))
    spurious.on_resent(ms(2))
    refuted = [spurious.is_refuted(span) for span in ((0, 1000), (1000, 2000), (2000, 3000))]
    assert refuted == [False, False, True]  # the first duplicate is older than the episode
    assert not spurious.is_refuted((2000, 3000))


@pytest.mark.parametrize(("echo_ms", "is_delayed"), [(0.9, True), (1, False), (None, False)])
def test_an_episode_is_refuted_by_an_ack_that_answers_no_retransmission(
    echo_ms: Any, is_delayed: bool
) -> None:
    """RFC 3522 § 3.2: the echoed timestamp is older than the first retransmission's."""
    spurious = SpuriousRecovery()
    spurious.begin(0, 0)
    spurious.on_resent(ms(1))
    assert spurious.is_delayed(None if echo_ms is None else ms(echo_ms)) is is_delayed


def test_the_retransmissions_of_the_episode_before_count_while_they_are_in_flight() -> None:
    spurious = SpuriousRecovery()
    spurious.begin(0, 0)
    spurious.on_resent(ms(1))
    spurious.begin(1000, 1)
    assert not spurious.is_delayed(ms(2))


@pytest.mark.parametrize(
    ("profile", "change", "protocol"),
    [
        ("quiche-chrome", {"quic": {"reordering": "fixed", "undo": "none"}}, "quic"),
        ("linux-tcp", {"tcp": {"recovery": "sack", "undoes_reductions": False}}, "tcp"),
    ],
)
def test_a_stack_that_adapts_is_twice_as_fast_over_a_path_that_reorders(
    profile: str, change: Any, protocol: str
) -> None:
    """cloudflare/quiche#470 reports 31.9 and 1.85 s for 10 MB."""
    adapting = load_profile(profile)
    fixed, fast = (
        h3sim.simulate(
            PAGE, scheme="fifo", network=NETWORK, transport_profile=each, transport=protocol
        ).page_load_ms
        for each in (adapting.with_(**change), adapting)
    )
    assert fixed > 2 * fast


def test_thresholds_are_axes_of_a_study_with_numbers_in_its_rows() -> None:
    result = h3sim.sweep(
        [PAGE],
        schemes=["fifo"],
        network=[NETWORK],
        packet_threshold=[3, 100],
        time_threshold=[1.125, 2.0],
        executor="serial",
    )
    found = {
        (row["packet_threshold"], row["time_threshold"]): row["page_load_ms"] for row in result
    }
    assert set(found) == {(3, 1.125), (3, 2.0), (100, 1.125), (100, 2.0)}
    assert found[3, 1.125] > 2 * found[100, 2.0]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"packet_threshold": 3}, "packet_threshold: needs links"),
        (
            {"network": "cable", "transport": "tcp", "time_threshold": 2},
            "time_threshold: needs QUIC",
        ),
        ({"network": "cable", "packet_threshold": 0}, "packet_threshold"),
    ],
)
def test_a_threshold_is_refused_where_it_has_no_effect(options: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        h3sim.simulate(PAGE, scheme="fifo", **options)
