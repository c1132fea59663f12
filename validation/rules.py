"""Holds schemes' rules against what Chrome said when real pages were recorded.

`python -m validation.rules` prints the agreement by kind, in per cent. The tables are those of
validation/data/pages; those without priorities say nothing here.
"""

from __future__ import annotations

import sys

from h3sim.advice import validate_scheme
from h3sim.values.table import Table
from validation.data import PAGES
from validation.fact_table import page_of

__all__ = ["main"]

_SCHEMES = ("chrome-50-h2", "chrome-h2", "chrome-eps")


def main() -> int:
    """Print a row for each kind, a column for each scheme; return the exit code."""
    read = map(page_of, PAGES)
    pages = [page for page in read if any(resource.recorded for resource in page.resources)]
    checks = [validate_scheme(pages, scheme=name) for name in _SCHEMES]
    by_kind = [{row.kind: row for row in (*check.rows, check.total)} for check in checks]
    rows = [
        (kind, row.recorded, *(f"{found[kind].percent:.0f}" for found in by_kind))
        for kind, row in by_kind[0].items()
    ]
    print(f"{len(pages)} pages whose recordings have Chrome's priorities\n")
    print(Table(("kind", "resources", *(f"{name} %" for name in _SCHEMES)), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
