"""Figures of the smaller studies, and heat maps of h3sim's own two."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.load import resolve_pages, simulate
from h3sim.metrics import slope
from h3sim.page.categories import size_class
from h3sim.papers.estimates import (
    Estimate,
    Loads,
    PageValues,
    Resampling,
    combined,
    mean,
    over_pages,
    tau,
)
from h3sim.trace import delivered_in_one_order, delivered_per_stream
from h3sim.values.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from h3sim.load import Load


Figures = dict[str, Estimate]

_SPEED_INDEX, _LOAD_TIME, _ATF = "speed_index_ms", "page_load_ms", "byte_index_atf_ms"
_EXTREME_SIZES = ("small", "large")
"""Classes of pages that are compared, as in Marx 2019."""
_BROWSER_SCHEMES = {"rr": "edge-h2", "wrr": "safari-h2", "firefox": "firefox-h2"}
"""Schemes that are compared with Chrome's, by their names in figures."""
_TIGHT_MODES = {"holding": "chrome-95", "eager": "off"}
"""Tight modes of clients, one of which delays unimportant requests, by their names in figures."""


_ATS_SCHEMES = {"without": "fifo", "with": "chrome-50-ats", "rr": "rr"}
"""Schemes of Koshiba's server without and with the patch, and one that ignores priorities, by their
names in figures. Without the patch it sends one response after the other, in order of request."""
NEAR_MS, FAR_MS = 2, 102
"""Round-trip times of the downloads, and of the first paints."""
_CHANGED_RESOURCES = (
    "glyphicons-halflings-regular.woff",
    "fontawesome-webfont.woff",
    "rila_small.jpg",
    "bootstrap.css",
)
"""Resources whose change the finding names."""


def waterfalls(loads: Loads, paper: Mapping[str, float]) -> Figures:
    """Return the figures of Koshiba's waterfalls, in the terms of Chrome's developer tools.

    A resource's time is that from its request to its last byte, as their column "Time".
    """
    figures: Figures = {}
    for name, scheme in _ATS_SCHEMES.items():
        rows = loads.where(scheme=scheme, rtt_ms=NEAR_MS).resources
        times_ms = {row["id"]: row["finished_ms"] - row["requested_ms"] for row in rows}
        figures |= {f"{name}.{resource}": Estimate(at) for resource, at in times_ms.items()}
        figures[f"{name}.longest"] = Estimate(max(times_ms.values()))
        # The document is requested alone, and fonts later, by the styles.
        _document, *at_once = [row for row in rows if row["kind"] != "font"]
        # With fractions, as the standard library's slope differs between versions of Python.
        exact_ms = [Fraction(row["first_byte_ms"] - row["requested_ms"]) for row in at_once]
        figures[f"{name}.ttfb-slope"] = Estimate(float(slope(exact_ms) or 0))
        figures[f"{name}.download"] = Estimate(
            statistics.median(row["finished_ms"] - row["first_byte_ms"] for row in at_once)
        )
        (far,) = loads.where(scheme=scheme, rtt_ms=FAR_MS).rows
        figures[f"{name}.painted-far"] = Estimate(far["first_paint_ms"])
        # Whose order is that of the paper's tables, with the patch and without it?
        for published in ("without", "with"):
            known = [r for r in times_ms if f"{published}.{r}" in paper]
            # The page is one; its resources are drawn.
            figures[f"{name}.tau-{published}"] = over_pages(
                [(paper[f"{published}.{r}"], times_ms[r]) for r in known], _tau_of_columns
            )
    for name in ("ttfb-slope", "download", "longest", *_CHANGED_RESOURCES):
        if f"with.{name}" in figures:
            value = figures[f"with.{name}"].value / figures[f"without.{name}"].value
            figures[f"{name}.ratio"] = Estimate(value)
    return figures


def _tau_of_columns(rows: Any) -> float:
    left, right = rows.T.tolist()
    return tau(left, right)


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
    resampling = Resampling(loads)
    figures: Figures = {}

    def slowdown(
        scheme: str, column: str = _SPEED_INDEX, loss: float = 0.0, **where: str
    ) -> PageValues:
        return _over_networks(resampling, loads.where(loss=loss, **where), scheme, column)

    for name, scheme in _BROWSER_SCHEMES.items():
        deltas = slowdown(scheme)
        figures[f"mean.{name}"] = deltas.mean()
        figures[f"{name}.slower"] = deltas.median()
        figures[f"{name}.load-slower"] = slowdown(scheme, _LOAD_TIME).median()
        figures[f"{name}.slower-2pct"] = slowdown(scheme, loss=0.02).median()
        for size in _EXTREME_SIZES:
            of_size = {page for page, n_bytes in sizes.items() if size_class(n_bytes) == size}
            figures[f"{name}.{size}"] = resampling.only(deltas, of_size).median()
        for client, tight_mode in _TIGHT_MODES.items():
            figures[f"{client}.{name}.slower"] = slowdown(scheme, tight_mode=tight_mode).median()
    for network in loads.distinct("network"):
        of_network = slowdown(_BROWSER_SCHEMES["rr"], network=network)
        figures[f"{network}.rr.slower"] = of_network.median()
    figures["better-of-sharing"] = combined(min, figures["mean.rr"], figures["mean.wrr"])
    figures["worse-of-browsers"] = combined(max, figures["mean.firefox"], Estimate(0.0))
    return figures


def protocols(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return changes with HTTP/3, relative to HTTP/2 with the same controller and loss."""
    small = {row["page"] for row in loads.rows if size_class(row["page_bytes"]) == "small"}
    resampling = Resampling(loads)
    figures: Figures = {}

    def change(ours: Loads, base: Loads, column: str) -> PageValues:
        return resampling.medians(ours, column).relative_to(resampling.medians(base, column))

    for percent, loss in ((0, 0.0), (2, 0.02), (10, 0.1)):
        cubic, bbr = (loads.where(loss=loss, cc=cc) for cc in ("cubic", "bbr1"))
        quic, tcp = (
            cubic.where(scheme="sander-chrome", transport=transport)
            for transport in ("quic", "tcp")
        )
        changes = change(quic, tcp, _LOAD_TIME)
        figures[f"all.{percent}pct"] = changes.median()
        figures[f"small.{percent}pct"] = resampling.only(changes, small).median()
        figures[f"byte-index.{percent}pct"] = change(quic, tcp, METRICS["byte-index"]).median()
        shared = cubic.where(scheme="sander-rr", transport="quic")
        figures[f"rr.{percent}pct"] = change(shared, quic, _SPEED_INDEX).median()
        with_bbr = bbr.where(scheme="sander-chrome", transport="tcp")
        bbr_changes = change(with_bbr, tcp, _LOAD_TIME)
        figures[f"bbr.{percent}pct"] = bbr_changes.median()
        if percent == 10:
            figures["http3-gain"] = changes.reduce(_largest_gains)
            figures["bbr-gain"] = bbr_changes.reduce(_largest_gains)
    return figures


def _largest_gains(rows: Any) -> Any:
    """Return the largest reduction in each row of changes."""
    import numpy as np  # lazy: h3sim.papers should load quickly

    return -np.nanmin(rows, axis=1)


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
        greatest[f"{100 * loss:g}pct.most"] = combined(max, *of_schemes)
    return figures | greatest


def _with_one_order(load: Load) -> Load:
    """Return the load with all bytes delivered in the order in which they were sent."""
    rows = load.trace.packet_rows
    times = delivered_in_one_order(rows, delivered_per_stream(rows))
    return replace(load, trace=replace(load.trace, packet_rows=rows.with_delivery_at(times)))


def _last_completion_ms(load: Load) -> float:
    return max(timing.finished_ms for timing in load.timings)


def _over_networks(resampling: Resampling, loads: Loads, scheme: str, column: str) -> PageValues:
    """Return, by page, the mean change from Chrome's scheme over networks and clients."""
    changes = []
    for _, of_network in loads.split("network"):
        for _, cell in of_network.split("tight_mode"):
            ours, base = (cell.where(scheme=name) for name in (scheme, "chrome-h2"))
            medians = resampling.medians(ours, column)
            changes.append(medians.relative_to(resampling.medians(base, column)))
    return PageValues.mean_of(changes)


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
_MIN_MANY_RESOURCES = 30
"""Fewest resources of a page that counts as one of many streams."""
_MIN_HIGH_LOSS = 0.05
"""Smallest loss rate that counts as high."""
_CLEAR_GAIN = 0.05
"""Smallest gain of a scheme that counts as a win."""
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
    resampling = Resampling(loads)
    for key, of_cell in _by_path(loads):
        logs = _log_ratios(resampling, of_cell, METRICS[metric])
        # Means of logarithms, so that a ratio and its inverse cancel out.
        ratios = {scheme: combined(math.exp, values.mean()) for scheme, values in logs.items()}
        rate, rtt, loss, burst = key
        yield MapCell(rate, rtt, loss, burst or 1.0, ratios)


def _by_path(loads: Loads) -> Iterator[tuple[tuple[Any, ...], Loads]]:
    """Yield the rate, round-trip time, loss and burst of each network, with its loads."""
    names = ("rate_mbps", "rtt_ms", "loss", "mean_loss_burst")
    for key in dict.fromkeys(tuple(row[name] for name in names) for row in loads.rows):
        yield key, loads.where(**dict(zip(names, key, strict=True)))


def _log_ratios(resampling: Resampling, of_cell: Loads, column: str) -> dict[str, PageValues]:
    """Return the logarithm of the ratio of each scheme to one response after the other, by page."""
    import numpy as np

    def logs(scheme: str) -> PageValues:
        # One is added, as the number of bytes blocked may be 0.
        return (resampling.medians(of_cell.where(scheme=scheme), column) + 1).map(np.log)

    base = logs(_SEQUENTIAL_SCHEME)
    return {scheme: logs(scheme) - base for scheme in of_cell.schemes}


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
    return figures | _wins_by_loss(loads)


def _n_resources(page: str) -> int:
    """Return the number of resources of a shipped page; 0 for others, which are not at hand."""
    try:
        (found,) = resolve_pages(page)
    except UnknownNameError:
        return 0
    return len(found.resources)


def _wins_by_loss(loads: Loads) -> Figures:
    """Return how often some round robin wins on pages of many resources, without loss and with.

    That is by the ByteIndex above the fold, the metric of Marx 2019, on each page and network: the
    share on which it is lower by 5 % than with one response after the other.
    """
    resampling = Resampling(loads)
    many = {page for page in loads.pages if _n_resources(page) >= _MIN_MANY_RESOURCES}
    figures = {"many-resources.pages": Estimate(len(many))}
    if not many:
        return figures
    wins: dict[str, list[PageValues]] = {"loss-free": [], "lossy": [], "very-lossy": []}
    for (_, _, loss, _), of_cell in _by_path(loads):
        ratios = _log_ratios(resampling, of_cell, _ATF)
        shared = [values for scheme, values in ratios.items() if scheme != _SEQUENTIAL_SCHEME]
        win = PageValues.mean_of(
            [values.map(lambda logs: logs < math.log(1 - _CLEAR_GAIN)) for values in shared]
        ).map(lambda shares: shares > 0)
        wins["lossy" if loss else "loss-free"].append(resampling.only(win, many))
        if loss >= _MIN_HIGH_LOSS:
            wins["very-lossy"].append(resampling.only(win, many))
    for name, values in wins.items():
        if values:
            figures[f"shares-win.{name}"] = PageValues.mean_of(values).mean()
    return figures


def incremental(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the change of each variant of the flag, relative to Chrome's, by network."""
    resampling = Resampling(loads)
    figures: Figures = {}
    columns = {"si": _SPEED_INDEX, "atf": _ATF, "all": METRICS["byte-index"]}
    for scheme in loads.schemes:
        if scheme == _CHROME_SCHEME:
            continue
        variant = scheme.removeprefix("chrome-eps-")
        for name, column in columns.items():
            changes = []
            for network, of_network in loads.split("network"):
                ours, base = (of_network.where(scheme=each) for each in (scheme, _CHROME_SCHEME))
                medians = resampling.medians(ours, column)
                changes.append(medians.relative_to(resampling.medians(base, column)))
                figures[f"{variant}.{name}.{network}"] = changes[-1].mean()
            means = PageValues.mean_of(changes)
            figures[f"{variant}.{name}"] = means.mean()
            better = means.map(lambda values: values < -0.01)
            figures[f"{variant}.{name}-better"] = better.mean()
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
