"""Verdicts: what claims say of figures that are made up, and what a file of findings may say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from h3sim.papers import list_findings
from h3sim.papers.estimates import Estimate, mean, median, over_pages, share, shown, spearman, tau
from h3sim.papers.findings import (
    FORMAT,
    Claim,
    ClaimAnswer,
    Condition,
    Criterion,
    Finding,
    FindingsError,
    FindingsFile,
    Limit,
    Reason,
    Verdict,
    findings_from_dict,
    judge,
)
from h3sim.papers.reproduce import FIGURES
from h3sim.schema.fields import write_table


def claim(figure: str, criterion: Criterion, limit: float | str) -> Claim:
    return Claim(statement="it is", figure=f"s:{figure}", limits=(Limit(criterion, limit),))


def finding(*claims: Claim, cannot: str = "") -> Finding:
    return Finding(
        id="x-1", source="y", statement="it is", study="s", claims=tuple(claims), cannot=cannot
    )


@pytest.mark.parametrize(
    ("criterion", "limit", "holding", "failing"),
    [
        (Criterion.ABOVE, 1, 1.001, 1),
        (Criterion.BELOW, 1, 0.999, 1),
        (Criterion.AT_LEAST, 0.7, 0.7, 0.699),
        (Criterion.AT_MOST, 0.1, 0.1, 0.101),
        (Criterion.NEAR, 4, 5, 5.01),
        (Criterion.NEAR, 4, 3, 2.99),
        (Criterion.NEAR, -4, -5, -5.01),
        (Criterion.POINTS, 0.5, 0.6499, 0.651),
        (Criterion.POINTS, 0, -0.1499, -0.151),
    ],
)
def test_each_criterion_gives_both_answers(
    criterion: Criterion, limit: float, holding: float, failing: float
) -> None:
    subject = finding(claim("a", criterion, limit))
    assert judge(subject, {"s:a": Estimate(holding)}).verdict is Verdict.HOLDS
    assert judge(subject, {"s:a": Estimate(failing)}).verdict is Verdict.DOES_NOT_HOLD


def test_a_finding_of_which_one_claim_fails_holds_in_part() -> None:
    subject = finding(claim("a", Criterion.AT_LEAST, 1), claim("b", Criterion.AT_LEAST, 1))
    assert judge(subject, {"s:a": Estimate(2), "s:b": Estimate(0)}).verdict is Verdict.IN_PART


def test_a_finding_is_reversed_if_any_of_its_claims_is() -> None:
    subject = finding(claim("a", Criterion.ABOVE, 1), claim("b", Criterion.ABOVE, 1))
    judgement = judge(subject, {"s:a": Estimate(2), "s:b": Estimate(0)})
    assert [judged.answer for judged in judgement.claims] == [ClaimAnswer.YES, ClaimAnswer.REVERSED]
    assert judgement.verdict is Verdict.REVERSED


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (-0.382, -0.085, ClaimAnswer.REVERSED),
        (-0.3, 0.1, ClaimAnswer.UNDECIDED),
        (-0.3, 0, ClaimAnswer.UNDECIDED),  # it holds the limit
        (0, 0, ClaimAnswer.NO),  # it is 0, which is not above
        (0, 0.1, ClaimAnswer.UNDECIDED),
        (0.01, 0.1, ClaimAnswer.YES),
    ],
)
def test_a_direction_is_answered_by_its_whole_interval(
    low: float, high: float, answer: ClaimAnswer
) -> None:
    (judged,) = judge(
        finding(claim("a", Criterion.ABOVE, 0)), {"s:a": Estimate(-0.272, low, high)}
    ).claims
    assert judged.answer is answer


def test_an_order_that_six_pages_decide_is_undecided() -> None:
    subject = finding(claim("tau", Criterion.AT_LEAST, 0.7))
    verdict = judge(subject, {"s:tau": Estimate(0.899, 0.674, 0.956)}).verdict
    assert verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.1, 0.3, ClaimAnswer.YES),  # within 0.15 of 0.2
        (0.1, 0.4, ClaimAnswer.UNDECIDED),
        (0.4, 0.6, ClaimAnswer.NO),
        (-0.9, 0.9, ClaimAnswer.UNDECIDED),
        (-0.5, -0.2, ClaimAnswer.REVERSED),  # an effect, and the opposite one
        (-0.5, 0.01, ClaimAnswer.NO),
    ],
)
def test_a_number_is_reversed_beyond_the_value_without_an_effect(
    low: float, high: float, answer: ClaimAnswer
) -> None:
    limits = (Limit(Criterion.POINTS, 0.2),)
    subject = Claim(statement="it is", figure="s:a", limits=limits, neutral=0)
    assert subject.judged({"s:a": Estimate((low + high) / 2, low, high)}).answer is answer


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ("yes yes", Verdict.HOLDS),
        ("yes undecided", Verdict.UNDECIDED),
        ("no undecided", Verdict.UNDECIDED),
        ("undecided", Verdict.UNDECIDED),
        ("yes no undecided", Verdict.IN_PART),
        ("no no", Verdict.DOES_NOT_HOLD),
        ("yes yes reversed undecided", Verdict.REVERSED),
    ],
)
def test_a_finding_is_undecided_if_undecided_claims_could_change_its_verdict(
    answers: str, verdict: Verdict
) -> None:
    of_answer = {
        "yes": Estimate(2.0, 1.5, 2.5),
        "no": Estimate(1.0, 1.0, 1.0),
        "undecided": Estimate(1.0, 0.5, 1.5),
        "reversed": Estimate(0.5, 0.4, 0.6),
    }
    names = answers.split()
    figures = {f"s:{number}": of_answer[name] for number, name in enumerate(names)}
    claims = (claim(str(number), Criterion.ABOVE, 1) for number in range(len(names)))
    judgement = judge(finding(*claims), figures)
    assert [judged.answer for judged in judgement.claims] == [ClaimAnswer(name) for name in names]
    assert judgement.verdict is verdict


def test_two_figures_of_the_same_pages_are_compared_page_by_page() -> None:
    # The pages differ by far more than the two figures, of which one is larger on each page.
    slow, fast = [1.0, 5.0, 20.0, 50.0, 100.0, 200.0], [0.9, 4.0, 19.0, 48.0, 97.0, 190.0]
    figures = {"s:slow": mean(slow), "s:fast": mean(fast)}
    (judged,) = judge(finding(claim("slow", Criterion.ABOVE, "s:fast")), figures).claims
    assert judged.answer is ClaimAnswer.YES
    assert judged.difference is not None
    assert judged.difference.low is not None
    assert judged.difference.low > 0
    # Figures of other numbers of pages have nothing in common.
    apart = figures | {"s:fast": mean(fast[:-1])}
    (judged,) = judge(finding(claim("slow", Criterion.ABOVE, "s:fast")), apart).claims
    assert judged.answer is ClaimAnswer.UNDECIDED


def test_a_reason_is_stated_with_its_figures_and_only_where_they_bear_it_out() -> None:
    below = Condition(figure="b", limits=(Limit(Criterion.BELOW, 0),))
    reason = Reason(text="It falls by {a}.", conditions=(below,))
    subject = replace(finding(claim("a", Criterion.ABOVE, 1)), reasons=(reason,))
    figures = {"s:a": Estimate(2.0, 1.5, 2.5), "s:b": Estimate(-1.0, -2.0, -0.5)}
    assert judge(subject, figures).reason == "It falls by 2 (1.5 to 2.5)."
    assert judge(subject, figures | {"s:b": Estimate(-1.0, -2.0, 0.5)}).reason is None
    assert judge(subject, {"s:a": Estimate(2.0)}).reason is None


def test_a_reason_that_names_no_figure_is_refused() -> None:
    with pytest.raises(FindingsError, match="stands on a measurement"):
        Reason(text="The cause is not known.")


def test_the_reasons_of_shipped_findings_name_figures_that_their_experiments_have() -> None:
    for found in list_findings():
        for reason in found.reasons:
            studies = {name.partition(":")[0] for name in re.findall(r"\{([^}]+)\}", reason.text)}
            assert studies <= set(found.studies), found.id


def test_a_claim_may_compare_two_figures() -> None:
    subject = finding(claim("small", Criterion.ABOVE, "s:medium"))
    figures = {"s:small": Estimate(2.0), "s:medium": Estimate(1.5)}
    (judged,) = judge(subject, figures).claims
    assert (judged.holds, judged.expected) == (True, "above 1.5")
    assert judge(subject, {"s:small": Estimate(2.0)}).verdict is Verdict.CANNOT_BE_JUDGED


def test_a_finding_without_its_figure_or_by_its_own_word_cannot_be_judged() -> None:
    assert judge(finding(claim("a", Criterion.ABOVE, 1)), {}).verdict is Verdict.CANNOT_BE_JUDGED
    assert judge(finding(cannot="old"), {}).verdict is Verdict.CANNOT_BE_JUDGED


def test_a_claim_with_two_limits_holds_between_them() -> None:
    limits = (Limit(Criterion.AT_LEAST, 0.02), Limit(Criterion.AT_MOST, 0.07))
    subject = finding(Claim(statement="it is", figure="s:a", limits=limits))
    verdicts = [judge(subject, {"s:a": Estimate(v)}).verdict for v in (0.01, 0.02, 0.07, 0.08)]
    no, yes = Verdict.DOES_NOT_HOLD, Verdict.HOLDS
    assert verdicts == [no, yes, yes, no]


def test_the_shipped_findings_are_57_and_name_experiments_that_there_are() -> None:
    findings = list_findings()
    assert len(findings) == 57
    assert {study for found in findings for study in found.studies} <= set(FIGURES)
    assert all(found.claims or found.cannot for found in findings)


def test_every_error_in_a_file_of_findings_is_reported() -> None:
    document: dict[str, Any] = {
        "format": "h3sim-findings/2",
        "findings": [
            {"id": "a", "source": "b", "says": "c", "study": "s", "claims": [{"says": "d"}]},
            {"id": "a", "source": "b", "says": 3, "wrong": 1},
            {
                "id": "e",
                "source": "b",
                "says": "c",
                "claims": [{"says": "d", "figure": "f", "near": [1]}],
            },
        ],
    }
    with pytest.raises(FindingsError) as caught:
        findings_from_dict(document)
    assert [problem.key for problem in caught.value.problems] == [
        "format",
        "findings[0].claims[0].figure",
        "findings[0].claims[0]",
        "findings[1].wrong",
        "findings[1].says",
        "findings[1]",
        "findings[2].claims[0].near",
        "findings[2].study",
        "findings[1].id",
    ]


def test_findings_are_written_as_they_are_read() -> None:
    shipped = FindingsFile(findings=list_findings())
    written = {"format": FORMAT, **write_table(shipped)}
    assert findings_from_dict(written) == list_findings()


def test_a_limit_is_a_number_or_a_name_and_a_claim_has_one() -> None:
    rows: list[dict[str, Any]] = [{"below": True}, {"from": "t:b", "to": 2}, {}, {"near": 10**400}]
    claims = [{"says": "it is", "figure": "a", **row} for row in rows]
    entry = {"id": "a", "source": "b", "says": "c", "study": "s", "claims": claims}
    with pytest.raises(FindingsError) as caught:
        findings_from_dict({"format": FORMAT, "findings": [entry]}, source="mine.toml")
    number = "must be a number or the name of a figure"
    assert caught.value.lines() == [
        f"mine.toml: findings[0].claims[0].below: {number}, is True",
        "mine.toml: findings[0].claims[2]: needs a criterion: above, below, at_least, at_most,"
        " near, points, from, to",
        f"mine.toml: findings[0].claims[3].near: {number}, is a huge number",
    ]
    del claims[3], claims[2], claims[0]
    (found,) = findings_from_dict({"format": FORMAT, "findings": [entry]})
    limits = (Limit(Criterion.AT_LEAST, "t:b"), Limit(Criterion.AT_MOST, 2.0))
    assert found.claims == (Claim(statement="it is", figure="s:a", limits=limits),)


def test_an_interval_of_equal_pages_is_a_point_and_few_pages_have_none() -> None:
    assert mean([2.0] * 6) == Estimate(2.0, 2.0, 2.0)
    assert median([1.0, 2.0, 4.0]) == Estimate(2.0)
    assert math.isnan(mean([]).value)


def test_an_interval_covers_its_figure_and_is_the_same_again() -> None:
    values = [1.0, 1.5, 2.0, 2.5, 9.0, 1.2]
    figure = mean(values)
    assert figure.low is not None
    assert figure.high is not None
    assert figure.low < figure.value < figure.high
    assert figure == mean(values)
    # One function at a time, or over all samples at once: the same draws.
    assert over_pages(values, lambda sample: float(sample.mean())) == pytest.approx(figure)


def test_a_share_counts_what_is_true() -> None:
    assert share([True, False, False, False]) == Estimate(0.25)


def test_tau_and_rho_by_hand() -> None:
    # Of six pairs five agree and one does not.
    assert tau([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    # One tie on the right: five untied of six there, all agree.
    assert tau([1, 2, 3, 4], [1, 2, 3, 3]) == pytest.approx(5 / (6 * 5) ** 0.5)
    assert spearman([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(0.8)
    assert spearman([1, 2, 3], [5, 5, 5]) is None


def test_numbers_are_shown_with_three_digits() -> None:
    assert [shown(v) for v in (0, -0.25, 1.234, 99.96, 12345.6, 0.0004)] == [
        *("0", "-0.25", "1.23", "100", "12,346", "0.0004"),
    ]
