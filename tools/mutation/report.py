"""The score as a table: how many of the mutants drawn were noticed, and what that says of all."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING

from tools.mutation.store import TIMED_OUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tools.mutation.operators import Mutant
    from tools.mutation.store import Result

__all__ = ["costs", "in_turns", "of_strata", "rows_of", "table", "wilson"]

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


def of_strata(strata: Sequence[tuple[int, int, int]]) -> tuple[float, float, float]:
    """Return the share of all, and its 95 % interval, from (mutants, noticed, drawn) by package.

    Each package counts by its mutants, however many of it were drawn. The interval combines those
    of the packages (Zou, Donner 2008: MOVER); one of which nothing was drawn is left out.

    >>> [round(number, 3) for number in of_strata([(300, 9, 10), (100, 10, 20)])]
    [0.8, 0.566, 0.879]
    """
    drawn = [stratum for stratum in strata if stratum[2]]
    every = sum(size for size, _, _ in drawn)
    share = below = above = 0.0
    for size, hits, count in drawn:
        weight, part = size / every, hits / count
        low, high = wilson(hits, count)
        share += weight * part
        below += (weight * (part - low)) ** 2
        above += (weight * (high - part)) ** 2
    return share, share - math.sqrt(below), share + math.sqrt(above)


def in_turns(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return them so that each package has its turn, with the next of its own: strata of a sample.

    So wherever it ends, as many have been drawn of each package, as far as it has so many.
    """
    queues: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        queues[package_of(mutant)].append(mutant)
    rounds = zip_longest(*(queues[name] for name in sorted(queues)))
    return [mutant for turn in rounds for mutant in turn if mutant is not None]


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
    names = sorted(name for name in every if name != "all")
    strata = {
        name: (every[name], sum(result.is_noticed for result in drawn[name]), len(drawn[name]))
        for name in names
    }
    return [
        *(_row(name, [strata[name]], listed[name], drawn[name]) for name in names),
        _row("all", [*strata.values()], listed["all"], drawn["all"]),
    ]


def _row(
    name: str, strata: list[tuple[int, int, int]], listed: int, drawn: list[Result]
) -> list[str]:
    noticed = [result for result in drawn if result.is_noticed]
    numbers = sum(result.test.startswith("tests/golden") for result in noticed)
    endless = sum(result.outcome == TIMED_OUT for result in noticed)
    every = sum(size for size, _, _ in strata)
    share, low, high = of_strata(strata)
    score = f"{100 * share:.1f} %" if drawn else "-"
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
