"""What the browser said of a request's priority, as a page file keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from h3sim.http.priority_field import is_well_formed, parse_priority
from h3sim.page import At, Discovery, Level, RecordedFrom, RecordedPriority
from h3sim.units import ms

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed

__all__ = ["browser_named", "priorities_of"]

_LEVELS = {
    **{level.value.lower(): level for level in Level},
    # What DevTools and WebPageTest show in place of its own words.
    "highest": Level.VERY_HIGH,
    "lowest": Level.VERY_LOW,
}
# Chrome calls itself Safari, too, and Safari nothing else.
_AGENTS = (("firefox/", "firefox"), ("chrome/", "chrome"), ("safari/", "safari"))
_LATEST_MS = 86_400_000.0


def browser_named(user_agent: str) -> str:
    """Return which browser a User-Agent names, "" for any other.

    >>> browser_named("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'firefox'
    """
    text = user_agent.lower()
    return next((name for part, name in _AGENTS if part in text), "")


def priorities_of(request: Observed, id_: str) -> tuple[RecordedPriority, ...]:
    """Return what was said of *request*: with it, and so long after it.

    A level is Chrome's word; a Priority field is that of whoever the User-Agent names. What is
    not understood is left out.
    """
    entries: list[RecordedPriority] = []
    level = _LEVELS.get(request.priority)
    field = request.priority_field
    if level is not None:
        entries.append(RecordedPriority(browser=RecordedFrom.CHROME, level=level))
    if field and is_well_formed(field):
        wanted = parse_priority(field)
        browser = RecordedFrom(request.browser) if request.browser else None
        entries.append(
            RecordedPriority(
                browser=browser, urgency=wanted.urgency, incremental=wanted.incremental
            )
        )
    for at_ms, word in request.later_priorities:
        later, start_ms = _LEVELS.get(word), request.start_ms
        if later is not None and start_ms is not None:
            delay_ms = min(max(0.0, round(at_ms - start_ms, 3)), _LATEST_MS)
            when = Discovery(at=At.REQUEST, by=id_, delay_ns=ms(delay_ms))
            entries.append(RecordedPriority(browser=RecordedFrom.CHROME, level=later, when=when))
    return tuple(entries)
