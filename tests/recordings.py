"""Tiny recordings in every dialect, made up by hand; `SECRET` stands wherever none may be kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim.importers import import_page
from h3sim.page import page_to_dict
from h3sim.page.har_facts import FACTS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "COOKIE",
    "SAMPLES",
    "SITE",
    "archive_lines",
    "entry",
    "har",
    "imported",
    "net_event",
    "net_log",
    "net_request",
    "resources_of",
    "without_facts",
    "write_recording",
    "write_site",
]

SITE = "https://shop.example"
COOKIE = {"name": "Cookie", "value": "id=SECRET"}


def entry(path: str, start_ms: float, took_ms: float, **more: Any) -> dict[str, Any]:
    """Return an entry of HAR 1.2: the request took *took_ms*, the last 20 ms of it to receive.

    *more* are members of the entry; those called response_... and request_... are members there.
    """
    url = path if "://" in path or path.startswith(("data:", "blob:")) else SITE + path
    mime = more.pop("mime", "text/plain")
    made: dict[str, Any] = {
        "startedDateTime": f"2026-03-04T05:06:{start_ms / 1000:09.6f}+00:00",
        "time": took_ms,
        "request": {
            "method": "GET",
            "url": url,
            "headers": [COOKIE],
            "headersSize": 300,
            "bodySize": 0,
        },
        "response": {
            "status": 200,
            "headers": [{"name": "Set-Cookie", "value": "id=SECRET"}],
            "content": {"size": 2000, "mimeType": mime},
            "headersSize": 100,
            "bodySize": 1000,
        },
        "timings": {"blocked": -1, "send": 0, "wait": took_ms - 20, "receive": 20},
    }
    for name, value in more.items():
        outer, _, inner = name.partition("_")
        if outer in ("request", "response"):
            made[outer][inner] = value
        else:
            made[name] = value
    return made


def har(*entries: Any, creator: str = "made by hand", **log: Any) -> dict[str, Any]:
    """Return a HAR of these entries."""
    head = {"version": "1.2", "creator": {"name": creator, "version": "1"}, **log}
    return {"log": {**head, "entries": list(entries)}}


def without_facts(document: dict[str, Any]) -> dict[str, Any]:
    """Return a HAR of h3sim without the facts that no other tool writes."""
    log = document["log"]
    bare = {
        name: [{key: each[key] for key in each if key != FACTS} for each in log[name]]
        for name in ("pages", "entries")
    }
    return {**document, "log": {**log, **bare}}


def archive_lines(*entries: dict[str, Any], page: str = f"{SITE}/", **more: Any) -> str:
    """Return rows of the HTTP Archive as JSON Lines: of one page load, payloads as text."""
    key = {"date": "2026-03-01", "client": "mobile", "page": page, **more}
    timings = {"id": "page_1", "pageTimings": {"onLoad": 250}}
    payloads = [timings, *({**each, "pageref": "page_1"} for each in entries)]
    return "".join(json.dumps({**key, "payload": json.dumps(each)}) + "\n" for each in payloads)


def write_recording(folder: Path, document: Any, name: str = "recording.har") -> Path:
    """Write a recording, text and bytes as they are, anything else as JSON."""
    path = folder / name
    if isinstance(document, bytes):
        path.write_bytes(document)
    else:
        text = document if isinstance(document, str) else json.dumps(document)
        path.write_text(text, encoding="utf-8")
    return path


def imported(folder: Path, document: Any, **how: Any) -> dict[str, Any]:
    """Return the page file's document that comes of a recording."""
    return page_to_dict(import_page(write_recording(folder, document), **how).page)


def resources_of(folder: Path, document: Any, **how: Any) -> dict[str, dict[str, Any]]:
    """Return the resources that come of a recording, by id and without it: what it says itself."""
    how = {"above_the_fold": "none", **how}
    resources = imported(folder, document, **how)["resources"]
    return {each.pop("id"): each for each in resources}


def _frame(path: str) -> dict[str, Any]:
    return {"url": f"{SITE}{path}", "lineNumber": 4, "columnNumber": 2, "functionName": "f"}


def _event(method: str, request_id: str, second: float, **params: Any) -> dict[str, Any]:
    params = {"requestId": request_id, "timestamp": second, **params}
    return {"method": f"Network.{method}", "params": params}


def _loaded(
    request_id: str, path: str, second: float, type_: str, mime: str, initiator: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the events of a request of 1,000 bytes that took 100 ms."""
    asked = {
        "url": f"{SITE}{path}?q=SECRET",
        "method": "GET",
        "headers": {"Cookie": "SECRET"},
        "initialPriority": "High",
    }
    answer = {"status": 200, "mimeType": mime, "headers": {}, "encodedDataLength": 150}
    return [
        _event(
            "requestWillBeSent",
            request_id,
            second,
            request=asked,
            initiator=initiator,
            type=type_,
            wallTime=1_780_000_000 + second,
        ),
        _event("responseReceived", request_id, second + 0.06, response=answer, type=type_),
        _event("dataReceived", request_id, second + 0.08, dataLength=2000, encodedDataLength=400),
        _event("dataReceived", request_id, second + 0.1, dataLength=1000, encodedDataLength=600),
        _event("loadingFinished", request_id, second + 0.1, encodedDataLength=1150),
    ]


_PROTOCOL = [
    {"method": "Page.frameStartedLoading", "params": {"frameId": "F"}},
    *_loaded("1", "/", 5.0, "Document", "text/html", {"type": "other"}),
    *_loaded(
        "2",
        "/app.js",
        5.09,
        "Script",
        "text/javascript",
        {"type": "parser", "url": f"{SITE}/?q=SECRET", "lineNumber": 7},
    ),
    *_loaded(
        "3",
        "/api",
        5.25,
        "XHR",
        "application/json",
        {
            "type": "script",
            "stack": {"callFrames": [], "parent": {"callFrames": [_frame("/app.js?q=SECRET")]}},
        },
    ),
]
_NET_NUMBERS = {
    name: number
    for number, name in enumerate(
        (
            *("REQUEST_ALIVE", "URL_REQUEST_START_JOB", "URL_REQUEST_SET_PRIORITY"),
            *("URL_REQUEST_REDIRECTED", "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS"),
            *("HTTP_TRANSACTION_SEND_REQUEST", "HTTP_TRANSACTION_READ_RESPONSE_HEADERS"),
            *("HTTP2_STREAM_UPDATE_RECV_WINDOW", "HTTP_TRANSACTION_READ_BODY"),
            *("HTTP2_SESSION_SEND_HEADERS", "HTTP2_SESSION_INITIALIZED", "TCP_CONNECT", "FAILED"),
            *("QUIC_SESSION", "HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION", "UNKNOWN"),
            *("HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", "HTTP3_DATA_FRAME_RECEIVED"),
            *("QUIC_SESSION_CRYPTO_HANDSHAKE_COMPLETE", "QUIC_SESSION_STREAM_FRAME_RECEIVED"),
        ),
        7,
    )
}


def net_event(name: str, at_ms: int, source: int, phase: int = 0, **params: Any) -> dict[str, Any]:
    """Return an event of a network log of Chromium; times are text there."""
    head = {"phase": phase, "source": {"id": source, "type": 1}, "time": str(at_ms)}
    return {**head, "type": _NET_NUMBERS[name], "params": params}


def net_request(
    source: int, path: str, at_ms: int, mime: str, *sent: str, type_: str = "other", **more: Any
) -> list[dict[str, Any]]:
    """Return the events of a request of 1,000 bytes over HTTP/2 that took 100 ms."""
    url = f"{SITE}{path}?q=SECRET"
    asked = ["cookie: id=SECRET", *sent]
    got = ["HTTP/1.1 200", f"content-type: {mime}", "set-cookie: id=SECRET"]
    job = {"url": url, "method": "GET", "request_type": type_, "load_flags": 0}
    job |= {"network_isolation_key": f"{SITE} {SITE}", **more}
    return [
        net_event("REQUEST_ALIVE", at_ms, source, 1, priority="MEDIUM", url=url),
        net_event("URL_REQUEST_START_JOB", at_ms, source, 1, **job),
        net_event("HTTP_TRANSACTION_SEND_REQUEST", at_ms, source, 1),
        net_event("HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS", at_ms, source, headers=asked),
        net_event("HTTP2_SESSION_SEND_HEADERS", at_ms, 90, source_dependency={"id": source}),
        net_event("HTTP_TRANSACTION_SEND_REQUEST", at_ms, source, 2),
        net_event("HTTP_TRANSACTION_READ_RESPONSE_HEADERS", at_ms + 60, source, headers=got),
        net_event("HTTP_TRANSACTION_READ_BODY", at_ms + 61, source, 1),
        net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", at_ms + 80, source, delta=-400),
        net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", at_ms + 100, source, delta=-600),
        net_event("HTTP_TRANSACTION_READ_BODY", at_ms + 100, source, 2),
        net_event("REQUEST_ALIVE", at_ms + 101, source, 2),
    ]


def net_log(*events: dict[str, Any]) -> dict[str, Any]:
    """Return a network log of these events."""
    constants = {
        "logEventTypes": {**_NET_NUMBERS, "OF_ANOTHER_KIND": 5},
        "loadFlag": {"MAIN_FRAME_DEPRECATED": 256},
        "timeTickOffset": 1_780_000_000_000,
        "clientInfo": {"name": "Chromium", "version": "156", "command_line": "SECRET"},
    }
    return {"constants": constants, "events": list(events), "polledData": {"SECRET": 1}}


_NET_LOG = net_log(
    net_event("UNKNOWN", 1, 3),
    net_event("TCP_CONNECT", 4960, 91, 1, address_list=["192.0.2.1:443"]),
    net_event("TCP_CONNECT", 5000, 91, 2, remote_address="192.0.2.1:443"),
    net_event("HTTP2_SESSION_INITIALIZED", 5000, 90, source_dependency={"id": 91}),
    *net_request(1, "/", 5000, "text/html", type_="main frame"),
    *net_request(
        2, "/app.js", 5090, "text/javascript", f"referer: {SITE}/", "sec-fetch-dest: script"
    ),
    *net_request(3, "/api", 5250, "application/json", "sec-fetch-dest: empty"),
)


def _traced(name: str, at_ms: float, **data: Any) -> dict[str, Any]:
    event = {"ph": "I", "name": name, "pid": 1, "tid": 1, "ts": 5_000_000 + 1000 * at_ms}
    return event | {"args": {"data": {"frame": "F", **data}, "frame": "F"}}


def _traced_load(
    request_id: str, path: str, at_ms: float, type_: str, mime: str, **sent: Any
) -> list[dict[str, Any]]:
    """Return the events of a request of 1,000 bytes that took 60 ms."""
    asked = {"requestId": request_id, "url": f"{SITE}{path}?q=SECRET", "resourceType": type_}
    asked |= {"requestMethod": "GET", "priority": "High", **sent}
    answer = {"statusCode": 200, "mimeType": mime, "encodedDataLength": 150, "protocol": "h2"}
    end_s = 5 + (at_ms + 60) / 1000
    wire = {"encodedDataLength": 1150, "decodedBodyLength": 3000, "finishTime": end_s}
    return [
        _traced("ResourceSendRequest", at_ms, **asked),
        _traced("ResourceReceiveResponse", at_ms + 40, requestId=request_id, **answer),
        _traced("ResourceReceivedData", at_ms + 50, requestId=request_id, encodedDataLength=1200),
        _traced("ResourceReceivedData", at_ms + 60, requestId=request_id, encodedDataLength=1800),
        _traced("ResourceFinish", at_ms + 62, requestId=request_id, didFail=False, **wire),
    ]


def _task(name: str, at_ms: float, took_ms: float, **data: Any) -> dict[str, Any]:
    return _traced(name, at_ms, **data) | {"ph": "X", "dur": 1000 * took_ms}


# As each thread writes its own buffer, the events are in no order of time.
_TRACE = [
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "CrRendererMain"}},
    _traced("navigationStart", -2, documentLoaderURL=f"{SITE}/", isOutermostMainFrame=True),
    *_traced_load("3", "/api", 170, "Other", "application/json",
                  initiator={"type": "script", "fetchType": "fetch"}),
    *_traced_load("2", "/app.js", 50, "Script", "text/javascript", renderBlocking="blocking",
                  initiator={"type": "parser", "url": f"{SITE}/?q=SECRET", "lineNumber": 7}),
    _task("EvaluateScript", 115, 60, url=f"{SITE}/app.js?q=SECRET"),
    _task("v8.compile", 116, 5, url=f"{SITE}/app.js?q=SECRET"),
    *_traced_load("1", "/", 0, "Document", "text/html"),
    _traced("largestContentfulPaint::Candidate", 198, nodeId=4, isMainFrame=True),
    _traced("MarkLoad", 248, isMainFrame=True),
]  # fmt: skip


def _wpt_request(path: str, start_ms: float, type_: str, **more: Any) -> dict[str, Any]:
    """Return a request of 1,000 bytes that took 60 ms, with numbers as text as in old versions."""
    return {
        "full_url": f"{SITE}{path}?q=SECRET",
        "method": "GET",
        "responseCode": "200",
        "contentType": type_,
        "protocol": "HTTP/2",
        "all_start": str(start_ms),
        "all_ms": 60,
        "ttfb_ms": "40",
        "download_ms": 20,
        "bytesIn": "1150",
        "objectSize": "1000",
        "objectSizeUncompressed": 3000,
        "headers": {
            "request": [f"GET {path}?q=SECRET HTTP/1.1", "Host: shop.example", "Cookie: SECRET"],
            "response": ["HTTP/1.1 200", "set-cookie: SECRET"],
        },
        **more,
    }


_WPT = {
    "statusCode": 200,
    "data": {
        "runs": {"1": {"firstView": {"requests": []}}},
        "median": {
            "firstView": {
                "date": 1_780_000_000,
                "browser_name": "Chrome",
                "loadTime": 250,
                "SpeedIndex": 180,
                "chromeUserTiming.LargestContentfulPaint": 200,
                "requests": [
                    _wpt_request("/", 0, "text/html", priority="High"),
                    _wpt_request("/app.js", 50, "text/javascript", priority="High",
                                 initiator=f"{SITE}/?q=SECRET", initiator_line="8",
                                 initiator_type="parser", renderBlocking="blocking",
                                 **{"cpu.EvaluateScript": 55, "cpu.v8.compile": 5}),
                    _wpt_request("/api", 170, "application/json", priority="High",
                                 initiator=f"{SITE}/app.js?q=SECRET", initiator_type="script"),
                ],
            }
        },
    },
}  # fmt: skip


def _lighthouse_row(path: str, start_ms: float, type_: str, mime: str) -> dict[str, Any]:
    times = {"rendererStartTime": start_ms, "networkRequestTime": start_ms}
    return {
        "url": f"{SITE}{path}?q=SECRET",
        "protocol": "h2",
        "networkEndTime": start_ms + 60,
        "finished": True,
        "transferSize": 1000,
        "resourceSize": 3000,
        "statusCode": 200,
        "mimeType": mime,
        "resourceType": type_,
        "priority": "High",
        **times,
    }


_OBSERVED = {"observedLoad": 250, "observedLargestContentfulPaint": 200, "observedSpeedIndex": 180}
_CHAIN = {"url": f"{SITE}/?q=SECRET", "children": {"2": {"url": f"{SITE}/app.js?q=SECRET",
          "children": {"3": {"url": f"{SITE}/api?q=SECRET", "children": {}}}}}}  # fmt: skip
_LIGHTHOUSE = {
    "lighthouseVersion": "13.4.1",
    "fetchTime": "2026-03-04T05:06:00.000Z",
    "configSettings": {
        "throttlingMethod": "simulate",
        "throttling": {"rttMs": 150, "throughputKbps": 1638.4},
    },
    "audits": {
        "network-requests": {"details": {"items": [
            _lighthouse_row("/", 0, "Document", "text/html"),
            _lighthouse_row("/app.js", 50, "Script", "text/javascript"),
            _lighthouse_row("/api", 170, "Fetch", "application/json"),
        ]}},
        "network-dependency-tree-insight": {"details": {"items": [
            {"value": {"type": "network-tree", "chains": {"1": _CHAIN}}}]}},
        "metrics": {"details": {"items": [
            {"firstContentfulPaint": 900, "largestContentfulPaint": 1200, **_OBSERVED}]}},
    },
}  # fmt: skip


_PAGE = entry("/?q=SECRET", 0, 100, mime="text/html")
SAMPLES: dict[str, Any] = {
    "har": har(
        _PAGE,
        entry("/main.css?v=SECRET", 90, 60, mime="text/css", request_headers=[
            COOKIE, {"name": "Referer", "value": f"{SITE}/?q=SECRET"}]),
        entry("/t.woff2", 170, 60, mime="font/woff2", request_headers=[
            {"name": "referer", "value": f"{SITE}/main.css?v=SECRET"}]),
    ),
    "har-devtools": har(
        entry("/?q=SECRET", 0, 100, mime="text/html", _resourceType="document",
              _priority="VeryHigh", _initiator={"type": "other"}),
        entry("/app.js", 90, 60, mime="text/javascript", _resourceType="script", _priority="High",
              _initiator={"type": "parser", "url": f"{SITE}/?q=SECRET", "lineNumber": 3}),
        entry("/api?user=SECRET", 170, 60, mime="application/json", _resourceType="xhr",
              _priority="High", _initiator={"type": "script", "stack": {
                  "callFrames": [_frame("/app.js")]}}),
        creator="WebInspector",
    ),
    "har-chrome-har": har(
        entry("/?q=SECRET", 0, 100, mime="text/html", _initiator_type="other",
              _priority="VeryHigh", _chunks=[{"ts": 85, "bytes": 600}, {"ts": 100, "bytes": 400}]),
        entry("/app.js", 90, 60, mime="text/javascript", _priority="Low",
              _initiator=f"{SITE}/?q=SECRET", _initiator_line=4, _initiator_type="parser",
              _renderBlocking="non_blocking"),
        entry("/api", 170, 60, mime="application/json", _priority="High", _initiator_detail=
              json.dumps({"type": "script", "stack": {"callFrames": [_frame("/app.js")]}})),
        creator="Browsertime",
    ),
    "har-webpagetest": har(
        entry("/?q=SECRET", 0, 100, mime="text/html", response_bodySize=-1,
              _objectSize="900", _bytesIn="1000", _priority="Highest"),
        entry("/a.png", 90, 60, mime="image/png", response_bodySize=-1, _bytesIn="700",
              _initiator=f"{SITE}/?q=SECRET", _initiator_line="9", _priority="Low"),
        creator="WebPagetest",
    ),
    "har-firefox": har(
        _PAGE,
        entry("/a.png", 90, 60, mime="image/png", request_headers=[
            {"name": "Referer", "value": f"{SITE}/?q=SECRET"}]),
        creator="Firefox",
    ),
    "har-playwright": har(
        _PAGE,
        entry("/a.js", 90, 60, mime="text/javascript", response_bodySize=-1,
              response__transferSize=800),
        creator="Playwright",
    ),
    "har-http1": har(
        entry("/", 0, 100, mime="text/html", response_bodySize=-1, response_headersSize=-1),
        entry("/a.gif", 120, 60, mime="image/gif", response_bodySize=-1, response_headersSize=-1,
              response_headers=[{"name": "Content-Length", "value": "77"}]),
        creator="Firebug",
    ),
    "devtools-log": _PROTOCOL,
    "chrome-trace": {
        "traceEvents": _TRACE,
        "metadata": {"source": "DevTools", "startTime": "2026-03-04T05:06:07.890Z"},
    },
    "net-log": _NET_LOG,
    "webpagetest": _WPT,
    "lighthouse": _LIGHTHOUSE,
}  # fmt: skip
"""One recording in each dialect."""

_FILES = {
    "index.html": """<!doctype html><html><head><title>x</title>
<link rel="stylesheet" href="css/main.css?v=SECRET">
<script src="blocking.js"></script><script defer src="later.js"></script>
<script type="module" src="module.js"></script><script async src="/async.js"></script>
<link rel="preload" as="font" href="title.woff2" crossorigin>
</head><body><h1>x</h1>
<picture><source media="(max-width: 600px)" srcset="small.png">
<img src="wide.png" fetchpriority="high"></picture>
<img srcset="s.jpg 400w, m.jpg 1400w, l.jpg 2800w" src="s.jpg">
<script src="bottom.js"></script><noscript><img src="never.png"></noscript>
<p style="background: url(inline.png)">x</p><img src="https://other.example/SECRET.gif">
<img src="data:image/gif;base64,SECRET"><img src="gone.png"></body></html>
""",
    "css/main.css": """@import "more.css"; @import "print.css" print;
@font-face { font-family: Title; src: url(../title.eot), url("../title.woff2") format("woff2") }
@font-face { font-family: Unused; src: url(../unused.woff2) }
h1 { font: bold 2em/1 Title, serif; background: url('../hero.png') }
.nowhere { background: url(../nowhere.png) } h1:hover { background: url(../hover.png) }
@media (min-width: 2000px) { h1 { background: url(../huge.png) } }
""",
    "css/more.css": '@import "main.css"; p::before { content: url(../bullet.png) }',
}


def write_site(folder: Path) -> Path:
    """Write a small site and return the path of its document."""
    (folder / "css").mkdir(parents=True)
    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = "blocking.js later.js module.js async.js bottom.js title.woff2 unused.woff2 small.png"
    names += " wide.png s.jpg m.jpg l.jpg never.png inline.png hero.png nowhere.png hover.png"
    for n, name in enumerate(f"{names} huge.png bullet.png css/print.css".split()):
        (folder / name).write_bytes(bytes(range(256)) + b"!" * n)
    return folder / "index.html"
