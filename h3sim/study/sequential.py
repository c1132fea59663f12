"""Sequential sampling: add seeds until each interval is narrow enough, at a valid level.

The width of an interval depends on the spread of the seeds. Where that tells little of their mean,
stopping at a narrow one makes it only a little too short (Chow and Robbins 1965), for which
`StoppingRule.level` makes up; skewed seeds, of which few look alike by chance, need the first
analysis to be late. docs/validation.md has the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.config.load_config import with_fields
from h3sim.config.options import refuse
from h3sim.errors import InputError, NothingToMeasureError, ValidationIssue
from h3sim.schema.arguments import ErrorCollector
from h3sim.study.design import StoppingRule
from h3sim.study.runner import Execution, split_options
from h3sim.study.statistics import Pair, mean_interval, pairs_by_scheme, ratio_end
from h3sim.study.store import Store
from h3sim.study.sweep import Study, load_study
from h3sim.table import RichDisplay, Rows, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from h3sim.study.results import Results
    from h3sim.study.rows import StudyRows
    from h3sim.study.run import PageLike, SchemeLike


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
        are = "are" if self.is_narrow else "are not all"
        of = f"speedups of {self.rule.value} to {self.rule.baseline}"
        return f"After {n_seeds} seeds, the intervals of {of} {are} narrower than {width}."

    def __repr__(self) -> str:
        return f"<Sequential: {self.describe()}>"

    def _display(self) -> Iterable[str | Table[Any]]:
        yield self.describe()
        yield self.rows


@with_fields(Execution)
def sequential_sweep(
    pages: PageLike | Iterable[PageLike],
    *,
    width: float,
    baseline: str = "rr",
    value: str = "byte_index_all_ms",
    schemes: SchemeLike | Iterable[SchemeLike] | None = None,
    confidence: float = 0.95,
    most_seeds: int = 200,
    **options: Any,
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
    requested: dict[str, Any] = {"width": width, "baseline": baseline, "value": value}
    requested |= {"confidence": confidence, "most_seeds": most_seeds}
    how, of_study = split_options(options)
    own = {name: given for name, given in of_study.items() if name != "seeds"}
    seeds = [ValidationIssue(key=key, message=SEEDS_ARE_ADDED) for key in options if key == "seeds"]
    with ErrorCollector() as errors:
        rule = errors.collect("", lambda: StoppingRule(**requested))
        errors.collect("", lambda: refuse(seeds))
        errors.collect("", lambda: Execution(**how))
        study = errors.collect("", lambda: load_study(pages, schemes=schemes, **own))
    return run_until(study, rule, **how)


@with_fields(Execution)
def run_until(study: Study, rule: StoppingRule, **how: Any) -> Sequential:
    """Run *study* with more and more seeds until *rule* is met.

    *how* are the fields of `Execution`. Raises the errors of `sequential_sweep`.
    """
    n_compared = _check_study(study, rule)
    # Each analysis includes all earlier seeds: without a store in memory they would run again.
    path = how.get("store")
    store = Store(":memory:" if path is None else path)
    ran = 0
    for n_seeds in rule.looks:
        results = study.with_seeds(range(n_seeds)).run(**{**how, "store": store})
        if results.counts is not None:
            ran += results.counts.ran
            # Loads of an earlier analysis count as run, not as reused.
            done = results.counts.reused + results.counts.ran
            results.counts = results.counts._replace(reused=done - ran, ran=ran)
        rows = _sequential_rows(results, rule)
        # A scheme whose loads failed has no interval yet.
        is_narrow = len(rows) == n_compared and all(
            rule.is_met(row.low, row.high, row.seeds) for row in rows
        )
        if is_narrow:
            break
    found = Rows(SequentialRow, rows)
    return Sequential(rule=rule, rows=found, results=results, is_narrow=is_narrow)


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
    most = max(map(len, logs.values()))
    # A seed with a failed load covers fewer pages, so its mean would not be comparable.
    return [math.fsum(own) / most for own in logs.values() if len(own) == most]
