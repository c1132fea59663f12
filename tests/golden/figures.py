"""The data of figures, not their pixels: those change with every version of matplotlib."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import h3sim
from h3sim.reporting import (
    LoadPlots,
    alt_text,
    lane_layout,
    qlog_plots,
    time_series,
    trees,
    waterfall,
)
from h3sim.reporting.animation import scene_of
from h3sim.reporting.labels import Palette
from h3sim.reporting.page_plots import kinds_of

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).parent / "figures.json"
PAGES = ("davies-meenan", "http2rulez", "dijit-bidi-inheritance")
_END_MS = 6000.0
_SHOWN = 12
"""So many rows of each figure are recorded, and how many there are."""


def compute() -> dict[str, Any]:
    """Return the data of each figure of a load with losses, by page, and of many loads in words."""
    return {name: _of_page(name) for name in PAGES} | {"many loads": _of_many()}


def text_of(data: dict[str, Any]) -> str:
    """Return *data* as it stands in the record."""
    return json.dumps(data, indent=1) + "\n"


def _of_page(name: str) -> dict[str, Any]:
    load = partial(h3sim.simulate, name, network="sander-2mbps-100ms-2pct", record_packets=True)
    first, second = load(scheme="rr"), load(scheme="chrome-eps")
    trace, tree = first.trace, load(scheme="firefox")
    lane = lane_layout.lane_of(first, _END_MS)
    return {
        "byte ranges": _rows(time_series.ranges_of(trace)),
        "streams": time_series.shown_streams(trace),
        "congestion": _rows(time_series.samples_of(trace)),
        "throughput": _rows(time_series.bins_of(trace, _END_MS)),
        "deltas": _rows(waterfall.deltas_of(first, second)),
        "dependencies": _rows(trees.nodes_of(first.page, trees.chain_of(first))),
        "priorities": _rows(trees.elements_of(second, trees.busiest_ns(second))),
        "tree": _rows(trees.elements_of(tree, trees.busiest_ns(tree))),
        "kinds": _rows((row.kind.value, *row[1:]) for row in kinds_of(first.page)),
        "animation": _rows(scene_of(first).flights),
        "losses": _rows(scene_of(first).losses),
        "chain": trees.chain_of(first),
        "strip": _rows(lane.drawn),
        "lost and again": _rows([lane.lost_ms[:_SHOWN], lane.again_ms[:_SHOWN]]),
        "byte index": _rows(zip(*time_series.curve(first, "all"), strict=True)),
        "log": _rows(zip(*qlog_plots.delivered_curve(trace), strict=True)),
        "words": LoadPlots([first]).alt_text(),
        "waterfall": _rows(
            (row.label, *row[2:6], row.chunks[:3], row.held[:3])
            for row in waterfall.rows_of(second, Palette(second.page))
        ),
    }


def _of_many() -> dict[str, str]:
    """Return what each figure of a small study, and of regrets, says of its numbers."""
    pages, schemes = PAGES[:2], ("rr", "fifo", "bucket-html")
    plot = h3sim.sweep(
        pages, schemes=schemes, send_buffer_kb=[0, 280], reorder="4:1-3", seeds=2, executor="serial"
    ).plot
    regret = h3sim.optimality(pages, schemes=schemes).plot
    pool = ["send_buffer_kb"]
    drawn = {
        **{name: getattr(plot, name)(pool=pool) for name in ("cdf", "scatter", "ranks", "forest")},
        "buffers": plot.buffers(),
        "lines": plot.lines("send_buffer_kb"),
        "heat": plot.heat("scheme", "page", pool=pool),
        "correlations": plot.correlations("byte_index_all_ms", "byte_index_atf_ms"),
        "regret": regret.schemes(),
        "classes": regret.classes("size"),
    }
    return {name: alt_text(ax) for name, ax in drawn.items()}


def _rows(rows: Any) -> dict[str, Any]:
    listed = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return {"rows": len(listed), "first": listed[:_SHOWN], "last": listed[-1]}
