"""Simulated figures over measured ones, setting by setting."""

from __future__ import annotations

import functools
import statistics
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from validation.measured import Run, Setting, read_runs
from validation.modelled import Figures, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Compared", "compare", "replay"]

SEEDS = 30
_WORKERS = 2


class Compared(NamedTuple):
    """How near the simulation of one setting comes; None where there is nothing to compare.

    *total* and *mean* (of completions) are simulated over measured; *worst* is the deviation of
    total time in the run that comes out worst. The pairs are (simulated, measured): the mean
    completion over that of fifo in the same cell, and the bytes blocked over those of fifo.
    """

    setting: Setting
    total: float
    mean: float
    worst: float | None
    hol_bytes: tuple[float, float]
    mean_to_fifo: tuple[float, float] | None
    hol_to_fifo: tuple[float, float] | None


class _Pair(NamedTuple):
    """The figures of one setting, both medians, and total times over measured ones, run by run."""

    setting: Setting
    simulated: Figures
    measured: Figures
    totals: tuple[float, ...]
    means: tuple[float, ...]


def compare(settings: Sequence[Setting], *, without: str | None = None) -> list[Compared]:
    """Return the comparison of medians: over 30 seeds where the link adds loss, else one load."""
    jobs = [(s, seed, None) for s in settings for seed in range(SEEDS if s.loss else 1)]
    by_setting = _simulated(jobs, without)
    pairs = []
    for setting in settings:
        figures = [figures for figures, _ in by_setting[setting.name]]
        measured = Figures(setting.total_ms, setting.mean_ms, setting.hol_bytes)
        simulated = _medians(figures)
        total, mean = simulated.total_ms / measured.total_ms, simulated.mean_ms / measured.mean_ms
        pairs.append(_Pair(setting, simulated, measured, (total,), (mean,)))
    return _compared(pairs, has_runs=False)


def replay(settings: Sequence[Setting], *, without: str | None = None) -> list[Compared]:
    """Return the comparison run by run, each with the random losses that it met.

    What the queue drops is not replayed: that is the simulated queue's to decide.
    """
    known = {s.name: s for s in settings if s.loss}
    runs = [run for run in read_runs() if run.setting in known] if known else []
    jobs = [(known[run.setting], number, run) for number, run in enumerate(runs)]
    pairs = []
    for name, found in _simulated(jobs, without).items():
        both = [(figures, runs[number]) for figures, number in found]
        measured = _medians([_figures_of(run) for _, run in both])
        totals = tuple(figures.total_ms / run.total_ms for figures, run in both)
        means = tuple(figures.mean_ms / run.mean_ms for figures, run in both)
        simulated = _medians([figures for figures, _ in both])
        pairs.append(_Pair(known[name], simulated, measured, totals, means))
    return _compared(pairs, has_runs=True)


_Job = tuple[Setting, int, Run | None]


def _simulated(jobs: Sequence[_Job], without: str | None) -> dict[str, list[tuple[Figures, int]]]:
    """Return by setting the figures of each job that did not stall, with the job's seed."""
    found: dict[str, list[tuple[Figures, int]]] = {}
    with ProcessPoolExecutor(max_workers=_WORKERS) as pool:
        results = pool.map(functools.partial(_simulate, without=without), jobs, chunksize=8)
        for (setting, seed, _), figures in zip(jobs, results, strict=True):
            if figures is not None:
                found.setdefault(setting.name, []).append((figures, seed))
    return found


def _simulate(job: _Job, *, without: str | None) -> Figures | None:
    return simulate(*job, without=without)


def _figures_of(run: Run) -> Figures:
    return Figures(run.total_ms, run.mean_ms, run.hol_bytes)


def _medians(figures: Sequence[Figures]) -> Figures:
    return Figures(*(statistics.median(values) for values in zip(*figures, strict=True)))


def _compared(pairs: Sequence[_Pair], *, has_runs: bool) -> list[Compared]:
    fifo = {pair.setting.cell: pair for pair in pairs if pair.setting.scheme == "fifo"}
    return [
        Compared(
            pair.setting,
            statistics.median(pair.totals),
            statistics.median(pair.means),
            max((abs(total - 1) for total in pair.totals), default=0) if has_runs else None,
            (pair.simulated.hol_bytes, pair.measured.hol_bytes),
            _to_fifo(pair, fifo.get(pair.setting.cell), lambda figures: figures.mean_ms),
            _to_fifo(pair, fifo.get(pair.setting.cell), lambda figures: figures.hol_bytes),
        )
        for pair in pairs
    ]


def _to_fifo(
    pair: _Pair, fifo: _Pair | None, of: Callable[[Figures], float]
) -> tuple[float, float] | None:
    """Return (simulated, measured) of a figure over that of fifo, None where fifo has none."""
    if fifo is None or pair is fifo or not of(fifo.simulated) or not of(fifo.measured):
        return None
    return of(pair.simulated) / of(fifo.simulated), of(pair.measured) / of(fifo.measured)
