"""The loads that are recorded, and what of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h3sim

RECORDED = Path(__file__).parent / "loads.json"
COMMAND = "python -m tests.golden.rewrite"

PAGES = ("davies-meenan", "http2rulez")
SCHEMES = ("rr", "p+", "bucket-html", "zeroweight")
SETTINGS = {
    "quic": {"transport": "quic"},
    "tcp, jitter, seed 1": {"transport": "tcp", "reorder": "4:1-3", "seed": 1},
}


def compute() -> dict[Any, Any]:
    """Return the document: by the name of each cell, what its load comes to."""
    return {
        f"{page}, {scheme}, {name}": _summary(h3sim.simulate(page, scheme=scheme, **setting))  # type: ignore[arg-type]
        for page in PAGES
        for scheme in SCHEMES
        for name, setting in SETTINGS.items()
    }


def text_of(document: Any) -> Any:
    """Return *document* as the file has it: a line for each figure of a cell."""
    cells = [
        f" {json.dumps(name)}: {{\n"
        + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in cell.items())
        + "\n }"
        for name, cell in document.items()
    ]
    return "{\n" + ",\n".join(cells) + "\n}\n"


def _summary(load: Any) -> dict[str, Any]:
    """Figures are quotients of integers, rounded once, and so the same on every machine."""
    return {
        "digest": load.trace.digest(),
        "byte_index_ms": {
            which: [load.byte_index(which, sample_ms=100), load.byte_index(which)]
            for which in ("all", "atf")
        },
        "lower_bound_ms": load.lower_bound(),
        "hol": load.to_dict()["hol"],
        "finished_ms": {row.id: row.finished_ms for row in load.timings},
    }
