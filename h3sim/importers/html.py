"""HTML: the tags of a document, by byte, and the requests that they cause.

It implements the tokenization of the HTML standard § 13.2.5 for tags, attributes, comments and raw
text. Available parsers do not report byte offsets of tags, which determine when a browser requests
a resource. The time is linear in the document's length for any input.

>>> for tag in scan(b'<p>a<img src=a.png><!-- <img src=no.png> -->').tags:
...     print(tag.name, tag.attributes, tag.end)
img {'src': 'a.png'} 19
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.css import candidates, chosen, matches
from h3sim.importers.request_fields import joined, kind_of_word
from h3sim.page import FetchPriority, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
"""Raw text elements, including `noscript`, as the browser runs scripts."""
_COMMENT_END = re.compile(rb"--(!?)>")
_IN_SCRIPT = re.compile(rb"(<!--)|(-->)|<(/?)script(?=[\s/>])", re.IGNORECASE)
_TAGS_READ = frozenset(
    b"base body link script style img image source picture video audio track iframe embed object"
    b" input use template head frame table td".split()
)
_OF_HEAD = frozenset(
    b"html head title meta link script style base noscript template basefont bgsound".split()
)
"""Elements allowed in the head: any other tag ends it (HTML standard § 13.2.6.4.4)."""
_CONTAINERS = frozenset((b"picture", b"video", b"audio", b"template", b"head"))
_VOID = frozenset(b"area base br col embed hr img input link meta source track wbr".split())
_CLOSED_BY_ITSELF = frozenset(b"p li dd dt option tr td th tbody thead tfoot colgroup".split())
"""Elements that are closed implicitly by the next of their kind, so they do not nest."""
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


class Scan(NamedTuple):
    """The tags that matter to loading, and how deep elements nest at most."""

    tags: list[Tag]
    depth: int
    head_end: int
    """End of the head: its end tag, or the first tag not allowed in it."""
    unscripted: list[tuple[int, int]]
    """Ranges of the contents of `noscript`."""
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
            text_end = _end_of_raw_text(data, name, text_end)
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
        if (name in _TAGS_READ) if not slash else (name in _CONTAINERS):
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
    return Scan(tags, depth.most, head_end, unscripted, most_attributes)


def _end_of_raw_text(data: bytes, name: bytes, start: int) -> int:
    """Return where the end tag of a raw text element begins, or the length without one."""
    if name != b"script":
        close = _RAW[name].search(data, start)
        return len(data) if close is None else close.start()
    # In a comment within a script, a further script's tags belong to its text (the states "script
    # data escaped" and "double escaped" of the HTML standard § 13.2.5).
    is_escaped = is_double_escaped = False
    found = _IN_SCRIPT.search(data, start)
    while found is not None:
        comment, comment_end, slash = found.groups()
        behind = found.end()
        if comment:
            is_escaped, behind = True, found.start() + 2  # its dashes may be those of -->
        elif comment_end:
            is_escaped = is_double_escaped = False
        elif not slash:
            is_double_escaped = is_escaped
        elif is_double_escaped:
            is_double_escaped = False
        else:
            return found.start()
        found = _IN_SCRIPT.search(data, behind)
    return len(data)


def _behind_what_is_no_tag(data: bytes, at: int) -> int:
    """Return where text goes on behind a comment or a stray <, -1 if nowhere."""
    if data.startswith(b"<!--", at):
        # <!--> and <!---> are whole comments, <!--!> and <!---!> are not.
        closing = _COMMENT_END.search(data, at + 2)
        while closing is not None and closing[1] and closing.start() < at + 4:
            closing = _COMMENT_END.search(data, closing.start() + 1)
        return -1 if closing is None else closing.end()
    sign, letter = data[at + 1 : at + 2], data[at + 1 : at + 3].lstrip(b"/")[:1]
    if letter.isalpha():
        return -1  # a tag that does not end before the document does
    if sign not in (b"!", b"?", b"/"):
        return at + 1
    end = data.find(b">", at)
    return -1 if end < 0 else end + 1


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
    """Upper bound of the nesting depth; implicitly closed elements are not counted."""

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


_PRELOADED = frozenset(["style", "script", "font", "image", "fetch", "video", "audio", "track"])
"""Kinds by the `as` attribute of preloads."""
_SCRIPT_TYPES = frozenset(
    (
        *("", "module", "text/jscript", "text/livescript"),
        *(
            f"{kind}/{x}{name}script"
            for kind in ("application", "text")
            for x in ("", "x-")
            for name in ("java", "ecma")
        ),
        *(f"text/javascript1.{number}" for number in range(6)),
    )
)
"""JavaScript's types as they stand (WHATWG MIME Sniffing § 4.6): with a parameter it is none."""
_IMAGE_TYPES = frozenset(
    (
        *("image/avif", "image/webp", "image/png", "image/apng", "image/jpeg", "image/jpg"),
        *("image/gif", "image/svg+xml", "image/bmp", "image/x-icon"),
    )
)
_ADDRESSES = {
    **dict.fromkeys(("audio", "embed", "input", "script", "track"), ("src",)),
    **dict.fromkeys(("body", "table", "td"), ("background",)),
    **dict.fromkeys(("image", "use"), ("href", "xlink:href")),
    **dict.fromkeys(("img", "source"), ("src", "srcset")),
    "link": ("href", "imagesrcset"),
    "object": ("data",),
    "video": ("src", "poster"),
}
"""The attributes of each tag that name something."""
_SETS = ("srcset", "imagesrcset")
_KIND_OF_TAG = {"img": Kind.IMAGE, "link": Kind.STYLESHEET, "script": Kind.SCRIPT}
_MAY_BE_LAZY = ("img", "iframe")
_FRAMES = ("iframe", "frame")
_PRIORITIES = {"high": FetchPriority.HIGH, "low": FetchPriority.LOW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A URL as it stands in a document, before it is made absolute, and what its tag says."""

    url: str
    kind: Kind
    tag: str
    offset_bytes: int
    """Behind the tag: so many bytes must be there before the browser knows it."""
    base: str = ""
    """URL of the `base` element in effect, unresolved; "" for none."""
    flags: dict[str, Any] = field(default_factory=dict)
    """Attributes of its tag as fields of a `Resource`; false ones are omitted, except hints."""

    def url_in(self, document_url: str) -> str:
        """Return its URL, absolute and without fragment, in a document; "" for what is none."""
        return joined(joined(document_url, self.base) or document_url, self.url)


class Style(NamedTuple):
    """CSS in a document: of a `style` element, or the declarations of a `style` attribute."""

    text: str
    offset_bytes: int
    is_attribute: bool
    base: str = ""


@dataclass(slots=True, kw_only=True)
class Markup:
    """References of a document, in order."""

    references: list[Reference] = field(default_factory=list)
    styles: list[Style] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    """In words, what is named and not loaded for display, once for each time."""


def read_markup(found: Scan, *, is_every: bool = False) -> Markup:
    """Return the references in the tags of a document.

    That is what the screen of `media` would load. With *is_every* it is all that any tag names,
    whatever the screen: every candidate of a `srcset`, sources of media, links of any kind.

    >>> from h3sim.importers.html import scan
    >>> markup = read_markup(scan(b'<head><script defer src=a.js></script></head><img src=b>'))
    >>> [(each.url, each.offset_bytes, "is_defer" in each.flags) for each in markup.references]
    [('a.js', 29, True), ('b', 56, False)]
    """
    return _Reader(found, is_every=is_every).read(found.tags)


class _Reader:
    def __init__(self, found: Scan, *, is_every: bool) -> None:
        self._markup = Markup()
        self._is_every = is_every
        self._head_end = found.head_end
        self._base = ""
        self._after_image = False
        self._depth = {"picture": 0, "video": 0, "audio": 0}
        self._templates: list[bool] = []
        """Those that are open, and of each whether what is in it stays out of the document."""
        self._named: set[tuple[str, Kind, bool]] = set()
        self._source = ""
        """Choice so far of the picture or media element that is open."""

    def read(self, tags: Iterable[Tag]) -> Markup:
        for tag in tags:
            if tag.name in self._depth:
                self._depth[tag.name] = max(0, self._depth[tag.name] + (-1 if tag.is_end else 1))
                self._source = ""
            elif tag.name == "template":
                self._open_or_close_template(tag)
            if any(self._templates) or tag.is_end:
                continue
            self._read_style(tag)
            rest = self._rest_of(tag) if self._is_every else ()
            for each in [*self._references_of(tag), *rest]:
                # A preload does not stand for the tag that needs the file: that says more of it.
                what = (each.url, each.kind, "preload" in each.flags)
                if each.url and what not in self._named:
                    self._named.add(what)
                    self._markup.references.append(each)
        return self._markup

    def _open_or_close_template(self, tag: Tag) -> None:
        if not tag.is_end:
            # What is in that of a shadow root is shown (HTML standard § 4.12.3).
            mode = tag.attributes.get("shadowrootmode", "").lower()
            self._templates.append(mode not in ("open", "closed"))
        elif self._templates:
            self._templates.pop()

    def _read_style(self, tag: Tag) -> None:
        styles, declarations = self._markup.styles, tag.attributes.get("style", "")
        if "url(" in declarations.lower():
            styles.append(Style(declarations, tag.end, is_attribute=True, base=self._base))
        if tag.name == "style" and matches(tag.attributes.get("media", "")):
            styles.append(Style(tag.text, tag.text_end, is_attribute=False, base=self._base))

    def _rest_of(self, tag: Tag) -> Iterator[Reference]:
        """Yield what a tag names and `_references_of` leaves out."""
        for name in _ADDRESSES.get(tag.name, ()):
            text = tag.attributes.get(name, "")
            for url in candidates(text) if name in _SETS else (text,):
                yield self._reference(tag, url, _KIND_OF_TAG.get(tag.name, Kind.OTHER))

    def _references_of(self, tag: Tag) -> Iterator[Reference]:
        values, url = tag.attributes, tag.attributes.get("src", "")
        if tag.name == "base":
            self._base = self._base or values.get("href", "")
        elif tag.name == "link":
            yield from self._of_link(tag)
        elif tag.name == "script":
            yield from self._of_script(tag, url)
        elif tag.name == "source":
            yield from self._of_source(tag, url)
        elif tag.name == "img":
            yield from self._of_image(tag)
        elif tag.name in _FRAMES:
            # Its own text goes before an address (HTML standard § 4.8.5).
            if "srcdoc" in values:
                self._markup.passed_over.append("frames that hold their document")
            else:
                yield self._reference(tag, url, Kind.DOCUMENT)
        elif tag.name in ("video", "audio"):
            yield self._reference(tag, values.get("poster", ""), Kind.IMAGE)
            if self._plays(tag):
                self._source = url  # before its sources (HTML standard § 4.8.11.5)
                yield self._reference(tag, url, Kind.MEDIA)
        elif tag.name in ("embed", "object"):
            yield self._reference(tag, values.get("data", "") or url, Kind.OTHER)
        elif tag.name == "input" and values.get("type", "").lower() == "image":
            yield self._reference(tag, url, Kind.IMAGE)
        elif tag.name in ("image", "use"):
            href = values.get("href", "") or values.get("xlink:href", "")
            yield self._reference(tag, href.partition("#")[0], Kind.IMAGE)
        elif tag.name == "body":
            yield self._reference(tag, values.get("background", ""), Kind.IMAGE)

    def _of_link(self, tag: Tag) -> Iterator[Reference]:
        values = tag.attributes
        words, href = values.get("rel", "").lower().split(), values.get("href", "")
        is_css = values.get("type", "").partition(";")[0].strip().lower() in ("", "text/css")
        is_off = "alternate" in words or "disabled" in values
        if "stylesheet" in words and is_css and not is_off:
            is_shown = matches(values.get("media", ""))
            flags = {
                "render_blocking": is_shown and self._is_in_head(tag),
                "other_media": not is_shown,
            }
            yield self._reference(tag, href, Kind.STYLESHEET, **flags)
        elif "preload" in words or "modulepreload" in words:
            word = values.get("as", "").lower()
            is_module = "modulepreload" in words
            kind = Kind.SCRIPT if is_module else kind_of_word(word) if word in _PRELOADED else None
            if kind is None or not matches(values.get("media", "")):
                self._markup.passed_over.append("preloads for nothing that is shown")
                return
            url = chosen(values.get("imagesrcset", ""), values.get("imagesizes", "")) or href
            yield self._reference(tag, url, kind, preload=True, module=is_module)
        elif href and words:
            self._markup.passed_over.append("links that load nothing for display")

    def _of_script(self, tag: Tag, url: str) -> Iterator[Reference]:
        values = tag.attributes
        type_ = values.get("type", "").strip().lower()
        is_module = type_ == "module"
        if not url:
            return
        if type_ not in _SCRIPT_TYPES or ("nomodule" in values and not is_module):
            self._markup.passed_over.append("scripts that are not run")
            return
        is_async = "async" in values
        # A module is deferred as it stands (HTML standard § 4.12.1).
        is_defer = not is_async and ("defer" in values or is_module)
        is_waited_for = not (is_async or is_defer)
        # Any script in the head may be named as one that rendering waits for (§ 2.5.9).
        is_waited_for |= "render" in values.get("blocking", "").lower().split()
        is_blocking = self._is_in_head(tag) and is_waited_for
        flags = {"is_async": is_async, "is_defer": is_defer, "module": is_module}
        yield self._reference(tag, url, Kind.SCRIPT, **flags, render_blocking=is_blocking)

    def _of_source(self, tag: Tag, url: str) -> Iterator[Reference]:
        """Keep what a `source` offers to a picture; what it offers to a player is loaded."""
        values = tag.attributes
        is_for_screen = matches(values.get("media", ""))
        if self._depth["picture"]:
            type_ = values.get("type", "").lower()
            if not self._source and is_for_screen and (not type_ or type_ in _IMAGE_TYPES):
                self._source = chosen(values.get("srcset", ""), values.get("sizes", ""))
        elif (self._depth["video"] or self._depth["audio"]) and is_for_screen and not self._source:
            self._source = url
            yield self._reference(tag, url, Kind.MEDIA)

    def _of_image(self, tag: Tag) -> Iterator[Reference]:
        values = tag.attributes
        own = chosen(values.get("srcset", ""), values.get("sizes", "")) or values.get("src", "")
        url = self._source if self._depth["picture"] and self._source else own
        yield self._reference(tag, url, Kind.IMAGE, small=_is_small(values))
        self._after_image = True

    def _is_in_head(self, tag: Tag) -> bool:
        return tag.end <= self._head_end

    def _plays(self, tag: Tag) -> bool:
        if tag.attributes.get("preload", "").lower() == "none" and "autoplay" not in tag.attributes:
            self._source = "none"  # nor is any of its sources asked for
            self._markup.passed_over.append("media with preload=none")
            return False
        return True

    def _reference(self, tag: Tag, url: str, kind: Kind, **attributes: bool) -> Reference:
        values = tag.attributes
        flags = {
            "in_head": self._is_in_head(tag),
            **attributes,
            "is_lazy": tag.name in _MAY_BE_LAZY and values.get("loading", "").lower() == "lazy",
            "after_first_image": self._after_image and kind in (Kind.SCRIPT, Kind.STYLESHEET),
            # Said in any case: of several tags for one file the first decides.
            "fetchpriority": _PRIORITIES.get(
                values.get("fetchpriority", "").lower(), FetchPriority.AUTO
            ),
        }
        return Reference(
            url=url.strip(),
            kind=kind,
            tag=tag.name,
            offset_bytes=tag.end,
            base=self._base,
            flags={name: value for name, value in flags.items() if value},
        )


_SMALL_PX = 10_000
"""The area up to which Chrome takes an image for small (kBoostImagePriorityImageSize)."""


def _is_small(attributes: dict[str, str]) -> bool:
    """Return whether the tag of an image declares a small area."""
    sides = [attributes.get(name, "").strip() for name in ("width", "height")]
    given = [int(side) for side in sides if side.isascii() and side.isdigit()]
    return 0 in given or (len(given) == len(sides) and given[0] * given[1] <= _SMALL_PX)
