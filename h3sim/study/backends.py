"""Backends that run loads: this process, processes of this machine, or a cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from h3sim.config.arguments import check_running
from h3sim.errors import InputError, ValidationIssue, needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable


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

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    @property
    def workers(self) -> int:
        """Number of loads that run at once."""
        # Executors have no public attribute for it; those of the standard library have this one.
        return int(getattr(self._executor, "_max_workers", 0) or _UNKNOWN_WORKERS)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit *function* to the executor."""
        return self._executor.submit(function, *arguments)

    def renew(self) -> bool:
        """Restart after a worker died; return whether that is possible."""
        return False

    def close(self) -> None:
        """Release the resources of this pool."""


class _Serial(WorkerPool):
    """Pool without workers: each load runs immediately in this process."""

    is_serial = True

    def __init__(self) -> None:
        """Do nothing: there is no executor."""

    @property
    def workers(self) -> int:
        """One."""
        return 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* now."""
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


class _Processes(WorkerPool):
    """Processes on this machine, all restarted when one of them dies."""

    def __init__(self, workers: int) -> None:
        self._n = workers
        super().__init__(self._made())

    @property
    def workers(self) -> int:
        """Number of processes requested."""
        return self._n

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* in one of the processes."""
        # A breaking pool closes its pipes, perhaps while a process is being started here, which
        # may also end the forkserver. On a second attempt the pool reports that it is broken, as
        # callers expect, or a new forkserver has started.
        for pause_s in _PAUSES_S:
            try:
                return super().submit(function, *arguments)
            except (OSError, EOFError):
                time.sleep(pause_s)
        return super().submit(function, *arguments)

    def renew(self) -> bool:
        """Start new processes: a process that dies breaks the pool."""
        # Without waiting: a broken pool returns no more results.
        self._stop()
        self._executor = self._made()
        return True

    def close(self) -> None:
        """Terminate the processes and their running loads."""
        for process in self._stop():
            process.join()

    def _stop(self) -> list[Any]:
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

    def _made(self) -> ProcessPoolExecutor:
        # Not fork: threads of the parent (a notebook's, numpy's) may hold locks.
        method = (
            "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        )
        context = multiprocessing.get_context(method)
        return ProcessPoolExecutor(self._n, mp_context=context, initializer=_prepare_worker)


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
        self._in_hand: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* on the cluster.

        The client's own executor is not used: if a worker dies while its result is fetched, it
        raises a `ValueError` instead of computing the result again.
        """
        # `pure` would return cached results of equal calls; retries are the driver's task.
        asked = self._client.submit(function, *arguments, pure=False, retries=0)
        outcome: Future[Any] = Future()
        self._in_hand[outcome] = asked
        asked.add_done_callback(partial(self._copy_outcome, outcome))
        return outcome

    def close(self) -> None:
        """Cancel all pending work on the cluster."""
        self._client.cancel(list(self._in_hand.values()))

    def _copy_outcome(self, outcome: Future[Any], asked: Any) -> None:
        """Copy the outcome of the Dask future to *outcome*; called in a client thread."""
        try:
            outcome.set_result(asked.result())
        except BaseException as error:  # noqa: BLE001 - the driver decides
            outcome.set_exception(CancelledError() if asked.cancelled() else error)
        self._in_hand.pop(outcome, None)

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
        raise InputError([ValidationIssue(key="--dask", message=message)]) from error
    try:
        yield client
    finally:
        client.close()
