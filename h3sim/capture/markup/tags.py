"""Finds the tags of an HTML document and where each ends, in bytes.

This is the tokenization of the HTML standard § 13.2.5 as far as tags, their attributes, comments
and raw text go. No parser at hand tells the offset of a tag in bytes, and that is what makes a
browser ask for what the tag names. Its time grows with the document's length and no faster,
whatever stands in it.

>>> for tag in scan(b'<p>a<img src=a.png><!-- <img src=no.png> -->').tags:
...     print(tag.name, tag.attributes, tag.end)
img {'src': 'a.png'} 19
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Scan", "Tag", "scan"]

_TAG = re.compile(
    rb"<(/?)([A-Za-z][^\s/>]*+)"
    # Blanks and slashes, or a name with a value or without: never without where = follows.
    rb"((?:[\s/]++|[^\s/>][^\s/>=]*+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+|(?=>))|(?!\s*+=)))*+)>"
)
_OPENING = re.compile(rb"<(?=[A-Za-z/!?])")
_ATTRIBUTE = re.compile(
    rb"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"'][^\s>]*+))?+)?+"
)
_RAW = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE)
    for name in (
        *(b"script", b"style", b"textarea", b"title", b"xmp"),
        *(b"iframe", b"noembed", b"noframes", b"noscript"),
    )
}
"""What holds text up to its end tag. `noscript` does: the browser runs scripts."""
_WANTED = frozenset(
    b"base body link script style img image source picture video audio track iframe embed object"
    b" input use template head frame table td".split()
)
_OF_HEAD = frozenset(
    b"html head title meta link script style base noscript template basefont bgsound".split()
)
"""What may stand in the head: any other tag ends it (HTML standard § 13.2.6.4.4)."""
_CONTAINERS = frozenset((b"picture", b"video", b"audio", b"template", b"head"))
_VOID = frozenset(b"area base br col embed hr img input link meta source track wbr".split())
_CLOSED_BY_ITSELF = frozenset(b"p li dd dt option tr td th tbody thead tfoot colgroup".split())
"""What a parser closes when the next of its kind opens, so that it does not nest."""
_NOT_COUNTED = _VOID | _CLOSED_BY_ITSELF
_LONGEST_ATTRIBUTES = 1 << 16
_LONG_TAG = 1 << 12


class Tag(NamedTuple):
    """A tag; *end* is the offset behind it, *text* what is in it where it holds raw text."""

    name: str
    attributes: dict[str, str]
    end: int
    is_end: bool = False
    text: str = ""
    text_end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The tags that matter to loading, and how deep elements nest at most."""

    tags: list[Tag]
    depth: int
    head_end: int
    """Where the head ends: at its end tag, or at the first tag that cannot stand in it."""
    unscripted: list[tuple[int, int]]
    """Where the texts of `noscript` begin and end."""
    most_attributes: int = 0
    """The most attributes of a tag; they are counted in long tags only."""


def scan(data: bytes) -> Scan:
    """Return the tags of *data* that name what is loaded, in their order."""
    tags: list[Tag] = []
    unscripted: list[tuple[int, int]] = []
    depth = _Depth()
    head_end, n_templates, most_attributes = len(data), 0, 0
    opening = _OPENING.search(data)
    while opening is not None:
        found = _TAG.match(data, opening.start())
        if found is None:
            at = _behind_what_is_no_tag(data, opening.start())
            if at < 0:
                most_attributes = max(most_attributes, _count_attributes(data[opening.end() :]))
            opening = None if at < 0 else _OPENING.search(data, at)
            continue
        slash, name, attributes = found.groups()
        most_attributes = max(most_attributes, _count_attributes(attributes))
        name, text_end = name.lower(), found.end()
        if not slash and name in _RAW:
            close = _RAW[name].search(data, text_end)
            text_end = len(data) if close is None else close.start()
            if name == b"noscript":
                unscripted.append((found.end(), text_end))
        if head_end == len(data):
            n_templates += (name == b"template") * (-1 if slash else 1)
            # What stands in a template, even in the head, does not end the head.
            is_of_body = not slash and name not in _OF_HEAD and n_templates <= 0
            if is_of_body or (slash and name == b"head"):
                head_end = opening.start()
        if name not in _NOT_COUNTED:
            depth.add(name, is_end=bool(slash))
        if (name in _WANTED) if not slash else (name in _CONTAINERS):
            text = ""
            if name == b"style":
                text = data[found.end() : text_end].decode("utf-8", "replace")
            values = _attributes(attributes) if attributes else {}
            tags.append(Tag(name.decode(), values, found.end(), bool(slash), text, text_end))
        elif not slash and b"style" in attributes.lower():
            values = _attributes(attributes)
            if "style" in values:
                tags.append(Tag(name.decode("utf-8", "replace"), values, found.end()))
        opening = _OPENING.search(data, text_end)
    return Scan(
        tags=tags,
        depth=depth.most,
        head_end=head_end,
        unscripted=unscripted,
        most_attributes=most_attributes,
    )


def _behind_what_is_no_tag(data: bytes, at: int) -> int:
    """Return where text goes on behind a comment or a stray <, -1 if nowhere."""
    if data.startswith(b"<!--", at):
        # <!--> and <!---> are whole comments.
        end = data.find(b"-->", at + 2)
        return -1 if end < 0 else end + 3
    if data[at + 1 : at + 2] in (b"!", b"?"):
        end = data.find(b">", at)
        return -1 if end < 0 else end + 1
    follows = data[at + 1 : at + 3].lstrip(b"/")[:1]
    if follows.isalpha():
        return -1  # a tag that does not end before the document does
    if data.startswith(b"</", at):
        end = data.find(b">", at)
        return -1 if end < 0 else end + 1
    return at + 1


def _count_attributes(raw: bytes) -> int:
    """Return how many attributes a long tag has; 0 for others, which cannot have many."""
    return sum(1 for _ in _ATTRIBUTE.finditer(raw)) if len(raw) > _LONG_TAG else 0


def _attributes(raw: bytes) -> dict[str, str]:
    """Return the attributes, names in lower case; the first of a name counts."""
    values: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(raw[:_LONGEST_ATTRIBUTES]):
        name, *given = found.groups()
        value = next((each for each in given if each is not None), b"")
        text = value.decode("utf-8", "replace")
        values.setdefault(name.decode("utf-8", "replace").lower(), html.unescape(text))
    return values


class _Depth:
    """How many elements are open, at most that many: what closes by itself is not counted."""

    def __init__(self) -> None:
        self._open: Counter[bytes] = Counter()
        self._now = 0
        self.most = 0

    def add(self, name: bytes, *, is_end: bool) -> None:
        if not is_end:
            self._open[name] += 1
            self._now += 1
            self.most = max(self.most, self._now)
        elif self._open[name]:
            self._open[name] -= 1
            self._now -= 1
