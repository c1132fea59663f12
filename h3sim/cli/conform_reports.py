"""Reports of `h3sim conform` for programs: JSON, JUnit XML, SARIF and annotations of GitHub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

from h3sim._version import __version__
from h3sim.schema.output import OutputSchema, Property, rows_of
from h3sim.schema.values import ListOf, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.conformance import ConformanceReport, LawVerdict, VectorReport, VectorVerdict


class Outcome(NamedTuple):
    """Outcome of one law or vector: kept, broken, skipped, or other (a choice of the server).

    *reason* says why it is not kept, and *history* has the calls of a broken law.
    """

    name: str
    about: str
    outcome: str
    reason: str
    history: tuple[str, ...] = ()
    test: str = ""


CONFORMANCE = OutputSchema(
    "h3sim-conformance-report/1",
    "Laws and vectors that a scheduler keeps and breaks",
    Property("version", Text(), "version of h3sim"),
    Property("scheduler", Text(), "name of the scheduler"),
    Property("outcomes", rows_of(Outcome, history=ListOf(Text(), "lines")), "one per law or case"),
)


def outcomes_of(report: ConformanceReport | VectorReport) -> list[Outcome]:
    """Return what a report says, one row per law or case."""
    return [_outcome_of(verdict) for verdict in report.verdicts]


def _outcome_of(verdict: LawVerdict | VectorVerdict) -> Outcome:
    from h3sim.conformance import VectorVerdict  # on use: it needs Hypothesis

    if isinstance(verdict, VectorVerdict):
        name = f"{verdict.vectors}: {verdict.case}"
        about = f"{verdict.level}, {verdict.source}"
        return Outcome(name, about, verdict.outcome, verdict.failed or verdict.skipped or "")
    law, broken = verdict.law, verdict.broken
    if broken is None:
        outcome = "kept" if verdict.skipped is None else "skipped"
        return Outcome(law.value, law.meaning, outcome, verdict.skipped or "")
    history, test = broken.history, broken.as_test()
    return Outcome(law.value, law.meaning, "broken", broken.sentence, history, test)


def json_of(scheduler: str, outcomes: Sequence[Outcome]) -> str:
    """Return a report as h3sim-conformance-report/1."""
    told = {"version": __version__, "scheduler": scheduler, "outcomes": outcomes}
    return json.dumps(CONFORMANCE.write(told), indent=1)


def junit_of(scheduler: str, outcomes: Sequence[Outcome]) -> str:
    """Return a report as JUnit XML: a test case per law, as CI servers read it."""
    found = [each.outcome for each in outcomes]
    suite = ET.Element("testsuite", name=scheduler, tests=str(len(found)))
    suite.set("failures", str(found.count("broken")))
    suite.set("skipped", str(found.count("skipped")))
    for each in outcomes:
        case = ET.SubElement(suite, "testcase", classname=scheduler, name=each.name)
        if each.outcome == "broken":
            failure = ET.SubElement(case, "failure", message=each.reason)
            failure.text = "\n".join([each.reason, *each.history, "", each.test])
        elif each.outcome == "skipped":
            ET.SubElement(case, "skipped", message=each.reason)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def sarif_of(outcomes: Sequence[Outcome], *, file: str) -> str:
    """Return what is broken as SARIF 2.1.0; *file*, the driver's, is the place of every result."""
    place = {"artifactLocation": {"uri": quote(file)}, "region": {"startLine": 1}}
    rules = [{"id": each.name, "shortDescription": {"text": each.about}} for each in outcomes]
    results = [
        {
            "ruleId": each.name,
            "ruleIndex": index,
            "level": "error",
            "message": {"text": "\n".join([each.reason, *each.history])},
            "locations": [{"physicalLocation": place}],
        }
        for index, each in enumerate(outcomes)
        if each.outcome == "broken"
    ]
    tool = {"driver": {"name": "h3sim", "version": __version__, "rules": rules}}
    log: dict[str, Any] = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }
    return json.dumps(log, indent=1) + "\n"


def annotations_of(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a workflow command of GitHub for each that is broken."""
    lines = []
    for each in outcomes:
        if each.outcome == "broken":
            # As GitHub has it: % first, since it begins the others.
            text = "%0A".join(
                "\n".join([each.reason, *each.history]).replace("%", "%25").splitlines()
            )
            title = each.name.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
            lines.append(f"::error title={title}::{text}")
    return lines
