"""Loads as HARs: what stands in them, and that the format and h3sim's own reader agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim.cli import main
from h3sim.errors import InputError
from h3sim.page import merge_pages
from h3sim.results.har import write_load_har
from tests.har_schema import HAR_SCHEMA
from tests.helpers import page_of, with_updates
from tests.recordings import entry, har

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "index.html", "kind": "document", "mime": "text/html", "bytes": 2800}
CHILD = {"by": "index.html", "at": "offset", "offset_bytes": 1400}
PAGE = page_of(
    ROOT,
    {"id": "a b.js?x#y", "kind": "script", "bytes": 1400, "header_bytes": 100, "discovered": CHILD},
    {"id": "gone", "kind": "fetch", "bytes": 0, "header_bytes": 50, "discovered": CHILD},
    {
        "id": "https://cdn.example/a.png?v=1",
        "kind": "image",
        "bytes": 3000,
        "discovered": {"by": "a b.js?x#y", "at": "executed"},
    },
    name="My <shop>",
)


def entries(page: Any, **how: Any) -> list[dict[str, Any]]:
    document = h3sim.simulate(page, **how).to_har()
    found: list[dict[str, Any]] = document["log"]["entries"]
    return found


def problems(document: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft202012Validator(HAR_SCHEMA)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def test_the_schema_knows_a_har_and_what_is_none() -> None:
    jsonschema.Draft202012Validator.check_schema(HAR_SCHEMA)
    document = har(entry("/", 0, 20))
    del document["log"]["entries"][0]["timings"]
    document["log"]["entries"][0]["unheard-of"] = 1
    assert any("'timings' is a required property" in line for line in problems(document))
    assert any("unheard-of" in line for line in problems(document))


@pytest.mark.parametrize(
    "how",
    [
        {"scheme": "rr"},
        {"scheme": "chrome-eps", "network": "4g", "loss": 0.02, "seed": 3},
        {"scheme": "dfifo", "transport": "tcp", "network": "cable", "browser": "parse"},
        {"scheme": "bucket-html", "transport": "tcp", "reorder": "4:1-3"},
    ],
)
def test_every_har_is_one_by_the_schema(how: dict[str, Any]) -> None:
    for page in (PAGE, h3sim.load_page("davies-meenan")):
        assert problems(h3sim.simulate(page, **how).to_har()) == []


def test_an_entry_has_what_the_load_knows() -> None:
    _, script, empty, image = entries(PAGE, scheme="chrome-eps", rate_mbps=1.12)
    assert script == {
        "pageref": "page_1",
        "startedDateTime": "1970-01-01T00:00:00.010000Z",
        "time": 30.0,
        "request": {
            "method": "GET",
            "url": "https://my-shop.example/a%20b.js%3Fx%23y",
            "httpVersion": "h3",
            "cookies": [],
            "headers": [{"name": "priority", "value": "u=1"}],
            "queryString": [],
            "headersSize": 100,
            "bodySize": 0,
        },
        "response": {
            "status": 200,
            "statusText": "",
            "httpVersion": "h3",
            "cookies": [],
            "headers": [],
            "content": {"size": 1400, "mimeType": ""},
            "redirectURL": "",
            "headersSize": 100,
            "bodySize": 1400,
            "_transferSize": 1500,
        },
        "cache": {},
        "timings": {
            "blocked": -1,
            "dns": -1,
            "connect": -1,
            "ssl": -1,
            "send": 0,
            "wait": 20.0,
            "receive": 10.0,
        },
        "connection": "1",
        "_resourceType": "script",
        "_initiator": "https://my-shop.example/index.html",
        "_initiator_type": "parser",
        "_initialPriority": "High",
        "_priority": "High",
        "_prioritySignal": "u=1",
        # The first 100 bytes of its first packet are the response's header.
        "_chunks": [{"ts": 30.0, "bytes": 1300}, {"ts": 40.0, "bytes": 100}],
    }
    assert (empty["response"]["status"], empty["_chunks"]) == (204, [])
    assert image["request"]["url"] == "https://cdn.example/a.png?v=1"
    assert image["_initiator"] == script["request"]["url"]
    assert image["_initiator_type"] == "script"


def test_the_root_waits_for_the_connection() -> None:
    first, *_ = entries(PAGE, network="4g")
    connect_ms = first["timings"]["connect"]
    assert first["startedDateTime"] == "1970-01-01T00:00:00.000000Z"
    assert connect_ms > 0
    assert first["time"] == pytest.approx(
        connect_ms + first["timings"]["wait"] + first["timings"]["receive"]
    )


def test_a_level_is_given_where_chrome_would_know_one() -> None:
    levels = {
        scheme: [entry.get("_priority") for entry in entries(PAGE, scheme=scheme)]
        for scheme in ("rr", "dfifo", "chrome-eps", "bucket")
    }
    assert levels["rr"] == levels["bucket"] == [None] * 4
    assert levels["dfifo"][:2] == levels["chrome-eps"][:2] == ["VeryHigh", "High"]


def test_later_words_on_priority_stand_with_their_times() -> None:
    page = h3sim.load_page("davies-meenan")
    changes = {"when": {"at": "time", "delay_ms": 400}, "fetchpriority": "high"}
    page = page.with_("hidden1.jpg", priority_changes=[changes])
    found = {
        entry["request"]["url"].rpartition("/")[2]: entry
        for entry in entries(page, scheme=with_updates("chrome-eps"), network="cable")
    }
    assert [change["ts"] > 400 for change in found["hidden1.jpg"]["_priorityChanges"]] == [True]
    assert "_priorityChanges" not in found["hidden2.jpg"]


def test_the_page_has_its_milestones_and_states_what_was_run() -> None:
    load = h3sim.simulate("davies-meenan", scheme="dfifo", browser="parse")
    (page,) = load.to_har()["log"]["pages"]
    assert page["title"] == "davies-meenan"
    assert page["pageTimings"] == {
        "onContentLoad": load.dom_content_loaded_ms,
        "onLoad": load.load_event_ms,
        "_firstPaint": load.first_paint_ms,
        "_largestContentfulPaint": load.largest_paint_ms,
    }
    assert page["comment"].startswith("dfifo, marx-2019, ")


def test_the_command_writes_the_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "load.har"
    assert main(["run", "davies-meenan", "--scheme", "fifo", "--har", str(path)]) == 0
    assert "ByteIndex" in capsys.readouterr().out
    load = h3sim.simulate("davies-meenan", scheme="fifo")
    assert json.loads(path.read_text("utf-8")) == load.to_har()
    imported = h3sim.read_har(path)
    assert [resource.id for resource in imported.resources] == [row.id for row in load.timings]


def test_a_path_that_is_no_har_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "davies-meenan", "--har", "load.json"]) == 2
    assert "--har: must end in .har, is 'load.json'" in capsys.readouterr().err
    with pytest.raises(InputError, match="there is no folder"):
        write_load_har(h3sim.simulate(PAGE), tmp_path / "nowhere" / "load.har")


@pytest.mark.parametrize("browser", ["replay", "parse"])
def test_each_tab_is_a_page_with_milestones_of_its_own(browser: str) -> None:
    shop = h3sim.load_page("davies-meenan")
    load = h3sim.simulate(merge_pages(shop, shop, after_ms=1000), network="cable", browser=browser)
    document = load.to_har()
    assert problems(document) == []
    first, second = document["log"]["pages"]
    at_ms = [each["startedDateTime"].partition("T")[2] for each in (first, second)]
    assert at_ms[0] == "00:00:00.000000Z"
    assert at_ms[1] == f"00:00:0{load.roots[1].requested_ms / 1000:.6f}Z"
    assert second["pageTimings"]["onLoad"] == (
        load.roots[1].load_event_ms or load.roots[1].finished_ms
    )
    # The last piece of a page's root is there when the root is, counted from where the page began.
    root = next(each for each in document["log"]["entries"] if each["pageref"] == "page_2")
    assert root["_chunks"][-1]["ts"] == pytest.approx(root["time"])
    of_page = [each["pageref"] for each in document["log"]["entries"]]
    assert {name: of_page.count(name) for name in of_page} == {"page_1": 9, "page_2": 9}


def test_what_a_redirect_leads_to_and_a_frame_are_of_the_page_that_brought_them() -> None:
    frame = {"id": "frame", "kind": "document", "bytes": 900, "root": True, "discovered": CHILD}
    inside = {"by": "frame", "at": "complete"}
    page = page_of(ROOT, frame, {"id": "x.js", "kind": "script", "bytes": 5, "discovered": inside})
    document = h3sim.simulate(page, browser="parse").to_har()
    assert len(document["log"]["pages"]) == 1
    assert {each["pageref"] for each in document["log"]["entries"]} == {"page_1"}


def test_each_entry_names_its_connection() -> None:
    page = page_of(
        ROOT,
        {"id": "a.js", "kind": "script", "bytes": 90, "host": "cdn.example", "discovered": CHILD},
    )
    of = {how: entries(page, network="cable", connections=how) for how in ("single", "per-host")}
    assert [each["connection"] for each in of["single"]] == ["1", "1"]
    assert [each["connection"] for each in of["per-host"]] == ["1", "2"]


def test_requests_of_a_connection_are_as_long_as_those_before_them_there_make_them() -> None:
    scripts = [
        {"id": f"{n}.js", "kind": "script", "bytes": 90, "host": "cdn.example", "discovered": CHILD}
        for n in (1, 2)
    ]
    found = entries(
        page_of(ROOT, *scripts), network="cable", transport="tcp", connections="per-host"
    )
    root, first, second = (each["request"]["headersSize"] for each in found)
    # The second refers to what the first put into the table; that of the root is another one.
    assert first > root // 2 > 3 * second
