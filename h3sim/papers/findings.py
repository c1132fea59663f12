"""Findings: figures of a study by name, published claims about them, and verdicts."""

from __future__ import annotations

import enum
import itertools
import math
import operator
import statistics
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.catalog.resources import root
from h3sim.errors import InputError, ValidationIssue
from h3sim.schema import parse_toml
from h3sim.schema.errors import RejectedValueError, collected, format_value, is_quantity
from h3sim.schema.fields import Record, declare, read_document, validate
from h3sim.schema.values import ListOf, Text, ValueType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


NEAR = 0.25
"""Largest relative deviation from a number that is met."""
POINTS = 0.15
"""Largest deviation from a share that is met: 15 percentage points."""


class FindingsError(InputError):
    """A finding, or a file of findings, is invalid."""


class Verdict(enum.Enum):
    """Verdict on a finding."""

    HOLDS = "holds"
    IN_PART = "in part"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_BE_JUDGED = "cannot be judged"


class Estimate(NamedTuple):
    """Estimate from loads, with its 95 % interval over pages, if any."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return shown(self.value)
        return f"{shown(self.value)} ({shown(self.low)} to {shown(self.high)})"


class Criterion(enum.Enum):
    """Comparison of a claim's figure with its limit."""

    ABOVE = "above"
    BELOW = "below"
    AT_LEAST = "at_least"
    AT_MOST = "at_most"
    NEAR = "near"
    POINTS = "points"

    def holds(self, value: float, limit: float) -> bool:
        """Return whether *value* satisfies the criterion.

        >>> Criterion.NEAR.holds(1.9, 2.5), Criterion.NEAR.holds(1.8, 2.5)
        (True, False)
        >>> Criterion.POINTS.holds(0.4, 0.5)
        True
        """
        return _COMPARISONS[self](value, limit)

    def describe(self, limit: str) -> str:
        """Return the criterion with its limit in words."""
        return f"{_CRITERION_WORDS[self]} {limit}"


_COMPARISONS: Mapping[Criterion, Callable[[float, float], bool]] = {
    Criterion.ABOVE: operator.gt,
    Criterion.BELOW: operator.lt,
    Criterion.AT_LEAST: operator.ge,
    Criterion.AT_MOST: operator.le,
    Criterion.NEAR: lambda value, limit: abs(value - limit) <= NEAR * abs(limit),
    Criterion.POINTS: lambda value, limit: abs(value - limit) <= POINTS,
}
_CRITERION_WORDS = {
    Criterion.ABOVE: "above",
    Criterion.BELOW: "below",
    Criterion.AT_LEAST: "at least",
    Criterion.AT_MOST: "at most",
    Criterion.NEAR: "within a quarter of",
    Criterion.POINTS: "within 0.15 of",
}
CRITERIA = {criterion.value: criterion for criterion in Criterion} | {
    "from": Criterion.AT_LEAST,
    "to": Criterion.AT_MOST,
}
"""Criteria by their keys in a file."""


class Limit(NamedTuple):
    """Criterion with its limit."""

    criterion: Criterion
    threshold: float | str
    """The limit as a number, or as the name of a figure."""


class _Limits(ValueType):
    """Mapping from the key of each criterion to its number, or to the name of a figure."""

    stand_in = ()
    keys = tuple(CRITERIA)

    def accept(self, value: Any) -> tuple[Limit, ...]:
        if not isinstance(value, tuple) or not all(isinstance(limit, Limit) for limit in value):
            raise RejectedValueError(f"must be a tuple of Limit, is {format_value(value)}")
        if not value:
            raise RejectedValueError(f"needs a criterion: {', '.join(self.keys)}")
        return value

    def read(self, given: Any) -> tuple[Limit, ...]:
        limits, problems = collected(
            (key, partial(_read_limit, criterion), given[key])
            for key, criterion in CRITERIA.items()
            if key in given
        )
        if problems:
            raise RejectedValueError(problems, tuple(limits))
        return self.accept(tuple(limits))

    def write(self, value: Any) -> dict[str, float | str]:
        return {limit.criterion.value: limit.threshold for limit in value}

    def schema(self) -> dict[str, Any]:
        return {key: {"type": ["number", "string"]} for key in self.keys}


def _read_limit(criterion: Criterion, given: Any) -> Limit:
    """Return a limit as a number, or as the name of a figure."""
    if isinstance(given, str):
        return Limit(criterion, given)
    if not is_quantity(given):
        expected = "must be a number or the name of a figure"
        raise RejectedValueError(f"{expected}, is {format_value(given)}")
    return Limit(criterion, float(given))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim of a finding: the figure named *figure* satisfies all of *limits*."""

    statement: str = field(metadata=declare(Text(), "what is claimed", key="says"))
    figure: str = field(metadata=declare(Text(), "the figure that it is about"))
    limits: tuple[Limit, ...] = field(
        metadata=declare(_Limits(), "what the figure is compared with")
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)

    def within(self, study: str) -> Claim:
        """Return the claim with the name of *study* before each figure without a study."""

        def full_name(name: Any) -> Any:
            return f"{study}:{name}" if isinstance(name, str) and ":" not in name else name

        limits = tuple(
            limit._replace(threshold=full_name(limit.threshold)) for limit in self.limits
        )
        return replace(self, figure=full_name(self.figure), limits=limits)

    def judged(self, figures: Mapping[str, Estimate]) -> Judged:
        """Compare the figure of the claim with its limits."""
        estimate = figures.get(self.figure)
        holds: bool | None = None if estimate is None else True
        expected = []
        for criterion, of in self.limits:
            limit = getattr(figures.get(of), "value", None) if isinstance(of, str) else of
            expected.append(criterion.describe(shown(of if limit is None else limit)))
            if estimate is None or limit is None:
                holds = None
            elif holds is not None:
                holds = holds and criterion.holds(estimate.value, limit)
        return Judged(self, estimate, " and ".join(expected), holds)


class Judged(NamedTuple):
    """Result of a claim: its figure, the limits and whether it holds."""

    claim: Claim
    figure: Estimate | None
    expected: str
    holds: bool | None
    """None if the figure, or one that is its limit, is missing."""

    @property
    def value(self) -> float | None:
        """The figure without its interval, if any."""
        return None if self.figure is None else self.figure.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Published result, with the claims by which it is judged.

    *study* is the experiment of figures that are named without one, and empty if there is none.
    *cannot* is the reason if the finding cannot be judged. *reason* explains the verdict if it is
    not obvious.

    Raises:
        FindingsError: listing every invalid value.
    """

    id: str = field(metadata=declare(Text(is_needed=True), "what tables call it"))
    source: str = field(metadata=declare(Text(), "who says so"))
    statement: str = field(metadata=declare(Text(), "what was published", key="says"))
    study: str = field(
        default="", metadata=declare(Text(), "the experiment whose figures its claims are about")
    )
    claims: tuple[Claim, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(Claim, keeps_partial=True), "tables"), "what must hold", is_premise=True
        ),
    )
    cannot: str = field(default="", metadata=declare(Text(), "why it cannot be judged"))
    reason: str = field(
        default="",
        metadata=declare(Text(), "why it comes out as it does, where that is not plain"),
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)
        # The instance is frozen, but this is still a part of its construction.
        object.__setattr__(self, "claims", tuple(claim.within(self.study) for claim in self.claims))

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors that concern several values."""
        if bool(self.claims) == bool(self.cannot):
            yield ValidationIssue(key="", message="needs either claims, or why it cannot be judged")
        if self.claims and not self.study:
            yield ValidationIssue(key="study", message="is missing")

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies whose figures its claims are about."""
        names = [claim.figure for claim in self.claims]
        names += [
            limit.threshold
            for claim in self.claims
            for limit in claim.limits
            if isinstance(limit.threshold, str)
        ]
        studies = [self.study]
        for name in names:
            study, _, _ = name.partition(":")
            studies.append(study)
        return tuple(dict.fromkeys(filter(None, studies)))


class Judgement(NamedTuple):
    """Finding with its verdict and the result of each claim."""

    finding: Finding
    verdict: Verdict
    claims: tuple[Judged, ...]

    @property
    def reason(self) -> str | None:
        """Reason for the verdict, or why there is none; None if no reason is given."""
        return self.finding.cannot or self.finding.reason or None


def judge(finding: Finding, figures: Mapping[str, Estimate]) -> Judgement:
    """Return the verdict on *finding*, by *figures*, which are named "study:figure".

    A finding holds if all its claims do, does not hold if none does, and holds in part otherwise.
    It cannot be judged if it has no claims, or if a figure that it needs is missing.

    >>> claim = Claim(statement="rr is slow", figure="s:rr", limits=(Limit(Criterion.BELOW, 1),))
    >>> slow = Finding(id="x", source="y", statement="rr is slow", study="s", claims=(claim,))
    >>> judge(slow, {"s:rr": Estimate(0.8)}).verdict, judge(slow, {}).verdict
    (<Verdict.HOLDS: 'holds'>, <Verdict.CANNOT_BE_JUDGED: 'cannot be judged'>)
    """
    claims = tuple(claim.judged(figures) for claim in finding.claims)
    holds = [claim.holds for claim in claims]
    if not claims or None in holds:
        verdict = Verdict.CANNOT_BE_JUDGED
    elif all(holds):
        verdict = Verdict.HOLDS
    else:
        verdict = Verdict.IN_PART if any(holds) else Verdict.DOES_NOT_HOLD
    return Judgement(finding, verdict, claims)


def shown(value: float | str) -> str:
    """Return a number with three significant digits, or a name as it is.

    >>> shown(0.12345), shown(1234.5), shown(3), shown("s:rr"), shown(-0.0001)
    ('0.123', '1,234', '3', 's:rr', '-0.0001')
    """
    if isinstance(value, str):
        return value
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"


FORMAT = "h3sim-findings/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsFile:
    """Contents of a findings file.

    Raises:
        FindingsError: listing every error in it.
    """

    findings: tuple[Finding, ...] = field(
        default=(),
        metadata=declare(ListOf(Record(Finding, keeps_partial=True), "tables"), "in their order"),
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors that concern several values."""
        seen_ids: set[str] = set()
        for number, finding in enumerate(self.findings):
            if finding.id in seen_ids:
                message = f"{finding.id!r} is there twice"
                yield ValidationIssue(key=f"findings[{number}].id", message=message)
            seen_ids.add(finding.id)


@cache
def list_findings() -> tuple[Finding, ...]:
    """Return the shipped findings, in the order of their file.

    >>> first, *others = list_findings()
    >>> first.id, len(others)
    ('marx-1', 56)
    """
    file = root("models") / "findings.toml"
    document = parse_toml(file.read_text(encoding="utf-8"), FindingsError, source=file.name)
    return findings_from_dict(document, source=file.name)


def findings_from_dict(
    document: dict[str, Any], *, source: str = "findings"
) -> tuple[Finding, ...]:
    """Return the findings of *document*, a parsed file.

    Raises:
        FindingsError: listing every error in it.
    """
    file = read_document(FindingsFile, document, FindingsError, source=source, format_=FORMAT)
    return file.findings


_EPSILON = 1e-10
"""Added to denominators, so that relative differences are finite (Sander 2022 § V)."""


class Loads:
    """Rows of loads, in the order of their study; `resources` are those of resources, if any."""

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], resources: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self.rows = tuple(rows)
        self.resources = tuple(resources)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages, in order."""
        return self.distinct("page")

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return self.distinct("scheme")

    def distinct(self, column: str) -> tuple[Any, ...]:
        """Return the values of a column, each once, in order."""
        return tuple(dict.fromkeys(row[column] for row in self.rows))

    def split(self, column: str) -> Iterator[tuple[Any, Loads]]:
        """Yield each value of a column with its loads, in order."""
        for value in self.distinct(column):
            yield value, self.where(**{column: value})

    def where(self, **equal: Any) -> Loads:
        """Return the loads whose columns have these values."""

        # Rows of resources have only those columns of their loads that vary.
        def is_equal(row: Mapping[str, Any]) -> bool:
            return all(row.get(name, value) == value for name, value in equal.items())

        return Loads(filter(is_equal, self.rows), filter(is_equal, self.resources))

    def values(self, column: str) -> list[float]:
        """Return the values of a column, without those that are None."""
        return [row[column] for row in self.rows if row[column] is not None]

    def medians(self, column: str) -> dict[str, float]:
        """Return the median of a column by page, of the pages that have it."""
        by_page: dict[str, list[float]] = {}
        for row in self.rows:
            if row[column] is not None:
                by_page.setdefault(row["page"], []).append(row[column])
        return {page: statistics.median(values) for page, values in by_page.items()}

    def deltas(self, other: Loads, column: str) -> dict[str, float]:
        """Return the difference between the medians of both, relative to *other*, by page."""
        own, base = self.medians(column), other.medians(column)
        return {
            page: (own[page] - base[page]) / (base[page] + _EPSILON) for page in own if page in base
        }

    def complete_groups(
        self, by: Sequence[str], predicate: Callable[[Mapping[str, Any]], bool]
    ) -> Loads:
        """Return the loads of complete groups with equal columns *by*.

        A group is complete if *predicate* is true for all its loads, and none failed, so that it
        has as many as the largest.
        """
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        size = max(map(len, groups.values()), default=0)
        complete = (
            rows for rows in groups.values() if len(rows) == size and all(map(predicate, rows))
        )
        return Loads((row for rows in complete for row in rows), self.resources)


_N_RESAMPLES = 1000
_MIN_PAGES = 5
"""Fewest pages with an interval."""
_PERCENTILES = (2.5, 97.5)
"""Ends of intervals of 95 %."""


def over_pages(
    rows: Sequence[Any], statistic: Callable[[Any], float], *, vectorized: Any = None
) -> Estimate:
    """Return *statistic* of *rows*, one per page, with its percentile bootstrap interval of 95 %.

    Pages are drawn with a fixed seed, so the same rows give the same interval (Efron and
    Tibshirani 1993, ch. 13). *vectorized* computes the statistic of an array of samples at once.
    Without rows, the figure is not a number.
    """
    import numpy as np  # lazy: h3sim.papers should load quickly

    if not len(rows):
        return Estimate(math.nan)
    values = np.asarray(rows, dtype=float)
    figure = float(statistic(values))
    if len(values) < _MIN_PAGES:
        return Estimate(figure)
    # With one seed, so that all figures of a study are from the same samples of pages.
    size = (_N_RESAMPLES, len(values))
    samples = np.random.default_rng(0).integers(0, len(values), size=size)
    if vectorized is not None:
        figures = vectorized(values[samples])
    else:
        figures = [statistic(values[sample]) for sample in samples]
    low, high = np.percentile(figures, _PERCENTILES)
    return Estimate(figure, float(low), float(high))


def mean(values: Iterable[float]) -> Estimate:
    """Return the mean with its interval."""
    import numpy as np

    return over_pages([*values], np.mean, vectorized=lambda samples: samples.mean(axis=1))


def median(values: Iterable[float]) -> Estimate:
    """Return the median with its interval."""
    import numpy as np

    return over_pages([*values], np.median, vectorized=lambda samples: np.median(samples, axis=1))


def share(values: Iterable[bool]) -> Estimate:
    """Return the share of *values* that are true, with its interval."""
    return mean(map(float, values))


def tau(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Kendall's tau-b: 1 for the same order, 0 for none.

    >>> tau([1, 2, 3], [10, 30, 20])
    0.3333333333333333
    """
    signs = [
        (_sign(a, b), _sign(x, y))
        for (a, x), (b, y) in itertools.combinations(zip(left, right, strict=True), 2)
    ]
    untied = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return sum(a * b for a, b in signs) / math.sqrt(untied) if untied else 0.0


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Spearman's rho, Pearson's correlation of ranks; None if one side does not vary.

    >>> spearman([1, 2, 4], [3, 5, 5]), spearman([1, 2], [3, 3])
    (0.8660254037844387, None)
    """
    if len({*left}) < 2 or len({*right}) < 2:
        return None
    # With integers, as the standard library's correlation differs between versions of Python.
    x, y = _centred_ranks(left), _centred_ranks(right)
    squares = sum(rank * rank for rank in x) * sum(rank * rank for rank in y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(squares)


def _centred_ranks(values: Sequence[float]) -> list[int]:
    """Return twice the difference of each value's rank and the mean rank; ties share a rank."""
    ordered = sorted(values)
    n = len(values)
    # Ranks of ties may be halves: twice of them is an integer.
    return [2 * ordered.index(value) + ordered.count(value) - n for value in values]


def _sign(a: float, b: float) -> int:
    return (a > b) - (a < b)
