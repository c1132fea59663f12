"""Laws of a browser that computes its load, whatever the page."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.browser import BrowserMode, BrowserModel
from h3sim.conformance import pages
from tests.effort import law
from tests.property import browser_laws, laws

browsers = st.builds(
    BrowserModel,
    mode=st.just(BrowserMode.PARSE),
    cpu_slowdown=st.sampled_from([0.5, 1, 4]),
    preload_scanner=st.booleans(),
    max_concurrent_requests=st.sampled_from([None, None, 1, 6]),
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
    assert load.trace.digest() == run().trace.digest()
    assert load.timings[0].requested_ms == 0
