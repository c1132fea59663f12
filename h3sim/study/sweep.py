"""Sweeps: every load of a study, planned, run, stored as it finishes, and resumed.

Sequential sweeps add seeds until each interval is narrow enough, at a valid level. The width of an
interval depends on the spread of the seeds. If the spread is nearly independent of the mean,
stopping at a narrow interval makes its coverage only a little too low (Chow and Robbins 1965), for
which `StoppingRule.level` compensates; a late first analysis keeps a few seeds of a skewed
distribution, which are alike by chance, from stopping it. docs/validation.md has the coverage.
"""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from h3sim import catalog
from h3sim.headers.base import HeaderLists
from h3sim.load import Load, LoadConfig
from h3sim.load.figures import FIGURES, ON_DEMAND
from h3sim.load.load_config import refuse_unknown
from h3sim.load.network_path import config_of, is_file_key, recorded_network
from h3sim.load.options import SEED, ReorderOption, check_running, refuse
from h3sim.load.run import PROCESSES, PageLike, SchemeLike, resolve
from h3sim.load.selection import HalvesLike, SchedulersLike, add_schedulers
from h3sim.page import Page, parameters_of
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.schema import format_value
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments, shows_fields
from h3sim.schema.errors import plain_number, plain_values
from h3sim.schema.values import Choice, Flag, ListOf, Number, OrNone, Text
from h3sim.study.cache_key import CellKeys, model_version
from h3sim.study.design import (
    KEPT,
    Design,
    FactorialDesign,
    Keep,
    Range,
    StoppingRule,
    StudyPart,
    is_axis,
    sampled,
    unknown_axis,
    values_of_axis,
)
from h3sim.study.header_study import SubjectLike, resolve_swept
from h3sim.study.pairing import DETERMINED_BY
from h3sim.study.results import Results
from h3sim.study.rows import RunningStats
from h3sim.study.runner import Execution, Runner, split_options, worker_count
from h3sim.study.statistics.intervals import mean_interval, ratio_end
from h3sim.study.statistics.pairs import Pair, pairs_by_scheme
from h3sim.study.store import CellOutcome, Store
from h3sim.study.subjects import check_names
from h3sim.study.worker import KEPT_COLUMN, Cells, LoadWork
from h3sim.transport import Network, TransportProfile
from h3sim.transport.congestion import controller_named
from h3sim.values.errors import (
    InputError,
    NothingToMeasureError,
    UnknownOptionError,
    ValidationIssue,
)
from h3sim.values.table import RichDisplay, Rows, Table

if TYPE_CHECKING:
    from h3sim.engine import Process
    from h3sim.study.rows import StudyRows
    from h3sim.study.study_keywords import AxisKeywords, ExecutionKeywords, SweepKeywords

_CELLS_PER_QUERY = 1000
"""Number of cells that are looked up in a store together."""
_TRIAL_LOADS, _MAX_TRIAL_S = 100, 5.0
"""Loads that `Study.plan` times, fewer only if they take longer."""
_GOLDEN_RATIO = 0.618033988749895
"""The fractional parts of its multiples are evenly spread (Weyl)."""


class StudyPlan(NamedTuple):
    """Plan of a study: numbers of loads, stored and missing, with estimated time and size.

    Estimates are from a few trial loads, the same in each call.
    """

    loads: int
    reused: int
    to_run: int
    workers: int
    seconds: float
    """CPU time of the loads to run, on all workers together."""
    error_seconds: float
    """Standard error of `seconds`: how far another sample of loads would typically be from it."""
    store_bytes: int
    """Size that the loads to run add to a store."""

    def __str__(self) -> str:
        per_worker, error = self.seconds / self.workers, 2 * self.error_seconds / self.workers
        unit, factor = ("s", 1) if per_worker < 90 else ("min", 60)
        if per_worker > 3 * 3600:
            unit, factor = "h", 3600
        low, high = max(0.0, per_worker - error) / factor, (per_worker + error) / factor
        duration = f"{per_worker / factor:,.1f} {unit} ({low:,.1f} to {high:,.1f})"
        return (
            f"{self.loads:,} loads: {self.reused:,} stored, {self.to_run:,} to run,"
            f" about {duration} of CPU on each of {self.workers} workers,"
            f" {self.store_bytes / 1e6:,.1f} MB in a store"
        )


def _count_missing(
    cells: Cells, store: str | Path | None, runs: Callable[[int], bool] | None
) -> tuple[int, int]:
    """Return the number of *cells* to run, all or those in a part, and how many are not stored."""
    n_cells = len(cells) if runs is None else sum(map(runs, range(len(cells))))
    # Opening it would fail, as it is opened read-only.
    if store is None or not os.path.exists(store):  # noqa: PTH110 - text or path
        return n_cells, n_cells
    keys, n_missing = cells.keys(), 0
    with Store(store, may_write=False) as opened:
        for first in range(0, len(cells), _CELLS_PER_QUERY):
            indices = range(first, min(first + _CELLS_PER_QUERY, len(cells)))
            query_keys = [keys.key(at) for at in indices if runs is None or runs(at)]
            done = opened.known(query_keys)
            if cells.has_resources:
                done = {key: row for key, row in done.items() if row.error or row.resources}
            n_missing += sum(key not in done for key in query_keys)
    return n_cells, n_missing


_COLUMNS_AS_GIVEN = (
    "network",
    "header_compression",
    "transport",
    "rate_mbps",
    "rtt_ms",
    "loss",
)
"""Options with a column of the same name for the value as given."""
_MAX_CHECKED_SETTINGS = 2000
"""Most settings that are validated before anything runs; in larger studies loads fail singly."""
_MAX_ISSUES = 20
"""Most invalid seeds that an error lists."""


_MAX_SEEDS = 10**9
"""Seeds that a sweep may have: more would only be a typing error."""
_OPTION_TABLES = Predicate(
    "a list of tables of options",
    lambda value: (
        isinstance(value, Sequence)
        and not isinstance(value, str | bytes)
        and all(isinstance(cell, Mapping) for cell in value)
    ),
)
_ARGUMENT_TYPES = {
    "cells": OrNone(_OPTION_TABLES),
    "sampling_seed": SEED,
    "resources": Flag(),
    "metrics": ListOf(Choice(ON_DEMAND), "figures"),
    "timeout_s": OrNone(Number(low=0, is_above=True)),
    "name": Text(),
    "keep": OrNone(Predicate("'qlog', 'trace' or a function", lambda v: v in KEPT or callable(v))),
    "processes": PROCESSES,
}
"""Field types of arguments of `load_study`."""


@dataclass(kw_only=True, repr=False)
class Study(RichDisplay):
    """Study: a design and the results to keep; `run` may be called repeatedly."""

    design: Design
    name: str = ""
    has_resources: bool = False
    timeout_s: float | None = None
    model: str = field(default_factory=model_version)
    is_strict = False
    part: StudyPart | None = None
    """Part of the loads that `run` is restricted to; None for all."""
    stopping: StoppingRule | None = None
    """Stopping rule, if seeds are added automatically (`h3sim.study.sweep`)."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Columns in which the loads differ, slowest first."""
        return self.design.axes

    def __len__(self) -> int:
        return len(self.design)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        loads = f"{len(self):,} load{'s' * (len(self) != 1)}"
        return f"<Study{name} of {loads} over {', '.join(self.axes) or 'nothing'}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield repr(self)
        yield Table(("axis", "values", ""), self.design.values())

    def with_seeds(self, seeds: int | Iterable[int]) -> Study:
        """Return the same study with other *seeds*: a list, or a number of seeds from 0 on.

        Raises:
            InputError: if there are none, or one is not a valid seed.
        """
        return replace(self, design=replace(self.design, seeds=resolve_seeds(seeds)))

    def with_axes(self, axes: Mapping[str, Any]) -> Study:
        """Return the same study with other *axes*, which replace settings of the same name.

        Raises:
            InputError: listing every invalid value.
            UnknownOptionError: if an axis is unknown.

        >>> study = load_study("davies-meenan", network="cable")
        >>> study.with_axes({"profile.quic.ack_every": [2, 10]}).axes
        ('profile.quic.ack_every', 'scheme')
        """
        _refuse_unknown([name for name in axes if not is_axis(name)])
        settings = self.design.settings
        others = [{key: cell[key] for key in cell if key not in axes} for cell in settings.listed]
        listed = tuple(entry for n, entry in enumerate(others) if entry not in others[:n])
        values = {name: values_of_axis(name, value) for name, value in axes.items()}
        changed = FactorialDesign(listed=listed, axes={**settings.axes, **values})
        _check_settings(changed, self.design.pages)
        design = replace(self.design, settings=_with_resolved_names(changed))
        return replace(self, design=design)

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

    def restriction(self) -> Callable[[int], bool] | None:
        """Return whether the load at an index is in the part to run; None if all are."""
        part, keys = self.part, self.keys()
        return None if part is None else lambda index: part.has(keys.pair_key(index))

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
        if any(isinstance(page, HeaderLists) for page in self.design.pages):
            from h3sim.study.header_models import HEADER_FIGURES  # lazy: most studies load pages

            return HEADER_FIGURES
        headlines = (figure.name for figure in FIGURES if figure.is_headline)
        kept = (KEPT_COLUMN,) if self.keeps_files else ()
        return (*headlines, *self.design.metrics, *self.design.columns, *kept)

    def columns(self, index: int) -> dict[str, Any]:
        """Return the values that the row of the load at *index* must have in some columns."""
        cell = self.design[index]
        page = {"page": cell.page.name, "page_digest": cell.page.digest}
        if isinstance(cell.page, Page):
            page |= parameters_of(cell.page)
        given = {
            name: getattr(cell.options[name], "name", cell.options[name])
            for name in _COLUMNS_AS_GIVEN
            if cell.options.get(name) is not None
        }
        return {**page, **given, "scheme": cell.scheme.name, "seed": cell.seed}

    @property
    def keeps_files(self) -> bool:
        """True if files of loads are kept beside the store."""
        return self.design.keep is not None

    def work(self) -> LoadWork:
        """Return the data that a worker needs."""
        return LoadWork(
            design=self.design,
            has_resources=self.has_resources,
            timeout_s=self.timeout_s,
            model=self.model,
        )

    def plan(self, *, store: str | Path | None = None, workers: int | None = None) -> StudyPlan:
        """Plan a run after timing a few loads from all over the study; nothing is stored.

        The trial may miss rare slow loads; then the run takes longer than estimated.

        Raises:
            StoreError: if the store cannot be read.
        """
        n_loads, n_missing = _count_missing(self, store, self.restriction())
        work, tried_s, sizes = self.work(), RunningStats(), RunningStats()
        work.run(0)  # imports and caches, which the others share
        began = time.process_time()
        for number in range(min(_TRIAL_LOADS, len(self))):
            started = time.process_time()
            if started - began > _MAX_TRIAL_S:
                break
            # Indices evenly spread over the study, however many there will be.
            done = work.run(int(number * _GOLDEN_RATIO % 1 * len(self)))
            # Not the wall clock, which depends on what else runs.
            tried_s.add(time.process_time() - started)
            outcome = CellOutcome(b"", self.model, done.row, done.resources, done.error, 0.0)
            sizes.add(outcome.stored_bytes)
        spread_s = tried_s.describe()["sd"] or 0.0
        return StudyPlan(
            n_loads,
            n_loads - n_missing,
            n_missing,
            worker_count(workers),
            seconds=tried_s.mean * n_missing,
            error_seconds=spread_s / math.sqrt(tried_s.n) * n_missing,
            store_bytes=round(sizes.mean * n_missing),
        )

    @shows_fields(Execution)
    def run(self, *, retry_failed: bool = False, **execution: Unpack[ExecutionKeywords]) -> Results:
        """Run the loads missing in the store, and return all rows; arguments as for `sweep`.

        Raises:
            StoreError: if the store cannot be read or written; finished loads are kept.
        """
        check_running(retry_failed=retry_failed)
        with Runner(Execution(**execution)) as runner:
            source, counts = runner.run_cells(
                self, retry_failed=retry_failed, runs=self.restriction()
            )
        return Results(source, axes=self.axes, counts=counts)


@shows_fields(LoadConfig, but=("seed",), type_="Axis[{}]")
def load_study(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    client: HalvesLike = None,
    server: HalvesLike = None,
    scheduler: SchedulersLike | None = None,
    signals: SchemeLike | None = None,
    seeds: int | Iterable[int] = 1,
    cells: Sequence[Mapping[str, Any]] | None = None,
    samples: int | None = None,
    sampling: str = "latin-hypercube",
    sampling_seed: int = 0,
    resources: bool = False,
    metrics: Sequence[str] = (),
    columns: Mapping[str, Callable[[Load], Any]] | None = None,
    keep: Keep | None = None,
    processes: Sequence[Process] = (),
    timeout_s: float | None = None,
    name: str = "",
    part: str | None = None,
    **axes: Unpack[AxisKeywords],
) -> Study:
    """Return the study that `sweep` would run, to plan it or to run it later.

    *axes* are options of a load, each with one value or a list of values: `network=["4g", "cable"],
    loss=[0, 0.02], transport="tcp"`, or keys of network and profile files,
    `**{"profile.quic.ack_every": [2, 10], "network.down.queue_bytes": 65_536}`. *cells* lists
    combinations of settings, like `[{"rtt_ms": 10, "rate_mbps": 50}, ...]`; *samples* is the number
    of samples from the axes that are a `Range`, as a "latin-hypercube" or "sobol" points. *seeds*
    is a list, or a number of seeds from 0 on. Each *client* before each *server*, names or paths,
    or "all", joins the schemes. Each *scheduler* (a class, function, object or name, or a list)
    joins the schemes, with clients that send the *signals* of a scheme (by default none). The
    schemes are by default "marx-2019", or none beside such schedulers. *resources* also keeps one
    row per resource; *metrics* names columns that take longer to compute, like
    "multiplexing_interleaving"; *columns* are functions from a load to the value of a column, by
    its name, which ends with its unit: `{"p95_ms": lambda load: ...}`. They run in the workers;
    their code is followed as that of schedulers is, so that a store reuses what they returned.
    *keep* is "qlog", "trace" or a function from a load to one of these or None: files beside the
    store, in the folder with the store's name and `.kept`, which the column `kept` names.
    *processes* run beside each load, as in `simulate`. *timeout_s* is the time limit of a load. A
    *part*, "3/16", runs only these loads; `h3sim.study.merge_stores` joins the stores of all parts.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        UnknownOptionError: if an axis is unknown.
    """
    simple = {"resources": resources, "metrics": metrics, "timeout_s": timeout_s, "name": name}
    simple |= {"keep": keep, "processes": processes}
    sampled: dict[str, Any] = {"samples": samples, "sampling": sampling, "seed": sampling_seed}
    halves: dict[str, Any] = {"client": client, "server": server, "default": "marx-2019"}
    with ErrorCollector() as errors:
        collect = partial(errors.collect, "")
        collect(lambda: _check(**simple))
        own_columns = collect(lambda: _own_columns(columns), default={})
        chosen_part = collect(lambda: StudyPart.parse(part))
        # The defaults let the other arguments be checked as well before the block raises.
        joined = partial(add_schedulers, schemes, scheduler, signals, **halves)
        requested = collect(joined, default=["rr"])
        swept = collect(lambda: resolve_swept(pages, requested), default=([], []))
        subjects, resolved_schemes = tuple(swept[0]), tuple(swept[1])
        chosen = collect(lambda: resolve_seeds(seeds))
        settings = collect(lambda: _settings(axes, cells, subjects, **sampled))
        evidence: dict[str, Any] = {
            "columns": own_columns,
            "keep": keep,
            "processes": tuple(processes) if isinstance(processes, Iterable) else (),
        }
        collect(lambda: _check_loads(evidence, subjects))
    design = Design(
        pages=subjects, schemes=resolved_schemes, settings=settings, seeds=chosen, **evidence
    )
    study = Study(design=design, name=name, has_resources=resources, timeout_s=timeout_s)
    study.part = chosen_part
    study.ask_for(metrics)
    return study


@shows_fields(load_study, Execution)
def sweep(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    seeds: int | Iterable[int] = 1,
    retry_failed: bool = False,
    **options: Unpack[SweepKeywords],
) -> Results:
    """Load every page with every setting, scheme and seed, and return one row per load.

    Pages may be replaced by `HeaderLists`, compressed as `header_compression=` selects: their rows
    have compression ratios and head-of-line blocking (`h3sim.study.header_study`).
    The options of a load have one value or a list of values each. They, and the other arguments
    from *schemes* to *part*, are those of `load_study`; the last ones are the fields of
    `Execution`. Code of your own, as `scheduler=[MyScheduler], signals="chrome-eps"` or
    `cc=MyController`, may be defined in a notebook. Without *executor* and *workers* the duration
    of the study decides. Failed loads keep their error in the *store*, and run again with
    *retry_failed*.

    Raises:
        InputError: if an argument is invalid.
        UnknownNameError: if a name is unknown.
        UnknownOptionError: if an option is unknown.
        StoreError: if the store cannot be read or written.

    >>> results = sweep("davies-meenan", schemes=["rr", "fifo"], rtt_ms=[0, 50], executor="serial")
    >>> [(row["rtt_ms"], row["scheme"], row["page_load_ms"]) for row in results][:2]
    [(0.0, 'rr', 4580.0), (0.0, 'fifo', 4580.0)]
    """
    refuse_unknown(sweep, (name for name in options if not is_file_key(name)))
    execution, design = split_options(options)
    check_running(retry_failed=retry_failed)
    Execution(**execution)
    return load_study(pages, seeds=seeds, **design).run(retry_failed=retry_failed, **execution)


def _own_columns(columns: object) -> dict[str, Callable[[Load], Any]]:
    """Return the functions for columns of the user's own, after checking their names.

    Raises:
        InputError: if a name is taken or no name, or a value is no function.
    """
    columns = {} if columns is None else columns
    if not isinstance(columns, Mapping):
        raise InputError.at("columns", f"must be functions by name, is {format_value(columns)}")
    taken = {*DETERMINED_BY, *(figure.name for figure in FIGURES), KEPT_COLUMN}
    issues = []
    for name, function in columns.items():
        if not isinstance(name, str) or not name.isidentifier():
            message = f"{format_value(name)} is no name of a column: letters, digits and _"
            issues.append(ValidationIssue(key="columns", message=message))
        elif name in taken:
            message = "is a column of every study"
            issues.append(ValidationIssue(key=f"columns.{name}", message=message))
        elif not callable(function):
            message = f"must be a function of a load, is {format_value(function)}"
            issues.append(ValidationIssue(key=f"columns.{name}", message=message))
    refuse(issues)
    return dict(columns)


def _check_loads(given: Mapping[str, object], subjects: Sequence[Page | HeaderLists]) -> None:
    """Refuse what header lists do not have."""
    message = "goes only with loads of pages: header lists have none"
    if any(isinstance(subject, HeaderLists) for subject in subjects):
        refuse(ValidationIssue(key=key, message=message) for key in given if given[key])


def _check(**given: Any) -> None:
    typed = {key: (_ARGUMENT_TYPES[key], value) for key, value in given.items()}
    check_arguments(InputError, **typed)


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
    unknown = [name for name in names if not is_axis(name)]
    listed = tuple({name: cell[name] for name in cell if is_axis(name)} for cell in cells or ())
    fixed = {name: axes[name] for name in axes if is_axis(name) and name not in ranges}
    with ErrorCollector() as errors:
        errors.collect("", lambda: _refuse_unknown(unknown))
        errors.collect("", lambda: _check_exclusive(axes, cells, ranges, samples))
        listed = ({},) if cells is None else listed
        if ranges and samples is not None:
            points = errors.collect(
                "", lambda: sampled(ranges, samples, method=sampling, seed=seed), default=({},)
            )
            listed = tuple({**cell, **point} for cell in listed for point in points)
        values = {
            name: errors.collect("", partial(values_of_axis, name, value), default=())
            for name, value in fixed.items()
        }
        valid = {name: value for name, value in values.items() if value}
        settings = FactorialDesign(listed=listed, axes=valid)
        errors.collect("", lambda: _check_settings(settings, pages))
        return errors.collect("", lambda: _with_resolved_names(settings))


def _refuse_unknown(names: Sequence[str]) -> None:
    """Refuse names that are no options of a load."""
    if names:
        others = inspect.signature(sweep).parameters
        raise UnknownOptionError(unknown_axis(name, others) for name in names)


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
    # The argument would silently override the value in the cells.
    duplicates = dict.fromkeys(name for cell in cells or () for name in cell if name in axes)
    message = "is given both in cells and as an argument: give it once"
    refuse([*problems, *(ValidationIssue(key=name, message=message) for name in duplicates)])


def resolve_seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    """Return the seeds: those listed, or a number of seeds from 0 on.

    Raises:
        InputError: if there are none, or one is not a valid seed.
    """
    seeds = plain_values(seeds)
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        if seeds > _MAX_SEEDS:
            raise InputError.at("seeds", f"must be at most {_MAX_SEEDS:,}")
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
    # By `repr`, so that True next to 1, which is reported above, is no duplicate.
    if not isinstance(chosen, range) and len(set(map(repr, chosen))) < len(chosen):
        problems.append(ValidationIssue(key="seeds", message="one is duplicated"))
    refuse(problems[:_MAX_ISSUES])
    return chosen


_RESOLVER_BY_OPTION: dict[str, Callable[[Any], Any]] = {
    "network": catalog.load_network,
    "transport_profile": catalog.load_profile,
    "reorder": lambda value: check_arguments(InputError, reorder=(ReorderOption(), value))[
        "reorder"
    ],
}
"""Functions that resolve a name, a path or a table, by option."""


def _with_resolved_names(settings: FactorialDesign) -> FactorialDesign:
    """Return *settings* with names and paths replaced by values.

    So files are read once, and cache keys depend on their contents.
    """
    with ErrorCollector() as errors:

        def resolved(key: str, value: Any) -> Any:
            is_name = isinstance(value, str | Path | Mapping) and value != RECORDED_NETWORK
            if key not in _RESOLVER_BY_OPTION or not is_name:
                return value
            return errors.collect(key, lambda: _RESOLVER_BY_OPTION[key](value))

        result = FactorialDesign(
            listed=tuple(
                {key: resolved(key, cell[key]) for key in cell} for cell in settings.listed
            ),
            axes={
                key: tuple(resolved(key, value) for value in values)
                for key, values in settings.axes.items()
            },
        )
    networks, profiles = _values_of(result, "network"), _values_of(result, "transport_profile")
    # Rows have only names, which must therefore be unique.
    check_names(
        network=[value for value in networks if isinstance(value, Network)],
        transport_profile=[value for value in profiles if isinstance(value, TransportProfile)],
    )
    _check_controllers(result)
    return result


def _check_controllers(settings: FactorialDesign) -> None:
    """Refuse two controllers of one name, which rows could not distinguish."""
    controllers = [controller_named(cc) for cc in _values_of(settings, "cc") if callable(cc)]
    names = [name for name, _ in controllers]
    duplicates = dict.fromkeys(name for name in names if names.count(name) > 1)
    messages = (f"two controllers are called {name!r}" for name in duplicates)
    refuse(ValidationIssue(key="cc", message=message) for message in messages)


def _values_of(settings: FactorialDesign, key: str) -> list[Any]:
    """Return all values of an option in *settings*, each once."""
    listed = [cell[key] for cell in settings.listed if key in cell]
    distinct: list[Any] = []  # values need not be hashable
    for value in (*listed, *settings.axes.get(key, ())):
        if value not in distinct:
            distinct.append(value)
    return distinct


def _check_settings(
    settings: Sequence[Mapping[str, Any]], pages: Sequence[Page | HeaderLists]
) -> None:
    """Refuse invalid settings, each error once."""
    if len(settings) > _MAX_CHECKED_SETTINGS:
        return
    # Errors depend on a page only by its recorded network: one page of each is checked, the first
    # (hence reversed).
    any_scheme = catalog.load_scheme("rr")
    representatives = {repr(recorded_network(page)): page for page in reversed(pages)}

    def check(options: Mapping[str, Any]) -> None:
        LoadConfig(**{name: options[name] for name in options if not is_file_key(name)})

        def check_page(page: Page | HeaderLists) -> None:
            resolve(page, any_scheme, config_of(page, options))

        with ErrorCollector() as errors:
            for page in representatives.values():
                errors.collect("", partial(check_page, page))

    with ErrorCollector() as errors:
        for options in settings:
            errors.collect("", partial(check, options))


SEEDS_ARE_ADDED = "are added as needed: use most_seeds instead"


class SequentialRow(NamedTuple):
    """Speedup of one scheme over these pages, with its interval over seeds."""

    scheme: str
    seeds: int
    geometric: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Sequential(RichDisplay):
    """Result of a sequential study.

    `is_narrow` is True if every interval became narrow enough before the seeds were used up.
    """

    rule: StoppingRule
    rows: Rows[SequentialRow]
    results: Results
    is_narrow: bool

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of seeds at the interim analyses."""
        return self.rule.looks

    def describe(self) -> str:
        """Describe the outcome in a sentence."""
        n_seeds = max(row.seeds for row in self.rows)
        width = f"{100 * self.rule.width:g} %"
        verb = "are" if self.is_narrow else "are not all"
        speedups = f"speedups of {self.rule.value} to {self.rule.baseline}"
        return f"After {n_seeds} seeds, the intervals of {speedups} {verb} narrower than {width}."

    def __repr__(self) -> str:
        return f"<Sequential: {self.describe()}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield self.describe()
        yield self.rows


@shows_fields(load_study, Execution, but=("seeds",))
def sequential_sweep(
    pages: PageLike | Iterable[PageLike],
    *,
    width: float,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    confidence: float = 0.95,
    most_seeds: int = 200,
    **options: Unpack[SweepKeywords],
) -> Sequential:
    """Add seeds until the interval of each scheme's speedup is narrower than *width*.

    *width* is the upper end divided by the lower, minus 1: 0.05 is 5 %, and 1 the largest. The
    speedup over *baseline* is the geometric mean over these pages and settings. The interval is
    over seeds (not over pages, as in `compare`): that of `mean_interval`, of the mean logarithm of
    each seed. Interim analyses are after 20, 30, 45, ... seeds, up to *most_seeds*; the interval at
    which they stop covers the speedup with probability *confidence*.

    *options* are those of `sweep`. The rows of `results` are those of a sweep over as many seeds.

    Raises:
        InputError: listing every error in the arguments.
        UnknownNameError: if the only error is an unknown name.
        NothingToMeasureError: if no pair has the value.
        StoreError: if the store cannot be read or written.
        MissingExtraError: if scipy is not installed.

    >>> found = sequential_sweep(
    ...     "creative", width=0.1, schemes=["rr", "fifo"], rtt_ms=50, loss=0.02, executor="serial"
    ... )
    >>> found.is_narrow, found.rows[0].seeds
    (True, 20)
    """
    refuse_unknown(sequential_sweep, (name for name in options if not is_file_key(name)))
    rule = StoppingRule(
        width=width, baseline=baseline, value=value, confidence=confidence, most_seeds=most_seeds
    )
    execution, design = split_options(options)
    Execution(**execution)
    return run_until(load_study(pages, **design), rule, **execution)


@shows_fields(Execution)
def run_until(study: Study, rule: StoppingRule, **execution: Any) -> Sequential:
    """Run *study* with more and more seeds until *rule* is met.

    *execution* are the fields of `Execution`. Raises the errors of `sequential_sweep`.
    """
    n_compared = _check_study(study, rule)
    # Each analysis includes all earlier seeds, which would run again without a store.
    path = execution.get("store")
    store = Store(":memory:" if path is None else path)
    n_ran = 0  # in all analyses
    for n_seeds in rule.looks:
        results = study.with_seeds(range(n_seeds)).run(**{**execution, "store": store})
        if results.counts is not None:
            n_ran += results.counts.ran
            # Loads of an earlier analysis count as run, not as reused.
            n_done = results.counts.reused + results.counts.ran
            results.counts = results.counts._replace(reused=n_done - n_ran, ran=n_ran)
        rows = _sequential_rows(results, rule)
        # A scheme whose loads failed has no interval yet.
        is_narrow = len(rows) == n_compared and all(
            rule.is_met(row.low, row.high, row.seeds) for row in rows
        )
        if is_narrow:
            break
    return Sequential(
        rule=rule, rows=Rows(SequentialRow, rows), results=results, is_narrow=is_narrow
    )


def _check_study(study: Study, rule: StoppingRule) -> int:
    """Return the number of schemes compared with the baseline."""
    names = [scheme.name for scheme in study.design.schemes]
    if rule.baseline not in names or len(names) < 2:
        message = f"must be one of several schemes ({', '.join(names)}), is {rule.baseline!r}"
        raise InputError.at("baseline", message)
    return len(names) - 1


def _sequential_rows(results: StudyRows, rule: StoppingRule) -> list[SequentialRow]:
    """Return the ratio of each scheme to the baseline so far."""
    rows = []
    for scheme, pairs in pairs_by_scheme(results, rule.baseline, rule.value).items():
        if scheme == rule.baseline:
            continue
        means = _means_of_seeds(pairs)
        low, high = mean_interval(means, 1 - rule.level)
        if low is not None and high is not None:
            geometric = math.exp(math.fsum(means) / len(means))
            ends = ratio_end(low), ratio_end(high)
            rows.append(SequentialRow(scheme, len(means), geometric, *ends))
    if not rows:
        message = f"no load has {rule.value} together with one of {rule.baseline}"
        raise NothingToMeasureError(message)
    return rows


def _means_of_seeds(pairs: Iterable[Pair]) -> list[float]:
    """Return the mean logarithm of each seed over the pages and settings that have all seeds."""
    logs: dict[int, list[float]] = {}
    for pair in pairs:
        logs.setdefault(pair.seed, []).append(math.log(pair.speedup))
    n_pairs = max(map(len, logs.values()))
    # A seed with a failed load covers fewer pages, so its mean would not be comparable.
    return [math.fsum(own) / n_pairs for own in logs.values() if len(own) == n_pairs]
