"""`make validate-intervals`: how often an interval of a study covers the truth.

Studies are made up whose true speedup is known: pages differ, and so do the seeds of each page.
"""

from __future__ import annotations

import math
import sys

from tabulate import tabulate

from h3sim import seeds
from h3sim.study import Results

__all__ = ["coverage", "report"]

_STUDIES = 1000
_SEEDS = 3
_TRUE_LOG = math.log(1.2)
_SPREADS = {
    "normal": lambda source: source.gauss(0, 0.2),
    "skewed (exponential)": lambda source: source.expovariate(5) - 0.2,
    "uniform": lambda source: source.uniform(-0.35, 0.35),
}


def coverage(spread: str, pages: int, studies: int = _STUDIES) -> float:
    """Return the share of 95 % intervals that cover the speedup by which studies were made."""
    source = seeds.stream(pages, spread)
    covered = 0
    for _ in range(studies):
        rows = []
        for page in range(pages):
            log = _TRUE_LOG + _SPREADS[spread](source)
            for seed in range(_SEEDS):
                base = 1000 * math.exp(source.gauss(0, 0.3))
                ratio = math.exp(log + source.gauss(0, 0.1))
                cell = {"page": f"p{page}", "seed": seed}
                rows += [
                    {**cell, "scheme": "rr", "ms": base},
                    {**cell, "scheme": "x", "ms": base / ratio},
                ]
        (_, row) = Results.of(rows, axes=("page", "scheme", "seed")).compare("rr", value="ms")
        assert row.low is not None  # noqa: S101 - there are pages enough
        assert row.high is not None  # noqa: S101
        covered += math.log(row.low) <= _TRUE_LOG <= math.log(row.high)
    return covered / studies


def report(studies: int = _STUDIES) -> str:
    """Return a table of coverages, by how pages differ and how many there are."""
    rows = [
        (spread, pages, f"{100 * coverage(spread, pages, studies):.1f}")
        for spread in _SPREADS
        for pages in (15, 40, 100)
    ]
    headers = ("pages differ", "pages", f"% of {studies:,} intervals of 95 % that cover")
    return tabulate(rows, headers)


if __name__ == "__main__":
    print(report(int(sys.argv[1]) if len(sys.argv) > 1 else _STUDIES))
