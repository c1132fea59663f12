"""Schedules of the code behind Marx 2019."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from validation.data import SCHEDULES

if TYPE_CHECKING:
    from pathlib import Path

CASES = json.loads(SCHEDULES.read_text("utf-8"))
KINDS = {
    "text/html": "document",
    "text/css": "stylesheet",
    "application/javascript": "script",
    "application/json": "fetch",
    "font/woff2": "font",
    "image/png": "image",
    "image/jpeg": "image",
    "video/mp4": "media",
    "text/plain": "other",
}
FLAGS = {
    "isDefer": "defer",
    "isAsync": "async",
    "inHead": "in_head",
    "isCritical": "critical",
    "isAboveTheFold": "above_the_fold",
    "isAfterFirstImage": "after_first_image",
    "isPreload": "preload",
}
TICK_MS = 10


def page_of(case: Any) -> dict[str, Any]:
    """Return the requests as a page; its first tick is at 10 ms, that of the schedules at 0."""
    resources = []
    for request in case["requests"]:
        meta = request["meta"]
        entry: dict[str, Any] = {"id": str(request["id"]), "kind": KINDS[meta["mimeType"]]}
        entry |= {"bytes": request["size"]}
        entry |= {flag: True for name, flag in FLAGS.items() if meta.get(name)}
        if request["t"]:
            entry["discovered"] = {"at": "time", "delay_ms": request["t"] + TICK_MS}
        resources.append(entry)
    return {"format": "h3sim-page/1", "name": "original", "resources": resources}


@pytest.mark.parametrize("index", range(len(CASES)))
def test_each_response_ends_at_the_tick_at_which_the_original_ends_it(
    index: Any, tmp_path: Path
) -> None:
    case = CASES[index]
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page_of(case)), "utf-8")
    load = h3sim.simulate(path, scheme=case["scheme"])
    last_ms = {str(row[2]): row[0] / 1e6 for row in load.trace.packet_rows}
    assert last_ms == {key: ms + TICK_MS for key, ms in case["finish_ms"].items()}
