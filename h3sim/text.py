"""Text for terminals and figures: control characters escaped, truncated or wrapped to a width.

>>> cell_width("index.html"), cell_width("あ.png")
(10, 6)
"""

from __future__ import annotations

import re
import unicodedata


def escape_control(text: str) -> str:
    r"""Return *text* with what cannot be seen spelt out, so that it stays on one line.

    Control characters move the cursor, colour or clear a terminal (ECMA-48), line breaks end a
    row, and directional marks swap what was read: a name or a path that holds one could forge
    what h3sim says. Characters that are seen stay as they are, whatever their script; so does a
    backslash, since paths have them.

    >>> print(escape_control("caf\u00e9.css"), escape_control("a\x1b[2J\n\u202eb"))
    café.css a\x1b[2J\n\u202eb
    >>> print(escape_control("\udcff"))
    \udcff
    """
    if text.isprintable():  # nearly all are, and this is asked of each cell of a table
        return text
    return "".join(c if _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    # A no-break space is a space; `str.isprintable` calls every separator but " " unprintable.
    return character.isprintable() or character == "\xa0"


ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_WIDE = ("W", "F")
_TAIL_SHARE = 2 / 3


def cell_width(text: str) -> int:
    """Return how many cells of a terminal *text* fills (Unicode Standard Annex 11).

    Wide characters fill two, those that go above or below another one none.
    """
    if text.isascii():  # nearly all is, and this is asked of each cell of a table
        return len(text)
    return sum(_cells(character) for character in text)


def plural(number: int, noun: str) -> str:
    """Return the number with its noun.

    >>> plural(1, "page"), plural(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def truncate(text: str, limit: int) -> str:
    """Return *text* in at most *limit* cells; what is left out is left out of its middle.

    More of the end is kept, where paths differ, and no "https://".

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

    A word that is longer than a line is shortened in its middle.

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
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _first_cells(text: str, limit: int) -> str:
    end = used = 0
    while end < len(text) and used + _cells(text[end]) <= limit:
        used += _cells(text[end])
        end += 1
    return text[:end]
