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
"""What is taken for the workers of an executor that does not say how many it has."""
_MOST_ON_WINDOWS = 61
"""`ProcessPoolExecutor` refuses more there, since the system waits for no more handles at once."""
_PAUSES_S = (0.0, 0.1, 1.0)
"""How long to wait before a process is started again that could not be."""


class WorkerPool:
    """An executor and how many workers it has; this one is somebody else's, and stays theirs."""

    is_serial = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    @property
    def workers(self) -> int:
        """How many loads run at once."""
        # Executors have no public way to ask; those of the standard library keep it there.
        return int(getattr(self._executor, "_max_workers", 0) or _UNKNOWN_WORKERS)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* somewhere."""
        return self._executor.submit(function, *arguments)

    def renew(self) -> bool:
        """Begin again after a worker died; return whether that can be done."""
        return False

    def close(self) -> None:
        """Release what was made for this pool."""


class _Serial(WorkerPool):
    """Runs each load at once, in this process."""

    is_serial = True

    def __init__(self) -> None:
        """Make nothing: there is no executor."""

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
    """Processes of this machine, made anew when one of them dies."""

    def __init__(self, workers: int) -> None:
        self._n = workers
        super().__init__(self._made())

    @property
    def workers(self) -> int:
        """As many as were asked for."""
        return self._n

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* in one of the processes."""
        # A pool that breaks closes its pipes, perhaps while it starts a process here. That may
        # end the server of processes as well. Asked again it says that it is broken, which is
        # what its callers wait for, or there is a new server.
        for pause_s in _PAUSES_S:
            try:
                return super().submit(function, *arguments)
            except (OSError, EOFError):
                time.sleep(pause_s)
        return super().submit(function, *arguments)

    def renew(self) -> bool:
        """Make new processes: one that dies breaks the pool."""
        # Without waiting: a broken pool has nothing that would come back.
        self._stop()
        self._executor = self._made()
        return True

    def close(self) -> None:
        """End the processes, and what they have in hand."""
        for process in self._stop():
            process.join()

    def _stop(self) -> list[Any]:
        """Let the executor go; return its processes, which end."""
        processes = list((getattr(self._executor, "_processes", None) or {}).values())
        # First, so that none is started for one that is ended here; `shutdown` alone would wait
        # until what they have in hand is done.
        self._executor.shutdown(wait=False, cancel_futures=True)
        # Of a broken pool, too: Python 3.11 ends those that it knows of and then waits for all,
        # also for one that `submit` was starting meanwhile, and so for ever.
        for process in processes:
            process.terminate()
        return processes

    def _made(self) -> ProcessPoolExecutor:
        # Not by fork: threads of the parent (a notebook's, numpy's) may hold locks.
        method = (
            "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        )
        context = multiprocessing.get_context(method)
        return ProcessPoolExecutor(self._n, mp_context=context, initializer=_prepare_worker)


def _prepare_worker() -> None:
    """Leave Ctrl-C to the driver alone, and end this process when the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    # `sys.exit` would end this thread, and leave the process with a load that nobody wants.
    os._exit(1)


class _Dask(WorkerPool):
    """The workers of a `dask.distributed` cluster: as many as there are at the moment."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._in_hand: dict[Future[Any], Any] = {}

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run *function* on the cluster.

        Not by the client's own executor: where a worker dies while its result is fetched, that one
        gives a `ValueError` of its own instead of having it computed again.
        """
        # `pure` would have the cluster give back what an equal call came to; `retries` are the
        # driver's.
        asked = self._client.submit(function, *arguments, pure=False, retries=0)
        told: Future[Any] = Future()
        self._in_hand[told] = asked
        asked.add_done_callback(partial(self._tell, told))
        return told

    def close(self) -> None:
        """Cancel what the cluster still has in hand."""
        self._client.cancel(list(self._in_hand.values()))

    def _tell(self, told: Future[Any], asked: Any) -> None:
        """Pass on what became of *asked*; called in a thread of the client's."""
        try:
            told.set_result(asked.result())
        except BaseException as error:  # noqa: BLE001 - whatever it is, the driver decides
            told.set_exception(CancelledError() if asked.cancelled() else error)
        self._in_hand.pop(told, None)

    @property
    def workers(self) -> int:
        """The threads of all workers; more may join, and some may leave."""
        return max(1, int(sum(self._client.ncores().values())))


def worker_count(workers: int | None) -> int:
    """Return how many processes are meant; None is one a core that this process may use.

    On Windows there are at most 61 of them: a pool there can wait for no more.

    Raises:
        InputError: if it is no number of processes.
    """
    workers = check_running(workers=workers)["workers"]
    # What taskset, a container's cpuset or a cluster's scheduler leaves of the machine: with a
    # process for each of its other cores they would take turns.
    can_ask = hasattr(os, "sched_getaffinity")
    n = workers or (len(os.sched_getaffinity(0)) if can_ask else os.cpu_count()) or 1
    return min(n, _MOST_ON_WINDOWS) if sys.platform == "win32" else n


def pool_of(executor: Any, workers: int | None, *, is_small: bool) -> WorkerPool:
    """Return where to run: "serial", "processes", an executor, or a client of `dask.distributed`.

    None takes processes, one a core or *workers*, unless there is only one, or the study *is_small*
    and would be over before they have started.

    Raises:
        InputError: if it is something else.
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
        InputError: if no scheduler answers there.
    """
    if address is None:
        yield None
        return
    with needing_extra("distributed", "dask"):
        import distributed  # on use: an extra
    try:
        client: Any = distributed.Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        message = f"no scheduler answers at {address!r}: {error}"
        raise InputError([ValidationIssue(key="--dask", message=message)]) from error
    try:
        yield client
    finally:
        client.close()
