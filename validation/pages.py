"""`make validate-pages`: tables of real page loads, imported and loaded under every scheme.

The tables are those of validation/data/pages. Every load must end with as many resources and bytes
as its table has.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

import h3sim
from validation.data import PAGES
from validation.fact_table import page_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["facts_of", "load_under", "main"]

Facts = list[tuple[str, int, str | None]]


def facts_of(path: Path) -> tuple[Facts, Facts]:
    """Return (id, bytes, parent) of each resource, by the table and by the page made of it."""
    rows = json.loads(path.read_text("utf-8"))["resources"]
    page = page_of(path)
    return (
        [(row["id"], row["body_bytes"] or 0, row["parent"]) for row in rows],
        [
            (each.id, each.size_bytes, each.discovered.first_parent if each.discovered else None)
            for each in page.resources
        ],
    )


def load_under(path: Path, scheme: str) -> tuple[int, int]:
    """Return how many resources and bytes arrive when the page of a table is loaded."""
    load = h3sim.simulate(page_of(path), scheme=scheme)
    return len(load.timings), sum(row.bytes for row in load.timings)


def _issues(path: Path) -> list[str]:
    recorded, imported = facts_of(path)
    if recorded != imported:
        return [f"{path.name}: the page has other resources, bytes or parents than the table"]
    expected = (len(recorded), sum(n_bytes for _, n_bytes, _ in recorded))
    return [
        f"{path.name}: {scheme.name}: {arrived} resources and bytes arrive, not {expected}"
        for scheme in h3sim.list_schemes()
        if (arrived := load_under(path, scheme.name)) != expected
    ]


def main() -> int:
    """Load every table under every scheme; return 1 if any load is not what it should be."""
    with ProcessPoolExecutor() as pool:
        errors = [line for lines in pool.map(_issues, PAGES) for line in lines]
    for line in errors:
        print(line, file=sys.stderr)
    print(f"{len(PAGES)} pages, {len(h3sim.list_schemes())} schemes, {len(errors)} mistakes")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
