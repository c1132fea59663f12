"""A recorded load as JSON: what a page file has no place for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h3sim.capture.chromium.page_builder import Recorded

__all__ = ["FORMAT", "recorded_to_dict"]

FORMAT = "h3sim-recording/1"


def recorded_to_dict(load: Recorded) -> dict[str, Any]:
    """Return when everything came in the browser, at which priorities, and from which calls.

    Times are in ms since the document was asked for; `priorities` has a pair of time and Chrome's
    word for each priority that a request was given; `stack` the innermost call first.
    """
    return {
        "format": FORMAT,
        "page": load.page.name,
        "browser": load.browser,
        "onload_ms": load.onload_ms,
        "dom_content_loaded_ms": load.dcl_ms,
        "first_paint_ms": load.first_paint_ms,
        "largest_paint_ms": load.largest_paint_ms,
        "resources": [
            {
                **timing._asdict(),
                "priorities": [list(pair) for pair in timing.priorities],
                "stack": list(timing.stack),
            }
            for timing in load.timings
        ],
    }
