"""What a study would run, and about how long that takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from h3sim.study.executors import workers_of
from h3sim.study.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.study.work import Cells

__all__ = ["StudyPlan", "plan_cells"]

_CHUNK = 1000
_PROBED, _PROBE_S = 24, 2.0
_GOLDEN = 0.618033988749895
"""The fractions of its multiples are spread evenly, however many there are (Weyl)."""


class StudyPlan(NamedTuple):
    """What a study would run: how many loads, how many are known, and how long the rest takes."""

    loads: int
    reused: int
    to_run: int
    workers: int
    seconds: float
    """On one worker, by a few loads that were tried."""

    def __str__(self) -> str:
        long = self.seconds / self.workers
        shown = f"{long:.1f} s" if long < 90 else f"{long / 60:,.0f} min"
        return (
            f"{self.loads:,} loads: {self.reused:,} known, {self.to_run:,} to run,"
            f" about {shown} on {self.workers} workers"
        )


def plan_cells(
    cells: Cells, *, store: str | Path | None = None, workers: int | None = None
) -> StudyPlan:
    """Return what would run, after trying a few *cells* from all over the study; none is kept.

    Few cells that take very long are easily missed, and then it takes longer than is said.

    Raises:
        StoreError: if the store cannot be read.
    """
    n_cells = len(cells)
    n_missing = n_cells if store is None else _missing(cells, store)
    work, spent, n_tried = cells.work(), 0.0, 0
    while n_tried < min(_PROBED, n_cells) and spent <= _PROBE_S:
        spent += work.run(int(n_tried * _GOLDEN % 1 * n_cells)).seconds
        n_tried += 1
    seconds = spent / n_tried * n_missing
    return StudyPlan(n_cells, n_cells - n_missing, n_missing, workers_of(workers), seconds)


def _missing(cells: Cells, store: str | Path) -> int:
    """Return how many of *cells* the store does not know; one that is not there knows none."""
    # A store that is not there would be refused, as it is only read here.
    if not os.path.exists(store):  # noqa: PTH110 - text or path
        return len(cells)
    keys, n_missing = cells.keys(), 0
    with Store(store, may_write=False) as known:
        for first in range(0, len(cells), _CHUNK):
            some = range(first, min(first + _CHUNK, len(cells)))
            wanted = [keys.key(index) for index in some]
            done = {
                key
                for key, outcome in known.known(wanted).items()
                if outcome.error is not None
                or outcome.resources is not None
                or not cells.has_resources
            }
            n_missing += sum(key not in done for key in wanted)
    return n_missing
