"""Turns that follow the bursts of losses, by hand."""

from __future__ import annotations

from itertools import groupby

import pytest

import h3sim
from h3sim.schedulers import AdaptiveRoundRobinScheduler, LossObserver, RoundRobinScheduler
from h3sim.signals import H2Priority
from tests.helpers import replay
from tests.unit.driving import opened


def two() -> AdaptiveRoundRobinScheduler:
    scheduler = AdaptiveRoundRobinScheduler()
    for stream_id in (0, 4):
        scheduler.open(stream_id, H2Priority())
        scheduler.activate(stream_id)
    return scheduler


def runs(scheduler: AdaptiveRoundRobinScheduler, n_packets: int) -> list[tuple[int, int]]:
    """Send so many packets; return whose, and how many of each in a row."""
    order = []
    for _ in range(n_packets):
        stream_id = scheduler.pick()
        assert stream_id is not None
        scheduler.charge(stream_id, 1400)
        order.append(stream_id)
    return [(stream_id, len(list(run))) for stream_id, run in groupby(order)]


def lose(scheduler: AdaptiveRoundRobinScheduler, n_packets: int) -> None:
    for _ in range(n_packets):
        scheduler.on_lost()
    runs(scheduler, 8)


def test_without_losses_it_is_round_robin_by_packets() -> None:
    steps = [(0, "document", 9), (0, "image", 7), (35, "script", 4)]
    assert replay(steps, "adaptive-rr").trace.order == replay(steps, "rr").trace.order


def test_a_turn_is_twice_the_mean_burst() -> None:
    scheduler = two()
    lose(scheduler, 5)
    # The mean was 1: four times it are 4 + (5 - 1) = 8, so it is 2.
    assert scheduler.turn_packets == 4
    # Stream 4 had sent one packet of its turn when turns became longer.
    assert runs(scheduler, 12) == [(4, 3), (0, 4), (4, 4), (0, 1)]
    lose(scheduler, 6)
    # 8 + (6 - 2) = 12: 3.
    assert scheduler.turn_packets == 6


def test_a_burst_is_learnt_from_once_and_the_next_begins_with_nothing() -> None:
    scheduler = two()
    lose(scheduler, 25)
    # 4 + (25 - 1) = 28: the mean is 7.
    assert scheduler.turn_packets == 14
    runs(scheduler, 100)
    assert scheduler.turn_packets == 14
    # 28 + (9 - 7) = 30: 7.5.
    lose(scheduler, 9)
    assert scheduler.turn_packets == 15


def test_losses_that_are_found_one_by_one_are_one_burst() -> None:
    scheduler = two()
    for _ in range(5):
        scheduler.on_lost()
        runs(scheduler, 7)
    assert scheduler.turn_packets == 1
    runs(scheduler, 1)
    assert scheduler.turn_packets == 4


def test_turns_are_at_most_64_packets_and_shrink_again() -> None:
    scheduler = two()
    for _ in range(30):
        lose(scheduler, 100)
    assert scheduler.turn_packets == 64
    for _ in range(60):
        lose(scheduler, 1)
    assert scheduler.turn_packets < 8


def test_a_turn_ends_where_the_stream_has_nothing_more() -> None:
    scheduler = two()
    lose(scheduler, 5)
    assert runs(scheduler, 2) == [(4, 2)]
    scheduler.deactivate(4)
    assert runs(scheduler, 3) == [(0, 3)]
    scheduler.activate(4)
    # Who joins waits for the next round, in which the lower stream goes first.
    assert runs(scheduler, 9) == [(0, 5), (4, 4)]


@pytest.mark.parametrize("leave", ["deactivate", "close"])
def test_a_stream_that_leaves_within_a_quantum_gets_a_full_one_on_its_return(leave: str) -> None:
    scheduler = two()
    lose(scheduler, 5)
    scheduler.close(0)
    # Of its turn of 4 packets stream 4 has sent one, and sends another.
    assert runs(scheduler, 1) == [(4, 1)]
    getattr(scheduler, leave)(4)
    opened(scheduler, {4: H2Priority()})
    assert runs(scheduler, 1) == [(4, 1)]
    # 0 joins during the turn, so it waits for the next round.
    opened(scheduler, {0: H2Priority()})
    assert runs(scheduler, 8) == [(4, 3), (0, 4), (4, 1)]


def test_who_leaves_does_not_end_the_turn_of_another() -> None:
    scheduler = two()
    lose(scheduler, 5)
    assert runs(scheduler, 4) == [(4, 3), (0, 1)]
    scheduler.deactivate(4)
    scheduler.activate(4)
    # 3 more of this round; 4 is back in the next one, in which the lower stream goes first.
    assert runs(scheduler, 8) == [(0, 7), (4, 1)]


def test_only_schedulers_that_want_it_hear_of_losses() -> None:
    assert isinstance(AdaptiveRoundRobinScheduler(), LossObserver)
    assert not isinstance(RoundRobinScheduler(), LossObserver)


def test_a_load_with_bursts_has_longer_runs() -> None:
    rr, adaptive = (
        h3sim.simulate(
            "davies-meenan",
            scheme=scheme,
            network="sander-2mbps-100ms",
            loss=0.03,
            mean_loss_burst=10,
            seed=1,
        ).multiplexing.mean_run_packets
        for scheme in ("rr", "adaptive-rr")
    )
    assert adaptive > 1.5 * rr
