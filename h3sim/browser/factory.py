"""Makes the browser that a model describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.changing import ChangingBrowser, has_changes
from h3sim.browser.model import BrowserMode
from h3sim.browser.replay import ReplayBrowser
from h3sim.units import ms

if TYPE_CHECKING:
    from h3sim.browser.base import Browser
    from h3sim.browser.model import BrowserModel
    from h3sim.page import Page

__all__ = ["make_browser"]


def make_browser(page: Page, model: BrowserModel) -> Browser:
    """Return a new browser for one load of *page*."""
    parses = model.mode is BrowserMode.PARSE
    browser: Browser
    if parses:
        from h3sim.browser.parse import ParseBrowser  # on use: it takes as long as a small load

        browser = ParseBrowser(page, model)
    else:
        browser = ReplayBrowser(page)
    at_ms = model.background_at_ms
    background_at_ns = None if at_ms is None else ms(at_ms)
    if has_changes(page, is_laid_out=parses, background_at_ns=background_at_ns):
        return ChangingBrowser(browser, page, background_at_ns=background_at_ns)
    return browser
