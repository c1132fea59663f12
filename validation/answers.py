"""`make validate-answers`: the questions of docs/results.md, from study files to tables and figures.

A site counts once, whatever its pages. Intervals are over sites, with a joint confidence of 95 %
for all of a table. What is chosen is chosen on one half of the sites, and judged on the other.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.catalog.resources import root
from h3sim.cli.command import progress_bar
from h3sim.reporting.output import save_figure
from h3sim.study.statistics import mean_interval
from h3sim.study.study_file import read_study
from validation.h3sim_1 import halves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from h3sim.study import Results

METRICS = {
    "first_paint_ms": "first paint",
    "largest_paint_ms": "LCP",
    "speed_index_ms": "SpeedIndex",
    "byte_index_all_ms": "ByteIndex",
}
_PAINTS = ("first_paint_ms", "largest_paint_ms", "speed_index_ms")
CONFIDENCE = 0.95
CLIENTS = {"chrome": 0.7, "safari": 0.25, "firefox": 0.05}
"""Shares of users: rounded from what counters of page views publish for 2025, and varied below."""
NETWORKS = {
    "fibre": 0.2, "cable": 0.3, "4g": 0.25, "wifi-lossy": 0.15, "dsl": 0.06, "fast-3g": 0.04,
}  # fmt: skip
"""Shares of networks: nine in ten at 4G or better, as in CrUX; otherwise chosen, and varied."""
FOLLOW, ALONE = "follow signals", "follow, nothing shares"
_N_MIXTURES = 2000

Logs = dict[Any, dict[str, dict[str, float]]]
"""The logarithm of a metric by state, action and site."""


class Estimate(NamedTuple):
    """A mean over sites with its interval, as a change in per cent."""

    mean: float
    low: float | None
    high: float | None

    @property
    def is_sure(self) -> bool:
        """True if the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:+.1f} %"
        return f"{self.mean:+.1f} % ({self.low:+.1f} to {self.high:+.1f})"


def estimate(logs: Sequence[float], *, family: int = 1) -> Estimate:
    """Return the mean of log ratios of sites as a change in per cent.

    The interval is one of *family* that hold together (Bonferroni).

    >>> str(estimate([0.1, 0.2, 0.1, 0.2]))
    '+16.2 % (+6.0 to +27.4)'
    """
    ends = mean_interval(logs, 1 - (1 - CONFIDENCE) / family)
    return Estimate(*(None if end is None else _per_cent(end) for end in (_mean(logs), *ends)))  # type: ignore[arg-type]


def _per_cent(log: float) -> float:
    return 100 * math.expm1(min(log, math.log(1e6)))


def _mean(values: Iterable[float]) -> float:
    return statistics.fmean(values)


class Sites:
    """The sites of the pages of a study: the half on which choices are made, and the other."""

    def __init__(self, pages: Iterable[str]) -> None:
        made, kept = halves([h3sim.load_page(row.name) for row in h3sim.list_pages()])
        self._site_of = {page.name: site.name for site in (*made, *kept) for page in site.pages}
        known = {self._site_of[page] for page in pages}
        self.chosen_on = sorted(site.name for site in made if site.name in known)
        self.judged_on = sorted(site.name for site in kept if site.name in known)

    def of(self, page: str) -> str:
        """Return the site of a page."""
        return self._site_of[page]


def logs_of(
    rows: Iterable[Mapping[str, Any]],
    metric: str,
    *,
    state: Callable[[Mapping[str, Any]], Any],
    action: Callable[[Mapping[str, Any]], str],
    sites: Sites,
) -> Logs:
    """Return the mean logarithm of a metric over the pages and seeds of each site."""
    found: dict[Any, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for row in rows:
        if row[metric]:
            found[state(row)][action(row)][sites.of(row["page"])].append(math.log(row[metric]))
    return {
        where: {
            what: {site: _mean(values) for site, values in by_site.items()}
            for what, by_site in actions.items()
        }
        for where, actions in found.items()
    }


def run(name: str, options: argparse.Namespace) -> Results:
    """Return the rows of a shipped study, from the store where it has them."""
    study = read_study(root("h3sim.models") / "studies" / f"{name}.toml")
    with progress_bar(name) as progress:
        return study.run(store=options.store, workers=options.workers, progress=progress)
