"""Laws of pages whose resources wait for several others, or for the first of several events."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
from hypothesis import given

import h3sim
from h3sim.conformance.strategies import pages
from h3sim.page import Discovery, Page, TriggerEvent, page_from_dict, page_to_dict
from tests.helpers import AT_ONCE
from tests.property.browser_laws import (
    check_the_critical_path_adds_up,
    check_the_load_event_waits_for_what_was_asked_for,
    check_what_runs_is_there,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

_EVENTS = (TriggerEvent.COMPLETE, TriggerEvent.EXECUTED, TriggerEvent.REQUEST)


@st.composite
def joined_pages(draw: DrawFn) -> Page:
    """Draw a page, and let some of its resources wait for several others, or for one of them."""
    page = draw(pages(min_resources=4))
    rank = _ranks(page)
    resources = []
    for index, resource in enumerate(page.resources):
        found = resource.discovered
        # All that were requested before it in the drawn graph, so that there is no cycle.
        before = [each.id for n, each in enumerate(page.resources) if rank[n] < rank[index]]
        if found is not None and not resource.is_root and len(before) > 1 and draw(st.booleans()):
            ids = draw(st.lists(st.sampled_from(before), min_size=2, max_size=3, unique=True))
            several = Discovery(
                by=tuple(ids),
                at=draw(st.sampled_from(_EVENTS)),
                delay_ns=draw(st.integers(0, 10**7)),
            )
            found = draw(
                st.sampled_from(
                    [
                        several,
                        replace(found, or_else=(several,)),
                        replace(several, or_else=(found,)),
                    ]
                )
            )
        # A page that waits for a lazy image below the fold waits for itself.
        resources.append(replace(resource, discovered=found, is_lazy=False))
    return page.with_resources(resources, name="joined")


def _ranks(page: Page) -> list[int]:
    """Return how far each resource is from what has no parent."""
    ranks: list[int] = []
    for resource in page.resources:
        rank, at = 0, resource
        while at.discovered is not None and at.discovered.waits_for:
            rank, at = rank + 1, page.resources[page.index[at.discovered.waits_for[0]]]
        ranks.append(rank)
    return ranks


@given(joined_pages())
def test_every_resource_is_requested_once_and_after_the_last_that_it_waits_for(page: Page) -> None:
    load = h3sim.simulate(page, scheme="rr", network="marx-2019")
    times = {row.id: row for row in load.timings}
    assert [*times] == list(dict.fromkeys(row.id for row in load.timings))
    assert {*times} == {*page.index}
    for resource in page.resources:
        found = resource.discovered
        if found is None or not found.is_joined:
            continue
        earliest_ms = []
        for when in found.alternatives:
            if when.at is TriggerEvent.TIME:
                earliest_ms.append(when.delay_ns / 1e6)
            elif when.at is TriggerEvent.OFFSET:
                earliest_ms.append(times[when.parents[0]].requested_ms)
            else:
                events = [_event_ms(page, times[by], when.at) for by in when.parents]
                earliest_ms.append(max(events) + when.delay_ns / 1e6)
        assert times[resource.id].requested_ms >= min(earliest_ms) - 1e-6, resource.id


def _event_ms(page: Page, row: Any, at: TriggerEvent) -> float:
    if at is TriggerEvent.REQUEST:
        return float(row.requested_ms)
    resource = page.resources[page.index[row.id]]
    run_ms = (resource.parse_ns + resource.execute_ns) / 1e6
    return float(row.finished_ms) + (run_ms if at is TriggerEvent.EXECUTED else 0)


@given(joined_pages())
def test_a_browser_that_computes_keeps_its_laws_with_joins(page: Page) -> None:
    load = h3sim.simulate(page, scheme="fifo", network="marx-2019", **AT_ONCE)
    check_what_runs_is_there(load)
    check_the_load_event_waits_for_what_was_asked_for(load)
    check_the_critical_path_adds_up(load)


@given(joined_pages())
def test_a_page_with_joins_is_read_as_it_was_written(page: Page) -> None:
    assert page_from_dict(page_to_dict(page)) == page
