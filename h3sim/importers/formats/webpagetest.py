"""WebPageTest's results as JSON (`jsonResult.php`), read as the HAR that it exports of them.

WebPageTest's HAR has every field of its results under the same name after an underscore; the fields
of HAR 1.2 are worked out from them here as WebPageTest does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.importers.formats.har import HarReader, date_of
from h3sim.importers.source import Fields
from h3sim.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.importers.recorded_request import Recording
    from h3sim.importers.source import JsonPart


_PAGE = "page_1"


class WebPageTestResult:
    """Reader of the first view of one run: of the median run, or of run `page_number` from 2 on."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def add(self, part: JsonPart) -> None:
        """Process the member `data`, which has everything."""
        if part.path != ("data",):
            return
        recording = self._recording
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
        reader = HarReader(recording)
        since_ms = (view.number("date") or 0.0) * MS_PER_S
        reader.add_page(Fields(_page(view, since_ms), view.key, recording.note))
        for request in requests:
            reader.add_entry(Fields(_entry(request, since_ms), request.key, recording.note))
        recording.set_tool("WebPageTest", view.text("browser_name"), view.name("browser_version"))
        tool = recording.tool
        reader.finish()
        recording.dialect, recording.tool = "webpagetest", tool

    def finish(self) -> None:
        """Finish: the result was read as a whole."""


def _page(view: Fields, since_ms: float) -> dict[str, Any]:
    timings = {"onLoad": view.number("loadTime", "docTime")}
    metrics = ("SpeedIndex", "chromeUserTiming.LargestContentfulPaint")
    more = {f"_{name}": view.raw(name) for name in metrics}
    return {"id": _PAGE, "startedDateTime": date_of(since_ms), "pageTimings": timings, **more}


def _entry(request: Fields, since_ms: float) -> dict[str, Any]:
    """Return the entry of a HAR for a request."""
    headers = request.table("headers")
    protocol, got = request.text("protocol"), list(_texts(headers, "response"))
    if not protocol and got and got[0].upper().startswith("HTTP/"):
        protocol = got[0].partition(" ")[0]
    tls_ms, connect_ms = request.duration("ssl_ms"), request.duration("connect_ms")
    start_ms = request.duration("all_start", "load_start")
    return {
        "pageref": _PAGE,
        "startedDateTime": None if start_ms is None else date_of(since_ms + start_ms),
        "time": request.duration("all_ms", "load_ms"),
        "request": {
            "url": request.text("full_url"),
            "method": request.text("method"),
            "headers": _fields(_texts(headers, "request")),
        },
        "response": {
            "status": request.number("responseCode"),
            "httpVersion": protocol,
            "headers": _fields(iter(got)),
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


def _texts(headers: Fields, name: str) -> Iterator[str]:
    yield from headers.texts(name) if isinstance(headers.raw(name), list) else ()


def _fields(lines: Iterator[str]) -> list[dict[str, str]]:
    """Return the header fields of lines such as "Host: example.org" or ":method: GET"."""
    found = []
    for line in lines:
        name, colon, value = line[1:].partition(":")
        if colon and " " not in (name := line[:1] + name):
            found.append({"name": name, "value": value.strip()})
    return found
