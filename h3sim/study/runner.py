"""The runner of a study: hands batches of cells to processes or a cluster, stores results.

`compare`, `search`, `optimality` and the others list their loads as tasks and say what is measured
of each; workers, progress, stores and resumption are the business of the runner.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import importlib.util
import inspect
import io
import itertools
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import types
import warnings
from collections import Counter, deque
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from h3sim.config.load_config import LoadConfig, config_of, with_fields
from h3sim.config.options import check_running
from h3sim.errors import H3SimError, InputError, interrupt_note, needing_extra
from h3sim.notebook import in_notebook
from h3sim.results import Load, in_words
from h3sim.schema.arguments import ErrorCollector
from h3sim.schema.files import shown_path
from h3sim.study import cache_key
from h3sim.study.rows import Counts, Stored, is_row_of
from h3sim.study.run import run_config
from h3sim.study.store import CellOutcome, Store
from h3sim.study.worker import Cells, Done, StudyKeys, StudyWork, run_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page
    from h3sim.schemes import Scheme


_UNKNOWN_WORKERS = 4
"""Number of workers assumed for an executor that does not reveal it."""
_MOST_ON_WINDOWS = 61
"""Most processes on Windows: `ProcessPoolExecutor` cannot wait for more handles at once."""
_MOST = 10_000
"""Most processes elsewhere: a queue's size must fit a C integer."""
_PAUSES_S = (0.0, 0.1, 1.0)
"""Pause before retrying to start a process."""


class WorkerPool:
    """Executor and its number of workers; this base class wraps a caller's and never closes it."""

    is_serial = False

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor: Any = executor  # None in pools that do without

    @property
    def workers(self) -> int:
        """Number of loads that run at once."""
        # Executors have no public attribute for it; those of the standard library have this one.
        return int(getattr(self._executor, "_max_workers", 0) or _UNKNOWN_WORKERS)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit *function* to the executor."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def renew(self) -> bool:
        """Restart after a worker died; return whether that is possible."""
        return False

    def close(self) -> None:
        """Release the resources of this pool."""


class _Serial(WorkerPool):
    """Pool without workers: each load runs immediately in this process."""

    is_serial = True

    workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* now."""
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


class _Processes(WorkerPool):
    """Processes on this machine, all restarted when one of them dies."""

    def __init__(self, workers: int) -> None:
        self._n = workers
        super().__init__(self._make_executor())

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* in one of the processes."""
        # A breaking pool closes its pipes, perhaps while a process is being started here, which
        # may also end the forkserver. On a second attempt the pool reports that it is broken, as
        # callers expect, or a new forkserver has started.
        with _without_missing_main_file():
            for pause_s in _PAUSES_S:
                try:
                    return super().submit(function, *arguments)
                except (OSError, EOFError):
                    time.sleep(pause_s)
            return super().submit(function, *arguments)

    def renew(self) -> bool:
        """Start new processes: a process that dies breaks the pool."""
        # Without waiting: a broken pool returns no more results.
        self._stop_executor()
        self._executor = self._make_executor()
        return True

    def close(self) -> None:
        """Terminate the processes and their running loads."""
        for process in self._stop_executor():
            process.join()

    def _stop_executor(self) -> list[Any]:
        """Shut the executor down; return its processes, which are terminating."""
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        # First, so that no replacement is started for a process terminated here; `shutdown` alone
        # would wait for running loads.
        self._executor.shutdown(wait=False, cancel_futures=True)
        # For broken pools as well: Python 3.11 terminates the processes that it knows and then
        # waits for all, including one that `submit` is just starting: for ever.
        for process in processes:
            process.terminate()
        return processes

    def _make_executor(self) -> ProcessPoolExecutor:
        # Not fork: threads of the parent (a notebook's, numpy's) may hold locks.
        method = (
            "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        )
        context = multiprocessing.get_context(method)
        return ProcessPoolExecutor(self._n, mp_context=context, initializer=_prepare_worker)


@contextlib.contextmanager
def _without_missing_main_file() -> Iterator[None]:
    """Hide that a program read from standard input claims to be in a file named "<stdin>".

    Processes that are started meanwhile would try to run that file, and die.
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or Path(path).is_file():
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = path


def _prepare_worker() -> None:
    """Ignore Ctrl-C, which the driver handles, and exit when the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    # `sys.exit` would end only this thread, not the process and its orphaned load.
    os._exit(1)


class _Dask(WorkerPool):
    """Workers of a `dask.distributed` cluster, whose number may change."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pending: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* on the cluster.

        The client's own executor is not used: if a worker dies while its result is fetched, it
        raises a `ValueError` instead of computing the result again.
        """
        # `pure` would return cached results of equal calls; retries are the driver's task.
        remote = self._client.submit(function, *arguments, pure=False, retries=0)
        outcome: Future[Any] = Future()
        self._pending[outcome] = remote
        remote.add_done_callback(partial(self._copy_outcome, outcome))
        return outcome

    def close(self) -> None:
        """Cancel all pending work on the cluster."""
        self._client.cancel(list(self._pending.values()))

    def _copy_outcome(self, outcome: Future[Any], remote: Any) -> None:
        """Copy the outcome of the Dask future to *outcome*; called in a client thread."""
        try:
            outcome.set_result(remote.result())
        except BaseException as error:  # noqa: BLE001 - the driver decides
            outcome.set_exception(CancelledError() if remote.cancelled() else error)
        self._pending.pop(outcome, None)

    @property
    def workers(self) -> int:
        """Number of threads of all workers; workers may join and leave."""
        return max(1, int(sum(self._client.ncores().values())))


def worker_count(workers: int | None) -> int:
    """Return the number of worker processes; None means one per core available to this process.

    There are at most 10,000, on Windows 61: a pool cannot wait for more.

    Raises:
        InputError: if *workers* is not a valid number of processes.
    """
    workers = check_running(workers=workers)["workers"]
    # The affinity respects taskset, a container's cpuset or a cluster's scheduler; more processes
    # than these cores would only compete.
    can_ask = hasattr(os, "sched_getaffinity")
    n = workers or (len(os.sched_getaffinity(0)) if can_ask else os.cpu_count()) or 1
    return min(n, _MOST_ON_WINDOWS if sys.platform == "win32" else _MOST)


def pool_of(executor: Any, workers: int | None, *, is_small: bool) -> WorkerPool:
    """Return the pool for "serial", "processes", an executor or a `dask.distributed` client.

    None chooses processes, one per core or *workers*, unless there would be only one or the study
    *is_small* and would finish before they start.

    Raises:
        InputError: if *executor* is something else.
    """
    check_running(executor=executor)
    n = worker_count(workers)
    if hasattr(executor, "get_executor") and hasattr(executor, "ncores"):
        return _Dask(executor)
    if hasattr(executor, "submit"):
        return WorkerPool(executor)
    can_fork = sys.platform not in ("emscripten", "wasi")
    if executor == "serial" or not can_fork or (executor is None and (is_small or n == 1)):
        return _Serial()
    return _Processes(n)


@contextlib.contextmanager
def dask_client(address: str | None) -> Any:
    """Yield a client of the `dask.distributed` scheduler at *address*, or None for None.

    Raises:
        MissingExtraError: if `distributed` is not installed.
        InputError: if no scheduler answers at *address*.
    """
    if address is None:
        yield None
        return
    with needing_extra("distributed", "dask"):
        import distributed  # lazy: optional dependency
    try:
        client: Any = distributed.Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        message = f"no Dask scheduler answers at {address!r}: {error}"
        raise InputError.at("--dask", message) from error
    try:
        yield client
    finally:
        client.close()


ProgressCallback: TypeAlias = "Callable[[int, int], None]"

_TASK_S = 0.5
"""Target duration of a task: long compared with the cost of submitting one."""
_MAX_BATCH = 5000
_RECENT = 200
_CHUNK = 1000
_TRIES = 3
"""Number of workers that a cell alone may lose before it counts as the cause."""
_STILLBORN = 3
"""Number of pools that may break before any worker answers; then workers cannot start."""
_DIE_AT_START = (
    "its workers die while starting: in a script, call it under `if __name__ == '__main__':`, which"
    " Python's process pools require, or use executor='serial'"
)
_SMALL_S = 2.0
"""Expected duration below which a study runs in this process: starting others would not pay."""
_REMEDY = (
    "install cloudpickle, which the extra 'study' contains, move the code into a module, or use"
    " executor='serial'"
)
_LOST = "the worker that ran it died each time (killed, or out of memory)"


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options of functions that load more than once: how loads run, and where results are kept.

    With a *store*, a file, only missing loads run, and each finished load is stored at once.
    *executor* is "serial", "processes" (one per core, or *workers*), "auto" (processes if they save
    time), an executor of `concurrent.futures` or a `dask.distributed` client. *progress* is called
    with the numbers of loads done and in all; True shows a progress bar, False none, None one in a
    terminal or notebook. Results are identical, byte for byte, for any executor and any number of
    resumptions.

    Raises:
        InputError: listing every invalid value.

    >>> Execution(workers=2).workers
    2
    """

    store: str | Path | Store | None = None
    executor: Any = None
    workers: int | None = None
    progress: ProgressCallback | bool | None = None

    def __post_init__(self) -> None:
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if isinstance(self.store, Store):
            del given["store"]
        check_running(**given)


_HOW = tuple(entry.name for entry in fields(Execution))


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return those of *options* that are fields of `Execution`, and the others."""
    how = {name: options[name] for name in options if name in _HOW}
    return how, {name: options[name] for name in options if name not in _HOW}


class CellFailedError(H3SimError):
    """Cell that failed, in a study that ends with its first failure."""

    def __init__(self, cell: int, message: str) -> None:
        super().__init__(message)
        self.cell = cell


class _Batch(NamedTuple):
    """Cells submitted to a worker together; *lost* counts the workers that died on them."""

    indices: tuple[int, ...]
    lost: int = 0
    with_payload: bool = False


class _State(enum.Enum):
    """State of a cell in the store."""

    MISSING = "missing"
    FAILED = "failed"
    DONE = "done"


class Driver:
    """Driver that runs the cells of *study* missing in *store*."""

    def __init__(self, study: Cells, store: Store, *, retry_failed: bool) -> None:
        self._study = study
        self._store = store
        self._retry_failed = retry_failed
        self._keys = study.keys()
        self._work: StudyWork = study.work()
        self._seconds: deque[float] = deque(maxlen=_RECENT)
        self._suspects: deque[_Batch] = deque()
        self._n_stillborn = 0
        self._advance: Callable[[int], None] = lambda _: None
        self.study_id = store.begin_study(self._keys.token(), study.name, len(study), study.axes)
        # Registers the study's cells in the store, and counts the missing ones.
        found = Counter(state for _, state in self._states())
        self.reused, self.ran, self.failed = found[_State.DONE], 0, found[_State.FAILED]
        self._n_pending = found[_State.MISSING]
        self._pending = self._missing()

    def _missing(self) -> Iterator[int]:
        """Yield cells that are still missing: another sweep may have run some meanwhile."""
        found: Counter[_State] = Counter()
        failed_before = self.failed
        for index, state in self._states():
            found[state] += 1
            if state is _State.MISSING:
                yield index
        # Counted again, so that cells run by another sweep count as reused.
        self.reused = found[_State.DONE]
        self.failed += found[_State.FAILED] - failed_before
        self._n_pending = 0

    def _states(self) -> Iterator[tuple[int, _State]]:
        """Yield index and state of each cell in order, read and registered chunk by chunk."""
        n = len(self._study)
        for first in range(0, n, _CHUNK):
            indices = range(first, min(first + _CHUNK, n))
            keys = self._store.keys_of(self.study_id, first, len(indices))
            if len(keys) < len(indices):
                keys = [self._keys.key(index) for index in indices]
                self._store.register_keys(self.study_id, first, keys)
            known = self._store.known(keys)
            for index, key in enumerate(keys, first):
                yield index, self._cell_state(index, known.get(key))

    def _cell_state(self, index: int, known: CellOutcome | None) -> _State:
        """Return whether the store has the row of a cell."""
        if known is None:
            return _State.MISSING
        if known.error is not None:
            return _State.MISSING if self._retry_failed else _State.FAILED
        if self._study.has_resources and known.resources is None:
            return _State.MISSING
        # A row of another cell counts as missing and is overwritten.
        columns, figures = self._study.columns(index), self._study.figures
        is_its_own = is_row_of(columns, known.row, figures=figures)
        return _State.DONE if is_its_own else _State.MISSING

    def try_some(self, seconds: float) -> bool:
        """Run a few cells here; return whether the rest would finish within *seconds*."""
        spent = 0.0
        while self._n_pending and len(self._seconds) < _RECENT:
            (index,) = self._take(1)
            done = self._work.run(index)
            self._store_outcomes([done])
            spent += done.seconds
            # At most half of the time goes into the trial, so the total stays within the limit.
            if spent > seconds / 2:
                break
        return self._n_pending * self._cost_s() < seconds

    def run(self, pool: WorkerPool, advance: Callable[[int], None]) -> None:
        """Run all missing cells; *advance* is called with the size of each stored batch."""
        self._advance = advance
        if pool.is_serial:
            self._run_here()
        else:
            self._run_in_pool(pool)

    def _run_here(self) -> None:
        """Run in this process, storing results every half second and at any exit."""
        while indices := self._take(self._batch_size(1)):
            done: list[Done] = []
            try:
                done.extend(map(self._work.run, indices))
            finally:
                self._store_outcomes(done)

    def _run_in_pool(self, pool: WorkerPool) -> None:
        """Run all batches in *pool*, and store rows as batches finish."""
        payload = self._payload()
        token = hashlib.blake2b(payload, digest_size=16).hexdigest()
        in_flight: dict[Future[Any], _Batch] = {}
        try:
            while True:
                self._fill(pool, token, payload, in_flight)
                if not in_flight:
                    if self._suspects:
                        continue  # the pool broke while being filled and was replaced
                    return
                done, _ = futures.wait(in_flight, return_when=futures.FIRST_COMPLETED)
                # In the order of submission, not of completion.
                self._collect(pool, in_flight, [future for future in in_flight if future in done])
        finally:
            self._keep_finished(in_flight)

    def _fill(
        self, pool: WorkerPool, token: str, payload: bytes, in_flight: dict[Future[Any], _Batch]
    ) -> None:
        """Submit batches until each worker has one running and one queued."""
        # Two each, so that no worker waits for the driver; more would only delay a stop.
        while len(in_flight) < 2 * pool.workers:
            if self._suspects:
                # Alone, to identify the cell that kills its worker.
                # Cells running at the same time would be suspected as well.
                if in_flight and self._suspects[0].lost:
                    return
                batch = self._suspects.popleft()
            else:
                if any(batch.lost for batch in in_flight.values()):
                    return
                indices = self._take(self._batch_size(pool.workers))
                if not indices:
                    return
                batch = _Batch(indices)
            sent = payload if batch.with_payload else None
            try:
                in_flight[pool.submit(run_batch, token, batch.indices, sent)] = batch
            except BrokenExecutor:
                # Not lost: it was never submitted.
                self._suspects.appendleft(batch)
                self._renew(pool, in_flight)
                return

    def _collect(
        self, pool: WorkerPool, in_flight: dict[Future[Any], _Batch], finished: list[Future[Any]]
    ) -> None:
        """Store finished batches; loads of broken workers run again."""
        for future in finished:
            batch = in_flight.pop(future, None)
            if batch is None:  # lost with a broken pool
                continue
            try:
                done = future.result()
            except (BrokenExecutor, CancelledError) as error:
                self._lose([batch])
                if isinstance(error, BrokenExecutor):
                    self._renew(pool, in_flight, error)
                continue
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # by name: dask is optional
                    raise
                self._lose([batch])
                continue
            self._n_stillborn = -1  # a worker answered: later failures are not start-up failures
            # A worker without the study: it gets the study together with the same batch.
            if done is None:
                self._suspects.appendleft(batch._replace(with_payload=True))
            else:
                self._store_outcomes(done)

    def _renew(
        self, pool: WorkerPool, in_flight: dict[Future[Any], _Batch], error: Exception | None = None
    ) -> None:
        """Recover the batches of a broken pool, and continue with a new one."""
        if self._n_stillborn >= 0:
            self._n_stillborn += 1
        if self._n_stillborn == _STILLBORN:
            raise InputError.at("executor", _DIE_AT_START) from error
        # First collect finished batches, which need not run again.
        self._keep_finished(in_flight)
        self._lose(list(in_flight.values()))
        in_flight.clear()
        if not pool.renew():
            message = "broke and cannot be restarted; finished loads are kept"
            raise InputError.at("executor", message) from error

    def _lose(self, batches: list[_Batch]) -> None:
        """Retry lost batches: once more together, then each cell alone."""
        for batch in batches:
            lost = batch.lost + 1
            # Once more together, as workers die for many reasons; then alone, to find the cause.
            if len(batch.indices) > 1 and lost > 1:
                parts = [(index,) for index in batch.indices]
                self._suspects.extend(_Batch(part, 1) for part in parts)
            elif lost <= _TRIES:
                self._suspects.append(_Batch(batch.indices, lost))
            else:
                self._store_outcomes(Done(index, None, None, _LOST, 0.0) for index in batch.indices)

    def _keep_finished(self, in_flight: dict[Future[Any], _Batch]) -> None:
        """Store all finished batches."""
        for future in list(in_flight):
            if future.done() and not future.cancelled() and future.exception() is None:
                done = future.result()
                if done is not None:  # None: the worker needs the study, nothing ran
                    del in_flight[future]
                    self._store_outcomes(done)

    def _store_outcomes(self, done: Iterable[Done]) -> None:
        """Store the outcomes of loads; raise the first error of a strict study."""
        outcomes, retained = [], list(done)
        for one in retained:
            error = one.error and f"{self._study.describe(one.cell)}: {one.error}"
            self.failed += error is not None
            self.ran += error is None
            self._seconds.append(one.seconds)
            key, model = self._keys.key(one.cell), self._study.model
            outcomes.append(CellOutcome(key, model, one.row, one.resources, error, one.seconds))
        if outcomes:
            self._store.put(outcomes)
            self._advance(len(outcomes))
        if self._study.is_strict and self.failed:
            failed = next(one for one in outcomes if one.error is not None)
            cell = next(one.cell for one in retained if one.error is not None)
            raise CellFailedError(cell, failed.error or "")

    def _take(self, n: int) -> tuple[int, ...]:
        indices = tuple(itertools.islice(self._pending, n))
        self._n_pending = max(0, self._n_pending - len(indices))
        return indices

    def _cost_s(self) -> float:
        return sum(self._seconds) / len(self._seconds) if self._seconds else _TASK_S

    def _batch_size(self, workers: int) -> int:
        """Return the number of cells per task; it shrinks at the end to balance the workers."""
        # Two tasks per worker from the remaining cells: the last tasks are small, so that all
        # workers finish at about the same time.
        fair = max(1, self._n_pending // (2 * workers))
        return min(max(1, round(_TASK_S / max(self._cost_s(), 1e-9))), fair, _MAX_BATCH)

    def _payload(self) -> bytes:
        try:
            # An error would have to survive the way back: workers return it as text.
            lenient = replace(self._work, is_strict=False) if self._work.is_strict else self._work
            return _payload(lenient)
        except Exception as error:
            message = f"cannot be sent to workers ({error}): {_REMEDY}"
            raise InputError.at("executor", message) from error


class _Pickler(pickle.Pickler):
    """Pickler that refuses classes and functions that workers could not import."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | types.FunctionType) and cache_key.is_interactive(value):
            message = f"{value.__qualname__} is defined in a notebook or at a prompt"
            raise pickle.PicklingError(message)
        return NotImplemented


def _payload(work: StudyWork) -> bytes:
    """Return *work* as bytes; code that no module has goes by value, if cloudpickle is installed.

    Raises:
        Exception: if something in it cannot be pickled.
    """
    file = io.BytesIO()
    try:
        _Pickler(file).dump(work)
    except Exception:  # foreign classes may raise anything
        if importlib.util.find_spec("cloudpickle") is None:
            raise
        import cloudpickle  # lazy: optional dependency

        return bytes(cloudpickle.dumps(work))
    return file.getvalue()


class Runner:
    """Runner of the cells of one call: one store, one pool of workers, one count of progress."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        store = ":memory:" if execution.store is None else execution.store
        self._store = store if isinstance(store, Store) else Store(store)
        self._pool: WorkerPool | None = None
        self._n_ran = 0
        self._progress = _Progress(execution.progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
        if self._pool is not None:
            self._pool.close()

    def expect(self, n: int) -> None:
        """Announce that there will be *n* cells more."""
        self._progress.expect(n)

    def run_cells(
        self, cells: Cells, *, retry_failed: bool = False
    ) -> tuple[Callable[[], Iterator[Stored]], Counts]:
        """Run the *cells* missing in the store.

        Returns an iterable of row, resources and error of all cells, in their order, and the
        counts.

        Raises:
            StoreError: if the store cannot be read or written; finished loads are kept.
        """
        driver = Driver(cells, self._store, retry_failed=retry_failed)
        with interrupt_note(lambda: _what_is_kept(self._store, self._n_ran + driver.ran)):
            pool = self._pool_for(driver)
            self._progress.begin(driver.reused + driver.ran, len(cells))
            driver.run(pool, self._progress.advance)
        self._n_ran += driver.ran

        def source() -> Iterator[Stored]:
            n = 0
            for stored in self._store.rows(driver.study_id):
                yield stored
                n += 1
            if n < len(cells):  # damaged pages end the iteration
                what = f"{len(cells) - n:,} of the {len(cells):,} loads are lost"
                raise self._store.damaged(what)

        return source, Counts(driver.reused, driver.ran, driver.failed)

    def _pool_for(self, driver: Driver) -> WorkerPool:
        """Return the workers of earlier cells; those are started for the first that need them."""
        if self._pool is None or self._pool.is_serial:
            executor, workers = self._execution.executor, self._execution.workers
            executor = None if executor == "auto" else executor
            small = executor is None and workers is None and driver.try_some(_SMALL_S)
            self._pool = pool_of(executor, workers, is_small=small)
        return self._pool


def _what_is_kept(store: Store, n_ran: int) -> str:
    """Describe the fate of the finished cells after an interrupt."""
    finished = f"{n_ran:,} finished before the interrupt"
    if store.path == ":memory:":
        return f"{finished}, which are lost: use a store to keep them"
    return f"{finished}, which are kept in {shown_path(store.path)}: run the same again to resume"


class _Progress:
    """Count of cells, shown by a callback or a bar."""

    def __init__(self, shown: ProgressCallback | bool | None) -> None:
        self._done = self._total = 0
        self._callback = shown if callable(shown) else None
        is_shown = shown if isinstance(shown, bool) else sys.stderr.isatty() or in_notebook()
        self._has_bar = is_shown and self._callback is None
        self._bar: Any = None

    def expect(self, n: int) -> None:
        self._total = self._done + n

    def begin(self, done: int, n: int) -> None:
        """Count *n* more cells, of which so many are *done* already."""
        self._total = max(self._total, self._done + n)
        self._done += done
        if self._has_bar and self._bar is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a text bar
                from tqdm.auto import tqdm
            self._bar = tqdm(total=self._total, initial=self._done, unit="load", leave=False)

    def advance(self, n: int) -> None:
        for _ in range(n):
            self._done += 1
            if self._callback is not None:
                self._callback(self._done, self._total)
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.update(self._done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


with_loads = with_fields(LoadConfig, Execution)
"""Add the options of a load, and how loads run, to the signature of a function."""
_KEY_BYTES = 16


class LoadTask(NamedTuple):
    """A load; *quantity* is passed to the function that measures it."""

    page: Page
    scheme: Scheme
    config: LoadConfig
    quantity: str = ""


Measure: TypeAlias = "Callable[[Load, str], dict[str, Any]]"
"""Returns figures of a load, as JSON can have them."""


def read_options(
    function: Callable[..., Any], options: Mapping[str, Any], config: LoadConfig | None
) -> tuple[Execution, LoadConfig]:
    """Return how loads run and what they are, by the *options* of *function*.

    Raises:
        UnknownOptionError: naming each unknown option.
        InputError: listing every value that is out of range.
    """
    how, own = split_options(options)
    known = tuple(inspect.signature(function).parameters)
    with ErrorCollector() as errors:
        execution = errors.collect("", lambda: Execution(**how))
        read = errors.collect("", lambda: config_of(own, known=known, changed=config))
    return execution, read


class LoadRunner(Runner):
    """Runner of tasks: the loads of one call of a function.

    They run in this process, one after the other, unless *execution* has an executor or workers.
    Loads that are to be kept always do, as their traces are large.
    """

    def __init__(self, execution: Execution, measure: Measure, *, keep_loads: bool = False) -> None:
        here = keep_loads or (execution.executor is None and execution.workers is None)
        super().__init__(replace(execution, executor="serial") if here else execution)
        self._measure = measure
        self._n_run = 0
        self.loads: list[Load] | None = [] if keep_loads else None
        """The loads, in the order of the tasks, if they are kept."""

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        # The rows have been read; a store of the caller's stays open.
        if self._store is not self._execution.store:
            self._store.close()

    def run(self, tasks: Sequence[LoadTask]) -> list[dict[str, Any]]:
        """Return the figures of each task, with `configuration` and `words` of its load.

        Raises:
            H3SimError: that of the first load that fails.
        """
        found: dict[int, Load] | None = None if self.loads is None else {}
        work = _TaskWork(tasks=tasks, measure=self._measure, loads=found, is_strict=True)
        first = self._n_run if self._execution.store is None else None
        cells = _Tasks(work, self._measure, first)
        try:
            source, _ = self.run_cells(cells, retry_failed=True)
        except CellFailedError as failed:
            work.row(failed.cell)  # raises it as it was, of its own type
            raise
        self._n_run += len(tasks)
        if self.loads is not None and found is not None:
            # Those in the store have no trace, and run again.
            self.loads += (found.get(n) or run_config(*task[:3]) for n, task in enumerate(tasks))
        return [json.loads(json.loads(row or "")["measured"]) for row, _, _ in source()]


@dataclass(kw_only=True)
class _TaskWork(StudyWork):
    """Tasks, and how each is measured."""

    tasks: Sequence[LoadTask]
    measure: Measure
    loads: dict[int, Load] | None = field(default=None)

    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the task at *index*: what the load is, and what was measured of it."""
        page, scheme, config, quantity = self.tasks[index]
        load = run_config(page, scheme, config)
        if self.loads is not None:
            self.loads[index] = load
        common = {"configuration": load.configuration, "words": in_words(load)}
        measured = json.dumps({**common, **self.measure(load, quantity)})
        return json.dumps({**_columns(self.tasks[index]), "measured": measured}), None


class _Tasks:
    """Tasks as cells of a study; without a store, *first* is the number of the first."""

    has_resources = False
    is_strict = True
    axes: tuple[str, ...] = ()
    figures = ("measured",)

    def __init__(self, work: _TaskWork, measure: Measure, first: int | None) -> None:
        self.name = measure.__module__.rpartition(".")[2]
        self._work = work
        self._measure = measure
        self._first = first
        self.model = cache_key.model_version() if first is None else ""

    def __len__(self) -> int:
        return len(self._work.tasks)

    def keys(self) -> StudyKeys:
        if self._first is not None:
            return _Numbers(self._first)
        return _TaskKeys(self._work.tasks, self._measure, self.model)

    def work(self) -> StudyWork:
        return self._work

    def columns(self, index: int) -> dict[str, Any]:
        return _columns(self._work.tasks[index])

    def describe(self, index: int) -> str:
        page, scheme, config, _ = self._work.tasks[index]
        return f"{page.name}, {scheme.name}, seed {config.seed}"


def _columns(task: LoadTask) -> dict[str, Any]:
    """Return the columns by which a stored row is known."""
    page, scheme, config, _ = task
    named = {"page": page.name, "page_digest": page.digest, "scheme": scheme.name}
    return {**named, "seed": config.seed}


class _TaskKeys:
    """Keys of tasks: equal tasks have equal keys, whatever else is run with them."""

    def __init__(self, tasks: Sequence[LoadTask], measure: Measure, model: str) -> None:
        self._tasks = tasks
        # By the source of its module: what is measured is as much a part of a result as the model.
        source = inspect.getsource(sys.modules[measure.__module__])
        self._head = cache_key.digest(model, measure.__qualname__, source)
        self._of_page: dict[int, bytes] = {}
        self._of_scheme = cache(cache_key.scheme_digest)

    def key(self, index: int) -> bytes:
        """Return the key of the task at *index*."""
        page, scheme, config, quantity = self._tasks[index]
        options = {entry.name: getattr(config, entry.name) for entry in fields(config)}
        if id(page) not in self._of_page:
            self._of_page[id(page)] = cache_key.page_digest(page)
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        hashed.update(self._of_page[id(page)] + self._of_scheme(scheme))
        hashed.update(
            cache_key.resolved_digest(page, scheme, options)
            + cache_key.digest(quantity, str(config.seed))
        )
        return hashed.digest()

    def token(self) -> str:
        """Return a text that identifies all tasks, in order."""
        return cache_key.digest(*(self.key(index).hex() for index in range(len(self._tasks)))).hex()


class _Numbers:
    """Keys of cells that are forgotten at the end: nothing of a load need be identified."""

    def __init__(self, first: int) -> None:
        self._first = first

    def key(self, index: int) -> bytes:
        return (self._first + index).to_bytes(16)

    def token(self) -> str:
        return str(self._first)
