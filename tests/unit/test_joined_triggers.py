"""Resources that wait for all of several others, or for the first of several events."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.page import Discovery, Page, TriggerEvent, merge_pages, with_cached
from h3sim.page.model import page_to_dict, parts_of
from h3sim.values.errors import PageError
from tests.helpers import AT_ONCE, page_of

PACKET = 1400
BOTH = {"by": ["a", "b"], "at": "complete", "delay_ms": 3}
MODES = [{}, AT_ONCE]
"""The browser that replays, and the one that computes."""


def page_with(joined: Any, a_ms: float = 30, b_ms: float = 80, **more: Any) -> Page:
    """Return a page whose image waits for what the server answers after *a_ms* and *b_ms*."""
    data = {"kind": "fetch", "bytes": PACKET, "discovered": {"by": "/", "at": "complete"}}
    return page_of(
        {"id": "/", "kind": "document", "bytes": PACKET},
        {"id": "a", "server_ms": a_ms, **data},
        {"id": "b", "server_ms": b_ms, **data},
        {"id": "c", "kind": "image", "bytes": PACKET, "discovered": joined, **more},
    )


def requested(page: Page, **options: Any) -> dict[str, float]:
    load = h3sim.simulate(page, scheme="fifo", **options)
    return {row.id: row.requested_ms for row in load.timings}


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize(("a_ms", "b_ms"), [(30, 80), (80, 30), (50, 50)])
def test_what_waits_for_several_is_requested_after_the_last(
    options: dict[str, Any], a_ms: float, b_ms: float
) -> None:
    """The document is there at 10; each answer leaves with the next packet once it is ready."""
    times = requested(page_with(BOTH, a_ms, b_ms), **options)
    finished = h3sim.simulate(page_with(BOTH, a_ms, b_ms), scheme="fifo", **options).timings
    last_ms = max(row.finished_ms for row in finished if row.id in "ab")
    assert times["c"] == last_ms + 3 > 60


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize(("timeout_ms", "expected_ms"), [(20, 30), (70, 80), (500, 93)])
def test_a_timeout_counts_if_it_comes_before_the_last_of_several(
    options: dict[str, Any], timeout_ms: float, expected_ms: float
) -> None:
    """The document is complete at 10, the answers at 40 and 90, and 3 ms follow the last."""
    late = {"by": "/", "at": "complete", "delay_ms": timeout_ms}
    assert requested(page_with([BOTH, late]), **options)["c"] == expected_ms
    assert requested(page_with([late, BOTH]), **options)["c"] == expected_ms


@pytest.mark.parametrize("options", MODES)
def test_of_several_triggers_the_first_to_fire_requests_it_once(options: dict[str, Any]) -> None:
    either = [{"by": "b", "at": "complete"}, {"by": "a", "at": "complete"}]
    load = h3sim.simulate(page_with(either), scheme="fifo", **options)
    assert [row.requested_ms for row in load.timings if row.id == "c"] == [40]
    since_start = [{"by": "b", "at": "complete"}, {"at": "time", "delay_ms": 35}]
    assert requested(page_with(since_start), **options)["c"] == 35


@pytest.mark.parametrize("options", MODES)
def test_an_offset_may_be_one_of_several_triggers(options: dict[str, Any]) -> None:
    found = [{"by": "b", "at": "complete"}, {"by": "/", "at": "offset", "offset_bytes": 9}]
    assert requested(page_with(found), **options)["c"] == 10


def test_a_font_of_two_stylesheets_is_requested_at_the_layout_after_both() -> None:
    sheets = {"kind": "stylesheet", "bytes": PACKET, "in_head": True}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": PACKET},
        {"id": "s", **sheets, "discovered": {"by": "/", "at": "offset", "offset_bytes": 1}},
        {"id": "t", **sheets, "discovered": {"by": "/", "at": "offset", "offset_bytes": 2}},
        {
            "id": "w",
            "kind": "font",
            "bytes": PACKET,
            "discovered": {"by": ["s", "t"], "at": "complete"},
        },
    )
    load = h3sim.simulate(page, scheme="fifo", **(AT_ONCE | {"paint_ms": 16}))
    assert load.first_paint_ms == 46
    assert {row.id: row.requested_ms for row in load.timings}["w"] == 46


def test_the_critical_path_leads_through_the_last_of_several() -> None:
    both = {"by": ["a", "b"], "at": "complete"}
    load = h3sim.simulate(page_with(both), scheme="fifo", **AT_ONCE)
    assert [step.id for step in load.critical_path()] == ["/", "b", "c", None]
    slack_ms = {row.id: row.slack_ms for row in load.activities() if row.work == "download"}
    assert slack_ms["b"] == slack_ms["c"] == 0
    assert slack_ms["a"] > 0


def test_a_page_file_keeps_lists_of_parents_and_of_triggers() -> None:
    late = {"by": "/", "at": "executed", "delay_ms": 1500}
    for joined in (BOTH, [BOTH, late], [{"by": "a", "at": "complete"}, late]):
        page = page_with(joined)
        entry = page_to_dict(page)["resources"][3]
        assert entry["discovered"] == joined
        assert Page.from_dict(page_to_dict(page)) == page
    # A list of one is that one.
    assert page_with([{"by": ["a"], "at": "complete"}]) == page_with({"by": "a", "at": "complete"})


def test_a_changed_page_takes_lists_as_a_page_file_does() -> None:
    page = page_with({"by": "a", "at": "complete"})
    triggers = [Discovery(by=("a", "b"), at=TriggerEvent.COMPLETE), {"at": "time", "delay_ms": 9}]
    changed = page.with_("c", discovered=triggers)
    found = changed.resources[3].discovered
    assert found is not None
    assert [when.parents for when in found.alternatives] == [("a", "b"), ()]
    assert page.with_("c", discovered=found).resources[3].discovered == found


@pytest.mark.parametrize(
    ("joined", "key"),
    [
        ({"by": ["a", "x"], "at": "complete"}, "resources[3].discovered.by[1]"),
        ({"by": ["a", "a"], "at": "complete"}, "resources[3].discovered.by"),
        ({"by": [], "at": "complete"}, "resources[3].discovered.by"),
        ({"by": ["a", 7], "at": "complete"}, "resources[3].discovered.by[1]"),
        ({"by": ["a", "b"], "at": "offset", "offset_bytes": 1}, "resources[3].discovered.by"),
        ([], "resources[3].discovered"),
        ([BOTH, {"by": "x", "at": "complete"}], "resources[3].discovered[1].by"),
        ([BOTH, {"at": "complete"}], "resources[3].discovered[1].by"),
        ({"by": ["a", "c"], "at": "complete"}, "resources[3].discovered.by"),
    ],
)
def test_a_wrong_list_is_named_by_its_key(joined: Any, key: str) -> None:
    with pytest.raises(PageError) as refused:
        page_with(joined)
    assert [problem.key for problem in refused.value.problems] == [key]


def test_only_triggers_that_all_wait_for_one_another_are_a_cycle() -> None:
    """With another way to be requested, a resource may also follow what it leads to."""
    data = {"kind": "script", "bytes": 9}
    root = {"id": "/", "kind": "document", "bytes": 9}
    by_root, by_b = {"by": "/", "at": "complete"}, {"by": "b", "at": "complete"}
    b = {"id": "b", **data, "discovered": {"by": "a", "at": "complete"}}
    page = page_of(root, {"id": "a", **data, "discovered": [by_root, by_b]}, b)
    assert requested(page) == {"/": 0, "a": 10, "b": 20}
    with pytest.raises(PageError, match="cycle"):
        page_of(root, {"id": "a", **data, "discovered": {"by": ["/", "b"], "at": "complete"}}, b)
    # The first trigger must lead to the root.
    with pytest.raises(PageError, match="cycle"):
        page_of(root, {"id": "a", **data, "discovered": [by_b, by_root]}, b)


def test_a_change_of_priority_waits_for_one_resource() -> None:
    change = {"when": BOTH, "visible": True}
    with pytest.raises(PageError) as refused:
        page_with({"by": "a", "at": "complete"}, priority_changes=[change])
    assert [problem.key for problem in refused.value.problems] == [
        "resources[3].priority_changes[0].when"
    ]


def test_what_waits_for_a_cached_resource_waits_for_the_others() -> None:
    cached = with_cached(page_with(BOTH), "a")
    assert requested(cached)["c"] == 93
    found = with_cached(page_with(BOTH), ["a", "b"]).resources[1].discovered
    assert found is not None
    assert (found.parents, found.delay_ns) == (("/",), 3_000_000)


def test_a_resource_without_all_its_parents_is_removed_unless_another_trigger_is_left() -> None:
    late = {"by": "/", "at": "complete", "delay_ms": 5}
    assert "c" not in page_with(BOTH).without("a").index
    left = page_with([BOTH, late]).without("a")
    assert requested(left)["c"] == 15


def test_two_pages_together_keep_what_each_waits_for() -> None:
    both = merge_pages(
        page_with(BOTH), page_with([BOTH, {"at": "time", "delay_ms": 1}]), after_ms=0
    )
    other = both.resources[-1].discovered
    assert other is not None
    assert [when.parents for when in other.alternatives] == [
        ("page:a", "page:b"),
        ("page:/",),
    ]
    assert [len(part.page.resources) for part in parts_of(both)] == [4, 4]
    for options in MODES:
        load = h3sim.simulate(both, scheme="rr", **options)
        assert len(load.timings) == 8


def test_what_waits_belongs_to_one_root() -> None:
    tab = {"id": "t", "kind": "document", "bytes": 9, "root": True, "discovered": {"at": "time"}}
    root = {"id": "/", "kind": "document", "bytes": 9}
    both = {"by": ["/", "t"], "at": "complete"}
    with pytest.raises(PageError, match="one root"):
        page_of(root, tab, {"id": "c", "kind": "image", "bytes": 9, "discovered": both})


def test_bounds_hold_for_pages_with_joins() -> None:
    late = {"by": "/", "at": "complete", "delay_ms": 20}
    for joined in (BOTH, [BOTH, late], [late, BOTH]):
        page = page_with(joined, viewport=0.5, above_the_fold=True, hero=True)
        load = h3sim.simulate(page, scheme="fifo", **AT_ONCE)
        bounds = load.paint_bounds
        assert load.largest_paint_ms is not None
        assert bounds.largest_paint_ms is not None
        assert bounds.largest_paint_ms <= load.largest_paint_ms
        found = h3sim.optimality(page, schemes=["fifo"])
        assert [(row.optimality_ratio_all or 0) >= 1 for row in found.rows] == [True]
