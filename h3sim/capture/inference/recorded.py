"""What the browser said of a request's priority, as a page file keeps it.

Over HTTP/2 that is a place in the tree, too, as WebPageTest records it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from h3sim.capture.inference.observed import LONGEST_MS, recorded_ns
from h3sim.http.priority_field import is_well_formed, merge_priority, parse_priority
from h3sim.page import At, Discovery, Group, Level, RecordedFrom, RecordedPriority, ServerPriority
from h3sim.signals import DEFAULT_WEIGHT, MAX_WEIGHT, Eps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.source.fields import Fields

__all__ = [
    *(
        "UNIMPORTANT",
        "HeadersPriority",
        "browser_named",
        "chrome_level",
        "frame_of",
        "level_of",
        "priorities_of",
    ),
    *("recorded_frames", "take_fields", "words_of"),
]

_LEVELS = {
    **{level.value.lower(): level for level in Level},
    # What DevTools and WebPageTest show in place of its own words.
    "highest": Level.VERY_HIGH,
    "lowest": Level.VERY_LOW,
}
UNIMPORTANT = (Level.LOW, Level.VERY_LOW)
"""What Chrome asks for scripts with that hold nothing up."""
# Chrome calls itself Safari, too, and Safari nothing else.
_AGENTS = (("firefox/", "firefox"), ("chrome/", "chrome"), ("safari/", "safari"))
_GROUPS = {
    3: Group.LEADERS,
    5: Group.UNBLOCKED,
    7: Group.BACKGROUND,
    9: Group.SPECULATIVE,
    11: Group.FOLLOWERS,
    13: Group.URGENT_START,
}
"""The idle streams of Firefox, which it declares on each connection (`Http2Session.h`)."""


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
    request.is_framed = sent.get("sec-fetch-dest", "") in ("iframe", "frame")
    request.browser = browser_named(sent.get("user-agent", ""))
    request.priority_field = sent.get("priority", "")
    request.response_priority = got.get("priority", "")
    request.cf_priority = got.get("cf-priority", "")
    request.cf_priority_change = got.get("cf-priority-change", "")


def level_of(word: str) -> Level | None:
    """Return Chrome's level of that name, None for any other word."""
    return _LEVELS.get(word.lower())


def chrome_level(word: str) -> tuple[RecordedPriority, ...]:
    """Return what Chrome said by that word, nothing where it is none of its levels.

    >>> chrome_level("VeryHigh")[0].level, chrome_level("soon")
    (<Level.VERY_HIGH: 'VeryHigh'>, ())
    """
    level = level_of(word)
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
        later, start_ms = level_of(word), request.start_ms
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


class HeadersPriority(NamedTuple):
    """The priority in the HEADERS of a request: stream 0 is the root of the tree."""

    stream_id: int
    parent_id: int
    weight: int
    exclusive: bool


def frame_of(entry: Fields) -> HeadersPriority | None:
    """Return what an entry of WebPageTest's HAR says of its stream, None where it says nothing."""
    stream_id, parent_id, weight = (
        entry.number(f"_http2_stream_{name}") for name in ("id", "dependency", "weight")
    )
    if not stream_id or parent_id is None or parent_id < 0:
        return None
    known = DEFAULT_WEIGHT if weight is None else round(weight)
    return HeadersPriority(
        stream_id=round(stream_id),
        parent_id=round(parent_id),
        weight=min(max(known, 1), MAX_WEIGHT),
        exclusive=entry.flag("_http2_stream_exclusive"),
    )


def recorded_frames(
    requests: Mapping[int, Observed], ids: Mapping[int, str]
) -> dict[int, RecordedPriority]:
    """Return the frames of requests by their index, with parents by the *ids* of the page.

    Streams are told apart by their connection. Firefox's idle streams are its classes. A parent
    that is not in the page says nothing, and so is left out.
    """
    streams = {
        (_connection(request), request.frame.stream_id): ids[index]
        for index, request in requests.items()
        if request.frame is not None
    }
    found = {}
    for index, request in requests.items():
        frame = request.frame
        if frame is None:
            continue
        browser = RecordedFrom(request.browser) if request.browser else None
        group = _GROUPS.get(frame.parent_id) if browser is RecordedFrom.FIREFOX else None
        parent = "" if not frame.parent_id else streams.get((_connection(request), frame.parent_id))
        if group is not None:
            found[index] = RecordedPriority(browser=browser, group=group, weight=frame.weight)
        elif parent is not None and parent != ids[index]:
            found[index] = RecordedPriority(
                browser=browser,
                depends_on=parent,
                weight=frame.weight,
                exclusive=frame.exclusive or None,
            )
    return found


def _connection(request: Observed) -> str:
    """Return what tells the connection of a request: its name, or else the host."""
    return request.reached.connection or urlsplit(request.url).netloc
