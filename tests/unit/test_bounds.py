"""Bounds on ByteIndex: of requests, of a page, of what arrived; and the optimum of small pages."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import pytest

import h3sim
from h3sim.advice.optimality import optimal_schedule
from h3sim.metrics import lower_bounds
from h3sim.metrics.lower_bounds import (
    Part,
    Path,
    TransmissionJob,
    TransmissionOpportunity,
    lower_bound_over_links_ns,
    mean_tick_bound,
    parts_of,
    tick_sums,
)
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.effort import scaled
from tests.helpers import page_of

if TYPE_CHECKING:
    from h3sim.page import Page

TEN = Path(1400, Fraction(10), down_ns=20, up_ns=30)


def weighed(page: Page, path: Path = TEN) -> list[Part]:
    return parts_of(page, path, weighs=lambda resource: True)


# Parts of a page


def test_a_response_is_cut_where_something_follows_from_it() -> None:
    # 10 packets; what is named at byte 2800 of the body is asked for when 2 packets are there. The
    # request takes 30 up; the parser hears of the second packet 20 after it left: 50, 5 ticks.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 14_000},
        {
            "id": "a",
            "kind": "image",
            "bytes": 1400,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 2800},
        },
    )
    # The root arrives at the server at 30: tick 3, then 4; the rest from tick 5 on.
    assert weighed(page) == [
        Part(after=None, lag_ticks=1, first_tick=3, n_packets=2, weight=0),
        Part(after=0, lag_ticks=1, first_tick=5, n_packets=8, weight=14_000),
        Part(after=0, lag_ticks=5, first_tick=9, n_packets=1, weight=1400),
    ]


def test_what_follows_from_a_request_waits_for_what_that_request_waits_for() -> None:
    # b is asked for 7 after a is, which is when the root is complete: 20 down, 7, 30 up, 4 to think
    # is 61: 7 ticks.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 1400},
        {"id": "a", "kind": "script", "bytes": 1400, "discovered": {"by": "/", "at": "complete"}},
        {
            "id": "b",
            "kind": "image",
            "bytes": 1400,
            "discovered": {"by": "a", "at": "request"},
        },
    )
    root, *others = weighed(page)
    assert root.first_tick == 3
    assert [(part.after, part.lag_ticks, part.first_tick) for part in others] == [(0, 5, 8)] * 2


def test_what_is_requested_at_a_time_or_after_a_request_waits_for_no_more() -> None:
    # a comes 10 after navigation start, 30 up, 10 to think: tick 5; b is asked for 10 after c is,
    # at the end of the root: 20 down, 10, 30 up are 6 ticks.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 1400},
        {
            "id": "a",
            "kind": "image",
            "bytes": 1400,
            "server_ms": 0.00001,
            "discovered": {"by": "/", "at": "time", "delay_ms": 0.00001},
        },
        {"id": "c", "kind": "script", "bytes": 1400, "discovered": {"by": "/", "at": "complete"}},
        {
            "id": "b",
            "kind": "image",
            "bytes": 1400,
            "discovered": {"by": "c", "at": "request", "delay_ms": 0.00001},
        },
    )
    found = sorted((part.first_tick, part.lag_ticks) for part in weighed(page))
    assert found == [(3, 1), (5, 1), (8, 5), (9, 6)]


def test_what_is_requested_with_a_response_cuts_it_nowhere() -> None:
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 4200},
        {"id": "a", "kind": "image", "bytes": 1400, "discovered": {"by": "/", "at": "request"}},
    )
    assert [part.n_packets for part in weighed(page)] == [3, 1]


def test_execution_delays_what_follows_from_it() -> None:
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 1400, "execute_ms": 0.00004, "parse_ms": 0.00001},
        {"id": "a", "kind": "image", "bytes": 1, "discovered": {"by": "/", "at": "executed"}},
    )
    assert weighed(page)[1].lag_ticks == 10  # 20 down, 10 and 40, 30 up


def test_an_interval_that_is_no_integer_leaves_room_for_cut_ticks() -> None:
    # Ticks fall at 3, 6 (of 6.67), 10, ...: from 6 on, 4 later is tick 3, though 4 exceed 10/3.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 2800},
        {"id": "a", "kind": "image", "bytes": 1, "discovered": {"by": "/", "at": "complete"}},
    )
    path = Path(1400, Fraction(10, 3), down_ns=2, up_ns=2)
    assert weighed(page, path)[1].lag_ticks == 1
    # Ticks at 2 (of 2.5), 5, 7 (of 7.5): from 2 on, 3 later is tick 2, though 3 exceed 5/2.
    assert weighed(page, Path(1400, Fraction(5, 2), down_ns=1, up_ns=2))[1].lag_ticks == 1
    # Ticks at whole numbers are not cut: 51 later is the sixth of 10.
    assert weighed(page, Path(1400, Fraction(10), down_ns=20, up_ns=31))[1].lag_ticks == 6


# Bounds


def test_each_tick_goes_to_what_has_most_weight_a_packet() -> None:
    # The second is ready from tick 2 on and denser: 1, 3, 4 and 2.
    assert tick_sums([1, 2], [3, 1], [3, 2]) == [8, 2]


def test_what_waits_is_sent_as_one_with_what_it_waits_for() -> None:
    # Behind 9 packets that weigh nothing stands one that weighs 8, beside it one that weighs 1.
    # A packet of the ten is worth 0.8, less than 1: the lone one goes first: 1 + 8 * 11 = 89. The
    # other way round: 8 * 10 + 11 = 91.
    parts = [Part(None, 1, 1, 9, 0), Part(0, 1, 10, 1, 8), Part(None, 1, 1, 1, 1)]
    assert optimal_schedule(parts).total == 89
    bound = mean_tick_bound(parts)
    assert bound is not None
    assert bound * 9 == pytest.approx(89)


@pytest.mark.parametrize(
    ("parts", "total"),
    [
        # The first two are worth 10 for 2 packets, the third 4 for 1: 2 * 10 + 3 * 4. Without
        # anything moved the second is at 2 and the third at 1.
        ([Part(None, 1, 1, 1, 0), Part(0, 1, 2, 1, 10), Part(None, 1, 1, 1, 4)], 32),
        ([Part(None, 1, 1, 1, 4), Part(None, 1, 1, 1, 0), Part(1, 1, 2, 1, 10)], 32),
        # 12 for 4 packets, 2 for one: 4 * 12 + 5 * 2.
        ([Part(None, 1, 1, 1, 0), Part(0, 1, 2, 3, 12), Part(None, 1, 1, 1, 2)], 58),
        # Of two behind the first the denser is sent with it, 5 for 2 packets, and not the heavier:
        # 2 * 5, then 9 for 4 packets, 6 * 9, then 6 for 3, 9 * 6.
        (
            [
                Part(None, 1, 1, 1, 0),
                Part(0, 1, 2, 1, 5),
                Part(0, 1, 2, 3, 6),
                Part(None, 1, 1, 4, 9),
            ],
            118,
        ),
        # 10 for one packet, then 6 for one, then what waits for the first: 10 for 2 packets.
        (
            [
                Part(None, 1, 1, 1, 10),
                Part(0, 1, 2, 1, 0),
                Part(1, 1, 3, 1, 10),
                Part(None, 1, 1, 1, 6),
            ],
            62,
        ),
    ],
)
def test_without_a_step_the_bound_is_that_of_weights_made_level(
    parts: list[Part], total: int
) -> None:
    """Horn 1972: what waits is sent as one with what it waits for, by the mean weight of both."""
    bound = mean_tick_bound(parts, n_steps=0)
    assert bound is not None
    assert bound * sum(part.weight for part in parts) == pytest.approx(total)


def test_no_more_weight_is_moved_than_a_part_has_by_then() -> None:
    chain = [Part(None, 1, 1, 1, 3), Part(0, 1, 2, 1, 2), Part(1, 1, 3, 1, 4)]
    assert lower_bounds._allowed(chain, [9.0, 9.0, 9.0]) == [0, 6, 4]
    assert lower_bounds._allowed(chain, [9.0, 9.0, 1.0]) == [0, 3, 1]
    assert lower_bounds._allowed(chain, [1.0, -1.0, -1.0]) == [0, 0, 0]


def test_without_weights_there_is_no_bound() -> None:
    assert mean_tick_bound([Part(None, 1, 1, 1, 0)]) is None
    assert (
        lower_bound_over_links_ns([TransmissionJob(0, 10, 0)], [TransmissionOpportunity(0, 1, 10)])
        is None
    )


def test_what_arrived_is_used_by_what_was_ready_when_it_left() -> None:
    # 100 bytes each at 10, 20, 30. The dense one is ready only at 5: the first left at 0. It has
    # the second; the other the first and third: there at 30, its bytes at 20 on the mean, and no
    # two slots are nearer than 10: 20 + 5.
    opportunities = [
        TransmissionOpportunity(0, 10, 100),
        TransmissionOpportunity(9, 20, 100),
        TransmissionOpportunity(19, 30, 100),
    ]
    expected = [TransmissionJob(0, 200, 1), TransmissionJob(5, 100, 1)]
    assert lower_bound_over_links_ns(expected, opportunities) == ((20 + 5) + 20) / 2


def test_a_packet_that_overtook_others_binds_nobody() -> None:
    # The one that left last arrived first: whoever may use it may use what came after it.
    opportunities = [TransmissionOpportunity(9, 10, 100), TransmissionOpportunity(0, 20, 100)]
    assert lower_bound_over_links_ns([TransmissionJob(5, 100, 1)], opportunities) == 10
    assert lower_bound_over_links_ns([TransmissionJob(5, 200, 1)], opportunities) == 20


def test_what_left_at_zero_is_used_by_nothing_that_was_ready_later() -> None:
    opportunities = [TransmissionOpportunity(0, 10, 100), TransmissionOpportunity(1, 20, 100)]
    assert lower_bound_over_links_ns([TransmissionJob(1, 100, 1)], opportunities) == 20


def test_slots_of_uneven_size_are_cut() -> None:
    # 150 bytes: all of 10 and half of 20: mean 13 1/3. The densest run of 150 bytes ends at its
    # last byte: 100 at 20 and 50 at 10: 20 - 16 2/3.
    opportunities = [TransmissionOpportunity(0, 10, 100), TransmissionOpportunity(0, 20, 100)]
    bound = lower_bound_over_links_ns([TransmissionJob(0, 150, 1)], opportunities)
    assert bound == pytest.approx(40 / 3 + 10 / 3)


# The optimum


def drawn_parts(source: random.Random, most: int) -> list[Part]:
    parts: list[Part] = []
    for index in range(source.randint(1, most)):
        after = source.choice([None, *range(index)])
        lag, n = source.randint(1, 4), source.randint(1, 3)
        first = source.randint(1, 6)
        if after is not None:
            first = parts[after].first_tick + parts[after].n_packets - 1 + lag
        parts.append(Part(after, lag, first, n, source.choice([0, 0, 1, 1, 2, 3, 5, 9])))
    return parts


def least_of_all_orders(parts: list[Part]) -> int:
    """Try every order of packets that leaves no tick unused which could be used."""

    @cache
    def least_from(tick: int, left: tuple[int, ...], ends: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        ready = [
            index
            for index, part in enumerate(parts)
            if left[index] and tick >= first_of(part, ends)
        ]
        if not ready:
            return least_from(tick + 1, left, ends)
        totals = []
        for index in ready:
            still = (*left[:index], left[index] - 1, *left[index + 1 :])
            ended, cost = ends, 0
            if not still[index]:
                ended = (*ends[:index], tick, *ends[index + 1 :])
                cost = parts[index].weight * tick
            totals.append(cost + least_from(tick + 1, still, ended))
        return min(totals)

    return least_from(1, tuple(part.n_packets for part in parts), (0,) * len(parts))


def first_of(part: Part, ends: tuple[int, ...]) -> float:
    if part.after is None:
        return part.first_tick
    return ends[part.after] + part.lag_ticks if ends[part.after] else float("inf")


def total_of(parts: list[Part], order: tuple[int | None, ...]) -> int:
    """Return what an order comes to, after checking that nothing is sent before its time."""
    ends = [0] * len(parts)
    left = [part.n_packets for part in parts]
    for tick, index in enumerate(order, start=1):
        if index is not None:
            assert tick >= first_of(parts[index], tuple(ends))
            left[index] -= 1
            ends[index] = 0 if left[index] else tick
    assert not any(left)
    return sum(part.weight * end for part, end in zip(parts, ends, strict=True))


@pytest.mark.parametrize("seed", range(scaled(50)))
def test_the_solver_finds_the_best_of_all_orders_and_no_bound_is_above_it(seed: int) -> None:
    parts = drawn_parts(random.Random(seed), most=8 if seed % 5 == 0 else 5)
    optimum = optimal_schedule(parts)
    assert optimum.total == least_of_all_orders(parts) == total_of(parts, optimum.order)
    bound = mean_tick_bound(parts)
    total = sum(part.weight for part in parts)
    if bound is None:
        assert not total
    else:
        assert bound * total <= optimum.total * (1 + 1e-12)


def test_the_bound_is_seldom_far_from_the_optimum() -> None:
    ratios = []
    for seed in range(60):
        parts = drawn_parts(random.Random(seed), most=5)
        bound, total = mean_tick_bound(parts), sum(part.weight for part in parts)
        if bound is not None:
            ratios.append(optimal_schedule(parts).total / (bound * total))
    assert max(ratios) < 1.2
    assert sum(ratios) / len(ratios) < 1.02


# Loads


def test_the_bound_of_a_page_counts_what_must_come_first() -> None:
    # 2 packets of the document, then the image of 3; a late script of 5 weighs nothing above the
    # fold. The image could be there at 50 ms, whatever is asked for.
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 2800},
        {
            "id": "a.js",
            "kind": "script",
            "bytes": 7000,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 1},
        },
        {
            "id": "a.png",
            "kind": "image",
            "bytes": 4200,
            "above_the_fold": True,
            "discovered": {"by": "/", "at": "complete"},
        },
    )
    rr = h3sim.simulate(page, scheme="rr", handshake="none")
    assert rr.lower_bound("atf", given="page") == 50
    first = h3sim.simulate(page, scheme="atf-first", handshake="none")
    assert first.byte_index("atf") == 50
    assert first.optimality_ratio("atf", given="page") == 1
    assert rr.optimality_ratio("atf", given="page") == rr.byte_index("atf") / 50 > 1


def test_over_links_a_load_of_one_response_cannot_be_improved() -> None:
    page = page_of({"id": "/", "kind": "document", "bytes": 100_000})
    assert h3sim.simulate(page, network="sander-10mbps-100ms").optimality_ratio() == pytest.approx(
        1
    )


def test_what_has_no_bound_states_why() -> None:
    linked = h3sim.simulate("davies-meenan", network="fibre")
    with pytest.raises(NothingToMeasureError, match="fibre has no constant rate"):
        linked.lower_bound(given="page")
    parsed = h3sim.simulate("davies-meenan", browser="parse")
    with pytest.raises(NothingToMeasureError, match="the browser computed the requests"):
        parsed.lower_bound(given="page")
    with pytest.raises(InputError, match="given: must be 'requests' or 'page', is 'scheme'"):
        linked.lower_bound(given="scheme")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="which: must be 'all' or 'atf', is 'none'"):
        linked.optimality_ratio("none")  # type: ignore[arg-type]


def test_the_solver_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    # HiGHS spoke of these parts while x was not declared whole.
    parts = [Part(None, 6, 8, 3, 5), Part(None, 6, 10, 4, 12345), Part(0, 4, 14, 6, 3000)]
    optimal_schedule(parts)
    assert capfd.readouterr() == ("", "")


# Pages


def drawn_page(source: random.Random) -> Page:
    """Return a page of up to eight resources, of one or two packets, at most two more for the root.

    Each is found at random: when something before it is complete, executed, asked for, or at a byte
    of it, a while later or at once.
    """
    n_resources = source.randint(1, 8)
    documents: list[dict[str, object]] = [
        {"id": "/", "kind": "document", "bytes": 1400 * source.randint(1, 4)}
    ]
    for number in range(1, n_resources):
        by = source.choice(documents)
        found: dict[str, object] = {"by": by["id"], "at": source.choice(["complete", "request"])}
        if source.random() < 0.4:
            at = source.randrange(0, int(str(by["bytes"])))
            found = {"by": by["id"], "at": "offset", "offset_bytes": at}
        documents.append(
            {
                "id": f"r{number}",
                "kind": source.choice(["script", "stylesheet", "image"]),
                "bytes": source.randint(1, 2) * 1400 - source.choice([0, 0, 900]),
                "above_the_fold": source.random() < 0.5,
                "discovered": {**found, "delay_ms": source.choice([0, 0, 0.00001, 0.00003])},
            }
        )
    return page_of(*documents)


@pytest.mark.parametrize("seed", range(scaled(50)))
def test_on_a_page_the_solver_agrees_with_every_order_and_no_bound_is_above_it(seed: int) -> None:
    # Five hundred of them in `make test-thorough`.
    source = random.Random(f"page {seed}")
    page = drawn_page(source)
    is_atf = source.random() < 0.5
    parts = parts_of(page, TEN, weighs=lambda r: not is_atf or r.above_the_fold)
    optimum = optimal_schedule(parts)
    assert optimum.total == least_of_all_orders(parts) == total_of(parts, optimum.order)
    bound, total = mean_tick_bound(parts), sum(part.weight for part in parts)
    assert (bound is None) == (not total)
    assert not total or (bound or 0) * total <= optimum.total * (1 + 1e-12)
