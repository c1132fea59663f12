"""When a study that adds seeds by itself has enough of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from h3sim.documents.declared import says, settle
from h3sim.documents.values import Number, Text, Whole
from h3sim.errors import InputError

__all__ = ["StoppingRule"]

_FIRST, _GROWTH = 8, 1.5
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Add seeds until the interval of each scheme's speedup is narrower than *width*.

    Raises:
        InputError: listing every value that is out of range.

    >>> StoppingRule(width=0.05, most_seeds=50).looks
    (8, 12, 18, 27, 40, 50)
    """

    width: float = field(
        metadata=says(
            Number(low=0, high=1, is_above=True, example="0.05 is 5 %"),
            "the upper end of an interval by its lower, less 1",
        )
    )
    baseline: str = field(
        default="rr", metadata=says(Text(is_needed=True), "the scheme that speedups are to")
    )
    value: str = field(
        default="byte_index_all_ms", metadata=says(Text(is_needed=True), "the column of figures")
    )
    confidence: float = field(
        default=0.95,
        metadata=says(
            Number(low=0, high=1, is_above=True, is_below=True),
            "how often the interval of a scheme covers its speedup, wherever one stops",
        ),
    )
    most_seeds: int = field(
        default=_MOST, metadata=says(Whole(low=2, high=10**6), "how many seeds there are at most")
    )

    def __post_init__(self) -> None:
        settle(self, InputError)

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many seeds one looks: from 8 on, each time half as many again."""
        found, n_seeds = [], min(_FIRST, self.most_seeds)
        # Fewer than 8 only where that is the most, so half as many again is always more.
        while n_seeds < self.most_seeds:
            found.append(n_seeds)
            n_seeds = int(n_seeds * _GROWTH)
        return (*found, self.most_seeds)

    @property
    def level(self) -> float:
        """The chance of missing a speedup that each look may spend."""
        return (1 - self.confidence) / len(self.looks)
