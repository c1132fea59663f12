"""Laws of a browser that computes its load, whatever the page."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.browser import BrowserMode, BrowserModel
from h3sim.conformance import pages
from h3sim.page import ImageFormat
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


@law(80)
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
