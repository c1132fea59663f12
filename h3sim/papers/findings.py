"""Findings: figures of a study by name, published claims about them, and verdicts."""

from __future__ import annotations

import enum
import math
import operator
import re
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from h3sim.catalog.resources import root
from h3sim.papers.estimates import Estimate, combined, shown
from h3sim.schema import parse_toml
from h3sim.schema.errors import RejectedValueError, collected, format_value, is_quantity
from h3sim.schema.fields import Record, declare, read_document, validate
from h3sim.schema.values import ListOf, Number, OrNone, Text, ValueType
from h3sim.values.errors import InputError, ValidationIssue

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
    REVERSED = "reversed"
    UNDECIDED = "undecided"
    CANNOT_BE_JUDGED = "cannot be judged"


class ClaimAnswer(enum.Enum):
    """ClaimAnswer to a claim."""

    YES = "yes"
    NO = "no"
    REVERSED = "reversed"
    """The opposite of what was published."""
    UNDECIDED = "undecided"
    """The interval holds the limit."""


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

    def region(self, limit: float) -> tuple[float, float]:
        """Return the ends of the values that satisfy the criterion.

        >>> Criterion.AT_LEAST.region(0.7), Criterion.NEAR.region(-4)
        ((0.7, inf), (-5.0, -3.0))
        """
        margin = NEAR * abs(limit) if self is Criterion.NEAR else POINTS
        match self:
            case Criterion.ABOVE | Criterion.AT_LEAST:
                return limit, math.inf
            case Criterion.BELOW | Criterion.AT_MOST:
                return -math.inf, limit
        return limit - margin, limit + margin

    def answer(self, estimate: Estimate, limit: float) -> ClaimAnswer:
        """Return whether *estimate* satisfies the criterion, with its interval if it has one.

        >>> tau = Estimate(0.9, 0.67, 0.96)
        >>> Criterion.AT_LEAST.answer(tau, 0.7), Criterion.AT_LEAST.answer(tau, 0.6)
        (<ClaimAnswer.UNDECIDED: 'undecided'>, <ClaimAnswer.YES: 'yes'>)
        """
        value, low, high = estimate
        if low is None or high is None:
            return ClaimAnswer.YES if self.holds(value, limit) else ClaimAnswer.NO
        n_ends = self.holds(low, limit) + self.holds(high, limit)
        if n_ends == 2:
            return ClaimAnswer.YES
        first, last = self.region(limit)
        # It may hold an end of the region, or be wider than all of it; a point holds nothing else.
        holds_end = low < high and (low <= first <= high or low <= last <= high)
        return ClaimAnswer.UNDECIDED if n_ends or holds_end else ClaimAnswer.NO

    def opposes(self, estimate: Estimate, limit: float, neutral: float | None) -> bool:
        """Return whether *estimate* surely lies on the other side of *neutral* than the limit.

        "Above" and "below" are directions: without *neutral* that is the limit itself. Other
        criteria are not reversed by a value that is too small or too large, but only beyond a
        *neutral* value, at which there would be no effect.

        >>> Criterion.ABOVE.opposes(Estimate(-0.2, -0.3, -0.1), 0, None)
        True
        >>> Criterion.POINTS.opposes(Estimate(-0.2, -0.3, -0.1), 0.2, 0)
        True
        """
        value, low, high = estimate
        is_direction = self in (Criterion.ABOVE, Criterion.BELOW)
        if neutral is None and not is_direction:
            return False
        neutral = limit if neutral is None else neutral
        is_number = self in (Criterion.NEAR, Criterion.POINTS)
        if limit > neutral if is_number else self in (Criterion.ABOVE, Criterion.AT_LEAST):
            return (value if high is None else high) < neutral
        if is_number and limit == neutral:
            return False
        return (value if low is None else low) > neutral

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
class Condition:
    """Condition on the figure named *figure*: it satisfies all of *limits*."""

    figure: str = field(metadata=declare(Text(), "the figure that it is about"))
    limits: tuple[Limit, ...] = field(
        metadata=declare(_Limits(), "what the figure is compared with")
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)

    def within(self, study: str) -> Self:
        """Return the condition with the name of *study* before each figure without a study."""
        limits = tuple(
            limit._replace(threshold=_full_name(limit.threshold, study)) for limit in self.limits
        )
        return replace(self, figure=_full_name(self.figure, study), limits=limits)

    def answer(self, figures: Mapping[str, Estimate]) -> ClaimAnswer | None:
        """Return the answer that *figures* give; None if one is missing."""
        return _combined_answer(
            None if compared is None else limit.criterion.answer(*compared)
            for limit in self.limits
            for compared in [self._compared(limit, figures)]
        )

    def _compared(
        self, limit: Limit, figures: Mapping[str, Estimate]
    ) -> tuple[Estimate, float] | None:
        """Return the figure and the number that it is compared with; None if one is missing.

        If the limit is a figure as well, the two are compared page by page: that is their
        difference, of the same pages and seeds, and 0.
        """
        estimate = figures.get(self.figure)
        if estimate is None:
            return None
        if not isinstance(limit.threshold, str):
            return estimate, limit.threshold
        other = figures.get(limit.threshold)
        if other is None:
            return None
        if limit.criterion in (Criterion.NEAR, Criterion.POINTS):
            return estimate, other.value
        return combined(operator.sub, estimate, other), 0.0


def _full_name(name: Any, study: str) -> Any:
    return f"{study}:{name}" if isinstance(name, str) and ":" not in name else name


def _combined_answer(answers: Iterable[ClaimAnswer | None]) -> ClaimAnswer | None:
    """Return the answer to several conditions that all have to be met."""
    known = [*answers]
    if None in known:
        return None
    worst = (ClaimAnswer.REVERSED, ClaimAnswer.NO, ClaimAnswer.UNDECIDED)
    return next((answer for answer in worst if answer in known), ClaimAnswer.YES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Condition):
    """Claim of a finding: the figure named *figure* satisfies all of *limits*.

    *neutral* is the value of the figure without the published effect, beyond which a claim is
    reversed. "Above" and "below" are directions, which their limit reverses.
    """

    statement: str = field(metadata=declare(Text(), "what is claimed", key="says"))
    neutral: float | None = field(
        default=None,
        metadata=declare(
            OrNone(Number(), none=None), "the value of the figure without the published effect"
        ),
    )

    def judged(self, figures: Mapping[str, Estimate]) -> Judged:
        """Compare the figure of the claim with its limits."""
        expected = []
        difference: Estimate | None = None
        is_reversed = False
        for limit in self.limits:
            name = limit.threshold
            shown_limit = figures[name].value if isinstance(name, str) and name in figures else name
            expected.append(limit.criterion.describe(shown(shown_limit)))
            compared = self._compared(limit, figures)
            if compared is None:
                continue
            estimate, number = compared
            is_reversed |= limit.criterion.opposes(estimate, number, self.neutral)
            if isinstance(name, str) and estimate.low is not None:
                difference = estimate
        answer = self.answer(figures)
        if answer is not None and answer is not ClaimAnswer.YES and is_reversed:
            answer = ClaimAnswer.REVERSED
        return Judged(self, figures.get(self.figure), " and ".join(expected), answer, difference)


class Judged(NamedTuple):
    """Result of a claim: its figure, the limits and the answer."""

    claim: Claim
    figure: Estimate | None
    expected: str
    answer: ClaimAnswer | None
    """None if the figure, or one that is its limit, is missing."""
    difference: Estimate | None = None
    """Difference between the figure and the one that is its limit, over the same pages."""

    @property
    def value(self) -> float | None:
        """The figure without its interval, if any."""
        return None if self.figure is None else self.figure.value

    @property
    def holds(self) -> bool | None:
        """True or False; None if the claim is undecided, or a figure is missing."""
        if self.answer is None or self.answer is ClaimAnswer.UNDECIDED:
            return None
        return self.answer is ClaimAnswer.YES


_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
"""Name of a figure in the text of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Sentences that explain a verdict, with the names of measured figures in braces.

    They are printed if the figures meet all of *conditions*, and all that are named are there.

    Raises:
        FindingsError: if the text names no figure.
    """

    text: str = field(metadata=declare(Text(is_needed=True), "the sentences", key="says"))
    conditions: tuple[Condition, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(Condition), "tables"), "what figures must satisfy", key="where"
        ),
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the errors that concern several values."""
        if not _PLACEHOLDER.search(self.text):
            yield ValidationIssue(
                key="says", message="names no figure: a reason stands on a measurement of the run"
            )

    def within(self, study: str) -> Reason:
        """Return the reason with the name of *study* before each figure without a study."""
        text = _PLACEHOLDER.sub(lambda found: f"{{{_full_name(found[1], study)}}}", self.text)
        return replace(self, text=text, conditions=tuple(c.within(study) for c in self.conditions))

    def stated(self, figures: Mapping[str, Estimate]) -> str | None:
        """Return the text with its figures; None if they do not bear it out."""
        names = _PLACEHOLDER.findall(self.text)
        if not all(name in figures for name in names):
            return None
        if any(condition.answer(figures) is not ClaimAnswer.YES for condition in self.conditions):
            return None
        return _PLACEHOLDER.sub(lambda found: str(figures[found[1]]), self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Published result, with the claims by which it is judged.

    *study* is the experiment of figures that are named without one, and empty if there is none.
    *cannot* is the reason if the finding cannot be judged. *reasons* explain the verdict by other
    figures of the same run; *note* says how the publication is read where that is not obvious.

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
    reasons: tuple[Reason, ...] = field(
        default=(),
        metadata=declare(
            ListOf(Record(Reason), "tables"), "why it comes out as it does, by other figures"
        ),
    )
    note: str = field(
        default="", metadata=declare(Text(), "how the publication is read, where it is not plain")
    )

    def __post_init__(self) -> None:
        validate(self, FindingsError)
        # The instance is frozen, but this is still a part of its construction.
        for name in ("claims", "reasons"):
            parts = tuple(part.within(self.study) for part in getattr(self, name))
            object.__setattr__(self, name, parts)

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
    """Finding with its verdict, the result of each claim, and the reasons that figures bear out."""

    finding: Finding
    verdict: Verdict
    claims: tuple[Judged, ...]
    reasons: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        """Reason for the verdict, or why there is none; None if no reason is given."""
        return self.finding.cannot or " ".join(self.reasons) or None

    @property
    def note(self) -> str | None:
        """Reading of the publication; None if that is plain."""
        return self.finding.note or None


def judge(finding: Finding, figures: Mapping[str, Estimate]) -> Judgement:
    """Return the verdict on *finding*, by *figures*, which are named "study:figure".

    A finding is reversed if any of its claims is: the opposite of a claim was measured. Otherwise
    it holds if all its claims do, does not hold if none does, and holds in part else; if claims
    that are undecided could change that, it is undecided. It cannot be judged if it has no claims,
    or if a figure that it needs is missing.

    >>> claim = Claim(statement="rr is slow", figure="s:rr", limits=(Limit(Criterion.BELOW, 1),))
    >>> slow = Finding(id="x", source="y", statement="rr is slow", study="s", claims=(claim,))
    >>> judge(slow, {"s:rr": Estimate(0.8)}).verdict, judge(slow, {}).verdict
    (<Verdict.HOLDS: 'holds'>, <Verdict.CANNOT_BE_JUDGED: 'cannot be judged'>)
    >>> judge(slow, {"s:rr": Estimate(1.1, 0.9, 1.3)}).verdict
    <Verdict.UNDECIDED: 'undecided'>
    """
    claims = tuple(claim.judged(figures) for claim in finding.claims)
    stated = (reason.stated(figures) for reason in finding.reasons)
    verdict = verdict_on([claim.answer for claim in claims])
    return Judgement(finding, verdict, claims, tuple(text for text in stated if text is not None))


def verdict_on(answers: Sequence[ClaimAnswer | None]) -> Verdict:
    """Return the verdict on a finding whose claims have these answers.

    >>> verdict_on([ClaimAnswer.YES, ClaimAnswer.UNDECIDED])
    <Verdict.UNDECIDED: 'undecided'>
    >>> verdict_on([ClaimAnswer.YES, ClaimAnswer.REVERSED])
    <Verdict.REVERSED: 'reversed'>
    """
    if not answers or None in answers:
        return Verdict.CANNOT_BE_JUDGED
    if ClaimAnswer.REVERSED in answers:
        return Verdict.REVERSED
    # What undecided claims leave open: whether none, or all, of them hold.
    possible = set()
    for undecided in (ClaimAnswer.YES, ClaimAnswer.NO):
        resolved = [undecided if answer is ClaimAnswer.UNDECIDED else answer for answer in answers]
        n_yes = resolved.count(ClaimAnswer.YES)
        possible.add((n_yes == len(resolved)) - (n_yes == 0))
    if len(possible) > 1:
        return Verdict.UNDECIDED
    by_sign = {1: Verdict.HOLDS, 0: Verdict.IN_PART, -1: Verdict.DOES_NOT_HOLD}
    return by_sign[possible.pop()]


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
