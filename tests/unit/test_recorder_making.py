"""A page made of what a browser said, without a browser."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from h3sim.capture.chromium import ChromiumError, Recorded
from h3sim.capture.chromium.connection import Event
from h3sim.capture.chromium.page_builder import recorded_of
from h3sim.capture.chromium.visit import Visit
from h3sim.page import At, Kind
from tests.unit.test_recorder_exchanges import answered, asked, event

ROOT = "http://x/"
HTML = '<link rel=stylesheet href="a.css"><img src="b.png?size=1"><img src="b.png?size=2">'
MEASURED = {
    "pixels": 1000,
    "images": {"http://x/b.png?size=2": 500},
    "texts": {},
    "blocking": {"http://x/a.css": True},
    "paints": {"first-contentful-paint": 70.0},
    "largest": {"at_ms": 80.0, "url": "http://x/b.png?size=2", "font": None},
    "waited": [],
}


def loaded(number: str, url: str, at_s: float, kind: str, **more: Any) -> list[Event]:
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


def _typed(number: str, at_s: float, kind: str, status: int) -> Event:
    response = {"status": status, "mimeType": "text/html", "encodedDataLength": 180}
    params = {"requestId": number, "timestamp": at_s + 0.1, "type": kind, "response": response}
    return Event("Network.responseReceived", params, "s")


def made(*events: list[Event], document: str | None = HTML, **more: Any) -> Recorded:
    first = {"initiator": {"type": "other"}, **more}
    everything = [*loaded("0", ROOT, 1.0, "Document", **first), *itertools.chain(*events)]
    documents = {} if document is None else {"0": document}
    visit = Visit(browser="b", events=everything, documents=documents, measured=MEASURED)
    return recorded_of(visit, "p", {})


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


def test_a_redirection_to_what_did_not_come_is_left_out() -> None:
    moved = {"status": 302, "mimeType": "", "encodedDataLength": 90}
    hops = [
        asked("1", f"{ROOT}pixel", 2.0),
        asked("1", "http://other/pixel", 2.1, redirectResponse=moved),
        event("loadingFailed", "1", timestamp=2.2, errorText="net::ERR_NAME_NOT_RESOLVED"),
    ]
    load = made(hops)
    assert [resource.id for resource in load.page.resources] == ["/"]
    assert load.notes == ("requests to other hosts, not let through: 1",)


def test_the_document_of_a_frame_is_the_parent_of_what_it_names() -> None:
    frame = loaded("1", f"{ROOT}frame.html", 2.0, "Document", frameId="g")
    image = loaded("2", f"{ROOT}c.png", 3.0, "Image", frameId="g", initiator={"type": "other"})
    found = made(frame, image).page.resources[2].discovered
    # The document of the frame was not kept; so what nobody names waits for the page's.
    assert found is not None
    assert (found.by, found.at) == ("/", At.COMPLETE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": 500}, "the document did not come: status 500"),
        ({"document": None}, "the document is not HTML, or Chromium did not keep it"),
    ],
)
def test_without_a_document_there_is_no_page(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ChromiumError, match=message):
        made(**change)


def test_a_document_that_fails_says_why() -> None:
    events = [
        asked("0", ROOT, 1.0, type="Document"),
        event("loadingFailed", "0", timestamp=1.1, errorText="net::ERR_CONNECTION_RESET"),
    ]
    visit = Visit(browser="b", events=events, measured=MEASURED)
    with pytest.raises(ChromiumError, match="did not come: net::ERR_CONNECTION_RESET"):
        recorded_of(visit, "p", {})


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
