"""Lighthouse's results as JSON, alone or in an answer of the PageSpeed Insights API.

They list the requests with sizes and Chrome's priorities, but no connections and no first bytes, so
that no network can be estimated. Of parents they name those of chains of important requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.importers.formats.har import started_at
from h3sim.importers.recorded_request import (
    REDIRECTS,
    RecordedRequest,
    RequestOutcome,
    SizeSource,
)
from h3sim.importers.request_fields import kind_of_word, without_fragment
from h3sim.importers.source import Fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.importers.recorded_request import Recording
    from h3sim.importers.source import JsonPart


_RESULT = "lighthouseResult"
_TIMES = {
    "load_event": "observedLoad",
    "largest_paint": "observedLargestContentfulPaint",
    "speed_index": "observedSpeedIndex",
}
_ESTIMATES = {
    "FCP": "firstContentfulPaint",
    "LCP": "largestContentfulPaint",
    "SpeedIndex": "speedIndex",
}
_KB = 1000


class LighthouseResult:
    """Reader of a result, which it takes in by its members."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._members: dict[str, Any] = {}

    def add(self, part: JsonPart) -> None:
        """Process a member of the result."""
        if part.path == (_RESULT,):
            self._members = part.value if isinstance(part.value, dict) else {}
        elif len(part.path) == 1 and part.item is None:
            self._members[part.path[0]] = part.value

    def finish(self) -> None:
        """Add the requests, the observed times and Lighthouse's own estimates."""
        recording = self._recording
        result = Fields(self._members, "", recording.note)
        if recording.page_number > 1:
            raise recording.refuse("has one page")
        recording.set_tool("Lighthouse", result.text("lighthouseVersion"))
        fetched = started_at(result.text("fetchTime"))
        recording.recorded = "" if fetched is None else fetched.day
        audits = result.table("audits")
        rows = audits.table("network-requests").table("details").tables("items")
        for row in rows:
            if recording.has_room() and (request := _request(row)) is not None:
                recording.requests.append(request)
        _add_parents(recording.requests, audits)
        recording.missing.append("parents outside of chains of important requests")
        metrics = next(iter(audits.table("metrics").table("details").tables("items")), audits)
        for name, key in _TIMES.items():
            if (time_ms := metrics.duration(key)) is not None:
                recording.times_ms[name] = time_ms
        settings = result.table("configSettings")
        if settings.raw("throttlingMethod") == "simulate":
            recording.provenance["lantern"] = _estimates(metrics, settings.table("throttling"))


def _request(row: Fields) -> RecordedRequest | None:
    url = row.text("url")
    if not url:
        row.wrong("url", "skipped: is missing")
        return None
    status = row.number("statusCode")
    request = RecordedRequest(
        key=row.key,
        url=without_fragment(url),
        start_ms=row.number("rendererStartTime", "networkRequestTime", "startTime"),
        sent_ms=row.number("networkRequestTime"),
        end_ms=row.number("networkEndTime", "endTime"),
        protocol=row.text("protocol").lower(),
        status=None if status is None else int(status),
        mime=row.text("mimeType"),
        kind=kind_of_word(row.text("resourceType")),
        priority=row.text("priority").lower(),
        decoded_bytes=row.size("resourceSize"),
    )
    wire_bytes = row.size("transferSize")
    if wire_bytes is not None:
        request.body_bytes, request.body_from = wire_bytes, SizeSource.TOTAL
    is_cached = row.raw("cache") not in (None, "none") or (
        wire_bytes == 0 and bool(request.decoded_bytes) and status == 200
    )
    if row.raw("finished") is False or status is None or status <= 0:
        request.outcome = RequestOutcome.FAILED
    elif row.raw("protocol") == "ws" or status == 101:
        request.outcome = RequestOutcome.NOT_HTTP
    elif is_cached:
        request.outcome = RequestOutcome.CACHE
    return request


def _add_parents(requests: list[RecordedRequest], audits: Fields) -> None:
    """Set the parents of requests in the tree of important requests, and of redirects."""
    indexes: dict[str, list[int]] = {}
    for index in reversed(range(len(requests))):
        indexes.setdefault(requests[index].url, []).append(index)
    for index, request in enumerate(requests[1:], 1):
        before = requests[index - 1]
        is_next = None not in (before.end_ms, request.start_ms)
        # The first requests: what a document was redirected to follows it.
        if not (before.status in REDIRECTS and is_next):
            break
        request.redirect_of = index - 1
    for url, parent_url in _edges(audits):
        children, parents = indexes.get(url), indexes.get(parent_url)
        if children and parents and requests[children[-1]].redirect_of is None:
            index = children.pop() if len(children) > 1 else children[-1]
            requests[index].parent = parents[-1]


def _edges(audits: Fields) -> Iterator[tuple[str, str]]:
    """Yield URL and parent's URL of each edge: Lighthouse 13 and older versions nest them alike."""
    sections = audits.table("network-dependency-tree-insight").table("details")
    trees = [section.table("value") for section in sections.tables("items")]
    trees.append(audits.table("critical-request-chains").table("details"))
    waiting = [("", tree.table("chains")) for tree in trees if "chains" in tree]
    while waiting:
        parent_url, chains = waiting.pop()
        for id_ in chains.names():
            node = chains.table(id_)
            url = without_fragment(node.text("url") or node.table("request").text("url"))
            if parent_url and url != parent_url:
                yield url, parent_url
            if "children" in node:
                waiting.append((url, node.table("children")))


def _estimates(metrics: Fields, throttling: Fields) -> str:
    """Return in words what Lighthouse's simulation estimates, and over which network."""
    times = [
        f"{name} {time_ms:,.0f} ms"
        for name, key in _ESTIMATES.items()
        if (time_ms := metrics.duration(key)) is not None
    ]
    rtt_ms, rate_kbps = throttling.number("rttMs"), throttling.number("throughputKbps")
    network = f"{rtt_ms or 0:g} ms RTT and {(rate_kbps or 0) / _KB:.4g} Mbit/s"
    return f"Lighthouse's simulation estimates {', '.join(times)} over {network}"
