"""Rules by which a browser holds requests back that it could send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from h3sim.browser.per_host import PerHost
from h3sim.browser.tight_mode import DelayedRequests, TightMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.browser.model import BrowserModel
    from h3sim.browser.requests import LoadProgress
    from h3sim.page import Page

__all__ = ["RULES", "RequestRule", "rules_of"]


class RequestRule(Protocol):
    """Holds requests back during one load of a page."""

    def holds(self, resource: int, progress: LoadProgress) -> bool:
        """Return whether the request for *resource* has to wait; it is asked again later."""


RULES: tuple[tuple[str, Callable[[Page, Any], RequestRule]], ...] = (
    ("tight_mode", lambda page, _: TightMode(page)),
    ("tight_mode", lambda page, _: DelayedRequests(page)),
    ("max_concurrent_requests_per_host", PerHost),
)
"""The rules, each with the setting of `BrowserModel` that turns it on, and of which it is made."""


def rules_of(page: Page, model: BrowserModel) -> list[RequestRule]:
    """Return the rules that *model* has, for a load of *page*."""
    settings = [(rule, getattr(model, setting)) for setting, rule in RULES]
    return [rule(page, value) for rule, value in settings if value]
