"""Makes the browser that a model describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.model import BrowserMode
from h3sim.browser.parse import ParseBrowser
from h3sim.browser.replay import ReplayBrowser

if TYPE_CHECKING:
    from h3sim.browser.base import Browser
    from h3sim.browser.model import BrowserModel
    from h3sim.page import Page

__all__ = ["make_browser"]


def make_browser(page: Page, model: BrowserModel) -> Browser:
    """Return a new browser for one load of *page*."""
    if model.mode is BrowserMode.PARSE:
        return ParseBrowser(page, model)
    return ReplayBrowser(page)
