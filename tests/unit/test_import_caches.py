"""What a browser took from a cache, and headers that recorders count as bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.page import Kind
from tests.recordings import SAMPLES, entry, har, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.importers import ImportedPage

PAGE = entry("/", 0, 100, mime="text/html")
NO_TIMES = {"blocked": 0, "dns": 0, "connect": 0, "send": 0, "wait": 0, "receive": 0}


def image(path: str, start_ms: float, **more: Any) -> dict[str, Any]:
    return entry(path, start_ms, 60, mime="image/png", **more)


def length(n_bytes: int) -> list[dict[str, str]]:
    return [{"name": "content-length", "value": str(n_bytes)}]


def imported(folder: Path, *entries: dict[str, Any], creator: str = "Firefox") -> ImportedPage:
    return import_page(write_recording(folder, har(*entries, creator=creator)))


@pytest.mark.parametrize(
    ("source", "where"),
    [
        ("Memory Cache", "from the cache"),
        ("Disk Cache", "from the cache"),
        ("Service Worker", "from a service worker"),
        ("Inspector Override", "from the browser's tools"),
    ],
)
def test_what_safari_did_not_load_is_no_transfer(tmp_path: Path, source: str, where: str) -> None:
    sizes = {"response_bodySize": -1, "response_headersSize": -1}
    kept = image("/a.png", 120, _fetchType=source, response_headers=length(60_000), **sizes)
    found = imported(tmp_path, PAGE, kept, creator="WebKit Web Inspector")
    assert (found.n_resources, found.page.total_bytes) == (1, 1000)
    assert found.left_out == {where: 1}


def test_what_safari_asked_the_server_about_is_a_header(tmp_path: Path) -> None:
    sizes = {"response_bodySize": 0, "response_headersSize": 120, "response__transferSize": 120}
    asked = image("/a.png", 120, _fetchType="Disk Cache", response_headers=length(60_000), **sizes)
    loaded = image("/b.png", 120, _fetchType="Network Load")
    found = imported(tmp_path, PAGE, asked, loaded, creator="WebKit Web Inspector")
    assert [(each.size_bytes, each.header_bytes) for each in found.page.resources] == [
        (1000, 100),
        (0, 120),
        (1000, 100),
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"cache": {"afterRequest": None}},
        {"cache": {"afterRequest": {"hitCount": 3}}},
        {"time": 0, "timings": {}, "response_headers": [], "response_headersSize": -1},
        {"time": 0, "timings": NO_TIMES},
        {"time": 0, "timings": NO_TIMES, "response_headers": [], "response_headersSize": 0},
    ],
)
def test_what_firefox_had_in_its_cache_is_no_transfer(tmp_path: Path, more: dict[str, Any]) -> None:
    found = imported(tmp_path, PAGE, image("/a.png", 120, **more), image("/b.png", 120))
    assert [each.id for each in found.page.resources] == ["/", "b.png"]
    assert found.left_out == {"from the cache": 1}


def test_a_server_on_the_same_machine_may_answer_within_a_millisecond(tmp_path: Path) -> None:
    quick = image("/a.png", 120, time=0, timings=NO_TIMES, serverIPAddress="127.0.0.1")
    assert imported(tmp_path, PAGE, quick).n_resources == 2


def test_a_cache_after_a_request_says_nothing_in_recordings_of_others(tmp_path: Path) -> None:
    stored = image("/a.png", 120, cache={"afterRequest": {"hitCount": 0}})
    assert imported(tmp_path, PAGE, stored, creator="HttpWatch").n_resources == 2


def test_a_recorder_without_any_times_had_not_everything_in_a_cache(tmp_path: Path) -> None:
    timeless = {"time": 0, "timings": NO_TIMES, "response_headersSize": 0}
    page = entry("/", 0, 0, mime="text/html", **timeless)
    assert imported(tmp_path, page, image("/a.png", 60, **timeless)).n_resources == 2


def test_a_copy_that_firefox_asked_about_is_kept_as_a_header(tmp_path: Path) -> None:
    asked = image("/a.png", 120, cache={"afterRequest": None}, response_status=304)
    assert imported(tmp_path, PAGE, asked).page.resources[1].size_bytes == 0


@pytest.mark.parametrize(("counted", "body"), [(100, 700), (0, 800)])
def test_a_recorder_that_counts_headers_as_body_does_so_throughout(
    tmp_path: Path, counted: int, body: int
) -> None:
    """Of a chunked and compressed body nothing else is known than what the others show."""
    others = [
        image(f"/{number}.png", 120, response_bodySize=500 + counted, response_headers=length(500))
        for number in range(2)
    ]
    chunked = image("/chunked.png", 120, response_bodySize=800)
    found = resources_of(tmp_path, har(PAGE, *others, chunked))
    sizes = {id_: (found[id_]["bytes"], found[id_]["header_bytes"]) for id_ in found}
    assert sizes["0.png"] == (500, 100)
    assert sizes["chunked.png"] == (body, 100)


@pytest.mark.parametrize(
    ("content", "fields", "body"),
    [
        ({"size": 820}, [], 820),
        ({"size": 5000}, [{"name": "content-encoding", "value": "br"}], 900 - 38),
        ({"size": 5000}, [], 900),
    ],
)
def test_header_and_body_are_no_more_than_what_was_transferred(
    tmp_path: Path, content: dict[str, Any], fields: list[dict[str, str]], body: int
) -> None:
    sizes = {"response_bodySize": -1, "response_headersSize": -1, "response__transferSize": 900}
    whole = image("/a.png", 120, response_content=content, response_headers=fields, **sizes)
    found = resources_of(tmp_path, har(PAGE, whole))["a.png"]
    assert found["bytes"] == pytest.approx(body, abs=20)  # the status line is part of the text
    assert found["bytes"] + found.get("header_bytes", 0) == 900


def test_a_header_of_unknown_size_in_a_protocol_log_does_not_count_twice(tmp_path: Path) -> None:
    events = [{**event, "params": {**event["params"]}} for event in SAMPLES["devtools-log"]]
    for event in events:
        if event["method"] == "Network.responseReceived":
            answer = {**event["params"]["response"], "encodedDataLength": 0}
            event["params"]["response"] = answer | {"headers": {"Age": "3"}}
    for resource in import_page(write_recording(tmp_path, events)).page.resources:
        assert resource.size_bytes + resource.header_bytes == 1150
        assert resource.header_bytes == len("HTTP/1.1 200\r\nAge: 3\r\n\r\n")


@pytest.mark.parametrize(
    "more",
    [
        {"response_status": 204, "response_bodySize": 0},
        {"response_status": 205, "response_bodySize": 0, "_resourceType": "document"},
        {"request_headers": [{"name": "Ping-To", "value": "https://shop.example/next"}]},
        {"request_method": "HEAD"},
    ],
)
def test_a_beacon_is_no_document_whatever_its_media_type(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    beacon = entry("/ping", 200, 40, mime="text/html", **more)
    kinds = [each.kind for each in imported(tmp_path, beacon, PAGE).page.resources]
    assert kinds == [Kind.DOCUMENT, Kind.OTHER]


def test_a_document_that_was_not_modified_stays_one(tmp_path: Path) -> None:
    page = entry("/", 0, 100, mime="text/html", response_status=304)
    assert imported(tmp_path, page).page.resources[0].kind is Kind.DOCUMENT
