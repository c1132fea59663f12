"""Sweeps in several processes, on other executors and on a dask cluster: the same rows."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.cli.main import exits_on_sigterm
from h3sim.headers.base import HeaderLists, TimedSection
from h3sim.study import load_study, runner, sweep
from h3sim.study.runner import WorkerPool
from h3sim.study.store import Store
from h3sim.values.errors import InputError, Terminated
from h3sim.values.units import ms
from tests import interrupting, standins
from tests.effort import HANG_S, IS_THOROUGH
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 28_000}
IMAGE = {"id": "a", "kind": "image", "bytes": 14_000, "discovered": {"by": "/", "at": "request"}}
PAGE = page_of(ROOT, IMAGE)
ARGUMENTS: dict[str, Any] = {
    "schemes": ["rr", "fifo"],
    "seeds": 4,
    "rtt_ms": [0, 50],
    "loss": [0.0, 0.05],
}


def stood_in(stand_in: Any, n_seeds: int = 20, marks: str = "") -> Any:
    page = replace(PAGE, provenance={"marks": str(marks)})
    study = load_study(page, schemes=["rr", "fifo"], seeds=n_seeds)
    return standins.standing_in(study, stand_in)


@pytest.fixture(scope="module")
def serial() -> Any:
    return list(sweep(PAGE, executor="serial", **ARGUMENTS))


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_rows_of_one(serial: Any, workers: Any) -> None:
    results = sweep(PAGE, executor="processes", workers=workers, **ARGUMENTS)
    assert list(results) == serial
    assert results.counts == (0, len(serial), 0)


def test_any_executor_gives_the_same_rows(serial: Any) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert list(sweep(PAGE, executor=executor, **ARGUMENTS)) == serial


def test_a_study_chooses_where_it_runs(serial: Any) -> None:
    assert list(sweep(PAGE, **ARGUMENTS)) == serial


def test_a_worker_that_dies_costs_nothing_but_time(tmp_path: Path) -> None:
    results = stood_in(standins.die_once, marks=tmp_path).run(executor="processes", workers=2)  # type: ignore[arg-type]
    assert results.counts == (0, 40, 0)
    assert list(results) == list(stood_in(standins.reported).run(executor="serial"))


class BreakingPool(WorkerPool):
    """Its first worker dies while its second asks for the study; from then on all is well."""

    workers = 2

    def __init__(self) -> None:
        self._n_submitted = 0

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._n_submitted += 1
        if self._n_submitted == 1:
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(None if self._n_submitted == 2 else function(*arguments))
        return future

    def renew(self) -> bool:
        return True


def test_a_batch_whose_worker_requested_the_study_is_not_lost_with_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "pool_of", lambda *_, **__: BreakingPool())
    assert stood_in(standins.reported).run(executor="processes", workers=2).counts == (0, 40, 0)


def test_a_request_to_end_is_no_failure_of_the_load_that_it_met(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    with exits_on_sigterm(), pytest.raises(Terminated, match="143"):
        stood_in(standins.be_asked_to_end).run(executor="serial", store=path)
    with Store(path) as store:
        assert store.counts()[0][1:3] == (5, 0)


class CountingExecutor:
    """Runs each batch at once, and bears to be asked for its workers so often only."""

    def __init__(self) -> None:
        self._n_asked = 0

    @property
    def _max_workers(self) -> int:
        self._n_asked += 1
        assert self._n_asked < 10_000, "the driver goes round and round"
        return 2

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


# More cells than are looked up in the store at once: the rest is looked up after the other sweep.
SEEDS_MEANWHILE = 600


def with_another_sweep(cell: Any) -> Any:
    """Run the whole study elsewhere while its first load runs; the page names the store."""
    if cell.seed == 0 and cell.scheme.name == "rr":
        store = cell.page.provenance["marks"]
        stood_in(standins.reported, SEEDS_MEANWHILE, store).run(store=store, executor="serial")
    return standins.reported(cell)


def test_a_sweep_ends_when_another_one_has_finished_its_cells_meanwhile(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    study = stood_in(with_another_sweep, SEEDS_MEANWHILE, str(store))
    results = study.run(store=store, executor=CountingExecutor())
    assert results.counts.reused > 0
    assert sum(results.counts) == len(results) == len(study)


def test_a_load_that_kills_its_worker_fails_and_the_others_stand() -> None:
    results = stood_in(standins.die_always, 8).run(executor="processes", workers=2)
    assert results.counts == (0, 14, 2)
    assert [error.partition(": ")[0] for error in results.errors] == [
        "page, rr, seed 5",
        "page, fifo, seed 5",
    ]
    assert "the worker that ran it died each time" in results.errors[0]


def test_code_that_no_module_has_runs_on_workers() -> None:
    study = stood_in(lambda cell: {"seed": cell.seed})
    assert study.run(executor="processes", workers=2).counts == (0, 40, 0)


def test_what_cannot_be_sent_to_workers_is_refused() -> None:
    lock = threading.Lock()
    study = stood_in(lambda _: {"locked": lock.locked()})
    with pytest.raises(InputError, match=r"cannot be sent to workers.*executor='serial'"):
        study.run(executor="processes", workers=2)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_driver_that_is_ended_loses_nothing_and_leaves_no_worker(
    tmp_path: Path, sent: Any
) -> None:
    store = tmp_path / "study.db"
    driver = interrupting.driver_of(store)
    time.sleep(1.2)
    driver.send_signal(sent)
    driver.wait(timeout=HANG_S)
    assert interrupting.ended(driver.pid)
    results = interrupting.study().run(store=store, executor="serial")
    assert sum(results.counts[:2]) == 2 * interrupting.SEEDS
    assert list(results) == list(interrupting.study().run(executor="serial"))


def test_sweeps_that_are_killed_at_random_moments_lose_nothing() -> None:
    assert interrupting.kill_often(10 if IS_THOROUGH else 4) == []


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_gives_the_same_rows(cluster: Any, serial: Any) -> None:
    assert list(sweep(PAGE, executor=cluster, **ARGUMENTS)) == serial


@pytest.mark.filterwarnings("ignore")
def test_headers_run_on_a_dask_cluster_too(cluster: Any) -> None:
    fields = ((b":method", b"GET"), (b":path", b"/"))
    sections = [TimedSection(ms(5 * n), (*fields, (b"x-n", b"%d" % n))) for n in range(9)]
    lists = HeaderLists.of(sections)
    cells: dict[str, Any] = {
        "schemes": "rr",
        "header_compression": "qpack",
        "loss": 0.1,
        "seeds": 4,
    }
    found = sweep(lists, executor=cluster, **cells)
    assert found.counts == (0, 4, 0)
    assert list(found) == list(sweep(lists, executor="serial", **cells))


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_dies_costs_nothing_but_time(cluster: Any, tmp_path: Path) -> None:
    results = stood_in(standins.die_once, marks=tmp_path).run(executor=cluster)  # type: ignore[arg-type]
    assert results.counts == (0, 40, 0)
    assert list(results) == list(stood_in(standins.reported).run(executor="serial"))


@pytest.mark.filterwarnings("ignore")
def test_dask_workers_that_join_late_take_part(cluster: Any, tmp_path: Path) -> None:
    """The driver counts workers anew for each batch: one joins after the first loads are done."""
    study = stood_in(standins.waiting_and_marking, 100, str(tmp_path))
    asked: list[int] = []

    def add_one(done: int, total: int) -> None:
        if not asked and done < total:
            asked.append(done)
            cluster.cluster.scale(3)
            cluster.wait_for_workers(3, timeout=HANG_S)

    results = study.run(executor=cluster, progress=add_one)
    assert asked
    assert results.counts == (0, 200, 0)
    assert len(list(tmp_path.iterdir())) >= 3  # a mark of each process that ran a load


# What a user writes in a first script: no function, no guard, a class of its own.
SCRIPT = """
import h3sim
from h3sim.schedulers import RoundRobinScheduler

class Mine(RoundRobinScheduler):
    pass

results = h3sim.sweep(["davies-meenan"], scheduler=["fifo", Mine], seeds=3, workers=2)
print([(row["scheme"], row["seed"]) for row in results], *results.errors)
"""


@pytest.mark.parametrize("is_piped", [False, True])
def test_a_script_without_a_main_guard_runs_on_workers(tmp_path: Path, is_piped: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-" if is_piped else str(script)],
        input=SCRIPT if is_piped else None,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stderr == ""
    expected = [(name, seed) for name in ("fifo", "Mine") for seed in range(3)]
    assert done.stdout == f"{expected}\n"


def test_workers_that_cannot_start_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class NeverStarting(WorkerPool):
        workers = 2

        def submit(self, function: Any, *arguments: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor())
            return future

        def renew(self) -> bool:
            return True

    monkeypatch.setattr(runner, "pool_of", lambda *_, **__: NeverStarting())
    with pytest.raises(InputError, match="workers die while starting"):
        stood_in(standins.reported).run(executor="processes", workers=2)


def test_processes_are_as_many_as_the_cores_that_may_be_used() -> None:
    """What `taskset`, a container or a cluster leaves of a large machine."""
    code = (
        "import os; from h3sim.study.runner import worker_count\n"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        "print(worker_count(None), worker_count(7))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True
    )
    assert done.stdout == "1 7\n"


def test_no_more_processes_start_than_there_are_loads() -> None:
    results = stood_in(standins.reported, 1).run(executor="processes", workers=5000)
    assert results.counts == (0, 2, 0)
