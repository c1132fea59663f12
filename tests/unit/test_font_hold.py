"""Fonts that the head preloads delay Chrome's first paint, up to a limit.

Measured in Chromium 156, with a font that takes 3 s: FCP came 108 to 140 ms after the stylesheet
with a preload link in the head, 13 to 32 ms without one; a link in the body gave 12 to 36 ms in six
of seven loads, and 109 ms in one.
"""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.browser.rendering import FONT_HOLDS
from h3sim.page import Page, with_early_hints
from tests.helpers import AT_ONCE, page_of

PACKET = 1400
CHROME = {**AT_ONCE, "tight_mode": "chrome-118"}


def page_with(font_ms: float, at_bytes: int = 50, sheet_ms: float = 0, **font: Any) -> Page:
    """Return a page with a stylesheet and a font, each answered after that time."""
    found = {"by": "/", "at": "offset"}
    return page_of(
        {"id": "/", "kind": "document", "bytes": PACKET},
        {
            "id": "s.css",
            "kind": "stylesheet",
            "bytes": PACKET,
            "in_head": True,
            "server_ms": sheet_ms,
            "discovered": {**found, "offset_bytes": 100},
        },
        {
            "id": "w.woff2",
            "kind": "font",
            "bytes": PACKET,
            "server_ms": font_ms,
            "preload": True,
            "discovered": {**found, "offset_bytes": at_bytes},
            **font,
        },
    )


def first_paint_ms(page: Page, **options: Any) -> float | None:
    return h3sim.simulate(page, scheme="fifo", **(CHROME | options)).first_paint_ms


def test_a_preloaded_font_delays_the_first_paint_until_it_has_arrived() -> None:
    """The document is there at 10, the stylesheet at 20, the font at its time or at 120."""
    assert first_paint_ms(page_with(50)) == 60
    assert first_paint_ms(page_with(0)) == 30
    assert first_paint_ms(page_with(3000)) == 120


def test_the_limit_counts_from_the_last_that_blocks_and_from_navigation() -> None:
    assert first_paint_ms(page_with(3000, sheet_ms=600)) == 710
    assert first_paint_ms(page_with(3000, sheet_ms=1440)) == 1500
    assert first_paint_ms(page_with(3000, sheet_ms=1600)) == 1610


def test_a_frame_follows_the_wait() -> None:
    assert first_paint_ms(page_with(3000), paint_ms=16) == 136


@pytest.mark.parametrize("mode", ["off", "safari"])
def test_other_browsers_do_not_wait(mode: str) -> None:
    assert first_paint_ms(page_with(3000), tight_mode=mode) == 20


def test_older_versions_waited_for_50_ms_from_the_request() -> None:
    assert first_paint_ms(page_with(3000), tight_mode="chrome-95") == 60
    assert first_paint_ms(page_with(3000, sheet_ms=300), tight_mode="chrome-95") == 310


def test_only_links_in_the_head_count() -> None:
    """A link in the body comes too late, and no link is in a 103 response."""
    assert first_paint_ms(page_with(3000, at_bytes=900)) == 20
    hinted = with_early_hints(page_with(3000, preload=False), "w.woff2")
    unhinted = page_with(3000, preload=False)
    assert first_paint_ms(unhinted) == 20
    assert (first_paint_ms(hinted) or 0) <= 30


def test_the_critical_path_to_the_first_paint_leads_through_the_font() -> None:
    load = h3sim.simulate(page_with(50), scheme="fifo", **CHROME)
    assert [step.id for step in load.critical_path("first paint")] == ["/", "w.woff2", None]


def test_every_rule_has_its_source_version_and_date() -> None:
    for hold in FONT_HOLDS.values():
        assert hold.source
        assert hold.version
        assert hold.read
