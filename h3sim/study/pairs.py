"""Loads of a scheme beside those of the baseline that met the same accidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.documents import shown
from h3sim.documents.arguments import check_arguments
from h3sim.documents.values import OrNone, Text
from h3sim.errors import InputError, Problem
from h3sim.study.rows import no_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.study.results import Results

__all__ = ["Pair", "check_columns", "pairs_by_scheme"]

_SCHEME = "scheme"
_LOAD = ("page", _SCHEME, "seed")


class Pair(NamedTuple):
    """The baseline's figure by the scheme's, on the same page, setting and seed: the speedup."""

    page: str
    seed: int
    speedup: float


def check_columns(results: Results, *, value: object, baseline: object = None) -> None:
    """Refuse a *value* that is no column of numbers, and a *baseline* that is no scheme there.

    Raises:
        InputError: listing both, and what tells loads apart that the rows do not say.
    """
    check_arguments(InputError, value=(Text(), value), baseline=(OrNone(Text()), baseline))
    columns = results.columns
    problems = []
    if value not in columns:
        problems.append(Problem(key="value", message=no_column(value, columns)))
    elif not all(isinstance(row.get(value), int | float | None) for row in results):
        problems.append(Problem(key="value", message=f"{value} is no column of numbers"))
    if lacking := [name for name in _LOAD if columns and name not in columns]:
        message = f"do not say {', '.join(lacking)}: nobody knows which loads belong together"
        problems.append(Problem(key="rows", message=message))
    elif baseline is not None and baseline not in set(results.column(_SCHEME)):
        problems.append(Problem(key="baseline", message=f"no load has scheme {shown(baseline)}"))
    if problems:
        raise InputError(problems)


def pairs_by_scheme(results: Results, baseline: str, value: str) -> dict[str, list[Pair]]:
    """Return the pairs of each scheme, the baseline's own among them, in the order of the rows.

    Loads without the value, or with 0, have no pair.

    Raises:
        InputError: if there is no such scheme or column, or loads of the baseline differ that no
            axis tells apart.
    """
    check_columns(results, baseline=baseline, value=value)
    # Page and seed are columns even of studies that have one of each, where they are no axes.
    cell = [name for name in dict.fromkeys(("page", *results.axes, "seed")) if name != _SCHEME]
    rows = list(results)

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in cell)

    base: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        # Of two loads that no axis tells apart one would stand for both, over another network, say.
        known = row.get(value)
        if row[_SCHEME] == baseline and base.setdefault(key(row), known) != known:
            raise InputError([_not_apart(row, cell)])
    found: dict[str, list[Pair]] = {}
    for row in rows:
        before = base.get(key(row))
        if (known := row.get(value)) and before:
            pair = Pair(row["page"], row["seed"], before / known)
            found.setdefault(row[_SCHEME], []).append(pair)
    return found


def _not_apart(row: dict[str, Any], cell: Sequence[str]) -> Problem:
    """Return the mistake that loads like that of *row* differ in what is not in *cell*."""
    alike = ", ".join(f"{name} {shown(row.get(name))}" for name in cell)
    message = f"several loads of {shown(row[_SCHEME])} have {alike}, and differ: compare them apart"
    return Problem(key="axes", message=message)
