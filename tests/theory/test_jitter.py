"""Jitter and what it blocks, from closed forms: every fourth packet held, at 10 ms a packet."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from tests.helpers import replay

PACKET_BYTES, TICK_MS = 1400, 10


def holds_ms(load: Any) -> list[Any]:
    """Return for how long each packet was held."""
    return [(arrived - sent) / 1e6 for sent, arrived, *_ in load.trace.packet_rows]


@pytest.mark.parametrize("n_packets", [3, 4, 400, 403])
def test_one_packet_in_four_is_held(n_packets: int) -> None:
    load = replay([(0, "document", n_packets)], "rr", reorder="4:1-3")
    held = [number for number, hold in enumerate(holds_ms(load), 1) if hold]
    assert held == list(range(4, n_packets + 1, 4))


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_hold_is_two_and_a_half_intervals(seed: int) -> None:
    """1, 2 or 3 others overtake, each as likely: 25 ms, within four standard errors."""
    load = replay([(0, "document", 8000)], "rr", reorder="4:1-3", seed=seed)
    held = [hold for hold in holds_ms(load) if hold]
    assert set(held) == {15, 25, 35}
    deviation = math.sqrt(200 / 3)
    assert statistics.fmean(held) == pytest.approx(25, abs=4 * deviation / math.sqrt(len(held)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("overtaken", [15, 25, 35])
def test_each_hold_is_as_likely_as_the_others(seed: int, overtaken: Any) -> None:
    """A third of 2000, within four standard errors of a binomial share."""
    load = replay([(0, "document", 8000)], "rr", reorder="4:1-3", seed=seed)
    share = sum(hold == overtaken for hold in holds_ms(load)) / 2000
    assert share == pytest.approx(1 / 3, abs=4 * math.sqrt(2 / 9 / 2000))


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("n_held", [1, 7, 50])
def test_a_packet_held_until_two_others_left_blocks_those_two(transport: Any, n_held: int) -> None:
    """In one stream they wait 15 and 5 ms for it, and the three come in one stack."""
    n_packets = 4 * n_held + 2
    load = replay([(0, "document", n_packets)], "rr", reorder="4:2", transport=transport)
    hol = load.hol
    assert hol.stream_bytes == hol.connection_bytes == 2 * PACKET_BYTES * n_held
    assert hol.stream_delay_ms == hol.connection_delay_ms == 20 * n_held
    assert hol.stack_histogram == {1: n_packets - 3 * n_held, 3: n_held}


@pytest.mark.parametrize("n_streams", [3, 4, 6])
def test_round_robin_over_three_streams_or_more_leaves_quic_nothing_to_wait_for(
    n_streams: int,
) -> None:
    """The two packets that overtake belong to other streams; over one connection they wait."""
    steps = [(0, "image" if n else "document", 12) for n in range(n_streams)]
    load = replay(steps, "rr", reorder="4:2", handshake=False)
    n_held, behind_last = divmod(12 * n_streams, 4)
    # Behind the last packet that is held, at most the rest of its group of four follows.
    blocked = 2 * (n_held - 1) + min(2, behind_last)
    assert (load.hol.stream_bytes, load.hol.stream_delay_ms) == (0, 0)
    assert load.hol.connection_bytes == blocked * PACKET_BYTES
    assert load.hol.stack_histogram == {1: 12 * n_streams}
