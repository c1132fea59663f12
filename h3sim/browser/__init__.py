"""The browser: decides which resources to request, and when.

It may import pages, signals and traces, and knows neither transport nor clock. Begin with
`base.py`, the interface; `replay.py` follows recorded delays, `rendering.py` computes them.
"""

from h3sim.browser.above_the_fold import infer_above_the_fold, needed_for_first_paint, with_marks
from h3sim.browser.base import Browser, Scheduled, ScheduledPriorityChange, ScheduledRequest
from h3sim.browser.factory import make_browser
from h3sim.browser.model import (
    BROWSER_OPTIONS,
    PARSING_OPTIONS,
    BrowserMode,
    BrowserModel,
    PaintMode,
    TightMode,
)
from h3sim.browser.rendering import RenderingBrowser
from h3sim.browser.replay import ReplayBrowser

__all__ = [
    "BROWSER_OPTIONS",
    "PARSING_OPTIONS",
    "Browser",
    "BrowserMode",
    "BrowserModel",
    "PaintMode",
    "RenderingBrowser",
    "ReplayBrowser",
    "Scheduled",
    "ScheduledPriorityChange",
    "ScheduledRequest",
    "TightMode",
    "infer_above_the_fold",
    "make_browser",
    "needed_for_first_paint",
    "with_marks",
]
