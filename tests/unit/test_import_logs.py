"""DevTools logs and WProf graphs: what is not in the ordinary recording of each."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from h3sim.importers import import_page
from tests.helpers import unworded
from tests.recordings import SAMPLES, SITE, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

LOG = SAMPLES["devtools-log"]
ROOT = LOG[:6]


def event(method: str, second: float, **params: Any) -> dict[str, Any]:
    params = {"requestId": "9", "timestamp": second, **params}
    return {"method": f"Network.{method}", "params": params}


def sent(path: str, second: float, **params: Any) -> dict[str, Any]:
    params.setdefault("initiator", {"type": "parser", "url": f"{SITE}/?q=SECRET"})
    request = {"url": f"{SITE}{path}", "method": "GET", "headers": {}}
    return event("requestWillBeSent", second, request=request, type="Image", **params)


def answered(second: float, **response: Any) -> dict[str, Any]:
    response = {"status": 200, "headers": {}, "encodedDataLength": 100, **response}
    return event("responseReceived", second, response=response, type="Image")


def left_out_of(folder: Path, *events: dict[str, Any]) -> dict[str, int]:
    return dict(import_page(write_recording(folder, [*ROOT, *events])).left_out)


def test_what_took_no_bytes_is_left_out(tmp_path: Path) -> None:
    asked = sent("/a.png", 5.2)
    cached, served = event("requestServedFromCache", 5.2), answered(5.2, fromServiceWorker=True)
    failed = event("loadingFailed", 5.3, errorText="net::ERR_FAILED")
    assert left_out_of(tmp_path, asked, cached, answered(5.2)) == {"from the cache": 1}
    assert left_out_of(tmp_path, asked, answered(5.2, fromDiskCache=True)) == {"from the cache": 1}
    assert left_out_of(tmp_path, asked, served) == {"from a service worker": 1}
    assert left_out_of(tmp_path, asked, failed) == {"failed or were blocked": 1}
    assert left_out_of(tmp_path, asked) == {"failed or were blocked": 1}


def test_a_script_that_is_not_found_was_answered(tmp_path: Path) -> None:
    """Chromium fails it, but what it blocks has waited for the response."""
    failed = event("loadingFailed", 5.3, errorText="net::ERR_ABORTED")
    events = [*ROOT, sent("/a.js", 5.2), answered(5.25, status=404), failed]
    assert len(import_page(write_recording(tmp_path, events)).page.resources) == 2


def test_each_hop_of_a_redirect_is_a_request(tmp_path: Path) -> None:
    hop = {"status": 302, "headers": {"Location": "/b.png"}, "encodedDataLength": 80}
    events = [
        sent("/a.png", 5.2),
        sent("/b.png", 5.25, redirectResponse=hop),
        answered(5.3),
        event("loadingFinished", 5.4, encodedDataLength=700),
    ]
    resources = resources_of(tmp_path, [*ROOT, *events])
    assert resources["a.png"]["bytes"] == 0
    assert resources["a.png"]["header_bytes"] == 80
    assert resources["b.png"]["bytes"] == 600
    assert resources["b.png"]["discovered"] == {"by": "a.png", "at": "complete"}


def test_a_preload_link_is_told(tmp_path: Path) -> None:
    asked = sent("/a.png", 5.2)
    asked["params"]["request"]["isLinkPreload"] = True
    events = [asked, answered(5.3), event("loadingFinished", 5.4, encodedDataLength=700)]
    assert resources_of(tmp_path, [*ROOT, *events])["a.png"]["preload"] is True


def test_sizes_without_an_end_are_those_of_the_pieces(tmp_path: Path) -> None:
    data = event("dataReceived", 5.35, dataLength=900, encodedDataLength=450)
    resources = resources_of(tmp_path, [*ROOT, sent("/a.png", 5.2), answered(5.3), data])
    assert resources["a.png"]["bytes"] == 450


FIELDS = {"content-type": "image/png", "server": "h2o"}
"""Header fields that take 54 bytes as text: over HTTP/2 a header of these is no longer."""


def test_body_bytes_that_came_with_the_header_are_no_header(tmp_path: Path) -> None:
    def sizes(length: str, at_header: int) -> tuple[int, int]:
        fields = FIELDS | ({"content-length": length} if length else {})
        events = [
            sent("/a.png", 5.2),
            answered(5.3, headers=fields, encodedDataLength=at_header, protocol="h2"),
            event("loadingFinished", 5.4, encodedDataLength=39_040),
        ]
        found = resources_of(tmp_path, [*ROOT, *events])["a.png"]
        return found["header_bytes"], found["bytes"]

    assert sizes("39000", 39_040) == (40, 39_000)
    assert sizes("39000", 16_400) == (40, 39_000)
    assert sizes("39000", 38) == (38, 39_002)
    # Without a length, the header is at most its text.
    assert sizes("", 39_040) == (54, 38_986)


def test_body_bytes_that_came_with_the_header_arrived_with_it(tmp_path: Path) -> None:
    events = [
        sent("/a.png", 5.2),
        answered(5.3, headers=FIELDS | {"content-length": "3000"}, encodedDataLength=1040),
        event("dataReceived", 5.4, dataLength=2000, encodedDataLength=2000),
        event("loadingFinished", 5.4, encodedDataLength=3040),
    ]
    found = resources_of(tmp_path, [*ROOT, *events])["a.png"]
    assert found["response_offsets"] == [0, 1000]


def test_events_that_tell_nothing_are_told_and_skipped(tmp_path: Path) -> None:
    result = import_page(
        write_recording(tmp_path, [*ROOT, 7, {"method": "Network.requestWillBeSent", "params": {}}])
    )
    assert unworded(result.skipped) == [
        "[6]: skipped: is 7",
        "[7].params.requestId: skipped: is missing",
    ]


def epload(*deps: tuple[str, str, float], **changes: Any) -> dict[str, Any]:
    graph = copy.deepcopy(SAMPLES["epload"])
    graph["objs"][0].update(changes)
    graph["deps"] = [{"a1": a1, "a2": a2, "time": time} for a1, a2, time in deps]
    return graph  # type: ignore[no-any-return]


def triggers(folder: Path, graph: dict[str, Any]) -> dict[str, Any]:
    resources = resources_of(folder, graph)
    return {id_: resource.get("discovered") for id_, resource in resources.items()}


def test_dependencies_become_triggers(tmp_path: Path) -> None:
    # The document's computations take 10 and 20 ms; app.js's takes 40.
    late = {"when_comp_start": -1}
    for source, time, trigger in (
        ("c0", 4, {"at": "complete", "delay_ms": 4.0}),
        ("c0", -1, {"at": "complete", "delay_ms": 10.0}),
        ("c1", 5, {"at": "complete", "delay_ms": 15.0}),
        ("c1", -1, {"at": "executed"}),
        ("d0", -1, {"at": "complete"}),
        ("d0", 7, {"at": "request", "delay_ms": 7.0}),
    ):
        found = triggers(tmp_path, epload((source, "d1", time), ("c2", "d2", -1), **late))
        assert found["app.js"] == {"by": "/", **trigger}
        assert found["late.png"] == {"by": "app.js", "at": "executed"}


def test_circles_of_dependencies_are_cut_once(tmp_path: Path) -> None:
    path = write_recording(tmp_path, epload(("c2", "d2", -1), ("d2", "d1", -1)))
    result = import_page(path)
    assert result.inferred["circles of parents, cut"] == 1
    assert len(result.page.resources) == 3


def test_dependencies_of_nothing_are_told_and_skipped(tmp_path: Path) -> None:
    result = import_page(write_recording(tmp_path, epload(("c0", "d1", 1), ("no", "d2", 1))))
    assert unworded(result.skipped) == ["deps[1].a1: skipped: names no activity"]


def test_a_script_that_wprofx_names_is_the_parent(tmp_path: Path) -> None:
    graph = copy.deepcopy(SAMPLES["wprofx"])
    graph[2]["objs"][0]["fromScript"] = f"{SITE}/app.js"
    graph[3]["objs"] = []
    resources = resources_of(tmp_path, graph)
    assert resources["api"]["discovered"]["by"] == "app.js"
