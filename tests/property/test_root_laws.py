"""Laws of pages of several roots: nothing is lost, and each root leaves at its time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.conformance import pages
from h3sim.page import Discovery, Kind, OpenMode, Page, Resource, TriggerEvent, merge_pages
from h3sim.page.model import parts_of
from h3sim.values.units import ms
from tests.effort import law

BROWSERS = st.sampled_from(["replay", "parse"])


def with_tab(page: Page, after_ms: int, n_bytes: int) -> Page:
    """Return *page* with another root, which names an image."""
    opened = Discovery(at=TriggerEvent.TIME, delay_ns=ms(after_ms))
    tab = Resource(
        id="tab", kind=Kind.DOCUMENT, size_bytes=n_bytes, is_root=True, discovered=opened
    )
    named = Discovery(by="tab", at=TriggerEvent.OFFSET, offset_bytes=n_bytes // 2)
    image = Resource(id="of tab", kind=Kind.IMAGE, size_bytes=999, discovered=named)
    return page.with_resources([image, *page.resources, tab])


@law(60)
@given(pages(), st.integers(0, 3000), st.integers(0, 20_000), BROWSERS, st.sampled_from([0, 60]))
def test_all_of_every_root_comes_and_each_is_asked_for_at_its_time(
    page: Page, after_ms: int, n_bytes: int, browser: str, rtt_ms: int
) -> None:
    both = with_tab(page, after_ms, n_bytes)
    load = h3sim.simulate(both, scheme="rr", browser=browser, rtt_ms=rtt_ms)
    rows = {row.id: row for row in load.timings}
    assert sum(rows[resource.id].bytes for resource in both.resources) == both.total_bytes
    assert rows["tab"].requested_ms == max(rtt_ms, after_ms)
    assert rows[page.resources[page.root].id].requested_ms == rtt_ms
    assert {row.id: row.resources for row in load.roots}["tab"] == 2
    assert sum(row.bytes for row in load.roots) == both.total_bytes


@law(60)
@given(pages(), st.integers(0, 3000))
def test_the_parts_of_a_page_are_the_page(page: Page, after_ms: int) -> None:
    first, second = parts_of(with_tab(page, after_ms, 500))
    assert [r.id for r in first.page.resources] == [r.id for r in page.resources]
    assert h3sim.simulate(first.page, scheme="rr").trace == h3sim.simulate(page, scheme="rr").trace
    assert sorted((*first.indices, *second.indices)) == list(range(len(page.resources) + 2))


@law(60, usual=30)
@given(pages(), pages(), BROWSERS, st.sampled_from(OpenMode))
def test_a_page_beside_another_changes_nothing_of_one_that_is_over(
    page: Page, other: Page, browser: str, opened: OpenMode
) -> None:
    alone = h3sim.simulate(page, scheme="firefox-eps", browser=browser)
    both = merge_pages(page, other, after_ms=alone.page_load_ms + 1000, opened=opened)
    load = h3sim.simulate(both, scheme="firefox-eps", browser=browser)
    assert load.timings[: len(alone.timings)] == alone.timings[:]
    assert both.total_bytes == page.total_bytes + other.total_bytes
    assert sum(row.bytes for row in load.roots) == both.total_bytes


def test_a_root_that_is_not_listed_first_leaves_first_alone_and_beside_another() -> None:
    by_the_clock = Resource(
        id="a", kind=Kind.IMAGE, size_bytes=9, discovered=Discovery(at=TriggerEvent.TIME)
    )
    root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9)
    page = Page(name="p", resources=(by_the_clock, root))
    for both in (page, merge_pages(page, page, after_ms=1000)):
        load = h3sim.simulate(both, scheme="rr", browser="parse")
        assert [timing.id for timing in load.timings][:2] == ["/", "a"]
