"""`make validate-table2`: Table 2 of Marx 2019 over the shipped corpus, beside the paper's."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from tabulate import tabulate

import h3sim
from h3sim.cli.parsing import progress_bar

if TYPE_CHECKING:
    from collections.abc import Sequence

PAPER = {
    "wrr": (1.05, 1.49, 1.28),
    "fifo": (1.27, 1.93, 1.57),
    "dfifo": (1.27, 2.30, 1.72),
    "firefox": (1.07, 1.22, 1.25),
    "p+": (1.17, 2.20, 1.64),
    "s+": (1.14, 1.45, 1.56),
    "spdyrr": (1.14, 1.96, 1.57),
    "bucket": (1.20, 2.13, 1.82),
    "bucket-html": (1.20, 2.49, 1.83),
    "zeroweight": (1.15, 2.80, 1.90),
}
"""Mean speedups to rr: all; above the fold; above the fold with a send buffer of 1000 kB."""
_COLUMNS = ("all", "above the fold", "with 1000 kB")


def tau(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Kendall's tau-b: 1 for the same order, 0 for none.

    >>> tau([1, 2, 3], [10, 30, 20])
    0.3333333333333333
    """
    pairs = [
        (_sign(left[a], left[b]), _sign(right[a], right[b]))
        for a, b in itertools.combinations(range(len(left)), 2)
    ]
    untied = sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)
    return sum(x * y for x, y in pairs) / float(untied**0.5)


def _sign(a: float, b: float) -> int:
    return (a > b) - (a < b)


def main(pages: Sequence[str]) -> int:
    """Compare over *pages*, or the corpus, and print both tables as one."""
    with progress_bar("load") as progress:
        compared = h3sim.compare(list(pages) or "corpus", progress=progress)
    means = {(row.scheme, row.buffer_kb): row for row in compared.means}
    ours = {
        name: (means[name, 0].mean_all, means[name, 0].mean_atf, means[name, 1000].mean_atf)
        for name in PAPER
    }
    rows = [
        [name, *(f"{a:.2f} {b:.2f}" for a, b in zip(theirs, ours[name], strict=True))]
        for name, theirs in PAPER.items()
    ]
    taus = [
        tau([row[place] for row in PAPER.values()], [row[place] or 0.0 for row in ours.values()])
        for place in range(len(_COLUMNS))
    ]
    rows.append(["tau", *(f"{value:.2f}" for value in taus)])
    print(f"{len({row.page for row in compared.rows})} pages; the paper's mean on the left\n")
    print(tabulate(rows, ["scheme", *_COLUMNS], "github", disable_numparse=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
