"""JSON Schemas of study files, saved loads and the output of commands."""

from __future__ import annotations

from typing import Any

from h3sim.advice.hints import HINTS
from h3sim.advice.live_server import LIVE_TEST
from h3sim.advice.optimality import OPTIMALITY, WHAT_IF
from h3sim.advice.prediction import PREDICTION
from h3sim.advice.recommendation import ADVICE
from h3sim.advice.search import FOUND
from h3sim.advice.validation import RULE_CHECK, SERVER_CHECK
from h3sim.catalog.formats import LIST
from h3sim.cli.conform_reports import CONFORMANCE
from h3sim.export.load_document import WRITTEN as LOAD_KEYS
from h3sim.export.load_file import LoadDocument
from h3sim.identification.identification import IDENTIFICATION
from h3sim.importers.chromium.recording import RECORDING
from h3sim.load import FORMAT as LOAD
from h3sim.load.figures import FIGURES
from h3sim.schema.output import merged, schema_of
from h3sim.study.compare import COMPARISON
from h3sim.study.fidelity import IMPORT_REPORT
from h3sim.study.header_study import HEADERS
from h3sim.study.results import FORMAT as RESULTS
from h3sim.study.results import ResultsHead
from h3sim.study.study_file import FORMAT as STUDY
from h3sim.study.study_file import StudyFile

WRITTEN = (
    ADVICE,
    COMPARISON,
    CONFORMANCE,
    FOUND,
    HEADERS,
    HINTS,
    IDENTIFICATION,
    IMPORT_REPORT,
    LIST,
    LIVE_TEST,
    OPTIMALITY,
    PREDICTION,
    RECORDING,
    RULE_CHECK,
    SERVER_CHECK,
    WHAT_IF,
)
"""Formats that are written but never read, in the order of their names."""


def study_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of studies, of loads, and of the first line of saved rows.

    They are generated from the declarations of the files and from the table of metrics.

    >>> list(study_schemas())
    ['h3sim-study/1', 'h3sim-load/2', 'h3sim-results/2']
    """
    figures = merged(LOAD_KEYS.properties(), _figures())
    load_rules = {"properties": figures, "additionalProperties": True}
    return {
        STUDY: schema_of(StudyFile, STUDY, title="A study for h3sim"),
        LOAD: schema_of(
            LoadDocument,
            LOAD,
            title="Metrics of a load, or of the log of a connection",
            about="Times are in ms; unknown or undefined values are null.",
            rules={LoadDocument.__name__.lower(): load_rules},
        ),
        RESULTS: schema_of(ResultsHead, RESULTS, title="The first line of saved rows"),
    }


def _figures() -> dict[str, Any]:
    """Return the properties of the metrics, by their path in a document."""
    properties: dict[str, Any] = {}
    for figure in FIGURES:
        if not figure.key:  # documents leave it out
            continue
        *groups, name = figure.key
        table = properties
        for group in groups:
            schema = table.setdefault(group, {"type": ["object", "null"], "properties": {}})
            table = schema["properties"]
        # Metrics that are not columns may be tables, such as histograms.
        number = {"type": ["number", "null"]} if figure.is_column else {}
        table[name] = {**number, "description": figure.about}
    return properties


def result_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the output of commands and `to_dict`.

    They are generated from the declarations of the output.

    >>> list(result_schemas())[:3]
    ['h3sim-advice/2', 'h3sim-comparison/2', 'h3sim-found/1']
    """
    return {format_.name: format_.published() for format_ in WRITTEN}
