"""JSON Schemas of studies, of loads, and of what is written of loads and of recordings."""

from __future__ import annotations

from typing import Any

from h3sim.catalog.formats import LIST
from h3sim.importers.chromium.recording import RECORDING
from h3sim.results import FORMAT as LOAD
from h3sim.results.figures import FIGURES
from h3sim.results.load_document import WRITTEN as OF_LOAD
from h3sim.schema.output import merged, schema_of
from h3sim.study.compare import COMPARISON
from h3sim.study.fidelity import IMPORT_REPORT
from h3sim.study.header_study import HEADERS
from h3sim.study.load_file import LoadDocument
from h3sim.study.optimality import REGRET
from h3sim.study.prioritization_test import SERVER_CHECK
from h3sim.study.recommendation import ADVICE
from h3sim.study.results import FORMAT as RESULTS
from h3sim.study.results import ResultsHead
from h3sim.study.scheme_validation import RULE_CHECK
from h3sim.study.search import FOUND
from h3sim.study.study_file import FORMAT as STUDY
from h3sim.study.study_file import StudyFile
from h3sim.study.what_if import WHAT_IF

WRITTEN = (
    *(ADVICE, COMPARISON, FOUND, HEADERS, IMPORT_REPORT, LIST, RECORDING, REGRET, RULE_CHECK),
    *(SERVER_CHECK, WHAT_IF),
)
"""What is written and never read back, by name."""


def study_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of studies, of loads, and of the first line of saved rows.

    They come of the declarations that files are read by, and of the table of figures.

    >>> list(study_schemas())
    ['h3sim-study/1', 'h3sim-load/2', 'h3sim-results/2']
    """
    figures = merged(OF_LOAD.properties(), _figures())
    load_rules = {"properties": figures, "additionalProperties": True}
    return {
        STUDY: schema_of(StudyFile, STUDY, title="A study for h3sim"),
        LOAD: schema_of(
            LoadDocument,
            LOAD,
            title="A load, or the log of a connection, in figures",
            about="Times are ms; what is not known, or not defined for the page, is null.",
            rules={LoadDocument.__name__.lower(): load_rules},
        ),
        RESULTS: schema_of(ResultsHead, RESULTS, title="The first line of saved rows"),
    }


def _figures() -> dict[str, Any]:
    """Return the properties of the figures, each where it stands in a document."""
    found: dict[str, Any] = {}
    for figure in FIGURES:
        *groups, name = figure.key or ("",)
        table = found
        for group in groups:
            below = table.setdefault(group, {"type": ["object", "null"], "properties": {}})
            table = below["properties"]
        if name:
            # What is no column may be a table, as a histogram is.
            is_number = {"type": ["number", "null"]} if figure.is_column else {}
            table[name] = {**is_number, "description": figure.about}
    return found


def result_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of what commands and `to_dict` write of many loads or a recording.

    They come of the declarations that it is written by.

    >>> list(result_schemas())[:3]
    ['h3sim-advice/2', 'h3sim-comparison/2', 'h3sim-found/1']
    """
    return {format_.name: format_.published() for format_ in WRITTEN}
