"""Recordings that went on over navigations: each page load is a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.result import RecordingError
from tests.recordings import SAMPLES, SITE, entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

BY_USER = {"Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}


def fields(**named: str) -> list[dict[str, str]]:
    return [{"name": name.replace("_", "-"), "value": value} for name, value in named.items()]


def document(path: str, at_ms: float, **sent: str) -> dict[str, Any]:
    headers = fields(**sent)
    return entry(path, at_ms, 100, mime="text/html", request_headers=headers, pageref="only")


def image(path: str, at_ms: float, referer: str) -> dict[str, Any]:
    headers = fields(Referer=SITE + referer)
    return entry(path, at_ms, 60, mime="image/png", request_headers=headers, pageref="only")


def loads_of(folder: Path, *entries: dict[str, Any], on_load_ms: float = -1) -> list[list[str]]:
    """Return the ids of each page load, each imported on its own."""
    pages = [{"id": "only", "startedDateTime": entries[0]["startedDateTime"],
              "pageTimings": {"onLoad": on_load_ms}}]  # fmt: skip
    path = write_recording(folder, har(*entries, pages=pages))
    first = import_page(path)
    n_loads = first.found.get("navigations", 1)
    others = [import_page(path, page=number) for number in range(2, n_loads + 1)]
    return [[each.id for each in load.page.resources] for load in (first, *others)]


def test_each_navigation_of_a_kept_log_is_a_page_with_what_names_it_as_referer(
    tmp_path: Path,
) -> None:
    entries = (
        document("/one", 0),
        image("/a.png", 150, "/one"),
        document("/two", 9000, Referer=f"{SITE}/one"),
        image("/beacon.gif", 9010, "/one"),
        image("/a.png", 9150, "/two"),
    )
    assert loads_of(tmp_path, *entries) == [["one", "a.png", "beacon.gif"], ["two", "a.png"]]


def test_a_page_left_after_an_hour_is_loaded_without_the_hour(tmp_path: Path) -> None:
    late = [document("/two", 9_000), image("/b.png", 9_150, "/two")]
    late[0]["startedDateTime"] = "2026-03-04T06:20:00+00:00"
    late[1]["startedDateTime"] = "2026-03-04T06:20:00.150000+00:00"
    path = write_recording(tmp_path, har(document("/one", 0), image("/a.png", 150, "/one"), *late))
    for page in (1, 2):
        load = import_page(path, page=page).page.recorded_load
        assert load is not None
        assert load.finished_ns is not None
        assert load.finished_ns < 1e9


def test_the_report_of_a_kept_log_counts_navigations_and_warns(tmp_path: Path) -> None:
    two = document("/two", 9000, Accept="text/html")
    path = write_recording(tmp_path, har(document("/one", 0), two))
    imported = import_page(path)
    assert imported.found["navigations"] == 2
    assert "2 page loads" in imported.warnings[0]
    assert not import_page(path, page=2).warnings
    with pytest.raises(RecordingError, match="there is no page 3"):
        import_page(path, page=3)


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ({}, 1),
        ({"Sec-Fetch-Dest": "iframe"}, 1),
        ({"Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch"}, 1),
        ({"Sec-Fetch-Dest": "empty"}, 1),
        ({"Accept": "*/*"}, 1),
        ({"X-Requested-With": "XMLHttpRequest"}, 1),
        ({"Sec-Fetch-Dest": "document"}, 2),
        ({"Accept": "text/html,application/xhtml+xml;q=0.9"}, 2),
    ],
)
def test_only_a_document_of_the_page_itself_is_a_navigation(
    tmp_path: Path, what: dict[str, str], found: int
) -> None:
    assert len(loads_of(tmp_path, document("/one", 0), document("/two", 9000, **what))) == found


def test_a_frame_of_a_page_that_goes_on_is_no_navigation(tmp_path: Path) -> None:
    frame = document("/frame", 2000, Referer=f"{SITE}/one")
    goes_on = image("/late.png", 3000, "/one")
    in_frame = image("/inner.png", 2200, "/frame")
    entries = (document("/one", 0), frame, in_frame, goes_on)
    assert len(loads_of(tmp_path, *entries)) == 1
    assert len(loads_of(tmp_path, *entries[:-1])) == 2


def test_a_page_that_replaces_itself_at_once_is_one_load(tmp_path: Path) -> None:
    replaced = (document("/one", 0), document("/two", 150, Sec_Fetch_Dest="document"))
    assert loads_of(tmp_path, *replaced) == [["one", "two"]]
    clicked = (document("/one", 0), document("/two", 150, **BY_USER))
    assert loads_of(tmp_path, *clicked) == [["one"], ["two"]]


def test_a_navigation_begins_with_its_redirects_and_after_the_load_event(tmp_path: Path) -> None:
    hop = document("/old", 200, Sec_Fetch_Dest="document")
    hop["response"] |= {"status": 302, "redirectURL": f"{SITE}/two", "bodySize": 0}
    target = document("/two", 301, Sec_Fetch_Dest="document")
    entries = (document("/one", 0), hop, target)
    assert loads_of(tmp_path, *entries, on_load_ms=180) == [["one"], ["old", "two"]]


def test_a_referer_cut_to_its_origin_names_no_page(tmp_path: Path) -> None:
    other = image("https://cdn.example/b.png", 9200, "/")
    entries = (document("/", 0), document("/two", 9000), other, image("/c.png", 9300, "/two"))
    assert loads_of(tmp_path, *entries)[1] == ["two", "cdn.example/b.png", "c.png"]


def test_the_load_event_of_a_log_page_is_that_of_its_first_navigation(tmp_path: Path) -> None:
    pages = [{"id": "only", "startedDateTime": "2026-03-04T05:06:00+00:00",
              "pageTimings": {"onLoad": 250}}]  # fmt: skip
    entries = (document("/one", 0), document("/two", 9000, **BY_USER))
    path = write_recording(tmp_path, har(*entries, pages=pages))
    loads = [import_page(path, page=number).page.recorded_load for number in (1, 2)]
    assert [load and load.load_event_ns for load in loads] == [250_000_000, None]


def later(event: dict[str, Any], by_s: float) -> dict[str, Any]:
    """Return an event of another load, on the same page, of a request with another id."""
    params = {**event["params"], "timestamp": event["params"]["timestamp"] + by_s}
    return {**event, "params": {**params, "requestId": f"later-{params['requestId']}"}}


def test_a_protocol_log_of_two_navigations_has_two_pages(tmp_path: Path) -> None:
    events = [
        {**event, "params": {**event["params"], "frameId": "F"}}
        for event in SAMPLES["devtools-log"][1:]
    ]
    loaded = [{"method": "Page.loadEventFired", "params": {"timestamp": at_s}}
              for at_s in (5.5, 65.7)]  # fmt: skip
    second = [later(event, 60) for event in events]
    path = write_recording(tmp_path, [*events, loaded[0], *second, loaded[1]])
    found = [import_page(path, page=number) for number in (1, 2)]
    assert [each.n_resources for each in found] == [3, 3]
    loads = [each.page.recorded_load for each in found]
    assert [load and load.load_event_ns for load in loads] == [500_000_000, 700_000_000]


def test_a_document_of_another_frame_is_no_navigation_of_a_protocol_log(tmp_path: Path) -> None:
    events = [
        {**event, "params": {**event["params"], "frameId": "F"}}
        for event in SAMPLES["devtools-log"][1:]
    ]
    frame = [later(event, 60) for event in events[:5]]
    for event in frame:
        event["params"]["frameId"] = "inner"
    found = import_page(write_recording(tmp_path, [*events, *frame]))
    assert "pages" not in found.found
    assert found.n_resources == 4


def test_what_a_page_polls_after_half_an_hour_is_no_part_of_its_load(tmp_path: Path) -> None:
    polled = entry("/poll", 400, 60, mime="application/json", pageref="only")
    late, waiting = {**polled}, entry("/wait", 500, 7_200_000, mime="application/json")
    late["startedDateTime"] = "2026-03-04T06:20:00+00:00"
    imported = import_page(
        write_recording(tmp_path, har(document("/one", 0), polled, late, waiting))
    )
    assert [each.id for each in imported.page.resources] == ["one", "poll"]
    assert imported.left_out == {"more than half an hour after the document": 2}
    assert "left out" in imported.warnings[0]
    load = imported.page.recorded_load
    assert load is not None
    assert load.n_bytes == 2200


def test_a_document_that_took_an_hour_is_still_the_page(tmp_path: Path) -> None:
    slow = entry("/", 0, 4_000_000, mime="text/html")
    assert import_page(write_recording(tmp_path, har(slow))).n_resources == 1
