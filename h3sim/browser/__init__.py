"""The browser: decides what to ask for, and when."""

from h3sim.browser.base import Browser, Scheduled, ScheduledChange, ScheduledRequest
from h3sim.browser.factory import make_browser
from h3sim.browser.model import OF_BROWSER, OF_PARSING, BrowserMode, BrowserModel
from h3sim.browser.parse import ParseBrowser
from h3sim.browser.replay import ReplayBrowser

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
    "make_browser",
]
