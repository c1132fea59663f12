"""Reads the findings and their rules from `models/findings.toml`."""

from __future__ import annotations

from functools import cache
from typing import Any

from h3sim.catalog.roots import root
from h3sim.documents import DocumentReader, parse_toml
from h3sim.documents.shown import is_quantity, shown
from h3sim.errors import InputError
from h3sim.findings.model import Claim, Finding, Limit, Rule

__all__ = ["FindingsError", "findings_from_dict", "list_findings"]

FORMAT = "h3sim-findings/1"
_FINDING = ("id", "source", "says", "study", "claims", "cannot", "reason")
_RANGE = {"from": Rule.AT_LEAST, "to": Rule.AT_MOST}
_RULES = {rule.value: rule for rule in Rule} | _RANGE


class FindingsError(InputError):
    """A file of findings cannot be used."""


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
    reader = _Reader()
    found = reader.findings(document)
    if reader.problems:
        raise FindingsError(reader.problems, source)
    return found


class _Reader(DocumentReader):
    """Turns a document into findings."""

    def findings(self, document: dict[str, Any]) -> tuple[Finding, ...]:
        if document.get("format") != FORMAT:
            self.report("format", f"must be {FORMAT!r}, is {shown(document.get('format'))}")
        self.keys("", document, ("format", "findings"))
        entries = self.tables("findings", document.get("findings", []))
        found = [self._finding(f"findings[{n}]", entry) for n, entry in enumerate(entries)]
        for number, finding in enumerate(found):
            if finding.id in {other.id for other in found[:number]}:
                self.report(f"findings[{number}].id", f"{finding.id!r} is there twice")
        return tuple(found)

    def _finding(self, key: str, entry: dict[str, Any]) -> Finding:
        self.keys(key, entry, _FINDING)
        texts = {
            name: self.text(f"{key}.{name}", entry.get(name)) for name in ("id", "source", "says")
        }
        texts["study"] = self.text(f"{key}.study", entry.get("study", ""))
        more = {
            name: self.text(f"{key}.{name}", entry[name])
            for name in ("cannot", "reason")
            if name in entry
        }
        if ("claims" in entry) == ("cannot" in entry):
            self.report(key, "needs either claims, or why it cannot be judged")
        if "claims" in entry and "study" not in entry:
            self.report(f"{key}.study", "is missing")
        claims = self.tables(f"{key}.claims", entry.get("claims", []))
        return Finding(
            **texts,
            **more,
            claims=tuple(
                self._claim(f"{key}.claims[{n}]", claim, texts["study"])
                for n, claim in enumerate(claims)
            ),
        )

    def _claim(self, key: str, entry: dict[str, Any], study: str) -> Claim:
        self.keys(key, entry, ("says", "figure", *_RULES))
        limits = tuple(
            Limit(rule, self._limit(f"{key}.{name}", entry[name], study))
            for name, rule in _RULES.items()
            if name in entry
        )
        if not limits:
            self.report(key, f"needs a rule: {', '.join(_RULES)}")
        return Claim(
            says=self.text(f"{key}.says", entry.get("says")),
            figure=_full(self.text(f"{key}.figure", entry.get("figure")), study),
            limits=limits,
        )

    def _limit(self, key: str, value: Any, study: str) -> float | str:
        if isinstance(value, str):
            return _full(value, study)
        if not is_quantity(value):
            self.report(key, f"must be a number or the name of a figure, is {shown(value)}")
            return 0.0
        return float(value)


def _full(name: str, study: str) -> str:
    """Return the name of a figure with that of its study."""
    return name if ":" in name else f"{study}:{name}"
