"""What a prefetch link names is for a later page: nothing of this one waits for it."""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.browser import TightMode
from h3sim.browser.requests import ranks_of
from h3sim.page import Level, Page
from tests.helpers import AT_ONCE, page_of

PACKET = 1400


def page() -> Page:
    """Return a page with a script in its head and an image, and a prefetch in front of both."""

    def named(id_: str, kind: str, at_bytes: int, **more: Any) -> dict[str, Any]:
        found = {"by": "/", "at": "offset", "offset_bytes": at_bytes}
        return {"id": id_, "kind": kind, "bytes": PACKET, "discovered": found, **more}

    return page_of(
        {"id": "/", "kind": "document", "bytes": PACKET},
        named("next", "other", 50, prefetch=True, server_ms=500),
        named("a.js", "script", 100, in_head=True),
        named("b.png", "image", 700),
    )


def times(mode: str) -> tuple[dict[str, float], h3sim.Load]:
    load = h3sim.simulate(page(), scheme="fifo", **(AT_ONCE | {"tight_mode": mode}))
    return {row.id: row.requested_ms for row in load.timings}, load


@pytest.mark.parametrize("mode", ["chrome-118", "off", "safari"])
def test_the_load_event_does_not_wait_for_a_prefetch(mode: str) -> None:
    _, load = times(mode)
    assert load.load_event_ms is not None
    assert load.load_event_ms < 100
    assert max(row.finished_ms for row in load.timings) > 500


def test_chrome_prefetches_once_the_head_is_passed_and_others_after_the_load_event() -> None:
    """Chromium 156 requested it when its tight mode was over (measured): the script has run."""
    requested, load = times("chrome-118")
    assert requested["a.js"] == requested["b.png"] == 10
    assert requested["next"] == 20
    for mode in ("off", "safari"):
        requested, load = times(mode)
        assert requested["next"] == load.load_event_ms


def test_a_prefetch_has_the_lowest_level() -> None:
    lowest = [*Level].index(Level.VERY_LOW)
    for mode in (TightMode.CHROME_118, TightMode.SAFARI):
        assert ranks_of(page(), mode)[1] == lowest
