"""When things happened by a HAR: each request, and the milestones of a page.

The milestones are those of HAR 1.2 (`onLoad`), and what Browsertime and WebPageTest add.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.source.fields import Fields

__all__ = ["read_timings", "started_at", "times_of_page"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PARTS = ("blocked", "dns", "connect", "send", "wait", "receive")


class Started(NamedTuple):
    """When an entry began: microseconds since 1970, and the day where it was recorded."""

    at_us: int
    day: str


def started_at(text: str) -> Started | None:
    """Return the instant that a `startedDateTime` tells, None if it is none.

    >>> started_at("1970-01-02T00:00:00.5+01:00")
    Started(at_us=82800500000, day='1970-01-02')
    """
    try:
        when = datetime.fromisoformat(text)
        day = when.date().isoformat()
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        # Durations divide exactly; a timestamp as a float would not.
        return Started((when - _EPOCH) // _MICROSECOND, day)
    except (ValueError, OverflowError):
        return None


def read_timings(request: Observed, entry: Fields) -> None:
    """Take over when an entry's parts ended, counted from when it began."""
    timings = entry.table("timings")
    parts = {name: timings.duration(name) for name in _PARTS}
    total = entry.duration("time")
    if total is None and any(part is not None for part in parts.values()):
        total = math.fsum(part or 0.0 for part in parts.values())
    if request.start_ms is None or total is None:
        return
    request.end_ms = request.start_ms + total
    receive, wait = parts["receive"], parts["wait"]
    if receive is not None:
        request.first_byte_ms = max(request.start_ms, request.end_ms - receive)
        if wait is not None:
            request.sent_ms = max(request.start_ms, request.first_byte_ms - wait)


def times_of_page(page: Fields) -> dict[str, float]:
    """Return what a page of the log says of the load as a whole, in ms since it began."""
    timings = page.table("pageTimings")
    visual = page.table("_visualMetrics")
    vitals = page.table("_googleWebVitals")
    found = {
        "load_event": timings.duration("onLoad"),
        "largest_paint": timings.duration("_largestContentfulPaint")
        or page.duration("_chromeUserTiming.LargestContentfulPaint", "_LargestContentfulPaint")
        or vitals.duration("largestContentfulPaint"),
        "speed_index": visual.duration("SpeedIndex") or page.duration("_SpeedIndex"),
    }
    return {name: time_ms for name, time_ms in found.items() if time_ms}
