"""JSON Schemas of studies, of loads, and of what `to_dict` of results over many loads returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.documents.schema import schema_of
from h3sim.page.classes import PAGE_CLASSES
from h3sim.results import FORMAT as LOAD
from h3sim.results.figures import FIGURES
from h3sim.study.find import FoundRow, RobustnessRow
from h3sim.study.regret import RegretRow, SchemeRegretRow
from h3sim.study.saved import LoadDocument
from h3sim.study.study_file import FORMAT as STUDY
from h3sim.study.study_file import StudyFile

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["result_schemas", "study_schemas"]

_TEXT: Mapping[str, Any] = {"type": "string"}
_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_WHICH: Mapping[str, Any] = {"enum": ["all", "atf"]}
_OF_ANNOTATION: Mapping[str, Mapping[str, Any]] = {
    "str": _TEXT,
    "str | None": {"type": ["string", "null"]},
    "int": _COUNT,
    "float": {"type": "number"},
    "float | None": {"type": ["number", "null"]},
    "bool": {"type": "boolean"},
    "Which": _WHICH,
    "Given": {"enum": ["page", "requests"]},
}
"""The values that rows may hold, by how their columns are annotated."""
_BY_NAME: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_SETTINGS: Mapping[str, Any] = {"type": "object"}
"""Settings of loads, as `h3sim-load/1` has them: what a version can set, it says."""


def study_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of studies and of single loads, by format.

    They come of the declarations that files are read by, and of the table of figures.

    >>> list(study_schemas())
    ['h3sim-study/1', 'h3sim-load/1']
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
    """Return the JSON Schema of each format, by its name.

    Their rows have the columns of the tables in Python, so these come of the same declarations.

    >>> list(result_schemas())
    ['h3sim-regret/1', 'h3sim-found/1']
    """
    classes = {by: {"enum": list(names)} for by, (names, _) in PAGE_CLASSES.items()}
    common = {"version": _TEXT, "configuration": _SETTINGS, "page_digests": _BY_NAME}
    return {
        "h3sim-regret/1": _document(
            "h3sim-regret/1",
            "How far schemes are from what none can beat",
            {
                **common,
                "configurations": {"type": "object", "additionalProperties": _SETTINGS},
                "page_classes": {"type": "object", "additionalProperties": _table(classes)},
                "rows": _rows(RegretRow),
                "schemes": _rows(SchemeRegretRow),
            },
        ),
        "h3sim-found/1": _document(
            "h3sim-found/1",
            "Which scheme is best, and how sure that is",
            {
                **common,
                "best": _TEXT,
                "verdict": _TEXT,
                "which": _WHICH,
                "baseline": _TEXT,
                "confidence": _SHARE,
                "n_loads": _COUNT,
                "rows": _rows(FoundRow),
                "robustness": _rows(RobustnessRow),
            },
        ),
    }


def _document(format_: str, title: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:h3sim:schema:{format_.replace('/', '-')}",
        "title": title,
        **_table({"format": {"const": format_}, **properties}),
    }


def _rows(row: type[NamedTuple]) -> dict[str, Any]:
    columns = {name: _OF_ANNOTATION[_written(of)] for name, of in row.__annotations__.items()}
    return {"type": "array", "items": _table(columns)}


def _written(annotation: Any) -> str:
    """Return an annotation as it stands in the code: named tuples keep a reference to that."""
    return str(getattr(annotation, "__forward_arg__", annotation))


def _table(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties},
        "required": list(properties),
        "additionalProperties": False,
    }
