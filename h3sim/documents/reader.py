"""Reads parsed documents key by key and collects the mistakes instead of stopping at the first.

>>> reader = DocumentReader()
>>> reader.whole("size", -3, low=0), reader.number("rtt_ms", "soon")
(0, 0)
>>> [str(problem) for problem in reader.problems]
['size: must be a whole number of at least 0, is -3', "rtt_ms: must be a number, is 'soon'"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents.shown import is_quantity, listed, not_one_of, shown
from h3sim.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DocumentReader"]


class DocumentReader:
    """Each method returns the value that it was given, or a stand-in after noting what is wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._reported: set[str] = set()
        self._n_reported = 0

    def report(self, key: str, message: str) -> None:
        """Note a mistake."""
        self.problems.append(Problem(key=key, message=message))

    def reported(self) -> set[str]:
        """Return the keys at which mistakes were noted; not to be changed."""
        # Taken up as it grows: asking once a row must not cost all the rows before it.
        self._reported.update(problem.key for problem in self.problems[self._n_reported :])
        self._n_reported = len(self.problems)
        return self._reported

    def add(self, problems: Iterable[Problem]) -> None:
        """Note mistakes that were found elsewhere, but for keys that were told already."""
        reported = set(self.reported())
        self.problems += [problem for problem in problems if problem.key not in reported]

    def keys(self, key: str, entry: Iterable[str], known: Iterable[str]) -> None:
        """Note every key of *entry* that is not *known*."""
        known = tuple(known)
        for name in entry:
            if name not in known:
                where = f"{key}.{name}" if key else name
                allowed = (
                    f"allowed are {listed(known, near=name)}" if known else "none is allowed here"
                )
                self.report(where, f"unknown key; {allowed}")

    def table(self, key: str, value: Any) -> dict[str, Any]:
        """Return a table, {} in place of anything else."""
        if isinstance(value, dict):
            return value
        self.report(key, f"must be a table, is {shown(value)}")
        return {}

    def text(self, key: str, value: Any) -> str:
        """Return text, "" in place of anything else."""
        if isinstance(value, str):
            return value
        self.report(key, f"must be text, is {shown(value)}")
        return ""

    def flag(self, key: str, value: Any) -> bool:
        """Return true or false, the latter in place of anything else."""
        if isinstance(value, bool):
            return value
        self.report(key, f"must be true or false, is {shown(value)}")
        return False

    def number(self, key: str, value: Any) -> float:
        """Return a number, 0 in place of anything else or of what no quantity can be."""
        if is_quantity(value):
            return float(value) if isinstance(value, float) else int(value)
        self.report(key, f"must be a number, is {shown(value)}")
        return 0

    def whole(self, key: str, value: Any, *, low: int, high: int | None = None) -> int:
        """Return a whole number from *low* to *high*, *low* in place of anything else."""
        if type(value) is int and value >= low and (high is None or value <= high):
            return value
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        self.report(key, f"must be a whole number {bounds}, is {shown(value)}")
        return low

    def texts(self, key: str, value: Any, options: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return a list of texts, or one text as a list of it; with *options*, only those."""
        entries = [value] if isinstance(value, str) else value
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            self.report(key, f"must be text or a list of it, is {shown(value)}")
            return ()
        known = None if options is None else tuple(options)
        for entry in entries:
            if known is not None and entry not in known:
                self.report(key, not_one_of(entry, known))
        return tuple(entry for entry in entries if known is None or entry in known)

    def tables(self, key: str, value: Any) -> list[dict[str, Any]]:
        """Return a list of tables, [] in place of anything else."""
        if isinstance(value, list):
            return [self.table(f"{key}[{index}]", entry) for index, entry in enumerate(value)]
        self.report(key, f"must be a list of tables, is {shown(value)}")
        return []
