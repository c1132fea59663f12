"""The rows of a study as figures need them: by page, medians over seeds, pairs that are whole."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Loads"]

_EPSILON = 1e-10
"""Keeps relative differences finite, as Sander 2022 § V has it."""


class Loads:
    """Rows of loads, in the order of their study; `resources` has a row a resource, if kept."""

    def __init__(
        self, rows: Iterable[Mapping[str, Any]], resources: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self.rows = tuple(rows)
        self.resources = tuple(resources)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages, in order."""
        return tuple(dict.fromkeys(row["page"] for row in self.rows))

    @property
    def schemes(self) -> tuple[str, ...]:
        """The schemes, in order."""
        return tuple(dict.fromkeys(row["scheme"] for row in self.rows))

    def where(self, **equal: Any) -> Loads:
        """Return the loads whose columns are as given."""
        return Loads(_where(self.rows, equal), _where(self.resources, equal))

    def values(self, column: str) -> list[float]:
        """Return a column, without the loads that have no such figure."""
        return [row[column] for row in self.rows if row[column] is not None]

    def medians(self, column: str) -> dict[str, float]:
        """Return the median of a column by page, of the pages that have it."""
        found: dict[str, list[float]] = {}
        for row in self.rows:
            if row[column] is not None:
                found.setdefault(row["page"], []).append(row[column])
        return {page: statistics.median(values) for page, values in found.items()}

    def deltas(self, other: Loads, column: str) -> dict[str, float]:
        """Return by page how far the median lies from that of *other*, relative to it."""
        ours, theirs = self.medians(column), other.medians(column)
        return {
            page: (ours[page] - theirs[page]) / (theirs[page] + _EPSILON)
            for page in ours
            if page in theirs
        }

    def whole(self, by: Sequence[str], wanted: Callable[[Mapping[str, Any]], bool]) -> Loads:
        """Return the loads of the groups, by the columns *by*, in which all loads are *wanted*.

        A group that lacks a load others have, as it failed, is not whole either.
        """
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        size = max(map(len, groups.values()), default=0)
        kept = (rows for rows in groups.values() if len(rows) == size and all(map(wanted, rows)))
        return Loads((row for rows in kept for row in rows), self.resources)


def _where(rows: Sequence[Mapping[str, Any]], equal: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # A row of a resource says of its load only what varies.
    return [
        row for row in rows if all(row.get(name, value) == value for name, value in equal.items())
    ]
