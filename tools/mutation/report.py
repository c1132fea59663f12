"""The score as a table: how many of the mutants drawn were noticed, and what that says of all."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from tools.mutation.store import TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.mutation.operators import Mutant
    from tools.mutation.store import Result

__all__ = ["costs", "rows_of", "table", "wilson"]

_Z = 1.959964
"""Of the normal distribution: 95 % lie within so many deviations."""
_OF_THEIR_OWN = ("h3sim/transport/quic", "h3sim/transport/tcp", "h3sim/transport/congestion")


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of which *hits* of *count* were drawn (Wilson 1927).

    >>> low, high = wilson(9, 10)
    >>> f"{low:.3f} {high:.3f}"
    '0.596 0.982'
    """
    if not count:
        return 0.0, 1.0
    share, z2 = hits / count, _Z * _Z
    middle = (share + z2 / (2 * count)) / (1 + z2 / count)
    half = _Z * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    half /= 1 + z2 / count
    return max(0.0, middle - half), min(1.0, middle + half)


def package_of(mutant: Mutant) -> str:
    """Return the row a mutant belongs to: `transport` in its parts."""
    for part in _OF_THEIR_OWN:
        if mutant.file.startswith(f"{part}/"):
            return part.removeprefix("h3sim/")
    return mutant.file.split("/")[1]


def rows_of(
    mutants: Sequence[Mutant], results: Iterable[tuple[Mutant, Result]], equivalent: set[str]
) -> list[list[str]]:
    """Return a row for each package and one for all; what is equivalent does not count."""
    every: dict[str, int] = defaultdict(int)
    drawn: dict[str, list[Result]] = defaultdict(list)
    listed: dict[str, int] = defaultdict(int)
    for mutant in mutants:
        for name in (package_of(mutant), "all"):
            every[name] += 1
    for mutant, result in results:
        for name in (package_of(mutant), "all"):
            if mutant.key in equivalent:
                listed[name] += 1
            else:
                drawn[name].append(result)
    names = [*sorted(name for name in every if name != "all"), "all"]
    return [_row(name, every[name], listed[name], drawn[name]) for name in names]


def _row(name: str, every: int, listed: int, drawn: list[Result]) -> list[str]:
    noticed = [result for result in drawn if result.is_noticed]
    numbers = sum(result.test.startswith("tests/golden") for result in noticed)
    endless = sum(result.outcome == TIMED_OUT for result in noticed)
    low, high = wilson(len(noticed), len(drawn))
    score = f"{100 * len(noticed) / len(drawn):.1f} %" if drawn else "-"
    interval = f"{100 * low:.1f} to {100 * high:.1f} %" if drawn else "-"
    cells = (every, len(drawn), len(noticed), numbers, endless, listed)
    return [name, *(f"{cell:,}" for cell in cells), score, interval]


_HEAD = [
    *("package", "mutants", "drawn", "noticed", "by numbers", "endless"),
    *("equivalent", "score", "interval"),
]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as Markdown.

    >>> print(table([["all", "9", "3", "2", "0", "0", "0", "66.7 %", "20.8 to 93.9 %"]]))
    | package | mutants | drawn | noticed | by numbers | endless | equivalent | score | interval |
    |---|--:|--:|--:|--:|--:|--:|--:|--:|
    | all | 9 | 3 | 2 | 0 | 0 | 0 | 66.7 % | 20.8 to 93.9 % |
    """
    lines = [_HEAD, ["---", *["--:"] * (len(_HEAD) - 1)], *rows]
    marked = [
        f"|{'|'.join(line)}|" if line[0] == "---" else f"| {' | '.join(line)} |" for line in lines
    ]
    return "\n".join(marked)


def costs(seconds: Mapping[str, float], killers: Iterable[str]) -> str:
    """Return what each file of tests costs and how many mutants it noticed first, dearest first.

    >>> print(costs({"a.py::x": 1.5, "a.py::y": 0.5, "b.py::z": 3.0}, ["a.py::y"]))
         3.0 s      0  b.py
         2.0 s      1  a.py
    """
    spent: dict[str, float] = defaultdict(float)
    noticed: dict[str, int] = defaultdict(int)
    for test, took in seconds.items():
        spent[test.split("::")[0]] += took
    for test in killers:
        noticed[test.split("::")[0]] += 1
    ordered = sorted(spent, key=lambda file: (-spent[file], file))
    return "\n".join(f"{spent[file]:8.1f} s {noticed[file]:6,}  {file}" for file in ordered)
