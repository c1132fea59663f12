"""Results of lab tests as JSON: WebPageTest's (`jsonResult.php`) and Lighthouse's.

WebPageTest's HAR has every field of its results under the same name after an underscore. The fields
of HAR 1.2 are computed from them here as WebPageTest does, and the result is read as its HAR.

Lighthouse's results, alone or in a response of the PageSpeed Insights API, list the requests with
sizes and Chrome's priorities, but no connections and no first bytes, so that no network can be
estimated; it is the one that they state (`stated_network`). They name parents only in chains of
important requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.importers.formats.har import HarReader, date_of, started_at
from h3sim.importers.recorded_request import REDIRECTS, RecordedRequest, RequestOutcome, SizeSource
from h3sim.importers.request_fields import field_lines, kind_of_word, without_fragment
from h3sim.importers.source import Fields, JsonPart
from h3sim.importers.stated_network import network_of_lighthouse, shaping_of_webpagetest
from h3sim.schema import format_value
from h3sim.values.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from h3sim.importers.recorded_request import Recording


_PAGE_ID = "page_1"
_WRAPPERS = (("lighthouseResult",), ("lhr",))
"""Members that hold a result: in responses of PageSpeed Insights, and in Lighthouse's own."""
_STEPS = ("steps",)
"""Member with the steps of a user flow, each with a result."""
LIGHTHOUSE_SIGNS = (("lighthouseVersion",), *_WRAPPERS)
"""Members that only results of Lighthouse have."""
_OBSERVED_METRICS = {
    "load_event": "observedLoad",
    "fcp": "observedFirstContentfulPaint",
    "largest_paint": "observedLargestContentfulPaint",
    "speed_index": "observedSpeedIndex",
}
"""Times of the recorded load, by the fields of `RecordedLoad`, with Lighthouse's keys."""
_SIMULATED_METRICS = {
    "FCP": "firstContentfulPaint",
    "LCP": "largestContentfulPaint",
    "SpeedIndex": "speedIndex",
}
"""Times that Lighthouse simulates for another network, by their short names in the notes."""
_KBPS_PER_MBPS = 1000


class WebPageTestResult:
    """Reader of the first view of one run: of the median run, or of run `page_number` from 2 on."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, part: JsonPart) -> None:
        """Process the member `data`, which has everything."""
        if part.path != ("data",):
            return
        recording = self._recording
        if not isinstance(part.value, dict):
            message = f"must be an object, is {format_value(part.value)}"
            raise recording.refuse(message, part.key)
        data = Fields(part.value, part.key, recording.note)
        number, runs = recording.page_number, data.table("runs")
        run = runs.table(str(number))
        if number == 1 and "median" in data:
            run = data.table("median")
        elif str(number) not in runs:
            raise recording.refuse(f"has no run {number}", runs.key)
        view = run.table("firstView")
        # Scripts of several steps have one list of requests for each.
        view = next(iter(view.tables("steps")), view)
        requests = view.tables("requests") if isinstance(view.raw("requests"), list) else []
        if not requests:
            raise recording.refuse("has no requests: ask for them with requests=1", view.key)
        recording.page_number = 1  # of the HAR that it becomes
        recording.stated_network = shaping_of_webpagetest(data) or shaping_of_webpagetest(view)
        reader = HarReader(recording)
        since_ms = (view.number("date") or 0.0) * MS_PER_S
        reader.add_page(Fields(_har_page(view, since_ms), view.key, recording.note))
        for request in requests:
            reader.add_entry(Fields(_har_entry(request, since_ms), request.key, recording.note))
        recording.set_tool("WebPageTest", view.text("browser_name"), view.name("browser_version"))
        tool = recording.tool
        reader.finish()
        recording.dialect, recording.tool = "webpagetest", tool

    def finish(self) -> None:
        """Finish: the result was read as a whole."""


def _har_page(view: Fields, since_ms: float) -> dict[str, Any]:
    timings = {"onLoad": view.number("loadTime", "docTime")}
    metrics = (
        "SpeedIndex",
        "firstContentfulPaint",
        "chromeUserTiming.firstContentfulPaint",
        "chromeUserTiming.LargestContentfulPaint",
    )
    more = {f"_{name}": view.raw(name) for name in metrics}
    return {"id": _PAGE_ID, "startedDateTime": date_of(since_ms), "pageTimings": timings, **more}


def _har_entry(request: Fields, since_ms: float) -> dict[str, Any]:
    """Return the entry of a HAR for a request."""
    headers = request.table("headers")
    protocol, response_lines = request.text("protocol"), _header_lines(headers, "response")
    if not protocol and response_lines and response_lines[0].upper().startswith("HTTP/"):
        protocol = response_lines[0].partition(" ")[0]
    tls_ms, connect_ms = request.duration("ssl_ms"), request.duration("connect_ms")
    start_ms = request.duration("all_start", "load_start")
    return {
        "pageref": _PAGE_ID,
        "startedDateTime": None if start_ms is None else date_of(since_ms + start_ms),
        "time": request.duration("all_ms", "load_ms"),
        "request": {
            "url": request.text("full_url"),
            "method": request.text("method"),
            "headers": _har_headers(_header_lines(headers, "request")),
        },
        "response": {
            "status": request.number("responseCode"),
            "httpVersion": protocol,
            "headers": _har_headers(response_lines),
            "bodySize": request.size("objectSize"),
            "content": {
                "size": request.size("objectSizeUncompressed"),
                "mimeType": request.text("contentType"),
            },
        },
        "timings": {
            "dns": request.duration("dns_ms"),
            # HAR 1.2 counts TLS as part of connecting.
            "connect": None if connect_ms is None else connect_ms + (tls_ms or 0.0),
            "ssl": tls_ms,
            "wait": request.duration("ttfb_ms"),
            "receive": request.duration("download_ms"),
        },
        **{f"_{name}": request.raw(name) for name in request.names()},
    }


def _header_lines(headers: Fields, name: str) -> list[str]:
    # Anything but a list stands for no headers, and is not reported.
    return headers.texts(name) if isinstance(headers.raw(name), list) else []


def _har_headers(lines: Iterable[str]) -> list[dict[str, str]]:
    pairs = field_lines(lines)
    return [{"name": name, "value": value} for name, value in pairs if " " not in name]


class LighthouseResult:
    """Reader of a result of Lighthouse, which is complete only with its last member.

    It may be within a response, or one of several: the steps of a user flow.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._members: dict[str, Any] = {}
        self._wrapped: dict[str, Any] | None = None
        self._steps: list[dict[str, Any]] = []

    def add(self, part: JsonPart) -> None:
        """Process a member of the result."""
        value = part.value
        if part.path in _WRAPPERS:
            self._wrapped = value if isinstance(value, dict) else self._wrapped
        elif part.path == _STEPS and isinstance(value, dict) and _has_requests(value.get("lhr")):
            self._steps.append(value["lhr"])
        elif len(part.path) == 1 and part.item is None:
            self._members[part.path[0]] = value

    def _chosen_result(self) -> dict[str, Any]:
        """Return the requested result: of a user flow, that of a step with requests."""
        single = self._members if self._wrapped is None else self._wrapped
        results = self._steps or [single]
        if self._recording.page_number > 1 and len(results) == 1:
            raise self._recording.refuse("has one page")
        index = self._recording.choose_page(len(results) if self._steps else 0)
        return results[index or 0]

    def finish(self) -> None:
        """Add the requests, the observed times and Lighthouse's own estimates."""
        recording = self._recording
        result = Fields(self._chosen_result(), "", recording.note)
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
        times_ms = {name: metrics.duration(key) for name, key in _OBSERVED_METRICS.items()}
        recording.times_ms |= {name: at_ms for name, at_ms in times_ms.items() if at_ms is not None}
        recording.stated_network = network_of_lighthouse(result)
        settings = result.table("configSettings")
        if settings.raw("throttlingMethod") == "simulate":
            recording.provenance["lantern"] = _simulation_notes(
                metrics, settings.table("throttling")
            )


def _has_requests(result: object) -> bool:
    """Return whether a step of a user flow lists requests: a snapshot of a page has none."""
    audits = result.get("audits") if isinstance(result, dict) else None
    return isinstance(audits, dict) and "network-requests" in audits


def _request(row: Fields) -> RecordedRequest | None:
    url = row.text("url")
    if not url:
        row.wrong("url", "skipped: is missing")
        return None
    status = row.integer("statusCode")
    request = RecordedRequest(
        key=row.key,
        url=without_fragment(url),
        start_ms=row.number("rendererStartTime", "networkRequestTime", "startTime"),
        # When the network had it, before it connected: when it was sent is not recorded.
        asked_ms=row.number("networkRequestTime"),
        end_ms=row.number("networkEndTime", "endTime"),
        protocol=row.text("protocol").lower(),
        status=status,
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
    # Of each URL, the first request is the last in its list, to be taken first.
    indexes: dict[str, list[int]] = {}
    for index in reversed(range(len(requests))):
        indexes.setdefault(requests[index].url, []).append(index)
    for index, request in enumerate(requests[1:], 1):
        before = requests[index - 1]
        is_timed = None not in (before.end_ms, request.start_ms)
        # Redirects of the document are the first requests, each followed by its target.
        if not (before.status in REDIRECTS and is_timed):
            break
        request.redirect_of = index - 1
    for url, parent_url in _tree_edges(audits):
        children, parents = indexes.get(url), indexes.get(parent_url)
        if children and parents and requests[children[-1]].redirect_of is None:
            # A URL may be more often in the tree than in the list: its last request stays.
            index = children.pop() if len(children) > 1 else children[-1]
            requests[index].parent = parents[-1]


def _tree_edges(audits: Fields) -> Iterator[tuple[str, str]]:
    """Yield the URLs of child and parent of each edge in the trees of important requests.

    Lighthouse 13 and older versions have them in different audits, but nested alike.
    """
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


def _simulation_notes(metrics: Fields, throttling: Fields) -> str:
    """Return a note with the times that Lighthouse simulated, and the network."""
    found = {name: metrics.duration(key) for name, key in _SIMULATED_METRICS.items()}
    times = [f"{name} {at_ms:,.0f} ms" for name, at_ms in found.items() if at_ms is not None]
    rtt_ms, rate_kbps = throttling.number("rttMs"), throttling.number("throughputKbps")
    network = f"{rtt_ms or 0:g} ms RTT and {(rate_kbps or 0) / _KBPS_PER_MBPS:.4g} Mbit/s"
    return f"Lighthouse's simulation estimates {', '.join(times)} over {network}"
