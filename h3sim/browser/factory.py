"""Creates the browser that a model describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.browser.model import BrowserMode, TightMode
from h3sim.browser.replay import ReplayBrowser
from h3sim.browser.reprioritization import (
    ReprioritizingBrowser,
    changes_of,
    may_change,
    opened_roots,
)
from h3sim.values.units import ms

if TYPE_CHECKING:
    from h3sim.browser.base import Browser
    from h3sim.browser.model import BrowserModel
    from h3sim.browser.multi_page import MultiPageBrowser
    from h3sim.browser.rendering import RenderingBrowser
    from h3sim.page import Page


def make_browser(
    page: Page,
    model: BrowserModel,
    *,
    plays_recorded: bool = True,
    tight_mode: TightMode | None = None,
) -> Browser:
    """Return a new browser for one load of *page*.

    If *model* leaves its tight mode open, it is *tight_mode*, or else that of current Chrome.
    Without *plays_recorded* the recorded priorities are not used, and later changes of priority,
    which most shipped pages record, then cost nothing.
    """
    mode = model.tight_mode or tight_mode or TightMode.CHROME_118
    parsing = (
        _make_rendering_browser(page, model, mode) if model.mode is BrowserMode.PARSE else None
    )
    browser = _make_replay(page) if parsing is None else parsing
    at_ms = model.hidden_at_ms
    background_at_ns = None if at_ms is None else ms(at_ms)
    is_laid_out = parsing is not None
    changes = changes_of(page, plays_recorded=plays_recorded)
    changes += opened_roots(page) if is_laid_out else []
    if may_change(page, changes, is_laid_out=is_laid_out, background_at_ns=background_at_ns):
        return ReprioritizingBrowser(
            browser, page, changes, parsing=parsing, background_at_ns=background_at_ns
        )
    return browser


def _make_replay(page: Page) -> Browser:
    """Return a browser that replays, with joins if *page* has some: most have none."""
    replay = ReplayBrowser(page)
    if not page.joins:
        return replay
    from h3sim.browser.joins import JoiningBrowser

    return JoiningBrowser(replay, page)


def _make_rendering_browser(
    page: Page, model: BrowserModel, mode: TightMode
) -> RenderingBrowser | MultiPageBrowser:
    """Return a browser that computes: one per root if a page has several."""
    # On use: importing them takes as long as a small load.
    if len(page.roots) > 1:
        from h3sim.browser.multi_page import MultiPageBrowser

        return MultiPageBrowser(page, model, mode)
    from h3sim.browser.rendering import RenderingBrowser

    return RenderingBrowser(page, model, mode)
