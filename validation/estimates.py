"""Means of log ratios over sites, as changes in per cent, with intervals that hold together.

Where few sites change at all there is no interval, since none would hold: of 49 made-up sites, some
were changed at random, by -15 % on average. Where 7 or fewer differ in a sample, intervals of
99.7 % hold less often, and single ones reach beyond any figure (`make validate-estimates`).
"""

from __future__ import annotations

import math
import statistics
import sys
from typing import TYPE_CHECKING, NamedTuple

from tabulate import tabulate

from h3sim.study.statistics.intervals import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95
LEAST_DIFFERING = 8
"""Fewest sites that must change for an interval, unless there are fewer, and all do."""
CHANGE = 0.01
"""A site changes if the logarithm of its metric does by so much, which is one per cent."""


class Estimate(NamedTuple):
    """A mean over sites with its interval, as a change in per cent."""

    mean: float
    low: float | None
    high: float | None
    n_differing: int

    @property
    def is_sure(self) -> bool:
        """True if the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high

    def __str__(self) -> str:
        if not self.n_differing:
            return f"{self.mean:+.1f} % (none differs)"
        if self.low is None or self.high is None:
            return f"{self.mean:+.1f} % ({self.n_differing} differ)"
        return f"{self.mean:+.1f} % ({self.low:+.1f} to {self.high:+.1f})"


def estimate(logs: Sequence[float], *, family: int = 1) -> Estimate:
    """Return the mean of log ratios of sites as a change in per cent.

    The interval is one of *family* that hold together (Bonferroni). There is none if fewer than
    `LEAST_DIFFERING` sites change, and others do not.

    >>> str(estimate([0.1, 0.2, 0.1, 0.2] * 2))
    '+16.2 % (+9.8 to +23.0)'
    >>> str(estimate([0.1, 0.2, 0.1, 0.0]))
    '+10.5 % (3 differ)'
    """
    mean, n_differing = per_cent(statistics.fmean(logs)), sum(abs(log) >= CHANGE for log in logs)
    if n_differing < min(LEAST_DIFFERING, len(logs)):
        return Estimate(mean, None, None, n_differing)
    low, high = mean_interval(logs, 1 - (1 - CONFIDENCE) / family)
    if low is None or high is None:
        return Estimate(mean, None, None, n_differing)
    return Estimate(mean, per_cent(low), per_cent(high), n_differing)


def per_cent(log: float) -> float:
    """Return a log ratio as a change in per cent, of a million at most."""
    return 100 * math.expm1(min(log, math.log(1e6)))


_N_SITES = 49
_N_SAMPLES = 300
_FAMILY = 18
_DIFFERING = (2, 3, 5, 8, 12, 25)


def coverage() -> list[tuple[str, int, float, float, float]]:
    """Return how often intervals hold, by how many of the sites of a sample differ."""
    import numpy as np
    from scipy import stats

    source = np.random.default_rng(0)
    level = 1 - (1 - CONFIDENCE) / _FAMILY
    reach = float(stats.t.ppf((1 + level) / 2, _N_SITES - 1)) / math.sqrt(_N_SITES)
    groups: dict[str, list[tuple[bool, bool, float]]] = {name: [] for name, _, _ in _GROUPS}
    for expected in _DIFFERING:
        share = expected / _N_SITES
        for _ in range(_N_SAMPLES):
            differs = source.random(_N_SITES) < share
            values = np.where(differs, source.normal(_MEAN, _SPREAD, _N_SITES), 0.0)
            low, high = mean_interval(values.tolist(), level)
            if low is None or high is None:
                continue
            mean, error = float(values.mean()), reach * float(values.std(ddof=1))
            truth = _MEAN * share
            held = low <= truth <= high, abs(mean - truth) <= error
            name = next(name for name, least, most in _GROUPS if least <= differs.sum() <= most)
            groups[name].append((*held, high - low))
    return [
        (
            name,
            len(some),
            statistics.fmean(each[0] for each in some),
            statistics.fmean(each[1] for each in some),
            max(each[2] for each in some),
        )
        for name, some in groups.items()
    ]


_MEAN, _SPREAD = -0.15, 0.2
_GROUPS = (
    ("0 or 1", 0, 1),
    ("2 or 3", 2, 3),
    ("4 to 7", 4, 7),
    ("8 to 15", 8, 15),
    ("16 or more", 16, 49),
)


def main() -> int:
    """Print how often intervals hold."""
    heads = ("sites that differ", "samples", "bootstrap-t holds", "Student's holds", "widest, log")
    print(tabulate(coverage(), heads, floatfmt=".3f"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
