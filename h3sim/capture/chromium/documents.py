"""An HTML document as Chromium received it: what it names, and where, in bytes."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

from h3sim.capture.inference.urls import without_fragment
from h3sim.capture.markup.references import read_markup
from h3sim.capture.markup.tags import scan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from h3sim.capture.markup.references import Reference

__all__ = ["Document"]

_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_IMAGES = ("img", "image")


class Document:
    """An HTML document and its references, the first of each URL.

    >>> document = Document('<head><script src="a.js" defer></script><p><img src=b.png>', "http://x/")
    >>> [(url, each.offset_bytes) for url, each in document.references.items()]
    [('http://x/a.js', 31), ('http://x/b.png', 58)]
    >>> document.first_image_bytes
    58
    """

    def __init__(self, text: str, url: str, charset: str = "") -> None:
        # Tags are looked for as ASCII, in bytes: in UTF-16, say, none would be found.
        self._charset = charset if _is_like_ascii(charset) else "utf-8"
        self.data = text.encode(self._charset, "replace")
        self._url = url
        self._lines = [0, *(found.end() for found in re.finditer(rb"\n", self.data))]

    @cached_property
    def references(self) -> Mapping[str, Reference]:
        """What its tags name, by the URL without fragment."""
        found: dict[str, Reference] = {}
        for reference in read_markup(scan(self.data), is_every=True).references:
            if url := reference.url_in(self._url):
                # What is named twice is asked for at the first place.
                found.setdefault(url, reference)
        return found

    @property
    def first_image_bytes(self) -> int | None:
        """Where the first image stands that the document names, None if it names none."""
        ends = (r.offset_bytes for r in self.references.values() if r.tag in _IMAGES)
        return min(ends, default=None)

    def position(self, line: int, column: int) -> int:
        """Return the place of a line and column, both from 0 and in characters, in bytes."""
        line = min(max(line, 0), len(self._lines) - 1)
        start = self._lines[line]
        # A character is a byte at least; one of a few bytes may be cut at the end, and is dropped.
        text = self.data[start : start + 4 * max(column, 0)].decode(self._charset, "ignore")
        return start + len(text[: max(column, 0)].encode(self._charset, "replace"))

    def mention(self, url: str) -> int | None:
        """Return the place behind the first mention of the last part of *url*, as in inline CSS."""
        name = without_fragment(url).partition("?")[0].rsplit("/", 1)[-1]
        # As browsers write it, then as a person does.
        for part in (each.encode(self._charset, "replace") for each in (name, unquote(name))):
            index = self.data.find(part) if part else -1
            if index >= 0:
                return index + len(part)
        return None

    def script_end(self, line: int) -> int:
        """Return the place behind the inline script that reaches over *line*, from 0."""
        found = _SCRIPT_END.search(self.data, self.position(line, 0))
        return len(self.data) if found is None else found.end()


def _is_like_ascii(charset: str) -> bool:
    """Return whether tags look the same in it as in ASCII, and whether there is such a one."""
    try:
        return bool(charset) and "<a b='c'>".encode(charset) == b"<a b='c'>"
    except LookupError:
        return False
