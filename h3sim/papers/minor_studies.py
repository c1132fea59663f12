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

_SPEED_INDEX, _LOAD_TIME, _ATF = "speed_index_ms", "page_load_ms", "byte_index_atf_ms"
_EXTREME_SIZES = ("small", "large")
"""Classes of pages that are compared, as in Marx 2019."""
_BROWSER_SCHEMES = {"rr": "edge-h2", "wrr": "safari-h2", "firefox": "firefox-h2"}
"""Schemes that are compared with Chrome's, by their names in figures."""
_TIGHT_MODES = {"holding": "chrome-95", "eager": "off"}
"""Tight modes of clients, one of which delays unimportant requests, by their names in figures."""
_RESOURCE_NAMES = {
    "rila": "rila_small",
    "bootstrap-css": "bootstrap.css",
    "glyphicons": "glyphicons",
    "fontawesome": "fontawesome-webfont",
}
"""Resources in Koshiba's tables, by a part of their names."""


def waterfalls(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the figures of Koshiba's waterfall: completions, and the slope of first bytes.

    Figures "without" the patch are of responses one after the other, in the order of requests.
    """
    figures: Figures = {}
    for name, scheme in (("without", "fifo"), ("with", "chrome-50-ats")):
        near = loads.where(scheme=scheme, rtt_ms=2)
        far = loads.where(scheme=scheme, rtt_ms=100)
        rows = near.resources
        for resource, part in _RESOURCE_NAMES.items():
            figures[f"{name}.{resource}"] = Estimate(
                next(row["finished_ms"] for row in rows if part in row["id"])
            )
        figures[f"{name}.last"] = Estimate(max(row["finished_ms"] for row in rows))
        # The document is requested alone, and fonts later, by the styles.
        _document, *at_once = [row for row in rows if row["kind"] != "font"]
        # With fractions, as the standard library's slope differs between versions of Python.
        exact_ms = [Fraction(row["first_byte_ms"] - row["requested_ms"]) for row in at_once]
        figures[f"{name}.ttfb-slope"] = Estimate(float(slope(exact_ms) or 0))
        figures[f"{name}.download"] = Estimate(
            statistics.median(row["finished_ms"] - row["first_byte_ms"] for row in at_once)
        )
        figures[f"{name}.painted-100ms"] = Estimate(*far.values("first_paint_ms"))
    for name in ("ttfb-slope", "download", "last"):
        value = figures[f"with.{name}"].value / figures[f"without.{name}"].value
        figures[f"{name}.ratio"] = Estimate(value)
    return figures


def deep_buffers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return ByteIndexes of the test page, and ratios: of deep buffers, BBR, and buckets."""
    atf_ms = {(row["scheme"], row["cc"], row["send_buffer_kb"]): row[_ATF] for row in loads.rows}
    chrome_ms = atf_ms["chrome-h2", "cubic", 0]
    buckets_ms, shared_ms = atf_ms["cloudflare", "cubic", 0], atf_ms["edge-h2", "cubic", 0]
    return {
        "slowdown": Estimate(atf_ms["chrome-h2", "cubic", 1000] / chrome_ms),
        "mended": Estimate(atf_ms["chrome-h2", "bbr1", 16] / atf_ms["chrome-h2", "bbr1", 0]),
        "buckets-save": Estimate(1 - buckets_ms / shared_ms),
        **{
            f"atf.{scheme}.{cc}.{send_buffer_kb:g}": Estimate(value)
            for (scheme, cc, send_buffer_kb), value in atf_ms.items()
        },
    }


def browsers(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return changes of browsers' schemes over HTTP/2, relative to Chrome's, by loss and size.

    They are means over networks and clients by page; names of figures of one client begin with it.
    """
    sizes = {row["page"]: row["page_bytes"] for row in loads.rows}
    figures: Figures = {}

    def slowdown(
        scheme: str, column: str = _SPEED_INDEX, loss: float = 0.0, **where: str
    ) -> Estimate:
        return median(_over_networks(loads.where(**where), scheme, column, loss=loss).values())

    for name, scheme in _BROWSER_SCHEMES.items():
        deltas = _over_networks(loads, scheme, _SPEED_INDEX, loss=0.0)
        figures[f"mean.{name}"] = mean(deltas.values())
        figures[f"{name}.slower"] = median(deltas.values())
        figures[f"{name}.load-slower"] = slowdown(scheme, _LOAD_TIME)
        figures[f"{name}.slower-2pct"] = slowdown(scheme, loss=0.02)
        for size in _EXTREME_SIZES:
            of_size = [value for page, value in deltas.items() if size_class(sizes[page]) == size]
            figures[f"{name}.{size}"] = median(of_size)
        for client, tight_mode in _TIGHT_MODES.items():
            figures[f"{client}.{name}.slower"] = slowdown(scheme, tight_mode=tight_mode)
    for network in loads.distinct("network"):
        figures[f"{network}.rr.slower"] = slowdown(_BROWSER_SCHEMES["rr"], network=network)
    figures["better-of-sharing"] = min(figures["mean.rr"], figures["mean.wrr"])
    figures["worse-of-browsers"] = max(figures["mean.firefox"], Estimate(0.0))
    return figures


def protocols(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return changes with HTTP/3, relative to HTTP/2 with the same controller and loss."""
    small = {row["page"] for row in loads.rows if size_class(row["page_bytes"]) == "small"}
    figures: Figures = {}
    for percent, loss in ((0, 0.0), (2, 0.02), (10, 0.1)):
        cubic, bbr = (loads.where(loss=loss, cc=cc) for cc in ("cubic", "bbr1"))
        quic, tcp = (
            cubic.where(scheme="sander-chrome", transport=transport)
            for transport in ("quic", "tcp")
        )
        changes = quic.deltas(tcp, _LOAD_TIME)
        figures[f"all.{percent}pct"] = median(changes.values())
        figures[f"small.{percent}pct"] = median(changes[page] for page in changes if page in small)
        byte_index = quic.deltas(tcp, "byte_index_all_ms")
        figures[f"byte-index.{percent}pct"] = median(byte_index.values())
        shared = cubic.where(scheme="sander-rr", transport="quic")
        figures[f"rr.{percent}pct"] = median(shared.deltas(quic, _SPEED_INDEX).values())
        bbr_changes = bbr.where(scheme="sander-chrome", transport="tcp").deltas(tcp, _LOAD_TIME)
        figures[f"bbr.{percent}pct"] = median(bbr_changes.values())
        if percent == 10:
            figures["http3-gain"] = Estimate(-min(changes.values()))
            figures["bbr-gain"] = Estimate(-min(bbr_changes.values()))
    return figures


def one_order(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the change of loads if head-of-line blocking is over all streams.

    Each load is simulated again for its packets. They arrive at the same times, but their bytes
    are delivered in the order in which they were sent, as by TCP.
    """
    figures: Figures = {}
    greatest: Figures = {}
    for loss, of_loss in loads.split("loss"):
        of_schemes = []
        for scheme in loads.schemes:
            byte_index_changes: dict[str, list[float]] = {}
            completion_changes: dict[str, list[float]] = {}
            for row in of_loss.where(scheme=scheme).rows:
                page = row["page"]
                options = {name: row[name] for name in ("network", "seed")}
                load = simulate(page, scheme=scheme, loss=loss, **options)
                in_order = _with_one_order(load)
                byte_index_changes.setdefault(page, []).append(
                    in_order.byte_index("all") / load.byte_index("all") - 1
                )
                completion_changes.setdefault(page, []).append(
                    _last_completion_ms(in_order) / _last_completion_ms(load) - 1
                )
            for name, by_page in (
                ("byte-index", byte_index_changes),
                ("last", completion_changes),
            ):
                figure = mean(statistics.mean(changes) for changes in by_page.values())
                figures[f"{100 * loss:g}pct.{scheme}.{name}"] = figure
                of_schemes.append(figure)
        greatest[f"{100 * loss:g}pct.most"] = max(of_schemes)
    return figures | greatest


def _with_one_order(load: Load) -> Load:
    """Return the load with all bytes delivered in the order in which they were sent."""
    rows = load.trace.packet_rows
    times = delivered_in_one_order(rows, delivered_per_stream(rows))
    return replace(load, trace=replace(load.trace, packet_rows=rows.with_delivery_at(times)))


def _last_completion_ms(load: Load) -> float:
    return max(timing.finished_ms for timing in load.timings)


def _over_networks(loads: Loads, scheme: str, column: str, *, loss: float) -> dict[str, float]:
    """Return, by page, the mean change from Chrome's scheme over networks and clients."""
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
"""Columns of the heat maps, by metric."""
TITLES = {"byte-index": "ByteIndex", "speed-index": "SpeedIndex", "hol": "bytes blocked"}
"""Titles of the heat maps, by metric."""
FLAG_TITLES = {"si": "SpeedIndex", "atf": "ByteIndex above the fold", "all": "ByteIndex"}
"""Titles of the study of the incremental flag, by metric."""
VARIANTS = ("none", "documents", "images", "all")
"""Incremental resources in the variants of chrome-eps."""
_SEQUENTIAL_SCHEME = "fifo"
_MIN_CHANGE = 0.001
"""Smallest mean change that is mentioned."""
_CHROME_SCHEME = "chrome-eps"


class MapCell(NamedTuple):
    """A network of the map, with the ratio of each scheme to one response after the other."""

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
        of_cell = loads.where(**dict(zip(names, key, strict=True)))
        base = of_cell.where(scheme=_SEQUENTIAL_SCHEME).medians(column)
        ratios = {}
        for scheme in of_cell.schemes:
            medians = of_cell.where(scheme=scheme).medians(column)
            # One is added, as the number of bytes blocked may be 0.
            logs = [
                math.log((medians[page] + 1) / (base[page] + 1)) for page in medians if page in base
            ]
            # Means of logarithms, so that a ratio and its inverse cancel out.
            ratios[scheme] = Estimate(*(math.exp(value or 0.0) for value in mean(logs)))
        rate, rtt, loss, burst = key
        yield MapCell(rate, rtt, loss, burst or 1.0, ratios)


def loss_map(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the ratios of each cell by metric, and the number of cells where sharing wins."""
    figures: Figures = {}
    for metric in METRICS:
        cells = [*cells_of(loads, metric)]
        for cell in cells:
            for scheme, figure in cell.ratios.items():
                if scheme != _SEQUENTIAL_SCHEME:
                    figures[f"{metric}.{cell.name}.{scheme}"] = figure
        lossy = [cell for cell in cells if cell.loss]
        figures[f"shares-best.{metric}"] = Estimate(
            sum(c.best != _SEQUENTIAL_SCHEME for c in lossy)
        )
        figures[f"shares-clearly-best.{metric}"] = Estimate(sum(map(_has_clear_winner, lossy)))
        figures[f"lossy-cells.{metric}"] = Estimate(len(lossy))
    return figures


def incremental(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the change of each variant of the flag, relative to Chrome's, by network."""
    figures: Figures = {}
    columns = {"si": _SPEED_INDEX, "atf": _ATF, "all": METRICS["byte-index"]}
    for scheme in loads.schemes:
        if scheme == _CHROME_SCHEME:
            continue
        variant = scheme.removeprefix("chrome-eps-")
        for name, column in columns.items():
            changes = []
            for network, of_network in loads.split("network"):
                base = of_network.where(scheme=_CHROME_SCHEME)
                deltas = of_network.where(scheme=scheme).deltas(base, column)
                changes.append(deltas)
                figures[f"{variant}.{name}.{network}"] = mean(deltas.values())
            means = _mean_by_page(changes).values()
            figures[f"{variant}.{name}"] = mean(means)
            figures[f"{variant}.{name}-better"] = share(value < -0.01 for value in means)
    return figures


def map_remarks(loads: Loads) -> list[str]:
    """Return sentences on where some round robin beats one response after the other."""
    sentences = []
    for metric, title in TITLES.items():
        cells = [*cells_of(loads, metric)]
        for kind, has_loss in (("without added loss", False), ("with loss", True)):
            of_kind = [cell for cell in cells if bool(cell.loss) is has_loss]
            n_wins = sum(cell.best != _SEQUENTIAL_SCHEME for cell in of_kind)
            n_clear = sum(_has_clear_winner(cell) for cell in of_kind)
            gains = [1 - min(figure.value for figure in cell.ratios.values()) for cell in of_kind]
            most = max(gains, default=0.0)
            sentences.append(
                f"{title}, {kind}: some round robin has the least mean in {n_wins} of"
                f" {len(of_kind)} networks, with an interval below 1 in {n_clear}; the most it"
                f" gains is {most:.0%}."
            )
    return sentences


def flag_remarks(figures: Mapping[str, Estimate]) -> list[str]:
    """Return sentences on which uses of the flag are surely better or worse than Chrome's."""
    sentences = []
    for name, title in FLAG_TITLES.items():
        changes = {v: figures[f"{v}.{name}"] for v in VARIANTS if f"{v}.{name}" in figures}
        better = [v for v, change in changes.items() if (change.high or 0) < -_MIN_CHANGE]
        worse = [v for v, change in changes.items() if (change.low or 0) > _MIN_CHANGE]
        sentences.append(
            f"{title}: of what may be incremental (all, none, documents, images), surely better"
            f" than Chrome's choice {_list_names(better)}, surely worse {_list_names(worse)}."
        )
    return sentences


def _list_names(names: Sequence[str]) -> str:
    """Return names in words.

    >>> _list_names(["none", "all"]), _list_names([])
    ('are "none" and "all"', 'is no other')
    """
    if not names:
        return "is no other"
    return f"{'is' if len(names) == 1 else 'are'} " + " and ".join(f'"{name}"' for name in names)


def _has_clear_winner(cell: MapCell) -> bool:
    """Return whether some scheme's interval lies below the sequential one's 1."""
    return any(figure.high is not None and figure.high < 1 for figure in cell.ratios.values())
