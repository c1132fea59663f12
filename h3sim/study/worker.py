"""The worker of a study: the task interface, and the tasks of a sweep.

Rows are sent and stored as JSON text, so that their bytes do not depend on the worker.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from h3sim._version import __version__
from h3sim.export import write_load_qlog
from h3sim.headers.base import HeaderLists
from h3sim.load.figures import columns_of
from h3sim.load.network_path import config_of, default_network, is_file_key, resolve_path
from h3sim.load.run import resolve, run_spec
from h3sim.page import parameters_of
from h3sim.schema.errors import plain_values
from h3sim.study.code_identity import CodeDigests
from h3sim.study.design import KEPT
from h3sim.study.setting_digests import processes_column, scheme_column, setting_digests
from h3sim.values.errors import H3SimError, InputError, Terminated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from h3sim.engine import LoadSpec
    from h3sim.load import Load
    from h3sim.study.cache_key import CellKeys
    from h3sim.study.design import Design, DesignPoint, Keep


_MAX_CACHED_STUDIES = 4
"""Studies whose inputs a worker process keeps, for batches that alternate between them."""
_work_by_token: OrderedDict[str, StudyWork] = OrderedDict()
"""Studies that this worker process has received, by `StudyKeys.token`, oldest first."""


class StudyKeys(Protocol):
    """Cache keys of cells, equal across studies."""

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*; equal cells have equal keys."""

    def token(self) -> str:
        """Return a text that identifies this study: all inputs of its cells, in order."""

    def warnings(self) -> Iterator[str]:
        """Yield a line for each scheduler and controller whose loads cannot be reused."""


class Cells(Protocol):
    """Sequence of independent cells that a driver runs."""

    name: str
    """Display name of the study."""
    model: str
    """Model of h3sim that runs the cells, for lists and pruning."""
    has_resources: bool
    """True if rows of each cell's parts (the resources of a load) are kept as well."""
    is_strict: bool
    """True if the study ends with the first cell that fails."""

    @property
    def keeps_files(self) -> bool:
        """True if files of cells are kept beside the store, and named in their rows."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns in which the cells differ, slowest first."""

    def __len__(self) -> int: ...

    def keys(self) -> StudyKeys:
        """Return the cache keys of the cells."""

    def work(self) -> StudyWork:
        """Return the data that a worker needs."""

    @property
    def figures(self) -> Collection[str]:
        """Columns of metrics that each row must have."""

    def columns(self, index: int) -> Mapping[str, Any]:
        """Return the values that the row of the cell at *index* must have in some columns."""

    def describe(self, index: int) -> str:
        """Return the description of the cell at *index* for error messages."""


class Done(NamedTuple):
    """Outcome of a cell: its row and, if requested, its resources, as JSON; or an error."""

    cell: int
    row: str | None
    resources: str | None
    error: str | None
    seconds: float
    files: tuple[tuple[str, bytes], ...] = ()
    """Names and contents of files that are kept beside the store."""


class TimedOutError(H3SimError):
    """Cell that exceeded its time limit."""


@dataclass(kw_only=True)
class StudyWork(ABC):
    """Data of a study that each worker needs once."""

    timeout_s: float | None = None
    is_strict: bool = False
    """True if errors are raised instead of being returned as text; not in other processes."""
    files: list[tuple[str, bytes]] = field(default_factory=list, repr=False)
    """Files of the last cell, which `row` makes."""

    @abstractmethod
    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the cell at *index*, and its resources if they are kept, as JSON."""

    def run(self, index: int) -> Done:
        """Run the cell at *index* and return its outcome, which may be an error."""
        began = time.perf_counter()
        row = resources = error = None
        self.files = []
        try:
            with _time_limit(self.timeout_s):
                row, resources = self.row(index)
        except Terminated:  # not a failure of the cell, which would not run again if stored as one
            raise
        except (Exception, SystemExit) as caught:
            if self.is_strict:
                raise
            error = f"{type(caught).__name__}: {caught}"
        seconds = time.perf_counter() - began
        return Done(index, row, resources, error, seconds, tuple(self.files))


def prepare_worker(driver: int) -> None:
    """Ignore Ctrl-C, which the driver handles, and end this process when the driver is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":  # where a process keeps the number of a parent that is gone
        threading.Thread(target=_exit_after, args=(driver,), daemon=True).start()


def _exit_after(driver: int) -> None:
    """Exit once *driver* is no longer the parent: a killed one cannot end its workers itself."""
    while os.getppid() == driver:
        time.sleep(1)
    os._exit(1)  # `sys.exit` would end only this thread, not a running load


def run_batch(token: str, indices: Sequence[int], payload: bytes | None) -> list[Done] | None:
    """Run the cells at *indices* of the study identified by *token*.

    A worker without the study returns None; *payload* then provides it, once.
    """
    work = _work_by_token.get(token)
    if work is None:
        if payload is None:
            return None
        work = pickle.loads(payload)  # noqa: S301 - from our own driver
        _work_by_token[token] = work
        # A pool may serve many studies, whose pages would fill the worker's memory.
        while len(_work_by_token) > _MAX_CACHED_STUDIES:
            _work_by_token.popitem(last=False)
    return [work.run(index) for index in indices]


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Stop the block after *seconds*, if that is possible: by a signal, in a main thread."""
    is_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimedOutError(f"took longer than {seconds:g} s")

    previous_handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        # The timer first: otherwise an alarm in between would call the previous handler.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)


class Setting(NamedTuple):
    """Load of a page with some scheme and seed, and its digests in rows (`setting_digests`)."""

    spec: LoadSpec
    digests: dict[str, str | None]


@dataclass(kw_only=True)
class LoadWork(StudyWork):
    """Loads of a sweep."""

    design: Design
    has_resources: bool = False
    model: str = ""
    """Model of h3sim, a part of the keys after which files are named that are kept."""
    _resolved: tuple[tuple[int, int], Setting | Exception] | None = field(default=None, repr=False)
    """The last result of `_setting`, with its arguments."""
    _keys: CellKeys | None = field(default=None, repr=False)
    _codes: CodeDigests = field(default_factory=lambda: CodeDigests(is_strict=False), repr=False)
    _scheme_digests: list[str] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        # Here, before the work is sent to workers and before any load runs.
        schemes = self.design.schemes
        self._scheme_digests = [scheme_column(scheme, self._codes) for scheme in schemes]
        for name, code in self.design.controllers():
            self._codes.digest_of(code, name)

    def row(self, index: int) -> tuple[str, str | None]:
        """Return the row of the load at *index*, and those of its resources if they are kept."""
        page, setting, scheme, _ = self.design.indices(index)
        (setting_spec, digests), cell = self._setting(setting, page), self.design[index]
        spec = replace(setting_spec.with_scheme(cell.scheme), seed=cell.seed)
        names = _columns_as_given(cell) | digests
        names["scheme_digest"] = self._scheme_digests[scheme]
        processes = self.design.processes
        if processes:
            names["processes"] = processes_column(processes, self._codes)
        timings: Sequence[Mapping[str, Any]] | None
        if isinstance(cell.page, HeaderLists):
            from h3sim.study.header_models import header_row  # lazy: most studies load pages

            row, timings = header_row(cell.page, spec, names)
        else:
            load = run_spec(spec, processes=processes)
            row = row_of(load, names=names, metrics=self.design.metrics)
            row |= {name: _own_value(name, own(load)) for name, own in self.design.columns.items()}
            if self.design.keep is not None:
                self.files = _kept_files(load, self.design.keep, self._key(index).hex())
                row[KEPT_COLUMN] = " ".join(name for name, _ in self.files) or None
            timings = [timing._asdict() for timing in load.timings] if self.has_resources else None
        resources = json.dumps(timings, allow_nan=False) if self.has_resources else None
        return json.dumps(row, allow_nan=False), resources

    def _key(self, index: int) -> bytes:
        if self._keys is None:
            from h3sim.study.cache_key import CellKeys  # lazy: workers seldom need it

            self._keys = CellKeys(self.design, self.model)
        return self._keys.key(index)

    def _setting(self, setting: int, page: int) -> Setting:
        """Return a setting for a page: indices in the design.

        The last one is cached: seeds and schemes vary faster than settings, so that the cells of a
        batch mostly share it.
        """
        if self._resolved is None or self._resolved[0] != (setting, page):
            result: Setting | Exception
            try:
                subject = self.design.pages[page]
                config = config_of(subject, self.design.settings[setting])
                path = resolve_path(subject, config)
                spec = resolve(subject, self.design.schemes[0], config, path=path)
                digests = setting_digests(path, spec.header_compression, self._codes)
                result = Setting(spec, digests)
            except Exception as caught:  # noqa: BLE001 - raised again below, for each of these cells
                result = caught
            self._resolved = ((setting, page), result)
        _, result = self._resolved
        if isinstance(result, Exception):
            raise result
        return result


KEPT_COLUMN = "kept"
"""Column of the names of the files that are kept of a load."""


def _kept_files(load: Load, keep: Keep | None, name: str) -> list[tuple[str, bytes]]:
    """Return names and contents of the files of *load* that are kept.

    Raises:
        InputError: if a user's function chooses neither a qlog nor a trace nor None.
    """
    chosen = keep(load) if callable(keep) else keep
    if chosen not in (*KEPT, None):
        message = f"its function must return 'qlog', 'trace' or None, not {chosen!r}"
        raise InputError.at("keep", message)
    with tempfile.TemporaryDirectory() as folder:
        if chosen == "qlog":
            write_load_qlog(load, Path(folder) / f"{name}.qlog")
        elif chosen == "trace":
            load.save(Path(folder) / f"{name}.json")
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    if chosen == "qlog":  # qvis and h3sim read gzip; without a time, equal loads have equal files
        files = {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in files.items()}
    return [*files.items()]


def _own_value(name: str, value: Any) -> Any:
    """Return the value that a user's function returned for the column *name*.

    Raises:
        InputError: if it is neither one value nor None.
    """
    value = plain_values(value)
    is_finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float | None) or not is_finite:
        message = f"its function must return a finite number, text or None, not {value!r}"
        raise InputError.at(name, message)
    return value


def _columns_as_given(cell: DesignPoint) -> dict[str, Any]:
    """Return the columns that have the names given in the design, by which rows are found.

    A load itself has a name for a changed network, none for the codec "none", and no file keys.
    """
    network = cell.options.get("network") or default_network(cell.page)
    columns = {"network": getattr(network, "name", str(network))}
    columns |= {name: value for name, value in cell.options.items() if is_file_key(name)}
    codec = cell.options.get("header_compression")
    if codec is not None:
        columns["header_compression"] = getattr(codec, "name", codec)
    return columns


def row_of(
    load: Load, *, names: Mapping[str, Any] | None = None, metrics: Collection[str] = ()
) -> dict[str, Any]:
    """Return the row of *load*: its settings, then its metrics.

    *names* are settings that the study knows, *metrics* names the on-demand metrics to include.
    """
    return {
        "page": load.page.name,
        "page_digest": load.page.digest,
        "page_bytes": load.page.total_bytes,
        "page_atf_bytes": sum(r.size_bytes for r in load.page.resources if r.above_the_fold),
        **parameters_of(load.page),
        "scheme": load.scheme.name,
        **load.configuration,
        **(names or {}),
        "version": __version__,
        **columns_of(load, on_demand=metrics),
    }
