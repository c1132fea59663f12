"""JSON Schemas of findings, of studies of headers, and of what `Reproduction.to_dict` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents.schema import schema_of
from h3sim.findings.declared import FORMAT as FINDINGS
from h3sim.findings.declared import FindingsFile
from h3sim.findings.headers import FORMAT as HEADER_STUDY
from h3sim.findings.headers import HeaderExperiment
from h3sim.findings.model import CRITERIA
from h3sim.findings.reproduce import REPRODUCTION

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["findings_schemas"]

_RULES: Mapping[str, Mapping[str, Any]] = {
    "claim": {"anyOf": [{"required": [key]} for key in CRITERIA]},
    "finding": {"oneOf": [{"required": ["claims", "study"]}, {"required": ["cannot"]}]},
}
"""What declarations of fields do not say."""


def findings_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of findings, studies of headers and reproductions, by format.

    >>> list(findings_schemas())
    ['h3sim-findings/1', 'h3sim-header-study/1', 'h3sim-reproduction/1']
    """
    return {
        FINDINGS: schema_of(FindingsFile, FINDINGS, title="What papers found", rules=_RULES),
        HEADER_STUDY: schema_of(HeaderExperiment, HEADER_STUDY, title="A study of headers"),
        REPRODUCTION.name: REPRODUCTION.published(),
    }
