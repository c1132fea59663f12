"""The runner of a study: hands out batches of tasks, stores results, survives failures."""

from __future__ import annotations

import enum
import hashlib
import itertools
import pickle
import sys
import warnings
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from h3sim.config.arguments import check_running
from h3sim.errors import InputError, ValidationIssue
from h3sim.notebook import in_notebook
from h3sim.schema.files import shown_path
from h3sim.study.backends import pool_of
from h3sim.study.results import Counts, is_row_of
from h3sim.study.store import CellOutcome, Store
from h3sim.study.worker import Done, run_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from h3sim.study.backends import WorkerPool
    from h3sim.study.results import Stored
    from h3sim.study.worker import Cells, StudyWork


ProgressCallback: TypeAlias = "Callable[[int, int], None]"

_TASK_S = 0.5
"""How long a task should take: long beside what it costs to hand one out."""
_MAX_BATCH = 5000
_RECENT = 200
_CHUNK = 1000
_TRIES = 3
"""So often a cell may lose its worker, alone in it, before it is taken for the cause."""
_STILLBORN = 3
"""So often pools may break before a worker has answered at all; then they cannot start."""
_DIE_AT_START = (
    "its workers die as they start: in a script, call it under `if __name__ == '__main__':`, as"
    " Python wants it of process pools, or give executor='serial'"
)
_SMALL_S = 2.0
"""A study that is over sooner than processes pay runs here."""
_LOST = "the worker that ran it died each time (killed, or out of memory)"


class _Batch(NamedTuple):
    """Cells that go to a worker together; *lost* is how often theirs died."""

    indices: tuple[int, ...]
    lost: int = 0
    with_payload: bool = False


class _State(enum.Enum):
    """What a store knows of a cell."""

    MISSING = "missing"
    FAILED = "failed"
    DONE = "done"


class Driver:
    """Runs the cells of *study* that *store* does not know."""

    def __init__(self, study: Cells, store: Store, *, retry_failed: bool) -> None:
        self._study = study
        self._store = store
        self._retry_failed = retry_failed
        self._keys = study.keys()
        self._work: StudyWork = study.work()
        self._seconds: deque[float] = deque(maxlen=_RECENT)
        self._suspects: deque[_Batch] = deque()
        self._pending: Iterator[int] = iter(())
        self._n_pending = 0
        self._n_stillborn = 0
        self._told: Callable[[int], None] = lambda _: None
        self.study_id = store.begin_study(self._keys.token(), study.name, len(study), study.axes)
        self.reused = self.ran = self.failed = 0

    def place(self) -> None:
        """Note which cells the study has, and count those that are missing."""
        for _, state in self._states():
            self.reused += state is _State.DONE
            self.failed += state is _State.FAILED
            self._n_pending += state is _State.MISSING
        self._pending = self._missing()

    def _missing(self) -> Iterator[int]:
        """Yield what is missing when its turn comes; another sweep may have run some meanwhile."""
        found = dict.fromkeys(_State, 0)
        failed_before = self.failed
        for index, state in self._states():
            found[state] += 1
            if state is _State.MISSING:
                yield index
        # Counted anew, so that what the other one ran is reused and not forgotten.
        self.reused = found[_State.DONE]
        self.failed += found[_State.FAILED] - failed_before
        self._n_pending = 0

    def _states(self) -> Iterator[tuple[int, _State]]:
        """Yield what the store knows of each cell, in order, chunk by chunk."""
        n = len(self._study)
        for first in range(0, n, _CHUNK):
            keys = self._noted_keys(range(first, min(first + _CHUNK, n)))
            known = self._store.known(keys)
            for index, key in enumerate(keys, first):
                yield index, self._state(index, known.get(key))

    def _noted_keys(self, indices: range) -> list[bytes]:
        """Return the keys of some cells, noted now if an earlier run did not come to them."""
        keys = self._store.keys_of(self.study_id, indices[0], len(indices))
        if len(keys) < len(indices):
            keys = [self._keys.key(index) for index in indices]
            self._store.place(self.study_id, indices[0], keys)
        return keys

    def _state(self, index: int, known: CellOutcome | None) -> _State:
        if known is None:
            return _State.MISSING
        if known.error is not None:
            return _State.MISSING if self._retry_failed else _State.FAILED
        if self._study.has_resources and known.resources is None:
            return _State.MISSING
        # A row of another cell is run over, as if it were not there.
        columns, figures = self._study.columns(index), self._study.figures
        is_its_own = is_row_of(columns, known.row, figures=figures)
        return _State.DONE if is_its_own else _State.MISSING

    def try_some(self, seconds: float) -> bool:
        """Run a few cells here; return whether the rest is over in so many *seconds*."""
        spent = 0.0
        while self._n_pending and len(self._seconds) < _RECENT:
            (index,) = self._take(1)
            done = self._work.run(index)
            self._keep([done])
            spent += done.seconds
            # Half of the time goes into finding out, so the whole stays within what was asked for.
            if spent > seconds / 2:
                break
        return self._n_pending * self._cost_s() < seconds

    def run(self, pool: WorkerPool, progress: Any) -> None:
        """Run all that is missing; *progress* as `sweep` has it."""
        with _progress(progress, self.reused + self.ran, len(self._study)) as self._told:
            if pool.is_serial:
                self._run_here()
            else:
                self._run_in(pool)

    def _run_here(self) -> None:
        """Keep what is finished every half a second, and whatever ends this."""
        while indices := self._take(self._batch_size(1)):
            done: list[Done] = []
            try:
                done.extend(map(self._work.run, indices))
            finally:
                self._keep(done)

    def _run_in(self, pool: WorkerPool) -> None:
        payload = self._payload()
        token = hashlib.blake2b(payload, digest_size=16).hexdigest()
        in_flight: dict[Future[Any], _Batch] = {}
        try:
            while True:
                self._fill(pool, token, payload, in_flight)
                if not in_flight:
                    if self._suspects:
                        continue  # the pool broke while it was being filled, and is a new one now
                    return
                done, _ = wait(in_flight, return_when=FIRST_COMPLETED)
                # In the order in which they were handed out, whichever are done.
                self._collect(pool, in_flight, [future for future in in_flight if future in done])
        finally:
            self._keep_finished(in_flight)

    def _fill(
        self, pool: WorkerPool, token: str, payload: bytes, in_flight: dict[Future[Any], _Batch]
    ) -> None:
        """Hand out batches until each worker has one and one to go on with."""
        # Two each, so that no worker waits for the driver; more would only make a stop wait.
        while len(in_flight) < 2 * pool.workers:
            if self._suspects:
                # Alone, so that the one that kills its worker is found out.
                # What ran beside it would be suspected as well.
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
                # Not lost: it never left.
                self._suspects.appendleft(batch)
                self._renew(pool, in_flight)
                return

    def _collect(
        self, pool: WorkerPool, in_flight: dict[Future[Any], _Batch], finished: list[Future[Any]]
    ) -> None:
        for future in finished:
            batch = in_flight.pop(future, None)
            if batch is None:  # a pool that broke took it along
                continue
            try:
                done = future.result()
            except (BrokenExecutor, CancelledError) as error:
                self._lose([batch])
                if isinstance(error, BrokenExecutor):
                    self._renew(pool, in_flight, error)
                continue
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # of dask, which need not be there
                    raise
                self._lose([batch])
                continue
            self._n_stillborn = -1  # a worker lives: whatever breaks now is not how they start
            # A worker that is new, or has forgotten: it gets the study with the same batch.
            if done is None:
                self._suspects.appendleft(batch._replace(with_payload=True))
            else:
                self._keep(done)

    def _renew(
        self, pool: WorkerPool, in_flight: dict[Future[Any], _Batch], error: Exception | None = None
    ) -> None:
        """Take back what a broken pool had in hand, and go on with a new one."""
        if self._n_stillborn >= 0:
            self._n_stillborn += 1
        if self._n_stillborn == _STILLBORN:
            raise InputError([ValidationIssue(key="executor", message=_DIE_AT_START)]) from error
        # First what came back before it broke, which need not run again.
        self._keep_finished(in_flight)
        self._lose(list(in_flight.values()))
        in_flight.clear()
        if not pool.renew():
            message = "broke, and cannot be made anew here; what was finished is kept"
            raise InputError([ValidationIssue(key="executor", message=message)]) from error

    def _lose(self, batches: list[_Batch]) -> None:
        """Try lost batches again: one more time together, then each cell alone."""
        for batch in batches:
            lost = batch.lost + 1
            # Once more together, as workers die for many reasons; then alone, to find the culprit.
            if len(batch.indices) > 1 and lost > 1:
                parts = [(index,) for index in batch.indices]
                self._suspects.extend(_Batch(part, 1) for part in parts)
            elif lost <= _TRIES:
                self._suspects.append(_Batch(batch.indices, lost))
            else:
                self._keep(Done(index, None, None, _LOST, 0.0) for index in batch.indices)

    def _keep_finished(self, in_flight: dict[Future[Any], _Batch]) -> None:
        """Keep what has come back, whatever became of the rest."""
        for future in list(in_flight):
            if future.done() and not future.cancelled() and future.exception() is None:
                done = future.result()
                if done is not None:  # None: the worker asked for the study, nothing ran
                    del in_flight[future]
                    self._keep(done)

    def _keep(self, done: Iterable[Done]) -> None:
        outcomes = []
        for one in done:
            error = one.error
            if error is not None:
                error = f"{self._study.told(one.cell)}: {error}"
                self.failed += 1
            else:
                self.ran += 1
            self._seconds.append(one.seconds)
            key, model = self._keys.key(one.cell), self._study.model
            outcomes.append(CellOutcome(key, model, one.row, one.resources, error, one.seconds))
        if outcomes:
            self._store.put(outcomes)
            self._told(len(outcomes))

    def _take(self, n: int) -> tuple[int, ...]:
        indices = tuple(itertools.islice(self._pending, n))
        self._n_pending = max(0, self._n_pending - len(indices))
        return indices

    def _cost_s(self) -> float:
        return sum(self._seconds) / len(self._seconds) if self._seconds else _TASK_S

    def _batch_size(self, workers: int) -> int:
        """Return how many cells make a task; fewer at the end, so that no worker is left alone."""
        # Two tasks each out of what is left: the last ones get small, and all end at about one
        # time.
        fair = max(1, self._n_pending // (2 * workers))
        return min(max(1, round(_TASK_S / max(self._cost_s(), 1e-9))), fair, _MAX_BATCH)

    def _payload(self) -> bytes:
        try:
            return pickle.dumps(self._work)
        except Exception as error:
            message = f"cannot be sent to workers ({error}): give executor='serial'"
            raise InputError([ValidationIssue(key="schemes", message=message)]) from error


def run_cells(
    cells: Cells,
    *,
    store: str | Path | Store | None = None,
    executor: Any = None,
    workers: int | None = None,
    retry_failed: bool = False,
    progress: ProgressCallback | bool | None = None,
) -> tuple[Callable[[], Iterator[Stored]], Counts]:
    """Run the *cells* that the store does not know yet; arguments as `sweep`'s.

    Returns what yields row, resources and error of all cells, in their order; and the counts.

    Raises:
        StoreError: if the store cannot be read or written; what was finished is kept.
    """
    check_running(executor=executor, workers=workers, retry_failed=retry_failed, progress=progress)
    kept = store if isinstance(store, Store) else Store(":memory:" if store is None else store)
    driver = Driver(cells, kept, retry_failed=retry_failed)
    driver.place()
    small = driver.try_some(_SMALL_S) if executor is None and workers is None else False
    pool = pool_of(executor, workers, is_small=small)
    try:
        driver.run(pool, progress)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(_what_is_kept(kept, driver))
        raise
    finally:
        pool.close()

    def source() -> Iterator[Stored]:
        n = 0
        for stored in kept.rows(driver.study_id):
            yield stored
            n += 1
        if n < len(cells):  # damaged pages end what is read
            raise kept.damaged(f"{len(cells) - n:,} of the {len(cells):,} loads are lost")

    return source, Counts(driver.reused, driver.ran, driver.failed)


def _what_is_kept(store: Store, driver: Driver) -> str:
    """Return what became of the cells that were finished when the user interrupted the rest."""
    finished = f"{driver.ran:,} finished before the interrupt"
    if store.path == ":memory:":
        return f"{finished}, which are lost: give a store, which keeps them"
    return f"{finished}, which are kept in {shown_path(store.path)}: the same again goes on there"


@contextmanager
def _progress(wanted: Any, done: int, total: int) -> Iterator[Callable[[int], None]]:
    """Yield what is told of each batch that was kept."""
    if callable(wanted):
        state = [done]

        def tell(n: int) -> None:
            state[0] += n
            wanted(state[0], total)

        yield tell
        return
    is_shown = wanted if isinstance(wanted, bool) else sys.stderr.isatty() or in_notebook()
    if not is_shown:
        yield lambda _: None
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text
        from tqdm.auto import tqdm

    with tqdm(total=total, initial=done, unit="load", leave=False) as bar:

        def advance(n: int) -> None:
            bar.update(n)

        yield advance
