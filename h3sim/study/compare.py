"""The comparison of schemes: the table of Marx 2019 § 5.1, for any pages, schemes and network."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from h3sim._version import __version__
from h3sim.load.configuration import configuration, in_words
from h3sim.load.figures import FIGURES, ON_DEMAND
from h3sim.load.options import SAMPLE_MS, check_known, check_some
from h3sim.load.run import resolve
from h3sim.load.selection import add_schedulers
from h3sim.schema import format_value
from h3sim.schema.arguments import Predicate, check_arguments
from h3sim.schema.output import (
    COUNT,
    NUMBER_OR_NONE,
    TEXT,
    VERSION,
    OutputSchema,
    Property,
    rows_of,
)
from h3sim.schema.values import Flag, ListOf, TableOf
from h3sim.study.fidelity import FIDELITY, Fidelity, fidelities
from h3sim.study.rows import CONFIGURATION, PAGE_DIGESTS, ResultTable
from h3sim.study.runner import LoadRunner, LoadTask, read_options, shows_loads
from h3sim.study.statistics.intervals import mean_interval
from h3sim.study.subjects import resolve_compared, without_marks
from h3sim.study.sweep import load_study, resolve_seeds
from h3sim.values.errors import (
    InputError,
    NothingToMeasureError,
    UnknownNameError,
    require_extra,
)
from h3sim.values.table import Rows
from h3sim.values.units import kbyte

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.load import Load, Which
    from h3sim.load.load_config import LoadConfig
    from h3sim.load.run import PageLike, SchemeLike
    from h3sim.load.selection import HalvesLike, SchedulersLike
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.results import Results
    from h3sim.study.runner import Execution


class ComparisonRow(NamedTuple):
    """One load. Speedups are ratios to the baseline without a send buffer; above 1 is faster.

    They are ratios of exact ByteIndexes; sampled ones are None unless requested. Paints, SpeedIndex
    and load event are None unless the browser computed the load.
    """

    page: str
    scheme: str
    send_buffer_kb: float
    byte_index_all_ms: float | None
    byte_index_atf_ms: float | None
    speedup_all: float | None
    speedup_atf: float | None
    page_load_ms: float
    document_ms: float
    last_atf_ms: float | None
    last_atf_id: str | None
    first_paint_ms: float | None = None
    largest_paint_ms: float | None = None
    speed_index_ms: float | None = None
    load_event_ms: float | None = None
    byte_index_sampled_all_ms: float | None = None
    byte_index_sampled_atf_ms: float | None = None


class MeanRow(NamedTuple):
    """Mean speedups over the pages that have them: the columns of Marx 2019, Table 2."""

    scheme: str
    send_buffer_kb: float
    pages: int
    mean_all: float | None
    mean_atf: float | None


class MetricRow(NamedTuple):
    """One metric of one load; *metric* is a column of a study, and *value* None if undefined."""

    page: str
    scheme: str
    send_buffer_kb: float
    metric: str
    value: float | None


class VersionRow(NamedTuple):
    """Comparison of a version of a page with the first version, for one scheme and send buffer.

    Speedups are ratios of the first version's time to this one's; above 1 is faster.
    """

    page: str
    scheme: str
    send_buffer_kb: float
    speedup_all: float | None
    speedup_atf: float | None
    speedup_page_load: float | None
    speedup_first_paint: float | None
    speedup_largest_paint: float | None
    speedup_load_event: float | None


COMPARISON = OutputSchema(
    "h3sim-comparison/2",
    "Schemes beside a baseline",
    VERSION,
    Property("baseline", TEXT, "the scheme that speedups are relative to"),
    CONFIGURATION,
    PAGE_DIGESTS,
    Property(
        "sample_ms", NUMBER_OR_NONE, "how often sampled ByteIndexes are sampled; null without"
    ),
    Property("notes", TableOf(ListOf(TEXT, "texts")), "what must be known of a page, by its name"),
    Property("rows", rows_of(ComparisonRow), "one a load"),
    Property("means", rows_of(MeanRow), "one a scheme and send buffer, over pages"),
    Property(
        "metrics",
        rows_of(MetricRow),
        "one a load and metric: bytes of head-of-line blocking, and the metrics requested",
    ),
    Property(
        "versions",
        rows_of(VersionRow),
        "each other page beside the first, where they are versions of one page",
    ),
    Property("fidelity", TableOf(FIDELITY), "by page, how well the replay of a recording fits"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(ResultTable):
    """Rows by page, buffer and scheme, in the order given; `loads` has their loads, if kept."""

    format = COMPARISON
    displayed = ("means", "rows")
    baseline: str
    rows: Rows[ComparisonRow]
    metrics: Rows[MetricRow]
    """Values of metrics: bytes of head-of-line blocking, and the metrics requested."""
    loads: tuple[Load, ...]
    sample_ms: float | None
    """Sampling interval of `byte_index_sampled_*`; None if they were not requested."""
    notes: dict[str, list[str]]
    """Notes on pages, by name, for pages that have any."""
    missing_reason: dict[str, str]
    """Reason why a page has no ByteIndex above the fold, by its name, for pages without one."""
    are_versions: bool
    """True if the pages are versions of one: same document, and mostly the same resources."""
    fidelity: dict[str, Fidelity]
    """Fit of the replay to its recording, by page, for pages that were recorded."""

    @cached_property
    def means(self) -> Rows[MeanRow]:
        """The arithmetic mean speedups, by scheme and buffer."""
        return self.means_by(lambda values: math.fsum(values) / len(values))

    def means_by(self, mean: Callable[[list[float]], float]) -> Rows[MeanRow]:
        """Return the mean speedups by another *mean*, such as `statistics.geometric_mean`."""
        groups: dict[tuple[str, float], list[ComparisonRow]] = {}
        for row in self.rows:
            groups.setdefault((row.scheme, row.send_buffer_kb), []).append(row)

        def mean_of_known(values: Iterable[float | None]) -> float | None:
            known = [value for value in values if value is not None]
            return mean(known) if known else None

        return Rows(
            MeanRow,
            (
                MeanRow(
                    scheme,
                    send_buffer_kb,
                    len(rows),
                    mean_of_known(row.speedup_all for row in rows),
                    mean_of_known(row.speedup_atf for row in rows),
                )
                for (scheme, send_buffer_kb), rows in groups.items()
            ),
        )

    @cached_property
    def versions(self) -> Rows[VersionRow]:
        """Comparisons of the other versions of a page with the first; empty for different pages."""
        if not self.are_versions:
            return Rows(VersionRow, ())
        page = self.rows[0].page
        first = {(row.scheme, row.send_buffer_kb): row for row in self.rows if row.page == page}
        others = (row for row in self.rows if row.page != page)
        pairs = ((first[row.scheme, row.send_buffer_kb], row) for row in others)
        return Rows(VersionRow, (_compare_versions(one, other) for one, other in pairs))

    @cached_property
    def metric_means(self) -> Rows[MetricRow]:
        """The mean over the pages that have a value, by scheme, buffer and metric; no page."""
        groups: dict[tuple[str, float, str], list[float]] = {}
        for row in self.metrics:
            values = groups.setdefault((row.scheme, row.send_buffer_kb, row.metric), [])
            values += () if row.value is None else (row.value,)
        means = (
            MetricRow("", *group, math.fsum(values) / len(values) if values else None)
            for group, values in groups.items()
        )
        return Rows(MetricRow, means)

    def to_csv(self, path: str | Path) -> None:
        """Write one row per load, with a column for each of its `metrics`, as CSV.

        Raises:
            InputError: if the file cannot be written.
        """
        values: dict[tuple[str, str, float], dict[str, float | None]] = {}
        for metric in self.metrics:
            page, scheme, send_buffer_kb, name, value = metric
            values.setdefault((page, scheme, send_buffer_kb), {})[name] = value
        from h3sim.study.results import Results  # lazy: it uses this package

        Results.of(row._asdict() | values[row[:3]] for row in self.rows).to_csv(path)

    def loads_of(self, page: str, *, send_buffer_kb: float) -> list[Load]:
        """Return the loads of one page with one send buffer, in the order of the schemes.

        Raises:
            InputError: if there was no such page, or no such send buffer.
            NothingToMeasureError: if the loads were not kept.
        """
        rows = self.rows
        check_known(
            page=(page, [row.page for row in rows]),
            send_buffer_kb=(send_buffer_kb, [row.send_buffer_kb for row in rows]),
        )
        if not self.loads:
            raise NothingToMeasureError("the loads were not kept: compare(..., keep_loads=True)")
        return [
            load
            for load, row in zip(self.loads, rows, strict=True)
            if row.page == page and row.send_buffer_kb == send_buffer_kb
        ]

    @property
    def _sentences(self) -> tuple[str, ...]:
        return (*_fidelity_lines(self.fidelity), self.describe())


class SeedComparisonRow(NamedTuple):
    """Comparison of a scheme with the baseline by one metric, over all seeds, with the same buffer.

    *metric* is a column of a study; the rest is as in `SchemeRow` of
    `h3sim.study.statistics.contrasts`: the speedup is the geometric mean over clusters (pages, or
    seeds of a single page).
    """

    metric: str
    send_buffer_kb: float
    scheme: str
    pairs: int
    clusters: int
    arithmetic: float
    geometric: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    effect: float
    wins_5: int
    losses_5: int
    ties_5: int
    wins_25: int
    losses_25: int
    without_ratio: int = 0
    p_least: float | None = None


class SeedMetricRow(NamedTuple):
    """Mean of a metric over clusters (pages, or seeds of a single page), with a 95 % interval.

    Unlike a speedup, it is defined where values are 0, as those of head-of-line blocking often are.
    The interval is None for fewer than three clusters, and if all have the same value.
    """

    metric: str
    send_buffer_kb: float
    scheme: str
    loads: int
    clusters: int
    mean: float | None
    low: float | None
    high: float | None


SEED_COMPARISON = OutputSchema(
    "h3sim-seed-comparison/1",
    "Schemes beside a baseline, over many seeds",
    VERSION,
    Property("baseline", TEXT, "the scheme that speedups are relative to"),
    CONFIGURATION,
    PAGE_DIGESTS,
    Property("seeds", ListOf(COUNT, "seeds"), "those of the loads that succeeded"),
    Property("failed", COUNT, "how many loads failed, and are in no row"),
    Property("rows", rows_of(SeedComparisonRow), "one a metric, send buffer and scheme"),
    Property(
        "metrics",
        rows_of(SeedMetricRow),
        "means: bytes of head-of-line blocking, and the metrics requested",
    ),
    Property("fidelity", TableOf(FIDELITY), "by page, how well the replay of a recording fits"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class SeedComparison(ResultTable):
    """Comparison over seeds: speedups with intervals and tests, by metric, buffer and scheme."""

    format = SEED_COMPARISON
    displayed = ("rows", "metrics")
    baseline: str
    rows: Rows[SeedComparisonRow]
    metrics: Rows[SeedMetricRow]
    """Means of metrics: bytes of head-of-line blocking, and the metrics requested."""
    results: Results
    """Rows of a study, one per load: to filter, to save, or to compare otherwise."""
    fidelity: dict[str, Fidelity]
    """Fit of the replay to its recording, by page, for pages that were recorded."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of the loads that succeeded."""
        return sorted(set(self.results.column("seed")))

    @property
    def failed(self) -> int:
        """The number of loads that failed."""
        counts = self.results.counts
        return 0 if counts is None else counts.failed

    def rows_of(self, metric: str, *, send_buffer_kb: float = 0.0) -> Rows[SeedComparisonRow]:
        """Return the rows of one metric with one send buffer.

        Raises:
            InputError: if there is no such metric or send buffer.
        """
        check_known(
            metric=(metric, self.rows.column("metric")),
            send_buffer_kb=(send_buffer_kb, self.rows.column("send_buffer_kb")),
        )
        return Rows(
            SeedComparisonRow,
            (
                row
                for row in self.rows
                if row.metric == metric and row.send_buffer_kb == send_buffer_kb
            ),
        )

    def __repr__(self) -> str:
        """Return a short summary, as the rows would fill the screen."""
        return f"<SeedComparison to {self.baseline}: {len(self.results):,} loads>"

    @property
    def _sentences(self) -> tuple[str, ...]:
        return (self.describe(), *_fidelity_lines(self.fidelity))


def _fidelity_lines(fidelity: Mapping[str, Fidelity]) -> Iterator[str]:
    """Yield lines about the fit of replays, each with the name of its page."""
    for page, fit in fidelity.items():
        for line in fit.lines():
            yield f"{page}: {line}"


HOL_METRICS = (
    "hol_stream_bytes",
    "hol_connection_bytes",
    "hol_sander_stream_bytes",
    "hol_sander_connection_bytes",
)
"""Metrics of every comparison beside the ByteIndexes: bytes of head-of-line blocking."""
METRICS = {figure.name: figure for figure in FIGURES if figure.is_column}
"""All metrics that a comparison can have, by name."""
_SELECTIONS: tuple[Which, ...] = ("all", "atf")
"""Resources of which a ByteIndex is taken."""
_NUMBER_LIST = Predicate(
    "a list of numbers",
    lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes),
)


@overload
def compare(
    pages: PageLike | Iterable[PageLike], *, seeds: None = None, **options: Any
) -> Comparison: ...
@overload
def compare(
    pages: PageLike | Iterable[PageLike], *, seeds: int | Iterable[int], **options: Any
) -> SeedComparison: ...
@overload
def compare(
    pages: PageLike | Iterable[PageLike], *, seeds: int | Iterable[int] | None, **options: Any
) -> Comparison | SeedComparison: ...
@shows_loads
def compare(
    pages: PageLike | Iterable[PageLike],
    *,
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    client: HalvesLike = None,
    server: HalvesLike = None,
    scheduler: SchedulersLike | None = None,
    signals: SchemeLike | None = None,
    config: LoadConfig | None = None,
    send_buffers_kb: Sequence[float] = (0, 1000),
    baseline: SchemeLike = "rr",
    metrics: Iterable[str] = (),
    sample_ms: float | None = None,
    keep_loads: bool = False,
    seeds: int | Iterable[int] | None = None,
    **options: Any,
) -> Comparison | SeedComparison:
    """Load each page with each scheme and send buffer, and compare with *baseline*.

    The baseline, which may be one of *schemes* by its name, is loaded without a send buffer,
    whatever *send_buffers_kb* are: with a large one every scheme, the baseline too, turns into
    fifo. The loads themselves are kept only with *keep_loads*, since their traces are large, and
    then run in this process. *metrics* names further metrics, as in the columns of a study
    (`h3sim list metrics`), whose values are beside the bytes of head-of-line blocking in
    `Comparison.metrics`. Each *client* before each *server*, names or paths, or "all", joins the
    schemes. With *sample_ms*, rows also have ByteIndexes that are sampled
    so often: 100 as in Marx 2019, for comparison with that paper only. Each *scheduler* of your
    own (a class, function, object or name, or a list) joins the schemes, with clients that send
    the *signals* of a scheme; the schemes are by default "marx-2019", or none beside them. The
    other arguments are those of `LoadConfig`, which change *config* where that is given, and of
    `Execution`.

    With *seeds*, a list or a number of seeds from *seed* on, the result is a `SeedComparison`:
    speedups to the baseline with the same send buffer, with intervals and tests, and means of the
    metrics with intervals, as from `h3sim compare --seeds`.

    Raises:
        InputError: listing every mistake, pages or schemes that share a name among them.
        UnknownNameError: if only a name is not known.
        UnknownOptionError: if there is no such argument.
        MissingExtraError: if seeds are given, but scipy is not installed.

    >>> comparison = compare("davies-meenan", schemes=["rr", "fifo"], send_buffers_kb=[0])
    >>> [round(row.speedup_all, 2) for row in comparison.rows]
    [1.0, 1.41]
    >>> lossy = compare("davies-meenan", schemes=["rr"], send_buffers_kb=[0], network="wifi-lossy")
    >>> [(row.metric, row.value) for row in lossy.metrics][0]
    ('hol_stream_bytes', 52583)
    """
    _check(keep_loads, sample_ms, options)
    seed_list = _seeds(seeds, keep_loads, sample_ms)
    metric_names = resolve_metrics(metrics)
    execution, base_config = read_options(compare, options, config)
    configs = _with_buffers(base_config, send_buffers_kb)
    requested = add_schedulers(
        schemes, scheduler, signals, default="marx-2019", client=client, server=server
    )
    subjects, baseline_scheme = resolve_compared(pages, requested, baseline)
    grid = _Grid(subjects.pages, configs, subjects.schemes, baseline_scheme)
    if seed_list is None:
        return _one_seed(grid, execution, metric_names, sample_ms, keep_loads=keep_loads)
    if not isinstance(seeds, Iterable):  # a number of seeds, from that of the config on
        seed_list = range(base_config.seed, base_config.seed + len(seed_list))
    return _over_seeds(grid, execution, metric_names, seed_list)


def resolve_metrics(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the bytes of head-of-line blocking and *metrics*, each once.

    Raises:
        InputError: if *metrics* is no list of texts.
        UnknownNameError: if there is no such metric.

    >>> resolve_metrics(["packets_lost", "hol_stream_bytes"])[-2:]
    ('hol_sander_connection_bytes', 'packets_lost')
    """
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise InputError.at("", f"must be a list of metrics, is {format_value(metrics)}")
    return tuple(dict.fromkeys((*HOL_METRICS, *map(_known_metric, metrics))))


def _known_metric(name: str) -> str:
    if not isinstance(name, str) or name not in METRICS:
        raise UnknownNameError("metric", name, tuple(METRICS))
    return name


def _seeds(
    seeds: int | Iterable[int] | None, keep_loads: object, sample_ms: object
) -> Sequence[int] | None:
    """Return the seeds if there are any; refuse arguments that do not go with them."""
    if seeds is None:
        return None
    refused = {"keep_loads": keep_loads or None, "sample_ms": sample_ms}
    for name, value in refused.items():
        if value is not None:
            raise InputError.at(name, "does not go with seeds")
    return resolve_seeds(seeds)


def _one_seed(
    grid: _Grid,
    execution: Execution,
    metrics: Sequence[str],
    sample_ms: float | None,
    *,
    keep_loads: bool,
) -> Comparison:
    """Return the comparison of one load each."""
    tasks = grid.tasks(metrics, sample_ms)
    with LoadRunner(execution, _measured, keep_loads=keep_loads) as runner:
        measured = dict(zip(tasks, runner.run([*tasks.values()]), strict=True))
    loads = dict(zip(tasks, runner.loads or (), strict=bool(keep_loads)))
    bases = {page.name: measured[grid.base_of(page)] for page in grid.pages}
    rows = (_comparison_row(key, measured[key], bases[key.page]) for key in grid.cells())
    return Comparison(
        baseline=grid.baseline.name,
        rows=Rows(ComparisonRow, rows),
        metrics=Rows(
            MetricRow,
            (
                MetricRow(*key, *item)
                for key in grid.cells()
                for item in measured[key]["metrics"].items()
            ),
        ),
        loads=tuple(loads[key] for key in grid.cells() if keep_loads),
        sample_ms=sample_ms,
        notes={name: base["notes"] for name, base in bases.items() if base["notes"]},
        fidelity=grid.fidelities(execution),
        missing_reason={
            page.name: reason for page in grid.pages if (reason := page.nothing_visible_reason)
        },
        are_versions=_are_versions(grid.pages),
        **_common(grid),
    )


def _over_seeds(
    grid: _Grid, execution: Execution, metrics: Sequence[str], seeds: Sequence[int]
) -> SeedComparison:
    """Return the comparison over *seeds*, those of a study."""
    require_extra("scipy", "study")  # for the intervals, when all loads have run
    config = grid.configs[0]
    changed: dict[str, Any] = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name not in ("seed", "send_buffer_kb")
        and getattr(config, field.name) != field.default
    }
    study = load_study(
        grid.pages,
        schemes=list(dict.fromkeys([grid.baseline, *grid.schemes])),
        seeds=seeds,
        send_buffer_kb=[each.send_buffer_kb for each in grid.configs],
        metrics=[name for name in metrics if name in ON_DEMAND],
        **changed,
    )
    results = study.run(**vars(execution))
    return SeedComparison(
        baseline=grid.baseline.name,
        rows=Rows(SeedComparisonRow, _seed_rows(results, grid)),
        metrics=Rows(SeedMetricRow, _seed_metrics(results, grid, metrics)),
        results=results,
        fidelity=grid.fidelities(execution),
        **_common(grid),
    )


def _seed_rows(results: Results, grid: _Grid) -> Iterator[SeedComparisonRow]:
    """Yield the rows of each send buffer and metric; metrics that no load has are left out."""
    for config in grid.configs:
        of_config = results.filter(send_buffer_kb=config.send_buffer_kb)
        for figure in FIGURES:
            if not figure.is_compared:
                continue
            try:
                rows = of_config.compare(grid.baseline.name, value=figure.name)
            except NothingToMeasureError:
                continue
            for row in rows:
                yield SeedComparisonRow(figure.name, config.send_buffer_kb, *row)


def _seed_metrics(results: Results, grid: _Grid, metrics: Sequence[str]) -> Iterator[SeedMetricRow]:
    """Yield the mean of each metric with each send buffer and scheme."""
    values: dict[tuple[str, float, str], dict[str, list[float]]] = {}
    of_one_page = len(grid.pages) == 1
    for row in results:
        cluster = str(row["seed"]) if of_one_page else row["page"]
        for name in metrics:
            clusters = values.setdefault((name, row["send_buffer_kb"], row["scheme"]), {})
            if (value := row.get(name)) is not None:
                clusters.setdefault(cluster, []).append(value)
    for name, config in itertools.product(metrics, grid.configs):
        for scheme in dict.fromkeys((grid.baseline.name, *(each.name for each in grid.schemes))):
            clusters = values.get((name, config.send_buffer_kb, scheme), {})
            means = [math.fsum(of_one) / len(of_one) for of_one in clusters.values()]
            mean = math.fsum(means) / len(means) if means else None
            # Equal values, such as zeros alone, do not show how much others would differ.
            ends = mean_interval(means) if len({*means}) > 1 else (None, None)
            n_loads = sum(map(len, clusters.values()))
            key = (name, config.send_buffer_kb, scheme)
            yield SeedMetricRow(*key, n_loads, len(means), mean, *ends)


class _Key(NamedTuple):
    """A load of a comparison: names of page and scheme, and the send buffer."""

    page: str
    scheme: str
    send_buffer_kb: float


@dataclass(frozen=True)
class _Grid:
    """Loads of a comparison: each page with each config and scheme, and with the baseline."""

    pages: Sequence[Page]
    configs: Sequence[LoadConfig]
    schemes: Sequence[Scheme]
    baseline: Scheme

    def fidelities(self, execution: Execution) -> dict[str, Fidelity]:
        """Return the fit of each recorded page's replay to its recording, by page."""
        quiet = replace(execution, progress=False)
        return fidelities(self.pages, quiet, browser=self.configs[0].browser_model)

    def cells(self) -> Iterator[_Key]:
        """Yield the loads that have a row."""
        for page, config, scheme in itertools.product(self.pages, self.configs, self.schemes):
            yield _Key(page.name, scheme.name, config.send_buffer_kb)

    def base_of(self, page: Page) -> _Key:
        """Return the load that those of *page* are compared with."""
        return _Key(page.name, self.baseline.name, 0.0)

    def tasks(self, metrics: Sequence[str], sample_ms: float | None) -> dict[_Key, LoadTask]:
        """Return all loads, those of the baseline included, each once."""
        specs = {page.name: resolve(page, self.baseline, self.configs[0]) for page in self.pages}
        schemes = {scheme.name: scheme for scheme in (*self.schemes, self.baseline)}
        quantity = json.dumps([*metrics, sample_ms])
        tasks: dict[_Key, LoadTask] = {}
        for key in (*map(self.base_of, self.pages), *self.cells()):
            spec = specs[key.page].with_scheme(schemes[key.scheme])
            spec = replace(spec, buffer_bytes=kbyte(key.send_buffer_kb))
            tasks.setdefault(key, LoadTask(spec, quantity))
        return tasks


def _check(keep_loads: object, sample_ms: object, options: Mapping[str, Any]) -> None:
    typed = {"keep_loads": (Flag(), keep_loads), "sample_ms": (SAMPLE_MS, sample_ms)}
    check_arguments(InputError, **typed)
    if "send_buffer_kb" in options:
        message = "goes as send_buffers_kb here, a list: what each scheme is loaded with"
        raise InputError.at("send_buffer_kb", message)


def _with_buffers(config: LoadConfig, send_buffers_kb: Iterable[float]) -> list[LoadConfig]:
    """Return *config* with each of the send buffers."""
    check_arguments(InputError, send_buffers_kb=(_NUMBER_LIST, send_buffers_kb))
    configs = [replace(config, send_buffer_kb=size_kb) for size_kb in send_buffers_kb]
    check_some(send_buffers_kb=configs)
    # Without duplicates: a mean over pages would count a page twice.
    return list(dict.fromkeys(configs))


def _common(grid: _Grid) -> dict[str, Any]:
    """Return the fields of a comparison that all its loads share."""
    config = grid.configs[0]
    spec = resolve(grid.pages[0], grid.baseline, replace(config, send_buffer_kb=0))
    profile, words = spec.profile_of_ends, in_words(spec)
    # Schemes may have their own order, and a load without a buffer has no refill: these are the
    # values of the profile and the config.
    order = profile and (config.retransmission_order or profile.retransmit)
    shared = {"retransmission_order": order, "send_buffer_refill": config.send_buffer_refill}
    settings = configuration(spec) | shared
    del settings["send_buffer_kb"]
    return {
        "version": __version__,
        "configuration": settings,
        "words": {key: words[key] for key in words if key not in ("buffer", "retransmit")}
        | without_marks(grid.pages),
        "page_digests": {page.name: page.digest for page in grid.pages},
    }


def _are_versions(pages: Sequence[Page]) -> bool:
    """Return whether all pages have the root of the first, and at least half of all resources.

    Shared resources are counted against those that at least one of the two pages has.
    """
    first, *others = pages
    first_ids = {resource.id for resource in first.resources}
    for other in others:
        ids = {resource.id for resource in other.resources}
        has_same_root = other.resources[other.root].id == first.resources[first.root].id
        if not has_same_root or 2 * len(first_ids & ids) < len(first_ids | ids):
            return False
    return bool(others)


def _compare_versions(first: ComparisonRow, row: ComparisonRow) -> VersionRow:
    """Return the ratios of one version of a page to the first."""
    return VersionRow(
        row.page,
        row.scheme,
        row.send_buffer_kb,
        speedup_all=_ratio(first.byte_index_all_ms, row.byte_index_all_ms),
        speedup_atf=_ratio(first.byte_index_atf_ms, row.byte_index_atf_ms),
        speedup_page_load=_ratio(first.page_load_ms, row.page_load_ms),
        speedup_first_paint=_ratio(first.first_paint_ms, row.first_paint_ms),
        speedup_largest_paint=_ratio(first.largest_paint_ms, row.largest_paint_ms),
        speedup_load_event=_ratio(first.load_event_ms, row.load_event_ms),
    )


def _measured(load: Load, quantity: str) -> dict[str, Any]:
    """Return the metrics of a load's row, and notes on its page.

    *quantity* is a JSON list of further metrics, and at its end the sampling interval.
    """
    *metrics, sample_ms = json.loads(quantity)
    above = [timing for timing in load.timings if timing.above_the_fold]
    last = max(above, key=lambda timing: timing.finished_ms, default=None)
    root = load.page.resources[load.page.root].id
    sampled = {
        f"byte_index_sampled_{which}_ms": load.byte_index_or_none(which, sample_ms=sample_ms)
        for which in (_SELECTIONS if sample_ms else ())
    }
    row = {
        "byte_index_all_ms": load.byte_index_or_none("all"),
        "byte_index_atf_ms": load.byte_index_or_none("atf"),
        "page_load_ms": load.page_load_ms,
        "document_ms": next(timing.finished_ms for timing in load.timings if timing.id == root),
        "last_atf_ms": None if last is None else last.finished_ms,
        "last_atf_id": None if last is None else last.id,
        "first_paint_ms": load.first_paint_ms,
        "largest_paint_ms": load.largest_paint_ms,
        "speed_index_ms": load.speed_index_ms,
        "load_event_ms": load.load_event_ms,
        **sampled,
    }
    values = {name: METRICS[name].compute(load) for name in metrics}
    return {"row": row, "metrics": values, "notes": load.notes}


def _comparison_row(
    key: _Key, measured: Mapping[str, Any], base: Mapping[str, Any]
) -> ComparisonRow:
    """Return the row of a load, with its speedups to the baseline."""
    row, base_row = measured["row"], base["row"]
    all_ms, atf_ms = "byte_index_all_ms", "byte_index_atf_ms"
    return ComparisonRow(
        *key,
        speedup_all=_ratio(base_row[all_ms], row[all_ms]),
        speedup_atf=_ratio(base_row[atf_ms], row[atf_ms]),
        **row,
    )


def _ratio(base_ms: float | None, other_ms: float | None) -> float | None:
    return base_ms / other_ms if base_ms is not None and other_ms else None
