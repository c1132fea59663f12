"""What a HAR's entries and pages say of sizes and times, as well as their dialect knows.

The order of preference among sizes stands in `docs/importing.md`. The milestones of a page are
those of HAR 1.2 (`onLoad`), and what Browsertime and WebPageTest add.
"""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from h3sim.capture.inference.observed import REDIRECTS, Size
from h3sim.capture.inference.sizes import (
    NO_BODY,
    length_of,
    request_text_bytes,
    response_text_bytes,
)

if TYPE_CHECKING:
    from h3sim.capture.inference.observed import Observed
    from h3sim.capture.source.fields import Fields

__all__ = ["Headers", "headers_of", "read_sizes", "read_timings", "started_at", "times_of_page"]

Headers = list[tuple[str, str]]
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
    queued = timings.duration("_queued")
    if request.start_ms is None or total is None:
        return
    request.end_ms = request.start_ms + total
    receive, wait = parts["receive"], parts["wait"]
    if receive is not None:
        request.first_byte_ms = max(request.start_ms, request.end_ms - receive)
        if wait is not None:
            request.sent_ms = max(request.start_ms, request.first_byte_ms - wait)
    # chrome-har's entries begin when the browser let go of the request, so long after it was made.
    request.start_ms -= queued or 0.0


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


def headers_of(message: Fields) -> Headers:
    """Return the fields of a request or a response, names in lower case."""
    return [
        (name.lower(), value)
        for field in message.tables("headers")
        if (name := field.text("name")) and isinstance(value := field.raw("value"), str)
    ]


def read_sizes(request: Observed, entry: Fields, sent: Headers, got: Headers) -> None:
    """Take over the sizes of an entry, of which the fields *sent* and *got* are read already."""
    asked, answer = entry.table("request"), entry.table("response")
    # `or`, here and below: recorders write 0, too, where they know nothing.
    transfer = answer.size("_transferSize") or entry.size("_bytesIn")
    header = answer.size("headersSize") or None
    length = length_of(dict(got).get("content-length", ""))
    body, basis = _body(request, entry, length, transfer, header)
    request.body_bytes, request.body_from = body, basis
    request.decoded_bytes = answer.table("content").size("size")
    _stretch_pieces(request)
    if header is not None:
        request.header_bytes, request.header_from = header, Size.RECORDED
    elif transfer and body is not None and basis is not Size.WHOLE and transfer > body:
        request.header_bytes, request.header_from = transfer - body, Size.TRANSFER
    elif got:
        request.header_bytes, request.header_from = response_text_bytes(got), Size.FIELDS
    size, basis = asked.size("headersSize") or None, Size.RECORDED
    if size is None and sent:
        size, basis = request_text_bytes(request.method, request.url, sent), Size.FIELDS
    if size is not None:
        request.request_bytes = size + (asked.size("bodySize") or 0)
        request.request_from = basis


def _body(
    request: Observed, entry: Fields, length: int | None, transfer: int | None, header: int | None
) -> tuple[int | None, Size]:
    if request.status in NO_BODY or request.method == "HEAD":
        return 0, Size.RECORDED
    content = entry.table("response").table("content")
    recorded = entry.size("_objectSize") or entry.table("response").size("bodySize")
    if recorded == transfer and entry.table("response").size("headersSize") is None:
        recorded = None  # over HTTP/2 chrome-har counts the header as body
    if header and length is not None and recorded == length + header:
        return length, Size.TRANSFER  # Firefox's `bodySize` is what was transferred
    decoded = content.size("size")
    if recorded or (recorded == 0 and request.status in REDIRECTS):
        return recorded, Size.RECORDED
    if transfer:
        if header is not None and transfer > header:
            return transfer - header, Size.TRANSFER
        if length is not None and length <= transfer:
            return length, Size.CONTENT_LENGTH
        return transfer, Size.WHOLE
    if length is not None:
        return length, Size.CONTENT_LENGTH
    saved = content.size("compression")
    if decoded and saved and saved < decoded:
        return decoded - saved, Size.COMPRESSION
    if decoded:
        return decoded, Size.DECODED
    # Some recorders write 0 for what they do not know; it is believed where nothing contradicts.
    if recorded == 0 or decoded == 0:
        return 0, Size.RECORDED
    return None, Size.NONE


def _stretch_pieces(request: Observed) -> None:
    """Count in pieces what was sent: those of chrome-har are of the decoded body.

    As if each part were compressed alike.
    """
    body, decoded = request.body_bytes, request.decoded_bytes
    if not body or not decoded or body == decoded:
        return
    if sum(n_bytes for _, n_bytes in request.pieces) != decoded:
        return
    ends = [0, *itertools.accumulate(n_bytes for _, n_bytes in request.pieces)]
    sent = [end * body // decoded for end in ends]
    request.pieces = tuple(
        (at_ms, end - begin)
        for (at_ms, _), begin, end in zip(request.pieces, sent, sent[1:], strict=False)
    )
