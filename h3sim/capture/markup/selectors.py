"""Whether a rule of a stylesheet applies to anything in a document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from h3sim.errors import needing_extra

if TYPE_CHECKING:
    from h3sim.capture.markup.css import Face
    from h3sim.capture.markup.tags import Scan

__all__ = ["StyledDocument"]

_DEEPEST = 512
"""Deeper documents are not parsed: the time for that grows with depth times length."""
_LONGEST = 8 << 20
_MOST_WORK = 1_000_000_000
"""So many bytes of document are looked through for selectors; then all are taken to match."""
_MOST_WAYS = 1_000_000
"""The library tries each way to place the parts of a selector on an element's ancestors."""
_COUNTING = re.compile(r":nth-[\w-]+\([^()]*\)|:(?:first|last|only)-of-type|:only-child")
"""What makes it count the siblings of each element."""
_NOT_NOW = re.compile(
    r":(hover|focus|focus-within|focus-visible|active|visited|target|checked|disabled|invalid)\b"
)
_PSEUDO_ELEMENT = re.compile(
    r"::?(before|after|first-line|first-letter|marker|placeholder)\b|::[\w-]+"
)
_TAGS = re.compile(r"<[^>]*+>")
_MOST_ATTRIBUTES = 2_000


class StyledDocument:
    """An HTML document in which selectors are looked for.

    One that is too long or too deep, or has a tag with thousands of attributes, is not parsed: then
    every rule is taken to apply, and `is_parsed` is false.
    """

    def __init__(self, data: bytes, scan: Scan) -> None:
        self.is_parsed = (
            len(data) <= _LONGEST
            and scan.depth <= _DEEPEST
            # The parser compares each attribute with all before it.
            and scan.most_attributes <= _MOST_ATTRIBUTES
        )
        self.n_guessed = 0
        self._depth = scan.depth
        self._size = max(1, len(data))
        self._work = 0
        self._known: dict[str, bool] = {}
        self._tree = _tree(_scripted(data, scan)) if self.is_parsed else None
        self._characters: set[int] | None = None
        self._data = data

    def applies(self, selector: str) -> bool:
        """Return whether any element matches *selector* as the page is first shown."""
        if selector not in self._known:
            parts = _split(selector)
            self._known[selector] = any(self._one_applies(part) for part in parts)
        return self._known[selector]

    def shows(self, face: Face) -> bool:
        """Return whether any character of the document is in the ranges of *face*."""
        if not face.ranges:
            return True
        if self._characters is None:
            text = _TAGS.sub("", self._data.decode("utf-8", "replace"))
            self._characters = set(map(ord, text))
        return any(low <= c <= high for c in self._characters for low, high in face.ranges)

    def _one_applies(self, selector: str) -> bool:
        # `:not(:hover)` does hold as the page is first shown.
        if _NOT_NOW.search(re.sub(r":not\([^()]*\)", "", selector)):
            return False
        plain = _PSEUDO_ELEMENT.sub("", selector).strip()
        # Of `::before` alone, or behind a combinator, any element is left.
        plain = plain if plain and plain[-1] not in ">+~" else f"{plain}*"
        simple = _simple(plain, self._depth)
        self._work += self._size
        if self._tree is None or self._work > _MOST_WORK or not simple:
            self.n_guessed += 1
            return True
        try:
            is_there = self._tree.css_first(simple) is not None
        except Exception:  # noqa: BLE001 - it raises types of its own for what it cannot parse
            self.n_guessed += 1
            return True
        self.n_guessed += is_there and simple != plain
        return is_there


def _simple(selector: str, depth: int) -> str:
    """Return a selector that is quick to look for and matches all that *selector* does.

    Conditions that take long are left out, from the left; "" if it cannot be made quick.

    >>> _simple("body .a > li:nth-child(2) b", 10), _simple("ul li div p b", 200)
    ('body .a > li b', 'div p b')
    """
    if "&" in selector or ":has(" in selector:
        return ""
    plain = _COUNTING.sub("", selector).rpartition("~")[2].strip()
    words = [word for word in re.split(r"\s+|(?=[>+])|(?<=[>+])", plain) if word]
    is_way = [
        index > 0 and word not in ">+" and words[index - 1] not in ">+"
        for index, word in enumerate(words)
    ]
    most = 1
    while max(2, depth) ** (most + 1) <= _MOST_WAYS:
        most += 1
    if sum(is_way) <= most:
        return plain
    if "(" in plain or "[" in plain:
        return ""
    ways = [index for index, each in enumerate(is_way) if each]
    return " ".join(words[ways[-most - 1] :])


def _tree(data: bytes) -> Any:
    with needing_extra("selectolax", "import"):
        from selectolax.lexbor import LexborHTMLParser
    return LexborHTMLParser(data)


def _scripted(data: bytes, scan: Scan) -> bytes:
    """Return the document without what stands in `noscript`: the parser knows no scripting."""
    parts, at = [], 0
    for begin, end in scan.unscripted:
        parts.append(data[at:begin])
        at = end
    return b"".join([*parts, data[at:]])


def _split(selector: str) -> list[str]:
    """Return the parts of a selector list; a comma in parentheses divides nothing."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(selector):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append(selector[begin:index])
            begin = index + 1
    return [*parts, selector[begin:]]
