"""The figures of Sander 2022: changes relative to Chrome's scheme, page by page."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from h3sim.papers.findings import Estimate, mean, median, over_pages, share, spearman

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from h3sim.papers.findings import Loads


Figures = dict[str, Estimate]

_BASELINE = "sander-chrome"
_PARALLEL_SCHEMES = ("rr", "wrr", "firefox", "firefox-eps")
_BYTES_BLOCKED, _SPEED_INDEX, _FIRST_PAINT = (
    "hol_sander_stream_bytes",
    "speed_index_ms",
    "first_paint_ms",
)
_MIN_CLEAR_CHANGE = 0.05
"""Smallest change for which the paper counts a site as better or worse."""
_MIN_LARGE_BYTES = 600_000
"""Size below which the paper calls a site small (§ V-B)."""
_MAX_LOAD_MS = 300_000
"""Time limit of a run in the paper, which repeated runs that took longer."""
_LOSSES = {"2mbps": 0.0, "1pct": 0.01, "2pct": 0.02, "5pct": 0.05}
"""Loss rates of the paper's networks, by their titles."""


def cells(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the changes of bytes blocked and SpeedIndex, by cell and scheme."""
    loads = _without_timeouts(loads)
    figures: Figures = {}
    for network, here in loads.split("network"):
        figures |= _cell_figures(here, title(network))
    return figures


def reno(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the changes with Reno at 0 and 5 % of loss, and their differences."""
    by_cell = cells(loads, {})
    figures = {
        name.replace("2mbps.", "reno-0pct.").replace("5pct.", "reno-5pct."): figure
        for name, figure in by_cell.items()
    }
    return figures | _hol_differences(by_cell)


def correlations(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Spearman's rho within pages, over cells and schemes: medians over pages by size."""
    loads = _without_timeouts(loads)
    page_bytes = {row["page"]: row["page_bytes"] for row in loads.rows}
    points: dict[str, list[dict[str, float]]] = {page: [] for page in page_bytes}
    for network, of_network in loads.split("network"):
        base = of_network.where(scheme=_BASELINE)
        for scheme in _PARALLEL_SCHEMES:
            of_scheme = of_network.where(scheme=f"sander-{scheme}")
            si = of_scheme.deltas(base, _SPEED_INDEX)
            hol = of_scheme.deltas(base, _BYTES_BLOCKED)
            loss = _LOSSES[title(network)]
            for page in si.keys() & hol.keys():
                points[page].append({"si": si[page], "hol": hol[page], "loss": loss})
    figures: Figures = _hol_differences(cells(loads, {}))
    for left, right in _RHO_PAIRS:
        rhos = {}
        for page, of_page in points.items():
            rho = spearman([point[left] for point in of_page], [point[right] for point in of_page])
            if rho is not None:
                rhos[page] = rho
        groups = {
            "small": [rho for page, rho in rhos.items() if page_bytes[page] < _MIN_LARGE_BYTES],
            "large": [rho for page, rho in rhos.items() if page_bytes[page] >= _MIN_LARGE_BYTES],
            "all": [*rhos.values()],
        }
        for group, values in groups.items():
            if values:
                figures[f"rho.{left}-{right}.{group}"] = median(values)
    return figures


_RHO_PAIRS = (("si", "hol"), ("si", "loss"), ("loss", "hol"))
"""Quantities whose changes are correlated: SpeedIndex, bytes blocked, and loss of the cell."""


def sizes(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the number of pages, and their sizes."""
    sizes_mb = {row["page"]: row["page_bytes"] / 1e6 for row in loads.rows}.values()
    return {
        "pages": Estimate(len(sizes_mb)),
        "megabytes.mean": mean(sizes_mb),
        "megabytes.median": median(sizes_mb),
        "below-0.6-mb": share(size_mb < _MIN_LARGE_BYTES / 1e6 for size_mb in sizes_mb),
    }


def times(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return load times and losses in each cell of Table I."""
    figures: Figures = {}
    for network, of_network in loads.split("network"):
        load_times_ms = of_network.medians("page_load_ms").values()
        figures[f"{title(network)}.seconds"] = median(value / 1000 for value in load_times_ms)
        figures |= _loss_figures(of_network, title(network))
    return figures


def title(network: str) -> str:
    """Return the name of a network's cell in figures: the setting in which it differs.

    >>> title("sander-5mbps-100ms"), title("sander-2mbps-50ms-2pct")
    ('5mbps', '50ms')
    >>> title("sander-2mbps-100ms-2pct"), title("sander-2mbps-100ms-2pct-burst5")
    ('2pct', 'burst5')
    """
    _, rate, rtt, *losses = network.split("-")
    if rtt != "100ms":
        return rtt
    return losses.pop() if losses else rate


def _cell_figures(loads: Loads, cell: str) -> Figures:
    """Return the figures of one cell."""
    base = loads.where(scheme=_BASELINE)
    schemes = [s for s in (*_PARALLEL_SCHEMES, "batched-rr") if f"sander-{s}" in loads.schemes]
    figures: Figures = {}
    for scheme in schemes:
        ours = loads.where(scheme=f"sander-{scheme}")
        changes = _change_figures(
            ours.deltas(base, _BYTES_BLOCKED).values(), ours.deltas(base, _SPEED_INDEX).values()
        )
        figures |= {f"{cell}.{scheme}.{name}": figure for name, figure in changes.items()}
        figures |= _cause_figures(ours, base, f"{cell}.{scheme}")
    reductions = [figures[f"{cell}.{s}.hol"] for s in _PARALLEL_SCHEMES if s in schemes]
    figures[f"{cell}.most-hol"] = max(reductions)
    figures[f"{cell}.others-most-hol"] = max(reductions[:-1])
    if "sander-batched-rr" in loads.schemes:
        batched, rr = (loads.where(scheme=f"sander-{name}") for name in ("batched-rr", "rr"))
        for name, column in (("hol", _BYTES_BLOCKED), ("si", _SPEED_INDEX)):
            change = batched.deltas(rr, column)
            figures[f"{cell}.batched-to-rr.{name}"] = median(change.values())
    tree = loads.where(scheme="sander-firefox").deltas(base, _SPEED_INDEX)
    eps = loads.where(scheme="sander-firefox-eps").deltas(base, _SPEED_INDEX)
    figures[f"{cell}.eps-to-tree"] = median([eps[page] - tree[page] for page in eps])
    return figures | _loss_figures(loads, cell)


def _change_figures(hol: Collection[float], speed_index: Collection[float]) -> Figures:
    """Return figures of relative changes of pages: of bytes blocked, and of SpeedIndex."""
    is_faster = [value < -_MIN_CLEAR_CHANGE for value in speed_index]
    is_slower = [value > _MIN_CLEAR_CHANGE for value in speed_index]
    return {
        "hol": median(hol),
        "hol-above": share(value > 0 for value in hol),
        "hol-more": share(value > _MIN_CLEAR_CHANGE for value in hol),
        "hol-equal": share(value == 0 for value in hol),
        "si": median(speed_index),
        "si-spread": over_pages([*speed_index], _quartile_distance),
        "faster": share(is_faster),
        "slower": share(is_slower),
        "balance": mean(
            float(faster - slower) for faster, slower in zip(is_faster, is_slower, strict=True)
        ),
    }


def _cause_figures(ours: Loads, base: Loads, name: str) -> Figures:
    """Return the mean changes of SpeedIndex and first paint in ms, and their ratio.

    Nothing is painted before first paint: a later one delays the SpeedIndex by as much.
    """
    speed_index = _median_differences(ours, base, _SPEED_INDEX)
    first_paint = _median_differences(ours, base, _FIRST_PAINT)
    # A page with nothing above the fold has no SpeedIndex.
    pages = sorted(speed_index.keys() & first_paint.keys())
    mean_speed_index = mean(speed_index[page] for page in pages)
    mean_paint = mean(first_paint[page] for page in pages)
    figures = {f"{name}.si-ms": mean_speed_index, f"{name}.paint-ms": mean_paint}
    if mean_speed_index.value:
        figures[f"{name}.paint-share"] = Estimate(mean_paint.value / mean_speed_index.value)
    return figures


def _median_differences(ours: Loads, base: Loads, column: str) -> dict[str, float]:
    """Return the difference of the medians of a column by page."""
    own_medians, base_medians = ours.medians(column), base.medians(column)
    return {
        page: own_medians[page] - base_medians[page] for page in own_medians if page in base_medians
    }


def _loss_figures(loads: Loads, cell: str) -> Figures:
    """Return figures of the losses in a cell, over all schemes."""
    rates = [row["packets_lost"] / row["packets_sent"] for row in loads.rows]
    bursts = sorted(row["packets_longest_burst"] for row in loads.rows)
    return {
        f"{cell}.loss-free": Estimate(sum(rate == 0 for rate in rates) / len(rates)),
        f"{cell}.loss": Estimate(statistics.median(rates)),
        f"{cell}.burst-95": Estimate(bursts[int(0.95 * (len(bursts) - 1))]),
        f"{cell}.longest-burst": Estimate(max(bursts)),
    }


def _hol_differences(figures: Figures) -> Figures:
    """Return the difference of bytes blocked between no added loss and 5 %."""
    return {
        f"{s}.fall": Estimate(figures[f"2mbps.{s}.hol"].value - figures[f"5pct.{s}.hol"].value)
        for s in _PARALLEL_SCHEMES
    }


def _without_timeouts(loads: Loads) -> Loads:
    """Return the loads of pages and seeds that all schemes finished in time.

    The paper repeated runs of over 300 s; here the page and seed are excluded for all schemes.
    """
    return loads.complete_groups(
        ("page", "network", "seed"), lambda row: row["page_load_ms"] <= _MAX_LOAD_MS
    )


def _quartile_distance(values: Any) -> float:
    """Return the difference between the quartiles."""
    import numpy as np  # lazy: h3sim.papers should load quickly

    low, high = np.percentile(values, (25, 75))
    return float(high - low)
