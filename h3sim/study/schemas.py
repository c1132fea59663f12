"""JSON Schemas of studies, of loads, and of what `to_dict` of results over many loads returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents.nested import schema_id
from h3sim.documents.schema import schema_of
from h3sim.page.classes import PAGE_CLASSES
from h3sim.results import FORMAT as LOAD
from h3sim.results.figures import FIGURES
from h3sim.study.compare import ComparisonRow, MeanRow
from h3sim.study.export import FORMAT as RESULTS
from h3sim.study.export import ResultsHead
from h3sim.study.find import FoundRow, RobustnessRow
from h3sim.study.header_study import HeaderRow
from h3sim.study.regret import RegretRow, SchemeRegretRow
from h3sim.study.replayed import ReplayedRow
from h3sim.study.rule_check import Disagreement, RuleRow
from h3sim.study.saved import LoadDocument
from h3sim.study.server_check import ServerCheckRow
from h3sim.study.study_file import FORMAT as STUDY
from h3sim.study.study_file import StudyFile
from h3sim.study.what_if import PathShareRow, WhatIfRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    *("COUNT", "FLAG", "TEXT", "TEXT_OR_NULL", "document_schema", "result_schemas", "rows_schema"),
    *("study_schemas", "table_schema"),
]

TEXT: Mapping[str, Any] = {"type": "string"}
TEXT_OR_NULL: Mapping[str, Any] = {"type": ["string", "null"]}
FLAG: Mapping[str, Any] = {"type": "boolean"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}
COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_WHICH: Mapping[str, Any] = {"enum": ["all", "atf"]}
_OF_ANNOTATION: Mapping[str, Mapping[str, Any]] = {
    "str": TEXT,
    "str | None": TEXT_OR_NULL,
    "int": COUNT,
    "float": {"type": "number"},
    "float | None": {"type": ["number", "null"]},
    "bool": FLAG,
    "Which": _WHICH,
    "Given": {"enum": ["page", "requests"]},
}
"""The values that rows may hold, by how their columns are annotated."""
_BY_NAME: Mapping[str, Any] = {"type": "object", "additionalProperties": TEXT}
_SETTINGS: Mapping[str, Any] = {"type": "object"}
"""Settings of loads, as `h3sim-load/1` has them: what a version can set, it says."""
_COMMON: Mapping[str, Any] = {
    "version": TEXT,
    "configuration": _SETTINGS,
    "page_digests": _BY_NAME,
}
_Format = tuple[str, str, "Mapping[str, Any]"]
"""Its name, its title, and its properties."""


def study_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of studies, of loads, and of the first line of saved rows.

    They come of the declarations that files are read by, and of the table of figures.

    >>> list(study_schemas())
    ['h3sim-study/1', 'h3sim-load/1', 'h3sim-results/1']
    """
    load_rules = {"properties": _figures(), "additionalProperties": True}
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
    """Return the JSON Schemas of results over many loads, by format.

    Their rows have the columns of the tables in Python, so these come of the same declarations.

    >>> list(result_schemas())[:3]
    ['h3sim-advice/1', 'h3sim-comparison/1', 'h3sim-found/1']
    """
    return {
        format_: document_schema(format_, title, properties)
        for format_, title, properties in (*_of_schemes(), *_of_rest())
    }


def _of_schemes() -> Iterator[_Format]:
    """Yield the formats of what sets schemes side by side."""
    imported = {"type": ["object", "null"], "properties": {"format": {"const": "h3sim-import/1"}}}
    yield (
        "h3sim-advice/1",
        "Which scheme serves a page best",
        {
            **dict.fromkeys(("version", "page", "page_digest", "sentence", "best"), TEXT),
            "level_with_best": TEXTS,
            "network_within": {"type": "number", "minimum": 1},
            "above_the_fold_from": TEXT,
            "replayed": rows_schema(ReplayedRow),
            "import": imported,
            "found": {"$ref": schema_id("h3sim-found/1")},
            "comparison": {"$ref": schema_id("h3sim-comparison/1")},
        },
    )
    yield (
        "h3sim-comparison/1",
        "Schemes beside a baseline",
        {
            **_COMMON,
            "baseline": TEXT,
            "notes": {"type": "object", "additionalProperties": TEXTS},
            "rows": rows_schema(ComparisonRow),
            "means": rows_schema(MeanRow),
        },
    )
    found = {"best": TEXT, "verdict": TEXT, "which": _WHICH, "baseline": TEXT}
    yield (
        "h3sim-found/1",
        "Which scheme is best, and how sure that is",
        {
            **_COMMON,
            **found,
            "confidence": _SHARE,
            "n_loads": COUNT,
            "rows": rows_schema(FoundRow),
            "robustness": rows_schema(RobustnessRow),
        },
    )


def _of_rest() -> Iterator[_Format]:
    """Yield the formats of what asks something else."""
    classes = {by: {"enum": list(names)} for by, (names, _) in PAGE_CLASSES.items()}
    yield (
        "h3sim-regret/1",
        "How far schemes are from what none can beat",
        {
            **_COMMON,
            "configurations": {"type": "object", "additionalProperties": _SETTINGS},
            "page_classes": {"type": "object", "additionalProperties": table_schema(classes)},
            "rows": rows_schema(RegretRow),
            "schemes": rows_schema(SchemeRegretRow),
        },
    )
    limits = dict.fromkeys(("table_bytes", "blocked_streams", "seed"), COUNT)
    source = {"source": TEXT, "network": TEXT_OR_NULL}
    yield (
        "h3sim-headers/1",
        "What header compression saves, and how long it blocks",
        {**source, **limits, "rows": rows_schema(HeaderRow)},
    )
    yield (
        "h3sim-rule-check/1",
        "How often a scheme's rules say what a browser said",
        {
            **dict.fromkeys(("version", "scheme"), TEXT),
            **dict.fromkeys(("pages", "recorded_pages", "changed_later"), COUNT),
            "kinds": rows_schema(RuleRow),
            "disagreements": rows_schema(Disagreement),
        },
    )
    yield (
        "h3sim-server-check/1",
        "Which servers change the order at once",
        {
            "version": TEXT,
            "configuration": _SETTINGS,
            "late": TEXT,
            "most_meanwhile": _SHARE,
            "passed": COUNT,
            "rows": rows_schema(ServerCheckRow),
            "surveyed": table_schema(dict.fromkeys(("servers", "passed", "year"), COUNT)),
        },
    )
    yield (
        "h3sim-what-if/1",
        "How long loads would take without this or that",
        {**_COMMON, "rows": rows_schema(WhatIfRow), "contributions": rows_schema(PathShareRow)},
    )


def document_schema(format_: str, title: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of documents of a format, which have all these properties and no other."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(format_),
        "title": title,
        **table_schema({"format": {"const": format_}, **properties}),
    }


def rows_schema(row: type) -> dict[str, Any]:
    """Return the schema of a list of rows of a class of rows."""
    columns = {name: _OF_ANNOTATION[_written(of)] for name, of in row.__annotations__.items()}
    return {"type": "array", "items": table_schema(columns)}


def _written(annotation: Any) -> str:
    """Return an annotation as it stands in the code: named tuples keep a reference to that."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def table_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all these properties, and no other."""
    return {
        "type": "object",
        "properties": {**properties},
        "required": list(properties),
        "additionalProperties": False,
    }
