"""Checks of a fact table as a whole: ids, parents, roots, circles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from h3sim.documents import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.dialects.facts_rows import Row
    from h3sim.documents import DocumentReader

__all__ = ["check_graph"]

_OF_GRAPH = re.compile(r"resources(\[\d+\](\.id|\.parent)?)?")
_SHOWN_STEPS = 6


def check_graph(reader: DocumentReader, rows: Mapping[int, Row]) -> None:
    """Note ids that stand twice, parents that do not exist, several roots, circles."""
    told = set(reader.reported())
    # Where ids or parents could not be read, nobody can say which are missing.
    is_whole = not any(_OF_GRAPH.fullmatch(key) for key in told)
    indexes: dict[str, int] = {}
    for index, row in rows.items():
        first = indexes.setdefault(row.id, index)
        if first != index:
            message = f"{row.id!r} is already the id of resources[{first}]"
            reader.report(f"resources[{index}].id", message)
    roots = [
        n for n, row in rows.items() if row.parent is None and f"resources[{n}].parent" not in told
    ]
    if rows and not roots and is_whole:
        reader.report("resources", "no root: one row must have the parent null")
    for index in roots[1:]:
        message = f"a second root beside resources[{roots[0]}]: only one may have no parent"
        reader.report(f"resources[{index}].parent", message)
    for index, row in rows.items():
        key = f"resources[{index}].parent"
        is_known = row.parent is None or row.parent in indexes or key in told
        if not is_known and is_whole:
            reader.report(key, f"no resource has the id {shown(row.parent)}")
    _check_circles(reader, rows, indexes)


def _check_circles(
    reader: DocumentReader, rows: Mapping[int, Row], indexes: Mapping[str, int]
) -> None:
    good: set[int] = set()
    for start in rows:
        path: dict[int, None] = {}
        index: int | None = start
        while index is not None and index not in good and index not in path:
            path[index] = None
            parent = rows[index].parent
            index = None if parent is None else indexes.get(parent)
        if index is not None and index in path:
            steps = [*path]
            circle = [*steps[steps.index(index) :], index]
            shown_ids = [rows[n].id for n in circle]
            if len(shown_ids) > _SHOWN_STEPS:
                n_more = len(shown_ids) - _SHOWN_STEPS
                shown_ids[_SHOWN_STEPS - 1 : -1] = [f"{n_more:,} more"]
            names = " waits for ".join(shown_ids)
            reader.report(f"resources[{index}].parent", f"a circle: {names}")
        good.update(path)
