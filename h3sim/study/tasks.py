"""Loads that a function asks for and measures: its tasks, on the runner of studies.

`compare`, `search`, `optimality` and the others list their loads and say what is measured of each;
workers, progress, stores and resumption are the runner's business.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from h3sim.config.load_config import LoadConfig, config_of, with_fields
from h3sim.results import Load, in_words
from h3sim.schema.arguments import ErrorCollector
from h3sim.study.cache_key import digest, model_version, page_digest, resolved_digest, scheme_digest
from h3sim.study.run import run_config
from h3sim.study.runner import CellFailedError, Execution, Runner, split_options
from h3sim.study.worker import StudyKeys, StudyWork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.page import Page
    from h3sim.schemes import Scheme


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


class LoadRunner:
    """Runner of tasks: the loads of one call of a function.

    They run in this process, one after the other, unless *execution* has an executor or workers.
    Loads that are to be kept always do, as their traces are large.
    """

    def __init__(self, execution: Execution, measure: Measure, *, keep_loads: bool = False) -> None:
        here = keep_loads or (execution.executor is None and execution.workers is None)
        self._runner = Runner(replace(execution, executor="serial") if here else execution)
        self._is_stored = execution.store is not None
        self._measure = measure
        self._n_run = 0
        self.loads: list[Load] | None = [] if keep_loads else None
        """The loads, in the order of the tasks, if they are kept."""

    def __enter__(self) -> Self:
        self._runner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._runner.__exit__(*error)
        self._runner.close_store()

    def expect(self, n: int) -> None:
        """Announce that there will be *n* loads more."""
        self._runner.expect(n)

    def run(self, tasks: Sequence[LoadTask]) -> list[dict[str, Any]]:
        """Return the figures of each task, with `configuration` and `words` of its load.

        Raises:
            H3SimError: that of the first load that fails.
        """
        found: dict[int, Load] | None = None if self.loads is None else {}
        work = _TaskWork(tasks=tasks, measure=self._measure, loads=found, is_strict=True)
        cells = _Tasks(work, self._measure, None if self._is_stored else self._n_run)
        try:
            source, _ = self._runner.run(cells, retry_failed=True)
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
        self.model = model_version() if first is None else ""

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
        self._head = digest(model, measure.__qualname__, source)
        self._of_page: dict[int, bytes] = {}
        self._of_scheme = cache(scheme_digest)

    def key(self, index: int) -> bytes:
        """Return the key of the task at *index*."""
        page, scheme, config, quantity = self._tasks[index]
        options = {entry.name: getattr(config, entry.name) for entry in fields(config)}
        if id(page) not in self._of_page:
            self._of_page[id(page)] = page_digest(page)
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        hashed.update(self._of_page[id(page)] + self._of_scheme(scheme))
        hashed.update(resolved_digest(page, scheme, options) + digest(quantity, str(config.seed)))
        return hashed.digest()

    def token(self) -> str:
        """Return a text that identifies all tasks, in order."""
        return digest(*(self.key(index).hex() for index in range(len(self._tasks)))).hex()


class _Numbers:
    """Keys of cells that are forgotten at the end: nothing of a load need be identified."""

    def __init__(self, first: int) -> None:
        self._first = first

    def key(self, index: int) -> bytes:
        return (self._first + index).to_bytes(16)

    def token(self) -> str:
        return str(self._first)
