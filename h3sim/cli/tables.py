"""Output of commands: text fitted to the terminal, and tables of rows by attribute or function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.table import MISSING, Column, Table
from h3sim.text import escape_control, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def print_text(text: str, width: int | None) -> None:
    """Print *text* without control characters, wrapped to *width* cells."""
    print(fitted(escape_control(text), width))


def fitted(text: str, width: int | None) -> str:
    """Wrap *text* to lines of at most *width* cells.

    >>> print(fitted("so many words", 8))
    so many
    words
    """
    return text if width is None else "\n".join(wrap(text, width))


def of(
    rows: Iterable[Any], *columns: tuple[str | Column, str | Callable[[Any], Any]]
) -> Table[tuple[Any, ...]]:
    """Return the table of *rows*; each column has an attribute or a function for its values.

    >>> print(of([("rr", 1.5), ("fifo", 2.25)], ("scheme", lambda row: row[0])))
    scheme
    ------
    rr
    fifo
    """
    cells = (
        tuple(value(row) if callable(value) else getattr(row, value) for _, value in columns)
        for row in rows
    )
    return Table((column for column, _ in columns), cells)


def print_table(
    rows: Iterable[Any],
    *columns: tuple[str | Column, str | Callable[[Any], Any]],
    width: int | None,
    shorten: bool = True,
) -> None:
    """Print the table of *rows*, with columns as in `of`."""
    print(of(rows, *columns).to_text(width, shorten=shorten))


def marked(attribute: str) -> Callable[[Any], str]:
    """Return a function from a row to "yes" where *attribute* is true, else ""."""
    return lambda row: "yes" if getattr(row, attribute) else ""


def in_ms(value_ms: float | None) -> str:
    """Format a time with one decimal; None is a dash."""
    return MISSING if value_ms is None else f"{value_ms:,.1f}"


def ratio(value: float | None) -> str:
    """Format a ratio with two decimals; None is a dash."""
    return MISSING if value is None else f"{value:.2f}"
