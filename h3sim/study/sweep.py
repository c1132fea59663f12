"""Sweeps: every load of a study, planned, run, stored as it finishes, and resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim import catalog
from h3sim.config.arguments import SEED, check_running
from h3sim.config.load_config import (
    RECORDED,
    LoadConfig,
    config_for,
    recorded_network,
    refuse_options,
)
from h3sim.config.options import ReorderOption
from h3sim.errors import InputError, ValidationIssue
from h3sim.headers.base import HeaderLists
from h3sim.results.figures import FIGURES, ON_DEMAND
from h3sim.schema.arguments import ErrorCollector, Predicate, check_arguments
from h3sim.schema.errors import plain_number, plain_values
from h3sim.schema.values import Choice, Flag, ListOf, Number, OrNone, Text
from h3sim.study.backends import worker_count
from h3sim.study.cache_key import CellKeys, model_version
from h3sim.study.compare import check_names
from h3sim.study.design import OPTIONS, Design, FactorialDesign, Range, sampled, values_of_axis
from h3sim.study.header_study import resolve_swept
from h3sim.study.results import Results
from h3sim.study.runner import ProgressCallback, run_cells
from h3sim.study.store import Store
from h3sim.study.worker import LoadWork
from h3sim.transport import Network, TransportProfile

if TYPE_CHECKING:
    from h3sim.page import Page
    from h3sim.study.design import StoppingRule
    from h3sim.study.header_study import SubjectLike
    from h3sim.study.run import SchemeLike
    from h3sim.study.worker import Cells


_CHUNK = 1000
_PROBED, _PROBE_S = 24, 2.0
_GOLDEN = 0.618033988749895
"""The fractions of its multiples are spread evenly, however many there are (Weyl)."""


class StudyPlan(NamedTuple):
    """What a study would run: how many loads, how many are known, and how long the rest takes."""

    loads: int
    reused: int
    to_run: int
    workers: int
    seconds: float
    """On one worker, by a few loads that were tried."""

    def __str__(self) -> str:
        long = self.seconds / self.workers
        shown = f"{long:.1f} s" if long < 90 else f"{long / 60:,.0f} min"
        return (
            f"{self.loads:,} loads: {self.reused:,} known, {self.to_run:,} to run,"
            f" about {shown} on {self.workers} workers"
        )


def plan_cells(
    cells: Cells, *, store: str | Path | None = None, workers: int | None = None
) -> StudyPlan:
    """Return what would run, after trying a few *cells* from all over the study; none is kept.

    Few cells that take very long are easily missed, and then it takes longer than is said.

    Raises:
        StoreError: if the store cannot be read.
    """
    n_cells = len(cells)
    n_missing = n_cells if store is None else _missing(cells, store)
    work, spent, n_tried = cells.work(), 0.0, 0
    while n_tried < min(_PROBED, n_cells) and spent <= _PROBE_S:
        spent += work.run(int(n_tried * _GOLDEN % 1 * n_cells)).seconds
        n_tried += 1
    seconds = spent / n_tried * n_missing
    return StudyPlan(n_cells, n_cells - n_missing, n_missing, worker_count(workers), seconds)


def _missing(cells: Cells, store: str | Path) -> int:
    """Return how many of *cells* the store does not know; one that is not there knows none."""
    # A store that is not there would be refused, as it is only read here.
    if not os.path.exists(store):  # noqa: PTH110 - text or path
        return len(cells)
    keys, n_missing = cells.keys(), 0
    with Store(store, may_write=False) as known:
        for first in range(0, len(cells), _CHUNK):
            some = range(first, min(first + _CHUNK, len(cells)))
            wanted = [keys.key(index) for index in some]
            done = {
                key
                for key, outcome in known.known(wanted).items()
                if outcome.error is not None
                or outcome.resources is not None
                or not cells.has_resources
            }
            n_missing += sum(key not in done for key in wanted)
    return n_missing


_ARGUMENTS = (
    *("schemes", "seeds", "cells", "samples", "sampling", "sampling_seed", "store", "executor"),
    *("workers", "resources", "metrics", "retry_failed", "timeout_s", "progress", "name"),
)
_COLUMNS_AS_GIVEN = (
    *("network", "header_compression", "transport", "rate_mbps", "rtt_ms", "loss"),
)
"""The options that rows have in columns of the same name, with the value that was given."""
_CHECKED = 2000
"""So many settings are tried before anything runs; those of a larger study fail one by one."""
_TOLD = 20


_MOST_SEEDS = 10**9
_CELLS = Predicate(
    "a list of tables of options",
    lambda value: (
        value is None
        or (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and all(isinstance(cell, Mapping) for cell in value)
        )
    ),
)
_TAKEN = {
    "cells": _CELLS,
    "sampling_seed": SEED,
    "resources": Flag(),
    "metrics": ListOf(Choice(ON_DEMAND), "figures"),
    "timeout_s": OrNone(Number(low=0, is_above=True)),
    "name": Text(),
}
"""What the arguments of `load_study` may be."""


@dataclass(kw_only=True)
class Study:
    """A design and what shall be kept of its loads; `run` may be called again and again."""

    design: Design
    name: str = ""
    has_resources: bool = False
    timeout_s: float | None = None
    model: str = field(default_factory=model_version)
    stand_in: Callable[[Any], dict[str, Any]] | None = None
    """Takes the place of loading, for tests of the machinery."""
    stopping: StoppingRule | None = None
    """When it has seeds enough, where it adds them by itself (`h3sim.study.sequential`)."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns in which the loads differ, slowest first."""
        return self.design.axes

    def __len__(self) -> int:
        return len(self.design)

    def with_seeds(self, seeds: int | Iterable[int]) -> Study:
        """Return the same study with other seeds: numbers, or how many from 0 on.

        Raises:
            InputError: if there is none, or one cannot be a seed.
        """
        return replace(self, design=replace(self.design, seeds=_seeds(seeds)))

    def ask_for(self, metrics: Sequence[str]) -> None:
        """Have rows with these figures as well, of those that are had on demand.

        Raises:
            InputError: naming each that is not known.
        """
        _check(metrics=metrics)
        asked = {*self.design.metrics, *metrics}
        # In one order however they are asked for, since cells are known again by it.
        in_order = tuple(name for name in ON_DEMAND if name in asked)
        self.design = replace(self.design, metrics=in_order)

    def keys(self) -> CellKeys:
        """Return by what loads are known again."""
        return CellKeys(self.design, self.model)

    def told(self, index: int) -> str:
        """Return what an error calls the load at *index*."""
        cell = self.design[index]
        options = "".join(
            f", {name}={getattr(value, 'name', value)}" for name, value in cell.options.items()
        )
        return f"{cell.page.name}, {cell.scheme.name}{options}, seed {cell.seed}"

    @property
    def figures(self) -> tuple[str, ...]:
        """The columns of figures that each row must have."""
        if self.stand_in is not None:  # whose rows have what they like
            return ()
        if any(isinstance(page, HeaderLists) for page in self.design.pages):
            from h3sim.study.header_models import HEADER_FIGURES  # on use: most studies load pages

            return HEADER_FIGURES
        headlines = (figure.name for figure in FIGURES if figure.is_headline)
        return (*headlines, *self.design.metrics)

    def columns(self, index: int) -> dict[str, Any]:
        """Return what the row of the load at *index* must have in some of its columns."""
        cell = self.design[index]
        page = {"page": cell.page.name, "page_digest": cell.page.digest}
        given = {
            name: getattr(cell.options[name], "name", cell.options[name])
            for name in _COLUMNS_AS_GIVEN
            if cell.options.get(name) is not None
        }
        return {**page, **given, "scheme": cell.scheme.name, "seed": cell.seed}

    def work(self) -> LoadWork:
        """Return what a worker needs to know."""
        return LoadWork(
            design=self.design,
            has_resources=self.has_resources,
            timeout_s=self.timeout_s,
            stand_in=self.stand_in,
        )

    def plan(self, *, store: str | Path | None = None, workers: int | None = None) -> StudyPlan:
        """Return what would run, after trying a few loads; nothing is kept.

        Raises:
            StoreError: if the store cannot be read.
        """
        return plan_cells(self, store=store, workers=workers)

    def run(
        self,
        *,
        store: str | Path | Store | None = None,
        executor: Any = None,
        workers: int | None = None,
        retry_failed: bool = False,
        progress: ProgressCallback | bool | None = None,
    ) -> Results:
        """Run what the store does not know yet, and return all rows; arguments as `sweep`'s.

        Raises:
            StoreError: if the store cannot be read or written; what was finished is kept.
        """
        source, counts = run_cells(
            self,
            store=store,
            executor=executor,
            workers=workers,
            retry_failed=retry_failed,
            progress=progress,
        )
        return Results(source, axes=self.axes, counts=counts)


def sweep(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
    seeds: int | Iterable[int] = 1,
    store: str | Path | None = None,
    executor: Any = None,
    workers: int | None = None,
    retry_failed: bool = False,
    progress: ProgressCallback | bool | None = None,
    **study: Any,
) -> Results:
    """Load every page with every setting, scheme and seed, and return one row a load.

    In place of pages there may be `HeaderLists`, which `headers=` says how to compress: their rows
    tell what that saves and how long lists wait for each other (`h3sim.study.header_study`).
    *study* is what else `load_study` takes: options of a load, each with one value or a list of
    them, and `cells`, `samples`, `resources`, `metrics`, `timeout_s`.

    With a *store*, a file, only what is missing runs; each load that is finished is kept, whatever
    happens then. Loads that failed keep their error, and run again with *retry_failed*. *executor*
    is "serial", "processes" (one a core, or *workers*), a `concurrent.futures.Executor` or a client
    of `dask.distributed`; None chooses by what the study takes. *progress* is told of loads done
    and in all; True and False show a bar or none, None one where there is a terminal or a notebook.

    The rows are the same, byte for byte, wherever and in however many pieces they were made.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError: if only a name is not known.
        UnknownOptionError: if there is no such axis.
        StoreError: if the store cannot be read or written.

    >>> results = sweep("davies-meenan", schemes=["rr", "fifo"], rtt_ms=[0, 50], executor="serial")
    >>> [(row["rtt_ms"], row["scheme"], row["page_load_ms"]) for row in results][:2]
    [(0.0, 'rr', 4580.0), (0.0, 'fifo', 4580.0)]
    """
    how: dict[str, Any] = {"executor": executor, "workers": workers, "progress": progress}
    how |= {"store": store, "retry_failed": retry_failed}
    with ErrorCollector() as mistakes:
        mistakes.of("", partial(check_running, **how))
        wanted = mistakes.of("", lambda: load_study(pages, schemes=schemes, seeds=seeds, **study))
    return wanted.run(**how)


def load_study(
    pages: SubjectLike | Iterable[SubjectLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] = "marx-2019",
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

    *axes* are options of a load, each with one value or a list of them: `network=["4g", "cable"],
    loss=[0, 0.02], transport="tcp"`. *cells* lists settings that go together, say
    `[{"rtt_ms": 10, "rate_mbps": 50}, ...]`; *samples* draws so many from the axes that are a
    `Range`, as a "latin-hypercube" or "sobol" points. *seeds* are numbers, or how many from 0 on.
    *resources* keeps a row a resource as well; *metrics* names columns that take longer, say
    "multiplexing_interleaving"; *timeout_s* ends loads that do.

    Raises:
        InputError: listing every mistake in what was given.
        UnknownNameError: if only a name is not known.
        UnknownOptionError: if there is no such axis.
    """
    taken = {"resources": resources, "metrics": metrics, "timeout_s": timeout_s, "name": name}
    drawing: dict[str, Any] = {"samples": samples, "sampling": sampling}
    with ErrorCollector() as mistakes:
        mistakes.of("", lambda: _check(**taken))
        found = mistakes.of("", lambda: resolve_swept(pages, schemes), instead=([], []))
        chosen = mistakes.of("", lambda: _seeds(seeds))
        settings = mistakes.of(
            "", lambda: _settings(axes, cells, found[0], seed=sampling_seed, **drawing)
        )
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
    """Return every setting of a study; what is wrong with one does not hide another."""
    _check(cells=cells, sampling_seed=seed)
    ranges = {key: value for key, value in axes.items() if isinstance(value, Range)}
    names = dict.fromkeys(name for table in (axes, *(cells or ())) for name in table)
    unknown = [name for name in names if name not in OPTIONS]
    listed = tuple({name: cell[name] for name in cell if name in OPTIONS} for cell in cells or ())
    plain = {name: axes[name] for name in axes if name in OPTIONS and name not in ranges}
    with ErrorCollector() as mistakes:
        mistakes.of("", lambda: refuse_options(unknown, (*OPTIONS, *_ARGUMENTS)))
        mistakes.of("", lambda: _check_beside(axes, cells, ranges, samples))
        listed = ({},) if cells is None else listed
        if ranges and samples is not None:
            drawn = mistakes.of(
                "",
                lambda: sampled(ranges, samples, method=sampling, seed=seed),
                instead=({},),
            )
            listed = tuple({**cell, **point} for cell in listed for point in drawn)
        values = {
            name: mistakes.of("", partial(values_of_axis, name, value), instead=())
            for name, value in plain.items()
        }
        known = {name: value for name, value in values.items() if value}
        given = FactorialDesign(listed=listed, axes=known)
        mistakes.of("", lambda: _check_settings(given, pages))
        return mistakes.of("", lambda: _named(given))


def _check_beside(
    axes: Mapping[str, Any],
    cells: Sequence[Mapping[str, Any]] | None,
    ranges: Mapping[str, Range],
    samples: int | None,
) -> None:
    """Refuse what does not go together."""
    problems = []
    if cells is not None and not cells:
        problems.append(ValidationIssue(key="cells", message="at least one is needed"))
    if samples is None:
        message = "a range needs samples=, how many settings to draw from it"
        problems += (ValidationIssue(key=key, message=message) for key in ranges)
    # What is beside the cells would win, and nobody know.
    twice = dict.fromkeys(name for cell in cells or () for name in cell if name in axes)
    message = "is given in cells and beside them: give it once"
    problems += (ValidationIssue(key=name, message=message) for name in twice)
    if problems:
        raise InputError(problems)


def _seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    seeds = plain_values(seeds)
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        if seeds > _MOST_SEEDS:
            raise InputError(
                [ValidationIssue(key="seeds", message=f"must be at most {_MOST_SEEDS:,}")]
            )
        seeds = range(max(0, seeds))
    chosen: Sequence[Any]
    if isinstance(seeds, range):
        chosen = seeds
    else:
        given = tuple(seeds) if isinstance(seeds, Iterable) else (seeds,)
        chosen = tuple(map(plain_number, given))
    if not chosen:
        raise InputError([ValidationIssue(key="seeds", message="at least one is needed")])
    problems = [
        ValidationIssue(key="seeds", message=f"must be whole numbers from 0 on, is {seed!r}")
        # Of a range the ends say it all; it may have a billion numbers.
        for seed in ([chosen[0], chosen[-1]] if isinstance(chosen, range) else chosen)
        if type(seed) is not int or seed < 0
    ]
    # By `repr`: what is wrong already, as True beside 1 or a list, is told as that.
    if not isinstance(chosen, range) and len(set(map(repr, chosen))) < len(chosen):
        problems.append(ValidationIssue(key="seeds", message="one is given twice"))
    if problems:
        raise InputError(problems[:_TOLD])
    return chosen


def _named(given: FactorialDesign) -> FactorialDesign:
    """Return the settings with what is meant by names: it is read once, and tells the cell."""
    with ErrorCollector() as mistakes:

        def meant(key: str, value: Any) -> Any:
            finds: dict[str, Callable[[Any], Any]] = {
                "network": catalog.load_network,
                "transport_profile": catalog.load_profile,
                "reorder": ReorderOption().accept,
            }
            # A path as well: of a file that is changed later the cells are others.
            is_name = isinstance(value, str | Path | Mapping) and value != RECORDED
            if key not in finds or not is_name:
                return value
            return mistakes.of(key, lambda: finds[key](value))

        named = FactorialDesign(
            listed=tuple({key: meant(key, cell[key]) for key in cell} for cell in given.listed),
            axes={key: tuple(meant(key, v) for v in values) for key, values in given.axes.items()},
        )
    check_names(**_parts(named))
    return named


def _parts(settings: FactorialDesign) -> dict[str, list[Any]]:
    """Return the networks and the profiles that are values, each once: rows have their names."""
    found: dict[str, list[Any]] = {"network": [], "transport_profile": []}
    for key, values in found.items():
        given = [cell[key] for cell in settings.listed if key in cell]
        for value in (*given, *settings.axes.get(key, ())):
            if isinstance(value, Network | TransportProfile) and value not in values:
                values.append(value)
    return found


def _check_settings(
    settings: Sequence[Mapping[str, Any]], pages: Sequence[Page | HeaderLists]
) -> None:
    """Refuse settings that cannot be loaded over, each mistake once."""
    # Pages without a network of their own meet the same one: the first stands for them.
    # Backwards, so that of pages alike the first one stays.
    differing = {repr(recorded_network(page)): page for page in reversed(pages)}
    if len(settings) > _CHECKED:
        return
    with ErrorCollector() as mistakes:
        for options in settings:
            mistakes.of("", partial(_check_setting, options, differing.values()))


def _check_setting(options: Mapping[str, Any], pages: Iterable[Page | HeaderLists]) -> None:
    config = LoadConfig(**options)
    with ErrorCollector() as mistakes:
        for page in pages:
            mistakes.of("", partial(config_for, page, config))
