"""Laws of a browser that computes its load, whatever the page."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.browser import BrowserMode, BrowserModel
from h3sim.page import Kind
from h3sim.trace import Work
from tests.property.strategies import law, pages

browsers = st.builds(
    BrowserModel,
    mode=st.just(BrowserMode.PARSE),
    cpu_factor=st.sampled_from([0.5, 1, 4]),
    preload_scanner=st.booleans(),
    max_requests=st.sampled_from([None, None, 1, 6]),
)
names = st.sampled_from(["fifo", "rr", "dfifo", "bucket"])


@law(150)
@given(pages(), browsers, names)
def test_every_load_comes_to_rest_with_all_milestones_in_order(page, browser, scheme):
    load = h3sim.simulate(page, scheme=scheme, browser=browser)
    assert len(load.timings) == len(page.resources)
    assert load.first_paint_ms is not None
    assert 0 <= load.dom_content_loaded_ms <= load.load_event_ms


@law(100)
@given(pages(), browsers, names)
def test_the_main_thread_does_one_thing_at_a_time(page, browser, scheme):
    load = h3sim.simulate(page, scheme=scheme, browser=browser)
    computed = [done for done in load.trace.activities if done.work.is_computation]
    assert all(a.ended_at_ns <= b.began_at_ns for a, b in pairwise(computed))


@law(100)
@given(pages(), browsers, names)
def test_every_script_and_stylesheet_runs_once_and_only_when_it_is_there(page, browser, scheme):
    load = h3sim.simulate(page, scheme=scheme, browser=browser)
    finished = {row.id: row.finished_ms for row in load.timings}
    ran = [
        (page.resources[done.resource].id, done.began_at_ns / 1e6)
        for done in load.trace.activities
        if done.work in (Work.STYLE, Work.EXECUTE)
    ]
    kinds = (Kind.STYLESHEET, Kind.SCRIPT)
    expected = {r.id for i, r in enumerate(page.resources) if r.kind in kinds and i != page.root}
    assert expected <= {id_ for id_, _ in ran}
    assert len({id_ for id_, _ in ran}) == len(ran)
    assert all(at_ms >= finished[id_] for id_, at_ms in ran)


@law(100)
@given(pages(), browsers, names)
def test_the_steps_of_the_critical_path_add_up_to_its_end(page, browser, scheme):
    load = h3sim.simulate(page, scheme=scheme, browser=browser)
    for milestone in ("first paint", "DOMContentLoaded", "load"):
        path = load.critical_path(milestone)
        spent_ms = sum(sum(row[4:]) for row in path)
        assert path[0].began_ms + spent_ms == pytest.approx(path[-1].ended_ms, abs=1e-4)
        assert all(a.ended_ms <= b.began_ms + 1e-6 for a, b in pairwise(path))


@law(60)
@given(pages(), names)
def test_a_faster_processor_is_never_seen_in_the_bytes_of_the_document(page, scheme):
    """Computation delays what is asked for, never the root, which is asked for at once."""
    first = [
        h3sim.simulate(page, scheme=scheme, browser="parse", cpu_factor=factor).timings[0]
        for factor in (0.5, 4)
    ]
    assert first[0].requested_ms == first[1].requested_ms == 0


@law(60)
@given(pages(), browsers, names)
def test_equal_loads_are_equal(page, browser, scheme):
    loads = [h3sim.simulate(page, scheme=scheme, browser=browser) for _ in range(2)]
    assert loads[0].trace.digest() == loads[1].trace.digest()
