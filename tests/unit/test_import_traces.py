"""Chrome traces, and results of WebPageTest and Lighthouse: what is not in the sample of each."""

from __future__ import annotations

import copy
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import RecordingError, import_page
from h3sim.page import Layout, Rectangle
from tests.helpers import unworded
from tests.recordings import SAMPLES, SITE, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = SAMPLES["chrome-trace"]["traceEvents"]
WPT, LIGHTHOUSE = SAMPLES["webpagetest"], SAMPLES["lighthouse"]


def event(name: str, at_ms: float, tid: int = 1, **data: Any) -> dict[str, Any]:
    args = {"data": {"frame": "F", **data}, "frame": data.get("frame", "F")}
    at_us = 5_000_000 + 1000 * at_ms
    return {"ph": "I", "name": name, "pid": 1, "tid": tid, "ts": at_us, "args": args}


def requested(path: str, at_ms: float, id_: str = "9", **data: Any) -> dict[str, Any]:
    data = {"requestId": id_, "url": SITE + path, "requestMethod": "GET", **data}
    return event("ResourceSendRequest", at_ms, **data)


def answered(at_ms: float, id_: str = "9", **data: Any) -> list[dict[str, Any]]:
    data = {"statusCode": 200, "mimeType": "image/png", "encodedDataLength": 100, **data}
    wire = {"didFail": False, "encodedDataLength": 600, "decodedBodyLength": 500}
    return [
        event("ResourceReceiveResponse", at_ms, requestId=id_, **data),
        event("ResourceFinish", at_ms + 10, requestId=id_, **wire),
    ]


def task(name: str, at_ms: float, took_ms: float, url: str, tid: int = 1) -> dict[str, Any]:
    return event(name, at_ms, tid, url=SITE + url) | {"ph": "X", "dur": 1000 * took_ms}


def traced(folder: Path, *events: Any) -> dict[str, dict[str, Any]]:
    return resources_of(folder, [*EVENTS, *events])


def test_a_trace_may_be_a_list_and_compressed(tmp_path: Path) -> None:
    expected = resources_of(tmp_path, SAMPLES["chrome-trace"])
    assert traced(tmp_path) == expected
    packed = gzip.compress(json.dumps({"traceEvents": EVENTS}).encode())
    assert resources_of(tmp_path, packed) == expected


def test_a_request_without_stack_belongs_to_the_innermost_running_script(tmp_path: Path) -> None:
    events = [
        task("FunctionCall", 300, 50, "/app.js"),
        task("EvaluateScript", 310, 5, "/api"),
        task("FunctionCall", 318, 9, "/", tid=2),
        requested("/a.png", 320, "7", resourceType="Image"),
        requested("/b.png", 312, "8", resourceType="Image"),
        requested("/c.png", 360, "9", resourceType="Image"),
        *answered(400, "7"),
        *answered(400, "8"),
        *answered(400, "9"),
    ]
    imported = import_page(write_recording(tmp_path, [*EVENTS, *events]))
    found = {each.id: each.discovered for each in imported.page.resources}
    assert [each and each.by for each in (found["a.png"], found["b.png"])] == ["app.js", "api"]
    # Both and that of the fetch; while the last one was requested, no script ran.
    assert imported.inferred["parent from stack"] == 3
    assert imported.inferred["parent from timing"] == 1


def test_a_stack_counts_more_than_the_running_script(tmp_path: Path) -> None:
    stack: dict[str, Any] = {
        "initiator": {"type": "script"},
        "stackTrace": [{"url": f"{SITE}/api"}],
    }
    found = traced(
        tmp_path,
        task("FunctionCall", 300, 50, "/app.js"),
        requested("/a.png", 320, **stack),
        *answered(400),
    )
    assert found["a.png"]["discovered"]["by"] == "api"


def test_a_document_was_requested_when_the_browser_announced_it(tmp_path: Path) -> None:
    early = event("ResourceWillSendRequest", -1, requestId="1")
    load = import_page(write_recording(tmp_path, [*EVENTS, early])).page.recorded_load
    assert load is not None
    # Since the document was requested, 1 ms after navigation start at -2.
    assert load.load_event_ns == 249_000_000
    assert load.completed_ns["/"] == 61_000_000


def test_after_redirects_the_document_was_requested_when_it_was_sent(tmp_path: Path) -> None:
    first = [
        {"ph": "M", "name": "process_name", "args": {}},
        event("navigationStart", 0, documentLoaderURL=f"{SITE}/b", isOutermostMainFrame=True),
        event("ResourceWillSendRequest", 1, requestId="1"),
        requested("/a", 200, "1", resourceType="Document"),
        requested("/b", 201, "1", resourceType="Document"),
        *answered(202, "1", mimeType="text/html", timing={"requestTime": 5.080, "sendEnd": 1}),
    ]
    found = resources_of(tmp_path, first)
    assert [*found] == ["a", "b"]
    assert found["b"]["discovered"] == {"by": "a", "at": "complete"}
    assert (found["a"]["bytes"], found["b"]["bytes"]) == (0, 500)
    load = import_page(write_recording(tmp_path, first)).page.recorded_load
    assert load is not None
    assert load.completed_ns == {"a": 79_000_000, "b": 211_000_000}


def test_requests_of_a_service_worker_are_not_those_of_the_page(tmp_path: Path) -> None:
    thread = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7}
    worker = [
        requested("/w.js", 300) | {"tid": 7},
        *answered(320),
        thread | {"args": {"name": "ServiceWorker thread"}},
    ]
    imported = import_page(write_recording(tmp_path, [*EVENTS, *worker]))
    assert imported.left_out == {"made by a service worker": 1}
    assert len(imported.page.resources) == 3


def test_the_second_page_of_a_trace_is_read_alone(tmp_path: Path) -> None:
    more = [
        event("navigationStart", 900, documentLoaderURL=f"{SITE}/n", isOutermostMainFrame=True),
        event("navigationStart", 930, frame="G", documentLoaderURL=f"{SITE}/frame"),
        requested("/n", 910, resourceType="Document"),
        *answered(950, mimeType="text/html"),
        event("largestContentfulPaint::Candidate", 1000, nodeId=4),
    ]
    path = write_recording(tmp_path, [*EVENTS, *more])
    first, second = import_page(path), import_page(path, page=2)
    assert [each.id for each in first.page.resources] == ["/", "app.js", "api"]
    assert [each.id for each in second.page.resources] == ["n"]
    assert (first.found["pages"], second.left_out) == (2, {"of another page of the recording": 3})
    assert second.page.recorded_load is not None
    assert second.page.recorded_load.largest_paint_ns == 90_000_000
    with pytest.raises(RecordingError, match="has 2 pages; there is no page 3"):
        import_page(path, page=3)


def corners(width: float, height: float, x: float = 0, y: float = 0) -> list[float]:
    return [x, y, x + width, y, x + width, y + height, x, y + height]


def painted(at_ms: float, path: str, node: int, *rect: float, frame: str = "F") -> dict[str, Any]:
    data: dict[str, Any] = {
        "image_url": SITE + path,
        "dom_node_id": node,
        "rect": corners(*rect),
        "frame": frame,
    }
    return event("PaintTimingVisualizer::LayoutObjectPainted", at_ms, **data)


def test_rectangles_of_images_are_read_and_become_shares_of_the_viewport(tmp_path: Path) -> None:
    viewport = "PaintTimingVisualizer::Viewport"
    events = [
        *(requested(f"/{n}.png", 100, f"i{n}", resourceType="Image") for n in range(4)),
        *(each for n in range(4) for each in answered(150, f"i{n}")),
        event(viewport, 1, viewport_rect=corners(4000, 4000)),  # before the document is there
        event(viewport, 180, viewport_rect=corners(1000, 500)),
        event(viewport, 181, viewport_rect=corners(20, 20)),  # of an SVG image
        painted(180, "/0.png", 4, 500, 500),
        painted(182, "/0.png", 4, 400, 250, 10, 10),  # again, elsewhere
        painted(180, "/1.png", 5, 0, 0),
        painted(180, "/2.png", 6, 1000, 500, frame="G"),
        painted(180, "/3.png", 7, 50, 10),
        painted(180, "/3.png", 8, 50, 10),
        event("LargestImagePaint::Candidate", 198, DOMNodeId=4, imageUrl=f"{SITE}/0.png"),
        event("LargestImagePaint::Candidate", 198, DOMNodeId=7, imageUrl=f"{SITE}/3.png"),
    ]
    imported = import_page(write_recording(tmp_path, [*EVENTS, *events]))
    found = {each.id: each for each in imported.page.resources}
    shares = [found[f"{n}.png"].viewport for n in range(4)]
    assert shares == [0.2, None, None, 0.002]
    small = Rectangle(x=0, y=0, width=50, height=10)
    assert imported.page.layout == Layout(
        width=1000,
        height=500,
        rectangles={
            "0.png": (Rectangle(x=10, y=10, width=400, height=250),),
            "3.png": (small, small),
        },
    )
    assert [each.id for each in imported.page.resources if each.hero] == ["0.png"]
    seen = {each.id for each in imported.page.resources if each.above_the_fold}
    assert seen == {"/", "app.js", "0.png", "3.png"}
    assert imported.found["shares of the viewport"] == 2
    assert imported.found["largest paints"] == 1


def test_what_took_no_bytes_is_left_out_of_a_trace(tmp_path: Path) -> None:
    failed = event("ResourceFinish", 330, requestId="9", didFail=True)
    for events, outcome in (
        ([event("ResourceMarkAsCached", 310, requestId="9"), *answered(310)], "from the cache"),
        (answered(310, fromCache=True), "from the cache"),
        (answered(310, fromServiceWorker=True), "from a service worker"),
        ([failed], "failed or were blocked"),
        ([], "failed or were blocked"),
    ):
        path = write_recording(tmp_path, [*EVENTS, requested("/a.png", 300), *events])
        assert import_page(path).left_out == {outcome: 1}


def test_a_change_of_priority_is_kept(tmp_path: Path) -> None:
    changed = event("ResourceChangePriority", 350, requestId="9", priority="High")
    asked = requested("/a.png", 300, priority="Low", resourceType="Image")
    found = traced(tmp_path, asked, changed, *answered(400))["a.png"]["recorded"]
    assert [each["level"] for each in found] == ["Low", "High"]
    assert found[1]["when"] == {"by": "a.png", "at": "request", "delay_ms": 50.0}


def test_events_without_time_or_of_a_wrong_type_are_reported(tmp_path: Path) -> None:
    wrong = [{"name": "ResourceFinish"}, 7, requested("/a", 300) | {"ts": "soon"}]
    result = import_page(write_recording(tmp_path, [*EVENTS, *wrong]))
    number = len(EVENTS)
    assert unworded(result.skipped) == [
        f"[{number}].ts: skipped: is missing",
        f"[{number + 1}]: skipped: is 7",
        f"[{number + 2}].ts: is 'soon'",
        f"[{number + 2}].ts: skipped: is missing",
    ]


# WebPageTest


def test_another_run_of_webpagetest_is_chosen_by_its_number(tmp_path: Path) -> None:
    result = copy.deepcopy(WPT)
    view = copy.deepcopy(result["data"]["median"]["firstView"])
    view["requests"] = view["requests"][:1]
    result["data"]["runs"]["2"] = {"firstView": {"steps": [view, {}]}}
    path = write_recording(tmp_path, result)
    assert len(import_page(path).page.resources) == 3
    assert len(import_page(path, page=2).page.resources) == 1
    with pytest.raises(RecordingError, match=r"data\.runs: has no run 3"):
        import_page(path, page=3)


def test_a_result_of_webpagetest_without_requests_says_how_to_get_them(tmp_path: Path) -> None:
    result = copy.deepcopy(WPT)
    result["data"]["median"]["firstView"]["requests"] = 12
    with pytest.raises(RecordingError, match="ask for them with requests=1"):
        import_page(write_recording(tmp_path, result))


def test_tls_is_part_of_connecting_in_webpagetest(tmp_path: Path) -> None:
    result = copy.deepcopy(WPT)
    requests = result["data"]["median"]["firstView"]["requests"]
    for request in requests:
        request["socket"] = "7"
    requests[0] |= {"connect_ms": 30, "ssl_ms": "25", "dns_ms": "-1", "all_ms": 115}
    for request in requests[1:]:
        request["all_start"] = float(request["all_start"]) + 55
    for request in requests:
        request |= {"bytesIn": "30150", "objectSize": "30000"}
    load = import_page(write_recording(tmp_path, result)).page.recorded_load
    assert load is not None
    assert load.rtt_ns == 30_000_000


# Lighthouse


def test_a_lighthouse_result_may_be_inside_of_an_answer_of_pagespeed(tmp_path: Path) -> None:
    inside = resources_of(tmp_path, {"id": "x", "lighthouseResult": LIGHTHOUSE})
    assert inside == resources_of(tmp_path, LIGHTHOUSE)


def test_old_versions_of_lighthouse_have_other_names(tmp_path: Path) -> None:
    rows = [
        {"url": f"{SITE}/", "startTime": 0, "endTime": 50, "transferSize": 0, "statusCode": 301},
        {"url": f"{SITE}/b", "startTime": 50, "endTime": 90, "transferSize": 9, "statusCode": 200},
        {"url": f"{SITE}/c", "startTime": 95, "endTime": 99, "transferSize": 9, "statusCode": 200},
        {"url": f"{SITE}/d", "startTime": 99, "endTime": 99, "transferSize": 0, "statusCode": 200}
        | {"resourceSize": 9},
    ]
    chains = {"1": {"request": {"url": f"{SITE}/b"}, "children": {
        "2": {"request": {"url": f"{SITE}/c"}}}}}  # fmt: skip
    result = {
        "lighthouseVersion": "4.3.0",
        "audits": {
            "network-requests": {"details": {"items": rows}},
            "critical-request-chains": {"details": {"chains": chains}},
        },
    }
    found = resources_of(tmp_path, result)
    assert [*found] == ["/", "b", "c"]
    assert found["b"]["discovered"] == {"by": "/", "at": "complete"}
    assert found["c"]["discovered"]["by"] == "b"
    assert import_page(write_recording(tmp_path, result)).left_out == {"from the cache": 1}


def test_the_estimates_of_lighthouse_are_kept_to_compare_with(tmp_path: Path) -> None:
    page = import_page(write_recording(tmp_path, LIGHTHOUSE)).page
    assert page.provenance["lantern"] == (
        "Lighthouse's simulation estimates FCP 900 ms, LCP 1,200 ms"
        " over 150 ms RTT and 1.638 Mbit/s"
    )
    observed = copy.deepcopy(LIGHTHOUSE)
    observed["configSettings"]["throttlingMethod"] = "devtools"
    page = import_page(write_recording(tmp_path, observed)).page
    assert "lantern" not in page.provenance
    assert page.recorded_load is not None
    assert page.recorded_load.largest_paint_ns == 200_000_000


def test_a_browsertime_json_points_to_its_har(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="lists no requests: import the HAR beside it"):
        import_page(write_recording(tmp_path, [{"info": {}, "browserScripts": []}]))


def test_the_document_is_the_largest_paint_of_a_trace_whose_largest_paint_is_a_text(
    tmp_path: Path,
) -> None:
    events = [
        requested("/0.png", 100, "i0", resourceType="Image"),
        *answered(150, "i0"),
        event("PaintTimingVisualizer::Viewport", 180, viewport_rect=corners(1000, 500)),
        painted(180, "/0.png", 7, 16, 16),
        event("LargestTextPaint::Candidate", 198, DOMNodeId=4),
        event("LargestImagePaint::Candidate", 230, DOMNodeId=7, imageUrl=f"{SITE}/0.png"),
    ]
    page = import_page(write_recording(tmp_path, [*EVENTS, *events])).page
    assert [each.id for each in page.resources if each.hero] == ["/"]


def test_references_of_a_traced_document_lie_where_the_parser_found_them(tmp_path: Path) -> None:
    document = f"{SITE}/?q=SECRET"

    def image(n: int, at_ms: float, line: int, column: int) -> list[dict[str, Any]]:
        by = {"type": "parser", "url": document, "lineNumber": line, "columnNumber": column}
        asked = requested(f"/{n}.png", at_ms, f"i{n}", resourceType="Image", initiator=by)
        return [asked, *answered(at_ms + 40, f"i{n}")]

    def parsed(last_line: int, **begun: Any) -> dict[str, Any]:
        begin = {"url": document, "startLine": 0, **begun}
        args = {"beginData": begin, "endData": {"endLine": last_line}}
        return event("ParseHTML", 70) | {"ph": "X", "dur": 1000, "args": args}

    events = [
        *image(0, 100, 2, 50),
        *image(1, 100, 4, 30),
        # What the parser does not find is told with the place where it stands: two lazy images,
        # which layout requests, and two that a script inserts when its fetch is complete.
        *(each for n in (2, 3) for each in image(n, 180, 9, 7)),
        *(each for n in (4, 5) for each in image(n, 250, 9, 7)),
        *(task("RunTask", at_ms, 9, "") for at_ms in (175, 245)),
        event("IntersectionObserverController::computeIntersections", 178),
        parsed(9),
        parsed(80, stackTrace=[{"url": f"{SITE}/app.js"}]),  # a script sets innerHTML
    ]
    page = import_page(write_recording(tmp_path, [*EVENTS, *events])).page
    found = {each.id: each for each in page.resources}
    at = [found[f"{n}.png"].discovered for n in range(6)]
    n_bytes = found["/"].size_bytes
    assert [when and when.by for when in at] == ["/", "/", "/", "/", "api", "api"]
    offsets = [when.offset_bytes or 0 for when in at[:4] if when is not None]
    assert offsets == sorted(offsets)
    assert 0 < offsets[0] < n_bytes / 2 < offsets[3] <= n_bytes
    assert [n for n in range(6) if found[f"{n}.png"].is_lazy] == [2, 3]
