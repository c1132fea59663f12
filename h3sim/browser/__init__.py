"""The browser: decides what to ask for, and when."""

from typing import TYPE_CHECKING

from h3sim.lazy import attach

if TYPE_CHECKING:
    from h3sim.browser.base import Browser
    from h3sim.browser.factory import make_browser
    from h3sim.browser.first_view import infer_above_the_fold, needed_for_first_paint, with_marks
    from h3sim.browser.model import OF_BROWSER, OF_PARSING, BrowserMode, BrowserModel
    from h3sim.browser.parse import ParseBrowser
    from h3sim.browser.replay import ReplayBrowser
    from h3sim.browser.scheduled import Scheduled, ScheduledChange, ScheduledRequest

__all__ = [
    "OF_BROWSER",
    "OF_PARSING",
    "Browser",
    "BrowserMode",
    "BrowserModel",
    "ParseBrowser",
    "ReplayBrowser",
    "Scheduled",
    "ScheduledChange",
    "ScheduledRequest",
    "infer_above_the_fold",
    "make_browser",
    "needed_for_first_paint",
    "with_marks",
]

__getattr__, __dir__ = attach(
    __name__,
    base="Browser",
    factory="make_browser",
    first_view="infer_above_the_fold needed_for_first_paint with_marks",
    model="OF_BROWSER OF_PARSING BrowserMode BrowserModel",
    parse="ParseBrowser",
    replay="ReplayBrowser",
    scheduled="Scheduled ScheduledChange ScheduledRequest",
)
