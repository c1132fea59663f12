"""critical-path and atf-first by hand. One packet every 10 ms, the first at 10; no delay."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.schedulers import RankScheduler
from h3sim.schemes.ranks import chain_lengths, leads_above_the_fold
from h3sim.signals import H2Priority, Rank, Signal
from tests.helpers import page_of
from tests.unit.driving import drain_order, opened, turns

SEEN: dict[str, Any] = {"above_the_fold": True}


def entry(
    id_: str, n_packets: int, by: str = "", at: str = "complete", **more: Any
) -> dict[str, Any]:
    """Return a resource of whole packets that hangs on *by*; "time" is when it is asked for."""
    found: dict[str, Any] = {"at": at, "by": by} if by else {"at": "time"}
    delay_ms = more.pop("delay_ms", 0)
    made = {"id": id_, "kind": "other", "bytes": 1400 * n_packets, **more}
    return made if id_ == "/" else {**made, "discovered": {**found, "delay_ms": delay_ms}}


def load_of(scheme: str, *entries: dict[str, Any]) -> h3sim.Load:
    return h3sim.simulate(page_of(*entries), scheme=scheme)


def order_of(load: h3sim.Load) -> list[str]:
    """Return the resource of each packet, in the order sent."""
    ids = {r.stream_id: load.page.resources[r.resource].id for r in load.trace.requests}
    return [ids[stream_id] for stream_id in load.trace.order]


# The mechanism


def test_the_lowest_rank_goes_first_and_of_equals_the_first_to_have_data() -> None:
    streams = {0: Rank(value=2), 8: Rank(value=-1), 4: Rank(value=-1), 12: Rank(value=0)}
    assert drain_order(opened(RankScheduler(), streams), 4) == [8, 4, 12, 0]


def test_what_is_begun_is_ended_by_a_stream_that_joins_with_a_lower_id() -> None:
    scheduler = opened(RankScheduler(), {8: Rank(value=0)})
    assert turns(scheduler, 1) == [8]
    opened(scheduler, {4: Rank(value=0)})
    assert turns(scheduler, 2) == [8, 8]


def test_where_another_signal_came_the_rank_is_0() -> None:
    streams: dict[int, Signal] = {0: Rank(value=1), 4: H2Priority(), 8: Rank(value=-1)}
    assert drain_order(opened(RankScheduler(), streams), 3) == [8, 4, 0]


def test_a_new_rank_takes_effect_at_the_next_pick() -> None:
    scheduler = opened(RankScheduler(), {0: Rank(value=0), 4: H2Priority()})
    assert turns(scheduler, 1) == [0]
    scheduler.update(4, Rank(value=-3))
    assert turns(scheduler, 1) == [4]
    scheduler.update(4, Rank(value=0))
    # It came second, and so it stands second.
    assert turns(scheduler, 1) == [0]
    scheduler.deactivate(0)
    scheduler.activate(0)
    assert turns(scheduler, 1) == [4]


# What a page says


def page() -> h3sim.Page:
    """Return a root with a chain of three, and one whose child does not wait for bytes."""
    halfway = entry("c", 1, "b", "offset")
    halfway["discovered"]["offset_bytes"] = 700
    return page_of(
        entry("/", 1),
        entry("a", 1, "/"),
        entry("b", 1, "a", "executed", **SEEN),
        halfway,
        entry("x", 1, "/"),
        entry("y", 1, "x", "request", **SEEN),
    )


def test_a_chain_counts_those_that_wait_for_bytes() -> None:
    # y is asked for when x is: it waits for no byte of it.
    assert chain_lengths(page()) == [3, 2, 1, 0, 0, 0]


def test_what_leads_above_the_fold_is_what_that_waits_for() -> None:
    # b is above the fold and waits for a, and that for the root. y waits for nothing.
    assert leads_above_the_fold(page()) == [True, True, True, False, False, True]


def test_a_deep_chain_needs_no_recursion() -> None:
    entries = [entry("/", 0), *(entry(f"{n}", 0, f"{n - 1}" if n else "/") for n in range(2000))]
    deep = page_of(*entries)
    assert chain_lengths(deep)[:2] == [2000, 1999]
    entries[-1]["above_the_fold"] = True
    assert all(leads_above_the_fold(page_of(*entries)))


# critical-path


def test_the_longest_chain_goes_first() -> None:
    load = load_of(
        "critical-path",
        entry("/", 1),
        entry("image", 3, "/"),
        entry("a", 1, "/"),
        entry("b", 1, "a"),
        entry("c", 1, "b"),
        entry("s", 1, "/"),
        entry("t", 1, "s"),
    )
    # 10: the root. Then a (a chain of 2 waits), s and b (1 each; s was there first), and of those
    # that nothing waits for the image, which has been there for longest, t, and c.
    assert order_of(load) == ["/", "a", "s", "b", "image", "image", "image", "t", "c"]


def test_once_a_resource_is_requested_its_parent_leads_no_more() -> None:
    entries = (
        entry("/", 3),
        entry("a", 2, delay_ms=5),
        entry("late", 1, "/", "offset"),
        entry("b", 1, "a"),
    )
    entries[2]["discovered"]["offset_bytes"] = 1400
    load = load_of("critical-path", *entries)
    # 10: the root has a chain of one, and is first of two with one. With its first packet there,
    # `late` is asked for; from then on nothing waits for the root, and a goes before it.
    assert order_of(load) == ["/", "a", "a", "/", "/", "late", "b"]


def test_without_chains_it_is_fifo() -> None:
    entries = [entry("/", 2), *(entry(f"{n}", 2, delay_ms=5 * n) for n in range(1, 5))]
    expected = load_of("fifo", *entries).trace.order
    assert load_of("critical-path", *entries).trace.order == expected


# atf-first


def test_what_is_above_the_fold_goes_first_and_one_at_a_time() -> None:
    load = load_of(
        "atf-first",
        entry("/", 2),
        entry("below", 2, delay_ms=5),
        entry("one", 2, delay_ms=15, **SEEN),
        entry("two", 2, delay_ms=15, **SEEN),
    )
    # 10: the root. From 15 on the two above the fold; then the root, which came first of the rest.
    assert order_of(load) == ["/", "one", "one", "two", "two", "/", "below", "below"]


def test_what_it_waits_for_goes_with_it() -> None:
    load = load_of(
        "atf-first",
        entry("/", 1),
        entry("below", 2, "/"),
        entry("css", 2, "/"),
        entry("font", 1, "css", **SEEN),
    )
    # "below" gets no packet between the stylesheet and the font.
    assert order_of(load) == ["/", "css", "css", "font", "below", "below"]


def test_with_nothing_above_the_fold_it_is_fifo() -> None:
    entries = [entry("/", 2), *(entry(f"{n}", 2, delay_ms=5 * n) for n in range(1, 5))]
    expected = load_of("fifo", *entries).trace.order
    assert load_of("atf-first", *entries).trace.order == expected


@pytest.mark.parametrize("name", ["http2rulez", "davies-meenan"])
def test_no_other_scheme_has_a_lower_byte_index_above_the_fold(name: str) -> None:
    least = h3sim.simulate(name, scheme="atf-first").byte_index("atf")
    others = [scheme for scheme in h3sim.list_schemes() if scheme.name != "atf-first"]
    for scheme in others:
        index = h3sim.simulate(name, scheme=scheme).byte_index("atf")
        assert index >= least, scheme.name
