"""Finds what an HTML document refers to, and where: offsets, head, async, defer, preload, hints."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from h3sim.page import FetchPriority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Document", "Reference"]

_HEAD_TAGS = {"html", "head", "title", "meta", "link", "script", "style", "base", "noscript"}
_URL_ATTRIBUTES = {
    "audio": ("src",),
    "embed": ("src",),
    "frame": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href", "imagesrcset"),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
}
_MAY_BE_LAZY = ("img", "iframe")
_SETS = ("srcset", "imagesrcset")
_UNSEEN = ("noscript", "template")
"""Where scripts run, what stands in these elements is not loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One place of a document that names a resource; *end_chars* lies behind its tag."""

    url: str
    tag: str
    end_chars: int
    in_head: bool
    is_async: bool = False
    is_defer: bool = False
    preload: bool = False
    is_lazy: bool = False
    fetchpriority: FetchPriority = FetchPriority.AUTO


class Document:
    """An HTML document and its references, the first of each URL.

    >>> document = Document('<head><script src="a.js" defer></script><p><img src=b.png>', "http://x/")
    >>> [(r.url, r.end_chars, r.in_head, r.is_defer) for r in document.references.values()]
    [('http://x/a.js', 31, True, True), ('http://x/b.png', 58, False, False)]
    >>> document.first_image_chars
    58
    """

    def __init__(self, text: str, url: str) -> None:
        self.text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        reader = _Reader(url, self._lines)
        reader.feed(text)
        reader.close()
        self.references: Mapping[str, Reference] = reader.found

    @property
    def first_image_chars(self) -> int | None:
        """Where the first image stands that the document names, None if it names none."""
        ends = (r.end_chars for r in self.references.values() if r.tag in ("img", "image"))
        return min(ends, default=None)

    def position(self, line: int, column: int) -> int:
        """Return the place of a line and column, both from 0, in characters from the start."""
        start = self._lines[min(max(line, 0), len(self._lines) - 1)]
        return min(start + max(column, 0), len(self.text))

    def mention(self, url: str) -> int | None:
        """Return the place behind the first mention of the last part of *url*, as in inline CSS."""
        part = urldefrag(url).url.partition("?")[0].rsplit("/", 1)[-1]
        place = self.text.find(part) if part else -1
        return None if place < 0 else place + len(part)

    def script_end(self, line: int) -> int:
        """Return the place behind the inline script that reaches over *line*, from 0."""
        start = self.position(line, 0)
        found = re.compile("</script", re.IGNORECASE).search(self.text, start)
        return len(self.text) if found is None else found.end()


class _Reader(HTMLParser):
    def __init__(self, url: str, lines: list[int]) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, Reference] = {}
        self._base = url
        self._lines = lines
        self._in_head = True
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HEAD_TAGS and not self._unseen:
            self._in_head = False
        if tag in _UNSEEN:
            self._unseen += 1
        if self._unseen:
            return
        given = {name: value or "" for name, value in reversed(attrs)}
        if tag == "base" and "href" in given:
            self._base = urljoin(self._base, given["href"])
        line, column = self.getpos()
        end = self._lines[line - 1] + column + len(self.get_starttag_text() or "")
        for url in self._urls(tag, given):
            self.found.setdefault(url, self._reference(url, tag, given, end))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in _UNSEEN:
            self._unseen -= 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "head":
            self._in_head = False
        if tag in _UNSEEN and self._unseen:
            self._unseen -= 1

    def _urls(self, tag: str, given: Mapping[str, str]) -> Iterator[str]:
        for name in _URL_ATTRIBUTES.get(tag, ()):
            text = given.get(name, "").strip()
            if name in _SETS:
                texts = [part.split()[0] for part in re.split(r",\s+|,$", text) if part.strip()]
            else:
                texts = [text] if text else []
            for entry in texts:
                try:
                    yield urldefrag(urljoin(self._base, entry)).url
                except ValueError:  # such as a broken IPv6 address: the browser skips it, too
                    continue

    def _reference(self, url: str, tag: str, given: Mapping[str, str], end: int) -> Reference:
        is_script = tag == "script"
        is_module = is_script and given.get("type", "").strip().lower() == "module"
        is_async = is_script and "async" in given
        hint = given.get("fetchpriority", "").strip().lower()
        hints = {option.value: option for option in FetchPriority}
        return Reference(
            url=url,
            tag=tag,
            end_chars=end,
            in_head=self._in_head,
            is_async=is_async,
            is_lazy=tag in _MAY_BE_LAZY and given.get("loading", "").strip().lower() == "lazy",
            is_defer=is_script and not is_async and (is_module or "defer" in given),
            preload=tag == "link"
            and bool({"preload", "modulepreload"} & set(given.get("rel", "").lower().split())),
            fetchpriority=hints.get(hint, FetchPriority.AUTO),
        )


class WireOffsets:
    """Says how many bytes of a compressed body bring so many of its plain bytes.

    The body that was received is plain; so it is compressed again (gzip, level 6), and the places
    in that are stretched to the size on the wire.

    >>> WireOffsets(b"x" * 1000, 1000).wire(10), WireOffsets(b"abc" * 1000, 50).wire(3000)
    (10, 50)
    """

    _STEP = 8

    def __init__(self, plain: bytes, wire_bytes: int) -> None:
        import zlib

        self._wire_bytes = wire_bytes
        self._plain_bytes = len(plain)
        self._plain: list[int] | None = None
        if wire_bytes < len(plain):
            packed = zlib.compress(plain, 6)
            unpack = zlib.decompressobj()
            self._plain, done = [0], 0
            self._packed_bytes = len(packed)
            for start in range(0, len(packed), self._STEP):
                done += len(unpack.decompress(packed[start : start + self._STEP]))
                self._plain.append(done)

    def wire(self, plain_offset: int) -> int:
        """Return how many bytes of the body on the wire bring *plain_offset* bytes of it."""
        if plain_offset >= self._plain_bytes:
            return self._wire_bytes
        if self._plain is None:
            return min(plain_offset, self._wire_bytes)
        steps = bisect_right(self._plain, max(plain_offset - 1, 0))
        packed = min(steps * self._STEP, self._packed_bytes)
        return min(self._wire_bytes, round(packed * self._wire_bytes / self._packed_bytes))
