"""One tiny recording in each dialect, each with the whole page that comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.importers import DIALECTS, import_page
from tests.recordings import SAMPLES, imported, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

SIZES = {"bytes": 1000, "header_bytes": 100, "request_bytes": 300}
BLOCKING = {"in_head": True, "render_blocking": True}
ROOT = {"kind": "document", "mime": "text/html", **SIZES}
SCRIPT = {"kind": "script", "mime": "text/javascript", **SIZES}
FETCH = {"kind": "fetch", "mime": "application/json", **SIZES}
HALF_OF_THE_PAGE = {"by": "/", "at": "offset", "offset_bytes": 500}
"""Asked for at 90 ms, of a page that came from 80 to 100 ms."""
AFTER_THE_SCRIPT = {"by": "app.js", "at": "executed", "delay_ms": 20.0}
TRACED = {"bytes": 1000, "header_bytes": 150, "response_offsets": [0, 400]}
IN_TWO_FIFTHS = {"by": "/", "at": "offset", "offset_bytes": 400}
AFTER_EXECUTION = {"by": "app.js", "at": "executed"}
PAGES: dict[str, dict[str, dict[str, Any]]] = {
    "har": {
        "/": ROOT,
        "main.css": {"kind": "stylesheet", "mime": "text/css", **SIZES, **BLOCKING}
        | {"discovered": HALF_OF_THE_PAGE},
        "t.woff2": {"kind": "font", "mime": "font/woff2", **SIZES}
        | {"discovered": {"by": "main.css", "at": "complete", "delay_ms": 20.0}},
    },
    "har-devtools": {
        "/": ROOT,
        "app.js": SCRIPT | BLOCKING | {"discovered": HALF_OF_THE_PAGE},
        "api": FETCH | {"discovered": AFTER_THE_SCRIPT},
    },
    "har-chrome-har": {
        "/": ROOT | {"response_offsets": [0, 600]},
        "app.js": SCRIPT
        | {"async": True}
        | {"discovered": {"by": "/", "at": "offset", "offset_bytes": 600, "delay_ms": 5.0}},
        "api": FETCH | {"discovered": AFTER_THE_SCRIPT},
    },
    "har-webpagetest": {
        "/": ROOT | {"bytes": 900},
        "a.png": {"kind": "image", "mime": "image/png", **SIZES, "bytes": 600}
        | {"discovered": HALF_OF_THE_PAGE | {"offset_bytes": 450}},
    },
    "har-firefox": {
        "/": ROOT,
        "a.png": {"kind": "image", "mime": "image/png", **SIZES, "discovered": HALF_OF_THE_PAGE},
    },
    "har-playwright": {
        "/": ROOT,
        "a.js": SCRIPT | BLOCKING | {"bytes": 700, "discovered": HALF_OF_THE_PAGE},
    },
    # Without sizes: the decoded size, and Content-Length; headers as long as the text of HTTP/1.1.
    "har-http1": {
        "/": ROOT | {"bytes": 2000, "header_bytes": 16 + len("set-cookie: id=SECRET\r\n")},
        "a.gif": {"kind": "image", "mime": "image/gif", "bytes": 77}
        | {"header_bytes": 16 + len("content-length: 77\r\n"), "request_bytes": 300}
        | {"discovered": {"by": "/", "at": "complete", "delay_ms": 20.0}},
    },
    "devtools-log": {
        "/": ROOT | {"header_bytes": 150, "request_bytes": 43, "response_offsets": [0, 400]},
        "app.js": SCRIPT
        | BLOCKING
        | {"header_bytes": 150, "request_bytes": 49, "response_offsets": [0, 400]}
        | {"discovered": {"by": "/", "at": "offset", "offset_bytes": 400, "delay_ms": 10.0}},
        "api": FETCH
        | {"header_bytes": 150, "request_bytes": 46, "response_offsets": [0, 400]}
        | {"discovered": AFTER_THE_SCRIPT | {"delay_ms": 60.0}},
    },
    "chrome-trace": {
        "/": TRACED | {"kind": "document", "mime": "text/html"},
        "app.js": TRACED
        | {"kind": "script", "mime": "text/javascript", **BLOCKING}
        | {"parse_ms": 5.0, "execute_ms": 55.0, "discovered": IN_TWO_FIFTHS},
        "api": TRACED
        | {"kind": "fetch", "mime": "application/json", "discovered": AFTER_EXECUTION},
    },
    # Headers as long as the text of HTTP/1.1.
    "net-log": {
        "/": ROOT | {"header_bytes": 64, "request_bytes": 46, "response_offsets": [0, 400]},
        "app.js": SCRIPT
        | BLOCKING
        | {"header_bytes": 70, "request_bytes": 108, "response_offsets": [0, 400]}
        | {"discovered": IN_TWO_FIFTHS | {"delay_ms": 10.0}},
        "api": FETCH
        | {"header_bytes": 71, "request_bytes": 72, "response_offsets": [0, 400]}
        | {"discovered": AFTER_EXECUTION | {"delay_ms": 60.0}},
    },
    "webpagetest": {
        "/": ROOT | {"header_bytes": 150, "request_bytes": 63},
        "app.js": SCRIPT
        | BLOCKING
        | {"header_bytes": 150, "request_bytes": 69, "parse_ms": 5.0, "execute_ms": 55.0}
        | {"discovered": HALF_OF_THE_PAGE},
        "api": FETCH | {"header_bytes": 150, "request_bytes": 66, "discovered": AFTER_EXECUTION},
    },
    "lighthouse": {
        "/": {"kind": "document", "mime": "text/html", "bytes": 1000},
        "app.js": {"kind": "script", "mime": "text/javascript", "bytes": 1000, **BLOCKING}
        | {"discovered": {"by": "/", "at": "complete"}},
        "api": {"kind": "fetch", "mime": "application/json", "bytes": 1000}
        | {"discovered": AFTER_EXECUTION | {"delay_ms": 60.0}},
    },
}

LEVELS = {
    "har-devtools": "VeryHigh High High",
    "har-chrome-har": "VeryHigh Low High",
    "har-webpagetest": "VeryHigh Low",
    "devtools-log": "High High High",
    "chrome-trace": "High High High",
    "webpagetest": "High High High",
    "lighthouse": "High High High",
    "net-log": "High High High",
}
"""What Chrome said of each resource, where the sample has it."""
for name, levels in LEVELS.items():
    PAGES[name] = {
        id_: entry | {"recorded": [{"browser": "chrome", "level": level}]}
        for (id_, entry), level in zip(PAGES[name].items(), levels.split(), strict=True)
    }


def test_every_dialect_has_a_sample() -> None:
    assert {*SAMPLES, "site"} == set(DIALECTS)


@pytest.mark.parametrize("dialect", SAMPLES)
def test_a_recording_is_told_by_itself_and_becomes_this_page(tmp_path: Path, dialect: str) -> None:
    path = write_recording(tmp_path, SAMPLES[dialect])
    assert import_page(path).dialect == dialect
    assert resources_of(tmp_path, SAMPLES[dialect]) == PAGES[dialect]
    assert resources_of(tmp_path, SAMPLES[dialect], dialect=dialect) == PAGES[dialect]


def test_one_load_has_one_graph_in_every_format(tmp_path: Path) -> None:
    names = ("har-devtools", "devtools-log", "chrome-trace", "webpagetest", "lighthouse", "net-log")
    graphs = []
    for name in names:
        resources = resources_of(tmp_path, SAMPLES[name])
        parents = {id_: each.get("discovered", {}).get("by") for id_, each in resources.items()}
        graphs.append({id_: (each["bytes"], parents[id_]) for id_, each in resources.items()})
    assert graphs == [{"/": (1000, None), "app.js": (1000, "/"), "api": (1000, "app.js")}] * 6


def test_the_head_of_a_page_says_where_it_comes_from(tmp_path: Path) -> None:
    document = imported(tmp_path, SAMPLES["har-devtools"])
    del document["resources"]
    assert document == {
        "format": "h3sim-page/1",
        "name": "shop.example",
        "url": "https://shop.example/",
        "provenance": {
            "source": "recording.har",
            "recorded": "2026-03-04",
            "tool": "WebInspector 1",
            "hosts": "1",
            "dialect": "har-devtools",
        },
        "above_the_fold_from": "heuristic",
        "recorded_load": {
            "finished_ms": 230.0,
            "completed_ms": {"/": 100.0, "app.js": 150.0, "api": 230.0},
            "n_bytes": 3300,
        },
    }


def test_the_report_counts_what_was_found_and_what_was_inferred(tmp_path: Path) -> None:
    report = import_page(write_recording(tmp_path, SAMPLES["har"])).to_dict()
    assert report == {
        "format": "h3sim-import/1",
        "version": h3sim.__version__,
        "page": "shop.example",
        "dialect": "har",
        "resources": 3,
        "bytes": 3000,
        "found": {"requests": 3, "hosts": 1, "Referers": 2, "body sizes": 3},
        "inferred": {
            "kind from the media type": 3,
            "parent from Referer": 2,
            "trigger from the clock": 1,
            "in head, blocking from the order of requests": 1,
            "trigger from the kind of the parent": 1,
            "above the fold by heuristic": 3,
        },
        "left_out": {},
        "missing": ["what is critical or the hero", "server think times of 3"],
        "skipped": [],
    }


@pytest.mark.parametrize("name", ["devtools-log"])
def test_a_dialect_that_is_insisted_on_is_refused_elsewhere(tmp_path: Path, name: str) -> None:
    path = write_recording(tmp_path, SAMPLES["har"])
    with pytest.raises(ValueError, match=f"is HAR, not {name}"):
        import_page(path, dialect=name)


def test_a_log_may_have_an_event_a_line(tmp_path: Path) -> None:
    import json

    lines = "\n".join(json.dumps(event) for event in SAMPLES["devtools-log"])
    assert resources_of(tmp_path, lines) == PAGES["devtools-log"]
