"""Loads as HARs: what stands in them, and that the format and h3sim's own reader agree."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim.browser import infer_above_the_fold
from h3sim.cli import main
from h3sim.export.har import write_load_har
from h3sim.importers import import_page
from h3sim.page import Host, MarksFrom, merge_pages
from h3sim.values.errors import InputError
from h3sim.values.units import ms
from tests.har_schema import HAR_SCHEMA
from tests.helpers import page_of, with_updates
from tests.recordings import entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.page import Page, Resource

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
        # What no other member says, in the keys of a page file.
        "_h3sim": {"id": "a b.js?x#y", "kind": "script", "discovered": CHILD},
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
    imported = h3sim.importers.read_har(path)
    assert [resource.id for resource in imported.resources] == [row.id for row in load.timings]


def test_a_path_that_is_no_har_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "davies-meenan", "--har", "load.json"]) == 2
    assert ".har, is 'load.json'" in capsys.readouterr().err
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


# What the page model needs, and no other member has


def imported(folder: Path, document: dict[str, Any], **how: Any) -> Any:
    return import_page(write_recording(folder, document, "load.har"), **how)


def comparable(page: Page) -> list[Resource]:
    """Return the resources without what a recording measures or observes."""
    observed: dict[str, Any] = {"recorded": (), "response_offsets": (), "request_bytes": 0}
    return [replace(each, **observed) for each in page.resources]


@pytest.mark.parametrize("name", ["davies-meenan", "sneat-index", "django-index"])
def test_a_page_comes_back_from_the_har_of_its_load(tmp_path: Path, name: str) -> None:
    page = h3sim.load_page(name)
    load = h3sim.simulate(page, scheme="chrome-eps", network="4g")
    found = imported(tmp_path, load.to_har())
    by_id = {each.id: each for each in comparable(found.page)}
    assert [by_id[each.id] for each in comparable(page)] == comparable(page)
    assert found.page.above_the_fold_from is page.above_the_fold_from
    assert found.page.layout == page.layout
    assert (found.skipped, found.warnings) == ((), ())


def test_guessed_marks_stay_guesses(tmp_path: Path) -> None:
    page = infer_above_the_fold(h3sim.load_page("davies-meenan"))
    found = imported(tmp_path, h3sim.simulate(page, network="4g").to_har()).page
    assert found.above_the_fold_from is MarksFrom.HEURISTIC
    assert comparable(found) == comparable(page)


def test_hosts_come_back_if_they_had_connections_of_their_own(tmp_path: Path) -> None:
    script = {"id": "a.js", "kind": "script", "bytes": 9000, "host": "cdn.example"}
    hosts = (Host(name="cdn.example", rtt_ns=ms(90), dns_ns=ms(30)),)
    page = replace(page_of(ROOT, {**script, "discovered": CHILD}), hosts=hosts)
    load = h3sim.simulate(page, network="cable", connections="per-host")
    found = imported(tmp_path, load.to_har()).page
    assert found.hosts == page.hosts
    assert [each.host for each in found.resources] == ["", "cdn.example"]
    single = h3sim.simulate(page, network="cable", connections="single").to_har()
    assert imported(tmp_path, single).page.hosts == ()


def test_triggers_of_a_browser_that_computes_the_load_are_inferred_from_its_times() -> None:
    for browser, has_trigger in (("replay", True), ("parse", False)):
        _, script, *_ = entries("davies-meenan", network="cable", browser=browser)
        assert ("discovered" in script["_h3sim"]) is has_trigger


def test_facts_about_resources_that_are_missing_do_not_count(tmp_path: Path) -> None:
    document = h3sim.simulate("davies-meenan", network="4g").to_har()
    kept = [each for each in document["log"]["entries"] if "top.js" not in each["request"]["url"]]
    document["log"]["entries"] = kept
    page = imported(tmp_path, document).page
    hero = page.resources[page.index["hero.jpg"]]
    assert hero.above_the_fold
    assert hero.discovered is not None
    assert hero.discovered.by == "index.html"


def test_wrong_facts_are_reported_and_inferred_instead(tmp_path: Path) -> None:
    document = h3sim.simulate("davies-meenan", network="4g").to_har()
    first, second, third, *_ = document["log"]["entries"]
    first["_h3sim"] = 5
    second["_h3sim"]["above_the_fold"] = "yes"
    third["_h3sim"]["discovered"] = {"at": "offset", "by": "index.html", "offset_bytes": 10**9}
    document["log"]["pages"][0]["_h3sim"] = {"layout": 3}
    found = imported(tmp_path, document)
    assert sorted(problem.key for problem in found.skipped) == [
        "log.entries[0]._h3sim",
        "log.entries[1]._h3sim.above_the_fold",
        "log.pages[0]._h3sim.layout",
    ]
    assert len(found.page.resources) == 9


def test_the_verdict_on_a_har_is_that_on_its_page(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps", network="4g")
    page = imported(tmp_path, load.to_har()).page
    race: dict[str, Any] = {"schemes": ["fifo", "chrome-eps"], "networks": None, "network": "4g"}
    own, read = h3sim.search("davies-meenan", **race), h3sim.search(page, **race)
    assert read.best == own.best == "chrome-eps"
    assert read.gain == pytest.approx(own.gain, rel=0.01)
    assert [row.ratio for row in read.rows] == pytest.approx([row.ratio for row in own.rows], 0.01)


def test_nothing_is_advised_for_images_that_the_har_marks_as_invisible(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps", network="4g")
    found = h3sim.hints(imported(tmp_path, load.to_har()).page, n_seeds=3)
    raised = [row.edit for row in found.rows if "high" in row.edit or "preload" in row.edit]
    assert not any("hidden" in edit for edit in raised)
    assert any("hero.jpg" in edit for edit in raised)
