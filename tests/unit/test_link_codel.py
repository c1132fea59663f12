"""CoDel's memory of its last drops (RFC 8289 § 5.5), and delays drawn for each packet, by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from h3sim.transport.bottleneck import CoDelState
from h3sim.transport.link import Link
from h3sim.transport.link_profile import CoDel, Distribution, LinkJitter, LinkProfile, make_draw
from h3sim.transport.network import parse_cross_traffic
from h3sim.transport.packets import CE, ECT
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms
from tests.unit.fair_link_path import Flow, Packet
from tests.unit.test_links import Scripted

NEXT_NS = 328_445_704
"""When the fourth drop would follow: 100, 200, 200 + 100/sqrt(2), and that + 100/sqrt(3) ms."""


def congested(until_ms: int) -> CoDelState:
    """Return a state behind a congestion of so long, with a packet each millisecond."""
    state = CoDelState(target_ns=ms(5), interval_ns=ms(100))
    for now_ms in range(until_ms):
        while state.drops(ms(now_ms), ms(20), 9000, 1000):
            pass  # the next one's turn comes at the same instant
    assert not state.drops(ms(until_ms), 0, 9000, 1000)
    return state


def has_second(state: CoDelState, begins_at_ns: int, after_ms: float) -> bool:
    """Whether of a congestion that drops first at that time a packet so much later is dropped."""
    assert not state.drops(begins_at_ns - ms(100), ms(20), 9000, 1000)
    assert state.drops(begins_at_ns, ms(20), 9000, 1000)
    return state.drops(begins_at_ns + ms(after_ms), ms(20), 9000, 1000)


@pytest.mark.parametrize(
    ("until_ms", "gap_ms"),
    [
        (150, 100),  # one drop
        (250, 100),  # two, of which the last came on top of the first
        (300, 70.710678),  # three: the next state begins as if two had been
    ],
)
def test_a_congestion_goes_on_with_the_drops_that_came_on_top_of_the_first(
    until_ms: int, gap_ms: float
) -> None:
    begins_at_ns = ms(until_ms + 300)
    assert not has_second(congested(until_ms), begins_at_ns, gap_ms - 1e-6)
    assert has_second(congested(until_ms), begins_at_ns, gap_ms)


@pytest.mark.parametrize(("late_ns", "has_gone_on"), [(-1, True), (0, False), (ms(50), False)])
def test_sixteen_intervals_behind_the_next_drop_the_last_ones_are_forgotten(
    late_ns: int, has_gone_on: bool
) -> None:
    begins_at_ns = NEXT_NS + ms(1600) + late_ns
    assert has_second(congested(300), begins_at_ns, 80) is has_gone_on


def test_a_normal_delay_is_never_less_than_nothing() -> None:
    jitter = LinkJitter(mean_ns=10, deviation_ns=1000, distribution=Distribution.NORMAL)
    draw = make_draw(jitter, Scripted(0.0, 0.4, 0.5, 0.6))  # type: ignore[arg-type]
    # A tenth of a standard normal variable's half lies between 0.4 and 0.5: 0.2533 deviations.
    assert [draw() for _ in range(4)] == [0, 0, 10, 263]


def test_a_uniform_delay_lies_within_its_deviation_of_its_mean() -> None:
    draw = make_draw(LinkJitter(mean_ns=1000), Scripted(0.0, 0.25, 0.5, 1.0))  # type: ignore[arg-type]
    assert [draw() for _ in range(4)] == [500, 750, 1000, 1500]


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ({"mean_ns": "long"}, ["jitter_ms"]),
        ({"mean_ns": 10, "deviation_ns": 11}, ["jitter_deviation_ms"]),
        ({"mean_ns": 10, "deviation_ns": 10}, []),
        ({"mean_ns": 10, "deviation_ns": 11, "distribution": Distribution.NORMAL}, []),
        ({"mean_ns": 10, "deviation_ns": 11, "distribution": Distribution.PARETO}, []),
    ],
)
def test_a_delay_is_refused_where_it_could_be_negative(values: Any, keys: list[str]) -> None:
    if not keys:
        assert LinkJitter(**values).mean_ns == 10
        return
    with pytest.raises(NetworkError) as caught:
        LinkJitter(**values)
    assert {problem.key for problem in caught.value.problems} >= set(keys)


def test_each_flow_that_cannot_be_read_is_reported_as_it_was_written() -> None:
    with pytest.raises(NetworkError) as caught:
        parse_cross_traffic("Cubic + on-off:0 + b b")
    lines = [problem.message for problem in caught.value.problems]
    assert [line.rsplit(" ", maxsplit=1)[-1] for line in lines[:2]] == ["'Cubic'", "'on-off:0'"]
    assert lines[2].endswith("'b b'")


def test_foreign_packets_are_dropped_where_others_are_marked() -> None:
    profile = LinkProfile(rate_bps=8_000_000, burst_bytes=0, codel=CoDel(), ecn=True)
    link, flow = Link(profile, rtt_ns=0, streams=random.Random), Flow()
    fates = []
    for number in range(400):
        at_ns = max(0, ms(number - 30))
        if number % 2:
            fates.append(link.send(at_ns, 1000))
        else:
            link.send_packet(at_ns, Packet(number, ECT), 1000, flow)
    assert None in fates
    assert None not in flow.fates.values()
    assert link.ecn_marks == [*flow.codepoints.values()].count(CE) > 0
