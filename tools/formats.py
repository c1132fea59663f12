"""Writes what comes of the declarations of formats: `python -m tools.formats`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.advice.hints import HINTS
from h3sim.advice.live_server import LIVE_TEST
from h3sim.advice.optimality import OPTIMALITY, WHAT_IF
from h3sim.advice.prediction import PREDICTION
from h3sim.advice.recommendation import ADVICE
from h3sim.advice.search import FOUND
from h3sim.advice.validation import RULE_CHECK, SERVER_CHECK
from h3sim.cli.conform_reports import CONFORMANCE
from h3sim.cli.show import LIST
from h3sim.export.load_document import WRITTEN as LOAD_KEYS
from h3sim.export.load_file import LoadDocument
from h3sim.identification.identification import IDENTIFICATION
from h3sim.importers.chromium.recording import RECORDING
from h3sim.load import FORMAT as LOAD
from h3sim.load.figures import FIGURES
from h3sim.page import schema
from h3sim.page.model import FORMAT as PAGE
from h3sim.papers.experiments import FORMAT as HEADER_STUDY
from h3sim.papers.experiments import HeaderExperiment
from h3sim.papers.findings import CRITERIA, FindingsFile
from h3sim.papers.findings import FORMAT as FINDINGS
from h3sim.papers.reproduce import REPRODUCTION
from h3sim.schedulers.driver import PROTOCOL, protocol_schema
from h3sim.schema.output import merged, schema_of
from h3sim.schemes import Client, Scheme, Server
from h3sim.schemes.halves import CLIENT, SERVER
from h3sim.schemes.model import FORMAT as SCHEME
from h3sim.study.compare import COMPARISON, SEED_COMPARISON
from h3sim.study.fidelity import IMPORT_REPORT
from h3sim.study.header_study import HEADERS
from h3sim.study.results import FORMAT as RESULTS
from h3sim.study.results import ResultsHead
from h3sim.study.study_file import FORMAT as STUDY
from h3sim.study.study_file import StudyFile
from h3sim.transport import Network, TransportProfile
from h3sim.transport.network import FORMAT as NETWORK
from h3sim.transport.profile import FORMAT as PROFILE

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    SEED_COMPARISON,
    SERVER_CHECK,
    WHAT_IF,
)
"""Formats that are written but never read, in the order of their names."""


def study_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of studies, of loads, and of the first line of saved rows.

    They are generated from the declarations of the files and from the table of metrics.
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
    """
    return {format_.name: format_.published() for format_ in WRITTEN}


def model_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each format; those of TOML files apply to the parsed document.

    They are generated from the declarations of the files. Rules between values are checked only
    when a file is read.
    """
    return {
        PAGE: schema(),
        SCHEME: _with_named_halves(schema_of(Scheme, SCHEME, title="A scheme for h3sim")),
        CLIENT: schema_of(Client, CLIENT, title="A client for h3sim"),
        SERVER: schema_of(Server, SERVER, title="A server for h3sim"),
        NETWORK: schema_of(Network, NETWORK, title="A network for h3sim"),
        PROFILE: schema_of(TransportProfile, PROFILE, title="A transport profile for h3sim"),
    }


_HALVES = {
    "client": {"type": "string", "description": "the client whose classes and signals it has"},
    "server": {"type": "string", "description": "the server whose mechanism it has"},
}
_KEYS_OF_HALVES = {"signalling": "client", "classes": "client", "mechanism": "server"}
"""The keys that a scheme file needs where it does not name that half."""


def _with_named_halves(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of scheme files, in which a name may replace the keys of a half."""
    schema["properties"] |= _HALVES
    schema["required"] = [key for key in schema["required"] if key not in _KEYS_OF_HALVES]
    schema["allOf"] = [
        {"anyOf": [{"required": [key]}, {"required": [half]}]}
        for key, half in _KEYS_OF_HALVES.items()
    ]
    return schema


_SCHEMA_RULES: Mapping[str, Mapping[str, Any]] = {
    "claim": {"anyOf": [{"required": [key]} for key in CRITERIA]},
    "finding": {"oneOf": [{"required": ["claims", "study"]}, {"required": ["cannot"]}]},
}
"""Schema rules beyond the declarations of fields."""


def findings_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of findings, studies of headers and reproductions, by format."""
    return {
        FINDINGS: schema_of(FindingsFile, FINDINGS, title="What papers found", rules=_SCHEMA_RULES),
        HEADER_STUDY: schema_of(HeaderExperiment, HEADER_STUDY, title="A study of headers"),
        REPRODUCTION.name: REPRODUCTION.published(),
    }


_PACKAGE = Path(__file__).parents[1] / "h3sim"


def published() -> dict[Path, dict[str, Any]]:
    """Return the schema of each format by the file that it is published in, beside the code."""
    of_models = model_schemas()
    packages: Mapping[str, Mapping[str, dict[str, Any]]] = {
        "page": {PAGE: of_models.pop(PAGE)},
        "catalog": of_models,
        "study": study_schemas() | result_schemas(),
        "papers": findings_schemas(),
        "schedulers": {PROTOCOL: protocol_schema()},
    }
    return {
        _PACKAGE / package / f"{format_.replace('/', '-')}.schema.json": found
        for package, schemas in packages.items()
        for format_, found in schemas.items()
    }


def main() -> None:
    """Write every schema anew."""
    for path, found in published().items():
        text = json.dumps(found, indent=2, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
