"""The findings and their rules, from `models/findings.toml`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from h3sim.catalog.roots import root
from h3sim.documents import parse_toml
from h3sim.documents.declared import read_document, says, settle
from h3sim.documents.nested import Table
from h3sim.documents.values import ListOf
from h3sim.errors import Problem
from h3sim.findings.model import Finding, FindingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FORMAT", "FindingsFile", "findings_from_dict", "list_findings"]

FORMAT = "h3sim-findings/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsFile:
    """What a file of findings says.

    Raises:
        FindingsError: listing every mistake in it.
    """

    findings: tuple[Finding, ...] = field(
        default=(), metadata=says(ListOf(Table(Finding, is_kept=True), "tables"), "in their order")
    )

    def __post_init__(self) -> None:
        settle(self, FindingsError)

    def mistakes(self) -> Iterator[Problem]:
        """Yield what is wrong between its values."""
        known: set[str] = set()
        for number, finding in enumerate(self.findings):
            if finding.id in known:
                message = f"{finding.id!r} is there twice"
                yield Problem(key=f"findings[{number}].id", message=message)
            known.add(finding.id)


@cache
def list_findings() -> tuple[Finding, ...]:
    """Return the findings that are shipped, in the order of their file.

    >>> len(list_findings()), list_findings()[0].id
    (57, 'marx-1')
    """
    file = root("models") / "findings.toml"
    document = parse_toml(file.read_text(encoding="utf-8"), FindingsError, source=file.name)
    return findings_from_dict(document, source=file.name)


def findings_from_dict(
    document: dict[str, Any], *, source: str = "findings"
) -> tuple[Finding, ...]:
    """Return the findings of *document*, a parsed file.

    Raises:
        FindingsError: listing every mistake in it.
    """
    read = read_document(FindingsFile, document, FindingsError, source=source, format_=FORMAT)
    return read.findings
