"""What runs say together: medians over seeds, differences relative to the baseline, losses."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from h3sim.papers.estimates import Estimate, median, share
from validation.sander_runs import BASELINE, CELLS, Outcome, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["CLEAR", "Deltas", "Losses", "Results"]

CLEAR = 0.05
"""The difference from which on the paper counts a site as better or worse."""
_EPSILON = 1e-10


class Deltas(NamedTuple):
    """Differences of a figure to the baseline's, one for each page, relative to it."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median over pages."""
        return statistics.median(self.values)

    @property
    def less(self) -> int:
        """How many pages have less of it, by more than 5 %."""
        return sum(value < -CLEAR for value in self.values)

    @property
    def more(self) -> int:
        """How many pages have more of it, by more than 5 %."""
        return sum(value > CLEAR for value in self.values)

    @property
    def equal(self) -> float:
        """The share of pages on which nothing differs."""
        return self.share(lambda value: value == 0).value

    @property
    def estimate(self) -> Estimate:
        """The median over pages with its interval."""
        return median(self.values)

    def share(self, is_counted: Callable[[float], bool]) -> Estimate:
        """Return the share of pages whose difference is counted, with its interval."""
        return share(map(is_counted, self.values))


class Losses(NamedTuple):
    """Losses over the loads of a cell, whatever the scheme."""

    rates: tuple[float, ...]
    bursts: dict[int, int]
    by_page: tuple[tuple[float, ...], ...] = ()
    """The same rates, those of each page together: pages are drawn for intervals."""

    @property
    def without(self) -> float:
        """The share of loads that lost nothing."""
        return sum(rate == 0 for rate in self.rates) / len(self.rates)

    def rate_at(self, share: float, *, only_with: bool = False) -> float:
        """Return the rate below which that *share* of loads lies; of those with loss, if asked."""
        rates = sorted(rate for rate in self.rates if rate or not only_with)
        return rates[min(int(share * len(rates)), len(rates) - 1)] if rates else 0.0

    @property
    def longest(self) -> int:
        """The longest burst, in packets."""
        return max(self.bursts, default=0)

    @property
    def mean_burst(self) -> float:
        """The mean burst, in packets."""
        n = sum(self.bursts.values())
        return sum(length * times for length, times in self.bursts.items()) / n if n else 0.0

    def burst_at(self, share: float) -> int:
        """Return the length that so much of the lost packets do not exceed, each in its burst."""
        lost = sum(length * times for length, times in self.bursts.items())
        seen = 0
        for length, times in sorted(self.bursts.items()):
            seen += length * times
            if seen >= share * lost:
                return length
        return 0


class Results:
    """The outcomes of runs, by cell, page and scheme; `positions` are those of the pages loaded."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.repeated: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.positions: list[int] = []
        self._outcomes: dict[tuple[str, str], dict[int, list[Outcome]]] = {}
        for run in runs:
            self.repeated[run.job.network] += run.repeated
            self.dropped[run.job.network] += not run.outcomes
            for scheme, outcome in run.outcomes.items():
                by_page = self._outcomes.setdefault((run.job.network, scheme), {})
                by_page.setdefault(run.job.page, []).append(outcome)
        found = (position for by_page in self._outcomes.values() for position in by_page)
        self.positions += sorted(dict.fromkeys(found))

    def hol(self, network: str, scheme: str, *, to: str = BASELINE) -> Deltas:
        """Return the differences in bytes blocked."""
        return self._deltas(network, scheme, to, lambda outcome: outcome.hol_bytes)

    def speed(self, network: str, scheme: str, *, to: str = BASELINE) -> Deltas:
        """Return the differences in what stands in for SpeedIndex."""
        return self._deltas(network, scheme, to, lambda outcome: outcome.speed_index_ms)

    def bytes(self, network: str, scheme: str, *, to: str = BASELINE) -> Deltas:
        """Return the differences in ByteIndex."""
        return self._deltas(network, scheme, to, lambda outcome: outcome.byte_index_ms)

    def losses(self, network: str, schemes: Sequence[str]) -> Losses:
        """Return the losses of all loads of a cell with any of *schemes*."""
        outcomes = [
            outcome
            for scheme in schemes
            for of_page in self._outcomes[network, scheme].values()
            for outcome in of_page
        ]
        bursts: Counter[int] = Counter()
        for outcome in outcomes:
            bursts.update(outcome.bursts)
        of_pages: dict[int, list[float]] = {}
        for scheme in schemes:
            for page, of_page in self._outcomes[network, scheme].items():
                of_pages.setdefault(page, []).extend(map(_rate, of_page))
        rates = tuple(map(_rate, outcomes))
        by_page = tuple(tuple(of_pages[page]) for page in sorted(of_pages))
        return Losses(rates, dict(bursts), by_page)

    def title(self, network: str) -> str:
        """Return how tables call a cell."""
        return CELLS[network].title

    def _deltas(
        self, network: str, scheme: str, to: str, figure: Callable[[Outcome], float]
    ) -> Deltas:
        ours, theirs = self._outcomes[network, scheme], self._outcomes[network, to]
        medians = (
            (statistics.median(map(figure, ours[n])), statistics.median(map(figure, theirs[n])))
            for n in sorted(ours)
        )
        return Deltas(tuple((a - b) / (b + _EPSILON) for a, b in medians))


def _rate(outcome: Outcome) -> float:
    """Return the share of packets that a load lost."""
    return outcome.lost / max(outcome.sent, 1)
