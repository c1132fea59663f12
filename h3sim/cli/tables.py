"""Text tables for people: numbers to the right, no more digits than mean something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tabulate import tabulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["in_ms", "plural", "ratio", "table"]

_NONE = "-"


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table whose columns line up.

    >>> print(table(["scheme", "ms"], [["rr", "1.50"], ["fifo", "12.25"]]))
    scheme       ms
    --------  -----
    rr         1.50
    fifo      12.25
    """
    body = [list(row) for row in rows]
    align = [
        "left" if any(_is_word(row[column]) for row in body) else "right"
        for column in range(len(headers))
    ]
    text = tabulate(body, headers, "simple", colalign=align, disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.splitlines())


def in_ms(value_ms: float | None) -> str:
    """Return a time with one decimal, or a dash for none."""
    return _NONE if value_ms is None else f"{value_ms:,.1f}"


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals, or a dash for none."""
    return _NONE if value is None else f"{value:.2f}"


def plural(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> plural(1, "page"), plural(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _is_word(cell: object) -> bool:
    return not str(cell).replace(",", "").replace(".", "").removeprefix(_NONE).isdigit() and (
        cell not in ("", _NONE)
    )
