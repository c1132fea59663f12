"""The figures of h3sim's own two studies: what loss changes, and who should be incremental."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple

from h3sim.findings.intervals import mean, share
from h3sim.findings.model import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from h3sim.findings.loads import Loads

__all__ = [
    "FLAG_TITLES",
    "METRICS",
    "TITLES",
    "VARIANTS",
    "MapCell",
    "cells_of",
    "flag_remarks",
    "incremental",
    "loss_map",
    "map_remarks",
]

Figures = dict[str, Estimate]

METRICS = {
    "byte-index": "byte_index_all_ms",
    "speed-index": "speed_index_ms",
    "hol": "hol_sander_stream_bytes",
}
"""What a map is of, and the columns: ByteIndex, SpeedIndex, bytes blocked."""
TITLES = {"byte-index": "ByteIndex", "speed-index": "SpeedIndex", "hol": "bytes blocked"}
FLAG_TITLES = {"si": "SpeedIndex", "atf": "ByteIndex above the fold", "all": "ByteIndex"}
VARIANTS = ("none", "documents", "images", "all")
"""What is incremental in the variants of chrome-eps."""
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
        """What figures call the cell."""
        loss = f"{100 * self.loss:g}pct" + (f"-burst{self.burst:g}" if self.burst > 1 else "")
        return f"{self.rate_mbps:g}mbps-{self.rtt_ms:g}ms-{loss}"


def cells_of(loads: Loads, metric: str) -> Iterator[MapCell]:
    """Yield the cells of the map of *metric*, in the order of the study."""
    column = METRICS[metric]
    names = ("rate_mbps", "rtt_ms", "loss", "burst")
    keys = dict.fromkeys(tuple(row[name] for name in names) for row in loads.rows)
    for key in keys:
        here = loads.where(**dict(zip(names, key, strict=True)))
        base = here.where(scheme=_SEQUENTIAL).medians(column)
        ratios = {}
        for scheme in here.schemes:
            ours = here.where(scheme=scheme).medians(column)
            logs = [_log(ours[page], base[page]) for page in ours if page in base]
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
    columns = {"si": METRICS["speed-index"], "atf": "byte_index_atf_ms"}
    columns |= {"all": METRICS["byte-index"], "hol": METRICS["hol"]}
    networks = dict.fromkeys(row["network"] for row in loads.rows)
    for scheme in loads.schemes:
        if scheme == _AS_SENT:
            continue
        variant = scheme.removeprefix("chrome-eps-")
        for name, column in columns.items():
            over: dict[str, list[float]] = {}
            for network in networks:
                here = loads.where(network=network)
                deltas = here.where(scheme=scheme).deltas(here.where(scheme=_AS_SENT), column)
                if name == "hol":
                    continue  # relative changes of few bytes have no mean
                found[f"{variant}.{name}.{network}"] = mean([*deltas.values()])
                for page, value in deltas.items():
                    over.setdefault(page, []).append(value)
            if over:
                means = [statistics.mean(values) for values in over.values()]
                found[f"{variant}.{name}"] = mean(means)
                found[f"{variant}.{name}-better"] = share([value < -0.01 for value in means])
    return found


def map_remarks(loads: Loads) -> list[str]:
    """Return in sentences where some round robin beats one response after the other."""
    said = []
    for metric, title in TITLES.items():
        cells = [*cells_of(loads, metric)]
        for kind, chosen in (
            ("without added loss", [cell for cell in cells if not cell.loss]),
            ("with loss", [cell for cell in cells if cell.loss]),
        ):
            wins = sum(cell.best != _SEQUENTIAL for cell in chosen)
            clear = sum(_is_clear(cell) for cell in chosen)
            gains = [1 - min(figure.value for figure in cell.ratios.values()) for cell in chosen]
            most = max(gains, default=0.0)
            said.append(
                f"{title}, {kind}: some round robin has the least mean in {wins} of {len(chosen)}"
                f" networks, with an interval below 1 in {clear}; the most it gains is {most:.0%}."
            )
    return said


def flag_remarks(figures: Mapping[str, Estimate]) -> list[str]:
    """Return in sentences which uses of the flag are better or worse than Chrome's, and surely."""
    said = []
    for name, title in FLAG_TITLES.items():
        over_all = {
            variant: figures[f"{variant}.{name}"]
            for variant in VARIANTS
            if f"{variant}.{name}" in figures
        }
        better = [v for v, figure in over_all.items() if (figure.high or 0) < -_TINY]
        worse = [v for v, figure in over_all.items() if (figure.low or 0) > _TINY]
        said.append(
            f"{title}: of what may be incremental (all, none, documents, images), surely better"
            f" than Chrome's choice {_listed(better)}, surely worse {_listed(worse)}."
        )
    return said


def _listed(names: Sequence[str]) -> str:
    """Return names in words.

    >>> _listed(["none", "all"]), _listed([])
    ('are "none" and "all"', 'is no other')
    """
    if not names:
        return "is no other"
    return ("are " if len(names) > 1 else "is ") + " and ".join(f'"{name}"' for name in names)


def _is_clear(cell: MapCell) -> bool:
    """Return whether some scheme's interval lies below the sequential one's 1."""
    return any(figure.high is not None and figure.high < 1 for figure in cell.ratios.values())


def _log(ours: float, theirs: float) -> float:
    """Return the logarithm of a ratio of figures that may be 0 (bytes blocked): one is added."""
    return math.log((ours + 1) / (theirs + 1))
