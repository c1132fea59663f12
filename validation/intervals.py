"""`make validate-intervals`: how often an interval of a study covers the truth.

Studies are made up whose true speedup is known: pages differ, and so do the seeds of each page.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim import rng
from h3sim.study.statistics import METHODS, mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from h3sim.study.statistics import Method

__all__ = ["PAGES", "SPREADS", "coverage", "report"]

_STUDIES = 1000
_SEEDS = 3
_TRUE_LOG = math.log(1.2)
_SD, _SEED_SD = 0.2, 0.1
PAGES = (3, 5, 10, 15, 20, 40, 100)

SPREADS: dict[str, tuple[str, Callable[[Random], float]]] = {
    "uniform": ("0", lambda source: source.uniform(-1, 1) * math.sqrt(3)),
    "normal": ("0", lambda source: source.gauss(0, 1)),
    "long tails (Student, 3)": (
        "0",
        lambda source: source.gauss(0, 1) / math.sqrt(source.gammavariate(1.5, 2)),
    ),
    "exponential": ("2", lambda source: source.expovariate(1) - 1),
    "gamma (1/2)": ("2.8", lambda source: (source.gammavariate(0.5, 1) - 0.5) * math.sqrt(2)),
    "log-normal (1)": (
        "6.2",
        lambda source: (
            (source.lognormvariate(0, 1) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)
        ),
    ),
    "one page in ten differs": ("2.7", lambda source: (-1 / 3, 3)[source.random() < 0.1]),
}
"""How pages differ: skewness, and a draw with mean 0 and standard deviation 1."""


def coverage(
    spread: str, pages: int, *, method: Method = "bootstrap-t", studies: int = _STUDIES
) -> float:
    """Return the share of 95 % intervals that cover the speedup by which studies were made.

    A page's speedup has its own logarithm, of standard deviation 0.2, and each of its three seeds
    adds a normal one of 0.1; the study knows the mean over seeds.
    """
    source = rng.substream(pages, spread)
    _, drawn = SPREADS[spread]
    covered = 0
    for _ in range(studies):
        logs = []
        for _ in range(pages):
            own = _TRUE_LOG + _SD * drawn(source)
            logs.append(own + math.fsum(source.gauss(0, _SEED_SD) for _ in range(_SEEDS)) / _SEEDS)
        low, high = mean_interval(logs, method=method)
        assert low is not None  # noqa: S101 - there are pages enough
        assert high is not None  # noqa: S101
        covered += low <= _TRUE_LOG <= high
    return covered / studies


def report(studies: int = _STUDIES) -> str:
    """Return a table of coverages, by how pages differ and how many there are."""
    rows = [
        (
            spread,
            skewness,
            method,
            *(f"{100 * coverage(spread, n, method=method, studies=studies):.1f}" for n in PAGES),
        )
        for spread, (skewness, _) in SPREADS.items()
        for method in METHODS
    ]
    headers = ("logarithms of pages", "skewness", "interval", *(f"{n} pages" for n in PAGES))
    title = f"% of {studies:,} intervals of 95 % that cover\n\n"
    align = ("left", "right", "left", *["right"] * len(PAGES))
    return title + tabulate(rows, headers, disable_numparse=True, colalign=align)


if __name__ == "__main__":
    print(report(int(sys.argv[1]) if len(sys.argv) > 1 else _STUDIES))
