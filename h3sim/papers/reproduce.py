"""Reproduction of the papers' experiments, verdicts, and the JSON Schemas of both."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.papers import experiments, marx, minor_studies, sander
from h3sim.papers.estimates import Estimate, EstimateRow, Loads
from h3sim.papers.experiments import experiment_names, load_experiment, page_files
from h3sim.papers.findings import (
    ClaimAnswer,
    Judgement,
    Verdict,
    judge,
    list_findings,
)
from h3sim.schema.arguments import PATH, Predicate, check_arguments
from h3sim.schema.output import (
    COUNT,
    NUMBER,
    NUMBER_OR_NONE,
    TEXT,
    TEXT_OR_NONE,
    ObjectType,
    OutputSchema,
    Property,
    row_of,
)
from h3sim.schema.values import Choice, Flag, ListOf, OrNone, TableOf
from h3sim.study.store import Store
from h3sim.study.study_file import Quick
from h3sim.values.errors import ConnectionTimeoutError, InputError, StalledError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from h3sim.papers.experiments import Experiment
    from h3sim.study.runner import ProgressCallback


ALL = "all"
"""Name that stands for all experiments."""
_NAMES = Predicate(
    "a name or a list of names",
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value))
    ),
)
_STORE = Predicate("a path or a Store", lambda value: isinstance(value, str | PathLike | Store))

FIGURES: Mapping[str, Callable[[Any, Mapping[str, float]], dict[str, Estimate]]] = {
    "davies-meenan": minor_studies.deep_buffers,
    "frindell-2017": experiments.header_figures,
    "hol-blog-2020": minor_studies.one_order,
    "http2-http3": minor_studies.protocols,
    "incremental-flag": minor_studies.incremental,
    "koshiba-2016": minor_studies.waterfalls,
    "loss-map": minor_studies.loss_map,
    "marx-2019-buffers": marx.buffers,
    "marx-2019-case-study-1": marx.first_case_study,
    "marx-2019-case-study-2": marx.second_case_study,
    "marx-2019-fig-8": marx.orders,
    "marx-2019-fig-11": marx.one_page,
    "marx-2019-fig-12": marx.scatter,
    "marx-2019-fig-13": marx.jitter,
    "marx-2019-table-2": marx.table_2,
    "sander-2022-fig-4": sander.sizes,
    "sander-2022-fig-5": sander.cells,
    "sander-2022-fig-6": sander.cells,
    "sander-2022-fig-7": sander.correlations,
    "sander-2022-fig-8": sander.cells,
    "sander-2022-fig-9": sander.cells,
    "sander-2022-reno": sander.reno,
    "sander-2022-table-1": sander.times,
    "wijnants-2018": minor_studies.browsers,
}
"""Functions that compute figures from the rows of each experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRun:
    """Results of one experiment: `loads` are its rows, `failed` the number of failed loads."""

    experiment: Experiment
    figures: Mapping[str, Estimate]
    loads: Loads
    axes: tuple[str, ...]
    pages: int
    seeds: int
    n_loads: int
    failed: int
    is_complete: bool = True
    """True if it left no page or seed of its study out."""
    given_up: int = 0
    """Number of loads that exceeded the study's time limit."""
    timed_out: int = 0
    """Number of loads of which an end gave the connection up, as its peer stayed silent."""

    @property
    def comparisons(self) -> list[tuple[str, float, Estimate]]:
        """The name, the paper's number and h3sim's figure, for all that have both."""
        paper = self.experiment.paper
        return [(name, paper[name], self.figures[name]) for name in paper if name in self.figures]


_EXPERIMENT = ObjectType(
    Property("title", TEXT, of="experiment.title"),
    Property("source", TEXT, of="experiment.source"),
    Property("pages", COUNT),
    Property("seeds", COUNT),
    Property("loads", COUNT, of="n_loads"),
    Property("failed", COUNT),
    Property("given_up", COUNT),
    Property("timed_out", COUNT),
    Property("paper", TableOf(NUMBER), "the paper's numbers, by figure", of="experiment.paper"),
    Property("figures", TableOf(row_of(EstimateRow)), "the result, by figure"),
)
_CLAIM = ObjectType(
    Property("statement", TEXT, of="claim.statement"),
    Property("figure", TEXT, of="claim.figure"),
    Property("value", NUMBER_OR_NONE),
    Property("expected", TEXT),
    Property("answer", OrNone(Choice(ClaimAnswer), none=None), "null if a figure is missing"),
    Property("holds", OrNone(Flag(), none=None), "null if undecided, or if a figure is missing"),
)
_JUDGEMENT = ObjectType(
    Property("id", TEXT, of="finding.id"),
    Property("source", TEXT, of="finding.source"),
    Property("statement", TEXT, of="finding.statement"),
    Property("verdict", Choice(Verdict)),
    Property("reason", TEXT_OR_NONE, "why, by figures of the same run"),
    Property("note", TEXT_OR_NONE, "how the publication is read"),
    Property("claims", ListOf(_CLAIM, "claims")),
)
REPRODUCTION = OutputSchema(
    "h3sim-reproduction/1",
    "What came of experiments that were done again",
    Property("version", TEXT, "of h3sim"),
    Property("full", Flag(), "whether all loads of the studies were made", of="is_full"),
    Property("pages", TEXT_OR_NONE, "the folder of the pages; null for the shipped ones"),
    Property("experiments", TableOf(_EXPERIMENT), "by name", of="runs"),
    Property("findings", ListOf(_JUDGEMENT, "findings"), "the verdicts", of="judgements"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """Experiments that were reproduced, and the verdicts that they allow."""

    runs: Mapping[str, ExperimentRun]
    judgements: tuple[Judgement, ...]
    is_full: bool
    pages: str | None
    """The folder of the pages, None for the shipped ones."""

    @property
    def figures(self) -> dict[str, Estimate]:
        """All figures, named "experiment:figure"."""
        return _named_figures(self.runs)

    def is_complete(self, judgement: Judgement) -> bool:
        """Return whether all experiments of the finding ran with all pages and seeds."""
        return all(self.runs[study].is_complete for study in judgement.finding.studies)

    def to_dict(self) -> dict[str, Any]:
        """Return the reproduction as a document of format `h3sim-reproduction/1`."""
        return REPRODUCTION.write(self, version=__version__)


def reproduce(
    names: str | Iterable[str] = ALL,
    *,
    full: bool = False,
    pages: str | Path | None = None,
    store: str | Path | Store | None = None,
    workers: int | None = None,
    executor: Any = None,
    progress: ProgressCallback | bool | None = False,
) -> Reproduction:
    """Reproduce experiments of the papers, and judge their findings.

    *names* are experiments, findings, papers ("marx-2019": all of that paper), or "all"; other
    experiments that their findings need are reproduced, too. The quick variant takes some minutes;
    *full* has as many pages and seeds as the papers. *pages* is a folder of page files in place of
    the shipped corpus. With a *store*, a file, only missing loads run. *workers*, *executor* and
    *progress* are as in `h3sim.sweep`.

    The figures are the same, digit for digit, on every machine and for any division of the loads.

    Raises:
        UnknownNameError: if there is no such experiment.
        InputError: if the pages cannot be used.
        StoreError: if the store cannot be read or written; what was finished is kept.

    >>> done = reproduce("marx-2019-fig-11")
    >>> [(j.finding.id, j.verdict.value) for j in done.judgements]
    [('marx-15', 'does not hold')]
    """
    optional = {
        key: (type_, value)
        for key, type_, value in (("pages", PATH, pages), ("store", _STORE, store))
        if value is not None
    }
    check_arguments(InputError, names=(_NAMES, names), full=(Flag(), full), **optional)
    files = None if pages is None else page_files(pages)
    chosen = chosen_experiments([names] if isinstance(names, str) else names)
    # One store for all, by default in memory, as experiments have loads in common.
    common_store = (
        store if isinstance(store, Store) else Store(":memory:" if store is None else store)
    )
    execution = {
        "store": common_store,
        "workers": workers,
        "executor": executor,
        "progress": progress,
    }
    runs = {
        name: _run_experiment(load_experiment(name), execution, full=full, pages=files)
        for name in chosen
    }
    return Reproduction(
        runs=runs,
        judgements=tuple(_judgements(runs)),
        is_full=full,
        pages=None if pages is None else str(pages),
    )


def _named_figures(runs: Mapping[str, ExperimentRun]) -> dict[str, Estimate]:
    return {
        f"{name}:{figure}": value
        for name, run in runs.items()
        for figure, value in run.figures.items()
    }


def _judgements(runs: Mapping[str, ExperimentRun]) -> Iterator[Judgement]:
    """Yield the verdict on each finding whose experiments all ran."""
    figures = _named_figures(runs)
    for finding in list_findings():
        # A finding without a study is included only if all experiments ran.
        is_included = finding.studies or len(runs) == len(experiment_names())
        if is_included and all(study in runs for study in finding.studies):
            yield judge(finding, figures)


def chosen_experiments(names: Iterable[str]) -> list[str]:
    """Return the experiments that *names* select, each once, with those that findings need."""
    selected: set[str] = set()
    studies_by_finding = {finding.id: finding.studies for finding in list_findings()}
    for name in names:
        if name == ALL:
            selected.update(experiment_names())
        elif name in studies_by_finding:
            selected.update(studies_by_finding[name])
        elif name and (of_paper := [f for f in list_findings() if paper_of(f.source) == name]):
            selected.update(study for finding in of_paper for study in finding.studies)
            selected.update(each for each in experiment_names() if each.startswith(f"{name}-"))
        else:
            selected.add(load_experiment(name).name)
    if not selected:
        raise InputError.at("names", "at least one is needed")
    needed = {
        study
        for finding in list_findings()
        if finding.study in selected
        for study in finding.studies
    }
    return sorted(selected | needed, key=experiment_names().index)


def paper_of(source: str) -> str:
    """Return the name of the paper that a finding is from, author and year; "" if there is none.

    >>> paper_of("Marx 2019 § 5.1, Fig. 12"), paper_of("Davies and Meenan 2018")
    ('marx-2019', '')
    """
    found = re.match(r"(\w+) (\d{4})\b", source)
    return "-".join(found.groups()).lower() if found else ""


def _run_experiment(
    experiment: Experiment, execution: dict[str, Any], *, full: bool, pages: list[str] | None
) -> ExperimentRun:
    """Run the loads of an experiment, and compute its figures."""
    study = experiment.study(full=full, pages=pages)
    results = study.run(**execution)
    given_up = sum(StalledError.GIVEN_UP in error for error in results.errors)
    timed_out = sum(ConnectionTimeoutError.TIMED_OUT in error for error in results.errors)
    loads = Loads(results, results.resources() if study.has_resources else ())
    figures = FIGURES[experiment.name](loads, experiment.paper) if len(loads) else {}
    return ExperimentRun(
        experiment=experiment,
        # A figure without pages is not a number, and is left out.
        figures={name: each for name, each in figures.items() if not math.isnan(each.value)},
        loads=loads,
        axes=study.axes,
        pages=len(study.design.pages),
        seeds=len(study.design.seeds),
        n_loads=len(study),
        failed=len(results.errors) - given_up - timed_out,
        is_complete=full or experiment.quick == Quick(),
        given_up=given_up,
        timed_out=timed_out,
    )
