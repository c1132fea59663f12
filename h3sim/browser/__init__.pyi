"""The public names of `h3sim.browser`, each loaded when it is first used."""

from h3sim.browser.base import Browser as Browser
from h3sim.browser.factory import make_browser as make_browser
from h3sim.browser.first_view import (
    infer_above_the_fold as infer_above_the_fold,
    needed_for_first_paint as needed_for_first_paint,
    with_marks as with_marks,
)
from h3sim.browser.model import (
    OF_BROWSER as OF_BROWSER,
    OF_PARSING as OF_PARSING,
    BrowserMode as BrowserMode,
    BrowserModel as BrowserModel,
)
from h3sim.browser.parse import ParseBrowser as ParseBrowser
from h3sim.browser.replay import ReplayBrowser as ReplayBrowser
from h3sim.browser.scheduled import (
    Scheduled as Scheduled,
    ScheduledChange as ScheduledChange,
    ScheduledRequest as ScheduledRequest,
)

__all__: list[str]
