"""What a sweep adds to a load, and what a second worker is worth."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from h3sim import engine
from h3sim.study import LoadConfig
from h3sim.study.cells import row_of
from h3sim.study.run import engine_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["studies"]

_ROUNDS = 5
_PAGES = "corpus:small"
_SCHEMES = ("rr", "fifo", "bucket-html")
_SEEDS = 2


def studies() -> str:
    """Return loads a second, here and in processes, and the cost of batches, store and rows."""
    study = h3sim.study_of(_PAGES, schemes=_SCHEMES, seeds=_SEEDS)
    n = len(study.design)
    arguments = engine_arguments(LoadConfig())

    def plain(*, with_rows: bool) -> None:
        for cell in study.design:
            load = engine.simulate(cell.page, scheme=cell.scheme, seed=cell.seed, **arguments)
            if with_rows:
                row_of(load)

    def swept(executor: str, workers: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            study.run(
                store=Path(folder) / "study.db", executor=executor, workers=workers, progress=False
            )

    ways: dict[str, Callable[[], None]] = {
        "loads alone": lambda: plain(with_rows=False),
        "loads and their rows": lambda: plain(with_rows=True),
        "a sweep with a store, here": lambda: swept("serial", 1),
        "a sweep with a store, 1 process": lambda: swept("processes", 1),
        "a sweep with a store, 2 processes": lambda: swept("processes", 2),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(_ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            least[name] = min(least[name], time.perf_counter() - began)
    alone = least["loads alone"]
    rows = [
        (name, f"{n / took:,.0f}", f"{took / alone:.2f}", f"{1000 * (took - alone) / n:.3f}")
        for name, took in least.items()
    ]
    headers = (f"{n} loads of {_PAGES}", "loads/s", "x loads alone", "more ms a load")
    return tabulate(rows, headers, disable_numparse=True, colalign=("left", *["right"] * 3))
