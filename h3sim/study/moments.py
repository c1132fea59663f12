"""Sums over numbers that come one by one."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Moments"]


class Moments:
    """Count, mean and spread of numbers that come one by one (Welford 1962)."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self._squares = 0.0
        self.least = math.inf
        self.most = -math.inf

    def add(self, value: float) -> None:
        """Take one number in."""
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        # By the mean before and after: sums of squares lose all digits where the spread is small.
        self._squares += before * (value - self.mean)
        self.least, self.most = min(self.least, value), max(self.most, value)

    def told(self) -> dict[str, Any]:
        """Return what is known; None where there are too few."""
        if not self.n:
            return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
        spread = math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None
        numbers = {"mean": self.mean, "sd": spread, "min": self.least, "max": self.most}
        return {"n": self.n, **numbers}
