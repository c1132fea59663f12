"""Which of several arms is best, from paired measurements that are bought in rounds."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from h3sim.study.sequential import seed_interval

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ArmRow", "Race", "race"]

_LEAST = 3
"""Of fewer pairs that differ, their spread is as good as unknown."""


class ArmRow(NamedTuple):
    """An arm against the best: the mean of paired differences, and its interval if there is one.

    *n* is how many pairs there are; *is_worse* whether it is surely behind the best.
    """

    arm: int
    n: int
    mean: float
    low: float | None
    high: float | None
    is_worse: bool


@dataclass(frozen=True)
class Race:
    """How a race ended: the arm with the least mean, and each arm against it, the best first."""

    best: int
    rows: tuple[ArmRow, ...]
    n_measured: int

    @property
    def level_with_best(self) -> tuple[int, ...]:
        """The arms that may be as good as the best, itself among them."""
        return tuple(row.arm for row in self.rows if row.arm == self.best or not row.is_worse)


def race(
    n_arms: int,
    measure: Callable[[int, int], float],
    n_instances: int,
    *,
    confidence: float = 0.95,
    first_batch: int = 8,
) -> Race:
    """Return which arm has the least mean of *measure(arm, instance)* over instances 0 to n - 1.

    First comes successive halving (Karnin, Koren and Somekh 2013), on pairs: all arms run on the
    first batch of instances, the better half goes on, and the number of instances doubles. An arm
    is left early once it is surely behind. Then the arms that are not surely behind what came out
    go on beside it, while instances double again, until all are, or no instance is left; whichever
    has the least mean meanwhile is the best. All arms meet the same instances, so that what makes
    one hard is no noise.

    What is claimed rests on Student's intervals of the paired differences to the best on the
    instances that both had. Each is at a level that is divided by the number of the other arms and,
    since every round looks again, by the number of rounds (Bonferroni). So the arm that is best in
    truth is not called worse, with probability *confidence* or more, if differences are about
    normal: it is among those that may be as good (a selected subset, as Gupta 1965 has it). Of two
    others, both behind it, nothing is claimed. Where differences are all equal and not 0, nothing
    is random, and the sign decides.

    >>> times = [[5, 6, 5, 7], [4, 5, 4, 6], [9, 9, 8, 9]]
    >>> found = race(3, lambda arm, instance: times[arm][instance], 4, first_batch=2)
    >>> found.best, found.level_with_best
    (1, (1,))
    """
    course = _Course(n_arms, measure, n_instances, confidence, first_batch)
    return course.run()


class _Course:
    """The state of a race."""

    def __init__(
        self,
        n_arms: int,
        measure: Callable[[int, int], float],
        n_instances: int,
        confidence: float,
        first_batch: int,
    ) -> None:
        self._measure = measure
        self._n_instances = n_instances
        self._values: list[list[float]] = [[] for _ in range(n_arms)]
        self._batches = _batches(n_instances, first_batch)
        # Twice the rounds: halving looks once in each, and so does what follows.
        self._chance = (1 - confidence) / (max(1, n_arms - 1) * 2 * len(self._batches))

    def run(self) -> Race:
        best = self._halve()
        doubted = [arm for arm in range(len(self._values)) if arm != best]
        for n_instances in self._batches:
            doubted = [arm for arm in doubted if arm != best and not self._row(arm, best).is_worse]
            if not doubted:
                break
            doubted = self._measured([*doubted, best], n_instances)
            best = doubted[0]
        return self._ended(best)

    def _halve(self) -> int:
        """Return the arm that is left when the better half of those that run goes on each time."""
        running = list(range(len(self._values)))
        for n_instances in self._batches:
            running = self._measured(running, n_instances)
            hopeful = [arm for arm in running if not self._row(arm, running[0]).is_worse]
            running = hopeful[: max(1, len(running) // 2)]
            if len(running) == 1:
                break
        return running[0]

    def _measured(self, arms: list[int], n_instances: int) -> list[int]:
        """Return *arms*, the best first, once they have run on so many instances."""
        for arm in arms:
            values = self._values[arm]
            values += (self._measure(arm, i) for i in range(len(values), n_instances))
        # By number where means are equal: it is the order in which they were given.
        return sorted(
            arms, key=lambda arm: (statistics.fmean(self._values[arm][:n_instances]), arm)
        )

    def _ended(self, best: int) -> Race:
        rows = [self._row(arm, best) for arm in range(len(self._values))]
        rows.sort(key=lambda row: (row.arm != best, row.is_worse, row.mean, row.arm))
        return Race(best, tuple(rows), sum(map(len, self._values)))

    def _row(self, arm: int, best: int) -> ArmRow:
        pairs = list(zip(self._values[arm], self._values[best], strict=False))
        differences = [own - least for own, least in pairs]
        mean = statistics.fmean(differences)
        # Of a single instance nothing is drawn: what it says is so.
        is_exact = self._n_instances == 1 or len(set(differences)) == 1 < len(differences)
        low, high = (mean, mean) if is_exact else _interval(differences, self._chance)
        is_worse = arm != best and low is not None and low > 0
        return ArmRow(arm, len(pairs), mean, low, high, is_worse)


def _interval(differences: list[float], chance: float) -> tuple[float | None, float | None]:
    """Return Student's interval of the mean of *differences*, of two or more that vary."""
    if len(differences) < _LEAST:
        return None, None
    return seed_interval(differences, chance)


def _batches(n_instances: int, first_batch: int) -> list[int]:
    """Return how many instances there have been after each round.

    >>> _batches(100, 8), _batches(5, 8)
    ([8, 16, 32, 64, 100], [5])
    """
    batches = [min(first_batch, n_instances)]
    while batches[-1] < n_instances:
        batches.append(min(2 * batches[-1], n_instances))
    return batches
