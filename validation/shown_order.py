"""Does what is shown tell schemes apart? `python -m validation.shown_order` (minutes).

For each network and both ByteIndexes, over pages of the corpus: the pairs of schemes whose
ByteIndexes, as integrals, differ by more than 1 %, and of them those that a column shows equal or
in the reverse order. Columns are those of `h3sim compare`; beside them stands what sampling every
100 ms, as Marx 2019 does, would show.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import h3sim
from h3sim.metrics import SAMPLE_MS
from h3sim.values.table import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.load import Which

N_PAGES, EVERY = 14, 7
"""Of the shipped pages, in the order of their names, each seventh."""
SCHEMES = ("rr", "fifo", "chrome-eps", "firefox-eps", "safari-eps", "h3sim-1")
NETWORKS = ("marx-2019", "fibre", "cable", "4g", "dsl")
_APART = 1.01
_WHICH: tuple[Which, ...] = ("all", "atf")


class ResultTable(NamedTuple):
    """Pairs of schemes that differ, and those that are shown equal or reversed."""

    pairs: int = 0
    shown_wrong: int = 0
    sampled_wrong: int = 0

    def __add__(self, other: object) -> ResultTable:
        """Return the sums."""
        return ResultTable(*map(sum, zip(self, other, strict=True)))  # type: ignore[call-overload]


def distinguished(
    exact: Sequence[float], sampled: Sequence[float], shown: Sequence[str]
) -> ResultTable:
    """Return how many pairs differ, and are *shown* wrong, or would be if they were *sampled*.

    >>> distinguished([59, 83], [100, 100], ["59.0", "83.0"])
    ResultTable(pairs=1, shown_wrong=0, sampled_wrong=1)
    """
    as_shown = [float(text.replace(",", "")) for text in shown]
    found = ResultTable()
    for a, b in combinations(range(len(exact)), 2):
        if exact[a] > exact[b]:
            a, b = b, a  # the faster first
        if exact[b] > _APART * exact[a]:
            found += ResultTable(1, as_shown[a] >= as_shown[b], sampled[a] >= sampled[b])
    return found


def over(page: str, network: str, which: Which) -> ResultTable:
    """Load a page with each scheme, and return what is told apart."""
    loads = [h3sim.simulate(page, scheme=scheme, network=network) for scheme in SCHEMES]
    exact = [load.byte_index_or_none(which) for load in loads]
    known = [value for value in exact if value is not None]
    sampled = [load.byte_index_or_none(which, sample_ms=SAMPLE_MS) for load in loads]
    seen = [value for value in sampled if value is not None]
    return distinguished(known, seen, Column.ms("").format(known))


def main() -> None:
    """Print a row for each network."""
    pages = [page.name for page in h3sim.list_pages()][::EVERY][:N_PAGES]
    n_pairs = len(SCHEMES) * (len(SCHEMES) - 1) // 2
    print(f"{len(pages)} pages, {n_pairs} pairs of schemes; pairs that differ by more than 1 %,")
    print("shown equal or reversed, and what sampling every 100 ms would show so")
    print("network       all  shown  sampled  above fold  shown  sampled")
    for network in NETWORKS:
        of_all, of_atf = (
            sum((over(page, network, which) for page in pages), ResultTable()) for which in _WHICH
        )
        print(
            f"{network:10} {of_all.pairs:6} {of_all.shown_wrong:6} {of_all.sampled_wrong:8}"
            f" {of_atf.pairs:11} {of_atf.shown_wrong:6} {of_atf.sampled_wrong:8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
