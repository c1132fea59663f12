"""`python -m benchmarks.million`: a study of a million loads, planned, interrupted, summed up.

What stands in for a load only says which it is: measured is what studies add. Each step is a
process of its own, and prints the most memory that it held.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.options import parser_of
from h3sim.study import Results, Study, load_study, read_results
from h3sim.study.worker import LoadWork

__all__ = ["STEPS", "run_step", "study"]

_MB = 1024
"""Linux says in kB how much memory a process held."""
LOADS = 1_000_000
_SCHEMES = ("rr", "fifo", "dfifo", "bucket-html")
_NETWORKS = ("4g", "cable")


class _Work(LoadWork):
    """Loads that are not run."""

    def row(self, index: int) -> tuple[str, str | None]:
        """Return a row with a figure that its seed decides."""
        cell = self.design[index]
        row = {
            "page": cell.page.name,
            "network": cell.options["network"].name,
            "scheme": cell.scheme.name,
            "seed": cell.seed,
            "page_load_ms": 1000.0 + cell.seed * 7919 % 1000,
        }
        return json.dumps(row), None


class _Study(Study):
    """Study of such loads."""

    figures = ("page_load_ms",)

    def work(self) -> LoadWork:
        return _Work(design=self.design)


def study(loads: int) -> Study:
    """Return a study of so many loads."""
    n_seeds = loads // (len(_SCHEMES) * len(_NETWORKS))
    made = load_study("davies-meenan", schemes=_SCHEMES, network=list(_NETWORKS), seeds=n_seeds)
    return _Study(design=made.design)


class _HalfWayError(Exception):
    pass


def _plan(loads: int, store: Path) -> str:
    return str(study(loads).plan(store=store, workers=1))


def _interrupt(loads: int, store: Path) -> str:
    def stop(done: int, total: int) -> None:
        if 2 * done >= total:
            raise _HalfWayError

    try:
        study(loads).run(store=store, executor="serial", progress=stop)
    except _HalfWayError:
        return "stopped half way"
    return "was not stopped"


def _resume(loads: int, store: Path) -> str:
    return str(study(loads).run(store=store, executor="serial", progress=False).counts)


def _again(loads: int, store: Path) -> str:
    return str(study(loads).run(store=store, workers=2, progress=False).counts)


def _sum_up(loads: int, store: Path) -> str:
    results: Results = read_results(store)
    rows = list(results.summary("page_load_ms", by=["network", "scheme"]))
    counted = sum(row["n"] for row in rows)
    if counted != loads:
        raise AssertionError(f"{counted:,} of {loads:,} loads are there")
    return f"{len(rows)} means of {counted:,} loads"


def _export(loads: int, store: Path) -> str:
    del loads
    read_results(store).to_csv(store.with_suffix(".csv"))
    return f"{store.with_suffix('.csv').stat().st_size / 1e6:,.0f} MB of CSV"


STEPS = {
    "plan": _plan,
    "run, interrupted": _interrupt,
    "plan the rest": _plan,
    "resume": _resume,
    "run again": _again,
    "sum up": _sum_up,
    "export": _export,
}


def run_step(name: str, loads: int, store: Path) -> str:
    """Return what a step says, how long it took and how much memory it held at most."""
    began = time.perf_counter()
    reported = STEPS[name](loads, store)
    took_s = time.perf_counter() - began
    held_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MB
    return f"{name:<17} {took_s:6.1f} s {held_mb:6.0f} MB  {reported}"


def main(loads: int = LOADS) -> None:
    """Run each step in a process of its own, one after the other, on one store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "study.db"
        for name in STEPS:
            step = (str(loads), "--step", name, "--store", str(store))
            subprocess.run([sys.executable, "-m", "benchmarks.million", *step], check=True)
        print(f"the store: {store.stat().st_size / 1e6:,.0f} MB")


if __name__ == "__main__":
    parser = parser_of(__doc__)
    parser.add_argument(
        "loads", nargs="?", type=int, default=LOADS, help="how many; default: %(default)s"
    )
    parser.add_argument(
        "--step", choices=STEPS, metavar="NAME", help=f"one step alone: {'; '.join(STEPS)}"
    )
    parser.add_argument(
        "--store", type=Path, default="study.db", help="its store; default: %(default)s"
    )
    options = parser.parse_args()
    if options.step is None:
        main(options.loads)
    else:
        print(run_step(options.step, options.loads, options.store))
