"""A page made of what a browser said, without a browser."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.chromium import ChromiumError, Recorded
from h3sim.importers.chromium.browser import ProtocolEvent
from h3sim.importers.chromium.navigation import Navigation
from h3sim.importers.chromium.recording import recorded_of
from h3sim.page import ImageFormat, Kind, TriggerEvent
from tests.recordings import write_recording
from tests.unit.test_recorder_exchanges import answered, asked, event

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "http://x/"
HTML = '<link rel=stylesheet href="a.css"><img src="b.png?size=1"><img src="b.png?size=2">'
MEASURED = {
    "viewport": [50, 20],
    "images": {"http://x/b.png?size=2": [[0, 0, 25, 20]]},
    "texts": {},
    "blocking": {"http://x/a.css": True},
    "paints": {"first-contentful-paint": 70.0},
    "largest": {"at_ms": 80.0, "url": "http://x/b.png?size=2", "font": None},
    "waited": [],
}


def loaded(number: str, url: str, at_s: float, kind: str, **more: Any) -> list[ProtocolEvent]:
    """Return the events of a whole load: 180 bytes of header and 500 of body, in half a second."""
    status = more.pop("status", 200)
    return [
        asked(number, url, at_s, type=kind, **more),
        answered(number, at_s + 0.1, status=status)
        if kind == "Image"
        else _typed(number, at_s, kind, status),
        event("dataReceived", number, timestamp=at_s + 0.4, dataLength=len(HTML)),
        event("loadingFinished", number, timestamp=at_s + 0.5, encodedDataLength=680),
    ]


def _typed(number: str, at_s: float, kind: str, status: int) -> ProtocolEvent:
    response = {"status": status, "mimeType": "text/html", "encodedDataLength": 180}
    params = {"requestId": number, "timestamp": at_s + 0.1, "type": kind, "response": response}
    return ProtocolEvent("Network.responseReceived", params, "s")


def everything_of(*events: list[ProtocolEvent], **more: Any) -> list[ProtocolEvent]:
    """Return the events of the document, with *more* about its request, and then *events*."""
    first = {"initiator": {"type": "other"}, **more}
    return [*loaded("0", ROOT, 1.0, "Document", **first), *itertools.chain(*events)]


def made(*events: list[ProtocolEvent], document: str | None = HTML, **more: Any) -> Recorded:
    everything = everything_of(*events, **more)
    documents = {} if document is None else {"0": document}
    visit = Navigation(browser="b", events=everything, documents=documents, measured=MEASURED)
    return recorded_of(visit, "p")


def test_a_page_is_what_came_with_its_flags_and_names() -> None:
    css = loaded("1", f"{ROOT}a.css", 2.0, "Stylesheet")
    small = loaded("2", f"{ROOT}b.png?size=1", 2.1, "Image")
    large = loaded("3", f"{ROOT}b.png?size=2", 2.2, "Image")
    load = made(css, small, large)
    rows = [
        (r.id, r.kind, r.size_bytes, r.render_blocking, r.above_the_fold, r.viewport, r.hero)
        for r in load.page.resources
    ]
    assert rows == [
        ("/", Kind.DOCUMENT, 500, False, True, None, False),
        ("a.css", Kind.STYLESHEET, 500, True, True, None, False),
        ("b.png", Kind.IMAGE, 500, False, False, None, False),
        ("b.png (2)", Kind.IMAGE, 500, False, True, 0.5, True),
    ]
    assert [timing.requested_ms for timing in load.timings] == [0, 1000, 1100, 1200]
    assert (load.first_paint_ms, load.largest_paint_ms, load.notes) == (70.0, 80.0, ())


def test_a_page_has_the_hosts_that_its_requests_went_to() -> None:
    far = {"remoteIPAddress": "198.51.100.7", "timing": {
        "requestTime": 2.0, "dnsStart": 0, "dnsEnd": 12, "connectStart": 12, "connectEnd": 52,
        "receiveHeadersEnd": 100}}  # fmt: skip
    other = loaded("1", "http://cdn.example/c.png", 2.0, "Image")
    other[1] = answered("1", 2.1, **far)
    page = made(other).page
    assert [resource.host for resource in page.resources] == ["x", "cdn.example"]
    (host,) = page.hosts
    assert (host.name, host.server) == ("cdn.example", "198.51.100.7")
    assert (host.rtt_ns, host.dns_ns) == (40_000_000, 12_000_000)


def test_a_request_has_its_body_and_a_header_of_unknown_size_is_that_of_its_text() -> None:
    post = loaded("1", f"{ROOT}api", 2.0, "Image")
    request = {"url": f"{ROOT}api", "method": "POST", "postData": "x" * 5000}
    post[0] = asked("1", f"{ROOT}api", 2.0, request=request)
    post[1] = answered("1", 2.1, encodedDataLength=0, headers={"Age": "3"})
    found = made(post).page.resources[1]
    assert found.request_bytes == len("POST /api HTTP/1.1\r\n\r\n") + 5000
    assert found.header_bytes == len("HTTP/1.1 200\r\nAge: 3\r\n\r\n")


def test_an_answer_without_a_body_has_no_bytes() -> None:
    empty = loaded("1", f"{ROOT}beacon", 2.0, "Image")
    empty[1] = answered("1", 2.1, status=204)
    assert made(empty).page.resources[1].size_bytes == 0


def test_a_log_of_the_same_events_makes_the_same_resources(tmp_path: Path) -> None:
    css = loaded("1", f"{ROOT}a.css", 2.0, "Stylesheet")
    image = loaded("2", "http://cdn.example/b.png?size=2", 2.1, "Image")
    image.insert(2, event("resourceChangedPriority", "2", timestamp=2.2, newPriority="High"))
    image[3] = event("dataReceived", "2", timestamp=2.4, dataLength=9, encodedDataLength=500)
    log = [{"method": each.method, "params": each.params} for each in everything_of(css, image)]
    read = import_page(write_recording(tmp_path, log), above_the_fold="none").page
    # What a log does not have: the document's text, CPU time, and what is seen.
    only: dict[str, Any] = {
        "viewport": None,
        "above_the_fold": False,
        "critical": False,
        "hero": False,
    }
    only |= {"discovered": None, "in_head": False, "render_blocking": False}
    only |= {"after_first_image": False, "in_style": False}
    pages = (made(css, image).page, read)
    recorded, logged = ([replace(each, **only) for each in page.resources] for page in pages)
    assert recorded == logged
    assert len(recorded) == 3
    assert pages[0].hosts == pages[1].hosts


FAR = {"remoteIPAddress": "198.51.100.7", "protocol": "h2"}


@pytest.mark.parametrize(
    ("served", "network"),
    [(FAR, (100.0, 0.4)), (FAR | {"remoteIPAddress": "[::1]"}, None)],
    ids=["over a network", "by this machine"],
)
def test_a_recording_reports_how_long_the_load_took_and_over_what(
    served: dict[str, str], network: tuple[float, float] | None
) -> None:
    events = everything_of(loaded("1", f"{ROOT}b.png?size=2", 2.0, "Image"))
    for each in events:
        if "response" in each.params:
            each.params["response"] |= served
        if "encodedDataLength" in each.params and each.method.endswith("loadingFinished"):
            each.params["encodedDataLength"] = 20_180  # in 0.4 s: 0.4036 Mbit/s
    visit = Navigation(browser="b", events=events, documents={"0": HTML}, measured=MEASURED)
    visit.onload_ms = 2600.0
    known = recorded_of(visit, "p").page.recorded_load
    assert known is not None
    assert (known.finished_ns, known.load_event_ns, known.largest_paint_ns) == (
        1_500_000_000,
        1_600_000_000,
        80_000_000,
    )
    assert known.protocol == "h2"
    found = None if known.rtt_ns is None else (known.rtt_ns / 1e6, (known.rate_bps or 0) / 1e6)
    assert found == (network and pytest.approx(network, rel=0.02))


def test_a_redirection_to_what_did_not_come_is_left_out() -> None:
    moved = {"status": 302, "mimeType": "", "encodedDataLength": 90}
    hops = [
        asked("1", f"{ROOT}pixel", 2.0),
        asked("1", "http://other/pixel", 2.1, redirectResponse=moved),
        event("loadingFailed", "1", timestamp=2.2, errorText="net::ERR_NAME_NOT_RESOLVED"),
    ]
    load = made(hops)
    assert [resource.id for resource in load.page.resources] == ["/"]
    assert load.notes == ("blocked requests to other hosts: 1",)


def test_the_document_of_a_frame_is_the_parent_of_what_it_names() -> None:
    frame = loaded("1", f"{ROOT}frame.html", 2.0, "Document", frameId="g")
    image = loaded("2", f"{ROOT}c.png", 3.0, "Image", frameId="g", initiator={"type": "other"})
    found = made(frame, image).page.resources[2].discovered
    # The document of the frame was not kept; so what nobody names waits for the page's.
    assert found is not None
    assert (found.by, found.at) == ("/", TriggerEvent.COMPLETE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": 500}, "the document did not arrive: status 500"),
        ({"document": None}, "the document is not HTML, or Chromium did not keep it"),
    ],
)
def test_without_a_document_there_is_no_page(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ChromiumError, match=message):
        made(**change)


def test_a_document_that_fails_states_why() -> None:
    events = [
        asked("0", ROOT, 1.0, type="Document"),
        event("loadingFailed", "0", timestamp=1.1, errorText="net::ERR_CONNECTION_RESET"),
    ]
    visit = Navigation(browser="b", events=events, measured=MEASURED)
    with pytest.raises(ChromiumError, match="did not arrive: net::ERR_CONNECTION_RESET"):
        recorded_of(visit, "p")


def test_what_the_browser_asks_for_its_own_sake_is_left_out() -> None:
    icon = loaded("1", f"{ROOT}favicon.ico", 2.0, "Other", initiator={"type": "other"})
    assert [resource.id for resource in made(icon).page.resources] == ["/"]


def test_a_script_that_brings_what_is_seen_belongs_above_the_fold() -> None:
    script = loaded("1", f"{ROOT}app.js", 2.0, "Script")
    call = {"url": f"{ROOT}app.js", "lineNumber": 0, "columnNumber": 0, "functionName": ""}
    by_script = {"type": "script", "stack": {"callFrames": [call]}}
    seen = loaded("2", f"{ROOT}b.png?size=2", 3.0, "Image", initiator=by_script)
    unseen = loaded("3", f"{ROOT}c.js", 3.0, "Script", initiator=by_script)
    flags = {r.id: r.above_the_fold for r in made(script, seen, unseen).page.resources}
    assert flags == {"/": True, "app.js": True, "b.png": True, "c.js": False}


def test_jpegs_have_the_format_that_their_bytes_show() -> None:
    css = loaded("1", f"{ROOT}a.css", 2.0, "Stylesheet")
    images = [loaded(n, f"{ROOT}{n}.jpg", 2.1, "Image") for n in ("2", "3")]
    visit = Navigation(
        browser="b",
        events=everything_of(css, *images),
        documents={"0": HTML},
        measured=MEASURED,
        image_formats={"2": ImageFormat.PROGRESSIVE_JPEG},
    )
    page = recorded_of(visit, "p").page
    formats = {resource.id: resource.image_format for resource in page.resources}
    assert formats["2.jpg"] is ImageFormat.PROGRESSIVE_JPEG
    assert formats["3.jpg"] is formats["a.css"] is None
