"""Links by hand: when a packet leaves, which ones are dropped or lost, and when each arrives."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import h3sim
from h3sim.transport import Network
from h3sim.transport.bottleneck import CoDelState
from h3sim.transport.link import GilbertElliottLoss, make_link
from h3sim.transport.link_profile import CoDel, Distribution, Jitter, LinkJitter, LinkProfile
from h3sim.transport.network import read_network
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms
from tests.helpers import page_of, unworded

NETWORKS = Path(__file__).parents[2] / "models" / "networks"
SANDER = read_network(NETWORKS / "sander-2mbps-100ms.toml")


class Scripted:
    """A random source that gives these numbers, and none after them."""

    def __init__(self, *numbers: Any) -> None:
        self._numbers = list(numbers)

    def random(self) -> Any:
        return self._numbers.pop(0)

    def randint(self, low: Any, high: Any) -> Any:
        assert low <= self._numbers[0] <= high
        return self._numbers.pop(0)

    @property
    def left(self) -> int:
        return len(self._numbers)


def link(rtt_ms: float = 0.0, source: Any = None, upward: bool = False, **profile: Any) -> Any:
    def streams(purpose: Any) -> Any:
        return source or random.Random(purpose)

    return make_link(LinkProfile(**profile), rtt_ns=ms(rtt_ms), streams=streams, upward=upward)


def arrivals_ms(link: Any, *packets: Any) -> list[Any]:
    """Send packets, each (now in ms, bytes); return when each arrives in ms, None where never."""
    arrived = [link.send(ms(now_ms), n_bytes) for now_ms, n_bytes in packets]
    return [None if at_ns is None else at_ns / 1e6 for at_ns in arrived]


# The bottleneck


def test_a_full_bucket_passes_a_packet_at_once_and_the_next_when_its_tokens_are_there() -> None:
    # 514 of 1514 tokens are left; the other 486 take 486 * 8 / 2 Mbit/s.
    down = link(rtt_ms=100, rate_bps=2_000_000)
    assert arrivals_ms(down, (0, 1000), (0, 1000), (0, 1000)) == [50, 51.944, 55.944]


def test_a_link_without_burst_passes_a_packet_when_its_last_bit_is_sent() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0)
    assert arrivals_ms(down, (0, 125), (0, 250), (10, 125)) == [1, 3, 11]


def test_a_rest_fills_the_bucket_but_not_beyond_its_size() -> None:
    # After 1 s the bucket holds 1514 and no more, so the second packet waits as at the start.
    down = link(rate_bps=2_000_000)
    assert arrivals_ms(down, (1000, 1000), (1000, 1000)) == [1000, 1001.944]


def test_a_packet_larger_than_the_bucket_waits_for_what_does_not_fit() -> None:
    assert arrivals_ms(link(rate_bps=1_000_000, burst_bytes=1000), (5, 1125)) == [6]


def test_packets_take_exactly_so_many_times_as_long_as_one() -> None:
    down = link(rate_bps=7_000_000, burst_bytes=0)
    last_at_ns = [down.send(0, 1250) for _ in range(7000)][-1]
    assert last_at_ns == 10_000_000_000  # one takes 1428571 and 3/7 ns


def test_each_packet_counts_with_its_frame_overhead() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, frame_overhead_bytes=25)
    assert arrivals_ms(down, (0, 100), (0, 100)) == [1, 2]


def test_without_a_rate_packets_meet_the_delay_only() -> None:
    assert arrivals_ms(link(rtt_ms=30), (0, 10**6), (0, 10**6)) == [15, 15]


def test_an_odd_nanosecond_of_the_round_trip_is_spent_upward() -> None:
    down, up = (
        make_link(LinkProfile(), rtt_ns=7, streams=random.Random, upward=upward)
        for upward in (False, True)
    )
    assert (down.send(0, 1), up.send(0, 1)) == (3, 4)


# The queue


def test_the_queue_of_sander_holds_nineteen_full_packets_next_to_the_one_that_left() -> None:
    down = make_link(SANDER.down, rtt_ns=SANDER.rtt_ns, streams=random.Random)  # type: ignore[arg-type]
    accepted = [down.send(0, 1308) is not None for _ in range(30)]
    assert accepted == [True] * 20 + [False] * 10  # 19 * 1322 = 25118 of 26215, 20 are too many
    assert (down.offered, down.queue_drops, down.loss_drops) == (30, 10, 0)


def test_a_place_in_the_queue_is_free_from_the_instant_on_at_which_a_packet_leaves() -> None:
    # The second needs 1322 - 192 = 1130 bytes more: 4.52 ms.
    down = make_link(SANDER.down, rtt_ns=SANDER.rtt_ns, streams=random.Random)  # type: ignore[arg-type]
    for _ in range(20):
        down.send(0, 1308)
    assert down.send(4_519_999, 1308) is None
    assert down.send(4_520_000, 1308) == ms(50 + 4.52 + 19 * 5.288)


def test_a_small_packet_fits_where_a_large_one_does_not() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, queue_bytes=2000)
    assert arrivals_ms(down, (0, 1500), (0, 501), (0, 500)) == [12, None, 16]


def test_a_queue_in_packets_counts_the_one_in_service() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, queue_packets=2)
    assert arrivals_ms(down, (0, 125), (0, 125), (0, 1), (1, 125)) == [1, 2, None, 3]


@pytest.mark.parametrize(
    ("profile", "rtt_ms", "limit_bytes"),
    [
        ({"rate_bps": 2_000_000, "queue_bdp": 1}, 100, 25_000),
        ({"rate_bps": 3_000_000, "queue_bdp": 0.1}, 100, 3750),  # not 3751: 0.1 is a tenth
        ({"rate_bps": 1_000_001, "queue_bdp": 2}, 50, 12_501),
        ({"mahimahi": (1, 2, 3), "queue_bdp": 1}, 100, 150_000),
        ({"rate_bps": 2_000_000, "queue_bytes": 9999}, 100, 9999),
        ({"rate_bps": 2_000_000, "queue_packets": 9}, 100, None),
    ],
)
def test_a_queue_in_bdps_holds_rate_times_rtt_rounded_up(
    profile: Any, rtt_ms: float, limit_bytes: int
) -> None:
    assert LinkProfile(**profile).queue_limit_bytes(ms(rtt_ms)) == limit_bytes


# Mahimahi traces


@pytest.mark.parametrize(
    ("trace", "packets", "expected"),
    [
        ((3, 5), [(0, 1500), (0, 1500)], [3, 5]),
        ((3, 5), [(0, 700), (0, 700), (0, 700)], [3, 3, 5]),  # the third: 100 at 3, 600 at 5
        ((3, 5), [(0, 1501), (0, 1400)], [5, 5]),  # 1 byte of the first goes at 5
        ((3, 5), [(0, 100), (3, 100)], [3, 5]),  # at the instant itself is too late
        ((3, 5), [(0, 100), (2.9, 100)], [3, 3]),
        ((3, 5), [(4, 100), (5, 1500), (9, 1500)], [5, 8, 10]),  # repeats after 5 ms: 8, 10
        ((2, 2), [(0, 1500), (0, 1500), (0, 1500)], [2, 2, 4]),
        ((0, 4), [(0, 1500), (0, 1500), (0, 1500)], [4, 4, 8]),
        ((1,), [(10_000, 1500)], [10_001]),
    ],
)
def test_a_trace_lets_packets_through_as_mahimahi_does(
    trace: Any, packets: Any, expected: Any
) -> None:
    assert arrivals_ms(link(mahimahi=trace), *packets) == expected


def test_a_queue_stands_before_a_trace_too() -> None:
    down = link(mahimahi=(10,), queue_packets=1)
    assert arrivals_ms(down, (0, 1500), (9, 1500), (10, 1500)) == [10, None, 20]


# CoDel


def test_codel_drops_first_an_interval_after_its_target_was_exceeded_and_then_more_often() -> None:
    # 10 packets of 1 ms wait 4 ms and less: below the target. Then 1 packet in 1 ms keeps 30 ms.
    down = link(rate_bps=8_000_000, burst_bytes=0, codel=CoDel())
    numbers = [down.send(0, 1000) is None for _ in range(30)]
    numbers += [down.send(ms(now_ms), 1000) is None for now_ms in range(1, 400)]
    drops = [number for number, dropped in enumerate(numbers) if dropped]
    # Packet 5 is the first whose turn comes 5 ms after it came; turns are 1 ms apart. The next
    # drop is 100 ms after the first, then 100/sqrt(2), 100/sqrt(3), as each drop saves a turn.
    assert drops[:4] == [105, 206, 278, 337]


def test_codel_begins_anew_where_the_last_drops_are_long_ago() -> None:
    """RFC 8289 § 5.5: only within 16 intervals does it go on at the rate that it had."""

    def second_gap_ms(pause_ms: int) -> float:
        """Return how long after the first drop of a second congestion the next one comes."""
        state = CoDelState(target_ns=ms(5), interval_ns=ms(100))
        now_ms = 0
        drops: list[int] = []
        for length_ms in (600, 400):
            drops = []
            for _ in range(length_ms):
                if state.drops(ms(now_ms), ms(20), 9000, 1000):
                    drops.append(now_ms)
                    # The next one's turn comes at the same instant.
                    assert not state.drops(ms(now_ms), ms(20), 9000, 1000)
                now_ms += 1
            # One packet that did not wait ends it.
            assert not state.drops(ms(now_ms), 0, 9000, 1000)
            now_ms += pause_ms
        return drops[1] - drops[0]

    # The first drops at 100, 200, 271, 329, 379, 423, 464, 502, 537, 571: its count is 10, and
    # 9 more than where it began. So soon after, the gap is 100/sqrt(9); long after, 100/sqrt(1).
    assert second_gap_ms(100) == pytest.approx(100 / 3, abs=1)
    assert second_gap_ms(2000) == pytest.approx(100, abs=1)


@pytest.mark.parametrize("limit", [{"queue_packets": 2}, {"queue_bytes": 2999}])
def test_a_queue_is_full_with_codel_too(limit: dict[str, Any]) -> None:
    down = link(rate_bps=8_000, burst_bytes=0, codel=CoDel(), **limit)
    # A packet takes a second: all that come at once wait.
    assert [down.send(0, 1000) is None for _ in range(4)] == [False, False, True, True]


def test_codel_lets_one_packet_wait_however_long_that_takes() -> None:
    # At 1 Mbit/s a packet takes 10 ms, twice the target; with one waiting, none is too many.
    down = link(rate_bps=1_000_000, burst_bytes=0, codel=CoDel())
    down.send(0, 1250)
    assert all(down.send(ms(now_ms), 1250) is not None for now_ms in range(0, 5000, 10))


def test_codel_leaves_a_queue_alone_that_empties_within_an_interval() -> None:
    down = link(rate_bps=8_000_000, burst_bytes=0, codel=CoDel())
    assert not any(
        down.send(ms(start_ms), 1000) is None for start_ms in range(0, 2000, 100) for _ in range(90)
    )


# Loss


def test_the_listed_packets_are_lost_counted_behind_the_queue() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, queue_packets=1, loss_list=(1,))
    sent = [(0, 125), (0, 125), (1, 125), (2, 125)]  # the second is dropped, the third is lost
    assert arrivals_ms(down, *sent) == [1, None, None, 3]
    assert (down.offered, down.queue_drops, down.loss_drops) == (4, 1, 1)


def test_small_packets_need_not_count() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, loss_list=(1,), loss_list_from_bytes=100)
    assert arrivals_ms(down, (0, 125), (1, 25), (2, 125)) == [1, 1.2, None]


def test_a_lost_packet_has_used_the_bottleneck() -> None:
    down = link(rate_bps=1_000_000, burst_bytes=0, loss_list=(0,))
    assert arrivals_ms(down, (0, 125), (0, 125)) == [None, 2]


def test_random_loss_takes_one_number_for_each_packet() -> None:
    source = Scripted(0.019, 0.02, 0.5, 0.0)
    down = link(source=source, loss=0.02)
    assert [down.send(0, 1) is None for _ in range(4)] == [True, False, False, True]
    assert source.left == 0


def test_in_a_burst_the_state_before_the_transition_decides() -> None:
    # r = 0.2, p = 0.02 * 0.2 / 0.98 = 0.00408: good to bad, stays bad, bad to good, stays good.
    source = Scripted(0.004, 0.2, 0.19, 0.005)
    down = link(source=source, loss=0.02, loss_burst=5)
    assert [down.send(0, 1) is None for _ in range(4)] == [False, True, True, False]
    assert source.left == 0


@pytest.mark.parametrize(
    ("burst", "to_bad_percent", "to_good_percent"),
    [(5, 0.4081632, 20), (10, 0.2040816, 10), (15, 0.1360544, 6.66667)],
)
def test_bursts_have_the_transitions_that_sander_gave_to_netem(
    burst: Any, to_bad_percent: Any, to_good_percent: Any
) -> None:
    # Sander's scripts round to seven digits.
    chain = GilbertElliottLoss(loss=0.02, burst=burst, source=random.Random(0))
    assert 100 * chain.to_bad == pytest.approx(to_bad_percent, rel=1e-6)
    assert 100 * chain.to_good == pytest.approx(to_good_percent, rel=1e-6)


# Jitter

UNIFORM = LinkJitter(mean_ns=ms(10), deviation_ns=ms(10))


def test_a_packet_waits_for_those_before_it_unless_reordering_is_allowed() -> None:
    sent = [(0, 1), (1, 1), (30, 1)]
    numbers = (0.5, 0.0, 0.25)  # 10, 0 and 5 ms
    kept = link(rtt_ms=20, source=Scripted(*numbers), jitter=UNIFORM)
    assert arrivals_ms(kept, *sent) == [20, 20, 45]
    free = link(rtt_ms=20, source=Scripted(*numbers), jitter=replace(UNIFORM, reorder=True))
    assert arrivals_ms(free, *sent) == [20, 11, 45]


def test_a_lost_packet_takes_its_number_of_the_jitter_and_holds_nobody_up() -> None:
    down = link(source=Scripted(1.0, 0.0), jitter=UNIFORM, loss_list=(0,))
    assert arrivals_ms(down, (0, 1), (0, 1)) == [None, 0]


@pytest.mark.parametrize(
    ("distribution", "expected_ms"),
    [
        (Distribution.UNIFORM, [8, 10, 11]),
        (Distribution.NORMAL, [0, 10, 11.34898]),  # 0.6745 deviations: the third quartile
        # Shape 1 + sqrt(26), scale 10 * sqrt(26) / shape = 8.36039
        (Distribution.PARETO, [8.36039, 9.36664, 10.49400]),
    ],
)
def test_a_distribution_is_inverted_at_the_number_drawn(
    distribution: Any, expected_ms: float
) -> None:
    jitter = LinkJitter(mean_ns=ms(10), deviation_ns=ms(2), distribution=distribution)
    down = link(source=Scripted(0.0, 0.5, 0.75), jitter=replace(jitter, reorder=True))
    assert arrivals_ms(down, *[(0, 1)] * 3) == pytest.approx(expected_ms, abs=1e-5)  # as rounded


def test_every_nth_packet_is_held_for_packets_of_its_size() -> None:
    hold = Jitter(every=2, min_overtaken=1, max_overtaken=3)
    down = link(source=Scripted(2), rate_bps=1_000_000, burst_bytes=0, hold=hold)
    assert arrivals_ms(down, *[(0, 125)] * 3) == [1, 4.5, 3]  # 2 ms and 2.5 times 1 ms


def test_a_share_of_packets_is_held_for_packets_of_their_size() -> None:
    hold = Jitter(share=0.5, min_overtaken=2, max_overtaken=2)
    numbers = random.Random(7)
    down = link(source=random.Random(7), rate_bps=1_000_000, burst_bytes=0, hold=hold)
    expected_ms = []
    for number in range(1, 21):
        is_held = numbers.random() < 0.5
        if is_held:
            numbers.randint(2, 2)  # how many overtake it
        expected_ms.append(number + 2.5 * is_held)
    assert arrivals_ms(down, *[(0, 125)] * 20) == expected_ms


# Values


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"rate_bps": 0}, "rate_mbps: must be 1e-06 to 1e+07, is 0"),
        ({"rate_bps": -8}, "rate_mbps: must be 1e-06 to 1e+07, is -8e-06"),
        ({"rate_bps": 10**14}, "rate_mbps: must be 1e-06 to 1e+07, is 1e+08"),
        ({"burst_bytes": -1}, "burst_bytes: is -1"),
        ({"burst_bytes": 10**10}, "burst_bytes: must be 0 to 1,000,000,000, is 10000000000"),
        ({"frame_overhead_bytes": -1}, "frame_overhead_bytes: must be 0 to 1,000, is -1"),
        (
            {"queue_bytes": 1513},
            "queue_bytes: must be 1,514 to 1e+12 (at least one packet), is 1513",
        ),
        ({"queue_packets": 0}, "queue_packets: must be 1 to 1e+12, is 0"),
        ({"queue_bdp": 0}, "queue_bdp: must be more than 0, to 1e+06, is 0"),
        ({"queue_bdp": float("nan")}, "queue_bdp: must be more than 0, to 1e+06, is nan"),
        (
            {"queue_bytes": 3000, "queue_bdp": 1},
            "queue_bdp: says the same as queue_bytes: give only one",
        ),
        ({"mahimahi": (1,)}, "mahimahi: says the same as rate_mbps: give only one"),
        ({"rate_bps": None, "mahimahi": ()}, "mahimahi: has no delivery opportunity"),
        ({"rate_bps": None, "mahimahi": (-1, 2)}, "mahimahi[0]: is -1"),
        ({"rate_bps": None, "mahimahi": (3, 2)}, "mahimahi: must not fall, but 2 comes after 3"),
        ({"rate_bps": None, "mahimahi": (0,)}, "mahimahi: must last longer than 0 ms"),
        (
            {"rate_bps": None, "queue_packets": 9},
            "queue_packets: needs rate_mbps or mahimahi: without them nothing waits",
        ),
        (
            {"rate_bps": None, "codel": CoDel()},
            "codel: needs rate_mbps or mahimahi: without them nothing waits",
        ),
        ({"codel": 5}, "codel: must be a CoDel, is 5"),
        ({"loss": 1}, "loss: must be at least 0 and less than 1 (0.02 is 2 %), is 1"),
        ({"loss": -0.1}, "loss: must be at least 0 and less than 1 (0.02 is 2 %), is -0.1"),
        ({"loss": 0.02, "loss_burst": 0.5}, "loss_burst: must be 1 to 1e+06, is 0.5"),
        (
            {"loss": 0.9, "loss_burst": 8},
            "loss_burst: must be at least 9 for a loss of 0.9, is 8",
        ),
        (
            {"loss": 0.1, "loss_list": (3,)},
            "loss_list: says which packets are lost: give no loss or loss_burst beside it",
        ),
        ({"loss_list": (3, -1)}, "loss_list[1]: is -1"),
        (
            {"hold": Jitter.parse("4:1"), "jitter": UNIFORM},
            "hold: cannot be combined with jitter_ms: give only one",
        ),
        (
            {"hold": Jitter.parse("4:1"), "rate_bps": None},
            "hold: needs rate_mbps: it counts in packets at that rate",
        ),
    ],
)
def test_a_value_out_of_range_is_one_line(values: Any, line: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        LinkProfile(**{"rate_bps": 1_000_000} | values)
    assert unworded(caught.value.lines()) == unworded([line])


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: CoDel(target_ns=0), "target_ms: must be more than 0, to 60,000, is 0"),
        (
            lambda: replace(UNIFORM, mean_ns=0, deviation_ns=1),
            "jitter_ms: must be more than 0, to 600,000, is 0",
        ),
        (
            lambda: replace(UNIFORM, deviation_ns=ms(11)),
            "jitter_deviation_ms: must not exceed jitter_ms (10.0): no delay is negative, is 11.0",
        ),
        (
            lambda: Jitter(every=0, min_overtaken=1, max_overtaken=1),
            "every: must be 1 to 1,000,000,000, is 0",
        ),
    ],
)
def test_a_part_of_a_link_is_checked_by_itself(make: Any, line: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        make()
    assert unworded([line])[0] in unworded(caught.value.lines())


def test_of_an_odd_round_trip_the_nanosecond_over_is_spent_upward() -> None:
    network = Network(name="odd", rtt_ns=ms(1) + 1, down=LinkProfile(), up=LinkProfile())
    load = h3sim.simulate(page_of({"id": "/", "kind": "document", "bytes": 9}), network=network)
    (request,) = load.trace.requests
    (row,) = load.trace.packet_rows
    assert request.arrived_at_ns - request.requested_at_ns == ms(0.5) + 1
    assert row[1] is not None
    assert row[1] - row[0] == ms(0.5)
