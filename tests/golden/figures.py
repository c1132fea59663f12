"""The data of figures, not their pixels: those change with every version of matplotlib."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import h3sim
from h3sim.plots import (
    byte_ranges,
    congestion,
    deltas,
    dependencies,
    priority_state,
    throughput,
    waterfall,
)
from h3sim.plots.animation import scene_of
from h3sim.plots.page_plots import kinds_of
from h3sim.plots.palette import Palette

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).parent / "figures.json"
PAGES = ("davies-meenan", "http2rulez", "dijit-bidi-inheritance")
_END_MS = 6000.0
_SHOWN = 12
"""So many rows of each figure are recorded, and how many there are."""


def compute() -> dict[str, Any]:
    """Return the data of each figure of a load with losses, by page."""
    return {name: _of_page(name) for name in PAGES}


def text_of(data: dict[str, Any]) -> str:
    """Return *data* as it stands in the record."""
    return json.dumps(data, indent=1) + "\n"


def _of_page(name: str) -> dict[str, Any]:
    load = partial(h3sim.simulate, name, network="sander-2mbps-100ms-2pct", records_wire=True)
    first, second = load(scheme="rr"), load(scheme="chrome-eps")
    trace, tree = first.trace, load(scheme="firefox")
    return {
        "byte ranges": _rows(byte_ranges.ranges_of(trace)),
        "streams": byte_ranges.shown_streams(trace),
        "congestion": _rows(congestion.samples_of(trace)),
        "throughput": _rows(throughput.bins_of(trace, _END_MS)),
        "deltas": _rows(deltas.deltas_of(first, second)),
        "dependencies": _rows(dependencies.nodes_of(first.page, dependencies.chain_of(first))),
        "priorities": _rows(priority_state.elements_of(second, priority_state.busiest_ns(second))),
        "tree": _rows(priority_state.elements_of(tree, priority_state.busiest_ns(tree))),
        "kinds": _rows((row.kind.value, *row[1:]) for row in kinds_of(first.page)),
        "animation": _rows(scene_of(first).flights),
        "losses": _rows(scene_of(first).losses),
        "chain": dependencies.chain_of(first),
        "waterfall": _rows(
            (row.label, *row[2:5], row.chunks[:3])
            for row in waterfall.rows_of(second, Palette(second.page))
        ),
    }


def _rows(rows: Any) -> dict[str, Any]:
    listed = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return {"rows": len(listed), "first": listed[:_SHOWN], "last": listed[-1]}
