"""Text tables for people: fitted to the terminal, numbers to the right, no digits without meaning.

They are laid out here and not by a library: to import one takes longer than to load a small page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.cli.parsing import output_width
from h3sim.fitting import APART, decimals_of, folded, shortened, width_of
from h3sim.printable import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    *("add_wide", "figures", "fitted", "in_ms", "plural", "ratio", "ratios", "table"),
    *("terminal_width", "times"),
]

_NONE = "-"
_GAP = "  "
_NARROWEST, _FIRST = 8, 32
"""No column is made narrower than that, the first not than this while others can be."""


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets tables be as wide as what is in them."""
    parser.add_argument(
        "--no-truncate",
        action="store_true",
        help="show all in full, however wide (default: folded and shortened to the terminal)",
    )


def terminal_width(options: argparse.Namespace) -> int | None:
    """Return how wide output may be, None for as wide as it gets (`--no-truncate`)."""
    return None if options.no_truncate else output_width()


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    width: int | None = None,
    shorten: bool = False,
) -> str:
    """Return a table whose columns line up, of at most *width* cells where that can be done.

    To fit, heads are folded at first, then what the widest columns of words hold: folded at its
    spaces, or, where it has none, shortened in its middle; with *shorten* all is shortened, so that
    each row stays one line.

    >>> print(table(["scheme", "ByteIndex ms"], [["rr", "1.50"], ["fifo", "12.25"]], width=17))
            ByteIndex
    scheme         ms
    ------  ---------
    rr           1.50
    fifo        12.25
    """
    body = [[printable(str(cell)) for cell in row] for row in rows]
    is_left = [any(_is_word(row[index]) for row in body) for index in range(len(headers))]
    widths = _widths(headers, body, is_left, width)
    heads = [folded(head, limit) for head, limit in zip(headers, widths, strict=True)]
    n_lines = max(map(len, heads), default=0)
    # Empty lines above short heads: all heads end next to the rule.
    lines = [*_lines([[""] * (n_lines - len(head)) + head for head in heads], widths, is_left)]
    lines.append(_GAP.join("-" * limit for limit in widths))
    for row in body:
        cells = [
            [shortened(cell, limit)] if shorten else folded(cell, limit)
            for cell, limit in zip(row, widths, strict=True)
        ]
        lines += _lines(cells, widths, is_left)
    return "\n".join(lines)


def figures(rows: Sequence[tuple[str, str]], *, width: int | None = None) -> str:
    """Return names and what they stand for in two columns; what is too long is folded.

    >>> print(figures([("packets", "1,168"), ("page load", "11,680.0 ms")]))
    packets    1,168
    page load  11,680.0 ms
    """
    first = max((width_of(name) for name, _ in rows), default=0)
    limit = None if width is None else max(width - first - len(_GAP), _NARROWEST)
    lines: list[str] = []
    for name, text in rows:
        parts = [printable(text)] if limit is None else folded(printable(text), limit)
        lines += _lines([[name], parts], [first, 0], [True, True])
    return "\n".join(lines)


def fitted(text: str, width: int | None) -> str:
    """Return *text* in lines of at most *width* cells.

    >>> print(fitted("so many words", 8))
    so many
    words
    """
    return text if width is None else "\n".join(folded(text, width))


def in_ms(value_ms: float | None) -> str:
    """Return a time with one decimal, or a dash for none."""
    return _NONE if value_ms is None else f"{value_ms:,.1f}"


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals, or a dash for none."""
    return _NONE if value is None else f"{value:.2f}"


def times(column: Iterable[float | None]) -> list[str]:
    """Return a column of times with one decimal, more where others would look alike.

    >>> times([1234.56, None]), times([5.04, 4.96])
    (['1,234.6', '-'], ['5.04', '4.96'])
    """
    return _decimal(column, least=1)


def ratios(column: Iterable[float | None], *, apart: float = APART) -> list[str]:
    """Return a column of ratios with two decimals, more where others would look alike.

    That is where they differ by more than *apart*, relative to the larger.

    >>> ratios([1, 1.254]), ratios([1, 1.004], apart=0.001)
    (['1.00', '1.25'], ['1.000', '1.004'])
    """
    return _decimal(column, least=2, apart=apart)


def _decimal(column: Iterable[float | None], *, least: int, apart: float = APART) -> list[str]:
    values = list(column)
    decimals = decimals_of(values, least=least, apart=apart)
    return [_NONE if value is None else f"{value:,.{decimals}f}" for value in values]


def plural(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> plural(1, "page"), plural(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _widths(
    headers: Sequence[str], body: list[list[str]], is_left: list[bool], width: int | None
) -> list[int]:
    """Return how wide each column is: heads give way first, then the widest columns of words."""
    full = [max((width_of(row[index]) for row in body), default=0) for index in range(len(headers))]
    widths = [max(limit, width_of(head)) for limit, head in zip(full, headers, strict=True)]
    if width is None or _total(widths) <= width:
        return widths
    words = [max(map(width_of, head.split(" "))) for head in headers]
    widths = [max(limit, word) for limit, word in zip(full, words, strict=True)]
    floors = [max(word, _NARROWEST) for word in words]
    # The first column says what a row is of: it gives way last.
    _narrow(widths, [max(words[0], _FIRST), *floors[1:]], is_left, width)
    _narrow(widths, floors, is_left, width)
    _raise_heads(headers, widths, width)
    return widths


def _narrow(widths: list[int], floors: list[int], is_left: list[bool], width: int) -> None:
    """Take from the widest columns of words, down to their floors, what is too much."""
    while _total(widths) > width:
        wide = [
            (limit, index)
            for index, limit in enumerate(widths)
            if is_left[index] and limit > floors[index]
        ]
        if not wide:
            return
        widths[max(wide)[1]] -= 1


def _raise_heads(headers: Sequence[str], widths: list[int], width: int) -> None:
    """Give what room is left to the columns whose heads are folded into most lines."""
    while _total(widths) < width:
        heights = [len(folded(head, limit)) for head, limit in zip(headers, widths, strict=True)]
        if max(heights) == 1:
            return
        widths[heights.index(max(heights))] += 1


def _total(widths: list[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _lines(cells: list[list[str]], widths: list[int], is_left: list[bool]) -> Iterator[str]:
    """Yield the lines of a row whose cells are lists of lines."""
    for number in range(max(map(len, cells), default=0)):
        line = ""
        for parts, limit, left in zip(cells, widths, is_left, strict=True):
            part = parts[number] if number < len(parts) else ""
            room = " " * (limit - width_of(part))
            line += f"{part}{room}{_GAP}" if left else f"{room}{part}{_GAP}"
        yield line.rstrip()


def _is_word(cell: str) -> bool:
    digits = cell.replace(",", "").replace(".", "").removeprefix(_NONE)
    return not digits.isdigit() and cell not in ("", _NONE)
