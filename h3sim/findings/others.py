"""The figures of the smaller studies: Koshiba, Meenan, Wijnants, HTTP/2 beside HTTP/3."""

from __future__ import annotations

import statistics
from fractions import Fraction
from typing import TYPE_CHECKING

from h3sim.findings.intervals import mean, median
from h3sim.findings.model import Estimate
from h3sim.metrics import slope
from h3sim.page.classes import size_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from h3sim.findings.loads import Loads

__all__ = ["browsers", "deep_buffers", "protocols", "waterfalls"]

Figures = dict[str, Estimate]

_SPEED, _LOAD, _ATF = "speed_index_ms", "page_load_ms", "byte_index_atf_ms"
_EXTREMES = ("small", "large")
"""Light pages and heavy ones, by the classes of Marx 2019."""
_RESOURCES = {
    "rila": "rila_small",
    "bootstrap-css": "bootstrap.css",
    "glyphicons": "glyphicons",
    "fontawesome": "fontawesome-webfont",
}
"""What Koshiba's tables are read for: by which part of a name resources are found."""


def waterfalls(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Koshiba's waterfall: when things are there, and how first bytes wait for each other.

    "without" is without the patch: responses one after the other, in the order of requests.
    """
    found: Figures = {}
    for name, scheme in (("without", "fifo"), ("with", "ats")):
        near = loads.where(scheme=scheme, rtt_ms=2)
        far = loads.where(scheme=scheme, rtt_ms=100)
        rows = near.resources
        for what, part in _RESOURCES.items():
            found[f"{name}.{what}"] = Estimate(
                next(row["finished_ms"] for row in rows if part in row["id"])
            )
        found[f"{name}.last"] = Estimate(max(row["finished_ms"] for row in rows))
        # Without the document, which is asked for alone, and fonts, which styles ask for later.
        at_once = [row for row in rows if row["kind"] != "font"][1:]
        found[f"{name}.ttfb-slope"] = Estimate(
            _slope([row["first_byte_ms"] - row["requested_ms"] for row in at_once])
        )
        found[f"{name}.download"] = Estimate(
            statistics.median(row["finished_ms"] - row["first_byte_ms"] for row in at_once)
        )
        found[f"{name}.painted-100ms"] = Estimate(
            max(row["finished_ms"] for row in far.resources if row["kind"] == "stylesheet")
        )
    for ratio, figure in (
        ("ttfb-slope", "ttfb-slope"),
        ("download", "download"),
        ("last", "last"),
    ):
        value = found[f"with.{figure}"].value / found[f"without.{figure}"].value
        found[f"{ratio}.ratio"] = Estimate(value)
    return found


def deep_buffers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what deep buffers cost on the test page, what mends them, what buckets save."""
    at = {(row["scheme"], row["cc"], row["send_buffer_kb"]): row[_ATF] for row in loads.rows}
    chrome = at["chrome-h2", "cubic", 0]
    buckets, shared = at["cloudflare", "cubic", 0], at["edge-h2", "cubic", 0]
    return {
        "slowdown": Estimate(at["chrome-h2", "cubic", 1000] / chrome),
        "mended": Estimate(at["chrome-h2", "bbr", 16] / at["chrome-h2", "bbr", 0]),
        "buckets-save": Estimate(1 - buckets / shared),
        **{
            f"atf.{scheme}.{cc}.{send_buffer_kb:g}": Estimate(value)
            for (scheme, cc, send_buffer_kb), value in at.items()
        },
    }


def browsers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return how browsers' schemes over HTTP/2 do beside Chrome's, by loss and size of page."""
    sizes = {row["page"]: row["page_bytes"] for row in loads.rows}
    found: Figures = {}
    by_scheme = {}
    for name, scheme in (("rr", "edge-h2"), ("wrr", "safari-h2"), ("firefox", "firefox-h2")):
        deltas = _over_networks(loads, scheme, loss=0.0)
        by_scheme[name] = mean([*deltas.values()])
        found[f"mean.{name}"] = by_scheme[name]
        found[f"{name}.slower"] = median([*deltas.values()])
        lossy = _over_networks(loads, scheme, loss=0.02)
        found[f"{name}.slower-2pct"] = median([*lossy.values()])
        for size in _EXTREMES:
            chosen = [value for page, value in deltas.items() if size_class(sizes[page]) == size]
            found[f"{name}.{size}"] = median(chosen)
    found["better-of-sharing"] = min(by_scheme["rr"], by_scheme["wrr"])
    found["worse-of-browsers"] = max(by_scheme["firefox"], Estimate(0.0))
    return found


def protocols(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return how HTTP/3 does beside HTTP/2 with the same controller and the same loss."""
    small = {row["page"] for row in loads.rows if size_class(row["page_bytes"]) == "small"}
    found: Figures = {}
    for percent, loss in ((0, 0.0), (2, 0.02), (10, 0.1)):
        here = loads.where(loss=loss)
        cubic = here.where(cc="cubic", scheme="sander-chrome")
        quic, tcp = cubic.where(transport="quic"), cubic.where(transport="tcp")
        changes = quic.deltas(tcp, _LOAD)
        found[f"all.{percent}pct"] = median([*changes.values()])
        found[f"small.{percent}pct"] = median([changes[p] for p in changes if p in small])
        found[f"byte-index.{percent}pct"] = median(
            [*quic.deltas(tcp, "byte_index_all_ms").values()]
        )
        shared = here.where(cc="cubic", scheme="sander-rr", transport="quic")
        found[f"rr.{percent}pct"] = median([*shared.deltas(quic, _SPEED).values()])
        bbr = here.where(cc="bbr", scheme="sander-chrome", transport="tcp")
        helped = bbr.deltas(tcp, _LOAD)
        found[f"bbr.{percent}pct"] = median([*helped.values()])
        if percent == 10:
            found["http3-gain"] = Estimate(-min(changes.values()))
            found["bbr-gain"] = Estimate(-min(helped.values()))
    return found


def _over_networks(loads: Loads, scheme: str, *, loss: float) -> dict[str, float]:
    """Return by page the mean over networks of the change of SpeedIndex to Chrome's."""
    changes: dict[str, list[float]] = {}
    here = loads.where(loss=loss)
    for network in dict.fromkeys(row["network"] for row in here.rows):
        cell = here.where(network=network)
        base = cell.where(scheme="chrome-h2")
        for page, value in cell.where(scheme=scheme).deltas(base, _SPEED).items():
            changes.setdefault(page, []).append(value)
    return {page: statistics.mean(values) for page, values in changes.items()}


def _slope(values: Sequence[Any]) -> float:
    """Return by how much values rise from one to the next: the least-squares line's slope."""
    # Exactly, and rounded once: the library's own differs between versions of Python.
    exact: list[int | Fraction] = [Fraction(value) for value in values]
    return float(slope(exact) or 0)
