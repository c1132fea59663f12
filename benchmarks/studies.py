"""`python -m benchmarks.studies`: what a sweep adds to a load, and what a worker more saves."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from benchmarks.options import parser_of
from benchmarks.probes import with_heapq
from h3sim.load import LoadConfig
from h3sim.load.run import resolve, run_spec
from h3sim.page import Page
from h3sim.study import Range
from h3sim.study.worker import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from h3sim.study import Study
    from h3sim.study.design import DesignPoint

__all__ = ["studies"]

_ROUNDS = 5
_FEW_ROUNDS = 3
_SMALL = "corpus:small"
_SCHEMES = ("rr", "fifo", "bucket-html")
_SEEDS = 2
_MANY_SEEDS = 4
"""So many that the time in which processes start does not decide what a second one is worth."""
_SETTINGS = 256


def studies() -> str:
    """Return loads a second, here and in processes, and the cost of batches, store and rows."""
    return "\n\n".join((_overhead(), _workers(), _own_settings()))


def _swept(study: Study, executor: str, workers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "study.db"
        study.run(store=store, executor=executor, workers=workers, progress=False)


def _alone(study: Study, *, with_rows: bool = False) -> None:
    """Load what *study* has, which is all over one setting, without its machinery."""
    config = LoadConfig(**study.design.settings[0])
    for cell in study.design:
        load = run_spec(replace(resolve(_page(cell), cell.scheme, config), seed=cell.seed))
        if with_rows:
            row_of(load)


def _page(cell: DesignPoint) -> Page:
    if not isinstance(cell.page, Page):
        raise TypeError("header lists are not timed")
    return cell.page


def _probed(study: Study) -> None:
    """Send the bytes of each load through the smallest simulator of `reference_page`."""
    for cell in study.design:
        with_heapq([resource.size_bytes for resource in _page(cell).resources])


def _least_s(ways: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Return the least time of each way, by the clock: workers have processor time of their own."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - began)
    return least


def _overhead() -> str:
    study = h3sim.load_study(_SMALL, schemes=_SCHEMES, seeds=_SEEDS)
    least = _least_s(
        {
            "probe: bare heapq, the same bytes": lambda: _probed(study),
            "loads alone": lambda: _alone(study),
            "loads and their rows": lambda: _alone(study, with_rows=True),
            "a sweep with a store, here": lambda: _swept(study, "serial", 1),
            "a sweep with a store, 1 process": lambda: _swept(study, "processes", 1),
            "a sweep with a store, 2 processes": lambda: _swept(study, "processes", 2),
        },
        _ROUNDS,
    )
    n, alone = len(study), least["loads alone"]
    rows = [
        (name, f"{n / took:,.0f}", f"{took / alone:.2f}", f"{1000 * (took - alone) / n:.3f}")
        for name, took in least.items()
    ]
    headers = (f"{n} loads of {_SMALL}", "loads/s", "x loads alone", "more ms a load")
    return tabulate(rows, headers, disable_numparse=True, colalign=("left", *["right"] * 3))


def _workers() -> str:
    """Return how long the whole corpus takes with each scheme of Marx 2019 at a constant rate."""
    study = h3sim.load_study("corpus", schemes="marx-2019", seeds=_MANY_SEEDS)
    least = _least_s(
        {f"{n} worker{'s' * (n > 1)}": lambda n=n: _swept(study, "processes", n) for n in (1, 2)},  # type: ignore[misc]
        _FEW_ROUNDS,
    )
    n, one = len(study), least["1 worker"]
    rows = [
        (name, f"{took:.1f}", f"{1000 * took / n:.1f}", f"{n / took:,.0f}", f"{one / took:.2f}")
        for name, took in least.items()
    ]
    headers = (f"{n:,} loads of the corpus", "s", "s per 1,000", "loads/s", "x one worker")
    return tabulate(rows, headers, disable_numparse=True, colalign=("left", *["right"] * 4))


def _own_settings() -> str:
    """Return what it adds that each load has settings of its own, as samples have."""
    shared: dict[str, object] = {"schemes": "fifo", "network": "cable"}
    same = h3sim.load_study("creative", seeds=_SETTINGS, rtt_ms=50, **shared)  # type: ignore[arg-type]
    own = h3sim.load_study(
        "creative", samples=_SETTINGS, rtt_ms=Range(low=49.9, high=50.1), **shared  # type: ignore[arg-type]
    )  # fmt: skip
    least = _least_s(
        {
            "loads alone, one setting": lambda: _alone(same),
            "a sweep over seeds, here": lambda: _swept(same, "serial", 1),
            "a sweep over as many settings, here": lambda: _swept(own, "serial", 1),
        },
        _ROUNDS,
    )
    alone = least["loads alone, one setting"]
    rows = [
        (name, f"{_SETTINGS / took:,.0f}", f"{1000 * (took - alone) / _SETTINGS:.3f}")
        for name, took in least.items()
    ]
    headers = (f"{_SETTINGS} loads of creative over cable", "loads/s", "more ms a load")
    return tabulate(rows, headers, disable_numparse=True, colalign=("left", "right", "right"))


if __name__ == "__main__":
    parser_of(__doc__).parse_args()
    print(studies())
