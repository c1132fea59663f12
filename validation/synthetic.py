"""Compares made-up pages with recorded ones: `make validate-synthetic`.

The recorded ones are the fact tables in validation/data/pages.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from tabulate import tabulate

from h3sim.page import Kind, synthetic
from validation.data import PAGES
from validation.fact_table import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.page import Page

_N_MADE = 200
_KINDS = (Kind.IMAGE, Kind.SCRIPT, Kind.STYLESHEET, Kind.FETCH, Kind.FONT)


def main() -> None:
    """Print quartiles and shares, recorded beside made up."""
    recorded = [*map(page_of, PAGES)]
    made = [synthetic(seed=seed) for seed in range(_N_MADE)]
    columns = [_column(recorded), _column(made)]
    headers = ["of a page", "recorded", "made up"]
    rows = [[name, *(column[name] for column in columns)] for name in columns[-1]]
    print(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


def _column(pages: Sequence[Page]) -> dict[str, str]:
    kinds = [resource.kind for page in pages for resource in page.resources[1:]]
    levels = [level for page in pages for level in _levels(page)[1:]]
    return {
        "pages": f"{len(pages)}",
        "resources, quartiles": _quartiles([len(page.resources) for page in pages]),
        "kB, quartiles": _quartiles([page.total_bytes / 1000 for page in pages]),
        **{f"share, {kind.value}": _share(kinds.count(kind), kinds) for kind in _KINDS},
        **{f"share, level {level}": _share(levels.count(level), levels) for level in range(1, 5)},
        **{
            f"median bytes, {kind.value}": f"{statistics.median(_sizes(pages, kind)):,.0f}"
            for kind in _KINDS
        },
    }


def _sizes(pages: Sequence[Page], kind: Kind) -> list[int]:
    return [r.size_bytes for page in pages for r in page.resources if r.kind is kind]


def _levels(page: Page) -> list[int]:
    """Return how many resources stand above each one, up to the root."""
    levels = []
    for resource in page.resources:
        level, above = 0, resource.discovered
        while above is not None and (by := above.first_parent) is not None:
            level, above = level + 1, page.resources[page.index[by]].discovered
        levels.append(level)
    return levels


def _quartiles(values: Sequence[float]) -> str:
    return ", ".join(f"{value:,.0f}" for value in statistics.quantiles(values, n=4))


def _share(count: int, of: Sequence[object]) -> str:
    return f"{count / len(of):.2f}"


if __name__ == "__main__":
    main()
