"""Text that people gave, made fit to be shown on a terminal and in a figure."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Return *text* with what cannot be seen spelt out, so that it stays on one line.

    Control characters move the cursor, colour or clear a terminal (ECMA-48), line breaks end a
    row, and directional marks swap what was read: a name or a path that holds one could forge
    what h3sim says. Characters that are seen stay as they are, whatever their script; so does a
    backslash, since paths have them.

    >>> print(printable("caf\u00e9.css"), printable("a\x1b[2J\n\u202eb"), printable("\udcff"))
    café.css a\x1b[2J\n\u202eb \udcff
    """
    if text.isprintable():  # nearly all are, and this is asked of each cell of a table
        return text
    return "".join(c if _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    # A no-break space is a space; `str.isprintable` calls every separator but " " unprintable.
    return character.isprintable() or character == "\xa0"
