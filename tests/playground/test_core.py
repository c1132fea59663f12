"""The core under Node's Pyodide, with SimPy alone, gives what it gives here, to the last digit."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import h3sim
from playground import simulator
from tests.effort import HANG_S
from tests.recordings import entry, har

OTHERS = ("numpy", "matplotlib", "networkx", "tqdm", "pandas")
LINKS = {"rate_mbps": 2, "rtt_ms": 100, "loss": 0.02}
CASES: tuple[dict[str, Any], ...] = (
    {"transport": "quic"},
    {"transport": "tcp", "reorder": "4:1-3", "send_buffer_kb": 280},
    {"transport": "quic", "seed": 7, **LINKS},
    {"transport": "tcp", "cc": "bbr", **LINKS},
    {"transport": "qmux", **LINKS},
)


def requests() -> list[list[str]]:
    """Return calls of `simulator`: every scheme at a constant rate, some over links, and files."""
    every: list[tuple[str, dict[str, Any]]] = [(scheme.name, {}) for scheme in h3sim.list_schemes()]
    some = [(scheme, options) for scheme in ("rr", "fifo", "chrome-eps") for options in CASES]
    loads = [
        ["simulate", json.dumps({"page": "davies-meenan", "scheme": scheme, "options": options})]
        for scheme, options in (*every, *some)
    ]
    recording = har(entry("/", 0, 50, mime="text/html"), entry("/a.css", 60, 40))
    return [*loads, ["read_page", "shop.har", json.dumps(recording)], ["read_page", "x.har", "{"]]


def answer(name: str, *arguments: str) -> Any:
    return json.loads(getattr(simulator, name)(*arguments))


def test_the_core_under_pyodide_answers_as_here_and_needs_simpy_alone(
    site: Path, tmp_path: Path
) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node")
    asked = requests()
    (tmp_path / "requests.json").write_text(json.dumps(asked), encoding="utf-8")
    script = Path(__file__).with_name("core.mjs")
    done = subprocess.run(
        [node, script, site, tmp_path / "requests.json"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert reported["answers"] == [answer(*request) for request in asked]
    assert "simpy" in reported["modules"]
    assert [name for name in OTHERS if name in reported["modules"]] == []
