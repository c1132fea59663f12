"""Makes the browser that a model describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.changing import ChangingBrowser, changes_of, may_change
from h3sim.browser.model import BrowserMode
from h3sim.browser.replay import ReplayBrowser
from h3sim.units import ms

if TYPE_CHECKING:
    from h3sim.browser.base import Browser
    from h3sim.browser.model import BrowserModel
    from h3sim.page import Page

__all__ = ["make_browser"]


def make_browser(page: Page, model: BrowserModel, *, plays_recorded: bool = True) -> Browser:
    """Return a new browser for one load of *page*.

    Without *plays_recorded* nobody asks what was recorded of priorities: what was said later, as
    most shipped pages know it, then costs nothing.
    """
    parses = model.mode is BrowserMode.PARSE
    browser: Browser
    if parses:
        from h3sim.browser.parse import ParseBrowser  # on use: it takes as long as a small load

        browser = ParseBrowser(page, model)
    else:
        browser = ReplayBrowser(page)
    at_ms = model.background_at_ms
    background_at_ns = None if at_ms is None else ms(at_ms)
    changes = changes_of(page, plays_recorded=plays_recorded)
    if may_change(page, changes, is_laid_out=parses, background_at_ns=background_at_ns):
        return ChangingBrowser(browser, page, changes, background_at_ns=background_at_ns)
    return browser
