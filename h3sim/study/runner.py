"""The runner of a study: hands batches of cells to processes or a cluster, stores results.

`compare`, `search`, `optimality` and others list their loads as tasks with a function that measures
each; workers, progress, stores and resumption are the business of the runner.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import inspect
import itertools
import json
import os
import sys
import warnings
from collections import Counter, deque
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from h3sim.load import Load, in_words
from h3sim.load.load_config import LoadConfig, changed_config, refuse_unknown
from h3sim.load.options import check_running
from h3sim.load.run import run_spec
from h3sim.schema.arguments import shows_fields
from h3sim.schema.files import shown_path, write_atomically
from h3sim.study import cache_key
from h3sim.study.code_identity import CodeDigests
from h3sim.study.rows import Counts, Stored, is_row_of
from h3sim.study.setting_digests import digest, scheme_digest
from h3sim.study.store import KEPT_SUFFIX, MEMORY, CellOutcome, Store
from h3sim.study.worker import (
    KEPT_COLUMN,
    Cells,
    Done,
    StudyKeys,
    StudyWork,
    prepare_worker,
    run_batch,
)
from h3sim.values.errors import (
    H3SimError,
    InputError,
    NotReusedWarning,
    interrupt_note,
    needing_extra,
)
from h3sim.values.notebook import CellOutput, in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from h3sim.engine import LoadSpec


_ASSUMED_WORKERS = 4
"""Number of workers of an executor that does not reveal it."""
_NOTEBOOK_CELLS = 80
"""Width of a bar in a notebook, whose output has no width of its own."""
_HAS_PROCESSES = sys.platform not in ("emscripten", "wasi")
_MAX_WORKERS = 10_000
"""Most processes: the size of their queue must fit into a C integer."""


class WorkerPool:
    """Executor and its number of workers; this base class wraps a caller's and never closes it."""

    is_serial = False

    def __init__(self, executor: Executor | None = None) -> None:
        self._executor: Any = executor  # None in pools that do without

    @property
    def workers(self) -> int:
        """Number of loads that run at once."""
        # Executors have no public attribute for it; those of the standard library have this one.
        return int(getattr(self._executor, "_max_workers", 0) or _ASSUMED_WORKERS)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit *function* to the executor."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        return future

    def begin(self, n_cells: int) -> None:
        """Prepare to run this number of cells."""

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
    """Processes on this machine, at most *workers*, all restarted when one of them dies.

    They belong to one call: those of a later one must import code that was edited meanwhile.
    """

    def __init__(self, workers: int) -> None:
        super().__init__()
        self._workers = workers
        self._n_started = 0

    @property
    def workers(self) -> int:
        """Number of processes, at most."""
        return self._workers

    def begin(self, n_cells: int) -> None:
        """Start as many processes as there are cells, if there are fewer yet."""
        needed = min(self._workers, max(1, n_cells))
        if needed > self._n_started:
            self.close()
            self._n_started = needed
            self._start()

    def renew(self) -> bool:
        """Start new processes: a process that dies breaks the pool."""
        self.close()
        self._start()
        return True

    def close(self) -> None:
        """Kill the processes and their running loads."""
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)

    def _start(self) -> None:
        import loky  # lazy: most calls run in one process

        self._executor = loky.ProcessPoolExecutor(
            self._n_started, initializer=prepare_worker, initargs=(os.getpid(),)
        )


class _Dask(WorkerPool):
    """Workers of a `dask.distributed` cluster, whose number may change."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pending: dict[Future[Any], Any] = {}
        """Dask's futures by those that `submit` returned, until they are done."""

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

    Raises:
        InputError: if *workers* is not a valid number of processes.
    """
    workers = check_running(workers=workers)["workers"]
    if workers is None and _HAS_PROCESSES:
        import loky  # lazy: most calls run in one process

        workers = int(loky.cpu_count())
    return min(workers or 1, _MAX_WORKERS)


def pool_of(executor: Any, workers: int | None, *, is_small: bool) -> WorkerPool:
    """Return the pool for "serial", "processes", an executor or a `dask.distributed` client.

    None chooses processes, one per core or *workers*, unless there would be only one or the study
    *is_small* and would finish before they start.

    Raises:
        InputError: if *executor* is something else.
    """
    check_running(executor=executor, workers=workers)
    if hasattr(executor, "get_executor") and hasattr(executor, "ncores"):  # a Dask client
        return _Dask(executor)
    if hasattr(executor, "submit"):
        return WorkerPool(executor)
    if executor == "serial" or not _HAS_PROCESSES or (executor is None and is_small):
        return _Serial()
    n = worker_count(workers)
    return _Serial() if executor is None and n == 1 else _Processes(n)


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

_BATCH_S = 0.5
"""Target duration of a batch: long compared with the cost of submitting one."""
_MAX_BATCH_CELLS = 5000
"""Cells that a worker receives at once, at most: what is unfinished is lost on an interrupt."""
_MAX_TIMED_CELLS = 200
"""Most recent cells whose mean time is the expected time of a cell."""
_CELLS_PER_QUERY = 1000
"""Number of cells that are looked up in the store together."""
_MAX_LOST_WORKERS = 3
"""Number of workers that may die while they run a cell alone, before it counts as the cause."""
_MAX_STILLBORN_POOLS = 3
"""Number of pools that may break before any worker answers; then workers cannot start."""
_SMALL_S = 2.0
"""Expected duration below which a study runs in this process: starting others would not pay."""
_LOST_WORKERS_ERROR = "the worker that ran it died each time (killed, or out of memory)"


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


_EXECUTION_FIELDS = tuple(entry.name for entry in fields(Execution))


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return those of *options* that are fields of `Execution`, and the others."""
    execution = {name: options[name] for name in options if name in _EXECUTION_FIELDS}
    return execution, {name: options[name] for name in options if name not in _EXECUTION_FIELDS}


class CellFailedError(H3SimError):
    """A cell failed, in a study that ends with its first failure."""

    def __init__(self, cell: int, message: str) -> None:
        super().__init__(message)
        self.cell = cell


class _Batch(NamedTuple):
    """Cells submitted to a worker together."""

    indices: tuple[int, ...]
    n_lost_workers: int = 0
    """The number of workers that died while they ran these cells."""
    with_payload: bool = False
    """True if the study is sent along, to a worker that does not have it."""


class _State(enum.Enum):
    """State of a cell in the store."""

    MISSING = "missing"
    FAILED = "failed"
    DONE = "done"
    NOT_RUN = "not run here"


class Driver:
    """Runs the cells of *study* that are missing in *store*."""

    def __init__(
        self,
        study: Cells,
        store: Store,
        *,
        retry_failed: bool,
        runs: Callable[[int], bool] | None = None,
    ) -> None:
        self._study = study
        self._runs = runs
        self._folder = Path(f"{store.path}{KEPT_SUFFIX}")
        if study.keeps_files:
            if store.path == MEMORY:
                raise InputError.at("keep", "needs a store, beside which files are written")
            self._folder.mkdir(exist_ok=True)
        self._store = store
        self._retry_failed = retry_failed
        self._keys = study.keys()
        self._work: StudyWork = study.work()
        self._seconds: deque[float] = deque(maxlen=_MAX_TIMED_CELLS)
        """Times of the cells that ran most recently."""
        self._to_resubmit: deque[_Batch] = deque()
        """Batches that were lost with a worker, or that need the study."""
        self._n_stillborn_pools: int | None = 0
        """Number of pools that broke before any worker answered; None once one has."""
        self._advance: Callable[[int], None] = lambda _: None
        self.study_id = store.begin_study(self._keys.token(), study.name, len(study), study.axes)
        if store.path != ":memory:":
            for line in self._keys.warnings():
                warnings.warn(line, NotReusedWarning, stacklevel=2)
        # Registers the study's cells in the store, and counts the missing ones.
        counts = Counter(state for _, state in self._states())
        self.reused, self.ran, self.failed = counts[_State.DONE], 0, counts[_State.FAILED]
        self._n_pending, self.n_not_run = counts[_State.MISSING], counts[_State.NOT_RUN]
        self._pending = self._missing()

    def _missing(self) -> Iterator[int]:
        """Yield cells that are still missing: another sweep may have run some meanwhile."""
        counts: Counter[_State] = Counter()
        failed_before = self.failed
        for index, state in self._states():
            counts[state] += 1
            if state is _State.MISSING:
                yield index
        # Counted again, so that cells run by another sweep count as reused.
        self.reused = counts[_State.DONE]
        self.failed += counts[_State.FAILED] - failed_before
        self._n_pending = 0

    def _states(self) -> Iterator[tuple[int, _State]]:
        """Yield index and state of each cell in order, read and registered chunk by chunk."""
        n = len(self._study)
        for first in range(0, n, _CELLS_PER_QUERY):
            indices = range(first, min(first + _CELLS_PER_QUERY, n))
            keys = self._store.keys_of(self.study_id, first, len(indices))
            if len(keys) < len(indices):
                keys = [self._keys.key(index) for index in indices]
                self._store.register_keys(self.study_id, first, keys)
            known = self._store.known(keys)
            for index, key in enumerate(keys, first):
                yield index, self._cell_state(index, known.get(key))

    def _cell_state(self, index: int, known: CellOutcome | None) -> _State:
        """Return whether the store has the row of a cell."""
        missing = _State.MISSING
        if self._runs is not None and not self._runs(index):
            missing = _State.NOT_RUN
        if known is None:
            return missing
        if known.error is not None:
            return missing if self._retry_failed else _State.FAILED
        if self._study.has_resources and known.resources is None:
            return missing
        # A row of another cell counts as missing and is overwritten.
        columns, figures = self._study.columns(index), self._study.figures
        is_its_own = is_row_of(columns, known.row, figures=figures)
        if is_its_own and self._study.keeps_files:
            names = json.loads(known.row or "")[KEPT_COLUMN] or ""
            is_its_own = all((self._folder / name).is_file() for name in names.split())
        return _State.DONE if is_its_own else missing

    def try_some(self, seconds: float) -> bool:
        """Run a few cells here; return whether the rest would finish within *seconds*."""
        spent = 0.0
        while self._n_pending and len(self._seconds) < _MAX_TIMED_CELLS:
            (index,) = self._take(1)
            done = self._work.run(index)
            self._store_outcomes([done])
            spent += done.seconds
            # At most half of the time goes into the trial, so the total stays within the limit.
            if spent > seconds / 2:
                break
        return self._n_pending * self._mean_cell_s() < seconds

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
        pool.begin(self._n_pending)
        try:
            while True:
                self._fill(pool, token, payload, in_flight)
                if not in_flight:
                    if self._to_resubmit:
                        continue  # the pool broke while being filled, and was replaced
                    return
                done, _ = futures.wait(in_flight, return_when=futures.FIRST_COMPLETED)
                # In the order of submission, not of completion.
                self._collect(pool, in_flight, [future for future in in_flight if future in done])
        finally:
            self._keep_finished(in_flight)

    def _fill(
        self, pool: WorkerPool, token: str, payload: bytes, in_flight: dict[Future[Any], _Batch]
    ) -> None:
        """Submit batches until each worker has one running and one queued.

        More queued batches would only delay a stop. A batch that lost a worker runs alone: a worker
        that dies breaks the pool, and all running batches count as lost.
        """
        while len(in_flight) < 2 * pool.workers:
            if self._to_resubmit:
                if in_flight and self._to_resubmit[0].n_lost_workers:
                    return
                batch = self._to_resubmit.popleft()
            else:
                if any(batch.n_lost_workers for batch in in_flight.values()):
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
                self._to_resubmit.appendleft(batch)
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
            self._n_stillborn_pools = None  # a worker answered: workers can start
            if done is None:  # the worker does not have the study
                self._to_resubmit.appendleft(batch._replace(with_payload=True))
            else:
                self._store_outcomes(done)

    def _renew(
        self, pool: WorkerPool, in_flight: dict[Future[Any], _Batch], error: Exception | None = None
    ) -> None:
        """Recover the batches of a broken pool, and continue with a new one."""
        if self._n_stillborn_pools is not None:
            self._n_stillborn_pools += 1
            if self._n_stillborn_pools == _MAX_STILLBORN_POOLS:
                message = "its workers die while starting: use executor='serial'"
                raise InputError.at("executor", message) from error
        # First collect finished batches, which need not run again.
        self._keep_finished(in_flight)
        self._lose(list(in_flight.values()))
        in_flight.clear()
        if not pool.renew():
            message = "broke and cannot be restarted; finished loads are kept"
            raise InputError.at("executor", message) from error

    def _lose(self, batches: list[_Batch]) -> None:
        """Resubmit lost batches: once as they were, then each cell alone, to find the cause.

        The cause may also have been outside of the cells.
        """
        for batch in batches:
            n_lost = batch.n_lost_workers + 1
            if len(batch.indices) > 1 and n_lost > 1:
                self._to_resubmit.extend(_Batch((index,), 1) for index in batch.indices)
            elif n_lost <= _MAX_LOST_WORKERS:
                self._to_resubmit.append(_Batch(batch.indices, n_lost))
            else:
                self._store_outcomes(
                    Done(index, None, None, _LOST_WORKERS_ERROR, 0.0) for index in batch.indices
                )

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
        outcomes, first_failed = [], None
        for one in done:
            for name, content in one.files:  # first, so that a stored row has its files
                write_atomically(self._folder / name, content)
            if one.error is not None and first_failed is None:
                first_failed = one.cell
            error = one.error and f"{self._study.describe(one.cell)}: {one.error}"
            self.failed += error is not None
            self.ran += error is None
            self._seconds.append(one.seconds)
            key, model = self._keys.key(one.cell), self._study.model
            outcomes.append(CellOutcome(key, model, one.row, one.resources, error, one.seconds))
        if outcomes:
            self._store.put(outcomes)
            self._advance(len(outcomes))
        if self._study.is_strict and first_failed is not None:
            message = next(one.error for one in outcomes if one.error is not None)
            raise CellFailedError(first_failed, message or "")

    def _take(self, n: int) -> tuple[int, ...]:
        """Return the next missing cells, at most *n*."""
        indices = tuple(itertools.islice(self._pending, n))
        self._n_pending = max(0, self._n_pending - len(indices))
        return indices

    def _mean_cell_s(self) -> float:
        return sum(self._seconds) / len(self._seconds) if self._seconds else _BATCH_S

    def _batch_size(self, workers: int) -> int:
        """Return the number of cells of the next batch.

        It shrinks with the number of remaining cells, which make at least two batches per worker,
        so that all workers finish at about the same time.
        """
        fair_share = max(1, self._n_pending // (2 * workers))
        n_in_time = max(1, round(_BATCH_S / max(self._mean_cell_s(), 1e-9)))
        return min(n_in_time, fair_share, _MAX_BATCH_CELLS)

    def _payload(self) -> bytes:
        """Return the study as bytes for the workers, with code that they cannot import."""
        import cloudpickle  # lazy: most calls run in one process

        try:
            # Workers return errors as text: not every exception can be pickled.
            lenient = replace(self._work, is_strict=False) if self._work.is_strict else self._work
            return bytes(cloudpickle.dumps(lenient))
        except Exception as error:  # foreign classes may raise anything
            message = f"cannot be sent to workers ({error}): use executor='serial'"
            raise InputError.at("executor", message) from error


class Runner:
    """Runner of the cells of one call: one store, one pool of workers, one count of progress."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        store = ":memory:" if execution.store is None else execution.store
        self._store = store if isinstance(store, Store) else Store(store)
        self._pool: WorkerPool | None = None
        self._n_ran = 0
        """Number of cells run so far, for the note after an interrupt."""
        self._progress = _Progress(execution.progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
        if self._pool is not None:
            self._pool.close()

    def expect(self, n: int) -> None:
        """Announce that *n* more cells will follow."""
        self._progress.expect(n)

    def run_cells(
        self,
        cells: Cells,
        *,
        retry_failed: bool = False,
        runs: Callable[[int], bool] | None = None,
    ) -> tuple[Callable[[], Iterator[Stored]], Counts]:
        """Run the *cells* missing in the store, with *runs* only those for which it is True.

        Returns an iterable of row, resources and error of all cells, in their order, and the
        counts.

        Raises:
            StoreError: if the store cannot be read or written; finished loads are kept.
        """
        driver = Driver(cells, self._store, retry_failed=retry_failed, runs=runs)
        n_run = len(cells) - driver.n_not_run
        with interrupt_note(lambda: _interrupt_note(self._store, self._n_ran + driver.ran)):
            pool = self._pool_for(driver)
            self._progress.begin(driver.reused + driver.ran, n_run)
            driver.run(pool, self._progress.advance)
        self._n_ran += driver.ran

        def source() -> Iterator[Stored]:
            n = 0
            for stored in self._store.rows(driver.study_id):
                yield stored
                n += 1
            if n < n_run:  # damaged pages end the iteration
                message = f"{n_run - n:,} of the {n_run:,} loads are lost"
                raise self._store.damaged(message)

        return source, Counts(driver.reused, driver.ran, driver.failed)

    def _pool_for(self, driver: Driver) -> WorkerPool:
        """Return the pool of earlier cells, or a new one if there is none with workers yet."""
        if self._pool is None or self._pool.is_serial:
            executor, workers = self._execution.executor, self._execution.workers
            executor = None if executor == "auto" else executor
            is_small = executor is None and workers is None and driver.try_some(_SMALL_S)
            self._pool = pool_of(executor, workers, is_small=is_small)
        return self._pool


def _interrupt_note(store: Store, n_ran: int) -> str:
    """Return a note on what became of the finished cells after an interrupt."""
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
        """Set the total to *n* more than the cells done."""
        self._total = self._done + n

    def begin(self, done: int, n: int) -> None:
        """Count *n* more cells, of which *done* are done already."""
        self._total = max(self._total, self._done + n)
        self._done += done
        if self._has_bar and self._bar is None:
            from tqdm import tqdm

            options: dict[str, Any] = {"total": self._total, "initial": self._done, "unit": "load"}
            if in_notebook():
                options |= {"file": CellOutput(), "ncols": _NOTEBOOK_CELLS}
            self._bar = tqdm(**options, leave=False)

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


shows_loads = shows_fields(LoadConfig, Execution)
"""Show the options of a load, and how loads run, in the signature of a function."""
_KEY_BYTES = 16
"""Length of the keys by which finished cells are found again, without collisions in practice."""


class LoadTask(NamedTuple):
    """A load; *quantity* is passed to the function that measures it."""

    spec: LoadSpec
    quantity: str = ""


Measure: TypeAlias = "Callable[[Load, str], dict[str, Any]]"
"""Function that returns measurements of a load, which can be written as JSON."""


def read_options(
    function: Callable[..., Any], options: Mapping[str, Any], config: LoadConfig | None
) -> tuple[Execution, LoadConfig]:
    """Return how loads run and what they are, by the *options* of *function*.

    Raises:
        UnknownOptionError: if an option is unknown.
        InputError: if a value is out of range.
    """
    refuse_unknown(function, options)
    execution_options, load_options = split_options(options)
    return Execution(**execution_options), changed_config(config, load_options)


class LoadRunner(Runner):
    """Runner of tasks: the loads of one call of a function.

    They run in this process, one after the other, unless *execution* has an executor or workers.
    With *keep_loads* they always do, since their traces are too large to be sent.
    """

    def __init__(self, execution: Execution, measure: Measure, *, keep_loads: bool = False) -> None:
        is_serial = keep_loads or (execution.executor is None and execution.workers is None)
        super().__init__(replace(execution, executor="serial") if is_serial else execution)
        self._measure = measure
        self._n_tasks = 0
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
        loads: dict[int, Load] | None = None if self.loads is None else {}
        work = _TaskWork(tasks=tasks, measure=self._measure, loads=loads, is_strict=True)
        first_number = self._n_tasks if self._execution.store is None else None
        cells = _TaskCells(work, self._measure, first_number)
        try:
            source, _ = self.run_cells(cells, retry_failed=True)
        except CellFailedError as failed:
            work.row(failed.cell)  # runs it here, to raise the error with its own type
            raise
        self._n_tasks += len(tasks)
        if self.loads is not None and loads is not None:
            # Loads whose rows were in the store run again, for their traces.
            self.loads += (
                loads.get(index) or run_spec(task.spec) for index, task in enumerate(tasks)
            )
        return [json.loads(json.loads(row or "")["measured"]) for row, _, _ in source()]


@dataclass(kw_only=True)
class _TaskWork(StudyWork):
    """Tasks, and the function that measures each."""

    tasks: Sequence[LoadTask]
    measure: Measure
    loads: dict[int, Load] | None = field(default=None)
    """The loads by the index of their task, if they are kept."""

    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the task at *index*: columns that identify it, and measurements."""
        spec, quantity = self.tasks[index]
        load = run_spec(spec)
        if self.loads is not None:
            self.loads[index] = load
        common = {"configuration": load.configuration, "words": in_words(load.spec)}
        measured = json.dumps({**common, **self.measure(load, quantity)})
        return json.dumps({**_columns(self.tasks[index]), "measured": measured}), None


class _TaskCells:
    """Tasks as cells of a study; without a store, *first_number* is the number of the first."""

    has_resources = False
    is_strict = True
    keeps_files = False
    axes: tuple[str, ...] = ()
    figures = ("measured",)

    def __init__(self, work: _TaskWork, measure: Measure, first_number: int | None) -> None:
        self.name = measure.__module__.rpartition(".")[2]
        self._work = work
        self._measure = measure
        self._first_number = first_number
        self.model = cache_key.model_version() if first_number is None else ""

    def __len__(self) -> int:
        return len(self._work.tasks)

    def keys(self) -> StudyKeys:
        if self._first_number is not None:
            return _NumberKeys(self._first_number)
        return _TaskKeys(self._work.tasks, self._measure, self.model)

    def work(self) -> StudyWork:
        return self._work

    def columns(self, index: int) -> dict[str, Any]:
        return _columns(self._work.tasks[index])

    def describe(self, index: int) -> str:
        spec = self._work.tasks[index].spec
        return f"{spec.page.name}, {spec.scheme.name}, seed {spec.seed}"


def _columns(task: LoadTask) -> dict[str, Any]:
    """Return the columns by which the stored row of a task is recognized."""
    spec = task.spec
    page = {"page": spec.page.name, "page_digest": spec.page.digest}
    return {**page, "scheme": spec.scheme.name, "seed": spec.seed}


class _TaskKeys:
    """Keys of tasks: equal tasks have equal keys, whatever else is run with them."""

    def __init__(self, tasks: Sequence[LoadTask], measure: Measure, model: str) -> None:
        self._tasks = tasks
        # The measuring function affects the result as the model does, and is identified by the
        # source of its module.
        source = inspect.getsource(sys.modules[measure.__module__])
        self._common_digest = digest(model, measure.__qualname__, source)
        self._page_digests: dict[int, bytes] = {}  # by id, since hashing a page takes long
        self._codes = CodeDigests()
        self._scheme_digest = cache(partial(scheme_digest, codes=self._codes))

    def key(self, index: int) -> bytes:
        """Return the key of the task at *index*."""
        spec, quantity = self._tasks[index]
        page = spec.page
        if id(page) not in self._page_digests:
            self._page_digests[id(page)] = cache_key.page_digest(page)
        key = hashlib.blake2b(self._common_digest, digest_size=_KEY_BYTES)
        key.update(self._page_digests[id(page)] + self._scheme_digest(spec.scheme))
        key.update(cache_key.spec_digest(spec, self._codes) + digest(quantity, str(spec.seed)))
        return key.digest()

    def token(self) -> str:
        """Return a text that identifies all tasks, in order."""
        return digest(*(self.key(index).hex() for index in range(len(self._tasks)))).hex()

    def warnings(self) -> Iterator[str]:
        """Yield a line for each scheduler and controller whose loads cannot be reused."""
        return self._codes.warnings()


class _NumberKeys:
    """Keys without a store: numbers, since digests take time, and no result is used again."""

    def __init__(self, first: int) -> None:
        self._first = first

    def key(self, index: int) -> bytes:
        return (self._first + index).to_bytes(_KEY_BYTES)

    def token(self) -> str:
        return str(self._first)

    def warnings(self) -> Iterator[str]:
        return iter(())
