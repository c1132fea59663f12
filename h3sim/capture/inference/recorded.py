"""What the browser said of a request's priority, as a page file keeps it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from h3sim.capture.inference.observed import LONGEST_MS, recorded_ns
from h3sim.http.priority_field import is_well_formed, merge_priority, parse_priority
from h3sim.page import At, Discovery, Level, RecordedFrom, RecordedPriority, ServerPriority
from h3sim.signals import Eps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.inference.observed import Observed

__all__ = ["browser_named", "chrome_level", "priorities_of", "take_fields", "words_of"]

_LEVELS = {
    **{level.value.lower(): level for level in Level},
    # What DevTools and WebPageTest show in place of its own words.
    "highest": Level.VERY_HIGH,
    "lowest": Level.VERY_LOW,
}
# Chrome calls itself Safari, too, and Safari nothing else.
_AGENTS = (("firefox/", "firefox"), ("chrome/", "chrome"), ("safari/", "safari"))


def browser_named(user_agent: str) -> str:
    """Return which browser a User-Agent names, "" for any other.

    >>> browser_named("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    'firefox'
    """
    text = user_agent.lower()
    return next((name for part, name in _AGENTS if part in text), "")


def take_fields(request: Observed, sent: Mapping[str, str], got: Mapping[str, str]) -> None:
    """Take over what the fields of a request and its response say, names in lower case."""
    request.referer = sent.get("referer", "")
    request.browser = browser_named(sent.get("user-agent", ""))
    request.priority_field = sent.get("priority", "")
    request.response_priority = got.get("priority", "")
    request.cf_priority = got.get("cf-priority", "")
    request.cf_priority_change = got.get("cf-priority-change", "")


def chrome_level(word: str) -> tuple[RecordedPriority, ...]:
    """Return what Chrome said by that word, nothing where it is none of its levels.

    >>> chrome_level("VeryHigh")[0].level, chrome_level("soon")
    (<Level.VERY_HIGH: 'VeryHigh'>, ())
    """
    level = _LEVELS.get(word.lower())
    return () if level is None else (RecordedPriority(browser=RecordedFrom.CHROME, level=level),)


def priorities_of(
    request: Observed, id_: str, frame: RecordedPriority | None = None
) -> tuple[RecordedPriority, ...]:
    """Return what was said of *request*: with it, in a *frame* too, and so long after it.

    A level is Chrome's word; a Priority field is that of whoever the User-Agent names. What is
    not understood is left out.
    """
    entries = [*chrome_level(request.priority)]
    field = request.priority_field
    if field and is_well_formed(field):
        wanted = parse_priority(field)
        browser = RecordedFrom(request.browser) if request.browser else None
        entries.append(
            RecordedPriority(
                browser=browser, urgency=wanted.urgency, incremental=wanted.incremental
            )
        )
    entries += [] if frame is None else [frame]
    for at_ms, word in request.later_priorities:
        later, start_ms = _LEVELS.get(word), request.start_ms
        if later is not None and start_ms is not None:
            delay_ns = recorded_ns(min(max(0.0, at_ms - start_ms), LONGEST_MS))
            when = Discovery(at=At.REQUEST, by=id_, delay_ns=delay_ns)
            entries.append(RecordedPriority(browser=RecordedFrom.CHROME, level=later, when=when))
    return tuple(entries)


_CF_PRIORITY = re.compile(r"(?:(\d{1,12}):)?(\d{1,2})/([01n])")
_LEVEL_OF_CONCURRENCY = {"0": 3, "1": 2, "n": 1}
_HIGHEST_BUCKET = 63


def words_of(request: Observed) -> tuple[ServerPriority, ...]:
    """Return what the origin said of *request*'s response; what is not understood is left out."""
    return (*_field_of(request.response_priority), *_cloudflare_of(request))


def _field_of(field: str) -> tuple[ServerPriority, ...]:
    if not is_well_formed(field):
        return ()
    # What a field leaves out stays as the client wants it, whatever that is.
    low = merge_priority(Eps(urgency=0, incremental=False), field)
    high = merge_priority(Eps(urgency=7, incremental=True), field)
    urgency = low.urgency if low.urgency == high.urgency else None
    incremental = low.incremental if low.incremental == high.incremental else None
    if urgency is None and incremental is None:
        return ()
    return (ServerPriority(urgency=urgency, incremental=incremental),)


def _cloudflare_of(request: Observed) -> tuple[ServerPriority, ...]:
    found = []
    for part in (request.cf_priority, *request.cf_priority_change.split(",")):
        match = _CF_PRIORITY.fullmatch(part.strip())
        if match is not None and int(match[2]) <= _HIGHEST_BUCKET:
            found.append(
                ServerPriority(
                    bucket=int(match[2]),
                    level=_LEVEL_OF_CONCURRENCY[match[3]],
                    after_bytes=int(match[1] or 0),
                )
            )
    return tuple(found)
