"""The browser: decides what to ask for, and when."""

from h3sim.browser.replay import Due, ReplayBrowser

__all__ = ["Due", "ReplayBrowser"]
