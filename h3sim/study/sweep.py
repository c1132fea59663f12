"""Sweeps: every load of a study, planned, run, stored as it finishes, and resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim.config import LoadConfig
from h3sim.config.load_config import (
    RECORDED,
    config_for,
    recorded_network,
    refuse_options,
    with_fields,
)
from h3sim.config.options import SEED, ReorderOption, check_running, refuse
from h3sim.errors import InputError, ValidationIssue
from h3sim.headers.base import HeaderLists
from h3sim.results.figures import FIGURES, ON_DEMAND
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import plain_number, plain_values
from h3sim.schema.values import Choice, Flag, ListOf, Number, OrNone, Text
from h3sim.study.cache_key import CellKeys, model_version
from h3sim.study.compare import check_names
from h3sim.study.design import OPTIONS, Design, FactorialDesign, Range, sampled, values_of_axis
from h3sim.study.header_study import SubjectLike, resolve_swept
from h3sim.study.results import Results
from h3sim.study.run import SchedulersLike, SchemeLike, add_schedulers
from h3sim.study.runner import Execution, Runner, split_options, worker_count
from h3sim.study.store import Store
from h3sim.study.worker import Cells, LoadWork
from h3sim.transport import Network, TransportProfile
from h3sim.transport.congestion import controller_named

if TYPE_CHECKING:
    from h3sim.page import Page
    from h3sim.study.design import StoppingRule


_CHUNK = 1000
_PROBED, _PROBE_S = 24, 2.0
_GOLDEN = 0.618033988749895
"""Golden ratio: the fractional parts of its multiples are evenly spread (Weyl)."""


class StudyPlan(NamedTuple):
    """Plan of a study: numbers of loads, stored and missing, and the estimated duration."""

    loads: int
    reused: int
    to_run: int
    workers: int
    seconds: float
    """Estimated time on one worker, from a few trial loads."""

    def __str__(self) -> str:
        long = self.seconds / self.workers
        shown = f"{long:.1f} s" if long < 90 else f"{long / 60:,.0f} min"
        return (
            f"{self.loads:,} loads: {self.reused:,} stored, {self.to_run:,} to run,"
            f" about {shown} on {self.workers} workers"
        )


def plan_cells(
    cells: Cells, *, store: str | Path | None = None, workers: int | None = None
) -> StudyPlan:
    """Plan a run after timing a few *cells* from all over the study; nothing is stored.

    The trial may miss rare slow cells; then the run takes longer than estimated.

    Raises:
        StoreError: if the store cannot be read.
    """
    n_cells = len(cells)
    n_missing = n_cells if store is None else _count_missing(cells, store)
    work, spent, n_tried = cells.work(), 0.0, 0
    while n_tried < min(_PROBED, n_cells) and spent <= _PROBE_S:
        spent += work.run(int(n_tried * _GOLDEN % 1 * n_cells)).seconds
        n_tried += 1
    seconds = spent / n_tried * n_missing
    return StudyPlan(n_cells, n_cells - n_missing, n_missing, worker_count(workers), seconds)


def _count_missing(cells: Cells, store: str | Path) -> int:
    """Return the number of *cells* missing in the store; all if there is no store."""
    # A missing store would be refused, as it is opened read-only.
    if not os.path.exists(store):  # noqa: PTH110 - text or path
        return len(cells)
    keys, n_missing = cells.keys(), 0
    with Store(store, may_write=False) as known:
        for first in range(0, len(cells), _CHUNK):
            some = [keys.key(n) for n in range(first, min(first + _CHUNK, len(cells)))]
            done = known.known(some)
            if cells.has_resources:
                done = {key: row for key, row in done.items() if row.error or row.resources}
            n_missing += sum(key not in done for key in some)
    return n_missing


_ARGUMENTS = (
    *("schemes", "scheduler", "signals", "seeds", "cells", "samples", "sampling"),
    *("sampling_seed", "store", "executor", "workers", "resources", "metrics"),
    *("retry_failed", "timeout_s", "progress", "name"),
)
_COLUMNS_AS_GIVEN = (
    *("network", "header_compression", "transport", "rate_mbps", "rtt_ms", "loss"),
)
"""Options with a column of the same name for the value as given."""
_CHECKED = 2000
"""Most settings that are validated before anything runs; in larger studies loads fail singly."""
_MAX_ISSUES = 20


_MOST_SEEDS = 10**9
_CELLS = Predicate(
    "a list of tables of options",
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and all(isinstance(cell, Mapping) for cell in value)
    ),
)
_TAKEN = {
    "cells": OrNone(_CELLS),
    "sampling_seed": SEED,
    "resources": Flag(),
    "metrics": ListOf(Choice(ON_DEMAND), "figures"),
    "timeout_s": OrNone(Number(low=0, is_above=True)),
    "name": Text(),
}
"""Validators of the arguments of `load_study`."""


@dataclass(kw_only=True)
class Study:
    """Study: a design and the results to keep; `run` may be called repeatedly."""

    design: Design
    name: str = ""
    has_resources: bool = False
    timeout_s: float | None = None
    model: str = field(default_factory=model_version)
    stand_in: Callable[[Any], dict[str, Any]] | None = None
    """Substitute for loading, used by tests of the runner."""
    is_strict = False
    stopping: StoppingRule | None = None
    """Stopping rule, if seeds are added automatically (`h3sim.study.sequential`)."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns in which the loads differ, slowest first."""
        return self.design.axes

    def __len__(self) -> int:
        return len(self.design)

    def with_seeds(self, seeds: int | Iterable[int]) -> Study:
        """Return the same study with other *seeds*: a list, or a number of seeds from 0 on.

        Raises:
            InputError: if there are none, or one is not a valid seed.
        """
        return replace(self, design=replace(self.design, seeds=resolve_seeds(seeds)))

    def ask_for(self, metrics: Sequence[str]) -> None:
        """Add on-demand metrics to the rows.

        Raises:
            InputError: naming each unknown metric.
        """
        _check(metrics=metrics)
        requested = {*self.design.metrics, *metrics}
        # In a fixed order, since cache keys depend on it.
        in_order = tuple(name for name in ON_DEMAND if name in requested)
        self.design = replace(self.design, metrics=in_order)

    def keys(self) -> CellKeys:
        """Return the cache keys of the loads."""
        return CellKeys(self.design, self.model)

    def describe(self, index: int) -> str:
        """Return the description of the load at *index* for error messages."""
        cell = self.design[index]
        options = "".join(
            f", {name}={getattr(value, 'name', value)}" for name, value in cell.options.items()
        )
        return f"{cell.page.name}, {cell.scheme.name}{options}, seed {cell.seed}"

    @property
    def figures(self) -> tuple[str, ...]:
        """Columns of metrics that each row must have."""
        if self.stand_in is not None:  # its rows have any columns
            return ()
        if any(isinstance(page, HeaderLists) for page in self.design.pages):
            from h3sim.study.header_models import HEADER_FIGURES  # lazy: most studies load pages

            return HEADER_FIGURES
        headlines = (figure.name for figure in FIGURES if figure.is_headline)
        return (*headlines, *self.design.metrics)

    def columns(self, index: int) -> dict[str, Any]:
        """Return the values that the row of the load at *index* must have in some columns."""
        cell = self.design[index]
        page = {"page": cell.page.name, "page_digest": cell.page.digest}
        given = {
            name: getattr(cell.options[name], "name", cell.options[name])
            for name in _COLUMNS_AS_GIVEN
            if cell.options.get(name) is not None
        }
        return {**page, **given, "scheme": cell.scheme.name, "seed": cell.seed}

    def work(self) -> LoadWork:
        """Return the data that a worker needs."""
        names = ("design", "has_resources", "timeout_s", "stand_in")
        return LoadWork(**{name: getattr(self, name) for name in names})

    def plan(self, *, store: str | Path | None = None, workers: int | None = None) -> StudyPlan:
        """Plan a run after timing a few loads; nothing is stored.

        Raises:
            StoreError: if the store cannot be read.
        """
        return plan_cells(self, store=store, workers=workers)

    @with_fields(Execution)
    def run(self, *, retry_failed: bool = False, **how: Any) -> Results:
        """Run the loads missing in the store, and return all rows; arguments as for `sweep`.

        Raises:
            StoreError: if the store cannot be read or written; finished loads are kept.
        """
        check_running(retry_failed=retry_failed)
        with Runner(Execution(**how)) as runner:
            source, counts = runner.run(self, retry_failed=retry_failed)
        return Results(source, axes=self.axes, counts=counts)


@with_fields(Execution)
def sweep(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    seeds: int | Iterable[int] = 1,
    retry_failed: bool = False,
    **options: Any,
) -> Results:
    """Load every page with every setting, scheme and seed, and return one row per load.

    Pages may be replaced by `HeaderLists`, compressed as `headers=` selects: their rows have
    compression ratios and head-of-line blocking (`h3sim.study.header_study`).
    *options* are the other arguments of `load_study`: options of a load, each with one value or a
    list of values, schedulers of your own with the *signals* of their clients, and `cells`,
    `samples`, `resources`, `metrics`, `timeout_s`; and the fields of `Execution`. Code of your own,
    as `scheduler=[MyScheduler], signals="chrome-eps"` or `cc=MyController`, may be defined in a
    notebook. Without *executor* and *workers* the duration of the study decides. Failed loads keep
    their error in the *store*, and run again with *retry_failed*.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if an axis is unknown.
        StoreError: if the store cannot be read or written.

    >>> results = sweep("davies-meenan", schemes=["rr", "fifo"], rtt_ms=[0, 50], executor="serial")
    >>> [(row["rtt_ms"], row["scheme"], row["page_load_ms"]) for row in results][:2]
    [(0.0, 'rr', 4580.0), (0.0, 'fifo', 4580.0)]
    """
    how, study = split_options(options)
    with ErrorCollector() as errors:
        errors.collect("", lambda: Execution(**how))
        errors.collect("", lambda: check_running(retry_failed=retry_failed))
        planned = errors.collect(
            "", lambda: load_study(pages, schemes=schemes, seeds=seeds, **study)
        )
    return planned.run(retry_failed=retry_failed, **how)


def load_study(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    scheduler: SchedulersLike | None = None,
    signals: SchemeLike | None = None,
    seeds: int | Iterable[int] = 1,
    cells: Sequence[Mapping[str, Any]] | None = None,
    samples: int | None = None,
    sampling: str = "latin-hypercube",
    sampling_seed: int = 0,
    resources: bool = False,
    metrics: Sequence[str] = (),
    timeout_s: float | None = None,
    name: str = "",
    **axes: Any,
) -> Study:
    """Return the study that `sweep` would run, to plan it or to run it later.

    *axes* are options of a load, each with one value or a list of values: `network=["4g", "cable"],
    loss=[0, 0.02], transport="tcp"`. *cells* lists combinations of settings, like
    `[{"rtt_ms": 10, "rate_mbps": 50}, ...]`; *samples* is the number of samples from the axes that
    are a `Range`, as a "latin-hypercube" or "sobol" points. *seeds* is a list, or a number of seeds
    from 0 on. Each *scheduler* (a class, function, object or name, or a list) joins the schemes,
    with clients that send the *signals* of a scheme (by default none). The schemes are by default
    "marx-2019", or none beside such schedulers. *resources* also keeps one row per resource;
    *metrics* names columns that take longer to compute, like "multiplexing_interleaving";
    *timeout_s* is the time limit of a load.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if an axis is unknown.
    """
    taken = {"resources": resources, "metrics": metrics, "timeout_s": timeout_s, "name": name}
    drawing: dict[str, Any] = {"samples": samples, "sampling": sampling, "seed": sampling_seed}
    usual = () if scheduler is not None else "marx-2019"
    with ErrorCollector() as errors:
        errors.collect("", lambda: _check(**taken))
        requested = errors.collect(
            "", lambda: add_schedulers(schemes, scheduler, signals, usual=usual), default=["rr"]
        )
        found = errors.collect("", lambda: resolve_swept(pages, requested), default=([], []))
        chosen = errors.collect("", lambda: resolve_seeds(seeds))
        settings = errors.collect("", lambda: _settings(axes, cells, found[0], **drawing))
    subjects, by = found
    design = Design(pages=tuple(subjects), schemes=tuple(by), settings=settings, seeds=chosen)
    study = Study(design=design, name=name, has_resources=resources, timeout_s=timeout_s)
    study.ask_for(metrics)
    return study


def _check(**given: Any) -> None:
    check_arguments(InputError, **{key: (_TAKEN[key], value) for key, value in given.items()})


def _settings(
    axes: Mapping[str, Any],
    cells: Sequence[Mapping[str, Any]] | None,
    pages: Sequence[Page | HeaderLists],
    *,
    samples: int | None,
    sampling: str,
    seed: int,
) -> FactorialDesign:
    """Return every setting of a study, collecting the errors of all arguments."""
    _check(cells=cells, sampling_seed=seed)
    ranges = {key: value for key, value in axes.items() if isinstance(value, Range)}
    names = dict.fromkeys(name for table in (axes, *(cells or ())) for name in table)
    unknown = [name for name in names if name not in OPTIONS]
    listed = tuple({name: cell[name] for name in cell if name in OPTIONS} for cell in cells or ())
    plain = {name: axes[name] for name in axes if name in OPTIONS and name not in ranges}
    with ErrorCollector() as errors:
        errors.collect("", lambda: refuse_options(unknown, (*OPTIONS, *_ARGUMENTS)))
        errors.collect("", lambda: _check_exclusive(axes, cells, ranges, samples))
        listed = ({},) if cells is None else listed
        if ranges and samples is not None:
            drawn = errors.collect(
                "", lambda: sampled(ranges, samples, method=sampling, seed=seed), default=({},)
            )
            listed = tuple({**cell, **point} for cell in listed for point in drawn)
        values = {
            name: errors.collect("", partial(values_of_axis, name, value), default=())
            for name, value in plain.items()
        }
        known = {name: value for name, value in values.items() if value}
        given = FactorialDesign(listed=listed, axes=known)
        errors.collect("", lambda: _check_settings(given, pages))
        return errors.collect("", lambda: _named(given))


def _check_exclusive(
    axes: Mapping[str, Any],
    cells: Sequence[Mapping[str, Any]] | None,
    ranges: Mapping[str, Range],
    samples: int | None,
) -> None:
    """Refuse arguments that exclude each other."""
    problems = []
    if cells is not None and not cells:
        problems.append(ValidationIssue(key="cells", message="at least one is needed"))
    if samples is None:
        message = "a range needs samples=, the number of settings to draw"
        problems += (ValidationIssue(key=key, message=message) for key in ranges)
    # An argument would silently override the cells.
    twice = dict.fromkeys(name for cell in cells or () for name in cell if name in axes)
    message = "is given both in cells and as an argument: give it once"
    refuse([*problems, *(ValidationIssue(key=name, message=message) for name in twice)])


def resolve_seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    """Return the seeds: those listed, or so many from 0 on.

    Raises:
        InputError: if there are none, or one is not a valid seed.
    """
    seeds = plain_values(seeds)
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        if seeds > _MOST_SEEDS:
            raise InputError.at("seeds", f"must be at most {_MOST_SEEDS:,}")
        seeds = range(max(0, seeds))
    given = seeds if isinstance(seeds, Iterable) else (seeds,)
    chosen = given if isinstance(given, range) else tuple(map(plain_number, given))
    if not chosen:
        raise InputError.at("seeds", "at least one is needed")
    problems = [
        ValidationIssue(key="seeds", message=f"must be whole numbers from 0 on, is {seed!r}")
        # For a range, checking its ends suffices; it may have a billion numbers.
        for seed in ([chosen[0], chosen[-1]] if isinstance(chosen, range) else chosen)
        if type(seed) is not int or seed < 0
    ]
    # By `repr`, so that values reported already, like True next to 1, are not duplicates.
    if not isinstance(chosen, range) and len(set(map(repr, chosen))) < len(chosen):
        problems.append(ValidationIssue(key="seeds", message="one is duplicated"))
    refuse(problems[:_MAX_ISSUES])
    return chosen


_FINDS: dict[str, Callable[[Any], Any]] = {
    "network": catalog.load_network,
    "transport_profile": catalog.load_profile,
    "reorder": ReorderOption().accept,
}
"""Functions that resolve names, by option."""


def _named(given: FactorialDesign) -> FactorialDesign:
    """Return the settings with names resolved: files are read once, and cache keys use contents."""
    with ErrorCollector() as errors:

        def meant(key: str, value: Any) -> Any:
            # Paths as well: a file that changes later gives other cells.
            is_name = isinstance(value, str | Path | Mapping) and value != RECORDED
            if key not in _FINDS or not is_name:
                return value
            return errors.collect(key, lambda: _FINDS[key](value))

        named = FactorialDesign(
            listed=tuple({key: meant(key, cell[key]) for key in cell} for cell in given.listed),
            axes={key: tuple(meant(key, v) for v in values) for key, values in given.axes.items()},
        )
    # Those given as values, since rows have only their names.
    check_names(
        network=[v for v in _given_values(named, "network") if isinstance(v, Network)],
        transport_profile=[
            v for v in _given_values(named, "transport_profile") if isinstance(v, TransportProfile)
        ],
    )
    _check_controllers(named)
    return named


def _check_controllers(settings: FactorialDesign) -> None:
    """Refuse two controllers of one name, which rows could not tell apart."""
    names = [controller_named(cc)[0] for cc in _given_values(settings, "cc") if callable(cc)]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    messages = (f"two controllers are called {name!r}" for name in twice)
    refuse(ValidationIssue(key="cc", message=message) for message in messages)


def _given_values(settings: FactorialDesign, key: str) -> list[Any]:
    """Return all values of an option in *settings*, each once."""
    listed = [cell[key] for cell in settings.listed if key in cell]
    found: list[Any] = []
    for value in (*listed, *settings.axes.get(key, ())):
        if value not in found:
            found.append(value)
    return found


def _check_settings(
    settings: Sequence[Mapping[str, Any]], pages: Sequence[Page | HeaderLists]
) -> None:
    """Refuse invalid settings, each error once."""
    # Pages without a recorded network share one: the first represents them.
    # Backwards, so that the first of equal pages remains.
    differing = {repr(recorded_network(page)): page for page in reversed(pages)}
    if len(settings) > _CHECKED:
        return
    with ErrorCollector() as errors:
        for options in settings:
            errors.collect("", partial(_check_setting, options, differing.values()))


def _check_setting(options: Mapping[str, Any], pages: Iterable[Page | HeaderLists]) -> None:
    config = LoadConfig(**options)
    with ErrorCollector() as errors:
        for page in pages:
            errors.collect("", partial(config_for, page, config))
