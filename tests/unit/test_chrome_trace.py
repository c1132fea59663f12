"""Loads as Chrome traces: the format, what the tracks show, and that h3sim's reader agrees."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import h3sim
from h3sim.cli import main
from h3sim.importers import import_page
from h3sim.page import Host
from h3sim.values.units import ms
from tests.helpers import page_of
from tests.recordings import write_recording

if TYPE_CHECKING:
    from pathlib import Path

_ARGS = {"args": {"type": "object"}}
_TRACK = {"pid": {"type": "integer", "minimum": 0}, "tid": {"type": "integer", "minimum": 0}}
_TIME = {"type": "number", "minimum": 0}
_TEXT = {"type": "string", "minLength": 1}


def _kind(letter: str, required: str, **properties: Any) -> dict[str, Any]:
    known = {"ph": {"const": letter}, "name": _TEXT, "ts": _TIME, **_TRACK, **_ARGS, **properties}
    needed = ["ph", "name", "pid", "args", *required.split()]
    return {"properties": known, "required": needed, "additionalProperties": False}


SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "metadata": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "oneOf": [
                    _kind("X", "ts dur tid cat", dur=_TIME, cat=_TEXT),
                    _kind("I", "ts tid s cat", s={"enum": ["t", "p", "g"]}, cat=_TEXT),
                    _kind("C", "ts")
                    | {"properties": {**_kind("C", "ts")["properties"], "args": {
                        "type": "object", "additionalProperties": {"type": "number"}}}},
                    _kind("M", "", name={"enum": [
                        "process_name", "process_sort_index", "thread_name", "thread_sort_index"]}),
                ],
            },
        },
    },
}  # fmt: skip
"""The "Trace Event Format" of Chrome, as far as loads use it."""

ROOT = {"id": "index.html", "kind": "document", "mime": "text/html", "bytes": 28000}
CHILD = {"by": "index.html", "at": "offset", "offset_bytes": 1400}
PAGE = page_of(
    ROOT | {"header_bytes": 90},
    {"id": "a.js", "kind": "script", "mime": "text/javascript", "bytes": 14000}
    | {"header_bytes": 100, "execute_ms": 20, "discovered": CHILD},
    {"id": "b.png", "kind": "image", "mime": "image/png", "bytes": 30000, "header_bytes": 80}
    | {"hero": True, "above_the_fold": True, "discovered": {"by": "a.js", "at": "executed"}},
    name="shop",
)
LOAD = h3sim.simulate(
    PAGE, scheme="chrome-eps", network="cable", loss=0.05, browser="parse", record_packets=True,
    seed=3,
)  # fmt: skip


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["name"] == name]


@pytest.fixture(scope="module", name="events")
def _events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = LOAD.to_chrome_trace()["traceEvents"]
    return found


def test_a_trace_has_the_documented_format() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    trace = LOAD.to_chrome_trace()
    assert list(validator.iter_errors(json.loads(json.dumps(trace, allow_nan=False)))) == []
    del named(trace["traceEvents"], "wait")[0]["dur"]
    assert list(validator.iter_errors(trace))


def test_slices_of_a_track_nest(events: list[dict[str, Any]]) -> None:
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            span = event["ts"], event["ts"] + event["dur"]
            tracks.setdefault((event["pid"], event["tid"]), []).append(span)
    assert len(tracks) > 3
    for spans in tracks.values():
        for start, end in spans:
            for other_start, other_end in spans:
                overlaps = start < other_start < end - 1e-6
                assert not overlaps or other_end <= end + 1e-6


def test_each_stream_has_a_track_with_its_times(events: list[dict[str, Any]]) -> None:
    tracks = {
        event["args"]["name"]: event["tid"]
        for event in named(events, "thread_name")
        if event["pid"] == 2
    }
    assert [*tracks] == ["transport", *(
        f"stream {row.stream_id}: {row.id}" for row in LOAD.timings)]  # fmt: skip
    for row in LOAD.timings:
        (complete,) = named(events, row.id)
        assert complete["tid"] == tracks[f"stream {row.stream_id}: {row.id}"]
        assert complete["ts"] == pytest.approx(1000 * row.requested_ms)
        assert complete["ts"] + complete["dur"] == pytest.approx(1000 * row.finished_ms)
        parts = [e for name in ("wait", "receive") for e in named(events, name)
                 if e["tid"] == complete["tid"]]  # fmt: skip
        assert parts[1]["ts"] == pytest.approx(1000 * row.first_byte_ms)
        assert sum(part["dur"] for part in parts) == pytest.approx(complete["dur"])


def test_counters_and_losses_are_those_of_the_connection(events: list[dict[str, Any]]) -> None:
    (connection,) = LOAD.connections
    windows = [event["args"]["bytes"] for event in named(events, "congestion window (bytes)")]
    assert windows == [row.congestion_window for row in connection.trace.recovery]
    n_lost = sum(row.arrived_at_ns is None for row in LOAD.trace.packets)
    assert n_lost > 0
    assert len(named(events, "lost on the way")) == n_lost
    held = [event["args"]["bytes"] for event in named(events, "held back (bytes)")]
    assert max(held) > 0
    assert (min(held), held[-1]) == (0, 0)


def test_milestones_and_tasks_are_on_the_main_thread(events: list[dict[str, Any]]) -> None:
    for name, at_ms in (
        ("firstPaint", LOAD.first_paint_ms),
        ("MarkLoad", LOAD.load_event_ms),
        ("MarkDOMContent", LOAD.dom_content_loaded_ms),
        ("largestContentfulPaint::Candidate", LOAD.largest_paint_ms),
    ):
        (event,) = named(events, name)
        assert at_ms is not None
        assert (event["pid"], event["tid"]) == (1, 1)
        assert event["ts"] == pytest.approx(1000 * at_ms)
    (run,) = named(events, "execute a.js")
    assert run["dur"] == pytest.approx(20_000)


def test_the_page_of_a_trace_is_the_page_that_was_loaded(tmp_path: Path) -> None:
    page = import_page(write_recording(tmp_path, LOAD.to_chrome_trace())).page
    for given, read in zip(PAGE.resources, page.resources, strict=True):
        assert (read.id, read.kind, read.mime) == (given.id, given.kind, given.mime)
        assert (read.size_bytes, read.header_bytes) == (given.size_bytes, given.header_bytes)
        parents = [each.discovered and each.discovered.by for each in (given, read)]
        assert parents[0] == parents[1]
    assert page.recorded_load is not None
    assert page.recorded_load.protocol == "h3"


def test_every_connection_is_a_process() -> None:
    image = {"id": "x.png", "kind": "image", "bytes": 900, "host": "cdn", "discovered": CHILD}
    page = replace(page_of(ROOT, image), hosts=(Host(name="cdn", dns_ns=ms(12)),))
    load = h3sim.simulate(page, network="cable", connections="per-host")
    events = load.to_chrome_trace()["traceEvents"]
    names = [event["args"]["name"] for event in named(events, "process_name")]
    assert names == ["page page", "connection 1: (page)", "connection 2: cdn"]
    (lookup,) = named(events, "DNS cdn")
    assert (lookup["pid"], lookup["dur"]) == (3, 12_000)


def test_the_command_writes_the_same_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "load.json"
    arguments = ["davies-meenan", "--scheme", "fifo", "--network", "cable", "--trace", str(path)]
    assert main(["run", *arguments]) == 0
    load = h3sim.simulate("davies-meenan", scheme="fifo", network="cable", record_packets=True)
    assert json.loads(path.read_text("utf-8")) == load.to_chrome_trace()
    assert main(["run", *arguments[:-1], str(tmp_path / "load.txt")]) == 2
    assert "--trace: " in capsys.readouterr().err
