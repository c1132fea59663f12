"""One load: time passes until the browser has all that it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from h3sim.engine.browser_driver import Requester
from h3sim.engine.environment import EventRank
from h3sim.errors import StalledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.engine.browser_driver import BrowserDriver
    from h3sim.engine.environment import LoadEnvironment

__all__ = ["Connections", "run_load"]


class Connections(Requester, Protocol):
    """What a load asks of its connections: of one `HttpConnection`, or of several."""

    def begin(self, on_ready: Callable[[int], None]) -> None:
        """Connect; *on_ready* is told when the first request may leave."""


def run_load(
    environment: LoadEnvironment,
    driver: BrowserDriver,
    connections: Connections,
    *,
    limit_ns: int | None,
) -> None:
    """Load the page of *driver* over *connections*.

    Raises:
        StalledError: if the load cannot come to its end, or not within *limit_ns*.
    """
    browser = driver.browser

    def on_limit(value: None, now_ns: int) -> None:
        del value
        raise StalledError(browser.waiting, limit_ns=now_ns)

    if limit_ns is not None:
        # The last rank of a load: one that ends at this very instant has ended in time.
        environment.at(limit_ns, EventRank.SEND, on_limit, None)
    driver.requester = connections
    connections.begin(driver.on_connected)
    if environment.run_load():
        return
    if environment.has_overrun:
        n_events = environment.overrun_events
        is_of_load = n_events == environment.max_events
        why = "" if is_of_load else "the processes beside it had them all; does one pass no time?"
        raise StalledError(browser.waiting, environment.now_ns, n_events, why)
    raise StalledError(browser.waiting)
