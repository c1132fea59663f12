"""Figures of the smaller studies, and heat maps of h3sim's own two."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from h3sim.metrics import slope
from h3sim.page.categories import size_class
from h3sim.papers.findings import Estimate, mean, median, share
from h3sim.study import simulate
from h3sim.trace import delivered_in_one_order, delivered_per_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.papers.findings import Loads
    from h3sim.results import Load


Figures = dict[str, Estimate]

_SPEED, _LOAD, _ATF = "speed_index_ms", "page_load_ms", "byte_index_atf_ms"
_EXTREMES = ("small", "large")
"""Light pages and heavy ones, by the classes of Marx 2019."""
_BROWSERS = {"rr": "edge-h2", "wrr": "safari-h2", "firefox": "firefox-h2"}
"""The schemes beside Chrome's, by their names in figures."""
_CLIENTS = {"holding": "chrome-95", "eager": "off"}
"""The tight modes of clients: one holds unimportant requests back, one holds none."""
_RESOURCES = {
    "rila": "rila_small",
    "bootstrap-css": "bootstrap.css",
    "glyphicons": "glyphicons",
    "fontawesome": "fontawesome-webfont",
}
"""Resources in Koshiba's tables, by a part of their names."""


def waterfalls(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Koshiba's waterfall: when things are there, and how first bytes wait for each other.

    "without" is without the patch: responses one after the other, in the order of requests.
    """
    found: Figures = {}
    for name, scheme in (("without", "fifo"), ("with", "chrome-50-ats")):
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
        # Exactly, and rounded once: the library's own slope differs between versions of Python.
        exact = [Fraction(row["first_byte_ms"] - row["requested_ms"]) for row in at_once]
        found[f"{name}.ttfb-slope"] = Estimate(float(slope(exact) or 0))
        found[f"{name}.download"] = Estimate(
            statistics.median(row["finished_ms"] - row["first_byte_ms"] for row in at_once)
        )
        found[f"{name}.painted-100ms"] = Estimate(*far.values("first_paint_ms"))
    for name in ("ttfb-slope", "download", "last"):
        value = found[f"with.{name}"].value / found[f"without.{name}"].value
        found[f"{name}.ratio"] = Estimate(value)
    return found


def deep_buffers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what deep buffers cost on the test page, what mends them, what buckets save."""
    at = {(row["scheme"], row["cc"], row["send_buffer_kb"]): row[_ATF] for row in loads.rows}
    chrome = at["chrome-h2", "cubic", 0]
    buckets, shared = at["cloudflare", "cubic", 0], at["edge-h2", "cubic", 0]
    return {
        "slowdown": Estimate(at["chrome-h2", "cubic", 1000] / chrome),
        "mended": Estimate(at["chrome-h2", "bbr1", 16] / at["chrome-h2", "bbr1", 0]),
        "buckets-save": Estimate(1 - buckets / shared),
        **{
            f"atf.{scheme}.{cc}.{send_buffer_kb:g}": Estimate(value)
            for (scheme, cc, send_buffer_kb), value in at.items()
        },
    }


def browsers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return how browsers' schemes over HTTP/2 do beside Chrome's, by loss and size of page.

    Figures are means over networks and clients by page; those of one client begin with its name.
    """
    sizes = {row["page"]: row["page_bytes"] for row in loads.rows}
    found: Figures = {}

    def slower(scheme: str, column: str = _SPEED, loss: float = 0.0, **where: str) -> Estimate:
        return median(_over_networks(loads.where(**where), scheme, column, loss=loss).values())

    for name, scheme in _BROWSERS.items():
        deltas = _over_networks(loads, scheme, _SPEED, loss=0.0)
        found[f"mean.{name}"] = mean(deltas.values())
        found[f"{name}.slower"] = median(deltas.values())
        found[f"{name}.load-slower"] = slower(scheme, _LOAD)
        found[f"{name}.slower-2pct"] = slower(scheme, loss=0.02)
        for size in _EXTREMES:
            chosen = [value for page, value in deltas.items() if size_class(sizes[page]) == size]
            found[f"{name}.{size}"] = median(chosen)
        for client, tight_mode in _CLIENTS.items():
            found[f"{client}.{name}.slower"] = slower(scheme, tight_mode=tight_mode)
    for network in loads.distinct("network"):
        found[f"{network}.rr.slower"] = slower(_BROWSERS["rr"], network=network)
    found["better-of-sharing"] = min(found["mean.rr"], found["mean.wrr"])
    found["worse-of-browsers"] = max(found["mean.firefox"], Estimate(0.0))
    return found


def protocols(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return how HTTP/3 does beside HTTP/2 with the same controller and the same loss."""
    small = {row["page"] for row in loads.rows if size_class(row["page_bytes"]) == "small"}
    found: Figures = {}
    for percent, loss in ((0, 0.0), (2, 0.02), (10, 0.1)):
        cubic, bbr = (loads.where(loss=loss, cc=cc) for cc in ("cubic", "bbr1"))
        quic, tcp = (
            cubic.where(scheme="sander-chrome", transport=transport)
            for transport in ("quic", "tcp")
        )
        changes = quic.deltas(tcp, _LOAD)
        found[f"all.{percent}pct"] = median(changes.values())
        found[f"small.{percent}pct"] = median(changes[page] for page in changes if page in small)
        byte_index = quic.deltas(tcp, "byte_index_all_ms")
        found[f"byte-index.{percent}pct"] = median(byte_index.values())
        shared = cubic.where(scheme="sander-rr", transport="quic")
        found[f"rr.{percent}pct"] = median(shared.deltas(quic, _SPEED).values())
        helped = bbr.where(scheme="sander-chrome", transport="tcp").deltas(tcp, _LOAD)
        found[f"bbr.{percent}pct"] = median(helped.values())
        if percent == 10:
            found["http3-gain"] = Estimate(-min(changes.values()))
            found["bbr-gain"] = Estimate(-min(helped.values()))
    return found


def one_order(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what head-of-line blocking over all streams adds to the same packets' ByteIndex.

    Every load is made again for its packets; they arrive as they did, and their bytes are handed on
    in the one order in which they were sent, as TCP would.
    """
    found: Figures = {}
    for loss, here in loads.split("loss"):
        for scheme in loads.schemes:
            added: dict[str, list[tuple[float, float]]] = {}
            for row in here.where(scheme=scheme).rows:
                options = {name: row[name] for name in ("network", "seed")}
                load = simulate(row["page"], scheme=scheme, loss=loss, **options)
                added.setdefault(row["page"], []).append(_added_by_one_order(load))
            for index, name in enumerate(("byte-index", "last")):
                means = [statistics.mean(pair[index] for pair in pairs) for pairs in added.values()]
                found[f"{100 * loss:g}pct.{scheme}.{name}"] = mean(means)
    for percent in dict.fromkeys(name.split("pct.")[0] for name in found):
        chosen = [figure for name, figure in found.items() if name.startswith(f"{percent}pct.")]
        found[f"{percent}pct.most"] = max(chosen)
    return found


def _added_by_one_order(load: Load) -> tuple[float, float]:
    """Return by how much one order raises the ByteIndex and the last completion, relatively."""
    rows = load.trace.packet_rows
    times = delivered_in_one_order(rows, delivered_per_stream(rows))
    late = replace(load, trace=replace(load.trace, packet_rows=rows.with_delivery_at(times)))
    last, late_last = (max(t.finished_ms for t in one.timings) for one in (load, late))
    return late.byte_index("all") / load.byte_index("all") - 1, late_last / last - 1


def _over_networks(loads: Loads, scheme: str, column: str, *, loss: float) -> dict[str, float]:
    """Return by page the mean over networks and clients of a column's change to Chrome's scheme."""
    changes = []
    for _, of_network in loads.where(loss=loss).split("network"):
        for _, cell in of_network.split("tight_mode"):
            base = cell.where(scheme="chrome-h2")
            changes.append(cell.where(scheme=scheme).deltas(base, column))
    return _mean_by_page(changes)


def _mean_by_page(changes: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return by page the mean of several changes."""
    by_page: dict[str, list[float]] = {}
    for change in changes:
        for page, value in change.items():
            by_page.setdefault(page, []).append(value)
    return {page: statistics.mean(values) for page, values in by_page.items()}


METRICS = {
    "byte-index": "byte_index_all_ms",
    "speed-index": "speed_index_ms",
    "hol": "hol_sander_stream_bytes",
}
"""Columns of the heat maps, by metric: ByteIndex, SpeedIndex, bytes blocked."""
TITLES = {"byte-index": "ByteIndex", "speed-index": "SpeedIndex", "hol": "bytes blocked"}
FLAG_TITLES = {"si": "SpeedIndex", "atf": "ByteIndex above the fold", "all": "ByteIndex"}
VARIANTS = ("none", "documents", "images", "all")
"""Incremental resources in the variants of chrome-eps."""
_SEQUENTIAL = "fifo"
_TINY = 0.001
"""A mean change below a thousandth is none."""
_AS_SENT = "chrome-eps"


class MapCell(NamedTuple):
    """A network of the map, and by scheme how each does relative to one after the other."""

    rate_mbps: float
    rtt_ms: float
    loss: float
    burst: float
    ratios: dict[str, Estimate]
    """By scheme, the geometric mean over pages of the metric's ratio to that of fifo."""

    @property
    def best(self) -> str:
        """The scheme with the least mean; of equal ones the first."""
        return min(self.ratios, key=lambda scheme: self.ratios[scheme].value)

    @property
    def name(self) -> str:
        """Name of the cell in figures."""
        loss = f"{100 * self.loss:g}pct" + (f"-burst{self.burst:g}" if self.burst > 1 else "")
        return f"{self.rate_mbps:g}mbps-{self.rtt_ms:g}ms-{loss}"


def cells_of(loads: Loads, metric: str) -> Iterator[MapCell]:
    """Yield the cells of the map of *metric*, in the order of the study."""
    column = METRICS[metric]
    names = ("rate_mbps", "rtt_ms", "loss", "mean_loss_burst")
    keys = dict.fromkeys(tuple(row[name] for name in names) for row in loads.rows)
    for key in keys:
        here = loads.where(**dict(zip(names, key, strict=True)))
        base = here.where(scheme=_SEQUENTIAL).medians(column)
        ratios = {}
        for scheme in here.schemes:
            ours = here.where(scheme=scheme).medians(column)
            # Figures may be 0 (bytes blocked), so one is added.
            logs = [math.log((ours[p] + 1) / (base[p] + 1)) for p in ours if p in base]
            # Means of logarithms, so that a ratio and its inverse weigh the same.
            ratios[scheme] = Estimate(*(math.exp(value or 0.0) for value in mean(logs)))
        rate, rtt, loss, burst = key
        yield MapCell(rate, rtt, loss, burst or 1.0, ratios)


def loss_map(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return which turn is best in each cell by each metric, and in how many sharing wins."""
    found: Figures = {}
    for metric in METRICS:
        cells = [*cells_of(loads, metric)]
        for cell in cells:
            for scheme, figure in cell.ratios.items():
                if scheme != _SEQUENTIAL:
                    found[f"{metric}.{cell.name}.{scheme}"] = figure
        lossy = [cell for cell in cells if cell.loss]
        found[f"shares-best.{metric}"] = Estimate(sum(c.best != _SEQUENTIAL for c in lossy))
        found[f"shares-clearly-best.{metric}"] = Estimate(sum(map(_is_clear, lossy)))
        found[f"lossy-cells.{metric}"] = Estimate(len(lossy))
    return found


def incremental(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return what the flag costs: each variant relative to what Chrome sends, by network."""
    found: Figures = {}
    columns = {"si": _SPEED, "atf": _ATF, "all": METRICS["byte-index"]}
    for scheme in loads.schemes:
        if scheme == _AS_SENT:
            continue
        variant = scheme.removeprefix("chrome-eps-")
        for name, column in columns.items():
            changes = []
            for network, here in loads.split("network"):
                changes.append(
                    here.where(scheme=scheme).deltas(here.where(scheme=_AS_SENT), column)
                )
                found[f"{variant}.{name}.{network}"] = mean(changes[-1].values())
            means = _mean_by_page(changes).values()
            found[f"{variant}.{name}"] = mean(means)
            found[f"{variant}.{name}-better"] = share(value < -0.01 for value in means)
    return found


def map_remarks(loads: Loads) -> list[str]:
    """Return in sentences where some round robin beats one response after the other."""
    sentences = []
    for metric, title in TITLES.items():
        cells = [*cells_of(loads, metric)]
        for kind, has_loss in (("without added loss", False), ("with loss", True)):
            chosen = [cell for cell in cells if bool(cell.loss) is has_loss]
            wins = sum(cell.best != _SEQUENTIAL for cell in chosen)
            clear = sum(_is_clear(cell) for cell in chosen)
            gains = [1 - min(figure.value for figure in cell.ratios.values()) for cell in chosen]
            most = max(gains, default=0.0)
            sentences.append(
                f"{title}, {kind}: some round robin has the least mean in {wins} of {len(chosen)}"
                f" networks, with an interval below 1 in {clear}; the most it gains is {most:.0%}."
            )
    return sentences


def flag_remarks(figures: Mapping[str, Estimate]) -> list[str]:
    """Return in sentences which uses of the flag are better or worse than Chrome's, and surely."""
    sentences = []
    for name, title in FLAG_TITLES.items():
        over_all = {v: figures[f"{v}.{name}"] for v in VARIANTS if f"{v}.{name}" in figures}
        better = [v for v, figure in over_all.items() if (figure.high or 0) < -_TINY]
        worse = [v for v, figure in over_all.items() if (figure.low or 0) > _TINY]
        sentences.append(
            f"{title}: of what may be incremental (all, none, documents, images), surely better"
            f" than Chrome's choice {_listed(better)}, surely worse {_listed(worse)}."
        )
    return sentences


def _listed(names: Sequence[str]) -> str:
    """Return names in words.

    >>> _listed(["none", "all"]), _listed([])
    ('are "none" and "all"', 'is no other')
    """
    if not names:
        return "is no other"
    return f"{'is' if len(names) == 1 else 'are'} " + " and ".join(f'"{name}"' for name in names)


def _is_clear(cell: MapCell) -> bool:
    """Return whether some scheme's interval lies below the sequential one's 1."""
    return any(figure.high is not None and figure.high < 1 for figure in cell.ratios.values())
