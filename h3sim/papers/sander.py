"""The figures of Sander 2022: changes relative to Chrome's scheme, page by page."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from h3sim.papers.estimates import (
    Estimate,
    Loads,
    PageValues,
    Resampling,
    combined,
    mean,
    median,
    over_groups,
    over_pages,
    share,
    spearman,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


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
_LARGE_CHANGE = 0.25
"""The larger change by which it counts them again."""
_AGNOSTIC_SCHEMES, _FIREFOX_SCHEMES = ("rr", "wrr"), ("firefox", "firefox-eps")
_MIN_LARGE_BYTES = 600_000
"""Size below which the paper calls a site small (§ V-B)."""
_MAX_LOAD_MS = 300_000
"""Time limit of a run in the paper, which repeated runs that took longer."""
_LOSSES = {"2mbps": 0.0, "1pct": 0.01, "2pct": 0.02, "5pct": 0.05}
"""Loss rates of the paper's networks, by their titles."""


def cells(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the changes of bytes blocked and SpeedIndex, by cell and scheme."""
    finished = _without_timeouts(loads)
    resampling = Resampling(finished)
    figures: Figures = {}
    for network, here in finished.split("network"):
        figures |= _cell_figures(here, title(network), resampling)
    for network, here in loads.split("network"):
        # A load that was given up has no row: its page and seed are left out for all schemes.
        n_met = len({(row["page"], row["seed"]) for row in here.rows})
        complete = finished.where(network=network)
        n_complete = len({(row["page"], row["seed"]) for row in complete.rows})
        figures[f"{title(network)}.left-out"] = Estimate((n_met - n_complete) / n_met)
    return figures


def reno(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return the changes with Reno at 0 and 5 % of loss, and their differences."""
    by_cell = cells(loads, {})
    figures = {
        name.replace("2mbps.", "reno-0pct.").replace("5pct.", "reno-5pct."): figure
        for name, figure in by_cell.items()
    }
    return figures | _falls(by_cell)


def correlations(loads: Loads, _paper: Mapping[str, float]) -> Figures:
    """Return Spearman's rho within pages, over cells and schemes: medians over pages by size."""
    finished = _without_timeouts(loads)
    resampling = Resampling(finished)
    points: dict[str, list[PageValues]] = {"si": [], "hol": [], "loss": []}
    for network, of_network in finished.split("network"):
        base = of_network.where(scheme=_BASELINE)
        for scheme in _PARALLEL_SCHEMES:
            of_scheme = of_network.where(scheme=f"sander-{scheme}")
            changes = {
                name: resampling.medians(of_scheme, column).relative_to(
                    resampling.medians(base, column)
                )
                for name, column in (("si", _SPEED_INDEX), ("hol", _BYTES_BLOCKED))
            }
            # A page without a SpeedIndex has no point.
            changes["loss"] = (changes["si"] - changes["hol"]) * 0 + _LOSSES[title(network)]
            for name, values in changes.items():
                points[name].append(values)
    page_bytes = {row["page"]: row["page_bytes"] for row in finished.rows}
    small = {page for page, n_bytes in page_bytes.items() if n_bytes < _MIN_LARGE_BYTES}
    groups = {"small": small, "large": page_bytes.keys() - small, "all": page_bytes.keys()}
    figures: Figures = _falls(cells(loads, {}))
    for left, right in _RHO_PAIRS:
        rhos = _page_rhos(points[left], points[right])
        for group, pages in groups.items():
            figures[f"rho.{left}-{right}.{group}"] = resampling.only(rhos, pages).median()
    return figures


_RHO_PAIRS = (("si", "hol"), ("si", "loss"), ("loss", "hol"))
"""Quantities whose changes are correlated: SpeedIndex, bytes blocked, and loss of the cell."""


def _page_rhos(left: list[PageValues], right: list[PageValues]) -> PageValues:
    """Return Spearman's rho of each page, over its points."""
    import numpy as np  # lazy: h3sim.papers should load quickly

    def over(of: list[Any], to: list[Any]) -> Any:
        return _rhos(np.stack(of, axis=-1), np.stack(to, axis=-1))

    known = over([values.known for values in left], [values.known for values in right])
    if left[0].sampled is None:
        return PageValues(known, None)
    # One resample after the other: comparing all points of all of them takes gigabytes.
    sampled = [
        over([v.sampled[index] for v in left], [v.sampled[index] for v in right])
        for index in range(len(left[0].sampled))
    ]
    return PageValues(known, np.array(sampled))


def _rhos(left: Any, right: Any) -> Any:
    """Return Spearman's rho of each row of points; not a number if a side does not vary."""
    import numpy as np

    known = ~np.isnan(left) & ~np.isnan(right)
    x, y = _centred_ranks(left, known), _centred_ranks(right, known)
    squares = (x * x).sum(axis=-1) * (y * y).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(squares > 0, (x * y).sum(axis=-1) / np.sqrt(squares), np.nan)


def _centred_ranks(values: Any, known: Any) -> Any:
    """Return twice the difference of each rank and the mean rank in its row; 0 where unknown."""
    one, other = values[..., :, None], values[..., None, :]
    with_both = known[..., :, None] & known[..., None, :]
    ranks = ((one > other) & with_both).sum(axis=-1) - ((one < other) & with_both).sum(axis=-1)
    return ranks * known


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
    """Return load times and losses in each cell of Table I, of the loads that finished."""
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


def _cell_figures(loads: Loads, cell: str, resampling: Resampling) -> Figures:
    """Return the figures of one cell."""
    medians = {
        (scheme.removeprefix("sander-"), column): resampling.medians(
            loads.where(scheme=scheme), column
        )
        for scheme in loads.schemes
        for column in (_BYTES_BLOCKED, _SPEED_INDEX, _FIRST_PAINT)
    }
    schemes = [s for s in (*_PARALLEL_SCHEMES, "batched-rr") if (s, _SPEED_INDEX) in medians]
    figures: Figures = {}

    def change(scheme: str, column: str, base: str = "chrome") -> PageValues:
        return medians[scheme, column].relative_to(medians[base, column])

    for scheme in schemes:
        changes = _change_figures(change(scheme, _BYTES_BLOCKED), change(scheme, _SPEED_INDEX))
        figures |= {f"{cell}.{scheme}.{name}": figure for name, figure in changes.items()}
        speed_index, first_paint = (
            medians[scheme, column] - medians["chrome", column]
            for column in (_SPEED_INDEX, _FIRST_PAINT)
        )
        figures |= _cause_figures(speed_index, first_paint, f"{cell}.{scheme}")
    reductions = [figures[f"{cell}.{s}.hol"] for s in _PARALLEL_SCHEMES if s in schemes]
    figures[f"{cell}.most-hol"] = combined(_largest, *reductions)
    figures[f"{cell}.others-most-hol"] = combined(_largest, *reductions[:-1])
    if "batched-rr" in schemes:
        for name, column in (("hol", _BYTES_BLOCKED), ("si", _SPEED_INDEX)):
            figures[f"{cell}.batched-to-rr.{name}"] = change("batched-rr", column, "rr").median()
    for one in _AGNOSTIC_SCHEMES:
        for other in _FIREFOX_SCHEMES:
            difference = change(one, _SPEED_INDEX) - change(other, _SPEED_INDEX)
            figures[f"{cell}.{one}-to-{other}"] = difference.median()
    to_tree = change("firefox-eps", _SPEED_INDEX) - change("firefox", _SPEED_INDEX)
    figures[f"{cell}.eps-to-tree"] = to_tree.median()
    return figures | _loss_figures(loads, cell)


def _largest(*values: float) -> float:
    return max(values)


def _change_figures(hol: PageValues, speed_index: PageValues) -> Figures:
    """Return figures of relative changes of pages: of bytes blocked, and of SpeedIndex."""
    return {
        "hol": hol.median(),
        "hol-above": hol.map(lambda values: values > 0).mean(),
        "hol-more": hol.map(lambda values: values > _MIN_CLEAR_CHANGE).mean(),
        "hol-equal": hol.map(lambda values: values == 0).mean(),
        "si": speed_index.median(),
        "si-spread": speed_index.quartile_distance(),
        "faster": speed_index.map(lambda values: values < -_MIN_CLEAR_CHANGE).mean(),
        "slower": speed_index.map(lambda values: values > _MIN_CLEAR_CHANGE).mean(),
        "balance": speed_index.map(lambda values: _balance(values, _MIN_CLEAR_CHANGE)).mean(),
        "balance-25": speed_index.map(lambda values: _balance(values, _LARGE_CHANGE)).mean(),
    }


def _balance(values: Any, least: float) -> Any:
    """Return 1 where a change is an improvement by more than *least*, -1 where the contrary."""
    return (values < -least).astype(float) - (values > least)


def _cause_figures(speed_index: PageValues, first_paint: PageValues, name: str) -> Figures:
    """Return the mean changes of SpeedIndex and first paint in ms, and their ratio.

    Nothing is painted before first paint: a later one delays the SpeedIndex by as much.
    """
    # A page with nothing above the fold has no SpeedIndex.
    both = first_paint + speed_index * 0
    figures = {f"{name}.si-ms": speed_index.mean(), f"{name}.paint-ms": both.mean()}
    if figures[f"{name}.si-ms"].value:
        figures[f"{name}.paint-share"] = Estimate(
            figures[f"{name}.paint-ms"].value / figures[f"{name}.si-ms"].value
        )
    return figures


def _loss_figures(loads: Loads, cell: str) -> Figures:
    """Return figures of the losses in a cell, over all schemes."""
    import numpy as np

    pages = [of_page.rows for _, of_page in loads.split("page")]
    rates = [[row["packets_lost"] / row["packets_sent"] for row in rows] for rows in pages]
    bursts = [[row["packets_longest_burst"] for row in rows] for rows in pages]
    sizes_and_rates = [
        (rows[0]["page_bytes"], np.median(of_page))
        for rows, of_page in zip(pages, rates, strict=True)
    ]
    return {
        f"{cell}.loss-free": over_groups(
            [[rate == 0 for rate in of_page] for of_page in rates], np.mean
        ),
        f"{cell}.loss": over_groups(rates, np.median),
        f"{cell}.loss-size-rho": over_pages(sizes_and_rates, _rho_of_columns),
        f"{cell}.burst-95": over_groups(
            bursts, lambda values: np.percentile(values, 95, method="lower")
        ),
        f"{cell}.longest-burst": Estimate(max(map(max, bursts))),
    }


def _rho_of_columns(rows: Any) -> float:
    left, right = rows.T
    return spearman([*left], [*right]) or 0.0


def _falls(figures: Figures) -> Figures:
    """Return how far both changes fall between no added loss and 5 %, by scheme."""
    return {
        f"{scheme}.{fall}": combined(
            operator.sub, figures[f"2mbps.{scheme}.{name}"], figures[f"5pct.{scheme}.{name}"]
        )
        for scheme in _PARALLEL_SCHEMES
        for fall, name in (("fall", "hol"), ("si-fall", "si"))
    }


def _without_timeouts(loads: Loads) -> Loads:
    """Return the loads of pages and seeds that all schemes finished in time.

    The paper repeated runs of over 300 s, and those in which Chromium reported a black hole; here
    the page and seed are excluded for all schemes.
    """
    return loads.complete_groups(
        ("page", "network", "seed"), lambda row: row["page_load_ms"] <= _MAX_LOAD_MS
    )
