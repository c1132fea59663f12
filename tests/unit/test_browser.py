"""The browser: which event asks for what, and when."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.browser import ReplayBrowser, ScheduledRequest
from tests.helpers import page_of

MS = 10**6


def resource(id_: str, n_bytes: int, **keys: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "image", "bytes": n_bytes} | keys


def by(parent: str, at: str, **keys: Any) -> dict[str, Any]:
    return {"discovered": {"by": parent, "at": at} | keys}


def requested_ms(*resources: dict[str, Any], **setting: Any) -> dict[str, float]:
    """Return when each resource of the page is asked for under fifo."""
    load = h3sim.simulate(page_of(*resources), scheme="fifo", **setting)
    return {timing.id: timing.requested_ms for timing in load.timings}


ROOT = resource("/", 3600)  # packets arrive at 10, 20 and 30


@pytest.mark.parametrize(
    ("discovered", "expected_ms"),
    [
        ({"at": "time"}, 0),
        ({"at": "time", "delay_ms": 17.5}, 17.5),
        (
            {"by": "/", "at": "time", "delay_ms": 17.5},
            17.5,
        ),  # the parent is told, and not waited for
        ({"by": "/", "at": "request"}, 0),
        ({"by": "/", "at": "request", "delay_ms": 3}, 3),
        ({"by": "/", "at": "offset", "offset_bytes": 0}, 10),
        ({"by": "/", "at": "offset", "offset_bytes": 1}, 10),
        ({"by": "/", "at": "offset", "offset_bytes": 1400}, 10),
        ({"by": "/", "at": "offset", "offset_bytes": 1401}, 20),
        ({"by": "/", "at": "offset", "offset_bytes": 2800, "delay_ms": 0.5}, 20.5),
        ({"by": "/", "at": "offset", "offset_bytes": 3600}, 30),
        ({"by": "/", "at": "complete"}, 30),
        ({"by": "/", "at": "complete", "delay_ms": 100}, 130),
        ({"by": "/", "at": "executed"}, 37),  # 5 to parse, 2 to execute
        ({"by": "/", "at": "executed", "delay_ms": 3}, 40),
    ],
)
def test_each_trigger_fires_at_its_event_and_the_delay_comes_after(
    discovered: dict[str, Any], expected_ms: float
) -> None:
    root = ROOT | {"parse_ms": 5, "execute_ms": 2}
    asked = requested_ms(root, resource("a", 10, discovered=discovered))
    assert asked == {"/": 0, "a": expected_ms}


def test_parsing_and_executing_do_not_delay_what_waits_for_the_bytes() -> None:
    root = ROOT | {"parse_ms": 500, "execute_ms": 500}
    assert requested_ms(root, resource("a", 1, **by("/", "complete")))["a"] == 30


def test_the_response_header_goes_before_the_body() -> None:
    # 1000 bytes of header, then the body: its first 400 bytes are in the first packet.
    root = ROOT | {"header_bytes": 1000}
    asked = requested_ms(
        root,
        resource("a", 1, **by("/", "offset", offset_bytes=0)),
        resource("b", 1, **by("/", "offset", offset_bytes=400)),
        resource("c", 1, **by("/", "offset", offset_bytes=401)),
        resource("d", 1, **by("/", "complete")),
    )
    # 4600 bytes take four packets; a and b, found at 10, wait behind them under fifo.
    assert asked == {"/": 0, "a": 10, "b": 10, "c": 20, "d": 40}


def test_a_chain_follows_this_load_and_not_the_recording() -> None:
    # /: 10, 20, 30. css (2 packets, from 30): 40, 50. font from 50: 60; then the script that it
    # brings with its request, behind it: 70.
    asked = requested_ms(
        ROOT,
        resource("css", 2800, **by("/", "complete")),
        resource("font", 1, **by("css", "complete")),
        resource("js", 1, **by("font", "request", delay_ms=1)),
    )
    assert asked == {"/": 0, "css": 30, "font": 50, "js": 51}


def test_children_of_one_trigger_keep_the_order_of_the_file() -> None:
    asked = requested_ms(
        resource("z", 1, **by("/", "offset", offset_bytes=900)),
        resource("y", 1, **by("/", "complete")),
        ROOT,
        resource("x", 1, **by("/", "offset", offset_bytes=900)),
        resource("w", 1, **by("/", "offset", offset_bytes=100)),
        resource("v", 1, **by("/", "complete")),
    )
    # In one packet the nearer offset is met first.
    assert list(asked) == ["/", "w", "z", "x", "y", "v"]
    assert list(asked.values()) == [0, 10, 10, 10, 30, 30]


def test_an_empty_parent_triggers_its_children() -> None:
    asked = requested_ms(
        resource("/", 0),
        resource("a", 0, **by("/", "offset", offset_bytes=0)),
        resource("b", 0, **by("a", "complete")),
        resource("c", 0, **by("b", "executed")),
    )
    assert asked == {"/": 0, "a": 10, "b": 20, "c": 30}


@pytest.mark.parametrize(("transport", "expected_ms"), [("quic", 50), ("tcp", 75)])
def test_a_trigger_waits_for_bytes_to_be_handed_over(transport: str, expected_ms: float) -> None:
    # The fourth packet, the first of "b", is held for 3.5 intervals, from 40 to 75. "a", behind it,
    # arrives at 50; over TCP it is handed over with it.
    asked = requested_ms(
        resource("/", 4200),
        resource("b", 1, **by("/", "complete")),
        resource("a", 1, **by("/", "complete")),
        resource("x", 1, **by("a", "complete")),
        transport=transport,
        reorder="4:3",
    )
    assert asked["x"] == expected_ms


def test_the_browser_reports_what_it_still_waits_for() -> None:
    page = page_of(ROOT, resource("a", 1, **by("/", "complete")))
    browser = ReplayBrowser(page)
    assert browser.on_navigation(5 * MS) == [ScheduledRequest(5 * MS, 0)]
    assert browser.on_requested(0, 5 * MS) == []
    assert browser.next_offset(0) == 3600
    assert (browser.waiting, browser.is_done) == (["/", "a"], False)
    assert browser.on_delivered(0, 3600, 7 * MS) == [ScheduledRequest(7 * MS, 1)]
    assert browser.waiting == ["a"]
    browser.on_requested(1, 7 * MS)
    browser.on_delivered(1, 1, 9 * MS)
    assert (browser.waiting, browser.is_done) == ([], True)


def test_an_offset_reported_twice_triggers_once() -> None:
    page = page_of(
        ROOT,
        resource("a", 1, **by("/", "complete")),
        resource("b", 1, **by("/", "offset", offset_bytes=9)),
    )
    browser = ReplayBrowser(page)
    browser.on_requested(0, 0)
    assert browser.on_delivered(0, 1400, MS) == [ScheduledRequest(MS, 2)]
    assert browser.on_delivered(0, 1400, MS) == []
    assert browser.on_delivered(0, 3600, MS) == [ScheduledRequest(MS, 1)]
