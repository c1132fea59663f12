"""Firefox's tailing, worked by hand: which requests wait, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.browser.requests import LoadProgress
from h3sim.browser.tailing import Tailing
from h3sim.values.units import ms
from tests.helpers import page_of

if TYPE_CHECKING:
    from h3sim.page import Page

TRACKER = "stats.g.doubleclick.net"


def page(**tracked: Any) -> Page:
    """Return a page with an image of its own, and a resource of a tracker, seen first."""
    found = {"by": "/", "at": "offset", "offset_bytes": 200}
    return page_of(
        {"id": "/", "kind": "document", "bytes": 9000},
        {"id": "t", "kind": "image", "bytes": 900, "host": TRACKER, "discovered": found} | tracked,
        {
            "id": "a.jpg",
            "kind": "image",
            "bytes": 90_000,
            "discovered": {**found, "offset_bytes": 400},
        },
    )


def requested_ms(of: Page, client: str) -> dict[str, float]:
    load = h3sim.simulate(of, client=client, server="rfc9218", network="cable", browser="parse")
    return {row.id: row.requested_ms for row in load.timings}


@pytest.mark.parametrize(
    ("tracked", "waits"),
    [
        ({}, True),
        ({"kind": "fetch"}, True),
        ({"kind": "script", "async": True}, True),
        ({"kind": "script"}, False),
        ({"kind": "script", "defer": True}, False),
        ({"kind": "stylesheet"}, False),
        ({"host": "img.example"}, False),
    ],
)
def test_what_a_tracker_sends_waits_unless_the_page_needs_it(
    tracked: dict[str, Any], waits: bool
) -> None:
    times_ms = requested_ms(page(**tracked), "firefox")
    assert (times_ms["t"] > times_ms["a.jpg"]) is waits
    of_chrome = requested_ms(page(**tracked), "chrome")
    assert of_chrome["t"] <= of_chrome["a.jpg"]


def test_what_a_trackers_script_requests_waits_too() -> None:
    chained = page_of(
        {"id": "/", "kind": "document", "bytes": 9000},
        {
            "id": "t.js",
            "kind": "script",
            "bytes": 900,
            "host": TRACKER,
            "discovered": {"by": "/", "at": "offset", "offset_bytes": 200},
        },
        {
            "id": "own.gif",
            "kind": "image",
            "bytes": 900,
            "discovered": {"by": "t.js", "at": "executed"},
        },
    )
    tailing, progress = Tailing(chained), LoadProgress()
    progress.in_flight[0] = None
    tailing.update(0, progress)
    assert [tailing.holds(index, progress) for index in range(3)] == [False, False, True]


def test_the_delay_is_a_quantum_per_open_request_and_one_more_until_domcontentloaded() -> None:
    tailing, progress = Tailing(page()), LoadProgress()
    progress.in_flight = {0: None, 2: None}
    tailing.update(0, progress)
    assert tailing.until_ns == ms(3 * 600)
    del progress.in_flight[2]
    tailing.update(ms(10), progress)
    assert tailing.until_ns == ms(10 + 2 * 600)
    progress.is_parsed = True
    tailing.update(ms(20), progress)
    assert tailing.until_ns == ms(20 + 100)
    del progress.in_flight[0]
    tailing.update(ms(30), progress)
    assert tailing.until_ns is None


def test_the_longest_delay_falls_from_six_seconds_to_none_in_45() -> None:
    tailing, progress = Tailing(page()), LoadProgress()
    progress.in_flight = dict.fromkeys(range(1))
    tailing.update(0, progress)
    many = page_of(
        {"id": "/", "kind": "document", "bytes": 9},
        *(
            {"id": f"{n}", "kind": "image", "bytes": 9, "discovered": {"by": "/", "at": "complete"}}
            for n in range(20)
        ),
    )
    tailing = Tailing(many)
    progress.in_flight = dict.fromkeys(range(12))
    tailing.update(0, progress)
    assert tailing.until_ns == ms(6000)
    del progress.in_flight[11]
    tailing.update(ms(22_500), progress)
    assert tailing.until_ns == ms(22_500 + 3000)
    del progress.in_flight[10]
    tailing.update(ms(45_000), progress)
    assert tailing.until_ns is None


def test_the_load_event_waits_for_the_tail() -> None:
    load = h3sim.simulate(
        page(), client="firefox", server="rfc9218", network="cable", browser="parse"
    )
    finished_ms = {row.id: row.finished_ms for row in load.timings}
    assert load.load_event_ms is not None
    assert load.load_event_ms >= finished_ms["t"]
    assert finished_ms["t"] > 186  # a quantum of 100 ms after the request of the image
