"""Laws of a browser that computes its load, whatever the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.browser import BrowserMode, BrowserModel, needed_for_first_paint
from h3sim.browser.document import scripts_in_order
from h3sim.conformance import pages
from h3sim.page import ImageFormat, Kind, Page, transforms
from h3sim.page.recording import PaintCause
from h3sim.trace import Work
from h3sim.values.units import to_ms
from tests.effort import law
from tests.property import browser_laws, laws

browsers = st.builds(
    BrowserModel,
    mode=st.just(BrowserMode.PARSE),
    cpu_slowdown=st.sampled_from([0.5, 1, 4]),
    preload_scanner=st.booleans(),
    max_concurrent_requests=st.sampled_from([None, None, 1, 6]),
)


def check_painting(load: Any) -> None:
    """Check the laws of paint as it loads, and the order of its milestones."""
    if load.first_paint_ms is None:
        assert load.page.resources[load.page.root].kind is not Kind.DOCUMENT
        return
    browser_laws.check_paints_rise(load)
    browser_laws.check_painting_is_never_behind(load)
    browser_laws.check_only_delivered_rows_are_painted(load)
    assert load.first_paint_ms <= load.fcp_ms
    if load.visual is not None:
        assert list(load.visual) == sorted(load.visual)
        assert load.first_paint_ms <= load.speed_index_ms <= load.visual.last_change_ms


SHOWN = st.lists(
    st.fixed_dictionaries(
        {
            "viewport": st.sampled_from([None, 0.1, 0.6, 1.0]),
            "image_format": st.sampled_from([None, *(each.value for each in ImageFormat)]),
            "font_display": st.sampled_from(["auto", "swap"]),
        }
    ),
    min_size=8,
    max_size=8,
)
names = st.sampled_from(["fifo", "rr", "dfifo", "bucket"])


@law(120)
@given(pages(), browsers, names)
def test_every_load_keeps_the_laws_of_a_browser(page: Any, browser: Any, scheme: Any) -> None:
    def run() -> Any:
        return h3sim.simulate(page, scheme=scheme, browser=browser)

    laws.check_the_load_ends(run)
    load = run()
    browser_laws.check_the_main_thread_does_one_thing_at_a_time(load)
    browser_laws.check_what_runs_is_there(load)
    browser_laws.check_nothing_is_painted_before_what_it_needs(load)
    browser_laws.check_the_load_event_waits_for_what_was_asked_for(load)
    browser_laws.check_the_critical_path_adds_up(load)
    check_painting(load)
    assert load.trace.digest() == run().trace.digest()
    assert load.timings[0].requested_ms == 0


CAUSES = st.builds(
    PaintCause,
    after=st.lists(st.integers(0, 30).map(str), max_size=3),
    work_ns=st.sampled_from([0, 20_000_000]),
    delay_ns=st.sampled_from([0, 7_000_000, 300_000_000]),
)
"""Causes of paints; the position of a resource stands for its id."""


@law(120, usual=60)
@given(pages(), browsers, names, CAUSES, CAUSES)
def test_no_paint_comes_before_its_causes(
    page: Any, browser: Any, scheme: str, first: PaintCause, largest: PaintCause
) -> None:
    ids = [each.id for each in page.resources]
    first, largest = (
        replace(each, after=tuple(ids[int(n) % len(ids)] for n in each.after))
        for each in (first, largest)
    )
    page = replace(page, first_paint=first, largest_paint=largest)
    load = h3sim.simulate(page, scheme=scheme, browser=browser)
    browser_laws.check_the_main_thread_does_one_thing_at_a_time(load)
    browser_laws.check_nothing_is_painted_before_what_it_needs(load)
    browser_laws.check_the_load_event_waits_for_what_was_asked_for(load)
    browser_laws.check_the_critical_path_adds_up(load)
    check_painting(load)
    bounds = load.paint_bounds
    if bounds is not None:
        assert bounds.first_paint_ms <= load.first_paint_ms
    if load.largest_paint_ms is not None:
        finished_ms = {row.id: row.finished_ms for row in load.timings}
        last_ms = max([load.first_paint_ms or 0, *(finished_ms[id_] for id_ in largest.after)])
        assert load.largest_paint_ms >= last_ms + to_ms(largest.delay_ns) - 1e-6


@law(80, usual=40)
@given(
    pages(),
    SHOWN,
    names,
    st.sampled_from([0, 30, 1000]),
    st.sampled_from([{}, {"network": "sander-2mbps-100ms-2pct"}]),
)
def test_what_is_seen_grows_with_what_is_delivered(
    page: Any, shown: Any, scheme: str, update_ms: float, network: dict[str, str]
) -> None:
    for resource, keys in zip(page.resources[1:], shown, strict=False):
        page = page.with_(resource.id, **keys)
    how: dict[str, Any] = {"browser": "parse", "image_update_ms": update_ms, **network}
    check_painting(h3sim.simulate(page, scheme=scheme, **how))


ELEMENTS = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["stylesheet", "script", "script", "image"]),
            "bytes": st.integers(0, 9000),
            "offset_bytes": st.integers(0, 5000),
            "in_head": st.booleans(),
            "defer": st.sampled_from([False, False, True]),
            "execute_ms": st.sampled_from([0, 7]),
            "leads": st.booleans(),
            "is_hinted": st.booleans(),
        }
    ),
    min_size=1,
    max_size=6,
)


def page_with(elements: list[dict[str, Any]], server_ms: float) -> Page:
    """Return a page whose document has these elements, some of which lead to a fetch."""
    root = {"id": "/", "kind": "document", "bytes": 5000, "parse_ms": 5, "server_ms": server_ms}
    entries: list[dict[str, Any]] = [root]
    for number, each in enumerate(elements):
        found = {"by": "/", "at": "offset", "offset_bytes": each["offset_bytes"]}
        keys = {key: each[key] for key in ("kind", "bytes", "in_head", "defer", "execute_ms")}
        entries.append({"id": f"e{number}", **keys, "discovered": found})
        if each["leads"]:
            late = {"by": f"e{number}", "at": "executed"}
            entries.append({"id": f"f{number}", "kind": "fetch", "bytes": 10, "discovered": late})
    return Page.from_dict({"format": "h3sim-page/1", "name": "elements", "resources": entries})


@law(120, usual=50)
@given(ELEMENTS, st.sampled_from([0, 20, 200]), browsers, names)
def test_early_hints_unblock_nothing(
    elements: Any, server_ms: float, browser: Any, scheme: str
) -> None:
    page = page_with(elements, server_ms)
    some = [f"e{number}" for number, each in enumerate(elements) if each["is_hinted"]]
    hinted = transforms.with_early_hints(page, some)

    def blocking(of: Page) -> set[str]:
        return {of.resources[index].id for index in needed_for_first_paint(of)}

    assert blocking(hinted) == blocking(page)
    load = h3sim.simulate(hinted, scheme=scheme, browser=browser)
    browser_laws.check_the_main_thread_does_one_thing_at_a_time(load)
    browser_laws.check_what_runs_is_there(load)
    browser_laws.check_nothing_is_painted_before_what_it_needs(load)
    browser_laws.check_the_load_event_waits_for_what_was_asked_for(load)
    browser_laws.check_the_critical_path_adds_up(load)
    check_painting(load)
    ran = [load.page.resources[n].id for n in executed_in_order(load)]
    before = h3sim.simulate(page, scheme=scheme, browser=browser)
    assert ran == [before.page.resources[n].id for n in executed_in_order(before)]


def executed_in_order(load: Any) -> list[int]:
    """Return the scripts that run in document order, in the order in which they ran."""
    in_order = scripts_in_order(load.page)
    return [
        done.resource
        for done in load.trace.activities
        if done.work is Work.EXECUTE and done.resource in in_order
    ]
