"""Means of log ratios over sites, as changes in per cent, with intervals that hold together."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, NamedTuple

from h3sim.study.statistics import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

CONFIDENCE = 0.95


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
    return Estimate(
        *(None if end is None else per_cent(end) for end in (statistics.fmean(logs), *ends))  # type: ignore[arg-type]
    )


def per_cent(log: float) -> float:
    """Return a log ratio as a change in per cent, of a million at most."""
    return 100 * math.expm1(min(log, math.log(1e6)))
