"""Text for terminals and figures: control characters escaped, truncated or wrapped to a width.

>>> cell_width("index.html"), cell_width("あ.png")
(10, 6)
"""

from __future__ import annotations

import re
import unicodedata


def escape_control(text: str) -> str:
    r"""Return *text* with invisible characters escaped, so that it stays on one line.

    Control characters move the cursor, colour or clear a terminal (ECMA-48), line breaks end a
    row, and directional marks reorder text: with them, a name or a path could forge the output of
    h3sim. Visible characters of all scripts are unchanged, and so is a backslash, since paths have
    them.

    >>> print(escape_control("caf\u00e9.css"), escape_control("a\x1b[2J\n\u202eb"))
    café.css a\x1b[2J\n\u202eb
    >>> print(escape_control("\udcff"))
    \udcff
    """
    if text.isprintable():  # the common case, fast for the many cells of a table
        return text
    return "".join(c if _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    # `str.isprintable` returns False for every separator but " ", here the no-break space.
    return character.isprintable() or character == "\xa0"


ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_WIDE_CLASSES = ("W", "F")
"""East Asian Width classes of characters that fill two cells: Wide and Fullwidth."""
_TAIL_SHARE = 2 / 3
"""Share of the cells of a truncated text for its end, where the paths of a site differ."""


def cell_width(text: str) -> int:
    """Return the number of cells that *text* fills in a terminal (Unicode Standard Annex 11).

    Wide characters fill two cells, combining ones none.
    """
    if text.isascii():  # the common case, fast for the many cells of a table
        return len(text)
    return sum(_cells(character) for character in text)


def plural(number: int, noun: str) -> str:
    """Return the number and its noun, in the plural unless the number is 1.

    >>> plural(1, "page"), plural(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def truncate(text: str, limit: int) -> str:
    """Return *text* in at most *limit* cells, with an ellipsis in its middle if it is longer.

    A leading "https://" is removed first, and most of the rest is its end, where paths differ.

    >>> truncate("https://example.org/static/js/jquery-1.11.0.min.js", 28)
    'example.o\N{HORIZONTAL ELLIPSIS}uery-1.11.0.min.js'
    """
    if cell_width(text) <= limit:
        return text
    text = re.sub(r"^https?://(?=.)", "", text)
    if cell_width(text) <= limit:
        return text
    tail_cells = int(limit * _TAIL_SHARE)
    head = _first_cells(text, limit - 1 - tail_cells)
    tail = _first_cells(text[::-1], tail_cells)[::-1]
    return f"{head}{ELLIPSIS}{tail}"


def wrap(text: str, limit: int) -> list[str]:
    """Return *text* in lines of at most *limit* cells, broken at spaces.

    A word that is longer than a line is truncated in its middle.

    >>> wrap("Weighted round robin (Safari)", 14)
    ['Weighted round', 'robin (Safari)']
    """
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cell_width(longer) <= limit:
            line = longer
            continue
        if line:
            lines.append(line)
        line = truncate(word, limit)
    return [*lines, line]


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE_CLASSES else 1


def _first_cells(text: str, limit: int) -> str:
    """Return the longest prefix of *text* that fits into *limit* cells."""
    end = used_cells = 0
    while end < len(text) and used_cells + _cells(text[end]) <= limit:
        used_cells += _cells(text[end])
        end += 1
    return text[:end]
